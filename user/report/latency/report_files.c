/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports on their way into files: which file, what is refused, what is logged when writing fails. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/log.h"
#include "base/core/options.h"
#include "base/file/file.h"
#include "base/file/gzip.h"
#include "base/file/output.h"
#include "report/latency/report_document.h"

#define ROTATE_LEAST 4096
#define KEEP_MOST 1000000

struct xpt_report_files {
	struct log log;
	enum xpt_report_format format;
	bool single;
	unsigned int keep;
	char *path;
	bool output;	/* standard output */
	int error;	/* the first one */
	int error_now;	/* of the last report; 0: it was written */
	bool recovered; /* a report was written after one was not */
	__u64 left_out; /* reports that could not be written */
	/* Reports follow one another; else each has a file of its own. */
	bool grows;
	struct report_growing growing;
	/* A file each: */
	__u64 number; /* of the report, from 1; also of those that gave no file */
	__u64 *kept;  /* numbers of the last keep files, in turn */
	__u64 files;  /* written */
	__u64 bytes;  /* in them */
	char *last;   /* the last one; NULL: none yet */
};

/* ---- options ---- */

/* What to do instead; NULL: nothing is wrong. */
static const char *find_fault(const struct xpt_report_files_options *options)
{
	bool output = options->path && !strcmp(options->path, "-");

	if (!options->path || !options->path[0])
		return "a path is needed; \"-\" is standard output";
	if ((unsigned int)options->format > XPT_FORMAT_PERFETTO)
		return "no such format";
	if (options->append && options->single)
		return "append and single exclude each other: choose whether a report follows the last one or replaces it";
	if (options->append && gzip_is_name(options->path))
		return "nothing can be appended to a compressed file: leave append or .gz out";
	if (options->rotate_bytes && output)
		return "standard output can't be rotated: give a file, or leave rotation out";
	if (options->rotate_bytes && !options->append)
		return "rotation needs append: without it each report has a file of its own anyway";
	if (options->rotate_bytes && options->rotate_bytes < ROTATE_LEAST)
		return "rotation needs at least 4096 bytes a file";
	if (options->keep && (options->single || output))
		return "there is only one file, so there are no old ones to keep: leave keep out";
	if (options->keep && options->append && !options->rotate_bytes)
		return "keep needs rotation when reports are appended: without it there is only one file";
	if (options->keep > KEEP_MOST)
		return "at most 1000000 files can be kept; 0 keeps all";
	return NULL;
}

/* ---- a file each ---- */

/*
 * What is there is whole until the new one is. What was there before becomes NAME.old; one's own report of before is replaced.
 */
static int write_file(struct xpt_report_files *files, const char *name, const struct xpt_profile_report *report)
{
	struct output_file file;
	off_t length = 0;
	int error = output_temporary(name, &file);

	if (error)
		return error;
	file.over = files->single && files->files;
	error = report_document_write(report, files->format, gzip_is_name(name), file.descriptor);
	if (!error)
		length = lseek(file.descriptor, 0, SEEK_CUR);
	error = output_end(&file, error);
	if (!error)
		files->bytes += length;
	return error;
}

static void drop_oldest(struct xpt_report_files *files)
{
	__u64 *place;
	char *name;

	if (!files->kept)
		return;
	place = &files->kept[files->files % files->keep];
	if (files->files >= files->keep) {
		name = report_name_numbered(files->path, *place);
		if (name)
			unlink(name);
		free(name);
	}
	*place = files->number;
}

static int write_own_file(struct xpt_report_files *files, const struct xpt_profile_report *report)
{
	char *name;
	int error;

	/* Counted before anything can go wrong: a number that is missing is a report that is missing. */
	files->number++;
	if (report_document_skips(report, files->format))
		return 0;
	name = files->single ? strdup(files->path) : report_name_numbered(files->path, files->number);
	if (!name)
		return -ENOMEM;
	error = write_file(files, name, report);
	if (error) {
		free(name);
		return error;
	}
	free(files->last);
	files->last = name;
	if (!files->single)
		drop_oldest(files);
	files->files++;
	return 0;
}

/* ---- opening ---- */

/*
 * A symbolic link means what it points to: the file is replaced or rotated, not the link. The path is that of the directory which was
 * reached, by links that were checked.
 */
static int follow_link(struct xpt_report_files *files)
{
	char name[NAME_MAX + 1], link[32], target[PATH_MAX];
	struct stat status;
	ssize_t length;
	int directory, error = 0;

	if (lstat(files->path, &status))
		return -errno;
	if (!S_ISLNK(status.st_mode))
		return 0;
	directory = output_directory(files->path, name);
	if (directory < 0)
		return directory;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", directory);
	length = readlink(link, target, sizeof(target));
	if (length < 0)
		error = -errno;
	else if ((size_t)length + 1 + strlen(name) >= sizeof(target))
		error = -ENAMETOOLONG;
	close(directory);
	if (error)
		return error;
	sprintf(target + length, "/%s", name);
	free(files->path);
	files->path = strdup(target);
	return files->path ? 0 : -ENOMEM;
}

/* The kind of file at path decides, too: a device or named pipe is written to, never replaced. */
static int look_at_path(struct xpt_report_files *files)
{
	struct stat status;

	if (stat(files->path, &status)) {
		if (errno != ENOENT)
			return -errno;
		/* A link to nothing is of use only to whom opens it. */
		return files->grows || lstat(files->path, &status) ? 0 : -ENOENT;
	}
	if (S_ISDIR(status.st_mode))
		return -EISDIR;
	if (S_ISREG(status.st_mode))
		return follow_link(files);
	if (files->keep && !files->grows)
		return -EINVAL;
	files->grows = true;
	return 0;
}

