/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/study.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/study_private.h"
#include "base/core/options.h"
#include "base/core/text.h"
#include "base/core/vec.h"

/* ---- choice ---- */

static int create_chooser(const struct study_options *options, struct chooser **chooser)
{
	struct xpt_program_choice choice;
	int error = chooser_create(&(struct chooser_options){ .log = options->log }, chooser);

	for (size_t i = 0; !error && i < options->program_count; i++) {
		error = options_copy_element(&choice, sizeof(choice), options->programs, options->program_size, i);
		error = error ?: chooser_add(*chooser, &choice);
	}
	if (!error && options->match)
		error = chooser_match(*chooser, options->match);
	return error;
}

/* What was asked for and is in none of the recordings: a name may be mistyped. */
static int check_choices(const struct study_build *build)
{
	const struct log *log = build->options->log;
	struct xpt_program_choice choice;
	int error = 0;
	bool match, met;

	for (size_t i = 0; build->choosers[0] && chooser_choice(build->choosers[0], i, &choice, &match); i++) {
		met = false;
		for (size_t j = 0; j < build->view.input_count; j++)
			met |= chooser_met(build->choosers[j], i);
		if (met)
			continue;
		error = -ENOENT;
		if (match)
			log_error(log, "no program in the recording has a name that matches %s", choice.name);
		else if (choice.name)
			log_error(log, "program %s is not in the recording", choice.name);
		else
			log_error(log, "program 0x%llx is not in the recording", (unsigned long long)choice.handle);
	}
	return error;
}

/* ---- inputs ---- */

/* Flame graphs can be made where there are stacks. */
static bool note_stacks(void *context, const struct xpt_record_header *record)
{
	const struct xpt_record_stack_sample *sample = (const void *)record;
	struct study_build *build = context;

	if (record->kind == XPT_RECORD_STACK_SAMPLE && record->size >= sizeof(*sample)) {
		build->view.has_off_cpu_stacks |= sample->reason == XPT_STACK_OFF_CPU;
		build->view.has_cpu_stacks |= sample->reason == XPT_STACK_ON_CPU;
	}
	return true;
}

static int read_input(struct study_build *build, struct reading *reading, bool first)
{
	const struct study_options *options = build->options;
	const size_t count = build->view.input_count;
	const struct recording_reader *reader = reading->reader;
	/* As if all were of the same size. */
	const __u64 size = recording_reader_size(reader), before = (first ? 0 : count) + build->input;
	const struct reading_pass pass = { .log = options->log,
					   .takes = first ? note_stacks : NULL,
					   .context = build,
					   .progress = size ? options->progress : NULL,
					   .progress_context = options->progress_context,
					   .before = before * size,
					   .after = (2 * count - before - 1) * size };

	return reading_all(reading, &pass);
}

/* The first time; descriptor is read from its begin again later. */
static int survey_input(struct study_build *build, int descriptor)
{
	const struct study_options *options = build->options;
	struct log quiet = *options->log; /* what is wrong with the file is reported the second time */
	struct reading *reading = &build->first[build->input];
	struct study_input *input = &build->inputs[build->input];
	const struct recording_info *info;
	int error;

	quiet.level = XPT_LOG_ERROR;
	input->path = options->inputs[build->input];
	error = reading_open(reading, &quiet, reading_name(input->path), descriptor);
	if (error)
		return error;
	info = recording_reader_info(reading->reader);
	input->realtime = build->input ? build->inputs[0].realtime : info->realtime - info->monotonic_time;
	build->shifts[build->input] = (__s64)(info->realtime - info->monotonic_time - input->realtime);
	input->origin = moment(build, info->monotonic_time);
	input->size = recording_reader_size(reading->reader);
	if (options->program_count || options->match) {
		error = create_chooser(options, &build->choosers[build->input]);
		error = error ?: chooser_follow(build->choosers[build->input], reading->model);
	}
	error = error ?: model_add_sink(reading->model, (struct event_sink){ survey_event, build });
	error = error ?: read_input(build, reading, true);
	input->complete = !error;
	error = error == -ENODATA ? 0 : error;
	return error ?: survey_end(build, reading->model);
}

static int study_input(struct study_build *build, int descriptor)
{
	const struct study_options *options = build->options;
	struct reading *reading = &build->last[build->input];
	struct study_input *input = &build->inputs[build->input];
	const struct recording_info *info;
	struct model *model;
	int error = reading_open(reading, options->log, reading_name(input->path), descriptor);

	if (error)
		return error;
	model = reading->model;
	model_set_whole(model, build->first[build->input].model);
	error = model_add_sink(model, (struct event_sink){ cohorts_event, build });
	error = error ?: model_add_sink(model, (struct event_sink){ details_event, build });
	error = error ?: model_add_sink(model, (struct event_sink){ timeline_event, build });
	error = error ?: read_input(build, reading, false);
	error = error == -ENODATA ? 0 : error;
	threads_input_end(build);
	info = recording_reader_info(reading->reader);
	input->host = info->host;
	input->kernel = info->kernel;
	input->machine = info->machine;
	input->version = info->version;
	input->command = info->command;
	input->first = moment(build, model_first_time(model));
	input->last = moment(build, model_last_time(model));
	input->model = model;
	for (unsigned int i = 0; i < XPT_LOSS_MAX; i++)
		build->view.lost[i] += model_lost(model, i);
	return error ?: build->error;
}

