/* SPDX-License-Identifier: BSD-2-Clause */
/* How far an ELF object reaches, by its headers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "code/format/elf_view.h"
#include "code/format/readers.h"

#define CHUNK 65536u		 /* bytes of a table that are read at once */
#define TABLE_MAX (256u * CHUNK) /* a quarter of a million sections */

struct extent {
	code_read_fn read;
	void *context;
	__u64 limit;
	__u64 end;
	struct elf_view view;
	unsigned char *chunk;
};

static int reach(struct extent *extent, __u64 offset, __u64 length)
{
	if (length > ~0ull - offset)
		return -EBADMSG;
	if (offset + length > extent->limit)
		return -EFBIG;
	if (offset + length > extent->end)
		extent->end = offset + length;
	return 0;
}

static int reach_section(struct extent *extent, const unsigned char *entry)
{
	struct elf_section section;

	elf_view_section(&extent->view, entry, &section);
	if (section.type == SHT_NULL || section.type == SHT_NOBITS)
		return 0;
	return reach(extent, section.offset, section.size);
}

static int reach_segment(struct extent *extent, const unsigned char *entry)
{
	struct elf_segment segment;

	elf_view_segment(&extent->view, entry, &segment);
	return segment.type == PT_NULL ? 0 : reach(extent, segment.offset, segment.file_size);
}

static int reach_table(struct extent *extent, __u64 offset, __u64 count, unsigned int entry_size,
		       int (*visit)(struct extent *extent, const unsigned char *entry))
{
	unsigned int together = CHUNK / entry_size;
	int error;

	if (count > TABLE_MAX / entry_size)
		return -EBADMSG;
	error = reach(extent, offset, count * entry_size);
	for (__u64 i = 0; i < count && !error; i += together) {
		__u64 length = count - i < together ? count - i : together;

		error = extent->read(extent->context, offset + i * entry_size, extent->chunk, length * entry_size);
		for (__u64 j = 0; j < length && !error; j++)
			error = visit(extent, extent->chunk + j * entry_size);
	}
	return error;
}

static int reach_all(struct extent *extent)
{
	const struct elf_view *view = &extent->view;
	__u64 sections = view->section_count, segments = view->segment_count;
	struct elf_section first;
	int error = reach(extent, 0, view->header_size);

	if (!error && view->sections) {
		error = extent->read(extent->context, view->sections, extent->chunk,
				     view->wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr));
		if (error)
			return error;
		elf_view_section(view, extent->chunk, &first);
		sections = sections ? sections : first.size;
		segments = segments == PN_XNUM ? first.info : segments;
		error = reach_table(extent, view->sections, sections, view->section_size, reach_section);
	}
	if (!error && segments)
		error = reach_table(extent, view->segments, segments, view->segment_size, reach_segment);
	return error;
}

int code_elf_size(code_read_fn read, void *context, __u64 limit, __u64 *size)
{
	struct extent extent = { .read = read, .context = context, .limit = limit };
	unsigned char header[sizeof(Elf64_Ehdr)];
	size_t length;
	int error = read(context, 0, header, SELFMAG);

	if (!error && memcmp(header, ELFMAG, SELFMAG) != 0)
		error = -ENODATA;
	if (!error)
		error = read(context, 0, header, EI_NIDENT);
	if (error)
		return error;
	length = header[EI_CLASS] == ELFCLASS64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
	error = read(context, 0, header, length);
	if (!error)
		error = elf_view_open(&extent.view, header, length);
	if (error)
		return error;
	extent.chunk = malloc(CHUNK);
	if (!extent.chunk)
		return -ENOMEM;
	error = reach_all(&extent);
	free(extent.chunk);
	if (!error)
		*size = extent.end;
	return error;
}
