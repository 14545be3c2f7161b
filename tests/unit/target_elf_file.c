/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <fcntl.h>
#include <gnu/lib-names.h>
#include <sys/mman.h>

#include "target_support.h"

#include "target/probe/functions.h"

TestSuite(target_elf_file, .fini = support_cleanup);

static const char source[] = "#include <stddef.h>\n"
			     "int zeros[4096] = {0}; const char text[] = \"read me\";\n"
			     "extern const void *const table[9];\n"
			     "__attribute__((noinline)) int one(int a) { return a + zeros[a & 7]; }\n"
			     "int two(int a, int b) { for (int i = 0; i < b; i++) a += one(i); return a; }\n"
			     "const void *accessor(void) { return table; }\n"
			     "const void *const table[9] = {one, two, one, two, one, two, one, two, one};\n";

static const char *library(void)
{
	return support_library("library.c", source, "-O2 -Wl,--build-id=0x0123456789abcdef");
}

/* Where the C library of this process lies. */
static const char *c_library(void)
{
	static char path[512];
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[1024];

	cr_assert_not_null(maps);
	while (!path[0] && fgets(line, sizeof(line), maps))
		if (strstr(line, LIBC_SO))
			sscanf(line, "%*s %*s %*s %*s %*s %511s", path);
	fclose(maps);
	cr_assert_neq(path[0], '\0');
	return path;
}

Test(target_elf_file, headers)
{
	struct elf_file *file = support_open(library());

	cr_expect_eq(elf_file_machine(file), SUPPORT_X86_64 ? ELF_MACHINE_X86_64 : ELF_MACHINE_AARCH64);
	cr_expect_null(elf_file_interpreter(file));
	cr_expect_str_eq(elf_file_build_id(file), "0123456789abcdef");
	elf_file_close(file);
}

Test(target_elf_file, interpreter)
{
	struct elf_file *file = support_open("/proc/self/exe");

	cr_assert_not_null(elf_file_interpreter(file));
	cr_expect_eq(access(elf_file_interpreter(file), X_OK), 0);
	elf_file_close(file);
}

static void expect_build_id(const char *path)
{
	struct elf_file *file = support_open(path);
	char command[600], expected[256] = "";
	FILE *pipe;

	snprintf(command, sizeof(command), "readelf -n %s 2>/dev/null | sed -n 's/.*Build ID: //p'", path);
	pipe = popen(command, "r");
	cr_assert_not_null(pipe);
	cr_assert_eq(fscanf(pipe, "%255s", expected), 1);
	pclose(pipe);
	cr_expect_str_eq(elf_file_build_id(file), expected);
	elf_file_close(file);
}

Test(target_elf_file, build_id_as_readelf)
{
	expect_build_id(c_library());
}

/* As Go's linker has it. */
Test(target_elf_file, build_id_in_no_segment)
{
	const char *copy = support_path("segments.so");
	unsigned char *bytes;
	Elf64_Phdr *headers;
	size_t length;

	bytes = support_read(c_library(), &length);
	headers = (Elf64_Phdr *)(bytes + ((Elf64_Ehdr *)bytes)->e_phoff);
	for (size_t i = 0; i < ((Elf64_Ehdr *)bytes)->e_phnum; i++)
		if (headers[i].p_type == PT_NOTE)
			headers[i].p_type = PT_NULL;
	support_write(copy, bytes, length);
	free(bytes);
	expect_build_id(copy);
}

Test(target_elf_file, offsets_as_readelf)
{
	static const char *const names[] = { "one", "two", "accessor" };
	const char *path = library();
	struct elf_file *file = support_open(path);

	for (size_t i = 0; i < 3; i++) {
		__u64 address = support_symbol(path, names[i]), offset, back;

		cr_assert_eq(elf_file_offset(file, address, &offset), 0);
		cr_expect_eq(offset, support_offset(path, address));
		cr_assert_eq(elf_file_address(file, offset, &back), 0);
		cr_expect_eq(back, address);
		cr_expect(elf_file_is_executable(file, address));
	}
	cr_expect_not(elf_file_is_executable(file, support_symbol(path, "table")));
	cr_expect_not(elf_file_is_executable(file, 0x7fffffffffff));
	elf_file_close(file);
}

