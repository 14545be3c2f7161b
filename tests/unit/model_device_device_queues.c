/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/device/jobs.h"

#include "model_driver_records.h"

enum { QUEUE, RUN, DONE, NUMBERED, PLACE };

static struct fixture *fixture_driver(void)
{
	struct fixture *f = fixture_toy();

	driver(f, 0, "one", XPT_PAIRING_UNIQUE, 64, "");
	driver_event(f, QUEUE, 0, XPT_EVENT_QUEUE, true, "kDE");
	driver_event(f, RUN, 0, XPT_EVENT_RUN, false, "kDE");
	driver_event(f, DONE, 0, XPT_EVENT_DONE, false, "kDE");
	driver_event(f, NUMBERED, 0, XPT_EVENT_QUEUE, true, "kdg");
	driver(f, 1, "two", XPT_PAIRING_UNIQUE, 64, ",\"joins\":[{\"driver\":0,\"bits\":64}]");
	driver_event(f, 10 + QUEUE, 1, XPT_EVENT_QUEUE, true, "kDE");
	driver_event(f, 10 + RUN, 1, XPT_EVENT_RUN, false, "kDE");
	driver_event(f, 10 + DONE, 1, XPT_EVENT_DONE, false, "k");
	return f;
}

static const struct event_queue *queue_nth(const struct fixture *f, size_t nth)
{
	const struct seen *seen = seen_nth(f, EVENT_QUEUE, nth);

	cr_assert_not_null(seen, "there is no change of a queue number %zu", nth);
	return &seen->event.queue;
}

#define EXPECT_QUEUE(f, nth, when, waits, runs)                                               \
	do {                                                                                  \
		cr_assert_eq(queue_nth(f, nth)->time, when, "%llu", queue_nth(f, nth)->time); \
		cr_assert_eq(queue_nth(f, nth)->waiting, waits);                              \
		cr_assert_eq(queue_nth(f, nth)->running, runs);                               \
	} while (0)

Test(model_device_device_queues, every_change_is_reported)
{
	struct fixture *f = fixture_driver();
	const struct model_queue *queue;

	OTHER(f, QUEUE, 100, U(1), "dev", "gfx");
	OTHER(f, QUEUE, 110, U(2), "dev", "gfx");
	OTHER(f, RUN, 120, U(1), "dev", "gfx");
	OTHER(f, RUN, 130, U(2), "dev", "gfx");
	OTHER(f, DONE, 150, U(2), "dev", "gfx");
	OTHER(f, DONE, 160, U(1), "dev", "gfx");
	OTHER(f, QUEUE, 300, U(3), "dev", "gfx");
	OTHER(f, DONE, 310, U(3), "dev", "gfx");
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_QUEUE], 8);
	EXPECT_QUEUE(f, 0, 100, 1, 0);
	EXPECT_QUEUE(f, 1, 110, 2, 0);
	EXPECT_QUEUE(f, 2, 120, 1, 1);
	EXPECT_QUEUE(f, 3, 130, 0, 2);
	EXPECT_QUEUE(f, 4, 150, 0, 1);
	EXPECT_QUEUE(f, 5, 160, 0, 0);
	EXPECT_QUEUE(f, 6, 300, 1, 0);
	EXPECT_QUEUE(f, 7, 310, 0, 0);
	cr_assert_eq(queue_nth(f, 4)->busy_time, 30);
	cr_assert_eq(queue_nth(f, 7)->busy_time, 40, "a job that only waits keeps nothing busy");
	queue = model_queue(f->model, 0);
	cr_assert_eq(queue->id, 1);
	cr_assert_eq(queue_nth(f, 0)->queue, queue);
	cr_assert_eq(queue->busy_time, 40);
	cr_assert_eq(queue->target_time, 0);
	cr_assert_eq(queue->jobs, 3);
	cr_assert_eq(queue->first, 100);
	cr_assert_eq(queue->last, 310);
	fixture_free(f);
}

