/* SPDX-License-Identifier: BSD-2-Clause */
/* A callback that takes five seconds, while the target runs on: what fits is delivered later, the rest is counted. */
#define _POSIX_C_SOURCE 200809L

#include <string.h>
#include <time.h>

#include <xputrace/session.h>
#include <xputrace/stream.h>

#include "check.h"
#include "target.h"

#define REPORT_EVERY (XPT_REPORT_EVERY_MIN * 10)
#define SMALL 262144 /* bytes: less than two thousand samples */

struct slow {
	struct xpt_session *session;
	struct xpt_stream *stream;
	int blocked;
	unsigned long long reports, inferences, taken, rows, lost;
	uint64_t end; /* of the report before */
	int gaps;
};

static void on_report(void *context, const struct xpt_profile_report *report)
{
	struct slow *slow = (struct slow *)context;
	const struct timespec five_seconds = { 5, 0 };
	size_t i;

	slow->gaps += slow->end != 0 && report->start != slow->end;
	slow->end = report->end;
	slow->reports++;
	for (i = 0; i < report->program_count; i++) {
		slow->inferences += report->programs[i].inferences;
		slow->taken += report->programs[i].taken;
		slow->rows += report->programs[i].sample_count;
		slow->lost += report->programs[i].lost;
	}
	if (slow->taken > 0 && !slow->blocked) {
		slow->blocked = 1;
		nanosleep(&five_seconds, NULL);
	}
}

static void slow_open(struct slow *slow, pid_t pid, size_t report_bytes)
{
	struct xpt_session_options session_options = { .size = sizeof(session_options), .pids = &pid, .pid_count = 1 };
	struct xpt_stream_options stream_options = { .size = sizeof(stream_options),
						     .report_every = REPORT_EVERY,
						     .match = "",
						     .callback = on_report,
						     .context = slow };

	memset(slow, 0, sizeof(*slow));
	session_options.report_bytes = report_bytes;
	if (xpt_session_create(&session_options, &slow->session) ||
	    xpt_stream_create(slow->session, &stream_options, &slow->stream))
		target_give_up("session");
	CHECK_IS(xpt_stream_start(slow->stream), 0);
	CHECK_IS(xpt_session_start(slow->session), 0);
}

static void slow_close(struct slow *slow)
{
	CHECK_IS(xpt_stream_stop(slow->stream), 0);
	CHECK_IS(xpt_stream_flush(slow->stream), 0);
	xpt_stream_destroy(slow->stream);
	xpt_session_destroy(slow->session);
}

static void test_slow_callback(void)
{
	struct target target = target_start("10000", "2000", "2");
	struct slow large, small;
	unsigned long long made;

	slow_open(&large, target.pid, 0);
	slow_open(&small, target.pid, SMALL);
	target_go(&target);
	target_end(&target);
	slow_close(&large);
	slow_close(&small);
	made = target_inferences(&target, PROGRAM_0) + target_inferences(&target, PROGRAM_1);

	CHECK_IS(made, 20000);
	CHECK(large.blocked && small.blocked, "no callback was slow");
	CHECK_IS(large.inferences, made);
	CHECK_IS(large.taken, made);
	CHECK_IS(large.rows, made);
	CHECK_IS(large.lost, 0);
	CHECK_IS(large.gaps, 0);
	CHECK(large.reports >= 40, "%llu reports in five seconds", large.reports);
	CHECK_IS(small.inferences, made);
	CHECK_IS(small.taken + small.lost, made);
	CHECK_IS(small.rows, small.taken);
	CHECK(small.lost > 0, "all of it had room");
	CHECK_IS(small.gaps, 0);
	target_free(&target);
}

static const struct test tests[] = {
	{ "slow_callback", test_slow_callback, 1 },
};

int main(void)
{
	return run_tests("slow", tests, sizeof(tests) / sizeof(tests[0]));
}
