/* SPDX-License-Identifier: BSD-2-Clause */
#include "record_window.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>

static __u8 roles[XPT_SPEC_MAX];
static struct stream dice; /* what is looked at does not change what comes */

/* ---- the property: what is taken out reads as the whole stream does from there on ---- */

/* When the outermost call has ended that began on the thread before the time and ended later: all in between is a part of it. */
static __u64 *cut_ends(const struct follower *follower, __u64 from)
{
	const struct xpt_record_header *record;
	__u64 *ends = calloc(TIDS, sizeof(*ends));

	for (size_t at = 0; at < follower->at && (record = stream_next(&follower->stream, &at));) {
		const struct xpt_record_call *call = (const void *)record;

		if (record->kind == XPT_RECORD_CALL && call->start < from && record->time > ends[call->tid])
			ends[call->tid] = record->time;
	}
	return ends;
}

/* When the wait with this end began. */
static __u64 wait_begin(const struct follower *follower, __u64 end)
{
	const struct xpt_record_header *record;

	for (size_t at = 0; at < follower->at && (record = stream_next(&follower->stream, &at));) {
		if (record->kind == XPT_RECORD_CALL && record->time == end)
			return ((const struct xpt_record_call *)record)->start;
	}
	cr_assert_fail("nothing ends at %llu", end);
	return 0;
}

static bool in_stretches(const struct snapshot_part *part, const struct line *line)
{
	if (!part->count)
		return true;
	for (size_t i = 0; i < part->count; i++) {
		const struct snapshot_stretch *stretch = &part->stretches[i];

		if (line->what == 'o' ?
			    line->tgid == stretch->tgid && line->inference == stretch->begin :
			    line->tid == stretch->tid && line->start >= stretch->begin && line->end <= stretch->end)
			return true;
	}
	return false;
}

static bool expected(const struct follower *follower, const struct snapshot_part *part, __u64 from, const __u64 *ends,
		     const struct line *line)
{
	if (line->start < from || (line->what == 'o' && line->inference < from))
		return false;
	if (part->tgid && line->tgid != part->tgid)
		return false;
	if (line->what == 'c' || line->what == 'u')
		return true;
	if (line->what == 'a' && wait_begin(follower, line->end) < from)
		return false;
	return line->returned > ends[line->tid] && in_stretches(part, line);
}

/* How many lines there are. */
static size_t compare(const struct follower *follower, const struct account *whole, const struct snapshot *snapshot,
		      const struct snapshot_part *part)
{
	__u64 from = part->from > snapshot_begin(snapshot) ? part->from : snapshot_begin(snapshot);
	__u64 *ends = cut_ends(follower, from);
	struct account account;
	size_t i = 0;

	account_init(&account);
	cr_assert_eq(snapshot_each(snapshot, part, account_feed, &account), 0);
	account_finish(&account);
	for (size_t j = 0; j < whole->count; j++) {
		const struct line *line = &whole->lines[j], *found = &account.lines[i];

		if (!expected(follower, part, from, ends, line))
			continue;
		cr_assert_lt(i, account.count, "%c %llu to %llu %s is not there", line->what, line->start, line->end,
			     line->text);
		cr_assert(
			line->start == found->start && line->end == found->end && line->what == found->what &&
				line->tid == found->tid && !strcmp(line->text, found->text),
			"seed %llu, from %llu (begin %llu, tgid %u, %zu stretches): %c %u/%u %llu to %llu '%s', found %c %u/%u %llu to %llu '%s'",
			follower->seed, from, snapshot_begin(snapshot), part->tgid, part->count, line->what, line->tgid,
			line->tid, line->start, line->end, line->text, found->what, found->tgid, found->tid,
			found->start, found->end, found->text);
		i++;
	}
	cr_assert_eq(i, account.count, "%zu more than there should be: %c %llu to %llu", account.count - i,
		     account.lines[i].what, account.lines[i].start, account.lines[i].end);
	account_free(&account);
	free(ends);
	return i;
}

static int stretch_compare(const void *a, const void *b)
{
	const struct snapshot_stretch *left = a, *right = b;

	if (left->tid != right->tid)
		return left->tid < right->tid ? -1 : 1;
	return left->begin < right->begin ? -1 : left->begin > right->begin;
}

