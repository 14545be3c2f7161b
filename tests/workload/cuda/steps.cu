// SPDX-License-Identifier: BSD-2-Clause
/*
 * Two kernels a step on a stream, one of them counts how often it has run: steps N. Waits for a line on standard input after the first
 * step, and prints one with what it did.
 */
#include <cstdio>
#include <cstdlib>
#include <time.h>
#include <unistd.h>

template <class T> __global__ void scale(T *values, T factor, int times)
{
	for (int i = 0; i < times; i++)
		values[threadIdx.x] = values[threadIdx.x] * factor + 1;
}

namespace
{
__global__ void count(int *counter)
{
	*counter += 1;
}
} // namespace

static double now()
{
	timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static void step(cudaStream_t stream, float *values, int *counter)
{
	scale<float><<<1, 256, 0, stream>>>(values, .5f, 20000);
	count<<<1, 1, 0, stream>>>(counter);
	if (cudaStreamSynchronize(stream))
		exit(1);
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 1, *counter, counted;
	double longest = 0;
	cudaStream_t stream;
	float *values;

	if (cudaMalloc(&values, 4096) || cudaMalloc(&counter, sizeof(*counter)) || cudaMemset(counter, 0, sizeof(*counter)) ||
	    cudaStreamCreate(&stream))
		return 1;
	step(stream, values, counter);
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	getchar();
	for (int i = 0; i < steps; i++) {
		double begin = now();

		step(stream, values, counter);
		longest = now() - begin > longest ? now() - begin : longest;
	}
	if (cudaMemcpy(&counted, counter, sizeof(counted), cudaMemcpyDeviceToHost))
		return 1;
	printf("{\"runtime\":\"cuda\",\"pid\":%d,\"steps\":%d,\"counted\":%d,\"longest_us\":%.3f}\n", (int)getpid(), steps, counted, longest);
	return 0;
}
