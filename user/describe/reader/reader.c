/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/reader/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/output.h"

#define STRING_MAX 255
#define NAME_MAX_LENGTH 31
#define SIZE_LIMIT (1 << 20) /* of a description; the largest shipped one has some 20 KB */

/* The text may quote what the file holds: nothing in it may reach a terminal as a control sequence. */
static void make_printable(char *text)
{
	size_t length = strlen(text);

	for (size_t at = 0, size; at < length; at += size ? size : 1) {
		size = utf8_sequence(text + at, length - at);
		if (!size || (unsigned char)text[at] < ' ' || text[at] == 0x7f ||
		    (size == 2 && (unsigned char)text[at] == 0xc2 && (unsigned char)text[at + 1] < 0xa0))
			memset(text + at, '?', size ? size : 1);
	}
}

static int error_at_line(const struct reader *reader, unsigned int line, const char *field, const char *reason)
{
	log_error(reader->log, "%s:%u: %s%s%s", reader->file, line, field, *field ? ": " : "", reason);
	return -EINVAL;
}

int reader_error(const struct reader *reader, const struct json_place *place, const char *format, ...)
{
	char path[JSON_PATH_MAX], reason[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	make_printable(reason);
	json_path(place, path);
	make_printable(path);
	return error_at_line(reader, json_locate(reader->text, reader->length, place), path, reason);
}

/* offset: where the parser gave up, at what it did not understand or just behind it. */
static int syntax_error(const struct reader *reader, size_t offset)
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
	return error_at_line(reader, json_line(reader->text, reader->length, offset), "", message);
}

