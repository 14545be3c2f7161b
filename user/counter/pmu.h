/* SPDX-License-Identifier: BSD-2-Clause */
/* Performance monitoring units as sysfs describes them (sysfs-bus-event_source-devices in the kernel's ABI documents). */
#ifndef XPT_COUNTER_PMU_H
#define XPT_COUNTER_PMU_H

#include <linux/types.h>
#include <stdbool.h>

#include "counter/sysfs.h"

#define PMU_CONFIGS 4 /* config, config1, config2, config3 of perf_event_attr */

struct pmu_format {
	char *name;
	unsigned int config; /* which of them it is in */
	__u64 bits;	     /* the value's bits lie here, the lowest in the lowest */
};

struct pmu_event {
	char *name;
	char *terms;   /* "event=0x12,umask=?" */
	char *unit;    /* "" none */
	double scale;  /* unit for each raw count */
	bool snapshot; /* the raw count is what it is now */
};

struct pmu {
	char *name;
	__u32 type;
	struct pmu_format *formats; /* by name */
	size_t format_count;
	struct pmu_event *events; /* by name */
	size_t event_count;
	bool has_mask;
	struct cpus mask; /* a session opens on these; where has_mask is set */
};

struct pmus {
	struct pmu *items; /* by name */
	size_t count;
};

/*
 * sysfs: where it is mounted, "/sys". What cannot be understood of a PMU is left out: formats, events, its mask. -ENOENT,
 * -EACCES: there are no event sources in it; -ENOMEM.
 */
int pmus_read(const char *sysfs, struct pmus *pmus);
void pmus_free(struct pmus *pmus);

/* NULL: there is none. */
const struct pmu_format *pmu_format(const struct pmu *pmu, const char *name, size_t length);
const struct pmu_event *pmu_event(const struct pmu *pmu, const char *name, size_t length);

/* ---- what is special about the events of known PMUs, beyond what sysfs has of them ---- */

/* What the raw count of an event is. */
enum counting {
	COUNTING_SUM = 0,	 /* it grows with what is counted */
	COUNTING_LEVEL = 1,	 /* it is what there is now */
	COUNTING_PER_SECOND = 2, /* it grows by the value in each second: the mean is its growth over the time */
	COUNTING_BY_READ = 3,	 /* each read adds the present value: that is its growth since the read before */
};

struct pmu_catalogue_entry {
	const char *pmu;   /* pattern of its name */
	const char *event; /* pattern */
	enum counting counting;
	const char *unit; /* of the raw count; NULL: as sysfs has it */
	const char *description;
};

/* NULL: nothing is known. */
const struct pmu_catalogue_entry *pmu_catalogue_find(const char *pmu, const char *event);

/*
 * Whether each CPU has the PMU's counters for itself. Others without a mask of CPUs in sysfs count a device, on whatever CPU
 * they are opened.
 */
bool pmu_of_each_cpu(const char *pmu);

#endif
