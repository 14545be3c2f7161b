/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recordings, windows, streams and captures of code objects in one session; needs root. For shared.py, until the process or command ends:
 * "shared codes PID DIR DIR TRACE" records with two captures, "shared samples DIR RUNTIME COMMAND..." makes traces of all, of one
 * inference in four and of one program.
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <string.h>
#include <time.h>

#include <xputrace/codeobj.h>
#include <xputrace/continuous.h>
#include <xputrace/recording.h>
#include <xputrace/report.h>
#include <xputrace/stream.h>

#include "check.h"
#include "target.h"

#define FOREVER_ALMOST 20000000000ull /* ns */
#define LONG 10000000000ull	      /* ns */
#define SHORT 300000000ull	      /* ns */

static void on_message(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	(void)level;
	fprintf(stderr, "%s\n", text);
}

static struct xpt_session *create_session(const pid_t *pid, xpt_log_fn log)
{
	struct xpt_session_options options;
	struct xpt_session *session = NULL;

	memset(&options, 0, sizeof(options));
	options.size = sizeof(options);
	options.pids = pid;
	options.pid_count = 1;
	options.log = log;
	options.log_level = XPT_LOG_WARN;
	if (xpt_session_create(&options, &session))
		target_give_up("session");
	return session;
}

static struct xpt_recording_options recording_options(struct xpt_session *session)
{
	struct xpt_recording_options options;

	memset(&options, 0, sizeof(options));
	options.size = sizeof(options);
	options.session = session;
	return options;
}

static struct xpt_codeobj_capture *create_capture(struct xpt_session *session, enum xpt_codeobj_mode mode,
						  const char *output)
{
	struct xpt_codeobj_capture *capture = NULL;
	struct xpt_codeobj_options options;

	memset(&options, 0, sizeof(options));
	options.size = sizeof(options);
	options.session = session;
	options.output = output;
	options.user = getuid();
	options.group = getgid();
	options.code_wait_limit = FOREVER_ALMOST;
	if (xpt_codeobj_capture_create(&capture, mode, 0, &options))
		target_give_up("capture");
	return capture;
}

/* ---- streams that count ---- */

struct counted {
	unsigned long long inferences, taken, lost;
	struct xpt_stream *stream;
};

static void on_report(void *context, const struct xpt_profile_report *report)
{
	struct counted *counted = (struct counted *)context;
	size_t i;

	for (i = 0; i < report->program_count; i++) {
		counted->inferences += report->programs[i].inferences;
		counted->taken += report->programs[i].taken;
		counted->lost += report->programs[i].lost;
	}
}

static int create_stream(struct xpt_session *session, struct counted *counted, unsigned int sample_every)
{
	struct xpt_stream_options options;

	memset(&options, 0, sizeof(options));
	memset(counted, 0, sizeof(*counted));
	options.size = sizeof(options);
	options.match = "";
	options.sample_every = sample_every;
	options.callback = on_report;
	options.context = counted;
	return xpt_stream_create(session, &options, &counted->stream);
}

static void end_stream(struct counted *counted)
{
	CHECK_IS(xpt_stream_stop(counted->stream), 0);
	CHECK_IS(xpt_stream_flush(counted->stream), 0);
	xpt_stream_destroy(counted->stream);
}

/* ---- all at once ---- */

static void check_objects(struct xpt_codeobj_capture *capture)
{
	const struct xpt_codeobj_list *list = NULL;
	size_t i, loads = 0;

	CHECK_IS(xpt_codeobj_capture_wait(capture, FOREVER_ALMOST), 1);
	CHECK_IS(xpt_codeobj_capture_stop(capture), 0);
	CHECK_IS(xpt_codeobj_capture_get(capture, &list), 0);
	for (i = 0; list && i < list->count; i++) {
		if (!list->objects[i]->function)
			continue;
		CHECK_IS(strlen(list->objects[i]->sha256), 64);
		CHECK_IS(list->objects[i]->missing, 0);
		loads++;
	}
	CHECK_IS(loads, 2);
	CHECK_IS(list ? list->incomplete + list->lost : 1, 0);
	xpt_codeobj_capture_free(capture);
}

