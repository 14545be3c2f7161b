/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/collect/collector.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void child_run(char *const *arguments, int release, int failure)
{
	sigset_t none;
	ssize_t got;
	int error;
	char go;

	sigemptyset(&none);
	for (int signal_number = 1; signal_number < NSIG; signal_number++)
		signal(signal_number, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* The collector has closed its end without a word: it has given up. */
	got = read(release, &go, 1);
	if (!got)
		_exit(0);
	if (got > 0)
		execvp(arguments[0], arguments);
	error = errno;
	/* As shells do; the reader may have closed it. */
	_exit(write(failure, &error, sizeof(error)) > 0 && error != ENOENT ? 126 : 127);
}

int command_start(char *const *arguments, struct command *command)
{
	int release[2], failure[2];

	*command = (struct command){ .release = -1, .failure = -1, .status = -1 };
	if (pipe2(release, O_CLOEXEC))
		return -errno;
	if (pipe2(failure, O_CLOEXEC)) {
		int error = -errno;

		close(release[0]);
		close(release[1]);
		return error;
	}
	command->pid = fork();
	if (command->pid < 0) {
		int error = -errno;

		command->pid = 0;
		close(release[0]);
		close(release[1]);
		close(failure[0]);
		close(failure[1]);
		return error;
	}
	if (!command->pid) {
		close(release[1]);
		close(failure[0]);
		child_run(arguments, release[0], failure[1]);
	}
	close(release[0]);
	close(failure[1]);
	command->release = release[1];
	command->failure = failure[0];
	return 0;
}

int command_exec_error(struct command *command)
{
	struct pollfd ready = { .fd = command->failure, .events = POLLIN };
	int error = 0;
	ssize_t length;

	if (command->failure < 0 || poll(&ready, 1, 0) != 1)
		return 0;
	length = read(command->failure, &error, sizeof(error));
	close(command->failure);
	command->failure = -1;
	if (length != sizeof(error))
		return 0;
	/* It does nothing more than end. */
	if (command->status == -1)
		waitpid(command->pid, &command->status, 0);
	return -error;
}

int command_release(struct command *command)
{
	int error = write(command->release, "", 1) == 1 ? 0 : -errno;

	close(command->release);
	command->release = -1;
	/* The child has ended; it may have the reason. */
	return error == -EPIPE ? command_exec_error(command) ?: error : error;
}

int command_reap(struct command *command)
{
	int status;

	if (!command->pid || command->status != -1)
		return command->pid ? 1 : 0;
	if (waitpid(command->pid, &status, WNOHANG) != command->pid)
		return 0;
	command->status = status;
	return 1;
}

void command_close(struct command *command)
{
	if (command->release >= 0) {
		close(command->release);
		command->release = -1;
		if (command->pid)
			waitpid(command->pid, NULL, 0);
	}
	if (command->failure >= 0)
		close(command->failure);
	command->failure = -1;
}
