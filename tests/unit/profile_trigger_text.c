/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/trigger/trigger.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US 1000ull
#define MS 1000000ull
#define S 1000000000ull

static const struct {
	const char *text;
	struct trigger_condition condition;
} accepted[] = {
	{ "latency > 20ms", { TRIGGER_LATENCY, 0, false, 20 * MS, 0 } },
	{ "latency>=20ms", { TRIGGER_LATENCY, 0, true, 20 * MS, 0 } },
	{ " \tlatency\t>= 1.5 ms ", { TRIGGER_LATENCY, 0, true, 1500 * US, 0 } },
	{ "latency > 1ns", { TRIGGER_LATENCY, 0, false, 1, 0 } },
	{ "latency > 0.001us", { TRIGGER_LATENCY, 0, false, 1, 0 } },
	{ "latency > 0.5m", { TRIGGER_LATENCY, 0, false, 30 * S, 0 } },
	{ "latency > 0.00000000005m", { TRIGGER_LATENCY, 0, false, 3, 0 } },
	{ "latency > 60m", { TRIGGER_LATENCY, 0, false, 3600 * S, 0 } },
	{ "latency > 3600.000000000000000000000000000s", { TRIGGER_LATENCY, 0, false, 3600 * S, 0 } },
	{ "latency > 0000000000000000000000000000000020ms", { TRIGGER_LATENCY, 0, false, 20 * MS, 0 } },
	{ "latency > 3599.999999999s", { TRIGGER_LATENCY, 0, false, 3600 * S - 1, 0 } },
	{ "p50 > 250us over 10s", { TRIGGER_PERCENTILE, 50000, false, 250 * US, 10 * S } },
	{ "p90 > 1s over 1m", { TRIGGER_PERCENTILE, 90000, false, S, 60 * S } },
	{ "p95>=1s over 1ms", { TRIGGER_PERCENTILE, 95000, true, S, MS } },
	{ "p99 > 10ms over 5s", { TRIGGER_PERCENTILE, 99000, false, 10 * MS, 5 * S } },
	{ "p99.9 > 10ms over 5s", { TRIGGER_PERCENTILE, 99900, false, 10 * MS, 5 * S } },
	{ "p99.9000 > 10ms over 5s", { TRIGGER_PERCENTILE, 99900, false, 10 * MS, 5 * S } },
	{ "p99.999 > 10ms over 60m", { TRIGGER_PERCENTILE, 99999, false, 10 * MS, 3600 * S } },
	{ "p0.001 > 10ms over 1.5s", { TRIGGER_PERCENTILE, 1, false, 10 * MS, 1500 * MS } },
	{ "p33.3 > 10ms over 5s", { TRIGGER_PERCENTILE, 33300, false, 10 * MS, 5 * S } },
	{ "mean > 10ms over 5s", { TRIGGER_MEAN, 0, false, 10 * MS, 5 * S } },
	{ "max >= 10ms over 5s", { TRIGGER_MAX, 0, true, 10 * MS, 5 * S } },
	{ "error", { TRIGGER_ERROR, 0, false, 0, 0 } },
	{ "  error  ", { TRIGGER_ERROR, 0, false, 0, 0 } },
};

Test(profile_trigger_text, what_it_means)
{
	struct trigger_condition condition, expected;
	char reason[256];

	for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
		expected = accepted[i].condition;
		reason[0] = '\0';
		cr_assert_eq(trigger_text_parse(accepted[i].text, &condition, reason, sizeof(reason)), 0, "%s: %s",
			     accepted[i].text, reason);
		cr_assert_eq(condition.measure, expected.measure, "%s", accepted[i].text);
		cr_assert_eq(condition.percentile, expected.percentile, "%s", accepted[i].text);
		cr_assert_eq(condition.at_least, expected.at_least, "%s", accepted[i].text);
		cr_assert_eq(condition.limit, expected.limit, "%s: %llu", accepted[i].text, condition.limit);
		cr_assert_eq(condition.window, expected.window, "%s: %llu", accepted[i].text, condition.window);
		cr_assert_str_eq(reason, "");
	}
}

