/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/code/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/core/clock.h"

#define BLOCK (4u << 20) /* bytes between two checks of the clock */
#define TEXT_BLOCK 4096u /* and for the end of a text */
#define PAGE 4096u	 /* what is readable at its begin is so up to its end */
#define PARTS_MAX 65536

/* ---- copies ---- */

int code_copy_make(size_t size, struct code_copy *copy)
{
	*copy = (struct code_copy){ .size = size };
	if (!size)
		return 0;
	copy->bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (copy->bytes == MAP_FAILED) {
		*copy = (struct code_copy){};
		return -ENOMEM;
	}
	/* Saves most of the page faults; where it is not to be had, they are taken. */
	if (size >= CODE_READY_SIZE)
		madvise(copy->bytes, size, MADV_HUGEPAGE);
	return 0;
}

void code_copy_free(struct code_copy *copy)
{
	if (copy->spare)
		code_spare_give(copy->spare);
	else if (copy->bytes && !copy->borrowed)
		munmap(copy->bytes, copy->size);
	*copy = (struct code_copy){};
}

int code_copy_own(struct code_copy *copy)
{
	struct code_copy own;

	if (!copy->borrowed)
		return 0;
	if (code_copy_make(copy->size, &own)) {
		code_copy_free(copy);
		return -ENOMEM;
	}
	if (copy->size)
		memcpy(own.bytes, copy->bytes, copy->size);
	own.missing = copy->missing;
	own.first_missing = copy->first_missing;
	*copy = own;
	return 0;
}

static void note_missing(struct code_copy *copy, __u64 offset, __u64 length)
{
	if (!copy->missing)
		copy->first_missing = offset;
	copy->missing += length;
	if (copy->spare || copy->borrowed)
		memset(copy->bytes + offset, 0, length);
}

static int make_for(const struct code_memory *memory, size_t size, struct code_copy *copy)
{
	bool large = size >= CODE_READY_SIZE;
	unsigned char *bytes = memory->spare && large ? code_spare_take(memory->spare, size) : NULL;

	if (memory->ready && size && !large) {
		*copy = (struct code_copy){ .bytes = memory->ready, .size = size, .borrowed = true };
		return 0;
	}
	if (!bytes)
		return code_copy_make(size, copy);
	*copy = (struct code_copy){ .bytes = bytes, .size = size, .spare = memory->spare };
	return 0;
}

/* ---- reading ---- */

/* How many of the first bytes could be read; -errno: none. */
static ssize_t read_some(const struct code_memory *memory, __u64 address, void *to, size_t length)
{
	struct iovec local = { to, length }, remote = { .iov_len = length };
	ssize_t got;

	_Static_assert(sizeof(address) == sizeof(remote.iov_base), "addresses of the process are as wide as ours");
	memcpy(&remote.iov_base, &address, sizeof(address)); /* of the process, no pointer of ours */
	if (clock_monotonic() >= memory->deadline)
		return -ETIME;
	if (address + length < address)
		return -EFAULT;
	got = process_vm_readv(memory->tgid, &local, 1, &remote, 1, 0);
	return got < 0 ? -errno : got;
}

static int read_all(const struct code_memory *memory, __u64 address, void *to, size_t length)
{
	ssize_t got = length ? read_some(memory, address, to, length) : 0;

	if (got < 0)
		return got;
	return (size_t)got == length ? 0 : -EFAULT;
}

struct reading {
	const struct code_memory *memory;
	__u64 address;
};

static int read_object(void *context, __u64 offset, void *to, size_t length)
{
	const struct reading *reading = context;

	if (reading->address + offset < offset)
		return -EFAULT;
	return read_all(reading->memory, reading->address + offset, to, length);
}

/* Bytes before the 0 byte. Reads never cross a page that the text need not reach. */
static int text_size(const struct code_memory *memory, __u64 address, __u64 limit, __u64 *size)
{
	char block[TEXT_BLOCK];
	__u64 done = 0;

	while (done <= limit) {
		size_t length = TEXT_BLOCK - (address + done) % TEXT_BLOCK, end;
		int error = read_all(memory, address + done, block, length);

		if (error)
			return error;
		end = strnlen(block, length);
		if (end < length) {
			*size = done + end;
			return *size > limit ? -EFBIG : 0;
		}
		done += length;
	}
	return -EFBIG;
}

int code_memory_text(const struct code_memory *memory, __u64 address, __u64 *size)
{
	return text_size(memory, address, memory->limit, size);
}

int code_memory_size(const struct code_memory *memory, __u64 address, __u64 *size)
{
	struct reading reading = { memory, address };
	char head[64];
	ssize_t length = sizeof(head);
	int error = code_own_size(read_object, &reading, memory->limit, size);

	if (error != -ENODATA)
		return error;
	length = read_some(memory, address, head, sizeof(head));
	if (length <= 0)
		return length ?: -EFAULT;
	return code_is_text(head, length) ? text_size(memory, address, memory->limit, size) : -ENODATA;
}

/* Copies length bytes to an offset of the copy. */
static void fill(const struct code_memory *memory, __u64 address, __u64 length, struct code_copy *copy, __u64 offset)
{
	__u64 done = 0;

	while (done < length) {
		size_t block = length - done < BLOCK ? length - done : BLOCK;
		ssize_t got = read_some(memory, address + done, copy->bytes + offset + done, block);

		if (got > 0) {
			done += got;
			continue;
		}
		if (got == -EFAULT) {
			size_t page = PAGE - (address + done) % PAGE,
			       hole = page < length - done ? page : length - done;

			note_missing(copy, offset + done, hole);
			done += hole;
			continue;
		}
		note_missing(copy, offset + done, length - done);
		return;
	}
}

int code_memory_copy(const struct code_memory *memory, __u64 address, size_t size, struct code_copy *copy)
{
	int error = make_for(memory, size, copy);

	if (!error)
		fill(memory, address, size, copy, 0);
	return error;
}

/* ---- parts ---- */

/* Fills in the sizes of texts. */
static int part_sizes(const struct code_memory *memory, const __u64 *addresses, __u64 *sizes, size_t count,
		      __u64 *total)
{
	int error = 0;

	*total = 0;
	for (size_t i = 0; i < count && !error; i++) {
		if (!sizes[i])
			error = text_size(memory, addresses[i], memory->limit - *total, &sizes[i]);
		if (!error && sizes[i] > memory->limit - *total)
			error = -EFBIG;
		*total += error ? 0 : sizes[i];
	}
	return error;
}

int code_memory_parts(const struct code_memory *memory, __u64 addresses, __u64 sizes, __u64 count,
		      struct code_copy *copy)
{
	__u64 *address, *size, total = 0, offset = 0;
	int error = 0;

	*copy = (struct code_copy){};
	if (count > PARTS_MAX)
		return -E2BIG;
	address = calloc(count ?: 1, sizeof(*address));
	size = calloc(count ?: 1, sizeof(*size));
	if (!address || !size)
		error = -ENOMEM;
	if (!error)
		error = read_all(memory, addresses, address, count * sizeof(*address));
	if (!error && sizes)
		error = read_all(memory, sizes, size, count * sizeof(*size));
	if (!error)
		error = part_sizes(memory, address, size, count, &total);
	if (!error)
		error = make_for(memory, total, copy);
	for (size_t i = 0; i < count && !error; i++) {
		fill(memory, address[i], size[i], copy, offset);
		offset += size[i];
	}
	free(address);
	free(size);
	return error;
}
