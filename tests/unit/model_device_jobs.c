/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/device/jobs.h"

#include "model_driver_records.h"

enum { QUEUE, RUN, DONE, ERROR, QUEUE_2, RUN_2, DONE_2, DONE_ITEMS, EVENTS };

/* A driver with all steps, whose key has two parts. The second events of each tell the same. */
static void describe(struct fixture *f, unsigned int index, enum xpt_pairing pairing, unsigned int bits,
		     const char *more)
{
	char name[16];
	unsigned int base = index * EVENTS;

	snprintf(name, sizeof(name), "driver_%u", index);
	driver(f, index, name, pairing, bits, more);
	driver_event(f, base + QUEUE, index, XPT_EVENT_QUEUE, true, "kkDENcn");
	driver_event(f, base + RUN, index, XPT_EVENT_RUN, false, "kkDE");
	driver_event(f, base + DONE, index, XPT_EVENT_DONE, false, "kks");
	driver_event(f, base + ERROR, index, XPT_EVENT_ERROR, false, "kks");
	driver_event(f, base + QUEUE_2, index, XPT_EVENT_QUEUE, true, "kkDEfz");
	driver_event(f, base + RUN_2, index, XPT_EVENT_RUN, false, "kkE");
	driver_event(f, base + DONE_2, index, XPT_EVENT_DONE, false, "kkva");
	driver_event(f, base + DONE_ITEMS, index, XPT_EVENT_DONE, false, "kkn");
}

static struct fixture *fixture_driver(enum xpt_pairing pairing, unsigned int bits)
{
	struct fixture *f = fixture_toy();

	describe(f, 0, pairing, bits, "");
	return f;
}

static void queue(struct fixture *f, __u64 key, __u64 time)
{
	OTHER(f, QUEUE, time, U(1), key, "dev", "gfx", "", U(0), U(0));
}

static void run(struct fixture *f, __u64 key, __u64 time)
{
	OTHER(f, RUN, time, U(1), key, "dev", "gfx");
}

static void done(struct fixture *f, __u64 key, __u64 time)
{
	OTHER(f, DONE, time, U(1), key, U(0));
}

Test(model_device_jobs, from_its_queueing_to_its_end)
{
	struct fixture *f = fixture_driver(XPT_PAIRING_UNIQUE, 64);
	const struct event_job *job;

	cr_assert_eq(feed_text(f, XPT_RECORD_PROCESS, 7, 5, 0, "{\"name\":\"app\"}"), 0);
	TARGET(f, QUEUE, 7, 8, 100, U(1), U(2), "0000:03:00.0", "gfx_0.0.0", "draw", U(77), U(3));
	OTHER(f, RUN, 130, U(1), U(2), "0000:03:00.0", "gfx_0.0.0");
	OTHER(f, DONE, 190, U(1), U(2), U((__u64)-5));
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 1);
	job = job_nth(f, 0);
	EXPECT_TIMES(job, 100, 130, 190);
	cr_assert_eq(job->id, 1);
	cr_assert_eq(job->time, 190);
	cr_assert_eq(job->tgid, 7);
	cr_assert_eq(job->tid, 8);
	cr_assert(job->target);
	cr_assert_str_eq(job->process->name, "app");
	cr_assert_null(job->program);
	cr_assert_eq(job->call_start, 0);
	cr_assert_not(job->failed, "what a status means is not known");
	cr_assert_eq(job->have, 1u << XPT_FIELD_CONTEXT | 1u << XPT_FIELD_COUNT | 1u << XPT_FIELD_STATUS);
	cr_assert_eq(job->context, 77);
	cr_assert_eq(job->count, 3);
	cr_assert_eq(job->status, -5);
	cr_assert_str_eq(seen_nth(f, EVENT_JOB, 0)->name, "draw");
	cr_assert_str_eq(queue_text(job->queue), "driver_0/0000:03:00.0/gfx_0.0.0");
	cr_assert_eq(model_queue_count(f->model), 1);
	cr_assert_eq(model_queue(f->model, 0)->jobs, 1);
	cr_assert_eq(model_queue(f->model, 0)->target_jobs, 1);
	cr_assert_eq(model_queue(f->model, 0)->failed, 0);
	fixture_free(f);
}

Test(model_device_jobs, of_other_processes_are_reported_at_once)
{
	struct fixture *f = fixture_driver(XPT_PAIRING_UNIQUE, 64);

	queue(f, 2, 100);
	run(f, 2, 110);
	done(f, 2, 120);
	cr_assert_eq(feed_pass(f, 121), 0);
	cr_assert_eq(feed_pass(f, 122), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 1);
	cr_assert_eq(job_nth(f, 0)->tid, 901);
	cr_assert_not(job_nth(f, 0)->target);
	cr_assert_null(job_nth(f, 0)->process);
	cr_assert_eq(f->kinds[EVENT_PROCESS], 0);
	fixture_free(f);
}

