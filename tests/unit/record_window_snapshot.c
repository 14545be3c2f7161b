/* SPDX-License-Identifier: BSD-2-Clause */
#include "record_window.h"

static __u8 roles[XPT_SPEC_MAX];

/* A window that has evicted all that came before time 1000. */
struct small {
	struct text bytes;
	struct window *window;
};

static void small_init(struct small *small)
{
	stream_roles(roles);
	*small = (struct small){};
	stream_describe(&small->bytes);
	cr_assert_eq(window_create(&(struct window_options){ .bytes = WINDOW_BYTES_MIN, .span = 100000 },
				   &small->window),
		     0);
}

static void small_add(struct small *small)
{
	const struct xpt_record_header *record;

	for (size_t at = 0; at < small->bytes.length; at += record->size) {
		record = (const void *)(small->bytes.data + at);
		cr_assert_eq(window_add(small->window, record), 0);
	}
	small->bytes.length = 0;
}

/* What is there goes, and the window begins behind it. */
static void small_evict(struct small *small, __u64 time)
{
	struct window_figures figures;

	stream_pass(&small->bytes, time);
	small_add(small);
	window_expire(small->window, time + 200000);
	window_figures(small->window, &figures);
	cr_assert_eq(figures.records, 0);
	cr_assert_eq(figures.begin, time + 1);
}

static void small_account(struct small *small, const struct snapshot_part *part, struct account *account)
{
	struct snapshot *snapshot;

	small_add(small);
	cr_assert_eq(window_snapshot(small->window, &snapshot), 0);
	account_init(account);
	cr_assert_eq(snapshot_each(snapshot, part, account_feed, account), 0);
	account_finish(account);
	snapshot_free(snapshot);
}

static void small_free(struct small *small, struct account *account)
{
	account_free(account);
	text_free(&small->bytes);
	window_free(small->window);
}

static void execute(struct small *small, __u32 tid, __u64 handle, __u64 start, __u64 end)
{
	stream_call(&small->bytes, 1, tid, STREAM_EXECUTE, start, end, 0, &handle, 1);
}

static void operator(struct small *small, __u32 tid, __u64 inference, __u64 start, __u64 end)
{
	const __u64 values[] = { 500, 1, 5, inference };

	stream_call(&small->bytes, 1, tid, STREAM_OPERATOR, start, end, 1, values, 4);
}

Test(record_window_snapshot, inference_that_began_before_is_not_there)
{
	const struct snapshot_part all = { .roles = roles };
	struct account account;
	struct small small;

	small_init(&small);
	small_evict(&small, 1000);
	operator(&small, 1, 990, 1010, 1020); /* of the first one, on its thread */
	operator(&small, 2, 990, 1010, 1020); /* and on another */
	execute(&small, 1, 5, 990, 1030);
	operator(&small, 2, 1040, 1050, 1060);
	execute(&small, 1, 5, 1040, 1070);
	small_account(&small, &all, &account);
	cr_assert_eq(account.count, 2);
	cr_assert_eq(account.lines[0].what, 'o');
	cr_assert_eq(account.lines[0].inference, 1040);
	cr_assert_eq(account.lines[1].what, 'e');
	cr_assert_eq(account.lines[1].start, 1040);
	small_free(&small, &account);
}

Test(record_window_snapshot, stretch_is_one_inference_with_its_operators_on_other_threads)
{
	const struct snapshot_stretch stretch = { 1, 1, 1200, 1300 };
	const struct snapshot_part part = { .stretches = &stretch, .count = 1, .roles = roles };
	struct account account;
	struct small small;

	small_init(&small);
	small_evict(&small, 1000);
	for (__u64 start = 1100; start < 1500; start += 100) {
		operator(&small, 1, start, start + 10, start + 20);
		operator(&small, 2, start, start + 30, start + 40);
		execute(&small, 1, 5, start, start + 99 + (start == 1200));
		stream_region(&small.bytes, 1, 1, start + 50, start + 60, 0, 9);
		stream_region(&small.bytes, 1, 2, start + 50, start + 60, 0, 9);
	}
	small_account(&small, &part, &account);
	cr_assert_eq(account.count, 4);
	for (size_t i = 0; i < account.count; i++)
		cr_assert(account.lines[i].start >= 1200 && account.lines[i].end <= 1300);
	cr_assert_eq(account.lines[1].tid, 2); /* its operator */
	cr_assert_eq(account.lines[2].what, 'r');
	cr_assert_eq(account.lines[2].tid, 1);
	small_free(&small, &account);
}

