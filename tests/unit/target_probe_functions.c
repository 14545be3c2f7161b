/* SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <link.h>

#include "target_support.h"

#include "target/probe/functions.h"

TestSuite(target_probe_functions, .fini = support_cleanup);

static const char source[] =
	"int first(int a) { return a + 1; } int second(int a) { return a * 2; }\n"
	"int first_v2(int a) __attribute__((alias(\"first\")));\n"
	"static int real(int a) { return a; } static void *choose(void) { return (void *)real; }\n"
	"int chosen(int a) __attribute__((ifunc(\"choose\")));\n"
	"int twin_a(int a) { return a ^ 5; } int twin_b(int a) { return a ^ 6; }\n"
	"static int s0(int a) { return a - 1; } static int s1(int a) { return a - 2; } static int s2(int a) { return a - 3; }\n"
	"struct api { unsigned long size; int (*slots[6])(int); };\n"
	"static struct api ready = {sizeof(struct api), {s0, s1, 0, s2, first}}, late;\n"
	"struct api *get_ready(void) { return &ready; }\n"
	"struct api *get_late(void) { return &late; }\n"
	"struct api *get_hidden(struct api *a) { return a; }\n"
	"void fill(void) { late.size = 32; late.slots[0] = s1; late.slots[2] = twin_a; }\n";

/* A runtime of up to eight calls, made by hand. */
struct fixture {
	struct description runtime;
	struct description *runtimes[1];
	struct registry registry;
	struct call_spec calls[8];
	char *names[8][3];
	char *identity[1];
	struct mapped_file mapped;
	struct found_functions found;
};

static void begin(struct fixture *fixture, char *identity, char *accessor)
{
	memset(fixture, 0, sizeof(*fixture));
	fixture->identity[0] = identity;
	fixture->runtime.name = "toy";
	fixture->runtime.title = "Toy";
	fixture->runtime.identify = fixture->identity;
	fixture->runtime.identify_count = identity ? 1 : 0;
	fixture->runtime.table.accessor = accessor;
	fixture->runtime.table.slots_offset = 8;
	fixture->runtime.calls = fixture->calls;
	fixture->runtimes[0] = &fixture->runtime;
	fixture->registry.runtimes = fixture->runtimes;
	fixture->registry.runtime_count = 1;
}

static struct call_spec *add_call(struct fixture *fixture)
{
	struct call_spec *spec = &fixture->calls[fixture->runtime.call_count];

	spec->wire.index = (__u16)fixture->runtime.call_count++;
	return spec;
}

static void add_symbol(struct fixture *fixture, char *name, char *second, char *third)
{
	char **names = fixture->names[fixture->runtime.call_count];
	struct call_spec *spec = add_call(fixture);

	names[0] = name;
	names[1] = second;
	names[2] = third;
	spec->locate = LOCATE_SYMBOL;
	spec->symbols = names;
	spec->symbol_count = third ? 3 : second ? 2 : 1;
	spec->function = name;
}

static void add_slot(struct fixture *fixture, unsigned int slot, char *name)
{
	struct call_spec *spec = add_call(fixture);

	spec->locate = LOCATE_SLOT;
	spec->slot = slot;
	spec->function = name;
}

static void find(struct fixture *fixture, const char *path)
{
	fixture->mapped.path = (char *)path;
	snprintf(fixture->mapped.open_path, sizeof(fixture->mapped.open_path), "%s", path);
	cr_assert_eq(functions_find(NULL, &fixture->registry, &fixture->mapped, &fixture->found), 0);
}

static const struct found_function *get(const struct fixture *fixture, __u16 spec, const char *path, const char *symbol)
{
	unsigned long long offset = support_offset(path, support_symbol(path, symbol));

	for (size_t i = 0; i < fixture->found.count; i++)
		if (fixture->found.functions[i].spec == spec && fixture->found.functions[i].site.function == offset)
			return &fixture->found.functions[i];
	return NULL;
}

/* Of this process. */
static int add_table(struct fixture *fixture, __u64 returned, __u64 bias)
{
	const struct pending_table *table = &fixture->found.tables[0];
	struct table_words words;
	int error = functions_read_table(table, getpid(), returned, bias, &words);

	if (error)
		return error;
	error = functions_add_table(NULL, &fixture->registry, &fixture->mapped, table->runtime, &words,
				    &fixture->found);
	table_words_free(&words);
	return error;
}

