/* SPDX-License-Identifier: BSD-2-Clause */
/* A window that follows a stream, and what models make of records, one line for each inference, operator and region. */
#ifndef XPT_TEST_RECORD_WINDOW_H
#define XPT_TEST_RECORD_WINDOW_H

#include "model/core/model.h"
#include "record/window.h"
#include "record_stream.h"
#include "session/reader/describe_records.h"

#define TIDS 65536

struct line {
	__u64 start, end, inference; /* inference: of an operator, the one it is a step of */
	__u64 returned;		     /* the call had, that it began with */
	__u32 tgid, tid;
	char what; /* e: execute, a: asynchronous inference, o: operator, r: region, c: code object is loaded, u: unloaded */
	char text[160]; /* names of program, process, thread, operator, region */
};

/* All that a model tells. */
struct account {
	struct model *model;
	struct line *lines;
	size_t count, room;
	char (*threads)[24];
	int error;
};

static inline void account_line(struct account *account, struct line line, const struct model_program *program,
				const char *process, const char *more)
{
	char text[sizeof(line.text)], handle[24];
	const char *name = program ? program->name : "-";

	/* A part has no other number for what has no name than it can know: that is compared by its handle. */
	if (program && !program->named) {
		snprintf(handle, sizeof(handle), "0x%llx", program->handle);
		name = handle;
	}
	snprintf(text, sizeof(text), "%s %s %s %s", name, process, line.tid < TIDS ? account->threads[line.tid] : "?",
		 more);
	memcpy(line.text, text, sizeof(text));
	if (account->count == account->room) {
		account->room = account->room ? account->room * 2 : 256;
		account->lines = realloc(account->lines, account->room * sizeof(line));
	}
	account->lines[account->count++] = line;
}

static inline void account_operator(struct account *account, const struct event_call *call)
{
	const struct model_operator *op = call->op;
	char more[96];

	snprintf(more, sizeof(more), "%s %s %s", op->class, op->type, op->name ?: "-");
	account_line(account,
		     (struct line){ call->start, call->end, call->inference, call->end, call->tgid, call->tid, 'o',
				    "" },
		     call->program, op->process->name, more);
}

/* Those that are found are what a cut begins with. */
static inline void account_code(struct account *account, const struct event_code *code)
{
	char more[96];

	snprintf(more, sizeof(more), "%s %s %s 0x%llx %llu", code->kind, code->name, code->uri, code->handle,
		 code->waited);
	if (code->unloaded || code->tid)
		account_line(account,
			     (struct line){ code->time, code->time, 0, code->time, code->tgid, code->tid,
					    code->unloaded ? 'u' : 'c', "" },
			     NULL, "", more);
}

static inline int account_write(void *context, const struct event *event)
{
	const struct event_inference *inference = &event->inference;
	const struct event_region *region = &event->region;
	const struct event_call *call = &event->call;
	struct account *account = context;

	switch (event->kind) {
	case EVENT_THREAD:
		if (event->thread.tid < TIDS)
			snprintf(account->threads[event->thread.tid], sizeof(account->threads[0]), "%s",
				 event->thread.name);
		break;
	case EVENT_CALL:
		if (call->function->role == XPT_ROLE_OPERATOR)
			account_operator(account, call);
		else if (call->function->role == XPT_ROLE_EXECUTE)
			account_line(account,
				     (struct line){ call->start, call->end, 0, call->end, call->tgid, call->tid, 'e',
						    "" },
				     call->program, call->program->process->name, "");
		break;
	case EVENT_INFERENCE:
		account_line(account,
			     (struct line){ inference->start, inference->end, 0, inference->enqueued, inference->tgid,
					    inference->tid, 'a', "" },
			     inference->program, inference->program->process->name, "");
		break;
	case EVENT_REGION:
		account_line(account,
			     (struct line){ region->start, region->end, 0, region->end, region->tgid, region->tid, 'r',
					    "" },
			     NULL, region->program->process->name, region->name);
		break;
	case EVENT_CODE:
		account_code(account, &event->code);
		break;
	default:
		break;
	}
	return 0;
}

static inline void account_init(struct account *account)
{
	*account = (struct account){ .threads = calloc(TIDS, sizeof(*account->threads)) };
	cr_assert_eq(model_create(NULL, &account->model), 0);
	cr_assert_eq(model_add_sink(account->model, (struct event_sink){ account_write, account }), 0);
}

static inline void account_free(struct account *account)
{
	model_free(account->model);
	free(account->threads);
	free(account->lines);
}

static inline int line_compare(const void *a, const void *b)
{
	const struct line *left = a, *right = b;

	if (left->end != right->end)
		return left->end < right->end ? -1 : 1;
	return left->what - right->what;
}

static inline void account_finish(struct account *account)
{
	cr_assert_eq(model_flush(account->model), 0);
	if (account->count)
		qsort(account->lines, account->count, sizeof(*account->lines), line_compare);
}

static inline int account_feed(void *context, const struct xpt_record_header *record)
{
	struct account *account = context;
	int error = model_feed(account->model, record);

	cr_expect_eq(error, 0, "record of kind %u, %u bytes: %d", record->kind, record->size, error);
	return 0;
}

/* ---- a window beside the model that tells it of programs ---- */

struct follower {
	struct stream stream;
	struct window *window;
	struct model *model;
	size_t at; /* bytes of the stream that have been handed on */
	__u64 records, seed;
};

static inline int follower_write(void *context, const struct event *event)
{
	struct follower *follower = context;
	struct xpt_record_text *record;
	struct past_change change;
	int error;

	if (!record_change(event, &change, &record))
		return 0;
	error = window_change(follower->window, &change, record);
	free(record);
	return error;
}

static inline void follower_init(struct follower *follower, const struct window_options *options, __u64 seed)
{
	*follower = (struct follower){ .seed = seed };
	stream_init(&follower->stream, seed);
	cr_assert_eq(window_create(options, &follower->window), 0);
	cr_assert_eq(model_create(NULL, &follower->model), 0);
	cr_assert_eq(model_add_sink(follower->model, (struct event_sink){ follower_write, follower }), 0);
}

static inline void follower_free(struct follower *follower)
{
	stream_free(&follower->stream);
	window_free(follower->window);
	model_free(follower->model);
}

static inline const struct xpt_record_header *stream_next(const struct stream *stream, size_t *at)
{
	const struct xpt_record_header *record = (const void *)(stream->bytes.data + *at);

	if (*at >= stream->bytes.length)
		return NULL;
	*at += record->size;
	return record;
}

/* Hands on the next record. Returns false when there is none. */
static inline bool follower_step(struct follower *follower)
{
	const struct xpt_record_header *record = stream_next(&follower->stream, &follower->at);

	if (!record)
		return false;
	cr_assert_eq(window_add(follower->window, record), 0);
	cr_assert_eq(model_feed(follower->model, record), 0);
	follower->records++;
	return true;
}

static inline struct snapshot *follower_snapshot(const struct follower *follower)
{
	struct snapshot *snapshot;

	cr_assert_eq(window_snapshot(follower->window, &snapshot), 0);
	return snapshot;
}

#endif
