/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_read FILE...: what is read from each, a line each with its kind in front, names last.
 * elf_read -t: a mangled name of a type a line of standard input, what it is in readable text or an empty line.
 * elf_read -i FILE START END: what is known of each instruction of AArch64 in between, two addresses: where it is, flow, whether it is
 * emulated, refused, moves the stack pointer, is transparent, marks a landing; where it leads.
 * elf_read -s FILE: an address of a function a line of standard input; it, 0 or the error, how far behind it the probe sits, its class.
 * elf_read -r FILE: a string a line of standard input; the number of each from 0 on, and a function that refers to it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/file.h"
#include "target/elf/type_name.h"
#include "target/probe/decoder.h"
#include "target/probe/site.h"

#define EXTENTS_MAX 4096
#define TEXT_MAX 4096
#define STRINGS_MAX 4096

static int print_section(void *context, const struct elf_section *section)
{
	(void)context;
	printf("section %llx %llx %s\n", section->offset, section->size, section->name);
	return 0;
}

static int print_function(void *context, const struct elf_symbol *symbol)
{
	(void)context;
	printf("function %llx %llx %d %s\n", symbol->address, symbol->size, symbol->indirect, symbol->name);
	return 0;
}

static void print_file(const char *path)
{
	static struct elf_extent extents[EXTENTS_MAX];
	struct elf_file *file;
	int error = elf_file_open(NULL, path, path, &file);
	size_t count;

	printf("file %d %s\n", error, path);
	if (error)
		return;
	printf("build_id %s\n", elf_file_build_id(file));
	count = elf_file_extents(file, extents, EXTENTS_MAX);
	for (size_t i = 0; i < count && i < EXTENTS_MAX; i++)
		printf("extent %llx %llx %llx %d\n", extents[i].offset, extents[i].size, extents[i].address,
		       extents[i].executable);
	elf_file_each_section(file, print_section, NULL);
	elf_file_each_function(file, print_function, NULL);
	elf_file_close(file);
}

static void print_types(void)
{
	char text[TEXT_MAX], *line = NULL;
	size_t room = 0;
	ssize_t length;

	while ((length = getline(&line, &room, stdin)) > 0) {
		line[length - (line[length - 1] == '\n')] = '\0';
		type_name_read(line, text, sizeof(text));
		puts(text);
	}
	free(line);
}

static void print_instructions(struct elf_file *file, __u64 start, __u64 end)
{
	for (__u64 address = start; address < end; address += 4) {
		struct site_instruction one;
		unsigned char bytes[4];

		if (elf_file_read(file, address, bytes, sizeof(bytes)) ||
		    site_decode_arm64(bytes, sizeof(bytes), address, &one))
			continue;
		printf("%llx %d %d %d %d %d %d %llx\n", address, one.flow, one.emulated, one.refused, one.stack,
		       one.transparent, one.landing, one.target);
	}
}

static void print_sites(struct elf_file *file)
{
	unsigned long long address;

	while (scanf("%llx", &address) == 1) {
		struct site site = { 0 };
		int error = site_choose(file, address, 0, &site);

		printf("%llx %d %llx %s\n", address, error, site.offset - site.function, site_class_name(site.class));
	}
}

static int print_reference(void *context, size_t string, __u64 function)
{
	(void)context;
	printf("%zu %llx\n", string, function);
	return 0;
}

static int print_references(struct elf_file *file)
{
	static char *strings[STRINGS_MAX];
	size_t count = 0, room = 0;
	ssize_t length;
	int error;

	while (count < STRINGS_MAX && (length = getline(&strings[count], &room, stdin)) > 0) {
		strings[count][length - 1] = '\0';
		count++;
		room = 0;
	}
	error = elf_file_each_reference(file, (const char *const *)strings, count, print_reference, NULL);
	for (size_t i = 0; i < STRINGS_MAX; i++)
		free(strings[i]);
	return error;
}

static int print_code(char option, char **words)
{
	struct elf_file *file;
	int error = elf_file_open(NULL, words[0], words[0], &file);

	if (error)
		return error;
	if (option == 'i')
		print_instructions(file, strtoull(words[1], NULL, 16), strtoull(words[2], NULL, 16));
	else if (option == 's')
		print_sites(file);
	else
		error = print_references(file);
	elf_file_close(file);
	return error;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "-t"))
		print_types();
	else if (argc > 2 && argv[1][0] == '-' && print_code(argv[1][1], argv + 2))
		return 1;
	for (int i = 1; i < argc && argv[1][0] != '-'; i++)
		print_file(argv[i]);
	return fflush(stdout) ? 1 : 0;
}
