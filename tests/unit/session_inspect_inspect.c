/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/inspect/inspect.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct inspect_process *make(__u32 tgid, unsigned int wanted)
{
	const struct model_process view = { .tgid = tgid, .name = "name", .command = "command" };

	return inspect_process_create(&view, wanted, 1000);
}

Test(session_inspect_inspect, is_read_when_it_is_due)
{
	struct inspect_process *process = make(getpid(), USAGE_CPU | USAGE_MEMORY);

	inspect_process_read(process, USAGE_CPU | USAGE_MEMORY, 999);
	cr_assert_eq(process->count, 0);
	inspect_process_read(process, USAGE_CPU | USAGE_MEMORY, 1000);
	cr_assert_eq(process->count, 1);
	cr_assert(process->rows[0].have == (USAGE_CPU | USAGE_MEMORY) && process->rows[0].resident > 0);
	inspect_process_read(process, USAGE_CPU | USAGE_MEMORY, 1001);
	cr_assert_eq(process->count, 1);
	cr_assert_eq(process->due, 1000 + INSPECT_READ_EVERY);
	inspect_process_read(process, USAGE_CPU | USAGE_MEMORY, 1000 + 5 * INSPECT_READ_EVERY);
	cr_assert_eq(process->due, 1000 + 6 * INSPECT_READ_EVERY, "what was missed is not made up for");
	inspect_process_free(process);
}

/* However long it takes, there are only so many rows, and they cover all of the time. */
Test(session_inspect_inspect, rows_are_bounded)
{
	struct inspect_process *process = make(getpid(), USAGE_CPU);
	__u64 first = 0;

	for (__u64 reading = 0; reading < 2 * INSPECT_ROWS_MAX; reading++) {
		inspect_process_read(process, USAGE_CPU, process->due);
		if (!reading)
			first = process->rows[0].time;
		cr_assert(process->count <= INSPECT_ROWS_MAX);
	}
	cr_assert_eq(process->rows[0].time, first);
	cr_assert_eq(process->every, 4 * INSPECT_READ_EVERY);
	cr_assert(process->count >= INSPECT_ROWS_MAX / 2);
	for (size_t i = 1; i < process->count; i++)
		cr_assert(process->rows[i].time > process->rows[i - 1].time);
	inspect_process_free(process);
}

Test(session_inspect_inspect, one_that_is_gone_has_no_rows)
{
	struct inspect_process *process = make(0x3fffff, USAGE_CPU);

	inspect_process_read(process, USAGE_CPU, 1000);
	cr_assert(process->count == 0 && !process->open);
	inspect_process_free(process);
}

/* ---- creation ---- */

static char said[1024]; /* the last error */

static void keep(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	if (level == XPT_LOG_ERROR)
		snprintf(said, sizeof(said), "%s", text);
}

Test(session_inspect_inspect, nothing_to_do_needs_no_rights)
{
	XPT_OPTS(xpt_inspect_options, options);
	struct xpt_inspect *inspect;

	cr_assert_eq(xpt_inspect_create(&options, &inspect), 0);
	cr_expect_eq(xpt_inspect_start(inspect), 0);
	cr_expect_eq(xpt_inspect_wait(inspect, XPT_FOREVER), 1);
	xpt_inspect_interrupt(inspect);
	cr_expect_eq(xpt_inspect_stop(inspect), 0);
	cr_expect_eq(xpt_inspect_stop(inspect), 0);
	xpt_inspect_destroy(inspect);
	xpt_inspect_destroy(NULL);
}

Test(session_inspect_inspect, wrong_settings_are_refused)
{
	const char *settings[] = { "ENABLE=0", "SESSION_ID=x" };
	XPT_OPTS(xpt_session_options, targets, .all_processes = 1, .log = keep);
	XPT_OPTS(xpt_inspect_options, options, .targets = &targets, .settings = settings, .setting_count = 2);
	struct xpt_inspect *inspect = NULL;

	cr_expect_eq(xpt_inspect_create(&options, &inspect), -EINVAL);
	cr_expect_not_null(strstr(said, "SESSION_ID"), "%s", said);
	settings[1] = "SESSION=1";
	cr_expect_eq(xpt_inspect_create(&options, &inspect), -EINVAL);
	cr_expect_not_null(strstr(said, "unknown setting \"SESSION\""), "%s", said);
	settings[1] = NULL;
	cr_expect_eq(xpt_inspect_create(&options, &inspect), -EINVAL, "a hole");
	options.settings = NULL;
	cr_expect_eq(xpt_inspect_create(&options, &inspect), -EINVAL, "a list that is not there");
	cr_expect_null(inspect);
}

