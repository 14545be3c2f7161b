/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/reader/stack_process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
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
#define OPEN_WAIT 1000 /* ms for a file */
#define WAITING_MAX 8
#define LOCAL_MAX 64

/* ---- the process that opens files ---- */

/* The name of a process in its own PID namespace, which is the last one, and whose files it makes. False: unknown. */
static bool read_status(__u32 tgid, unsigned int *pid, uid_t *uid)
{
	char path[64], line[256];
	bool has_uid = false;
	FILE *status;

	*pid = 0;
	snprintf(path, sizeof(path), "/proc/%u/status", tgid);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status)) {
		const char *last = strrchr(line, '\t');

		has_uid |= sscanf(line, "Uid: %*u %*u %*u %u", uid) == 1;
		if (!strncmp(line, "NSpid:", 6) && last)
			*pid = (unsigned int)strtoul(last, NULL, 10);
	}
	if (status)
		fclose(status);
	return has_uid && *pid;
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
		return snprintf(path, size, "/proc/%u/root", file->tgid);
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

/* ---- files that targets choose: nothing happens to what is no plain file, and nobody waits for a file system ---- */

struct opened {
	int error;
	bool is_local;
	dev_t device;
};

/* Names are in a file of the process's own, as links do not lead out of its root. */
static int names_place(const struct stack_file *file, int root, __u64 resolve, uid_t *owner)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | resolve };
	unsigned int pid;
	char path[32];

	if (!read_status(file->tgid, &pid, owner))
		return -ESRCH;
	snprintf(path, sizeof(path), "tmp/perf-%u.map", pid);
	root = syscall(SYS_openat2, root, path, &how, sizeof(how));
	return root < 0 ? -errno : root;
}

/* A descriptor (O_PATH) of the plain file, -errno, or -EAGAIN: with RESOLVE_CACHED the file system would have to be asked. */
static int find_place(const struct stack_file *file, __u64 resolve, dev_t *device)
{
	char path[64];
	int place, names;
	struct statx status;
	uid_t owner;

	if (path_of(file, path, sizeof(path)) < 0)
		return -EINVAL;
	place = open(path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return -errno;
	if (file->kind == STACK_FILE_NAMES) {
		names = names_place(file, place, resolve, &owner);
		close(place);
		place = names;
	}
	if (place < 0)
		return place;
	/* Of what is not asked for it gives what it has. */
	if (statx(place, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &status) || !S_ISREG(status.stx_mode) ||
	    (file->kind == STACK_FILE_NAMES && status.stx_uid != owner)) {
		close(place);
		return -EACCES;
	}
	*device = makedev(status.stx_dev_major, status.stx_dev_minor);
	return place;
}

/* Closes place. A page of a file that a process answers for may never come: it is not opened. */
static int open_place(int place, struct opened *opened)
{
	struct statfs system = { 0 };
	int descriptor;

	if (fstatfs(place, &system))
		opened->error = -errno;
	else if ((unsigned int)system.f_type == FUSE_SUPER_MAGIC)
		opened->error = -EACCES;
	if (opened->error) {
		close(place);
		return -1;
	}
	descriptor = code_file_open_place(place);
	opened->error = descriptor < 0 ? descriptor : 0;
	opened->is_local = file_system_is_local(system.f_type);
	return descriptor;
}

/* Processes that still wait for the file system on which they were to open a file. */
static struct waiting {
	pid_t pid;
	__u64 key; /* of the device, or of the process whose directories have to be gone through */
} waiting[WAITING_MAX];
static size_t waiting_count;

static bool is_waited_for(__u64 key)
{
	bool found = false;

	for (size_t i = waiting_count; i-- > 0;) {
		if (waitpid(waiting[i].pid, NULL, WNOHANG))
			waiting[i] = waiting[--waiting_count];
		else
			found |= waiting[i].key == key;
	}
	return found || waiting_count == WAITING_MAX;
}

static _Noreturn void be_waiting(const struct stack_file *file, int socket)
{
	struct opened opened = { 0 };
	int descriptor;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "xputrace-file");
	/* What it may keep for ever: nothing. */
	if (dup2(socket, 0) != 0)
		_exit(1);
	syscall(SYS_close_range, 3, ~0u, 0);
	descriptor = find_place(file, 0, &opened.device);
	if (descriptor < 0)
		opened.error = descriptor;
	else
		descriptor = open_place(descriptor, &opened);
	socket_send(0, &opened, sizeof(opened), &descriptor, !opened.error);
	_exit(0);
}

/* By a process that may wait for as long as the file system likes. */
static int open_by_another(const struct stack_file *file, __u64 key, struct opened *opened)
{
	int sockets[2], descriptor = -1;
	struct pollfd polled;
	pid_t pid;

	if (is_waited_for(key))
		return -ETIMEDOUT;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	pid = fork();
	if (!pid)
		be_waiting(file, sockets[1]);
	close(sockets[1]);
	polled = (struct pollfd){ .fd = sockets[0], .events = POLLIN };
	if (pid < 0) {
		opened->error = -errno;
	} else if (poll(&polled, 1, OPEN_WAIT) <= 0) {
		opened->error = -ETIMEDOUT;
		kill(pid, SIGKILL);
		waiting[waiting_count++] = (struct waiting){ pid, key };
	} else {
		if (socket_receive(sockets[0], opened, sizeof(*opened), &descriptor, 1))
			opened->error = -EPROTO;
		waitpid(pid, NULL, 0);
	}
	close(sockets[0]);
	return opened->error ?: descriptor;
}

static int open_chosen(const struct stack_file *file)
{
	static dev_t local[LOCAL_MAX]; /* file systems that are known to answer */
	static size_t local_count;
	struct opened opened = { 0 };
	int place = find_place(file, RESOLVE_CACHED, &opened.device), descriptor;
	size_t at = 0;

	if (place < 0 && place != -EAGAIN)
		return place;
	while (place >= 0 && at < local_count && local[at] != opened.device)
		at++;
	if (place >= 0 && at < local_count) {
		descriptor = open_place(place, &opened);
		return opened.error ?: descriptor;
	}
	if (place >= 0)
		close(place);
	descriptor = open_by_another(file, place >= 0 ? opened.device : (1ull << 63 | file->tgid), &opened);
	if (descriptor >= 0 && opened.is_local)
		local[local_count < LOCAL_MAX ? local_count++ : 0] = opened.device;
	return descriptor;
}

static int open_file(const struct stack_file *file)
{
	char path[sizeof(DEBUG_FILES) + 2 * STACK_BUILD_ID_MAX + 16];
	int descriptor;

	if (file->kind == STACK_FILE_MAPPED || file->kind == STACK_FILE_NAMES)
		return open_chosen(file);
	if (path_of(file, path, sizeof(path)) < 0)
		return -EINVAL;
	descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return descriptor < 0 ? -errno : descriptor;
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
