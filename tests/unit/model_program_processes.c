/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/processes.h"

#include "model_records.h"

static const struct model_process *process_event(const struct fixture *f, size_t nth)
{
	const struct seen *seen = seen_nth(f, EVENT_PROCESS, nth);

	return seen ? seen->event.process : NULL;
}

static int tell(struct fixture *f, __u32 tgid, __u64 time, const char *text)
{
	cr_assert_eq(feed_text(f, XPT_RECORD_PROCESS, tgid, time, 0, text), 0);
	return model_flush(f->model);
}

Test(model_program_processes, are_reported_by_a_record)
{
	struct fixture *f = fixture_toy();
	const struct model_process *process;

	cr_assert_eq(tell(f, 11, 10,
			  "{\"name\":\"node\",\"command\":\"node server.js\",\"parent\":1,\"start_time\":12345}"),
		     0);
	process = process_event(f, 0);
	cr_assert_str_eq(process->name, "node");
	cr_assert_str_eq(process->command, "node server.js");
	cr_assert_eq(process->tgid, 11);
	cr_assert_eq(process->parent, 1);
	cr_assert_eq(process->start_time, 12345);
	cr_assert_eq(process->sort_index, 0);
	toy_execute(f, 11, 5, 20, 30);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_PROCESS], 1);
	cr_assert_eq(model_program(f->model, 0)->process, process);
	fixture_free(f);
}

Test(model_program_processes, unknown_ones_have_no_name_until_reported)
{
	struct fixture *f = fixture_toy();

	toy_execute(f, 11, 5, 20, 30);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(seen_nth(f, EVENT_PROCESS, 0)->name, "");
	cr_assert_str_eq(process_event(f, 0)->command, "");
	cr_assert_eq(tell(f, 11, 40, "{\"name\":\"late\"}"), 0);
	cr_assert_str_eq(seen_nth(f, EVENT_PROCESS, 1)->name, "late");
	cr_assert_eq(process_event(f, 1), process_event(f, 0));
	fixture_free(f);
}

Test(model_program_processes, an_identifier_used_again_is_another_process)
{
	struct fixture *f = fixture_toy();

	cr_assert_eq(tell(f, 11, 10, "{\"name\":\"first\",\"start_time\":1}"), 0);
	toy_execute(f, 11, 5, 20, 30);
	cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 11, 0, 40, "first"), 0);
	toy_execute(f, 11, 5, 50, 60);
	cr_assert_eq(tell(f, 11, 70, "{\"name\":\"second\",\"start_time\":2}"), 0);
	cr_assert_eq(model_program_count(f->model), 2);
	cr_assert_str_eq(model_program(f->model, 0)->process->name, "first");
	cr_assert_str_eq(model_program(f->model, 1)->process->name, "second");
	cr_assert_eq(model_program(f->model, 1)->generation, 0);
	cr_assert_eq(tell(f, 11, 80, "{\"name\":\"third\",\"start_time\":3}"), 0);
	toy_execute(f, 11, 5, 90, 95);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_program_count(f->model), 3, "its exit was not seen");
	fixture_free(f);
}

Test(model_program_processes, what_is_reported_after_the_exit_is_about_the_one_that_was)
{
	struct fixture *f = fixture_toy();

	toy_execute(f, 11, 5, 20, 30);
	cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 11, 0, 40, "short"), 0);
	cr_assert_eq(tell(f, 11, 50, "{\"name\":\"short\",\"start_time\":9}"), 0);
	cr_assert_eq(feed_total(f, 11, 0, 0, 5, 60, 3), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_program_count(f->model), 1);
	cr_assert_str_eq(model_program(f->model, 0)->process->name, "short");
	cr_assert_eq(model_program(f->model, 0)->total.calls, 3);
	fixture_free(f);
}

Test(model_program_processes, damaged_text)
{
	static const char *const texts[] = { "", "{", "[1]", "\"x\"" };
	struct fixture *f = fixture_toy();
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cr_assert_eq(tell(f, 11, 10, texts[i]), -EBADMSG, "%s", texts[i]);
	cr_assert_eq(tell(f, 11, 10, "{\"name\":7,\"parent\":-1,\"start_time\":1e99}"), 0);
	cr_assert_str_eq(process_event(f, 0)->name, "");
	cr_assert_eq(process_event(f, 0)->parent, 0);
	cr_assert_eq(process_event(f, 0)->start_time, 0);
	fixture_free(f);
}

Test(model_program_processes, too_many_at_once_are_lumped_together)
{
	struct fixture *f = fixture_toy();
	__u32 i;

	f->quiet = true;
	for (i = 0; i < MODEL_PROCESSES_MAX + 7; i++)
		toy_execute(f, 100 + i, 5, 10 + i, 11 + i);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_PROCESS], MODEL_PROCESSES_MAX);
	cr_assert_eq(f->kinds[EVENT_CALL], MODEL_PROCESSES_MAX + 7);
	cr_assert_eq(model_program_count(f->model), MODEL_PROCESSES_MAX + 1);
	cr_assert_str_eq(model_program(f->model, MODEL_PROCESSES_MAX)->process->name, "(others)");
	cr_assert_eq(model_program(f->model, MODEL_PROCESSES_MAX)->recorded, 7);
	cr_assert_geq(model_lost(f->model, XPT_LOSS_NAMES), 7);
	fixture_free(f);
}
