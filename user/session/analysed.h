/* SPDX-License-Identifier: BSD-2-Clause */
/* What is in the files that processes map: looked at once each, however many processes map it. */
#ifndef XPT_SESSION_ANALYSED_H
#define XPT_SESSION_ANALYSED_H

#include <sys/stat.h>

#include "session/file_operators.h"

/*
 * What was found in one file. Identity includes its size and the times of its latest changes, since inodes are reused, and
 * files changed in place; the time of change cannot be set by who owns the file.
 */
struct analysed {
	struct stat status;
	bool changed; /* in place, since it was first looked at: it is not shared between processes any more */
	char *path;
	struct found_functions found;
	struct file_operators operators;
	bool has_loader;
	__u64 loader_offset;
	__s32 loader_state; /* as in struct kern_site */
};

/* Zero it, and set the first ones. */
struct analysed_files {
	const struct log *log;
	const struct registry *registry;
	bool operators; /* they are looked for */
	bool loader;	/* so is the dynamic loader */
	struct analysed **files;
	size_t count;
};

/*
 * Opens the very file, without waiting for anybody, so that all that follows is about this one: *pinned is mapped with a path
 * to the descriptor that is returned, for the caller to close. -ENOENT: something else is mapped there by now, or no regular
 * file; -EWOULDBLOCK: somebody holds a lease on it.
 */
int mapped_file_pin(const struct mapped_file *mapped, struct mapped_file *pinned, struct stat *status);

/* The file's analysis, made now if it was not seen before; status is of it. It lives as long as files. NULL: no memory. */
struct analysed *analysed_get(struct analysed_files *files, const struct mapped_file *mapped,
			      const struct stat *status);
/* Whether the file that is open is still as it was looked at. */
bool analysed_is_current(const struct analysed *file, int descriptor);
void analysed_files_free(struct analysed_files *files);

/* What a file's virtual addresses are moved by in the process that has mapped it. Errors as elf_file_open(). */
int mapped_file_bias(const struct mapped_file *mapped, __u64 *bias);

#endif
