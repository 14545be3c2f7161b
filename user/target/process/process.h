/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes through /proc: mappings, what they are, what they use. */
#ifndef XPT_TARGET_PROCESS_PROCESS_H
#define XPT_TARGET_PROCESS_PROCESS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "base/core/log.h"
#include "base/core/usage.h"

/* ---- the lines of /proc/PID/maps ---- */

struct maps_entry {
	__u64 start, end;
	__u64 offset;
	bool executable;
	__u64 device; /* as makedev() gives it */
	__u64 inode;
	const char *path; /* in the line; " (deleted)" cut off; "" for anonymous memory */
	bool deleted;
};

/* Parses the line in place: a newline at its end and " (deleted)" are cut off. -EINVAL: not a line of that file. */
int maps_entry_parse(char *line, struct maps_entry *entry);

/*
 * Calls visit for every mapping of the process, in the order of addresses; entry is valid during the call. A non-zero
 * return ends the walk and is returned. -ESRCH: no such process, -EACCES, or the error of reading.
 */
int maps_each(pid_t pid, int (*visit)(void *context, const struct maps_entry *entry), void *context);

/* Is it a mapping of a file, judging by the line? A device may be one. */
bool maps_entry_has_file(const struct maps_entry *entry);

#define MAP_FILE_PATH_MAX 64
/*
 * "/proc/PID/map_files/START-END" opens the very file that is mapped there, also when it was deleted or has another
 * name by now.
 */
void maps_entry_open_path(const struct maps_entry *entry, pid_t pid, char path[MAP_FILE_PATH_MAX]);

/* ---- processes, and the files they have mapped ---- */

/* One file that a process has mapped executable. Paths may be hostile: they are shown, never opened. */
struct mapped_file {
	__u64 device; /* as stat() gives it for the opened file: identity together with inode */
	__u64 inode;
	__u64 start; /* lowest executable mapping: address in the process */
	__u64 end;
	__u64 offset; /* file offset of start */
	char *path;   /* as in maps, for messages and reports; " (deleted)" cut off into deleted */
	bool deleted;
	/* Opens the very file that is mapped, whatever namespace it is in and even when it was deleted. */
	char open_path[MAP_FILE_PATH_MAX]; /* /proc/PID/map_files/START-END */
	int descriptor;			   /* it is open already; 0: it is not */
};

struct mapped_files {
	struct mapped_file *files;
	size_t count;
};

/* One entry a file (the first executable mapping of each device and inode). -ESRCH, -EACCES, -ENOMEM. */
int process_mapped_files(pid_t pid, struct mapped_files *result);
void mapped_files_free(struct mapped_files *files);

struct process_info {
	pid_t tgid; /* thread group: -p of a thread means its process */
	pid_t parent;
	__u64 start_time; /* clock ticks after boot: detects a reused PID */
	char name[16];
	char *command; /* arguments joined with spaces, control bytes kept as they are; at most 4096 bytes */
	bool is_32bit;
	bool is_kernel_thread;
	bool is_zombie;
};

/* -ESRCH no such process, -EACCES. */
int process_info_read(pid_t pid, struct process_info *result);
void process_info_free(struct process_info *info);

/* Contents of /proc/PID/stat. */
struct process_stat {
	char name[16];
	char state;
	pid_t parent;
	unsigned long flags;
	__u64 user_ticks, system_ticks; /* CPU time of all its threads, in clock ticks */
	unsigned int threads;
	__u64 start_time; /* as in process_info */
};

#define PROCESS_STAT_MAX 1024 /* bytes that are enough for the file */

/* From the file's text. -ESRCH: that is none. */
int process_stat_parse(const char *text, struct process_stat *result);

/* Whether a process gets on with its work. */
struct process_progress {
	bool runs; /* or could */
	__u64 sum; /* of its CPU time and the bytes it has read: more whenever it has got on */
};

/* -ESRCH: there is none (any more), -EACCES. */
int process_progress_read(pid_t pid, struct process_progress *result);

/* What a process has been given as its environment. Hostile: it can have written over it. */
struct process_environment {
	const char **variables; /* "NAME=value" as a rule; NULL behind the last one */
	size_t count;
	bool truncated; /* there is more than 1 MiB of it */
	char *text;	/* owned */
};

/* -ESRCH no such process, -EACCES, -ENOMEM. One that has ended has none. */
int process_environment_read(pid_t pid, struct process_environment *result);
void process_environment_free(struct process_environment *environment);

/* Thread name; "" when the thread has ended. */
void process_thread_name(pid_t tgid, pid_t tid, char name[16]);

/* Calls visit for every process that has user memory, except the caller; visit returns non-zero to end the walk. */
int process_each(int (*visit)(void *context, pid_t tgid), void *context);

/* Reads target memory. Returns bytes read (may be short), -ESRCH, -EFAULT, -EACCES. May hang with the server of its pages. */
ssize_t process_read_memory(pid_t pid, __u64 address, void *buffer, size_t length);

/*
 * CPU time and memory of a process, read again and again. From /proc/PID/stat and status, which are kept open, and the
 * process's CPU clock. A reading takes 15 us, of CPU time alone 5 us; of a process with 512 threads 24 and 14 us (Linux
 * 6.18, virtual machine). smaps_rollup is not read: it walks all page tables, 14 ms for 1 GiB, while the process cannot
 * map anything.
 */

struct usage_source {
	int stat,
		status; /* of this very process: when its number is used again, there is nothing to be read from them */
	clockid_t clock;
	__u64 start_time; /* clock ticks after boot */
};

/*
 * start_time: when the process began that is meant, as in process_info; 0: it does not matter. -ESRCH: there is
 * none, it has ended, or it is another one; -EACCES, -EMFILE. To be closed only when it was opened.
 */
int usage_open(struct usage_source *source, pid_t pid, __u64 start_time);
/*
 * Reads what is requested (USAGE_*); have is set to what there was of it: a process shows no memory when its first thread
 * has ended before the others, nor does one with thousands of groups. -ESRCH: it has ended; -EIO.
 */
int usage_read(const struct usage_source *source, unsigned int wanted, struct process_usage *result);
void usage_close(struct usage_source *source);

#endif
