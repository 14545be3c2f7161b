/* SPDX-License-Identifier: BSD-2-Clause */
/* Folded stacks, as flamegraph.pl and others read them; speedscope's file format; pprof's profile.proto. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "base/core/json.h"
#include "base/core/vec.h"
#include "model/program/processes.h"
#include "report/flame/flame.h"

void flame_add_name(struct text *text, const char *name)
{
	size_t length = strlen(name);
	__u32 character;

	while (length) {
		size_t bytes = text_decode(name, length, &character);

		if (bytes && !text_hidden(character) && character != 0xfffe && character != 0xffff)
			text_bytes(text, name, bytes);
		else
			text_literal(text, "?");
		name += bytes ?: 1;
		length -= bytes ?: 1;
	}
}

/* The next node in the order of the document: children first, each before those below it. NULL: there is none. */
static const struct flame_node *node_next(const struct flame_node *node)
{
	if (node->first)
		return node->first;
	while (node && !node->next)
		node = node->parent;
	return node ? node->next : NULL;
}

/* Nodes from the root's child to this one. Returns their number. */
static size_t node_path(const struct flame_node *node, const struct flame_node *path[FLAME_DEPTH_MAX])
{
	size_t depth = 0, at;

	for (const struct flame_node *each = node; each->parent; each = each->parent)
		depth++;
	at = depth;
	for (; node->parent && at; node = node->parent)
		path[--at] = node;
	return depth;
}

static bool is_shown(const struct flame_node *node)
{
	return node->parent && (node->self[0] || node->self[1] || node->count[0] || node->count[1]);
}

/* ---- folded ---- */

/* Where a number behind a space ends the text, the space; else its end. Readers take such a number for one more value of the line. */
static size_t last_number(const char *text, size_t length)
{
	size_t at = length;

	while (at && (isdigit((unsigned char)text[at - 1]) || text[at - 1] == '.'))
		at--;
	return at && at < length && text[at - 1] == ' ' ? at - 1 : length;
}

/* ';' is between frames. */
static void add_folded_name(struct text *text, const struct flame_label *label)
{
	size_t begin = text->length, space;

	flame_add_name(text, *label->name ? label->name : "[unknown]");
	if (text->error)
		return;
	for (size_t i = begin; i < text->length; i++) {
		if (text->data[i] == ';')
			text->data[i] = ':';
	}
	space = begin + last_number(text->data + begin, text->length - begin);
	if (space < text->length)
		text->data[space] = '_';
	if (label->kind == FRAME_KERNEL)
		text_literal(text, "_[k]");
}

void flame_add_folded(struct text *text, const struct flame_tree *tree, bool diff)
{
	const struct flame_node *path[FLAME_DEPTH_MAX], *node;

	for (node = node_next(tree->nodes[0]); node; node = node_next(node)) {
		size_t depth = node_path(node, path);

		if (!node->self[0] && !node->self[1])
			continue;
		for (size_t i = 0; i < depth; i++) {
			if (i)
				text_literal(text, ";");
			add_folded_name(text, path[i]->label);
		}
		text_literal(text, " ");
		if (diff) {
			text_unsigned(text, node->self[0]);
			text_literal(text, " ");
		}
		text_unsigned(text, node->self[1]);
		text_literal(text, "\n");
	}
}

/* ---- speedscope ---- */

static void add_frame(struct text *text, const struct flame_label *label)
{
	const struct model_frame *frame = label->frame;

	json_begin(text, NULL, '{');
	json_add_text(text, "name", label->name);
	if (frame && frame->file) {
		json_add_text(text, "file", frame->file);
		json_add_nonzero(text, "line", frame->line);
	} else if (frame && frame->module && frame->module->path) {
		json_add_text(text, "file", frame->module->path);
	}
	json_end(text, '}');
}

static void add_samples(struct text *text, const struct flame_tree *tree)
{
	const struct flame_node *path[FLAME_DEPTH_MAX], *node;

	json_begin(text, "samples", '[');
	for (node = node_next(tree->nodes[0]); node; node = node_next(node)) {
		size_t depth = node_path(node, path);

		if (!node->self[1])
			continue;
		json_begin(text, NULL, '[');
		for (size_t i = 0; i < depth; i++)
			json_add_unsigned(text, NULL, path[i]->label->number);
		json_end(text, ']');
	}
	json_end(text, ']');
	json_begin(text, "weights", '[');
	for (node = node_next(tree->nodes[0]); node; node = node_next(node)) {
		if (node->self[1])
			json_add_unsigned(text, NULL, node->self[1]);
	}
	json_end(text, ']');
}

