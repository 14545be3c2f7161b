/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/perfetto/events.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/core/vec.h"
#include "code/store/store.h"
#include "describe/driver/driver.h"

#define HAS(call, meaning) ((call)->have & (1u << (meaning)))

/* ---- arguments that several have ---- */

static void add_device_times(struct perfetto *p, const struct model_device_times *device)
{
	bool ran = device->runs && device->device_time;

	perfetto_field_some(p, ARG_JOBS, device->jobs);
	if (device->jobs) {
		perfetto_field_some(p, ARG_UNFINISHED, device->unfinished);
		perfetto_field_some(p, ARG_FAILED_JOBS, device->failed);
		perfetto_field_some(p, ARG_DEVICE, ran ? device->device_time : 0);
		perfetto_field_some(p, ARG_QUEUE, device->queue_time);
		perfetto_field_some(p, ARG_BUSY, ran ? device->busy_time : 0);
	}
	if (device->submit_begins && device->submit_ends >= device->submit_begins)
		perfetto_field(p, ARG_SUBMIT, device->submit_ends - device->submit_begins);
}

static void add_counts(struct perfetto *p, struct perfetto_track *track, const struct model_counts *counts)
{
	for (unsigned int i = 0; i < counts->count; i++) {
		if (counts->value[i] == counts->value[i])
			perfetto_argument_real(p, track, counts->counters[i]->name, counts->value[i]);
	}
}

static void add_states(struct perfetto *p, const struct model_states *states)
{
	if (!states->calls)
		return;
	perfetto_field(p, ARG_CPU, states->cpu);
	perfetto_field_some(p, ARG_WAITED, states->waited);
	perfetto_field_some(p, ARG_BLOCKED, states->blocked);
	perfetto_field_some(p, ARG_VOLUNTARY, states->voluntary);
	perfetto_field_some(p, ARG_INVOLUNTARY, states->involuntary);
	perfetto_field_some(p, ARG_MINOR_FAULTS, states->minor_faults);
	perfetto_field_some(p, ARG_MAJOR_FAULTS, states->major_faults);
}

/* ---- calls ---- */

static bool names_program(const struct event_call *call)
{
	enum xpt_role role = call->function->role;

	return call->program && !call->layer &&
	       (role == XPT_ROLE_EXECUTE || role == XPT_ROLE_ENQUEUE || role == XPT_ROLE_LAUNCH);
}

static const char *call_name(const struct event_call *call)
{
	if (names_program(call))
		return call->program->name;
	return call->op ? call->op->label : call->function->name;
}

static void add_values(struct perfetto *p, struct perfetto_track *track, const struct event_call *call)
{
	/* The call that began it has its key and stream. */
	const bool known = call->flow_in && !call->keys;

	/* That of the program is in the event of the program. */
	if (HAS(call, XPT_MEANING_PROGRAM) && !names_program(call))
		perfetto_argument_pointer(p, track, "handle", call->handle);
	perfetto_field_some(p, ARG_INFERENCE, call->flow_out ?: call->flow_in);
	if (HAS(call, XPT_MEANING_KEY) && !known)
		perfetto_argument_pointer(p, track, "key", call->key);
	if (HAS(call, XPT_MEANING_SIZE))
		perfetto_field(p, ARG_SIZE, call->size);
	if (HAS(call, XPT_MEANING_CORE))
		perfetto_field(p, ARG_CORE, (__u64)call->core);
	if (HAS(call, XPT_MEANING_STREAM) && !known)
		perfetto_argument_pointer(p, track, "stream", call->stream);
	if (HAS(call, XPT_MEANING_PARENT))
		perfetto_argument_pointer(p, track, "parent", call->parent);
	if (HAS(call, XPT_MEANING_ADDRESS))
		perfetto_argument_pointer(p, track, "address", call->address);
	if (HAS(call, XPT_MEANING_COUNT))
		perfetto_field(p, ARG_COUNT, call->count);
	if (HAS(call, XPT_MEANING_TOKENS))
		perfetto_field(p, ARG_TOKENS, call->tokens);
	perfetto_field_some(p, ARG_PHASE, call->phase);
	perfetto_field_some(p, ARG_FIRST_TOKEN, call->first_token);
	perfetto_field_some(p, ARG_OUTPUT_TOKEN, call->output_token);
}

