/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/inference/stacks.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"
#include "base/core/vec.h"

#define NUMBER_MAX (1LL << 53) /* beyond, numbers of JSON are not exact */

struct module {
	struct keyed keyed; /* by id */
	struct model_module view;
};

struct frame {
	struct keyed keyed; /* by id */
	struct model_frame view;
};

struct stack {
	struct keyed keyed; /* by id */
	struct model_stack view;
	const struct model_frame *frames[];
};

/* A call that has returned. */
struct seen_call {
	struct keyed keyed; /* by thread and begin */
	struct map_node by_inference;
	bool open; /* its inference has not ended: it is in that map */
	const struct model_function *function;
	unsigned int program; /* id; 0: none */
	bool layer, inside;
	__u64 duration, device_time;
};

struct seen_operator {
	struct keyed keyed; /* by thread and begin */
	const struct model_operator *op;
};

struct sample {
	struct keyed keyed; /* by thread and begin of the call */
	struct xpt_record_stack_sample record;
};

/* ---- definitions ---- */

static const char *const kind_names[] = {
	[FRAME_UNKNOWN] = "unknown",	   [FRAME_NATIVE] = "native", [FRAME_PYTHON] = "python",
	[FRAME_JAVASCRIPT] = "javascript", [FRAME_KERNEL] = "kernel",
};

const char *frame_kind_name(enum frame_kind kind)
{
	return kind_names[kind];
}

/* A copy of the member; *result stays NULL where it is missing, empty, or too much is kept already. -ENOMEM. */
static int text_keep(struct stacks *stacks, const cJSON *object, const char *key, const char **result)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
	size_t size = text ? strlen(text) + 1 : 0;

	if (size <= 1 || size > STACK_TEXT_MAX - stacks->text_bytes)
		return 0;
	*result = strdup(text);
	if (!*result)
		return -ENOMEM;
	stacks->text_bytes += size;
	return 0;
}

static void module_free(void *context, struct keyed *entry)
{
	struct module *module = container_of(entry, struct module, keyed);

	(void)context;
	free((char *)module->view.path);
	free((char *)module->view.build_id);
	free(module);
}

static void frame_free(void *context, struct keyed *entry)
{
	struct frame *frame = container_of(entry, struct frame, keyed);

	(void)context;
	free((char *)frame->view.function);
	free((char *)frame->view.file);
	free(frame);
}

int stacks_add_module(struct stacks *stacks, __u64 id, const cJSON *object)
{
	struct module *module;
	int error;

	if (keyed_find(&stacks->modules, id, 0) || keyed_full(&stacks->modules))
		return 0;
	module = calloc(1, sizeof(*module));
	if (!module)
		return -ENOMEM;
	error = text_keep(stacks, object, "path", &module->view.path);
	error = error ?: text_keep(stacks, object, "build_id", &module->view.build_id);
	error = error ?: keyed_add(&stacks->modules, &module->keyed, 0, id, 0);
	if (error)
		module_free(NULL, &module->keyed);
	return error;
}

static enum frame_kind kind_get(const cJSON *object)
{
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "kind"));

	for (int i = 0; name && i < FRAME_KINDS; i++) {
		if (!strcmp(name, kind_names[i]))
			return (enum frame_kind)i;
	}
	return FRAME_UNKNOWN;
}

/* What is missing or no such number stays as it is. */
static void frame_fill(const struct stacks *stacks, const cJSON *object, struct model_frame *frame)
{
	__s64 module = -1, offset = -1, line = 0;
	const struct keyed *entry;

	frame->kind = kind_get(object);
	frame->inlined = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, "inlined"));
	json_integer_get(object, "line", 0, INT32_MAX, &line);
	frame->line = (unsigned int)line;
	json_integer_get(object, "module", 0, NUMBER_MAX, &module);
	json_integer_get(object, "offset", 0, NUMBER_MAX, &offset);
	frame->has_offset = offset >= 0;
	frame->offset = offset >= 0 ? (__u64)offset : 0;
	entry = module >= 0 ? keyed_find(&stacks->modules, (__u64)module, 0) : NULL;
	frame->module = entry ? &container_of(entry, struct module, keyed)->view : NULL;
}

int stacks_add_frame(struct stacks *stacks, __u64 id, const cJSON *object)
{
	struct frame *frame;
	int error;

	if (keyed_find(&stacks->frames, id, 0) || keyed_full(&stacks->frames))
		return 0;
	frame = calloc(1, sizeof(*frame));
	if (!frame)
		return -ENOMEM;
	frame_fill(stacks, object, &frame->view);
	error = text_keep(stacks, object, "function", &frame->view.function);
	error = error ?: text_keep(stacks, object, "file", &frame->view.file);
	error = error ?: keyed_add(&stacks->frames, &frame->keyed, 0, id, 0);
	if (error)
		frame_free(NULL, &frame->keyed);
	return error;
}

static const struct model_frame unknown_frame = { .kind = FRAME_UNKNOWN };

