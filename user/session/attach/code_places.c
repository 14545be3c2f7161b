/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/attach/code_places.h"

#include <errno.h>

void code_places_free(struct code_places *places)
{
	mapped_files_free(&places->files);
	places->tgid = 0;
}

static int pin(const struct code_places *places, struct elf_cache *files, __u64 address, struct pinned_file *pinned)
{
	for (size_t i = 0; i < places->files.count; i++) {
		const struct mapped_file *file = &places->files.files[i];

		if (address >= file->start && address < file->end)
			return elf_cache_pin(files, file, true, pinned);
	}
	return -ENOENT;
}

int code_places_find(struct code_places *places, struct elf_cache *files, pid_t tgid, __u64 address,
		     struct pinned_file *pinned)
{
	int result = places->tgid == tgid ? pin(places, files, address, pinned) : -ENOENT;

	/* What was mapped there may be something else by now. */
	if (result != -ENOENT)
		return result;
	code_places_free(places);
	result = process_mapped_files(tgid, &places->files);
	if (result)
		return result;
	places->tgid = tgid;
	return pin(places, files, address, pinned);
}
