/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each case is a function in assembly with a label "at" where its probe belongs; the assembler and nm say where that is.
 */
#include "target_support.h"

#include "target/probe/site.h"

TestSuite(target_probe_site, .fini = support_cleanup);

#define ARG0 (1u << 0)
#define ARG1 (1u << 1)
#define ARG3 (1u << 3)
#define ARG5 (1u << 5)
#define ARG7 (1u << 7)

#define NOP5 ".byte 0x0f,0x1f,0x44,0,0\n"
#define NO_FRAME 1 /* without unwind information and size: bounds are not known */
#define AFTER 2	   /* a call returns to where it begins */

struct site_case {
	const char *name;
	const char *text;
	__u32 arguments;
	enum site_class class; /* 0: nothing may be placed */
	int flags;
};

static const struct site_case cases[] = {
	/* the entry itself */
	{ "push_first", "at: push %rbp\nmov %rsp,%rbp\npop %rbp\nret\n", ARG0, SITE_EMULATED, 0 },
	{ "push_r12_first", "at: push %r12\npop %r12\nret\n", ARG0, SITE_EMULATED, 0 },
	{ "nop5_first", "at:" NOP5 "push %rbp\npop %rbp\nret\n", ARG0, SITE_OPTIMISED, 0 },
	{ "nop1_first", "at: nop\nret\n", ARG0, SITE_EMULATED, 0 },
	{ "jump_first", "at: jmp outside\n", ARG0, SITE_EMULATED, 0 },
	{ "call_first", "at: call outside\nret\n", ARG0, SITE_EMULATED, 0 },
	{ "stub", "at: jmp *slot(%rip)\n", ARG0, SITE_STEPPED, 0 },
	{ "ret_first", "at: ret\n", ARG0, SITE_STEPPED, 0 },

	/* forward */
	{ "endbr_push", "endbr64\nat: push %rbx\npop %rbx\nret\n", ARG0, SITE_EMULATED, 0 },
	{ "endbr_jump", "endbr64\nat: jmp outside\n", ARG0, SITE_EMULATED, 0 },
	{ "endbr_nop", "endbr64\nat: nop\nret\n", ARG0, SITE_EMULATED, 0 },
	{ "test_branch", "endbr64\ntest %rdi,%rdi\nat: je 1f\npush %rbx\npop %rbx\n1: ret\n", ARG0, SITE_EMULATED, 0 },
	{ "long_branch", "endbr64\ncmp $5,%esi\nat: ja outside\npush %rbx\npop %rbx\nret\n", ARG0, SITE_EMULATED, 0 },
	{ "load_push", "mov 8(%rdi),%rax\nat: push %rbx\npop %rbx\nret\n", ARG0, SITE_EMULATED, 0 },
	{ "many",
	  "endbr64\nmov %rdi,%rax\nxor %r10d,%r10d\nlea 1(%rsi),%r11\npxor %xmm0,%xmm0\nat: push %r15\npop %r15\nret\n",
	  ARG0 | ARG1, SITE_EMULATED, 0 },
	{ "past_nop5", "endbr64\n" NOP5 "at: push %rbx\npop %rbx\nret\n", ARG0, SITE_EMULATED, 0 },
	{ "red_zone_store", "endbr64\nmov %rdi,-8(%rsp)\nat: push %rbx\npop %rbx\nret\n", ARG0 | ARG7, SITE_EMULATED,
	  0 },
	{ "stack_load", "mov 8(%rsp),%rax\nat: push %rbx\npop %rbx\nret\n", ARG7, SITE_EMULATED, 0 },
	{ "unread_register", "mov %rsi,%rcx\nxor %esi,%esi\nat: push %rbx\npop %rbx\nret\n", ARG0, SITE_EMULATED, 0 },

	/* what a fetch reads is gone */
	{ "argument_copied_over", "at: mov %rsi,%rdi\npush %rbx\npop %rbx\nret\n", ARG0, SITE_STEPPED, 0 },
	{ "low_half_written", "at: endbr64\nmov $1,%edi\npush %rbx\npop %rbx\nret\n", ARG0, SITE_STEPPED, 0 },
	{ "low_byte_written", "at: endbr64\nmov $1,%dil\npush %rbx\npop %rbx\nret\n", ARG0, SITE_STEPPED, 0 },
	{ "r9_written", "at: endbr64\nxor %r9d,%r9d\npush %rbx\npop %rbx\nret\n", ARG5, SITE_STEPPED, 0 },
	{ "hidden_write", "at: endbr64\ncpuid\npush %rbx\npop %rbx\nret\n", ARG3, SITE_STEPPED, 0 },
	{ "conditional_write", "at: endbr64\ncmovz %rax,%rdi\npush %rbx\npop %rbx\nret\n", ARG0, SITE_STEPPED, 0 },
	{ "exchanged", "at: endbr64\nxchg %rax,%rdi\npush %rbx\npop %rbx\nret\n", ARG0, SITE_STEPPED, 0 },

	/* the stack has moved or may have been written */
	{ "stack_moved", "at: endbr64\nsub $8,%rsp\nnop\nadd $8,%rsp\nret\n", 0, SITE_STEPPED, 0 },
	{ "stack_aligned", "at: endbr64\nlea 8(%rsp),%r10\nand $-16,%rsp\npush -8(%r10)\nleave\nret\n", 0, SITE_STEPPED,
	  0 },
	{ "push_immediate", "at: endbr64\npush $1\nnop\npop %rax\nret\n", 0, SITE_STEPPED, 0 },
	{ "push_memory", "at: endbr64\npush 8(%rsp)\nnop\npop %rax\nret\n", 0, SITE_STEPPED, 0 },
	{ "pop_first", "at: pop %rax\nnop\npush %rax\nret\n", 0, SITE_STEPPED, 0 },
	{ "store_to_argument", "at: endbr64\nmovq $0,16(%rsp)\npush %rbx\npop %rbx\nret\n", ARG7, SITE_STEPPED, 0 },
	{ "store_through_pointer", "at: endbr64\nmovq $0,(%rsi)\npush %rbx\npop %rbx\nret\n", ARG0, SITE_STEPPED, 0 },
	{ "store_reaches_up", "at: endbr64\nmovups %xmm0,-8(%rsp)\npush %rbx\npop %rbx\nret\n", 0, SITE_STEPPED, 0 },
	{ "store_indexed", "at: endbr64\nmov %al,-8(%rsp,%rcx)\npush %rbx\npop %rbx\nret\n", 0, SITE_STEPPED, 0 },

	/* control goes elsewhere in between */
	{ "call_between", "at: endbr64\ncall outside\npush %rbx\npop %rbx\nret\n", 0, SITE_STEPPED, 0 },
	{ "ret_between", "at: endbr64\nret\npush %rbx\npop %rbx\nret\n", 0, SITE_STEPPED, 0 },
	{ "syscall_between", "at: endbr64\nsyscall\npush %rbx\npop %rbx\nret\n", 0, SITE_STEPPED, 0 },
	{ "trap_between", "at: endbr64\nud2\npush %rbx\npop %rbx\nret\n", 0, SITE_STEPPED, 0 },
	{ "never_on_nop5", "at: endbr64\n" NOP5 "ret\n", 0, SITE_STEPPED, 0 },
	{ "never_on_prefixed_nop", "at: endbr64\n.byte 0x66,0x90\nret\n", 0, SITE_STEPPED, 0 },
	{ "never_on_xchg_r8", "at: endbr64\n.byte 0x41,0x90\nret\n", 0, SITE_STEPPED, 0 },
	{ "never_on_hinted_branch", "at: endbr64\ntest %rdi,%rdi\n.byte 0x3e,0x74,0x00\nret\n", 0, SITE_STEPPED, 0 },
	{ "too_far", "at: endbr64\n.rept 16\nmov %rax,%r10\n.endr\npush %rbx\npop %rbx\nret\n", 0, SITE_STEPPED, 0 },

	/* branches of the function */
	{ "loop_over_site", "at: endbr64\n1: mov (%rdi),%eax\ntest %eax,%eax\nje 1b\nret\n", ARG0, SITE_STEPPED, 0 },
	{ "loop_to_site", "at: endbr64\n1: push %rbx\npop %rbx\ndec %esi\njne 1b\nret\n", ARG0, SITE_STEPPED, 0 },
	{ "loop_behind_site", "endbr64\nat: push %rbx\n1: dec %esi\njne 1b\npop %rbx\nret\n", ARG0, SITE_EMULATED, 0 },
	{ "loop_to_entry", "1: endbr64\nat: push %rbx\npop %rbx\ndec %esi\njne 1b\nret\n", ARG0, SITE_EMULATED, 0 },
	{ "cold_part_jumps_back",
	  "at: endbr64\n1: mov (%rdi),%eax\ntest %eax,%eax\nje cold_part_jumps_back_cold\nret\n"
	  ".pushsection .text.cold,\"ax\",@progbits\n.cfi_startproc\ncold_part_jumps_back_cold: pause\njmp 1b\n"
	  ".cfi_endproc\n.popsection\n",
	  ARG0, SITE_STEPPED, 0 },
	{ "cold_part_ends",
	  "endbr64\ntest %rdi,%rdi\nat: je cold_part_ends_cold\nret\n"
	  ".pushsection .text.cold,\"ax\",@progbits\n.cfi_startproc\ncold_part_ends_cold: xor %eax,%eax\nret\n"
	  ".cfi_endproc\n.popsection\n",
	  ARG0, SITE_EMULATED, 0 },
	{ "switch_before_branch", "at: movslq (%rdi),%rax\ntest %eax,%eax\nje 1f\njmp *%rax\n1: ret\n", ARG0,
	  SITE_STEPPED, 0 },
	{ "added_address", "at: mov (%rdi),%rax\ntest %eax,%eax\nje 1f\nadd %rdx,%rax\njmp *%rax\n1: ret\n", ARG0,
	  SITE_STEPPED, 0 },
	{ "indexed_entry", "at: test %edi,%edi\nje 1f\nmov (%rdx,%rdi,8),%rax\njmp *%rax\n1: ret\n", ARG0, SITE_STEPPED,
	  0 },
	{ "address_from_elsewhere", "at: mov (%rdi),%rax\ntest %eax,%eax\nje 1f\nret\n1: jmp *%rax\n", ARG0,
	  SITE_STEPPED, 0 },
	{ "loaded_pointer", "mov (%rdi),%rax\ntest %rax,%rax\nat: je 1f\njmp *%rax\n1: ret\n", ARG0, SITE_EMULATED, 0 },
	{ "switch_before_push", "mov (%rdi),%eax\nat: push %rbx\npop %rbx\njmp *%rax\n", ARG0, SITE_EMULATED, 0 },
	{ "tracked_jump", "endbr64\nmovslq (%rdi),%rax\ntest %eax,%eax\nat: je 1f\njmp *%rax\n1: ret\n", ARG0,
	  SITE_EMULATED, 0 },
	{ "untracked_jump", "at: endbr64\nmovslq (%rdi),%rax\ntest %eax,%eax\nje 1f\nnotrack jmp *%rax\n1: ret\n", ARG0,
	  SITE_STEPPED, 0 },
	{ "tail_call", "mov (%rdi),%rax\ntest %rax,%rax\nat: je 1f\njmp *24(%rax)\n1: ret\n", ARG0, SITE_EMULATED, 0 },

	/* without bounds */
	{ "unbounded_endbr_push", "endbr64\nat: push %rbx\npop %rbx\nret\n", ARG0, SITE_EMULATED, NO_FRAME },
	{ "unbounded_load_push", "at: mov 8(%rdi),%rax\npush %rbx\npop %rbx\nret\n", ARG0, SITE_STEPPED, NO_FRAME },
	{ "unbounded_endbr_jump", "at: endbr64\njmp outside\n", ARG0, SITE_STEPPED, NO_FRAME },

	/* no instructions, or none that takes a probe */
	{ "filled_with_int3", "at: .fill 16,1,0xcc\n", 0, 0, 0 },
	{ "filled_with_zeros", "at: .fill 16,1,0\n", 0, 0, 0 },
	{ "undecodable", "at: .byte 0x06,0x07,0x0e,0x16\nret\n", 0, 0, 0 },
	{ "one_int3", "at: int3\nret\n", 0, 0, 0 },
	{ "privileged", "at: hlt\nret\n", 0, 0, 0 },
	{ "locked_first", "at: lock addl $1,(%rdi)\nret\n", ARG0, 0, 0 },
	{ "segment_prefix_passed", "at: .byte 0x3e,0x48,0x8b,0x07\nret\n", ARG0, 0, 0 },
	/* behind a call */
	{ "after_branch",
	  "mov 272(%rsp),%rax\nmov 232(%rsp),%rbx\nmovq $0,272(%rsp)\nmov %rax,232(%rsp)\ntest %rbx,%rbx\nat: je 1f\n1: ret\n",
	  0, SITE_EMULATED, AFTER },
	{ "after_jump", "xor %eax,%eax\nat: jmp outside\n", 0, SITE_EMULATED, AFTER },
	{ "after_at_once", "at: je 1f\n1: ret\n", 0, SITE_EMULATED, AFTER },
	{ "after_epilogue", "at: add $8,%rsp\npop %rbx\nret\n", 0, SITE_STEPPED, AFTER },
	{ "after_pop", "at: mov %rax,%rdx\npop %rbx\nje 1f\n1: ret\n", 0, SITE_STEPPED, AFTER },
	{ "after_call", "at: mov %rax,%rdi\ncall outside\nret\n", 0, SITE_STEPPED, AFTER },
	{ "after_locked", "at: mov %rax,%rdi\nlock addl $1,(%rdi)\nje 1f\n1: ret\n", 0, SITE_STEPPED, AFTER },
	{ "after_long_way", "at: .rept 60\nmov (%rax),%rax\n.endr\nje 1f\n1: ret\n", 0, SITE_STEPPED, AFTER },
	{ "after_locked_first", "at: lock addl $1,(%rdi)\nret\n", 0, 0, AFTER },
	{ "segment_prefix_left", ".byte 0x3e,0x48,0x8b,0x07\nat: push %rbx\npop %rbx\nret\n", ARG0, SITE_EMULATED, 0 },
};

