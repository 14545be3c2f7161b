/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/reader/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/json.h"
#include "base/core/text.h"
#include "base/file/file.h"
#include "base/file/output.h"

#define STRING_MAX 255
#define NAME_MAX_LENGTH 31
#define SIZE_LIMIT (1 << 20) /* of a description; the largest shipped one has some 20 KB */
#define BOM "\xef\xbb\xbf"   /* that the parser skips */

/* ---- the text ---- */

unsigned int json_line(const char *text, size_t length, size_t offset)
{
	unsigned int line = 1;

	if (offset > length)
		offset = length;
	for (size_t i = 0; i < offset; i++)
		line += text[i] == '\n';
	return line;
}

/* The value at place; none: it is not there. *shown: what stands for it in a message. */
static struct json_part find_place(struct json_part document, const struct json_place *place, const char **shown)
{
	struct json_part name, value;
	const char *at, *end;
	bool found = true;

	if (!place) {
		*shown = document.text;
		return document;
	}
	value = find_place(document, place->parent, shown);
	at = value.text;
	end = at + value.length;
	for (size_t i = 0; found && i <= place->index; i++)
		found = place->key ? json_next_member(&at, end, &name, &value) : json_next_element(&at, end, &value);
	if (!found)
		return (struct json_part){ at, 0 };
	*shown = place->key ? name.text : value.text;
	return value;
}

static struct json_part document_of(const char *text, size_t length)
{
	const char *end = text + length;

	if (length >= strlen(BOM) && !memcmp(text, BOM, strlen(BOM)))
		text += strlen(BOM);
	while (text < end && (unsigned char)*text <= ' ')
		text++;
	return (struct json_part){ text, end - text };
}

unsigned int json_locate(const char *text, size_t length, const struct json_place *place)
{
	const char *shown;

	find_place(document_of(text, length), place, &shown);
	return json_line(text, length, shown - text);
}

