/* SPDX-License-Identifier: BSD-2-Clause */
/* For the tests of user/target: files made on the spot, and other programs' opinion of them. */
#ifndef XPT_TESTS_TARGET_SUPPORT_H
#define XPT_TESTS_TARGET_SUPPORT_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/elf/file.h"

/* Options of compilers: functions begin with what branches may lead to, and have their return addresses signed; or neither. */
#ifdef __x86_64__
#define SUPPORT_MARKED "-fcf-protection=full"
#define SUPPORT_PLAIN "-fcf-protection=none"
#define SUPPORT_X86_64 true
#else
#define SUPPORT_MARKED "-mbranch-protection=standard"
#define SUPPORT_PLAIN "-mbranch-protection=none"
#define SUPPORT_X86_64 false
#endif

/* For a test of code of x86-64 that other programs of this machine have to make. */
static inline void support_needs_x86(void)
{
	if (!SUPPORT_X86_64)
		cr_skip_test("x86-64 only");
}

/* For what only another compiler than the system's makes. */
static inline void support_needs_clang(void)
{
	if (system("clang --version >/dev/null 2>&1"))
		cr_skip_test("there is no clang");
}

/* Each test runs in a process of its own: one directory each, removed by support_cleanup(). */
static char support_dir[64];

static inline const char *support_path(const char *name)
{
	static char paths[8][256];
	static unsigned int next;
	char *path = paths[next++ % 8];

	if (!support_dir[0]) {
		strcpy(support_dir, "/tmp/xputrace-test-XXXXXX");
		cr_assert_not_null(mkdtemp(support_dir));
	}
	snprintf(path, sizeof(paths[0]), "%s/%s", support_dir, name);
	return path;
}

__attribute__((format(printf, 1, 2))) static inline void support_run(const char *format, ...)
{
	char command[4096];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	/* the sanitizers' and the tests' own variables are none of the tools' business */
	cr_assert_eq(system(command), 0, "failed: %s", command);
}

static inline void support_cleanup(void)
{
	if (support_dir[0])
		support_run("rm -rf '%s'", support_dir);
	support_dir[0] = '\0';
}

static inline void support_write(const char *path, const void *bytes, size_t length)
{
	FILE *file = fopen(path, "we");

	cr_assert_not_null(file);
	cr_assert_eq(fwrite(bytes, 1, length, file), length);
	cr_assert_eq(fclose(file), 0);
}

static inline unsigned char *support_read(const char *path, size_t *length)
{
	FILE *file = fopen(path, "re");
	unsigned char *bytes;
	struct stat status;

	cr_assert_not_null(file, "%s", path);
	cr_assert_eq(fstat(fileno(file), &status), 0);
	bytes = malloc((size_t)status.st_size + 1);
	cr_assert_not_null(bytes);
	*length = fread(bytes, 1, (size_t)status.st_size, file);
	cr_assert_eq(*length, (size_t)status.st_size);
	fclose(file);
	return bytes;
}

/* Compiles text as name (its suffix tells the language) into a shared library; returns the library's path. */
static inline const char *support_library(const char *name, const char *text, const char *options)
{
	const char *source = support_path(name), *library = support_path("library.so");

	support_write(source, text, strlen(text));
	support_run("gcc -shared -fPIC -nostdlib %s -o %s %s", options, library, source);
	return library;
}

static inline struct elf_file *support_open(const char *path)
{
	struct elf_file *file = NULL;

	cr_assert_eq(elf_file_open(NULL, path, path, &file), 0, "%s", path);
	return file;
}

struct support_symbol {
	char name[256];
	unsigned long long address, size;
	bool indirect;
};

