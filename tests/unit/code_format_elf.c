/* SPDX-License-Identifier: BSD-2-Clause */
/* An object that is right, and what is said when one number of it is not. */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>

#include "code/format/object.h"

static struct object {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	unsigned char text[64];
	Elf64_Sym symbols[4];
	char names[32];
	Elf64_Shdr sections[4];
} object;
static struct code_contents contents;

static void make(void)
{
	static const char names[] = "\0kernel\0kernel.kd";

	memset(&object, 0, sizeof(object));
	memcpy(object.names, names, sizeof(names));
	object.header = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_AMDGPU,
		.e_flags = 0x3f,
		.e_phoff = offsetof(struct object, segment),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shoff = offsetof(struct object, sections),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 4,
	};
	object.segment = (Elf64_Phdr){ .p_type = PT_LOAD, .p_offset = 0, .p_filesz = sizeof(object) };
	object.symbols[1] = (Elf64_Sym){
		.st_name = 1, .st_info = STT_FUNC, .st_shndx = 1, .st_value = 0x1010, .st_size = 8
	};
	object.symbols[2] = (Elf64_Sym){
		.st_name = 8, .st_info = STT_OBJECT, .st_shndx = 1, .st_value = 0x1000, .st_size = 64
	};
	object.symbols[3] = (Elf64_Sym){ .st_name = 1, .st_info = STT_FUNC };
	object.sections[1] = (Elf64_Shdr){
		.sh_type = SHT_PROGBITS, .sh_addr = 0x1000, .sh_size = 64, .sh_offset = offsetof(struct object, text)
	};
	object.sections[2] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
					   .sh_size = sizeof(object.symbols),
					   .sh_link = 3,
					   .sh_entsize = sizeof(Elf64_Sym),
					   .sh_offset = offsetof(struct object, symbols) };
	object.sections[3] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
					   .sh_size = sizeof(object.names),
					   .sh_offset = offsetof(struct object, names) };
}

static void release(void)
{
	code_contents_free(&contents);
}

TestSuite(code_format_elf, .init = make, .fini = release);

static void expect_error(const char *error)
{
	code_contents_free(&contents);
	cr_assert_eq(code_read(&object, sizeof(object), CODE_UNKNOWN, &contents), 0);
	cr_expect_eq(contents.kind, CODE_HSACO);
	if (error)
		cr_expect(contents.error && strcmp(contents.error, error) == 0, "%s", contents.error);
	else
		cr_expect_null(contents.error, "%s", contents.error);
	make();
}

struct memory {
	size_t size;
	unsigned int reads;
};

static int read_object(void *context, __u64 offset, void *to, size_t length)
{
	struct memory *memory = context;

	memory->reads++;
	if (offset > memory->size || length > memory->size - offset)
		return -EFAULT;
	memcpy(to, (const char *)&object + offset, length);
	return 0;
}

static void expect_size(size_t there, __u64 limit, int error, __u64 expected)
{
	struct memory memory = { .size = there };
	__u64 size = 0;

	cr_expect_eq(code_own_size(read_object, &memory, limit, &size), error, "%zu bytes, limit %llu", there, limit);
	cr_expect_eq(size, expected);
	cr_expect_leq(memory.reads, 600, "%u reads", memory.reads);
	make();
}

Test(code_format_elf, right)
{
	expect_error(NULL);
	cr_assert_eq(contents.function_count, 1);
	cr_expect_str_eq(contents.machine, "gfx90a");
	cr_expect_str_eq(contents.functions[0].name, "kernel");
	cr_expect_eq(contents.functions[0].offset, offsetof(struct object, text) + 0x10);
	cr_expect_eq(contents.functions[0].address, 0x1010);
	cr_expect(contents.functions[0].kernel);
}

Test(code_format_elf, kernels)
{
	object.symbols[2].st_size = 63; /* no descriptor */
	expect_error(NULL);
	cr_expect_not(contents.functions[0].kernel);
	object.names[8] = 'K';
	expect_error(NULL);
	cr_expect_not(contents.functions[0].kernel);
}

