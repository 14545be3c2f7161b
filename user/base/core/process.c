/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int thread_start(pthread_t *thread, void *(*run)(void *), void *context, const char *name)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!error)
		pthread_setname_np(*thread, name);
	return -error;
}

int thread_drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return syscall(SYS_capset, &header, none) ? -errno : 0;
}

unsigned int cpus_allowed(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 0 : CPU_COUNT(&set);
}

/* ---- processes ---- */

/* From one to another, both included. */
static void close_span(unsigned int first, unsigned int last)
{
	struct rlimit limit = { .rlim_cur = 1024 };

	if (first > last || !syscall(SYS_close_range, first, last, 0))
		return;
	getrlimit(RLIMIT_NOFILE, &limit); /* before Linux 5.9 */
	for (unsigned int i = first; i <= last && i < limit.rlim_cur && i < 1u << 16; i++)
		close(i);
}

/* Leaves those kept where they are: there may be no room for another descriptor. */
static void close_others(const int *kept, size_t count)
{
	unsigned int first = 0, next;

	do {
		next = ~0u;
		for (size_t i = 0; i < count; i++) {
			if (kept[i] >= 0 && (unsigned int)kept[i] >= first && (unsigned int)kept[i] < next)
				next = kept[i];
		}
		if (next != first)
			close_span(first, next - (next != ~0u));
		first = next + 1;
	} while (next != ~0u);
}

int detached_start(const char *name, const int *kept, size_t count, void (*run)(void *context), void *context)
{
	sigset_t all, before;
	int status = 0, error = 0;
	pid_t pid;

	/* No handler of this program ever runs in the process, and no signal of a terminal ends it. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid < 0)
		error = -errno;
	if (!pid) {
		pid = fork();
		if (pid)
			_exit(pid < 0 ? errno : 0);
		setsid();
		prctl(PR_SET_NAME, name);
		close_others(kept, count);
		(void)!chdir("/"); /* so that the folder's file system can be unmounted */
		run(context);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid > 0 && WIFEXITED(status))
		error = -WEXITSTATUS(status);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

/* ---- giving up rights ---- */

/* Nobody's: systemd's list of user IDs leaves these free. One each, so that none of them can meddle with another one. */
#define USERS_FIRST 0x70000000

#if defined(__x86_64__)
#define THIS_MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_MACHINE AUDIT_ARCH_AARCH64
#endif

#define MEMORY 5  /* in the filter: result of process_vm_readv() */
#define SOCKETS 7 /* of the first call on sockets; the results lie two apart */
#define SOCKET_CALLS 3
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Reading and writing what is open, memory, ending. */
static const struct sock_filter filter[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_MACHINE, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	ALLOW(process_vm_readv), /* these first: see confine_to() */
	ALLOW(sendto),
	ALLOW(sendmsg),
	ALLOW(recvfrom),
	ALLOW(read),
	ALLOW(pread64),
	ALLOW(lseek),
	ALLOW(write),
	ALLOW(pwrite64),
	ALLOW(writev),
	ALLOW(recvmsg),
	ALLOW(fstat),
	ALLOW(newfstatat), /* as the C library calls fstat(); what others' files are called is all that it gives */
	ALLOW(ftruncate),
	ALLOW(fsync),
	ALLOW(ppoll),
#ifdef __NR_poll
	ALLOW(poll),
#endif
	ALLOW(dup),
	ALLOW(close),
	ALLOW(brk),
	ALLOW(mmap),
	ALLOW(mremap),
	ALLOW(munmap),
	ALLOW(mprotect),
	ALLOW(madvise),
	ALLOW(getpid),
	ALLOW(gettid),
	ALLOW(futex),
	ALLOW(clock_gettime),
	ALLOW(getrandom),
	ALLOW(rt_sigreturn),
	ALLOW(rt_sigprocmask), /* abort() */
	ALLOW(exit),
	ALLOW(exit_group),
	/* fcntl(): copies of descriptors, and their flags */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fcntl, 0, 4),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_DUPFD_CLOEXEC, 1, 0),
	BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, F_SETFL, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
};

static int confine_to(int descriptors, bool memory)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct rights[2] = { 0 };
	struct sock_filter calls[sizeof(filter) / sizeof(filter[0])];
	const struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), calls };
	bool own_user = true;
	const struct rlimit zero = { 0, 0 }, few = { descriptors, descriptors };
	uid_t user = USERS_FIRST + getpid();

	setrlimit(RLIMIT_NPROC, &zero);
	setrlimit(RLIMIT_CORE, &zero);
	memcpy(calls, filter, sizeof(filter));
	if (memory) {
		if (syscall(SYS_capget, &header, rights))
			return -errno;
		own_user = rights[0].permitted & 1u << CAP_SYS_PTRACE; /* else it may read its user's processes */
		rights[0].permitted &= 1u << CAP_SYS_PTRACE;
		rights[0] = (struct __user_cap_data_struct){ rights[0].permitted, rights[0].permitted, 0 };
		rights[1] = (struct __user_cap_data_struct){ 0 };
		prctl(PR_SET_KEEPCAPS, 1);
	} else {
		calls[MEMORY].k = SECCOMP_RET_ERRNO | EPERM;
	}
	if (descriptors >= 0) {
		for (int i = 0; i < SOCKET_CALLS; i++)
			calls[SOCKETS + 2 * i].k = SECCOMP_RET_ERRNO | EPERM;
		setrlimit(RLIMIT_NOFILE, &few);
		setrlimit(RLIMIT_FSIZE, &zero);
	}
	/* These need rights that a service may not have; what counts comes after them. */
	if (own_user) {
		syscall(SYS_setgroups, 0, NULL);
		syscall(SYS_setresgid, user, user, user);
		syscall(SYS_setresuid, user, user, user);
	}
	prctl(PR_SET_DUMPABLE, 0);
	if (descriptors >= 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of the user resets it */
	if (syscall(SYS_capset, &header, rights) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return -errno;
	return 0;
}

int confine(int descriptors)
{
	return confine_to(descriptors, false);
}

int confine_to_memory(int descriptors)
{
	return confine_to(descriptors, true);
}
