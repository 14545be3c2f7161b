/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/core/model.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"
#include "model/core/state.h"
#include "model/stream/records.h"

int model_create(const struct log *log, struct model **result)
{
	struct model *model = calloc(1, sizeof(*model));

	if (!model)
		return -ENOMEM;
	model->log = log;
	processes_init(&model->processes, &model->events);
	name_table_init(&model->handles, USER_ALIASES_MAX, true);
	name_table_init(&model->fingerprints, USER_ALIASES_MAX, true);
	name_table_init(&model->symbols, MODEL_SYMBOLS_MAX, true);
	programs_init(&model->programs, &model->events, &model->processes);
	keyed_init(&model->strings, STRINGS_MAX, NULL, NULL);
	totals_init(&model->totals, &model->events, &model->processes);
	jobs_init(&model->jobs, &model->events, &model->processes, &model->drivers, &model->tree);
	call_tree_init(&model->tree, &model->events, &model->jobs);
	async_init(&model->async, &model->events, &model->jobs.observers, &model->samples);
	memory_init(&model->memory, &model->events);
	regions_init(&model->regions, &model->events, &model->processes);
	counter_samples_init(&model->samples, &model->events);
	operator_set_init(&model->operators, &model->events);
	code_objects_init(&model->code, &model->events);
	stacks_init(&model->stacks, &model->events, &model->programs);
	*result = model;
	return 0;
}

void model_free(struct model *model)
{
	if (!model)
		return;
	program_filter_free(&model->filter);
	code_objects_free(&model->code); /* refers to processes */
	name_table_free(&model->symbols);
	counter_samples_free(&model->samples);
	regions_free(&model->regions);
	memory_free(&model->memory);
	stacks_free(&model->stacks);
	async_free(&model->async);    /* refers to programs, and to what follows jobs */
	call_tree_free(&model->tree); /* refers to jobs and programs */
	jobs_free(&model->jobs);      /* refers to programs and operators */
	operator_set_free(&model->operators);
	totals_free(&model->totals);
	keyed_free(&model->strings);
	name_table_free(&model->handles);
	name_table_free(&model->fingerprints);
	programs_free(&model->programs);
	processes_free(&model->processes);
	functions_free(&model->functions);
	traced_drivers_free(&model->drivers);
	reorder_free(&model->reorder);
	for (size_t i = 0; i < model->budget.count; i++)
		free((char *)model->budget.all[i].name);
	free(model->budget.all);
	free(model->end_text);
	free(model);
}

int model_add_sink(struct model *model, struct event_sink sink)
{
	return event_dispatch_add(&model->events, sink);
}

void model_set_gate(struct model *model, struct event_gate gate)
{
	model->events.gate = gate;
}

void model_set_whole(struct model *model, const struct model *whole)
{
	model->programs.like = &whole->programs;
}

void model_leave_out_sums(struct model *model)
{
	model->programs.unmeasured = true;
}

int model_want_stacks(struct model *model)
{
	if (model->stacks.wanted)
		return 0;
	model->stacks.wanted = true;
	return event_dispatch_add(&model->events, (struct event_sink){ stacks_event, &model->stacks });
}

void model_set_chooser(struct model *model, struct model_chooser chooser)
{
	model->filter.chooser = chooser;
}

static bool call_is_sound(const struct model *model, const struct xpt_record_call *record)
{
	const struct function *function = functions_get(&model->functions, record->spec);

	return function && record->values <= function->value_count && record->start <= record->header.time;
}

static bool event_is_sound(const struct model *model, const struct xpt_record_event *record)
{
	const struct traced_event *event = traced_drivers_event(&model->drivers, record->event);

	return event && record->header.size == event->size;
}

static bool ioctl_is_sound(const struct model *model, const struct xpt_record_ioctl *record)
{
	return traced_drivers_node(&model->drivers, record->node) && record->start <= record->header.time;
}

static bool key_is_sound(const struct model *model, const struct xpt_program_key *key)
{
	if (key->spec)
		return functions_get(&model->functions, key->spec - 1u);
	return key->runtime < XPT_RUNTIME_MAX && model->functions.runtimes[key->runtime];
}

static bool count_is_sound(const struct model *model, const struct xpt_record_count *record)
{
	return key_is_sound(model, &record->key) && record->since < record->header.time;
}