Test(model_device_jobs, two_events_tell_of_one_job)
{
	struct fixture *f = fixture_driver(XPT_PAIRING_UNIQUE, 64);
	const struct event_job *job;

	OTHER(f, QUEUE, 100, U(1), U(2), "dev", "first", "", U(5), U(6));
	OTHER(f, QUEUE_2, 105, U(1), U(2), "other", "second", U(7), U(8));
	OTHER(f, RUN_2, 110, U(1), U(2), "third");
	OTHER(f, RUN, 115, U(1), U(2), "dev", "fourth");
	OTHER(f, DONE_2, 120, U(1), U(2), U(9), U(10));
	OTHER(f, DONE, 125, U(1), U(2), U(1));
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 1);
	job = job_nth(f, 0);
	EXPECT_TIMES(job, 100, 110, 120);
	cr_assert_str_eq(queue_text(job->queue), "driver_0/dev/third", "the engine is that of the first run");
	cr_assert_eq(job->context, 5);
	cr_assert_eq(job->count, 6);
	cr_assert_eq(job->client, 7);
	cr_assert_eq(job->size, 8);
	cr_assert_eq(job->value, 9);
	cr_assert_eq(job->address, 10);
	cr_assert_not(job->have & 1u << XPT_FIELD_STATUS, "it had ended before");
	fixture_free(f);
}

Test(model_device_jobs, a_unique_key_is_queued_once)
{
	struct fixture *f = fixture_driver(XPT_PAIRING_UNIQUE, 64);

	queue(f, 2, 100);
	queue(f, 2, 105);
	run(f, 2, 110);
	run(f, 2, 115);
	done(f, 2, 120);
	done(f, 2, 125);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 1);
	EXPECT_TIMES(job_nth(f, 0), 100, 110, 120);
	fixture_free(f);
}

Test(model_device_jobs, the_latest_job_with_a_key_is_meant)
{
	struct fixture *f = fixture_driver(XPT_PAIRING_LATEST, 64);

	queue(f, 2, 100);
	OTHER(f, QUEUE_2, 101, U(1), U(2), "dev", "gfx", U(0), U(0));
	run(f, 2, 110);
	queue(f, 2, 200);
	OTHER(f, QUEUE_2, 201, U(1), U(2), "dev", "gfx", U(0), U(0));
	run(f, 2, 210);
	done(f, 2, 220);
	queue(f, 2, 300);
	done(f, 2, 320);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 3);
	EXPECT_TIMES(job_nth(f, 0), 100, 110, 0);
	cr_assert_eq(job_nth(f, 0)->time, 200, "it was given up then");
	EXPECT_TIMES(job_nth(f, 1), 200, 210, 220);
	EXPECT_TIMES(job_nth(f, 2), 300, 0, 320);
	cr_assert_eq(model_queue(f->model, 0)->jobs, 2);
	fixture_free(f);
}

Test(model_device_jobs, jobs_with_one_key_begin_and_end_in_order)
{
	struct fixture *f = fixture_driver(XPT_PAIRING_ORDER, 64);

	queue(f, 2, 100);
	OTHER(f, QUEUE_2, 101, U(1), U(2), "dev", "gfx", U(1), U(0));
	queue(f, 2, 102);
	queue(f, 2, 103);
	OTHER(f, QUEUE_2, 104, U(1), U(2), "dev", "gfx", U(2), U(0));
	run(f, 2, 110);
	run(f, 2, 111);
	done(f, 2, 120);
	done(f, 2, 121);
	done(f, 2, 122);
	done(f, 2, 123);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 3);
	EXPECT_TIMES(job_nth(f, 0), 100, 110, 120);
	cr_assert_eq(job_nth(f, 0)->client, 1);
	EXPECT_TIMES(job_nth(f, 1), 102, 111, 121);
	cr_assert_eq(job_nth(f, 1)->client, 2, "each reports the first that it has not reported");
	EXPECT_TIMES(job_nth(f, 2), 103, 0, 122);
	fixture_free(f);
}

Test(model_device_jobs, items_of_jobs_in_order_end_alone_or_together)
{
	static const __u64 items[] = { 4, 2, 0, 3, 5 };
	struct fixture *f = fixture_driver(XPT_PAIRING_ORDER, 64);
	size_t i;

	for (i = 0; i < 5; i++)
		OTHER(f, QUEUE, 100 + i, U(1), U(2), "dev", "gfx", "", U(0), U(items[i]));
	OTHER(f, DONE_ITEMS, 110, U(1), U(2), U(3)); /* of four */
	OTHER(f, DONE_ITEMS, 111, U(1), U(2), U(4)); /* the first two and the one without items; one of the next */
	OTHER(f, DONE_ITEMS, 112, U(1), U(2), U(1));
	OTHER(f, DONE_ITEMS, 113, U(1), U(2), U(100)); /* more than there are: what is left over is of no other job */
	OTHER(f, QUEUE, 120, U(1), U(2), "dev", "gfx", "", U(0), U(2));
	OTHER(f, DONE_ITEMS, 121, U(1), U(2), U(1));
	OTHER(f, DONE_ITEMS, 122, U(1), U(2), U(1));
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 6);
	EXPECT_TIMES(job_nth(f, 0), 100, 0, 111);
	EXPECT_TIMES(job_nth(f, 1), 101, 0, 111);
	EXPECT_TIMES(job_nth(f, 2), 102, 0, 111);
	EXPECT_TIMES(job_nth(f, 3), 103, 0, 113);
	cr_assert_eq(job_nth(f, 3)->count, 3, "items of the job, not of its end");
	EXPECT_TIMES(job_nth(f, 4), 104, 0, 113);
	EXPECT_TIMES(job_nth(f, 5), 120, 0, 122);
	fixture_free(f);
}

