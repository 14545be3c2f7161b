/* SPDX-License-Identifier: BSD-2-Clause */
/* What is special about the events of known PMUs, beyond what sysfs has of them. */
#ifndef XPT_COUNTER_MACHINE_PMU_CATALOGUE_H
#define XPT_COUNTER_MACHINE_PMU_CATALOGUE_H

#include <stdbool.h>

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
