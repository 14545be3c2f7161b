/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of what events refer to, and of what the model has at the end. */
#include <errno.h>
#include <stdlib.h>

#include "describe/runtime/description.h"
#include "model/stats/statistics.h"
#include "report/sql/rows.h"
#include "report/table/rows.h"

/* True the first time. Without memory always: a row is replaced by the same one. */
static bool first_time(struct sql_seen *seen, __u64 number)
{
	const size_t word = number / 64;
	const __u64 bit = 1ull << number % 64;

	if (word >= seen->count) {
		size_t count = word + word / 2 + 16;
		__u64 *words = reallocarray(seen->words, count, sizeof(*words));

		if (!words)
			return true;
		memset(words + seen->count, 0, (count - seen->count) * sizeof(*words));
		*seen = (struct sql_seen){ words, count };
	}
	if (seen->words[word] & bit)
		return false;
	seen->words[word] |= bit;
	return true;
}

static struct sql_value text_or(const char *text, const char *otherwise)
{
	return (struct sql_value){ .kind = SQL_KIND_TEXT, .text = text && *text ? text : otherwise };
}

/* ---- functions, processes, programs ---- */

struct sql_value sql_function(struct sql *sql, const struct model_function *function)
{
	if (!function)
		return SQL_NOTHING;
	if (first_time(&sql->functions, function->index))
		SQL_INSERT(&sql->database, SQL_FUNCTIONS, sql_number(function->index + 1),
			   text_or(function->runtime, ""), text_or(function->name, ""),
			   sql_text(role_name(function->role)));
	return sql_number(function->index + 1);
}

static __s64 process_row(const struct model_process *process)
{
	return (__s64)process->sort_index + 1;
}

void sql_put_process(struct sql *sql, const struct model_process *process)
{
	first_time(&sql->processes, process->sort_index);
	SQL_INSERT(&sql->database, SQL_PROCESSES, sql_number(process_row(process)), sql_number(process->tgid),
		   sql_known(process->parent), sql_known(process->start_time), sql_text(process->name),
		   sql_text(process->command));
	if (process->tgid)
		sql_note_process(&sql->database, process->tgid, process_row(process));
}

static struct sql_value known_process(struct sql *sql, const struct model_process *process)
{
	if (first_time(&sql->processes, process->sort_index)) {
		sql_put_process(sql, process);
	}
	return sql_number(process_row(process));
}

void sql_put_program(struct sql *sql, const struct model_program *program)
{
	const struct xpt_program_count *total = &program->total;
	const bool known = program->total_known;

	first_time(&sql->programs, program->id);
	SQL_INSERT(&sql->database, SQL_PROGRAMS, sql_number(program->id), known_process(sql, program->process),
		   text_or(program->runtime, ""), text_or(program->name, ""), sql_number(program->named),
		   sql_text(name_source_name(program->name_source)),
		   program->role ? sql_text(role_name(program->role)) : SQL_NOTHING, sql_known(program->handle),
		   sql_number(program->generation), sql_time(sql, program->loaded), sql_time(sql, program->released),
		   sql_known(program->size), sql_number_if(program->has_core, program->core),
		   sql_number_if(known, (__s64)total->calls), sql_number_if(known, (__s64)total->left_out),
		   sql_number_if(known, (__s64)total->lost), sql_number((__s64)program->recorded),
		   sql_number((__s64)program->errors), sql_number((__s64)program->pending),
		   sql_number((__s64)program->unended));
}

struct sql_value sql_program(struct sql *sql, const struct model_program *program)
{
	if (!program)
		return SQL_NOTHING;
	if (first_time(&sql->programs, program->id))
		sql_put_program(sql, program);
	return sql_number(program->id);
}

/* ---- operators ---- */

