/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/latency/report_document.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/output.h"

#define TEXT_KEPT (2u * REPORT_PIECE)
#define DIGITS_LEAST 6

/* ---- names ---- */

static char *finish(struct text *text)
{
	text_bytes(text, "", 1);
	if (text->error) {
		text_free(text);
		return NULL;
	}
	return text->data;
}

/* Where the extension begins: at the last dot of the last component, unless that is its first byte; else at the end. */
static size_t extension_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *component = slash ? slash + 1 : path;
	const char *dot = strrchr(component, '.');

	/* "trace.json.gz": both. */
	if (dot && dot > component && !strcmp(dot, ".gz")) {
		const char *inner = memrchr(component, '.', dot - component);

		dot = inner && inner != component ? inner : dot;
	}
	return dot && dot != component ? (size_t)(dot - path) : strlen(path);
}

char *report_name_numbered(const char *path, __u64 number)
{
	size_t extension = extension_of(path);
	struct text text = { 0 };
	__u64 power = 10;
	unsigned int digits;

	text_bytes(&text, path, extension);
	text_literal(&text, "-");
	for (digits = 1; digits < DIGITS_LEAST; digits++) {
		if (number < power)
			text_literal(&text, "0");
		power *= 10;
	}
	text_unsigned(&text, number);
	text_string(&text, path + extension);
	return finish(&text);
}

char *report_name_rotated(const char *path, __u64 number)
{
	struct text text = { 0 };

	text_string(&text, path);
	text_literal(&text, ".");
	text_unsigned(&text, number);
	return finish(&text);
}

/* 1: there is something of that name; 0: there is not. */
static int exists(int directory, const char *path, __u64 number)
{
	char *name = report_name_rotated(path, number);
	struct stat status;
	int result = 1;

	if (!name)
		return -ENOMEM;
	if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW))
		result = errno == ENOENT ? 0 : -errno;
	free(name);
	return result;
}

/* path.NUMBER becomes path.(NUMBER + 1); number 0 is path. What is not there (any more) need not be moved. */
static int move_up(int directory, const char *path, __u64 number)
{
	char *from = number ? report_name_rotated(path, number) : strdup(path);
	char *to = report_name_rotated(path, number + 1);
	int error = from && to ? 0 : -ENOMEM;

	if (!error && renameat(directory, from, directory, to) && errno != ENOENT)
		error = -errno;
	free(from);
	free(to);
	return error;
}

int report_names_shift(int directory, const char *path)
{
	__u64 number = 1;
	int found, error = 0;

	while ((found = exists(directory, path, number)) > 0)
		number++;
	if (found)
		return found;
	while (number-- && !error)
		error = move_up(directory, path, number);
	return error;
}

/* ---- one file ---- */

/* Takes over the descriptor, also on failure. */
static int file_begin(struct growing_file *growing, enum xpt_report_format format, int descriptor)
{
	struct text *tail = &growing->tails[0], nothing = { 0 };
	int error = tailed_file_open(&growing->file, NULL, descriptor);

	if (error)
		return error;
	growing->document.format = format;
	report_document_tail(&growing->document, tail, false);
	error = tail->error;
	if (!error)
		error = tailed_file_append(&growing->file, &nothing, tail->data, tail->length, false);
	text_free(&nothing);
	return error;
}

/* Closes it as it is. */
static int file_close(struct growing_file *growing)
{
	int error = tailed_file_close(&growing->file);

	text_free(&growing->tails[0]);
	text_free(&growing->tails[1]);
	return error;
}

static int file_end(struct growing_file *growing)
{
	struct text tail = { 0 }, nothing = { 0 };
	int error;

	report_document_tail(&growing->document, &tail, true);
	/* Where it can't be replaced, the tail that is in the file is good enough. */
	if (!tail.error)
		tailed_file_append(&growing->file, &nothing, tail.data, tail.length, true);
	error = file_close(growing);
	text_free(&nothing);
	text_free(&tail);
	return error;
}

/* As it was before the report, of which some pieces may have got into the file. */
static void file_restore(struct growing_file *growing, __u64 length, __u64 end)
{
	struct tailed_file *file = &growing->file;
	const struct text *tail = &growing->tails[growing->tail];

	file->length = length;
	file->tail = tail->data;
	file->tail_length = tail->length;
	/* Should that fail, too, then end stays behind what is to go, and the next report cuts it off. */
	if (!file_write_at(file->descriptor, tail->data, tail->length, length) && !ftruncate(file->descriptor, end))
		file->end = end;
}

static int write_pieces(struct growing_file *growing, const struct xpt_profile_report *report, const struct text *tail,
			struct text *text)
{
	struct report_part part = { .report = report };
	bool more = true;
	int error = 0;

	while (more && !error) {
		text_clear(text, TEXT_KEPT);
		more = report_document_next(&growing->document, &part, text);
		error = text->error;
		growing->file.items += !more; /* the report is in the file with its last piece */
		if (!error)
			error = tailed_file_append(&growing->file, text, tail->data, tail->length, false);
	}
	if (error)
		growing->file.items = growing->file.sent; /* the caller counts it */
	text_clear(text, TEXT_KEPT);
	return error;
}

