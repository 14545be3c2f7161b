/* SPDX-License-Identifier: BSD-2-Clause */
/* API tables: from the accessor's exported name to the functions in the slots, without running anything. */
#ifndef XPT_TARGET_PROBE_TABLE_H
#define XPT_TARGET_PROBE_TABLE_H

#include "describe/runtime/description.h"
#include "target/elf/file.h"

struct api_table {
	__u64 address;	   /* virtual address of the table in the file */
	size_t slot_count; /* slots that hold addresses of code; 0: filled at run time */
	__u64 *slots;	   /* virtual addresses; 0 where a slot is empty */
};

/*
 * Decodes the accessor at accessor_address and follows spec->through; reads the slots from relocations.
 * -ENODATA: the table's address is known (result->address) but its slots are not in the file: it is filled at run time.
 * -ENOENT: the accessor's code does not reveal where the table is.
 */
int api_table_from_file(const struct log *log, struct elf_file *file, const struct table_spec *spec,
			__u64 accessor_address, struct api_table *result);

/* Words of a process's memory, from a table's slots on. */
struct table_words {
	__u64 address; /* of the table, in the process */
	__u64 *words;  /* owned; what is behind the table may be there, too */
	size_t count;
};

#define TABLE_WORDS_MAX (TABLE_BYTES_MAX / 8)
#define TABLE_BYTES_MAX (1u << 16) /* of slots */

/* Reads them from a running process. -ENODATA: not filled in yet (size 0 or implausible), -ESRCH: process ended, -ENOMEM. */
int table_words_read(const struct table_spec *spec, pid_t pid, __u64 address, struct table_words *result);
void table_words_free(struct table_words *words);

/*
 * The table that the words are: slots are converted to virtual addresses of the file with load_bias (address in process minus
 * virtual address); slots that point elsewhere are 0. -ENODATA: not filled in yet; -ENOMEM.
 */
int api_table_from_words(const struct log *log, struct elf_file *file, const struct table_spec *spec,
			 const struct table_words *words, __u64 load_bias, struct api_table *result);
void api_table_free(struct api_table *table);

#endif
