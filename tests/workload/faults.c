/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * To be preloaded: from main() on, the Nth allocation or the Nth system call of the process fails. The environment says which:
 *
 * FAULTS_KIND   memory: malloc() and the like; call: system calls of the main thread, by syscall user dispatch (x86-64)
 * FAULTS_AT     N, from 1 on; 0: none fails
 * FAULTS_KEEP   1: so do all that follow
 * FAULTS_LEAVE  names of libraries, or beginnings of them, separated by commas: what they ask for is not counted
 * FAULTS_CALLS  names of system calls, separated by commas: only these are counted
 * FAULTS_ERROR  number of the error of a system call in place of the usual one
 * FAULTS_LOG    a file; gets "failed WHAT ERROR" and where from, when the first one fails; without N "count NUMBER" at the end
 *
 * Children do not inherit it: neither what is executed, nor what is only forked.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define RANGES_MAX 128
#define FRAMES_MAX 32

enum source { SOURCE_ANY, SOURCE_LEFT, SOURCE_LIBC, SOURCE_SELF };

/* Text of a loaded object. */
static struct range {
	uintptr_t begin, end;
	enum source source;
} ranges[RANGES_MAX];
static size_t range_count;

static atomic_ulong count;
static unsigned long fail_at;
static bool keep, counts_memory;
static char left[256], calls[1024], log_path[4096];
static int log_file = -1; /* open from the beginning: the process may give up its rights */
static int chosen_error;
static pid_t counted_process;
static __thread bool inside;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t number, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

/* Whether list has the text, or, with prefix, its beginning. */
static bool in_list(const char *list, const char *text, bool prefix)
{
	for (; *list; list += strcspn(list, ","), list += *list == ',') {
		size_t length = strcspn(list, ",");

		if (length && !strncmp(list, text, length) && (prefix || !text[length]))
			return true;
	}
	return false;
}

static enum source source_at(uintptr_t address)
{
	for (size_t i = 0; i < range_count; i++) {
		if (address >= ranges[i].begin && address < ranges[i].end)
			return ranges[i].source;
	}
	return SOURCE_ANY;
}

static int add_ranges(struct dl_phdr_info *info, size_t size, void *context)
{
	const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;

	(void)size;
	(void)context;
	for (size_t i = 0; i < info->dlpi_phnum && range_count < RANGES_MAX; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		struct range range = { .begin = info->dlpi_addr + header->p_vaddr, .source = SOURCE_ANY };

		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
			continue;
		range.end = range.begin + header->p_memsz;
		if ((uintptr_t)add_ranges >= range.begin && (uintptr_t)add_ranges < range.end)
			range.source = SOURCE_SELF;
		else if (!strncmp(name, "libc.so", 7))
			range.source = SOURCE_LIBC;
		else if (in_list(left, name, true))
			range.source = SOURCE_LEFT;
		ranges[range_count++] = range;
	}
	return 0;
}

/* Who asked: the first caller that is not the C library. */
static bool is_left(uintptr_t caller)
{
	enum source source = source_at(caller);
	void *frames[FRAMES_MAX];
	int found;

	if (!*left || source == SOURCE_ANY)
		return false;
	if (source == SOURCE_LEFT)
		return true;
	found = backtrace(frames, FRAMES_MAX);
	for (int i = 0; i < found; i++) {
		source = source_at((uintptr_t)frames[i]);
		if (source == SOURCE_LEFT || source == SOURCE_ANY)
			return source == SOURCE_LEFT;
	}
	return false;
}

static void log_failure(const char *what, int error)
{
	void *frames[FRAMES_MAX];
	char text[64];
	int length;

	/* Not dprintf(): malloc() may be in the midst of something. */
	length = snprintf(text, sizeof(text), "failed %s %d\n", what, error);
	if (write(log_file, text, (size_t)length) == length)
		backtrace_symbols_fd(frames, backtrace(frames, FRAMES_MAX), log_file);
}

static void log_count(void)
{
	inside = true;
	if (counted_process == getpid())
		dprintf(log_file, "count %lu\n", atomic_load(&count));
}

