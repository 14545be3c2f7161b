/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/reader/stack_process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/process.h"
#include "session/reader/readers_private.h"
#include "stack/stack.h"

#define DESCRIPTORS_MAX 8192
#define STARTS_MAX 16	/* of the process that unwinds: targets can make it crash */
#define IDS_OF_START 26 /* bits: each start has ids of its own */
#define SOCKET_BYTES (8 << 20)
#define DEBUG_FILES "/usr/lib/debug/.build-id/"

/* ---- the process that opens files ---- */

/* The name of a process in its own PID namespace, which is the last one. 0: unknown. */
static unsigned int own_pid(__u32 tgid)
{
	char path[64], line[256];
	unsigned int pid = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%u/status", tgid);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status)) {
		const char *last = strrchr(line, '\t');

		if (!strncmp(line, "NSpid:", 6) && last)
			pid = (unsigned int)strtoul(last, NULL, 10);
	}
	if (status)
		fclose(status);
	return pid;
}

static int path_of(const struct stack_file *file, char *path, size_t size)
{
	size_t length;

	switch (file->kind) {
	case STACK_FILE_MAPS:
		return snprintf(path, size, "/proc/%u/maps", file->tgid);
	case STACK_FILE_MAPPED:
		return snprintf(path, size, "/proc/%u/map_files/%llx-%llx", file->tgid, file->start, file->end);
	case STACK_FILE_MEMORY:
		return snprintf(path, size, "/proc/%u/mem", file->tgid);
	case STACK_FILE_NAMES:
		return snprintf(path, size, "/proc/%u/root/tmp/perf-%u.map", file->tgid, own_pid(file->tgid));
	case STACK_FILE_DEBUG:
		if (file->build_id_size < 2 || file->build_id_size > STACK_BUILD_ID_MAX)
			return -1;
		length = (size_t)snprintf(path, size, DEBUG_FILES "%02x/", file->build_id[0]);
		for (__u32 i = 1; i < file->build_id_size; i++)
			length += (size_t)snprintf(path + length, size - length, "%02x", file->build_id[i]);
		return snprintf(path + length, size - length, ".debug");
	default:
		return -1;
	}
}

/* A page of a file that a process answers for may never come. */
static bool may_be_read(int descriptor)
{
	struct statfs system;
	struct stat status;

	return !fstat(descriptor, &status) && S_ISREG(status.st_mode) && !fstatfs(descriptor, &system) &&
	       (unsigned int)system.f_type != FUSE_SUPER_MAGIC;
}

static int open_file(const struct stack_file *file)
{
	char path[sizeof(DEBUG_FILES) + 2 * STACK_BUILD_ID_MAX + 16];
	int descriptor, flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

	if (file->kind == STACK_FILE_NAMES)
		flags |= O_NOFOLLOW;
	if (path_of(file, path, sizeof(path)) < 0)
		return -EINVAL;
	descriptor = open(path, flags);
	if (descriptor < 0)
		return -errno;
	if (file->kind != STACK_FILE_MAPS && file->kind != STACK_FILE_MEMORY && !may_be_read(descriptor)) {
		close(descriptor);
		return -EACCES;
	}
	return descriptor;
}

/* Until the other side has ended. */
static void serve_files(int socket)
{
	struct stack_file file;
	int none, descriptor, error;

	while (!socket_receive(socket, &file, sizeof(file), &none, 1)) {
		if (none >= 0)
			close(none);
		descriptor = open_file(&file);
		error = descriptor < 0 ? descriptor : 0;
		if (socket_send(socket, &error, sizeof(error), &descriptor, !error))
			error = -EPIPE;
		if (descriptor >= 0)
			close(descriptor);
		if (error == -EPIPE)
			return;
	}
}

/* ---- the process that unwinds ---- */

#define PYTHON_FRESH 100000000ull /* ns */
#define PYTHON_COPY_MAX \
	(sizeof(struct xpt_record_python_copy) + XPT_PYTHON_FRAMES_MAX * sizeof(struct xpt_python_frame))
#define PENDING 64 /* threads whose Python frames have come, and the stack has not */

struct unwinding_process {
	int collector, files;
	/* A struct xpt_record_python_copy each, by thread; of thread 0: there is none. */
	__u64 pending[PENDING][PYTHON_COPY_MAX / sizeof(__u64)];
};

static struct xpt_record_python_copy *pending_of(struct unwinding_process *process, __u32 tid)
{
	return (struct xpt_record_python_copy *)process->pending[tid % PENDING];
}

static int ask_file(void *context, const struct stack_file *file)
{
	const struct unwinding_process *process = context;
	int descriptor, error;

	if (write(process->files, file, sizeof(*file)) != (ssize_t)sizeof(*file) ||
	    socket_receive(process->files, &error, sizeof(error), &descriptor, 1))
		_exit(1);
	return error ?: descriptor;
}

static void send_answer(const struct unwinding_process *process, const void *answer, size_t size)
{
	if (write(process->collector, answer, size) != (ssize_t)size)
		_exit(1);
}

