/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of ELF objects, and which of them are kernels. Headers are read by hand: objects come from programs that may
 * be hostile.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "code/format/elf_view.h"
#include "code/format/readers.h"

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
	elf_view_section(&reader->view,
			 reader->reading->bytes + reader->view.sections + index * reader->view.section_size, section);
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
	if (reader->symbols.entry_size < elf_view_symbol_size(&reader->view) ||
	    !section_at(reader, reader->symbols.link, &reader->names) || reader->names.type == SHT_NOBITS ||
	    !code_inside(reader->names.offset, reader->names.size, reader->reading->size)) {
		code_set_error(contents, "the symbol table has no names, or too short entries");
		return false;
	}
	return true;
}

/* The name of a symbol; of no length when it has none. */
static struct slice name_of(struct reader *reader, const struct elf_symbol_entry *symbol)
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
		       int (*visit)(struct reader *reader, const struct elf_symbol_entry *symbol, struct slice name))
{
	const unsigned char *table = reader->reading->bytes + reader->symbols.offset;
	__u64 count = reader->symbols.size / reader->symbols.entry_size;
	struct elf_symbol_entry symbol;
	int error = 0;

	reader->names_left = (__u64)reader->reading->size * NAMES_MAX;
	for (__u64 i = 1; i < count && !error; i++) {
		elf_view_symbol(&reader->view, table + i * reader->symbols.entry_size, &symbol);
		if (symbol.section != SHN_UNDEF && (symbol.type == STT_FUNC || symbol.type == STT_OBJECT))
			error = visit(reader, &symbol, name_of(reader, &symbol));
	}
	return error;
}

static int add_kernel(struct reader *reader, const struct elf_symbol_entry *symbol, struct slice name)
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

static bool is_kernel(const struct reader *reader, const struct elf_symbol_entry *symbol, struct slice name)
{
	if (reader->view.machine == EM_CUDA)
		return symbol->other & CUDA_ENTRY;
	return reader->kernel_count &&
	       bsearch(&name, reader->kernels, reader->kernel_count, sizeof(name), compare_slices);
}

/* Where the symbol's bytes are; 0: nowhere in the object; ~0: behind its end. */
static __u64 offset_of(const struct reader *reader, const struct elf_symbol_entry *symbol)
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

static int add_function(struct reader *reader, const struct elf_symbol_entry *symbol, struct slice name)
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
	char machine[ELF_MACHINE_NAME];
	int error = 0;

	if (reading->size < EI_NIDENT || elf_view_open(&reader.view, reading->bytes, reading->size) != 0) {
		code_set_error(contents, "the header is cut off, or of an unknown class");
		return 0;
	}
	if (elf_view_machine(&reader.view, machine)) {
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
