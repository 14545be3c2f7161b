/* SPDX-License-Identifier: BSD-2-Clause */
/* What records mean to all parts of the model that are neither calls nor events of drivers: counts, tasks, names. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"
#include "base/core/vec.h"
#include "model/core/state.h"

/* ---- what the kernel has counted ---- */

static void count_emit(struct model *model, const struct program *program, __u64 time, bool reading,
		       const struct xpt_program_count *delta)
{
	const struct event event = {
		.kind = EVENT_COUNT,
		.count = { .program = &program->view, .time = time, .reading = reading, .delta = *delta },
	};

	if (!count_is_zero(delta))
		event_dispatch_emit(&model->events, &event);
}

/* One that was not known before its process ended is released like the others of it. */
static void program_settle(struct model *model, struct program *program)
{
	if (!program->process->exited || program->until != PROGRAM_ALIVE)
		return;
	if (programs_release(&model->programs, program, program->process->exited))
		programs_emit(&model->programs, program, program->process->exited, true);
}

/* Takes the counts of a COUNT or TOTAL record. Whether they are new. */
static bool counts_take(struct process *process, struct counting *counting, const struct xpt_record_header *record,
			struct xpt_program_count *total, struct xpt_program_count *delta)
{
	bool taken = true;

	process->counting -= counting_open(counting);
	if (record->kind == XPT_RECORD_COUNT)
		taken = counting_read(counting, (const void *)record, total, delta);
	else
		counting_end(counting, (const void *)record, total, delta);
	process->counting += counting_open(counting);
	return taken;
}

static int program_counts(struct model *model, struct process *process, const struct xpt_record_header *record,
			  const struct xpt_program_key *key, __u64 since)
{
	const struct runtime *runtime = model->functions.runtimes[key->runtime];
	const bool reading = record->kind == XPT_RECORD_COUNT;
	struct program *program = programs_counted(&model->programs, process, runtime, key->handle, since,
						   record->time);
	struct counting *counting, once = {};
	struct xpt_program_count delta;
	int named;

	if (!program)
		return -ENOMEM;
	if (program->others && reading)
		return 0;
	named = program_ask_user(model, program);
	if (program_describe(program, 0))
		programs_emit(&model->programs, program, record->time, false);
	counting = programs_counting(&model->programs, process, runtime->index, key->handle);
	/* A catch-all program has no single handle: no readings are taken for it. */
	if (program->others || !counting)
		counting = &once;
	if (counts_take(process, counting, record, &program->view.total, &delta)) {
		program->view.total_known = true;
		count_emit(model, program, record->time, reading, &delta);
	}
	program_settle(model, program);
	return named < 0 ? -ENOMEM : 0;
}

static int function_counts(struct model *model, struct process *process, const struct xpt_record_header *record,
			   const struct xpt_program_key *key)
{
	struct total *total = totals_get(&model->totals, process, functions_get(&model->functions, key->spec - 1u),
					 record->time);
	struct xpt_program_count delta;

	if (!total)
		return -ENOMEM;
	/* A catch-all total covers several processes: their TOTAL records follow. */
	if (record->kind == XPT_RECORD_COUNT && total->process != process)
		return 0;
	if (counts_take(total->process, &total->counting, record, &total->view.total, &delta))
		total->view.total_known = true;
	return 0;
}

/* Counts come in after a process has exited, too. */
int total_deliver(struct model *model, const struct xpt_record_total *record)
{
	const struct xpt_record_header *header = &record->header;
	struct process *process = processes_get_late(&model->processes, record->key.tgid, header->time);

	if (!process)
		return -ENOMEM;
	if (process->exited)
		process->totalled = true;
	return record->key.spec ? function_counts(model, process, header, &record->key) :
				  program_counts(model, process, header, &record->key, header->time);
}

/* A process that is not known is one that is forgotten, or one that will be known when its next counts come. */
int count_deliver(struct model *model, const struct xpt_record_count *record)
{
	struct process *process = processes_find(&model->processes, record->key.tgid);

	if (!process)
		return 0;
	return record->key.spec ? function_counts(model, process, &record->header, &record->key) :
				  program_counts(model, process, &record->header, &record->key, record->since);
}

/* ---- processes that begin, change and end ---- */

/* The memory of the process is freed, and with it every handle and all that was under way. */
static void process_clear(struct model *model, struct process *process, __u64 time)
{
	async_drop_process(&model->async, process, time);
	call_tree_drop_process(&model->tree, process);
	memory_drop_process(&model->memory, process, time);
	regions_drop_process(&model->regions, process);
	operator_set_drop_process(&model->operators, process);
	keyed_drop_owner(&model->strings, process->view.tgid);
	name_table_drop_owner(&model->symbols, process->view.sort_index);
	keyed_drop_owner(&model->code.loads, process->view.sort_index);
	programs_release_all(&model->programs, process, time);
}

int task_deliver(struct model *model, const struct xpt_record_task *record)
{
	const struct xpt_record_header *header = &record->header;
	char name[XPT_TASK_NAME_LEN + 1] = {};
	struct event event = { .kind = EVENT_TASK };
	struct process *process;
	int error = 0;

	memcpy(name, record->name, XPT_TASK_NAME_LEN);
	if (record->event == XPT_TASK_FORK)
		process = processes_fork(&model->processes, header->tgid, record->other, header->time, name);
	else
		process = processes_get(&model->processes, header->tgid, header->time);
	if (!process)
		return -ENOMEM;
	if (record->event != XPT_TASK_FORK && process != model->processes.others)
		process_clear(model, process, header->time);
	if (record->event == XPT_TASK_EXEC)
		error = processes_exec(&model->processes, process, name);
	if (record->event == XPT_TASK_EXIT) {
		jobs_orphan(&model->jobs, header->tgid, header->time);
		processes_exit(&model->processes, process, header->time);
	}
	event.task.tgid = header->tgid;
	event.task.tid = record->tid;
	event.task.other = record->other;
	event.task.time = header->time;
	event.task.what = (enum xpt_task_event)record->event;
	event.task.code = record->code;
	event.task.name = name;
	event_dispatch_emit(&model->events, &event);
	return error;
}

