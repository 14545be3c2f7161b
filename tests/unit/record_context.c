/* SPDX-License-Identifier: BSD-2-Clause */
#include "record_made.h"

#include <stdint.h>
#include <time.h>

#include "record/context.h"

/* All that is known, a line each: kind, process, number, text. */
static const char *known(const struct context *context)
{
	static char lines[65536];
	const struct xpt_record_header *record;
	struct text text = {};
	size_t length = 0;

	lines[0] = '\0';
	context_write(context, 5000, &text);
	for (size_t at = 0; at < text.length; at += record->size) {
		const struct xpt_record_text *reported = (const void *)(text.data + at);

		record = &reported->header;
		cr_assert_eq(record->time, 5000);
		length += (size_t)snprintf(lines + length, sizeof(lines) - length, "%u %u %llu %.*s\n", record->kind,
					   record->tgid, reported->id, (int)reported->length, reported->text);
	}
	text_free(&text);
	return lines;
}

static void take(struct context *context, unsigned int kind, __u32 tgid, __u64 time, __u64 id, const char *text)
{
	struct text bytes = {};

	stream_text(&bytes, kind, tgid, time, id, text);
	if (kind == XPT_RECORD_LOADED)
		cr_assert_eq(context_load(context, 0, (const void *)bytes.data), 0);
	else
		cr_assert_eq(context_take(context, (const void *)bytes.data), 0);
	text_free(&bytes);
}

static void task(struct context *context, enum xpt_task_event event, __u32 tgid, __u32 other, __u64 time)
{
	struct text bytes = {};

	stream_task(&bytes, event, tgid, other, time);
	cr_assert_eq(context_take(context, (const void *)bytes.data), 0);
	text_free(&bytes);
}

Test(record_context, latest_counts_in_whatever_order_it_comes)
{
	struct context context;

	context_init(&context, SIZE_MAX);
	take(&context, XPT_RECORD_THREAD, 1, 200, 11, "new");
	take(&context, XPT_RECORD_THREAD, 1, 100, 11, "old");
	take(&context, XPT_RECORD_PROCESS, 1, 300, 0, "{}");
	take(&context, XPT_RECORD_SPEC, 0, 0, 3, "spec");
	take(&context, XPT_RECORD_SPEC, 0, 0, 3, "again");
	cr_assert_str_eq(known(&context), "16 0 3 again\n17 1 0 {}\n18 1 11 new\n");
	context_free(&context);
}

Test(record_context, all_choices_count)
{
	struct context context;

	context_init(&context, SIZE_MAX);
	take(&context, XPT_RECORD_CHOICE, 0, 1, 0, "a");
	take(&context, XPT_RECORD_CHOICE, 0, 1, 0, "b");
	take(&context, XPT_RECORD_MATCH, 0, 1, 0, "a");
	take(&context, XPT_RECORD_CHOICE, 0, 2, 0, "a");
	cr_assert_str_eq(known(&context), "33 0 0 a\n33 0 0 b\n34 0 0 a\n");
	context_free(&context);
}

Test(record_context, process_that_exits_takes_all_with_it)
{
	struct context context;

	context_init(&context, SIZE_MAX);
	take(&context, XPT_RECORD_PROCESS, 1, 100, 0, "{}");
	take(&context, XPT_RECORD_CLASS, 1, 100, 7, "c");
	take(&context, XPT_RECORD_LOADED, 1, 100, 5, "{}");
	take(&context, XPT_RECORD_CLASS, 2, 100, 7, "other");
	take(&context, XPT_RECORD_CLASS, 1, 201, 8, "of the next one with the number");
	task(&context, XPT_TASK_EXIT, 1, 0, 200);
	cr_assert_str_eq(known(&context), "31 2 7 other\n31 1 8 of the next one with the number\n");
	task(&context, XPT_TASK_EXIT, 1, 0, 300);
	task(&context, XPT_TASK_EXIT, 2, 0, 300);
	task(&context, XPT_TASK_EXIT, 3, 0, 300); /* never heard of */
	cr_assert_str_eq(known(&context), "");
	cr_assert_eq(context.bytes, 0);
	cr_assert_eq(context.owners.count, 0);
	context_free(&context);
}

