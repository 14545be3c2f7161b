/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/trigger/trigger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/hashmap.h"
#include "base/core/text.h"
#include "model/stats/statistics.h"
#include "report/table/columns.h"

#define NAME_BYTES 256	/* of a program's name that are read, */
#define NAME_COLUMNS 64 /* and shown */
#define DIGITS_END 1000 /* values are shown in at least three significant digits */

/* ---- windows ---- */

/*
 * The inferences of one program that ended in the last T, in TRIGGER_SLICES slices of T / TRIGGER_SLICES each. Slices
 * begin at multiples of their width on the clock, and the newest one is still being filled: what is known is between
 * 95 and 100 % of T, back from the newest end.
 *
 * How many inferences there are, how many of them are beyond the limit and their sum are exact. So is whether a
 * percentile is beyond: it is where fewer than its rank are not. What it is comes from histograms of those beyond
 * alone, within 1 % (model/stats/statistics.h); a program that keeps to its limit has none.
 */
struct trigger_slice {
	unsigned __int128 sum;	   /* ns, of all */
	__u64 count, beyond;	   /* inferences; of them, those beyond the limit */
	struct statistics *values; /* ns, of those beyond; NULL: none yet */
};

/* Zero it to begin with. */
struct trigger_window {
	struct trigger_slice slices[TRIGGER_SLICES]; /* by number modulo their count */
	__u64 newest;				     /* number of the newest slice */
	unsigned __int128 sum;			     /* of all slices, as there */
	__u64 count, beyond;
};

static struct trigger_slice *slice_of(struct trigger_window *window, __u64 number)
{
	return &window->slices[number % TRIGGER_SLICES];
}

static void forget_slice(struct trigger_window *window, struct trigger_slice *slice)
{
	window->sum -= slice->sum;
	window->count -= slice->count;
	window->beyond -= slice->beyond;
	statistics_free(slice->values);
	*slice = (struct trigger_slice){ 0 };
}

static void advance(struct trigger_window *window, __u64 number)
{
	__u64 steps = number - window->newest;

	for (__u64 i = 0; i < steps && i < TRIGGER_SLICES; i++)
		forget_slice(window, slice_of(window, number - i));
	window->newest = number;
}

/*
 * Counts one in slice number; ends need not be in order. -ESTALE: the window has moved past that slice; -ENOMEM. It
 * is not counted then.
 */
static int trigger_window_add(struct trigger_window *window, __u64 number, __u64 latency, bool beyond)
{
	struct trigger_slice *slice;

	if (number < window->newest && window->newest - number >= TRIGGER_SLICES)
		return -ESTALE;
	if (number > window->newest)
		advance(window, number);
	slice = slice_of(window, number);
	if (beyond) {
		if (!slice->values)
			slice->values = statistics_create();
		if (!slice->values || statistics_add(slice->values, latency))
			return -ENOMEM;
	}
	slice->sum += latency;
	slice->count++;
	slice->beyond += beyond;
	window->sum += latency;
	window->count++;
	window->beyond += beyond;
	return 0;
}

/* The latency at this rank among those that are beyond: 1, the shortest, to window->beyond, both exact. -ENOMEM. */
static int trigger_window_beyond(const struct trigger_window *window, __u64 rank, __u64 *latency)
{
	struct statistics *values = statistics_create();
	int error = values ? 0 : -ENOMEM;

	for (unsigned int i = 0; !error && i < TRIGGER_SLICES; i++)
		if (window->slices[i].values)
			error = statistics_merge(values, window->slices[i].values);
	if (!error)
		*latency = statistics_quantile(values, (double)rank / (double)window->beyond);
	statistics_free(values);
	return error;
}

static void trigger_window_free(struct trigger_window *window)
{
	for (unsigned int i = 0; i < TRIGGER_SLICES; i++)
		statistics_free(window->slices[i].values);
}

/* ---- triggers ---- */

struct program {
	struct keyed keyed; /* its id, 0 */
	struct trigger_window window;
	bool fired; /* and was beyond the limit ever since */
};

struct trigger {
	struct trigger_condition condition;
	struct keyed_table programs; /* the least recently run first */
	struct trigger_firing last;
	struct trigger_losses losses;
};

static void release_program(void *context, struct keyed *keyed)
{
	struct program *program = container_of(keyed, struct program, keyed);
	struct trigger *trigger = context;

	trigger->losses.forgotten++;
	trigger_window_free(&program->window);
	free(program);
}

int trigger_parse(const char *text, struct trigger **result, char *reason, size_t size)
{
	struct trigger_condition condition;
	struct trigger *trigger;
	int error;

	error = trigger_text_parse(text, &condition, reason, size);
	if (error)
		return error;
	trigger = calloc(1, sizeof(*trigger));
	if (!trigger) {
		snprintf(reason, size, "no memory");
		return -ENOMEM;
	}
	trigger->condition = condition;
	keyed_init(&trigger->programs, TRIGGER_PROGRAMS, release_program, trigger);
	*result = trigger;
	return 0;
}

