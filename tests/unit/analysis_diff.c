/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/diff.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "analysis_diff.h"
#include "base/core/json.h"

#define SIDE_MOST 4

static const struct made small = { .recordings = 1, .inferences = 200, .operators = { 200000, 50000 }, .noise = 0.05 };

/* A program as it is matched by. */
static struct study_program named(const char *name, const char *process, const char *sha256, __u32 fingerprint)
{
	struct study_program program = made_program(name, &small);

	program.process = process;
	program.sha256 = sha256;
	program.fingerprint = fingerprint;
	return program;
}

static struct xpt_diff *compare(const struct study_program *before, size_t before_count,
				const struct study_program *after, size_t after_count)
{
	static struct study studies[2];
	const struct diff_options options = { DIFF_LEVEL, DIFF_RUN_NOISE, 1, NULL, 0 };
	struct xpt_diff *diff;

	studies[0] = made_study(before, before_count, 1);
	studies[1] = made_study(after, after_count, 1);
	cr_assert_eq(diff_create(&options, &studies[0], &studies[1], &diff), 0);
	return diff;
}

static const struct xpt_diff_program *find(const struct xpt_diff *diff, const char *name, const char *process)
{
	for (size_t i = 0; i < diff->program_count; i++)
		if (!strcmp(diff->programs[i].name, name) && !strcmp(diff->programs[i].process, process))
			return &diff->programs[i];
	return NULL;
}

Test(analysis_diff, matches)
{
	const struct study_program before[] = {
		named("a", "server", NULL, 0),	    named("a", "worker", NULL, 0),
		named("moved", "old", "11", 5),	    named("first.onnx", "p", "22", 0),
		named("toy model 1", "p", NULL, 7), named("toy model 2", "p", NULL, 8),
		named("gone", "p", NULL, 0),
	};
	const struct study_program after[] = {
		named("a", "worker", NULL, 0),	    named("a", "server", NULL, 0),
		named("moved", "new", "12", 0),	    named("second.onnx", "p", "22", 0),
		named("toy model 1", "p", NULL, 8), named("toy model 2", "p", NULL, 7),
		named("come", "p", NULL, 0),
	};
	struct xpt_diff *diff = compare(before, 7, after, 7);

	cr_assert_eq(diff->program_count, 6);
	cr_assert_eq(find(diff, "a", "server")->match, XPT_DIFF_BY_NAME);
	cr_assert_str_eq(find(diff, "a", "server")->process_before, "server");
	cr_assert_eq(find(diff, "moved", "new")->match, XPT_DIFF_BY_NAME_ALONE);
	cr_assert(find(diff, "moved", "new")->model_changed);
	cr_assert_eq(find(diff, "second.onnx", "p")->match, XPT_DIFF_BY_HASH);
	cr_assert_str_eq(find(diff, "second.onnx", "p")->name_before, "first.onnx");
	cr_assert(!find(diff, "second.onnx", "p")->model_changed);
	/* Numbers by order say nothing where the operators are known. */
	cr_assert_eq(find(diff, "toy model 1", "p")->match, XPT_DIFF_BY_FINGERPRINT);
	cr_assert_str_eq(find(diff, "toy model 1", "p")->name_before, "toy model 2");
	cr_assert_eq(diff->unmatched_count, 2);
	cr_assert_str_eq(diff->unmatched[0].name, "gone");
	cr_assert(!diff->unmatched[0].after && !diff->unmatched[0].ambiguous && diff->unmatched[0].inferences == 200);
	cr_assert(diff->unmatched[1].after);
	diff_free(diff);
}

/* A new model without a name is the one that it replaces, if there is no other. */
Test(analysis_diff, replaced)
{
	const struct study_program before[] = { named("toy model 3ae4d5ce", "p", NULL, 7) };
	const struct study_program after[] = { named("toy model 11223344", "p", NULL, 8),
					       named("toy model 5", "q", NULL, 9) };
	struct xpt_diff *diff = compare(before, 1, after, 2);

	cr_assert_eq(diff->program_count, 1);
	cr_assert_eq(diff->programs[0].match, XPT_DIFF_BY_PROCESS);
	cr_assert(diff->programs[0].model_changed);
	cr_assert_eq(diff->unmatched_count, 1);
	diff_free(diff);
}

