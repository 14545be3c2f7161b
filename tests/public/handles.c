/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiling handles on a program that says itself how often it has run what; needs root. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <string.h>

#include <xputrace/profile.h>
#include <xputrace/session.h>
#include <xputrace/stream.h>

#include "check.h"
#include "target.h"

#define SECOND 1000000000ull
#define PATIENCE (20 * SECOND) /* nothing takes so long */
#define REPORT_EVERY (SECOND / 10)

static void on_message(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	(void)level;
	fprintf(stderr, "%s\n", text);
}

/* A session on one process; log NULL where messages are expected and would only confuse. */
static struct xpt_session *open_session(pid_t pid, xpt_log_fn log)
{
	struct xpt_session_options options = {
		.size = sizeof(options), .pids = &pid, .pid_count = 1, .log = log, .log_level = XPT_LOG_WARN
	};
	struct xpt_session *session = NULL;

	if (xpt_session_create(&options, &session))
		target_give_up("session");
	return session;
}

/* ---- N samples ---- */

struct counted {
	struct xpt_session *session;
	struct xpt_profile *profile;
	int restarts; /* to be made from the callback */
	/* Of the callbacks: */
	int reports, unlike, restart_error, wait_error, session_wait_error;
	uint64_t first[4], taken[4], skipped;
	enum xpt_profile_end end[4];
};

static void on_counted(void *context, const struct xpt_profile_report *report)
{
	struct counted *counted = (struct counted *)context;
	const struct xpt_program_report *program = report->programs;
	int number = counted->reports++ % 4;
	uint64_t value, i;

	counted->end[number] = report->end_reason;
	counted->taken[number] = report->program_count == 1 ? program->taken : 0;
	if (report->program_count != 1 || program->sample_count == 0)
		return;
	counted->first[number] = program->samples[0].number;
	counted->skipped = program->skipped;
	for (i = 0; i < program->sample_count; i++) {
		const struct xpt_sample *sample = XPT_AT(program->samples, program->sample_size, i);

		/* The program is run by one thread: one inference after the other. */
		counted->unlike += sample->number != counted->first[number] + i;
		counted->unlike += xpt_sample_column(sample, XPT_COLUMN_TOTAL_ROUND_TRIP, &value) != 0;
		counted->unlike += value != sample->time[XPT_TIME_CALL_ENDS] - sample->time[XPT_TIME_CALL_BEGINS];
		counted->unlike += sample->time[XPT_TIME_CALL_ENDS] > report->end;
	}
	counted->wait_error = xpt_profile_wait(counted->profile, 0);
	counted->session_wait_error = xpt_session_wait(counted->session, 0);
	if (counted->restarts-- > 0)
		counted->restart_error = xpt_profile_start(counted->profile);
}

static void open_counted(struct counted *counted, struct xpt_session *session, const char *program, uint64_t samples,
			 uint64_t skip)
{
	XPT_OPTS(xpt_program_choice, choice, .name = program);
	struct xpt_profile_options options = { .size = sizeof(options),
					       .program = &choice,
					       .samples = samples,
					       .skip = skip,
					       .callback = on_counted,
					       .context = counted };

	counted->session = session;
	CHECK_IS(xpt_profile_create(session, &options, &counted->profile), 0);
	CHECK_IS(xpt_profile_start(counted->profile), 0);
	CHECK_IS(xpt_profile_start(counted->profile), -EALREADY);
}