void trigger_free(struct trigger *trigger)
{
	if (!trigger)
		return;
	keyed_free(&trigger->programs);
	free(trigger);
}

/* The program, as the one that has run last; NULL: no memory. */
static struct program *use_program(struct trigger *trigger, __u64 id)
{
	struct keyed *keyed = keyed_find(&trigger->programs, id, 0);
	struct program *program;

	if (keyed) {
		keyed_renew(&trigger->programs, keyed);
		return container_of(keyed, struct program, keyed);
	}
	program = calloc(1, sizeof(*program));
	if (!program || keyed_add(&trigger->programs, &program->keyed, 0, id, 0)) {
		free(program);
		return NULL;
	}
	return program;
}

/* Of a sum of count values: whether their mean is. */
static bool is_beyond(const struct trigger_condition *condition, unsigned __int128 sum, __u64 count)
{
	unsigned __int128 limit = (unsigned __int128)condition->limit * count;

	return condition->at_least ? sum >= limit : sum > limit;
}

static int fire(struct trigger *trigger, __u64 program, __u64 value, __u64 inferences)
{
	trigger->last = (struct trigger_firing){ .program = program, .value = value, .inferences = inferences };
	return 1;
}

/* The percentile's rank among the latencies beyond the limit; 0: it is not one of them. The maximum is p100. */
static __u64 rank_beyond(const struct trigger_condition *condition, const struct trigger_window *window)
{
	const __u64 whole = 100ull * TRIGGER_PERCENT;
	__u64 part = condition->measure == TRIGGER_MAX ? whole : condition->percentile;
	__u64 rank = (__u64)(((unsigned __int128)window->count * part + whole - 1) / whole);
	__u64 within = window->count - window->beyond;

	return rank > within ? rank - within : 0;
}

static bool window_is_beyond(const struct trigger_condition *condition, const struct trigger_window *window)
{
	if (condition->measure == TRIGGER_MEAN)
		return is_beyond(condition, window->sum, window->count);
	return rank_beyond(condition, window);
}

static int window_value(const struct trigger_condition *condition, const struct trigger_window *window, __u64 *value)
{
	if (condition->measure != TRIGGER_MEAN)
		return trigger_window_beyond(window, rank_beyond(condition, window), value);
	*value = (__u64)((window->sum + window->count - 1) / window->count);
	return 0;
}

static int evaluate(struct trigger *trigger, struct program *program)
{
	const struct trigger_condition *condition = &trigger->condition;
	const struct trigger_window *window = &program->window;
	bool beyond = window_is_beyond(condition, window);
	__u64 value;
	int error;

	if (!beyond || program->fired) {
		program->fired = beyond;
		return 0;
	}
	error = window_value(condition, window, &value);
	if (error)
		return error;
	program->fired = true;
	return fire(trigger, program->keyed.node.a, value, window->count);
}

static int add_to_window(struct trigger *trigger, __u64 id, __u64 end, __u64 latency)
{
	const struct trigger_condition *condition = &trigger->condition;
	struct program *program = use_program(trigger, id);
	int error;

	if (!program)
		return -ENOMEM;
	error = trigger_window_add(&program->window, end / (condition->window / TRIGGER_SLICES), latency,
				   is_beyond(condition, latency, 1));
	if (error == -ESTALE) {
		trigger->losses.left_out++;
		return 0;
	}
	if (error)
		return error;
	if (condition->measure != TRIGGER_MAX && program->window.count < TRIGGER_LEAST)
		return 0;
	return evaluate(trigger, program);
}

/* Of a measure of one inference; false: it is not known. */
static bool read_measure(enum trigger_measure measure, const struct trigger_inference *inference, __u64 *value)
{
	const struct model_states *states = inference->states;

	if (measure == TRIGGER_LATENCY) {
		*value = inference->end - inference->start;
		return inference->end >= inference->start;
	}
	if (!states || !states->calls)
		return false;
	*value = measure == TRIGGER_CPU ? states->cpu : measure == TRIGGER_WAITED ? states->waited : states->blocked;
	return true;
}

int trigger_inference(struct trigger *trigger, const struct trigger_inference *inference)
{
	__u64 latency = inference->end - inference->start;
	bool known = inference->end >= inference->start;

	if (trigger->condition.measure == TRIGGER_ERROR)
		return inference->failed ? fire(trigger, inference->program, known ? latency : 0, 1) : 0;
	if (trigger_is_of_one(&trigger->condition))
		known = read_measure(trigger->condition.measure, inference, &latency);
	if (!known) {
		trigger->losses.left_out++;
		return 0;
	}
	if (!trigger_is_of_one(&trigger->condition))
		return add_to_window(trigger, inference->program, inference->end, latency);
	return is_beyond(&trigger->condition, latency, 1) ? fire(trigger, inference->program, latency, 1) : 0;
}

