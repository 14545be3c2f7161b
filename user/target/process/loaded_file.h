/* SPDX-License-Identifier: BSD-2-Clause */
/* One file of those that loaded_code.c finds mapped. */
#ifndef XPT_TARGET_PROCESS_LOADED_FILE_H
#define XPT_TARGET_PROCESS_LOADED_FILE_H

#include "target/process/loaded_code.h"

struct file_mapping {
	__u64 device, inode; /* as maps has them */
	__u64 start, end;
	__u64 offset;
	bool executable, deleted;
	char *path; /* owned */
};

struct mapped_view {
	const struct log *log;
	pid_t pid;
	const struct file_mapping *mappings; /* of the one file, sorted by start */
	size_t count;
	bool every_library; /* not only plugins */
	list_codes_fn list;
	void *context;
};

/* Adds the code in the file. -ENOENT: it is no longer mapped as it was; -ENOMEM. Any other error is only logged. */
int loaded_file_look(const struct mapped_view *view, struct loaded_codes *result);

#endif