Test(model_device_device_queues, what_one_event_lacks_another_tells)
{
	struct fixture *f = fixture_driver();

	/* Nothing, then the device, then the engine. */
	OTHER(f, QUEUE, 100, U(1), "", "");
	OTHER(f, 10 + QUEUE, 101, U(1), "dev", "");
	OTHER(f, 10 + RUN, 102, U(1), "", "gfx");
	OTHER(f, 10 + DONE, 103, U(1));
	/* Only the end tells. */
	OTHER(f, QUEUE, 200, U(2), "", "");
	OTHER(f, DONE, 201, U(2), "dev", "end");
	/* The first run that tells an engine. */
	OTHER(f, QUEUE, 300, U(3), "dev", "a");
	OTHER(f, RUN, 301, U(3), "other", "");
	OTHER(f, 10 + RUN, 302, U(3), "", "b");
	OTHER(f, RUN, 303, U(3), "dev", "c");
	OTHER(f, 10 + DONE, 304, U(3));
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(queue_text(job_nth(f, 0)->queue), "two/dev/gfx");
	cr_assert_str_eq(queue_text(job_nth(f, 1)->queue), "one/dev/end");
	cr_assert_str_eq(queue_text(job_nth(f, 2)->queue), "two/dev/b");
	fixture_free(f);
}

/* The job waits in one queue, as far as known, and moves when it runs in another one. */
Test(model_device_device_queues, a_job_moves_with_what_is_known)
{
	struct fixture *f = fixture_driver();

	OTHER(f, QUEUE, 100, U(1), "", "ring");
	OTHER(f, 10 + QUEUE, 101, U(1), "dev", "gfx");
	OTHER(f, 10 + RUN, 110, U(1), "dev", "gfx");
	OTHER(f, DONE, 120, U(1), "", "");
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_QUEUE], 6);
	cr_assert_str_eq(queue_text(queue_nth(f, 0)->queue), "one//ring");
	EXPECT_QUEUE(f, 0, 100, 1, 0);
	cr_assert_str_eq(queue_text(queue_nth(f, 1)->queue), "one//ring");
	EXPECT_QUEUE(f, 1, 101, 0, 0);
	cr_assert_str_eq(queue_text(queue_nth(f, 2)->queue), "one/dev/ring");
	EXPECT_QUEUE(f, 2, 101, 1, 0);
	cr_assert_str_eq(queue_text(queue_nth(f, 3)->queue), "one/dev/ring");
	EXPECT_QUEUE(f, 3, 110, 0, 0);
	cr_assert_str_eq(queue_text(queue_nth(f, 4)->queue), "two/dev/gfx");
	EXPECT_QUEUE(f, 4, 110, 0, 1);
	EXPECT_QUEUE(f, 5, 120, 0, 0);
	cr_assert_eq(model_queue(f->model, 1)->busy_time, 0);
	cr_assert_eq(model_queue(f->model, 1)->jobs, 0);
	cr_assert_eq(model_queue(f->model, 2)->busy_time, 10);
	cr_assert_eq(model_queue(f->model, 2)->jobs, 1);
	fixture_free(f);
}

/* The first event that tells of its run does not tell the engine. */
Test(model_device_device_queues, a_running_job_takes_its_share_along)
{
	struct fixture *f = fixture_driver();

	TARGET(f, QUEUE, 7, 8, 100, U(1), "dev", "");
	TARGET(f, QUEUE, 7, 9, 100, U(2), "dev", "");
	OTHER(f, RUN, 110, U(1), "", "");
	OTHER(f, RUN, 110, U(2), "", "");
	OTHER(f, 10 + RUN, 130, U(1), "", "gfx");
	OTHER(f, DONE, 160, U(1), "", "");
	OTHER(f, DONE, 170, U(2), "", "");
	CALL_1(f, TOY_COPY, 7, 8, U(90), U(200), 2, U(0), U(0));
	CALL_1(f, TOY_COPY, 7, 9, U(90), U(200), 2, U(0), U(0));
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(call_nth(f, 0)->device.busy_time, 10 + 30);
	cr_assert_eq(call_nth(f, 1)->device.busy_time, 10 + 40);
	cr_assert_eq(model_queue(f->model, 0)->busy_time, 60);
	cr_assert_eq(model_queue(f->model, 0)->target_time, 60);
	cr_assert_eq(model_queue(f->model, 1)->busy_time, 30);
	cr_assert_eq(model_queue(f->model, 1)->target_time, 30);
	fixture_free(f);
}

