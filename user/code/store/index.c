/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One table for each struct has the members that are written and read. The text of an index is walked through where it lies:
 * beside the list, memory is taken only for the table of objects, which is in proportion to the text.
 */
#include "code/store/index.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"
#include "base/core/vec.h"
#include "code/store/store.h"

#define MEMORY_MAX (1ull << 30) /* bytes of a list */
#define OBJECTS_MAX (1u << 20)
#define MEMBERS_MAX 20 /* of one struct */

/* What a member is, and when it is not written. */
enum member_type {
	MEMBER_STRING,	/* const char *: NULL */
	MEMBER_NAME,	/* const char *: never; "" when it is missing */
	MEMBER_KIND,	/* const char *: never; "unknown" when it is missing, or not known here */
	MEMBER_NUMBER,	/* uint64_t: 0. Exact: fractions and exponents are refused */
	MEMBER_ADDRESS, /* uint64_t: 0; "0x7f00" */
	MEMBER_PROCESS, /* pid_t: not above 0; 0 when it is missing */
	MEMBER_DEVICE,	/* int64_t: below 0 */
	MEMBER_STATUS,	/* int64_t of a load: without a function */
	MEMBER_FLAG,	/* int: 0 */
	MEMBER_PART,	/* struct json_part: never written */
};

struct member {
	const char *name;
	enum member_type type;
	size_t place; /* in its struct */
};

#define MEMBER(structure, name, type, field)           \
	{                                              \
		name, type, offsetof(structure, field) \
	}
#define COUNT(members) (sizeof(members) / sizeof((members)[0]))

static const struct member function_members[] = {
	MEMBER(struct xpt_codeobj_function, "name", MEMBER_NAME, name),
	MEMBER(struct xpt_codeobj_function, "offset", MEMBER_NUMBER, offset),
	MEMBER(struct xpt_codeobj_function, "size", MEMBER_NUMBER, size),
	MEMBER(struct xpt_codeobj_function, "address", MEMBER_ADDRESS, address),
	MEMBER(struct xpt_codeobj_function, "kernel", MEMBER_FLAG, kernel),
};

static const struct member part_members[] = {
	MEMBER(struct xpt_codeobj_part, "name", MEMBER_NAME, name),
	MEMBER(struct xpt_codeobj_part, "kind", MEMBER_KIND, kind),
	MEMBER(struct xpt_codeobj_part, "external", MEMBER_FLAG, external),
	MEMBER(struct xpt_codeobj_part, "offset", MEMBER_NUMBER, offset),
	MEMBER(struct xpt_codeobj_part, "size", MEMBER_NUMBER, length),
};

/* An object, or a load, as the index has it. */
struct entry {
	struct xpt_codeobj object;
	const char *id;	    /* of the object */
	const char *sha256; /* NULL: bytes are missing */
	struct json_part functions, parts;
};

static const struct member object_members[] = {
	MEMBER(struct entry, "id", MEMBER_STRING, id),
	MEMBER(struct entry, "kind", MEMBER_KIND, object.kind),
	MEMBER(struct entry, "machine", MEMBER_STRING, object.machine),
	MEMBER(struct entry, "name", MEMBER_STRING, object.name),
	MEMBER(struct entry, "size", MEMBER_NUMBER, object.data_size),
	MEMBER(struct entry, "sha256", MEMBER_STRING, sha256),
	MEMBER(struct entry, "file", MEMBER_STRING, object.file),
	MEMBER(struct entry, "error", MEMBER_STRING, object.error),
	MEMBER(struct entry, "functions", MEMBER_PART, functions),
	MEMBER(struct entry, "functions_left_out", MEMBER_NUMBER, object.functions_left_out),
	MEMBER(struct entry, "parts", MEMBER_PART, parts),
};

static const struct member load_members[] = {
	MEMBER(struct entry, "object", MEMBER_NAME,
	       id), /* is the first: the others are read over what the object has */
	MEMBER(struct entry, "uri", MEMBER_NAME, object.uri),
	MEMBER(struct entry, "runtime", MEMBER_STRING, object.runtime),
	MEMBER(struct entry, "function", MEMBER_STRING, object.function),
	MEMBER(struct entry, "pid", MEMBER_PROCESS, object.pid),
	MEMBER(struct entry, "tid", MEMBER_PROCESS, object.tid),
	MEMBER(struct entry, "handle", MEMBER_ADDRESS, object.handle),
	MEMBER(struct entry, "device", MEMBER_DEVICE, object.device),
	MEMBER(struct entry, "load_address", MEMBER_ADDRESS, object.load_address),
	MEMBER(struct entry, "load_size", MEMBER_NUMBER, object.load_size),
	MEMBER(struct entry, "loaded_ns", MEMBER_NUMBER, object.loaded),
	MEMBER(struct entry, "unloaded_ns", MEMBER_NUMBER, object.unloaded),
	MEMBER(struct entry, "status", MEMBER_STATUS, object.status),
	MEMBER(struct entry, "waited_ns", MEMBER_NUMBER, object.waited),
	MEMBER(struct entry, "missing", MEMBER_NUMBER, object.missing),
	MEMBER(struct entry, "error", MEMBER_STRING, object.error),
};

