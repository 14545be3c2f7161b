/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/store/uri.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_.~-";

void code_uri_file(struct text *text, const char *path, __u64 offset, __u64 size)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t plain;

	text_literal(text, "file://");
	while (*path) {
		plain = strspn(path, unreserved);
		text_bytes(text, path, plain);
		path += plain;
		if (*path) {
			unsigned char byte = *path++;
			char coded[3] = { '%', digits[byte >> 4], digits[byte & 15] };

			text_bytes(text, coded, sizeof(coded));
		}
	}
	if (!offset && !size)
		return;
	text_literal(text, "#offset=");
	text_unsigned(text, offset);
	if (size) {
		text_literal(text, "&size=");
		text_unsigned(text, size);
	}
}

void code_uri_memory(struct text *text, __u32 pid, __u64 address, __u64 size)
{
	text_literal(text, "memory://");
	text_unsigned(text, pid);
	text_literal(text, "#offset=");
	text_hexadecimal(text, address);
	text_literal(text, "&size=");
	text_unsigned(text, size);
}

/* ---- reading ---- */

static bool take(const char **at, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*at, word, length) != 0)
		return false;
	*at += length;
	return true;
}

static bool take_number(const char **at, __u64 *number)
{
	bool hexadecimal = !strncmp(*at, "0x", 2);
	char *end;

	/* No sign, no space, no number of base 8. */
	if (!isxdigit((unsigned char)(*at)[hexadecimal ? 2 : 0]))
		return false;
	errno = 0;
	*number = strtoull(*at, &end, hexadecimal ? 16 : 10);
	if (errno || end == *at)
		return false;
	*at = end;
	return true;
}

static int hexadecimal_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Up to the '#', or the end. */
static int take_path(const char **at, char **path)
{
	size_t length = strcspn(*at, "#");
	const char *end = *at + length;
	char *to = malloc(length + 1);

	*path = to;
	if (!to)
		return -ENOMEM;
	for (; *at < end; ++*at) {
		if (**at == '%') {
			int high = hexadecimal_digit((*at)[1]), low = high < 0 ? -1 : hexadecimal_digit((*at)[2]);

			if (low < 0 || !(high | low))
				return -EINVAL;
			*to++ = (char)(high << 4 | low);
			*at += 2;
		} else {
			*to++ = **at;
		}
	}
	*to = '\0';
	return to == *path ? -EINVAL : 0;
}

static bool take_range(const char *at, struct code_uri *uri)
{
	if (!*at)
		return true;
	if (!take(&at, "#offset=") || !take_number(&at, &uri->offset))
		return false;
	return !*at || (take(&at, "&size=") && take_number(&at, &uri->size) && !*at);
}

int code_uri_parse(const char *text, struct code_uri *uri)
{
	int error = -EINVAL;
	__u64 pid;

	*uri = (struct code_uri){ 0 };
	if (take(&text, "file://")) {
		error = take_path(&text, &uri->path);
	} else if (take(&text, "memory://") && take_number(&text, &pid) && pid && pid <= 0x7fffffff) {
		uri->pid = (__u32)pid;
		error = 0;
	}
	if (!error && !take_range(text, uri))
		error = -EINVAL;
	if (error)
		code_uri_free(uri);
	return error;
}

void code_uri_free(struct code_uri *uri)
{
	free(uri->path);
	*uri = (struct code_uri){ 0 };
}
