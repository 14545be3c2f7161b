/* SPDX-License-Identifier: BSD-2-Clause */
/* x86-64: instructions under a probe, and accessors of tables. References to strings are in elf/references.c. */
#include <Zydis/Zydis.h>
#include <errno.h>
#include <string.h>

#include "target/probe/decoder.h"

/* ---- sites ---- */

/*
 * x86-64 instructions under a probe. What the kernel emulates is what its uprobes code has done since 3.x (relative
 * branches, nop) and 4.18 (push of a register); everything else runs single-stepped from a copy.
 */

/* arguments 0 to 5 of the System V calling convention */
static const ZydisRegister argument_registers[] = {
	ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDX,
	ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_R8,	ZYDIS_REGISTER_R9,
};

#define PREFIX_OPERAND_SIZE 0x66
#define PREFIX_NOTRACK 0x3e

static bool has_prefix(const ZydisDecodedInstruction *decoded, unsigned int prefix)
{
	for (unsigned int i = 0; i < decoded->raw.prefix_count; i++)
		if (decoded->raw.prefixes[i].value == prefix)
			return true;
	return false;
}

/* The kernel takes no probe on an instruction with a lock prefix or one of four segment prefixes (notrack included). */
static bool has_refused_prefix(const ZydisDecodedInstruction *decoded)
{
	return has_prefix(decoded, 0x26) || has_prefix(decoded, 0x2e) || has_prefix(decoded, 0x36) ||
	       has_prefix(decoded, 0x3e) || has_prefix(decoded, 0xf0);
}

static bool is_nop5(const unsigned char *bytes, size_t length)
{
	static const unsigned char nop5[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

	return length >= sizeof(nop5) && !memcmp(bytes, nop5, sizeof(nop5));
}

/* push of a 64-bit register: one byte, or two with a REX prefix that holds nothing but B */
static bool is_push(const unsigned char *bytes, size_t length)
{
	if (length == 1)
		return (bytes[0] & 0xf8) == 0x50;
	return length == 2 && bytes[0] == 0x41 && (bytes[1] & 0xf8) == 0x50;
}

/*
 * Relative branches without prefix, and the one-byte nop. Prefixed ones are left alone: kernels disagree whether they
 * take a probe, and a branch hint or bnd prefix is rare.
 */
static bool is_emulated_branch(const unsigned char *bytes, size_t length)
{
	switch (bytes[0]) {
	case 0x90:
		return length == 1;
	case 0xe8:
	case 0xe9:
		return length == 5;
	case 0xeb:
		return length == 2;
	case 0x0f:
		return length == 6 && (bytes[1] & 0xf0) == 0x80;
	}
	return length == 2 && (bytes[0] & 0xf0) == 0x70;
}

static bool is_refused(const ZydisDecodedInstruction *decoded)
{
	if (has_refused_prefix(decoded) || decoded->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED)
		return true;
	switch (decoded->mnemonic) {
	case ZYDIS_MNEMONIC_CLI:
	case ZYDIS_MNEMONIC_STI:
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
		return true;
	default:
		break;
	}
	switch (decoded->meta.category) {
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_IO:
	case ZYDIS_CATEGORY_IOSTRINGOP:
	case ZYDIS_CATEGORY_SYSRET:
		return true;
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_COND_BR:
		return has_prefix(decoded, PREFIX_OPERAND_SIZE);
	case ZYDIS_CATEGORY_NOP:
		return decoded->opcode == 0x90 && has_prefix(decoded, PREFIX_OPERAND_SIZE);
	default:
		return false;
	}
}

/* Machine number of the general register that this is a part of, -1 for another kind. */
static int register_number(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64)
		return -1;
	return ZydisRegisterGetId(whole);
}

/* Bit of the general register that this is a part of; 0: another kind. */
static __u32 register_bit(ZydisRegister reg)
{
	int number = register_number(reg);

	return number < 0 ? 0 : 1u << number;
}

/*
 * jmp *8(%rax) passes the call on, jmp *table(,%rax,8) is a switch statement. jmp *%rax may be either: it depends on how
 * the address came there.
 */
static enum site_flow indirect_jump(const ZydisDecodedOperand *operand)
{
	if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.index == ZYDIS_REGISTER_NONE)
		return SITE_FLOW_TAIL;
	return SITE_FLOW_SWITCH;
}

