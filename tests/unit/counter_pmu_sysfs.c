/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/pmu.h"

#include <errno.h>
#include <sched.h>

#include "tests/unit/counter_fixture.h"
#include "tests/unit/counter_trees.h"

TestSuite(counter_pmu_sysfs, .init = fixture_open, .fini = fixture_close);

/* A file of this number of letters. */
static void make(const char *path, size_t length)
{
	char *text = malloc(length + 1);

	cr_assert_not_null(text);
	memset(text, 'x', length);
	text[length] = '\0';
	fixture_file(path, text);
	free(text);
}

Test(counter_pmu_sysfs, values)
{
	char text[SYSFS_FILE_MAX];

	fixture_file("sys/a", " 12 13\n\t \n");
	cr_expect_eq(sysfs_read(text, "%s/%s", in_fixture("sys"), "a"), 6);
	cr_expect_str_eq(text, " 12 13");
	fixture_file("sys/a", "\n");
	cr_expect_eq(sysfs_read(text, "%s", in_fixture("sys/a")), 0);
	cr_expect_str_eq(text, "");
	fixture_file("sys/a", "");
	cr_expect_eq(sysfs_read(text, "%s", in_fixture("sys/a")), 0);
	cr_expect_str_eq(text, "");
}

Test(counter_pmu_sysfs, sizes)
{
	char text[SYSFS_FILE_MAX];

	make("sys/a", SYSFS_FILE_MAX - 1);
	cr_expect_eq(sysfs_read(text, "%s", in_fixture("sys/a")), SYSFS_FILE_MAX - 1);
	cr_expect_eq(strlen(text), (size_t)SYSFS_FILE_MAX - 1);
	make("sys/a", SYSFS_FILE_MAX);
	cr_expect_eq(sysfs_read(text, "%s", in_fixture("sys/a")), -EFBIG);
	cr_expect_str_eq(text, "");
	make("sys/a", SYSFS_FILE_MAX * 2);
	cr_expect_eq(sysfs_read(text, "%s", in_fixture("sys/a")), -EFBIG);
	cr_expect_str_eq(text, "");
}

Test(counter_pmu_sysfs, no_files)
{
	char text[SYSFS_FILE_MAX] = "before", name[PATH_MAX + 1];

	cr_expect_eq(sysfs_read(text, "%s", in_fixture("none")), -ENOENT);
	cr_expect_str_eq(text, "");
	fixture_file("sys/a/b", "");
	cr_expect_eq(sysfs_read(text, "%s", in_fixture("sys/a")), -EISDIR);
	cr_expect_str_eq(text, "");
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	cr_expect_eq(sysfs_read(text, "/%s", name), -ENAMETOOLONG);
	/* A pipe without a writer is no reason to wait. */
	cr_assert_eq(mkfifo(in_fixture("sys/pipe"), 0600), 0);
	cr_expect_leq(sysfs_read(text, "%s", in_fixture("sys/pipe")), 0);
}

Test(counter_pmu_sysfs, numbers)
{
	static const struct {
		const char *text;
		int error;
		unsigned long long number;
	} files[] = {
		{ "0\n", 0, 0 },
		{ "18446744073709551615\n", 0, ~0ull },
		{ "18446744073709551616\n", -EINVAL, 0 },
		{ "007", 0, 7 },
		{ "-1\n", -EINVAL, 0 },
		{ "12 kHz\n", -EINVAL, 0 },
		{ "0x12\n", -EINVAL, 0 },
		{ " 12\n", -EINVAL, 0 },
		{ "\n", -EINVAL, 0 },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		__u64 number = 0;

		fixture_file("number", files[i].text);
		cr_expect_eq(sysfs_read_number(&number, "%s", in_fixture("number")), files[i].error, "%s",
			     files[i].text);
		if (!files[i].error)
			cr_expect_eq(number, files[i].number, "%s", files[i].text);
	}
	cr_expect_eq(sysfs_read_number(&(__u64){ 0 }, "%s", in_fixture("nothing")), -ENOENT);
}

/* ---- lists of CPUs ---- */

TestSuite(counter_sysfs_cpus, .init = fixture_open, .fini = fixture_close);

