/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/process.h"

#define LOOK_MS 20		 /* between two checks whether the output is given up */
#define ROOM_MS 1		 /* the same for room, which the process does not report */
#define WAIT_PART 4		 /* part of the queue that is room again */
#define TICK_US 100000		 /* a stream that blocks is interrupted so often, to check whether it is given up */
#define WRITER_SLOT (256u << 10) /* bytes */
#define WRITER_SLOTS 256u	 /* 64 MiB; only pages that were used take memory */

/* ---- what the collector and the process that writes for it share ---- */

/* One slot of a block; a block has as many as it needs, one after the other. */
struct writer_entry {
	__u32 slot, length;
	__u64 left; /* bytes of the block from here on, this slot's included */
	__u64 items;
	__u32 tail_length;
	__u32 last;
};

struct writer_shared {
	/* Entries, ever: made by the collector, done by the process, in the order of entries[]. Only one side writes each. */
	_Atomic(__u64) made, done;
	_Atomic(__u64) items, bytes;
	atomic_int error;     /* of the file, the first one */
	atomic_bool closing;  /* nothing is made any more */
	atomic_bool given_up; /* nothing is waited for any more */
	atomic_bool idle;     /* the process wants a byte when there is more */
	atomic_bool waited;   /* the collector wants one when nothing is left */
	atomic_bool ended;    /* in order: the file is closed */
	struct tailed_file
		file; /* of a process that was prepared: what it begins with, without what lies in other memory */
	struct writer_entry entries[WRITER_SLOTS];
	char tail[WRITER_TAIL_MAX];
	char slots[WRITER_SLOTS][WRITER_SLOT] __attribute__((aligned(4096)));
};

/* What the process begins with. */
struct started {
	struct writer_shared *shared;
	const struct tailed_file *file; /* NULL: it comes later */
	int socket, parent;		/* parent: pidfd of the collector; -1: the kernel has none */
};

/* ---- the process ---- */

struct process {
	struct writer_shared *shared;
	struct tailed_file file;
	int socket, parent;
	__u64 orphaned; /* time at which the collector was found dead; 0: it lives */
};

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

/* From writer_start(), which sends the descriptor. False: the other side has ended. */
static bool receive_file(struct process *process)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec part = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t got;

	do
		got = recvmsg(process->socket, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got != 1 || !CMSG_FIRSTHDR(&message) || control.header.cmsg_type != SCM_RIGHTS)
		return false;
	process->file = process->shared->file;
	process->file.tail = process->shared->tail;
	memcpy(&process->file.descriptor, CMSG_DATA(&control.header), sizeof(int));
	return true;
}