static void put_operator_name(struct sql *sql, const struct model_operator *op)
{
	first_time(&sql->operators, op->id);
	SQL_INSERT(&sql->database, SQL_OPERATOR_NAMES, sql_number(op->id), known_process(sql, op->process),
		   sql_program(sql, op->program), text_or(op->label, "operator"), text_or(op->type, "operator"),
		   sql_number(op->number), sql_text(op->name), sql_text(op->class), sql_text(op->provider),
		   sql_number_if(op->index >= 0, op->index), sql_number((__s64)op->recorded),
		   sql_number((__s64)op->self_time), sql_known(op->tracing), sql_number((__s64)op->launches),
		   sql_number((__s64)op->jobs), sql_number((__s64)op->failed_jobs), sql_number((__s64)op->device_time));
}

struct sql_value sql_operator(struct sql *sql, const struct model_operator *op)
{
	if (!op)
		return SQL_NOTHING;
	if (first_time(&sql->operators, op->id))
		put_operator_name(sql, op);
	return sql_number(op->id);
}

/* ---- inferences that operators and jobs are joined with, which may come before them ---- */

struct held_inference {
	struct keyed keyed; /* a: process and program; b: begin */
	__s64 id;
	bool put; /* its row is there */
};

static void released(void *context, struct keyed *entry)
{
	struct held_inference *held = container_of(entry, struct held_inference, keyed);
	struct sql *sql = context;

	sql->unjoined |= !held->put;
	free(held);
}

static struct held_inference *held_inference(struct sql *sql, __u32 tgid, const struct model_program *program,
					     __u64 start)
{
	const __u64 key = (__u64)tgid << 32 | program->id;
	struct keyed *entry = keyed_find(&sql->inferences, key, start);
	struct held_inference *held;

	if (entry)
		return container_of(entry, struct held_inference, keyed);
	held = calloc(1, sizeof(*held));
	if (!held || keyed_add(&sql->inferences, &held->keyed, 0, key, start)) {
		free(held);
		sql->database.error = sql->database.error ?: -ENOMEM;
		return NULL;
	}
	held->id = ++sql->next_inference;
	return held;
}

struct sql_value sql_inference(struct sql *sql, __u32 tgid, const struct model_program *program, __u64 start)
{
	struct held_inference *held = program && start ? held_inference(sql, tgid, program, start) : NULL;

	return held ? sql_number(held->id) : SQL_NOTHING;
}

__s64 sql_take_inference(struct sql *sql, __u32 tgid, const struct model_program *program, __u64 start)
{
	struct held_inference *held = held_inference(sql, tgid, program, start);

	if (!held || held->put) /* of two that begin together the first has what lies in them */
		return ++sql->next_inference;
	held->put = true;
	return held->id;
}

/* ---- devices and counters ---- */

static void put_queue(struct sql *sql, const struct model_queue *queue)
{
	first_time(&sql->queues, queue->id);
	SQL_INSERT(&sql->database, SQL_QUEUES, sql_number(queue->id),
		   sql_device(&sql->database, queue->driver, queue->device), text_or(queue->engine, ""),
		   sql_number((__s64)queue->jobs), sql_number((__s64)queue->failed),
		   sql_number((__s64)queue->target_jobs), sql_time(sql, queue->first), sql_time(sql, queue->last),
		   sql_number((__s64)queue->busy_time), sql_number((__s64)queue->target_time));
}

struct sql_value sql_queue(struct sql *sql, const struct model_queue *queue)
{
	if (!queue)
		return SQL_NOTHING;
	if (first_time(&sql->queues, queue->id))
		put_queue(sql, queue);
	return sql_number(queue->id);
}

static void put_counter(struct sql *sql, const struct model_counter *counter)
{
	const bool known = counter->emitted > 0;

	first_time(&sql->counters, counter->index);
	SQL_INSERT(&sql->database, SQL_COUNTERS, sql_number(counter->index + 1), text_or(counter->name, ""),
		   sql_text(counter->unit), sql_text(counter->description), sql_text(counter->source),
		   sql_text(model_counter_kind_name(counter->kind)), sql_text(counter->of),
		   sql_number((__s64)counter->emitted), known ? sql_real(counter->least) : SQL_NOTHING,
		   known ? sql_real(counter->most) : SQL_NOTHING, known ? sql_real(counter->mean) : SQL_NOTHING,
		   known && counter->kind == MODEL_COUNTER_SUM ? sql_real(counter->total) : SQL_NOTHING);
}

