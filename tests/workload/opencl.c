/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OpenCL on whatever device there is (PoCL): two kernels, enqueued in a known number, with blocking reads and waits for
 * events. Prints one line of JSON with the counts.
 *
 * With --ends, what is enqueued is waited for in every way that there is, and the line has what the device says of each: an array of
 * "launches" with the way, when its call began, when the wait for it had returned (ns), and for how long it was queued and
 * ran by clGetEventProfilingInfo(), and when it ended (ns, CLOCK_MONOTONIC, where the device has PoCL's clock). With --long-list N, N are enqueued and waited for in one list. With --callbacks N, it hands over so many
 * callbacks for an event that there is not: the first 1000 addresses are in the C library, the others in no file.
 *
 * opencl [--wait-for-go] [--ends | --long-list N | --callbacks N] [ENQUEUES]
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "ledger.h"

#define ELEMENTS 4096
#define BYTES (ELEMENTS * sizeof(float))

static const char source[] = "kernel void vector_add(global const float *a, global float *b) {"
			     " size_t i = get_global_id(0); b[i] += a[i]; }"
			     "kernel void vector_scale(global float *b, float factor) {"
			     " b[get_global_id(0)] *= factor; }"
			     "kernel void spin(global float *b, int rounds) {"
			     " float x = 1; for (int i = 0; i < rounds; i++) x = x * 1.0001f + 0.5f;"
			     " if (x == 2.0f) b[get_global_id(0)] = x; }";

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

/* ---- all ways to wait ---- */

enum way { WAY_WAIT, WAY_LIST, WAY_FINISH, WAY_READ, WAY_POLL, WAY_MARKER, WAY_LATER_READ, WAY_CALLBACK, WAYS };

static const char *const way_names[] = { "wait", "list", "finish", "read", "poll", "marker", "later read", "callback" };

#define LAUNCHES_MAX 4096

static struct launch {
	enum way way;
	cl_event event;
	uint64_t start, end;
} launches[LAUNCHES_MAX];
static size_t launch_count;
static sem_t called;

static void poll_event(cl_event event)
{
	cl_int status = CL_QUEUED;

	while (status != CL_COMPLETE) {
		check(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL),
		      "status");
		usleep(100);
	}
}

static void CL_CALLBACK event_called(cl_event event, cl_int status, void *launch)
{
	((struct launch *)launch)->end = clock_now();
	(void)event;
	check(status, "status of a callback");
	sem_post(&called);
}

/* Enqueues count of them, and waits for all in one of the ways. */
static void wait_in(struct compute *compute, cl_command_queue queue, cl_kernel kernel, enum way way, size_t count)
{
	static float result[ELEMENTS];
	cl_event events[LAUNCHES_MAX], event;
	size_t first = launch_count, one = 1;
	uint64_t end;

	for (size_t i = 0; i < count; i++, launch_count++) {
		launches[launch_count].way = way;
		launches[launch_count].start = clock_now();
		check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, &events[i]), "enqueue");
		launches[launch_count].event = events[i];
	}
	switch (way) {
	case WAY_WAIT:
		for (size_t i = 0; i < count; i++) {
			check(clWaitForEvents(1, &events[i]), "wait");
			launches[first + i].end = clock_now();
		}
		return;
	case WAY_POLL:
		check(clFlush(queue), "flush");
		for (size_t i = 0; i < count; i++) {
			poll_event(events[i]);
			launches[first + i].end = clock_now();
		}
		return;
	case WAY_CALLBACK:
		for (size_t i = 0; i < count; i++)
			check(clSetEventCallback(events[i], CL_COMPLETE, event_called, &launches[first + i]),
			      "callback");
		check(clFlush(queue), "flush");
		for (size_t i = 0; i < count; i++)
			sem_wait(&called);
		return;
	case WAY_LIST:
		check(clWaitForEvents(count, events), "wait");
		break;
	case WAY_READ:
		check(clEnqueueReadBuffer(queue, compute->b, CL_TRUE, 0, BYTES, result, 0, NULL, NULL), "read");
		break;
	case WAY_MARKER:
		check(clEnqueueMarkerWithWaitList(queue, 0, NULL, &event), "marker");
		check(clWaitForEvents(1, &event), "wait");
		clReleaseEvent(event);
		break;
	case WAY_LATER_READ:
		check(clEnqueueReadBuffer(queue, compute->b, CL_FALSE, 0, BYTES, result, 0, NULL, &event), "read");
		check(clWaitForEvents(1, &event), "wait");
		clReleaseEvent(event);
		break;
	default:
		check(clFinish(queue), "finish");
		break;
	}
	end = clock_now();
	for (size_t i = first; i < launch_count; i++)
		launches[i].end = end;
}

