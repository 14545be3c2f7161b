/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of any content into the model, and every field of every event and table read.
 *
 * The input is a row of records, each as: kind, length, then so many bytes of the record after its kind and size. With
 * bit 7 of the kind clear the record is tidied up: few processes, threads, handles and times, so that records meet; with
 * it set the bytes are taken as they are. Bit 6 leaves the size odd or too small.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/model.h"
#include "model/stats/statistics.h"
#include "report/flame/flame.h"

#define RAW 0x80
#define BAD_SIZE 0x40
#define KIND 0x3f

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
	const char *role;
	unsigned int success;
	const char *fetches;
	unsigned int values;
} specs[] = {
	{ "program.load", 1,
	  "\"name\",\"type\":\"string\"},{\"meaning\":\"program\",\"type\":\"u64\",\"at_return\":true},"
	  "{\"meaning\":\"parent\",\"type\":\"u64\"},{\"meaning\":\"status\",\"type\":\"s32\"",
	  3 },
	{ "program.name", 0, "\"program\",\"type\":\"u64\"},{\"meaning\":\"name\",\"type\":\"string\"", 1 },
	{ "program.unload", 0, "\"program\",\"type\":\"u64\"", 1 },
	{ "execute", 1, "\"program\",\"type\":\"u64\"},{\"meaning\":\"status\",\"type\":\"s32\"", 2 },
	{ "enqueue", 3,
	  "\"program\",\"type\":\"u64\"},{\"meaning\":\"key\",\"type\":\"u64\",\"at_return\":true},"
	  "{\"meaning\":\"stream\",\"type\":\"u64\"",
	  3 },
	{ "wait", 1,
	  "\"key\",\"type\":\"u64\"},{\"meaning\":\"count\",\"type\":\"u8\"},"
	  "{\"meaning\":\"status\",\"type\":\"s32\"",
	  3 },
	{ "wait", 0, "\"stream\",\"type\":\"u64\"", 1 },
	{ "launch", 0,
	  "\"program\",\"type\":\"u64\"},{\"meaning\":\"stream\",\"type\":\"u64\"},"
	  "{\"meaning\":\"key\",\"type\":\"u64\"",
	  3 },
	{ "alloc", 3, "\"size\",\"type\":\"u64\"},{\"meaning\":\"address\",\"type\":\"u64\",\"at_return\":true", 2 },
	{ "free", 0, "\"address\",\"type\":\"u64\"", 1 },
	{ "region.begin", 0, "\"program\",\"type\":\"u64\"},{\"meaning\":\"name\",\"type\":\"string\"", 1 },
	{ "region.end", 0, "\"program\",\"type\":\"u64\"", 1 },
	{ "copy", 2, "\"size\",\"type\":\"u64\"},{\"meaning\":\"status\",\"type\":\"u64\"", 2 },
	{ "operator", 0,
	  "\"object\",\"type\":\"u64\"},{\"meaning\":\"class\",\"type\":\"u64\"},"
	  "{\"meaning\":\"program\",\"type\":\"u64\"},{\"meaning\":\"inference\",\"type\":\"u64\"",
	  4 },
};

#define SPECS (sizeof(specs) / sizeof(specs[0]))

/* Drivers of each pairing; the second is joined with the first. */
static const char *const drivers[] = {
	("{\"name\":\"unique\",\"pairing\":0,\"bits\":64,\"ioctls\":[{\"number\":1,\"name\":\"S\",\"role\":7}],"
	 "\"nodes\":[{\"index\":0,\"path\":\"/dev/a\"}]}"),
	"{\"name\":\"latest\",\"pairing\":1,\"bits\":32,\"joins\":[{\"driver\":0,\"bits\":32}]}",
	"{\"name\":\"order\",\"pairing\":2,\"bits\":64}",
};

#define DRIVERS (sizeof(drivers) / sizeof(drivers[0]))

