/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/code/views.h"

#include <stdlib.h>
#include <string.h>

#include "code/store/store.h"

#define LIST_MAX (8ull << 30) /* bytes: as many as are wanted */

__u64 code_view_size(const struct code_load *load)
{
	return (load->object ? load->object->size - load->zeros : 0) + load->missing;
}

const char *code_view_error(const struct code_load *load)
{
	return load->error ?: load->object ? load->object->contents.error : "no memory for it";
}

void code_view_uri(struct text *text, const struct code_load *load)
{
	if (load->path)
		code_uri_file(text, load->path, load->offset, load->size);
	else
		code_uri_memory(text, load->tgid, load->address, load->size);
}

/* The contents of an object are copied once, however many loads it has. */
struct shown {
	const struct code_object *object;
	const struct xpt_codeobj *as;
};

static int compare_shown(const void *a, const void *b)
{
	const struct shown *one = a, *other = b;

	return one->object < other->object ? -1 : one->object > other->object;
}

static bool set_uri(struct code_list *list, const struct code_load *load, struct xpt_codeobj *to)
{
	struct text text = {};

	code_view_uri(&text, load);
	to->uri = text.error ? NULL : code_list_text(list, text.data, text.length);
	text_free(&text);
	return to->uri;
}

static bool set_object(struct code_list *list, const struct code_object *object, struct xpt_codeobj *to)
{
	char name[CODE_STORE_NAME_SIZE];

	if (code_list_contents(list, &object->contents, to))
		return false;
	memcpy(to->sha256, object->sha256, sizeof(to->sha256));
	to->data = object->copy.bytes;
	if (!object->stored)
		return true;
	code_store_name(object->contents.kind, object->sha256, name);
	to->file = code_list_text(list, name, strlen(name));
	return to->file;
}

static void share_object(const struct xpt_codeobj *from, struct xpt_codeobj *to)
{
	to->kind = from->kind;
	to->machine = from->machine;
	to->name = from->name;
	to->functions = from->functions;
	to->function_count = from->function_count;
	to->functions_left_out = from->functions_left_out;
	to->parts = from->parts;
	to->part_count = from->part_count;
	to->data = from->data;
	to->file = from->file;
	memcpy(to->sha256, from->sha256, sizeof(to->sha256));
}

static bool set_contents(struct code_list *list, const struct code_load *load, struct shown *shown, size_t shown_count,
			 struct xpt_codeobj *to)
{
	struct shown key = { .object = load->object }, *found;

	if (!load->object) {
		to->kind = code_kind_name(load->hint);
		return true;
	}
	found = bsearch(&key, shown, shown_count, sizeof(*shown), compare_shown);
	if (found->as) {
		share_object(found->as, to);
		return true;
	}
	found->as = to;
	return set_object(list, load->object, to);
}

static bool add(struct code_list *list, const struct code_load *load, struct shown *shown, size_t shown_count)
{
	const char *error = code_view_error(load);
	struct xpt_codeobj *to = code_list_add(list);

	if (!to || !set_uri(list, load, to) || !set_contents(list, load, shown, shown_count, to))
		return false;
	to->error = error ? code_list_text(list, error, strlen(error)) : NULL;
	to->runtime = load->runtime ? code_list_text(list, load->runtime->name, strlen(load->runtime->name)) : NULL;
	to->function = load->spec ? code_list_text(list, load->spec->function, strlen(load->spec->function)) : NULL;
	if ((error && !to->error) || (load->runtime && !to->runtime) || (load->spec && !to->function))
		return false;
	to->pid = load->tgid;
	to->tid = load->tid;
	to->handle = load->handle;
	to->device = load->device;
	to->load_address = load->address;
	to->load_size = load->path ? load->length : load->size;
	to->data_size = code_view_size(load);
	to->missing = load->missing;
	to->loaded = load->loaded;
	to->unloaded = load->unloaded;
	to->status = load->status;
	to->waited = load->waited;
	return true;
}

static int compare_loads(const void *a, const void *b)
{
	const struct code_load *one = *(const struct code_load *const *)a, *other = *(const struct code_load *const *)b;

	return one->loaded < other->loaded ? -1 : one->loaded > other->loaded;
}

static size_t collect_objects(const struct code_load *const *loads, size_t count, struct shown *shown)
{
	size_t number = 0, kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (loads[i]->object)
			shown[number++].object = loads[i]->object;
	}
	qsort(shown, number, sizeof(*shown), compare_shown);
	for (size_t i = 0; i < number; i++) {
		if (!i || shown[i].object != shown[i - 1].object)
			shown[kept++] = shown[i];
	}
	return kept;
}

struct code_list *code_view_list(const struct code_load *const *loads, size_t count, const struct code_counts *counts,
				 __u64 userdata)
{
	struct code_list *list = code_list_new(LIST_MAX);
	const struct code_load **sorted = calloc(count ?: 1, sizeof(*sorted));
	struct shown *shown = calloc(count ?: 1, sizeof(*shown));
	bool good = list && sorted && shown;
	size_t objects = 0;

	if (good) {
		memcpy(sorted, loads, count * sizeof(*sorted));
		qsort(sorted, count, sizeof(*sorted), compare_loads);
		objects = collect_objects(loads, count, shown);
		list->list.userdata = userdata;
		list->list.over_limit = counts->over_limit;
		list->list.incomplete = counts->incomplete;
		list->list.lost = counts->lost;
	}
	for (size_t i = 0; i < count && good; i++)
		good = add(list, sorted[i], shown, objects);
	free(sorted);
	free(shown);
	if (good)
		return list;
	code_list_free(list);
	return NULL;
}
