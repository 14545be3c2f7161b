/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/reader/describe_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"
#include "model/program/programs.h"

#define TEXT_MAX 65000 /* a record's size is 16 bits */

static struct xpt_record_text *record_bytes(enum xpt_record_kind kind, __u32 tgid, __u64 time, __u64 id,
					    const char *text, size_t length)
{
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

struct xpt_record_text *record_text(enum xpt_record_kind kind, __u32 tgid, __u64 time, __u64 id, const char *text)
{
	return record_bytes(kind, tgid, time, id, text, text ? strlen(text) : 0);
}

/* Ends the object and frees the text. */
static struct xpt_record_text *record_json(enum xpt_record_kind kind, __u32 tgid, __u64 time, __u64 id,
					   struct text *text)
{
	struct xpt_record_text *record = NULL;

	json_end(text, '}');
	if (!text->error)
		record = record_bytes(kind, tgid, time, id, text->data, text->length);
	text_free(text);
	return record;
}

static const char *class_name(enum status_class class)
{
	return class == STATUS_OK ? "ok" : class == STATUS_PENDING ? "pending" : "error";
}

struct xpt_record_text *record_runtime(const struct description *runtime)
{
	struct text json = {};

	json_begin(&json, NULL, '{');
	json_add_string(&json, "name", runtime->name);
	json_add_string(&json, "title", runtime->title);
	json_add_bool(&json, "in_order", runtime->in_order);
	if (runtime->streams_of)
		json_add_string(&json, "streams_of", runtime->streams_of);
	json_begin(&json, "statuses", '[');
	for (size_t i = 0; i < runtime->status_count; i++) {
		json_begin(&json, NULL, '{');
		json_add_signed(&json, "value", runtime->statuses[i].value);
		json_add_string(&json, "class", class_name(runtime->statuses[i].class));
		json_add_string(&json, "name", runtime->statuses[i].name);
		json_end(&json, '}');
	}
	json_end(&json, ']');
	return record_json(XPT_RECORD_RUNTIME, 0, 0, runtime->index, &json);
}

struct xpt_record_text *record_spec(const struct call_spec *spec)
{
	static const char *const types[] = { "u64", "u32", "s32", "u16", "u8", "string" };
	struct text json = {};

	json_begin(&json, NULL, '{');
	json_add_unsigned(&json, "runtime", spec->wire.runtime);
	json_add_string(&json, "function", spec->function);
	json_add_string(&json, "role", role_name(spec->wire.role));
	json_add_signed(&json, "success", spec->wire.success);
	json_add_bool(&json, "status", spec->has_status);
	json_add_string(&json, "counted_by", spec->wire.flags & XPT_SPEC_BY_PROGRAM ? "program" : "function");
	if (spec->runs)
		json_add_string(&json, "runs", spec->runs);
	json_begin(&json, "fetches", '[');
	for (unsigned int i = 0; i < spec->wire.fetches; i++) {
		json_begin(&json, NULL, '{');
		json_add_string(&json, "meaning", meaning_name(spec->wire.fetch[i].meaning));
		json_add_string(&json, "type", types[spec->wire.fetch[i].type]);
		json_add_bool(&json, "at_return", spec->wire.fetch[i].at_return);
		if (spec->wire.fetch[i].tests & XPT_TEST_MASK)
			json_add_unsigned(&json, "mask", spec->wire.fetch[i].mask);
		if (spec->wire.fetch[i].tests & XPT_TEST_EQUAL)
			json_add_unsigned(&json, "equal", spec->wire.fetch[i].equal);
		json_end(&json, '}');
	}
	json_end(&json, ']');
	return record_json(XPT_RECORD_SPEC, 0, 0, spec->wire.index, &json);
}

struct xpt_record_text *record_cost(__u64 spec, __u64 cost, __u64 inside)
{
	struct text json = {};

	json_begin(&json, NULL, '{');
	json_add_unsigned(&json, "cost_ns", cost);
	json_add_unsigned(&json, "inside_ns", inside);
	return record_json(XPT_RECORD_COST, 0, 0, spec, &json);
}

struct xpt_record_text *record_budget(__u32 tgid, __u64 time, struct text *json)
{
	return record_json(XPT_RECORD_BUDGET, tgid, time, 0, json);
}

struct xpt_record_text *record_process(const struct process_info *info, __u64 time)
{
	struct text json = {};

	json_begin(&json, NULL, '{');
	json_add_string(&json, "name", info->name);
	json_add_string(&json, "command", info->command ?: "");
	json_add_unsigned(&json, "parent", info->parent);
	json_add_unsigned(&json, "start_time", info->start_time);
	return record_json(XPT_RECORD_PROCESS, info->tgid, time, 0, &json);
}

struct xpt_record_text *record_node(const struct operator_node *node, __u32 tgid, __u64 time, __u64 object, __u64 class)
{
	struct text json = {};

	json_begin(&json, NULL, '{');
	json_add_unsigned(&json, "class", class);
	json_add_unsigned(&json, "index", node->index);
	json_add_string(&json, "name", node->name);
	json_add_string(&json, "type", node->type);
	json_add_string(&json, "provider", node->provider);
	return record_json(XPT_RECORD_NODE, tgid, time, object, &json);
}

static void add_ioctls(struct text *json, const struct driver_ioctls *ioctls)
{
	json_begin(json, "ioctls", '[');
	for (size_t i = 0; i < ioctls->number_count; i++) {
		json_begin(json, NULL, '{');
		json_add_unsigned(json, "number", ioctls->numbers[i].number);
		json_add_string(json, "name", ioctls->numbers[i].name);
		json_add_unsigned(json, "role", ioctls->numbers[i].role);
		json_end(json, '}');
	}
	json_end(json, ']');
}

static void add_nodes(struct text *json, const struct device_nodes *nodes, const dev_t *followed, size_t count)
{
	json_begin(json, "nodes", '[');
	for (size_t i = 0; i < nodes->count; i++) {
		for (size_t index = 0; index < count; index++) {
			if (followed[index] != nodes->items[i].device)
				continue;
			json_begin(json, NULL, '{');
			json_add_unsigned(json, "index", index);
			json_add_string(json, "path", nodes->items[i].path);
			json_end(json, '}');
		}
	}
	json_end(json, ']');
}

struct xpt_record_text *record_driver(const struct driver_events *events, __u16 index, const struct record_join *joins,
				      size_t join_count, const dev_t *followed, size_t followed_count)
{
	struct text json = {};

	json_begin(&json, NULL, '{');
	json_add_string(&json, "name", events->driver->name);
	json_add_string(&json, "title", events->driver->title);
	json_add_unsigned(&json, "pairing", events->set ? events->set->pairing : XPT_PAIRING_UNIQUE);
	json_add_unsigned(&json, "bits", events->set ? events->set->bits : 64);
	json_begin(&json, "joins", '[');
	for (size_t i = 0; i < join_count; i++) {
		json_begin(&json, NULL, '{');
		json_add_unsigned(&json, "driver", joins[i].driver);
		json_add_unsigned(&json, "bits", joins[i].bits);
		json_end(&json, '}');
	}
	json_end(&json, ']');
	add_ioctls(&json, &events->driver->ioctls);
	add_nodes(&json, &events->nodes, followed, followed_count);
	return record_json(XPT_RECORD_DRIVER, 0, 0, index, &json);
}

struct xpt_record_text *record_end(__u64 time, struct text *json)
{
	return record_json(XPT_RECORD_END, 0, time, 0, json);
}

struct xpt_record_text *record_loaded(const struct model_program *program, __u64 time)
{
	char name[PROGRAM_NAME_MAX + 1];
	struct text json = {};

	json_begin(&json, NULL, '{');
	json_add_unsigned(&json, "runtime", program->runtime_index);
	if (program->named || program->name_length) {
		snprintf(name, sizeof(name), "%.*s", (int)(program->name_length ?: strlen(program->name)),
			 program->name);
		json_add_string(&json, "name", name);
		json_add_unsigned(&json, "named_by", program->name_source);
	}
	if (program->number)
		json_add_unsigned(&json, "number", program->number);
	if (program->size && program->size <= 1ull << 53)
		json_add_unsigned(&json, "size", program->size);
	return record_json(XPT_RECORD_LOADED, program->process->tgid, time, program->handle, &json);
}

struct xpt_record_text *record_loaded_name(const struct description *runtime, __u32 tgid, __u64 time, __u64 handle,
					   const char *name, enum name_source source)
{
	struct text json = {};

	json_begin(&json, NULL, '{');
	json_add_unsigned(&json, "runtime", runtime->index);
	json_add_string(&json, "name", name);
	json_add_unsigned(&json, "named_by", source);
	return record_json(XPT_RECORD_LOADED, tgid, time, handle, &json);
}

struct xpt_record_text *record_loaded_region(const struct event_call *call)
{
	struct text json = {};

	json_begin(&json, NULL, '{');
	json_add_unsigned(&json, "runtime", call->function->runtime_index);
	json_add_string(&json, "region", call->name);
	return record_json(XPT_RECORD_LOADED, call->tgid, call->end, call->handle, &json);
}

static bool region_change(const struct event_call *call, struct past_change *change, struct xpt_record_text **record)
{
	bool named = call->function->role == XPT_ROLE_REGION_NAME && call->name;

	if (!named && call->function->role != XPT_ROLE_REGION_RELEASE)
		return false;
	*record = named ? record_loaded_region(call) : NULL;
	*change = (struct past_change){ .time = named ? call->end : call->start,
					.handle = call->handle,
					.tgid = call->tgid,
					.runtime = CONTEXT_REGION,
					.size = *record ? (*record)->header.size : 0 };
	return !named || *record;
}

bool record_change(const struct event *event, struct past_change *change, struct xpt_record_text **record)
{
	const struct model_program *program = event->program.program;

	if (event->kind == EVENT_CALL)
		return region_change(&event->call, change, record);
	if (event->kind != EVENT_PROGRAM)
		return false;
	*record = event->program.released ? NULL : record_loaded(program, event->program.time);
	*change = (struct past_change){ .time = event->program.time,
					.handle = program->handle,
					.tgid = program->process->tgid,
					.runtime = program->runtime_index,
					.size = *record ? (*record)->header.size : 0 };
	return event->program.released || *record;
}

struct xpt_record_text *record_driver_event(const struct tracepoint *tracepoint, const struct xpt_event_spec *spec,
					    __u16 driver)
{
	const struct driver_event *event = tracepoint->event;
	struct text json = {};
	char name[256];

	snprintf(name, sizeof(name), "%s:%s", event->system, event->name);
	json_begin(&json, NULL, '{');
	json_add_unsigned(&json, "driver", driver);
	json_add_string(&json, "event", name);
	json_add_unsigned(&json, "role", event->role);
	json_add_unsigned(&json, "key", event->key_count);
	json_add_bool(&json, "by_thread", spec->flags & XPT_EVENT_BY_THREAD);
	json_begin(&json, "fields", '[');
	for (size_t i = 0; i < tracepoint->field_count; i++) {
		json_begin(&json, NULL, '{');
		json_add_unsigned(&json, "meaning", spec->field[i].meaning);
		json_add_string(&json, "name", tracepoint->fields[i].field->name);
		json_add_bool(&json, "text", spec->field[i].access != XPT_ACCESS_NUMBER);
		json_add_bool(&json, "signed", spec->field[i].is_signed);
		json_end(&json, '}');
	}
	json_end(&json, ']');
	return record_json(XPT_RECORD_DRIVER_EVENT, 0, 0, spec->index, &json);
}

struct xpt_record_text *record_counter(const struct xpt_counter_info *counter, __u64 index, size_t slots,
				       const char *of, bool each_cpu)
{
	static const enum model_counter_kind kinds[] = {
		[XPT_COUNTER_SUM] = MODEL_COUNTER_SUM,
		[XPT_COUNTER_MEAN] = MODEL_COUNTER_MEAN,
		[XPT_COUNTER_LEVEL] = MODEL_COUNTER_LEVEL,
	};
	struct text json = {};

	json_begin(&json, NULL, '{');
	json_add_string(&json, "name", counter->name);
	json_add_string(&json, "kind", model_counter_kind_name(kinds[counter->kind]));
	json_add_string(&json, "unit", counter->unit);
	json_add_string(&json, "description", counter->description);
	json_add_string(&json, "source", counter->source);
	if (slots) {
		json_add_unsigned(&json, "slots", slots);
		json_add_string(&json, "of", of);
		json_add_bool(&json, "each_cpu", each_cpu);
		json_add_real(&json, "scale", counter->scale);
	}
	return record_json(XPT_RECORD_COUNTER, 0, 0, index, &json);
}
