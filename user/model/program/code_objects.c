/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/code_objects.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"
#include "base/core/vec.h"

#define CODE_URI_MAX 4096      /* bytes kept of an URI, */
#define CODE_TEXT_MAX 1024     /* and of all other strings */
#define NUMBER_MAX (1LL << 53) /* beyond, numbers of JSON are not exact */

static char *text_get(const cJSON *item, size_t most, int *error)
{
	const char *text = cJSON_GetStringValue(item);
	char *copy;

	if (!text || !*text || *error)
		return NULL;
	copy = strndup(text, most);
	if (!copy)
		*error = -ENOMEM;
	return copy;
}

static __u64 number_get(const cJSON *object, const char *key, __s64 most)
{
	__s64 number;

	return json_integer_get(object, key, 0, most, &number) ? 0 : (__u64)number;
}

static void kernels_get(const cJSON *array, struct event_code *event, int *error)
{
	const char **names;
	const cJSON *item;

	if (!cJSON_IsArray(array) || !array->child)
		return;
	names = calloc(CODE_KERNELS_MAX, sizeof(*names));
	if (!names) {
		*error = -ENOMEM;
		return;
	}
	event->kernels = names;
	cJSON_ArrayForEach(item, array) {
		if (event->kernel_count == CODE_KERNELS_MAX)
			break;
		names[event->kernel_count] = text_get(item, CODE_TEXT_MAX, error);
		if (names[event->kernel_count])
			event->kernel_count++;
	}
}

/* The strings of an event that are members of the JSON; the first ones are kept as long as it is loaded. */
static const struct {
	const char *key;
	size_t place, most;
} code_texts[] = {
	{ "kind", offsetof(struct event_code, kind), CODE_TEXT_MAX },
	{ "name", offsetof(struct event_code, name), CODE_TEXT_MAX },
	{ "uri", offsetof(struct event_code, uri), CODE_URI_MAX },
	{ "sha256", offsetof(struct event_code, sha256), CODE_TEXT_MAX },
	{ "machine", offsetof(struct event_code, machine), CODE_TEXT_MAX },
	{ "runtime", offsetof(struct event_code, runtime), CODE_TEXT_MAX },
	{ "function", offsetof(struct event_code, function), CODE_TEXT_MAX },
	{ "error", offsetof(struct event_code, error), CODE_TEXT_MAX },
};

#define CODE_TEXTS (sizeof(code_texts) / sizeof(code_texts[0]))
#define CODE_TEXTS_KEPT 4

static char **code_text(const struct event_code *event, size_t i)
{
	return (char **)((char *)event + code_texts[i].place);
}

static void code_text_free(struct event_code *event)
{
	for (size_t i = 0; i < event->kernel_count; i++)
		free((char *)event->kernels[i]);
	free((void *)event->kernels);
	for (size_t i = 0; i < CODE_TEXTS; i++)
		free(*code_text(event, i));
	*event = (struct event_code){};
}

/*
 * Fills event from the JSON of a CODE_OBJECT record: all but process, time and handle. What is missing or makes no
 * sense is left unknown. Strings are owned by the event: code_text_free(). -ENOMEM: there is nothing to be freed.
 */
static int code_text_read(const cJSON *json, struct event_code *event)
{
	int error = 0;

	*event = (struct event_code){};
	for (size_t i = 0; i < CODE_TEXTS; i++)
		*code_text(event, i) = text_get(cJSON_GetObjectItemCaseSensitive(json, code_texts[i].key),
						code_texts[i].most, &error);
	if (!event->kind && !error)
		event->kind = strdup("unknown");
	event->tid = (__u32)number_get(json, "tid", 0xffffffff);
	event->size = number_get(json, "size", NUMBER_MAX);
	event->functions = number_get(json, "functions", NUMBER_MAX);
	event->missing = number_get(json, "missing", NUMBER_MAX);
	event->waited = number_get(json, "waited_ns", NUMBER_MAX);
	kernels_get(cJSON_GetObjectItemCaseSensitive(json, "kernels"), event, &error);
	if (!event->kind)
		error = -ENOMEM;
	if (error)
		code_text_free(event);
	return error;
}

