/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/programs.h"

#include "model_records.h"

Test(model_program_programs, sums_that_nobody_reads_are_left_out)
{
	struct fixture *f = fixture_toy();
	const struct model_program *program;

	model_leave_out_sums(f->model);
	toy_execute(f, 1, 0x7f12, 100, 150);
	cr_assert_eq(model_flush(f->model), 0);
	program = model_program(f->model, 0);
	cr_assert_eq(program->recorded, 1);
	cr_assert_eq(program->last_end, 150);
	cr_assert_null(program->latency);
	cr_assert_eq(seen_nth(f, EVENT_CALL, 0)->event.call.end, 150);
	fixture_free(f);
}

Test(model_program_programs, one_that_was_loaded_before_is_known_by_its_order)
{
	struct fixture *f = fixture_toy();
	const struct model_program *program;

	toy_execute(f, 1, 0x7f12, 100, 150);
	toy_execute(f, 1, 0x7f12, 200, 260);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_program_count(f->model), 1);
	program = model_program(f->model, 0);
	cr_assert_str_eq(program->name, "toy model 1");
	cr_assert_not(program->named);
	cr_assert_eq(program->id, 1);
	cr_assert_eq(program->loaded, 0);
	cr_assert_eq(program->released, 0);
	cr_assert_eq(program->role, XPT_ROLE_EXECUTE);
	cr_assert_eq(program->recorded, 2);
	cr_assert_eq(program->first_start, 100);
	cr_assert_eq(program->last_end, 260);
	cr_assert_str_eq(program->runtime, "toy");
	cr_assert_eq(statistics_count(program->latency), 2);
	cr_assert_eq(statistics_sum(program->latency), 110);
	cr_assert_not(program->total_known);
	fixture_free(f);
}

Test(model_program_programs, load_and_unload_make_generations)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "first", 100, 200);
	toy_execute(f, 1, 5, 210, 220);
	toy_unload(f, 5, 300, 310);
	toy_load(f, 5, "second", 400, 500);
	toy_execute(f, 1, 5, 510, 520);
	toy_execute(f, 1, 5, 530, 540);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_program_count(f->model), 2);
	cr_assert_str_eq(toy_program(f, 1, 5, 0)->name, "first");
	cr_assert_eq(toy_program(f, 1, 5, 0)->recorded, 1);
	cr_assert_eq(toy_program(f, 1, 5, 0)->loaded, 200, "a load takes effect when it returns");
	cr_assert_eq(toy_program(f, 1, 5, 0)->released, 300, "an unload takes effect when it begins");
	cr_assert_eq(toy_program(f, 1, 5, 0)->size, 4096);
	cr_assert_str_eq(toy_program(f, 1, 5, 1)->name, "second");
	cr_assert_eq(toy_program(f, 1, 5, 1)->recorded, 2);
	cr_assert_eq(seen_nth(f, EVENT_CALL, 1)->generation, 0);
	cr_assert_eq(seen_nth(f, EVENT_CALL, 4)->generation, 1);
	/* loaded, released, loaded */
	cr_assert_eq(f->kinds[EVENT_PROGRAM], 3);
	cr_assert(seen_nth(f, EVENT_PROGRAM, 1)->event.program.released);
	cr_assert_eq(seen_nth(f, EVENT_PROGRAM, 1)->event.program.time, 300);
	fixture_free(f);
}

Test(model_program_programs, a_second_load_is_a_new_program_without_an_unload)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "a", 100, 200);
	toy_load(f, 5, "b", 300, 400);
	toy_execute(f, 1, 5, 350, 450); /* began before the second load had returned */
	toy_execute(f, 1, 5, 401, 460);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(toy_program(f, 1, 5, 0)->recorded, 1);
	cr_assert_eq(toy_program(f, 1, 5, 0)->released, 400);
	cr_assert_eq(toy_program(f, 1, 5, 1)->recorded, 1);
	fixture_free(f);
}

