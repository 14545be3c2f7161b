/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/programs.h"

#include "model_records.h"

static void name_call(struct fixture *f, __u64 handle, const char *name, __u64 start)
{
	struct call_record record = call_make(TOY_NAME, 1, 1, start, start + 1, 1, handle);

	cr_assert_eq(feed_string(f, TOY_NAME, 1, 1, 1, start, name, strlen(name)), 0);
	cr_assert_eq(feed_call(f, record), 0);
}

static void load_from(struct fixture *f, __u64 handle, __u64 parent, const char *name, __u64 start)
{
	struct call_record record = call_make(TOY_LOAD, 1, 1, start, start + 1, 4, handle, parent, U(0), U(0));

	if (name)
		cr_assert_eq(feed_string(f, TOY_LOAD, 0, 1, 1, start, name, strlen(name)), 0);
	else
		record.call.valid &= 0xfe;
	cr_assert_eq(feed_call(f, record), 0);
}

static const char *name_of(struct fixture *f, __u64 handle)
{
	cr_assert_eq(model_flush(f->model), 0);
	return toy_program(f, 1, handle, 0)->name;
}

Test(model_program_program_names, from_the_load_as_it_was_given)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "/models/resnet50.onnx", 10, 20);
	cr_assert_str_eq(name_of(f, 5), "/models/resnet50.onnx");
	cr_assert(toy_program(f, 1, 5, 0)->named);
	toy_load(f, 6, "", 30, 40);
	cr_assert_str_eq(name_of(f, 6), "toy model 1", "an empty name is none");
	fixture_free(f);
}

Test(model_program_program_names, from_a_call_that_names_also_before_any_use)
{
	struct fixture *f = fixture_toy();

	name_call(f, 5, "gemm", 10);
	toy_load(f, 6, "six", 10, 20);
	name_call(f, 6, "better six", 30);
	cr_assert_str_eq(name_of(f, 5), "gemm");
	cr_assert_str_eq(name_of(f, 6), "better six");
	cr_assert_eq(toy_program(f, 1, 5, 0)->recorded, 0);
	cr_assert_eq(toy_program(f, 1, 5, 0)->role, 0);
	cr_assert_eq(f->kinds[EVENT_PROGRAM], 3);
	fixture_free(f);
}

Test(model_program_program_names, of_what_a_function_runs)
{
	struct fixture *f = fixture_toy();

	feed_spec(f, 300, 0, "toy_graph_launch", "launch", XPT_SUCCESS_ALWAYS,
		  F("program", "u64") "],\"runs\":\"graph\",\"more\":[" F("stream", "u64"));
	CALL_1(f, 300, 1, 1, 10, 20, 1, U(5));
	toy_execute(f, 1, 6, 30, 40);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(name_of(f, 5), "toy graph 1");
	cr_assert_str_eq(name_of(f, 6), "toy model 2");
	fixture_free(f);
}

Test(model_program_program_names, from_the_parent)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "bert", 10, 20);
	load_from(f, 6, 5, NULL, 30);
	load_from(f, 7, 5, "own", 40);
	load_from(f, 8, 0x99, NULL, 50);
	cr_assert_str_eq(name_of(f, 6), "bert");
	cr_assert_str_eq(name_of(f, 7), "own");
	cr_assert_str_eq(name_of(f, 8), "toy model 1", "the parent is not known");
	fixture_free(f);
}

Test(model_program_program_names, from_a_parent_that_is_named_later)
{
	struct fixture *f = fixture_toy();

	load_from(f, 7, 6, NULL, 10); /* a kernel of a module of a model, none with a name yet */
	load_from(f, 6, 5, NULL, 20);
	load_from(f, 8, 6, "own", 30);
	name_call(f, 5, "model", 40);
	cr_assert_str_eq(name_of(f, 6), "model");
	cr_assert_str_eq(name_of(f, 7), "model");
	cr_assert_str_eq(name_of(f, 8), "own");
	name_call(f, 5, "renamed", 50);
	cr_assert_str_eq(name_of(f, 5), "model", "another name is another program with the same handle");
	cr_assert_str_eq(toy_program(f, 1, 5, 1)->name, "renamed");
	cr_assert_str_eq(name_of(f, 7), "model", "a name is lent once");
	fixture_free(f);
}

