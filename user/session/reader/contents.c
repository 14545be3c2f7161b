/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/reader/contents.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/core/log.h"
#include "session/reader/describe_records.h"
#include "target/elf/type_name.h"

static void tables_bound(struct runtime_operators *runtime)
{
	const struct classes *classes = &runtime->operators.classes;

	for (size_t i = 0; i < classes->method_count; i++) {
		const __u64 table = classes->methods[i].table;

		runtime->first = table < runtime->first ? table : runtime->first;
		runtime->last = table > runtime->last ? table : runtime->last;
	}
}

static int find(const struct log *log, const struct mapped_file *mapped, const struct description *runtime,
		struct file_operators *file)
{
	struct runtime_operators *more = reallocarray(file->runtimes, file->count + 1, sizeof(*more));
	struct operators operators;
	struct elf_file *elf;
	int error;

	if (!more)
		return -ENOMEM;
	file->runtimes = more;
	error = mapped_file_elf(NULL, mapped, &elf);
	if (error)
		return error;
	error = operators_find(elf, &runtime->operators, &operators);
	elf_file_close(elf);
	if (error)
		return error;
	log_info(log, "%s: %zu operator classes of %s, %zu functions", mapped->path, operators.classes.class_count,
		 runtime->title, operators.function_count);
	file->runtimes[file->count] = (struct runtime_operators){ runtime, operators, ~(__u64)0, 0 };
	tables_bound(&file->runtimes[file->count++]);
	file->functions += operators.function_count;
	return 0;
}

int file_operators_find(const struct log *log, const struct registry *registry, const struct mapped_file *mapped,
			const struct found_functions *found, struct file_operators *result)
{
	*result = (struct file_operators){ 0 };
	for (size_t i = 0; i < registry->runtime_count; i++) {
		const struct description *runtime = registry->runtimes[i];
		int error;

		if (!runtime->operators.method_count || !found_runtime(found, runtime))
			continue;
		error = find(log, mapped, runtime, result);
		if (error == -ENOMEM)
			return error;
		if (error == -ENOENT && runtime->operators.base)
			log_warn(log,
				 "%s: no operators: no type information of a class %s, from which they would be known",
				 mapped->path, runtime->operators.base);
		else if (error == -ENOENT)
			log_warn(log, "%s: no operators: none of the functions that are described as operators",
				 mapped->path);
		else if (error)
			log_warn(log, "%s: no operators: %s", mapped->path, strerror(-error));
	}
	return 0;
}

void file_operators_free(struct file_operators *file)
{
	for (size_t i = 0; i < file->count; i++)
		operators_free(&file->runtimes[i].operators);
	free(file->runtimes);
	*file = (struct file_operators){ 0 };
}

void file_operators_visit(const struct file_operators *file,
			  void (*visit)(void *context, const struct site *site, unsigned int spec), void *context)
{
	for (size_t i = 0; i < file->count; i++) {
		const struct operators *operators = &file->runtimes[i].operators;
		const struct operators_spec *spec = &file->runtimes[i].runtime->operators;

		for (size_t f = 0; f < operators->function_count; f++) {
			const struct operator_function *function = &operators->functions[f];
			unsigned int slot = operators->classes.methods[function->first].slot;

			visit(context, &function->site, operators_method(spec, slot)->wire.index);
		}
	}
}

const struct description *file_operators_runtime(const struct file_operators *file, __u64 class)
{
	for (size_t i = 0; i < file->count; i++)
		if (class >= file->runtimes[i].first && class <= file->runtimes[i].last)
			return file->runtimes[i].runtime;
	return NULL;
}

int file_operators_emit(const struct file_operators *file, pid_t tgid, __u64 bias,
			int (*record)(void *context, const struct xpt_record_header *record), void *context)
{
	__u64 time = clock_monotonic();
	int error = 0;

	for (size_t i = 0; i < file->count; i++) {
		const struct classes *classes = &file->runtimes[i].operators.classes;

		for (size_t m = 0; m < classes->method_count && !error; m++) {
			const struct class_method *method = &classes->methods[m];
			struct xpt_record_text *class_record = record_text(XPT_RECORD_CLASS, tgid, time,
									   method->table + bias, method->class_name);

			error = class_record ? record(context, &class_record->header) : -ENOMEM;
			free(class_record);
		}
	}
	return error;
}

