/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions on this machine, with what every kernel counts, against what the kernel says of the same process elsewhere. */
#include <xputrace/counters.h>

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/core/clock.h"
#include "tests/unit/counter_perf.h"

TestSuite(counter_counters, .init = open_all, .fini = close_all);

static const char *const faults[] = { "page-faults" };
static const char *const several[] = { "page-faults", "task-clock", "faults", "context-switches" };

/* Of the worker. */
static struct xpt_counters_options options_for(const char *const *names, size_t count)
{
	said[0] = '\0';
	return (struct xpt_counters_options){
		.size = sizeof(struct xpt_counters_options),
		.names = names,
		.name_count = count,
		.cpu_index = XPT_COUNTERS_ALL,
		.gpu_index = XPT_COUNTERS_ALL,
		.pid = worker.pid,
		.log = on_message,
		.log_level = XPT_LOG_WARN,
	};
}

static struct xpt_counters *must_open(const struct xpt_counters_options *options)
{
	struct xpt_counters *session = NULL;

	cr_assert_eq(xpt_counters_open(options, &session), 0, "%s", said);
	cr_assert_not_null(session);
	return session;
}

static struct xpt_counter_value poll_first(struct xpt_counters *session)
{
	struct xpt_counter_value values[8];

	cr_assert_eq(xpt_counters_poll(session, values, sizeof(*values)), 0);
	return values[0];
}

static int open_error(const struct xpt_counters_options *options)
{
	struct xpt_counters *session = (void *)1;
	int error = xpt_counters_open(options, &session);

	if (error)
		cr_expect_null(session);
	else
		xpt_counters_destroy(session);
	return error;
}

/* ---- values ---- */

Test(counter_counters, faults_against_getrusage)
{
	struct xpt_counters_options options = options_for(faults, 1);
	struct xpt_counters *session = must_open(&options);
	struct xpt_counter_value value;
	struct answer answer;
	double begin, end, within;
	uint64_t before;

	begin = worker_touch(&worker, 100).faults;
	value = poll_first(session);
	cr_expect_eq(value.value, 0);
	cr_expect_eq(value.enabled, 0);
	cr_assert_eq(xpt_counters_start(session), 0);
	answer = worker_touch(&worker, 1000);
	cr_assert_eq(xpt_counters_stop(session), 0);
	end = worker_touch(&worker, 100).faults_before;
	within = answer.faults - answer.faults_before;
	before = clock_monotonic();
	value = poll_first(session);
	cr_expect_geq(value.value, within, "%g counted, %g within", value.value, within);
	cr_expect_leq(value.value, end - begin, "%g counted, %g around", value.value, end - begin);
	cr_expect_geq(within, 1000);
	cr_expect_eq((double)value.raw, value.value);
	cr_expect_eq(value.flags, 0);
	cr_expect_gt(value.enabled, 0);
	cr_expect_eq(value.running, value.enabled);
	cr_expect(value.time >= before && value.time <= clock_monotonic());
	xpt_counters_destroy(session);
}

struct clocks {
	double counted, within, around; /* ns */
};

static struct clocks compare_clocks(void)
{
	static const char *const names[] = { "task-clock" };
	struct xpt_counters_options options = options_for(names, 1);
	struct xpt_counters *session = must_open(&options);
	double begin = worker_touch(&worker, 1).cpu;
	struct clocks clocks;
	struct answer answer;

	cr_assert_eq(xpt_counters_start(session), 0);
	answer = worker_do(&worker, (struct order){ .nanoseconds = 50e6 });
	clocks.counted = poll_first(session).value;
	clocks.within = answer.cpu - answer.cpu_before;
	clocks.around = worker_touch(&worker, 1).cpu_before - begin;
	cr_expect_str_eq(xpt_counters_info(session, 0)->unit, "ns");
	xpt_counters_destroy(session);
	return clocks;
}

/*
 * The clocks are two: that of the process leaves out what a hypervisor and interrupts took. That can only make them differ more:
 * the best of three counts.
 */
Test(counter_counters, task_clock_against_cpu_time)
{
	struct clocks best = compare_clocks();

	for (int i = 0; i < 2 && best.counted > best.around * 1.15; i++) {
		struct clocks clocks = compare_clocks();

		if (clocks.counted / clocks.around < best.counted / best.around)
			best = clocks;
	}
	cr_expect_geq(best.within, 50e6);
	cr_expect_geq(best.counted, best.within * 0.98, "%g ns counted, %g within", best.counted, best.within);
	cr_expect_leq(best.counted, best.around * 1.15, "%g ns counted, %g around", best.counted, best.around);
}

