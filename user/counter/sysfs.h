/* SPDX-License-Identifier: BSD-2-Clause */
/* Small files of sysfs, a value each, and lists of CPUs. */
#ifndef XPT_COUNTER_SYSFS_H
#define XPT_COUNTER_SYSFS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#define SYSFS_FILE_MAX 4096 /* bytes: what the kernel writes at most, with the 0 byte */

/*
 * Reads the file at the formatted path into text (SYSFS_FILE_MAX bytes), without white space at the end. The length, or
 * -ENOENT and the like; -EFBIG when there is more.
 */
int sysfs_read(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A decimal number that is all of the file. 0, as above, or -EINVAL: it is none. */
int sysfs_read_number(__u64 *number, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- lists of CPUs ---- */

/* As the kernel writes them: "0-3,8". */

#define CPUS_MAX 8192 /* numbers of CPUs are below it */

struct cpus {
	int *items; /* rising, each once */
	size_t count;
};

/* -EINVAL: that is no such list; -ENOMEM. An empty text is an empty list. */
int cpus_parse(const char *text, struct cpus *cpus);
/* Those that are online. -EIO. */
int cpus_online(const char *sysfs, struct cpus *cpus);
int cpus_copy(const struct cpus *from, struct cpus *to);
bool cpus_have(const struct cpus *cpus, int cpu);
void cpus_free(struct cpus *cpus);

#endif
