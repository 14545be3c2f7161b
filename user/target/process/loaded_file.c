/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What in one file is code for a device, a model, or a plugin, and where a process has mapped it. The file may be hostile, and change
 * while it is read.
 */
#include "target/process/loaded_file.h"

#include <elf.h>
#include <errno.h>
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

/* ---- in the file ---- */

struct looking {
	struct file_codes *codes;
	struct elf_file *elf;
};

static bool is_full(const struct looking *looking)
{
	return looking->codes->count >= LOADED_CODE_MAX;
}

static int add(struct looking *looking, __u64 offset, __u64 size)
{
	struct file_codes *codes = looking->codes;

	if (is_full(looking)) {
		codes->left_out++;
		return 0;
	}
	if (vec_reserve(codes->places, codes->count))
		return -ENOMEM;
	codes->places[codes->count++] = (struct file_code){ offset, size };
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
		error = add(looking, at, size);
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
			return add(looking, section->offset, section->size);
		return add_fatbins(looking, section);
	}
	return 0;
}

static int look_at_elf(struct looking *looking, const struct log *log, int descriptor, const char *name)
{
	int error = elf_file_open_descriptor(log, descriptor, name, &looking->elf);

	if (error)
		return error;
	looking->codes->is_library = true;
	looking->codes->is_plugin = elf_file_exports_any(looking->elf, plugin_exports);
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

int file_codes_read(const struct log *log, int descriptor, const char *name, struct file_codes *result)
{
	struct looking looking = { .codes = result };
	unsigned char head[64];
	struct stat status;
	ssize_t length;

	*result = (struct file_codes){ 0 };
	if (fstat(descriptor, &status))
		return -errno;
	length = pread(descriptor, head, sizeof(head), 0);
	if (length < 0)
		return -errno;
	result->file_size = (__u64)status.st_size;
	if (is_object(head, (size_t)length))
		return add(&looking, 0, result->file_size);
	if ((size_t)length < SELFMAG || memcmp(head, ELFMAG, SELFMAG))
		return 0;
	return look_at_elf(&looking, log, descriptor, name);
}

void file_codes_free(struct file_codes *codes)
{
	free(codes->places);
	*codes = (struct file_codes){ 0 };
}

/* ---- in the process ---- */

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

static int add_object(const struct mapped_view *view, const struct loaded_code *object, struct loaded_codes *result)
{
	struct loaded_code *added;

	if (result->count >= LOADED_CODE_MAX) {
		result->left_out++;
		return 0;
	}
	if (vec_reserve(result->objects, result->count))
		return -ENOMEM;
	added = &result->objects[result->count];
	*added = *object;
	added->path = strdup(object->path);
	if (!added->path)
		return -ENOMEM;
	if (added->library)
		place_library(view, added);
	else
		place_object(view, added);
	result->count++;
	return 0;
}

static bool has_code_mapped(const struct mapped_view *view)
{
	for (size_t i = 0; i < view->count; i++)
		if (view->mappings[i].executable)
			return true;
	return false;
}

/* By the way to the file that one of its mappings gives. -ENOENT: none does any longer. */
static int list_codes(const struct mapped_view *view, struct loaded_code *object, const struct file_codes **codes)
{
	int error = -ENOENT;

	for (size_t i = 0; i < view->count && error == -ENOENT; i++) {
		const struct maps_entry entry = { .start = view->mappings[i].start, .end = view->mappings[i].end };
		struct mapped_file mapped = { .path = object->path };

		maps_entry_open_path(&entry, view->pid, mapped.open_path);
		memcpy(object->open_path, mapped.open_path, sizeof(object->open_path));
		error = view->list(view->context, &mapped, codes);
	}
	return error;
}

int loaded_file_look(const struct mapped_view *view, struct loaded_codes *result)
{
	struct loaded_code object = { .path = view->mappings->path, .deleted = view->mappings->deleted };
	const struct file_codes *codes = NULL;
	int error = list_codes(view, &object, &codes);

	if (!error && !codes)
		return 0;
	if (!error && codes->is_library && has_code_mapped(view) && (view->every_library || codes->is_plugin)) {
		object.library = true;
		object.size = codes->file_size;
		error = add_object(view, &object, result);
		object.library = false;
	}
	for (size_t i = 0; !error && i < codes->count; i++) {
		object.offset = codes->places[i].offset;
		object.size = codes->places[i].size;
		error = add_object(view, &object, result);
	}
	if (!error)
		result->left_out += codes->left_out;
	if (!error || error == -ENOMEM || error == -ENOENT)
		return error;
	log_info(view->log, "%s, mapped by process %d: not scanned for code: %s", object.path, (int)view->pid,
		 strerror(-error));
	return 0;
}
