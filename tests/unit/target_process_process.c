/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "target/process/process.h"
#include "target_support.h"

TestSuite(target_process_process, .fini = support_cleanup);

static const struct mapped_file *find(const struct mapped_files *files, const char *path)
{
	for (size_t i = 0; i < files->count; i++)
		if (!strcmp(files->files[i].path, path))
			return &files->files[i];
	return NULL;
}

/* Maps the file executable, as a loader does. */
static void *map_executable(const char *path, size_t length, off_t offset)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *address;

	cr_assert_geq(fd, 0);
	address = mmap(NULL, length, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, offset);
	cr_assert_neq(address, MAP_FAILED);
	close(fd);
	return address;
}

Test(target_process_process, mapped_files)
{
	static char page[8192];
	const char *spaces = support_path("with spaces.so"), *newline = support_path("new\nline.so");
	const char *gone = support_path("gone.so"), *data = support_path("data.so");
	const struct mapped_file *file;
	struct mapped_files files;
	struct stat status;
	void *address;
	char escaped[256];
	int fd;

	support_write(spaces, page, sizeof(page));
	support_write(newline, page, sizeof(page));
	support_write(gone, page, sizeof(page));
	support_write(data, page, sizeof(page));
	address = map_executable(spaces, 4096, 4096);
	map_executable(spaces, 4096, 0);
	map_executable(newline, 4096, 0);
	map_executable(gone, 4096, 0);
	cr_assert_eq(stat(gone, &status), 0);
	cr_assert_eq(unlink(gone), 0);
	fd = open(data, O_RDONLY | O_CLOEXEC);
	cr_assert_neq(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0), MAP_FAILED);
	close(fd);

	cr_assert_eq(process_mapped_files(getpid(), &files), 0);
	file = find(&files, gone);
	cr_assert_not_null(file);
	cr_expect(file->deleted);
	cr_expect_eq(file->inode, status.st_ino);
	if (access("/proc/self/map_files", X_OK) == 0 && geteuid() == 0) {
		struct stat opened;

		cr_expect_eq(file->device, status.st_dev);
		cr_expect_eq(stat(file->open_path, &opened), 0, "a deleted file can still be opened");
		cr_expect_eq(opened.st_ino, status.st_ino);
	}
	file = find(&files, spaces);
	cr_assert_not_null(file);
	cr_expect_not(file->deleted);
	cr_expect(file->start == (__u64)(uintptr_t)address ? file->offset == 4096 : file->offset == 0);
	cr_expect_eq(file->end - file->start, 4096);
	snprintf(escaped, sizeof(escaped), "%s/new\\012line.so", support_dir);
	cr_expect_not_null(find(&files, escaped));
	cr_expect_null(find(&files, data), "not executable");
	cr_expect_null(find(&files, "[vdso]"));
	for (size_t i = 0; i < files.count; i++)
		for (size_t j = 0; j < i; j++)
			cr_expect(files.files[i].inode != files.files[j].inode ||
					  files.files[i].device != files.files[j].device,
				  "%s twice", files.files[i].path);
	mapped_files_free(&files);
}

Test(target_process_process, memory_file)
{
	int fd = memfd_create("weights and code", MFD_CLOEXEC);
	struct mapped_files files;

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, 4096), 0);
	cr_assert_neq(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0), MAP_FAILED);
	cr_assert_eq(process_mapped_files(getpid(), &files), 0);
	cr_expect_not_null(find(&files, "/memfd:weights and code"));
	mapped_files_free(&files);
	close(fd);
}

Test(target_process_process, nobody_there)
{
	struct mapped_files files;
	struct process_info info;
	char name[16] = "x", byte;
	pid_t child = fork();

	if (!child)
		_exit(0);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	cr_expect_eq(process_mapped_files(child, &files), -ESRCH);
	cr_expect_eq(process_info_read(child, &info), -ESRCH);
	cr_expect_eq(process_read_memory(child, (__u64)(uintptr_t)&byte, &byte, 1), -ESRCH);
	process_thread_name(child, child, name);
	cr_expect_str_eq(name, "");
}

