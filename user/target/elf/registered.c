/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernels that the compiler's code registers with a runtime when a file is loaded: that names them in a stripped file. */
#include <Zydis/Zydis.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/internal.h"

#define WINDOW 64		/* bytes between two arguments of a call */
#define FUNCTION_MAX (4u << 20) /* bytes of a function that is decoded */
#define REGISTERED_MAX (1u << 20)

/* What a register points to within the file; 0: unknown. */
struct arguments {
	__u64 second, third, fourth; /* rsi: the function on the host; rdx and rcx: its name on the device */
};

struct registrations {
	struct elf_file *file;
	__u64 decoded; /* end of the last function that was decoded: segments are in order of their addresses */
	size_t count;
	int (*visit)(void *context, __u64 function, const char *name);
	void *context;
};

static bool is_identifier(const char *name)
{
	if (!isalpha((unsigned char)*name) && *name != '_')
		return false;
	while (isalnum((unsigned char)*name) || *name == '_' || *name == '$' || *name == '.')
		name++;
	return !*name;
}

/* A call was reached. */
static int visit_call(struct registrations *all, const struct arguments *given)
{
	__u64 at = given->third ?: given->fourth, offset, left;
	char name[ELF_NAME_MAX + 1];

	if (!given->second || !at || !elf_file_is_executable(all->file, given->second) ||
	    elf_file_is_executable(all->file, at) || elf_file_locate(all->file, at, &offset, &left))
		return 0;
	left = left < ELF_NAME_MAX ? left : ELF_NAME_MAX;
	if (elf_file_read(all->file, at, name, (size_t)left))
		return 0;
	name[left] = '\0';
	if (!is_identifier(name))
		return 0;
	return all->count++ < REGISTERED_MAX ? all->visit(all->context, given->second, name) : -E2BIG;
}

static __u64 *argument_of(struct arguments *arguments, ZydisRegister name)
{
	switch (ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name)) {
	case ZYDIS_REGISTER_RSI:
		return &arguments->second;
	case ZYDIS_REGISTER_RDX:
		return &arguments->third;
	case ZYDIS_REGISTER_RCX:
		return &arguments->fourth;
	default:
		return NULL;
	}
}

/* What the instruction, which ends at next, does to the arguments. */
static void follow(struct arguments *arguments, const ZydisDecodedInstruction *decoded,
		   const ZydisDecodedOperand *operands, __u64 next)
{
	const ZydisDecodedOperand *from = &operands[1];
	__u64 *to = decoded->operand_count && operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
				    operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ?
			    argument_of(arguments, operands[0].reg.value) :
			    NULL;
	const __u64 *source;

	if (!to)
		return;
	source = decoded->mnemonic == ZYDIS_MNEMONIC_MOV && from->type == ZYDIS_OPERAND_TYPE_REGISTER ?
			 argument_of(arguments, from->reg.value) :
			 NULL;
	if (decoded->mnemonic == ZYDIS_MNEMONIC_LEA && from->mem.base == ZYDIS_REGISTER_RIP)
		*to = next + (__u64)from->mem.disp.value;
	else
		*to = source ? *source : 0;
}

static int decode(struct registrations *all, const unsigned char *code, size_t size, __u64 address)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	struct arguments arguments = {};
	ZydisDecodedInstruction decoded;
	ZydisDecoder decoder;
	size_t at = 0;
	int error = 0;

	if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		return -ENOMEM;
	while (!error && ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + at, size - at, &decoded, operands))) {
		at += decoded.length;
		if (decoded.meta.category == ZYDIS_CATEGORY_CALL) {
			error = visit_call(all, &arguments);
			arguments = (struct arguments){};
		} else {
			follow(&arguments, &decoded, operands, address + at);
		}
	}
	return error;
}

/* The function around the address, unless it has been decoded. */
static int decode_function(struct registrations *all, __u64 address)
{
	__u64 start, size;
	unsigned char *code;
	int error;

	if (address < all->decoded || elf_file_function_bounds(all->file, address, &start, &size) ||
	    size > FUNCTION_MAX)
		return 0;
	all->decoded = start + size;
	code = malloc(size);
	if (!code)
		return -ENOMEM;
	error = elf_file_read(all->file, start, code, size) ? 0 : decode(all, code, size, start);
	free(code);
	return error;
}

/* lea rdx or rcx, with an address outside of the code, in the bytes around one of lea rsi. */
static bool has_name_beside(const struct registrations *all, const unsigned char *code, size_t length, size_t at,
			    __u64 address)
{
	size_t end = at + WINDOW < length ? at + WINDOW : length;

	for (size_t i = at > WINDOW ? at - WINDOW : 0; i + 7 <= end; i++) {
		__s32 distance;

		if (code[i] != 0x48 || code[i + 1] != 0x8d || (code[i + 2] != 0x15 && code[i + 2] != 0x0d))
			continue;
		memcpy(&distance, code + i + 3, sizeof(distance));
		if (!elf_file_is_executable(all->file, address + i + 7 + (__u64)(__s64)distance))
			return true;
	}
	return false;
}

static int search_piece(void *context, const unsigned char *code, size_t length, __u64 address)
{
	struct registrations *all = context;
	const unsigned char *at = code;
	int error = 0;

	while (!error && (at = memmem(at, (size_t)(code + length - at), "\x48\x8d\x35", 3))) {
		size_t i = (size_t)(at++ - code);
		__s32 distance;

		if (i + 7 > length)
			break;
		memcpy(&distance, code + i + 3, sizeof(distance));
		if (elf_file_is_executable(all->file, address + i + 7 + (__u64)(__s64)distance) &&
		    has_name_beside(all, code, length, i, address))
			error = decode_function(all, address + i);
	}
	return error;
}

int elf_file_each_registered(struct elf_file *file, int (*visit)(void *context, __u64 function, const char *name),
			     void *context)
{
	struct registrations all = { .file = file, .visit = visit, .context = context };

	return file->machine == ELF_MACHINE_X86_64 ? elf_file_each_code(file, 2 * WINDOW, search_piece, &all) : 0;
}