/* As of copies of which only the start is reported. */
Test(model_device_jobs, runs_in_order_without_queueing)
{
	struct fixture *f = fixture_driver(XPT_PAIRING_ORDER, 64);

	run(f, 2, 100);
	run(f, 2, 101);
	queue(f, 2, 102);
	run(f, 2, 103);
	done(f, 2, 110);
	done(f, 2, 111);
	done(f, 2, 112);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 3);
	EXPECT_TIMES(job_nth(f, 0), 0, 100, 110);
	EXPECT_TIMES(job_nth(f, 1), 0, 101, 111);
	EXPECT_TIMES(job_nth(f, 2), 102, 103, 112);
	fixture_free(f);
}

Test(model_device_jobs, whose_queueing_was_not_seen)
{
	struct fixture *f = fixture_driver(XPT_PAIRING_LATEST, 64);

	TARGET(f, RUN, 7, 8, 100, U(1), U(2), "dev", "gfx");
	done(f, 2, 120);
	done(f, 3, 130);
	run(f, 4, 140);
	queue(f, 4, 150);
	done(f, 4, 160);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 3);
	EXPECT_TIMES(job_nth(f, 0), 0, 100, 120);
	cr_assert_eq(job_nth(f, 0)->tgid, 0, "a run happens on any thread");
	cr_assert_eq(job_nth(f, 0)->tid, 0);
	cr_assert_not(job_nth(f, 0)->target);
	EXPECT_TIMES(job_nth(f, 1), 0, 140, 0);
	EXPECT_TIMES(job_nth(f, 2), 150, 0, 160);
	fixture_free(f);
}

Test(model_device_jobs, a_unique_job_that_is_reported_to_be_queued_after_it_ran)
{
	struct fixture *f = fixture_driver(XPT_PAIRING_UNIQUE, 64);
	const struct event_job *job;

	run(f, 2, 100);
	TARGET(f, QUEUE, 7, 8, 105, U(1), U(2), "dev", "gfx", "late", U(0), U(0));
	done(f, 2, 120);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 1);
	job = job_nth(f, 0);
	EXPECT_TIMES(job, 0, 100, 120);
	cr_assert_eq(job->tid, 8);
	cr_assert(job->target);
	cr_assert_eq(job->queue->target_jobs, 1);
	cr_assert_eq(job->queue->target_time, 15, "since that is known");
	cr_assert_eq(job->queue->busy_time, 20);
	fixture_free(f);
}

/* What comes behind its PASS is delivered out of order. */
Test(model_device_jobs, times_are_never_in_the_wrong_order)
{
	struct fixture *f = fixture_driver(XPT_PAIRING_UNIQUE, 64);

	queue(f, 1, 100);
	queue(f, 2, 100);
	run(f, 2, 110);
	cr_assert_eq(feed_pass(f, 200), 0);
	cr_assert_eq(feed_pass(f, 300), 0);
	run(f, 1, 90);
	done(f, 2, 105);
	cr_assert_eq(feed_pass(f, 400), 0);
	done(f, 1, 120);
	cr_assert_eq(model_flush(f->model), 0);
	EXPECT_TIMES(job_nth(f, 0), 100, 0, 105);
	EXPECT_TIMES(job_nth(f, 1), 0, 90, 120);
	fixture_free(f);
}

Test(model_device_jobs, fail_by_an_error_and_end_later)
{
	struct fixture *f = fixture_driver(XPT_PAIRING_UNIQUE, 64);
	const struct event_device *device;
	const struct event_job *job;

	queue(f, 2, 100);
	run(f, 2, 110);
	OTHER(f, ERROR, 115, U(1), U(2), U((__u64)-110));
	done(f, 2, 120);
	OTHER(f, ERROR, 130, U(1), U(2), U(7));
	cr_assert_eq(model_flush(f->model), 0);
	job = job_nth(f, 0);
	EXPECT_TIMES(job, 100, 110, 120);
	cr_assert(job->failed);
	cr_assert_eq(job->status, -110, "what the end tells does not hide it");
	cr_assert_eq(job->queue->failed, 1);
	cr_assert_eq(f->kinds[EVENT_DEVICE], 2);
	device = &seen_nth(f, EVENT_DEVICE, 0)->event.device;
	cr_assert_eq(device->job, job->id);
	cr_assert_eq(device->queue, job->queue);
	cr_assert_eq(device->status, -110);
	device = &seen_nth(f, EVENT_DEVICE, 1)->event.device;
	cr_assert_eq(device->job, 0);
	cr_assert_null(device->queue);
	fixture_free(f);
}

/* ---- timelines ---- */

enum { LINE_QUEUE = 50, LINE_RUN, LINE_DONE };

/* A driver whose jobs end in order on each timeline. */
static struct fixture *fixture_timelines(enum xpt_pairing pairing)
{
	struct fixture *f = fixture_toy();

