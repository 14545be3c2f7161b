/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code/store/index.h"

/* What loads have in common that are of one object. */
struct group {
	const struct xpt_codeobj *object; /* the first load of it */
	const char *file;		  /* of any of them */
	size_t number;			  /* of those with bytes missing, from 1; 0: it has a hash */
	bool same_error;		  /* then it is the object's */
};

/* Loads in the order of their hashes, then as they are in the list. */
struct entry {
	const struct xpt_codeobj *load;
	size_t index;
};

static int compare_entries(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	int order = strcmp(a->load->sha256, b->load->sha256);

	return order ?: a->index < b->index ? -1 : 1;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Fills of[]: the group of each load, which is the one with the first load's index. */
static int find_groups(const struct xpt_codeobj_list *list, struct group *groups, size_t *of)
{
	struct entry *entries = calloc(list->count, sizeof(*entries));
	size_t incomplete = 0, first = 0;

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < list->count; i++)
		entries[i] = (struct entry){ list->objects[i], i };
	qsort(entries, list->count, sizeof(*entries), compare_entries);
	for (size_t i = 0; i < list->count; i++) {
		const struct xpt_codeobj *load = entries[i].load;
		struct group *group = &groups[first];

		if (!i || !*load->sha256 || strcmp(load->sha256, group->object->sha256) != 0) {
			first = entries[i].index;
			group = &groups[first];
			*group = (struct group){ load, NULL, *load->sha256 ? 0 : ++incomplete, true };
		}
		of[entries[i].index] = first;
		group->file = group->file ?: load->file;
		/* The reason for missing bytes belongs to the load. */
		group->same_error &= !load->missing && same_text(load->error, group->object->error);
	}
	free(entries);
	return 0;
}

/* ---- members ---- */

/* Members begin with a comma but for the first one of an object. */
static void begin_member(struct text *text, const char *name)
{
	if (text->length && text->data[text->length - 1] != '{')
		text_literal(text, ",");
	text_literal(text, "\"");
	text_string(text, name);
	text_literal(text, "\":");
}

static void add_string(struct text *text, const char *name, const char *value)
{
	if (!value)
		return;
	begin_member(text, name);
	text_json_string(text, value);
}

/* 0: not known. */
static void add_number(struct text *text, const char *name, __u64 value)
{
	if (!value)
		return;
	begin_member(text, name);
	text_unsigned(text, value);
}

static void add_signed(struct text *text, const char *name, __s64 value)
{
	begin_member(text, name);
	text_signed(text, value);
}

static void add_address(struct text *text, const char *name, __u64 value)
{
	if (!value)
		return;
	begin_member(text, name);
	text_literal(text, "\"");
	text_hexadecimal(text, value);
	text_literal(text, "\"");
}

static void add_flag(struct text *text, const char *name, bool value)
{
	if (!value)
		return;
	begin_member(text, name);
	text_literal(text, "true");
}

/* An object in an array, on a line of its own. */
static void begin_item(struct text *text, bool first, const char *indent)
{
	if (!first)
		text_literal(text, ",");
	text_literal(text, "\n");
	text_string(text, indent);
	text_literal(text, "{");
}

/* ---- objects ---- */

static void add_functions(struct text *text, const struct xpt_codeobj *object)
{
	begin_member(text, "functions");
	text_literal(text, "[");
	for (size_t i = 0; i < object->function_count; i++) {
		const struct xpt_codeobj_function *function = &object->functions[i];

		begin_item(text, !i, "  ");
		add_string(text, "name", function->name);
		add_number(text, "offset", function->offset);
		add_number(text, "size", function->size);
		add_address(text, "address", function->address);
		add_flag(text, "kernel", function->kernel);
		text_literal(text, "}");
	}
	text_literal(text, "]");
	add_number(text, "functions_left_out", object->functions_left_out);
}

