/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/handle/catalogue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A process with programs that are alive. */
struct tenant {
	struct map_node node; /* by tgid */
	struct link programs;
};

void catalogue_init(struct catalogue *catalogue)
{
	*catalogue = (struct catalogue){};
	link_init(&catalogue->alive);
	link_init(&catalogue->released);
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

struct entry *catalogue_find(const struct catalogue *catalogue, unsigned int id)
{
	struct map_node *node = map_find(&catalogue->by_id, id, 0);

	return node ? container_of(node, struct entry, by_id) : NULL;
}

struct entry *catalogue_older(const struct catalogue *catalogue, const struct model_program *program)
{
	struct map_node *node = map_find(&catalogue->by_handle,
					 handle_key(program->process->tgid, program->runtime_index), program->handle);
	struct entry *entry = node ? container_of(node, struct entry, by_handle) : NULL;

	if (!entry || entry->released || entry->identity->generation >= program->generation)
		return NULL;
	return entry;
}

static struct tenant *tenant_get(struct catalogue *catalogue, __u32 tgid)
{
	struct map_node *node = map_find(&catalogue->processes, tgid, 0);
	struct tenant *tenant;

	if (node)
		return container_of(node, struct tenant, node);
	tenant = calloc(1, sizeof(*tenant));
	if (!tenant)
		return NULL;
	link_init(&tenant->programs);
	if (map_add(&catalogue->processes, &tenant->node, tgid, 0)) {
		free(tenant);
		return NULL;
	}
	return tenant;
}

static void tenant_settle(struct catalogue *catalogue, struct tenant *tenant)
{
	if (!link_alone(&tenant->programs))
		return;
	map_remove(&catalogue->processes, &tenant->node);
	free(tenant);
}

static void tenant_leave(struct catalogue *catalogue, struct entry *entry)
{
	struct map_node *node;

	if (link_alone(&entry->of_process))
		return;
	link_remove(&entry->of_process);
	node = map_find(&catalogue->processes, entry->identity->tgid, 0);
	tenant_settle(catalogue, container_of(node, struct tenant, node));
}

static struct entry *entry_create(const struct model_program *program)
{
	const struct identity like = { .id = program->id,
				       .tgid = program->process->tgid,
				       .runtime = program->runtime,
				       .handle = program->handle,
				       .generation = program->generation };
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
static int handle_take(struct catalogue *catalogue, struct entry *entry, const struct model_program *program)
{
	__u64 key = handle_key(program->process->tgid, program->runtime_index);
	struct map_node *node = map_find(&catalogue->by_handle, key, program->handle);
	struct entry *before = node ? container_of(node, struct entry, by_handle) : NULL;

	if (before && before->identity->generation > program->generation) {
		entry->handed_over = true;
		return 0;
	}
	if (before) {
		map_remove(&catalogue->by_handle, &before->by_handle);
		before->handed_over = true;
	}
	if (!map_add(&catalogue->by_handle, &entry->by_handle, key, program->handle))
		return 0;
	entry->handed_over = true;
	return -ENOMEM;
}

struct entry *catalogue_add(struct catalogue *catalogue, const struct model_program *program)
{
	struct tenant *tenant = tenant_get(catalogue, program->process->tgid);
	struct entry *entry = tenant ? entry_create(program) : NULL;

	if (!tenant)
		return NULL;
	if (!entry || map_add(&catalogue->by_id, &entry->by_id, program->id, 0))
		goto out;
	if (handle_take(catalogue, entry, program)) {
		map_remove(&catalogue->by_id, &entry->by_id);
		goto out;
	}
	link_append(&tenant->programs, &entry->of_process);
	link_append(&catalogue->alive, &entry->link);
	catalogue->alive_count++;
	return entry;
out:
	tenant_settle(catalogue, tenant);
	if (entry)
		identity_put(entry->identity);
	free(entry);
	return NULL;
}

int catalogue_rename(struct entry *entry, const char *name, const char *process)
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

void catalogue_release(struct catalogue *catalogue, struct entry *entry, __u64 time, __u64 now)
{
	if (entry->released)
		return;
	entry->released = time ?: 1;
	entry->forget = (time > now ? time : now) + CATALOGUE_RELEASED_KEPT;
	tenant_leave(catalogue, entry);
	link_remove(&entry->link);
	link_append(&catalogue->released, &entry->link);
	catalogue->alive_count--;
	catalogue->released_count++;
}

struct entry *catalogue_forgettable(const struct catalogue *catalogue, __u64 time)
{
	struct entry *entry;

	if (link_alone(&catalogue->released))
		return NULL;
	entry = link_first(&catalogue->released, struct entry, link);
	return entry->forget <= time || catalogue->released_count > CATALOGUE_RELEASED_MAX ? entry : NULL;
}

void catalogue_remove(struct catalogue *catalogue, struct entry *entry)
{
	tenant_leave(catalogue, entry);
	link_remove(&entry->link);
	if (entry->released)
		catalogue->released_count--;
	else
		catalogue->alive_count--;
	map_remove(&catalogue->by_id, &entry->by_id);
	if (!entry->handed_over)
		map_remove(&catalogue->by_handle, &entry->by_handle);
	identity_put(entry->identity);
	free(entry);
}

void catalogue_free(struct catalogue *catalogue)
{
	struct entry *entry, *following;

	link_for_each_safe(entry, following, &catalogue->alive, link)
		catalogue_remove(catalogue, entry);
	link_for_each_safe(entry, following, &catalogue->released, link)
		catalogue_remove(catalogue, entry);
	map_free(&catalogue->by_id);
	map_free(&catalogue->by_handle);
	map_free(&catalogue->processes);
}

struct entry *catalogue_of_process(const struct catalogue *catalogue, __u32 tgid, const struct entry *previous)
{
	struct map_node *node = map_find(&catalogue->processes, tgid, 0);
	struct tenant *tenant = node ? container_of(node, struct tenant, node) : NULL;
	const struct link *next;

	if (!tenant)
		return NULL;
	next = previous ? previous->of_process.next : tenant->programs.next;
	return next == &tenant->programs ? NULL : container_of(next, struct entry, of_process);
}
