/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <link.h>

#include "target/probe/decoder.h"
#include "target/probe/functions.h"
#include "target_support.h"

/* The witness is the library itself: it is loaded into this process, and its accessor is called. */

TestSuite(target_probe_table, .fini = support_cleanup);

#define SLOTS 24

/* Like ONNX Runtime: object -> accessor by version, with an error path that logs -> table. */
static const char versioned[] =
	"extern int say(void *, const char *, ...) __attribute__((weak)); extern void *where __attribute__((weak));\n"
	"#define F(n) static int f##n(int a) { return a * n + 1; }\n"
	"F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12)\n"
	"#define ALL f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12\n"
	"static int (*const table[24])(int) = {ALL, ALL};\n"
	"static const char *const messages[] = {\"one\", \"two\"};\n"
	"static const void *get(unsigned version) {\n"
	"	if (version >= 1 && version <= 30) return table;\n"
	"	say(where, messages[version & 1], version, 30); return 0; }\n"
	"static const char *text(void) { return \"1.2.3\"; }\n"
	"struct base { const void *(*get)(unsigned); const char *(*text)(void); };\n"
	"static const struct base object = {get, text};\n"
	"const struct base *Accessor(void) { return &object; }\n"
	"const struct base *Jumping(void) { return Accessor(); }\n";

static const struct table_spec versioned_spec = { .accessor = "Accessor",
						  .through = { 0 },
						  .through_count = 1,
						  .slots_offset = 0,
						  .size_offset = -1 };

struct loaded {
	struct elf_file *file;
	void *handle;
	__u64 bias;
};

static void load(const char *path, struct loaded *loaded)
{
	struct link_map *map;

	loaded->file = support_open(path);
	loaded->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	cr_assert_not_null(loaded->handle, "%s", dlerror());
	cr_assert_eq(dlinfo(loaded->handle, RTLD_DI_LINKMAP, &map), 0);
	loaded->bias = map->l_addr;
}

static void unload(struct loaded *loaded)
{
	dlclose(loaded->handle);
	elf_file_close(loaded->file);
}

static __u64 address_of(const struct loaded *loaded, const char *name)
{
	void *symbol = dlsym(loaded->handle, name);

	cr_assert_not_null(symbol, "%s", name);
	return (__u64)(uintptr_t)symbol - loaded->bias;
}

static void expect_slots(const struct loaded *loaded, const struct api_table *table, void *const *truth, size_t count,
			 const char *what)
{
	cr_assert_eq(table->address + loaded->bias, truth, "%s", what);
	cr_assert_geq(table->slot_count, count, "%s: %zu slots", what, table->slot_count);
	for (size_t i = 0; i < count; i++) {
		if (truth[i])
			cr_assert_eq(table->slots[i] + loaded->bias, truth[i], "%s, slot %zu", what, i);
		else
			cr_assert_eq(table->slots[i], 0, "%s, slot %zu", what, i);
	}
}

static const char *const compilers[] = {
	"-O0",
	"-O1",
	"-O2",
	"-O3 " SUPPORT_MARKED,
	"-Os " SUPPORT_PLAIN,
	"-O2 -fstack-protector-all",
	"-O2 -s",
	"-O2 -Wl,-z,pack-relative-relocs",
	"-O2 -fno-omit-frame-pointer -fno-asynchronous-unwind-tables",
};

Test(target_probe_table, object_and_version_check)
{
	for (size_t i = 0; i < sizeof(compilers) / sizeof(*compilers); i++) {
		struct loaded loaded;
		struct api_table table;
		const void *(**object)(unsigned int);
		const void *(**(*accessor)(void))(unsigned int);

		load(support_library("versioned.c", versioned, compilers[i]), &loaded);
		*(void **)&accessor = dlsym(loaded.handle, "Accessor");
		object = accessor();
		cr_assert_eq(api_table_from_file(NULL, loaded.file, &versioned_spec, address_of(&loaded, "Accessor"),
						 &table),
			     0, "%s", compilers[i]);
		expect_slots(&loaded, &table, (void *const *)object[0](1), SLOTS, compilers[i]);
		api_table_free(&table);
		unload(&loaded);
	}
}

