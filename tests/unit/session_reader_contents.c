/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process that reads a file tells the collector: it comes back as it was, and false answers are found out. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/reader/readers.h"
#include "target_support.h"

static const char source[] = "int nrt_init(int a) { return a + 1; }\n"
			     "int nrt_execute(void *a, void *b, void *c) { return a == b || c; }\n"
			     "int nrt_tensor_write(void *a, void *b, long c, long d) { return a == b || c == d; }\n";

struct fixture {
	struct registry *registry;
	struct file_contents contents;
	char *bytes;
	size_t length;
};

/* Of a library with functions of a built-in description, and what it has not: a table, operators. */
static void begin(struct fixture *fixture)
{
	const char *only[] = { "nrt", "onnxruntime" };
	const char *path = support_library("toy.c", source, "-O1");
	const struct registry_options options = { .only = only, .only_count = 2 };
	struct mapped_file mapped = { .path = (char *)path };
	struct file_contents *contents = &fixture->contents;
	const struct description *ort;
	struct runtime_operators *operators;
	FILE *out;

	cr_assert_eq(registry_create(NULL, &options, &fixture->registry), 0);
	snprintf(mapped.open_path, sizeof(mapped.open_path), "%s", path);
	file_contents_search(NULL,
			     &(struct file_search){ .registry = fixture->registry, .operators = true, .loader = true },
			     &mapped, contents);
	cr_assert_gt(contents->found.count, 1);
	cr_assert_gt(contents->extent_count, 1);
	ort = registry_find(fixture->registry, "onnxruntime");
	contents->found.tables = calloc(1, sizeof(*contents->found.tables));
	contents->found.tables[contents->found.table_count++] = (struct pending_table){
		ort, { .offset = 16, .function = 16, .class = SITE_EMULATED }, 4096
	};
	file_operators_free(&contents->operators);
	operators = calloc(1, sizeof(*operators));
	*operators = (struct runtime_operators){ .runtime = ort, .first = 1, .last = 2 };
	operators->operators.functions = calloc(1, sizeof(*operators->operators.functions));
	operators->operators.functions[operators->operators.function_count++] = (struct operator_function){
		{ .offset = 32, .class = SITE_STEPPED }, 1, 1
	};
	operators->operators.classes.methods = calloc(2, sizeof(*operators->operators.classes.methods));
	for (unsigned int i = 0; i < 2; i++)
		operators->operators.classes.methods[operators->operators.classes.method_count++] =
			(struct class_method){ strdup(i ? "Gemm" : ""), i, 100 + i, ort->operators.methods[0].slot };
	contents->operators = (struct file_operators){ operators, 1, 1 };
	contents->has_loader = true;
	snprintf(contents->build_id, sizeof(contents->build_id), "3595fddb");
	contents->loader_state = -8;
	contents->interpreter = strdup("/lib/ld.so");
	contents->is_static = true;
	contents->codes = (struct file_codes){ calloc(2, sizeof(struct file_code)), 2, 5, 4711, true, true };
	contents->codes.places[1] = (struct file_code){ 64, 128 };
	out = open_memstream(&fixture->bytes, &fixture->length);
	file_contents_write(out, contents);
	cr_assert_eq(fclose(out), 0);
}

static void end(struct fixture *fixture)
{
	file_contents_free(&fixture->contents);
	registry_free(fixture->registry);
	free(fixture->bytes);
}

Test(session_reader_contents, comes_back)
{
	struct file_contents got;
	struct fixture fixture;
	char *bytes = NULL;
	size_t length;
	__u64 address;
	FILE *out;

	begin(&fixture);
	cr_assert_eq(file_contents_read(fixture.bytes, fixture.length, fixture.registry, &got), 0);
	cr_expect_eq(got.found.count, fixture.contents.found.count);
	cr_expect_str_eq(got.found.functions[0].symbol, fixture.contents.found.functions[0].symbol);
	cr_expect_eq(got.found.tables[0].runtime, fixture.contents.found.tables[0].runtime);
	cr_expect_eq(got.operators.runtimes[0].runtime, fixture.contents.operators.runtimes[0].runtime);
	cr_expect_str_eq(got.operators.runtimes[0].operators.classes.methods[1].class_name, "Gemm");
	cr_expect_eq(got.loader_state, -8);
	cr_expect_str_eq(got.interpreter, "/lib/ld.so");
	cr_expect(got.is_static);
	cr_expect_eq(got.codes.count, 2);
	cr_expect_eq(got.codes.places[1].size, 128);
	cr_expect_eq(got.codes.left_out, 5);
	cr_expect_str_eq(got.build_id, "3595fddb");
	cr_expect_eq(file_contents_address(&got, 0, &address), 0);
	out = open_memstream(&bytes, &length);
	file_contents_write(out, &got);
	fclose(out);
	cr_expect_eq(length, fixture.length);
	cr_expect_eq(memcmp(bytes, fixture.bytes, length), 0);
	free(bytes);
	file_contents_free(&got);
	end(&fixture);
}

