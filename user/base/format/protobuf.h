/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protobuf messages, appended to a text: fields in any order, nested messages as they come. Nothing of a message has to be known
 * before; its length is put in front when it ends.
 */
#ifndef XPT_BASE_FORMAT_PROTOBUF_H
#define XPT_BASE_FORMAT_PROTOBUF_H

#include <linux/types.h>
#include <string.h>

#include "base/core/text.h"

enum pb_type { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

#define PB_VARINT_MAX 10 /* bytes */

static inline unsigned char *pb_put(unsigned char *to, __u64 value)
{
	for (; value > 127; value >>= 7)
		*to++ = (unsigned char)(value | 128);
	*to++ = (unsigned char)value;
	return to;
}

/* Where the next bytes go, with room for that many. NULL: no memory. Ends with pb_put_end(). */
static inline unsigned char *pb_room(struct text *text, size_t bytes)
{
	if (bytes > text->capacity - text->length && text_reserve(text, bytes))
		return NULL;
	return (unsigned char *)text->data + text->length;
}

static inline void pb_put_end(struct text *text, const unsigned char *end)
{
	text->length = (size_t)(end - (unsigned char *)text->data);
}

/* Also of enum, bool and, negative ones in ten bytes, int64. */
static inline void pb_number(struct text *text, unsigned int field, __u64 value)
{
	unsigned char *at = pb_room(text, 2 * PB_VARINT_MAX);

	if (at)
		pb_put_end(text, pb_put(pb_put(at, field << 3 | PB_VARINT), value));
}

/* Without the field's key: an element of a packed field, which is pb_begin()'s. */
static inline void pb_put_fixed(struct text *text, __u64 value)
{
	unsigned char *at = pb_room(text, sizeof(value));

	if (!at)
		return;
	for (size_t i = 0; i < sizeof(value); i++)
		*at++ = (unsigned char)(value >> 8 * i);
	pb_put_end(text, at);
}

static inline void pb_put_double(struct text *text, double value)
{
	__u64 bits;

	memcpy(&bits, &value, sizeof(bits));
	pb_put_fixed(text, bits);
}

static inline void pb_fixed(struct text *text, unsigned int field, __u64 value)
{
	unsigned char *at = pb_room(text, PB_VARINT_MAX + sizeof(value));

	if (!at)
		return;
	pb_put_end(text, pb_put(at, field << 3 | PB_FIXED64));
	pb_put_fixed(text, value);
}

static inline void pb_double(struct text *text, unsigned int field, double value)
{
	__u64 bits;

	memcpy(&bits, &value, sizeof(bits));
	pb_fixed(text, field, bits);
}

static inline void pb_bytes(struct text *text, unsigned int field, const void *data, size_t length)
{
	unsigned char *at = pb_room(text, 2 * PB_VARINT_MAX + length);

	if (!at)
		return;
	at = pb_put(pb_put(at, field << 3 | PB_BYTES), length);
	if (length)
		memcpy(at, data, length);
	pb_put_end(text, at + length);
}

/* Strings have to be UTF-8: bytes that are not become U+FFFD. */
void pb_string(struct text *text, unsigned int field, const char *string);

/* A nested message begins. What is returned is for the end of it. */
static inline size_t pb_begin(struct text *text, unsigned int field)
{
	unsigned char *at = pb_room(text, PB_VARINT_MAX + 1);

	if (at) /* one byte for the length does for most */
		pb_put_end(text, pb_put(at, field << 3 | PB_BYTES) + 1);
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

/* ---- reading ---- */

struct pb_reader {
	const unsigned char *at, *end;
};

struct pb_field {
	unsigned int number;
	enum pb_type type;
	__u64 value;			  /* of PB_VARINT; of PB_BYTES their length */
	const unsigned char *bytes;	  /* of PB_BYTES */
	const unsigned char *begin, *end; /* of the field as a whole */
};

static inline struct pb_reader pb_reader(const void *bytes, size_t length)
{
	return (struct pb_reader){ bytes, (const unsigned char *)bytes + length };
}

/* 1: *field is the next one; 0: there are no more; -EBADMSG: it is no message. */
int pb_next(struct pb_reader *reader, struct pb_field *field);
/* Bytes that a number takes from here on; 0: they end before it does, or it has more than 64 bits. */
size_t pb_take(const unsigned char *at, const unsigned char *end, __u64 *value);

#endif
