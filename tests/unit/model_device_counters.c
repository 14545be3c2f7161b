/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/device/counters.h"

#include <math.h>

#include "model/core/state.h"
#include "model_records.h"

#define KIND(kind) "{\"name\":\"a/b/\",\"kind\":\"" kind "\",\"unit\":\"J\",\"description\":\"d\",\"source\":\"a\"}"
#define UNKNOWN NAN

static int define(struct fixture *f, __u64 index, const char *text)
{
	return feed_text(f, XPT_RECORD_COUNTER, 0, 0, index, text);
}

static int feed_reading(struct fixture *f, __u64 time, __u32 count, const double *values)
{
	char bytes[sizeof(struct xpt_record_reading) + 8 * 8] __attribute__((aligned(8))) = {};
	struct xpt_record_reading *record = (void *)bytes;

	record->header.kind = XPT_RECORD_READING;
	record->header.size = (__u16)(sizeof(*record) + 8 * count);
	record->header.time = time;
	record->values = count;
	memcpy(record->value, values, 8 * count);
	return model_feed(f->model, &record->header);
}

#define READING(f, time, ...) \
	cr_assert_eq(feed_reading(f, time, sizeof((double[]){ __VA_ARGS__ }) / 8, (double[]){ __VA_ARGS__ }), 0)

static void expect(const struct fixture *f, size_t nth, unsigned int counter, __u64 since, __u64 time, double value)
{
	const struct seen *seen = seen_nth(f, EVENT_READING, nth);

	cr_assert_not_null(seen, "%zu", nth);
	cr_assert_eq(seen->event.reading.counter->index, counter);
	cr_assert_eq(seen->event.reading.since, since);
	cr_assert_eq(seen->event.reading.time, time);
	cr_assert_float_eq(seen->event.reading.value, value, 1e-9);
}

Test(model_device_counters, a_sum_is_reported_as_its_rate)
{
	struct fixture *f = fixture_create();
	const struct model_counter *counter;

	cr_assert_eq(define(f, 0, KIND("sum")), 0);
	READING(f, 1000000000, 7);
	READING(f, 1500000000, 17);
	READING(f, 3500000000, 18);
	cr_assert_eq(model_flush(f->model), 0);
	expect(f, 0, 0, 1000000000, 1500000000, 20);
	expect(f, 1, 0, 1500000000, 3500000000, 0.5);
	cr_assert_eq(f->kinds[EVENT_READING], 2);
	cr_assert_eq(model_counter_count(f->model), 1);
	counter = model_counter(f->model, 0);
	cr_assert_str_eq(counter->name, "a/b/");
	cr_assert_str_eq(counter->unit, "J");
	cr_assert_eq(counter->total, 11);
	cr_assert_eq(counter->least, 0.5);
	cr_assert_eq(counter->most, 20);
	cr_assert_float_eq(counter->mean, 11 / 2.5, 1e-9, "over time, not over readings");
	fixture_free(f);
}

Test(model_device_counters, a_mean_needs_a_reading_before_and_a_level_none)
{
	struct fixture *f = fixture_create();

	cr_assert_eq(define(f, 0, KIND("mean")), 0);
	cr_assert_eq(define(f, 1, KIND("level")), 0);
	READING(f, 1000, 1, 2);
	READING(f, 2000, 3, 4);
	cr_assert_eq(model_flush(f->model), 0);
	expect(f, 0, 1, 1000, 1000, 2);
	expect(f, 1, 0, 1000, 2000, 3);
	expect(f, 2, 1, 2000, 2000, 4);
	cr_assert_eq(model_counter(f->model, 1)->mean, 3);
	cr_assert_eq(model_counter(f->model, 1)->total, 0);
	fixture_free(f);
}

Test(model_device_counters, what_is_not_known_is_not_reported)
{
	struct fixture *f = fixture_create();

	cr_assert_eq(define(f, 0, KIND("sum")), 0);
	READING(f, 1000000000, 10);
	READING(f, 2000000000, UNKNOWN);
	READING(f, 3000000000, 50); /* nobody knows since when */
	READING(f, 3000000000, 60); /* no time has passed */
	READING(f, 4000000000, 5);  /* begun anew */
	READING(f, 5000000000, 6);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_READING], 1);
	expect(f, 0, 0, 4000000000, 5000000000, 1);
	fixture_free(f);
}

