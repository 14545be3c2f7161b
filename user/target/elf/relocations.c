/* SPDX-License-Identifier: BSD-2-Clause */
/* What words of data hold once the dynamic loader has been there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "target/elf/internal.h"
#include "target/elf/machine.h"

#define ENTRIES_AT_ONCE 512

struct loading {
	struct elf_file *file;
	Elf64_Sym *symbols; /* .dynsym */
	size_t symbol_count;
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

static int add_entry(struct loading *loading, const Elf64_Rela *entry, bool has_addend)
{
	enum elf_machine machine = loading->file->machine;
	unsigned int type = ELF64_R_TYPE(entry->r_info);
	__u64 addend = (__u64)entry->r_addend, value;

	if (elf_relocation_is_relative(machine, type))
		value = 0;
	else if (!elf_relocation_is_symbol(machine, type) || !symbol_value(loading, ELF64_R_SYM(entry->r_info), &value))
		return 0;
	else if (!elf_relocation_has_addend(machine, type))
		return add(loading, entry->r_offset, value);
	/* REL keeps the addend in the word itself */
	if (!has_addend && elf_file_read(loading->file, entry->r_offset, &addend, sizeof(addend)))
		return 0;
	return add(loading, entry->r_offset, value + addend);
}

/* A segment's zero-filled tail may be of any size; a table is made of bytes that are in the file. */
static __u64 range_size(const struct elf_file *file, const struct elf_range *range)
{
	return range->size <= file->size ? range->size : 0;
}

static int load_entries(struct loading *loading, const struct elf_range *range, bool has_addend)
{
	size_t entry_size = has_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
	unsigned char bytes[ENTRIES_AT_ONCE * sizeof(Elf64_Rela)];
	size_t count = range_size(loading->file, range) / entry_size;
	int error = 0;

	for (size_t done = 0; done < count && !error;) {
		size_t part = count - done < ENTRIES_AT_ONCE ? count - done : ENTRIES_AT_ONCE;

		if (elf_file_read(loading->file, range->address + done * entry_size, bytes, part * entry_size))
			return 0; /* cut short: what was read stays */
		for (size_t i = 0; i < part && !error; i++) {
			Elf64_Rela entry = { 0 };

			memcpy(&entry, bytes + i * entry_size, entry_size);
			error = add_entry(loading, &entry, has_addend);
		}
		done += part;
	}
	return error;
}

static int add_in_place(struct loading *loading, __u64 address)
{
	__u64 value;

	if (elf_file_read(loading->file, address, &value, sizeof(value)))
		return 0;
	return add(loading, address, value);
}

/* RELR: an even word is the address of one relocation, an odd one a bitmap of the 63 words that follow the last. */
static int load_relr(struct loading *loading, const struct elf_range *range)
{
	__u64 words[ENTRIES_AT_ONCE], next = 0;
	size_t count = range_size(loading->file, range) / sizeof(*words);
	int error = 0;

	for (size_t done = 0; done < count && !error;) {
		size_t part = count - done < ENTRIES_AT_ONCE ? count - done : ENTRIES_AT_ONCE;

		if (elf_file_read(loading->file, range->address + 8 * done, words, 8 * part))
			return 0;
		for (size_t i = 0; i < part && !error; i++) {
			if (!(words[i] & 1)) {
				error = add_in_place(loading, words[i]);
				next = words[i] + 8;
				continue;
			}
			for (unsigned int bit = 1; bit < 64 && !error; bit++)
				if (words[i] >> bit & 1)
					error = add_in_place(loading, next + 8 * (bit - 1));
			next += 8 * 63;
		}
		done += part;
	}
	return error;
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
		error = load_entries(&loading, &file->rela, true);
	if (!error)
		error = load_entries(&loading, &file->rel, false);
	if (!error)
		error = load_relr(&loading, &file->relr);
	if (!error)
		error = load_entries(&loading, &file->plt, file->plt_is_rela);
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
	size_t low = 0, high;
	int error = file->relocations_loaded ? 0 : load(file);

	if (error)
		return error;
	high = file->relocation_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (file->relocations[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < file->relocation_count && file->relocations[low].address == address) {
		*value = file->relocations[low].value;
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