/* Appends at *used, as much as fits. */
static void append(char path[JSON_PATH_MAX], size_t *used, const char *text)
{
	for (; *text && *used < JSON_PATH_MAX - 1; text++)
		path[(*used)++] = (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text;
	path[*used] = '\0';
}

static void append_place(const struct json_place *place, char path[JSON_PATH_MAX], size_t *used)
{
	char index[32];

	if (!place)
		return;
	append_place(place->parent, path, used);
	if (place->key) {
		if (*used)
			append(path, used, ".");
		append(path, used, place->key);
	} else {
		snprintf(index, sizeof(index), "[%zu]", place->index);
		append(path, used, index);
	}
}

void json_path(const struct json_place *place, char path[JSON_PATH_MAX])
{
	size_t used = 0;

	path[0] = '\0';
	append_place(place, path, &used);
}

const char *json_text_check(const char *text, size_t length, size_t *offset)
{
	bool string = false;
	__u32 character;

	for (size_t at = 0, step; at < length; at += step) {
		*offset = at;
		step = text_decode(text + at, length - at, &character);
		if (!step)
			return "not valid UTF-8";
		if (!text[at])
			return "a NUL byte";
		if (text[at] == '"')
			string = !string;
		if (!string || text[at] != '\\')
			continue;
		if (length - at >= 6 && memcmp(text + at, "\\u0000", 6) == 0)
			return "\\u0000 in a string";
		/* What is escaped neither ends the string nor escapes; it may begin a sequence of several bytes. */
		if (at + 1 < length && (text[at + 1] == '"' || text[at + 1] == '\\'))
			step = 2;
	}
	return NULL;
}

/* ---- errors ---- */

static bool is_control(__u32 character)
{
	return character < ' ' || (character >= 0x7f && character < 0xa0);
}

/* The text may quote what the file holds: nothing in it may reach a terminal as a control sequence. */
static void make_printable(char *text)
{
	size_t length = strlen(text);
	__u32 character;

	for (size_t at = 0, size; at < length; at += size ? size : 1) {
		size = text_decode(text + at, length - at, &character);
		if (!size || is_control(character))
			memset(text + at, '?', size ? size : 1);
	}
}

void reader_fail(struct reader *reader, int error)
{
	reader->error = reader->error ?: error;
}

static void error_at_line(struct reader *reader, unsigned int line, const char *field, const char *reason)
{
	log_error(reader->log, "%s:%u: %s%s%s", reader->file, line, field, *field ? ": " : "", reason);
	reader_fail(reader, -EINVAL);
}

void reader_error(struct reader *reader, const struct json_place *place, const char *format, ...)
{
	char path[JSON_PATH_MAX], reason[512];
	va_list arguments;

	if (reader->error)
		return;
	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	make_printable(reason);
	json_path(place, path);
	make_printable(path);
	error_at_line(reader, json_locate(reader->text, reader->length, place), path, reason);
}

/* offset: where the parser gave up, at what it did not understand or just behind it. */
static void syntax_error(struct reader *reader, size_t offset)
{
	char message[128];
	size_t end = reader->length;

	while (end && (unsigned char)reader->text[end - 1] <= ' ')
		end--;
	if (offset < end) {
		snprintf(message, sizeof(message), "not valid JSON at '%.*s'",
			 end - offset < 24 ? (int)(end - offset) : 24, reader->text + offset);
	} else {
		snprintf(message, sizeof(message), "not valid JSON at the end of the file");
		offset = end ? end - 1 : reader->length;
	}
	make_printable(message);
	error_at_line(reader, json_line(reader->text, reader->length, offset), "", message);
}

/* ---- documents ---- */

int reader_file(const struct log *log, const char *path, char **text, size_t *length)
{
	int file = open_named(path, O_RDONLY | O_CLOEXEC), error = 0;
	char *buffer = malloc(SIZE_LIMIT + 1);
	size_t used = 0;

	if (file < 0 || !buffer) {
		error = file < 0 ? file : -ENOMEM;
		goto out;
	}
	error = file_read(file, buffer, SIZE_LIMIT + 1, &used);
out:
	if (file >= 0)
		close(file);
	if (error) {
		log_error(log, "%s: cannot be read: %s", path, strerror(-error));
		free(buffer);
		return error;
	}
	*text = buffer;
	*length = used;
	return 0;
}

/* The parser lets through what is no JSON: such a text has no places that could be reported. */
static void check_strictly(struct reader *reader)
{
	struct json_part document = document_of(reader->text, reader->length);
	size_t fault;

	if (!json_check(document.text, document.length, &fault))
		syntax_error(reader, document.text - reader->text + fault);
}

cJSON *reader_parse(struct reader *reader)
{
	const char *end = NULL, *reason;
	cJSON *document = NULL;
	size_t offset = 0;
	char *copy;

	reason = reader->length > SIZE_LIMIT ? "the file is larger than 1 MiB" :
					       json_text_check(reader->text, reader->length, &offset);
	if (reason) {
		error_at_line(reader, json_line(reader->text, reader->length, offset), "", reason);
		return NULL;
	}
	/* Only with a terminator does the parser see what follows the document. */
	copy = malloc(reader->length + 1);
	if (!copy) {
		reader_fail(reader, -ENOMEM);
		return NULL;
	}
	memcpy(copy, reader->text, reader->length);
	copy[reader->length] = '\0';
	errno = 0; /* the parser does not report why it fails, malloc() does */
	document = cJSON_ParseWithLengthOpts(copy, reader->length + 1, &end, true);
	if (document)
		check_strictly(reader);
	else if (errno == ENOMEM)
		reader_fail(reader, -ENOMEM);
	else
		syntax_error(reader, end && end >= copy ? (size_t)(end - copy) : 0);
	free(copy);
	return document;
}

/* ---- members ---- */

static void unknown_key(struct reader *reader, const struct json_place *place, const struct member *members,
			size_t count)
{
	char known[300] = "";
	size_t used = 0;

	for (size_t i = 0; i < count && used < sizeof(known); i++)
		used += snprintf(known + used, sizeof(known) - used, " %s", members[i].key);
	reader_error(reader, place, "unknown key (known:%s)", known);
}

void reader_members(struct reader *reader, const cJSON *object, const struct json_place *place, struct member *members,
		    size_t count)
{
	struct json_place at = { place, NULL, 0 };

	for (size_t i = 0; i < count; i++) {
		members[i].value = NULL;
		members[i].place = (struct json_place){ place, members[i].key, 0 };
	}
	if (!cJSON_IsObject(object))
		reader_error(reader, place, "must be an object");
	if (reader->error)
		return;
	for (const cJSON *child = object->child; child && !reader->error; child = child->next, at.index++) {
		struct member *member = NULL;

		at.key = child->string;
		for (size_t i = 0; i < count && !member; i++)
			if (strcmp(members[i].key, child->string) == 0)
				member = &members[i];
		if (!member) {
			unknown_key(reader, &at, members, count);
		} else if (member->value) {
			reader_error(reader, &at, "is there twice");
		} else {
			member->value = child;
			member->place = at;
		}
	}
}

void reader_require(struct reader *reader, const struct member *member)
{
	if (!member->value)
		reader_error(reader, member->place.parent, "%s is missing", member->key);
}

/* Whether there is a value to be read. */
static bool is_there(struct reader *reader, const struct member *member)
{
	reader_require(reader, member);
	return !reader->error;
}

char *reader_string(struct reader *reader, const struct member *member)
{
	const char *text;
	char *copy;

	if (!is_there(reader, member))
		return NULL;
	text = member->value->valuestring;
	if (!cJSON_IsString(member->value))
		reader_error(reader, &member->place, "must be a string");
	else if (!*text)
		reader_error(reader, &member->place, "must not be empty");
	else if (strlen(text) > STRING_MAX)
		reader_error(reader, &member->place, "is longer than %d bytes", STRING_MAX);
	else if (!text_is_plain(text, strlen(text)))
		reader_error(reader, &member->place, "holds a control character");
	if (reader->error)
		return NULL;
	copy = strdup(text);
	if (!copy)
		reader_fail(reader, -ENOMEM);
	return copy;
}

char *reader_optional_string(struct reader *reader, const struct member *member)
{
	return member->value ? reader_string(reader, member) : NULL;
}

char *reader_name(struct reader *reader, const struct member *member)
{
	char *name = reader_string(reader, member);

	if (name && strlen(name) > NAME_MAX_LENGTH)
		reader_error(reader, &member->place, "is longer than %d bytes", NAME_MAX_LENGTH);
	else if (name && name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")])
		reader_error(reader, &member->place, "may only hold a to z, 0 to 9 and _");
	return name;
}

char **reader_strings(struct reader *reader, const struct member *member, size_t *count)
{
	char **strings;

	*count = 0;
	if (!member->value || reader->error)
		return NULL;
	if (!cJSON_IsArray(member->value))
		reader_error(reader, &member->place, "must be an array of strings");
	if (reader->error || !member->value->child)
		return NULL;
	strings = calloc(cJSON_GetArraySize(member->value), sizeof(*strings));
	if (!strings) {
		reader_fail(reader, -ENOMEM);
		return NULL;
	}
	reader_each_child(reader, child, member)
		strings[(*count)++] = reader_string(reader, &child);
	if (!reader->error)
		return strings;
	string_array_free(strings, *count);
	*count = 0;
	return NULL;
}

void string_array_free(char **strings, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(strings[i]);
	free(strings);
}

void *reader_array(struct reader *reader, const struct member *member, size_t most, const char *what, size_t size,
		   size_t *count,
		   void (*read)(struct reader *reader, const struct member *element, void *item, void *context),
		   void *context)
{
	size_t length = cJSON_IsArray(member->value) ? cJSON_GetArraySize(member->value) : 0;
	char *items;

	*count = 0;
	if (!is_there(reader, member))
		return NULL;
	if (length < 1 || length > most) {
		reader_error(reader, &member->place, "must be an array of 1 to %zu %s", most, what);
		return NULL;
	}
	items = calloc(length, size);
	if (!items) {
		reader_fail(reader, -ENOMEM);
		return NULL;
	}
	*count = length;
	reader_each_child(reader, child, member)
		read(reader, &child, items + child.place.index * size, context);
	return items;
}

__s64 reader_number(struct reader *reader, const struct member *member, __s64 least, __s64 most, __s64 otherwise)
{
	double value;

	if (!member->value || reader->error)
		return otherwise;
	value = member->value->valuedouble;
	/* Written so that a NaN is refused, and so that only numbers that fit are converted. */
	if (!cJSON_IsNumber(member->value))
		reader_error(reader, &member->place, "must be a number");
	else if (!(value >= (double)least && value <= (double)most))
		reader_error(reader, &member->place, "is out of range (%lld to %lld)", (long long)least,
			     (long long)most);
	else if (value != (double)(__s64)value)
		reader_error(reader, &member->place, "must be a whole number");
	return reader->error ? otherwise : (__s64)value;
}

bool reader_bool(struct reader *reader, const struct member *member)
{
	if (member->value && !cJSON_IsBool(member->value))
		reader_error(reader, &member->place, "must be true or false");
	return cJSON_IsTrue(member->value);
}

unsigned int reader_choice(struct reader *reader, const struct member *member, const char *what,
			   const char *const *names, size_t count, __u64 mask)
{
	char known[400] = "";
	size_t used = 0;
	int found;

	if (!is_there(reader, member))
		return 0;
	if (!cJSON_IsString(member->value)) {
		reader_error(reader, &member->place, "must be a string");
		return 0;
	}
	found = value_of(names, count, member->value->valuestring);
	if (found >= 0 && mask >> found & 1)
		return found;
	for (size_t i = 0; i < count && used < sizeof(known); i++)
		if (names[i] && mask >> i & 1)
			used += snprintf(known + used, sizeof(known) - used, " %s", names[i]);
	reader_error(reader, &member->place, "unknown %s'%.40s' (known:%s)", what, member->value->valuestring, known);
	return 0;
}

void reader_note(struct reader *reader, const struct member *member)
{
	if (!member->value || cJSON_IsString(member->value))
		return;
	if (!cJSON_IsArray(member->value))
		reader_error(reader, &member->place, "must be a string, or an array of strings");
	reader_each_child(reader, child, member)
		if (!cJSON_IsString(child.value))
			reader_error(reader, &child.place, "must be a string");
}

/* ---- tables of names ---- */

const char *name_of(const char *const *names, size_t count, size_t value)
{
	return value < count && names[value] ? names[value] : "unknown";
}

int value_of(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (names[i] && strcmp(names[i], name) == 0)
			return i;
	return -ENOENT;
}