Test(model_device_device_queues, numbers_are_names_in_decimal)
{
	struct fixture *f = fixture_driver();

	OTHER(f, NUMBERED, 100, U(1), U(128), U(0));
	OTHER(f, NUMBERED, 101, U(2), ~U(0), ~U(0));
	OTHER(f, NUMBERED, 102, U(3), U(0), U(1) << 63);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(queue_text(job_nth(f, 0)->queue), "one/128/0");
	cr_assert_str_eq(queue_text(job_nth(f, 1)->queue), "one/18446744073709551615/-1");
	cr_assert_str_eq(queue_text(job_nth(f, 2)->queue), "one/0/-9223372036854775808");
	fixture_free(f);
}

Test(model_device_device_queues, a_name_without_a_terminator)
{
	struct fixture *f = fixture_driver();

	OTHER(f, QUEUE, 100, U(1), "0123456789012345678901234567890123456789", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ");
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(job_nth(f, 0)->queue->device, "0123456789012345678901234567890");
	cr_assert_str_eq(job_nth(f, 0)->queue->engine, "abcdefghijklmnopqrstuvwxyzABCDE");
	fixture_free(f);
}

Test(model_device_device_queues, further_ones_are_one)
{
	struct fixture *f = fixture_driver();
	const unsigned int more = 10;
	const struct model_queue *queue;
	char name[16];
	unsigned int i;

	f->quiet = true;
	for (i = 0; i < MODEL_QUEUES_MAX + more; i++) {
		snprintf(name, sizeof(name), "%u", i);
		OTHER(f, QUEUE, 100 + i, U(i), "dev", name);
		OTHER(f, RUN, 100000 + i, U(i), "dev", name);
		OTHER(f, DONE, 200000 + i, U(i), "dev", name);
	}
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_queue_count(f->model), MODEL_QUEUES_MAX + 1);
	queue = model_queue(f->model, MODEL_QUEUES_MAX);
	cr_assert_str_eq(queue_text(queue), "//(others)");
	cr_assert_eq(queue->jobs, more);
	cr_assert_eq(queue->busy_time, 100000 + more - 1);
	cr_assert_eq(queue->id, MODEL_QUEUES_MAX + 1);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_NAMES), more);
	cr_assert_eq(model_queue(f->model, 5)->jobs, 1);
	fixture_free(f);
}

/* What jobs take of the time is compared with a sum over all stretches between events. */
#define JOBS 400
#define QUEUES 3
#define END 30000

struct truth {
	__u64 queued, runs, done; /* done beyond END: not seen */
	unsigned int queue;
	bool target;
};

