/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arrays that grow one element at a time: a pointer, NULL to begin with, and a count. The capacity follows from the count, so
 * that nothing else has to be kept: at first VEC_FIRST elements, then the next power of two. Elements may be removed by lowering
 * the count; an array that was allocated in another way must not grow here. free() releases it.
 */
#ifndef XPT_BASE_CORE_VEC_H
#define XPT_BASE_CORE_VEC_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define VEC_FIRST 8 /* a power of two */

/* Where the array is with room for one more element; NULL: no memory, or its size overflows. array is as it was then. */
static inline void *vec_grow(void *array, size_t count, size_t size)
{
	if (count && (count < VEC_FIRST || count & (count - 1)))
		return array;
	return reallocarray(array, count ? 2 * count : VEC_FIRST, size);
}

/* Makes room for one more element, which the caller then writes to array[count++]. 0, -ENOMEM. */
#define vec_reserve(array, count)                                                       \
	({                                                                              \
		__typeof__(array) vec_grown = vec_grow(array, count, sizeof(*(array))); \
		if (vec_grown)                                                          \
			(array) = vec_grown;                                            \
		vec_grown ? 0 : -ENOMEM;                                                \
	})

/* Appends an element, which may be a compound literal, and is evaluated only when there is room for it. 0, -ENOMEM. */
#define vec_push(array, count, ...)                        \
	({                                                 \
		int vec_error = vec_reserve(array, count); \
		if (!vec_error) {                          \
			(array)[count] = (__VA_ARGS__);    \
			(count)++;                         \
		}                                          \
		vec_error;                                 \
	})

/*
 * In a sorted array, the number of elements at its begin for which before, an expression of an index of that name, is true: so
 * the index of the first one for which it is not.
 */
#define vec_first(count, index, before)                                          \
	({                                                                       \
		size_t vec_low = 0, vec_high = (count);                          \
		while (vec_low < vec_high) {                                     \
			const size_t index = vec_low + (vec_high - vec_low) / 2; \
			if (before)                                              \
				vec_low = index + 1;                             \
			else                                                     \
				vec_high = index;                                \
		}                                                                \
		vec_low;                                                         \
	})

#endif
