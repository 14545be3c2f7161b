/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>

#include "base/format/protobuf.h"

static struct pb_field next_field(struct pb_reader *reader)
{
	struct pb_field field;

	cr_assert_eq(pb_next(reader, &field), 1);
	return field;
}

Test(base_format_protobuf, numbers)
{
	static const __u64 values[] = { 0, 1, 127, 128, 300, 1ull << 32, ~0ull };
	struct text text = { 0 };
	struct pb_reader reader;
	struct pb_field field;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		pb_number(&text, 1 + 20 * (unsigned int)i, values[i]);
	reader = pb_reader(text.data, text.length);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		field = next_field(&reader);
		cr_expect_eq(field.number, 1 + 20 * i);
		cr_expect_eq(field.value, values[i]);
	}
	cr_expect_eq(pb_next(&reader, &field), 0);
	text_free(&text);
}

Test(base_format_protobuf, known_bytes)
{
	/* From the documentation of the encoding. */
	static const unsigned char expected[] = { 0x08, 0x96, 0x01, 0x12, 0x07, 't',  'e',  's', 't',
						  'i',	'n',  'g',  0x1a, 0x03, 0x08, 0x96, 0x01 };
	struct text text = { 0 };
	size_t message;

	pb_number(&text, 1, 150);
	pb_string(&text, 2, "testing");
	message = pb_begin(&text, 3);
	pb_number(&text, 1, 150);
	pb_end(&text, message);
	cr_assert_eq(text.length, sizeof(expected));
	cr_expect_arr_eq(text.data, expected, sizeof(expected));
	text_free(&text);
}

Test(base_format_protobuf, long_messages)
{
	static const size_t lengths[] = { 126, 127, 128, 16383, 16384, 3000000 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		char *bytes = malloc(lengths[i]);
		struct text text = { 0 };
		size_t outer, inner;
		struct pb_reader reader;
		struct pb_field field;

		memset(bytes, 'x', lengths[i]);
		outer = pb_begin(&text, 1);
		inner = pb_begin(&text, 2);
		text_bytes(&text, bytes, lengths[i]);
		pb_end(&text, inner);
		pb_number(&text, 3, 7);
		pb_end(&text, outer);
		reader = pb_reader(text.data, text.length);
		field = next_field(&reader);
		cr_expect_eq(pb_next(&reader, &field), 0, "%zu", lengths[i]);
		reader = pb_reader(field.bytes, field.value);
		field = next_field(&reader);
		cr_expect_eq(field.value, lengths[i]);
		cr_expect(!memcmp(field.bytes, bytes, lengths[i]));
		cr_expect_eq(next_field(&reader).value, 7);
		free(bytes);
		text_free(&text);
	}
}

Test(base_format_protobuf, strings_are_utf8)
{
	struct text text = { 0 };
	struct pb_reader reader;
	struct pb_field field;

	pb_string(&text, 1, "a\xff\xc3\xa4\xc3");
	pb_string(&text, 1, "");
	reader = pb_reader(text.data, text.length);
	field = next_field(&reader);
	cr_expect_eq(field.value, 9);
	cr_expect(!memcmp(field.bytes, "a\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd", 9));
	cr_expect_eq(next_field(&reader).value, 0);
	text_free(&text);
}

/* Every prefix and every changed byte is read without going beyond the end. */
Test(base_format_protobuf, hostile)
{
	struct text text = { 0 };
	size_t message = pb_begin(&text, 3);

	pb_number(&text, 1, ~0ull);
	pb_double(&text, 2, 1.5);
	pb_string(&text, 4, "name");
	pb_end(&text, message);
	for (size_t length = 0; length <= text.length; length++) {
		for (int changed = -1; changed < 256; changed++) {
			unsigned char *copy = malloc(length ?: 1);
			struct pb_reader reader = pb_reader(copy, length);
			struct pb_field field;
			int result;

			memcpy(copy, text.data, length);
			if (changed >= 0 && length)
				copy[length - 1] = (unsigned char)changed;
			while ((result = pb_next(&reader, &field)) == 1)
				cr_assert(field.end <= copy + length);
			cr_assert(!result || result == -EBADMSG);
			free(copy);
		}
	}
	text_free(&text);
}
