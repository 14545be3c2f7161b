/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <gnu/lib-names.h>

#include "target_support.h"

TestSuite(target_elf_versions, .fini = support_cleanup);

struct seen {
	char names[8192]; /* a line each */
	unsigned int count, stop;
};

static int note(void *context, const char *version)
{
	struct seen *seen = context;
	size_t used = strlen(seen->names);

	snprintf(seen->names + used, sizeof(seen->names) - used, "%s\n", version);
	return ++seen->count == seen->stop ? 17 : 0;
}

static struct seen versions(const char *path)
{
	struct elf_file *file = support_open(path);
	struct seen seen = { 0 };

	cr_expect_eq(elf_file_each_version(file, note, &seen), 0);
	elf_file_close(file);
	return seen;
}

/* Versions V_1 and V_2 that follows it, as a linker writes them. */
static const char *library(void)
{
	static const char script[] = "V_1 { one; };\nV_2.0.rc { two; } V_1;\n";
	const char *path = support_path("script");
	char options[300];

	support_write(path, script, sizeof(script) - 1);
	snprintf(options, sizeof(options), "-Wl,-soname,own_name -Wl,--version-script=%s", path);
	return support_library("library.c", "int one(void) { return 1; } int two(void) { return 2; }", options);
}

Test(target_elf_versions, names)
{
	const char *path = library();
	struct seen seen = versions(path);

	cr_expect_str_eq(seen.names, "V_1\nV_2.0.rc\n");
	support_run("strip -s %s", path);
	seen = versions(path);
	cr_expect_str_eq(seen.names, "V_1\nV_2.0.rc\n");
	seen = versions(support_library("plain.c", "int f(void) { return 1; }", ""));
	cr_expect_eq(seen.count, 0);
}

Test(target_elf_versions, visit_ends_the_walk)
{
	struct elf_file *file = support_open(library());
	struct seen seen = { .stop = 1 };

	cr_expect_eq(elf_file_each_version(file, note, &seen), 17);
	cr_expect_str_eq(seen.names, "V_1\n");
	elf_file_close(file);
}

/* The C library has some dozens, which follow each other. */
Test(target_elf_versions, as_readelf)
{
	char command[800], line[256], expected[8192] = "";
	struct seen seen;
	char *path;
	FILE *pipe;

	pipe = popen("sed -n 's|.* \\(/.*/" LIBC_SO "\\)$|\\1|p' /proc/self/maps | head -n 1 | tr -d '\\n'", "r");
	cr_assert_not_null(pipe);
	path = fgets(line, sizeof(line), pipe);
	pclose(pipe);
	cr_assert_not_null(path);
	seen = versions(path);
	snprintf(command, sizeof(command),
		 "readelf -VW %s 2>/dev/null | sed -n '/version_d/,/version_r/s/.*Flags: [^B].*Cnt.*Name: //p'", path);
	pipe = popen(command, "r");
	cr_assert_not_null(pipe);
	while (fgets(line, sizeof(line), pipe))
		strncat(expected, line, sizeof(expected) - strlen(expected) - 1);
	pclose(pipe);
	cr_expect_gt(seen.count, 20);
	cr_expect_str_eq(seen.names, expected);
}

/* The first definition's bytes in a copy of the library, to be damaged. */
static Elf64_Verdef *first_version(const char *path, unsigned char **bytes, size_t *length)
{
	unsigned long offset;
	char command[400];
	FILE *pipe;

	snprintf(command, sizeof(command), "readelf -SW %s | grep version_d | sed 's/.*VERDEF *//'", path);
	pipe = popen(command, "r");
	cr_assert_not_null(pipe);
	cr_assert_eq(fscanf(pipe, "%*x %lx", &offset), 1);
	pclose(pipe);
	*bytes = support_read(path, length);
	return (Elf64_Verdef *)(*bytes + offset);
}

static Elf64_Verdaux *name_of(Elf64_Verdef *version)
{
	return (Elf64_Verdaux *)((char *)version + version->vd_aux);
}

static Elf64_Verdef *next(Elf64_Verdef *version)
{
	return (Elf64_Verdef *)((char *)version + version->vd_next);
}

#define DAMAGED(statement, expected)                                                                          \
	do {                                                                                                  \
		unsigned char *bytes;                                                                         \
		size_t length;                                                                                \
		Elf64_Verdef *own = first_version(path, &bytes, &length), *one = next(own), *two = next(one); \
		struct seen seen;                                                                             \
                                                                                                              \
		(void)two;                                                                                    \
		statement;                                                                                    \
		support_write(damaged, bytes, length);                                                        \
		free(bytes);                                                                                  \
		seen = versions(damaged);                                                                     \
		cr_expect_str_eq(seen.names, expected, "%s: %s", #statement, seen.names);                     \
	} while (0)

Test(target_elf_versions, damaged)
{
	const char *path = library(), *damaged = support_path("damaged");

	DAMAGED((void)0, "V_1\nV_2.0.rc\n");
	DAMAGED(own->vd_flags = 0, "own_name\nV_1\nV_2.0.rc\n");
	DAMAGED(one->vd_version = 2, "");
	DAMAGED(two->vd_version = 0, "V_1\n");
	DAMAGED(one->vd_cnt = 0, "V_2.0.rc\n");
	DAMAGED(one->vd_aux = 0x7fffffff, "V_2.0.rc\n");
	DAMAGED(name_of(one)->vda_name = 0x7fffffff, "V_2.0.rc\n");
	DAMAGED(name_of(two)->vda_name = UINT32_MAX, "V_1\n");
	DAMAGED(one->vd_next = 0, "V_1\n");
	DAMAGED(own->vd_next = 0x7fffffff, "");
	DAMAGED(one->vd_next = UINT32_MAX, "V_1\n");
}

/* Names end within the table of names, and are not longer than a name may be. */
Test(target_elf_versions, long_names)
{
	char script[700], options[300], longest[ELF_VERSION_LENGTH + 2];
	const char *path = support_path("script");
	struct seen seen;

	for (int longer = 0; longer < 2; longer++) {
		memset(longest, 'v', sizeof(longest));
		longest[ELF_VERSION_LENGTH + longer] = '\0';
		snprintf(script, sizeof(script), "%s { one; };\nW { two; };\n", longest);
		support_write(path, script, strlen(script));
		snprintf(options, sizeof(options), "-Wl,--version-script=%s", path);
		seen = versions(support_library("library.c", "int one(void) { return 1; } int two(void) { return 2; }",
						options));
		cr_expect_eq(seen.count, 2 - longer);
		cr_expect_eq(strncmp(seen.names, longer ? "W\n" : longest, strlen(longer ? "W\n" : longest)), 0);
	}
}
