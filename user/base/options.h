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
/*
 * The other way: fills a struct of the caller's, up to its size, from one of from_size bytes; the size becomes that of
 * what was filled in. -EINVAL: it has no size.
 */
int options_give(void *to, void *from, size_t from_size);

#endif
