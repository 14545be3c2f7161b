/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of any program that a user makes regions, put as the description of a runtime "function". */
#ifndef XPT_DESCRIBE_RUNTIME_FUNCTION_REGIONS_H
#define XPT_DESCRIBE_RUNTIME_FUNCTION_REGIONS_H

#include "describe/runtime/description.h"

/*
 * Each of regions is "FILE:FUNCTION": glob patterns of the name of a program or library (or where it holds a '/', its path), and of
 * functions in it, by their symbols or, where it holds "::", by their names in C++ without parameters. -EINVAL, reported; -ENOMEM.
 */
int function_regions_describe(const struct log *log, const char *const *regions, size_t count,
			      struct description **result);

#endif
