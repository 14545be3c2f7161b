/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/merge/input.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/hashmap.h"
#include "base/core/vec.h"

#define DIGITS_MAX 30	       /* significant ones that are used: ten to that fits into 128 bits */
#define TIME_MAX (1ll << 62)   /* ns; two such can be added */
#define EXPONENT_MAX 100000000 /* beyond it, the number is out of range or zero whatever its digits are */
#define KIND_PROCESS_NAME 'p'

/* ---- numbers ---- */

struct decimal {
	bool negative;
	unsigned __int128 digits;
	int exponent; /* of ten, digits are to be multiplied with */
};

static void add_digit(struct decimal *decimal, int *count, char c, bool behind)
{
	if (*count < DIGITS_MAX) {
		decimal->digits = decimal->digits * 10 + (c - '0');
		*count += decimal->digits != 0;
		decimal->exponent -= behind;
	} else {
		decimal->exponent += !behind;
	}
}

static int read_exponent(const char *at, const char *end)
{
	bool negative = at < end && *at == '-';
	int exponent = 0;

	for (; at < end; at++) {
		if (*at >= '0' && *at <= '9' && exponent < EXPONENT_MAX)
			exponent = exponent * 10 + (*at - '0');
	}
	return negative ? -exponent : exponent;
}

/* text is a number of JSON. */
static struct decimal read_decimal(struct json_part text)
{
	const char *at = text.text, *end = at + text.length;
	struct decimal decimal = { .negative = *at == '-' };
	bool behind = false;
	int count = 0;

	for (at += decimal.negative; at < end && *at != 'e' && *at != 'E'; at++) {
		if (*at == '.')
			behind = true;
		else
			add_digit(&decimal, &count, *at, behind);
	}
	if (at < end)
		decimal.exponent += read_exponent(at + 1, end);
	return decimal;
}

static bool is_number(struct json_part value)
{
	return value.length && (*value.text == '-' || (*value.text >= '0' && *value.text <= '9'));
}

bool merge_time(struct json_part value, __s64 *nanoseconds, bool *fine)
{
	struct decimal decimal;
	int exponent;

	if (!is_number(value))
		return false;
	decimal = read_decimal(value);
	exponent = decimal.exponent + 3; /* microseconds have three more digits than nanoseconds */
	for (; exponent > 0 && decimal.digits; exponent--) {
		if (decimal.digits >= TIME_MAX)
			return false;
		decimal.digits *= 10;
	}
	for (; exponent < -1 && decimal.digits; exponent++)
		decimal.digits /= 10;
	if (exponent == -1)
		decimal.digits = (decimal.digits + 5) / 10;
	if (decimal.digits >= TIME_MAX)
		return false;
	*nanoseconds = decimal.negative ? -(__s64)decimal.digits : (__s64)decimal.digits;
	*fine = *nanoseconds % 1000 != 0;
	return true;
}

bool merge_number(struct json_part value, __u64 *number)
{
	struct json_part text = value.length && *value.text == '"' ? json_inside(value) : value;
	__u64 result = 0;

	if (!text.length || text.length > 19)
		return false;
	for (size_t i = 0; i < text.length; i++) {
		if (text.text[i] < '0' || text.text[i] > '9')
			return false;
		result = result * 10 + (text.text[i] - '0');
	}
	*number = result;
	return true;
}

void merge_write_time(struct text *text, __s64 nanoseconds)
{
	if (nanoseconds < 0)
		text_literal(text, "-");
	text_microseconds(text, nanoseconds < 0 ? -(__u64)nanoseconds : (__u64)nanoseconds);
}

/* ---- reading ---- */

static bool read_id(struct json_part value, __u32 *number)
{
	__u64 read;

	if (!merge_number(value, &read) || read > UINT_MAX)
		return false;
	*number = read;
	return true;
}

static void fault(struct merge_event *event, struct json_part value, const char *reason)
{
	event->fault_at = value.text;
	event->fault = reason;
}

