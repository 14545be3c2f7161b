/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/trigger/trigger.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US 1000ull
#define MS 1000000ull
#define S 1000000000ull

static struct trigger *parse(const char *text)
{
	struct trigger *trigger = NULL;
	char reason[256] = "";

	cr_assert_eq(trigger_parse(text, &trigger, reason, sizeof(reason)), 0, "%s: %s", text, reason);
	return trigger;
}

static int tell(struct trigger *trigger, __u64 program, __u64 end, __u64 latency)
{
	struct trigger_inference inference = { .program = program, .start = end - latency, .end = end };
	int fires = trigger_inference(trigger, &inference);

	cr_assert(fires == 0 || fires == 1);
	return fires;
}

static void check_reason(const struct trigger *trigger, const char *name, const char *expected)
{
	char reason[512];

	trigger_reason(trigger, name, reason, sizeof(reason));
	cr_assert_str_eq(reason, expected);
}

/* ---- against sorting ---- */

#define SERIES 4000
#define PROGRAMS 5

struct reported {
	__u64 program, end, latency;
};

struct expected {
	bool at_least, mean;
	unsigned int percentile, least; /* thousandths of a percent; inferences */
	__u64 limit, window;
	/* of each program */
	__u64 newest[PROGRAMS];
	bool over[PROGRAMS];
};

static __u64 state;

