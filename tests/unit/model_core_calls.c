/* SPDX-License-Identifier: BSD-2-Clause */
#include "model_records.h"

Test(model_core_calls, an_event_has_all_that_the_record_had)
{
	struct fixture *f = fixture_toy();
	struct call_record record = call_make(TOY_EXECUTE, 11, 12, 1000, 2500, 4, U(0xabc), U(64), (__u64)-1LL, U(600));
	const struct event_call *call;

	record.call.depth = 3;
	record.call.cpu = 9;
	record.call.sample = 16;
	cr_assert_eq(feed_call(f, record), 0);
	cr_assert_eq(model_flush(f->model), 0);
	call = &seen_nth(f, EVENT_CALL, 0)->event.call;
	cr_assert_str_eq(call->function->name, "toy_execute");
	cr_assert_eq(call->start, 1000);
	cr_assert_eq(call->end, 2500);
	cr_assert_eq(call->tgid, 11);
	cr_assert_eq(call->tid, 12);
	cr_assert_eq(call->depth, 3);
	cr_assert_eq(call->cpu, 9);
	cr_assert_eq(call->sample, 16);
	cr_assert_not(call->layer);
	cr_assert_not(call->no_end);
	cr_assert_eq(call->have, 1u << XPT_MEANING_PROGRAM | 1u << XPT_MEANING_SIZE | 1u << XPT_MEANING_CORE |
					 1u << XPT_MEANING_STATUS);
	cr_assert_eq(call->handle, 0xabc);
	cr_assert_eq(call->size, 64);
	cr_assert_eq(call->core, -1);
	cr_assert_eq(call->status, 600);
	cr_assert_eq(call->outcome, OUTCOME_PENDING);
	cr_assert_str_eq(call->status_name, "TOY_NOT_READY");
	cr_assert_null(call->name);
	cr_assert_eq(call->program, model_program(f->model, 0));
	cr_assert_eq(model_first_time(f->model), 1000);
	cr_assert_eq(model_last_time(f->model), 2500);
	fixture_free(f);
}

Test(model_core_calls, names_are_in_the_event_of_their_call)
{
	struct fixture *f = fixture_toy();
	const struct event_call *call;

	toy_load(f, 5, "resnet", 100, 200);
	cr_assert_eq(model_flush(f->model), 0);
	call = &seen_nth(f, EVENT_CALL, 0)->event.call;
	cr_assert(call->have & 1u << XPT_MEANING_NAME);
	cr_assert_eq(call->name_length, 6);
	cr_assert_not(call->name_truncated);
	cr_assert_str_eq(seen_nth(f, EVENT_CALL, 0)->name, "resnet");
	cr_assert_str_eq(seen_nth(f, EVENT_CALL, 0)->program, "resnet");
	/* the process, the call, then the program that it made */
	cr_assert_eq(f->seen[0].event.kind, EVENT_PROCESS);
	cr_assert_eq(f->seen[1].event.kind, EVENT_CALL);
	cr_assert_eq(f->seen[2].event.kind, EVENT_PROGRAM);
	cr_assert_eq(f->count, 3);
	fixture_free(f);
}

Test(model_core_calls, a_sample_of_zero_stands_for_one_call)
{
	struct fixture *f = fixture_toy();
	struct call_record record = call_make(TOY_COPY, 1, 1, 1, 2, 2, U(1), U(0));

	record.call.sample = 0;
	cr_assert_eq(feed_call(f, record), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(seen_nth(f, EVENT_CALL, 0)->event.call.sample, 1);
	fixture_free(f);
}

Test(model_core_calls, where_nothing_tells_of_failure_a_null_handle_does)
{
	struct fixture *f = fixture_toy();
	const unsigned int make = 100;

	feed_spec(f, make, 0, "toy_make", "program.load", XPT_SUCCESS_ALWAYS, R("program", "u64"));
	CALL_1(f, make, 1, 1, 10, 20, 1, U(0));
	CALL_1(f, make, 1, 1, 30, 40, 1, U(8));
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_program_count(f->model), 1);
	cr_assert_eq(model_program(f->model, 0)->handle, 8);
	fixture_free(f);
}

