/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <xputrace/output.h>

#include "base/core/process.h"
#include "base/file/output.h"
#include "cli/commands.h"

/* ---- commands that trace ---- */

#define MULTI_LINKS_SINCE 606 /* 6.6; from then on CAP_SYS_ADMIN is not needed */
#define PARANOID_MAX \
	2 /* kernel.perf_event_paranoid: beyond, distributions' kernels want CAP_SYS_ADMIN for perf events */

static const struct {
	unsigned int capability;
	const char *name;
	const char *purpose;
} kept[] = {
	{ CAP_BPF, "bpf", "BPF programs and maps" },
	{ CAP_PERFMON, "perfmon", "probes, tracepoints and counters" },
	{ CAP_SYS_PTRACE, "sys_ptrace", "mappings and memory of other users' processes" },
	{ CAP_CHECKPOINT_RESTORE, "checkpoint_restore", "libraries in other mount namespaces, and deleted ones" },
	{ CAP_DAC_READ_SEARCH, "dac_read_search", "libraries in directories of others" },
	{ CAP_DAC_OVERRIDE, "dac_override", "output in directories of the user who called sudo" },
	{ CAP_CHOWN, "chown", "output that belongs to that user" },
	{ CAP_FOWNER, "fowner", "the same" },
	{ CAP_SETUID, "setuid", "code objects, read with the rights of their process; readers without rights" },
	{ CAP_SETGID, "setgid", "the same" },
	{ CAP_KILL, "kill", "ending such a reader" },
	{ CAP_SYS_NICE, "sys_nice", "placing probes at once while threads wait for them" },
	{ CAP_SYS_RESOURCE, "sys_resource", "more open files" },
	{ CAP_IPC_LOCK, "ipc_lock", "buffers of counters" },
	{ CAP_SYS_ADMIN, "sys_admin",
	  "perf links (before Linux 6.6, or with --link perf); where kernel.perf_event_paranoid is above 2, and where bpf, perfmon or "
	  "checkpoint_restore is missing" },
};

#define KEPT (sizeof(kept) / sizeof(kept[0]))

static bool has_multi_links(void)
{
	struct utsname name;
	char *end;
	unsigned long major, minor;

	if (uname(&name))
		return false;
	major = strtoul(name.release, &end, 10);
	minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
	return major * 100 + minor >= MULTI_LINKS_SINCE;
}

static bool perf_is_restricted(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int paranoid = 0;
	bool known = file && fscanf(file, "%d", &paranoid) == 1;

	if (file)
		fclose(file);
	return !known || paranoid > PARANOID_MAX;
}

static void keep(__u64 mask)
{
	const __u64 split = 1ull << CAP_BPF | 1ull << CAP_PERFMON | 1ull << CAP_CHECKPOINT_RESTORE;
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	char text[128];

	if (!syscall(SYS_capget, &header, data)) {
		/* It stands for those that a container may not have been given. */
		if (mask & split & ~(data[0].permitted | (__u64)data[1].permitted << 32))
			mask |= 1ull << CAP_SYS_ADMIN;
		for (int i = 0; i < 2; i++) {
			data[i].effective &= (__u32)(mask >> 32 * i);
			data[i].permitted &= (__u32)(mask >> 32 * i);
		}
		if (!syscall(SYS_capset, &header, data))
			return;
	}
	snprintf(text, sizeof(text), "cannot drop capabilities: %s", strerror(errno));
	print_message(NULL, XPT_LOG_WARN, text);
}

void privileges_reduce(enum xpt_link link)
{
	__u64 mask = 0;

	if (geteuid())
		return;
	for (size_t i = 0; i < KEPT; i++)
		if (kept[i].capability != CAP_SYS_ADMIN || link == XPT_LINK_PERF || !has_multi_links() ||
		    perf_is_restricted())
			mask |= 1ull << kept[i].capability;
	keep(mask);
}

