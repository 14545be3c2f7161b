/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The format of ONNX Runtime's own profiler: an array of complete events with its categories, names, arguments and
 * units, so that what people have for it reads ours. What cannot be known from outside is left out. See the manual of
 * record.
 */
#include "report/trace/event_file.h"

#include <stdio.h>
#include <string.h>

#define NODE_SUFFIX "_kernel_time"

struct ort_state {
	__u64 base; /* ns: when the recording began */
	bool any;   /* the next event follows a comma */
};

/* Up to the name, with its quotes open. */
static void begin(struct ort_state *state, struct text *text, const char *category, __u32 pid, __u32 tid)
{
	if (state->any)
		text_literal(text, ",\n");
	state->any = true;
	text_literal(text, "{\"cat\" : \"");
	text_string(text, category);
	text_literal(text, "\",\"pid\" :");
	text_unsigned(text, pid);
	text_literal(text, ",\"tid\" :");
	text_unsigned(text, tid);
}

/* Both ends are rounded, and not the duration: what touches does so afterwards, too. */
static void span(const struct ort_state *state, struct text *text, __u64 start, __u64 end)
{
	const __u64 base = state->base;
	const __u64 from = whole_microseconds(start > base ? start - base : 0);
	const __u64 to = whole_microseconds(end > base ? end - base : 0);

	text_literal(text, ",\"dur\" :");
	text_unsigned(text, to > from ? to - from : 0);
	text_literal(text, ",\"ts\" :");
	text_unsigned(text, from);
	text_literal(text, ",\"ph\" : \"X\",\"name\" :\"");
}

static void argument(struct text *text, bool first, const char *name, const char *value)
{
	if (!first)
		text_literal(text, ",");
	text_literal(text, "\"");
	text_string(text, name);
	text_literal(text, "\" : ");
	text_json_string(text, value);
}

static void number_argument(struct text *text, bool first, const char *name, __s64 value)
{
	char number[24];

	snprintf(number, sizeof(number), "%lld", (long long)value);
	argument(text, first, name, number);
}

/* Identifies programs: the profiler itself knows of one only. NULL: not known. */
static void program_arguments(struct text *text, bool first, const struct model_program *program)
{
	if (!program)
		return;
	argument(text, first, "program", program->name);
	number_argument(text, false, "program_id", program->id);
}

/* Of the operator that it was done for, where that is known: as the profiler itself writes it. */
static void operator_arguments(struct text *text, bool first, const struct model_operator *op)
{
	if (!op)
		return;
	argument(text, first, "op_name", op->type);
	text_literal(text, ",\"parent_name\" : \"");
	text_json_part(text, op->label, strlen(op->label));
	text_literal(text, NODE_SUFFIX "\"");
	program_arguments(text, false, op->program);
}

static void add_node(struct ort_state *state, struct text *text, const struct event_call *call)
{
	const struct model_operator *op = call->op;
	const char *label = op ? op->label : call->function->name;

	begin(state, text, "Node", call->tgid, call->tid);
	span(state, text, call->start, call->end);
	text_json_part(text, label, strlen(label));
	text_literal(text, NODE_SUFFIX "\",\"args\" : {");
	argument(text, true, "op_name", op ? op->type : call->function->name);
	if (op && op->provider)
		argument(text, false, "provider", op->provider);
	if (op && op->index >= 0)
		number_argument(text, false, "node_index", op->index);
	program_arguments(text, false, call->program);
	text_literal(text, "}}");
}

static void add_run(struct ort_state *state, struct text *text, const struct event_call *call)
{
	begin(state, text, "Session", call->tgid, call->tid);
	span(state, text, call->start, call->end);
	text_literal(text, "model_run\",\"args\" : {");
	program_arguments(text, true, call->program);
	text_literal(text, "}}");
}

static void add_launch(struct ort_state *state, struct text *text, const struct event_launch *launch)
{
	begin(state, text, "Api", launch->tgid, launch->tid);
	span(state, text, launch->start, launch->end);
	text_json_part(text, launch->function->name, strlen(launch->function->name));
	text_literal(text, "\",\"args\" : {");
	if (launch->program)
		argument(text, true, "kernel", launch->program->name);
	operator_arguments(text, !launch->program, launch->op);
	text_literal(text, "}}");
}

static void add_call(struct ort_state *state, struct text *text, const struct event_call *call)
{
	if (call->layer || call->no_end)
		return;
	switch (call->function->role) {
	case XPT_ROLE_OPERATOR:
		add_node(state, text, call);
		break;
	case XPT_ROLE_EXECUTE:
		add_run(state, text, call);
		break;
	default:
		break;
	}
}

/* What ran on a device for a traced process. */
static void add_kernel(struct ort_state *state, struct text *text, const struct event_job *job)
{
	const char *name = *job->name ? job->name : job->program ? job->program->name : "";

	if (!job->target || !job->runs || !job->done || !*name)
		return;
	begin(state, text, "Kernel", job->tgid, job->tid);
	span(state, text, job->runs, job->done);
	text_json_part(text, name, strlen(name));
	text_literal(text, "\",\"args\" : {");
	argument(text, true, "stream", *job->queue->engine ? job->queue->engine : "queue");
	operator_arguments(text, false, job->op);
	text_literal(text, "}}");
}

static void add(void *context, struct text *text, const struct event *event)
{
	struct ort_state *state = context;

	if (event->kind == EVENT_CALL)
		add_call(state, text, &event->call);
	else if (event->kind == EVENT_LAUNCH)
		add_launch(state, text, &event->launch);
	else if (event->kind == EVENT_JOB)
		add_kernel(state, text, &event->job);
}

static int begin_file(void *context, const struct recording_info *info, struct text *text)
{
	(void)text;
	((struct ort_state *)context)->base = info->monotonic_time;
	return 0;
}

static void dropped(void *context, bool any)
{
	((struct ort_state *)context)->any = any;
}

const struct event_format ort_format = {
	.head = "[\n",
	.tail = "\n]\n",
	.state_size = sizeof(struct ort_state),
	.begin = begin_file,
	.add = add,
	.dropped = dropped,
};