/* An accessor that only jumps to another one, past the linker's indirection. */
Test(target_probe_table, accessor_that_jumps)
{
	struct loaded loaded;
	struct api_table table;

	load(support_library("versioned.c", versioned, "-O2 -Wl,-Bsymbolic -fno-inline -fno-ipa-icf"), &loaded);
	cr_assert_eq(api_table_from_file(NULL, loaded.file, &versioned_spec, address_of(&loaded, "Jumping"), &table),
		     0);
	cr_expect_geq(table.slot_count, SLOTS);
	api_table_free(&table);
	unload(&loaded);
}

/* Like PJRT: a size in front, filled by the compiler, with an empty slot. */
static const char sized[] =
	"#include <stddef.h>\n"
	"static int f(int a) { return a + 1; } static int g(int a) { return a + 2; }\n"
	"struct api { size_t size; void *extension; int (*slots[10])(int); };\n"
	"static struct api ready = {sizeof(struct api), 0, {f, 0, g, f, 0, 0, g}};\n"
	"static struct api late;\n"
	"struct api *Ready(void) { return &ready; }\n"
	"struct api *Late(void) { late.size = sizeof(late); late.slots[0] = g; late.slots[9] = f; return &late; }\n"
	"struct api *Empty(void) { return &late; }\n"
	"static struct api guarded; static char done;\n"
	"struct api *Guarded(void) { if (!done) { guarded.size = sizeof(guarded); guarded.slots[3] = g; done = 1; }\n"
	"	return &guarded; }\n"
	"struct api *exported = &ready; struct api *Variable(void) { return exported; }\n";

static const struct table_spec sized_spec = { .accessor = "Ready", .slots_offset = 16, .size_offset = 0 };

static void *const *call(const struct loaded *loaded, const char *name)
{
	void *(*accessor)(void);

	*(void **)&accessor = dlsym(loaded->handle, name);
	cr_assert_not_null(accessor);
	return accessor();
}

Test(target_probe_table, with_its_size)
{
	for (size_t i = 0; i < sizeof(compilers) / sizeof(*compilers); i++) {
		struct loaded loaded;
		struct api_table table;
		void *const *truth;

		load(support_library("sized.c", sized, compilers[i]), &loaded);
		truth = call(&loaded, "Ready");
		cr_assert_eq(api_table_from_file(NULL, loaded.file, &sized_spec, address_of(&loaded, "Ready"), &table),
			     0, "%s", compilers[i]);
		cr_expect_eq(table.slot_count, 10);
		cr_expect_eq(table.address + loaded.bias, truth);
		for (size_t j = 0; j < 10; j++)
			cr_expect_eq(table.slots[j] + (truth[2 + j] ? loaded.bias : 0), truth[2 + j], "%s, slot %zu",
				     compilers[i], j);
		api_table_free(&table);
		/* through a pointer that the loader relocates */
		cr_assert_eq(api_table_from_file(NULL, loaded.file, &sized_spec, address_of(&loaded, "Ready"), &table),
			     0);
		api_table_free(&table);
		unload(&loaded);
	}
}

Test(target_probe_table, filled_at_run_time)
{
	static const char *const names[] = { "Late", "Empty", "Guarded" };

	for (size_t i = 0; i < sizeof(compilers) / sizeof(*compilers); i++) {
		struct loaded loaded;

		load(support_library("sized.c", sized, compilers[i]), &loaded);
		for (size_t j = 0; j < 3; j++) {
			struct api_table table;

			cr_assert_eq(api_table_from_file(NULL, loaded.file, &sized_spec, address_of(&loaded, names[j]),
							 &table),
				     -ENODATA, "%s %s", compilers[i], names[j]);
			cr_expect_eq(table.address + loaded.bias, call(&loaded, names[j]), "%s %s", compilers[i],
				     names[j]);
			cr_expect_eq(table.slot_count, 0);
			cr_expect_null(table.slots);
		}
		unload(&loaded);
	}
}

