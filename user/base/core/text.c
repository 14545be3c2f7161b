/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/text.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SMALLEST_CAPACITY 256
#define LONGEST_NUMBER 24 /* 20 digits of 2^64, a sign, a point */

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define ELLIPSIS "\xe2\x80\xa6"	   /* U+2026 */

/* Two digits at a time halve the number of divisions. */
static const char digit_pairs[] = "00010203040506070809"
				  "10111213141516171819"
				  "20212223242526272829"
				  "30313233343536373839"
				  "40414243444546474849"
				  "50515253545556575859"
				  "60616263646566676869"
				  "70717273747576777879"
				  "80818283848586878889"
				  "90919293949596979899";

void text_free(struct text *text)
{
	free(text->data);
	*text = (struct text){ 0 };
}

int text_reserve(struct text *text, size_t bytes)
{
	size_t capacity = text->capacity ? text->capacity : SMALLEST_CAPACITY;
	char *data;

	if (text->error)
		return text->error;
	if (bytes <= text->capacity - text->length)
		return 0;
	if (bytes > SIZE_MAX / 4 - text->length)
		goto failed;
	while (capacity - text->length < bytes)
		capacity *= 2;
	data = realloc(text->data, capacity);
	if (!data)
		goto failed;
	text->data = data;
	text->capacity = capacity;
	return 0;
failed:
	text_fail(text);
	return text->error;
}

void text_fail(struct text *text)
{
	/* With no room left every later append fails, so none is made with a part missing before it. */
	text->capacity = text->length;
	text->error = -ENOMEM;
}

void text_clear(struct text *text, size_t keep)
{
	if (text->error || text->capacity > keep) {
		text_free(text);
		return;
	}
	text->length = 0;
}

/* Writes the digits so that they end before end; returns where they begin. */
static char *digits_before(char *end, __u64 value)
{
	while (value >= 100) {
		unsigned int pair = value % 100;

		value /= 100;
		end -= 2;
		memcpy(end, digit_pairs + 2 * pair, 2);
	}
	if (value >= 10) {
		end -= 2;
		memcpy(end, digit_pairs + 2 * value, 2);
	} else {
		*--end = '0' + value;
	}
	return end;
}

/*
 * Appends the digits from start to end, of a buffer of 2 * LONGEST_NUMBER bytes in whose middle end is: as many bytes are copied each time, which the
 * compiler does without a call.
 */
static void add_digits(struct text *text, const char *start, const char *end)
{
	if (LONGEST_NUMBER > text->capacity - text->length && text_reserve(text, LONGEST_NUMBER))
		return;
	memcpy(text->data + text->length, start, LONGEST_NUMBER);
	text->length += (size_t)(end - start);
}

void text_unsigned(struct text *text, __u64 value)
{
	char buffer[2 * LONGEST_NUMBER];
	char *end = buffer + LONGEST_NUMBER;
	char *start = digits_before(end, value);

	add_digits(text, start, end);
}

void text_signed(struct text *text, __s64 value)
{
	char buffer[2 * LONGEST_NUMBER];
	char *end = buffer + LONGEST_NUMBER;
	char *start = digits_before(end, value < 0 ? -(__u64)value : (__u64)value);

	if (value < 0)
		*--start = '-';
	add_digits(text, start, end);
}

static void add_real(struct text *text, double value, int digits)
{
	char buffer[32], *point;

	if (!isfinite(value)) {
		text_literal(text, "null");
		return;
	}
	snprintf(buffer, sizeof(buffer), "%.*g", digits, value);
	/* The point is the locale's. */
	point = buffer + strspn(buffer, "0123456789+-");
	if (*point && *point != 'e')
		*point = '.';
	text_string(text, buffer);
}

void text_real(struct text *text, double value)
{
	add_real(text, value, 12);
}

void text_real_exact(struct text *text, double value)
{
	add_real(text, value, 17);
}

void bytes_to_digits(const unsigned char *bytes, size_t length, char *digits)
{
	for (size_t i = 0; i < length; i++) {
		*digits++ = "0123456789abcdef"[bytes[i] >> 4];
		*digits++ = "0123456789abcdef"[bytes[i] & 15];
	}
	*digits = '\0';
}

