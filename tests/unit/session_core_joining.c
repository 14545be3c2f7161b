/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "session/core/session.h"
#include "session/reader/describe_records.h"

#define SINCE 1000
#define HANDLE 0x7000

enum { LOAD, RUN, SPECS };

static struct call_spec specs[SPECS];
static struct call_spec *all[SPECS];
static struct registry registry;
static struct collector collector;
static struct joining joining;
static struct statedump dump;
static struct {
	struct xpt_record_header record;
	char text[64];
} passed[64];
static unsigned int count;

static void setup(void)
{
	specs[LOAD].wire = (struct xpt_spec){ .index = LOAD, .role = XPT_ROLE_PROGRAM_LOAD, .flags = XPT_SPEC_CONTROL };
	specs[RUN].wire = (struct xpt_spec){ .index = RUN, .role = XPT_ROLE_EXECUTE, .flags = XPT_SPEC_BY_PROGRAM };
	for (unsigned int i = 0; i < SPECS; i++)
		all[i] = &specs[i];
	registry = (struct registry){ .specs = all, .spec_count = SPECS };
	collector.registry = &registry;
	joining_init(&joining, &collector);
	joining.since = SINCE;
	statedump_init(&dump, &registry);
	count = 0;
}

static void teardown(void)
{
	joining_free(&joining);
	statedump_free(&dump);
}

TestSuite(session_core_joining, .init = setup, .fini = teardown);

static void on_record(void *context, const struct xpt_record_header *record)
{
	(void)context;
	cr_assert(count < 64 && record->size <= sizeof(passed[0]));
	memcpy(&passed[count++], record, record->size);
}

static bool takes_call(__u16 spec, __u64 start, __u64 end)
{
	struct {
		struct xpt_record_call record;
		__u64 handle;
	} call = { .record = { .header = { XPT_RECORD_CALL, sizeof(call), 5, end },
			       .start = start,
			       .spec = spec,
			       .valid = 1,
			       .values = 1 },
		   .handle = HANDLE };

	return joining_pass(&joining, &call.record.header);
}

static bool takes(enum xpt_record_kind kind, __u64 time)
{
	struct xpt_record_region region = { .header = { kind, sizeof(region), 5, time }, .start = time };

	return joining_pass(&joining, &region.header);
}

Test(session_core_joining, what_began_before)
{
	cr_expect(takes_call(RUN, SINCE, SINCE + 1));
	cr_expect_not(takes_call(RUN, SINCE - 1, SINCE + 1));
	cr_expect(takes_call(LOAD, SINCE - 1, SINCE + 1), "nobody knows of it yet");
	cr_expect_not(takes_call(LOAD, SINCE - 2, SINCE - 1), "what it loaded is known");
	cr_expect(takes(XPT_RECORD_REGION, SINCE));
	cr_expect_not(takes(XPT_RECORD_REGION, SINCE - 1));
	cr_expect_not(takes(XPT_RECORD_LOST, SINCE));
	cr_expect(takes(XPT_RECORD_LOST, SINCE + 1));
	cr_expect_not(takes(XPT_RECORD_CODE, SINCE), "by a thread that waits for others");
	cr_expect(takes(XPT_RECORD_PROCESS, SINCE - 1), "it defines others");
}

static void count_before(__u16 spec, __u64 handle, __u64 calls)
{
	const struct xpt_program_entry entry = { .key = { .tgid = 5, .spec = spec, .handle = handle },
						 .count = { .calls = calls, .left_out = 2, .lost = 1 } };

	cr_assert_eq(joining_baseline(&joining, &entry), 0);
}

static const struct xpt_program_count *total(__u16 spec, __u64 handle, __u64 calls, __u64 time)
{
	const struct xpt_record_total record = {
		.header = { XPT_RECORD_TOTAL, sizeof(record), 5, time },
		.key = { .tgid = 5, .spec = spec, .handle = handle },
		.count = { .calls = calls, .left_out = 2, .lost = 4 },
	};
	static struct xpt_record_total taken;
	const struct xpt_record_header *header = joining_pass(&joining, &record.header);

	if (header)
		memcpy(&taken, header, sizeof(taken));
	return header ? &taken.count : NULL;
}

/* The next program with the handle is counted from its own begin. */
Test(session_core_joining, counts_from_before)
{
	const struct xpt_program_count *counted;

	count_before(0, HANDLE, 10);
	count_before(0, HANDLE + 1, 10);
	cr_expect_null(total(0, HANDLE, 10, SINCE), "all of it was before");
	counted = total(0, HANDLE, 17, SINCE + 1);
	cr_assert(counted);
	cr_expect(counted->calls == 7 && counted->left_out == 0 && counted->lost == 3);
	counted = total(0, HANDLE, 17, SINCE + 2);
	cr_expect(counted && counted->calls == 17 && counted->left_out == 2);
	cr_expect_null(total(0, HANDLE + 1, 10, SINCE + 1), "it has not run since");
	cr_expect(total(0, HANDLE + 2, 1, SINCE + 1));
}

