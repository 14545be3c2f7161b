/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that were loaded before the recording begins, as whoever cut it out of a longer one tells them. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "model/json_values.h"
#include "model/state.h"

static int tell_name(struct model *model, struct program *program, const cJSON *object, __u64 time)
{
	__s64 source = NAME_FROM_LOAD;
	char *name = NULL;
	int named;

	if (!cJSON_HasObjectItem(object, "name"))
		return 0;
	if (cJSON_HasObjectItem(object, "named_by") &&
	    json_integer_get(object, "named_by", NAME_FROM_FORK, NAME_FROM_USER, &source))
		return -EBADMSG;
	named = json_string_get(object, "name", &name) ?: program_set_name(program, name, (enum name_source)source);
	free(name);
	if (named <= 0)
		return named;
	programs_tell(&model->programs, program, time, false);
	return programs_lend_name(&model->programs, program, time);
}

int loaded_deliver(struct model *model, const struct xpt_record_text *record)
{
	const struct xpt_record_header *header = &record->header;
	cJSON *object = json_object_parse(record->text, record->length);
	const struct runtime *runtime;
	struct process *process;
	struct program *program;
	__s64 index, size;
	int error = -EBADMSG;

	if (!object || json_integer_get(object, "runtime", 0, XPT_RUNTIME_MAX - 1, &index))
		goto out;
	runtime = functions_runtime(&model->functions, (unsigned int)index);
	if (!runtime)
		goto out;
	error = -ENOMEM;
	process = processes_get(&model->processes, header->tgid, header->time);
	program = process ? programs_use(&model->programs, process, runtime, record->id, header->time) : NULL;
	if (!program)
		goto out;
	if (!program->others && !json_integer_get(object, "size", 1, INT64_MAX, &size))
		program->view.size = (__u64)size;
	error = program_ask_user(model, program);
	if (error >= 0)
		error = tell_name(model, program, object, header->time);
out:
	cJSON_Delete(object);
	return error < 0 ? error : 0;
}
