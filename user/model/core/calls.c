/* SPDX-License-Identifier: BSD-2-Clause */
/* What a call means to all parts of the model. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/state.h"

/* One call on its way through the parts. */
struct passage {
	const struct function *function;
	struct process *process;
	struct program *program;    /* NULL: none */
	struct op *op;		    /* of an operator; NULL: none, or too many */
	struct call_thread *thread; /* NULL: nothing is known of it */
	struct activity *activity;  /* follows jobs that have not ended; NULL: there are none */
	struct string *name;	    /* of the call; NULL: none */
	bool named;		    /* the call gave the program its name */
	struct event event;
	int error; /* first one; the others continue */
};

static void note(struct passage *passage, int error)
{
	if (error < 0 && !passage->error)
		passage->error = error;
}

static bool succeeded(const struct event_call *call)
{
	return call->outcome == OUTCOME_OK || call->outcome == OUTCOME_NONE;
}

/* since: when the call began that runs it. */
static void program_use(struct model *model, struct passage *passage, __u64 since)
{
	const struct event_call *call = &passage->event.call;
	int named;

	if (!call_has(call, XPT_MEANING_PROGRAM))
		return;
	passage->program = programs_use(&model->programs, passage->process, passage->function->runtime, call->handle,
					since);
	if (passage->program && passage->function->runs)
		passage->program->noun = passage->function->runs;
	named = passage->program ? program_ask_user(model, passage->program) : -ENOMEM;
	note(passage, named);
	if ((named > 0 && passage->program->view.name_source == NAME_FROM_SYMBOL) ||
	    (!named && passage->function->view.role != XPT_ROLE_PROGRAM_NAME && program_describe(passage->program, 0)))
		programs_emit(&model->programs, passage->program, call->start, false);
	if (!passage->program)
		return;
	passage->program->used = since > passage->program->used ? since : passage->program->used;
	if (passage->program->superseded)
		note(passage, programs_use_again(&model->programs, passage->program, call->start));
}

static void program_find(struct model *model, struct passage *passage)
{
	const struct event_call *call = &passage->event.call;

	if (call_has(call, XPT_MEANING_PROGRAM))
		passage->program = programs_find(&model->programs, passage->process,
						 passage->function->view.runtime_index, call->handle, call->start);
}

static void program_name(struct model *model, struct passage *passage, enum name_source source)
{
	const struct event_call *call = &passage->event.call;
	const char *parent_name;
	int named;

	named = program_set_name(passage->program, call->name, source);
	note(passage, named);
	if (call_has(call, XPT_MEANING_PARENT) &&
	    !name_is_better(passage->program->view.name_source, NAME_FROM_PARENT)) {
		parent_name = user_alias_find(&model->handles, passage->process->view.tgid, call->parent);
		named = parent_name ? program_set_name(passage->program, parent_name, NAME_FROM_PARENT) :
				      programs_set_parent(&model->programs, passage->program, call->parent, call->end);
		note(passage, named);
	}
	passage->named = named > 0;
}

/* What is made of a program runs where that is. */
static void program_place(struct model *model, struct passage *passage)
{
	const struct event_call *call = &passage->event.call;
	struct model_program *view = &passage->program->view;
	const struct program *parent = NULL;

	if (call_has(call, XPT_MEANING_CORE)) {
		view->has_core = true;
		view->core = call->core;
		return;
	}
	if (call_has(call, XPT_MEANING_PARENT))
		parent = programs_find(&model->programs, passage->process, view->runtime_index, call->parent,
				       call->end);
	if (parent && parent->view.has_core) {
		view->has_core = true;
		view->core = parent->view.core;
	}
}

static void program_load(struct model *model, struct passage *passage)
{
	const struct event_call *call = &passage->event.call;

	/* Without a status, a NULL handle means failure. */
	if (!call_has(call, XPT_MEANING_PROGRAM) || !succeeded(call) ||
	    (call->outcome == OUTCOME_NONE && !call->handle))
		return;
	passage->program = programs_load(&model->programs, passage->process, passage->function->runtime, call->handle,
					 call->start, call->end);
	if (!passage->program) {
		note(passage, -ENOMEM);
		return;
	}
	if (call_has(call, XPT_MEANING_SIZE) && !passage->program->others)
		passage->program->view.size = call->size;
	if (!passage->program->others)
		program_place(model, passage);
	note(passage, program_ask_user(model, passage->program));
	program_name(model, passage, NAME_FROM_LOAD);
	program_describe(passage->program, 0);
	passage->named = true;
}

