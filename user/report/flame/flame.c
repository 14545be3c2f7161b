/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/flame/flame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "base/file/file.h"
#include "base/file/output.h"
#include "base/file/tailed_file.h"
#include "model/program/processes.h"

struct flame {
	struct log log;
	enum xpt_flame what;
	char *operator_name; /* NULL: all */
	bool (*wants)(const void *context, const struct event_stack *stack);
	const void *context;
	enum xpt_output format;
	struct tailed_file file;
	bool has_file;
	__u64 bytes;
	struct flame_tree tree; /* its labels are one for each frame, program and operator */
	__u64 samples;		/* of the kind that it is made of */
	__u64 taken;		/* of them: in the tree */
};

static const struct flame_words words[] = {
	[XPT_FLAME_INFERENCE] = { "time of inferences", "inferences", "time" },
	[XPT_FLAME_DEVICE] = { "device time of inferences", "inferences", "device" },
	[XPT_FLAME_OFF_CPU] = { "time off CPU in inferences", "waits", "offcpu" },
	[XPT_FLAME_CPU] = { "CPU time in inferences", "samples", "cpu" },
};

const struct flame_words *flame_words(enum xpt_flame what)
{
	return &words[what];
}

const char *flame_kind_name(unsigned int kind)
{
	static const char *const names[] = { [FLAME_PARTIAL - FRAME_KINDS] = "partial",
					     [FLAME_PROGRAM - FRAME_KINDS] = "program",
					     [FLAME_OPERATOR - FRAME_KINDS] = "operator" };

	return kind < FRAME_KINDS ? frame_kind_name((enum frame_kind)kind) : names[kind - FRAME_KINDS];
}

/* ---- the tree ---- */