static __u64 random_next(__u64 *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

static unsigned int running_at(const struct truth *truths, unsigned int queue, __u64 time)
{
	unsigned int count = 0, i;

	for (i = 0; i < JOBS; i++)
		count += truths[i].queue == queue && truths[i].runs <= time && time < truths[i].done;
	return count;
}

static void shares_sum(const struct truth *truths, long double *share, __u64 *busy, long double *target)
{
	unsigned int i, queue, running;
	__u64 time;

	for (time = 0; time < END; time++)
		for (queue = 0; queue < QUEUES; queue++) {
			running = running_at(truths, queue, time);
			busy[queue] += running > 0;
			for (i = 0; running && i < JOBS; i++) {
				if (truths[i].queue != queue || time < truths[i].runs || time >= truths[i].done)
					continue;
				share[i] += 1.0L / running;
				target[queue] += truths[i].target ? 1.0L / running : 0;
			}
		}
}

static void truths_make(struct truth *truths, __u64 seed)
{
	__u64 state = seed;
	unsigned int i;

	for (i = 0; i < JOBS; i++) {
		truths[i].queued = 1 + random_next(&state) % (END - 2000);
		truths[i].runs = truths[i].queued + random_next(&state) % 300;
		truths[i].done = truths[i].runs + random_next(&state) % 700 + (i % 50 ? 0 : 2 * END);
		truths[i].queue = (unsigned int)(random_next(&state) % QUEUES);
		truths[i].target = random_next(&state) % 2;
	}
}

/* Records of one time are delivered in the order in which they come. */
static void truths_feed(struct fixture *f, const struct truth *truths)
{
	static const char *const names[QUEUES] = { "a", "b", "c" };
	unsigned int i;

	for (i = 0; i < JOBS; i++)
		cr_assert_eq(feed_event(f, event_make(QUEUE, 7, 100 + i, truths[i].target, truths[i].queued, U(i), "d",
						      names[truths[i].queue])),
			     0);
	for (i = 0; i < JOBS; i++)
		OTHER(f, RUN, truths[i].runs, U(i), "", "");
	for (i = 0; i < JOBS; i++)
		if (truths[i].done <= END)
			OTHER(f, DONE, truths[i].done, U(i), "", "");
	/* A call around each, so that it tells the share. */
	for (i = 0; i < JOBS; i++)
		CALL_1(f, TOY_COPY, 7, 100 + i, truths[i].queued, END, 2, U(0), U(0));
}

Test(model_device_device_queues, shares_of_the_time_compared_with_a_plain_sum)
{
	static struct truth truths[JOBS];
	long double share[JOBS] = {}, target[QUEUES] = {};
	__u64 busy[QUEUES] = {}, seed;
	struct fixture *f;
	unsigned int i;

	for (seed = 1; seed <= 3; seed++) {
		memset(share, 0, sizeof(share));
		memset(target, 0, sizeof(target));
		memset(busy, 0, sizeof(busy));
		truths_make(truths, seed);
		shares_sum(truths, share, busy, target);
		f = fixture_driver();
		truths_feed(f, truths);
		cr_assert_eq(feed_pass(f, END), 0);
		cr_assert_eq(feed_pass(f, END + 1), 0);
		for (i = 0; i < model_queue_count(f->model); i++) {
			const struct model_queue *queue = model_queue(f->model, i);
			const unsigned int at = (unsigned int)(*queue->engine - 'a');

			/* What still runs is counted up to the queue's last event. */
			cr_assert_leq(queue->busy_time, busy[at]);
			cr_assert_geq(queue->busy_time + END - queue->last, busy[at]);
		}
		cr_assert_eq(feed_end(f, END), 0);
		for (i = 0; i < QUEUES; i++) {
			const struct model_queue *queue = model_queue(f->model, i);
			const unsigned int at = (unsigned int)(*queue->engine - 'a');

			cr_assert_eq(queue->busy_time, busy[at]);
			cr_assert_float_eq((double)queue->target_time, (double)target[at], 1.1);
		}
		for (i = 0; i < JOBS; i++) {
			const struct event_call *call = call_nth(f, i);
			const __u64 expected = truths[call->tid - 100].done <= END;

			if (!truths[call->tid - 100].target)
				continue;
			cr_assert_eq(call->device.jobs, 1);
			cr_assert_eq(call->device.unfinished, 1 - expected);
			if (expected)
				cr_assert_float_eq((double)call->device.busy_time, (double)share[call->tid - 100], 1.1,
						   "seed %llu job %u: %llu, not %Lf", seed, call->tid - 100,
						   call->device.busy_time, share[call->tid - 100]);
		}
		fixture_free(f);
	}
}

/* Millions of changes with awkward numbers of running jobs: the shares still add up to the time, to the nanosecond. */
Test(model_device_device_queues, shares_do_not_drift)
{
	struct device_queues queues;
	struct event_dispatch sinks = {};
	struct queue_stay stays[7] = {};
	struct device_queue *queue;
	__u64 state = 1, time = 5, sum = 0, i;
	queue_share exact = 0;
	unsigned int which;

	device_queues_init(&queues, &sinks);
	queue = device_queues_get(&queues, "d", "", "");
	for (i = 0; i < 3000000; i++) {
		which = (unsigned int)(random_next(&state) % 7);
		time += random_next(&state) % 5 + (i % 1000000 ? 0 : U(1) << 40);
		if (stays[which].queue) {
			queue_stay_move(&queues, &stays[which], NULL, false, time);
			exact += stays[which].share;
			sum += queue_stay_share(&stays[which], queue);
			stays[which] = (struct queue_stay){};
		} else {
			queue_stay_move(&queues, &stays[which], queue, true, time);
		}
	}
	for (which = 0; which < 7; which++) {
		if (!stays[which].queue)
			continue;
		queue_stay_move(&queues, &stays[which], NULL, false, time);
		exact += stays[which].share;
		sum += queue_stay_share(&stays[which], queue);
	}
	cr_assert_gt(queue->view.busy_time, U(1) << 41);
	cr_assert(exact + queue->undivided == (queue_share)queue->view.busy_time << 32, "not the least bit is lost");
	cr_assert_leq(sum, queue->view.busy_time);
	cr_assert_geq(sum + 1, queue->view.busy_time, "%llu of %llu", sum, queue->view.busy_time);
	device_queues_free(&queues);
}

static int on_queue_use(void *context, const struct model_queue_use *use)
{
	struct model_queue_use *found = context;

	if (use->tgid == found->tgid)
		*found = *use;
	return 0;
}

static struct model_queue_use use_of(const struct fixture *f, unsigned int tgid)
{
	struct model_queue_use use = { .tgid = tgid };

	cr_assert_eq(model_queue_uses(f->model, on_queue_use, &use), 0);
	return use;
}

#define BY(f, process, index, time, ...) \
	cr_assert_eq(feed_event(f, event_make(index, process, (process) + 1, false, time, __VA_ARGS__)), 0)

/* Processes that share a queue: their times add up to the queue's, also while jobs run. */
Test(model_device_device_queues, processes_share_a_queue)
{
	struct fixture *f = fixture_driver();
	struct model_queue_use one, other;

	BY(f, 900, QUEUE, 100, U(1), "dev", "gfx");
	BY(f, 950, QUEUE, 110, U(2), "dev", "gfx");
	OTHER(f, RUN, 120, U(1), "dev", "gfx");
	OTHER(f, RUN, 140, U(2), "dev", "gfx");
	OTHER(f, DONE, 160, U(1), "dev", "gfx");
	BY(f, 900, QUEUE, 200, U(3), "dev", "gfx");
	OTHER(f, DONE, 220, U(2), "dev", "gfx");
	OTHER(f, RUN, 250, U(3), "dev", "gfx");
	OTHER(f, DONE, 300, U(3), "dev", "gfx");
	cr_assert_eq(model_flush(f->model), 0);
	one = use_of(f, 900);
	other = use_of(f, 950);
	cr_expect_eq(one.jobs, 2);
	cr_expect_eq(one.queue_time, 20 + 50, "%llu", one.queue_time);
	cr_expect_eq(one.device_time, 20 + 10 + 50, "%llu", one.device_time);
	cr_expect_eq(other.jobs, 1);
	cr_expect_eq(other.queue_time, 30, "%llu", other.queue_time);
	cr_expect_eq(other.device_time, 10 + 60, "%llu", other.device_time);
	cr_expect_eq(one.busy_time, one.device_time + other.device_time);
	cr_expect_eq(one.busy_time, model_queue(f->model, 0)->busy_time);
	cr_expect_null(one.process);
	fixture_free(f);
}

/* The submitter is learnt late; a job that waits or runs counts until what is delivered, and what is given up has ended there. */
Test(model_device_device_queues, a_use_goes_on)
{
	struct fixture *f = fixture_driver();
	struct queue_user user = {};
	struct model_queue_use use;
	struct device_queue queue = { .clock = 1000, .running = 2, .view = { .busy_time = 500 } };

	user.queue = &queue;
	user.running = 1;
	user.waiting = 3;
	user.clock = 900;
	queue_user_view(&user, 1100, &use);
	cr_expect_eq(use.queue_time, 3 * 200);
	cr_expect_eq(use.device_time, 50);
	cr_expect_eq(use.busy_time, 600);
	queue_user_view(&user, 800, &use);
	cr_expect_eq(use.queue_time, 3 * 100, "the queue is ahead");
	cr_expect_eq(use.device_time, 0);
	OTHER(f, 10 + RUN, 100, U(9), "dev", "gfx");
	BY(f, 950, QUEUE, 130, U(9), "dev", "gfx");
	OTHER(f, 10 + DONE, 150, U(9));
	cr_assert_eq(model_flush(f->model), 0);
	use = use_of(f, 950);
	cr_expect_eq(use.device_time + use_of(f, 0).device_time, use.busy_time);
	cr_expect_gt(use.device_time, 0);
	cr_expect_eq(use.jobs, 1);
	fixture_free(f);
}