#define NOT_KNOWN \
	"is not known: latency, cpu, waited, blocked, error, mean, max or a percentile, as in 'latency > 20ms' or 'p99 > 10ms over 5s'"
#define NO_PERCENTILE "is no percentile: between p0 and p100, with up to three decimals, as in 'p99.9 > 10ms over 5s'"

static const struct {
	const char *text, *reason;
} refused[] = {
	{ "", "expected a condition at the end, as in 'latency > 20ms', 'p99 > 10ms over 5s' or 'error'" },
	{ " \t", "expected a condition at the end, as in 'latency > 20ms', 'p99 > 10ms over 5s' or 'error'" },
	{ "throughput > 5", "'throughput' " NOT_KNOWN },
	{ "Latency > 5ms", "'Latency' " NOT_KNOWN },
	{ "latencys > 5ms", "'latencys' " NOT_KNOWN },
	{ "lat > 5ms", "'lat' " NOT_KNOWN },
	{ "p > 5ms over 1s", "'p' " NOT_KNOWN },
	{ "pfoo > 5ms over 1s", "'pfoo' " NOT_KNOWN },
	{ "> 5ms", "'>' " NOT_KNOWN },
	{ "20ms", "'20ms' " NOT_KNOWN },
	{ "\033[2Jlatency > 5ms", "'\\x1b[2Jlatency' " NOT_KNOWN },
	{ "\xff\xfe > 5ms", "'\\xff\\xfe' " NOT_KNOWN },
	{ "an_uncommonly_long_word_that_is_no_measure > 5ms", "'an_uncommonly_long_word\xe2\x80\xa6' " NOT_KNOWN },
	{ "p0 > 5ms over 1s", "'p0' " NO_PERCENTILE },
	{ "p0.000 > 5ms over 1s", "'p0.000' " NO_PERCENTILE },
	{ "p100 > 5ms over 1s", "'p100' " NO_PERCENTILE },
	{ "p100.0 > 5ms over 1s", "'p100.0' " NO_PERCENTILE },
	{ "p99.9999 > 5ms over 1s", "'p99.9999' " NO_PERCENTILE },
	{ "p99. > 5ms over 1s", "'p99.' " NO_PERCENTILE },
	{ "p99.9.9 > 5ms over 1s", "'p99.9.9' " NO_PERCENTILE },
	{ "p9x > 5ms over 1s", "'p9x' " NO_PERCENTILE },
	{ "p18446744073709551665 > 5ms over 1s", "'p18446744073709551665' " NO_PERCENTILE },
	{ "latency", "expected > or >= and a time at the end, as in 'latency > 20ms'" },
	{ "p99", "expected > or >= and a time at the end, as in 'p99 > 10ms over 5s'" },
	{ "latency < 5ms", "'<' is no comparison: > or >=, as in 'latency > 20ms'" },
	{ "latency => 5ms", "'=>' is no comparison: > or >=, as in 'latency > 20ms'" },
	{ "latency >> 5ms", "'>>' is no comparison: > or >=, as in 'latency > 20ms'" },
	{ "latency >=> 5ms", "'>=>' is no comparison: > or >=, as in 'latency > 20ms'" },
	{ "latency over 5ms", "'over' is no comparison: > or >=, as in 'latency > 20ms'" },
	{ "latency 5ms", "'5ms' is no comparison: > or >=, as in 'latency > 20ms'" },
	{ "latency of resnet50 > 5ms", "'of' is no comparison: > or >=, as in 'latency > 20ms'" },
	{ "latency >", "expected a time at the end, as in 'latency > 20ms'" },
	{ "latency > fast", "'fast' is no time, as in 'latency > 20ms'" },
	{ "latency > -5ms", "'-5ms' is no time, as in 'latency > 20ms'" },
	{ "latency > .5ms", "'.5ms' is no time, as in 'latency > 20ms'" },
	{ "latency > 5.ms", "'5.ms' is no time, as in 'latency > 20ms'" },
	{ "latency > 20", "'20' needs a unit of ns, us, ms, s or m, as in 'latency > 20ms'" },
	{ "latency > 20 over", "'20' needs a unit of ns, us, ms, s or m, as in 'latency > 20ms'" },
	{ "latency > 20min", "'20min' needs a unit of ns, us, ms, s or m, as in 'latency > 20ms'" },
	{ "latency > 20MS", "'20MS' needs a unit of ns, us, ms, s or m, as in 'latency > 20ms'" },
	{ "latency > 1e3ms", "'1e3ms' needs a unit of ns, us, ms, s or m, as in 'latency > 20ms'" },
	{ "latency > 1,5ms", "'1' needs a unit of ns, us, ms, s or m, as in 'latency > 20ms'" },
	{ "latency > 0ms", "'0ms' is less than every inference takes: expected more, as in 'latency > 20ms'" },
	{ "latency >= 0.0s", "'0.0s' is less than every inference takes: expected more, as in 'latency > 20ms'" },
	{ "latency > 0.5ns", "'0.5ns' is not a whole number of nanoseconds, as in 'latency > 20ms'" },
	{ "latency > 1.0000000001s", "'1.0000000001s' is not a whole number of nanoseconds, as in 'latency > 20ms'" },
	{ "latency > 0.00000000000000000001s",
	  "'0.00000000000000000001s' is not a whole number of nanoseconds, as in 'latency > 20ms'" },
	{ "latency > 61m", "'61m' is more than 1 h, which is the most, as in 'latency > 20ms'" },
	{ "latency > 3600.000000001s",
	  "'3600.000000001s' is more than 1 h, which is the most, as in 'latency > 20ms'" },
	{ "latency > 3600.0000000001s",
	  "'3600.0000000001s' is more than 1 h, which is the most, as in 'latency > 20ms'" },
	{ "latency > 18446744073709551617ns",
	  "'18446744073709551617ns' is more than 1 h, which is the most, as in 'latency > 20ms'" },
	{ "latency > 1000000000000000000000000000000000000000000ns",
	  "'10000000000000000000000\xe2\x80\xa6' is more than 1 h, which is the most, as in 'latency > 20ms'" },
	{ "latency > 20ms over 5s",
	  "'over 5s' is too much: latency is of one inference, as in 'latency > 20ms' or 'max > 20ms over 5s'" },
	{ "waited > 20ms over 5s",
	  "'over 5s' is too much: waited is of one inference, as in 'latency > 20ms' or 'max > 20ms over 5s'" },
	{ "latency > 20ms of resnet50",
	  "'of resnet50' is too much: programs are not chosen in a trigger, as in 'latency > 20ms'" },
	{ "latency > 20ms, error", "', error' is too much, as in 'latency > 20ms'" },
	{ "latency > 20ms\n", "'\\x0a' is too much, as in 'latency > 20ms'" },
	{ "error > 5", "'> 5' is too much, as in 'error'" },
	{ "p99 > 10ms", "expected 'over' and a time at the end, as in 'p99 > 10ms over 5s'" },
	{ "mean > 10ms of x", "'of' is unexpected: expected 'over' and a time, as in 'p99 > 10ms over 5s'" },
	{ "max > 10ms 5s", "'5s' is unexpected: expected 'over' and a time, as in 'p99 > 10ms over 5s'" },
	{ "max > 10ms over5s", "'over5s' is unexpected: expected 'over' and a time, as in 'p99 > 10ms over 5s'" },
	{ "p99 > 0us over 5s", "'0us' is less than every inference takes: expected more, as in 'p99 > 10ms over 5s'" },
	{ "p99 > 10ms over", "expected a time at the end, as in 'p99 > 10ms over 5s'" },
	{ "p99 > 10ms over 0s", "'0s' is too short to look back: from 1 ms to 1 h, as in 'p99 > 10ms over 5s'" },
	{ "p99 > 10ms over 999us", "'999us' is too short to look back: from 1 ms to 1 h, as in 'p99 > 10ms over 5s'" },
	{ "p99 > 10ms over 3601s", "'3601s' is more than 1 h, which is the most, as in 'p99 > 10ms over 5s'" },
	{ "p99 > 10ms over 5s of x",
	  "'of x' is too much: programs are not chosen in a trigger, as in 'latency > 20ms'" },
	{ "p99 > 10ms over 5s over 5s", "'over 5s' is too much, as in 'p99 > 10ms over 5s'" },
};

