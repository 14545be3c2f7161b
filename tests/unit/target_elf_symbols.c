/* SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>

#include "describe/runtime/registry.h"
#include "target/probe/symbol_match.h"
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

/* A note as the assembler lays it down; place and semaphore are symbols, or 0. */
#define NOTE(place, semaphore, provider, name, arguments)                                                           \
	"__asm__(\".pushsection .note.stapsdt,\\\"\\\",@note\\n.balign 4\\n.4byte 2f-1f,4f-3f,3\\n\"\n"             \
	"\"1: .asciz \\\"stapsdt\\\"\\n2: .balign 4\\n3: .8byte " place ", 0, " semaphore "\\n.asciz \\\"" provider \
	"\\\"\\n.asciz \\\"" name "\\\"\\n.asciz \\\"" arguments "\\\"\\n4: .balign 4\\n.popsection\");\n"

#ifdef __x86_64__
#define CALL_ARGUMENTS "8@%rdi 8@%rsi"
#else
#define CALL_ARGUMENTS "8@x0 8@x1"
#endif

static const char probes_source[] =
	"__asm__(\".text\\n.type place,@function\\nplace: nop\\nret\\n.type other,@function\\nother: ret\\n\");\n"
	"__asm__(\".pushsection .probes,\\\"aw\\\"\\nsemaphore: .2byte 0\\n.popsection\\n\");\n" NOTE("place",
												      "semaphore",
												      "toy", "begin",
												      CALL_ARGUMENTS)
		NOTE("other", "0", "toy", "end", "") NOTE("place", "place", "toy", "end", CALL_ARGUMENTS)
			NOTE("place", "0", "toy", "begin", "4@$5 8@%rax")
				NOTE("place", "0", "toys", "begin", CALL_ARGUMENTS);

struct seen {
	char lines[8192]; /* PROVIDER:NAME(ARGUMENTS) */
	struct elf_probe first;
	unsigned int count, stop;
};

static int note(void *context, const struct elf_probe *probe)
{
	struct seen *seen = context;
	size_t used = strlen(seen->lines);

	snprintf(seen->lines + used, sizeof(seen->lines) - used, "%s:%s(%s)\n", probe->provider, probe->name,
		 probe->arguments);
	if (!seen->count++)
		seen->first = *probe;
	return seen->count == seen->stop ? 17 : 0;
}

Test(target_elf_symbols, as_laid_down)
{
	const char *path = support_library("library.c", probes_source, "");
	struct elf_file *file = support_open(path);
	struct seen seen = {};
	unsigned char byte = 1;
	__u64 offset;

	cr_assert_eq(elf_file_each_probe(file, note, &seen), 0);
	cr_expect_str_eq(seen.lines, "toy:begin(" CALL_ARGUMENTS ")\ntoy:end()\ntoy:end(" CALL_ARGUMENTS
				     ")\ntoy:begin(4@$5 8@%rax)\ntoys:begin(" CALL_ARGUMENTS ")\n");
	cr_expect(elf_file_is_executable(file, seen.first.address));
	cr_expect_eq(elf_file_read(file, seen.first.semaphore, &byte, 1), 0);
	cr_expect_eq(byte, 0);
	cr_expect_eq(elf_file_data_offset(file, seen.first.semaphore, &offset), 0);
	cr_expect_eq(elf_file_data_offset(file, seen.first.address, &offset), -ENOENT, "code");
	cr_expect_eq(elf_file_data_offset(file, 1ull << 40, &offset), -ENOENT, "nothing");
	memset(&seen, 0, sizeof(seen));
	seen.stop = 2;
	cr_expect_eq(elf_file_each_probe(file, note, &seen), 17);
	cr_expect_eq(seen.count, 2);
	elf_file_close(file);
}

/* Every byte of the notes turned, and the section cut off: whatever comes out is inside, and terminated. */
Test(target_elf_symbols, damaged)
{
	const char *path = support_library("library.c", probes_source, "");
	size_t length, at = 0;
	unsigned char *bytes = support_read(path, &length);

	for (size_t i = 0; i + 8 < length && !at; i++)
		if (!memcmp(bytes + i, "stapsdt", 8))
			at = i - sizeof(Elf64_Nhdr);
	cr_assert(at);
	for (size_t i = at; i < at + 200; i++) {
		struct seen seen = {};
		struct elf_file *file;

		bytes[i] ^= 0xff;
		support_write(path, bytes, length);
		bytes[i] ^= 0xff;
		file = support_open(path);
		cr_expect_eq(elf_file_each_probe(file, note, &seen), 0);
		cr_expect_leq(seen.count, 5);
		elf_file_close(file);
	}
	free(bytes);
}

