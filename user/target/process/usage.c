/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/process/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/clock.h"

#define STATUS_MAX 16384 /* bytes: 1.5 KiB as a rule; what is wanted follows the list of groups, up to 11 bytes each */
#define SECOND 1000000000ull

/* From the beginning of an open file of /proc, terminated: its length, or -ESRCH when the process has ended. */
static ssize_t read_again(int file, char *text, size_t size)
{
	ssize_t length;

	do {
		length = pread(file, text, size - 1, 0);
	} while (length < 0 && errno == EINTR);
	if (length < 0)
		return errno == ESRCH ? -ESRCH : -EIO;
	text[length] = '\0';
	return length;
}

/* The process as it is now; it has not ended while threads of it run, even if the first one has. */
static int read_stat(const struct usage_source *source, struct process_stat *stat)
{
	char text[PROCESS_STAT_MAX];
	ssize_t length = read_again(source->stat, text, sizeof(text));
	int error = length < 0 ? (int)length : process_stat_parse(text, stat);

	if (error)
		return error;
	return (stat->state == 'Z' || stat->state == 'X') && stat->threads <= 1 ? -ESRCH : 0;
}

static int open_file(int folder, const char *name)
{
	int file = openat(folder, name, O_RDONLY | O_CLOEXEC);

	return file >= 0 ? file : errno == ENOENT ? -ESRCH : -errno;
}

/* Both files of the process of the folder, even if its PID has been reused. */
static int open_files(struct usage_source *source, int folder)
{
	source->stat = open_file(folder, "stat");
	source->status = open_file(folder, "status");
	return source->stat < 0 ? source->stat : source->status < 0 ? source->status : 0;
}

int usage_open(struct usage_source *source, pid_t pid, __u64 start_time)
{
	struct process_stat stat;
	char path[32];
	int folder, error;

	*source = (struct usage_source){ .stat = -1, .status = -1 };
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	error = open_files(source, folder);
	close(folder);
	if (!error && clock_getcpuclockid(pid, &source->clock))
		error = -ESRCH;
	if (!error)
		error = read_stat(source, &stat);
	if (!error && start_time && stat.start_time != start_time)
		error = -ESRCH;
	if (error)
		usage_close(source);
	else
		source->start_time = stat.start_time;
	return error;
}

void usage_close(struct usage_source *source)
{
	if (source->stat >= 0)
		close(source->stat);
	if (source->status >= 0)
		close(source->status);
	source->stat = source->status = -1;
}

/* Bytes of a line such as "VmRSS:	    1234 kB". Names of processes cannot hold a line's end there. */
static bool read_bytes(const char *status, const char *name, __u64 *bytes)
{
	const char *line = strstr(status, name);
	unsigned long long kilobytes;

	if (!line || sscanf(line + strlen(name), "%llu kB", &kilobytes) != 1)
		return false;
	*bytes = kilobytes * 1024;
	return true;
}

static bool read_memory(const struct usage_source *source, struct process_usage *result)
{
	char text[STATUS_MAX];
	ssize_t length = read_again(source->status, text, sizeof(text));

	/* A number at the end of a full buffer may have been cut. */
	return length > 0 && length < STATUS_MAX - 1 && read_bytes(text, "\nVmHWM:", &result->peak) &&
	       read_bytes(text, "\nVmRSS:", &result->resident) && read_bytes(text, "\nRssAnon:", &result->anonymous) &&
	       read_bytes(text, "\nVmSwap:", &result->swap);
}

int usage_read(const struct usage_source *source, unsigned int wanted, struct process_usage *result)
{
	__u64 tick = SECOND / (__u64)sysconf(_SC_CLK_TCK);
	struct process_stat stat;
	struct timespec cpu;
	int error;

	*result = (struct process_usage){ .time = clock_monotonic() };
	/* By PID; that the process still exists afterwards proves that it was this one. */
	if (wanted & USAGE_CPU && !clock_gettime(source->clock, &cpu)) {
		result->cpu = (__u64)cpu.tv_sec * SECOND + (__u64)cpu.tv_nsec;
		result->have |= USAGE_CPU;
	}
	error = read_stat(source, &stat);
	if (error)
		return error;
	result->threads = stat.threads;
	if (result->have & USAGE_CPU) {
		result->user = stat.user_ticks * tick;
		result->system = stat.system_ticks * tick;
	}
	if (wanted & USAGE_MEMORY && read_memory(source, result))
		result->have |= USAGE_MEMORY;
	return 0;
}
