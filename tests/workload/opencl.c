/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OpenCL on whatever device there is (PoCL): two kernels, enqueued in a known number, with blocking reads and waits for
 * events. Prints one line of JSON with the counts.
 *
 * opencl [--wait-for-go] [ENQUEUES]
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger.h"

#define ELEMENTS 4096
#define BYTES (ELEMENTS * sizeof(float))

static const char source[] = "kernel void vector_add(global const float *a, global float *b) {"
			     " size_t i = get_global_id(0); b[i] += a[i]; }"
			     "kernel void vector_scale(global float *b, float factor) {"
			     " b[get_global_id(0)] *= factor; }";

struct compute {
	cl_context context;
	cl_command_queue queue;
	cl_program program;
	cl_kernel add, scale;
	cl_mem a, b;
};

static void check(cl_int status, const char *what)
{
	if (status == CL_SUCCESS)
		return;
	fprintf(stderr, "opencl: %s: %d\n", what, status);
	exit(1);
}

static void compute_create(struct compute *compute)
{
	static float ones[ELEMENTS];
	const char *text = source;
	cl_platform_id platform;
	cl_device_id device;
	cl_float factor = 0.5f;
	cl_int status;

	for (size_t i = 0; i < ELEMENTS; i++)
		ones[i] = 1;
	check(clGetPlatformIDs(1, &platform, NULL), "platform");
	check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "device");
	compute->context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
	check(status, "context");
	compute->queue = clCreateCommandQueue(compute->context, device, 0, &status);
	check(status, "queue");
	compute->program = clCreateProgramWithSource(compute->context, 1, &text, NULL, &status);
	check(status, "program");
	check(clBuildProgram(compute->program, 1, &device, "", NULL, NULL), "build");
	compute->add = clCreateKernel(compute->program, "vector_add", &status);
	check(status, "vector_add");
	compute->scale = clCreateKernel(compute->program, "vector_scale", &status);
	check(status, "vector_scale");
	compute->a = clCreateBuffer(compute->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, BYTES, ones, &status);
	check(status, "buffer a");
	compute->b = clCreateBuffer(compute->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, BYTES, ones, &status);
	check(status, "buffer b");
	check(clSetKernelArg(compute->add, 0, sizeof(cl_mem), &compute->a), "argument");
	check(clSetKernelArg(compute->add, 1, sizeof(cl_mem), &compute->b), "argument");
	check(clSetKernelArg(compute->scale, 0, sizeof(cl_mem), &compute->b), "argument");
	check(clSetKernelArg(compute->scale, 1, sizeof(factor), &factor), "argument");
}

static void note(struct ledger *ledger, const char *function, const char *program, const void *handle,
		 struct value size, uint64_t start)
{
	struct call call = { .function = function,
			     .program = program,
			     .size = size,
			     .status = SOME(0),
			     .nanoseconds = clock_now() - start };

	if (handle)
		call.handle = SOME(handle);
	ledger_add(ledger, &call);
}

/* One step: both kernels, in every fourth step a blocking read, in every eighth a wait for the event. */
static void step(struct compute *compute, struct ledger *ledger, unsigned long number)
{
	static float result[ELEMENTS];
	size_t elements = ELEMENTS;
	struct value none = { false, 0 };
	uint64_t start = clock_now();
	cl_event event;

	check(clEnqueueNDRangeKernel(compute->queue, compute->add, 1, NULL, &elements, NULL, 0, NULL, &event),
	      "enqueue");
	note(ledger, "clEnqueueNDRangeKernel", "vector_add", compute->add, none, start);
	if (number % 8 == 0) {
		start = clock_now();
		check(clWaitForEvents(1, &event), "wait");
		note(ledger, "clWaitForEvents", NULL, NULL, none, start);
	}
	check(clReleaseEvent(event), "event");
	start = clock_now();
	check(clEnqueueNDRangeKernel(compute->queue, compute->scale, 1, NULL, &elements, NULL, 0, NULL, NULL),
	      "enqueue");
	note(ledger, "clEnqueueNDRangeKernel", "vector_scale", compute->scale, none, start);
	if (number % 4 != 0)
		return;
	start = clock_now();
	check(clEnqueueReadBuffer(compute->queue, compute->b, CL_TRUE, 0, BYTES, result, 0, NULL, NULL), "read");
	note(ledger, "clEnqueueReadBuffer", NULL, NULL, SOME(BYTES), start);
	if (result[0] != 1.0f || result[ELEMENTS - 1] != 1.0f) { /* (1 + 1) / 2, every time */
		fprintf(stderr, "opencl: wrong result %f\n", result[0]);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct ledger *ledger = ledger_new();
	unsigned long steps = 100;
	struct compute compute;
	char line[8];

	compute_create(&compute);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--wait-for-go") != 0) {
			steps = strtoul(argv[i], NULL, 10);
			continue;
		}
		printf("{\"ready\":true,\"pid\":%d}\n", getpid());
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 1;
	}
	for (unsigned long i = 0; i < steps; i++)
		step(&compute, ledger, i);
	check(clFinish(compute.queue), "finish");
	note(ledger, "clFinish", NULL, NULL, (struct value){ false, 0 }, clock_now());
	printf("{\"runtime\":\"opencl\",\"pid\":%d,\"libraries\":[{", getpid());
	ledger_print(ledger, stdout);
	printf("}]}\n");
	clReleaseMemObject(compute.a);
	clReleaseMemObject(compute.b);
	clReleaseKernel(compute.add);
	clReleaseKernel(compute.scale);
	clReleaseProgram(compute.program);
	clReleaseCommandQueue(compute.queue);
	clReleaseContext(compute.context);
	ledger_free(ledger);
	return 0;
}
