/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protobuf messages, appended to a text: fields in any order, nested messages as they come. Nothing of a message has to be known
 * before; its length is put in front when it ends. Numbers of fields are those of Perfetto's protos/perfetto/trace.
 */
#ifndef XPT_REPORT_PERFETTO_PACKET_H
#define XPT_REPORT_PERFETTO_PACKET_H

#include <linux/types.h>
#include <string.h>

#include "base/core/text.h"

enum pb_type { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2 };

#define PB_VARINT_MAX 10 /* bytes */

static inline unsigned char *pb_put(unsigned char *to, __u64 value)
{
	for (; value > 127; value >>= 7)
		*to++ = (unsigned char)(value | 128);
	*to++ = (unsigned char)value;
	return to;
}

static inline void pb_varint(struct text *text, __u64 value)
{
	unsigned char bytes[PB_VARINT_MAX];

	text_bytes(text, bytes, (size_t)(pb_put(bytes, value) - bytes));
}

/* Also of enum, bool and, negative ones in ten bytes, int64. */
static inline void pb_number(struct text *text, unsigned int field, __u64 value)
{
	unsigned char bytes[2 * PB_VARINT_MAX];

	text_bytes(text, bytes, (size_t)(pb_put(pb_put(bytes, field << 3 | PB_VARINT), value) - bytes));
}

static inline void pb_fixed(struct text *text, unsigned int field, __u64 value)
{
	unsigned char bytes[PB_VARINT_MAX + sizeof(value)];
	unsigned char *at = pb_put(bytes, field << 3 | PB_FIXED64);

	for (size_t i = 0; i < sizeof(value); i++)
		*at++ = (unsigned char)(value >> 8 * i);
	text_bytes(text, bytes, (size_t)(at - bytes));
}

static inline void pb_double(struct text *text, unsigned int field, double value)
{
	__u64 bits;

	memcpy(&bits, &value, sizeof(bits));
	pb_fixed(text, field, bits);
}

static inline void pb_bytes(struct text *text, unsigned int field, const void *data, size_t length)
{
	unsigned char bytes[2 * PB_VARINT_MAX];

	text_bytes(text, bytes, (size_t)(pb_put(pb_put(bytes, field << 3 | PB_BYTES), length) - bytes));
	text_bytes(text, data, length);
}

/* Strings have to be UTF-8: bytes that are not become U+FFFD. */
void pb_string(struct text *text, unsigned int field, const char *string);

/* A nested message begins. What is returned is for the end of it. */
static inline size_t pb_begin(struct text *text, unsigned int field)
{
	pb_varint(text, field << 3 | PB_BYTES);
	text_bytes(text, "", 1); /* for the length: one byte does for most */
	return text->length;
}

void pb_end_long(struct text *text, size_t begin);

static inline void pb_end(struct text *text, size_t begin)
{
	if (text->error)
		return;
	if (text->length - begin < 128)
		text->data[begin - 1] = (char)(text->length - begin);
	else
		pb_end_long(text, begin);
}

#endif
