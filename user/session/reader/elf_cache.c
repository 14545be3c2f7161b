/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/reader/elf_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/core/vec.h"
#include "base/file/output.h"

#define SILENT_FOR 60000000000ull /* ns until a file that timed out is tried again */
#define SILENT_MAX 4096		  /* files beyond are tried again */

struct silent_file {
	__u64 device, inode;
	__u64 until;
};

static void entry_free(struct elf_entry *file)
{
	if (!file)
		return;
	if (file->descriptor >= 0)
		close(file->descriptor);
	file_contents_free(&file->contents);
	free(file->path);
	free(file);
}

void elf_cache_free(struct elf_cache *files)
{
	for (size_t i = 0; i < files->count; i++)
		entry_free(files->files[i]);
	free(files->files);
	free(files->silent);
	free(files->local);
}

/* ---- identity ---- */

/* What the kernel knows of a file, without asking its file system, which may hang. */
static int read_status(int descriptor, struct stat *status)
{
	struct statx found;

	*status = (struct stat){ 0 };
	if (statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &found))
		return -errno;
	*status = (struct stat){ .st_dev = makedev(found.stx_dev_major, found.stx_dev_minor),
				 .st_ino = found.stx_ino,
				 .st_mode = found.stx_mode,
				 .st_uid = found.stx_uid,
				 .st_size = found.stx_size,
				 .st_mtim = { found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec },
				 .st_ctim = { found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec } };
	return 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && !memcmp(&a->st_mtim, &b->st_mtim, sizeof(a->st_mtim)) &&
	       !memcmp(&a->st_ctim, &b->st_ctim, sizeof(a->st_ctim));
}

int elf_entry_check(const struct elf_entry *file, int descriptor)
{
	struct stat status;
	int error = read_status(descriptor, &status);

	if (error)
		return error;
	return is_same(&status, &file->status) && is_unchanged(&status, &file->status) ? 0 : -ESTALE;
}

bool elf_entry_has_any(const struct elf_entry *file)
{
	const struct file_contents *contents = &file->contents;

	return contents->found.count || contents->found.table_count || contents->operators.functions ||
	       contents->has_loader;
}

/* The latest analysis of the file; NULL: there was none. */
static struct elf_entry *latest(const struct elf_cache *files, const struct stat *status)
{
	for (size_t i = files->count; i > 0; i--)
		if (is_same(&files->files[i - 1]->status, status))
			return files->files[i - 1];
	return NULL;
}

/* ---- files that time out ---- */

static bool is_silent(struct elf_cache *files, const struct stat *status)
{
	__u64 now = clock_monotonic();

	for (size_t i = 0; i < files->silent_count; i++) {
		const struct silent_file *silent = &files->silent[i];

		if (silent->device == status->st_dev && silent->inode == status->st_ino && silent->until > now)
			return true;
	}
	return false;
}

static void note_silent(struct elf_cache *files, const struct stat *status)
{
	if (files->silent_count == SILENT_MAX)
		files->silent_count = 0;
	vec_push(files->silent, files->silent_count,
		 (struct silent_file){ status->st_dev, status->st_ino, clock_monotonic() + SILENT_FOR });
}

/* ---- devices ---- */

static bool is_local(const struct elf_cache *files, dev_t device)
{
	for (size_t i = 0; i < files->local_count; i++)
		if (files->local[i] == device)
			return true;
	return false;
}

/* Without memory they are asked for again. */
static void note_local(struct elf_cache *files, dev_t device)
{
	if (!is_local(files, device))
		vec_push(files->local, files->local_count, device);
}

static bool is_roots(const struct stat *status)
{
	return !status->st_uid && !(status->st_mode & (S_IWGRP | S_IWOTH));
}

/*
 * Whether the server of a FUSE file system is trusted: it was mounted in this mount namespace, by root or the user who
 * called sudo. Other namespaces may map any user to root, and their mounts are not visible here.
 */
static bool is_trusted_mount(dev_t device)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, wanted[32]; /* the last field of a line is the kernel's, others are of who has mounted it */
	size_t size = 0;
	bool trusted = false, done = false;

	snprintf(wanted, sizeof(wanted), "%u:%u", major(device), minor(device));
	while (file && !done && getline(&line, &size, file) > 0) {
		const char *options = strrchr(line, ' '), *user = options ? strstr(options, ",user_id=") : NULL;
		char number[32];

		done = sscanf(line, "%*s %*s %31s", number) == 1 && !strcmp(number, wanted);
		/* Without a name in it (virtiofs) it is the kernel's. */
		trusted = done && (!user || output_is_trusted((uid_t)strtoul(user + 9, NULL, 10)));
	}
	free(line);
	if (file)
		fclose(file);
	return trusted;
}

/*
 * Whether somebody who is not trusted may answer for the pages of the file. The kernel reads those that probes go into, while
 * nobody on the machine can fork: for as long as the server of the file system likes, even if it has replied before.
 */