static const char toy[] =
	"{\"schema\": 1, \"runtime\": \"toy\", \"title\": \"Toy\", \"libraries\": [], \"calls\": ["
	"{\"probe\": \"toy:begin\", \"role\": \"region.begin\", \"entry_only\": true,"
	" \"fetch\": {\"program\": \"arg0\", \"name\": \"arg1:string\"}},"
	"{\"probe\": \"toy:end\", \"role\": \"region.end\", \"entry_only\": true, \"fetch\": {\"program\": \"arg0\"}}]}";

Test(target_elf_symbols, described_ones)
{
	struct elf_file *file = support_open(support_library("library.c", probes_source, ""));
	struct static_probes probes = {};
	const char *description = support_path("toy.json"), *only = "toy";
	struct registry *registry;

	support_write(description, toy, sizeof(toy) - 1);
	cr_assert_eq(registry_create(NULL, &(struct registry_options){ &description, 1, &only, 1, NULL, 0 }, &registry),
		     0);
	cr_assert_eq(static_probes_find(registry, file, &probes), 0);
	cr_assert_eq(probes.count, 4);
	cr_expect_null(probes.list[0].refused);
	cr_expect_str_eq(probes.list[0].spec->function, "toy:begin");
	cr_expect_eq(probes.list[0].site.class, SITE_EMULATED);
	cr_expect(probes.list[0].site.semaphore);
	cr_expect_not_null(strstr(probes.list[1].refused, "no instruction"));
	cr_expect_not_null(strstr(probes.list[2].refused, "semaphore"));
	cr_expect_not_null(strstr(probes.list[3].refused, "arguments"));
	static_probes_free(&probes);
	registry_free(registry);
	elf_file_close(file);
}

Test(target_elf_symbols, arguments_of_a_call)
{
	static const struct {
		enum elf_machine machine;
		const char *arguments;
		__u32 wanted;
		bool is;
	} cases[] = {
		{ ELF_MACHINE_X86_64, "8@%rdi 8@%rsi", 3, true },
		{ ELF_MACHINE_X86_64, "-4@%edi -8@%rsi 4@%edx 4@%ecx 8@%r8 4@%r9d", 63, true },
		{ ELF_MACHINE_X86_64, "8@%rsi 8@%rdi", 1, false },
		{ ELF_MACHINE_X86_64, "8@%rbx 8@%rsi", 2, true },
		{ ELF_MACHINE_X86_64, "8@%rdi", 2, false },
		{ ELF_MACHINE_X86_64, "8@8(%rdi) 8@%rsi", 1, false },
		{ ELF_MACHINE_X86_64, "2@%di", 1, false },
		{ ELF_MACHINE_X86_64, "", 0, true },
		{ ELF_MACHINE_X86_64, "", 1, false },
		{ ELF_MACHINE_X86_64, "8@x0", 1, false },
		{ ELF_MACHINE_X86_64, "8@%rdi 8@%rsi 8@%rdx 8@%rcx 8@%r8 8@%r9 8@%r10", 64, false },
		{ ELF_MACHINE_AARCH64, "8@x0 -4@w1", 3, true },
		{ ELF_MACHINE_AARCH64, "8@x1", 1, false },
		{ ELF_MACHINE_AARCH64, "8@[x0]", 1, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(static_probe_is_call(cases[i].machine, cases[i].arguments, cases[i].wanted), cases[i].is,
			     "%s", cases[i].arguments);
}

/* A nop that the kernel turns into a call would write where a function may keep data. */
Test(target_elf_symbols, what_a_probe_may_lie_on)
{
	static const struct {
		const char *code;
		int error;
	} cases[] = {
#ifdef __x86_64__
		{ "nop", 0 },
		{ ".byte 0x0f, 0x1f, 0x44, 0, 0", -ENOEXEC },
		{ "push %rbp", -ENOEXEC },
		{ "endbr64", -ENOEXEC },
		{ "jmp .", -ENOEXEC },
		{ "mov %rax, %rbx", -ENOEXEC },
		{ "int3", -ENOEXEC },
#else
		{ "nop", 0 },
		{ "ret", -ENOEXEC },
		{ "b .", -ENOEXEC },
		{ "mov x0, x1", -ENOEXEC },
#endif
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct elf_file *file;
		struct seen seen = {};
		struct site site;
		char text[1024];

		snprintf(text, sizeof(text), "__asm__(\".text\\n.type place,@function\\nplace: %s\\nret\\n\");\n%s",
			 cases[i].code, NOTE("place", "0", "a", "b", ""));
		file = support_open(support_library("library.c", text, ""));
		cr_assert_eq(elf_file_each_probe(file, note, &seen), 0);
		cr_assert_eq(seen.count, 1);
		cr_expect_eq(site_of_marker(file, seen.first.address, &site), cases[i].error, "%s", cases[i].code);
		elf_file_close(file);
	}
}
