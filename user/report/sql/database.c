/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/sql/database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/hashmap.h"
#include "base/file/file.h"

#define COPY_BYTES 65536

/* What SQLite reports has an errno where it comes from the file. */
static void fail(struct sql_database *database, int code)
{
	if (database->error)
		return;
	database->error = (code & 0xff) == SQLITE_NOMEM ? -ENOMEM : (code & 0xff) == SQLITE_FULL ? -ENOSPC : -EIO;
	log_debug(database->log, "%s: %s", database->path, sqlite3_errmsg(database->sqlite));
}

void sql_run(struct sql_database *database, const char *statements)
{
	int code = database->error ? SQLITE_OK : sqlite3_exec(database->sqlite, statements, NULL, NULL, NULL);

	if (code != SQLITE_OK)
		fail(database, code);
}

static sqlite3_stmt *prepare(struct sql_database *database, sqlite3_stmt **statement, const char *text)
{
	int code;

	if (*statement || database->error)
		return *statement;
	code = sqlite3_prepare_v3(database->sqlite, text, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
	if (code != SQLITE_OK)
		fail(database, code);
	return *statement;
}

/* ---- rows ---- */

/* text, or a copy of it in valid UTF-8. */
static const char *valid_text(struct sql_database *database, const char *text, size_t *size)
{
	const size_t length = strlen(text);

	*size = length;
	if (text_valid(text, length) == length)
		return text;
	text_clear(&database->text, COPY_BYTES);
	text_utf8(&database->text, text, length);
	if (database->text.error) {
		fail(database, SQLITE_NOMEM);
		return "";
	}
	*size = database->text.length;
	return database->text.data;
}

static void bind(struct sql_database *database, sqlite3_stmt *statement, int index, const struct sql_value *value)
{
	const char *text;
	size_t size;
	int code = SQLITE_OK;

	switch (value->kind) {
	case SQL_KIND_INTEGER:
		code = sqlite3_bind_int64(statement, index, value->integer);
		break;
	case SQL_KIND_REAL: /* NaN: nothing */
		code = sqlite3_bind_double(statement, index, value->real);
		break;
	case SQL_KIND_TEXT:
		text = valid_text(database, value->text, &size);
		code = sqlite3_bind_text64(statement, index, text, size,
					   text == value->text ? SQLITE_STATIC : SQLITE_TRANSIENT, SQLITE_UTF8);
		break;
	default:
		code = sqlite3_bind_null(statement, index);
		break;
	}
	if (code != SQLITE_OK)
		fail(database, code);
}

/* Of a query the first number of its first row; 0: there is none. */
static __s64 step(struct sql_database *database, sqlite3_stmt *statement, const struct sql_value *values, size_t count)
{
	__s64 result = 0;
	int code;

	for (size_t i = 0; i < count; i++)
		bind(database, statement, (int)i + 1, &values[i]);
	code = database->error ? SQLITE_DONE : sqlite3_step(statement);
	if (code == SQLITE_ROW)
		result = sqlite3_column_int64(statement, 0);
	else if (code != SQLITE_DONE)
		fail(database, code);
	sqlite3_reset(statement);
	return result;
}

__s64 sql_insert(struct sql_database *database, enum sql_table table, const struct sql_value *values, size_t count)
{
	struct text text = {};
	sqlite3_stmt *statement;

	if (!database->inserts[table]) {
		text_literal(&text, "INSERT OR REPLACE INTO ");
		text_string(&text, sql_table_names[table]);
		text_literal(&text, " VALUES (?");
		for (size_t i = 1; i < count; i++)
			text_literal(&text, ",?");
		text_bytes(&text, ")", 2);
		if (text.error)
			fail(database, SQLITE_NOMEM);
		else
			prepare(database, &database->inserts[table], text.data);
		text_free(&text);
	}
	statement = database->inserts[table];
	if (!statement || database->error)
		return 0;
	step(database, statement, values, count);
	return sqlite3_last_insert_rowid(database->sqlite);
}

/* ---- rows that others refer to ---- */

static __u64 hash(__u64 value)
{
	value *= 0x9e3779b97f4a7c15ull;
	return value ^ value >> 29;
}

static struct sql_cached *cached(struct sql_cached *cache, __u64 a, __u64 b)
{
	return &cache[hash(a ^ hash(b)) % SQL_CACHED];
}

struct sql_value sql_string(struct sql_database *database, const char *text)
{
	const struct sql_value value = sql_text(text);
	struct sql_cached *entry;

	if (value.kind == SQL_KIND_NULL)
		return value;
	entry = cached(database->strings, text_hash(text), 0);
	if (entry->id && !strcmp(entry->text, text))
		return sql_number(entry->id);
	free(entry->text);
	entry->id = 0;
	entry->text = strdup(text);
	if (!entry->text)
		fail(database, SQLITE_NOMEM);
	if (prepare(database, &database->find_string, "SELECT id FROM strings WHERE text = ?"))
		entry->id = step(database, database->find_string, &value, 1);
	if (!entry->id)
		entry->id = SQL_INSERT(database, SQL_STRINGS, SQL_NOTHING, value);
	return sql_number_if(entry->id, entry->id);
}

void sql_note_process(struct sql_database *database, __u32 tgid, __s64 id)
{
	*cached(database->processes, tgid, 0) = (struct sql_cached){ .a = tgid, .id = id };
}

struct sql_value sql_process(struct sql_database *database, __u32 tgid)
{
	const struct sql_value value = sql_number(tgid);
	struct sql_cached *entry = cached(database->processes, tgid, 0);
	__s64 id = entry->a == tgid ? entry->id : 0;

	if (!tgid || id)
		return sql_number_if(id, id);
	if (prepare(database, &database->find_process,
		    "SELECT id FROM processes WHERE pid = ? ORDER BY id DESC LIMIT 1"))
		id = step(database, database->find_process, &value, 1);
	if (!id)
		id = SQL_INSERT(database, SQL_PROCESSES, sql_number(-(__s64)tgid), value, SQL_NOTHING, SQL_NOTHING,
				SQL_NOTHING, SQL_NOTHING);
	sql_note_process(database, tgid, id);
	return sql_number(id);
}

struct sql_value sql_thread(struct sql_database *database, __u32 tgid, __u32 tid)
{
	const struct sql_value process = tid ? sql_process(database, tgid) : SQL_NOTHING;
	struct sql_cached *entry = cached(database->threads, process.integer, tid);

	if (process.kind == SQL_KIND_NULL)
		return process;
	if (entry->id && entry->a == (__u64)process.integer && entry->b == tid)
		return sql_number(entry->id);
	*entry = (struct sql_cached){ .a = process.integer, .b = tid };
	if (prepare(database, &database->find_thread, "SELECT id FROM threads WHERE process = ? AND tid = ?"))
		entry->id = step(database, database->find_thread, (struct sql_value[]){ process, sql_number(tid) }, 2);
	if (!entry->id)
		entry->id = SQL_INSERT(database, SQL_THREADS, SQL_NOTHING, process, sql_number(tid), SQL_NOTHING);
	return sql_number_if(entry->id, entry->id);
}

void sql_name_thread(struct sql_database *database, __u32 tgid, __u32 tid, const char *name)
{
	const struct sql_value thread = sql_thread(database, tgid, tid);

	if (thread.kind != SQL_KIND_NULL &&
	    prepare(database, &database->name_thread, "UPDATE threads SET name = ? WHERE id = ?"))
		step(database, database->name_thread, (struct sql_value[]){ sql_text(name), thread }, 2);
}

struct sql_value sql_device(struct sql_database *database, const char *driver, const char *name)
{
	const struct sql_value text[] = { { .kind = SQL_KIND_TEXT, .text = driver },
					  { .kind = SQL_KIND_TEXT, .text = name } };
	__s64 id = 0;

	if (prepare(database, &database->find_device, "SELECT id FROM devices WHERE driver = ? AND name = ?"))
		id = step(database, database->find_device, text, 2);
	id = id ?: SQL_INSERT(database, SQL_DEVICES, SQL_NOTHING, text[0], text[1]);
	return sql_number_if(id, id);
}

/* ---- the file ---- */

static int open_output(struct sql_database *database)
{
	const bool standard = !strcmp(database->path, "-");
	struct stat status;
	int error;

	if (standard) {
		database->file.descriptor = file_standard_output();
		error = database->file.descriptor < 0 ? database->file.descriptor : 0;
	} else {
		error = output_begin(database->path, &database->file);
	}
	if (!error && fstat(database->file.descriptor, &status))
		error = -errno;
	database->copied = !error && (standard || !S_ISREG(status.st_mode));
	if (!error) {
		database->descriptor = database->copied ? open_temporary() :
							  fcntl(database->file.descriptor, F_DUPFD_CLOEXEC, 3);
		error = database->descriptor >= 0 ? 0 : database->copied ? database->descriptor : -errno;
	}
	if (error)
		log_error(database->log, "%s: cannot be written: %s", database->path, output_reason(error));
	return error;
}

static int open_sqlite(struct sql_database *database)
{
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
	char text[256];
	int code;

	if (sqlite3_initialize() != SQLITE_OK || sql_vfs_register(database))
		return -ENOMEM;
	code = sqlite3_open_v2("database", &database->sqlite, flags, database->vfs_name);
	if (code != SQLITE_OK) {
		fail(database, code);
		return database->error;
	}
	snprintf(text, sizeof(text),
		 "PRAGMA page_size=4096; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;"
		 "PRAGMA temp_store=FILE; PRAGMA cache_size=-16384; PRAGMA application_id=%d; PRAGMA user_version=%d; BEGIN;",
		 SQL_APPLICATION, SQL_SCHEMA_VERSION);
	sql_run(database, text);
	sql_run(database, sql_schema_tables);
	return database->error;
}

int sql_database_open(const struct log *log, const char *path, struct sql_database *database)
{
	int error;

	*database = (struct sql_database){ .log = log, .path = path, .descriptor = -1, .file.descriptor = -1 };
	database->strings = calloc(SQL_CACHED, sizeof(*database->strings));
	database->threads = calloc(SQL_CACHED, sizeof(*database->threads));
	database->processes = calloc(SQL_CACHED, sizeof(*database->processes));
	error = database->strings && database->threads && database->processes ? open_output(database) : -ENOMEM;
	error = error ?: open_sqlite(database);
	return error ? sql_database_close(database, error) : 0;
}

static int copy_out(struct sql_database *database)
{
	char bytes[COPY_BYTES];
	off_t offset = 0;
	ssize_t got;
	int error = 0;

	while (!error && (got = pread(database->descriptor, bytes, sizeof(bytes), offset))) {
		if (got < 0 && errno != EINTR)
			error = -errno;
		if (got > 0) {
			error = file_write(database->file.descriptor, bytes, got);
			offset += got;
		}
	}
	return error;
}

static void finalize(struct sql_database *database)
{
	sqlite3_stmt *const others[] = { database->find_string, database->find_thread, database->find_process,
					 database->find_device, database->name_thread };

	for (size_t i = 0; i < SQL_TABLES; i++)
		sqlite3_finalize(database->inserts[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		sqlite3_finalize(others[i]);
}

int sql_database_close(struct sql_database *database, int error)
{
	int ended;

	error = error ?: database->error;
	finalize(database);
	if (database->sqlite && !error) {
		sql_run(database, "COMMIT");
		error = database->error;
	}
	sqlite3_close(database->sqlite);
	if (database->vfs.pAppData)
		sqlite3_vfs_unregister(&database->vfs);
	if (!error && database->copied)
		error = copy_out(database);
	if (database->descriptor >= 0)
		close(database->descriptor);
	ended = database->file.descriptor >= 0 ? output_end(&database->file, error) : 0;
	for (size_t i = 0; database->strings && i < SQL_CACHED; i++)
		free(database->strings[i].text);
	free(database->strings);
	free(database->threads);
	free(database->processes);
	text_free(&database->text);
	return error ?: ended;
}
