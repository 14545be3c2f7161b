/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/sql/sql.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "describe/driver/driver.h"
#include "report/sql/rows.h"

/* From the begin to the end; nothing where it has none. */
static struct sql_value span(__u64 start, __u64 end)
{
	return sql_number_if(end >= start && end, (__s64)(end - start));
}

static struct sql_value device_time(const struct model_device_times *device, __u64 time)
{
	return sql_number_if(device->jobs && !device->unfinished, (__s64)time);
}

static struct sql_value state(const struct model_states *states, __u64 value)
{
	return sql_number_if(states->calls > 0, (__s64)value);
}

static bool has(__u32 have, enum xpt_meaning meaning)
{
	return have & 1u << meaning;
}

/* ---- calls, inferences, operators ---- */

/* What the two kinds of events that are inferences have in common. */
struct inference_row {
	const struct model_function *function;
	const struct model_program *program;
	__u32 tgid, tid;
	__u64 start;
	bool numbered;
	__u64 number;
	unsigned int sample;
	enum call_outcome outcome;
	__u32 have;
	__s64 status;
	const char *status_name;
	__u64 size;
	__s64 core;
	const struct model_device_times *device;
	const struct model_counts *counts;
	const struct model_states *states;
	struct sql_value duration, enqueued, wait_thread, in_queue, flow, tracing, phase, tokens, first_token,
		output_token;
};

static void put_counts(struct sql *sql, __s64 inference, const struct model_counts *counts)
{
	for (unsigned int i = 0; i < counts->count; i++) {
		if (!isnan(counts->value[i]))
			SQL_INSERT(&sql->database, SQL_INFERENCE_COUNTERS, sql_number(inference),
				   sql_counter(sql, counts->counters[i]), sql_real(counts->value[i]));
	}
}

static void put_inference(struct sql *sql, const struct inference_row *row)
{
	struct sql_database *database = &sql->database;
	const struct model_device_times *device = row->device;
	const struct model_states *states = row->states;
	const __s64 id = sql_take_inference(sql, row->tgid, row->program, row->start);

	SQL_INSERT(database, SQL_INFERENCES, sql_number(id), sql_program(sql, row->program),
		   sql_thread(database, row->tgid, row->tid), sql_time(sql, row->start), row->duration,
		   sql_function(sql, row->function), sql_number_if(row->numbered, (__s64)row->number),
		   sql_number(row->sample ?: 1), sql_number(row->outcome == OUTCOME_FAILED),
		   sql_number_if(has(row->have, XPT_MEANING_STATUS), row->status),
		   sql_string(database, row->status_name), row->flow, row->enqueued, row->wait_thread, row->in_queue,
		   sql_number_if(has(row->have, XPT_MEANING_SIZE), (__s64)row->size),
		   sql_number_if(has(row->have, XPT_MEANING_CORE), row->core), sql_known(device->jobs),
		   sql_known(device->unfinished), sql_known(device->failed), sql_time(sql, device->submit_begins),
		   sql_time(sql, device->submit_ends), sql_time(sql, device->runs), sql_time(sql, device->done),
		   device_time(device, device->queue_time), device_time(device, device->device_time),
		   device_time(device, device->busy_time), state(states, states->cpu), state(states, states->waited),
		   state(states, states->blocked), state(states, states->voluntary), state(states, states->involuntary),
		   state(states, states->minor_faults), state(states, states->major_faults), row->tracing, row->phase,
		   row->tokens, row->first_token, row->output_token);
	put_counts(sql, id, row->counts);
}

static void put_call_inference(struct sql *sql, const struct event_call *call)
{
	static const char *const phases[PHASES] = { NULL, "prefill", "decode" };
	const bool launch = call->function->role ==
			    XPT_ROLE_LAUNCH; /* it returns before its work is done, at an unknown time */
	const struct model_device_times begun = { .submit_begins = call->device.submit_begins,
						  .submit_ends = call->device.submit_ends,
						  .jobs = call->device.jobs,
						  .unfinished = call->device.jobs };

	put_inference(sql, &(struct inference_row){
				   .function = call->function,
				   .program = call->program,
				   .tgid = call->tgid,
				   .tid = call->tid,
				   .start = call->start,
				   .numbered = call->numbered,
				   .number = call->number,
				   .sample = call->sample,
				   .outcome = call->outcome,
				   .have = call->have,
				   .status = call->status,
				   .status_name = call->status_name,
				   .size = call->size,
				   .core = call->core,
				   .device = launch ? &begun : &call->device,
				   .counts = &call->counts,
				   .states = &call->states,
				   .duration = launch ? SQL_NOTHING : span(call->start, call->end),
				   .enqueued = launch ? span(call->start, call->end) : SQL_NOTHING,
				   .tracing = sql_known(call->tracing),
				   .phase = sql_text(phases[call->phase]),
				   .tokens = sql_known(call->tokens),
				   .first_token = sql_known(call->first_token),
				   .output_token = sql_known(call->output_token),
			   });
}

