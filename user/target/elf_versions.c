/* SPDX-License-Identifier: BSD-2-Clause */
/* Versions that a file defines for its symbols, as PT_DYNAMIC leads to them: they stay in a stripped library. */
#include <errno.h>
#include <string.h>

#include "target/elf_internal.h"

/* A name that is not wholly in the table, or too long, is none: -ENOENT. */
static int read_name(struct elf_file *file, __u32 offset, char name[ELF_VERSION_LENGTH + 1])
{
	__u64 left = file->dynamic_strings_size;
	size_t length = ELF_VERSION_LENGTH + 1;

	if (offset >= left)
		return -ENOENT;
	if (left - offset < length)
		length = (size_t)(left - offset);
	if (elf_file_read(file, file->dynamic_strings + offset, name, length) || !memchr(name, '\0', length))
		return -ENOENT;
	return 0;
}

int elf_file_each_version(struct elf_file *file, int (*visit)(void *context, const char *version), void *context)
{
	char name[ELF_VERSION_LENGTH + 1];
	__u64 address = file->versions;
	int result = 0;

	for (unsigned int i = 0; address && i < ELF_VERSION_MAX && !result; i++) {
		Elf64_Verdaux names;
		Elf64_Verdef version;

		if (elf_file_read(file, address, &version, sizeof(version)) || version.vd_version != VER_DEF_CURRENT)
			return 0; /* damaged: what has been seen is all there is */
		/* The first name is the version's own, further ones those of versions that it follows. */
		if (!(version.vd_flags & VER_FLG_BASE) && version.vd_cnt &&
		    !elf_file_read(file, address + version.vd_aux, &names, sizeof(names)) &&
		    !read_name(file, names.vda_name, name))
			result = visit(context, name);
		address = version.vd_next ? address + version.vd_next : 0;
	}
	return result;
}