/* A status that is 0 and no error is left out: it is that of nearly all. */
static void add_status(struct perfetto *p, struct perfetto_track *track, const struct event_call *call)
{
	if (HAS(call, XPT_MEANING_STATUS) && (call->status || call->outcome != OUTCOME_OK)) {
		perfetto_field(p, ARG_STATUS, (__u64)call->status);
		perfetto_argument_interned(p, track, "status_name", call->status_name);
	}
	perfetto_field_some(p, ARG_FAILED, call->outcome == OUTCOME_FAILED);
	perfetto_field_some(p, ARG_PENDING, call->outcome == OUTCOME_PENDING);
}

static void add_string(struct perfetto *p, struct perfetto_track *track, const struct event_call *call)
{
	struct text text = { 0 };

	if (!call->name)
		return;
	text_bytes(&text, call->name, call->name_length);
	text_bytes(&text, "", 1);
	if (text.error)
		text_fail(p->text);
	else
		perfetto_argument_string(p, track, "name", text.data);
	text_free(&text);
	if (call->name_truncated)
		perfetto_argument_true(p, track, "name_truncated");
}

static void add_operator(struct perfetto *p, struct perfetto_track *track, const struct event_call *call)
{
	const struct model_operator *op = call->op;

	if (HAS(call, XPT_MEANING_OBJECT))
		perfetto_argument_pointer(p, track, "object", call->object);
	if (!op)
		return;
	perfetto_argument_interned(p, track, "op_name", op->type);
	perfetto_argument_interned(p, track, "class", op->class);
	perfetto_argument_interned(p, track, "node", op->name);
	if (op->index >= 0)
		perfetto_field(p, ARG_NODE_INDEX, (__u64)op->index);
	perfetto_argument_interned(p, track, "provider", op->provider);
	perfetto_field_some(p, ARG_UNASSIGNED, !call->inference);
}

static void add_call_arguments(struct perfetto *p, struct perfetto_track *track, const struct event_call *call)
{
	if (call->program) {
		if (!names_program(call))
			perfetto_argument_interned(p, track, "program", call->program->name);
		perfetto_field(p, ARG_PROGRAM_ID, call->program->id);
	}
	add_values(p, track, call);
	add_string(p, track, call);
	add_status(p, track, call);
	perfetto_field_some(p, ARG_LAYER, call->layer);
	if (call->sample > 1)
		perfetto_field(p, ARG_SAMPLE, call->sample);
	add_device_times(p, &call->device);
	add_counts(p, track, &call->counts);
	add_states(p, &call->states);
	if (call->function->role == XPT_ROLE_OPERATOR)
		add_operator(p, track, call);
}

/* An arrow whose end has no call of its own any more. */
static void add_lone_arrow(struct perfetto *p, struct perfetto_track *track, const struct perfetto_arrow *arrow)
{
	perfetto_event(p, TYPE_INSTANT);
	perfetto_name(p, track, "inference ended");
	perfetto_category(p, track, "flow", "");
	pb_fixed(&p->body, EVENT_FLOW_END, p->flow_base | arrow->id);
	perfetto_point(p, track, TYPE_INSTANT, arrow->time - 1);
}

/* Arrows that end where this call does, and were met before it. Whether there are some. */
static bool add_arrows(struct perfetto *p, struct perfetto_track *track, const struct event_call *call)
{
	size_t kept = 0;
	bool found;

	for (size_t i = 0; i < track->arrow_count; i++) {
		if (track->arrows[i].time == call->end)
			pb_fixed(&p->end, EVENT_FLOW_END, p->flow_base | track->arrows[i].id);
		else
			track->arrows[kept++] = track->arrows[i];
	}
	found = kept < track->arrow_count;
	track->arrow_count = kept;
	return found;
}

static void add_old_arrows(struct perfetto *p, struct perfetto_track *track, __u64 time)
{
	size_t kept = 0;

	for (size_t i = 0; i < track->arrow_count; i++) {
		if (track->arrows[i].time < time)
			add_lone_arrow(p, track, &track->arrows[i]);
		else
			track->arrows[kept++] = track->arrows[i];
	}
	track->arrow_count = kept;
}

static void add_call(struct perfetto *p, const struct event_call *call)
{
	struct perfetto_track *track = perfetto_thread(p, call->tgid, call->tid);

	if (!track)
		return;
	if (track->arrow_count)
		add_old_arrows(p, track, call->end);
	perfetto_event(p, call->no_end ? TYPE_INSTANT : TYPE_BEGIN);
	perfetto_name(p, track, call_name(call));
	perfetto_function(p, track, call->function);
	if (call->flow_out && !call->no_end && event_has_span(call->function, call->have))
		pb_fixed(&p->body, EVENT_FLOW, p->flow_base | call->flow_out);
	add_call_arguments(p, track, call);
	if (call->no_end) {
		perfetto_point(p, track, TYPE_INSTANT, call->start);
		return;
	}
	/* A wait stays until what it has ended is known. */
	perfetto_slice(p, track, call->start, call->end,
		       add_arrows(p, track, call) || !call->flow_in ? !call->depth : false);
}

