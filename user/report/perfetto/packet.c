/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/perfetto/packet.h"

/* Moves the message to make room for a length of more than one byte. */
void pb_end_long(struct text *text, size_t begin)
{
	size_t length = text->length - begin;
	unsigned char bytes[PB_VARINT_MAX];
	size_t size = (size_t)(pb_put(bytes, length) - bytes);

	if (text_reserve(text, size))
		return;
	memmove(text->data + begin - 1 + size, text->data + begin, length);
	memcpy(text->data + begin - 1, bytes, size);
	text->length += size - 1;
}

static size_t valid_length(const char *string, size_t length)
{
	__u32 character;
	size_t at = 0, size;

	while (at < length) {
		size = string[at] & 0x80 ? text_decode(string + at, length - at, &character) : 1;
		if (!size)
			break;
		at += size;
	}
	return at;
}

void pb_string(struct text *text, unsigned int field, const char *string)
{
	size_t length = strlen(string), valid = valid_length(string, length), begin;

	if (valid == length) {
		pb_bytes(text, field, string, length);
		return;
	}
	begin = pb_begin(text, field);
	for (;;) {
		text_bytes(text, string, valid);
		if (valid == length)
			break;
		text_literal(text, "\xef\xbf\xbd");
		string += valid + 1;
		length -= valid + 1;
		valid = valid_length(string, length);
	}
	pb_end(text, begin);
}
