/* SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <gnu/libc-version.h>

#include "target_support.h"

TestSuite(target_elf_frames, .fini = support_cleanup);

/* Compares with every function that readelf finds in the unwind tables; returns how many there were. */
static size_t compare_with_readelf(const char *path)
{
	struct elf_file *file = support_open(path);
	char command[512], line[1024];
	size_t compared = 0;
	FILE *pipe;

	snprintf(command, sizeof(command), "readelf --debug-dump=frames %s 2>/dev/null", path);
	pipe = popen(command, "r");
	cr_assert_not_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		char *range = strstr(line, " pc=");
		unsigned long long from, to;
		__u64 start, size;

		if (!range || sscanf(range, " pc=%llx..%llx", &from, &to) != 2 || from == to)
			continue;
		for (unsigned int i = 0; i < 3; i++) {
			__u64 inside = i == 0 ? from : i == 1 ? to - 1 : from + (to - from) / 2;

			cr_assert_eq(elf_file_function_bounds(file, inside, &start, &size), 0, "%s: %llx", path,
				     inside);
			cr_assert_eq(start, from, "%s: %llx", path, inside);
			cr_assert_eq(start + size, to, "%s: %llx", path, inside);
		}
		compared++;
	}
	pclose(pipe);
	elf_file_close(file);
	return compared;
}

Test(target_elf_frames, c_library_as_readelf)
{
	Dl_info info;

	cr_assert_neq(dladdr((void *)gnu_get_libc_version, &info), 0);
	cr_expect_gt(compare_with_readelf(info.dli_fname), 2000);
}

static const char source[] =
	"extern void __gxx_personality_v0(void); extern \"C\" int may_throw(int);\n"
	"struct guard { int *p; ~guard() { ++*p; } };\n"
	"extern \"C\" int plain(int a) { return a * 3; }\n"
	"extern \"C\" int guarded(int a) { guard g{&a}; return may_throw(a); }\n"
	"extern \"C\" int last(int a, int b) { for (int i = 0; i < b; i++) a ^= a << i; return a; }\n";

/* C++ has descriptions with a personality and more (augmentation zPLR) beside plain ones. */
Test(target_elf_frames, personality)
{
	const char *path = support_path("library.so");

	support_write(support_path("throws.cc"), source, sizeof(source) - 1);
	support_run("gcc -x c++ -shared -fPIC -nostdlib -O2 -s -o %s %s", path, support_path("throws.cc"));
	cr_expect_geq(compare_with_readelf(path), 3);
}

Test(target_elf_frames, symbols_stand_in)
{
	static const char text[] = ".globl sized\n.type sized,@function\nsized: nop\nnop\nret\n.size sized,.-sized\n"
				   ".globl unsized\n.type unsized,@function\nunsized: nop\nret\n"
				   ".globl outer\n.type outer,@function\nouter: nop\n.globl inner\n"
				   ".type inner,@function\ninner: nop\nret\n.size inner,.-inner\n.size outer,.-outer\n";
	const char *path = support_library("bare.s", text, "");
	struct elf_file *file = support_open(path);
	__u64 sized = support_symbol(path, "sized"), start, size;

	cr_assert_eq(elf_file_function_bounds(file, sized + 2, &start, &size), 0);
	cr_expect_eq(start, sized);
	cr_expect_eq(size, SUPPORT_X86_64 ? 3 : 12);
	cr_expect_eq(elf_file_function_bounds(file, sized + size, &start, &size), -ENOENT, "behind the end");
	cr_expect_eq(elf_file_function_bounds(file, support_symbol(path, "unsized"), &start, &size), -ENOENT);
	cr_assert_eq(elf_file_function_bounds(file, support_symbol(path, "inner"), &start, &size), 0);
	cr_expect_eq(start, support_symbol(path, "inner"));
	cr_expect_eq(elf_file_function_bounds(file, 1, &start, &size), -ENOENT);
	elf_file_close(file);
}
