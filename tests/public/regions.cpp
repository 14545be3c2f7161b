/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions as objects of C++, with the functions of the library. */
#define XPT_REGION_EXTERN
#include <cstdlib>

#include <xputrace/region.h>

#include "check.h"

static struct xpt_region outer = XPT_REGION_INIT("outer"), inner = XPT_REGION_INIT("inner");

static void thrower(int depth)
{
	XPT_REGION_SCOPE(&inner);
	if (depth == 0)
		throw depth;
	thrower(depth - 1);
}

static void test_exceptions()
{
	struct xpt_region_totals totals;

	for (int i = 0; i < 10; i++) {
		xpt_region_scope scope(&outer);
		try {
			thrower(3);
		} catch (int) {
		}
	}
	xpt_region_stop(&inner);
	xpt_region_get(&outer, &totals);
	CHECK_IS(totals.entries, 10);
	CHECK_IS(totals.unmatched, 0);
	xpt_region_get(&inner, &totals);
	CHECK_IS(totals.entries, 40);
	CHECK_IS(totals.unmatched, 1);
	xpt_region_destroy(&outer);
	xpt_region_destroy(&inner);
}

static const struct test tests[] = {
	{ "exceptions", test_exceptions, 0 },
};

int main()
{
	setenv("XPUTRACE_REGIONS", "enabled", 1);
	return run_tests("regions", tests, sizeof(tests) / sizeof(tests[0])) != 0;
}