static void add_parts(struct text *text, const struct xpt_codeobj *object)
{
	if (!object->part_count)
		return;
	begin_member(text, "parts");
	text_literal(text, "[");
	for (size_t i = 0; i < object->part_count; i++) {
		const struct xpt_codeobj_part *part = &object->parts[i];

		begin_item(text, !i, "  ");
		add_string(text, "name", part->name);
		add_string(text, "kind", part->kind);
		add_flag(text, "external", part->external);
		add_number(text, "offset", part->offset);
		add_number(text, "size", part->length);
		text_literal(text, "}");
	}
	text_literal(text, "]");
}

static void add_id(struct text *text, const char *name, const struct group *group)
{
	if (!group->number) {
		add_string(text, name, group->object->sha256);
		return;
	}
	begin_member(text, name);
	text_literal(text, "\"incomplete-");
	text_unsigned(text, group->number);
	text_literal(text, "\"");
}

static void add_object(struct text *text, const struct group *group)
{
	const struct xpt_codeobj *object = group->object;

	add_id(text, "id", group);
	add_string(text, "kind", object->kind);
	add_string(text, "machine", object->machine);
	add_string(text, "name", object->name);
	add_number(text, "size", object->data_size);
	add_string(text, "sha256", group->number ? NULL : object->sha256);
	add_string(text, "file", group->number ? NULL : group->file);
	add_string(text, "error", group->same_error ? object->error : NULL);
	add_functions(text, object);
	add_parts(text, object);
	text_literal(text, "}");
}

/* ---- loads ---- */

static void add_load(struct text *text, const struct xpt_codeobj *load, const struct group *group)
{
	add_id(text, "object", group);
	add_string(text, "uri", load->uri);
	add_string(text, "runtime", load->runtime);
	add_string(text, "function", load->function);
	add_number(text, "pid", load->pid > 0 ? load->pid : 0);
	add_number(text, "tid", load->tid > 0 ? load->tid : 0);
	add_address(text, "handle", load->handle);
	if (load->device >= 0)
		add_signed(text, "device", load->device);
	add_address(text, "load_address", load->load_address);
	add_number(text, "load_size", load->load_size);
	add_number(text, "loaded_ns", load->loaded);
	add_number(text, "unloaded_ns", load->unloaded);
	if (load->function)
		add_signed(text, "status", load->status);
	add_number(text, "waited_ns", load->waited);
	add_number(text, "missing", load->missing);
	add_string(text, "error", group->same_error ? NULL : load->error);
	text_literal(text, "}");
}

static void add_lists(struct text *text, const struct xpt_codeobj_list *list, const struct group *groups,
		      const size_t *of)
{
	bool first = true;

	text_literal(text, ",\n\"objects\":[");
	for (size_t i = 0; i < list->count; i++) {
		if (of[i] != i)
			continue;
		begin_item(text, first, "");
		add_object(text, &groups[i]);
		first = false;
	}
	text_literal(text, "],\n\"loads\":[");
	for (size_t i = 0; i < list->count; i++) {
		begin_item(text, !i, "");
		add_load(text, list->objects[i], &groups[of[i]]);
	}
	text_literal(text, "],\n");
}

void code_index_write(struct text *text, const struct xpt_codeobj_list *list, const char *mode)
{
	struct group *groups = calloc(list->count + 1, sizeof(*groups));
	size_t *of = calloc(list->count + 1, sizeof(*of));

	if (!groups || !of || (list->count && find_groups(list, groups, of))) {
		text->error = -ENOMEM;
	} else {
		text_literal(text, "{\"schema\":");
		text_unsigned(text, CODE_INDEX_SCHEMA);
		add_string(text, "tool", "xputrace " XPT_VERSION);
		add_string(text, "mode", mode);
		add_lists(text, list, groups, of);
		text_literal(text, "\"over_limit\":");
		text_unsigned(text, list->over_limit);
		text_literal(text, ",\"incomplete\":");
		text_unsigned(text, list->incomplete);
		text_literal(text, ",\"lost\":");
		text_unsigned(text, list->lost);
		add_number(text, "userdata", list->userdata);
		text_literal(text, "}\n");
	}
	free(groups);
	free(of);
}
