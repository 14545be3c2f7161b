/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"
#include "base/core/vec.h"
#include "model/program/processes.h"

struct page_name {
	struct map_node node; /* by hash */
	__u32 number;
	char text[];
};

struct page_thread {
	struct map_node node; /* by tgid and tid */
	__u32 number;
	__u32 tgid, tid;
	__u32 name; /* of all names; 0: unknown */
};

/* NULL: it has none of its own. */
static struct page_thread *thread_get(struct page_names *names, __u32 tgid, __u32 tid)
{
	struct map_node *found = map_find(&names->threads, tgid, tid);
	struct page_thread *thread;

	if (found)
		return container_of(found, struct page_thread, node);
	if (names->thread_count == PAGE_THREADS_MAX)
		return NULL;
	thread = calloc(1, sizeof(*thread));
	if (!thread || vec_push(names->all_threads, names->thread_count, thread)) {
		free(thread);
		names->error = -ENOMEM;
		return NULL;
	}
	thread->number = (__u32)names->thread_count - 1;
	thread->tgid = tgid;
	thread->tid = tid;
	if (map_add(&names->threads, &thread->node, tgid, tid))
		names->error = -ENOMEM;
	return thread;
}

void page_names_init(struct page_names *names)
{
	*names = (struct page_names){};
	page_name(names, "");
	page_thread_named(names, 0, 0, "(others)");
}

void page_names_free(struct page_names *names)
{
	for (size_t i = 0; i < names->name_count; i++)
		free(names->all_names[i]);
	for (size_t i = 0; i < names->thread_count; i++)
		free(names->all_threads[i]);
	free(names->all_names);
	free(names->all_threads);
	map_free(&names->names);
	map_free(&names->threads);
}

__u32 page_name(struct page_names *names, const char *text)
{
	const __u64 hash = text_hash(text ?: "");
	const size_t length = strlen(text ?: "") + 1;
	struct page_name *name;

	for (struct map_node *node = map_find(&names->names, hash, 0); node; node = map_next(node)) {
		name = container_of(node, struct page_name, node);
		if (!strcmp(name->text, text ?: ""))
			return name->number;
	}
	if (names->name_count == PAGE_NAMES_MAX)
		return 0;
	name = calloc(1, sizeof(*name) + length);
	if (!name || vec_push(names->all_names, names->name_count, name)) {
		free(name);
		names->error = -ENOMEM;
		return 0;
	}
	memcpy(name->text, text ?: "", length);
	name->number = (__u32)names->name_count - 1;
	if (map_add(&names->names, &name->node, hash, 0))
		names->error = -ENOMEM;
	return name->number;
}

__u32 page_thread(struct page_names *names, __u32 tgid, __u32 tid)
{
	const struct page_thread *thread = thread_get(names, tgid, tid);

	return thread ? thread->number : 0;
}

void page_thread_named(struct page_names *names, __u32 tgid, __u32 tid, const char *name)
{
	struct page_thread *thread = thread_get(names, tgid, tid);

	if (thread)
		thread->name = page_name(names, name);
}

void page_names_add(struct text *text, struct page_names *names)
{
	json_begin(text, "names", '[');
	for (size_t i = 0; i < names->name_count; i++)
		json_add_text(text, NULL, names->all_names[i]->text);
	json_end(text, ']');
	json_begin(text, "threads", '[');
	for (size_t i = 0; i < names->thread_count; i++) {
		const struct page_thread *thread = names->all_threads[i];
		struct map_node *process = map_find(&names->threads, thread->tgid, 0);

		json_begin(text, NULL, '{');
		json_add_unsigned(text, "pid", thread->tgid);
		json_add_unsigned(text, "tid", thread->tid);
		json_add_text(text, "name", names->all_names[thread->name]->text);
		json_add_text(text, "process",
			      process ? names->all_names[container_of(process, struct page_thread, node)->name]->text :
					"");
		json_end(text, '}');
	}
	json_end(text, ']');
	if (names->error)
		text_fail(text);
}
