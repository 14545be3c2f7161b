/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names that no runtime would accept, given to the CUDA driver stand-in, which does not look at them: quotes, control
 * bytes, invalid UTF-8, no terminator before an unmapped page, unmapped and NULL pointers, 1 MB. Thread names too.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "workload.h"

#define LONG_NAME (1 << 20)

#define FUNCTIONS(X)                                                                                                 \
	X(cuModuleLoad, int, void **, const char *)                                                                  \
	X(cuModuleGetFunction, int, void **, void *, const char *)                                                   \
	X(cuLaunchKernel, int, void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, void *, \
	  void **, void **)                                                                                          \
	X(cuCtxSynchronize, int, void)

#ifdef WORKLOAD_LINKED
FUNCTIONS(DECLARE_FUNCTION)
#endif

struct functions {
	FUNCTIONS(DECLARE_POINTER)
};

/* The order is known to the test: tests/e2e/test_hostile.py. */
static const char *const fixed_names[] = {
	"plain",
	"quote\" backslash\\ slash/",
	"new\nline\ttab\rreturn\x1b[31mescape\x07",
	"\x01\x02\x1f\x7f",
	"invalid \xff\xfe utf-8 \xc3",
	"overlong \xc0\xaf surrogate \xed\xa0\x80 too large \xf4\x90\x80\x80",
	"\xe2\x80\xa8separator \xf0\x9f\x9a\x80",
	"</script><b>&amp;%s%n%1000000d",
	"\"},{\"name\":\"injected\",\"ph\":\"i\",\"ts\":0",
	"",
};
#define FIXED (sizeof(fixed_names) / sizeof(fixed_names[0]))
#define NAMES (FIXED + 5)

struct hostile_run {
	struct run run;
	struct functions functions;
	const char *names[NAMES];
	void *kernels[NAMES];
};

static bool hostile_bind(struct run *run, void *library)
{
	struct functions *functions = &((struct hostile_run *)run)->functions;
	bool complete = true;

	(void)library;
	FUNCTIONS(BIND_POINTER)
	return complete;
}

static void names_make(struct hostile_run *hostile)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *unmapped = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *long_name = malloc(LONG_NAME + 1);

	if (pages == MAP_FAILED || unmapped == MAP_FAILED || !long_name) {
		perror("workload");
		exit(1);
	}
	memcpy(hostile->names, fixed_names, sizeof(fixed_names));
	memset(long_name, 'L', LONG_NAME);
	long_name[LONG_NAME] = '\0';
	hostile->names[FIXED] = long_name;
	munmap(pages + page, page);
	memcpy(pages + page - 12, "unterminated", 12);
	hostile->names[FIXED + 1] = pages + page - 12;
	munmap(unmapped, page);
	hostile->names[FIXED + 2] = unmapped;
	hostile->names[FIXED + 3] = NULL;
	hostile->names[FIXED + 4] = (const char *)0x8000000000000000ull; /* not canonical */
}

/* The names themselves are not printed: program says which one it is by its number. */
static void hostile_begin(struct run *run)
{
	struct hostile_run *hostile = (struct hostile_run *)run;
	struct functions *functions = &hostile->functions;
	struct ledger *ledger = run->ledger;
	void *module = NULL;

	names_make(hostile);
	CALL(cuModuleLoad, (&module, "/\"quoted\"/\xff\n.cubin"));
	for (size_t i = 0; i < NAMES; i++)
		CALL(cuModuleGetFunction, (&hostile->kernels[i], module, hostile->names[i]),
		     .program = program_name("hostile", i, 0), .handle = SOME(hostile->kernels[i]));
}

static void hostile_execute(struct worker *worker, unsigned long number)
{
	struct hostile_run *hostile = (struct hostile_run *)worker->run;
	struct functions *functions = &hostile->functions;
	struct ledger *ledger = worker->ledger;

	if (number == 0)
		prctl(PR_SET_NAME, "\"\\\n\x01\xff\xc3thread");
	for (size_t i = 0; i < NAMES; i++)
		for (size_t k = 0; k <= i; k++)
			CALL(cuLaunchKernel, (hostile->kernels[i], 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
			     .program = program_name("hostile", i, 0), .handle = SOME(hostile->kernels[i]));
}

static void hostile_end(struct run *run)
{
	struct functions *functions = &((struct hostile_run *)run)->functions;
	struct ledger *ledger = run->ledger;

	CALL(cuCtxSynchronize, ());
}

const struct scenario scenario_hostile = {
	.runtime = "hostile",
	.library = "libcuda.so.1",
	.run_size = sizeof(struct hostile_run),
	.bind = hostile_bind,
	.load = hostile_begin,
	.execute = hostile_execute,
	.unload = hostile_end,
};
