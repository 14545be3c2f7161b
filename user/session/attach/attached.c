/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/attach/attached.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/core/process.h"
#include "base/core/vec.h"

/* Those that are being taken off, which are the thread's. */
struct attached_sweeper {
	struct kern *kern;
	struct attachment **dead;
	size_t count;
	pthread_t thread;
	atomic_bool done;
};

__u32 attached_counter(struct attached_list *list)
{
	if (list->free_counter_count)
		return list->free_counters[--list->free_counter_count];
	return list->last_counter + 1 < XPT_HITS_TIMED ? ++list->last_counter : 0;
}

int attached_add(struct attached_list *list, const struct attached *attached)
{
	struct attachment *attachments[] = { attached->attachment, attached->codes };
	int error = vec_push(list->all, list->count, *attached);

	if (error) {
		kern_detach(list->kern, attachments, 2);
		free(attached->sites);
	}
	return error;
}

static bool is_of(const struct attached *attached, pid_t tgid, const struct elf_entry *file)
{
	return attached->tgid == tgid && attached->file == file;
}

bool attached_is_complete(const struct attached_list *list, pid_t tgid, const struct elf_entry *file)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->all[i].complete && is_of(&list->all[i], tgid, file))
			return true;
	return false;
}

bool attached_has(const struct attached_list *list, pid_t tgid, const struct elf_entry *file, __u64 offset)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct attached *attached = &list->all[i];

		if (!is_of(attached, tgid, file))
			continue;
		for (size_t s = 0; s < attached->site_count; s++)
			if (attached->sites[s].offset == offset)
				return true;
	}
	return false;
}

void attached_suspend(struct attached_list *list, struct attached *attached)
{
	struct attachment *attachments[] = { attached->attachment, attached->codes };

	for (size_t i = 0; i < 2; i++)
		if (attachments[i] && vec_push(list->dead, list->dead_count, attachments[i]))
			kern_detach(list->kern, &attachments[i], 1);
	attached->attachment = attached->codes = NULL;
	attached->suspended = true;
}

static void bury(struct attached_list *list, struct attached *attached)
{
	attached_suspend(list, attached);
	free(attached->sites);
	/* Without memory for it, it is not used again. */
	if (attached->load.counter)
		vec_push(list->free_counters, list->free_counter_count, attached->load.counter);
}

static void bury_those(struct attached_list *list, bool (*is_one)(const struct attached *attached, const void *what),
		       const void *what)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (is_one(&list->all[i], what))
			bury(list, &list->all[i]);
		else
			list->all[kept++] = list->all[i];
	}
	list->count = kept;
}

static bool is_of_process(const struct attached *attached, const void *tgid)
{
	return attached->tgid == *(const pid_t *)tgid;
}

void attached_bury(struct attached_list *list, pid_t tgid)
{
	bury_those(list, is_of_process, &tgid);
}

static bool is_of_file(const struct attached *attached, const void *file)
{
	return attached->file == file;
}

void attached_bury_file(struct attached_list *list, const struct elf_entry *file)
{
	bury_those(list, is_of_file, file);
}

static bool is_of_earlier(const struct attached *attached, const void *context)
{
	const struct elf_entry *file = context;

	return attached->file != file && attached->file->status.st_dev == file->status.st_dev &&
	       attached->file->status.st_ino == file->status.st_ino;
}

void attached_bury_changed(struct attached_list *list, const struct elf_entry *file)
{
	if (file->changed)
		bury_those(list, is_of_earlier, file);
}

void attached_bury_all(struct attached_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		bury(list, &list->all[i]);
	list->count = 0;
}

static void *sweep_run(void *context)
{
	struct attached_sweeper *sweeper = context;

	kern_detach(sweeper->kern, sweeper->dead, sweeper->count);
	atomic_store(&sweeper->done, true);
	return NULL;
}

/* Whether nothing is being taken off, now or after waiting for it. */
static bool sweeper_end(struct attached_list *list, bool wait)
{
	struct attached_sweeper *sweeper = list->sweeper;

	if (!sweeper)
		return true;
	if (!wait && !atomic_load(&sweeper->done))
		return false;
	pthread_join(sweeper->thread, NULL);
	free(sweeper->dead);
	free(sweeper);
	list->sweeper = NULL;
	return true;
}

bool attached_sweep(struct attached_list *list, bool wait)
{
	struct attached_sweeper *sweeper;
	bool swept = list->sweeper;

	if (!sweeper_end(list, wait) || !list->dead_count)
		return swept;
	sweeper = wait ? NULL : calloc(1, sizeof(*sweeper));
	if (sweeper) {
		*sweeper = (struct attached_sweeper){ .kern = list->kern,
						      .dead = list->dead,
						      .count = list->dead_count };
		if (!thread_start(&sweeper->thread, sweep_run, sweeper, "xpt-detach")) {
			list->sweeper = sweeper;
			list->dead = NULL;
			list->dead_count = 0;
			return true;
		}
		free(sweeper);
	}
	kern_detach(list->kern, list->dead, list->dead_count);
	list->dead_count = 0;
	return true;
}

size_t attached_sites(const struct attached_list *list, pid_t tgid, const struct elf_entry *file)
{
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++)
		count += is_of(&list->all[i], tgid, file) ? list->all[i].site_count : 0;
	return count;
}

void attached_free(struct attached_list *list)
{
	free(list->all);
	free(list->dead);
	free(list->free_counters);
}
