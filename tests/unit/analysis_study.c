/* SPDX-License-Identifier: BSD-2-Clause */
/* Studies of recordings made by hand, against what is computed here. */
#include "analysis_made.h"

#include <errno.h>
#include <math.h>

#include "model/stats/statistics.h"

TestSuite(analysis_study);

#define TGID 100
#define PROGRAM 1

static int compare_durations(const void *left, const void *right)
{
	const __u64 a = *(const __u64 *)left, b = *(const __u64 *)right;

	return a < b ? -1 : a > b;
}

static double mean_of(const __u64 *values, size_t from, size_t to)
{
	double sum = 0;

	for (size_t i = from; i < to; i++)
		sum += (double)values[i];
	return sum / (double)(to - from);
}

/* count inferences one after the other; their durations, sorted. */
static __u64 *make_many(struct text *records, size_t count, unsigned int seed)
{
	__u64 *durations = malloc(count * sizeof(*durations)), at = 2000;

	srandom(seed);
	stream_describe(records);
	made_name(records, TGID, PROGRAM, "ranker");
	for (size_t i = 0; i < count; i++) {
		durations[i] = 1000 + (__u64)random() % 100000 + (random() % 50 ? 0 : (__u64)random() % 10000000);
		made_execute(records, TGID, TGID, PROGRAM, at, durations[i]);
		at += durations[i] + 100;
		if (i % 1000 == 999)
			stream_pass(records, at - 50);
	}
	qsort(durations, count, sizeof(*durations), compare_durations);
	return durations;
}

static double weights(const struct study_program *program)
{
	double sum = 0;

	for (size_t i = 0; i < program->sample_count; i++)
		sum += program->samples[i].weight;
	return sum;
}

Test(analysis_study, cohorts)
{
	struct text records = {};
	__u64 *durations = make_many(&records, 1000, 1);
	char *path = made_file(&records, 1ull << 50, 0);
	struct study *study = study_of(path);
	const struct study_program *program = &study->programs[0];

	cr_assert(study->program_count == 1 && study->complete && !study->has_states);
	cr_assert_str_eq(program->name, "ranker");
	cr_assert_eq(program->recorded, 1000);
	cr_assert_eq(statistics_count(program->duration), 1000);
	cr_assert_eq(program->slow.count, 10);
	cr_assert_eq(program->slow.least, durations[990]);
	cr_assert_eq(program->slow.most, durations[999]);
	cr_assert_float_eq(program->slow.mean.duration, mean_of(durations, 990, 1000), 1);
	cr_assert_eq(program->typical.least, durations[400]);
	cr_assert_eq(program->typical.most, durations[599]);
	cr_assert_eq(program->typical.count, 200);
	cr_assert_float_eq(program->typical.mean.duration, mean_of(durations, 400, 600), 1);
	cr_assert_float_eq(program->all.mean.duration, mean_of(durations, 0, 1000), 1);
	cr_assert_float_eq(program->slow.mean.component[COMPONENT_UNKNOWN], program->slow.mean.duration, 1);
	cr_assert_eq(program->sample_count, 1000);
	cr_assert_float_eq(weights(program), 1000, 0.01);
	for (size_t i = 1; i < 1000; i++)
		cr_assert_gt(program->samples[i].start, program->samples[i - 1].start);
	cr_assert_eq(program->slowest_count, STUDY_SLOWEST_KEPT);
	for (size_t i = 0; i < STUDY_SLOWEST_KEPT; i++) {
		cr_assert_eq(program->slowest[i].sample.duration, durations[999 - i], "%zu", i);
		cr_assert_eq(program->slowest[i].call_count, 1);
	}
	cr_assert_eq(program->middle_count, STUDY_TYPICAL_KEPT);
	for (size_t i = 0; i < STUDY_TYPICAL_KEPT; i++)
		cr_assert(program->middle[i].sample.duration >= durations[497] &&
			  program->middle[i].sample.duration <= durations[503]);
	study_free(study);
	free(durations);
	made_remove(path);
}