static int table_from_memory(struct elf_file *file, const struct table_spec *spec, pid_t pid, __u64 address, __u64 bias,
			     struct api_table *table)
{
	struct table_words words;
	int error = table_words_read(spec, pid, address, &words);

	if (error)
		return error;
	error = api_table_from_words(NULL, file, spec, &words, bias, table);
	table_words_free(&words);
	return error;
}

Test(target_probe_table, from_memory)
{
	struct loaded loaded;
	struct api_table table;
	void *const *truth;
	__u64 address;

	load(support_library("sized.c", sized, "-O2"), &loaded);
	address = (__u64)(uintptr_t)call(&loaded, "Empty");
	cr_expect_eq(table_from_memory(loaded.file, &sized_spec, getpid(), address, loaded.bias, &table), -ENODATA,
		     "size is still 0");
	truth = call(&loaded, "Late");
	cr_assert_eq(table_from_memory(loaded.file, &sized_spec, getpid(), address, loaded.bias, &table), 0);
	cr_expect_eq(table.slot_count, 10);
	cr_expect_eq(table.address + loaded.bias, address);
	for (size_t i = 0; i < 10; i++)
		cr_expect_eq(table.slots[i] + (truth[2 + i] ? loaded.bias : 0), truth[2 + i], "slot %zu", i);
	api_table_free(&table);
	cr_expect_eq(table_from_memory(loaded.file, &sized_spec, getpid(), 16, loaded.bias, &table), -ENODATA);
	cr_expect_eq(table_from_memory(loaded.file, &sized_spec, 0x3fffff, address, loaded.bias, &table), -ESRCH);
	unload(&loaded);
}

/* Without a size the table ends at the first word that is no address of the library's code. */
Test(target_probe_table, from_memory_without_size)
{
	const void *(**object)(unsigned int);
	struct loaded loaded;
	struct api_table table;
	void *const *truth;

	load(support_library("versioned.c", versioned, "-O2"), &loaded);
	object = (void *)call(&loaded, "Accessor");
	truth = object[0](1);
	cr_assert_eq(table_from_memory(loaded.file, &versioned_spec, getpid(), (__u64)(uintptr_t)truth, loaded.bias,
				       &table),
		     0);
	expect_slots(&loaded, &table, truth, SLOTS, "memory");
	api_table_free(&table);
	unload(&loaded);
}

#ifdef __x86_64__
#define ADDRESS "lea \\name(%rip),%rax\n"
#else
#define ADDRESS "adrp x0,\\name\nadd x0,x0,:lo12:\\name\n"
#endif

/* The object on the way begins where the table ends: its addresses are no slots. */
Test(target_probe_table, ends_at_the_object)
{
	static const char source[] =
		".macro address name\n" ADDRESS ".endm\n"
		".text\n.p2align 4\nf: ret\nget: address table\nret\n"
		".globl Accessor\n.type Accessor,@function\nAccessor: address object\nret\n"
		".section .data.rel.ro,\"aw\"\ntable: .rept 10\n.quad f\n.endr\nobject: .quad get, f\n"
		".section .note.GNU-stack,\"\",@progbits\n";
	const char *path = support_library("adjacent.s", source, "");
	struct elf_file *file = support_open(path);
	struct api_table table;

	cr_assert_eq(api_table_from_file(NULL, file, &versioned_spec, support_symbol(path, "Accessor"), &table), 0);
	cr_expect_eq(table.slot_count, 10);
	cr_expect_eq(table.address, support_symbol(path, "table"));
	api_table_free(&table);
	elf_file_close(file);
}

