/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/process.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs it in a process of its own; what it returns. */
static int in_child(int (*run)(int descriptor), int descriptor)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(run(descriptor));
	cr_assert(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define REFUSED(call)                              \
	do {                                       \
		errno = 0;                         \
		if ((call) >= 0 || errno != EPERM) \
			return __LINE__ % 200 + 2; \
	} while (0)

/* 0; 1: it could not be confined; or whose turn it was. */
static int attack(int descriptor)
{
	char *arguments[] = { "/bin/true", NULL }, byte = 'x';
	struct iovec part = { &byte, 1 };
	union bpf_attr attributes = { .map_type = BPF_MAP_TYPE_ARRAY };

	if (confine(-1))
		return 1;
	REFUSED(open("/etc/passwd", O_RDONLY));
	REFUSED(open("/tmp/xputrace-confined", O_WRONLY | O_CREAT, 0600));
	REFUSED(socket(AF_INET, SOCK_STREAM, 0));
	REFUSED(kill(getppid(), 0));
	REFUSED(fork());
	REFUSED(execv(arguments[0], arguments));
	REFUSED(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
	REFUSED(process_vm_readv(getppid(), &part, 1, &part, 1, 0));
	REFUSED(setuid(0));
	REFUSED(unlink("/tmp/xputrace-confined"));
	REFUSED(rename("/tmp/xputrace-confined", "/tmp/xputrace-confined2"));
	REFUSED(fchmod(descriptor, 0777));
	REFUSED(fchown(descriptor, 0, 0));
	REFUSED(fcntl(descriptor, F_SETOWN, getppid()));
	REFUSED(fcntl(descriptor, F_SETLEASE, F_WRLCK));
	REFUSED(ioctl(descriptor, TIOCSTI, &byte));
	REFUSED(unshare(CLONE_NEWUSER));
	REFUSED(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof(attributes)));
	REFUSED(memfd_create("x", 0));
	REFUSED(syscall(SYS_io_uring_setup, 1, NULL));
	return 0;
}

/* The sanitizers write files and ask for memory in other ways. */
static void skip_with_sanitizers(void)
{
#if defined(__SANITIZE_ADDRESS__)
	cr_skip_test("the sanitizers need what a confined process has not");
#endif
}

Test(base_core_process, what_is_not_left)
{
	int descriptor = memfd_create("test", MFD_CLOEXEC), result;

	skip_with_sanitizers();
	cr_assert_geq(descriptor, 0);
	result = in_child(attack, descriptor);
	cr_expect_eq(result, 0, "line with number %% 200 = %d", result - 2);
	close(descriptor);
}

static int work(int descriptor)
{
	char text[8] = "", *memory;
	int copy;

	signal(SIGXFSZ, SIG_IGN);
	if (confine(0))
		return 1;
	memory = malloc(16u << 20);
	if (!memory)
		return 2;
	memset(memory, 1, 16u << 20);
	free(memory);
	if (pread(descriptor, text, 4, 0) != 4 || strcmp(text, "abcd"))
		return 3;
	if (pwrite(descriptor, "x", 1, 4) >= 0)
		return 4; /* its limit is 0 bytes */
	if (send(descriptor, "x", 1, 0) >= 0 || errno != EPERM)
		return 40; /* descriptors could be passed */
	copy = dup(descriptor);
	return copy >= 0 ? 5 : 0; /* nor does it open any */
}

Test(base_core_process, what_is_left)
{
	int descriptor = memfd_create("test", MFD_CLOEXEC);

	skip_with_sanitizers();
	cr_assert_eq(write(descriptor, "abcd", 4), 4);
	cr_expect_eq(in_child(work, descriptor), 0);
	close(descriptor);
}
