/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/event_terms.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_MAX 16 /* values that an event leaves open */

struct term {
	const char *name;
	size_t name_length;
	const char *value; /* NULL: none */
	size_t value_length;
};

struct encoding {
	const struct pmu *pmu;
	struct event_code *code;
	struct term open[OPEN_MAX]; /* of the event, and not given yet */
	size_t open_count;
	char *reason;
};

static int fail(struct encoding *encoding, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int fail(struct encoding *encoding, int error, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(encoding->reason, EVENT_TERMS_REASON_MAX, format, list);
	va_end(list);
	return error;
}

static bool next_term(const char **text, const char *end, struct term *term)
{
	const char *comma, *equals;

	if (*text >= end)
		return false;
	comma = memchr(*text, ',', (size_t)(end - *text));
	comma = comma ? comma : end;
	equals = memchr(*text, '=', (size_t)(comma - *text));
	*term = (struct term){ .name = *text, .name_length = (size_t)((equals ? equals : comma) - *text) };
	if (equals) {
		term->value = equals + 1;
		term->value_length = (size_t)(comma - term->value);
	}
	*text = comma + 1;
	return true;
}

/* As for perf, 010 is ten. */
static bool parse_value(const struct term *term, __u64 *value)
{
	bool hexadecimal = term->value_length > 2 && !memcmp(term->value, "0x", 2);
	const char *allowed = hexadecimal ? "0123456789abcdefABCDEF" : "0123456789";
	char text[32], *digits = hexadecimal ? text + 2 : text;

	if (!term->value_length || term->value_length >= sizeof(text))
		return false;
	memcpy(text, term->value, term->value_length);
	text[term->value_length] = '\0';
	errno = 0;
	*value = strtoull(digits, NULL, hexadecimal ? 16 : 10);
	return digits + strspn(digits, allowed) == text + term->value_length && !errno;
}

/* -1: none of them. */
static int config_number(const struct term *term)
{
	if (term->name_length == 6 && !memcmp(term->name, "config", 6))
		return 0;
	if (term->name_length == 7 && !memcmp(term->name, "config", 6) && term->name[6] >= '1' &&
	    term->name[6] < '0' + PMU_CONFIGS)
		return term->name[6] - '0';
	return -1;
}

/* Puts the lowest bit of the value into the lowest of bits, and so on; returns what is left over of the value. */
static __u64 spread(__u64 value, __u64 bits, __u64 *result)
{
	__u64 lowest;

	for (*result = 0; bits; bits &= bits - 1) {
		lowest = bits & -bits;
		if (value & 1)
			*result |= lowest;
		value >>= 1;
	}
	return value;
}

static void forget_open(struct encoding *encoding, const struct term *term)
{
	for (size_t i = 0; i < encoding->open_count; i++)
		if (encoding->open[i].name_length == term->name_length &&
		    !memcmp(encoding->open[i].name, term->name, term->name_length))
			encoding->open[i--] = encoding->open[--encoding->open_count];
}

static int apply(struct encoding *encoding, const struct term *term)
{
	const struct pmu_format *format = pmu_format(encoding->pmu, term->name, term->name_length);
	int config = format ? (int)format->config : config_number(term);
	__u64 bits = format ? format->bits : ~0ull, value = 1, placed;

	if (config < 0)
		return fail(encoding, -ENOENT, "%s has no event and no term %.*s", encoding->pmu->name,
			    (int)term->name_length, term->name);
	if (term->value && !parse_value(term, &value))
		return fail(encoding, -EINVAL, "%.*s: expected a number, got '%.*s'", (int)term->name_length,
			    term->name, (int)term->value_length, term->value);
	if (spread(value, bits, &placed))
		return fail(encoding, -EINVAL, "%.*s has %d bits: it is at most %" PRIu64, (int)term->name_length,
			    term->name, __builtin_popcountll(bits),
			    (uint64_t)((1ull << __builtin_popcountll(bits)) - 1));
	encoding->code->config[config] = (encoding->code->config[config] & ~bits) | placed;
	forget_open(encoding, term);
	return 0;
}

/* The event's terms in sysfs. */
static int apply_event(struct encoding *encoding, const struct pmu_event *event)
{
	const char *text = event->terms, *end = text + strlen(text);
	struct term term;
	int error = 0;

	if (encoding->code->event)
		return fail(encoding, -EINVAL, "%s and %s: expected one event", encoding->code->event->name,
			    event->name);
	encoding->code->event = event;
	while (!error && next_term(&text, end, &term)) {
		if (term.value_length != 1 || *term.value != '?')
			error = apply(encoding, &term);
		else if (encoding->open_count < OPEN_MAX)
			encoding->open[encoding->open_count++] = term;
	}
	return error;
}

int event_terms_encode(const struct pmu *pmu, const char *terms, size_t length, struct event_code *code, char *reason)
{
	struct encoding encoding = { .pmu = pmu, .code = code, .reason = reason };
	const char *text = terms, *end = terms + length;
	const struct pmu_event *event;
	struct term term;
	int error = 0;

	*code = (struct event_code){ 0 };
	/* The event first, wherever it stands: the other terms override its terms. */
	while (!error && next_term(&text, end, &term)) {
		event = term.value ? NULL : pmu_event(pmu, term.name, term.name_length);
		if (event)
			error = apply_event(&encoding, event);
	}
	for (text = terms; !error && next_term(&text, end, &term);)
		if (term.value || !pmu_event(pmu, term.name, term.name_length))
			error = apply(&encoding, &term);
	if (!error && encoding.open_count)
		error = fail(&encoding, -EINVAL, "%s wants a number for %.*s: %s/%s,%.*s=N/", code->event->name,
			     (int)encoding.open[0].name_length, encoding.open[0].name, pmu->name, code->event->name,
			     (int)encoding.open[0].name_length, encoding.open[0].name);
	if (!error && !length)
		error = fail(&encoding, -EINVAL, "expected an event between the slashes");
	return error;
}
