/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/processes.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"

void processes_init(struct processes *processes, struct event_dispatch *events)
{
	*processes = (struct processes){ .events = events, .keep = MODEL_PROCESSES_MAX };
	link_init(&processes->live);
	link_init(&processes->gone);
}

static void process_free(struct process *process)
{
	if (!process)
		return;
	free((char *)process->view.name);
	free((char *)process->view.command);
	free(process);
}

void processes_free(struct processes *processes)
{
	struct process *process, *following;

	link_for_each_safe(process, following, &processes->live, link)
		process_free(process);
	link_for_each_safe(process, following, &processes->gone, link)
		process_free(process);
	process_free(processes->others);
	map_free(&processes->by_tgid);
}

static int text_set(const char **text, const char *value)
{
	size_t length = strlen(value);
	char *copy = strndup(value, length < PROCESS_NAME_MAX ? length : PROCESS_NAME_MAX);

	if (!copy)
		return -ENOMEM;
	free((char *)*text);
	*text = copy;
	return 0;
}

static struct process *process_create(struct processes *processes, __u32 tgid, const char *name)
{
	struct process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	if (text_set(&process->view.name, name) || text_set(&process->view.command, "")) {
		process_free(process);
		return NULL;
	}
	process->view.tgid = tgid;
	process->view.sort_index = processes->seen++;
	link_init(&process->link);
	link_init(&process->programs);
	return process;
}

static void process_emit(struct processes *processes, const struct process *process)
{
	const struct event event = { .kind = EVENT_PROCESS, .process = &process->view };

	event_dispatch_emit(processes->events, &event);
}

struct process *processes_others(struct processes *processes)
{
	if (!processes->others)
		processes->others = process_create(processes, 0, "(others)");
	return processes->others;
}

/* Without an EVENT_PROCESS: there may be more to report than the name. */
static struct process *process_add(struct processes *processes, __u32 tgid, __u64 time, const char *name)
{
	struct process *process;

	if (processes->count >= MODEL_PROCESSES_MAX) {
		event_dispatch_lose(processes->events, XPT_LOSS_NAMES, 1, time);
		return processes_others(processes);
	}
	process = process_create(processes, tgid, name);
	if (!process)
		return NULL;
	if (map_add(&processes->by_tgid, &process->node, tgid, 0)) {
		process_free(process);
		return NULL;
	}
	link_append(&processes->live, &process->link);
	processes->count++;
	return process;
}

struct process *processes_find(const struct processes *processes, __u32 tgid)
{
	struct map_node *node = map_find(&processes->by_tgid, tgid, 0);

	return node ? container_of(node, struct process, node) : NULL;
}

struct process *processes_get(struct processes *processes, __u32 tgid, __u64 time)
{
	struct process *process = processes_find(processes, tgid);

	if (process && (!process->exited || time <= process->exited))
		return process;
	process = process_add(processes, tgid, time, "");
	if (process && process != processes->others)
		process_emit(processes, process);
	return process;
}

struct process *processes_get_late(struct processes *processes, __u32 tgid, __u64 time)
{
	struct process *process = processes_find(processes, tgid);

	return process ? process : processes_get(processes, tgid, time);
}

static const char *json_text(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static __u64 json_number(const cJSON *object, const char *key, double limit)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= limit ? (__u64)item->valuedouble :
											      0;
}

static int process_fill(struct process *process, const cJSON *object)
{
	const char *name = json_text(object, "name"), *command = json_text(object, "command");
	__u64 start = json_number(object, "start_time", 9007199254740992.0);
	__u32 parent = (__u32)json_number(object, "parent", 4294967295.0);

	if (name && text_set(&process->view.name, name))
		return -ENOMEM;
	if (command && text_set(&process->view.command, command))
		return -ENOMEM;
	if (start)
		process->view.start_time = start;
	if (parent)
		process->view.parent = parent;
	return 0;
}

/*
 * A process is read in /proc when it is met, so its description may come after it has exited. Another start time means
 * another process.
 */
static struct process *process_described(struct processes *processes, __u32 tgid, __u64 time, __u64 start)
{
	struct process *process = processes_find(processes, tgid);

	if (process && (!start || !process->view.start_time || process->view.start_time == start))
		return process;
	return process_add(processes, tgid, time, "");
}

int processes_describe(struct processes *processes, __u32 tgid, __u64 time, const cJSON *object)
{
	struct process *process = process_described(processes, tgid, time,
						    json_number(object, "start_time", 9007199254740992.0));
	int error;

	if (!process)
		return -ENOMEM;
	if (process == processes->others)
		return 0;
	error = process_fill(process, object);
	process_emit(processes, process);
	return error;
}

