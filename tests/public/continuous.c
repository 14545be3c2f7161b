/* SPDX-License-Identifier: BSD-2-Clause */
/* Continuous profiling of a program that says itself how often it has run what; needs root. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <xputrace/continuous.h>
#include <xputrace/report.h>

#include "check.h"
#include "target.h"

#define SECOND 1000000000ull
#define SAVES 20

static char folder[64]; /* of all that is made */

static void on_message(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	(void)level;
	fprintf(stderr, "%s\n", text);
}

/* On one process, without limit in time; log NULL where messages are expected and would only confuse. */
static int start(pid_t pid, const char *name, xpt_log_fn log, struct xpt_continuous **continuous)
{
	struct xpt_session_options targets = {
		.size = sizeof(targets),
		.pids = &pid,
		.pid_count = 1,
		.log = log,
		.log_level = XPT_LOG_WARN,
		.budget = XPT_BUDGET_NONE /* all that the target does is to be recorded */
	};
	XPT_OPTS(xpt_continuous_options, options, .targets = &targets, .window_bytes = 256ull << 20,
		 .window_time = XPT_NONE, .name = name);
	XPT_OPTS(xpt_saved, saved);
	char output[sizeof(folder) + sizeof("/saved")];
	int error;

	snprintf(output, sizeof(output), "%s/saved", folder);
	options.output_dir = output;
	error = xpt_continuous_create(&options, continuous);
	if (error)
		return error;
	CHECK_IS(xpt_continuous_wait(*continuous, SECOND), -EINVAL);
	CHECK_IS(xpt_continuous_save(*continuous, NULL, &saved), -EINVAL);
	return xpt_continuous_start(*continuous);
}

static struct xpt_continuous_status status_of(struct xpt_continuous *continuous)
{
	struct xpt_continuous_status status = { .size = sizeof(status) };

	CHECK_IS(xpt_continuous_status(continuous, &status), 0);
	return status;
}

/* As soon as this number of inferences has been seen, or after 20 s. */
static struct xpt_continuous_status status_with(struct xpt_continuous *continuous, unsigned long long inferences)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	struct xpt_continuous_status status;
	int i;

	for (i = 0; i < 2000; i++) {
		status = status_of(continuous);
		if (status.window_inferences + status.evicted_inferences >= inferences)
			break;
		nanosleep(&pause, NULL);
	}
	return status;
}

/* How often the trace of a saved file has the text. */
static unsigned long long count_in_trace(const char *recording, const char *text)
{
	struct xpt_report_options options = { .size = sizeof(options), .input = recording, .summary_descriptor = -1 };
	unsigned long long count = 0;
	char path[sizeof(folder) + sizeof("/trace.json")], *line = NULL, *at;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/trace.json", folder);
	options.output = path;
	CHECK_IS(xpt_report_create(&options), 0);
	file = fopen(path, "r");
	if (!file)
		target_give_up(path);
	while (getline(&line, &size, file) > 0)
		for (at = line; (at = strstr(at, text)); at++)
			count++;
	free(line);
	fclose(file);
	return count;
}

/* How often it has run the program, in calls and by enqueuing. */
static unsigned long long runs_in_trace(const char *recording, const char *program)
{
	char call[100], enqueue[100];

	snprintf(call, sizeof(call), "\"role\":\"execute\",\"program\":\"%s\"", program);
	snprintf(enqueue, sizeof(enqueue), "\"role\":\"enqueue\",\"program\":\"%s\"", program);
	return count_in_trace(recording, call) + count_in_trace(recording, enqueue);
}

/* ---- saves and status at once ---- */

struct saving {
	struct xpt_continuous *continuous;
	struct xpt_saved saved[SAVES];
	int failed, done;
	pthread_mutex_t lock; /* of done */
};

static void *save_all(void *context)
{
	struct saving *saving = (struct saving *)context;
	int i;

	for (i = 0; i < SAVES; i++) {
		saving->saved[i].size = sizeof(saving->saved[i]);
		saving->failed += xpt_continuous_save(saving->continuous, NULL, &saving->saved[i]) != 0;
	}
	pthread_mutex_lock(&saving->lock);
	saving->done = 1;
	pthread_mutex_unlock(&saving->lock);
	return NULL;
}

