/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Read-only view of one ELF file that comes from outside and may be hostile: every offset and count is checked, nothing
 * is mapped (a file that shrinks gives errors, not SIGBUS), memory and time are bounded.
 */
#ifndef XPT_TARGET_ELF_FILE_H
#define XPT_TARGET_ELF_FILE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/core/log.h"

struct elf_file;

enum elf_machine { ELF_MACHINE_X86_64, ELF_MACHINE_AARCH64 };

/*
 * Opens path (often /proc/PID/map_files/...; name is what messages call it). Errors: -ENOEXEC not ELF or malformed,
 * -ENOTSUP a 32-bit or foreign-endian file or another machine than x86-64 and AArch64, or what open() gives.
 */
int elf_file_open(const struct log *log, const char *path, const char *name, struct elf_file **result);
/* The same of a regular file that is open already, which stays the caller's: only read() and lseek() are used from here on. */
int elf_file_open_descriptor(const struct log *log, int descriptor, const char *name, struct elf_file **result);
/* Of reading the file, if there was one: then it may have what was not found in it. */
int elf_file_error(const struct elf_file *file);
void elf_file_close(struct elf_file *file);

enum elf_machine elf_file_machine(const struct elf_file *file);
const char *elf_file_interpreter(const struct elf_file *file); /* PT_INTERP; NULL: static or a library */
/* Build id as lower-case hexadecimal text, "" when there is none. */
#define ELF_BUILD_ID_MAX (2 * 64)
const char *elf_file_build_id(const struct elf_file *file);

struct elf_symbol {
	const char *name; /* version suffix cut off; valid until the file is closed; any bytes but NUL */
	__u64 address;	  /* virtual address in the file */
	__u64 size;
	bool indirect; /* STT_GNU_IFUNC: the address is a resolver, not the function */
};

/*
 * Calls visit for every defined function symbol of .dynsym, then .symtab when there is one; names of more than 4096
 * bytes are left out. visit returns 0 to continue, anything else ends the walk and is returned.
 */
int elf_file_each_function(struct elf_file *file, int (*visit)(void *context, const struct elf_symbol *symbol),
			   void *context);

/* The same, of data symbols as well. */
int elf_file_each_symbol(struct elf_file *file, int (*visit)(void *context, const struct elf_symbol *symbol),
			 void *context);

/* A section that has bytes in the file: all of them lie in it. */
struct elf_section {
	const char *name; /* valid during the visit; at most 63 bytes of it */
	__u64 offset;	  /* in the file */
	__u64 size;
};

/* Calls visit for every one, in the order of the file's table; a non-zero return ends the walk and is returned. */
int elf_file_each_section(struct elf_file *file, int (*visit)(void *context, const struct elf_section *section),
			  void *context);
/* Reads length bytes at an offset of the file; -EFAULT when it is shorter. */
int elf_file_read_offset(struct elf_file *file, __u64 offset, void *buffer, size_t length);

/* Bytes of the file that are mapped in one piece. */
struct elf_extent {
	__u64 offset, size; /* in the file */
	__u64 address;
	bool executable;
};

/* The first count of them, in the order of the file's headers; their number. */
size_t elf_file_extents(const struct elf_file *file, struct elf_extent *extents, size_t count);
/* File offset of a virtual address in an executable segment (what a uprobe needs); -ENOENT outside of all. */
int elf_file_offset(struct elf_file *file, __u64 address, __u64 *offset);
/* Virtual address of a file offset; -ENOENT. */
int elf_file_address(struct elf_file *file, __u64 offset, __u64 *address);
bool elf_file_is_executable(struct elf_file *file, __u64 address);
bool elf_file_is_writable(struct elf_file *file, __u64 address); /* data, zero-filled one included */

/* Reads length bytes at a virtual address as the file has them (relocations not applied); zero-filled tail of a segment
 * included. -EFAULT outside of every segment. */