static void enqueue(struct small *small, __u64 key, __u64 start, __u64 end)
{
	const __u64 values[] = { 5, key };

	stream_call(&small->bytes, 1, 1, STREAM_ENQUEUE, start, end, 0, values, 2);
}

static void wait(struct small *small, __u64 key, __u64 start, __u64 end)
{
	stream_call(&small->bytes, 1, 2, STREAM_WAIT, start, end, 0, &key, 1);
}

/* The other ones overlap with it on both threads, and begin or end inside. */
Test(record_window_snapshot, stretch_of_an_asynchronous_inference_has_its_wait_on_another_thread)
{
	const struct snapshot_stretch stretches[] = { { 1, 1, 1200, 1300 }, { 1, 2, 1200, 1300 } };
	const struct snapshot_part part = { .stretches = stretches, .count = 2, .roles = roles };
	struct account account;
	struct small small;

	small_init(&small);
	small_evict(&small, 1000);
	enqueue(&small, 50, 1150, 1160);
	enqueue(&small, 51, 1200, 1210);
	enqueue(&small, 52, 1220, 1230);
	wait(&small, 50, 1170, 1250);
	wait(&small, 51, 1190, 1300); /* began before its stretch */
	wait(&small, 52, 1310, 1350);
	small_account(&small, &part, &account);
	cr_assert_eq(account.count, 1);
	cr_assert_eq(account.lines[0].what, 'a');
	cr_assert_eq(account.lines[0].start, 1200);
	cr_assert_eq(account.lines[0].end, 1300);
	small_free(&small, &account);
}

/* A stretch that ends early does not hide one around it, nor one that begins late the end of one before. */
Test(record_window_snapshot, stretches_may_overlap)
{
	const struct snapshot_stretch stretches[] = {
		{ 1, 1, 1100, 1400 }, { 1, 1, 1110, 1120 }, { 1, 2, 1100, 1300 }, { 1, 2, 1290, 1500 }
	};
	const struct snapshot_part part = { .stretches = stretches, .count = 4, .roles = roles };
	struct account account;
	struct small small;

	small_init(&small);
	small_evict(&small, 1000);
	execute(&small, 1, 5, 1110, 1120);
	execute(&small, 1, 5, 1130, 1140); /* lies in the first one only */
	execute(&small, 1, 5, 1150, 1401);
	enqueue(&small, 51, 1100, 1105);
	wait(&small, 51, 1090, 1300); /* ends the third one */
	small_account(&small, &part, &account);
	cr_assert_eq(account.count, 3);
	cr_assert_eq(account.lines[0].start, 1110);
	cr_assert_eq(account.lines[1].start, 1130);
	cr_assert_eq(account.lines[2].what, 'a');
	small_free(&small, &account);
}

Test(record_window_snapshot, load_that_began_before_has_reported_the_name)
{
	const struct snapshot_part all = { .roles = roles };
	struct follower follower;
	struct snapshot *snapshot;
	struct account account;
	const __u64 loaded[] = { 5, 4096 };

	stream_roles(roles);
	follower_init(&follower, &(struct window_options){ .bytes = WINDOW_BYTES_MIN, .span = 100000 }, 1);
	stream_string(&follower.stream.bytes, 1, 1, STREAM_LOAD, 0, 900, "slow");
	while (follower_step(&follower))
		;
	window_expire(follower.window, 200000);
	stream_call(&follower.stream.bytes, 1, 1, STREAM_LOAD, 900, 1100, 0, loaded, 2);
	stream_call(&follower.stream.bytes, 1, 1, STREAM_EXECUTE, 1200, 1300, 0, loaded, 1);
	stream_pass(&follower.stream.bytes, 1400);
	stream_pass(&follower.stream.bytes, 1500);
	while (follower_step(&follower))
		;
	snapshot = follower_snapshot(&follower);
	cr_assert_eq(snapshot_begin(snapshot), 901);
	account_init(&account);
	cr_assert_eq(snapshot_each(snapshot, &all, account_feed, &account), 0);
	account_finish(&account);
	cr_assert_eq(account.count, 1);
	cr_assert_eq(strncmp(account.lines[0].text, "slow ", 5), 0, "%s", account.lines[0].text);
	account_free(&account);
	snapshot_free(snapshot);
	follower_free(&follower);
}