static int is_done(struct saving *saving)
{
	int done;

	pthread_mutex_lock(&saving->lock);
	done = saving->done;
	pthread_mutex_unlock(&saving->lock);
	return done;
}

static void check_saved(const struct saving *saving)
{
	struct stat file;
	int i;

	CHECK_IS(saving->failed, 0);
	for (i = 0; i < SAVES; i++) {
		const struct xpt_saved *saved = &saving->saved[i];

		CHECK(stat(saved->path, &file) == 0 && (uint64_t)file.st_size == saved->bytes, "%s", saved->path);
		CHECK(saved->begin < saved->end && saved->records > 0 && saved->lost == 0, "%s", saved->path);
		if (i)
			CHECK(strcmp(saved->path, saved[-1].path) && saved->end > saved[-1].end, "%s", saved->path);
	}
}

/* One thread saves, another one asks, while the target runs. What is saved at last has all that the target has done. */
static void test_saves(void)
{
	static struct saving saving = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct target target = target_start("0", "2000", "2");
	struct xpt_saved all = { .size = sizeof(all) };
	struct xpt_continuous_status status;
	unsigned long long inferences;
	uint64_t calls = 0, asked = 0;
	pthread_t thread;

	CHECK_IS(start(target.pid, NULL, on_message, &saving.continuous), 0);
	target_go(&target);
	if (pthread_create(&thread, NULL, save_all, &saving))
		target_give_up("thread");
	while (!is_done(&saving)) {
		status = status_of(saving.continuous);
		CHECK(status.calls >= calls && status.lost == 0 && status.pid == getpid(), "%llu calls",
		      (unsigned long long)status.calls);
		calls = status.calls;
		asked++;
		CHECK_IS(xpt_continuous_wait(saving.continuous, SECOND / 1000), 0);
	}
	pthread_join(thread, NULL);
	check_saved(&saving);
	CHECK(asked >= SAVES, "asked %llu times", (unsigned long long)asked);
	target_stop(&target);
	target_end(&target);
	inferences = target_inferences(&target, PROGRAM_0) + target_inferences(&target, PROGRAM_1);
	status = status_with(saving.continuous, inferences);
	CHECK_IS(status.window_inferences, inferences);
	CHECK(status.saves == SAVES && status.failed_saves == 0 && status.evicted_records == 0, "%llu files",
	      (unsigned long long)status.saves);
	CHECK_IS(xpt_continuous_save(saving.continuous, NULL, &all), 0);
	CHECK_IS(runs_in_trace(all.path, PROGRAM_0), target_inferences(&target, PROGRAM_0));
	CHECK_IS(runs_in_trace(all.path, PROGRAM_1), target_inferences(&target, PROGRAM_1));
	xpt_continuous_stop(saving.continuous);
	CHECK_IS(xpt_continuous_save(saving.continuous, NULL, &all), -ECANCELED);
	CHECK_IS(xpt_continuous_wait(saving.continuous, SECOND), 1);
	CHECK_IS(status_of(saving.continuous).saves, SAVES + 1);
	xpt_continuous_stop(saving.continuous);
	xpt_continuous_destroy(saving.continuous);
	target_free(&target);
}

/* ---- what is meant ---- */

static int save_error(struct xpt_continuous *continuous, struct xpt_save_options options, struct xpt_saved *saved)
{
	return xpt_continuous_save(continuous, &options, saved);
}

static void test_latest(void)
{
	const struct xpt_save_options all = { .size = sizeof(all) };
	struct target target = target_start("50", "500", "1");
	struct xpt_save_options options = all;
	struct xpt_saved saved = { .size = sizeof(saved) };
	struct xpt_continuous *continuous;

	CHECK_IS(start(target.pid, NULL, on_message, &continuous), 0);
	CHECK_IS((options.inferences = 1, save_error(continuous, options, &saved)), -ENOENT);
	target_go(&target);
	target_end(&target);
	status_with(continuous, 50);
	options = all;
	options.program = PROGRAM_1;
	CHECK_IS(save_error(continuous, options, &saved), 0);
	CHECK_IS(saved.inferences, 1);
	CHECK_IS(runs_in_trace(saved.path, PROGRAM_0), 0);
	CHECK_IS(runs_in_trace(saved.path, PROGRAM_1), 1);
	options.inferences = 7;
	CHECK_IS(save_error(continuous, options, &saved), 0);
	CHECK_IS(runs_in_trace(saved.path, PROGRAM_1), 7);
	options.program = "nobody";
	CHECK_IS(save_error(continuous, options, &saved), -ENOENT);
	options = all;
	options.has_core = 1;
	options.core = 77;
	CHECK_IS(save_error(continuous, options, &saved), -ENOENT);
	options = all;
	options.program = "";
	CHECK_IS(save_error(continuous, options, &saved), -EINVAL);
	options = all;
	options.size = 1;
	CHECK_IS(save_error(continuous, options, &saved), -EINVAL);
	CHECK_IS(status_of(continuous).saves, 2);
	xpt_continuous_destroy(continuous);
	target_free(&target);
}

