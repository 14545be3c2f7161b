/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/runtime/registry.h"

#include <stdlib.h>
#include <unistd.h>

#include "describe/reader/collection.h"
#include "describe_support.h"

#define TOY_FILE(name, more)                                                                               \
	"{\"schema\": 1, \"runtime\": \"" name "\", \"title\": \"Toy\",\n\"identify\": [\"toy_run\"]" more \
	",\n\"calls\": ["                                                                                  \
	"{\"symbol\": \"toy_run\", \"role\": \"copy\"}, {\"symbol\": \"toy_go\", \"role\": \"copy\"}]}"

struct file {
	char path[64];
};

/* A file that holds text; file_drop() removes it. */
static struct file file_with(const char *text)
{
	struct file file = { "/tmp/xputrace-test-XXXXXX" };
	int descriptor = mkstemp(file.path);

	cr_assert_geq(descriptor, 0);
	cr_assert_eq(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
	close(descriptor);
	return file;
}

static int create(const char *const *files, size_t file_count, const char *const *only, size_t only_count,
		  struct said *said, struct registry **registry)
{
	struct log log = { said_write, said, XPT_LOG_WARN };

	memset(said, 0, sizeof(*said));
	return registry_create(&log, &(struct registry_options){ files, file_count, only, only_count, NULL, 0 },
			       registry);
}

/* Everything that must hold of any registry. */
static void check(const struct registry *registry)
{
	size_t specs = 0;

	cr_assert_leq(registry->runtime_count, XPT_RUNTIME_MAX);
	for (size_t i = 0; i < registry->runtime_count; i++) {
		const struct description *runtime = registry->runtimes[i];

		cr_expect_eq(runtime->index, i);
		cr_expect_eq(registry_find(registry, runtime->name), runtime);
		for (size_t j = 0; j < runtime->call_count; j++, specs++) {
			cr_assert_lt(specs, registry->spec_count);
			cr_expect_eq(registry->specs[specs], &runtime->calls[j]);
			cr_expect_eq(registry->spec_runtime[specs], runtime);
			cr_expect_eq(runtime->calls[j].wire.index, specs);
			cr_expect_eq(runtime->calls[j].wire.runtime, i);
		}
		for (size_t j = 0; j < runtime->operators.method_count; j++, specs++) {
			cr_assert_lt(specs, registry->spec_count);
			cr_expect_eq(registry->specs[specs], &runtime->operators.methods[j].call);
			cr_expect_eq(registry->spec_runtime[specs], runtime);
			cr_expect_eq(runtime->operators.methods[j].call.wire.index, specs);
			cr_expect_eq(runtime->operators.methods[j].call.wire.runtime, i);
		}
	}
	cr_expect_eq(specs, registry->spec_count);
}

Test(describe_runtime_registry, built_in)
{
	struct registry *registry;
	struct said said;

	cr_assert_eq(create(NULL, 0, NULL, 0, &said, &registry), 0, "%s", said.text);
	cr_expect_eq(said.count, 0);
	cr_expect_eq(registry->runtime_count, builtin_file_count);
	check(registry);
	cr_expect_null(registry_find(registry, "toy"));
	cr_expect_null(registry_find(registry, ""));
	registry_free(registry);
	registry_free(NULL);
}

Test(describe_runtime_registry, over)
{
	struct registry *registry;
	const struct description *hip, *hsa, *ggml, *qaic;
	struct said said;

	cr_assert_eq(create(NULL, 0, NULL, 0, &said, &registry), 0);
	hip = registry_find(registry, "hip");
	hsa = registry_find(registry, "hsa");
	ggml = registry_find(registry, "ggml");
	qaic = registry_find(registry, "qaic");
	for (size_t i = 0; i < hip->call_count; i++)
		cr_expect_eq(hip->calls[i].wire.over, 1ull << hsa->index | 1ull << hip->index);
	for (size_t i = 0; i < qaic->call_count; i++)
		cr_expect_eq(qaic->calls[i].wire.over, 0);
	cr_expect(ggml->calls[0].wire.over & 1ull << ggml->index, "calls of ggml inside of its own are layers");
	registry_free(registry);
}

Test(describe_runtime_registry, files_are_added)
{
	struct file toy = file_with(TOY_FILE("toy", ", \"over\": [\"nrt\", \"toy\"]"));
	const char *files[] = { toy.path };
	struct registry *registry;
	const struct description *found;
	struct said said;

	cr_assert_eq(create(files, 1, NULL, 0, &said, &registry), 0, "%s", said.text);
	check(registry);
	cr_expect_eq(registry->runtime_count, builtin_file_count + 1);
	found = registry_find(registry, "toy");
	cr_assert_not_null(found);
	cr_expect_str_eq(found->file, toy.path);
	cr_expect_eq(found->index, builtin_file_count);
	cr_expect_eq(found->calls[1].wire.over, 1ull << registry_find(registry, "nrt")->index | 1ull << found->index);
	registry_free(registry);
	unlink(toy.path);
}

Test(describe_runtime_registry, a_file_replaces_a_built_in_one)
{
	struct file toy = file_with(TOY_FILE("nrt", ""));
	const char *files[] = { toy.path };
	struct registry *registry;
	struct said said;

	cr_assert_eq(create(files, 1, NULL, 0, &said, &registry), 0, "%s", said.text);
	check(registry);
	cr_expect_eq(registry->runtime_count, builtin_file_count);
	cr_expect_str_eq(registry_find(registry, "nrt")->title, "Toy");
	cr_expect_eq(registry_find(registry, "nrt")->call_count, 2);
	registry_free(registry);
	unlink(toy.path);
}

Test(describe_runtime_registry, only)
{
	static const char *const only[] = { "hsa", "nrt", "hsa" }, *const hip_only[] = { "hip" };
	static const char *const unknown[] = { "hip", "cuba" };
	struct registry *registry;
	struct said said;

	cr_assert_eq(create(NULL, 0, only, 3, &said, &registry), 0);
	check(registry);
	cr_expect_eq(registry->runtime_count, 2);
	cr_expect_not_null(registry_find(registry, "hsa"));
	cr_expect_null(registry_find(registry, "hip"));
	registry_free(registry);

	/* What it is built on is left out: only its own twins are layers. */
	cr_assert_eq(create(NULL, 0, hip_only, 1, &said, &registry), 0, "%s", said.text);
	cr_expect_eq(registry->runtime_count, 1);
	cr_expect_eq(registry->specs[0]->wire.over, 1ull << registry->runtimes[0]->index);
	registry_free(registry);

	cr_expect_eq(create(NULL, 0, unknown, 2, &said, &registry), -ENOENT);
	cr_expect_null(registry);
	cr_expect_eq(strncmp(said.text, "unknown runtime 'cuba' (known: cuda cudart ", 43), 0, "%s", said.text);
	cr_expect_not_null(strstr(said.text, " vaccel)"));
}

static void expect_failure(const char *const *files, size_t count, int error, const char *message)
{
	struct registry *registry;
	struct said said;

	cr_expect_eq(create(files, count, NULL, 0, &said, &registry), error, "%s", said.text);
	cr_expect_null(registry);
	cr_expect_str_eq(said.text, message, "%s", said.text);
	cr_expect_eq(said.count, 1);
}

Test(describe_runtime_registry, bad_files)
{
	struct file first = file_with(TOY_FILE("toy", "")), second = file_with(TOY_FILE("toy", ""));
	struct file over = file_with(TOY_FILE("other", ", \"over\": [\"nrt\", \"ntr\"]")), bad = file_with("{\n]");
	const char *twice[] = { first.path, second.path }, *same[] = { first.path, first.path };
	const char *unknown[] = { over.path }, *broken[] = { first.path, bad.path };
	const char *missing[] = { "/nonexistent/toy.json" }, *folder[] = { "/tmp" };
	char message[256];

	snprintf(message, sizeof(message), "%s: runtime: 'toy' is already described by %s", second.path, first.path);
	expect_failure(twice, 2, -EINVAL, message);
	snprintf(message, sizeof(message), "%s: runtime: 'toy' is already described by %s", first.path, first.path);
	expect_failure(same, 2, -EINVAL, message);
	snprintf(message, sizeof(message), "%s:2: over[1]: no runtime 'ntr' is described", over.path);
	expect_failure(unknown, 1, -EINVAL, message);
	snprintf(message, sizeof(message), "%s:2: not valid JSON at the end of the file", bad.path);
	expect_failure(broken, 2, -EINVAL, message);
	expect_failure(missing, 1, -ENOENT, "/nonexistent/toy.json: cannot be read: No such file or directory");
	expect_failure(folder, 1, -EISDIR, "/tmp: cannot be read: Is a directory");
	unlink(first.path);
	unlink(second.path);
	unlink(over.path);
	unlink(bad.path);
}

Test(describe_runtime_registry, endless_file)
{
	const char *files[] = { "/dev/zero" };

	expect_failure(files, 1, -EINVAL, "/dev/zero:1: the file is larger than 1 MiB");
}

Test(describe_runtime_registry, too_many_runtimes)
{
	enum { COUNT = XPT_RUNTIME_MAX + 1 };
	struct file made[COUNT];
	const char *files[COUNT];
	struct registry *registry;
	char text[512];
	struct said said;

	for (int i = 0; i < COUNT; i++) {
		snprintf(text, sizeof(text),
			 "{\"schema\": 1, \"runtime\": \"toy%d\", \"title\": \"T\", \"identify\": [\"a\"], "
			 "\"calls\": [{\"symbol\": \"toy%d\", \"role\": \"copy\"}]}",
			 i, i);
		made[i] = file_with(text);
		files[i] = made[i].path;
	}
	cr_assert_eq(create(files, XPT_RUNTIME_MAX - builtin_file_count, NULL, 0, &said, &registry), 0, "%s",
		     said.text);
	cr_expect_eq(registry->runtime_count, XPT_RUNTIME_MAX);
	check(registry);
	registry_free(registry);
	snprintf(text, sizeof(text), "%s: more than 64 runtimes are described",
		 files[XPT_RUNTIME_MAX - builtin_file_count]);
	expect_failure(files, COUNT, -E2BIG, text);
	for (int i = 0; i < COUNT; i++)
		unlink(files[i]);
}

/* A file with so many functions whose names begin so. */
static struct file file_with_functions(const char *name, int count)
{
	struct file file;
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	fprintf(stream, "{\"schema\": 1, \"runtime\": \"%s\", \"title\": \"T\", \"identify\": [\"a\"], \"calls\": [",
		name);
	for (int i = 0; i < count; i++)
		fprintf(stream, "%s{\"symbol\": \"%s_%d\", \"role\": \"copy\"}", i ? "," : "", name, i);
	fputs("]}", stream);
	fclose(stream);
	file = file_with(text);
	free(text);
	return file;
}

Test(describe_runtime_registry, too_many_functions)
{
	struct file one = file_with_functions("one", 3000), two = file_with_functions("two", 1096),
		    three = file_with_functions("three", 1);
	static const char *const only[] = { "one", "two", "three" };
	const char *files[] = { one.path, two.path, three.path };
	struct registry *registry;
	struct said said;

	cr_assert_eq(create(files, 3, only, 2, &said, &registry), 0, "%s", said.text);
	cr_expect_eq(registry->spec_count, XPT_SPEC_MAX);
	check(registry);
	registry_free(registry);
	cr_expect_eq(create(files, 3, only, 3, &said, &registry), -E2BIG);
	cr_expect_str_eq(said.text, "4097 functions are described; 4096 are the most");
	unlink(one.path);
	unlink(two.path);
	unlink(three.path);
}

Test(describe_runtime_registry, calls_of_a_runtime)
{
	static const char *const regions[] = { "libdecode.so*:decode_*", "/opt/a \"b\"/app:ns::Class::run" };
	struct description *function;

	cr_assert_eq(function_regions_describe(NULL, regions, 2, &function), 0);
	cr_expect_str_eq(function->name, "function");
	cr_assert_eq(function->call_count, 2);
	cr_expect_eq(function->calls[0].locate, LOCATE_SYMBOL);
	cr_expect_str_eq(function->calls[0].file, "libdecode.so*");
	cr_expect_str_eq(function->calls[0].symbols[0], "decode_*");
	cr_expect_eq(function->calls[0].wire.role, XPT_ROLE_REGION);
	cr_expect_eq(function->calls[0].wire.fetches, 0);
	cr_expect(function->calls[0].wire.flags & XPT_SPEC_ENTRY_ONLY);
	cr_expect_str_eq(function->calls[1].file, "/opt/a \"b\"/app");
	cr_expect_str_eq(function->calls[1].symbols[0], "ns::Class::run");
	description_free(function);
}

Test(describe_runtime_registry, mistakes)
{
	static const char *const mistakes[] = { "", "decode", "decode:", ":decode", "app::run", "app:a b", "app:f@V_1" };

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		struct description *function = NULL;

		cr_expect_eq(function_regions_describe(NULL, &mistakes[i], 1, &function), -EINVAL, "%s", mistakes[i]);
	}
}