struct sql_value sql_counter(struct sql *sql, const struct model_counter *counter)
{
	if (!counter)
		return SQL_NOTHING;
	if (first_time(&sql->counters, counter->index))
		put_counter(sql, counter);
	return sql_number(counter->index + 1);
}

/* ---- stacks: modules, frames and stacks of the model live as long as it, and are few ---- */

struct row_of {
	struct map_node node; /* by address */
	__s64 id;
};

/* The row of an object; *made: its id has just been given. 0: no memory. */
static __s64 row_of(struct sql *sql, struct map *map, const void *object, __s64 *next, bool *made)
{
	struct map_node *node = map_find(map, (__u64)(unsigned long)object, 0);
	struct row_of *row;

	*made = false;
	if (node)
		return container_of(node, struct row_of, node)->id;
	row = calloc(1, sizeof(*row));
	if (!row || map_add(map, &row->node, (__u64)(unsigned long)object, 0)) {
		free(row);
		sql->database.error = sql->database.error ?: -ENOMEM;
		return 0;
	}
	*made = true;
	return row->id = ++*next;
}

static __s64 put_frame(struct sql *sql, const struct model_frame *frame)
{
	const struct model_module *module = frame->module;
	bool made, made_module = false;
	__s64 id = row_of(sql, &sql->frames, frame, &sql->next_frame, &made), module_id = 0;

	if (!made)
		return id;
	if (module)
		module_id = row_of(sql, &sql->modules, module, &sql->next_module, &made_module);
	if (made_module)
		SQL_INSERT(&sql->database, SQL_MODULES, sql_number(module_id), sql_text(module->path),
			   sql_text(module->build_id));
	SQL_INSERT(&sql->database, SQL_FRAMES, sql_number(id), sql_text(frame_kind_name(frame->kind)),
		   sql_text(frame->function), sql_text(frame->file), sql_known(frame->line), sql_known(module_id),
		   sql_number_if(frame->has_offset, (__s64)frame->offset), sql_number(frame->inlined));
	return id;
}

void sql_put_stack(struct sql *sql, const struct event_stack *event)
{
	static const char *const reasons[] = {
		[XPT_STACK_CALL] = "call", [XPT_STACK_OFF_CPU] = "off_cpu", [XPT_STACK_ON_CPU] = "on_cpu"
	};
	const struct model_stack *stack = event->stack;
	struct sql_database *database = &sql->database;
	bool made;
	__s64 id = row_of(sql, &sql->stacks, stack, &sql->next_stack, &made);

	if (made)
		SQL_INSERT(database, SQL_STACKS, sql_number(id), sql_number(stack->partial));
	for (size_t i = 0; made && i < stack->count; i++)
		SQL_INSERT(database, SQL_STACK_FRAMES, sql_number(id), sql_number((__s64)i),
			   sql_number(put_frame(sql, stack->frames[i])));
	SQL_INSERT(database, SQL_SAMPLES, SQL_NOTHING, sql_number(id), sql_thread(database, event->tgid, event->tid),
		   sql_time(sql, event->time),
		   text_or(event->reason < sizeof(reasons) / sizeof(reasons[0]) ? reasons[event->reason] : NULL,
			   "other"),
		   sql_number((__s64)event->weight), sql_function(sql, event->function),
		   sql_program(sql, event->program), sql_operator(sql, event->op), sql_time(sql, event->call_start),
		   sql_known(event->duration), sql_number_if(event->device_time != 0, (__s64)event->device_time));
}

/* ---- at the end ---- */