int reader_file(const struct log *log, const char *path, char **text, size_t *length)
{
	int file = open_named(path, O_RDONLY | O_CLOEXEC), error = 0;
	char *buffer = malloc(SIZE_LIMIT + 1);
	size_t used = 0;
	ssize_t count;

	if (file < 0 || !buffer) {
		error = file < 0 ? file : -ENOMEM;
		goto out;
	}
	do {
		count = read(file, buffer + used, SIZE_LIMIT + 1 - used);
		if (count > 0)
			used += count;
	} while (count > 0 || (count < 0 && errno == EINTR));
	if (count < 0)
		error = -errno;
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

int reader_parse(const struct reader *reader, cJSON **document)
{
	const char *end = NULL, *reason;
	size_t offset = 0;
	char *copy;
	int error;

	if (reader->length > SIZE_LIMIT)
		return error_at_line(reader, 1, "", "the file is larger than 1 MiB");
	reason = json_text_check(reader->text, reader->length, &offset);
	if (reason)
		return error_at_line(reader, json_line(reader->text, reader->length, offset), "", reason);
	/* Only with a terminator does the parser see what follows the document. */
	copy = malloc(reader->length + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, reader->text, reader->length);
	copy[reader->length] = '\0';
	errno = 0; /* the parser does not report why it fails, malloc() does */
	*document = cJSON_ParseWithLengthOpts(copy, reader->length + 1, &end, true);
	if (!*document) {
		error = errno == ENOMEM ? -ENOMEM : syntax_error(reader, end && end >= copy ? (size_t)(end - copy) : 0);
		free(copy);
		return error;
	}
	free(copy);
	return 0;
}

static int unknown_key(const struct reader *reader, const struct json_place *place, const struct member *members,
		       size_t count)
{
	char known[300] = "";
	size_t used = 0;

	for (size_t i = 0; i < count && used < sizeof(known); i++)
		used += snprintf(known + used, sizeof(known) - used, " %s", members[i].key);
	return reader_error(reader, place, "unknown key (known:%s)", known);
}

int reader_members(const struct reader *reader, const cJSON *object, const struct json_place *place,
		   struct member *members, size_t count)
{
	size_t index = 0;

	for (size_t i = 0; i < count; i++)
		members[i].value = NULL;
	if (!cJSON_IsObject(object))
		return reader_error(reader, place, "must be an object");
	for (const cJSON *child = object->child; child; child = child->next, index++) {
		struct json_place at = { place, child->string, index };
		struct member *member = NULL;

		for (size_t i = 0; i < count && !member; i++)
			if (strcmp(members[i].key, child->string) == 0)
				member = &members[i];
		if (!member)
			return unknown_key(reader, &at, members, count);
		if (member->value)
			return reader_error(reader, &at, "is there twice");
		member->value = child;
		member->place = at;
	}
	return 0;
}

int reader_string(const struct reader *reader, const cJSON *value, const struct json_place *place, char **result)
{
	const char *text = value->valuestring;

	if (!cJSON_IsString(value))
		return reader_error(reader, place, "must be a string");
	if (!*text)
		return reader_error(reader, place, "must not be empty");
	if (strlen(text) > STRING_MAX)
		return reader_error(reader, place, "is longer than %d bytes", STRING_MAX);
	for (const unsigned char *byte = (const unsigned char *)text; *byte; byte++)
		if (*byte < ' ' || *byte == 0x7f || (*byte == 0xc2 && byte[1] < 0xa0))
			return reader_error(reader, place, "holds a control character");
	*result = strdup(text);
	return *result ? 0 : -ENOMEM;
}

int reader_schema(const struct reader *reader, const struct member *member, int known)
{
	__s64 schema = 0;
	int error;

	if (!member->value)
		return reader_missing(reader, NULL, member);
	error = reader_number(reader, member, 0, INT_MAX, &schema);
	if (!error && schema != known)
		error = reader_error(reader, &member->place, "schema %lld is not known, only %d is", (long long)schema,
				     known);
	return error;
}

int reader_name(const struct reader *reader, const struct json_place *place, const struct member *member, char **result)
{
	int error;

	if (!member->value)
		return reader_error(reader, place, "%s is missing", member->key);
	error = reader_string(reader, member->value, &member->place, result);
	if (error)
		return error;
	if (strlen(*result) > NAME_MAX_LENGTH)
		return reader_error(reader, &member->place, "is longer than %d bytes", NAME_MAX_LENGTH);
	if ((*result)[strspn(*result, "abcdefghijklmnopqrstuvwxyz0123456789_")])
		return reader_error(reader, &member->place, "may only hold a to z, 0 to 9 and _");
	return 0;
}

int reader_strings(const struct reader *reader, const struct member *member, char ***result, size_t *count)
{
	struct json_place at = { &member->place, NULL, 0 };
	size_t size;
	int error;

	*result = NULL;
	*count = 0;
	if (!member->value)
		return 0;
	if (!cJSON_IsArray(member->value))
		return reader_error(reader, &member->place, "must be an array of strings");
	size = cJSON_GetArraySize(member->value);
	if (!size)
		return 0;
	*result = calloc(size, sizeof(**result));
	if (!*result)
		return -ENOMEM;
	for (const cJSON *child = member->value->child; child; child = child->next, at.index++) {
		error = reader_string(reader, child, &at, &(*result)[*count]);
		if (error) {
			string_array_free(*result, *count);
			*result = NULL;
			*count = 0;
			return error;
		}
		(*count)++;
	}
	return 0;
}

int reader_items(const struct reader *reader, const struct member *member, int most, const char *what, size_t size,
		 void *items, size_t *count)
{
	int length = cJSON_IsArray(member->value) ? cJSON_GetArraySize(member->value) : 0;
	void *made;

	if (length < 1 || length > most)
		return reader_error(reader, &member->place, "must be an array of 1 to %d %s", most, what);
	made = calloc((size_t)length, size);
	if (!made)
		return -ENOMEM;
	memcpy(items, &made, sizeof(made));
	*count = (size_t)length;
	return 0;
}

int reader_number(const struct reader *reader, const struct member *member, __s64 least, __s64 most, __s64 *result)
{
	double value;

	if (!member->value)
		return 0;
	if (!cJSON_IsNumber(member->value))
		return reader_error(reader, &member->place, "must be a number");
	value = member->value->valuedouble;
	/* Written so that a NaN is refused, and so that only numbers that fit are converted. */
	if (!(value >= (double)least && value <= (double)most))
		return reader_error(reader, &member->place, "is out of range (%lld to %lld)", (long long)least,
				    (long long)most);
	if (value != (double)(__s64)value)
		return reader_error(reader, &member->place, "must be a whole number");
	*result = value;
	return 0;
}

int reader_bool(const struct reader *reader, const struct member *member, bool *result)
{
	if (!member->value)
		return 0;
	if (!cJSON_IsBool(member->value))
		return reader_error(reader, &member->place, "must be true or false");
	*result = cJSON_IsTrue(member->value);
	return 0;
}

int reader_note(const struct reader *reader, const struct member *member)
{
	struct json_place at = { &member->place, NULL, 0 };

	if (!member->value || cJSON_IsString(member->value))
		return 0;
	if (!cJSON_IsArray(member->value))
		return reader_error(reader, &member->place, "must be a string, or an array of strings");
	for (const cJSON *child = member->value->child; child; child = child->next, at.index++)
		if (!cJSON_IsString(child))
			return reader_error(reader, &at, "must be a string");
	return 0;
}

void string_array_free(char **strings, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(strings[i]);
	free(strings);
}

int reader_missing(const struct reader *reader, const struct json_place *place, const struct member *member)
{
	return reader_error(reader, place, "%s is missing", member->key);
}
