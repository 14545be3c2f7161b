/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a file holds bytes, and which functions refer to a string: that identifies them in a stripped file. */
#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/internal.h"

#define CHUNK (256u << 10)	/* bytes read together */
#define PLACES_MAX 16		/* of one string in a file */
#define CONSTANT 16		/* bytes of a string that compilers keep as a constant, to copy them at once */
#define FUNCTION_MAX (4u << 20) /* bytes of a function that is decoded */
#define ADRP_DISTANCE 64	/* instructions between adrp and the add of the rest */
#define OVERLAP (4 * ADRP_DISTANCE + 16)

/* Chunks overlap, so that each place is wholly in one. */
static int search_segment(struct elf_file *file, const struct elf_segment *segment, const char *bytes, size_t length,
			  int (*visit)(void *context, __u64 address), void *context)
{
	char *buffer = malloc(CHUNK);
	int error = buffer ? 0 : -ENOMEM;

	for (__u64 done = 0; done + length <= segment->file_size && !error; done += CHUNK - length + 1) {
		__u64 left = segment->file_size - done;
		size_t part = left < CHUNK ? (size_t)left : CHUNK;

		if (elf_file_read_offset(file, segment->offset + done, buffer, part))
			break; /* cut short */
		for (const char *at = buffer, *end = buffer + part;
		     !error && (at = memmem(at, (size_t)(end - at), bytes, length)); at++)
			error = visit(context, segment->address + done + (__u64)(at - buffer));
	}
	free(buffer);
	return error;
}

int elf_file_each_bytes(struct elf_file *file, const char *bytes, size_t length,
			int (*visit)(void *context, __u64 address), void *context)
{
	int error = length && length <= ELF_NAME_MAX + 1 ? 0 : -EINVAL;

	for (size_t i = 0; i < file->segment_count && !error; i++)
		if (!file->segments[i].writable)
			error = search_segment(file, &file->segments[i], bytes, length, visit, context);
	return error;
}

struct references {
	struct elf_file *file;
	__u64 places[PLACES_MAX];
	size_t place_count;
	int (*visit)(void *context, __u64 function);
	void *context;
};

static int add_place(void *context, __u64 address)
{
	struct references *references = context;

	if (references->place_count < PLACES_MAX)
		references->places[references->place_count++] = address;
	return 0;
}

static bool is_place(const struct references *references, __u64 address)
{
	for (size_t i = 0; i < references->place_count; i++)
		if (references->places[i] == address)
			return true;
	return false;
}

/* ---- x86-64: an operand relative to the next instruction ---- */

/* Whether the function has an instruction around the address that refers to place, decoded from its begin. */
static int confirm_x86(struct elf_file *file, __u64 start, __u64 size, __u64 address, __u64 place, bool *refers)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction decoded;
	unsigned char *code;
	ZydisDecoder decoder;
	size_t at = 0;
	int error;

	*refers = false;
	if (size > FUNCTION_MAX ||
	    !ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		return 0;
	code = malloc(size);
	if (!code)
		return -ENOMEM;
	error = elf_file_read(file, start, code, size);
	while (!error && start + at < address &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + at, size - at, &decoded, operands))) {
		at += decoded.length;
		for (unsigned int i = 0; i < decoded.operand_count && start + at > address; i++)
			*refers |= operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
				   operands[i].mem.base == ZYDIS_REGISTER_RIP &&
				   start + at + (__u64)operands[i].mem.disp.value == place;
	}
	free(code);
	return error == -EFAULT ? 0 : error;
}

static int visit_x86(const struct references *references, __u64 address, __u64 place)
{
	__u64 start, size;
	bool refers;
	int error = elf_file_function_bounds(references->file, address, &start, &size);

	if (error)
		return error == -ENOENT ? 0 : error;
	error = confirm_x86(references->file, start, size, address, place, &refers);
	return error || !refers ? error : references->visit(references->context, start);
}

