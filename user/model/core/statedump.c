/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs and regions from before the recording begins, as dumped when it was cut out of a longer one. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/core/json.h"
#include "model/core/state.h"

#define LOADED_SIZE_MAX (1LL << 53) /* beyond, numbers of JSON are not exact */

/* Contents of a record. */
struct statedump_entry {
	const struct runtime *runtime;
	char *name;   /* of the program; NULL: not known */
	char *region; /* the handle is that of a region, and this is its name; NULL: it is a program's */
	enum name_source source;
	unsigned int number; /* behind the name; of a program without one: in its description; 0: any */
	__u64 size;
};

static bool has(const cJSON *object, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(object, key);
}

static int statedump_parse(const struct model *model, const cJSON *object, struct statedump_entry *loaded)
{
	__s64 index, size = 0, source = NAME_FROM_LOAD, number = 0;
	int error = json_integer_get(object, "runtime", 0, XPT_RUNTIME_MAX - 1, &index);

	if (!error && has(object, "size"))
		error = json_integer_get(object, "size", 0, LOADED_SIZE_MAX, &size);
	if (!error && has(object, "named_by"))
		error = json_integer_get(object, "named_by", NAME_FROM_FORK, NAME_SOURCES - 1, &source);
	if (!error && has(object, "number"))
		error = json_integer_get(object, "number", 1, 0x7fffffff, &number);
	if (!error && has(object, "name"))
		error = json_string_get(object, "name", &loaded->name);
	if (!error && has(object, "region"))
		error = json_string_get(object, "region", &loaded->region);
	if (error)
		return error;
	loaded->runtime = functions_runtime(&model->functions, (unsigned int)index);
	loaded->source = (enum name_source)source;
	loaded->size = (__u64)size;
	loaded->number = (unsigned int)number;
	return loaded->runtime ? 0 : -EBADMSG;
}

/* A name that the user gives now is better than one that was given then. */
static int program_set_dumped_name(struct model *model, struct program *program, const struct statedump_entry *loaded,
				   __u64 time)
{
	int named = program_ask_user(model, program);

	if (named < 0 || program->view.name_source == NAME_FROM_USER)
		return named;
	named = program_set_numbered(program, loaded->name, loaded->number, loaded->source);
	if (!named)
		program_describe(program, loaded->number);
	if (named <= 0)
		return named;
	programs_emit(&model->programs, program, time, false);
	return programs_lend_name(&model->programs, program, time);
}

static int program_deliver(struct model *model, const struct xpt_record_text *record,
			   const struct statedump_entry *loaded)
{
	const struct xpt_record_header *header = &record->header;
	struct process *process = processes_get(&model->processes, header->tgid, header->time);
	struct program *program = process ? programs_use(&model->programs, process, loaded->runtime, record->id,
							 header->time) :
					    NULL;

	if (!program)
		return -ENOMEM;
	if (loaded->size && !program->others)
		program->view.size = loaded->size;
	return program_set_dumped_name(model, program, loaded, header->time);
}

int statedump_deliver(struct model *model, const struct xpt_record_text *record, const cJSON *object)
{
	struct statedump_entry loaded = {};
	int error = statedump_parse(model, object, &loaded);

	if (!error && loaded.region)
		error = regions_set_name(&model->regions, record->header.tgid, record->id, loaded.region, false);
	else if (!error)
		error = program_deliver(model, record, &loaded);
	free(loaded.name);
	free(loaded.region);
	return error < 0 ? error : 0;
}
