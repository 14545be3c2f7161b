/* SPDX-License-Identifier: BSD-2-Clause */
/* The guard's side: waits for the collector's end, then lets processes go and completes the file. */
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
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/guard_holds.h"
#include "base/guard_private.h"
#include "base/process_state.h"

#define KEPT_FIRST 3	 /* after tidy_up(): the socket, then the collector's pidfd */
#define ANCESTORS_MAX 64 /* a parent chain is followed so far: bounds the work when /proc changes meanwhile */

static bool is_watched(struct guard_table *table, pid_t pid, __u64 start_time)
{
	size_t i;

	for (i = 0; i < GUARD_WATCHED_MAX; i++) {
		if (atomic_load(&table->watched[i].pid) == pid &&
		    atomic_load(&table->watched[i].start_time) == start_time)
			return true;
	}
	return false;
}

/* Continues pid when it is stopped and it, or one of its ancestors, is watched. */
static void let_go_if_watched(struct guard_table *table, pid_t pid)
{
	struct process_state stopped, state;
	pid_t ancestor = pid;
	int i;

	if (!process_state_read(pid, &stopped) || !process_is_stopped(pid, stopped.state))
		return;
	state = stopped;
	for (i = 0; i < ANCESTORS_MAX; i++) {
		if (is_watched(table, ancestor, state.start_time)) {
			guard_let_go(pid, stopped.start_time);
			return;
		}
		ancestor = state.parent;
		if (ancestor <= 1 || !process_state_read(ancestor, &state))
			return;
	}
}

static bool look_at(void *context, pid_t pid)
{
	let_go_if_watched(context, pid);
	return false;
}

static void let_go_watched(struct guard_table *table)
{
	process_each_number("/proc", look_at, table);
}

static bool any_watched(struct guard_table *table)
{
	size_t i;

	for (i = 0; i < GUARD_WATCHED_MAX; i++) {
		if (atomic_load(&table->watched[i].pid) > 0)
			return true;
	}
	return false;
}

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

/* What has been handed over; -1: has not been. */
struct handed {
	int file, holds;
};

/* One message: its kind, or 0 when the other side is closed. */
static int receive(int socket, struct handed *handed)
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
	if ((kind == GUARD_FILE || kind == GUARD_HOLDS) && header && header->cmsg_type == SCM_RIGHTS)
		memcpy(kind == GUARD_FILE ? &handed->file : &handed->holds, CMSG_DATA(header), sizeof(int));
	return kind;
}

/*
 * Until the collector says goodbye (true) or has died (false). A closed socket alone is no death where there is a
 * pidfd: a child of the collector may still hold a copy of its socket, and a host program may close descriptors that
 * it doesn't know. By the time the pidfd becomes readable, all threads of the collector have ended, so nobody writes
 * to the file any more.
 */
static bool wait_for_end(struct guard_table *table, int socket, int parent, struct handed *handed)
{
	struct pollfd polled[2] = { { .fd = socket, .events = POLLIN }, { .fd = parent, .events = POLLIN } };

	for (;;) {
		bool dead;
		int kind;

		if (poll(polled, 2, guard_let_go_overdue(handed->holds, atomic_load(&table->hold_limit))) < 0) {
			if (errno == EINTR || errno == ENOMEM)
				continue;
			return false;
		}
		dead = polled[1].revents;
		/* What was said before the death counts, so the messages come first. */
		while (polled[0].fd >= 0) {
			errno = 0;
			kind = receive(socket, handed);
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
	/*
	 * Milliseconds between looks: links of a dead process go away a little after it, and stop processes until
	 * then.
	 */
	static const int pauses[] = { 10, 20, 50, 100, 200, 300, 320 };
	struct handed handed = { -1, -1 };
	size_t i;

	setsid();
	prctl(PR_SET_NAME, "xputrace-guard");
	if (chdir("/"))
		_exit(1);
	tidy_up(&socket, &parent);
	if (socket < 0 && parent < 0)
		_exit(1);
	if (wait_for_end(table, socket, parent, &handed)) {
		guard_let_go_all(handed.holds);
		_exit(0);
	}
	guard_let_go_all(handed.holds);
	complete_file(table, handed.file);
	for (i = 0; any_watched(table) && i < sizeof(pauses) / sizeof(pauses[0]); i++) {
		struct timespec pause = { .tv_nsec = pauses[i] * 1000000l };

		guard_let_go_all(handed.holds);
		let_go_watched(table);
		nanosleep(&pause, NULL);
	}
	_exit(0);
}