/* Counts one more; whether it fails. */
static bool is_chosen(const char *what, int error, uintptr_t caller)
{
	unsigned long number;

	if (is_left(caller))
		return false;
	number = atomic_fetch_add(&count, 1) + 1;
	if (number == fail_at)
		log_failure(what, error);
	return fail_at && (number == fail_at || (keep && number > fail_at));
}

/* ---- allocations ---- */

static bool memory_fails(const char *what, void *caller)
{
	bool fails;

	if (!counts_memory || inside || counted_process != getpid())
		return false;
	inside = true;
	fails = is_chosen(what, ENOMEM, (uintptr_t)caller);
	inside = false;
	if (fails)
		errno = ENOMEM;
	return fails;
}

EXPORT void *malloc(size_t size)
{
	return memory_fails("malloc", __builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t number, size_t size)
{
	return memory_fails("calloc", __builtin_return_address(0)) ? NULL : __libc_calloc(number, size);
}

EXPORT void *realloc(void *memory, size_t size)
{
	return memory_fails("realloc", __builtin_return_address(0)) ? NULL : __libc_realloc(memory, size);
}

EXPORT void *reallocarray(void *memory, size_t number, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(number, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return memory_fails("reallocarray", __builtin_return_address(0)) ? NULL : __libc_realloc(memory, bytes);
}

/* ---- system calls ---- */

#ifdef __x86_64__

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_ON 1
#endif
#define DISPATCH_ALLOW 0
#define DISPATCH_BLOCK 1

/* Those that can fail for want of something, each with the error that it then has; others are not counted. */
static const struct {
	int number, error;
	const char *name;
} table[] = {
#define CALL(name, error)                \
	{                                \
		SYS_##name, error, #name \
	}
	CALL(open, EMFILE),
	CALL(openat, EMFILE),
	CALL(openat2, EMFILE),
	CALL(dup, EMFILE),
	CALL(dup2, EMFILE),
	CALL(dup3, EMFILE),
	CALL(fcntl, EMFILE),
	CALL(pipe2, EMFILE),
	CALL(socket, EMFILE),
	CALL(socketpair, EMFILE),
	CALL(accept4, EMFILE),
	CALL(eventfd2, EMFILE),
	CALL(epoll_create1, EMFILE),
	CALL(timerfd_create, EMFILE),
	CALL(signalfd4, EMFILE),
	CALL(inotify_init1, EMFILE),
	CALL(memfd_create, EMFILE),
	CALL(pidfd_open, EMFILE),
	CALL(perf_event_open, EMFILE),
	CALL(bpf, EPERM),
	CALL(epoll_ctl, ENOMEM),
	CALL(epoll_wait, EINTR),
	CALL(epoll_pwait, EINTR),
	CALL(epoll_pwait2, EINTR),
	CALL(poll, EINTR),
	CALL(ppoll, EINTR),
	CALL(mmap, ENOMEM),
	CALL(mremap, ENOMEM),
	CALL(clone, EAGAIN),
	CALL(clone3, EAGAIN),
	CALL(fork, EAGAIN),
	CALL(vfork, EAGAIN),
	CALL(read, EIO),
	CALL(pread64, EIO),
	CALL(readv, EIO),
	CALL(getdents64, EIO),
	CALL(ioctl, EIO),
	CALL(fstat, EIO),
	CALL(stat, EIO),
	CALL(lstat, EIO),
	CALL(newfstatat, EIO),
	CALL(statx, EIO),
	CALL(statfs, EIO),
	CALL(fstatfs, EIO),
	CALL(readlink, EIO),
	CALL(readlinkat, EIO),
	CALL(lseek, EIO),
	CALL(write, ENOSPC),
	CALL(pwrite64, ENOSPC),
	CALL(writev, ENOSPC),
	CALL(ftruncate, EIO),
	CALL(fallocate, ENOSPC),
	CALL(fsync, EIO),
	CALL(fdatasync, EIO),
	CALL(rename, EIO),
	CALL(renameat, EIO),
	CALL(renameat2, EIO),
	CALL(link, EIO),
	CALL(linkat, EIO),
	CALL(unlink, EIO),
	CALL(unlinkat, EIO),
	CALL(mkdir, ENOSPC),
	CALL(mkdirat, ENOSPC),
	CALL(fchmod, EPERM),
	CALL(fchown, EPERM),
	CALL(flock, ENOLCK),
	CALL(bind, EADDRINUSE),
	CALL(listen, EADDRINUSE),
	CALL(connect, EAGAIN),
	CALL(sendmsg, ENOBUFS),
	CALL(sendto, ENOBUFS),
	CALL(recvmsg, ENOMEM),
	CALL(recvfrom, ENOMEM),
	CALL(process_vm_readv, EPERM),
	CALL(setns, EPERM),
	CALL(prctl, EINVAL),
	CALL(prlimit64, EPERM),
	CALL(sched_getaffinity, EINVAL),
	CALL(sched_setaffinity, EINVAL),
	CALL(setsid, EPERM),
	CALL(chdir, EACCES),
	CALL(fchdir, EACCES),
	CALL(access, EACCES),
	CALL(faccessat, EACCES),
	CALL(faccessat2, EACCES),
};

/* Only what lies between faults_begin and faults_end may make system calls that are not dispatched. */
long faults_syscall(long number, long a, long b, long c, long d, long e, long f);
void faults_again(void);
void faults_restore(void);
extern char faults_begin[], faults_end[];
/* Where to go on after each of faults_again: a new thread comes there while its parent may be making the next one. */
#define RETURNS 64
#define AGAIN_SIZE 8
__attribute__((visibility("hidden"))) greg_t faults_returns[RETURNS];

__asm__(".text\n"
	"faults_begin:\n"
	"faults_syscall:\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	mov %rdx, %rsi\n"
	"	mov %rcx, %rdx\n"
	"	mov %r8, %r10\n"
	"	mov %r9, %r8\n"
	"	mov 8(%rsp), %r9\n"
	"	syscall\n"
	"	ret\n"
	/* In place of the call itself: what returns twice, or not to where it was made. */
	"faults_again:\n"
	".set faults_number, 0\n"
	".rept 64\n"
	"	syscall\n"
	"	jmp *faults_returns + 8 * faults_number(%rip)\n"
	".set faults_number, faults_number + 1\n"
	".endr\n"
	/* As the C library's, which unwinders know by its bytes. */
	"faults_restore:\n"
	"	mov $15, %rax\n"
	"	syscall\n"
	"	nop\n" /* the kernel looks at the address behind the call */
	"faults_end:\n");

static volatile char dispatch = DISPATCH_ALLOW;

static int find_call(long number)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (table[i].number == number)
			return !*calls || in_list(calls, table[i].name, false) ? (int)i : -1;
	}
	return -1;
}

