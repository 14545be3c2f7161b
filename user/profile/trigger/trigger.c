/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/trigger/trigger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/hashmap.h"
#include "base/core/link.h"
#include "base/core/text.h"
#include "profile/trigger/text.h"
#include "profile/trigger/window.h"

#define NAME_BYTES 256	/* of a program's name that are read, */
#define NAME_COLUMNS 64 /* and shown */
#define DIGITS_END 1000 /* values are shown in at least three significant digits */

struct program {
	struct trigger_window window;
	struct map_node node; /* key: its id, 0 */
	struct link used;
	bool fired; /* and was beyond the limit ever since */
};

struct trigger {
	struct trigger_condition condition;
	struct map programs;
	struct link used; /* all programs, the least recently run first */
	struct trigger_firing last;
	struct trigger_losses losses;
};

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
	link_init(&trigger->used);
	*result = trigger;
	return 0;
}

static void forget(struct trigger *trigger, struct program *program)
{
	map_remove(&trigger->programs, &program->node);
	link_remove(&program->used);
	trigger_window_free(&program->window);
	free(program);
}

void trigger_free(struct trigger *trigger)
{
	struct link *link, *following;

	if (!trigger)
		return;
	link_each(link, following, &trigger->used) forget(trigger, container_of(link, struct program, used));
	map_free(&trigger->programs);
	free(trigger);
}

static struct program *add_program(struct trigger *trigger, __u64 id)
{
	struct program *program = calloc(1, sizeof(*program));

	if (!program || map_add(&trigger->programs, &program->node, id, 0)) {
		free(program);
		return NULL;
	}
	link_append(&trigger->used, &program->used);
	if (trigger->programs.count > TRIGGER_PROGRAMS) {
		forget(trigger, container_of(trigger->used.next, struct program, used));
		trigger->losses.forgotten++;
	}
	return program;
}

static struct program *use_program(struct trigger *trigger, __u64 id)
{
	struct map_node *node = map_find(&trigger->programs, id, 0);
	struct program *program;

	if (!node)
		return add_program(trigger, id);
	program = container_of(node, struct program, node);
	link_remove(&program->used);
	link_append(&trigger->used, &program->used);
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

static int look_at(struct trigger *trigger, struct program *program)
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
	return fire(trigger, program->node.a, value, window->count);
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
	return look_at(trigger, program);
}

int trigger_inference(struct trigger *trigger, const struct trigger_inference *inference)
{
	__u64 latency = inference->end - inference->start;
	bool known = inference->end >= inference->start;

	if (trigger->condition.measure == TRIGGER_ERROR)
		return inference->failed ? fire(trigger, inference->program, known ? latency : 0, 1) : 0;
	if (!known) {
		trigger->losses.left_out++;
		return 0;
	}
	if (trigger->condition.measure != TRIGGER_LATENCY)
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
