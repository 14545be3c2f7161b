/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile_trace.h"

/* ---- calls ---- */

Test(profile_trace_trace, wanted_calls_with_what_is_nested_in_them)
{
	struct fixture fixture;

	start(&fixture);
	feed_span(&fixture, MAIN, 2, 12, 13, 0);
	feed_span(&fixture, MAIN, 1, 11, 14, 0);
	feed_span(&fixture, OTHER, 1, 11, 15, 0); /* another thread: not in the call */
	feed_span(&fixture, MAIN, 1, 15, 16, 2);
	feed_span(&fixture, MAIN, 0, 10, 20, 1);
	feed_span(&fixture, OTHER, 0, 10, 21, 2);
	feed_span(&fixture, MAIN, 1, 22, 23, 0);
	feed_span(&fixture, MAIN, 0, 21, 24, 2);
	feed_span(&fixture, MAIN, 0, 25, 26, 0);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 4);
	cr_expect(has_span(&fixture, MAIN, 12, 13));
	cr_expect(has_span(&fixture, MAIN, 11, 14));
	cr_expect(has_span(&fixture, MAIN, 15, 16));
	cr_expect(has_span(&fixture, MAIN, 10, 20));
	cr_expect_eq(count(&fixture, "X", "program 1"), 1);
	cr_expect_eq(count(&fixture, "X", "program 2"), 1, "nested: its name has been kept");
	cr_expect_eq(fixture.lost, 0);
	end(&fixture);
}

/* Within calls that are not wanted; and a wanted one in a wanted one is there once. */
Test(profile_trace_trace, wanted_calls_that_are_nested)
{
	struct fixture fixture;

	start(&fixture);
	feed_span(&fixture, MAIN, 2, 12, 13, 0);
	feed_span(&fixture, MAIN, 1, 11, 14, 1);
	feed_span(&fixture, MAIN, 1, 15, 16, 0);
	feed_span(&fixture, MAIN, 0, 10, 20, 2);
	feed_span(&fixture, MAIN, 1, 31, 32, 0);
	feed_span(&fixture, MAIN, 1, 33, 34, 3);
	feed_span(&fixture, MAIN, 0, 30, 35, 1);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 5);
	cr_expect(has_span(&fixture, MAIN, 12, 13));
	cr_expect(has_span(&fixture, MAIN, 11, 14));
	cr_expect(has_span(&fixture, MAIN, 31, 32));
	cr_expect(has_span(&fixture, MAIN, 33, 34));
	cr_expect(has_span(&fixture, MAIN, 30, 35));
	end(&fixture);
}

/* The call around them was left out by sampling: the next one is not around them. */
Test(profile_trace_trace, nested_in_a_call_that_was_not_recorded)
{
	struct fixture fixture;

	start(&fixture);
	feed_span(&fixture, MAIN, 1, 11, 12, 0);
	feed_span(&fixture, MAIN, 1, 13, 14, 0);
	feed_span(&fixture, MAIN, 1, 31, 32, 0);
	feed_span(&fixture, MAIN, 0, 30, 33, 1);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 2);
	cr_expect(has_span(&fixture, MAIN, 31, 32));
	cr_expect(has_span(&fixture, MAIN, 30, 33));
	cr_expect_eq(fixture.lost, 0);
	end(&fixture);
}

/* It lies within the next call by time only. */
Test(profile_trace_trace, instant_at_the_begin_of_its_neighbour)
{
	struct fixture fixture;

	start(&fixture);
	feed_span(&fixture, MAIN, 1, 10, 10, 0);
	feed_span(&fixture, MAIN, 2, 10, 10, 0);
	feed_span(&fixture, MAIN, 1, 10, 20, 1);
	feed_span(&fixture, MAIN, 0, 5, 30, 2);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 2);
	end(&fixture);
}

Test(profile_trace_trace, layers_are_not_asked_for)
{
	struct fixture fixture;
	struct model_program program = program_of(1, "p");

	start(&fixture);
	feed_call(&fixture, (struct event_call){ .function = &execute,
						 .program = &program,
						 .layer = true,
						 .tgid = TGID,
						 .tid = MAIN,
						 .depth = 1,
						 .start = 2 * US,
						 .end = 3 * US });
	cr_expect_eq(fixture.asked, 0);
	feed_span(&fixture, MAIN, 0, 1, 4, 1);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 2);
	end(&fixture);
}

/* What belongs to no report is held all the same: the call around it may end in one. */
Test(profile_trace_trace, into_no_report)
{
	struct fixture fixture;

	start(&fixture);
	fixture.none = true;
	feed_span(&fixture, MAIN, 0, 1, 2, 1);
	feed_span(&fixture, MAIN, 1, 4, 5, 1);
	feed_wait(&fixture, 1, 4, 6, 9);
	feed_inference(&fixture, 1, 1, 6, 9);
	fixture.none = false;
	feed_span(&fixture, MAIN, 0, 3, 7, 1);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 2);
	cr_expect(has_span(&fixture, MAIN, 4, 5));
	cr_expect(has_span(&fixture, MAIN, 3, 7));
	cr_expect_eq(count(&fixture, "b", NULL), 0);
	end(&fixture);
}