/* The mask is that of the interrupted code, and SIGSYS must not be blocked in it. */
static long change_mask(ucontext_t *context, int how, const uint64_t *set, uint64_t *before)
{
	uint64_t mask, dispatched = 1ull << (SIGSYS - 1);

	memcpy(&mask, &context->uc_sigmask, sizeof(mask));
	if (before)
		*before = mask;
	if (set)
		mask = how == SIG_BLOCK ? mask | *set : how == SIG_UNBLOCK ? mask & ~*set : *set;
	mask &= ~dispatched;
	memcpy(&context->uc_sigmask, &mask, sizeof(mask));
	return 0;
}

static bool call_fails(const greg_t *registers, int *error)
{
	int call = find_call(registers[REG_RAX]);
	bool fails;

	if (call < 0)
		return false;
	*error = chosen_error ? chosen_error : table[call].error;
	dispatch = DISPATCH_ALLOW;
	fails = is_chosen(table[call].name, *error, registers[REG_RIP]);
	dispatch = DISPATCH_BLOCK;
	return fails;
}

static void on_call(int signal, siginfo_t *info, void *data)
{
	static atomic_uint last;
	ucontext_t *context = data;
	greg_t *registers = context->uc_mcontext.gregs;
	unsigned int slot;
	int error;

	(void)signal;
	(void)info;
	if (call_fails(registers, &error)) {
		registers[REG_RAX] = -error;
		return;
	}
	switch (registers[REG_RAX]) {
	case SYS_rt_sigprocmask:
		registers[REG_RAX] = change_mask(context, (int)registers[REG_RDI], (void *)registers[REG_RSI],
						 (void *)registers[REG_RDX]);
		return;
	case SYS_clone:
	case SYS_clone3:
	case SYS_fork:
	case SYS_vfork:
		slot = atomic_fetch_add(&last, 1) % RETURNS;
		faults_returns[slot] = registers[REG_RIP];
		registers[REG_RIP] = (greg_t)(uintptr_t)faults_again + slot * AGAIN_SIZE;
		return;
	case SYS_rt_sigreturn:
		registers[REG_RIP] = (greg_t)(uintptr_t)faults_again;
		return;
	default:
		registers[REG_RAX] = faults_syscall(registers[REG_RAX], registers[REG_RDI], registers[REG_RSI],
						    registers[REG_RDX], registers[REG_R10], registers[REG_R8],
						    registers[REG_R9]);
	}
}

