/* SPDX-License-Identifier: BSD-2-Clause */
#include "model_records.h"

static void symbol(struct fixture *f, __u32 tgid, __u64 time, __u64 address, const char *name)
{
	cr_assert_eq(feed_text(f, XPT_RECORD_SYMBOL, tgid, time, address, name), 0);
}

static const char *name_of(struct fixture *f, __u32 tgid, __u64 handle)
{
	cr_assert_eq(model_flush(f->model), 0);
	return toy_program(f, tgid, handle, 0)->name;
}

Test(model_core_records_aliases, symbols_name_what_is_known_by_launches_only)
{
	struct fixture *f = fixture_toy();

	symbol(f, 1, 10, 0x500, "before");
	CALL_1(f, TOY_LAUNCH, 1, 1, U(20), U(30), 3, U(0x500), U(0), U(0));
	CALL_1(f, TOY_LAUNCH, 1, 1, U(40), U(50), 3, U(0x600), U(0), U(0));
	CALL_1(f, LOW_LAUNCH, 1, 1, U(40), U(50), 2, U(0x600), U(0));
	symbol(f, 1, 60, 0x600, "after");
	symbol(f, 2, 60, 0x500, "of another process");
	symbol(f, 1, 60, 0x700, "");
	cr_assert_str_eq(name_of(f, 1, 0x500), "before");
	cr_assert_str_eq(name_of(f, 1, 0x600), "after");
	cr_assert(toy_program(f, 1, 0x600, 0)->named);
	cr_assert_eq(toy_program(f, 1, 0x600, 0)->name_source, NAME_FROM_SYMBOL);
	cr_assert_str_eq(seen_nth(f, EVENT_CALL, 0)->program, "before");
	cr_assert_eq(f->kinds[EVENT_PROGRAM], 5, "of both runtimes, before that and after, and the one before");
	cr_assert_eq(model_program_count(f->model), 3);
	fixture_free(f);
}

Test(model_core_records_aliases, symbols_give_way_to_all_names_of_the_program)
{
	struct fixture *f = fixture_toy();

	symbol(f, 1, 10, 5, "symbol");
	toy_load(f, 5, "loaded", 20, 30);
	symbol(f, 1, 40, 5, "symbol again");
	cr_assert_str_eq(name_of(f, 1, 5), "loaded");
	cr_assert_eq(feed_text(f, XPT_RECORD_NAMED, 1, 50, 6, "user"), 0);
	symbol(f, 1, 60, 6, "symbol");
	toy_execute(f, 1, 6, 70, 80);
	cr_assert_str_eq(name_of(f, 1, 6), "user");
	fixture_free(f);
}

/* From worst to best, whatever their numbers are. */
Test(model_core_records_aliases, symbols_order_of_the_sources)
{
	static const enum name_source order[NAME_SOURCES] = { NAME_FROM_ORDER,	NAME_FROM_OPERATORS, NAME_FROM_FORK,
							      NAME_FROM_FILE,	NAME_FROM_SYMBOL,    NAME_FROM_PARENT,
							      NAME_FROM_MEMORY, NAME_FROM_LOAD,	     NAME_FROM_CALL,
							      NAME_FROM_USER };

	for (int i = 0; i < NAME_SOURCES; i++)
		for (int j = 0; j < NAME_SOURCES; j++)
			cr_assert_eq(name_is_better(order[i], order[j]), i > j, "%d %d", order[i], order[j]);
}

Test(model_core_records_aliases, symbols_parent_names_better_and_a_fork_worse)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "model", 10, 20);
	symbol(f, 1, 25, 6, "symbol");
	CALL_1(f, TOY_LOAD, 1, 1, U(30), U(40), 4, U(6), U(5), U(0), U(0));
	cr_assert_str_eq(name_of(f, 1, 6), "model");
	cr_assert_eq(feed_task(f, XPT_TASK_FORK, 2, 1, 50, "child"), 0);
	symbol(f, 2, 60, 5, "symbol of the child");
	toy_execute(f, 2, 5, 70, 80);
	cr_assert_str_eq(name_of(f, 2, 5), "symbol of the child");
	fixture_free(f);
}

Test(model_core_records_aliases, symbols_go_with_the_memory_of_their_process)
{
	struct fixture *f = fixture_toy();

	symbol(f, 1, 10, 5, "symbol");
	cr_assert_eq(feed_task(f, XPT_TASK_EXEC, 1, 0, 20, "other"), 0);
	toy_execute(f, 1, 5, 30, 40);
	cr_assert_str_eq(name_of(f, 1, 5), "toy model 1");
	/* Of one that has exited, what it had then is still named. */
	toy_execute(f, 2, 5, 50, 60);
	cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 2, 0, 70, "gone"), 0);
	symbol(f, 2, 80, 5, "late");
	cr_assert_str_eq(name_of(f, 2, 5), "late");
	cr_assert_eq(f->kinds[EVENT_PROCESS], 3);
	fixture_free(f);
}

Test(model_core_records_aliases, symbols_are_bounded)
{
	struct fixture *f = fixture_toy();

	f->quiet = true;
	for (__u64 i = 1; i <= MODEL_SYMBOLS_MAX + 1; i++)
		symbol(f, 1, 10, i, "s");
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_NAMES), 1);
	symbol(f, 1, 20, 5, "it can change");
	toy_execute(f, 1, 5, 30, 40);
	toy_execute(f, 1, 1000000, 30, 40);
	symbol(f, 1, 50, 1000000, "known already");
	cr_assert_str_eq(name_of(f, 1, 5), "it can change");
	cr_assert_str_eq(name_of(f, 1, 1000000), "known already");
	fixture_free(f);
}
