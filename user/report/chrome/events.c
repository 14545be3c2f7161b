/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/chrome/events.h"

#include <errno.h>
#include <sys/wait.h>

#include "base/core/json.h"
#include "code/store/store.h"
#include "describe/driver/driver.h"
#include "describe/runtime/description.h"
#include "report/chrome/parts.h"

#define LABEL_MAX 200 /* bytes of a command line beside a process's name */

/* ---- what all events are made of ---- */

void chrome_begin(struct chrome_events *events, char phase, __u32 pid, __u32 tid, __u64 time)
{
	struct text *text = events->text;

	if (events->any)
		text_literal(text, ",\n{\"ph\":\"");
	else
		text_literal(text, "\n{\"ph\":\"");
	events->any = true;
	text_bytes(text, &phase, 1);
	text_literal(text, "\",\"pid\":");
	text_unsigned(text, pid);
	text_literal(text, ",\"tid\":");
	text_unsigned(text, tid);
	text_literal(text, ",\"ts\":");
	text_microseconds(text, time);
}

void chrome_begin_metadata(struct chrome_events *events, __u32 pid, __u32 tid, const char *name)
{
	chrome_begin(events, 'M', pid, tid, 0);
	chrome_name(events->text, name);
}

void chrome_flow(struct chrome_events *events, char phase, __u32 pid, __u32 tid, __u64 time, __u64 id,
		 const char *source, const char *name)
{
	chrome_begin(events, phase, pid, tid, time);
	chrome_id(events->text, id);
	chrome_category(events->text, "flow", source);
	text_literal(events->text, ",\"name\":\"");
	text_string(events->text, name);
	if (phase == 'f')
		text_literal(events->text, "\",\"bp\":\"e\"}");
	else
		text_literal(events->text, "\"}");
}

void chrome_name(struct text *text, const char *name)
{
	text_literal(text, ",\"name\":");
	text_json_string(text, name);
}

void chrome_category(struct text *text, const char *what, const char *source)
{
	text_literal(text, ",\"cat\":\"");
	text_string(text, what);
	text_literal(text, ",");
	text_json_part(text, source, strlen(source));
	text_literal(text, "\"");
}

void chrome_id(struct text *text, __u64 id)
{
	text_literal(text, ",\"id\":\"");
	text_hexadecimal(text, id);
	text_literal(text, "\"");
}

void chrome_span(struct text *text, __u64 start, __u64 end)
{
	text_literal(text, ",\"dur\":");
	text_microseconds(text, end > start ? end - start : 0);
}

/* ---- processes and threads ---- */

static void add_process(struct chrome_events *events, const struct model_process *process)
{
	struct text *text = events->text;
	const char *command = process->command ? process->command : "";
	size_t length = strlen(command);

	if (!events->first_tgid)
		events->first_tgid = process->tgid;
	chrome_begin_metadata(events, process->tgid, process->tgid, "process_name");
	chrome_string(text, ",\"args\":{\"name\":", process->name);
	text_literal(text, "}}");
	chrome_begin_metadata(events, process->tgid, process->tgid, "process_sort_index");
	chrome_unsigned(text, ",\"args\":{\"sort_index\":", process->sort_index);
	text_literal(text, "}}");
	if (!length)
		return;
	chrome_begin_metadata(events, process->tgid, process->tgid, "process_labels");
	text_literal(text, ",\"args\":{\"labels\":");
	text_json(text, command, text_cut(command, length, LABEL_MAX));
	text_literal(text, ",\"command\":");
	text_json(text, command, length);
	text_literal(text, "}}");
}

static void add_thread(struct chrome_events *events, __u32 tgid, __u32 tid, const char *name)
{
	if (!name || !*name)
		return;
	chrome_begin_metadata(events, tgid, tid, "thread_name");
	chrome_string(events->text, ",\"args\":{\"name\":", name);
	text_literal(events->text, "}}");
}

/* ---- calls ---- */

static void make_function(struct text *text, const struct model_function *function)
{
	const char *role = role_name(function->role);

	text_literal(text, ",\"cat\":\"");
	text_json_part(text, function->runtime, strlen(function->runtime));
	text_literal(text, ",");
	text_string(text, role);
	chrome_string(text, "\",\"args\":{\"function\":", function->name);
	text_literal(text, ",\"role\":\"");
	text_string(text, role);
	text_literal(text, "\"");
}