static bool off_cpu_is_sound(const struct xpt_record_off_cpu *record)
{
	return record->reason >= XPT_OFF_CPU_PREEMPTED && record->reason <= XPT_OFF_CPU_OTHER &&
	       record->start <= record->header.time;
}

/* Everything that is relied on when the record is delivered. */
static bool record_is_sound(const struct model *model, const struct xpt_record_header *record)
{
	const struct xpt_record_string *string;

	if (!record_validate(record, record->size))
		return false;
	switch (record->kind) {
	case XPT_RECORD_CALL:
		return call_is_sound(model, (const void *)record);
	case XPT_RECORD_EVENT:
		return event_is_sound(model, (const void *)record);
	case XPT_RECORD_IOCTL:
		return ioctl_is_sound(model, (const void *)record);
	case XPT_RECORD_STRING:
		string = (const void *)record;
		return string->length <= XPT_STRING_MAX && string->fetch < XPT_FETCH_MAX;
	case XPT_RECORD_TASK:
		return ((const struct xpt_record_task *)record)->event >= XPT_TASK_FORK &&
		       ((const struct xpt_record_task *)record)->event <= XPT_TASK_EXIT;
	case XPT_RECORD_LOST:
		return ((const struct xpt_record_lost *)record)->cause < XPT_LOSS_MAX;
	case XPT_RECORD_TOTAL:
		return key_is_sound(model, &((const struct xpt_record_total *)record)->key);
	case XPT_RECORD_COUNT:
		return count_is_sound(model, (const void *)record);
	case XPT_RECORD_WAITED:
		return ((const struct xpt_record_waited *)record)->start <= record->time;
	case XPT_RECORD_OFF_CPU:
		return off_cpu_is_sound((const void *)record);
	case XPT_RECORD_READING:
		return ((const struct xpt_record_reading *)record)->values <= model->samples.count;
	default:
		return true;
	}
}

static int thread_deliver(struct model *model, const struct xpt_record_text *record)
{
	struct event event = { .kind = EVENT_THREAD };
	char *name;

	if (!processes_get(&model->processes, record->header.tgid, record->header.time))
		return -ENOMEM;
	name = strndup(record->text, record->length);
	if (!name)
		return -ENOMEM;
	event.thread.tgid = record->header.tgid;
	event.thread.tid = (__u32)record->id;
	event.thread.name = name;
	event_dispatch_emit(&model->events, &event);
	free(name);
	return 0;
}

static int class_deliver(struct model *model, const struct xpt_record_text *record)
{
	const struct process *process = processes_get(&model->processes, record->header.tgid, record->header.time);

	if (!process)
		return -ENOMEM;
	return process == model->processes.others ? 0 : operator_set_name_class(&model->operators, process, record);
}

static int node_deliver(struct model *model, const struct xpt_record_text *record, const cJSON *object)
{
	const struct process *process = processes_get(&model->processes, record->header.tgid, record->header.time);

	if (!process)
		return -ENOMEM;
	return process == model->processes.others ?
		       0 :
		       operator_set_describe(&model->operators, process, record->id, object);
}

static int code_load_deliver(struct model *model, const struct xpt_record_text *record, const cJSON *object)
{
	struct process *process = processes_get_late(&model->processes, record->header.tgid, record->header.time);

	return process ? code_objects_load(&model->code, process, record, object) : -ENOMEM;
}

static int code_unload_deliver(struct model *model, const struct xpt_record_text *record)
{
	struct process *process = processes_get_late(&model->processes, record->header.tgid, record->header.time);

	if (!process)
		return -ENOMEM;
	code_objects_unload(&model->code, process, record);
	return 0;
}

static int json_deliver(struct model *model, const struct xpt_record_text *record)
{
	cJSON *object;
	int error = json_parse(record->text, record->length, &object);

	if (error)
		return error;
	switch (record->header.kind) {
	case XPT_RECORD_PROCESS:
		error = processes_describe(&model->processes, record->header.tgid, record->header.time, object);
		break;
	case XPT_RECORD_LOADED:
		error = statedump_deliver(model, record, object);
		break;
	case XPT_RECORD_CODE_OBJECT:
		error = code_load_deliver(model, record, object);
		break;
	case XPT_RECORD_BUDGET:
		error = budget_deliver(model, record, object);
		break;
	default:
		error = node_deliver(model, record, object);
		break;
	}
	cJSON_Delete(object);
	return error;
}

