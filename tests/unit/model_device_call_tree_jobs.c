/* SPDX-License-Identifier: BSD-2-Clause */
#include "model_call_tree.h"

Test(model_device_call_tree_jobs, an_inference_with_its_six_times)
{
	struct fixture *f = fixture_driver();
	const struct model_device_times *times;
	const struct model_program *program;

	job(f, 1, 120, 140, 180);
	cr_assert_eq(feed_ioctl(f, 0, 1, 7, SUBMIT_IOCTL, 110, 130, 0), 0);
	cr_assert_eq(feed_ioctl(f, 0, 1, 7, WAIT_IOCTL, 135, 190, 0), 0);
	call_at(f, TOY_EXECUTE, 7, 0, false, 5, 100, 200);
	cr_assert_eq(model_flush(f->model), 0);
	times = &call_nth(f, 0)->device;
	cr_assert_eq(times->submit_begins, 110);
	cr_assert_eq(times->submit_ends, 130);
	cr_assert_eq(times->runs, 140);
	cr_assert_eq(times->done, 180);
	cr_assert_eq(times->jobs, 1);
	cr_assert_eq(times->unfinished, 0);
	cr_assert_eq(times->failed, 0);
	cr_assert_eq(times->device_time, 40);
	cr_assert_eq(times->queue_time, 20);
	cr_assert_eq(times->busy_time, 40);
	cr_assert_eq(f->kinds[EVENT_JOB], 1);
	cr_assert_gt(position(f, EVENT_JOB, 0), position(f, EVENT_CALL, 0), "the call is known by then");
	EXPECT_TIMES(job_nth(f, 0), 120, 140, 180);
	cr_assert_eq(job_nth(f, 0)->call_start, 100);
	program = toy_program(f, 1, 5, 0);
	cr_assert_eq(job_nth(f, 0)->program, program);
	cr_assert_eq(program->jobs, 1);
	cr_assert_eq(program->failed_jobs, 0);
	cr_assert_eq(program->device_time, 40);
	cr_assert_eq(program->queue_time, 20);
	cr_assert_eq(program->busy_time, 40);
	fixture_free(f);
}

Test(model_device_call_tree_jobs, several_jobs_in_one)
{
	struct fixture *f = fixture_driver();
	const struct model_device_times *times;

	queue(f, 1, 7, 1, 110);
	queue(f, 1, 7, 2, 111);
	queue(f, 1, 7, 3, 112);
	run(f, 2, 120);
	run(f, 1, 130);
	done(f, 1, 160);
	OTHER(f, ERROR, 165, U(2), U(1));
	done(f, 2, 170);
	done(f, 3, 172);
	cr_assert_eq(feed_ioctl(f, 0, 1, 7, SUBMIT_IOCTL, 109, 113, 0), 0);
	cr_assert_eq(feed_ioctl(f, 0, 1, 7, SUBMIT_IOCTL, 174, 176, 0), 0);
	call_at(f, TOY_EXECUTE, 7, 0, false, 5, 100, 200);
	cr_assert_eq(model_flush(f->model), 0);
	times = &call_nth(f, 0)->device;
	cr_assert_eq(times->submit_begins, 109);
	cr_assert_eq(times->submit_ends, 176);
	cr_assert_eq(times->runs, 120);
	cr_assert_eq(times->done, 172);
	cr_assert_eq(times->jobs, 3);
	cr_assert_eq(times->failed, 1);
	cr_assert_eq(times->device_time, 30 + 50, "the third was not seen to run");
	cr_assert_eq(times->queue_time, 20 + 9);
	cr_assert_eq(times->busy_time, 50);
	cr_assert_eq(toy_program(f, 1, 5, 0)->jobs, 3);
	cr_assert_eq(toy_program(f, 1, 5, 0)->failed_jobs, 1);
	fixture_free(f);
}

