/* SPDX-License-Identifier: BSD-2-Clause */
/* What in mapped files is code for a device, a model, or a plugin. */
#include "target/process/loaded_code.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/vec.h"
#include "target/elf/file.h"

struct mapped_view {
	const struct log *log;
	pid_t pid;
	const struct maps_entry *mappings; /* of the one file, sorted by start; they own their paths */
	size_t count;
	bool every_library; /* not only plugins */
};

/* ---- one file: it may be hostile, and change while it is read ---- */

#define MACHINE_CUDA 190 /* EM_CUDA */
#define MACHINE_AMD_GPU 224
#define FATBIN_MAGIC 0xba55ed50 /* as compilers for CUDA write it and cuobjdump reads it */
#define PADDING_MAX 4096	/* bytes between two containers */

/* Sections in which compilers leave code for GPUs. */
static const struct {
	const char *name;
	bool fatbins; /* containers of CUDA, one after the other; else it is one object */
} code_sections[] = {
	{ ".hip_fatbin", false },
	{ ".nv_fatbin", true },
	{ "__nv_relfatbin", true },
};

/* Symbols by which runtimes know their plugins. */
static const char *const plugin_exports[] = {
	"GetPjrtApi",		  /* PJRT */
	"CreateEpFactories",	  /* ONNX Runtime: execution providers as plugins */
	"GetProvider",		  /* ONNX Runtime: its own providers */
	"ggml_backend_init",	  /* ggml */
	"vaccel_plugin",	  /* vAccel */
	"clIcdGetPlatformIDsKHR", /* OpenCL: drivers */
	NULL,
};

struct fatbin_header {
	__u32 magic;
	__u16 version;
	__u16 header_size;
	__u64 size; /* behind the header */
};

struct looking {
	const struct mapped_view *view;
	struct loaded_codes *result;
	struct loaded_code file; /* what is common to all its objects, without the path */
	__u64 file_size;
	struct elf_file *elf;
};

/* Where the mappings end that follow without a gap. */
static __u64 end_of_row(const struct mapped_view *view, size_t first)
{
	while (first + 1 < view->count && view->mappings[first + 1].start == view->mappings[first].end)
		first++;
	return view->mappings[first].end;
}

static void place_object(const struct mapped_view *view, struct loaded_code *object)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct maps_entry *mapping = &view->mappings[i];
		__u64 left;

		if (object->offset < mapping->offset ||
		    object->offset - mapping->offset >= mapping->end - mapping->start)
			continue;
		object->address = mapping->start + (object->offset - mapping->offset);
		left = end_of_row(view, i) - object->address;
		object->length = left < object->size ? left : object->size;
		return;
	}
}

/* A file may also be mapped to be read: the row with code in it counts. */
static void place_library(const struct mapped_view *view, struct loaded_code *object)
{
	size_t first = 0;

	for (size_t i = 0; i < view->count; i++) {
		if (i && view->mappings[i].start != view->mappings[i - 1].end)
			first = i;
		if (!view->mappings[i].executable)
			continue;
		object->address = view->mappings[first].start;
		object->length = end_of_row(view, first) - object->address;
		return;
	}
}

static bool is_full(const struct looking *looking)
{
	return looking->result->count >= LOADED_CODE_MAX;
}

static int add(struct looking *looking, __u64 offset, __u64 size, bool library)
{
	struct loaded_codes *result = looking->result;
	struct loaded_code *object;

	if (is_full(looking)) {
		result->left_out++;
		return 0;
	}
	if (vec_reserve(result->objects, result->count))
		return -ENOMEM;
	object = &result->objects[result->count];
	*object = looking->file;
	object->path = strdup(looking->view->mappings->path);
	if (!object->path)
		return -ENOMEM;
	object->offset = offset;
	object->size = size;
	object->library = library;
	if (library)
		place_library(looking->view, object);
	else
		place_object(looking->view, object);
	result->count++;
	return 0;
}

/* Moves at to what comes behind zeros; false: they reach to the end, or it cannot be read. */
static bool skip_padding(struct elf_file *elf, __u64 *at, __u64 end)
{
	__u64 length = end - *at < PADDING_MAX ? end - *at : PADDING_MAX;
	unsigned char bytes[PADDING_MAX];
	size_t zeros = 0;

	if (elf_file_read_offset(elf, *at, bytes, length))
		return false;
	while (zeros < length && !bytes[zeros])
		zeros++;
	*at += zeros;
	return *at < end;
}

/*
 * What is not a container, or claims to be longer than the section, is listed as it is: its reader reports what is
 * wrong.
 */
static int add_fatbins(struct looking *looking, const struct elf_section *section)
{
	__u64 at = section->offset, end = section->offset + section->size;

	while (skip_padding(looking->elf, &at, end)) {
		struct fatbin_header header;
		__u64 size = end - at;
		int error;

		if (size >= sizeof(header) && !elf_file_read_offset(looking->elf, at, &header, sizeof(header)) &&
		    header.magic == FATBIN_MAGIC && header.header_size >= sizeof(header) &&
		    header.header_size <= size && header.size <= size - header.header_size)
			size = header.header_size + header.size;
		error = add(looking, at, size, false);
		if (error || is_full(looking))
			return error;
		at += size;
	}
	return 0;
}

static int look_at_section(void *context, const struct elf_section *section)
{
	struct looking *looking = context;

	for (size_t i = 0; i < sizeof(code_sections) / sizeof(code_sections[0]); i++) {
		/* At 0 is the header of the file. */
		if (strcmp(section->name, code_sections[i].name) || !section->offset)
			continue;
		if (is_full(looking) || !code_sections[i].fatbins)
			return add(looking, section->offset, section->size, false);
		return add_fatbins(looking, section);
	}
	return 0;
}

