/* SPDX-License-Identifier: BSD-2-Clause */
/* The guard's side: waits for the collector's end, then completes the file. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/guard_private.h"

#define KEPT_FIRST 3 /* after tidy_up(): the socket, then the collector's pidfd */

/* ---- the file ---- */

static void complete_file(struct guard_table *table, int file)
{
	__u32 sequence = atomic_load(&table->file_sequence);
	const struct guard_file_state *state = &table->state[sequence & 1];
	struct stat status;

	if (file < 0 || !sequence)
		return;
	/* Somebody else has cut the file: what is left is no longer ours to complete. */
	if (fstat(file, &status) || (__u64)status.st_size < state->length)
		return;
	/* First over what is there, which needs no new space on a full disk; only then is the rest given back. */
	if (!file_write_at(file, state->tail, state->tail_length, state->length))
		while (ftruncate(file, state->length + state->tail_length) && errno == EINTR)
			;
}

/* ---- waiting ---- */

/* Leaves the socket and the pidfd, at KEPT_FIRST and the number after, and nothing else. */
static void tidy_up(int *socket, int *parent)
{
	struct rlimit limit = { .rlim_cur = 1024 };
	int high_socket = fcntl(*socket, F_DUPFD_CLOEXEC, KEPT_FIRST + 2);
	int high_parent = *parent < 0 ? -1 : fcntl(*parent, F_DUPFD_CLOEXEC, KEPT_FIRST + 2);
	unsigned int i;

	*socket = dup3(high_socket, KEPT_FIRST, O_CLOEXEC);
	*parent = high_parent < 0 ? -1 : dup3(high_parent, KEPT_FIRST + 1, O_CLOEXEC);
	for (i = 0; i < KEPT_FIRST; i++)
		close(i);
	if (*parent < 0)
		close(KEPT_FIRST + 1);
	if (!syscall(SYS_close_range, KEPT_FIRST + 2, ~0u, 0))
		return;
	getrlimit(RLIMIT_NOFILE, &limit); /* before Linux 5.9 */
	for (i = KEPT_FIRST + 2; i < limit.rlim_cur && i < 1u << 16; i++)
		close(i);
}

/* One message: its kind, or 0 when the other side is closed. file: set when it has been handed over. */
static int receive(int socket, int *file)
{
	char kind = 0;
	struct iovec part = { &kind, 1 };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const struct cmsghdr *header;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) <= 0)
		return errno == EAGAIN || errno == EINTR ? -1 : 0;
	header = CMSG_FIRSTHDR(&message);
	if (kind == GUARD_FILE && header && header->cmsg_type == SCM_RIGHTS)
		memcpy(file, CMSG_DATA(header), sizeof(int));
	return kind;
}

/*
 * Until the collector says goodbye (true) or has died (false). A closed socket alone is no death where there is a
 * pidfd: a child of the collector may still hold a copy of its socket, and a host program may close descriptors that
 * it doesn't know. By the time the pidfd becomes readable, all threads of the collector have ended, so nobody writes
 * to the file any more.
 */
static bool wait_for_end(int socket, int parent, int *file)
{
	struct pollfd polled[2] = { { .fd = socket, .events = POLLIN }, { .fd = parent, .events = POLLIN } };

	for (;;) {
		bool dead;
		int kind;

		if (poll(polled, 2, -1) < 0) {
			if (errno == EINTR || errno == ENOMEM)
				continue;
			return false;
		}
		dead = polled[1].revents;
		/* What was said before the death counts, so the messages come first. */
		while (polled[0].fd >= 0) {
			errno = 0;
			kind = receive(socket, file);
			if (kind == GUARD_GOODBYE)
				return true;
			if (kind < 0)
				break;
			if (kind == 0) {
				polled[0].fd = -1;
				dead |= parent < 0;
			}
		}
		if (dead)
			return false;
	}
}

void guard_process(struct guard_table *table, int socket, int parent)
{
	int file = -1;

	setsid();
	prctl(PR_SET_NAME, "xputrace-guard");
	if (chdir("/"))
		_exit(1);
	tidy_up(&socket, &parent);
	if (socket < 0 && parent < 0)
		_exit(1);
	if (!wait_for_end(socket, parent, &file))
		complete_file(table, file);
	_exit(0);
}
