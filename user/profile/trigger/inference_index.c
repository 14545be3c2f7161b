/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/trigger/inference_index.h"

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

struct inference_index {
	struct map programs;
	size_t program_bytes;
	struct link blocks; /* the oldest first; by end as far as events are */
	size_t block_count;
	size_t count;
	__u64 begin;
	__u64 evicted;
};

int inference_index_create(struct inference_index **result)
{
	*result = calloc(1, sizeof(**result));
	if (!*result)
		return -ENOMEM;
	link_init(&(*result)->blocks);
	return 0;
}

static void program_leave(struct inference_index *index, struct program *program)
{
	if (--program->users)
		return;
	map_remove(&index->programs, &program->node);
	index->program_bytes -= sizeof(*program) + strlen(program->name);
	free(program->name);
	free(program);
}

/* Of those in the block, drops what ended before the time. Returns whether all did. */
static bool block_drop(struct inference_index *index, struct block *block, __u64 time)
{
	while (block->first < block->end && block->inferences[block->first].end < time) {
		program_leave(index, block->inferences[block->first++].program);
		index->count--;
		index->evicted++;
	}
	return block->first == block->end;
}

static void evict(struct inference_index *index, __u64 time)
{
	struct block *block, *following;

	link_for_each_safe(block, following, &index->blocks, link) {
		if (!block_drop(index, block, time))
			return;
		link_remove(&block->link);
		free(block);
		index->block_count--;
	}
}

void inference_index_free(struct inference_index *index)
{
	if (!index)
		return;
	evict(index, ~0ull);
	map_free(&index->programs);
	free(index);
}

static struct program *program_find(const struct inference_index *index, unsigned int id)
{
	struct map_node *node = map_find(&index->programs, id, 0);

	return node ? container_of(node, struct program, node) : NULL;
}

static struct program *program_get(struct inference_index *index, const struct model_program *view)
{
	struct program *program = program_find(index, view->id);

	if (program)
		return program;
	program = calloc(1, sizeof(*program));
	if (!program)
		return NULL;
	program->tgid = view->process->tgid;
	program->handle = view->handle;
	program->name = strdup(view->name);
	if (!program->name || map_add(&index->programs, &program->node, view->id, 0)) {
		free(program->name);
		free(program);
		return NULL;
	}
	index->program_bytes += sizeof(*program) + strlen(program->name);
	return program;
}

static void program_rename(struct inference_index *index, const struct model_program *view)
{
	struct program *program = program_find(index, view->id);
	char *name;

	if (!program || !strcmp(program->name, view->name))
		return;
	name = strdup(view->name);
	if (!name)
		return;
	index->program_bytes += strlen(name) - strlen(program->name);
	free(program->name);
	program->name = name;
}

/* NULL: no memory. */
static struct block *block_add(struct inference_index *index)
{
	struct block *block = malloc(sizeof(*block));

	if (!block)
		return NULL;
	block->first = block->end = 0;
	link_init(&block->link);
	link_append(&index->blocks, &block->link);
	index->block_count++;
	return block;
}

static struct inference *next_place(struct inference_index *index)
{
	struct block *block = link_last(&index->blocks, struct block, link);

	if (link_alone(&index->blocks) || block->end == BLOCK)
		block = block_add(index);
	if (!block)
		return NULL;
	index->count++;
	return &block->inferences[block->end++];
}

