/* SPDX-License-Identifier: BSD-2-Clause */
/* What words of data hold once the dynamic loader has been there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "target/elf/internal.h"

/* ---- relocation types of machines ---- */

/* The word becomes load address plus addend. */
static bool is_relative(enum elf_machine machine, unsigned int type)
{
	return type == (machine == ELF_MACHINE_X86_64 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE);
}

/* The word becomes the address of a symbol, plus addend. */
static bool is_symbol(enum elf_machine machine, unsigned int type)
{
	if (machine == ELF_MACHINE_X86_64)
		return type == R_X86_64_64 || type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT;
	return type == R_AARCH64_ABS64 || type == R_AARCH64_GLOB_DAT || type == R_AARCH64_JUMP_SLOT;
}

/* x86-64's GLOB_DAT and JUMP_SLOT have no addend, whatever the field holds. */
static bool has_addend(enum elf_machine machine, unsigned int type)
{
	return machine != ELF_MACHINE_X86_64 || (type != R_X86_64_GLOB_DAT && type != R_X86_64_JUMP_SLOT);
}

/* ---- tables ---- */

struct loading {
	struct elf_file *file;
	Elf64_Sym *symbols; /* .dynsym */
	size_t symbol_count;
	__u64 next; /* word that the next bitmap of RELR is about */
};

static int add(struct loading *loading, __u64 address, __u64 value)
{
	struct elf_file *file = loading->file;

	if (file->relocation_count == ELF_RELOCATION_MAX)
		return -E2BIG;
	return vec_push(file->relocations, file->relocation_count,
			(struct elf_relocation){ .address = address, .value = value });
}

/* Value of a symbol that this file defines at an address known before it runs. */
static bool symbol_value(const struct loading *loading, size_t index, __u64 *value)
{
	const Elf64_Sym *symbol;

	if (index >= loading->symbol_count)
		return false;
	symbol = &loading->symbols[index];
	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS || !symbol->st_value ||
	    ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC || ELF64_ST_TYPE(symbol->st_info) == STT_TLS)
		return false;
	*value = symbol->st_value;
	return true;
}

static int add_entry(struct loading *loading, const Elf64_Rela *entry, bool addend_in_place)
{
	enum elf_machine machine = loading->file->machine;
	unsigned int type = ELF64_R_TYPE(entry->r_info);
	__u64 addend = (__u64)entry->r_addend, value;

	if (is_relative(machine, type))
		value = 0;
	else if (!is_symbol(machine, type) || !symbol_value(loading, ELF64_R_SYM(entry->r_info), &value))
		return 0;
	else if (!has_addend(machine, type))
		return add(loading, entry->r_offset, value);
	if (addend_in_place && elf_file_read(loading->file, entry->r_offset, &addend, sizeof(addend)))
		return 0;
	return add(loading, entry->r_offset, value + addend);
}

static int visit_rela(void *context, const void *entry)
{
	return add_entry(context, entry, false);
}

static int visit_rel(void *context, const void *entry)
{
	const Elf64_Rel *rel = entry;

	return add_entry(context, &(Elf64_Rela){ .r_offset = rel->r_offset, .r_info = rel->r_info }, true);
}

static int add_in_place(struct loading *loading, __u64 address)
{
	__u64 value;

	if (elf_file_read(loading->file, address, &value, sizeof(value)))
		return 0;
	return add(loading, address, value);
}

/* An even word is the address of one relocation, an odd one a bitmap of the 63 words that follow the last. */
static int visit_relr(void *context, const void *entry)
{
	struct loading *loading = context;
	__u64 word = *(const __u64 *)entry;
	int error = 0;

	if (!(word & 1)) {
		loading->next = word + 8;
		return add_in_place(loading, word);
	}
	for (unsigned int bit = 1; bit < 64 && !error; bit++)
		if (word >> bit & 1)
			error = add_in_place(loading, loading->next + 8 * (bit - 1));
	loading->next += 8 * 63;
	return error;
}

/* As much of a table as its segment has in the file. */
static int load_table(struct loading *loading, const struct elf_range *range, size_t entry_size,
		      int (*visit)(void *context, const void *entry))
{
	__u64 offset, left;

	if (elf_file_locate(loading->file, range->address, &offset, &left))
		return 0;
	return elf_file_each_entry(loading->file, offset, entry_size,
				   (range->size < left ? range->size : left) / entry_size, visit, loading);
}

static int load_symbols(struct loading *loading)
{
	struct elf_file *file = loading->file;
	size_t size;

	elf_file_locate_tables(file);
	if (!file->dynamic.count)
		return 0;
	size = file->dynamic.count * sizeof(*loading->symbols);
	loading->symbols = malloc(size);
	if (!loading->symbols)
		return -ENOMEM;
	if (elf_file_read_offset(file, file->dynamic.offset, loading->symbols, size) == 0)
		loading->symbol_count = file->dynamic.count;
	return 0;
}

static int compare(const void *left, const void *right)
{
	const struct elf_relocation *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

/* Linkers sort relative relocations, and the others are few: most often there is next to nothing to sort. */
static void sort(struct elf_file *file)
{
	for (size_t i = 1; i < file->relocation_count; i++) {
		if (file->relocations[i - 1].address > file->relocations[i].address) {
			qsort(file->relocations, file->relocation_count, sizeof(*file->relocations), compare);
			return;
		}
	}
}

static int load(struct elf_file *file)
{
	struct loading loading = { .file = file };
	int error;

	file->relocations_loaded = true;
	error = load_symbols(&loading);
	if (!error)
		error = load_table(&loading, &file->rela, sizeof(Elf64_Rela), visit_rela);
	if (!error)
		error = load_table(&loading, &file->rel, sizeof(Elf64_Rel), visit_rel);
	if (!error)
		error = load_table(&loading, &file->relr, sizeof(Elf64_Relr), visit_relr);
	if (!error)
		error = file->plt_is_rela ? load_table(&loading, &file->plt, sizeof(Elf64_Rela), visit_rela) :
					    load_table(&loading, &file->plt, sizeof(Elf64_Rel), visit_rel);
	free(loading.symbols);
	if (error == -E2BIG) {
		log_warn(&file->log, "%s: more than %u relocations: API tables may be read incompletely", file->name,
			 ELF_RELOCATION_MAX);
		error = 0;
	}
	sort(file);
	return error;
}

int elf_file_relocated(struct elf_file *file, __u64 address, __u64 *value)
{
	int error = file->relocations_loaded ? 0 : load(file);
	size_t first;

	if (error)
		return error;
	first = vec_first(file->relocation_count, i, file->relocations[i].address < address);
	if (first < file->relocation_count && file->relocations[first].address == address) {
		*value = file->relocations[first].value;
		return 0;
	}
	if (file->fixed_address && elf_file_read(file, address, value, sizeof(*value)) == 0)
		return 0;
	return -ENOENT;
}

int elf_file_each_relocated(struct elf_file *file, int (*visit)(void *context, __u64 address, __u64 value),
			    void *context)
{
	int error = file->relocations_loaded ? 0 : load(file);

	for (size_t i = 0; i < file->relocation_count && !error; i++)
		error = visit(context, file->relocations[i].address, file->relocations[i].value);
	return error;
}
