/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/reader/operators.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/clock.h"
#include "session/reader/describe_records.h"

static void tables_bound(struct runtime_operators *runtime)
{
	const struct classes *classes = &runtime->operators.classes;

	for (size_t i = 0; i < classes->method_count; i++) {
		const __u64 table = classes->methods[i].table;

		runtime->first = table < runtime->first ? table : runtime->first;
		runtime->last = table > runtime->last ? table : runtime->last;
	}
}

static int find(const struct log *log, const struct mapped_file *mapped, const struct description *runtime,
		struct file_operators *file)
{
	struct runtime_operators *more = reallocarray(file->runtimes, file->count + 1, sizeof(*more));
	struct operators operators;
	struct elf_file *elf;
	int error;

	if (!more)
		return -ENOMEM;
	file->runtimes = more;
	error = mapped_file_elf(NULL, mapped, &elf);
	if (error)
		return error;
	error = operators_find(elf, &runtime->operators, &operators);
	elf_file_close(elf);
	if (error)
		return error;
	log_info(log, "%s: %zu operator classes of %s, %zu functions", mapped->path, operators.classes.class_count,
		 runtime->title, operators.function_count);
	file->runtimes[file->count] = (struct runtime_operators){ runtime, operators, ~(__u64)0, 0 };
	tables_bound(&file->runtimes[file->count++]);
	file->functions += operators.function_count;
	return 0;
}

int file_operators_find(const struct log *log, const struct registry *registry, const struct mapped_file *mapped,
			const struct found_functions *found, struct file_operators *result)
{
	*result = (struct file_operators){ 0 };
	for (size_t i = 0; i < registry->runtime_count; i++) {
		const struct description *runtime = registry->runtimes[i];
		int error;

		if (!runtime->operators.method_count || !found_runtime(found, runtime))
			continue;
		error = find(log, mapped, runtime, result);
		if (error == -ENOMEM)
			return error;
		if (error == -ENOENT && runtime->operators.base)
			log_warn(log,
				 "%s: no operators: no type information of a class %s, from which they would be known",
				 mapped->path, runtime->operators.base);
		else if (error == -ENOENT)
			log_warn(log, "%s: no operators: none of the functions that are described as operators",
				 mapped->path);
		else if (error)
			log_warn(log, "%s: no operators: %s", mapped->path, strerror(-error));
	}
	return 0;
}

void file_operators_free(struct file_operators *file)
{
	for (size_t i = 0; i < file->count; i++)
		operators_free(&file->runtimes[i].operators);
	free(file->runtimes);
	*file = (struct file_operators){ 0 };
}

void file_operators_visit(const struct file_operators *file,
			  void (*visit)(void *context, const struct site *site, unsigned int spec), void *context)
{
	for (size_t i = 0; i < file->count; i++) {
		const struct operators *operators = &file->runtimes[i].operators;
		const struct operators_spec *spec = &file->runtimes[i].runtime->operators;

		for (size_t f = 0; f < operators->function_count; f++) {
			const struct operator_function *function = &operators->functions[f];
			unsigned int slot = operators->classes.methods[function->first].slot;

			visit(context, &function->site, operators_method(spec, slot)->wire.index);
		}
	}
}

const struct description *file_operators_runtime(const struct file_operators *file, __u64 class)
{
	for (size_t i = 0; i < file->count; i++)
		if (class >= file->runtimes[i].first && class <= file->runtimes[i].last)
			return file->runtimes[i].runtime;
	return NULL;
}

int file_operators_tell(const struct file_operators *file, pid_t tgid, __u64 bias,
			int (*record)(void *context, const struct xpt_record_header *record), void *context)
{
	__u64 time = clock_monotonic();
	int error = 0;

	for (size_t i = 0; i < file->count; i++) {
		const struct classes *classes = &file->runtimes[i].operators.classes;

		for (size_t m = 0; m < classes->method_count && !error; m++) {
			const struct class_method *method = &classes->methods[m];
			struct xpt_record_text *told = record_text(XPT_RECORD_CLASS, tgid, time, method->table + bias,
								   method->class_name);

			error = told ? record(context, &told->header) : -ENOMEM;
			free(told);
		}
	}
	return error;
}