static void launches_print(void)
{
	cl_ulong queued = 0, started = 0, ended = 0;
	struct timespec raw;
	uint64_t behind;

	clock_gettime(CLOCK_MONOTONIC_RAW, &raw);
	behind = clock_now() - (uint64_t)raw.tv_sec * 1000000000 - (uint64_t)raw.tv_nsec;

	printf("{\"runtime\":\"opencl\",\"pid\":%d,\"libraries\":[],\"launches\":[", getpid());
	for (size_t i = 0; i < launch_count; i++) {
		struct launch *launch = &launches[i];

		check(clGetEventProfilingInfo(launch->event, CL_PROFILING_COMMAND_QUEUED, 8, &queued, NULL), "queued");
		check(clGetEventProfilingInfo(launch->event, CL_PROFILING_COMMAND_START, 8, &started, NULL), "start");
		check(clGetEventProfilingInfo(launch->event, CL_PROFILING_COMMAND_END, 8, &ended, NULL), "end");
		printf("%s{\"way\":\"%s\",\"start\":%" PRIu64 ",\"end\":%" PRIu64 ",\"queued\":%" PRIu64
		       ",\"ran\":%" PRIu64 ",\"ended\":%" PRIu64 "}",
		       i ? "," : "", way_names[launch->way], launch->start, launch->end, (uint64_t)(started - queued),
		       (uint64_t)(ended - started), ended + behind);
		clReleaseEvent(launch->event);
	}
	printf("]}\n");
}

/* Lists are waited for on a queue of its own that runs what it has in any order: there nothing else ends them. */
static int all_ways(struct compute *compute, size_t list)
{
	cl_int rounds = 400000, status;
	cl_command_queue ordered, unordered;
	cl_device_id device;
	cl_kernel spin;

	check(clGetCommandQueueInfo(compute->queue, CL_QUEUE_DEVICE, sizeof(device), &device, NULL), "device");
	ordered = clCreateCommandQueue(compute->context, device, CL_QUEUE_PROFILING_ENABLE, &status);
	check(status, "queue");
	unordered = clCreateCommandQueue(compute->context, device,
					 CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &status);
	check(status, "unordered queue");
	spin = clCreateKernel(compute->program, "spin", &status);
	check(status, "spin");
	check(clSetKernelArg(spin, 0, sizeof(cl_mem), &compute->b), "argument");
	if (list) {
		rounds = 10;
		check(clSetKernelArg(spin, 1, sizeof(rounds), &rounds), "argument");
		wait_in(compute, unordered, spin, WAY_LIST, list);
	} else {
		check(clSetKernelArg(spin, 1, sizeof(rounds), &rounds), "argument");
		for (int way = 0; way < WAYS; way++)
			for (int round = 0; round < 5; round++)
				wait_in(compute, way == WAY_LIST ? unordered : ordered, spin, way,
					way == WAY_WAIT ? 1 : 3);
		rounds = 10;
		check(clSetKernelArg(spin, 1, sizeof(rounds), &rounds), "argument");
		wait_in(compute, unordered, spin, WAY_LIST, 300);
	}
	launches_print();
	clReleaseKernel(spin);
	clReleaseCommandQueue(ordered);
	clReleaseCommandQueue(unordered);
	return 0;
}

static int hand_over(unsigned long count)
{
	char *nothing = mmap(NULL, count, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*callback)(cl_event, cl_int, void *);
	unsigned long refused = 0;

	for (unsigned long i = 0; i < count && nothing != MAP_FAILED; i++) {
		const char *address = i < 1000 ? (const char *)printf + i : nothing + i;

		memcpy(&callback, &address, sizeof(callback));
		refused += clSetEventCallback(NULL, CL_COMPLETE, callback, NULL) == CL_INVALID_EVENT;
	}
	printf("{\"runtime\":\"opencl\",\"pid\":%d,\"libraries\":[],\"refused\":%lu}\n", getpid(), refused);
	return 0;
}

int main(int argc, char **argv)
{
	struct ledger *ledger = ledger_new();
	unsigned long steps = 100;
	struct compute compute;
	char line[8];

	if (argc > 2 && strcmp(argv[1], "--callbacks") == 0)
		return hand_over(strtoul(argv[2], NULL, 10));
	sem_init(&called, 0, 0);
	compute_create(&compute);
	if (argc > 1 && strcmp(argv[1], "--ends") == 0)
		return all_ways(&compute, 0);
	if (argc > 2 && strcmp(argv[1], "--long-list") == 0)
		return all_ways(&compute, strtoul(argv[2], NULL, 10));
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
