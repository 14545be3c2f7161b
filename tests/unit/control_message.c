/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/core/json.h"
#include "control/control.h"

static cJSON *parsed(const char *text)
{
	cJSON *object = cJSON_Parse(text);

	cr_assert(object, "%s", text);
	return object;
}

/* As it is after its way through a socket. */
static cJSON *sent(struct text *packet)
{
	cJSON *again;

	cr_assert_eq(control_end(packet), 0);
	cr_assert(json_is_object(packet->data, packet->length));
	cr_assert_eq(json_parse(packet->data, packet->length, &again), 0);
	text_free(packet);
	return again;
}

static cJSON *sent_save(const struct xpt_save_options *options)
{
	struct text packet = { 0 };

	control_begin_request(&packet, 1, "save");
	control_add_save(&packet, options);
	return sent(&packet);
}

/* ---- save ---- */

Test(control_message, everything_that_can_be_asked_for_arrives)
{
	struct xpt_save_options asked = {
		.size = sizeof(asked),
		.pid = INT32_MAX,
		.program = "a \"name\"\n\t/\\",
		.handle = UINT64_MAX,
		.has_core = 1,
		.core = -7,
		.inferences = 1ull << 53,
		.time = 3600000000000,
	};
	struct xpt_save_options read;
	const char *member;
	cJSON *object = sent_save(&asked);

	cr_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(object, "do")), "save");
	cr_assert_eq(control_read_save(object, &read, &member), 0, "%s", member);
	cr_assert_eq(read.size, sizeof(read));
	cr_assert_eq(read.pid, asked.pid);
	cr_assert_str_eq(read.program, asked.program);
	cr_assert_eq(read.handle, asked.handle);
	cr_assert_eq(read.has_core, 1);
	cr_assert_eq(read.core, -7);
	cr_assert_eq(read.inferences, asked.inferences);
	cr_assert_eq(read.time, asked.time);
	cJSON_Delete(object);
}

Test(control_message, the_whole_window_is_asked_for_by_nothing)
{
	struct xpt_save_options asked = { .size = sizeof(asked) }, read;
	const char *member;
	cJSON *object = sent_save(&asked);

	cr_assert_eq(cJSON_GetArraySize(object), 3, "xputrace, id, do");
	cr_assert_eq(control_read_save(object, &read, &member), 0);
	cr_assert_eq(memcmp(&read, &asked, sizeof(read)), 0);
	cJSON_Delete(object);
}

Test(control_message, core_0_is_a_core)
{
	struct xpt_save_options asked = { .size = sizeof(asked), .has_core = 1 }, read;
	const char *member;
	cJSON *object = sent_save(&asked);

	cr_assert_eq(control_read_save(object, &read, &member), 0);
	cr_assert_eq(read.has_core, 1);
	cr_assert_eq(read.core, 0);
	cJSON_Delete(object);
}

static void expect_refused(const char *text, const char *name)
{
	struct xpt_save_options read;
	const char *member = "";
	cJSON *object = parsed(text);

	cr_expect_eq(control_read_save(object, &read, &member), -EINVAL, "%s", text);
	cr_expect_str_eq(member, name, "%s: %s", text, member);
	cJSON_Delete(object);
}

Test(control_message, hostile_requests_are_refused_by_member)
{
	static const char *const numbers[] = { "-1", "0",  "0.5",  "1.5", "9007199254740994", "1e300", "1e999", "\"1\"",
					       "[]", "{}", "null", "true" };
	static const char *const members[] = { "pid", "inferences", "time" };
	char text[100];

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
			snprintf(text, sizeof(text), "{\"%s\":%s}", members[i], numbers[k]);
			expect_refused(text, members[i]);
		}
	}
	expect_refused("{\"pid\":2147483648}", "pid");
	expect_refused("{\"program\":7}", "program");
	expect_refused("{\"program\":null}", "program");
	expect_refused("{\"program\":[\"a\"]}", "program");
	expect_refused("{\"core\":\"3\"}", "core");
	expect_refused("{\"core\":null}", "core");
	expect_refused("{\"core\":0.5}", "core");
	expect_refused("{\"core\":-1e300}", "core");
	expect_refused("{\"handle\":7}", "handle");
	expect_refused("{\"handle\":\"\"}", "handle");
	expect_refused("{\"handle\":\"-1\"}", "handle");
	expect_refused("{\"handle\":\" 1\"}", "handle");
	expect_refused("{\"handle\":\"0x\"}", "handle");
	expect_refused("{\"handle\":\"0x1g\"}", "handle");
	expect_refused("{\"handle\":\"0x10000000000000000\"}", "handle");
}

Test(control_message, members_are_called_exactly_so)
{
	struct xpt_save_options read, all = { .size = sizeof(all) };
	const char *member;
	cJSON *object = parsed("{\"Core\":3,\"PID\":4,\"Program\":7,\"TIME\":\"x\",\"more\":[1,2]}");

	cr_assert_eq(control_read_save(object, &read, &member), 0);
	cr_assert_eq(memcmp(&read, &all, sizeof(read)), 0);
	cJSON_Delete(object);
}