Test(session_inspect_inspect, options_count_more_than_the_environment)
{
	const char *settings[] = { "ENABLE=0", "SESSION_ID=1", "SESSION_ID=2" };
	XPT_OPTS(xpt_session_options, targets, .all_processes = 1, .log = keep);
	XPT_OPTS(xpt_inspect_options, options, .targets = &targets, .settings = settings, .setting_count = 3);
	struct xpt_inspect *inspect = NULL;

	setenv("XPUTRACE_INSPECT_ENABLE", "1", 1);
	setenv("XPUTRACE_INSPECT_MAX_EVENTS_PER_CORE", "7", 1);
	cr_assert_eq(xpt_inspect_create(&options, &inspect), 0);
	cr_expect_eq(inspect->settings.max_events_per_core, 1000000, "it is not used");
	xpt_inspect_destroy(inspect);
	options.use_environment = 1;
	cr_assert_eq(xpt_inspect_create(&options, &inspect), 0);
	cr_expect_eq(inspect->settings.max_events_per_core, 7);
	cr_expect_eq(inspect->settings.session_id, 2, "of one name the last counts");
	cr_expect_not(inspect->settings.inspect);
	xpt_inspect_destroy(inspect);
	setenv("XPUTRACE_INSPECT_SESSION_ID", "x", 1);
	cr_expect_eq(xpt_inspect_create(&options, &inspect), -EINVAL);
	cr_expect_not_null(strstr(said, "XPUTRACE_INSPECT_SESSION_ID"), "%s", said);
}

Test(session_inspect_inspect, wrong_targets_are_refused)
{
	static const char *const holes[] = { "opencl", NULL };
	struct {
		struct xpt_session_options options;
		char later[8];
	} newer = { .options = { .size = sizeof(newer), .all_processes = 1 }, .later = { 1 } };
	struct xpt_session_options good = { .size = sizeof(good), .all_processes = 1, .log = keep }, bad;
	XPT_OPTS(xpt_inspect_options, options, .targets = &bad);
	struct xpt_inspect *inspect = NULL;
	pid_t pid = 12;

	cr_expect_eq(xpt_inspect_create(NULL, &inspect), -EINVAL);
	cr_expect_eq(xpt_inspect_create(&options, NULL), -EINVAL);
	options.targets = &newer.options;
	cr_expect_eq(xpt_inspect_create(&options, &inspect), -E2BIG);
	options.targets = &bad;
	bad = good;
	bad.size = 0;
	cr_expect_eq(xpt_inspect_create(&options, &inspect), -EINVAL);
	cr_expect_str_empty(said);
	bad = good;
	bad.pids = &pid;
	bad.pid_count = 1;
	cr_expect_eq(xpt_inspect_create(&options, &inspect), -EINVAL, "two ways");
	cr_expect_not_null(strstr(said, "exclude"));
	bad = good;
	bad.all_processes = 0;
	cr_expect_eq(xpt_inspect_create(&options, &inspect), -EINVAL, "no way");
	bad.pid_count = 1;
	cr_expect_eq(xpt_inspect_create(&options, &inspect), -EINVAL, "a list that is not there");
	bad = good;
	bad.counter_count = 1;
	cr_expect_eq(xpt_inspect_create(&options, &inspect), -EINVAL);
	bad = good;
	bad.runtimes = holes;
	bad.runtime_count = 2;
	cr_expect_eq(xpt_inspect_create(&options, &inspect), -EINVAL);
	bad = good;
	cr_assert_eq(xpt_inspect_create(&options, &inspect), 0);
	xpt_inspect_destroy(inspect);
}