void flame_add_speedscope(struct text *text, const struct flame_tree *tree, const struct flame_words *words)
{
	json_begin(text, NULL, '{');
	json_add_text(text, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_add_text(text, "exporter", "xputrace " XPT_VERSION);
	json_add_text(text, "name", words->title);
	json_begin(text, "shared", '{');
	json_begin(text, "frames", '[');
	for (size_t i = 0; i < tree->label_count; i++)
		add_frame(text, tree->all_labels[i]);
	json_end(text, ']');
	json_end(text, '}');
	json_add_unsigned(text, "activeProfileIndex", 0);
	json_begin(text, "profiles", '[');
	json_begin(text, NULL, '{');
	json_add_text(text, "type", "sampled");
	json_add_text(text, "name", words->title);
	json_add_text(text, "unit", "nanoseconds");
	json_add_unsigned(text, "startValue", 0);
	json_add_unsigned(text, "endValue", tree->nodes[0]->total[1]);
	add_samples(text, tree);
	json_end(text, '}');
	json_end(text, ']');
	json_end(text, '}');
	text_literal(text, "\n");
}

/* ---- pprof ---- */

/* Fields of the messages of profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_DEFAULT_TYPE = 14,

	TYPE_TYPE = 1,
	TYPE_UNIT = 2,

	SAMPLE_LOCATIONS = 1,
	SAMPLE_VALUES = 2,

	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_FILE = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,

	LOCATION_ID = 1,
	LOCATION_MAPPING = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,

	LINE_FUNCTION = 1,
	LINE_LINE = 2,

	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_SYSTEM_NAME = 3,
	FUNCTION_FILE = 4,
};

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

#define MAPPING_ALIGN 4096ull

struct entry {
	struct map_node node; /* of strings: by hash; of functions: by name and file; of modules: by address */
	__u64 id;
	const char *string;
	const struct model_module *module;
	__u64 last; /* largest offset in the module */
	__u64 start;
};

struct pprof {
	struct text *text;
	struct text message, inner;
	struct map strings, functions, modules;
	struct entry **all; /* owns them */
	size_t count;
	__u64 string_count;
};

static void add_varint(struct text *text, __u64 value)
{
	unsigned char bytes[10];
	size_t count = 0;

	do {
		bytes[count++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		value >>= 7;
	} while (value);
	text_bytes(text, bytes, count);
}

static void add_number(struct text *text, unsigned int field, __u64 value)
{
	if (!value)
		return;
	add_varint(text, field << 3 | WIRE_VARINT);
	add_varint(text, value);
}

static void add_bytes(struct text *text, unsigned int field, const char *bytes, size_t length)
{
	add_varint(text, field << 3 | WIRE_BYTES);
	add_varint(text, length);
	text_bytes(text, bytes, length);
}

/* The message that has been put together becomes a member; it is empty afterwards. */
static void add_message(struct text *text, unsigned int field, struct text *message)
{
	add_bytes(text, field, message->data, message->length);
	if (message->error)
		text_fail(text);
	text_clear(message, 65536);
}

static struct entry *entry_add(struct pprof *pprof, struct map *map, __u64 a, __u64 b)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!entry || vec_push(pprof->all, pprof->count, entry)) {
		free(entry);
		text_fail(pprof->text);
		return NULL;
	}
	if (!map_add(map, &entry->node, a, b))
		return entry;
	text_fail(pprof->text);
	return NULL;
}

/* Index of the string, which must outlive the document; it is written when it is new. NULL: "". */
static __u64 string_index(struct pprof *pprof, const char *string)
{
	const __u64 hash = text_hash(string ?: "");
	struct map_node *found = map_find(&pprof->strings, hash, 0);
	struct text name = {};
	struct entry *entry;

	if (!string || !*string)
		return 0;
	for (; found; found = map_next(found)) {
		entry = container_of(found, struct entry, node);
		if (!strcmp(entry->string, string))
			return entry->id;
	}
	entry = entry_add(pprof, &pprof->strings, hash, 0);
	if (!entry)
		return 0;
	entry->string = string;
	entry->id = ++pprof->string_count;
	flame_add_name(&name, string);
	add_message(pprof->text, PROFILE_STRING, &name);
	text_free(&name);
	return entry->id;
}

static void add_type(struct pprof *pprof, const char *type, const char *unit)
{
	const __u64 type_index = string_index(pprof, type), unit_index = string_index(pprof, unit);

	add_number(&pprof->message, TYPE_TYPE, type_index);
	add_number(&pprof->message, TYPE_UNIT, unit_index);
	add_message(pprof->text, PROFILE_SAMPLE_TYPE, &pprof->message);
}

/* NULL: the frame is in no module. */
static struct entry *module_of(const struct pprof *pprof, const struct flame_label *label)
{
	const struct map_node *found = label->frame && label->frame->module ?
					       map_find(&pprof->modules, (__u64)(uintptr_t)label->frame->module, 0) :
					       NULL;

	return found ? container_of(found, struct entry, node) : NULL;
}

static void find_modules(struct pprof *pprof, const struct flame_tree *tree)
{
	for (size_t i = 0; i < tree->label_count; i++) {
		const struct model_frame *frame = tree->all_labels[i]->frame;
		struct entry *entry = module_of(pprof, tree->all_labels[i]);

		if (!frame || !frame->module)
			continue;
		entry = entry ?: entry_add(pprof, &pprof->modules, (__u64)(uintptr_t)frame->module, 0);
		if (!entry)
			return;
		entry->id = entry->id ?: pprof->modules.count;
		entry->module = frame->module;
		if (frame->offset > entry->last)
			entry->last = frame->offset;
	}
}

