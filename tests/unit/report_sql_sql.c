/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/sql/sql.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "record_stream.h"

static const struct log silent;
static const struct recording_info info = { .monotonic_time = 50,
					    .realtime = 1700000000000000050ull,
					    .host = "bo\xff" };

struct made {
	char path[64];
	struct model *model;
	struct sql *sql;
	__u64 kinds[32]; /* of events; of calls by what they are: */
	__u64 calls, operators, inferences;
};

static int count_event(void *context, const struct event *event)
{
	struct made *made = context;

	made->kinds[event->kind]++;
	if (event->kind == EVENT_CALL) {
		made->operators += event->call.function->role == XPT_ROLE_OPERATOR;
		made->inferences += call_is_inference(&event->call);
		made->calls += event->call.function->role != XPT_ROLE_OPERATOR && !call_is_inference(&event->call);
	}
	return 0;
}

static void begin(struct made *made)
{
	*made = (struct made){ .path = "/tmp/xputrace-sql-XXXXXX" };
	cr_assert(mkdtemp(made->path));
	strcat(made->path, "/x.db");
	cr_assert_eq(model_create(&silent, &made->model), 0);
	cr_assert_eq(model_add_sink(made->model, (struct event_sink){ count_event, made }), 0);
	cr_assert_eq(sql_open(&silent, made->path, &info, made->model, &made->sql), 0);
	cr_assert_eq(access(made->path, F_OK), -1, "it has its name before it is complete");
}

static void feed(struct made *made, const struct text *records)
{
	for (size_t at = 0; at < records->length;) {
		const struct xpt_record_header *record = (const void *)(records->data + at);

		cr_assert_eq(model_feed(made->model, record), 0);
		at += record->size;
	}
}

static sqlite3 *end(struct made *made)
{
	sqlite3 *database;

	cr_assert_eq(model_flush(made->model), 0);
	cr_assert_eq(sql_close(made->sql, made->model, 0), 0);
	cr_assert_eq(sqlite3_open_v2(made->path, &database, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	return database;
}

static void remove_made(struct made *made, sqlite3 *database)
{
	sqlite3_close(database);
	unlink(made->path);
	*strrchr(made->path, '/') = '\0';
	cr_expect_eq(rmdir(made->path), 0, "something else is left");
	model_free(made->model);
}

/* The first column of all rows, with commas between. */
static void expect_rows(sqlite3 *database, const char *query, const char *expected)
{
	char rows[4096] = "";
	sqlite3_stmt *statement;

	cr_assert_eq(sqlite3_prepare_v2(database, query, -1, &statement, NULL), SQLITE_OK, "%s: %s", query,
		     sqlite3_errmsg(database));
	while (sqlite3_step(statement) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(statement, 0);

		snprintf(rows + strlen(rows), sizeof(rows) - strlen(rows), "%s%s", *rows ? "," : "",
			 text ? text : "NULL");
	}
	sqlite3_finalize(statement);
	cr_expect_str_eq(rows, expected, "%s:\n%s, not\n%s", query, rows, expected);
}

static void expect_count(sqlite3 *database, const char *table, __u64 count)
{
	char query[96], text[32];

	snprintf(query, sizeof(query), "SELECT count(*) FROM %s", table);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)count);
	expect_rows(database, query, text);
}

static void expect_sound(sqlite3 *database)
{
	expect_rows(database, "PRAGMA integrity_check", "ok");
	expect_rows(database, "PRAGMA foreign_key_check", "");
	expect_rows(database, "SELECT schema_version FROM recording", "1");
	expect_rows(database, "PRAGMA user_version", "1");
}

Test(report_sql_sql, a_row_an_event_whatever_comes)
{
	for (unsigned int seed = 1; seed <= 6; seed++) {
		struct stream stream;
		struct made made;
		sqlite3 *database;

		begin(&made);
		stream_init(&stream, seed);
		for (unsigned int round = 0; round < 40; round++)
			stream_round(&stream, 60);
		feed(&made, &stream.bytes);
		database = end(&made);
		expect_sound(database);
		expect_count(database, "calls", made.calls);
		expect_count(database, "operators", made.operators);
		expect_count(database, "inferences", made.inferences + made.kinds[EVENT_INFERENCE]);
		expect_count(database, "regions", made.kinds[EVENT_REGION]);
		expect_count(database, "code_loads", made.kinds[EVENT_CODE]);
		expect_count(database, "jobs", made.kinds[EVENT_JOB]);
		cr_expect(made.calls && made.operators && made.inferences && made.kinds[EVENT_INFERENCE]);
		stream_free(&stream);
		remove_made(&made, database);
	}
}

Test(report_sql_sql, names_are_valid_and_times_since_the_recording_began)
{
	struct text records = {};
	struct made made;
	sqlite3 *database;

	begin(&made);
	stream_describe(&records);
	stream_text(&records, XPT_RECORD_NAMED, 0, 0, 0xa, "\xff]'; DROP TABLE calls; --\xc3\xa9\xed\xa0\x80");
	stream_call(&records, 7, 70, STREAM_EXECUTE, 40, 90, 0, (const __u64[]){ 0xa }, 1);
	feed(&made, &records);
	database = end(&made);
	expect_sound(database);
	expect_rows(database, "SELECT name FROM programs",
		    "\xef\xbf\xbd]'; DROP TABLE calls; --\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	expect_rows(database, "SELECT host FROM recording", "bo\xef\xbf\xbd");
	expect_rows(database, "SELECT start || ' ' || duration FROM inferences", "-10 50");
	expect_rows(database, "SELECT realtime FROM slowest", "1700000000000000040");
	expect_rows(database, "SELECT pid || ' ' || tid FROM slowest", "7 70");
	expect_rows(database, "SELECT complete FROM recording", "0");
	text_free(&records);
	remove_made(&made, database);
}

Test(report_sql_sql, nothing_is_left_of_one_that_is_given_up)
{
	struct text records = {};
	struct made made;

	begin(&made);
	stream_describe(&records);
	stream_call(&records, 7, 70, STREAM_EXECUTE, 100, 190, 0, (const __u64[]){ 0xa }, 1);
	feed(&made, &records);
	cr_expect_eq(sql_close(made.sql, made.model, -EINTR), -EINTR);
	cr_expect_eq(access(made.path, F_OK), -1);
	text_free(&records);
	remove_made(&made, NULL);
}
