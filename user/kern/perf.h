/* SPDX-License-Identifier: BSD-2-Clause */
/* Perf events: opening one, and the kernel's reports of mapped files. */
#ifndef XPT_KERN_PERF_H
#define XPT_KERN_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/core/log.h"

struct perf_event_attr;

/*
 * cpu -1: any; leader: of the group, -1: none. The soft limit of descriptors, which is low by tradition, is raised when it is
 * reached. A descriptor, or -errno.
 */
int perf_open(const struct perf_event_attr *attributes, pid_t pid, int cpu, int leader);

/*
 * The kernel's own reports of files being mapped executable (perf MMAP2 records): how libraries that a running process
 * opens later are noticed, without a probe anywhere.
 */
struct mappings;

/* Reports for all processes; the visitor chooses. -EACCES and the like. */
int mappings_open(const struct log *log, struct mappings **result);
void mappings_close(struct mappings *mappings);
/* Readable when there is something to read. */
int mappings_descriptor(const struct mappings *mappings);
/* tgid mapped a file executable at the time, in ns of CLOCK_MONOTONIC. time 0: reports were lost, scan every process again. */
typedef void (*mapping_fn)(void *context, pid_t tgid, unsigned long long time);
void mappings_read(struct mappings *mappings, mapping_fn visit, void *context);
/* The CPU has come online. What was mapped there meanwhile is not known: the caller scans every process again. 0 or -errno: none are read there. */
int mappings_renew(struct mappings *mappings, int cpu);

/*
 * CPUs that come online, as the kernel announces them: the perf events of a CPU end when it goes, and do not come back with it.
 * A descriptor that is readable then, which the caller closes, or -errno.
 */
int cpu_events_open(void);
typedef void (*cpu_online_fn)(void *context, int cpu);
void cpu_events_read(int descriptor, cpu_online_fn visit, void *context);

#endif
