/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/continuous/options.h"

#define S 1000000000ull /* ns */

static struct xpt_continuous_options *options;

static void begin(void)
{
	cr_assert_eq(xpt_continuous_options_create(&options), 0);
}

static void end(void)
{
	xpt_continuous_options_free(options);
}

TestSuite(session_continuous_options, .init = begin, .fini = end);

Test(session_continuous_options, defaults_are_those_of_the_header)
{
	cr_assert_str_eq(options->directory, "./output");
	cr_assert_eq(options->user, geteuid());
	cr_assert_eq(options->group, getegid());
	cr_assert_eq(options->window_bytes, 64ull << 20);
	cr_assert_eq(options->window_time, 60 * S);
	cr_assert_eq(options->level, XPT_LEVEL_STANDARD);
	cr_assert_eq(options->sample_every, 1);
	cr_assert_eq(options->after, S);
	cr_assert_eq(options->cooldown, 30 * S);
	cr_assert_eq(options->files, 100);
	cr_assert_eq(options->bytes, 10ull << 30);
	cr_assert_null(options->name);
	cr_assert_not(options->has_targets);
	xpt_continuous_options_free(NULL);
}

Test(session_continuous_options, window_is_within_its_limits)
{
	cr_assert_eq(xpt_continuous_options_set_window(options, XPT_WINDOW_BYTES_MIN, 0), 0);
	cr_assert_eq(xpt_continuous_options_set_window(options, XPT_WINDOW_BYTES_MAX, XPT_WINDOW_TIME_MAX), 0);
	cr_assert_eq(xpt_continuous_options_set_window(options, XPT_WINDOW_BYTES_MIN - 1, 0), -EINVAL);
	cr_assert_eq(xpt_continuous_options_set_window(options, XPT_WINDOW_BYTES_MAX + 1, 0), -EINVAL);
	cr_assert_eq(xpt_continuous_options_set_window(options, 0, 0), -EINVAL);
	cr_assert_eq(xpt_continuous_options_set_window(options, 64 << 20, XPT_WINDOW_TIME_MIN - 1), -EINVAL);
	cr_assert_eq(xpt_continuous_options_set_window(options, 64 << 20, XPT_WINDOW_TIME_MAX + 1), -EINVAL);
	cr_assert_eq(options->window_bytes, XPT_WINDOW_BYTES_MAX, "what is refused changes nothing");
	cr_assert_eq(options->window_time, XPT_WINDOW_TIME_MAX);
}

Test(session_continuous_options, level_sampling_and_counters_are_within_theirs)
{
	cr_assert_eq(xpt_continuous_options_set_level(options, XPT_LEVEL_BASIC), 0);
	cr_assert_eq(xpt_continuous_options_set_level(options, XPT_LEVEL_DETAILED), 0);
	cr_assert_eq(xpt_continuous_options_set_level(options, (enum xpt_level)77), -EINVAL);
	cr_assert_eq(options->level, XPT_LEVEL_DETAILED);
	cr_assert_eq(xpt_continuous_options_set_sampling(options, 1000000), 0);
	cr_assert_eq(xpt_continuous_options_set_sampling(options, 0), -EINVAL);
	cr_assert_eq(xpt_continuous_options_set_sampling(options, 1000001), -EINVAL);
	cr_assert_eq(xpt_continuous_options_set_sampling(options, UINT_MAX), -EINVAL);
	cr_assert_eq(options->sample_every, 1000000);
	cr_assert_eq(xpt_continuous_options_set_counters(options, 100000, 0), 0);
	cr_assert_eq(xpt_continuous_options_set_counters(options, 3600 * S, 1), 0);
	cr_assert_eq(xpt_continuous_options_set_counters(options, 99999, 0), -EINVAL);
	cr_assert_eq(xpt_continuous_options_set_counters(options, 3600 * S + 1, 0), -EINVAL);
	cr_assert_eq(options->counters_every, 3600 * S);
	cr_assert_eq(options->counters_per_inference, 1);
}

Test(session_continuous_options, directory_is_a_copy_and_not_empty)
{
	char path[PATH_MAX + 1], given[] = "/var/tmp/x";

	cr_assert_eq(xpt_continuous_options_set_output_dir(options, given), 0);
	given[1] = '\0';
	cr_assert_eq(xpt_continuous_options_set_output_dir(options, NULL), -EINVAL);
	cr_assert_eq(xpt_continuous_options_set_output_dir(options, ""), -EINVAL);
	memset(path, 'a', sizeof(path));
	path[PATH_MAX] = '\0';
	cr_assert_eq(xpt_continuous_options_set_output_dir(options, path), -ENAMETOOLONG);
	cr_assert_str_eq(options->directory, "/var/tmp/x");
	path[PATH_MAX - 1] = '\0';
	cr_assert_eq(xpt_continuous_options_set_output_dir(options, path), 0);
}