/* It began before, and comes later all the same. */
Test(session_core_joining, count_of_a_load)
{
	const struct xpt_program_count *counted;

	count_before(LOAD + 1, 0, 3);
	cr_expect(takes_call(LOAD, SINCE - 1, SINCE + 1));
	counted = total(LOAD + 1, 0, 3, SINCE + 2);
	cr_expect(counted && counted->calls == 1);
}

static void know(struct xpt_record_text *record)
{
	cr_assert_eq(statedump_record(&dump, &record->header), 0);
	free(record);
}

static void know_program(__u64 time, __u64 handle, const char *name, bool released)
{
	const struct model_process process = { .tgid = 5 };
	const struct model_program program = { .process = &process, .handle = handle, .name = name, .named = true };
	const struct event event = { .kind = EVENT_PROGRAM,
				     .program = { .program = &program, .time = time, .released = released } };
	const struct event_sink sink = statedump_sink(&dump);

	cr_assert_eq(sink.write(sink.context, &event), 0);
}

static unsigned int passed_of(enum xpt_record_kind kind)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < count; i++) {
		found += passed[i].record.kind == kind;
		cr_expect(kind != passed[i].record.kind || passed[i].record.time <= SINCE);
	}
	return found;
}

/* As it was when the consumer joined, however much is known of later. */
Test(session_core_joining, state)
{
	struct xpt_record_string string = {
		.header = { XPT_RECORD_STRING, sizeof(string), 5, 900 }, .call_start = 890, .tid = 6, .spec = LOAD
	};
	const struct xpt_record_call call = {
		.header = { XPT_RECORD_CALL, sizeof(call), 5, 950 }, .start = 890, .tid = 7, .spec = LOAD
	};

	know(record_text(XPT_RECORD_THREAD, 5, 100, 6, "worker"));
	know(record_text(XPT_RECORD_NAMED, 5, 100, HANDLE, "one"));
	know_program(200, HANDLE, "one", false);
	know_program(210, HANDLE + 1, "two", false);
	know_program(300, HANDLE, "one", true);
	know_program(SINCE + 1, HANDLE + 1, "two", true);
	know_program(SINCE + 2, HANDLE + 2, "three", false);
	cr_assert_eq(statedump_record(&dump, &string.header), 0);
	string.tid = call.tid;
	cr_assert_eq(statedump_record(&dump, &string.header), 0);
	cr_assert_eq(statedump_record(&dump, &call.header), 0, "which has returned");
	cr_assert_eq(joining_state(&joining, &dump, on_record, NULL), 0);
	cr_expect_eq(passed_of(XPT_RECORD_THREAD), 1);
	cr_expect_eq(passed_of(XPT_RECORD_NAMED), 1);
	cr_expect_eq(passed_of(XPT_RECORD_STRING), 1);
	cr_assert_eq(passed_of(XPT_RECORD_LOADED), 1);
	for (unsigned int i = 0; i < count; i++)
		if (passed[i].record.kind == XPT_RECORD_LOADED)
			cr_expect_eq(((struct xpt_record_text *)&passed[i])->id, HANDLE + 1);
}

/* What was changed to keep the budget and is in force. */
Test(session_core_joining, budget)
{
	know(record_text(XPT_RECORD_BUDGET, 5, 100, 0, "{\"action\":\"sampling\",\"every\":2}"));
	know(record_text(XPT_RECORD_BUDGET, 5, 200, 0, "{\"action\":\"sampling\",\"every\":8}"));
	know(record_text(XPT_RECORD_BUDGET, 0, 200, 0, "{\"action\":\"operators\",\"on\":false}"));
	know(record_text(XPT_RECORD_BUDGET, 0, 300, 0, "{\"action\":\"operators\",\"on\":true}"));
	cr_expect_not(takes(XPT_RECORD_BUDGET, SINCE));
	cr_expect(takes(XPT_RECORD_BUDGET, SINCE + 1));
	cr_assert_eq(joining_state(&joining, &dump, on_record, NULL), 0);
	cr_assert_eq(passed_of(XPT_RECORD_BUDGET), 1);
	cr_expect_eq(passed[0].record.time, SINCE);
	cr_expect(strstr(((const struct xpt_record_text *)&passed[0])->text, ":8}"));
}
