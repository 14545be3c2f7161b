/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/attached.h"

#include <errno.h>
#include <stdlib.h>

int attached_add(struct attached_list *list, const struct attached *attached)
{
	struct attachment *attachments[] = { attached->attachment, attached->codes };
	struct attached *more = reallocarray(list->all, list->count + 1, sizeof(*more));

	if (!more) {
		kern_detach(list->kern, attachments, 2);
		free(attached->sites);
		return -ENOMEM;
	}
	list->all = more;
	list->all[list->count++] = *attached;
	return 0;
}

static bool is_of(const struct attached *attached, pid_t tgid, const struct analysed *file)
{
	return attached->tgid == tgid && attached->device == file->device && attached->inode == file->inode;
}

bool attached_is_complete(const struct attached_list *list, pid_t tgid, const struct analysed *file)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->all[i].complete && is_of(&list->all[i], tgid, file))
			return true;
	return false;
}

bool attached_has(const struct attached_list *list, pid_t tgid, const struct analysed *file, __u64 offset)
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

static void bury(struct attached_list *list, struct attached *attached)
{
	struct attachment *attachments[] = { attached->attachment, attached->codes };
	struct attachment **more = reallocarray(list->dead, list->dead_count + 2, sizeof(struct attachment *));

	free(attached->sites);
	if (!more) {
		kern_detach(list->kern, attachments, 2);
		return;
	}
	list->dead = more;
	list->dead[list->dead_count++] = attached->attachment;
	if (attached->codes)
		list->dead[list->dead_count++] = attached->codes;
}

void attached_bury(struct attached_list *list, pid_t tgid)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (list->all[i].tgid == tgid)
			bury(list, &list->all[i]);
		else
			list->all[kept++] = list->all[i];
	}
	list->count = kept;
}

void attached_bury_all(struct attached_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		bury(list, &list->all[i]);
	list->count = 0;
}

bool attached_sweep(struct attached_list *list)
{
	if (!list->dead_count)
		return false;
	kern_detach(list->kern, list->dead, list->dead_count);
	list->dead_count = 0;
	return true;
}

size_t attached_count(const struct attached_list *list, pid_t tgid)
{
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++)
		count += !tgid || !list->all[i].tgid || list->all[i].tgid == tgid;
	return count;
}

void attached_free(struct attached_list *list)
{
	free(list->all);
	free(list->dead);
}
