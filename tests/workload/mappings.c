/* SPDX-License-Identifier: BSD-2-Clause */
/* To be preloaded: the process has MAPPINGS anonymous mappings more before main(), of a page each. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void __attribute__((constructor)) map(void)
{
	const char *number = getenv("MAPPINGS");
	size_t count = number ? strtoul(number, NULL, 10) : 0, page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, count * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!count)
		return;
	/* Neighbours with other rights are mappings of their own. */
	for (size_t i = 0; pages != MAP_FAILED && i < count; i += 2) {
		if (mprotect(pages + i * page, page, PROT_READ))
			_exit(1);
	}
	if (pages == MAP_FAILED)
		_exit(1);
}
