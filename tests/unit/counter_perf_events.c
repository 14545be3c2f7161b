/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/perf_events.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/core/clock.h"
#include "kern/perf.h"
#include "target/tracepoint/tracefs.h"
#include "tests/unit/counter_perf.h"

#define SOFTWARE PERF_TYPE_SOFTWARE

static const struct log receiver = { on_message, NULL, XPT_LOG_WARN };

TestSuite(counter_perf_events, .init = open_all, .fini = close_all);

/* A counter of one event on one CPU. */
struct single {
	struct counter_event event;
	struct counter counter;
	int cpu;
};

static void single_make(struct single *single, __u32 type, __u64 config, int cpu)
{
	*single = (struct single){ .cpu = cpu };
	single->event = (struct counter_event){
		.type = type, .config = { config }, .of_each_cpu = true, .only_cpu = -1, .pmu = "toy"
	};
	single->event.cpus = (struct cpus){ .items = &single->cpu, .count = 1 };
	single->counter = (struct counter){ .events = &single->event, .event_count = 1 };
	single->counter.info.name = "toy/event/";
}

static int add(struct perf_events *events, __u32 type, __u64 config, int cpu, size_t index)
{
	struct single single;

	single_make(&single, type, config, cpu);
	return perf_events_add(events, &single.counter, index);
}

static struct perf_events of_worker(void)
{
	said[0] = '\0';
	return (struct perf_events){ .pid = worker.pid, .log = &receiver };
}

/* Of all threads that this process has, also those of the test's frame. */
static struct perf_events of_this_process(size_t *threads)
{
	struct perf_events events = of_worker();
	char path[64];
	struct dirent *entry;
	DIR *folder;

	events.pid = getpid();
	snprintf(path, sizeof(path), "/proc/%d/task", events.pid);
	folder = opendir(path);
	cr_assert_not_null(folder);
	for (*threads = 0; (entry = readdir(folder));)
		*threads += entry->d_name[0] != '.';
	closedir(folder);
	return events;
}

static __u64 sum_of_parts(const struct perf_events *events)
{
	__u64 sum = 0;

	for (size_t i = 0; i < events->part_count; i++)
		sum += events->parts[i].now.count;
	return sum;
}

/* ---- counting ---- */

/* Nothing before it begins, all faults of the time, nothing after it has ended. */
Test(counter_perf_events, faults_of_a_process)
{
	struct perf_events events = of_worker();
	double begin, end, within, count;
	struct answer answer;

	cr_assert_eq(add(&events, SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, 0), 0, "%s", said);
	begin = worker_touch(&worker, 100).faults;
	cr_expect_eq(perf_events_read(&events), 1);
	cr_expect_eq(events.parts[0].now.count, 0);
	cr_expect_eq(events.parts[0].now.enabled, 0);
	cr_assert_eq(perf_events_enable(&events), 0);
	answer = worker_touch(&worker, 500);
	perf_events_disable(&events);
	end = worker_touch(&worker, 100).faults_before;
	within = answer.faults - answer.faults_before;
	perf_events_read(&events);
	count = (double)events.parts[0].now.count;
	cr_expect_geq(within, 500);
	cr_expect_geq(count, within, "%g faults counted, %g happened", count, within);
	cr_expect_leq(count, end - begin, "%g faults counted, %g happened", count, end - begin);
	cr_expect_gt(events.parts[0].now.enabled, 0);
	cr_expect_eq(events.parts[0].now.running, events.parts[0].now.enabled);
	cr_expect(!events.parts[0].now.gone);
	perf_events_close(&events);
	cr_expect_eq(events.part_count, 0);
	perf_events_close(&events);
}

static void *touch(void *context)
{
	touch_pages(*(size_t *)context);
	return NULL;
}