static void read_member(struct merge_event *event, const struct json_part *name, struct json_part value)
{
	bool fine;

	if (json_part_is(name, "ph")) {
		event->phase = json_inside(value).length == 1 ? value.text[1] : 0;
		if (!event->phase)
			fault(event, value, "\"ph\" is no single letter");
	} else if (json_part_is(name, "ts")) {
		event->timed = true;
		if (!merge_time(value, &event->time, &event->fine))
			fault(event, value, "\"ts\" is no number of microseconds, or out of range");
	} else if (json_part_is(name, "dur")) {
		if (!merge_time(value, &event->duration, &fine))
			fault(event, value, "\"dur\" is no number of microseconds, or out of range");
	} else if (json_part_is(name, "pid")) {
		event->pid = value;
		event->process_known = read_id(value, &event->process);
	} else if (json_part_is(name, "tid")) {
		event->tid = value;
		event->thread_known = read_id(value, &event->thread);
	} else if (json_part_is(name, "name")) {
		event->name = value;
	} else if (json_part_is(name, "cat")) {
		event->category = value;
	} else if (json_part_is(name, "args")) {
		event->arguments = value;
	}
}

void merge_event_read(struct json_part value, struct merge_event *event)
{
	const char *at = value.text, *end = at + value.length;
	struct json_part name, member;

	*event = (struct merge_event){ 0 };
	while (!event->fault && json_next_member(&at, end, &name, &member))
		read_member(event, &name, member);
	if (!event->fault && !event->phase && value.length && (event->timed || event->name.length))
		fault(event, value, "an event without \"ph\"");
}

/* ---- writing ---- */

bool merge_synthetic(const struct merge_numbers *numbers, __u32 process)
{
	if (numbers->ours)
		return process >= MERGE_SYNTHETIC;
	for (size_t i = 0; i < numbers->device_count; i++) {
		if (numbers->devices[i] == process)
			return true;
	}
	return false;
}

static __u32 moved(const struct merge_numbers *numbers, __u32 number)
{
	return (number & ~MERGE_SYNTHETIC) + MERGE_SYNTHETIC + (numbers->space << MERGE_SPACE_BITS);
}

/* Words in place of numbers get the input's number behind them. */
static void write_word(struct text *text, struct json_part value, unsigned int space)
{
	struct json_part inside = json_inside(value);

	text_literal(text, "\"");
	text_bytes(text, inside.text, inside.length);
	text_literal(text, " (");
	text_unsigned(text, space + 1);
	text_literal(text, ")\"");
}

static void write_process(struct text *text, const struct merge_event *event, const struct merge_numbers *numbers)
{
	if (numbers->space && event->process_known && merge_synthetic(numbers, event->process))
		text_unsigned(text, moved(numbers, event->process));
	else if (numbers->space && !event->process_known && *event->pid.text == '"')
		write_word(text, event->pid, numbers->space);
	else
		text_bytes(text, event->pid.text, event->pid.length);
}

static void write_thread(struct text *text, const struct merge_event *event, const struct merge_numbers *numbers)
{
	if (numbers->space && numbers->ours && event->thread_known && event->thread >= MERGE_SYNTHETIC)
		text_unsigned(text, moved(numbers, event->thread));
	else
		text_bytes(text, event->tid.text, event->tid.length);
}

/*
 * Another identifier for each (space, identifier). Viewers want 64 bits in hexadecimal, so it is a hash (FNV-1a, then
 * the finish of MurmurHash3): of a million identifiers two are the same with a chance of one in 30 million.
 */
static void write_identifier(struct text *text, struct json_part value, unsigned int space)
{
	struct json_part inside = *value.text == '"' ? json_inside(value) : value;
	__u64 hash = hash_bytes(HASH_BEGIN ^ space, inside.text, inside.length);

	hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdull;
	hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53ull;
	text_literal(text, "\"");
	text_hexadecimal(text, hash ^ hash >> 33);
	text_literal(text, "\"");
}

static void write_identifiers(struct text *text, struct json_part value, unsigned int space)
{
	const char *at = value.text, *end = at + value.length;
	struct json_part name, member;
	bool any = false;

	if (*value.text != '{') {
		write_identifier(text, value, space);
		return;
	}
	text_literal(text, "{"); /* "id2": {"local": ...} or {"global": ...} */
	for (; json_next_member(&at, end, &name, &member); any = true) {
		text_bytes(text, any ? ",\"" : "\"", any ? 2 : 1);
		text_bytes(text, name.text, name.length);
		text_literal(text, "\":");
		write_identifier(text, member, space);
	}
	text_literal(text, "}");
}

