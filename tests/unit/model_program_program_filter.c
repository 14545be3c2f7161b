/* SPDX-License-Identifier: BSD-2-Clause */
#include "model_records.h"

#define CLASS 0x100

static bool wants_chosen(void *context, const struct model_program *program, const struct event_call *call)
{
	unsigned int *asked = context;

	cr_assert_eq(call->program, program);
	++*asked;
	return !strcmp(program->name, "chosen");
}

static struct fixture *fixture_chosen(unsigned int *asked)
{
	struct fixture *f = fixture_toy();

	model_set_chooser(f->model, (struct model_chooser){ wants_chosen, asked });
	cr_assert_eq(feed_text(f, XPT_RECORD_CHOICE, 7, 1, 0x12, "chosen"), 0);
	cr_assert_eq(feed_text(f, XPT_RECORD_MATCH, 0, 1, 0, "^chosen$"), 0);
	toy_load(f, 5, "chosen", 10, 20);
	toy_load(f, 6, "other", 30, 40);
	return f;
}

static size_t calls_of(const struct fixture *f, enum xpt_role role)
{
	size_t count = 0, i;

	for (i = 0; i < f->count; i++)
		count += f->seen[i].event.kind == EVENT_CALL && f->seen[i].event.call.function->role == role;
	return count;
}

Test(model_program_program_filter, what_is_reported)
{
	unsigned int asked = 0;
	struct fixture *f = fixture_chosen(&asked);

	cr_assert_eq(model_choice_count(f->model), 2);
	cr_expect_str_eq(model_choice(f->model, 0)->text, "chosen");
	cr_expect_eq(model_choice(f->model, 0)->tgid, 7);
	cr_expect_eq(model_choice(f->model, 0)->handle, 0x12);
	cr_expect_not(model_choice(f->model, 0)->match);
	cr_expect_str_eq(model_choice(f->model, 1)->text, "^chosen$");
	cr_expect(model_choice(f->model, 1)->match);
	fixture_free(f);
}

/* What came before the kernel had the rate is left out like what the kernel leaves out. */
Test(model_program_program_filter, others_are_counted_only)
{
	unsigned int asked = 0;
	struct fixture *f = fixture_chosen(&asked);
	const struct model_program *chosen, *other;

	toy_execute(f, 1, 5, 100, 110);
	toy_execute(f, 1, 6, 120, 130);
	toy_execute(f, 1, 6, 140, 150);
	cr_assert_eq(feed_final(f, count_make(1, 0, 5, 0, 200, 1, 0, 0)), 0);
	cr_assert_eq(feed_final(f, count_make(1, 0, 6, 0, 200, 9, 7, 0)), 0);
	cr_assert_eq(model_flush(f->model), 0);
	chosen = toy_program(f, 1, 5, 0);
	other = toy_program(f, 1, 6, 0);
	cr_expect_eq(asked, 3);
	cr_expect_eq(calls_of(f, XPT_ROLE_EXECUTE), 1);
	cr_expect_eq(calls_of(f, XPT_ROLE_PROGRAM_LOAD), 2);
	cr_expect(chosen->recorded == 1 && chosen->total.calls == 1 && chosen->total.left_out == 0);
	cr_expect(other->recorded == 0 && other->total.calls == 9 && other->total.left_out == 9);
	fixture_free(f);
}

Test(model_program_program_filter, an_enqueue_that_is_left_out_misses_no_wait)
{
	unsigned int asked = 0;
	struct fixture *f = fixture_chosen(&asked);

	CALL_1(f, TOY_ENQUEUE, 1, 1, U(100), U(110), 4, U(5), U(70), U(1), U(0));
	CALL_1(f, TOY_ENQUEUE, 1, 1, U(120), U(130), 4, U(6), U(71), U(1), U(0));
	CALL_1(f, TOY_WAIT, 1, 1, U(140), U(150), 3, U(70), U(1), U(0));
	CALL_1(f, TOY_WAIT, 1, 1, U(160), U(170), 3, U(71), U(1), U(0));
	cr_assert_eq(model_flush(f->model), 0);
	cr_expect_eq(f->kinds[EVENT_INFERENCE], 1);
	cr_expect_str_eq(seen_nth(f, EVENT_INFERENCE, 0)->program, "chosen");
	cr_expect_eq(model_lost(f->model, XPT_LOSS_UNPAIRED), 0);
	fixture_free(f);
}

/* Kernels that nobody has chosen, in an inference that was; and one by itself. */
Test(model_program_program_filter, launches_inside_are_kept)
{
	unsigned int asked = 0;
	struct fixture *f = fixture_chosen(&asked);
	struct call_record inside = call_make(TOY_LAUNCH, 1, 1, 102, 103, 3, U(8), U(1), U(0));

	inside.call.flags = XPT_CALL_INSIDE;
	cr_assert_eq(feed_call(f, inside), 0);
	CALL_1(f, TOY_LAUNCH, 1, 1, U(104), U(105), 3, U(9), U(1), U(0));
	cr_assert_eq(model_flush(f->model), 0);
	cr_expect_eq(calls_of(f, XPT_ROLE_LAUNCH), 1);
	cr_expect_eq(toy_program(f, 1, 8, 0)->recorded, 1);
	cr_expect_eq(toy_program(f, 1, 9, 0)->recorded, 0);
	fixture_free(f);
}

static void execute_operator(struct fixture *f, __u64 object, __u64 program, __u64 inference, bool known)
{
	struct call_record record = call_make(TOY_OPERATOR, 1, 1, inference + 1, inference + 2, 4, object, U(CLASS),
					      program, inference);

	record.call.valid = known ? 15 : 3;
	cr_assert_eq(feed_call(f, record), 0);
}

Test(model_program_program_filter, operators_of_others_and_of_nobody_are_none)
{
	unsigned int asked = 0;
	struct fixture *f = fixture_chosen(&asked);

	execute_operator(f, 0x1000, 5, 100, true);
	execute_operator(f, 0x2000, 6, 200, true);
	execute_operator(f, 0x3000, 5, 300, false);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_operator_count(f->model), 1);
	cr_expect_eq(model_operator(f->model, 0)->program, toy_program(f, 1, 5, 0));
	cr_expect_eq(toy_program(f, 1, 6, 0)->total.left_out, 0, "operators are not counted");
	fixture_free(f);
}

Test(model_program_program_filter, without_choices_nobody_is_asked)
{
	struct fixture *f = fixture_toy();
	unsigned int asked = 0;

	model_set_chooser(f->model, (struct model_chooser){ wants_chosen, &asked });
	toy_execute(f, 1, 6, 120, 130);
	execute_operator(f, 0x3000, 5, 300, false);
	cr_assert_eq(model_flush(f->model), 0);
	cr_expect_eq(asked, 0);
	cr_expect_eq(calls_of(f, XPT_ROLE_EXECUTE) + calls_of(f, XPT_ROLE_OPERATOR), 2);
	fixture_free(f);
}
