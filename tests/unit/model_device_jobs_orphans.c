/* SPDX-License-Identifier: BSD-2-Clause */
/* Jobs of processes that have ended: the scheduler drops those that wait when a process is killed, and reports no end. */
#include "model/device/jobs.h"

#include "model_driver_records.h"

enum { QUEUE, RUN, DONE, LINE_QUEUE, LINE_RUN };

#define KILLED 950
#define OTHERS 900

static struct fixture *fixture_driver(void)
{
	struct fixture *f = fixture_toy();

	driver(f, 0, "scheduler", XPT_PAIRING_UNIQUE, 64, "");
	driver_event(f, QUEUE, 0, XPT_EVENT_QUEUE, true, "kDE");
	driver_event(f, RUN, 0, XPT_EVENT_RUN, false, "kDE");
	driver_event(f, DONE, 0, XPT_EVENT_DONE, false, "k");
	driver_event(f, LINE_QUEUE, 0, XPT_EVENT_QUEUE, true, "kDEl");
	driver_event(f, LINE_RUN, 0, XPT_EVENT_RUN, false, "kDEl");
	return f;
}

static void queue(struct fixture *f, __u32 tgid, __u64 key, __u64 time)
{
	cr_assert_eq(feed_event(f, event_make(QUEUE, tgid, tgid + 1, false, time, key, "dev", "gfx")), 0);
}

static void run(struct fixture *f, __u64 key, __u64 time)
{
	OTHER(f, RUN, time, key, "dev", "gfx");
}

static void done(struct fixture *f, __u64 key, __u64 time)
{
	OTHER(f, DONE, time, key);
}

static void ends(struct fixture *f, __u32 tgid, __u64 time)
{
	const struct xpt_record_header record = { XPT_RECORD_CLIENT_EXIT, sizeof(record), tgid, time };

	cr_assert_eq(model_feed(f->model, &record), 0);
}

/* All that has come up to this time is delivered. */
static void pass(struct fixture *f, __u64 time)
{
	cr_assert_eq(feed_pass(f, time), 0);
	cr_assert_eq(feed_pass(f, time), 0);
}

static const struct event_queue *queue_latest(const struct fixture *f)
{
	return &seen_nth(f, EVENT_QUEUE, f->kinds[EVENT_QUEUE] - 1)->event.queue;
}

static int on_use(void *context, const struct model_queue_use *use)
{
	struct model_queue_use *found = context;

	if (use->tgid == found->tgid)
		*found = *use;
	return 0;
}

static struct model_queue_use use_of(const struct fixture *f, __u32 tgid)
{
	struct model_queue_use use = { .tgid = tgid };

	cr_assert_eq(model_queue_uses(f->model, on_use, &use), 0);
	return use;
}

/* One runs and two wait when it is killed. The device goes on with what it runs. */
Test(model_device_jobs_orphans, that_wait_leave_their_queue)
{
	struct fixture *f = fixture_driver();

	queue(f, KILLED, 1, 100);
	run(f, 1, 100);
	queue(f, KILLED, 2, 110);
	queue(f, KILLED, 3, 120);
	queue(f, OTHERS, 4, 130);
	ends(f, KILLED, 200);
	done(f, 1, 300);
	run(f, 4, 300);
	pass(f, 350);
	cr_assert_eq(queue_latest(f)->waiting, 0, "%u wait", queue_latest(f)->waiting);
	cr_assert_eq(queue_latest(f)->running, 1);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOB_ENDS), 0);
	done(f, 4, 400);
	queue(f, OTHERS, 5, 1000);
	run(f, 5, 1010);
	done(f, 5, 1030);
	pass(f, 200 + JOB_GRACE);
	cr_assert_eq(f->kinds[EVENT_JOB], 5);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOB_ENDS), 2);
	EXPECT_TIMES(job_nth(f, 0), 100, 100, 300);
	EXPECT_TIMES(job_nth(f, 1), 130, 300, 400);
	EXPECT_TIMES(job_nth(f, 2), 1000, 1010, 1030);
	EXPECT_TIMES(job_nth(f, 3), 110, 0, 0);
	EXPECT_TIMES(job_nth(f, 4), 120, 0, 0);
	cr_assert_eq(job_nth(f, 4)->time, 200);
	cr_assert_eq(job_nth(f, 4)->tgid, KILLED);
	cr_assert_eq(model_queue(f->model, 0)->jobs, 3);
	cr_assert_eq(model_queue(f->model, 0)->busy_time, 300 + 20);
	cr_assert_eq(use_of(f, KILLED).jobs, 1);
	cr_assert_eq(use_of(f, KILLED).queue_time, 90 + 80, "%llu", use_of(f, KILLED).queue_time);
	cr_assert_eq(use_of(f, KILLED).device_time, 200);
	cr_assert_eq(use_of(f, OTHERS).queue_time, 170 + 10);
	cr_assert_eq(use_of(f, OTHERS).device_time, 100 + 20);
	fixture_free(f);
}