static int file_add(struct growing_file *growing, const struct xpt_profile_report *report, struct text *text)
{
	struct report_document document = growing->document;
	struct text *tail = &growing->tails[!growing->tail];
	__u64 length = growing->file.length, end = growing->file.end;
	int error;

	report_document_count(&document, report);
	text_clear(tail, SIZE_MAX);
	report_document_tail(&document, tail, false);
	error = tail->error;
	if (!error)
		error = write_pieces(growing, report, tail, text);
	if (error && growing->file.seekable)
		file_restore(growing, length, end);
	else if (error && !growing->file.error)
		growing->file.error = error; /* a stream has lost its place, whatever the reason is */
	if (error)
		return error;
	growing->document = document;
	growing->tail = !growing->tail;
	return 0;
}

static __u64 file_bytes(const struct growing_file *growing)
{
	return growing->file.end - growing->file.start;
}

/* ---- rotation ---- */

/* Whether the file would be at most limit bytes long with the report. */
static int fits(const struct growing_file *growing, const struct xpt_profile_report *report, struct text *text,
		__u64 limit, bool *result)
{
	struct report_document document = growing->document;
	struct report_part part = { .report = report };
	__u64 length = growing->file.length - growing->file.start;
	bool more = true;
	int error = 0;

	while (more && !error && length <= limit) {
		text_clear(text, TEXT_KEPT);
		more = report_document_next(&growing->document, &part, text);
		error = text->error;
		length += text->length;
	}
	report_document_count(&document, report);
	text_clear(text, TEXT_KEPT);
	report_document_tail(&document, text, false);
	length += text->length;
	if (!error)
		error = text->error;
	text_clear(text, TEXT_KEPT);
	*result = length <= limit;
	return error;
}

/* The new file gets its name, and what had it its number; on failure both are as before. */
static int exchange(struct output_file *file)
{
	char *first;
	int error = report_names_shift(file->directory, file->name);

	if (error)
		return error;
	if (!renameat(file->directory, file->temporary, file->directory, file->name))
		return 0;
	error = -errno;
	first = report_name_rotated(file->name, 1);
	if (first)
		renameat(file->directory, first, file->directory, file->name);
	free(first);
	return error;
}

static void drop_oldest(struct report_growing *growing, const struct output_file *file)
{
	char *name;

	growing->rotated++;
	if (!growing->keep || growing->rotated <= growing->keep)
		return;
	name = report_name_rotated(file->name, growing->rotated);
	if (name)
		unlinkat(file->directory, name, 0);
	free(name);
	growing->rotated = growing->keep;
}

/*
 * The new file is written first, under another name: when the disk is full, everything stays where it is, and the
 * report is left out.
 */
static int rotate(struct report_growing *growing, const struct xpt_profile_report *report)
{
	struct growing_file next = { .file.descriptor = -1 };
	struct output_file file;
	int error = output_temporary(growing->path, &file);

	if (error)
		return error;
	error = file_begin(&next, growing->current.document.format, file.descriptor);
	file.descriptor = -1; /* the growing file's */
	if (!error)
		error = file_add(&next, report, &growing->text);
	if (!error)
		error = exchange(&file);
	if (error) {
		file_close(&next);
	} else {
		growing->finished_bytes += file_bytes(&growing->current);
		file_end(&growing->current);
		growing->current = next;
		drop_oldest(growing, &file);
	}
	output_end(&file, error ?: -ECANCELED); /* its name is not the temporary one any more */
	return error;
}

/* ---- all files ---- */

bool report_growing_is_file(const struct report_growing *growing)
{
	return growing->current.file.seekable;
}

int report_growing_open(struct report_growing *growing, const char *path, int descriptor, enum xpt_report_format format)
{
	int error;

	growing->path = path;
	growing->current = (struct growing_file){ .file.descriptor = -1, .document.single = growing->single };
	if (path)
		descriptor = output_open(path, O_TRUNC);
	if (descriptor < 0)
		return path ? descriptor : -EBADF;
	error = file_begin(&growing->current, format, descriptor);
	if (!error && growing->rotate_bytes && !report_growing_is_file(growing))
		error = -EINVAL;
	if (error)
		file_close(&growing->current);
	return error;
}

/* Reports are large and come from a thread of their own: they wait for room. */
int report_growing_detach(struct report_growing *growing, const uint64_t *stopped)
{
	int error = tailed_file_detach(&growing->current.file, stopped);

	growing->current.file.patient = !error;
	return error;
}

__u64 report_growing_settle(struct report_growing *growing)
{
	tailed_file_settle(&growing->current.file);
	return growing->current.file.writer ? tailed_file_lost(&growing->current.file) : 0;
}

int report_growing_write(struct report_growing *growing, const struct xpt_profile_report *report)
{
	struct growing_file *current = &growing->current;
	bool alone = !growing->rotate_bytes || !current->document.reports;
	int error = 0;

	if (report_document_skips(report, current->document.format))
		return 0;
	if (!alone)
		error = fits(current, report, &growing->text, growing->rotate_bytes, &alone);
	if (!error)
		error = alone ? file_add(current, report, &growing->text) : rotate(growing, report);
	if (error)
		growing->current.document.left_out++;
	return error;
}

int report_growing_close(struct report_growing *growing)
{
	int error;

	growing->finished_bytes += file_bytes(&growing->current);
	error = file_end(&growing->current);
	text_free(&growing->text);
	return error;
}

__u64 report_growing_bytes(const struct report_growing *growing)
{
	return growing->finished_bytes + file_bytes(&growing->current);
}