/* Several handles at once, each as if it were alone; started again from inside a callback. */
static void test_counted(void)
{
	struct target target = target_start("400", "400", "1");
	struct xpt_session *session = open_session(target.pid, on_message);
	struct counted handles[5];
	int i;

	memset(handles, 0, sizeof(handles));
	handles[0].restarts = 1;
	open_counted(&handles[0], session, PROGRAM_0, 10, 0);
	open_counted(&handles[1], session, PROGRAM_0, 25, 0);
	open_counted(&handles[2], session, PROGRAM_1, 10, 0);
	open_counted(&handles[3], session, PROGRAM_0, 3, 5);
	open_counted(&handles[4], session, "no such program", 1, 0);
	CHECK_IS(xpt_session_start(session), 0);
	CHECK_IS(xpt_session_start(session), -EALREADY);
	target_go(&target);
	for (i = 0; i < 4; i++)
		CHECK_IS(xpt_profile_wait(handles[i].profile, PATIENCE), 1);
	CHECK_IS(xpt_profile_wait(handles[4].profile, 0), 0);
	CHECK_IS(xpt_profile_stop(handles[4].profile), 0);
	CHECK_IS(xpt_profile_wait(handles[4].profile, PATIENCE), 1);
	CHECK_IS(xpt_profile_stop(handles[0].profile), -EALREADY);
	target_end(&target);
	for (i = 0; i < 5; i++) {
		CHECK_IS(handles[i].reports, i == 0 ? 2 : i == 4 ? 0 : 1);
		CHECK_IS(handles[i].unlike, 0);
		CHECK_IS(handles[i].restart_error, 0);
		CHECK_IS(handles[i].wait_error, i == 4 ? 0 : -EDEADLK);
		CHECK_IS(handles[i].session_wait_error, i == 4 ? 0 : -EDEADLK);
		CHECK_IS(handles[i].end[0], i == 4 ? 0 : XPT_PROFILE_COMPLETE);
	}
	CHECK(handles[0].taken[0] == 10 && handles[0].taken[1] == 10, "the restarted handle has other samples");
	CHECK(handles[0].first[0] == 0 && handles[0].first[1] >= 10, "the second run begins at %llu",
	      (unsigned long long)handles[0].first[1]);
	CHECK(handles[1].taken[0] == 25 && handles[1].first[0] == 0, "handle 1 has other samples");
	CHECK(handles[2].taken[0] == 10 && handles[2].first[0] == 0, "handle 2 has other samples");
	CHECK(handles[3].taken[0] == 3 && handles[3].first[0] == 5 && handles[3].skipped == 5,
	      "what was to be skipped is there");
	for (i = 0; i < 5; i++)
		xpt_profile_destroy(handles[i].profile);
	xpt_session_destroy(session);
	target_free(&target);
}

/* Fewer inferences than samples: stopped, or released, with what there is. */
static void test_counted_ends_early(void)
{
	struct target target = target_start("40", "400", "1");
	struct xpt_session *session = open_session(target.pid, on_message);
	struct counted released, stopped;
	unsigned long long made;

	memset(&released, 0, sizeof(released));
	memset(&stopped, 0, sizeof(stopped));
	open_counted(&released, session, PROGRAM_0, 100000, 0);
	open_counted(&stopped, session, PROGRAM_1, 100000, 0);
	CHECK_IS(xpt_session_start(session), 0);
	CHECK_IS(xpt_profile_stop(stopped.profile), 0);
	CHECK_IS(xpt_profile_wait(stopped.profile, PATIENCE), 1);
	target_go(&target);
	CHECK_IS(xpt_session_wait(session, PATIENCE), 1);
	xpt_profile_wait(released.profile, PATIENCE);
	target_end(&target);
	made = target_inferences(&target, PROGRAM_0);
	CHECK_IS(released.reports, 1);
	CHECK_IS(released.taken[0], made);
	CHECK_IS(released.end[0], XPT_PROFILE_RELEASED);
	CHECK_IS(stopped.reports, 0);
	xpt_profile_destroy(released.profile);
	xpt_profile_destroy(stopped.profile);
	xpt_session_destroy(session);
	target_free(&target);
}

/* ---- streams ---- */

struct streamed {
	struct xpt_session *session;
	struct xpt_stream *stream;
	/* What the reports add up to, by program; [2]: others. */
	uint64_t inferences[3], taken[3], rows[3], lost[3];
	uint64_t reports, last_end, gaps, off_clock, out_of_interval;
	int last_reports; /* with another reason than INTERVAL */
	/* For the test that changes its programs: */
	int add_error, add_again_error, remove_error, remove_again_error, stop_error, flush_error;
	uint64_t after_removal; /* reports with a program that has been removed and reported a last time */
	int stage;
};

static int place_of(const char *name)
{
	return !strcmp(name, PROGRAM_0) ? 0 : !strcmp(name, PROGRAM_1) ? 1 : 2;
}

static void add_report(struct streamed *streamed, const struct xpt_profile_report *report)
{
	uint64_t beyond = report->end_realtime % REPORT_EVERY;
	size_t i, k;

	streamed->gaps += report->sequence != streamed->reports;
	streamed->gaps += streamed->reports && report->start != streamed->last_end;
	streamed->last_end = report->end;
	streamed->reports++;
	if (report->end_reason != XPT_PROFILE_INTERVAL)
		streamed->last_reports++;
	else
		streamed->off_clock += beyond > SECOND / 200 && beyond < REPORT_EVERY - SECOND / 200;
	for (i = 0; i < report->program_count; i++) {
		const struct xpt_program_report *program = XPT_AT(report->programs, report->program_size, i);
		int place = place_of(program->name);

		streamed->inferences[place] += program->inferences;
		streamed->taken[place] += program->taken;
		streamed->lost[place] += program->lost;
		streamed->rows[place] += program->sample_count;
		for (k = 0; k < program->sample_count; k++)
			streamed->out_of_interval += program->samples[k].time[XPT_TIME_CALL_ENDS] > report->end;
	}
}

