/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbol tables: through section headers, or through PT_DYNAMIC where those have been stripped. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/internal.h"

#define SYMBOLS_AT_ONCE 1024
#define HASH_BUCKET_MAX (4u << 20)
#define HASH_CHAIN_MAX 65536 /* symbols of one bucket; a few in real files */
#define FUNCTIONS (1u << STT_FUNC | 1u << STT_GNU_IFUNC)
#define FUNCTIONS_AND_DATA (FUNCTIONS | 1u << STT_OBJECT)

int elf_file_read_section(struct elf_file *file, const Elf64_Ehdr *header, size_t index, Elf64_Shdr *section)
{
	return elf_file_read_offset(file, header->e_shoff + index * sizeof(*section), section, sizeof(*section));
}

static void table_from_section(struct elf_file *file, const Elf64_Ehdr *header, const Elf64_Shdr *section,
			       struct elf_symbol_table *table)
{
	Elf64_Shdr strings;

	if (table->count || section->sh_entsize != sizeof(Elf64_Sym) || section->sh_link >= header->e_shnum ||
	    section->sh_offset > file->size || section->sh_size > file->size - section->sh_offset ||
	    elf_file_read_section(file, header, section->sh_link, &strings) || strings.sh_type != SHT_STRTAB ||
	    strings.sh_offset > file->size || strings.sh_size > file->size - strings.sh_offset)
		return;
	table->offset = section->sh_offset;
	table->count = section->sh_size / sizeof(Elf64_Sym);
	table->strings_offset = strings.sh_offset;
	table->strings_size = strings.sh_size;
}

static void tables_from_sections(struct elf_file *file)
{
	Elf64_Shdr section;
	Elf64_Ehdr header;

	if (elf_file_read_offset(file, 0, &header, sizeof(header)) || header.e_shentsize != sizeof(section))
		return;
	for (size_t i = 1; i < header.e_shnum; i++) {
		if (elf_file_read_section(file, &header, i, &section))
			return;
		if (section.sh_type == SHT_DYNSYM)
			table_from_section(file, &header, &section, &file->dynamic);
		else if (section.sh_type == SHT_SYMTAB)
			table_from_section(file, &header, &section, &file->full);
	}
}

/* The last chain of a GNU hash table ends with the last symbol: nothing else in PT_DYNAMIC has their number. */
static size_t count_by_gnu_hash(struct elf_file *file)
{
	__u32 header[4], chunk[256], last = 0, chain;
	__u64 buckets, chains;

	if (elf_file_read(file, file->gnu_hash, header, sizeof(header)) || header[0] > HASH_BUCKET_MAX ||
	    header[2] > HASH_BUCKET_MAX)
		return 0;
	buckets = file->gnu_hash + sizeof(header) + 8ull * header[2];
	chains = buckets + 4ull * header[0];
	for (__u32 done = 0; done < header[0];) {
		__u32 part = header[0] - done < 256 ? header[0] - done : 256;

		if (elf_file_read(file, buckets + 4ull * done, chunk, 4ull * part))
			return 0;
		for (__u32 i = 0; i < part; i++)
			if (chunk[i] > last)
				last = chunk[i];
		done += part;
	}
	if (last < header[1])
		return header[1]; /* nothing is defined; undefined symbols are not hashed */
	for (unsigned int i = 0; i < HASH_CHAIN_MAX; i++) {
		if (elf_file_read(file, chains + 4ull * (last - header[1]), &chain, sizeof(chain)))
			return 0;
		last++;
		if (chain & 1)
			return last;
	}
	return 0;
}

static size_t count_by_hash(struct elf_file *file)
{
	__u32 header[2];

	return elf_file_read(file, file->hash, header, sizeof(header)) ? 0 : header[1];
}

static void dynamic_table_from_segment(struct elf_file *file)
{
	struct elf_symbol_table table = { 0 };
	__u64 left;

	if (!file->dynamic_symbols || !file->dynamic_strings ||
	    elf_file_locate(file, file->dynamic_symbols, &table.offset, &left))
		return;
	table.count = file->hash ? count_by_hash(file) : 0;
	if (!table.count && file->gnu_hash)
		table.count = count_by_gnu_hash(file);
	if (table.count > left / sizeof(Elf64_Sym))
		table.count = left / sizeof(Elf64_Sym);
	if (elf_file_locate(file, file->dynamic_strings, &table.strings_offset, &left))
		return;
	table.strings_size = file->dynamic_strings_size < left ? file->dynamic_strings_size : left;
	file->dynamic = table;
}

static void limit_table(struct elf_file *file, struct elf_symbol_table *table, const char *what)
{
	if (table->strings_size > ELF_STRINGS_MAX) {
		log_warn(&file->log, "%s: names of its %s table exceed %u MiB: not read", file->name, what,
			 ELF_STRINGS_MAX >> 20);
		table->count = 0;
	}
	if (table->count > ELF_SYMBOL_MAX) {
		log_warn(&file->log, "%s: reading only the first %u symbols of its %s table", file->name,
			 ELF_SYMBOL_MAX, what);
		table->count = ELF_SYMBOL_MAX;
	}
}