Test(model_program_program_names, one_that_is_its_own_parent)
{
	struct fixture *f = fixture_toy();

	load_from(f, 5, 5, NULL, 10);
	name_call(f, 5, "loop", 20);
	load_from(f, 6, 7, NULL, 30); /* a ring of two */
	load_from(f, 7, 6, NULL, 40);
	name_call(f, 7, "ring", 50);
	cr_assert_str_eq(name_of(f, 5), "loop");
	cr_assert_str_eq(name_of(f, 6), "ring");
	fixture_free(f);
}

Test(model_program_program_names, from_the_user_above_all)
{
	struct fixture *f = fixture_toy();

	cr_assert_eq(feed_text(f, XPT_RECORD_NAMED, 1, 1, 5, "mine"), 0); /* before it is there */
	cr_assert_eq(feed_text(f, XPT_RECORD_NAMED, 0, 1, 6, "anybody's"), 0);
	cr_assert_eq(feed_text(f, XPT_RECORD_NAMED, 2, 1, 7, "not this process"), 0);
	toy_load(f, 5, "resnet", 10, 20);
	name_call(f, 5, "again", 30);
	toy_execute(f, 1, 6, 40, 50);
	toy_execute(f, 1, 7, 40, 50);
	cr_assert_str_eq(name_of(f, 5), "mine");
	cr_assert_str_eq(name_of(f, 6), "anybody's");
	cr_assert_str_eq(name_of(f, 7), "toy model 1");
	cr_assert_eq(feed_text(f, XPT_RECORD_NAMED, 0, 60, 7, "now"), 0); /* when it has been there for long */
	cr_assert_str_eq(name_of(f, 7), "now");
	cr_assert_eq(feed_text(f, XPT_RECORD_NAMED, 1, 70, 7, "renamed"), 0);
	cr_assert_str_eq(name_of(f, 7), "renamed");
	load_from(f, 8, 0x55, NULL, 80);
	fixture_free(f);
}

Test(model_program_program_names, a_child_takes_the_name_of_a_parent_that_only_the_user_named)
{
	struct fixture *f = fixture_toy();

	cr_assert_eq(feed_text(f, XPT_RECORD_NAMED, 1, 1, 5, "session"), 0);
	load_from(f, 6, 5, NULL, 10);
	cr_assert_str_eq(name_of(f, 6), "session");
	fixture_free(f);
}

Test(model_program_program_names, only_totals_are_known_of_it_and_the_user_named_it)
{
	struct fixture *f = fixture_toy();

	cr_assert_eq(feed_text(f, XPT_RECORD_NAMED, 1, 1, 5, "mine"), 0);
	cr_assert_eq(feed_total(f, 1, 0, 0, 5, 100, 3), 0);
	cr_assert_str_eq(name_of(f, 5), "mine");
	fixture_free(f);
}

Test(model_program_program_names, a_forked_child_has_its_own_programs_with_the_names_it_inherits)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "bert", 10, 20);
	cr_assert_eq(feed_task(f, XPT_TASK_FORK, 2, 1, 30, "worker"), 0);
	toy_execute(f, 2, 5, 40, 50);
	toy_execute(f, 2, 6, 40, 50);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(toy_program(f, 2, 5, 0)->name, "bert");
	cr_assert_str_eq(toy_program(f, 2, 6, 0)->name, "toy model 1");
	cr_assert_eq(toy_program(f, 2, 5, 0)->recorded, 1);
	cr_assert_eq(toy_program(f, 1, 5, 0)->recorded, 0);
	cr_assert_eq(feed_task(f, XPT_TASK_EXEC, 2, 0, 60, "other"), 0);
	toy_execute(f, 2, 5, 70, 80);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(toy_program(f, 2, 5, 1)->name, "toy model 1");
	fixture_free(f);
}

