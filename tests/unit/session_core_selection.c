/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "session/core/session.h"

#define HANDLE 0x7000

enum { RUN, LAUNCH, COPY, OPERATOR, SPECS };

static struct call_spec specs[SPECS];
static struct call_spec *all[SPECS];
static struct registry registry;
static struct selection selection;
static __u64 passed[64];     /* the latest record, as a copy */
static const void *original; /* of it; NULL: nothing was passed on */
static unsigned int count;
static struct {
	struct xpt_record_call record;
	__u64 values[6];
} call;

static void setup(void)
{
	specs[RUN].wire = (struct xpt_spec){ .role = XPT_ROLE_EXECUTE,
					     .flags = XPT_SPEC_SAMPLED | XPT_SPEC_BY_PROGRAM };
	specs[LAUNCH].wire = (struct xpt_spec){ .role = XPT_ROLE_LAUNCH, .flags = XPT_SPEC_SAMPLED };
	specs[COPY].wire.role = XPT_ROLE_COPY;
	specs[OPERATOR].wire.role = XPT_ROLE_OPERATOR;
	for (unsigned int i = 0; i < SPECS; i++) {
		specs[i].wire.index = i;
		specs[i].wire.runtime = 2;
		all[i] = &specs[i];
	}
	registry.specs = all;
	registry.spec_count = SPECS;
	selection_init(&selection, &registry, 4);
}

static void teardown(void)
{
	selection_free(&selection);
}

TestSuite(session_core_selection, .init = setup, .fini = teardown);

static void on_record(void *context, const struct xpt_record_header *record)
{
	(void)context;
	cr_assert_leq(record->size, sizeof(passed));
	memcpy(passed, record, record->size);
	original = record;
	count++;
}

static const void *pass(const void *record)
{
	original = NULL;
	count = 0;
	selection_pass(&selection, record, on_record, NULL);
	return original ? passed : NULL;
}

/* number -1: it has none. */
static const struct xpt_record_call *take(unsigned int spec, __s64 number)
{
	memset(&call, 0, sizeof(call));
	call.record.header = (struct xpt_record_header){ XPT_RECORD_CALL, sizeof(call.record) + 8, 5, 1000 };
	call.record.spec = spec;
	call.record.valid = call.record.values = 1;
	call.record.sample = 1;
	call.values[0] = HANDLE;
	if (number >= 0) {
		call.values[1] = number;
		call.record.header.size += 8;
		call.record.flags = XPT_CALL_NUMBERED;
	}
	return pass(&call.record);
}

/* A total is kept until the next pass, as calls that began before it may still come. */
static __u64 left_out(__u16 spec, __u64 handle, bool more)
{
	const struct xpt_record_header end = { XPT_RECORD_PASS, sizeof(end), 0, 3000 };
	const struct xpt_record_total total = {
		.header = { XPT_RECORD_TOTAL, sizeof(total), 5, 2000 },
		.key = { .tgid = 5, .runtime = 2, .spec = spec, .handle = handle },
		.count = { .calls = 100, .left_out = 3 },
	};
	struct xpt_record_total taken = {};

	cr_expect_null(pass(&total));
	if (more)
		cr_expect_null(take(RUN, 1));
	original = NULL;
	count = 0;
	selection_flush(&selection, on_record, NULL);
	cr_expect_eq(count, 1);
	memcpy(&taken, passed, sizeof(taken));
	cr_expect_eq(taken.header.time, 2000);
	cr_expect_eq(taken.count.calls, 100);
	cr_expect_not_null(pass(&end));
	cr_expect_eq(count, 1, "it was passed on before");
	return taken.count.left_out;
}

/* What is left out is in the next total of its program, and in none after it. */
Test(session_core_selection, samples)
{
	for (unsigned int number = 0; number < 10; number++) {
		const struct xpt_record_call *taken = take(RUN, number);

		cr_expect_eq(taken != NULL, number % 4 == 0, "%u", number);
		if (taken)
			cr_expect(taken->sample == 4 && taken->values == 1 && taken->value[1] == number);
	}
	cr_expect_null(take(LAUNCH, 1));
	cr_expect_eq(selection.calls, 8);
	cr_expect_eq(left_out(0, HANDLE + 1, false), 3, "another program");
	cr_expect_eq(left_out(0, HANDLE, true), 3 + 7 + 1);
	cr_expect_eq(left_out(0, HANDLE, false), 3);
	cr_expect_eq(left_out(LAUNCH + 1, 0, false), 3 + 1, "counted by its function");
}

/* To keep a budget, the kernel may record fewer calls of a program than were asked for. */
Test(session_core_selection, the_kernel_samples_too)
{
	static const struct {
		__u32 kernel, every, both;
	} cases[] = { { 1, 4, 4 },
		      { 2, 4, 4 },
		      { 8, 4, 8 },
		      { 6, 4, 12 },
		      { 5, 3, 15 },
		      { 0, 4, 4 },
		      { 1 << 20, 3, 3 << 20 },
		      { 999983, 999979, UINT32_MAX } };

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct xpt_record_call *taken;

		take(RUN, 0);
		selection.every = cases[i].every;
		call.record.sample = cases[i].kernel;
		taken = pass(&call.record);
		cr_assert(taken);
		cr_expect_eq(taken->sample, cases[i].both, "1 in %u of 1 in %u: %u", cases[i].every, cases[i].kernel,
			     taken->sample);
	}
}

/* They have the number of their inference, which nobody gets to see. */
Test(session_core_selection, operators)
{
	const struct xpt_record_call *taken = take(OPERATOR, 8);

	cr_assert(taken);
	cr_expect_eq(taken->header.size, sizeof(call.record) + 8);
	cr_expect_eq(taken->flags, 0);
	cr_expect_eq(taken->sample, 4);
	cr_expect_null(take(OPERATOR, 9));
	cr_expect_null(take(OPERATOR, -1), "in no inference");
	cr_expect_eq(selection.calls, 0, "they are not counted");
	selection.every = 1;
	cr_expect_eq(take(OPERATOR, 9)->header.size, sizeof(call.record) + 8);
	cr_expect(take(OPERATOR, -1) && original == &call.record);
}

Test(session_core_selection, everything_else)
{
	const struct xpt_record_header end = { XPT_RECORD_PASS, sizeof(end), 0, 1 };

	cr_expect(take(COPY, -1) && original == &call.record);
	cr_expect(take(RUN, -1) && original == &call.record, "a layer");
	cr_expect(take(SPECS, 1) && original == &call.record, "of the collector's own specs");
	cr_expect(pass(&end) && original == &end);
	selection.every = 0;
	cr_expect(take(RUN, 1) && original == &call.record);
}

/* What ran before the total and what ran after it, in one pass. */
Test(session_core_selection, handle_used_again)
{
	struct xpt_record_total total = {
		.header = { XPT_RECORD_TOTAL, sizeof(total), 5, 500 },
		.key = { .tgid = 5, .runtime = 2, .handle = HANDLE },
	};

	cr_expect_null(take(RUN, 1)); /* began at 0 */
	cr_expect_null(pass(&total));
	call.record.start = 600;
	cr_expect_null(pass(&call.record));
	count = 0;
	selection_flush(&selection, on_record, NULL);
	cr_expect_eq(count, 1);
	cr_expect_eq(((const struct xpt_record_total *)passed)->count.left_out, 1);
	total.header.time = 2000;
	cr_expect_null(pass(&total));
	selection_flush(&selection, on_record, NULL);
	cr_expect_eq(((const struct xpt_record_total *)passed)->count.left_out, 1);
}
