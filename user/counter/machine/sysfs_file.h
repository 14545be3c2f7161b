/* SPDX-License-Identifier: BSD-2-Clause */
/* Small files of sysfs, a value each. */
#ifndef XPT_COUNTER_MACHINE_SYSFS_FILE_H
#define XPT_COUNTER_MACHINE_SYSFS_FILE_H

#define SYSFS_FILE_MAX 4096 /* bytes: what the kernel writes at most, with the 0 byte */

/*
 * Reads the file at the formatted path into text (SYSFS_FILE_MAX bytes), without white space at the end. The length, or
 * -ENOENT and the like; -EFBIG when there is more.
 */
int sysfs_read(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