static void expect_sorted_and_probed_once(const struct found_functions *found)
{
	for (size_t i = 1; i < found->count; i++) {
		cr_expect_leq(found->functions[i - 1].site.offset, found->functions[i].site.offset);
		if (found->functions[i - 1].site.offset == found->functions[i].site.offset)
			cr_expect(found->functions[i].shared);
		else
			cr_expect_not(found->functions[i].shared);
	}
	cr_expect(!found->count || !found->functions[0].shared);
}

Test(target_probe_functions, by_symbol)
{
	const char *path = support_library("toy.c", source, "-O1");
	struct fixture fixture;

	begin(&fixture, "first", NULL);
	add_symbol(&fixture, "first", "first_v2", NULL);
	add_symbol(&fixture, "second", NULL, NULL);
	add_symbol(&fixture, "first_v2", NULL, NULL);
	add_symbol(&fixture, "twin_a", "twin_b", "twin_c");
	add_symbol(&fixture, "chosen", NULL, NULL);
	add_symbol(&fixture, "newer", NULL, NULL);
	find(&fixture, path);

	cr_expect_not_null(get(&fixture, 0, path, "first"));
	cr_expect_not_null(get(&fixture, 1, path, "second"));
	cr_assert_not_null(get(&fixture, 2, path, "first"));
	cr_expect(get(&fixture, 2, path, "first")->shared);
	cr_expect_not(get(&fixture, 0, path, "first")->shared);
	cr_expect_not_null(get(&fixture, 3, path, "twin_a"));
	cr_expect_not_null(get(&fixture, 3, path, "twin_b"));
	cr_expect_eq(fixture.found.count, 5, "%zu", fixture.found.count);
	cr_expect_eq(get(&fixture, 1, path, "second")->by, FOUND_SYMBOL);
	cr_expect_str_eq(get(&fixture, 1, path, "second")->symbol, "second");
	cr_expect_str_eq(fixture.found.missing, "toy: chosen: it is chosen when the program starts (IFUNC)\n"
						"toy: newer: the file does not define it\n");
	expect_sorted_and_probed_once(&fixture.found);
	found_functions_free(&fixture.found);
}

/* Two specs on one function that read different arguments still get one site. */
Test(target_probe_functions, one_site_for_different_arguments)
{
	static const char text[] =
		".globl f\n.type f,@function\nf: .cfi_startproc\nmov %rsi,%rdi\npush %rbx\npop %rbx\nret\n"
		".cfi_endproc\n.size f,.-f\n.globl g\n.type g,@function\n.set g,f\n";
	const char *path;
	struct fixture fixture;

	support_needs_x86();
	path = support_library("f.s", text, "");
	begin(&fixture, "f", NULL);
	add_symbol(&fixture, "f", NULL, NULL);
	add_symbol(&fixture, "g", NULL, NULL);
	fixture.calls[1].wire.fetches = 1; /* of argument 0 */
	find(&fixture, path);
	cr_assert_eq(fixture.found.count, 2);
	cr_expect_eq(fixture.found.functions[0].site.offset, fixture.found.functions[1].site.offset);
	cr_expect_eq(fixture.found.functions[0].spec, 0);
	cr_expect_not(fixture.found.functions[0].shared);
	cr_expect(fixture.found.functions[1].shared);
	found_functions_free(&fixture.found);
}

/* A function that falls into the next one: the probe behind its landing pad is on the other's entry. */
Test(target_probe_functions, function_that_falls_into_another)
{
	static const char text[] = ".globl f\n.type f,@function\n.globl g\n.type g,@function\nf: .cfi_startproc\n"
#ifdef __x86_64__
				   "endbr64\ng: push %rbx\npop %rbx\n"
#else
				   "hint #34\ng: nop\n"
#endif
				   "ret\n.cfi_endproc\n";
	const char *path = support_library("f.s", text, "");
	struct fixture fixture;

	begin(&fixture, "f", NULL);
	add_symbol(&fixture, "f", NULL, NULL);
	add_symbol(&fixture, "g", NULL, NULL);
	find(&fixture, path);
	cr_assert_eq(fixture.found.count, 2);
	expect_sorted_and_probed_once(&fixture.found);
	found_functions_free(&fixture.found);
}