/* Without memory it cannot be found by its program or core, and is in the window all the same. */
static void add(struct inference_index *index, const struct model_program *view, const struct inference *inference)
{
	struct program *program = program_get(index, view);
	struct inference *place;

	if (!program)
		return;
	program->users++;
	place = next_place(index);
	if (!place) {
		program_leave(index, program);
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
static void set_core(struct inference *inference, const struct model_program *program, __u32 have, __s64 core)
{
	const bool known = have >> XPT_MEANING_CORE & 1;

	if (!known)
		core = program->core;
	inference->core = (known || program->has_core) && core == (__s32)core ? (__s32)core : NO_CORE;
}

static void on_call(struct inference_index *index, const struct event_call *call)
{
	struct inference inference = { .begin = call->start, .end = call->end, .tid = call->tid };

	set_core(&inference, call->program, call->have, call->core);
	add(index, call->program, &inference);
}

static void on_inference(struct inference_index *index, const struct event_inference *ended)
{
	__u64 enqueued = ended->enqueued - ended->start;
	struct inference inference = {
		.begin = ended->start,
		.end = ended->end ?: ended->enqueued,
		.tid = ended->tid,
		.wait_tid = ended->wait_tid,
		.enqueued = enqueued < ~0u ? enqueued : ~0u,
	};

	set_core(&inference, ended->program, ended->have, ended->core);
	add(index, ended->program, &inference);
}

static int on_event(void *context, const struct event *event)
{
	struct inference_index *index = context;
	const struct event_region *region = &event->region;

	switch (event->kind) {
	case EVENT_CALL:
		if (is_run(&event->call))
			on_call(index, &event->call);
		break;
	case EVENT_UNPAIRED: /* of a launch its call is known */
		if (event->inference.function->role == XPT_ROLE_ENQUEUE)
			break;
		/* fall through */
	case EVENT_INFERENCE:
		if (event->inference.program)
			on_inference(index, &event->inference);
		break;
	case EVENT_REGION:
		if (region->program)
			add(index, region->program,
			    &(struct inference){
				    .begin = region->start, .end = region->end, .tid = region->tid, .core = NO_CORE });
		break;
	case EVENT_PROGRAM:
		program_rename(index, event->program.program);
		break;
	default:
		break;
	}
	return 0;
}

struct event_sink inference_index_sink(struct inference_index *index)
{
	return (struct event_sink){ on_event, index };
}

void inference_index_begin(struct inference_index *index, __u64 time)
{
	index->begin = time;
	evict(index, time);
}

void inference_index_figures(const struct inference_index *index, struct inference_index_figures *figures)
{
	*figures = (struct inference_index_figures){
		.inferences = index->count,
		.evicted = index->evicted,
		.bytes = index->block_count * sizeof(struct block) + index->program_bytes,
	};
}

static bool is_meant(const struct inference_index *index, const struct inference_filter *filter,
		     const struct inference *inference)
{
	const struct program *program = inference->program;

	return inference->begin >= index->begin && inference->begin >= filter->since &&
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

static void describe(const struct inference *inference, struct indexed_inference *view)
{
	bool waited = inference->wait_tid;

	*view = (struct indexed_inference){
		.stretch = { inference->program->tgid, inference->tid, inference->begin, inference->end },
		.wait_tid = inference->wait_tid,
		.end = inference->end,
		.has_core = inference->core != NO_CORE,
		.core = inference->core,
	};
	if (waited && inference->enqueued != ~0u)
		view->stretch.end = inference->begin + inference->enqueued;
}

static void add_stretches(struct inference_stretches *result, const struct inference *inference)
{
	struct indexed_inference view;

	describe(inference, &view);
	result->stretches[result->count++] = view.stretch;
	if (view.wait_tid)
		result->stretches[result->count++] = (struct snapshot_stretch){
			.tgid = view.stretch.tgid,
			.tid = view.wait_tid,
			.begin = view.end,
			.end = view.end,
		};
}

int inference_index_find(const struct inference_index *index, const struct inference_filter *filter, __u64 most,
			 struct inference_stretches *result)
{
	const struct inference *inference;
	const struct block *block;

	*result = (struct inference_stretches){ .begin = ~0ull };
	result->stretches = calloc(2 * (most < index->count ? most : index->count) ?: 1, sizeof(*result->stretches));
	if (!result->stretches)
		return -ENOMEM;
	for (const struct link *link = index->blocks.previous; link != &index->blocks; link = link->previous) {
		block = container_of(link, const struct block, link);
		for (size_t i = block->end; i-- > block->first && result->inferences < most;) {
			inference = &block->inferences[i];
			if (!is_meant(index, filter, inference))
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

int inference_index_each(const struct inference_index *index, __u32 tgid,
			 int (*visit)(void *context, const struct indexed_inference *inference), void *context)
{
	struct indexed_inference view;
	const struct block *block;
	int result = 0;

	for (const struct link *link = index->blocks.previous; link != &index->blocks; link = link->previous) {
		block = container_of(link, const struct block, link);
		for (size_t i = block->end; i-- > block->first && result >= 0;) {
			if (block->inferences[i].begin < index->begin ||
			    (tgid && block->inferences[i].program->tgid != tgid))
				continue;
			describe(&block->inferences[i], &view);
			result = visit(context, &view);
		}
	}
	return result < 0 ? result : 0;
}
