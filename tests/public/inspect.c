/* SPDX-License-Identifier: BSD-2-Clause */
/* An inspection of a program that says itself how often it has run what; needs root. */
#define _POSIX_C_SOURCE 200809L

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <xputrace/inspect.h>

#include "check.h"
#include "target.h"

static char folder[64]; /* of all that is made */

static void on_message(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	(void)level;
	fprintf(stderr, "%s\n", text);
}

static struct xpt_session_options targets_of(const pid_t *pid)
{
	const struct xpt_session_options targets = {
		.size = sizeof(targets), .pids = pid, .pid_count = 1, .log = on_message, .log_level = XPT_LOG_WARN
	};

	return targets;
}

/* Whether the output directory has a folder of the process with the file; it ends in _pid_PID. */
static int has_file(const char *output, pid_t pid, const char *name)
{
	char path[512], end[32];
	struct dirent *entry;
	struct stat file;
	DIR *all = opendir(output);
	int found = 0;

	snprintf(end, sizeof(end), "_pid_%d", (int)pid);
	while (all && (entry = readdir(all)))
		if (strlen(entry->d_name) > strlen(end) &&
		    !strcmp(entry->d_name + strlen(entry->d_name) - strlen(end), end)) {
			snprintf(path, sizeof(path), "%.100s/%.200s/%s", output, entry->d_name, name);
			found += stat(path, &file) == 0 && file.st_size > 0;
		}
	if (all)
		closedir(all);
	return found;
}

/* On one process, with results in the directory; enable NULL: as is the default. */
static int create(const struct target *target, const char *output, const char *enable, struct xpt_inspect **inspect)
{
	const struct xpt_session_options targets = targets_of(&target->pid);
	XPT_OPTS(xpt_inspect_options, options, .targets = &targets);
	char directory[120];
	const char *settings[2];

	snprintf(directory, sizeof(directory), "OUTPUT_DIR=%s", output);
	settings[options.setting_count++] = directory;
	if (enable)
		settings[options.setting_count++] = enable;
	options.settings = settings;
	return xpt_inspect_create(&options, inspect);
}

/* All files of the process are there once it has ended, and the wait says that it has. */
static void test_files(void)
{
	static const char *const files[] = { "recording.xpt", "trace.json", "report.txt", "usage.csv", "index.json" };
	struct target target = target_start("50", "500", "1");
	struct xpt_inspect *inspect;
	char output[100];
	size_t i;

	snprintf(output, sizeof(output), "%s/files", folder);
	CHECK_IS(create(&target, output, "ENABLE=1", &inspect), 0);
	CHECK_IS(xpt_inspect_wait(inspect, 1000000), -EINVAL);
	CHECK_IS(xpt_inspect_start(inspect), 0);
	CHECK_IS(xpt_inspect_wait(inspect, 1000000), 0);
	target_go(&target);
	target_end(&target);
	CHECK_IS(xpt_inspect_wait(inspect, 20000000000), 1);
	CHECK_IS(xpt_inspect_stop(inspect), 0);
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		CHECK(has_file(output, target.pid, files[i]) == 1, "%s", files[i]);
	CHECK_IS(xpt_inspect_stop(inspect), 0);
	xpt_inspect_destroy(inspect);
	target_free(&target);
}

/* Neither all nor those that fail: nothing is done, and nothing written. Nor without stop. */
static void test_nothing(void)
{
	struct target target = target_start("1", "1", "1");
	XPT_OPTS(xpt_inspect_options, none);
	struct xpt_inspect *inspect;
	struct stat file;
	char output[100];

	snprintf(output, sizeof(output), "%s/nothing", folder);
	CHECK_IS(create(&target, output, NULL, &inspect), 0);
	CHECK_IS(xpt_inspect_start(inspect), 0);
	CHECK_IS(xpt_inspect_wait(inspect, 20000000000), 1);
	CHECK_IS(xpt_inspect_stop(inspect), 0);
	xpt_inspect_destroy(inspect);
	CHECK(stat(output, &file) && errno == ENOENT, "%s", output);
	CHECK_IS(xpt_inspect_create(&none, &inspect), 0);
	CHECK_IS(xpt_inspect_start(inspect), 0);
	CHECK_IS(xpt_inspect_stop(inspect), 0);
	xpt_inspect_destroy(inspect);
	CHECK_IS(create(&target, output, "ENABLE=1", &inspect), 0);
	xpt_inspect_destroy(inspect);
	CHECK_IS(create(&target, output, "ENABLE=1", &inspect), 0);
	CHECK_IS(xpt_inspect_start(inspect), 0);
	xpt_inspect_destroy(inspect);
	CHECK_IS(has_file(output, target.pid, "index.json"), 0);
	target_go(&target);
	target_end(&target);
	target_free(&target);
}

static void on_written(void *context, const char *directory, const char *index)
{
	unsigned int *written = (unsigned int *)context;

	*written += directory[0] && index[0] == '{' && index[strlen(index) - 1] == '\n';
}

/* As the environment of this process says. */
static void test_environment(void)
{
	struct target target = target_start("20", "500", "1");
	const struct xpt_session_options targets = targets_of(&target.pid);
	unsigned int written = 0;
	XPT_OPTS(xpt_inspect_options, options, .targets = &targets, .use_environment = 1, .written = on_written,
		 .written_context = &written);
	struct xpt_inspect *inspect = NULL;
	char output[100];

	snprintf(output, sizeof(output), "%s/environment", folder);
	setenv("XPUTRACE_INSPECT_OUTPUT_DIR", output, 1);
	setenv("XPUTRACE_INSPECT_ENABLE", "perhaps", 1);
	CHECK_IS(xpt_inspect_create(&options, &inspect), -EINVAL);
	setenv("XPUTRACE_INSPECT_ENABLE", "1", 1);
	CHECK_IS(xpt_inspect_create(&options, &inspect), 0);
	CHECK_IS(xpt_inspect_start(inspect), 0);
	target_go(&target);
	target_end(&target);
	xpt_inspect_interrupt(inspect);
	CHECK_IS(xpt_inspect_wait(inspect, 20000000000), -EINTR);
	CHECK_IS(xpt_inspect_stop(inspect), 0);
	CHECK_IS(has_file(output, target.pid, "index.json"), 1);
	CHECK_IS(written, 1);
	xpt_inspect_destroy(inspect);
	unsetenv("XPUTRACE_INSPECT_OUTPUT_DIR");
	unsetenv("XPUTRACE_INSPECT_ENABLE");
	target_free(&target);
}

static const struct test tests[] = {
	{ "files", test_files, 1 },
	{ "nothing", test_nothing, 1 },
	{ "environment", test_environment, 1 },
};

int main(void)
{
	snprintf(folder, sizeof(folder), "inspect-%d", (int)getpid());
	if (mkdir(folder, 0700))
		target_give_up(folder);
	return run_tests("inspect", tests, sizeof(tests) / sizeof(tests[0])) != 0;
}
