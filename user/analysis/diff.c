/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/diff.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diff_private.h"
#include "base/core/link.h"
#include "base/core/text.h"
#include "base/core/vec.h"

struct diff {
	struct xpt_diff shown;
	struct xpt_diff_program *programs;
	struct xpt_diff_unmatched *unmatched;
	struct xpt_diff_row *counters;
	struct xpt_diff_check *checks;
	char **notes;
};

const char *xpt_diff_kind_name(enum xpt_diff_kind kind)
{
	static const char *const names[] = { "duration", "throughput", "errors",  "state",
					     "device",	 "operator",   "counter", "outside" };

	return (unsigned int)kind < sizeof(names) / sizeof(*names) ? names[kind] : NULL;
}

const char *xpt_diff_match_name(enum xpt_diff_match match)
{
	static const char *const names[] = { "name", "name alone", "hash", "fingerprint", "process" };

	return (unsigned int)match < sizeof(names) / sizeof(*names) ? names[match] : NULL;
}

/* ---- matching ---- */

/* Of a program on one side: the index of its partner on the other. */
#define NO_PARTNER (~0u)
#define AMBIGUOUS (~1u)

struct matching {
	const struct study *study[2];
	unsigned int *partner[2];
	enum xpt_diff_match *match; /* of programs after */
};

/* It has no name of its own, as "onnxruntime model 1" by the order in which they came, or "onnxruntime model 3ae4d5ce" by its operators. */
static bool is_nameless(const struct study_program *program)
{
	const size_t length = strlen(program->runtime);

	return !strncmp(program->name, program->runtime, length) && !strncmp(program->name + length, " model ", 7);
}

static bool models_differ(const struct study_program *a, const struct study_program *b)
{
	if (a->sha256 && b->sha256)
		return strcmp(a->sha256, b->sha256) != 0;
	return a->fingerprint && b->fingerprint && a->fingerprint != b->fingerprint;
}

static bool is_match(const struct study_program *a, const struct study_program *b, enum xpt_diff_match match)
{
	if (a->others || b->others || a->region != b->region || strcmp(a->runtime, b->runtime) != 0)
		return false;
	switch (match) {
	case XPT_DIFF_BY_NAME:
	case XPT_DIFF_BY_NAME_ALONE:
		if (strcmp(a->name, b->name) != 0 || (is_nameless(a) && models_differ(a, b)))
			return false;
		return match == XPT_DIFF_BY_NAME_ALONE || !strcmp(a->process, b->process);
	case XPT_DIFF_BY_HASH:
		return a->sha256 && b->sha256 && !strcmp(a->sha256, b->sha256);
	case XPT_DIFF_BY_FINGERPRINT:
		return a->fingerprint && a->fingerprint == b->fingerprint;
	default:
		return !strcmp(a->process, b->process) && (is_nameless(a) || is_nameless(b));
	}
}

/* How many programs of the other side it could be, that have no partner yet; *found is the last of them. */
static size_t candidates(const struct matching *matching, int side, size_t index, enum xpt_diff_match match,
			 unsigned int *found)
{
	const struct study *other = matching->study[!side];
	size_t count = 0;

	for (size_t i = 0; i < other->program_count; i++) {
		if (matching->partner[!side][i] < AMBIGUOUS ||
		    !is_match(&matching->study[side]->programs[index], &other->programs[i], match))
			continue;
		*found = i;
		count++;
	}
	return count;
}

/* Pairs those that have only each other. What has more than one is ambiguous, and may be settled by the next way. */
static void match_programs(struct matching *matching, enum xpt_diff_match match)
{
	for (size_t i = 0; i < matching->study[1]->program_count; i++) {
		unsigned int before = 0, after = 0;
		size_t count;

		if (matching->partner[1][i] < AMBIGUOUS)
			continue;
		count = candidates(matching, 1, i, match, &before);
		if (count == 1 && candidates(matching, 0, before, match, &after) == 1) {
			matching->partner[1][i] = before;
			matching->partner[0][before] = i;
			matching->match[i] = match;
		} else if (count && match != XPT_DIFF_BY_PROCESS) {
			matching->partner[1][i] = AMBIGUOUS;
			for (size_t k = 0; k < matching->study[0]->program_count; k++)
				if (matching->partner[0][k] == NO_PARTNER &&
				    is_match(&matching->study[0]->programs[k], &matching->study[1]->programs[i], match))
					matching->partner[0][k] = AMBIGUOUS;
		}
	}
}