void elf_file_locate_tables(struct elf_file *file)
{
	if (file->tables_located)
		return;
	file->tables_located = true;
	tables_from_sections(file);
	if (!file->dynamic.count)
		dynamic_table_from_segment(file);
	limit_table(file, &file->dynamic, "dynamic symbol");
	limit_table(file, &file->full, "symbol");
}

static int load_strings(struct elf_file *file, struct elf_symbol_table *table)
{
	int error;

	if (table->strings)
		return 0;
	table->strings = malloc(table->strings_size + 1);
	if (!table->strings)
		return -ENOMEM;
	error = elf_file_read_offset(file, table->strings_offset, table->strings, table->strings_size);
	if (error) {
		free(table->strings);
		table->strings = NULL;
		return error;
	}
	table->strings[table->strings_size] = '\0';
	return 0;
}

/*
 * Names in .symtab carry their version: "clFinish@@OPENCL_1.0". Cutting in place is right also where the linker let
 * strings share their tails. False for a name that is too long: with a limit, a file with all symbols in one huge
 * string cannot make the walk quadratic.
 */
static bool cut_version(char *name, size_t room)
{
	size_t length = strnlen(name, room < ELF_NAME_MAX ? room : ELF_NAME_MAX);
	char *at;

	if (!length || name[length])
		return false;
	at = memchr(name + 1, '@', length - 1);
	if (at)
		*at = '\0';
	return true;
}

static bool is_defined(const struct elf_symbol_table *table, const Elf64_Sym *symbol, unsigned int types)
{
	return types >> ELF64_ST_TYPE(symbol->st_info) & 1 && symbol->st_shndx != SHN_UNDEF && symbol->st_value &&
	       symbol->st_name && symbol->st_name < table->strings_size;
}

/* types: bits (1 << STT_...) of those that are visited. */
static int walk_table(struct elf_file *file, struct elf_symbol_table *table, unsigned int types,
		      int (*visit)(void *context, const struct elf_symbol *symbol), void *context)
{
	Elf64_Sym symbols[SYMBOLS_AT_ONCE];
	int error;

	if (!table->count)
		return 0;
	error = load_strings(file, table);
	if (error)
		return error == -EFAULT ? 0 : error;
	for (size_t done = 0; done < table->count;) {
		size_t part = table->count - done < SYMBOLS_AT_ONCE ? table->count - done : SYMBOLS_AT_ONCE;

		/* a file that was cut has no further symbols */
		if (elf_file_read_offset(file, table->offset + done * sizeof(*symbols), symbols,
					 part * sizeof(*symbols)))
			return 0;
		for (size_t i = 0; i < part; i++) {
			struct elf_symbol symbol = { .address = symbols[i].st_value, .size = symbols[i].st_size };
			char *name;
			int stop;

			if (!is_defined(table, &symbols[i], types))
				continue;
			name = table->strings + symbols[i].st_name;
			if (!cut_version(name, table->strings_size - symbols[i].st_name))
				continue;
			symbol.name = name;
			symbol.indirect = ELF64_ST_TYPE(symbols[i].st_info) == STT_GNU_IFUNC;
			stop = visit(context, &symbol);
			if (stop)
				return stop;
		}
		done += part;
	}
	return 0;
}

int elf_file_each_function(struct elf_file *file, int (*visit)(void *context, const struct elf_symbol *symbol),
			   void *context)
{
	int stop;

	elf_file_locate_tables(file);
	stop = walk_table(file, &file->dynamic, FUNCTIONS, visit, context);
	return stop ? stop : walk_table(file, &file->full, FUNCTIONS, visit, context);
}

int elf_file_each_symbol(struct elf_file *file, int (*visit)(void *context, const struct elf_symbol *symbol),
			 void *context)
{
	int stop;

	elf_file_locate_tables(file);
	stop = walk_table(file, &file->dynamic, FUNCTIONS_AND_DATA, visit, context);
	return stop ? stop : walk_table(file, &file->full, FUNCTIONS_AND_DATA, visit, context);
}

static int compare_names(void *context, const struct elf_symbol *symbol)
{
	for (const char *const *name = context; *name; name++)
		if (!strcmp(*name, symbol->name))
			return 1;
	return 0;
}

bool elf_file_exports_any(struct elf_file *file, const char *const *names)
{
	elf_file_locate_tables(file);
	return walk_table(file, &file->dynamic, FUNCTIONS_AND_DATA, compare_names, (void *)names) == 1;
}

static int compare_name(void *context, const struct elf_symbol *symbol)
{
	return strcmp(context, symbol->name) == 0;
}

bool elf_file_exports(struct elf_file *file, const char *name)
{
	elf_file_locate_tables(file);
	return walk_table(file, &file->dynamic, FUNCTIONS, compare_name, (void *)name) == 1;
}
