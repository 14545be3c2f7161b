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
	return (const void *)selection_take(&selection, &call.record.header);
}

static __u64 left_out(__u16 spec, __u64 handle)
{
	const struct xpt_record_total total = {
		.header = { XPT_RECORD_TOTAL, sizeof(total), 5, 2000 },
		.key = { .tgid = 5, .runtime = 2, .spec = spec, .handle = handle },
		.count = { .calls = 100, .left_out = 3 },
	};
	const struct xpt_record_total *taken = (const void *)selection_take(&selection, &total.header);

	cr_expect_eq(taken->count.calls, 100);
	return taken->count.left_out;
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
	cr_expect_eq(left_out(0, HANDLE + 1), 3, "another program");
	cr_expect_eq(left_out(0, HANDLE), 3 + 7);
	cr_expect_eq(left_out(0, HANDLE), 3);
	cr_expect_eq(left_out(LAUNCH + 1, 0), 3 + 1, "counted by its function");
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
	cr_expect(take(OPERATOR, -1) == &call.record);
}

Test(session_core_selection, everything_else)
{
	const struct xpt_record_header pass = { XPT_RECORD_PASS, sizeof(pass), 0, 1 };

	cr_expect(take(COPY, -1) == &call.record);
	cr_expect(take(RUN, -1) == &call.record, "a layer");
	cr_expect(take(SPECS, 1) == &call.record, "of the collector's own specs");
	cr_expect(selection_take(&selection, &pass) == &pass);
	selection.every = 0;
	cr_expect(take(RUN, 1) == &call.record);
}
