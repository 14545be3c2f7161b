/* SPDX-License-Identifier: BSD-2-Clause */
#include "control/control.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"

#define EXACT_MAX 9007199254740992.0	    /* 2^53: whole numbers up to here are exact in JSON */
#define U64_MAX_REAL 18446744073709549568.0 /* the largest that fits into 64 bits */
#define ERRNO_END 4096			    /* no error is numbered from here on */

/* ---- what each message has ---- */

/* cJSON would end the string there, so that what was checked is not what is used. Backslashes occur in strings only. */
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

static cJSON *read_object(const char *packet, size_t length, char *reason)
{
	cJSON *object = NULL;
	size_t fault;

	if (length > CONTROL_PACKET_MAX)
		snprintf(reason, CONTROL_REASON_MAX, "the packet has more than %d bytes", CONTROL_PACKET_MAX);
	else if (!json_check(packet, length, &fault))
		snprintf(reason, CONTROL_REASON_MAX,
			 "the packet is not one JSON object in UTF-8, nested at most %d deep: error at byte %zu of %zu",
			 JSON_DEPTH_MAX, fault, length);
	else if (has_escaped_null(packet, length))
		snprintf(reason, CONTROL_REASON_MAX, "a string contains \\u0000");
	else if (json_parse(packet, length, &object) == -ENOMEM)
		snprintf(reason, CONTROL_REASON_MAX, "%s", strerror(ENOMEM));
	else if (!object)
		snprintf(reason, CONTROL_REASON_MAX, "the packet is not a JSON object");
	return object;
}