/* Never returns. context: struct started. After fork() in a program with threads: system calls only. */
static void __attribute__((noreturn)) writer_process(void *context)
{
	const struct started *started = context;
	struct process process = { .shared = started->shared, .socket = started->socket, .parent = started->parent };
	struct writer_shared *shared = process.shared;
	struct sigaction action = { .sa_handler = on_tick };
	sigset_t tick;
	int error;

	if (started->file) {
		process.file = *started->file;
	} else {
		confine(-1); /* as the other side will be */
		if (!receive_file(&process))
			_exit(0);
	}
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

/* ---- the collector ---- */

struct writer {
	struct writer_shared *shared;
	int socket;
	__u64 reclaimed;	 /* entries done of which the slots are free again */
	bool used[WRITER_SLOTS]; /* lowest first: a queue that is never long touches little memory */
	unsigned int free;
};

static int start_process(struct writer_shared *shared, const struct tailed_file *file, int socket)
{
	struct started context = { shared, file, socket, syscall(SYS_pidfd_open, getpid(), 0) };
	const int kept[] = { file ? file->descriptor : -1, socket, context.parent };
	int error = detached_start("xputrace-writer", kept, sizeof(kept) / sizeof(kept[0]), writer_process, &context);

	if (context.parent >= 0)
		close(context.parent);
	return error;
}

/* file: NULL: it comes later. */
static int writer_create(const struct tailed_file *file, struct writer **result)
{
	struct writer *writer = calloc(1, sizeof(*writer));
	int sockets[2] = { -1, -1 }, error = -ENOMEM;

	if (!writer)
		return -ENOMEM;
	writer->shared = mmap(NULL, sizeof(*writer->shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (writer->shared == MAP_FAILED)
		goto out;
	error = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) ? -errno : 0;
	if (!error)
		error = start_process(writer->shared, file, sockets[1]);
	if (sockets[1] >= 0)
		close(sockets[1]);
	if (error)
		goto unmap;
	writer->socket = sockets[0];
	writer->free = WRITER_SLOTS;
	*result = writer;
	return 0;
unmap:
	if (sockets[0] >= 0)
		close(sockets[0]);
	munmap(writer->shared, sizeof(*writer->shared));
out:
	free(writer);
	return error;
}

static struct writer *prepared;

int writer_prepare(void)
{
	return prepared ? 0 : writer_create(NULL, &prepared);
}

/* To the process that was prepared. False: it cannot take such a file, or has ended. */
static bool hand_over(const struct tailed_file *file, struct writer *writer)
{
	struct writer_shared *shared = writer->shared;
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .header = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec part = { "", 1 };
	const struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};

	if (file->gzip || !file->seekable || file->tail_length > WRITER_TAIL_MAX)
		return false;
	shared->file = (struct tailed_file){
		.seekable = true,
		.start = file->start,
		.length = file->length,
		.end = file->end,
		.tail_length = file->tail_length,
		.error = file->error,
	};
	if (file->tail_length)
		memcpy(shared->tail, file->tail, file->tail_length);
	memcpy(CMSG_DATA(&control.header), &file->descriptor, sizeof(int));
	return sendmsg(writer->socket, &message, MSG_NOSIGNAL) == 1;
}

int writer_start(const struct tailed_file *file, struct writer **result)
{
	int error = 0;

	if (prepared && hand_over(file, prepared)) {
		*result = prepared;
		prepared = NULL;
	} else {
		error = writer_create(file, result);
	}
	if (!error)
		atomic_store(&(*result)->shared->bytes, file->end - file->start);
	return error;
}

/* ---- the queue ---- */

static void wake(struct writer *writer)
{
	ssize_t sent = 1;

	if (!atomic_exchange(&writer->shared->idle, false))
		return;
	do
		sent = send(writer->socket, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	/* The next one tries again. */
	if (sent < 0 && errno != EAGAIN)
		atomic_store(&writer->shared->idle, true);
}

/* Its end of the socket is closed by its end, whatever that was. */
static bool has_ended(struct writer *writer)
{
	char byte;

	return !recv(writer->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
}

int writer_error(struct writer *writer)
{
	struct writer_shared *shared = writer->shared;

	if (atomic_load(&shared->given_up))
		return -ETIMEDOUT;
	if (has_ended(writer) && !atomic_load(&shared->ended))
		return -EIO;
	return atomic_load(&shared->error);
}

static void reclaim(struct writer *writer)
{
	__u64 done = atomic_load(&writer->shared->done);

	for (; writer->reclaimed < done; writer->reclaimed++, writer->free++)
		writer->used[writer->shared->entries[writer->reclaimed % WRITER_SLOTS].slot] = false;
}

static unsigned int take_slot(struct writer *writer, unsigned int slot)
{
	while (writer->used[slot])
		slot++;
	writer->used[slot] = true;
	writer->free--;
	return slot;
}

static void fill(struct writer *writer, const struct writer_block *block, size_t slots)
{
	struct writer_shared *shared = writer->shared;
	__u64 made = atomic_load(&shared->made);
	const char *from = block->bytes;
	size_t left = block->length;
	unsigned int slot = 0;

	for (size_t i = 0; i < slots; i++) {
		size_t length = left < WRITER_SLOT ? left : WRITER_SLOT;

		slot = take_slot(writer, slot);
		if (length)
			memcpy(shared->slots[slot], from, length);
		shared->entries[(made + i) % WRITER_SLOTS] = (struct writer_entry){
			.slot = slot,
			.length = length,
			.left = left,
			.items = block->items,
			.tail_length = block->tail_length,
			.last = block->last,
		};
		from += length;
		left -= length;
	}
	atomic_store(&shared->made, made + slots);
}

int writer_append(struct writer *writer, const struct writer_block *block)
{
	size_t slots = block->length ? (block->length + WRITER_SLOT - 1) / WRITER_SLOT : 1;
	int error = writer_error(writer);

	if (error && (!block->last || error == -ETIMEDOUT || error == -EIO))
		return error;
	if (slots > WRITER_SLOTS || (block->tail_length > WRITER_TAIL_MAX && !block->last))
		return -E2BIG;
	reclaim(writer);
	if (slots > writer->free)
		return -ENOBUFS;
	fill(writer, block, slots);
	wake(writer);
	return 0;
}

bool writer_has_room(struct writer *writer, unsigned int part)
{
	reclaim(writer);
	return writer->free >= WRITER_SLOTS / part;
}

bool writer_is_busy(const struct writer *writer)
{
	return atomic_load(&writer->shared->done) != atomic_load(&writer->shared->made);
}

__u64 writer_items(const struct writer *writer)
{
	return atomic_load(&writer->shared->items);
}

__u64 writer_bytes(const struct writer *writer)
{
	return atomic_load(&writer->shared->bytes);
}

/* ---- the end ---- */

enum wait { WAIT_ROOM, WAIT_WRITTEN, WAIT_ENDED };

static bool is_over(struct writer *writer, enum wait wait)
{
	if (wait == WAIT_ROOM && writer_has_room(writer, WAIT_PART))
		return true;
	return wait == WAIT_WRITTEN && !writer_is_busy(writer);
}

/* Also until the process has ended, or the output is given up. */
static int wait_for(struct writer *writer, const uint64_t *stopped, enum wait wait)
{
	struct writer_shared *shared = writer->shared;
	__u64 begin = clock_monotonic(), now, stop;
	struct pollfd polled = { .fd = writer->socket, .events = POLLIN };
	char bytes[16];

	atomic_store(&shared->waited, true);
	while (!atomic_load(&shared->given_up)) {
		if (has_ended(writer) || is_over(writer, wait))
			break;
		wake(writer);
		now = clock_monotonic();
		stop = stopped ? __atomic_load_n(stopped, __ATOMIC_RELAXED) : 0;
		if (stop && now >= stop + WRITER_GRACE && now >= begin + WRITER_LEAST)
			atomic_store(&shared->given_up, true);
		else if (poll(&polled, 1, wait == WAIT_ROOM ? ROOM_MS : LOOK_MS) > 0 &&
			 recv(writer->socket, bytes, sizeof(bytes), MSG_DONTWAIT) < 0)
			break; /* only by a socket that was closed */
	}
	atomic_store(&shared->waited, false);
	return writer_error(writer);
}

int writer_wait(struct writer *writer, const uint64_t *stopped)
{
	return wait_for(writer, stopped, WAIT_WRITTEN);
}

int writer_wait_room(struct writer *writer, const uint64_t *stopped)
{
	return wait_for(writer, stopped, WAIT_ROOM);
}

int writer_end(struct writer *writer, const uint64_t *stopped, __u64 *items, __u64 *bytes)
{
	struct writer_shared *shared = writer->shared;
	int error;

	atomic_store(&shared->closing, true);
	wake(writer);
	error = wait_for(writer, stopped, WAIT_ENDED);
	*items = atomic_load(&shared->items);
	*bytes = atomic_load(&shared->bytes);
	close(writer->socket);
	munmap(shared, sizeof(*shared));
	free(writer);
	return error;
}
