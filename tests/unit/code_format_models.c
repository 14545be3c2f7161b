/* SPDX-License-Identifier: BSD-2-Clause */
#include "code_made.h"

/* A field with bytes. Numbers may be longer than they have to be. */
static void add_chunk(struct made *made, unsigned int field, const void *bytes, size_t length)
{
	if (field > 15) {
		made_number(made, (field << 3 | 2) | 0x80, 1);
		made_number(made, field >> 4, 1);
	} else {
		made_number(made, field << 3 | 2, 1);
	}
	made_number(made, (length & 0x7f) | 0x80, 1);
	made_number(made, length >> 7, 1);
	made_bytes(made, bytes, length);
}

static void onnx_add_pair(struct made *tensor, const char *key, const char *value)
{
	struct made pair = { .size = 0 };

	add_chunk(&pair, 1, key, strlen(key));
	add_chunk(&pair, 2, value, strlen(value));
	add_chunk(tensor, 13, pair.bytes, pair.size);
}

/* Adds an initializer to a graph whose weights are in a file. */
static void add_tensor(struct made *graph, const char *location, const char *offset, const char *length)
{
	struct made tensor = { .size = 0 };

	onnx_add_pair(&tensor, "location", location);
	onnx_add_pair(&tensor, "offset", offset);
	onnx_add_pair(&tensor, "length", length);
	made_number(&tensor, 14 << 3, 1);
	made_number(&tensor, 1, 1);
	add_chunk(graph, 5, tensor.bytes, tensor.size);
}

static struct made model(const struct made *graph)
{
	struct made made = { .size = 0 };

	made_number(&made, 1 << 3, 1);
	made_number(&made, 8, 1);
	add_chunk(&made, 7, graph->bytes, graph->size);
	return made;
}

Test(code_format_models, external)
{
	struct made graph = { .size = 0 }, made;
	struct code_contents contents;

	add_chunk(&graph, 2, "net", 3);
	add_tensor(&graph, "b", "8", "4");
	add_tensor(&graph, "b", "0", "2");
	made = model(&graph);
	contents = made_contents(&made, made.size, CODE_ONNX);
	cr_expect_eq(contents.kind, CODE_ONNX);
	cr_expect_null(contents.error);
	cr_expect_str_eq(contents.name, "net");
	cr_assert_eq(contents.part_count, 1);
	cr_expect_str_eq(contents.parts[0].name, "b");
	cr_expect(contents.parts[0].external);
	cr_expect_eq(contents.parts[0].offset, 0);
	cr_expect_eq(contents.parts[0].size, 12);
	code_contents_free(&contents);
	made_check_cut(&made, CODE_ONNX, 3, made.size);
}

/* In the order in which they are found; numbers that are none mean the whole file. */
Test(code_format_models, several)
{
	static const char *const lengths[] = { "-1", "18446744073709551616", "1e3", "" };

	for (size_t i = 0; i < 4; i++) {
		struct made graph = { .size = 0 }, made;
		struct code_contents contents;

		add_tensor(&graph, "z", "18446744073709551615", "2");
		add_tensor(&graph, "a", "1", lengths[i]);
		made = model(&graph);
		contents = made_contents(&made, made.size, CODE_ONNX);
		cr_expect_null(contents.error);
		cr_assert_eq(contents.part_count, 2);
		cr_expect_str_eq(contents.parts[0].name, "z");
		cr_expect_eq(contents.parts[0].size, 0);
		cr_expect_str_eq(contents.parts[1].name, "a");
		cr_expect_eq(contents.parts[1].offset, 1);
		cr_expect_eq(contents.parts[1].size, 0);
		code_contents_free(&contents);
	}
}

