/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/process/loaded_code.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "target_support.h"

#include "target/process/process.h"

TestSuite(target_process_loaded_code, .fini = support_cleanup);

#define FATBIN(length, byte) \
	".long 0xba55ed50; .short 1; .short 16; .quad " length "; .fill " length ", 1, " byte "; .p2align 3\n"
#define SECTIONS                                                         \
	".section .hip_fatbin, \"a\"\n.p2align 12\n"                     \
	".fill 9000, 1, 0x41\n"                                          \
	".section .nv_fatbin, \"a\"\n.p2align 3\n" FATBIN("100", "0x42") \
		FATBIN("40", "0x43") ".fill 33, 1, 0x44\n"               \
				     ".section __nv_relfatbin, \"a\"\n.p2align 3\n" FATBIN("8", "0x45")

/* A library with that assembler text, at a path of its own. */
static const char *library(const char *name, const char *text)
{
	const char *source = support_path("source.s"), *path = support_path(name);

	support_write(source, text, strlen(text));
	support_run("gcc -shared -nostdlib %s -o %s -Wl,-z,noexecstack", source, path);
	return path;
}

#define PLAIN ".text\n.globl plain\n.type plain, @function\nplain: ret\n"
#define PLUGIN ".text\n.globl GetPjrtApi\n.type GetPjrtApi, @function\nGetPjrtApi: ret\n"
#define DATA_PLUGIN \
	PLAIN ".data\n.globl vaccel_plugin\n.type vaccel_plugin, @object\n.size vaccel_plugin, 8\nvaccel_plugin: .quad 1\n"

/* Offset and size of a section, as readelf has them. */
static void expect_section(const char *path, const char *name, unsigned long long *offset, unsigned long long *size)
{
	char command[512], line[512];
	bool found = false;
	FILE *pipe;

	snprintf(command, sizeof(command), "readelf -SW %s | sed 's/^ *\\[ *[0-9]*\\]//'", path);
	pipe = popen(command, "r");
	cr_assert_not_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		unsigned long long from, length;
		char is[64];

		if (sscanf(line, " %63s %*s %*x %llx %llx", is, &from, &length) != 3 || strcmp(is, name))
			continue;
		*offset = from;
		*size = length;
		found = true;
	}
	pclose(pipe);
	cr_assert(found, "%s has no section %s", path, name);
}

/* The n-th object of a file. */
static const struct loaded_code *object(const struct loaded_codes *codes, const char *path, size_t n)
{
	for (size_t i = 0; i < codes->count; i++)
		if (!strcmp(codes->objects[i].path, path) && !n--)
			return &codes->objects[i];
	return NULL;
}

