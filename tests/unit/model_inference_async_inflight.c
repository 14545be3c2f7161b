/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/inference/async_inflight.h"

#include "model_records.h"

static void enqueue(struct fixture *f, __u64 key, __u64 stream, __u64 start, __u64 end)
{
	CALL_1(f, TOY_ENQUEUE, 1, 7, start, end, 4, U(5), key, stream, U(0));
}

static void enqueue_without_key(struct fixture *f, __u64 stream, __u64 start, __u64 end)
{
	struct call_record record = call_make(TOY_ENQUEUE, 1, 7, start, end, 4, U(5), U(0), stream, U(0));

	record.call.valid &= ~2;
	cr_assert_eq(feed_call(f, record), 0);
}

static void launch(struct fixture *f, __u64 stream, __u64 start)
{
	struct call_record record = call_make(TOY_LAUNCH, 1, 7, start, start + 1, 3, U(6), stream, U(0));

	record.call.valid = 3;
	cr_assert_eq(feed_call(f, record), 0);
}

static void wait_key(struct fixture *f, __u64 key, __u64 count, __s64 status, __u64 start, __u64 end)
{
	CALL_1(f, TOY_WAIT, 1, 8, start, end, 3, key, count, (__u64)status);
}

static void wait_stream(struct fixture *f, __u64 stream, __u64 start)
{
	CALL_1(f, TOY_SYNC, 1, 8, start, start + 1, 2, stream, U(0));
}

static void wait_all(struct fixture *f, __u64 start)
{
	CALL_1(f, TOY_FINISH, 1, 8, start, start + 1, 1, U(0));
}

static const struct event_inference *inference(const struct fixture *f, size_t nth)
{
	const struct seen *seen = seen_nth(f, EVENT_INFERENCE, nth);

	return seen ? &seen->event.inference : NULL;
}

/* Values of the queue depth, as they came; -1: no more. */
static __s64 depth(const struct fixture *f, size_t nth)
{
	const struct seen *seen = seen_nth(f, EVENT_COUNTER, nth);

	return seen ? seen->event.counter.value : -1;
}

static void flush(struct fixture *f)
{
	cr_assert_eq(model_flush(f->model), 0);
}

Test(model_inference_async_inflight, a_wait_with_the_key_ends_what_was_enqueued)
{
	struct fixture *f = fixture_toy();
	const struct event_inference *pair;
	const struct event_call *begin, *end;

	enqueue(f, 77, 3, 100, 110);
	wait_key(f, 77, 1, 0, 120, 500);
	flush(f);
	pair = inference(f, 0);
	begin = &seen_nth(f, EVENT_CALL, 0)->event.call;
	end = &seen_nth(f, EVENT_CALL, 1)->event.call;
	cr_assert_eq(pair->start, 100);
	cr_assert_eq(pair->end, 500);
	cr_assert_eq(pair->tid, 7);
	cr_assert_eq(pair->wait_tid, 8);
	cr_assert_eq(pair->tgid, 1);
	cr_assert_eq(pair->key, 77);
	cr_assert_eq(pair->stream, 3);
	cr_assert_eq(pair->outcome, OUTCOME_OK);
	cr_assert_str_eq(pair->function->name, "toy_enqueue");
	cr_assert_neq(pair->id, 0);
	cr_assert_eq(begin->flow_out, pair->id);
	cr_assert_eq(end->flow_in, pair->id);
	cr_assert_eq(begin->flow_in, 0);
	cr_assert_eq(end->flow_out, 0);
	cr_assert_eq(model_program(f->model, 0)->recorded, 1);
	cr_assert_eq(statistics_max(model_program(f->model, 0)->latency), 400);
	cr_assert_eq(model_program(f->model, 0)->last_end, 500);
	cr_assert_eq(depth(f, 0), 1);
	cr_assert_eq(depth(f, 1), 0);
	cr_assert_eq(depth(f, 2), -1);
	fixture_free(f);
}

Test(model_inference_async_inflight, nothing_is_added_to_the_latency_before_the_wait)
{
	struct fixture *f = fixture_toy();

	enqueue(f, 77, 3, 100, 110);
	flush(f);
	cr_assert_eq(model_program(f->model, 0)->recorded, 1);
	cr_assert_null(model_program(f->model, 0)->latency);
	cr_assert_eq(model_program(f->model, 0)->role, XPT_ROLE_ENQUEUE);
	fixture_free(f);
}

Test(model_inference_async_inflight, polls_that_say_not_yet_end_nothing)
{
	struct fixture *f = fixture_toy();

	enqueue(f, 77, 3, 100, 110);
	wait_key(f, 77, 0, 0, 120, 130);   /* count 0: not completed */
	wait_key(f, 77, 1, 600, 140, 150); /* pending */
	wait_key(f, 78, 1, 0, 160, 170);   /* another key */
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 0);
	wait_key(f, 77, 1, 0, 180, 190);
	wait_key(f, 77, 1, 0, 200, 210); /* again: ends nothing more */
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 1);
	cr_assert_eq(inference(f, 0)->end, 190);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_UNPAIRED), 0);
	fixture_free(f);
}

