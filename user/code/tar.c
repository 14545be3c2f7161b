/* SPDX-License-Identifier: BSD-2-Clause */
/* Archives of POSIX ustar and pax, and GNU tar's long names. */
#include <errno.h>
#include <string.h>

#include "code/tar.h"

/* Fields of a header. */
#define NAME 0
#define NAME_SIZE 100
#define SIZE 124
#define CHECKSUM 148
#define NUMBER_SIZE 8
#define SIZE_SIZE 12
#define TYPE 156
#define MAGIC 257
#define PREFIX 345
#define PREFIX_SIZE 155

#define TYPE_FOLDER '5'
#define TYPE_LONG_NAME 'L'
#define TYPE_LONG_LINK 'K'
#define TYPE_PAX 'x'
#define TYPE_PAX_GLOBAL 'g'

/* Octal digits, with spaces before and a space or 0 behind. */
static bool octal(const unsigned char *field, size_t size, __u64 *value)
{
	size_t i = 0;

	*value = 0;
	while (i < size && field[i] == ' ')
		i++;
	for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
		*value = *value << 3 | (field[i] - '0');
	return i == size || !field[i] || field[i] == ' ';
}

/* Large ones are binary numbers, big-endian, with the highest bit set. */
static bool content_size(const unsigned char *field, __u64 *value)
{
	if (!(field[0] & 0x80))
		return octal(field, SIZE_SIZE, value);
	if (field[0] != 0x80 || field[1] || field[2] || field[3])
		return false;
	*value = 0;
	for (size_t i = 4; i < SIZE_SIZE; i++)
		*value = *value << 8 | field[i];
	return true;
}

static bool checksum_fits(const unsigned char *block)
{
	__u64 expected, sum = 0;

	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= CHECKSUM && i < CHECKSUM + NUMBER_SIZE ? ' ' : block[i];
	return octal(block + CHECKSUM, NUMBER_SIZE, &expected) && sum == expected;
}

/* The record of a pax header: "LENGTH path=NAME\n", with the length of all of it. Moves the name to the begin. */
static void take_path(struct tar_walk *walk)
{
	size_t at = 0;

	while (at < walk->extended_length) {
		const char *record = walk->extended + at;
		size_t left = walk->extended_length - at, length = 0, i = 0;

		for (; i < left && i < 5 && record[i] >= '0' && record[i] <= '9'; i++)
			length = length * 10 + (record[i] - '0');
		if (i == left || record[i] != ' ' || length > left || length < i + sizeof(" path="))
			return;
		if (!memcmp(record + i, " path=", 6)) {
			walk->name_length = length - i - 7; /* without the end of the line */
			memmove(walk->extended, record + i + 6, walk->name_length);
			return;
		}
		at += length;
	}
}

static void end_content(struct tar_walk *walk)
{
	if (walk->extension == TYPE_LONG_NAME)
		walk->name_length = strnlen(walk->extended, walk->extended_length);
	else if (walk->extension == TYPE_PAX)
		take_path(walk);
	walk->extension = 0;
}

static int tell_entry(struct tar_walk *walk)
{
	const char *block = (const char *)walk->block;
	char joined[PREFIX_SIZE + 1 + NAME_SIZE];
	size_t length = 0;

	if (walk->name_length) {
		length = walk->name_length < TAR_NAME_MAX ? walk->name_length : TAR_NAME_MAX;
		walk->name_length = 0;
		return walk->entry(walk->context, walk->extended, length, walk->content);
	}
	if (!memcmp(block + MAGIC, "ustar", 6) && block[PREFIX]) {
		length = strnlen(block + PREFIX, PREFIX_SIZE);
		memcpy(joined, block + PREFIX, length);
		joined[length++] = '/';
	}
	memcpy(joined + length, block + NAME, strnlen(block + NAME, NAME_SIZE));
	length += strnlen(block + NAME, NAME_SIZE);
	return walk->entry(walk->context, joined, length, walk->content);
}

static int take_header(struct tar_walk *walk)
{
	char type = (char)walk->block[TYPE];

	walk->filled = 0;
	if (!walk->block[0] && !memcmp(walk->block, walk->block + 1, TAR_BLOCK - 1)) {
		walk->ended = true;
		return 0;
	}
	if (!checksum_fits(walk->block) || !content_size(walk->block + SIZE, &walk->content))
		return -EBADMSG;
	walk->padding = -walk->content % TAR_BLOCK;
	switch (type) {
	case TYPE_LONG_NAME:
	case TYPE_PAX:
		walk->name_length = 0;
		walk->extended_length = 0;
		/* fall through */
	case TYPE_LONG_LINK:
	case TYPE_PAX_GLOBAL:
		walk->extension = type;
		if (!walk->content)
			end_content(walk);
		return 0;
	case TYPE_FOLDER:
		walk->name_length = 0;
		return 0;
	}
	return tell_entry(walk);
}

static void take_content(struct tar_walk *walk, const unsigned char *bytes, size_t length)
{
	size_t room = sizeof(walk->extended) - walk->extended_length;

	walk->content -= length;
	if (walk->extension == TYPE_LONG_NAME || walk->extension == TYPE_PAX) {
		memcpy(walk->extended + walk->extended_length, bytes, length < room ? length : room);
		walk->extended_length += length < room ? length : room;
	}
	if (!walk->content)
		end_content(walk);
}

static size_t least(size_t length, __u64 other)
{
	return length < other ? length : other;
}

int tar_feed(struct tar_walk *walk, const unsigned char *bytes, size_t length)
{
	while (length && !walk->ended) {
		size_t taken;
		int error = 0;

		if (walk->content) {
			taken = least(length, walk->content);
			take_content(walk, bytes, taken);
		} else if (walk->padding) {
			taken = least(length, walk->padding);
			walk->padding -= taken;
		} else {
			taken = least(length, TAR_BLOCK - walk->filled);
			memcpy(walk->block + walk->filled, bytes, taken);
			walk->filled += taken;
			if (walk->filled == TAR_BLOCK)
				error = take_header(walk);
		}
		if (error)
			return error;
		bytes += taken;
		length -= taken;
	}
	return 0;
}