Test(model_device_counters, damaged_records_are_refused)
{
	struct fixture *f = fixture_create();

	cr_assert_eq(define(f, 1, KIND("sum")), -EBADMSG, "not the next index");
	cr_assert_eq(define(f, 0, KIND("rate")), -EBADMSG);
	cr_assert_eq(define(f, 0, "{\"kind\":\"sum\"}"), -EBADMSG);
	cr_assert_eq(define(f, 0, "[]"), -EBADMSG);
	cr_assert_eq(feed_reading(f, 1, 1, (double[]){ 1 }), -EBADMSG, "no such counter");
	cr_assert_eq(define(f, 0, "{\"name\":\"x\",\"kind\":\"level\"}"), 0);
	cr_assert_eq(define(f, 0, KIND("sum")), -EBADMSG, "there already");
	cr_assert_eq(feed_reading(f, 1, 2, (double[]){ 1, 2 }), -EBADMSG);
	cr_assert_eq(feed_reading(f, 1, 1, (double[]){ 1 }), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_READING], 1);
	cr_assert_str_eq(model_counter(f->model, 0)->unit, "");
	fixture_free(f);
}

Test(model_device_counters, there_is_an_end_to_counters)
{
	struct fixture *f = fixture_create();

	for (__u64 i = 0; i < XPT_COUNTER_MAX; i++)
		cr_assert_eq(define(f, i, KIND("level")), 0);
	cr_assert_eq(define(f, XPT_COUNTER_MAX, KIND("level")), -EBADMSG);
	fixture_free(f);
}

/* ---- around inferences ---- */

#define SLOTTED(name, kind, slots, each_cpu, scale)                                                                   \
	"{\"name\":\"" name "\",\"kind\":\"" kind "\",\"slots\":" slots ",\"each_cpu\":" each_cpu ",\"scale\":" scale \
	"}"

static struct model_counts between(const struct fixture *f, struct xpt_counts begin, struct xpt_counts end,
				   __u64 elapsed)
{
	struct model_counts counts;

	counter_samples_between(&((const struct model *)f->model)->samples, &begin, &end, true, elapsed, &counts);
	return counts;
}

Test(model_device_counters, instances_are_added_up_and_scaled)
{
	struct fixture *f = fixture_create();
	struct model_counts counts;

	cr_assert_eq(define(f, 0, SLOTTED("two", "sum", "2", "false", "0.5")), 0);
	cr_assert_eq(define(f, 1, KIND("sum")), 0, "not around inferences");
	cr_assert_eq(define(f, 2, SLOTTED("rate", "mean", "1", "false", "1")), 0);
	cr_assert_eq(define(f, 3, SLOTTED("own", "sum", "1", "true", "1")), 0);
	counts = between(f, (struct xpt_counts){ 15, 1, { 10, 100, 50, 7 } },
			 (struct xpt_counts){ 15, 1, { 13, 105, 70, 9 } }, 2000000000);
	cr_assert_eq(counts.count, 3);
	cr_assert_str_eq(counts.counters[0]->name, "two");
	cr_assert_str_eq(counts.counters[1]->name, "rate");
	cr_assert_str_eq(counts.counters[2]->name, "own");
	cr_assert_eq(counts.value[0], 4);
	cr_assert_eq(counts.value[1], 10, "in a second");
	cr_assert_eq(counts.value[2], 2);
	fixture_free(f);
}

/* Of an enqueue and a wait. */
Test(model_device_counters, what_a_thread_did_is_not_known_of_two)
{
	struct xpt_counts begin = { 3, 1, { 10, 20 } }, end = { 3, 2, { 15, 26 } };
	struct fixture *f = fixture_create();
	struct model_counts counts;

	cr_assert_eq(define(f, 0, "{\"name\":\"own\",\"kind\":\"sum\",\"slots\":1,\"of\":\"thread\",\"scale\":1}"), 0);
	cr_assert_eq(define(f, 1, "{\"name\":\"all\",\"kind\":\"sum\",\"slots\":1,\"of\":\"device\",\"scale\":1}"), 0);
	for (int same = 0; same < 2; same++) {
		counter_samples_between(&((const struct model *)f->model)->samples, &begin, &end, same, 1000, &counts);
		cr_assert_eq(same ? counts.value[0] == 5 : isnan(counts.value[0]), 1);
		cr_assert_eq(counts.value[1], 6);
	}
	cr_assert_str_eq(counts.counters[0]->of, "thread");
	fixture_free(f);
}

Test(model_device_counters, what_cannot_be_compared_is_not_known)
{
	struct fixture *f = fixture_create();
	struct model_counts counts;

	cr_assert_eq(define(f, 0, SLOTTED("device", "sum", "1", "false", "1")), 0);
	cr_assert_eq(define(f, 1, SLOTTED("own", "sum", "1", "true", "1")), 0);
	cr_assert_eq(define(f, 2, SLOTTED("mean", "mean", "1", "false", "1")), 0);
	cr_assert_eq(define(f, 3, SLOTTED("back", "sum", "1", "false", "1")), 0);
	counts = between(f, (struct xpt_counts){ 15, 0, { 1, 1, 1, 5 } }, (struct xpt_counts){ 15, 1, { 2, 2, 2, 4 } },
			 0);
	cr_assert_eq(counts.value[0], 1, "the same one on every CPU");
	cr_assert(isnan(counts.value[1]), "of another CPU");
	cr_assert(isnan(counts.value[2]), "in no time");
	cr_assert(isnan(counts.value[3]), "it fell");
	counts = between(f, (struct xpt_counts){ 1, 0, { 1, 1 } }, (struct xpt_counts){ 2, 0, { 2, 2 } }, 1);
	cr_assert(isnan(counts.value[0]), "not read at the end");
	cr_assert(isnan(counts.value[1]), "not read at the begin");
	fixture_free(f);
}

