/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ELF objects: their functions, which of them are kernels, what machine they are for, and how far they reach. Headers
 * are read by hand: objects come from programs that may be hostile, and have either width and byte order.
 */
#include <elf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "code/format/readers.h"

/* ---- headers, by fields: numbers are as in the object, nothing but what is named here is checked ---- */

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

struct elf_symbol {
	unsigned int name, type, other, section;
	__u64 value, size;
};

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

/* From the first bytes, at least EI_NIDENT. 0; -EBADMSG: of no known class or byte order, or too short. */
static int open_view(struct elf_view *view, const unsigned char *bytes, size_t size)
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

/* At entry there are as many bytes as an entry of the class has. */
static void view_section(const struct elf_view *view, const unsigned char *entry, struct elf_section *section)
{
	section->type = FIELD(view, entry, Shdr, sh_type);
	section->link = FIELD(view, entry, Shdr, sh_link);
	section->info = FIELD(view, entry, Shdr, sh_info);
	section->address = FIELD(view, entry, Shdr, sh_addr);
	section->offset = FIELD(view, entry, Shdr, sh_offset);
	section->size = FIELD(view, entry, Shdr, sh_size);
	section->entry_size = FIELD(view, entry, Shdr, sh_entsize);
}

static void view_segment(const struct elf_view *view, const unsigned char *entry, struct elf_segment *segment)
{
	segment->type = FIELD(view, entry, Phdr, p_type);
	segment->address = FIELD(view, entry, Phdr, p_vaddr);
	segment->offset = FIELD(view, entry, Phdr, p_offset);
	segment->file_size = FIELD(view, entry, Phdr, p_filesz);
}

static void view_symbol(const struct elf_view *view, const unsigned char *entry, struct elf_symbol *symbol)
{
	symbol->name = FIELD(view, entry, Sym, st_name);
	symbol->type = ELF64_ST_TYPE(FIELD(view, entry, Sym, st_info));
	symbol->other = FIELD(view, entry, Sym, st_other);
	symbol->section = FIELD(view, entry, Sym, st_shndx);
	symbol->value = FIELD(view, entry, Sym, st_value);
	symbol->size = FIELD(view, entry, Sym, st_size);
}

/* ---- machines ---- */

#define MACHINE_NAME 32 /* bytes */
/* e_flags of AMD GPUs, after LLVM's User Guide for AMDGPU. */
#define AMDGPU_PROCESSOR 0xff
/* e_flags of NVIDIA GPUs: up to ABI 7 the processor is in the low byte, from ABI 8 on (CUDA 13) in the next. */
#define CUDA_ABI_SHIFTED 8
#define CUDA_ACCELERATED_SHIFTED 0x8 /* sm_90a, ... */
#define CUDA_ACCELERATED 0x800

#ifndef EM_LOONGARCH
#define EM_LOONGARCH 258
#endif

/* From 0x20 on; NULL: reserved. */
#define AMDGPU_FIRST 0x20
static const char *const amdgpu[] = { "gfx600",
				      "gfx601",
				      "gfx700",
				      "gfx701",
				      "gfx702",
				      "gfx703",
				      "gfx704",
				      NULL,
				      "gfx801",
				      "gfx802",
				      "gfx803",
				      "gfx810",
				      "gfx900",
				      "gfx902",
				      "gfx904",
				      "gfx906",
				      "gfx908",
				      "gfx909",
				      "gfx90c",
				      "gfx1010",
				      "gfx1011",
				      "gfx1012",
				      "gfx1030",
				      "gfx1031",
				      "gfx1032",
				      "gfx1033",
				      "gfx602",
				      "gfx705",
				      "gfx805",
				      "gfx1035",
				      "gfx1034",
				      "gfx90a",
				      "gfx940",
				      "gfx1100",
				      "gfx1013",
				      "gfx1150",
				      "gfx1103",
				      "gfx1036",
				      "gfx1101",
				      "gfx1102",
				      "gfx1200",
				      "gfx1250",
				      "gfx1151",
				      "gfx941",
				      "gfx942",
				      NULL,
				      "gfx1201",
				      "gfx950",
				      "gfx1310",
				      "gfx9-generic",
				      "gfx10-1-generic",
				      "gfx10-3-generic",
				      "gfx11-generic",
				      "gfx1152",
				      NULL,
				      "gfx1154",
				      "gfx1153",
				      "gfx12-generic",
				      "gfx1251",
				      "gfx12-5-generic",
				      "gfx1172",
				      "gfx1170",
				      "gfx1171",
				      "gfx9-4-generic" };