Test(model_device_call_tree_jobs, jobs_that_have_not_ended_when_it_returns)
{
	struct fixture *f = fixture_driver();
	const struct model_program *program;

	queue(f, 1, 7, 1, 110);
	queue(f, 1, 7, 2, 111);
	queue(f, 1, 7, 3, 112);
	run(f, 1, 120);
	run(f, 2, 125);
	done(f, 1, 130);
	call_at(f, TOY_LAUNCH, 7, 0, false, 5, 100, 150);
	deliver(f, 160);
	cr_assert_eq(call_nth(f, 0)->device.jobs, 3);
	cr_assert_eq(call_nth(f, 0)->device.unfinished, 2);
	cr_assert_eq(call_nth(f, 0)->device.done, 0);
	cr_assert_eq(call_nth(f, 0)->device.device_time, 10);
	cr_assert_eq(call_nth(f, 0)->device.queue_time, 10 + 14);
	program = toy_program(f, 1, 5, 0);
	cr_assert_eq(program->jobs, 1);
	cr_assert_eq(program->device_time, 10);
	cr_assert_eq(program->queue_time, 10);
	cr_assert_eq(f->kinds[EVENT_JOB], 1);
	run(f, 3, 170);
	done(f, 2, 175);
	deliver(f, 180);
	cr_assert_eq(f->kinds[EVENT_JOB], 2, "reported at once: the call has returned");
	cr_assert_eq(program->jobs, 2);
	cr_assert_eq(program->device_time, 10 + 50);
	cr_assert_eq(program->queue_time, 10 + 14);
	cr_assert_eq(program->busy_time, 7 + 45, "7.5 of the first, and of the second 45, twice in company for 5");
	done(f, 3, 190);
	cr_assert_eq(feed_end(f, 200), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 3);
	cr_assert_eq(job_nth(f, 2)->program, program);
	cr_assert_eq(job_nth(f, 2)->call_start, 100);
	cr_assert_eq(program->jobs, 3);
	cr_assert_eq(program->device_time, 10 + 50 + 20);
	fixture_free(f);
}

/* A model that launches kernels through two runtimes. */
Test(model_device_call_tree_jobs, nested_over_runtimes_with_layers)
{
	struct fixture *f = fixture_driver();
	const struct model_program *model, *kernel;

	job(f, 1, 120, 121, 131);
	job(f, 2, 220, 221, 241);
	call_at(f, LOW_LAUNCH, 7, 2, true, 60, 115, 125);
	call_at(f, TOY_LAUNCH, 7, 1, false, 6, 110, 128);
	call_at(f, TOY_COPY, 7, 1, false, 64, 210, 250);
	call_at(f, TOY_EXECUTE, 7, 0, false, 5, 100, 300);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(call_nth(f, 0)->device.jobs, 1, "a layer has them, too");
	cr_assert_eq(call_nth(f, 1)->device.jobs, 1);
	cr_assert_eq(call_nth(f, 1)->device.unfinished, 1);
	cr_assert_eq(call_nth(f, 2)->device.jobs, 1);
	cr_assert_eq(call_nth(f, 2)->device.runs, 221);
	cr_assert_eq(call_nth(f, 3)->device.jobs, 2);
	cr_assert_eq(call_nth(f, 3)->device.device_time, 30);
	model = toy_program(f, 1, 5, 0);
	kernel = toy_program(f, 1, 6, 0);
	cr_assert_eq(model->jobs, 2);
	cr_assert_eq(model->device_time, 30);
	cr_assert_eq(kernel->jobs, 1);
	cr_assert_eq(kernel->device_time, 10);
	cr_assert_eq(toy_program(f, 1, 60, 0)->jobs, 0, "it is only a layer's");
	cr_assert_eq(job_nth(f, 0)->program, kernel);
	cr_assert_eq(job_nth(f, 0)->call_start, 115);
	cr_assert_eq(job_nth(f, 1)->program, model);
	cr_assert_eq(job_nth(f, 1)->call_start, 210);
	fixture_free(f);
}

