/* SPDX-License-Identifier: BSD-2-Clause */
/* Comparisons of recordings: <xputrace/diff.h>. PUBLIC_RECORDINGS is a folder with some. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xputrace/diff.h>

#include "check.h"

static const char *recording(char *path, size_t size, const char *name)
{
	const char *folder = getenv("PUBLIC_RECORDINGS");

	snprintf(path, size, "%s/%s.xpt", folder ? folder : ".", name);
	return path;
}

static void test_options(void)
{
	const char *none[] = { "none.xpt" }, *conditions[] = { "p50" };
	struct xpt_diff *diff = NULL;
	struct {
		struct xpt_diff_options options;
		char later[8];
	} newer;
	char reason[100] = "";
	XPT_OPTS(xpt_diff_options, options, .before = none, .before_count = 1);

	CHECK_IS(xpt_diff_create(NULL, &diff), -EINVAL);
	CHECK_IS(xpt_diff_create(&options, &diff), -EINVAL);
	options.after = none;
	options.after_count = 1;
	CHECK_IS(xpt_diff_create(&options, &diff), -ENOENT);
	options.level = 0.6;
	CHECK_IS(xpt_diff_create(&options, &diff), -EINVAL);
	options.level = 0;
	options.conditions = conditions;
	options.condition_count = 1;
	CHECK_IS(xpt_diff_create(&options, &diff), -EINVAL);
	memset(&newer, 0, sizeof(newer));
	newer.options.size = sizeof(newer);
	newer.later[0] = 1;
	CHECK_IS(xpt_diff_create(&newer.options, &diff), -E2BIG);
	CHECK(!diff, "made all the same");
	CHECK_IS(xpt_diff_check_condition("p99 > +10%", NULL, 0), 0);
	CHECK_IS(xpt_diff_check_condition("p99 > -10%", reason, sizeof(reason)), -EINVAL);
	CHECK(reason[0], "no reason");
	CHECK_IS(xpt_diff_check_condition(NULL, reason, sizeof(reason)), -EINVAL);
	xpt_diff_destroy(NULL);
}

static void test_names(void)
{
	CHECK(!strcmp(xpt_diff_kind_name(XPT_DIFF_DURATION), "duration"), "%s", xpt_diff_kind_name(XPT_DIFF_DURATION));
	CHECK(!strcmp(xpt_diff_match_name(XPT_DIFF_BY_HASH), "hash"), "%s", xpt_diff_match_name(XPT_DIFF_BY_HASH));
	CHECK(!xpt_diff_kind_name((enum xpt_diff_kind)99), "a kind too many");
	CHECK(!xpt_diff_match_name((enum xpt_diff_match)99), "a match too many");
}

/* A recording with itself, in all ways that there are to look at it. */
static void test_same(void)
{
	char path[512], *text = NULL, *json = NULL, *html = NULL;
	const char *paths[] = { recording(path, sizeof(path), "operators") }, *conditions[] = { "p50 > +0%" };
	XPT_OPTS(xpt_diff_options, options, .before = paths, .before_count = 1, .after = paths, .after_count = 1,
		 .conditions = conditions, .condition_count = 1);
	struct xpt_diff *diff = NULL;
	size_t i, k;

	CHECK_IS(xpt_diff_create(&options, &diff), 0);
	if (!diff)
		return;
	CHECK(diff->program_count > 0, "no programs");
	CHECK_IS(diff->unmatched_count, 0);
	CHECK_IS(diff->significant, 0);
	CHECK_IS(diff->failed, 0);
	CHECK_IS(diff->check_count, 1);
	for (i = 0; i < diff->program_count; i++) {
		const struct xpt_diff_program *program = XPT_AT(diff->programs, diff->program_size, i);

		CHECK(program->row_count >= 4, "%zu rows", program->row_count);
		for (k = 0; k < program->row_count; k++)
			CHECK(XPT_AT(program->rows, program->row_size, k)->change == 0, "row %zu has changed", k);
	}
	CHECK_IS(xpt_diff_text(diff, 80, 1, &text), 0);
	CHECK(text && strstr(text, "p50"), "%.100s", text ? text : "");
	CHECK_IS(xpt_diff_json(diff, &json), 0);
	CHECK(json && json[0] == '{' && strstr(json, "\"programs\""), "%.100s", json ? json : "");
	CHECK_IS(xpt_diff_html(diff, &html), 0);
	CHECK(html && !strncmp(html, "<!DOCTYPE html>", 15) && strstr(html, "</html>"), "%.100s", html ? html : "");
	free(text);
	free(json);
	free(html);
	xpt_diff_destroy(diff);
}

static const struct test tests[] = {
	{ "options", test_options, 0 },
	{ "names", test_names, 0 },
	{ "same", test_same, 0 },
};

int main(void)
{
	return run_tests("compare", tests, sizeof(tests) / sizeof(tests[0])) != 0;
}