/* More than there is room for: what is drawn stands for all, and is the same each time. */
Test(analysis_study, many)
{
	const size_t count = 150000;
	struct text records = {};
	__u64 *durations = make_many(&records, count, 2);
	char *path = made_file(&records, 1ull << 50, 0);
	struct study *study = study_of(path), *again = study_of(path);
	const struct study_program *program = &study->programs[0];
	double sum = 0, drawn = 0, slow = 0;
	__u64 history = 0;

	cr_assert_eq(program->recorded, count);
	cr_assert(program->sample_count < STUDY_SAMPLES_MAX + count / 50 &&
		  program->sample_count > STUDY_SAMPLES_MAX / 3);
	cr_assert_float_eq(weights(program), (double)count, (double)count * 1e-5);
	for (size_t i = 0; i < program->sample_count; i++) {
		sum += program->samples[i].weight * (double)program->samples[i].duration;
		drawn += study_has(&program->samples[i], STUDY_DRAWN);
		slow += study_has(&program->samples[i], STUDY_SLOW);
	}
	/* Slow ones are all there, so little else deviates. */
	cr_assert_float_eq(sum / (double)count, mean_of(durations, 0, count), 0.01 * mean_of(durations, 0, count));
	cr_assert_float_eq(drawn, (double)count / 4, 6 * sqrt((double)count / 4));
	cr_assert_eq((__u64)slow, program->slow.count);
	cr_assert_float_eq((double)program->slow.count, (double)count / 100, (double)count / 1000);
	cr_assert_float_eq((double)program->typical.count, (double)count / 5, (double)count / 50);
	cr_assert_eq(program->all.count, count);
	cr_assert_eq(again->programs[0].sample_count, program->sample_count);
	cr_assert_arr_eq(again->programs[0].samples, program->samples,
			 program->sample_count * sizeof(*program->samples));
	for (size_t i = 0; i < (size_t)study->bins * program->history->rows; i++)
		history += program->history->counts[i];
	cr_assert_eq(history, count);
	study_free(study);
	study_free(again);
	free(durations);
	made_remove(path);
}

/* ---- what lies in inferences ---- */

/* The time that a thread waits for a CPU is twice in states and slices; operators 1 and 3 lie apart, 2 lies in 1. */
static __u64 make_inference(struct text *records, __u64 at, __u64 waited, bool futex)
{
	const __u64 program = PROGRAM, futex_time = futex ? 50000 : 0;
	const __u64 first = at + 100, third = first + 30000 + waited, duration = 41000 + waited + futex_time;

	if (waited)
		made_off_cpu(records, TGID, TGID, XPT_OFF_CPU_PREEMPTED, first + 6000, first + 6000,
			     first + 6000 + waited, "ffmpeg");
	made_operator(records, TGID, TGID, 0x20, at, first + 5000, 10000 + waited, 2, waited);
	made_operator(records, TGID, TGID, 0x10, at, first, 20000 + waited, 1, waited);
	made_operator(records, TGID, TGID, 0x30, at, third, 10000, 1, 0);
	if (futex)
		made_off_cpu(records, TGID, TGID, XPT_OFF_CPU_FUTEX, third + 10100, third + 10100 + futex_time,
			     third + 10100 + futex_time, "holder");
	made_states(records, TGID, TGID, STREAM_EXECUTE, at, duration, 0, &program, 1,
		    (struct xpt_task_state){ .off_cpu = waited + futex_time,
					     .waited = waited,
					     .involuntary = waited != 0,
					     .voluntary = futex,
					     .minor = 3 });
	return at + duration + 100;
}

static const struct study_operator *operator_of(const struct study_program *program, size_t number)
{
	char label[32];

	snprintf(label, sizeof(label), "operator#%zu", number);
	for (size_t i = 0; i < program->operator_count; i++) {
		if (!strcmp(program->operators[i].label, label))
			return &program->operators[i];
	}
	cr_assert_fail("no %s", label);
	return NULL;
}

static void check_partitions(const struct study_measures *mean)
{
	double sum = 0;

	for (size_t i = 0; i < STUDY_COMPONENTS; i++)
		sum += mean->component[i];
	cr_assert_float_eq(sum, mean->duration, 1);
	cr_assert_float_eq(mean->operators + mean->outside, mean->duration, 1);
}

