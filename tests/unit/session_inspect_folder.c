/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/inspect/inspect.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CORES 4
#define THREADS 3
#define INFERENCES 400
#define RECORDS_MAX 8 /* of an inference */
#define TGID 10

/* What was made, to be compared with. */
struct made {
	__u64 begin, end;
	__u32 tid;
	int core; /* -1: none */
	unsigned int records;
	bool out; /* it should be */
};

static struct {
	struct inference_index *recent;
	struct model_process process;
	struct model_program programs[CORES + 1];
	struct model_function execute;
	__u8 roles[XPT_SPEC_MAX];
	struct inspect_settings settings;
	struct made made[INFERENCES];
} f;

enum { EXECUTE, OPERATOR, COPY };

static void begin(void)
{
	memset(&f, 0, sizeof(f));
	cr_assert_eq(inference_index_create(&f.recent), 0);
	inspect_settings_init(&f.settings);
	f.process.tgid = TGID;
	f.execute.role = XPT_ROLE_EXECUTE;
	f.roles[EXECUTE] = XPT_ROLE_EXECUTE;
	f.roles[OPERATOR] = XPT_ROLE_OPERATOR;
	f.roles[COPY] = XPT_ROLE_COPY;
	for (int i = 0; i <= CORES; i++)
		f.programs[i] = (struct model_program){ .id = i + 1,
							.process = &f.process,
							.handle = i,
							.name = "program",
							.has_core = i < CORES,
							.core = i };
}

static void end(void)
{
	inference_index_free(f.recent);
}

TestSuite(session_inspect_folder, .init = begin, .fini = end);

/* Inferences on several threads, one after the other on each; record i of one is 1 ns long, the last one is itself. */
static void make(unsigned int seed)
{
	__u64 time[THREADS] = { 1000, 1001, 1002 };
	struct event_sink sink = inference_index_sink(f.recent);

	srand(seed);
	for (int i = 0; i < INFERENCES; i++) {
		struct made *made = &f.made[i];
		int thread = i % THREADS;

		*made = (struct made){ .tid = 100 + thread, .core = rand() % (CORES + 1) - 1 };
		made->records = 1 + rand() % RECORDS_MAX;
		made->begin = time[thread];
		made->end = made->begin + 10 * RECORDS_MAX;
		time[thread] = made->end + THREADS;
		sink.write(sink.context,
			   &(struct event){ .kind = EVENT_CALL,
					    .call = { .function = &f.execute,
						      .program = &f.programs[made->core < 0 ? CORES : made->core],
						      .start = made->begin,
						      .end = made->end,
						      .tgid = TGID,
						      .tid = made->tid } });
	}
}

/* Operators are on a thread of their own: their inference is reported. */
static struct xpt_record_call *record_of(const struct made *made, unsigned int number)
{
	static union {
		struct xpt_record_call call;
		char room[sizeof(struct xpt_record_call) + 4 * sizeof(__u64)];
	} record;
	bool last = number + 1 == made->records;

	memset(&record, 0, sizeof(record));
	record.call.header = (struct xpt_record_header){ XPT_RECORD_CALL, sizeof(record), TGID,
							 last ? made->end : made->begin + 10 * number + 2 };
	record.call.start = last ? made->begin : made->begin + 10 * number + 1;
	record.call.spec = last ? EXECUTE : number % 2 ? OPERATOR : COPY;
	record.call.tid = record.call.spec == OPERATOR ? 999 : made->tid;
	record.call.valid = 0xf;
	record.call.values = 4;
	record.call.value[3] = made->begin;
	return &record.call;
}

/* The definition: from the last one of each core back, as long as there is room. */
static __u64 expect(__u64 most, const bool *wanted)
{
	__u64 events[CORES + 1] = { 0 }, left_out = 0;

	for (int i = INFERENCES; i-- > 0;) {
		struct made *made = &f.made[i];

		events[made->core + 1] += made->records;
		made->out = events[made->core + 1] > most || (made->core >= 0 && !wanted[made->core]);
		left_out += made->out;
	}
	return left_out;
}

static void check(__u64 most, const bool *wanted)
{
	const struct inspect_settings *settings = &f.settings;
	struct inspect_cores *cores;

	f.settings.max_events_per_core = most;
	for (int core = 0; core < CORES; core++)
		f.settings.cores[core / 8] = (f.settings.cores[core / 8] & ~(1u << core % 8)) | wanted[core]
													<< core % 8;
	cr_assert_eq(inspect_cores_create(f.recent, TGID, f.roles, settings, &cores), 0);
	for (int i = 0; i < INFERENCES; i++)
		for (unsigned int number = 0; number < f.made[i].records; number++)
			inspect_cores_count(cores, &record_of(&f.made[i], number)->header);
	cr_assert_eq(inspect_cores_choose(cores), expect(most, wanted));
	for (int i = 0; i < INFERENCES; i++)
		for (unsigned int number = 0; number < f.made[i].records; number++)
			cr_assert_eq(inspect_cores_wants(cores, &record_of(&f.made[i], number)->header), !f.made[i].out,
				     "inference %d, record %u", i, number);
	inspect_cores_free(cores);
}

Test(session_inspect_folder, as_many_events_of_each_core_as_it_may_have)
{
	const bool all[CORES] = { true, true, true, true }, some[CORES] = { true, false, false, true };
	static const __u64 most[] = { 1, 7, 50, 333, 1000000 };

	make(7);
	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		check(most[i], all);
		check(most[i], some);
	}
}

Test(session_inspect_folder, what_is_of_no_inference_is_written)
{
	const struct made outside = { .begin = 5, .end = 8, .tid = 100, .records = 1 };
	const struct made unknown = { .begin = 2000, .end = 2001, .tid = 77, .records = 1 };
	const struct xpt_record_header pass = { XPT_RECORD_PASS, sizeof(pass), 0, 1500 };
	struct inspect_cores *cores;

	make(8);
	memset(f.settings.cores, 0, sizeof(f.settings.cores));
	f.settings.other_cores = false;
	cr_assert_eq(inspect_cores_create(f.recent, TGID, f.roles, &f.settings, &cores), 0);
	inspect_cores_choose(cores);
	cr_assert(inspect_cores_wants(cores, &record_of(&outside, 0)->header));
	cr_assert(inspect_cores_wants(cores, &record_of(&unknown, 0)->header));
	cr_assert(inspect_cores_wants(cores, &pass));
	inspect_cores_free(cores);
}

Test(session_inspect_folder, none_of_another_process)
{
	struct inspect_cores *cores;

	make(9);
	cr_assert_eq(inspect_cores_create(f.recent, TGID + 1, f.roles, &f.settings, &cores), 0);
	cr_assert_eq(inspect_cores_choose(cores), 0);
	inspect_cores_free(cores);
}
