/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes and the files they have mapped, through /proc. */
#ifndef XPT_TARGET_PROCESS_PROCESS_H
#define XPT_TARGET_PROCESS_PROCESS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/core/log.h"
#include "target/process/maps.h"

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

#endif