Test(analysis_study, inside)
{
	struct text records = {};
	struct study *study;
	const struct study_program *program;
	const struct study_detail *detail;
	__u64 at = 2000;
	char *path;

	stream_describe(&records);
	made_name(&records, TGID, PROGRAM, "ranker");
	for (size_t i = 0; i < 200; i++)
		at = make_inference(&records, at, i == 100 ? 900000 : 0, i == 60);
	path = made_file(&records, at, 0);
	study = study_of(path);
	program = &study->programs[0];
	cr_assert(study->has_states && study->has_reasons && study->has_operators);
	cr_assert_eq(program->slow.count, 2);
	check_partitions(&program->typical.mean);
	check_partitions(&program->slow.mean);
	check_partitions(&program->all.mean);
	cr_assert_float_eq(program->slow.mean.component[COMPONENT_WAITED], 450000, 1);
	cr_assert_float_eq(program->slow.mean.component[COMPONENT_FUTEX], 25000, 1);
	cr_assert_float_eq(program->slow.mean.component[COMPONENT_CPU], 41000, 1);
	cr_assert_float_eq(program->typical.mean.component[COMPONENT_CPU], 41000, 1);
	cr_assert_float_eq(program->slow.mean.minor_faults, 3, 1e-9);
	cr_assert_eq(program->typical.party_count, 0);
	cr_assert_eq(program->slow.party_count, 2);
	cr_assert(program->slow.parties[0].reason == XPT_OFF_CPU_PREEMPTED && program->slow.parties[0].time == 900000 &&
		  program->slow.parties[0].times == 1 && program->slow.parties[0].tgid == 77);
	cr_assert_str_eq(program->slow.parties[0].name, "ffmpeg");
	cr_assert_str_eq(program->slow.parties[1].name, "holder");
	/* Self times: 10000 of the outer one, where the inner one waits. */
	cr_assert_eq(program->operator_count, 3);
	cr_assert_float_eq(operator_of(program, 1)->slow.self, 10000 + 450000, 1);
	cr_assert_float_eq(operator_of(program, 1)->slow.waited, 450000, 1);
	cr_assert_float_eq(operator_of(program, 1)->typical.self, 10000, 1);
	cr_assert_float_eq(operator_of(program, 2)->slow.self, 10000, 1);
	cr_assert_float_eq(operator_of(program, 3)->typical.cpu, 10000, 1);
	cr_assert_eq(operator_of(program, 2)->count, 200);
	cr_assert_float_eq(program->typical.mean.outside, 11000, 1);
	cr_assert_float_eq(program->typical.mean.outside_cpu, 11000, 1);
	/* Vectors: of each drawn inference, which are all. */
	cr_assert_eq(program->vector_count, 200);
	for (size_t i = 0; i < 200; i++) {
		float sum = 0;

		for (size_t j = 0; j < 3; j++)
			sum += program->vectors[i * 3 + j];
		cr_assert_float_eq(sum, (double)program->samples[program->vector_samples[i]].operators, 1);
	}
	detail = &program->slowest[0];
	cr_assert_eq(detail->sample.duration, 941000);
	cr_assert(detail->node_count == 3 && detail->slice_count == 1 && detail->call_count == 1 && !detail->cut);
	cr_assert(detail->nodes[0].depth == 0 && detail->nodes[1].depth == 1 && detail->nodes[2].depth == 0);
	cr_assert_eq(detail->nodes[0].self, 10000);
	cr_assert_eq(detail->nodes[1].self, 910000);
	cr_assert_str_eq(program->operators[detail->nodes[2].operator].label, "operator#3");
	cr_assert_str_eq(detail->slices[0].next, "ffmpeg");
	study_free(study);
	made_remove(path);
}