static const cJSON *member_of(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* A whole number in the range; one that is missing leaves the result alone. */
static bool read_number(const cJSON *object, const char *name, double least, double most, uint64_t *result)
{
	const cJSON *value = member_of(object, name);

	if (!value)
		return true;
	if (!cJSON_IsNumber(value) || !(value->valuedouble >= least && value->valuedouble <= most) ||
	    value->valuedouble != floor(value->valuedouble))
		return false;
	*result = least < 0 ? (uint64_t)(int64_t)value->valuedouble : (uint64_t)value->valuedouble;
	return true;
}

static __s64 read_id(const cJSON *object)
{
	uint64_t id = (uint64_t)CONTROL_ID_NONE;

	return read_number(object, "id", 0, EXACT_MAX, &id) ? (__s64)id : CONTROL_ID_NONE;
}

static int check_request(const cJSON *body, __s64 id, char *reason)
{
	const cJSON *version = member_of(body, "xputrace"), *what = member_of(body, "do");

	if (cJSON_IsNumber(version) && version->valuedouble != CONTROL_VERSION) {
		snprintf(reason, CONTROL_REASON_MAX, "version %g of the protocol is not supported, only version %d",
			 version->valuedouble, CONTROL_VERSION);
		return -EPROTONOSUPPORT;
	}
	if (!cJSON_IsNumber(version))
		snprintf(reason, CONTROL_REASON_MAX, "\"xputrace\" must be the version of the protocol, %d",
			 CONTROL_VERSION);
	else if (id == CONTROL_ID_NONE)
		snprintf(reason, CONTROL_REASON_MAX, "\"id\" must be a whole number from 0 to 2^53");
	else if (!cJSON_IsString(what) || !*what->valuestring)
		snprintf(reason, CONTROL_REASON_MAX, "\"do\" must be a string: what to do");
	else
		return 0;
	return -EINVAL;
}

int control_read_request(const char *packet, size_t length, __s64 *id, cJSON **body, char *reason)
{
	int error;

	*body = read_object(packet, length, reason);
	*id = *body ? read_id(*body) : CONTROL_ID_NONE;
	error = *body ? check_request(*body, *id, reason) : -EINVAL;
	if (error) {
		cJSON_Delete(*body);
		*body = NULL;
	}
	return error;
}

static bool check_answer(const cJSON *answer, __s64 id, char *reason)
{
	const cJSON *version = member_of(answer, "xputrace"), *ok = member_of(answer, "ok");

	if (!cJSON_IsNumber(version) || version->valuedouble != CONTROL_VERSION)
		snprintf(reason, CONTROL_REASON_MAX, "its protocol has another version than %d", CONTROL_VERSION);
	else if (!cJSON_IsBool(ok) || (cJSON_IsFalse(ok) && !cJSON_IsString(member_of(answer, "error"))))
		snprintf(reason, CONTROL_REASON_MAX, "the answer has neither a result nor an error");
	else if (read_id(answer) != id && !(cJSON_IsFalse(ok) && cJSON_IsNull(member_of(answer, "id"))))
		snprintf(reason, CONTROL_REASON_MAX, "the answer belongs to another request");
	else
		return true;
	return false;
}

int control_read_answer(const char *packet, size_t length, __s64 id, cJSON **answer, char *reason)
{
	*answer = read_object(packet, length, reason);
	if (*answer && check_answer(*answer, id, reason))
		return 0;
	cJSON_Delete(*answer);
	*answer = NULL;
	return -EPROTO;
}

int control_answer_error(const cJSON *answer, const char **reason)
{
	const char *name = cJSON_GetStringValue(member_of(answer, "error"));
	const char *text = cJSON_GetStringValue(member_of(answer, "reason"));

	if (cJSON_IsTrue(member_of(answer, "ok")))
		return 0;
	if (reason)
		*reason = text ? text : "";
	for (int error = 1; name && error < ERRNO_END; error++) {
		const char *known = strerrorname_np(error);

		if (known && !strcmp(known, name))
			return -error;
	}
	return -EREMOTEIO;
}

static void begin(struct text *text, __s64 id)
{
	json_begin(text, NULL, '{');
	json_add_unsigned(text, "xputrace", CONTROL_VERSION);
	if (id == CONTROL_ID_NONE)
		json_add_real(text, "id", NAN); /* null */
	else
		json_add_signed(text, "id", id);
}

void control_begin_request(struct text *text, __s64 id, const char *what)
{
	begin(text, id);
	json_add_text(text, "do", what);
}

void control_begin_answer(struct text *text, __s64 id)
{
	begin(text, id);
	json_add_bool(text, "ok", true);
}

int control_end(struct text *text)
{
	json_end(text, '}');
	return text->error ?: text->length > CONTROL_PACKET_MAX ? -EMSGSIZE : 0;
}

void control_write_refusal(struct text *text, __s64 id, int error, const char *reason)
{
	const char *name = strerrorname_np(-error);
	char cut[CONTROL_REASON_MAX];

	snprintf(cut, sizeof(cut), "%s", reason);
	begin(text, id);
	json_add_bool(text, "ok", false);
	json_add_text(text, "error", name ?: "EIO");
	json_add_text(text, "reason", cut);
	json_end(text, '}');
}

/* ---- members of continuous profiling ---- */

/* A number of a message: where it is in the structure. */
struct figure {
	const char *name;
	size_t offset;
	bool is_string; /* ns since 1970 are beyond what all readers of JSON keep exactly */
};

#define SAVED(name, is_string)                                     \
	{                                                          \
#name, offsetof(struct xpt_saved, name), is_string \
	}
#define STATUS(name)                                                       \
	{                                                                  \
#name, offsetof(struct xpt_continuous_status, name), false \
	}
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct figure saved_figures[] = {
	SAVED(bytes, false),	SAVED(records, false), SAVED(inferences, false), SAVED(lost, false),
	SAVED(duration, false), SAVED(begin, true),    SAVED(end, true),
};

static const struct figure status_figures[] = {
	STATUS(elapsed),
	STATUS(calls),
	STATUS(lost),
	STATUS(window_time),
	STATUS(window_bytes),
	STATUS(window_records),
	STATUS(window_inferences),
	STATUS(evicted_records),
	STATUS(evicted_inferences),
	STATUS(saves),
	STATUS(saved_bytes),
	STATUS(failed_saves),
	STATUS(triggered),
	STATUS(suppressed),
	STATUS(cpu_time),
};

static void add_figures(struct text *text, const void *structure, const struct figure *figures, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const uint64_t *value = (const uint64_t *)((const char *)structure + figures[i].offset);
		char decimal[24];

		snprintf(decimal, sizeof(decimal), "%" PRIu64, *value);
		if (figures[i].is_string)
			json_add_text(text, figures[i].name, decimal);
		else
			json_add_unsigned(text, figures[i].name, *value);
	}
}