static void lost_deliver(struct model *model, const struct xpt_record_lost *record)
{
	const struct event_lost lost = {
		.cause = (enum xpt_loss)record->cause,
		.since = record->since < record->header.time ? record->since : record->header.time,
		.time = record->header.time,
		.count = record->count,
	};

	event_dispatch_lost(&model->events, &lost);
}

static void waited_deliver(struct model *model, const struct xpt_record_waited *record)
{
	const struct event event = { .kind = EVENT_WAITED,
				     .waited = { .tgid = record->header.tgid,
						 .tid = record->header.size >= sizeof(*record) ? record->tid : 0,
						 .start = record->start,
						 .end = record->header.time,
						 .sites = record->sites } };

	model->wait_count++;
	model->wait_time += record->header.time - record->start;
	event_dispatch_emit(&model->events, &event);
}

static int region_deliver(struct model *model, const struct xpt_record_region *record)
{
	const struct function *function = functions_get(&model->functions, record->spec);
	const struct process *process = processes_get(&model->processes, record->header.tgid, record->header.time);
	struct event_call span = { .start = record->start, .end = record->header.time, .depth = 1 };
	__u64 operators;

	if (!function)
		return -EBADMSG;
	if (!process ||
	    call_tree_measure(call_tree_find(&model->tree, process, record->tid), function, &span, &operators))
		return -ENOMEM;
	return regions_end(&model->regions, process, function->runtime, record);
}

static int end_deliver(struct model *model, const struct xpt_record_text *record)
{
	char *text = strndup(record->text, record->length);

	async_drop_all(&model->async, record->header.time);
	jobs_drop_all(&model->jobs, record->header.time);
	call_tree_drop_all(&model->tree);
	stacks_drop_all(&model->stacks);
	if (!text)
		return -ENOMEM;
	free(model->end_text);
	model->end_text = text;
	model->end_time = record->header.time;
	return 0;
}

static int record_deliver(struct model *model, const struct xpt_record_header *record)
{
	const struct xpt_record_text *text = (const void *)record; /* of kinds with text */

	switch (record->kind) {
	case XPT_RECORD_CALL:
		return call_deliver(model, (const void *)record);
	case XPT_RECORD_EVENT:
		return driver_event_deliver(model, (const void *)record);
	case XPT_RECORD_IOCTL:
		return ioctl_deliver(model, (const void *)record);
	case XPT_RECORD_OFF_CPU:
		return off_cpu_deliver(model, (const void *)record);
	case XPT_RECORD_STRING:
		return strings_add(&model->strings, (const void *)record);
	case XPT_RECORD_REGION:
		return region_deliver(model, (const void *)record);
	case XPT_RECORD_REGION_NAME:
		return regions_name(&model->regions, (const void *)record);
	case XPT_RECORD_TASK:
		return task_deliver(model, (const void *)record);
	case XPT_RECORD_CLIENT_EXIT:
		jobs_orphan(&model->jobs, record->tgid, record->time);
		return 0;
	case XPT_RECORD_PROCESS:
	case XPT_RECORD_LOADED:
	case XPT_RECORD_CODE_OBJECT:
	case XPT_RECORD_NODE:
	case XPT_RECORD_BUDGET:
		return json_deliver(model, text);
	case XPT_RECORD_THREAD:
		return thread_deliver(model, text);
	case XPT_RECORD_NAMED:
	case XPT_RECORD_FINGERPRINT:
		return named_deliver(model, text);
	case XPT_RECORD_SYMBOL:
		return symbol_deliver(model, text);
	case XPT_RECORD_CODE_UNLOADED:
		return code_unload_deliver(model, text);
	case XPT_RECORD_CLASS:
		return class_deliver(model, text);
	case XPT_RECORD_LOST:
		lost_deliver(model, (const void *)record);
		return 0;
	case XPT_RECORD_TOTAL:
		return total_deliver(model, (const void *)record);
	case XPT_RECORD_COUNT:
		return count_deliver(model, (const void *)record);
	case XPT_RECORD_WAITED:
		waited_deliver(model, (const void *)record);
		return 0;
	case XPT_RECORD_READING:
		counter_samples_deliver(&model->samples, (const void *)record);
		return 0;
	case XPT_RECORD_STACK_SAMPLE:
		return model->stacks.wanted ? stacks_sample(&model->stacks, (const void *)record) : 0;
	case XPT_RECORD_END:
		return end_deliver(model, text);
	default:
		return 0;
	}
}

