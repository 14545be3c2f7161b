/* SPDX-License-Identifier: BSD-2-Clause */
/* What explanations make of a study. */
#include "analysis_made.h"

#include <errno.h>
#include <math.h>

#include "analysis/explain_private.h"
#include "base/core/json.h"

TestSuite(analysis_explain);

/* A program whose slow inferences have these parts more than typical ones, and the explanation of it. */
struct made {
	struct study study;
	struct study_program program;
	struct xpt_explain explain;
	struct explained explained;
};

static void set_mean(struct study_cohort *cohort)
{
	cohort->count = 10;
	cohort->mean.duration = 0;
	for (size_t i = 0; i < STUDY_COMPONENTS; i++)
		cohort->mean.duration += cohort->mean.component[i];
}

static void explain_made(struct made *made)
{
	set_mean(&made->program.typical);
	set_mean(&made->program.slow);
	made->program.name = made->program.name ?: "a program's";
	made->explain.input = (char *)"it.xpt";
	made->explain.study = &made->study;
	made->explained.view.difference = made->program.slow.mean.duration - made->program.typical.mean.duration;
	cr_assert_eq(explain_causes(&made->explain, &made->program, &made->explained), 0);
}

static void made_clear(struct made *made)
{
	for (size_t i = 0; i < made->explained.text_count; i++)
		free(made->explained.texts[i]);
	free(made->explained.texts);
	free(made->explained.causes);
}

static const struct xpt_explain_cause *cause_of(const struct made *made, const char *kind, const char *name)
{
	const struct xpt_explain_cause *found = NULL;
	double sum = 0;

	for (size_t i = 0; i < made->explained.view.cause_count; i++) {
		const struct xpt_explain_cause *cause = &made->explained.causes[i];

		sum += cause->difference;
		if (!strcmp(cause->kind, kind) && !strcmp(cause->name, name))
			found = cause;
	}
	cr_assert_float_eq(sum, made->explained.view.difference, 1e-6);
	cr_assert_not_null(found, "no %s %s", kind, name);
	return found;
}

/* What it waited for probes is not explained, and named. */
Test(analysis_explain, waits_for_probes)
{
	struct made made = { .program = { .has_states = true } };
	const struct xpt_explain_cause *cause;

	made.program.typical.mean.component[COMPONENT_CPU] = made.program.slow.mean.component[COMPONENT_CPU] = 1000;
	made.program.slow.mean.component[COMPONENT_UNKNOWN] = made.program.slow.mean.probes = 5000;
	explain_made(&made);
	cause = cause_of(&made, "unknown", "");
	cr_assert(!cause->explained && cause->difference == 5000);
	cr_assert(strstr(cause->evidence, "it waited until probes were placed, 5.00us"), "%s", cause->evidence);
	made_clear(&made);
}

/* Of time that nothing is known of, what the jobs took longer; the rest stays unknown. */
Test(analysis_explain, device)
{
	struct made made = { .program = { .has_jobs = true } };

	made.program.typical.mean.component[COMPONENT_UNKNOWN] = 1000;
	made.program.slow.mean.component[COMPONENT_UNKNOWN] = 11000;
	made.program.slow.mean.queue = 6000;
	made.program.typical.mean.device = 900;
	made.program.slow.mean.device = 1900;
	explain_made(&made);
	cr_assert_float_eq(cause_of(&made, "queue", "")->difference, 6000, 1e-6);
	cr_assert_float_eq(cause_of(&made, "device", "")->difference, 1000, 1e-6);
	cr_assert_float_eq(cause_of(&made, "unknown", "")->difference, 3000, 1e-6);
	cr_assert_float_eq(made.explained.view.explained, 0.7, 1e-9);
	cr_assert(strstr(made.explained.causes[0].evidence, "its jobs waited 6.00us in queues (typical: 0ns)"), "%s",
		  made.explained.causes[0].evidence);
	made_clear(&made);
}

/* Jobs that took longer than the thread was blocked explain no more than that. */
Test(analysis_explain, device_is_bounded)
{
	struct made made = { .program = { .has_jobs = true, .has_states = true } };

	made.program.slow.mean.component[COMPONENT_BLOCKED] = 5000;
	made.program.slow.mean.component[COMPONENT_FUTEX] = 2000;
	made.program.slow.mean.queue = 90000;
	explain_made(&made);
	cr_assert_float_eq(cause_of(&made, "queue", "")->difference, 5000, 1e-6);
	cr_assert_float_eq(cause_of(&made, "blocked", "futex")->difference, 2000, 1e-6);
	cr_assert_float_eq(made.explained.view.explained, 1, 1e-9);
	made_clear(&made);
}

static void make_cpu(struct made *made, double cost, double fit)
{
	static const struct study_operator operators[] = {
		{ .label = "MatMul_3", .type = "MatMul", .typical = { 1, 500, 500 }, .slow = { 1, 2500, 2500 } },
		{ .label = "Other", .type = "Other", .slow = { 1, 7000, 7000 }, .apart = true },
	};

	*made = (struct made){ .program = { .has_states = true,
					    .has_operators = true,
					    .operators = operators,
					    .operator_count = 2,
					    .faults_cost = cost,
					    .faults_fit = fit } };
	made->program.typical.mean.component[COMPONENT_CPU] = 1000;
	made->program.slow.mean.component[COMPONENT_CPU] = 6000;
	made->program.slow.mean.minor_faults = 4;
	explain_made(made);
}

