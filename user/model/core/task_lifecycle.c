/* SPDX-License-Identifier: BSD-2-Clause */
/* How processes begin, change and end, and what of them is forgotten when they are too many. */
#include <errno.h>
#include <string.h>

#include "model/core/state.h"

/* The memory of the process is freed, and with it every handle and all that was under way. */
static void process_clear(struct model *model, struct process *process, __u64 time)
{
	async_drop_process(&model->async, process, time);
	call_tree_drop_process(&model->tree, process);
	memory_drop_process(&model->memory, process, time);
	regions_drop_process(&model->regions, process);
	operator_set_drop_process(&model->operators, process);
	strings_drop(&model->strings, process->view.tgid);
	name_table_drop_owner(&model->symbols, process->view.sort_index);
	code_objects_drop_process(&model->code, process);
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
	if (record->event == XPT_TASK_EXIT)
		processes_exit(&model->processes, process, header->time);
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
	struct link *link, *following;
	struct process *process;
	int error;

	programs_make_room(&model->programs, time);
	if (!processes_mark(&model->processes, time))
		return 0;
	link_each(link, following, &model->processes.gone)
	{
		process = container_of(link, struct process, link);
		if (process->forgotten)
			process_clear(model, process, time);
	}
	error = regions_forget_processes(&model->regions, time);
	totals_forget_processes(&model->totals);
	jobs_forget_processes(&model->jobs);
	operator_set_forget_processes(&model->operators);
	programs_forget_processes(&model->programs);
	processes_forget(&model->processes);
	return error;
}
