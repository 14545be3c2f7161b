/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/core/json.h"
#include "page/page.h"
#include "record/recording.h"
#include "record_stream.h"

#define DOCUMENT_MOST (8u << 20)

static const struct log silent;

/* The page of these records, terminated; to be freed. */
static char *page_of(const struct text *records)
{
	const struct recording_info info = {
		.host = "h", .kernel = "k", .machine = "m", .version = "v", .command = "c", .boot_id = "b"
	};
	char recording_path[] = "/tmp/xputrace-page-XXXXXX", page_path[] = "/tmp/xputrace-page-XXXXXX";
	int recording = mkstemp(recording_path), page = mkstemp(page_path);
	const struct page_options options = {
		.log = &silent, .path = page_path, .descriptor = dup(page), .name = "/x/</script>.xpt"
	};
	struct recording_writer *writer;
	struct stat status;
	char *text;

	cr_assert_eq(recording_writer_create(&silent, NULL, dup(recording), &info, &writer), 0);
	for (size_t at = 0; at < records->length;) {
		const struct xpt_record_header *record = (const void *)(records->data + at);

		cr_assert_eq(recording_writer_add(writer, record), 0);
		at += record->size;
	}
	cr_assert_eq(recording_writer_close(writer), 0);
	cr_assert_eq(page_write(&options, recording), 0);
	cr_assert_eq(fstat(page, &status), 0);
	text = calloc(1, status.st_size + 1);
	cr_assert_eq(pread(page, text, status.st_size, 0), status.st_size);
	close(recording);
	close(page);
	unlink(recording_path);
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