static __u64 draw(__u64 below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

static int compare(const void *left, const void *right)
{
	const __u64 *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* Latencies of the program that are in its window, sorted; all were reported in time. */
static size_t gather(const struct expected *expected, const struct reported *reported, size_t count, __u64 *values)
{
	const struct reported *last = &reported[count - 1];
	__u64 width = expected->window / 20, newest = expected->newest[last->program] / width, first;
	size_t found = 0;

	first = newest > 19 ? (newest - 19) * width : 0;
	for (size_t i = 0; i < count; i++)
		if (reported[i].program == last->program && reported[i].end >= first)
			values[found++] = reported[i].latency;
	qsort(values, found, sizeof(*values), compare);
	return found;
}

/* What a mean, rounded up, or a percentile is. */
static __u64 exact_value(const struct expected *expected, const __u64 *values, size_t count)
{
	size_t rank = (count * expected->percentile + 99999) / 100000;
	__u64 sum = 0;

	if (!expected->mean)
		return values[rank - 1];
	for (size_t i = 0; i < count; i++)
		sum += values[i];
	return (sum + count - 1) / count;
}

/* Whether the last one reported fires, and what the value is then. */
static bool should_fire(struct expected *expected, const struct reported *reported, size_t count, __u64 *value,
			size_t *found)
{
	static __u64 values[SERIES];
	const struct reported *last = &reported[count - 1];
	bool was = expected->over[last->program];

	if (last->end > expected->newest[last->program])
		expected->newest[last->program] = last->end;
	*found = gather(expected, reported, count, values);
	if (*found < expected->least)
		return false;
	*value = exact_value(expected, values, *found);
	expected->over[last->program] = expected->at_least ? *value >= expected->limit : *value > expected->limit;
	return expected->over[last->program] && !was;
}

static bool in_time(const struct expected *expected, const struct reported *reported)
{
	__u64 width = expected->window / 20;

	return reported->end / width + 20 > expected->newest[reported->program] / width;
}

/*
 * Programs in turn, each in phases: how often it runs, how slow it is, how many are at the limit exactly. Now and
 * then the clock jumps by many windows, and ends are out of order by up to a third of one, or just about one.
 */
static void next_one(struct reported *reported, __u64 window, __u64 limit, size_t i)
{
	static __u64 now, gap, slow;

	if (i == 0)
		now = 100000 * S; /* after the longest latency */
	if (i % 200 == 0) {
		gap = 1 + draw(window / (1 + draw(400)));
		slow = draw(4);
	}
	now += draw(gap) + (draw(900) == 0 ? draw(3 * window) : 0) + (draw(1500) == 0 ? 100 * window : 0);
	reported->program = draw(4) ? i / 100 % PROGRAMS : draw(PROGRAMS);
	reported->end = now - draw(5) / 4 * draw(window / 3) - (draw(60) == 0 ? window / 10 * 9 + draw(window / 5) : 0);
	reported->latency = draw(limit) + 1;
	if (draw(10) < 3 * slow)
		reported->latency += draw(4) ? draw(limit) : draw(20 * limit);
	if (draw(5) == 0)
		reported->latency = limit;
}

/* Returns how often it fired; *late: how many were reported too late to count. */
static unsigned int compare_series(const char *text, struct expected expected, __u64 seed, __u64 *late)
{
	static struct reported reported[SERIES];
	struct trigger *trigger = parse(text);
	unsigned int fired = 0;
	const struct trigger_firing *last = trigger_last(trigger);
	size_t count = 0, found;
	__u64 value = 0;

	state = seed;
	*late = 0;
	for (size_t i = 0; i < SERIES; i++) {
		struct reported *one = &reported[count];
		bool fires;

		next_one(one, expected.window, expected.limit, i);
		if (!in_time(&expected, one)) {
			cr_assert_not(tell(trigger, one->program, one->end, one->latency));
			++*late;
			continue;
		}
		fires = should_fire(&expected, reported, ++count, &value, &found);
		cr_assert_eq(tell(trigger, one->program, one->end, one->latency), fires, "%s: number %zu", text, i);
		if (!fires)
			continue;
		fired++;
		cr_assert_eq(last->program, one->program);
		cr_assert_eq(last->inferences, found);
		cr_assert(expected.at_least ? last->value >= expected.limit : last->value > expected.limit);
		cr_assert_leq(last->value > value ? last->value - value : value - last->value,
			      expected.mean || expected.percentile == 100000 ? 0 : value / 100,
			      "%s: number %zu: %llu is %llu", text, i, last->value, value);
	}
	cr_assert_eq(trigger_losses(trigger)->left_out, *late);
	cr_assert_eq(trigger_losses(trigger)->forgotten, 0);
	trigger_free(trigger);
	return fired;
}

static const struct {
	const char *text;
	struct expected expected;
} compared[] = {
	{ "p50 > 10ms over 5s", { .percentile = 50000, .least = 20, .limit = 10 * MS, .window = 5 * S } },
	{ "p90 >= 10ms over 5s",
	  { .percentile = 90000, .least = 20, .limit = 10 * MS, .window = 5 * S, .at_least = true } },
	{ "p95 > 700us over 1ms", { .percentile = 95000, .least = 20, .limit = 700 * US, .window = MS } },
	{ "p99 > 10ms over 5s", { .percentile = 99000, .least = 20, .limit = 10 * MS, .window = 5 * S } },
	{ "p99.9 > 2s over 60m", { .percentile = 99900, .least = 20, .limit = 2 * S, .window = 3600 * S } },
	{ "p33.333 >= 50ns over 1.000000007s",
	  { .percentile = 33333, .least = 20, .limit = 50, .window = S + 7, .at_least = true } },
	{ "p80 > 1m over 10s", { .percentile = 80000, .least = 20, .limit = 60 * S, .window = 10 * S } },
	{ "mean > 10ms over 5s", { .mean = true, .least = 20, .limit = 10 * MS, .window = 5 * S } },
	{ "mean >= 6ms over 5s", { .mean = true, .least = 20, .limit = 6 * MS, .window = 5 * S, .at_least = true } },
	{ "max > 10ms over 1s", { .percentile = 100000, .least = 1, .limit = 10 * MS, .window = S } },
	{ "max >= 10ms over 1s",
	  { .percentile = 100000, .least = 1, .limit = 10 * MS, .window = S, .at_least = true } },
};

Test(profile_trigger_trigger, fires_as_sorting_says)
{
	unsigned int fired;
	__u64 late, all_late = 0;

	for (size_t i = 0; i < sizeof(compared) / sizeof(compared[0]); i++) {
		fired = 0;
		for (__u64 seed = 1; seed <= 3; seed++) {
			fired += compare_series(compared[i].text, compared[i].expected, seed * 88172645463325252ull,
						&late);
			all_late += late;
		}

		cr_assert_geq(fired, 10, "%s: only %u times", compared[i].text, fired);
	}
	cr_assert_geq(all_late, 100);
}

/* A slow one before, and one now: it fires again when the first is out of the window by the quiet one between. */
static bool forgotten_after(__u64 base, __u64 distance)
{
	struct trigger *trigger = parse("max > 10ms over 1s");
	bool again;

	cr_assert(tell(trigger, 1, base, 11 * MS));
	cr_assert_not(tell(trigger, 1, base + distance, MS));
	again = tell(trigger, 1, base + distance, 11 * MS);
	trigger_free(trigger);
	return again;
}

Test(profile_trigger_trigger, looks_back_over_95_to_100_percent_of_the_time)
{
	state = 5;
	for (unsigned int i = 0; i < 1000; i++) {
		__u64 base = 100 * S + draw(3 * S);

		cr_assert_not(forgotten_after(base, 950 * MS - draw(2 * US)));
		cr_assert(forgotten_after(base, S + draw(2 * US)));
	}
}

/* ---- what fires, and what is reported of it ---- */

Test(profile_trigger_trigger, latency_of_each)
{
	struct trigger *above = parse("latency > 20ms"), *at = parse("latency >= 20ms");
	struct trigger_inference wrong = { .program = 1, .start = 2, .end = 1 };

	cr_assert_eq(trigger_last(above)->program, 0);
	cr_assert_not(tell(above, 7, 100 * S, 20 * MS));
	cr_assert(tell(at, 7, 100 * S, 20 * MS));
	check_reason(at, "resnet50", "latency of resnet50 was 20 ms (>= 20 ms)");
	cr_assert_not(tell(at, 7, 101 * S, 20 * MS - 1));
	for (unsigned int i = 0; i < 3; i++)
		cr_assert(tell(above, 7, 102 * S, 34123456), "each one fires");
	cr_assert_eq(trigger_last(above)->program, 7);
	cr_assert_eq(trigger_last(above)->value, 34123456);
	cr_assert_eq(trigger_last(above)->inferences, 1);
	check_reason(above, "resnet50", "latency of resnet50 was 34.1 ms (> 20 ms)");
	/* Ends may be in any order. */
	cr_assert(tell(above, 7, S, 20 * MS + 1));
	check_reason(above, "resnet50", "latency of resnet50 was 20.000001 ms (> 20 ms)");
	cr_assert(tell(above, 7, S, 20040000));
	check_reason(above, "resnet50", "latency of resnet50 was 20.04 ms (> 20 ms)");
	cr_assert_eq(trigger_inference(above, &wrong), 0);
	cr_assert_eq(trigger_losses(above)->left_out, 1);
	trigger_free(above);
	trigger_free(at);
}

Test(profile_trigger_trigger, errors)
{
	struct trigger *trigger = parse("error"), *slow = parse("max > 1ms over 1s");
	struct trigger_inference inference = { .program = 3, .start = 5 * MS, .end = 7 * MS };

	cr_assert_eq(trigger_inference(trigger, &inference), 0);
	inference.failed = true;
	cr_assert_eq(trigger_inference(trigger, &inference), 1);
	cr_assert_eq(trigger_inference(trigger, &inference), 1, "each one fires");
	cr_assert_eq(trigger_last(trigger)->value, 2 * MS);
	check_reason(trigger, "bert", "an inference of bert failed");
	cr_assert_eq(trigger_inference(slow, &inference), 1, "one that failed has a latency as others have");
	inference.start = 8 * MS;
	cr_assert_eq(trigger_inference(trigger, &inference), 1, "whatever its latency is");
	cr_assert_eq(trigger_last(trigger)->value, 0);
	trigger_free(trigger);
	trigger_free(slow);
}

Test(profile_trigger_trigger, percentiles_need_twenty_inferences)
{
	struct trigger *percentile = parse("p50 > 10ms over 5s"), *mean = parse("mean > 10ms over 5s");
	struct trigger *most = parse("max > 10ms over 5s");

	cr_assert(tell(most, 1, 100 * S, 12345678));
	check_reason(most, "a", "max of a over 5 s was 12.3 ms (> 10 ms, 1 inference)");
	for (unsigned int i = 0; i < 19; i++) {
		cr_assert_not(tell(percentile, 1, 100 * S + i, 12 * MS));
		cr_assert_not(tell(mean, 1, 100 * S + i, 12345678));
		/* those of another program are not its own */
		cr_assert_not(tell(percentile, 2, 100 * S + i, 12 * MS));
	}
	cr_assert(tell(percentile, 1, 100 * S + 19, 12 * MS));
	cr_assert(tell(mean, 1, 100 * S + 19, 12345678));
	check_reason(percentile, "a", "p50 of a over 5 s was 12 ms (> 10 ms, 20 inferences)");
	check_reason(mean, "a", "mean of a over 5 s was 12.3 ms (> 10 ms, 20 inferences)");
	/* Six seconds later fewer than twenty are left: it neither fires nor is it below. */
	for (unsigned int i = 0; i < 19; i++)
		cr_assert_not(tell(percentile, 1, 106 * S + i, MS));
	cr_assert_not(tell(percentile, 1, 112 * S, MS));
	for (unsigned int i = 0; i < 40; i++)
		cr_assert_not(tell(percentile, 1, 118 * S, 12 * MS), "not again before it was below");
	for (unsigned int i = 0; i < 40; i++)
		cr_assert_not(tell(percentile, 1, 118 * S, MS));
	cr_assert(tell(percentile, 1, 118 * S, 12 * MS), "41 of 81");
	cr_assert_not(tell(percentile, 1, 118 * S, 12 * MS));
	trigger_free(percentile);
	trigger_free(mean);
	trigger_free(most);
}

Test(profile_trigger_trigger, names_are_made_safe_and_cut)
{
	struct trigger *trigger = parse("p99.9 >= 1.5ms over 1m");
	char name[600], reason[512], cut[10];

	for (unsigned int i = 0; i < 20; i++)
		tell(trigger, 1, S, 2 * MS);
	check_reason(trigger, "a\033[2J\xff", "p99.9 of a\\x1b[2J\\xff over 60 s was 2 ms (>= 1.5 ms, 20 inferences)");
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	trigger_reason(trigger, name, reason, sizeof(reason));
	cr_assert(strstr(reason, "nnn\xe2\x80\xa6 over 60 s was 2 ms"), "%s", reason);
	trigger_reason(trigger, "a", cut, sizeof(cut));
	cr_assert_str_eq(cut, "p99.9 of ");
	trigger_free(trigger);
}

Test(profile_trigger_trigger, refused_text_makes_none)
{
	struct trigger *trigger = NULL;
	char reason[256];

	cr_assert_eq(trigger_parse("latency > 0s", &trigger, reason, sizeof(reason)), -EINVAL);
	cr_assert_null(trigger);
	cr_assert(strstr(reason, "'0s'"));
	trigger_free(NULL);
}

/* ---- memory ---- */

static size_t in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

#if defined(__SANITIZE_ADDRESS__)
#define MEASURES_MEMORY 0 /* the sanitizer's allocator does not tell */
#else
#define MEASURES_MEMORY 1
#endif

#define CACHED 16384 /* bytes of freed blocks that the allocator keeps at hand, and does not count as free */

Test(profile_trigger_trigger, memory_does_not_depend_on_the_rate)
{
	/* As the header has it: from 10 to 80 ms is three doublings, in four rows of the histogram. */
	const size_t all = 1229 + TRIGGER_SLICES * (1024 + 4 * 512);
	struct trigger *trigger;
	size_t before = in_use();

	if (!MEASURES_MEMORY)
		cr_skip_test("the sanitizer's allocator does not say how much is in use");
	trigger = parse("p99 > 10ms over 5s");
	state = 9;
	for (__u64 i = 0; i < 1000000; i++) {
		tell(trigger, 1, 100 * S + i * 20 * US, 10 * MS + 1 + draw(70 * MS));
		if (i % 100000 == 50000)
			cr_assert_leq(in_use() - before, all, "%zu after %llu", in_use() - before, i);
	}
	cr_assert_geq(in_use() - before, all / 2, "it is used");
	/* Where all latencies keep to the limit it is as if there had been none. */
	for (__u64 i = 0; i < 1000000; i++)
		tell(trigger, 1, 200 * S + i * 20 * US, draw(10 * MS));
	cr_assert_leq(in_use() - before, 1229 + CACHED, "%zu", in_use() - before);
	trigger_free(trigger);
}

Test(profile_trigger_trigger, programs_are_bounded)
{
	struct trigger *trigger = parse("p50 > 10ms over 5s");
	size_t before = in_use();

	for (__u64 i = 0; i < 1000000; i++)
		cr_assert_not(tell(trigger, 1 + i % 5000, 100 * S + i, 5 * MS));
	if (MEASURES_MEMORY)
		cr_assert_leq(in_use() - before, TRIGGER_PROGRAMS * 1229, "%zu", in_use() - before);
	cr_assert_eq(trigger_losses(trigger)->forgotten, 1000000 - TRIGGER_PROGRAMS);
	trigger_free(trigger);
}

Test(profile_trigger_trigger, the_program_that_ran_least_recently_is_forgotten)
{
	struct trigger *trigger = parse("max > 10ms over 5s");

	for (__u64 i = 0; i < TRIGGER_PROGRAMS; i++)
		cr_assert(tell(trigger, i, 100 * S, 11 * MS));
	cr_assert_not(tell(trigger, 0, 100 * S, 11 * MS));
	cr_assert(tell(trigger, TRIGGER_PROGRAMS, 100 * S, 11 * MS));
	cr_assert_eq(trigger_losses(trigger)->forgotten, 1);
	cr_assert_not(tell(trigger, 0, 100 * S, 11 * MS), "it had run again");
	cr_assert(tell(trigger, 1, 100 * S, 11 * MS), "begins anew");
	cr_assert_eq(trigger_losses(trigger)->forgotten, 2);
	trigger_free(trigger);
}

/* ---- save limits ---- */

static void check_text(const struct save_limits *limits, enum save_answer answer, __u64 now, const char *expected)
{
	char text[128], cut[8];

	save_limits_text(limits, answer, now, text, sizeof(text));
	cr_assert_str_eq(text, expected);
	save_limits_text(limits, answer, now, cut, sizeof(cut));
	cr_assert_eq(strlen(cut), sizeof(cut) - 1);
	cr_assert_eq(strncmp(cut, expected, sizeof(cut) - 1), 0);
}

Test(profile_trigger_trigger, one_at_a_time)
{
	struct save_limits limits = {};

	cr_assert_eq(save_limits_ask(&limits, 5), SAVE_MAY);
	cr_assert_eq(save_limits_ask(&limits, 5), SAVE_PENDING);
	cr_assert_eq(save_limits_ask(&limits, 100 * S), SAVE_PENDING);
	check_text(&limits, SAVE_PENDING, 5, "the save before is not done");
	save_limits_done(&limits, 1000);
	cr_assert_eq(save_limits_ask(&limits, 5), SAVE_MAY, "without a cooldown");
	cr_assert_eq(limits.answers[SAVE_MAY], 2);
	cr_assert_eq(limits.answers[SAVE_PENDING], 2);
}

Test(profile_trigger_trigger, cooldown)
{
	struct save_limits limits = { .cooldown = 10 * S };

	cr_assert_eq(save_limits_ask(&limits, 3 * S), SAVE_MAY, "the first one has nothing to wait for");
	save_limits_done(&limits, 1);
	cr_assert_eq(save_limits_ask(&limits, 3 * S), SAVE_COOLDOWN);
	check_text(&limits, SAVE_COOLDOWN, 3 * S, "the save before was 0 ns ago, less than 10 s");
	cr_assert_eq(save_limits_ask(&limits, 2 * S), SAVE_COOLDOWN, "an inference that ended before");
	cr_assert_eq(save_limits_ask(&limits, 13 * S - 1), SAVE_COOLDOWN);
	check_text(&limits, SAVE_COOLDOWN, 13 * S - 1, "the save before was 9.9 s ago, less than 10 s");
	cr_assert_eq(save_limits_ask(&limits, 13 * S), SAVE_MAY);
	/* It is counted from when the save was granted, not from its end. */
	cr_assert_eq(save_limits_ask(&limits, 22 * S), SAVE_PENDING);
	save_limits_done(&limits, 1);
	cr_assert_eq(save_limits_ask(&limits, 22 * S), SAVE_COOLDOWN);
	cr_assert_eq(save_limits_ask(&limits, 23 * S), SAVE_MAY);
	check_text(&limits, SAVE_MAY, 23 * S, "it may save");
	cr_assert_eq(limits.answers[SAVE_COOLDOWN], 4);
	cr_assert_eq(limits.answers[SAVE_PENDING], 1);
}

Test(profile_trigger_trigger, files)
{
	struct save_limits limits = { .files_most = 3 };

	for (unsigned int i = 0; i < 3; i++) {
		cr_assert_eq(save_limits_ask(&limits, i), SAVE_MAY);
		save_limits_done(&limits, 10);
	}
	cr_assert_eq(save_limits_ask(&limits, 4), SAVE_FILES);
	check_text(&limits, SAVE_FILES, 4, "triggers have saved 3 files, and may save no more");
	cr_assert_eq(limits.files, 3);
	cr_assert_eq(limits.bytes, 30);
	limits = (struct save_limits){ .files_most = 1 };
	save_limits_ask(&limits, 0);
	save_limits_done(&limits, 10);
	check_text(&limits, SAVE_FILES, 4, "triggers have saved 1 file, and may save no more");
}

Test(profile_trigger_trigger, bytes)
{
	struct save_limits limits = { .bytes_most = 4096 };

	cr_assert_eq(save_limits_ask(&limits, 0), SAVE_MAY);
	save_limits_done(&limits, 4095);
	cr_assert_eq(save_limits_ask(&limits, 0), SAVE_MAY, "the last one may go beyond");
	save_limits_done(&limits, 2049);
	cr_assert_eq(save_limits_ask(&limits, 0), SAVE_BYTES);
	check_text(&limits, SAVE_BYTES, 0, "triggers have saved 6.00KiB, and may save 4.00KiB");
	cr_assert_eq(limits.bytes, 6144);
	cr_assert_eq(limits.answers[SAVE_BYTES], 1);
}

Test(profile_trigger_trigger, a_save_that_fails_is_no_file_but_has_its_cooldown)
{
	struct save_limits limits = { .cooldown = 10 * S, .files_most = 1 };

	cr_assert_eq(save_limits_ask(&limits, 0), SAVE_MAY);
	save_limits_done(&limits, 0);
	cr_assert_eq(limits.files, 0);
	cr_assert_eq(save_limits_ask(&limits, 9 * S), SAVE_COOLDOWN);
	cr_assert_eq(save_limits_ask(&limits, 10 * S), SAVE_MAY);
	save_limits_done(&limits, 1);
	cr_assert_eq(save_limits_ask(&limits, 11 * S), SAVE_FILES, "that for good is reported before that for now");
}

/* Against a plain record of what was granted and written. */
Test(profile_trigger_trigger, all_of_them_over_a_random_day)
{
	struct save_limits limits = { .cooldown = 30 * S, .files_most = 40, .bytes_most = 1000000 };
	__u64 now = 0, granted = 0, files = 0, bytes = 0, asked = 0, answered = 0, size;
	bool pending = false, any = false;
	enum save_answer answer;

	srand(7);
	for (unsigned int i = 0; i < 20000; i++) {
		now += (__u64)(rand() % 10) * S;
		if (pending && rand() % 3 == 0) {
			size = rand() % 4 ? (__u64)(rand() % 60000) : 0;
			save_limits_done(&limits, size);
			files += size != 0;
			bytes += size;
			pending = false;
		}
		answer = save_limits_ask(&limits, now);
		asked++;
		cr_assert_eq(answer == SAVE_MAY,
			     !pending && files < 40 && bytes < 1000000 && (!any || now - granted >= 30 * S));
		if (answer == SAVE_MAY) {
			granted = now;
			any = pending = true;
		}
	}
	for (unsigned int i = 0; i < SAVE_ANSWERS; i++)
		answered += limits.answers[i];
	cr_assert_eq(answered, asked);
	cr_assert_eq(limits.files, files);
	cr_assert_eq(limits.bytes, bytes);
	cr_assert_gt(limits.answers[SAVE_COOLDOWN], 100);
	cr_assert_gt(limits.answers[SAVE_BYTES] + limits.answers[SAVE_FILES], 100);
}

/* Of what the thread did, where that is known. */
Test(profile_trigger_trigger, states)
{
	static const struct {
		const char *text, *reason;
		int fires;
	} cases[] = { { "cpu > 5ms", "CPU time of net was 6 ms (> 5 ms)", 1 },
		      { "waited >= 3ms", "waiting time of net was 3 ms (>= 3 ms)", 1 },
		      { "blocked > 1ms", NULL, 0 } };
	const struct model_states states = { .calls = 1, .cpu = 6 * MS, .waited = 3 * MS, .blocked = 1 * MS };
	struct trigger_inference inference = { .program = 1, .start = 5, .end = 5 + 10 * MS };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct trigger *trigger = parse(cases[i].text);

		inference.states = NULL;
		cr_expect_eq(trigger_inference(trigger, &inference), 0);
		inference.states = &(struct model_states){ 0 };
		cr_expect_eq(trigger_inference(trigger, &inference), 0);
		cr_expect_eq(trigger_losses(trigger)->left_out, 2);
		inference.states = &states;
		cr_expect_eq(trigger_inference(trigger, &inference), cases[i].fires, "%s", cases[i].text);
		if (cases[i].reason)
			check_reason(trigger, "net", cases[i].reason);
		trigger_free(trigger);
	}
}