	driver(f, 0, "lines", pairing, 64, "");
	driver_event(f, LINE_QUEUE, 0, XPT_EVENT_QUEUE, true, "kDEl");
	driver_event(f, LINE_RUN, 0, XPT_EVENT_RUN, false, "kDEl");
	driver_event(f, LINE_DONE, 0, XPT_EVENT_DONE, false, "k");
	return f;
}

static void queue_on(struct fixture *f, __u64 line, __u64 key, __u64 time)
{
	OTHER(f, LINE_QUEUE, time, key, "dev", "gfx", line);
}

static void run_on(struct fixture *f, __u64 line, __u64 key, __u64 time)
{
	OTHER(f, LINE_RUN, time, key, "dev", "gfx", line);
}

static void done_of(struct fixture *f, __u64 key, __u64 time)
{
	OTHER(f, LINE_DONE, time, key);
}

Test(model_device_jobs, whose_end_was_lost_end_with_later_ones_of_their_timeline)
{
	struct fixture *f = fixture_timelines(XPT_PAIRING_UNIQUE);

	queue_on(f, U(7), U(1), 100);
	queue_on(f, U(7), U(2), 101);
	queue_on(f, U(8), U(3), 102);
	run_on(f, U(7), U(1), 110); /* its end is lost */
	run_on(f, U(8), U(3), 120);
	run_on(f, U(7), U(2), 130); /* shows nothing: a queue may run several at once */
	done_of(f, U(2), 150);
	done_of(f, U(3), 160);
	queue_on(f, U(7), U(4), 300);
	run_on(f, U(7), U(4), 310);
	done_of(f, U(4), 330);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 4);
	EXPECT_TIMES(job_nth(f, 0), 101, 130, 150);
	EXPECT_TIMES(job_nth(f, 1), 102, 120, 160);
	EXPECT_TIMES(job_nth(f, 2), 300, 310, 330);
	EXPECT_TIMES(job_nth(f, 3), 100, 110, 0);
	cr_assert_eq(job_nth(f, 3)->time, 150);
	cr_assert_eq(model_queue(f->model, 0)->busy_time, 50 + 20);
	cr_assert_eq(model_queue(f->model, 0)->jobs, 3);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOB_ENDS), 1);
	fixture_free(f);
}

/* Both of its events behind the first were lost: it waits no more. */
Test(model_device_jobs, whose_run_and_end_were_lost)
{
	struct fixture *f = fixture_timelines(XPT_PAIRING_LATEST);

	queue_on(f, U(7), U(1), 100);
	queue_on(f, U(7), U(2), 101);
	run_on(f, U(7), U(2), 130);
	done_of(f, U(2), 150);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(seen_nth(f, EVENT_QUEUE, f->kinds[EVENT_QUEUE] - 1)->event.queue.waiting, 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOB_ENDS), 1);
	fixture_free(f);
}

/* Tracing begins between a job's queueing and its run: it is seen later than one that was queued behind it. */
Test(model_device_jobs, of_which_nobody_knows_who_was_queued_first)
{
	struct fixture *f = fixture_timelines(XPT_PAIRING_UNIQUE);

	queue_on(f, U(7), U(2), 100);
	run_on(f, U(7), U(1), 110);
	done_of(f, U(1), 120);
	run_on(f, U(7), U(2), 130);
	done_of(f, U(2), 150);
	cr_assert_eq(model_flush(f->model), 0);
	EXPECT_TIMES(job_nth(f, 0), 0, 110, 120);
	EXPECT_TIMES(job_nth(f, 1), 100, 130, 150);
	cr_assert_eq(model_queue(f->model, 0)->busy_time, 10 + 20);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOB_ENDS), 0);
	fixture_free(f);
}

static int use_of_queueing(void *context, const struct model_queue_use *use)
{
	if (use->tgid == 900)
		*(struct model_queue_use *)context = *use;
	return 0;
}

/* A driver that does not keep the order: no end is lost, and what comes later is not taken for lost. */
Test(model_device_jobs, that_end_behind_later_ones_of_their_timeline)
{
	struct fixture *f = fixture_timelines(XPT_PAIRING_UNIQUE);
	struct model_queue_use use = {};
	const struct model_queue *known;

	for (__u64 time = 100; time < 300; time += 100) {
		queue_on(f, U(7), time, time - 1);
		run_on(f, U(7), time, time);
		run_on(f, U(7), time + 1, time + 10);
		done_of(f, time + 1, time + 20);
		run_on(f, U(7), time, time + 25); /* says nothing new */
		done_of(f, time, time + 50);
	}
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 4);
	EXPECT_TIMES(job_nth(f, 1), 99, 100, 150);
	EXPECT_TIMES(job_nth(f, 3), 199, 200, 250);
	known = model_queue(f->model, 0);
	cr_assert_eq(model_queue_count(f->model), 1);
	cr_assert_eq(known->jobs, 4);
	cr_assert_eq(known->busy_time, 20 + 50, "the first time it was not known");
	cr_assert_eq(model_queue_uses(f->model, use_of_queueing, &use), 0);
	cr_assert_eq(use.jobs, 2, "those that were queued by it");
	cr_assert_eq(use.device_time, 10 + 5 + 10 + 5 + 30);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOB_ENDS), 0);
	fixture_free(f);
}

