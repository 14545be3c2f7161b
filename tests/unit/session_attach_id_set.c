/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>

#include "session/attach/id_set.h"

#define MANY 5000 /* the table grows a few times */

static struct id_set seen;

static void teardown(void)
{
	id_set_free(&seen);
}

TestSuite(session_attach_id_set, .fini = teardown);

Test(session_attach_id_set, once)
{
	cr_expect(id_set_add(&seen, 10, 5, 0x1000, 0));
	cr_expect_not(id_set_add(&seen, 10, 5, 0x1000, 0));
	cr_expect(id_set_add(&seen, 10, 5, 0x1000, 7), "of another class");
	cr_expect(id_set_add(&seen, 10, 6, 0x1000, 0), "of another process");
	cr_expect_eq(seen.count, 3);
}

Test(session_attach_id_set, most)
{
	for (__u64 i = 0; i < 4; i++)
		cr_expect_eq(id_set_add(&seen, 3, 5, i, 0), i < 3);
	cr_expect_eq(seen.count, 3);
}

/* What one process had may be seen anew; nothing else is. */
Test(session_attach_id_set, drop)
{
	for (__u64 i = 0; i < MANY; i++)
		for (pid_t tgid = 5; tgid <= 6; tgid++)
			cr_assert(id_set_add(&seen, 2 * MANY, tgid, 64 * i, i % 3), "%llu of %d", i, tgid);
	id_set_drop(&seen, 5);
	id_set_drop(&seen, 99);
	cr_expect_eq(seen.count, MANY);
	for (__u64 i = 0; i < MANY; i++) {
		cr_expect_not(id_set_add(&seen, 2 * MANY, 6, 64 * i, i % 3), "%llu", i);
		cr_expect(id_set_add(&seen, 2 * MANY, 5, 64 * i, i % 3), "%llu", i);
	}
	id_set_drop(&seen, 5);
	id_set_drop(&seen, 6);
	cr_expect_eq(seen.count, 0);
}
