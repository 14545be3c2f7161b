/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/core/model.h"

#include "model_records.h"

static void execute(struct fixture *f, __u64 end)
{
	toy_execute(f, 1, 5, end - 1, end);
}

Test(model_core_model, a_pass_delivers_what_the_pass_before_has_settled)
{
	struct fixture *f = fixture_toy();

	cr_assert_eq(feed_pass(f, 1000), 0);
	execute(f, 900);
	execute(f, 1100); /* came while the rings were read */
	execute(f, 800);
	cr_assert_eq(f->kinds[EVENT_CALL], 0);
	cr_assert_eq(feed_pass(f, 2000), 0);
	cr_assert_eq(f->kinds[EVENT_CALL], 2);
	execute(f, 1050); /* of another ring, read later */
	execute(f, 2500);
	cr_assert_eq(feed_pass(f, 3000), 0);
	cr_assert_eq(f->kinds[EVENT_CALL], 4);
	cr_assert_eq(seen_nth(f, EVENT_CALL, 0)->event.call.end, 800);
	cr_assert_eq(seen_nth(f, EVENT_CALL, 1)->event.call.end, 900);
	cr_assert_eq(seen_nth(f, EVENT_CALL, 2)->event.call.end, 1050);
	cr_assert_eq(seen_nth(f, EVENT_CALL, 3)->event.call.end, 1100);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(seen_nth(f, EVENT_CALL, 4)->event.call.end, 2500);
	fixture_free(f);
}

Test(model_core_model, what_comes_too_late_is_delivered_all_the_same)
{
	struct fixture *f = fixture_toy();

	cr_assert_eq(feed_pass(f, 1000), 0);
	execute(f, 900);
	cr_assert_eq(feed_pass(f, 2000), 0);
	execute(f, 500);
	cr_assert_eq(feed_pass(f, 3000), 0);
	cr_assert_eq(f->kinds[EVENT_CALL], 2);
	cr_assert_eq(model_first_time(f->model), 499);
	fixture_free(f);
}

Test(model_core_model, a_single_pass_delivers_nothing)
{
	struct fixture *f = fixture_toy();

	execute(f, 900);
	cr_assert_eq(feed_pass(f, 1000), 0);
	cr_assert_eq(f->kinds[EVENT_CALL], 0);
	fixture_free(f);
}

Test(model_core_model, without_a_pass_the_older_half_makes_room)
{
	const size_t each = sizeof(struct xpt_record_call) + 4 * 8;
	const size_t fit = (16u << 20) / each;
	struct fixture *f = fixture_toy();
	size_t i;

	f->quiet = true;
	for (i = 0; i < fit; i++)
		execute(f, 1000 + i * 7919 % fit);
	cr_assert_eq(f->kinds[EVENT_CALL], 0);
	execute(f, 5000000);
	cr_assert_eq(f->kinds[EVENT_CALL], (fit + 1) / 2);
	cr_assert_eq(model_last_time(f->model), 1000 + (fit - 1) / 2, "the older half");
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_CALL], fit + 1);
	fixture_free(f);
}

Test(model_core_model, the_end_delivers_everything)
{
	struct fixture *f = fixture_toy();

	execute(f, 900);
	cr_assert_null(model_end_text(f->model));
	cr_assert_eq(feed_text(f, XPT_RECORD_END, 0, 900, 0, "{\"duration_ns\":7}"), 0);
	cr_assert_eq(f->kinds[EVENT_CALL], 1);
	cr_assert_str_eq(model_end_text(f->model), "{\"duration_ns\":7}");
	fixture_free(f);
}

Test(model_core_model, losses_and_holds)
{
	struct fixture *f = fixture_toy();
	struct xpt_record_lost lost = { .header = { XPT_RECORD_LOST, sizeof(lost), 0, 500 }, .since = 100, .count = 7 };
	struct xpt_record_waited held = { .header = { XPT_RECORD_WAITED, sizeof(held), 3, 800 },
					  .start = 600,
					  .sites = 12 };
	const struct seen *seen;

	lost.cause = XPT_LOSS_RING_FULL;
	cr_assert_eq(model_feed(f->model, &lost.header), 0);
	lost.header.time = 550;
	lost.since = 9999; /* after it was noticed: cannot be */
	cr_assert_eq(model_feed(f->model, &lost.header), 0);
	cr_assert_eq(model_feed(f->model, &held.header), 0);
	held.header.time = 900;
	held.start = 850;
	cr_assert_eq(model_feed(f->model, &held.header), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_RING_FULL), 14);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_OPEN), 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_MAX), 0);
	seen = seen_nth(f, EVENT_LOST, 0);
	cr_assert_eq(seen->event.lost.cause, XPT_LOSS_RING_FULL);
	cr_assert_eq(seen->event.lost.since, 100);
	cr_assert_eq(seen->event.lost.time, 500);
	cr_assert_eq(seen->event.lost.count, 7);
	cr_assert_eq(seen_nth(f, EVENT_LOST, 1)->event.lost.since, 550);
	cr_assert_eq(model_wait_count(f->model), 2);
	cr_assert_eq(model_wait_time(f->model), 250);
	cr_assert_eq(seen_nth(f, EVENT_WAITED, 0)->event.waited.sites, 12);
	cr_assert_eq(seen_nth(f, EVENT_WAITED, 0)->event.waited.start, 600);
	fixture_free(f);
}