/* Category, and the beginning of the arguments. */
static void add_function(struct chrome_events *events, const struct model_function *function)
{
	struct chrome_function *known;

	if (function->index >= XPT_SPEC_MAX) {
		make_function(events->text, function);
		return;
	}
	known = &events->functions[function->index];
	if (known->function != function) {
		known->text.length = 0;
		make_function(&known->text, function);
		known->function = known->text.error ? NULL : function;
		if (known->text.error) {
			text_free(&known->text);
			make_function(events->text, function);
			return;
		}
	}
	text_bytes(events->text, known->text.data, known->text.length);
}

static bool names_program(const struct event_call *call)
{
	enum xpt_role role = call->function->role;

	return call->program && !call->layer &&
	       (role == XPT_ROLE_EXECUTE || role == XPT_ROLE_ENQUEUE || role == XPT_ROLE_LAUNCH);
}

#define HAS(call, meaning) ((call)->have & (1u << (meaning)))

static void add_status(struct text *text, const struct event_call *call)
{
	if (HAS(call, XPT_MEANING_STATUS)) {
		chrome_signed(text, ",\"status\":", call->status);
		if (call->status_name) {
			chrome_string(text, ",\"status_name\":", call->status_name);
		}
	}
	if (call->outcome == OUTCOME_FAILED)
		text_literal(text, ",\"failed\":true");
	else if (call->outcome == OUTCOME_PENDING)
		text_literal(text, ",\"pending\":true");
}

static void add_values(struct text *text, const struct event_call *call)
{
	if (HAS(call, XPT_MEANING_PROGRAM))
		chrome_hexadecimal(text, ",\"handle\":", call->handle);
	if (HAS(call, XPT_MEANING_KEY))
		chrome_hexadecimal(text, ",\"key\":", call->key);
	if (HAS(call, XPT_MEANING_SIZE))
		chrome_unsigned(text, ",\"size\":", call->size);
	if (HAS(call, XPT_MEANING_CORE)) {
		chrome_signed(text, ",\"core\":", call->core);
	}
	if (HAS(call, XPT_MEANING_STREAM))
		chrome_hexadecimal(text, ",\"stream\":", call->stream);
	if (HAS(call, XPT_MEANING_PARENT))
		chrome_hexadecimal(text, ",\"parent\":", call->parent);
	if (HAS(call, XPT_MEANING_ADDRESS))
		chrome_hexadecimal(text, ",\"address\":", call->address);
	if (HAS(call, XPT_MEANING_COUNT))
		chrome_unsigned(text, ",\"count\":", call->count);
	if (HAS(call, XPT_MEANING_TOKENS))
		chrome_unsigned(text, ",\"tokens\":", call->tokens);
	if (call->phase)
		text_string(text, call->phase == PHASE_PREFILL ? ",\"phase\":\"prefill\"" : ",\"phase\":\"decode\"");
	if (call->first_token)
		chrome_microseconds(text, ",\"first_token_us\":", call->first_token);
	if (call->output_token)
		chrome_microseconds(text, ",\"output_token_us\":", call->output_token);
}

/* Sums of jobs of which something was seen; what was not is left out. */
static void add_device_sums(struct text *text, const struct model_device_times *device)
{
	bool ran = device->runs && device->device_time;

	if (device->jobs)
		chrome_unsigned(text, "\"jobs\":", device->jobs);
	if (device->unfinished)
		chrome_unsigned(text, ",\"unfinished\":", device->unfinished);
	if (device->failed)
		chrome_unsigned(text, ",\"failed\":", device->failed);
	if (ran)
		chrome_microseconds(text, ",\"device_us\":", device->device_time);
	if (device->queue_time)
		chrome_microseconds(text, ",\"queue_us\":", device->queue_time);
	if (ran && device->busy_time)
		chrome_microseconds(text, ",\"busy_us\":", device->busy_time);
}

/* What was submitted while the call was open. */
static void add_device_times(struct text *text, const struct model_device_times *device)
{
	bool submitted = device->submit_begins && device->submit_ends >= device->submit_begins;

	if (!device->jobs && !submitted)
		return;
	text_literal(text, ",\"device\":{");
	add_device_sums(text, device);
	if (submitted && device->jobs)
		text_literal(text, ",");
	if (submitted)
		chrome_microseconds(text, "\"submit_us\":", device->submit_ends - device->submit_begins);
	text_literal(text, "}");
}

