/* SPDX-License-Identifier: BSD-2-Clause */
/* The stacks that programs had in the last seconds: added from reports, listed with their shares, the hottest first. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "cli/top/top.h"

#define LINES_MAX 3 /* of one stack on a screen */
#define INDENT 8    /* columns before the frames */
#define BETWEEN " <- "

/* Of one report, or several that are the same added up. */
struct top_stack {
	enum xpt_report_stack_kind kind;
	uint64_t time; /* of the report */
	uint64_t count, weight;
	char *frames; /* terminated names, the innermost first; NULL: those that had no room */
	size_t length;
};

static void free_stack(struct top_stack *stack)
{
	free(stack->frames);
}

void top_stacks_clear(struct top_stacks *stacks)
{
	for (size_t i = 0; i < stacks->count; i++)
		free_stack(&stacks->items[i]);
	free(stacks->items);
	*stacks = (struct top_stacks){};
}

void top_stacks_drop(struct top_stacks *stacks, uint64_t time)
{
	size_t kept = 0;

	for (size_t i = 0; i < stacks->count; i++) {
		if (stacks->items[i].time < time)
			free_stack(&stacks->items[i]);
		else
			stacks->items[kept++] = stacks->items[i];
	}
	stacks->count = kept;
}

/* Nothing is added where there is no memory. */
void top_stacks_add(struct top_stacks *stacks, const struct xpt_program_report *program, uint64_t time)
{
	for (size_t i = 0; i < program->stack_count; i++) {
		const struct xpt_report_stack *from = XPT_AT(program->stacks, program->stack_size, i);
		struct top_stack stack = {
			.kind = from->kind, .time = time, .count = from->count, .weight = from->time
		};
		struct text text = {};

		for (size_t each = 0; each < from->frame_count; each++)
			text_bytes(&text, from->frames[each], strlen(from->frames[each]) + 1);
		if (from->partial)
			text_bytes(&text, "[partial]", sizeof("[partial]"));
		stack.frames = text.data;
		stack.length = text.length;
		if (text.error || vec_push(stacks->items, stacks->count, stack))
			text_free(&text);
	}
}

static int by_frames(const void *left, const void *right)
{
	const struct top_stack *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->length != b->length)
		return a->length < b->length ? -1 : 1;
	return a->length ? memcmp(a->frames, b->frames, a->length) : 0;
}

/* Those that had no room are the last of their kind. */
static int by_weight(const void *left, const void *right)
{
	const struct top_stack *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind > b->kind ? -1 : 1;
	if (!a->frames != !b->frames)
		return a->frames ? -1 : 1;
	return a->weight != b->weight ? (a->weight > b->weight ? -1 : 1) : by_frames(left, right);
}

/* Copies that share the frames, each once. NULL: none, or no memory. */
static struct top_stack *add_up(const struct top_stacks *stacks, size_t *count)
{
	struct top_stack *sums = stacks->count ? calloc(stacks->count, sizeof(*sums)) : NULL;

	*count = 0;
	if (!sums)
		return NULL;
	memcpy(sums, stacks->items, stacks->count * sizeof(*sums));
	qsort(sums, stacks->count, sizeof(*sums), by_frames);
	for (size_t i = 0; i < stacks->count; i++) {
		struct top_stack *last = *count ? &sums[*count - 1] : NULL;

		if (last && !by_frames(last, &sums[i])) {
			last->count += sums[i].count;
			last->weight += sums[i].weight;
		} else {
			sums[(*count)++] = sums[i];
		}
	}
	qsort(sums, *count, sizeof(*sums), by_weight);
	return sums;
}

/* As many frames as fit into a few lines; columns 0: all in one line. */
static void add_frames(struct text *text, const struct top_stack *stack, unsigned int columns)
{
	const unsigned int room = columns > INDENT + 8 ? columns - INDENT : 8;
	size_t used = 0, lines = 1;

	if (!stack->frames)
		text_literal(text, "(others)");
	for (size_t at = 0; stack->frames && at < stack->length; at += strlen(stack->frames + at) + 1) {
		const char *frame = stack->frames + at;
		const char *between = at ? BETWEEN : "";
		struct text part = {};
		size_t width = text_terminal(&part, frame, strlen(frame), columns ? room - strlen(between) : 0);

		if (columns && used + strlen(between) + width > room) {
			if (lines++ == LINES_MAX) {
				text_free(&part);
				break;
			}
			text_literal(text, "\n");
			for (unsigned int i = 0; i < INDENT; i++)
				text_literal(text, " ");
			used = 0;
			between += strspn(between, " ");
		}
		text_string(text, between);
		text_bytes(text, part.data, part.length);
		used += strlen(between) + width;
		if (part.error)
			text_fail(text);
		text_free(&part);
	}
	text_literal(text, "\n");
}

void top_stacks_text(struct text *text, const struct top_stacks *stacks, unsigned int columns, size_t most)
{
	static const struct {
		const char *title, *count;
	} words[] = {
		{ "Stacks", "samples" }, /* of a kind that is not known here */
		[XPT_REPORT_STACK_CALL] = { "Callers, by time of inferences", "inferences" },
		[XPT_REPORT_STACK_OFF_CPU] = { "Where threads do not run in calls, by time", "waits" },
		[XPT_REPORT_STACK_CPU] = { "Where threads run in calls, by CPU time", "samples" },
	};
	size_t count, end;
	struct top_stack *sums = add_up(stacks, &count);

	for (size_t begin = 0; begin < count; begin = end) {
		const enum xpt_report_stack_kind kind = sums[begin].kind;
		const size_t word = kind < sizeof(words) / sizeof(*words) ? kind : 0;
		double weight = 0;
		uint64_t samples = 0;

		for (end = begin; end < count && sums[end].kind == kind; end++) {
			weight += (double)sums[end].weight;
			samples += sums[end].count;
		}
		top_add(text, "%s: %" PRIu64 " ", words[word].title, samples);
		text_string(text, words[word].count);
		text_literal(text, "\n");
		for (size_t i = begin; i < end && i - begin < most; i++) {
			double share = weight > 0 ? (double)sums[i].weight / weight :
						    (double)sums[i].count / (double)samples;

			top_add(text, "%5.1f%%  ", 100 * share);
			add_frames(text, &sums[i], columns);
		}
	}
	free(sums);
}
