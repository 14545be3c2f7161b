/* SPDX-License-Identifier: BSD-2-Clause */
#include "model_records.h"
#include "session/reader/describe_records.h"

static int feed_loaded(struct fixture *f, __u64 handle, __u64 time, const char *text)
{
	return feed_text(f, XPT_RECORD_LOADED, 1, time, handle, text);
}

static void flush(struct fixture *f)
{
	cr_assert_eq(model_flush(f->model), 0);
}

Test(model_core_records_statedump, program_has_its_name_and_size_from_before)
{
	struct fixture *f = fixture_toy();
	const struct model_program *program;

	cr_assert_eq(feed_loaded(f, 5, 99, "{\"runtime\":0,\"name\":\"net\",\"named_by\":3,\"size\":4096}"), 0);
	toy_execute(f, 1, 5, 100, 110);
	flush(f);
	cr_assert_eq(model_program_count(f->model), 1);
	program = toy_program(f, 1, 5, 0);
	cr_assert_str_eq(program->name, "net");
	cr_assert(program->named);
	cr_assert_eq(program->name_source, NAME_FROM_LOAD);
	cr_assert_eq(program->size, 4096);
	cr_assert_eq(program->loaded, 0);
	cr_assert_eq(program->recorded, 1);
	cr_assert_str_eq(seen_nth(f, EVENT_CALL, 0)->program, "net");
	cr_assert_str_eq(seen_nth(f, EVENT_PROGRAM, 0)->name, "net");
	fixture_free(f);
}

Test(model_core_records_statedump, one_without_a_name_has_its_number)
{
	struct fixture *f = fixture_toy();

	cr_assert_eq(feed_loaded(f, 5, 99, "{\"runtime\":0,\"number\":7}"), 0);
	cr_assert_eq(feed_loaded(f, 6, 99, "{\"runtime\":0}"), 0);
	flush(f);
	cr_assert_str_eq(toy_program(f, 1, 5, 0)->name, "toy model 7");
	cr_assert_str_eq(toy_program(f, 1, 6, 0)->name, "toy model 1");
	cr_assert_eq(f->kinds[EVENT_PROGRAM], 0);
	fixture_free(f);
}

/* The same name again, from each source; a call names the program later. */
Test(model_core_records_statedump, better_sources_of_a_name_win)
{
	char text[128];

	for (int source = NAME_FROM_FORK; source < NAME_SOURCES; source++) {
		struct fixture *f = fixture_toy();
		bool renamed = source == NAME_FROM_CALL; /* its handle is another program's from there on */

		snprintf(text, sizeof(text), "{\"runtime\":0,\"name\":\"before\",\"named_by\":%d}", source);
		cr_assert_eq(feed_loaded(f, 5, 99, text), 0);
		cr_assert_eq(feed_string(f, TOY_NAME, 1, 1, 1, 100, "call", 4), 0);
		CALL_1(f, TOY_NAME, 1, 1, U(100), U(110), 1, U(5));
		toy_execute(f, 1, 5, 120, 130);
		flush(f);
		cr_assert_eq(model_program_count(f->model), renamed ? 2 : 1);
		cr_assert_str_eq(seen_nth(f, EVENT_CALL, 1)->program, source != NAME_FROM_USER ? "call" : "before",
				 "source %d", source);
		fixture_free(f);
	}
}

Test(model_core_records_statedump, name_from_a_fork_gives_way_to_any_other)
{
	struct fixture *f = fixture_toy();

	cr_assert_eq(feed_loaded(f, 5, 99, "{\"runtime\":0,\"name\":\"call\",\"named_by\":4}"), 0);
	cr_assert_eq(feed_loaded(f, 5, 100, "{\"runtime\":0,\"name\":\"fork\",\"named_by\":1}"), 0);
	flush(f);
	cr_assert_str_eq(toy_program(f, 1, 5, 0)->name, "call");
	fixture_free(f);
}

Test(model_core_records_statedump, name_that_the_user_gives_wins)
{
	for (int source = NAME_FROM_LOAD; source < NAME_SOURCES; source++) {
		struct fixture *f = fixture_toy();
		char text[128];

		snprintf(text, sizeof(text), "{\"runtime\":0,\"name\":\"before\",\"named_by\":%d}", source);
		cr_assert_eq(feed_text(f, XPT_RECORD_NAMED, 1, 0, 5, "mine"), 0);
		cr_assert_eq(feed_loaded(f, 5, 99, text), 0);
		flush(f);
		cr_assert_str_eq(toy_program(f, 1, 5, 0)->name, "mine", "source %d", source);
		fixture_free(f);
	}
}

