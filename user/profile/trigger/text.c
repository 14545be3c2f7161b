/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/trigger/trigger.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define WORD LETTERS DIGITS "._"
#define OPERATORS "<>=!~"
#define BLANKS " \t"

#define QUOTE_BYTES 64	 /* at most so much of the text is read for a reason, */
#define QUOTE_COLUMNS 24 /* and so much shown */

#define LATENCY_EXAMPLE "'latency > 20ms'"
#define WINDOW_EXAMPLE "'p99 > 10ms over 5s'"

static const struct {
	const char *name;
	enum trigger_measure measure;
	const char *shown; /* in a reason; NULL: as name */
} measures[] = { { "latency", TRIGGER_LATENCY, NULL },
		 { "error", TRIGGER_ERROR, NULL },
		 { "mean", TRIGGER_MEAN, NULL },
		 { "max", TRIGGER_MAX, NULL },
		 { "cpu", TRIGGER_CPU, "CPU time" },
		 { "waited", TRIGGER_WAITED, "waiting time" },
		 { "blocked", TRIGGER_BLOCKED, "blocked time" } };
#define MEASURES (sizeof(measures) / sizeof(measures[0]))

static const struct {
	const char *name;
	__u64 factor; /* ns */
} units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 }, { "m", 60000000000 } };
#define UNITS (sizeof(units) / sizeof(units[0]))

/* Of one that is no percentile. */
static const char *measure_name(enum trigger_measure measure)
{
	for (size_t i = 0; i < MEASURES; i++)
		if (measures[i].measure == measure)
			return measures[i].name;
	return "";
}

bool trigger_is_of_one(const struct trigger_condition *condition)
{
	switch (condition->measure) {
	case TRIGGER_LATENCY:
	case TRIGGER_CPU:
	case TRIGGER_WAITED:
	case TRIGGER_BLOCKED:
		return true;
	default:
		return false;
	}
}

struct scanner {
	const char *at;
	char *reason;
	size_t size;
};

void trigger_text_copy(const struct text *text, char *string, size_t size)
{
	const char *data = text->data ?: "";
	size_t length = text_cut(data, text->length, size - 1);

	memcpy(string, data, length);
	string[length] = '\0';
}

/* The reason is length bytes from where, quoted, and the message. */
static int __attribute__((format(printf, 4, 5)))
refuse(struct scanner *scanner, const char *where, size_t length, const char *format, ...)
{
	struct text reason = {};
	char said[200];
	va_list list;

	va_start(list, format);
	vsnprintf(said, sizeof(said), format, list);
	va_end(list);
	text_literal(&reason, "'");
	text_terminal(&reason, where, text_cut(where, length, QUOTE_BYTES), QUOTE_COLUMNS);
	text_literal(&reason, "' ");
	text_string(&reason, said);
	trigger_text_copy(&reason, scanner->reason, scanner->size);
	text_free(&reason);
	return -EINVAL;
}

static int missing(struct scanner *scanner, const char *what, const char *example)
{
	snprintf(scanner->reason, scanner->size, "expected %s at the end, as in %s", what, example);
	return -EINVAL;
}

static void skip_blanks(struct scanner *scanner)
{
	scanner->at += strspn(scanner->at, BLANKS);
}

/* Length of the word or the run of other bytes that begins there. */
static size_t word_length(const char *at)
{
	size_t word = strspn(at, WORD);

	return word ? word : strcspn(at, BLANKS);
}

/* Length of the decimal number that begins there; 0: none does. */
static size_t number_length(const char *at)
{
	size_t whole = strspn(at, DIGITS), behind;

	if (!whole || at[whole] != '.')
		return whole;
	behind = strspn(at + whole + 1, DIGITS);
	return behind ? whole + 1 + behind : 0;
}

enum scaled { SCALED, SCALED_FINER, SCALED_LARGER };

/*
 * The number in these length bytes, times factor, if that is whole and at most most. Zeros at the end of decimals are
 * nothing; a number with more than 15 other decimals is not whole in any unit, and one beyond 10^15 is too large in all.
 */
static enum scaled scale_number(const char *at, size_t length, __u64 factor, __u64 most, __u64 *result)
{
	const unsigned __int128 ceiling = 1000000000000000;
	const char *end = at + length, *point = memchr(at, '.', length);
	unsigned __int128 digits = 0, scale = 1;