Test(model_program_programs, use_after_release_without_a_load_is_a_new_program)
{
	struct fixture *f = fixture_toy();

	toy_execute(f, 1, 5, 100, 110);
	toy_unload(f, 5, 200, 210);
	toy_execute(f, 1, 5, 300, 310);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_program_count(f->model), 2);
	cr_assert_eq(toy_program(f, 1, 5, 0)->recorded, 1);
	cr_assert_eq(toy_program(f, 1, 5, 1)->recorded, 1);
	cr_assert_eq(toy_program(f, 1, 5, 1)->loaded, 0);
	fixture_free(f);
}

Test(model_program_programs, calls_that_overlap_belong_by_their_start)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "old", 10, 20);
	toy_execute(f, 1, 5, 100, 900); /* returns after the unload, and after the next load */
	toy_unload(f, 5, 200, 250);
	toy_load(f, 5, "new", 300, 400);
	toy_execute(f, 1, 5, 350, 450); /* during the load: of none that was there before */
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(seen_nth(f, EVENT_CALL, 4)->program, "old");
	cr_assert_str_eq(seen_nth(f, EVENT_CALL, 3)->program, "new");
	cr_assert_eq(toy_program(f, 1, 5, 0)->recorded, 1);
	cr_assert_eq(toy_program(f, 1, 5, 1)->recorded, 1);
	cr_assert_eq(model_program_count(f->model), 2);
	fixture_free(f);
}

/* One thread unloads, meanwhile the handle is given to another thread's load; the unload returns last. */
Test(model_program_programs, an_unload_releases_what_it_began_with)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "old", 10, 20);
	toy_load(f, 5, "new", 120, 160);
	toy_unload(f, 5, 100, 300);
	toy_execute(f, 1, 5, 310, 320);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(toy_program(f, 1, 5, 0)->released, 100);
	cr_assert_eq(toy_program(f, 1, 5, 1)->released, 0);
	cr_assert_eq(toy_program(f, 1, 5, 1)->recorded, 1);
	fixture_free(f);
}

Test(model_program_programs, a_load_adopts_what_was_used_inside_it_only)
{
	struct fixture *f = fixture_toy();

	toy_execute(f, 1, 5, 150, 160); /* the load warms its program up */
	toy_load(f, 5, "warm", 100, 200);
	toy_execute(f, 1, 6, 150, 160); /* was there before */
	toy_load(f, 6, "new", 170, 250);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(toy_program(f, 1, 5, 0)->name, "warm");
	cr_assert_eq(toy_program(f, 1, 5, 0)->recorded, 1);
	cr_assert_null(toy_program(f, 1, 5, 1));
	cr_assert_str_eq(toy_program(f, 1, 6, 0)->name, "toy model 2");
	cr_assert_str_eq(toy_program(f, 1, 6, 1)->name, "new");
	fixture_free(f);
}

Test(model_program_programs, a_failed_load_makes_none_a_failed_unload_releases_none)
{
	struct fixture *f = fixture_toy();
	struct call_record load = call_make(TOY_LOAD, 1, 1, 10, 20, 4, U(5), U(0), U(0), (__u64)-5LL);

	cr_assert_eq(feed_call(f, load), 0);
	load.value[3] = 600;
	cr_assert_eq(feed_call(f, load), 0);
	toy_load(f, 6, "six", 30, 40);
	CALL_1(f, TOY_UNLOAD, 1, 1, 50, 60, 2, U(6), U(7));
	toy_unload(f, 77, 50, 60); /* never seen */
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_program_count(f->model), 1);
	cr_assert_eq(model_program(f->model, 0)->released, 0);
	cr_assert_eq(f->kinds[EVENT_CALL], 5, "the calls themselves are there");
	cr_assert_eq(seen_nth(f, EVENT_CALL, 0)->event.call.outcome, OUTCOME_FAILED);
	cr_assert_str_eq(seen_nth(f, EVENT_CALL, 0)->event.call.status_name, "TOY_OUT_OF_MEMORY");
	cr_assert_null(seen_nth(f, EVENT_CALL, 0)->event.call.program);
	fixture_free(f);
}