/* As if the modules were mapped one behind the other: addresses that differ are different places. */
static void add_mappings(struct pprof *pprof)
{
	__u64 start = MAPPING_ALIGN;

	for (size_t i = 0; i < pprof->count; i++) {
		struct entry *entry = pprof->all[i];
		__u64 limit, file, build_id;

		if (!entry->module)
			continue;
		limit = start + (entry->last / MAPPING_ALIGN + 1) * MAPPING_ALIGN;
		file = string_index(pprof, entry->module->path);
		build_id = string_index(pprof, entry->module->build_id);
		entry->start = start;
		add_number(&pprof->message, MAPPING_ID, entry->id);
		add_number(&pprof->message, MAPPING_START, start);
		add_number(&pprof->message, MAPPING_LIMIT, limit);
		add_number(&pprof->message, MAPPING_FILE, file);
		add_number(&pprof->message, MAPPING_BUILD_ID, build_id);
		add_number(&pprof->message, MAPPING_HAS_FUNCTIONS, 1);
		add_message(pprof->text, PROFILE_MAPPING, &pprof->message);
		start = limit;
	}
}

/* Id of the function, which is written when it is new. */
static __u64 function_id(struct pprof *pprof, const struct flame_label *label)
{
	const char *function = label->frame && label->frame->function ? label->frame->function : label->name;
	const __u64 name = string_index(pprof, function),
		    file = string_index(pprof, label->frame ? label->frame->file : NULL);
	struct map_node *found = map_find(&pprof->functions, name, file);
	struct entry *entry;

	if (found)
		return container_of(found, struct entry, node)->id;
	entry = entry_add(pprof, &pprof->functions, name, file);
	if (!entry)
		return 0;
	entry->id = pprof->functions.count;
	add_number(&pprof->message, FUNCTION_ID, entry->id);
	add_number(&pprof->message, FUNCTION_NAME, name);
	add_number(&pprof->message, FUNCTION_SYSTEM_NAME, name);
	add_number(&pprof->message, FUNCTION_FILE, file);
	add_message(pprof->text, PROFILE_FUNCTION, &pprof->message);
	return entry->id;
}

static void add_location(struct pprof *pprof, const struct flame_label *label)
{
	const struct entry *module = module_of(pprof, label);
	const __u64 function = function_id(pprof, label);

	add_number(&pprof->inner, LINE_FUNCTION, function);
	add_number(&pprof->inner, LINE_LINE, label->frame ? label->frame->line : 0);
	add_number(&pprof->message, LOCATION_ID, label->number + 1u);
	if (module) {
		add_number(&pprof->message, LOCATION_MAPPING, module->id);
		add_number(&pprof->message, LOCATION_ADDRESS, module->start + label->frame->offset);
	}
	add_message(&pprof->message, LOCATION_LINE, &pprof->inner);
	add_message(pprof->text, PROFILE_LOCATION, &pprof->message);
}

/* Values are signed there. */
static __u64 signed_most(__u64 value)
{
	return value < INT64_MAX ? value : INT64_MAX;
}

static void add_sample(struct pprof *pprof, const struct flame_node *node)
{
	for (const struct flame_node *each = node; each->parent; each = each->parent)
		add_varint(&pprof->inner, each->label->number + 1u);
	add_message(&pprof->message, SAMPLE_LOCATIONS, &pprof->inner);
	add_varint(&pprof->inner, signed_most(node->count[1]));
	add_varint(&pprof->inner, signed_most(node->self[1]));
	add_message(&pprof->message, SAMPLE_VALUES, &pprof->inner);
	add_message(pprof->text, PROFILE_SAMPLE, &pprof->message);
}

void flame_add_pprof(struct text *text, const struct flame_tree *tree, const struct flame_words *words)
{
	struct pprof pprof = { .text = text };
	const struct flame_node *node;

	add_bytes(text, PROFILE_STRING, "", 0);
	add_type(&pprof, words->count, "count");
	add_type(&pprof, words->value, "nanoseconds");
	add_number(text, PROFILE_DEFAULT_TYPE, string_index(&pprof, words->value));
	find_modules(&pprof, tree);
	add_mappings(&pprof);
	for (size_t i = 0; i < tree->label_count; i++)
		add_location(&pprof, tree->all_labels[i]);
	for (node = node_next(tree->nodes[0]); node; node = node_next(node)) {
		if (is_shown(node))
			add_sample(&pprof, node);
	}
	for (size_t i = 0; i < pprof.count; i++)
		free(pprof.all[i]);
	free(pprof.all);
	map_free(&pprof.strings);
	map_free(&pprof.functions);
	map_free(&pprof.modules);
	text_free(&pprof.message);
	text_free(&pprof.inner);
}
