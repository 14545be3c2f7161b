/* SPDX-License-Identifier: BSD-2-Clause */
#include "model_records.h"

Test(model_core_records_tasks, fork_exec_exit)
{
	struct fixture *f = fixture_toy();
	const struct event_task *task;

	cr_assert_eq(feed_text(f, XPT_RECORD_PROCESS, 1, 5, 0, "{\"name\":\"sh\",\"command\":\"sh -c x\"}"), 0);
	cr_assert_eq(feed_task(f, XPT_TASK_FORK, 2, 1, 10, "sh"), 0);
	cr_assert_eq(feed_task(f, XPT_TASK_EXEC, 2, 0, 20, "python3"), 0);
	cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 2, 0, 30, "python3"), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_TASK], 3);
	task = &seen_nth(f, EVENT_TASK, 0)->event.task;
	cr_assert_eq(task->what, XPT_TASK_FORK);
	cr_assert_eq(task->tgid, 2);
	cr_assert_eq(task->other, 1);
	cr_assert_eq(task->time, 10);
	cr_assert_str_eq(seen_nth(f, EVENT_TASK, 1)->name, "python3");
	/* first seen, forked, renamed */
	cr_assert_eq(f->kinds[EVENT_PROCESS], 3);
	cr_assert_str_eq(seen_nth(f, EVENT_PROCESS, 1)->name, "sh");
	cr_assert_eq(seen_nth(f, EVENT_PROCESS, 1)->event.process->parent, 1);
	cr_assert_str_eq(seen_nth(f, EVENT_PROCESS, 2)->name, "python3");
	cr_assert_str_eq(seen_nth(f, EVENT_PROCESS, 2)->event.process->command, "", "the old one is no longer true");
	fixture_free(f);
}

Test(model_core_records_tasks, a_name_without_a_terminator)
{
	struct fixture *f = fixture_toy();

	cr_assert_eq(feed_task(f, XPT_TASK_FORK, 2, 1, 10, "0123456789abcdefXYZ"), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(seen_nth(f, EVENT_TASK, 0)->name, "0123456789abcdef");
	fixture_free(f);
}

Test(model_core_records_tasks, threads_are_handed_on)
{
	struct fixture *f = fixture_toy();

	cr_assert_eq(feed_text(f, XPT_RECORD_THREAD, 1, 10, 77, "worker"), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(seen_nth(f, EVENT_THREAD, 0)->name, "worker");
	cr_assert_eq(seen_nth(f, EVENT_THREAD, 0)->event.thread.tgid, 1);
	cr_assert_eq(seen_nth(f, EVENT_THREAD, 0)->event.thread.tid, 77);
	fixture_free(f);
}

Test(model_core_records_tasks, exits_without_end_leave_nothing_behind)
{
	struct fixture *f = fixture_toy();
	__u32 i;

	f->quiet = true;
	for (i = 0; i < 3 * MODEL_PROCESSES_MAX; i++) {
		cr_assert_eq(feed_task(f, XPT_TASK_FORK, 10 + i, 1, 10 + i * 10, "a"), 0);
		CALL_1(f, TOY_ENQUEUE, 10 + i, 1, 11 + i * 10, 12 + i * 10, 4, U(5), U(1), U(2), U(0));
		CALL_1(f, TOY_ALLOC, 10 + i, 1, 13 + i * 10, 14 + i * 10, 2, U(8), U(0x1000));
		feed_string(f, TOY_LOAD, 0, 10 + i, 1, 15 + i * 10, "x", 1);
		cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 10 + i, 0, 16 + i * 10, "a"), 0);
	}
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_NAMES), 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_UNPAIRED), 3 * MODEL_PROCESSES_MAX);
	/* per process: depth up and down, memory up and down */
	cr_assert_eq(f->kinds[EVENT_COUNTER], 4 * 3 * MODEL_PROCESSES_MAX);
	fixture_free(f);
}
