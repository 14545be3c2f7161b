/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/sql/sql.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#include "report_records.h"

Test(report_sql_jobs, are_joined_with_their_inference)
{
	static const struct recording_info info = { .monotonic_time = 1000 };
	static const struct log silent;
	char path[] = "/tmp/xputrace-sql-XXXXXX.db";
	struct model *model;
	struct sql *sql;
	sqlite3 *database;
	sqlite3_stmt *statement;

	close(mkstemps(path, 3));
	cr_assert_eq(model_create(NULL, &model), 0);
	cr_assert_eq(sql_open(&silent, path, &info, model, &sql), 0);
	feed_descriptions(model);
	feed_driver(model);
	feed_event(model, EVENT_QUEUED, 1240, 2000, 5, "ring0");
	feed_event(model, EVENT_RUNS, 1240, 2300, 5, NULL);
	feed_event(model, EVENT_DONE, 1240, 2900, 5, NULL);
	feed_event(model, EVENT_QUEUED, 0, 2950, 6, "ring0");
	feed_call(model, SPEC_EXECUTE, 1240, 1900, 3000, 0xa, 0);
	feed_pass(model, 5000);
	feed_pass(model, 6000);
	cr_assert_eq(model_flush(model), 0);
	cr_assert_eq(sql_close(sql, model, 0), 0);
	cr_assert_eq(sqlite3_open(path, &database), SQLITE_OK);
	cr_assert_eq(
		sqlite3_prepare_v2(
			database,
			"SELECT i.jobs, i.queue_time, i.device_time, j.queued, j.runs, j.done, j.tid, d.name || q.engine,"
			" (SELECT count(*) FROM jobs), i.start FROM inferences i JOIN jobs j ON j.inference = i.id"
			" JOIN queues q ON q.id = j.queue JOIN devices d ON d.id = q.device",
			-1, &statement, NULL),
		SQLITE_OK);
	cr_assert_eq(sqlite3_step(statement), SQLITE_ROW);
	static const sqlite3_int64 expected[] = { 1, 300, 600, 1000, 1300, 1900, 1240 };

	for (int i = 0; i < 7; i++)
		cr_expect_eq(sqlite3_column_int64(statement, i), expected[i], "column %d: %lld", i,
			     (long long)sqlite3_column_int64(statement, i));
	cr_expect_str_eq((const char *)sqlite3_column_text(statement, 7), "0000:03:00.0ring0");
	cr_expect_eq(sqlite3_column_int64(statement, 8), 2);
	cr_expect_eq(sqlite3_column_int64(statement, 9), 900);
	cr_expect_eq(sqlite3_step(statement), SQLITE_DONE);
	sqlite3_finalize(statement);
	sqlite3_close(database);
	unlink(path);
	model_free(model);
}
