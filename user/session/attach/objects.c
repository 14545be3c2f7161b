/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/attach/objects.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "session/reader/describe_records.h"
#include "session/reader/readers.h"
#include "target/process/objects.h"

void objects_free(struct objects *objects)
{
	id_set_free(&objects->nodes);
	id_set_free(&objects->programs);
}

bool objects_node_is_new(struct objects *objects, pid_t tgid, __u64 object, __u64 class)
{
	return id_set_add(&objects->nodes, OBJECTS_NODES_MAX, tgid, object, class);
}

struct xpt_record_text *objects_node(struct attacher *attacher, pid_t tgid, __u64 time, __u64 object, __u64 class)
{
	const struct description *runtime = attacher_class_runtime(attacher, tgid, class);
	struct operator_node node;

	if (!runtime || file_reader_node(attacher_readers(attacher), runtime, tgid, object, class, &node))
		return NULL;
	return record_node(&node, tgid, time, object, class);
}

__u64 call_program(const struct xpt_spec *spec, const struct xpt_record_call *call)
{
	unsigned int value = 0;

	for (unsigned int i = 0; i < spec->fetches && value < call->values; i++) {
		if (spec->fetch[i].type == XPT_TYPE_STRING)
			continue;
		if (spec->fetch[i].meaning == XPT_MEANING_PROGRAM)
			return call->valid >> i & 1 ? call->value[value] : 0;
		value++;
	}
	return 0;
}

/* ---- names of programs ---- */

/* The files that a process has mapped, and what is looked for among them. */
struct mapped_names {
	const struct name_way *way;
	bool library; /* that the way is for is one of them */
	size_t count; /* of different files that fit */
	char name[OBJECT_NAME_MAX + 1];
};

static int visit_mapping(void *context, const struct maps_entry *entry)
{
	struct mapped_names *mapped = context;
	const char *slash = strrchr(entry->path, '/'), *base = slash ? slash + 1 : entry->path;

	if (!maps_entry_has_file(entry))
		return 0;
	if (mapped->way->library && !fnmatch(mapped->way->library, base, 0))
		mapped->library = true;
	if (mapped->way->kind != NAME_MAPPED || !name_way_fits(mapped->way, base) || !strcmp(mapped->name, entry->path))
		return 0;
	mapped->count++;
	snprintf(mapped->name, sizeof(mapped->name), "%s", entry->path);
	return 0;
}

static int find_name(struct file_readers *readers, const struct description *runtime, size_t index, pid_t tgid,
		     __u64 object, char name[OBJECT_NAME_MAX + 1])
{
	const struct name_way *way = &runtime->names[index];
	struct mapped_names mapped = { .way = way };

	if ((way->library || way->kind == NAME_MAPPED) && maps_each(tgid, visit_mapping, &mapped))
		return -ENOENT;
	if (way->library && !mapped.library)
		return -ENOENT;
	if (way->kind != NAME_MAPPED)
		return file_reader_name(readers, runtime, index, tgid, object, name);
	if (mapped.count != 1)
		return -ENOENT;
	memcpy(name, mapped.name, sizeof(mapped.name));
	return 0;
}

static const struct call_spec *spec_of(const struct registry *registry, const struct xpt_record_call *call)
{
	return call->spec < registry->spec_count ? registry->specs[call->spec] : NULL;
}

static bool is_released(const struct objects *objects, const struct xpt_record_call *call, __u64 handle)
{
	for (size_t i = 0; i < OBJECTS_RELEASED_MAX; i++)
		if (objects->released[i].tgid == (pid_t)call->header.tgid && objects->released[i].handle == handle &&
		    call->start < objects->released[i].time)
			return true;
	return false;
}

/* ---- places of names, from loads that were seen ---- */

void objects_string(struct objects *objects, const struct registry *registry, const struct xpt_record_string *string)
{
	const struct xpt_spec *spec = string->spec < registry->spec_count ? &registry->specs[string->spec]->wire : NULL;
	struct loaded_name *load = &objects->loads[objects->load_count % OBJECTS_LOADS_MAX];

	if (!spec || spec->role != XPT_ROLE_PROGRAM_LOAD || string->fetch >= spec->fetches ||
	    spec->fetch[string->fetch].meaning != XPT_MEANING_NAME || string->truncated)
		return;
	objects->load_count++;
	*load = (struct loaded_name){ string->call_start, string->tid, string->spec, "" };
	memcpy(load->name, string->text, string->length < XPT_STRING_MAX ? string->length : XPT_STRING_MAX);
}

/* Only names that are strings in their objects have a place there. */
static bool has_place(const struct description *runtime)
{
	for (size_t i = 0; i < runtime->name_count; i++)
		if (runtime->names[i].kind == NAME_FITS)
			return true;
	return false;
}

/* Where the object has the name, and what library it is of. */
static int place_of(struct attacher *attacher, const struct description *runtime, pid_t tgid, __u64 object,
		    const char *name, struct learned_place *result)
{
	struct name_place place;
	char path[32];
	struct stat process;
	const char *build_id;
	int error = file_reader_place(attacher_readers(attacher), runtime, tgid, object, name, &place);

	if (error)
		return error;
	build_id = attacher_build_id(attacher, tgid, place.table);
	snprintf(path, sizeof(path), "/proc/%d", (int)tgid);
	if (!build_id || stat(path, &process))
		return -ENOENT;
	*result = (struct learned_place){
		.runtime = runtime, .at = (unsigned int)place.at, .tgid = tgid, .user = process.st_uid
	};
	snprintf(result->build_id, sizeof(result->build_id), "%s", build_id);
	return 0;
}

