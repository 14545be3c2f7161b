/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "code/format/object.h"
#include "code/format/readers.h"
#include "code_made.h"

static struct code_contents contents;

static void release(void)
{
	code_contents_free(&contents);
}

TestSuite(code_format_object, .fini = release);

static void read_text(const char *text, enum code_kind hint)
{
	code_contents_free(&contents);
	cr_assert_eq(code_read(text, strlen(text), hint, &contents), 0);
}

/* expected: names in order, kernels with a star, each with a space after it. */
static void expect_functions(const char *expected)
{
	char text[512] = "";
	size_t length = 0;

	for (size_t i = 0; i < contents.function_count; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s ", contents.functions[i].name,
					   contents.functions[i].kernel ? "*" : "");
	cr_expect_str_eq(text, expected);
	cr_expect_null(contents.error, "%s", contents.error);
}

Test(code_format_object, kinds)
{
	static const struct {
		const char *bytes;
		size_t size;
		enum code_kind kind;
	} objects[] = {
		{ "", 0, CODE_UNKNOWN },
		{ "\x7f"
		  "EL",
		  3, CODE_UNKNOWN },
		{ "\x7f"
		  "ELF",
		  4, CODE_ELF },
		{ "\x7f"
		  "ELF\2\1\1\0\0\0\0\0\0\0\0\0\1\0\xe0\0",
		  20, CODE_HSACO },
		{ "\x7f"
		  "ELF\2\2\1\0\0\0\0\0\0\0\0\0\0\1\0\xbe",
		  20, CODE_CUBIN },
		{ "\x50\xed\x55\xba", 4, CODE_FATBIN },
		{ "__CLANG_OFFLOAD_BUNDLE__", 24, CODE_BUNDLE },
		{ "__CLANG_OFFLOAD_BUNDLE_", 23, CODE_UNKNOWN },
		{ "CCOB", 4, CODE_BUNDLE },
		{ " // made\n/* by hand */ .version 8.0", 35, CODE_PTX },
		{ "version 8.0", 11, CODE_UNKNOWN },
		{ "\x03\x02\x23\x07", 4, CODE_SPIRV },
		{ "\x07\x23\x02\x03", 4, CODE_SPIRV },
		{ "BC\xc0\xde", 4, CODE_BITCODE },
		{ "\x7c\xcd\xa1\x00", 4, CODE_QPC },
		{ "GGUF", 4, CODE_GGUF },
		{ "ML\xefR", 4, CODE_MLIR },
	};

	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
		cr_assert_eq(code_read(objects[i].bytes, objects[i].size, CODE_UNKNOWN, &contents), 0);
		cr_expect_eq(contents.kind, objects[i].kind, "%zu is %s", i, code_kind_name(contents.kind));
		code_contents_free(&contents);
	}
	cr_expect_eq(contents.kind, CODE_UNKNOWN);
}

Test(code_format_object, hints)
{
	read_text("anything", CODE_HLO);
	cr_expect_eq(contents.kind, CODE_HLO);
	cr_expect_null(contents.error);
	read_text("module {}", CODE_MLIR);
	cr_expect_eq(contents.kind, CODE_MLIR);
	cr_expect_null(contents.error);
	read_text(".version 8.0 .target sm_80", CODE_OPENCL); /* bytes that tell are right */
	cr_expect_eq(contents.kind, CODE_PTX);
	read_text("anything", CODE_SPIRV);
	cr_expect_eq(contents.kind, CODE_SPIRV);
	cr_expect_str_eq(contents.error, "it does not begin as spirv does");
	read_text("anything", CODE_CUBIN);
	cr_expect_str_eq(contents.error, "it does not begin as cubin does");
}