void privileges_reduce_to_counting(bool of_cpus)
{
	__u64 mask = 1ull << CAP_SYS_PTRACE | 1ull << CAP_DAC_READ_SEARCH;

	if (geteuid())
		return;
	if (of_cpus)
		mask |= 1ull << CAP_PERFMON | (perf_is_restricted() ? 1ull << CAP_SYS_ADMIN : 0);
	keep(mask);
}

void privileges_print(FILE *out)
{
	fprintf(out, "While it traces, xputrace keeps these capabilities and drops all others:\n");
	for (size_t i = 0; i < KEPT; i++)
		fprintf(out, "  %-19s %s\n", kept[i].name, kept[i].purpose);
	fprintf(out,
		"While it counts, xputrace counters keeps sys_ptrace and dac_read_search, for what drivers report per process, and,\n"
		"where it counts what everybody does, perfmon (and sys_admin, where kernel.perf_event_paranoid is above 2), for CPUs\n"
		"that were offline and are back.\n");
}

/* ---- commands that read files ---- */

/* To the process that opens: the flags, and the path up to the end of the message. */
struct request {
	int flags;
	char path[PATH_MAX];
};

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

static int opener = -1; /* socket */

/* ---- the process that opens ---- */

/* The output of output_begin(), of which there is one at most. */
static struct output_file begun = { .descriptor = -1 };

/* It is the end of that output: nothing is opened. */
static bool is_end(int flags)
{
	return flags & O_EXCL && (flags & O_TRUNC || !(flags & O_CREAT));
}

static int open_output(const struct request *request)
{
	int error;

	if (is_end(request->flags))
		return output_end(&begun, request->flags & O_TRUNC ? 0 : -ECANCELED);
	if (!(request->flags & O_EXCL))
		return output_open(request->path, request->flags & (O_TRUNC | O_NONBLOCK | O_RDWR));
	error = begun.descriptor >= 0 ? -EBUSY : output_begin(request->path, &begun);
	return error ?: fcntl(begun.descriptor, F_DUPFD_CLOEXEC, 3);
}

static bool is_inside(const char *path, const char *folder)
{
	size_t length = strlen(folder);
	const char *name = path + length + 1;

	return !strncmp(path, folder, length) && path[length] == '/' && *name && !strchr(name, '/') &&
	       strcmp(name, "..") != 0;
}

static int open_allowed(const struct request *request, const struct confined_file *files, unsigned int count)
{
	bool output = request->flags & (O_CREAT | O_EXCL);
	int descriptor;
	FILE *file;

	if ((request->flags & O_TMPFILE) == O_TMPFILE) {
		file = tmpfile();
		descriptor = file ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 3) : -1;
		if (file)
			fclose(file);
		return descriptor < 0 ? -errno : descriptor;
	}
	if (output && !strcmp(request->path, "/dev/null"))
		return open_output(request);
	for (unsigned int i = 0; i < count; i++) {
		bool inside = files[i].path && files[i].folder && request->flags & O_PATH &&
			      is_inside(request->path, files[i].path);

		if (!files[i].path || files[i].output != output ||
		    (!inside && strcmp(files[i].path, request->path) != 0))
			continue;
		if (output)
			return open_output(request);
		descriptor = open(request->path, (inside ? O_PATH : O_RDONLY | O_NONBLOCK | O_NOCTTY) | O_CLOEXEC |
							 (request->flags & O_NOFOLLOW));
		return descriptor < 0 ? -errno : descriptor;
	}
	return -EACCES;
}

static void on_message(int signal)
{
	(void)signal;
}

static ssize_t receive(int socket, struct request *request)
{
	ssize_t length;

	do
		length = recv(socket, request, sizeof(*request), 0);
	while (length < 0 && errno == EINTR);
	return length;
}