#define CASE_COUNT (sizeof(cases) / sizeof(*cases))

static const char *build(void)
{
	const char *source = support_path("cases.s"), *library = support_path("cases.so");
	FILE *file = fopen(source, "we");

	cr_assert_not_null(file);
	fprintf(file, ".text\n.p2align 6\n.type outside,@function\noutside: .cfi_startproc\nret\n.cfi_endproc\n");
	for (size_t i = 0; i < CASE_COUNT; i++) {
		const struct site_case *test = &cases[i];
		const char *at = strstr(test->text, "at:");
		bool bounded = !(test->flags & NO_FRAME);

		cr_assert_not_null(at);
		fprintf(file, ".p2align 6\n.type %s,@function\n%s:\n%s", test->name, test->name,
			bounded ? ".cfi_startproc\n" : "");
		fprintf(file, "%.*sat_%s:%s", (int)(at - test->text), test->text, test->name, at + 3);
		fprintf(file, "%s", bounded ? ".cfi_endproc\n" : "");
	}
	fprintf(file, ".data\nslot: .quad outside\n.section .note.GNU-stack,\"\",@progbits\n");
	fclose(file);
	support_run("gcc -shared -nostdlib -Wl,--build-id=none -o %s %s", library, source);
	return library;
}

#ifdef __x86_64__
/* What begins with an instruction may itself be part of one: only what decoding from the function's begin comes to is taken. */
Test(target_probe_site, inside_of_an_instruction)
{
	static const char text[] =
		".text\n.type bounded,@function\nbounded: .cfi_startproc\nxor %eax,%eax\n.byte 0xb8\ninside: nop\n.byte 0x53,0xc3,0\n"
		"next: nop\npush %rbx\npop %rbx\nret\n.cfi_endproc\n"
		".p2align 6\nunknown: nop\npush %rbx\npop %rbx\nret\n.section .note.GNU-stack,\"\",@progbits\n";
	static const struct {
		const char *label;
		int error;
	} places[] = { { "bounded", 0 }, { "inside", -ENOEXEC }, { "next", 0 }, { "unknown", -ENOEXEC } };
	const char *source = support_path("inside.s"), *library = support_path("inside.so");
	struct elf_file *file;
	struct site site;

	support_write(source, text, sizeof(text) - 1);
	support_run("gcc -shared -nostdlib -Wl,--build-id=none -o %s %s", library, source);
	file = support_open(library);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		unsigned long long address = support_symbol(library, places[i].label);

		cr_expect_eq(site_choose(file, address, 0, &site), places[i].error, "%s", places[i].label);
		cr_expect_eq(site_choose_after(file, address, &site), places[i].error, "%s", places[i].label);
		if (i)
			cr_expect_eq(site_of_marker(file, address, &site), places[i].error, "%s", places[i].label);
	}
	elf_file_close(file);
}
#endif

