/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/trigger/inference_index.h"

#define HAS_CORE (1u << XPT_MEANING_CORE)

struct fixture {
	struct inference_index *recent;
	struct event_sink sink;
	struct model_process processes[2];
	struct model_program programs[4];
	struct model_function execute, enqueue;
	struct inference_stretches found;
};

static struct fixture f;

/* Programs 0 and 1 are of process 10, the others of 20; 1 and 2 have the same name. */
static void begin(void)
{
	static const char *const names[] = { "one", "same", "same", "other" };

	f = (struct fixture){ .execute.role = XPT_ROLE_EXECUTE, .enqueue.role = XPT_ROLE_ENQUEUE };
	cr_assert_eq(inference_index_create(&f.recent), 0);
	f.sink = inference_index_sink(f.recent);
	f.processes[0].tgid = 10;
	f.processes[1].tgid = 20;
	for (unsigned int i = 0; i < 4; i++)
		f.programs[i] = (struct model_program){
			.id = i + 1, .process = &f.processes[i / 2], .handle = 0x100 + i, .name = names[i]
		};
}

static void end(void)
{
	free(f.found.stretches);
	inference_index_free(f.recent);
}

TestSuite(profile_trigger_inference_index, .init = begin, .fini = end);

static void give(const struct event *event)
{
	cr_assert_eq(f.sink.write(f.sink.context, event), 0);
}

static void execute_as(enum xpt_role role, bool layer, int program, __u32 tid, __u64 start, __u64 ends, __s64 core)
{
	f.execute.role = role;
	give(&(struct event){ .kind = EVENT_CALL,
			      .call = { .function = &f.execute,
					.program = program < 0 ? NULL : &f.programs[program],
					.start = start,
					.end = ends,
					.tid = tid,
					.layer = layer,
					.have = core >= 0 ? HAS_CORE : 0,
					.core = core } });
}

static void execute(int program, __u32 tid, __u64 start, __u64 ends, __s64 core)
{
	execute_as(XPT_ROLE_EXECUTE, false, program, tid, start, ends, core);
}

static void infer(int program, __u32 tid, __u32 wait_tid, __u64 start, __u64 enqueued, __u64 ends)
{
	give(&(struct event){ .kind = EVENT_INFERENCE,
			      .inference = { .program = program < 0 ? NULL : &f.programs[program],
					     .function = &f.enqueue,
					     .start = start,
					     .end = ends,
					     .tid = tid,
					     .wait_tid = wait_tid,
					     .enqueued = enqueued } });
}

static int find(const struct inference_filter *filter, __u64 most)
{
	free(f.found.stretches);
	return inference_index_find(f.recent, filter, most, &f.found);
}

static __u64 found(const struct inference_filter *filter)
{
	return find(filter, ~0ull) ? 0 : f.found.inferences;
}

Test(profile_trigger_inference_index, nothing_is_found_in_nothing)
{
	struct inference_index_figures figures;

	cr_assert_eq(find(&(struct inference_filter){}, 1), -ENOENT);
	cr_assert_null(f.found.stretches);
	cr_assert_eq(find(&(struct inference_filter){}, ~0ull), -ENOENT);
	inference_index_begin(f.recent, 1000);
	inference_index_figures(f.recent, &figures);
	cr_assert_eq(figures.inferences, 0);
	cr_assert_eq(figures.evicted, 0);
	inference_index_free(NULL);
}

Test(profile_trigger_inference_index, latest_ones_are_found_in_order_of_thread)
{
	execute(0, 7, 100, 110, 1);
	execute(0, 5, 120, 130, 1);
	execute(0, 7, 140, 150, 1);
	cr_assert_eq(find(&(struct inference_filter){}, 1), 0);
	cr_assert_eq(f.found.count, 1);
	cr_assert_eq(f.found.begin, 140);
	cr_assert_eq(f.found.stretches[0].tid, 7);
	cr_assert_eq(f.found.stretches[0].end, 150);
	cr_assert_eq(find(&(struct inference_filter){}, ~0ull), 0);
	cr_assert_eq(f.found.count, 3);
	cr_assert_eq(f.found.begin, 100);
	cr_assert_eq(f.found.stretches[0].tid, 5);
	cr_assert_eq(f.found.stretches[1].begin, 100);
	cr_assert_eq(f.found.stretches[2].begin, 140);
}