Test(model_program_program_names, a_child_of_a_child_inherits_what_only_its_first_ancestor_has_used)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "bert", 10, 20);
	toy_load(f, 6, "gpt", 21, 25);
	cr_assert_eq(feed_task(f, XPT_TASK_FORK, 2, 1, 30, "worker"), 0);
	toy_load(f, 7, "late", 31, 32); /* the children do not have it */
	cr_assert_eq(feed_task(f, XPT_TASK_FORK, 3, 2, 40, "worker"), 0);
	cr_assert_eq(feed_call(f, call_make(TOY_LOAD, 2, 2, 45, 46, 4, U(6), U(0), U(0), U(0))), 0);
	toy_execute(f, 3, 5, 50, 60);
	toy_execute(f, 3, 6, 60, 70);
	toy_execute(f, 3, 7, 70, 80);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(toy_program(f, 3, 5, 0)->name, "bert");
	cr_assert_str_eq(toy_program(f, 3, 6, 0)->name, "gpt", "its parent has loaded another one after the fork");
	cr_assert_not(toy_program(f, 3, 7, 0)->named);
	fixture_free(f);
}

Test(model_program_program_names, one_that_an_ancestor_had_unloaded_is_not_inherited)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "bert", 10, 20);
	cr_assert_eq(feed_task(f, XPT_TASK_FORK, 2, 1, 30, "worker"), 0);
	toy_execute(f, 2, 5, 31, 32);
	cr_assert_eq(feed_call(f, call_make(TOY_UNLOAD, 2, 2, 33, 34, 1, U(5))), 0);
	cr_assert_eq(feed_task(f, XPT_TASK_FORK, 3, 2, 40, "worker"), 0);
	toy_execute(f, 3, 5, 50, 60);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_not(toy_program(f, 3, 5, 0)->named);
	fixture_free(f);
}

Test(model_program_program_names, ancestors_beyond_the_limit_are_forgotten)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "bert", 10, 20);
	for (__u32 child = 2; child <= 12; child++)
		cr_assert_eq(feed_task(f, XPT_TASK_FORK, child, child - 1, 30 + child, "worker"), 0);
	toy_execute(f, 12, 5, 50, 60);
	toy_execute(f, 9, 5, 60, 70);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(toy_program(f, 9, 5, 0)->name, "bert", "8 forks back");
	cr_assert_not(toy_program(f, 12, 5, 0)->named, "11 forks back");
	fixture_free(f);
}

Test(model_program_program_names, hostile_strings)
{
	static const char name[] = "a\0b\xff\"\n";
	struct fixture *f = fixture_toy();
	struct call_record record = call_make(TOY_LOAD, 1, 1, 10, 20, 4, U(5), U(0), U(0), U(0));
	const struct event_call *call;

	cr_assert_eq(feed_string(f, TOY_LOAD, 0, 1, 1, 10, name, sizeof(name) - 1), 0);
	cr_assert_eq(feed_call(f, record), 0);
	cr_assert_str_eq(name_of(f, 5), "a", "what is kept is cut at the terminator");
	call = &seen_nth(f, EVENT_CALL, 0)->event.call;
	cr_assert_eq(call->name_length, sizeof(name) - 1, "the call has all of it");
	fixture_free(f);
}

Test(model_program_program_names, two_at_a_time_have_numbers)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "ranker.onnx", 10, 20);
	toy_load(f, 6, "ranker.onnx", 30, 40);
	toy_load(f, 7, "ranker.onnx", 50, 60);
	toy_load(f, 8, "ranker", 70, 80);
	cr_assert_str_eq(name_of(f, 5), "ranker.onnx");
	cr_assert_str_eq(name_of(f, 6), "ranker.onnx #2");
	cr_assert_str_eq(name_of(f, 7), "ranker.onnx #3");
	cr_assert_str_eq(name_of(f, 8), "ranker", "another name");
	toy_unload(f, 6, 90, 100);
	toy_load(f, 9, "ranker.onnx", 110, 120);
	cr_assert_str_eq(name_of(f, 9), "ranker.onnx #2", "goes on where that was");
	cr_assert_str_eq(name_of(f, 7), "ranker.onnx #3", "stays");
	cr_assert_eq(feed_text(f, XPT_RECORD_NAMED, 0, 130, 7, "mine"), 0);
	toy_load(f, 10, "ranker.onnx", 140, 150);
	cr_assert_str_eq(name_of(f, 10), "ranker.onnx #3");
	fixture_free(f);
}

