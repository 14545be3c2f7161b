/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ELF reader, the table decoders, type information and the choice of sites, on any bytes. Answers are not judged, only
 * survived.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/probe/functions.h"
#include "target/process/loaded_code.h"
#include "target/probe/operators.h"

#include "tests/fuzz/require.h"

#define FUNCTIONS_MAX 256

static char *identity[] = { "execute" }, *execute[] = { "execute", "run" }, *pattern[] = { "lo*" };

static struct call_spec by_symbol[] = {
	{ .locate = LOCATE_SYMBOL, .symbols = execute, .symbol_count = 2, .function = "execute" },
	{ .locate = LOCATE_SYMBOL, .symbols = pattern, .symbol_count = 1, .function = "load", .wire.index = 1 },
};
static struct call_spec by_string[] = {
	{ .locate = LOCATE_REFERENCE,
	  .refers_to = "a string of the library",
	  .file = "*",
	  .function = "string",
	  .wire.index = 4 },
	{ .locate = LOCATE_VIRTUAL, .method_of = "rt::Kernel", .slot = 2, .function = "virtual", .wire.index = 5 }
};
static struct call_spec by_probe[] = {
	{ .locate = LOCATE_PROBE, .probe = "lib:step", .function = "step", .wire.index = 6 }
};
static struct call_spec by_slot[] = { { .locate = LOCATE_SLOT, .slot = 3, .function = "slot", .wire.index = 2 } };
static struct call_spec by_sized_slot[] = { { .locate = LOCATE_SLOT, .slot = 2, .function = "sized", .wire.index = 3 } };

static struct description runtimes[] = {
	{ .name = "symbols",
	  .title = "Symbols",
	  .identify = identity,
	  .identify_count = 1,
	  .calls = by_symbol,
	  .call_count = 2 },
	{ .name = "through",
	  .title = "Through",
	  .calls = by_slot,
	  .call_count = 1,
	  .index = 1,
	  .table = { .accessor = "get_base", .through_count = 1, .size_offset = -1 } },
	{ .name = "sized",
	  .title = "Sized",
	  .calls = by_sized_slot,
	  .call_count = 1,
	  .index = 2,
	  .table = { .accessor = "get_sized", .slots_offset = 8, .size_offset = 0 } },
	{ .name = "string", .title = "String", .calls = by_string, .call_count = 2, .index = 3 },
	{ .name = "probe", .title = "Probe", .calls = by_probe, .call_count = 1, .index = 4 },
};
#define RUNTIMES (sizeof(runtimes) / sizeof(runtimes[0]))

static struct call_spec *const specs[] = { &by_symbol[0], &by_symbol[1], &by_slot[0], &by_sized_slot[0],
					   &by_string[0], &by_string[1], &by_probe[0] };

static struct method_spec methods[] = { { .slot = 2 }, { .slot = 4 } };
static char *operator_names[] = { "_ZN2rt*7Compute*" };
static struct method_spec functions[] = {
	{ .call = { .locate = LOCATE_OPERATORS, .symbols = operator_names, .symbol_count = 1, .function = "Compute" } }
};
static const struct operators_spec operators_specs[] = { { .base = "rt::Kernel", .methods = methods, .method_count = 2 },
							 { .methods = functions, .method_count = 1 } };

struct walk {
	struct elf_file *file;
	unsigned int seen;
};

static int visit(void *context, const struct elf_symbol *symbol)
{
	struct walk *walk = context;
	__u64 start, size, offset, address, value;
	struct api_table table;
	struct site site;

	(void)elf_file_function_bounds(walk->file, symbol->address, &start, &size);
	if (elf_file_offset(walk->file, symbol->address, &offset) == 0)
		(void)elf_file_address(walk->file, offset, &address);
	(void)elf_file_relocated(walk->file, symbol->address & ~7ull, &value);
	for (unsigned int i = 0; i < 8; i++) {
		address = symbol->address + i * (walk->seen % 5);
		if (!site_choose(walk->file, address, walk->seen & 0x3f, &site))
			require(site.offset >= site.function && site_class_cost(site.class) &&
				strcmp(site_class_name(site.class), "unknown"));
		if (!site_choose_after(walk->file, address, &site))
			require(site.offset >= site.function && site.class != SITE_OPTIMISED);
	}
	for (unsigned int i = 1; i < 3; i++)
		if (api_table_from_file(NULL, walk->file, &runtimes[i].table, symbol->address, &table) == 0)
			api_table_free(&table);
	return ++walk->seen == FUNCTIONS_MAX;
}

static int visit_registered(void *context, __u64 function, const char *name)
{
	require(strlen(name) <= 4095 && elf_file_is_executable(context, function));
	return 0;
}

static int visit_section(void *context, const struct elf_section *section)
{
	char last;

	require(strlen(section->name) <= 63);
	require(!section->size || !elf_file_read_offset(context, section->offset + section->size - 1, &last, 1));
	return 0;
}

/* In this process, though the file may be hostile: what another one reads in it for the collector. */
static int list_here(void *context, const struct mapped_file *mapped, const struct file_codes **codes)
{
	static struct file_codes found;
	int descriptor = open(mapped->open_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), error;

	(void)context;
	file_codes_free(&found);
	if (descriptor < 0)
		return -errno;
	error = file_codes_read(NULL, descriptor, mapped->path, &found);
	close(descriptor);
	*codes = &found;
	return error;
}

/* The file as it is when a process has mapped it: what is listed lies in it. */
static void look_as_mapped(int fd, size_t size)
{
	static struct loaded_files files; /* what else is mapped is known */
	struct symbol_table *symbols;
	unsigned char *address = size ? mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	struct loaded_codes codes;
	char name[256];
	__u64 offset;

	if (address == MAP_FAILED)
		return;
	if (loaded_code_new(getpid(), NULL, list_here, NULL, &files, &codes) == 0) {
		for (size_t i = 0; i < codes.count; i++)
			require(codes.objects[i].library || codes.objects[i].length <= codes.objects[i].size);
		require(codes.count <= LOADED_CODE_MAX);
		loaded_codes_free(&codes);
	}
	if (!symbol_table_read(NULL, fd, "", &symbols)) {
		if (!symbol_table_find(symbols, size / 2, name, sizeof(name), &offset))
			kernel_name_of_stub(name);
		symbol_table_free(symbols);
	}
	munmap(address, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct description *list[RUNTIMES];
	struct registry registry = { .runtimes = list,
				     .runtime_count = RUNTIMES,
				     .specs = (void *)specs,
				     .spec_count = sizeof(specs) / sizeof(specs[0]) };
	struct mapped_file mapped = { .path = "input" };
	struct found_functions found;
	struct operators operators;
	struct walk walk = { 0 };
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	for (size_t i = 0; i < RUNTIMES; i++)
		list[i] = &runtimes[i];
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(mapped.open_path, sizeof(mapped.open_path), "/proc/self/fd/%d", fd);
	if (functions_find(NULL, &registry, &mapped, &found) == 0)
		found_functions_free(&found);
	if (elf_file_open(NULL, mapped.open_path, mapped.path, &walk.file) == 0) {
		(void)elf_file_each_function(walk.file, visit, &walk);
		(void)elf_file_each_registered(walk.file, visit_registered, walk.file);
		(void)elf_file_each_section(walk.file, visit_section, walk.file);
		for (unsigned int i = 0; i < 2; i++)
			if (operators_find(walk.file, &operators_specs[i], &operators) == 0)
				operators_free(&operators);
		elf_file_close(walk.file);
	}
	look_as_mapped(fd, size);
	close(fd);
	return 0;
}