/*
 * A handle that was looked up under one name and now under another: runtimes reuse the handle of a function that was
 * unloaded with its module, and no call reports it.
 */
static bool is_renamed(const struct program *program, const char *name)
{
	return program && name && program->name && program->view.name_source == NAME_FROM_CALL &&
	       strcmp(program->name, name);
}

/* Libraries register tens of thousands of kernels, of which a process launches few: then only the name is kept until one is. */
static bool keeps_name_only(struct model *model, struct passage *passage)
{
	const struct event_call *call = &passage->event.call;
	int error;

	if (passage->program || !call->name || !call_has(call, XPT_MEANING_PROGRAM) ||
	    passage->process == model->processes.others ||
	    model->programs.count - model->programs.others_count < MODEL_PROGRAMS_MAX / 2)
		return false;
	error = name_table_add(&model->symbols, passage->process->view.sort_index, passage->process->view.sort_index,
			       call->handle, call->name, call->name_length, false);
	if (error == -ENOSPC)
		event_dispatch_lose(&model->events, XPT_LOSS_NAMES, 1, call->end);
	else
		note(passage, error);
	return true;
}

static void program_rename(struct model *model, struct passage *passage)
{
	const struct event_call *call = &passage->event.call;

	program_find(model, passage);
	if (keeps_name_only(model, passage))
		return;
	if (is_renamed(passage->program, call->name)) {
		passage->program = programs_load(&model->programs, passage->process, passage->function->runtime,
						 call->handle, call->start, call->end);
		if (!passage->program)
			note(passage, -ENOMEM);
	} else {
		program_use(model, passage, call->start);
	}
	if (!passage->program)
		return;
	program_name(model, passage, NAME_FROM_CALL);
	program_describe(passage->program, 0);
}

static void program_attach(struct model *model, struct passage *passage)
{
	switch (passage->function->view.role) {
	case XPT_ROLE_PROGRAM_LOAD:
		program_load(model, passage);
		break;
	case XPT_ROLE_PROGRAM_NAME:
		if (succeeded(&passage->event.call))
			program_rename(model, passage);
		break;
	case XPT_ROLE_PROGRAM_READY:
		program_use(model, passage, passage->event.call.start);
		if (passage->program && !passage->program->others && succeeded(&passage->event.call))
			passage->program->view.loaded = passage->event.call.end;
		break;
	case XPT_ROLE_EXECUTE:
	case XPT_ROLE_ENQUEUE:
	case XPT_ROLE_LAUNCH:
		program_use(model, passage, passage->event.call.start);
		break;
	case XPT_ROLE_OPERATOR: /* comes before the inference that it is in */
		program_use(model, passage, passage->event.call.inference);
		break;
	case XPT_ROLE_REGION_NAME:
	case XPT_ROLE_REGION_RELEASE:
	case XPT_ROLE_REGION_PRINT:
		break; /* the handle is the region's */
	default:
		program_find(model, passage);
		break;
	}
	if (passage->program)
		passage->event.call.program = &passage->program->view;
}

/* What took place inside. Threads are kept of which something may have to be known. */
static __u64 call_measure(struct model *model, struct passage *passage)
{
	const struct function *function = passage->function;
	const enum xpt_role role = function->view.role;
	const bool keep = function->cost || role == XPT_ROLE_OPERATOR || role == XPT_ROLE_LAUNCH;
	const __u32 tid = passage->event.call.tid;
	__u64 operators;

	passage->thread = keep ? call_tree_get(&model->tree, passage->process, tid) :
				 call_tree_find(&model->tree, passage->process, tid);
	if (keep && !passage->thread)
		note(passage, -ENOMEM);
	note(passage, call_tree_measure(passage->thread, function, &passage->event.call, &operators));
	return operators;
}

/* operators: ns of it in operators inside. Inferences that a wait will end follow the jobs of their call until then. */
static void device_attach(struct model *model, struct passage *passage, __u64 operators)
{
	const enum xpt_role role = passage->function->view.role;
	struct event_call *call = &passage->event.call;
	const bool follow = !call->layer && (role == XPT_ROLE_ENQUEUE || role == XPT_ROLE_LAUNCH);

	if (role == XPT_ROLE_OPERATOR && !call->layer)
		note(passage, operator_set_call(&model->operators, passage->process, passage->program, call, operators,
						&passage->op));
	note(passage, call_tree_take_jobs(&model->tree, passage->thread, passage->program, passage->op, call,
					  follow ? &passage->activity : NULL));
}

