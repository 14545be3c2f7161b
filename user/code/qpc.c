/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QPC, program containers of Qualcomm Cloud AI, as its open compute library writes them: a header, a table of images, their
 * names and bytes. Places are addresses in the process that has made it, relative to a base that the header has.
 */
#include <errno.h>
#include <string.h>

#include "code/readers.h"

#define QPC_MAGIC 0x00a1cd7cu
#define HEADER_SIZE 40
#define SIZE_AT 8
#define BASE_AT 16
#define COUNT_AT 24
#define IMAGES_AT 32
#define NAME_MAX_SIZE 256 /* names may overlap: more is cut off */
#define IMAGE_SIZE 32	  /* u64 size, offset of its own meaning, address of the name, address of the bytes */

bool code_is_qpc(const unsigned char *bytes, size_t size)
{
	return size >= HEADER_SIZE && code_u32(bytes) == QPC_MAGIC;
}

static int read_image(struct code_reading *reading, const unsigned char *image, __u64 base, __u64 index)
{
	struct code_part part = { .offset = code_u64(image + 24) - base, .size = code_u64(image) };
	__u64 name = code_u64(image + 16) - base;
	const char *text;
	size_t length;

	if (name >= reading->size || !code_inside(part.offset, part.size, reading->size)) {
		code_set_error(reading->contents, "image %llu lies outside", index);
		return 0;
	}
	text = (const char *)reading->bytes + name;
	length = reading->size - name;
	length = strnlen(text, length < NAME_MAX_SIZE ? length : NAME_MAX_SIZE);
	return part.size ? code_read_inside(reading, text, length, &part, NULL, 0) :
			   code_add_part(reading->contents, text, length, &part);
}

int code_read_qpc(struct code_reading *reading)
{
	__u64 size, base, count, images;

	size = code_u64(reading->bytes + SIZE_AT);
	if (size > reading->size)
		code_set_error(reading->contents, "its header says %llu bytes, and there are %zu", size, reading->size);
	base = code_u64(reading->bytes + BASE_AT);
	count = code_u64(reading->bytes + COUNT_AT);
	images = code_u64(reading->bytes + IMAGES_AT) - base;
	for (__u64 i = 0; i < count; i++, images += IMAGE_SIZE) {
		int error;

		if (images < HEADER_SIZE || !code_inside(images, IMAGE_SIZE, reading->size)) {
			code_set_error(reading->contents, "image %llu of the table lies outside", i);
			return 0;
		}
		error = read_image(reading, reading->bytes + images, base, i);
		if (error)
			return error;
	}
	return 0;
}

int code_qpc_size(code_read_fn read, void *context, __u64 limit, __u64 *size)
{
	unsigned char header[SIZE_AT + 8];
	__u64 told;
	int error = read(context, 0, header, 4);

	if (!error)
		error = code_u32(header) == QPC_MAGIC ? read(context, 0, header, sizeof(header)) : -ENODATA;
	if (error)
		return error;
	told = code_u64(header + SIZE_AT);
	if (told < HEADER_SIZE)
		return -EBADMSG;
	if (told > limit)
		return -EFBIG;
	*size = told;
	return 0;
}