/* Without an immediate behind it, the distance is the last part of an instruction, and the byte before identifies it. */
static int search_x86(const struct references *references, const unsigned char *code, size_t length, __u64 address)
{
	int error = 0;

	for (size_t i = 1; i + 4 <= length && !error; i++) {
		__s32 distance;
		__u64 place;

		if ((code[i - 1] & 0xc7) != 0x05)
			continue;
		memcpy(&distance, code + i, sizeof(distance));
		place = address + i + 4 + (__u64)(__s64)distance;
		if (is_place(references, place))
			error = visit_x86(references, address + i, place);
	}
	return error;
}

/* ---- AArch64: adr, or adrp and what adds the rest of the address ---- */

static __u64 page_of_adrp(__u32 word, __u64 address)
{
	__s64 pages = (__s64)(((__u64)(word >> 5 & 0x7ffff) << 2 | (word >> 29 & 3)) << 43) >> 43;

	return word >> 31 ? (address & ~0xfffull) + (__u64)pages * 4096 : address + (__u64)pages;
}

/* Whether code that begins with an adrp leads to one of the places. */
static bool leads_to_place(const struct references *references, const unsigned char *code, size_t length, __u64 page)
{
	__u32 word;
	unsigned int base;

	memcpy(&word, code, sizeof(word));
	base = word & 31;
	for (size_t at = 4; at + 4 <= length && at <= 4 * ADRP_DISTANCE; at += 4) {
		memcpy(&word, code + at, sizeof(word));
		if ((word & 0xff800000) == 0x91000000 && (word >> 5 & 31) == base &&
		    is_place(references, page + ((word >> 10 & 0xfff) << (word >> 22 & 1 ? 12 : 0))))
			return true;
		if ((word & 0xffc00000) == 0x3dc00000 && (word >> 5 & 31) == base && /* ldr, 128 bits */
		    is_place(references, page + 16ull * (word >> 10 & 0xfff)))
			return true;
		if ((word & 0x1f000000) == 0x10000000 && (word & 31) == base) /* another address */
			return false;
	}
	return false;
}

static int search_arm64(const struct references *references, const unsigned char *code, size_t length, __u64 address)
{
	int error = 0;

	for (size_t i = 0; i + 4 <= length && !error; i += 4) {
		__u64 start, size, target;
		__u32 word;

		memcpy(&word, code + i, sizeof(word));
		if ((word & 0x1f000000) != 0x10000000)
			continue;
		target = page_of_adrp(word, address + i);
		if (word >> 31 ? !leads_to_place(references, code + i, length - i, target) :
				 !is_place(references, target))
			continue;
		error = elf_file_function_bounds(references->file, address + i, &start, &size);
		if (!error)
			error = references->visit(references->context, start);
		else if (error == -ENOENT)
			error = 0;
	}
	return error;
}

/* ---- both ---- */

static int search_code(const struct references *references, const struct elf_segment *segment)
{
	bool is_x86 = references->file->machine == ELF_MACHINE_X86_64;
	unsigned char *code = malloc(CHUNK + OVERLAP);
	int error = code ? 0 : -ENOMEM;

	for (__u64 done = 0; done < segment->file_size && !error; done += CHUNK) {
		__u64 left = segment->file_size - done;
		size_t length = left < CHUNK + OVERLAP ? (size_t)left : CHUNK + OVERLAP;

		if (elf_file_read_offset(references->file, segment->offset + done, code, length))
			break; /* cut short */
		error = is_x86 ? search_x86(references, code, length, segment->address + done) :
				 search_arm64(references, code, length, segment->address + done);
	}
	free(code);
	return error;
}

static int add_constant(void *context, __u64 address)
{
	return address % CONSTANT ? 0 : add_place(context, address);
}

int elf_file_each_reference(struct elf_file *file, const char *string, int (*visit)(void *context, __u64 function),
			    void *context)
{
	struct references references = { .file = file, .visit = visit, .context = context };
	int error = elf_file_each_bytes(file, string, strlen(string) + 1, add_place, &references);

	if (!error && strlen(string) > CONSTANT)
		error = elf_file_each_bytes(file, string, CONSTANT, add_constant, &references);
	for (size_t i = 0; i < file->segment_count && references.place_count && !error; i++)
		if (file->segments[i].executable)
			error = search_code(&references, &file->segments[i]);
	return error;
}
