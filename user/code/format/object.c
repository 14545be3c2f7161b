/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "code/format/object.h"
#include "code/format/readers.h"

static const char *const names[CODE_KINDS] = {
	[CODE_UNKNOWN] = "unknown", [CODE_ELF] = "elf",	      [CODE_HSACO] = "hsaco", [CODE_CUBIN] = "cubin",
	[CODE_FATBIN] = "fatbin",   [CODE_BUNDLE] = "bundle", [CODE_PTX] = "ptx",     [CODE_SPIRV] = "spirv",
	[CODE_BITCODE] = "bitcode", [CODE_OPENCL] = "opencl", [CODE_NEFF] = "neff",   [CODE_QPC] = "qpc",
	[CODE_ONNX] = "onnx",	    [CODE_GGUF] = "gguf",     [CODE_HLO] = "hlo",     [CODE_MLIR] = "mlir",
};

const char *code_kind_name(enum code_kind kind)
{
	return (unsigned int)kind < CODE_KINDS ? names[kind] : names[CODE_UNKNOWN];
}

enum code_kind code_kind_from_name(const char *name)
{
	for (unsigned int kind = 0; kind < CODE_KINDS; kind++)
		if (strcmp(names[kind], name) == 0)
			return (enum code_kind)kind;
	return CODE_UNKNOWN;
}

/* What readers add to the contents of an object, and the end of that. */

#define ERROR_MAX 256 /* bytes, with the terminator */

static char *copy(const char *name, size_t length)
{
	char *to = malloc(length + 1);

	if (!to)
		return NULL;
	if (length)
		memcpy(to, name, length);
	to[length] = '\0';
	return to;
}

int code_add_function(struct code_contents *contents, const char *name, size_t length,
		      const struct code_function *function)
{
	struct code_function *added;

	if (contents->function_count == CODE_FUNCTIONS_MAX) {
		contents->functions_left_out++;
		return 0;
	}
	if (vec_reserve(contents->functions, contents->function_count))
		return -ENOMEM;
	added = &contents->functions[contents->function_count];
	*added = *function;
	added->name = copy(name, length);
	if (!added->name)
		return -ENOMEM;
	contents->function_count++;
	return 0;
}

int code_add_part(struct code_contents *contents, const char *name, size_t length, const struct code_part *part)
{
	struct code_part *added;

	if (contents->part_count == CODE_PARTS_MAX) {
		contents->parts_left_out++;
		return 0;
	}
	if (vec_reserve(contents->parts, contents->part_count))
		return -ENOMEM;
	added = &contents->parts[contents->part_count];
	*added = *part;
	added->name = copy(name, length);
	if (!added->name)
		return -ENOMEM;
	contents->part_count++;
	return 0;
}

/* Without memory for the text no error is set. */
int code_set_error(struct code_contents *contents, const char *format, ...)
{
	char text[ERROR_MAX];
	va_list arguments;

	if (contents->error)
		return 0;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	contents->error = strdup(text);
	return 0;
}

void code_contents_free(struct code_contents *contents)
{
	for (size_t i = 0; i < contents->function_count; i++)
		free(contents->functions[i].name);
	for (size_t i = 0; i < contents->part_count; i++)
		free(contents->parts[i].name);
	free(contents->functions);
	free(contents->parts);
	free(contents->machine);
	free(contents->name);
	free(contents->error);
	memset(contents, 0, sizeof(*contents));
}

/* How objects of a kind begin. A kind may have several. */
static const struct magic {
	const char *bytes;
	size_t length;
	enum code_kind kind;
} magics[] = {
	{ ELFMAG, SELFMAG, CODE_ELF },
	{ "\x50\xed\x55\xba", 4, CODE_FATBIN },
	{ "__CLANG_OFFLOAD_BUNDLE__", 24, CODE_BUNDLE },
	{ "CCOB", 4, CODE_BUNDLE }, /* compressed */
	{ "\x03\x02\x23\x07", 4, CODE_SPIRV },
	{ "\x07\x23\x02\x03", 4, CODE_SPIRV }, /* big-endian */
	{ "BC\xc0\xde", 4, CODE_BITCODE },
	{ "\xde\xc0\x17\x0b", 4, CODE_BITCODE }, /* in its wrapper */
	{ "\x7c\xcd\xa1\x00", 4, CODE_QPC },
	{ "GGUF", 4, CODE_GGUF },
	{ "ML\xefR", 4, CODE_MLIR },
};

/* ---- formats of unpublished layout: their kind and their size only ---- */