static int feed_bytes(struct fixture *f, const void *record)
{
	return model_feed(f->model, record);
}

Test(model_core_model, malformed_records_are_dropped)
{
	struct fixture *f = fixture_toy();
	struct call_record call, good = call_make(TOY_EXECUTE, 1, 1, 10, 20, 4, U(5), U(1), U(2), U(0));
	struct xpt_record_count count = count_make(1, 0, 5, 10, 100, 1, 0, 0);
	struct xpt_record_task task = { .header = { XPT_RECORD_TASK, sizeof(task), 1, 5 }, .event = 4 };
	struct xpt_record_lost lost = { .header = { XPT_RECORD_LOST, sizeof(lost), 0, 5 }, .cause = XPT_LOSS_MAX };
	struct xpt_record_waited held = { .header = { XPT_RECORD_WAITED, sizeof(held), 0, 5 }, .start = 6 };
	struct {
		struct xpt_record_string record;
		char text[8];
	} string = { { .header = { XPT_RECORD_STRING, sizeof(string), 1, 5 }, .length = 9 }, "" };
	struct {
		struct xpt_record_text record;
		char text[8];
	} text = { { .header = { XPT_RECORD_THREAD, sizeof(text), 1, 5 }, .length = 9 }, "" };
	struct xpt_record_header header = { XPT_RECORD_CALL, 8, 1, 5 };

	cr_assert_eq(feed_bytes(f, &header), -EBADMSG, "smaller than a header");
	header.size = 0;
	cr_assert_eq(feed_bytes(f, &header), -EBADMSG);
	header.size = sizeof(header);
	cr_assert_eq(feed_bytes(f, &header), -EBADMSG, "smaller than its kind");
	call = good;
	call.call.header.size -= 4;
	cr_assert_eq(feed_call(f, call), -EBADMSG, "not a multiple of 8");
	call = good;
	call.call.header.size -= 8;
	cr_assert_eq(feed_call(f, call), -EBADMSG, "values do not fit");
	call = good;
	call.call.values = 5;
	call.call.header.size += 8;
	cr_assert_eq(feed_call(f, call), -EBADMSG, "more values than the spec has");
	call = good;
	call.call.start = 21;
	cr_assert_eq(feed_call(f, call), -EBADMSG, "ends before it begins");
	call = good;
	call.call.spec = 999;
	cr_assert_eq(feed_call(f, call), -EBADMSG, "never described");
	call.call.spec = 65535;
	cr_assert_eq(feed_call(f, call), -EBADMSG);
	cr_assert_eq(feed_bytes(f, &task), -EBADMSG);
	task.event = 0;
	cr_assert_eq(feed_bytes(f, &task), -EBADMSG);
	cr_assert_eq(feed_bytes(f, &lost), -EBADMSG);
	cr_assert_eq(feed_bytes(f, &held), -EBADMSG);
	cr_assert_eq(feed_count(f, count_make(1, 0, 5, 100, 100, 1, 0, 0)), -EBADMSG, "read when it began");
	cr_assert_eq(feed_count(f, count_make(1, 0, 5, ~(__u64)0, 100, 1, 0, 0)), -EBADMSG);
	cr_assert_eq(feed_count(f, count_make(1, 1000, 5, 10, 100, 1, 0, 0)), -EBADMSG, "no such function");
	count.key.runtime = 63;
	cr_assert_eq(feed_count(f, count), -EBADMSG, "no such runtime");
	count.key.runtime = 65535;
	cr_assert_eq(feed_count(f, count), -EBADMSG);
	count.key.runtime = 0;
	count.header.size -= 8;
	cr_assert_eq(feed_count(f, count), -EBADMSG, "smaller than its kind");
	call = call_number(good, 7);
	call.call.header.size -= 8;
	cr_assert_eq(feed_call(f, call), -EBADMSG, "the number does not fit");
	call = call_number(good, 7);
	call.call.values = 255;
	cr_assert_eq(feed_call(f, call), -EBADMSG);
	call.call.values = 0;
	call.call.header.size = sizeof(call.call);
	cr_assert_eq(feed_call(f, call), -EBADMSG);
	cr_assert_eq(feed_bytes(f, &string), -EBADMSG, "text longer than the record");
	string.record.length = 8;
	string.record.fetch = XPT_FETCH_MAX;
	cr_assert_eq(feed_bytes(f, &string), -EBADMSG);
	cr_assert_eq(feed_bytes(f, &text), -EBADMSG);
	text.record.length = 0xffffffff;
	cr_assert_eq(feed_bytes(f, &text), -EBADMSG);
	cr_assert_eq(feed_total(f, 1, 63, 0, 5, 5, 1), -EBADMSG, "no such runtime");
	cr_assert_eq(feed_total(f, 1, 65535, 0, 5, 5, 1), -EBADMSG);
	cr_assert_eq(feed_total(f, 1, 0, 1000, 5, 5, 1), -EBADMSG, "no such function");
	cr_assert_eq(feed_call(f, good), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_CALL], 1);
	cr_assert_eq(f->count, 3, "and its process and program");
	fixture_free(f);
}

