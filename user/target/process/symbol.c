/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/process/symbol.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "target/elf/file.h"

#define OVERLAPS_MAX 16 /* symbols that are checked for one that contains an address */
#define STUB_PREFIX "__device_stub__"
#define STUB_PREFIX_LENGTH (sizeof(STUB_PREFIX) - 1)

struct place {
	__u64 address, size;
	const char *name; /* belongs to the file */
	size_t order;	  /* in which symbols came */
};

struct symbol_table {
	struct elf_file *elf; /* NULL: it is none */
	struct place *places; /* sorted by address, then order */
	size_t count;
};

void symbol_table_free(struct symbol_table *table)
{
	if (!table)
		return;
	elf_file_close(table->elf);
	free(table->places);
	free(table);
}

static int add_place(void *context, const struct elf_symbol *symbol)
{
	struct symbol_table *file = context;

	if (vec_reserve(file->places, file->count))
		return -ENOMEM;
	file->places[file->count] = (struct place){ symbol->address, symbol->size, symbol->name, file->count };
	file->count++;
	return 0;
}

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

int symbol_table_read(const struct log *log, int descriptor, const char *name, struct symbol_table **result)
{
	struct symbol_table *table = calloc(1, sizeof(*table));
	int error;

	if (!table)
		return -ENOMEM;
	error = elf_file_open_descriptor(log, descriptor, name, &table->elf);
	if (!error)
		error = elf_file_each_symbol(table->elf, add_place, table);
	if (error && error != -ENOEXEC && error != -ENOTSUP) {
		symbol_table_free(table);
		return error;
	}
	if (table->count)
		qsort(table->places, table->count, sizeof(*table->places), compare_places);
	*result = table;
	return 0;
}

/*
 * The symbol that begins at the address; else of those that begin before it, the nearest that contains it. Symbols
 * seldom overlap, so that a few steps back are enough.
 */
static const struct place *find_place(const struct symbol_table *file, __u64 address)
{
	size_t first = vec_first(file->count, i, file->places[i].address < address);

	if (first < file->count && file->places[first].address == address)
		return &file->places[first];
	for (size_t back = 1; back <= OVERLAPS_MAX && back <= first; back++) {
		const struct place *place = &file->places[first - back];

		if (address - place->address < place->size)
			return place;
	}
	return NULL;
}

int symbol_table_find(const struct symbol_table *table, __u64 at, char *name, size_t size, __u64 *offset)
{
	const struct place *place = NULL;
	__u64 address;

	if (table->elf && !elf_file_address(table->elf, at, &address))
		place = find_place(table, address);
	if (!place)
		return -ENOENT;
	snprintf(name, size, "%s", place->name);
	*offset = address - place->address;
	return 0;
}

/* ---- stubs ---- */

/* The length before the stub's identifier; NULL: the name is none of a function in namespaces that is a stub. */
static char *find_length(char *name, size_t *length)
{
	char *at = name;

	if (strncmp(at, "_Z", 2))
		return NULL;
	at += 2;
	at += *at == 'N';
	for (;;) {
		size_t left;
		char *end;

		at += *at == 'L';
		if (!isdigit((unsigned char)*at))
			return NULL;
		*length = strtoul(at, &end, 10);
		left = strlen(end);
		if (*length > left)
			return NULL;
		if (*length > STUB_PREFIX_LENGTH && !memcmp(end, STUB_PREFIX, STUB_PREFIX_LENGTH))
			return at;
		at = end + *length;
	}
}

void kernel_name_of_stub(char *name)
{
	char *digits, *kernel, number[24];
	size_t length, written;

	if (!strncmp(name, STUB_PREFIX, STUB_PREFIX_LENGTH) && name[STUB_PREFIX_LENGTH]) {
		memmove(name, name + STUB_PREFIX_LENGTH, strlen(name + STUB_PREFIX_LENGTH) + 1);
		return;
	}
	digits = find_length(name, &length);
	if (!digits)
		return;
	kernel = digits + strspn(digits, "0123456789") + STUB_PREFIX_LENGTH;
	written = (size_t)snprintf(number, sizeof(number), "%zu", length - STUB_PREFIX_LENGTH);
	memcpy(digits, number, written);
	memmove(digits + written, kernel, strlen(kernel) + 1);
}
