/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * To be preloaded: from main() on, the Nth allocation of the process, or the Nth system call or write of it, its threads and
 * the processes that it forks fails. The environment says which:
 *
 * FAULTS_KIND   memory: malloc() and the like, of this process; call: system calls; short: what is written into files and
 *               pipes does not fail, but only a part of it is taken
 * FAULTS_AT     N, from 1 on; 0: none fails
 * FAULTS_PLACE  in place of N: the first allocation that this chain of callers asks for fails
 * FAULTS_KEEP   1: so do all that follow
 * FAULTS_LEAVE  names of libraries, or beginnings of them, separated by commas: what they ask for is not counted
 * FAULTS_CALLS  names of system calls, separated by commas: only these are counted
 * FAULTS_TASK   name of a thread or process: only its calls are counted
 * FAULTS_ERROR  number of the error of a system call in place of the usual one
 * FAULTS_LOG    a file; gets "failed WHAT ERROR TASK" and where from, when the first one fails; without N "count NUMBER" at
 *               the end, "task NUMBER NAME" for the calls of each, and "place CHAIN" for each chain of callers of allocations
 *
 * System calls are those that a tracer sees: a process of its own, which ends with the last one that it traces. What is
 * executed is not traced, and inherits nothing.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
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
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define RANGES_MAX 128
#define FRAMES_MAX 32
#define PLACES_MAX 65536 /* a power of two */

enum source { SOURCE_NONE, SOURCE_LIBC, SOURCE_SELF, SOURCE_LEFT, SOURCE_MAIN, SOURCE_OTHER };

/* Text of a loaded object. */
static struct range {
	uintptr_t begin, end;
	enum source source;
} ranges[RANGES_MAX];
static size_t range_count;
static uintptr_t main_base;

static atomic_ulong count;
static unsigned long fail_at;
static uint64_t fail_place; /* 0: any */
static bool keep, counts_memory;
static char left[256], calls[1024], only_task[16], log_path[4096];
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

static const struct range *range_at(uintptr_t address)
{
	size_t low = 0, high = range_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (address >= ranges[middle].end)
			low = middle + 1;
		else
			high = middle;
	}
	return low < range_count && address >= ranges[low].begin ? &ranges[low] : NULL;
}

static enum source source_at(uintptr_t address)
{
	const struct range *range = range_at(address);

	return range ? range->source : SOURCE_NONE;
}

static int add_ranges(struct dl_phdr_info *info, size_t size, void *context)
{
	const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;

	(void)size;
	(void)context;
	for (size_t i = 0; i < info->dlpi_phnum && range_count < RANGES_MAX; i++) {
		size_t at = range_count;
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		struct range range = { .begin = info->dlpi_addr + header->p_vaddr, .source = SOURCE_OTHER };

		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
			continue;
		range.end = range.begin + header->p_memsz;
		if ((uintptr_t)add_ranges >= range.begin && (uintptr_t)add_ranges < range.end)
			range.source = SOURCE_SELF;
		else if (!strncmp(name, "libc.so", 7))
			range.source = SOURCE_LIBC;
		else if (in_list(left, name, true))
			range.source = SOURCE_LEFT;
		else if (!range_count)
			range.source = SOURCE_MAIN; /* the program comes first */
		if (range.source == SOURCE_MAIN)
			main_base = info->dlpi_addr;
		for (; at && ranges[at - 1].begin > range.begin; at--)
			ranges[at] = ranges[at - 1];
		ranges[at] = range;
		range_count++;
	}
	return 0;
}