static bool is_identifier(const struct json_part *name)
{
	return json_part_is(name, "id") || json_part_is(name, "bind_id") || json_part_is(name, "id2");
}

static void write_value(struct text *text, const struct json_part *name, struct json_part value,
			const struct merge_event *event, const struct merge_numbers *numbers)
{
	/* Events that only name something have no time, though some have a ts of 0. */
	if (json_part_is(name, "ts") && numbers->shift && event->phase != 'M')
		merge_write_time(text, event->time + numbers->shift);
	else if (value.text == event->pid.text)
		write_process(text, event, numbers);
	else if (value.text == event->tid.text)
		write_thread(text, event, numbers);
	else if (numbers->space && is_identifier(name))
		write_identifiers(text, value, numbers->space);
	else
		text_bytes(text, value.text, value.length);
}

void merge_event_write(struct text *text, struct json_part value, const struct merge_event *event,
		       const struct merge_numbers *numbers)
{
	const char *at = value.text, *end = at + value.length;
	struct json_part name, member;
	bool any = false;

	text_literal(text, "{");
	for (; json_next_member(&at, end, &name, &member); any = true) {
		text_bytes(text, any ? ",\"" : "\"", any ? 2 : 1);
		text_bytes(text, name.text, name.length);
		text_literal(text, "\":");
		write_value(text, &name, member, event, numbers);
	}
	text_literal(text, "}");
}

/* ---- who names what ---- */

static const struct {
	const char *name;
	char kind;
	bool thread;
} kinds[] = {
	{ "\"process_name\"", KIND_PROCESS_NAME, false },
	{ "\"process_sort_index\"", 'P', false },
	{ "\"thread_name\"", 't', true },
	{ "\"thread_sort_index\"", 'T', true },
};

/* False: the event is of no kind of which there can be only one. */
static bool make_key(const struct merge_event *event, struct merge_name *key)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!json_part_is(&event->name, kinds[i].name))
			continue;
		if (!event->process_known || (kinds[i].thread && !event->thread_known))
			return false;
		*key = (struct merge_name){
			.process = event->process,
			.thread = kinds[i].thread ? event->thread : 0,
			.kind = kinds[i].kind,
		};
		return true;
	}
	return false;
}

static int compare_keys(const void *a, const void *b)
{
	const struct merge_name *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->kind - y->kind;
}

int merge_names_add(struct merge_names *names, const struct merge_event *event, unsigned int input)
{
	struct json_part name = json_member(event->arguments, "name");
	struct merge_name key;

	if (!make_key(event, &key))
		return 0;
	key.input = input;
	if (key.kind == KIND_PROCESS_NAME && name.length) {
		key.name = strndup(name.text, name.length);
		if (!key.name)
			return -ENOMEM;
	}
	if (vec_push(names->items, names->count, key)) {
		free(key.name);
		return -ENOMEM;
	}
	return 0;
}

/* The winner comes first. */
static int compare_claims(const void *a, const void *b)
{
	const struct merge_name *x = a, *y = b;
	int keys = compare_keys(a, b);

	return keys ?: (x->rank > y->rank) - (x->rank < y->rank);
}

void merge_names_settle(struct merge_names *names)
{
	size_t kept = 0;

	if (!names->count)
		return;
	qsort(names->items, names->count, sizeof(*names->items), compare_claims);
	for (size_t i = 0; i < names->count; i++) {
		if (kept && !compare_keys(&names->items[kept - 1], &names->items[i]))
			free(names->items[i].name);
		else
			names->items[kept++] = names->items[i];
	}
	names->count = kept;
}

enum merge_name_fate merge_names_fate(const struct merge_names *names, const struct merge_event *event,
				      unsigned int input)
{
	struct json_part name = json_member(event->arguments, "name");
	const struct merge_name *holder;
	struct merge_name key;

	if (!names->count || !make_key(event, &key))
		return MERGE_NAME_KEPT;
	holder = bsearch(&key, names->items, names->count, sizeof(key), compare_keys);
	if (!holder || holder->input == input)
		return MERGE_NAME_KEPT;
	if (key.kind != KIND_PROCESS_NAME || !name.length || *name.text != '"' ||
	    (holder->name && json_part_is(&name, holder->name)))
		return MERGE_NAME_DROPPED;
	return MERGE_NAME_LABEL;
}

void merge_names_free(struct merge_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->items[i].name);
	free(names->items);
}