Test(profile_trigger_inference_index, filters_hold_together)
{
	execute(0, 1, 100, 110, 0);
	execute(1, 1, 200, 210, 1);
	execute(2, 2, 300, 310, 1);
	execute(3, 2, 400, 410, -1);
	cr_assert_eq(found(&(struct inference_filter){}), 4);
	cr_assert_eq(found(&(struct inference_filter){ .tgid = 10 }), 2);
	cr_assert_eq(found(&(struct inference_filter){ .tgid = 11 }), 0);
	cr_assert_eq(found(&(struct inference_filter){ .program = "same" }), 2);
	cr_assert_eq(found(&(struct inference_filter){ .program = "sam" }), 0);
	cr_assert_eq(found(&(struct inference_filter){ .program = "same", .tgid = 20 }), 1);
	cr_assert_eq(f.found.begin, 300);
	cr_assert_eq(found(&(struct inference_filter){ .handle = 0x103 }), 1);
	cr_assert_eq(found(&(struct inference_filter){ .handle = 0x103, .program = "same" }), 0);
	cr_assert_eq(found(&(struct inference_filter){ .has_core = true }), 1, "core 0 is not: no core");
	cr_assert_eq(found(&(struct inference_filter){ .has_core = true, .core = 1 }), 2);
	cr_assert_eq(found(&(struct inference_filter){ .has_core = true, .core = 1 + (1ll << 32) }), 0);
	cr_assert_eq(found(&(struct inference_filter){ .since = 200 }), 3);
	cr_assert_eq(found(&(struct inference_filter){ .since = 401 }), 0);
}

Test(profile_trigger_inference_index, other_calls_are_no_inferences)
{
	execute_as(XPT_ROLE_LOADER, false, 0, 1, 100, 110, -1);
	execute_as(XPT_ROLE_ENQUEUE, false, 0, 1, 100, 110, -1);
	execute_as(XPT_ROLE_EXECUTE, true, 0, 1, 100, 110, -1);
	execute(-1, 1, 100, 110, -1);
	infer(-1, 1, 1, 100, 105, 110);
	cr_assert_eq(found(&(struct inference_filter){}), 0);
	execute_as(XPT_ROLE_LAUNCH, false, 0, 1, 100, 110, -1);
	cr_assert_eq(found(&(struct inference_filter){}), 1);
}

Test(profile_trigger_inference_index, one_that_is_waited_for_has_two_stretches)
{
	infer(0, 7, 5, 100, 103, 150);
	cr_assert_eq(find(&(struct inference_filter){}, 1), 0);
	cr_assert_eq(f.found.inferences, 1);
	cr_assert_eq(f.found.count, 2);
	cr_assert_eq(f.found.stretches[0].tid, 5);
	cr_assert_eq(f.found.stretches[0].begin, 150);
	cr_assert_eq(f.found.stretches[0].end, 150);
	cr_assert_eq(f.found.stretches[1].tid, 7);
	cr_assert_eq(f.found.stretches[1].begin, 100);
	cr_assert_eq(f.found.stretches[1].end, 103);
}

Test(profile_trigger_inference_index, an_enqueue_that_took_longer_than_can_be_kept_reaches_the_end)
{
	infer(0, 7, 5, 100, 100 + (1ull << 40), 200 + (1ull << 40));
	cr_assert_eq(find(&(struct inference_filter){}, 1), 0);
	cr_assert_eq(f.found.stretches[1].end, 200 + (1ull << 40));
}

Test(profile_trigger_inference_index, what_began_before_the_window_is_not_meant)
{
	struct inference_index_figures figures;

	execute(0, 1, 100, 200, -1);
	execute(0, 2, 150, 250, -1);
	execute(1, 1, 300, 400, -1);
	inference_index_begin(f.recent, 150);
	cr_assert_eq(found(&(struct inference_filter){}), 2, "the first one began earlier");
	inference_index_begin(f.recent, 251);
	inference_index_figures(f.recent, &figures);
	cr_assert_eq(figures.inferences, 1);
	cr_assert_eq(figures.evicted, 2);
	cr_assert_eq(found(&(struct inference_filter){}), 1);
	inference_index_begin(f.recent, 1000);
	cr_assert_eq(found(&(struct inference_filter){}), 0);
}