/* A number of 64 bits, as a string. */
static bool read_digits(const cJSON *object, const char *name, int base, uint64_t *result)
{
	const cJSON *value = member_of(object, name);
	const char *text = cJSON_GetStringValue(value);
	char *end;

	if (!value)
		return true;
	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*result = strtoull(text, &end, base);
	return !errno && !*end;
}

static bool read_figures(const cJSON *object, void *structure, const struct figure *figures, size_t count)
{
	bool good = true;

	for (size_t i = 0; i < count && good; i++) {
		uint64_t *value = (uint64_t *)((char *)structure + figures[i].offset);

		good = figures[i].is_string ? read_digits(object, figures[i].name, 10, value) :
					      read_number(object, figures[i].name, 0, U64_MAX_REAL, value);
	}
	return good;
}

void control_add_save(struct text *text, const struct xpt_save_options *options)
{
	char handle[24];

	if (options->pid)
		json_add_signed(text, "pid", options->pid);
	json_add_text(text, "program", options->program);
	if (options->handle) {
		snprintf(handle, sizeof(handle), "0x%" PRIx64, options->handle);
		json_add_text(text, "handle", handle);
	}
	if (options->has_core)
		json_add_signed(text, "core", options->core);
	if (options->inferences)
		json_add_unsigned(text, "inferences", options->inferences);
	if (options->time)
		json_add_unsigned(text, "time", options->time);
}

int control_read_save(const cJSON *object, struct xpt_save_options *options, const char **member)
{
	const cJSON *program = member_of(object, "program");
	uint64_t pid = 0, core = 0;

	*options = (struct xpt_save_options){
		.size = sizeof(*options),
		.program = cJSON_GetStringValue(program),
		.has_core = member_of(object, "core") != NULL,
	};
	*member = program && !options->program						 ? "program" :
		  !read_number(object, "pid", 1, INT32_MAX, &pid)			 ? "pid" :
		  !read_number(object, "core", -EXACT_MAX, EXACT_MAX, &core)		 ? "core" :
		  !read_digits(object, "handle", 0, &options->handle)			 ? "handle" :
		  !read_number(object, "inferences", 1, EXACT_MAX, &options->inferences) ? "inferences" :
		  !read_number(object, "time", 1, EXACT_MAX, &options->time)		 ? "time" :
											   NULL;
	if (*member)
		return -EINVAL;
	options->pid = (pid_t)pid;
	options->core = (int64_t)core;
	return 0;
}

void control_add_saved(struct text *text, const struct xpt_saved *saved)
{
	json_add_text(text, "path", saved->path);
	add_figures(text, saved, saved_figures, COUNT(saved_figures));
}

int control_read_saved(const cJSON *object, struct xpt_saved *saved)
{
	const char *path = cJSON_GetStringValue(member_of(object, "path"));
	struct xpt_saved read = { .size = saved->size };

	if (!path || strlen(path) >= sizeof(read.path) ||
	    !read_figures(object, &read, saved_figures, COUNT(saved_figures)))
		return -EINVAL;
	strcpy(read.path, path);
	*saved = read;
	return 0;
}

void control_add_status(struct text *text, const struct xpt_continuous_status *status)
{
	json_add_signed(text, "pid", status->pid);
	json_add_unsigned(text, "processes", status->processes);
	add_figures(text, status, status_figures, COUNT(status_figures));
}

int control_read_status(const cJSON *object, struct xpt_continuous_status *status)
{
	struct xpt_continuous_status read = { .size = status->size };
	uint64_t pid = 0, processes = 0;

	if (!read_number(object, "pid", 0, INT32_MAX, &pid) ||
	    !read_number(object, "processes", 0, UINT32_MAX, &processes) ||
	    !read_figures(object, &read, status_figures, COUNT(status_figures)))
		return -EINVAL;
	read.pid = (pid_t)pid;
	read.processes = (unsigned int)processes;
	*status = read;
	return 0;
}
