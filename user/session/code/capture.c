/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/code/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/clock.h"
#include "describe/runtime/registry.h"
#include "session/code/load.h"
#include "session/code/reading.h"

/* Results of calls that load and unload code objects, and what has ended. */

#define CODE_ANSWERS_MAX 2048

/* Of a call, or the end of the process or of the program that it ran. */
struct code_answer {
	pid_t tgid, tid;
	const struct description *runtime;
	unsigned int spec;
	enum code_answer_kind { CODE_LOADED, CODE_UNLOADED, CODE_GONE } kind;
	__u64 start, end; /* ns of CLOCK_MONOTONIC */
	bool succeeded;
	__u64 handle; /* 0: none */
	__s64 device; /* -1: unknown */
	__s64 status; /* 0: success; -1: failure that has no number */
	__u64 turn;   /* pass over all rings in which it came */
};

/* Those that have not been settled. Zeroed: none. */
struct code_answers {
	struct code_answer answer[CODE_ANSWERS_MAX];
	size_t count;
};

static void set_status(const struct description *runtime, const struct call_spec *spec, __u64 value,
		       struct code_answer *answer)
{
	bool half = spec->wire.success == XPT_SUCCESS_ZERO32;
	const char *name;

	/* Statuses of 32 bits may be described with or without a sign. */
	answer->status = half ? (__s32)value : (__s64)value;
	answer->succeeded = description_status(runtime, answer->status, &name) == STATUS_OK ||
			    (half && description_status(runtime, (__u32)value, &name) == STATUS_OK);
	if (answer->succeeded)
		answer->status = 0;
}

/* Without a status, an output that could not be fetched means failure. */
static void set_outcome(const struct call_spec *spec, const struct xpt_record_call *call, struct code_answer *answer)
{
	unsigned int returned = 0;

	for (unsigned int i = 0; i < spec->wire.fetches; i++)
		returned |= (spec->wire.fetch[i].at_return != 0) << i;
	answer->succeeded = spec->wire.success == XPT_SUCCESS_ALWAYS || !returned || call->valid & returned;
	answer->status = answer->succeeded ? 0 : -1;
}

static struct code_answer code_answer_read(const struct description *runtime, const struct call_spec *spec,
					   const struct xpt_record_call *call)
{
	struct code_answer answer = {
		.tgid = call->header.tgid,
		.tid = call->tid,
		.runtime = runtime,
		.spec = call->spec,
		.start = call->start,
		.end = call->header.time,
		.device = -1,
	};
	bool has_status = false;

	for (unsigned int fetch = 0, value = 0; fetch < spec->wire.fetches && value < call->values; fetch++) {
		if (spec->wire.fetch[fetch].type == XPT_TYPE_STRING)
			continue;
		if (call->valid & 1u << fetch) {
			switch (spec->wire.fetch[fetch].meaning) {
			case XPT_MEANING_PROGRAM:
				answer.handle = call->value[value];
				break;
			case XPT_MEANING_CORE:
				answer.device = (__s64)call->value[value];
				break;
			case XPT_MEANING_STATUS:
				set_status(runtime, spec, call->value[value], &answer);
				has_status = true;
				break;
			}
		}
		value++;
	}
	if (!has_status)
		set_outcome(spec, call, &answer);
	return answer;
}

static int compare(const void *left, const void *right)
{
	const struct code_answer *a = left, *b = right;

	return a->end < b->end ? -1 : a->end > b->end;
}

/*
 * Calls settle for those that came before a pass, and what ended earlier than one of them, in the order in which they ended; the
 * order in which they come is that of their rings.
 */
static void code_answers_settle(struct code_answers *answers, __u64 turn,
				void (*settle)(void *context, const struct code_answer *answer), void *context)
{
	__u64 latest = 0;
	size_t done = 0;

	for (size_t i = 0; i < answers->count; i++)
		if (answers->answer[i].turn < turn && answers->answer[i].end > latest)
			latest = answers->answer[i].end;
	if (!latest)
		return;
	qsort(answers->answer, answers->count, sizeof(answers->answer[0]), compare);
	while (done < answers->count && answers->answer[done].end <= latest)
		settle(context, &answers->answer[done++]);
	answers->count -= done;
	memmove(answers->answer, &answers->answer[done], answers->count * sizeof(answers->answer[0]));
}

#define CODE_LIVES_CHAINS 4096