	while (point && end[-1] == '0')
		end--;
	for (; at < end; at++) {
		if (at == point)
			continue;
		digits = digits * 10 + (unsigned int)(*at - '0');
		scale *= point && at > point ? 10 : 1;
		if (scale > ceiling)
			return SCALED_FINER;
		if (digits / scale > ceiling)
			return SCALED_LARGER;
	}
	digits *= factor;
	if (digits > scale * most)
		return SCALED_LARGER;
	*result = (__u64)(digits / scale);
	return digits % scale ? SCALED_FINER : SCALED;
}

static bool find_unit(const char *at, size_t length, __u64 *factor)
{
	for (size_t i = 0; i < UNITS; i++) {
		if (length != strlen(units[i].name) || strncmp(at, units[i].name, length) != 0)
			continue;
		*factor = units[i].factor;
		return true;
	}
	return false;
}

/* The limit and the window may both be 1 h at most. */
static int parse_time(struct scanner *scanner, const char *example, __u64 *result)
{
	const char *number, *unit;
	size_t length, whole;
	__u64 factor;

	skip_blanks(scanner);
	number = scanner->at;
	if (!*number)
		return missing(scanner, "a time", example);
	length = number_length(number);
	if (!length)
		return refuse(scanner, number, word_length(number), "is no time, as in %s", example);
	unit = number + length + strspn(number + length, BLANKS);
	whole = (size_t)(unit - number) + strspn(unit, WORD);
	if (!find_unit(unit, strspn(unit, WORD), &factor))
		return refuse(scanner, number, unit > number + length ? length : whole,
			      "needs a unit of ns, us, ms, s or m, as in %s", example);
	scanner->at = number + whole;
	switch (scale_number(number, length, factor, TRIGGER_TIME_MAX, result)) {
	case SCALED_LARGER:
		return refuse(scanner, number, whole, "is more than 1 h, which is the most, as in %s", example);
	case SCALED_FINER:
		return refuse(scanner, number, whole, "is not a whole number of nanoseconds, as in %s", example);
	default:
		return 0;
	}
}

static int parse_percentile(struct scanner *scanner, size_t length, struct trigger_condition *condition)
{
	const char *word = scanner->at;
	__u64 value = 0;

	condition->measure = TRIGGER_PERCENTILE;
	scanner->at += length;
	if (number_length(word + 1) != length - 1 ||
	    scale_number(word + 1, length - 1, TRIGGER_PERCENT, 100 * TRIGGER_PERCENT - 1, &value) != SCALED || !value)
		return refuse(scanner, word, length,
			      "is no percentile: between p0 and p100, with up to three decimals, as in "
			      "'p99.9 > 10ms over 5s'");
	condition->percentile = (unsigned int)value;
	return 0;
}

static int parse_measure(struct scanner *scanner, struct trigger_condition *condition)
{
	size_t length;

	skip_blanks(scanner);
	if (!*scanner->at)
		return missing(scanner, "a condition", LATENCY_EXAMPLE ", " WINDOW_EXAMPLE " or 'error'");
	length = word_length(scanner->at);
	if (scanner->at[0] == 'p' && length > 1 && strchr(DIGITS, scanner->at[1]))
		return parse_percentile(scanner, length, condition);
	for (size_t i = 0; i < MEASURES; i++) {
		if (strlen(measures[i].name) != length || strncmp(scanner->at, measures[i].name, length))
			continue;
		condition->measure = measures[i].measure;
		scanner->at += length;
		return 0;
	}
	return refuse(
		scanner, scanner->at, length,
		"is not known: latency, cpu, waited, blocked, error, mean, max or a percentile, as in " LATENCY_EXAMPLE
		" or " WINDOW_EXAMPLE);
}

static int parse_comparison(struct scanner *scanner, const char *example, struct trigger_condition *condition)
{
	size_t length;

	skip_blanks(scanner);
	if (!*scanner->at)
		return missing(scanner, "> or >= and a time", example);
	length = strspn(scanner->at, OPERATORS);
	condition->at_least = length == 2 && !strncmp(scanner->at, ">=", 2);
	if (!condition->at_least && (length != 1 || *scanner->at != '>'))
		return refuse(scanner, scanner->at, length ? length : word_length(scanner->at),
			      "is no comparison: > or >=, as in %s", example);
	scanner->at += length;
	return 0;
}

static int parse_limit(struct scanner *scanner, const char *example, struct trigger_condition *condition)
{
	const char *begin;
	int error;

	skip_blanks(scanner);
	begin = scanner->at;
	error = parse_time(scanner, example, &condition->limit);
	if (!error && !condition->limit)
		return refuse(scanner, begin, (size_t)(scanner->at - begin),
			      "is less than every inference takes: expected more, as in %s", example);
	return error;
}