static bool is_answered_by_others(const struct elf_cache *files, const struct opened_file *opened,
				  const struct file_reader *reader)
{
	dev_t device = opened->status.st_dev;
	bool is_fuse = opened->is_fuse;

	if (!opened->is_local && !is_fuse && files->kern &&
	    kern_mapping(files->kern, file_reader_pid(reader), opened->mapped, &device, &is_fuse))
		return true;
	return is_fuse && !is_trusted_mount(device);
}

/* ---- analysing ---- */

/* A sum over places and what they are for, in their order. */
static void add_place(void *context, const struct site *site, unsigned int spec)
{
	__u64 *sum = context;

	*sum = (*sum ^ site->offset ^ (__u64)spec << 40) * 0x9e3779b97f4a7c15ull + site->semaphore;
}

static __u64 places_of(const struct elf_entry *file)
{
	const struct file_contents *contents = &file->contents;
	__u64 sum = contents->has_loader ? contents->loader_offset + (__u32)contents->loader_state : 0;

	for (size_t i = 0; i < contents->found.count; i++)
		add_place(&sum, &contents->found.functions[i].site, contents->found.functions[i].spec);
	for (size_t i = 0; i < contents->found.table_count; i++)
		add_place(&sum, &contents->found.tables[i].accessor, contents->found.tables[i].runtime->index);
	file_operators_visit(&contents->operators, add_place, &sum);
	return sum;
}

/* Others mean that there is nothing to probe. */
static void report(const struct elf_cache *files, const char *path, int error)
{
	if (error == -EPROTO)
		log_warn(files->log, "%s: no probes are placed in it: the process that read it has ended", path);
	else if (error == -EWOULDBLOCK)
		log_warn(files->log, "%s: no probes placed: another process holds a lease on it", path);
	else if (error == -ETIMEDOUT)
		log_warn(files->log, "%s: no probes are placed in it: its file system does not answer", path);
	else if (error != -ENOENT && error != -EACCES && error != -EPERM)
		log_warn(files->log, "%s: no probes are placed in it: %s", path, strerror(-error));
}

/* By a process of its own: the shared one has ended, possibly because of another file. */
static int search_again(struct elf_cache *files, int descriptor, struct elf_entry *file)
{
	struct opened_file opened;
	struct file_reader *reader;
	int error = file_reader_open(files->readers, descriptor, &opened, &reader);

	if (error)
		return error;
	close(opened.descriptor);
	error = file_reader_search(reader, file->path, &file->contents);
	file_reader_close(reader);
	return error;
}

static int analyse(struct elf_cache *files, const struct opened_file *opened, struct file_reader *reader,
		   const char *path, struct elf_entry **result)
{
	struct elf_entry *file = calloc(1, sizeof(*file));
	int error;

	if (!file)
		return -ENOMEM;
	file->descriptor = -1;
	file->status = opened->status;
	file->is_local = opened->is_local;
	file->is_roots = opened->is_local && is_roots(&opened->status);
	file->path = strdup(path);
	file->is_refused = is_answered_by_others(files, opened, reader);
	error = file->path ? file_reader_search(reader, path, &file->contents) : -ENOMEM;
	if (error == -EPROTO && file->is_roots)
		error = search_again(files, opened->descriptor, file);
	if (!error && file->is_refused && elf_entry_has_any(file))
		log_warn(files->log,
			 "%s: no probes are placed in it: its file system (FUSE) is another user's, who could hold up the "
			 "machine with it",
			 path);
	if (!error && !file->is_local && elf_entry_has_any(file))
		file->descriptor = fcntl(opened->descriptor, F_DUPFD_CLOEXEC, 3);
	/* Whatever ended the process will end it again: it is not to be read each time. */
	if (error == -EPROTO)
		report(files, path, error);
	if (error && error != -EPROTO) {
		entry_free(file);
		return error;
	}
	*result = file;
	return 0;
}

static int add(struct elf_cache *files, struct elf_entry *before, struct elf_entry **file)
{
	int error;

	/* It may have got another name, or none: the same probes belong in it. */
	if (before && places_of(before) == places_of(*file)) {
		before->status = (*file)->status;
		memcpy(before->contents.build_id, (*file)->contents.build_id, sizeof(before->contents.build_id));
		entry_free(*file);
		*file = before;
		return 0;
	}
	(*file)->changed = before;
	error = vec_push(files->files, files->count, *file);
	if (error)
		entry_free(*file);
	return error;
}

static int open_again(int place)
{
	char path[32];
	int descriptor;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return descriptor < 0 ? -errno : descriptor;
}

/* A process of its own opens it, unless it is certain to be open at once, and nobody's but root's. */
static int open_through_reader(struct elf_cache *files, int place, const struct stat *status,
			       struct opened_file *opened, struct file_reader **reader)
{
	int error;

