/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "analysis/diff.h"
#include "base/core/json.h"
#include "page/page.h"
#include "record/recording.h"
#include "record_stream.h"

#define DOCUMENT_MOST (8u << 20)

static const struct log silent;

/* A descriptor of a recording with these records, without a name. */
static int record(const struct text *records)
{
	const struct recording_info info = {
		.host = "h", .kernel = "k", .machine = "m", .version = "v", .command = "c", .boot_id = "b"
	};
	char path[] = "/tmp/xputrace-page-XXXXXX";
	int recording = mkstemp(path);
	struct recording_writer *writer;

	unlink(path);
	cr_assert_eq(recording_writer_create(&silent, NULL, dup(recording), &info, &writer), 0);
	for (size_t at = 0; at < records->length;) {
		const struct xpt_record_header *record = (const void *)(records->data + at);

		cr_assert_eq(recording_writer_add(writer, record), 0);
		at += record->size;
	}
	cr_assert_eq(recording_writer_close(writer), 0);
	return recording;
}

/* The page of these records, terminated; to be freed. */
static char *page_of(const struct text *records)
{
	char page_path[] = "/tmp/xputrace-page-XXXXXX";
	int recording = record(records), page = mkstemp(page_path);
	const struct page_options options = {
		.log = &silent, .path = page_path, .descriptor = dup(page), .name = "/x/</script>.xpt"
	};
	struct stat status;
	char *text;

	cr_assert_eq(page_write(&options, recording), 0);
	cr_assert_eq(fstat(page, &status), 0);
	text = calloc(1, status.st_size + 1);
	cr_assert_eq(pread(page, text, status.st_size, 0), status.st_size);
	close(recording);
	close(page);
	unlink(page_path);
	return text;
}

/* What stands between the two, after the first one of them; cut out. */
static char *between(const char *page, const char *begin, const char *end)
{
	const char *from = strstr(page, begin), *to = from ? strstr(from + strlen(begin), end) : NULL;

	cr_assert(to, "%s", begin);
	return strndup(from + strlen(begin), to - from - strlen(begin));
}