/* An end that is not seen within the grace is lost, and one that comes then is of no job. */
Test(model_device_jobs, that_were_passed_are_lost_after_a_minute)
{
	struct fixture *f = fixture_timelines(XPT_PAIRING_UNIQUE);

	TARGET(f, LINE_QUEUE, 7, 8, 100, U(1), "dev", "gfx", U(7));
	run_on(f, U(7), U(1), 110);
	run_on(f, U(7), U(2), 120);
	done_of(f, U(2), 150);
	cr_assert_eq(feed_pass(f, 151), 0);
	cr_assert_eq(feed_pass(f, 150 + JOB_GRACE), 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOB_ENDS), 0);
	cr_assert_eq(feed_pass(f, 151 + JOB_GRACE), 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOB_ENDS), 1);
	done_of(f, U(1), 160 + JOB_GRACE);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 2);
	EXPECT_TIMES(job_nth(f, 1), 100, 110, 0);
	fixture_free(f);
}

/* A key that is used again shows that its job has ended, of jobs that ran: others may never have. */
Test(model_device_jobs, whose_key_is_used_again_are_lost)
{
	struct fixture *f = fixture_timelines(XPT_PAIRING_LATEST);

	queue_on(f, U(7), U(1), 100);
	queue_on(f, U(8), U(1), 110);
	run_on(f, U(8), U(1), 120);
	queue_on(f, U(9), U(1), 130);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOB_ENDS), 1);
	fixture_free(f);
}

/* What is joined, and by how many bits. */
static void two_drivers(struct fixture *f, const char *join)
{
	describe(f, 0, XPT_PAIRING_UNIQUE, 64, "");
	describe(f, 1, XPT_PAIRING_UNIQUE, 64, join);
}

#define HIGH(n) (U(1) << 32 | (n))

static size_t jobs_of_two_keys(const char *join, __u64 first, __u64 second)
{
	struct fixture *f = fixture_toy();
	size_t jobs;

	two_drivers(f, join);
	OTHER(f, QUEUE, 100, first, U(3), "dev", "gfx", "", U(0), U(0));
	OTHER(f, EVENTS + QUEUE, 105, second, U(3), "dev", "gfx", "", U(0), U(0));
	OTHER(f, EVENTS + RUN, 110, second, U(3), "dev", "gfx");
	OTHER(f, DONE, 120, first, U(3), U(0));
	cr_assert_eq(model_flush(f->model), 0);
	jobs = f->kinds[EVENT_JOB];
	if (jobs == 1) {
		EXPECT_TIMES(job_nth(f, 0), 100, 110, 120);
		cr_assert_str_eq(queue_text(job_nth(f, 0)->queue), "driver_1/dev/gfx", "the one that reported the run");
	}
	fixture_free(f);
	return jobs;
}

Test(model_device_jobs, keys_of_drivers_meet_where_they_are_joined)
{
	const char *wide = ",\"joins\":[{\"driver\":0,\"bits\":64}]",
		   *narrow = ",\"joins\":[{\"driver\":0,\"bits\":32}]";

	cr_assert_eq(jobs_of_two_keys("", 2, 2), 2);
	cr_assert_eq(jobs_of_two_keys(wide, 2, 2), 1);
	cr_assert_eq(jobs_of_two_keys(wide, HIGH(2), HIGH(2)), 1);
	cr_assert_eq(jobs_of_two_keys(wide, 2, HIGH(2)), 2);
	cr_assert_eq(jobs_of_two_keys(narrow, 2, HIGH(2)), 1);
	cr_assert_eq(jobs_of_two_keys(narrow, 2, HIGH(3)), 2);
}

Test(model_device_jobs, bits_that_are_compared_within_a_driver)
{
	struct fixture *f = fixture_toy();

	describe(f, 0, XPT_PAIRING_UNIQUE, 64, "");
	describe(f, 1, XPT_PAIRING_UNIQUE, 32, "");
	/* Joined, so that they lie in the same place whatever is compared. */
	describe(f, 2, XPT_PAIRING_UNIQUE, 64, ",\"joins\":[{\"driver\":1,\"bits\":32}]");
	queue(f, 2, 100);
	done(f, HIGH(2), 110);
	OTHER(f, EVENTS + QUEUE, 200, U(1), U(2), "dev", "gfx", "", U(0), U(0));
	OTHER(f, EVENTS + DONE, 210, U(1), HIGH(2), U(0));
	OTHER(f, 2 * EVENTS + QUEUE, 300, U(1), U(2), "dev", "gfx", "", U(0), U(0));
	OTHER(f, 2 * EVENTS + DONE, 310, U(1), HIGH(2), U(0));
	OTHER(f, EVENTS + DONE, 320, U(1), HIGH(2), U(0));
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 3);
	EXPECT_TIMES(job_nth(f, 0), 200, 0, 210);
	EXPECT_TIMES(job_nth(f, 1), 300, 0, 320);
	EXPECT_TIMES(job_nth(f, 2), 100, 0, 0);
	fixture_free(f);
}