/* Threads that begin later count, while they run and when they have ended. */
Test(counter_perf_events, threads)
{
	size_t pages = 300, running;
	struct perf_events events = of_this_process(&running);
	pthread_t thread;

	cr_assert_eq(add(&events, SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, 0), 0, "%s", said);
	perf_events_enable(&events);
	cr_assert_eq(pthread_create(&thread, NULL, touch, &pages), 0);
	pthread_join(thread, NULL);
	perf_events_disable(&events);
	cr_expect_eq(perf_events_read(&events), running);
	cr_expect_geq(sum_of_parts(&events), 300);
	perf_events_close(&events);
}

static void *wait_for_end(void *context)
{
	char letter;

	(void)!read(*(int *)context, &letter, 1);
	touch_pages(300);
	return NULL;
}

/* Those that run already have an event each. */
Test(counter_perf_events, threads_that_run)
{
	struct perf_events events;
	pthread_t thread;
	size_t running;
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(pthread_create(&thread, NULL, wait_for_end, &ends[0]), 0);
	events = of_this_process(&running);
	cr_expect_geq(running, 2);
	cr_assert_eq(add(&events, SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, 3), 0, "%s", said);
	cr_expect_eq(events.part_count, running);
	cr_expect_eq(events.group_count, running);
	perf_events_enable(&events);
	cr_assert_eq(write(ends[1], "x", 1), 1);
	pthread_join(thread, NULL);
	perf_events_disable(&events);
	cr_expect_eq(perf_events_read(&events), running);
	for (size_t i = 0; i < events.part_count; i++)
		cr_expect_eq(events.parts[i].counter, 3);
	cr_expect_geq(sum_of_parts(&events), 300);
	perf_events_close(&events);
}

/* Until the process runs another program, nothing is counted. */
Test(counter_perf_events, until_exec)
{
	struct perf_events events = of_worker();
	char *const arguments[] = { "true", NULL };
	char letter = 0;
	int ends[2], status;

	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	events.pid = fork();
	cr_assert_geq(events.pid, 0);
	if (!events.pid) {
		if (read(ends[0], &letter, 1) == 1)
			touch_pages(1000);
		execv("/bin/true", arguments);
		_exit(1);
	}
	events.until_exec = true;
	cr_assert_eq(add(&events, SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, 0), 0, "%s", said);
	perf_events_enable(&events);
	cr_assert_eq(write(ends[1], "x", 1), 1);
	cr_assert_eq(waitpid(events.pid, &status, 0), events.pid);
	cr_assert_eq(status, 0);
	perf_events_read(&events);
	cr_expect_gt(events.parts[0].now.count, 0);
	cr_expect_lt(events.parts[0].now.count, 1000);
	perf_events_close(&events);
}

/* On one CPU: what it does there, and nothing elsewhere. */
Test(counter_perf_events, process_on_one_cpu)
{
	struct perf_events events = of_worker();
	struct single single;
	struct cpus online;
	cpu_set_t set;

	cr_assert_eq(cpus_online("/sys", &online), 0);
	for (size_t i = 0; i < online.count; i++) {
		single_make(&single, SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0);
		single.event.only_cpu = online.items[i];
		cr_assert_eq(perf_events_add(&events, &single.counter, i), 0, "%s", said);
	}
	cr_assert_eq(events.part_count, online.count);
	CPU_ZERO(&set);
	CPU_SET(online.items[online.count - 1], &set);
	cr_assert_eq(sched_setaffinity(worker.pid, sizeof(set), &set), 0);
	worker_touch(&worker, 1);
	perf_events_enable(&events);
	worker_touch(&worker, 200);
	perf_events_disable(&events);
	perf_events_read(&events);
	for (size_t i = 0; i + 1 < online.count; i++)
		cr_expect_eq(events.parts[i].now.count, 0);
	cr_expect_geq(events.parts[online.count - 1].now.count, 200);
	perf_events_close(&events);
	cpus_free(&online);
}

/* ---- groups ---- */

