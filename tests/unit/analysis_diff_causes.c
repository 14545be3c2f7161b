/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/diff.h"

#include <criterion/criterion.h>

#include "analysis_diff.h"

#define LIKE .recordings = 1, .inferences = 4000, .operators = { 200000, 50000 }, .noise = 0.02

static const struct xpt_diff_cause *cause(const struct xpt_diff *diff, const char *row)
{
	for (size_t i = 0; i < diff->programs[0].cause_count; i++)
		if (!strcmp(diff->programs[0].causes[i].row, row))
			return &diff->programs[0].causes[i];
	return NULL;
}

static double part(const struct xpt_diff_cause *of, const char *name)
{
	for (size_t i = 0; i < of->part_count; i++)
		if (!strcmp(of->parts[i].name, name))
			return of->parts[i].change;
	return 0;
}

/* Parts and rest are the change; the largest part comes first. */
static void check_sums(const struct xpt_diff *diff)
{
	cr_assert_eq(diff->programs[0].cause_count, 3);
	for (size_t i = 0; i < 3; i++) {
		const struct xpt_diff_cause *one = &diff->programs[0].causes[i];
		double sum = one->rest;

		for (size_t k = 0; k < one->part_count; k++) {
			sum += one->parts[k].change;
			cr_assert(!k || fabs(one->parts[k].change) <= fabs(one->parts[k - 1].change));
		}
		cr_assert(fabs(sum - one->change) < 1e-3);
		cr_assert(fabs(one->change - made_row(diff, one->row)->change) < 1e-3);
	}
}

Test(analysis_diff_causes, operator_slower)
{
	const struct made before = { LIKE, .waited = 100000 };
	struct made after = before;
	struct xpt_diff *diff;

	after.operators[1] = 150000;
	diff = made_diff(&before, &after, NULL, 0);
	check_sums(diff);
	for (int i = 0; i < 3; i++) {
		const struct xpt_diff_cause *one = cause(diff, ((const char *[]){ "mean", "p50", "p99" })[i]);

		cr_assert(fabs(part(one, "small") - 100000) < 8000, "%s: %g", one->row, part(one, "small"));
		cr_assert_str_eq(one->parts[0].name, "small");
		cr_assert_eq(one->parts[0].kind, XPT_DIFF_OPERATOR);
		cr_assert(fabs(one->rest) < 0.1 * fabs(one->change), "%s: rest %g", one->row, one->rest);
	}
	diff_free(diff);
}

/* The wait lies in the first operator, and is no change of it. */
Test(analysis_diff_causes, more_waiting)
{
	const struct made before = { LIKE, .waited = 20000 };
	struct made after = before;
	struct xpt_diff *diff;

	after.waited = 2000000;
	diff = made_diff(&before, &after, NULL, 0);
	check_sums(diff);
	for (int i = 0; i < 2; i++) {
		const struct xpt_diff_cause *one = cause(diff, i ? "p99" : "mean");

		cr_assert_str_eq(one->parts[0].name, "waited");
		cr_assert(part(one, "waited") > 0.9 * one->change && part(one, "waited") < 1.1 * one->change);
		cr_assert(fabs(part(one, "big")) < 0.05 * one->change, "%s: %g of %g", one->row, part(one, "big"),
			  one->change);
	}
	diff_free(diff);
}

Test(analysis_diff_causes, without_states_or_operators)
{
	struct made before = { LIKE, .no_operators = true }, after;
	struct xpt_diff *diff;

	after = before;
	after.operators[0] = 300000;
	diff = made_diff(&before, &after, NULL, 0);
	check_sums(diff);
	cr_assert_str_eq(cause(diff, "p50")->parts[0].name, "cpu");
	diff_free(diff);
	before.no_states = after.no_states = true;
	before.no_operators = after.no_operators = false;
	diff = made_diff(&before, &after, NULL, 0);
	check_sums(diff);
	diff_free(diff);
}