/* ---- saved ---- */

Test(control_message, what_was_saved_arrives)
{
	const struct xpt_saved saved = {
		.size = 1,
		.path = "/tmp/\303\244 \"b\"\n\033[31m.xpt",
		.bytes = 1ull << 53,
		.begin = 1794787335000000001,
		.end = UINT64_MAX,
		.records = 3,
		.inferences = 4,
		.lost = 5,
		.duration = 6,
	};
	struct xpt_saved read = { .size = 77 };
	struct text packet = { 0 };
	cJSON *object;

	control_begin_answer(&packet, 1);
	control_add_saved(&packet, &saved);
	object = sent(&packet);
	cr_assert_eq(control_read_saved(object, &read), 0);
	cr_assert_eq(read.size, 77);
	cr_assert_str_eq(read.path, saved.path);
	cr_assert_eq(read.bytes, saved.bytes);
	cr_assert_eq(read.begin, saved.begin);
	cr_assert_eq(read.end, saved.end);
	cr_assert_eq(read.records, 3);
	cr_assert_eq(read.inferences, 4);
	cr_assert_eq(read.lost, 5);
	cr_assert_eq(read.duration, 6);
	cJSON_Delete(object);
}

Test(control_message, hostile_answers_leave_the_result_alone)
{
	static const char *const texts[] = {
		"{}",
		"{\"path\":7}",
		"{\"path\":\"a\",\"bytes\":-1}",
		"{\"path\":\"a\",\"bytes\":\"1\"}",
		"{\"path\":\"a\",\"records\":1.5}",
		"{\"path\":\"a\",\"begin\":1}",
		"{\"path\":\"a\",\"begin\":\"0x10\"}",
		"{\"path\":\"a\",\"end\":\"18446744073709551616\"}",
		"[]",
	};
	struct xpt_saved read = { .size = 77, .bytes = 8 }, before = read;
	char path[5000];
	cJSON *object;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		object = parsed(texts[i]);
		cr_expect_eq(control_read_saved(object, &read), -EINVAL, "%s", texts[i]);
		cr_expect_eq(memcmp(&read, &before, sizeof(read)), 0, "%s", texts[i]);
		cJSON_Delete(object);
	}
	object = cJSON_CreateObject();
	memset(path, 'a', sizeof(path));
	path[sizeof(read.path)] = '\0';
	cJSON_AddStringToObject(object, "path", path);
	cr_assert_eq(control_read_saved(object, &read), -EINVAL, "it has no room");
	cJSON_Delete(object);
	object = cJSON_CreateObject();
	path[sizeof(read.path) - 1] = '\0';
	cJSON_AddStringToObject(object, "path", path);
	cr_assert_eq(control_read_saved(object, &read), 0, "it just fits; others are of a later version");
	cr_assert_eq(strlen(read.path), sizeof(read.path) - 1);
	cr_assert_eq(read.bytes, 0);
	cJSON_Delete(object);
}

/* ---- status ---- */

Test(control_message, every_figure_of_the_status_arrives)
{
	struct xpt_continuous_status status = { .size = 1, .pid = 4711, .processes = UINT32_MAX },
				     read = { .size = 77 };
	uint64_t *figures[] = { &status.elapsed,
				&status.calls,
				&status.lost,
				&status.window_time,
				&status.window_bytes,
				&status.window_records,
				&status.window_inferences,
				&status.evicted_records,
				&status.evicted_inferences,
				&status.saves,
				&status.saved_bytes,
				&status.failed_saves,
				&status.triggered,
				&status.suppressed,
				&status.cpu_time };
	struct text packet = { 0 };
	cJSON *object;

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		*figures[i] = (1ull << 40) + i;
	status.elapsed = 1ull << 60; /* 36 years: beyond 2^53 */
	control_begin_answer(&packet, 1);
	control_add_status(&packet, &status);
	object = sent(&packet);
	cr_assert_eq(control_read_status(object, &read), 0);
	cr_assert_eq(read.size, 77);
	read.size = status.size;
	cr_assert_eq(memcmp(&read, &status, sizeof(read)), 0, "a figure is not the same");
	cJSON_Delete(object);
}

Test(control_message, hostile_status_leaves_the_result_alone)
{
	static const char *const texts[] = { "{\"pid\":-1}",	  "{\"pid\":2147483648}", "{\"processes\":4294967296}",
					     "{\"calls\":\"1\"}", "{\"cpu_time\":-0.5}",  "{\"lost\":null}" };
	struct xpt_continuous_status read = { .size = 77, .calls = 8 }, before = read;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		cJSON *object = parsed(texts[i]);

		cr_expect_eq(control_read_status(object, &read), -EINVAL, "%s", texts[i]);
		cr_expect_eq(memcmp(&read, &before, sizeof(read)), 0, "%s", texts[i]);
		cJSON_Delete(object);
	}
}
