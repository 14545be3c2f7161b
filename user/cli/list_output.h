/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of `xputrace list`, as a table or as JSON. */
#ifndef XPT_CLI_LIST_OUTPUT_H
#define XPT_CLI_LIST_OUTPUT_H

#include <stddef.h>

struct list_output {
	int json;    /* 0: a table */
	size_t rows; /* so far */
};

/* Begins a row of JSON. */
void list_row(struct list_output *output);
/* "key":"value" and what stands behind it. */
void list_string(const char *key, const char *value, const char *end);

/* list_devices.c; what the library answers. */
int list_devices(struct list_output *output);
int list_counters(struct list_output *output, int gpu);

#endif
