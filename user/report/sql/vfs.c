/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What SQLite uses in place of a file system: the descriptor of the database, and files without a name for what it sorts. The command has
 * given up its rights by then, and no other process reads the file before it is complete: there are no locks and no journal.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "report/sql/database.h"

struct opened {
	sqlite3_file base;
	struct sql_database *database;
	int descriptor;
	bool temporary; /* it is closed with the file */
};

static int failed(struct opened *file, int code)
{
	file->database->error = file->database->error ?: -errno;
	return errno == ENOSPC || errno == EDQUOT ? SQLITE_FULL : code;
}

static int file_close(sqlite3_file *base)
{
	struct opened *file = (struct opened *)base;

	if (file->temporary)
		close(file->descriptor);
	return SQLITE_OK;
}

static int file_read(sqlite3_file *base, void *bytes, int length, sqlite3_int64 offset)
{
	struct opened *file = (struct opened *)base;
	int done = 0;

	while (done < length) {
		ssize_t got = pread(file->descriptor, (char *)bytes + done, length - done, offset + done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return failed(file, SQLITE_IOERR_READ);
		if (!got) {
			memset((char *)bytes + done, 0, length - done);
			return SQLITE_IOERR_SHORT_READ;
		}
		done += (int)got;
	}
	return SQLITE_OK;
}

static int file_put(sqlite3_file *base, const void *bytes, int length, sqlite3_int64 offset)
{
	struct opened *file = (struct opened *)base;
	int done = 0;

	while (done < length) {
		ssize_t put = pwrite(file->descriptor, (const char *)bytes + done, length - done, offset + done);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return failed(file, SQLITE_IOERR_WRITE);
		done += (int)put;
	}
	return SQLITE_OK;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
	struct opened *file = (struct opened *)base;

	return ftruncate(file->descriptor, size) ? failed(file, SQLITE_IOERR_TRUNCATE) : SQLITE_OK;
}

/* The whole file is brought to the disk before it gets its name. */
static int file_sync(sqlite3_file *base, int flags)
{
	(void)base;
	(void)flags;
	return SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *size)
{
	struct opened *file = (struct opened *)base;
	struct stat status;

	if (fstat(file->descriptor, &status))
		return failed(file, SQLITE_IOERR_FSTAT);
	*size = status.st_size;
	return SQLITE_OK;
}

static int file_lock(sqlite3_file *base, int level)
{
	(void)base;
	(void)level;
	return SQLITE_OK;
}

static int file_reserved(sqlite3_file *base, int *reserved)
{
	(void)base;
	*reserved = 0;
	return SQLITE_OK;
}

static int file_control(sqlite3_file *base, int operation, void *argument)
{
	(void)base;
	(void)operation;
	(void)argument;
	return SQLITE_NOTFOUND;
}

static int file_traits(sqlite3_file *base)
{
	(void)base;
	return 0;
}

static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_put,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = file_lock,
	.xUnlock = file_lock,
	.xCheckReservedLock = file_reserved,
	.xFileControl = file_control,
	.xSectorSize = file_traits,
	.xDeviceCharacteristics = file_traits,
};

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *out)
{
	struct opened *file = (struct opened *)base;
	struct sql_database *database = vfs->pAppData;
	const bool temporary = !(flags & SQLITE_OPEN_MAIN_DB);
	const int descriptor = temporary ? open_temporary() : database->descriptor;

	(void)name;
	*file = (struct opened){ .database = database, .descriptor = descriptor, .temporary = temporary };
	if (descriptor < 0) {
		errno = -descriptor;
		return failed(file, SQLITE_CANTOPEN);
	}
	file->base.pMethods = &methods;
	if (out)
		*out = flags;
	return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs;
	(void)name;
	(void)sync;
	return SQLITE_OK;
}

/* There is neither a journal nor a log of it. */
static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *there)
{
	(void)vfs;
	(void)name;
	(void)flags;
	*there = 0;
	return SQLITE_OK;
}

static int vfs_name(sqlite3_vfs *vfs, const char *name, int size, char *full)
{
	(void)vfs;
	snprintf(full, size, "%s", name);
	return SQLITE_OK;
}

static int vfs_random(sqlite3_vfs *vfs, int size, char *bytes)
{
	ssize_t got = getrandom(bytes, size, GRND_NONBLOCK);

	(void)vfs;
	return got < 0 ? 0 : (int)got;
}

static int vfs_sleep(sqlite3_vfs *vfs, int microseconds)
{
	(void)vfs;
	return microseconds;
}

static int vfs_time(sqlite3_vfs *vfs, double *day)
{
	(void)vfs;
	*day = 2440587.5 + time(NULL) / 86400.0;
	return SQLITE_OK;
}

int sql_vfs_register(struct sql_database *database)
{
	snprintf(database->vfs_name, sizeof(database->vfs_name), "xputrace-%p", (void *)database);
	database->vfs = (sqlite3_vfs){
		.iVersion = 1,
		.szOsFile = sizeof(struct opened),
		.mxPathname = 64,
		.zName = database->vfs_name,
		.pAppData = database,
		.xOpen = vfs_open,
		.xDelete = vfs_delete,
		.xAccess = vfs_access,
		.xFullPathname = vfs_name,
		.xRandomness = vfs_random,
		.xSleep = vfs_sleep,
		.xCurrentTime = vfs_time,
	};
	return sqlite3_vfs_register(&database->vfs, 0) == SQLITE_OK ? 0 : -ENOMEM;
}
