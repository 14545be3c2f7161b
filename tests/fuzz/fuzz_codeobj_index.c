/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index of a folder of code objects, which anybody may have made. Whatever it holds, it is refused with a message, or gives a
 * list that can be written again, and reads the same then.
 */
#include <errno.h>
#include <string.h>

#include "base/core/json.h"
#include "code/store/store.h"
#include "code/store/index.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* Only names that lead nowhere else are asked for. */
static const char *check_file(void *context, const char *file, __u64 size)
{
	(void)context;
	require(strlen(file) > CODE_HASH_SIZE && !strchr(file, '/'));
	return size & 1 ? "its size is another one" : NULL;
}

static void check_object(const struct xpt_codeobj *object)
{
	require(object->size == sizeof(*object) && object->uri && !object->data);
	require(code_kind_from_name(object->kind) != CODE_UNKNOWN || !strcmp(object->kind, "unknown"));
	require(!object->sha256[0] || code_hash_valid(object->sha256));
	require(!object->file || code_store_is_name(object->file, object->sha256));
	require(object->pid >= 0 && object->tid >= 0);
	require(object->function_count <= CODE_FUNCTIONS_MAX && object->part_count <= CODE_PARTS_MAX);
	for (size_t i = 0; i < object->function_count; i++)
		require(object->functions[i].name != NULL);
	for (size_t i = 0; i < object->part_count; i++)
		require(object->parts[i].name && object->parts[i].kind);
}

static void write_again(const struct xpt_codeobj_list *list)
{
	struct text text = { 0 };
	struct code_list *again;

	code_index_write(&text, list, "all");
	require(!text.error && json_is_object(text.data, text.length));
	require(!code_index_read(NULL, "again", text.data, text.length, NULL, NULL, &again));
	require(again->list.count == list->count && again->list.lost == list->lost);
	for (size_t i = 0; i < list->count; i++) {
		require(!strcmp(again->list.objects[i]->uri, list->objects[i]->uri));
		require(!strcmp(again->list.objects[i]->sha256, list->objects[i]->sha256));
		require(again->list.objects[i]->handle == list->objects[i]->handle);
		require(again->list.objects[i]->loaded == list->objects[i]->loaded);
	}
	code_list_free(again);
	text_free(&text);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct said said = { 0 };
	const struct log log = { said_write, &said, XPT_LOG_DEBUG };
	struct code_list *list;
	int error = code_index_read(&log, "fuzz", (const char *)data, size, check_file, NULL, &list);

	require(said.errors == (error ? 1u : 0u));
	if (error) {
		require(error == -EBADMSG);
		return 0;
	}
	for (size_t i = 0; i < list->list.count; i++)
		check_object(list->list.objects[i]);
	write_again(&list->list);
	code_list_free(list);
	return 0;
}
