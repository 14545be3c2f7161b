/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the ELF reader share. Included by elf_*.c and nothing else. */
#ifndef XPT_TARGET_ELF_INTERNAL_H
#define XPT_TARGET_ELF_INTERNAL_H

#include <elf.h>

#include "target/elf/file.h"

/* Ceilings on what a file may make the reader hold or walk. Real libraries stay a factor of ten below. */
#define ELF_SEGMENT_MAX 256
#define ELF_HEADER_MAX 1024
#define ELF_NAME_MAX 4096
#define ELF_SYMBOL_MAX (4u << 20)
#define ELF_STRINGS_MAX (256u << 20)
#define ELF_RELOCATION_MAX (4u << 20)
#define ELF_FRAME_MAX (4u << 20)
#define ELF_PROBE_MAX 65536
#define ELF_PROBE_BYTES_MAX (16u << 20) /* of one section of notes */

struct elf_segment {
	__u64 address;
	__u64 offset;
	__u64 file_size;
	__u64 memory_size; /* >= file_size; the rest is zeros */
	bool executable, writable;
};

/* A symbol table and its strings, by file offset. count 0: there is none. */
struct elf_symbol_table {
	__u64 offset;
	size_t count;
	__u64 strings_offset;
	size_t strings_size;
	char *strings; /* loaded when first needed, always terminated; owned by the file */
};

/* Where a relocation table lies, from PT_DYNAMIC; size 0: there is none. */
struct elf_range {
	__u64 address;
	__u64 size;
};

struct elf_relocation {
	__u64 address;
	__u64 value;
};

struct elf_function_range {
	__u64 start;
	__u64 size;
};

struct elf_file {
	int fd;
	bool borrowed; /* fd is the caller's */
	__u64 size;
	enum elf_machine machine;
	bool fixed_address; /* ET_EXEC */
	struct log log;
	char *name;
	char *interpreter;
	char build_id[ELF_BUILD_ID_MAX + 1];
	int error; /* the first one of reading; what was searched for then seems not to be there */

	Elf64_Ehdr header;
	struct elf_segment segments[ELF_SEGMENT_MAX];
	size_t segment_count;
	struct elf_range frame_header; /* .eh_frame_hdr */

	/* from PT_DYNAMIC; addresses are virtual */
	__u64 dynamic_symbols, dynamic_strings, dynamic_strings_size, hash, gnu_hash;
	struct elf_range rela, rel, relr, plt;
	bool plt_is_rela;

	bool tables_located;
	struct elf_symbol_table dynamic, full;

	bool relocations_loaded;
	struct elf_relocation *relocations; /* sorted by address */
	size_t relocation_count;

	bool frames_loaded, frames_omitted; /* omitted: .eh_frame_hdr is there, and well-formed, without a table */
	__u32 *frames; /* pairs of signed 32-bit distances from frame_header: function, its FDE; sorted by the first */
	size_t frame_count;

	bool ranges_loaded;
	struct elf_function_range *ranges; /* of function symbols, sorted by start */
	size_t range_count;
};

/* Maps a virtual address to where the file has its bytes, whatever the segment is for; -ENOENT. left: bytes that follow
 * in the same segment. */
int elf_file_locate(struct elf_file *file, __u64 address, __u64 *offset, __u64 *left);

/*
 * Calls visit for each of count entries of a table, as many as the file has wholly; a non-zero return ends the walk and
 * is returned. size: of an entry, a multiple of its alignment.
 */
int elf_file_each_entry(struct elf_file *file, __u64 offset, size_t size, size_t count,
			int (*visit)(void *context, const void *entry), void *context);

struct elf_note {
	unsigned int type;
	const unsigned char *name;
	size_t name_length; /* with its terminator */
	const unsigned char *content;
	size_t length;
};

/* The same for notes, up to the first one that is damaged; -ENOMEM. */
int elf_file_each_note(struct elf_file *file, __u64 offset, size_t length, size_t align,
		       int (*visit)(void *context, const struct elf_note *note), void *context);

typedef int (*visit_code)(void *context, const unsigned char *code, size_t length, __u64 address);
/* Calls visit with the code in pieces; each has overlap bytes of the next one, too. A non-zero return ends it and is returned; -ENOMEM. */
int elf_file_each_code(struct elf_file *file, size_t overlap, visit_code visit, void *context);

/* Finds .dynsym and .symtab; afterwards file->dynamic and file->full are set. */
void elf_file_locate_tables(struct elf_file *file);

#endif