static const struct model_frame *frame_find(const struct stacks *stacks, __u64 id)
{
	const struct keyed *entry = keyed_find(&stacks->frames, id, 0);

	return entry ? &container_of(entry, struct frame, keyed)->view : &unknown_frame;
}

int stacks_add(struct stacks *stacks, const struct xpt_record_stack *record)
{
	const size_t count = record->frames < XPT_STACK_FRAMES_MAX ? record->frames : XPT_STACK_FRAMES_MAX;
	struct stack *stack;

	if (keyed_find(&stacks->stacks, record->id, 0) || keyed_full(&stacks->stacks) ||
	    count > MODEL_STACK_PLACES_MAX - stacks->place_count)
		return 0;
	stack = calloc(1, sizeof(*stack) + count * sizeof(stack->frames[0]));
	if (!stack)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		stack->frames[i] = frame_find(stacks, record->frame[i]);
	stack->view.frames = stack->frames;
	stack->view.count = count;
	stack->view.partial = record->flags & XPT_STACK_PARTIAL || count < record->frames;
	if (keyed_add(&stacks->stacks, &stack->keyed, 0, record->id, 0)) {
		free(stack);
		return -ENOMEM;
	}
	stacks->place_count += count;
	return 0;
}

static const struct model_stack unknown_stack = { .partial = true };

static const struct model_stack *stack_find(const struct stacks *stacks, __u64 id)
{
	const struct keyed *entry = keyed_find(&stacks->stacks, id, 0);

	return entry ? &container_of(entry, struct stack, keyed)->view : &unknown_stack;
}

/* ---- samples and their calls ---- */

static __u64 thread_key(__u32 tgid, __u32 tid)
{
	return (__u64)tgid << 32 | tid;
}

/* Programs are numbered in their order. NULL: it has been evicted. */
static const struct model_program *program_get(const struct programs *programs, unsigned int id)
{
	size_t at = vec_first(programs->count, i, programs->all[i]->view.id < id);

	return id && at < programs->count && programs->all[at]->view.id == id ? &programs->all[at]->view : NULL;
}

static const struct model_operator *operator_get(const struct stacks *stacks,
						 const struct xpt_record_stack_sample *record)
{
	struct keyed *entry = record->operator_start ?
				      keyed_find(&stacks->operators, thread_key(record->header.tgid, record->tid),
						 record->operator_start) :
				      NULL;

	return entry ? container_of(entry, struct seen_operator, keyed)->op : NULL;
}

/* call NULL: it is not known. */
static void sample_emit(const struct stacks *stacks, const struct xpt_record_stack_sample *record,
			const struct seen_call *call)
{
	struct event event = { .kind = EVENT_STACK,
			       .stack = { .tgid = record->header.tgid,
					  .tid = record->tid,
					  .time = record->header.time,
					  .stack = stack_find(stacks, record->stack),
					  .reason = (enum xpt_stack_reason)record->reason,
					  .weight = record->weight,
					  .call_start = record->call_start,
					  .op = operator_get(stacks, record) } };

	if (call) {
		event.stack.function = call->function;
		event.stack.program = program_get(stacks->programs, call->program);
		event.stack.inside = call->inside;
		event.stack.layer = call->layer;
		event.stack.duration = call->duration;
		event.stack.device_time = call->device_time;
	}
	event_dispatch_emit(stacks->events, &event);
}

/* How long an asynchronous inference takes is known at its end only. */
static bool is_ready(const struct xpt_record_stack_sample *record, const struct seen_call *call)
{
	return call && (!call->open || record->reason != XPT_STACK_CALL);
}

int stacks_sample(struct stacks *stacks, const struct xpt_record_stack_sample *record)
{
	const __u64 thread = thread_key(record->header.tgid, record->tid);
	struct keyed *entry = keyed_find(&stacks->calls, thread, record->call_start);
	const struct seen_call *call = entry ? container_of(entry, struct seen_call, keyed) : NULL;
	struct sample *sample;

	if (record->reason < XPT_STACK_CALL || record->reason > XPT_STACK_ON_CPU)
		return -EBADMSG;
	if (is_ready(record, call)) {
		sample_emit(stacks, record, call);
		return 0;
	}
	sample = calloc(1, sizeof(*sample));
	if (!sample)
		return -ENOMEM;
	sample->record = *record;
	if (!keyed_add(&stacks->samples, &sample->keyed, 0, thread, record->call_start))
		return 0;
	free(sample);
	return -ENOMEM;
}

/* Emits what has waited for the call. */
static void samples_emit(struct stacks *stacks, const struct seen_call *call)
{
	struct keyed *entry = keyed_find(&stacks->samples, call->keyed.node.a, call->keyed.node.b), *following;
	struct sample *sample;

	for (; entry; entry = following) {
		following = keyed_next(entry);
		sample = container_of(entry, struct sample, keyed);
		if (!is_ready(&sample->record, call))
			continue;
		sample_emit(stacks, &sample->record, call);
		keyed_remove(&stacks->samples, entry);
		free(sample);
	}
}