Test(target_process_process, about_this_one)
{
	struct process_info info;

	cr_assert_eq(prctl(PR_SET_NAME, "a) R 1 (b"), 0);
	cr_assert_eq(process_info_read(getpid(), &info), 0);
	cr_expect_eq(info.tgid, getpid());
	cr_expect_eq(info.parent, getppid());
	cr_expect_str_eq(info.name, "a) R 1 (b");
	cr_expect_gt(strlen(info.command), 0);
	cr_expect_gt(info.start_time, 0);
	cr_expect_not(info.is_32bit);
	cr_expect_not(process_is_static(&info));
	cr_expect_not(info.is_kernel_thread);
	cr_expect_not(info.is_zombie);
	process_info_free(&info);
}

struct thread {
	pthread_barrier_t barrier;
	pid_t tid;
};

static void *run_thread(void *context)
{
	struct thread *thread = context;

	thread->tid = (pid_t)syscall(SYS_gettid);
	prctl(PR_SET_NAME, "worker \x01");
	pthread_barrier_wait(&thread->barrier);
	pthread_barrier_wait(&thread->barrier);
	return NULL;
}

/* -p of a thread means its process. */
Test(target_process_process, thread)
{
	struct process_info info;
	struct thread thread;
	pthread_t handle;
	char name[16];

	pthread_barrier_init(&thread.barrier, NULL, 2);
	cr_assert_eq(pthread_create(&handle, NULL, run_thread, &thread), 0);
	pthread_barrier_wait(&thread.barrier);
	cr_assert_eq(process_info_read(thread.tid, &info), 0);
	cr_expect_eq(info.tgid, getpid());
	cr_expect_neq(info.tgid, thread.tid);
	process_info_free(&info);
	process_thread_name(getpid(), thread.tid, name);
	cr_expect_str_eq(name, "worker \x01");
	pthread_barrier_wait(&thread.barrier);
	pthread_join(handle, NULL);
}