static int stop_at_call(void *context, const struct xpt_record_header *record)
{
	++*(unsigned int *)context;
	return record->kind == XPT_RECORD_CALL ? 17 : 0;
}

Test(record_window_snapshot, what_the_visitor_returns_ends_the_walk)
{
	struct snapshot *snapshot;
	unsigned int visited = 0;
	struct account none;
	struct small small;

	small_init(&small);
	small_evict(&small, 1000);
	execute(&small, 1, 5, 1010, 1020);
	execute(&small, 1, 5, 1030, 1040);
	small_add(&small);
	cr_assert_eq(window_snapshot(small.window, &snapshot), 0);
	cr_assert_eq(snapshot_each(snapshot, &(struct snapshot_part){ .roles = roles }, stop_at_call, &visited), 17);
	cr_assert_eq(visited, 1 + STREAM_SPECS + 1); /* what was reported before, and the first call */
	snapshot_free(snapshot);
	account_init(&none);
	small_free(&small, &none);
}

static int note_budget(void *context, const struct xpt_record_header *record)
{
	const struct xpt_record_text *text = (const void *)record;

	if (record->kind != XPT_RECORD_BUDGET)
		return 0;
	text_bytes(context, text->text, text->length);
	text_string(context, record->time <= 1000 ? " before " : " in it ");
	return 0;
}

/* What was in force when it begins, then the changes in it; of functions only those of the process. */
Test(record_window_snapshot, changes_that_keep_the_budget)
{
	const struct snapshot_part part = { .roles = roles, .tgid = 1 };
	struct snapshot *snapshot;
	struct text changes = {};
	struct small small;

	small_init(&small);
	stream_text(&small.bytes, XPT_RECORD_BUDGET, 2, 100, 0, "{\"action\":\"sampling\",\"every\":4}");
	stream_text(&small.bytes, XPT_RECORD_BUDGET, 2, 200, 0, "{\"action\":\"sampling\",\"every\":8}");
	stream_text(&small.bytes, XPT_RECORD_BUDGET, 1, 300, 0,
		    "{\"action\":\"site\",\"on\":false,\"function\":\"f\"}");
	stream_text(&small.bytes, XPT_RECORD_BUDGET, 1, 400, 0, "{\"action\":\"site\",\"on\":true,\"function\":\"f\"}");
	small_evict(&small, 1000);
	stream_text(&small.bytes, XPT_RECORD_BUDGET, 2, 1100, 0, "{\"action\":\"sampling\",\"every\":1}");
	stream_text(&small.bytes, XPT_RECORD_BUDGET, 1, 1200, 0,
		    "{\"action\":\"site\",\"on\":false,\"function\":\"g\"}");
	stream_text(&small.bytes, XPT_RECORD_BUDGET, 2, 1300, 0,
		    "{\"action\":\"site\",\"on\":false,\"function\":\"g\"}");
	small_add(&small);
	cr_assert_eq(window_snapshot(small.window, &snapshot), 0);
	cr_assert_eq(snapshot_each(snapshot, &part, note_budget, &changes), 0);
	text_bytes(&changes, "", 1);
	cr_assert_str_eq(changes.data, "{\"action\":\"sampling\",\"every\":8} before "
				       "{\"action\":\"sampling\",\"every\":1} in it "
				       "{\"action\":\"site\",\"on\":false,\"function\":\"g\"} in it ");
	snapshot_free(snapshot);
	text_free(&changes);
	text_free(&small.bytes);
	window_free(small.window);
}