Test(model_device_jobs, drivers_do_not_meet_by_way_of_others)
{
	struct fixture *f = fixture_toy();

	describe(f, 0, XPT_PAIRING_UNIQUE, 64, "");
	describe(f, 1, XPT_PAIRING_UNIQUE, 64, ",\"joins\":[{\"driver\":0,\"bits\":64}]");
	describe(f, 2, XPT_PAIRING_UNIQUE, 64, ",\"joins\":[{\"driver\":1,\"bits\":64}]");
	queue(f, 2, 100);
	OTHER(f, 2 * EVENTS + DONE, 110, U(1), U(2), U(0));
	OTHER(f, EVENTS + DONE, 120, U(1), U(2), U(0));
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 1);
	EXPECT_TIMES(job_nth(f, 0), 100, 0, 120);
	fixture_free(f);
}

Test(model_device_jobs, keys_with_different_numbers_of_parts_never_meet)
{
	struct fixture *f = fixture_toy();

	describe(f, 0, XPT_PAIRING_UNIQUE, 64, "");
	driver(f, 1, "one_part", XPT_PAIRING_UNIQUE, 64, ",\"joins\":[{\"driver\":0,\"bits\":64}]");
	driver_event(f, 100, 1, XPT_EVENT_DONE, false, "k");
	OTHER(f, QUEUE, 100, U(0), U(0), "dev", "gfx", "", U(0), U(0));
	OTHER(f, 100, 110, U(0));
	cr_assert_eq(model_flush(f->model), 0);
	EXPECT_TIMES(job_nth(f, 0), 100, 0, 0);
	fixture_free(f);
}

/* The join of two drivers is reported while jobs of both are open, some of them with equal keys in one driver. */
Test(model_device_jobs, a_join_that_comes_late)
{
	struct fixture *f = fixture_toy();
	__u64 i;

	describe(f, 1, XPT_PAIRING_UNIQUE, 64, "");
	describe(f, 2, XPT_PAIRING_ORDER, 64, "");
	for (i = 0; i < 100; i++) {
		OTHER(f, EVENTS + QUEUE, 100 + i, HIGH(1), i, "dev", "gfx", "", U(0), U(0));
		OTHER(f, 2 * EVENTS + QUEUE, 100 + i, HIGH(2), U(0), "dev", "gfx", "", U(0), U(0));
	}
	cr_assert_eq(feed_pass(f, 300), 0);
	cr_assert_eq(feed_pass(f, 400), 0);
	describe(f, 0, XPT_PAIRING_UNIQUE, 64, ",\"joins\":[{\"driver\":1,\"bits\":32},{\"driver\":2,\"bits\":64}]");
	for (i = 0; i < 100; i++) {
		OTHER(f, DONE, 1000 + 10 * i, U(1), i, U(0));
		OTHER(f, 2 * EVENTS + DONE, 1005 + 10 * i, HIGH(2), U(0), U(0));
	}
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 200);
	for (i = 0; i < 100; i++) {
		EXPECT_TIMES(job_nth(f, 2 * i), 100 + i, 0, 1000 + 10 * i);
		EXPECT_TIMES(job_nth(f, 2 * i + 1), 100 + i, 0, 1005 + 10 * i);
	}
	fixture_free(f);
}

Test(model_device_jobs, a_key_that_could_not_be_read_says_nothing)
{
	struct fixture *f = fixture_driver(XPT_PAIRING_UNIQUE, 64);
	struct event_record record;

	queue(f, 0, 100);
	record = event_make(DONE, 0, 0, false, 110, U(1), U(0), U(0));
	record.event.valid = 0xfd;
	cr_assert_eq(feed_event(f, record), 0);
	record = event_make(ERROR, 0, 0, false, 111, U(1), U(0), U(0));
	record.event.valid = 0xfe;
	cr_assert_eq(feed_event(f, record), 0);
	record = event_make(QUEUE, 0, 0, false, 112, U(1), U(0), "", "", "", U(0), U(0));
	record.event.valid = 0xfc;
	cr_assert_eq(feed_event(f, record), 0);
	record = event_make(DONE, 0, 0, false, 120, U(1), U(0), U(9));
	record.event.valid = 3;
	cr_assert_eq(feed_event(f, record), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 1);
	EXPECT_TIMES(job_nth(f, 0), 100, 0, 120);
	cr_assert_not(job_nth(f, 0)->failed);
	cr_assert_eq(job_nth(f, 0)->have, 1u << XPT_FIELD_CONTEXT | 1u << XPT_FIELD_COUNT, "no status was read");
	cr_assert_eq(seen_nth(f, EVENT_DEVICE, 0)->event.device.job, 0);
	fixture_free(f);
}

Test(model_device_jobs, open_ones_are_given_up_at_the_end)
{
	struct fixture *f = fixture_driver(XPT_PAIRING_UNIQUE, 64);

	queue(f, 1, 100);
	queue(f, 2, 101);
	run(f, 2, 110);
	TARGET(f, QUEUE, 7, 8, 120, U(1), U(3), "dev", "gfx", "", U(0), U(0));
	cr_assert_eq(feed_end(f, 200), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 3);
	EXPECT_TIMES(job_nth(f, 0), 100, 0, 0);
	EXPECT_TIMES(job_nth(f, 1), 101, 110, 0);
	EXPECT_TIMES(job_nth(f, 2), 120, 0, 0);
	cr_assert_eq(job_nth(f, 1)->time, 200);
	cr_assert_eq(model_queue(f->model, 0)->jobs, 0);
	cr_assert_eq(model_queue(f->model, 0)->busy_time, 90, "it was busy until then");
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOBS), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 3);
	fixture_free(f);
}