Test(target_process_process, zombie)
{
	struct process_info info;
	siginfo_t ended;
	pid_t child = fork();

	if (!child)
		_exit(0);
	cr_assert_eq(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
	cr_assert_eq(process_info_read(child, &info), 0);
	cr_expect(info.is_zombie);
	cr_expect_eq(info.parent, getpid());
	process_info_free(&info);
	waitpid(child, NULL, 0);
}

/* Starts a program that waits for its input to end; returns its process. */
static pid_t start(char *const arguments[], int *input)
{
	int ends[2], ready[2];
	pid_t child;
	char byte;

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		dup2(ends[0], 0);
		close(ends[1]);
		execv(arguments[0], arguments);
		_exit(127);
	}
	close(ends[0]);
	close(ready[1]);
	/* the pipe closes when exec has succeeded */
	cr_assert_eq(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	*input = ends[1];
	return child;
}

static const char waits[] = "#include <unistd.h>\nint main(void) { char c; return (int)read(0, &c, 1); }\n";

static bool is_static;

static void describe(char *const arguments[], struct process_info *info)
{
	int input;
	pid_t child = start(arguments, &input);

	cr_assert_eq(process_info_read(child, info), 0, "%s", arguments[0]);
	is_static = process_is_static(info);
	close(input);
	waitpid(child, NULL, 0);
}

Test(target_process_process, static_program)
{
	const char *program = support_path("program");
	char *arguments[] = { (char *)program, "two words", "", "last\n", NULL };
	struct process_info info;
	char expected[256];

	support_write(support_path("waits.c"), waits, sizeof(waits) - 1);
	support_run("gcc -static -o %s %s", program, support_path("waits.c"));
	describe(arguments, &info);
	cr_expect(is_static);
	snprintf(expected, sizeof(expected), "%s two words  last\n", program);
	cr_expect_str_eq(info.command, expected);
	process_info_free(&info);

	support_run("gcc -static-pie -o %s %s", program, support_path("waits.c"));
	describe(arguments, &info);
	cr_expect(is_static);
	process_info_free(&info);

	support_run("gcc -o %s %s", program, support_path("waits.c"));
	describe(arguments, &info);
	cr_expect_not(is_static);
	process_info_free(&info);
}

Test(target_process_process, program_of_32_bits)
{
	static const char text[] = ".globl _start\n_start: mov $3,%eax\nxor %ebx,%ebx\nmov %esp,%ecx\nmov $1,%edx\n"
				   "int $0x80\nmov $1,%eax\nxor %ebx,%ebx\nint $0x80\n";
	const char *program = support_path("program");
	char *arguments[] = { (char *)program, NULL };
	struct process_info info;

	support_write(support_path("waits.s"), text, sizeof(text) - 1);
	support_run("as --32 -o %s %s && ld -m elf_i386 -o %s %s", support_path("waits.o"), support_path("waits.s"),
		    program, support_path("waits.o"));
	describe(arguments, &info);
	if (info.is_zombie) {
		process_info_free(&info);
		cr_skip_test("this kernel does not run programs of 32 bits");
	}
	cr_expect(info.is_32bit);
	process_info_free(&info);
}

/* ld.so ./program: the executable is the loader, and libraries do come. */
Test(target_process_process, started_through_the_loader)
{
	struct elf_file *self = support_open("/proc/self/exe");
	const char *program = support_path("program");
	char *arguments[] = { (char *)elf_file_interpreter(self), (char *)program, NULL };
	struct process_info info;

	support_write(support_path("waits.c"), waits, sizeof(waits) - 1);
	support_run("gcc -o %s %s", program, support_path("waits.c"));
	describe(arguments, &info);
	cr_expect_not(is_static);
	process_info_free(&info);
	elf_file_close(self);
}

/* Long command lines are cut, and an empty one is empty. */
Test(target_process_process, command_line)
{
	static char text[8000];
	char *arguments[] = { "/bin/sh", "-c", "read line", text, NULL };
	struct process_info info;

	memset(text, 'a', sizeof(text) - 1);
	describe(arguments, &info);
	cr_expect_eq(strlen(info.command), 4096);
	cr_expect_eq(strncmp(info.command, "/bin/sh -c read line aaaa", 25), 0);
	process_info_free(&info);
}

struct search {
	pid_t wanted, self, zombie;
	bool found, found_self, found_zombie, found_kernel_thread;
};

static int look(void *context, pid_t tgid)
{
	struct search *search = context;
	struct process_info info;

	search->found |= tgid == search->wanted;
	search->found_self |= tgid == search->self;
	search->found_zombie |= tgid == search->zombie;
	if (process_info_read(tgid, &info) == 0) {
		search->found_kernel_thread |= info.is_kernel_thread;
		process_info_free(&info);
	}
	return 0;
}

static int stop(void *context, pid_t tgid)
{
	(void)tgid;
	++*(int *)context;
	return 7;
}

Test(target_process_process, each)
{
	char *arguments[] = { "/bin/cat", NULL };
	struct search search = { .self = getpid() };
	int input, visited = 0;
	siginfo_t ended;

	search.wanted = start(arguments, &input);
	search.zombie = fork();
	if (!search.zombie)
		_exit(0);
	cr_assert_eq(waitid(P_PID, (id_t)search.zombie, &ended, WEXITED | WNOWAIT), 0);
	cr_assert_eq(process_each(look, &search), 0);
	cr_expect(search.found);
	cr_expect_not(search.found_self);
	cr_expect_not(search.found_zombie);
	cr_expect_not(search.found_kernel_thread);
	cr_expect_eq(process_each(stop, &visited), 7);
	cr_expect_eq(visited, 1);
	close(input);
	waitpid(search.wanted, NULL, 0);
	waitpid(search.zombie, NULL, 0);
}

Test(target_process_process, memory)
{
	static const char secret[] = "what is there";
	char copy[2 * 4096];
	char *pages = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(pages, MAP_FAILED);
	cr_assert_eq(process_read_memory(getpid(), (__u64)(uintptr_t)secret, copy, sizeof(secret)), sizeof(secret));
	cr_expect_str_eq(copy, secret);
	cr_assert_eq(munmap(pages + 4096, 4096), 0);
	cr_expect_eq(process_read_memory(getpid(), (__u64)(uintptr_t)pages + 4000, copy, 4096), 96,
		     "as far as it goes");
	cr_expect_eq(process_read_memory(getpid(), (__u64)(uintptr_t)pages + 4096, copy, 8), -EFAULT);
	cr_expect_eq(process_read_memory(getpid(), 8, copy, 8), -EFAULT);
	cr_expect_eq(process_read_memory(getpid(), ~0ull - 4, copy, 8), -EFAULT);
	cr_expect_eq(process_read_memory(getpid(), (__u64)(uintptr_t)secret, copy, 0), 0);
}

/* A shell with this environment, which ends when its input does. */
static pid_t start_with(char *const *environment, int *input)
{
	char *arguments[] = { "/bin/sh", "-c", "echo; read x", NULL }, byte;
	int in[2], out[2];
	pid_t child;

	cr_assert_eq(pipe(in), 0);
	cr_assert_eq(pipe(out), 0);
	child = fork();
	if (!child) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		close(in[1]);
		execve(arguments[0], arguments, environment);
		_exit(1);
	}
	close(in[0]);
	close(out[1]);
	cr_assert_eq(read(out[0], &byte, 1), 1);
	close(out[0]);
	*input = in[1];
	return child;
}

