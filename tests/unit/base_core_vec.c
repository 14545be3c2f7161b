/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/vec.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <stdlib.h>

struct pair {
	size_t a, b;
};

Test(base_core_vec, elements_stay)
{
	struct pair *pairs = NULL;
	size_t count = 0;

	while (count < 10000) {
		cr_assert_eq(vec_push(pairs, count, (struct pair){ count, 2 * count }), 0);
		cr_assert_geq(malloc_usable_size(pairs), count * sizeof(*pairs));
	}
	for (size_t i = 0; i < count; i++)
		cr_assert(pairs[i].a == i && pairs[i].b == 2 * i, "%zu", i);
	free(pairs);
}

/* Whatever the count was before: the room is there, as sanitizers see. */
Test(base_core_vec, elements_removed)
{
	unsigned char *bytes = NULL;
	unsigned int count = 0;

	for (unsigned int most = 1; most < 70; most++) {
		while (count < most)
			cr_assert_eq(vec_push(bytes, count, (unsigned char)count), 0);
		for (unsigned int left = most; left--;) {
			count = left;
			cr_assert_eq(vec_reserve(bytes, count), 0);
			cr_assert_geq(malloc_usable_size(bytes), left + 1);
			bytes[count++] = left;
			for (unsigned int i = 0; i < count; i++)
				cr_assert_eq(bytes[i], i);
			count = left;
		}
	}
	free(bytes);
}

Test(base_core_vec, first_of_sorted)
{
	static const int numbers[] = { 1, 3, 3, 3, 7, 9 };

	for (size_t count = 0; count <= 6; count++)
		for (int number = 0; number < 11; number++) {
			size_t expected = 0;

			while (expected < count && numbers[expected] < number)
				expected++;
			cr_expect_eq(vec_first(count, i, numbers[i] < number), expected);
		}
}

#if !defined(__SANITIZE_ADDRESS__) /* which ends a program that asks for so much */
Test(base_core_vec, too_large)
{
	volatile size_t count = (size_t)1 << 60; /* not seen by the compiler */
	void *array = malloc(1);

	cr_expect_null(vec_grow(array, count, 16));
	free(array); /* it is still there */
}
#endif