/* Of an asynchronous inference only its calls are known; an operator on another thread is in no partition. */
Test(analysis_study, apart)
{
	struct text records = {};
	struct study *study;
	const struct study_program *program;
	char *path;

	stream_describe(&records);
	for (__u64 i = 0, at = 2000; i < 10; i++, at += 100000) {
		const __u64 values[] = { PROGRAM, 500 + i }, key = 500 + i, op[] = { 0x10, 0, PROGRAM, at };

		made_states(&records, TGID, TGID, STREAM_ENQUEUE, at, 1000, 0, values, 2, (struct xpt_task_state){});
		stream_call(&records, TGID, TGID + 1, STREAM_OPERATOR, at + 2000, at + 5000, 0, op, 4);
		made_states(&records, TGID, TGID, STREAM_WAIT, at + 50000, 2000, 0, &key, 1,
			    (struct xpt_task_state){ .off_cpu = 1500, .voluntary = 1 });
	}
	path = made_file(&records, 2000000, 0);
	study = study_of(path);
	program = &study->programs[0];
	cr_assert_eq(program->recorded, 10);
	cr_assert(study_has(&program->samples[0], STUDY_ASYNC));
	cr_assert_float_eq(program->all.mean.duration, 52000, 1);
	cr_assert_float_eq(program->all.mean.component[COMPONENT_CPU], 1500, 1);
	cr_assert_float_eq(program->all.mean.component[COMPONENT_BLOCKED], 1500, 1);
	cr_assert_float_eq(program->all.mean.component[COMPONENT_UNKNOWN], 49000, 1);
	for (size_t i = 0; i < program->operator_count; i++)
		cr_assert(program->operators[i].apart && program->operators[i].slow.self == 0);
	study_free(study);
	made_remove(path);
}

/* ---- several ---- */

static char *make_part(__u32 tgid, const char *name, __u64 duration, size_t count, __s64 shift)
{
	struct text records = {};

	stream_describe(&records);
	made_name(&records, tgid, PROGRAM, name);
	for (size_t i = 0; i < count; i++)
		made_execute(&records, tgid, tgid, PROGRAM, 2000 + (__u64)shift + i * 10000, duration + i);
	return made_file(&records, 2000 + (__u64)shift + count * 20000, shift);
}

Test(analysis_study, inputs)
{
	char *paths[] = { make_part(1, "a", 1000, 50, 0), make_part(2, "a", 3000, 50, 7000000),
			  make_part(2, "b", 9000, 50, 5000) };
	const struct study_options options = { .log = &test_log,
					       .inputs = (const char *const *)paths,
					       .input_count = 3 };
	struct study *study;

	cr_assert_eq(study_create(&options, &study), 0, "%s", messages);
	cr_assert(study->input_count == 3 && study->program_count == 2);
	cr_assert_str_eq(study->programs[0].name, "b");
	cr_assert_eq(study->programs[1].recorded, 100);
	cr_assert_eq(study->programs[1].process_count, 2);
	cr_assert_eq(statistics_min(study->programs[1].duration), 1000);
	cr_assert_eq(statistics_max(study->programs[1].duration), 3049);
	/* One clock: they were made at the same time of day. */
	cr_assert_eq(study->start, 2000);
	cr_assert_eq(study->programs[1].samples[0].start, 2000);
	cr_assert_eq(study->programs[1].samples[1].start, 2000);
	cr_assert_neq(study->programs[1].samples[0].input, study->programs[1].samples[1].input);
	cr_assert_eq(study->inputs[1].origin, study->inputs[0].origin);
	study_free(study);
	for (size_t i = 0; i < 3; i++)
		made_remove(paths[i]);
}

static int study_chosen(const char *path, struct study_options options, struct study **study)
{
	options.log = &test_log;
	options.inputs = &path;
	options.input_count = 1;
	*study = NULL;
	return study_create(&options, study);
}

Test(analysis_study, choice)
{
	char *path = make_part(1, "a", 1000, 50, 0), *cut = make_part(1, "a", 1000, 50, 0);
	const struct xpt_program_choice there = { .name = "a" }, missing = { .name = "c" };
	const pid_t one = 1, two = 2;
	struct study *study;

	cr_assert_eq(study_chosen(path, (struct study_options){ .programs = &there, .program_count = 1 }, &study), 0);
	cr_assert_eq(study->program_count, 1);
	study_free(study);
	cr_assert_eq(study_chosen(path, (struct study_options){ .programs = &missing, .program_count = 1 }, &study),
		     -ENOENT);
	cr_assert(strstr(messages, "program c is not in the recording"), "%s", messages);
	cr_assert_eq(study_chosen(path, (struct study_options){ .match = "^b" }, &study), -ENOENT);
	cr_assert_eq(study_chosen(path, (struct study_options){ .pids = &one, .pid_count = 1 }, &study), 0);
	cr_assert_eq(study->programs[0].recorded, 50);
	study_free(study);
	cr_assert_eq(study_chosen(path, (struct study_options){ .pids = &two, .pid_count = 1 }, &study), 0);
	cr_assert_eq(study->program_count, 0);
	study_free(study);
	/* The recording began at 1000; inferences begin at 2000, 12000... */
	cr_assert_eq(study_chosen(path, (struct study_options){ .from = 11000, .to = 31000 }, &study), 0);
	cr_assert_eq(study->programs[0].recorded, 2);
	cr_assert_eq(study->start, 12000);
	study_free(study);
	cr_assert_eq(truncate(cut, 3000), 0);
	cr_assert_eq(study_chosen(cut, (struct study_options){}, &study), 0);
	cr_assert(!study->complete);
	study_free(study);
	cr_assert_eq(study_chosen("/nowhere", (struct study_options){}, &study), -ENOENT);
	cr_assert_null(study);
	made_remove(path);
	made_remove(cut);
}