/* Who asked: the first caller that is not the C library. */
static bool is_left(uintptr_t caller)
{
	enum source source = source_at(caller);
	void *frames[FRAMES_MAX];
	int found;

	if (!*left || source == SOURCE_NONE || source > SOURCE_SELF)
		return *left && source == SOURCE_LEFT;
	found = backtrace(frames, FRAMES_MAX);
	for (int i = 0; i < found; i++) {
		source = source_at((uintptr_t)frames[i]);
		if (source > SOURCE_SELF)
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
	length = snprintf(text, sizeof(text), "failed %s %d -\n", what, error);
	if (write(log_file, text, (size_t)length) == length)
		backtrace_symbols_fd(frames, backtrace(frames, FRAMES_MAX), log_file);
}

static _Atomic uint64_t places[PLACES_MAX]; /* chains of callers */

static void log_count(void)
{
	inside = true;
	if (counted_process != getpid())
		return;
	dprintf(log_file, "count %lu\n", atomic_load(&count));
	for (size_t i = 0; i < PLACES_MAX; i++) {
		if (places[i])
			dprintf(log_file, "place %lx\n", (unsigned long)places[i]);
	}
}

/* A number of the chain of callers, the same one in each run; functions that call themselves count once. Not 0. */
static uint64_t find_place(void)
{
	void *frames[FRAMES_MAX];
	int found = backtrace(frames, FRAMES_MAX);
	uint64_t place = 0;

	for (int i = 0; i < found; i++) {
		const struct range *range = range_at((uintptr_t)frames[i]);

		if (range && range->source > SOURCE_SELF && (!i || frames[i] != frames[i - 1]))
			place = (place ^ ((uintptr_t)frames[i] - range->begin)) * 0x9e3779b97f4a7c15 >> 1;
	}
	return place ?: 1;
}

static void note_place(uint64_t place)
{
	for (size_t i = place % PLACES_MAX, tries = 0; tries < PLACES_MAX; i = (i + 1) % PLACES_MAX, tries++) {
		uint64_t none = 0;

		if (places[i] == place || atomic_compare_exchange_strong(&places[i], &none, place) || none == place)
			return;
	}
}

/* Counts one more; whether it fails. */
static bool is_chosen(const char *what, int error, uintptr_t caller)
{
	unsigned long number;

	if (is_left(caller))
		return false;
	if (fail_place && (atomic_load(&count) ? !keep : find_place() != fail_place))
		return false;
	number = atomic_fetch_add(&count, 1) + 1;
	if (!fail_at)
		note_place(find_place());
	else if (number == fail_at)
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

/* Those that can fail for want of something, each with the error that it then has; others are not counted. */
static const struct call {
	int number, error;
	const char *name;
} table[] = {
#define CALL(name, error)                \
	{                                \
		SYS_##name, error, #name \
	}
#ifdef SYS_open
	CALL(open, EMFILE),
#endif
	CALL(openat, EMFILE),
	CALL(openat2, EMFILE),
	CALL(dup, EMFILE),
#ifdef SYS_dup2
	CALL(dup2, EMFILE),
#endif
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
#ifdef SYS_epoll_wait
	CALL(epoll_wait, EINTR),
#endif
	CALL(epoll_pwait, EINTR),
	CALL(epoll_pwait2, EINTR),
#ifdef SYS_poll
	CALL(poll, EINTR),
#endif
	CALL(ppoll, EINTR),
	CALL(mmap, ENOMEM),
	CALL(mremap, ENOMEM),
	CALL(clone, EAGAIN),
	CALL(clone3, EAGAIN),
#ifdef SYS_fork
	CALL(fork, EAGAIN),
#endif
#ifdef SYS_vfork
	CALL(vfork, EAGAIN),
#endif
	CALL(read, EIO),
	CALL(pread64, EIO),
	CALL(readv, EIO),
	CALL(getdents64, EIO),
	CALL(ioctl, EIO),
	CALL(fstat, EIO),
#ifdef SYS_stat
	CALL(stat, EIO),
#endif
#ifdef SYS_lstat
	CALL(lstat, EIO),
#endif
	CALL(newfstatat, EIO),
	CALL(statx, EIO),
	CALL(statfs, EIO),
	CALL(fstatfs, EIO),
#ifdef SYS_readlink
	CALL(readlink, EIO),
#endif
	CALL(readlinkat, EIO),
	CALL(lseek, EIO),
	CALL(write, ENOSPC),
	CALL(pwrite64, ENOSPC),
	CALL(writev, ENOSPC),
	CALL(ftruncate, EIO),
	CALL(fallocate, ENOSPC),
	CALL(fsync, EIO),
	CALL(fdatasync, EIO),
#ifdef SYS_rename
	CALL(rename, EIO),
#endif
	CALL(renameat, EIO),
	CALL(renameat2, EIO),
#ifdef SYS_link
	CALL(link, EIO),
#endif
	CALL(linkat, EIO),
#ifdef SYS_unlink
	CALL(unlink, EIO),
#endif
	CALL(unlinkat, EIO),
#ifdef SYS_mkdir
	CALL(mkdir, ENOSPC),
#endif
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
#ifdef SYS_access
	CALL(access, EACCES),
#endif
	CALL(faccessat, EACCES),
	CALL(faccessat2, EACCES),
};

#define TASKS_MAX 64
#define STACK_WORDS 1024

/* Calls of each name. */
static struct {
	char name[16];
	unsigned long calls;
} tasks[TASKS_MAX];
static size_t task_count;
static bool shortens;

static const struct call *find_call(uint64_t number)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if ((uint64_t)table[i].number == number)
			return !*calls || in_list(calls, table[i].name, false) ? &table[i] : NULL;
	}
	return NULL;
}