static int matching_create(struct matching *matching)
{
	for (int s = 0; s < 2; s++) {
		const size_t count = matching->study[s]->program_count;

		matching->partner[s] = calloc(count ?: 1, sizeof(*matching->partner[s]));
		if (!matching->partner[s])
			return -ENOMEM;
		memset(matching->partner[s], 0xff, count * sizeof(*matching->partner[s]));
	}
	matching->match = calloc(matching->study[1]->program_count ?: 1, sizeof(*matching->match));
	if (!matching->match)
		return -ENOMEM;
	for (int match = XPT_DIFF_BY_NAME; match <= XPT_DIFF_BY_PROCESS; match++)
		match_programs(matching, match);
	return 0;
}

static void matching_free(struct matching *matching)
{
	free(matching->partner[0]);
	free(matching->partner[1]);
	free(matching->match);
}

static int add_unmatched(struct diff *diff, const struct matching *matching)
{
	int error = 0;

	for (int s = 0; s < 2; s++) {
		for (size_t i = 0; i < matching->study[s]->program_count && !error; i++) {
			const struct study_program *program = &matching->study[s]->programs[i];

			if (matching->partner[s][i] < AMBIGUOUS || program->others)
				continue;
			error = vec_push(diff->unmatched, diff->shown.unmatched_count,
					 (struct xpt_diff_unmatched){
						 .runtime = program->runtime,
						 .name = program->name,
						 .process = program->process,
						 .inferences = program->exact ? program->counted : program->recorded,
						 .after = s,
						 .ambiguous = matching->partner[s][i] == AMBIGUOUS });
		}
	}
	return error;
}

/* ---- programs ---- */

static int add_program(struct diff *diff, const struct diff_options *options, const struct matching *matching,
		       size_t after)
{
	const struct study_program *old = &matching->study[0]->programs[matching->partner[1][after]],
				   *new = &matching->study[1]->programs[after];
	struct diff_pair pair = { .options = options,
				  .side = { { .study = matching->study[0], .program = old },
					    { .study = matching->study[1], .program = new } } };
	struct xpt_diff_program program = {
		.runtime = new->runtime,
		.name = new->name,
		.process = new->process,
		.name_before = old->name,
		.process_before = old->process,
		.match = matching->match[after],
		.model_changed = models_differ(old, new),
		.inferences_before = old->exact ? old->counted : old->recorded,
		.inferences_after = new->exact ? new->counted : new->recorded,
		.row_size = sizeof(struct xpt_diff_row),
		.cause_size = sizeof(struct xpt_diff_cause),
	};
	struct xpt_diff_row *rows = NULL;
	struct xpt_diff_cause *causes = NULL;
	int error = vec_reserve(diff->programs, diff->shown.program_count);

	if (error || !old->sample_count || !new->sample_count)
		return error;
	error = diff_pair_create(&pair);
	error = error ?: diff_rows(&pair, &rows, &program.row_count);
	error = error ?: diff_causes(&pair, rows, program.row_count, &causes, &program.cause_count);
	program.recordings_before = pair.side[0].recordings;
	program.recordings_after = pair.side[1].recordings;
	program.by_recording = pair.by_recording;
	program.rows = rows;
	program.causes = causes;
	diff->programs[diff->shown.program_count++] = program;
	diff_pair_free(&pair);
	return error;
}

static int compare_rows(const void *left, const void *right)
{
	const struct xpt_diff_row *a = left, *b = right;

	if (isnan(a->p) || isnan(b->p))
		return isnan(a->p) - isnan(b->p);
	if (a->adjusted != b->adjusted)
		return a->adjusted < b->adjusted ? -1 : 1;
	if (a->p != b->p)
		return a->p < b->p ? -1 : 1;
	return (int)a->kind - (int)b->kind;
}

static int compare_programs(const void *left, const void *right)
{
	const struct xpt_diff_program *a = left, *b = right;
	int order = a->row_count && b->row_count ? compare_rows(a->rows, b->rows) :
						   (int)!a->row_count - (int)!b->row_count;

	return order ?: strcmp(a->name, b->name);
}

struct row_list {
	struct xpt_diff_row *rows;
	size_t count;
};

/* Rows of the program, or the counters. */
static struct row_list rows_of(const struct diff *diff, size_t program)
{
	if (program == diff->shown.program_count)
		return (struct row_list){ diff->counters, diff->shown.counter_count };
	return (struct row_list){ (struct xpt_diff_row *)diff->programs[program].rows,
				  diff->programs[program].row_count };
}

