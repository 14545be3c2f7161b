/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/attach/launch_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/reader/describe_records.h"
#include "session/attach/objects.h"

#define FILES_MAX 4 /* with a process each; the symbols of the largest libraries take some 100 MiB */

/* The process that reads the symbols of one file. */
struct symbol_reader {
	struct file_reader *reader; /* NULL: there is none */
	struct stat status;	    /* shows that it is the same, unchanged */
	__u64 asked;		    /* number of the latest question */
};

struct launch_symbols {
	const struct registry *registry;
	struct symbol_reader readers[FILES_MAX];
	__u64 questions;
	struct id_set seen;
};

struct launch_symbols *launch_symbols_create(const struct registry *registry)
{
	struct launch_symbols *symbols = calloc(1, sizeof(*symbols));

	if (symbols)
		symbols->registry = registry;
	return symbols;
}

static void forget(struct symbol_reader *reader)
{
	file_reader_close(reader->reader);
	*reader = (struct symbol_reader){ 0 };
}

void launch_symbols_free(struct launch_symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < FILES_MAX; i++)
		forget(&symbols->readers[i]);
	id_set_free(&symbols->seen);
	free(symbols);
}

void launch_symbols_drop(struct launch_symbols *symbols, pid_t tgid)
{
	id_set_drop(&symbols->seen, tgid);
}

/* ---- one file ---- */

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* A process that has the file; in place of the one that was not asked for longest. */
static int find_reader(struct launch_symbols *symbols, struct file_readers *readers, const struct pinned_file *pinned,
		       struct symbol_reader **result)
{
	struct symbol_reader *oldest = &symbols->readers[0];
	struct opened_file opened;
	int error;

	symbols->questions++;
	for (size_t i = 0; i < FILES_MAX; i++) {
		struct symbol_reader *reader = &symbols->readers[i];

		if (reader->reader && is_same(&reader->status, &pinned->file->status)) {
			reader->asked = symbols->questions;
			*result = reader;
			return 0;
		}
		if (reader->asked < oldest->asked)
			oldest = reader;
	}
	forget(oldest);
	error = file_reader_open(readers, pinned->mapped.descriptor, &opened, &oldest->reader);
	if (error)
		return error;
	close(opened.descriptor);
	oldest->status = pinned->file->status;
	oldest->asked = symbols->questions;
	*result = oldest;
	return 0;
}

/* ---- a process ---- */

struct wanted_mapping {
	pid_t tgid;
	__u64 address;
	__u64 offset; /* of the address in the file */
	struct mapped_file mapped;
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
	maps_entry_open_path(entry, wanted->tgid, wanted->mapped.open_path);
	wanted->mapped.path = strdup(entry->path);
	return wanted->mapped.path ? 1 : -ENOMEM;
}

/* Name of what begins at the address. */
static int find_name(struct launch_symbols *symbols, struct elf_cache *files, pid_t tgid, __u64 address,
		     char name[FILE_SYMBOL_MAX + 1])
{
	struct wanted_mapping wanted = { .tgid = tgid, .address = address };
	struct symbol_reader *reader;
	struct pinned_file pinned;
	__u64 offset = 0;
	int error = maps_each(tgid, look_at_mapping, &wanted);

	if (error != 1)
		return error < 0 ? error : -ENOENT;
	error = elf_cache_open(files, &wanted.mapped, &pinned);
	if (!error) {
		error = find_reader(symbols, files->readers, &pinned, &reader);
		pinned_close(&pinned);
	}
	if (!error) {
		error = file_reader_symbol(reader->reader, wanted.offset, name, &offset);
		/* Its process has ended, or is of no use: the next one finds another. */
		if (error && error != -ENOENT)
			forget(reader);
	}
	free(wanted.mapped.path);
	return error ?: offset ? -ENOENT : 0;
}

static __u64 launched(const struct launch_symbols *symbols, const struct xpt_record_call *call)
{
	const struct registry *registry = symbols->registry;
	const struct xpt_spec *spec = call->spec < registry->spec_count ? &registry->specs[call->spec]->wire : NULL;

	return spec && spec->role == XPT_ROLE_LAUNCH ? call_program(spec, call) : 0;
}

bool launch_symbols_is_new(struct launch_symbols *symbols, const struct xpt_record_call *call)
{
	__u64 handle = launched(symbols, call);

	return handle && id_set_add(&symbols->seen, LAUNCH_SYMBOLS_MAX, (pid_t)call->header.tgid, handle, 0);
}

struct xpt_record_text *launch_symbols_name(struct launch_symbols *symbols, struct elf_cache *files, __u64 time,
					    const struct xpt_record_call *call)
{
	__u64 handle = launched(symbols, call);
	char name[FILE_SYMBOL_MAX + 1];

	/* A handle within an object is not the object. */
	if (find_name(symbols, files, (pid_t)call->header.tgid, handle, name))
		return NULL;
	return record_text(XPT_RECORD_SYMBOL, call->header.tgid, time, handle, name);
}
