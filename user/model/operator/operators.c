/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/operator/operators.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"
#include "base/core/vec.h"
#include "model/stream/objects.h"

#define OPERATOR_CLASS_NAME_MAX 1024 /* bytes kept of a name */
#define LABEL_MAX (OPERATOR_CLASS_NAME_MAX + 24)

/* What a NODE record has of an object that is yet to be seen executing. */
struct described_node {
	struct keyed keyed;
	__u64 class;
	char *name, *type, *provider; /* NULL: unknown */
	__s64 index;
};

/* How many operators of a type a program has. */
struct type_number {
	struct keyed keyed;
	unsigned int count;
};

static void operator_free(struct op *op)
{
	statistics_free(op->duration);
	free(op->class_name);
	free(op->type);
	free(op->label);
	free(op->name);
	free(op->provider);
	free(op);
}

static void described_free(void *context, struct keyed *entry)
{
	struct described_node *described = container_of(entry, struct described_node, keyed);

	(void)context;
	free(described->name);
	free(described->type);
	free(described->provider);
	free(described);
}

void operator_set_init(struct operator_set *operators, struct event_dispatch *events)
{
	*operators = (struct operator_set){ .events = events };
	name_table_init(&operators->classes, OPERATOR_CLASSES_MAX, true);
	keyed_init(&operators->numbers, MODEL_OPERATORS_MAX, NULL, NULL);
	keyed_init(&operators->described, MODEL_OPERATORS_MAX, described_free, NULL);
	coverage_init(&operators->coverage);
}

void operator_set_free(struct operator_set *operators)
{
	for (size_t i = 0; i < operators->count; i++)
		operator_free(operators->all[i]);
	free(operators->all);
	map_free(&operators->by_object);
	keyed_free(&operators->numbers);
	keyed_free(&operators->described);
	coverage_free(&operators->coverage);
	name_table_free(&operators->classes);
}

/* ---- descriptions of objects and classes ---- */

static int node_parse(const cJSON *object, struct described_node *described)
{
	__s64 class;
	int error = json_integer_get(object, "class", 1, 1LL << 53, &class);

	described->class = (__u64) class;
	described->index = -1;
	if (error)
		return error;
	if (json_integer_get(object, "index", 0, 1LL << 31, &described->index) == -ENOMEM ||
	    json_string_get(object, "name", &described->name) == -ENOMEM ||
	    json_string_get(object, "type", &described->type) == -ENOMEM ||
	    json_string_get(object, "provider", &described->provider) == -ENOMEM)
		return -ENOMEM;
	return 0;
}

int operator_set_describe(struct operator_set *operators, const struct process *process, __u64 object_address,
			  const cJSON *object)
{
	const __u64 index = process->view.sort_index;
	struct keyed *before = keyed_find(&operators->described, index, object_address);
	struct described_node *described;
	int error;

	if (before)
		keyed_drop(&operators->described, before);
	described = keyed_full(&operators->described) ? NULL : calloc(1, sizeof(*described));
	if (!described || keyed_add(&operators->described, &described->keyed, index, index, object_address)) {
		free(described);
		return -ENOMEM;
	}
	error = node_parse(object, described);
	if (error)
		keyed_drop(&operators->described, &described->keyed);
	return error;
}