Test(model_device_counters, no_more_slots_than_there_are)
{
	struct fixture *f = fixture_create();

	cr_assert_eq(define(f, 0, SLOTTED("a", "sum", "3", "false", "1")), 0);
	cr_assert_eq(define(f, 1, SLOTTED("b", "sum", "2", "false", "1")), -EBADMSG);
	cr_assert_eq(define(f, 1, SLOTTED("b", "sum", "-1", "false", "1")), -EBADMSG);
	cr_assert_eq(define(f, 1, SLOTTED("b", "sum", "1", "false", "\"1\"")), -EBADMSG);
	cr_assert_eq(define(f, 1, SLOTTED("b", "sum", "1", "false", "2")), 0);
	fixture_free(f);
}

/* ---- in records of calls ---- */

/* The call with counts behind its values. */
static int feed_counted(struct fixture *f, struct call_record record, struct xpt_counts begin, struct xpt_counts end)
{
	const struct xpt_counts counts[2] = { begin, end };

	cr_assert_leq(record.call.header.size + sizeof(counts), sizeof(record));
	memcpy((char *)&record + record.call.header.size, counts, sizeof(counts));
	record.call.flags |= XPT_CALL_COUNTED;
	record.call.header.size += sizeof(counts);
	return feed_call(f, record);
}

Test(model_device_counters, an_execution_has_the_difference)
{
	struct fixture *f = fixture_toy();
	const struct event_call *call;

	cr_assert_eq(define(f, 0, SLOTTED("device", "sum", "1", "false", "1")), 0);
	cr_assert_eq(feed_counted(f, call_make(TOY_EXECUTE, 1, 1, 10, 20, 2, U(0x10), U(0)),
				  (struct xpt_counts){ 1, 0, { 30 } }, (struct xpt_counts){ 1, 1, { 42 } }),
		     0);
	CALL_1(f, TOY_EXECUTE, 1, 1, 30, 40, 2, 0x10, 0);
	cr_assert_eq(model_flush(f->model), 0);
	call = &seen_nth(f, EVENT_CALL, 0)->event.call;
	cr_assert_eq(call->counts.count, 1);
	cr_assert_eq(call->counts.value[0], 12);
	cr_assert_eq(seen_nth(f, EVENT_CALL, 1)->event.call.counts.count, 0, "nothing was read");
	fixture_free(f);
}

Test(model_device_counters, counts_that_do_not_fit_are_refused)
{
	struct fixture *f = fixture_toy();
	struct call_record record = call_make(TOY_EXECUTE, 1, 1, 10, 20, 2, U(0x10), U(0));

	record.call.flags |= XPT_CALL_COUNTED;
	cr_assert_eq(feed_call(f, record), -EBADMSG);
	fixture_free(f);
}

/* From the enqueue's begin to the wait's end, in whatever order they become known. */
Test(model_device_counters, an_asynchronous_inference_has_the_difference)
{
	struct fixture *f = fixture_toy();
	const struct event_inference *inference;
	const struct xpt_counts counts[] = {
		{ 1, 0, { 100 } },
		{ 1, 0, { 103 } },
		{ 1, 1, { 150 } },
		{ 1, 1, { 164 } },
	};

	cr_assert_eq(define(f, 0, SLOTTED("device", "sum", "1", "false", "1")), 0);
	for (__u64 i = 0; i < 2; i++) {
		struct call_record enqueue = call_make(TOY_ENQUEUE, 1, 1, 10 + 100 * i, 20 + 100 * i, 4, U(0x10), U(7),
						       U(3), U(0));
		struct call_record wait = call_make(TOY_WAIT, 1, 2, 15 + 100 * i, 40 + 100 * i, 3, U(7), U(1), U(0));

		if (i)
			cr_assert_eq(feed_counted(f, wait, counts[2], counts[3]), 0);
		cr_assert_eq(feed_counted(f, enqueue, counts[0], counts[1]), 0);
		if (!i)
			cr_assert_eq(feed_counted(f, wait, counts[2], counts[3]), 0);
	}
	cr_assert_eq(model_flush(f->model), 0);
	for (size_t i = 0; i < 2; i++) {
		inference = &seen_nth(f, EVENT_INFERENCE, i)->event.inference;
		cr_assert_eq(inference->counts.count, 1);
		cr_assert_eq(inference->counts.value[0], 64);
	}
	cr_assert_eq(seen_nth(f, EVENT_CALL, 0)->event.call.counts.count, 0, "an enqueue is no inference");
	fixture_free(f);
}
