/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/operator/operators.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/stream/objects.h"

#define OPERATOR_CLASS_NAME_MAX 1024 /* bytes kept of a name */
#define LABEL_MAX (OPERATOR_CLASS_NAME_MAX + 24)

/* What a NODE record says of an object that is yet to be seen executing. */
struct told_node {
	struct map_node node; /* by process and object */
	__u64 class;
	char *name, *type, *provider; /* NULL: not told */
	__s64 index;
};

/* How many operators of a type a program has. */
struct type_number {
	struct map_node node; /* by program and type */
	unsigned int count;
};

void steps_init(struct steps *steps, struct sinks *sinks)
{
	*steps = (struct steps){ .sinks = sinks };
	name_table_init(&steps->classes, OPERATOR_CLASSES_MAX, true);
	coverage_init(&steps->coverage);
}

static void step_free(struct step *step)
{
	statistics_free(step->duration);
	free(step->class_name);
	free(step->type);
	free(step->label);
	free(step->name);
	free(step->provider);
	free(step);
}

static void told_free(struct steps *steps, struct told_node *told)
{
	map_remove(&steps->told, &told->node);
	free(told->name);
	free(told->type);
	free(told->provider);
	free(told);
}

/* Visits all nodes of a map; the one visited may be removed. */
static void map_each(struct map *map, void (*visit)(struct steps *steps, struct map_node *node, __u64 process),
		     struct steps *steps, __u64 process)
{
	struct map_node *node, *following;

	for (size_t i = 0; map->count && i < (size_t)1 << map->bits; i++) {
		for (node = map->buckets[i]; node; node = following) {
			following = node->next;
			visit(steps, node, process);
		}
	}
}

static void number_release(struct steps *steps, struct map_node *node, __u64 process)
{
	(void)process;
	map_remove(&steps->numbers, node);
	free(container_of(node, struct type_number, node));
}

static void told_release(struct steps *steps, struct map_node *node, __u64 process)
{
	(void)process;
	told_free(steps, container_of(node, struct told_node, node));
}

static void told_release_of(struct steps *steps, struct map_node *node, __u64 process)
{
	if (node->a == process)
		told_free(steps, container_of(node, struct told_node, node));
}

void steps_free(struct steps *steps)
{
	map_each(&steps->numbers, number_release, steps, 0);
	map_each(&steps->told, told_release, steps, 0);
	for (size_t i = 0; i < steps->count; i++)
		step_free(steps->all[i]);
	free(steps->all);
	map_free(&steps->by_object);
	map_free(&steps->numbers);
	map_free(&steps->told);
	coverage_free(&steps->coverage);
	name_table_free(&steps->classes);
}

/* ---- what is told of objects and classes ---- */

static int node_parse(const cJSON *object, struct told_node *told)
{
	__s64 class;
	int error = json_integer_get(object, "class", 1, 1LL << 53, &class);

	told->class = (__u64) class;
	told->index = -1;
	if (error)
		return error;
	if (json_integer_get(object, "index", 0, 1LL << 31, &told->index) == -ENOMEM ||
	    json_string_get(object, "name", &told->name) == -ENOMEM ||
	    json_string_get(object, "type", &told->type) == -ENOMEM ||
	    json_string_get(object, "provider", &told->provider) == -ENOMEM)
		return -ENOMEM;
	return 0;
}

static int node_describe(struct steps *steps, const struct process *process, const struct xpt_record_text *record)
{
	struct map_node *before = map_find(&steps->told, process->view.sort_index, record->id);
	struct told_node *told;
	cJSON *object;
	int error = json_parse(record->text, record->length, &object);

	if (error)
		return error;
	if (before)
		told_free(steps, container_of(before, struct told_node, node));
	told = steps->told.count < MODEL_OPERATORS_MAX ? calloc(1, sizeof(*told)) : NULL;
	error = told ? map_add(&steps->told, &told->node, process->view.sort_index, record->id) : -ENOMEM;
	if (error) {
		free(told);
		told = NULL;
	} else {
		error = node_parse(object, told);
	}
	if (error && told)
		told_free(steps, told);
	cJSON_Delete(object);
	return error;
}

int steps_describe(struct steps *steps, const struct process *process, const struct xpt_record_text *record)
{
	int error;

	if (record->header.kind == XPT_RECORD_NODE)
		return node_describe(steps, process, record);
	error = name_table_add(&steps->classes, process->view.sort_index, process->view.sort_index, record->id,
			       record->text,
			       record->length < OPERATOR_CLASS_NAME_MAX ? record->length : OPERATOR_CLASS_NAME_MAX,
			       false);
	return error == -ENOSPC ? 0 : error;
}

/* ---- operators ---- */