Test(model_inference_async_inflight, a_wait_that_fails_ends_it_as_failed)
{
	struct fixture *f = fixture_toy();

	enqueue(f, 77, 3, 100, 110);
	wait_key(f, 77, 1, -5, 120, 130);
	flush(f);
	cr_assert_eq(inference(f, 0)->outcome, OUTCOME_FAILED);
	cr_assert_eq(model_program(f->model, 0)->errors, 1);
	cr_assert_eq(statistics_count(model_program(f->model, 0)->latency), 1, "failed ones included");
	fixture_free(f);
}

Test(model_inference_async_inflight, an_enqueue_that_fails_begins_nothing)
{
	struct fixture *f = fixture_toy();

	CALL_1(f, TOY_ENQUEUE, 1, 7, 100, 110, 4, U(5), U(77), U(3), (__u64)-5LL);
	CALL_1(f, TOY_ENQUEUE, 1, 7, 120, 130, 4, U(5), U(77), U(3), U(600)); /* the queue is full */
	wait_key(f, 77, 1, 0, 140, 150);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 0);
	cr_assert_eq(f->kinds[EVENT_COUNTER], 0);
	cr_assert_eq(model_program(f->model, 0)->errors, 1);
	cr_assert_eq(model_program(f->model, 0)->pending, 1);
	cr_assert_eq(seen_nth(f, EVENT_CALL, 0)->event.call.flow_out, 0);
	fixture_free(f);
}

Test(model_inference_async_inflight, a_wait_for_a_stream_ends_all_of_it)
{
	struct fixture *f = fixture_toy();
	__u64 flow;

	enqueue(f, 1, 3, 100, 110);
	enqueue(f, 2, 4, 120, 130);
	enqueue_without_key(f, 3, 140, 150);
	wait_stream(f, 3, 200);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 2);
	cr_assert_eq(inference(f, 0)->start, 100);
	cr_assert_eq(inference(f, 1)->start, 140);
	cr_assert_neq(inference(f, 0)->id, inference(f, 1)->id);
	flow = seen_nth(f, EVENT_CALL, 3)->event.call.flow_in;
	cr_assert_eq(flow, inference(f, 1)->id, "the last one");
	wait_all(f, 300);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 3);
	cr_assert_eq(inference(f, 2)->start, 120);
	cr_assert_eq(depth(f, 3), 1);
	cr_assert_eq(depth(f, 4), 0);
	fixture_free(f);
}

Test(model_inference_async_inflight, a_wait_ends_the_launches_of_its_stream)
{
	struct fixture *f = fixture_toy();
	static const __s64 expected[] = { 1, 2, 3, 1, 2, 0, -1 };
	const struct model_program *program;
	size_t i;

	launch(f, 3, 100);
	launch(f, 3, 110);
	launch(f, 4, 120);
	wait_stream(f, 3, 130);
	launch(f, 5, 140);
	wait_all(f, 150);
	wait_all(f, 160);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 4);
	for (i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		cr_assert_eq(depth(f, i), expected[i], "%zu", i);
	program = model_program(f->model, 0);
	cr_assert_eq(statistics_count(program->latency), 4);
	cr_assert_eq(statistics_min(program->latency), 151 - 140);
	cr_assert_eq(statistics_max(program->latency), 131 - 100);
	cr_assert_eq(statistics_sum(program->latency), 31 + 21 + 31 + 11);
	cr_assert_eq(statistics_count(program->call), 4);
	cr_assert_eq(statistics_max(program->call), 1);
	cr_assert_eq(program->unended, 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_UNPAIRED), 0);
	fixture_free(f);
}

Test(model_inference_async_inflight, launches_that_are_not_seen_to_end_have_no_latency)
{
	struct fixture *f = fixture_toy();
	struct call_record record = call_make(TOY_LAUNCH, 1, 7, 90, 101, 3, U(6), U(0), U(0));
	const struct model_program *program;

	record.call.valid = 1; /* nothing that a wait could name */
	cr_assert_eq(feed_call(f, record), 0);
	launch(f, 3, 110);
	CALL_1(f, TOY_LAUNCH, 1, 7, 120, 121, 3, U(6), U(3), U(99));
	cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 1, 0, 400, "x"), 0);
	flush(f);
	program = model_program(f->model, 0);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 0);
	cr_assert_eq(f->kinds[EVENT_UNPAIRED], 2);
	cr_assert_null(program->latency);
	cr_assert_eq(program->unended, 3);
	cr_assert_eq(statistics_count(program->call), 3);
	cr_assert_eq(f->kinds[EVENT_LOST], 0, "programs need not wait for each");
	fixture_free(f);
}

