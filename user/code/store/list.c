/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/store/list.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"

#define BLOCK_BYTES (64 << 10)

struct code_list_block {
	struct code_list_block *next;
	size_t used, size;
	alignas(max_align_t) char bytes[];
};

struct code_list *code_list_new(size_t limit)
{
	struct code_list *list = calloc(1, sizeof(*list));

	if (!list)
		return NULL;
	list->list.size = sizeof(list->list);
	list->room = limit;
	return list;
}

void code_list_free(struct code_list *list)
{
	struct code_list_block *block, *next;

	if (!list)
		return;
	for (block = list->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	free(list->objects);
	free(list);
}

static bool add_block(struct code_list *list, size_t least)
{
	size_t size = least > BLOCK_BYTES ? least : BLOCK_BYTES;
	struct code_list_block *block = size > list->room ? NULL : calloc(1, sizeof(*block) + size);

	if (!block)
		return false;
	list->room -= size;
	block->size = size;
	block->next = list->blocks;
	list->blocks = block;
	return true;
}

void *code_list_room(struct code_list *list, size_t count, size_t size)
{
	struct code_list_block *block;
	size_t bytes;
	void *room;

	if (__builtin_mul_overflow(count, size, &bytes) || bytes > list->room)
		return NULL;
	bytes = (bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	block = list->blocks;
	if ((!block || bytes > block->size - block->used) && !add_block(list, bytes))
		return NULL;
	block = list->blocks;
	room = block->bytes + block->used;
	block->used += bytes;
	return room;
}

char *code_list_text(struct code_list *list, const char *bytes, size_t length)
{
	char *text = code_list_room(list, length + 1, 1);

	if (text && length)
		memcpy(text, bytes, length);
	return text;
}

struct xpt_codeobj *code_list_add(struct code_list *list)
{
	struct xpt_codeobj *object;

	if (vec_reserve(list->objects, list->list.count))
		return NULL;
	list->list.objects = (const struct xpt_codeobj *const *)list->objects;
	object = code_list_room(list, 1, sizeof(*object));
	if (!object)
		return NULL;
	object->size = sizeof(*object);
	object->function_size = sizeof(*object->functions);
	object->part_size = sizeof(*object->parts);
	object->kind = code_kind_name(CODE_UNKNOWN);
	object->device = -1;
	list->objects[list->list.count++] = object;
	return object;
}

/* ---- contents of an object ---- */

/* false: no memory. NULL stays NULL. */
static bool copy_text(struct code_list *list, const char *text, const char **to)
{
	*to = text ? code_list_text(list, text, strlen(text)) : NULL;
	return !text || *to;
}

static bool copy_functions(struct code_list *list, const struct code_contents *contents, struct xpt_codeobj *object)
{
	struct xpt_codeobj_function *to = code_list_room(list, contents->function_count, sizeof(*to));

	if (!to)
		return false;
	for (size_t i = 0; i < contents->function_count; i++) {
		const struct code_function *from = &contents->functions[i];

		to[i].offset = from->offset;
		to[i].size = from->size;
		to[i].address = from->address;
		to[i].kernel = from->kernel;
		if (!copy_text(list, from->name, &to[i].name))
			return false;
	}
	object->functions = to;
	object->function_count = contents->function_count;
	object->functions_left_out = contents->functions_left_out;
	return true;
}

static bool copy_parts(struct code_list *list, const struct code_contents *contents, struct xpt_codeobj *object)
{
	struct xpt_codeobj_part *to = code_list_room(list, contents->part_count, sizeof(*to));

	if (!to)
		return false;
	for (size_t i = 0; i < contents->part_count; i++) {
		const struct code_part *from = &contents->parts[i];

		to[i].kind = code_kind_name(from->kind);
		to[i].external = from->external;
		to[i].offset = from->offset;
		to[i].length = from->size;
		if (!copy_text(list, from->name, &to[i].name))
			return false;
	}
	object->parts = to;
	object->part_count = contents->part_count;
	return true;
}

int code_list_contents(struct code_list *list, const struct code_contents *contents, struct xpt_codeobj *object)
{
	bool good = copy_text(list, contents->machine, &object->machine) &&
		    copy_text(list, contents->name, &object->name) && copy_text(list, contents->error, &object->error);

	object->kind = code_kind_name(contents->kind);
	return good && copy_functions(list, contents, object) && copy_parts(list, contents, object) ? 0 : -ENOMEM;
}