Test(model_core_records_statedump, later_load_of_the_handle_is_another_program)
{
	struct fixture *f = fixture_toy();

	cr_assert_eq(feed_loaded(f, 5, 99, "{\"runtime\":0,\"name\":\"old\",\"named_by\":3}"), 0);
	toy_execute(f, 1, 5, 100, 110);
	toy_unload(f, 5, 120, 121);
	toy_load(f, 5, "new", 130, 140);
	toy_execute(f, 1, 5, 150, 160);
	flush(f);
	cr_assert_str_eq(toy_program(f, 1, 5, 0)->name, "old");
	cr_assert_eq(toy_program(f, 1, 5, 0)->released, 120);
	cr_assert_str_eq(toy_program(f, 1, 5, 1)->name, "new");
	cr_assert_str_eq(seen_nth(f, EVENT_CALL, 0)->program, "old");
	cr_assert_str_eq(seen_nth(f, EVENT_CALL, 3)->program, "new");
	fixture_free(f);
}

Test(model_core_records_statedump, lends_its_name)
{
	struct fixture *f = fixture_toy();
	struct call_record load = call_make(TOY_LOAD, 1, 1, 100, 110, 4, U(6), U(5), U(1), U(0));

	cr_assert_eq(feed_loaded(f, 5, 99, "{\"runtime\":0,\"name\":\"net\",\"named_by\":3}"), 0);
	load.call.valid &= (__u8)~1u; /* no name of its own */
	cr_assert_eq(feed_call(f, load), 0);
	flush(f);
	cr_assert_str_eq(toy_program(f, 1, 6, 0)->name, "net");
	fixture_free(f);
}

Test(model_core_records_statedump, children_have_it)
{
	struct fixture *f = fixture_toy();

	cr_assert_eq(feed_loaded(f, 5, 99, "{\"runtime\":0,\"name\":\"net\",\"named_by\":3}"), 0);
	cr_assert_eq(feed_task(f, XPT_TASK_FORK, 2, 1, 200, "child"), 0);
	toy_load(f, 5, "later", 210, 220); /* the child has what was there when it began */
	toy_execute(f, 2, 5, 300, 310);
	flush(f);
	cr_assert_str_eq(toy_program(f, 2, 5, 0)->name, "net");
	fixture_free(f);
}

Test(model_core_records_statedump, region_with_a_handle_has_its_name)
{
	struct xpt_record_region region = { .header = { XPT_RECORD_REGION, sizeof(region), 1, 120 },
					    .start = 110,
					    .tid = 1,
					    .spec = TOY_BEGIN,
					    .handle = 7 };
	struct fixture *f = fixture_toy();

	cr_assert_eq(feed_loaded(f, 7, 99, "{\"runtime\":0,\"region\":\"decode\"}"), 0);
	cr_assert_eq(model_feed(f->model, &region.header), 0);
	flush(f);
	cr_assert_str_eq(seen_nth(f, EVENT_REGION, 0)->name, "decode");
	cr_assert_eq(model_program_count(f->model), 0);
	fixture_free(f);
}

Test(model_core_records_statedump, what_is_malformed_is_refused)
{
	static const char *const texts[] = {
		"",
		"[]",
		"{",
		"{}",
		"{\"runtime\":2}", /* never described */
		"{\"runtime\":64}",
		"{\"runtime\":-1}",
		"{\"runtime\":\"toy\"}",
		"{\"runtime\":0,\"name\":\"\"}",
		"{\"runtime\":0,\"name\":5}",
		"{\"runtime\":0,\"region\":\"\"}",
		"{\"runtime\":0,\"name\":\"a\",\"named_by\":0}",
		"{\"runtime\":0,\"name\":\"a\",\"named_by\":10}",
		"{\"runtime\":0,\"name\":\"a\",\"named_by\":\"load\"}",
		"{\"runtime\":0,\"name\":\"a\",\"number\":0}",
		"{\"runtime\":0,\"size\":-1}",
		"{\"runtime\":0,\"size\":1e30}",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct fixture *f = fixture_toy();

		cr_assert_eq(feed_loaded(f, 5, 99, texts[i]), 0);
		cr_assert_eq(model_flush(f->model), -EBADMSG, "%s", texts[i]);
		cr_assert_eq(model_program_count(f->model), 0, "%s", texts[i]);
		fixture_free(f);
	}
}

/* What is written of a program makes the same one. */
Test(model_core_records_statedump, what_is_written_is_read)
{
	struct fixture *f = fixture_toy(), *other = fixture_toy();
	const struct model_program *program;
	struct xpt_record_text *record;

	toy_load(f, 5, "a \"quoted\" name", 100, 110);
	flush(f);
	record = record_loaded(toy_program(f, 1, 5, 0), 400);
	cr_assert_eq(record->header.size % 8, 0);
	cr_assert_eq(model_feed(other->model, &record->header), 0);
	free(record);
	flush(other);
	program = toy_program(other, 1, 5, 0);
	cr_assert_str_eq(program->name, "a \"quoted\" name");
	cr_assert_eq(program->name_source, NAME_FROM_LOAD);
	cr_assert_eq(program->size, 4096);
	fixture_free(f);
	fixture_free(other);
}