static char folder[] = "/tmp/xputrace-shared-XXXXXX"; /* of saved windows */

static struct xpt_continuous *create_window(struct xpt_session *session, const char *directory, const char *name)
{
	struct xpt_continuous_options options;
	struct xpt_continuous *window = NULL;

	memset(&options, 0, sizeof(options));
	options.size = sizeof(options);
	options.session = session;
	options.output_dir = directory;
	options.window_time = XPT_NONE;
	options.name = name;
	CHECK_IS(xpt_continuous_create(&options, &window), 0);
	return window;
}

/* As soon as the window has this many inferences, or after 20 s. */
static void await_inferences(struct xpt_continuous *window, unsigned long long inferences)
{
	const struct timespec pause = { 0, 10000000 };
	struct xpt_continuous_status status;
	int i;

	memset(&status, 0, sizeof(status));
	status.size = sizeof(status);
	for (i = 0; i < 2000 && status.window_inferences < inferences; i++) {
		nanosleep(&pause, NULL);
		CHECK_IS(xpt_continuous_status(window, &status), 0);
	}
	CHECK_IS(status.window_inferences, inferences);
	CHECK_IS(status.lost + status.evicted_records, 0);
}

/* How many inferences a file of all of them has; it is removed. */
static unsigned long long save_window(struct xpt_continuous *window)
{
	struct xpt_save_options options;
	struct xpt_saved saved;

	memset(&options, 0, sizeof(options));
	memset(&saved, 0, sizeof(saved));
	options.size = sizeof(options);
	options.inferences = 1000000;
	saved.size = sizeof(saved);
	CHECK_IS(xpt_continuous_save(window, &options, &saved), 0);
	CHECK_IS(unlink(saved.path), 0);
	return saved.inferences;
}

/*
 * Two recordings, one of which ends early, two windows likewise, two streams of different rates and two captures: each as if it were
 * alone.
 */
static void test_all(void)
{
	struct target target = target_start("600", "400", "1");
	struct xpt_session *session = create_session(&target.pid, on_message);
	struct xpt_codeobj_capture *with_bytes = create_capture(session, XPT_CODEOBJ_COPY_MEMORY, NULL);
	struct xpt_codeobj_capture *without = create_capture(session, XPT_CODEOBJ_SYMBOLS, NULL);
	struct xpt_recording_options options = recording_options(session);
	struct xpt_recording *whole = NULL, *begin = NULL;
	struct xpt_continuous *window, *early;
	struct counted every, some;
	unsigned long long made;

	if (!mkdtemp(folder))
		target_give_up(folder);
	window = create_window(session, folder, "shared-test");
	early = create_window(session, folder, NULL);
	options.code_objects = 1;
	CHECK_IS(xpt_recording_create(&options, &whole), 0);
	options = recording_options(session);
	options.duration = SHORT;
	options.level = XPT_LEVEL_BASIC;
	CHECK_IS(xpt_recording_create(&options, &begin), 0);
	CHECK_IS(create_stream(session, &every, XPT_SAMPLE_FULL), 0);
	CHECK_IS(create_stream(session, &some, 8), 0);
	CHECK_IS(xpt_stream_start(every.stream), 0);
	CHECK_IS(xpt_stream_start(some.stream), 0);
	CHECK_IS(xpt_recording_start(begin), 0);
	CHECK_IS(xpt_codeobj_capture_start(without), 0);
	CHECK_IS(xpt_continuous_start(window), 0);
	CHECK_IS(xpt_session_start(session), 0);
	CHECK_IS(xpt_continuous_start(window), -EALREADY);
	CHECK_IS(xpt_recording_start(begin), -EALREADY);
	CHECK_IS(xpt_codeobj_capture_start(without), -EBUSY);
	target_go(&target);
	CHECK_IS(xpt_recording_run(begin), XPT_END_DURATION);
	CHECK_IS(xpt_recording_finish(begin), 0);
	CHECK(save_window(early) > 0, "an empty window");
	xpt_continuous_stop(early);
	xpt_continuous_interrupt(window);
	CHECK_IS(xpt_continuous_wait(window, FOREVER_ALMOST), -EINTR);
	target_end(&target);
	made = target_inferences(&target, PROGRAM_0) + target_inferences(&target, PROGRAM_1);
	await_inferences(window, made);
	CHECK_IS(save_window(window), made);
	CHECK_IS(xpt_recording_run(whole), XPT_END_TARGETS);
	CHECK_IS(xpt_session_wait(session, FOREVER_ALMOST), 1);
	end_stream(&every);
	end_stream(&some);
	CHECK_IS(xpt_recording_finish(whole), 0);
	check_objects(with_bytes);
	check_objects(without);
	CHECK_IS(xpt_continuous_wait(early, 0), 1);
	xpt_continuous_destroy(early);
	xpt_continuous_destroy(window);
	CHECK_IS(rmdir(folder), 0);
	CHECK_IS(every.inferences, made);
	CHECK_IS(every.taken, made);
	CHECK_IS(some.inferences, made);
	CHECK(some.taken >= made / 8 && some.taken <= made / 8 + 2, "%llu of %llu", some.taken, made);
	CHECK_IS(every.lost + some.lost, 0);
	CHECK_IS(xpt_recording_runs(whole), made);
	CHECK(xpt_recording_runs(begin) > 0 && xpt_recording_runs(begin) < made / 2, "%llu of %llu",
	      (unsigned long long)xpt_recording_runs(begin), made);
	xpt_recording_destroy(begin);
	xpt_recording_destroy(whole);
	xpt_session_destroy(session);
	target_free(&target);
}