/* CPU time: of operators, then of page faults, as far as it follows them; others are not explained. */
Test(analysis_explain, cpu)
{
	struct made made;

	make_cpu(&made, 700, 0.9);
	cr_assert_float_eq(cause_of(&made, "operator", "MatMul_3")->difference, 2000, 1e-6);
	cr_assert_float_eq(cause_of(&made, "faults", "")->difference, 2800, 1e-6);
	cr_assert_float_eq(cause_of(&made, "cpu", "")->difference, 200, 1e-6);
	cr_assert_eq(made.explained.view.cause_count, 3);
	cr_assert_float_eq(made.explained.view.explained, 0.96, 1e-9);
	made_clear(&made);
	make_cpu(&made, 5000, 0.9);
	cr_assert_float_eq(cause_of(&made, "faults", "")->difference, 3000, 1e-6);
	cr_assert_eq(made.explained.view.cause_count, 2);
	made_clear(&made);
	/* It does not follow them, or that is too much to be them. */
	for (int i = 0; i < 2; i++) {
		make_cpu(&made, i ? 700 : 50000, i ? 0.3 : 0.9);
		cr_assert_float_eq(cause_of(&made, "cpu", "")->difference, 3000, 1e-6);
		cr_assert_float_eq(made.explained.view.explained, 0.4, 1e-9);
		made_clear(&made);
	}
}

/* Without a driver: less of one thing, more of another; the share of what is not explained is never below 0. */
Test(analysis_explain, less)
{
	struct made made = { .program = { .has_states = true } };

	made.program.typical.mean.component[COMPONENT_CPU] = 3000;
	made.program.slow.mean.component[COMPONENT_CPU] = 1000;
	made.program.slow.mean.component[COMPONENT_SLEEP] = 5000;
	explain_made(&made);
	cr_assert_float_eq(cause_of(&made, "blocked", "sleep")->share, 5.0 / 3, 1e-9);
	cr_assert_float_eq(cause_of(&made, "cpu", "")->difference, -2000, 1e-6);
	cr_assert_float_eq(made.explained.view.explained, 1, 1e-9);
	made_clear(&made);
}

/* Names are quoted for a shell; those that cannot be typed are not in a command. */
Test(analysis_explain, commands)
{
	static const struct study_process process = { "p", 4711, 0 };
	struct made made = {};

	explain_made(&made);
	cr_assert_str_eq(made.explained.view.command,
			 "report it.xpt --program 'a program'\\''s' --slowest 1% -o slow.json");
	cr_assert_eq(made.explained.view.cause_count, 0);
	made_clear(&made);
	made = (struct made){ .program = { .name = "a\x1b[2J", .processes = &process, .process_count = 1 } };
	explain_made(&made);
	cr_assert_str_eq(made.explained.view.command, "report it.xpt --pid 4711 --slowest 1% -o slow.json");
	made_clear(&made);
}

/* ---- the public functions ---- */

static struct xpt_explain *explain_of(const char *path)
{
	XPT_OPTS(xpt_explain_options, options, .input = path, .log = message_write);
	struct xpt_explain *explain = NULL;

	cr_assert_eq(xpt_explain_create(&options, &explain), 0, "%s", messages);
	return explain;
}

Test(analysis_explain, hostile_names)
{
	struct text records = {};
	struct xpt_explain *explain;
	char *path, *text, *json;

	stream_describe(&records);
	made_name(&records, 1, 1, "\x1b[2J\xff\"<script>\n");
	for (__u64 i = 0; i < 3; i++)
		made_execute(&records, 1, 1, 1, 2000 + i * 1000, 500 + i * 100);
	path = made_file(&records, 10000, 0);
	explain = explain_of(path);
	cr_assert_eq(xpt_explain_program_count(explain), 1);
	cr_assert(xpt_explain_complete(explain));
	cr_assert_null(xpt_explain_program(explain, 1));
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(xpt_explain_program(explain, 0)->size, sizeof(struct xpt_explain_program));
	for (unsigned int columns = 0; columns < 100; columns += 9) {
		cr_assert_eq(xpt_explain_text(explain, columns, &text), 0);
		for (const char *byte = text; *byte; byte++)
			cr_assert((unsigned char)*byte >= ' ' || *byte == '\n', "0x%x in %s", *byte, text);
		free(text);
	}
	cr_assert_eq(xpt_explain_json(explain, &json), 0);
	cr_assert(json_is_object(json, strlen(json)), "%s", json);
	free(json);
	xpt_explain_destroy(explain);
	made_remove(path);
}

Test(analysis_explain, options)
{
	XPT_OPTS(xpt_explain_options, options);
	struct xpt_explain *explain = NULL;

	cr_assert_eq(xpt_explain_create(&options, &explain), -EINVAL);
	options.input = "/nowhere";
	cr_assert_eq(xpt_explain_create(&options, &explain), -ENOENT);
	options.from = 2;
	options.to = 1;
	cr_assert_eq(xpt_explain_create(&options, &explain), -EINVAL);
	options.size = 0;
	cr_assert_eq(xpt_explain_create(&options, &explain), -EINVAL);
	cr_assert_null(explain);
	xpt_explain_destroy(NULL);
}