/* Each driver has all of these. */
static const struct {
	unsigned int role, key;
	const char *fields;
	size_t size; /* of the values */
} driver_events[] = {
	{ 1, 2,
	  "{\"meaning\":1},{\"meaning\":1},{\"meaning\":3,\"text\":true},{\"meaning\":2,\"text\":true},{\"meaning\":4}",
	  88 },
	{ 1, 2, "{\"meaning\":1},{\"meaning\":1},{\"meaning\":3},{\"meaning\":6,\"text\":true}", 56 },
	{ 2, 2, "{\"meaning\":1},{\"meaning\":1},{\"meaning\":3,\"signed\":true}", 24 },
	{ 2, 2, "{\"meaning\":1},{\"meaning\":1}", 16 },
	{ 3, 2, "{\"meaning\":1},{\"meaning\":1},{\"meaning\":11,\"signed\":true},{\"meaning\":12}", 32 },
	{ 4, 2, "{\"meaning\":1},{\"meaning\":1},{\"meaning\":11}", 24 },
	{ 6, 0, "{\"meaning\":2,\"text\":true},{\"meaning\":3},{\"meaning\":7},{\"meaning\":8}", 56 },
	{ 7, 0, "{\"meaning\":9}", 8 },
};

#define DRIVER_EVENTS (sizeof(driver_events) / sizeof(driver_events[0]))

/* Of each kind; two are read around calls. */
static const char *const counters[] = {
	"{\"name\":\"sum\",\"kind\":\"sum\",\"slots\":2,\"each_cpu\":true,\"scale\":0.5}",
	"{\"name\":\"mean\",\"kind\":\"mean\",\"unit\":\"MHz\",\"slots\":1,\"scale\":1}",
	"{\"name\":\"level\",\"kind\":\"level\"}",
};

#define COUNTERS (sizeof(counters) / sizeof(counters[0]))

static volatile size_t touched; /* what is read must not be optimised away */

static void touch_text(const char *text)
{
	touched += strlen(text);
}

static void touch_bytes(const void *bytes, size_t size)
{
	const unsigned char *byte = bytes;

	while (size--)
		touched += *byte++;
}

static void touch_process(const struct model_process *process)
{
	touch_bytes(process, sizeof(*process));
	touch_text(process->name);
	touch_text(process->command);
}

static void touch_statistics(const struct statistics *statistics)
{
	if (!statistics)
		return;
	if (statistics_count(statistics) && statistics_quantile(statistics, 0.5) > statistics_max(statistics))
		abort();
	touched += (size_t)(statistics_deviation(statistics) + statistics_mean(statistics) > 1);
}

static void touch_program(const struct model_program *program)
{
	if (!program)
		return;
	touch_bytes(program, sizeof(*program));
	touch_text(program->name);
	touch_text(program->runtime);
	touch_process(program->process);
	touch_statistics(program->latency);
	if (program->errors + program->pending > 2 * program->recorded)
		abort();
}

static void touch_function(const struct model_function *function)
{
	touch_text(function->name);
	touch_text(function->runtime);
	if (!function->role)
		abort();
}

static void touch_times(const struct model_device_times *times)
{
	if (times->unfinished > times->jobs || times->failed > times->jobs || (times->unfinished && times->done) ||
	    (times->runs && times->done && times->runs > times->done) || times->submit_begins > times->submit_ends)
		abort();
}

static void touch_queue(const struct model_queue *queue)
{
	touch_bytes(queue, sizeof(*queue));
	touch_text(queue->driver);
	touch_text(queue->device);
	touch_text(queue->engine);
	if (!queue->id || queue->failed > queue->jobs || queue->target_jobs > queue->jobs ||
	    queue->target_time > queue->busy_time || queue->first > queue->last ||
	    queue->busy_time > queue->last - queue->first)
		abort();
}

static void touch_job(const struct event_job *job)
{
	touch_queue(job->queue);
	touch_text(job->name);
	touch_program(job->program);
	if (job->process)
		touch_process(job->process);
	if (!job->id || (job->queued && job->runs && job->queued > job->runs) ||
	    (job->runs && job->done && job->runs > job->done) || (job->target && (!job->tid || !job->process)))
		abort();
}

static void touch_device(const struct event_device *device)
{
	touch_text(device->driver);
	touch_text(device->event);
	touch_text(device->device);
	touch_text(device->engine);
	touch_text(device->name);
	if (device->queue)
		touch_queue(device->queue);
}