static enum site_flow flow_of(const ZydisDecodedInstruction *decoded, const ZydisDecodedOperand *operands,
			      __u64 address, __u64 *target)
{
	switch (decoded->meta.category) {
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_COND_BR:
		break;
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_SYSTEM:
	case ZYDIS_CATEGORY_VTX:
		return SITE_FLOW_STOP;
	default:
		switch (decoded->mnemonic) {
		case ZYDIS_MNEMONIC_HLT:
		case ZYDIS_MNEMONIC_UD0:
		case ZYDIS_MNEMONIC_UD1:
		case ZYDIS_MNEMONIC_UD2:
		case ZYDIS_MNEMONIC_XBEGIN:
		case ZYDIS_MNEMONIC_XABORT:
			return SITE_FLOW_STOP;
		default:
			return SITE_FLOW_NEXT;
		}
	}
	if (decoded->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return SITE_FLOW_STOP;
	if (operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !operands[0].imm.is_relative)
		return indirect_jump(&operands[0]);
	*target = address + decoded->length + operands[0].imm.value.u;
	return decoded->meta.category == ZYDIS_CATEGORY_COND_BR ? SITE_FLOW_BRANCH : SITE_FLOW_JUMP;
}

/* Only what lies below the stack pointer may change: it is nobody's at a call. */
static bool is_harmless_store(const ZydisDecodedOperand *operand)
{
	ZyanI64 size = operand->size / 8;

	return operand->mem.base == ZYDIS_REGISTER_RSP && operand->mem.index == ZYDIS_REGISTER_NONE &&
	       operand->mem.segment == ZYDIS_REGISTER_SS && size > 0 && operand->mem.disp.value <= -size;
}

static void note_register(ZydisRegister written, struct site_instruction *instruction)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, written);

	instruction->changes |= register_bit(written);
	if (whole == ZYDIS_REGISTER_RSP) {
		instruction->transparent = false;
		instruction->stack = true;
	}
	for (unsigned int i = 0; i < sizeof(argument_registers) / sizeof(*argument_registers); i++)
		if (whole == argument_registers[i])
			instruction->writes |= 1u << i;
}

static void note_pointer(const ZydisDecodedInstruction *decoded, const ZydisDecodedOperand *operands,
			 struct site_instruction *instruction)
{
	if (instruction->flow == SITE_FLOW_SWITCH && operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
		instruction->jumps_to = register_bit(operands[0].reg.value);
	if (decoded->mnemonic == ZYDIS_MNEMONIC_MOV && operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    operands[0].size == 64 && operands[1].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	    operands[1].mem.index == ZYDIS_REGISTER_NONE)
		instruction->pointer = register_bit(operands[0].reg.value);
}

static void note_effects(const ZydisDecodedInstruction *decoded, const ZydisDecodedOperand *operands,
			 struct site_instruction *instruction)
{
	instruction->transparent = instruction->flow == SITE_FLOW_NEXT;
	for (unsigned int i = 0; i < decoded->operand_count; i++) {
		if (!(operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER)
			note_register(operands[i].reg.value, instruction);
		else if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY && !is_harmless_store(&operands[i]))
			instruction->transparent = false;
	}
}

int site_decode_x86(const unsigned char *bytes, size_t length, __u64 address, struct site_instruction *instruction)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction decoded;
	ZydisDecoder decoder;

	memset(instruction, 0, sizeof(*instruction));
	if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, length, &decoded, operands)))
		return -ENOEXEC;
	instruction->length = decoded.length;
	instruction->flow = flow_of(&decoded, operands, address, &instruction->target);
	instruction->tracked = !has_prefix(&decoded, PREFIX_NOTRACK);
	instruction->optimised = is_nop5(bytes, decoded.length);
	instruction->push = is_push(bytes, decoded.length);
	instruction->emulated = instruction->push || is_emulated_branch(bytes, decoded.length);
	instruction->refused = is_refused(&decoded);
	instruction->landing = decoded.mnemonic == ZYDIS_MNEMONIC_ENDBR64;
	note_effects(&decoded, operands, instruction);
	note_pointer(&decoded, operands, instruction);
	return 0;
}

/* ---- tables ---- */

/* Accessors: lea table(%rip),%rax; ret, and what compilers make of a version check around it. */

