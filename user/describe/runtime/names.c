/* SPDX-License-Identifier: BSD-2-Clause */
/* How roles, meanings and where code is are called in descriptions and in every output. */
#include <errno.h>
#include <string.h>

#include "describe/runtime/description.h"

static const char *const role_names[] = {
	[XPT_ROLE_PROGRAM_LOAD] = "program.load",
	[XPT_ROLE_PROGRAM_NAME] = "program.name",
	[XPT_ROLE_PROGRAM_UNLOAD] = "program.unload",
	[XPT_ROLE_EXECUTE] = "execute",
	[XPT_ROLE_ENQUEUE] = "enqueue",
	[XPT_ROLE_WAIT] = "wait",
	[XPT_ROLE_LAUNCH] = "launch",
	[XPT_ROLE_COPY] = "copy",
	[XPT_ROLE_ALLOC] = "alloc",
	[XPT_ROLE_FREE] = "free",
	[XPT_ROLE_SELECT] = "select",
	[XPT_ROLE_REGION_BEGIN] = "region.begin",
	[XPT_ROLE_REGION_END] = "region.end",
	[XPT_ROLE_REGION_NAME] = "region.name",
	[XPT_ROLE_REGION_RELEASE] = "region.release",
	[XPT_ROLE_REGION_PRINT] = "region.print",
	[XPT_ROLE_REGION] = "region",
	[XPT_ROLE_MARK] = "mark",
	[XPT_ROLE_STREAM] = "stream",
	[XPT_ROLE_CALLBACK] = "callback",
	[XPT_ROLE_PROGRAM_READY] = "program.ready",
	[XPT_ROLE_CODEOBJ_LOAD] = "codeobj.load",
	[XPT_ROLE_CODEOBJ_UNLOAD] = "codeobj.unload",
	[XPT_ROLE_RESOLVE] = "resolve",
	[XPT_ROLE_TABLE] = "table",
	[XPT_ROLE_LOADER] = "loader",
	[XPT_ROLE_OPERATOR] = "operator",
};

static const char *const meaning_names[] = {
	[XPT_MEANING_PROGRAM] = "program",   [XPT_MEANING_KEY] = "key",
	[XPT_MEANING_NAME] = "name",	     [XPT_MEANING_SIZE] = "size",
	[XPT_MEANING_CORE] = "core",	     [XPT_MEANING_STREAM] = "stream",
	[XPT_MEANING_STATUS] = "status",     [XPT_MEANING_PARENT] = "parent",
	[XPT_MEANING_ADDRESS] = "address",   [XPT_MEANING_COUNT] = "count",
	[XPT_MEANING_LENGTH] = "length",     [XPT_MEANING_OBJECT] = "object",
	[XPT_MEANING_CLASS] = "class",	     [XPT_MEANING_INFERENCE] = "inference",
	[XPT_MEANING_KEYS] = "keys",	     [XPT_MEANING_BLOCKING] = "blocking",
	[XPT_MEANING_ORDERED] = "ordered",   [XPT_MEANING_WHEN] = "when",
	[XPT_MEANING_TOKENS] = "tokens",     [XPT_MEANING_POSITION] = "position",
	[XPT_MEANING_SEQUENCE] = "sequence", [XPT_MEANING_NEXT_SEQUENCE] = "next_sequence",
	[XPT_MEANING_CALLBACK] = "callback",
};

static const char *const code_source_names[] = {
	[XPT_CODE_MEMORY] = "bytes",
	[XPT_CODE_PARTS] = "parts",
	[XPT_CODE_PATH] = "path",
	[XPT_CODE_DESCRIPTOR] = "descriptor",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *name_of(const char *const *names, size_t count, size_t value)
{
	return value < count && names[value] ? names[value] : "unknown";
}

static int value_of(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (names[i] && strcmp(names[i], name) == 0)
			return i;
	return -ENOENT;
}

const char *role_name(enum xpt_role role)
{
	return name_of(role_names, COUNT(role_names), role);
}

const char *meaning_name(enum xpt_meaning meaning)
{
	return name_of(meaning_names, COUNT(meaning_names), meaning);
}

const char *code_source_name(enum xpt_code_source source)
{
	return name_of(code_source_names, COUNT(code_source_names), source);
}

int role_from_name(const char *name)
{
	return value_of(role_names, COUNT(role_names), name);
}

int meaning_from_name(const char *name)
{
	return value_of(meaning_names, COUNT(meaning_names), name);
}
