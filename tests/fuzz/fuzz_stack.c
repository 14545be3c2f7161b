/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies of stacks with any registers, bytes and frames of an interpreter, in a process with this program's own files that looks like
 * Python, and with any memory and names of made code. What comes of it is not judged, only that it can be recorded.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/stream/records.h"
#include "stack/stack.h"

#include "tests/fuzz/require.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TGID 1
#define MADE 0x20000000 /* where the process has made code, a page */
#define DEBUG 512	/* in an input: what lies at _PyRuntime */

/* Makes this program one of Python. */
__attribute__((used, visibility("default"))) char _PyRuntime[4096];
__attribute__((used, visibility("default"))) void _PyEval_EvalFrameDefault(void);

void _PyEval_EvalFrameDefault(void)
{
}

struct input {
	const uint8_t *data;
	size_t size;
	unsigned int minor;
};

static int file_with(const void *bytes, size_t size)
{
	int descriptor = memfd_create("fuzz", MFD_CLOEXEC);

	require(descriptor >= 0 && write(descriptor, bytes, size) == (ssize_t)size && !lseek(descriptor, 0, SEEK_SET));
	return descriptor;
}

/* Of the process: the input, and what Python says of itself where its symbol is. */
static int memory(const struct input *input)
{
	const int descriptor = file_with(input->data, input->size);

	if (input->size > DEBUG)
		require(pwrite(descriptor, input->data + DEBUG, input->size - DEBUG, (off_t)(uintptr_t)_PyRuntime) ==
			(ssize_t)(input->size - DEBUG));
	return descriptor;
}

/* Those of this program, whose own file is called as an interpreter. */
static int mappings(unsigned int minor)
{
	static char text[1 << 20];
	char own[4096], line[8192], *at = text;
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
	FILE *maps = fopen("/proc/self/maps", "re");

	require(maps && length > 0);
	own[length] = '\0';
	while (fgets(line, sizeof(line), maps)) {
		char *path = strstr(line, own);

		if (path)
			snprintf(path, 64, "/usr/bin/python3.%u\n", minor);
		at += snprintf(at, (size_t)(text + sizeof(text) - at), "%s", line);
		require(at < text + sizeof(text));
	}
	fclose(maps);
	return file_with(text, (size_t)(at - text));
}

static int open_file(void *context, const struct stack_file *file)
{
	const struct input *input = context;

	switch (file->kind) {
	case STACK_FILE_MAPS:
		return mappings(input->minor);
	case STACK_FILE_MAPPED:
		return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	case STACK_FILE_MEMORY:
		return memory(input);
	case STACK_FILE_NAMES:
		return file_with(input->data, input->size);
	default:
		return -ENOENT;
	}
}

static void on_record(void *context, const struct xpt_record_header *record)
{
	(void)context;
	require(record_validate(record, record->size));
}

static void on_python(void *context, __u32 tgid, const struct xpt_python *python)
{
	(void)context;
	require(tgid == TGID && python->frame_bytes <= XPT_PYTHON_FRAME_BYTES);
}

static void on_refused(void *context, __u32 tgid, int error)
{
	(void)context;
	require(tgid == TGID && error < 0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	require(mmap((void *)MADE, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		     0) == (void *)MADE);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static _Alignas(8) char copy_room[sizeof(struct xpt_record_stack_copy) + XPT_STACK_BYTES_MAX];
	static _Alignas(8) char python_room[sizeof(struct xpt_record_python_copy) +
					    XPT_PYTHON_FRAMES_MAX * sizeof(struct xpt_python_frame)];
	struct xpt_record_stack_copy *copy = (void *)copy_room;
	struct xpt_record_python_copy *python = (void *)python_room;
	struct input input = { data, size, 9 + (size ? data[0] % 6 : 0) };
	const struct unwinder_options options = { open_file, on_record, on_python, on_refused, &input, 1 };
	struct unwinder *unwinder = unwinder_create(&options);
	struct xpt_record_stack_sample sample;
	size_t stack = size < sizeof(copy_room) ? size : sizeof(copy_room);
	size_t frames = size / 2 < sizeof(python_room) ? size / 2 : sizeof(python_room);

	require(unwinder);
	memset(copy_room, 0, sizeof(copy_room));
	memset(python_room, 0, sizeof(python_room));
	memcpy(copy_room, data, stack);
	memcpy(python_room, data + size - frames, frames);
	copy->header.tgid = TGID;
	copy->header.size = (__u16)(sizeof(*copy) + copy->length % (XPT_STACK_BYTES_MAX + 1));
	python->tid = copy->tid;
	python->frames %= XPT_PYTHON_FRAMES_MAX + 1;
	unwinder_prepare(unwinder, TGID);
	/* In this program's code, where tables say how it goes on. */
	if (size > 1 && data[1] & 1)
		copy->registers[16] = (__u64)(uintptr_t)LLVMFuzzerTestOneInput + data[1];
	if (!unwinder_stack(unwinder, copy, python, &sample))
		require(sample.stack == 1 && record_validate(&sample.header, sizeof(sample)));
	unwinder_forget(unwinder, TGID);
	unwinder_free(unwinder);
	return 0;
}