static void put_asynchronous(struct sql *sql, const struct event_inference *inference)
{
	const bool launch = inference->function->role == XPT_ROLE_LAUNCH;
	const __u64 end = launch ? inference->completed : inference->end;

	put_inference(sql, &(struct inference_row){
				   .function = inference->function,
				   .program = inference->program,
				   .tgid = inference->tgid,
				   .tid = inference->tid,
				   .start = inference->start,
				   .numbered = inference->numbered,
				   .number = inference->number,
				   .sample = inference->sample,
				   .outcome = inference->outcome,
				   .have = inference->have,
				   .status = inference->status,
				   .status_name = inference->status_name,
				   .size = inference->size,
				   .core = inference->core,
				   .device = &inference->device,
				   .counts = &inference->counts,
				   .states = &inference->states,
				   .duration = span(inference->start, end),
				   .enqueued = span(inference->start, inference->enqueued),
				   .wait_thread = sql_thread(&sql->database, inference->tgid, inference->wait_tid),
				   .in_queue = sql_number_if(!launch, (__s64)inference->in_queue),
				   .flow = sql_number((__s64)inference->id),
			   });
}

static void put_operator(struct sql *sql, const struct event_call *call)
{
	struct sql_database *database = &sql->database;
	const struct model_states *states = &call->states;
	const struct model_program *program = call->op && call->op->program ? call->op->program : call->program;

	SQL_INSERT(database, SQL_OPERATORS, SQL_NOTHING, sql_operator(sql, call->op),
		   sql_inference(sql, call->tgid, program, call->inference),
		   sql_thread(database, call->tgid, call->tid), sql_time(sql, call->start),
		   call->no_end ? SQL_NOTHING : span(call->start, call->end),
		   sql_number(call->outcome == OUTCOME_FAILED), sql_number(call->depth), state(states, states->cpu),
		   state(states, states->waited), state(states, states->blocked), sql_function(sql, call->function));
}

static void put_call(struct sql *sql, const struct event_call *call)
{
	struct sql_database *database = &sql->database;
	const struct model_states *states = &call->states;

	SQL_INSERT(database, SQL_CALLS, SQL_NOTHING, sql_function(sql, call->function), sql_program(sql, call->program),
		   sql_thread(database, call->tgid, call->tid), sql_time(sql, call->start),
		   call->no_end ? SQL_NOTHING : span(call->start, call->end), sql_number(call->depth),
		   sql_number(call->layer), sql_number(call->inside), sql_number(call->sample ?: 1),
		   sql_number(call->outcome == OUTCOME_FAILED),
		   sql_number_if(call_has(call, XPT_MEANING_STATUS), call->status),
		   sql_string(database, call->status_name), sql_known(call->flow_out ?: call->flow_in),
		   sql_number_if(call_has(call, XPT_MEANING_SIZE), (__s64)call->size),
		   call->name_length ? sql_string(database, call->name) : SQL_NOTHING,
		   sql_number_if(call_has(call, XPT_MEANING_PROGRAM), (__s64)call->handle),
		   sql_number_if(call_has(call, XPT_MEANING_STREAM), (__s64)call->stream),
		   sql_number_if(call_has(call, XPT_MEANING_CORE), call->core), state(states, states->cpu),
		   state(states, states->waited), state(states, states->blocked), sql_known(call->tracing));
}

static void put_event_call(struct sql *sql, const struct event_call *call)
{
	if (call->function->role == XPT_ROLE_OPERATOR)
		put_operator(sql, call);
	else if (call_is_inference(call))
		put_call_inference(sql, call);
	else
		put_call(sql, call);
}

static void put_region(struct sql *sql, const struct event_region *region)
{
	struct sql_database *database = &sql->database;
	struct sql_value name = sql_string(database, region->name);

	SQL_INSERT(database, SQL_REGIONS, SQL_NOTHING, name.kind ? name : sql_string(database, "(unnamed)"),
		   sql_thread(database, region->tgid, region->tid), sql_time(sql, region->start),
		   sql_number((__s64)(region->end - region->start)), sql_string(database, region->runtime),
		   sql_string(database, region->request));
}

/* ---- devices ---- */