/* Some of the inferences of the whole. */
static size_t choose(const struct account *whole, __u64 from, struct snapshot_stretch *stretches, size_t most)
{
	size_t count = 0;

	for (size_t i = 0; i < whole->count && count < most; i++) {
		const struct line *line = &whole->lines[i];

		if (line->what == 'e' && line->start >= from && !stream_random(&dice, 20))
			stretches[count++] = (struct snapshot_stretch){ line->tgid, line->tid, line->start, line->end };
	}
	qsort(stretches, count, sizeof(*stretches), stretch_compare);
	return count;
}

static __u32 any_process(const struct stream *stream)
{
	return stream->processes[stream_random(&dice, STREAM_PROCESSES)].tgid;
}

/*
 * settled: the model has reported all of programs; before, a process that has just been forked may lack the names of its programs where
 * the other one is left out.
 */
static size_t look(struct follower *follower, bool settled)
{
	struct snapshot *snapshot = follower_snapshot(follower);
	__u64 begin = snapshot_begin(snapshot), some;
	struct snapshot_stretch stretches[32];
	const struct xpt_record_header *record;
	struct account whole;
	size_t count;

	account_init(&whole);
	for (size_t at = 0; at < follower->at && (record = stream_next(&follower->stream, &at));)
		account_feed(&whole, record);
	account_finish(&whole);
	/* What has been reported of programs is known as far as the model has gone. */
	some = model_delivered(follower->model) > begin ? model_delivered(follower->model) : begin;
	some = begin + (some - begin) / 100 * stream_random(&dice, 100);
	count = compare(follower, &whole, snapshot, &(struct snapshot_part){ .roles = roles });
	compare(follower, &whole, snapshot, &(struct snapshot_part){ .from = some, .roles = roles });
	if (!settled)
		goto out;
	compare(follower, &whole, snapshot,
		&(struct snapshot_part){ .from = some, .tgid = any_process(&follower->stream), .roles = roles });
	compare(follower, &whole, snapshot,
		&(struct snapshot_part){
			.stretches = stretches, .count = choose(&whole, begin, stretches, 32), .roles = roles });
out:
	account_free(&whole);
	snapshot_free(snapshot);
	return count;
}

static void property(__u64 seed, const struct window_options *options, unsigned int filler)
{
	struct window_figures figures;
	struct follower follower;
	size_t lines = 0;

	stream_roles(roles);
	dice.seed = seed;
	follower_init(&follower, options, seed);
	follower.stream.filler = filler;
	for (unsigned int i = 0; i < 1500; i++) {
		stream_round(&follower.stream, 10 + stream_random(&follower.stream, 30));
		while (follower_step(&follower))
			if (!stream_random(&dice, 4000))
				lines += look(&follower, false);
		if (i % 200 == 199) {
			stream_pass(&follower.stream.bytes, stream_tick(&follower.stream));
			stream_pass(&follower.stream.bytes, stream_tick(&follower.stream));
			while (follower_step(&follower))
				;
			lines += look(&follower, true);
		}
		window_expire(follower.window, follower.stream.now);
		window_figures(follower.window, &figures);
		cr_assert_eq(figures.records + figures.evicted + figures.lost, follower.records);
		cr_assert_eq(figures.unknown, 0);
		cr_assert_leq(figures.bytes, options->bytes + (128 << 10) + 64);
		if (options->span)
			cr_assert_leq(follower.stream.now - figures.begin, options->span + options->span / 4);
	}
	cr_assert_gt(figures.evicted, 2 * figures.records, "%llu records, %llu evicted", figures.records,
		     figures.evicted);
	cr_assert_gt(lines, 1000);
	follower_free(&follower);
}

Test(record_window, reads_as_the_whole_stream_from_its_begin_on, .timeout = 120)
{
	for (__u64 seed = 1; seed <= 4; seed++)
		property(seed, &(struct window_options){ .bytes = WINDOW_BYTES_MIN }, 8192);
}

Test(record_window, reads_so_where_it_is_bounded_in_time, .timeout = 120)
{
	const struct window_options options = { .bytes = 32 << 20, .span = 1000000, .begin = 1000000 };

	property(5, &options, 0);
	property(6, &options, 4096);
}