Test(target_elf_file, reads)
{
	const char *path = library();
	struct elf_file *file = support_open(path);
	__u64 zeros = support_symbol(path, "zeros"), text = support_symbol(path, "text");
	char bytes[4096 * 4];

	cr_assert_eq(elf_file_read(file, text, bytes, 8), 0);
	cr_expect_arr_eq(bytes, "read me", 8);
	memset(bytes, 1, sizeof(bytes));
	cr_assert_eq(elf_file_read(file, zeros, bytes, sizeof(bytes)), 0);
	for (size_t i = 0; i < sizeof(bytes); i++)
		cr_assert_eq(bytes[i], 0, "not in the file, so zero");
	cr_expect_eq(elf_file_read(file, zeros + (1 << 20), bytes, 1), -EFAULT);
	cr_expect_eq(elf_file_read(file, ~0ull, bytes, 8), -EFAULT);
	elf_file_close(file);
}

Test(target_elf_file, refuses_what_it_cannot_read)
{
	const char *copy = support_path("copy");
	struct elf_file *file;
	unsigned char *bytes;
	size_t length;

	bytes = support_read(library(), &length);
	cr_expect_eq(elf_file_open(NULL, support_path("nothing"), "", &file), -ENOENT);
	cr_expect_eq(elf_file_open(NULL, "/tmp", "", &file), -ENOEXEC);
	cr_expect_eq(elf_file_open(NULL, "/dev/zero", "", &file), -ENOEXEC);
	cr_assert_eq(mkfifo(support_path("fifo"), 0600), 0);
	cr_expect_eq(elf_file_open(NULL, support_path("fifo"), "", &file), -ENOEXEC);
	support_write(copy, "", 0);
	cr_expect_eq(elf_file_open(NULL, copy, "", &file), -ENOEXEC);
	support_write(copy, "#!/bin/sh\nexit 0\n# long enough for a header of an ELF file, but not one\n", 70);
	cr_expect_eq(elf_file_open(NULL, copy, "", &file), -ENOEXEC);

	bytes[EI_CLASS] = ELFCLASS32;
	support_write(copy, bytes, length);
	cr_expect_eq(elf_file_open(NULL, copy, "", &file), -ENOTSUP);
	bytes[EI_CLASS] = ELFCLASS64;
	bytes[EI_DATA] = ELFDATA2MSB;
	support_write(copy, bytes, length);
	cr_expect_eq(elf_file_open(NULL, copy, "", &file), -ENOTSUP);
	bytes[EI_DATA] = ELFDATA2LSB;
	((Elf64_Ehdr *)bytes)->e_machine = EM_RISCV;
	support_write(copy, bytes, length);
	cr_expect_eq(elf_file_open(NULL, copy, "", &file), -ENOTSUP);
	((Elf64_Ehdr *)bytes)->e_machine = EM_X86_64;
	((Elf64_Ehdr *)bytes)->e_phnum = 0;
	support_write(copy, bytes, length);
	cr_expect_eq(elf_file_open(NULL, copy, "", &file), -ENOEXEC);
	free(bytes);
}

/* Everything that the reader offers, on a file that may hold anything. Only that it ends, and cleanly, is asked for. */
static int touch(void *context, const struct elf_symbol *symbol)
{
	struct elf_file *file = context;
	__u64 start, size;
	struct site site;

	(void)elf_file_function_bounds(file, symbol->address, &start, &size);
	(void)site_choose(file, symbol->address, 0x3f, &site);
	return strlen(symbol->name) > 1 << 20;
}

