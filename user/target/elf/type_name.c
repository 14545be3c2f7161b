/* SPDX-License-Identifier: BSD-2-Clause */
/* The demangler of libiberty, with limits in front of it: names come from files of any user. */
#include "target/elf/type_name.h"

#include <errno.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

/* libiberty refuses more by its limit on recursion; its stack grows with the square. */
#define MANGLED_MAX 1024
/*
 * What takes twice the time for each repetition, without a call of the callback: it reads what follows a conversion
 * operator once more where that may be template arguments, and it looks for the packs of an expansion in all that
 * substitutions stand for, which may be substitutions.
 */
#define CONVERSION_MAX 16
#define SUBSTITUTION_MAX 32 /* of a name that has expansions */

struct output {
	char *text;
	size_t length, size;
	jmp_buf full;
};

/* Substitutions of substitutions may be text without end: libiberty owns nothing that a jump would leak. */
static void append(const char *bytes, size_t length, void *context)
{
	struct output *output = context;

	if (length >= output->size - output->length)
		longjmp(output->full, 1);
	memcpy(output->text + output->length, bytes, length);
	output->length += length;
}

static size_t count_substitutions(const char *mangled)
{
	size_t count = 0;

	for (const char *at = mangled; (at = strchr(at, 'S'));) {
		at++;
		count += at[strspn(at, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '_';
	}
	return count;
}

/* Codes are counted in identifiers as well: what is skipped there could be anything. */
static bool ends_soon(const char *mangled)
{
	static const char *const expansions[] = { "Dp", "sp", "sP", "sZ", "fl", "fr", "fL", "fR" };
	size_t conversions = 0;

	for (const char *at = mangled; (at = strstr(at, "cv")); at++)
		conversions++;
	if (conversions > CONVERSION_MAX)
		return false;
	for (size_t i = 0; i < sizeof(expansions) / sizeof(expansions[0]); i++)
		if (strstr(mangled, expansions[i]))
			return count_substitutions(mangled) <= SUBSTITUTION_MAX;
	return true;
}

/* Length of the beginning that has characters of names only. */
static size_t name_characters(const char *mangled)
{
	const char *at = mangled;

	while ((unsigned char)*at > 0x7f || (*at && strchr("0123456789_$.abcdefghijklmnopqrstuvwxyz"
							   "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
							   *at)))
		at++;
	return (size_t)(at - mangled);
}

/* The name in length characters; libiberty reads no further than that. */
static int demangle(const char *name, size_t length, int options, char *text, size_t size)
{
	struct output output = { .text = text, .size = size };
	char mangled[MANGLED_MAX + 1];

	memcpy(mangled, name, length);
	mangled[length] = '\0';
	if (!size || !ends_soon(mangled))
		return -ENOTSUP;
	if (setjmp(output.full) || !cplus_demangle_v3_callback(mangled, options | DMGL_VERBOSE, append, &output) ||
	    !output.length) {
		text[0] = '\0';
		return -ENOTSUP;
	}
	text[output.length] = '\0';
	return 0;
}

int type_name_read(const char *mangled, char *text, size_t size)
{
	size_t length;

	if (size)
		text[0] = '\0';
	mangled += *mangled == '*';
	length = name_characters(mangled);
	/* An underscore begins symbols that are no types. */
	if (length > MANGLED_MAX || mangled[length] || *mangled == '_')
		return -ENOTSUP;
	return demangle(mangled, length, DMGL_TYPES | DMGL_PARAMS, text, size);
}

int type_name_read_function(const char *symbol, char *text, size_t size)
{
	size_t length = strnlen(symbol, size);

	if (size)
		text[0] = '\0';
	if (!strncmp(symbol, "_Z", 2)) {
		length = name_characters(symbol);
		/* T and G begin symbols that are no functions. */
		return strchr("TG", symbol[2]) ?
			       -ENOTSUP :
			       demangle(symbol, length < MANGLED_MAX ? length : MANGLED_MAX, 0, text, size);
	}
	if (length == size)
		return -ENOTSUP;
	memcpy(text, symbol, length + 1);
	return 0;
}
