/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/chrome/code.h"

#include <errno.h>

#include "code/store/uri.h"
#include "report/chrome/metadata.h"
#include "report/chrome/parts.h"

#define HASH_SHOWN 12 /* digits: enough to find the file that `xputrace codeobj` names by it */

static void add_word(struct text *text, const char *word, size_t length)
{
	if (length)
		text_literal(text, " ");
	text_json_part(text, word, length);
}

/* Its own name, else the name of its file; of one in memory, where an address means little, the begin of its hash. */
static void add_label(struct text *text, const struct event_code *code)
{
	struct code_uri uri = {};
	const char *last;

	text_json_part(text, code->kind, strlen(code->kind));
	if (!code->name && code->uri && code_uri_parse(code->uri, &uri) == -ENOMEM)
		text_fail(text);
	last = uri.path ? strrchr(uri.path, '/') : NULL;
	if (code->name)
		add_word(text, code->name, strlen(code->name));
	else if (uri.path)
		add_word(text, last ? last + 1 : uri.path, strlen(last ? last + 1 : uri.path));
	else if (code->sha256)
		add_word(text, code->sha256, strnlen(code->sha256, HASH_SHOWN));
	code_uri_free(&uri);
}

static void add_kernels(struct text *text, const struct event_code *code)
{
	if (!code->kernel_count)
		return;
	text_literal(text, ",\"kernels\":[");
	for (size_t i = 0; i < code->kernel_count; i++) {
		if (i)
			text_literal(text, ",");
		text_json_string(text, code->kernels[i]);
	}
	text_literal(text, "]");
}

static void add_string(struct text *text, const char *name, const char *value)
{
	if (value)
		chrome_member_string(text, name, value);
}

static void add_number(struct text *text, const char *name, __u64 value)
{
	if (value)
		chrome_member_unsigned(text, name, value);
}

static void add_arguments(struct text *text, const struct event_code *code)
{
	chrome_string(text, ",\"args\":{\"kind\":", code->kind);
	add_string(text, "uri", code->uri);
	add_string(text, "machine", code->machine);
	add_string(text, "name", code->name);
	add_number(text, "size", code->size);
	add_string(text, "sha256", code->sha256);
	add_string(text, "runtime", code->runtime);
	add_string(text, "function", code->function);
	if (code->handle)
		chrome_hexadecimal(text, ",\"handle\":", code->handle);
	add_kernels(text, code);
	add_number(text, "functions", code->functions);
	if (code->waited)
		chrome_microseconds(text, ",\"waited_us\":", code->waited);
	add_number(text, "missing", code->missing);
	add_string(text, "error", code->error);
	if (!code->unloaded && !code->tid)
		text_literal(text, ",\"found\":true");
	text_literal(text, "}}");
}

/* As for probes: a span of the process as a whole, all its threads stood still. */
static void add_waited(struct chrome_events *events, const struct event_code *code)
{
	struct text *text = events->text;
	__u64 id = ++events->wait_count, end = code->time + code->waited;

	chrome_begin(events, 'b', code->tgid, code->tgid, code->time);
	chrome_id(text, id);
	text_literal(text, ",\"cat\":\"xputrace\",\"name\":\"waited\",\"args\":{\"code_object\":\"");
	add_label(text, code);
	text_literal(text, "\"}}");
	chrome_begin(events, 'e', code->tgid, code->tgid, end > code->time ? end : code->time);
	chrome_id(text, id);
	text_literal(text, ",\"cat\":\"xputrace\",\"name\":\"waited\"}");
}

void chrome_code_add(struct chrome_events *events, const struct event_code *code)
{
	struct text *text = events->text;

	chrome_begin(events, 'i', code->tgid, code->tid ? code->tid : code->tgid, code->time);
	text_string(text, code->tid ? ",\"s\":\"t\"" : ",\"s\":\"p\"");
	text_literal(text, ",\"cat\":\"codeobj\",\"name\":\"");
	text_string(text, code->unloaded ? "unload " : "load ");
	add_label(text, code);
	text_literal(text, "\"");
	add_arguments(text, code);
	if (code->waited)
		add_waited(events, code);
}

/* ---- metadata ---- */

static void add_object(struct text *text, const struct model_code_object *object)
{
	chrome_string(text, "{\"kind\":", object->kind);
	add_string(text, "machine", object->machine);
	add_string(text, "name", object->name);
	add_string(text, "uri", object->uri);
	add_number(text, "size", object->size);
	add_string(text, "sha256", object->sha256);
	chrome_member_unsigned(text, "kernels", object->kernels);
	chrome_member_unsigned(text, "functions", object->functions);
	chrome_member_unsigned(text, "loads", object->loads);
	chrome_member_unsigned(text, "unloads", object->unloads);
	chrome_member_unsigned(text, "incomplete", object->incomplete);
	add_string(text, "error", object->error);
	text_literal(text, "}");
}

void chrome_code_totals(struct text *text, const struct model *model)
{
	const struct model_code_totals *totals = model_code_totals(model);

	chrome_unsigned(text, "{\"loads\":", totals->loads);
	chrome_member_unsigned(text, "unloads", totals->unloads);
	chrome_member_unsigned(text, "incomplete", totals->incomplete);
	chrome_member_unsigned(text, "waited", totals->waited);
	chrome_member_microseconds(text, "waited_us", totals->wait_time);
	text_literal(text, ",\"kinds\":[");
	for (unsigned int i = 0; i < totals->kind_count; i++) {
		text_string(text, i ? ",{\"kind\":" : "{\"kind\":");
		text_json_string(text, totals->kinds[i].name);
		chrome_member_unsigned(text, "loads", totals->kinds[i].loads);
		text_literal(text, "}");
	}
	text_literal(text, "],\"objects\":[");
	for (size_t i = 0; i < model_code_object_count(model); i++) {
		text_string(text, i ? ",\n" : "\n");
		add_object(text, model_code_object(model, i));
	}
	text_literal(text, "]}");
}
