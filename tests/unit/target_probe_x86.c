/* SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <gnu/libc-version.h>

#include "target/probe/decoder.h"
#include "target_support.h"

/* What Linux 6.18 answered when a probe was put on each of them (ENOTSUPP: refused). */
static const struct {
	char bytes[12];
	bool refused;
} probed[] = {
	{ "\x90", false },
	{ "\xf3\x90", false },
	{ "\x0f\x1f\x44\x00\x00", false },
	{ "\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00", true },
	{ "\xf0\x83\x07\x00", true },
	{ "\x3e\xff\xe0", true },
	{ "\x66\xe9\x00\x00\x00\x00", true },
	{ "\x2e\x74\x00", true },
	{ "\x3e\x74\x00", true },
	{ "\xf2\xe9\x00\x00\x00\x00", false },
	{ "\xf2\xc3", false },
	{ "\xf3\xc3", false },
	{ "\x0f\x0b", false },
	{ "\xf4", true },
	{ "\xcc", true },
	{ "\xcd\x80", true },
	{ "\x0f\x05", false },
	{ "\xc5\xf8\x77", false },
	{ "\xec", true },
	{ "\xfa", true },
	{ "\x0f\x01\xd0", false },
	{ "\x48\xcf", true },
	{ "\xcf", true },
	{ "\xc9", false },
	{ "\x62\xf1\x7c\x48\x28\xc0", false },
	{ "\x0f\xa2", false },
	{ "\xe2\x00", false },
	{ "\xe3\x00", false },
	{ "\x41\x55", false },
	{ "\x48\x55", false },
	{ "\x66\x55", false },
	{ "\x6a\x01", false },
	{ "\xf1", true },
	{ "\x64\x48\x8b\x04\x25\x28\x00\x00\x00", false },
	{ "\x3e\x48\x8b\x07", true },
	{ "\x26\x48\x8b\x07", true },
	{ "\xe8\x00\x00\x00\x00", false },
	{ "\x6c", true },
	{ "\x9d", false },
	{ "\xfb", true },
	{ "\xff\xe0", false },
	{ "\xff\xd0", false },
	{ "\x66\x74\x00", true },
	{ "\xf3\x0f\x1e\xfa", false },
};

Test(target_probe_x86, refused_as_by_the_kernel)
{
	for (size_t i = 0; i < sizeof(probed) / sizeof(*probed); i++) {
		struct site_instruction instruction;
		unsigned char bytes[16] = { 0 };

		memcpy(bytes, probed[i].bytes, 10);
		cr_assert_eq(site_decode_x86(bytes, sizeof(bytes), 0x1000, &instruction), 0, "case %zu", i);
		cr_expect_eq(instruction.refused, probed[i].refused, "case %zu, first byte %02x", i, bytes[0]);
	}
}

struct decoded {
	const char *bytes;
	size_t length;
	enum site_flow flow;
	bool emulated;
	bool transparent;
	__u32 writes;
	__u64 target;
};

#define AT 0x10000

