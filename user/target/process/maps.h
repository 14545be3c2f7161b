/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines of /proc/PID/maps. */
#ifndef XPT_TARGET_PROCESS_MAPS_H
#define XPT_TARGET_PROCESS_MAPS_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

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

#endif