Test(code_format_elf, lies)
{
	object.header.e_ident[EI_CLASS] = 3;
	expect_error("the header is cut off, or of an unknown class");
	object.header.e_shentsize = 8;
	expect_error("the header is cut off, or of an unknown class");
	object.header.e_shoff = sizeof(object);
	expect_error("the table of sections lies behind the end");
	object.header.e_shoff = ~0ull;
	expect_error("the table of sections lies behind the end");
	object.header.e_shnum = 0; /* section 0 tells: none */
	expect_error(NULL);
	cr_expect_eq(contents.function_count, 0);
	object.header.e_shnum = 0;
	object.sections[0].sh_size = ~0ull / sizeof(Elf64_Shdr) + 2;
	expect_error("the table of sections lies behind the end");
	object.sections[1].sh_size = ~0ull;
	expect_error("section 1 lies behind the end");
	object.sections[2].sh_link = 4;
	expect_error("the symbol table has no names, or too short entries");
	object.sections[2].sh_entsize = 0;
	expect_error("the symbol table has no names, or too short entries");
	object.symbols[1].st_name = 32;
	expect_error("the name of a symbol lies behind the end of all names");
	memset(object.names + 8, 'x', sizeof(object.names) - 8);
	object.symbols[1].st_name = 8;
	expect_error("the name of a symbol does not end, or names overlap");
	object.symbols[1].st_size = ~0ull;
	expect_error("function kernel lies behind the end");
	cr_expect_eq(contents.functions[0].size, 0);
	object.symbols[1].st_value = 0xfff; /* before its section */
	expect_error("function kernel lies behind the end");
	object.sections[1].sh_type = SHT_NOBITS; /* in a file of its own */
	expect_error(NULL);
	cr_expect_eq(contents.functions[0].offset, 0);
	cr_expect_eq(contents.functions[0].size, 8);
}

/* Symbols that share long names: no more is kept than a small multiple of the object. */
Test(code_format_elf, names_that_overlap)
{
	const size_t symbols = 20000, names = 1 << 20, size = sizeof(object) + symbols * sizeof(Elf64_Sym) + names;
	unsigned char *bytes = calloc(1, size);
	size_t kept = 0;

	cr_assert_not_null(bytes);
	object.sections[2].sh_offset = sizeof(object);
	object.sections[2].sh_size = symbols * sizeof(Elf64_Sym);
	object.sections[3].sh_offset = size - names;
	object.sections[3].sh_size = names;
	memcpy(bytes, &object, sizeof(object));
	for (size_t i = 1; i < symbols; i++)
		memcpy(bytes + sizeof(object) + i * sizeof(Elf64_Sym), &object.symbols[1], sizeof(Elf64_Sym));
	memset(bytes + size - names, 'x', names - 1);
	cr_assert_eq(code_read(bytes, size, CODE_UNKNOWN, &contents), 0);
	free(bytes);
	for (size_t i = 0; i < contents.function_count; i++)
		kept += strlen(contents.functions[i].name);
	cr_expect_leq(kept, 4 * size);
	cr_expect_str_eq(contents.error, "the name of a symbol does not end, or names overlap");
}

Test(code_format_elf, own_size)
{
	const __u64 limit = 1 << 20;

	expect_size(sizeof(object), limit, 0, sizeof(object));
	expect_size(sizeof(object), sizeof(object), 0, sizeof(object));
	expect_size(sizeof(object), sizeof(object) - 1, -EFBIG, 0);
	expect_size(3, limit, -EFAULT, 0);
	expect_size(40, limit, -EFAULT, 0);
	object.header.e_ident[0] = 'x';
	expect_size(sizeof(object), limit, -ENODATA, 0);
	object.header.e_ident[EI_DATA] = 0;
	expect_size(sizeof(object), limit, -EBADMSG, 0);
	object.segment.p_filesz = 5000;
	expect_size(sizeof(object), limit, 0, 5000);
	object.sections[1].sh_size = ~0ull;
	expect_size(sizeof(object), limit, -EBADMSG, 0);
	object.sections[1].sh_type = SHT_NOBITS;
	object.sections[1].sh_size = ~0ull;
	expect_size(sizeof(object), limit, 0, sizeof(object));
	object.header.e_shnum = 0;
	object.sections[0].sh_size = ~0ull / 64;
	expect_size(sizeof(object), ~0ull, -EBADMSG, 0);
	object.header.e_shoff = 0;
	expect_size(sizeof(object), limit, 0, sizeof(object));
}
