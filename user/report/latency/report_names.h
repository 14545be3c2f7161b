/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of the files that reports are written to. */
#ifndef XPT_REPORT_LATENCY_REPORT_NAMES_H
#define XPT_REPORT_LATENCY_REPORT_NAMES_H

#include <linux/types.h>

/* "latency.csv" and 7: "latency-000007.csv". The caller frees; NULL: no memory. */
char *report_name_numbered(const char *path, __u64 number);
/* "latency.csv" and 7: "latency.csv.7". The caller frees; NULL: no memory. */
char *report_name_rotated(const char *path, __u64 number);
/*
 * Makes room for a new path: path becomes path.1, path.1 becomes path.2, and so on up to the first number that is free.
 * No file is overwritten. 0 or -errno: then path is where it was; some others may have moved on, and the next call
 * continues with them.
 */
int report_names_shift(const char *path);

#endif