static void give_record(void *context, const struct xpt_record_header *record)
{
	send_answer(context, record, record->size);
}

static void give_python(void *context, __u32 tgid, const struct xpt_python *python)
{
	const struct stack_answer_python answer = {
		.header = { STACK_ANSWER_PYTHON, sizeof(answer), tgid, 0 },
		.python = *python,
	};

	send_answer(context, &answer, sizeof(answer));
}

static void refuse_python(void *context, __u32 tgid, int error)
{
	const struct stack_answer_python answer = {
		.header = { STACK_ANSWER_PYTHON, sizeof(answer), tgid, 0 },
		.error = error,
	};

	send_answer(context, &answer, sizeof(answer));
}

static void keep_python(struct unwinding_process *process, const struct xpt_record_python_copy *copy, size_t size)
{
	if (size >= sizeof(*copy) && size <= PYTHON_COPY_MAX && copy->frames <= XPT_PYTHON_FRAMES_MAX)
		memcpy(pending_of(process, copy->tid), copy, size);
}

static void answer_copy(struct unwinding_process *process, struct unwinder *unwinder, __u64 weight,
			struct xpt_record_stack_copy *copy)
{
	struct xpt_record_python_copy *python = pending_of(process, copy->tid);
	/* It may be that of an earlier stack, which was lost. */
	bool fresh = python->tid == copy->tid && python->header.time - copy->header.time < PYTHON_FRESH;
	struct xpt_record_header none = { STACK_ANSWER_NONE, sizeof(none), 0, 0 };
	struct xpt_record_stack_sample sample;
	int error = unwinder_stack(unwinder, copy, fresh ? python : NULL, &sample);

	python->tid = 0;
	sample.weight = weight;
	if (error)
		send_answer(process, &none, sizeof(none));
	else
		send_answer(process, &sample, sizeof(sample));
}

static void prepare(const struct unwinding_process *process, struct unwinder *unwinder, __u32 tgid)
{
	const struct xpt_record_header done = { STACK_ANSWER_PREPARED, sizeof(done), tgid, 0 };

	unwinder_prepare(unwinder, tgid);
	send_answer(process, &done, sizeof(done));
}

static _Noreturn void be_unwinder(struct unwinding_process *process, __u32 start)
{
	const struct unwinder_options options = { ask_file,	 give_record, give_python,
						  refuse_python, process,     (start << IDS_OF_START) + 1 };
	static struct {
		struct stack_request head;
		__u64 copy[(sizeof(struct xpt_record_stack_copy) + XPT_STACK_BYTES_MAX) / sizeof(__u64)];
	} message;
	struct unwinder *unwinder = unwinder_create(&options);
	ssize_t got;

	if (!unwinder || confine(DESCRIPTORS_MAX))
		_exit(1);
	while ((got = read(process->collector, &message, sizeof(message))) > 0) {
		if ((size_t)got < sizeof(message.head))
			continue;
		if (message.head.kind == STACK_REQUEST_PREPARE)
			prepare(process, unwinder, message.head.tgid);
		else if (message.head.kind == STACK_REQUEST_FORGET)
			unwinder_forget(unwinder, message.head.tgid);
		else if (message.head.kind == STACK_REQUEST_PYTHON)
			keep_python(process, (const void *)message.copy, (size_t)got - sizeof(message.head));
		else if ((size_t)got >= sizeof(message.head) + sizeof(struct xpt_record_stack_copy))
			answer_copy(process, unwinder, message.head.weight, (void *)message.copy);
	}
	_exit(0);
}

/* Whether it has crashed, and may be started again. */
static bool run_unwinder(int collector, __u32 start)
{
	static struct unwinding_process process;
	int sockets[2], status = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return false;
	process.collector = collector;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "xputrace-unwind");
		close(sockets[0]);
		process.files = sockets[1];
		be_unwinder(&process, start);
	}
	close(sockets[1]);
	if (pid > 0)
		serve_files(sockets[0]);
	close(sockets[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFSIGNALED(status);
}

static void be_opener(void *context)
{
	const int *collector = context;
	__u32 start = 0;

	while (run_unwinder(*collector, start) && ++start < STARTS_MAX) {
		/* Its copy has no answer. */
		const struct xpt_record_header none = { STACK_ANSWER_NONE, sizeof(none), 0, 0 };

		if (write(*collector, &none, sizeof(none)) != (ssize_t)sizeof(none))
			break;
	}
}

int stack_process_start(int *socket)
{
	const int bytes = SOCKET_BYTES;
	int sockets[2], error;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	/* Copies are large, and come as they like. */
	for (int i = 0; i < 2; i++)
		if (setsockopt(sockets[i], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
			setsockopt(sockets[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	error = detached_start("xputrace-stacks", &sockets[1], 1, be_opener, &sockets[1]);
	close(sockets[1]);
	if (error)
		close(sockets[0]);
	else
		*socket = sockets[0];
	return error;
}