Test(target_process_process, environment)
{
	char *given[] = { "A=1", "NEURON_RT_INSPECT_ENABLE=1", "EMPTY=", "no value", "", "LAST=a\nb", NULL };
	struct process_environment environment;
	int input;
	pid_t child = start_with(given, &input);

	cr_assert_eq(process_environment_read(child, &environment), 0);
	cr_assert_eq(environment.count, 6);
	for (size_t i = 0; i < 6; i++)
		cr_expect_str_eq(environment.variables[i], given[i]);
	cr_expect_null(environment.variables[6]);
	cr_expect_not(environment.truncated);
	process_environment_free(&environment);
	close(input);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	cr_expect_eq(process_environment_read(child, &environment), -ESRCH);
}

Test(target_process_process, environment_beyond_any_measure)
{
	static char large[100000];
	char *given[16] = { 0 };
	struct process_environment environment;
	int input;
	pid_t child;

	memset(large, 'x', sizeof(large) - 1);
	large[1] = '=';
	for (size_t i = 0; i < 15; i++)
		given[i] = large;
	child = start_with(given, &input);
	cr_assert_eq(process_environment_read(child, &environment), 0);
	cr_expect(environment.truncated);
	cr_expect_eq(environment.count, (1 << 20) / sizeof(large), "whole ones only");
	for (size_t i = 0; i < environment.count; i++)
		cr_expect_str_eq(environment.variables[i], large);
	process_environment_free(&environment);
	close(input);
	cr_assert_eq(waitpid(child, NULL, 0), child);
}

static int parse(const char *text, char *line, struct maps_entry *entry)
{
	strcpy(line, text);
	return maps_entry_parse(line, entry);
}

Test(target_process_process, ordinary)
{
	struct maps_entry entry;
	char line[512];

	cr_assert_eq(parse("7f5a10000000-7f5a10021000 r-xp 0001c000 fd:1a 1311768 /usr/lib/libcuda.so.1\n", line,
			   &entry),
		     0);
	cr_expect_eq(entry.start, 0x7f5a10000000);
	cr_expect_eq(entry.end, 0x7f5a10021000);
	cr_expect_eq(entry.offset, 0x1c000);
	cr_expect(entry.executable);
	cr_expect_eq(entry.device, makedev(0xfd, 0x1a));
	cr_expect_eq(entry.inode, 1311768);
	cr_expect_str_eq(entry.path, "/usr/lib/libcuda.so.1");
	cr_expect_not(entry.deleted);
	cr_assert_eq(parse("00400000-00401000 r--p 00000000 08:01 12 /bin/true\n", line, &entry), 0);
	cr_expect_not(entry.executable);
}

/* Nothing in a path can make a line be read as something else. */
Test(target_process_process, hostile_paths)
{
	static const char *const paths[] = {
		"/tmp/with spaces/and  more",
		"/tmp/new\\012line",
		"/tmp/7f00-7f01 r-xp 0000 00:00 0 /fake",
		"/tmp/\xff\xfe\x1b[31m",
		"/tmp/back\\slash\\012",
		"/tmp/(deleted)",
		"/memfd:x y",
		"/",
	};
	struct maps_entry entry;
	char text[600], line[600];

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		snprintf(text, sizeof(text), "7f00-8f00 r-xp 00000000 00:2a 77                         %s\n", paths[i]);
		cr_assert_eq(parse(text, line, &entry), 0, "%s", paths[i]);
		cr_expect_str_eq(entry.path, paths[i]);
		cr_expect_not(entry.deleted, "%s", paths[i]);
		cr_expect_eq(entry.inode, 77);
		snprintf(text, sizeof(text), "7f00-8f00 r-xp 00000000 00:2a 77 %s (deleted)\n", paths[i]);
		cr_assert_eq(parse(text, line, &entry), 0, "%s", paths[i]);
		cr_expect_str_eq(entry.path, paths[i]);
		cr_expect(entry.deleted, "%s", paths[i]);
	}
}