Test(model_program_programs, processes_and_runtimes_have_their_own)
{
	struct fixture *f = fixture_toy();

	toy_execute(f, 1, 5, 100, 110);
	toy_execute(f, 2, 5, 100, 110);
	CALL_1(f, LOW_EXECUTE, 1, 1, 100, 110, 1, U(5));
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_program_count(f->model), 3);
	fixture_free(f);
}

Test(model_program_programs, errors_and_pending_are_counted_apart)
{
	struct fixture *f = fixture_toy();

	toy_execute(f, 1, 5, 100, 110);
	CALL_1(f, TOY_EXECUTE, 1, 1, 120, 130, 4, U(5), U(0), U(0), (__u64)-5LL);
	CALL_1(f, TOY_EXECUTE, 1, 1, 140, 150, 4, U(5), U(0), U(0), U(600));
	CALL_1(f, TOY_EXECUTE, 1, 1, 160, 170, 4, U(5), U(0), U(0), U(1));
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_program(f->model, 0)->recorded, 4);
	cr_assert_eq(model_program(f->model, 0)->errors, 1);
	cr_assert_eq(model_program(f->model, 0)->pending, 1);
	fixture_free(f);
}

Test(model_program_programs, layers_are_shown_and_never_counted)
{
	struct fixture *f = fixture_toy();
	struct call_record layer = call_make(LOW_LAUNCH, 1, 1, 110, 120, 2, U(9), U(3));

	layer.call.flags = XPT_CALL_LAYER;
	layer.call.depth = 1;
	cr_assert_eq(feed_call(f, layer), 0);
	layer = call_make(TOY_LAUNCH, 1, 1, 100, 130, 3, U(5), U(3), U(0));
	layer.call.valid = 3;
	cr_assert_eq(feed_call(f, layer), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert(seen_nth(f, EVENT_CALL, 0)->event.call.layer);
	cr_assert_eq(seen_nth(f, EVENT_CALL, 0)->event.call.depth, 1);
	cr_assert_str_eq(seen_nth(f, EVENT_CALL, 0)->program, "low model 1");
	cr_assert_eq(toy_program(f, 1, 9, 0)->recorded, 0);
	cr_assert_null(toy_program(f, 1, 9, 0)->latency);
	cr_assert_eq(toy_program(f, 1, 5, 0)->recorded, 1);
	cr_assert_eq(model_call_total_count(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_COUNTER], 1, "the layer is in no queue");
	fixture_free(f);
}

Test(model_program_programs, totals_find_their_generation)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "a", 10, 20);
	toy_execute(f, 1, 5, 30, 40);
	toy_unload(f, 5, 100, 110);
	cr_assert_eq(feed_total(f, 1, 0, 0, 5, 111, 70), 0); /* just after the unload */
	toy_load(f, 5, "b", 200, 210);
	toy_execute(f, 1, 5, 220, 230);
	cr_assert_eq(feed_total(f, 1, 0, 0, 5, 300, 4), 0); /* at the end ... */
	cr_assert_eq(feed_total(f, 1, 0, 0, 5, 301, 5), 0); /* ... in two parts */
	cr_assert_eq(feed_total(f, 1, 0, 0, 8, 301, 6), 0); /* all of its calls were lost or left out */
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(toy_program(f, 1, 5, 0)->total.calls, 70);
	cr_assert(toy_program(f, 1, 5, 0)->total_known);
	cr_assert_eq(toy_program(f, 1, 5, 1)->total.calls, 9);
	cr_assert_eq(toy_program(f, 1, 5, 1)->total.lost, 2);
	cr_assert_eq(toy_program(f, 1, 8, 0)->total.calls, 6);
	cr_assert_eq(toy_program(f, 1, 8, 0)->recorded, 0);
	fixture_free(f);
}

