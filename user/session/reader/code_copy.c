/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/reader/code_copy.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STEP (4u << 20)

/* Kernels before 5.14: then the copy takes the page faults. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Of the machine's memory one part in so many is as much as is made ready unasked. */
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
	if (spare->ready && !large) {
		copy->bytes = spare->ready;
		copy->borrowed = true;
		return 0;
	}
	copy->bytes = spare->ready ? code_spare_take(spare, size) : NULL;
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