Test(session_continuous_options, name_is_harmless_in_a_path)
{
	static const char *const bad[] = { "",	   ".",	   "..",       ".hidden", "a/b",  "/a",	  "a b",
					   "a\nb", "a\tb", "\303\244", "a:b",	  "a\\b", "a%s%", "a\x7f" };
	char name[66];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(xpt_continuous_options_set_name(options, bad[i]), -EINVAL, "'%s'", bad[i]);
	cr_assert_null(options->name);
	memset(name, 'n', sizeof(name));
	name[65] = '\0';
	cr_assert_eq(xpt_continuous_options_set_name(options, name), -EINVAL);
	name[64] = '\0';
	cr_assert_eq(xpt_continuous_options_set_name(options, name), 0);
	cr_assert_eq(xpt_continuous_options_set_name(options, "-A_z.9"), 0);
	cr_assert_str_eq(options->name, "-A_z.9");
	cr_assert_eq(xpt_continuous_options_set_name(options, NULL), 0);
	cr_assert_null(options->name);
}

Test(session_continuous_options, triggers_are_checked_and_counted)
{
	char reason[200] = "untouched", tiny[4] = "xyz";

	cr_assert_eq(xpt_continuous_options_add_trigger(options, NULL, reason, sizeof(reason)), -EINVAL);
	cr_assert_eq(xpt_continuous_options_add_trigger(options, "latency >", reason, sizeof(reason)), -EINVAL);
	cr_assert_gt(strlen(reason), 0);
	cr_assert_str_neq(reason, "untouched");
	cr_assert_eq(xpt_continuous_options_add_trigger(options, "nonsense", tiny, sizeof(tiny)), -EINVAL);
	cr_assert_eq(strlen(tiny), 3, "cut to size");
	cr_assert_eq(xpt_continuous_options_add_trigger(options, "nonsense", NULL, 0), -EINVAL);
	cr_assert_eq(options->trigger_count, 0);
	for (int i = 0; i < XPT_TRIGGERS_MAX; i++)
		cr_assert_eq(xpt_continuous_options_add_trigger(options, "latency > 20ms", reason, sizeof(reason)), 0);
	cr_assert_eq(xpt_continuous_options_add_trigger(options, "error", reason, sizeof(reason)), -ENOSPC);
	cr_assert(strstr(reason, "16"), "%s", reason);
	cr_assert_eq(options->trigger_count, XPT_TRIGGERS_MAX);
}

Test(session_continuous_options, saving_is_within_its_limits)
{
	cr_assert_eq(xpt_continuous_options_set_saving(options, 0, 0, 0, 0), 0);
	cr_assert_eq(xpt_continuous_options_set_saving(options, 60 * S, XPT_WINDOW_TIME_MAX, ~0ull, ~0ull), 0);
	cr_assert_eq(xpt_continuous_options_set_saving(options, 60 * S + 1, 0, 0, 0), -EINVAL);
	cr_assert_eq(xpt_continuous_options_set_saving(options, 0, XPT_WINDOW_TIME_MAX + 1, 0, 0), -EINVAL);
	cr_assert_eq(options->after, 60 * S);
	cr_assert_eq(options->files, ~0ull);
}

Test(session_continuous_options, targets_are_copied_and_replaced)
{
	pid_t pids[] = { 5, 6 };
	struct xpt_session_options targets = { .size = sizeof(targets), .pids = pids, .pid_count = 2 };

	cr_assert_eq(xpt_continuous_options_set_targets(options, &targets), 0);
	pids[0] = 7;
	cr_assert_eq(options->targets.pids[0], 5);
	targets.pid_count = 1;
	cr_assert_eq(xpt_continuous_options_set_targets(options, &targets), 0);
	cr_assert_eq(options->targets.pids[0], 7);
	cr_assert_eq(options->targets.pid_count, 1);
	targets.size = 1;
	cr_assert_neq(xpt_continuous_options_set_targets(options, &targets), 0);
	cr_assert_eq(options->targets.pid_count, 1);
}

Test(session_continuous_options, what_makes_no_sense_does_not_start)
{
	pid_t pid = getpid();
	struct xpt_session_options targets = { .size = sizeof(targets), .pids = &pid, .pid_count = 1 };
	struct xpt_continuous *continuous;

	cr_assert_eq(xpt_continuous_start(options, &continuous), -EINVAL, "no targets");
	cr_assert_eq(xpt_continuous_options_set_targets(options, &targets), 0);
	cr_assert_eq(xpt_continuous_options_set_counters(options, S, 0), 0);
	cr_assert_eq(xpt_continuous_start(options, &continuous), -EINVAL, "no counters");
	options->counters_every = 0;
	cr_assert_eq(xpt_continuous_options_add_trigger(options, "error", NULL, 0), 0);
	cr_assert_eq(xpt_continuous_options_set_window(options, 64 << 20, 5 * S), 0);
	cr_assert_eq(xpt_continuous_options_set_saving(options, 5 * S, 0, 0, 0), 0);
	cr_assert_eq(xpt_continuous_start(options, &continuous), -EINVAL, "it has left the window by then");
	targets.pid_count = 0;
	cr_assert_eq(xpt_continuous_options_set_targets(options, &targets), 0);
	cr_assert_eq(xpt_continuous_options_set_saving(options, S, 0, 0, 0), 0);
	cr_assert_eq(xpt_continuous_start(options, &continuous), -EINVAL, "nothing to watch");
}