Test(target_probe_site, places)
{
	const char *library;
	struct elf_file *file;

	support_needs_x86();
	library = build();
	file = support_open(library);
	for (size_t i = 0; i < CASE_COUNT; i++) {
		const struct site_case *test = &cases[i];
		unsigned long long entry = support_symbol(library, test->name), at;
		char label[128];
		struct site site;
		int error = test->flags & AFTER ? site_choose_after(file, entry, &site) :
						  site_choose(file, entry, test->arguments, &site);

		if (!test->class) {
			cr_expect_eq(error, -ENOEXEC, "%s: %d", test->name, error);
			continue;
		}
		cr_expect_eq(error, 0, "%s: %d", test->name, error);
		if (error)
			continue;
		snprintf(label, sizeof(label), "at_%s", test->name);
		at = support_symbol(library, label);
		cr_expect_eq(site.function, support_offset(library, entry), "%s", test->name);
		cr_expect_eq(site.offset, support_offset(library, at), "%s: moved by %llu, not %llu", test->name,
			     (unsigned long long)(site.offset - site.function), at - entry);
		cr_expect_eq(site.class, test->class, "%s: %s", test->name, site_class_name(site.class));
	}
	elf_file_close(file);
}

Test(target_probe_site, only_code)
{
	const char *library;
	struct elf_file *file;
	struct site site;

	support_needs_x86();
	library = build();
	file = support_open(library);
	cr_expect_eq(site_choose(file, support_symbol(library, "slot"), 0, &site), -ENOENT);
	cr_expect_eq(site_choose(file, 0x7ffffffff000, 0, &site), -ENOENT);
	elf_file_close(file);
}

