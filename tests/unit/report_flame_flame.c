/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file/gzip.h"
#include "record_made.h"
#include "report/flame/flame.h"

/* Definitions of frames 1 to 3 and of stack 1, and program 0xa with a name that formats have to write with care. */
static void add_definitions(struct text *records)
{
	struct {
		struct xpt_record_stack stack;
		__u32 frame[4];
	} stack = { .stack = { .header = { XPT_RECORD_STACK, sizeof(stack) }, .id = 1, .frames = 3 },
		    .frame = { 1, 2, 3 } };

	stream_describe(records);
	stream_text(records, XPT_RECORD_FRAME, 0, 0, 1, "{\"kind\":\"kernel\",\"function\":\"a<&\\\">\"}");
	stream_text(records, XPT_RECORD_FRAME, 0, 0, 2,
		    "{\"kind\":\"python\",\"function\":\"tab\\tand;line\\n\",\"file\":\"/x/y.py\",\"line\":4}");
	stream_text(records, XPT_RECORD_FRAME, 0, 0, 3, "{\"kind\":\"native\"}");
	text_bytes(records, &stack, sizeof(stack));
	stream_text(records, XPT_RECORD_NAMED, 0, 0, 0xa, "\xff]]>");
}

static void add_run(struct text *records, __u64 stack, __u64 weight, __u64 start, __u64 end)
{
	const struct xpt_record_stack_sample sample = {
		.header = { XPT_RECORD_STACK_SAMPLE, sizeof(sample), 7, start },
		.call_start = start,
		.stack = stack,
		.weight = weight,
		.tid = 70,
		.reason = XPT_STACK_CALL,
	};

	text_bytes(records, &sample, sizeof(sample));
	stream_call(records, 7, 70, STREAM_EXECUTE, start, end, 0, (const __u64[]){ 0xa }, 1);
}

static const struct log silent;

/* The model is freed with its records: graphs refer to it. */
static struct flame *flame_made(struct model **model, struct text *records, enum xpt_output format, const char *path)
{
	const struct flame_options options = {
		.log = &silent, .what = XPT_FLAME_INFERENCE, .format = format, .path = path
	};
	struct flame *flame;

	cr_assert_eq(model_create(NULL, model), 0);
	cr_assert_eq(flame_open(&options, *model, &flame), 0);
	for (size_t at = 0; at < records->length;) {
		const struct xpt_record_header *record = (const void *)(records->data + at);

		cr_assert_eq(model_feed(*model, record), 0);
		at += record->size;
	}
	model_flush(*model);
	return flame;
}

/* What the graph becomes; base NULL: none. To be freed. */
static char *document(struct text *records, struct text *base, enum xpt_output format)
{
	char path[] = "/tmp/xputrace-flame-XXXXXX", *text = calloc(1, 65536);
	struct model *model, *base_model = NULL;
	int descriptor = mkstemp(path);
	struct flame *compared = base ? flame_made(&base_model, base, format, NULL) : NULL;
	struct flame *flame = flame_made(&model, records, format, path);
	int input;

	cr_assert(descriptor >= 0);
	cr_assert_eq(flame_close(flame, compared), 0);
	input = open(path, O_RDONLY);
	cr_assert(read(input, text, 65535) > 0);
	cr_expect_eq(flame_bytes(flame), (__u64)lseek(input, 0, SEEK_END));
	close(input);
	close(descriptor);
	unlink(path);
	flame_free(flame);
	flame_free(compared);
	model_free(model);
	model_free(base_model);
	return text;
}

static void expect_document(struct text *records, struct text *base, enum xpt_output format, const char *expected)
{
	char *text = document(records, base, format);

	cr_expect_str_eq(text, expected);
	free(text);
}

Test(report_flame_flame, folded_names_are_clean_and_values_are_sums)
{
	struct text records = {}, base = {};

	add_definitions(&records);
	add_run(&records, 1, 3, 100, 110);
	add_run(&records, 1, 1, 200, 205);
	add_run(&records, 9, 1, 300, 301);
	expect_document(&records, NULL, XPT_OUTPUT_FOLDED,
			"[partial];[unknown];?]]> 1\n"
			"[unknown];tab?and:line? (y.py:4);a<&\">_[k];?]]> 35\n");
	add_definitions(&base);
	add_run(&base, 1, 1, 100, 107);
	expect_document(&records, &base, XPT_OUTPUT_FOLDED,
			"[partial];[unknown];?]]> 0 1\n"
			"[unknown];tab?and:line? (y.py:4);a<&\">_[k];?]]> 7 35\n");
	text_free(&records);
	text_free(&base);
}

Test(report_flame_flame, sums_beyond_what_fits_stay_at_the_most)
{
	struct text records = {};

	add_definitions(&records);
	add_run(&records, 9, ~0ull, 100, 110);
	add_run(&records, 9, 5, 200, 210);
	expect_document(&records, NULL, XPT_OUTPUT_FOLDED, "[partial];[unknown];?]]> 18446744073709551615\n");
	text_free(&records);
}

Test(report_flame_flame, documents_are_whole)
{
	static const struct {
		enum xpt_output format;
		const char *begin, *inside, *end;
	} cases[] = {
		{ XPT_OUTPUT_FLAME_SVG, "<?xml version", "data-n=\"a&lt;&amp;&quot;&gt;\"", "]]></script>\n</svg>\n" },
		{ XPT_OUTPUT_SPEEDSCOPE, "{\"$schema\":", "\"weights\":[5]", "]}]}\n" },
		{ XPT_OUTPUT_PPROF, "\x1f\x8b", "", "" },
	};
	struct text records = {};

	add_definitions(&records);
	add_run(&records, 1, 1, 200, 205);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = document(&records, NULL, cases[i].format);

		cr_expect_eq(strncmp(text, cases[i].begin, strlen(cases[i].begin)), 0, "%s", text);
		cr_expect(strstr(text, cases[i].inside), "%s", text);
		if (*cases[i].end)
			cr_expect_str_eq(text + strlen(text) - strlen(cases[i].end), cases[i].end);
		free(text);
	}
	text_free(&records);
}

Test(report_flame_flame, without_stacks_there_is_no_graph)
{
	struct text records = {};
	struct model *model;
	struct flame *flame;

	stream_describe(&records);
	flame = flame_made(&model, &records, XPT_OUTPUT_FOLDED, "/dev/null");
	cr_expect_eq(flame_close(flame, NULL), -ENOENT);
	flame_free(flame);
	model_free(model);
	text_free(&records);
}
