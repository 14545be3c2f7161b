/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/past.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct waiting {
	struct link link;
	struct told told; /* with its record behind it */
	struct xpt_record_header record[];
};

void past_init(struct past *past, size_t room)
{
	*past = (struct past){};
	context_init(&past->context, room);
	link_init(&past->waiting);
}

static void waiting_drop(struct past *past, struct waiting *waiting)
{
	past->waiting_bytes -= sizeof(*waiting) + waiting->told.size;
	link_remove(&waiting->link);
	free(waiting);
}

void past_free(struct past *past)
{
	struct link *link, *following;

	link_each(link, following, &past->waiting) waiting_drop(past, container_of(link, struct waiting, link));
	context_free(&past->context);
}

/* They come nearly in order. */
int past_tell(struct past *past, const struct told *told, const void *record)
{
	struct waiting *waiting = malloc(sizeof(*waiting) + told->size);
	struct link *before = past->waiting.previous;

	if (!waiting)
		return -ENOMEM;
	waiting->told = *told;
	if (told->size)
		memcpy(waiting->record, record, told->size);
	while (before != &past->waiting && container_of(before, struct waiting, link)->told.time > told->time)
		before = before->previous;
	link_append(before->next, &waiting->link);
	past->waiting_bytes += sizeof(*waiting) + told->size;
	return 0;
}

static int happen(struct past *past, const struct waiting *waiting)
{
	const struct told *told = &waiting->told;

	if (!told->size)
		context_release(&past->context, told->tgid, told->runtime, told->handle);
	else if (waiting->record->kind == XPT_RECORD_TASK)
		return context_take(&past->context, waiting->record);
	else
		return context_load(&past->context, told->runtime, (const void *)waiting->record);
	return 0;
}

unsigned int past_settle(struct past *past, __u64 time)
{
	struct link *link, *following;
	unsigned int failed = 0;

	link_each(link, following, &past->waiting)
	{
		struct waiting *waiting = container_of(link, struct waiting, link);

		if (waiting->told.time > time)
			break;
		failed += !!happen(past, waiting);
		waiting_drop(past, waiting);
	}
	return failed;
}

/* What a process had, a child gets and an exit ends: in the order of time. */
unsigned int past_take(struct past *past, const struct xpt_record_header *record)
{
	const struct told told = { .time = record->time, .tgid = record->tgid, .size = record->size };

	return !!(record->kind == XPT_RECORD_TASK ? past_tell(past, &told, record) :
						    context_take(&past->context, record));
}

/* ---- copies ---- */

int past_save(const struct past *past, struct past_copy *copy)
{
	context_save(&past->context, &copy->entries);
	for (const struct link *link = past->waiting.next; link != &past->waiting; link = link->next) {
		const struct waiting *waiting = container_of(link, struct waiting, link);

		text_bytes(&copy->told, &waiting->told, sizeof(waiting->told));
		text_bytes(&copy->told, waiting->record, waiting->told.size);
	}
	return copy->entries.error ?: copy->told.error;
}

void past_copy_free(struct past_copy *copy)
{
	text_free(&copy->entries);
	text_free(&copy->told);
}

static const struct told *told_next(const struct past_copy *copy, size_t *at)
{
	const struct told *told;

	if (*at >= copy->told.length)
		return NULL;
	told = (const void *)(copy->told.data + *at);
	*at += sizeof(*told) + told->size;
	return told;
}

int past_restore(struct past *past, const struct past_copy *copy)
{
	int error = context_restore(&past->context, &copy->entries);
	const struct told *told;

	for (size_t at = 0; !error && (told = told_next(copy, &at));)
		error = past_tell(past, told, told + 1);
	return error;
}

const struct xpt_record_header *past_copy_told(const struct past_copy *copy, __u32 tgid, __u64 time, size_t *at)
{
	const struct told *told;

	while ((told = told_next(copy, at)))
		if (told->size && told->tgid == tgid && told->time == time &&
		    ((const struct xpt_record_header *)(told + 1))->kind == XPT_RECORD_LOADED)
			return (const void *)(told + 1);
	return NULL;
}

const struct xpt_record_header *past_copy_until(const struct past_copy *copy, __u64 time, size_t *at)
{
	const struct told *told;

	for (size_t next = *at; (told = told_next(copy, &next)) && told->time <= time; *at = next)
		if (told->size && ((const struct xpt_record_header *)(told + 1))->kind == XPT_RECORD_LOADED) {
			*at = next;
			return (const void *)(told + 1);
		}
	return NULL;
}
