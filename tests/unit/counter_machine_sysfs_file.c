/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/machine/sysfs_file.h"

#include <errno.h>

#include "tests/unit/counter_fixture.h"

TestSuite(counter_machine_sysfs_file, .init = fixture_open, .fini = fixture_close);

/* A file of so many letters. */
static void make(const char *path, size_t length)
{
	char *text = malloc(length + 1);

	cr_assert_not_null(text);
	memset(text, 'x', length);
	text[length] = '\0';
	fixture_file(path, text);
	free(text);
}

Test(counter_machine_sysfs_file, values)
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

Test(counter_machine_sysfs_file, sizes)
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

Test(counter_machine_sysfs_file, no_files)
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