/* How far ahead of delivery a record is asked for: the records of several rings lie far apart. */
#define PREFETCH 6

static int deliver_until(struct model *model, __u64 key)
{
	size_t due = reorder_due(&model->reorder, key), i;
	const struct xpt_record_header *record;
	int error, room, first = 0;

	for (i = 0; i < due; i++) {
		if (i + PREFETCH < due)
			__builtin_prefetch(reorder_record(&model->reorder, i + PREFETCH));
		record = reorder_record(&model->reorder, i);
		room = model_make_room(model, record->time);
		jobs_settle(&model->jobs, record->time);
		if (record->time > model->latest)
			model->latest = record->time;
		error = record_deliver(model, record);
		if (!first)
			first = error ? error : room;
	}
	reorder_drop(&model->reorder, key);
	/* A damaged record must not hide the failure of a sink, which is returned only once. */
	error = event_dispatch_settle(&model->events);
	return error ? error : first;
}

static void delivered_until(struct model *model, __u64 time)
{
	if (time > model->delivered)
		model->delivered = time;
}

static int pass_reached(struct model *model, __u64 time)
{
	__u64 before = model->pass;
	bool passed = model->passed;
	int error;

	model->pass = time;
	model->passed = true;
	if (!passed)
		return 0;
	error = deliver_until(model, reorder_key_until(before));
	jobs_settle(&model->jobs, before);
	delivered_until(model, before);
	return error;
}

static int end_reached(struct model *model, __u64 time)
{
	int error = reorder_keep(&model->reorder), flushed;

	if (error)
		return error;
	flushed = model_flush(model);
	delivered_until(model, time);
	return flushed;
}

/* Descriptions that other records refer to. */
static int description_accept(struct model *model, const struct xpt_record_text *record)
{
	const char *of = "counter";
	cJSON *object;
	int error = json_parse(record->text, record->length, &object);

	switch (record->header.kind) {
	case XPT_RECORD_RUNTIME:
		of = "runtime";
		error = error ?: functions_add_runtime(&model->functions, record->id, object);
		break;
	case XPT_RECORD_SPEC:
		of = "function";
		error = error ?: functions_add(&model->functions, record->id, object);
		break;
	case XPT_RECORD_COST:
		of = "the cost of function";
		error = error ?: functions_add_cost(&model->functions, record->id, object);
		break;
	case XPT_RECORD_DRIVER:
		of = "driver";
		error = error ?: traced_drivers_add(&model->drivers, record->id, object);
		break;
	case XPT_RECORD_DRIVER_EVENT:
		of = "driver event";
		error = error ?: traced_drivers_add_event(&model->drivers, record->id, object);
		break;
	case XPT_RECORD_MODULE:
		of = "module";
		error = error ?: stacks_add_module(&model->stacks, record->id, object);
		break;
	case XPT_RECORD_FRAME:
		of = "frame";
		error = error ?: stacks_add_frame(&model->stacks, record->id, object);
		break;
	default:
		error = error ?: counter_samples_add(&model->samples, record->id, object);
		break;
	}
	if (error == -EBADMSG)
		log_warn(model->log, "the description of %s %llu in the records is damaged", of, record->id);
	cJSON_Delete(object);
	return error;
}

/* Takes the record that has been staged. */
static int record_accept(struct model *model, const struct xpt_record_header *record)
{
	switch (record->kind) {
	case XPT_RECORD_RUNTIME:
	case XPT_RECORD_SPEC:
	case XPT_RECORD_COST:
	case XPT_RECORD_DRIVER:
	case XPT_RECORD_DRIVER_EVENT:
	case XPT_RECORD_COUNTER:
		return description_accept(model, (const void *)record);
	case XPT_RECORD_CHOICE:
	case XPT_RECORD_MATCH:
		return program_filter_add(&model->filter, (const void *)record);
	case XPT_RECORD_MODULE:
	case XPT_RECORD_FRAME:
		return model->stacks.wanted ? description_accept(model, (const void *)record) : 0;
	case XPT_RECORD_STACK:
		return model->stacks.wanted ? stacks_add(&model->stacks, (const void *)record) : 0;
	case XPT_RECORD_PASS:
		return pass_reached(model, record->time);
	case XPT_RECORD_END:
		return end_reached(model, record->time);
	default:
		return reorder_keep(&model->reorder);
	}
}

