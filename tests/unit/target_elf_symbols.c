/* SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>

#include "target_support.h"

TestSuite(target_elf_symbols, .fini = support_cleanup);

struct collected {
	struct support_symbol *symbols;
	size_t count;
};

static int collect(void *context, const struct elf_symbol *symbol)
{
	struct collected *collected = context;
	struct support_symbol *next;

	collected->symbols = realloc(collected->symbols, (collected->count + 1) * sizeof(*next));
	cr_assert_not_null(collected->symbols);
	next = &collected->symbols[collected->count++];
	memset(next, 0, sizeof(*next));
	snprintf(next->name, sizeof(next->name), "%s", symbol->name);
	next->address = symbol->address;
	next->size = symbol->size;
	next->indirect = symbol->indirect;
	return 0;
}

static int compare(const void *left, const void *right)
{
	const struct support_symbol *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	return order ? order : a->address < b->address ? -1 : a->address > b->address;
}

static void expect_same(const char *path, struct support_symbol *expected, size_t expected_count)
{
	struct elf_file *file = support_open(path);
	struct collected found = { 0 };

	cr_assert_eq(elf_file_each_function(file, collect, &found), 0);
	elf_file_close(file);
	cr_assert_eq(found.count, expected_count, "%s: %zu functions, readelf says %zu", path, found.count,
		     expected_count);
	qsort(expected, expected_count, sizeof(*expected), compare);
	qsort(found.symbols, found.count, sizeof(*found.symbols), compare);
	for (size_t i = 0; i < found.count; i++) {
		cr_assert_str_eq(found.symbols[i].name, expected[i].name);
		cr_assert_eq(found.symbols[i].address, expected[i].address, "%s", expected[i].name);
		cr_assert_eq(found.symbols[i].size, expected[i].size, "%s", expected[i].name);
		cr_assert_eq(found.symbols[i].indirect, expected[i].indirect, "%s", expected[i].name);
	}
	free(found.symbols);
}

static const char *path_of(void *function)
{
	Dl_info info;

	cr_assert_neq(dladdr(function, &info), 0);
	return info.dli_fname;
}

/* A copy whose section headers cannot be found. */
static const char *without_sections(const char *path)
{
	const char *copy = support_path("bare.so");
	unsigned char *bytes;
	size_t length;

	bytes = support_read(path, &length);
	((Elf64_Ehdr *)bytes)->e_shoff = 0;
	((Elf64_Ehdr *)bytes)->e_shnum = 0;
	((Elf64_Ehdr *)bytes)->e_shstrndx = 0;
	support_write(copy, bytes, length);
	free(bytes);
	return copy;
}

Test(target_elf_symbols, c_library_as_readelf)
{
	const char *path = path_of((void *)gnu_get_libc_version);
	struct support_symbol *expected;
	size_t count;

	expected = support_symbols(path, true, &count);
	cr_assert_gt(count, 2000);
	expect_same(path, expected, count);
	free(expected);
}

/* Through DT_GNU_HASH, which alone tells the number of symbols there. */
Test(target_elf_symbols, c_library_without_sections)
{
	const char *path = path_of((void *)gnu_get_libc_version);
	struct support_symbol *expected;
	size_t count;

	expected = support_symbols(path, true, &count);
	expect_same(without_sections(path), expected, count);
	free(expected);
}

static const char source[] = "int plain(void) { return 1; }\n"
			     "static int chosen(void) { return 2; }\n"
			     "static void *resolver(void) { return (void *)chosen; }\n"
			     "int indirect(void) __attribute__((ifunc(\"resolver\")));\n"
			     "int old(void) { return 3; }\n"
			     "__asm__(\".symver old, versioned@OLD_1\");\n"
			     "int new(void) { return 4; }\n"
			     "__asm__(\".symver new, versioned@@NEW_2\");\n"
			     "int data = 5; extern int elsewhere(void); int calls(void) { return elsewhere(); }\n";

static const char *versioned_library(const char *options)
{
	static const char script[] = "OLD_1 { }; NEW_2 { global: *; } OLD_1;\n";
	char all[512];

	support_write(support_path("versions"), script, sizeof(script) - 1);
	snprintf(all, sizeof(all), "-O1 -Wl,--version-script=%s %s", support_path("versions"), options);
	return support_library("versioned.c", source, all);
}

Test(target_elf_symbols, versions_and_indirect)
{
	const char *path = versioned_library("-s");
	struct support_symbol *expected;
	size_t count, versions = 0, indirect = 0;

	expected = support_symbols(path, true, &count);
	for (size_t i = 0; i < count; i++) {
		versions += !strcmp(expected[i].name, "versioned");
		indirect += expected[i].indirect;
	}
	cr_assert_eq(versions, 2);
	cr_assert_eq(indirect, 1);
	expect_same(path, expected, count);
	free(expected);
}

Test(target_elf_symbols, sysv_hash_without_sections)
{
	const char *path = versioned_library("-s -Wl,--hash-style=sysv");
	struct support_symbol *expected;
	size_t count;

	expected = support_symbols(path, true, &count);
	expect_same(without_sections(path), expected, count);
	free(expected);
}

/* .dynsym and then .symtab, where names carry their version and static functions appear. */
Test(target_elf_symbols, both_tables)
{
	const char *path = versioned_library("");
	struct support_symbol *expected;
	size_t count;

	expected = support_symbols(path, false, &count); /* readelf -s prints both */
	expect_same(path, expected, count);
	free(expected);
}

static int stop_at_third(void *context, const struct elf_symbol *symbol)
{
	(void)symbol;
	return ++*(int *)context == 3 ? -ECANCELED : 0;
}

Test(target_elf_symbols, visitor_ends_the_walk)
{
	struct elf_file *file = support_open(versioned_library(""));
	int seen = 0;

	cr_expect_eq(elf_file_each_function(file, stop_at_third, &seen), -ECANCELED);
	cr_expect_eq(seen, 3);
	elf_file_close(file);
}

Test(target_elf_symbols, exports)
{
	struct elf_file *file = support_open(versioned_library(""));

	cr_expect(elf_file_exports(file, "plain"));
	cr_expect(elf_file_exports(file, "versioned"));
	cr_expect_not(elf_file_exports(file, "elsewhere"), "undefined");
	cr_expect_not(elf_file_exports(file, "resolver"), "static: only in .symtab");
	cr_expect_not(elf_file_exports(file, "data"), "no function");
	elf_file_close(file);
}

static int find_interpreter(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size;
	if (strstr(info->dlpi_name, "/ld-"))
		snprintf(context, 256, "%s", info->dlpi_name);
	return 0;
}

/* Debuggers and this program stop here to see libraries come. */
Test(target_elf_symbols, dynamic_loader)
{
	char path[256] = "";
	struct elf_file *file;

	dl_iterate_phdr(find_interpreter, path);
	cr_assert_neq(path[0], '\0');
	file = support_open(path);
	cr_expect(elf_file_exports(file, "_dl_debug_state"));
	elf_file_close(file);
}
