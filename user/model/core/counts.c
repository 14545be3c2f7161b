/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel has counted: exact, whatever was left out or lost. */
#include <errno.h>

#include "model/core/state.h"

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

static int program_total(struct model *model, struct process *process, const struct xpt_record_total *record)
{
	const struct runtime *runtime = model->functions.runtimes[record->key.runtime];
	const __u64 time = record->header.time;
	struct program *program = programs_counted(&model->programs, process, runtime, record->key.handle, time, time);
	struct counting *counting, once = {};
	struct xpt_program_count delta;
	int named;

	if (!program)
		return -ENOMEM;
	named = program_ask_user(model, program);
	if (program_describe(program, 0))
		programs_emit(&model->programs, program, time, false);
	counting = programs_counting(&model->programs, process, runtime->index, record->key.handle);
	/* A catch-all program has no single handle: no readings are taken for it. */
	if (program->others || !counting)
		counting = &once;
	process->counting -= counting_open(counting);
	counting_end(counting, record, &program->view.total, &delta);
	process->counting += counting_open(counting);
	program->view.total_known = true;
	count_emit(model, program, time, false, &delta);
	program_settle(model, program);
	return named < 0 ? -ENOMEM : 0;
}

static int program_count(struct model *model, struct process *process, const struct xpt_record_count *record)
{
	const struct runtime *runtime = model->functions.runtimes[record->key.runtime];
	const __u64 handle = record->key.handle, time = record->header.time;
	struct program *program = programs_counted(&model->programs, process, runtime, handle, record->since, time);
	struct xpt_program_count delta;
	struct counting *counting;
	bool taken;
	int named;

	if (!program)
		return -ENOMEM;
	if (program->others)
		return 0;
	named = program_ask_user(model, program);
	if (program_describe(program, 0))
		programs_emit(&model->programs, program, time, false);
	counting = programs_counting(&model->programs, process, runtime->index, handle);
	process->counting -= counting_open(counting);
	taken = counting_read(counting, record, &program->view.total, &delta);
	process->counting += counting_open(counting);
	if (taken) {
		program->view.total_known = true;
		count_emit(model, program, time, true, &delta);
	}
	program_settle(model, program);
	return named < 0 ? -ENOMEM : 0;
}

/* Counts come in after a process has exited, too. */
int total_deliver(struct model *model, const struct xpt_record_total *record)
{
	struct process *process = processes_find(&model->processes, record->key.tgid);
	const __u64 time = record->header.time;
	struct xpt_program_count delta;
	struct total *total;

	if (!process)
		process = processes_get(&model->processes, record->key.tgid, time);
	if (!process)
		return -ENOMEM;
	if (process->exited)
		process->totalled = true;
	if (!record->key.spec)
		return program_total(model, process, record);
	total = totals_get(&model->totals, process, functions_get(&model->functions, record->key.spec - 1u), time);
	if (!total)
		return -ENOMEM;
	process = total->process;
	process->counting -= counting_open(&total->counting);
	counting_end(&total->counting, record, &total->view.total, &delta);
	process->counting += counting_open(&total->counting);
	total->view.total_known = true;
	return 0;
}

/* A process that is not known is one that is forgotten, or one that will be known when its next counts come. */
int count_deliver(struct model *model, const struct xpt_record_count *record)
{
	struct process *process = processes_find(&model->processes, record->key.tgid);
	struct xpt_program_count delta;
	struct total *total;

	if (!process)
		return 0;
	if (!record->key.spec)
		return program_count(model, process, record);
	total = totals_get(&model->totals, process, functions_get(&model->functions, record->key.spec - 1u),
			   record->header.time);
	if (!total)
		return -ENOMEM;
	/* A catch-all total covers several processes: their TOTAL records follow. */
	if (total->process != process)
		return 0;
	process->counting -= counting_open(&total->counting);
	if (counting_read(&total->counting, record, &total->view.total, &delta))
		total->view.total_known = true;
	process->counting += counting_open(&total->counting);
	return 0;
}