Test(target_probe_functions, other_files_hold_nothing)
{
	const char *path = support_library("toy.c", source, "-O1");
	struct fixture fixture;

	begin(&fixture, "no_such_function", NULL);
	add_symbol(&fixture, "first", NULL, NULL); /* a name alone does not make the runtime */
	find(&fixture, path);
	cr_expect_eq(fixture.found.count, 0);
	cr_expect_null(fixture.found.missing);
	found_functions_free(&fixture.found);
}

Test(target_probe_functions, by_table)
{
	const char *path = support_library("toy.c", source, "-O2");
	struct fixture fixture;

	begin(&fixture, NULL, "get_ready");
	add_slot(&fixture, 0, "Zero");
	add_slot(&fixture, 3, "Three");
	add_slot(&fixture, 2, "Two");
	add_slot(&fixture, 6, "Six");
	find(&fixture, path);
	cr_assert_eq(fixture.found.count, 2);
	cr_assert_not_null(get(&fixture, 0, path, "s0"));
	cr_assert_not_null(get(&fixture, 1, path, "s2"));
	cr_expect_eq(get(&fixture, 0, path, "s0")->by, FOUND_TABLE_FILE);
	cr_expect_str_eq(get(&fixture, 0, path, "s0")->symbol, "Zero");
	cr_expect_eq(fixture.found.table_count, 0);
	cr_expect_str_eq(fixture.found.missing, "toy: Two: its slot of the API table holds no function of the file\n"
						"toy: Six: this version's API table is shorter\n");
	expect_sorted_and_probed_once(&fixture.found);
	found_functions_free(&fixture.found);
}

