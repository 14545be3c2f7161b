/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "describe/runtime/registry.h"
#include "session/reader/describe_records.h"

static cJSON *parse(const struct xpt_record_text *record)
{
	cr_assert_not_null(record);
	cr_assert_eq(record->header.size % 8, 0);
	cr_assert_geq(record->header.size, sizeof(*record) + record->length);
	return cJSON_ParseWithLength(record->text, record->length);
}

Test(session_reader_describe_records, spec_tells_every_fetch)
{
	struct registry *registry;
	const char *only[] = { "nrt" };

	cr_assert_eq(registry_create(NULL, &(struct registry_options){ .only = only, .only_count = 1 }, &registry), 0);
	for (size_t i = 0; i < registry->spec_count; i++) {
		struct xpt_record_text *record = record_spec(registry->specs[i]);
		cJSON *object = parse(record);

		cr_assert_not_null(object);
		cr_assert_eq(record->id, i);
		cr_assert_str_eq(cJSON_GetObjectItem(object, "function")->valuestring, registry->specs[i]->function);
		cr_assert_eq(cJSON_GetArraySize(cJSON_GetObjectItem(object, "fetches")),
			     registry->specs[i]->wire.fetches);
		cJSON_Delete(object);
		free(record);
	}
	registry_free(registry);
}

Test(session_reader_describe_records, runtime_tells_every_status)
{
	struct registry *registry;

	cr_assert_eq(registry_create(NULL, &(struct registry_options){}, &registry), 0);
	for (size_t i = 0; i < registry->runtime_count; i++) {
		struct xpt_record_text *record = record_runtime(registry->runtimes[i]);
		cJSON *object = parse(record);

		cr_assert_not_null(object);
		cr_assert_eq(cJSON_GetArraySize(cJSON_GetObjectItem(object, "statuses")),
			     registry->runtimes[i]->status_count);
		cJSON_Delete(object);
		free(record);
	}
	registry_free(registry);
}

Test(session_reader_describe_records, process_with_hostile_command_is_json)
{
	struct process_info info = { .tgid = 7, .parent = 1, .start_time = 99, .name = "a\"\n\x01" };
	struct xpt_record_text *record;
	cJSON *object;

	info.command = strdup("run \"it\"\n\\ \x1b[2J");
	record = record_process(&info, 5);
	object = parse(record);
	cr_assert_not_null(object);
	cr_assert_eq(record->header.tgid, 7);
	cr_assert_str_eq(cJSON_GetObjectItem(object, "command")->valuestring, info.command);
	cr_assert_str_eq(cJSON_GetObjectItem(object, "name")->valuestring, info.name);
	cJSON_Delete(object);
	free(record);
	free(info.command);
}

Test(session_reader_describe_records, counter_tells_what_its_values_are)
{
	const struct xpt_counter_info info = {
		.name = "pmu/\"event\"/",
		.unit = "J",
		.description = "energy",
		.source = "pmu",
		.kind = XPT_COUNTER_LEVEL,
	};
	struct xpt_record_text *record = record_counter(&info, 3, 0, "", false);
	cJSON *object = cJSON_ParseWithLength(record->text, record->length);

	cr_assert_eq(record->header.kind, XPT_RECORD_COUNTER);
	cr_assert_eq(record->id, 3);
	cr_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(object, "name")), "pmu/\"event\"/");
	cr_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(object, "kind")), "level");
	cr_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(object, "unit")), "J");
	cr_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(object, "description")), "energy");
	cr_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(object, "source")), "pmu");
	cJSON_Delete(object);
	free(record);
}

Test(session_reader_describe_records, long_text_is_cut_to_fit_a_record)
{
	char *text = malloc(200001);
	struct xpt_record_text *record;

	memset(text, 'x', 200000);
	text[200000] = '\0';
	record = record_text(XPT_RECORD_NAMED, 1, 2, 3, text);
	cr_assert_not_null(record);
	cr_assert_eq(record->header.size, XPT_ALIGN8(sizeof(*record) + record->length));
	cr_assert_gt(record->length, 60000);
	free(record);
	free(text);
}