static void touch_counter(const struct model_counter *counter)
{
	touch_text(counter->name);
	touch_text(counter->unit);
	touch_text(counter->description);
	touch_text(counter->source);
	if (counter->least > counter->most || counter->slots > XPT_SLOT_MAX)
		abort();
}

static void touch_counts(const struct model_counts *counts)
{
	if (counts->count > XPT_SLOT_MAX)
		abort();
	for (unsigned int i = 0; i < counts->count; i++) {
		touch_counter(counts->counters[i]);
		if (counts->value[i] < 0)
			abort();
	}
}

static void touch_call(const struct event_call *call)
{
	touch_function(call->function);
	touch_program(call->program);
	if (call->status_name)
		touch_text(call->status_name);
	if (call->numbered &&
	    (call->layer || (call->function->role != XPT_ROLE_EXECUTE && call->function->role != XPT_ROLE_ENQUEUE &&
			     call->function->role != XPT_ROLE_LAUNCH)))
		abort();
	touch_times(&call->device);
	touch_counts(&call->counts);
	if (!call->name != !(call->have & (1u << XPT_MEANING_NAME)) || call->start > call->end || !call->sample)
		abort();
	if (!call->name)
		return;
	touch_bytes(call->name, call->name_length + 1);
	if (strlen(call->name) > call->name_length)
		abort();
}

static void touch_inference(const struct event_inference *inference)
{
	touch_program(inference->program);
	touch_function(inference->function);
	if (inference->status_name)
		touch_text(inference->status_name);
	touch_times(&inference->device);
	touch_counts(&inference->counts);
	if (inference->enqueued < inference->start || !inference->sample || inference->in_queue >= MODEL_PENDING_MAX)
		abort();
}

static void touch_count(const struct event_count *count)
{
	touch_program(count->program);
	if (!(count->delta.calls | count->delta.left_out | count->delta.lost | count->delta.layers) ||
	    !count->program->total_known)
		abort();
}

static void touch_if_reported(const char *text)
{
	if (text)
		touch_text(text);
}

static void touch_code(const struct event_code *code)
{
	touch_text(code->kind);
	touch_if_reported(code->machine);
	touch_if_reported(code->name);
	touch_if_reported(code->uri);
	touch_if_reported(code->sha256);
	touch_if_reported(code->runtime);
	touch_if_reported(code->function);
	touch_if_reported(code->error);
	for (size_t i = 0; i < code->kernel_count; i++)
		touch_text(code->kernels[i]);
	if (code->unloaded && !code->handle)
		abort();
}

static void touch_stack(const struct event_stack *stack)
{
	if (stack->stack->count > XPT_STACK_FRAMES_MAX || stack->reason < XPT_STACK_CALL ||
	    stack->reason > XPT_STACK_ON_CPU)
		abort();
	for (size_t i = 0; i < stack->stack->count; i++) {
		const struct model_frame *frame = stack->stack->frames[i];

		touch_text(frame_kind_name(frame->kind));
		touch_if_reported(frame->function);
		touch_if_reported(frame->file);
		if (frame->module) {
			touch_if_reported(frame->module->path);
			touch_if_reported(frame->module->build_id);
		}
	}
	if (stack->function)
		touch_function(stack->function);
	touch_program(stack->program);
	if (stack->op)
		touch_text(stack->op->label);
}