/* Loads that have been handed out and may be unloaded yet, found by what the runtime gave for them. */
struct code_lives { /* zeroed: none */
	struct code_load *chain[CODE_LIVES_CHAINS];
	size_t count;
};

struct code_capture {
	struct code_capture_options options;
	struct code_worker *worker;
	struct file_readers *readers; /* of the thread that collects */
	struct code_pieces pieces;
	struct code_answers answers;
	__u64 turns;		   /* how often the rings have been emptied */
	struct code_load *waiting; /* for the worker or their calls; the latest first */
	size_t waiting_count;
	struct code_lives lives;
	struct code_load *handed_out; /* those that stay until the end */
	struct code_counts counts;
};

/* ---- loads that may be unloaded ---- */

static size_t chain_of(pid_t tgid, __u64 handle)
{
	return ((handle ^ (__u64)tgid << 40) * 0x9e3779b97f4a7c15ull) >> 52;
}

static void code_lives_add(struct code_lives *lives, struct code_load *load)
{
	struct code_load **chain = &lives->chain[chain_of(load->tgid, load->handle) % CODE_LIVES_CHAINS];

	load->live = *chain;
	*chain = load;
	lives->count++;
}

static struct code_load *lives_take(struct code_lives *lives, struct code_load **place)
{
	struct code_load *load = *place;

	*place = load->live;
	load->live = NULL;
	lives->count--;
	return load;
}

/* The latest one whose call had ended by a time. NULL: there is none. */
static struct code_load *code_lives_take(struct code_lives *lives, pid_t tgid, const struct description *runtime,
					 __u64 handle, __u64 by)
{
	struct code_load **place = &lives->chain[chain_of(tgid, handle) % CODE_LIVES_CHAINS], **best = NULL;

	for (; *place; place = &(*place)->live) {
		if ((*place)->handle == handle && (*place)->tgid == tgid && (*place)->runtime == runtime &&
		    (*place)->ended <= by && (!best || (*place)->ended > (*best)->ended))
			best = place;
	}
	return best ? lives_take(lives, best) : NULL;
}

/* Any of a process, 0: of all. NULL: there are no more. */
static struct code_load *code_lives_take_any(struct code_lives *lives, pid_t tgid)
{
	for (size_t i = 0; i < CODE_LIVES_CHAINS && lives->count; i++) {
		struct code_load **place = &lives->chain[i];

		while (*place && tgid && (*place)->tgid != tgid)
			place = &(*place)->live;
		if (*place)
			return lives_take(lives, place);
	}
	return NULL;
}

int code_capture_create(const struct code_capture_options *options, struct code_capture **result)
{
	struct code_capture *capture = calloc(1, sizeof(*capture));
	int error;

	if (!capture)
		return -ENOMEM;
	capture->options = *options;
	error = file_readers_start(options->worker.log, &(const struct file_search){ 0 }, &capture->readers);
	if (!error)
		error = code_worker_start(&options->worker, &capture->worker);
	if (error) {
		file_readers_stop(capture->readers);
		free(capture);
		return error;
	}
	file_readers_lend(capture->readers, code_worker_spare(capture->worker));
	*result = capture;
	return 0;
}

/* ---- handing out ---- */

static void forget(struct code_capture *capture, struct code_load *load)
{
	code_worker_release(capture->worker, load);
	code_load_free(load);
}

static void report_unloaded(struct code_capture *capture, struct code_load *load)
{
	capture->options.unloaded(capture->options.context, load);
	if (!capture->options.keep)
		forget(capture, load);
}

/*
 * What failed was never loaded; what has no handle is unloaded with its process, which is not reported where loads are
 * not kept.
 */
static bool may_be_unloaded(const struct code_capture *capture, const struct code_load *load)
{
	if (load->status || !load->answered)
		return false;
	return capture->options.keep || (load->handle && capture->lives.count < CODE_LOADS_MAX);
}

static void hand_out(struct code_capture *capture, struct code_load *load)
{
	if (load->gone && !load->unloaded && !load->status)
		load->unloaded = load->gone;
	capture->counts.over_limit += load->over_limit;
	capture->counts.incomplete += load->incomplete;
	if (capture->options.keep) {
		load->peer = capture->handed_out;
		capture->handed_out = load;
	}
	capture->options.loaded(capture->options.context, load);
	if (load->unloaded)
		report_unloaded(capture, load);
	else if (may_be_unloaded(capture, load))
		code_lives_add(&capture->lives, load);
	else if (!capture->options.keep)
		forget(capture, load);
}

