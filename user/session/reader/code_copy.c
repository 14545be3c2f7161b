/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/reader/code_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/core/clock.h"

#define STEP (4u << 20)

/* Kernels before 5.14: then the copy takes the page faults. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* The largest part of the machine's memory, 1/N, that is made ready unasked. */
#define SHARE 16

/* ---- spare memory ---- */

static size_t ready_size(void)
{
	size_t share = (size_t)sysconf(_SC_PHYS_PAGES) / SHARE * sysconf(_SC_PAGESIZE);

	return share < CODE_SPARE_SIZE ? share : CODE_SPARE_SIZE;
}

/* Zeros, shared with who gets the descriptor. NULL: no memory. */
static unsigned char *share(size_t size, int *memory)
{
	void *bytes = MAP_FAILED;

	*memory = memfd_create("xputrace-copy", MFD_CLOEXEC);
	if (*memory >= 0 && !ftruncate(*memory, (off_t)size))
		bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *memory, 0);
	if (bytes != MAP_FAILED)
		return bytes;
	if (*memory >= 0)
		close(*memory);
	*memory = -1;
	return NULL;
}

void code_spare_open(struct code_spare *spare, bool ready)
{
	*spare = (struct code_spare){ .memory = -1 };
	spare->ready = share(CODE_READY_SIZE + CODE_SPARE_SIZE, &spare->memory);
	if (!spare->ready)
		return;
	spare->bytes = spare->ready + CODE_READY_SIZE;
	memset(spare->ready, 0, CODE_READY_SIZE);
	madvise(spare->bytes, CODE_SPARE_SIZE, MADV_HUGEPAGE);
	spare->idle = true;
	spare->wanted = ready ? ready_size() : 0;
}

void code_spare_close(struct code_spare *spare)
{
	if (spare->ready) {
		munmap(spare->ready, CODE_READY_SIZE + CODE_SPARE_SIZE);
		close(spare->memory);
	}
	*spare = (struct code_spare){ .memory = -1 };
}

bool code_spare_populate(struct code_spare *spare)
{
	if (!spare->bytes || spare->populated >= atomic_load(&spare->wanted))
		return false;
	/* Safe while it is in use. */
	if (madvise(spare->bytes + spare->populated, STEP, MADV_POPULATE_WRITE))
		spare->populated = CODE_SPARE_SIZE;
	else
		spare->populated += STEP;
	return spare->populated < atomic_load(&spare->wanted);
}

unsigned char *code_spare_take(struct code_spare *spare, size_t size)
{
	if (size > CODE_SPARE_SIZE)
		return NULL;
	/* One thread takes at a time. */
	if (size > atomic_load(&spare->wanted))
		atomic_store(&spare->wanted, size);
	return atomic_exchange(&spare->idle, false) ? spare->bytes : NULL;
}

void code_spare_give(struct code_spare *spare)
{
	atomic_store(&spare->idle, true);
}

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

int code_copy_share(struct code_spare *spare, size_t size, struct code_copy *copy, struct code_shared *shared)
{
	bool large = size >= CODE_READY_SIZE;

	*copy = (struct code_copy){ .size = size };
	*shared = (struct code_shared){ -1, large ? CODE_READY_SIZE : 0 };
	if (!size)
		return 0;
	if (spare && spare->ready && !large) {
		copy->bytes = spare->ready;
		copy->borrowed = true;
		return 0;
	}
	copy->bytes = spare && spare->ready ? code_spare_take(spare, size) : NULL;
	if (copy->bytes) {
		copy->spare = spare;
		return 0;
	}
	shared->offset = 0;
	copy->bytes = share(size, &shared->memory);
	if (!copy->bytes) {
		*copy = (struct code_copy){};
		return errno == EMFILE ? -EMFILE : -ENOMEM;
	}
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

#define BLOCK (4u << 20) /* bytes between two checks of the clock */
#define TEXT_BLOCK 4096u /* and for the end of a text */
#define PAGE 4096u	 /* what is readable at its begin is so up to its end */
#define PARTS_MAX 65536

static void note_missing(struct code_copy *copy, __u64 offset, __u64 length)
{
	if (!copy->missing)
		copy->first_missing = offset;
	copy->missing += length;
	if (copy->spare || copy->borrowed)
		memset(copy->bytes + offset, 0, length);
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

void code_memory_copy(const struct code_memory *memory, __u64 address, struct code_copy *copy)
{
	fill(memory, address, copy->size, copy, 0);
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

/* words: room for both arrays, addresses first; sizes become those of texts, too. */
static int read_parts(const struct code_memory *memory, __u64 addresses, __u64 sizes, __u64 count, __u64 *words,
		      __u64 *total)
{
	int error = read_all(memory, addresses, words, count * sizeof(*words));

	if (!error && sizes)
		error = read_all(memory, sizes, words + count, count * sizeof(*words));
	if (!error)
		error = part_sizes(memory, words, words + count, count, total);
	return error;
}

int code_memory_parts_size(const struct code_memory *memory, __u64 addresses, __u64 sizes, __u64 count, __u64 *size)
{
	__u64 *words = count <= PARTS_MAX ? calloc(2 * count + 1, sizeof(*words)) : NULL;
	int error;

	if (!words)
		return count <= PARTS_MAX ? -ENOMEM : -E2BIG;
	error = read_parts(memory, addresses, sizes, count, words, size);
	free(words);
	return error;
}

int code_memory_parts(const struct code_memory *memory, __u64 addresses, __u64 sizes, __u64 count,
		      struct code_copy *copy)
{
	__u64 *words = count <= PARTS_MAX ? calloc(2 * count + 1, sizeof(*words)) : NULL;
	__u64 total = 0, offset = 0;
	int error;

	if (!words)
		return count <= PARTS_MAX ? -ENOMEM : -E2BIG;
	error = read_parts(memory, addresses, sizes, count, words, &total);
	if (!error && total > copy->size)
		error = -EFBIG;
	for (__u64 i = 0; i < count && !error; i++) {
		fill(memory, words[i], words[count + i], copy, offset);
		offset += words[count + i];
	}
	if (!error && offset < copy->size)
		note_missing(copy, offset, copy->size - offset);
	free(words);
	return error;
}