Test(model_inference_async_inflight, a_launch_whose_key_is_used_again_ends_with_its_stream)
{
	struct fixture *f = fixture_toy();

	CALL_1(f, TOY_LAUNCH, 1, 7, 100, 102, 3, U(6), U(3), U(99));
	CALL_1(f, TOY_LAUNCH, 1, 7, 110, 112, 3, U(6), U(3), U(99));
	CALL_1(f, TOY_LAUNCH, 1, 7, 120, 122, 3, U(6), U(4), U(99));
	wait_key(f, 99, 1, 0, 200, 300);
	wait_stream(f, 3, 400);
	CALL_1(f, TOY_LAUNCH, 1, 7, 500, 502, 3, U(6), U(5), U(99));
	CALL_1(f, TOY_LAUNCH, 1, 7, 510, 512, 3, U(6), U(5), U(99));
	wait_key(f, 99, 1, 0, 520, 530);
	cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 1, 0, 900, "x"), 0);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 4);
	cr_assert_eq(inference(f, 0)->start, 120);
	cr_assert_eq(inference(f, 0)->end, 300);
	cr_assert_eq(inference(f, 1)->start, 100);
	cr_assert_eq(inference(f, 1)->end, 401);
	cr_assert_eq(inference(f, 2)->start, 110);
	cr_assert_eq(inference(f, 3)->start, 510);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_REPLACED), 1, "nothing reported when the one from 500 ended");
	fixture_free(f);
}

/* A runtime whose streams are in order: marks, copies, waits for several keys, and for one if it is complete. */
enum ordered { LAUNCH = 200, MARK, COPY, WAIT, LIST, POLL, STREAM, FOLLOW };

static struct fixture *fixture_ordered(void)
{
	struct fixture *f = fixture_create();
	const enum xpt_success zero = XPT_SUCCESS_ZERO32;

	cr_assert_eq(feed_text(f, XPT_RECORD_RUNTIME, 0, 0, 0, "{\"name\":\"toy\",\"in_order\":true,\"statuses\":[]}"),
		     0);
	feed_spec(f, LAUNCH, 0, "launch", "launch", zero,
		  F("program", "u64") "," F("stream", "u64") "," F("key", "u64"));
	feed_spec(f, MARK, 0, "mark", "mark", zero, F("key", "u64") "," F("stream", "u64") "," F("count", "u64"));
	feed_spec(f, COPY, 0, "copy", "copy", zero,
		  F("key", "u64") "," F("stream", "u64") ",{\"meaning\":\"blocking\",\"type\":\"u32\",\"equal\":2}");
	feed_spec(f, WAIT, 0, "wait", "wait", zero, F("key", "u64"));
	feed_spec(f, LIST, 0, "list", "wait", zero, F("count", "u64") "," F("keys", "u64"));
	feed_spec(f, POLL, 0, "poll", "wait", zero,
		  F("key", "u64") ",{\"meaning\":\"count\",\"type\":\"s32\",\"equal\":0},"
				  "{\"meaning\":\"when\",\"type\":\"u32\",\"equal\":7}");
	feed_spec(f, FOLLOW, 0, "follow", "follow", zero, F("key", "u64") "," F("stream", "u64"));
	feed_spec(f, STREAM, 0, "stream", "stream", zero,
		  F("stream", "u64") ",{\"meaning\":\"ordered\",\"type\":\"u64\",\"mask\":1,\"equal\":0}");
	return f;
}

static void on_stream(struct fixture *f, enum ordered spec, __u64 stream, __u64 key, __u64 time, __u64 more)
{
	if (spec == LAUNCH)
		CALL_1(f, LAUNCH, 1, 7, time, time + 1, 3, U(6), stream, key);
	else
		CALL_1(f, spec, 1, 7, time, time + 1, 3, key, stream, more);
}

Test(model_inference_async_inflight, what_a_mark_stands_for_ends_with_it)
{
	struct fixture *f = fixture_ordered();

	on_stream(f, LAUNCH, 3, 0, 100, 0);
	on_stream(f, LAUNCH, 4, 0, 110, 0);
	on_stream(f, LAUNCH, 3, 0, 120, 0);
	on_stream(f, MARK, 3, 99, 130, 0);
	on_stream(f, LAUNCH, 3, 0, 140, 0);
	CALL_1(f, WAIT, 1, 8, 150, 190, 1, U(99));
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 2);
	cr_assert_eq(inference(f, 0)->start, 100);
	cr_assert_eq(inference(f, 1)->start, 120);
	cr_assert_eq(inference(f, 1)->end, 190);
	cr_assert_eq(depth(f, 4), 2, "marks do not count");
	/* Again, for nothing new; and one that is only for others. */
	on_stream(f, MARK, 3, 99, 200, 1);
	CALL_1(f, WAIT, 1, 8, 210, 211, 1, U(99));
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 2);
	on_stream(f, MARK, 3, 99, 220, 0);
	on_stream(f, MARK, 4, 99, 230, 0); /* the same key is now for another stream */
	CALL_1(f, WAIT, 1, 8, 240, 241, 1, U(99));
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 3);
	cr_assert_eq(inference(f, 2)->start, 110);
	/* What it is for may have ended before it returns: a callback was called. */
	on_stream(f, LAUNCH, 3, 0, 250, 0);
	CALL_1(f, WAIT, 1, 8, 261, 261, 1, U(98));
	CALL_1(f, MARK, 1, 7, 260, 270, 3, U(98), U(3), U(0));
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 5);
	cr_assert_eq(inference(f, 3)->start, 140);
	cr_assert_eq(inference(f, 4)->start, 250);
	cr_assert_eq(inference(f, 4)->end, 261);
	fixture_free(f);
}