/* ---- bounds ---- */

Test(record_window, options_that_are_none)
{
	struct window *window;

	cr_assert_eq(window_create(&(struct window_options){ .bytes = WINDOW_BYTES_MIN - 1 }, &window), -EINVAL);
	cr_assert_eq(window_create(&(struct window_options){ .bytes = WINDOW_BYTES_MAX + 1 }, &window), -EINVAL);
	window_free(NULL);
}

Test(record_window, is_empty_at_first)
{
	struct window_figures figures;
	struct snapshot *snapshot;
	struct account account;
	struct window *window;

	cr_assert_eq(window_create(&(struct window_options){ .bytes = WINDOW_BYTES_MIN, .begin = 77 }, &window), 0);
	window_expire(window, 1000);
	window_figures(window, &figures);
	cr_assert_eq(figures.begin, 77);
	cr_assert_eq(figures.bytes + figures.records + figures.evicted + figures.lost, 0);
	cr_assert_eq(window_snapshot(window, &snapshot), 0);
	window_free(window);
	cr_assert_eq(snapshot_begin(snapshot), 77);
	account_init(&account);
	cr_assert_eq(snapshot_each(snapshot, &(struct snapshot_part){ .roles = roles }, account_feed, &account), 0);
	account_finish(&account);
	cr_assert_eq(account.count, 0);
	account_free(&account);
	snapshot_free(snapshot);
}

static size_t allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* One round, which is forgotten where the window and the model have it. */
static void go_on(struct follower *follower)
{
	stream_round(&follower->stream, 200);
	while (follower_step(follower))
		;
	follower->stream.bytes.length = follower->at = 0;
}

Test(record_window, memory_stays_as_it_is_however_long_it_goes_on, .timeout = 120)
{
	const struct window_options options = { .bytes = WINDOW_BYTES_MIN };
	struct window_figures figures;
	struct follower follower;
	size_t before = allocated(), most = 0;

	follower_init(&follower, &options, 7);
	model_free(follower.model); /* it has its own bounds */
	follower.model = NULL;
	follower.stream.filler = 8192;
	do {
		const struct xpt_record_header *record;

		stream_round(&follower.stream, 50);
		while ((record = stream_next(&follower.stream, &follower.at)))
			cr_assert_eq(window_add(follower.window, record), 0);
		follower.stream.bytes.length = follower.at = 0;
		window_figures(follower.window, &figures);
		cr_assert_leq(figures.bytes, options.bytes + (128 << 10) + 64);
		most = allocated() > most ? allocated() : most;
	} while (figures.evicted < 100 * figures.records || !figures.evicted);
	cr_assert_lt(most - before, options.bytes + options.bytes / 4, "%zu bytes", most - before);
	follower_free(&follower);
}

/* Names are the targets' to choose, and a process may never end. */
Test(record_window, what_is_kept_of_processes_is_bounded)
{
	struct text filler = {};
	struct window_figures figures;
	struct window *window;
	char bytes[8192] __attribute__((aligned(8))) = {};
	struct xpt_record_header *record = (void *)bytes;

	cr_assert_eq(window_create(&(struct window_options){ .bytes = WINDOW_BYTES_MIN }, &window), 0);
	stream_text(&filler, XPT_RECORD_PROCESS, 1, 1, 0, "{\"name\":\"p\"}");
	cr_assert_eq(window_add(window, (void *)filler.data), 0);
	for (__u64 i = 0; i < 100000; i++) {
		filler.length = 0;
		stream_region_name(&filler, 1, i, i, "a name that is long enough to be in the way of other things");
		cr_assert_eq(window_add(window, (void *)filler.data), 0);
		*record = (struct xpt_record_header){ XPT_RECORD_CALLER, 512, 1, i };
		cr_assert_eq(window_add(window, record), 0);
		window_figures(window, &figures);
		cr_assert_leq(figures.bytes, WINDOW_BYTES_MIN + (128 << 10) + 64);
	}
	cr_assert_gt(figures.records, 1000);
	cr_assert_gt(figures.unknown, 0);
	text_free(&filler);
	window_free(window);
}

