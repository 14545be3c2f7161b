/* SPDX-License-Identifier: BSD-2-Clause */
#include "target_support.h"

#include "target/probe/table_decoder.h"

TestSuite(target_probe_table_x86, .fini = support_cleanup);

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

Test(target_probe_table_x86, accessors)
{
	const char *source = support_path("accessors.s"), *program = support_path("accessors");
	FILE *file = fopen(source, "we");
	struct elf_file *elf;

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

Test(target_probe_table_x86, jumps_on)
{
	static const unsigned char jump[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xe9, 0x00, 0x10, 0x00, 0x00 };
	struct table_candidates candidates = { 0 };

	table_decode_x86(jump, sizeof(jump), 0x2000, &candidates);
	cr_expect_eq(candidates.count, 0);
	cr_expect_eq(candidates.tail, 0x3009);
}

Test(target_probe_table_x86, any_bytes)
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