/* The same event twice in a group counts the same. */
Test(counter_perf_events, one_group)
{
	struct perf_events events = of_worker();
	static const __u64 kinds[] = { PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_TASK_CLOCK, PERF_COUNT_SW_PAGE_FAULTS,
				       PERF_COUNT_SW_PAGE_FAULTS_MIN };

	for (size_t i = 0; i < 4; i++)
		cr_assert_eq(add(&events, SOFTWARE, kinds[i], 0, i), 0, "%s", said);
	cr_expect_eq(events.part_count, 4);
	cr_expect_eq(events.group_count, 1);
	perf_events_enable(&events);
	worker_touch(&worker, 200);
	cr_expect_eq(perf_events_read(&events), 1);
	cr_expect_geq(events.parts[0].now.count, 200);
	cr_expect_eq(events.parts[0].now.count, events.parts[2].now.count);
	for (size_t i = 0; i < 4; i++) {
		cr_expect_eq(events.parts[i].counter, i);
		cr_expect_eq(events.parts[i].now.time, events.parts[0].now.time);
		cr_expect_eq(events.parts[i].now.enabled, events.parts[0].now.enabled);
	}
	cr_expect_gt(events.parts[1].now.count, 0);
	perf_events_close(&events);
}

/* Of everybody, on each CPU that is named. */
Test(counter_perf_events, a_group_for_each_cpu)
{
	struct perf_events events = { .log = &receiver };
	struct cpus online;
	struct single single;
	double before, within;
	__u64 sum = 0;
	int error;

	cr_assert_eq(cpus_online("/sys", &online), 0);
	single_make(&single, SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0);
	single.event.cpus = online;
	error = perf_events_add(&events, &single.counter, 0);
	if (error == -EACCES)
		cr_skip_test("system-wide counting is not permitted: root or CAP_PERFMON is needed");
	cr_assert_eq(error, 0, "%s", said);
	cr_assert_eq(perf_events_add(&events, &single.counter, 1), 0);
	cr_expect_eq(events.group_count, online.count);
	cr_expect_eq(events.part_count, 2 * online.count);
	for (size_t i = 0; i < events.part_count; i++)
		cr_expect_eq(events.parts[i].counter, i / online.count);
	perf_events_enable(&events);
	before = faults_so_far();
	touch_pages(400);
	within = faults_so_far() - before;
	perf_events_disable(&events);
	cr_expect_eq(perf_events_read(&events), online.count);
	for (size_t i = 0; i < online.count; i++) {
		sum += events.parts[i].now.count;
		cr_expect_eq(events.parts[i].now.count, events.parts[online.count + i].now.count);
	}
	cr_expect_geq((double)sum, within);
	perf_events_close(&events);
	cpus_free(&online);
}

/* Events that cannot be counted by process count all processes where that is wanted. */
Test(counter_perf_events, mixed)
{
	struct perf_events events = of_worker();
	struct single single;
	int error;

	single_make(&single, SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0);
	single.event.of_each_cpu = false;
	events.mixed = true;
	error = perf_events_add(&events, &single.counter, 0);
	if (error == -EACCES)
		cr_skip_test("system-wide counting is not permitted: root or CAP_PERFMON is needed");
	cr_assert_eq(error, 0, "%s", said);
	cr_assert_eq(add(&events, SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, 1), 0, "%s", said);
	/* Not in one group: one is of the CPU, the other of this process. */
	cr_expect_eq(events.group_count, 2);
	perf_events_enable(&events);
	worker_touch(&worker, 100);
	cr_expect_eq(perf_events_read(&events), 2);
	cr_expect_gt(events.parts[0].now.count, 0);
	cr_expect_geq(events.parts[1].now.count, 100);
	perf_events_close(&events);
}

/* Software events always fit. */
Test(counter_perf_events, pinned)
{
	struct perf_events events = of_worker();

	events.pinned = true;
	cr_assert_eq(add(&events, SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, 0), 0, "%s", said);
	cr_expect_eq(perf_events_enable(&events), 0);
	worker_touch(&worker, 50);
	perf_events_read(&events);
	cr_expect_geq(events.parts[0].now.count, 50);
	perf_events_close(&events);
}

/* ---- refused ---- */

