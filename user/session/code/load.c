/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/code/load.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "session/code/views.h"
#include "session/reader/describe_records.h"

void code_load_set_error(struct code_load *load, const char *format, ...)
{
	va_list arguments;

	if (load->error)
		return;
	va_start(arguments, format);
	if (vasprintf(&load->error, format, arguments) < 0)
		load->error = NULL;
	va_end(arguments);
}

void code_load_set_file_error(struct code_load *load, int error)
{
	load->in_file = false;
	load->incomplete = true;
	code_load_set_error(load, "the file cannot be opened: %s",
			    error == -ETIMEDOUT ? "its file system does not answer" :
			    error == -EPROTO	? "the process that read it has ended" :
						  strerror(-error));
}

void code_load_free(struct code_load *load)
{
	if (!load)
		return;
	code_copy_free(&load->copy);
	file_reader_close(load->reader);
	if (load->place >= 0)
		close(load->place);
	free(load->path);
	free(load->error);
	free(load);
}

#define NAMES_BYTES 32000 /* of kernels in a record: its size has 16 bits */

/* Text is escaped whatever it is: cJSON would pass bytes on as they are. */
static void add_text(struct text *text, const char *name, const char *value)
{
	if (!value)
		return;
	text_literal(text, ",\"");
	text_string(text, name);
	text_literal(text, "\":");
	text_json(text, value, text_cut(value, strlen(value), XPT_STRING_MAX));
}

static void add_number(struct text *text, const char *name, __u64 value)
{
	text_literal(text, ",\"");
	text_string(text, name);
	text_literal(text, "\":");
	text_unsigned(text, value);
}

static void add_kernels(struct text *text, const struct code_contents *contents)
{
	size_t begin = text->length, count = 0;

	text_literal(text, ",\"kernels\":[");
	for (size_t i = 0; i < contents->function_count && count < CODE_RECORD_KERNELS; i++) {
		const char *name = contents->functions[i].name;

		if (!contents->functions[i].kernel)
			continue;
		if (text->length - begin > NAMES_BYTES)
			break;
		if (count++)
			text_literal(text, ",");
		text_json(text, name, text_cut(name, strlen(name), XPT_STRING_MAX));
	}
	text_literal(text, "]");
	add_number(text, "functions", contents->function_count + contents->functions_left_out);
}

static void add_object(struct text *text, const struct code_object *object)
{
	add_text(text, "machine", object->contents.machine);
	add_text(text, "name", object->contents.name);
	if (*object->sha256)
		add_text(text, "sha256", object->sha256);
	add_kernels(text, &object->contents);
}

static void add_uri(struct text *text, const struct code_load *load)
{
	struct text uri = {};

	code_view_uri(&uri, load);
	text_literal(text, "{\"uri\":");
	text_json(text, uri.data, uri.error ? 0 : text_cut(uri.data, uri.length, 3 * XPT_STRING_MAX));
	text_free(&uri);
}

struct xpt_record_text *record_code_object(const struct code_load *load)
{
	struct xpt_record_text *record = NULL;
	struct text text = {};

	add_uri(&text, load);
	add_text(&text, "kind", code_kind_name(load->object ? load->object->contents.kind : load->hint));
	add_number(&text, "size", code_view_size(load));
	if (load->runtime)
		add_text(&text, "runtime", load->runtime->name);
	if (load->spec)
		add_text(&text, "function", load->spec->function);
	if (load->tid)
		add_number(&text, "tid", load->tid);
	if (load->waited)
		add_number(&text, "waited_ns", load->waited);
	if (load->missing)
		add_number(&text, "missing", load->missing);
	add_text(&text, "error", code_view_error(load));
	if (load->object)
		add_object(&text, load->object);
	text_literal(&text, "}");
	text_bytes(&text, "", 1);
	if (!text.error)
		record = record_text(XPT_RECORD_CODE_OBJECT, load->tgid, load->loaded ?: clock_monotonic(),
				     load->handle, text.data);
	text_free(&text);
	return record;
}

struct xpt_record_text *record_code_unloaded(const struct code_load *load)
{
	return record_text(XPT_RECORD_CODE_UNLOADED, load->tgid, load->unloaded, load->handle, "");
}