static bool has_code_mapped(const struct mapped_view *view)
{
	for (size_t i = 0; i < view->count; i++)
		if (view->mappings[i].executable)
			return true;
	return false;
}

static int look_at_elf(struct looking *looking)
{
	const struct mapped_view *view = looking->view;
	int error = elf_file_open(view->log, looking->file.open_path, view->mappings->path, &looking->elf);

	if (error)
		return error;
	if (has_code_mapped(view) && (view->every_library || elf_file_exports_any(looking->elf, plugin_exports)))
		error = add(looking, 0, looking->file_size, true);
	if (!error)
		error = elf_file_each_section(looking->elf, look_at_section, looking);
	elf_file_close(looking->elf);
	return error;
}

/* Is the whole file code for a device, or a model? By its first bytes. */
static bool is_object(const unsigned char *head, size_t length)
{
	static const char bundle[] = "__CLANG_OFFLOAD_BUNDLE__", model[] = "GGUF";
	Elf64_Half machine;

	if (length >= sizeof(bundle) - 1 && !memcmp(head, bundle, sizeof(bundle) - 1))
		return true;
	if (length >= sizeof(model) - 1 && !memcmp(head, model, sizeof(model) - 1))
		return true;
	if (length < EI_NIDENT + 2 * sizeof(machine) || memcmp(head, ELFMAG, SELFMAG))
		return false;
	memcpy(&machine, head + offsetof(Elf64_Ehdr, e_machine), sizeof(machine));
	return machine == MACHINE_AMD_GPU || machine == MACHINE_CUDA;
}

/* Bytes that were read, or -errno. */
static ssize_t read_head(const char *path, unsigned char *head, size_t length)
{
	int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t got;

	if (descriptor < 0)
		return -errno;
	got = pread(descriptor, head, length, 0);
	if (got < 0)
		got = -errno;
	close(descriptor);
	return got;
}

static int look_inside(struct looking *looking)
{
	unsigned char head[64];
	ssize_t length = read_head(looking->file.open_path, head, sizeof(head));

	if (length < 0)
		return (int)length;
	if (is_object(head, (size_t)length))
		return add(looking, 0, looking->file_size, false);
	if ((size_t)length < SELFMAG || memcmp(head, ELFMAG, SELFMAG))
		return 0;
	return look_at_elf(looking);
}

/* The way to the file that one of its mappings gives. -ENOENT: none does any longer. */
static int find_way(struct looking *looking, struct stat *status)
{
	const struct mapped_view *view = looking->view;
	int error = -ENOENT;

	for (size_t i = 0; i < view->count && error == -ENOENT; i++) {
		maps_entry_open_path(&view->mappings[i], view->pid, looking->file.open_path);
		error = stat(looking->file.open_path, status) ? -errno : 0;
	}
	return error;
}

/* Adds the code in the file. -ENOENT: it is no longer mapped as it was; -ENOMEM. Any other error is only logged. */
static int look_at_file(const struct mapped_view *view, struct loaded_codes *result)
{
	struct looking looking = {
		.view = view,
		.result = result,
		.file.deleted = view->mappings->deleted,
	};
	struct stat status;
	int error = find_way(&looking, &status);

	/* Opening a device has effects. */
	if (!error && (!S_ISREG(status.st_mode) || !status.st_size))
		return 0;
	if (!error) {
		looking.file.device = status.st_dev;
		looking.file.inode = status.st_ino;
		looking.file_size = (__u64)status.st_size;
		error = look_inside(&looking);
	}
	if (!error || error == -ENOMEM || error == -ENOENT)
		return error;
	log_info(view->log, "%s, mapped by process %d: not scanned for code: %s", view->mappings->path, (int)view->pid,
		 strerror(-error));
	return 0;
}

/* ---- which files are new: by the numbers in maps, so that nothing is opened for those that are known ---- */

struct loaded_file {
	__u64 device, inode; /* as maps has them */
	bool mapped;	     /* seen in the current scan */
};

struct walk {
	struct loaded_files *known;
	struct maps_entry *mappings; /* of files that are not known; they own their paths */
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
	const struct maps_entry *a = left, *b = right;

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
	struct maps_entry *mapping;
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
	*mapping = *entry;
	mapping->path = strdup(entry->path);
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
		error = look_at_file(view, result);
		if (error == -ENOMEM)
			break;
		if (!error)
			known->files[known->count++] = (struct loaded_file){ .device = view->mappings->device,
									     .inode = view->mappings->inode };
	}
	qsort(known->files, known->count, sizeof(*known->files), compare_files);
	return error == -ENOMEM ? error : 0;
}

static int look(pid_t pid, const struct log *log, bool every_library, struct loaded_files *files,
		struct loaded_codes *result)
{
	struct mapped_view view = { .log = log, .pid = pid, .every_library = every_library };
	struct walk walk = { .known = files };
	int error;

	*result = (struct loaded_codes){ 0 };
	error = maps_each(pid, note_mapping, &walk);
	if (!error)
		error = look_at_new(&walk, &view, result);
	if (error)
		loaded_codes_free(result);
	for (size_t i = 0; i < walk.count; i++)
		free((char *)walk.mappings[i].path);
	free(walk.mappings);
	return error;
}

int loaded_code_all(pid_t pid, const struct log *log, struct loaded_files *files, struct loaded_codes *result)
{
	loaded_files_free(files);
	return look(pid, log, false, files, result);
}

int loaded_code_new(pid_t pid, const struct log *log, struct loaded_files *files, struct loaded_codes *result)
{
	return look(pid, log, true, files, result);
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
