/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headers of ELF of either width and byte order, by fields. Numbers are as in the object: nothing but what is named
 * here is checked. Included by files of this folder only.
 */
#ifndef XPT_CODE_FORMAT_ELF_VIEW_H
#define XPT_CODE_FORMAT_ELF_VIEW_H

#include <elf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct elf_view {
	bool wide; /* 64 bits */
	bool big_endian;
	unsigned char abi_version;
	unsigned int type, machine, flags;
	unsigned int header_size; /* of the ELF header, by its class */
	__u64 sections, segments; /* where their tables lie */
	/* Entries are at least as large as those of the class. Counts may be 0, or PN_XNUM, when section 0 has them. */
	unsigned int section_size, section_count, segment_size, segment_count;
};

struct elf_section {
	unsigned int type, link, info;
	__u64 address, offset, size, entry_size;
};

struct elf_segment {
	unsigned int type;
	__u64 address, offset, file_size;
};

struct elf_symbol_entry {
	unsigned int name, type, other, section;
	__u64 value, size;
};

/* From the first bytes, at least EI_NIDENT. 0; -EBADMSG: of no known class or byte order, or too short. */
int elf_view_open(struct elf_view *view, const unsigned char *bytes, size_t size);
/* At entry there are as many bytes as an entry of the class has. */
void elf_view_section(const struct elf_view *view, const unsigned char *entry, struct elf_section *section);
void elf_view_segment(const struct elf_view *view, const unsigned char *entry, struct elf_segment *segment);
void elf_view_symbol(const struct elf_view *view, const unsigned char *entry, struct elf_symbol_entry *symbol);

static inline size_t elf_view_symbol_size(const struct elf_view *view)
{
	return view->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

#define ELF_MACHINE_NAME 32
/* Writes what code is for: "x86_64", "gfx90a", "sm_80". false: not known. */
bool elf_view_machine(const struct elf_view *view, char name[ELF_MACHINE_NAME]);

#endif
