/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/code_objects.h"

#include "model_records.h"

#define HASH "\"sha256\":\"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\""

/* What a sink has got, a line each. */
struct reported {
	struct model *model;
	char lines[4096];
	size_t length, count;
};

static const char *or_none(const char *text)
{
	return text ? text : "-";
}

static int reported_write(void *context, const struct event *event)
{
	const struct event_code *code = &event->code;
	struct reported *reported = context;

	if (event->kind != EVENT_CODE)
		return 0;
	reported->count++;
	if (reported->length >= sizeof(reported->lines) - 256)
		return 0;
	reported->length += (size_t)snprintf(reported->lines + reported->length,
					     sizeof(reported->lines) - reported->length,
					     "%s %u/%u %llu 0x%llx %s %s %s %llu %s %zu %llu %llu %llu\n",
					     code->unloaded ? "unload" : "load", code->tgid, code->tid, code->time,
					     code->handle, code->kind, or_none(code->name), or_none(code->uri),
					     code->size, or_none(code->error), code->kernel_count, code->functions,
					     code->missing, code->waited);
	return 0;
}

static struct reported *reported_create(void)
{
	struct reported *reported = calloc(1, sizeof(*reported));

	cr_assert_eq(model_create(NULL, &reported->model), 0);
	cr_assert_eq(model_add_sink(reported->model, (struct event_sink){ reported_write, reported }), 0);
	return reported;
}

static void reported_free(struct reported *reported)
{
	model_free(reported->model);
	free(reported);
}

static int feed(struct reported *reported, unsigned int kind, __u32 tgid, __u64 time, __u64 handle, const char *text)
{
	struct fixture fixture = { .model = reported->model };

	return feed_text(&fixture, kind, tgid, time, handle, text);
}

static int load(struct reported *reported, __u32 tgid, __u64 time, __u64 handle, const char *text)
{
	return feed(reported, XPT_RECORD_CODE_OBJECT, tgid, time, handle, text);
}

static int unload(struct reported *reported, __u32 tgid, __u64 time, __u64 handle)
{
	return feed(reported, XPT_RECORD_CODE_UNLOADED, tgid, time, handle, "");
}

static const char *lines(struct reported *reported)
{
	cr_assert_eq(model_flush(reported->model), 0);
	return reported->lines;
}

Test(model_program_code_objects, loaded_and_unloaded)
{
	struct reported *reported = reported_create();

	cr_assert_eq(load(reported, 1, 100, 7,
			  "{\"uri\":\"memory://1#offset=0x7f00&size=8192\",\"kind\":\"hsaco\",\"machine\":\"gfx90a\","
			  "\"name\":\"conv\",\"size\":8192," HASH
			  ",\"runtime\":\"hip\",\"function\":\"hipModuleLoadData\","
			  "\"tid\":13,\"waited_ns\":500,\"missing\":96,\"error\":\"cut\",\"kernels\":[\"a\",\"b\"],"
			  "\"functions\":12}"),
		     0);
	cr_assert_eq(unload(reported, 1, 200, 7), 0);
	cr_assert_eq(unload(reported, 1, 300, 7), 0);
	cr_assert_eq(unload(reported, 1, 300, 8), 0);
	cr_assert_str_eq(lines(reported),
			 "load 1/13 100 0x7 hsaco conv memory://1#offset=0x7f00&size=8192 8192 cut 2 12 "
			 "96 500\nunload 1/0 200 0x7 hsaco conv memory://1#offset=0x7f00&size=8192 0 - 0 0 0 "
			 "0\n");
	reported_free(reported);
}

Test(model_program_code_objects, what_is_missing_is_not_reported)
{
	struct reported *reported = reported_create();

	cr_assert_eq(load(reported, 1, 100, 0, "{}"), 0);
	cr_assert_eq(load(reported, 1, 101, 0, "{\"kind\":5,\"size\":-1,\"tid\":1e300,\"kernels\":{},\"name\":\"\"}"),
		     0);
	cr_assert_eq(load(reported, 1, 102, 0, "{\"kernels\":[1,\"k\",null,\"\"],\"size\":1e30,\"functions\":\"3\"}"),
		     0);
	cr_assert_eq(unload(reported, 1, 200, 0), 0, "no handle");
	cr_assert_str_eq(lines(reported), "load 1/0 100 0x0 unknown - - 0 - 0 0 0 0\n"
					  "load 1/0 101 0x0 unknown - - 0 - 0 0 0 0\n"
					  "load 1/0 102 0x0 unknown - - 0 - 1 0 0 0\n");
	reported_free(reported);
}

