/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions that are compiled in, in strict C, in a program that uses the library for other things. */
#include <string.h>

#include <xputrace/region.h>
#include <xputrace/stream.h>

#include "check.h"

int setenv(const char *name, const char *value, int replace); /* strict C hides it */

static struct xpt_region outer = XPT_REGION_INIT("outer");

static void marked(struct xpt_region *region, int depth)
{
	XPT_REGION_SCOPE(region);
	if (depth > 1)
		marked(region, depth - 1);
}

static void test_marked(void)
{
	struct xpt_region_totals totals;
	char text[100], *buffer = text, reason[100];
	size_t position;

	CHECK_IS(xpt_stream_check_match("a", &position, reason, sizeof(reason)), 0);
	marked(&outer, 5);
	xpt_region_stop(&outer);
	xpt_region_get(&outer, &totals);
	CHECK_IS(totals.entries, 5);
	CHECK_IS(totals.unmatched, 1);
	CHECK(totals.total_time > 0 && totals.total_time < 1000000000, "%lu ns", (unsigned long)totals.total_time);
	CHECK(xpt_regions_print_all_to_buf(&buffer, sizeof(text), &outer, 1) > 0, "no text");
	CHECK(!strncmp(text, "[prof] outer: total_time: ", 26), "%s", text);
	xpt_region_destroy(&outer);
}

static const struct test tests[] = {
	{ "scope", test_marked, 0 },
};

int main(void)
{
	setenv("XPUTRACE_REGIONS", "enabled", 1);
	return run_tests("marked", tests, sizeof(tests) / sizeof(tests[0])) != 0;
}