static const struct decoded instructions[] = {
	{ "\x55", 1, SITE_FLOW_NEXT, true, false, 0, 0 },				 /* push %rbp */
	{ "\x41\x57", 2, SITE_FLOW_NEXT, true, false, 0, 0 },				 /* push %r15 */
	{ "\x90", 1, SITE_FLOW_NEXT, true, true, 0, 0 },				 /* nop */
	{ "\xeb\xfe", 2, SITE_FLOW_JUMP, true, false, 0, AT },				 /* jmp . */
	{ "\xe9\xfb\xff\xff\xff", 5, SITE_FLOW_JUMP, true, false, 0, AT },		 /* jmp . */
	{ "\x74\x10", 2, SITE_FLOW_BRANCH, true, false, 0, AT + 0x12 },			 /* je */
	{ "\x0f\x8f\xfa\x00\x00\x00", 6, SITE_FLOW_BRANCH, true, false, 0, AT + 0x100 }, /* jg */
	{ "\xe8\x00\x01\x00\x00", 5, SITE_FLOW_STOP, true, false, 0, 0 },		 /* call */
	{ "\xe2\xfe", 2, SITE_FLOW_BRANCH, false, false, 1 << 3, AT },			 /* loop . writes rcx */
	{ "\xff\xd0", 2, SITE_FLOW_STOP, false, false, 0, 0 },				 /* call *%rax */
	{ "\xff\xe0", 2, SITE_FLOW_SWITCH, false, false, 0, 0 },			 /* jmp *%rax */
	{ "\xff\x60\x18", 3, SITE_FLOW_TAIL, false, false, 0, 0 },			 /* jmp *24(%rax) */
	{ "\xff\x25\x00\x01\x00\x00", 6, SITE_FLOW_TAIL, false, false, 0, 0 },		 /* jmp *256(%rip) */
	{ "\xff\x24\xc5\x00\x00\x00\x00", 7, SITE_FLOW_SWITCH, false, false, 0, 0 },	 /* jmp *0(,%rax,8) */
	{ "\xc3", 1, SITE_FLOW_STOP, false, false, 0, 0 },				 /* ret */
	{ "\x0f\x05", 2, SITE_FLOW_STOP, false, false, 1 << 3, 0 },			 /* syscall writes rcx */
	{ "\xf3\x0f\x1e\xfa", 4, SITE_FLOW_NEXT, false, true, 0, 0 },			 /* endbr64 */
	{ "\x89\xf7", 2, SITE_FLOW_NEXT, false, true, 1 << 0, 0 },			 /* mov %esi,%edi */
	{ "\xb6\x01", 2, SITE_FLOW_NEXT, false, true, 1 << 2, 0 },			 /* mov $1,%dh */
	{ "\x4c\x89\xc6", 3, SITE_FLOW_NEXT, false, true, 1 << 1, 0 },			 /* mov %r8,%rsi */
	{ "\x49\x89\xc1", 3, SITE_FLOW_NEXT, false, true, 1 << 5, 0 },			 /* mov %rax,%r9 */
	{ "\x48\x99", 2, SITE_FLOW_NEXT, false, true, 1 << 2, 0 },			 /* cqo writes rdx */
	{ "\x48\x8d\x05\x00\x01\x00\x00", 7, SITE_FLOW_NEXT, false, true, 0, 0 },	 /* lea 256(%rip),%rax */
	{ "\x48\x83\xec\x08", 4, SITE_FLOW_NEXT, false, false, 0, 0 },			 /* sub $8,%rsp */
	{ "\x48\x89\xe5", 3, SITE_FLOW_NEXT, false, true, 0, 0 },			 /* mov %rsp,%rbp */
	{ "\x48\x89\x7c\x24\xf8", 5, SITE_FLOW_NEXT, false, true, 0, 0 },		 /* mov %rdi,-8(%rsp) */
	{ "\x48\x89\x7c\x24\xf9", 5, SITE_FLOW_NEXT, false, false, 0, 0 },		 /* mov %rdi,-7(%rsp) */
	{ "\x48\x89\x07", 3, SITE_FLOW_NEXT, false, false, 0, 0 },			 /* mov %rax,(%rdi) */
	{ "\xf3\xa4", 2, SITE_FLOW_NEXT, false, false, 1 << 0 | 1 << 1 | 1 << 3, 0 },	 /* rep movsb */
};

Test(target_probe_x86, what_instructions_do)
{
	for (size_t i = 0; i < sizeof(instructions) / sizeof(*instructions); i++) {
		const struct decoded *expected = &instructions[i];
		struct site_instruction got;
		unsigned char bytes[16] = { 0 };

		memcpy(bytes, expected->bytes, expected->length);
		cr_assert_eq(site_decode_x86(bytes, sizeof(bytes), AT, &got), 0, "case %zu", i);
		cr_expect_eq(got.length, expected->length, "case %zu", i);
		cr_expect_eq(got.flow, expected->flow, "case %zu: flow %d", i, got.flow);
		cr_expect_eq(got.emulated, expected->emulated, "case %zu", i);
		cr_expect_eq(got.transparent, expected->transparent, "case %zu", i);
		cr_expect_eq(got.writes, expected->writes, "case %zu: writes %x", i, got.writes);
		cr_expect_eq(got.target, expected->target, "case %zu: target %llx", i, got.target);
	}
}