static void put_job(struct sql *sql, const struct event_job *job)
{
	struct sql_database *database = &sql->database;
	const bool known = job->process != NULL;

	SQL_INSERT(database, SQL_JOBS, sql_number((__s64)job->id), sql_queue(sql, job->queue),
		   sql_string(database, job->name), sql_time(sql, job->queued), sql_time(sql, job->runs),
		   sql_time(sql, job->done), sql_known(job->tgid), sql_known(job->tid),
		   known ? sql_process(database, job->tgid) : SQL_NOTHING,
		   known ? sql_thread(database, job->tgid, job->tid) : SQL_NOTHING, sql_program(sql, job->program),
		   sql_inference(sql, job->tgid, job->program, job->call_start), sql_time(sql, job->call_start),
		   sql_operator(sql, job->op), sql_number(job->failed),
		   sql_number_if(job->have & 1u << XPT_FIELD_STATUS, job->status),
		   sql_number_if(job->have & 1u << XPT_FIELD_SIZE, (__s64)job->size));
}

static void put_device_event(struct sql *sql, const struct event_device *device)
{
	SQL_INSERT(&sql->database, SQL_DEVICE_EVENTS, SQL_NOTHING, sql_time(sql, device->time),
		   sql_text(device->driver), sql_text(device->event), sql_text(driver_role_name(device->role)),
		   sql_queue(sql, device->queue), sql_text(device->device), sql_text(device->engine),
		   sql_text(device->name),
		   device->target ? sql_thread(&sql->database, device->tgid, device->tid) : SQL_NOTHING,
		   sql_known(device->job), sql_number_if(device->have & 1u << XPT_FIELD_SIZE, (__s64)device->size),
		   sql_number_if(device->have & 1u << XPT_FIELD_COUNT, (__s64)device->count),
		   sql_number_if(device->have & 1u << XPT_FIELD_STATUS, device->status));
}

static void put_ioctl(struct sql *sql, const struct event_ioctl *ioctl)
{
	struct sql_database *database = &sql->database;

	SQL_INSERT(database, SQL_IOCTLS, SQL_NOTHING, sql_string(database, ioctl->node),
		   sql_string(database, ioctl->name),
		   ioctl->role ? sql_text(driver_role_name(ioctl->role)) : SQL_NOTHING,
		   sql_thread(database, ioctl->tgid, ioctl->tid), sql_time(sql, ioctl->start),
		   sql_number((__s64)(ioctl->end - ioctl->start)), sql_number(ioctl->command),
		   sql_number(ioctl->result));
}

static void put_off_cpu(struct sql *sql, const struct event_off_cpu *off)
{
	struct sql_database *database = &sql->database;

	SQL_INSERT(database, SQL_OFF_CPU, SQL_NOTHING, sql_thread(database, off->tgid, off->tid),
		   sql_text(off_cpu_name(off->reason)), sql_time(sql, off->start), sql_time(sql, off->woken),
		   sql_time(sql, off->end), sql_program(sql, off->program), sql_operator(sql, off->op),
		   sql_number_if(off->syscall >= 0, off->syscall), sql_number(off->interrupt),
		   sql_string(database, off->next), sql_known(off->next_tid), sql_string(database, off->waker),
		   sql_known(off->waker_tid));
}

/* ---- counters, losses, and what happens to processes ---- */

static void put_counter(struct sql *sql, const struct event_counter *counter)
{
	struct sql_database *database = &sql->database;

	SQL_INSERT(database, SQL_LEVELS, SQL_NOTHING, sql_process(database, counter->tgid),
		   sql_string(database, counter->runtime), sql_string(database, counter->name),
		   sql_time(sql, counter->time), sql_number(counter->value));
}

static void put_code(struct sql *sql, const struct event_code *code)
{
	struct sql_database *database = &sql->database;

	SQL_INSERT(database, SQL_CODE_LOADS, SQL_NOTHING, sql_process(database, code->tgid),
		   sql_thread(database, code->tgid, code->tid), sql_time(sql, code->time), sql_number(code->unloaded),
		   sql_text(code->kind), sql_string(database, code->name), sql_string(database, code->sha256),
		   sql_known(code->handle), sql_known(code->size), sql_known(code->missing), sql_known(code->waited));
}

static void put_budget(struct sql *sql, const struct model_budget_change *change)
{
	SQL_INSERT(&sql->database, SQL_BUDGET_CHANGES, SQL_NOTHING, sql_time(sql, change->time),
		   sql_text(budget_action_name(change->action)), sql_number(change->on), sql_known(change->tgid),
		   sql_text(change->name), sql_known(change->every), sql_known(change->programs),
		   sql_time(sql, change->since), sql_real(change->cost), sql_real(change->budget));
}

