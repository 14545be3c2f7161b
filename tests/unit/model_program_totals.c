/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/totals.h"

#include "model_records.h"

static const struct model_call_total *total_of(const struct fixture *f, __u32 tgid, unsigned int spec)
{
	const struct model_call_total *total;
	size_t i;

	for (i = 0; i < model_call_total_count(f->model); i++) {
		total = model_call_total(f->model, i);
		if (total->process->tgid == tgid && total->function->index == spec)
			return total;
	}
	return NULL;
}

Test(model_program_totals, one_entry_a_function_and_process)
{
	struct fixture *f = fixture_toy();
	const struct model_call_total *total;

	CALL_1(f, TOY_COPY, 1, 1, 100, 110, 2, U(1000), U(0));
	CALL_1(f, TOY_COPY, 1, 2, 120, 150, 2, U(500), U(0));
	CALL_1(f, TOY_COPY, 1, 2, 160, 170, 2, U(7777), (__u64)-5LL); /* moved nothing */
	CALL_1(f, TOY_COPY, 2, 2, 100, 110, 2, U(1), U(0));
	CALL_1(f, TOY_FREE, 1, 1, 200, 210, 1, U(5));
	toy_load(f, 5, "x", 300, 310);
	toy_execute(f, 1, 5, 400, 410);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_call_total_count(f->model), 4, "the execute is its program's");
	total = total_of(f, 1, TOY_COPY);
	cr_assert_eq(total->recorded, 3);
	cr_assert_eq(total->errors, 1);
	cr_assert_eq(total->bytes, 1500);
	cr_assert_eq(statistics_count(total->duration), 3);
	cr_assert_eq(statistics_max(total->duration), 30);
	cr_assert_not(total->total_known);
	cr_assert_eq(total_of(f, 2, TOY_COPY)->recorded, 1);
	cr_assert_eq(total_of(f, 1, TOY_LOAD)->recorded, 1);
	fixture_free(f);
}

Test(model_program_totals, exact_counts_by_function)
{
	struct fixture *f = fixture_toy();

	CALL_1(f, TOY_COPY, 1, 1, 100, 110, 2, U(1000), U(0));
	cr_assert_eq(feed_total(f, 1, 0, TOY_COPY + 1, 0, 200, 40), 0);
	cr_assert_eq(feed_total(f, 1, 0, TOY_COPY + 1, 0, 210, 2), 0);
	cr_assert_eq(feed_total(f, 1, 0, TOY_LOAD + 1, 0, 210, 3), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(total_of(f, 1, TOY_COPY)->total.calls, 42);
	cr_assert(total_of(f, 1, TOY_COPY)->total_known);
	cr_assert_eq(total_of(f, 1, TOY_LOAD)->total.calls, 3, "also when none was recorded");
	cr_assert_eq(total_of(f, 1, TOY_LOAD)->recorded, 0);
	fixture_free(f);
}

Test(model_program_totals, entry_only_calls_have_no_duration_and_layers_do_not_count)
{
	struct fixture *f = fixture_toy();
	struct call_record record = call_make(TOY_FREE, 1, 1, 100, 100, 1, U(5));

	record.call.flags = XPT_CALL_NO_END;
	cr_assert_eq(feed_call(f, record), 0);
	record.call.flags = XPT_CALL_LAYER;
	cr_assert_eq(feed_call(f, record), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(total_of(f, 1, TOY_FREE)->recorded, 1);
	cr_assert_null(total_of(f, 1, TOY_FREE)->duration);
	cr_assert(seen_nth(f, EVENT_CALL, 0)->event.call.no_end);
	fixture_free(f);
}

Test(model_program_totals, a_run_without_a_known_program_counts_for_its_function)
{
	struct fixture *f = fixture_toy();
	struct call_record record = call_make(TOY_LAUNCH, 1, 1, 100, 110, 3, U(0), U(3), U(0));

	record.call.valid = 2;
	cr_assert_eq(feed_call(f, record), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_program_count(f->model), 0);
	cr_assert_eq(total_of(f, 1, TOY_LAUNCH)->recorded, 1);
	cr_assert_null(seen_nth(f, EVENT_CALL, 0)->event.call.program);
	fixture_free(f);
}

Test(model_program_totals, are_bounded)
{
	const unsigned int first = 100, functions = 3000, processes = 6;
	struct fixture *f = fixture_toy();
	struct call_record record;
	unsigned int i, tgid;
	__u64 recorded = 0;
	char name[32];

	f->quiet = true;
	for (i = 0; i < functions; i++) {
		snprintf(name, sizeof(name), "toy_%u", i);
		feed_spec(f, first + i, 0, name, "copy", XPT_SUCCESS_ALWAYS, F("size", "u64"));
	}
	for (tgid = 1; tgid <= processes; tgid++) {
		for (i = 0; i < functions; i++) {
			record = call_make(first + i, tgid, tgid, tgid * 10000 + i, tgid * 10000 + i, 1, U(1));
			cr_assert_eq(feed_call(f, record), 0);
		}
	}
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_leq(model_call_total_count(f->model), MODEL_CALL_TOTALS_MAX + functions);
	for (i = 0; i < model_call_total_count(f->model); i++)
		recorded += model_call_total(f->model, i)->recorded;
	cr_assert_eq(recorded, functions * processes);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_NAMES), functions * processes - MODEL_CALL_TOTALS_MAX);
	/* What stands for several processes takes their totals only: a reading of one would replace that of another. */
	for (tgid = processes; tgid < processes + 2; tgid++) {
		record = call_make(first + functions - 1, tgid, tgid, 900000, 900000, 1, U(1));
		cr_assert_eq(feed_call(f, record), 0);
		cr_assert_eq(feed_count(f, count_make(tgid, first + functions, 0, 1, 900001, 10 * tgid, 0, 0)), 0);
	}
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(total_of(f, 0, first + functions - 1)->total.calls, 0);
	for (tgid = processes; tgid < processes + 2; tgid++)
		cr_assert_eq(feed_final(f, count_make(tgid, first + functions, 0, 0, 900002, 10 * tgid, 0, 0)), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(total_of(f, 0, first + functions - 1)->total.calls, 10 * (processes + processes + 1));
	fixture_free(f);
}
