/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/table/diff.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "analysis_diff.h"
#include "base/core/json.h"

static const struct made like = { .recordings = 1, .inferences = 1600, .operators = { 200000, 50000 }, .noise = 0.05 };

static char *text_of(const struct xpt_diff *diff, unsigned int columns, bool all)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	cr_assert_eq(diff_text(diff, out, columns, all), 0);
	fclose(out);
	return text;
}

Test(report_table_diff, text)
{
	static const char *const conditions[] = { "p50 > +10%", "nothing > +1%", "p50 > +500%" };
	const struct made before = {
		.recordings = 1, .inferences = 1600, .operators = { 200000, 50000 }, .noise = 0.05
	};
	struct made after = before;
	struct xpt_diff *diff;
	char *text;

	after.operators[0] = 400000;
	diff = made_diff(&like, &after, conditions, 3);
	text = text_of(diff, 0, false);
	cr_assert(strstr(text, "model (toy, main): 1600 -> 1600 inferences, tested by blocks\n"), "%s", text);
	cr_assert(strstr(text, "operator big") && !strstr(text, "operator small"));
	cr_assert(strstr(text, "us operator `big`") && strstr(text, "  unchanged: "));
	cr_assert(strstr(text, "FAILED: p50 > +10%: +") && strstr(text, "passed: p50 > +500%: +"));
	cr_assert(strstr(text, "not checked: nothing > +1%: there is no such row"));
	free(text);
	text = text_of(diff, 80, true);
	cr_assert(strstr(text, "operator small") && !strstr(text, "unchanged"), "%s", text);
	cr_assert(strstr(text, "INTERVAL") == NULL && strcspn(strstr(text, "\nROW") + 1, "\n") <= 80);
	free(text);
	diff_free(diff);
	diff = made_diff(&like, &like, NULL, 0);
	text = text_of(diff, 0, false);
	cr_assert(strstr(text, "UNCHANGED") && strstr(text, "\nmodel      toy") &&
			  !strstr(text, "BEFORE    AFTER    CHANGE"),
		  "%s", text);
	free(text);
	diff_free(diff);
}

/* Names come from what is traced: they move no cursor, and are JSON. */
Test(report_table_diff, hostile_names)
{
	static const char hostile[] = "\x1b[2J\"<b>\xff";
	const struct study_program before[] = { made_program(hostile, &like), made_program("only\x1b", &like) };
	const struct study_program after[] = { made_program(hostile, &like) };
	const struct study studies[2] = { made_study(before, 2, 1), made_study(after, 1, 1) };
	const struct diff_options options = { DIFF_LEVEL, DIFF_RUN_NOISE, 1, NULL, 0 };
	struct xpt_diff *diff;
	struct text json = {};
	char *text;

	((struct study_operator *)before[0].operators)[0].label = "\x1b\"op";
	((struct study_operator *)after[0].operators)[0].label = "\x1b\"op";
	cr_assert_eq(diff_create(&options, &studies[0], &studies[1], &diff), 0);
	text = text_of(diff, 60, true);
	cr_assert_null(strchr(text, '\x1b'));
	free(text);
	diff_json(&json, diff);
	cr_assert(json_is_object(json.data, json.length));
	text_free(&json);
	diff_free(diff);
}

Test(report_table_diff, json)
{
	const struct made before = {
		.recordings = 1, .inferences = 1600, .operators = { 200000, 50000 }, .noise = 0.05
	};
	struct made after = before;
	struct xpt_diff *diff;
	struct text json = {};

	after.operators[0] = 400000;
	diff = made_diff(&like, &after, (const char *const[]){ "p50 > +10%" }, 1);
	diff_json(&json, diff);
	cr_assert(json_is_object(json.data, json.length));
	text_bytes(&json, "", 1);
	cr_assert(strstr(json.data, "\"matched_by\":\"name\"") && strstr(json.data, "\"tested_by\":\"blocks\""));
	cr_assert(strstr(json.data, "{\"kind\":\"operator\",\"name\":\"big\",\"unit\":\"ns\""));
	cr_assert(strstr(json.data, "\"failed\":true"));
	text_free(&json);
	diff_free(diff);
}

Test(report_table_diff, values)
{
	static const struct {
		double value;
		const char *unit;
		bool sign;
		const char *expected;
	} cases[] = {
		{ 1900000, "ns", true, "+1.900ms" }, { -170, "ns", false, "-170ns" }, { NAN, "ns", true, "-" },
		{ 3656.7, "1/s", false, "3657/s" },  { 0.25, "", true, "+0.25" },     { 1e14, "", false, "1e+14" }
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct text text = {};

		diff_text_value(&text, cases[i].value, cases[i].unit, cases[i].sign);
		text_bytes(&text, "", 1);
		cr_assert_str_eq(text.data, cases[i].expected);
		text_free(&text);
	}
	cr_assert_str_eq(xpt_diff_kind_name(XPT_DIFF_OUTSIDE), "outside");
	cr_assert_null(xpt_diff_kind_name(XPT_DIFF_OUTSIDE + 1));
	cr_assert_str_eq(xpt_diff_match_name(XPT_DIFF_BY_PROCESS), "process");
	cr_assert_null(xpt_diff_match_name(XPT_DIFF_BY_PROCESS + 1));
}