static void ancestors_set(struct process *process, const struct process *parent, __u64 time)
{
	unsigned int inherited = parent->ancestor_count < ANCESTORS_MAX ? parent->ancestor_count : ANCESTORS_MAX - 1;

	process->ancestors[0] = (struct ancestor){ parent->view.sort_index, time };
	memcpy(process->ancestors + 1, parent->ancestors, inherited * sizeof(*parent->ancestors));
	process->ancestor_count = inherited + 1;
}

struct process *processes_fork(struct processes *processes, __u32 tgid, __u32 parent, __u64 time, const char *name)
{
	struct process *process = processes_find(processes, tgid);
	const struct process *source = processes_find(processes, parent);

	/* One that is known and has not exited was met in /proc before its fork was read. */
	if (!process || process->exited)
		process = process_add(processes, tgid, time, name);
	if (!process || process == processes->others)
		return process;
	process->view.parent = parent;
	if (source && source != process)
		ancestors_set(process, source, time);
	process_emit(processes, process);
	return process;
}

int processes_exec(struct processes *processes, struct process *process, const char *name)
{
	int error;

	if (process == processes->others)
		return 0;
	process->ancestor_count = 0;
	error = text_set(&process->view.name, name);
	if (!error)
		error = text_set(&process->view.command, "");
	process_emit(processes, process);
	return error;
}

void processes_exit(struct processes *processes, struct process *process, __u64 time)
{
	if (process == processes->others || process->exited)
		return;
	process->exited = time ? time : 1;
	processes->exited++;
	link_remove(&process->link);
	link_append(&processes->gone, &process->link);
}

static bool process_is_settled(const struct process *process, __u64 time)
{
	return !process->counting && (process->totalled || eviction_settled(process->exited, time));
}

static size_t exited_mark(struct processes *processes, bool all, size_t most, __u64 time)
{
	struct process *process, *following;
	size_t marked = 0;

	link_for_each_safe(process, following, &processes->gone, link) {
		if (!all && !process_is_settled(process, time))
			continue;
		process->forgotten = true;
		if (++marked == most)
			break;
	}
	return marked;
}

bool processes_mark(struct processes *processes, __u64 time)
{
	const bool full = processes->count >= MODEL_PROCESSES_MAX;
	size_t batch, most, marked;

	if ((!full && processes->exited <= processes->keep) || !processes->exited)
		return false;
	batch = eviction_batch(processes->keep, MODEL_PROCESSES_MAX);
	if (!eviction_due(&processes->eviction, processes->exited, batch, time))
		return false;
	most = batch + (processes->exited > processes->keep ? processes->exited - processes->keep : 0);
	marked = exited_mark(processes, false, most, time);
	if (full && !marked)
		marked = exited_mark(processes, true, batch, time);
	eviction_set(&processes->eviction, marked >= batch, processes->exited - marked, time);
	return marked;
}

void processes_forget(struct processes *processes)
{
	struct process *process, *following;

	link_for_each_safe(process, following, &processes->gone, link) {
		if (!process->forgotten)
			continue;
		link_remove(&process->link);
		map_remove(&processes->by_tgid, &process->node);
		processes->count--;
		processes->exited--;
		process_free(process);
	}
}

/* ---- names of what has a number in a process ---- */

void name_table_init(struct name_table *names, size_t most, bool refuses)
{
	keyed_init(&names->table, most, NULL, NULL);
	names->refuses = refuses;
}

static struct name *name_get(const struct name_table *names, __u64 a, __u64 b)
{
	struct keyed *entry = keyed_find(&names->table, a, b);

	return entry ? container_of(entry, struct name, keyed) : NULL;
}

int name_table_add(struct name_table *names, __u64 owner, __u64 a, __u64 b, const char *text, size_t length,
		   bool truncated)
{
	struct name *before = name_get(names, a, b), *name;

	length = strnlen(text, length);
	if (before && !strncmp(before->text, text, length) && !before->text[length])
		return 0;
	if (!before && names->refuses && keyed_full(&names->table))
		return -ENOSPC;
	name = malloc(sizeof(*name) + length + 1);
	if (!name)
		return -ENOMEM;
	memcpy(name->text, text, length);
	name->text[length] = '\0';
	name->truncated = truncated;
	name->used = before && before->used;
	if (before)
		keyed_drop(&names->table, &before->keyed);
	if (keyed_add(&names->table, &name->keyed, owner, a, b)) {
		free(name);
		return -ENOMEM;
	}
	return 0;
}

const struct name *name_table_find(const struct name_table *names, __u64 a, __u64 b)
{
	struct name *name = name_get(names, a, b);

	if (name)
		name->used = true;
	return name;
}

void name_table_drop(struct name_table *names, __u64 a, __u64 b)
{
	struct name *name = name_get(names, a, b);

	if (name)
		keyed_drop(&names->table, &name->keyed);
}