Test(profile_trigger_text, every_refusal_has_its_reason)
{
	struct trigger_condition condition;
	char reason[256];

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		cr_assert_eq(trigger_text_parse(refused[i].text, &condition, reason, sizeof(reason)), -EINVAL, "%s",
			     refused[i].text);
		cr_assert_str_eq(reason, refused[i].reason, "%s", refused[i].text);
	}
}

/* What is shown as an example is accepted. */
Test(profile_trigger_text, examples_hold)
{
	struct trigger_condition condition;
	char reason[256], example[64];
	unsigned int seen = 0;
	const char *at;

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		at = strstr(refused[i].reason, "as in '");
		cr_assert(at, "%s", refused[i].reason);
		for (at += 6; sscanf(at, "'%63[^']'", example) == 1; seen++) {
			cr_assert_eq(trigger_text_parse(example, &condition, reason, sizeof(reason)), 0, "%s: %s",
				     example, reason);
			at = strchr(at + strlen(example) + 2, '\'') ?: "";
		}
	}
	cr_assert_geq(seen, sizeof(refused) / sizeof(refused[0]));
}

Test(profile_trigger_text, reasons_are_cut_to_size)
{
	struct trigger_condition condition;
	char whole[256], reason[256];
	size_t length;

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		trigger_text_parse(refused[i].text, &condition, whole, sizeof(whole));
		for (size_t size = 1; size < sizeof(reason); size++) {
			memset(reason, '#', sizeof(reason));
			trigger_text_parse(refused[i].text, &condition, reason, size);
			length = strlen(reason);
			cr_assert_lt(length, size);
			cr_assert_eq(reason[size], '#');
			cr_assert_eq(strncmp(reason, whole, length), 0);
			/* Never in the middle of a character, and no shorter than that needs. */
			cr_assert_neq((unsigned char)whole[length] & 0xc0, 0x80);
			cr_assert(length == strlen(whole) || length + 4 >= size);
		}
	}
}

