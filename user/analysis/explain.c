/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_explain_*(): from a study to what the library hands out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/explain_private.h"
#include "base/core/options.h"
#include "base/core/vec.h"
#include "model/stats/statistics.h"

static void explained_free(struct explained *explained)
{
	for (size_t i = 0; i < explained->text_count; i++)
		free(explained->texts[i]);
	free(explained->texts);
	free(explained->parts);
	free(explained->causes);
	free(explained->pids);
}

/* ---- parts ---- */

static void fill_cohort(struct xpt_explain_cohort *cohort, const struct study_cohort *from)
{
	*cohort = (struct xpt_explain_cohort){ .count = from->count,
					       .failed = from->failed,
					       .least = from->least,
					       .most = from->most,
					       .mean = from->mean.duration,
					       .queue = from->mean.queue,
					       .device = from->mean.device,
					       .tracing = from->mean.tracing,
					       .jobs = from->mean.jobs,
					       .minor_faults = from->mean.minor_faults,
					       .major_faults = from->mean.major_faults,
					       .voluntary = from->mean.voluntary,
					       .involuntary = from->mean.involuntary };
}

/* Returns the number of states. */
static size_t fill_states(struct xpt_explain_part *parts, const struct study_program *program)
{
	size_t count = 0;

	for (enum study_component i = COMPONENT_CPU; i < STUDY_COMPONENTS; i++) {
		const double typical = program->typical.mean.component[i], slow = program->slow.mean.component[i];

		if (typical != 0 || slow != 0)
			parts[count++] = (struct xpt_explain_part){ .name = study_component_name(i),
								    .title = explain_component_title(i),
								    .typical = typical,
								    .slow = slow };
	}
	return count;
}

static size_t fill_operators(struct xpt_explain_part *parts, const struct study_program *program)
{
	size_t count = 0;

	for (size_t i = 0; i < program->operator_count; i++) {
		const struct study_operator *op = &program->operators[i];

		if (!op->apart)
			parts[count++] = (struct xpt_explain_part){ .name = op->label,
								    .title = op->type,
								    .typical = op->typical.self,
								    .slow = op->slow.self,
								    .times_typical = op->typical.times,
								    .times_slow = op->slow.times };
	}
	if (count)
		parts[count++] = (struct xpt_explain_part){ .name = "",
							    .title = "outside of operators",
							    .typical = program->typical.mean.outside,
							    .slow = program->slow.mean.outside };
	return count;
}

static int fill_parts(struct explained *explained, const struct study_program *program)
{
	struct xpt_explain_program *view = &explained->view;

	explained->parts = calloc(STUDY_COMPONENTS + program->operator_count + 1, sizeof(*explained->parts));
	if (!explained->parts)
		return -ENOMEM;
	view->part_size = sizeof(*explained->parts);
	view->states = explained->parts;
	view->state_count = fill_states(explained->parts, program);
	view->operators = explained->parts + view->state_count;
	view->operator_count = fill_operators(explained->parts + view->state_count, program);
	return 0;
}

/* ---- programs ---- */

static void add_line(struct text *text, const char *line)
{
	if (text->length)
		text_literal(text, "\n");
	text_string(text, line);
}

static int describe_missing(struct explained *explained, const struct study_program *program)
{
	const double *slow = program->slow.mean.component, *typical = program->typical.mean.component;
	struct text text = {};
	int error;

	if (!program->duration)
		add_line(&text, "no inference with a known end was recorded");
	else if (!program->has_states)
		add_line(&text, "what the thread did was not recorded");
	else if (!program->has_reasons && slow[COMPONENT_WAITED] + slow[COMPONENT_BLOCKED] + typical[COMPONENT_WAITED] +
							  typical[COMPONENT_BLOCKED] >
						  0)
		add_line(&text,
			 "why threads were blocked, and who ran instead, was not recorded: `xputrace record --why`");
	if (!program->has_operators && program->role == XPT_ROLE_EXECUTE)
		add_line(&text, "operators were not recorded: `xputrace record --ops`");
	explained->view.missing = explained_keep(explained, &text);
	error = text.error;
	text_free(&text);
	return error;
}

static int fill_processes(struct explained *explained, const struct study_program *program)
{
	for (size_t i = 0; i < program->process_count; i++) {
		if (vec_push(explained->pids, explained->view.pid_count, (pid_t)program->processes[i].tgid))
			return -ENOMEM;
	}
	explained->view.pids = explained->pids;
	return 0;
}