Test(analysis_diff, ambiguous)
{
	const struct study_program before[] = { named("a", "x", NULL, 0), named("a", "y", NULL, 0),
						named("b", "x", NULL, 3) };
	const struct study_program after[] = { named("a", "z", NULL, 0), named("c", "x", NULL, 3),
					       named("d", "x", NULL, 3) };
	struct xpt_diff *diff = compare(before, 3, after, 3);

	cr_assert_eq(diff->program_count, 0);
	cr_assert_eq(diff->unmatched_count, 6);
	for (size_t i = 0; i < 6; i++)
		cr_assert(diff->unmatched[i].ambiguous, "%s of %s", diff->unmatched[i].name,
			  diff->unmatched[i].process);
	diff_free(diff);
}

Test(analysis_diff, nothing)
{
	struct xpt_diff *diff = compare(NULL, 0, NULL, 0);

	cr_assert(!diff->program_count && !diff->unmatched_count && !diff->tested && !diff->failed);
	diff_free(diff);
	diff_free(NULL);
}

Test(analysis_diff, notes)
{
	const struct study_program programs[] = { named("a", "x", NULL, 0) };
	const struct diff_options options = { DIFF_LEVEL, DIFF_RUN_NOISE, 1, NULL, 0 };
	struct study before = made_study(programs, 1, 1), after = made_study(programs, 1, 1);
	struct xpt_diff *diff;

	cr_assert_eq(diff_create(&options, &before, &after, &diff), 0);
	cr_assert_eq(diff->note_count, 0);
	diff_free(diff);
	((struct study_input *)after.inputs)[0].host = "other";
	after.complete = false;
	after.has_operators = after.has_reasons = true;
	after.lost[1] = 3;
	cr_assert_eq(diff_create(&options, &before, &after, &diff), 0);
	cr_assert_eq(diff->note_count, 5);
	cr_assert_str_eq(diff->notes[0], "the recordings are of different hosts");
	cr_assert_str_eq(diff->notes[2], "after: 3 records were lost");
	diff_free(diff);
}

/* ---- outputs ---- */

static char *text_of(const struct xpt_diff *diff, unsigned int columns, bool all)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	cr_assert_eq(diff_text(diff, out, columns, all), 0);
	fclose(out);
	return text;
}

Test(analysis_diff, text)
{
	static const char *const conditions[] = { "p50 > +10%", "nothing > +1%", "p50 > +500%" };
	const struct made before = {
		.recordings = 1, .inferences = 1600, .operators = { 200000, 50000 }, .noise = 0.05
	};
	struct made after = before;
	struct xpt_diff *diff;
	char *text;

	after.operators[0] = 400000;
	diff = made_diff(&before, &after, conditions, 3);
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
	diff = made_diff(&before, &before, NULL, 0);
	text = text_of(diff, 0, false);
	cr_assert(strstr(text, "UNCHANGED") && strstr(text, "\nmodel      toy") &&
			  !strstr(text, "BEFORE    AFTER    CHANGE"),
		  "%s", text);
	free(text);
	diff_free(diff);
}

/* Names come from what is traced: they move no cursor, and are JSON. */
Test(analysis_diff, hostile_names)
{
	const struct study_program before[] = { named("\x1b[2J\"<b>\xff", "p\n", NULL, 0),
						named("only\x1b", "q", NULL, 0) };
	const struct study_program after[] = { named("\x1b[2J\"<b>\xff", "p\n", NULL, 0) };
	struct xpt_diff *diff;
	struct text json = {};
	char *text;

	((struct study_operator *)before[0].operators)[0].label = "\x1b\"op";
	((struct study_operator *)after[0].operators)[0].label = "\x1b\"op";
	diff = compare(before, 2, after, 1);
	text = text_of(diff, 60, true);
	cr_assert_null(strchr(text, '\x1b'));
	free(text);
	diff_json(&json, diff);
	cr_assert(json_is_object(json.data, json.length));
	text_free(&json);
	diff_free(diff);
}

Test(analysis_diff, json)
{
	const struct made before = {
		.recordings = 1, .inferences = 1600, .operators = { 200000, 50000 }, .noise = 0.05
	};
	struct made after = before;
	struct xpt_diff *diff;
	struct text json = {};

	after.operators[0] = 400000;
	diff = made_diff(&before, &after, (const char *const[]){ "p50 > +10%" }, 1);
	diff_json(&json, diff);
	cr_assert(json_is_object(json.data, json.length));
	text_bytes(&json, "", 1);
	cr_assert(strstr(json.data, "\"matched_by\":\"name\"") && strstr(json.data, "\"tested_by\":\"blocks\""));
	cr_assert(strstr(json.data, "{\"kind\":\"operator\",\"name\":\"big\",\"unit\":\"ns\""));
	cr_assert(strstr(json.data, "\"failed\":true"));
	text_free(&json);
	diff_free(diff);
}

Test(analysis_diff, values)
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
