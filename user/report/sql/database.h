/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The SQLite database while it is written: one transaction without a journal, into a file that gets its name when it is complete.
 * SQLite opens no file: it gets the output's descriptor, and temporary files without a name. See SCHEMA.md.
 */
#ifndef XPT_REPORT_SQL_DATABASE_H
#define XPT_REPORT_SQL_DATABASE_H

#include <linux/types.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/core/log.h"
#include "base/core/text.h"
#include "base/file/output.h"

#define SQL_SCHEMA_VERSION 1
#define SQL_APPLICATION 0x58505444 /* "XPTD", of the file's header */
#define SQL_CACHED 4096		   /* strings and threads whose rows are found without a query */

enum sql_table {
	SQL_RECORDING,
	SQL_STRINGS,
	SQL_FUNCTIONS,
	SQL_PROCESSES,
	SQL_THREADS,
	SQL_PROGRAMS,
	SQL_INFERENCES,
	SQL_INFERENCE_COUNTERS,
	SQL_CALLS,
	SQL_OPERATOR_NAMES,
	SQL_OPERATORS,
	SQL_REGIONS,
	SQL_DEVICES,
	SQL_QUEUES,
	SQL_JOBS,
	SQL_DEVICE_EVENTS,
	SQL_IOCTLS,
	SQL_COUNTERS,
	SQL_READINGS,
	SQL_LEVELS,
	SQL_LOSSES,
	SQL_LOSS_TIMES,
	SQL_MODULES,
	SQL_FRAMES,
	SQL_STACKS,
	SQL_STACK_FRAMES,
	SQL_SAMPLES,
	SQL_OFF_CPU,
	SQL_CODE_OBJECTS,
	SQL_CODE_LOADS,
	SQL_BUDGET_CHANGES,
	SQL_WAITS,
	SQL_TASKS,
	SQL_TABLES,
};

extern const char *const sql_table_names[SQL_TABLES];
extern const char sql_schema_tables[], sql_schema_indices[], sql_schema_views[];

/* ---- values ---- */

enum sql_kind {
	SQL_KIND_NULL = 0,
	SQL_KIND_INTEGER = 1,
	SQL_KIND_REAL = 2,
	SQL_KIND_TEXT = 3,
};

struct sql_value {
	enum sql_kind kind;
	union {
		__s64 integer;
		double real;
		const char *text;
	};
};

#define SQL_NOTHING ((struct sql_value){ .kind = SQL_KIND_NULL })

static inline struct sql_value sql_number(__s64 value)
{
	return (struct sql_value){ .kind = SQL_KIND_INTEGER, .integer = value };
}

static inline struct sql_value sql_number_if(bool known, __s64 value)
{
	return known ? sql_number(value) : SQL_NOTHING;
}

static inline struct sql_value sql_known(__u64 value) /* 0: not known */
{
	return sql_number_if(value != 0, (__s64)value);
}

static inline struct sql_value sql_real(double value)
{
	return (struct sql_value){ .kind = SQL_KIND_REAL, .real = value };
}

/* Any bytes: those that are no UTF-8 become U+FFFD. NULL and "": nothing. */
static inline struct sql_value sql_text(const char *text)
{
	return text && *text ? (struct sql_value){ .kind = SQL_KIND_TEXT, .text = text } : SQL_NOTHING;
}

/* ---- the database ---- */

/* Rows that were looked up last: by two numbers, or by text. */
struct sql_cached {
	__u64 a, b;
	char *text;
	__s64 id; /* 0: unused */
};

struct sql_database {
	const struct log *log;
	const char *path;
	struct output_file file; /* what it becomes */
	int descriptor;		 /* of the database */
	bool copied;		 /* file is no regular file: it gets a copy at the end */
	int error;		 /* the first one; nothing is written after it */
	sqlite3_vfs vfs;
	char vfs_name[48];
	sqlite3 *sqlite;
	sqlite3_stmt *inserts[SQL_TABLES];
	sqlite3_stmt *find_string, *find_thread, *find_process, *find_device, *name_thread;
	struct text text; /* what is bound in place of invalid UTF-8 */
	struct sql_cached *strings, *threads, *processes;
};

/* path "-": standard output. It must outlive the database. Errors of open(), reported; -ENOMEM. */
int sql_database_open(const struct log *log, const char *path, struct sql_database *database);
/* Ends the transaction and gives the file its name. error: why it is given up instead. 0 or the first error. */
int sql_database_close(struct sql_database *database, int error);

/* Runs statements without a result. */
void sql_run(struct sql_database *database, const char *statements);
/* As many values as the table has columns; a row with the same id is replaced. Its id. */
__s64 sql_insert(struct sql_database *database, enum sql_table table, const struct sql_value *values, size_t count);
#define SQL_INSERT(database, table, ...)                                       \
	sql_insert(database, table, (const struct sql_value[]){ __VA_ARGS__ }, \
		   sizeof((const struct sql_value[]){ __VA_ARGS__ }) / sizeof(struct sql_value))

/* The row of the text in strings, made when there is none. NULL and "": nothing. */
struct sql_value sql_string(struct sql_database *database, const char *text);
/* The row of a process that was noted last for this number; one of which nothing else is known, when there is none. tgid 0: nothing. */
struct sql_value sql_process(struct sql_database *database, __u32 tgid);
void sql_note_process(struct sql_database *database, __u32 tgid, __s64 id);
/* The row of a thread, made when there is none. tid 0: nothing. */
struct sql_value sql_thread(struct sql_database *database, __u32 tgid, __u32 tid);
void sql_name_thread(struct sql_database *database, __u32 tgid, __u32 tid, const char *name);
struct sql_value sql_device(struct sql_database *database, const char *driver, const char *name);

/* The file as SQLite sees it. */
int sql_vfs_register(struct sql_database *database);

#endif
