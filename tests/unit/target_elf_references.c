/* SPDX-License-Identifier: BSD-2-Clause */
#include "target_support.h"

TestSuite(target_elf_references, .fini = support_cleanup);

static const char source[] =
	"extern void use(const char *text);\n"
	"static void *copy(char *to) { return __builtin_memcpy(to, \"loads_of_the_model_and_more\", 27); }\n"
	"__attribute__((noinline)) void run(void) { use(\"Running with tag: \"); use(\"twice here: \"); }\n"
	"__attribute__((noinline)) void load(char *to) { copy(to); use(to); }\n"
	"__attribute__((noinline)) void both(int i) { use(i ? \"in two functions\" : \"twice here: \"); }\n"
	"__attribute__((noinline)) void other(void) { use(\"in two functions\"); use(\"in two functions\"); }\n"
	"const char *const data = \"only in data\";\n";

struct found {
	__u64 functions[64];
	size_t count;
};

/* Once each. context: an array, for each string. */
static int add(void *context, size_t string, __u64 function)
{
	struct found *found = (struct found *)context + string;

	for (size_t i = 0; i < found->count; i++)
		if (found->functions[i] == function)
			return 0;
	cr_assert_lt(found->count, 64);
	found->functions[found->count++] = function;
	return 0;
}

struct wanted {
	const char *name;
	__u64 address;
};

static int find_symbol(void *context, const struct elf_symbol *symbol)
{
	struct wanted *wanted = context;

	if (!strcmp(symbol->name, wanted->name))
		wanted->address = symbol->address;
	return 0;
}

/* functions: names with blanks between them; "" for none. */
static void expect_in(struct elf_file *whole, struct elf_file *stripped, const char *string, const char *functions)
{
	char names[100], *rest = names;
	struct found found = { 0 };
	size_t expected = 0;

	cr_assert_eq(elf_file_each_reference(stripped, &string, 1, add, &found), 0);
	snprintf(names, sizeof(names), "%s", functions);
	for (char *name; (name = strsep(&rest, " ")) && *name; expected++) {
		struct wanted wanted = { name, 0 };
		bool is = false;

		cr_assert_eq(elf_file_each_function(whole, find_symbol, &wanted), 0);
		cr_assert_neq(wanted.address, 0, "%s", name);
		for (size_t i = 0; i < found.count; i++)
			is |= found.functions[i] == wanted.address;
		cr_expect(is, "%s does not refer to '%s'", name, string);
	}
	cr_expect_eq(found.count, expected, "'%s': %zu functions", string, found.count);
}

/* The same as one by one. */
static void expect_all_at_once(struct elf_file *stripped)
{
	static const char *const strings[] = { "Running with tag: ", "loads_of_the_model_and_more",
					       "twice here: ",	     "nowhere at all",
					       "twice here: ",	     "in two functions" };
	struct found all[sizeof(strings) / sizeof(strings[0])] = {};

	cr_assert_eq(elf_file_each_reference(stripped, strings, sizeof(strings) / sizeof(strings[0]), add, all), 0);
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		struct found one = {};

		cr_assert_eq(elf_file_each_reference(stripped, &strings[i], 1, add, &one), 0);
		cr_expect_eq(all[i].count, one.count, "'%s'", strings[i]);
		cr_expect_arr_eq(all[i].functions, one.functions, one.count * sizeof(one.functions[0]));
	}
	cr_expect_eq(elf_file_each_reference(stripped, strings, 0, add, all), 0);
}

static void check(const char *compiler)
{
	const char *code = support_path("code.c"), *whole_path = support_path("whole.so"),
		   *path = support_path("stripped.so");
	struct elf_file *whole, *stripped;

	support_write(code, source, sizeof(source) - 1);
	support_run("%s -w -O2 -shared -fPIC -nostdlib -o %s %s", compiler, whole_path, code);
	/* binutils' knows this machine's code only */
	support_run("llvm-strip-14 -o %s %s 2>/dev/null || llvm-strip -o %s %s || strip -o %s %s", path, whole_path,
		    path, whole_path, path, whole_path);
	whole = support_open(whole_path);
	stripped = support_open(path);
	expect_in(whole, stripped, "Running with tag: ", "run");
	expect_in(whole, stripped, "loads_of_the_model_and_more", "load");
	expect_in(whole, stripped, "twice here: ", "run both");
	expect_in(whole, stripped, "in two functions", "both other");
	expect_in(whole, stripped, "only in data", "");
	expect_in(whole, stripped, "nowhere at all", "");
	expect_in(whole, stripped, "Running with", "");
	expect_all_at_once(stripped);
	elf_file_close(whole);
	elf_file_close(stripped);
}

