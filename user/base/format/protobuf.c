/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/format/protobuf.h"

#include <errno.h>

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

void pb_string(struct text *text, unsigned int field, const char *string)
{
	size_t length = strlen(string), begin;

	if (text_valid(string, length) == length) {
		pb_bytes(text, field, string, length);
		return;
	}
	begin = pb_begin(text, field);
	text_utf8(text, string, length);
	pb_end(text, begin);
}

/* ---- reading ---- */

size_t pb_take(const unsigned char *at, const unsigned char *end, __u64 *value)
{
	size_t length = 0;

	*value = 0;
	while (at + length < end && length < PB_VARINT_MAX) {
		*value |= (__u64)(at[length] & 127) << 7 * length;
		if (at[length++] < 128)
			return length;
	}
	return 0;
}

int pb_next(struct pb_reader *reader, struct pb_field *field)
{
	__u64 key;
	size_t length;

	if (reader->at == reader->end)
		return 0;
	*field = (struct pb_field){ .begin = reader->at };
	length = pb_take(reader->at, reader->end, &key);
	reader->at += length;
	field->number = (unsigned int)(key >> 3);
	field->type = key & 7;
	if (!length || !field->number || key >> 32)
		return -EBADMSG;
	if (field->type == PB_FIXED64 || field->type == PB_FIXED32) {
		length = field->type == PB_FIXED64 ? 8 : 4;
	} else {
		if (field->type != PB_VARINT && field->type != PB_BYTES)
			return -EBADMSG;
		length = pb_take(reader->at, reader->end, &field->value);
		if (!length)
			return -EBADMSG;
	}
	if (length > (size_t)(reader->end - reader->at))
		return -EBADMSG;
	reader->at += length;
	if (field->type == PB_BYTES) {
		field->bytes = reader->at;
		if (field->value > (size_t)(reader->end - reader->at))
			return -EBADMSG;
		reader->at += field->value;
	}
	field->end = reader->at;
	return 1;
}