static void expect_refused(struct perf_events *events, int error, const char *words)
{
	cr_expect_not_null(strstr(said, words), "%s", said);
	cr_expect_eq(strcspn(said, "\n") + 1, strlen(said), "%s", said);
	cr_expect_lt(error, 0);
	perf_events_close(events);
	said[0] = '\0';
}

Test(counter_perf_events, refused)
{
	struct perf_events events = of_worker();
	pid_t child = fork();
	int error;

	cr_assert_geq(child, 0);
	if (!child)
		_exit(0);
	cr_assert_eq(waitpid(child, NULL, 0), child);

	/* There is no such type, and no such software event. */
	error = add(&events, 0x7fffff00, 0, 0, 0);
	cr_expect_eq(error, -ENOENT);
	expect_refused(&events, error, "toy/event/: this machine cannot count it");
	error = add(&events, SOFTWARE, 9999, 0, 0);
	cr_expect_eq(error, -ENOENT);
	expect_refused(&events, error, "toy/event/: this machine cannot count it");
	events.pid = child;
	error = add(&events, SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, 0);
	cr_expect_eq(error, -ESRCH);
	expect_refused(&events, error, "there is no process");
}

/* An event that cannot be opened leaves those before it as they are. */
Test(counter_perf_events, after_a_refusal)
{
	struct perf_events events = of_worker();

	cr_assert_eq(add(&events, SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, 0), 0, "%s", said);
	cr_expect_eq(add(&events, SOFTWARE, 9999, 0, 1), -ENOENT);
	cr_expect_eq(events.part_count, 1);
	perf_events_enable(&events);
	worker_touch(&worker, 100);
	cr_expect_eq(perf_events_read(&events), 1);
	cr_expect_geq(events.parts[0].now.count, 100);
	perf_events_close(&events);
}

/* Of what tells a level by growing: over the time that was counted, and what it was before where none was. */
Test(counter_perf_events_mean, growth)
{
	const struct perf_sample past = { .count = 1000, .running = 1000000000 };
	struct perf_sample now = { .count = 1900, .running = 1500000000 };

	cr_expect_eq(perf_mean(COUNTING_PER_SECOND, &past, &now, 7), 1800);
	cr_expect_eq(perf_mean(COUNTING_BY_READ, &past, &now, 7), 900);
	now = past;
	cr_expect_eq(perf_mean(COUNTING_PER_SECOND, &past, &now, 7), 7);
	cr_expect_eq(perf_mean(COUNTING_BY_READ, &past, &now, 7), 7);
}

Test(counter_perf_events_exists, of_a_kernel)
{
	int cpu = 0;
	struct counter_event event = { .type = PERF_TYPE_SOFTWARE, .config = { PERF_COUNT_SW_PAGE_FAULTS } };

	event.cpus = (struct cpus){ &cpu, 1 };
	if (perf_event_exists(&event) == -EACCES)
		cr_skip_test("system-wide counting is not permitted: root or CAP_PERFMON is needed");
	cr_expect_eq(perf_event_exists(&event), 1);
	event.config[0] = 1000;
	cr_expect_eq(perf_event_exists(&event), 0);
	event.type = 4000000000;
	cr_expect_eq(perf_event_exists(&event), 0);
}

/* ---- of a device ---- */

/* The number of a tracepoint; skips the test where it cannot be read. */
static __u64 tracepoint_id(const char *name)
{
	const char *slash = strchr(name, '/');
	struct tracefs tracefs;
	int id;

	if (tracefs_open(NULL, &tracefs))
		cr_skip_test("tracefs cannot be read");
	id = tracefs_id(&tracefs, name, (size_t)(slash - name), slash + 1);
	tracefs_close(&tracefs);
	cr_assert_gt(id, 0, "%s", name);
	return (__u64)id;
}

static void rename_often(const char *name, int times)
{
	for (int i = 0; i < times; i++)
		cr_assert_eq(prctl(PR_SET_NAME, name), 0);
}