/* What has to be known for the call's own event. Keys of processes that are not kept apart are ambiguous. */
static void call_pair(struct model *model, struct passage *passage)
{
	struct event_call *call = &passage->event.call;

	if (passage->process == model->processes.others)
		return;
	switch (call->function->role) {
	case XPT_ROLE_WAIT:
		note(passage, async_wait(&model->async, passage->process, call));
		break;
	case XPT_ROLE_ENQUEUE:
	case XPT_ROLE_LAUNCH:
		if (!call->layer)
			note(passage,
			     async_begin(&model->async, passage->process, passage->program, passage->activity, call));
		break;
	case XPT_ROLE_COPY:
	case XPT_ROLE_MARK:
		note(passage, async_mark(&model->async, passage->process, call));
		break;
	case XPT_ROLE_FOLLOW:
		note(passage, async_follow(&model->async, passage->process, call));
		break;
	case XPT_ROLE_STREAM:
		note(passage, async_stream(&model->async, passage->process, call));
		break;
	default:
		break;
	}
}

static void call_count(struct model *model, struct passage *passage)
{
	const struct event_call *call = &passage->event.call;
	struct total *total;

	if (!model->first_time || call->start < model->first_time)
		model->first_time = call->start;
	if (call->end > model->last_time)
		model->last_time = call->end;
	if (call->layer || call->function->role == XPT_ROLE_OPERATOR)
		return;
	if (call->function->role == XPT_ROLE_EXECUTE || call->function->role == XPT_ROLE_ENQUEUE)
		operator_set_inference(&model->operators, passage->process, passage->program, call);
	if (passage->program && call->function->role == XPT_ROLE_EXECUTE) {
		note(passage, tokens_call(&passage->program->tokens, &passage->program->view, &passage->event.call));
		passage->program->view.tokens = tokens_view(passage->program->tokens);
	}
	if (passage->program && call->function->role == XPT_ROLE_EXECUTE && succeeded(call) &&
	    operator_set_fingerprint(passage->program, call))
		note(passage, program_identified(model, passage->program, call->end));
	if (passage->program && role_runs(call->function->role)) {
		note(passage, program_record(passage->program, call));
		return;
	}
	if (model->programs.unmeasured)
		return;
	total = totals_get(&model->totals, passage->process, passage->function, call->end);
	note(passage, total ? total_record(total, call) : -ENOMEM);
}

static void program_unload(struct model *model, struct passage *passage)
{
	const struct event_call *call = &passage->event.call;

	if (!passage->program || !succeeded(call))
		return;
	if (programs_release(&model->programs, passage->program, call->start))
		programs_emit(&model->programs, passage->program, call->start, true);
}

/* What follows from the call, after its own event. */
static void call_conclude(struct model *model, struct passage *passage)
{
	const struct event_call *call = &passage->event.call;
	bool apart = passage->process != model->processes.others;

	switch (passage->function->view.role) {
	case XPT_ROLE_PROGRAM_LOAD:
	case XPT_ROLE_PROGRAM_NAME:
		if (!passage->program || !passage->named)
			break;
		programs_emit(&model->programs, passage->program, call->end, false);
		note(passage, programs_lend_name(&model->programs, passage->program, call->end));
		break;
	case XPT_ROLE_PROGRAM_UNLOAD:
		program_unload(model, passage);
		break;
	case XPT_ROLE_ENQUEUE:
	case XPT_ROLE_LAUNCH:
	case XPT_ROLE_WAIT:
	case XPT_ROLE_COPY:
	case XPT_ROLE_MARK:
		note(passage, async_emit(&model->async, passage->process, call));
		break;
	case XPT_ROLE_ALLOC:
		if (apart && !call->layer)
			note(passage, memory_take(&model->memory, passage->process, call));
		break;
	case XPT_ROLE_FREE:
		if (apart)
			memory_give(&model->memory, passage->process, call);
		break;
	case XPT_ROLE_REGION_NAME:
		note(passage, regions_name_handle(&model->regions, call));
		break;
	case XPT_ROLE_REGION_RELEASE:
		regions_release(&model->regions, call);
		break;
	default:
		break;
	}
}

static void name_attach(struct model *model, const struct xpt_record_call *record, struct passage *passage)
{
	const struct event_call *call = &passage->event.call;
	struct string *string;
	unsigned int fetch;

	for (fetch = 0; fetch < passage->function->fetch_count; fetch++) {
		if (!passage->function->fetches[fetch].string)
			continue;
		string = strings_take(&model->strings, record, fetch);
		if (!string)
			continue;
		if ((int)fetch != passage->function->name_fetch) {
			free(string);
			continue;
		}
		passage->name = string;
		/* A name with a length has no terminator: what was read may run on into what lies behind it. */
		if (call_has(call, XPT_MEANING_LENGTH) && call->length < string->length) {
			string->length = call->length;
			string->text[string->length] = '\0';
			string->truncated = false;
		}
		passage->event.call.have |= 1u << XPT_MEANING_NAME;
		passage->event.call.name = string->text;
		passage->event.call.name_length = string->length;
		passage->event.call.name_truncated = string->truncated;
	}
}