Test(target_process_process, without_a_path)
{
	struct maps_entry entry;
	char line[512];

	cr_assert_eq(parse("7f00-8f00 rwxp 00000000 00:00 0 \n", line, &entry), 0);
	cr_expect_str_eq(entry.path, "");
	cr_assert_eq(parse("7f00-8f00 rwxp 00000000 00:00 0\n", line, &entry), 0);
	cr_expect_str_eq(entry.path, "");
	cr_assert_eq(parse("7ffd5000-7ffd6000 r-xp 00000000 00:00 0                  [vdso]\n", line, &entry), 0);
	cr_expect_str_eq(entry.path, "[vdso]");
	cr_assert_eq(parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]", line, &entry), 0);
	cr_expect_eq(entry.start, 0xffffffffff600000ull);
}

Test(target_process_process, malformed)
{
	static const char *const lines[] = {
		"",
		"\n",
		" ",
		"7f00",
		"7f00-",
		"7f00-8f00",
		"7f00-8f00 ",
		"7f00-8f00 r-x",
		"7f00-8f00 r-xp",
		"7f00-8f00 r-xp 0",
		"7f00-8f00 r-xp 0 0",
		"7f00-8f00 r-xp 0 0:0",
		"7f00-8f00 r-xp 0 0:0 ",
		"7f00-8f00 r-xp 0 0:0 x",
		"7f00-8f00 r-xp 0 0:0 5x /a",
		"8f00-7f00 r-xp 0 0:0 5 /a",
		"7f00-7f00 r-xp 0 0:0 5 /a",
		"-7f00-8f00 r-xp 0 0:0 5 /a",
		"7f00 -8f00 r-xp 0 0:0 5 /a",
		"7f00-8f00r-xp 0 0:0 5 /a",
		"111112222233333444445-8f00 r-xp 0 0:0 5 /a",
		"7f00-8f00 r-xp 0 0:0 99999999999999999999999 /a",
		"7f00-8f00 r-xp -5 0:0 5 /a",
	};
	struct maps_entry entry;
	char line[512];

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		cr_expect_eq(parse(lines[i], line, &entry), -EINVAL, "'%s'", lines[i]);
}

/* Against what the process itself knows: getrusage(), wait4(), and what it has mapped. */

#define ALL (USAGE_CPU | USAGE_MEMORY)
#define TICK 10000000ull /* ns, of the kernels in use */
#define MIB (1ull << 20)
#define SLACK MIB /* what a process takes and gives back by itself, and what each CPU may keep of the counts */

/* ---- a child that does something, tells that it has, and waits for more to do ---- */

struct child {
	pid_t pid;
	int done, more; /* pipes */
};

static struct child usage_start(void (*run)(struct child *self))
{
	int done[2], more[2];
	struct child child;

	cr_assert_eq(pipe(done), 0);
	cr_assert_eq(pipe(more), 0);
	child.pid = fork();
	cr_assert_geq(child.pid, 0);
	if (!child.pid) {
		close(done[0]);
		close(more[1]);
		child.done = done[1];
		child.more = more[0];
		run(&child);
		_exit(0);
	}
	close(done[1]);
	close(more[0]);
	child.done = done[0];
	child.more = more[1];
	return child;
}

/* In the child: what was asked for has been done. Returns when there is more to do. */
static void tell_done(const struct child *self)
{
	char byte = 0;

	if (write(self->done, &byte, 1) != 1 || read(self->more, &byte, 1) != 1)
		_exit(1);
}

static void wait_done(const struct child *child)
{
	char byte;

	cr_assert_eq(read(child->done, &byte, 1), 1);
}

static void go_on(const struct child *child)
{
	cr_assert_eq(write(child->more, "", 1), 1);
}

static struct process_usage get(const struct usage_source *source)
{
	struct process_usage usage;

	cr_assert_eq(usage_read(source, ALL, &usage), 0);
	cr_assert_eq(usage.have, ALL);
	return usage;
}

/* ---- CPU time ---- */

static __u64 cpu_now(void)
{
	return clock_read(CLOCK_PROCESS_CPUTIME_ID);
}

