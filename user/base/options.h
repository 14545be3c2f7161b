/* SPDX-License-Identifier: BSD-2-Clause */
/* Structs of options that begin with their own size. */
#ifndef XPT_BASE_OPTIONS_H
#define XPT_BASE_OPTIONS_H

#include <stddef.h>

/*
 * Copies the fields that both sides know into to, of to_size bytes and zeroed. -EINVAL: no options, or without a size;
 * -E2BIG: the caller has set fields of a newer library.
 */
int options_copy(void *to, size_t to_size, const void *options);

#endif
