/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the functions of described runtimes in one mapped file: symbols, tables, sites. */
#ifndef XPT_TARGET_PROBE_FUNCTIONS_H
#define XPT_TARGET_PROBE_FUNCTIONS_H

#include "describe/runtime/description.h"
#include "describe/runtime/registry.h"
#include "target/elf/file.h"
#include "target/probe/site.h"
#include "target/process/process.h"

/* API tables: from the accessor's exported name to the functions in the slots, without running anything. */

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

enum found_by {
	FOUND_SYMBOL,
	FOUND_TABLE_FILE,
	FOUND_TABLE_MEMORY,
	FOUND_RESOLVED,
	FOUND_PROBE,
	FOUND_REFERENCE,
	FOUND_CLASS
};

struct found_function {
	__u16 spec; /* index in the registry */
	struct site site;
	enum found_by by;
	char *symbol; /* under which name it was found */
	bool shared;  /* another spec already has this site: listed, not probed */
};

/* A table with slots that are not in the file: watch the accessor's return, then read the table in the process. */
struct pending_table {
	const struct description *runtime;
	struct site accessor; /* where to watch; the accessor's own spec is XPT_ROLE_TABLE */
	__u64 table_address;  /* virtual address in the file when known, else 0 */
};

struct found_functions {
	__u64 runtimes;			  /* bit i: the file holds runtime i of the registry; found_runtime() */
	struct found_function *functions; /* sorted by site offset, each offset probed once */
	size_t count;
	struct pending_table *tables;
	size_t table_count;
	/* text for messages, one line "RUNTIME: FUNCTION: WHY" for each described function that could not be placed;
	 * NULL: none */
	char *missing;
};

/*
 * Looks for every runtime of the registry in the file. A file that holds none gives count 0 and 0; its symbols are
 * walked once, whatever it holds. Errors as elf_file_open().
 *
 * Files are scanned one by one: that a loader and the driver behind it export the same names (Level Zero) is left to
 * callers that know both files.
 */
int functions_find(const struct log *log, const struct registry *registry, const struct mapped_file *mapped,
		   struct found_functions *result);
/*
 * Reads a table from the memory of a process that has mapped the file bias further than its virtual addresses. returned: what
 * the accessor returned; where pending->table_address is known, the table is taken from there. -ENODATA: the table is not
 * filled in yet; -ENOENT: no table can be reached from the accessor's return; -ESRCH, -ENOMEM.
 */
int functions_read_table(const struct pending_table *pending, pid_t pid, __u64 returned, __u64 bias,
			 struct table_words *result);
/* Adds the functions of a table that was read. New functions share the sites that are there already. -ENODATA; -ENOMEM. */
int functions_add_table(const struct log *log, const struct registry *registry, const struct mapped_file *mapped,
			const struct description *runtime, const struct table_words *words,
			struct found_functions *result);
/* Copies of what was found otherwise in the file. New functions share the sites that are there already. -ENOMEM. */
int found_functions_add(struct found_functions *functions, const struct found_functions *more);
/* The file as ELF: as it is open, or else by its path. Errors as elf_file_open(). */
int mapped_file_elf(const struct log *log, const struct mapped_file *mapped, struct elf_file **result);
bool found_runtime(const struct found_functions *functions, const struct description *runtime);
void found_functions_free(struct found_functions *functions);
const char *found_by_name(
	enum found_by by); /* "symbol", "table", "table in memory", "resolved", "probe", "string", "class" */

#endif