Test(profile_trace_trace, all_values_of_a_nested_call_are_kept)
{
	struct fixture fixture;
	struct model_program program = program_of(2, "in\"ner\n\377");
	const cJSON *arguments;

	start(&fixture);
	feed_call(&fixture, (struct event_call){ .function = &execute,
						 .program = &program,
						 .start = 2 * US,
						 .end = 3 * US,
						 .tgid = TGID,
						 .tid = MAIN,
						 .depth = 1,
						 .sample = 4,
						 .have = 1u << XPT_MEANING_STATUS | 1u << XPT_MEANING_SIZE |
							 1u << XPT_MEANING_NAME,
						 .status = -7,
						 .status_name = "NRT_FAIL\\",
						 .outcome = OUTCOME_FAILED,
						 .size = 4096,
						 .name = "kernel\001" });
	feed_span(&fixture, MAIN, 0, 1, 4, 1);
	finish(&fixture);
	arguments = at(event_with(&fixture, "X", "in\"ner\n\xef\xbf\xbd"), "args");
	cr_expect_str_eq(string_at(arguments, "program"), "in\"ner\n\xef\xbf\xbd");
	cr_expect_eq(number_at(arguments, "program_id"), 2);
	cr_expect_str_eq(string_at(arguments, "status_name"), "NRT_FAIL\\");
	cr_expect_eq(at(arguments, "status")->valuedouble, -7);
	cr_expect_str_eq(string_at(arguments, "name"), "kernel\001");
	cr_expect_eq(number_at(arguments, "size"), 4096);
	cr_expect_eq(number_at(arguments, "sample"), 4);
	end(&fixture);
}

/* ---- a tree of calls at random, against what its shape says ---- */

#define SPANS_MAX 4000

struct span {
	int parent; /* -1: none */
	unsigned int depth, id;
	__u64 begin, finished;
};

struct forest {
	struct span spans[SPANS_MAX];
	int order[SPANS_MAX]; /* of their ends */
	int count, ended;
	__u64 now;
	unsigned int seed;
};

static unsigned int chance(struct forest *forest, unsigned int of)
{
	forest->seed = forest->seed * 1103515245 + 12345;
	return (forest->seed >> 16) % of;
}

static void grow(struct forest *forest, int parent, unsigned int depth)
{
	int self = forest->count++;
	struct span *span = &forest->spans[self];

	*span = (struct span){ .parent = parent, .depth = depth, .id = chance(forest, 4), .begin = ++forest->now };
	while (depth < 5 && forest->count < SPANS_MAX && chance(forest, 5) < 2)
		grow(forest, self, depth + 1);
	span->finished = ++forest->now;
	forest->order[forest->ended++] = self;
}

static bool is_shown(const struct forest *forest, int span)
{
	for (; span >= 0; span = forest->spans[span].parent)
		if (forest->spans[span].id & 1)
			return true;
	return false;
}

Test(profile_trace_trace, as_the_shape_of_the_calls_says)
{
	static struct forest forest = { .seed = 7 };
	struct fixture fixture;
	const struct span *span;
	int i, shown = 0;

	start(&fixture);
	while (forest.count < SPANS_MAX)
		grow(&forest, -1, 0);
	for (i = 0; i < forest.ended; i++) {
		span = &forest.spans[forest.order[i]];
		feed_span(&fixture, MAIN, span->depth, span->begin, span->finished, span->id);
	}
	finish(&fixture);
	for (i = 0; i < forest.count; i++)
		shown += is_shown(&forest, i);
	cr_expect_eq(count(&fixture, "X", NULL), shown);
	for (i = 0; i < forest.count; i += 17) {
		span = &forest.spans[i];
		cr_expect_eq(has_span(&fixture, MAIN, span->begin, span->finished), is_shown(&forest, i), "%d", i);
	}
	cr_expect_gt(shown, 1000);
	cr_expect_lt(shown, 3900);
	end(&fixture);
}

/* ---- waits and inferences ---- */

static void feed_enqueue(struct fixture *fixture, unsigned int id, __u64 begin, __u64 finished, __u64 flow)
{
	struct model_program program = program_of(id, "p");

	feed_call(fixture, (struct event_call){ .function = &enqueue,
						.program = &program,
						.start = begin * US,
						.end = finished * US,
						.tgid = TGID,
						.tid = MAIN,
						.flow_out = flow });
}

