/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/describe_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 65000 /* a record's size is 16 bits */

struct xpt_record_text *record_text(enum xpt_record_kind kind, __u32 tgid, __u64 time, __u64 id, const char *text)
{
	size_t length = text ? strlen(text) : 0;
	struct xpt_record_text *record;

	if (length > TEXT_MAX)
		length = TEXT_MAX;
	record = calloc(1, XPT_ALIGN8(sizeof(*record) + length));
	if (!record)
		return NULL;
	record->header.kind = kind;
	record->header.size = XPT_ALIGN8(sizeof(*record) + length);
	record->header.tgid = tgid;
	record->header.time = time;
	record->id = id;
	record->length = length;
	memcpy(record->text, text ?: "", length);
	return record;
}

/* Prints and frees the object. */
static struct xpt_record_text *record_json(enum xpt_record_kind kind, __u32 tgid, __u64 time, __u64 id, cJSON *object)
{
	struct xpt_record_text *record = NULL;
	char *text = cJSON_PrintUnformatted(object);

	if (text)
		record = record_text(kind, tgid, time, id, text);
	cJSON_free(text);
	cJSON_Delete(object);
	return record;
}

static const char *class_name(enum status_class class)
{
	return class == STATUS_OK ? "ok" : class == STATUS_PENDING ? "pending" : "error";
}

struct xpt_record_text *record_runtime(const struct description *runtime)
{
	cJSON *object = cJSON_CreateObject(), *statuses, *status;

	cJSON_AddStringToObject(object, "name", runtime->name);
	cJSON_AddStringToObject(object, "title", runtime->title);
	statuses = cJSON_AddArrayToObject(object, "statuses");
	for (size_t i = 0; i < runtime->status_count; i++) {
		status = cJSON_CreateObject();
		cJSON_AddNumberToObject(status, "value", runtime->statuses[i].value);
		cJSON_AddStringToObject(status, "class", class_name(runtime->statuses[i].class));
		cJSON_AddStringToObject(status, "name", runtime->statuses[i].name);
		cJSON_AddItemToArray(statuses, status);
	}
	return record_json(XPT_RECORD_RUNTIME, 0, 0, runtime->index, object);
}

struct xpt_record_text *record_spec(const struct call_spec *spec)
{
	static const char *const types[] = { "u64", "u32", "s32", "u16", "u8", "string" };
	cJSON *object = cJSON_CreateObject(), *fetches, *fetch;

	cJSON_AddNumberToObject(object, "runtime", spec->wire.runtime);
	cJSON_AddStringToObject(object, "function", spec->function);
	cJSON_AddStringToObject(object, "role", role_name(spec->wire.role));
	cJSON_AddNumberToObject(object, "success", spec->wire.success);
	cJSON_AddBoolToObject(object, "status", spec->has_status);
	cJSON_AddStringToObject(object, "counted_by", spec->wire.flags & XPT_SPEC_BY_PROGRAM ? "program" : "function");
	fetches = cJSON_AddArrayToObject(object, "fetches");
	for (unsigned int i = 0; i < spec->wire.fetches; i++) {
		fetch = cJSON_CreateObject();
		cJSON_AddStringToObject(fetch, "meaning", meaning_name(spec->wire.fetch[i].meaning));
		cJSON_AddStringToObject(fetch, "type", types[spec->wire.fetch[i].type]);
		cJSON_AddBoolToObject(fetch, "at_return", spec->wire.fetch[i].at_return);
		cJSON_AddItemToArray(fetches, fetch);
	}
	return record_json(XPT_RECORD_SPEC, 0, 0, spec->wire.index, object);
}

struct xpt_record_text *record_process(const struct process_info *info, __u64 time)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddStringToObject(object, "name", info->name);
	cJSON_AddStringToObject(object, "command", info->command ?: "");
	cJSON_AddNumberToObject(object, "parent", info->parent);
	cJSON_AddNumberToObject(object, "start_time", info->start_time);
	return record_json(XPT_RECORD_PROCESS, info->tgid, time, 0, object);
}

struct xpt_record_text *record_node(const struct operator_node *node, __u32 tgid, __u64 time, __u64 object, __u64 class)
{
	cJSON *json = cJSON_CreateObject();

	cJSON_AddNumberToObject(json, "class", (double)class);
	cJSON_AddNumberToObject(json, "index", (double)node->index);
	cJSON_AddStringToObject(json, "name", node->name);
	cJSON_AddStringToObject(json, "type", node->type);
	cJSON_AddStringToObject(json, "provider", node->provider);
	return record_json(XPT_RECORD_NODE, tgid, time, object, json);
}

static void add_ioctls(cJSON *object, const struct driver_ioctls *ioctls)
{
	cJSON *array = cJSON_AddArrayToObject(object, "ioctls"), *item;

	for (size_t i = 0; i < ioctls->number_count; i++) {
		item = cJSON_CreateObject();
		cJSON_AddNumberToObject(item, "number", ioctls->numbers[i].number);
		cJSON_AddStringToObject(item, "name", ioctls->numbers[i].name);
		cJSON_AddNumberToObject(item, "role", ioctls->numbers[i].role);
		cJSON_AddItemToArray(array, item);
	}
}