int model_make_room(struct model *model, __u64 time)
{
	struct process *process, *following;
	int error;

	programs_make_room(&model->programs, time);
	if (!processes_mark(&model->processes, time))
		return 0;
	link_for_each_safe(process, following, &model->processes.gone, link) {
		if (!process->forgotten)
			continue;
		process_clear(model, process, time);
		stacks_drop_process(&model->stacks, process);
	}
	error = regions_forget_processes(&model->regions, time);
	totals_forget_processes(&model->totals);
	jobs_forget_processes(&model->jobs);
	operator_set_forget_processes(&model->operators);
	programs_forget_processes(&model->programs);
	processes_forget(&model->processes);
	return error;
}

/* ---- what was there before ---- */

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

/* ---- what is traced, as the budget permits ---- */

#define FUNCTION_NAME_MAX 1024 /* bytes kept */

static const char *const action_names[BUDGET_ACTIONS] = {
	[BUDGET_SAMPLING] = "sampling",
	[BUDGET_OPERATORS] = "operators",
	[BUDGET_SITE] = "site",
};

const char *budget_action_name(enum budget_action action)
{
	return action_names[action];
}

/* Numbers of the parser are rounded beyond 2^53. */
static __u64 handle_of(const struct xpt_record_text *record)
{
	struct json_part text = { record->text, record->length };
	char digits[24] = "";

	if (json_is_object(text.text, text.length))
		text = json_member(text, "handle");
	if (text.length && text.length < sizeof(digits))
		memcpy(digits, text.text, text.length);
	return strtoull(digits, NULL, 10);
}

/* The latest with the handle: it may have been released since it ran. */
static const char *program_name_of(const struct model *model, const struct xpt_record_text *record, const cJSON *object)
{
	const __u64 handle = handle_of(record);
	const char *name = NULL;
	__s64 runtime;

	if (json_integer_get(object, "runtime", 0, XPT_RUNTIME_MAX - 1, &runtime))
		return NULL;
	for (size_t i = 0; i < model->programs.count; i++) {
		const struct model_program *program = &model->programs.all[i]->view;

		if (program->handle == handle && program->runtime_index == (unsigned int)runtime &&
		    program->process->tgid == record->header.tgid)
			name = program->name;
	}
	return name;
}

/* Percent; what is no amount of anything is 0. */
static double percent(const cJSON *object, const char *key)
{
	const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsNumber(value) && value->valuedouble > 0 && value->valuedouble < 1e9 ? value->valuedouble : 0;
}

/* change->name is still that of the object or program. */
static int budget_parse(const struct model *model, const struct xpt_record_text *record, const cJSON *object,
			struct model_budget_change *change)
{
	const cJSON *on = cJSON_GetObjectItemCaseSensitive(object, "on");
	__s64 every = 1, programs = 1, since = 0;
	int error = 0;

	if (change->action == BUDGET_SAMPLING) {
		error = json_integer_get(object, "every", 1, UINT32_MAX, &every);
		json_integer_get(object, "programs", 0, UINT32_MAX, &programs);
		change->name = program_name_of(model, record, object);
	} else if (!cJSON_IsBool(on)) {
		error = -EBADMSG;
	}
	if (change->action == BUDGET_SITE) {
		change->name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "function"));
		if (!change->name || !*change->name)
			error = -EBADMSG;
	}
	json_integer_get(object, "since", 0, 1ll << 62, &since);
	change->on = cJSON_IsTrue(on);
	change->every = (unsigned int)every;
	change->programs = (unsigned int)programs;
	change->since = change->on && (__u64)since < change->time ? (__u64)since : 0;
	change->cost = percent(object, "cost");
	change->budget = percent(object, "budget");
	return error;
}

static int budget_keep(struct model *model, const struct model_budget_change *change)
{
	struct model_budget_change kept = *change;

	if (model->budget.count == MODEL_BUDGET_CHANGES_MAX) {
		model->budget.left_out++;
		return 0;
	}
	if (change->name) {
		kept.name = strndup(change->name, text_cut(change->name, strlen(change->name), FUNCTION_NAME_MAX));
		if (!kept.name)
			return -ENOMEM;
	}
	if (!vec_push(model->budget.all, model->budget.count, kept))
		return 0;
	free((char *)kept.name);
	return -ENOMEM;
}

/* An action that is not known is one of a newer version. */
int budget_deliver(struct model *model, const struct xpt_record_text *record, const cJSON *object)
{
	const char *action = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "action"));
	struct model_budget_change change = { .time = record->header.time, .tgid = record->header.tgid };
	const struct event event = { .kind = EVENT_BUDGET, .budget = &change };
	int error;

	if (!action)
		return -EBADMSG;
	while (change.action < BUDGET_ACTIONS && strcmp(action, action_names[change.action]))
		change.action++;
	if (change.action == BUDGET_ACTIONS)
		return 0;
	error = budget_parse(model, record, object, &change);
	if (error)
		return error;
	error = budget_keep(model, &change);
	event_dispatch_emit(&model->events, &event);
	return error;
}

/* ---- names by handle or fingerprint ---- */

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

	snprintf(name, sizeof(name), "%.32s %.32s %08x", program->runtime->name, program_noun(program), fingerprint);
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
	const struct name *name;

	link_for_each(name, &aliases->table.all, keyed.age) {
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