Test(model_device_call_tree_jobs, a_program_within_itself_has_a_job_once)
{
	struct fixture *f = fixture_driver();

	job(f, 1, 120, 121, 131);
	job(f, 2, 122, 123, 500);
	call_at(f, TOY_EXECUTE, 7, 1, false, 5, 110, 140);
	call_at(f, TOY_EXECUTE, 7, 0, false, 5, 100, 200);
	deliver(f, 300);
	cr_assert_eq(toy_program(f, 1, 5, 0)->jobs, 1);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(toy_program(f, 1, 5, 0)->jobs, 2);
	cr_assert_eq(toy_program(f, 1, 5, 0)->device_time, 10 + 377);
	fixture_free(f);
}

Test(model_device_call_tree_jobs, two_threads_at_once)
{
	struct fixture *f = fixture_driver();

	queue(f, 1, 7, 1, 110);
	queue(f, 1, 9, 2, 111);
	queue(f, 2, 10, 3, 112);
	run(f, 1, 120);
	run(f, 2, 121);
	done(f, 2, 140);
	done(f, 1, 150);
	call_at(f, TOY_EXECUTE, 9, 0, false, 6, 101, 160);
	call_at(f, TOY_EXECUTE, 7, 0, false, 5, 100, 170);
	deliver(f, 180);
	cr_assert_eq(call_nth(f, 0)->device.runs, 121);
	cr_assert_eq(call_nth(f, 0)->device.jobs, 1);
	cr_assert_eq(call_nth(f, 1)->device.runs, 120);
	cr_assert_eq(call_nth(f, 1)->device.jobs, 1);
	cr_assert_eq(toy_program(f, 1, 5, 0)->jobs, 1);
	cr_assert_eq(toy_program(f, 1, 6, 0)->jobs, 1);
	cr_assert_eq(toy_program(f, 1, 5, 0)->busy_time + toy_program(f, 1, 6, 0)->busy_time, 30);
	cr_assert_eq(f->kinds[EVENT_JOB], 2);
	fixture_free(f);
}

Test(model_device_call_tree_jobs, an_inference_that_a_wait_ends)
{
	struct fixture *f = fixture_driver();
	const struct event_inference *inference;

	queue(f, 1, 7, 1, 110);
	queue(f, 1, 7, 2, 111);
	cr_assert_eq(feed_ioctl(f, 0, 1, 7, SUBMIT_IOCTL, 105, 115, 0), 0);
	enqueue(f, 77, 100, 120);
	run(f, 1, 130);
	done(f, 1, 150);
	run(f, 2, 152);
	done(f, 2, 160);
	wait_key(f, 77, 125, 170);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(call_nth(f, 0)->device.unfinished, 2, "as it was when the enqueue returned");
	cr_assert_eq(call_nth(f, 0)->device.runs, 0);
	cr_assert_eq(call_nth(f, 1)->device.jobs, 0, "the wait has submitted nothing");
	inference = &seen_nth(f, EVENT_INFERENCE, 0)->event.inference;
	cr_assert_eq(inference->device.submit_begins, 105);
	cr_assert_eq(inference->device.submit_ends, 115);
	cr_assert_eq(inference->device.runs, 130);
	cr_assert_eq(inference->device.done, 160);
	cr_assert_eq(inference->device.jobs, 2);
	cr_assert_eq(inference->device.unfinished, 0);
	cr_assert_eq(inference->device.device_time, 28);
	cr_assert_eq(inference->device.queue_time, 20 + 41);
	cr_assert_eq(inference->device.busy_time, 28);
	cr_assert_eq(toy_program(f, 1, 5, 0)->jobs, 2);
	fixture_free(f);
}

Test(model_device_call_tree_jobs, inferences_see_what_was_seen_when_they_ended)
{
	struct fixture *f = fixture_driver();
	const struct event_inference *inference;

	queue(f, 1, 7, 1, 110);
	enqueue(f, 77, 100, 120);
	queue(f, 1, 7, 2, 130);
	run(f, 2, 135);
	done(f, 2, 136);
	enqueue(f, 78, 125, 140);
	run(f, 1, 145);
	wait_key(f, 77, 141, 150);
	done(f, 1, 160);
	wait_key(f, 78, 151, 170);
	cr_assert_eq(model_flush(f->model), 0);
	inference = &seen_nth(f, EVENT_INFERENCE, 0)->event.inference;
	cr_assert_eq(inference->device.runs, 145);
	cr_assert_eq(inference->device.done, 0);
	cr_assert_eq(inference->device.unfinished, 1);
	cr_assert_eq(inference->device.queue_time, 35);
	inference = &seen_nth(f, EVENT_INFERENCE, 1)->event.inference;
	cr_assert_eq(inference->device.runs, 135);
	cr_assert_eq(inference->device.done, 136);
	cr_assert_eq(inference->device.jobs, 1);
	cr_assert_eq(toy_program(f, 1, 5, 0)->jobs, 2);
	fixture_free(f);
}

