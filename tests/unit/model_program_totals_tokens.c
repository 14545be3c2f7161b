/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "model/stats/statistics.h"
#include "model/program/totals.h"

#define BIT(meaning) (1u << XPT_MEANING_##meaning)

static const struct model_function function = { .name = "decode", .role = XPT_ROLE_EXECUTE };
static const struct model_program loaded = { .loaded = 1 }, earlier = { 0 };

/* The call with this number, of 10 ns, as positions and sequences are given; below 0: not at all. */
static struct event_call make(__u64 number, __u64 start, __s64 count, __s64 position, __s64 sequence, __s64 next)
{
	struct event_call call = { .function = &function,
				   .have = BIT(TOKENS),
				   .numbered = true,
				   .number = number,
				   .start = start,
				   .end = start + 10,
				   .tokens = (__u64)count,
				   .outcome = OUTCOME_OK };

	call.have |= position >= 0 ? BIT(POSITION) : 0;
	call.have |= sequence >= 0 ? BIT(SEQUENCE) : 0;
	call.have |= next >= 0 ? BIT(NEXT_SEQUENCE) : 0;
	call.position = (__u64)position;
	call.sequence = (__u64)sequence;
	call.next_sequence = (__u64)next;
	return call;
}

static enum model_phase phase(const struct model_program *program, struct event_call call)
{
	struct tokens *tokens = NULL;

	cr_assert_eq(tokens_call(&tokens, program, &call), 0);
	tokens_free(tokens);
	return call.phase;
}

Test(model_program_totals_tokens, phases)
{
	struct event_call call;

	cr_expect_eq(phase(&earlier, make(7, 100, 1, 5, 0, -1)), PHASE_DECODE);
	cr_expect_eq(phase(&earlier, make(7, 100, 1, 0, 0, -1)), PHASE_PREFILL, "a prompt of one token");
	cr_expect_eq(phase(&earlier, make(0, 100, 1, -1, -1, -1)), PHASE_DECODE, "not its first, as far as is known");
	cr_expect_eq(phase(&loaded, make(0, 100, 1, -1, -1, -1)), PHASE_PREFILL);
	cr_expect_eq(phase(&loaded, make(1, 100, 1, -1, -1, -1)), PHASE_DECODE);
	cr_expect_eq(phase(&loaded, make(1, 100, 9, -1, -1, -1)), PHASE_PREFILL);
	cr_expect_eq(phase(&loaded, make(1, 100, 9, 5, 3, 3)), PHASE_PREFILL);
	cr_expect_eq(phase(&loaded, make(1, 100, 9, 5, 3, 4)), PHASE_DECODE, "sequences together");
	cr_expect_eq(phase(&loaded, make(1, 100, 9, 5, 3, -1)), PHASE_PREFILL);
	cr_expect_eq(phase(&loaded, make(1, 100, 0, -1, -1, -1)), PHASE_NONE);
	cr_expect_eq(phase(&loaded, make(1, 100, -4, -1, -1, -1)), PHASE_NONE,
		     "what a program gives need not be right");
	call = make(1, 100, 9, 5, 3, 4);
	call.outcome = OUTCOME_PENDING;
	cr_expect_eq(phase(&loaded, call), PHASE_NONE);
	call.outcome = OUTCOME_OK;
	call.layer = true;
	cr_expect_eq(phase(&loaded, call), PHASE_NONE);
	call.layer = false;
	call.have = 0;
	cr_expect_eq(phase(&loaded, call), PHASE_NONE);
}

/* The times that a call ended: to the first token and for one more. */
static void expect(struct tokens **tokens, struct event_call call, __u64 first, __u64 more)
{
	cr_assert_eq(tokens_call(tokens, &earlier, &call), 0);
	cr_expect(call.first_token == first && call.output_token == more, "call %llu: %llu and %llu", call.number,
		  call.first_token, call.output_token);
}

Test(model_program_totals_tokens, times)
{
	const struct model_tokens *view;
	struct tokens *tokens = NULL;
	struct event_call failed = make(12, 500, 99, 5, 0, 0);

	expect(&tokens, make(1, 100, 8, 0, 0, 0), 0, 0);
	expect(&tokens, make(2, 120, 8, 8, 0, 0), 0, 0);
	expect(&tokens, make(3, 150, 1, 16, 0, -1), 50, 0);
	expect(&tokens, make(4, 190, 1, 17, 0, -1), 0, 40);
	view = tokens_view(tokens);
	cr_expect_eq(view->phase[PHASE_PREFILL].tokens, 16);
	cr_expect_eq(view->phase[PHASE_PREFILL].time, 10 + 30, "the last of the prompt until the first token is there");
	cr_expect_eq(view->phase[PHASE_DECODE].time, 40 + 10);
	/* A call between was not recorded: nothing is known of the time over it. */
	expect(&tokens, make(6, 300, 1, 19, 0, -1), 0, 0);
	/* More of the conversation; one that is too large and tried again. */
	expect(&tokens, make(7, 400, 9, 20, 0, 0), 0, 0);
	expect(&tokens, make(8, 410, 1, 29, 0, -1), 10, 0);
	expect(&tokens, make(9, 420, 8, 30, 0, 0), 0, 0);
	expect(&tokens, make(11, 440, 8, 38, 0, 0), 0, 0);
	failed.outcome = OUTCOME_PENDING;
	expect(&tokens, failed, 0, 0);
	expect(&tokens, make(13, 600, 1, 46, 0, -1), 0, 0);
	expect(&tokens, make(14, 590, 1, 47, 0, -1), 0, 0); /* begins before the one before has ended */
	cr_expect_eq(statistics_count(view->first_token), 2);
	cr_expect_eq(statistics_count(view->output_token), 1);
	tokens_free(tokens);
}

Test(model_program_totals_tokens, fold)
{
	struct tokens *from = NULL, *into = NULL, *none = NULL;

	expect(&from, make(1, 100, 8, 0, 0, 0), 0, 0);
	expect(&from, make(2, 120, 1, 8, 0, -1), 20, 0);
	tokens_fold(&none, &into);
	cr_assert_null(into);
	tokens_fold(&from, &into);
	cr_assert_null(from);
	expect(&from, make(1, 100, 4, 0, 0, 0), 0, 0);
	expect(&from, make(2, 130, 1, 4, 0, -1), 30, 0);
	tokens_fold(&from, &into);
	cr_expect_eq(tokens_view(into)->phase[PHASE_PREFILL].tokens, 12);
	cr_expect_eq(tokens_view(into)->phase[PHASE_DECODE].batches, 2);
	cr_expect_eq(statistics_count(tokens_view(into)->first_token), 2);
	tokens_free(from);
	tokens_free(into);
	tokens_free(NULL);
}