Test(model_program_program_names, what_is_made_of_a_model_has_its_number)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "llama.gguf", 10, 20);
	toy_load(f, 6, "llama.gguf", 30, 40);
	load_from(f, 7, 6, NULL, 50);
	load_from(f, 8, 5, NULL, 60);
	load_from(f, 9, 5, NULL, 70);
	cr_assert_str_eq(name_of(f, 7), "llama.gguf #2");
	cr_assert_str_eq(name_of(f, 8), "llama.gguf");
	cr_assert_str_eq(name_of(f, 9), "llama.gguf", "of the same model");
	fixture_free(f);
}

Test(model_program_program_names, by_order_where_there_is_none)
{
	struct fixture *f = fixture_toy();

	toy_execute(f, 1, 0x50, 10, 20);
	toy_execute(f, 1, 0x40, 30, 40);
	toy_execute(f, 2, 0x40, 30, 40);
	cr_assert_str_eq(name_of(f, 0x50), "toy model 1");
	cr_assert_str_eq(name_of(f, 0x40), "toy model 2");
	cr_assert_str_eq(toy_program(f, 2, 0x40, 0)->name, "toy model 1", "each process by itself");
	cr_assert_not(toy_program(f, 1, 0x50, 0)->named);
	cr_assert_eq(toy_program(f, 1, 0x50, 0)->name_source, NAME_FROM_ORDER);
	toy_unload(f, 0x50, 50, 60);
	toy_execute(f, 1, 0x60, 70, 80);
	cr_assert_str_eq(name_of(f, 0x60), "toy model 1", "it is free again");
	fixture_free(f);
}

Test(model_program_names, by_order_of_the_whole)
{
	struct fixture *whole = fixture_toy(), *part = fixture_toy();

	for (__u64 handle = 0x40; handle <= 0x60; handle += 0x10)
		toy_execute(whole, 1, handle, handle, handle + 5);
	toy_unload(whole, 0x40, 0x70, 0x75);
	toy_execute(whole, 1, 0x40, 0x80, 0x85);
	toy_execute(whole, 1, 0x70, 0x90, 0x95);
	cr_assert_eq(feed_task(whole, XPT_TASK_EXIT, 1, 0, 0xa0, "app"), 0);
	toy_execute(whole, 1, 0x90, 0xb0, 0xb1);
	toy_execute(whole, 1, 0x60, 0xb2, 0xb5);
	cr_assert_eq(model_flush(whole->model), 0);
	model_set_whole(part->model, whole->model);
	toy_execute(part, 1, 0x60, 0x60, 0x65);
	cr_expect_str_eq(name_of(part, 0x60), "toy model 3");
	toy_execute(part, 1, 0x70, 0x90, 0x95);
	cr_expect_str_eq(name_of(part, 0x70), "toy model 4");
	toy_execute(part, 1, 0x50, 0x98, 0x99);
	cr_expect_str_eq(name_of(part, 0x50), "toy model 2");
	cr_assert_eq(feed_task(part, XPT_TASK_EXIT, 1, 0, 0xa0, "app"), 0);
	toy_execute(part, 1, 0x60, 0xb2, 0xb5);
	toy_execute(part, 1, 0x80, 0xb8, 0xb9);
	cr_expect_str_eq(name_of(part, 0x80), "toy model 1", "not in the whole: the first one that is free");
	fixture_free(part);
	fixture_free(whole);
}

static void unused(void *context, __u64 handle, bool fingerprint, const char *name)
{
	char *text = context;

	sprintf(text + strlen(text), "%llx %d %s;", handle, fingerprint, name);
}

Test(model_program_program_names, those_that_nobody_has)
{
	struct fixture *f = fixture_toy();
	char text[200] = "";

	cr_assert_eq(feed_text(f, XPT_RECORD_NAMED, 0, 1, 5, "five"), 0);
	cr_assert_eq(feed_text(f, XPT_RECORD_FINGERPRINT, 0, 1, 0xdeadbeef, "by its operators"), 0);
	cr_assert_eq(feed_text(f, XPT_RECORD_NAMED, 0, 1, 6, "six"), 0);
	cr_assert_eq(feed_text(f, XPT_RECORD_NAMED, 0, 1, 7, "seven"), 0);
	toy_execute(f, 1, 6, 10, 20);
	cr_assert_eq(model_flush(f->model), 0);
	model_unused_names(f->model, unused, text);
	cr_assert_str_eq(text, "5 0 five;7 0 seven;deadbeef 1 by its operators;");
	fixture_free(f);
}
