/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/process/loaded_code.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/process/process.h"
#include "target_support.h"

TestSuite(target_process_loaded_code_symbol, .fini = support_cleanup);

/* What is at an address of a process, read in the file that it has mapped there. */
struct process_symbols {
	struct wanted_mapping {
		__u64 address, offset;
		pid_t pid;
		char path[MAP_FILE_PATH_MAX];
	} wanted;
};

static struct process_symbols *process_symbols_create(const struct log *log)
{
	(void)log;
	return calloc(1, sizeof(struct process_symbols));
}

static void process_symbols_free(struct process_symbols *symbols)
{
	free(symbols);
}

static int look_at_mapping(void *context, const struct maps_entry *entry)
{
	struct wanted_mapping *wanted = context;

	if (wanted->address < entry->start || wanted->address >= entry->end)
		return 0;
	if (!maps_entry_has_file(entry))
		return -ENOENT;
	wanted->offset = entry->offset + (wanted->address - entry->start);
	maps_entry_open_path(entry, wanted->pid, wanted->path);
	return 1;
}

static int process_symbols_look(struct process_symbols *symbols, pid_t pid, __u64 address, char *name, size_t size,
				__u64 *offset)
{
	struct symbol_table *table;
	int error, descriptor;

	symbols->wanted = (struct wanted_mapping){ .address = address, .pid = pid };
	error = maps_each(pid, look_at_mapping, &symbols->wanted);
	if (error != 1)
		return error < 0 ? error : -ENOENT;
	descriptor = open(symbols->wanted.path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(descriptor, 0);
	error = symbol_table_read(NULL, descriptor, "", &table);
	if (!error) {
		error = symbol_table_find(table, symbols->wanted.offset, name, size, offset);
		symbol_table_free(table);
	}
	close(descriptor);
	return error;
}

#define TEXT                                             \
	"static int hidden(int a) { return a * 3; }\n"   \
	"int shown(int a) { return hidden(a) + 1; }\n"   \
	"int another(int a) { return hidden(a) - 1; }\n" \
	"int (*kernel_handle)(int) = shown;\n"           \
	"const int table[64] = { 1, 2, 3 };\n"           \
	"void *inner(void) { return (void *)hidden; }\n"

/* Each symbol of the file, as nm has it, at its address in the process. */
static size_t compare_with_nm(struct process_symbols *symbols, pid_t pid, const char *path, __u64 base)
{
	char command[512], line[512];
	size_t compared = 0;
	FILE *pipe;

	snprintf(command, sizeof(command), "nm -n --defined-only %s", path);
	pipe = popen(command, "r");
	cr_assert_not_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		char type, symbol[256], name[256];
		unsigned long long address;
		__u64 offset = 99;

		if (sscanf(line, "%llx %c %255s", &address, &type, symbol) != 3 || symbol[0] == '_' ||
		    !strchr("tTdDrR", type))
			continue;
		cr_expect_eq(process_symbols_look(symbols, pid, base + address, name, sizeof(name), &offset), 0, "%s",
			     symbol);
		cr_expect_str_eq(name, symbol);
		cr_expect_eq(offset, 0);
		compared++;
	}
	pclose(pipe);
	return compared;
}

Test(target_process_loaded_code_symbol, as_nm_has_them)
{
	const char *path = support_library("symbols.c", TEXT, "-O0");
	void *handle = dlopen(path, RTLD_NOW);
	struct process_symbols *symbols = process_symbols_create(NULL);
	char *shown, name[256];
	__u64 offset;
	Dl_info info;
	pid_t child;

	cr_assert_not_null(handle);
	cr_assert_not_null(symbols);
	shown = dlsym(handle, "shown");
	cr_assert_neq(dladdr(shown, &info), 0);
	cr_expect_eq(compare_with_nm(symbols, getpid(), path, (__u64)(uintptr_t)info.dli_fbase), 6);
	cr_expect_eq(process_symbols_look(symbols, getpid(), (__u64)(uintptr_t)shown + 5, name, sizeof(name), &offset),
		     0);
	cr_expect_str_eq(name, "shown");
	cr_expect_eq(offset, 5);
	cr_expect_eq(process_symbols_look(symbols, getpid(), (__u64)(uintptr_t)shown, name, 3, &offset), 0);
	cr_expect_str_eq(name, "sh");

	/* The same in another process, also when the file has no name any longer. */
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	cr_expect_eq(compare_with_nm(symbols, child, path, (__u64)(uintptr_t)info.dli_fbase), 6);
	cr_assert_eq(unlink(path), 0);
	name[0] = '\0';
	cr_expect_eq(process_symbols_look(symbols, child, (__u64)(uintptr_t)shown, name, sizeof(name), &offset), 0);
	cr_expect_str_eq(name, "shown");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	cr_expect_eq(process_symbols_look(symbols, child, (__u64)(uintptr_t)shown, name, sizeof(name), &offset),
		     -ESRCH);
	process_symbols_free(symbols);
	dlclose(handle);
}