/* Only what passes the filter counts, whoever does it: it is not opened on the process that is counted otherwise. */
Test(counter_perf_events, filter)
{
	struct perf_events events = of_worker();
	struct single single;
	cpu_set_t one;

	single_make(&single, PERF_TYPE_TRACEPOINT, tracepoint_id("task/task_rename"), 0);
	single.event.of_each_cpu = false;
	single.event.of_device = true;
	single.event.filter = (char *)"newcomm == \"xpt-wanted\"";
	cr_expect_eq(perf_events_add(&events, &single.counter, 0), -EOPNOTSUPP);
	cr_expect_not_null(strstr(said, "not what a single process does"), "%s", said);
	events.mixed = true;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	cr_assert_eq(perf_events_add(&events, &single.counter, 0), 0, "%s", said);
	cr_assert_eq(perf_events_enable(&events), 0);
	rename_often("xpt-other", 5);
	rename_often("xpt-wanted", 3);
	perf_events_read(&events);
	cr_expect_eq(events.parts[0].now.count, 3, "%llu", events.parts[0].now.count);
	perf_events_close(&events);
	/* One that the kernel does not understand is refused. */
	single.event.filter = (char *)"no_such_field == 1";
	cr_expect_eq(perf_events_add(&events, &single.counter, 0), -EINVAL);
}

/* ---- owners of perf events ---- */

TestSuite(counter_perf_events_fd_owners, .init = need_perf_events);