#define LOADER_FUNCTION \
	"_dl_debug_state" /* the dynamic loader calls it before and after it changes its list of libraries */
#define LOADER_DATA "_r_debug"
#define REGION_NAME_MAX 1024

void file_contents_free(struct file_contents *contents)
{
	found_functions_free(&contents->found);
	file_operators_free(&contents->operators);
	file_codes_free(&contents->codes);
	free(contents->interpreter);
	*contents = (struct file_contents){ 0 };
}

int file_contents_address(const struct file_contents *contents, __u64 offset, __u64 *address)
{
	/* as elf_file_address() */
	for (int executable = 1; executable >= 0; executable--) {
		for (size_t i = 0; i < contents->extent_count; i++) {
			const struct elf_extent *extent = &contents->extents[i];

			if (extent->executable != executable || offset < extent->offset ||
			    offset - extent->offset >= extent->size)
				continue;
			*address = offset - extent->offset + extent->address;
			return 0;
		}
	}
	return -ENOENT;
}

/* ---- searching ---- */

/* Of the two symbols; 0: there is none. */
struct loader_symbols {
	__u64 function, data;
};

static int find_loader(void *context, const struct elf_symbol *symbol)
{
	struct loader_symbols *symbols = context;

	if (!strcmp(symbol->name, LOADER_FUNCTION) && !symbol->indirect)
		symbols->function = symbol->address;
	else if (!strcmp(symbol->name, LOADER_DATA))
		symbols->data = symbol->address;
	return symbols->function && symbols->data;
}

static int search_loader(struct elf_file *elf, const char *path, struct file_contents *contents)
{
	const char *base = strrchr(path, '/');
	struct loader_symbols symbols = {};
	int error;

	base = base ? base + 1 : path;
	if (strncmp(base, "ld-", 3) && strncmp(base, "ld.so", 5) && strncmp(base, "ld64", 4))
		return 0;
	error = elf_file_each_symbol(elf, find_loader, &symbols);
	if (error >= 0 && symbols.function && !elf_file_offset(elf, symbols.function, &contents->loader_offset))
		contents->has_loader = true;
	if (contents->has_loader && symbols.data)
		contents->loader_state = symbols.data + offsetof(struct r_debug, r_state) - symbols.function;
	return error < 0 ? error : elf_file_error(elf);
}

/*
 * A program that was started by naming the dynamic loader first (ld.so ./program) has the loader as its executable, and that has
 * no interpreter: it exports what debuggers look for.
 */
static int search_interpreter(struct elf_file *elf, struct file_contents *contents)
{
	const char *interpreter = elf_file_interpreter(elf);

	contents->is_static = !interpreter && !elf_file_exports(elf, LOADER_FUNCTION);
	contents->interpreter = interpreter ? strdup(interpreter) : NULL;
	return interpreter && !contents->interpreter ? -ENOMEM : 0;
}

/* Regions have the names of their functions: the C++ name without parameters, where it is one. */
static int name_regions(const struct registry *registry, struct found_functions *found)
{
	char readable[REGION_NAME_MAX];

	for (size_t i = 0; i < found->count; i++) {
		struct found_function *function = &found->functions[i];
		char *name;

		if (registry->specs[function->spec]->wire.role != XPT_ROLE_REGION ||
		    type_name_read_function(function->symbol, readable, sizeof(readable)))
			continue;
		name = strdup(readable);
		if (!name)
			return -ENOMEM;
		free(function->symbol);
		function->symbol = name;
	}
	return 0;
}

/* What is mapped need not be ELF. */
static void report_error(const struct log *log, const char *path, int error)
{
	if (error_is_shortage(error))
		log_warn(log, "%s: not all of its functions get probes: %s", path, strerror(-error));
}

void file_contents_search(const struct log *log, const struct file_search *search, const struct mapped_file *mapped,
			  struct file_contents *contents)
{
	struct elf_file *elf;
	int error;