/* All of one reading: what stands in it twice is the same. */
Test(counter_counters, one_reading)
{
	struct xpt_counters_options options = options_for(several, 4);
	struct xpt_counters *session = must_open(&options);
	struct xpt_counter_value values[4], later[4];
	struct {
		struct xpt_counter_value known;
		uint64_t tail;
	} newer[4];

	cr_expect_eq(xpt_counters_count(session), 4);
	cr_assert_eq(xpt_counters_start(session), 0);
	worker_touch(&worker, 300);
	cr_assert_eq(xpt_counters_poll(session, values, sizeof(*values)), 0);
	cr_expect_eq(xpt_counters_spread(session), 0);
	cr_expect_geq(values[0].value, 300);
	cr_expect_eq(values[0].value, values[2].value);
	for (size_t i = 1; i < 4; i++) {
		cr_expect_eq(values[i].time, values[0].time);
		cr_expect_eq(values[i].enabled, values[0].enabled);
	}
	/* They go on, and a poll changes nothing. */
	worker_touch(&worker, 300);
	cr_assert_eq(xpt_counters_poll(session, later, 0), 0);
	cr_expect_geq(later[0].value, values[0].value + 300);
	cr_expect_geq(later[1].value, values[1].value);
	cr_expect_gt(later[0].time, values[0].time);
	memset(newer, 0xff, sizeof(newer));
	cr_assert_eq(xpt_counters_poll(session, &newer[0].known, sizeof(newer[0])), 0);
	cr_expect_geq(newer[3].known.time, later[3].time);
	cr_expect_eq(newer[3].tail, 0, "the library does not know it");
	xpt_counters_destroy(session);
}

/* Of CPUs, more than one read is needed, and the time between them is reported. */
Test(counter_counters, spread)
{
	struct xpt_counters_options options = options_for(faults, 1);
	struct xpt_counters *session;
	struct xpt_counter_value value;
	uint64_t before, took;
	int error;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		cr_skip_test("there is one CPU only");
	options.pid = 0;
	error = xpt_counters_open(&options, &session);
	if (error == -EACCES)
		cr_skip_test("system-wide counting is not permitted: root or CAP_PERFMON is needed");
	cr_assert_eq(error, 0, "%s", said);
	cr_assert_eq(xpt_counters_start(session), 0);
	touch_pages(300);
	before = clock_monotonic();
	value = poll_first(session);
	took = clock_monotonic() - before;
	cr_expect_geq(value.value, 300);
	cr_expect_gt(xpt_counters_spread(session), 0);
	cr_expect_leq(xpt_counters_spread(session), took);
	xpt_counters_destroy(session);
}

/* ---- starting and stopping ---- */

/* Three runs of so many faults each; between them others, which must not count. */
static double three_runs(int continues, double after[3])
{
	struct xpt_counters_options options = options_for(faults, 1);
	struct xpt_counters *session;
	double begin, own = 0;

	options.continues = continues;
	session = must_open(&options);
	for (int run = 0; run < 3; run++) {
		begin = worker_touch(&worker, 5000).faults;
		cr_assert_eq(xpt_counters_start(session), 0);
		worker_touch(&worker, 1000);
		cr_assert_eq(xpt_counters_stop(session), 0);
		own += worker_touch(&worker, 1).faults_before - begin;
		after[run] = poll_first(session).value;
	}
	xpt_counters_destroy(session);
	return own;
}

Test(counter_counters, starts_again_from_zero)
{
	double after[3];

	three_runs(0, after);
	for (int run = 0; run < 3; run++)
		cr_expect(after[run] >= 1000 && after[run] < 2000, "%g after run %d", after[run], run);
}

Test(counter_counters, continues)
{
	double after[3], own = three_runs(1, after);

	for (int run = 0; run < 3; run++)
		cr_expect(after[run] >= 1000 * (run + 1), "%g after run %d", after[run], run);
	cr_expect_leq(after[2], own);
}

Test(counter_counters, not_twice)
{
	struct xpt_counters_options options = options_for(faults, 1);
	struct xpt_counters *session = must_open(&options);

	cr_expect_eq(xpt_counters_stop(session), -EALREADY);
	cr_expect_eq(xpt_counters_start(session), 0);
	cr_expect_eq(xpt_counters_start(session), -EALREADY);
	cr_expect_eq(xpt_counters_stop(session), 0);
	cr_expect_eq(xpt_counters_stop(session), -EALREADY);
	xpt_counters_destroy(session);
	xpt_counters_destroy(NULL);
}

/* Sessions do not disturb each other. */
Test(counter_counters, two_at_once)
{
	struct xpt_counters_options options = options_for(faults, 1);
	struct xpt_counters *first = must_open(&options), *second = must_open(&options);
	double inner;

	cr_assert_eq(xpt_counters_start(first), 0);
	worker_touch(&worker, 2000);
	cr_assert_eq(xpt_counters_start(second), 0);
	worker_touch(&worker, 500);
	cr_assert_eq(xpt_counters_stop(second), 0);
	cr_assert_eq(xpt_counters_stop(first), 0);
	inner = poll_first(second).value;
	cr_expect(inner >= 500 && inner < 2000, "%g", inner);
	cr_expect_geq(poll_first(first).value, 2000 + inner);
	xpt_counters_destroy(second);
	xpt_counters_destroy(first);
}

