/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies of memory by the process that makes them. */
#include "session/reader/readers_private.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/log.h"

#define PAGE 4096u
#define SIZE (16 * PAGE)
#define MS 1000000ull

static const struct log quiet = { 0 };

/* Memory that begins with one page of a byte; the others never come. -1: there is no userfaultfd here. */
static int memory_that_hangs(unsigned char **bytes, int byte)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register wanted = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int descriptor = syscall(SYS_userfaultfd, O_CLOEXEC);

	*bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(*bytes, MAP_FAILED);
	madvise(*bytes, SIZE, MADV_NOHUGEPAGE);
	memset(*bytes, byte, PAGE);
	wanted.range = (struct uffdio_range){ (unsigned long)*bytes + PAGE, SIZE - PAGE };
	if (descriptor < 0 || ioctl(descriptor, UFFDIO_API, &api) || ioctl(descriptor, UFFDIO_REGISTER, &wanted))
		return -1;
	return descriptor;
}

static unsigned char given[SIZE];
static struct file_readers *readers;
static struct code_spare spare;
static pid_t child; /* has what is given */
static cpu_set_t cpu;

static void begin(void)
{
	memset(given, 'g', sizeof(given));
	code_spare_open(&spare, false);
	cr_assert_not_null(spare.ready);
	cr_assert_eq(file_readers_start(&quiet, &(const struct file_search){ 0 }, &readers), 0);
	file_readers_lend(readers, &spare);
	child = fork();
	cr_assert_geq(child, 0);
	if (!child) {
		pause();
		_exit(0);
	}
	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
}

/* From 50 ms on, nothing of SCHED_IDLE gets this CPU. */
static pid_t child_that_computes(void)
{
	pid_t pid = fork();

	if (!pid) {
		sched_setaffinity(0, sizeof(cpu), &cpu);
		usleep(50000);
		for (;;)
			;
	}
	cr_assert_gt(pid, 0);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int copy_of(pid_t pid, const void *bytes, __u64 limit, struct code_copy *copy)
{
	const struct code_source source = {
		CODE_SOURCE_BYTES, pid, clock_monotonic() + limit, SIZE, (unsigned long)bytes, 0, 0
	};

	return file_reader_source_copy(readers, &source, SIZE, copy);
}

/* The killed process still has the first page to copy, but no CPU. */
Test(session_reader_code_readers, killed_process_does_not_change_the_next_copy)
{
	struct pollfd dying = { .events = POLLIN };
	struct code_copy copy;
	unsigned char *hangs;
	int memory = memory_that_hangs(&hangs, 'x');
	pid_t computes;
	__u64 size;
	int error;

	if (memory < 0)
		cr_skip_test("no userfaultfd can be had here");
	begin();
	cr_assert_eq(sched_setaffinity(readers->memory->pid, sizeof(cpu), &cpu), 0);
	cr_assert_eq(sched_setscheduler(readers->memory->pid, SCHED_IDLE, &(struct sched_param){ 0 }), 0);
	dying.fd = syscall(SYS_pidfd_open, readers->memory->pid, 0);
	cr_assert_geq(dying.fd, 0);
	computes = child_that_computes();

	cr_assert_eq(copy_of(getpid(), hangs, 200 * MS, &copy), -ETIMEDOUT);
	cr_assert_eq(copy_of(child, given, 200 * MS, &copy), 0);
	error = file_reader_header_size(readers, given, sizeof(given), &size);
	cr_expect(error == -EBUSY || poll(&dying, 1, 0) == 1, "%d", error);
	end_child(computes);
	cr_assert_eq(poll(&dying, 1, 10000), 1, "the killed process has ended");
	cr_expect_eq(memcmp(copy.bytes, given, SIZE), 0, "another copy's bytes");
	code_copy_free(&copy);

	/* From here on the memory that is lent is used again. */
	cr_assert_eq(copy_of(child, given, 200 * MS, &copy), 0);
	cr_expect_eq(copy.bytes, spare.ready);
	cr_expect_eq(memcmp(copy.bytes, given, SIZE), 0);
	code_copy_free(&copy);
	cr_expect_eq(file_reader_header_size(readers, given, sizeof(given), &size), -ENODATA);
	file_readers_stop(readers);
	code_spare_close(&spare);
	close(dying.fd);
	close(memory);
	end_child(child);
}

/* What this thread waits for a CPU is not the process's fault, however much that is. */
Test(session_reader_code_readers, busy_machine_is_no_reason_to_leave_a_process_out)
{
	const struct sched_param none = { 0 };
	struct code_copy copy;
	pid_t computes;
	cpu_set_t before;
	__u64 end;
	int error = 0;

	begin();
	cr_assert_eq(sched_getaffinity(0, sizeof(before), &before), 0);
	computes = child_that_computes();
	cr_assert_eq(sched_setaffinity(0, sizeof(cpu), &cpu), 0);
	cr_assert_eq(sched_setscheduler(0, SCHED_IDLE, &none), 0);
	end = clock_monotonic() + 4000 * MS;
	while (!error && clock_monotonic() < end) {
		error = copy_of(child, given, 10000 * MS, &copy);
		if (!error)
			code_copy_free(&copy);
	}
	end_child(computes);
	sched_setscheduler(0, SCHED_OTHER, &none);
	sched_setaffinity(0, sizeof(before), &before);
	cr_expect_eq(error, 0);
	file_readers_stop(readers);
	code_spare_close(&spare);
	end_child(child);
}
