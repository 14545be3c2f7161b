/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/page.h"

#include <errno.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "analysis/explain_private.h"
#include "analysis/reading.h"
#include "base/file/file.h"
#include "base/file/output.h"
#include "base/file/tailed_file.h"
#include "page/document.h"

struct page {
	const struct log *log;
	char *name;
	struct page_names names;
	struct page_spans spans;
	struct flame *flames[PAGE_FLAMES];
	struct tailed_file file;
	bool has_file;
};

/* ---- the file ---- */

static void add_base64(struct text *text, const unsigned char *bytes, size_t length)
{
	const size_t size = (length + 2) / 3 * 4;

	if (length > INT_MAX / 2 || text_reserve(text, size + 1)) {
		text_fail(text);
		return;
	}
	EVP_EncodeBlock((unsigned char *)text->data + text->length, bytes, (int)length);
	text->length += size;
}

static void add_hash(struct text *text, const struct page_asset *asset)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int length;

	if (!EVP_Digest(asset->bytes, asset->length, digest, &length, EVP_sha256(), NULL)) {
		text_fail(text);
		return;
	}
	text_literal(text, " 'sha256-");
	add_base64(text, digest, length);
	text_literal(text, "'");
}

static void add_head(struct text *text)
{
	text_literal(text, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
			   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
			   "base-uri 'none'; form-action 'none'; script-src");
	add_hash(text, &page_script);
	text_literal(text, "; style-src");
	add_hash(text, &page_style);
	text_literal(
		text,
		"\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
		"<link rel=\"icon\" href=\"data:,\">\n<title>xputrace</title>\n<style>");
	text_bytes(text, page_style.bytes, page_style.length);
	text_literal(text,
		     "</style>\n</head>\n<body>\n<noscript>This page of xputrace needs JavaScript, which it has inside: "
		     "nothing is loaded.</noscript>\n<script id=\"data\" type=\"application/octet-stream\">");
}

/* The document as zlib (RFC 1950) compresses it. */
static void add_packed(struct text *text, const struct text *document)
{
	uLongf length = compressBound(document->length);
	unsigned char *packed = malloc(length);

	if (packed && !document->error &&
	    compress2(packed, &length, (const unsigned char *)document->data, document->length, 6) == Z_OK)
		add_base64(text, packed, length);
	else
		text_fail(text);
	free(packed);
}

static void add_page(struct text *text, const struct text *document)
{
	add_head(text);
	add_packed(text, document);
	text_literal(text, "</script>\n<script>");
	text_bytes(text, page_script.bytes, page_script.length);
	text_literal(text, "</script>\n</body>\n</html>\n");
}

void page_diff(struct text *text, const struct xpt_diff *diff, const struct study *before, const struct study *after)
{
	struct text data = {};

	page_comparison_add(&data, diff, (const struct study *[]){ before, after });
	add_page(text, &data);
	text_free(&data);
}

/* ---- all ---- */

static int open_file(struct page *page, const char *path, int descriptor)
{
	const bool output = descriptor < 0 && !strcmp(path, "-");
	int error;

	if (output)
		descriptor = file_standard_output();
	error = output && descriptor < 0 ? descriptor : tailed_file_open(&page->file, output ? NULL : path, descriptor);
	if (error)
		log_error(page->log, "%s: cannot be written: %s", path, output_reason(error));
	page->has_file = !error;
	return error;
}

int page_open(const struct page_options *options, struct model *model, struct page **result)
{
	struct page *page = calloc(1, sizeof(*page));
	int error;

	if (!page) {
		if (options->descriptor >= 0)
			close(options->descriptor);
		return -ENOMEM;
	}
	page->log = options->log;
	page->file.descriptor = -1;
	page_names_init(&page->names);
	page_spans_init(&page->spans, &page->names);
	page->name = strdup(options->name);
	error = open_file(page, options->path, options->descriptor);
	if (!error && !page->name)
		error = -ENOMEM;
	for (int i = 0; !error && i < PAGE_FLAMES; i++) {
		const struct flame_options flame = {
			.log = options->log, .what = i + 1, .wants = options->wants, .context = options->context
		};

		error = flame_open(&flame, model, &page->flames[i]);
	}
	error = error ?: model_add_sink(model, (struct event_sink){ page_spans_event, &page->spans });
	if (error)
		page_free(page);
	else
		*result = page;
	return error;
}

int page_close(struct page *page, const struct xpt_explain *explain, const struct model *model, __u64 length)
{
	struct page_document document = { .name = page->name,
					  .study = explain->study,
					  .explain = explain,
					  .model = model,
					  .length = length,
					  .spans = &page->spans,
					  .names = &page->names };
	struct text data = {}, text = {};
	int error = 0, closed;

	for (int i = 0; !error && i < PAGE_FLAMES; i++)
		error = flame_tree_create(page->flames[i], NULL, false, &document.flames[i]);
	if (!error) {
		page_document_add(&data, &document);
		add_page(&text, &data);
		error = text.error ?: tailed_file_append(&page->file, &text, "", 0, true);
	}
	for (int i = 0; i < PAGE_FLAMES; i++)
		flame_tree_free(document.flames[i]);
	text_free(&data);
	text_free(&text);
	page->has_file = false;
	closed = tailed_file_close(&page->file);
	return error ?: closed;
}

void page_free(struct page *page)
{
	if (!page)
		return;
	if (page->has_file)
		tailed_file_close(&page->file);
	for (int i = 0; i < PAGE_FLAMES; i++)
		flame_free(page->flames[i]);
	page_spans_free(&page->spans);
	page_names_free(&page->names);
	free(page->name);
	free(page);
}

int page_write(const struct page_options *options, int recording)
{
	const struct study_options chosen = { .log = options->log,
					      .inputs = &options->name,
					      .input_count = 1,
					      .descriptors = &recording,
					      .details = true };
	const struct reading_pass pass = { .log = options->log };
	struct reading reading = {};
	struct xpt_explain *explain = NULL;
	struct page *page = NULL;
	int error = reading_open(&reading, options->log, options->name, recording);

	if (!error)
		error = page_open(options, reading.model, &page);
	else if (options->descriptor >= 0)
		close(options->descriptor);
	error = error ?: reading_all(&reading, &pass);
	if (page && (!error || error == -ENODATA))
		error = explain_create(&chosen, PAGE_PROGRAMS_MAX, &explain) ?:
				page_close(page, explain, reading.model, 0);
	page_free(page);
	xpt_explain_destroy(explain);
	reading_close(&reading);
	return error;
}