/* The number of the call and its arguments, at its beginning; -1: there is none. At its end, result alone. */
static int change_call(pid_t task, long number, const uint64_t *arguments, const long *result)
{
#ifdef __x86_64__
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, task, NULL, &registers))
		return -1;
	if (result) {
		registers.rax = (unsigned long)*result;
	} else {
		registers.orig_rax = (unsigned long)number;
		registers.rsi = arguments[1];
		registers.rdx = arguments[2];
	}
	return ptrace(PTRACE_SETREGS, task, NULL, &registers) ? -1 : 0;
#else
	struct user_regs_struct registers;
	struct iovec part = { &registers, sizeof(registers) };
	int call = (int)number;
	struct iovec call_part = { &call, sizeof(call) };

	if (ptrace(PTRACE_GETREGSET, task, NT_PRSTATUS, &part))
		return -1;
	if (result) {
		registers.regs[0] = (uint64_t)*result;
	} else {
		registers.regs[1] = arguments[1];
		registers.regs[2] = arguments[2];
		if (ptrace(PTRACE_SETREGSET, task, NT_ARM_SYSTEM_CALL, &call_part))
			return -1;
	}
	return ptrace(PTRACE_SETREGSET, task, NT_PRSTATUS, &part) ? -1 : 0;
#endif
}

/* Whether the address lies behind an instruction that calls. Text is the same here, in the tracer. */
static bool is_return(uintptr_t address)
{
	const uint8_t *text = (const uint8_t *)address;

#ifdef __x86_64__
	return text[-5] == 0xe8 || (text[-2] == 0xff && (text[-1] & 0x38) == 0x10) ||
	       (text[-3] == 0xff && (text[-2] & 0x38) == 0x10) || (text[-6] == 0xff && (text[-5] & 0x38) == 0x10);
#else
	uint32_t before;

	if (address & 3)
		return false;
	memcpy(&before, text - 4, sizeof(before));
	return before >> 26 == 0x25 || (before & 0xfffffc1f) == 0xd63f0000;
#endif
}

/* Return addresses on the stack, the innermost first; some may be left over from calls that have returned. */
static size_t find_frames(pid_t task, uint64_t stack, uintptr_t *frames, size_t size)
{
	static uintptr_t words[STACK_WORDS];
	struct iovec here = { words, sizeof(words) }, there = { (void *)(uintptr_t)stack, sizeof(words) };
	ssize_t got = process_vm_readv(task, &here, 1, &there, 1, 0);
	size_t found = 0;

	/* Not all of it is there at the end of a stack. */
	for (size_t length = sizeof(words) / 2; got < 0 && length >= 64; length /= 2) {
		here.iov_len = there.iov_len = length;
		got = process_vm_readv(task, &here, 1, &there, 1, 0);
	}
	for (ssize_t i = 0; i < got / (ssize_t)sizeof(*words) && found < size; i++) {
		enum source source = source_at(words[i]);

		if (source != SOURCE_NONE && source != SOURCE_SELF && source_at(words[i] - 8) == source &&
		    is_return(words[i]))
			frames[found++] = words[i];
	}
	return found;
}

static bool is_left_frame(const uintptr_t *frames, size_t found)
{
	for (size_t i = 0; i < found; i++) {
		enum source source = source_at(frames[i]);

		if (source != SOURCE_LIBC)
			return source == SOURCE_LEFT;
	}
	return false;
}

static void name_of(pid_t task, char name[16])
{
	char path[64];
	ssize_t length = -1;
	int file;

	snprintf(path, sizeof(path), "/proc/%d/comm", task);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file >= 0) {
		length = read(file, name, 15);
		close(file);
	}
	name[length > 0 ? length - 1 : 0] = '\0';
}

