/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/continuous/private.h"

#define S 1000000000ull /* ns */

static const pid_t pid = 1;
static char said[1024]; /* the last error */

static void keep(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	if (level == XPT_LOG_ERROR)
		snprintf(said, sizeof(said), "%s", text);
}

static struct xpt_session_options targets = { .size = sizeof(targets), .pids = &pid, .pid_count = 1, .log = keep };
static struct xpt_continuous_options given = { .size = sizeof(given), .targets = &targets }, options;

static int check(void)
{
	struct xpt_session_options copy = {};

	said[0] = '\0';
	options = (struct xpt_continuous_options){};
	return continuous_options_read(&given, &options, &copy);
}

/* An error has a message that names what is wrong. */
static void expect_refused(const char *message)
{
	cr_expect_eq(check(), -EINVAL, "%s", message);
	cr_expect_not_null(strstr(said, message), "'%s' in place of '%s'", said, message);
}

Test(session_continuous_continuous, defaults_are_those_of_the_header)
{
	cr_assert_eq(check(), 0);
	cr_assert_str_eq(options.output_dir, "./output");
	cr_assert_eq(options.user, geteuid());
	cr_assert_eq(options.group, getegid());
	cr_assert_eq(options.window_bytes, 64ull << 20);
	cr_assert_eq(options.window_time, 60 * S);
	cr_assert_eq(options.level, XPT_LEVEL_STANDARD);
	cr_assert_eq(options.sample_every, 1);
	cr_assert_eq(options.save_after, S);
	cr_assert_eq(options.save_cooldown, 30 * S);
	cr_assert_eq(options.save_files, 100);
	cr_assert_eq(options.save_bytes, 10ull << 30);
	cr_assert_null(options.name);
	xpt_continuous_destroy(NULL);
}

Test(session_continuous_continuous, an_owner_is_taken)
{
	given.user = 12;
	given.group = 34;
	cr_assert_eq(check(), 0);
	cr_assert_eq(options.user, geteuid(), "without has_owner");
	given.has_owner = 1;
	cr_assert_eq(check(), 0);
	cr_assert(options.user == 12 && options.group == 34);
}

static void expect_range(uint64_t *number, const char *name, uint64_t least, uint64_t most)
{
	cr_expect((*number = least, check()) == 0, "%s", name);
	cr_expect((*number = most, check()) == 0, "%s", name);
	if (least > 1) {
		*number = least - 1;
		expect_refused(name);
	}
	*number = most + 1;
	expect_refused(name);
	cr_expect_not_null(strstr(said, "out of range"), "%s", said);
	*number = 0;
}

Test(session_continuous_continuous, numbers_have_a_range)
{
	static const char *const counter = "task-clock";

	expect_range(&given.window_bytes, "window_bytes", XPT_WINDOW_BYTES_MIN, XPT_WINDOW_BYTES_MAX);
	expect_range(&given.window_time, "window_time", XPT_WINDOW_TIME_MIN, XPT_WINDOW_TIME_MAX);
	expect_range(&given.save_after, "save_after", 1, XPT_SAVE_AFTER_MAX);
	expect_range(&given.save_cooldown, "save_cooldown", 1, XPT_WINDOW_TIME_MAX);
	targets.counters = &counter;
	targets.counter_count = 1;
	expect_range(&given.counters_every, "counters_every", 100000, 3600 * S);
	given.window_bytes = XPT_NONE;
	expect_refused("window_bytes");
	given.window_bytes = 0;
	given.counters_every = XPT_NONE;
	expect_refused("counters_every");
}

Test(session_continuous_continuous, none_is_no_limit_or_no_time)
{
	given.window_time = given.save_after = given.save_cooldown = given.save_files = given.save_bytes = XPT_NONE;
	cr_assert_eq(check(), 0);
	cr_assert_eq(options.window_time, 0);
	cr_assert_eq(options.save_after, 0);
	cr_assert_eq(options.save_cooldown, 0);
	cr_assert_eq(options.save_files, 0);
	cr_assert_eq(options.save_bytes, 0);
	given.save_files = given.save_bytes = XPT_NONE - 1;
	cr_assert_eq(check(), 0);
	cr_assert_eq(options.save_files, XPT_NONE - 1);
}

Test(session_continuous_continuous, level_and_sampling)
{
	static const unsigned int bad[] = { 1000001, UINT_MAX };

	given.level = XPT_LEVEL_BASIC;
	cr_assert_eq(check(), 0);
	given.level = XPT_LEVEL_DETAILED;
	given.sample_every = 1000000;
	cr_assert_eq(check(), 0);
	cr_assert_eq(options.level, XPT_LEVEL_DETAILED);
	cr_assert_eq(options.sample_every, 1000000);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		given.sample_every = bad[i];
		expect_refused("sampling");
	}
	given.sample_every = 0;
	given.level = (enum xpt_level)77;
	expect_refused("level 77");
}

Test(session_continuous_continuous, directory_is_not_empty)
{
	char path[PATH_MAX + 1];

	given.output_dir = "";
	expect_refused("empty");
	memset(path, 'a', sizeof(path));
	path[PATH_MAX] = '\0';
	given.output_dir = path;
	cr_assert_eq(check(), -ENAMETOOLONG);
	cr_assert(strstr(said, "too long"), "%s", said);
	path[PATH_MAX - 1] = '\0';
	cr_assert_eq(check(), 0);
	given.output_dir = "/var/tmp/x";
	cr_assert_eq(check(), 0);
	cr_assert_str_eq(options.output_dir, "/var/tmp/x");
}