/* Of a traced process the end is reported as such, also by kernels' sides that report no other ones. */
Test(model_device_jobs_orphans, of_a_traced_process)
{
	struct fixture *f = fixture_driver();

	TARGET(f, QUEUE, 7, 8, 100, U(1), "dev", "gfx");
	TARGET(f, QUEUE, 7, 9, 110, U(2), "dev", "gfx");
	run(f, 1, 120);
	cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 7, 0, 200, "app"), 0);
	ends(f, 7, 200);
	done(f, 1, 300);
	cr_assert_eq(feed_end(f, 400), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 2);
	cr_assert_eq(queue_latest(f)->waiting, 0);
	EXPECT_TIMES(job_nth(f, 1), 110, 0, 0);
	cr_assert_eq(job_nth(f, 1)->time, 200);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOB_ENDS), 1, "each is counted once");
	cr_assert_eq(model_queue(f->model, 0)->target_jobs, 1);
	cr_assert_eq(model_queue(f->model, 0)->target_time, 180);
	fixture_free(f);
}

/* A program ends without a wait for its jobs: the scheduler lets them run, or another process has the same context. */
Test(model_device_jobs_orphans, that_run_after_all)
{
	struct fixture *f = fixture_driver();

	queue(f, KILLED, 1, 100);
	queue(f, KILLED, 2, 110);
	ends(f, KILLED, 200);
	run(f, 1, 250);
	pass(f, 260);
	cr_assert_eq(queue_latest(f)->running, 1);
	done(f, 1, 300);
	run(f, 2, 150 + JOB_GRACE);
	pass(f, 300 + JOB_GRACE);
	done(f, 2, 250 + JOB_GRACE);
	pass(f, 400 + JOB_GRACE);
	cr_assert_eq(f->kinds[EVENT_JOB], 2);
	EXPECT_TIMES(job_nth(f, 0), 100, 250, 300);
	EXPECT_TIMES(job_nth(f, 1), 110, 150 + JOB_GRACE, 250 + JOB_GRACE);
	cr_assert_str_eq(queue_text(job_nth(f, 1)->queue), "scheduler/dev/gfx");
	cr_assert_eq(model_queue(f->model, 0)->busy_time, 50 + 100);
	cr_assert_eq(model_queue(f->model, 0)->jobs, 2);
	cr_assert_eq(use_of(f, KILLED).jobs, 2);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOB_ENDS), 0);
	fixture_free(f);
}

/* The end of one that ran is not seen: its queue is not busy for ever. */
Test(model_device_jobs_orphans, that_run_are_given_up_after_a_minute)
{
	struct fixture *f = fixture_driver();

	queue(f, KILLED, 1, 100);
	run(f, 1, 100);
	ends(f, KILLED, 200);
	pass(f, 199 + JOB_GRACE);
	cr_assert_eq(f->kinds[EVENT_JOB], 0);
	cr_assert_eq(queue_latest(f)->running, 1);
	queue(f, OTHERS, 2, 300 + JOB_GRACE);
	run(f, 2, 300 + JOB_GRACE);
	done(f, 2, 350 + JOB_GRACE);
	pass(f, 400 + JOB_GRACE);
	cr_assert_eq(f->kinds[EVENT_JOB], 2);
	EXPECT_TIMES(job_nth(f, 0), 100, 100, 0);
	cr_assert_eq(queue_latest(f)->running, 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOB_ENDS), 1);
	cr_assert_eq(model_queue(f->model, 0)->busy_time, 100 + JOB_GRACE + 50);
	cr_assert_eq(use_of(f, OTHERS).device_time, 50, "it has the device alone");
	fixture_free(f);
}