/* ---- writing ---- */

static void write_address(struct text *text, const char *name, __u64 value)
{
	char digits[32];

	snprintf(digits, sizeof(digits), "0x%llx", value);
	json_add_string(text, name, digits);
}

static void write_member(struct text *text, const struct member *member, const void *from)
{
	const void *value = (const char *)from + member->place;
	__u64 number = member->type == MEMBER_NUMBER || member->type == MEMBER_ADDRESS ? *(const uint64_t *)value : 0;

	switch (member->type) {
	case MEMBER_STRING:
	case MEMBER_NAME:
	case MEMBER_KIND:
		json_add_text(text, member->name, *(const char *const *)value);
		break;
	case MEMBER_NUMBER:
		if (number)
			json_add_unsigned(text, member->name, number);
		break;
	case MEMBER_ADDRESS:
		if (number)
			write_address(text, member->name, number);
		break;
	case MEMBER_PROCESS:
		if (*(const pid_t *)value > 0)
			json_add_signed(text, member->name, *(const pid_t *)value);
		break;
	case MEMBER_DEVICE:
		if (*(const int64_t *)value >= 0)
			json_add_signed(text, member->name, *(const int64_t *)value);
		break;
	case MEMBER_STATUS:
		if (((const struct entry *)from)->object.function)
			json_add_signed(text, member->name, *(const int64_t *)value);
		break;
	case MEMBER_FLAG:
		if (*(const int *)value)
			json_add_bool(text, member->name, true);
		break;
	case MEMBER_PART:
		break;
	}
}

/* Members of an object in an array, on a line of its own, which the caller ends. */
static void begin_item(struct text *text, bool first, const struct member *members, size_t count, const void *from)
{
	text_string(text, first ? "\n{" : ",\n{");
	for (size_t i = 0; i < count; i++)
		write_member(text, &members[i], from);
}

static void write_items(struct text *text, const char *name, const struct member *members, size_t member_count,
			const void *items, size_t size, size_t count)
{
	json_begin(text, name, '[');
	for (size_t i = 0; i < count; i++) {
		begin_item(text, !i, members, member_count, (const char *)items + i * size);
		json_end(text, '}');
	}
	json_end(text, ']');
}

/* What loads have in common that are of one object. */
struct group {
	const struct xpt_codeobj *object; /* the first load of it */
	const char *file;		  /* of any of them */
	size_t number;			  /* of those with bytes missing, from 1; 0: it has a hash */
	bool same_error;		  /* then it is the object's */
};

/* Loads in the order of their hashes, then as they are in the list. */
struct sorted_load {
	const struct xpt_codeobj *load;
	size_t index;
};

static int compare_entries(const void *left, const void *right)
{
	const struct sorted_load *a = left, *b = right;
	int order = strcmp(a->load->sha256, b->load->sha256);

	return order ?: a->index < b->index ? -1 : 1;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Fills of[]: the group of each load, which is the one with the first load's index. */
static int find_groups(const struct xpt_codeobj_list *list, struct group *groups, size_t *of)
{
	struct sorted_load *entries = calloc(list->count, sizeof(*entries));
	size_t incomplete = 0, first = 0;

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < list->count; i++)
		entries[i] = (struct sorted_load){ list->objects[i], i };
	qsort(entries, list->count, sizeof(*entries), compare_entries);
	for (size_t i = 0; i < list->count; i++) {
		const struct xpt_codeobj *load = entries[i].load;
		struct group *group = &groups[first];

		if (!i || !*load->sha256 || strcmp(load->sha256, group->object->sha256) != 0) {
			first = entries[i].index;
			group = &groups[first];
			*group = (struct group){ load, NULL, *load->sha256 ? 0 : ++incomplete, true };
		}
		of[entries[i].index] = first;
		group->file = group->file ?: load->file;
		/* The reason for missing bytes belongs to the load. */
		group->same_error &= !load->missing && same_text(load->error, group->object->error);
	}
	free(entries);
	return 0;
}

