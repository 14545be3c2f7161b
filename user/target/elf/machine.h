/* SPDX-License-Identifier: BSD-2-Clause */
/* The one place that knows relocation types of machines. */
#ifndef XPT_TARGET_ELF_MACHINE_H
#define XPT_TARGET_ELF_MACHINE_H

#include <elf.h>
#include <stdbool.h>

#include "target/elf/file.h"

/* The word becomes load address plus addend. */
static inline bool elf_relocation_is_relative(enum elf_machine machine, unsigned int type)
{
	return type == (machine == ELF_MACHINE_X86_64 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE);
}

/* The word becomes the address of a symbol, plus addend. */
static inline bool elf_relocation_is_symbol(enum elf_machine machine, unsigned int type)
{
	if (machine == ELF_MACHINE_X86_64)
		return type == R_X86_64_64 || type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT;
	return type == R_AARCH64_ABS64 || type == R_AARCH64_GLOB_DAT || type == R_AARCH64_JUMP_SLOT;
}

/* x86-64's GLOB_DAT and JUMP_SLOT have no addend, whatever the field holds. */
static inline bool elf_relocation_has_addend(enum elf_machine machine, unsigned int type)
{
	return machine != ELF_MACHINE_X86_64 || (type != R_X86_64_GLOB_DAT && type != R_X86_64_JUMP_SLOT);
}

#endif