#define REGISTER_RETURN 0 /* rax in machine order */

static bool is_register(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_REGISTER && operand->size == 64 &&
	       register_number(operand->reg.value) >= 0;
}

static bool is_from_here(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.base == ZYDIS_REGISTER_RIP &&
	       operand->mem.index == ZYDIS_REGISTER_NONE;
}

/* lea, mov and cmov are understood; true when the instruction is done with. */
static bool follow(struct table_walk *walk, const ZydisDecodedInstruction *decoded, const ZydisDecodedOperand *operands,
		   __u64 next)
{
	bool is_move = decoded->mnemonic == ZYDIS_MNEMONIC_MOV;
	unsigned int to;

	if (decoded->operand_count < 2)
		return false;
	/* code with a fixed address: mov $table,%eax; below the lowest address of a program it is a number */
	if (is_move && operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER && operands[0].size >= 32 &&
	    register_number(operands[0].reg.value) >= 0 && operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	    operands[1].imm.value.u >= 0x10000) {
		table_walk_set(walk, (unsigned int)register_number(operands[0].reg.value), operands[1].imm.value.u,
			       false);
		return true;
	}
	if (!is_register(&operands[0]))
		return false;
	to = (unsigned int)register_number(operands[0].reg.value);
	if ((decoded->mnemonic == ZYDIS_MNEMONIC_LEA || is_move) && is_from_here(&operands[1])) {
		table_walk_compute(walk, to, next + (__u64)operands[1].mem.disp.value, is_move);
		return true;
	}
	if (!is_register(&operands[1]))
		return false;
	if (is_move) {
		table_walk_copy(walk, to, (unsigned int)register_number(operands[1].reg.value));
		return true;
	}
	if (decoded->meta.category != ZYDIS_CATEGORY_CMOV)
		return false;
	/* table or NULL: whichever is known is the table */
	if (!walk->now.registers[to].known)
		table_walk_copy(walk, to, (unsigned int)register_number(operands[1].reg.value));
	return true;
}

static void forget_written(struct table_walk *walk, const ZydisDecodedInstruction *decoded,
			   const ZydisDecodedOperand *operands)
{
	for (unsigned int i = 0; i < decoded->operand_count; i++) {
		int number;

		if (operands[i].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		number = register_number(operands[i].reg.value);
		if (number >= 0)
			table_walk_forget(walk, (unsigned int)number);
	}
}

static void forget_call(struct table_walk *walk)
{
	static const unsigned char changed_by_calls[] = { 0, 1, 2, 6, 7, 8, 9, 10, 11 };

	for (unsigned int i = 0; i < sizeof(changed_by_calls); i++)
		table_walk_forget(walk, changed_by_calls[i]);
}

static void branch(struct table_walk *walk, const ZydisDecodedInstruction *decoded, const ZydisDecodedOperand *operands,
		   __u64 next)
{
	bool relative = operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operands[0].imm.is_relative;
	__u64 target = relative ? next + operands[0].imm.value.u : 0;

	if (decoded->meta.category == ZYDIS_CATEGORY_COND_BR)
		table_walk_branch(walk, target);
	else
		table_walk_jump(walk, target);
}

void table_decode_x86(const unsigned char *code, size_t length, __u64 address, struct table_candidates *candidates)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction decoded;
	struct table_walk walk;
	ZydisDecoder decoder;
	size_t at = 0;

	table_walk_begin(&walk, address, length, candidates);
	if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		return;
	for (unsigned int i = 0; i < TABLE_INSTRUCTION_MAX && at < length; i++) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + at, length - at, &decoded, operands)))
			return;
		table_walk_arrive(&walk, address + at);
		at += decoded.length;
		switch (decoded.meta.category) {
		case ZYDIS_CATEGORY_RET:
			table_walk_return(&walk, REGISTER_RETURN);
			break;
		case ZYDIS_CATEGORY_CALL:
			forget_call(&walk);
			break;
		case ZYDIS_CATEGORY_COND_BR:
		case ZYDIS_CATEGORY_UNCOND_BR:
			branch(&walk, &decoded, operands, address + at);
			break;
		default:
			if (!follow(&walk, &decoded, operands, address + at))
				forget_written(&walk, &decoded, operands);
		}
	}
}