Test(target_probe_x86, incomplete)
{
	static const unsigned char jump[] = { 0xe9, 0, 0, 0, 0 }, bad[] = { 0x06, 0, 0 };
	struct site_instruction instruction;

	for (size_t length = 1; length < sizeof(jump); length++)
		cr_expect_eq(site_decode_x86(jump, length, AT, &instruction), -ENOEXEC);
	cr_expect_eq(site_decode_x86(bad, sizeof(bad), AT, &instruction), -ENOEXEC);
}

/* The C library's own code: lengths and branch targets as objdump has them. */
Test(target_probe_x86, lengths_and_targets_as_objdump)
{
	char command[1024], line[512];
	unsigned long long previous = 0, at;
	size_t compared = 0, branches = 0;
	struct site_instruction instruction = { 0 };
	struct elf_file *file;
	Dl_info info;
	FILE *pipe;

	support_needs_x86();
	cr_assert_neq(dladdr((void *)gnu_get_libc_version, &info), 0);
	file = support_open(info.dli_fname);
	at = (unsigned long long)(uintptr_t)info.dli_saddr - (unsigned long long)(uintptr_t)info.dli_fbase;
	snprintf(command, sizeof(command),
		 "objdump -d --no-show-raw-insn --start-address=0x%llx --stop-address=0x%llx %s", at, at + 0x20000,
		 info.dli_fname);
	pipe = popen(command, "r");
	cr_assert_not_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		char mnemonic[32], operand[64];
		unsigned char bytes[16];
		int words = sscanf(line, " %llx: %31s %63s", &at, mnemonic, operand);

		if (words < 2 || mnemonic[0] == '(' || mnemonic[0] == '.')
			continue;
		if (previous)
			cr_assert_eq(previous + instruction.length, at, "instruction at %llx", previous);
		cr_assert_eq(elf_file_read(file, at, bytes, 15), 0);
		cr_assert_eq(site_decode_x86(bytes, 15, at, &instruction), 0, "%s", line);
		previous = at;
		compared++;
		if (words < 3 || mnemonic[0] != 'j' || operand[0] == '*')
			continue;
		cr_assert_eq(instruction.target, strtoull(operand, NULL, 16), "%s", line);
		cr_assert_eq(instruction.flow, strcmp(mnemonic, "jmp") ? SITE_FLOW_BRANCH : SITE_FLOW_JUMP, "%s", line);
		branches++;
	}
	pclose(pipe);
	elf_file_close(file);
	cr_expect_gt(compared, 10000);
	cr_expect_gt(branches, 1000);
}

TestSuite(target_probe_x86, .fini = support_cleanup);

/* Each accessor returns "table", or loads it from "pointer"; what must be found is asked of nm. */
static const struct {
	const char *name, *text;
	const char *symbol; /* NULL: nothing is returned that is known */
	bool loaded;
} accessors[] = {
	{ "direct", "endbr64\nlea table(%rip),%rax\nret\n", "table", false },
	{ "loaded", "mov pointer(%rip),%rax\nret\n", "pointer", true },
	{ "copied", "lea table(%rip),%rcx\nmov %rcx,%rax\nret\n", "table", false },
	{ "conditional_move", "xor %eax,%eax\nlea table(%rip),%rcx\ncmp $31,%edi\ncmovb %rcx,%rax\nret\n", "table",
	  false },
	{ "conditional_null", "lea table(%rip),%rax\nxor %ecx,%ecx\ncmp $31,%edi\ncmovae %rcx,%rax\nret\n", "table",
	  false },
	{ "checked_first", "lea -1(%rdi),%edx\ncmp $29,%edx\nja 1f\nlea table(%rip),%rax\nret\n1: xor %eax,%eax\nret\n",
	  "table", false },
	{ "error_first", "cmp $29,%edi\njbe 1f\nxor %eax,%eax\nret\n1: lea table(%rip),%rax\nret\n", "table", false },
	{ "joined", "cmp $29,%edi\nja 1f\nlea table(%rip),%rax\njmp 2f\n1: lea other(%rip),%rdi\nmov $0,%eax\n2: ret\n",
	  "table", false },
	{ "kept_over_call", "push %rbx\nlea table(%rip),%rbx\ncall 1f\nmov %rbx,%rax\npop %rbx\n1: ret\n", "table",
	  false },
	{ "lost_in_call", "lea table(%rip),%rax\ncall 1f\nret\n1: nop\n", NULL, false },
	{ "overwritten", "lea table(%rip),%rax\nadd $8,%rax\nret\n", NULL, false },
	{ "half_overwritten", "lea table(%rip),%rax\nmov %ecx,%eax\nret\n", NULL, false },
	{ "other_register", "lea table(%rip),%rdx\nret\n", NULL, false },
	{ "number", "mov $5,%eax\nret\n", NULL, false },
	{ "indexed", "lea table(,%rdi,8),%rax\nret\n", NULL, false },
};

