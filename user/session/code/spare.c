/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/code/spare.h"

#include <sys/mman.h>
#include <unistd.h>

#define STEP (4u << 20)

/* Kernels before 5.14: then the copy takes the page faults. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Of the machine's memory one part in so many is as much as is made ready unasked. */
#define SHARE 16

static size_t ready_size(void)
{
	size_t share = (size_t)sysconf(_SC_PHYS_PAGES) / SHARE * sysconf(_SC_PAGESIZE);

	return share < CODE_SPARE_SIZE ? share : CODE_SPARE_SIZE;
}

void code_spare_open(struct code_spare *spare, bool ready)
{
	void *bytes = mmap(NULL, CODE_SPARE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			   -1, 0);

	*spare = (struct code_spare){};
	if (bytes == MAP_FAILED)
		return;
	madvise(bytes, CODE_SPARE_SIZE, MADV_HUGEPAGE);
	spare->bytes = bytes;
	spare->idle = true;
	spare->wanted = ready ? ready_size() : 0;
}

void code_spare_close(struct code_spare *spare)
{
	if (spare->bytes)
		munmap(spare->bytes, CODE_SPARE_SIZE);
	*spare = (struct code_spare){};
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
	if (spare->populated < atomic_load(&spare->wanted))
		return true;
	/* Pages that nobody has written to are not in use. */
	if (atomic_exchange(&spare->idle, false))
		code_spare_give(spare);
	return false;
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
	madvise(spare->bytes, CODE_SPARE_SIZE, MADV_FREE);
	atomic_store(&spare->idle, true);
}