static void burn(__u64 nanoseconds)
{
	__u64 until = cpu_now() + nanoseconds;

	while (cpu_now() < until)
		;
}

static __u64 of_timeval(struct timeval time)
{
	return (__u64)time.tv_sec * 1000000000ull + (__u64)time.tv_usec * 1000ull;
}

static void burn_twice(struct child *self)
{
	tell_done(self);
	burn(200 * 1000000ull);
	tell_done(self);
}

Test(target_process_process, cpu_time)
{
	struct child child = usage_start(burn_twice);
	struct process_usage before, after;
	struct usage_source source;
	struct rusage truth;
	__u64 used;

	cr_assert_eq(usage_open(&source, child.pid, 0), 0);
	wait_done(&child);
	before = get(&source);
	go_on(&child);
	wait_done(&child);
	after = get(&source);
	go_on(&child);
	cr_assert_eq(wait4(child.pid, NULL, 0, &truth), child.pid);
	used = of_timeval(truth.ru_utime) + of_timeval(truth.ru_stime);
	cr_expect_geq(after.cpu - before.cpu, 200 * 1000000ull);
	cr_expect_lt(after.cpu - before.cpu, 210 * 1000000ull, "%llu", (unsigned long long)(after.cpu - before.cpu));
	/* After the last reading it has only ended. */
	cr_expect_leq(after.cpu, used + 1000);
	cr_expect_gt(after.cpu + TICK, used, "%llu of %llu", (unsigned long long)after.cpu, (unsigned long long)used);
	cr_expect_leq(after.user + after.system, after.cpu);
	cr_expect_gt(after.user + after.system + 2 * TICK, after.cpu, "two are cut to whole ticks");
	cr_expect_lt(after.user, of_timeval(truth.ru_utime) + TICK);
	cr_expect_gt(after.user + 2 * TICK, of_timeval(truth.ru_utime));
	cr_expect_gt(after.time, before.time);
	cr_expect_eq(usage_read(&source, ALL, &after), -ESRCH);
	usage_close(&source);
}

static void *burn_in_thread(void *context)
{
	burn(50 * 1000000ull);
	return context;
}

static void burn_in_threads(struct child *self)
{
	pthread_t thread;

	for (int i = 0; i < 2; i++) {
		if (pthread_create(&thread, NULL, burn_in_thread, NULL) || pthread_join(thread, NULL))
			_exit(1);
	}
	tell_done(self);
}

Test(target_process_process, threads_that_have_ended_count)
{
	struct child child = usage_start(burn_in_threads);
	struct usage_source source;
	struct process_usage usage;

	cr_assert_eq(usage_open(&source, child.pid, 0), 0);
	wait_done(&child);
	usage = get(&source);
	cr_expect_geq(usage.cpu, 100 * 1000000ull);
	cr_expect_eq(usage.threads, 1);
	go_on(&child);
	cr_assert_eq(waitpid(child.pid, NULL, 0), child.pid);
	usage_close(&source);
}

static struct child *outlived;

static void *outlive(void *context)
{
	char state = 'R', path[32];

	/* The first thread has ended when its state says so. */
	snprintf(path, sizeof(path), "/proc/self/stat");
	while (state != 'Z') {
		FILE *file = fopen(path, "re");

		if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			_exit(1);
		fclose(file);
	}
	tell_done(outlived);
	_exit(0);
	return context;
}

static void end_first_thread(struct child *self)
{
	pthread_t thread;

	outlived = self;
	if (pthread_create(&thread, NULL, outlive, NULL))
		_exit(1);
	/* The thread alone, as a runtime's own threads would leave it. */
	syscall(SYS_exit, 0);
}

Test(target_process_process, a_process_outlives_its_first_thread)
{
	struct child child = usage_start(end_first_thread);
	struct usage_source source;
	struct process_usage usage;

	cr_assert_eq(usage_open(&source, child.pid, 0), 0);
	wait_done(&child);
	cr_assert_eq(usage_read(&source, ALL, &usage), 0);
	cr_expect_eq(usage.have, USAGE_CPU, "its memory is not shown there");
	cr_expect_eq(usage.threads, 2);
	cr_expect_gt(usage.cpu, 0);
	go_on(&child);
	cr_assert_eq(waitpid(child.pid, NULL, 0), child.pid);
	cr_expect_eq(usage_read(&source, ALL, &usage), -ESRCH);
	usage_close(&source);
}

