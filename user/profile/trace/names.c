/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/core/hashmap.h"
#include "base/core/link.h"
#include "profile/trace/text.h"

/* A thread of an unknown process belongs to this life. */
#define LIFE_UNKNOWN (~0u)

struct process_name {
	struct map_node node;
	struct link link;
	struct model_process view; /* strings lie behind */
	char text[];
};

struct thread_name {
	struct map_node node;
	struct link link;
	unsigned int life; /* sort index of its process: another process may get the same numbers later */
	char name[];
};

/* Both lists: the least recently updated come first. */
struct trace_names {
	struct map processes, threads;
	struct link process_list, thread_list;
	struct chrome_devices *devices;
	__u64 documents; /* made so far */
};

struct trace_names *trace_names_create(void)
{
	struct trace_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	link_init(&names->process_list);
	link_init(&names->thread_list);
	names->devices = chrome_devices_create();
	if (!names->devices) {
		free(names);
		return NULL;
	}
	return names;
}

static void process_drop(struct trace_names *names, struct process_name *process)
{
	map_remove(&names->processes, &process->node);
	link_remove(&process->link);
	free(process);
}

static void thread_drop(struct trace_names *names, struct thread_name *thread)
{
	map_remove(&names->threads, &thread->node);
	link_remove(&thread->link);
	free(thread);
}

void trace_names_free(struct trace_names *names)
{
	struct link *link, *following;

	if (!names)
		return;
	link_each(link, following, &names->process_list)
		process_drop(names, container_of(link, struct process_name, link));
	link_each(link, following, &names->thread_list)
		thread_drop(names, container_of(link, struct thread_name, link));
	map_free(&names->processes);
	map_free(&names->threads);
	chrome_devices_free(names->devices);
	free(names);
}

static struct process_name *process_find(const struct trace_names *names, __u32 tgid)
{
	struct map_node *node = map_find(&names->processes, tgid, 0);

	return node ? container_of(node, struct process_name, node) : NULL;
}

static struct thread_name *thread_find(const struct trace_names *names, __u32 tgid, __u32 tid)
{
	struct map_node *node = map_find(&names->threads, tgid, tid);

	return node ? container_of(node, struct thread_name, node) : NULL;
}

static unsigned int life_of(const struct trace_names *names, __u32 tgid)
{
	const struct process_name *process = process_find(names, tgid);

	return process ? process->view.sort_index : LIFE_UNKNOWN;
}

/* Without memory the name before is kept. */
static void take_process(struct trace_names *names, const struct model_process *from)
{
	const char *command = from->command ? from->command : "", *name = from->name ? from->name : "";
	size_t name_size = strlen(name) + 1, command_size = strlen(command) + 1;
	struct process_name *process = malloc(sizeof(*process) + name_size + command_size), *before;

	if (!process)
		return;
	process->view = *from;
	process->view.name = memcpy(process->text, name, name_size);
	process->view.command = memcpy(process->text + name_size, command, command_size);
	before = process_find(names, from->tgid);
	if (map_add(&names->processes, &process->node, from->tgid, 0)) {
		free(process);
		return;
	}
	link_append(&names->process_list, &process->link);
	if (!before && names->processes.count > TRACE_NAMES_MAX)
		before = container_of(names->process_list.next, struct process_name, link);
	if (before)
		process_drop(names, before);
}

static void take_thread(struct trace_names *names, __u32 tgid, __u32 tid, const char *name)
{
	size_t size = strlen(name) + 1;
	struct thread_name *thread = malloc(sizeof(*thread) + size), *before;

	if (!thread)
		return;
	memcpy(thread->name, name, size);
	thread->life = life_of(names, tgid);
	before = thread_find(names, tgid, tid);
	if (map_add(&names->threads, &thread->node, tgid, tid)) {
		free(thread);
		return;
	}
	link_append(&names->thread_list, &thread->link);
	if (!before && names->threads.count > TRACE_NAMES_MAX)
		before = container_of(names->thread_list.next, struct thread_name, link);
	if (before)
		thread_drop(names, before);
}

void trace_names_event(struct trace_names *names, const struct event *event)
{
	if (event->kind == EVENT_PROCESS)
		take_process(names, event->process);
	else if (event->kind == EVENT_THREAD && event->thread.name)
		take_thread(names, event->thread.tgid, event->thread.tid, event->thread.name);
}

bool trace_names_process(const struct trace_names *names, __u32 tgid, struct model_process *process)
{
	const struct process_name *known = process_find(names, tgid);

	if (known)
		*process = known->view;
	return known;
}

const char *trace_names_thread(const struct trace_names *names, __u32 tgid, __u32 tid)
{
	const struct thread_name *thread = thread_find(names, tgid, tid);

	return thread && thread->life == life_of(names, tgid) ? thread->name : NULL;
}

struct chrome_devices *trace_names_devices(struct trace_names *names)
{
	return names->devices;
}

__u64 trace_names_document(struct trace_names *names)
{
	return ++names->documents;
}