static bool is_complete(const struct code_load *load)
{
	return load->done && (load->answered || load->gone);
}

static void hand_out_waiting(struct code_capture *capture, bool all)
{
	struct code_load **place = &capture->waiting, *load;

	while ((load = *place)) {
		if (!all && !is_complete(load)) {
			place = &load->peer;
			continue;
		}
		*place = load->peer;
		load->peer = NULL;
		capture->waiting_count--;
		hand_out(capture, load);
	}
}

/* ---- loads ---- */

static void wait_for(struct code_capture *capture, struct code_load *load)
{
	load->peer = capture->waiting;
	capture->waiting = load;
	capture->waiting_count++;
	code_worker_add(capture->worker, load);
}

static void on_code(struct code_capture *capture, const struct xpt_record_code *code)
{
	const struct registry *registry = capture->options.registry;
	struct code_bytes pieces = code_pieces_take(&capture->pieces, code);
	const struct code_reading_limits limits = {
		.room = code_worker_room(capture->worker),
		.wait_limit = capture->options.wait_limit,
		.readers = capture->readers,
		.may_open = code_worker_may_open(capture->worker),
		.answer = capture->options.answer,
		.context = capture->options.answer_context,
	};
	struct code_load *load = NULL;

	if (code->spec < registry->spec_count && capture->waiting_count < CODE_LOADS_MAX)
		load = code_reading_load(registry->spec_runtime[code->spec], registry->specs[code->spec], code, &pieces,
					 &limits);
	free(pieces.bytes);
	if (!load) {
		if (code->ticket)
			capture->options.answer(capture->options.answer_context, code->header.tgid, code->ticket);
		capture->counts.lost++;
		return;
	}
	wait_for(capture, load);
}

void code_capture_found(struct code_capture *capture, struct code_load *load)
{
	if (!load || capture->waiting_count >= CODE_LOADS_MAX) {
		capture->counts.lost++;
		code_load_free(load);
		return;
	}
	load->answered = true;
	load->ended = load->loaded;
	wait_for(capture, load);
}

/* ---- calls ---- */

/* The load that belongs to the call: the latest, where calls are nested. */
static struct code_load *find_waiting(struct code_capture *capture, const struct code_answer *answer)
{
	struct code_load *best = NULL;

	for (struct code_load *load = capture->waiting; load; load = load->peer) {
		if (!load->answered && load->tid == answer->tid && load->tgid == answer->tgid &&
		    load->spec == capture->options.registry->specs[answer->spec] && load->loaded <= answer->end &&
		    (!best || load->loaded > best->loaded))
			best = load;
	}
	return best;
}

static void settle_load(struct code_capture *capture, const struct code_answer *answer)
{
	struct code_load *load = find_waiting(capture, answer);

	if (load) {
		load->answered = true;
		load->ended = answer->end;
		load->handle = answer->handle;
		load->device = answer->device;
		load->status = answer->status;
	} else if (answer->succeeded) {
		capture->counts.lost++;
	}
}

/* Of the loads that gave its handle it is about the latest. */
static void settle_unload(struct code_capture *capture, const struct code_answer *answer)
{
	struct code_load *best = NULL, *load;

	for (load = capture->waiting; load; load = load->peer) {
		if (load->answered && load->handle == answer->handle && load->tgid == answer->tgid &&
		    load->runtime == answer->runtime && !load->unloaded && load->ended <= answer->start &&
		    (!best || load->ended > best->ended))
			best = load;
	}
	if (best) {
		best->unloaded = answer->end;
		return;
	}
	load = code_lives_take(&capture->lives, answer->tgid, answer->runtime, answer->handle, answer->start);
	if (!load)
		return;
	load->unloaded = answer->end;
	report_unloaded(capture, load);
}

static void settle_gone(struct code_capture *capture, const struct code_answer *answer)
{
	struct code_load *load;

	for (load = capture->waiting; load; load = load->peer)
		if (load->tgid == answer->tgid && !load->gone && load->loaded < answer->end)
			load->gone = answer->end;
	while ((load = code_lives_take_any(&capture->lives, answer->tgid))) {
		load->unloaded = answer->end;
		report_unloaded(capture, load);
	}
}