Test(model_device_call_tree_jobs, an_enqueue_that_nobody_waits_for)
{
	struct fixture *f = fixture_driver();

	queue(f, 1, 7, 1, 110);
	enqueue(f, 77, 100, 120);
	run(f, 1, 130);
	done(f, 1, 140);
	cr_assert_eq(feed_end(f, 200), 0);
	cr_assert_eq(seen_nth(f, EVENT_UNPAIRED, 0)->event.inference.device.device_time, 10);
	fixture_free(f);
}

Test(model_device_call_tree_jobs, a_job_outside_of_calls_is_reported_at_once)
{
	struct fixture *f = fixture_driver();
	struct event_record record;

	record = event_make(QUEUE, 1, 7, true, 100, U(1), "gfx");
	record.event.thread = XPT_THREAD_TARGET;
	cr_assert_eq(feed_event(f, record), 0);
	run(f, 1, 130);
	done(f, 1, 140);
	deliver(f, 140);
	cr_assert_eq(f->kinds[EVENT_JOB], 1);
	cr_assert(job_nth(f, 0)->target);
	cr_assert_eq(job_nth(f, 0)->process->tgid, 1);
	cr_assert_eq(job_nth(f, 0)->call_start, 0);
	fixture_free(f);
}

Test(model_device_call_tree_jobs, a_job_whose_call_does_not_return_is_reported_after_a_grace)
{
	struct fixture *f = fixture_driver();

	job(f, 1, SECOND, SECOND + 10, SECOND + 20);
	deliver(f, SECOND + JOB_GRACE + 19);
	cr_assert_eq(f->kinds[EVENT_JOB], 0);
	deliver(f, SECOND + JOB_GRACE + 20);
	cr_assert_eq(f->kinds[EVENT_JOB], 1);
	cr_assert_eq(job_nth(f, 0)->time, SECOND + 20);
	cr_assert_null(job_nth(f, 0)->program);
	cr_assert_eq(job_nth(f, 0)->call_start, 0);
	/* A call that takes longer than the grace has it all the same. */
	call_at(f, TOY_EXECUTE, 7, 0, false, 5, 100, 2 * JOB_GRACE);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(call_nth(f, 0)->device.jobs, 1);
	cr_assert_eq(toy_program(f, 1, 5, 0)->device_time, 10);
	cr_assert_eq(f->kinds[EVENT_JOB], 1);
	fixture_free(f);
}

Test(model_device_call_tree_jobs, another_record_ends_the_grace)
{
	struct fixture *f = fixture_driver();

	job(f, 1, SECOND, SECOND + 10, SECOND + 20);
	call_at(f, TOY_COPY, 9, 0, false, 64, SECOND + JOB_GRACE, SECOND + JOB_GRACE + 20);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_lt(position(f, EVENT_JOB, 0), position(f, EVENT_CALL, 0));
	fixture_free(f);
}

