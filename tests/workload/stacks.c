/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Executes a program through a chain of functions that the tests know: stacks [CALLS [PAUSE_US [thread]]]. Prints a line with the
 * lines of the calls. thread: in a thread of its own.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int nrt_init(int framework, const char *version, const char *full_version);
int nrt_load(const void *neff, size_t size, int32_t first, int32_t count, void **model);
int nrt_execute(void *model, const void *inputs, void *outputs);

static int innermost_line, third_line;
static int calls = 100, pause_us = 1000;

static inline __attribute__((always_inline)) int innermost(void *model)
{
	int result;

	innermost_line = __LINE__ + 1;
	result = nrt_execute(model, NULL, NULL);
	__asm__ volatile("" ::: "memory");
	return result + 1;
}

static __attribute__((noinline)) int third(void *model)
{
	volatile char local[300];

	local[0] = 1;
	third_line = __LINE__ + 1;
	return innermost(model) + local[0];
}

/* Its frame has a size that is known only while it runs. */
static __attribute__((noinline)) int second(void *model, size_t size)
{
	char *room = __builtin_alloca(size);
	int result;

	memset(room, 1, size);
	__asm__ volatile("" ::"r"(room) : "memory");
	result = third(model);
	__asm__ volatile("" ::"r"(room) : "memory");
	return result + room[size - 1];
}

static __attribute__((noinline)) int first(void *model)
{
	int result = 0;

	for (int i = 0; i < calls; i++) {
		result += second(model, 100 + i % 2 * 1000);
		usleep(pause_us);
	}
	return result;
}

static void *run(void *model)
{
	return (void *)(intptr_t)first(model);
}

int main(int argc, char **argv)
{
	static char neff[2048];
	void *model = NULL;
	pthread_t thread;

	if (argc > 1)
		calls = atoi(argv[1]);
	if (argc > 2)
		pause_us = atoi(argv[2]);
	nrt_init(1, "2.0", "2.0");
	if (nrt_load(neff, 1024, 0, -1, &model))
		return 1;
	if (argc > 3) {
		if (pthread_create(&thread, NULL, run, model))
			return 1;
		pthread_join(thread, NULL);
	} else {
		run(model);
	}
	printf("{\"runtime\":\"nrt\",\"calls\":%d,\"innermost\":%d,\"third\":%d}\n", calls, innermost_line, third_line);
	return 0;
}
