/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Launches kernels by addresses of the host, as the compilers of CUDA and HIP make them: clang's stub for CUDA, nvcc's
 * function, clang's variable for HIP, and an address that no symbol begins at.
 *
 * Prints {"ready":true,"pid":N} when the kernels are registered. Then each line of standard input, "launch" or "fork US",
 * launches all of them once; "fork" does so in a child, US microseconds later. Prints {"pid":N,"begin_ns":T,"end_ns":T} for each.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct dim3 {
	uint32_t x, y, z;
};

int cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **arguments, size_t shared_bytes,
		     void *stream);
void **__cudaRegisterFatBinary(void *data);
void __cudaRegisterFunction(void **handle, const char *host_function, char *device_function, const char *device_name,
			    int thread_limit, void *thread_index, void *block_index, void *block, void *grid,
			    int *warp_size);
int hipLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **arguments, size_t shared_bytes,
		    void *stream);

static const struct dim3 one = { 1, 1, 1 };
static const uint64_t binary[2];

__attribute__((noinline, used)) int _Z24__device_stub__vectoraddPfS_(void)
{
	return cudaLaunchKernel(_Z24__device_stub__vectoraddPfS_, one, one, NULL, 0, NULL);
}

__attribute__((noinline, used)) int _Z9vectormulPfS_(void)
{
	return cudaLaunchKernel(_Z9vectormulPfS_, one, one, NULL, 0, NULL);
}

const void *const _Z9vectorsubPfS_ = binary;

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
}

static void launch_all(void)
{
	uint64_t begin = now();

	if (_Z24__device_stub__vectoraddPfS_() || _Z9vectormulPfS_() ||
	    hipLaunchKernel(&_Z9vectorsubPfS_, one, one, NULL, 0, NULL) ||
	    hipLaunchKernel((const char *)binary + 1, one, one, NULL, 0, NULL))
		printf("{\"failed\":true}\n");
	printf("{\"pid\":%d,\"begin_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64 "}\n", (int)getpid(), begin, now());
	fflush(stdout);
}

int main(void)
{
	static struct {
		uint32_t magic, version;
		const void *binary;
		void *file;
	} wrapper = { 0, 1, binary, NULL };
	void **handle = __cudaRegisterFatBinary(&wrapper);
	unsigned int wait_us;
	char line[64];

	__cudaRegisterFunction(handle, (const char *)_Z24__device_stub__vectoraddPfS_, NULL, "_Z9vectoraddPfS_", -1,
			       NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFunction(handle, (const char *)_Z9vectormulPfS_, NULL, "_Z9vectormulPfS_", -1, NULL, NULL, NULL,
			       NULL, NULL);
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "fork %u", &wait_us) != 1) {
			launch_all();
		} else if (!fork()) {
			usleep(wait_us);
			launch_all();
			_exit(0);
		} else {
			wait(NULL);
		}
	}
	return 0;
}