static void settle(void *context, const struct code_answer *answer)
{
	if (answer->kind == CODE_LOADED)
		settle_load(context, answer);
	else if (answer->kind == CODE_UNLOADED)
		settle_unload(context, answer);
	else
		settle_gone(context, answer);
}

/* What was done before it may be in another ring: it is settled when all have been emptied. */
static void keep_answer(struct code_capture *capture, struct code_answer *answer)
{
	answer->turn = capture->turns;
	if (capture->answers.count == CODE_ANSWERS_MAX)
		code_answers_settle(&capture->answers, UINT64_MAX, settle, capture);
	capture->answers.answer[capture->answers.count++] = *answer;
}

static void on_call(struct code_capture *capture, const struct xpt_record_call *call)
{
	const struct registry *registry = capture->options.registry;
	const struct call_spec *spec;
	struct code_answer answer;
	bool unloads;

	if (call->spec >= registry->spec_count)
		return;
	spec = registry->specs[call->spec];
	unloads = spec->wire.role == XPT_ROLE_CODEOBJ_UNLOAD || spec->wire.role == XPT_ROLE_PROGRAM_UNLOAD;
	if (!unloads && !call_spec_has_code(spec))
		return;
	answer = code_answer_read(registry->spec_runtime[call->spec], spec, call);
	if (unloads && (!answer.succeeded || !answer.handle))
		return;
	answer.kind = unloads ? CODE_UNLOADED : CODE_LOADED;
	keep_answer(capture, &answer);
}

/* What a process has loaded is unloaded when it ends or runs another program. */
static void on_gone(struct code_capture *capture, pid_t tgid, __u64 time)
{
	struct code_answer gone = { .kind = CODE_GONE, .tgid = tgid, .start = time, .end = time };

	code_pieces_drop(&capture->pieces, tgid);
	keep_answer(capture, &gone);
}

static void on_task(struct code_capture *capture, const struct xpt_record_task *task)
{
	if (task->event == XPT_TASK_EXIT || task->event == XPT_TASK_EXEC)
		on_gone(capture, task->header.tgid, task->header.time);
}

void code_capture_record(struct code_capture *capture, const struct xpt_record_header *record)
{
	switch (record->kind) {
	case XPT_RECORD_PASS:
		capture->turns++;
		code_answers_settle(&capture->answers, capture->turns - 1, settle, capture);
		break;
	case XPT_RECORD_CODE_PIECE:
		code_pieces_add(&capture->pieces, (const void *)record);
		break;
	case XPT_RECORD_CODE:
		on_code(capture, (const void *)record);
		break;
	case XPT_RECORD_CALL:
		on_call(capture, (const void *)record);
		break;
	case XPT_RECORD_TASK:
		on_task(capture, (const void *)record);
		break;
	}
}

/* ---- work, and the end ---- */

static void take_done(struct code_capture *capture)
{
	struct code_load *load;

	while ((load = code_worker_take(capture->worker)))
		load->done = true;
}

void code_capture_work(struct code_capture *capture)
{
	take_done(capture);
	hand_out_waiting(capture, false);
}

void code_capture_finish(struct code_capture *capture)
{
	code_worker_wait(capture->worker);
	take_done(capture);
	code_answers_settle(&capture->answers, UINT64_MAX, settle, capture);
	hand_out_waiting(capture, true);
}

struct code_counts code_capture_counts(const struct code_capture *capture)
{
	return capture->counts;
}

int code_capture_error(struct code_capture *capture)
{
	return code_worker_error(capture->worker);
}

static void forget_list(struct code_capture *capture, struct code_load *load)
{
	struct code_load *peer;

	for (; load; load = peer) {
		peer = load->peer;
		forget(capture, load);
	}
}

void code_capture_free(struct code_capture *capture)
{
	struct code_load *load;

	if (!capture)
		return;
	code_worker_wait(capture->worker);
	take_done(capture);
	while ((load = code_lives_take_any(&capture->lives, 0))) {
		if (!capture->options.keep)
			forget(capture, load);
	}
	forget_list(capture, capture->waiting);
	forget_list(capture, capture->handed_out);
	code_worker_free(capture->worker); /* with the memory that is lent */
	code_pieces_drop(&capture->pieces, 0);
	file_readers_stop(capture->readers);
	free(capture);
}