/* NEFF: a header with its own size and that of the archive behind it, which gzip usually has made. */
#define NEFF_HEADER 1024
#define NEFF_HEADER_SIZE_AT 8	/* u64 */
#define NEFF_ARCHIVE_SIZE_AT 16 /* u64 */
#define GZIP_MAGIC 0x8b1f
/* QPC: its magic number, then the size of all. */
#define QPC_MAGIC 0x00a1cd7cu
#define QPC_HEADER 40
#define QPC_SIZE_AT 8 /* u64 */

static bool is_neff_header(const unsigned char *header)
{
	__u64 archive = code_u64(header + NEFF_ARCHIVE_SIZE_AT);

	return code_u64(header + NEFF_HEADER_SIZE_AT) == NEFF_HEADER && archive && archive <= ~0ull - NEFF_HEADER;
}

static bool is_neff(const unsigned char *bytes, size_t size)
{
	return size >= NEFF_HEADER + 2 && is_neff_header(bytes) &&
	       (code_u16(bytes + NEFF_HEADER) == GZIP_MAGIC ||
		code_u64(bytes + NEFF_ARCHIVE_SIZE_AT) == size - NEFF_HEADER);
}

/* It has no magic number: what cannot be read is no NEFF either. */
static int neff_size(code_read_fn read, void *context, __u64 limit, __u64 *size)
{
	unsigned char header[NEFF_ARCHIVE_SIZE_AT + 8], archive[2];
	__u64 own;

	if (read(context, 0, header, sizeof(header)) || !is_neff_header(header) ||
	    read(context, NEFF_HEADER, archive, sizeof(archive)) || code_u16(archive) != GZIP_MAGIC)
		return -ENODATA;
	own = NEFF_HEADER + code_u64(header + NEFF_ARCHIVE_SIZE_AT);
	if (own > limit)
		return -EFBIG;
	*size = own;
	return 0;
}

static int qpc_size(code_read_fn read, void *context, __u64 limit, __u64 *size)
{
	unsigned char header[QPC_SIZE_AT + 8];
	int error = read(context, 0, header, 4);
	__u64 own;

	if (!error)
		error = code_u32(header) == QPC_MAGIC ? read(context, 0, header, sizeof(header)) : -ENODATA;
	if (error)
		return error;
	own = code_u64(header + QPC_SIZE_AT);
	if (own < QPC_HEADER)
		return -EBADMSG;
	if (own > limit)
		return -EFBIG;
	*size = own;
	return 0;
}

/*
 * What is known of a kind. is: identified by more than a magic number. read: NULL where there is nothing to be found
 * inside. size: returns -ENODATA when it is another kind.
 */
static const struct format {
	bool (*is)(const unsigned char *bytes, size_t size);
	int (*read)(struct code_reading *reading);
	int (*size)(code_read_fn read, void *context, __u64 limit, __u64 *size);
} formats[CODE_KINDS] = {
	[CODE_ELF] = { .read = code_read_elf, .size = code_elf_size },
	[CODE_HSACO] = { .read = code_read_elf },
	[CODE_CUBIN] = { .read = code_read_elf },
	[CODE_FATBIN] = { .read = code_read_fatbin, .size = code_fatbin_size },
	[CODE_BUNDLE] = { .read = code_read_bundle, .size = code_bundle_size },
	[CODE_PTX] = { .is = code_is_ptx, .read = code_read_ptx },
	[CODE_SPIRV] = { .read = code_read_spirv },
	[CODE_OPENCL] = { .read = code_read_opencl },
	[CODE_NEFF] = { .is = is_neff, .size = neff_size },
	[CODE_QPC] = { .size = qpc_size },
	[CODE_ONNX] = { .read = code_read_onnx },
	[CODE_GGUF] = { .read = code_read_gguf },
};

/* Do all objects of the kind begin in a way of their own? */
static bool has_magic(enum code_kind kind)
{
	if (kind == CODE_MLIR) /* may be text */
		return false;
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if (magics[i].kind == kind)
			return true;
	return formats[kind].is || kind == CODE_HSACO || kind == CODE_CUBIN;
}

/* ELF of a processor or of a GPU. */
static enum code_kind elf_kind(const unsigned char *bytes, size_t size)
{
	const size_t place = offsetof(Elf64_Ehdr, e_machine);
	unsigned int machine;

	if (!code_inside(place, 2, size))
		return CODE_ELF;
	machine = bytes[EI_DATA] == ELFDATA2MSB ? bytes[place] << 8 | bytes[place + 1] : code_u16(bytes + place);
	return machine == EM_AMDGPU ? CODE_HSACO : machine == EM_CUDA ? CODE_CUBIN : CODE_ELF;
}