	if (!is_local(files, status->st_dev) || !is_roots(status))
		return file_reader_open(files->readers, place, opened, reader);
	*opened = (struct opened_file){ .descriptor = open_again(place), .is_local = true };
	if (opened->descriptor < 0)
		return opened->descriptor;
	error = read_status(opened->descriptor, &opened->status);
	if (!error)
		error = file_reader_share(files->readers, opened->descriptor, reader);
	if (error)
		close(opened->descriptor);
	return error;
}

/* Through a process that opens it, and analyses it where it was not seen before as it is now. */
static int pin_through_reader(struct elf_cache *files, int place, const struct stat *status,
			      const struct mapped_file *mapped, struct elf_entry *before, struct pinned_file *pinned)
{
	struct opened_file opened = { 0 };
	struct file_reader *reader = NULL;
	int error = open_through_reader(files, place, status, &opened, &reader);

	if (error)
		return error;
	if (opened.is_local)
		note_local(files, opened.status.st_dev);
	if (before && is_unchanged(&before->status, &opened.status)) {
		pinned->file = before;
	} else {
		error = analyse(files, &opened, reader, mapped->path, &pinned->file);
		if (!error)
			error = add(files, before, &pinned->file);
	}
	file_reader_close(reader);
	if (error) {
		close(opened.descriptor);
		return error;
	}
	return opened.descriptor;
}

static int pin(struct elf_cache *files, int place, const struct mapped_file *mapped, bool to_open,
	       struct pinned_file *pinned)
{
	struct elf_entry *before;
	struct stat status;
	int error = read_status(place, &status);

	if (error) {
		report(files, mapped->path, error);
		return error;
	}
	if (!S_ISREG(status.st_mode) ||
	    (mapped->inode && (status.st_dev != mapped->device || status.st_ino != mapped->inode)) ||
	    is_silent(files, &status))
		return -ENOENT;
	before = latest(files, &status);
	pinned->file = before;
	if (before && is_unchanged(&before->status, &status)) {
		if (!to_open && !elf_entry_has_any(before))
			return -ENOENT;
		if (before->is_local) {
			error = open_again(place);
			if (error < 0)
				report(files, mapped->path, error);
			return error;
		}
		if (before->descriptor >= 0) {
			error = fcntl(before->descriptor, F_DUPFD_CLOEXEC, 3);
			return error < 0 ? -errno : error;
		}
	}
	error = pin_through_reader(files, place, &status, mapped, before, pinned);
	if (error == -ETIMEDOUT)
		note_silent(files, &status);
	if (error < 0 && error != -EPROTO)
		report(files, mapped->path, error);
	return error;
}

static int pin_at(struct elf_cache *files, const struct mapped_file *mapped, bool to_open, struct pinned_file *pinned)
{
	int place = open(mapped->open_path, O_PATH | O_CLOEXEC), descriptor;

	pinned->file = NULL;
	if (place < 0)
		return -errno;
	descriptor = pin(files, place, mapped, to_open, pinned);
	close(place);
	if (descriptor < 0)
		return descriptor;
	pinned->mapped = *mapped;
	pinned->mapped.descriptor = descriptor;
	snprintf(pinned->mapped.open_path, sizeof(pinned->mapped.open_path), "/proc/self/fd/%d", descriptor);
	return 0;
}

int elf_cache_pin(struct elf_cache *files, const struct mapped_file *mapped, bool to_open, struct pinned_file *pinned)
{
	int error = pin_at(files, mapped, to_open, pinned);

	if (error)
		return error;
	if (pinned->file && !pinned->file->is_refused && (to_open || elf_entry_has_any(pinned->file)))
		return 0;
	pinned_close(pinned);
	return -ENOENT;
}

int elf_cache_open(struct elf_cache *files, const struct mapped_file *mapped, struct pinned_file *pinned)
{
	int error = pin_at(files, mapped, true, pinned);

	if (error || pinned->file)
		return error;
	pinned_close(pinned);
	return -ENOENT;
}

int elf_cache_find(struct elf_cache *files, const struct mapped_file *mapped, const struct elf_entry **file)
{
	int place = open(mapped->open_path, O_PATH | O_CLOEXEC), error;
	struct pinned_file pinned = { .mapped.descriptor = -1 };
	struct stat status;

	*file = NULL;
	if (place < 0)
		return -errno;
	error = read_status(place, &status);
	close(place);
	if (error || !S_ISREG(status.st_mode))
		return error;
	*file = latest(files, &status);
	if (*file && is_unchanged(&(*file)->status, &status))
		return 0;
	error = elf_cache_open(files, mapped, &pinned);
	*file = error ? NULL : pinned.file;
	if (!error)
		pinned_close(&pinned);
	return error;
}

void pinned_close(struct pinned_file *pinned)
{
	close(pinned->mapped.descriptor);
}

int elf_entry_bias(const struct elf_entry *file, const struct mapped_file *mapped, __u64 *bias)
{
	__u64 address;
	int error = file_contents_address(&file->contents, mapped->offset, &address);

	if (!error)
		*bias = mapped->start - address;
	return error;
}
