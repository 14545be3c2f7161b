/* SPDX-License-Identifier: BSD-2-Clause */
/* Operators that are functions without an object: each symbol that a description asks for is a class of its own. */
#ifndef XPT_TARGET_PROBE_OPERATOR_FUNCTIONS_H
#define XPT_TARGET_PROBE_OPERATOR_FUNCTIONS_H

#include "describe/runtime/description.h"
#include "target/probe/classes.h"

#define OPERATOR_FUNCTIONS_MAX 16384 /* further ones are left out, and counted */

/*
 * One method for each function, in order of their addresses; its slot is that of its description. What is called
 * "at::_ops::mm::call" in the file, where the description calls it "call", is the method of the class "at::_ops::mm";
 * else the class is called as the function. Names are readable. table is the function's address. -ENOENT: there is none.
 */
int operator_functions_find(struct elf_file *file, const struct operators_spec *spec, struct classes *result);

#endif
