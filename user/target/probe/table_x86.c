/* SPDX-License-Identifier: BSD-2-Clause */
/* Accessors on x86-64: lea table(%rip),%rax; ret, and what compilers make of a version check around it. */
#include <Zydis/Zydis.h>

#include "target/probe/table_decoder.h"

#define REGISTER_RETURN 0 /* rax in machine order */

/* Machine number of a 64-bit or 32-bit general register, -1 for any other. */
static int register_number(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64)
		return -1;
	return ZydisRegisterGetId(whole);
}

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
