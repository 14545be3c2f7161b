/* SPDX-License-Identifier: BSD-2-Clause */
/* The process that writes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/file/writer_private.h"

#define TICK_US 100000 /* a stream that blocks is interrupted so often, to check whether it is given up */

struct process {
	struct writer_shared *shared;
	struct tailed_file file;
	int socket, parent;
	__u64 orphaned; /* time at which the collector was found dead; 0: it lives */
};

/* ---- the collector's life ---- */

/* Both, since a child of the collector may hold a copy of the socket, and not every kernel has a pidfd. */
static void look_at_parent(struct process *process, int milliseconds)
{
	struct pollfd polled[2] = { { .fd = process->parent, .events = POLLIN },
				    { .fd = process->socket, .events = POLLIN } };
	char bytes[64];

	if (poll(polled, 2, milliseconds) <= 0)
		return;
	if (polled[1].revents && recv(process->socket, bytes, sizeof(bytes), MSG_DONTWAIT) == 0) {
		/* What is in the queue is still written; there will be nothing more. */
		close(process->socket);
		process->socket = -1;
	}
	if ((polled[0].revents || process->socket < 0) && !process->orphaned)
		process->orphaned = clock_monotonic();
}

static bool go_on(void *context)
{
	struct process *process = context;

	if (atomic_load(&process->shared->given_up))
		return false;
	look_at_parent(process, 0);
	return !process->orphaned || clock_monotonic() < process->orphaned + WRITER_ORPHANED;
}

/* ---- writing ---- */

/* A stream that blocks is interrupted now and then; a regular file never is. */
static void set_tick(const struct process *process, bool on)
{
	struct itimerval tick = { 0 };

	if (process->file.seekable)
		return;
	tick.it_interval.tv_usec = tick.it_value.tv_usec = on ? TICK_US : 0;
	setitimer(ITIMER_REAL, &tick, NULL);
}

static void on_tick(int number)
{
	(void)number;
}

/* The tail has to be there when the next append has failed, and its slots are another block's by then. */
static void keep_tail(struct process *process, const struct writer_entry *first, const struct iovec *parts,
		      size_t count)
{
	__u64 skip = first->left - first->tail_length;
	size_t kept = 0;

	if (first->tail_length > WRITER_TAIL_MAX)
		return; /* the last one: nothing follows */
	for (size_t i = 0; i < count; i++) {
		__u64 here = skip < parts[i].iov_len ? skip : parts[i].iov_len;

		memcpy(process->shared->tail + kept, (char *)parts[i].iov_base + here, parts[i].iov_len - here);
		kept += parts[i].iov_len - here;
		skip -= here;
	}
	process->file.tail = process->shared->tail;
	process->file.tail_length = kept;
}

/* The number of its entries. */
static size_t write_block(struct process *process, __u64 done)
{
	struct writer_shared *shared = process->shared;
	const struct writer_entry *first = &shared->entries[done % WRITER_SLOTS], *entry;
	struct iovec parts[WRITER_SLOTS];
	size_t count = 0;
	int error = atomic_load(&shared->error);

	do {
		entry = &shared->entries[(done + count) % WRITER_SLOTS];
		parts[count++] = (struct iovec){ shared->slots[entry->slot], entry->length };
	} while (entry->left > entry->length);
	if (error && !first->last)
		return count;
	error = tailed_file_put(&process->file, parts, count, first->tail_length);
	if (error) {
		int none = 0;

		atomic_compare_exchange_strong(&shared->error, &none, error);
		return count;
	}
	keep_tail(process, first, parts, count);
	atomic_fetch_add(&shared->items, first->items);
	atomic_store(&shared->bytes, process->file.end - process->file.start);
	return count;
}

static void write_all(struct process *process)
{
	struct writer_shared *shared = process->shared;
	__u64 done = atomic_load(&shared->done);

	set_tick(process, true);
	while (done != atomic_load(&shared->made) && !atomic_load(&shared->given_up)) {
		done += write_block(process, done);
		atomic_store(&shared->done, done);
	}
	set_tick(process, false);
}

static void wait_for_more(struct process *process)
{
	struct writer_shared *shared = process->shared;

	if (atomic_load(&shared->waited))
		send(process->socket, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	atomic_store(&shared->idle, true);
	if (atomic_load(&shared->made) == atomic_load(&shared->done) && !atomic_load(&shared->closing))
		look_at_parent(process, -1);
	atomic_store(&shared->idle, false);
}

static void serve(struct process *process)
{
	struct writer_shared *shared = process->shared;
	bool closing;

	for (;;) {
		/* Read first: what was made before it was closed is written. */
		closing = atomic_load(&shared->closing) || process->orphaned;
		write_all(process);
		if (closing || atomic_load(&shared->given_up))
			return;
		wait_for_more(process);
	}
}

void writer_process(void *context)
{
	const struct writer_process_context *started = context;
	struct process process = { started->shared, *started->file, started->socket, started->parent, 0 };
	struct writer_shared *shared = process.shared;
	struct sigaction action = { .sa_handler = on_tick };
	sigset_t tick;
	int error;

	if (process.file.descriptor < 0)
		_exit(1);
	process.file.forked = true;
	process.file.go_on = go_on;
	process.file.go_on_context = &process;
	sigaction(SIGALRM, &action, NULL);
	sigemptyset(&tick);
	sigaddset(&tick, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &tick, NULL);
	serve(&process);
	error = tailed_file_close(&process.file);
	if (error && !atomic_load(&shared->error))
		atomic_store(&shared->error, error);
	atomic_store(&shared->ended, true);
	_exit(0);
}
