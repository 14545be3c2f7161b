/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/collect/collector.h"

static int wait_status(struct command *command)
{
	int status;

	cr_assert_eq(waitpid(command->pid, &status, 0), command->pid);
	return status;
}

Test(session_collect_command, child_waits_until_it_is_released)
{
	int out[2];
	char letter, script[64], path[32];
	struct pollfd ready;
	char *arguments[] = { "/bin/sh", "-c", script, NULL };
	struct command command;

	cr_assert_eq(pipe(out), 0);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), out[1]);
	snprintf(script, sizeof(script), "printf x >%s", path);
	cr_assert_eq(command_start(arguments, &command), 0);
	ready = (struct pollfd){ .fd = out[0], .events = POLLIN };
	cr_assert_eq(poll(&ready, 1, 50), 0, "the command ran before it was released");
	cr_assert_eq(command_reap(&command), 0);
	cr_assert_eq(command_release(&command), 0);
	cr_assert_eq(read(out[0], &letter, 1), 1);
	cr_assert_eq(letter, 'x');
	cr_assert_eq(wait_status(&command), 0);
	cr_assert_eq(command_exec_error(&command), 0);
	command_close(&command);
}

Test(session_collect_command, reason_of_a_failed_exec_comes_back)
{
	char *arguments[] = { "/nonexistent/command", NULL };
	struct command command;

	cr_assert_eq(command_start(arguments, &command), 0);
	cr_assert_eq(command_release(&command), 0);
	wait_status(&command);
	cr_assert_eq(command_exec_error(&command), -ENOENT);
	command_close(&command);
}

Test(session_collect_command, a_command_that_is_given_up_never_runs)
{
	char *arguments[] = { "/bin/sh", "-c", "kill -9 $PPID", NULL };
	struct command command;

	cr_assert_eq(command_start(arguments, &command), 0);
	command_close(&command);
	cr_assert_eq(waitpid(command.pid, NULL, WNOHANG), -1);
	cr_assert_eq(errno, ECHILD);
}

Test(session_collect_command, status_is_kept)
{
	char *arguments[] = { "/bin/sh", "-c", "exit 7", NULL };
	struct command command;

	cr_assert_eq(command_start(arguments, &command), 0);
	cr_assert_eq(command_release(&command), 0);
	while (!command_reap(&command))
		usleep(1000);
	cr_assert_eq(WEXITSTATUS(command.status), 7);
	cr_assert_eq(command_reap(&command), 1);
	command_close(&command);
}