static void add_inference(struct perfetto *p, const struct event_inference *inference)
{
	const char *name = inference->program ? inference->program->name : inference->function->name;
	__u64 key = inference->program ? inference->program->id : (__u64)1 << 32 | inference->function->index;
	struct perfetto_track *track, *waiter;

	if (!event_has_span(inference->function, inference->have))
		return;
	track = perfetto_lane(p, perfetto_process(p, inference->tgid), inference->tgid, key, name, inference->start,
			      inference->end);
	if (!track)
		return;
	perfetto_event(p, TYPE_BEGIN);
	perfetto_name(p, track, name);
	perfetto_category(p, track, "inference", inference->function->runtime);
	perfetto_field(p, ARG_INFERENCE, inference->id);
	if (inference->program)
		perfetto_field(p, ARG_PROGRAM_ID, inference->program->id);
	perfetto_field_some(p, ARG_FAILED, inference->outcome == OUTCOME_FAILED);
	add_device_times(p, &inference->device);
	add_counts(p, track, &inference->counts);
	add_states(p, &inference->states);
	perfetto_slice(p, track, inference->start, inference->end, true);
	waiter = inference->wait_tid && inference->end ? perfetto_thread(p, inference->tgid, inference->wait_tid) :
							 NULL;
	if (waiter && !perfetto_end_held(p, waiter, inference->end, p->flow_base | inference->id) &&
	    vec_push(waiter->arrows, waiter->arrow_count, (struct perfetto_arrow){ inference->id, inference->end }))
		text_fail(p->text);
}

static void add_region(struct perfetto *p, const struct event_region *region)
{
	struct perfetto_track *track = perfetto_thread(p, region->tgid, region->tid);

	if (!track)
		return;
	perfetto_event(p, TYPE_BEGIN);
	perfetto_name(p, track, region->name);
	perfetto_category(p, track, "region", region->runtime);
	perfetto_argument_any(p, track, "request", region->request);
	if (region->name_truncated)
		perfetto_argument_true(p, track, "name_truncated");
	perfetto_slice(p, track, region->start, region->end, false);
}

static void add_ioctl(struct perfetto *p, const struct event_ioctl *ioctl)
{
	struct perfetto_track *track = perfetto_thread(p, ioctl->tgid, ioctl->tid);
	char name[128];

	if (!track)
		return;
	snprintf(name, sizeof(name), "ioctl %s", ioctl->name);
	perfetto_event(p, TYPE_BEGIN);
	perfetto_name(p, track, name);
	perfetto_category(p, track, "ioctl", ioctl->driver);
	perfetto_argument_interned(p, track, "node", ioctl->node);
	if (ioctl->role)
		perfetto_argument_interned(p, track, "role", driver_role_name(ioctl->role));
	perfetto_argument_pointer(p, track, "command", ioctl->command);
	perfetto_field(p, ARG_RESULT, (__u64)(__s64)ioctl->result);
	perfetto_field_some(p, ARG_FAILED, ioctl->result < 0);
	perfetto_slice(p, track, ioctl->start, ioctl->end, false);
}

/* ---- what threads do ---- */

/* What it did before is in the first part, what ended that in the last one. */
static void add_off_cpu_part(struct perfetto *p, const struct event_off_cpu *off, __u64 start, __u64 end, bool blocked)
{
	const bool first = start == off->start, last = !blocked || off->end <= off->woken;
	struct perfetto_track *track = perfetto_thread(p, off->tgid, off->tid);
	char name[64];

	if (!track)
		return;
	if (blocked)
		snprintf(name, sizeof(name), "%s", off_cpu_name(off->reason));
	else if (off->reason == XPT_OFF_CPU_PREEMPTED && *off->next)
		snprintf(name, sizeof(name), "waiting for a CPU: %s", off->next);
	else
		snprintf(name, sizeof(name), "waiting for a CPU");
	perfetto_event(p, TYPE_BEGIN);
	perfetto_name(p, track, name);
	perfetto_category(p, track, "off_cpu", "");
	if (first)
		perfetto_field(p, ARG_REASON, off->reason);
	if (first && off->syscall >= 0)
		perfetto_field(p, ARG_SYSCALL, (__u64)off->syscall);
	if (first && *off->next) {
		perfetto_argument_interned(p, track, "ran_instead_name", off->next);
		perfetto_field(p, ARG_RAN_PID, off->next_tgid);
		perfetto_field(p, ARG_RAN_TID, off->next_tid);
	}
	if (last && *off->waker) {
		perfetto_argument_interned(p, track, "woken_by_name", off->waker);
		perfetto_field(p, ARG_WOKEN_PID, off->waker_tgid);
		perfetto_field(p, ARG_WOKEN_TID, off->waker_tid);
	} else if (last && off->interrupt) {
		perfetto_argument_interned(p, track, "woken_by", "interrupt");
	}
	perfetto_slice(p, track, start, end, false);
}

