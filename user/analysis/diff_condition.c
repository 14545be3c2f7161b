/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of a condition: ROW > +LIMIT [of PROGRAM]. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diff_private.h"
#include "profile/trigger/trigger.h"

#define BLANKS " \t"
#define QUOTE_COLUMNS 24 /* of the text, that a reason shows */
#define PERCENT_MAX 1e6
#define EXAMPLE "'p99 > +10%' or 'throughput < -5% of resnet50'"

struct scanner {
	const char *at;
	char *reason;
	size_t size;
};

/* The reason is what is there, quoted, and the message. */
static int refuse(const struct scanner *scanner, const char *message)
{
	struct text reason = {};
	const size_t length = strlen(scanner->at);

	if (length) {
		text_literal(&reason, "'");
		text_terminal(&reason, scanner->at, text_cut(scanner->at, length, 4 * QUOTE_COLUMNS), QUOTE_COLUMNS);
		text_literal(&reason, "': ");
	}
	text_string(&reason, message);
	text_literal(&reason, ", as in " EXAMPLE);
	if (scanner->size)
		trigger_text_copy(&reason, scanner->reason, scanner->size);
	text_free(&reason);
	return -EINVAL;
}

static void skip_blanks(struct scanner *scanner)
{
	scanner->at += strspn(scanner->at, BLANKS);
}

/* A name in double quotes, or up to one of these. */
static int parse_name(struct scanner *scanner, const char *ends, char *name, size_t size)
{
	const bool quoted = *scanner->at == '"';
	const char *begin = scanner->at + quoted;
	const size_t length = strcspn(begin, quoted ? "\"" : ends);

	if (!length || (quoted && !begin[length]))
		return refuse(scanner, "expected the name of a row");
	if (length >= size)
		return refuse(scanner, "the name is too long");
	memcpy(name, begin, length);
	name[length] = '\0';
	scanner->at = begin + length + quoted;
	return 0;
}

static int parse_comparison(struct scanner *scanner, enum diff_compare *compare)
{
	static const char *const texts[] = { ">=", "<=", ">", "<" };
	static const enum diff_compare values[] = { DIFF_AT_LEAST, DIFF_AT_MOST, DIFF_GREATER, DIFF_LESS };
	const size_t length = strspn(scanner->at, "<>=!~");

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (strlen(texts[i]) != length || strncmp(scanner->at, texts[i], length) != 0)
			continue;
		*compare = values[i];
		scanner->at += length;
		return 0;
	}
	return refuse(scanner, "expected >, >=, < or <=");
}

static int parse_limit(struct scanner *scanner, struct diff_condition *condition)
{
	const bool falls = condition->compare == DIFF_LESS || condition->compare == DIFF_AT_MOST;
	const char sign = *scanner->at == '+' || *scanner->at == '-' ? *scanner->at : '\0';
	const char *number = scanner->at + (sign != '\0');
	__u64 nanoseconds;
	size_t length = trigger_text_parse_time(number, &nanoseconds);
	char *end = (char *)number;

	if (length) {
		condition->time = true;
		condition->limit = nanoseconds;
	} else {
		condition->limit = isdigit((unsigned char)*number) ? strtod(number, &end) : NAN;
		if (isnan(condition->limit) || condition->limit > PERCENT_MAX)
			return refuse(scanner, "expected a change in percent, or a time with its unit");
		condition->percent = *end == '%';
		length = end - number + condition->percent;
	}
	if ((sign == '-') != falls)
		return refuse(scanner, falls ? "what falls is compared with a negative change" :
					       "what grows is compared with a positive change");
	condition->limit = falls ? -condition->limit : condition->limit;
	scanner->at = number + length;
	return 0;
}

int diff_condition_parse(const char *text, struct diff_condition *condition, char *reason, size_t size)
{
	struct scanner scanner = { text, reason, size };
	int error;

	*condition = (struct diff_condition){ 0 };
	skip_blanks(&scanner);
	error = parse_name(&scanner, BLANKS "<>=!~", condition->row, sizeof(condition->row));
	skip_blanks(&scanner);
	error = error ?: parse_comparison(&scanner, &condition->compare);
	skip_blanks(&scanner);
	error = error ?: parse_limit(&scanner, condition);
	skip_blanks(&scanner);
	if (error || !*scanner.at)
		return error;
	if (strncmp(scanner.at, "of", 2) != 0 || !strspn(scanner.at + 2, BLANKS))
		return refuse(&scanner, "expected 'of' and a program");
	scanner.at += 2;
	skip_blanks(&scanner);
	error = parse_name(&scanner, "", condition->program, sizeof(condition->program));
	skip_blanks(&scanner);
	return error ?: *scanner.at ? refuse(&scanner, "unexpected behind the program") : 0;
}