Test(target_probe_functions, table_filled_later)
{
	const char *path = support_library("toy.c", source, "-O2");
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	struct mapped_files files;
	struct fixture fixture;
	struct link_map *map;
	void (*fill)(void);
	__u64 table;

	cr_assert_not_null(handle, "%s", dlerror());
	cr_assert_eq(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
	begin(&fixture, NULL, "get_late");
	add_slot(&fixture, 0, "Zero");
	add_slot(&fixture, 2, "Two");
	add_symbol(&fixture, "twin_a", NULL, NULL);
	find(&fixture, path);
	cr_assert_eq(fixture.found.count, 1, "only what has a symbol");
	cr_assert_eq(fixture.found.table_count, 1);
	cr_expect_eq(fixture.found.tables[0].runtime, &fixture.runtime);
	cr_expect_eq(fixture.found.tables[0].accessor.function, support_offset(path, support_symbol(path, "get_late")));
	table = fixture.found.tables[0].table_address;
	cr_expect_eq(table, support_symbol(path, "late"));

	cr_assert_eq(process_mapped_files(getpid(), &files), 0);
	for (size_t i = 0; i < files.count; i++)
		if (!strcmp(files.files[i].path, path)) {
			fixture.mapped.start = files.files[i].start;
			fixture.mapped.offset = files.files[i].offset;
		}
	mapped_files_free(&files);
	cr_assert_neq(fixture.mapped.start, 0);
	cr_expect_eq(add_table(&fixture, map->l_addr + table, map->l_addr), -ENODATA, "not yet");
	*(void **)&fill = dlsym(handle, "fill");
	fill();
	cr_assert_eq(add_table(&fixture, map->l_addr + table, map->l_addr), 0);
	cr_assert_eq(fixture.found.count, 3);
	cr_assert_not_null(get(&fixture, 0, path, "s1"));
	cr_expect_eq(get(&fixture, 0, path, "s1")->by, FOUND_TABLE_MEMORY);
	cr_assert_not_null(get(&fixture, 1, path, "twin_a"));
	cr_expect(get(&fixture, 1, path, "twin_a")->shared, "the symbol's spec was there first");
	cr_expect_not(get(&fixture, 2, path, "twin_a")->shared);
	expect_sorted_and_probed_once(&fixture.found);
	found_functions_free(&fixture.found);
	dlclose(handle);
}

/* The accessor's code does not tell where the table is: what it returns will. */
Test(target_probe_functions, table_unknown)
{
	const char *path = support_library("toy.c", source, "-O2");
	struct fixture fixture;

	begin(&fixture, NULL, "get_hidden");
	add_slot(&fixture, 0, "Zero");
	find(&fixture, path);
	cr_assert_eq(fixture.found.table_count, 1);
	cr_expect_eq(fixture.found.tables[0].table_address, 0);
	fixture.runtime.table.through_count = 1;
	cr_expect_eq(add_table(&fixture, 8, 0), -ENOENT);
	found_functions_free(&fixture.found);
}

Test(target_probe_functions, no_such_file)
{
	struct registry registry = { 0 };
	struct mapped_file mapped = { .path = "gone", .open_path = "/proc/self/map_files/1-2" };
	struct found_functions found;

	cr_expect_lt(functions_find(NULL, &registry, &mapped, &found), 0);
	snprintf(mapped.open_path, sizeof(mapped.open_path), "/dev/null");
	cr_expect_eq(functions_find(NULL, &registry, &mapped, &found), -ENOEXEC);
}

Test(target_probe_functions, names)
{
	cr_expect_str_eq(found_by_name(FOUND_SYMBOL), "symbol");
	cr_expect_str_eq(found_by_name(FOUND_TABLE_FILE), "table");
	cr_expect_str_eq(found_by_name(FOUND_TABLE_MEMORY), "table in memory");
	cr_expect_str_eq(found_by_name(FOUND_RESOLVED), "resolved");
}

/* ---- damaged files ---- */

static const char referring[] = "const char *mark(int a) { return a ? \"only this one refers to it\" : \"\"; }\n";

/* One that is found by the string that it refers to. */
static void add_reference(struct fixture *fixture)
{
	struct call_spec *spec = add_call(fixture);

	spec->locate = LOCATE_REFERENCE;
	spec->refers_to = "only this one refers to it";
	spec->file = "*";
	spec->function = "mark";
}

/* Strings are searched for where there is no table. */
static void begin_fixture(struct fixture *fixture, const char *path, bool table)
{
	begin(fixture, table ? NULL : "first", table ? "get_ready" : NULL);
	add_symbol(fixture, "first", NULL, NULL);
	add_symbol(fixture, "second", NULL, NULL);
	add_symbol(fixture, "twin_a", NULL, NULL);
	add_symbol(fixture, "fill", NULL, NULL);
	if (table) {
		add_slot(fixture, 0, "Zero");
		add_slot(fixture, 1, "One");
		add_slot(fixture, 3, "Three");
	} else {
		add_reference(fixture);
	}
	fixture->mapped.path = (char *)path;
	snprintf(fixture->mapped.open_path, sizeof(fixture->mapped.open_path), "%s", path);
}

#define MUTATIONS 500
#define WORDS 4 /* of a table in memory, which may be any addresses */

/* Offsets in the file at which instructions begin, as another tool has them. */
static bool *instructions_of(const char *path, size_t length, size_t *begin, size_t *end)
{
	unsigned long long bias = support_symbol(path, "first") - support_offset(path, support_symbol(path, "first"));
	bool *begins = calloc(length, sizeof(*begins));
	const char *list = support_path("instructions");
	unsigned long long address;
	FILE *file;

	cr_assert_not_null(begins);
	support_run("objdump -d --section=.text %s | sed -n 's/^ *\\([0-9a-f]*\\):.*/\\1/p' > %s", path, list);
	file = fopen(list, "re");
	cr_assert_not_null(file);
	*begin = length;
	*end = 0;
	while (fscanf(file, "%llx", &address) == 1) {
		cr_assert_lt(address - bias, length);
		begins[address - bias] = true;
		*begin = address - bias < *begin ? address - bias : *begin;
		*end = address - bias > *end ? address - bias : *end;
	}
	fclose(file);
	cr_assert_lt(*begin, *end);
	return begins;
}

/* One of the symbols, in either table, becomes that of a function anywhere in the code. */
static void move_symbol(unsigned char *bytes, size_t length, __u64 code, size_t code_size, unsigned int *random)
{
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)bytes;
	const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(bytes + header->e_shoff), *table;
	Elf64_Sym *symbol;
	unsigned int wanted = rand_r(random) % 2 ? SHT_SYMTAB : SHT_DYNSYM;

	cr_assert_leq(header->e_shoff + header->e_shnum * sizeof(*sections), length);
	for (table = sections; table->sh_type != wanted; table++)
		cr_assert_lt(table - sections + 1, header->e_shnum);
	symbol = (Elf64_Sym *)(bytes + table->sh_offset) + rand_r(random) % (table->sh_size / sizeof(*symbol));
	symbol->st_value = code + rand_r(random) % code_size;
	symbol->st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
}