static int touch_event(void *context, const struct event *event)
{
	(*(size_t *)context)++;
	touch_bytes(event, sizeof(*event));
	switch (event->kind) {
	case EVENT_PROCESS:
		touch_process(event->process);
		break;
	case EVENT_THREAD:
		touch_text(event->thread.name);
		break;
	case EVENT_CALL:
		touch_call(&event->call);
		break;
	case EVENT_INFERENCE:
		touch_inference(&event->inference);
		if (event->inference.end <= event->inference.start)
			abort();
		break;
	case EVENT_UNPAIRED:
		touch_inference(&event->inference);
		if (event->inference.end || (event->inference.function->role != XPT_ROLE_ENQUEUE &&
					     event->inference.function->role != XPT_ROLE_LAUNCH))
			abort();
		break;
	case EVENT_COUNT:
		touch_count(&event->count);
		break;
	case EVENT_COUNTER:
		touch_text(event->counter.runtime);
		touch_text(event->counter.name);
		break;
	case EVENT_PROGRAM:
		touch_program(event->program.program);
		break;
	case EVENT_JOB:
		touch_job(&event->job);
		break;
	case EVENT_QUEUE:
		touch_queue(event->queue.queue);
		if (event->queue.busy_time != event->queue.queue->busy_time)
			abort();
		break;
	case EVENT_DEVICE:
		touch_device(&event->device);
		break;
	case EVENT_IOCTL:
		touch_text(event->ioctl.driver);
		touch_text(event->ioctl.node);
		touch_text(event->ioctl.name);
		if (event->ioctl.start > event->ioctl.end)
			abort();
		break;
	case EVENT_BUDGET:
		touch_if_reported(event->budget->name);
		if (event->budget->action >= BUDGET_ACTIONS || !event->budget->every ||
		    (event->budget->action == BUDGET_SITE && !event->budget->name) ||
		    event->budget->since > event->budget->time)
			abort();
		break;
	case EVENT_READING:
		touch_counter(event->reading.counter);
		if (event->reading.since > event->reading.time)
			abort();
		break;
	case EVENT_LOST:
		touch_text(loss_name(event->lost.cause));
		if (event->lost.since > event->lost.time)
			abort();
		break;
	case EVENT_CODE:
		touch_code(&event->code);
		break;
	case EVENT_TASK:
		touch_text(event->task.name);
		break;
	case EVENT_STACK:
		touch_stack(&event->stack);
		break;
	case EVENT_REGION:
		touch_text(event->region.runtime);
		touch_text(event->region.name);
		if (event->region.start > event->region.end)
			abort();
		break;
	default:
		break;
	}
	return 0;
}

static void touch_model(const struct model *model)
{
	const struct model_region_total *region;
	const struct model_call_total *total;
	size_t i;

	for (i = 0; i < model_program_count(model); i++)
		touch_program(model_program(model, i));
	for (i = 0; i < model_call_total_count(model); i++) {
		total = model_call_total(model, i);
		touch_function(total->function);
		touch_process(total->process);
		touch_statistics(total->duration);
	}
	for (i = 0; i < model_region_total_count(model); i++) {
		region = model_region_total(model, i);
		touch_text(region->name);
		touch_text(region->runtime);
		touch_process(region->process);
		touch_statistics(region->duration);
	}
	for (i = 0; i < model_queue_count(model); i++)
		touch_queue(model_queue(model, i));
	for (i = 0; i < model_counter_count(model); i++)
		touch_counter(model_counter(model, i));
	for (i = 0; i < model_code_object_count(model); i++) {
		touch_text(model_code_object(model, i)->kind);
		touch_if_reported(model_code_object(model, i)->uri);
		touch_if_reported(model_code_object(model, i)->name);
		if (model_code_object(model, i)->unloads > model_code_object(model, i)->loads)
			abort();
	}
	for (i = 0; i < model_code_totals(model)->kind_count; i++)
		touch_text(model_code_totals(model)->kinds[i].name);
	if (model_end_text(model))
		touch_text(model_end_text(model));
}

static void text_feed(struct model *model, unsigned int kind, uint64_t id, const char *text)
{
	char bytes[2048] __attribute__((aligned(8))) = { 0 };
	struct xpt_record_text *record = (void *)bytes;

	record->header.kind = (uint16_t)kind;
	record->header.size = (uint16_t)XPT_ALIGN8(sizeof(*record) + strlen(text));
	record->id = id;
	record->length = (uint32_t)strlen(text);
	memcpy(record->text, text, strlen(text));
	if (model_feed(model, &record->header))
		abort();
}

static void describe_drivers(struct model *model)
{
	char text[1024];
	size_t i, j;

	for (i = 0; i < DRIVERS; i++) {
		text_feed(model, XPT_RECORD_DRIVER, i, drivers[i]);
		for (j = 0; j < DRIVER_EVENTS; j++) {
			snprintf(text, sizeof(text),
				 "{\"driver\":%zu,\"event\":\"d:e\",\"role\":%u,\"key\":%u,\"by_thread\":%s,\"fields\":[%s]}",
				 i, driver_events[j].role, driver_events[j].key,
				 driver_events[j].role == 2 ? "false" : "true", driver_events[j].fields);
			text_feed(model, XPT_RECORD_DRIVER_EVENT, i * DRIVER_EVENTS + j, text);
		}
	}
}

