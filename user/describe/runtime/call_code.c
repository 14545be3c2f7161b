/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/runtime/call_code.h"

#include <stdio.h>

#include "describe/runtime/fetch_member.h"

enum { BYTES, PARTS, PATH, DESCRIPTOR, SIZE, SIZES, COUNT, KIND, NOTE, MEMBERS };
#define SOURCES SIZE /* the first members are the sources of the code; there is exactly one of them */

enum value { ADDRESS, NUMBER, STRING };

/* A member that is fetched. */
struct place_rule {
	__u8 index;	/* XPT_CODE_BYTES, ... */
	__u8 value;	/* enum value */
	__u8 sources;	/* bit i: may be used with member i */
	__u8 needed_by; /* bit i: must be used with member i */
};

#define WITH(source) (1u << (source))
static const struct place_rule rules[] = {
	[BYTES] = { XPT_CODE_BYTES, ADDRESS, WITH(BYTES), WITH(BYTES) },
	[PARTS] = { XPT_CODE_BYTES, ADDRESS, WITH(PARTS), WITH(PARTS) },
	[PATH] = { XPT_CODE_BYTES, STRING, WITH(PATH), WITH(PATH) },
	[DESCRIPTOR] = { XPT_CODE_BYTES, NUMBER, WITH(DESCRIPTOR), WITH(DESCRIPTOR) },
	[SIZE] = { XPT_CODE_SIZE, NUMBER, WITH(BYTES), 0 },
	[SIZES] = { XPT_CODE_SIZE, ADDRESS, WITH(PARTS), WITH(PARTS) },
	[COUNT] = { XPT_CODE_COUNT, NUMBER, WITH(PARTS), WITH(PARTS) },
};

static const enum xpt_code_source sources[] = {
	[BYTES] = XPT_CODE_MEMORY,
	[PARTS] = XPT_CODE_PARTS,
	[PATH] = XPT_CODE_PATH,
	[DESCRIPTOR] = XPT_CODE_DESCRIPTOR,
};

struct check {
	const struct reader *reader;
	const struct place_rule *rule;
};

static int check_fetch(void *context, const struct json_place *place, const struct xpt_fetch *fetch)
{
	const struct check *check = context;

	if (fetch->at_return)
		return reader_error(check->reader, place, "is read when the call begins, never at the return");
	if (check->rule->value == STRING && fetch->type != XPT_TYPE_STRING)
		return reader_error(check->reader, place, "must be of type string");
	if (check->rule->value != STRING && fetch->type == XPT_TYPE_STRING)
		return reader_error(check->reader, place, "only a path can be of type string");
	if (check->rule->value == ADDRESS && fetch->type != XPT_TYPE_U64)
		return reader_error(check->reader, place, "is an address, and must be of type u64");
	return 0;
}

static int check_role(const struct reader *reader, const struct member *member, enum xpt_role role)
{
	if (role == XPT_ROLE_CODEOBJ_LOAD || role == XPT_ROLE_PROGRAM_LOAD || role == XPT_ROLE_PROGRAM_NAME)
		return 0;
	return reader_error(reader, &member->place, "is for roles codeobj.load, program.load and program.name");
}

/* Which of the first members is there; -EINVAL: not exactly one. */
static int find_source(const struct reader *reader, const struct member *code, const struct member *members)
{
	int source = -1;

	for (int i = 0; i < SOURCES; i++) {
		if (members[i].value && source >= 0)
			return reader_error(reader, &members[i].place, "%s is there already", members[source].key);
		if (members[i].value)
			source = i;
	}
	return source >= 0 ? source :
			     reader_error(reader, &code->place, "must have one of bytes, parts, path and descriptor");
}

static int check_beside(const struct reader *reader, const struct member *code, const struct member *members,
			int source)
{
	for (int i = 0; i < KIND; i++) {
		if (members[i].value && !(rules[i].sources & WITH(source)))
			return reader_error(reader, &members[i].place, "does not go with %s", members[source].key);
		if (!members[i].value && rules[i].needed_by & WITH(source))
			return reader_error(reader, &code->place, "%s needs %s", members[source].key, members[i].key);
	}
	return 0;
}

static int read_fetches(const struct reader *reader, const struct member *members, struct xpt_code_spec *code)
{
	for (int i = 0; i < KIND; i++) {
		struct check check = { reader, &rules[i] };
		bool given = false;
		int error = 0;

		if (members[i].value)
			error = fetch_member_parse(reader, &members[i], 0, check_fetch, &check,
						   &code->fetch[rules[i].index], &given);
		if (error)
			return error;
		if (given)
			code->given |= 1u << rules[i].index;
	}
	return 0;
}

static int read_kind(const struct reader *reader, const struct member *member, enum code_kind *kind)
{
	char known[200] = "";
	size_t used = 0;

	if (!member->value)
		return 0;
	if (!cJSON_IsString(member->value))
		return reader_error(reader, &member->place, "must be a string");
	*kind = code_kind_from_name(member->value->valuestring);
	if (*kind != CODE_UNKNOWN)
		return 0;
	for (int i = CODE_UNKNOWN + 1; i < CODE_KINDS && used < sizeof(known); i++)
		used += snprintf(known + used, sizeof(known) - used, " %s", code_kind_name(i));
	return reader_error(reader, &member->place, "unknown kind '%.40s' (known:%s)", member->value->valuestring,
			    known);
}

/* What must be there for the source is fetched on this architecture. */
static bool is_complete(const struct xpt_code_spec *code, int source)
{
	for (int i = 0; i < KIND; i++)
		if (rules[i].needed_by & WITH(source) && !(code->given & 1u << rules[i].index))
			return false;
	return true;
}

int call_code_parse(const struct reader *reader, const struct member *member, struct call_spec *call)
{
	struct member members[MEMBERS] = {
		[BYTES] = { .key = "bytes" },		[PARTS] = { .key = "parts" }, [PATH] = { .key = "path" },
		[DESCRIPTOR] = { .key = "descriptor" }, [SIZE] = { .key = "size" },   [SIZES] = { .key = "sizes" },
		[COUNT] = { .key = "count" },		[KIND] = { .key = "kind" },   [NOTE] = { .key = "note" },
	};
	int source, error = check_role(reader, member, call->wire.role);

	if (!error)
		error = reader_members(reader, member->value, &member->place, members, MEMBERS);
	if (!error)
		error = reader_note(reader, &members[NOTE]);
	if (error)
		return error;
	source = find_source(reader, member, members);
	if (source < 0)
		return source;
	error = check_beside(reader, member, members, source);
	if (!error)
		error = read_kind(reader, &members[KIND], &call->code_kind);
	if (!error)
		error = read_fetches(reader, members, &call->code);
	if (error)
		return error;
	if (is_complete(&call->code, source)) {
		call->code.source = sources[source];
	} else {
		call->code = (struct xpt_code_spec){ 0 };
		call->code_kind = CODE_UNKNOWN;
	}
	return 0;
}