void operator_class_type(const char *name, char *type, size_t size)
{
	size_t begin = 0, end = 0, depth = 0, length = strlen(name);

	for (size_t i = 0; i < length; i++) {
		const char c = name[i];

		if (c == '<' || c == '(') {
			depth++;
		} else if (c == '>' || c == ')') {
			depth -= depth > 0;
		} else if (!depth && c == ':' && i + 1 < length && name[i + 1] == ':') {
			begin = end = i + 2;
			i++;
		} else if (!depth) {
			end = i + 1;
		}
	}
	if (end <= begin) { /* nothing but arguments: as it is */
		begin = 0;
		end = length;
	}
	length = end - begin < size - 1 ? end - begin : size - 1;
	memcpy(type, name + begin, length);
	type[length] = '\0';
}

static __u64 text_hash(const char *text)
{
	__u64 hash = 0xcbf29ce484222325;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return hash;
}

/* The next number of the type in the program; 0: no memory. */
static unsigned int number_take(struct steps *steps, const struct program *program, const char *type)
{
	__u64 of = program ? program->view.id : 0, hash = text_hash(type);
	struct map_node *node = map_find(&steps->numbers, of, hash);
	struct type_number *number;

	if (node)
		return ++container_of(node, struct type_number, node)->count;
	number = calloc(1, sizeof(*number));
	if (!number || map_add(&steps->numbers, &number->node, of, hash)) {
		free(number);
		return 0;
	}
	return number->count = 1;
}

/* Takes over what was told of the object. */
static void take_told(struct steps *steps, struct step *step)
{
	struct map_node *node = map_find(&steps->told, step->process->view.sort_index, step->object);
	struct told_node *told = node ? container_of(node, struct told_node, node) : NULL;

	step->view.index = -1;
	if (!told)
		return;
	if (told->class == step->class) {
		step->name = told->name;
		step->type = told->type;
		step->provider = told->provider;
		step->view.index = told->index;
		told->name = told->type = told->provider = NULL;
	}
	told_free(steps, told);
}

/*
 * How it is called where its node has no name: by type and index, as ONNX Runtime does. Where the node is not known, by a number of its
 * own; the only one of its class needs none. -ENOMEM: NULL.
 */
static char *step_label(const struct step *step)
{
	char label[LABEL_MAX];

	if (!step->has_object)
		return strdup(step->type);
	if (step->view.index >= 0)
		snprintf(label, sizeof(label), "%.*s_%lld", OPERATOR_CLASS_NAME_MAX, step->type,
			 (long long)step->view.index);
	else
		snprintf(label, sizeof(label), "%.*s#%u", OPERATOR_CLASS_NAME_MAX, step->type, step->view.number);
	return strdup(label);
}

/* How it is called, from what is known of it. -ENOMEM. */
static int step_name(struct steps *steps, struct step *step)
{
	const struct name *found = name_table_find(&steps->classes, step->process->view.sort_index, step->class);
	const char *class = found ? found->text : NULL;
	char type[OPERATOR_CLASS_NAME_MAX + 1];

	take_told(steps, step);
	step->class_name = strdup(class ?: "");
	if (!step->type) {
		operator_class_type(class ?: "operator", type, sizeof(type));
		step->type = strdup(type);
	}
	if (!step->class_name || !step->type)
		return -ENOMEM;
	step->view.number = number_take(steps, step->program, step->type);
	step->label = step->name ? strdup(step->name) : step_label(step);
	step->view.class = step->class_name;
	step->view.type = step->type;
	step->view.label = step->label;
	step->view.name = step->name;
	step->view.provider = step->provider;
	return step->label && step->view.number ? 0 : -ENOMEM;
}

