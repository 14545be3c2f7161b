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

static char *member_get(const cJSON *object, const char *key, int *error)
{
	return text_get(cJSON_GetObjectItemCaseSensitive(object, key),
			strcmp(key, "uri") ? CODE_TEXT_MAX : CODE_URI_MAX, error);
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

static void code_text_free(struct event_code *event)
{
	for (size_t i = 0; i < event->kernel_count; i++)
		free((char *)event->kernels[i]);
	free((void *)event->kernels);
	free((char *)event->kind);
	free((char *)event->machine);
	free((char *)event->name);
	free((char *)event->uri);
	free((char *)event->sha256);
	free((char *)event->runtime);
	free((char *)event->function);
	free((char *)event->error);
	*event = (struct event_code){};
}

/*
 * Fills event from the JSON of a CODE_OBJECT record: all but process, time and handle. What is missing or makes no
 * sense is left unknown. Strings are owned by the event: code_text_free(). -ENOMEM: there is nothing to be freed.
 */
static int code_text_read(const cJSON *object, struct event_code *event)
{
	int error = 0;

	*event = (struct event_code){};
	event->kind = member_get(object, "kind", &error);
	if (!event->kind && !error)
		event->kind = strdup("unknown");
	event->machine = member_get(object, "machine", &error);
	event->name = member_get(object, "name", &error);
	event->uri = member_get(object, "uri", &error);
	event->sha256 = member_get(object, "sha256", &error);
	event->runtime = member_get(object, "runtime", &error);
	event->function = member_get(object, "function", &error);
	event->error = member_get(object, "error", &error);
	event->tid = (__u32)number_get(object, "tid", 0xffffffff);
	event->size = number_get(object, "size", NUMBER_MAX);
	event->functions = number_get(object, "functions", NUMBER_MAX);
	event->missing = number_get(object, "missing", NUMBER_MAX);
	event->waited = number_get(object, "waited_ns", NUMBER_MAX);
	kernels_get(cJSON_GetObjectItemCaseSensitive(object, "kernels"), event, &error);
	if (!event->kind)
		error = -ENOMEM;
	if (error)
		code_text_free(event);
	return error;
}

/* A handle that is loaded, and what its unload will report. */
struct code_load {
	struct map_node node; /* by the sort index of the process, and handle */
	struct link link;     /* of code_objects.loaded */
	struct link of_process;
	struct code_object *object; /* NULL: too many are known */
	char *kind, *name, *uri, *sha256;
};

void code_objects_init(struct code_objects *objects, struct event_dispatch *events)
{
	*objects = (struct code_objects){ .events = events };
	link_init(&objects->loaded);
}

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

static void load_free(struct code_load *load)
{
	if (!load)
		return;
	free(load->kind);
	free(load->name);
	free(load->uri);
	free(load->sha256);
	free(load);
}

static void load_drop(struct code_objects *objects, struct code_load *load)
{
	map_remove(&objects->by_handle, &load->node);
	link_remove(&load->link);
	link_remove(&load->of_process);
	load_free(load);
}

void code_objects_free(struct code_objects *objects)
{
	struct link *link, *following;

	link_each(link, following, &objects->loaded) load_drop(objects, container_of(link, struct code_load, link));
	for (size_t i = 0; i < objects->count; i++)
		object_free(objects->all[i]);
	for (unsigned int i = 0; i < objects->totals.kind_count; i++)
		free((char *)objects->totals.kinds[i].name);
	free(objects->all);
	map_free(&objects->by_content);
	map_free(&objects->by_handle);
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

static struct code_load *load_find(const struct code_objects *objects, const struct process *process, __u64 handle)
{
	struct map_node *node = map_find(&objects->by_handle, process->view.sort_index, handle);

	return node ? container_of(node, struct code_load, node) : NULL;
}

static struct code_load *load_create(struct code_object *object, const struct event_code *event)
{
	struct code_load *load = calloc(1, sizeof(*load));
	int error = 0;

	if (!load)
		return NULL;
	load->object = object;
	load->kind = (char *)copy(event->kind, &error);
	load->name = (char *)copy(event->name, &error);
	load->uri = (char *)copy(event->uri, &error);
	load->sha256 = (char *)copy(event->sha256, &error);
	if (!error)
		return load;
	load_free(load);
	return NULL;
}

/* A handle that was not unloaded before is used again all the same. */
static int load_keep(struct code_objects *objects, struct process *process, struct code_object *object,
		     const struct event_code *event)
{
	struct code_load *before = load_find(objects, process, event->handle), *load;

	if (before)
		load_drop(objects, before);
	else if (objects->by_handle.count >= MODEL_CODE_LOADS_MAX)
		load_drop(objects, container_of(objects->loaded.next, struct code_load, link));
	load = load_create(object, event);
	if (!load || map_add(&objects->by_handle, &load->node, process->view.sort_index, event->handle)) {
		load_free(load);
		return -ENOMEM;
	}
	link_append(&objects->loaded, &load->link);
	link_append(&process->code, &load->of_process);
	return 0;
}

static void code_emit(const struct code_objects *objects, const struct event_code *event)
{
	const struct event told = { .kind = EVENT_CODE, .code = *event };

	event_dispatch_emit(objects->events, &told);
}

int code_objects_load(struct code_objects *objects, struct process *process, const struct xpt_record_text *record,
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
	struct code_load *load = load_find(objects, process, record->id);
	struct event_code event = {
		.tgid = record->header.tgid, .time = record->header.time, .unloaded = true, .handle = record->id
	};

	if (!load)
		return;
	event.kind = load->kind;
	event.name = load->name;
	event.uri = load->uri;
	event.sha256 = load->sha256;
	objects->totals.unloads++;
	if (load->object)
		load->object->view.unloads++;
	code_emit(objects, &event);
	load_drop(objects, load);
}

void code_objects_drop_process(struct code_objects *objects, struct process *process)
{
	struct link *link, *following;

	link_each(link, following, &process->code) load_drop(objects, container_of(link, struct code_load, of_process));
}
