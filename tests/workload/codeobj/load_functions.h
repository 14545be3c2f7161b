/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of the stand-ins that load code objects, each called as an application calls it. */
#ifndef LOAD_FUNCTIONS_H
#define LOAD_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

/* What is loaded. */
struct load_given {
	const void *bytes;
	size_t size;
	const char *path;
	int descriptor; /* open for reading at its begin, or -1 */
};

enum load_source { FROM_BYTES, FROM_PATH, FROM_DESCRIPTOR };

struct load_function {
	const char *name;
	enum load_source source; /* what of load_given it takes */
	const char *unload;	 /* name of the function that takes the handle; NULL: there is none */
	/* Calls function. The status, as the runtime gives it; those that give only a handle: 0, or -1 where it is NULL. */
	int (*load)(void *function, const struct load_given *given, uint64_t *handle);
};

/* NULL: no such function. */
const struct load_function *load_function_find(const char *name);
/* Where a loading or unloading function is, in the libraries that are loaded. NULL: in none of them. */
void *load_symbol(const char *name);
/* Calls an unloading function. */
void load_undo(const char *name, void *function, uint64_t handle);

#endif
