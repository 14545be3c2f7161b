/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "target/process/maps.h"

static int parse(const char *text, char *line, struct maps_entry *entry)
{
	strcpy(line, text);
	return maps_entry_parse(line, entry);
}

Test(target_process_maps, ordinary)
{
	struct maps_entry entry;
	char line[512];

	cr_assert_eq(parse("7f5a10000000-7f5a10021000 r-xp 0001c000 fd:1a 1311768 /usr/lib/libcuda.so.1\n", line,
			   &entry),
		     0);
	cr_expect_eq(entry.start, 0x7f5a10000000);
	cr_expect_eq(entry.end, 0x7f5a10021000);
	cr_expect_eq(entry.offset, 0x1c000);
	cr_expect(entry.executable);
	cr_expect_eq(entry.device, makedev(0xfd, 0x1a));
	cr_expect_eq(entry.inode, 1311768);
	cr_expect_str_eq(entry.path, "/usr/lib/libcuda.so.1");
	cr_expect_not(entry.deleted);
	cr_assert_eq(parse("00400000-00401000 r--p 00000000 08:01 12 /bin/true\n", line, &entry), 0);
	cr_expect_not(entry.executable);
}

/* Nothing in a path can make a line be read as something else. */
Test(target_process_maps, hostile_paths)
{
	static const char *const paths[] = {
		"/tmp/with spaces/and  more",
		"/tmp/new\\012line",
		"/tmp/7f00-7f01 r-xp 0000 00:00 0 /fake",
		"/tmp/\xff\xfe\x1b[31m",
		"/tmp/back\\slash\\012",
		"/tmp/(deleted)",
		"/memfd:x y",
		"/",
	};
	struct maps_entry entry;
	char text[600], line[600];

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		snprintf(text, sizeof(text), "7f00-8f00 r-xp 00000000 00:2a 77                         %s\n", paths[i]);
		cr_assert_eq(parse(text, line, &entry), 0, "%s", paths[i]);
		cr_expect_str_eq(entry.path, paths[i]);
		cr_expect_not(entry.deleted, "%s", paths[i]);
		cr_expect_eq(entry.inode, 77);
		snprintf(text, sizeof(text), "7f00-8f00 r-xp 00000000 00:2a 77 %s (deleted)\n", paths[i]);
		cr_assert_eq(parse(text, line, &entry), 0, "%s", paths[i]);
		cr_expect_str_eq(entry.path, paths[i]);
		cr_expect(entry.deleted, "%s", paths[i]);
	}
}

Test(target_process_maps, without_a_path)
{
	struct maps_entry entry;
	char line[512];

	cr_assert_eq(parse("7f00-8f00 rwxp 00000000 00:00 0 \n", line, &entry), 0);
	cr_expect_str_eq(entry.path, "");
	cr_assert_eq(parse("7f00-8f00 rwxp 00000000 00:00 0\n", line, &entry), 0);
	cr_expect_str_eq(entry.path, "");
	cr_assert_eq(parse("7ffd5000-7ffd6000 r-xp 00000000 00:00 0                  [vdso]\n", line, &entry), 0);
	cr_expect_str_eq(entry.path, "[vdso]");
	cr_assert_eq(parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]", line, &entry), 0);
	cr_expect_eq(entry.start, 0xffffffffff600000ull);
}

Test(target_process_maps, malformed)
{
	static const char *const lines[] = {
		"",
		"\n",
		" ",
		"7f00",
		"7f00-",
		"7f00-8f00",
		"7f00-8f00 ",
		"7f00-8f00 r-x",
		"7f00-8f00 r-xp",
		"7f00-8f00 r-xp 0",
		"7f00-8f00 r-xp 0 0",
		"7f00-8f00 r-xp 0 0:0",
		"7f00-8f00 r-xp 0 0:0 ",
		"7f00-8f00 r-xp 0 0:0 x",
		"7f00-8f00 r-xp 0 0:0 5x /a",
		"8f00-7f00 r-xp 0 0:0 5 /a",
		"7f00-7f00 r-xp 0 0:0 5 /a",
		"-7f00-8f00 r-xp 0 0:0 5 /a",
		"7f00 -8f00 r-xp 0 0:0 5 /a",
		"7f00-8f00r-xp 0 0:0 5 /a",
		"111112222233333444445-8f00 r-xp 0 0:0 5 /a",
		"7f00-8f00 r-xp 0 0:0 99999999999999999999999 /a",
		"7f00-8f00 r-xp -5 0:0 5 /a",
	};
	struct maps_entry entry;
	char line[512];

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		cr_expect_eq(parse(lines[i], line, &entry), -EINVAL, "'%s'", lines[i]);
}