	*contents = (struct file_contents){ 0 };
	error = functions_find(log, search->registry, mapped, &contents->found);
	if (error)
		memset(&contents->found, 0, sizeof(contents->found));
	report_error(log, mapped->path, error ?: name_regions(search->registry, &contents->found));
	error = search->operators ?
			file_operators_find(log, search->registry, mapped, &contents->found, &contents->operators) :
			0;
	if (error)
		file_operators_free(&contents->operators);
	report_error(log, mapped->path, error);
	error = mapped_file_elf(NULL, mapped, &elf);
	if (!error) {
		snprintf(contents->build_id, sizeof(contents->build_id), "%s", elf_file_build_id(elf));
		contents->extent_count = elf_file_extents(elf, contents->extents, FILE_EXTENTS_MAX);
		error = search_interpreter(elf, contents);
		if (!error && search->loader)
			error = search_loader(elf, mapped->path, contents);
		elf_file_close(elf);
	}
	report_error(log, mapped->path, error);
	error = search->codes ? file_codes_read(log, mapped->descriptor, mapped->path, &contents->codes) : 0;
	if (error_is_shortage(error))
		log_warn(log, "%s: not all of its code objects are listed: %s", mapped->path, strerror(-error));
}

/* ---- as bytes ---- */

/* Each of these is followed by what it counts, and by its texts without their 0. */
struct contents_head {
	__u64 runtimes;
	__u64 functions, tables, operators, extents;
	__u64 missing; /* bytes */
	__u64 codes, codes_left_out, file_size;
	__u64 loader_offset;
	__s32 loader_state;
	__u32 has_loader;
	__u32 interpreter; /* bytes and 1; 0: none */
	__u32 is_static, is_library, is_plugin;
	char build_id[ELF_BUILD_ID_MAX + 8];
};

struct function_head {
	struct site site;
	__u32 spec, by, shared;
	__u32 symbol; /* bytes */
};

struct table_head {
	struct site accessor;
	__u64 address;
	__u64 runtime;
};

struct operators_head {
	__u64 runtime;
	__u64 first, last;
	__u64 methods, functions;
	__u64 unplaced, class_count, inherited, abstract, tables, left_out;
};

struct extent_head {
	__u64 offset, size, address, executable;
};

struct method_head {
	__u64 table, method;
	__u32 slot;
	__u32 name; /* bytes */
};

#define put(out, value) fwrite(&(value), sizeof(value), 1, out)

static void put_text(FILE *out, const char *text, size_t length)
{
	if (length)
		fwrite(text, length, 1, out);
}