static size_t count(const struct loaded_codes *codes, const char *path)
{
	size_t objects = 0;

	while (object(codes, path, objects))
		objects++;
	return objects;
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

static void look(bool only_new, pid_t pid, struct loaded_files *files, struct loaded_codes *codes)
{
	cr_assert_eq((only_new ? loaded_code_new : loaded_code_all)(pid, NULL, list_here, NULL, files, codes), 0);
}

/* Maps the file, to be read only or as code, for good. */
static void *map(const char *path, int protection)
{
	int descriptor = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	void *address;

	cr_assert_geq(descriptor, 0);
	cr_assert_eq(fstat(descriptor, &status), 0);
	address = mmap(NULL, (size_t)status.st_size, protection, MAP_PRIVATE, descriptor, 0);
	cr_assert_neq(address, MAP_FAILED);
	close(descriptor);
	return address;
}

/* What is in the process at the object's address is what the file has at its offset. */
static void expect_bytes(pid_t pid, const struct loaded_code *code)
{
	unsigned char *there = malloc(code->length), *file;
	size_t length;

	cr_assert_not_null(there);
	cr_assert_eq(code->length, code->size);
	cr_assert_eq(process_read_memory(pid, code->address, there, code->length), (ssize_t)code->length);
	file = support_read(code->open_path, &length);
	cr_assert_leq(code->offset + code->size, length);
	cr_assert_eq(memcmp(there, file + code->offset, code->length), 0);
	free(there);
	free(file);
}

/* ---- a process that loads and unloads one library, a byte a time ---- */

struct loader {
	pid_t pid;
	int order, answer;
};

static struct loader start_loader(const char *path)
{
	struct loader loader;
	int order[2], answer[2];

	cr_assert_eq(pipe(order), 0);
	cr_assert_eq(pipe(answer), 0);
	loader.pid = fork();
	if (!loader.pid) {
		void *handle = NULL;
		char byte = 0;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(order[1]);
		while (read(order[0], &byte, 1) == 1) {
			if (handle)
				dlclose(handle);
			handle = handle ? NULL : dlopen(path, RTLD_NOW);
			byte = handle ? 'l' : 'u';
			if (write(answer[1], &byte, 1) != 1)
				break;
		}
		_exit(0);
	}
	close(order[0]);
	close(answer[1]);
	loader.order = order[1];
	loader.answer = answer[0];
	return loader;
}

static void toggle(const struct loader *loader, char expected)
{
	char byte = 'x';

	cr_assert_eq(write(loader->order, &byte, 1), 1);
	cr_assert_eq(read(loader->answer, &byte, 1), 1);
	cr_assert_eq(byte, expected);
}

static void end_loader(const struct loader *loader)
{
	close(loader->order);
	close(loader->answer);
	cr_assert_eq(waitpid(loader->pid, NULL, 0), loader->pid);
}

Test(target_process_loaded_code, sections)
{
	const char *path = library("sections.so", PLAIN SECTIONS);
	struct loader loader = start_loader(path);
	unsigned long long offset, size;
	struct loaded_files files = { 0 };
	struct loaded_codes codes;
	const struct loaded_code *code;
	struct stat status, opened;

	toggle(&loader, 'l');
	look(false, loader.pid, &files, &codes);
	cr_assert_eq(count(&codes, path), 5, "one bundle, two containers and a rest, one container");
	cr_assert_eq(stat(path, &status), 0);
	for (size_t i = 0; i < 5; i++) {
		code = object(&codes, path, i);
		cr_expect_not(code->library);
		cr_expect_not(code->deleted);
		cr_assert_eq(stat(code->open_path, &opened), 0);
		cr_expect_eq(opened.st_ino, status.st_ino);
		cr_expect_eq(opened.st_dev, status.st_dev);
		expect_bytes(loader.pid, code);
	}
	/* in the order in which the linker has put them: find each where readelf has it */
	expect_section(path, ".hip_fatbin", &offset, &size);
	for (size_t i = 0; (code = object(&codes, path, i)) && code->offset != offset; i++)
		;
	cr_assert_not_null(code);
	cr_expect_eq(code->size, size);
	expect_section(path, "__nv_relfatbin", &offset, &size);
	for (size_t i = 0; (code = object(&codes, path, i)) && code->offset != offset; i++)
		;
	cr_assert_not_null(code);
	cr_expect_eq(code->size, 24);
	expect_section(path, ".nv_fatbin", &offset, &size);
	for (size_t i = 0; (code = object(&codes, path, i)) && code->offset != offset; i++)
		;
	cr_assert_not_null(code);
	cr_expect_eq(code->size, 116);
	cr_expect_eq(code[1].offset, offset + 120, "behind the padding");
	cr_expect_eq(code[1].size, 56);
	cr_expect_eq(code[2].offset, offset + 176);
	cr_expect_eq(code[2].offset + code[2].size, offset + size, "what is no container is listed up to the end");
	loaded_codes_free(&codes);
	loaded_files_free(&files);
	end_loader(&loader);
}

Test(target_process_loaded_code, what_comes_and_goes)
{
	const char *path = library("plain.so", PLAIN SECTIONS);
	struct loader loader = start_loader(path);
	struct loaded_files files = { 0 };
	struct loaded_codes codes;
	const struct loaded_code *code;
	size_t known;

	look(false, loader.pid, &files, &codes);
	cr_expect_eq(count(&codes, path), 0);
	known = files.count;
	cr_expect_gt(known, 0);
	loaded_codes_free(&codes);
	look(true, loader.pid, &files, &codes);
	cr_expect_eq(codes.count, 0, "nothing is new");
	for (int i = 0; i < 2; i++) {
		toggle(&loader, 'l');
		look(true, loader.pid, &files, &codes);
		cr_assert_eq(codes.count, 6);
		code = object(&codes, path, 0);
		cr_expect(code->library);
		cr_expect_eq(code->offset, 0);
		cr_expect_gt(code->address, 0);
		cr_expect_geq(code->length, 9000);
		cr_expect_eq(files.count, known + 1);
		loaded_codes_free(&codes);
		look(true, loader.pid, &files, &codes);
		cr_expect_eq(codes.count, 0, "reported once");
		toggle(&loader, 'u');
		look(true, loader.pid, &files, &codes);
		cr_expect_eq(codes.count, 0);
		cr_expect_eq(files.count, known, "it has gone, and comes anew");
	}
	end_loader(&loader);
	cr_expect_eq(loaded_code_new(loader.pid, NULL, list_here, NULL, &files, &codes), -ESRCH);
	loaded_files_free(&files);
}

Test(target_process_loaded_code, plugins)
{
	const char *plain = library("plain.so", PLAIN), *plugin = library("plugin.so", PLUGIN);
	const char *data = library("data.so", DATA_PLUGIN);
	void *handles[] = { dlopen(plain, RTLD_NOW), dlopen(plugin, RTLD_NOW), dlopen(data, RTLD_NOW) };
	struct loaded_files files = { 0 };
	struct loaded_codes codes;
	const struct loaded_code *code;
	Dl_info info;

	look(false, getpid(), &files, &codes);
	cr_expect_eq(count(&codes, plain), 0);
	cr_assert_eq(count(&codes, data), 1);
	cr_assert_eq(count(&codes, plugin), 1);
	code = object(&codes, plugin, 0);
	cr_expect(code->library);
	cr_assert_neq(dladdr(dlsym(handles[1], "GetPjrtApi"), &info), 0);
	cr_expect_eq(code->address, (__u64)(uintptr_t)info.dli_fbase, "as the dynamic loader has it");
	loaded_codes_free(&codes);
	loaded_files_free(&files);
	look(true, getpid(), &files, &codes);
	cr_expect_eq(count(&codes, plain), 1, "each library is new");
	loaded_codes_free(&codes);
	loaded_files_free(&files);
	for (size_t i = 0; i < 3; i++)
		dlclose(handles[i]);
}

Test(target_process_loaded_code, whole_files)
{
	static const char bundle[] = "__CLANG_OFFLOAD_BUNDLE__\1\0\0\0\0\0\0\0", model[] = "GGUF\3\0\0\0";
	unsigned char amd[5000] = "\177ELF\2\1\1", cuda[64] = "\177ELF\2\1\1", text[64] = "GGU, no model";
	const char *paths[] = { support_path("b"), support_path("m"), support_path("amd"), support_path("cuda") };
	const char *other = support_path("text"), *empty = support_path("empty");
	struct loaded_files files = { 0 };
	struct loaded_codes codes;

	amd[18] = 224;
	cuda[18] = 190;
	support_write(paths[0], bundle, sizeof(bundle));
	support_write(paths[1], model, sizeof(model));
	support_write(paths[2], amd, sizeof(amd));
	support_write(paths[3], cuda, sizeof(cuda));
	support_write(other, text, sizeof(text));
	for (size_t i = 0; i < 4; i++)
		map(paths[i], PROT_READ);
	map(other, PROT_READ);
	cr_assert_eq(unlink(paths[1]), 0);
	support_write(empty, "x", 1);
	map(empty, PROT_READ);
	cr_assert_eq(truncate(empty, 0), 0);
	map("/proc/self/exe", PROT_READ);

	look(false, getpid(), &files, &codes);
	for (size_t i = 0; i < 4; i++) {
		const struct loaded_code *code = object(&codes, paths[i], 0);

		cr_assert_not_null(code, "%s", paths[i]);
		cr_expect_eq(count(&codes, paths[i]), 1);
		cr_expect_eq(code->offset, 0);
		cr_expect_not(code->library);
		cr_expect_eq(code->deleted, i == 1);
		expect_bytes(getpid(), code);
	}
	cr_expect_eq(object(&codes, paths[2], 0)->size, sizeof(amd));
	cr_expect_eq(count(&codes, other), 0);
	cr_expect_eq(count(&codes, empty), 0);
	loaded_codes_free(&codes);
	loaded_files_free(&files);
}

/* One name, two files: the one that is mapped counts. */
Test(target_process_loaded_code, replaced)
{
	const char *path = support_path("model"), *next = support_path("next");
	struct loaded_files files = { 0 };
	struct loaded_codes codes;

	support_write(path, "GGUF, the first", 15);
	map(path, PROT_READ);
	support_write(next, "nothing", 7);
	cr_assert_eq(rename(next, path), 0);
	look(false, getpid(), &files, &codes);
	cr_assert_eq(count(&codes, path), 1);
	cr_expect_eq(object(&codes, path, 0)->size, 15);
	expect_bytes(getpid(), object(&codes, path, 0));
	loaded_codes_free(&codes);
	loaded_files_free(&files);
}

Test(target_process_loaded_code, no_more_than_the_limit)
{
	const char *path = library("many.so", PLAIN ".section .nv_fatbin, \"a\"\n.p2align 3\n"
						    ".rept 5000\n" FATBIN("8", "0x41") ".endr\n");
	void *handle = dlopen(path, RTLD_NOW);
	struct loaded_files files = { 0 };
	struct loaded_codes codes;

	look(true, getpid(), &files, &codes);
	cr_expect_eq(codes.count, LOADED_CODE_MAX);
	cr_expect_gt(codes.left_out, 0);
	loaded_codes_free(&codes);
	loaded_files_free(&files);
	dlclose(handle);
}

/* Containers that say to be longer than their section. */
Test(target_process_loaded_code, containers_that_lie)
{
	const char *path = library("lies.so", PLAIN ".section .nv_fatbin, \"a\"\n.p2align 3\n"
						    ".long 0xba55ed50; .short 1; .short 16; .quad -8\n"
						    ".section __nv_relfatbin, \"a\"\n.p2align 3\n"
						    ".long 0xba55ed50; .short 1; .short 0; .quad 0\n");
	void *handle = dlopen(path, RTLD_NOW);
	struct loaded_files files = { 0 };
	struct loaded_codes codes;

	look(false, getpid(), &files, &codes);
	cr_assert_eq(count(&codes, path), 2);
	for (size_t i = 0; i < 2; i++)
		cr_expect_eq(object(&codes, path, i)->size, 16, "the section as it is");
	loaded_codes_free(&codes);
	loaded_files_free(&files);
	dlclose(handle);
}

/* Damaged in every byte of its headers, the file gives objects inside of it, or none. */
Test(target_process_loaded_code, damaged)
{
	const char *path = library("good.so", PLAIN SECTIONS), *bad = support_path("bad.so");
	size_t length, seen = 0;
	unsigned char *bytes = support_read(path, &length);
	unsigned long long sections = 0;

	memcpy(&sections, bytes + 0x28, 8);
	for (size_t at = 0; at < length; at = at == 63 ? sections : at + 1) {
		unsigned char was = bytes[at];
		struct loaded_files files = { 0 };
		struct loaded_codes codes;
		void *address;

		bytes[at] = at & 1 ? 0xff : was ^ 0x80;
		unlink(bad);
		support_write(bad, bytes, length);
		bytes[at] = was;
		address = map(bad, PROT_READ | PROT_EXEC);
		look(true, getpid(), &files, &codes);
		for (size_t i = 0; i < codes.count; i++) {
			const struct loaded_code *code = &codes.objects[i];

			if (strcmp(code->path, bad))
				continue;
			seen++;
			cr_assert_leq(code->offset, length);
			cr_assert_leq(code->size, length - code->offset);
		}
		loaded_codes_free(&codes);
		loaded_files_free(&files);
		munmap(address, length);
	}
	cr_expect_gt(seen, 1000, "most bytes leave something to be found");
	free(bytes);
}