static void add_counts(struct text *text, const struct model_counts *counts)
{
	if (!counts->count)
		return;
	text_literal(text, ",\"counters\":{");
	for (unsigned int i = 0; i < counts->count; i++) {
		if (i)
			text_literal(text, ",");
		text_json_string(text, counts->counters[i]->name);
		text_literal(text, ":");
		text_real(text, counts->value[i]);
	}
	text_literal(text, "}");
}

/* What did not happen is left out; the time on the CPU is there where states are known at all. */
static void add_states(struct text *text, const struct model_states *states)
{
	if (!states->calls)
		return;
	chrome_microseconds(text, ",\"cpu_us\":", states->cpu);
	if (states->waited)
		chrome_microseconds(text, ",\"waited_us\":", states->waited);
	if (states->blocked)
		chrome_microseconds(text, ",\"blocked_us\":", states->blocked);
	if (states->voluntary)
		chrome_unsigned(text, ",\"voluntary_switches\":", states->voluntary);
	if (states->involuntary)
		chrome_unsigned(text, ",\"involuntary_switches\":", states->involuntary);
	if (states->minor_faults)
		chrome_unsigned(text, ",\"minor_faults\":", states->minor_faults);
	if (states->major_faults)
		chrome_unsigned(text, ",\"major_faults\":", states->major_faults);
}

/* Everything in the arguments behind function and role. */
static void add_arguments(struct text *text, const struct event_call *call)
{
	if (call->program) {
		chrome_string(text, ",\"program\":", call->program->name);
		chrome_unsigned(text, ",\"program_id\":", call->program->id);
	}
	add_values(text, call);
	if (call->name) {
		text_literal(text, ",\"name\":");
		text_json(text, call->name, call->name_length);
		if (call->name_truncated)
			text_literal(text, ",\"name_truncated\":true");
	}
	add_status(text, call);
	if (call->layer)
		text_literal(text, ",\"layer\":true");
	if (call->sample > 1)
		chrome_unsigned(text, ",\"sample\":", call->sample);
	add_device_times(text, &call->device);
	add_counts(text, &call->counts);
	add_states(text, &call->states);
}

static void add_operator(struct text *text, const struct event_call *call)
{
	const struct model_operator *op = call->op;

	if (call->have & (1u << XPT_MEANING_OBJECT))
		chrome_hexadecimal(text, ",\"object\":", call->object);
	if (!op)
		return;
	chrome_string(text, ",\"op_name\":", op->type);
	if (*op->class)
		chrome_string(text, ",\"class\":", op->class);
	if (op->name)
		chrome_string(text, ",\"node\":", op->name);
	if (op->index >= 0)
		chrome_signed(text, ",\"node_index\":", op->index);
	if (op->provider)
		chrome_string(text, ",\"provider\":", op->provider);
	if (!call->inference)
		text_literal(text, ",\"unassigned\":true");
}

static const char *call_name(const struct event_call *call)
{
	if (names_program(call))
		return call->program->name;
	return call->op ? call->op->label : call->function->name;
}

static void add_call(struct chrome_events *events, const struct event_call *call)
{
	struct text *text = events->text;

	chrome_begin(events, call->no_end ? 'i' : 'X', call->tgid, call->tid, call->start);
	if (call->no_end) {
		text_literal(text, ",\"s\":\"t\"");
	} else {
		chrome_span(text, call->start, call->end);
	}
	chrome_name(text, call_name(call));
	if (call->outcome == OUTCOME_FAILED)
		text_literal(text, ",\"cname\":\"terrible\"");
	add_function(events, call->function);
	add_arguments(text, call);
	if (call->function->role == XPT_ROLE_OPERATOR)
		add_operator(text, call);
	text_literal(text, "}}");
	/* At its very start no call inside has begun, so the arrow leaves from this call and not from one within. */
	if (call->flow_out && !call->no_end && event_has_span(call->function, call->have))
		chrome_flow(events, 's', call->tgid, call->tid, call->start, call->flow_out, call->function->runtime,
			    "inference");
}