static void fill_durations(struct xpt_explain_program *view, const struct statistics *duration)
{
	view->count = statistics_count(duration);
	view->min = statistics_min(duration);
	view->p50 = statistics_quantile(duration, 0.5);
	view->p90 = statistics_quantile(duration, 0.9);
	view->p99 = statistics_quantile(duration, 0.99);
	view->max = statistics_max(duration);
	view->mean = statistics_mean(duration);
	view->deviation = statistics_deviation(duration);
}

static int explain_program(const struct xpt_explain *explain, const struct study_program *program,
			   struct explained *explained)
{
	int error;

	explained->view = (struct xpt_explain_program){
		.size = sizeof(explained->view),
		.name = program->name,
		.runtime = program->runtime,
		.process = program->process,
		.inferences = program->counted,
		.recorded = program->recorded,
		.failed = program->failed,
		.lost = program->lost,
		.total = program->total,
		.cohorts = explained->cohorts,
		.cohort_count = sizeof(explained->cohorts) / sizeof(explained->cohorts[0]),
		.cohort_size = sizeof(explained->cohorts[0]),
		.difference = program->slow.mean.duration - program->typical.mean.duration,
	};
	if (program->duration)
		fill_durations(&explained->view, program->duration);
	fill_cohort(&explained->cohorts[XPT_COHORT_TYPICAL], &program->typical);
	fill_cohort(&explained->cohorts[XPT_COHORT_SLOW], &program->slow);
	error = describe_missing(explained, program);
	error = error ?: fill_processes(explained, program) ?: fill_parts(explained, program);
	return error ?: explain_causes(explain, program, explained);
}

/* ---- explanations ---- */

/* Of the most programs; 0: of all. */
static int make(const struct study_options *options, size_t most, struct xpt_explain *explain)
{
	int error = study_create(options, &explain->study);
	size_t count;

	if (error)
		return error;
	count = explain->study->program_count;
	if (most && most < count)
		count = most;
	explain->programs = calloc(count ?: 1, sizeof(*explain->programs));
	if (!explain->programs)
		return -ENOMEM;
	for (; explain->program_count < count && !error; explain->program_count++)
		error = explain_program(explain, &explain->study->programs[explain->program_count],
					&explain->programs[explain->program_count]);
	return error;
}

int explain_create(const struct study_options *options, size_t most, struct xpt_explain **result)
{
	struct xpt_explain *explain = calloc(1, sizeof(*explain));
	int error;

	if (!explain)
		return -ENOMEM;
	explain->input = strdup(options->inputs[0]);
	error = explain->input ? make(options, most, explain) : -ENOMEM;
	if (error)
		xpt_explain_destroy(explain);
	else
		*result = explain;
	return error;
}

int xpt_explain_create(const struct xpt_explain_options *given, struct xpt_explain **result)
{
	struct xpt_explain_options options = {};
	struct log log;
	int error = options_copy(&options, sizeof(options), given);

	if (error || !options.input)
		return error ?: -EINVAL;
	log = (struct log){ options.log, options.log_context, options.log_level };
	if (options.to && options.to <= options.from) {
		log_error(&log, "the time to explain ends before it begins");
		return -EINVAL;
	}
	return explain_create(&(struct study_options){ .log = &log,
						       .inputs = &options.input,
						       .input_count = 1,
						       .programs = options.programs,
						       .program_count = options.program_count,
						       .program_size = options.program_size,
						       .match = options.match,
						       .pids = options.pids,
						       .pid_count = options.pid_count,
						       .from = options.from,
						       .to = options.to,
						       .progress = options.progress,
						       .progress_context = options.progress_context },
			      options.most, result);
}

void xpt_explain_destroy(struct xpt_explain *explain)
{
	if (!explain)
		return;
	for (size_t i = 0; i < explain->program_count; i++)
		explained_free(&explain->programs[i]);
	free(explain->programs);
	study_free(explain->study);
	free(explain->input);
	free(explain);
}

int xpt_explain_complete(const struct xpt_explain *explain)
{
	return explain->study->complete;
}

size_t xpt_explain_program_count(const struct xpt_explain *explain)
{
	return explain->program_count;
}

size_t xpt_explain_program_total(const struct xpt_explain *explain)
{
	return explain->study->program_count;
}

const struct xpt_explain_program *xpt_explain_program(const struct xpt_explain *explain, size_t index)
{
	if (index < explain->program_count)
		return &explain->programs[index].view;
	errno = EINVAL;
	return NULL;
}
