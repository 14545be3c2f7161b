/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a file holds bytes, and which functions refer to a string: that identifies them in a stripped file. */
#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "target/elf/arm64.h"
#include "target/elf/internal.h"

#define CHUNK (256u << 10)	/* bytes read together */
#define PLACES_MAX 16		/* of one string in a file */
#define CONSTANT 16		/* bytes of a string that compilers keep as a constant, to copy them at once */
#define FUNCTION_MAX (4u << 20) /* bytes of a function that is decoded */
#define ADRP_DISTANCE 64	/* instructions between adrp and the add of the rest */
#define OVERLAP (4 * ADRP_DISTANCE + 16)

struct needle {
	const char *bytes;
	size_t length; /* 0: not searched for */
};

struct search {
	const struct needle *needles;
	size_t count, longest; /* bytes */
	int (*visit)(void *context, size_t needle, __u64 address);
	void *context;
};

/* Of each place the first step bytes of the chunk that it begins in are enough: chunks overlap. */
static int search_chunk(const struct search *search, const char *chunk, size_t length, size_t step, __u64 address)
{
	int error = 0;

	for (size_t i = 0; i < search->count && !error; i++) {
		const struct needle *needle = &search->needles[i];

		for (const char *at = chunk, *end = chunk + length;
		     needle->length && !error && (at = memmem(at, (size_t)(end - at), needle->bytes, needle->length)) &&
		     at < chunk + step;
		     at++)
			error = search->visit(search->context, i, address + (__u64)(at - chunk));
	}
	return error;
}

static int search_segment(struct elf_file *file, const struct elf_segment *segment, const struct search *search)
{
	size_t step = CHUNK - search->longest + 1;
	char *buffer = malloc(CHUNK);
	int error = buffer ? 0 : -ENOMEM;

	for (__u64 done = 0; done < segment->file_size && !error; done += step) {
		__u64 left = segment->file_size - done;
		size_t part = left < CHUNK ? (size_t)left : CHUNK;

		if (elf_file_read_offset(file, segment->offset + done, buffer, part))
			break; /* cut short */
		error = search_chunk(search, buffer, part, step, segment->address + done);
	}
	free(buffer);
	return error;
}

static int search_data(struct elf_file *file, const struct search *search)
{
	int error = 0;

	for (size_t i = 0; i < file->segment_count && !error; i++)
		if (!file->segments[i].writable)
			error = search_segment(file, &file->segments[i], search);
	return error;
}

struct one_needle {
	int (*visit)(void *context, __u64 address);
	void *context;
};

static int visit_bytes(void *context, size_t needle, __u64 address)
{
	const struct one_needle *one = context;

	(void)needle;
	return one->visit(one->context, address);
}

int elf_file_each_bytes(struct elf_file *file, const char *bytes, size_t length,
			int (*visit)(void *context, __u64 address), void *context)
{
	const struct needle needle = { bytes, length };
	struct one_needle one = { visit, context };

	if (!length || length > ELF_NAME_MAX + 1)
		return -EINVAL;
	return search_data(file, &(struct search){ &needle, 1, length, visit_bytes, &one });
}

/* Where a string is, or its beginning as a constant. */
struct place {
	__u64 address;
	size_t string;
};

struct references {
	struct elf_file *file;
	struct place *places; /* sorted */
	size_t place_count;
	int (*visit)(void *context, size_t string, __u64 function);
	void *context;
};

/* Needles 2 * i and 2 * i + 1 are of string i: all of it, and its beginning. */
static int add_place(void *context, size_t needle, __u64 address)
{
	struct references *references = context;
	size_t of_string = 0;

	if (needle & 1 && address % CONSTANT)
		return 0;
	for (size_t i = 0; i < references->place_count; i++)
		of_string += references->places[i].string == needle / 2;
	if (of_string >= PLACES_MAX)
		return 0;
	return vec_push(references->places, references->place_count, (struct place){ address, needle / 2 });
}

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->string < b->string ? -1 : a->string > b->string;
}

/* The first place of those with the address; the number of places: there is none. */
static size_t find_place(const struct references *references, __u64 address)
{
	size_t first = vec_first(references->place_count, i, references->places[i].address < address);

	return first < references->place_count && references->places[first].address == address ?
		       first :
		       references->place_count;
}

static bool is_place(const struct references *references, __u64 address)
{
	return find_place(references, address) < references->place_count;
}