/* The data, as the page's script gets them; terminated. */
static char *document_of(const char *page)
{
	char *base64 = between(page, "octet-stream\">", "</script>"), *text = malloc(DOCUMENT_MOST + 1);
	const size_t length = strlen(base64);
	unsigned char *packed = malloc(length + 3);
	uLongf size = DOCUMENT_MOST;

	cr_assert_eq(strspn(base64, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="), length);
	cr_assert_eq(EVP_DecodeBlock(packed, (const unsigned char *)base64, (int)length), (int)(length / 4 * 3));
	cr_assert_eq(uncompress((unsigned char *)text, &size, packed, length / 4 * 3), Z_OK);
	text[size] = '\0';
	free(base64);
	free(packed);
	return text;
}

static void expect_hash(const char *page, const char *begin, const char *end, const char *policy)
{
	char *text = between(page, begin, end), *expected = between(page, policy, "'");
	unsigned char digest[32], base64[64];

	EVP_Digest(text, strlen(text), digest, NULL, EVP_sha256(), NULL);
	EVP_EncodeBlock(base64, digest, sizeof(digest));
	cr_expect_str_eq(expected, (char *)base64);
	free(text);
	free(expected);
}

Test(page_page, allows_its_own_script_and_style_only)
{
	struct text records = {};
	char *page;

	stream_describe(&records);
	page = page_of(&records);
	cr_expect(strstr(page, "default-src 'none'"));
	expect_hash(page, "<style>", "</style>", "style-src 'sha256-");
	expect_hash(page, "</script>\n<script>", "</script>", "script-src 'sha256-");
	cr_expect_null(strstr(page, "http:"));
	cr_expect_null(strstr(page, "https:"));
	free(page);
	text_free(&records);
}

Test(page_page, names_are_in_the_data_only)
{
	struct text records = {};
	char *page, *document;

	stream_describe(&records);
	stream_text(&records, XPT_RECORD_NAMED, 7, 0, 0xa, "<img src=x onerror=1></script>\x1b\xff");
	for (__u64 i = 0; i < 10; i++)
		stream_call(&records, 7, 70, STREAM_EXECUTE, 1000 * i + 1, 1000 * i + 500 + i, 0,
			    (const __u64[]){ 0xa }, 1);
	stream_pass(&records, 20000);
	stream_pass(&records, 20001);
	page = page_of(&records);
	document = document_of(page);
	cr_expect_null(strstr(page, "onerror"));
	cr_expect(json_is_object(document, strlen(document)));
	cr_expect(strstr(document, "\"name\":\"<img src=x onerror=1></script>\\u001b\xef\xbf\xbd\""), "%s", document);
	cr_expect(strstr(document, "\"latency\":{\"count\":10,\"min\":499,\"max\":508,"), "%s", document);
	cr_expect(strstr(document, "\"samples\":10,"), "%s", document);
	free(page);
	free(document);
	text_free(&records);
}

Test(page_page, any_recording_makes_a_page)
{
	for (__u64 seed = 1; seed < 5; seed++) {
		struct stream stream;
		char *page, *document;

		stream_init(&stream, seed);
		for (int i = 0; i < 20; i++)
			stream_round(&stream, 200);
		page = page_of(&stream.bytes);
		document = document_of(page);
		cr_expect(json_is_object(document, strlen(document)), "seed %llu", seed);
		free(page);
		free(document);
		stream_free(&stream);
	}
}

static struct study *study_of(const struct text *records)
{
	const int recording = record(records);
	const struct study_options options = { .log = &silent,
					       .inputs = (const char *const[]){ "/x/</script>.xpt" },
					       .input_count = 1,
					       .seed = 1,
					       .descriptors = &recording };
	struct study *study;

	cr_assert_eq(study_create(&options, &study), 0);
	close(recording);
	return study;
}

/* The page of a comparison of these two, terminated; to be freed. */
static char *comparison_of(const struct text *before, const struct text *after)
{
	const struct diff_options options = { DIFF_LEVEL, DIFF_RUN_NOISE, 1, NULL, 0 };
	struct study *studies[] = { study_of(before), study_of(after) };
	struct xpt_diff *diff;
	struct text page = {};

	cr_assert_eq(diff_create(&options, studies[0], studies[1], &diff), 0);
	page_diff(&page, diff, studies[0], studies[1]);
	text_bytes(&page, "", 1);
	cr_assert_not(page.error);
	diff_free(diff);
	study_free(studies[0]);
	study_free(studies[1]);
	return page.data;
}

/* Ten inferences of `<b>`, the first one with this duration in ns. */
static void add_inferences(struct text *records, __u64 duration)
{
	stream_describe(records);
	stream_text(records, XPT_RECORD_NAMED, 7, 0, 0xa, "<b>");
	for (__u64 i = 0; i < 10; i++)
		stream_call(records, 7, 70, STREAM_EXECUTE, 100000 * i + 1, 100000 * i + 1 + duration + i, 0,
			    (const __u64[]){ 0xa }, 1);
	stream_pass(records, 2000000);
	stream_pass(records, 2000001);
}

Test(page_page, comparison_has_exact_counts_of_both_sides)
{
	struct text before = {}, after = {};
	char *page, *document;

	add_inferences(&before, 64);
	add_inferences(&after, 70);
	page = comparison_of(&before, &after);
	document = document_of(page);
	cr_expect(json_is_object(document, strlen(document)), "%s", document);
	cr_expect(strstr(document, "\"bounds\":[64,66,68,70,72,74,76,78,80],"
				   "\"counts\":[[2,2,2,2,2,0,0,0],[0,0,0,2,2,2,2,2]]"),
		  "%s", document);
	cr_expect(strstr(document, "\"matched_by\":\"name\"") && strstr(document, "\"file\":\"/x/</script>.xpt\""));
	cr_expect_null(strstr(page, "<b>"));
	expect_hash(page, "</script>\n<script>", "</script>", "script-src 'sha256-");
	free(page);
	free(document);
	text_free(&before);
	text_free(&after);
}

Test(page_page, any_recordings_are_compared)
{
	for (__u64 seed = 1; seed < 4; seed++) {
		struct stream stream[2];
		char *page, *document;

		for (int side = 0; side < 2; side++) {
			stream_init(&stream[side], seed + side);
			for (int i = 0; i < 20; i++)
				stream_round(&stream[side], 200);
		}
		page = comparison_of(&stream[0].bytes, &stream[1].bytes);
		document = document_of(page);
		cr_expect(json_is_object(document, strlen(document)), "seed %llu", seed);
		free(page);
		free(document);
		stream_free(&stream[0]);
		stream_free(&stream[1]);
	}
}
