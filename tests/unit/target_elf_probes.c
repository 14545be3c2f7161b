/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>

#include "describe/runtime/registry.h"
#include "target/probe/static_probes.h"
#include "target_support.h"

TestSuite(target_elf_probes, .fini = support_cleanup);

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

static const char source[] =
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

Test(target_elf_probes, as_laid_down)
{
	const char *path = support_library("library.c", source, "");
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
Test(target_elf_probes, damaged)
{
	const char *path = support_library("library.c", source, "");
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

Test(target_elf_probes, described_ones)
{
	struct elf_file *file = support_open(support_library("library.c", source, ""));
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

Test(target_elf_probes, arguments_of_a_call)
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
Test(target_elf_probes, what_a_probe_may_lie_on)
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