int elf_file_read(struct elf_file *file, __u64 address, void *buffer, size_t length);

/* True when .dynsym defines a function of that name. */
bool elf_file_exports(struct elf_file *file, const char *name);
/* True when it defines a function or data of one of these names, which end with NULL. */
bool elf_file_exports_any(struct elf_file *file, const char *const *names);

/* A static probe: a place in the code that the file names for tracers. Strings are valid during the visit. */
struct elf_probe {
	const char *provider, *name;
	const char *arguments; /* where they are when the place is reached: "8@%rdi -4@%eax" */
	__u64 address;	       /* virtual, as is the next one */
	__u64 semaphore; /* 16 bits, data: number of tracers of the probe; 0: there is none, the probe is always reached */
};

/* Calls visit for every static probe, in the file's order; a non-zero return ends the walk and is returned. */
int elf_file_each_probe(struct elf_file *file, int (*visit)(void *context, const struct elf_probe *probe),
			void *context);

/* File offset of a virtual address in a segment that is written to; -ENOENT where the file has no bytes for it. */
int elf_file_data_offset(struct elf_file *file, __u64 address, __u64 *offset);

/*
 * What the 8 bytes at a virtual address hold after relocation (RELA, REL, RELR): an address within the file. Relocations
 * against symbols that the file itself defines count as well: another library may interpose them, but what the file
 * meant is what is asked for. In a file with a fixed address (ET_EXEC) bytes without relocation stand for themselves.
 * -ENOENT when no relocation applies there.
 */
int elf_file_relocated(struct elf_file *file, __u64 address, __u64 *value);
/*
 * Calls visit for every word that relocation makes an address within the file, in order of their addresses; a non-zero return
 * ends the walk and is returned. A file with a fixed address has none.
 */
int elf_file_each_relocated(struct elf_file *file, int (*visit)(void *context, __u64 address, __u64 value),
			    void *context);
/*
 * Calls visit with each virtual address at which a segment that is not written to holds these bytes: 1 to 4097. A non-zero
 * return ends the walk and is returned; -EINVAL, -ENOMEM.
 */
int elf_file_each_bytes(struct elf_file *file, const char *bytes, size_t length,
			int (*visit)(void *context, __u64 address), void *context);
/*
 * Calls visit with the begin of a function for each of its references to one of count strings: the same function may come more than once.
 * Of a string of more than 16 bytes, its first 16 count as well where they are a constant: compilers copy them so. Functions are those
 * of elf_file_function_bounds(); in a file with a fixed address, references by absolute address are not found. The file is read once,
 * however many strings there are. A non-zero return ends the walk and is returned; -EINVAL: a string of more than 4096 bytes; -ENOMEM.
 */
int elf_file_each_reference(struct elf_file *file, const char *const *strings, size_t count,
			    int (*visit)(void *context, size_t string, __u64 function), void *context);

/*
 * Calls visit with each function that code hands to a call as its second argument with an identifier of at most 4095 bytes as third or
 * fourth: so compilers register the kernels of CUDA and HIP, by the function that stands for them on the host and their name on the
 * device. The name is valid during the visit. x86-64 only: nothing is found on others. A non-zero return ends the walk and is returned;
 * -ENOMEM, -E2BIG.
 */
int elf_file_each_registered(struct elf_file *file, int (*visit)(void *context, __u64 function, const char *name),
			     void *context);

/* Bounds of the function that contains address, from .eh_frame_hdr, else from symbols; -ENOENT. */
int elf_file_function_bounds(struct elf_file *file, __u64 address, __u64 *start, __u64 *size);
/*
 * The latest function of .eh_frame_hdr that begins at or before address. -ENOENT: there is none, or the table is damaged; -ENODATA: the
 * file has no such table, or an empty one.
 */
int elf_file_frame_before(struct elf_file *file, __u64 address, __u64 *start, __u64 *size);

#endif
