/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the latency of 100 inferences of a program, as CSV: profile PID PROGRAM */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xputrace/profile.h>

static void on_message(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	(void)level;
	fprintf(stderr, "%s\n", text);
}

static void on_report(void *context, const struct xpt_profile_report *report)
{
	(void)context;
	xpt_profile_report_write(report, XPT_FORMAT_SAMPLES, STDOUT_FILENO);
}

int main(int argc, char **argv)
{
	pid_t pid = argc == 3 ? atoi(argv[1]) : 0;
	XPT_OPTS(xpt_session_options, where, .pids = &pid, .pid_count = 1, .log = on_message,
		 .log_level = XPT_LOG_INFO);
	XPT_OPTS(xpt_program_choice, program, .name = argv[2]);
	XPT_OPTS(xpt_profile_options, what, .program = &program, .samples = 100, .callback = on_report);
	struct xpt_session *session;
	struct xpt_profile *profile;
	int done = 0;

	if (!pid || xpt_session_create(&where, &session))
		return 1;
	if (!xpt_profile_create(session, &what, &profile)) {
		/* Started first, so that it misses nothing. */
		if (!xpt_profile_start(profile) && !xpt_session_start(session))
			done = xpt_profile_wait(profile, 30000000000) == 1; /* at most 30 s */
		xpt_profile_destroy(profile);
	}
	xpt_session_destroy(session);
	return !done;
}