static _Noreturn void open_for(int socket, const struct confined_file *files, unsigned int count)
{
	struct request request;
	ssize_t length;
	sigset_t all;

	/*
	 * It lasts as long as the requesting process, which handles signals. But a pipe that is opened may wait for a
	 * reader: it is interrupted when the socket's other end closes.
	 */
	sigfillset(&all);
	sigdelset(&all, SIGIO);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigaction(SIGIO, &(const struct sigaction){ .sa_handler = on_message }, NULL);
	fcntl(socket, F_SETOWN, getpid());
	fcntl(socket, F_SETFL, O_ASYNC);
	prctl(PR_SET_NAME, "xputrace-open");
	while ((length = receive(socket, &request)) > (ssize_t)offsetof(struct request, path)) {
		union control control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)),
						      .cmsg_level = SOL_SOCKET,
						      .cmsg_type = SCM_RIGHTS } };
		int result = ((char *)&request)[length - 1] ? -EINVAL : open_allowed(&request, files, count);
		bool opened = result >= 0 && !is_end(request.flags);
		struct iovec part = { &result, sizeof(result) };
		struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

		if (opened) {
			memcpy(CMSG_DATA(&control.header), &result, sizeof(result));
			message.msg_control = &control;
			message.msg_controllen = sizeof(control);
		}
		if (sendmsg(socket, &message, MSG_NOSIGNAL) < 0)
			break;
		if (opened)
			close(result);
	}
	output_end(&begun, -ECANCELED);
	_exit(0);
}

/* ---- the requesting process ---- */

/* Outputs, so that their sizes can be had. */
static struct {
	const char *path;
	int copy;
} outputs[2];

static void note_output(const char *path, int descriptor)
{
	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
		if (outputs[i].path)
			continue;
		outputs[i].path = strdup(path);
		outputs[i].copy = dup(descriptor);
		return;
	}
}

long long confined_output_size(const char *path)
{
	struct stat status;

	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++)
		if (outputs[i].path && !strcmp(outputs[i].path, path) && !fstat(outputs[i].copy, &status) &&
		    S_ISREG(status.st_mode))
			return status.st_size;
	return -1;
}

static int ask(void *context, const char *path, int flags)
{
	static int broken; /* an answer was not received: the next one would be that */
	struct request request = { .flags = flags };
	size_t length = strlen(path) + 1;
	int result, descriptor = -1;
	struct iovec part = { &result, sizeof(result) };
	union control control;
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t got;

	(void)context;
	if (length > sizeof(request.path))
		return -ENAMETOOLONG;
	if (broken)
		return broken;
	memcpy(request.path, path, length);
	if (write(opener, &request, offsetof(struct request, path) + length) < 0)
		return -errno;
	do
		got = recvmsg(opener, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got != sizeof(result))
		return broken = got < 0 ? -errno : -EPIPE;
	if (result < 0 || is_end(flags))
		return result;
	if (CMSG_FIRSTHDR(&message) && control.header.cmsg_type == SCM_RIGHTS)
		memcpy(&descriptor, CMSG_DATA(&control.header), sizeof(descriptor));
	if (descriptor >= 0 && flags & O_CREAT)
		note_output(path, descriptor);
	return descriptor >= 0 ? descriptor : -EMFILE;
}

void confined_begin(const struct confined_file *files, unsigned int count)
{
	int sockets[2], error = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) ? -errno : 0;
	pid_t pid = error ? -1 : fork();
	char text[128];

	if (!pid) {
		close(sockets[0]);
		open_for(sockets[1], files, count);
	}
	if (!error)
		close(sockets[1]);
	if (!error && pid < 0) {
		error = -errno;
		close(sockets[0]);
	}
	if (!error) {
		opener = sockets[0];
		xpt_output_set_opener(ask, NULL);
		output_set_opener(ask, NULL); /* of the command's own copy of base/ */
		tzset();		      /* it reads a file */
		error = confine(-1);
	}
	if (!error)
		return;
	snprintf(text, sizeof(text), "cannot drop privileges, files are read with all of them: %s", strerror(-error));
	print_message(NULL, XPT_LOG_WARN, text);
}
