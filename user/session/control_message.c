/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/control_message.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

#define EXACT_MAX 9007199254740992.0 /* 2^53: what a double holds exactly up to there */
#define REASON_BYTES_MAX 2000

size_t control_line_take(struct text *line, const char *bytes, size_t length, enum control_line *state)
{
	size_t room = CONTROL_LINE_MAX - line->length, taken = length < room ? length : room;
	const char *newline = taken ? memchr(bytes, '\n', taken) : NULL;

	if (newline)
		taken = newline - bytes + 1;
	text_bytes(line, bytes, taken);
	*state = CONTROL_LINE_OPEN;
	if (line->error) {
		*state = CONTROL_LINE_NO_MEMORY;
	} else if (newline) {
		line->data[--line->length] = '\0';
		*state = CONTROL_LINE_COMPLETE;
	} else if (line->length == CONTROL_LINE_MAX) {
		*state = CONTROL_LINE_TOO_LONG;
	}
	return taken;
}

/*
 * cJSON would end the string there, so that what was checked is not what is used. A backslash stands in strings only.
 */
static bool has_escaped_null(const char *text, size_t length)
{
	for (size_t i = 0; i + 6 <= length; i++) {
		if (text[i] != '\\')
			continue;
		if (!memcmp(text + i + 1, "u0000", 5))
			return true;
		i++;
	}
	return false;
}

static cJSON *read_object(const char *line, size_t length, char *reason)
{
	cJSON *object = NULL;
	size_t fault;

	if (!json_check(line, length, &fault)) {
		snprintf(reason, CONTROL_REASON_MAX,
			 "the line is not one JSON object in UTF-8 nested at most %d deep: it is good up to byte %zu of %zu",
			 JSON_DEPTH_MAX, fault, length);
		return NULL;
	}
	if (has_escaped_null(line, length)) {
		snprintf(reason, CONTROL_REASON_MAX, "a string with \\u0000 is not taken");
		return NULL;
	}
	if (json_parse(line, length, &object) == -ENOMEM)
		snprintf(reason, CONTROL_REASON_MAX, "%s", strerror(ENOMEM));
	else if (!object)
		snprintf(reason, CONTROL_REASON_MAX, "the line is no JSON object that can be read");
	return object;
}

static const cJSON *member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

static __s64 read_id(const cJSON *object)
{
	const cJSON *id = member(object, "id");

	if (!cJSON_IsNumber(id) || !(id->valuedouble >= 0 && id->valuedouble <= EXACT_MAX) ||
	    id->valuedouble != floor(id->valuedouble))
		return CONTROL_ID_NONE;
	return (__s64)id->valuedouble;
}

static int check_request(const struct control_asked *asked, char *reason)
{
	const cJSON *version = member(asked->body, "xputrace"), *name = member(asked->body, "do");

	if (!cJSON_IsNumber(version)) {
		snprintf(reason, CONTROL_REASON_MAX, "\"xputrace\" is missing: the version of the protocol, %d here",
			 CONTROL_VERSION);
		return -EINVAL;
	}
	if (version->valuedouble != CONTROL_VERSION) {
		snprintf(reason, CONTROL_REASON_MAX, "version %g of the protocol is not known here, only version %d",
			 version->valuedouble, CONTROL_VERSION);
		return -EPROTONOSUPPORT;
	}
	if (asked->id == CONTROL_ID_NONE) {
		snprintf(reason, CONTROL_REASON_MAX, "\"id\" must be a whole number from 0 to 2^53");
		return -EINVAL;
	}
	if (!cJSON_IsString(name) || !*name->valuestring) {
		snprintf(reason, CONTROL_REASON_MAX, "\"do\" must be a string that says what to do");
		return -EINVAL;
	}
	return 0;
}

int control_read_request(const char *line, size_t length, struct control_asked *asked)
{
	int error;

	*asked = (struct control_asked){ .id = CONTROL_ID_NONE };
	asked->body = read_object(line, length, asked->reason);
	if (!asked->body)
		return -EINVAL;
	asked->id = read_id(asked->body);
	error = check_request(asked, asked->reason);
	if (error) {
		cJSON_Delete(asked->body);
		asked->body = NULL;
	}
	return error;
}

