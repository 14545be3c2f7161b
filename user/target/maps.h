/* SPDX-License-Identifier: BSD-2-Clause */
/* One line of /proc/PID/maps. */
#ifndef XPT_TARGET_MAPS_H
#define XPT_TARGET_MAPS_H

#include <linux/types.h>
#include <stdbool.h>

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

#endif