static void add_nodes(cJSON *object, const struct device_nodes *nodes, const dev_t *followed, size_t count)
{
	cJSON *array = cJSON_AddArrayToObject(object, "nodes"), *item;

	for (size_t i = 0; i < nodes->count; i++) {
		for (size_t index = 0; index < count; index++) {
			if (followed[index] != nodes->items[i].device)
				continue;
			item = cJSON_CreateObject();
			cJSON_AddNumberToObject(item, "index", index);
			cJSON_AddStringToObject(item, "path", nodes->items[i].path);
			cJSON_AddItemToArray(array, item);
		}
	}
}

struct xpt_record_text *record_driver(const struct driver_events *events, __u16 index, const struct record_join *joins,
				      size_t join_count, const dev_t *followed, size_t followed_count)
{
	cJSON *object = cJSON_CreateObject(), *array, *item;

	cJSON_AddStringToObject(object, "name", events->driver->name);
	cJSON_AddStringToObject(object, "title", events->driver->title);
	cJSON_AddNumberToObject(object, "pairing", events->set ? events->set->pairing : XPT_PAIRING_UNIQUE);
	cJSON_AddNumberToObject(object, "bits", events->set ? events->set->bits : 64);
	array = cJSON_AddArrayToObject(object, "joins");
	for (size_t i = 0; i < join_count; i++) {
		item = cJSON_CreateObject();
		cJSON_AddNumberToObject(item, "driver", joins[i].driver);
		cJSON_AddNumberToObject(item, "bits", joins[i].bits);
		cJSON_AddItemToArray(array, item);
	}
	add_ioctls(object, &events->driver->ioctls);
	add_nodes(object, &events->nodes, followed, followed_count);
	return record_json(XPT_RECORD_DRIVER, 0, 0, index, object);
}

struct xpt_record_text *record_end(__u64 time, cJSON *object)
{
	return record_json(XPT_RECORD_END, 0, time, 0, object);
}

struct xpt_record_text *record_loaded(const struct model_program *program, __u64 time)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddNumberToObject(object, "runtime", program->runtime_index);
	if (program->named) {
		cJSON_AddStringToObject(object, "name", program->name);
		cJSON_AddNumberToObject(object, "named_by", program->name_source);
	}
	if (program->size && program->size <= 1ull << 53)
		cJSON_AddNumberToObject(object, "size", (double)program->size);
	return record_json(XPT_RECORD_LOADED, program->process->tgid, time, program->handle, object);
}

struct xpt_record_text *record_loaded_region(const struct event_call *call)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddNumberToObject(object, "runtime", call->function->runtime_index);
	cJSON_AddStringToObject(object, "region", call->name);
	return record_json(XPT_RECORD_LOADED, call->tgid, call->end, call->handle, object);
}

struct xpt_record_text *record_driver_event(const struct tracepoint *tracepoint, const struct xpt_event_spec *spec,
					    __u16 driver)
{
	const struct driver_event *event = tracepoint->event;
	cJSON *object = cJSON_CreateObject(), *fields, *field;
	char name[256];

	snprintf(name, sizeof(name), "%s:%s", event->system, event->name);
	cJSON_AddNumberToObject(object, "driver", driver);
	cJSON_AddStringToObject(object, "event", name);
	cJSON_AddNumberToObject(object, "role", event->role);
	cJSON_AddNumberToObject(object, "key", event->key_count);
	cJSON_AddBoolToObject(object, "by_thread", spec->flags & XPT_EVENT_BY_THREAD);
	fields = cJSON_AddArrayToObject(object, "fields");
	for (size_t i = 0; i < tracepoint->field_count; i++) {
		field = cJSON_CreateObject();
		cJSON_AddNumberToObject(field, "meaning", spec->field[i].meaning);
		cJSON_AddStringToObject(field, "name", tracepoint->fields[i].field->name);
		cJSON_AddBoolToObject(field, "text", spec->field[i].access != XPT_ACCESS_NUMBER);
		cJSON_AddBoolToObject(field, "signed", spec->field[i].is_signed);
		cJSON_AddItemToArray(fields, field);
	}
	return record_json(XPT_RECORD_DRIVER_EVENT, 0, 0, spec->index, object);
}

struct xpt_record_text *record_counter(const struct xpt_counter_info *counter, __u64 index, size_t slots, bool each_cpu)
{
	static const enum model_counter_kind kinds[] = {
		[XPT_COUNTER_SUM] = MODEL_COUNTER_SUM,
		[XPT_COUNTER_MEAN] = MODEL_COUNTER_MEAN,
		[XPT_COUNTER_LEVEL] = MODEL_COUNTER_LEVEL,
	};
	cJSON *object = cJSON_CreateObject();

	cJSON_AddStringToObject(object, "name", counter->name);
	cJSON_AddStringToObject(object, "kind", model_counter_kind_name(kinds[counter->kind]));
	cJSON_AddStringToObject(object, "unit", counter->unit);
	cJSON_AddStringToObject(object, "description", counter->description);
	cJSON_AddStringToObject(object, "source", counter->source);
	if (slots) {
		cJSON_AddNumberToObject(object, "slots", (double)slots);
		cJSON_AddBoolToObject(object, "each_cpu", each_cpu);
		cJSON_AddNumberToObject(object, "scale", counter->scale);
	}
	return record_json(XPT_RECORD_COUNTER, 0, 0, index, object);
}