Test(code_format_object, opencl)
{
	read_text("kernel void a(global int *p) {}\n"
		  "__kernel __attribute__((vec_type_hint(float4))) __attribute__((aligned(f(1))))\n void\tb ( int x ) { }\n"
		  "__attribute__((x)) __kernel void c(int f(int)) __attribute__((y)) MORE {}\n",
		  CODE_OPENCL);
	expect_functions("a* b* c* ");
	read_text("// __kernel void a() {}\n/* __kernel void b() {} */ int kernel_size; \"__kernel void c() {}\"\n"
		  "#define D __kernel void d() \\\n {}\n__kernel void e();\nint kernel[3], f(void) { kernel = 1; }\n"
		  "__kernel void MAKE(g)(int x) {}\n'\"' __kernel void h() {} // \\\n__kernel void i() {}\n"
		  "int x; # not a line of the preprocessor\n__kernel void j(){}",
		  CODE_OPENCL);
	expect_functions("h* j* ");
	for (const char *const *cut =
		     (const char *const[]){ "", "kernel", "kernel void", "kernel void a", "kernel void a(",
					    "kernel void a()", "/*", "\"", "\\", "#", NULL };
	     *cut; cut++) {
		read_text(*cut, CODE_OPENCL);
		expect_functions("");
	}
}

Test(code_format_object, ptx)
{
	read_text(".version 8.0\n.target sm_90a, debug\n.address_size 64\n.extern .func (.param .b32 r) a (.param .b32 x);\n"
		  ".visible .entry b(.param .u64 p) .maxntid 256, 1, 1 .pragma \"nounroll\"; { ret; }\n"
		  ".weak .func (.param .b32 r) c(.param .b32 x) { // .entry d() {}\n ret; }\n"
		  ".func $e$f { call c; ret; }\n.entry g(.param .u32 x);\n.target sm_80\n",
		  CODE_UNKNOWN);
	expect_functions("$e$f b* c ");
	cr_expect_str_eq(contents.machine, "sm_90a");
}

/* A container whose parts may still have so many bytes inside. */
static struct code_reading outer(const void *bytes, size_t size, __u64 *inside)
{
	return (struct code_reading){ .bytes = bytes, .size = size, .inside = inside, .contents = &contents };
}

Test(code_format_object, inside)
{
	const char bytes[] = "12345678.version 8.0 .entry one() {}";
	__u64 inside = sizeof(bytes);
	struct code_reading reading = outer(bytes, sizeof(bytes), &inside);
	struct code_part part = { .kind = CODE_OPENCL, .offset = 8, .size = sizeof(bytes) - 8 };

	cr_assert_eq(code_read_inside(&reading, "sm_80 and more", 5, &part), 0);
	expect_functions("one* ");
	cr_assert_eq(contents.part_count, 1);
	cr_expect_str_eq(contents.parts[0].name, "sm_80");
	cr_expect_eq(contents.parts[0].kind, CODE_PTX);
	cr_expect_eq(contents.parts[0].offset, 8);
	/* Once more is more than all bytes. */
	cr_assert_eq(code_read_inside(&reading, "again", 5, &part), 0);
	cr_expect_str_eq(contents.error, "parts overlap");
	cr_expect_eq(contents.function_count, 1);
	cr_expect_eq(contents.part_count, 2);
}

Test(code_format_object, inside_limits)
{
	__u64 inside = 100;
	struct code_reading reading = outer("1234", 4, &inside);
	struct code_part part = { .offset = 3, .size = 2 };

	cr_assert_eq(code_read_inside(&reading, "a", 1, &part), 0);
	cr_expect_str_eq(contents.error, "part 0 lies behind the end");
	cr_expect_eq(contents.part_count, 0);
	code_contents_free(&contents);
	part.size = 1;
	reading.depth = CODE_DEPTH_MAX;
	cr_assert_eq(code_read_inside(&reading, "a", 1, &part), 0);
	cr_expect_str_eq(contents.error, "objects are nested too deep");
	code_contents_free(&contents);
	reading.depth = CODE_DEPTH_MAX - 1;
	part.kind = CODE_SPIRV;
	cr_assert_eq(code_read_inside(&reading, "sm", 2, &part), 0);
	cr_expect_str_eq(contents.error, "in part sm: it does not begin as spirv does");
}

Test(code_format_object, limits)
{
	const struct code_function function = { 0 };
	const struct code_part part = { 0 };

	for (unsigned int i = 0; i < CODE_FUNCTIONS_MAX + 2; i++)
		cr_assert_eq(code_add_function(&contents, "f", 1, &function), 0);
	for (unsigned int i = 0; i < CODE_PARTS_MAX + 3; i++)
		cr_assert_eq(code_add_part(&contents, "p", 1, &part), 0);
	cr_expect_eq(contents.function_count, CODE_FUNCTIONS_MAX);
	cr_expect_eq(contents.functions_left_out, 2);
	cr_expect_eq(contents.part_count, CODE_PARTS_MAX);
	cr_expect_eq(contents.parts_left_out, 3);
}

