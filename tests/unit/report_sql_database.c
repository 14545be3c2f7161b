/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/sql/database.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct log silent;

static void make_path(char path[64])
{
	strcpy(path, "/tmp/xputrace-database-XXXXXX");
	cr_assert(mkdtemp(path));
	strcat(path, "/x.db");
}

static void remove_path(char *path)
{
	unlink(path);
	*strrchr(path, '/') = '\0';
	cr_expect_eq(rmdir(path), 0, "something else is left");
}

Test(report_sql_database, rows_that_others_refer_to_are_made_once)
{
	struct sql_database database;
	char path[64], name[32];
	__s64 first[3 * SQL_CACHED];

	make_path(path);
	cr_assert_eq(sql_database_open(&silent, path, &database), 0);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < 3 * SQL_CACHED; i++) {
			snprintf(name, sizeof(name), "name %zu", i);
			__s64 id = sql_string(&database, name).integer;

			if (!round)
				first[i] = id;
			cr_assert_eq(id, first[i]);
		}
	}
	cr_expect_eq(sql_string(&database, "").kind, SQL_KIND_NULL);
	cr_expect_eq(sql_thread(&database, 5, 6).integer, sql_thread(&database, 5, 6).integer);
	cr_expect_neq(sql_thread(&database, 5, 6).integer, sql_thread(&database, 7, 6).integer);
	cr_expect_eq(sql_thread(&database, 5, 0).kind, SQL_KIND_NULL);
	cr_expect_eq(sql_process(&database, 5).integer, -5);
	sql_note_process(&database, 5, 9);
	cr_expect_eq(sql_process(&database, 5).integer, 9);
	cr_expect_eq(sql_device(&database, "xe", "").integer, sql_device(&database, "xe", "").integer);
	cr_expect_eq(sql_database_close(&database, 0), 0);
	remove_path(path);
}

Test(report_sql_database, what_cannot_be_written_is_an_error_and_no_file)
{
	struct rlimit limit = { 65536, 65536 };
	struct sql_database database;
	char path[64], name[512];

	signal(SIGXFSZ, SIG_IGN);
	cr_expect_eq(sql_database_open(&silent, "/nowhere/x.db", &database), -ENOENT);
	make_path(path);
	cr_assert_eq(sql_database_open(&silent, path, &database), 0);
	setrlimit(RLIMIT_FSIZE, &limit);
	memset(name, 'x', sizeof(name));
	for (int i = 0; i < 100000 && !database.error; i++) {
		snprintf(name + 480, 32, "%d", i);
		sql_string(&database, name);
	}
	cr_expect_eq(database.error, -EFBIG);
	cr_expect_eq(sql_database_close(&database, 0), -EFBIG);
	cr_expect_eq(access(path, F_OK), -1);
	remove_path(path);
}

Test(report_sql_database, a_device_gets_the_whole_file_at_the_end)
{
	struct sql_database database;
	char path[64], bytes[17] = "";
	int file;

	cr_assert_eq(sql_database_open(&silent, "/dev/full", &database), 0);
	cr_expect_eq(sql_database_close(&database, 0), -ENOSPC);
	make_path(path);
	cr_assert_eq(sql_database_open(&silent, path, &database), 0);
	cr_expect_eq(sql_database_close(&database, 0), 0);
	file = open(path, O_RDONLY);
	cr_expect_eq(read(file, bytes, 16), 16);
	cr_expect_str_eq(bytes, "SQLite format 3");
	close(file);
	remove_path(path);
}
