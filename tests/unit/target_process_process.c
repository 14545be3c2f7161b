/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/reader/contents.h"
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

/* As its reader finds it. */
static bool program_is_static(pid_t pid)
{
	const char *only[] = { "nrt" };
	struct mapped_file mapped = { .path = "program" };
	struct file_contents contents;
	struct registry *registry;
	bool is_static;

	cr_assert_eq(registry_create(NULL, &(struct registry_options){ .only = only, .only_count = 1 }, &registry), 0);
	snprintf(mapped.open_path, sizeof(mapped.open_path), "/proc/%d/exe", pid);
	file_contents_search(NULL, &(struct file_search){ .registry = registry }, &mapped, &contents);
	is_static = contents.is_static;
	file_contents_free(&contents);
	registry_free(registry);
	return is_static;
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
	cr_expect_not(program_is_static(info.tgid));
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
	is_static = program_is_static(info->tgid);
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

	support_needs_x86();
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
