/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static probes: notes named "stapsdt" that name a place in the code, as SystemTap laid them down
 * (sourceware.org/systemtap/wiki/UserSpaceProbeImplementation). They lie in sections that are not loaded; stripping keeps them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/internal.h"

#define NOTE_NAME "stapsdt"
#define NOTE_TYPE 3
#define NOTE_ALIGN 4

struct walk {
	unsigned char *bytes; /* of one section, with a terminator behind */
	size_t length;
	size_t seen; /* in all sections */
	int (*visit)(void *context, const struct elf_probe *probe);
	void *context;
};

/* A string with its terminator in the note's content; moves at behind it. NULL: there is none. */
static const char *take_string(const unsigned char *content, size_t length, size_t *at)
{
	const unsigned char *end = *at < length ? memchr(content + *at, '\0', length - *at) : NULL;
	const char *text = (const char *)content + *at;

	if (!end)
		return NULL;
	*at = (size_t)(end - content) + 1;
	return text;
}

/* Three addresses, the second of which serves those who move code about, and three strings. */
static int look_at_note(struct walk *walk, const unsigned char *content, size_t length)
{
	struct elf_probe probe;
	__u64 addresses[3];
	size_t at = sizeof(addresses);

	if (length < sizeof(addresses) || walk->seen >= ELF_PROBE_MAX)
		return 0;
	memcpy(addresses, content, sizeof(addresses));
	probe.address = addresses[0];
	probe.semaphore = addresses[2];
	probe.provider = take_string(content, length, &at);
	probe.name = probe.provider ? take_string(content, length, &at) : NULL;
	probe.arguments = probe.name ? take_string(content, length, &at) : NULL;
	if (!probe.arguments)
		return 0;
	walk->seen++;
	return walk->visit(walk->context, &probe);
}

static int walk_notes(struct walk *walk)
{
	size_t at = 0;
	int result = 0;

	while (!result && walk->length - at >= sizeof(Elf64_Nhdr)) {
		size_t name = at + sizeof(Elf64_Nhdr), content, end;
		Elf64_Nhdr note;

		memcpy(&note, walk->bytes + at, sizeof(note));
		content = name + (((size_t)note.n_namesz + NOTE_ALIGN - 1) & ~(size_t)(NOTE_ALIGN - 1));
		end = content + (((size_t)note.n_descsz + NOTE_ALIGN - 1) & ~(size_t)(NOTE_ALIGN - 1));
		if (content > walk->length || note.n_descsz > walk->length - content)
			break;
		if (note.n_type == NOTE_TYPE && note.n_namesz == sizeof(NOTE_NAME) &&
		    !memcmp(walk->bytes + name, NOTE_NAME, sizeof(NOTE_NAME)))
			result = look_at_note(walk, walk->bytes + content, note.n_descsz);
		if (end >= walk->length)
			break;
		at = end;
	}
	return result;
}

static int walk_section(struct elf_file *file, const Elf64_Shdr *section, struct walk *walk)
{
	int result = 0;

	if (section->sh_type != SHT_NOTE || section->sh_size > ELF_PROBE_BYTES_MAX)
		return 0;
	walk->length = section->sh_size;
	walk->bytes = malloc(walk->length + 1);
	if (!walk->bytes)
		return -ENOMEM;
	walk->bytes[walk->length] = '\0';
	if (!elf_file_read_offset(file, section->sh_offset, walk->bytes, walk->length))
		result = walk_notes(walk);
	free(walk->bytes);
	return result;
}

int elf_file_each_probe(struct elf_file *file, int (*visit)(void *context, const struct elf_probe *probe),
			void *context)
{
	struct walk walk = { .visit = visit, .context = context };
	Elf64_Shdr section;
	Elf64_Ehdr header;
	int result = 0;

	if (elf_file_read_offset(file, 0, &header, sizeof(header)) || header.e_shentsize != sizeof(section))
		return 0;
	for (size_t i = 1; i < header.e_shnum && !result; i++) {
		if (elf_file_read_section(file, &header, i, &section))
			return 0;
		result = walk_section(file, &section, &walk);
	}
	return result;
}

int elf_file_data_offset(struct elf_file *file, __u64 address, __u64 *offset)
{
	__u64 left;

	if (!elf_file_is_writable(file, address))
		return -ENOENT;
	return elf_file_locate(file, address, offset, &left);
}