Test(model_device_call_tree_jobs, a_later_call_that_is_not_nested_shows_that_all_is_over)
{
	struct fixture *f = fixture_driver();

	job(f, 1, 100, 110, 120);
	queue(f, 1, 7, 2, 130);
	call_at(f, TOY_COPY, 7, 1, false, 64, 200, 210);
	deliver(f, 250);
	cr_assert_eq(f->kinds[EVENT_JOB], 0, "that one is in another call, perhaps with the job");
	call_at(f, TOY_COPY, 7, 0, false, 64, 300, 310);
	deliver(f, 350);
	cr_assert_eq(f->kinds[EVENT_JOB], 1);
	cr_assert_eq(job_nth(f, 0)->call_start, 0);
	done(f, 2, 400);
	deliver(f, 450);
	cr_assert_eq(f->kinds[EVENT_JOB], 2);
	/* So it would be wrong to find a call now; but if there is one, it simply lacks them. */
	call_at(f, TOY_COPY, 7, 0, false, 64, 50, 500);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(call_nth(f, 2)->device.jobs, 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOBS), 0);
	fixture_free(f);
}

Test(model_device_call_tree_jobs, a_call_recorded_at_its_entry_has_none)
{
	struct fixture *f = fixture_driver();
	struct call_record record = call_make(TOY_EXECUTE, 1, 7, 100, 100, 4, U(5), U(0), U(0), U(0));

	record.call.flags = XPT_CALL_NO_END;
	queue(f, 1, 7, 1, 100);
	cr_assert_eq(feed_call(f, record), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(call_nth(f, 0)->device.jobs, 0);
	fixture_free(f);
}

Test(model_device_call_tree_jobs, the_begin_and_end_belong_to_it)
{
	struct fixture *f = fixture_driver();

	queue(f, 1, 7, 1, 100);
	queue(f, 1, 7, 2, 200);
	call_at(f, TOY_COPY, 7, 1, false, 64, 100, 200);
	queue(f, 1, 7, 3, 201);
	call_at(f, TOY_COPY, 7, 1, false, 64, 200, 201);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(call_nth(f, 0)->device.jobs, 2);
	cr_assert_eq(call_nth(f, 1)->device.jobs, 2);
	fixture_free(f);
}

static void end_of_process(enum xpt_task_event what)
{
	struct fixture *f = fixture_driver();

	job(f, 1, 100, 110, 120);
	queue(f, 1, 7, 2, 130);
	run(f, 2, 140);
	cr_assert_eq(feed_ioctl(f, 0, 1, 7, SUBMIT_IOCTL, 99, 140, 0), 0);
	cr_assert_eq(feed_task(f, what, 1, 0, 200, "app"), 0);
	deliver(f, 250);
	cr_assert_eq(f->kinds[EVENT_JOB], 1);
	/* It may well end later on the device. */
	done(f, 2, 300);
	call_at(f, TOY_COPY, 7, 0, false, 64, 50, 310);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 2);
	EXPECT_TIMES(job_nth(f, 1), 130, 140, 300);
	cr_assert_eq(job_nth(f, 1)->tgid, 1);
	cr_assert_eq(job_nth(f, 1)->process->tgid, 1);
	cr_assert_eq(call_nth(f, 0)->device.jobs, 0, "no call of the old program returns");
	cr_assert_eq(call_nth(f, 0)->device.submit_begins, 0);
	fixture_free(f);
}

Test(model_device_call_tree_jobs, the_process_exits_or_runs_another_file)
{
	end_of_process(XPT_TASK_EXIT);
	end_of_process(XPT_TASK_EXEC);
}

