/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/chrome/events.h"

#include "report/table/summary.h"
#include "report_records.h"
#include "report_trace.h"

/* A trace of what a model makes of its records. */
static cJSON *trace_of(void (*feed)(struct model *model), char **table)
{
	struct event_file *writer;
	char *path = temporary();
	struct model *model;
	size_t size;
	cJSON *json;
	FILE *out;

	cr_assert_eq(model_create(NULL, &model), 0);
	cr_assert_eq(event_file_create(NULL, &chrome_format, path, -1, &info, &writer), 0);
	cr_assert_eq(model_add_sink(model, event_file_sink(writer)), 0);
	feed(model);
	cr_assert_eq(model_flush(model), 0);
	cr_assert_eq(event_file_close(writer, model), 0);
	json = parse_file(path);
	if (table) {
		out = open_memstream(table, &size);
		cr_assert_eq(summary_write(model, out, 0, 0), 0);
		fclose(out);
	}
	model_free(model);
	unlink(path);
	free(path);
	return json;
}

static const cJSON *named(const cJSON *json, const char *name, const char *phase)
{
	const cJSON *event;

	cJSON_ArrayForEach(event, at(json, "traceEvents")) {
		if (!strcmp(string_at(event, "name"), name) && !strcmp(string_at(event, "ph"), phase))
			return event;
	}
	cr_assert_fail("no %s '%s'", phase, name);
	return NULL;
}

#define KERNEL \
	"{\"kind\":\"hsaco\",\"machine\":\"gfx90a\",\"size\":8192,\"sha256\":\"9f86d081884c7d65\",\"runtime\":\"hip\","

static void feed_some(struct model *model)
{
	feed_descriptions(model);
	feed_text(model, XPT_RECORD_CODE_OBJECT, RECORDS_TGID, 0x77, 1000000,
		  KERNEL
		  "\"uri\":\"file:///opt/my%20kernels.hsaco#offset=4096&size=8192\",\"function\":\"hipModuleLoad\","
		  "\"tid\":1240,\"waited_ns\":2500,\"kernels\":[\"a\",\"b\\\"\"],\"functions\":3}");
	feed_text(model, XPT_RECORD_CODE_OBJECT, RECORDS_TGID, 0x78, 2000000,
		  KERNEL "\"uri\":\"memory://1234#offset=0x7f00&size=8192\",\"tid\":1240,\"kernels\":[\"a\",\"b\"]}");
	feed_text(model, XPT_RECORD_CODE_OBJECT, RECORDS_TGID, 0, 3000000,
		  "{\"kind\":\"onnx\",\"name\":\"resnet\",\"uri\":\"file:///r.onnx\",\"missing\":5,\"error\":\"gone\"}");
	feed_text(model, XPT_RECORD_CODE_UNLOADED, RECORDS_TGID, 0x78, 4000000, "");
}

Test(report_chrome_events, loads_and_unloads_are_instants)
{
	cJSON *json = trace_of(feed_some, NULL);
	const cJSON *event = named(json, "load hsaco my kernels.hsaco", "i");
	const cJSON *args = at(event, "args");

	cr_assert_str_eq(string_at(event, "cat"), "codeobj");
	cr_assert_str_eq(string_at(event, "s"), "t");
	cr_assert_eq(number_at(event, "pid"), RECORDS_TGID);
	cr_assert_eq(number_at(event, "tid"), 1240);
	cr_assert_eq(number_at(event, "ts"), 1000);
	cr_assert_str_eq(string_at(args, "uri"), "file:///opt/my%20kernels.hsaco#offset=4096&size=8192");
	cr_assert_str_eq(string_at(args, "machine"), "gfx90a");
	cr_assert_str_eq(string_at(args, "sha256"), "9f86d081884c7d65");
	cr_assert_str_eq(string_at(args, "function"), "hipModuleLoad");
	cr_assert_str_eq(string_at(args, "handle"), "0x77");
	cr_assert_eq(number_at(args, "size"), 8192);
	cr_assert_eq(number_at(args, "functions"), 3);
	cr_assert_eq(number_at(args, "waited_us"), 2.5);
	cr_assert_eq(cJSON_GetArraySize(at(args, "kernels")), 2);
	cr_assert_str_eq(cJSON_GetArrayItem(at(args, "kernels"), 1)->valuestring, "b\"");
	cr_assert_null(at(args, "missing"));
	cr_assert_null(at(args, "found"));
	/* The span in which the process stood still. */
	event = named(json, "waited", "b");
	cr_assert_eq(number_at(event, "ts"), 1000);
	cr_assert_eq(number_at(event, "tid"), RECORDS_TGID);
	cr_assert_str_eq(string_at(at(event, "args"), "code_object"), "hsaco my kernels.hsaco");
	cr_assert_eq(number_at(named(json, "waited", "e"), "ts"), 1002.5);
	/* Found, by no thread. */
	event = named(json, "load onnx resnet", "i");
	cr_assert_str_eq(string_at(event, "s"), "p");
	cr_assert_eq(number_at(event, "tid"), RECORDS_TGID);
	cr_assert(cJSON_IsTrue(at(at(event, "args"), "found")));
	cr_assert_eq(number_at(at(event, "args"), "missing"), 5);
	cr_assert_str_eq(string_at(at(event, "args"), "error"), "gone");
	/* As it was loaded. */
	named(json, "load hsaco 9f86d081884c", "i");
	event = named(json, "unload hsaco 9f86d081884c", "i");
	cr_assert_eq(number_at(event, "ts"), 4000);
	cr_assert_str_eq(string_at(event, "s"), "p");
	cr_assert_str_eq(string_at(at(event, "args"), "sha256"), "9f86d081884c7d65");
	cr_assert_null(at(at(event, "args"), "found"));
	cJSON_Delete(json);
}