Test(record_context, process_that_runs_another_program_keeps_only_itself)
{
	struct context context;

	context_init(&context, SIZE_MAX);
	take(&context, XPT_RECORD_CLASS, 1, 100, 7, "c");
	take(&context, XPT_RECORD_PROCESS, 1, 100, 0, "{}");
	take(&context, XPT_RECORD_LOADED, 1, 100, 5, "{}");
	task(&context, XPT_TASK_EXEC, 1, 0, 200);
	cr_assert_str_eq(known(&context), "17 1 0 {}\n");
	context_free(&context);
}

Test(record_context, child_has_the_programs_of_then)
{
	struct context context;

	context_init(&context, SIZE_MAX);
	take(&context, XPT_RECORD_LOADED, 1, 100, 5, "{\"name\":\"a\",\"named_by\":4}");
	take(&context, XPT_RECORD_LOADED, 1, 100, 6, "{\"name\":\"\\\"named_by\\\":4\"}");
	take(&context, XPT_RECORD_LOADED, 1, 300, 7, "{\"name\":\"later\",\"named_by\":4}");
	take(&context, XPT_RECORD_CLASS, 1, 100, 9, "c");
	task(&context, XPT_TASK_FORK, 2, 1, 200);
	task(&context, XPT_TASK_EXIT, 1, 0, 400);
	cr_assert_str_eq(known(&context), "35 2 5 {\"name\":\"a\",\"named_by\":1}\n"
					  "35 2 6 {\"name\":\"\\\"named_by\\\":4\"}\n");
	context_release(&context, 2, 0, 5);
	context_release(&context, 2, 1, 6); /* of another runtime */
	context_release(&context, 3, 0, 5);
	cr_assert_str_eq(known(&context), "35 2 6 {\"name\":\"\\\"named_by\\\":4\"}\n");
	context_free(&context);
}

/* What processes are goes last, and what all share never. */
Test(record_context, oldest_makes_room)
{
	struct context context;

	context_init(&context, 2000);
	take(&context, XPT_RECORD_SPEC, 0, 0, 3, "spec");
	take(&context, XPT_RECORD_PROCESS, 1, 1, 0, "{}");
	for (__u64 i = 0; i < 1000; i++) {
		take(&context, XPT_RECORD_THREAD, 1, i, i, "a thread");
		cr_assert_leq(context.owned_bytes, 2000);
	}
	cr_assert_gt(context.owned_count, 3);
	cr_assert_eq(context.dropped, 1001 - context.owned_count);
	cr_assert_eq(strncmp(known(&context), "16 0 3 spec\n17 1 0 {}\n18 1 ", 27), 0, "%s", known(&context));
	cr_assert(strstr(known(&context), " 999 a thread\n"));
	context_free(&context);
}

#define OBJECT(uri, more) "{\"uri\":\"" uri "\",\"kind\":\"elf\"" more "}"

Test(record_context, code_objects_are_kept_until_they_are_unloaded)
{
	struct context context;

	context_init(&context, SIZE_MAX);
	take(&context, XPT_RECORD_CODE_OBJECT, 1, 100, 5, OBJECT("a", ",\"tid\":123,\"waited_ns\":4567,\"size\":8"));
	take(&context, XPT_RECORD_CODE_OBJECT, 1, 110, 6, OBJECT("b", ",\"name\":\"\\\"tid\\\":7\",\"tid\":9"));
	take(&context, XPT_RECORD_CODE_OBJECT, 2, 120, 5, OBJECT("c", ""));
	take(&context, XPT_RECORD_SYMBOL, 1, 120, 0x700, "kernel");
	cr_assert_str_eq(
		known(&context),
		"38 1 1792 kernel\n"
		"36 1 5 " OBJECT(
			"a",
			",\"tid\":0  ,\"waited_ns\":0   ,\"size\":8") "\n"
								      "36 1 6 " OBJECT(
									      "b",
									      ",\"name\":\"\\\"tid\\\":7\",\"tid\":0") "\n"
														       "36 2 5 " OBJECT(
															       "c",
															       "") "\n");
	take(&context, XPT_RECORD_CODE_UNLOADED, 1, 90, 5, ""); /* of one that had the handle before */
	take(&context, XPT_RECORD_CODE_UNLOADED, 1, 130, 6, "");
	take(&context, XPT_RECORD_CODE_UNLOADED, 1, 130, 7, "");
	take(&context, XPT_RECORD_CODE_UNLOADED, 3, 130, 5, "");
	cr_assert_eq(context.code_count, 2);
	task(&context, XPT_TASK_EXEC, 1, 0, 200);
	cr_assert_str_eq(known(&context), "36 2 5 " OBJECT("c", "") "\n");
	take(&context, XPT_RECORD_CODE_UNLOADED, 2, 300, 5, "");
	cr_assert_str_eq(known(&context), "");
	cr_assert_eq(context.code_count + context.owned_count + context.bytes, 0);
	context_free(&context);
}