static void put_recording(struct sql *sql, const struct model *model)
{
	const struct recording_info *info = sql->info;
	const char *end = model_end_text(model);
	struct summary_closing closing;
	int error = summary_closing_read(model, &closing);

	if (error) {
		sql->database.error = sql->database.error ?: error;
		return;
	}
	SQL_INSERT(&sql->database, SQL_RECORDING, sql_number(1), sql_number(SQL_SCHEMA_VERSION),
		   sql_text(info->version), sql_text(info->host), sql_text(info->kernel), sql_text(info->machine),
		   sql_text(info->boot_id), sql_text(info->command), sql_number(info->cpus),
		   sql_number((__s64)info->monotonic_time), sql_number((__s64)info->realtime),
		   sql_time(sql, model_first_time(model)), sql_time(sql, model_last_time(model)),
		   sql_number(end != NULL), closing.known ? sql_text(closing.stopped_by) : SQL_NOTHING,
		   sql_known((__u64)closing.duration), sql_number_if(closing.known, (__s64)closing.calls),
		   sql_number_if(closing.known, (__s64)closing.cost), sql_known((__u64)closing.collector_cpu),
		   sql_known((__u64)closing.collector_memory), sql_text(end));
}

static void put_losses(struct sql *sql, const struct model *model)
{
	for (unsigned int cause = 0; cause < XPT_LOSS_MAX; cause++) {
		const char *name = loss_name(cause);

		if (name && *name && model_lost(model, cause))
			SQL_INSERT(&sql->database, SQL_LOSSES, sql_text(name), text_or(loss_description(cause), name),
				   sql_number((__s64)model_lost(model, cause)));
	}
}

static void put_code_objects(struct sql *sql, const struct model *model)
{
	for (size_t i = 0; i < model_code_object_count(model); i++) {
		const struct model_code_object *object = model_code_object(model, i);

		SQL_INSERT(&sql->database, SQL_CODE_OBJECTS, SQL_NOTHING, text_or(object->kind, ""),
			   sql_text(object->machine), sql_text(object->name), sql_text(object->uri),
			   sql_text(object->sha256), sql_text(object->error), sql_known(object->size),
			   sql_number((__s64)object->kernels), sql_number((__s64)object->functions),
			   sql_number((__s64)object->loads), sql_number((__s64)object->unloads),
			   sql_number((__s64)object->incomplete));
	}
}

void sql_put_objects(struct sql *sql, const struct model *model)
{
	for (size_t i = 0; i < model_program_count(model); i++)
		sql_put_program(sql, model_program(model, i));
	for (size_t i = 0; i < model_operator_count(model); i++)
		put_operator_name(sql, model_operator(model, i));
	for (size_t i = 0; i < model_queue_count(model); i++)
		put_queue(sql, model_queue(model, i));
	for (size_t i = 0; i < model_counter_count(model); i++)
		put_counter(sql, model_counter(model, i));
	put_code_objects(sql, model);
	put_losses(sql, model);
	put_recording(sql, model);
	keyed_free(&sql->inferences);
	if (sql->unjoined)
		sql_run(&sql->database,
			"UPDATE operators SET inference = NULL WHERE inference IS NOT NULL AND inference NOT IN "
			"(SELECT id FROM inferences);"
			"UPDATE jobs SET inference = NULL WHERE inference IS NOT NULL AND inference NOT IN "
			"(SELECT id FROM inferences);");
}

void sql_objects_init(struct sql *sql)
{
	keyed_init(&sql->inferences, SQL_INFERENCES_HELD, released, sql);
}

static void free_rows(struct map *map)
{
	for (size_t i = 0; map->count && i < (size_t)1 << map->bits; i++) {
		while (map->buckets[i]) {
			struct map_node *node = map->buckets[i];

			map->buckets[i] = node->next;
			free(container_of(node, struct row_of, node));
		}
	}
	map_free(map);
}

void sql_objects_free(struct sql *sql)
{
	struct sql_seen *const seen[] = { &sql->functions, &sql->processes, &sql->programs,
					  &sql->operators, &sql->queues,    &sql->counters };

	keyed_free(&sql->inferences);
	free_rows(&sql->stacks);
	free_rows(&sql->frames);
	free_rows(&sql->modules);
	for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
		free(seen[i]->words);
}