static void count_task(const char *name)
{
	size_t i = 0;

	while (i < task_count && strcmp(tasks[i].name, name) != 0)
		i++;
	if (i == TASKS_MAX)
		return;
	if (i == task_count)
		strcpy(tasks[task_count++].name, name);
	tasks[i].calls++;
}

static void log_call(const struct call *call, int error, const char *name, const uintptr_t *frames, size_t found)
{
	dprintf(log_file, "failed %s %d %s\n", call->name, error, name);
	for (size_t i = 0; i < found; i++) {
		if (source_at(frames[i]) == SOURCE_MAIN)
			dprintf(log_file, "/xputrace(+0x%lx)\n", (unsigned long)(frames[i] - main_base));
	}
}

/* Whether a part of it may be taken: of what is written into a file, and of more than is atomic into a pipe. The call that
 * writes the part takes its place in info. */
static bool shorten(pid_t task, struct __ptrace_syscall_info *info)
{
	uint64_t *arguments = info->entry.args;
	struct iovec part, here = { &part, sizeof(part) }, there = { (void *)(uintptr_t)arguments[1], sizeof(part) };
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", task, (int)arguments[0]);
	if (stat(path, &status) || (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)))
		return false;
	if (info->entry.nr == SYS_writev || info->entry.nr == SYS_pwritev) {
		do { /* empty parts may come first */
			if (!arguments[2]-- || process_vm_readv(task, &here, 1, &there, 1, 0) != sizeof(part))
				return false;
			there.iov_base = (struct iovec *)there.iov_base + 1;
		} while (!part.iov_len);
		info->entry.nr = info->entry.nr == SYS_writev ? SYS_write : SYS_pwrite64;
		arguments[1] = (uintptr_t)part.iov_base;
		arguments[2] = part.iov_len;
	} else if (info->entry.nr != SYS_write && info->entry.nr != SYS_pwrite64) {
		return false;
	}
	if (arguments[2] < 2 || (S_ISFIFO(status.st_mode) && arguments[2] <= PIPE_BUF))
		return false;
	arguments[2] /= 2;
	return true;
}

/* At the beginning of a call: counts it, and has it fail or be short. */
static void on_entry(pid_t task, struct __ptrace_syscall_info *info)
{
	const struct call *call = find_call(info->entry.nr);
	uintptr_t frames[FRAMES_MAX];
	unsigned long number;
	long result;
	char name[16];
	size_t found;
	int status, error;

	if (!call || (shortens && !shorten(task, info)))
		return;
	name_of(task, name);
	found = find_frames(task, info->stack_pointer, frames, FRAMES_MAX);
	if ((*only_task && strcmp(name, only_task) != 0) || (*left && is_left_frame(frames, found)))
		return;
	count_task(name);
	number = atomic_fetch_add(&count, 1) + 1;
	if (!fail_at || (number != fail_at && (!keep || number < fail_at)))
		return;
	error = shortens ? 0 : chosen_error ? chosen_error : call->error;
	if (number == fail_at)
		log_call(call, error, name, frames, found);
	if (shortens) {
		change_call(task, (long)info->entry.nr, info->entry.args, NULL);
		return;
	}
	result = -error;
	if (change_call(task, -1, info->entry.args, NULL) || ptrace(PTRACE_SYSCALL, task, NULL, NULL) ||
	    waitpid(task, &status, __WALL) != task || !WIFSTOPPED(status))
		return;
	change_call(task, 0, NULL, &result);
}

/* Whether it is traced on. begin: the descriptor that is closed when what is counted begins. */
static bool on_stop(pid_t task, int status, int begin, int *signal)
{
	static bool begun;
	struct __ptrace_syscall_info info;
	int event = status >> 16;

	*signal = 0;
	if (event == PTRACE_EVENT_EXEC)
		return false;
	if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
		if (ptrace(PTRACE_GET_SYSCALL_INFO, task, sizeof(info), &info) <= 0 ||
		    info.op != PTRACE_SYSCALL_INFO_ENTRY)
			return true;
		if (begun)
			on_entry(task, &info);
		begun = begun || (info.entry.nr == SYS_close && (int)info.entry.args[0] == begin);
	} else if (!event) {
		*signal = WSTOPSIG(status);
	}
	return true;
}

