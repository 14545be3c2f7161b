/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text is walked through where it lies: beside the list, memory is taken only for the table of objects, which is in proportion to
 * the text.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code/store/hash.h"
#include "code/store/index.h"
#include "code/store/members.h"
#include "code/store/store.h"

#define MEMORY_MAX (1ull << 30) /* bytes of a list */
#define OBJECTS_MAX (1u << 20)

/* An object of the index. */
struct known {
	const char *id;
	size_t index;
	struct xpt_codeobj object; /* without what a load has */
	bool loaded;
	bool blamed; /* its error is about its hash, or its file */
};

struct reading {
	struct code_members members;
	code_index_check_fn check;
	void *check_context;
	struct known *known; /* in the order of ids, then in the order of the index */
	size_t known_count;
};

/* ---- contents of an object ---- */

enum { FUNCTION_NAME, FUNCTION_OFFSET, FUNCTION_SIZE, FUNCTION_ADDRESS, FUNCTION_KERNEL, FUNCTION_MEMBERS };
static const char *const function_members[] = { "name", "offset", "size", "address", "kernel" };

static int read_function(const struct reading *reading, struct json_part value, struct xpt_codeobj_function *function)
{
	struct json_part of[FUNCTION_MEMBERS];
	int error;

	members_find(value, function_members, of, FUNCTION_MEMBERS);
	function->name = "";
	function->kernel = json_part_is(&of[FUNCTION_KERNEL], "true");
	error = members_get_string(&reading->members, "name", of[FUNCTION_NAME], &function->name);
	error = error ?: members_get_number(&reading->members, "offset", of[FUNCTION_OFFSET], ~0ull, &function->offset);
	error = error ?: members_get_number(&reading->members, "size", of[FUNCTION_SIZE], ~0ull, &function->size);
	return error ?: members_get_address(&reading->members, "address", of[FUNCTION_ADDRESS], &function->address);
}

static int read_functions(const struct reading *reading, struct json_part array, struct xpt_codeobj *object)
{
	const char *at, *end;
	struct xpt_codeobj_function *functions;
	struct json_part value;
	int error = members_array(&reading->members, "functions", &array, CODE_FUNCTIONS_MAX, &object->function_count);

	if (error)
		return error;
	at = array.text;
	end = at + array.length;
	functions = code_list_room(reading->members.list, object->function_count, sizeof(*functions));
	if (!functions)
		return -ENOMEM;
	for (size_t i = 0; !error && i < object->function_count && json_next_element(&at, end, &value); i++)
		error = read_function(reading, value, &functions[i]);
	object->functions = functions;
	return error;
}

enum { PART_NAME, PART_KIND, PART_EXTERNAL, PART_OFFSET, PART_SIZE, PART_MEMBERS };
static const char *const part_members[] = { "name", "kind", "external", "offset", "size" };

static int read_part(const struct reading *reading, struct json_part value, struct xpt_codeobj_part *part)
{
	struct json_part of[PART_MEMBERS];
	int error;

	members_find(value, part_members, of, PART_MEMBERS);
	part->name = "";
	part->external = json_part_is(&of[PART_EXTERNAL], "true");
	error = members_get_string(&reading->members, "name", of[PART_NAME], &part->name);
	error = error ?: members_get_kind(&reading->members, of[PART_KIND], &part->kind);
	error = error ?: members_get_number(&reading->members, "offset", of[PART_OFFSET], ~0ull, &part->offset);
	return error ?: members_get_number(&reading->members, "size", of[PART_SIZE], ~0ull, &part->length);
}

static int read_parts(const struct reading *reading, struct json_part array, struct xpt_codeobj *object)
{
	const char *at, *end;
	struct xpt_codeobj_part *parts;
	struct json_part value;
	int error = members_array(&reading->members, "parts", &array, CODE_PARTS_MAX, &object->part_count);

	if (error)
		return error;
	at = array.text;
	end = at + array.length;
	parts = code_list_room(reading->members.list, object->part_count, sizeof(*parts));
	if (!parts)
		return -ENOMEM;
	for (size_t i = 0; !error && i < object->part_count && json_next_element(&at, end, &value); i++)
		error = read_part(reading, value, &parts[i]);
	object->parts = parts;
	return error;
}

