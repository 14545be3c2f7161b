/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A growing buffer of text for writers of files: appends, decimal numbers without printf, escaping of strings that come
 * from traced programs. Independent of the locale. Fast enough for millions of events a second.
 */
#ifndef XPT_BASE_CORE_TEXT_H
#define XPT_BASE_CORE_TEXT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct text {
	char *data; /* not terminated; owned */
	size_t length;
	size_t capacity;
	int error; /* 0 or -ENOMEM: an append has failed, and so will all that follow until text_clear() */
};

void text_free(struct text *text);
/* Makes room for bytes more, so that appends up to that many cannot fail. 0 or -ENOMEM. */
int text_reserve(struct text *text, size_t bytes);
/* As if an append had failed: a part that should come here cannot be made. */
void text_fail(struct text *text);

/* Empties the buffer and forgets an error. A buffer that has grown beyond keep bytes is freed. */
void text_clear(struct text *text, size_t keep);

static inline void text_bytes(struct text *text, const void *bytes, size_t length)
{
	if (length > text->capacity - text->length && text_reserve(text, length))
		return;
	if (length) {
		memcpy(text->data + text->length, bytes, length);
		text->length += length;
	}
}

/* Appends a string literal; its length is known to the compiler. */
#define text_literal(text, literal) text_bytes(text, "" literal, sizeof(literal) - 1)

static inline void text_string(struct text *text, const char *string)
{
	text_bytes(text, string, strlen(string));
}

void text_unsigned(struct text *text, __u64 value);
void text_signed(struct text *text, __s64 value);
void text_hexadecimal(struct text *text, __u64 value); /* 0x1f, lower case, no leading zeros */
/* Two lower-case digits a byte, and a 0 byte behind them: digits has room for 2 * length + 1. */
void bytes_to_digits(const unsigned char *bytes, size_t length, char *digits);

/* In as few digits as make twelve significant ones; "null", as JSON has it, when it is not finite. */
void text_real(struct text *text, double value);
/* In as many as read back as the same value. */
void text_real_exact(struct text *text, double value);

/* Nanoseconds as microseconds with exactly three decimals: 1234567 is 1234.567. Exact for every value. */
void text_microseconds(struct text *text, __u64 nanoseconds);

/*
 * Appends a JSON string with its quotes. bytes may be anything: control bytes become \u00XX, and each byte that is not
 * part of valid UTF-8 (overlong forms, surrogates, beyond U+10FFFF, cut off) becomes U+FFFD. NULL with length 0 is "".
 */
void text_json(struct text *text, const char *bytes, size_t length);
/* The same without the quotes, to put a string together from parts. */
void text_json_part(struct text *text, const char *bytes, size_t length);

/* The same for a terminated string; NULL is "". */
static inline void text_json_string(struct text *text, const char *string)
{
	text_json(text, string, string ? strlen(string) : 0);
}

/*
 * Appends bytes as they may be shown on a terminal: control characters (C0, DEL, C1), bytes that are not UTF-8 and
 * characters that change the direction or are invisible are shown as \xNN or \u{NN}. Nothing is left that could move
 * the cursor. columns: at most this number of columns of the terminal; what is longer ends in an ellipsis. 0: no limit.
 * Returns the number of columns that were appended.
 */
size_t text_terminal(struct text *text, const char *bytes, size_t length, size_t columns);

/* Length of bytes cut to at most limit, without cutting a UTF-8 sequence in two. */
size_t text_cut(const char *bytes, size_t length, size_t limit);

/* Length of a name without the number that distinguishes it: 6 of "ranker #2". */
size_t text_unnumbered(const char *name);
/* Whether a name is the given one, with or without such a number. */
bool text_is_name(const char *name, const char *given);

/*
 * Decodes one character. Returns the length of a valid UTF-8 sequence (1 to 4) and its code point, or 0 when the first
 * byte does not begin one. length must be at least 1.
 */
size_t text_decode(const char *bytes, size_t length, __u32 *character);

/* How many bytes valid UTF-8 at the begin has: length when all of it is. */
size_t text_valid(const char *bytes, size_t length);
/* Appends valid UTF-8: each byte that is none becomes U+FFFD. */
void text_utf8(struct text *text, const char *bytes, size_t length);

/*
 * Characters that are invisible but change the text around them: controls (C0, DEL, C1), changes of direction,
 * invisible ones.
 */
bool text_hidden(__u32 c);
/* Valid UTF-8 without control characters. */
bool text_is_plain(const char *text, size_t length);

#endif
