/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sections by their names. A file can do without them, and they can hold anything: those that do not fit are left out.
 */
#include <string.h>

#include "target/elf/internal.h"

#define SECTION_NAME_MAX 64

/* "": it has none, or it lies behind the end of the file. */
static void read_name(struct elf_file *file, const Elf64_Shdr *names, __u64 at, char name[SECTION_NAME_MAX])
{
	__u64 length = at < names->sh_size ? names->sh_size - at : 0;

	memset(name, 0, SECTION_NAME_MAX);
	if (length > SECTION_NAME_MAX - 1)
		length = SECTION_NAME_MAX - 1;
	if (names->sh_offset > file->size || at > file->size - names->sh_offset)
		length = 0;
	else if (length > file->size - names->sh_offset - at)
		length = file->size - names->sh_offset - at;
	if (elf_file_read_offset(file, names->sh_offset + at, name, length))
		name[0] = '\0';
}

int elf_file_each_section(struct elf_file *file, int (*visit)(void *context, const struct elf_section *section),
			  void *context)
{
	Elf64_Shdr names, section_header;
	Elf64_Ehdr header;
	int stop = 0;

	if (elf_file_read_offset(file, 0, &header, sizeof(header)) || header.e_shentsize != sizeof(names) ||
	    header.e_shstrndx >= header.e_shnum || elf_file_read_section(file, &header, header.e_shstrndx, &names))
		return 0;
	for (size_t i = 1; i < header.e_shnum && !stop; i++) {
		struct elf_section section;
		char name[SECTION_NAME_MAX];

		if (elf_file_read_section(file, &header, i, &section_header))
			break;
		if (section_header.sh_type == SHT_NOBITS || !section_header.sh_size ||
		    section_header.sh_offset > file->size ||
		    section_header.sh_size > file->size - section_header.sh_offset)
			continue;
		read_name(file, &names, section_header.sh_name, name);
		section = (struct elf_section){ name, section_header.sh_offset, section_header.sh_size };
		stop = visit(context, &section);
	}
	return stop;
}