static const struct {
	unsigned int machine;
	const char *narrow, *wide;
} processors[] = {
	{ EM_386, "i386", NULL },
	{ EM_X86_64, "x32", "x86_64" },
	{ EM_ARM, "arm", NULL },
	{ EM_AARCH64, "aarch64_ilp32", "aarch64" },
	{ EM_RISCV, "riscv32", "riscv64" },
	{ EM_PPC64, NULL, "ppc64" },
	{ EM_S390, "s390", "s390x" },
	{ EM_LOONGARCH, "loongarch32", "loongarch64" },
	{ EM_XTENSA, "xtensa", NULL },
	{ EM_QDSP6, "hexagon", NULL },
	{ EM_BPF, NULL, "bpf" },
};

static const char *amdgpu_name(unsigned int flags)
{
	unsigned int index = (flags & AMDGPU_PROCESSOR) - AMDGPU_FIRST;

	return index < sizeof(amdgpu) / sizeof(amdgpu[0]) ? amdgpu[index] : NULL;
}

static const char *processor_name(const struct elf_view *view)
{
	for (size_t i = 0; i < sizeof(processors) / sizeof(processors[0]); i++)
		if (processors[i].machine == view->machine)
			return view->wide ? processors[i].wide : processors[i].narrow;
	return NULL;
}

/* Writes what code is for: "x86_64", "gfx90a", "sm_80". false: not known. */
static bool machine_name(const struct elf_view *view, char name[MACHINE_NAME])
{
	const char *known;

	if (view->machine == EM_CUDA) {
		bool shifted = view->abi_version >= CUDA_ABI_SHIFTED;
		unsigned int processor = (shifted ? view->flags >> 8 : view->flags) & 0xff;
		bool accelerated = view->flags & (shifted ? CUDA_ACCELERATED_SHIFTED : CUDA_ACCELERATED);

		snprintf(name, MACHINE_NAME, "sm_%u%s", processor, accelerated ? "a" : "");
		return processor;
	}
	known = view->machine == EM_AMDGPU ? amdgpu_name(view->flags) : processor_name(view);
	if (known)
		snprintf(name, MACHINE_NAME, "%s", known);
	return known;
}

/* ---- functions ---- */

#define CUDA_ENTRY 0x10 /* in st_other */
/* A kernel of AMD GPUs is a function NAME with a descriptor NAME.kd. Kernels of code object version 2 have none. */
#define DESCRIPTOR_SUFFIX ".kd"
#define DESCRIPTOR_SIZE 64
/* Names of all symbols together, in bytes of the object: more are possible only where names overlap on purpose. */
#define NAMES_MAX 4

struct slice {
	const char *bytes;
	size_t length;
};

struct reader {
	struct code_reading *reading;
	struct elf_view view;
	__u64 section_count;
	struct elf_section symbols, names;
	__u64 names_left;      /* bytes */
	struct slice *kernels; /* names, sorted */
	size_t kernel_count;
};

static bool section_at(const struct reader *reader, __u64 index, struct elf_section *section)
{
	if (index >= reader->section_count)
		return false;
	view_section(&reader->view, reader->reading->bytes + reader->view.sections + index * reader->view.section_size,
		     section);
	return true;
}