#define ID_SIZE (CODE_HASH_SIZE + 16)

static const char *id_of(const struct group *group, char id[ID_SIZE])
{
	if (group->number)
		snprintf(id, ID_SIZE, "incomplete-%zu", group->number);
	return group->number ? id : group->object->sha256;
}

static void write_object(struct text *text, bool first, const struct group *group)
{
	char id[ID_SIZE];
	struct entry entry = { .object = *group->object, .id = id_of(group, id) };
	const struct xpt_codeobj *object = &entry.object;

	entry.sha256 = group->number ? NULL : object->sha256;
	entry.object.file = group->number ? NULL : group->file;
	entry.object.error = group->same_error ? object->error : NULL;
	begin_item(text, first, object_members, COUNT(object_members), &entry);
	write_items(text, "functions", function_members, COUNT(function_members), object->functions,
		    sizeof(*object->functions), object->function_count);
	if (object->part_count)
		write_items(text, "parts", part_members, COUNT(part_members), object->parts, sizeof(*object->parts),
			    object->part_count);
	json_end(text, '}');
}

static void write_load(struct text *text, bool first, const struct xpt_codeobj *load, const struct group *group)
{
	char id[ID_SIZE];
	struct entry entry = { .object = *load, .id = id_of(group, id) };

	entry.object.error = group->same_error ? NULL : load->error;
	begin_item(text, first, load_members, COUNT(load_members), &entry);
	json_end(text, '}');
}

void code_index_write(struct text *text, const struct xpt_codeobj_list *list, const char *mode)
{
	struct group *groups = calloc(list->count + 1, sizeof(*groups));
	size_t *of = calloc(list->count + 1, sizeof(*of));

	if (!groups || !of || (list->count && find_groups(list, groups, of))) {
		text->error = -ENOMEM;
		goto out;
	}
	json_begin(text, NULL, '{');
	json_add_unsigned(text, "schema", CODE_INDEX_SCHEMA);
	json_add_string(text, "tool", "xputrace " XPT_VERSION);
	json_add_text(text, "mode", mode);
	json_begin(text, "objects", '[');
	for (size_t i = 0; i < list->count; i++)
		if (of[i] == i)
			write_object(text, !i, &groups[i]);
	json_end(text, ']');
	json_begin(text, "loads", '[');
	for (size_t i = 0; i < list->count; i++)
		write_load(text, !i, list->objects[i], &groups[of[i]]);
	json_end(text, ']');
	json_add_unsigned(text, "over_limit", list->over_limit);
	json_add_unsigned(text, "incomplete", list->incomplete);
	json_add_unsigned(text, "lost", list->lost);
	if (list->userdata)
		json_add_unsigned(text, "userdata", list->userdata);
	text_literal(text, "}\n");
out:
	free(groups);
	free(of);
}

/* ---- reading: the text has been checked, but it may come from anybody ---- */

/* An object of the index. */
struct known {
	const char *id;
	size_t index;
	struct xpt_codeobj object; /* without what a load has */
	bool loaded;
	bool blamed; /* its error is about its hash, or its file */
};

struct reading {
	const struct log *log;
	const char *path;	/* in front of messages */
	struct code_list *list; /* owner of the strings */
	code_index_check_fn check;
	void *check_context;
	struct known *known; /* in the order of ids, then in the order of the index */
	size_t known_count;
};

/* Reports that something is not as expected; -EBADMSG. */
static int refuse(const struct reading *reading, const char *what, const char *expected)
{
	log_error(reading->log, "%s: '%s' is not a %s", reading->path, what, expected);
	return -EBADMSG;
}

static int read_string(const struct reading *reading, const char *name, struct json_part value, const char **result)
{
	struct json_part inside = json_inside(value);
	char *text;

	if (*value.text != '"')
		return refuse(reading, name, "string");
	text = code_list_room(reading->list, inside.length + 1, 1);
	if (!text)
		return -ENOMEM;
	json_decode(inside, text);
	*result = text;
	return 0;
}