/* A process with an event, and a name that has a line of its own. */
static pid_t hold(void)
{
	int ends[2];
	char letter;
	pid_t child;

	cr_assert_eq(pipe(ends), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (!child) {
		prctl(PR_SET_NAME, "hold\ner");
		letter = open_perf_event() < 0 ? 'n' : 'y';
		if (write(ends[1], &letter, 1) == 1)
			pause();
		_exit(0);
	}
	cr_assert_eq(read(ends[0], &letter, 1), 1);
	cr_assert_eq(letter, 'y');
	close(ends[0]);
	close(ends[1]);
	return child;
}

Test(counter_perf_events_fd_owners, another_process)
{
	char text[FD_OWNERS_TEXT_MAX], wanted[64];
	int own = open_perf_event();
	pid_t child = hold();

	memset(text, 'x', sizeof(text));
	snprintf(wanted, sizeof(wanted), "hold?er (%d)", child);
	fd_owners_of_perf_events(text);
	cr_assert_not_null(memchr(text, 0, sizeof(text)));
	cr_expect_not_null(strstr(text, wanted), "%s", text);
	/* This one is not meant. */
	snprintf(wanted, sizeof(wanted), "(%d)", getpid());
	cr_expect_null(strstr(text, wanted), "%s", text);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	snprintf(wanted, sizeof(wanted), "(%d)", child);
	fd_owners_of_perf_events(text);
	cr_expect_null(strstr(text, wanted), "%s", text);
	close(own);
}

/* More than there is room for are cut. */
Test(counter_perf_events_fd_owners, many)
{
	char text[FD_OWNERS_TEXT_MAX];
	pid_t children[32];

	for (size_t i = 0; i < 32; i++)
		children[i] = hold();
	fd_owners_of_perf_events(text);
	cr_expect_eq(strlen(text), (size_t)FD_OWNERS_TEXT_MAX - 1);
	for (size_t i = 0; i < 32; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
}

/* ---- CPUs that go offline ---- */

static int offline = -1; /* on this CPU nothing can be opened */

static int open_online(const struct perf_event_attr *attributes, pid_t pid, int cpu, int leader)
{
	return cpu == offline ? -ENODEV : perf_open(attributes, pid, cpu, leader);
}

/* The kernel ends the events of a CPU that goes offline: their times and counts stay. */
static void go_offline(int cpu)
{
	char path[64], target[64];
	struct dirent *entry;
	DIR *folder = opendir("/proc/self/fd");
	ssize_t length;

	cr_assert_not_null(folder);
	while ((entry = readdir(folder))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%.16s", entry->d_name);
		length = readlink(path, target, sizeof(target) - 1);
		target[length < 0 ? 0 : length] = '\0';
		if (!strcmp(target, "anon_inode:[perf_event]"))
			ioctl(atoi(entry->d_name), PERF_EVENT_IOC_DISABLE, 0);
	}
	closedir(folder);
	offline = cpu;
}

static void read_later(struct perf_events *events)
{
	usleep(30000);
	perf_events_read(events);
}

/* Of everybody, on CPU 0. */
static struct perf_events of_cpu(__u64 config, size_t count)
{
	struct perf_events events = { .log = &receiver, .open = open_online };
	static struct single singles[3];
	int error = 0;

	offline = -1;
	for (size_t i = 0; i < count && !error; i++) {
		single_make(&singles[i], SOFTWARE, config, 0);
		error = perf_events_add(&events, &singles[i].counter, i);
	}
	if (error == -EACCES)
		cr_skip_test("system-wide counting is not permitted: root or CAP_PERFMON is needed");
	cr_assert_eq(error, 0, "%s", said);
	cr_assert_eq(perf_events_enable(&events), 0);
	return events;
}

/* Its count is known not to grow meanwhile, and goes on where it was when the CPU is back. */
Test(counter_perf_events, cpu_that_goes_and_comes)
{
	struct perf_events events = of_cpu(PERF_COUNT_SW_CPU_CLOCK, 2);
	struct perf_sample before;

	read_later(&events);
	cr_expect(!events.parts[0].offline && !events.parts[0].now.gone);
	cr_expect_gt(events.parts[0].now.count, 0);
	go_offline(0);
	read_later(&events);
	before = events.parts[0].now;
	for (int i = 0; i < 3; i++) {
		read_later(&events);
		cr_expect(events.parts[0].offline && events.parts[0].now.gone);
		cr_expect_eq(events.parts[0].now.count, before.count);
		cr_expect_eq(events.parts[0].now.enabled, before.enabled);
	}
	offline = -1;
	read_later(&events);
	cr_expect(events.parts[0].offline && !events.parts[0].now.gone, "it counts again");
	cr_expect_eq(events.parts[0].now.count, before.count);
	for (size_t i = 0; i < 2; i++)
		events.parts[i].offline = false;
	read_later(&events);
	for (size_t i = 0; i < 2; i++) {
		const struct perf_sample *now = &events.parts[i].now;

		cr_expect(!events.parts[i].offline && !now->gone);
		cr_expect_geq(now->count, before.count + 1000000, "%llu after %llu", now->count, before.count);
		cr_expect_leq(now->count, before.count + 1000000000);
		cr_expect_eq(now->enabled, now->running);
		cr_expect_gt(now->enabled, before.enabled);
	}
	perf_events_close(&events);
}

/* Away and back between two reads, which come at once or much later. */
Test(counter_perf_events, cpu_that_is_back_when_it_is_read)
{
	struct perf_events events = of_cpu(PERF_COUNT_SW_CPU_CLOCK, 1);
	__u64 before;

	perf_events_read(&events);
	perf_events_read(&events);
	cr_expect(!events.parts[0].offline, "two reads at once are no sign of it");
	go_offline(-1);
	read_later(&events);
	before = events.parts[0].now.count;
	perf_events_renew(&events);
	read_later(&events);
	cr_expect(events.parts[0].offline && !events.parts[0].now.gone);
	read_later(&events);
	cr_expect_gt(events.parts[0].now.count, before);
	perf_events_close(&events);
}

/* What it had counted is there after the stop, and it goes on with the next start. */
Test(counter_perf_events, cpu_that_goes_before_the_stop)
{
	struct perf_events events = of_cpu(PERF_COUNT_SW_CPU_CLOCK, 1);
	__u64 before;

	read_later(&events);
	before = events.parts[0].now.count;
	go_offline(0);
	usleep(60000);
	perf_events_disable(&events);
	read_later(&events);
	cr_expect(events.parts[0].offline);
	cr_expect_geq(events.parts[0].now.count, before);
	before = events.parts[0].now.count;
	read_later(&events);
	cr_expect_eq(events.parts[0].now.count, before, "it is stopped");
	offline = -1;
	cr_assert_eq(perf_events_enable(&events), 0);
	read_later(&events);
	read_later(&events);
	cr_expect(!events.parts[0].now.gone);
	cr_expect_gt(events.parts[0].now.count, before);
	perf_events_close(&events);
}

/* One that cannot be opened again for another reason has gone, as with its driver. */
static int open_nothing(const struct perf_event_attr *attributes, pid_t pid, int cpu, int leader)
{
	(void)attributes, (void)pid, (void)cpu, (void)leader;
	return -ENOENT;
}

Test(counter_perf_events, device_that_has_gone)
{
	struct perf_events events = of_cpu(PERF_COUNT_SW_CPU_CLOCK, 1);

	read_later(&events);
	go_offline(-1);
	read_later(&events); /* has its latest times */
	go_offline(-1);
	events.open = open_nothing;
	read_later(&events);
	read_later(&events);
	cr_expect(events.parts[0].now.gone);
	perf_events_close(&events);
}

/* Of a process nothing ends: a thread that does not run counts no time either. */
Test(counter_perf_events, a_process_that_sleeps_has_no_cpu)
{
	struct perf_events events = of_worker();

	cr_assert_eq(add(&events, SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 0, 0), 0, "%s", said);
	events.open = open_nothing;
	cr_assert_eq(perf_events_enable(&events), 0);
	for (int i = 0; i < 3; i++)
		read_later(&events);
	cr_expect(!events.parts[0].offline && !events.parts[0].now.gone);
	perf_events_close(&events);
}

/* A device is counted on the CPU that its driver chooses then; without a list of these, on any. */
Test(counter_perf_events, device_whose_cpu_goes)
{
	struct perf_events events = { .log = &receiver, .open = open_online };
	struct single single;
	int error;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		cr_skip_test("there is one CPU only");
	offline = -1;
	single_make(&single, SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0);
	single.event.of_each_cpu = false;
	error = perf_events_add(&events, &single.counter, 0);
	if (error == -EACCES)
		cr_skip_test("system-wide counting is not permitted: root or CAP_PERFMON is needed");
	cr_assert_eq(error, 0, "%s", said);
	cr_assert_eq(perf_events_enable(&events), 0);
	read_later(&events);
	go_offline(0);
	read_later(&events);
	read_later(&events);
	cr_expect(events.parts[0].offline && !events.parts[0].now.gone);
	events.parts[0].offline = false;
	read_later(&events);
	cr_expect(!events.parts[0].offline && !events.parts[0].now.gone);
	perf_events_close(&events);
}

/* ---- readers that are interrupted ---- */

static int late_values[2];

static int open_late(const struct perf_event_attr *attributes, pid_t pid, int cpu, int leader)
{
	(void)attributes, (void)pid, (void)cpu, (void)leader;
	return dup(late_values[0]);
}

/* Values that a reader had to wait for; behind them others. */
static void *write_late(void *written)
{
	const __u64 values[2][4] = { { 1, 10, 10, 100 }, { 1, 20, 20, 200 } };

	usleep(20000);
	*(__u64 *)written = clock_monotonic();
	cr_assert_eq(write(late_values[1], values, sizeof(values)), (ssize_t)sizeof(values));
	return NULL;
}

/* A value is of the time that it has, not of one when the reader was about to read it. */
Test(counter_perf_events, a_late_reading_is_made_again)
{
	struct perf_events events = { .log = &receiver, .open = open_late };
	pthread_t writer;
	__u64 written;

	cr_assert_eq(pipe(late_values), 0);
	cr_assert_eq(add(&events, SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0, 0), 0, "%s", said);
	cr_assert_eq(pthread_create(&writer, NULL, write_late, &written), 0);
	perf_events_read(&events);
	pthread_join(writer, NULL);
	cr_expect_eq(events.parts[0].now.count, 200);
	cr_expect_geq(events.parts[0].now.time, written);
	perf_events_close(&events);
	close(late_values[0]);
	close(late_values[1]);
}