static void add_inference(struct chrome_events *events, const struct event_inference *inference)
{
	struct text *text = events->text;
	const char *runtime = inference->function->runtime;
	const char *name = inference->program ? inference->program->name : inference->function->name;

	if (!event_has_span(inference->function, inference->have))
		return;
	chrome_begin(events, 'b', inference->tgid, inference->tid, inference->start);
	chrome_id(text, inference->id);
	chrome_category(text, "inference", runtime);
	chrome_name(text, name);
	chrome_string(text, ",\"args\":{\"function\":", inference->function->name);
	if (inference->program)
		chrome_unsigned(text, ",\"program_id\":", inference->program->id);
	chrome_hexadecimal(text, ",\"key\":", inference->key);
	chrome_hexadecimal(text, ",\"stream\":", inference->stream);
	if (inference->outcome == OUTCOME_FAILED)
		text_literal(text, ",\"failed\":true");
	add_device_times(text, &inference->device);
	add_counts(text, &inference->counts);
	add_states(text, &inference->states);
	text_literal(text, "}}");
	chrome_begin(events, 'e', inference->tgid, inference->tid,
		     inference->end > inference->start ? inference->end : inference->start);
	chrome_id(text, inference->id);
	chrome_category(text, "inference", runtime);
	chrome_name(text, name);
	text_literal(text, "}");
	/* The last nanosecond of the wait: at its end the slice is closed already. */
	if (inference->wait_tid && inference->end)
		chrome_flow(events, 'f', inference->tgid, inference->wait_tid, inference->end - 1, inference->id,
			    runtime, "inference");
}

static void add_region(struct chrome_events *events, const struct event_region *region)
{
	struct text *text = events->text;

	chrome_begin(events, 'X', region->tgid, region->tid, region->start);
	chrome_span(text, region->start, region->end);
	chrome_name(text, region->name);
	chrome_category(text, "region", region->runtime);
	if (region->request) {
		chrome_string(text, ",\"args\":{\"request\":", region->request);
		text_string(text, region->name_truncated ? ",\"name_truncated\":true}" : "}");
	} else if (region->name_truncated) {
		text_literal(text, ",\"args\":{\"name_truncated\":true}");
	}
	text_literal(text, "}");
}

static void add_ioctl(struct chrome_events *events, const struct event_ioctl *ioctl)
{
	struct text *text = events->text;

	chrome_begin(events, 'X', ioctl->tgid, ioctl->tid, ioctl->start);
	chrome_span(text, ioctl->start, ioctl->end);
	text_literal(text, ",\"name\":\"ioctl ");
	text_json_part(text, ioctl->name, strlen(ioctl->name));
	text_literal(text, "\"");
	if (ioctl->result < 0)
		text_literal(text, ",\"cname\":\"terrible\"");
	chrome_category(text, "ioctl", ioctl->driver);
	chrome_string(text, ",\"args\":{\"node\":", ioctl->node);
	if (ioctl->role) {
		text_literal(text, ",\"role\":\"");
		text_string(text, driver_role_name(ioctl->role));
		text_literal(text, "\"");
	}
	chrome_hexadecimal(text, ",\"command\":", ioctl->command);
	chrome_signed(text, ",\"result\":", ioctl->result);
	if (ioctl->result < 0)
		text_literal(text, ",\"failed\":true");
	text_literal(text, "}}");
}

/* ---- what is not a span on a thread ---- */

static void add_counter(struct chrome_events *events, const struct event_counter *counter)
{
	struct text *text = events->text;

	chrome_begin(events, 'C', counter->tgid, counter->tgid, counter->time);
	text_literal(text, ",\"name\":\"");
	text_json_part(text, counter->runtime, strlen(counter->runtime));
	text_literal(text, " ");
	text_json_part(text, counter->name, strlen(counter->name));
	if (!strcmp(counter->name, "queue depth"))
		text_literal(text, "\",\"args\":{\"inferences\":");
	else if (!strcmp(counter->name, "device memory"))
		text_literal(text, "\",\"args\":{\"bytes\":");
	else
		text_literal(text, "\",\"args\":{\"value\":");
	text_signed(text, counter->value);
	text_literal(text, "}}");
}

/* Of what belongs to no traced process. */
static void show_process(struct chrome_events *events, __u32 pid, const char *name, bool *shown)
{
	struct text *text = events->text;

	if (*shown)
		return;
	*shown = true;
	chrome_begin_metadata(events, pid, pid, "process_name");
	chrome_string(text, ",\"args\":{\"name\":", name);
	text_literal(text, "}}");
	chrome_begin_metadata(events, pid, pid, "process_sort_index");
	chrome_unsigned(text, ",\"args\":{\"sort_index\":", pid);
	text_literal(text, "}}");
}

