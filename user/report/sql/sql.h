/* SPDX-License-Identifier: BSD-2-Clause */
/* A SQLite database of what a model delivers: a row an inference, call, job and so on. Schema: SCHEMA.md. */
#ifndef XPT_REPORT_SQL_SQL_H
#define XPT_REPORT_SQL_SQL_H

#include "base/core/log.h"
#include "model/core/model.h"
#include "record/recording.h"

struct sql;

/*
 * Before the model's first record: adds a sink and asks for stacks. path "-": standard output; a pipe or device gets the file at the end.
 * log and path must outlive the result. -ENOMEM, -ENOSPC, errors of open() (reported).
 */
int sql_open(const struct log *log, const char *path, const struct recording_info *info, struct model *model,
	     struct sql **result);
/*
 * Behind the last record: adds what the model has at the end, makes the indices, and gives the file its name. error: why it is given up
 * instead; then nothing is left of it. Frees. 0 or the first error.
 */
int sql_close(struct sql *sql, const struct model *model, int error);

#endif