static bool check_answer(const cJSON *answer, __s64 id, char *reason)
{
	const cJSON *version = member(answer, "xputrace"), *ok = member(answer, "ok");

	if (!cJSON_IsNumber(version) || version->valuedouble != CONTROL_VERSION) {
		snprintf(reason, CONTROL_REASON_MAX, "it speaks another version of the protocol than %d",
			 CONTROL_VERSION);
		return false;
	}
	if (!cJSON_IsBool(ok) || (cJSON_IsFalse(ok) && !cJSON_IsString(member(answer, "error")))) {
		snprintf(reason, CONTROL_REASON_MAX, "the answer says neither that it was done nor an error");
		return false;
	}
	if (read_id(answer) != id && !(cJSON_IsFalse(ok) && cJSON_IsNull(member(answer, "id")))) {
		snprintf(reason, CONTROL_REASON_MAX, "the answer belongs to another request");
		return false;
	}
	return true;
}

int control_read_answer(const char *line, size_t length, __s64 id, cJSON **answer, char *reason)
{
	*answer = read_object(line, length, reason);
	if (*answer && check_answer(*answer, id, reason))
		return 0;
	cJSON_Delete(*answer);
	*answer = NULL;
	return -EPROTO;
}

static bool is_reserved(const cJSON *item)
{
	return !strcmp(item->string, "xputrace") || !strcmp(item->string, "id") || !strcmp(item->string, "ok");
}

static bool write_value(struct text *text, const cJSON *value, int depth);

static bool write_items(struct text *text, const cJSON *parent, int depth)
{
	const cJSON *item;

	if (depth > JSON_DEPTH_MAX)
		return false;
	text_string(text, cJSON_IsObject(parent) ? "{" : "[");
	cJSON_ArrayForEach(item, parent) {
		if (item != parent->child)
			text_literal(text, ",");
		if (cJSON_IsObject(parent)) {
			text_json_string(text, item->string);
			text_literal(text, ":");
		}
		if (!write_value(text, item, depth))
			return false;
	}
	text_string(text, cJSON_IsObject(parent) ? "}" : "]");
	return true;
}

/* depth: of the object or array around it. */
static bool write_value(struct text *text, const cJSON *value, int depth)
{
	if (cJSON_IsObject(value) || cJSON_IsArray(value))
		return write_items(text, value, depth + 1);
	if (cJSON_IsString(value))
		text_json_string(text, value->valuestring);
	else if (cJSON_IsBool(value))
		text_string(text, cJSON_IsTrue(value) ? "true" : "false");
	else if (!cJSON_IsNumber(value))
		text_literal(text, "null");
	else if (fabs(value->valuedouble) <= EXACT_MAX && value->valuedouble == floor(value->valuedouble))
		text_signed(text, (__s64)value->valuedouble);
	else
		text_real(text, value->valuedouble);
	return text->length <= CONTROL_LINE_MAX;
}

static void write_begin(struct text *text, __s64 id)
{
	text_literal(text, "{\"xputrace\":");
	text_unsigned(text, CONTROL_VERSION);
	text_literal(text, ",\"id\":");
	if (id == CONTROL_ID_NONE)
		text_literal(text, "null");
	else
		text_signed(text, id);
}

/* The members of more, which may be NULL, and the end of the line. Takes all back if it gets too long. */
static int write_end(struct text *text, const cJSON *more)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, more) {
		if (is_reserved(item))
			continue;
		text_literal(text, ",");
		text_json_string(text, item->string);
		text_literal(text, ":");
		if (!write_value(text, item, 1))
			break;
	}
	text_literal(text, "}\n");
	if (!item && text->length <= CONTROL_LINE_MAX)
		return 0;
	text->length = 0;
	return -EMSGSIZE;
}

int control_write_request(struct text *text, __s64 id, const cJSON *request)
{
	write_begin(text, id);
	return write_end(text, request);
}

int control_write_answer(struct text *text, __s64 id, const cJSON *more)
{
	int error;

	write_begin(text, id);
	text_literal(text, ",\"ok\":true");
	error = write_end(text, more);
	if (error)
		control_write_refusal(text, id, error, "the answer is too long or nested too deep for one line");
	return error;
}

void control_write_refusal(struct text *text, __s64 id, int error, const char *reason)
{
	const char *name = strerrorname_np(-error);

	write_begin(text, id);
	text_literal(text, ",\"ok\":false,\"error\":");
	text_json_string(text, name ? name : "EIO");
	text_literal(text, ",\"reason\":");
	text_json(text, reason, text_cut(reason, strlen(reason), REASON_BYTES_MAX));
	text_literal(text, "}\n");
}
