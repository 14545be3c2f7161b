/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which files of a process are new. Identified by the numbers in maps, so that nothing is opened for those that are
 * known.
 */
#include "target/process/loaded_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "target/process/loaded_file.h"

struct loaded_file {
	__u64 device, inode; /* as maps has them */
	bool mapped;	     /* seen in the current scan */
};

struct walk {
	struct loaded_files *known;
	struct file_mapping *mappings; /* of files that are not known */
	size_t count;
};

static int compare_numbers(__u64 left, __u64 right)
{
	return left < right ? -1 : left > right;
}

static int compare_files(const void *left, const void *right)
{
	const struct loaded_file *a = left, *b = right;

	return compare_numbers(a->device, b->device) ?: compare_numbers(a->inode, b->inode);
}

static int compare_mappings(const void *left, const void *right)
{
	const struct file_mapping *a = left, *b = right;

	return compare_numbers(a->device, b->device)	   ?:
		       compare_numbers(a->inode, b->inode) ?:
							     compare_numbers(a->start, b->start);
}

static struct loaded_file *find(const struct loaded_files *known, __u64 device, __u64 inode)
{
	struct loaded_file file = { .device = device, .inode = inode };

	return known->count ? bsearch(&file, known->files, known->count, sizeof(file), compare_files) : NULL;
}

static int note_mapping(void *context, const struct maps_entry *entry)
{
	struct walk *walk = context;
	struct file_mapping *mapping;
	struct loaded_file *known;

	if (!maps_entry_has_file(entry))
		return 0;
	known = find(walk->known, entry->device, entry->inode);
	if (known) {
		known->mapped = true;
		return 0;
	}
	if (vec_reserve(walk->mappings, walk->count))
		return -ENOMEM;
	mapping = &walk->mappings[walk->count];
	*mapping = (struct file_mapping){ .device = entry->device,
					  .inode = entry->inode,
					  .start = entry->start,
					  .end = entry->end,
					  .offset = entry->offset,
					  .executable = entry->executable,
					  .deleted = entry->deleted,
					  .path = strdup(entry->path) };
	if (!mapping->path)
		return -ENOMEM;
	walk->count++;
	return 0;
}

/* Room for what can come is made before anything is scanned: afterwards nothing fails. */
static int make_room(struct walk *walk)
{
	struct loaded_files *known = walk->known;
	struct loaded_file *files;

	if (!walk->count)
		return 0;
	files = reallocarray(known->files, known->count + walk->count, sizeof(*files));
	if (!files)
		return -ENOMEM;
	known->files = files;
	return 0;
}

static void forget_unmapped(struct loaded_files *known)
{
	size_t kept = 0;

	for (size_t i = 0; i < known->count; i++) {
		struct loaded_file file = known->files[i];

		if (file.mapped)
			known->files[kept++] = (struct loaded_file){ .device = file.device, .inode = file.inode };
	}
	known->count = kept;
}

/* Mappings that belong to one file, from this one on. */
static size_t count_of_file(const struct walk *walk, size_t first)
{
	size_t next = first + 1;

	while (next < walk->count && walk->mappings[next].device == walk->mappings[first].device &&
	       walk->mappings[next].inode == walk->mappings[first].inode)
		next++;
	return next - first;
}

static int look_at_new(struct walk *walk, struct mapped_view *view, struct loaded_codes *result)
{
	struct loaded_files *known = walk->known;
	int error = make_room(walk);

	if (error)
		return error;
	forget_unmapped(known);
	if (!walk->count)
		return 0;
	qsort(walk->mappings, walk->count, sizeof(*walk->mappings), compare_mappings);
	for (size_t i = 0; i < walk->count; i += view->count) {
		view->mappings = &walk->mappings[i];
		view->count = count_of_file(walk, i);
		error = loaded_file_look(view, result);
		if (error == -ENOMEM)
			break;
		if (!error)
			known->files[known->count++] = (struct loaded_file){ .device = view->mappings->device,
									     .inode = view->mappings->inode };
	}
	qsort(known->files, known->count, sizeof(*known->files), compare_files);
	return error == -ENOMEM ? error : 0;
}

static int look(struct mapped_view *view, struct loaded_files *files, struct loaded_codes *result)
{
	struct walk walk = { .known = files };
	int error;

	*result = (struct loaded_codes){ 0 };
	error = maps_each(view->pid, note_mapping, &walk);
	if (!error)
		error = look_at_new(&walk, view, result);
	if (error)
		loaded_codes_free(result);
	for (size_t i = 0; i < walk.count; i++)
		free(walk.mappings[i].path);
	free(walk.mappings);
	return error;
}

int loaded_code_all(pid_t pid, const struct log *log, list_codes_fn list, void *context, struct loaded_files *files,
		    struct loaded_codes *result)
{
	struct mapped_view view = { .log = log, .pid = pid, .list = list, .context = context };

	loaded_files_free(files);
	return look(&view, files, result);
}

int loaded_code_new(pid_t pid, const struct log *log, list_codes_fn list, void *context, struct loaded_files *files,
		    struct loaded_codes *result)
{
	struct mapped_view view = { .log = log, .pid = pid, .every_library = true, .list = list, .context = context };

	return look(&view, files, result);
}

void loaded_codes_free(struct loaded_codes *codes)
{
	for (size_t i = 0; i < codes->count; i++)
		free(codes->objects[i].path);
	free(codes->objects);
	*codes = (struct loaded_codes){ 0 };
}

void loaded_files_free(struct loaded_files *files)
{
	free(files->files);
	*files = (struct loaded_files){ 0 };
}
