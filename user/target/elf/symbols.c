/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sections; symbol tables, through them or through PT_DYNAMIC where they have been stripped; static probes, which are
 * notes in sections. A file can do without sections, and they can hold anything: those that do not fit are left out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/internal.h"

#define SECTION_NAME_MAX 64
#define HASH_BUCKET_MAX (4u << 20)
#define HASH_CHAIN_MAX 65536 /* symbols of one bucket; a few in real files */
#define FUNCTIONS (1u << STT_FUNC | 1u << STT_GNU_IFUNC)
#define FUNCTIONS_AND_DATA (FUNCTIONS | 1u << STT_OBJECT)

/* ---- sections ---- */

/* Headers of sections but the first, which is none. */
static int each_header(struct elf_file *file, int (*visit)(void *context, const void *header), void *context)
{
	const Elf64_Ehdr *header = &file->header;

	if (header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shnum < 2)
		return 0;
	return elf_file_each_entry(file, header->e_shoff + sizeof(Elf64_Shdr), sizeof(Elf64_Shdr), header->e_shnum - 1,
				   visit, context);
}

static int read_header(struct elf_file *file, size_t index, Elf64_Shdr *section)
{
	if (index >= file->header.e_shnum)
		return -EFAULT;
	return elf_file_read_offset(file, file->header.e_shoff + index * sizeof(*section), section, sizeof(*section));
}

static bool is_inside(const struct elf_file *file, const Elf64_Shdr *section)
{
	return section->sh_offset <= file->size && section->sh_size <= file->size - section->sh_offset;
}

struct section_walk {
	struct elf_file *file;
	Elf64_Shdr names;
	int (*visit)(void *context, const struct elf_section *section);
	void *context;
};

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

static int visit_section(void *context, const void *header)
{
	struct section_walk *walk = context;
	const Elf64_Shdr *section = header;
	char name[SECTION_NAME_MAX];

	if (section->sh_type == SHT_NOBITS || !section->sh_size || !is_inside(walk->file, section))
		return 0;
	read_name(walk->file, &walk->names, section->sh_name, name);
	return walk->visit(walk->context, &(struct elf_section){ name, section->sh_offset, section->sh_size });
}

int elf_file_each_section(struct elf_file *file, int (*visit)(void *context, const struct elf_section *section),
			  void *context)
{
	struct section_walk walk = { .file = file, .visit = visit, .context = context };

	return read_header(file, file->header.e_shstrndx, &walk.names) ? 0 : each_header(file, visit_section, &walk);
}

/* ---- where symbol tables lie ---- */

static int visit_table(void *context, const void *header)
{
	struct elf_file *file = context;
	const Elf64_Shdr *section = header;
	struct elf_symbol_table *table = section->sh_type == SHT_DYNSYM ? &file->dynamic :
					 section->sh_type == SHT_SYMTAB ? &file->full :
									  NULL;
	Elf64_Shdr strings;

	if (!table || table->count || section->sh_entsize != sizeof(Elf64_Sym) || !is_inside(file, section) ||
	    read_header(file, section->sh_link, &strings) || strings.sh_type != SHT_STRTAB ||
	    !is_inside(file, &strings))
		return 0;
	table->offset = section->sh_offset;
	table->count = section->sh_size / sizeof(Elf64_Sym);
	table->strings_offset = strings.sh_offset;
	table->strings_size = strings.sh_size;
	return 0;
}

static int visit_bucket(void *context, const void *entry)
{
	__u32 *last = context, bucket = *(const __u32 *)entry;

	*last = bucket > *last ? bucket : *last;
	return 0;
}

/* The last chain of a GNU hash table ends with the last symbol: nothing else in PT_DYNAMIC has their number. */
static size_t count_by_gnu_hash(struct elf_file *file)
{
	__u32 header[4], last = 0, chain;
	__u64 buckets, chains, offset, left;

	if (elf_file_read(file, file->gnu_hash, header, sizeof(header)) || header[0] > HASH_BUCKET_MAX ||
	    header[2] > HASH_BUCKET_MAX)
		return 0;
	buckets = file->gnu_hash + sizeof(header) + 8ull * header[2];
	chains = buckets + 4ull * header[0];
	if (elf_file_locate(file, buckets, &offset, &left) || left < 4ull * header[0])
		return 0;
	elf_file_each_entry(file, offset, sizeof(last), header[0], visit_bucket, &last);
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
	each_header(file, visit_table, file);
	if (!file->dynamic.count)
		dynamic_table_from_segment(file);
	limit_table(file, &file->dynamic, "dynamic symbol");
	limit_table(file, &file->full, "symbol");
}

