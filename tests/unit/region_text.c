/* SPDX-License-Identifier: BSD-2-Clause */
#include <xputrace/region.h>

#include <criterion/criterion.h>
#include <criterion/redirect.h>

static void enable(void)
{
	setenv("VACCEL_PROFILING_ENABLED", "1", 1);
}

TestSuite(region_text, .init = enable);

/* The line of a region with that name that was never used. */
static void expect(const char *name, const char *expected)
{
	struct xpt_region region = XPT_REGION_INIT(name);
	char *text = NULL, line[200];
	long length = xpt_regions_print_all_to_buf(&text, 0, &region, 1);

	snprintf(line, sizeof(line), "[prof] %s: total_time: 0 nsec nr_entries: 0\n", expected);
	cr_assert_str_eq(text, line);
	cr_assert_eq((size_t)length, strlen(line));
	free(text);
}

Test(region_text, names)
{
	expect("plain", "plain");
	expect("", "");
	expect(NULL, "");
	expect("a \"quoted\" 'name'", "a \"quoted\" 'name'");
	expect("two\nlines\r\tand\\more", "two\\nlines\\r\\tand\\\\more");
	expect("\x1b[31m\x7f\x01", "\\x1b[31m\\x7f\\x01");
	expect("n\xc3\xa4me 100%d%s%n", "n\xc3\xa4me 100%d%s%n");
}

Test(region_text, totals)
{
	struct xpt_region region = XPT_REGION_INIT("totals");
	struct xpt_region_totals totals;
	char text[200], line[200], *buffer = text;

	for (int i = 0; i < 12; i++) {
		xpt_region_start(&region);
		xpt_region_stop(&region);
	}
	xpt_region_get(&region, &totals);
	snprintf(line, sizeof(line), "[prof] totals: total_time: %llu nsec nr_entries: 12\n",
		 (unsigned long long)totals.total_time);
	cr_assert_eq((size_t)xpt_regions_print_all_to_buf(&buffer, sizeof(text), &region, 1), strlen(line));
	cr_assert_str_eq(text, line);
	xpt_region_destroy(&region);
}

Test(region_text, room)
{
	struct xpt_region regions[2] = { XPT_REGION_INIT("first"), XPT_REGION_INIT("second") };
	const char *whole = "[prof] first: total_time: 0 nsec nr_entries: 0\n"
			    "[prof] second: total_time: 0 nsec nr_entries: 0\n";
	size_t length = strlen(whole);
	char text[200], *buffer = text;

	for (size_t size = 0; size <= length + 2; size++) {
		size_t written = size <= length ? size : length + 1;

		memset(text, '#', sizeof(text));
		cr_assert_eq((size_t)xpt_regions_print_all_to_buf(&buffer, size, regions, 2), length);
		cr_assert_eq(buffer, text);
		for (size_t i = written; i < sizeof(text); i++)
			cr_assert_eq(text[i], '#', "size %zu, byte %zu", size, i);
		if (size) {
			cr_assert_eq(text[written - 1], '\0');
			cr_assert_eq(strncmp(text, whole, written - 1), 0);
		}
	}
	buffer = NULL;
	cr_assert_eq((size_t)xpt_regions_print_all_to_buf(&buffer, 0, regions, 2), length);
	cr_assert_str_eq(buffer, whole);
	free(buffer);
	buffer = NULL;
	cr_assert_eq(xpt_regions_print_all_to_buf(&buffer, 0, regions, 0), 0);
	cr_assert_str_eq(buffer, "");
	free(buffer);
}

Test(region_text, long_name)
{
	char name[4097], *text = NULL;
	struct xpt_region region;
	long length;

	memset(name, '\n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	xpt_region_init(&region, name);
	length = xpt_regions_print_all_to_buf(&text, 0, &region, 1);
	cr_assert_eq((size_t)length, strlen("[prof] : total_time: 0 nsec nr_entries: 0\n") + 2 * 4096);
	cr_assert_eq(strchr(text, '\n'), text + length - 1);
	cr_assert_eq(strncmp(text, "[prof] \\n\\n", 11), 0);
	free(text);
}

Test(region_text, standard_error)
{
	struct xpt_region regions[2] = { XPT_REGION_INIT("first"), XPT_REGION_INIT("second") };

	cr_redirect_stderr();
	xpt_region_print(&regions[1]);
	xpt_regions_print_all(regions, 2);
	fflush(stderr);
	cr_assert_stderr_eq_str("[prof] second: total_time: 0 nsec nr_entries: 0\n"
				"[prof] first: total_time: 0 nsec nr_entries: 0\n"
				"[prof] second: total_time: 0 nsec nr_entries: 0\n");
}

Test(region_text, not_enabled, .init = NULL)
{
	struct xpt_region region = XPT_REGION_INIT("not enabled");
	char text[10] = "#", *buffer = text;

	unsetenv("VACCEL_PROFILING_ENABLED");
	cr_assert_eq(xpt_regions_print_all_to_buf(&buffer, sizeof(text), &region, 1), 0);
	cr_assert_str_eq(text, "");
}