Test(session_reader_contents, cut_off)
{
	struct file_contents got;
	struct fixture fixture;

	begin(&fixture);
	for (size_t length = 0; length < fixture.length; length++) {
		char *bytes = malloc(length ?: 1); /* a reader that goes further is seen */

		memcpy(bytes, fixture.bytes, length);
		cr_expect_eq(file_contents_read(bytes, length, fixture.registry, &got), -EPROTO, "%zu bytes", length);
		cr_expect_null(got.found.functions);
		free(bytes);
	}
	end(&fixture);
}

/* Nothing that comes back goes beyond what it refers to. */
static void check(const struct file_contents *got, const struct registry *registry)
{
	for (size_t i = 0; i < got->found.count; i++) {
		cr_assert_lt(got->found.functions[i].spec, registry->spec_count);
		cr_assert_not_null(got->found.functions[i].symbol);
		cr_assert_leq(got->found.functions[i].site.class, SITE_STEPPED);
	}
	for (size_t i = 0; i < got->operators.count; i++) {
		const struct runtime_operators *runtime = &got->operators.runtimes[i];

		for (size_t f = 0; f < runtime->operators.function_count; f++) {
			const struct operator_function *function = &runtime->operators.functions[f];
			const struct class_method *method = &runtime->operators.classes.methods[function->first];

			cr_assert_not_null(operators_method(&runtime->runtime->operators, method->slot));
			cr_assert_leq(function->first + function->count, runtime->operators.classes.method_count);
		}
	}
}

Test(session_reader_contents, false_answers)
{
	static const unsigned char values[] = { 0, 1, 2, 4, 0x7f, 0x80, 0xff };
	struct file_contents got;
	struct fixture fixture;
	size_t refused = 0;

	begin(&fixture);
	for (size_t at = 0; at < fixture.length; at++) {
		char before = fixture.bytes[at];

		for (size_t i = 0; i < sizeof(values); i++) {
			fixture.bytes[at] = (char)values[i];
			if (file_contents_read(fixture.bytes, fixture.length, fixture.registry, &got))
				refused++;
			else
				check(&got, fixture.registry);
			file_contents_free(&got);
		}
		fixture.bytes[at] = before;
	}
	cr_expect_gt(refused, 100);
	end(&fixture);
}