/* Sets the count of sections: 0 unless their table lies inside the object. */
static void count_sections(struct reader *reader)
{
	const struct code_reading *reading = reader->reading;
	const struct elf_view *view = &reader->view;
	__u64 count = view->section_count;
	struct elf_section first;

	if (!view->sections)
		return;
	if (!count && code_inside(view->sections, view->section_size, reading->size)) {
		reader->section_count = 1;
		section_at(reader, 0, &first);
		count = first.size;
	}
	reader->section_count = 0;
	if (count > reading->size || !code_inside(view->sections, count * view->section_size, reading->size))
		code_set_error(reading->contents, "the table of sections lies behind the end");
	else
		reader->section_count = count;
}

static bool is_better(const struct elf_section *section, const struct elf_section *found)
{
	return (section->type == SHT_SYMTAB && found->type != SHT_SYMTAB) ||
	       (section->type == SHT_DYNSYM && found->type == SHT_NULL);
}

/* The symbol table with most in it, and its names. false: there is none. */
static bool find_symbols(struct reader *reader)
{
	struct code_contents *contents = reader->reading->contents;
	struct elf_section section;

	for (__u64 i = 0; section_at(reader, i, &section); i++) {
		if (section.type == SHT_NULL || section.type == SHT_NOBITS)
			continue;
		if (!code_inside(section.offset, section.size, reader->reading->size)) {
			code_set_error(contents, "section %llu lies behind the end", i);
			continue;
		}
		if (is_better(&section, &reader->symbols))
			reader->symbols = section;
	}
	if (reader->symbols.type == SHT_NULL)
		return false;
	if (reader->symbols.entry_size < ENTRY_SIZE(&reader->view, Sym) ||
	    !section_at(reader, reader->symbols.link, &reader->names) || reader->names.type == SHT_NOBITS ||
	    !code_inside(reader->names.offset, reader->names.size, reader->reading->size)) {
		code_set_error(contents, "the symbol table has no names, or too short entries");
		return false;
	}
	return true;
}

/* The name of a symbol; of no length when it has none. */
static struct slice name_of(struct reader *reader, const struct elf_symbol *symbol)
{
	const char *names = (const char *)reader->reading->bytes + reader->names.offset;
	struct slice name = { names, 0 };
	const char *end;
	__u64 room;

	if (!symbol->name)
		return name;
	if (symbol->name >= reader->names.size) {
		code_set_error(reader->reading->contents, "the name of a symbol lies behind the end of all names");
		return name;
	}
	name.bytes += symbol->name;
	room = reader->names.size - symbol->name;
	if (room > reader->names_left)
		room = reader->names_left;
	end = memchr(name.bytes, '\0', room);
	if (!end) {
		code_set_error(reader->reading->contents, "the name of a symbol does not end, or names overlap");
		reader->names_left -= room;
		return name;
	}
	name.length = end - name.bytes;
	reader->names_left -= name.length;
	return name;
}

/* Calls visit for each symbol that is defined, until that returns an error. */
static int each_symbol(struct reader *reader,
		       int (*visit)(struct reader *reader, const struct elf_symbol *symbol, struct slice name))
{
	const unsigned char *table = reader->reading->bytes + reader->symbols.offset;
	__u64 count = reader->symbols.size / reader->symbols.entry_size;
	struct elf_symbol symbol;
	int error = 0;

	reader->names_left = (__u64)reader->reading->size * NAMES_MAX;
	for (__u64 i = 1; i < count && !error; i++) {
		view_symbol(&reader->view, table + i * reader->symbols.entry_size, &symbol);
		if (symbol.section != SHN_UNDEF && (symbol.type == STT_FUNC || symbol.type == STT_OBJECT))
			error = visit(reader, &symbol, name_of(reader, &symbol));
	}
	return error;
}