void text_hexadecimal(struct text *text, __u64 value)
{
	char buffer[2 * LONGEST_NUMBER];
	char *end = buffer + LONGEST_NUMBER;
	char *start = end;

	do {
		*--start = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value);
	*--start = 'x';
	*--start = '0';
	add_digits(text, start, end);
}

void text_microseconds(struct text *text, __u64 nanoseconds)
{
	char buffer[2 * LONGEST_NUMBER];
	char *end = buffer + LONGEST_NUMBER;
	unsigned int rest = nanoseconds % 1000;
	char *start;

	end[-1] = '0' + rest % 10;
	memcpy(end - 3, digit_pairs + 2 * (rest / 10), 2);
	end[-4] = '.';
	start = digits_before(end - 4, nanoseconds / 1000);
	add_digits(text, start, end);
}

size_t text_decode(const char *bytes, size_t length, __u32 *character)
{
	const unsigned char *s = (const unsigned char *)bytes;
	__u32 value, smallest;
	size_t size, i;

	if (s[0] < 0x80) {
		*character = s[0];
		return 1;
	}
	if (s[0] >= 0xc2 && s[0] <= 0xdf) {
		size = 2;
		smallest = 0x80;
		value = s[0] & 0x1f;
	} else if ((s[0] & 0xf0) == 0xe0) {
		size = 3;
		smallest = 0x800;
		value = s[0] & 0x0f;
	} else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		size = 4;
		smallest = 0x10000;
		value = s[0] & 0x07;
	} else {
		return 0;
	}
	if (length < size)
		return 0;
	for (i = 1; i < size; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (s[i] & 0x3f);
	}
	if (value < smallest || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
		return 0;
	*character = value;
	return size;
}

size_t text_valid(const char *bytes, size_t length)
{
	__u32 character;
	size_t at = 0, size;

	while (at < length) {
		size = bytes[at] & 0x80 ? text_decode(bytes + at, length - at, &character) : 1;
		if (!size)
			break;
		at += size;
	}
	return at;
}

void text_utf8(struct text *text, const char *bytes, size_t length)
{
	size_t valid;

	while ((valid = text_valid(bytes, length)) < length) {
		text_bytes(text, bytes, valid);
		text_literal(text, REPLACEMENT);
		bytes += valid + 1;
		length -= valid + 1;
	}
	text_bytes(text, bytes, length);
}

static bool json_plain(unsigned char byte)
{
	return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

#define EACH_BYTE(byte) (0x0101010101010101ull * (byte))

/* Whether eight bytes need no escaping; false may be wrong, true never. */
static bool json_plain8(const char *bytes)
{
	__u64 word, quote, backslash, rubout;

	memcpy(&word, bytes, sizeof(word));
	quote = word ^ EACH_BYTE('"');
	backslash = word ^ EACH_BYTE('\\');
	rubout = word ^ EACH_BYTE(0x7f);
	/* x - 1 has its high bit set where x was 0; word - 0x20 where it was below a space. */
	return !(((word - EACH_BYTE(0x20)) | (quote - EACH_BYTE(1)) | (backslash - EACH_BYTE(1)) |
		  (rubout - EACH_BYTE(1)) | word) &
		 EACH_BYTE(0x80));
}

static size_t json_plain_length(const char *bytes, size_t length)
{
	size_t i = 0;

	while (length - i >= 8 && json_plain8(bytes + i))
		i += 8;
	while (i < length && json_plain(bytes[i]))
		i++;
	return i;
}

/* One byte or character that has to be escaped; returns how many bytes it was. */
static size_t json_escape(struct text *text, const char *bytes, size_t length)
{
	char escape[] = "\\u00XX";
	unsigned char byte = bytes[0];
	__u32 character;
	size_t size;

	if (byte == '"') {
		text_literal(text, "\\\"");
		return 1;
	}
	if (byte == '\\') {
		text_literal(text, "\\\\");
		return 1;
	}
	if (byte < 0x80) {
		escape[4] = "0123456789abcdef"[byte >> 4];
		escape[5] = "0123456789abcdef"[byte & 15];
		text_bytes(text, escape, 6);
		return 1;
	}
	size = text_decode(bytes, length, &character);
	if (!size) {
		text_literal(text, REPLACEMENT);
		return 1;
	}
	text_bytes(text, bytes, size);
	return size;
}

void text_json_part(struct text *text, const char *bytes, size_t length)
{
	while (length && !text->error) {
		size_t done = json_plain_length(bytes, length);

		text_bytes(text, bytes, done);
		if (done < length)
			done += json_escape(text, bytes + done, length - done);
		bytes += done;
		length -= done;
	}
}

void text_json(struct text *text, const char *bytes, size_t length)
{
	text_literal(text, "\"");
	text_json_part(text, bytes, length);
	text_literal(text, "\"");
}

bool text_hidden(__u32 c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || c == 0x180e ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
	       c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe0fff);
}

