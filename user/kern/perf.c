/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/perf.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define DATA_PAGES 16 /* of each CPU's ring; a power of two */

/* False: it is as high as it may be. */
static bool raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= limit.rlim_max)
		return false;
	limit.rlim_cur = limit.rlim_max;
	return !setrlimit(RLIMIT_NOFILE, &limit);
}

int perf_open(const struct perf_event_attr *attributes, pid_t pid, int cpu, int leader)
{
	int descriptor;

	do {
		descriptor = (int)syscall(SYS_perf_event_open, attributes, pid, cpu, leader, PERF_FLAG_FD_CLOEXEC);
	} while (descriptor < 0 && errno == EMFILE && raise_descriptor_limit());
	return descriptor < 0 ? -errno : descriptor;
}

/* ---- mapped files ---- */

struct cpu_ring {
	int descriptor; /* -1: the CPU is offline */
	struct perf_event_mmap_page *control;
};

struct mappings {
	int epoll;
	long page;
	size_t cpu_count;
	struct cpu_ring cpus[]; /* by number */
};

/* Not an error: the CPU is offline. */
static int open_cpu(struct mappings *mappings, int cpu)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1,
		.mmap2 = 1,
		.sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = 1,
	};
	struct epoll_event event = { .events = EPOLLIN };
	struct cpu_ring *ring = &mappings->cpus[cpu];

	ring->descriptor = perf_open(&attributes, -1, cpu, -1);
	if (ring->descriptor < 0)
		return ring->descriptor == -ENODEV || ring->descriptor == -ENXIO ? 0 : ring->descriptor;
	ring->control = mmap(NULL, (1 + DATA_PAGES) * mappings->page, PROT_READ | PROT_WRITE, MAP_SHARED,
			     ring->descriptor, 0);
	if (ring->control == MAP_FAILED || epoll_ctl(mappings->epoll, EPOLL_CTL_ADD, ring->descriptor, &event)) {
		int error = -errno;

		if (ring->control != MAP_FAILED)
			munmap(ring->control, (1 + DATA_PAGES) * mappings->page);
		close(ring->descriptor);
		ring->descriptor = -1;
		return error;
	}
	return 0;
}

static void close_cpu(struct mappings *mappings, struct cpu_ring *ring)
{
	if (ring->descriptor < 0)
		return;
	munmap(ring->control, (1 + DATA_PAGES) * mappings->page);
	close(ring->descriptor);
	ring->descriptor = -1;
}

int mappings_renew(struct mappings *mappings, int cpu)
{
	if ((size_t)cpu >= mappings->cpu_count)
		return 0;
	close_cpu(mappings, &mappings->cpus[cpu]);
	return open_cpu(mappings, cpu);
}

int mappings_open(const struct log *log, struct mappings **result)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct mappings *mappings = calloc(1, sizeof(*mappings) + cpus * sizeof(mappings->cpus[0]));
	int error = 0;

	if (!mappings)
		return -ENOMEM;
	mappings->page = sysconf(_SC_PAGESIZE);
	mappings->cpu_count = (size_t)cpus;
	for (long cpu = 0; cpu < cpus; cpu++)
		mappings->cpus[cpu].descriptor = -1;
	mappings->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (mappings->epoll < 0)
		error = -errno;
	for (long cpu = 0; cpu < cpus && !error; cpu++)
		error = open_cpu(mappings, cpu);
	if (error) {
		log_warn(log, "cannot watch for libraries that are loaded later: %s", strerror(-error));
		mappings_close(mappings);
		return error;
	}
	*result = mappings;
	return 0;
}

void mappings_close(struct mappings *mappings)
{
	if (!mappings)
		return;
	for (size_t i = 0; i < mappings->cpu_count; i++)
		close_cpu(mappings, &mappings->cpus[i]);
	if (mappings->epoll >= 0)
		close(mappings->epoll);
	free(mappings);
}

int mappings_descriptor(const struct mappings *mappings)
{
	return mappings->epoll;
}

static void ring_read(struct mappings *mappings, struct cpu_ring *ring, mapping_fn visit, void *context)
{
	const char *data = (const char *)ring->control + mappings->page;
	__u64 size = DATA_PAGES * mappings->page;
	__u64 head = __atomic_load_n(&ring->control->data_head, __ATOMIC_ACQUIRE);
	__u64 tail = ring->control->data_tail;

	while (tail < head) {
		/* Records are multiples of 8 bytes: a header, the PID behind it and the time at the end never wrap in the middle. */
		const struct perf_event_header *header = (const void *)(data + tail % size);
		__u32 pid;
		__u64 time;

		if (header->size < sizeof(*header) + sizeof(time))
			break;
		memcpy(&pid, data + (tail + sizeof(*header)) % size, sizeof(pid));
		memcpy(&time, data + (tail + header->size - sizeof(time)) % size, sizeof(time));
		if (header->type == PERF_RECORD_MMAP2 || header->type == PERF_RECORD_MMAP)
			visit(context, (pid_t)pid, time);
		else if (header->type == PERF_RECORD_LOST)
			visit(context, 0, 0);
		tail += header->size;
	}
	__atomic_store_n(&ring->control->data_tail, head, __ATOMIC_RELEASE);
}

void mappings_read(struct mappings *mappings, mapping_fn visit, void *context)
{
	for (size_t i = 0; i < mappings->cpu_count; i++)
		if (mappings->cpus[i].descriptor >= 0)
			ring_read(mappings, &mappings->cpus[i], visit, context);
}

/* ---- CPUs ---- */

#define FROM_THE_KERNEL 1 /* the multicast group of its own messages */

int cpu_events_open(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = FROM_THE_KERNEL };
	int descriptor = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT),
	    error = 0;

	if (descriptor < 0)
		return -errno;
	if (bind(descriptor, (struct sockaddr *)&address, sizeof(address))) {
		error = -errno;
		close(descriptor);
	}
	return error ?: descriptor;
}

void cpu_events_read(int descriptor, cpu_online_fn visit, void *context)
{
	char text[4096];
	struct sockaddr_nl from = {};
	socklen_t size = sizeof(from);
	ssize_t length;
	int cpu, end;

	while ((length = recvfrom(descriptor, text, sizeof(text) - 1, 0, (struct sockaddr *)&from, &size)) > 0) {
		text[length] = '\0';
		end = 0;
		if (!from.nl_pid && sscanf(text, "online@/devices/system/cpu/cpu%d%n", &cpu, &end) == 1 && !text[end] &&
		    cpu >= 0)
			visit(context, cpu);
		size = sizeof(from);
	}
}
