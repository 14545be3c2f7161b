/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code that a process has loaded already, as far as it is in files that it has mapped: sections with code for GPUs,
 * whole files of such code, models, and shared libraries that are loaded as plugins.
 */
#ifndef XPT_TARGET_PROCESS_LOADED_CODE_H
#define XPT_TARGET_PROCESS_LOADED_CODE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/core/log.h"
#include "target/process/process.h"

#define LOADED_CODE_MAX 4096 /* objects listed at once */

struct loaded_code {
	char *path; /* as the process sees it; may be hostile: it is shown, never opened */
	bool deleted;
	char open_path[MAP_FILE_PATH_MAX]; /* opens the very file as long as it is mapped there */
	__u64 device, inode;		   /* as stat() gives them for the opened file */
	__u64 offset, size;		   /* of the object in the file; offset 0: the whole file */
	__u64 address;			   /* in the process, of the object's first byte; 0: that is not mapped */
	__u64 length; /* of it mapped from there on, in bytes; of a library, of all its segments in a row */
	bool library; /* for the processor: the whole file */
};

struct loaded_codes {
	struct loaded_code *objects;
	size_t count;
	__u64 left_out; /* files and sections with objects beyond LOADED_CODE_MAX, which are not listed */
};

/*
 * Files that a process had mapped at the latest scan. Zero it to begin with, and free it when the process runs another
 * program.
 */
struct loaded_files {
	struct loaded_file *files; /* sorted */
	size_t count;
};

/*
 * What is loaded in the process; of shared libraries those that are plugins of a described runtime. files becomes what
 * is mapped. A file that cannot be read is logged and left out. -ESRCH, -EACCES, -ENOMEM.
 */
int loaded_code_all(pid_t pid, const struct log *log, struct loaded_files *files, struct loaded_codes *result);
/*
 * What has been mapped since the scan that files is from, every shared library included, whatever it is for. As long as
 * nothing has, it costs one reading of /proc/PID/maps. A file that was remapped during the scan is taken at the next
 * one.
 */
int loaded_code_new(pid_t pid, const struct log *log, struct loaded_files *files, struct loaded_codes *result);

void loaded_codes_free(struct loaded_codes *codes); /* leaves it zeroed */
void loaded_files_free(struct loaded_files *files); /* leaves it zeroed */

#endif