Test(model_device_jobs, a_recording_that_was_cut_short)
{
	struct fixture *f = fixture_driver(XPT_PAIRING_UNIQUE, 64);

	queue(f, 1, 100);
	run(f, 1, 110);
	queue(f, 2, 150);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 2);
	EXPECT_TIMES(job_nth(f, 0), 100, 110, 0);
	cr_assert_eq(job_nth(f, 0)->time, 150);
	fixture_free(f);
}

Test(model_device_jobs, more_than_are_followed)
{
	struct fixture *f = fixture_driver(XPT_PAIRING_UNIQUE, 64);
	const __u64 extra = 1000;
	__u64 i;

	f->quiet = true;
	for (i = 0; i < MODEL_JOBS_MAX + extra; i++)
		queue(f, i, 100 + i);
	cr_assert_eq(feed_pass(f, 1000000), 0);
	cr_assert_eq(feed_pass(f, 1000001), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], extra);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOBS), extra);
	for (i = 0; i < MODEL_JOBS_MAX + extra; i++)
		done(f, i, 2000000 + i);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], MODEL_JOBS_MAX + extra, "each is reported once");
	cr_assert_eq(model_queue(f->model, 0)->jobs, MODEL_JOBS_MAX, "the oldest had made room");
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOBS), extra);
	fixture_free(f);
}

/* A thread that submits outside of every call keeps them as long as there is room, and nothing is missing. */
Test(model_device_jobs, ended_ones_that_no_call_comes_for_make_room)
{
	struct fixture *f = fixture_driver(XPT_PAIRING_UNIQUE, 64);
	const __u64 step = 2 * JOB_GRACE;
	__u64 i;

	f->quiet = true;
	queue(f, 0, 1);
	for (i = 1; i <= 2 * MODEL_JOBS_MAX; i++) {
		TARGET(f, QUEUE, 7, 8, i * step, U(1), i, "dev", "gfx", "", U(0), U(0));
		done(f, i, i * step + 1);
	}
	done(f, 0, i * step);
	cr_assert_eq(feed_pass(f, (i + 1) * step), 0);
	cr_assert_eq(feed_pass(f, (i + 1) * step + 1), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], i);
	cr_assert_eq(model_queue(f->model, 0)->jobs, i, "the one that goes on has not made room for them");
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOBS), 0);
	/* Now it matters. */
	CALL_1(f, TOY_COPY, 7, 8, step, (i + 2) * step, 2, U(0), U(0));
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_JOBS), MODEL_JOBS_MAX + 1);
	fixture_free(f);
}

/* An unnecessarily plain model of the same rules, to compare with. */
#define PLAIN_JOBS 4096

struct plain_job {
	unsigned int driver;
	__u64 key[2];
	__u64 queued, runs, done, over;
	bool open, running, queue_seen;
	bool reported[3 * EVENTS];
};

struct plain {
	struct plain_job jobs[PLAIN_JOBS];
	size_t count;
	enum xpt_pairing pairing[3];
	unsigned int bits[3][3];
};

static bool plain_equal(const struct plain *plain, const struct plain_job *job, unsigned int driver, const __u64 *key)
{
	const unsigned int bits = plain->bits[driver][job->driver];
	const __u64 mask = bits == 32 ? 0xffffffff : ~U(0);

	return job->open && bits && (job->key[0] & mask) == (key[0] & mask) && (job->key[1] & mask) == (key[1] & mask);
}

static struct plain_job *plain_new(struct plain *plain, unsigned int driver, const __u64 *key)
{
	struct plain_job *job = &plain->jobs[plain->count++];

	cr_assert_leq(plain->count, PLAIN_JOBS);
	*job = (struct plain_job){ .driver = driver, .key = { key[0], key[1] }, .open = true };
	return job;
}

/*
 * The oldest one with ORDER, else the newest: keys that differ for one driver may be equal for another. With an event, the
 * oldest that it has not reported: that they were queued (whose queueing was seen), or that they run.
 */
static struct plain_job *plain_find(struct plain *plain, unsigned int driver, const __u64 *key, int event)
{
	const bool oldest = plain->pairing[driver] == XPT_PAIRING_ORDER;
	struct plain_job *job;
	size_t i;

	for (i = 0; i < plain->count; i++) {
		job = &plain->jobs[oldest ? i : plain->count - 1 - i];
		if (!plain_equal(plain, job, driver, key))
			continue;
		if (event >= 0 && (job->reported[event] || (event % EVENTS == QUEUE && !job->queue_seen)))
			continue;
		return job;
	}
	return NULL;
}

