/* SPDX-License-Identifier: BSD-2-Clause */
/* What xpt_recording_create() and xpt_session_create() refuse before they need any permission. */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <xputrace/recording.h>
#include <xputrace/report.h>
#include <xputrace/session.h>

static char last_message[1024];

static void keep(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	(void)level;
	strncpy(last_message, text, sizeof(last_message) - 1);
}

static int create(struct xpt_recording_options options)
{
	struct xpt_recording *recording = NULL;
	int error;

	options.size = options.size ?: sizeof(options);
	options.log = keep;
	last_message[0] = '\0';
	error = xpt_recording_create(&options, &recording);
	cr_assert_lt(error, 0);
	cr_assert_null(recording);
	return error;
}

Test(session_options, one_way_to_say_what_to_trace)
{
	pid_t pid = 1;

	cr_assert_eq(create((struct xpt_recording_options){ 0 }), -EINVAL);
	cr_assert_neq(strlen(last_message), 0);
	cr_assert_eq(create((struct xpt_recording_options){ .pids = &pid, .pid_count = 1, .all_processes = 1 }),
		     -EINVAL);
	cr_assert_neq(strlen(last_message), 0);
}

Test(session_options, options_of_a_newer_library_are_refused)
{
	struct {
		struct xpt_recording_options options;
		char tail[16];
	} newer = { .options = { .all_processes = 1 } };
	struct xpt_recording *recording = NULL;

	newer.options.size = sizeof(newer);
	newer.tail[3] = 1;
	cr_assert_eq(xpt_recording_create(&newer.options, &recording), -E2BIG);
}

Test(session_options, sampling_is_limited)
{
	cr_assert_eq(create((struct xpt_recording_options){ .all_processes = 1, .sample_every = 2000000 }), -EINVAL);
	cr_assert_not_null(strstr(last_message, "2000000"));
}

Test(session_options, a_budget_is_a_percentage)
{
	const double wrong[] = { 0.05, 100.5, -2, 0.0 / 0.0, 1.0 / 0.0 };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_expect_eq(create((struct xpt_recording_options){ .all_processes = 1, .budget = wrong[i] }), -EINVAL);
		cr_expect_not_null(strstr(last_message, "expected a percentage from 0.1 to 100, got '"), "%s",
				   last_message);
	}
}

/* What is right is passed over: what is wrong comes after it. */
Test(session_options, budgets_that_are_right)
{
	const double right[] = { 0, XPT_BUDGET_NONE, XPT_BUDGET_MIN, 2, XPT_BUDGET_MAX };
	const char *file = "/nonexistent/runtime.json";

	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		cr_expect_eq(create((struct xpt_recording_options){ .all_processes = 1,
								    .budget = right[i],
								    .runtime_files = &file,
								    .runtime_file_count = 1 }),
			     -ENOENT);
}

Test(session_options, descriptions_are_read_before_anything_is_touched)
{
	const char *file = "/nonexistent/runtime.json";

	cr_assert_eq(create((struct xpt_recording_options){
			     .all_processes = 1, .runtime_files = &file, .runtime_file_count = 1 }),
		     -ENOENT);
	cr_assert_not_null(strstr(last_message, file));
}

Test(session_options, a_report_needs_an_input)
{
	struct xpt_report_options options = { .size = sizeof(options), .summary_descriptor = -1 };

	cr_assert_eq(xpt_report_create(&options), -EINVAL);
	options.input = "/nonexistent.xpt";
	cr_assert_eq(xpt_report_create(&options), -ENOENT);
	options.size = 3;
	cr_assert_eq(xpt_report_create(&options), -EINVAL);
}

static int create_session(struct xpt_session_options options)
{
	struct xpt_session *session = NULL;
	int error;

	options.size = options.size ?: sizeof(options);
	options.log = keep;
	last_message[0] = '\0';
	error = xpt_session_create(&options, &session);
	cr_assert_lt(error, 0);
	cr_assert_null(session);
	return error;
}

Test(session_options, a_session_says_what_it_watches_in_one_way)
{
	pid_t pid = 1;

	cr_assert_eq(xpt_session_create(NULL, NULL), -EINVAL);
	cr_assert_eq(create_session((struct xpt_session_options){ .size = 4 }), -EINVAL);
	cr_assert_eq(create_session((struct xpt_session_options){ 0 }), -EINVAL);
	cr_assert_neq(strlen(last_message), 0);
	cr_assert_eq(create_session((struct xpt_session_options){ .pids = &pid, .pid_count = 1, .all_processes = 1 }),
		     -EINVAL);
	cr_assert_neq(strlen(last_message), 0);
}
