/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/analysed.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

#define LOADER_FUNCTION \
	"_dl_debug_state" /* the dynamic loader calls it before and after it changes its list of libraries */
#define LOADER_DATA "_r_debug"

/* Of the two symbols; 0: there is none. */
struct loader_symbols {
	__u64 function, data;
};

static void analysed_free(struct analysed *file)
{
	if (!file)
		return;
	found_functions_free(&file->found);
	file_operators_free(&file->operators);
	free(file->path);
	free(file);
}

void analysed_files_free(struct analysed_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		analysed_free(files->files[i]);
	free(files->files);
}

static int find_loader(void *context, const struct elf_symbol *symbol)
{
	struct loader_symbols *symbols = context;

	if (!strcmp(symbol->name, LOADER_FUNCTION) && !symbol->indirect)
		symbols->function = symbol->address;
	else if (!strcmp(symbol->name, LOADER_DATA))
		symbols->data = symbol->address;
	return symbols->function && symbols->data;
}

static int analyse_loader(const struct mapped_file *mapped, struct analysed *file)
{
	const char *base = strrchr(mapped->path, '/');
	struct loader_symbols symbols = {};
	struct elf_file *elf;
	int error;

	base = base ? base + 1 : mapped->path;
	if (strncmp(base, "ld-", 3) && strncmp(base, "ld.so", 5) && strncmp(base, "ld64", 4))
		return 0;
	error = elf_file_open(NULL, mapped->open_path, mapped->path, &elf);
	if (error)
		return error;
	error = elf_file_each_symbol(elf, find_loader, &symbols);
	if (error >= 0 && symbols.function && !elf_file_offset(elf, symbols.function, &file->loader_offset))
		file->has_loader = true;
	if (file->has_loader && symbols.data)
		file->loader_state = symbols.data + offsetof(struct r_debug, r_state) - symbols.function;
	if (error >= 0)
		error = elf_file_error(elf);
	elf_file_close(elf);
	return error;
}

/* What is mapped need not be ELF. */
static void report_error(const struct analysed_files *files, const struct analysed *file, int error)
{
	if (error_is_shortage(error))
		log_warn(files->log, "%s: not all of its functions get probes: %s", file->path, strerror(-error));
}

int mapped_file_pin(const struct mapped_file *mapped, struct mapped_file *pinned, struct stat *status)
{
	int descriptor = open(mapped->open_path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), error = 0;

	if (descriptor < 0)
		return -errno;
	if (fstat(descriptor, status))
		error = -errno;
	else if (!S_ISREG(status->st_mode) || status->st_dev != mapped->device || status->st_ino != mapped->inode)
		error = -ENOENT;
	if (error) {
		close(descriptor);
		return error;
	}
	*pinned = *mapped;
	snprintf(pinned->open_path, sizeof(pinned->open_path), "/proc/self/fd/%d", descriptor);
	return descriptor;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && !memcmp(&a->st_mtim, &b->st_mtim, sizeof(a->st_mtim)) &&
	       !memcmp(&a->st_ctim, &b->st_ctim, sizeof(a->st_ctim));
}

bool analysed_is_current(const struct analysed *file, int descriptor)
{
	struct stat status;

	return !fstat(descriptor, &status) && is_same(&status, &file->status) && is_unchanged(&status, &file->status);
}

static struct analysed *analyse(const struct analysed_files *files, const struct mapped_file *mapped,
				const struct stat *status)
{
	struct analysed *file = calloc(1, sizeof(*file));
	int error;

	if (file)
		file->path = strdup(mapped->path);
	if (!file || !file->path) {
		analysed_free(file);
		return NULL;
	}
	file->status = *status;
	error = functions_find(files->log, files->registry, mapped, &file->found);
	if (error)
		memset(&file->found, 0, sizeof(file->found));
	report_error(files, file, error);
	error = files->operators ?
			file_operators_find(files->log, files->registry, mapped, &file->found, &file->operators) :
			0;
	if (error)
		file_operators_free(&file->operators);
	report_error(files, file, error);
	if (files->loader)
		report_error(files, file, analyse_loader(mapped, file));
	return file;
}

/* A sum over places and what they are for, in their order. */
static void add_place(void *context, const struct site *site, unsigned int spec)
{
	__u64 *sum = context;

	*sum = (*sum ^ site->offset ^ (__u64)spec << 40) * 0x9e3779b97f4a7c15ull + site->semaphore;
}

static __u64 places_of(const struct analysed *file)
{
	__u64 sum = file->has_loader ? file->loader_offset + (__u32)file->loader_state : 0;

	for (size_t i = 0; i < file->found.count; i++)
		add_place(&sum, &file->found.functions[i].site, file->found.functions[i].spec);
	for (size_t i = 0; i < file->found.table_count; i++)
		add_place(&sum, &file->found.tables[i].accessor, file->found.tables[i].runtime->index);
	file_operators_visit(&file->operators, add_place, &sum);
	return sum;
}

/* The latest look at the file; NULL: there was none. */
static struct analysed *latest(const struct analysed_files *files, const struct stat *status)
{
	for (size_t i = files->count; i > 0; i--)
		if (is_same(&files->files[i - 1]->status, status))
			return files->files[i - 1];
	return NULL;
}

struct analysed *analysed_get(struct analysed_files *files, const struct mapped_file *mapped, const struct stat *status)
{
	struct analysed *before = latest(files, status), *file, **more;

	if (before && is_unchanged(&before->status, status))
		return before;
	file = analyse(files, mapped, status);
	more = file ? realloc(files->files, (files->count + 1) * sizeof(*more)) : NULL;
	if (!more) {
		analysed_free(file);
		return NULL;
	}
	files->files = more;
	/* It may have got another name, or none: the same probes belong in it. */
	if (before && places_of(before) == places_of(file)) {
		before->status = *status;
		analysed_free(file);
		return before;
	}
	file->changed = before;
	files->files[files->count++] = file;
	return file;
}

int mapped_file_bias(const struct mapped_file *mapped, __u64 *bias)
{
	struct elf_file *elf;
	__u64 address;
	int error = elf_file_open(NULL, mapped->open_path, mapped->path, &elf);

	if (error)
		return error;
	error = elf_file_address(elf, mapped->offset, &address);
	elf_file_close(elf);
	*bias = mapped->start - address;
	return error;
}