static void add_off_cpu(struct perfetto *p, const struct event_off_cpu *off)
{
	if (off->woken > off->start)
		add_off_cpu_part(p, off, off->start, off->woken, true);
	if (off->end > off->woken)
		add_off_cpu_part(p, off, off->woken, off->end, false);
}

/* ---- counters ---- */

static void add_counter(struct perfetto *p, const struct event_counter *counter)
{
	char name[256];
	struct perfetto_track *track;
	__u64 id = (__u64)(unsigned long)counter->runtime ^ (__u64)(unsigned long)counter->name << 1;
	const char *unit = !strcmp(counter->name, "queue depth")   ? "inferences" :
			   !strcmp(counter->name, "device memory") ? "bytes" :
								     "value";

	snprintf(name, sizeof(name), "%s %s", counter->runtime, counter->name);
	track = perfetto_named(p, perfetto_process(p, counter->tgid), TRACK_COUNTER, counter->tgid, id, name, unit);
	if (!track)
		return;
	perfetto_counter(p, track, counter->time, (__u64)counter->value);
}

/* A value holds from its time on: that of an interval is placed where the interval begins. */
static void add_reading(struct perfetto *p, const struct event_reading *reading)
{
	const struct model_counter *counter = reading->counter;
	const char *unit = *counter->unit ? counter->unit : "count";
	struct perfetto_track *all = perfetto_named(p, NULL, TRACK_COUNTERS, 0, 0, "counters", NULL), *track;
	char per_second[128];

	snprintf(per_second, sizeof(per_second), counter->kind == MODEL_COUNTER_SUM ? "%s/s" : "%s", unit);
	track = perfetto_named(p, all, TRACK_READING, counter->index, 0, counter->name, per_second);
	if (!track)
		return;
	perfetto_event(p, TYPE_COUNTER);
	pb_double(&p->body, EVENT_COUNTER_DOUBLE, reading->value);
	perfetto_point(p, track, TYPE_COUNTER, reading->since);
}

/* ---- instants ---- */

static struct perfetto_track *begin_instant(struct perfetto *p, struct perfetto_track *track, const char *name,
					    const char *part)
{
	struct text text = { 0 };

	if (!track)
		return NULL;
	perfetto_event(p, TYPE_INSTANT);
	text_string(&text, name);
	text_string(&text, part);
	text_bytes(&text, "", 1);
	if (text.error)
		text_fail(p->text);
	else
		perfetto_name(p, track, text.data);
	text_free(&text);
	return track;
}

static void add_program(struct perfetto *p, const struct event_program *event)
{
	const struct model_program *program = event->program;
	const char *what = event->released ? "program released: " :
			   program->loaded ? "program loaded: " :
					     "program named: ";
	struct perfetto_track *track = begin_instant(p, perfetto_process(p, program->process->tgid), what,
						     program->name);

	if (!track)
		return;
	perfetto_category(p, track, "xputrace", "");
	perfetto_argument_string(p, track, "runtime", program->runtime);
	perfetto_argument(p, track, "program_id", program->id);
	perfetto_argument_pointer(p, track, "handle", program->handle);
	perfetto_argument(p, track, "generation", program->generation);
	perfetto_argument_some(p, track, "size", program->size);
	perfetto_point(p, track, TYPE_INSTANT, event->time);
}

