/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/diff.h"

#include <criterion/criterion.h>

#include "analysis/diff_private.h"
#include "analysis_diff.h"

Test(analysis_diff_condition, right)
{
	static const struct {
		const char *text;
		struct diff_condition expected;
	} cases[] = {
		{ "p99 > +10%", { "p99", "", DIFF_GREATER, true, false, 10 } },
		{ "p99>10%", { "p99", "", DIFF_GREATER, true, false, 10 } },
		{ " mean >= +1.5ms ", { "mean", "", DIFF_AT_LEAST, false, true, 1500000 } },
		{ "throughput < -5% of resnet 50", { "throughput", "resnet 50", DIFF_LESS, true, false, -5 } },
		{ "throughput <= -2.5 of \"a b\"", { "throughput", "a b", DIFF_AT_MOST, false, false, -2.5 } },
		{ "\"Mat Mul>3\" > +20us", { "Mat Mul>3", "", DIFF_GREATER, false, true, 20000 } },
		{ "waited > +0%", { "waited", "", DIFF_GREATER, true, false, 0 } },
	};
	struct diff_condition condition;
	char reason[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cr_assert_eq(diff_condition_parse(cases[i].text, &condition, reason, sizeof(reason)), 0, "%s: %s",
			     cases[i].text, reason);
		cr_assert_str_eq(condition.row, cases[i].expected.row);
		cr_assert_str_eq(condition.program, cases[i].expected.program);
		cr_assert_eq(condition.compare, cases[i].expected.compare);
		cr_assert_eq(condition.percent, cases[i].expected.percent);
		cr_assert_eq(condition.time, cases[i].expected.time);
		cr_assert_float_eq(condition.limit, cases[i].expected.limit, 1e-9);
	}
}

Test(analysis_diff_condition, wrong)
{
	static const char *const texts[] = { "",
					     "p99",
					     "p99 >",
					     "p99 = 5%",
					     "p99 > x",
					     "p99 > -10%",
					     "p99 < +10%",
					     "p99 < 10%",
					     "p99 > 10%%",
					     "p99 > 5% over 3s",
					     "p99 > 5% of",
					     "\"p99 > 5%",
					     "\"\" > 5%",
					     "> 5%",
					     "p99 > 5% of \"a",
					     "p99 > 5% of \"a\" b",
					     "p99 > nan%",
					     "p99 > 99999999%",
					     "p99 >> 5%",
					     "p99 > +\x1b%" };
	struct diff_condition condition;
	char reason[256], longest[400];

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		memset(reason, 'x', sizeof(reason));
		cr_assert_eq(diff_condition_parse(texts[i], &condition, reason, sizeof(reason)), -EINVAL, "%s",
			     texts[i]);
		cr_assert(strlen(reason) > 10 && !strchr(reason, '\x1b'), "%s", reason);
	}
	memset(longest, 'a', sizeof(longest));
	strcpy(longest + 300, " > 5%");
	cr_assert_eq(diff_condition_parse(longest, &condition, reason, 20), -EINVAL);
	cr_assert_lt(strlen(reason), 20);
}

/* A change counts when it is beyond the limit and more than noise. */
Test(analysis_diff_condition, checks)
{
	static const char *const conditions[] = { "p50 > +10%",		  "p50 > +90%",	       "waited > +1%",
						  "small > +0.001%",	  "nothing > +1%",     "p50 > +10% of other",
						  "p50 > +10us of model", "throughput < -10%", "p50 > +5",
						  "throughput < -100" };
	static const bool failed[] = { true, false, false, false, false, false, true, true, false, true };
	static const bool there[] = { true, true, true, true, false, false, true, true, false, true };
	const struct made before = {
		.recordings = 1, .inferences = 1600, .operators = { 200000, 50000 }, .noise = 0.05, .waited = 100000
	};
	struct made after = before;
	struct xpt_diff *diff;

	after.operators[0] = 400000;
	diff = made_diff(&before, &after, conditions, 10);
	cr_assert_eq(diff->check_count, 10);
	for (size_t i = 0; i < 10; i++) {
		cr_assert_eq(diff->checks[i].failed, failed[i], "%s", conditions[i]);
		cr_assert_eq(diff->checks[i].row != NULL, there[i], "%s", conditions[i]);
		cr_assert_str_eq(diff->checks[i].condition, conditions[i]);
	}
	cr_assert(diff->failed);
	diff_free(diff);
	diff = made_diff(&before, &before, conditions, 2);
	cr_assert(!diff->failed && diff->check_count == 2);
	diff_free(diff);
	cr_assert_null(made_diff(&before, &before, (const char *const[]){ "p50" }, 1));
}