/* Functions as the compiler makes them: the site is where objdump shows an instruction that the kernel emulates. */
Test(target_probe_site, compiled_functions)
{
	static const char source[] =
		"extern int outside(int, ...) __attribute__((weak));\n"
		"int calls(int a) { return outside(a) + a; }\n"
		"int checks(int *p, int a) { if (!p) return -1; *p = outside(a); return outside(*p); }\n"
		"int loops(int *p, int n) { int s = 0; for (int i = 0; i < n; i++) s += outside(p[i]); return s; }\n"
		"int leaf(int a, int b) { return a * b; }\n"
		"int stack(int a, int b, int c, int d, int e, int f, int g, int h) { return outside(g, h) + a; }\n";
	static const char *const names[] = { "calls", "checks", "loops", "leaf", "stack" };
	static const char *const options[] = { "-O0",
					       "-O1",
					       "-O2",
					       "-Os",
					       "-O2 " SUPPORT_MARKED,
					       "-O2 -fpatchable-function-entry=2",
					       "-O2 " SUPPORT_PLAIN };

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		const char *library = support_library("compiled.c", source, options[i]);
		struct elf_file *file = support_open(library);

		for (size_t j = 0; j < sizeof(names) / sizeof(*names); j++) {
			char command[512], mnemonic[32] = "";
			struct site site;
			FILE *pipe;

			cr_assert_eq(site_choose(file, support_symbol(library, names[j]), 0xff, &site), 0);
			snprintf(command, sizeof(command),
				 "objdump -d --no-show-raw-insn --start-address=0x%llx --stop-address=0x%llx %s |"
				 " grep -A1 '>:$' | tail -1",
				 support_symbol(library, names[j]) + (site.offset - site.function),
				 support_symbol(library, names[j]) + (site.offset - site.function) + 16, library);
			pipe = popen(command, "r");
			cr_assert_not_null(pipe);
			cr_assert_eq(fscanf(pipe, " %*x: %31s", mnemonic), 1);
			pclose(pipe);
			if (site.class == SITE_EMULATED)
				cr_expect(!strcmp(mnemonic, "push") || mnemonic[0] == 'j' || !strcmp(mnemonic, "nop") ||
						  !strcmp(mnemonic, "call"),
					  "%s %s: %s", options[i], names[j], mnemonic);
			else if (site.class == SITE_OPTIMISED)
				cr_expect_str_eq(mnemonic, "nopl");
			else
				cr_expect_eq(site.offset, site.function, "%s %s", options[i], names[j]);
		}
		elf_file_close(file);
	}
}

