/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptions made of text, and what the parser says of them. */
#ifndef TEST_DESCRIBE_SUPPORT_H
#define TEST_DESCRIBE_SUPPORT_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "describe/runtime/registry.h"

#define MAYBE_UNUSED __attribute__((unused))

/* The last message, and how many there were. */
struct said {
	char text[1100];
	unsigned int count;
};

static MAYBE_UNUSED void said_write(void *context, enum xpt_log_level level, const char *text)
{
	struct said *said = context;

	(void)level;
	snprintf(said->text, sizeof(said->text), "%s", text);
	said->count++;
}

/* What stands before the calls; the first one is on line 7. */
#define TOY_HEAD                         \
	"{\n"                            \
	"\"schema\": 1,\n"               \
	"\"runtime\": \"toy\",\n"        \
	"\"title\": \"Toy runtime\",\n"  \
	"\"identify\": [\"toy_run\"],\n" \
	"\"calls\": [\n"
#define TOY(call) TOY_HEAD call "\n]\n}\n"

/* Parses length bytes; they are copied so that a read beyond them is seen by the address sanitizer. */
static MAYBE_UNUSED int parse_bytes(const char *text, size_t length, struct said *said, struct description **result)
{
	struct log log = { said_write, said, XPT_LOG_DEBUG };
	char *copy = malloc(length ? length : 1);
	int error;

	memset(said, 0, sizeof(*said));
	memcpy(copy, text, length);
	error = description_parse(&log, "toy.json", copy, length, result);
	free(copy);
	return error;
}

/* Must be refused with exactly this message, and with no other. */
static MAYBE_UNUSED void expect_refused_bytes(const char *text, size_t length, const char *message)
{
	struct description *description;
	struct said said;
	int error = parse_bytes(text, length, &said, &description);

	cr_expect_eq(error, -EINVAL, "%s\ngave %d", text, error);
	cr_expect_null(description);
	cr_expect_str_eq(said.text, message, "%s\nsaid:   %s\nwanted: %s", text, said.text, message);
	cr_expect_eq(said.count, 1, "%s\ngave %u messages", text, said.count);
	description_free(description);
}

static MAYBE_UNUSED void expect_refused(const char *text, const char *message)
{
	expect_refused_bytes(text, strlen(text), message);
}

struct refused {
	const char *text, *message;
};

static MAYBE_UNUSED void expect_all_refused(const struct refused *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		expect_refused(cases[i].text, cases[i].message);
}
#define EXPECT_ALL_REFUSED(cases) expect_all_refused(cases, sizeof(cases) / sizeof((cases)[0]))

static MAYBE_UNUSED struct description *parse(const char *text)
{
	struct description *description;
	struct said said;
	int error = parse_bytes(text, strlen(text), &said, &description);

	cr_assert_eq(error, 0, "%s\ngave %d: %s", text, error, said.text);
	cr_assert_eq(said.count, 0);
	return description;
}

/* One fetch, as it must have been compiled. */
static MAYBE_UNUSED void expect_fetch(const struct xpt_fetch *fetch, struct xpt_fetch wanted, const char *what)
{
	cr_expect(memcmp(fetch, &wanted, sizeof(wanted)) == 0,
		  "%s: meaning %u source %u type %u at_return %u derefs %u [%d %d %d] last %d\n"
		  "wanted: meaning %u source %u type %u at_return %u derefs %u [%d %d %d] last %d",
		  what, fetch->meaning, fetch->source, fetch->type, fetch->at_return, fetch->derefs, fetch->offset[0],
		  fetch->offset[1], fetch->offset[2], fetch->last, wanted.meaning, wanted.source, wanted.type,
		  wanted.at_return, wanted.derefs, wanted.offset[0], wanted.offset[1], wanted.offset[2], wanted.last);
}

/* The descriptions that are shipped. */
static MAYBE_UNUSED struct registry *shipped_runtimes(void)
{
	struct registry *registry;

	cr_assert_eq(registry_create(NULL, &(struct registry_options){}, &registry), 0);
	return registry;
}

static MAYBE_UNUSED const struct call_spec *find_call(const struct registry *registry, const char *runtime,
						      const char *function)
{
	const struct description *description = registry_find(registry, runtime);

	cr_assert_not_null(description, "%s", runtime);
	for (size_t i = 0; i < description->call_count; i++)
		if (strcmp(description->calls[i].function, function) == 0)
			return &description->calls[i];
	cr_assert_fail("%s has no %s", runtime, function);
	return NULL;
}

#endif