const struct trigger_firing *trigger_last(const struct trigger *trigger)
{
	return &trigger->last;
}

const struct trigger_losses *trigger_losses(const struct trigger *trigger)
{
	return &trigger->losses;
}

/* Rounded, but not to what is no longer beyond the limit: 20.004 ms is more than 20 ms, and so it should read. */
static __u64 shown_value(const struct trigger_condition *condition, __u64 value)
{
	unsigned __int128 shown, step = 1;

	while (value / step >= DIGITS_END)
		step *= 10;
	do {
		shown = (value + step / 2) / step * step;
		step /= 10;
	} while (step && !is_beyond(condition, shown, 1));
	return (__u64)shown;
}

static void append_value(struct text *text, const struct trigger_condition *condition,
			 const struct trigger_firing *firing)
{
	text_literal(text, " was ");
	trigger_text_time(text, shown_value(condition, firing->value));
	if (condition->at_least)
		text_literal(text, " (>= ");
	else
		text_literal(text, " (> ");
	trigger_text_time(text, condition->limit);
	if (condition->window) {
		text_literal(text, ", ");
		text_unsigned(text, firing->inferences);
		text_string(text, firing->inferences == 1 ? " inference" : " inferences");
	}
	text_literal(text, ")");
}

void trigger_reason(const struct trigger *trigger, const char *name, char *reason, size_t size)
{
	const struct trigger_condition *condition = &trigger->condition;
	bool error = condition->measure == TRIGGER_ERROR;
	struct text text = {};

	if (error)
		text_literal(&text, "an inference");
	else
		trigger_text_measure(&text, condition);
	text_literal(&text, " of ");
	text_terminal(&text, name, text_cut(name, strlen(name), NAME_BYTES), NAME_COLUMNS);
	if (condition->window) {
		text_literal(&text, " over ");
		trigger_text_time(&text, condition->window);
	}
	if (error)
		text_literal(&text, " failed");
	else
		append_value(&text, condition, &trigger->last);
	trigger_text_copy(&text, reason, size);
	text_free(&text);
}

/* ---- save limits ---- */

/* Since the last save was granted. The time of a trigger may be the end of an inference, before that of another. */
static __u64 elapsed(const struct save_limits *limits, __u64 now)
{
	return now > limits->granted ? now - limits->granted : 0;
}

static enum save_answer decide(const struct save_limits *limits, __u64 now)
{
	if (limits->pending)
		return SAVE_PENDING;
	if (limits->files_most && limits->files >= limits->files_most)
		return SAVE_FILES;
	if (limits->bytes_most && limits->bytes >= limits->bytes_most)
		return SAVE_BYTES;
	if (limits->answers[SAVE_MAY] && elapsed(limits, now) < limits->cooldown)
		return SAVE_COOLDOWN;
	return SAVE_MAY;
}

enum save_answer save_limits_ask(struct save_limits *limits, __u64 now)
{
	enum save_answer answer = decide(limits, now);

	limits->answers[answer]++;
	if (answer == SAVE_MAY) {
		limits->pending = true;
		limits->granted = now;
	}
	return answer;
}

void save_limits_done(struct save_limits *limits, __u64 bytes)
{
	limits->pending = false;
	limits->files += bytes != 0;
	limits->bytes += bytes;
}

static void append_files(struct text *text, __u64 files)
{
	text_unsigned(text, files);
	text_string(text, files == 1 ? " file" : " files");
}

/* Tenths of a second are enough for what is over. */
static __u64 rounded(__u64 nanoseconds)
{
	const __u64 tenth = 100000000;

	return nanoseconds < tenth ? nanoseconds : nanoseconds / tenth * tenth;
}

void save_limits_text(const struct save_limits *limits, enum save_answer answer, __u64 now, char *string, size_t size)
{
	struct text text = {};

	switch (answer) {
	case SAVE_PENDING:
		text_literal(&text, "the save before is not done");
		break;
	case SAVE_FILES:
		text_literal(&text, "triggers have saved ");
		append_files(&text, limits->files);
		text_literal(&text, ", and may save no more");
		break;
	case SAVE_BYTES:
		text_literal(&text, "triggers have saved ");
		columns_format_bytes(&text, limits->bytes);
		text_literal(&text, ", and may save ");
		columns_format_bytes(&text, limits->bytes_most);
		break;
	case SAVE_COOLDOWN:
		text_literal(&text, "the save before was ");
		trigger_text_time(&text, rounded(elapsed(limits, now)));
		text_literal(&text, " ago, less than ");
		trigger_text_time(&text, limits->cooldown);
		break;
	default:
		text_literal(&text, "it may save");
	}
	trigger_text_copy(&text, string, size);
	text_free(&text);
}