static void follow(struct fixture *f, __u64 stream, __u64 key, __u64 time)
{
	CALL_1(f, FOLLOW, 1, 7, time, time + 1, 2, key, stream);
}

/* As XLA does: a callback on a stream of its own, after an event of the one that computes. */
Test(model_inference_async_inflight, what_a_stream_follows_ends_with_what_it_runs)
{
	struct fixture *f = fixture_ordered();

	for (__u64 time = 100; time < 300; time += 100) {
		on_stream(f, LAUNCH, 3, 0, time, 0);
		on_stream(f, MARK, 3, 99, time + 10, 0);
		on_stream(f, LAUNCH, 3, 0, time + 20, 0);
		follow(f, 4, 99, time + 30);
		on_stream(f, LAUNCH, 4, 50 + time, time + 40, 0);
	}
	CALL_1(f, WAIT, 1, 8, 290, 300, 1, U(150));
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 2, "the second launch on stream 3 came after the mark");
	cr_expect_eq(inference(f, 0)->stream, 4);
	cr_expect_eq(inference(f, 1)->start, 100);
	cr_expect_eq(inference(f, 1)->end, 300);
	CALL_1(f, WAIT, 1, 8, 400, 410, 1, U(250));
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 5);
	cr_expect_eq(inference(f, 3)->start, 120);
	cr_expect_eq(inference(f, 4)->start, 200);
	cr_expect_eq(inference(f, 4)->end, 410);
	fixture_free(f);
}

Test(model_inference_async_inflight, streams_that_follow_each_other)
{
	struct fixture *f = fixture_ordered();

	/* 5 after 4 after 3; 3 after 5, which is later. The callback comes before its launch has returned. */
	on_stream(f, LAUNCH, 3, 0, 100, 0);
	on_stream(f, MARK, 3, 90, 110, 0);
	follow(f, 4, 90, 120);
	on_stream(f, MARK, 4, 91, 130, 0);
	follow(f, 5, 91, 140);
	on_stream(f, MARK, 5, 92, 150, 0);
	follow(f, 3, 92, 160);
	on_stream(f, LAUNCH, 3, 0, 170, 0);
	CALL_1(f, WAIT, 1, 8, 185, 185, 1, U(77));
	CALL_1(f, LAUNCH, 1, 7, 180, 190, 3, U(6), U(5), U(77));
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 2);
	cr_expect_eq(inference(f, 0)->start, 180);
	cr_expect_eq(inference(f, 0)->end, 185);
	cr_expect_eq(inference(f, 1)->start, 100);
	cr_expect_eq(inference(f, 1)->end, 185);
	/* What is unknown, or on the stream itself, changes nothing; the rest leaves with its process. */
	follow(f, 6, 1234, 200);
	on_stream(f, MARK, 3, 93, 210, 0);
	follow(f, 3, 93, 220);
	follow(f, 7, 93, 230);
	on_stream(f, MARK, 3, 93, 240, 0);
	cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 1, 0, 400, "x"), 0);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 2);
	cr_assert_eq(f->kinds[EVENT_UNPAIRED], 1);
	fixture_free(f);
}

/* Streams that nobody waits for. */
Test(model_inference_async_inflight, followers_are_bounded)
{
	struct fixture *f = fixture_ordered();

	f->quiet = true;
	on_stream(f, LAUNCH, 3, 0, 10, 0);
	for (__u64 i = 0; i < 3ull * MODEL_PENDING_MAX; i++) {
		on_stream(f, MARK, 3, 1 + i % 7, 100 + 10 * i, 0);
		follow(f, 4 + i % 5, 1 + i % 7, 102 + 10 * i);
	}
	flush(f);
	fixture_free(f);
}

Test(model_inference_async_inflight, a_copy_that_blocks_ends_what_was_launched_before)
{
	struct fixture *f = fixture_ordered();

	on_stream(f, LAUNCH, 3, 50, 100, 0);
	on_stream(f, COPY, 3, 0, 110, 1); /* another direction */
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 0);
	on_stream(f, COPY, 3, 0, 120, 2);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 1);
	cr_assert_eq(inference(f, 0)->end, 121);
	/* In a stream without order it says nothing, and neither does the end of a later launch. */
	CALL_1(f, STREAM, 1, 7, 130, 131, 2, U(5), U(1));
	on_stream(f, LAUNCH, 5, 50, 140, 0);
	on_stream(f, LAUNCH, 5, 51, 150, 0);
	on_stream(f, COPY, 5, 52, 160, 2);
	CALL_1(f, WAIT, 1, 8, 170, 171, 1, U(52));
	CALL_1(f, WAIT, 1, 8, 180, 181, 1, U(51));
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 2);
	cr_assert_eq(inference(f, 1)->start, 150);
	/* The handle is that of one with order now. */
	CALL_1(f, STREAM, 1, 7, 190, 191, 2, U(5), U(2));
	on_stream(f, COPY, 5, 53, 200, 1);
	CALL_1(f, WAIT, 1, 8, 210, 211, 1, U(53));
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 3);
	fixture_free(f);
}