static void put_task(struct sql *sql, const struct event_task *task)
{
	static const char *const names[] = {
		[XPT_TASK_FORK] = "fork", [XPT_TASK_EXEC] = "exec", [XPT_TASK_EXIT] = "exit", [XPT_TASK_THREAD] = "thread"
	};
	const char *name = task->what < sizeof(names) / sizeof(names[0]) ? names[task->what] : NULL;

	if (name)
		SQL_INSERT(&sql->database, SQL_TASKS, SQL_NOTHING, sql_process(&sql->database, task->tgid),
			   sql_time(sql, task->time), sql_text(name), sql_known(task->other), sql_number(task->code),
			   sql_text(task->name));
}

static void put_other(struct sql *sql, const struct event *event)
{
	struct sql_database *database = &sql->database;

	switch (event->kind) {
	case EVENT_LOST:
		SQL_INSERT(database, SQL_LOSS_TIMES, SQL_NOTHING, sql_text(loss_name(event->lost.cause)),
			   sql_time(sql, event->lost.since), sql_time(sql, event->lost.time),
			   sql_number((__s64)event->lost.count));
		break;
	case EVENT_WAITED:
		SQL_INSERT(database, SQL_WAITS, SQL_NOTHING, sql_process(database, event->waited.tgid),
			   sql_time(sql, event->waited.start),
			   sql_number((__s64)(event->waited.end - event->waited.start)),
			   sql_number(event->waited.sites));
		break;
	case EVENT_READING:
		SQL_INSERT(database, SQL_READINGS, SQL_NOTHING, sql_counter(sql, event->reading.counter),
			   sql_time(sql, event->reading.since), sql_time(sql, event->reading.time),
			   sql_real(event->reading.value));
		break;
	case EVENT_PROCESS:
		sql_put_process(sql, event->process);
		break;
	case EVENT_THREAD:
		sql_name_thread(database, event->thread.tgid, event->thread.tid, event->thread.name);
		break;
	case EVENT_PROGRAM:
		sql_put_program(sql, event->program.program);
		break;
	case EVENT_TASK:
		put_task(sql, &event->task);
		break;
	default: /* what the rows of others have, too */
		break;
	}
}

static int sql_event(void *context, const struct event *event)
{
	struct sql *sql = context;

	switch (event->kind) {
	case EVENT_CALL:
		put_event_call(sql, &event->call);
		break;
	case EVENT_UNPAIRED: /* of an enqueue only its begin is known: it is a call and a loss */
		if (event->inference.function->role != XPT_ROLE_LAUNCH)
			break;
		/* fall through */
	case EVENT_INFERENCE:
		if (event->inference.program)
			put_asynchronous(sql, &event->inference);
		break;
	case EVENT_REGION:
		put_region(sql, &event->region);
		break;
	case EVENT_JOB:
		put_job(sql, &event->job);
		break;
	case EVENT_DEVICE:
		put_device_event(sql, &event->device);
		break;
	case EVENT_IOCTL:
		put_ioctl(sql, &event->ioctl);
		break;
	case EVENT_OFF_CPU:
		put_off_cpu(sql, &event->off_cpu);
		break;
	case EVENT_COUNTER:
		put_counter(sql, &event->counter);
		break;
	case EVENT_CODE:
		put_code(sql, &event->code);
		break;
	case EVENT_BUDGET:
		put_budget(sql, event->budget);
		break;
	case EVENT_STACK:
		sql_put_stack(sql, &event->stack);
		break;
	default:
		put_other(sql, event);
		break;
	}
	return sql->database.error;
}

int sql_open(const struct log *log, const char *path, const struct recording_info *info, struct model *model,
	     struct sql **result)
{
	struct sql *sql = calloc(1, sizeof(*sql));
	int error;

	if (!sql)
		return -ENOMEM;
	error = sql_database_open(log, path, &sql->database);
	if (error) {
		free(sql);
		return error;
	}
	sql->info = info;
	sql_objects_init(sql);
	error = model_want_stacks(model);
	error = error ?: model_add_sink(model, (struct event_sink){ sql_event, sql });
	if (error)
		return sql_close(sql, model, error);
	*result = sql;
	return 0;
}

int sql_close(struct sql *sql, const struct model *model, int error)
{
	if (!error)
		sql_put_objects(sql, model);
	if (!error) {
		sql_run(&sql->database, sql_schema_indices);
		sql_run(&sql->database, sql_schema_views);
		sql_run(&sql->database, "ANALYZE");
	}
	error = sql_database_close(&sql->database, error);
	sql_objects_free(sql);
	free(sql);
	return error;
}