/* ---- memory ---- */

static char file_name[] = "/tmp/xputrace-usage-XXXXXX";

static void touch(volatile char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i += 4096)
		(void)bytes[i];
}

static void use_memory(struct child *self)
{
	int file = open(file_name, O_RDONLY | O_CLOEXEC);
	char *anonymous, *mapped;

	tell_done(self);
	anonymous = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (anonymous == MAP_FAILED)
		_exit(1);
	tell_done(self);
	memset(anonymous, 1, 64 * MIB);
	tell_done(self);
	mapped = mmap(NULL, 32 * MIB, PROT_READ, MAP_SHARED, file, 0);
	if (mapped == MAP_FAILED)
		_exit(1);
	touch(mapped, 32 * MIB);
	tell_done(self);
	munmap(anonymous, 64 * MIB);
	tell_done(self);
}

static void expect_grown(const char *what, __u64 before, __u64 after, __s64 expected)
{
	__s64 grown = (__s64)(after - before);

	cr_expect(grown >= expected - (__s64)SLACK && grown <= expected + (__s64)SLACK, "%s: %lld, not %lld", what,
		  (long long)grown, (long long)expected);
}

Test(target_process_process, usage_memory)
{
	int file = mkstemp(file_name);
	struct usage_source source;
	struct process_usage usage[5];
	struct child child;
	struct rusage truth;

	cr_assert_geq(file, 0);
	cr_assert_eq(posix_fallocate(file, 0, 32 * MIB), 0);
	child = usage_start(use_memory);
	cr_assert_eq(usage_open(&source, child.pid, 0), 0);
	for (int i = 0; i < 5; i++) {
		wait_done(&child);
		usage[i] = get(&source);
		go_on(&child);
	}
	cr_assert_eq(wait4(child.pid, NULL, 0, &truth), child.pid);
	unlink(file_name);
	close(file);
	expect_grown("mapped only", usage[0].resident, usage[1].resident, 0);
	expect_grown("written to", usage[1].resident, usage[2].resident, 64 * MIB);
	expect_grown("written to", usage[1].anonymous, usage[2].anonymous, 64 * MIB);
	expect_grown("of a file", usage[2].resident, usage[3].resident, 32 * MIB);
	expect_grown("of a file", usage[2].anonymous, usage[3].anonymous, 0);
	expect_grown("given back", usage[3].resident, usage[4].resident, -64 * (__s64)MIB);
	expect_grown("given back", usage[3].anonymous, usage[4].anonymous, -64 * (__s64)MIB);
	expect_grown("peak", usage[0].resident, usage[4].peak, 96 * MIB);
	expect_grown("peak as it is told at its end", (__u64)truth.ru_maxrss * 1024, usage[4].peak, 0);
	usage_close(&source);
}

/* The kernel's own sums over all page tables. */
static __u64 rolled_up(const char *name)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "re");
	unsigned long long kilobytes = 0;
	char line[256];

	if (!file)
		cr_skip_test("there is no smaps_rollup");
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			kilobytes = strtoull(line + strlen(name), NULL, 10);
	fclose(file);
	return kilobytes * 1024;
}

Test(target_process_process, memory_as_the_page_tables_have_it)
{
	struct usage_source source;
	struct process_usage usage;
	void *bytes = malloc(20 * MIB);

	cr_assert_not_null(bytes);
	memset(bytes, 1, 20 * MIB);
	cr_assert_eq(usage_open(&source, getpid(), 0), 0);
	usage = get(&source);
	expect_grown("resident", usage.resident, rolled_up("Rss:"), 0);
	expect_grown("anonymous", usage.anonymous, rolled_up("Anonymous:"), 0);
	expect_grown("swap", usage.swap, rolled_up("Swap:"), 0);
	cr_expect_geq(usage.peak + SLACK, usage.resident);
	usage_close(&source);
	free(bytes);
}

