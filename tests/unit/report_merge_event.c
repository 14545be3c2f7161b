/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/merge/input.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct json_part part(const char *text)
{
	return (struct json_part){ text, strlen(text) };
}

Test(report_merge_event, times)
{
	static const struct {
		const char *text;
		__s64 time;
		bool fine;
	} good[] = {
		{ "0", 0, false },
		{ "-0.0e99999999999", 0, false },
		{ "1", 1000, false },
		{ "1.5", 1500, true },
		{ "1.0004", 1000, false },
		{ "1.0005", 1001, true },
		{ "-1.0005", -1001, true },
		{ "0.0004999", 0, false },
		{ "9007199254740.993", 9007199254740993, true }, /* 2^53 + 1: no double */
		{ "2124506063.773", 2124506063773, true },
		{ "1.790000000123456789e+15", 1790000000123456789, true },
		{ "1E3", 1000000, false },
		{ "1e-3", 1, true },
		{ "123456789e-9", 123, true },
		{ "1e-999999999999999999999", 0, false },
		{ "0.0000000000000000000000000000000000000000000001e46", 1000, false },
		{ "4611686018427387.903", 4611686018427387903, true },
	};
	static const char *const bad[] = {
		"\"1\"",
		"null",
		"{}",
		"[]",
		"true",
		"4611686018427387.904",
		"1e99",
		"-1e16",
		"1e999999999999999999999",
		"99999999999999999999999999999999999999999999999999",
	};
	__s64 time;
	bool fine;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		cr_assert(merge_time(part(good[i].text), &time, &fine), "%s", good[i].text);
		cr_assert_eq(time, good[i].time, "%s is %lld", good[i].text, time);
		cr_assert_eq(fine, good[i].fine, "%s", good[i].text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_not(merge_time(part(bad[i]), &time, &fine), "%s", bad[i]);
}

static char *rewrite(const char *json, const struct merge_numbers *numbers)
{
	struct merge_event event;
	struct text text = { 0 };

	merge_event_read(part(json), &event);
	cr_assert_null(event.fault, "%s: %s", json, event.fault);
	merge_event_write(&text, part(json), &event, numbers);
	text_bytes(&text, "", 1);
	return text.data;
}

static void expect(const char *json, const struct merge_numbers *numbers, const char *expected)
{
	char *text = rewrite(json, numbers);

	cr_assert_str_eq(text, expected);
	free(text);
}

Test(report_merge_event, shifted)
{
	struct merge_numbers numbers = { .shift = 1500 };

	expect(" {\"ph\" : \"X\" , \"ts\":1,\"dur\":2.5 , \"args\":{\"ts\":1, \"n\":123456789012345678901234567890}} ",
	       &numbers,
	       "{\"ph\":\"X\",\"ts\":2.500,\"dur\":2.5,\"args\":{\"ts\":1, \"n\":123456789012345678901234567890}}");
	/* What names something has no time. */
	expect("{\"ph\":\"M\",\"ts\":0,\"name\":\"process_name\"}", &numbers,
	       "{\"ph\":\"M\",\"ts\":0,\"name\":\"process_name\"}");
	numbers.shift = -3000;
	expect("{\"ph\":\"i\",\"ts\":1.25,\"s\":\"t\"}", &numbers, "{\"ph\":\"i\",\"ts\":-1.750,\"s\":\"t\"}");
	numbers.shift = 0;
	expect("{\"ph\":\"i\",\"ts\":1.25e0}", &numbers, "{\"ph\":\"i\",\"ts\":1.25e0}");
}

/* Ours are moved together; in the first space all stays. */
Test(report_merge_event, numbers_of_ours)
{
	struct merge_numbers numbers = { .ours = true };
	const char *job = "{\"ph\":\"X\",\"pid\":1073741826,\"tid\":1074790464,\"ts\":1}";

	expect(job, &numbers, job);
	numbers.space = 3;
	expect(job, &numbers, "{\"ph\":\"X\",\"pid\":1124073474,\"tid\":1125122112,\"ts\":1}");
	expect("{\"ph\":\"X\",\"pid\":4194303,\"tid\":100,\"ts\":1}", &numbers,
	       "{\"ph\":\"X\",\"pid\":4194303,\"tid\":100,\"ts\":1}");
}

Test(report_merge_event, numbers_of_others)
{
	__u32 devices[] = { 0, 7 };
	struct merge_numbers numbers = { .space = 2, .devices = devices, .device_count = 2 };

	expect("{\"ph\":\"X\",\"pid\":7,\"tid\":20,\"ts\":1}", &numbers,
	       "{\"ph\":\"X\",\"pid\":1107296263,\"tid\":20,\"ts\":1}");
	expect("{\"ph\":\"X\",\"pid\":\"0\",\"tid\":\"0\",\"ts\":1}", &numbers,
	       "{\"ph\":\"X\",\"pid\":1107296256,\"tid\":\"0\",\"ts\":1}");
	expect("{\"ph\":\"X\",\"pid\":70,\"tid\":1073741824,\"ts\":1}", &numbers,
	       "{\"ph\":\"X\",\"pid\":70,\"tid\":1073741824,\"ts\":1}");
	expect("{\"ph\":\"X\",\"pid\":\"Spans\",\"tid\":\"x\",\"ts\":1}", &numbers,
	       "{\"ph\":\"X\",\"pid\":\"Spans (3)\",\"tid\":\"x\",\"ts\":1}");
	expect("{\"ph\":\"X\",\"pid\":-1,\"tid\":null,\"ts\":1}", &numbers,
	       "{\"ph\":\"X\",\"pid\":-1,\"tid\":null,\"ts\":1}");
}

/* The same one stays the same in its space, however it is written, and is none of another space. */
Test(report_merge_event, identifiers)
{
	const char *const one = "{\"ph\":\"s\",\"id\":\"0x1f\"}";
	struct merge_numbers numbers = { .space = 0 };
	char *first, *second, *other;

	expect(one, &numbers, one);
	numbers.space = 1;
	first = rewrite(one, &numbers);
	second = rewrite(one, &numbers);
	cr_assert_str_eq(first, second);
	cr_assert_eq(strncmp(first, "{\"ph\":\"s\",\"id\":\"0x", 18), 0);
	numbers.space = 2;
	other = rewrite(one, &numbers);
	cr_assert_str_neq(first, other);
	cr_assert_str_neq(first, one);
	free(second);
	free(other);
	second = rewrite("{\"ph\":\"s\",\"id\":17,\"bind_id\":\"17\",\"id2\":{\"local\":17,\"global\":\"18\"}}",
			 &numbers);
	other = strstr(second, "\"bind_id\":") + 10;
	cr_assert_eq(strncmp(strstr(second, "\"id\":") + 5, other, 10), 0);
	cr_assert_eq(strncmp(strstr(second, "\"local\":") + 8, other, 10), 0);
	cr_assert_neq(strncmp(strstr(second, "\"global\":") + 9, other, 10), 0);
	free(first);
	free(second);
}

Test(report_merge_event, faults)
{
	static const char *const bad[] = {
		"{\"ph\":\"\"}",
		"{\"ph\":\"XY\"}",
		"{\"ph\":1}",
		"{\"ph\":\"X\",\"ts\":\"1\"}",
		"{\"ph\":\"X\",\"ts\":1e30}",
		"{\"ph\":\"X\",\"ts\":1,\"dur\":{}}",
		"{\"name\":\"x\"}",
		"{\"ts\":1}",
	};
	struct merge_event event;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		merge_event_read(part(bad[i]), &event);
		cr_assert_not_null(event.fault, "%s", bad[i]);
		cr_assert(event.fault_at >= bad[i] && event.fault_at < bad[i] + strlen(bad[i]));
	}
	merge_event_read(part("{}"), &event); /* stands at the end of arrays whose writers want no last comma */
	cr_assert(!event.fault && !event.phase);
}
