/* SPDX-License-Identifier: BSD-2-Clause */
/* What is in the files that processes map: looked at once each, however many processes map it. */
#ifndef XPT_SESSION_ANALYSED_H
#define XPT_SESSION_ANALYSED_H

#include <sys/stat.h>

#include "session/file_operators.h"

/* What was found in one file. Identity includes size and time, since inodes are reused. */
struct analysed {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec modified;
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
 * The file's analysis, made now if it was not seen before; status is of its open_path. It lives as long as files. NULL: no memory.
 */
struct analysed *analysed_get(struct analysed_files *files, const struct mapped_file *mapped,
			      const struct stat *status);
void analysed_files_free(struct analysed_files *files);

/* What a file's virtual addresses are moved by in the process that has mapped it. Errors as elf_file_open(). */
int mapped_file_bias(const struct mapped_file *mapped, __u64 *bias);

#endif
