/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/attach/class_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/core/vec.h"

void class_names_free(struct class_names *names)
{
	free(names->files);
}

/* ---- functions that are regions, by the addresses of their probes in the process ---- */

static bool is_region(const struct registry *registry, const struct found_function *function)
{
	return !function->shared && registry->specs[function->spec]->wire.role == XPT_ROLE_REGION;
}

static bool has_regions(const struct registry *registry, const struct found_functions *found)
{
	for (size_t i = 0; i < found->count; i++)
		if (is_region(registry, &found->functions[i]))
			return true;
	return false;
}

static int emit_region(const struct found_function *function, pid_t tgid, __u64 address, __u64 time,
		       int (*record)(void *context, const struct xpt_record_header *record), void *context)
{
	union {
		struct xpt_record_region_name record;
		char room[sizeof(struct xpt_record_region_name) + XPT_ALIGN8(XPT_STRING_MAX)];
	} named = { .record = { .header = { .kind = XPT_RECORD_REGION_NAME, .tgid = tgid, .time = time },
				.name = address } };
	struct xpt_record_region_name *name = &named.record;
	size_t length = strlen(function->symbol);

	name->truncated = length > XPT_STRING_MAX;
	name->length = length > XPT_STRING_MAX ? XPT_STRING_MAX : length;
	name->header.size = XPT_ALIGN8(sizeof(*name) + name->length);
	memcpy(name->text, function->symbol, name->length);
	return record(context, &name->header);
}

static int emit_regions(const struct registry *registry, const struct found_functions *found, pid_t tgid,
			const struct mapped_file *mapped,
			int (*record)(void *context, const struct xpt_record_header *record), void *context)
{
	__u64 time = clock_monotonic();
	int error = 0;

	for (size_t i = 0; i < found->count && !error; i++) {
		const struct found_function *function = &found->functions[i];

		if (is_region(registry, function))
			error = emit_region(function, tgid, function->site.offset - mapped->offset + mapped->start,
					    time, record, context);
	}
	return error;
}

/* ---- classes ---- */

int class_names_emit(struct class_names *names, const struct registry *registry, pid_t tgid,
		     const struct mapped_file *mapped, const struct elf_entry *file,
		     int (*record)(void *context, const struct xpt_record_header *record), void *context)
{
	__u64 bias;
	int error;

	if (!file->contents.operators.count && !has_regions(registry, &file->contents.found))
		return 0;
	error = elf_entry_bias(file, mapped, &bias);
	for (size_t i = 0; i < names->count && !error; i++) {
		const struct class_file *known = &names->files[i];

		if (known->tgid == tgid && known->file == file && known->bias == bias)
			return 0;
	}
	error = error ?: vec_push(names->files, names->count, (struct class_file){ tgid, file, bias });
	error = error ?: emit_regions(registry, &file->contents.found, tgid, mapped, record, context);
	return error ?: file_operators_emit(&file->contents.operators, tgid, bias, record, context);
}

void class_names_renew(struct class_names *names, pid_t tgid)
{
	size_t kept = 0;

	for (size_t i = 0; i < names->count; i++)
		if (names->files[i].tgid != tgid)
			names->files[kept++] = names->files[i];
	names->count = kept;
}

const struct description *class_names_runtime(const struct class_names *names, pid_t tgid, __u64 class)
{
	const struct description *runtime = NULL;

	for (size_t i = 0; i < names->count && !runtime; i++) {
		const struct class_file *known = &names->files[i];

		if (known->tgid == tgid)
			runtime = file_operators_runtime(&known->file->contents.operators, class - known->bias);
	}
	return runtime;
}