Test(target_probe_table, no_accessor)
{
	static const char source[] = "int Number(void) { return 5; } extern void *more(void); char data[16];\n"
				     "void *Call(void) { return (char *)more() + 1; }\n"
				     "void Nothing(void) {} void *Same(void *p) { return p; }\n";
	static const char *const names[] = { "Number", "Call", "Nothing", "Same" };
	const char *path = support_library("none.c", source, "-O2");
	struct elf_file *file = support_open(path);
	struct api_table table;

	for (size_t i = 0; i < 4; i++) {
		cr_expect_eq(api_table_from_file(NULL, file, &sized_spec, support_symbol(path, names[i]), &table),
			     -ENOENT, "%s", names[i]);
		cr_expect_eq(api_table_from_file(NULL, file, &versioned_spec, support_symbol(path, names[i]), &table),
			     -ENOENT, "%s", names[i]);
	}
	cr_expect_eq(api_table_from_file(NULL, file, &sized_spec, support_symbol(path, "data"), &table), -ENOENT);
	elf_file_close(file);
}

static const struct table_candidate *find(const struct table_candidates *candidates, __u64 address)
{
	for (size_t i = 0; i < candidates->count; i++)
		if (candidates->list[i].address == address)
			return &candidates->list[i];
	return NULL;
}

/* if (bad) { log(); x = 0; } else x = table; return x; the way of NULL must not hide the other. */
Test(target_probe_table, ways_join)
{
	struct table_candidates candidates = { 0 };
	struct table_walk walk;

	table_walk_begin(&walk, 0x1000, 0x100, &candidates);
	table_walk_arrive(&walk, 0x1000);
	table_walk_branch(&walk, 0x1020);
	table_walk_compute(&walk, 0, 0x5000, false);
	table_walk_jump(&walk, 0x1030);
	table_walk_arrive(&walk, 0x1020);
	cr_expect_not(walk.now.registers[0].known, "the branch was taken before");
	table_walk_forget(&walk, 0);
	table_walk_arrive(&walk, 0x1030);
	table_walk_return(&walk, 0);
	cr_assert_not_null(find(&candidates, 0x5000));
	cr_expect(find(&candidates, 0x5000)->returned);
	cr_expect_eq(candidates.count, 1);
	cr_expect_eq(candidates.tail, 0);
}

Test(target_probe_table, nothing_survives_a_return)
{
	struct table_candidates candidates = { 0 };
	struct table_walk walk;

	table_walk_begin(&walk, 0x1000, 0x100, &candidates);
	table_walk_set(&walk, 3, 0x5000, true);
	table_walk_copy(&walk, 0, 3);
	table_walk_return(&walk, 0);
	table_walk_arrive(&walk, 0x1010);
	table_walk_return(&walk, 3);
	cr_assert_eq(candidates.count, 1);
	cr_expect(candidates.list[0].loaded);
	cr_expect(candidates.list[0].returned);
}

Test(target_probe_table, leaves_the_function)
{
	struct table_candidates candidates = { 0 };
	struct table_walk walk;

	table_walk_begin(&walk, 0x1000, 0x100, &candidates);
	table_walk_jump(&walk, 0x4000);
	table_walk_jump(&walk, 0x5000);
	cr_expect_eq(candidates.tail, 0x4000);
}

/* More branches and addresses than there is room for are dropped. */
Test(target_probe_table, bounded)
{
	struct table_candidates candidates = { 0 };
	struct table_walk walk;

	table_walk_begin(&walk, 0x1000, 0x1000, &candidates);
	for (__u64 i = 0; i < 100; i++) {
		table_walk_compute(&walk, 0, 0x5000 + 8 * (i % 50), false);
		table_walk_branch(&walk, 0x1004 + i);
	}
	cr_expect_eq(candidates.count, TABLE_CANDIDATE_MAX);
	cr_expect_eq(walk.pending_count, TABLE_MERGE_MAX);
}