/* A graph in an attribute of a node of a graph, and so on. */
Test(code_format_models, deep)
{
	struct made made = { .size = 0 };
	unsigned char deep[MADE_MAX];
	size_t size = 0, at = sizeof(deep);

	for (unsigned int i = 0; i < 300; i++) {
		static const unsigned char keys[] = { 6 << 3 | 2, 5 << 3 | 2, 1 << 3 | 2 };

		for (size_t j = 0; j < 3; j++) {
			deep[--at] = size >> 7;
			deep[--at] = (size & 0x7f) | 0x80;
			deep[--at] = keys[j];
			size += 3;
		}
	}
	made_number(&made, 7 << 3 | 2, 1);
	made_number(&made, (size & 0x7f) | 0x80, 1);
	made_number(&made, size >> 7, 1);
	made_bytes(&made, deep + at, size);
	made_expect_error(&made, CODE_ONNX, "nested too deep");
}

Test(code_format_models, onnx_hostile)
{
	static const unsigned char numbers[][12] = {
		{ 0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01 },	    /* length of 64 bits */
		{ 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, /* a number without end */
		{ 0x0b },								    /* a group */
		{ 0x00 },								    /* field 0 */
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct made made = { .size = 0 };

		made_bytes(&made, numbers[i], sizeof(numbers[i]));
		made_expect_error(&made, CODE_ONNX, "the field at 0");
	}
}

enum {
	TYPE_UINT8 = 0,
	TYPE_STRING = 8,
	TYPE_ARRAY = 9,
};

static void add_string(struct made *made, const char *text)
{
	made_number(made, strlen(text), 8);
	made_bytes(made, text, strlen(text));
}

static void gguf_add_pair(struct made *made, const char *key, __u64 type)
{
	add_string(made, key);
	made_number(made, type, 4);
	made->bytes[16]++;
}

static struct made header(void)
{
	struct made made = { .size = 0 };

	made_bytes(&made, "GGUF", 4);
	made_number(&made, 3, 4);
	made_number(&made, 0, 16);
	return made;
}

Test(code_format_models, name)
{
	struct made made = header();
	struct code_contents contents;

	gguf_add_pair(&made, "flags", TYPE_ARRAY);
	made_number(&made, TYPE_UINT8, 4);
	made_number(&made, 3, 8);
	made_bytes(&made, "123", 3);
	gguf_add_pair(&made, "general.name", TYPE_STRING);
	add_string(&made, "tiny");
	contents = made_contents(&made, made.size, CODE_UNKNOWN);
	cr_expect_eq(contents.kind, CODE_GGUF);
	cr_expect_null(contents.error);
	cr_expect_str_eq(contents.name, "tiny");
	code_contents_free(&contents);
	made_check_cut(&made, CODE_GGUF, 0, made.size);
}

Test(code_format_models, no_name)
{
	struct made made = header();
	struct code_contents contents;

	gguf_add_pair(&made, "general.name", TYPE_UINT8);
	made_number(&made, 7, 1);
	contents = made_contents(&made, made.size, CODE_UNKNOWN);
	cr_expect_null(contents.error);
	cr_expect_null(contents.name);
	code_contents_free(&contents);
}

/* Counts and lengths that are larger than everything. */
Test(code_format_models, gguf_hostile)
{
	struct made made = header();
	size_t size;

	gguf_add_pair(&made, "large", TYPE_ARRAY);
	size = made.size;
	for (unsigned int type = 0; type < 15; type++) {
		made.size = size;
		made_number(&made, type, 4);
		made_number(&made, ~0ull / 2, 8);
		made_zeros(&made, 64);
		made_expect_error(&made, CODE_UNKNOWN, "pair 0");
	}
	made = header();
	made_set(&made, 16, ~0ull, 8);
	made_zeros(&made, 64);
	made_expect_error(&made, CODE_UNKNOWN, "cannot be read");
	made = header();
	gguf_add_pair(&made, "deep", TYPE_ARRAY);
	for (unsigned int i = 0; i < 600; i++) {
		made_number(&made, TYPE_ARRAY, 4);
		made_number(&made, 1, 8);
	}
	made_expect_error(&made, CODE_UNKNOWN, "pair 0");
	made = header();
	made_set(&made, 4, 0x03000000, 4);
	made_expect_error(&made, CODE_UNKNOWN, "version");
}