static void on_streamed(void *context, const struct xpt_profile_report *report)
{
	add_report((struct streamed *)context, report);
}

static void open_stream(struct streamed *streamed, struct xpt_session *session, const char *match,
			unsigned int sample_every, int summary, xpt_profile_report_fn callback)
{
	struct xpt_stream_options options = { .size = sizeof(options),
					      .report_every = REPORT_EVERY,
					      .sample_every = sample_every,
					      .summary = summary,
					      .match = match,
					      .callback = callback,
					      .context = streamed };

	memset(streamed, 0, sizeof(*streamed));
	streamed->session = session;
	CHECK_IS(xpt_stream_create(session, &options, &streamed->stream), 0);
	CHECK_IS(xpt_stream_start(streamed->stream), 0);
	CHECK_IS(xpt_stream_start(streamed->stream), -EALREADY);
}

static void close_stream(struct streamed *streamed)
{
	CHECK_IS(xpt_stream_stop(streamed->stream), 0);
	CHECK_IS(xpt_stream_stop(streamed->stream), -EALREADY);
	CHECK_IS(xpt_stream_flush(streamed->stream), 0);
	xpt_stream_destroy(streamed->stream);
	CHECK_IS(streamed->last_reports, 1);
	CHECK_IS(streamed->gaps, 0);
	CHECK_IS(streamed->off_clock, 0);
	CHECK_IS(streamed->out_of_interval, 0);
}

/* Every inference is in one report, for every way to choose and to sample. */
static void test_streams(void)
{
	struct target target = target_start("500", "500", "2");
	struct xpt_session *session = open_session(target.pid, on_message);
	struct streamed all, one, fourth;
	unsigned long long made[2];
	int i;

	open_stream(&all, session, "", 0, 0, on_streamed);
	open_stream(&one, session, "-0\\.1$", XPT_SAMPLE_FULL, 1, on_streamed);
	open_stream(&fourth, session, "^neuron", XPT_SAMPLE_FOURTH, 0, on_streamed);
	CHECK_IS(xpt_session_start(session), 0);
	target_go(&target);
	CHECK_IS(xpt_session_wait(session, PATIENCE), 1);
	close_stream(&all);
	close_stream(&one);
	close_stream(&fourth);
	target_end(&target);
	for (i = 0; i < 2; i++) {
		made[i] = target_inferences(&target, i ? PROGRAM_1 : PROGRAM_0);
		CHECK(made[i] > 100, "the target has run too little");
		CHECK_IS(all.inferences[i], made[i]);
		CHECK_IS(all.taken[i] + all.lost[i], made[i]);
		CHECK_IS(all.rows[i], all.taken[i]);
		CHECK_IS(fourth.inferences[i], made[i]);
		CHECK(fourth.taken[i] + fourth.lost[i] >= made[i] / 4 && fourth.taken[i] <= made[i] / 4 + 1,
		      "%llu of %llu were sampled", (unsigned long long)fourth.taken[i], made[i]);
	}
	CHECK_IS(all.lost[0] + all.lost[1] + fourth.lost[0] + fourth.lost[1], 0);
	CHECK_IS(one.inferences[1], made[1]);
	CHECK_IS(one.taken[1], made[1]);
	CHECK_IS(one.rows[1], 0);
	CHECK_IS(one.inferences[0], 0);
	CHECK(all.reports >= 9, "only %llu reports in a second", (unsigned long long)all.reports);
	xpt_session_destroy(session);
	target_free(&target);
}

static const struct xpt_program_choice first_program = { .size = sizeof(first_program), .name = PROGRAM_0 },
				       second_program = { .size = sizeof(second_program), .name = PROGRAM_1 };

