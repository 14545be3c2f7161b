/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_diff_create(): two studies, and what differs between them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diff.h"
#include "analysis/diff_private.h"
#include "base/core/link.h"
#include "base/core/options.h"
#include "page/page.h"
#include "report/table/diff.h"

/* With what its strings are of. */
struct owned_diff {
	struct xpt_diff shown; /* as in compared, whose arrays these are */
	struct xpt_diff *compared;
	struct study *studies[2];
	char **conditions;
	size_t condition_count;
};

int xpt_diff_check_condition(const char *text, char *reason, size_t size)
{
	struct diff_condition condition;
	char why[256] = "";
	int error = text ? diff_condition_parse(text, &condition, why, sizeof(why)) : -EINVAL;

	if (error && size)
		snprintf(reason, size, "%s", why);
	return error;
}

static int read_side(const struct xpt_diff_options *options, const struct log *log, bool after, struct study **study)
{
	const struct study_options side = {
		.log = log,
		.inputs = after ? options->after : options->before,
		.input_count = after ? options->after_count : options->before_count,
		.programs = options->programs,
		.program_count = options->program_count,
		.program_size = options->program_size,
		.match = options->match,
		.seed = 1,
		.progress = options->progress,
		.progress_context = options->progress_context,
	};

	return study_create(&side, study);
}

static int check_options(const struct xpt_diff_options *options, const struct log *log)
{
	char reason[256];
	int error = 0;

	if (!options->before_count || !options->after_count) {
		log_error(log, "a comparison needs a recording of each side");
		return -EINVAL;
	}
	if (!(options->level >= 0 && options->level <= 0.5) || !(options->run_noise <= 10)) {
		log_error(log, "the level must be from 0 to 0.5, and the noise of recordings at most 10");
		return -EINVAL;
	}
	for (size_t i = 0; i < options->condition_count && !error; i++) {
		error = xpt_diff_check_condition(options->conditions[i], reason, sizeof(reason));
		if (error)
			log_error(log, "condition '%s': %s", options->conditions[i] ?: "", reason);
	}
	return error;
}

static int copy_conditions(struct owned_diff *diff, const struct xpt_diff_options *options)
{
	diff->conditions = calloc(options->condition_count ?: 1, sizeof(*diff->conditions));
	if (!diff->conditions)
		return -ENOMEM;
	for (; diff->condition_count < options->condition_count; diff->condition_count++) {
		diff->conditions[diff->condition_count] = strdup(options->conditions[diff->condition_count]);
		if (!diff->conditions[diff->condition_count])
			return -ENOMEM;
	}
	return 0;
}

static int compare(struct owned_diff *diff, const struct xpt_diff_options *options, const struct log *log)
{
	const struct diff_options compared = {
		.level = options->level > 0 ? options->level : DIFF_LEVEL,
		.run_noise = options->run_noise < 0 ? 0 :
			     options->run_noise > 0 ? options->run_noise :
						      DIFF_RUN_NOISE,
		.seed = 1,
		.conditions = (const char *const *)diff->conditions,
		.condition_count = diff->condition_count,
	};
	int error = read_side(options, log, false, &diff->studies[0]);

	error = error ?: read_side(options, log, true, &diff->studies[1]);
	error = error ?: diff_create(&compared, diff->studies[0], diff->studies[1], &diff->compared);
	if (!error)
		diff->shown = *diff->compared;
	return error;
}

int xpt_diff_create(const struct xpt_diff_options *given, struct xpt_diff **result)
{
	struct xpt_diff_options options = {};
	int error = options_copy(&options, sizeof(options), given);
	struct owned_diff *diff;
	struct log log;

	if (error)
		return error;
	log = (struct log){ options.log, options.log_context, options.log_level };
	error = check_options(&options, &log);
	if (error)
		return error;
	diff = calloc(1, sizeof(*diff));
	if (!diff)
		return -ENOMEM;
	error = copy_conditions(diff, &options);
	error = error ?: compare(diff, &options, &log);
	if (error)
		xpt_diff_destroy(&diff->shown);
	else
		*result = &diff->shown;
	return error;
}

void xpt_diff_destroy(struct xpt_diff *shown)
{
	struct owned_diff *diff = shown ? container_of(shown, struct owned_diff, shown) : NULL;

	if (!diff)
		return;
	diff_free(diff->compared);
	study_free(diff->studies[0]);
	study_free(diff->studies[1]);
	for (size_t i = 0; i < diff->condition_count; i++)
		free(diff->conditions[i]);
	free(diff->conditions);
	free(diff);
}

int xpt_diff_text(const struct xpt_diff *diff, unsigned int columns, int all, char **text)
{
	size_t size = 0;
	char *made = NULL;
	FILE *out = open_memstream(&made, &size);
	int error = out ? diff_text(diff, out, columns, all) : -ENOMEM;

	if (out && fclose(out))
		error = -ENOMEM;
	if (error) {
		free(made);
		return error;
	}
	*text = made;
	return 0;
}

/* Terminates the text, which goes to *result. */
static int hand_over(struct text *text, char **result)
{
	text_bytes(text, "", 1);
	if (text->error) {
		text_free(text);
		return -ENOMEM;
	}
	*result = text->data;
	return 0;
}

int xpt_diff_json(const struct xpt_diff *diff, char **json)
{
	struct text text = {};

	diff_json(&text, diff);
	return hand_over(&text, json);
}

int xpt_diff_html(const struct xpt_diff *diff, char **html)
{
	const struct owned_diff *owned = container_of(diff, struct owned_diff, shown);
	struct text text = {};

	page_diff(&text, diff, owned->studies[0], owned->studies[1]);
	return hand_over(&text, html);
}
