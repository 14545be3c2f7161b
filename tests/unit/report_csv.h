/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads CSV as RFC 4180 has it, line by line of its grammar and nothing else: LF or CRLF ends a record. */
#ifndef XPT_TESTS_REPORT_CSV_H
#define XPT_TESTS_REPORT_CSV_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define CSV_FIELDS 256
#define CSV_RECORDS 4096

struct csv_record {
	size_t count;
	char *field[CSV_FIELDS];
};

struct csv {
	size_t count;
	struct csv_record *record;
};

/* A field in quotes: everything up to a quote that is not doubled. */
static inline const char *csv_quoted(const char *at, const char *end, char *to)
{
	for (;;) {
		cr_assert_lt(at, end, "a quote is not closed");
		if (*at == '"' && at + 1 < end && at[1] == '"') {
			*to++ = '"';
			at += 2;
		} else if (*at == '"') {
			*to = '\0';
			return at + 1;
		} else {
			*to++ = *at++;
		}
	}
}

static inline const char *csv_bare(const char *at, const char *end, char *to)
{
	while (at < end && *at != ',' && *at != '\n' && *at != '\r') {
		cr_assert_neq(*at, '"', "a quote in a field without quotes");
		*to++ = *at++;
	}
	*to = '\0';
	return at;
}

static inline struct csv csv_read(const char *bytes, size_t length)
{
	const char *at = bytes, *end = bytes + length;
	struct csv csv = { .record = calloc(CSV_RECORDS, sizeof(*csv.record)) };

	while (at < end) {
		struct csv_record *record = &csv.record[csv.count++];

		cr_assert_lt(csv.count, CSV_RECORDS);
		for (;;) {
			char *field = malloc(end - at + 1);

			at = at < end && *at == '"' ? csv_quoted(at + 1, end, field) : csv_bare(at, end, field);
			cr_assert_lt(record->count, CSV_FIELDS);
			record->field[record->count++] = field;
			if (at == end || *at != ',')
				break;
			at++;
		}
		cr_assert_lt(at, end, "the last record has no line end");
		cr_assert_eq(*at, '\n', "a field in quotes goes on behind them: %.20s", at);
		at++;
	}
	return csv;
}

static inline void csv_free(struct csv *csv)
{
	for (size_t i = 0; i < csv->count; i++) {
		for (size_t j = 0; j < csv->record[i].count; j++)
			free(csv->record[i].field[j]);
	}
	free(csv->record);
}

/* The field of a record under a heading. */
static inline const char *csv_get(const struct csv *csv, size_t heading, size_t record, const char *name)
{
	for (size_t i = 0; i < csv->record[heading].count; i++) {
		if (!strcmp(csv->record[heading].field[i], name)) {
			cr_assert_lt(i, csv->record[record].count);
			return csv->record[record].field[i];
		}
	}
	cr_assert_fail("no column %s", name);
	return NULL;
}

#endif
