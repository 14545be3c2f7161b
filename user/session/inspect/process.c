/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/inspect/process.h"

#include <stdlib.h>
#include <string.h>

static void set_string(char **string, const char *value)
{
	char *copy;

	if (*string && !strcmp(*string, value))
		return;
	copy = strdup(value);
	if (!copy)
		return;
	free(*string);
	*string = copy;
}

void inspect_process_rename(struct inspect_process *process, const struct model_process *view)
{
	set_string(&process->name, view->name);
	set_string(&process->command, view->command);
}

struct inspect_process *inspect_process_create(const struct model_process *view, unsigned int wanted, __u64 now)
{
	struct inspect_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->tgid = view->tgid;
	process->start_time = view->start_time;
	process->due = now;
	process->every = INSPECT_READ_EVERY;
	inspect_process_rename(process, view);
	process->open = wanted && !usage_open(&process->source, view->tgid, view->start_time);
	if (!process->name || !process->command) {
		inspect_process_free(process);
		return NULL;
	}
	return process;
}

void inspect_process_free(struct inspect_process *process)
{
	if (!process)
		return;
	if (process->open)
		usage_close(&process->source);
	for (unsigned int i = 0; i < process->failed_count; i++)
		free(process->failed_files[i]);
	folder_close(process->folder);
	free(process->rows);
	free(process->name);
	free(process->command);
	free(process);
}

void inspect_process_failed(struct inspect_process *process, const char *path)
{
	const char *name = strrchr(path, '/');
	char *copy = strdup(name ? name + 1 : path);

	if (copy && process->failed_count < INSPECT_FAILED_MAX)
		process->failed_files[process->failed_count++] = copy;
	else
		free(copy);
}

/* Bounds the number of rows, however long it takes. */
static void thin(struct inspect_process *process)
{
	for (size_t i = 0; i < process->count / 2; i++)
		process->rows[i] = process->rows[2 * i];
	process->count /= 2;
	process->every *= 2;
}

static struct process_usage *add_row(struct inspect_process *process)
{
	size_t room = process->room ? 2 * process->room : 64;
	struct process_usage *more;

	if (process->count == INSPECT_ROWS_MAX)
		thin(process);
	if (process->count == process->room) {
		more = reallocarray(process->rows, room, sizeof(*more));
		if (!more)
			return NULL;
		process->rows = more;
		process->room = room;
	}
	return &process->rows[process->count];
}

void inspect_process_read(struct inspect_process *process, unsigned int wanted, __u64 now)
{
	struct process_usage *row;

	if (!process->open || now < process->due)
		return;
	row = add_row(process);
	if (!row)
		return;
	if (usage_read(&process->source, wanted, row)) {
		usage_close(&process->source);
		process->open = false;
		return;
	}
	process->count++;
	process->due += process->every;
	if (process->due <= now)
		process->due = now + process->every;
}
