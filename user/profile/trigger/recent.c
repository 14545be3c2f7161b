/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/trigger/recent.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/hashmap.h"
#include "base/core/link.h"
#include "base/core/text.h"

#define BLOCK 1000	  /* inferences that memory is taken for at once */
#define NO_CORE INT32_MIN /* unknown */

/* What is kept of a program as long as there are inferences of it. */
struct program {
	struct map_node node; /* by id */
	__u32 tgid;
	__u64 handle;
	char *name;
	size_t users;
};

struct inference {
	struct program *program;
	__u64 begin, end;
	__u32 tid;
	__u32 wait_tid; /* of what has ended it; 0: the call itself */
	__s32 core;	/* or NO_CORE */
	__u32 enqueued; /* ns from the begin to the return of what began it; ~0: more */
};

struct block {
	struct link link;
	size_t first, end; /* of those in use */
	struct inference inferences[BLOCK];
};

struct recent {
	struct map programs;
	size_t program_bytes;
	struct link blocks; /* the oldest first; by end as far as events are */
	size_t block_count;
	size_t count;
	__u64 begin;
	__u64 evicted;
};

int recent_create(struct recent **result)
{
	*result = calloc(1, sizeof(**result));
	if (!*result)
		return -ENOMEM;
	link_init(&(*result)->blocks);
	return 0;
}

static struct block *block_of(struct link *link)
{
	return container_of(link, struct block, link);
}

static void program_leave(struct recent *recent, struct program *program)
{
	if (--program->users)
		return;
	map_remove(&recent->programs, &program->node);
	recent->program_bytes -= sizeof(*program) + strlen(program->name);
	free(program->name);
	free(program);
}

/* Of those in the block, drops what ended before the time. Returns whether all did. */
static bool block_drop(struct recent *recent, struct block *block, __u64 time)
{
	while (block->first < block->end && block->inferences[block->first].end < time) {
		program_leave(recent, block->inferences[block->first++].program);
		recent->count--;
		recent->evicted++;
	}
	return block->first == block->end;
}

static void drop(struct recent *recent, __u64 time)
{
	struct link *link, *following;
	struct block *block;

	link_each(link, following, &recent->blocks)
	{
		block = block_of(link);
		if (!block_drop(recent, block, time))
			return;
		link_remove(link);
		free(block);
		recent->block_count--;
	}
}

void recent_free(struct recent *recent)
{
	if (!recent)
		return;
	drop(recent, ~0ull);
	map_free(&recent->programs);
	free(recent);
}

static struct program *program_find(const struct recent *recent, unsigned int id)
{
	struct map_node *node = map_find(&recent->programs, id, 0);

	return node ? container_of(node, struct program, node) : NULL;
}

static struct program *program_get(struct recent *recent, const struct model_program *view)
{
	struct program *program = program_find(recent, view->id);

	if (program)
		return program;
	program = calloc(1, sizeof(*program));
	if (!program)
		return NULL;
	program->tgid = view->process->tgid;
	program->handle = view->handle;
	program->name = strdup(view->name);
	if (!program->name || map_add(&recent->programs, &program->node, view->id, 0)) {
		free(program->name);
		free(program);
		return NULL;
	}
	recent->program_bytes += sizeof(*program) + strlen(program->name);
	return program;
}

static void program_rename(struct recent *recent, const struct model_program *view)
{
	struct program *program = program_find(recent, view->id);
	char *name;

	if (!program || !strcmp(program->name, view->name))
		return;
	name = strdup(view->name);
	if (!name)
		return;
	recent->program_bytes += strlen(name) - strlen(program->name);
	free(program->name);
	program->name = name;
}

/* NULL: no memory. */
static struct block *block_add(struct recent *recent)
{
	struct block *block = malloc(sizeof(*block));

	if (!block)
		return NULL;
	block->first = block->end = 0;
	link_init(&block->link);
	link_append(&recent->blocks, &block->link);
	recent->block_count++;
	return block;
}

static struct inference *next_place(struct recent *recent)
{
	struct block *block = block_of(recent->blocks.previous);

	if (link_alone(&recent->blocks) || block->end == BLOCK)
		block = block_add(recent);
	if (!block)
		return NULL;
	recent->count++;
	return &block->inferences[block->end++];
}

/* Without memory it cannot be found by its program or core, and is in the window all the same. */
static void add(struct recent *recent, const struct model_program *view, const struct inference *inference)
{
	struct program *program = program_get(recent, view);
	struct inference *place;

	if (!program)
		return;
	program->users++;
	place = next_place(recent);
	if (!place) {
		program_leave(recent, program);
		return;
	}
	*place = *inference;
	place->program = program;
}

static bool is_run(const struct event_call *call)
{
	enum xpt_role role = call->function->role;

	return call->program && !call->layer && !call->flow_out &&
	       (role == XPT_ROLE_EXECUTE || role == XPT_ROLE_LAUNCH);
}

/* Few calls that run a program have the core; the default is that of the program's load. */
static void take_core(struct inference *inference, const struct model_program *program, __u32 have, __s64 core)
{
	const bool told = have >> XPT_MEANING_CORE & 1;

	if (!told)
		core = program->core;
	inference->core = (told || program->has_core) && core == (__s32)core ? (__s32)core : NO_CORE;
}

static void on_call(struct recent *recent, const struct event_call *call)
{
	struct inference inference = { .begin = call->start, .end = call->end, .tid = call->tid };

	take_core(&inference, call->program, call->have, call->core);
	add(recent, call->program, &inference);
}

