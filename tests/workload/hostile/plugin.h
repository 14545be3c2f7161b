/* SPDX-License-Identifier: BSD-2-Clause */
/* What plugin.c and the program that loads it agree on. */
#ifndef XPT_WORKLOAD_HOSTILE_PLUGIN_H
#define XPT_WORKLOAD_HOSTILE_PLUGIN_H

#include <stddef.h>

#define PLUGIN_FUNCTIONS 128
#define FUNCTION_SIZE 16
#define ANSWER 0x11223344

/* As user/runtimes/pjrt.json has it. */
struct plugin_table {
	size_t size;
	void *head[4];
	char *slots[PLUGIN_FUNCTIONS];
};

char *plugin_code(void); /* the functions, one after the other */
struct plugin_table *GetPjrtApi(void);

#endif