Test(model_program_code_objects, text_that_is_no_object)
{
	struct reported *reported = reported_create();

	cr_assert_eq(load(reported, 1, 100, 7, "[1]"), 0, "it is held back first");
	cr_assert_eq(model_flush(reported->model), -EBADMSG);
	cr_assert_eq(load(reported, 1, 100, 7, "{\"kind\":"), 0);
	cr_assert_eq(model_flush(reported->model), -EBADMSG);
	cr_assert_eq(load(reported, 1, 100, 7, ""), 0);
	cr_assert_eq(model_flush(reported->model), -EBADMSG);
	cr_assert_eq(reported->count, 0);
	cr_assert_eq(model_code_totals(reported->model)->loads, 0);
	reported_free(reported);
}

/* By content, whoever has loaded it from where; of those without a hash, by where they come from. */
Test(model_program_code_objects, each_is_counted_once)
{
	struct reported *reported = reported_create();
	const struct model_code_totals *totals;
	const struct model_code_object *object;

	cr_assert_eq(load(reported, 1, 100, 7, "{\"kind\":\"ptx\",\"size\":9,\"uri\":\"file:///a\"," HASH "}"), 0);
	cr_assert_eq(load(reported, 2, 110, 7, "{\"kind\":\"ptx\",\"size\":9,\"uri\":\"file:///b\"," HASH "}"), 0);
	cr_assert_eq(load(reported, 1, 120, 8, "{\"kind\":\"ptx\",\"size\":9,\"uri\":\"file:///a\"}"), 0);
	cr_assert_eq(load(reported, 1, 130, 9, "{\"kind\":\"elf\",\"size\":9,\"uri\":\"file:///a\",\"missing\":4}"), 0);
	cr_assert_eq(load(reported, 1, 140, 10, "{\"kind\":\"elf\",\"size\":9,\"uri\":\"file:///a\",\"waited_ns\":5}"),
		     0);
	cr_assert_eq(unload(reported, 2, 150, 7), 0);
	cr_assert_eq(model_flush(reported->model), 0);
	cr_assert_eq(model_code_object_count(reported->model), 3);
	object = model_code_object(reported->model, 0);
	cr_assert_str_eq(object->uri, "file:///a");
	cr_assert_eq(object->loads, 2);
	cr_assert_eq(object->unloads, 1);
	object = model_code_object(reported->model, 2);
	cr_assert_str_eq(object->kind, "elf");
	cr_assert_null(object->sha256);
	cr_assert_eq(object->loads, 2);
	cr_assert_eq(object->incomplete, 1);
	totals = model_code_totals(reported->model);
	cr_assert_eq(totals->loads, 5);
	cr_assert_eq(totals->unloads, 1);
	cr_assert_eq(totals->incomplete, 1);
	cr_assert_eq(totals->waited, 1);
	cr_assert_eq(totals->wait_time, 5);
	cr_assert_eq(totals->kind_count, 2);
	cr_assert_str_eq(totals->kinds[0].name, "ptx");
	cr_assert_eq(totals->kinds[0].loads, 3);
	cr_assert_str_eq(totals->kinds[1].name, "elf");
	reported_free(reported);
}