Test(model_core_model, a_string_longer_than_the_limit_is_malformed)
{
	static char bytes[sizeof(struct xpt_record_string) + 512] __attribute__((aligned(8)));
	struct xpt_record_string *record = (void *)bytes;
	struct fixture *f = fixture_toy();

	record->header = (struct xpt_record_header){ XPT_RECORD_STRING, sizeof(bytes), 1, 5 };
	record->length = XPT_STRING_MAX + 1;
	cr_assert_eq(feed_bytes(f, record), -EBADMSG);
	record->length = XPT_STRING_MAX;
	cr_assert_eq(feed_bytes(f, record), 0);
	fixture_free(f);
}

Test(model_core_model, records_of_a_newer_version_are_passed_over)
{
	struct fixture *f = fixture_toy();
	struct xpt_record_header header = { 60000, sizeof(header), 1, 5 };

	cr_assert_eq(feed_bytes(f, &header), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->count, 0);
	fixture_free(f);
}

Test(model_core_model, records_need_not_be_aligned)
{
	struct call_record record = call_make(TOY_COPY, 1, 1, 10, 20, 2, U(7), U(0));
	struct fixture *f = fixture_toy();
	char bytes[sizeof(record) + 8];
	size_t shift;

	for (shift = 0; shift < 8; shift++) {
		memcpy(bytes + shift, &record, sizeof(record));
		cr_assert_eq(feed_bytes(f, bytes + shift), 0);
	}
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_call_total(f->model, 0)->bytes, 56);
	fixture_free(f);
}

Test(model_core_model, up_to_when_everything_has_been_delivered)
{
	struct fixture *f = fixture_toy();

	cr_assert_eq(model_delivered(f->model), 0);
	execute(f, 900);
	cr_assert_eq(feed_pass(f, 1000), 0);
	cr_assert_eq(model_delivered(f->model), 0);
	execute(f, 1100);
	cr_assert_eq(feed_pass(f, 2000), 0);
	cr_assert_eq(model_delivered(f->model), 1000);
	cr_assert_eq(feed_pass(f, 1500), 0);
	cr_assert_eq(model_delivered(f->model), 2000);
	cr_assert_eq(feed_pass(f, 3000), 0);
	cr_assert_eq(model_delivered(f->model), 2000, "never goes back");
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_delivered(f->model), 3000);
	execute(f, 3500);
	cr_assert_eq(feed_text(f, XPT_RECORD_END, 0, 4000, 0, "{}"), 0);
	cr_assert_eq(model_delivered(f->model), 4000);
	fixture_free(f);
}

Test(model_core_model, making_room_does_not_mean_that_everything_was_delivered)
{
	const size_t fit = (16u << 20) / (sizeof(struct xpt_record_call) + 4 * 8);
	struct fixture *f = fixture_toy();
	size_t i;

	f->quiet = true;
	cr_assert_eq(feed_pass(f, 500), 0);
	for (i = 0; i < fit + 1; i++)
		execute(f, 1000 + i);
	cr_assert_gt(f->kinds[EVENT_CALL], 0);
	cr_assert_eq(model_delivered(f->model), 0);
	fixture_free(f);
}

Test(model_core_model, freeing_nothing)
{
	model_free(NULL);
}