/* A process that has ended leaves what it did. */
Test(counter_counters, process_that_ended)
{
	struct xpt_counters_options options = options_for(faults, 1);
	struct xpt_counters *session;
	struct xpt_counter_value value;
	int ends[2];
	char letter;
	pid_t child;

	cr_assert_eq(pipe(ends), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (!child) {
		if (read(ends[0], &letter, 1) == 1)
			touch_pages(700);
		_exit(0);
	}
	options.pid = child;
	session = must_open(&options);
	cr_assert_eq(xpt_counters_start(session), 0);
	touch_pages(5000);
	cr_assert_eq(write(ends[1], "x", 1), 1);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	value = poll_first(session);
	cr_expect(value.value >= 700 && value.value < 5000, "%g", value.value);
	xpt_counters_destroy(session);
	cr_expect_eq(open_error(&options), -ESRCH);
	cr_expect_not_null(strstr(said, "there is no process"), "%s", said);
}

/* ---- what it is ---- */

Test(counter_counters, info)
{
	struct xpt_counters_options options = options_for(several, 4);
	struct xpt_counters *session = must_open(&options);
	const struct xpt_counter_info *info = xpt_counters_info(session, 2);

	cr_assert_not_null(info);
	cr_expect_str_eq(info->name, "faults");
	cr_expect_str_eq(info->unit, "");
	cr_expect_str_eq(info->source, "software");
	cr_expect_eq(info->kind, XPT_COUNTER_SUM);
	cr_expect_eq(info->scale, 1);
	cr_expect_null(xpt_counters_info(session, 4));
	cr_expect_null(xpt_counters_info(session, (size_t)-1));
	xpt_counters_destroy(session);
}

/* Names are copied. */
Test(counter_counters, names_of_the_caller)
{
	char name[] = "page-faults";
	const char *names[] = { name };
	struct xpt_counters_options options = options_for(names, 1);
	struct xpt_counters *session = must_open(&options);

	memset(name, 'x', sizeof(name) - 1);
	names[0] = NULL;
	cr_expect_str_eq(xpt_counters_info(session, 0)->name, "page-faults");
	xpt_counters_destroy(session);
}

struct found {
	int count, faults, until;
};

static int on_counter(void *context, const struct xpt_counter_info *info)
{
	struct found *found = context;

	found->faults += !strcmp(info->name, "page-faults");
	return ++found->count == found->until ? 5 : 0;
}

/* Without permission, too. */
Test(counter_counters_list, of_this_machine)
{
	struct found found = { 0 };

	cr_expect_eq(xpt_counters_list(XPT_COUNTERS_ALL, on_counter, &found), 0);
	cr_expect_eq(found.faults, 1);
	cr_expect_geq(found.count, 9);
	found = (struct found){ .until = 3 };
	cr_expect_eq(xpt_counters_list(XPT_COUNTERS_ALL, on_counter, &found), 5);
	cr_expect_eq(found.count, 3);
	found = (struct found){ 0 };
	cr_expect_eq(xpt_counters_list(100000, on_counter, &found), -ENODEV);
	cr_expect_eq(found.count, 0);
}

/* ---- refused ---- */

static void expect_refused(struct xpt_counters_options options, int error, const char *words)
{
	said[0] = '\0';
	cr_expect_eq(open_error(&options), error, "%s", said);
	cr_expect_not_null(strstr(said, words), "'%s' is not in '%s'", words, said);
}

Test(counter_counters, refused)
{
	static const char *const misspelt[] = { "task-clock", "page-fauls" };
	struct xpt_counters_options options = options_for(misspelt, 2);

	expect_refused(options, -ENOENT, "page-fauls: unknown counter; near it: page-faults");
	options = options_for(faults, 0);
	expect_refused(options, -EINVAL, "");
	options = options_for(faults, 1);
	options.cpu_index = 8191;
	expect_refused(options, -ENODEV, "page-faults: CPU 8191 is not there, or offline");
	options = options_for(faults, 1);
	options.gpu_index = 100000;
	expect_refused(options, -ENODEV, "there is no device 100000");
	options = options_for(faults, 1);
	options.size = 3;
	expect_refused(options, -EINVAL, "");
	cr_expect_eq(open_error(NULL), -EINVAL);
}

/* The short form counts all processes. */
Test(counter_counters, create)
{
	struct xpt_counters *session;
	int error = xpt_counters_create(several, 4, 0, XPT_COUNTERS_ALL, &session);

	if (error == -EACCES)
		cr_skip_test("system-wide counting is not permitted: root or CAP_PERFMON is needed");
	cr_assert_eq(error, 0);
	cr_expect_eq(xpt_counters_count(session), 4);
	xpt_counters_destroy(session);
	cr_expect_eq(xpt_counters_create(several, 4, 8191, XPT_COUNTERS_ALL, &session), -ENODEV);
	cr_expect_null(session);
}