/* Of a code object: comes back as it was; what is cut off is refused, and what is false has texts that end and kinds that are known. */
Test(session_reader_contents, code_objects)
{
	static const unsigned char values[] = { 0, 1, 2, 15, 16, 0x7f, 0x80, 0xff };
	struct code_function functions[] = { { "one", 64, 16, 0x1000, true }, { "two", 0, 0, 0, false } };
	struct code_part parts[] = { { "sm_80", CODE_CUBIN, false, 128, 32 } };
	const struct code_contents given = {
		.kind = CODE_FATBIN,
		.machine = "gfx90a",
		.error = "section 3 lies behind the end",
		.functions = functions,
		.function_count = 2,
		.functions_left_out = 7,
		.parts = parts,
		.part_count = 1,
	};
	struct code_contents got;
	size_t length, refused = 0, taken = 0;
	char *bytes;
	FILE *out = open_memstream(&bytes, &length);

	code_contents_write(out, &given);
	fclose(out);
	cr_assert_eq(code_contents_read(bytes, length, &got), 0);
	cr_expect_eq(got.kind, CODE_FATBIN);
	cr_expect_str_eq(got.machine, "gfx90a");
	cr_expect_null(got.name);
	cr_expect_str_eq(got.error, given.error);
	cr_expect_eq(got.functions_left_out, 7);
	cr_assert(got.function_count == 2 && got.part_count == 1);
	cr_expect(!strcmp(got.functions[0].name, "one") && got.functions[0].offset == 64 && got.functions[0].kernel);
	cr_expect(!strcmp(got.functions[1].name, "two") && !got.functions[1].offset && !got.functions[1].kernel);
	cr_expect(!strcmp(got.parts[0].name, "sm_80") && got.parts[0].kind == CODE_CUBIN && got.parts[0].size == 32);
	code_contents_free(&got);
	for (size_t cut = 0; cut < length; cut++) {
		char *copy = malloc(cut ?: 1); /* a reader that goes further is seen */

		memcpy(copy, bytes, cut);
		cr_expect_eq(code_contents_read(copy, cut, &got), -EPROTO, "%zu bytes", cut);
		free(copy);
	}
	for (size_t i = 0; i < length * sizeof(values); i++) {
		char *at = &bytes[i / sizeof(values)], before = *at;

		*at = (char)values[i % sizeof(values)];
		if (code_contents_read(bytes, length, &got)) {
			refused++;
		} else {
			taken++;
			cr_assert_lt(got.kind, CODE_KINDS);
			for (size_t part = 0; part < got.part_count; part++)
				cr_assert(got.parts[part].name && got.parts[part].kind < CODE_KINDS);
			for (size_t function = 0; function < got.function_count; function++)
				cr_assert_not_null(got.functions[function].name);
		}
		code_contents_free(&got);
		*at = before;
	}
	cr_expect(refused > 50 && taken > 50, "%zu refused, %zu taken", refused, taken);
	free(bytes);
}

static void open_here(struct file_readers *readers, const char *path, int expected)
{
	int place = open(path, O_PATH | O_CLOEXEC);
	struct opened_file opened;
	struct file_reader *reader;

	cr_assert_geq(place, 0);
	cr_expect_eq(file_reader_open(readers, place, &opened, &reader), expected, "%s", path);
	close(place);
	if (expected)
		return;
	close(opened.descriptor);
	file_reader_close(reader);
}

/* The processes, with files that are none, and many at a time. */
Test(session_reader_contents, processes)
{
	const char *path = support_library("toy.c", source, "-O1");
	struct file_contents contents;
	struct file_readers *readers;
	struct opened_file opened;
	struct file_reader *reader;
	struct fixture fixture;
	struct site site;
	int place;

	begin(&fixture);
	cr_assert_eq(file_readers_start(NULL,
					&(struct file_search){
						.registry = fixture.registry, .operators = true, .loader = false },
					&readers),
		     0);
	open_here(readers, "/dev/null", -ENOENT);
	open_here(readers, "/", -ENOENT);
	for (int i = 0; i < 20; i++)
		open_here(readers, path, 0);
	place = open(path, O_PATH | O_CLOEXEC);
	cr_assert_eq(file_reader_open(readers, place, &opened, &reader), 0);
	cr_expect_eq(lseek(opened.descriptor, 0, SEEK_END), opened.status.st_size);
	cr_assert_eq(file_reader_search(reader, path, &contents), 0);
	cr_expect_eq(contents.found.count, fixture.contents.found.count);
	file_contents_free(&contents);
	cr_expect_eq(file_reader_search(reader, path, &contents), -EPROTO, "it answers once");
	file_reader_close(reader);
	close(opened.descriptor);
	cr_expect_eq(file_reader_site(readers, place,
				      &(struct file_site){ fixture.contents.found.functions[0].site.function, 0, 0 },
				      &site),
		     0);
	cr_expect_eq(site.function, fixture.contents.found.functions[0].site.function);
	cr_expect_eq(file_reader_site(readers, place, &(struct file_site){ 1ull << 40, 0, 0 }, &site), -ENOENT);
	close(place);
	for (int i = 0; i < 40; i++) { /* more than its descriptors */
		int descriptor = open(path, O_RDONLY | O_CLOEXEC);

		cr_assert_eq(file_reader_share(readers, descriptor, &reader), 0);
		cr_assert_eq(file_reader_search(reader, path, &contents), 0);
		cr_expect_eq(contents.found.count, fixture.contents.found.count);
		file_contents_free(&contents);
		file_reader_close(reader);
		close(descriptor);
	}
	file_readers_stop(readers);
	end(&fixture);
}