static void on_inference(struct recent *recent, const struct event_inference *ended)
{
	__u64 enqueued = ended->enqueued - ended->start;
	struct inference inference = {
		.begin = ended->start,
		.end = ended->end ?: ended->enqueued,
		.tid = ended->tid,
		.wait_tid = ended->wait_tid,
		.enqueued = enqueued < ~0u ? enqueued : ~0u,
	};

	take_core(&inference, ended->program, ended->have, ended->core);
	add(recent, ended->program, &inference);
}

static int on_event(void *context, const struct event *event)
{
	struct recent *recent = context;
	const struct event_region *region = &event->region;

	switch (event->kind) {
	case EVENT_CALL:
		if (is_run(&event->call))
			on_call(recent, &event->call);
		break;
	case EVENT_UNPAIRED: /* of a launch its call is known */
		if (event->inference.function->role == XPT_ROLE_ENQUEUE)
			break;
		/* fall through */
	case EVENT_INFERENCE:
		if (event->inference.program)
			on_inference(recent, &event->inference);
		break;
	case EVENT_REGION:
		if (region->program)
			add(recent, region->program,
			    &(struct inference){
				    .begin = region->start, .end = region->end, .tid = region->tid, .core = NO_CORE });
		break;
	case EVENT_PROGRAM:
		program_rename(recent, event->program.program);
		break;
	default:
		break;
	}
	return 0;
}

struct event_sink recent_sink(struct recent *recent)
{
	return (struct event_sink){ on_event, recent };
}

void recent_begin(struct recent *recent, __u64 time)
{
	recent->begin = time;
	drop(recent, time);
}

void recent_figures(const struct recent *recent, struct recent_figures *figures)
{
	*figures = (struct recent_figures){
		.inferences = recent->count,
		.evicted = recent->evicted,
		.bytes = recent->block_count * sizeof(struct block) + recent->program_bytes,
	};
}

static bool is_meant(const struct recent *recent, const struct recent_filter *filter, const struct inference *inference)
{
	const struct program *program = inference->program;

	return inference->begin >= recent->begin && inference->begin >= filter->since &&
	       (!filter->tgid || program->tgid == filter->tgid) &&
	       (!filter->program || text_is_name(program->name, filter->program)) &&
	       (!filter->handle || program->handle == filter->handle) &&
	       (!filter->has_core || (inference->core != NO_CORE && inference->core == filter->core));
}

static int by_thread(const void *a, const void *b)
{
	const struct snapshot_stretch *one = a, *other = b;

	if (one->tid != other->tid)
		return one->tid < other->tid ? -1 : 1;
	return one->begin < other->begin ? -1 : one->begin > other->begin;
}

static void tell(const struct inference *inference, struct recent_inference *told)
{
	bool waited = inference->wait_tid;

	*told = (struct recent_inference){
		.stretch = { inference->program->tgid, inference->tid, inference->begin, inference->end },
		.wait_tid = inference->wait_tid,
		.end = inference->end,
		.has_core = inference->core != NO_CORE,
		.core = inference->core,
	};
	if (waited && inference->enqueued != ~0u)
		told->stretch.end = inference->begin + inference->enqueued;
}

static void add_stretches(struct recent_stretches *result, const struct inference *inference)
{
	struct recent_inference told;

	tell(inference, &told);
	result->stretches[result->count++] = told.stretch;
	if (told.wait_tid)
		result->stretches[result->count++] = (struct snapshot_stretch){
			.tgid = told.stretch.tgid,
			.tid = told.wait_tid,
			.begin = told.end,
			.end = told.end,
		};
}

int recent_find(const struct recent *recent, const struct recent_filter *filter, __u64 most,
		struct recent_stretches *result)
{
	const struct inference *inference;
	const struct block *block;

	*result = (struct recent_stretches){ .begin = ~0ull };
	result->stretches = calloc(2 * (most < recent->count ? most : recent->count) ?: 1, sizeof(*result->stretches));
	if (!result->stretches)
		return -ENOMEM;
	for (const struct link *link = recent->blocks.previous; link != &recent->blocks; link = link->previous) {
		block = container_of(link, const struct block, link);
		for (size_t i = block->end; i-- > block->first && result->inferences < most;) {
			inference = &block->inferences[i];
			if (!is_meant(recent, filter, inference))
				continue;
			add_stretches(result, inference);
			result->inferences++;
			if (inference->begin < result->begin)
				result->begin = inference->begin;
		}
	}
	if (!result->inferences) {
		free(result->stretches);
		result->stretches = NULL;
		return -ENOENT;
	}
	qsort(result->stretches, result->count, sizeof(*result->stretches), by_thread);
	return 0;
}

int recent_each(const struct recent *recent, __u32 tgid,
		int (*visit)(void *context, const struct recent_inference *inference), void *context)
{
	struct recent_inference told;
	const struct block *block;
	int result = 0;

	for (const struct link *link = recent->blocks.previous; link != &recent->blocks; link = link->previous) {
		block = container_of(link, const struct block, link);
		for (size_t i = block->end; i-- > block->first && result >= 0;) {
			if (block->inferences[i].begin < recent->begin ||
			    (tgid && block->inferences[i].program->tgid != tgid))
				continue;
			tell(&block->inferences[i], &told);
			result = visit(context, &told);
		}
	}
	return result < 0 ? result : 0;
}
