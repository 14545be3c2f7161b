/* SPDX-License-Identifier: BSD-2-Clause */
/* The dynamic loader of this process is the witness: what it has put into a word is what must be foretold. */
#include <dlfcn.h>
#include <link.h>

#include "target_support.h"

TestSuite(target_elf_relocations, .fini = support_cleanup);

static const char source[] =
	"static int hidden(int a) { return a; }\n"
	"int exported(int a) { return hidden(a) + 1; }\n"
	"int data[4] = {1, 2, 3, 4};\n"
	"extern int outside(void) __attribute__((weak));\n"
	"void *words[200] = {\n"
	"	[0] = (void *)hidden, [1] = (void *)exported, [2] = &data[2], [5] = (void *)hidden, [64] = data,\n"
	"	[70] = (void *)outside, [199] = &words[3],\n"
	"	[100 ... 180] = (void *)hidden,\n"
	"};\n"
	"void *const constant[] = {(void *)hidden, (void *)0, (void *)exported};\n";

static void compare_with_loader(const char *path, const char *symbol, size_t count)
{
	struct elf_file *file = support_open(path);
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	struct link_map *map;
	__u64 *words, value;
	size_t compared = 0;

	cr_assert_not_null(handle, "%s", dlerror());
	words = dlsym(handle, symbol);
	cr_assert_not_null(words);
	cr_assert_eq(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
	for (size_t i = 0; i < count; i++) {
		int error = elf_file_relocated(file, (__u64)(uintptr_t)&words[i] - map->l_addr, &value);

		if (!words[i]) {
			cr_assert_eq(error, -ENOENT, "word %zu", i);
			continue;
		}
		cr_assert_eq(error, 0, "word %zu", i);
		cr_assert_eq(value + map->l_addr, words[i], "word %zu", i);
		compared++;
	}
	cr_expect_gt(compared, 1);
	cr_expect_eq(elf_file_relocated(file, (__u64)(uintptr_t)words - map->l_addr + 4, &value), -ENOENT);
	dlclose(handle);
	elf_file_close(file);
}

Test(target_elf_relocations, rela)
{
	const char *path = support_library("words.c", source, "-O1");

	compare_with_loader(path, "words", 200);
	compare_with_loader(path, "constant", 3);
}

Test(target_elf_relocations, stripped_without_sections)
{
	const char *path = support_library("words.c", source, "-O1 -s");

	support_run("printf '\\0\\0\\0\\0\\0\\0\\0\\0' | dd of=%s bs=1 seek=40 conv=notrunc status=none", path);
	support_run("printf '\\0\\0\\0\\0' | dd of=%s bs=1 seek=60 conv=notrunc status=none", path);
	compare_with_loader(path, "words", 200);
}

Test(target_elf_relocations, relr)
{
	const char *path;

	support_needs_x86(); /* ld packs them for it alone */
	path = support_library("words.c", source, "-O1 -Wl,-z,pack-relative-relocs");

	support_run("readelf -dW %s | grep -q RELRSZ", path);
	compare_with_loader(path, "words", 200);
	compare_with_loader(path, "constant", 3);
}

/* A program with a fixed address has no relocations for its own data: the bytes are the addresses. */
Test(target_elf_relocations, fixed_address)
{
	static const char program[] = "int function(void) { return 0; }\n"
				      "void *const table[] = {(void *)function, (void *)0};\n"
				      "int _start(void) { return table[0] == table[1]; }\n";
	const char *path = support_path("program");
	struct elf_file *file;
	__u64 value;

	support_write(support_path("program.c"), program, sizeof(program) - 1);
	support_run("gcc -O1 -static -no-pie -fno-pie -nostdlib -o %s %s", path, support_path("program.c"));
	file = support_open(path);
	cr_assert_eq(elf_file_relocated(file, support_symbol(path, "table"), &value), 0);
	cr_expect_eq(value, support_symbol(path, "function"));
	cr_expect_eq(elf_file_relocated(file, 0x10, &value), -ENOENT);
	elf_file_close(file);
}
