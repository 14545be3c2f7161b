/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/machine/fd_owners.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/unit/counter_perf.h"

TestSuite(counter_machine_fd_owners, .init = need_perf_events);

/* A process with an event, and a name that has a line of its own. */
static pid_t hold(void)
{
	int ends[2];
	char letter;
	pid_t child;

	cr_assert_eq(pipe(ends), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (!child) {
		prctl(PR_SET_NAME, "hold\ner");
		letter = open_perf_event() < 0 ? 'n' : 'y';
		if (write(ends[1], &letter, 1) == 1)
			pause();
		_exit(0);
	}
	cr_assert_eq(read(ends[0], &letter, 1), 1);
	cr_assert_eq(letter, 'y');
	close(ends[0]);
	close(ends[1]);
	return child;
}

Test(counter_machine_fd_owners, another_process)
{
	char text[FD_OWNERS_TEXT_MAX], wanted[64];
	int own = open_perf_event();
	pid_t child = hold();

	memset(text, 'x', sizeof(text));
	snprintf(wanted, sizeof(wanted), "hold?er (%d)", child);
	fd_owners_of_perf_events(text);
	cr_assert_not_null(memchr(text, 0, sizeof(text)));
	cr_expect_not_null(strstr(text, wanted), "%s", text);
	/* This one is not meant. */
	snprintf(wanted, sizeof(wanted), "(%d)", getpid());
	cr_expect_null(strstr(text, wanted), "%s", text);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	snprintf(wanted, sizeof(wanted), "(%d)", child);
	fd_owners_of_perf_events(text);
	cr_expect_null(strstr(text, wanted), "%s", text);
	close(own);
}

/* More than there is room for are cut. */
Test(counter_machine_fd_owners, many)
{
	char text[FD_OWNERS_TEXT_MAX];
	pid_t children[32];

	for (size_t i = 0; i < 32; i++)
		children[i] = hold();
	fd_owners_of_perf_events(text);
	cr_expect_eq(strlen(text), (size_t)FD_OWNERS_TEXT_MAX - 1);
	for (size_t i = 0; i < 32; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
}
