/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counter sessions: what devices and the kernel count, by name and read together. After the device profiling sessions of
 * ROCm's rocprofiler (create, start, poll, stop, destroy), on Linux perf events and on what drivers report where they have no
 * PMU.
 *
 * Names are those of perf:
 *	i915/rcs0-busy/			an event of a PMU, as sysfs lists it
 *	xe/engine-active-ticks,gt=1/	the same with terms of the PMU's format
 *	power/event=0x05/		terms alone; config=, config1=, config2=, config3= are always there
 *	gpu_scheduler:drm_sched_job_run	a tracepoint: how often it was met
 *	page-faults, cycles		software and hardware events of the kernel
 *	nvml/energy/, fdinfo/engine-render/	what is no PMU's, see xpt_counters_list()
 *	busy, energy			an alias: what each device's own counters report of it, with one meaning for all
 *
 * Aliases. Of several devices, the sum, or the highest; a device that does not report it is left out.
 *	busy		% of the time since the poll before, or since the start, in which the device executed something; of
 *			several engines or devices the busiest one. Where the driver itself reports a share (amdgpu, NVIDIA),
 *			that, of a time of its own: a level then
 *	jobs		jobs handed to the device since the start; sum
 *	energy		J since the start; sum
 *	frequency	MHz, mean or level, of the device's main clock; highest
 *	memory_used	bytes; sum
 *	memory_busy	% of a time that the driver chooses in which memory was read or written; highest
 * xpt_counters_info() has the counters that it is made of as source. They count what everybody does.
 *
 * Where a PMU has several instances (i915_0000_03_00.0, uncore_imc_0), their common name means all of them together.
 */
#ifndef XPUTRACE_COUNTERS_H
#define XPUTRACE_COUNTERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <xputrace/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xpt_counters;

#define XPT_COUNTERS_ALL (-1) /* of CPUs: where the PMU counts, or all; of devices: all */

struct xpt_counters_options {
	size_t size;		  /* sizeof(struct xpt_counters_options) */
	const char *const *names; /* copied, as all here is */
	size_t name_count;
	int cpu_index;	/* only on this CPU, or XPT_COUNTERS_ALL */
	int gpu_index;	/* only of this device (xpt_device_list()), or XPT_COUNTERS_ALL; CPU events are of no device */
	pid_t pid;	/* only what this process and the threads and children that it will start do; 0: everybody */
	int until_exec; /* pid: its counters begin when it executes another program, not at the start */
	int devices_count_all; /* pid: what cannot be separated by process counts all processes; 0: it is refused */
	int continues;	       /* start after stop goes on counting; 0: it counts from 0 */
	int no_multiplex; /* fail where not all fit into the hardware at once; else each counts a part of the time */
	xpt_log_fn log;
	void *log_context;
	enum xpt_log_level log_level;
	const char *tracefs; /* of tracepoints: its root folder; NULL: as in xpt_session_options */
};

enum xpt_counter_kind {
	XPT_COUNTER_SUM = 0,   /* what was counted since the start, while the session ran */
	XPT_COUNTER_MEAN = 1,  /* mean over the time since the poll before, or since the start */
	XPT_COUNTER_LEVEL = 2, /* what it is now, whether the session runs or not */
};

/* Strings are the session's. */
struct xpt_counter_info {
	size_t size;		 /* sizeof(struct xpt_counter_info) of the library */
	const char *name;	 /* as it was asked for */
	const char *unit;	 /* of the value: "J", "ns", "MHz"; "" a plain number */
	const char *description; /* "" none */
	const char *source; /* where it is counted: a PMU, tracepoint, software, ...; of an alias its counters' names */
	enum xpt_counter_kind kind;
	double scale; /* unit for each raw count */
};

#define XPT_COUNTER_SCALED (1u << 0) /* it did not count all the time: value is what it would have been, raw is not */
#define XPT_COUNTER_GONE \
	(1u << 1) /* the device or its driver has gone, or all its CPUs: the value is the last one that was read */
#define XPT_COUNTER_NEVER (1u << 2) /* it has not counted at all yet: there was no room in the hardware; value is 0 */
/*
 * A CPU that it counts on was offline at some time since the poll before: what others count is in the value. With XPT_COUNTER_GONE: all
 * are, and it counts on when one of them is back. Devices are counted on another CPU as soon as their driver allows it.
 */
#define XPT_COUNTER_OFFLINE (1u << 3)

struct xpt_counter_value {
	double value; /* in the unit */
	uint64_t raw; /* as it was counted: not scaled, in counts; 0 where an alias's value is not the sum of several */
	uint64_t enabled; /* ns that the session ran, of all CPUs together; 0 for what is no perf event */
	uint64_t running; /* ns of them that it was counted */
	uint64_t time;	  /* CLOCK_MONOTONIC in ns, between the first and the last reading that it is made of */
	unsigned int flags;
};

/*
 * Opens counters, which do not count yet. The session is the caller's, and used by one thread at a time. -EINVAL: a name is
 * wrong, or the options; -ENOENT: there is no such counter here (the log offers the nearest ones); -ENODEV: no such device
 * or CPU; -EACCES: requires root or CAP_PERFMON; -EBUSY: somebody else has the hardware; -ENOSPC: they do not fit at once
 * (no_multiplex); -EOPNOTSUPP: the PMU counts no single process, or an alias no single device; -ESRCH; -EMFILE; -ENOMEM.
 */
XPT_API int xpt_counters_open(const struct xpt_counters_options *options, struct xpt_counters **session);
/* The same with the defaults of everything else. */
XPT_API int xpt_counters_create(const char *const *names, size_t count, int cpu_index, int gpu_index,
				struct xpt_counters **session);
/* Counting begins, of all within some microseconds. -EALREADY. */
XPT_API int xpt_counters_start(struct xpt_counters *session);
/*
 * Reads all counters, at once where one read of a PMU allows it. values: as many as names, in their order; value_size: sizeof(struct
 * xpt_counter_value), 0: as in the first version. Fields that the library does not know become zero. Always 0: a counter that has gone
 * is marked and keeps its last value.
 */
XPT_API int xpt_counters_poll(struct xpt_counters *session, struct xpt_counter_value *values, size_t value_size);
/*
 * Counts again on CPUs that have been offline and are back, as each poll does. To be called every now and then where polls are rare: what
 * happens there before is not counted.
 */
XPT_API void xpt_counters_renew(struct xpt_counters *session);
/* ns between the first and the last read of the latest poll; 0 when all came of one. */
XPT_API uint64_t xpt_counters_spread(const struct xpt_counters *session);
/* Counting ends; values can be polled afterwards. -EALREADY: it does not run. */
XPT_API int xpt_counters_stop(struct xpt_counters *session);
XPT_API void xpt_counters_destroy(struct xpt_counters *session); /* may be NULL */

/* Number of counters of the session, each with an index from 0. */
XPT_API size_t xpt_counters_count(const struct xpt_counters *session);
/* NULL: there is no such index. */
XPT_API const struct xpt_counter_info *xpt_counters_info(const struct xpt_counters *session, size_t index);

/*
 * Visits every counter that can be opened here: name, unit, description, source, kind and scale. Aliases come first, those
 * that a device here reports. Of tracepoints there are thousands (perf list): only those of the devices' jobs are visited. A value that the caller has to give stands as "?". A non-zero return of visit ends
 * the walk and is returned. -ENODEV: no such device; -ENOMEM.
 */
XPT_API int xpt_counters_list(int gpu_index, int (*visit)(void *context, const struct xpt_counter_info *counter),
			      void *context);

#ifdef __cplusplus
}
#endif
#endif