Test(model_device_call_tree_jobs, a_program_with_jobs_under_way_is_released)
{
	struct fixture *f = fixture_driver();
	const struct model_program *program;
	unsigned int i;

	model_keep_released(f->model, 1);
	toy_load(f, 5, "model", 10, 20);
	queue(f, 1, 7, 1, 110);
	queue(f, 1, 7, 2, 111);
	call_at(f, TOY_LAUNCH, 7, 0, false, 5, 100, 150);
	toy_unload(f, 5, 160, 170);
	cr_assert_eq(feed_total(f, 1, 0, 0, 5, 175, 1), 0);
	/* Others come and go: all but two are forgotten. */
	for (i = 0; i < 10; i++) {
		toy_load(f, 1000 + i, NULL, 200 + 10 * i, 201 + 10 * i);
		toy_unload(f, 1000 + i, 202 + 10 * i, 203 + 10 * i);
		cr_assert_eq(feed_total(f, 1, 0, 0, 1000 + i, 204 + 10 * i, 1), 0);
	}
	deliver(f, 400);
	program = toy_program(f, 1, 5, 0);
	cr_assert_not_null(program, "it waits for its jobs");
	cr_assert_null(toy_program(f, 1, 1000, 0));
	run(f, 1, 410);
	done(f, 1, 420);
	deliver(f, 430);
	cr_assert_eq(program->jobs, 1);
	cr_assert_str_eq(seen_nth(f, EVENT_JOB, 0)->program, "model");
	done(f, 2, 440);
	CALL_1(f, TOY_FINISH, 1, 7, 445, 446, 1, U(0)); /* the launch is complete, too */
	toy_load(f, 2000, NULL, 450, 451);
	toy_unload(f, 2000, 452, 453);
	toy_load(f, 2001, NULL, 460, 461);
	deliver(f, 500);
	cr_assert_null(toy_program(f, 1, 5, 0), "now it may go");
	cr_assert_eq(model_flush(f->model), 0);
	fixture_free(f);
}

/* The sums of what is forgotten are those of the program that stands for others. */
Test(model_device_call_tree_jobs, sums_of_forgotten_programs_are_kept)
{
	struct fixture *f = fixture_driver();
	const struct model_program *program;
	__u64 jobs = 0, device = 0, queued = 0, busy = 0, failed = 0, i;

	model_keep_released(f->model, 1);
	for (i = 0; i < 20; i++) {
		queue(f, 1, 7, i, 1000 * i + 110);
		run(f, i, 1000 * i + 120);
		OTHER(f, ERROR, 1000 * i + 130, i, U(1));
		done(f, i, 1000 * i + 150);
		call_at(f, TOY_EXECUTE, 7, 0, false, 5 + i, 1000 * i + 100, 1000 * i + 200);
		toy_unload(f, 5 + i, 1000 * i + 210, 1000 * i + 220);
		cr_assert_eq(feed_total(f, 1, 0, 0, 5 + i, 1000 * i + 221, 1), 0);
	}
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_lt(model_program_count(f->model), 10);
	for (i = 0; i < model_program_count(f->model); i++) {
		program = model_program(f->model, i);
		jobs += program->jobs;
		failed += program->failed_jobs;
		device += program->device_time;
		queued += program->queue_time;
		busy += program->busy_time;
	}
	cr_assert_eq(jobs, 20);
	cr_assert_eq(failed, 20);
	cr_assert_eq(device, 20 * 30);
	cr_assert_eq(queued, 20 * 10);
	cr_assert_eq(busy, 20 * 30);
	fixture_free(f);
}

/* Many processes, each with a job that goes on after its end, one that has ended, and an inference under way. */
Test(model_device_call_tree_jobs, processes_with_jobs_under_way_are_forgotten)
{
	struct fixture *f = fixture_driver();
	const unsigned int processes = 200;
	const __u64 each = SECOND / 4; /* all of them within the grace of their jobs */
	__u64 i, time;
	size_t nth;

	model_keep_released(f->model, 4);
	for (i = 0; i < processes; i++) {
		const __u32 tgid = (__u32)(10 + i);

		time = each * (i + 1);
		cr_assert_eq(feed_task(f, XPT_TASK_FORK, tgid, 0, time, "app"), 0);
		queue(f, tgid, tgid, 3 * i, time + 10);
		queue(f, tgid, tgid, 3 * i + 1, time + 11);
		CALL_1(f, TOY_LAUNCH, tgid, tgid, time + 5, time + 20, 3, U(5), U(6), U(7));
		queue(f, tgid, tgid, 3 * i + 2, time + 30);
		done(f, 3 * i + 1, time + 40);
		done(f, 3 * i + 2, time + 41);
		cr_assert_eq(feed_task(f, XPT_TASK_EXIT, tgid, 0, time + 50, "app"), 0);
		deliver(f, time + 60);
	}
	cr_assert_eq(f->kinds[EVENT_JOB], 2 * processes);
	for (i = 0; i < processes; i++)
		done(f, 3 * i, each * (processes + 1) + i);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 3 * processes);
	for (nth = 2 * processes; nth < 3 * processes; nth++)
		cr_assert_eq(job_nth(f, nth)->tgid, 10 + nth - 2 * processes, "the submitter stays");
	cr_assert_null(job_nth(f, 2 * processes)->program, "its program was forgotten with the process");
	cr_assert_eq(job_nth(f, 2 * processes)->process->tgid, 0);
	cr_assert_eq(job_nth(f, 3 * processes - 1)->process->tgid, 10 + processes - 1);
	cr_assert_str_eq(seen_nth(f, EVENT_JOB, 3 * processes - 1)->program, "toy model 1");
	fixture_free(f);
}