Test(target_process_process, only_what_is_wanted)
{
	struct usage_source source;
	struct process_usage usage;

	cr_assert_eq(usage_open(&source, getpid(), 0), 0);
	cr_assert_eq(usage_read(&source, USAGE_CPU, &usage), 0);
	cr_expect(usage.have == USAGE_CPU && usage.cpu && !usage.resident);
	cr_assert_eq(usage_read(&source, USAGE_MEMORY, &usage), 0);
	cr_expect(usage.have == USAGE_MEMORY && !usage.cpu && !usage.user && usage.resident);
	cr_assert_eq(usage_read(&source, 0, &usage), 0);
	cr_expect(!usage.have && usage.threads && usage.time);
	usage_close(&source);
}

/* ---- which process ---- */

static void take_hostile_name(struct child *self)
{
	if (prctl(PR_SET_NAME, ") Z 1\nVmRSS: 9"))
		_exit(1);
	tell_done(self);
}

Test(target_process_process, hostile_names)
{
	struct child child = usage_start(take_hostile_name);
	struct usage_source source;
	struct process_usage usage;

	cr_assert_eq(usage_open(&source, child.pid, 0), 0);
	wait_done(&child);
	usage = get(&source);
	cr_expect_eq(usage.threads, 1);
	cr_expect_gt(usage.resident, 10 * 1024);
	go_on(&child);
	cr_assert_eq(waitpid(child.pid, NULL, 0), child.pid);
	usage_close(&source);
}

Test(target_process_process, usage_nobody_there)
{
	pid_t child = fork();
	struct usage_source source;
	siginfo_t info;

	if (!child)
		_exit(0);
	cr_assert_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	cr_expect_eq(usage_open(&source, child, 0), -ESRCH, "it has ended");
	cr_assert_eq(waitpid(child, NULL, 0), child);
	cr_expect_eq(usage_open(&source, child, 0), -ESRCH);
	cr_expect_eq(usage_open(&source, 0, 0), -ESRCH);
}

Test(target_process_process, another_start_is_another_process)
{
	struct usage_source source;
	__u64 start_time;

	cr_assert_eq(usage_open(&source, getpid(), 0), 0);
	start_time = source.start_time;
	usage_close(&source);
	cr_assert_eq(usage_open(&source, getpid(), start_time), 0);
	usage_close(&source);
	cr_expect_eq(usage_open(&source, getpid(), start_time + 1), -ESRCH);
	cr_expect_eq(usage_open(&source, getpid(), start_time - 1), -ESRCH);
}

/* The next child gets this number, in a namespace where nobody else makes any. */
static bool next_pid(pid_t pid)
{
	FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "we");
	bool written = file && fprintf(file, "%d", (int)pid - 1) > 0;

	return file && !fclose(file) && written;
}

static pid_t sleeping_child(void)
{
	pid_t child = fork();

	if (!child) {
		pause();
		_exit(0);
	}
	return child;
}

enum reuse { REUSE_SEEN, REUSE_CANNOT, REUSE_SAME, REUSE_OLD_SOURCE, REUSE_OLD_START };

static enum reuse reuse_number(void)
{
	struct usage_source source, second;
	struct process_usage usage;
	enum reuse result = REUSE_SEEN;
	pid_t first, again;
	__u64 later;

	if (mount("proc", "/proc", "proc", 0, NULL))
		return REUSE_CANNOT;
	first = sleeping_child();
	if (first <= 0 || usage_open(&source, first, 0) || usage_read(&source, ALL, &usage))
		return REUSE_CANNOT;
	kill(first, SIGKILL);
	waitpid(first, NULL, 0);
	/* Start times have the resolution of a tick. */
	later = clock_monotonic() + 3 * TICK;
	while (clock_monotonic() < later)
		;
	again = next_pid(first) ? sleeping_child() : -1;
	if (again != first)
		return REUSE_SAME;
	if (usage_read(&source, ALL, &usage) != -ESRCH)
		result = REUSE_OLD_SOURCE;
	else if (usage_open(&second, again, source.start_time) != -ESRCH || usage_open(&second, again, 0))
		result = REUSE_OLD_START;
	kill(again, SIGKILL);
	return result;
}

Test(target_process_process, a_number_that_is_used_again)
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (unshare(CLONE_NEWPID | CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
			_exit(REUSE_CANNOT);
		child = fork();
		if (!child)
			_exit(reuse_number());
		_exit(waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 99);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == REUSE_CANNOT)
		cr_skip_test("cannot make a namespace of processes");
	cr_expect_eq(WEXITSTATUS(status), REUSE_SEEN, "%d", WEXITSTATUS(status));
}