int model_feed(struct model *model, const struct xpt_record_header *record)
{
	const struct xpt_record_header *staged;
	struct xpt_record_header header;
	int error = 0, taken;

	memcpy(&header, record, sizeof(header));
	if (header.size < sizeof(header) || header.size % 8)
		return -EBADMSG;
	if (reorder_full(&model->reorder, header.size))
		error = deliver_until(model, reorder_middle(&model->reorder));
	staged = reorder_stage(&model->reorder, record, header.size);
	if (!staged)
		return -ENOMEM;
	if (!record_is_sound(model, staged))
		return -EBADMSG;
	taken = record_accept(model, staged);
	return error ? error : taken;
}

int model_flush(struct model *model)
{
	int error = deliver_until(model, REORDER_KEY_LAST), failed;

	jobs_drop_all(&model->jobs, model->latest);
	call_tree_drop_all(&model->tree);
	stacks_drop_all(&model->stacks);
	failed = event_dispatch_settle(&model->events);
	if (failed)
		error = failed;
	delivered_until(model, model->pass);
	return error;
}

__u64 model_delivered(const struct model *model)
{
	return model->delivered;
}

int model_queue_uses(const struct model *model, int (*visit)(void *context, const struct model_queue_use *use),
		     void *context)
{
	const struct link *all = &model->jobs.queues.users.all;
	int result = 0;

	for (struct link *link = all->next; !result && link != all; link = link->next) {
		const struct queue_user *user = container_of(container_of(link, struct keyed, age), struct queue_user,
							     keyed);
		const struct process *process = user->tgid ? processes_find(&model->processes, user->tgid) : NULL;
		struct model_queue_use use;

		queue_user_view(user, model->delivered, &use);
		use.process = process ? &process->view : NULL;
		result = visit(context, &use);
	}
	return result;
}

void model_keep_released(struct model *model, size_t most)
{
	model->programs.keep = most;
	model->processes.keep = most;
}

/* model_NAME_count() and model_NAME() of what a part keeps in an array. */
#define LIST_OF(name, part)                                                              \
	size_t model_##name##_count(const struct model *model)                           \
	{                                                                                \
		return model->part.count;                                                \
	}                                                                                \
	const struct model_##name *model_##name(const struct model *model, size_t index) \
	{                                                                                \
		return &model->part.all[index]->view;                                    \
	}

LIST_OF(program, programs)
LIST_OF(call_total, totals)
LIST_OF(operator, operators)
LIST_OF(region_total, regions)
LIST_OF(queue, jobs.queues)
LIST_OF(counter, samples)
LIST_OF(code_object, code)

const struct model_code_totals *model_code_totals(const struct model *model)
{
	return &model->code.totals;
}

__u64 model_lost(const struct model *model, enum xpt_loss cause)
{
	return (unsigned int)cause < XPT_LOSS_MAX ? model->events.lost[cause] : 0;
}

__u64 model_first_time(const struct model *model)
{
	return model->first_time;
}

__u64 model_last_time(const struct model *model)
{
	return model->last_time;
}

const char *model_end_text(const struct model *model)
{
	return model->end_text;
}

__u64 model_end_time(const struct model *model)
{
	return model->end_time;
}

size_t model_budget_change_count(const struct model *model)
{
	return model->budget.count;
}

const struct model_budget_change *model_budget_change(const struct model *model, size_t index)
{
	return &model->budget.all[index];
}

__u64 model_budget_changes_left_out(const struct model *model)
{
	return model->budget.left_out;
}

__u64 model_wait_count(const struct model *model)
{
	return model->wait_count;
}

__u64 model_wait_time(const struct model *model)
{
	return model->wait_time;
}

size_t model_choice_count(const struct model *model)
{
	return model->filter.count;
}

const struct model_choice *model_choice(const struct model *model, size_t index)
{
	return &model->filter.all[index];
}