/* The key of an unfinished job is used again while the call around it is open. */
Test(model_device_call_tree_jobs, a_job_that_is_given_up_stays_unfinished)
{
	struct fixture *f = fixture_pairing(XPT_PAIRING_LATEST);

	queue(f, 1, 7, 1, 110);
	run(f, 1, 120);
	queue(f, 1, 7, 1, 130);
	run(f, 1, 135);
	done(f, 1, 140);
	call_at(f, TOY_EXECUTE, 7, 0, false, 5, 100, 200);
	queue(f, 1, 7, 2, 310);
	call_at(f, TOY_LAUNCH, 7, 0, false, 6, 300, 320);
	queue(f, 1, 7, 2, 330);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(call_nth(f, 0)->device.jobs, 2);
	cr_assert_eq(call_nth(f, 0)->device.unfinished, 1);
	cr_assert_eq(call_nth(f, 0)->device.done, 0);
	cr_assert_eq(call_nth(f, 0)->device.device_time, 5);
	cr_assert_eq(toy_program(f, 1, 5, 0)->jobs, 1);
	cr_assert_eq(toy_program(f, 1, 6, 0)->jobs, 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 4);
	EXPECT_TIMES(job_nth(f, 0), 110, 120, 0);
	cr_assert_eq(job_nth(f, 0)->time, 130);
	cr_assert_eq(job_nth(f, 0)->program, toy_program(f, 1, 5, 0), "it was reported when that was known");
	fixture_free(f);
}

Test(model_device_call_tree_jobs, submissions_by_an_event)
{
	struct fixture *f = fixture_driver();

	TARGET(f, SUBMIT, 1, 7, 110, U(0));
	TARGET(f, SUBMIT, 1, 7, 120, U(0));
	OTHER(f, SUBMIT, 125, U(0));
	call_at(f, TOY_COPY, 7, 0, false, 64, 100, 200);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(call_nth(f, 0)->device.submit_begins, 110);
	cr_assert_eq(call_nth(f, 0)->device.submit_ends, 120);
	fixture_free(f);
}

Test(model_device_call_tree_jobs, ioctls_of_nested_calls)
{
	struct fixture *f = fixture_driver();

	cr_assert_eq(feed_ioctl(f, 0, 1, 7, SUBMIT_IOCTL, 90, 95, 0), 0);
	cr_assert_eq(feed_ioctl(f, 0, 1, 7, SUBMIT_IOCTL, 105, 108, 0), 0);
	cr_assert_eq(feed_ioctl(f, 0, 1, 7, SUBMIT_IOCTL, 112, 114, 0), 0);
	cr_assert_eq(feed_ioctl(f, 0, 1, 7, SUBMIT_IOCTL, 116, 118, 0), 0);
	call_at(f, TOY_COPY, 7, 1, false, 64, 110, 120);
	cr_assert_eq(feed_ioctl(f, 0, 1, 7, SUBMIT_IOCTL, 122, 124, 0), 0);
	cr_assert_eq(feed_ioctl(f, 0, 1, 9, SUBMIT_IOCTL, 122, 128, 0), 0);
	call_at(f, TOY_EXECUTE, 7, 0, false, 5, 100, 130);
	call_at(f, TOY_COPY, 7, 0, false, 64, 80, 140);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(call_nth(f, 0)->device.submit_begins, 112);
	cr_assert_eq(call_nth(f, 0)->device.submit_ends, 118);
	cr_assert_eq(call_nth(f, 1)->device.submit_begins, 105);
	cr_assert_eq(call_nth(f, 1)->device.submit_ends, 124);
	cr_assert_eq(call_nth(f, 2)->device.submit_begins, 0, "all of it was over");
	fixture_free(f);
}