Test(code_format_object, text)
{
	cr_expect(code_is_text("int\tx;\r\n", 8));
	cr_expect(code_is_text("\xc3\xa4\0\1", 4)); /* what stands behind the end */
	cr_expect_not(code_is_text("", 1));
	cr_expect_not(code_is_text("a\1", 2));
	cr_expect_not(code_is_text("\x7f"
				   "ELF",
				   4));
}

static struct made neff(__u64 header, __u64 archive, unsigned int magic)
{
	struct made made = { .size = 1024 + 100 };

	made_set(&made, 8, header, 8);
	made_set(&made, 16, archive, 8);
	made_set(&made, 1024, magic, 2);
	return made;
}

static void expect_kind(const struct made *made, enum code_kind kind)
{
	code_contents_free(&contents);
	contents = made_contents(made, made->size, CODE_UNKNOWN);
	cr_expect_eq(contents.kind, kind);
	cr_expect_eq(contents.part_count + contents.function_count, 0);
	cr_expect_null(contents.error);
}

Test(code_format_object, neff)
{
	static const struct {
		__u64 header, archive;
		unsigned int magic;
		bool is_neff;
		int own; /* size, or error */
	} cases[] = {
		{ 1024, 100, 0x8b1f, true, 1124 },
		{ 1024, 100, 0, true, -ENODATA },     /* of so many bytes by its header */
		{ 1024, 5000, 0x8b1f, true, -EFBIG }, /* cut off */
		{ 1024, ~0ull - 1024, 0x8b1f, true, -EFBIG },
		{ 1024, ~0ull - 1023, 0x8b1f, false, -ENODATA }, /* its size would be 0 */
		{ 1024, 0, 0x8b1f, false, -ENODATA },
		{ 1024, 99, 0, false, -ENODATA },
		{ 1023, 100, 0x8b1f, false, -ENODATA },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct made made = neff(cases[i].header, cases[i].archive, cases[i].magic);
		__u64 size = 0;
		int error = made_own_size(&made, 2048, &size);

		expect_kind(&made, cases[i].is_neff ? CODE_NEFF : CODE_UNKNOWN);
		cr_expect_eq(error ?: (int)size, cases[i].own, "%zu: %d, %llu", i, error, size);
		made_check_cut(&made, CODE_NEFF, 0, 1026);
	}
}

Test(code_format_object, qpc)
{
	struct made made = { .size = 100 };
	__u64 size;

	made_set(&made, 0, 0x00a1cd7c, 4);
	made_set(&made, 8, 100, 8);
	expect_kind(&made, CODE_QPC);
	cr_expect_eq(made_own_size(&made, 100, &size), 0);
	cr_expect_eq(size, 100);
	cr_expect_eq(made_own_size(&made, 99, &size), -EFBIG);
	made_set(&made, 8, 39, 8);
	cr_expect_eq(made_own_size(&made, 100, &size), -EBADMSG);
	made_set(&made, 0, 0, 1);
	cr_expect_eq(made_own_size(&made, 100, &size), -ENODATA);
	made_expect_error(&made, CODE_QPC, "does not begin as qpc does");
}

/* As they stand in codeobj.h. */
static const char *const names[] = {
	"unknown", "elf",    "hsaco", "cubin", "fatbin", "bundle", "ptx", "spirv",
	"bitcode", "opencl", "neff",  "qpc",   "onnx",	 "gguf",   "hlo", "mlir",
};

Test(code_format_object, both_ways)
{
	cr_assert_eq(sizeof(names) / sizeof(names[0]), CODE_KINDS);
	for (unsigned int i = 0; i < CODE_KINDS; i++) {
		cr_expect_str_eq(code_kind_name((enum code_kind)i), names[i]);
		cr_expect_eq(code_kind_from_name(names[i]), i);
	}
	cr_expect_str_eq(code_kind_name(CODE_KINDS), "unknown");
	cr_expect_eq(code_kind_from_name("ELF"), CODE_UNKNOWN);
	cr_expect_eq(code_kind_from_name(""), CODE_UNKNOWN);
}