/* Which rows are significant, of all that are tested. */
static int judge(struct diff *diff, double level)
{
	double *p = NULL;
	size_t count = 0, next = 0;
	int error = 0;

	for (size_t i = 0; i <= diff->shown.program_count; i++) {
		const struct row_list list = rows_of(diff, i);

		for (size_t r = 0; r < list.count && !error; r++)
			error = vec_push(p, count, list.rows[r].p);
	}
	error = error ?: adjust_p(p, count);
	for (size_t i = 0; i <= diff->shown.program_count && !error; i++) {
		const struct row_list list = rows_of(diff, i);
		size_t significant = 0;

		for (size_t r = 0; r < list.count; r++) {
			list.rows[r].adjusted = p[next++];
			list.rows[r].significant = list.rows[r].adjusted <= level;
			significant += list.rows[r].significant;
			diff->shown.tested += !isnan(list.rows[r].p);
		}
		if (list.count)
			qsort(list.rows, list.count, sizeof(*list.rows), compare_rows);
		diff->shown.significant += significant;
		if (i < diff->shown.program_count)
			diff->programs[i].significant = significant;
	}
	if (!error && diff->shown.program_count)
		qsort(diff->programs, diff->shown.program_count, sizeof(*diff->programs), compare_programs);
	free(p);
	return error;
}

/* ---- notes ---- */

static int __attribute__((format(printf, 2, 3))) add_note(struct diff *diff, const char *format, ...)
{
	char *note;
	va_list list;
	int length;

	va_start(list, format);
	length = vasprintf(&note, format, list);
	va_end(list);
	if (length < 0)
		return -ENOMEM;
	if (!vec_push(diff->notes, diff->shown.note_count, note))
		return 0;
	free(note);
	return -ENOMEM;
}

static __u64 lost(const struct study *study)
{
	__u64 sum = 0;

	for (int cause = 0; cause < XPT_LOSS_MAX; cause++)
		sum += study->lost[cause];
	return sum;
}

/* One that a member of the inputs differs in. */
static bool inputs_differ(const struct study *before, const struct study *after, size_t offset)
{
	const char *first = *(const char *const *)((const char *)&before->inputs[0] + offset);

	for (int s = 0; s < 2; s++) {
		const struct study *study = s ? after : before;

		for (size_t i = 0; i < study->input_count; i++) {
			const char *value = *(const char *const *)((const char *)&study->inputs[i] + offset);

			if (strcmp(value ?: "", first ?: "") != 0)
				return true;
		}
	}
	return false;
}

static int note_machines(struct diff *diff, const struct study *before, const struct study *after)
{
	static const struct {
		size_t offset;
		const char *what;
	} members[] = { { offsetof(struct study_input, host), "hosts" },
			{ offsetof(struct study_input, kernel), "kernels" },
			{ offsetof(struct study_input, version), "versions of xputrace" } };
	int error = 0;

	if (!before->input_count || !after->input_count)
		return 0;
	for (size_t i = 0; i < sizeof(members) / sizeof(*members) && !error; i++)
		if (inputs_differ(before, after, members[i].offset))
			error = add_note(diff, "the recordings are of different %s", members[i].what);
	return error;
}

#define TRACING_SHARE 0.1 /* of an inference's time; what probes take is measured within some percent of that */

/* What tracing itself has done to the durations. */
static int note_tracing(struct diff *diff, const struct matching *matching)
{
	int error = 0;

	for (size_t i = 0; i < matching->study[1]->program_count && !error; i++) {
		const struct study_measures *old, *new = &matching->study[1]->programs[i].all.mean;
		double change;

		if (matching->partner[1][i] >= AMBIGUOUS)
			continue;
		old = &matching->study[0]->programs[matching->partner[1][i]].all.mean;
		change = new->tracing - old->tracing;
		if (old->duration > 0 && fabs(change) > TRACING_SHARE * old->duration)
			error = add_note(diff,
					 "%s: tracing took %.3g us of an inference before and %.3g us after: "
					 "changes of that size may be of tracing alone",
					 matching->study[1]->programs[i].name, old->tracing / 1000,
					 new->tracing / 1000);
	}
	return error;
}

static int add_notes(struct diff *diff, const struct matching *matching)
{
	const struct study *before = matching->study[0], *after = matching->study[1];
	int error = note_machines(diff, before, after);

	for (int s = 0; s < 2 && !error; s++) {
		if (!matching->study[s]->complete)
			error = add_note(diff, "%s: a recording was cut short", s ? "after" : "before");
		if (!error && lost(matching->study[s]))
			error = add_note(diff, "%s: %llu records were lost", s ? "after" : "before",
					 (unsigned long long)lost(matching->study[s]));
	}
	if (!error && before->has_operators != after->has_operators)
		error = add_note(diff, "operators were recorded %s only: they are not compared, and cost time there",
				 before->has_operators ? "before" : "after");
	if (!error && before->has_reasons != after->has_reasons)
		error = add_note(diff, "reasons of blocking (--why) were recorded %s only",
				 before->has_reasons ? "before" : "after");
	return error ?: note_tracing(diff, matching);
}

/* ---- conditions ---- */

