/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/code_places.h"

#include <string.h>

void code_places_free(struct code_places *places)
{
	mapped_files_free(&places->files);
	places->tgid = 0;
}

/* What was mapped there may be something else by now: the path of the mapping tells. */
static const struct mapped_file *find(const struct code_places *places, __u64 address, struct stat *status)
{
	for (size_t i = 0; i < places->files.count; i++) {
		const struct mapped_file *file = &places->files.files[i];

		if (address >= file->start && address < file->end)
			return stat(file->open_path, status) || status->st_dev != file->device ||
					       status->st_ino != file->inode ?
				       NULL :
				       file;
	}
	return NULL;
}

int code_places_find(struct code_places *places, pid_t tgid, __u64 address, const struct mapped_file **file,
		     struct stat *status)
{
	int error;

	*file = places->tgid == tgid ? find(places, address, status) : NULL;
	if (*file)
		return 0;
	code_places_free(places);
	error = process_mapped_files(tgid, &places->files);
	if (error)
		return error;
	places->tgid = tgid;
	*file = find(places, address, status);
	return 0;
}