/* Nothing, then the first program, then the second one in its place, then the end: all said inside the callback. */
static void on_change(void *context, const struct xpt_profile_report *report)
{
	struct streamed *streamed = (struct streamed *)context;
	uint64_t before = streamed->inferences[0];

	add_report(streamed, report);
	if (streamed->stage == 0) {
		streamed->add_error = xpt_stream_add(streamed->stream, &first_program);
		streamed->add_again_error = xpt_stream_add(streamed->stream, &first_program);
		streamed->stage = 1;
	} else if (streamed->stage == 1 && streamed->inferences[0]) {
		streamed->remove_error = xpt_stream_remove(streamed->stream, &first_program);
		streamed->remove_again_error = xpt_stream_remove(streamed->stream, &first_program);
		streamed->add_error |= xpt_stream_add(streamed->stream, &second_program);
		streamed->stage = 2;
	} else if (streamed->stage >= 2 && streamed->stage < 8) {
		/* Its last report may still have been on its way. */
		if (streamed->stage >= 4)
			streamed->after_removal += streamed->inferences[0] - before;
		streamed->stage++;
	} else if (streamed->stage == 8) {
		streamed->flush_error = xpt_stream_flush(streamed->stream);
		streamed->stop_error = xpt_stream_stop(streamed->stream);
		streamed->stage = 9;
	} else if (report->end_reason != XPT_PROFILE_INTERVAL) {
		xpt_session_interrupt(streamed->session);
	}
}

static void test_changes(void)
{
	struct target target = target_start("0", "400", "1");
	struct xpt_session *session = open_session(target.pid, on_message);
	struct streamed streamed;
	unsigned long long made[2];

	open_stream(&streamed, session, NULL, 0, 0, on_change);
	CHECK_IS(xpt_session_start(session), 0);
	target_go(&target);
	CHECK_IS(xpt_session_wait(session, PATIENCE), -EINTR);
	CHECK_IS(xpt_stream_flush(streamed.stream), 0);
	target_stop(&target);
	target_end(&target);
	made[0] = target_inferences(&target, PROGRAM_0);
	made[1] = target_inferences(&target, PROGRAM_1);
	CHECK_IS(streamed.add_error, 0);
	CHECK_IS(streamed.add_again_error, -EEXIST);
	CHECK_IS(streamed.remove_error, 0);
	CHECK_IS(streamed.remove_again_error, -ENOENT);
	CHECK_IS(streamed.flush_error, -EDEADLK);
	CHECK_IS(streamed.stop_error, 0);
	CHECK_IS(streamed.last_reports, 1);
	CHECK_IS(streamed.gaps, 0);
	CHECK_IS(streamed.after_removal, 0);
	CHECK(streamed.inferences[0] > 0 && streamed.inferences[0] < made[0], "program 0: %llu of %llu",
	      (unsigned long long)streamed.inferences[0], made[0]);
	CHECK(streamed.inferences[1] > 0 && streamed.inferences[1] < made[1], "program 1: %llu of %llu",
	      (unsigned long long)streamed.inferences[1], made[1]);
	CHECK_IS(streamed.inferences[2], 0);
	xpt_stream_destroy(streamed.stream);
	xpt_session_destroy(session);
	target_free(&target);
}

/* ---- wrong options ---- */

static void on_nothing(void *context, const struct xpt_profile_report *report)
{
	(void)context;
	(void)report;
}

static int profile_error(struct xpt_session *session, struct xpt_profile_options options)
{
	struct xpt_profile *profile = NULL;
	int error = xpt_profile_create(session, &options, &profile);

	if (!error)
		xpt_profile_destroy(profile);
	return error;
}

static void test_profile_options(void)
{
	struct target target = target_start("1", "1", "1");
	struct xpt_session *session = open_session(target.pid, NULL);
	XPT_OPTS(xpt_program_choice, program, .name = "x");
	const XPT_OPTS(xpt_profile_options, good, .program = &program, .samples = 1, .callback = on_nothing);
	struct xpt_profile_options options = good;

	CHECK_IS(profile_error(session, options), 0);
	options.samples = 0;
	CHECK_IS(profile_error(session, options), -EINVAL);
	options.samples = XPT_SAMPLES_MAX + 1;
	CHECK_IS(profile_error(session, options), -EINVAL);
	options = good;
	options.callback = NULL;
	CHECK_IS(profile_error(session, options), -EINVAL);
	options = good;
	program.name = NULL;
	CHECK_IS(profile_error(session, options), -EINVAL);
	program.handle = 0x1234;
	CHECK_IS(profile_error(session, options), 0);
	program.size = 0;
	CHECK_IS(profile_error(session, options), -EINVAL);
	program.size = sizeof(program);
	options.program = NULL;
	CHECK_IS(profile_error(session, options), -EINVAL);
	options = good;
	options.summary = 1;
	options.type = XPT_PROFILE_TRACE;
	CHECK_IS(profile_error(session, options), -EINVAL);
	options = good;
	options.type = (enum xpt_profile_type)7;
	CHECK_IS(profile_error(session, options), -EINVAL);
	options = good;
	options.size = 0;
	CHECK_IS(profile_error(session, options), -EINVAL);
	xpt_session_destroy(session);
	target_go(&target);
	target_end(&target);
	target_free(&target);
}