static bool is_beyond(const struct diff_condition *condition, const struct xpt_diff_row *row)
{
	const double change = condition->percent ? row->percent : row->change;

	if (isnan(change))
		return false;
	switch (condition->compare) {
	case DIFF_GREATER:
		return change > condition->limit;
	case DIFF_AT_LEAST:
		return change >= condition->limit;
	case DIFF_LESS:
		return change < condition->limit;
	default:
		return change <= condition->limit;
	}
}

/* How much the row speaks for the condition: failed, beyond, or only there; the first of the most. */
static int weigh(const struct diff_condition *condition, const struct xpt_diff_row *row)
{
	return is_beyond(condition, row) ? row->significant ? 3 : 2 : 1;
}

static void check_rows(struct xpt_diff_check *check, const struct diff_condition *condition, const char *program,
		       struct row_list list, int *weight)
{
	for (size_t i = 0; i < list.count; i++) {
		const struct xpt_diff_row *row = &list.rows[i];
		const bool time = !strcmp(row->unit, "ns");

		if (strcmp(row->name, condition->row) != 0 || (!condition->percent && condition->time != time) ||
		    weigh(condition, row) <= *weight)
			continue;
		*weight = weigh(condition, row);
		check->program = program;
		check->row = row->name;
		check->before = row->before;
		check->after = row->after;
		check->percent = row->percent;
		check->adjusted = row->adjusted;
		check->beyond = *weight >= 2;
		check->failed = *weight >= 3;
	}
}

static int add_check(struct diff *diff, const char *text)
{
	struct diff_condition condition;
	struct xpt_diff_check check = {
		.condition = text, .before = NAN, .after = NAN, .percent = NAN, .adjusted = NAN
	};
	char reason[256];
	int weight = 0, error = diff_condition_parse(text, &condition, reason, sizeof(reason));

	if (error)
		return error;
	for (size_t i = 0; i < diff->shown.program_count; i++)
		if (!*condition.program || text_is_name(diff->programs[i].name, condition.program))
			check_rows(&check, &condition, diff->programs[i].name, rows_of(diff, i), &weight);
	if (!*condition.program)
		check_rows(&check, &condition, "", rows_of(diff, diff->shown.program_count), &weight);
	diff->shown.failed |= check.failed;
	return vec_push(diff->checks, diff->shown.check_count, check);
}

/* ---- all of it ---- */

static void show(struct diff *diff)
{
	struct xpt_diff *shown = &diff->shown;

	shown->programs = diff->programs;
	shown->program_size = sizeof(*diff->programs);
	shown->unmatched = diff->unmatched;
	shown->unmatched_size = sizeof(*diff->unmatched);
	shown->counters = diff->counters;
	shown->counter_size = sizeof(*diff->counters);
	shown->checks = diff->checks;
	shown->check_size = sizeof(*diff->checks);
	shown->notes = (const char *const *)diff->notes;
}

int diff_create(const struct diff_options *options, const struct study *before, const struct study *after,
		struct xpt_diff **shown)
{
	struct diff *diff = calloc(1, sizeof(*diff));
	struct matching matching = { .study = { before, after } };
	int error = diff ? matching_create(&matching) : -ENOMEM;

	if (error)
		goto out;
	diff->shown = (struct xpt_diff){ .size = sizeof(diff->shown),
					 .level = options->level,
					 .run_noise = options->run_noise,
					 .recordings_before = before->input_count,
					 .recordings_after = after->input_count };
	for (size_t i = 0; i < after->program_count && !error; i++)
		if (matching.partner[1][i] < AMBIGUOUS)
			error = add_program(diff, options, &matching, i);
	error = error ?: add_unmatched(diff, &matching);
	error = error ?: diff_counter_rows(options, before, after, &diff->counters, &diff->shown.counter_count);
	error = error ?: judge(diff, options->level);
	error = error ?: add_notes(diff, &matching);
	for (size_t i = 0; i < options->condition_count && !error; i++)
		error = add_check(diff, options->conditions[i]);
	show(diff);
out:
	matching_free(&matching);
	if (error && diff)
		diff_free(&diff->shown);
	else if (!error)
		*shown = &diff->shown;
	return error;
}

void diff_free(struct xpt_diff *shown)
{
	struct diff *diff = shown ? container_of(shown, struct diff, shown) : NULL;

	if (!diff)
		return;
	for (size_t i = 0; i < shown->program_count; i++) {
		for (size_t k = 0; k < diff->programs[i].cause_count; k++)
			free((void *)diff->programs[i].causes[k].parts);
		free((void *)diff->programs[i].rows);
		free((void *)diff->programs[i].causes);
	}
	for (size_t i = 0; i < shown->note_count; i++)
		free(diff->notes[i]);
	free(diff->programs);
	free(diff->unmatched);
	free(diff->counters);
	free(diff->checks);
	free(diff->notes);
	free(diff);
}