static void expect_list(const char *text, const char *wanted)
{
	struct cpus cpus;

	cr_assert_eq(cpus_parse(text, &cpus), 0, "%s", text);
	cr_expect_str_eq(cpus_text(&cpus), wanted, "%s", text);
	cpus_free(&cpus);
	cr_expect_eq(cpus.count, 0);
	cr_expect_null(cpus.items);
}

Test(counter_sysfs_cpus, lists)
{
	expect_list("", "");
	expect_list("0", "0");
	expect_list("0-3", "0,1,2,3");
	expect_list("0,16", "0,16");
	expect_list("0-2,8,10-11", "0,1,2,8,10,11");
	expect_list("5-5", "5");
	expect_list("8191", "8191");
}

Test(counter_sysfs_cpus, whole_range)
{
	struct cpus cpus;

	cr_assert_eq(cpus_parse("0-8191", &cpus), 0);
	cr_assert_eq(cpus.count, CPUS_MAX);
	for (int i = 0; i < CPUS_MAX; i++)
		cr_assert_eq(cpus.items[i], i);
	cpus_free(&cpus);
}

Test(counter_sysfs_cpus, no_lists)
{
	static const char *const texts[] = {
		"0-",	"3-1",	 "-1",	     "-",	   "0,0",
		"1,0",	"0-2,2", "0,",	     ",0",	   "0,,1",
		"0--1", "0-1-2", "a",	     "0x1",	   "1a",
		" 0",	"0 1",	 "0\n",	     "8192",	   "0-8192",
		"+1",	"0,-1",	 "99999999", "0-99999999", "99999999999999999999999999",
		"1.5",	"0-3/2", "0-3:1/2",  "all",	   "0-18446744073709551615",
		"0;1",	"\xff",
	};
	struct cpus cpus;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		cr_expect_eq(cpus_parse(texts[i], &cpus), -EINVAL, "'%s'", texts[i]);
		cr_expect_eq(cpus.count, 0, "'%s'", texts[i]);
		cr_expect_null(cpus.items, "'%s'", texts[i]);
	}
}

Test(counter_sysfs_cpus, having_and_copying)
{
	struct cpus cpus, copy;

	cr_assert_eq(cpus_parse("1-2,7", &cpus), 0);
	cr_expect(cpus_have(&cpus, 1) && cpus_have(&cpus, 2) && cpus_have(&cpus, 7));
	cr_expect(!cpus_have(&cpus, 0) && !cpus_have(&cpus, 3) && !cpus_have(&cpus, -1));
	cr_assert_eq(cpus_copy(&cpus, &copy), 0);
	cpus_free(&cpus);
	cr_expect_str_eq(cpus_text(&copy), "1,2,7");
	cpus_free(&copy);
	cr_assert_eq(cpus_copy(&cpus, &copy), 0);
	cr_expect_eq(copy.count, 0);
	cpus_free(&copy);
}

Test(counter_sysfs_cpus, online)
{
	struct cpus cpus;

	cr_expect_eq(cpus_online(in_fixture("sys"), &cpus), -EIO);
	tree_cpus("\n");
	cr_expect_eq(cpus_online(in_fixture("sys"), &cpus), -EIO);
	tree_cpus("0-1,x\n");
	cr_expect_eq(cpus_online(in_fixture("sys"), &cpus), -EIO);
	tree_cpus("0-1,4\n");
	cr_assert_eq(cpus_online(in_fixture("sys"), &cpus), 0);
	cr_expect_str_eq(cpus_text(&cpus), "0,1,4");
	cpus_free(&cpus);
}

/* On the machine that this runs on: as many as the C library finds, and the one that this runs on is among them. */
Test(counter_sysfs_cpus, of_this_machine)
{
	struct cpus cpus;

	cr_assert_eq(cpus_online("/sys", &cpus), 0);
	cr_expect_eq(cpus.count, (size_t)sysconf(_SC_NPROCESSORS_ONLN));
	cr_expect(cpus_have(&cpus, sched_getcpu()));
	cpus_free(&cpus);
	cr_assert_eq(cpus_possible("/sys", &cpus), 0);
	cr_expect_geq(cpus.count, (size_t)sysconf(_SC_NPROCESSORS_ONLN));
	cpus_free(&cpus);
}
