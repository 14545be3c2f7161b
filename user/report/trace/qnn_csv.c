/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The profiling CSV of ONNX Runtime's QNN execution provider: its columns, words and units, so that what people have for
 * it reads ours. An inference is an EXECUTE row, followed by what the device did for it and by its operators, as NODE
 * rows in the order of execution. Basic: no operators, no timestamps. Timestamps are whole microseconds of
 * CLOCK_MONOTONIC. See SCHEMA.md.
 */
#include "report/trace/csv_text.h"
#include "report/trace/event_file.h"

struct qnn_state {
	bool basic;
	struct operator_buffer hold;
};

/* An inference, however it was run. */
struct run {
	__u32 tgid, tid; /* of the thread that began it */
	__u64 start, end;
	const struct model_program *program; /* NULL: not known */
	const struct model_device_times *device;
};

static int begin_detailed(void *context, const struct recording_info *info, struct text *text)
{
	(void)info;
	(void)text;
	operator_buffer_init(&((struct qnn_state *)context)->hold);
	return 0;
}

static int begin_basic(void *context, const struct recording_info *info, struct text *text)
{
	((struct qnn_state *)context)->basic = true;
	return begin_detailed(context, info, text);
}

/* time: when it began, 0: not known. identifier NULL: has none. */
static void add_row(const struct qnn_state *state, struct text *text, const char *message, __u64 time,
		    __u64 microseconds, const char *level, const char *identifier)
{
	if (time && !state->basic)
		text_unsigned(text, whole_microseconds(time));
	else
		text_literal(text, "UNKNOWN");
	text_literal(text, ",");
	text_string(text, message);
	text_literal(text, ",");
	text_unsigned(text, microseconds);
	text_literal(text, ",US,BACKEND,");
	text_string(text, level);
	text_literal(text, ",");
	csv_line(text, identifier ?: "NULL");
	text_literal(text, "\n");
}

/* Both ends are rounded, and not the time between them: what touches does so afterwards, too. */
static void add_span(const struct qnn_state *state, struct text *text, const char *message, __u64 start, __u64 end,
		     const char *level, const char *identifier)
{
	add_row(state, text, message, start, whole_microseconds(end) - whole_microseconds(start), level, identifier);
}

static void add_device(const struct qnn_state *state, struct text *text, const struct model_device_times *device)
{
	if (device->queue_time)
		add_row(state, text, "EXECUTE QUEUE WAIT", 0, whole_microseconds(device->queue_time), "SUB-EVENT",
			NULL);
	if (device->device_time)
		add_row(state, text, "EXECUTE DEVICE", device->runs, whole_microseconds(device->device_time),
			"SUB-EVENT", NULL);
}

static void add_run(struct qnn_state *state, struct text *text, const struct run *run)
{
	struct held_operators *held = operator_buffer_take(&state->hold, run->tgid, run->tid, run->start);
	const struct held_operator *op;

	add_span(state, text, "EXECUTE", run->start, run->end, "ROOT", run->program ? run->program->name : NULL);
	add_device(state, text, run->device);
	for (size_t i = 0; held && i < held->count; i++) {
		op = &held->op[i];
		add_span(state, text, "NODE", op->start, op->end, "SUB-EVENT", held->labels.data + op->label);
	}
	held_operators_free(held);
}

static void add_operator(struct qnn_state *state, struct text *text, const struct event_call *call)
{
	int error;

	if (state->basic || !call->inference)
		return;
	error = operator_buffer_add(&state->hold, call, call->op ? call->op->label : call->function->name);
	if (error)
		text->error = error;
}

/* A load or an unload. One that has failed has no program. */
static void add_life(const struct qnn_state *state, struct text *text, const struct event_call *call,
		     const char *message)
{
	if (call->program)
		add_span(state, text, message, call->start, call->end, "ROOT", call->program->name);
}

static void add_call(struct qnn_state *state, struct text *text, const struct event_call *call)
{
	const struct run run = { call->tgid, call->tid, call->start, call->end, call->program, &call->device };

	if (call->layer || call->no_end)
		return;
	switch (call->function->role) {
	case XPT_ROLE_PROGRAM_LOAD:
		add_life(state, text, call, "INIT");
		break;
	case XPT_ROLE_PROGRAM_UNLOAD:
		add_life(state, text, call, "DE-INIT");
		break;
	case XPT_ROLE_EXECUTE:
		add_run(state, text, &run);
		break;
	case XPT_ROLE_OPERATOR:
		add_operator(state, text, call);
		break;
	default:
		break;
	}
}

/* An asynchronous one; launches of kernels are none. */
static void add_inference(struct qnn_state *state, struct text *text, const struct event_inference *inference)
{
	const struct run run = { inference->tgid, inference->tid,     inference->start,
				 inference->end,  inference->program, &inference->device };

	if (inference->function->role == XPT_ROLE_ENQUEUE)
		add_run(state, text, &run);
}

/* It never ends: its operators have no row to follow. */
static void drop_inference(struct qnn_state *state, const struct event_inference *inference)
{
	held_operators_free(operator_buffer_take(&state->hold, inference->tgid, inference->tid, inference->start));
}

static void add(void *context, struct text *text, const struct event *event)
{
	if (event->kind == EVENT_CALL)
		add_call(context, text, &event->call);
	else if (event->kind == EVENT_INFERENCE)
		add_inference(context, text, &event->inference);
	else if (event->kind == EVENT_UNPAIRED && event->inference.function->role == XPT_ROLE_ENQUEUE)
		drop_inference(context, &event->inference);
}

static void report(const void *context, const struct log *log)
{
	const struct qnn_state *state = context;

	if (state->hold.dropped)
		log_warn(log, "%llu operators are not in the CSV: too many inferences with too many were under way",
			 (unsigned long long)state->hold.dropped);
}

static void clear(void *context)
{
	struct qnn_state *state = context;

	operator_buffer_free(&state->hold);
}

#define HEAD "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier\n"

const struct event_format qnn_csv_basic = {
	.head = HEAD,
	.tail = "",
	.append = true,
	.state_size = sizeof(struct qnn_state),
	.begin = begin_basic,
	.add = add,
	.clear = clear,
};

const struct event_format qnn_csv_detailed = {
	.head = HEAD,
	.tail = "",
	.append = true,
	.state_size = sizeof(struct qnn_state),
	.begin = begin_detailed,
	.add = add,
	.report = report,
	.clear = clear,
};
