/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/format/elf_view.h"

#include <errno.h>

#define FIELD(view, entry, kind, field)                                                                             \
	((view)->wide ? number(view, (entry) + offsetof(Elf64_##kind, field), sizeof(((Elf64_##kind *)0)->field)) : \
			number(view, (entry) + offsetof(Elf32_##kind, field), sizeof(((Elf32_##kind *)0)->field)))
#define ENTRY_SIZE(view, kind) ((view)->wide ? sizeof(Elf64_##kind) : sizeof(Elf32_##kind))

static __u64 number(const struct elf_view *view, const unsigned char *bytes, size_t width)
{
	__u64 value = 0;

	for (size_t i = 0; i < width; i++)
		value = value << 8 | bytes[view->big_endian ? i : width - 1 - i];
	return value;
}

int elf_view_open(struct elf_view *view, const unsigned char *bytes, size_t size)
{
	*view = (struct elf_view){ .wide = bytes[EI_CLASS] == ELFCLASS64,
				   .big_endian = bytes[EI_DATA] == ELFDATA2MSB,
				   .abi_version = bytes[EI_ABIVERSION] };
	view->header_size = ENTRY_SIZE(view, Ehdr);
	if ((!view->wide && bytes[EI_CLASS] != ELFCLASS32) || (!view->big_endian && bytes[EI_DATA] != ELFDATA2LSB) ||
	    size < view->header_size)
		return -EBADMSG;
	view->type = FIELD(view, bytes, Ehdr, e_type);
	view->machine = FIELD(view, bytes, Ehdr, e_machine);
	view->flags = FIELD(view, bytes, Ehdr, e_flags);
	view->sections = FIELD(view, bytes, Ehdr, e_shoff);
	view->section_size = FIELD(view, bytes, Ehdr, e_shentsize);
	view->section_count = FIELD(view, bytes, Ehdr, e_shnum);
	view->segments = FIELD(view, bytes, Ehdr, e_phoff);
	view->segment_size = FIELD(view, bytes, Ehdr, e_phentsize);
	view->segment_count = FIELD(view, bytes, Ehdr, e_phnum);
	if (!view->segments)
		view->segment_count = 0;
	if ((view->sections && view->section_size < ENTRY_SIZE(view, Shdr)) ||
	    (view->segment_count && view->segment_size < ENTRY_SIZE(view, Phdr)))
		return -EBADMSG;
	return 0;
}

void elf_view_section(const struct elf_view *view, const unsigned char *entry, struct elf_section *section)
{
	section->type = FIELD(view, entry, Shdr, sh_type);
	section->link = FIELD(view, entry, Shdr, sh_link);
	section->info = FIELD(view, entry, Shdr, sh_info);
	section->address = FIELD(view, entry, Shdr, sh_addr);
	section->offset = FIELD(view, entry, Shdr, sh_offset);
	section->size = FIELD(view, entry, Shdr, sh_size);
	section->entry_size = FIELD(view, entry, Shdr, sh_entsize);
}

void elf_view_segment(const struct elf_view *view, const unsigned char *entry, struct elf_segment *segment)
{
	segment->type = FIELD(view, entry, Phdr, p_type);
	segment->address = FIELD(view, entry, Phdr, p_vaddr);
	segment->offset = FIELD(view, entry, Phdr, p_offset);
	segment->file_size = FIELD(view, entry, Phdr, p_filesz);
}

void elf_view_symbol(const struct elf_view *view, const unsigned char *entry, struct elf_symbol_entry *symbol)
{
	symbol->name = FIELD(view, entry, Sym, st_name);
	symbol->type = ELF64_ST_TYPE(FIELD(view, entry, Sym, st_info));
	symbol->other = FIELD(view, entry, Sym, st_other);
	symbol->section = FIELD(view, entry, Sym, st_shndx);
	symbol->value = FIELD(view, entry, Sym, st_value);
	symbol->size = FIELD(view, entry, Sym, st_size);
}