Test(model_core_calls, a_call_about_a_program_does_not_make_one)
{
	struct fixture *f = fixture_toy();
	const unsigned int copy = 100;

	feed_spec(f, copy, 0, "toy_copy_to", "copy", XPT_SUCCESS_ALWAYS, F("program", "u64"));
	CALL_1(f, copy, 1, 1, 10, 20, 1, U(5));
	toy_load(f, 5, "five", 30, 40);
	CALL_1(f, copy, 1, 1, 50, 60, 1, U(5));
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_program_count(f->model), 1);
	cr_assert_null(seen_nth(f, EVENT_CALL, 0)->event.call.program);
	cr_assert_str_eq(seen_nth(f, EVENT_CALL, 2)->program, "five");
	cr_assert_eq(model_program(f->model, 0)->recorded, 0);
	fixture_free(f);
}

Test(model_core_calls, a_layer_that_waits_ends_what_its_own_runtime_has_open)
{
	struct fixture *f = fixture_toy();
	const unsigned int sync = 100;
	struct call_record record;

	feed_spec(f, sync, 1, "low_sync", "wait", XPT_SUCCESS_ALWAYS, F("stream", "u64"));
	CALL_1(f, LOW_LAUNCH, 1, 1, 10, 11, 2, U(9), U(3)); /* not through the upper runtime */
	record = call_make(sync, 1, 1, 20, 21, 1, U(3));
	record.call.flags = XPT_CALL_LAYER;
	cr_assert_eq(feed_call(f, record), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_COUNTER], 2);
	cr_assert_eq(seen_nth(f, EVENT_COUNTER, 1)->event.counter.value, 0);
	fixture_free(f);
}

Test(model_core_calls, the_number_of_a_run_stands_behind_the_values)
{
	const struct call_record execute = call_make(TOY_EXECUTE, 1, 1, 10, 20, 4, U(5), U(64), U(2), U(0));
	const struct call_record copy = call_make(TOY_COPY, 1, 1, 30, 40, 2, U(1000), U(0));
	struct fixture *f = fixture_toy();
	struct call_record layer = call_number(execute, 8), brief = call_number(execute, 9);
	const struct event_call *call;

	layer.call.flags |= XPT_CALL_LAYER;
	brief.call.flags |= XPT_CALL_NO_END;
	cr_assert_eq(feed_call(f, call_number(execute, 7)), 0);
	cr_assert_eq(feed_call(f, execute), 0);
	cr_assert_eq(feed_call(f, layer), 0);
	cr_assert_eq(feed_call(f, brief), 0);
	cr_assert_eq(feed_call(f, call_number(copy, 10)), 0);
	cr_assert_eq(model_flush(f->model), 0);
	call = &seen_nth(f, EVENT_CALL, 0)->event.call;
	cr_assert(call->numbered);
	cr_assert_eq(call->number, 7);
	cr_assert_eq(call->status, 0);
	cr_assert_eq(call->core, 2, "it is no value");
	cr_assert_not(seen_nth(f, EVENT_CALL, 1)->event.call.numbered);
	cr_assert_not(seen_nth(f, EVENT_CALL, 2)->event.call.numbered, "a layer is not counted");
	cr_assert(seen_nth(f, EVENT_CALL, 3)->event.call.numbered);
	cr_assert_eq(seen_nth(f, EVENT_CALL, 3)->event.call.number, 9);
	cr_assert_not(seen_nth(f, EVENT_CALL, 4)->event.call.numbered, "runs no program");
	fixture_free(f);
}

Test(model_core_calls, a_number_behind_fewer_values_than_the_function_has)
{
	struct call_record record = call_number(call_make(TOY_EXECUTE, 1, 1, 10, 20, 1, U(5)), 0xffffffffffffffffULL);
	struct fixture *f = fixture_toy();

	cr_assert_eq(feed_call(f, record), 0);
	record.call.values = 0;
	record.call.header.size -= 8;
	cr_assert_eq(feed_call(f, record), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(seen_nth(f, EVENT_CALL, 0)->event.call.number, ~(__u64)0);
	cr_assert_eq(seen_nth(f, EVENT_CALL, 0)->event.call.have, 1u << XPT_MEANING_PROGRAM);
	cr_assert_eq(seen_nth(f, EVENT_CALL, 1)->event.call.number, 5);
	cr_assert_eq(seen_nth(f, EVENT_CALL, 1)->event.call.have, 0);
	fixture_free(f);
}