Test(model_program_programs, a_late_total_goes_to_the_generation_of_its_time)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "a", 10, 20);
	toy_unload(f, 5, 100, 110);
	toy_load(f, 5, "b", 200, 210);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(feed_total(f, 1, 0, 0, 5, 111, 70), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(toy_program(f, 1, 5, 0)->total.calls, 70);
	cr_assert_not(toy_program(f, 1, 5, 1)->total_known);
	fixture_free(f);
}

Test(model_program_programs, another_program_in_the_process_releases_all)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "a", 10, 20);
	toy_execute(f, 2, 5, 30, 40);
	cr_assert_eq(feed_task(f, XPT_TASK_EXEC, 1, 0, 50, "other"), 0);
	toy_execute(f, 1, 5, 60, 70);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(toy_program(f, 1, 5, 0)->released, 50);
	cr_assert_str_eq(toy_program(f, 1, 5, 1)->name, "toy model 1", "nothing of the old memory is left");
	cr_assert_eq(toy_program(f, 2, 5, 0)->released, 0);
	fixture_free(f);
}

/* A load that tells a core, which toy_load does not. */
#define TOY_PLACE (TOY_OPERATOR + 1)

static void place(struct fixture *f, __u64 handle, __u64 core, __u64 start)
{
	cr_assert_eq(feed_call(f, call_make(TOY_PLACE, 1, 1, start, start + 1, 3, handle, core, U(0))), 0);
}

static void load_from(struct fixture *f, __u64 handle, __u64 parent, __u64 start)
{
	struct call_record record = call_make(TOY_LOAD, 1, 1, start, start + 1, 4, handle, parent, U(0), U(0));

	record.call.valid &= 0xfe; /* no name */
	cr_assert_eq(feed_call(f, record), 0);
}

Test(model_program_programs, the_core_is_that_of_the_load_or_of_what_it_is_made_of)
{
	struct fixture *f = fixture_toy();

	feed_spec(f, TOY_PLACE, 0, "toy_place", "program.load", XPT_SUCCESS_ZERO32,
		  R("program", "u64") "," F("core", "s32") "," STATUS);
	place(f, 5, (__u64)-3, 10);
	load_from(f, 6, 5, 20);
	load_from(f, 7, 6, 30);
	load_from(f, 8, 99, 40);
	place(f, 5, 4, 50); /* of the handle only: what was made of the one before stays where it is */
	cr_assert_eq(model_flush(f->model), 0);
	for (__u64 handle = 5; handle < 8; handle++) {
		cr_assert(toy_program(f, 1, handle, 0)->has_core);
		cr_assert_eq(toy_program(f, 1, handle, 0)->core, -3);
	}
	cr_assert_not(toy_program(f, 1, 8, 0)->has_core, "nothing is known of what it is made of");
	cr_assert_eq(toy_program(f, 1, 5, 1)->core, 4);
	fixture_free(f);
}

Test(model_program_programs, a_program_is_loaded_when_it_is_ready)
{
	struct fixture *f = fixture_toy();

	feed_spec(f, TOY_PLACE, 0, "toy_ready", "program.ready", XPT_SUCCESS_ZERO32, F("program", "u64") "," STATUS);
	toy_load(f, 5, "one", 10, 20);
	CALL_1(f, TOY_PLACE, 1, 1, 30, 50, 2, U(5), U(0));
	toy_load(f, 6, "two", 60, 70);
	CALL_1(f, TOY_PLACE, 1, 1, 80, 90, 2, U(6), U(-5)); /* fails */
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(toy_program(f, 1, 5, 0)->name, "one");
	cr_assert_eq(toy_program(f, 1, 5, 0)->loaded, 50);
	cr_assert_null(toy_program(f, 1, 5, 1), "it is the same one");
	cr_assert_eq(toy_program(f, 1, 6, 0)->loaded, 70);
	fixture_free(f);
}