/* ---- only one ---- */

static void test_busy(void)
{
	struct target one = target_start("1", "1", "1"), other = target_start("1", "1", "1");
	struct xpt_continuous *first, *second = NULL;
	char name[32];

	snprintf(name, sizeof(name), "public-%d", (int)getpid());
	CHECK_IS(start(one.pid, name, on_message, &first), 0);
	CHECK_IS(start(one.pid, NULL, NULL, &second), -EBUSY);
	CHECK_IS(start(other.pid, name, NULL, &second), -EADDRINUSE);
	CHECK_IS(start(other.pid, NULL, on_message, &second), 0);
	xpt_continuous_destroy(first);
	CHECK_IS(start(one.pid, name, on_message, &first), 0);
	xpt_continuous_destroy(first);
	xpt_continuous_destroy(second);
	target_go(&one);
	target_go(&other);
	target_end(&one);
	target_end(&other);
	target_free(&one);
	target_free(&other);
}

/* ---- by its name ---- */

struct stopping {
	struct xpt_remote remote;
	int error;
};

static void *stop_remote(void *context)
{
	struct stopping *stopping = (struct stopping *)context;

	stopping->error = xpt_remote_stop(&stopping->remote);
	return NULL;
}

static void test_remote(void)
{
	struct target target = target_start("20", "500", "1");
	struct stopping stopping = { .remote = { .size = sizeof(stopping.remote) }, .error = 1 };
	struct xpt_continuous_status status = { .size = sizeof(status) };
	struct xpt_saved saved = { .size = sizeof(saved) };
	struct xpt_continuous *continuous;
	pthread_t thread;
	char name[32];

	snprintf(name, sizeof(name), "public-%d", (int)getpid());
	stopping.remote.name = name;
	CHECK_IS(xpt_remote_status(&stopping.remote, &status), -ENOENT);
	CHECK_IS(start(target.pid, name, on_message, &continuous), 0);
	target_go(&target);
	target_end(&target);
	status_with(continuous, 20);
	CHECK_IS(xpt_remote_status(&stopping.remote, &status), 0);
	CHECK(status.pid == getpid() && status.window_inferences == 20, "%d, %llu", (int)status.pid,
	      (unsigned long long)status.window_inferences);
	CHECK_IS(xpt_remote_save(&stopping.remote, NULL, &saved), 0);
	CHECK_IS(runs_in_trace(saved.path, PROGRAM_0), target_inferences(&target, PROGRAM_0));
	CHECK_IS(runs_in_trace(saved.path, PROGRAM_1), target_inferences(&target, PROGRAM_1));
	xpt_continuous_interrupt(continuous);
	CHECK_IS(xpt_continuous_wait(continuous, 20 * SECOND), -EINTR);
	if (pthread_create(&thread, NULL, stop_remote, &stopping))
		target_give_up("thread");
	CHECK_IS(xpt_continuous_wait(continuous, 20 * SECOND), 1);
	xpt_continuous_destroy(continuous);
	pthread_join(thread, NULL);
	CHECK_IS(stopping.error, 0);
	CHECK(xpt_remote_status(&stopping.remote, &status) != 0, "it still answers");
	target_free(&target);
}

static const struct test tests[] = {
	{ "saves", test_saves, 1 },
	{ "latest", test_latest, 1 },
	{ "busy", test_busy, 1 },
	{ "remote", test_remote, 1 },
};

int main(void)
{
	snprintf(folder, sizeof(folder), "continuous-%d", (int)getpid());
	if (mkdir(folder, 0700))
		target_give_up(folder);
	return run_tests("continuous", tests, sizeof(tests) / sizeof(tests[0])) != 0;
}