/* A driver that does not report when jobs begin to run, as virtio_gpu: no order is broken by an end that comes late. */
Test(model_device_jobs_orphans, that_end_without_a_run)
{
	struct fixture *f = fixture_driver();

	cr_assert_eq(feed_event(f, event_make(LINE_QUEUE, KILLED, 1, false, 100, U(1), "dev", "gfx", U(7))), 0);
	ends(f, KILLED, 200);
	done(f, 1, 250);
	OTHER(f, LINE_QUEUE, 300, U(2), "dev", "gfx", U(8));
	OTHER(f, LINE_QUEUE, 310, U(3), "dev", "gfx", U(8));
	OTHER(f, LINE_RUN, 320, U(2), "dev", "gfx", U(8)); /* its end is lost */
	OTHER(f, LINE_RUN, 330, U(3), "dev", "gfx", U(8));
	done(f, 3, 340);
	pass(f, 400);
	EXPECT_TIMES(job_nth(f, 0), 100, 0, 250);
	cr_assert_eq(queue_latest(f)->running, 0, "the queue keeps the order");
	cr_assert_eq(model_queue(f->model, 0)->jobs, 2);
	cr_assert_eq(use_of(f, KILLED).jobs, 1);
	fixture_free(f);
}

/* One that was passed by a later job of its timeline is no orphan: it was not dropped. */
Test(model_device_jobs_orphans, that_were_passed_before)
{
	struct fixture *f = fixture_driver();

	cr_assert_eq(feed_event(f, event_make(LINE_QUEUE, KILLED, 1, false, 100, U(1), "dev", "gfx", U(7))), 0);
	cr_assert_eq(feed_event(f, event_make(LINE_QUEUE, KILLED, 1, false, 110, U(2), "dev", "gfx", U(7))), 0);
	OTHER(f, LINE_RUN, 120, U(1), "dev", "gfx", U(7));
	OTHER(f, LINE_RUN, 120, U(2), "dev", "gfx", U(7));
	done(f, 2, 150);
	ends(f, KILLED, 200);
	done(f, 1, 250);
	pass(f, 300);
	cr_assert_eq(f->kinds[EVENT_JOB], 2);
	EXPECT_TIMES(job_nth(f, 1), 100, 120, 250);
	cr_assert_eq(model_queue(f->model, 0)->busy_time, 30);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOB_ENDS), 0);
	fixture_free(f);
}

/* The number of the process is used again, and another one ends. */
Test(model_device_jobs_orphans, of_one_process_only)
{
	struct fixture *f = fixture_driver();

	queue(f, KILLED, 1, 100);
	queue(f, OTHERS, 2, 100);
	ends(f, KILLED, 200);
	ends(f, KILLED + 1, 210);
	queue(f, KILLED, 3, 300);
	pass(f, 400);
	cr_assert_eq(queue_latest(f)->waiting, 2);
	pass(f, 400 + JOB_GRACE);
	cr_assert_eq(f->kinds[EVENT_JOB], 1);
	cr_assert_eq(job_nth(f, 0)->queued, 100);
	run(f, 3, 500 + JOB_GRACE);
	done(f, 3, 510 + JOB_GRACE);
	pass(f, 600 + JOB_GRACE);
	EXPECT_TIMES(job_nth(f, 1), 300, 500 + JOB_GRACE, 510 + JOB_GRACE);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOB_ENDS), 1);
	fixture_free(f);
}

/* What the recording's end leaves open: one that runs may still end, one that waits was dropped, or is not seen to run. */
Test(model_device_jobs_orphans, when_the_recording_ends)
{
	struct fixture *f = fixture_driver();

	queue(f, KILLED, 1, 100);
	run(f, 1, 110);
	queue(f, KILLED, 2, 120);
	queue(f, OTHERS, 3, 130);
	ends(f, KILLED, 200);
	cr_assert_eq(feed_end(f, 300), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 3);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOB_ENDS), 1);
	for (size_t i = 0; i < 3; i++)
		cr_assert_eq(job_nth(f, i)->time, job_nth(f, i)->queued == 120 ? 200 : 300);
	cr_assert_eq(model_queue(f->model, 0)->busy_time, 190);
	fixture_free(f);
}

/* Processes are killed all the time: what they leave makes no other job be lost. */
Test(model_device_jobs_orphans, free_their_memory)
{
	struct fixture *f = fixture_driver();
	const unsigned int each = MODEL_JOBS_MAX / 4;
	__u64 key = 0;

	f->quiet = true;
	for (__u32 tgid = 1; tgid <= 12; tgid++) {
		__u64 time = tgid * (JOB_GRACE + 1000000);

		for (unsigned int i = 0; i < each; i++)
			queue(f, tgid, key++, time + i);
		ends(f, tgid, time + each);
		pass(f, time + each);
		cr_assert_eq(f->kinds[EVENT_JOB], (tgid - 1) * each, "%zu", f->kinds[EVENT_JOB]);
	}
	cr_assert_eq(feed_end(f, 20 * JOB_GRACE), 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOBS), 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOB_ENDS), 12 * each);
	fixture_free(f);
}