/* The function around the address refers to the strings at place. */
static int visit_strings(const struct references *references, __u64 place, __u64 function)
{
	int error = 0;

	for (size_t i = find_place(references, place);
	     i < references->place_count && references->places[i].address == place && !error; i++)
		error = references->visit(references->context, references->places[i].string, function);
	return error;
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
	return error || !refers ? error : visit_strings(references, place, start);
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

/* Whether an instruction loads into general registers: the pair's second one is in its bits 10 to 14. */
static bool is_load(__u32 word)
{
	if ((word & 0x0e000000) != 0x08000000)
		return false;							    /* nor one of vector registers */
	if ((word & 0x3a000000) == 0x28000000 || (word & 0x3f000000) == 0x08000000) /* pairs, exclusive */
		return word & 0x00400000;
	return (word & 0x3b000000) == 0x18000000 ||
	       ((word & 0x00c00000) && (word & 0xfbc00000) != 0xf9800000); /* no prfm */
}

/* Whether the instruction leaves something else in the register. */
static bool is_written(__u32 word, unsigned int reg)
{
	if ((word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000) /* bl, blr */
		return reg <= 18;
	if ((word & 0x3a000000) == 0x28000000 && is_load(word) && (word >> 10 & 31) == reg)
		return true;
	if ((word & 0x3fe00000) == 0x3a400000) /* ccmp, ccmn: flags in the place of the register */
		return false;
	return (word & 31) == reg &&
	       ((word & 0x1c000000) == 0x10000000 || (word & 0x0e000000) == 0x0a000000 || is_load(word));
}

/* Whether what follows is reached by a branch alone, if at all: b, br, ret. */
static bool is_end(__u32 word)
{
	return (word & 0xfc000000) == 0x14000000 || (word & 0xffbffc1f) == 0xd61f0000;
}

/*
 * A pass over the code behind an adrp: the place that it leads to; 0: none. A register that is written holds the page no more on this
 * way. reached: bit i: instruction i + 1 is reached by a branch while it holds the page.
 */
static __u64 pass_adrp(const struct references *references, const unsigned char *code, size_t length, __u64 page,
		       __u64 *reached)
{
	unsigned int base;
	bool holds = true;
	__u32 word;

	memcpy(&word, code, sizeof(word));
	base = word & 31;
	for (int i = 1; i <= ADRP_DISTANCE && 4 * (size_t)i + 4 <= length; i++) {
		__u64 place = 0;
		__s64 target;

		memcpy(&word, code + 4 * i, sizeof(word));
		holds |= *reached >> (i - 1) & 1;
		if (holds && (word & 0xff800000) == 0x91000000 && (word >> 5 & 31) == base)
			place = page + ((word >> 10 & 0xfff) << (word >> 22 & 1 ? 12 : 0));
		else if (holds && (word & 0xffc00000) == 0x3dc00000 && (word >> 5 & 31) == base) /* ldr, 128 bits */
			place = page + 16ull * (word >> 10 & 0xfff);
		if (place && is_place(references, place))
			return place;
		/* A call comes back. */
		target = i + ((word & 0xfc000000) == 0x94000000 ? 0 : arm64_branch(word));
		if (holds && target != i && target >= 1 && target <= ADRP_DISTANCE)
			*reached |= 1ull << (target - 1);
		if (holds && (word & 0xfffffc1f) == 0xd61f0000) /* br: by a table, to any */
			*reached = UINT64_MAX;
		holds &= !is_end(word) && !is_written(word, base);
	}
	return 0;
}

/* Twice: the body of a loop may be before what branches there. */
static __u64 place_of_adrp(const struct references *references, const unsigned char *code, size_t length, __u64 page)
{
	__u64 reached = 0;

	return pass_adrp(references, code, length, page, &reached) ?:
		       (reached ? pass_adrp(references, code, length, page, &reached) : 0);
}

static int search_arm64(const struct references *references, const unsigned char *code, size_t length, __u64 address)
{
	int error = 0;

	for (size_t i = 0; i + 4 <= length && !error; i += 4) {
		__u64 start, size, place;
		__u32 word;

		memcpy(&word, code + i, sizeof(word));
		if ((word & 0x1f000000) != 0x10000000)
			continue;
		place = arm64_page(word, address + i);
		if (word >> 31)
			place = place_of_adrp(references, code + i, length - i, place);
		if (!is_place(references, place))
			continue;
		error = elf_file_function_bounds(references->file, address + i, &start, &size);
		if (!error)
			error = visit_strings(references, place, start);
		else if (error == -ENOENT)
			error = 0;
	}
	return error;
}

/* ---- both ---- */

static int search_code(void *context, const unsigned char *code, size_t length, __u64 address)
{
	const struct references *references = context;

	return references->file->machine == ELF_MACHINE_X86_64 ? search_x86(references, code, length, address) :
								 search_arm64(references, code, length, address);
}

static int read_code(struct elf_file *file, const struct elf_segment *segment, size_t overlap, visit_code visit,
		     void *context)
{
	unsigned char *code = malloc(CHUNK + overlap);
	int error = code ? 0 : -ENOMEM;

	for (__u64 done = 0; done < segment->file_size && !error; done += CHUNK) {
		__u64 left = segment->file_size - done;
		size_t length = left < CHUNK + overlap ? (size_t)left : CHUNK + overlap;

		if (elf_file_read_offset(file, segment->offset + done, code, length))
			break; /* cut short */
		error = visit(context, code, length, segment->address + done);
	}
	free(code);
	return error;
}

int elf_file_each_code(struct elf_file *file, size_t overlap, visit_code visit, void *context)
{
	int error = 0;

	for (size_t i = 0; i < file->segment_count && !error; i++)
		if (file->segments[i].executable)
			error = read_code(file, &file->segments[i], overlap, visit, context);
	return error;
}

static int find_places(struct references *references, const char *const *strings, size_t count)
{
	struct needle *needles = calloc(2 * count, sizeof(*needles));
	struct search search = { needles, 2 * count, 0, add_place, references };
	int error = needles ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !error; i++) {
		size_t length = strlen(strings[i]);

		if (length > ELF_NAME_MAX)
			error = -EINVAL;
		needles[2 * i] = (struct needle){ strings[i], length + 1 };
		needles[2 * i + 1] = (struct needle){ strings[i], length > CONSTANT ? CONSTANT : 0 };
		search.longest = length + 1 > search.longest ? length + 1 : search.longest;
	}
	if (!error)
		error = search_data(references->file, &search);
	free(needles);
	if (references->place_count)
		qsort(references->places, references->place_count, sizeof(*references->places), compare_places);
	return error;
}

int elf_file_each_reference(struct elf_file *file, const char *const *strings, size_t count,
			    int (*visit)(void *context, size_t string, __u64 function), void *context)
{
	struct references references = { .file = file, .visit = visit, .context = context };
	int error = count ? find_places(&references, strings, count) : 0;

	if (!error && references.place_count)
		error = elf_file_each_code(file, OVERLAP, search_code, &references);
	free(references.places);
	return error;
}
