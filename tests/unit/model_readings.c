/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/readings.h"

#include <math.h>

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

Test(model_readings, a_sum_is_told_as_its_rate)
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

Test(model_readings, a_mean_needs_a_reading_before_and_a_level_none)
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

Test(model_readings, what_is_not_known_is_not_told)
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

Test(model_readings, damaged_records_are_refused)
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

Test(model_readings, there_is_an_end_to_counters)
{
	struct fixture *f = fixture_create();

	for (__u64 i = 0; i < XPT_COUNTER_MAX; i++)
		cr_assert_eq(define(f, i, KIND("level")), 0);
	cr_assert_eq(define(f, XPT_COUNTER_MAX, KIND("level")), -EBADMSG);
	fixture_free(f);
}