/* A handle that is loaded. */
struct code_load {
	struct keyed keyed;	    /* by the sort index of the process, and handle */
	struct code_object *object; /* NULL: too many are known */
	struct event_code unload;   /* what it will report */
};

static void object_free(struct code_object *object)
{
	if (!object)
		return;
	free((char *)object->view.kind);
	free((char *)object->view.machine);
	free((char *)object->view.name);
	free((char *)object->view.sha256);
	free((char *)object->view.error);
	free((char *)object->view.uri);
	free(object);
}

static void load_free(void *context, struct keyed *entry)
{
	struct code_load *load = container_of(entry, struct code_load, keyed);

	(void)context;
	code_text_free(&load->unload);
	free(load);
}

void code_objects_init(struct code_objects *objects, struct event_dispatch *events)
{
	*objects = (struct code_objects){ .events = events };
	keyed_init(&objects->loads, MODEL_CODE_LOADS_MAX, load_free, NULL);
}

void code_objects_free(struct code_objects *objects)
{
	keyed_free(&objects->loads);
	for (size_t i = 0; i < objects->count; i++)
		object_free(objects->all[i]);
	for (unsigned int i = 0; i < objects->totals.kind_count; i++)
		free((char *)objects->totals.kinds[i].name);
	free(objects->all);
	map_free(&objects->by_content);
}

/* ---- which there are ---- */

/* What distinguishes it from others of its kind and size. */
static const char *content_of(const char *sha256, const char *uri)
{
	return sha256 ? sha256 : uri ? uri : "";
}

static bool is_same(const struct model_code_object *view, const struct event_code *event)
{
	return view->size == event->size && !view->sha256 == !event->sha256 && !strcmp(view->kind, event->kind) &&
	       !strcmp(content_of(view->sha256, view->uri), content_of(event->sha256, event->uri));
}

static struct code_object *object_find(const struct code_objects *objects, const struct event_code *event, __u64 key)
{
	struct map_node *node = map_find(&objects->by_content, key, event->size);

	while (node && !is_same(&container_of(node, struct code_object, node)->view, event))
		node = map_next(node);
	return node ? container_of(node, struct code_object, node) : NULL;
}

static const char *copy(const char *text, int *error)
{
	char *result = text ? strdup(text) : NULL;

	if (text && !result)
		*error = -ENOMEM;
	return result;
}

static struct code_object *object_create(const struct event_code *event)
{
	struct code_object *object = calloc(1, sizeof(*object));
	int error = 0;

	if (!object)
		return NULL;
	object->view.kind = copy(event->kind, &error);
	object->view.machine = copy(event->machine, &error);
	object->view.name = copy(event->name, &error);
	object->view.sha256 = copy(event->sha256, &error);
	object->view.error = copy(event->error, &error);
	object->view.uri = copy(event->uri, &error);
	object->view.size = event->size;
	object->view.kernels = event->kernel_count;
	object->view.functions = event->functions;
	if (!error)
		return object;
	object_free(object);
	return NULL;
}

/* *result is NULL where there are too many. -ENOMEM. */
static int object_get(struct code_objects *objects, const struct event_code *event, struct code_object **result)
{
	__u64 key = text_hash(content_of(event->sha256, event->uri));

	*result = object_find(objects, event, key);
	if (*result || objects->count >= MODEL_CODE_OBJECTS_MAX)
		return 0;
	if (vec_reserve(objects->all, objects->count))
		return -ENOMEM;
	*result = object_create(event);
	if (!*result)
		return -ENOMEM;
	if (map_add(&objects->by_content, &(*result)->node, key, event->size)) {
		object_free(*result);
		*result = NULL;
		return -ENOMEM;
	}
	objects->all[objects->count++] = *result;
	return 0;
}