Test(session_continuous_continuous, name_is_harmless_in_a_path)
{
	static const char *const bad[] = { "",	   ".",	   "..",       ".hidden", "a/b",  "/a",	  "a b",
					   "a\nb", "a\tb", "\303\244", "a:b",	  "a\\b", "a%s%", "a\x7f" };
	char name[66];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		given.name = bad[i];
		expect_refused("the name");
	}
	memset(name, 'n', sizeof(name));
	name[65] = '\0';
	given.name = name;
	expect_refused("64");
	name[64] = '\0';
	cr_assert_eq(check(), 0);
	given.name = "-A_z.9";
	cr_assert_eq(check(), 0);
	cr_assert_str_eq(options.name, "-A_z.9");
}

Test(session_continuous_continuous, triggers_are_checked_and_counted)
{
	char reason[200] = "untouched", tiny[4] = "xyz";
	const char *triggers[XPT_TRIGGERS_MAX + 1];

	cr_assert_eq(xpt_trigger_check(NULL, reason, sizeof(reason)), -EINVAL);
	cr_assert_eq(xpt_trigger_check("latency >", reason, sizeof(reason)), -EINVAL);
	cr_assert_gt(strlen(reason), 0);
	cr_assert_str_neq(reason, "untouched");
	cr_assert_eq(xpt_trigger_check("nonsense", tiny, sizeof(tiny)), -EINVAL);
	cr_assert_eq(strlen(tiny), 3, "cut to size");
	cr_assert_eq(xpt_trigger_check("nonsense", NULL, 0), -EINVAL);
	for (int i = 0; i <= XPT_TRIGGERS_MAX; i++)
		triggers[i] = "latency > 20ms";
	cr_assert_eq(xpt_trigger_check(triggers[0], reason, sizeof(reason)), 0);
	given.triggers = triggers;
	given.trigger_count = XPT_TRIGGERS_MAX;
	cr_assert_eq(check(), 0);
	cr_assert_eq(options.trigger_count, XPT_TRIGGERS_MAX);
	given.trigger_count++;
	expect_refused("16 triggers");
	given.trigger_count = 2;
	triggers[1] = "nonsense";
	expect_refused("nonsense");
	triggers[1] = NULL;
	cr_assert_eq(check(), -EINVAL, "a hole");
	given.triggers = NULL;
	cr_assert_eq(check(), -EINVAL, "a list that is not there");
}

Test(session_continuous_continuous, sizes_are_those_of_the_header_or_refused)
{
	struct {
		struct xpt_continuous_options known;
		char later[8];
	} newer = { .known = { .size = sizeof(newer), .targets = &targets }, .later = { 1 } };
	struct xpt_session_options copy = {};

	cr_assert_eq(continuous_options_read(NULL, &options, &copy), -EINVAL);
	cr_assert_eq(continuous_options_read(&newer.known, &options, &copy), -E2BIG);
	newer.later[0] = 0;
	cr_assert_eq(continuous_options_read(&newer.known, &options, &copy), 0);
	given.size = 0;
	cr_assert_eq(check(), -EINVAL);
	given.size = sizeof(given);
	targets.size = 1;
	cr_assert_neq(check(), 0);
}

Test(session_continuous_continuous, what_makes_no_sense_is_not_created)
{
	static const char *const error = "error", *const holes[] = { "opencl", NULL };
	static const struct xpt_handle_name nameless = { .handle = 1 };
	struct xpt_continuous *continuous = NULL;
	struct xpt_session_options good = targets;

	given.targets = NULL;
	cr_assert_eq(xpt_continuous_create(&given, &continuous), -EINVAL, "no targets");
	given.targets = &targets;
	given.counters_every = S;
	cr_assert_eq(xpt_continuous_create(&given, &continuous), -EINVAL, "no counters");
	cr_assert(strstr(said, "no counters specified"), "%s", said);
	given.counters_every = 0;
	given.triggers = &error;
	given.trigger_count = 1;
	given.window_time = given.save_after = 5 * S;
	cr_assert_eq(xpt_continuous_create(&given, &continuous), -EINVAL, "it has left the window by then");
	cr_assert(strstr(said, "has left the window"), "%s", said);
	given.save_after = S;
	targets.pid_count = 0;
	cr_assert_eq(xpt_continuous_create(&given, &continuous), -EINVAL, "nothing to watch");
	targets.all_processes = 1;
	targets.pid_count = 1;
	cr_assert_eq(xpt_continuous_create(&given, &continuous), -EINVAL, "two ways");
	cr_assert(strstr(said, "exclude"), "%s", said);
	targets.pids = NULL;
	targets.all_processes = 0;
	cr_assert_eq(xpt_continuous_create(&given, &continuous), -EINVAL, "a list that is not there");
	cr_assert(strstr(said, "fewer entries"), "%s", said);
	targets = good;
	targets.counter_count = 1;
	cr_assert_eq(xpt_continuous_create(&given, &continuous), -EINVAL, "counters that are not there");
	targets = good;
	targets.runtimes = holes;
	targets.runtime_count = 2;
	cr_assert_eq(xpt_continuous_create(&given, &continuous), -EINVAL, "a hole");
	targets = good;
	targets.names = &nameless;
	targets.name_count = 1;
	cr_assert_eq(xpt_continuous_create(&given, &continuous), -EINVAL, "a name without one");
	cr_assert_null(continuous);
}