static int create_claiming(struct xpt_session *session, const char *directory, struct xpt_continuous **window)
{
	struct xpt_continuous_options options;

	memset(&options, 0, sizeof(options));
	options.size = sizeof(options);
	options.session = session;
	options.output_dir = directory;
	options.claims = 1;
	return xpt_continuous_create(&options, window);
}

/* One window claims the target until it is destroyed; others may be there that claim nothing; a session that has started claims no more. */
static void test_claims(void)
{
	struct target target = target_start("1", "1", "1");
	struct xpt_session *session = create_session(&target.pid, on_message),
			   *other = create_session(&target.pid, on_message);
	struct xpt_continuous *window = NULL, *second = NULL;
	char directory[] = "/tmp/xputrace-shared-XXXXXX";

	if (!mkdtemp(directory))
		target_give_up(directory);
	CHECK_IS(create_claiming(session, directory, &window), 0);
	CHECK_IS(create_claiming(other, directory, &second), -EBUSY);
	CHECK(!second, "there is one");
	xpt_continuous_destroy(create_window(other, directory, NULL));
	xpt_continuous_destroy(window);
	CHECK_IS(create_claiming(other, directory, &second), 0);
	CHECK_IS(xpt_session_start(session), 0);
	CHECK_IS(create_claiming(session, directory, &window), -EINVAL);
	xpt_continuous_destroy(second);
	xpt_session_destroy(other);
	xpt_session_destroy(session);
	CHECK_IS(rmdir(directory), 0);
	target_go(&target);
	target_end(&target);
	target_free(&target);
}

