/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plugin as PJRT's are found, whose table of functions is filled when it is loaded: it can be read in a process only, and
 * each process can write what it likes into its own.
 *
 * With SHIFTED it looks the same but for what stands before each function: where these begin, and have symbols that are
 * probed, the functions of the other one are in the midst of an instruction.
 */
#include <stddef.h>

#include "plugin.h"

#ifdef __x86_64__
#define INSTRUCTIONS "mov $0x11223344, %eax\nret\n"
#else
#define INSTRUCTIONS "movz w0, #0x3344\nmovk w0, #0x1122, lsl #16\nret\n"
#endif

#ifdef SHIFTED
#ifdef __x86_64__
#define BEFORE "nop\nnop\nnop\n"
#define FIRST "3"
#else
#define BEFORE "nop\nnop\n"
#define FIRST "8"
#endif
#define RUNTIME "nrt_"
#else
#define BEFORE
#define FIRST "0"
#define RUNTIME "own_" /* as long, so that all lies where it does in the other one */
#endif

#define SYMBOL(name, function)                                                           \
	".globl " RUNTIME name "\n.type " RUNTIME name ", %function\n.set " RUNTIME name \
	", plugin_functions + " function " * 16 + " FIRST "\n.size " RUNTIME name ", 6\n"

__asm__(SYMBOL("load", "1") SYMBOL("unload", "2") SYMBOL("execute", "3") SYMBOL("tensor_write", "4"));

/* One after the other, FUNCTION_SIZE bytes each; all return ANSWER. */
__asm__(".text\n.p2align 4\n.local plugin_functions\nplugin_functions:\n.rept 128\n.p2align 4\n" BEFORE
	".cfi_startproc\n" INSTRUCTIONS ".cfi_endproc\n.endr\n.p2align 4\n");

extern char plugin_functions[] __attribute__((visibility("hidden")));

static struct plugin_table table;

static void __attribute__((constructor)) fill(void)
{
	table.size = sizeof(table);
	for (size_t i = 0; i < PLUGIN_FUNCTIONS; i++)
		table.slots[i] = plugin_functions + i * FUNCTION_SIZE;
}

char *plugin_code(void)
{
	return plugin_functions;
}

struct plugin_table *GetPjrtApi(void)
{
	return &table;
}
