/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/attach/class_names.h"

#include <errno.h>
#include <stdlib.h>

#include "session/attach/function_names.h"

void class_names_free(struct class_names *names)
{
	free(names->told);
}

int class_names_tell(struct class_names *names, const struct registry *registry, pid_t tgid,
		     const struct mapped_file *mapped, const struct analysed *file,
		     int (*record)(void *context, const struct xpt_record_header *record), void *context)
{
	struct told *more;
	__u64 bias;
	int error;

	if (!file->contents.operators.count && !function_names_any(registry, &file->contents.found))
		return 0;
	error = analysed_bias(file, mapped, &bias);
	for (size_t i = 0; i < names->count && !error; i++) {
		const struct told *told = &names->told[i];

		if (told->tgid == tgid && told->file == file && told->bias == bias)
			return 0;
	}
	more = error ? NULL : reallocarray(names->told, names->count + 1, sizeof(*more));
	if (!more)
		return error ?: -ENOMEM;
	names->told = more;
	names->told[names->count++] = (struct told){ tgid, file, bias };
	error = function_names_tell(registry, &file->contents.found, tgid, mapped, record, context);
	return error ? error : file_operators_emit(&file->contents.operators, tgid, bias, record, context);
}

void class_names_renew(struct class_names *names, pid_t tgid)
{
	size_t kept = 0;

	for (size_t i = 0; i < names->count; i++)
		if (names->told[i].tgid != tgid)
			names->told[kept++] = names->told[i];
	names->count = kept;
}

const struct description *class_names_runtime(const struct class_names *names, pid_t tgid, __u64 class)
{
	const struct description *runtime = NULL;

	for (size_t i = 0; i < names->count && !runtime; i++) {
		const struct told *told = &names->told[i];

		if (told->tgid == tgid)
			runtime = file_operators_runtime(&told->file->contents.operators, class - told->bias);
	}
	return runtime;
}