/* What is chosen twice, or comes too late, is refused, and harms nothing. */
static void test_refused(void)
{
	struct target target = target_start("10", "0", "1");
	struct xpt_session *session = create_session(&target.pid, NULL);
	struct xpt_recording_options options = recording_options(session);
	struct xpt_codeobj_options objects;
	struct xpt_recording *sampled = NULL, *other = NULL;
	struct xpt_codeobj_capture *capture = NULL;
	struct counted counted;
	unsigned long long made;

	memset(&objects, 0, sizeof(objects));
	objects.size = sizeof(objects);
	objects.session = session;
	objects.pids = &target.pid;
	objects.pid_count = 1;
	CHECK_IS(xpt_codeobj_capture_create(&capture, XPT_CODEOBJ_SYMBOLS, 0, &objects), -EINVAL);
	options.pids = &target.pid;
	options.pid_count = 1;
	CHECK_IS(xpt_recording_create(&options, &other), -EINVAL);
	options = recording_options(session);
	options.budget = 2;
	CHECK_IS(xpt_recording_create(&options, &other), -EINVAL);
	options = recording_options(session);
	options.output = "missing/trace.json";
	options.format = XPT_OUTPUT_CHROME;
	CHECK_IS(xpt_recording_create(&options, &other), -ENOENT);
	options = recording_options(session);
	options.sample_every = 1000001;
	CHECK_IS(xpt_recording_create(&options, &sampled), -EINVAL);
	xpt_session_destroy(session);

	session = create_session(&target.pid, on_message);
	options.session = session;
	options.sample_every = 2;
	CHECK_IS(xpt_recording_create(&options, &sampled), 0);
	CHECK_IS(create_stream(session, &counted, XPT_SAMPLE_FULL), 0);
	CHECK_IS(xpt_stream_start(counted.stream), 0);
	CHECK_IS(xpt_session_start(session), 0);
	target_go(&target);
	target_end(&target);
	CHECK_IS(xpt_recording_run(sampled), XPT_END_TARGETS);
	end_stream(&counted);
	CHECK_IS(xpt_recording_finish(sampled), 0);
	made = target_inferences(&target, PROGRAM_0) + target_inferences(&target, PROGRAM_1);
	CHECK_IS(xpt_recording_runs(sampled), made);
	CHECK_IS(counted.inferences, made);
	CHECK_IS(counted.taken, made);
	xpt_recording_destroy(sampled);
	xpt_session_destroy(session);
	target_free(&target);
}

/* ---- after the start ---- */

/* Until the session has recorded this number of calls more, or has ended. */
static void await_calls(struct xpt_session *session, unsigned long long calls)
{
	struct xpt_session_status status;
	unsigned long long from;

	memset(&status, 0, sizeof(status));
	status.size = sizeof(status);
	CHECK_IS(xpt_session_status(session, &status), 0);
	from = status.calls;
	while (status.calls < from + calls && !xpt_session_wait(session, 10000000))
		CHECK_IS(xpt_session_status(session, &status), 0);
	CHECK(status.calls >= from + calls, "%llu", (unsigned long long)status.calls - from);
}

/* No call begins while one joins and another leaves: each call is counted once. */
static void pause_target(const struct target *target)
{
	int status;

	kill(target->pid, SIGSTOP);
	CHECK_IS(waitpid(target->pid, &status, WUNTRACED), target->pid);
}

struct listed {
	unsigned long long calls, errors, unknown;
};

static int on_program(void *context, const struct xpt_program_info *program)
{
	struct listed *listed = (struct listed *)context;

	listed->calls += program->calls;
	listed->errors += program->errors;
	listed->unknown += strcmp(program->name, PROGRAM_0) && strcmp(program->name, PROGRAM_1);
	return 0;
}

/* Joins, and is started once only. */
static struct xpt_recording *join(struct xpt_session *session, const char *path)
{
	struct xpt_recording_options options = recording_options(session);
	struct xpt_recording *recording = NULL;

	options.output = path;
	options.format = XPT_OUTPUT_RECORDING;
	CHECK_IS(xpt_recording_create(&options, &recording), 0);
	CHECK_IS(xpt_recording_run(recording), -EINVAL);
	CHECK_IS(xpt_recording_start(recording), 0);
	CHECK_IS(xpt_recording_start(recording), -EALREADY);
	return recording;
}