Test(profile_trigger_inference_index, a_program_is_called_as_it_is_called_now)
{
	execute(0, 1, 100, 110, -1);
	f.programs[0].name = "a much longer name than before";
	give(&(struct event){ .kind = EVENT_PROGRAM, .program = { .program = &f.programs[0] } });
	give(&(struct event){ .kind = EVENT_PROGRAM, .program = { .program = &f.programs[3] } });
	cr_assert_eq(found(&(struct inference_filter){ .program = "one" }), 0);
	cr_assert_eq(found(&(struct inference_filter){ .program = "a much longer name than before" }), 1);
}

Test(profile_trigger_inference_index, memory_follows_what_is_kept)
{
	struct inference_index_figures few, many, none;
	char name[1000];

	execute(0, 1, 1, 2, 3);
	inference_index_figures(f.recent, &few);
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	f.programs[1].name = name;
	for (__u64 i = 0; i < 100000; i++) {
		f.programs[1].id = 100 + i; /* a new one each time */
		execute(1, 1, 10 + i, 11 + i, 3);
		if (i >= 500)
			inference_index_begin(f.recent, 10 + i - 500);
	}
	inference_index_figures(f.recent, &many);
	cr_assert_eq(many.inferences + many.evicted, 100001);
	cr_assert_leq(many.inferences, 502);
	cr_assert_lt(many.bytes, few.bytes + 502 * 1200, "%llu bytes", (unsigned long long)many.bytes);
	cr_assert_eq(find(&(struct inference_filter){ .has_core = true, .core = 3 }, 300), 0);
	cr_assert_eq(f.found.begin, 10 + 100000 - 300);
	inference_index_begin(f.recent, ~0ull);
	inference_index_figures(f.recent, &none);
	cr_assert_lt(none.bytes, many.bytes);
	cr_assert_leq(none.bytes, few.bytes);
}

Test(profile_trigger_inference_index, the_ring_grows_wherever_it_begins)
{
	for (__u64 i = 0; i < 700; i++)
		execute(0, 1, i, i + 1, 0);
	inference_index_begin(f.recent, 600);
	for (__u64 i = 700; i < 5000; i++)
		execute(0, 1, i, i + 1, 0);
	cr_assert_eq(find(&(struct inference_filter){}, ~0ull), 0);
	cr_assert_eq(f.found.inferences, 4400);
	for (__u64 i = 0; i < 4400; i++)
		cr_assert_eq(f.found.stretches[i].begin, 600 + i);
}

struct reported {
	__u64 begins[8];
	size_t count;
	struct indexed_inference last;
};

static int note_inference(void *context, const struct indexed_inference *inference)
{
	struct reported *reported = context;

	reported->begins[reported->count++] = inference->stretch.begin;
	reported->last = *inference;
	return inference->stretch.begin == 1000 ? -EINTR : 0;
}

Test(profile_trigger_inference_index, each_is_visited_from_the_latest_on)
{
	struct reported reported = { .count = 0 };

	execute(0, 1, 10, 20, 3);
	execute(2, 2, 30, 40, -1);
	execute(1, 1, 50, 60, -1);
	cr_assert_eq(inference_index_each(f.recent, 0, note_inference, &reported), 0);
	cr_assert_eq(reported.count, 3);
	cr_assert(reported.begins[0] == 50 && reported.begins[1] == 30 && reported.begins[2] == 10);
	cr_assert(reported.last.has_core && reported.last.core == 3 && reported.last.end == 20 &&
		  reported.last.stretch.tgid == 10);
	reported.count = 0;
	cr_assert_eq(inference_index_each(f.recent, 20, note_inference, &reported), 0);
	cr_assert(reported.count == 1 && reported.begins[0] == 30 && !reported.last.has_core);
	execute(0, 1, 1000, 1010, 3);
	reported.count = 0;
	cr_assert_eq(inference_index_each(f.recent, 0, note_inference, &reported), -EINTR);
	cr_assert_eq(reported.count, 1);
}