/* Functions of the libraries that this process has mapped anyway, more files than are kept, in turns. */
Test(target_process_loaded_code_symbol, as_the_dynamic_loader_has_them)
{
	static const char *const names[] = { "qsort",	     "cJSON_Parse",	"bpf_object__open_file",
					     "gelf_getehdr", "pcre2_compile_8", "strtod",
					     "elf_begin",    "tep_alloc" };
	struct process_symbols *symbols = process_symbols_create(NULL);
	size_t compared = 0;

	for (int turn = 0; turn < 3; turn++)
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			void *address = dlsym(RTLD_DEFAULT, names[i]);
			char name[256] = "";
			__u64 offset;
			Dl_info info;

			if (!address)
				continue;
			compared++;
			cr_assert_neq(dladdr(address, &info), 0);
			cr_expect_eq(process_symbols_look(symbols, getpid(), (__u64)(uintptr_t)address, name,
							  sizeof(name), &offset),
				     0);
			/* one of several names of the place */
			cr_expect_eq((char *)dlsym(RTLD_DEFAULT, name) - (char *)address, 0, "%s for %s", name,
				     names[i]);
			cr_expect_eq(offset, 0);
		}
	cr_expect_geq(compared, 3 * 6);
	process_symbols_free(symbols);
}

Test(target_process_loaded_code_symbol, where_no_file_is)
{
	struct process_symbols *symbols = process_symbols_create(NULL);
	const char *path = support_path("text");
	char name[64], *heap = malloc(100000);
	void *mapped;
	__u64 offset;
	FILE *file;

	cr_expect_eq(process_symbols_look(symbols, getpid(), (__u64)(uintptr_t)heap, name, sizeof(name), &offset),
		     -ENOENT);
	cr_expect_eq(process_symbols_look(symbols, getpid(), (__u64)(uintptr_t)name, name, sizeof(name), &offset),
		     -ENOENT, "the stack");
	cr_expect_eq(process_symbols_look(symbols, getpid(), 1, name, sizeof(name), &offset), -ENOENT);
	cr_expect_eq(process_symbols_look(symbols, getpid(), ~0ull, name, sizeof(name), &offset), -ENOENT);
	support_write(path, "no program at all", 17);
	file = fopen(path, "re");
	mapped = mmap(NULL, 17, PROT_READ, MAP_PRIVATE, fileno(file), 0);
	cr_assert_neq(mapped, MAP_FAILED);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(process_symbols_look(symbols, getpid(), (__u64)(uintptr_t)mapped, name, sizeof(name),
						  &offset),
			     -ENOENT);
	fclose(file);
	free(heap);
	process_symbols_free(symbols);
}

/* ---- stubs ---- */

Test(target_process_loaded_code_symbol, stubs)
{
	static const char *const pairs[][2] = {
		{ "_Z24__device_stub__vectoraddPfS_", "_Z9vectoraddPfS_" },
		{ "__device_stub__plain", "plain" },
		{ "_ZN12_GLOBAL__N_117__device_stub__stEi", "_ZN12_GLOBAL__N_12stEi" },
		{ "_ZN2n219__device_stub__axpyIfEEvPT_S1_", "_ZN2n24axpyIfEEvPT_S1_" },
		{ "_ZL18__device_stub__abcv", "_ZL3abcv" },
		{ "_Z9vectoraddPfS_", "_Z9vectoraddPfS_" },
		{ "_Z15__device_stub__v", "_Z15__device_stub__v" },
		{ "_Z99__device_stub__short", "_Z99__device_stub__short" },
		{ "_Z99999999999999999999999__device_stub__short", "_Z99999999999999999999999__device_stub__short" },
		{ "_Z", "_Z" },
		{ "_ZN3foo", "_ZN3foo" },
		{ "", "" },
		{ "__device_stub__", "__device_stub__" },
		{ "main", "main" },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		char name[128];

		strcpy(name, pairs[i][0]);
		kernel_name_of_stub(name);
		cr_expect_str_eq(name, pairs[i][1]);
	}
}

static int add_name(void *context, __u64 function, const char *name)
{
	(void)function;
	*(size_t *)context += 1;
	cr_expect(strstr(name, "kernel"), "%s", name);
	return 0;
}

/* In a stripped file, what is registered for each static function, by the symbols of the same file before. */
static void expect_registered(const char *path, size_t kernels)
{
	const char *stripped = support_path("registered.stripped.so");
	struct log log = { 0 };
	int with = open(path, O_RDONLY), without;
	struct symbol_table *symbols, *names;
	struct elf_file *file;
	size_t count = 0, found = 0;
	char name[256], registered[256];
	struct stat status;
	__u64 offset;

	support_run("strip -o %s %s", stripped, path);
	without = open(stripped, O_RDONLY);
	cr_assert(with >= 0 && without >= 0 && !fstat(with, &status));
	cr_assert_eq(symbol_table_read(&log, with, path, &symbols), 0);
	cr_assert_eq(symbol_table_read(&log, without, stripped, &names), 0);
	for (__u64 at = 0; at < (__u64)status.st_size; at++) {
		if (symbol_table_registered(names, at, registered, sizeof(registered)))
			continue;
		found++;
		cr_expect_eq(symbol_table_find(symbols, at, name, sizeof(name), &offset), 0);
		cr_expect_eq(offset, 0);
		cr_expect(!strncmp(name, "kernel_", 7) && strstr(registered, name), "%s is %s", registered, name);
		cr_expect_eq(symbol_table_find(names, at, name, sizeof(name), &offset), -ENOENT);
	}
	cr_expect_eq(found, kernels, "%zu of %zu", found, kernels);
	cr_assert_eq(elf_file_open(&log, stripped, stripped, &file), 0);
	cr_expect_eq(elf_file_each_registered(file, add_name, &count), 0);
	cr_expect_eq(count, kernels);
	elf_file_close(file);
	symbol_table_free(symbols);
	symbol_table_free(names);
	close(with);
	close(without);
}