static const char *time_text(__u64 nanoseconds)
{
	static char string[64];
	struct text text = {};

	trigger_text_time(&text, nanoseconds);
	trigger_text_copy(&text, string, sizeof(string));
	text_free(&text);
	return string;
}

Test(profile_trigger_text, times_are_reported_exactly)
{
	struct trigger_condition condition;
	char reason[256], again[128];
	__u64 nanoseconds;

	cr_assert_str_eq(time_text(0), "0 ns");
	cr_assert_str_eq(time_text(999), "999 ns");
	cr_assert_str_eq(time_text(1000), "1 us");
	cr_assert_str_eq(time_text(1500 * US), "1.5 ms");
	cr_assert_str_eq(time_text(20 * MS), "20 ms");
	cr_assert_str_eq(time_text(5 * S), "5 s");
	cr_assert_str_eq(time_text(5 * S + 1), "5.000000001 s");
	cr_assert_str_eq(time_text(3600 * S), "3600 s");
	cr_assert_str_eq(time_text(~0ull), "18446744073.709551615 s");
	/* What is reported can be read again. */
	srand(1);
	for (unsigned int i = 0; i < 10000; i++) {
		nanoseconds = ((__u64)rand() << 31 ^ (__u64)rand()) >> (rand() % 62);
		nanoseconds = 1 + nanoseconds % TRIGGER_TIME_MAX;
		snprintf(again, sizeof(again), "latency > %s", time_text(nanoseconds));
		cr_assert_eq(trigger_text_parse(again, &condition, reason, sizeof(reason)), 0, "%s: %s", again, reason);
		cr_assert_eq(condition.limit, nanoseconds, "%s", again);
	}
}