/* ---- snapshots ---- */

static int hash_record(void *context, const struct xpt_record_header *record)
{
	__u64 *hash = context;

	for (size_t i = 0; i < record->size; i++)
		*hash = (*hash ^ ((const unsigned char *)record)[i]) * 0x100000001b3;
	return 0;
}

static __u64 snapshot_hash(const struct snapshot *snapshot)
{
	__u64 hash = 0xcbf29ce484222325;

	cr_assert_eq(snapshot_each(snapshot, &(struct snapshot_part){ .roles = roles }, hash_record, &hash), 0);
	return hash;
}

Test(record_window, snapshots_stay_as_they_are)
{
	struct snapshot *snapshots[20];
	struct follower follower;
	__u64 hashes[20];

	stream_roles(roles);
	follower_init(&follower, &(struct window_options){ .bytes = WINDOW_BYTES_MIN }, 8);
	follower.stream.filler = 8192;
	for (unsigned int i = 0; i < 20; i++) {
		for (unsigned int j = 0; j < 30; j++)
			go_on(&follower);
		snapshots[i] = follower_snapshot(&follower);
		hashes[i] = snapshot_hash(snapshots[i]);
		for (unsigned int j = 0; j < i; j++)
			cr_assert_eq(snapshot_hash(snapshots[j]), hashes[j]);
	}
	follower_free(&follower);
	for (unsigned int i = 0; i < 20; i++) {
		cr_assert_eq(snapshot_hash(snapshots[i]), hashes[i]);
		snapshot_free(snapshots[i]);
	}
}

Test(record_window, many_snapshots_leave_nothing_behind)
{
	struct follower follower;
	size_t before;

	stream_roles(roles);
	follower_init(&follower, &(struct window_options){ .bytes = WINDOW_BYTES_MIN }, 9);
	for (unsigned int i = 0; i < 50; i++)
		go_on(&follower);
	for (unsigned int i = 0; i < 100; i++) /* what the allocator keeps at hand */
		snapshot_free(follower_snapshot(&follower));
	before = allocated();
	for (unsigned int i = 0; i < 10000; i++)
		snapshot_free(follower_snapshot(&follower));
	cr_assert_leq(allocated(), before + 4096, "%zu bytes, %zu before", allocated(), before);
	follower_free(&follower);
}

struct reader {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct snapshot *snapshot; /* to be read; NULL: none */
	bool over;
	unsigned int read;
};

static void *reader_run(void *context)
{
	struct reader *reader = context;
	struct snapshot *snapshot;

	pthread_mutex_lock(&reader->mutex);
	for (;;) {
		while (!reader->snapshot && !reader->over)
			pthread_cond_wait(&reader->changed, &reader->mutex);
		snapshot = reader->snapshot;
		reader->snapshot = NULL;
		if (!snapshot)
			break;
		pthread_mutex_unlock(&reader->mutex);
		cr_assert_eq(snapshot_hash(snapshot), snapshot_hash(snapshot));
		snapshot_free(snapshot);
		pthread_mutex_lock(&reader->mutex);
		reader->read++;
	}
	pthread_mutex_unlock(&reader->mutex);
	return NULL;
}

Test(record_window, goes_on_while_another_thread_reads)
{
	struct reader reader = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, false, 0 };
	struct follower follower;
	pthread_t thread;

	stream_roles(roles);
	follower_init(&follower, &(struct window_options){ .bytes = WINDOW_BYTES_MIN }, 10);
	follower.stream.filler = 8192;
	cr_assert_eq(pthread_create(&thread, NULL, reader_run, &reader), 0);
	for (unsigned int i = 0; i < 2000; i++) {
		go_on(&follower);
		pthread_mutex_lock(&reader.mutex);
		if (!reader.snapshot)
			reader.snapshot = follower_snapshot(&follower);
		pthread_cond_signal(&reader.changed);
		pthread_mutex_unlock(&reader.mutex);
	}
	pthread_mutex_lock(&reader.mutex);
	reader.over = true;
	pthread_cond_signal(&reader.changed);
	pthread_mutex_unlock(&reader.mutex);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_gt(reader.read, 10);
	follower_free(&follower);
}
