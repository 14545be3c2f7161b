/* SPDX-License-Identifier: BSD-2-Clause */
/* Structs of options that begin with their own size. */
#ifndef XPT_BASE_CORE_OPTIONS_H
#define XPT_BASE_CORE_OPTIONS_H

#include <stddef.h>

/*
 * Copies the fields that both sides know into to, of to_size bytes and zeroed. -EINVAL: no options, or without a size;
 * -E2BIG: the caller has set fields of a newer library.
 */
int options_copy(void *to, size_t to_size, const void *options);
/*
 * Copies one element of an array that the caller has with stride bytes for each, into to, of to_size bytes. 0: as many as in the first
 * version, which to_size is as long as the struct has not grown. -E2BIG as above.
 */
int options_copy_element(void *to, size_t to_size, const void *array, size_t stride, size_t index);
/*
 * The other way: fills a struct of the caller's, up to its size, from one of from_size bytes; the size becomes that of
 * what was filled in. -EINVAL: it has no size.
 */
int options_give(void *to, void *from, size_t from_size);

#endif