static int stream_error(struct xpt_session *session, struct xpt_stream_options options)
{
	struct xpt_stream *stream = NULL;
	int error = xpt_stream_create(session, &options, &stream);

	if (!error)
		xpt_stream_destroy(stream);
	return error;
}

static void test_stream_options(void)
{
	struct target target = target_start("1", "1", "1");
	struct xpt_session *session = open_session(target.pid, NULL);
	const struct xpt_stream_options good = { .size = sizeof(good), .callback = on_nothing };
	XPT_OPTS(xpt_program_choice, nothing);
	struct xpt_stream_options options = good;
	struct xpt_stream *stream = NULL;

	CHECK_IS(stream_error(session, options), 0);
	options.report_every = XPT_REPORT_EVERY_MIN - 1;
	CHECK_IS(stream_error(session, options), -EINVAL);
	options.report_every = XPT_REPORT_EVERY_MAX + 1;
	CHECK_IS(stream_error(session, options), -EINVAL);
	options = good;
	options.sample_every = XPT_SAMPLE_EVERY_MAX + 1;
	CHECK_IS(stream_error(session, options), -EINVAL);
	options = good;
	options.callback = NULL;
	CHECK_IS(stream_error(session, options), -EINVAL);
	options = good;
	options.match = "(";
	CHECK_IS(stream_error(session, options), -EINVAL);
	options = good;
	CHECK_IS(xpt_stream_create(session, &options, &stream), 0);
	CHECK_IS(xpt_stream_add(stream, &nothing), -EINVAL);
	CHECK_IS(xpt_stream_stop(stream), -EALREADY);
	xpt_stream_destroy(stream);
	xpt_session_destroy(session);
	target_go(&target);
	target_end(&target);
	target_free(&target);
}

static int count_program(void *context, const struct xpt_program_info *program)
{
	*(int *)context += place_of(program->name) < 2;
	return 0;
}

static int add_loss(void *context, const char *cause, uint64_t count)
{
	CHECK(*cause && count, "%llu lost for \"%s\"", (unsigned long long)count, cause);
	*(uint64_t *)context += count;
	return 0;
}

/* What a session tells while it runs, and how waits end. */
static void test_session(void)
{
	struct target target = target_start("0", "200", "1");
	struct xpt_session *session = open_session(target.pid, on_message);
	struct xpt_session_status status = { .size = sizeof(status) };
	struct streamed all;
	uint64_t lost = 0;
	int programs = 0;

	open_stream(&all, session, "", 0, 1, on_streamed);
	CHECK_IS(xpt_session_start(session), 0);
	target_go(&target);
	xpt_session_interrupt(session);
	CHECK_IS(xpt_session_wait(session, PATIENCE), -EINTR);
	CHECK_IS(xpt_session_wait(session, SECOND / 2), 0);
	CHECK_IS(xpt_session_status(session, &status), 0);
	CHECK(status.elapsed >= SECOND / 2 && status.processes == 1 && status.programs == 2 && status.calls > 20,
	      "%llu ns, %u processes, %u programs, %llu calls", (unsigned long long)status.elapsed, status.processes,
	      status.programs, (unsigned long long)status.calls);
	CHECK_IS(xpt_session_programs(session, count_program, &programs), 0);
	CHECK_IS(programs, 2);
	CHECK_IS(xpt_session_losses(session, add_loss, &lost), 0);
	CHECK(lost >= status.lost && !status.targets_time, "%llu of %llu lost", (unsigned long long)lost,
	      (unsigned long long)status.lost);
	CHECK_IS(xpt_session_command_status(session), -1);
	target_stop(&target);
	CHECK_IS(xpt_session_wait(session, XPT_FOREVER), 1);
	close_stream(&all);
	target_end(&target);
	CHECK_IS(all.inferences[0], target_inferences(&target, PROGRAM_0));
	xpt_session_destroy(session);
	target_free(&target);
}

static const struct test tests[] = {
	{ "counted", test_counted, 1 },
	{ "counted_ends_early", test_counted_ends_early, 1 },
	{ "streams", test_streams, 1 },
	{ "changes", test_changes, 1 },
	{ "profile_options", test_profile_options, 1 },
	{ "stream_options", test_stream_options, 1 },
	{ "session", test_session, 1 },
};

int main(void)
{
	return run_tests("handles", tests, sizeof(tests) / sizeof(tests[0])) != 0;
}
