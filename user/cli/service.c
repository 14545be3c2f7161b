/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/service.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/options.h"

static int waiting = -1; /* whoever has started this one reads its other end */
/* Read by whichever thread has a message: */
static atomic_bool detached; /* standard error leads nowhere */

/* The parent's part: its status is that of the start. */
static void wait_for_start(pid_t child, int pipe_end)
{
	char ready;
	int status;
	ssize_t got;

	do
		got = read(pipe_end, &ready, 1);
	while (got < 0 && errno == EINTR);
	if (got == 1)
		_exit(0);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED);
}

void service_streams(void)
{
	int nowhere;

	do
		nowhere = open("/dev/null", O_RDWR);
	while (nowhere >= 0 && nowhere <= STDERR_FILENO);
	if (nowhere >= 0)
		close(nowhere);
}

void service_background(void)
{
	pid_t starter = getpid(), child;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC)) {
		perror("xputrace: pipe");
		exit(EXIT_FAILED);
	}
	fflush(NULL);
	child = fork();
	if (child < 0) {
		perror("xputrace: fork");
		exit(EXIT_FAILED);
	}
	if (child) {
		close(ends[1]);
		wait_for_start(child, ends[0]);
	}
	close(ends[0]);
	/* Who interrupts the start wants none. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != starter)
		exit(EXIT_FAILED);
	setsid();
	waiting = ends[1];
}

static void tell_manager(void)
{
	const char *path = getenv("NOTIFY_SOCKET"), ready[] = "READY=1";
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = path ? strlen(path) : 0;
	int manager;

	if (!length || length >= sizeof(address.sun_path) || (*path != '/' && *path != '@'))
		return;
	memcpy(address.sun_path, path, length);
	if (*path == '@')
		address.sun_path[0] = '\0';
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (manager < 0)
		return;
	/* Whether it listens is its own affair. */
	sendto(manager, ready, sizeof(ready) - 1, MSG_NOSIGNAL, (struct sockaddr *)&address,
	       offsetof(struct sockaddr_un, sun_path) + length);
	close(manager);
}

void service_ready(void)
{
	int nowhere;

	tell_manager();
	if (waiting < 0)
		return;
	prctl(PR_SET_PDEATHSIG, 0);
	if (write(waiting, "", 1) < 0)
		perror("xputrace: pipe");
	close(waiting);
	waiting = -1;
	openlog("xputrace", LOG_PID, LOG_DAEMON);
	nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int stream = STDIN_FILENO; nowhere >= 0 && stream <= STDERR_FILENO; stream++)
		dup2(nowhere, stream);
	if (nowhere >= 0)
		close(nowhere);
	detached = true;
}

void service_message(void *context, enum xpt_log_level level, const char *text)
{
	static const int priorities[] = {
		[XPT_LOG_DEBUG] = LOG_DEBUG,
		[XPT_LOG_INFO] = LOG_INFO,
		[XPT_LOG_WARN] = LOG_WARNING,
		[XPT_LOG_ERROR] = LOG_ERR,
	};

	if (detached)
		syslog(priorities[level], "%s", text);
	else
		print_message(context, level, text);
}