/* A recording makes a page, too. */
static void check_page(struct xpt_report_options *report)
{
	char place[] = "/tmp/xputrace-page-XXXXXX", begin[16] = "";
	int file = mkstemp(place);

	report->summary_json = NULL;
	report->format = XPT_OUTPUT_HTML;
	report->output = place;
	CHECK_IS(xpt_report_create(report), 0);
	CHECK_IS(pread(file, begin, 15, 0), 15);
	CHECK(!strcmp(begin, "<!DOCTYPE html>"), "%s", begin);
	close(file);
	unlink(place);
}

/* How many inferences it has. Nothing is missing in it, programs have their names, and its file has the same. */
static unsigned long long leave(struct xpt_recording *recording, const char *path)
{
	struct xpt_report_options report;
	struct listed listed;
	char *live = NULL, *read = NULL;
	unsigned long long runs;

	CHECK_IS(xpt_recording_finish(recording), 0);
	runs = xpt_recording_runs(recording);
	memset(&listed, 0, sizeof(listed));
	CHECK_IS(xpt_recording_programs(recording, on_program, &listed), 0);
	CHECK_IS(listed.calls, runs);
	CHECK_IS(listed.errors + listed.unknown, 0);
	memset(&report, 0, sizeof(report));
	report.size = sizeof(report);
	report.input = path;
	report.summary_descriptor = -1;
	report.summary_json = &read;
	report.log = on_message;
	CHECK_IS(xpt_recording_summary_json(recording, &live), 0);
	CHECK_IS(xpt_report_create(&report), 0);
	CHECK(live && read && !strcmp(live, read), "%.150s, %.150s", live, read);
	free(live);
	free(read);
	check_page(&report);
	CHECK_IS(unlink(path), 0);
	xpt_recording_destroy(recording);
	return runs;
}

static void test_late(void)
{
	char place[] = "/tmp/xputrace-late-XXXXXX", path[100];
	struct target target = target_start("800", "400", "2");
	struct xpt_session *session = create_session(&target.pid, on_message);
	struct xpt_recording_options options = recording_options(session);
	struct xpt_recording *recording = NULL, *detailed = NULL, *whole = NULL;
	struct xpt_continuous *window = NULL;
	struct counted every, late;
	unsigned long long made, kept, last, runs = 0;
	unsigned int i;

	if (!mkdtemp(place))
		target_give_up(place);
	snprintf(path, sizeof(path), "%s/late.xpt", place);
	CHECK_IS(xpt_recording_create(&options, &whole), 0);
	CHECK_IS(create_stream(session, &every, 8), 0);
	CHECK_IS(xpt_stream_start(every.stream), 0);
	options.output = path;
	options.format = XPT_OUTPUT_RECORDING;
	CHECK_IS(xpt_recording_create(&options, &recording), 0);
	CHECK_IS(xpt_session_start(session), 0);
	options = recording_options(session);
	options.level = XPT_LEVEL_DETAILED;
	CHECK_IS(xpt_recording_create(&options, &detailed), -ENODATA);
	options = recording_options(session);
	options.code_objects = 1;
	CHECK_IS(xpt_recording_create(&options, &detailed), -ENODATA);
	target_go(&target);
	for (i = 0; i < 5; i++) {
		await_calls(session, 150);
		pause_target(&target);
		runs += leave(recording, path);
		recording = join(session, path);
		if (i == 4)
			window = create_window(session, place, "late-test");
		CHECK_IS(window ? xpt_continuous_start(window) : 0, 0);
		kill(target.pid, SIGCONT);
	}
	CHECK_IS(create_stream(session, &late, XPT_SAMPLE_FULL), 0);
	CHECK_IS(xpt_stream_start(late.stream), 0);
	target_end(&target);
	made = target_inferences(&target, PROGRAM_0) + target_inferences(&target, PROGRAM_1);
	CHECK_IS(xpt_session_wait(session, FOREVER_ALMOST), 1);
	CHECK_IS(xpt_recording_run(recording), XPT_END_TARGETS);
	last = leave(recording, path);
	runs += last;
	/* Of an inference that was waited for after the window had begun only that is known: one for each thread. */
	kept = save_window(window);
	CHECK(kept >= last && kept <= last + 2, "%llu of %llu", kept, last);
	xpt_continuous_destroy(window);
	CHECK_IS(xpt_recording_finish(whole), 0);
	end_stream(&every);
	end_stream(&late);
	CHECK_IS(runs, made);
	CHECK_IS(xpt_recording_runs(whole), made);
	CHECK_IS(every.inferences, made);
	CHECK(late.inferences > 0 && late.inferences < made, "%llu of %llu", late.inferences, made);
	xpt_recording_destroy(whole);
	xpt_session_destroy(session);
	CHECK_IS(rmdir(place), 0);
	target_free(&target);
}