/* ---- symbols ---- */

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

struct symbol_walk {
	struct elf_symbol_table *table;
	unsigned int types; /* bits (1 << STT_...) of those that are visited */
	int (*visit)(void *context, const struct elf_symbol *symbol);
	void *context;
};

static int visit_symbol(void *context, const void *entry)
{
	struct symbol_walk *walk = context;
	struct elf_symbol_table *table = walk->table;
	const Elf64_Sym *symbol = entry;
	char *name;

	if (!(walk->types >> ELF64_ST_TYPE(symbol->st_info) & 1) || symbol->st_shndx == SHN_UNDEF ||
	    !symbol->st_value || !symbol->st_name || symbol->st_name >= table->strings_size)
		return 0;
	name = table->strings + symbol->st_name;
	if (!cut_version(name, table->strings_size - symbol->st_name))
		return 0;
	return walk->visit(walk->context, &(struct elf_symbol){
						  .name = name,
						  .address = symbol->st_value,
						  .size = symbol->st_size,
						  .indirect = ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC,
					  });
}

static int walk_table(struct elf_file *file, struct elf_symbol_table *table, unsigned int types,
		      int (*visit)(void *context, const struct elf_symbol *symbol), void *context)
{
	struct symbol_walk walk = { table, types, visit, context };
	int error;

	if (!table->count)
		return 0;
	error = load_strings(file, table);
	if (error)
		return error == -EFAULT ? 0 : error;
	return elf_file_each_entry(file, table->offset, sizeof(Elf64_Sym), table->count, visit_symbol, &walk);
}

static int walk_tables(struct elf_file *file, unsigned int types,
		       int (*visit)(void *context, const struct elf_symbol *symbol), void *context)
{
	int stop;

	elf_file_locate_tables(file);
	stop = walk_table(file, &file->dynamic, types, visit, context);
	return stop ? stop : walk_table(file, &file->full, types, visit, context);
}

int elf_file_each_function(struct elf_file *file, int (*visit)(void *context, const struct elf_symbol *symbol),
			   void *context)
{
	return walk_tables(file, FUNCTIONS, visit, context);
}

int elf_file_each_symbol(struct elf_file *file, int (*visit)(void *context, const struct elf_symbol *symbol),
			 void *context)
{
	return walk_tables(file, FUNCTIONS_AND_DATA, visit, context);
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

/*
 * ---- static probes: notes named "stapsdt" that name a place in the code, as SystemTap laid them down ----
 * (sourceware.org/systemtap/wiki/UserSpaceProbeImplementation). They lie in sections that are not loaded; stripping keeps them.
 */

#define NOTE_NAME "stapsdt"
#define NOTE_TYPE 3
#define NOTE_ALIGN 4

struct probe_walk {
	struct elf_file *file;
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
static int visit_probe_note(void *context, const struct elf_note *note)
{
	struct probe_walk *walk = context;
	struct elf_probe probe;
	__u64 addresses[3];
	size_t at = sizeof(addresses);

	if (note->type != NOTE_TYPE || note->name_length != sizeof(NOTE_NAME) ||
	    memcmp(note->name, NOTE_NAME, sizeof(NOTE_NAME)) != 0 || note->length < sizeof(addresses) ||
	    walk->seen >= ELF_PROBE_MAX)
		return 0;
	memcpy(addresses, note->content, sizeof(addresses));
	probe.address = addresses[0];
	probe.semaphore = addresses[2];
	probe.provider = take_string(note->content, note->length, &at);
	probe.name = probe.provider ? take_string(note->content, note->length, &at) : NULL;
	probe.arguments = probe.name ? take_string(note->content, note->length, &at) : NULL;
	if (!probe.arguments)
		return 0;
	walk->seen++;
	return walk->visit(walk->context, &probe);
}

static int visit_note_section(void *context, const void *header)
{
	struct probe_walk *walk = context;
	const Elf64_Shdr *section = header;

	if (section->sh_type != SHT_NOTE || section->sh_size > ELF_PROBE_BYTES_MAX)
		return 0;
	return elf_file_each_note(walk->file, section->sh_offset, section->sh_size, NOTE_ALIGN, visit_probe_note, walk);
}

int elf_file_each_probe(struct elf_file *file, int (*visit)(void *context, const struct elf_probe *probe),
			void *context)
{
	struct probe_walk walk = { .file = file, .visit = visit, .context = context };

	return each_header(file, visit_note_section, &walk);
}
