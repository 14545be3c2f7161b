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

/* Code in one file, whoever has mapped it. */
struct file_codes {
	struct file_code {
		__u64 offset, size;
	} * places;
	size_t count;
	__u64 left_out; /* beyond LOADED_CODE_MAX */
	__u64 file_size;
	bool is_library, is_plugin; /* for the processor */
};

/* Of a regular file. As elf_file_open_descriptor() where it begins like ELF; -ENOMEM. */
int file_codes_read(const struct log *log, int descriptor, const char *name, struct file_codes *result);
void file_codes_free(struct file_codes *codes);

/*
 * Gives what is in a file, by its open_path, as the caller has it read; NULL: no regular file. -ENOENT: it cannot be opened this
 * way; -ENOMEM; other errors are logged.
 */
typedef int (*list_codes_fn)(void *context, const struct mapped_file *mapped, const struct file_codes **codes);

struct loaded_code {
	char *path; /* as the process sees it; may be hostile: it is shown, never opened */
	bool deleted;
	char open_path[MAP_FILE_PATH_MAX]; /* opens the very file as long as it is mapped there */
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
int loaded_code_all(pid_t pid, const struct log *log, list_codes_fn list, void *context, struct loaded_files *files,
		    struct loaded_codes *result);
/*
 * What has been mapped since the scan that files is from, every shared library included, whatever it is for. As long as
 * nothing has, it costs one reading of /proc/PID/maps. A file that was remapped during the scan is taken at the next
 * one.
 */
int loaded_code_new(pid_t pid, const struct log *log, list_codes_fn list, void *context, struct loaded_files *files,
		    struct loaded_codes *result);

void loaded_codes_free(struct loaded_codes *codes); /* leaves it zeroed */
void loaded_files_free(struct loaded_files *files); /* leaves it zeroed */

/*
 * What is at an offset of a file, by its symbols. Launches of CUDA and HIP name
 * their kernel by the address of a function, or of a variable, that the compiler made for it on the host.
 */

/* Of one file. */
struct symbol_table;

/* The descriptor stays open while it lives. What is not ELF has none. Errors of reading, -ENOMEM. */
int symbol_table_read(const struct log *log, int descriptor, const char *name, struct symbol_table **result);
void symbol_table_free(struct symbol_table *table); /* NULL is allowed */

/*
 * Name of the function or data object at an offset of the file, one that begins there before one that only contains it; cut off
 * when it has size bytes or more. offset: bytes from its beginning. -ENOENT: there is none.
 */
int symbol_table_find(const struct symbol_table *table, __u64 at, char *name, size_t size, __u64 *offset);

/*
 * Name of the kernel that code of the file registers for the function at an offset of it (elf_file_each_registered()), for files without
 * symbols; cut off as above. The whole code is searched the first time. -ENOENT: none is; -ENOMEM.
 */
int symbol_table_registered(struct symbol_table *table, __u64 at, char *name, size_t size);

/*
 * The kernel that a function of the host stands for, as it is registered with the runtime, in place: of clang's stubs
 * "_Z24__device_stub__vectoraddPfS_" becomes "_Z9vectoraddPfS_", and "__device_stub__vectoradd" becomes "vectoradd".
 * Any other name stays: that of a function (nvcc) or variable (clang, for HIP) is the kernel's own.
 */
void kernel_name_of_stub(char *name);

#endif