Test(profile_trace_trace, wait_comes_with_its_inference)
{
	struct fixture fixture;
	const cJSON *arrow;

	start(&fixture);
	feed_enqueue(&fixture, 1, 10, 11, 51);
	feed_enqueue(&fixture, 2, 12, 13, 52);
	feed_span(&fixture, OTHER, 1, 15, 16, 0);
	feed_wait(&fixture, 0, 14, 20, 51);
	feed_inference(&fixture, 1, 10, 20, 51);
	feed_wait(&fixture, 0, 21, 30, 52);
	feed_inference(&fixture, 2, 12, 30, 52);
	feed_wait(&fixture, 0, 31, 32, 0);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 3);
	cr_expect(has_span(&fixture, MAIN, 10, 11));
	cr_expect(has_span(&fixture, OTHER, 14, 20));
	cr_expect(has_span(&fixture, OTHER, 15, 16), "nested in the wait");
	cr_expect_eq(count(&fixture, "b", "program 1"), 1);
	cr_expect_eq(count(&fixture, "e", "program 1"), 1);
	cr_expect_eq(count(&fixture, "s", NULL), 1);
	cr_expect_eq(count(&fixture, "f", NULL), 1);
	arrow = event_with(&fixture, "f", "inference");
	cr_expect_str_eq(string_at(arrow, "id"), string_at(event_with(&fixture, "s", "inference"), "id"));
	cr_expect_str_eq(string_at(arrow, "id"), "0x33");
	cr_expect_eq(number_at(arrow, "tid"), OTHER);
	cr_expect_float_eq(number_at(arrow, "ts"), 19.999, 1e-6);
	end(&fixture);
}

/* One wait for a whole stream: it is there once, whichever of its inferences are wanted. */
Test(profile_trace_trace, one_wait_for_many_inferences)
{
	struct fixture fixture;
	const struct event counter = {
		.kind = EVENT_COUNTER,
		.counter = { .tgid = TGID, .time = 20 * US, .runtime = "nrt", .name = "queue depth" }
	};

	start(&fixture);
	feed_wait(&fixture, 1, 14, 20, 54);
	feed_inference(&fixture, 2, 9, 20, 51);
	feed_inference(&fixture, 1, 10, 20, 52);
	feed_inference(&fixture, 4, 11, 20, 53);
	feed_inference(&fixture, 3, 12, 20, 54);
	feed(&fixture, &counter);
	feed_span(&fixture, OTHER, 0, 13, 21, 1); /* around the wait, which has been shown already */
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 2);
	cr_expect(has_span(&fixture, OTHER, 14, 20));
	cr_expect_eq(count(&fixture, "b", NULL), 2);
	cr_expect_eq(count(&fixture, "f", NULL), 2);
	cr_expect_eq(count(&fixture, "C", "nrt queue depth"), 1);
	end(&fixture);
}

/* A wait that ended nothing wanted is like any other call. */
Test(profile_trace_trace, wait_of_others_in_a_wanted_call)
{
	struct fixture fixture;

	start(&fixture);
	feed_wait(&fixture, 1, 14, 20, 51);
	feed_inference(&fixture, 2, 9, 20, 51);
	feed_wait(&fixture, 1, 22, 24, 52);
	feed_region(&fixture, OTHER, 21, 25, "region");
	feed_span(&fixture, OTHER, 0, 13, 30, 1);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 4);
	cr_expect(has_span(&fixture, OTHER, 14, 20));
	cr_expect(has_span(&fixture, OTHER, 22, 24));
	cr_expect_eq(count(&fixture, "b", NULL), 0);
	end(&fixture);
}

/* The wait came before the enqueue had returned, or belongs to another call: no arrow ends where there is nothing. */
Test(profile_trace_trace, inference_without_its_wait)
{
	struct fixture fixture;

	start(&fixture);
	feed_wait(&fixture, 0, 14, 20, 0);
	feed_enqueue(&fixture, 1, 10, 21, 51);
	feed_inference(&fixture, 1, 10, 20, 51);
	feed_wait(&fixture, 0, 22, 23, 52);
	feed_inference(&fixture, 3, 10, 24, 53);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 1);
	cr_expect_eq(count(&fixture, "b", NULL), 2);
	cr_expect_eq(count(&fixture, "f", NULL), 0);
	end(&fixture);
}

/* ---- regions ---- */

Test(profile_trace_trace, regions_around_and_inside)
{
	struct fixture fixture;

	start(&fixture);
	feed_region(&fixture, MAIN, 1, 5, "before");
	feed_region(&fixture, MAIN, 12, 13, "inside");
	feed_region(&fixture, OTHER, 12, 14, "elsewhere");
	feed_span(&fixture, MAIN, 0, 10, 20, 1);
	feed_region(&fixture, MAIN, 9, 21, "around");
	feed_region(&fixture, MAIN, 22, 23, "after");
	feed_region(&fixture, MAIN, 8, 24, "around all");
	feed_span(&fixture, MAIN, 0, 25, 26, 2);
	feed_region(&fixture, MAIN, 25, 27, "around others");
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 4);
	cr_expect_eq(count(&fixture, "X", "inside"), 1);
	cr_expect_eq(count(&fixture, "X", "around"), 1);
	cr_expect_eq(count(&fixture, "X", "around all"), 1);
	end(&fixture);
}