static void plain_queue(struct plain *plain, unsigned int driver, unsigned int event, const __u64 *key, __u64 time)
{
	const enum xpt_pairing pairing = plain->pairing[driver];
	struct plain_job *job = plain_find(plain, driver, key, pairing == XPT_PAIRING_ORDER ? (int)event : -1);

	if (job && (job->reported[event] || (!job->queue_seen && pairing == XPT_PAIRING_LATEST))) {
		if (pairing == XPT_PAIRING_UNIQUE)
			return;
		job->open = false;
		job->over = time;
		job = NULL;
	}
	if (!job)
		job = plain_new(plain, driver, key);
	job->reported[event] = true;
	if (!job->queue_seen && !job->running)
		job->queued = time;
	job->queue_seen = true;
}

static void plain_run(struct plain *plain, unsigned int driver, unsigned int event, const __u64 *key, __u64 time)
{
	const bool order = plain->pairing[driver] == XPT_PAIRING_ORDER;
	struct plain_job *job = plain_find(plain, driver, key, order ? (int)event : -1);

	if (!job)
		job = plain_new(plain, driver, key);
	job->reported[event] = true;
	if (job->running)
		return;
	job->running = true;
	job->runs = time;
}

static void plain_done(struct plain *plain, unsigned int driver, const __u64 *key, __u64 time)
{
	struct plain_job *job = plain_find(plain, driver, key, -1);

	if (!job)
		return;
	job->open = false;
	job->done = job->over = time;
}

static __u64 random_next(__u64 *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

static void random_event(struct fixture *f, struct plain *plain, __u64 *state, __u64 time)
{
	const unsigned int driver = (unsigned int)(random_next(state) % 3), base = driver * EVENTS;
	const __u64 key[2] = { random_next(state) % 3 | random_next(state) % 2 << 32,
			       random_next(state) % 3 | random_next(state) % 2 << 32 };
	const bool order = plain->pairing[driver] == XPT_PAIRING_ORDER;

	switch (random_next(state) % 6) {
	case 0:
	case 1:
		OTHER(f, base + QUEUE, time, key[0], key[1], "dev", "gfx", "", U(0), U(0));
		plain_queue(plain, driver, base + QUEUE, key, time);
		break;
	case 2:
		if (order)
			break;
		OTHER(f, base + QUEUE_2, time, key[0], key[1], "dev", "gfx", U(0), U(0));
		plain_queue(plain, driver, base + QUEUE_2, key, time);
		break;
	case 3:
		OTHER(f, base + RUN, time, key[0], key[1], "dev", "gfx");
		plain_run(plain, driver, base + RUN, key, time);
		break;
	default:
		OTHER(f, base + DONE, time, key[0], key[1], U(0));
		plain_done(plain, driver, key, time);
		break;
	}
}

static const struct event_job *job_find(const struct fixture *f, const struct plain_job *job)
{
	size_t i;

	for (i = 0; i < f->count; i++)
		if (f->seen[i].event.kind == EVENT_JOB && f->seen[i].event.job.time == job->over &&
		    f->seen[i].event.job.queued == job->queued && f->seen[i].event.job.runs == job->runs &&
		    f->seen[i].event.job.done == job->done)
			return &f->seen[i].event.job;
	return NULL;
}

/* Drivers 0 and 1 are of one pairing and joined by 32 bits; driver 2 stands alone. */
static void compare(__u64 seed, enum xpt_pairing joined, unsigned int bits_0, unsigned int bits_1,
		    enum xpt_pairing alone)
{
	struct plain *plain = calloc(1, sizeof(*plain));
	struct fixture *f = fixture_toy();
	__u64 state = seed, i;
	const __u64 end = 3001;

	plain->pairing[0] = plain->pairing[1] = joined;
	plain->pairing[2] = alone;
	plain->bits[0][0] = bits_0;
	plain->bits[1][1] = bits_1;
	plain->bits[2][2] = 64;
	plain->bits[0][1] = plain->bits[1][0] = 32;
	describe(f, 0, joined, bits_0, ",\"joins\":[{\"driver\":1,\"bits\":32}]");
	describe(f, 1, joined, bits_1, "");
	describe(f, 2, alone, 64, "");
	for (i = 1; i < end; i++)
		random_event(f, plain, &state, i);
	cr_assert_eq(feed_end(f, end), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], plain->count, "seed %llu: %zu reported, %zu expected", seed,
		     f->kinds[EVENT_JOB], plain->count);
	for (i = 0; i < plain->count; i++) {
		if (plain->jobs[i].open)
			plain->jobs[i].over = end;
		cr_assert_not_null(job_find(f, &plain->jobs[i]), "seed %llu: job %llu, queued %llu", seed, i,
				   plain->jobs[i].queued);
	}
	fixture_free(f);
	free(plain);
}

/* Jobs in order are only defined where it does not matter who reported the key first. */
Test(model_device_jobs, compared_with_a_plain_model)
{
	__u64 seed;

	for (seed = 1; seed <= 20; seed++) {
		compare(seed, XPT_PAIRING_UNIQUE, 64, 64, XPT_PAIRING_ORDER);
		compare(seed, XPT_PAIRING_LATEST, 32, 64, XPT_PAIRING_UNIQUE);
		compare(seed, XPT_PAIRING_LATEST, 64, 32, XPT_PAIRING_LATEST);
		compare(seed, XPT_PAIRING_ORDER, 32, 32, XPT_PAIRING_ORDER);
	}
}
