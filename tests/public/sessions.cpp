// SPDX-License-Identifier: BSD-2-Clause
// The headers in C++11, and two sessions at once in one process, each with handles of its own; needs root.
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>

#include <xputrace/check.h>
#include <xputrace/error.h>
#include <xputrace/merge.h>
#include <xputrace/profile.h>
#include <xputrace/profile_report.h>
#include <xputrace/recording.h>
#include <xputrace/report.h>
#include <xputrace/session.h>
#include <xputrace/stream.h>
#include <xputrace/target.h>

#include "check.h"
#include "target.h"

namespace
{

const std::uint64_t second = 1000000000;

struct Streamed {
	std::map<std::string, std::uint64_t> inferences, taken, lost;
	std::uint64_t reports = 0;
};

void on_report(void *context, const xpt_profile_report *report)
{
	Streamed *streamed = static_cast<Streamed *>(context);

	streamed->reports++;
	for (std::size_t i = 0; i < report->program_count; i++) {
		const xpt_program_report &program = *XPT_AT(report->programs, report->program_size, i);

		streamed->inferences[program.name] += program.inferences;
		streamed->taken[program.name] += program.taken;
		streamed->lost[program.name] += program.lost;
	}
}

class Session
{
      public:
	explicit Session(const struct target &target) : session_(nullptr), stream_(nullptr)
	{
		xpt_session_options options = {};

		options.size = sizeof(options);
		options.pids = &target.pid;
		options.pid_count = 1;
		CHECK_IS(xpt_session_create(&options, &session_), 0);
	}
	~Session()
	{
		xpt_stream_destroy(stream_);
		xpt_session_destroy(session_);
	}
	Session(const Session &) = delete;
	Session &operator=(const Session &) = delete;

	void start(unsigned int sample_every, Streamed *streamed)
	{
		xpt_stream_options options = {};

		options.size = sizeof(options);
		options.report_every = second / 5;
		options.sample_every = sample_every;
		options.match = "^neuron";
		options.callback = on_report;
		options.context = streamed;
		CHECK_IS(xpt_stream_create(session_, &options, &stream_), 0);
		CHECK_IS(xpt_stream_start(stream_), 0);
		CHECK_IS(xpt_session_start(session_), 0);
	}
	void end()
	{
		CHECK_IS(xpt_session_wait(session_, 20 * second), 1);
		CHECK_IS(xpt_stream_stop(stream_), 0);
		CHECK_IS(xpt_stream_flush(stream_), 0);
	}

      private:
	xpt_session *session_;
	xpt_stream *stream_;
};

void check_counts(const struct target &target, Streamed &streamed, unsigned int sample_every)
{
	for (const char *name : { PROGRAM_0, PROGRAM_1 }) {
		const unsigned long long made = target_inferences(&target, name);

		CHECK(made > 50, "the target has run too little");
		CHECK_IS(streamed.inferences[name], made);
		CHECK_IS(streamed.lost[name], 0);
		CHECK(streamed.taken[name] >= made / sample_every && streamed.taken[name] <= made / sample_every + 1,
		      "%llu of %llu", static_cast<unsigned long long>(streamed.taken[name]), made);
	}
	CHECK_IS(streamed.inferences.size(), 2);
	CHECK(streamed.reports >= 4, "%llu reports", static_cast<unsigned long long>(streamed.reports));
}

/* The same process twice, and another one, at other rates: nobody sees anything of the others. */
void test_two_sessions()
{
	struct target first = target_start("400", "400", "1"), second_target = target_start("300", "300", "1");
	Streamed all, eighth, other;

	{
		Session a(first), b(first), c(second_target);

		a.start(XPT_SAMPLE_FULL, &all);
		b.start(XPT_SAMPLE_EIGHTH, &eighth);
		c.start(XPT_SAMPLE_FULL, &other);
		target_go(&first);
		target_go(&second_target);
		a.end();
		b.end();
		c.end();
	}
	target_end(&first);
	target_end(&second_target);
	check_counts(first, all, 1);
	check_counts(first, eighth, 8);
	check_counts(second_target, other, 1);
	target_free(&first);
	target_free(&second_target);
}

void test_bad_options()
{
	xpt_session_options options = {};
	xpt_session *session = nullptr;

	options.size = sizeof(options);
	CHECK_IS(xpt_session_create(&options, &session), -EINVAL);
	CHECK(session == nullptr, "there is a session");
	CHECK(std::string(xpt_column_name(XPT_COLUMN_TOTAL_ROUND_TRIP)) == "totalRoundtripTime(Us)", "another name");
}

const test tests[] = {
	{ "bad_options", test_bad_options, 0 },
	{ "two_sessions", test_two_sessions, 1 },
};

} // namespace

int main()
{
	return run_tests("sessions", tests, sizeof(tests) / sizeof(tests[0])) != 0;
}
