/* SPDX-License-Identifier: BSD-2-Clause */
/* Performance monitoring units as sysfs describes them (sysfs-bus-event_source-devices in the kernel's ABI documents). */
#ifndef XPT_COUNTER_PMU_H
#define XPT_COUNTER_PMU_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* Small files of sysfs, a value each, and lists of CPUs. */

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
/* Those that may ever be. -EIO. */
int cpus_possible(const char *sysfs, struct cpus *cpus);
/* The PMU's mask as it is now: it changes when a CPU of it goes. -ENOENT: it has none; -EIO. */
int pmu_read_mask(const char *sysfs, const char *name, struct cpus *mask);
int cpus_copy(const struct cpus *from, struct cpus *to);
bool cpus_have(const struct cpus *cpus, int cpu);
void cpus_free(struct cpus *cpus);

/* ---- units ---- */

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

/* Terms of an event: "event=0x12,umask=3", and their encoding in perf_event_attr. */

#define EVENT_TERMS_REASON_MAX 256

struct event_encoding {
	__u64 config[PMU_CONFIGS];
	const struct pmu_event *event; /* the named one among the terms; NULL: none */
};

/*
 * Encodes what stands between the slashes of "pmu/TERMS/": at most one name of an event, terms of the PMU's format and
 * config, config1, config2, config3. A term without a value is 1; of two for the same bits the later one counts. Where
 * the named event leaves a value open (umask=?), it must be among the terms. 0; -ENOENT: there is no such event or
 * term; -EINVAL: anything else is wrong. reason (EVENT_TERMS_REASON_MAX bytes) then has what.
 */
int event_terms_encode(const struct pmu *pmu, const char *terms, size_t length, struct event_encoding *code,
		       char *reason);

#endif
