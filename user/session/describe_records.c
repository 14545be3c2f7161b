/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/describe_records.h"

#include <cjson/cJSON.h>
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
