/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plugin as PJRT's are found, whose table of functions is filled when it is loaded: it can be read in a process only, and
 * each process can write what it likes into its own.
 */
#include <stddef.h>

#include "plugin.h"

#ifdef __x86_64__
#define INSTRUCTIONS "mov $0x11223344, %eax\nret\n"
#else
#define INSTRUCTIONS "movz w0, #0x3344\nmovk w0, #0x1122, lsl #16\nret\n"
#endif

/* One after the other, FUNCTION_SIZE bytes each; all return ANSWER. */
__asm__(".text\n.p2align 4\n.local plugin_functions\nplugin_functions:\n.rept 128\n.p2align 4\n.cfi_startproc\n" INSTRUCTIONS
	".cfi_endproc\n.endr\n.p2align 4\n");

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
