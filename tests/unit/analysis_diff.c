/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/diff.h"

#include <criterion/criterion.h>

#include "analysis_diff.h"

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