#define JOINING 6

/* What was counted of each program was recorded. Returns how many inferences that is. */
static unsigned long long check_recorded(const char *json)
{
	unsigned long long sum = 0, inferences;
	char *recorded;

	while ((json = strstr(json, "\"inferences\":"))) {
		json += strlen("\"inferences\":");
		inferences = strtoull(json, &recorded, 10);
		CHECK(!strncmp(recorded, ",\"recorded\":", 12), "%.50s", json);
		CHECK_IS(strtoull(recorded + 12, NULL, 10), inferences);
		sum += inferences;
	}
	return sum;
}

/* While calls begin all the time: what is counted since is what is recorded since. */
static void test_busy(void)
{
	struct target target = target_start("10000", "0", "2");
	struct xpt_session *session = create_session(&target.pid, on_message);
	struct xpt_recording_options options = recording_options(session);
	struct xpt_recording *recordings[JOINING];
	unsigned long long made, runs = 0, fewer;
	char *summary = NULL;
	size_t i;

	CHECK_IS(xpt_session_start(session), 0);
	for (i = 0; i < JOINING; i++) {
		if (i == 1)
			target_go(&target);
		if (i)
			await_calls(session, 1000);
		CHECK_IS(xpt_recording_create(&options, &recordings[i]), 0);
		CHECK_IS(xpt_recording_start(recordings[i]), 0);
	}
	target_end(&target);
	made = target_inferences(&target, PROGRAM_0) + target_inferences(&target, PROGRAM_1);
	for (i = 0; i < JOINING; i++) {
		CHECK_IS(xpt_recording_run(recordings[i]), XPT_END_TARGETS);
		CHECK_IS(xpt_recording_finish(recordings[i]), 0);
		fewer = xpt_recording_runs(recordings[i]);
		CHECK(fewer > 0 && fewer < (i ? runs : made + 1), "%llu of %llu", fewer, runs);
		runs = fewer;
		CHECK_IS(xpt_recording_summary_json(recordings[i], &summary), 0);
		CHECK_IS(check_recorded(summary), runs);
		free(summary);
		xpt_recording_destroy(recordings[i]);
	}
	xpt_session_destroy(session);
	target_free(&target);
}

/* Everything is put away that was never started. */
static void test_unused(void)
{
	struct target target = target_start("10", "0", "1");
	struct xpt_session *session = create_session(&target.pid, on_message);
	struct xpt_codeobj_capture *capture = create_capture(session, XPT_CODEOBJ_SYMBOLS, NULL);
	struct xpt_recording_options options = recording_options(session);
	struct xpt_recording *finished = NULL, *other = NULL;

	CHECK_IS(xpt_recording_create(&options, &finished), 0);
	CHECK_IS(xpt_recording_create(&options, &other), 0);
	CHECK_IS(xpt_codeobj_capture_wait(capture, 0), -EINVAL);
	CHECK_IS(xpt_recording_finish(finished), 0);
	xpt_recording_destroy(finished);
	xpt_recording_destroy(other);
	xpt_codeobj_capture_free(capture);
	xpt_session_destroy(session);
	target_go(&target);
	target_end(&target);
	target_free(&target);
}

