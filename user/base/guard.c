/* SPDX-License-Identifier: BSD-2-Clause */
/* The collector's side of the guard. */
#include "base/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/guard_private.h"

#define GOODBYE_PAUSE 1000 /* us */

struct guard {
	struct guard_table *table;
	int socket;
	pid_t pid;
	bool has_file;
};

static int guard_fork(struct guard *guard, int guard_socket)
{
	int parent = syscall(SYS_pidfd_open, getpid(), 0);
	sigset_t all, before;
	int error = 0;

	/*
	 * The guard inherits the blocked signals: no handler of this process ever runs in it, and it cannot be
	 * interrupted by what is meant for the collector, from its first instruction on.
	 */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	guard->pid = fork();
	if (guard->pid < 0)
		error = -errno;
	if (guard->pid == 0)
		guard_process(guard->table, guard_socket, parent);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (parent >= 0)
		close(parent);
	return error;
}

int guard_start(struct guard **result)
{
	struct guard *guard = calloc(1, sizeof(*guard));
	int sockets[2] = { -1, -1 };
	void *table;
	int error;

	if (!guard)
		return -ENOMEM;
	table = mmap(NULL, sizeof(*guard->table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (table == MAP_FAILED) {
		error = -errno;
		goto out;
	}
	guard->table = table;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets)) {
		error = -errno;
		goto out;
	}
	error = guard_fork(guard, sockets[1]);
	if (error)
		goto out;
	guard->socket = sockets[0];
	close(sockets[1]);
	*result = guard;
	return 0;
out:
	if (sockets[0] >= 0) {
		close(sockets[0]);
		close(sockets[1]);
	}
	if (guard->table)
		munmap(guard->table, sizeof(*guard->table));
	free(guard);
	return error;
}

void guard_stop(struct guard *guard)
{
	char goodbye = GUARD_GOODBYE;

	if (!guard)
		return;
	/* Without it the guard would wait for the end of this process, which waits for the guard. */
	while (send(guard->socket, &goodbye, 1, MSG_NOSIGNAL) < 0 &&
	       (errno == EINTR || errno == ENOBUFS || errno == ENOMEM))
		usleep(GOODBYE_PAUSE);
	close(guard->socket);
	while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
		;
	munmap(guard->table, sizeof(*guard->table));
	free(guard);
}

pid_t guard_pid(const struct guard *guard)
{
	return guard->pid;
}

static int send_descriptor(struct guard *guard, char kind, int descriptor)
{
	struct iovec part = { &kind, 1 };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &descriptor, sizeof(int));
	while (sendmsg(guard->socket, &message, MSG_NOSIGNAL) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int guard_file(struct guard *guard, int descriptor)
{
	int error;

	if (guard->has_file)
		return -EBUSY;
	error = send_descriptor(guard, GUARD_FILE, descriptor);
	guard->has_file = !error;
	return error;
}

int guard_file_state(struct guard *guard, __u64 length, const char *tail, size_t tail_length)
{
	struct guard_table *table = guard->table;
	__u32 next = atomic_load(&table->file_sequence) + 1;
	struct guard_file_state *state;

	if (tail_length > GUARD_TAIL_MAX)
		return -E2BIG;
	if (next == 0)
		next = 2; /* 0 means none; the other buffer than the one in use, which is number 1 */
	state = &table->state[next & 1];
	state->length = length;
	state->tail_length = tail_length;
	if (tail_length)
		memcpy(state->tail, tail, tail_length);
	atomic_store(&table->file_sequence, next); /* a kill before this leaves the state before, which is whole */
	return 0;
}
