/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/trace/csv_text.h"

#include <errno.h>
#include <stdlib.h>

#include "base/core/vec.h"

static bool is_formula_sign(const char *bytes)
{
	const unsigned char *s = (const unsigned char *)bytes;

	if (s[0] && strchr("=+-@\r\n", s[0]))
		return true;
	/* The wide forms of = + - @, which East Asian settings take for the same. */
	return s[0] == 0xef && s[1] == 0xbc && (s[2] == 0x9d || s[2] == 0x8b || s[2] == 0x8d || s[2] == 0xa0);
}

/* Apostrophes that are there already don't count: then taking one away always gives the field back. */
static bool is_formula(const char *string)
{
	return is_formula_sign(string + strspn(string, "' "));
}

static bool is_plain(const char *string, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++) {
		if (string[i] < 0x20 || string[i] >= 0x7f || string[i] == ',' || string[i] == '"')
			return false;
	}
	return true;
}

/* kept: bytes that stay as they are, quotes doubled. */
static void add_escaped(struct text *text, const char *string, size_t length, const char *kept)
{
	while (length) {
		size_t shown = 0;

		while (shown < length && !strchr(kept, string[shown]))
			shown++;
		text_terminal(text, string, shown, 0);
		if (shown < length) {
			if (string[shown] == '"')
				text_literal(text, "\"");
			text_bytes(text, string + shown, 1);
			shown++;
		}
		string += shown;
		length -= shown;
	}
}

static void add_field(struct text *text, const char *string, const char *kept)
{
	size_t length = string ? strlen(string) : 0;
	bool quoted = length && (strpbrk(string, kept) || strchr(string, ','));

	if (quoted)
		text_literal(text, "\"");
	if (length && is_formula(string))
		text_literal(text, "'");
	if (is_plain(string, length))
		text_bytes(text, string, length);
	else
		add_escaped(text, string, length, kept);
	if (quoted)
		text_literal(text, "\"");
}

void csv_string(struct text *text, const char *string)
{
	add_field(text, string, "\"\r\n");
}

void csv_line(struct text *text, const char *string)
{
	add_field(text, string, "\"");
}

/* ---- usage of a process ---- */

void usage_csv_heading(struct text *text)
{
	text_literal(text, "time_ns,threads,cpu_ns,cpu_user_ns,cpu_system_ns,cpu_percent,"
			   "rss_bytes,peak_rss_bytes,anonymous_bytes,swap_bytes\n");
}

static void add_number(struct text *text, bool known, __u64 value)
{
	text_literal(text, ",");
	if (known)
		text_unsigned(text, value);
	else
		text_literal(text, "N/A");
}

/* With three decimals; beyond 100 when several threads run at once. */
static void add_percent(struct text *text, const struct process_usage *usage, const struct process_usage *before)
{
	if (!before || !(usage->have & before->have & USAGE_CPU) || usage->time <= before->time ||
	    usage->cpu < before->cpu) {
		add_number(text, false, 0);
		return;
	}
	text_literal(text, ",");
	/* Thousandths are to a percent what nanoseconds are to a microsecond. */
	text_microseconds(text,
			  (__u64)((double)(usage->cpu - before->cpu) * 100000.0 / (double)(usage->time - before->time) +
				  0.5));
}

void usage_csv_row(struct text *text, const struct process_usage *usage, const struct process_usage *before)
{
	bool cpu = usage->have & USAGE_CPU, memory = usage->have & USAGE_MEMORY;

	text_unsigned(text, usage->time);
	add_number(text, true, usage->threads);
	add_number(text, cpu, usage->cpu);
	add_number(text, cpu, usage->user);
	add_number(text, cpu, usage->system);
	add_percent(text, usage, before);
	add_number(text, memory, usage->resident);
	add_number(text, memory, usage->peak);
	add_number(text, memory, usage->anonymous);
	add_number(text, memory, usage->swap);
	text_literal(text, "\n");
}

static __u64 thread_key(__u32 tgid, __u32 tid)
{
	return (__u64)tgid << 32 | tid;
}

/* Of the memory that an inference takes; arrays may have up to as much again in reserve. */
static size_t held_bytes(const struct held_operators *held)
{
	return sizeof(*held) + held->count * sizeof(*held->op) + held->labels.length;
}

void held_operators_free(struct held_operators *held)
{
	if (!held)
		return;
	text_free(&held->labels);
	free(held->op);
	free(held);
}

static void evicted(void *context, struct keyed *entry)
{
	struct held_operators *held = container_of(entry, struct held_operators, keyed);
	struct operator_buffer *hold = context;

	hold->dropped += held->count;
	hold->bytes -= held_bytes(held);
	held_operators_free(held);
}

void operator_buffer_init(struct operator_buffer *hold)
{
	*hold = (struct operator_buffer){ 0 };
	keyed_init(&hold->inferences, OPERATOR_BUFFER_INFERENCES, evicted, hold);
}

static struct held_operators *find(const struct operator_buffer *hold, __u64 thread, __u64 start)
{
	struct keyed *entry = keyed_find(&hold->inferences, thread, start);

	return entry ? container_of(entry, struct held_operators, keyed) : NULL;
}

static struct held_operators *create(struct operator_buffer *hold, __u64 thread, __u64 start)
{
	struct held_operators *held = calloc(1, sizeof(*held));

	if (!held || keyed_add(&hold->inferences, &held->keyed, thread, thread, start)) {
		free(held);
		return NULL;
	}
	hold->bytes += held_bytes(held);
	return held;
}

int operator_buffer_add(struct operator_buffer *hold, const struct event_call *call, const char *label)
{
	const __u64 thread = thread_key(call->tgid, call->tid);
	struct held_operators *held;
	size_t before;

	while (hold->bytes > OPERATOR_BUFFER_BYTES)
		keyed_drop(&hold->inferences, keyed_oldest(&hold->inferences));
	held = find(hold, thread, call->inference) ?: create(hold, thread, call->inference);
	if (!held || vec_reserve(held->op, held->count))
		return -ENOMEM;
	before = held_bytes(held);
	held->op[held->count] = (struct held_operator){ call->start, call->end, held->labels.length };
	text_bytes(&held->labels, label, strlen(label) + 1);
	held->count += !held->labels.error;
	hold->bytes += held_bytes(held) - before;
	return held->labels.error;
}

/* Of those that begin together the outer one ends last. */
static int compare(const void *a, const void *b)
{
	const struct held_operator *first = a, *second = b;

	if (first->start != second->start)
		return first->start < second->start ? -1 : 1;
	if (first->end != second->end)
		return first->end > second->end ? -1 : 1;
	return first->label < second->label ? -1 : first->label > second->label;
}

struct held_operators *operator_buffer_take(struct operator_buffer *hold, __u32 tgid, __u32 tid, __u64 start)
{
	struct held_operators *held = find(hold, thread_key(tgid, tid), start);

	if (!held)
		return NULL;
	hold->bytes -= held_bytes(held);
	keyed_remove(&hold->inferences, &held->keyed);
	if (held->count)
		qsort(held->op, held->count, sizeof(*held->op), compare);
	return held;
}

void operator_buffer_free(struct operator_buffer *hold)
{
	keyed_free(&hold->inferences);
}