Test(model_inference_async_inflight, a_list_ends_all_and_asking_ends_what_is_complete)
{
	struct fixture *f = fixture_ordered();
	__u64 keys[70], i;

	CALL_1(f, STREAM, 1, 7, 10, 11, 2, U(5), U(1));
	for (i = 0; i < 70; i++) {
		keys[i] = 1000 + i;
		on_stream(f, LAUNCH, 5, keys[i], 100 + 10 * i, 0);
	}
	for (i = 0; i < 64; i += 32)
		cr_assert_eq(feed_string(f, LIST, 1, 1, 8, 2000, (const char *)&keys[i], 256), 0);
	CALL_1(f, LIST, 1, 8, 2000, 2100, 2, U(70), U(0x7000));
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 64);
	CALL_1(f, POLL, 1, 8, 2200, 2201, 3, keys[64], U(1), U(7)); /* runs still */
	CALL_1(f, POLL, 1, 8, 2300, 2301, 3, keys[64], U(0), U(6)); /* asks for something else */
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 64);
	CALL_1(f, POLL, 1, 8, 2400, 2401, 3, keys[64], U(0), U(7));
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 65);
	cr_assert_eq(inference(f, 64)->end, 2401);
	fixture_free(f);
}

Test(model_inference_async_inflight, the_latency_of_a_launch_ends_with_the_wait_for_its_key)
{
	struct fixture *f = fixture_toy();

	CALL_1(f, TOY_LAUNCH, 1, 7, 100, 102, 3, U(6), U(3), U(99));
	wait_key(f, 99, 1, 0, 200, 300);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 1);
	cr_assert_eq(inference(f, 0)->end, 300);
	cr_assert_eq(statistics_count(model_program(f->model, 0)->latency), 1);
	cr_assert_eq(statistics_max(model_program(f->model, 0)->latency), 200);
	cr_assert_eq(statistics_max(model_program(f->model, 0)->call), 2);
	fixture_free(f);
}

Test(model_inference_async_inflight, the_same_key_again_gives_the_first_one_up)
{
	struct fixture *f = fixture_toy();

	enqueue(f, 77, 3, 100, 110);
	enqueue(f, 77, 3, 200, 210);
	wait_key(f, 77, 1, 0, 220, 230);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 1);
	cr_assert_eq(inference(f, 0)->start, 200);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_UNPAIRED), 1);
	cr_assert_eq(f->kinds[EVENT_LOST], 1);
	cr_assert_eq(depth(f, 1), 0, "it stayed at 1");
	fixture_free(f);
}

/* Another thread sees the completion before the enqueue has returned to its own. */
Test(model_inference_async_inflight, a_wait_that_returns_before_the_enqueue_does)
{
	struct fixture *f = fixture_toy();

	wait_key(f, 77, 1, 0, 90, 140);
	enqueue(f, 77, 3, 100, 150);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 1);
	cr_assert_eq(inference(f, 0)->end, 140);
	cr_assert_eq(inference(f, 0)->wait_tid, 8);
	cr_assert_eq(f->kinds[EVENT_COUNTER], 0, "the depth is the same as before");
	wait_key(f, 77, 1, 0, 160, 170); /* ended before this enqueue began: not its wait */
	enqueue(f, 77, 3, 200, 210);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 1);
	fixture_free(f);
}

/* A callback is recorded when it is called: that is the end, before the call that handed it over has returned. */
Test(model_inference_async_inflight, a_callback_ends_it_when_it_begins)
{
	struct call_record callback = call_make(TOY_WAIT, 1, 8, 105, 105, 3, U(77), U(1), U(-5));
	struct fixture *f = fixture_toy();

	callback.call.flags = XPT_CALL_NO_END;
	cr_assert_eq(feed_call(f, callback), 0);
	enqueue(f, 77, 3, 100, 110);
	flush(f);
	cr_assert_not_null(inference(f, 0));
	cr_assert_eq(inference(f, 0)->start, 100);
	cr_assert_eq(inference(f, 0)->end, 105);
	cr_assert_eq(inference(f, 0)->outcome, OUTCOME_FAILED);
	cr_assert_eq(inference(f, 0)->status, -5);
	fixture_free(f);
}

Test(model_inference_async_inflight, a_wait_that_is_not_seen_to_return_ends_nothing)
{
	struct call_record wait = call_make(TOY_WAIT, 1, 8, 120, 120, 3, U(77), U(1), U(0));
	struct fixture *f = fixture_toy();

	wait.call.flags = XPT_CALL_NO_END;
	wait.call.valid = 3; /* without its status */
	enqueue(f, 77, 3, 100, 110);
	cr_assert_eq(feed_call(f, wait), 0);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 0);
	wait_key(f, 77, 1, 0, 130, 140);
	flush(f);
	cr_assert_eq(inference(f, 0)->end, 140);
	fixture_free(f);
}