/* ---- counts ---- */

static int kind_count(struct model_code_totals *totals, const char *kind)
{
	const unsigned int most = sizeof(totals->kinds) / sizeof(totals->kinds[0]);
	unsigned int i;
	int error = 0;

	for (i = 0; i < totals->kind_count; i++)
		if (i == most - 1 || !strcmp(totals->kinds[i].name, kind))
			break;
	if (i == totals->kind_count) {
		totals->kinds[i].name = copy(i == most - 1 ? "(others)" : kind, &error);
		if (error)
			return error;
		totals->kind_count++;
	}
	totals->kinds[i].loads++;
	return 0;
}

static int load_count(struct model_code_totals *totals, struct code_object *object, const struct event_code *event)
{
	totals->loads++;
	totals->incomplete += event->missing > 0;
	if (event->waited) {
		totals->waited++;
		totals->wait_time += event->waited;
	}
	if (object) {
		object->view.loads++;
		object->view.incomplete += event->missing > 0;
	}
	return kind_count(totals, event->kind);
}

/* ---- what is loaded ---- */

/* A handle that was not unloaded before is used again all the same. */
static int load_keep(struct code_objects *objects, const struct process *process, struct code_object *object,
		     const struct event_code *event)
{
	const unsigned int index = process->view.sort_index;
	struct keyed *before = keyed_find(&objects->loads, index, event->handle);
	struct code_load *load = calloc(1, sizeof(*load));
	int error = 0;

	if (before)
		keyed_drop(&objects->loads, before);
	if (!load)
		return -ENOMEM;
	load->object = object;
	load->unload = (struct event_code){ .tgid = event->tgid, .unloaded = true, .handle = event->handle };
	for (size_t i = 0; i < CODE_TEXTS_KEPT; i++)
		*code_text(&load->unload, i) = (char *)copy(*code_text(event, i), &error);
	if (error || keyed_add(&objects->loads, &load->keyed, index, index, event->handle)) {
		load_free(NULL, &load->keyed);
		return -ENOMEM;
	}
	return 0;
}

static void code_emit(const struct code_objects *objects, const struct event_code *event)
{
	const struct event out = { .kind = EVENT_CODE, .code = *event };

	event_dispatch_emit(objects->events, &out);
}

int code_objects_load(struct code_objects *objects, const struct process *process, const struct xpt_record_text *record,
		      const cJSON *json)
{
	const struct xpt_record_header *header = &record->header;
	struct event_code event;
	struct code_object *object;
	int error = code_text_read(json, &event), kept = 0, counted;

	if (error)
		return error;
	event.tgid = header->tgid;
	event.time = header->time;
	event.handle = record->id;
	error = object_get(objects, &event, &object);
	counted = load_count(&objects->totals, object, &event);
	/*
	 * Of processes that are not kept apart the same handles would meet. One that has exited may have loaded it, and
	 * unloaded it, before: its bytes have been analysed only now.
	 */
	if (event.handle && process->view.tgid == event.tgid && (!process->exited || event.time < process->exited))
		kept = load_keep(objects, process, object, &event);
	code_emit(objects, &event);
	code_text_free(&event);
	return error ? error : counted ? counted : kept;
}

void code_objects_unload(struct code_objects *objects, const struct process *process,
			 const struct xpt_record_text *record)
{
	struct keyed *entry = keyed_find(&objects->loads, process->view.sort_index, record->id);
	struct code_load *load = entry ? container_of(entry, struct code_load, keyed) : NULL;

	if (!load)
		return;
	load->unload.time = record->header.time;
	objects->totals.unloads++;
	if (load->object)
		load->object->view.unloads++;
	code_emit(objects, &load->unload);
	keyed_drop(&objects->loads, entry);
}
