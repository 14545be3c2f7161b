/* SPDX-License-Identifier: BSD-2-Clause */
/* The collector's side: the queue, and waiting for its end. */
#include "base/file/writer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/file/detached.h"
#include "base/file/writer_private.h"

#define LOOK_MS 20 /* between two checks whether the output is given up */

struct writer {
	struct writer_shared *shared;
	int socket;
	__u64 reclaimed;	 /* entries done of which the slots are free again */
	bool used[WRITER_SLOTS]; /* lowest first: a queue that is never long touches little memory */
	unsigned int free;
};

static int start_process(struct writer_shared *shared, const struct tailed_file *file, int socket)
{
	struct writer_process_context context = { shared, file, socket, syscall(SYS_pidfd_open, getpid(), 0) };
	const int kept[] = { file->descriptor, socket, context.parent };
	int error = detached_start("xputrace-writer", kept, sizeof(kept) / sizeof(kept[0]), writer_process, &context);

	if (context.parent >= 0)
		close(context.parent);
	return error;
}

int writer_start(const struct tailed_file *file, struct writer **result)
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
	atomic_store(&writer->shared->bytes, file->end - file->start);
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

/* Until nothing is left to write or, when it is closing, until the process has ended. */
static int wait_for(struct writer *writer, const uint64_t *stopped, bool closing)
{
	struct writer_shared *shared = writer->shared;
	__u64 begin = clock_monotonic(), now, stop;
	struct pollfd polled = { .fd = writer->socket, .events = POLLIN };
	char bytes[16];

	atomic_store(&shared->waited, true);
	while (!atomic_load(&shared->given_up)) {
		if (has_ended(writer) || (!closing && !writer_is_busy(writer)))
			break;
		wake(writer);
		now = clock_monotonic();
		stop = stopped ? __atomic_load_n(stopped, __ATOMIC_RELAXED) : 0;
		if (stop && now >= stop + WRITER_GRACE && now >= begin + WRITER_LEAST)
			atomic_store(&shared->given_up, true);
		else if (poll(&polled, 1, LOOK_MS) > 0 && recv(writer->socket, bytes, sizeof(bytes), MSG_DONTWAIT) < 0)
			break; /* only by a socket that was closed */
	}
	atomic_store(&shared->waited, false);
	return writer_error(writer);
}

int writer_wait(struct writer *writer, const uint64_t *stopped)
{
	return wait_for(writer, stopped, false);
}

int writer_end(struct writer *writer, const uint64_t *stopped, __u64 *items, __u64 *bytes)
{
	struct writer_shared *shared = writer->shared;
	int error;

	atomic_store(&shared->closing, true);
	wake(writer);
	error = wait_for(writer, stopped, true);
	*items = atomic_load(&shared->items);
	*bytes = atomic_load(&shared->bytes);
	close(writer->socket);
	munmap(shared, sizeof(*shared));
	free(writer);
	return error;
}