Test(model_inference_async_inflight, processes_and_runtimes_do_not_meet)
{
	struct fixture *f = fixture_toy();

	enqueue(f, 77, 3, 100, 110);
	CALL_1(f, LOW_LAUNCH, 1, 1, 110, 111, 2, U(9), U(3));
	CALL_1(f, TOY_WAIT, 2, 2, 120, 130, 3, U(77), U(1), U(0));
	CALL_1(f, TOY_FINISH, 2, 2, 140, 150, 1, U(0));
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 0);
	wait_all(f, 200);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 1);
	cr_assert_eq(depth(f, 1), 1, "of the other runtime");
	cr_assert_str_eq(seen_nth(f, EVENT_COUNTER, 1)->event.counter.runtime, "low");
	fixture_free(f);
}

/* As CUDA's runtime and driver have them. */
Test(model_inference_async_inflight, a_wait_ends_what_a_runtime_with_the_same_streams_has_launched)
{
	struct fixture *f = fixture_create();
	enum { UPPER = 40, UPPER_LAUNCH = 200, UPPER_SYNC, LOWER_LAUNCH, LOWER_SYNC };

	/* Libraries come in any order. */
	cr_assert_eq(feed_text(f, XPT_RECORD_RUNTIME, 0, 0, UPPER, "{\"name\":\"upper\",\"streams_of\":\"lower\"}"), 0);
	feed_spec(f, UPPER_LAUNCH, UPPER, "upper_launch", "launch", XPT_SUCCESS_ALWAYS,
		  F("program", "u64") "," F("stream", "u64"));
	feed_spec(f, UPPER_SYNC, UPPER, "upper_sync", "wait", XPT_SUCCESS_ALWAYS, F("stream", "u64"));
	cr_assert_eq(feed_text(f, XPT_RECORD_RUNTIME, 0, 0, UPPER + 1, "{\"name\":\"lower\",\"streams_of\":\"lower\"}"),
		     0);
	feed_spec(f, LOWER_LAUNCH, UPPER + 1, "lower_launch", "launch", XPT_SUCCESS_ALWAYS,
		  F("program", "u64") "," F("stream", "u64"));
	feed_spec(f, LOWER_SYNC, UPPER + 1, "lower_sync", "wait", XPT_SUCCESS_ALWAYS, F("stream", "u64"));
	CALL_1(f, UPPER_LAUNCH, 1, 7, 100, 101, 2, U(5), U(3));
	CALL_1(f, LOWER_LAUNCH, 1, 7, 110, 111, 2, U(6), U(3));
	CALL_1(f, LOWER_LAUNCH, 1, 7, 120, 121, 2, U(6), U(4));
	CALL_1(f, UPPER_SYNC, 1, 7, 130, 140, 1, U(3));
	CALL_1(f, UPPER_LAUNCH, 1, 7, 150, 151, 2, U(5), U(3));
	CALL_1(f, LOWER_SYNC, 1, 7, 160, 170, 1, U(3));
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 3);
	cr_expect_eq(inference(f, 0)->end, 140);
	cr_expect_eq(inference(f, 1)->end, 140);
	cr_expect_eq(inference(f, 1)->start, 110);
	cr_expect_eq(inference(f, 2)->end, 170);
	cr_expect_eq(inference(f, 2)->start, 150);
	fixture_free(f);
}

Test(model_inference_async_inflight, a_launch_that_no_wait_could_name_is_not_queued)
{
	struct fixture *f = fixture_toy();
	struct call_record record = call_make(TOY_LAUNCH, 1, 7, 100, 101, 3, U(6), U(0), U(0));

	record.call.valid = 1;
	cr_assert_eq(feed_call(f, record), 0);
	launch(f, 0, 110);
	wait_stream(f, 0, 120);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_COUNTER], 2);
	cr_assert_eq(depth(f, 0), 1);
	cr_assert_eq(depth(f, 1), 0);
	fixture_free(f);
}

Test(model_inference_async_inflight, too_many_open_ones_give_up_the_oldest)
{
	struct fixture *f = fixture_toy();
	const __u64 more = MODEL_PENDING_MAX + 10;
	__u64 i;

	f->quiet = true;
	for (i = 0; i < more; i++)
		enqueue(f, i, i % 100, 100 + i * 2, 101 + i * 2);
	flush(f);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_UNPAIRED), 10);
	for (i = 0; i < more; i++)
		wait_key(f, i, 1, 0, 1000000 + i * 2, 1000001 + i * 2);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], MODEL_PENDING_MAX);
	fixture_free(f);
}

Test(model_inference_async_inflight, too_many_streams_give_up_the_one_not_used_for_longest)
{
	struct fixture *f = fixture_toy();
	__u64 i;

	enqueue(f, 1, 1000000, 100, 110);
	for (i = 0; i < ASYNC_STREAMS_MAX - 1; i++)
		launch(f, i, 200 + i * 10);
	enqueue(f, 2, 1000000, 100000, 100010); /* used again */
	launch(f, 999999, 200000);		/* stream 0 makes room */
	launch(f, 0, 200010);
	flush(f);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_UNPAIRED), 0);
	wait_all(f, 300000);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 2 + ASYNC_STREAMS_MAX - 1);
	cr_assert_eq(f->kinds[EVENT_UNPAIRED], 2);
	cr_assert_eq(seen_nth(f, EVENT_COUNTER, f->kinds[EVENT_COUNTER] - 1)->event.counter.value, 0);
	fixture_free(f);
}