static void dispatch_calls(void)
{
	/* The kernel's own struct: the C library would put its own restorer into it. */
	struct {
		void (*handler)(int, siginfo_t *, void *);
		unsigned long flags;
		void (*restorer)(void);
		uint64_t mask;
	} action = { on_call, SA_SIGINFO | SA_NODEFER | SA_RESTART | 0x04000000 /* SA_RESTORER */, faults_restore, 0 };

	if (syscall(SYS_rt_sigaction, SIGSYS, &action, NULL, sizeof(action.mask)) ||
	    prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, faults_begin,
		  (unsigned long)(faults_end - faults_begin), &dispatch)) {
		fprintf(stderr, "faults: the kernel has no syscall user dispatch\n");
		_exit(77);
	}
	dispatch = DISPATCH_BLOCK;
}

#else

static void dispatch_calls(void)
{
	fprintf(stderr, "faults: system calls are dispatched on x86-64 only\n");
	_exit(77);
}

#endif

/* ---- begin ---- */

static int (*real_main)(int, char **, char **);

static void take_variable(const char *name, char *to, size_t size)
{
	const char *value = getenv(name);

	snprintf(to, size, "%s", value ? value : "");
	unsetenv(name);
}

static unsigned long take_number(const char *name)
{
	char text[32];

	take_variable(name, text, sizeof(text));
	return strtoul(text, NULL, 10);
}

static int counted_main(int argc, char **argv, char **environment)
{
	char kind[16];
	void *frame;
	int file;

	(void)environment;
	take_variable("FAULTS_KIND", kind, sizeof(kind));
	take_variable("FAULTS_LEAVE", left, sizeof(left));
	take_variable("FAULTS_CALLS", calls, sizeof(calls));
	take_variable("FAULTS_LOG", log_path, sizeof(log_path));
	fail_at = take_number("FAULTS_AT");
	keep = take_number("FAULTS_KEEP");
	chosen_error = (int)take_number("FAULTS_ERROR");
	file = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	log_file = fcntl(file, F_DUPFD_CLOEXEC, 100); /* descriptors are numbered as without it */
	close(file);
	unsetenv("LD_PRELOAD");
	dl_iterate_phdr(add_ranges, NULL);
	backtrace(&frame, 1); /* the first one loads the unwinder */
	counted_process = getpid();
	counts_memory = !strcmp(kind, "memory");
	if (!fail_at)
		atexit(log_count);
	if (!strcmp(kind, "call"))
		dispatch_calls();
	return real_main(argc, argv, environ);
}

EXPORT int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
			     void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
	__typeof__(&__libc_start_main) next = (__typeof__(&__libc_start_main))dlsym(RTLD_NEXT, "__libc_start_main");

	real_main = main;
	return next(counted_main, argc, argv, init, fini, loader_fini, stack_end);
}