Test(model_program_code_objects, handles_go_with_their_process)
{
	struct reported *reported = reported_create();
	struct fixture fixture = { .model = reported->model };

	cr_assert_eq(load(reported, 1, 100, 7, "{\"kind\":\"elf\"}"), 0);
	cr_assert_eq(load(reported, 2, 100, 7, "{\"kind\":\"ptx\"}"), 0);
	cr_assert_eq(feed_task(&fixture, XPT_TASK_EXEC, 1, 0, 150, "other"), 0);
	cr_assert_eq(feed_task(&fixture, XPT_TASK_EXIT, 2, 0, 150, "gone"), 0);
	cr_assert_eq(unload(reported, 1, 200, 7), 0);
	cr_assert_eq(unload(reported, 2, 200, 7), 0);
	cr_assert_eq(load(reported, 2, 210, 7, "{\"kind\":\"late\"}"), 0);
	cr_assert_eq(unload(reported, 2, 220, 7), 0, "what is reported late of one that has exited is not kept");
	cr_assert_eq(model_flush(reported->model), 0);
	cr_assert_eq(reported->count, 3);
	cr_assert_eq(model_code_totals(reported->model)->unloads, 0);
	reported_free(reported);
}

Test(model_program_code_objects, handle_that_is_used_again_is_the_later_one)
{
	struct reported *reported = reported_create();

	cr_assert_eq(load(reported, 1, 100, 7, "{\"kind\":\"elf\"}"), 0);
	cr_assert_eq(load(reported, 1, 110, 7, "{\"kind\":\"ptx\"}"), 0);
	cr_assert_eq(unload(reported, 1, 200, 7), 0);
	cr_assert_eq(unload(reported, 1, 210, 7), 0);
	cr_assert(strstr(lines(reported), "unload 1/0 200 0x7 ptx"));
	cr_assert_eq(reported->count, 3);
	reported_free(reported);
}

Test(model_program_code_objects, are_bounded)
{
	const struct model_code_totals *totals;
	struct reported *reported = reported_create();
	char text[128];

	for (__u64 i = 1; i <= MODEL_CODE_LOADS_MAX + 2; i++) {
		snprintf(text, sizeof(text), "{\"kind\":\"kind%llu\",\"uri\":\"file:///%llu\"}", i % 100, i);
		cr_assert_eq(load(reported, 1, i, i, text), 0);
	}
	for (__u64 i = 1; i <= 3; i++)
		cr_assert_eq(unload(reported, 1, 100000 + i, i), 0);
	cr_assert_eq(model_flush(reported->model), 0);
	totals = model_code_totals(reported->model);
	cr_assert_eq(model_code_object_count(reported->model), MODEL_CODE_OBJECTS_MAX);
	cr_assert_eq(totals->loads, MODEL_CODE_LOADS_MAX + 2);
	cr_assert_eq(totals->unloads, 1, "two had made room");
	cr_assert_eq(totals->kind_count, 32);
	cr_assert_str_eq(totals->kinds[31].name, "(others)");
	cr_assert_eq(totals->kinds[0].loads, 82);
	cr_assert_gt(totals->kinds[31].loads, 5000);
	reported_free(reported);
}

Test(model_program_code_objects, long_strings_are_cut_and_kernels_left_out)
{
	static char text[60000], bytes[65536] __attribute__((aligned(8)));
	struct xpt_record_text *record = (void *)bytes;
	struct reported *reported = reported_create();
	size_t length;

	length = (size_t)snprintf(text, sizeof(text),
				  "{\"kind\":\"%05000d\",\"uri\":\"%09000d\",\"kernels\":[\"%02000d\"", 1, 2, 3);
	for (int i = 0; i < 200; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, ",\"k%d\"", i);
	length += (size_t)snprintf(text + length, sizeof(text) - length, "]}");
	record->header = (struct xpt_record_header){ XPT_RECORD_CODE_OBJECT,
						     (__u16)XPT_ALIGN8(sizeof(*record) + length), 1, 100 };
	record->id = 7;
	record->length = (__u32)length;
	memcpy(record->text, text, length);
	cr_assert_eq(model_feed(reported->model, &record->header), 0);
	cr_assert_eq(model_flush(reported->model), 0);
	cr_assert_eq(strlen(model_code_object(reported->model, 0)->kind), 1024);
	cr_assert_eq(strlen(model_code_object(reported->model, 0)->uri), 4096);
	cr_assert_eq(model_code_object(reported->model, 0)->kernels, CODE_KERNELS_MAX);
	reported_free(reported);
}