Test(report_chrome_events, totals)
{
	char *table;
	cJSON *json = trace_of(feed_some, &table);
	const cJSON *code = at(at(json, "metadata"), "code_objects"), *object;

	cr_assert_eq(number_at(code, "loads"), 3);
	cr_assert_eq(number_at(code, "unloads"), 1);
	cr_assert_eq(number_at(code, "incomplete"), 1);
	cr_assert_eq(number_at(code, "waited"), 1);
	cr_assert_eq(number_at(code, "waited_us"), 2.5);
	cr_assert_eq(cJSON_GetArraySize(at(code, "kinds")), 2);
	cr_assert_str_eq(string_at(cJSON_GetArrayItem(at(code, "kinds"), 0), "kind"), "hsaco");
	cr_assert_eq(number_at(cJSON_GetArrayItem(at(code, "kinds"), 0), "loads"), 2);
	cr_assert_eq(cJSON_GetArraySize(at(code, "objects")), 2);
	object = cJSON_GetArrayItem(at(code, "objects"), 0);
	cr_assert_eq(number_at(object, "loads"), 2);
	cr_assert_eq(number_at(object, "kernels"), 2);
	cr_assert_eq(number_at(object, "unloads"), 1);
	cr_assert_eq(number_at(cJSON_GetArrayItem(at(code, "objects"), 1), "incomplete"), 1);
	cr_assert(strstr(table, "CODE OBJECT "), "%s", table);
	cr_assert(strstr(table, "\nresnet "), "%s", table);
	cr_assert(strstr(table, "8.00KiB      2        2\n"), "%s", table);
	cr_assert(strstr(table, "waited: 1 times while code objects were read, 2.50us in all\n"), "%s", table);
	cr_assert(strstr(table, "incomplete: 1 of 3 code objects\n"), "%s", table);
	cJSON_Delete(json);
	free(table);
}

static void feed_nothing(struct model *model)
{
	feed_descriptions(model);
}

Test(report_chrome_events, none)
{
	char *table;
	cJSON *json = trace_of(feed_nothing, &table);

	cr_assert_eq(number_at(at(at(json, "metadata"), "code_objects"), "loads"), 0);
	cr_assert_null(strstr(table, "CODE OBJECT"));
	cr_assert_null(strstr(table, "incomplete"));
	cJSON_Delete(json);
	free(table);
}

static void feed_many(struct model *model)
{
	char text[128];

	for (int i = 0; i < 25; i++) {
		snprintf(text, sizeof(text), "{\"kind\":\"elf\",\"uri\":\"file:///object%d\"}", i);
		feed_text(model, XPT_RECORD_CODE_OBJECT, RECORDS_TGID, 0, 1000, text);
	}
}

Test(report_chrome_events, table_has_twenty_rows)
{
	char *table;
	cJSON *json = trace_of(feed_many, &table);

	cr_assert_eq(cJSON_GetArraySize(at(at(at(json, "metadata"), "code_objects"), "objects")), 25);
	cr_assert(strstr(table, "file:///object19 "), "%s", table);
	cr_assert_null(strstr(table, "file:///object20"));
	cr_assert(strstr(table, "(5 more; see the trace's metadata)\n"));
	cJSON_Delete(json);
	free(table);
}

/* Every byte in every string, and times that are too late. */
static void feed_hostile(struct model *model)
{
	char text[1024], odd[64];

	for (unsigned int byte = 1; byte < 256; byte++) {
		snprintf(odd, sizeof(odd), byte == '"' || byte == '\\' ? "/\\%c#" : "/%c#", byte);
		snprintf(text, sizeof(text),
			 "{\"kind\":\"%s\",\"uri\":\"%s\",\"machine\":\"%s\",\"sha256\":\"%s\",\"runtime\":\"%s\","
			 "\"function\":\"%s\",\"error\":\"%s\",\"kernels\":[\"%s\"],\"waited_ns\":9007199254740992}",
			 odd, odd, odd, odd, odd, odd, odd, odd);
		feed_text(model, XPT_RECORD_CODE_OBJECT, RECORDS_TGID, byte, ~(__u64)0 - byte, text);
	}
}

Test(report_chrome_events, hostile_strings_and_times)
{
	char *table;
	cJSON *json = trace_of(feed_hostile, &table);

	cr_assert_gt(cJSON_GetArraySize(at(json, "traceEvents")), 3 * 200);
	for (const char *byte = table; *byte; byte++)
		cr_assert((unsigned char)*byte >= ' ' || *byte == '\n', "0x%x", *byte);
	cJSON_Delete(json);
	free(table);
}