Test(target_probe_site, arguments_of_a_spec)
{
	struct call_spec spec = { .wire.fetches = 4 };

	spec.wire.fetch[0].source = 0;
	spec.wire.fetch[1].source = XPT_SOURCE_RETURN;
	spec.wire.fetch[2].source = 7;
	spec.wire.fetch[3].source = 2;
	spec.wire.fetch[3].at_return = 1; /* remembered at the entry */
	cr_expect_eq(site_arguments(&spec), 1u << 0 | 1u << 7 | 1u << 2);
}

Test(target_probe_site, arguments_of_code)
{
	struct call_spec spec = { .wire.fetches = 1, .code.source = XPT_CODE_PARTS };

	spec.code.fetch[XPT_CODE_BYTES].source = 3;
	spec.code.fetch[XPT_CODE_SIZE].source = 4;
	spec.code.fetch[XPT_CODE_COUNT].source = 1;
	spec.code.given = 1 << XPT_CODE_BYTES | 1 << XPT_CODE_COUNT;
	cr_expect_eq(site_arguments(&spec), 1u << 0 | 1u << 3 | 1u << 1, "what is not given is not read");
	spec.code.given |= 1 << XPT_CODE_SIZE;
	cr_expect_eq(site_arguments(&spec), 1u << 0 | 1u << 3 | 1u << 1 | 1u << 4);
}

Test(target_probe_site, classes)
{
	cr_expect_str_eq(site_class_name(SITE_OPTIMISED), "optimised");
	cr_expect_str_eq(site_class_name(SITE_EMULATED), "emulated");
	cr_expect_str_eq(site_class_name(SITE_STEPPED), "stepped");
	cr_expect_lt(site_class_cost(SITE_OPTIMISED), site_class_cost(SITE_EMULATED));
	cr_expect_lt(5 * site_class_cost(SITE_EMULATED), site_class_cost(SITE_STEPPED));
}