static enum code_kind kind_of_bytes(const unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if (size >= magics[i].length && memcmp(bytes, magics[i].bytes, magics[i].length) == 0)
			return magics[i].kind == CODE_ELF ? elf_kind(bytes, size) : magics[i].kind;
	for (unsigned int kind = 0; kind < CODE_KINDS; kind++)
		if (formats[kind].is && formats[kind].is(bytes, size))
			return (enum code_kind)kind;
	return CODE_UNKNOWN;
}

/* Fills contents from the bytes of reading, which it belongs to. */
static int read_object(struct code_reading *reading, enum code_kind hint)
{
	struct code_contents *contents = reading->contents;
	enum code_kind kind = kind_of_bytes(reading->bytes, reading->size);

	contents->kind = kind ? kind : hint;
	if (!kind && has_magic(hint))
		return code_set_error(contents, "it does not begin as %s does", code_kind_name(hint));
	return formats[contents->kind].read ? formats[contents->kind].read(reading) : 0;
}

static int compare_functions(const void *left, const void *right)
{
	const struct code_function *a = left, *b = right;

	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* How many bytes may be read as objects inside of others: all of them at each depth. */
static __u64 room_inside(size_t size)
{
	return size > ~0ull / CODE_DEPTH_MAX ? ~0ull : (__u64)size * CODE_DEPTH_MAX;
}

int code_read(const void *bytes, size_t size, enum code_kind hint, struct code_contents *result)
{
	__u64 inside = room_inside(size);
	struct code_reading reading = { .bytes = bytes, .size = size, .contents = result, .inside = &inside };
	int error;

	memset(result, 0, sizeof(*result));
	error = read_object(&reading, hint);
	if (error) {
		code_contents_free(result);
		return error;
	}
	if (result->function_count)
		qsort(result->functions, result->function_count, sizeof(*result->functions), compare_functions);
	return 0;
}

/* Adds what an object inside of outer has. base: where it lies there. */
static int take(struct code_contents *outer, const struct code_contents *inner, __u64 base)
{
	int error = 0;

	for (size_t i = 0; i < inner->function_count && !error; i++) {
		struct code_function function = inner->functions[i];

		function.offset = function.offset ? base + function.offset : 0;
		error = code_add_function(outer, function.name, strlen(function.name), &function);
	}
	for (size_t i = 0; i < inner->part_count && !error; i++) {
		struct code_part part = inner->parts[i];

		if (!part.external && part.offset)
			part.offset += base;
		error = code_add_part(outer, part.name, strlen(part.name), &part);
	}
	outer->functions_left_out += inner->functions_left_out;
	outer->parts_left_out += inner->parts_left_out;
	return error;
}

int code_read_inside(struct code_reading *outer, const char *name, size_t length, const struct code_part *part)
{
	struct code_contents inner = { 0 };
	struct code_reading reading = {
		.size = part->size, .depth = outer->depth + 1, .inside = outer->inside, .contents = &inner
	};
	struct code_part added = *part;
	int error;

	if (!code_inside(part->offset, part->size, outer->size))
		return code_set_error(outer->contents, "part %zu lies behind the end", outer->contents->part_count);
	reading.bytes = outer->bytes + part->offset;
	if (outer->contents->part_count == CODE_PARTS_MAX)
		return code_add_part(outer->contents, name, length, part);
	if (reading.depth > CODE_DEPTH_MAX) {
		code_set_error(outer->contents, "objects are nested too deep");
		return code_add_part(outer->contents, name, length, part);
	}
	if (reading.size > *outer->inside) {
		code_set_error(outer->contents, "parts overlap");
		return code_add_part(outer->contents, name, length, part);
	}
	*outer->inside -= reading.size;
	error = read_object(&reading, part->kind);
	added.kind = inner.kind;
	if (!error)
		error = code_add_part(outer->contents, name, length, &added);
	if (!error)
		error = take(outer->contents, &inner, part->offset);
	if (!error && inner.error)
		code_set_error(outer->contents, "in part %.*s: %s", (int)(length > 64 ? 64 : length), name,
			       inner.error);
	code_contents_free(&inner);
	return error;
}

int code_own_size(code_read_fn read, void *context, __u64 limit, __u64 *size)
{
	for (unsigned int kind = 0; kind < CODE_KINDS; kind++) {
		int error = formats[kind].size ? formats[kind].size(read, context, limit, size) : -ENODATA;

		if (error != -ENODATA)
			return error;
	}
	return -ENODATA;
}

/* Text of programs has no control characters but those that lay it out; bytes beyond ASCII may be in comments. */
bool code_is_text(const void *head, size_t length)
{
	const unsigned char *bytes = head;
	size_t i;

	for (i = 0; i < length && bytes[i]; i++)
		if (bytes[i] == 0x7f || (bytes[i] < ' ' && !strchr("\t\n\v\f\r", bytes[i])))
			return false;
	return i > 0;
}