Test(model_device_call_tree_jobs, more_ioctls_and_threads_than_are_followed)
{
	struct fixture *f = fixture_driver();
	unsigned int i;

	f->quiet = true;
	for (i = 0; i < SUBMITS_MAX + 10; i++)
		cr_assert_eq(feed_ioctl(f, 0, 1, 7, SUBMIT_IOCTL, 1000 + 2 * i, 1001 + 2 * i, 0), 0);
	for (i = 0; i < CALL_THREADS_MAX + 10; i++)
		queue(f, 1, 100 + i, i, 1000000 + i);
	deliver(f, 2000000);
	f->quiet = false;
	call_at(f, TOY_COPY, 100 + CALL_THREADS_MAX + 9, 0, false, 64, 1000000, 2000010);
	call_at(f, TOY_COPY, 100, 0, false, 64, 1000000, 2000011);
	for (i = 0; i < CALL_THREADS_MAX + 10; i++)
		done(f, i, 3000000 + i);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(call_nth(f, 0)->device.jobs, 1);
	cr_assert_eq(call_nth(f, 1)->device.jobs, 0, "a thread that was not seen for longest made room");
	cr_assert_eq(f->kinds[EVENT_JOB], CALL_THREADS_MAX + 10, "its job did not");
	fixture_free(f);
}

Test(model_device_call_tree_jobs, a_call_tells_what_it_lacks)
{
	struct fixture *f = fixture_driver();
	unsigned int i;

	f->quiet = true;
	for (i = 0; i < SUBMITS_MAX + 10; i++)
		cr_assert_eq(feed_ioctl(f, 0, 1, 7, SUBMIT_IOCTL, 1000 + 2 * i, 1001 + 2 * i, 0), 0);
	call_at(f, TOY_COPY, 7, 1, false, 64, 1000000, 1000001);
	deliver(f, 2000000);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOBS), 0);
	call_at(f, TOY_COPY, 7, 0, false, 64, 100, 2000001);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOBS), 10);
	fixture_free(f);
}

/* The jobs of a launch end before the wait for it does, and tell its end where there is no wait. */
Test(model_device_call_tree_jobs, a_launch_is_complete_when_its_jobs_have_ended)
{
	struct fixture *f = fixture_driver();
	const struct model_program *program;

	job(f, 1, 110, 120, 180);
	call_at(f, TOY_LAUNCH, 7, 0, false, 5, 100, 130);
	CALL_1(f, TOY_FINISH, 1, 7, 150, 200, 1, U(0));
	job(f, 2, 310, 320, 390);
	call_at(f, TOY_LAUNCH, 7, 0, false, 5, 300, 330);
	queue(f, 1, 7, 3, 510); /* does not end */
	call_at(f, TOY_LAUNCH, 7, 0, false, 5, 500, 530);
	deliver(f, 600);
	cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 1, 0, 900, "x"), 0);
	cr_assert_eq(model_flush(f->model), 0);
	program = toy_program(f, 1, 5, 0);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 2);
	cr_assert_eq(seen_nth(f, EVENT_INFERENCE, 0)->event.inference.end, 200, "the wait");
	cr_assert_eq(seen_nth(f, EVENT_INFERENCE, 0)->event.inference.completed, 180);
	cr_assert_eq(seen_nth(f, EVENT_INFERENCE, 1)->event.inference.completed, 390);
	cr_assert_eq(seen_nth(f, EVENT_INFERENCE, 1)->event.inference.wait_tid, 0);
	cr_assert_eq(statistics_count(program->latency), 2);
	cr_assert_eq(statistics_min(program->latency), 80);
	cr_assert_eq(statistics_max(program->latency), 90);
	cr_assert_eq(program->unended, 1);
	fixture_free(f);
}
