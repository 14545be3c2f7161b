/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_read FILE...: what is read from each, a line each with its kind in front, names last; elf_read -t: a mangled name of a type a line
 * of standard input, what it is in readable text or an empty line.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/file.h"
#include "target/elf/type_name.h"

#define EXTENTS_MAX 4096
#define TEXT_MAX 4096

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

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "-t"))
		print_types();
	for (int i = 1; i < argc && argv[1][0] != '-'; i++)
		print_file(argv[i]);
	return fflush(stdout) ? 1 : 0;
}
