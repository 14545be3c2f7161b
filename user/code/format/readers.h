/* SPDX-License-Identifier: BSD-2-Clause */
/* One reader a kind of code object. Included by files of this folder only. */
#ifndef XPT_CODE_FORMAT_READERS_H
#define XPT_CODE_FORMAT_READERS_H

#include "code/format/object.h"

/* The bytes that a reader may read, and what it fills. */
struct code_reading {
	const unsigned char *bytes;
	size_t size;
	unsigned int depth; /* of objects that it is in */
	__u64 *inside; /* bytes that may still be read as objects inside of others; shared, so that overlaps have an end */
	struct code_contents *contents;
};

/*
 * Each fills contents->machine, name, functions, parts, or error; kind is set before. 0 or -ENOMEM. NULL in the table: there is
 * nothing to be read in objects of the kind.
 */
int code_read_elf(struct code_reading *reading); /* CODE_ELF, CODE_HSACO, CODE_CUBIN */
int code_read_ptx(struct code_reading *reading);
int code_read_spirv(struct code_reading *reading);
int code_read_opencl(struct code_reading *reading);
int code_read_fatbin(struct code_reading *reading);
int code_read_bundle(struct code_reading *reading);
int code_read_onnx(struct code_reading *reading);
int code_read_gguf(struct code_reading *reading);

/* Is it one? For a kind that has no magic number. */
bool code_is_ptx(const unsigned char *bytes, size_t size);

/* The size in its header, as code_own_size(). -ENODATA: by its magic number, read first, it is another kind. */
int code_elf_size(code_read_fn read, void *context, __u64 limit, __u64 *size);
int code_fatbin_size(code_read_fn read, void *context, __u64 limit, __u64 *size);
int code_bundle_size(code_read_fn read, void *context, __u64 limit, __u64 *size);

/* Add to contents; counted as left out beyond the limits. name: length bytes, copied. 0 or -ENOMEM. */
int code_add_function(struct code_contents *contents, const char *name, size_t length,
		      const struct code_function *function);
int code_add_part(struct code_contents *contents, const char *name, size_t length, const struct code_part *part);
/*
 * Adds the part, which must lie inside outer, and reads it: its kind is that of its bytes, else part->kind, and its
 * functions and parts are added with their offsets in outer. Its error becomes that of outer. 0 or -ENOMEM.
 */
int code_read_inside(struct code_reading *outer, const char *name, size_t length, const struct code_part *part);
/* Sets the error unless there is one. 0: a reader may end with it. */
int code_set_error(struct code_contents *contents, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Little-endian numbers at an offset that the caller has checked. */
static inline __u16 code_u16(const unsigned char *bytes)
{
	return bytes[0] | bytes[1] << 8;
}

static inline __u32 code_u32(const unsigned char *bytes)
{
	return code_u16(bytes) | (__u32)code_u16(bytes + 2) << 16;
}

static inline __u64 code_u64(const unsigned char *bytes)
{
	return code_u32(bytes) | (__u64)code_u32(bytes + 4) << 32;
}

/* Do length bytes at offset lie inside size? Never overflows. */
static inline bool code_inside(__u64 offset, __u64 length, __u64 size)
{
	return offset <= size && length <= size - offset;
}

#endif
