/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of events and of what the model knows, shared by the files of this folder. */
#ifndef XPT_REPORT_SQL_ROWS_H
#define XPT_REPORT_SQL_ROWS_H

#include "base/core/hashmap.h"
#include "model/core/model.h"
#include "record/recording.h"
#include "report/sql/database.h"

#define SQL_INFERENCES_HELD 16384 /* that operators and jobs can be joined with */

/* One bit a number: whether its row is there. */
struct sql_seen {
	__u64 *words;
	size_t count;
};

struct sql {
	struct sql_database database;
	const struct recording_info *info;
	struct sql_seen functions, processes, programs, operators, queues, counters;
	struct keyed_table inferences; /* struct held_inference, by process, program and begin */
	__s64 next_inference;
	bool unjoined; /* rows have the id of an inference that has not come */
	struct map stacks, frames, modules;
	__s64 next_stack, next_frame, next_module;
};

/* ns since the recording began; may be negative. time 0: nothing. */
static inline struct sql_value sql_time(const struct sql *sql, __u64 time)
{
	return sql_number_if(time != 0, (__s64)(time - sql->info->monotonic_time));
}

/* Their rows, made when they are not there. NULL: nothing. */
struct sql_value sql_function(struct sql *sql, const struct model_function *function);
struct sql_value sql_program(struct sql *sql, const struct model_program *program);
struct sql_value sql_operator(struct sql *sql, const struct model_operator *op);
struct sql_value sql_queue(struct sql *sql, const struct model_queue *queue);
struct sql_value sql_counter(struct sql *sql, const struct model_counter *counter);

/* A row that is made, or replaced by what is known now. */
void sql_put_process(struct sql *sql, const struct model_process *process);
void sql_put_program(struct sql *sql, const struct model_program *program);

/* The inference of a process and program with this begin: the id that it has, or will have. start 0: nothing. */
struct sql_value sql_inference(struct sql *sql, __u32 tgid, const struct model_program *program, __u64 start);
/* Its row is about to be made: the id. */
__s64 sql_take_inference(struct sql *sql, __u32 tgid, const struct model_program *program, __u64 start);

void sql_put_stack(struct sql *sql, const struct event_stack *event);

/* All that the model has at the end. */
void sql_put_objects(struct sql *sql, const struct model *model);
void sql_objects_init(struct sql *sql);
void sql_objects_free(struct sql *sql);

#endif