static void use_everything(const char *path)
{
	char *identify[] = { "accessor" }, *wanted[] = { "one" }, *pattern[] = { "t*o" };
	struct call_spec calls[] = {
		{ .locate = LOCATE_SYMBOL, .symbols = wanted, .symbol_count = 1, .function = "one" },
		{ .locate = LOCATE_SYMBOL, .symbols = pattern, .symbol_count = 1, .function = "two", .wire.index = 1 },
		{ .locate = LOCATE_SLOT, .slot = 3, .function = "slot", .wire.index = 2 },
	};
	struct description runtime = { .name = "test",
				       .title = "Test",
				       .identify = identify,
				       .identify_count = 1,
				       .table = { .accessor = "accessor", .size_offset = -1 },
				       .calls = calls,
				       .call_count = 3 };
	struct description *runtimes[] = { &runtime };
	struct registry registry = { .runtimes = runtimes, .runtime_count = 1 };
	struct mapped_file mapped = { .path = "hostile" };
	struct found_functions found;
	struct elf_file *file;
	__u64 value;

	snprintf(mapped.open_path, sizeof(mapped.open_path), "%s", path);
	if (functions_find(NULL, &registry, &mapped, &found) == 0)
		found_functions_free(&found);
	if (elf_file_open(NULL, path, "hostile", &file))
		return;
	(void)elf_file_each_function(file, touch, file);
	(void)elf_file_relocated(file, 0x3e00, &value);
	(void)elf_file_exports(file, "accessor");
	elf_file_close(file);
}

Test(target_elf_file, survives_truncation, .timeout = 120)
{
	const char *hostile = support_path("hostile.so");
	unsigned char *bytes;
	size_t length;

	bytes = support_read(library(), &length);
	support_write(hostile, bytes, length);
	for (size_t keep = length & ~63ul;; keep -= 64) {
		cr_assert_eq(truncate(hostile, (off_t)keep), 0);
		use_everything(hostile);
		if (!keep)
			break;
	}
	free(bytes);
}

/* Flips bits where structures lie: all headers and tables are at the two ends of such a small file. */
Test(target_elf_file, survives_damage, .timeout = 120)
{
	const char *hostile = support_path("hostile.so");
	unsigned char *bytes, *copy;
	unsigned int seed = 20261120;
	size_t length;

	bytes = support_read(library(), &length);
	copy = malloc(length);
	for (unsigned int round = 0; round < 1500; round++) {
		memcpy(copy, bytes, length);
		for (unsigned int i = 0; i < 1 + round % 8; i++) {
			size_t at = (size_t)rand_r(&seed) * 4096 % length + (size_t)rand_r(&seed) % 4096;

			copy[at % length] = rand_r(&seed) % 3 ? (unsigned char)rand_r(&seed) : 0xff;
		}
		support_write(hostile, copy, length);
		use_everything(hostile);
	}
	free(copy);
	free(bytes);
}

/* Every word of the structures that hold sizes and offsets, one by one out of range. */
Test(target_elf_file, survives_huge_numbers, .timeout = 120)
{
	static const __u64 values[] = { ~0ull, 1ull << 63, 0x7fffffffffffffffull, 0xffffffffull, 0 };
	const char *hostile = support_path("hostile.so");
	Elf64_Ehdr *header;
	unsigned char *bytes, *copy;
	size_t length;

	bytes = support_read(library(), &length);
	copy = malloc(length);
	header = (Elf64_Ehdr *)bytes;
	for (unsigned int part = 0; part < 3; part++) {
		size_t from = part == 0 ? 16 : part == 1 ? header->e_phoff : header->e_shoff;
		size_t size = part == 0 ? 48 :
			      part == 1 ? header->e_phnum * sizeof(Elf64_Phdr) :
					  header->e_shnum * sizeof(Elf64_Shdr);

		for (size_t at = from; at + 8 <= from + size; at += 8) {
			for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
				memcpy(copy, bytes, length);
				memcpy(copy + at, &values[i], 8);
				support_write(hostile, copy, length);
				use_everything(hostile);
			}
		}
	}
	free(copy);
	free(bytes);
}

/* A file that shrinks while it is open gives errors; one that was mapped would give SIGBUS. */
Test(target_elf_file, shrinks_while_open)
{
	const char *path = library();
	struct elf_file *file = support_open(path);
	__u64 address = support_symbol(path, "one"), start, size, value;
	char bytes[16];

	cr_assert_eq(truncate(path, 512), 0);
	cr_expect_eq(elf_file_read(file, address, bytes, sizeof(bytes)), -EFAULT);
	cr_expect_eq(elf_file_function_bounds(file, address, &start, &size), -ENOENT);
	cr_expect_eq(elf_file_relocated(file, address, &value), -ENOENT);
	elf_file_close(file);
}