static int add_kernel(struct reader *reader, const struct elf_symbol *symbol, struct slice name)
{
	const size_t suffix = strlen(DESCRIPTOR_SUFFIX);

	if (symbol->type != STT_OBJECT || symbol->size != DESCRIPTOR_SIZE || name.length <= suffix ||
	    memcmp(name.bytes + name.length - suffix, DESCRIPTOR_SUFFIX, suffix) != 0)
		return 0;
	name.length -= suffix;
	return vec_push(reader->kernels, reader->kernel_count, name);
}

static int compare_slices(const void *left, const void *right)
{
	const struct slice *a = left, *b = right;
	int order = memcmp(a->bytes, b->bytes, a->length < b->length ? a->length : b->length);

	return order ? order : (a->length > b->length) - (a->length < b->length);
}

static bool is_kernel(const struct reader *reader, const struct elf_symbol *symbol, struct slice name)
{
	if (reader->view.machine == EM_CUDA)
		return symbol->other & CUDA_ENTRY;
	return reader->kernel_count &&
	       bsearch(&name, reader->kernels, reader->kernel_count, sizeof(name), compare_slices);
}

/* Where the symbol's bytes are; 0: nowhere in the object; ~0: behind its end. */
static __u64 offset_of(const struct reader *reader, const struct elf_symbol *symbol)
{
	struct elf_section section;
	__u64 base;

	if (!section_at(reader, symbol->section, &section) || section.type == SHT_NOBITS)
		return 0;
	base = reader->view.type == ET_REL ? 0 : section.address;
	if (symbol->value < base || !code_inside(section.offset, symbol->value - base, reader->reading->size))
		return ~0ull;
	return section.offset + (symbol->value - base);
}

static int add_function(struct reader *reader, const struct elf_symbol *symbol, struct slice name)
{
	struct code_contents *contents = reader->reading->contents;
	struct code_function function = { .size = symbol->size };

	if (symbol->type != STT_FUNC || !name.length)
		return 0;
	function.offset = offset_of(reader, symbol);
	if (function.offset && !code_inside(function.offset, function.size, reader->reading->size)) {
		code_set_error(contents, "function %.*s lies behind the end",
			       (int)(name.length > 64 ? 64 : name.length), name.bytes);
		function.offset = function.size = 0;
	}
	function.address = reader->view.type == ET_REL ? 0 : symbol->value;
	function.kernel = is_kernel(reader, symbol, name);
	return code_add_function(contents, name.bytes, name.length, &function);
}

int code_read_elf(struct code_reading *reading)
{
	struct reader reader = { .reading = reading };
	struct code_contents *contents = reading->contents;
	char machine[MACHINE_NAME];
	int error = 0;

	if (reading->size < EI_NIDENT || open_view(&reader.view, reading->bytes, reading->size) != 0)
		return code_set_error(contents, "the header is cut off, or of an unknown class");
	if (machine_name(&reader.view, machine)) {
		contents->machine = strdup(machine);
		if (!contents->machine)
			return -ENOMEM;
	}
	count_sections(&reader);
	if (!find_symbols(&reader))
		return 0;
	if (reader.view.machine == EM_AMDGPU) {
		error = each_symbol(&reader, add_kernel);
		if (reader.kernel_count)
			qsort(reader.kernels, reader.kernel_count, sizeof(*reader.kernels), compare_slices);
	}
	if (!error)
		error = each_symbol(&reader, add_function);
	free(reader.kernels);
	return error;
}

/* ---- how far an object reaches, by its headers ---- */

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

	view_section(&extent->view, entry, &section);
	if (section.type == SHT_NULL || section.type == SHT_NOBITS)
		return 0;
	return reach(extent, section.offset, section.size);
}

static int reach_segment(struct extent *extent, const unsigned char *entry)
{
	struct elf_segment segment;

	view_segment(&extent->view, entry, &segment);
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
		error = extent->read(extent->context, view->sections, extent->chunk, ENTRY_SIZE(view, Shdr));
		if (error)
			return error;
		view_section(view, extent->chunk, &first);
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
		error = open_view(&extent.view, header, length);
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