/* A viewer draws a value from its time on: that of an interval is placed where the interval begins. */
static void add_reading(struct chrome_events *events, const struct event_reading *reading)
{
	const struct model_counter *counter = reading->counter;
	const char *unit = *counter->unit ? counter->unit : "count";
	struct text *text = events->text;

	show_process(events, CHROME_COUNTERS_PID, "counters", &events->counters);
	chrome_begin(events, 'C', CHROME_COUNTERS_PID, CHROME_COUNTERS_PID, reading->since);
	chrome_name(text, counter->name);
	text_literal(text, ",\"args\":{\"");
	text_json_part(text, unit, strlen(unit));
	if (counter->kind == MODEL_COUNTER_SUM)
		text_literal(text, "/s");
	text_literal(text, "\":");
	text_real(text, reading->value);
	text_literal(text, "}}");
}

static void add_other_thread(struct text *text, const char *key, const char *name, __u32 tgid, __u32 tid)
{
	json_begin(text, key, '{');
	json_add_text(text, "name", name);
	json_add_unsigned(text, "pid", tgid);
	json_add_unsigned(text, "tid", tid);
	json_end(text, '}');
}

/* Below the call that it lies in: blocked, then waiting for a CPU. */
static void add_off_cpu_slice(struct chrome_events *events, const struct event_off_cpu *off, __u64 start, __u64 end,
			      bool blocked)
{
	struct text *text = events->text;

	chrome_begin(events, 'X', off->tgid, off->tid, start);
	chrome_span(text, start, end);
	if (blocked) {
		chrome_string(text, ",\"name\":", off_cpu_name(off->reason));
		text_string(text, off->reason == XPT_OFF_CPU_IO || off->reason == XPT_OFF_CPU_FAULT ?
					  ",\"cname\":\"thread_state_iowait\"" :
					  ",\"cname\":\"thread_state_sleeping\"");
	} else {
		text_literal(text, ",\"name\":\"waiting for a CPU");
		if (off->reason == XPT_OFF_CPU_PREEMPTED && *off->next) {
			text_literal(text, ": ");
			text_json_part(text, off->next, strlen(off->next));
		}
		text_literal(text, "\",\"cname\":\"thread_state_runnable\"");
	}
	text_literal(text, ",\"cat\":\"off_cpu\"");
	json_begin(text, "args", '{');
	json_add_text(text, "reason", off_cpu_name(off->reason));
	if (off->syscall >= 0)
		json_add_unsigned(text, "syscall", (__u64)off->syscall);
	if (*off->next)
		add_other_thread(text, "ran_instead", off->next, off->next_tgid, off->next_tid);
	if (*off->waker)
		add_other_thread(text, "woken_by", off->waker, off->waker_tgid, off->waker_tid);
	else if (off->interrupt)
		json_add_text(text, "woken_by", "interrupt");
	text_literal(text, "}}");
}

static void add_off_cpu(struct chrome_events *events, const struct event_off_cpu *off)
{
	if (off->woken > off->start)
		add_off_cpu_slice(events, off, off->start, off->woken, true);
	if (off->end > off->woken)
		add_off_cpu_slice(events, off, off->woken, off->end, false);
}

static void begin_process_instant(struct chrome_events *events, __u32 tgid, __u32 tid, __u64 time)
{
	chrome_begin(events, 'i', tgid, tid, time);
	text_literal(events->text, ",\"s\":\"p\",\"cat\":\"xputrace\",\"name\":");
}

static void add_program(struct chrome_events *events, const struct event_program *event)
{
	const struct model_program *program = event->program;
	__u32 tgid = program->process->tgid;
	struct text *text = events->text;

	begin_process_instant(events, tgid, tgid, event->time);
	if (event->released)
		text_literal(text, "\"program released: ");
	else if (program->loaded)
		text_literal(text, "\"program loaded: ");
	else
		text_literal(text, "\"program named: ");
	text_json_part(text, program->name, strlen(program->name));
	chrome_string(text, "\",\"args\":{\"runtime\":", program->runtime);
	chrome_unsigned(text, ",\"program_id\":", program->id);
	chrome_hexadecimal(text, ",\"handle\":", program->handle);
	chrome_unsigned(text, ",\"generation\":", program->generation);
	if (program->size)
		chrome_unsigned(text, ",\"size\":", program->size);
	text_literal(text, "}}");
}