static int feed_budget(struct fixture *f, __u32 tgid, __u64 time, const char *text)
{
	int error = feed_text(f, XPT_RECORD_BUDGET, tgid, time, 0, text);

	return error ?: model_flush(f->model);
}

Test(model_core_model, changes_that_keep_the_budget)
{
	struct fixture *f = fixture_toy();
	const struct model_budget_change *change;

	toy_load(f, 0x7fffffffffffffff, "resnet50", 10, 20); /* a double would round it */
	cr_assert_eq(feed_budget(f, 1, 100,
				 "{\"action\":\"sampling\",\"every\":8,\"programs\":2,\"runtime\":0,"
				 "\"handle\":9223372036854775807,\"cost\":4.1,\"budget\":2}"),
		     0);
	cr_assert_eq(feed_budget(f, 0, 200, "{\"action\":\"operators\",\"on\":false,\"cost\":3.2,\"budget\":2}"), 0);
	cr_assert_eq(feed_budget(f, 7, 300, "{\"action\":\"site\",\"on\":true,\"function\":\"f\",\"since\":150}"), 0);
	cr_assert_eq(feed_budget(f, 7, 400, "{\"action\":\"site\",\"on\":true,\"function\":\"f\",\"since\":500}"), 0);
	cr_assert_eq(feed_budget(f, 9, 500, "{\"action\":\"sampling\",\"every\":1,\"cost\":-1,\"budget\":1e300}"), 0);
	cr_assert_eq(model_budget_change_count(f->model), 5);
	cr_assert_eq(f->kinds[EVENT_BUDGET], 5);
	change = model_budget_change(f->model, 0);
	cr_assert(change->action == BUDGET_SAMPLING && change->time == 100 && change->tgid == 1);
	cr_assert(change->every == 8 && change->programs == 2);
	cr_assert_str_eq(change->name, "resnet50");
	cr_assert_float_eq(change->cost, 4.1, 1e-9);
	cr_assert_float_eq(change->budget, 2, 1e-9);
	change = model_budget_change(f->model, 1);
	cr_assert(change->action == BUDGET_OPERATORS && !change->on && !change->name);
	change = model_budget_change(f->model, 2);
	cr_assert(change->action == BUDGET_SITE && change->on && change->since == 150 && change->tgid == 7);
	cr_assert_str_eq(change->name, "f");
	cr_assert_eq(model_budget_change(f->model, 3)->since, 0, "later than the change");
	change = model_budget_change(f->model, 4);
	cr_assert(!change->name && change->programs == 1 && change->cost == 0 && change->budget == 0);
	fixture_free(f);
}

Test(model_core_model, changes_that_are_malformed_or_unknown)
{
	static const char *const malformed[] = {
		"",
		"[]",
		"{",
		"{}",
		"{\"action\":7}",
		"{\"action\":\"sampling\"}",
		"{\"action\":\"sampling\",\"every\":0}",
		"{\"action\":\"sampling\",\"every\":-8}",
		"{\"action\":\"sampling\",\"every\":1e99}",
		"{\"action\":\"sampling\",\"every\":\"8\"}",
		"{\"action\":\"operators\"}",
		"{\"action\":\"operators\",\"on\":1}",
		"{\"action\":\"site\",\"on\":false}",
		"{\"action\":\"site\",\"on\":false,\"function\":\"\"}",
		"{\"action\":\"site\",\"function\":\"f\"}",
	};
	struct fixture *f = fixture_toy();

	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
		cr_expect_eq(feed_budget(f, 1, 100 + i, malformed[i]), -EBADMSG, "%s", malformed[i]);
	cr_assert_eq(feed_budget(f, 1, 200, "{\"action\":\"stacks\",\"on\":false}"), 0, "of a newer version");
	cr_assert_eq(model_budget_change_count(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_BUDGET], 0);
	fixture_free(f);
}

Test(model_core_model, more_changes_than_are_kept)
{
	struct fixture *f = fixture_toy();

	f->quiet = true;
	for (unsigned int i = 0; i < MODEL_BUDGET_CHANGES_MAX + 7; i++)
		cr_assert_eq(feed_text(f, XPT_RECORD_BUDGET, 1, 100 + i, 0,
				       "{\"action\":\"site\",\"on\":false,\"function\":\"f\"}"),
			     0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_budget_change_count(f->model), MODEL_BUDGET_CHANGES_MAX);
	cr_assert_eq(model_budget_changes_left_out(f->model), 7);
	cr_assert_eq(f->kinds[EVENT_BUDGET], MODEL_BUDGET_CHANGES_MAX + 7);
	fixture_free(f);
}
