/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/process/symbol.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/vec.h"
#include "target/elf/file.h"
#include "target/process/process.h"

#define FILES_MAX 4	/* kept; the symbols of the largest libraries take some 100 MiB */
#define OVERLAPS_MAX 16 /* symbols that are checked for one that contains an address */
#define STUB_PREFIX "__device_stub__"
#define STUB_PREFIX_LENGTH (sizeof(STUB_PREFIX) - 1)

struct place {
	__u64 address, size;
	const char *name; /* belongs to the file */
	size_t order;	  /* in which symbols came */
};

struct symbol_file {
	struct stat status;   /* shows that it is the same, unchanged */
	struct elf_file *elf; /* NULL: it cannot be read, or nothing is here */
	struct place *places; /* sorted by address, then order */
	size_t count;
	__u64 asked; /* number of the latest question */
};

struct process_symbols {
	struct log log;
	struct symbol_file files[FILES_MAX];
	__u64 questions;
};

struct process_symbols *process_symbols_create(const struct log *log)
{
	struct process_symbols *symbols = calloc(1, sizeof(*symbols));

	if (symbols && log)
		symbols->log = *log;
	return symbols;
}

static void forget(struct symbol_file *file)
{
	elf_file_close(file->elf);
	free(file->places);
	*file = (struct symbol_file){ 0 };
}

void process_symbols_free(struct process_symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < FILES_MAX; i++)
		forget(&symbols->files[i]);
	free(symbols);
}

/* ---- one file ---- */

static int add_place(void *context, const struct elf_symbol *symbol)
{
	struct symbol_file *file = context;

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

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int read_file(struct process_symbols *symbols, const char *path, const char *name, const struct stat *status,
		     struct symbol_file *file)
{
	int error;

	forget(file);
	error = elf_file_open(&symbols->log, path, name, &file->elf);
	if (error && error != -ENOEXEC && error != -ENOTSUP)
		return error;
	file->status = *status;
	if (error)
		return 0;
	error = elf_file_each_symbol(file->elf, add_place, file);
	if (error)
		forget(file);
	else if (file->count)
		qsort(file->places, file->count, sizeof(*file->places), compare_places);
	return error;
}

/*
 * The symbols of the file that path opens, read unless they are there; in place of those that were not asked for
 * longest.
 */
static int find_file(struct process_symbols *symbols, const char *path, const char *name, struct symbol_file **result)
{
	struct symbol_file *oldest = &symbols->files[0];
	struct stat status;
	int error;

	if (stat(path, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -ENOENT;
	symbols->questions++;
	for (size_t i = 0; i < FILES_MAX; i++) {
		struct symbol_file *file = &symbols->files[i];

		if (file->asked && is_same(&file->status, &status)) {
			file->asked = symbols->questions;
			*result = file;
			return 0;
		}
		if (file->asked < oldest->asked)
			oldest = file;
	}
	error = read_file(symbols, path, name, &status, oldest);
	if (error)
		return error;
	oldest->asked = symbols->questions;
	*result = oldest;
	return 0;
}

/*
 * The symbol that begins at the address; else of those that begin before it, the nearest that contains it. Symbols
 * seldom overlap, so that a few steps back are enough.
 */
static const struct place *find_place(const struct symbol_file *file, __u64 address)
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

/* ---- a process ---- */

struct wanted_mapping {
	pid_t tgid;
	__u64 address;
	__u64 offset; /* of the address in the file */
	char path[MAP_FILE_PATH_MAX];
	char *name; /* of the file, for messages; owned */
};

/* 1: found, 2: found without a file. */
static int look_at_mapping(void *context, const struct maps_entry *entry)
{
	struct wanted_mapping *wanted = context;

	if (wanted->address < entry->start || wanted->address >= entry->end)
		return 0;
	if (!maps_entry_has_file(entry))
		return 2;
	wanted->offset = entry->offset + (wanted->address - entry->start);
	maps_entry_open_path(entry, wanted->tgid, wanted->path);
	wanted->name = strdup(entry->path);
	return wanted->name ? 1 : -ENOMEM;
}

int process_symbols_look(struct process_symbols *symbols, pid_t tgid, __u64 address, char *name, size_t size,
			 __u64 *offset)
{
	struct wanted_mapping wanted = { .tgid = tgid, .address = address };
	int found = maps_each(tgid, look_at_mapping, &wanted), error;
	const struct place *place = NULL;
	struct symbol_file *file = NULL;
	__u64 in_file = 0;

	if (found != 1)
		return found < 0 ? found : -ENOENT;
	error = find_file(symbols, wanted.path, wanted.name, &file);
	free(wanted.name);
	if (error)
		return error;
	if (file && file->elf && elf_file_address(file->elf, wanted.offset, &in_file) == 0)
		place = find_place(file, in_file);
	if (!place)
		return -ENOENT;
	snprintf(name, size, "%s", place->name);
	*offset = in_file - place->address;
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
