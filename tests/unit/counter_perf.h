/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes to count: whether it is allowed, and work that the kernel counts by itself, too. */
#ifndef XPT_TEST_COUNTER_PERF_H
#define XPT_TEST_COUNTER_PERF_H

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <xputrace/error.h>

/* An event of this process, the kernel's part included. A descriptor or -errno. */
static inline int open_perf_event(void)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.disabled = 1,
	};
	int descriptor = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return descriptor < 0 ? -errno : descriptor;
}

static inline void need_perf_events(void)
{
	int descriptor = open_perf_event();

	if (descriptor == -EACCES)
		cr_skip_test("perf events are not allowed: root or CAP_PERFMON is wanted");
	cr_assert_geq(descriptor, 0, "perf_event_open: %s", strerror(-descriptor));
	close(descriptor);
}

/* One fault for each page. */
static inline void touch_pages(size_t count)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(memory, MAP_FAILED);
	madvise(memory, count * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < count; i++)
		((volatile char *)memory)[i * page] = 1;
	munmap(memory, count * page);
}

static inline double faults_so_far(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_minflt + usage.ru_majflt);
}

/* Of the process, in ns. */
static inline double cpu_time(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static inline void spin(double nanoseconds)
{
	double end = cpu_time() + nanoseconds;

	while (cpu_time() < end)
		;
}

/* ---- a process of one thread that does what it is asked: those of tests have more than their own ---- */

struct order {
	size_t pages;	    /* to touch */
	double nanoseconds; /* to compute for */
};

/* What the process had used up before and after the order. */
struct answer {
	double faults_before, faults, cpu_before, cpu;
};

struct worker {
	pid_t pid;
	int orders, answers;
};

static inline void worker_serve(int orders, int answers)
{
	struct answer answer;
	struct order order;

	while (read(orders, &order, sizeof(order)) == sizeof(order)) {
		answer.faults_before = faults_so_far();
		answer.cpu_before = cpu_time();
		if (order.pages)
			touch_pages(order.pages);
		spin(order.nanoseconds);
		answer.faults = faults_so_far();
		answer.cpu = cpu_time();
		if (write(answers, &answer, sizeof(answer)) != sizeof(answer))
			break;
	}
	_exit(0);
}

static inline struct answer worker_do(const struct worker *worker, struct order order)
{
	struct answer answer;

	cr_assert_eq(write(worker->orders, &order, sizeof(order)), sizeof(order));
	cr_assert_eq(read(worker->answers, &answer, sizeof(answer)), sizeof(answer));
	return answer;
}

static inline struct worker worker_start(void)
{
	struct worker worker;
	int orders[2], answers[2];

	cr_assert_eq(pipe(orders), 0);
	cr_assert_eq(pipe(answers), 0);
	worker.pid = fork();
	cr_assert_geq(worker.pid, 0);
	if (!worker.pid) {
		close(orders[1]);
		close(answers[0]);
		worker_serve(orders[0], answers[1]);
	}
	close(orders[0]);
	close(answers[1]);
	worker.orders = orders[1];
	worker.answers = answers[0];
	/* What it shares with its parent until it writes is no matter of later orders. */
	worker_do(&worker, (struct order){ .pages = 1 });
	return worker;
}

static inline struct answer worker_touch(const struct worker *worker, size_t pages)
{
	return worker_do(worker, (struct order){ .pages = pages });
}

static inline void worker_end(const struct worker *worker)
{
	close(worker->orders);
	close(worker->answers);
	waitpid(worker->pid, NULL, 0);
}

/* ---- what every test of a suite has: a worker, and the messages that were written ---- */

static char said[4096];

static inline void on_message(void *context, enum xpt_log_level level, const char *text)
{
	size_t used = strlen(said);

	(void)context;
	(void)level;
	snprintf(said + used, sizeof(said) - used, "%s\n", text);
}

static struct worker worker;

static inline void open_all(void)
{
	need_perf_events();
	worker = worker_start();
}

static inline void close_all(void)
{
	worker_end(&worker);
}

#endif