static int operator_note(struct stacks *stacks, const struct event_call *call)
{
	struct seen_operator *seen = call->op ? calloc(1, sizeof(*seen)) : NULL;

	if (!call->op)
		return 0;
	if (!seen)
		return -ENOMEM;
	seen->op = call->op;
	if (!keyed_add(&stacks->operators, &seen->keyed, call->op->process->sort_index,
		       thread_key(call->tgid, call->tid), call->start))
		return 0;
	free(seen);
	return -ENOMEM;
}

static int call_note(struct stacks *stacks, const struct event_call *call)
{
	struct seen_call *seen;

	if (call->function->role == XPT_ROLE_OPERATOR)
		return operator_note(stacks, call);
	seen = calloc(1, sizeof(*seen));
	if (!seen)
		return -ENOMEM;
	seen->function = call->function;
	seen->program = call->program ? call->program->id : 0;
	seen->inside = call->inside;
	seen->layer = call->layer;
	seen->duration = call->end - call->start;
	seen->device_time = call->device.device_time;
	if (call->flow_out && map_add(&stacks->by_inference, &seen->by_inference, call->flow_out, 0)) {
		free(seen);
		return -ENOMEM;
	}
	seen->open = call->flow_out;
	if (keyed_add(&stacks->calls, &seen->keyed, 0, thread_key(call->tgid, call->tid), call->start)) {
		if (seen->open)
			map_remove(&stacks->by_inference, &seen->by_inference);
		free(seen);
		return -ENOMEM;
	}
	samples_emit(stacks, seen);
	return 0;
}

/* Of one whose end is not known, no time is. */
static void inference_end(struct stacks *stacks, const struct event_inference *inference)
{
	struct map_node *node = map_find(&stacks->by_inference, inference->id, 0);
	struct seen_call *call;

	if (!node)
		return;
	call = container_of(node, struct seen_call, by_inference);
	map_remove(&stacks->by_inference, node);
	call->open = false;
	call->duration = inference->completed > inference->start ? inference->completed - inference->start : 0;
	call->device_time = inference->device.device_time;
	samples_emit(stacks, call);
}

int stacks_event(void *context, const struct event *event)
{
	if (event->kind == EVENT_CALL)
		return call_note(context, &event->call);
	if (event->kind == EVENT_INFERENCE || event->kind == EVENT_UNPAIRED)
		inference_end(context, &event->inference);
	return 0;
}

/* ---- what makes room ---- */

static void call_release(void *context, struct keyed *entry)
{
	struct seen_call *call = container_of(entry, struct seen_call, keyed);
	struct stacks *stacks = context;

	if (call->open)
		map_remove(&stacks->by_inference, &call->by_inference);
	free(call);
}

static void sample_release(void *context, struct keyed *entry)
{
	struct sample *sample = container_of(entry, struct sample, keyed);
	struct stacks *stacks = context;
	struct keyed *call = keyed_find(&stacks->calls, entry->node.a, entry->node.b);

	sample_emit(stacks, &sample->record, call ? container_of(call, struct seen_call, keyed) : NULL);
	free(sample);
}

void stacks_init(struct stacks *stacks, struct event_dispatch *events, const struct programs *programs)
{
	stacks->events = events;
	stacks->programs = programs;
	keyed_init(&stacks->modules, MODEL_MODULES_MAX, module_free, NULL);
	keyed_init(&stacks->frames, MODEL_FRAMES_MAX, frame_free, NULL);
	keyed_init(&stacks->stacks, MODEL_STACKS_MAX, NULL, NULL);
	keyed_init(&stacks->calls, STACK_CALLS_MAX, call_release, stacks);
	keyed_init(&stacks->operators, STACK_CALLS_MAX, NULL, NULL);
	keyed_init(&stacks->samples, STACK_SAMPLES_MAX, sample_release, stacks);
}

void stacks_drop_process(struct stacks *stacks, const struct process *process)
{
	keyed_drop_owner(&stacks->operators, process->view.sort_index);
}

/* Calls that have not ended their inference by now never will. */
void stacks_drop_all(struct stacks *stacks)
{
	struct seen_call *call;

	link_for_each(call, &stacks->calls.all, keyed.age) {
		if (call->open)
			call->duration = call->device_time = 0;
	}
	while (!link_alone(&stacks->samples.all))
		keyed_drop(&stacks->samples, keyed_oldest(&stacks->samples));
}

void stacks_free(struct stacks *stacks)
{
	struct event_dispatch silent = {};

	stacks->events = &silent;
	keyed_free(&stacks->samples);
	keyed_free(&stacks->calls);
	keyed_free(&stacks->operators);
	map_free(&stacks->by_inference);
	keyed_free(&stacks->stacks);
	keyed_free(&stacks->frames);
	keyed_free(&stacks->modules);
}