int operator_set_name_class(struct operator_set *operators, const struct process *process,
			    const struct xpt_record_text *record)
{
	const size_t length = record->length < OPERATOR_CLASS_NAME_MAX ? record->length : OPERATOR_CLASS_NAME_MAX;
	int error = name_table_add(&operators->classes, process->view.sort_index, process->view.sort_index, record->id,
				   record->text, length, false);

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

/* The next number of the type in the program; 0: no memory. */
static unsigned int number_take(struct operator_set *operators, const struct program *program, const char *type)
{
	__u64 of = program ? program->view.id : 0, hash = text_hash(type);
	struct keyed *entry = keyed_find(&operators->numbers, of, hash);
	struct type_number *number;

	if (entry)
		return ++container_of(entry, struct type_number, keyed)->count;
	number = calloc(1, sizeof(*number));
	if (!number || keyed_add(&operators->numbers, &number->keyed, of, of, hash)) {
		free(number);
		return 0;
	}
	return number->count = 1;
}

/* Takes over the description of the object. */
static void described_apply(struct operator_set *operators, struct op *op)
{
	struct keyed *entry = keyed_find(&operators->described, op->process->view.sort_index, op->object);
	struct described_node *described = entry ? container_of(entry, struct described_node, keyed) : NULL;

	op->view.index = -1;
	if (!described)
		return;
	if (described->class == op->class) {
		op->name = described->name;
		op->type = described->type;
		op->provider = described->provider;
		op->view.index = described->index;
		described->name = described->type = described->provider = NULL;
	}
	keyed_drop(&operators->described, entry);
}

/*
 * How it is called where its node has no name: by type and index, as ONNX Runtime does. Where the node is not known, by a number of its
 * own; the only one of its class needs none. -ENOMEM: NULL.
 */
static char *operator_label(const struct op *op)
{
	char label[LABEL_MAX];

	if (!op->has_object)
		return strdup(op->type);
	if (op->view.index >= 0)
		snprintf(label, sizeof(label), "%.*s_%lld", OPERATOR_CLASS_NAME_MAX, op->type,
			 (long long)op->view.index);
	else
		snprintf(label, sizeof(label), "%.*s#%u", OPERATOR_CLASS_NAME_MAX, op->type, op->view.number);
	return strdup(label);
}

/* How it is called, from what is known of it. -ENOMEM. */
static int operator_name(struct operator_set *operators, struct op *op)
{
	const struct name *found = name_table_find(&operators->classes, op->process->view.sort_index, op->class);
	const char *class = found ? found->text : NULL;
	char type[OPERATOR_CLASS_NAME_MAX + 1];

	described_apply(operators, op);
	op->class_name = strdup(class ?: "");
	if (!op->type) {
		operator_class_type(class ?: "operator", type, sizeof(type));
		op->type = strdup(type);
	}
	if (!op->class_name || !op->type)
		return -ENOMEM;
	op->view.number = number_take(operators, op->program, op->type);
	op->label = op->name ? strdup(op->name) : operator_label(op);
	op->view.class = op->class_name;
	op->view.type = op->type;
	op->view.label = op->label;
	op->view.name = op->name;
	op->view.provider = op->provider;
	return op->label && op->view.number ? 0 : -ENOMEM;
}

static int operator_keep(struct operator_set *operators, struct op *op)
{
	if (vec_reserve(operators->all, operators->count))
		return -ENOMEM;
	if (map_add(&operators->by_object, &op->node, op->process->view.sort_index, op->object))
		return -ENOMEM;
	operators->all[operators->count++] = op;
	op->view.id = (unsigned int)operators->count;
	return 0;
}

static __u64 object_of(const struct event_call *call)
{
	return call_has(call, XPT_MEANING_OBJECT) ? call->object : call->class;
}

static void operator_join(struct op *op, struct program *program, const struct event_call *call)
{
	program->open++; /* it is kept as long as its operators are */
	op->depth = call->depth;
	op->apart = call->apart;
	op->next = program->new_operators;
	program->new_operators = op;
}

static struct op *operator_create(struct operator_set *operators, struct process *process, struct program *program,
				  const struct event_call *call)
{
	struct op *op = calloc(1, sizeof(*op));

	if (!op)
		return NULL;
	op->process = process;
	op->program = program;
	op->object = object_of(call);
	op->class = call->class;
	op->has_object = call_has(call, XPT_MEANING_OBJECT);
	op->view.process = &process->view;
	op->view.program = program ? &program->view : NULL;
	if (operator_name(operators, op) || operator_keep(operators, op)) {
		operator_free(op);
		return NULL;
	}
	if (program)
		operator_join(op, program, call);
	return op;
}

/* An object stays with its program; one that was first seen outside of any inference is found a program later. */
static struct op *operator_find(const struct operator_set *operators, const struct process *process,
				const struct program *program, const struct event_call *call)
{
	struct map_node *node = map_find(&operators->by_object, process->view.sort_index, object_of(call));

	for (; node; node = map_next(node)) {
		struct op *op = container_of(node, struct op, node);

		if (!op->gone && op->class == call->class && (!program || !op->program || op->program == program))
			return op;
	}
	return NULL;
}

static void operator_assign(struct op *op, struct program *program, const struct event_call *call)
{
	if (op->program || !program)
		return;
	op->program = program;
	op->view.program = &program->view;
	op->view.self_time = 0; /* from here on it is a part of the inferences */
	operator_join(op, program, call);
}

static int operator_record(struct operator_set *operators, struct op *op, const struct event_call *call, __u64 inside)
{
	const struct coverage_place place = { op->process->view.sort_index, call->tid, call->apart };
	const __u64 took = call->end - call->start;
	int error = 0;

	if (call->inference)
		error = coverage_operator(&operators->coverage, &place, call->inference, call->start, call->end);
	op->view.recorded++;
	op->view.tracing += call->tracing;
	states_add(&op->view.states, &call->states);
	op->view.unassigned += !call->inference;
	if (call->inference || !op->program)
		op->view.self_time += inside < took ? took - inside : 0;
	if (statistics_record(&op->duration, &op->view.duration, took))
		return -ENOMEM;
	return error;
}

int operator_set_call(struct operator_set *operators, struct process *process, struct program *program,
		      struct event_call *call, __u64 inside, struct op **result)
{
	struct op *op = operator_find(operators, process, program, call);

	if (!op && operators->count >= MODEL_OPERATORS_MAX) {
		event_dispatch_lose(operators->events, XPT_LOSS_NAMES, 1, call->end);
		return 0;
	}
	if (!op)
		op = operator_create(operators, process, program, call);
	if (!op)
		return -ENOMEM;
	operator_assign(op, program, call);
	*result = op;
	call->op = &op->view;
	return operator_record(operators, op, call, inside);
}

void operator_set_inference(struct operator_set *operators, const struct process *process, struct program *program,
			    const struct event_call *call)
{
	const struct coverage_place place = { process->view.sort_index, call->tid, false };
	__u64 covered;

	if (!coverage_end(&operators->coverage, &place, call->start, &covered) || !program)
		return;
	program->view.stepped++;
	program->view.stepped_time += call->end - call->start;
	program->view.covered_time += covered;
	program->view.stepped_tracing += call->tracing;
	program->view.covered_tracing += call->tracing_covered;
}

/* Below its inference: from 1; on another thread its own calls count. 0: not known. */
static unsigned int depth_below(const struct op *op, const struct event_call *call)
{
	if (op->apart)
		return op->depth + 1;
	return op->depth > call->depth ? op->depth - call->depth : 0;
}

bool operator_set_fingerprint(struct program *program, const struct event_call *call)
{
	struct op *first = program->new_operators, *op;
	unsigned int depth, before = program->operator_count;
	__u64 hash;

	program->new_operators = NULL;
	if (!program->operator_depth)
		for (op = first; op; op = op->next) {
			depth = depth_below(op, call);
			if (depth && (!program->operator_depth || depth < program->operator_depth))
				program->operator_depth = depth;
		}
	for (op = first; op; op = op->next) {
		if (depth_below(op, call) != program->operator_depth)
			continue;
		hash = text_hash(op->type);
		hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15;
		program->operator_types += hash ^ hash >> 29;
		program->operator_count++;
	}
	if (program->operator_count == before)
		return false;
	hash = (program->operator_types + program->operator_count) * 0xbf58476d1ce4e5b9;
	program->view.fingerprint = (hash >> 32) ?: 1;
	return true;
}

void operator_set_drop_process(struct operator_set *operators, const struct process *process)
{
	name_table_drop_owner(&operators->classes, process->view.sort_index);
	coverage_drop(&operators->coverage, process->view.sort_index);
	keyed_drop_owner(&operators->described, process->view.sort_index);
	for (size_t i = 0; i < operators->count; i++)
		operators->all[i]->gone |= operators->all[i]->process == process;
}

void operator_set_forget_processes(struct operator_set *operators)
{
	size_t kept = 0;

	for (size_t i = 0; i < operators->count; i++) {
		struct op *op = operators->all[i];

		if (!op->process->forgotten) {
			operators->all[kept++] = op;
			continue;
		}
		map_remove(&operators->by_object, &op->node);
		operator_free(op);
	}
	operators->count = kept;
}

/* ---- how much of an inference lies in its operators ---- */

#define STRETCHES_MAX 65536 /* kept apart of one inference */

/* A stretch of time. */
struct stretch {
	__u64 start, end;
};

/* The stretches with an operator of an inference that has not ended: in order, apart from each other. */
struct open_inference {
	struct keyed keyed;
	__u32 tid; /* of its thread; 0: not known yet */
	struct stretch *stretches;
	size_t count;
	__u64 settled; /* ns of earlier stretches, which nothing can reach back to */
};

static void inference_release(void *context, struct keyed *entry)
{
	struct open_inference *inference = container_of(entry, struct open_inference, keyed);

	(void)context;
	free(inference->stretches);
	free(inference);
}

void coverage_init(struct coverage *coverage)
{
	keyed_init(&coverage->open, COVERAGES_MAX, inference_release, NULL);
}

void coverage_free(struct coverage *coverage)
{
	keyed_free(&coverage->open);
}

/*
 * Several threads may begin an inference in the same ns. tid 0: the operator is on another thread, which is known of the only
 * inference that its process had at that time.
 */
static struct open_inference *inference_find(struct coverage *coverage, unsigned int process, __u64 begin, __u32 tid)
{
	for (struct keyed *entry = keyed_find(&coverage->open, process, begin); entry; entry = keyed_next(entry)) {
		struct open_inference *inference = container_of(entry, struct open_inference, keyed);

		if (inference->tid && tid && inference->tid != tid)
			continue;
		inference->tid = inference->tid ?: tid;
		return inference;
	}
	return NULL;
}

static struct open_inference *inference_get(struct coverage *coverage, unsigned int process, __u64 begin, __u32 tid)
{
	struct open_inference *inference = inference_find(coverage, process, begin, tid);

	if (inference)
		return inference;
	inference = calloc(1, sizeof(*inference));
	if (!inference || keyed_add(&coverage->open, &inference->keyed, process, process, begin)) {
		free(inference);
		return NULL;
	}
	inference->tid = tid;
	return inference;
}

/* The older half is added up: an operator is much shorter than all of them together. */
static void stretches_settle(struct open_inference *inference)
{
	const size_t half = inference->count / 2;

	for (size_t i = 0; i < half; i++)
		inference->settled += inference->stretches[i].end - inference->stretches[i].start;
	for (size_t i = half; i < inference->count; i++)
		inference->stretches[i - half] = inference->stretches[i];
	inference->count -= half;
}

/* Ends come in order: only the last stretches can touch the new one. */
static int stretch_add(struct open_inference *inference, __u64 start, __u64 end)
{
	if (inference->count >= STRETCHES_MAX)
		stretches_settle(inference);
	while (inference->count && inference->stretches[inference->count - 1].end >= start) {
		const struct stretch *last = &inference->stretches[--inference->count];

		start = last->start < start ? last->start : start;
		end = last->end > end ? last->end : end;
	}
	return vec_push(inference->stretches, inference->count, (struct stretch){ start, end });
}

int coverage_operator(struct coverage *coverage, const struct coverage_place *place, __u64 inference, __u64 start,
		      __u64 end)
{
	struct open_inference *open = inference_get(coverage, place->process, inference, place->apart ? 0 : place->tid);

	return open ? stretch_add(open, start, end) : -ENOMEM;
}

bool coverage_end(struct coverage *coverage, const struct coverage_place *place, __u64 inference, __u64 *covered)
{
	struct open_inference *open = inference_find(coverage, place->process, inference, place->tid);

	if (!open)
		return false;
	*covered = open->settled;
	for (size_t i = 0; i < open->count; i++)
		*covered += open->stretches[i].end - open->stretches[i].start;
	keyed_drop(&coverage->open, &open->keyed);
	return true;
}

void coverage_drop(struct coverage *coverage, unsigned int process)
{
	keyed_drop_owner(&coverage->open, process);
}