/* Digits and nothing else: what is exact. */
static bool parse_digits(const char *text, size_t length, int base, __u64 *number)
{
	char copy[24], *end;

	if (!length || length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (strspn(copy, base == 16 ? "0123456789abcdef" : "0123456789") != length)
		return false;
	errno = 0;
	*number = strtoull(copy, &end, base);
	return !errno;
}

static int read_number(const struct reading *reading, const char *name, struct json_part value, __u64 most,
		       uint64_t *result)
{
	__u64 number;

	if (!parse_digits(value.text, value.length, 10, &number) || number > most)
		return refuse(reading, name, "number that can be");
	*result = number;
	return 0;
}

static int read_signed(const struct reading *reading, const char *name, struct json_part value, int64_t *result)
{
	bool negative = *value.text == '-';
	__u64 number;

	if (!parse_digits(value.text + negative, value.length - negative, 10, &number) ||
	    number > (__u64)INT64_MAX + negative)
		return refuse(reading, name, "number that can be");
	*result = (int64_t)(negative ? -number : number);
	return 0;
}

static int read_address(const struct reading *reading, const char *name, struct json_part value, uint64_t *result)
{
	struct json_part inside = json_inside(value);
	__u64 number;

	if (inside.length < 2 || strncmp(inside.text, "0x", 2) != 0 ||
	    !parse_digits(inside.text + 2, inside.length - 2, 16, &number))
		return refuse(reading, name, "hexadecimal number");
	*result = number;
	return 0;
}

static int read_member(const struct reading *reading, const struct member *member, struct json_part value, void *to)
{
	uint64_t number = 0;
	int error;

	switch (member->type) {
	case MEMBER_STRING:
	case MEMBER_NAME:
		return read_string(reading, member->name, value, to);
	case MEMBER_KIND:
		error = read_string(reading, member->name, value, to);
		if (!error)
			*(const char **)to = code_kind_name(code_kind_from_name(*(const char **)to));
		return error;
	case MEMBER_NUMBER:
		return read_number(reading, member->name, value, ~0ull, to);
	case MEMBER_ADDRESS:
		return read_address(reading, member->name, value, to);
	case MEMBER_PROCESS:
		error = read_number(reading, member->name, value, INT32_MAX, &number);
		*(pid_t *)to = (pid_t)number;
		return error;
	case MEMBER_DEVICE:
	case MEMBER_STATUS:
		return read_signed(reading, member->name, value, to);
	case MEMBER_FLAG:
		*(int *)to = json_part_is(&value, "true");
		return 0;
	case MEMBER_PART:
		*(struct json_part *)to = value;
		return 0;
	}
	return 0;
}

/* Of members with the same name the first counts. What is missing stays as it is, or becomes what its type says. */
static int read_members(const struct reading *reading, struct json_part object, const struct member *members,
			size_t count, void *to)
{
	const char *at = object.text, *end = at + object.length;
	struct json_part values[MEMBERS_MAX] = { 0 };
	struct json_part name, value;
	int error = 0;

	while (json_next_member(&at, end, &name, &value))
		for (size_t i = 0; i < count; i++)
			if (!values[i].length && json_part_is(&name, members[i].name))
				values[i] = value;
	for (size_t i = 0; i < count && !error; i++) {
		void *place = (char *)to + members[i].place;

		if (values[i].length)
			error = read_member(reading, &members[i], values[i], place);
		else if (members[i].type == MEMBER_NAME || members[i].type == MEMBER_KIND)
			*(const char **)place = members[i].type == MEMBER_NAME ? "" : code_kind_name(CODE_UNKNOWN);
	}
	return error;
}

/* Counts the elements of an array, which becomes an empty one when it is missing. most: how many it may have. */
static int count_elements(const struct reading *reading, const char *name, struct json_part *array, size_t most,
			  size_t *count)
{
	struct json_part value;
	const char *at, *end;

	if (!array->length)
		*array = (struct json_part){ "[]", 2 };
	if (*array->text != '[')
		return refuse(reading, name, "array");
	at = array->text;
	end = at + array->length;
	for (*count = 0; json_next_element(&at, end, &value); ++*count)
		;
	return *count > most ? refuse(reading, name, "array of that length") : 0;
}

/* Elements of an array that are structs of that size. *items: NULL after an error. */
static int read_items(const struct reading *reading, const char *name, struct json_part array, size_t most,
		      const struct member *members, size_t member_count, size_t size, void **items, size_t *count)
{
	const char *at, *end;
	struct json_part value;
	int error = count_elements(reading, name, &array, most, count);

	*items = error ? NULL : code_list_room(reading->list, *count, size);
	if (!*items)
		return error ?: -ENOMEM;
	at = array.text;
	end = at + array.length;
	for (size_t i = 0; !error && i < *count && json_next_element(&at, end, &value); i++)
		error = read_members(reading, value, members, member_count, (char *)*items + i * size);
	return error;
}

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
	object->error = code_list_text(reading->list, text, strlen(text));
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

static int read_object(const struct reading *reading, struct json_part value, struct known *known)
{
	struct xpt_codeobj *object = &known->object;
	struct entry entry = { 0 };
	void *functions, *parts;
	int error = read_members(reading, value, object_members, COUNT(object_members), &entry);

	if (error)
		return error;
	if (!entry.id)
		return refuse(reading, "objects", "array of objects with an id");
	known->id = entry.id;
	*object = entry.object;
	object->size = sizeof(*object);
	object->function_size = sizeof(*object->functions);
	object->part_size = sizeof(*object->parts);
	object->device = -1;
	error = read_items(reading, "functions", entry.functions, CODE_FUNCTIONS_MAX, function_members,
			   COUNT(function_members), sizeof(*object->functions), &functions, &object->function_count);
	object->functions = functions;
	if (error)
		return error;
	error = read_items(reading, "parts", entry.parts, CODE_PARTS_MAX, part_members, COUNT(part_members),
			   sizeof(*object->parts), &parts, &object->part_count);
	object->parts = parts;
	if (error)
		return error;
	error = check_object(reading, known, entry.sha256);
	known->blamed = object->error != entry.object.error;
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
	int error = count_elements(reading, "objects", &array, OBJECTS_MAX, &reading->known_count);

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
	size_t first = vec_first(reading->known_count, i, strcmp(reading->known[i].id, id) < 0);

	return first < reading->known_count && !strcmp(reading->known[first].id, id) ? &reading->known[first] : NULL;
}

static int read_load(const struct reading *reading, struct json_part value)
{
	struct xpt_codeobj *load = code_list_add(reading->list);
	struct entry entry = { 0 };
	struct known *known;
	int error;

	if (!load)
		return -ENOMEM;
	error = read_members(reading, value, load_members, 1, &entry);
	if (error)
		return error;
	known = find_known(reading, entry.id);
	entry.object = known ? known->object : *load;
	error = read_members(reading, value, load_members + 1, COUNT(load_members) - 1, &entry);
	if (error)
		return error;
	*load = entry.object;
	if (!known)
		return blame(reading, load, "its object is not in the index: %.100s", entry.id);
	known->loaded = true;
	if (known->blamed)
		load->error = known->object.error;
	return 0;
}

static int read_loads(const struct reading *reading, struct json_part array)
{
	const char *at, *end;
	struct json_part value;
	size_t count;
	int error = count_elements(reading, "loads", &array, ~(size_t)0, &count);

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
		object = code_list_add(reading->list);
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

/* ---- the whole ---- */

struct index {
	struct xpt_codeobj_list list;
	struct json_part schema, objects, loads;
};

static int read_index(struct reading *reading, const char *text, size_t length)
{
	static const struct member members[] = {
		MEMBER(struct index, "schema", MEMBER_PART, schema),
		MEMBER(struct index, "objects", MEMBER_PART, objects),
		MEMBER(struct index, "loads", MEMBER_PART, loads),
		MEMBER(struct index, "over_limit", MEMBER_NUMBER, list.over_limit),
		MEMBER(struct index, "incomplete", MEMBER_NUMBER, list.incomplete),
		MEMBER(struct index, "lost", MEMBER_NUMBER, list.lost),
		MEMBER(struct index, "userdata", MEMBER_NUMBER, list.userdata),
	};
	struct index index = { .list = reading->list->list };
	int error;

	if (length > CODE_INDEX_MAX || !json_is_object(text, length))
		return refuse(reading, "index", "JSON object that is short enough");
	error = read_members(reading, (struct json_part){ text, length }, members, COUNT(members), &index);
	if (error)
		return error;
	if (!json_part_is(&index.schema, "1") || !index.objects.length || !index.loads.length)
		return refuse(reading, "index", "list of code objects of a version that is known");
	reading->list->list = index.list;
	error = read_objects(reading, index.objects) ?: read_loads(reading, index.loads);
	return error ?: add_rest(reading);
}

int code_index_read(const struct log *log, const char *path, const char *text, size_t length, code_index_check_fn check,
		    void *context, struct code_list **result)
{
	struct code_list *list = code_list_new(MEMORY_MAX);
	struct reading reading = { .log = log, .path = path, .list = list, .check = check, .check_context = context };
	int error = list ? read_index(&reading, text, length) : -ENOMEM;

	free(reading.known);
	if (error)
		code_list_free(list);
	else
		*result = list;
	return error;
}
