/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/polled/fdinfo.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct part {
	const char *bytes;
	size_t length;
};

/*
 * Which line makes which event. Memory that is resident is what is in use; some drivers report only what has been
 * allocated, amdgpu has reported it under a name of its own. drm-total-cycles- is the clock of the GPU and no memory,
 * drm-engine-capacity- is how many engines there are: passed over, so they come before the lines that begin alike.
 */
static const struct line_form {
	const char *key;
	const char *event; /* NULL: passed over */
	enum fdinfo_kind kind;
	unsigned int rank;
} forms[] = {
	{ "drm-engine-capacity-", NULL, FDINFO_ENGINE, 0 }, { "drm-total-cycles-", NULL, FDINFO_CYCLES, 0 },
	{ "drm-engine-", "engine-", FDINFO_ENGINE, 1 },	    { "drm-cycles-", "cycles-", FDINFO_CYCLES, 1 },
	{ "drm-total-", "memory-", FDINFO_MEMORY, 1 },	    { "drm-memory-", "memory-", FDINFO_MEMORY, 2 },
	{ "drm-resident-", "memory-", FDINFO_MEMORY, 3 },
};
#define FORM_COUNT (sizeof(forms) / sizeof(forms[0]))

static bool begins(struct part part, const char *prefix)
{
	size_t length = strlen(prefix);

	return part.length >= length && memcmp(part.bytes, prefix, length) == 0;
}

static bool is(struct part part, const char *text)
{
	return part.length == strlen(text) && memcmp(part.bytes, text, part.length) == 0;
}

static struct part trim(struct part part)
{
	while (part.length && isblank((unsigned char)part.bytes[0]))
		part = (struct part){ part.bytes + 1, part.length - 1 };
	while (part.length && isspace((unsigned char)part.bytes[part.length - 1]))
		part.length--;
	return part;
}

/* Takes a decimal number and the blanks behind it off the front; false when there is none that fits. */
static bool take_number(struct part *part, __u64 *number)
{
	size_t length = 0;

	*number = 0;
	while (length < part->length && isdigit((unsigned char)part->bytes[length])) {
		if (__builtin_mul_overflow(*number, 10, number) ||
		    __builtin_add_overflow(*number, (__u64)(part->bytes[length] - '0'), number))
			return false;
		length++;
	}
	*part = trim((struct part){ part->bytes + length, part->length - length });
	return length > 0;
}

/* What a unit makes of a number; 0 when it is none of the kind. */
static __u64 unit_factor(enum fdinfo_kind kind, struct part unit)
{
	switch (kind) {
	case FDINFO_ENGINE:
		return is(unit, "ns");
	case FDINFO_CYCLES:
		return is(unit, "");
	case FDINFO_MEMORY:
		break;
	}
	return is(unit, "") ? 1 : is(unit, "KiB") ? 1 << 10 : is(unit, "MiB") ? 1 << 20 : is(unit, "GiB") ? 1 << 30 : 0;
}

/* Names of events are written between slashes and commas. */
static bool is_name(struct part name)
{
	for (size_t i = 0; i < name.length; i++)
		if (!isalnum((unsigned char)name.bytes[i]) && !strchr("-_.+", name.bytes[i]))
			return false;
	return name.length > 0;
}

static struct fdinfo_value *find_value(struct fdinfo *fdinfo, const char *event)
{
	for (size_t i = 0; i < fdinfo->value_count; i++)
		if (strcmp(fdinfo->values[i].event, event) == 0)
			return &fdinfo->values[i];
	return NULL;
}

static void add_value(struct fdinfo *fdinfo, const struct line_form *form, struct part name, __u64 raw)
{
	struct fdinfo_value value = { .kind = form->kind, .rank = form->rank, .raw = raw }, *known;

	if (!is_name(name) || strlen(form->event) + name.length >= sizeof(value.event))
		return;
	snprintf(value.event, sizeof(value.event), "%s%.*s", form->event, (int)name.length, name.bytes);
	known = find_value(fdinfo, value.event);
	if (known && known->rank < value.rank)
		*known = value;
	else if (!known && fdinfo->value_count < FDINFO_VALUES_MAX)
		fdinfo->values[fdinfo->value_count++] = value;
}

static void parse_value(struct fdinfo *fdinfo, struct part key, struct part value)
{
	for (size_t i = 0; i < FORM_COUNT; i++) {
		const struct line_form *form = &forms[i];
		size_t length = strlen(form->key);
		__u64 number, factor;

		if (!begins(key, form->key))
			continue;
		if (!form->event || !take_number(&value, &number))
			return;
		factor = unit_factor(form->kind, value);
		if (factor && number <= UINT64_MAX / factor)
			add_value(fdinfo, form, (struct part){ key.bytes + length, key.length - length },
				  number * factor);
		return;
	}
}

/* A text that does not fit is none: a part of it could be another's. */
static void copy(char *to, size_t size, struct part from)
{
	if (from.length < size && !memchr(from.bytes, 0, from.length)) {
		memcpy(to, from.bytes, from.length);
		to[from.length] = '\0';
	}
}

static void parse_line(struct fdinfo *fdinfo, bool *has_client, struct part line)
{
	const char *colon = memchr(line.bytes, ':', line.length);
	struct part key, value;

	if (!colon)
		return;
	key = (struct part){ line.bytes, (size_t)(colon - line.bytes) };
	value = trim((struct part){ colon + 1, line.length - key.length - 1 });
	if (is(key, "drm-driver"))
		copy(fdinfo->driver, sizeof(fdinfo->driver), value);
	else if (is(key, "drm-pdev"))
		copy(fdinfo->device, sizeof(fdinfo->device), value);
	else if (is(key, "drm-client-id"))
		*has_client = take_number(&value, &fdinfo->client) && !value.length;
	else
		parse_value(fdinfo, key, value);
}

int fdinfo_parse(const char *text, size_t length, struct fdinfo *fdinfo)
{
	bool has_client = false;

	fdinfo->driver[0] = fdinfo->device[0] = '\0';
	fdinfo->value_count = 0;
	while (length) {
		const char *end = memchr(text, '\n', length);
		size_t line = end ? (size_t)(end - text) : length;

		parse_line(fdinfo, &has_client, (struct part){ text, line });
		line += end != NULL;
		text += line;
		length -= line;
	}
	return has_client && fdinfo->driver[0] ? 0 : -EINVAL;
}

bool fdinfo_event_kind(const char *event, enum fdinfo_kind *kind)
{
	for (size_t i = 0; i < FORM_COUNT; i++) {
		const struct line_form *form = &forms[i];
		size_t length = form->event ? strlen(form->event) : 0;

		if (!length || strncmp(event, form->event, length) || strlen(event) >= FDINFO_EVENT_MAX)
			continue;
		*kind = form->kind;
		return is_name((struct part){ event + length, strlen(event + length) });
	}
	return false;
}