/* As the code that nvcc and clang generate for each file with kernels, compiled by those who compile that. */
Test(target_process_loaded_code_symbol, kernels_that_code_registers)
{
	static const char text[] =
		"extern void **register_binary(void *); extern void end(void **);\n"
		"extern void register_function(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);\n"
		"extern void register_variable(void **, char *, char *, const char *, int, unsigned long, int, int);\n"
		"extern void launch(const void *, int);\n"
		"static char variable[8]; static void **handle;\n"
		"#define KERNEL(n) __attribute__((noinline)) static void kernel_##n(int i) { launch((const void *)kernel_##n, i + n); }\n"
		"#define NAME(n) register_function(handle, (const char *)kernel_##n, (char *)\"_Z8kernel_\" #n \"i\", \"_Z8kernel_\" #n \"i\", "
		"-1, 0, 0, 0, 0, 0);\n"
		"KERNEL(1) KERNEL(2) KERNEL(3) KERNEL(4)\n"
		"void run(int i) { kernel_1(i); kernel_2(i); kernel_3(i); kernel_4(i); }\n"
		"__attribute__((constructor)) static void all(void) { handle = register_binary(variable); NAME(1)\n"
		"register_variable(handle, variable, (char *)\"kernel_variable\", \"kernel_variable\", 0, 8, 0, 0);\n"
		"NAME(2) NAME(3) NAME(4) end(handle); }\n";
	static const char *const compilers[] = { "gcc -O2", "gcc -O0", "gcc -Os", "clang -O2" };
	const char *source = support_path("registered.c"), *object = support_path("registered.so");

	support_needs_x86();
	support_write(source, text, sizeof(text) - 1);
	for (size_t i = 0; i < sizeof(compilers) / sizeof(compilers[0]); i++) {
		support_run("%s -w -shared -fPIC %s -o %s", compilers[i], source, object);
		expect_registered(object, 4);
	}
}

/* For HIP, clang names a variable of the host as the kernel is called on the device, beside each stub. */
Test(target_process_loaded_code_symbol, stubs_of_the_compiler)
{
	static const char text[] =
		"typedef unsigned long size_t; struct dim3 { unsigned x, y, z; };\n"
		"typedef int hipError_t; typedef struct S *hipStream_t;\n"
		"extern \"C\" hipError_t hipLaunchKernel(const void *, dim3, dim3, void **, size_t, hipStream_t);\n"
		"extern \"C\" int __hipPopCallConfiguration(dim3 *, dim3 *, size_t *, void *);\n"
		"#define K __attribute__((global))\n"
		"K void vectoradd(float *, float *) {}\n"
		"namespace n2 { template <class T> K void axpy(T *, T) {} }\n"
		"template K void n2::axpy<float>(float *, float);\n"
		"namespace a1 { namespace b22 { K void a_kernel_with_a_name_that_is_much_longer_than_that_of_others_and_"
		"then_more_than_a_hundred_bytes_long(int) {} } }\n"
		"namespace { K void hidden(int) {} }\n"
		"void *use() { return (void *)hidden; }\n"
		"extern \"C\" K void plain(int) {}\n";
	const char *source = support_path("kernels.hip"), *object = support_path("kernels.o");
	char command[512], line[512], (*names)[256] = calloc(64, sizeof(*names));
	size_t count = 0, stubs = 0;
	FILE *pipe;

	support_needs_clang();
	cr_assert_not_null(names);
	support_write(source, text, sizeof(text) - 1);
	support_run("clang -x hip --cuda-host-only -nogpuinc -nogpulib -c %s -o %s", source, object);
	snprintf(command, sizeof(command), "nm --defined-only %s", object);
	pipe = popen(command, "r");
	cr_assert_not_null(pipe);
	while (count < 64 && fgets(line, sizeof(line), pipe))
		count += sscanf(line, "%*x %*c %255s", names[count]) == 1;
	pclose(pipe);
	for (size_t i = 0; i < count; i++) {
		char kernel[256];
		bool found = false;

		if (!strstr(names[i], "__device_stub__"))
			continue;
		stubs++;
		strcpy(kernel, names[i]);
		kernel_name_of_stub(kernel);
		for (size_t j = 0; j < count && !found; j++)
			found = !strcmp(names[j], kernel);
		cr_expect(found, "%s of %s", kernel, names[i]);
	}
	cr_expect_eq(stubs, 5);
	free(names);
}
