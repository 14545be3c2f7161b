/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/latency/report_document.h"

#include <errno.h>
#include <fcntl.h>

#include "report_profile.h"

TestSuite(report_latency_report_growing_names, .init = make_folder, .fini = remove_folder);

static void expect_numbered(const char *path, __u64 number, const char *expected)
{
	char *name = report_name_numbered(path, number);

	cr_assert_str_eq(name, expected);
	free(name);
}

Test(report_latency_report_growing_names, the_number_stands_before_the_extension)
{
	expect_numbered("latency.csv", 1, "latency-000001.csv");
	expect_numbered("latency.csv", 123456, "latency-123456.csv");
	expect_numbered("latency.csv", 1234567, "latency-1234567.csv");
	expect_numbered("latency.csv", ~0ull, "latency-18446744073709551615.csv");
	expect_numbered("latency", 99, "latency-000099");
	expect_numbered("a.b/latency", 10, "a.b/latency-000010");
	expect_numbered("a.b/c.d.json", 100000, "a.b/c.d-100000.json");
	expect_numbered(".csv", 0, ".csv-000000");
	expect_numbered("x/.hidden", 5, "x/.hidden-000005");
	expect_numbered("dot.", 5, "dot-000005.");
}

Test(report_latency_report_growing_names, shifting_fills_the_first_gap)
{
	write_content(in_folder("r"), "new");
	write_content(in_folder("r.1"), "one");
	write_content(in_folder("r.2"), "two");
	write_content(in_folder("r.4"), "four");
	cr_assert_eq(report_names_shift(AT_FDCWD, in_folder("r")), 0);
	expect_names("r.1 r.2 r.3 r.4");
	expect_content(in_folder("r.1"), "new");
	expect_content(in_folder("r.2"), "one");
	expect_content(in_folder("r.3"), "two");
	expect_content(in_folder("r.4"), "four");
	/* Nothing to move is no error: somebody may have taken it away. */
	cr_assert_eq(report_names_shift(AT_FDCWD, in_folder("r")), 0);
	expect_content(in_folder("r.5"), "four");
	expect_names("r.2 r.3 r.4 r.5");
}