/* Columns of a character that is shown. Coarse on purpose: a table that is a column off is no harm. */
static size_t character_columns(__u32 c)
{
	if ((c >= 0x300 && c <= 0x36f) || (c >= 0x1ab0 && c <= 0x1aff) || (c >= 0x20d0 && c <= 0x20ff) ||
	    (c >= 0xfe00 && c <= 0xfe0f) || (c >= 0xfe20 && c <= 0xfe2f))
		return 0;
	if ((c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) || (c >= 0xac00 && c <= 0xd7a3) ||
	    (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
	    (c >= 0xffe0 && c <= 0xffe6) || (c >= 0x1f300 && c <= 0x1f64f) || (c >= 0x1f900 && c <= 0x1f9ff) ||
	    (c >= 0x20000 && c <= 0x3fffd))
		return 2;
	return 1;
}

/* How one character is shown: *shown gets its bytes, *columns its width. Returns how many input bytes it was. */
static size_t terminal_character(const char *bytes, size_t length, struct text *shown, size_t *columns)
{
	unsigned char byte = bytes[0];
	__u32 character;
	size_t size = text_decode(bytes, length, &character);

	shown->length = 0;
	if (size && !text_hidden(character)) {
		text_bytes(shown, bytes, size);
		*columns = character_columns(character);
		return size;
	}
	if (size && character >= 0x80) {
		text_literal(shown, "\\u{");
		text_hexadecimal(shown, character);
		if (!shown->error) {
			memmove(shown->data + 3, shown->data + 5, shown->length - 5); /* without the 0x */
			shown->length -= 2;
		}
		text_literal(shown, "}");
	} else {
		char escape[] = { '\\', 'x', "0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15] };

		text_bytes(shown, escape, sizeof(escape));
		size = 1;
	}
	*columns = shown->length;
	return size;
}

size_t text_terminal(struct text *text, const char *bytes, size_t length, size_t columns)
{
	struct text shown = {};
	size_t used = 0;     /* columns so far */
	size_t cut_used = 0; /* the same where an ellipsis would still fit behind */
	size_t cut_length = text->length;

	while (length && !text->error) {
		size_t width, size = terminal_character(bytes, length, &shown, &width);

		if (shown.error)
			text_fail(text);
		if (columns && used + width > columns) {
			text->length = cut_length;
			text_literal(text, ELLIPSIS);
			used = cut_used + 1;
			break;
		}
		text_bytes(text, shown.data, shown.length);
		used += width;
		if (used < columns) {
			cut_used = used;
			cut_length = text->length;
		}
		bytes += size;
		length -= size;
	}
	text_free(&shown);
	return used;
}

size_t text_cut(const char *bytes, size_t length, size_t limit)
{
	size_t cut = limit;

	if (length <= limit)
		return length;
	/* At most three bytes back: more continuation bytes than that are not UTF-8 anyway. */
	while (cut && limit - cut < 3 && ((unsigned char)bytes[cut] & 0xc0) == 0x80)
		cut--;
	return cut;
}

bool text_is_plain(const char *text, size_t length)
{
	while (length) {
		__u32 character;
		size_t bytes = text_decode(text, length, &character);

		if (!bytes || character < ' ' || (character >= 0x7f && character < 0xa0))
			return false;
		text += bytes;
		length -= bytes;
	}
	return true;
}

size_t text_unnumbered(const char *name)
{
	size_t length = strlen(name), end = length;

	while (end && name[end - 1] >= '0' && name[end - 1] <= '9')
		end--;
	return end < length && end > 2 && name[end - 1] == '#' && name[end - 2] == ' ' ? end - 2 : length;
}

bool text_is_name(const char *name, const char *given)
{
	size_t length = text_unnumbered(name);

	return !strcmp(name, given) || (!strncmp(name, given, length) && !given[length]);
}