static void describe(struct model *model)
{
	char text[1024];
	size_t i;

	for (i = 0; i < COUNTERS; i++)
		text_feed(model, XPT_RECORD_COUNTER, i, counters[i]);
	text_feed(model, XPT_RECORD_RUNTIME, 0,
		  "{\"name\":\"r\",\"statuses\":[{\"value\":6,\"class\":\"pending\",\"name\":\"P\"}]}");
	for (i = 0; i < SPECS; i++) {
		snprintf(text, sizeof(text),
			 "{\"runtime\":0,\"function\":\"f%zu\",\"role\":\"%s\",\"success\":%u,\"fetches\":[{\"meaning\":%s}]}",
			 i, specs[i].role, specs[i].success, specs[i].fetches);
		text_feed(model, XPT_RECORD_SPEC, i, text);
		text_feed(model, XPT_RECORD_COST, i, "{\"cost_ns\":1500,\"inside_ns\":600}");
	}
	text_feed(model, XPT_RECORD_BUDGET, 0, "{\"action\":\"sampling\",\"every\":8,\"runtime\":0,\"handle\":1}");
}

/* Times are in steps of about a millisecond: some waits of the model are over within an input. */
#define STEP_BITS 20

static void event_tidy(struct xpt_record_event *event)
{
	event->tid &= 3;
	event->event %= DRIVERS * DRIVER_EVENTS;
	event->thread &= XPT_THREAD_TARGET | XPT_THREAD_IN_CALL;
	event->header.size = (uint16_t)(sizeof(*event) + driver_events[event->event % DRIVER_EVENTS].size);
	if (!driver_events[event->event % DRIVER_EVENTS].key)
		return;
	event->value[0] &= 0x300000001;
	event->value[1] &= 3;
}

static void ioctl_tidy(struct xpt_record_ioctl *ioctl)
{
	ioctl->tid &= 3;
	ioctl->node = 0;
	ioctl->command &= 3;
	ioctl->start = ioctl->header.time - ((ioctl->start & 0xff) << STEP_BITS) % (ioctl->header.time + 1);
}

static void call_tidy(struct xpt_record_call *call)
{
	unsigned int i;

	call->spec %= SPECS;
	call->tid &= 3;
	call->start = call->header.time - ((call->start & 0xff) << STEP_BITS) % (call->header.time + 1);
	call->values = (uint8_t)specs[call->spec].values;
	for (i = 0; i < call->values; i++)
		call->value[i] &= call->values == 4 && i == 3 ? 0xfff : 7;
	if (call->values == 4) /* of an operator: when its inference has begun */
		call->value[3] <<= STEP_BITS;
}

static void region_tidy(struct xpt_record_region *region)
{
	region->tid &= 3;
	region->spec %= SPECS;
	region->handle &= 3;
	region->name &= 3;
	region->start = region->header.time - ((region->start & 0xff) << STEP_BITS) % (region->header.time + 1);
}

static void key_tidy(struct xpt_program_key *key)
{
	key->tgid &= 3;
	key->runtime = 0;
	key->spec %= SPECS + 1;
	key->handle &= 7;
}

static void stack_tidy(struct xpt_record_stack *stack)
{
	stack->id &= 3;
	stack->frames &= 7;
	for (unsigned int i = 0; i < stack->frames; i++)
		stack->frame[i] &= 7;
}

static void sample_tidy(struct xpt_record_stack_sample *sample)
{
	sample->tid &= 3;
	sample->stack &= 3;
	sample->reason &= 3;
	sample->call_start = (sample->call_start & 0xfff) << STEP_BITS;
	sample->operator_start = (sample->operator_start & 0xfff) << STEP_BITS;
}