static void add_lost(struct perfetto *p, const struct event_lost *lost)
{
	struct perfetto_track *track;
	char name[64];

	snprintf(name, sizeof(name), "lost %llu: ", (unsigned long long)lost->count);
	track = begin_instant(p, perfetto_recording(p), name, loss_name(lost->cause));
	if (!track)
		return;
	perfetto_category(p, track, "lost", "");
	perfetto_argument_string(p, track, "cause", loss_name(lost->cause));
	perfetto_argument(p, track, "count", lost->count);
	perfetto_argument(p, track, "since_ns", lost->since);
	perfetto_point(p, track, TYPE_INSTANT, lost->time);
}

static void add_budget(struct perfetto *p, const struct model_budget_change *change)
{
	const char *name = change->name ?: "?";
	struct perfetto_track *track = perfetto_named(p, NULL, TRACK_BUDGET, 0, 0, "budget", NULL);
	char sampling[64];

	snprintf(sampling, sizeof(sampling), "sampling: 1 in %u", change->every);
	if (change->action == BUDGET_SAMPLING)
		track = begin_instant(p, track, sampling, "");
	else
		track = begin_instant(p, track, change->action == BUDGET_OPERATORS ? "operators" : name,
				      change->on ? " on" : " off");
	if (!track)
		return;
	perfetto_category(p, track, "xputrace", "");
	perfetto_argument_string(p, track, "action", budget_action_name(change->action));
	if (change->action == BUDGET_SAMPLING) {
		perfetto_argument(p, track, "every", change->every);
		perfetto_argument(p, track, "programs", change->programs);
		perfetto_argument_any(p, track, "program", change->name);
	} else {
		if (change->on)
			perfetto_argument_true(p, track, "on");
		perfetto_argument_any(p, track, "function", change->name);
	}
	perfetto_argument_some(p, track, "pid", change->tgid);
	perfetto_argument_some(p, track, "since_ns", change->since);
	perfetto_argument_real(p, track, "cost", change->cost);
	perfetto_argument_real(p, track, "budget", change->budget);
	perfetto_point(p, track, TYPE_INSTANT, change->time);
}

/* All threads of the process stood still. */
static struct perfetto_track *begin_waited(struct perfetto *p, __u32 tgid, __u64 start, __u64 end)
{
	struct perfetto_track *track = perfetto_lane(p, perfetto_process(p, tgid), tgid, ~0ull, "waited", start,
						     end > start ? end : start);

	if (!track)
		return NULL;
	perfetto_event(p, TYPE_BEGIN);
	perfetto_name(p, track, "waited");
	perfetto_category(p, track, "xputrace", "");
	return track;
}

static void add_waited(struct perfetto *p, const struct event_waited *waited)
{
	struct perfetto_track *track = begin_waited(p, waited->tgid, waited->start, waited->end);

	if (!track)
		return;
	perfetto_argument(p, track, "sites", waited->sites);
	perfetto_slice(p, track, waited->start, waited->end, true);
}

static void add_task(struct perfetto *p, const struct event_task *task)
{
	struct perfetto_track *track;
	const char *what = task->what == XPT_TASK_FORK ? "forked" : task->what == XPT_TASK_EXEC ? "exec" : "exit";

	if (task->what == XPT_TASK_THREAD)
		return;
	track = begin_instant(p, perfetto_process(p, task->tgid), what, "");
	if (!track)
		return;
	perfetto_category(p, track, "xputrace", "");
	if (task->what == XPT_TASK_FORK)
		perfetto_argument(p, track, "parent", task->other);
	else if (task->what == XPT_TASK_EXEC)
		perfetto_argument_string(p, track, "name", task->name ?: "");
	else if (WIFSIGNALED(task->code))
		perfetto_argument(p, track, "signal", (__u64)WTERMSIG(task->code));
	else
		perfetto_argument(p, track, "status", (__u64)WEXITSTATUS(task->code));
	perfetto_point(p, track, TYPE_INSTANT, task->time);
}

/* ---- code objects ---- */

#define HASH_SHOWN 12 /* digits */

/* Its kind, and its own name, else that of its file; of one in memory the begin of its hash. */
static void code_label(struct text *text, const struct event_code *code)
{
	struct code_uri uri = {};
	const char *last, *name = code->name;

	text_string(text, code->kind);
	if (!name && code->uri && code_uri_parse(code->uri, &uri) == -ENOMEM)
		text_fail(text);
	if (!name && uri.path) {
		last = strrchr(uri.path, '/');
		name = last ? last + 1 : uri.path;
	}
	if (name || code->sha256)
		text_literal(text, " ");
	if (name)
		text_string(text, name);
	else if (code->sha256)
		text_bytes(text, code->sha256, strnlen(code->sha256, HASH_SHOWN));
	text_bytes(text, "", 1);
	code_uri_free(&uri);
}