static __u32 size_of(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static void put_operators(FILE *out, const struct runtime_operators *runtime)
{
	const struct operators *operators = &runtime->operators;
	const struct classes *classes = &operators->classes;
	const struct operators_head head = {
		.runtime = runtime->runtime->index,
		.first = runtime->first,
		.last = runtime->last,
		.methods = classes->method_count,
		.functions = operators->function_count,
		.unplaced = operators->unplaced,
		.class_count = classes->class_count,
		.inherited = classes->inherited,
		.abstract = classes->abstract,
		.tables = classes->tables,
		.left_out = classes->left_out,
	};

	put(out, head);
	for (size_t i = 0; i < classes->method_count; i++) {
		const struct class_method *method = &classes->methods[i];
		const struct method_head method_head = { method->table, method->method, method->slot,
							 strlen(method->class_name) };

		put(out, method_head);
		put_text(out, method->class_name, method_head.name);
	}
	for (size_t i = 0; i < operators->function_count; i++)
		put(out, operators->functions[i]);
}

void file_contents_write(FILE *out, const struct file_contents *contents)
{
	const struct found_functions *found = &contents->found;
	struct contents_head head = {
		.runtimes = found->runtimes,
		.functions = found->count,
		.tables = found->table_count,
		.operators = contents->operators.count,
		.extents = contents->extent_count,
		.missing = found->missing ? strlen(found->missing) : 0,
		.codes = contents->codes.count,
		.codes_left_out = contents->codes.left_out,
		.file_size = contents->codes.file_size,
		.loader_offset = contents->loader_offset,
		.loader_state = contents->loader_state,
		.has_loader = contents->has_loader,
		.interpreter = size_of(contents->interpreter),
		.is_static = contents->is_static,
		.is_library = contents->codes.is_library,
		.is_plugin = contents->codes.is_plugin,
	};

	memcpy(head.build_id, contents->build_id, sizeof(contents->build_id));
	put(out, head);
	put_text(out, found->missing, head.missing);
	put_text(out, contents->interpreter, head.interpreter ? head.interpreter - 1 : 0);
	for (size_t i = 0; i < found->count; i++) {
		const struct found_function *function = &found->functions[i];
		const struct function_head function_head = { function->site, function->spec, function->by,
							     function->shared, strlen(function->symbol) };

		put(out, function_head);
		put_text(out, function->symbol, function_head.symbol);
	}
	for (size_t i = 0; i < found->table_count; i++) {
		const struct table_head table = { found->tables[i].accessor, found->tables[i].table_address,
						  found->tables[i].runtime->index };

		put(out, table);
	}
	for (size_t i = 0; i < contents->operators.count; i++)
		put_operators(out, &contents->operators.runtimes[i]);
	for (size_t i = 0; i < contents->extent_count; i++)
		put(out, ((const struct extent_head){ contents->extents[i].offset, contents->extents[i].size,
						      contents->extents[i].address, contents->extents[i].executable }));
	for (size_t i = 0; i < contents->codes.count; i++)
		put(out, contents->codes.places[i]);
}

/* What is left to read. After an error there is nothing. */
struct input {
	const struct registry *registry;
	const char *at;
	size_t left;
	int error;
};

static int fail(struct input *input, int error)
{
	input->error = input->error ?: error;
	input->left = 0;
	return input->error;
}

static bool take_bytes(struct input *input, void *bytes, size_t length)
{
	if (length > input->left || input->error) {
		fail(input, -EPROTO);
		return false;
	}
	memcpy(bytes, input->at, length);
	input->at += length;
	input->left -= length;
	return true;
}

#define take(input, value) take_bytes(input, value, sizeof(*(value)))

static char *take_text(struct input *input, size_t length)
{
	char *text = length <= input->left && !memchr(input->at, '\0', length) ? malloc(length + 1) : NULL;

	if (!text) {
		fail(input, length <= input->left && !memchr(input->at, '\0', length) ? -ENOMEM : -EPROTO);
		return NULL;
	}
	take_bytes(input, text, length);
	text[length] = '\0';
	return text;
}

/* Room for count items, each of which takes at least least bytes of what is left. NULL for none. */
static void *take_room(struct input *input, __u64 count, size_t size, size_t least)
{
	void *room;

	if (!count || input->error)
		return NULL;
	if (count > input->left / least) {
		fail(input, -EPROTO);
		return NULL;
	}
	room = calloc(count, size);
	if (!room)
		fail(input, -ENOMEM);
	return room;
}

static bool is_site(const struct site *site)
{
	return site->class >= SITE_OPTIMISED && site->class <= SITE_STEPPED;
}

static const struct description *runtime_at(struct input *input, __u64 index)
{
	if (index < input->registry->runtime_count && !input->error)
		return input->registry->runtimes[index];
	fail(input, -EPROTO);
	return NULL;
}

static void take_functions(struct input *input, const struct contents_head *head, struct found_functions *found)
{
	found->functions = take_room(input, head->functions, sizeof(*found->functions), sizeof(struct function_head));
	for (__u64 i = 0; i < head->functions && !input->error; i++) {
		struct found_function *function = &found->functions[i];
		struct function_head one;

		if (!take(input, &one))
			return;
		if (one.spec >= input->registry->spec_count || one.by > FOUND_CLASS || !is_site(&one.site)) {
			fail(input, -EPROTO);
			return;
		}
		*function = (struct found_function){ one.spec, one.site, one.by, take_text(input, one.symbol),
						     one.shared };
		found->count += function->symbol != NULL;
	}
}

static void take_tables(struct input *input, const struct contents_head *head, struct found_functions *found)
{
	found->tables = take_room(input, head->tables, sizeof(*found->tables), sizeof(struct table_head));
	for (__u64 i = 0; i < head->tables && !input->error; i++) {
		struct table_head one;

		if (!take(input, &one))
			return;
		found->tables[i] = (struct pending_table){ runtime_at(input, one.runtime), one.accessor, one.address };
		if (!input->error && (!is_site(&one.accessor) || !found->tables[i].runtime->table.accessor))
			fail(input, -EPROTO);
		found->table_count += !input->error;
	}
}

static void take_methods(struct input *input, __u64 count, const struct description *runtime, struct classes *classes)
{
	classes->methods = take_room(input, count, sizeof(*classes->methods), sizeof(struct method_head));
	for (__u64 i = 0; i < count && !input->error; i++) {
		struct method_head one;

		if (!take(input, &one))
			return;
		if (!operators_method(&runtime->operators, one.slot)) {
			fail(input, -EPROTO);
			return;
		}
		classes->methods[i] = (struct class_method){ take_text(input, one.name), one.table, one.method,
							     one.slot };
		classes->method_count += classes->methods[i].class_name != NULL;
	}
}

static void take_runtime(struct input *input, struct file_operators *result)
{
	struct runtime_operators *runtime = &result->runtimes[result->count];
	struct operators *operators = &runtime->operators;
	struct operators_head head;

	if (!take(input, &head))
		return;
	runtime->runtime = runtime_at(input, head.runtime);
	if (input->error)
		return;
	result->count++;
	runtime->first = head.first;
	runtime->last = head.last;
	operators->unplaced = head.unplaced;
	operators->classes.class_count = head.class_count;
	operators->classes.inherited = head.inherited;
	operators->classes.abstract = head.abstract;
	operators->classes.tables = head.tables;
	operators->classes.left_out = head.left_out;
	take_methods(input, head.methods, runtime->runtime, &operators->classes);
	operators->functions = take_room(input, head.functions, sizeof(*operators->functions),
					 sizeof(*operators->functions));
	for (__u64 i = 0; i < head.functions && !input->error; i++) {
		struct operator_function *function = &operators->functions[i];

		if (!take(input, function))
			return;
		if (!is_site(&function->site) || !function->count ||
		    function->first >= operators->classes.method_count ||
		    function->count > operators->classes.method_count - function->first)
			fail(input, -EPROTO);
		operators->function_count += !input->error;
	}
	result->functions += operators->function_count;
}

static void take_codes(struct input *input, const struct contents_head *head, struct file_codes *codes)
{
	codes->left_out = head->codes_left_out;
	codes->file_size = head->file_size;
	codes->is_library = head->is_library;
	codes->is_plugin = head->is_plugin;
	if (head->codes > LOADED_CODE_MAX)
		fail(input, -EPROTO);
	codes->places = take_room(input, head->codes, sizeof(*codes->places), sizeof(*codes->places));
	for (__u64 i = 0; i < head->codes && !input->error; i++)
		codes->count += take(input, &codes->places[i]);
}

int file_contents_read(const void *bytes, size_t length, const struct registry *registry,
		       struct file_contents *contents)
{
	struct input input = { registry, bytes, length, 0 };
	struct contents_head head = { 0 };

	*contents = (struct file_contents){ 0 };
	take(&input, &head);
	contents->found.runtimes = head.runtimes;
	contents->loader_offset = head.loader_offset;
	contents->loader_state = head.loader_state;
	contents->has_loader = head.has_loader;
	memcpy(contents->build_id, head.build_id, sizeof(contents->build_id) - 1);
	if (head.missing)
		contents->found.missing = take_text(&input, head.missing);
	contents->is_static = head.is_static;
	if (head.interpreter)
		contents->interpreter = take_text(&input, head.interpreter - 1);
	take_functions(&input, &head, &contents->found);
	take_tables(&input, &head, &contents->found);
	contents->operators.runtimes = take_room(&input, head.operators, sizeof(*contents->operators.runtimes),
						 sizeof(struct operators_head));
	for (__u64 i = 0; i < head.operators && !input.error; i++)
		take_runtime(&input, &contents->operators);
	if (head.extents > FILE_EXTENTS_MAX)
		fail(&input, -EPROTO);
	for (__u64 i = 0; i < head.extents && !input.error; i++) {
		struct extent_head one;

		if (take(&input, &one))
			contents->extents[contents->extent_count++] = (struct elf_extent){ one.offset, one.size,
											   one.address,
											   one.executable };
	}
	take_codes(&input, &head, &contents->codes);
	if (!input.error && input.left)
		fail(&input, -EPROTO);
	if (input.error)
		file_contents_free(contents);
	return input.error;
}

/* ---- code objects ---- */

struct code_head {
	__u32 kind;
	__u32 machine, name, error; /* bytes and 1; 0: there is none */
	__u32 functions, parts;
	__u64 functions_left_out, parts_left_out;
};

struct code_function_head {
	__u64 offset, size, address;
	__u32 name, kernel;
};

struct code_part_head {
	__u64 offset, size;
	__u32 name, kind, external, pad;
};

void code_contents_write(FILE *out, const struct code_contents *contents)
{
	const struct code_head head = {
		.kind = contents->kind,
		.machine = size_of(contents->machine),
		.name = size_of(contents->name),
		.error = size_of(contents->error),
		.functions = contents->function_count,
		.parts = contents->part_count,
		.functions_left_out = contents->functions_left_out,
		.parts_left_out = contents->parts_left_out,
	};

	put(out, head);
	put_text(out, contents->machine, head.machine ? head.machine - 1 : 0);
	put_text(out, contents->name, head.name ? head.name - 1 : 0);
	put_text(out, contents->error, head.error ? head.error - 1 : 0);
	for (size_t i = 0; i < contents->function_count; i++) {
		const struct code_function *function = &contents->functions[i];
		const struct code_function_head one = { function->offset, function->size, function->address,
							strlen(function->name), function->kernel };

		put(out, one);
		put_text(out, function->name, one.name);
	}
	for (size_t i = 0; i < contents->part_count; i++) {
		const struct code_part *part = &contents->parts[i];
		const struct code_part_head one = { part->offset, part->size,	  strlen(part->name),
						    part->kind,	  part->external, 0 };

		put(out, one);
		put_text(out, part->name, one.name);
	}
}

static void take_code_functions(struct input *input, __u32 count, struct code_contents *contents)
{
	contents->functions = take_room(input, count, sizeof(*contents->functions), sizeof(struct code_function_head));
	for (__u32 i = 0; i < count && !input->error; i++) {
		struct code_function_head one;

		if (!take(input, &one))
			return;
		contents->functions[i] = (struct code_function){ take_text(input, one.name), one.offset, one.size,
								 one.address, one.kernel };
		contents->function_count += contents->functions[i].name != NULL;
	}
}

static void take_code_parts(struct input *input, __u32 count, struct code_contents *contents)
{
	contents->parts = take_room(input, count, sizeof(*contents->parts), sizeof(struct code_part_head));
	for (__u32 i = 0; i < count && !input->error; i++) {
		struct code_part_head one;

		if (!take(input, &one))
			return;
		if (one.kind >= CODE_KINDS) {
			fail(input, -EPROTO);
			return;
		}
		contents->parts[i] = (struct code_part){ take_text(input, one.name), one.kind, one.external, one.offset,
							 one.size };
		contents->part_count += contents->parts[i].name != NULL;
	}
}

int code_contents_read(const void *bytes, size_t length, struct code_contents *contents)
{
	struct input input = { NULL, bytes, length, 0 };
	struct code_head head = { 0 };

	*contents = (struct code_contents){ 0 };
	take(&input, &head);
	if (head.kind >= CODE_KINDS || head.functions > CODE_FUNCTIONS_MAX || head.parts > CODE_PARTS_MAX)
		fail(&input, -EPROTO);
	contents->kind = input.error ? CODE_UNKNOWN : head.kind;
	contents->functions_left_out = head.functions_left_out;
	contents->parts_left_out = head.parts_left_out;
	if (head.machine)
		contents->machine = take_text(&input, head.machine - 1);
	if (head.name)
		contents->name = take_text(&input, head.name - 1);
	if (head.error)
		contents->error = take_text(&input, head.error - 1);
	take_code_functions(&input, head.functions, contents);
	take_code_parts(&input, head.parts, contents);
	if (!input.error && input.left)
		fail(&input, -EPROTO);
	if (input.error)
		code_contents_free(contents);
	return input.error;
}