static int step_keep(struct steps *steps, struct step *step)
{
	struct step **more;
	size_t room = steps->room ? 2 * steps->room : 64;

	if (steps->count == steps->room) {
		more = reallocarray(steps->all, room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		steps->all = more;
		steps->room = room;
	}
	if (map_add(&steps->by_object, &step->node, step->process->view.sort_index, step->object))
		return -ENOMEM;
	steps->all[steps->count++] = step;
	step->view.id = (unsigned int)steps->count;
	return 0;
}

static __u64 object_of(const struct event_call *call)
{
	return call->have & (1u << XPT_MEANING_OBJECT) ? call->object : call->class;
}

static void step_join(struct step *step, struct program *program, const struct event_call *call)
{
	program->open++; /* it is kept as long as its operators are */
	step->depth = call->depth;
	step->apart = call->apart;
	step->next = program->new_steps;
	program->new_steps = step;
}

static struct step *step_create(struct steps *steps, struct process *process, struct program *program,
				const struct event_call *call)
{
	struct step *step = calloc(1, sizeof(*step));

	if (!step)
		return NULL;
	step->process = process;
	step->program = program;
	step->object = object_of(call);
	step->class = call->class;
	step->has_object = call->have & (1u << XPT_MEANING_OBJECT);
	step->view.process = &process->view;
	step->view.program = program ? &program->view : NULL;
	if (step_name(steps, step) || step_keep(steps, step)) {
		step_free(step);
		return NULL;
	}
	if (program)
		step_join(step, program, call);
	return step;
}

/* An object stays with its program; one that was first seen outside of any inference is found a program later. */
static struct step *step_find(const struct steps *steps, const struct process *process, const struct program *program,
			      const struct event_call *call)
{
	struct map_node *node = map_find(&steps->by_object, process->view.sort_index, object_of(call));

	for (; node; node = map_next(node)) {
		struct step *step = container_of(node, struct step, node);

		if (!step->gone && step->class == call->class &&
		    (!program || !step->program || step->program == program))
			return step;
	}
	return NULL;
}

static void step_assign(struct step *step, struct program *program, const struct event_call *call)
{
	if (step->program || !program)
		return;
	step->program = program;
	step->view.program = &program->view;
	step->view.self_time = 0; /* from here on it is a part of the inferences */
	step_join(step, program, call);
}

static int step_record(struct steps *steps, struct step *step, const struct event_call *call)
{
	const struct coverage_place place = { step->process->view.sort_index, call->tid, call->depth, call->apart };
	__u64 self;
	int error = coverage_operator(&steps->coverage, &place, call->inference, call->start, call->end, &self);

	step->view.recorded++;
	step->view.tracing += call->tracing;
	step->view.unassigned += !call->inference;
	if (call->inference || !step->program)
		step->view.self_time += self;
	if (!step->duration)
		step->view.duration = step->duration = statistics_create();
	if (!step->duration || statistics_add(step->duration, call->end - call->start))
		return -ENOMEM;
	return error;
}

int steps_call(struct steps *steps, struct process *process, struct program *program, struct event_call *call,
	       struct step **result)
{
	struct step *step = step_find(steps, process, program, call);

	if (!step && steps->count >= MODEL_OPERATORS_MAX) {
		sinks_lose(steps->sinks, XPT_LOSS_NAMES, 1, call->end);
		return 0;
	}
	if (!step)
		step = step_create(steps, process, program, call);
	if (!step)
		return -ENOMEM;
	step_assign(step, program, call);
	*result = step;
	call->op = &step->view;
	return step_record(steps, step, call);
}

void steps_inference(struct steps *steps, const struct process *process, struct program *program,
		     const struct event_call *call)
{
	const struct coverage_place place = { process->view.sort_index, call->tid, call->depth, false };
	__u64 covered;

	if (!coverage_end(&steps->coverage, &place, call->start, &covered) || !program)
		return;
	program->view.stepped++;
	program->view.stepped_time += call->end - call->start;
	program->view.covered_time += covered;
	program->view.stepped_tracing += call->tracing;
	program->view.covered_tracing += call->tracing_covered;
}

/* Below its inference: from 1; on another thread its own calls count. 0: not known. */
static unsigned int depth_below(const struct step *step, const struct event_call *call)
{
	if (step->apart)
		return step->depth + 1;
	return step->depth > call->depth ? step->depth - call->depth : 0;
}

bool steps_fingerprint(struct program *program, const struct event_call *call)
{
	struct step *first = program->new_steps, *step;
	unsigned int depth, before = program->step_count;
	__u64 hash;

	program->new_steps = NULL;
	if (!program->step_depth)
		for (step = first; step; step = step->next) {
			depth = depth_below(step, call);
			if (depth && (!program->step_depth || depth < program->step_depth))
				program->step_depth = depth;
		}
	for (step = first; step; step = step->next) {
		if (depth_below(step, call) != program->step_depth)
			continue;
		hash = text_hash(step->type);
		hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15;
		program->step_types += hash ^ hash >> 29;
		program->step_count++;
	}
	if (program->step_count == before)
		return false;
	hash = (program->step_types + program->step_count) * 0xbf58476d1ce4e5b9;
	program->view.fingerprint = (hash >> 32) ?: 1;
	return true;
}

void steps_drop_process(struct steps *steps, const struct process *process)
{
	name_table_drop_owner(&steps->classes, process->view.sort_index);
	coverage_drop(&steps->coverage, process->view.sort_index);
	map_each(&steps->told, told_release_of, steps, process->view.sort_index);
	for (size_t i = 0; i < steps->count; i++)
		steps->all[i]->gone |= steps->all[i]->process == process;
}

void steps_forget_processes(struct steps *steps)
{
	size_t kept = 0;

	for (size_t i = 0; i < steps->count; i++) {
		struct step *step = steps->all[i];

		if (!step->process->forgotten) {
			steps->all[kept++] = step;
			continue;
		}
		map_remove(&steps->by_object, &step->node);
		step_free(step);
	}
	steps->count = kept;
}
