/* SPDX-License-Identifier: BSD-2-Clause */
/* Which mapped file an address of a process lies in, asked many times in a row: mappings are read when need be. */
#ifndef XPT_SESSION_CODE_PLACES_H
#define XPT_SESSION_CODE_PLACES_H

#include <sys/stat.h>

#include "session/analysed.h"

/* Zero it to begin with. */
struct code_places {
	pid_t tgid; /* whose files these are: that of the latest question */
	struct mapped_files files;
};

void code_places_free(struct code_places *places);

/*
 * The file that is mapped as code at the address of the process at this moment, pinned (mapped_file_pin()): a descriptor for
 * the caller to close. Its path is valid until the next question. -ENOENT: there is none; or an error, as -ESRCH: the
 * process has gone.
 */
int code_places_find(struct code_places *places, pid_t tgid, __u64 address, struct mapped_file *pinned,
		     struct stat *status);

#endif