/* ---- objects ---- */

/* Gives an object without its file an error, in words. It counts more than what it had. */
static int blame(const struct reading *reading, struct xpt_codeobj *object, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int blame(const struct reading *reading, struct xpt_codeobj *object, const char *format, ...)
{
	char text[400];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	object->file = NULL;
	object->error = code_list_text(reading->members.list, text, strlen(text));
	return object->error ? 0 : -ENOMEM;
}

static int check_object(const struct reading *reading, struct known *known, const char *sha256)
{
	struct xpt_codeobj *object = &known->object;
	const char *reason;

	if (sha256 && (!code_hash_valid(sha256) || strcmp(sha256, known->id) != 0))
		return blame(reading, object, "its hash is not that of its id");
	snprintf(object->sha256, sizeof(object->sha256), "%s", sha256 ?: "");
	if (!object->file)
		return 0;
	if (!sha256 || !code_store_is_name(object->file, sha256))
		return blame(reading, object, "it names a file that is not its own: %.200s", object->file);
	reason = reading->check ? reading->check(reading->check_context, object->file, object->data_size) : NULL;
	return reason ? blame(reading, object, "%.100s: %.200s", object->file, reason) : 0;
}

enum {
	OBJECT_ID,
	OBJECT_KIND,
	OBJECT_MACHINE,
	OBJECT_NAME,
	OBJECT_SIZE,
	OBJECT_SHA256,
	OBJECT_FILE,
	OBJECT_ERROR,
	OBJECT_FUNCTIONS,
	OBJECT_LEFT_OUT,
	OBJECT_PARTS,
	OBJECT_MEMBERS,
};
static const char *const object_members[] = { "id",	"kind", "machine", "name",	"size",
					      "sha256", "file", "error",   "functions", "functions_left_out",
					      "parts" };

static int read_object(const struct reading *reading, struct json_part value, struct known *known)
{
	struct xpt_codeobj *object = &known->object;
	struct json_part of[OBJECT_MEMBERS];
	const char *sha256 = NULL;
	const char *own;
	int error;

	members_find(value, object_members, of, OBJECT_MEMBERS);
	if (!of[OBJECT_ID].length)
		return members_refuse(&reading->members, "objects", "array of objects with an id");
	object->size = sizeof(*object);
	object->function_size = sizeof(*object->functions);
	object->part_size = sizeof(*object->parts);
	object->device = -1;
	error = members_get_string(&reading->members, "id", of[OBJECT_ID], &known->id);
	error = error ?: members_get_kind(&reading->members, of[OBJECT_KIND], &object->kind);
	error = error ?: members_get_string(&reading->members, "machine", of[OBJECT_MACHINE], &object->machine);
	error = error ?: members_get_string(&reading->members, "name", of[OBJECT_NAME], &object->name);
	error = error ?: members_get_number(&reading->members, "size", of[OBJECT_SIZE], ~0ull, &object->data_size);
	error = error ?: members_get_string(&reading->members, "sha256", of[OBJECT_SHA256], &sha256);
	error = error ?: members_get_string(&reading->members, "file", of[OBJECT_FILE], &object->file);
	error = error ?: members_get_string(&reading->members, "error", of[OBJECT_ERROR], &object->error);
	error = error ?: read_functions(reading, of[OBJECT_FUNCTIONS], object);
	error = error ?:
			members_get_number(&reading->members, "functions_left_out", of[OBJECT_LEFT_OUT], ~0ull,
					   &object->functions_left_out);
	error = error ?: read_parts(reading, of[OBJECT_PARTS], object);
	own = object->error;
	error = error ?: check_object(reading, known, sha256);
	known->blamed = object->error != own;
	return error;
}

static int compare_known(const void *left, const void *right)
{
	const struct known *a = left, *b = right;
	int order = strcmp(a->id, b->id);

	return order ?: a->index < b->index ? -1 : 1;
}

static int read_objects(struct reading *reading, struct json_part array)
{
	const char *at, *end;
	struct json_part value;
	int error = members_array(&reading->members, "objects", &array, OBJECTS_MAX, &reading->known_count);

	if (error)
		return error;
	at = array.text;
	end = at + array.length;
	reading->known = calloc(reading->known_count + 1, sizeof(*reading->known));
	if (!reading->known)
		return -ENOMEM;
	for (size_t i = 0; !error && i < reading->known_count && json_next_element(&at, end, &value); i++) {
		reading->known[i].index = i;
		error = read_object(reading, value, &reading->known[i]);
	}
	if (!error)
		qsort(reading->known, reading->known_count, sizeof(*reading->known), compare_known);
	return error;
}

/* The first of those with the id. */
static struct known *find_known(const struct reading *reading, const char *id)
{
	size_t low = 0, high = reading->known_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(reading->known[middle].id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < reading->known_count && !strcmp(reading->known[low].id, id) ? &reading->known[low] : NULL;
}

/* ---- loads ---- */

enum {
	LOAD_OBJECT,
	LOAD_URI,
	LOAD_RUNTIME,
	LOAD_FUNCTION,
	LOAD_PID,
	LOAD_TID,
	LOAD_HANDLE,
	LOAD_DEVICE,
	LOAD_ADDRESS,
	LOAD_SIZE,
	LOAD_LOADED,
	LOAD_UNLOADED,
	LOAD_STATUS,
	LOAD_WAITED,
	LOAD_MISSING,
	LOAD_ERROR,
	LOAD_MEMBERS,
};
static const char *const load_members[] = {
	"object",	"uri",	     "runtime",	  "function",	 "pid",	   "tid",	"handle",  "device",
	"load_address", "load_size", "loaded_ns", "unloaded_ns", "status", "waited_ns", "missing", "error",
};

/* What is of the load alone. */
static int read_members(const struct reading *reading, const struct json_part *of, struct xpt_codeobj *load)
{
	int error = members_get_string(&reading->members, "uri", of[LOAD_URI], &load->uri);

	error = error ?: members_get_string(&reading->members, "runtime", of[LOAD_RUNTIME], &load->runtime);
	error = error ?: members_get_string(&reading->members, "function", of[LOAD_FUNCTION], &load->function);
	error = error ?: members_get_process(&reading->members, "pid", of[LOAD_PID], &load->pid);
	error = error ?: members_get_process(&reading->members, "tid", of[LOAD_TID], &load->tid);
	error = error ?: members_get_address(&reading->members, "handle", of[LOAD_HANDLE], &load->handle);
	error = error ?: members_get_signed(&reading->members, "device", of[LOAD_DEVICE], &load->device);
	error = error ?: members_get_address(&reading->members, "load_address", of[LOAD_ADDRESS], &load->load_address);
	error = error ?: members_get_number(&reading->members, "load_size", of[LOAD_SIZE], ~0ull, &load->load_size);
	error = error ?: members_get_number(&reading->members, "loaded_ns", of[LOAD_LOADED], ~0ull, &load->loaded);
	error = error ?:
			members_get_number(&reading->members, "unloaded_ns", of[LOAD_UNLOADED], ~0ull, &load->unloaded);
	error = error ?: members_get_signed(&reading->members, "status", of[LOAD_STATUS], &load->status);
	error = error ?: members_get_number(&reading->members, "waited_ns", of[LOAD_WAITED], ~0ull, &load->waited);
	error = error ?: members_get_number(&reading->members, "missing", of[LOAD_MISSING], ~0ull, &load->missing);
	return error ?: members_get_string(&reading->members, "error", of[LOAD_ERROR], &load->error);
}

static int read_load(const struct reading *reading, struct json_part value)
{
	struct xpt_codeobj *load = code_list_add(reading->members.list);
	struct json_part of[LOAD_MEMBERS];
	const char *id = "";
	struct known *known;
	int error;

	if (!load)
		return -ENOMEM;
	members_find(value, load_members, of, LOAD_MEMBERS);
	error = members_get_string(&reading->members, "object", of[LOAD_OBJECT], &id);
	if (error)
		return error;
	known = find_known(reading, id);
	if (known) {
		known->loaded = true;
		*load = known->object;
	}
	load->uri = "";
	error = read_members(reading, of, load);
	if (known && known->blamed)
		load->error = known->object.error;
	if (!error && !known)
		error = blame(reading, load, "its object is not in the index: %.100s", id);
	return error;
}

static int read_loads(const struct reading *reading, struct json_part array)
{
	const char *at, *end;
	struct json_part value;
	size_t count;
	int error = members_array(&reading->members, "loads", &array, ~(size_t)0, &count);

	at = array.text;
	end = at + array.length;
	while (!error && json_next_element(&at, end, &value))
		error = read_load(reading, value);
	return error;
}

/* What no load is of, twice what is there twice, is not passed over. */
static int add_rest(const struct reading *reading)
{
	int error = 0;

	for (size_t i = 0; !error && i < reading->known_count; i++) {
		struct known *known = &reading->known[i];
		bool again = i && !strcmp(known->id, known[-1].id);
		struct xpt_codeobj *object;

		if (known->loaded)
			continue;
		object = code_list_add(reading->members.list);
		if (!object)
			return -ENOMEM;
		*object = known->object;
		object->uri = "";
		if (again || !object->error)
			error = blame(reading, object, again ? "it is in the index twice" : "no load is of it");
	}
	return error;
}

/* ---- the whole ---- */

enum {
	INDEX_SCHEMA,
	INDEX_OBJECTS,
	INDEX_LOADS,
	INDEX_OVER_LIMIT,
	INDEX_INCOMPLETE,
	INDEX_LOST,
	INDEX_USERDATA,
	INDEX_MEMBERS
};
static const char *const index_members[] = { "schema",	   "objects", "loads",	 "over_limit",
					     "incomplete", "lost",    "userdata" };

static int read_index(struct reading *reading, const char *text, size_t length)
{
	struct xpt_codeobj_list *list = &reading->members.list->list;
	struct json_part of[INDEX_MEMBERS];
	int error;

	if (length > CODE_INDEX_MAX || !json_is_object(text, length))
		return members_refuse(&reading->members, "index", "JSON object that is short enough");
	members_find((struct json_part){ text, length }, index_members, of, INDEX_MEMBERS);
	if (!json_part_is(&of[INDEX_SCHEMA], "1") || !of[INDEX_OBJECTS].length || !of[INDEX_LOADS].length)
		return members_refuse(&reading->members, "index", "list of code objects of a version that is known");
	error = members_get_number(&reading->members, "over_limit", of[INDEX_OVER_LIMIT], ~0ull, &list->over_limit);
	error = error ?:
			members_get_number(&reading->members, "incomplete", of[INDEX_INCOMPLETE], ~0ull,
					   &list->incomplete);
	error = error ?: members_get_number(&reading->members, "lost", of[INDEX_LOST], ~0ull, &list->lost);
	error = error ?: members_get_number(&reading->members, "userdata", of[INDEX_USERDATA], ~0ull, &list->userdata);
	error = error ?: read_objects(reading, of[INDEX_OBJECTS]);
	error = error ?: read_loads(reading, of[INDEX_LOADS]);
	return error ?: add_rest(reading);
}

int code_index_read(const struct log *log, const char *path, const char *text, size_t length, code_index_check_fn check,
		    void *context, struct code_list **result)
{
	struct code_list *list = code_list_new(MEMORY_MAX);
	struct reading reading = { .members = { log, path, list }, .check = check, .check_context = context };
	int error = list ? read_index(&reading, text, length) : -ENOMEM;

	free(reading.known);
	if (error)
		code_list_free(list);
	else
		*result = list;
	return error;
}
