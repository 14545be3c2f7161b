/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that are told by handle or fingerprint: by the user, or as those of symbols; and those of fingerprints themselves. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/state.h"

static int program_named(struct model *model, struct program *program, const char *name, enum name_source source,
			 __u64 time)
{
	int named = program_set_name(program, name, source);

	if (named > 0) {
		programs_tell(&model->programs, program, time, false);
		named = programs_lend_name(&model->programs, program, time);
	}
	return named < 0 ? named : 0;
}

int program_identified(struct model *model, struct program *program, __u64 time)
{
	const __u32 fingerprint = program->view.fingerprint;
	const char *given = names_find(&model->fingerprints, 0, fingerprint);
	char name[80];

	snprintf(name, sizeof(name), "%.48s %s %08x", program->runtime->name, program_noun(program), fingerprint);
	return program_named(model, program, given ?: name, given ? NAME_FROM_USER : NAME_FROM_OPERATORS, time);
}

static bool is_meant(const struct program *program, const struct xpt_record_text *record)
{
	if (record->header.kind == XPT_RECORD_FINGERPRINT)
		return program->view.fingerprint && program->view.fingerprint == record->id;
	return program->view.handle == record->id &&
	       (!record->header.tgid || program->view.process->tgid == record->header.tgid);
}

/* The name is for the program that has the handle or fingerprint now, and for those that will have it. */
int named_deliver(struct model *model, const struct xpt_record_text *record)
{
	const bool handle = record->header.kind == XPT_RECORD_NAMED;
	struct names *names = handle ? &model->names : &model->fingerprints;
	struct program *program;
	int error;
	size_t i;

	error = names_give(names, handle ? record->header.tgid : 0, record->id, record->text, record->length);
	if (error == -ENOSPC) {
		sinks_lose(&model->sinks, XPT_LOSS_NAMES, 1, record->header.time);
		return 0;
	}
	for (i = 0; i < model->programs.count && !error; i++) {
		program = model->programs.all[i];
		if (!program->others && is_meant(program, record))
			error = program_named(model, program,
					      names_find(names, program->view.process->tgid, record->id),
					      NAME_FROM_USER, record->header.time);
	}
	return error;
}

void model_unused_names(const struct model *model,
			void (*visit)(void *context, __u64 handle, bool fingerprint, const char *name), void *context)
{
	names_unused(&model->names, false, visit, context);
	names_unused(&model->fingerprints, true, visit, context);
}

/* Of a process that has exited, what it had then. */
static int symbol_use(struct model *model, const struct process *process, const struct xpt_record_text *record,
		      const char *name)
{
	__u64 time = record->header.time, at = process->exited && process->exited < time ? process->exited : time;
	struct program *program;
	int error = 0;

	for (unsigned int i = 0; i < XPT_RUNTIME_MAX && !error; i++) {
		program = model->functions.runtimes[i] ? programs_find(&model->programs, process, i, record->id, at) :
							 NULL;
		if (program)
			error = program_named(model, program, name, NAME_FROM_SYMBOL, time);
	}
	return error;
}

int symbol_deliver(struct model *model, const struct xpt_record_text *record)
{
	const struct xpt_record_header *header = &record->header;
	struct process *process = processes_told(&model->processes, header->tgid, header->time);
	char *name = strndup(record->text, record->length);
	int error = process && name ? 0 : -ENOMEM;

	if (!error && process != model->processes.others && *name) {
		error = process->exited ? 0 : symbols_give(&model->symbols, process, record->id, name);
		if (error == -ENOSPC) {
			sinks_lose(&model->sinks, XPT_LOSS_NAMES, 1, header->time);
			error = 0;
		}
		if (!error)
			error = symbol_use(model, process, record, name);
	}
	free(name);
	return error;
}
