/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What in one mapped file is code for a device, a model, or a plugin. The file may be hostile, and change while it is
 * read.
 */
#include "target/process/loaded_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/vec.h"
#include "target/elf/file.h"

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
	struct loaded_code file; /* what is common to all its objects; path belongs to the view */
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
		const struct file_mapping *mapping = &view->mappings[i];
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
	object->path = strdup(looking->file.path);
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
	int error = elf_file_open(view->log, looking->file.open_path, looking->file.path, &looking->elf);

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
		struct maps_entry entry = { .start = view->mappings[i].start, .end = view->mappings[i].end };

		maps_entry_open_path(&entry, view->pid, looking->file.open_path);
		error = stat(looking->file.open_path, status) ? -errno : 0;
	}
	return error;
}

int loaded_file_look(const struct mapped_view *view, struct loaded_codes *result)
{
	struct looking looking = {
		.view = view,
		.result = result,
		.file = { .path = view->mappings->path, .deleted = view->mappings->deleted },
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
	log_info(view->log, "%s, mapped by process %d: not scanned for code: %s", looking.file.path, (int)view->pid,
		 strerror(-error));
	return 0;
}