static void made_probe_wait(struct text *to, __u32 tid, __u64 start, __u64 end, size_t size)
{
	const struct xpt_record_waited record = {
		.header = { XPT_RECORD_WAITED, (__u16)size, TGID, end }, .start = start, .sites = 1, .tid = tid
	};

	text_bytes(to, &record, size);
}

/* Inferences of 10000 ns, in which the thread ran but for 2000 ns: that it waited in a probe is known, or not, of each. */
static struct study *study_of_probe_waits(__u32 tid, size_t size, bool reasons, char **path)
{
	const __u64 program = PROGRAM;
	struct text records = {};

	stream_describe(&records);
	made_name(&records, TGID, PROGRAM, "ranker");
	for (__u64 at = 10000; at < 50000; at += 20000) {
		/* It waits 6000 ns, and does not run in 1500 ns of them. */
		if (reasons)
			made_off_cpu(&records, TGID, TGID, XPT_OFF_CPU_PREEMPTED, at + 2000, at + 2000, at + 3500,
				     "collector");
		made_probe_wait(&records, tid, at + 1000, at + 7000, size);
		if (reasons)
			made_off_cpu(&records, TGID, TGID, XPT_OFF_CPU_PREEMPTED, at + 8000, at + 8000, at + 8500,
				     "other");
		made_states(&records, TGID, TGID, STREAM_EXECUTE, at, 10000, 0, &program, 1,
			    (struct xpt_task_state){ .off_cpu = 2000, .waited = 2000, .involuntary = 2 });
	}
	*path = made_file(&records, 100000, 0);
	return study_of(*path);
}

static void check_probe_waits(__u32 tid, size_t size, bool reasons, double cpu, double waited, double probes)
{
	char *path;
	struct study *study = study_of_probe_waits(tid, size, reasons, &path);
	const struct study_measures *mean = &study->programs[0].typical.mean;

	cr_expect_float_eq(mean->component[COMPONENT_CPU], cpu, 1e-6, "%f", mean->component[COMPONENT_CPU]);
	cr_expect_float_eq(mean->component[COMPONENT_WAITED], waited, 1e-6, "%f", mean->component[COMPONENT_WAITED]);
	cr_expect_float_eq(mean->component[COMPONENT_UNKNOWN], probes, 1e-6, "%f", mean->component[COMPONENT_UNKNOWN]);
	cr_expect_float_eq(mean->probes, probes, 1e-6, "%f", mean->probes);
	study_free(study);
	made_remove(path);
}

/* What a thread does in a probe, until others are placed, is not what its program does. */
Test(analysis_study, waits_for_probes)
{
	check_probe_waits(TGID, sizeof(struct xpt_record_waited), true, 3500, 500, 6000);
	check_probe_waits(TGID, sizeof(struct xpt_record_waited), false, 2000, 2000, 6000);
	/* Another thread, and a record that does not say which one. */
	check_probe_waits(TGID + 1, sizeof(struct xpt_record_waited), true, 8000, 2000, 0);
	check_probe_waits(TGID, offsetof(struct xpt_record_waited, tid), true, 8000, 2000, 0);
}

Test(analysis_study, one_inference)
{
	char *path = make_part(1, "a", 1000, 1, 0);
	struct study *study = study_of(path);
	const struct study_program *program = &study->programs[0];

	cr_assert(program->typical.count == 1 && program->slow.count == 1);
	cr_assert(program->slowest_count == 1 && program->middle_count == 0);
	study_free(study);
	made_remove(path);
}
