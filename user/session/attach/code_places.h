/* SPDX-License-Identifier: BSD-2-Clause */
/* Which mapped file an address of a process lies in, asked many times in a row: mappings are read when need be. */
#ifndef XPT_SESSION_ATTACH_CODE_PLACES_H
#define XPT_SESSION_ATTACH_CODE_PLACES_H

#include "session/reader/elf_cache.h"

/* Zero it to begin with. */
struct code_places {
	pid_t tgid; /* owner of the files: that of the latest query */
	struct mapped_files files;
};

void code_places_free(struct code_places *places);

/*
 * The file that is mapped as code at the address of the process at this moment, for pinned_close(). Its path is valid
 * until the next question. Errors as elf_cache_pin(), or -ESRCH: the process has ended.
 */
int code_places_find(struct code_places *places, struct elf_cache *files, pid_t tgid, __u64 address,
		     struct pinned_file *pinned);

#endif