Test(model_inference_async_inflight, the_end_of_the_process_or_recording_leaves_none_open)
{
	struct fixture *f = fixture_toy();

	enqueue(f, 77, 3, 100, 110);
	launch(f, 3, 120);
	cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 1, 0, 200, "x"), 0);
	flush(f);
	cr_assert_eq(depth(f, 2), 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_UNPAIRED), 1);
	CALL_1(f, TOY_ENQUEUE, 2, 2, 300, 310, 4, U(5), U(77), U(3), U(0));
	cr_assert_eq(feed_text(f, XPT_RECORD_END, 0, 400, 0, "{}"), 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_UNPAIRED), 2);
	cr_assert_eq(depth(f, 4), 0);
	fixture_free(f);
}

Test(model_inference_async_inflight, waits_for_nothing_are_bounded)
{
	struct fixture *f = fixture_toy();
	__u64 i;

	for (i = 0; i < ASYNC_ORPHANS_MAX + 1; i++)
		wait_key(f, i, 1, 0, 100 + i, 101 + i);
	wait_key(f, 1, 1, 0, 10000, 20000); /* again: the later one counts */
	enqueue(f, 0, 3, 50, 30000);	    /* its wait was forgotten */
	enqueue(f, 1, 3, 15000, 30001);
	enqueue(f, 2, 3, 50, 30002);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 2);
	cr_assert_eq(inference(f, 0)->end, 20000);
	cr_assert_eq(inference(f, 1)->end, 103);
	fixture_free(f);
}

Test(model_inference_async_inflight, a_wait_that_returned_before_the_enqueue_began_ends_nothing_of_it)
{
	struct fixture *f = fixture_toy();

	enqueue(f, 77, 3, 500, 510);
	enqueue_without_key(f, 3, 600, 610);
	flush(f);
	wait_key(f, 77, 1, 0, 100, 500); /* delivered late */
	wait_stream(f, 3, 100);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 0);
	wait_all(f, 700);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 2);
	fixture_free(f);
}

Test(model_inference_async_inflight, an_inference_has_what_its_enqueue_had)
{
	struct fixture *f = fixture_toy();
	struct call_record record;
	const struct event_inference *pair;

	feed_spec(f, 100, 0, "toy_submit", "enqueue", XPT_SUCCESS_ZERO32,
		  F("program", "u64") "," F("key", "u64") "," F("size", "u64") "," F("core", "s32") "," STATUS);
	feed_spec(f, 101, 0, "toy_done", "wait", XPT_SUCCESS_NONZERO, F("key", "u64"));
	record = call_number(call_make(100, 1, 7, 100, 115, 5, U(5), U(77), U(4096), U(3), U(1)), 1234);
	record.call.sample = 16;
	cr_assert_eq(feed_call(f, record), 0);
	CALL_1(f, 101, 1, 8, 120, 500, 1, U(77)); /* tells no status */
	record = call_make(100, 1, 7, 600, 610, 5, U(5), U(78), U(1), U(0), U(0));
	record.call.valid &= ~4; /* no size */
	cr_assert_eq(feed_call(f, record), 0);
	wait_key(f, 78, 1, -5, 620, 700);
	flush(f);
	pair = inference(f, 0);
	cr_assert_eq(pair->enqueued, 115);
	cr_assert_eq(pair->sample, 16);
	cr_assert(pair->numbered);
	cr_assert_eq(pair->number, 1234);
	cr_assert_eq(pair->have, 1u << XPT_MEANING_KEY | 1u << XPT_MEANING_SIZE | 1u << XPT_MEANING_CORE |
					 1u << XPT_MEANING_STATUS);
	cr_assert_eq(pair->size, 4096);
	cr_assert_eq(pair->core, 3);
	cr_assert_eq(pair->status, 1, "that of the enqueue");
	cr_assert_str_eq(pair->status_name, "TOY_BREAK");
	cr_assert_eq(pair->outcome, OUTCOME_OK);
	pair = inference(f, 1);
	cr_assert_eq(pair->sample, 1);
	cr_assert_not(pair->numbered);
	cr_assert_eq(pair->have, 1u << XPT_MEANING_KEY | 1u << XPT_MEANING_CORE | 1u << XPT_MEANING_STATUS);
	cr_assert_eq(pair->status, -5, "that of the wait");
	cr_assert_str_eq(pair->status_name, "TOY_OUT_OF_MEMORY");
	cr_assert_eq(pair->outcome, OUTCOME_FAILED);
	fixture_free(f);
}

Test(model_inference_async_inflight, the_status_of_a_wait_that_was_overtaken)
{
	struct fixture *f = fixture_toy();

	CALL_1(f, TOY_WAIT, 1, 8, 105, 150, 3, U(77), U(1), (__u64)-5LL);
	enqueue(f, 77, 3, 100, 200);
	flush(f);
	cr_assert_eq(inference(f, 0)->end, 150);
	cr_assert_eq(inference(f, 0)->wait_tid, 8);
	cr_assert_eq(inference(f, 0)->status, -5);
	cr_assert_eq(inference(f, 0)->outcome, OUTCOME_FAILED);
	cr_assert_eq(inference(f, 0)->enqueued, 200);
	fixture_free(f);
}

