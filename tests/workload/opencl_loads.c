/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives an OpenCL runtime (PoCL) a program in several strings, then the binary that it has made of it.
 *
 * opencl_loads BINARY SOURCE...
 *
 * The strings are the files SOURCE. Those with an even number have their length given, and other text behind their end;
 * the others end with a 0 byte. With one SOURCE no lengths are given at all. The runtime's binary is written into
 * BINARY. All strings and the binary are overwritten and freed when the call has returned.
 *
 * Prints {"ready":true,"pid":N}, and after a line on standard input what it did, as code_loads does.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STRINGS_MAX 64

static void check(cl_int status, const char *what)
{
	if (status == CL_SUCCESS)
		return;
	fprintf(stderr, "opencl_loads: %s: %d\n", what, status);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* The file, with what stands behind its end. */
static char *read_file(const char *path, const char *behind, size_t *size)
{
	FILE *file = fopen(path, "rb");
	char *text = NULL;

	*size = 0;
	if (!file || fseek(file, 0, SEEK_END))
		check(CL_INVALID_VALUE, path);
	*size = ftell(file);
	rewind(file);
	text = malloc(*size + strlen(behind) + 1);
	if (!text || fread(text, 1, *size, file) != *size)
		check(CL_INVALID_VALUE, path);
	fclose(file);
	strcpy(text + *size, behind);
	return text;
}

static void destroy(char *bytes, size_t size)
{
	memset(bytes, '#', size);
	free(bytes);
}

static void print(const char *function, uint64_t begin, uint64_t end, const void *address, cl_program program)
{
	printf("{\"function\":\"%s\",\"file\":0,\"pid\":%d,\"tid\":%d,\"begin_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64
	       ",\"address\":\"%p\",\"handle\":\"%p\",\"status\":0}\n",
	       function, getpid(), getpid(), begin, end, address, (void *)program);
}

static cl_program load_source(cl_context context, char **paths, int count)
{
	char *texts[STRINGS_MAX];
	size_t sizes[STRINGS_MAX], reported[STRINGS_MAX];
	uint64_t begin, end;
	cl_program program;
	cl_int status;

	for (int i = 0; i < count; i++) {
		bool terminated = count == 1 || i % 2;

		texts[i] = read_file(paths[i], terminated ? "" : " this is no code", &sizes[i]);
		reported[i] = terminated ? 0 : sizes[i];
	}
	begin = now();
	program = clCreateProgramWithSource(context, count, (const char **)texts, count == 1 ? NULL : reported,
					    &status);
	end = now();
	check(status, "clCreateProgramWithSource");
	print("clCreateProgramWithSource", begin, end, texts[0], program);
	for (int i = 0; i < count; i++)
		destroy(texts[i], sizes[i]);
	return program;
}

static void load_binary(cl_context context, cl_device_id device, cl_program made, const char *path)
{
	unsigned char *binary;
	uint64_t begin, end;
	cl_program program;
	cl_int status, each;
	size_t size;
	FILE *file;

	check(clBuildProgram(made, 1, &device, "", NULL, NULL), "clBuildProgram");
	check(clGetProgramInfo(made, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, NULL), "sizes");
	binary = malloc(size);
	check(clGetProgramInfo(made, CL_PROGRAM_BINARIES, sizeof(binary), &binary, NULL), "binaries");
	file = fopen(path, "wb");
	if (!file || fwrite(binary, 1, size, file) != size || fclose(file))
		check(CL_INVALID_VALUE, path);
	begin = now();
	program = clCreateProgramWithBinary(context, 1, &device, &size, (const unsigned char **)&binary, &each,
					    &status);
	end = now();
	check(status, "clCreateProgramWithBinary");
	print("clCreateProgramWithBinary", begin, end, binary, program);
	destroy((char *)binary, size);
	clReleaseProgram(program);
}

int main(int argc, char **argv)
{
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_program program;
	cl_int status;
	char line[8];

	if (argc < 3 || argc > STRINGS_MAX + 2)
		return 2;
	check(clGetPlatformIDs(1, &platform, NULL), "platform");
	check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "device");
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
	check(status, "context");
	printf("{\"ready\":true,\"pid\":%d}\n", getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	program = load_source(context, argv + 2, argc - 2);
	load_binary(context, device, program, argv[1]);
	clReleaseProgram(program);
	clReleaseContext(context);
	return 0;
}