static int parse_window(struct scanner *scanner, struct trigger_condition *condition)
{
	const char *begin;
	int error;

	skip_blanks(scanner);
	if (!*scanner->at)
		return missing(scanner, "'over' and a time", WINDOW_EXAMPLE);
	if (word_length(scanner->at) != 4 || strncmp(scanner->at, "over", 4) != 0)
		return refuse(scanner, scanner->at, word_length(scanner->at),
			      "is unexpected: expected 'over' and a time, as in " WINDOW_EXAMPLE);
	scanner->at += 4;
	skip_blanks(scanner);
	begin = scanner->at;
	error = parse_time(scanner, WINDOW_EXAMPLE, &condition->window);
	if (!error && condition->window < TRIGGER_WINDOW_MIN)
		return refuse(scanner, begin, (size_t)(scanner->at - begin),
			      "is too short to look back: from 1 ms to 1 h, as in " WINDOW_EXAMPLE);
	return error;
}

static int parse_end(struct scanner *scanner, const struct trigger_condition *condition)
{
	size_t length;

	skip_blanks(scanner);
	if (!*scanner->at)
		return 0;
	length = word_length(scanner->at);
	if (trigger_is_of_one(condition) && length == 4 && !strncmp(scanner->at, "over", 4))
		return refuse(scanner, scanner->at, strlen(scanner->at),
			      "is too much: %s is of one inference, as in " LATENCY_EXAMPLE " or 'max > 20ms over 5s'",
			      measure_name(condition->measure));
	if (length == 2 && !strncmp(scanner->at, "of", 2))
		return refuse(scanner, scanner->at, strlen(scanner->at),
			      "is too much: programs are not chosen in a trigger, as in " LATENCY_EXAMPLE);
	return refuse(scanner, scanner->at, strlen(scanner->at), "is too much, as in %s",
		      condition->measure == TRIGGER_ERROR ? "'error'" :
		      trigger_is_of_one(condition)	  ? LATENCY_EXAMPLE :
							    WINDOW_EXAMPLE);
}

int trigger_text_parse(const char *text, struct trigger_condition *condition, char *reason, size_t size)
{
	struct scanner scanner = { text, reason, size };
	const char *example;
	int error;

	*condition = (struct trigger_condition){ 0 };
	error = parse_measure(&scanner, condition);
	if (!error && condition->measure != TRIGGER_ERROR) {
		example = trigger_is_of_one(condition) ? LATENCY_EXAMPLE : WINDOW_EXAMPLE;
		error = parse_comparison(&scanner, example, condition);
		error = error ?: parse_limit(&scanner, example, condition);
		if (!trigger_is_of_one(condition))
			error = error ?: parse_window(&scanner, condition);
	}
	return error ?: parse_end(&scanner, condition);
}

size_t trigger_text_parse_time(const char *text, __u64 *nanoseconds)
{
	const size_t length = number_length(text), blanks = strspn(text + length, BLANKS);
	const size_t unit = strspn(text + length + blanks, WORD);
	__u64 factor;

	if (!length || !find_unit(text + length + blanks, unit, &factor) ||
	    scale_number(text, length, factor, TRIGGER_TIME_MAX, nanoseconds) != SCALED)
		return 0;
	return length + blanks + unit;
}

/* value / scale, a power of ten, with the decimals that it needs. */
static void append_decimal(struct text *text, __u64 value, __u64 scale)
{
	__u64 rest = value % scale;

	text_unsigned(text, value / scale);
	if (rest)
		text_literal(text, ".");
	for (; rest; rest %= scale) {
		scale /= 10;
		text_unsigned(text, rest / scale);
	}
}

void trigger_text_measure(struct text *text, const struct trigger_condition *condition)
{
	if (condition->measure == TRIGGER_PERCENTILE) {
		text_literal(text, "p");
		append_decimal(text, condition->percentile, TRIGGER_PERCENT);
		return;
	}
	for (size_t i = 0; i < MEASURES; i++)
		if (measures[i].measure == condition->measure)
			text_string(text, measures[i].shown ?: measures[i].name);
}

void trigger_text_time(struct text *text, __u64 nanoseconds)
{
	size_t unit = 0;

	while (unit < 3 && nanoseconds >= units[unit + 1].factor)
		unit++;
	append_decimal(text, nanoseconds, units[unit].factor);
	text_literal(text, " ");
	text_string(text, units[unit].name);
}