/* The code object that a program was loaded from, where it has its name. */
static void find_code(struct study_build *build, struct study_program *program)
{
	for (size_t i = 0; i < build->view.input_count; i++) {
		const struct model *model = build->last[i].model;

		for (size_t j = 0; j < model_code_object_count(model); j++) {
			const struct model_code_object *object = model_code_object(model, j);

			if (object->name && object->sha256 && text_is_name(program->name, object->name))
				program->sha256 = object->sha256;
		}
	}
}

/* ---- the study ---- */

static void drop_first(struct study_build *build)
{
	for (size_t i = 0; build->first && i < build->view.input_count; i++)
		reading_close(&build->first[i]);
	free(build->first);
	build->first = NULL;
	for (size_t i = 0; build->choosers && i < build->view.input_count; i++)
		chooser_free(build->choosers[i]);
	free(build->choosers);
	build->choosers = NULL;
}

static int finish(struct study_build *build)
{
	int error = cohorts_end(build);

	error = error ?: timeline_end(build);
	if (error)
		return error;
	details_end(build);
	build->view.complete = true;
	for (size_t i = 0; i < build->view.input_count; i++)
		build->view.complete &= build->inputs[i].complete;
	for (size_t i = 0; i < build->view.program_count; i++)
		find_code(build, &build->programs[i]);
	drop_first(build);
	for (size_t i = 0; i < build->source_count; i++) {
		free(build->all[i]->picks);
		build->all[i]->picks = NULL;
	}
	return 0;
}

static int make(struct study_build *build, int *descriptors)
{
	const struct study_options *options = build->options;
	int error = 0;

	for (size_t i = 0; i < options->input_count && !error; i++) {
		build->input = (unsigned int)i;
		build->view.input_count = i + 1;
		descriptors[i] = options->descriptors ? fcntl(options->descriptors[i], F_DUPFD_CLOEXEC, 3) :
							reading_open_input(options->log, options->inputs[i], 2);
		if (descriptors[i] < 0)
			error = options->descriptors ? -errno : descriptors[i];
		else
			error = survey_input(build, descriptors[i]);
	}
	build->view.program_total = build->source_count;
	error = error ?: check_choices(build);
	error = error ?: survey_programs(build);
	error = error ?: details_choose(build);
	error = error ?: timeline_create(build);
	if (!error)
		threads_begin(build);
	for (size_t i = 0; i < options->input_count && !error; i++) {
		build->input = (unsigned int)i;
		error = study_input(build, descriptors[i]);
	}
	return error ?: finish(build);
}

int study_create(const struct study_options *options, struct study **study)
{
	const size_t count = options->input_count;
	struct study_build *build = count ? calloc(1, sizeof(*build)) : NULL;
	int *descriptors = calloc(count ?: 1, sizeof(*descriptors)), error = -ENOMEM;

	if (build)
		keyed_init(&build->threads, 1, NULL, NULL);
	if (build && descriptors) {
		memset(descriptors, 0xff, count * sizeof(*descriptors));
		build->options = options;
		build->inputs = calloc(count, sizeof(*build->inputs));
		build->first = calloc(count, sizeof(*build->first));
		build->last = calloc(count, sizeof(*build->last));
		build->choosers = calloc(count, sizeof(struct chooser *));
		build->shifts = calloc(count, sizeof(*build->shifts));
		build->view.inputs = build->inputs;
		if (build->inputs && build->first && build->last && build->choosers && build->shifts)
			error = make(build, descriptors);
		build->options = NULL;
	}
	for (size_t i = 0; descriptors && i < count; i++) {
		if (descriptors[i] >= 0)
			close(descriptors[i]);
	}
	free(descriptors);
	if (!count)
		return -EINVAL;
	if (!error)
		*study = &build->view;
	else if (build)
		study_free(&build->view);
	return error;
}

void study_free(struct study *study)
{
	struct study_build *build = study ? container_of(study, struct study_build, view) : NULL;

	if (!build)
		return;
	threads_free(build);
	cohorts_free(build);
	timeline_free(build);
	details_free(build);
	for (size_t i = 0; i < build->view.program_count; i++)
		builder_free(&build->builders[i]);
	for (size_t i = 0; i < build->source_count; i++)
		source_free(build->all[i]);
	drop_first(build);
	for (size_t i = 0; build->last && i < build->view.input_count; i++)
		reading_close(&build->last[i]);
	map_free(&build->sources);
	free(build->all);
	free(build->builders);
	free(build->programs);
	free(build->inputs);
	free(build->last);
	free(build->shifts);
	free(build);
}