static void add_code_arguments(struct perfetto *p, struct perfetto_track *track, const struct event_code *code)
{
	perfetto_argument_string(p, track, "kind", code->kind);
	perfetto_argument_any(p, track, "uri", code->uri);
	perfetto_argument_any(p, track, "machine", code->machine);
	perfetto_argument_any(p, track, "name", code->name);
	perfetto_argument_some(p, track, "size", code->size);
	perfetto_argument_any(p, track, "sha256", code->sha256);
	perfetto_argument_any(p, track, "runtime", code->runtime);
	perfetto_argument_any(p, track, "function", code->function);
	if (code->handle)
		perfetto_argument_pointer(p, track, "handle", code->handle);
	if (code->kernel_count)
		perfetto_argument_strings(p, track, "kernels", code->kernels, code->kernel_count);
	perfetto_argument_some(p, track, "functions", code->functions);
	perfetto_argument_some(p, track, "waited_ns", code->waited);
	perfetto_argument_some(p, track, "missing", code->missing);
	perfetto_argument_any(p, track, "error", code->error);
	if (!code->unloaded && !code->tid)
		perfetto_argument_true(p, track, "found");
}

static void add_code(struct perfetto *p, const struct event_code *code)
{
	struct perfetto_track *track = code->tid ? perfetto_thread(p, code->tgid, code->tid) :
						   perfetto_process(p, code->tgid);
	struct text label = { 0 };

	code_label(&label, code);
	if (label.error) {
		text_fail(p->text);
		text_free(&label);
		return;
	}
	track = begin_instant(p, track, code->unloaded ? "unload " : "load ", label.data);
	if (track) {
		perfetto_category(p, track, "codeobj", "");
		add_code_arguments(p, track, code);
		perfetto_point(p, track, TYPE_INSTANT, code->time);
	}
	track = code->waited ? begin_waited(p, code->tgid, code->time, code->time + code->waited) : NULL;
	if (track) {
		perfetto_argument_string(p, track, "code_object", label.data);
		perfetto_slice(p, track, code->time, code->time + code->waited, true);
	}
	text_free(&label);
}

void perfetto_events_add(struct perfetto *p, const struct event *event)
{
	if (event->kind != EVENT_COUNTER)
		p->latest.track = NULL;
	switch (event->kind) {
	case EVENT_PROCESS:
		perfetto_process_named(p, event->process);
		break;
	case EVENT_THREAD:
		if (event->thread.name && *event->thread.name)
			perfetto_thread_named(p, event->thread.tgid, event->thread.tid, event->thread.name);
		break;
	case EVENT_CALL:
		add_call(p, &event->call);
		break;
	case EVENT_INFERENCE:
		add_inference(p, &event->inference);
		break;
	case EVENT_COUNTER:
		add_counter(p, &event->counter);
		break;
	case EVENT_PROGRAM:
		add_program(p, &event->program);
		break;
	case EVENT_LOST:
		add_lost(p, &event->lost);
		break;
	case EVENT_WAITED:
		add_waited(p, &event->waited);
		break;
	case EVENT_TASK:
		add_task(p, &event->task);
		break;
	case EVENT_REGION:
		add_region(p, &event->region);
		break;
	case EVENT_JOB:
		perfetto_job_add(p, &event->job);
		break;
	case EVENT_QUEUE:
		perfetto_queue_add(p, &event->queue);
		break;
	case EVENT_DEVICE:
		perfetto_device_add(p, &event->device);
		break;
	case EVENT_IOCTL:
		add_ioctl(p, &event->ioctl);
		break;
	case EVENT_OFF_CPU:
		add_off_cpu(p, &event->off_cpu);
		break;
	case EVENT_READING:
		add_reading(p, &event->reading);
		break;
	case EVENT_CODE:
		add_code(p, &event->code);
		break;
	case EVENT_BUDGET:
		add_budget(p, event->budget);
		break;
	case EVENT_STACK:
		perfetto_stack_add(p, &event->stack);
		break;
	case EVENT_UNPAIRED:
	case EVENT_COUNT:
	case EVENT_LAUNCH: /* it has been shown as a call */
		break;
	}
}

void perfetto_events_end(struct perfetto *p)
{
	struct keyed *keyed;

	link_for_each(keyed, &p->tracks.all, age)
		add_old_arrows(p, container_of(keyed, struct perfetto_track, keyed), ~0ull);
}
