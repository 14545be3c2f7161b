/* SPDX-License-Identifier: BSD-2-Clause */
/* What in mapped files is code for a device, a model, or a plugin. */
#include "target/process/loaded_code.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
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
	list_codes_fn list;
	void *context;
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
		struct mapped_file mapped = { .path = object->path };

		maps_entry_open_path(&view->mappings[i], view->pid, mapped.open_path);
		memcpy(object->open_path, mapped.open_path, sizeof(object->open_path));
		error = view->list(view->context, &mapped, codes);
	}
	return error;
}

/* Adds the code in the file. -ENOENT: it is no longer mapped as it was; -ENOMEM. Any other error is only logged. */
static int look_at_file(const struct mapped_view *view, struct loaded_codes *result)
{
	struct loaded_code object = { .path = (char *)view->mappings->path, .deleted = view->mappings->deleted };
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
		free((char *)walk.mappings[i].path);
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
	bool searched;		  /* for what is registered */
	struct place *registered; /* likewise; names are the table's */
	size_t registered_count;
};

void symbol_table_free(struct symbol_table *table)
{
	if (!table)
		return;
	elf_file_close(table->elf);
	for (size_t i = 0; i < table->registered_count; i++)
		free((char *)table->registered[i].name);
	free(table->registered);
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

static int add_registered(void *context, __u64 function, const char *name)
{
	struct symbol_table *table = context;
	const struct place place = { .address = function, .name = strdup(name), .order = table->registered_count };

	if (place.name && !vec_push(table->registered, table->registered_count, place))
		return 0;
	free((char *)place.name);
	return -ENOMEM;
}

int symbol_table_registered(struct symbol_table *table, __u64 at, char *name, size_t size)
{
	__u64 address;
	size_t first;

	if (table->elf && !table->searched) {
		table->searched = true;
		/* What was found before an error is right. */
		elf_file_each_registered(table->elf, add_registered, table);
		if (table->registered_count)
			qsort(table->registered, table->registered_count, sizeof(*table->registered), compare_places);
	}
	if (!table->elf || elf_file_address(table->elf, at, &address))
		return -ENOENT;
	first = vec_first(table->registered_count, i, table->registered[i].address < address);
	if (first >= table->registered_count || table->registered[first].address != address)
		return -ENOENT;
	snprintf(name, size, "%s", table->registered[first].name);
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