static __u64 add_most(__u64 a, __u64 b)
{
	__u64 sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static __u64 multiply_most(__u64 a, __u64 b)
{
	__u64 product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static void tree_clear(struct flame_tree *tree)
{
	for (size_t i = 0; i < tree->label_count; i++) {
		free(tree->all_labels[i]->name);
		free(tree->all_labels[i]);
	}
	for (size_t i = 0; i < tree->count; i++)
		pool_give(&tree->pool, tree->nodes[i]);
	free(tree->all_labels);
	free(tree->nodes);
	map_free(&tree->labels);
	map_free(&tree->children);
	pool_free(&tree->pool);
}

void flame_tree_free(struct flame_tree *tree)
{
	if (tree)
		tree_clear(tree);
	free(tree);
}

/* NULL: no memory. */
static struct flame_node *node_create(struct flame_tree *tree, struct flame_node *parent, struct flame_label *label)
{
	struct flame_node *node = pool_take(&tree->pool);

	if (!node)
		return NULL;
	if (vec_push(tree->nodes, tree->count, node)) {
		pool_give(&tree->pool, node);
		return NULL;
	}
	node->number = (unsigned int)tree->count - 1;
	node->parent = parent;
	node->label = label;
	return node;
}

static int tree_init(struct flame_tree *tree)
{
	pool_init(&tree->pool, sizeof(struct flame_node));
	return node_create(tree, NULL, NULL) ? 0 : -ENOMEM;
}

/* The child of that name; the node itself where the tree is full. NULL: no memory. */
static struct flame_node *child_get(struct flame_tree *tree, struct flame_node *parent, struct flame_label *label)
{
	struct map_node *found = map_find(&tree->children, parent->number, label->number);
	struct flame_node *node;

	if (found)
		return container_of(found, struct flame_node, node);
	if (tree->count == FLAME_NODES_MAX) {
		tree->full = true;
		return parent;
	}
	node = node_create(tree, parent, label);
	return node && !map_add(&tree->children, &node->node, parent->number, label->number) ? node : NULL;
}

/* Takes over name. NULL: no memory. */
static struct flame_label *label_add(struct flame_tree *tree, __u64 a, __u64 b, unsigned int kind, char *name,
				     const struct model_frame *frame)
{
	struct flame_label *label = name ? calloc(1, sizeof(*label)) : NULL;

	if (!label || vec_push(tree->all_labels, tree->label_count, label)) {
		free(label);
		free(name);
		return NULL;
	}
	label->number = (unsigned int)tree->label_count - 1;
	label->kind = kind;
	label->name = name;
	label->frame = frame;
	return map_add(&tree->labels, &label->node, a, b) ? NULL : label;
}

/* ---- names ---- */

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

void flame_frame_name(struct text *text, const struct model_frame *frame)
{
	const char *module = frame->module ? frame->module->path : NULL;

	if (frame->function) {
		text_string(text, frame->function);
	} else if (frame->kind == FRAME_JAVASCRIPT) {
		text_literal(text, "[javascript]");
	} else {
		text_literal(text, "[unknown]");
		if (module) {
			text_literal(text, " (");
			text_string(text, file_name(module));
			if (frame->has_offset) {
				text_literal(text, "+");
				text_hexadecimal(text, frame->offset);
			}
			text_literal(text, ")");
		}
	}
	/* One line of an interpreted function makes a model slow, another one does not. */
	if (frame->file && (frame->kind == FRAME_PYTHON || frame->kind == FRAME_JAVASCRIPT)) {
		text_literal(text, " (");
		text_string(text, file_name(frame->file));
		if (frame->line) {
			text_literal(text, ":");
			text_unsigned(text, frame->line);
		}
		text_literal(text, ")");
	}
}

/* NULL: no memory. */
static char *frame_name(const struct model_frame *frame)
{
	struct text text = {};

	flame_frame_name(&text, frame);
	text_bytes(&text, "", 1);
	if (!text.error)
		return text.data;
	text_free(&text);
	return NULL;
}

/* ---- collecting ---- */

static struct flame_label *frame_label(struct flame_tree *tree, const struct model_frame *frame)
{
	struct map_node *found = map_find(&tree->labels, (__u64)(uintptr_t)frame, frame->kind);

	return found ? container_of(found, struct flame_label, node) :
		       label_add(tree, (__u64)(uintptr_t)frame, frame->kind, frame->kind, frame_name(frame), frame);
}

/* What has another name by now gets it for good. */
static struct flame_label *named_label(struct flame_tree *tree, __u64 key, unsigned int kind, const char *name)
{
	struct map_node *found = map_find(&tree->labels, key, kind);
	struct flame_label *label = found ? container_of(found, struct flame_label, node) : NULL;
	char *copy;

	if (label && !strcmp(label->name, name))
		return label;
	copy = strdup(name);
	if (!label || !copy)
		return label_add(tree, key, kind, kind, copy, NULL);
	free(label->name);
	label->name = copy;
	return label;
}

/* The node under which a stack's frames stand, and below it the innermost one. NULL: no memory. */
static struct flame_node *stack_node(struct flame_tree *tree, const struct model_stack *stack)
{
	struct flame_node *node = tree->nodes[0];
	struct flame_label *label;

	if (stack->partial) {
		label = named_label(tree, 0, FLAME_PARTIAL, "[partial]");
		node = label ? child_get(tree, node, label) : NULL;
	}
	for (size_t i = stack->count; node && i--;) {
		label = frame_label(tree, stack->frames[i]);
		node = label ? child_get(tree, node, label) : NULL;
	}
	if (!node || stack->count)
		return node;
	label = named_label(tree, 0, FRAME_UNKNOWN, "[unknown]");
	return label ? child_get(tree, node, label) : NULL;
}

static bool is_operator(const struct model_operator *op, const char *name)
{
	return op && (!strcmp(op->label, name) || !strcmp(op->type, name) || (op->name && !strcmp(op->name, name)));
}

/* Whether the stack is of the kind that the graph is made of. */
static bool is_of_kind(const struct flame *flame, const struct event_stack *stack)
{
	static const enum xpt_stack_reason reasons[] = { [XPT_FLAME_INFERENCE] = XPT_STACK_CALL,
							 [XPT_FLAME_DEVICE] = XPT_STACK_CALL,
							 [XPT_FLAME_OFF_CPU] = XPT_STACK_OFF_CPU,
							 [XPT_FLAME_CPU] = XPT_STACK_ON_CPU };

	return stack->reason == reasons[flame->what];
}

/* What such a sample adds, and to how many; false: nothing. */
static bool weigh(const struct flame *flame, const struct event_stack *stack, __u64 *value, __u64 *count)
{
	if (stack->reason != XPT_STACK_CALL) {
		*value = stack->weight;
		*count = 1;
		return !flame->operator_name || is_operator(stack->op, flame->operator_name);
	}
	*value = multiply_most(flame->what == XPT_FLAME_DEVICE ? stack->device_time : stack->duration, stack->weight);
	*count = stack->weight;
	return stack_is_inference(stack) && (flame->wants ? flame->wants(flame->context, stack) : !stack->inside);
}

static struct flame_node *leaf_node(struct flame_tree *tree, struct flame_node *node, const struct event_stack *stack)
{
	struct flame_label *label;

	if (node && stack->program) {
		label = named_label(tree, stack->program->id, FLAME_PROGRAM, stack->program->name);
		node = label ? child_get(tree, node, label) : NULL;
	}
	if (node && stack->op && stack->reason != XPT_STACK_CALL) {
		label = named_label(tree, stack->op->id, FLAME_OPERATOR, stack->op->label);
		node = label ? child_get(tree, node, label) : NULL;
	}
	return node;
}

static int flame_event(void *context, const struct event *event)
{
	struct flame *flame = context;
	__u64 value, count;
	struct flame_node *node;

	if (event->kind != EVENT_STACK || !is_of_kind(flame, &event->stack))
		return 0;
	flame->samples++;
	if (!weigh(flame, &event->stack, &value, &count))
		return 0;
	node = leaf_node(&flame->tree, stack_node(&flame->tree, event->stack.stack), &event->stack);
	if (!node)
		return -ENOMEM;
	node->self[1] = add_most(node->self[1], value);
	node->count[1] = add_most(node->count[1], count);
	flame->taken++;
	return 0;
}

/* ---- both graphs in one ---- */

static struct flame_label *label_get(struct flame_tree *tree, const struct flame_label *from, bool exact)
{
	const struct model_frame *frame = exact ? from->frame : NULL;
	const __u64 key = frame ? (__u64)(uintptr_t)frame : text_hash(from->name);
	struct map_node *found = map_find(&tree->labels, key, from->kind);
	struct flame_label *label;

	for (; found; found = map_next(found)) {
		label = container_of(found, struct flame_label, node);
		if (exact ? label->frame == from->frame && (frame || !strcmp(label->name, from->name)) :
			    !strcmp(label->name, from->name))
			return label;
	}
	return label_add(tree, key, from->kind, from->kind, strdup(from->name), from->frame);
}

static int tree_add(struct flame_tree *tree, const struct flame_tree *from, bool exact, unsigned int column)
{
	struct flame_node **to = calloc(from->count, sizeof(struct flame_node *));
	struct flame_label *label;
	int error = to ? 0 : -ENOMEM;

	for (size_t i = 0; !error && i < from->count; i++) {
		const struct flame_node *node = from->nodes[i];

		label = node->parent ? label_get(tree, node->label, exact) : NULL;
		if (!node->parent)
			to[i] = tree->nodes[0];
		else if (label)
			to[i] = child_get(tree, to[node->parent->number], label);
		if (!to[i]) {
			error = -ENOMEM;
			break;
		}
		to[i]->self[column] = add_most(to[i]->self[column], node->self[1]);
		to[i]->count[column] = add_most(to[i]->count[column], node->count[1]);
	}
	tree->full |= from->full;
	free(to);
	return error;
}

static int by_name(const void *left, const void *right)
{
	const struct flame_node *a = *(const struct flame_node *const *)left,
				*b = *(const struct flame_node *const *)right;
	int order;

	if (a->parent->number != b->parent->number)
		return a->parent->number < b->parent->number ? -1 : 1;
	order = strcmp(a->label->name, b->label->name);
	return order ?: (int)a->label->kind - (int)b->label->kind ?: (a->number < b->number ? -1 : 1);
}

/* Sums, and the order of children. */
static int tree_finish(struct flame_tree *tree)
{
	struct flame_node **sorted = calloc(tree->count, sizeof(struct flame_node *));
	size_t i;

	if (!sorted)
		return -ENOMEM;
	for (i = tree->count; i--;) {
		struct flame_node *node = tree->nodes[i];

		for (unsigned int column = 0; column < 2; column++) {
			node->total[column] = add_most(node->total[column], node->self[column]);
			if (node->parent)
				node->parent->total[column] = add_most(node->parent->total[column],
								       node->total[column]);
		}
	}
	memcpy(sorted, tree->nodes + 1, (tree->count - 1) * sizeof(struct flame_node *));
	qsort(sorted, tree->count - 1, sizeof(struct flame_node *), by_name);
	for (i = tree->count - 1; i--;) {
		sorted[i]->next = sorted[i]->parent->first;
		sorted[i]->parent->first = sorted[i];
	}
	free(sorted);
	return 0;
}

int flame_tree_create(const struct flame *flame, const struct flame *base, bool exact, struct flame_tree **result)
{
	struct flame_tree *tree = calloc(1, sizeof(*tree));
	int error = tree ? tree_init(tree) : -ENOMEM;

	if (!error && base)
		error = tree_add(tree, &base->tree, exact, 0);
	error = error ?: tree_add(tree, &flame->tree, exact, 1);
	error = error ?: tree_finish(tree);
	if (error)
		flame_tree_free(tree);
	else
		*result = tree;
	return error;
}

/* ---- the file ---- */

int flame_open(const struct flame_options *options, struct model *model, struct flame **result)
{
	struct flame *flame = calloc(1, sizeof(*flame));
	int error = flame ? tree_init(&flame->tree) : -ENOMEM;

	if (!flame)
		return error;
	flame->log = *options->log;
	flame->what = options->what;
	flame->wants = options->wants;
	flame->context = options->context;
	flame->format = options->format;
	flame->file.descriptor = -1;
	if (!error && options->operator_name) {
		flame->operator_name = strdup(options->operator_name);
		error = flame->operator_name ? 0 : -ENOMEM;
	}
	if (!error && options->path) {
		bool output = !strcmp(options->path, "-");
		int descriptor = output ? file_standard_output() : -1;

		error = output && descriptor < 0 ?
				descriptor :
				tailed_file_open(&flame->file, output ? NULL : options->path, descriptor);
		if (error)
			log_error(options->log, "%s: cannot be written: %s", options->path, output_reason(error));
		flame->has_file = !error;
		if (!error && options->format == XPT_OUTPUT_PPROF && !flame->file.gzip)
			error = tailed_file_compress(&flame->file);
	}
	error = error ?: model_want_stacks(model);
	error = error ?: model_add_sink(model, (struct event_sink){ flame_event, flame });
	if (error)
		flame_free(flame);
	else
		*result = flame;
	return error;
}

int flame_detach(struct flame *flame, const uint64_t *stopped)
{
	return tailed_file_detach(&flame->file, stopped);
}

/* False: there is nothing to show, which is reported. */
static bool check_samples(const struct flame *flame)
{
	static const char *const options[] = { [XPT_FLAME_INFERENCE] = "--stacks",
					       [XPT_FLAME_DEVICE] = "--stacks",
					       [XPT_FLAME_OFF_CPU] = "--stacks --why",
					       [XPT_FLAME_CPU] = "--samples" };

	if (!flame->samples)
		log_error(&flame->log, "there are no such stacks: `xputrace record %s` records them",
			  options[flame->what]);
	else if (!flame->taken)
		log_error(&flame->log, "of %llu stacks none is of the %s that is selected",
			  (unsigned long long)flame->samples, words[flame->what].title);
	return flame->taken;
}

static void add_document(const struct flame *flame, const struct flame_tree *tree, bool diff, struct text *text)
{
	const struct flame_words *word = &words[flame->what];

	switch (flame->format) {
	case XPT_OUTPUT_PPROF:
		flame_add_pprof(text, tree, word);
		break;
	case XPT_OUTPUT_FLAME_SVG:
		flame_add_svg(text, tree, diff, word);
		break;
	case XPT_OUTPUT_SPEEDSCOPE:
		flame_add_speedscope(text, tree, word);
		break;
	default:
		flame_add_folded(text, tree, diff);
		break;
	}
}

int flame_close(struct flame *flame, const struct flame *base)
{
	struct flame_tree *tree = NULL;
	struct text text = {};
	int error = check_samples(flame) ? 0 : -ENOMSG, closed;

	error = error ?: flame_tree_create(flame, base, flame->format == XPT_OUTPUT_PPROF, &tree);
	if (!error && tree->full)
		log_warn(&flame->log, "the graph has more than %u frames: what lies above the last ones is left out",
			 FLAME_NODES_MAX);
	if (!error && !tree->nodes[0]->total[1])
		log_warn(&flame->log, "the sum of the %s is 0", words[flame->what].title);
	if (!error) {
		add_document(flame, tree, base, &text);
		error = text.error;
	}
	if (!error && flame->has_file)
		error = tailed_file_settle(&flame->file); /* it waits for room from here on */
	if (!error && flame->has_file)
		error = tailed_file_append(&flame->file, &text, "", 0, true);
	flame_tree_free(tree);
	text_free(&text);
	if (!flame->has_file)
		return error;
	flame->has_file = false;
	closed = tailed_file_close(&flame->file);
	flame->bytes = tailed_file_bytes(&flame->file);
	return error ?: closed;
}

__u64 flame_bytes(const struct flame *flame)
{
	return flame->has_file ? tailed_file_bytes(&flame->file) : flame->bytes;
}

void flame_free(struct flame *flame)
{
	if (!flame)
		return;
	if (flame->has_file)
		tailed_file_close(&flame->file);
	tree_clear(&flame->tree);
	free(flame->operator_name);
	free(flame);
}