/* Whatever symbols, strings, tables (also those in memory), relocations and frames say: no probe lands inside an instruction of the code, which is as it was. */
Test(target_probe_functions, no_probe_inside_an_instruction)
{
	char all[sizeof(source) + sizeof(referring)];
	const char *path, *damaged = support_path("damaged.so");
	unsigned long long address;
	size_t length, begin, end, headers, sites = 0, by[FOUND_REFERENCE + 1] = { 0 };
	__u64 words[WORDS];
	struct table_words memory = { .words = words, .count = WORDS };
	unsigned char *bytes, *copy;
	unsigned int random = 1;
	struct fixture fixture;
	bool *begins;

	snprintf(all, sizeof(all), "%s%s", source, referring);
	path = support_library("toy.c", all, "-O2");
	bytes = support_read(path, &length);
	copy = malloc(length);
	begins = instructions_of(path, length, &begin, &end);
	address = support_symbol(path, "first") - support_offset(path, support_symbol(path, "first")) + begin;
	cr_assert_not_null(copy);
	/* What is mapped where stays: else other bytes are the code. */
	headers = sizeof(ElfW(Ehdr)) + ((ElfW(Ehdr) *)bytes)->e_phnum * sizeof(ElfW(Phdr));
	for (unsigned int i = 0; i < MUTATIONS; i++) {
		memcpy(copy, bytes, length);
		if (i / 4 % 2)
			move_symbol(copy, length, address, end - begin, &random);
		for (unsigned int change = 0; change <= i % 8; change++) {
			size_t at = headers + (size_t)rand_r(&random) * 16 % (length - headers) + rand_r(&random) % 16;

			if (at < length && (at < begin || at > end + 16))
				copy[at] = rand_r(&random) % 2 ? rand_r(&random) : copy[at] + 1;
		}
		support_write(damaged, copy, length);
		begin_fixture(&fixture, damaged, i % 4);
		if (functions_find(NULL, &fixture.registry, &fixture.mapped, &fixture.found))
			continue;
		fixture.mapped.start = 0x7f0000000000;
		fixture.mapped.offset = begin;
		for (size_t word = 0; word < WORDS; word++)
			words[word] = fixture.mapped.start + (__u64)rand_r(&random) % (end - begin);
		if (i % 4)
			functions_add_table(NULL, &fixture.registry, &fixture.mapped, &fixture.runtime, &memory,
					    &fixture.found);
		for (size_t f = 0; f < fixture.found.count; f++, sites++) {
			__u64 offset = fixture.found.functions[f].site.offset;

			cr_expect(offset < begin || offset > end || begins[offset], "%u: %s at 0x%llx, by %d", i,
				  fixture.found.functions[f].symbol, (unsigned long long)offset,
				  fixture.found.functions[f].by);
			by[fixture.found.functions[f].by]++;
		}
		found_functions_free(&fixture.found);
	}
	cr_expect_gt(sites, MUTATIONS);
	cr_expect(by[FOUND_SYMBOL] && by[FOUND_TABLE_FILE] && by[FOUND_TABLE_MEMORY] && by[FOUND_REFERENCE],
		  "%zu by symbol, %zu in tables, %zu in memory, %zu by string", by[FOUND_SYMBOL], by[FOUND_TABLE_FILE],
		  by[FOUND_TABLE_MEMORY], by[FOUND_REFERENCE]);
	free(begins);
	free(bytes);
	free(copy);
}