static void add_lost(struct chrome_events *events, const struct event_lost *lost)
{
	struct text *text = events->text;

	chrome_begin(events, 'i', events->first_tgid, events->first_tgid, lost->time);
	text_literal(text, ",\"s\":\"g\",\"cat\":\"xputrace\",\"name\":\"lost ");
	text_unsigned(text, lost->count);
	text_literal(text, ": ");
	text_string(text, loss_name(lost->cause));
	text_literal(text, "\",\"args\":{\"cause\":\"");
	text_string(text, loss_name(lost->cause));
	chrome_unsigned(text, "\",\"count\":", lost->count);
	chrome_microseconds(text, ",\"since_us\":", lost->since);
	text_literal(text, "}}");
}

static void add_budget(struct chrome_events *events, const struct model_budget_change *change)
{
	const char *name = change->name ?: "?";
	struct text *text = events->text;

	show_process(events, CHROME_BUDGET_PID, "budget", &events->budget);
	begin_process_instant(events, CHROME_BUDGET_PID, CHROME_BUDGET_PID, change->time);
	if (change->action == BUDGET_SAMPLING) {
		chrome_unsigned(text, "\"sampling: 1 in ", change->every);
	} else if (change->action == BUDGET_OPERATORS) {
		text_string(text, change->on ? "\"operators on" : "\"operators off");
	} else {
		text_literal(text, "\"");
		text_json_part(text, name, strlen(name));
		text_string(text, change->on ? " on" : " off");
	}
	text_literal(text, "\"");
	json_begin(text, "args", '{');
	chrome_budget_change(text, change);
	text_literal(text, "}}");
}

/* A span of the process as a whole: all its threads stood still. Up to its arguments, which follow. */
static void begin_waited(struct chrome_events *events, __u32 tgid, __u64 start)
{
	chrome_begin(events, 'b', tgid, tgid, start);
	chrome_id(events->text, ++events->wait_count);
	text_literal(events->text, ",\"cat\":\"xputrace\",\"name\":\"waited\",\"args\":{");
}

static void end_waited(struct chrome_events *events, __u32 tgid, __u64 start, __u64 end)
{
	text_literal(events->text, "}}");
	chrome_begin(events, 'e', tgid, tgid, end > start ? end : start);
	chrome_id(events->text, events->wait_count);
	text_literal(events->text, ",\"cat\":\"xputrace\",\"name\":\"waited\"}");
}

static void add_waited(struct chrome_events *events, const struct event_waited *waited)
{
	begin_waited(events, waited->tgid, waited->start);
	chrome_unsigned(events->text, "\"sites\":", waited->sites);
	end_waited(events, waited->tgid, waited->start, waited->end);
}

static void add_task(struct chrome_events *events, const struct event_task *task)
{
	struct text *text = events->text;

	if (task->what == XPT_TASK_THREAD)
		return;
	begin_process_instant(events, task->tgid, task->tid ? task->tid : task->tgid, task->time);
	if (task->what == XPT_TASK_FORK) {
		chrome_unsigned(text, "\"forked\",\"args\":{\"parent\":", task->other);
	} else if (task->what == XPT_TASK_EXEC) {
		chrome_string(text, "\"exec\",\"args\":{\"name\":", task->name);
	} else if (WIFSIGNALED(task->code)) {
		chrome_unsigned(text, "\"exit\",\"args\":{\"signal\":", WTERMSIG(task->code));
	} else {
		chrome_unsigned(text, "\"exit\",\"args\":{\"status\":", WEXITSTATUS(task->code));
	}
	text_literal(text, "}}");
}

/* ---- code objects ---- */

#define HASH_SHOWN 12 /* digits: enough to find the file that `xputrace codeobj` names by it */

static void add_word(struct text *text, const char *word, size_t length)
{
	if (length)
		text_literal(text, " ");
	text_json_part(text, word, length);
}

/* Its own name, else the name of its file; of one in memory, where an address means little, the begin of its hash. */
static void add_code_label(struct text *text, const struct event_code *code)
{
	struct code_uri uri = {};
	const char *last;

	text_json_part(text, code->kind, strlen(code->kind));
	if (!code->name && code->uri && code_uri_parse(code->uri, &uri) == -ENOMEM)
		text_fail(text);
	last = uri.path ? strrchr(uri.path, '/') : NULL;
	if (code->name)
		add_word(text, code->name, strlen(code->name));
	else if (uri.path)
		add_word(text, last ? last + 1 : uri.path, strlen(last ? last + 1 : uri.path));
	else if (code->sha256)
		add_word(text, code->sha256, strnlen(code->sha256, HASH_SHOWN));
	code_uri_free(&uri);
}

