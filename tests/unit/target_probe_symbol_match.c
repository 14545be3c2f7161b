/* SPDX-License-Identifier: BSD-2-Clause */
#include "target_support.h"

#include "target/probe/symbol_match.h"

TestSuite(target_probe_symbol_match, .fini = support_cleanup);

static const char source[] = "int one(void) { return 1; } int two(void) { return 2; }\n"
			     "int two_more(void) { return 3; } int other(void) { return 4; }\n"
			     "int same(void) __attribute__((alias(\"one\")));\n"
			     "extern int absent(void); int uses(void) { return absent(); }\n";

static bool has(const struct wanted_matches *matches, enum wanted_kind kind, const struct call_spec *spec,
		const char *name)
{
	for (size_t i = 0; i < matches->count; i++)
		if (matches->list[i].kind == kind && matches->list[i].spec == spec &&
		    !strcmp(matches->list[i].symbol.name, name))
			return true;
	return false;
}

Test(target_probe_symbol_match, names_and_patterns)
{
	char *identity[] = { "other", "nowhere" }, *names[] = { "one", "same", "absent" }, *pattern[] = { "two*" };
	char *brackets[] = { "[ot]*r" };
	struct call_spec calls[] = {
		{ .locate = LOCATE_SYMBOL, .symbols = names, .symbol_count = 3 },
		{ .locate = LOCATE_SYMBOL, .symbols = pattern, .symbol_count = 1 },
		{ .locate = LOCATE_SLOT, .slot = 1 },
		{ .locate = LOCATE_SYMBOL, .symbols = brackets, .symbol_count = 1 },
	};
	struct description runtime = {
		.identify = identity, .identify_count = 2, .table.accessor = "uses", .calls = calls, .call_count = 4
	};
	struct description *runtimes[] = { &runtime };
	struct registry registry = { .runtimes = runtimes, .runtime_count = 1 };
	const char *path = support_library("names.c", source, "-O1");
	struct elf_file *file = support_open(path);
	struct wanted_matches matches;

	cr_assert_eq(wanted_find(NULL, &registry, file, path, &matches), 0);
	cr_expect(has(&matches, WANTED_IDENTITY, NULL, "other"));
	cr_expect(has(&matches, WANTED_ACCESSOR, NULL, "uses"));
	cr_expect(has(&matches, WANTED_CALL, &calls[0], "one"));
	cr_expect(has(&matches, WANTED_CALL, &calls[0], "same"));
	cr_expect(has(&matches, WANTED_CALL, &calls[1], "two"));
	cr_expect(has(&matches, WANTED_CALL, &calls[1], "two_more"));
	cr_expect(has(&matches, WANTED_CALL, &calls[3], "other"));
	cr_expect_eq(matches.count, 7, "and nothing else, nothing twice: %zu", matches.count);
	wanted_matches_free(&matches);
	elf_file_close(file);
}

Test(target_probe_symbol_match, empty_registry)
{
	struct registry registry = { 0 };
	struct wanted_matches matches;
	const char *path = support_library("names.c", source, "-O1");
	struct elf_file *file = support_open(path);

	cr_assert_eq(wanted_find(NULL, &registry, file, path, &matches), 0);
	cr_expect_eq(matches.count, 0);
	wanted_matches_free(&matches);
	elf_file_close(file);
}

/* Of calls that are for some files only, and of names as C++ has them. */
Test(target_probe_symbol_match, files_and_readable_names)
{
	char *member[] = { "app::Decoder::*" }, *symbol[] = { "_ZN3app7Decoder3runEi" }, *all[] = { "*" };
	struct call_spec calls[] = {
		{ .locate = LOCATE_SYMBOL, .symbols = member, .symbol_count = 1, .file = "names.*" },
		{ .locate = LOCATE_SYMBOL, .symbols = symbol, .symbol_count = 1, .file = "*/names.so" },
		{ .locate = LOCATE_SYMBOL, .symbols = all, .symbol_count = 1, .file = "other.so" },
		{ .locate = LOCATE_SYMBOL, .symbols = all, .symbol_count = 1, .file = "/other/names.so" },
	};
	struct description runtime = { .calls = calls, .call_count = 4 };
	struct description *runtimes[] = { &runtime };
	struct registry registry = { .runtimes = runtimes, .runtime_count = 1 };
	const char *path = support_library(
		"names.c",
		"int run(void) __asm__(\"_ZN3app7Decoder3runEi\");\n"
		"int stop(void) __asm__(\"_ZNK3app7Decoder4stopEv\");\n"
		"int other(void) __asm__(\"_ZN3app8Decoders4stopEv\");\n"
		"int run(void) { return 1; } int stop(void) { return 2; } int other(void) { return 3; }\n",
		"-O1");
	struct elf_file *file = support_open(path);
	struct wanted_matches matches;

	cr_assert_eq(wanted_find(NULL, &registry, file, "/opt/names.so", &matches), 0);
	cr_expect(has(&matches, WANTED_CALL, &calls[0], "_ZN3app7Decoder3runEi"));
	cr_expect(has(&matches, WANTED_CALL, &calls[0], "_ZNK3app7Decoder4stopEv"));
	cr_expect(has(&matches, WANTED_CALL, &calls[1], "_ZN3app7Decoder3runEi"));
	cr_expect_eq(matches.count, 3, "%zu", matches.count);
	wanted_matches_free(&matches);
	elf_file_close(file);
}

/* A pattern for a file that fits very many does not crowd out what is described. */
Test(target_probe_symbol_match, a_pattern_for_a_file_that_fits_too_many)
{
	char *all[] = { "f*" }, *described[] = { "other" };
	struct call_spec calls[] = {
		{ .locate = LOCATE_SYMBOL, .symbols = all, .symbol_count = 1, .file = "*" },
		{ .locate = LOCATE_SYMBOL, .symbols = described, .symbol_count = 1 },
	};
	struct description runtime = { .calls = calls, .call_count = 2 };
	struct description *runtimes[] = { &runtime };
	struct registry registry = { .runtimes = runtimes, .runtime_count = 1 };
	size_t size = 6000 * 48, used = 0;
	char *text = malloc(size);
	struct wanted_matches matches;
	struct elf_file *file;
	const char *path;

	cr_assert_not_null(text);
	for (unsigned int i = 0; i < 5000; i++)
		used += snprintf(text + used, size - used, "int f%u(void) { return %u; }\n", i, i);
	snprintf(text + used, size - used, "int other(void) { return 0; }\n");
	path = support_library("many.c", text, "-O0");
	free(text);
	file = support_open(path);
	cr_assert_eq(wanted_find(NULL, &registry, file, path, &matches), 0);
	cr_expect_eq(matches.count, 4 * WANTED_FILE_MAX + 1, "%zu", matches.count);
	cr_expect(has(&matches, WANTED_CALL, &calls[1], "other"));
	wanted_matches_free(&matches);
	elf_file_close(file);
}
