/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/handle/program_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A process with programs that are alive. */
struct tenant {
	struct map_node node; /* by tgid */
	struct link programs;
};

void program_index_init(struct program_index *index)
{
	*index = (struct program_index){};
	link_init(&index->alive);
	link_init(&index->released);
}

struct identity *identity_get(struct identity *identity)
{
	identity->references++;
	return identity;
}

void identity_put(struct identity *identity)
{
	if (identity && !--identity->references)
		free(identity);
}

static struct identity *identity_create(const struct identity *like, const char *name, const char *process)
{
	size_t name_length = strlen(name) + 1, process_length = strlen(process) + 1;
	struct identity *identity = malloc(sizeof(*identity) + name_length + process_length);

	if (!identity)
		return NULL;
	*identity = *like;
	identity->references = 1;
	memcpy(identity->text, name, name_length);
	memcpy(identity->text + name_length, process, process_length);
	identity->name = identity->text;
	identity->process = identity->text + name_length;
	return identity;
}

static __u64 handle_key(__u32 tgid, unsigned int runtime_index)
{
	return (__u64)tgid << 8 | runtime_index;
}

struct entry *program_index_find(const struct program_index *index, unsigned int id)
{
	struct map_node *node = map_find(&index->by_id, id, 0);

	return node ? container_of(node, struct entry, by_id) : NULL;
}

struct entry *program_index_older(const struct program_index *index, const struct model_program *program)
{
	struct map_node *node = map_find(&index->by_handle, handle_key(program->process->tgid, program->runtime_index),
					 program->handle);
	struct entry *entry = node ? container_of(node, struct entry, by_handle) : NULL;

	if (!entry || entry->released || entry->identity->generation >= program->generation)
		return NULL;
	return entry;
}

static struct tenant *tenant_get(struct program_index *index, __u32 tgid)
{
	struct map_node *node = map_find(&index->processes, tgid, 0);
	struct tenant *tenant;

	if (node)
		return container_of(node, struct tenant, node);
	tenant = calloc(1, sizeof(*tenant));
	if (!tenant)
		return NULL;
	link_init(&tenant->programs);
	if (map_add(&index->processes, &tenant->node, tgid, 0)) {
		free(tenant);
		return NULL;
	}
	return tenant;
}

static void tenant_settle(struct program_index *index, struct tenant *tenant)
{
	if (!link_alone(&tenant->programs))
		return;
	map_remove(&index->processes, &tenant->node);
	free(tenant);
}

static void tenant_leave(struct program_index *index, struct entry *entry)
{
	struct map_node *node;

	if (link_alone(&entry->of_process))
		return;
	link_remove(&entry->of_process);
	node = map_find(&index->processes, entry->identity->tgid, 0);
	tenant_settle(index, container_of(node, struct tenant, node));
}

static struct entry *entry_create(const struct model_program *program)
{
	const struct identity like = { .id = program->id,
				       .tgid = program->process->tgid,
				       .runtime = program->runtime,
				       .handle = program->handle,
				       .generation = program->generation,
				       .kernel = program->kernel };
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	entry->identity = identity_create(&like, program->name, program->process->name ?: "");
	if (!entry->identity) {
		free(entry);
		return NULL;
	}
	entry->runtime_index = program->runtime_index;
	entry->region = program->role == XPT_ROLE_REGION_BEGIN;
	entry->loaded = program->loaded;
	link_init(&entry->link);
	link_init(&entry->of_process);
	link_init(&entry->members);
	return entry;
}

/* The newest program of a handle is the one to be found under it: an older one that comes late is not. */
static int handle_take(struct program_index *index, struct entry *entry, const struct model_program *program)
{
	__u64 key = handle_key(program->process->tgid, program->runtime_index);
	struct map_node *node = map_find(&index->by_handle, key, program->handle);
	struct entry *before = node ? container_of(node, struct entry, by_handle) : NULL;

	if (before && before->identity->generation > program->generation) {
		entry->handed_over = true;
		return 0;
	}
	if (before) {
		map_remove(&index->by_handle, &before->by_handle);
		before->handed_over = true;
	}
	if (!map_add(&index->by_handle, &entry->by_handle, key, program->handle))
		return 0;
	entry->handed_over = true;
	return -ENOMEM;
}

struct entry *program_index_add(struct program_index *index, const struct model_program *program)
{
	struct tenant *tenant = tenant_get(index, program->process->tgid);
	struct entry *entry = tenant ? entry_create(program) : NULL;

	if (!tenant)
		return NULL;
	if (!entry || map_add(&index->by_id, &entry->by_id, program->id, 0))
		goto out;
	if (handle_take(index, entry, program)) {
		map_remove(&index->by_id, &entry->by_id);
		goto out;
	}
	link_append(&tenant->programs, &entry->of_process);
	link_append(&index->alive, &entry->link);
	index->alive_count++;
	return entry;
out:
	tenant_settle(index, tenant);
	if (entry)
		identity_put(entry->identity);
	free(entry);
	return NULL;
}

int program_index_rename(struct entry *entry, const char *name, const char *process)
{
	struct identity *identity = entry->identity;

	if (!strcmp(identity->name, name) && !strcmp(identity->process, process))
		return 0;
	identity = identity_create(entry->identity, name, process);
	if (!identity)
		return -ENOMEM;
	identity_put(entry->identity);
	entry->identity = identity;
	return 1;
}

void program_index_release(struct program_index *index, struct entry *entry, __u64 time, __u64 now)
{
	if (entry->released)
		return;
	entry->released = time ?: 1;
	entry->forget = (time > now ? time : now) + PROGRAM_INDEX_RELEASED_KEPT;
	tenant_leave(index, entry);
	link_remove(&entry->link);
	link_append(&index->released, &entry->link);
	index->alive_count--;
	index->released_count++;
}

struct entry *program_index_forgettable(const struct program_index *index, __u64 time)
{
	struct entry *entry;

	if (link_alone(&index->released))
		return NULL;
	entry = link_first(&index->released, struct entry, link);
	return entry->forget <= time || index->released_count > PROGRAM_INDEX_RELEASED_MAX ? entry : NULL;
}

void program_index_remove(struct program_index *index, struct entry *entry)
{
	tenant_leave(index, entry);
	link_remove(&entry->link);
	if (entry->released)
		index->released_count--;
	else
		index->alive_count--;
	map_remove(&index->by_id, &entry->by_id);
	if (!entry->handed_over)
		map_remove(&index->by_handle, &entry->by_handle);
	identity_put(entry->identity);
	free(entry);
}

void program_index_free(struct program_index *index)
{
	struct entry *entry, *following;

	link_for_each_safe(entry, following, &index->alive, link)
		program_index_remove(index, entry);
	link_for_each_safe(entry, following, &index->released, link)
		program_index_remove(index, entry);
	map_free(&index->by_id);
	map_free(&index->by_handle);
	map_free(&index->processes);
}

struct entry *program_index_of_process(const struct program_index *index, __u32 tgid, const struct entry *previous)
{
	struct map_node *node = map_find(&index->processes, tgid, 0);
	struct tenant *tenant = node ? container_of(node, struct tenant, node) : NULL;
	const struct link *next;

	if (!tenant)
		return NULL;
	next = previous ? previous->of_process.next : tenant->programs.next;
	return next == &tenant->programs ? NULL : container_of(next, struct entry, of_process);
}