/* Two captures into folders, one of which joins later, and a trace with code objects. */
static int record(pid_t pid, const char *first, const char *second, const char *trace)
{
	struct xpt_session *session = create_session(&pid, on_message);
	struct xpt_codeobj_capture *one = create_capture(session, XPT_CODEOBJ_COPY_MEMORY, first);
	struct xpt_codeobj_capture *early = create_capture(session, XPT_CODEOBJ_COPY_MEMORY, NULL), *other = NULL;
	struct xpt_recording_options options = recording_options(session);
	struct xpt_recording *recording = NULL;
	int error;

	options.output = trace;
	options.format = XPT_OUTPUT_CHROME;
	options.code_objects = 1;
	error = xpt_recording_create(&options, &recording);
	if (!error)
		error = xpt_session_start(session);
	if (!error) {
		xpt_codeobj_capture_free(early);
		other = create_capture(session, XPT_CODEOBJ_COPY_MEMORY, second);
		error = xpt_codeobj_capture_start(other);
	}
	if (!error) {
		puts("started");
		fflush(stdout);
		error = xpt_session_wait(session, XPT_FOREVER) != 1;
	}
	error |= xpt_codeobj_capture_stop(one) | xpt_codeobj_capture_stop(other);
	if (recording)
		error |= xpt_recording_finish(recording);
	xpt_codeobj_capture_free(one);
	xpt_codeobj_capture_free(other);
	xpt_recording_destroy(recording);
	xpt_session_destroy(session);
	return error != 0;
}

static struct xpt_recording *create_trace(struct xpt_recording_options *options, const char *folder, const char *name)
{
	struct xpt_recording *recording = NULL;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s.json", folder, name);
	options->output = path;
	options->format = XPT_OUTPUT_CHROME;
	options->level = XPT_LEVEL_DETAILED;
	if (xpt_recording_create(options, &recording))
		target_give_up(name);
	return recording;
}

/* Beside a stream that wants another part of them. */
static int sample(const char *folder, const char *runtime, char *const *command)
{
	struct xpt_session_options targets;
	struct xpt_recording_options options;
	struct xpt_recording *recordings[3];
	struct xpt_session *session = NULL;
	struct counted third;
	size_t i;
	int error;

	memset(&targets, 0, sizeof(targets));
	targets.size = sizeof(targets);
	targets.command = command;
	targets.runtime_files = &runtime;
	targets.runtime_file_count = *runtime != 0;
	targets.log = on_message;
	targets.wait_limit = LONG; /* other tests place probes meanwhile */
	if (xpt_session_create(&targets, &session))
		target_give_up("session");
	options = recording_options(session);
	recordings[0] = create_trace(&options, folder, "all");
	options.sample_every = 4;
	recordings[1] = create_trace(&options, folder, "samples");
	options = recording_options(session);
	options.match = "0$";
	recordings[2] = create_trace(&options, folder, "chosen");
	error = create_stream(session, &third, 3) || xpt_stream_start(third.stream) || xpt_session_start(session);
	if (!error)
		error = xpt_session_wait(session, XPT_FOREVER) != 1;
	end_stream(&third);
	for (i = 0; i < 3; i++) {
		error |= xpt_recording_finish(recordings[i]);
		xpt_recording_destroy(recordings[i]);
	}
	xpt_session_destroy(session);
	printf("%llu %llu\n", third.inferences, third.taken);
	return error != 0;
}

static const struct test tests[] = {
	{ "all", test_all, 1 },	  { "refused", test_refused, 1 }, { "late", test_late, 1 },
	{ "busy", test_busy, 1 }, { "unused", test_unused, 1 },	  { "claims", test_claims, 1 },
};

int main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[1], "codes"))
		return record((pid_t)atoi(argv[2]), argv[3], argv[4], argv[5]);
	if (argc > 4 && !strcmp(argv[1], "samples"))
		return sample(argv[2], argv[3], argv + 4);
	return run_tests("shared", tests, sizeof(tests) / sizeof(tests[0])) != 0;
}