static bool is_same_build(const struct learned_place *a, const struct learned_place *b)
{
	return a->runtime == b->runtime && a->user == b->user && !strcmp(a->build_id, b->build_id);
}

void objects_load(struct objects *objects, struct attacher *attacher, const struct registry *registry,
		  const struct xpt_record_call *call)
{
	const struct call_spec *spec = spec_of(registry, call);
	const struct description *runtime = spec ? registry->runtimes[spec->wire.runtime] : NULL;
	pid_t tgid = (pid_t)call->header.tgid;
	const struct loaded_name *load = NULL;
	struct learned_place place;
	__u64 handle;

	for (size_t i = 0; i < OBJECTS_LOADS_MAX; i++)
		if (objects->loads[i].tid == call->tid && objects->loads[i].spec == call->spec &&
		    objects->loads[i].call_start == call->start)
			load = &objects->loads[i];
	handle = load && runtime && has_place(runtime) ? call_program(&spec->wire, call) : 0;
	if (!handle || objects->place_count == OBJECTS_PLACES_MAX || objects->tries == OBJECTS_TRIES_MAX)
		return;
	for (size_t i = 0; i < objects->place_count; i++)
		if (objects->places[i].runtime == runtime && objects->places[i].tgid == tgid)
			return;
	objects->tries++;
	if (place_of(attacher, runtime, tgid, handle, load->name, &place))
		return;
	for (size_t i = 0; i < objects->place_count; i++)
		if (is_same_build(&objects->places[i], &place))
			return;
	objects->places[objects->place_count++] = place;
	id_set_free(&objects->programs);
	objects->programs = (struct id_set){ 0 };
}

static int find_learned(const struct objects *objects, struct attacher *attacher, const struct description *runtime,
			pid_t tgid, __u64 object, char name[OBJECT_NAME_MAX + 1])
{
	struct learned_place place;

	for (size_t i = 0; i < objects->place_count; i++) {
		const struct learned_place *learned = &objects->places[i];

		if (learned->runtime == runtime &&
		    !file_reader_name_at(attacher_readers(attacher), runtime, learned->at, tgid, object, name) &&
		    !place_of(attacher, runtime, tgid, object, name, &place) && place.at == learned->at &&
		    is_same_build(&place, learned))
			return 0;
	}
	return -ENOENT;
}

bool objects_program_is_new(struct objects *objects, const struct registry *registry,
			    const struct xpt_record_call *call)
{
	const struct call_spec *spec = spec_of(registry, call);
	const struct description *runtime = spec ? registry->runtimes[spec->wire.runtime] : NULL;
	pid_t tgid = (pid_t)call->header.tgid;
	__u64 handle;

	if (!runtime || !runtime->name_count || !(spec->wire.flags & XPT_SPEC_SAMPLED))
		return false;
	handle = call_program(&spec->wire, call);
	if (!handle || !id_set_add(&objects->programs, OBJECTS_PROGRAMS_MAX, tgid, handle, runtime->index))
		return false;
	if (!is_released(objects, call, handle))
		return true;
	id_set_remove(&objects->programs, tgid, handle, runtime->index);
	return false;
}

struct xpt_record_text *objects_program(const struct objects *objects, struct attacher *attacher,
					const struct registry *registry, const struct xpt_record_call *call, __u64 time)
{
	const struct call_spec *spec = registry->specs[call->spec];
	const struct description *runtime = registry->runtimes[spec->wire.runtime];
	__u64 handle = call_program(&spec->wire, call);
	pid_t tgid = (pid_t)call->header.tgid;
	char name[OBJECT_NAME_MAX + 1];
	bool unusable = false; /* it has a row of strings with a name that no program may have */
	int error;

	for (size_t i = 0; i < runtime->name_count; i++) {
		const struct name_way *way = &runtime->names[i];

		if (unusable && way->kind == NAME_ROW)
			continue;
		error = find_name(attacher_readers(attacher), runtime, i, tgid, handle, name);
		unusable |= error == -EILSEQ;
		if (!error || (way->kind == NAME_FITS && !find_learned(objects, attacher, runtime, tgid, handle, name)))
			return record_loaded_name(runtime, tgid, time, handle, name,
						  way->kind == NAME_MAPPED ? NAME_FROM_FILE : NAME_FROM_MEMORY);
	}
	return NULL;
}

void objects_forget_program(struct objects *objects, const struct registry *registry,
			    const struct xpt_record_call *call)
{
	const struct call_spec *spec = spec_of(registry, call);
	pid_t tgid = (pid_t)call->header.tgid;
	__u64 handle = spec ? call_program(&spec->wire, call) : 0;
	struct released_program *released;

	if (!handle)
		return;
	id_set_remove(&objects->programs, tgid, handle, spec->wire.runtime);
	released = &objects->released[objects->released_count++ % OBJECTS_RELEASED_MAX];
	*released = (struct released_program){ tgid, handle, call->start };
}

void objects_forget_nodes(struct objects *objects, pid_t tgid)
{
	id_set_drop(&objects->nodes, tgid);
}

void objects_forget(struct objects *objects, pid_t tgid)
{
	id_set_drop(&objects->nodes, tgid);
	id_set_drop(&objects->programs, tgid);
}