static void keys_attach(struct model *model, const struct xpt_record_call *record, struct passage *passage)
{
	struct event_call *call = &passage->event.call;
	const size_t most = sizeof(model->keys) / sizeof(model->keys[0]);
	struct string *string;
	size_t count;

	call->keys = model->keys;
	while ((string = strings_take(&model->strings, record, (unsigned int)passage->function->keys_fetch))) {
		count = string->length / sizeof(model->keys[0]);
		if (count > most - call->key_count)
			count = most - call->key_count;
		memcpy(model->keys + call->key_count, string->text, count * sizeof(model->keys[0]));
		call->key_count += count;
		free(string);
	}
}

static void call_pass(struct model *model, struct passage *passage)
{
	struct event_call *call = &passage->event.call;
	__u64 operators;

	program_attach(model, passage);
	operators = call_measure(model, passage);
	if (program_filter_leaves_out(&model->filter, passage->program, call, call->inside)) {
		call_tree_close(&model->tree, passage->thread, call);
		return;
	}
	device_attach(model, passage, operators);
	if (passage->function->view.role == XPT_ROLE_EXECUTE)
		counter_samples_between(&model->samples, call->begin_counts, call->end_counts, true,
					call->end - call->start, &call->counts);
	note(passage, call_tree_take_off_cpu(&model->tree, passage->thread, passage->program, passage->op, call));
	call_pair(model, passage);
	call_count(model, passage);
	event_dispatch_emit(&model->events, &passage->event);
	note(passage, call_tree_launch(&model->tree, passage->thread, passage->program, passage->op, call));
	activity_release(&model->jobs.observers, passage->activity);
	call_tree_close(&model->tree, passage->thread, call);
	call_conclude(model, passage);
}

int call_deliver(struct model *model, const struct xpt_record_call *record)
{
	const struct function *function = functions_get(&model->functions, record->spec);
	struct passage passage = {
		.function = function,
		.process = processes_get(&model->processes, record->header.tgid, record->header.time),
		.event = { .kind = EVENT_CALL,
			   .call = { .function = &function->view,
				     .start = record->start,
				     .end = record->header.time,
				     .tgid = record->header.tgid,
				     .tid = record->tid,
				     .depth = record->depth & XPT_CALL_DEPTH,
				     .layer = record->flags & XPT_CALL_LAYER,
				     .no_end = record->flags & XPT_CALL_NO_END,
				     .inside = record->flags & XPT_CALL_INSIDE,
				     .apart = record->flags & XPT_CALL_APART,
				     .sample = record->sample ? record->sample : 1,
				     .cpu = record->cpu } },
	};

	if (!passage.process)
		return -ENOMEM;
	function_decode(function, record, &passage.event.call);
	if (function->value_count < function->fetch_count)
		name_attach(model, record, &passage);
	if (function->keys_fetch >= 0)
		keys_attach(model, record, &passage);
	call_pass(model, &passage);
	free(passage.name);
	return passage.error;
}

/* ---- strings that were fetched for calls that are yet to come ---- */

static __u64 string_key(__u32 tid, unsigned int spec, unsigned int fetch)
{
	return (__u64)tid << 32 | spec << 8 | fetch;
}

int strings_add(struct keyed_table *strings, const struct xpt_record_string *record)
{
	struct string *string = malloc(sizeof(*string) + record->length + 1);

	if (!string || keyed_add(strings, &string->keyed, record->header.tgid,
				 string_key(record->tid, record->spec, record->fetch), record->call_start)) {
		free(string);
		return -ENOMEM;
	}
	string->truncated = record->truncated;
	string->length = record->length;
	memcpy(string->text, record->text, record->length);
	string->text[record->length] = '\0';
	return 0;
}

struct string *strings_take(struct keyed_table *strings, const struct xpt_record_call *call, unsigned int fetch)
{
	struct keyed *entry = keyed_find(strings, string_key(call->tid, call->spec, fetch), call->start);

	if (!entry)
		return NULL;
	keyed_remove(strings, entry);
	return container_of(entry, struct string, keyed);
}