static void record_tidy(struct xpt_record_header *record)
{
	struct xpt_record_string *string = (void *)record;
	struct xpt_record_count *count = (void *)record;
	struct xpt_record_text *text = (void *)record;

	record->tgid &= 3;
	record->time = (record->time & 0xfff) << STEP_BITS;
	switch (record->kind) {
	case XPT_RECORD_CALL:
		call_tidy((void *)record);
		break;
	case XPT_RECORD_REGION:
		region_tidy((void *)record);
		break;
	case XPT_RECORD_EVENT:
		event_tidy((void *)record);
		break;
	case XPT_RECORD_IOCTL:
		ioctl_tidy((void *)record);
		break;
	case XPT_RECORD_STRING:
		string->tid &= 3;
		string->spec %= SPECS;
		string->fetch &= 1;
		string->call_start = (string->call_start & 0xfff) << STEP_BITS;
		string->length &= 15;
		break;
	case XPT_RECORD_TASK:
		((struct xpt_record_task *)record)->event = ((struct xpt_record_task *)record)->event % 3 + 1;
		((struct xpt_record_task *)record)->other &= 3;
		break;
	case XPT_RECORD_TOTAL:
		key_tidy(&((struct xpt_record_total *)record)->key);
		break;
	case XPT_RECORD_COUNT:
		key_tidy(&count->key);
		count->since = record->time - ((count->since & 0xff) << STEP_BITS) % (record->time + 1);
		count->count.calls &= 0xff;
		break;
	case XPT_RECORD_READING:
		((struct xpt_record_reading *)record)->values %= COUNTERS + 1;
		break;
	case XPT_RECORD_CODE_OBJECT:
	case XPT_RECORD_CODE_UNLOADED:
		text->id &= 7;
		text->length &= 0x7f;
		break;
	case XPT_RECORD_SYMBOL:
	case XPT_RECORD_NAMED:
		text->id &= 7;
		text->length &= 15;
		break;
	case XPT_RECORD_MODULE:
	case XPT_RECORD_FRAME:
		text->id &= 7;
		text->length &= 0x7f;
		break;
	case XPT_RECORD_STACK:
		stack_tidy((void *)record);
		break;
	case XPT_RECORD_STACK_SAMPLE:
		sample_tidy((void *)record);
		break;
	case XPT_RECORD_PROCESS:
	case XPT_RECORD_THREAD:
	case XPT_RECORD_END:
		text->length &= 0x7f;
		break;
	default:
		break;
	}
}

static const struct log silent;

/* Each document of the graph. */
static void touch_flame(struct flame *flame, enum xpt_flame what)
{
	struct flame_tree *tree;
	struct text text = { 0 };

	for (unsigned int i = 0; i < 2; i++) {
		if (flame_tree_create(flame, i ? flame : NULL, !i, &tree))
			return;
		flame_add_folded(&text, tree, i);
		flame_add_svg(&text, tree, i, flame_words(what));
		flame_add_speedscope(&text, tree, flame_words(what));
		flame_add_pprof(&text, tree, flame_words(what));
		touch_bytes(text.data, text.length);
		flame_tree_free(tree);
	}
	text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct flame_options options = { .log = &silent, .what = size % 4 + 1 };
	struct flame *flame;
	char bytes[512] __attribute__((aligned(8)));
	struct xpt_record_header *record = (void *)bytes;
	struct model *model;
	size_t events = 0, length;
	unsigned int kind;

	if (model_create(NULL, &model))
		return 0;
	if (model_add_sink(model, (struct event_sink){ .write = touch_event, .context = &events }))
		abort();
	if (flame_open(&options, model, &flame))
		abort();
	describe(model);
	describe_drivers(model);
	/* Inputs of odd size run as a session without end does. */
	if (size & 1)
		model_keep_released(model, 2);
	while (size >= 2) {
		kind = data[0];
		length = data[1] < size - 2 ? data[1] : size - 2;
		memset(bytes, 0, sizeof(bytes));
		memcpy(bytes + 4, data + 2, length);
		record->kind = kind & KIND;
		record->size = (uint16_t)(kind & BAD_SIZE ? length : XPT_ALIGN8(length + 4 < 88 ? 88 : length + 4));
		if (!(kind & RAW))
			record_tidy(record);
		model_feed(model, record);
		data += 2 + length;
		size -= 2 + length;
	}
	touch_model(model);
	model_flush(model);
	touch_model(model);
	touch_flame(flame, options.what);
	flame_free(flame);
	model_free(model);
	return 0;
}