Test(target_probe_x86, accessors)
{
	const char *source = support_path("accessors.s"), *program = support_path("accessors");
	struct elf_file *elf;
	FILE *file;

	support_needs_x86();
	file = fopen(source, "we");
	cr_assert_not_null(file);
	for (size_t i = 0; i < sizeof(accessors) / sizeof(*accessors); i++)
		fprintf(file, "%s: %s.size %s,.-%s\nend_%s: .p2align 4\n", accessors[i].name, accessors[i].text,
			accessors[i].name, accessors[i].name, accessors[i].name);
	fprintf(file, ".globl _start\n_start: ret\n.data\ntable: .quad 1\nother: .quad 2\npointer: .quad table\n");
	fclose(file);
	support_run("gcc -static -no-pie -nostdlib -Wl,-z,noexecstack -o %s %s", program, source);
	elf = support_open(program);
	for (size_t i = 0; i < sizeof(accessors) / sizeof(*accessors); i++) {
		struct table_candidates candidates = { 0 };
		unsigned long long start = support_symbol(program, accessors[i].name), end;
		const struct table_candidate *returned = NULL;
		unsigned char code[256];
		char label[64];

		snprintf(label, sizeof(label), "end_%s", accessors[i].name);
		end = support_symbol(program, label);
		cr_assert_eq(elf_file_read(elf, start, code, end - start), 0);
		table_decode_x86(code, end - start, start, &candidates);
		for (size_t j = 0; j < candidates.count; j++)
			if (candidates.list[j].returned)
				returned = &candidates.list[j];
		if (!accessors[i].symbol) {
			cr_expect_null(returned, "%s", accessors[i].name);
			continue;
		}
		cr_expect_not_null(returned, "%s", accessors[i].name);
		if (!returned)
			continue;
		cr_expect_eq(returned->address, support_symbol(program, accessors[i].symbol), "%s", accessors[i].name);
		cr_expect_eq(returned->loaded, accessors[i].loaded, "%s", accessors[i].name);
	}
	elf_file_close(elf);
}

Test(target_probe_x86, jumps_on)
{
	static const unsigned char jump[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xe9, 0x00, 0x10, 0x00, 0x00 };
	struct table_candidates candidates = { 0 };

	table_decode_x86(jump, sizeof(jump), 0x2000, &candidates);
	cr_expect_eq(candidates.count, 0);
	cr_expect_eq(candidates.tail, 0x3009);
}

Test(target_probe_x86, any_bytes)
{
	unsigned int seed = 7;

	for (unsigned int i = 0; i < 20000; i++) {
		struct table_candidates candidates = { 0 };
		unsigned char code[64];
		size_t length = (size_t)rand_r(&seed) % sizeof(code);

		for (size_t j = 0; j < length; j++)
			code[j] = (unsigned char)rand_r(&seed);
		table_decode_x86(code, length, 0x1000, &candidates);
		cr_assert_leq(candidates.count, TABLE_CANDIDATE_MAX);
	}
}
