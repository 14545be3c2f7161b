/* SPDX-License-Identifier: BSD-2-Clause */
/* Names by handle or fingerprint: from the user, or from symbols; and those of fingerprints themselves. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/state.h"

#define SYMBOL_NAME_MAX 1024 /* bytes kept */

const char *user_alias_find(const struct name_table *aliases, __u32 tgid, __u64 handle)
{
	const struct name *name = name_table_find(aliases, tgid, handle) ?: name_table_find(aliases, 0, handle);

	return name ? name->text : NULL;
}

/* Looked up once: later ones are handed to the programs by the NAMED and SYMBOL records. */
int program_ask_user(struct model *model, struct program *program)
{
	const struct name *symbol;
	const char *alias;

	if (program->asked || program->others)
		return 0;
	program->asked = true;
	alias = user_alias_find(&model->handles, program->view.process->tgid, program->view.handle);
	if (alias)
		return program_set_name(program, alias, NAME_FROM_USER);
	symbol = name_table_find(&model->symbols, program->process->view.sort_index, program->view.handle);
	return symbol ? program_set_name(program, symbol->text, NAME_FROM_SYMBOL) : 0;
}

static int program_named(struct model *model, struct program *program, const char *name, enum name_source source,
			 __u64 time)
{
	int named = program_set_name(program, name, source);

	if (named > 0) {
		programs_emit(&model->programs, program, time, false);
		named = programs_lend_name(&model->programs, program, time);
	}
	return named < 0 ? named : 0;
}

int program_identified(struct model *model, struct program *program, __u64 time)
{
	const __u32 fingerprint = program->view.fingerprint;
	const char *given = user_alias_find(&model->fingerprints, 0, fingerprint);
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
	struct name_table *aliases = handle ? &model->handles : &model->fingerprints;
	const __u32 tgid = handle ? record->header.tgid : 0;
	struct program *program;
	int error;
	size_t i;

	error = name_table_add(aliases, tgid, tgid, record->id, record->text, record->length, false);
	if (error == -ENOSPC) {
		event_dispatch_lose(&model->events, XPT_LOSS_NAMES, 1, record->header.time);
		return 0;
	}
	for (i = 0; i < model->programs.count && !error; i++) {
		program = model->programs.all[i];
		if (!program->others && is_meant(program, record))
			error = program_named(model, program,
					      user_alias_find(aliases, program->view.process->tgid, record->id),
					      NAME_FROM_USER, record->header.time);
	}
	return error;
}

static void aliases_unused(const struct name_table *aliases, bool fingerprint,
			   void (*visit)(void *context, __u64 handle, bool fingerprint, const char *name),
			   void *context)
{
	struct link *link, *following;

	link_each(link, following, &aliases->table.all)
	{
		const struct name *name = container_of(link, struct name, keyed.age);

		if (!name->used)
			visit(context, name->keyed.node.b, fingerprint, name->text);
	}
}

void model_unused_names(const struct model *model,
			void (*visit)(void *context, __u64 handle, bool fingerprint, const char *name), void *context)
{
	aliases_unused(&model->handles, false, visit, context);
	aliases_unused(&model->fingerprints, true, visit, context);
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
	struct process *process = processes_get_late(&model->processes, header->tgid, header->time);
	char *name = strndup(record->text, record->length);
	int error = process && name ? 0 : -ENOMEM;

	if (!error && process != model->processes.others && *name) {
		if (!process->exited)
			error = name_table_add(&model->symbols, process->view.sort_index, process->view.sort_index,
					       record->id, name, strnlen(name, SYMBOL_NAME_MAX), false);
		if (error == -ENOSPC) {
			event_dispatch_lose(&model->events, XPT_LOSS_NAMES, 1, header->time);
			error = 0;
		}
		if (!error)
			error = symbol_use(model, process, record, name);
	}
	free(name);
	return error;
}
