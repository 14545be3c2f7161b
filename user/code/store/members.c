/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/store/members.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int members_refuse(const struct code_members *members, const char *what, const char *wanted)
{
	log_error(members->log, "%s: '%s' is not a %s", members->path, what, wanted);
	return -EBADMSG;
}

void members_find(struct json_part object, const char *const *names, struct json_part *values, size_t count)
{
	const char *at = object.text, *end = at + object.length;
	struct json_part name, value;

	memset(values, 0, count * sizeof(*values));
	while (json_next_member(&at, end, &name, &value)) {
		for (size_t i = 0; i < count; i++) {
			if (json_part_is(&name, names[i]) && !values[i].length)
				values[i] = value;
		}
	}
}

int members_get_string(const struct code_members *members, const char *name, struct json_part value,
		       const char **result)
{
	struct json_part inside = json_inside(value);
	char *text;

	if (!value.length)
		return 0;
	if (*value.text != '"')
		return members_refuse(members, name, "string");
	text = code_list_room(members->list, inside.length + 1, 1);
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

int members_get_number(const struct code_members *members, const char *name, struct json_part value, __u64 most,
		       uint64_t *result)
{
	__u64 number;

	if (!value.length)
		return 0;
	if (!parse_digits(value.text, value.length, 10, &number) || number > most)
		return members_refuse(members, name, "number that can be");
	*result = number;
	return 0;
}

int members_get_signed(const struct code_members *members, const char *name, struct json_part value, int64_t *result)
{
	bool negative = value.length && *value.text == '-';
	__u64 number;

	if (!value.length)
		return 0;
	if (!parse_digits(value.text + negative, value.length - negative, 10, &number) ||
	    number > (__u64)INT64_MAX + negative)
		return members_refuse(members, name, "number that can be");
	*result = (int64_t)(negative ? -number : number);
	return 0;
}

int members_get_address(const struct code_members *members, const char *name, struct json_part value, uint64_t *result)
{
	struct json_part inside = json_inside(value);
	__u64 number;

	if (!value.length)
		return 0;
	if (inside.length < 2 || strncmp(inside.text, "0x", 2) != 0 ||
	    !parse_digits(inside.text + 2, inside.length - 2, 16, &number))
		return members_refuse(members, name, "hexadecimal number");
	*result = number;
	return 0;
}

int members_get_kind(const struct code_members *members, struct json_part value, const char **kind)
{
	const char *name = "unknown";
	int error = members_get_string(members, "kind", value, &name);

	/* A later version may know more of them. */
	*kind = code_kind_name(code_kind_from_name(name));
	return error;
}

int members_get_process(const struct code_members *members, const char *name, struct json_part value, pid_t *pid)
{
	uint64_t number = 0;
	int error = members_get_number(members, name, value, INT32_MAX, &number);

	*pid = (pid_t)number;
	return error;
}

int members_array(const struct code_members *members, const char *name, struct json_part *array, size_t most,
		  size_t *count)
{
	struct json_part value;
	const char *at, *end;

	if (!array->length)
		*array = (struct json_part){ "[]", 2 };
	if (*array->text != '[')
		return members_refuse(members, name, "array");
	at = array->text;
	end = at + array->length;
	for (*count = 0; json_next_element(&at, end, &value); ++*count)
		;
	return *count > most ? members_refuse(members, name, "array of that length") : 0;
}