/* Whether the files can be made, before anything is traced for them. */
static int try_file(const struct xpt_report_files *files)
{
	char *name = files->single ? strdup(files->path) : report_name_numbered(files->path, 1);
	struct output_file file;
	int error = name ? output_temporary(name, &file) : -ENOMEM;

	free(name);
	if (!error)
		output_end(&file, -ECANCELED);
	return error;
}

static int open_growing(struct xpt_report_files *files, const struct xpt_report_files_options *options)
{
	int descriptor = -1, error;

	if (files->output) {
		descriptor = file_standard_output();
		if (descriptor < 0)
			return descriptor;
	}
	files->growing.rotate_bytes = options->rotate_bytes;
	files->growing.keep = options->keep;
	files->growing.single = options->single;
	error = report_growing_open(&files->growing, files->output ? NULL : files->path, descriptor, files->format);
	if (!error && options->stopped && !report_growing_is_file(&files->growing))
		error = report_growing_detach(&files->growing, options->stopped);
	return error;
}

static int open_files(struct xpt_report_files *files, const struct xpt_report_files_options *options)
{
	int error;

	files->path = strdup(options->path);
	if (!files->path)
		return -ENOMEM;
	files->output = !strcmp(files->path, "-");
	files->grows = options->append || files->output;
	error = files->output ? 0 : look_at_path(files);
	if (error)
		return error;
	if (files->grows)
		return open_growing(files, options);
	if (files->keep) {
		files->kept = calloc(files->keep, sizeof(*files->kept));
		if (!files->kept)
			return -ENOMEM;
	}
	return try_file(files);
}

static void files_free(struct xpt_report_files *files)
{
	free(files->kept);
	free(files->last);
	free(files->path);
	free(files);
}

int xpt_report_files_create(const struct xpt_report_files_options *options, struct xpt_report_files **result)
{
	struct xpt_report_files_options copy = {};
	struct xpt_report_files *files;
	const char *fault;
	struct log log;
	int error = options_copy(&copy, sizeof(copy), options);

	if (error)
		return error;
	log = (struct log){ .write = copy.log, .context = copy.log_context, .level = copy.log_level };
	fault = find_fault(&copy);
	if (fault) {
		log_error(&log, "reports: %s", fault);
		return -EINVAL;
	}
	files = calloc(1, sizeof(*files));
	if (!files)
		return -ENOMEM;
	files->log = log;
	files->format = copy.format;
	files->single = copy.single;
	files->keep = copy.keep;
	error = open_files(files, &copy);
	if (error) {
		log_error(&log, "%s: cannot be written: %s", copy.path,
			  error == -EINVAL ? "a device or pipe cannot be rotated, and keeps no files" :
					     output_reason(error));
		files_free(files);
		return error;
	}
	*result = files;
	return 0;
}

/* ---- writing ---- */

static bool gone_for_good(const struct xpt_report_files *files)
{
	return files->error_now && files->grows && (files->output || !report_growing_is_file(&files->growing));
}

/*
 * A disk that is nearly full takes some reports and refuses others, for a long time: its begin is logged, and its first
 * end; the sum is logged at the end.
 */
static void note_result(struct xpt_report_files *files, int error)
{
	if (error)
		files->left_out++;
	if (!error == !files->error_now) {
		files->error_now = error;
		return;
	}
	files->error_now = error;
	if (error && !files->error) {
		files->error = error;
		log_error(&files->log, "%s: %s: %s", files->path,
			  gone_for_good(files) ? "no more reports are written" : "reports are left out",
			  error == -ETIMEDOUT ? "it is blocked" : strerror(-error));
	} else if (!error && !files->recovered) {
		files->recovered = true;
		log_warn(&files->log, "%s: reports are written again; %llu were left out", files->path,
			 (unsigned long long)files->left_out);
	}
}

static int write_growing(struct xpt_report_files *files, const struct xpt_profile_report *report)
{
	int error = report_growing_write(&files->growing, report);

	if (error || files->last)
		return error;
	files->last = strdup(files->path);
	return 0;
}

int xpt_report_files_write(struct xpt_report_files *files, const struct xpt_profile_report *report)
{
	int error = report_document_check(report, files->format);

	if (error) {
		log_error(&files->log, "%s: only reports of type trace can be written as traces", files->path);
		return error;
	}
	if (gone_for_good(files)) {
		files->left_out++;
		return files->error_now;
	}
	error = files->grows ? write_growing(files, report) : write_own_file(files, report);
	note_result(files, error);
	return error;
}

uint64_t xpt_report_files_bytes(const struct xpt_report_files *files)
{
	return files->grows ? report_growing_bytes(&files->growing) : files->bytes;
}

const char *xpt_report_files_path(const struct xpt_report_files *files)
{
	return files->last ? files->last : "";
}

int xpt_report_files_close(struct xpt_report_files *files)
{
	int error, closed = 0;

	if (!files)
		return 0;
	if (files->grows) {
		files->left_out += report_growing_settle(&files->growing);
		closed = report_growing_close(&files->growing);
	}
	error = files->error ? files->error : closed;
	if (files->left_out)
		log_warn(&files->log, "%s: %llu reports could not be written", files->path,
			 (unsigned long long)files->left_out);
	files_free(files);
	return error;
}