Test(record_context, code_objects_without_a_handle_are_reported_apart_by_their_uri)
{
	struct context context;

	context_init(&context, SIZE_MAX);
	take(&context, XPT_RECORD_CODE_OBJECT, 1, 100, 0, OBJECT("a", ""));
	take(&context, XPT_RECORD_CODE_OBJECT, 1, 101, 0, OBJECT("b", ""));
	take(&context, XPT_RECORD_CODE_OBJECT, 1, 102, 0, OBJECT("a", ",\"size\":1"));
	take(&context, XPT_RECORD_CODE_OBJECT, 1, 103, 0, "{\"uri\":\"");
	cr_assert_str_eq(known(&context),
			 "36 1 0 " OBJECT("b", "") "\n36 1 0 " OBJECT("a", ",\"size\":1") "\n"
											  "36 1 0 {\"uri\":\"\n");
	context_free(&context);
}

/* Names of programs are asked for more often. */
Test(record_context, code_objects_make_room_first)
{
	struct context context;

	context_init(&context, 4000);
	take(&context, XPT_RECORD_SYMBOL, 1, 1, 0x700, "kernel");
	for (__u64 i = 1; i <= 1000; i++) {
		take(&context, XPT_RECORD_CODE_OBJECT, 1, i, i, OBJECT("a", ""));
		cr_assert_leq(context.owned_bytes, 4000);
	}
	cr_assert(strstr(known(&context), "38 1 1792 kernel\n"));
	cr_assert(strstr(known(&context), "36 1 1000 "));
	context_free(&context);

	context_init(&context, SIZE_MAX);
	for (__u64 i = 1; i <= CONTEXT_CODE_MAX + 3; i++)
		take(&context, XPT_RECORD_CODE_OBJECT, 1, i, i, OBJECT("a", ""));
	cr_assert_eq(context.code_count, CONTEXT_CODE_MAX);
	cr_assert_eq(context.dropped, 3);
	context_free(&context);
}

static void tell(struct past *past, __u64 time, __u64 handle, const char *text)
{
	struct past_change reported = { .time = time, .handle = handle, .tgid = 1 };
	struct text bytes = {};

	if (text) {
		stream_text(&bytes, XPT_RECORD_LOADED, 1, time, handle, text);
		reported.size = (__u16)bytes.length;
	}
	cr_assert_eq(past_add(past, &reported, bytes.data), 0);
	text_free(&bytes);
}

/* Processes leave a window when they are a window old; what happened to programs since is pending all that time. */
Test(record_context, past_takes_old_tasks_behind_many_changes_at_once)
{
	const unsigned int many = 60000;
	struct text bytes = {};
	struct past past;
	clock_t begin;

	past_init(&past, SIZE_MAX);
	for (unsigned int i = 0; i < many; i++)
		tell(&past, 1000000 + i, i, NULL);
	begin = clock();
	for (unsigned int i = 0; i < many; i++) {
		text_free(&bytes);
		stream_task(&bytes, XPT_TASK_EXIT, 2, 0, 1 + i);
		cr_assert_eq(past_take(&past, (const void *)bytes.data), 0);
	}
	/* Searched from the end, each would pass by all changes: that is 3.6e9 steps. */
	cr_assert_lt(clock() - begin, 2 * CLOCKS_PER_SEC);
	cr_assert_eq(past_settle(&past, many), 0);
	cr_assert(link_alone(&past.waiting[PAST_TASKS]));
	cr_assert(!link_alone(&past.waiting[PAST_PROGRAMS]));
	text_free(&bytes);
	past_free(&past);
}

