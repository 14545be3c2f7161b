/* SPDX-License-Identifier: BSD-2-Clause */
#include <zlib.h>

#include "code_made.h"

#define HEADER 1024
#define BLOCK 512

/* A tar header; its checksum fits. */
static void add_header(struct made *tar, const char *name, const char *size, char type)
{
	unsigned char block[BLOCK] = { 0 };
	unsigned int sum = 0;

	memcpy(block, name, strlen(name));
	memcpy(block + 124, size, strlen(size));
	memset(block + 148, ' ', 8);
	block[156] = type;
	for (size_t i = 0; i < BLOCK; i++)
		sum += block[i];
	snprintf((char *)block + 148, 8, "%06o", sum);
	made_bytes(tar, block, BLOCK);
}

static void add_content(struct made *tar, const char *content)
{
	made_bytes(tar, content, strlen(content));
	made_zeros(tar, -strlen(content) % BLOCK);
}

static void pack(struct made *made, const void *bytes, size_t length)
{
	z_stream stream = { .zalloc = Z_NULL };

	cr_assert_eq(deflateInit2(&stream, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	stream.next_in = (z_const Bytef *)bytes;
	stream.avail_in = length;
	stream.next_out = made->bytes + made->size;
	stream.avail_out = MADE_MAX - made->size;
	cr_assert_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
	made->size = MADE_MAX - stream.avail_out;
	deflateEnd(&stream);
}

static struct made neff(const void *archive, size_t length)
{
	struct made made = { .size = HEADER };

	made_set(&made, 8, HEADER, 8);
	memcpy(made.bytes + 0xdc, "net", 3);
	pack(&made, archive, length);
	made_set(&made, 16, made.size - HEADER, 8);
	return made;
}

static struct made two_files(void)
{
	struct made tar = { .size = 0 };

	add_header(&tar, "first", "00000000003", '0');
	add_content(&tar, "one");
	add_header(&tar, "second", "00000000000", '0');
	made_zeros(&tar, 2 * BLOCK);
	return neff(tar.bytes, tar.size);
}

Test(code_neff, archive)
{
	struct made made = two_files();
	struct code_contents contents = made_contents(&made, made.size, CODE_UNKNOWN);
	__u64 size;

	cr_expect_eq(contents.kind, CODE_NEFF);
	cr_expect_null(contents.error);
	cr_expect_str_eq(contents.name, "net");
	cr_assert_eq(contents.part_count, 2);
	cr_expect_str_eq(contents.parts[0].name, "first");
	cr_expect_eq(contents.parts[0].offset, 0);
	cr_expect_eq(contents.parts[0].size, 3);
	cr_expect_str_eq(contents.parts[1].name, "second");
	code_contents_free(&contents);
	cr_assert_eq(made_own_size(&made, made.size, &size), 0);
	cr_expect_eq(size, made.size);
	cr_expect_eq(made_own_size(&made, made.size - 1, &size), -EFBIG);
	cr_expect_eq(made_own_size(&made, 1, &size), -EFBIG);
}

Test(code_neff, cut)
{
	struct made made = two_files();

	made_check_cut(&made, CODE_NEFF, 0, made.size);
}

/* Bytes of the archive that are changed are an error, or change names only: never more. */
Test(code_neff, damaged)
{
	for (size_t i = 0; i < 8 * 60; i++) {
		struct made made = two_files();
		struct code_contents contents;

		made.bytes[HEADER + i / 8] ^= 1 << i % 8;
		contents = made_contents(&made, made.size, CODE_NEFF);
		cr_expect_leq(contents.part_count, 2);
		code_contents_free(&contents);
	}
}

/* Long names: GNU's, and those of pax with a length that lies. */
Test(code_neff, names)
{
	static const struct {
		char type;
		const char *content, *name;
	} made_names[] = {
		{ 'L', "a/long/../name", "a/long/../name" },  { 'x', "12 size=123\n14 path=other\n", "other" },
		{ 'x', "99 path=other\n", "plain" },	      { 'x', "3 path=other\n", "plain" },
		{ 'x', "99999999999 path=other\n", "plain" }, { 'x', "path=other\n", "plain" },
		{ 'g', "14 path=other\n", "plain" },	      { 'K', "target of a link", "plain" },
	};

	for (size_t i = 0; i < sizeof(made_names) / sizeof(made_names[0]); i++) {
		struct made tar = { .size = 0 }, made;
		struct code_contents contents;
		char size[24];

		snprintf(size, sizeof(size), "%011zo", strlen(made_names[i].content));
		add_header(&tar, "extension", size, made_names[i].type);
		add_content(&tar, made_names[i].content);
		add_header(&tar, "plain", "00000000000", '0');
		made = neff(tar.bytes, tar.size);
		contents = made_contents(&made, made.size, CODE_UNKNOWN);
		cr_expect_null(contents.error);
		cr_assert_eq(contents.part_count, 1);
		cr_expect_str_eq(contents.parts[0].name, made_names[i].name, "%s", made_names[i].content);
		code_contents_free(&contents);
	}
}

Test(code_neff, hostile)
{
	struct made tar = { .size = 0 }, made;
	unsigned char *zeros = calloc(1, 2 << 20);

	add_header(&tar, "large", "77777777777", '0');
	made = neff(tar.bytes, tar.size);
	made_expect_error(&made, CODE_UNKNOWN, "ends too early");
	tar.size = 0;
	add_header(&tar, "largest", "\xff\xff", '0');
	made = neff(tar.bytes, tar.size);
	made_expect_error(&made, CODE_UNKNOWN, "cannot be read");
	tar.bytes[0]++; /* the checksum no longer fits */
	made = neff(tar.bytes, tar.size);
	made_expect_error(&made, CODE_UNKNOWN, "cannot be read");
	cr_assert_not_null(zeros);
	tar.size = 0;
	add_header(&tar, "bomb", "77777777777", '0');
	memcpy(zeros, tar.bytes, tar.size);
	made = neff(zeros, 2 << 20);
	made_expect_error(&made, CODE_UNKNOWN, "unpacks to more than");
	free(zeros);
	made_set(&made, 16, ~0ull - HEADER, 8);
	made_expect_error(&made, CODE_UNKNOWN, "its header says");
	made_set(&made, 16, ~0ull, 8);
	made_expect_error(&made, CODE_NEFF, "does not begin as neff does");
}