Test(model_inference_async_inflight, in_queue_are_the_inferences_before_without_launches)
{
	struct fixture *f = fixture_toy();

	launch(f, 3, 90);
	CALL_1(f, TOY_LAUNCH, 1, 7, 92, 93, 3, U(6), U(3), U(500)); /* with a key */
	enqueue(f, 1, 3, 100, 101);
	enqueue(f, 2, 3, 110, 111);
	CALL_1(f, TOY_ENQUEUE, 2, 2, 112, 113, 4, U(5), U(9), U(3), U(0)); /* of another process */
	wait_key(f, 1, 1, 0, 120, 121);
	enqueue(f, 3, 4, 130, 131);
	wait_all(f, 140);
	enqueue(f, 4, 3, 150, 151);
	enqueue(f, 4, 3, 160, 161); /* the same key: the one before is given up */
	wait_all(f, 170);
	flush(f);
	/* in the order in which they ended: 1; then 2, 3 and the launches by their streams; 4 */
	cr_assert_eq(f->kinds[EVENT_INFERENCE], 6);
	for (size_t i = 0; i < 6; i++) {
		const struct event_inference *pair = inference(f, i);
		const __u64 before[] = { 0, 0, 1, 1, 0 };

		if (pair->function->role == XPT_ROLE_ENQUEUE)
			cr_assert_eq(pair->in_queue, before[pair->key], "key %llu: %llu", pair->key, pair->in_queue);
	}
	cr_assert_gt(depth(f, 2), 2, "the depth has the launches");
	fixture_free(f);
}

static const struct event_inference *unpaired(const struct fixture *f, size_t nth)
{
	const struct seen *seen = seen_nth(f, EVENT_UNPAIRED, nth);

	return seen ? &seen->event.inference : NULL;
}

Test(model_inference_async_inflight, an_enqueue_without_a_wait_is_reported)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "mine", 10, 20);
	enqueue(f, 77, 3, 100, 110);
	enqueue(f, 77, 3, 200, 210); /* the key is used again */
	enqueue(f, 78, 3, 300, 310);
	CALL_1(f, TOY_LAUNCH, 1, 7, 320, 330, 3, U(6), U(3), U(500));
	cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 1, 0, 400, "x"), 0);
	CALL_1(f, TOY_ENQUEUE, 2, 2, 500, 510, 4, U(5), U(9), U(3), U(0));
	cr_assert_eq(feed_text(f, XPT_RECORD_END, 0, 900, 0, "{}"), 0);
	cr_assert_eq(f->kinds[EVENT_UNPAIRED], 5);
	cr_assert_eq(unpaired(f, 3)->function->role, XPT_ROLE_LAUNCH);
	cr_assert_eq(unpaired(f, 0)->start, 100);
	cr_assert_eq(unpaired(f, 0)->enqueued, 110);
	cr_assert_eq(unpaired(f, 0)->end, 0);
	cr_assert_eq(unpaired(f, 0)->key, 77);
	cr_assert_eq(unpaired(f, 0)->id, seen_nth(f, EVENT_CALL, 1)->event.call.flow_out);
	cr_assert_str_eq(seen_nth(f, EVENT_UNPAIRED, 0)->program, "mine");
	cr_assert_str_eq(seen_nth(f, EVENT_UNPAIRED, 2)->program, "mine");
	cr_assert_eq(unpaired(f, 4)->tgid, 2);
	cr_assert_lt(seen_nth(f, EVENT_UNPAIRED, 2) - f->seen, seen_nth(f, EVENT_TASK, 0) - f->seen,
		     "before the end of the process");
	cr_assert_eq(model_lost(f->model, XPT_LOSS_UNPAIRED), 4, "not the launch");
	fixture_free(f);
}

Test(model_inference_async_inflight, nothing_is_reported_when_the_model_goes)
{
	struct fixture *f = fixture_toy();

	enqueue(f, 77, 3, 100, 110);
	flush(f);
	model_free(f->model);
	f->model = NULL;
	cr_assert_eq(f->kinds[EVENT_UNPAIRED], 0);
	fixture_free(f);
}

Test(model_inference_async_inflight, every_enqueue_is_reported_once_however_many_there_are)
{
	const __u64 enqueues = MODEL_PENDING_MAX + 5000;
	struct fixture *f = fixture_toy();
	__u64 i;

	f->quiet = true;
	for (i = 0; i < enqueues; i++) {
		enqueue(f, 1000 + i, i % 5000, i * 10, i * 10 + 5);
		if (i % 10000 == 0)
			flush(f);
	}
	for (i = 0; i < enqueues; i += 2)
		wait_key(f, 1000 + i, 1, 0, enqueues * 10 + i, enqueues * 10 + i + 1);
	cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 1, 0, enqueues * 20, "x"), 0);
	flush(f);
	cr_assert_gt(f->kinds[EVENT_UNPAIRED], enqueues / 2 - 1);
	cr_assert_gt(f->kinds[EVENT_INFERENCE], 0);
	cr_assert_eq(f->kinds[EVENT_UNPAIRED] + f->kinds[EVENT_INFERENCE], enqueues);
	fixture_free(f);
}