/* A release with an earlier time than that of a load that was reported before it. */
Test(record_context, past_is_in_the_order_of_time)
{
	struct past past, other;
	struct past_copy copy = {};
	struct text bytes = {};
	size_t at = 0;

	past_init(&past, SIZE_MAX);
	tell(&past, 100, 5, "a");
	tell(&past, 300, 6, "b");
	tell(&past, 200, 5, NULL);
	stream_task(&bytes, XPT_TASK_FORK, 2, 1, 150);
	cr_assert_eq(past_take(&past, (const void *)bytes.data), 0);
	cr_assert_str_eq(known(&past.context), "");
	cr_assert_eq(past_settle(&past, 149), 0);
	cr_assert_str_eq(known(&past.context), "35 1 5 a\n");
	cr_assert_eq(past_save(&past, &copy), 0);
	cr_assert_eq(past_settle(&past, 250), 0);
	cr_assert_str_eq(known(&past.context), "35 2 5 a\n");
	past_free(&past);

	cr_assert_not_null(past_copy_loaded(&copy, 1, 300, &at));
	cr_assert_null(past_copy_loaded(&copy, 1, 300, &at));
	at = 0;
	cr_assert_null(past_copy_loaded(&copy, 1, 200, &at));
	past_init(&other, SIZE_MAX);
	cr_assert_eq(past_restore(&other, &copy), 0);
	past_copy_free(&copy);
	cr_assert_eq(past_settle(&other, 300), 0);
	cr_assert_str_eq(known(&other.context), "35 2 5 a\n35 1 6 b\n");
	cr_assert_eq(other.waiting_bytes, 0);
	past_free(&other);
	text_free(&bytes);
}

/* What the probes of a call take: the latest, behind what the call is. */
Test(record_context, costs)
{
	struct context context;

	context_init(&context, SIZE_MAX);
	take(&context, XPT_RECORD_SPEC, 0, 0, 3, "spec");
	take(&context, XPT_RECORD_COST, 0, 0, 3, "1");
	take(&context, XPT_RECORD_SPEC, 0, 0, 4, "other");
	take(&context, XPT_RECORD_COST, 0, 0, 3, "2");
	cr_assert_str_eq(known(&context), "16 0 3 spec\n39 0 3 2\n16 0 4 other\n");
	context_free(&context);
}

static void change(struct context *context, __u32 tgid, __u64 time, const char *text)
{
	take(context, XPT_RECORD_BUDGET, tgid, time, 0, text);
}

#define SITE(name, on) "{\"action\":\"site\",\"on\":" on ",\"function\":\"" name "\",\"cost\":1}"

/* Of changes that keep the budget, what is in force. */
Test(record_context, budget)
{
	struct context context;

	context_init(&context, SIZE_MAX);
	change(&context, 1, 100, "{\"action\":\"sampling\",\"every\":2,\"programs\":1}");
	change(&context, 2, 200, "{\"action\":\"sampling\",\"every\":16,\"programs\":2}");
	change(&context, 0, 300, "{\"action\":\"operators\",\"on\":false}");
	change(&context, 1, 400, SITE("f", "false"));
	change(&context, 1, 400, SITE("g", "false"));
	change(&context, 2, 400, SITE("f", "false"));
	task(&context, XPT_TASK_EXIT, 3, 0, 450);
	cr_assert_str_eq(known(&context),
			 "41 2 0 {\"action\":\"sampling\",\"every\":16,\"programs\":2}\n"
			 "41 0 0 {\"action\":\"operators\",\"on\":false}\n"
			 "41 1 0 " SITE("f", "false") "\n41 1 0 " SITE("g", "false") "\n41 2 0 " SITE("f",
												      "false") "\n");
	change(&context, 1, 500, SITE("f", "true"));
	task(&context, XPT_TASK_EXIT, 2, 0, 550);
	cr_assert_str_eq(known(&context), "41 2 0 {\"action\":\"sampling\",\"every\":16,\"programs\":2}\n"
					  "41 0 0 {\"action\":\"operators\",\"on\":false}\n"
					  "41 1 0 " SITE("g", "false") "\n");
	change(&context, 0, 600, "{\"action\":\"operators\",\"on\":true}");
	change(&context, 1, 600, "{\"action\":\"sampling\",\"every\":1,\"programs\":2}");
	change(&context, 1, 399, SITE("g", "true")); /* before */
	cr_assert_str_eq(known(&context), "41 1 0 " SITE("g", "false") "\n");
	task(&context, XPT_TASK_EXEC, 1, 0, 700);
	cr_assert_str_eq(known(&context), "");
	context_free(&context);
}

Test(record_context, has)
{
	struct context context;
	struct text bytes = {};

	context_init(&context, SIZE_MAX);
	change(&context, 1, 100, SITE("f", "false"));
	stream_text(&bytes, XPT_RECORD_BUDGET, 1, 100, 0, SITE("f", "false"));
	cr_assert(context_has(&context, (const void *)bytes.data));
	change(&context, 1, 200, SITE("f", "false"));
	cr_assert_not(context_has(&context, (const void *)bytes.data));
	text_free(&bytes);
	context_free(&context);
}