/* Defined functions of .dynsym (dynamic) or .symtab as readelf sees them; names without version. The caller frees. */
static inline struct support_symbol *support_symbols(const char *path, bool dynamic, size_t *count)
{
	struct support_symbol *symbols = NULL;
	char command[512], line[4096], type[32], section[32];
	FILE *pipe;

	snprintf(command, sizeof(command), "readelf -W %s %s 2>/dev/null", dynamic ? "--dyn-syms" : "-s", path);
	pipe = popen(command, "r");
	cr_assert_not_null(pipe);
	*count = 0;
	while (fgets(line, sizeof(line), pipe)) {
		struct support_symbol symbol = { 0 };
		char size[32], *unnamed = strstr(line, "<OS specific>: 10");

		/* what readelf calls it where the linker has not marked the file as a GNU one */
		if (unnamed)
			memcpy(unnamed, "IFUNC            ", 17);
		if (sscanf(line, " %*u: %llx %31s %31s %*s %*s %31s %255s", &symbol.address, size, type, section,
			   symbol.name) != 5 ||
		    !strcmp(section, "UND") || !symbol.address || (strcmp(type, "FUNC") && strcmp(type, "IFUNC")))
			continue;
		symbol.size = strtoull(size, NULL, 0);
		symbol.indirect = !strcmp(type, "IFUNC");
		symbol.name[strcspn(symbol.name, "@")] = '\0';
		symbols = realloc(symbols, (*count + 1) * sizeof(*symbols));
		cr_assert_not_null(symbols);
		symbols[(*count)++] = symbol;
	}
	pclose(pipe);
	return symbols;
}

#define SUPPORT_OUTPUT_MAX (1 << 20)

/* What a tool has printed of a file; asked again when the file is another one. */
struct support_output {
	char path[256];
	struct timespec changed;
	ino_t inode;
	char *text;
};

/* A stream of it, to be closed. */
static inline FILE *support_output(struct support_output *output, const char *tool, const char *path)
{
	struct stat status = { 0 };
	char command[512];
	size_t length;
	FILE *pipe;

	stat(path, &status);
	if (strcmp(output->path, path) || output->inode != status.st_ino ||
	    memcmp(&output->changed, &status.st_mtim, sizeof(status.st_mtim))) {
		snprintf(command, sizeof(command), "%s %s 2>/dev/null", tool, path);
		pipe = popen(command, "r");
		cr_assert_not_null(pipe);
		output->text = realloc(output->text, SUPPORT_OUTPUT_MAX);
		cr_assert_not_null(output->text);
		length = fread(output->text, 1, SUPPORT_OUTPUT_MAX - 1, pipe);
		output->text[length] = '\0';
		cr_assert(feof(pipe), "%s has more to print than there is room for", command);
		pclose(pipe);
		snprintf(output->path, sizeof(output->path), "%s", path);
		output->inode = status.st_ino;
		output->changed = status.st_mtim;
	}
	pipe = fmemopen(output->text, strlen(output->text) + 1, "r");
	cr_assert_not_null(pipe);
	return pipe;
}

/* Address of any symbol of the file, as nm sees it. */
static inline unsigned long long support_symbol(const char *path, const char *name)
{
	static struct support_output output;
	FILE *listed = support_output(&output, "nm", path);
	unsigned long long address = 0;
	bool found = false;
	char line[512];

	while (fgets(line, sizeof(line), listed)) {
		unsigned long long value;
		char symbol[256];

		if (sscanf(line, "%llx %*c %255s", &value, symbol) == 2 && !strcmp(symbol, name)) {
			address = value;
			found = true;
		}
	}
	fclose(listed);
	cr_assert(found, "%s has no symbol %s", path, name);
	return address;
}

/* File offset of an address, from readelf's list of segments. */
static inline unsigned long long support_offset(const char *path, unsigned long long address)
{
	static struct support_output output;
	FILE *listed = support_output(&output, "readelf -lW", path);
	unsigned long long offset = 0;
	char line[512];

	while (fgets(line, sizeof(line), listed)) {
		unsigned long long from, start, size;

		if (sscanf(line, " LOAD %llx %llx %*x %llx", &from, &start, &size) == 3 && address >= start &&
		    address < start + size)
			offset = address - start + from;
	}
	fclose(listed);
	return offset;
}

#endif