Test(target_elf_references, gcc)
{
	check("gcc");
}

Test(target_elf_references, clang)
{
	support_needs_clang();
	check("clang");
}

Test(target_elf_references, arm64)
{
	support_needs_clang();
	check("clang --target=aarch64-linux-gnu -fuse-ld=lld");
}

/* A register that holds a page is soon used for something else: what is added to that leads nowhere. */
static const char reused[] = ".text\n"
			     "reused: .cfi_startproc\n"
			     "\tadrp x5, page\n"
			     "\tadd x5, x5, :lo12:far\n"
			     "\tldr q31, [x5, #32]\n" /* as far behind the page lies the other one */
			     "\tret\n"
			     "\t.cfi_endproc\n"
			     "loaded: .cfi_startproc\n"
			     "\tadrp x0, page\n"
			     "\tldp x1, x0, [x0]\n"
			     "\tadd x0, x0, #64\n"
			     "\tret\n"
			     "\t.cfi_endproc\n"
			     "called: .cfi_startproc\n"
			     "\tadrp x2, page\n"
			     "\tadrp x19, page\n"
			     "\tbl reused\n"
			     "\tadd x2, x2, :lo12:near\n"
			     "\tadd x19, x19, :lo12:far\n"
			     "\tret\n"
			     "\t.cfi_endproc\n"
			     "shared: .cfi_startproc\n"
			     "\tadrp x0, page\n"
			     "\tcbz x1, 1f\n"
			     "\tstr x0, [x2]\n"
			     "\tccmp x1, #0, #0, eq\n"
			     "\tadd x0, x0, :lo12:other\n"
			     "\tret\n"
			     "1:\tadd x0, x0, :lo12:far\n" /* reached from before the page was given up */
			     "\tret\n"
			     "\t.cfi_endproc\n"
			     "elsewhere: .cfi_startproc\n"
			     "\tcbz x1, 1f\n"
			     "\tadrp x0, page\n"
			     "\tadd x0, x0, :lo12:other\n"
			     "\tret\n"
			     "1:\tadd x0, x0, :lo12:near\n" /* reached from before the adrp alone */
			     "\tret\n"
			     "\t.cfi_endproc\n"
			     "loop: .cfi_startproc\n"
			     "\tadrp x20, page\n"
			     "\tb 2f\n"
			     "1:\tadd x1, x20, :lo12:other\n"
			     "2:\tbl reused\n"
			     "\ttbz x0, #3, 1b\n"
			     "\tret\n"
			     "\t.cfi_endproc\n"
			     "cases: .cfi_startproc\n"
			     "\tadrp x20, page\n"
			     "\tbr x3\n"
			     "\tmov x20, x4\n"
			     "\tret\n"
			     "\tadd x1, x20, :lo12:other\n" /* as a table of the switch may have it */
			     "\tret\n"
			     "\t.cfi_endproc\n"
			     ".section .rodata\n"
			     "\t.balign 4096\n"
			     "page: .space 32\n"
			     "near: .asciz \"a string behind the page\"\n"
			     "\t.balign 64\n"
			     "other: .asciz \"another one\"\n"
			     "\t.space 1024\n"
			     "far: .asciz \"the string that is meant\"\n";

Test(target_elf_references, registers_of_arm64)
{
	const char *code = support_path("code.s"), *path = support_path("reused.so");
	static const struct {
		const char *string, *functions;
	} expected[] = { { "a string behind the page", "" },
			 { "another one", "shared elsewhere loop cases" },
			 { "the string that is meant", "reused called shared" } };
	struct elf_file *file;

	support_needs_clang();
	support_write(code, reused, sizeof(reused) - 1);
	support_run("clang --target=aarch64-linux-gnu -fuse-ld=lld -shared -nostdlib -o %s %s", path, code);
	file = support_open(path);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		char names[100], *rest = names;
		struct found found = { 0 };
		size_t count = 0;

		cr_assert_eq(elf_file_each_reference(file, &expected[i].string, 1, add, &found), 0);
		snprintf(names, sizeof(names), "%s", expected[i].functions);
		for (char *name; (name = strsep(&rest, " ")) && *name; count++) {
			bool is = false;

			for (size_t j = 0; j < found.count; j++)
				is |= found.functions[j] == support_symbol(path, name);
			cr_expect(is, "%s does not refer to '%s'", name, expected[i].string);
		}
		cr_expect_eq(found.count, count, "'%s': %zu functions", expected[i].string, found.count);
	}
	elf_file_close(file);
}