static void add_code_arguments(struct text *text, const struct event_code *code)
{
	json_begin(text, "args", '{');
	json_add_text(text, "kind", code->kind);
	json_add_text(text, "uri", code->uri);
	json_add_text(text, "machine", code->machine);
	json_add_text(text, "name", code->name);
	json_add_nonzero(text, "size", code->size);
	json_add_text(text, "sha256", code->sha256);
	json_add_text(text, "runtime", code->runtime);
	json_add_text(text, "function", code->function);
	if (code->handle)
		json_add_hexadecimal(text, "handle", code->handle);
	if (code->kernel_count) {
		json_begin(text, "kernels", '[');
		for (size_t i = 0; i < code->kernel_count; i++)
			json_add_text(text, NULL, code->kernels[i]);
		json_end(text, ']');
	}
	json_add_nonzero(text, "functions", code->functions);
	if (code->waited)
		json_add_microseconds(text, "waited_us", code->waited);
	json_add_nonzero(text, "missing", code->missing);
	json_add_text(text, "error", code->error);
	if (!code->unloaded && !code->tid)
		json_add_bool(text, "found", true);
	text_literal(text, "}}");
}

/* When it was loaded, found or unloaded; and how long the process was waited for it. */
static void add_code(struct chrome_events *events, const struct event_code *code)
{
	struct text *text = events->text;

	chrome_begin(events, 'i', code->tgid, code->tid ? code->tid : code->tgid, code->time);
	text_string(text, code->tid ? ",\"s\":\"t\"" : ",\"s\":\"p\"");
	text_literal(text, ",\"cat\":\"codeobj\",\"name\":\"");
	text_string(text, code->unloaded ? "unload " : "load ");
	add_code_label(text, code);
	text_literal(text, "\"");
	add_code_arguments(text, code);
	if (!code->waited)
		return;
	begin_waited(events, code->tgid, code->time);
	text_literal(text, "\"code_object\":\"");
	add_code_label(text, code);
	text_literal(text, "\"");
	end_waited(events, code->tgid, code->time, code->time + code->waited);
}

void chrome_events_add(struct chrome_events *events, const struct event *event)
{
	switch (event->kind) {
	case EVENT_PROCESS:
		add_process(events, event->process);
		break;
	case EVENT_THREAD:
		add_thread(events, event->thread.tgid, event->thread.tid, event->thread.name);
		break;
	case EVENT_CALL:
		add_call(events, &event->call);
		break;
	case EVENT_INFERENCE:
		add_inference(events, &event->inference);
		break;
	case EVENT_COUNTER:
		add_counter(events, &event->counter);
		break;
	case EVENT_PROGRAM:
		add_program(events, &event->program);
		break;
	case EVENT_LOST:
		add_lost(events, &event->lost);
		break;
	case EVENT_WAITED:
		add_waited(events, &event->waited);
		break;
	case EVENT_TASK:
		add_task(events, &event->task);
		break;
	case EVENT_REGION:
		add_region(events, &event->region);
		break;
	case EVENT_JOB:
		chrome_job_add(events, &event->job);
		break;
	case EVENT_QUEUE:
		chrome_queue_add(events, &event->queue);
		break;
	case EVENT_DEVICE:
		chrome_device_add(events, &event->device);
		break;
	case EVENT_IOCTL:
		add_ioctl(events, &event->ioctl);
		break;
	case EVENT_OFF_CPU:
		add_off_cpu(events, &event->off_cpu);
		break;
	case EVENT_READING:
		add_reading(events, &event->reading);
		break;
	case EVENT_CODE:
		add_code(events, &event->code);
		break;
	case EVENT_BUDGET:
		add_budget(events, event->budget);
		break;
	case EVENT_UNPAIRED:
	case EVENT_COUNT:
	case EVENT_STACK:
	case EVENT_LAUNCH: /* it has been shown as a call */
		break;	   /* nothing that has a place on a thread; the totals have it */
	}
}

void chrome_events_free(struct chrome_events *events)
{
	size_t i;

	/* Most have never been used: those that are not written to take no memory. */
	for (i = 0; i < XPT_SPEC_MAX; i++)
		if (events->functions[i].text.data)
			text_free(&events->functions[i].text);
	chrome_jobs_free(&events->jobs);
}