/* As long as one of them lives. */
static void trace(int begin)
{
	int status, signal;
	pid_t task;

	while ((task = waitpid(-1, &status, __WALL)) > 0) {
		if (!WIFSTOPPED(status))
			continue;
		if (!on_stop(task, status, begin, &signal))
			ptrace(PTRACE_DETACH, task, NULL, NULL);
		else if (status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP)
			ptrace(PTRACE_LISTEN, task, NULL, NULL);
		else if (fail_at && !keep && atomic_load(&count) >= fail_at) /* nothing else is to fail */
			ptrace(PTRACE_DETACH, task, NULL, (void *)(intptr_t)signal);
		else
			ptrace(PTRACE_SYSCALL, task, NULL, (void *)(intptr_t)signal);
	}
	if (fail_at)
		return;
	dprintf(log_file, "count %lu\n", atomic_load(&count));
	for (size_t i = 0; i < task_count; i++)
		dprintf(log_file, "task %lu %s\n", tasks[i].calls, tasks[i].name);
}

/* Says through the pipe that it traces; begin: the other end, as the traced process has it. */
static void __attribute__((noreturn)) tracer(pid_t traced, int ready, int begin)
{
	int status;

	setsid();
	prctl(PR_SET_NAME, "faults-tracer");
	for (int signal = 1; signal < SIGRTMIN; signal++) {
		if (signal != SIGCHLD)
			(void)!sigaction(signal, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	}
	if (ptrace(PTRACE_SEIZE, traced, NULL,
		   PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			   PTRACE_O_TRACEEXEC) ||
	    ptrace(PTRACE_INTERRUPT, traced, NULL, NULL) || waitpid(traced, &status, __WALL) != traced ||
	    ptrace(PTRACE_SYSCALL, traced, NULL, NULL) || write(ready, "", 1) != 1)
		_exit(1);
	/* The outputs are not kept open: whoever reads them waits for their end. */
	for (int file = 0; file < 64; file++) {
		if (file != log_file)
			close(file);
	}
	trace(begin);
	_exit(0);
}

static void trace_calls(void)
{
	pid_t traced = getpid(), child;
	int ready[2];
	char byte;

	if (pipe2(ready, O_CLOEXEC))
		_exit(1);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	child = fork();
	if (!child) {
		if (!fork())
			tracer(traced, ready[1], ready[0]);
		_exit(0);
	}
	close(ready[1]);
	waitpid(child, NULL, 0);
	if (read(ready[0], &byte, 1) != 1) {
		fprintf(stderr, "faults: processes cannot be traced here\n");
		_exit(77);
	}
	close(ready[0]);
}

/* ---- begin ---- */

static int (*real_main)(int, char **, char **);

static void take_variable(const char *name, char *to, size_t size)
{
	const char *value = getenv(name);

	snprintf(to, size, "%s", value ? value : "");
	unsetenv(name);
}

static unsigned long take_number(const char *name, int base)
{
	char text[32];

	take_variable(name, text, sizeof(text));
	return strtoul(text, NULL, base);
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
	take_variable("FAULTS_TASK", only_task, sizeof(only_task));
	take_variable("FAULTS_LOG", log_path, sizeof(log_path));
	fail_at = take_number("FAULTS_AT", 10);
	fail_place = take_number("FAULTS_PLACE", 16);
	if (fail_place)
		fail_at = 1;
	keep = take_number("FAULTS_KEEP", 10);
	chosen_error = (int)take_number("FAULTS_ERROR", 10);
	file = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	log_file = fcntl(file, F_DUPFD_CLOEXEC, 100); /* descriptors are numbered as without it */
	close(file);
	unsetenv("LD_PRELOAD");
	dl_iterate_phdr(add_ranges, NULL);
	backtrace(&frame, 1); /* the first one loads the unwinder */
	counted_process = getpid();
	counts_memory = !strcmp(kind, "memory");
	if (!fail_at && counts_memory)
		atexit(log_count);
	shortens = !strcmp(kind, "short");
	if (!counts_memory)
		trace_calls();
	return real_main(argc, argv, environ);
}

EXPORT int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
			     void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
	__typeof__(&__libc_start_main) next = (__typeof__(&__libc_start_main))dlsym(RTLD_NEXT, "__libc_start_main");

	real_main = main;
	return next(counted_main, argc, argv, init, fini, loader_fini, stack_end);
}
