/* SPDX-License-Identifier: BSD-2-Clause */
/* Accelerators of this machine, as the kernel has them. Nothing is opened. */
#ifndef XPUTRACE_DEVICE_H
#define XPUTRACE_DEVICE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <xputrace/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Strings are valid during the visit. */
struct xpt_device_info {
	size_t size;	     /* sizeof(struct xpt_device_info) of the library */
	int index;	     /* the gpu_index of counters.h: from 0, in the order of the addresses */
	const char *address; /* "0000:03:00.0" on PCI; else what its bus calls it: "fdab0000.npu" */
	const char *driver;  /* "i915"; "" when none is bound */
	const char *node;    /* "/dev/dri/renderD128", "/dev/accel/accel0", "/dev/nvidia0" */
	const char *title;   /* vendor and device numbers: "8086:56a0"; "" when unknown */
};

/*
 * Visits every device that has a DRM render node, an accel node or one of NVIDIA's driver, each once. A non-zero return of visit ends the walk and
 * is returned. 0 also when there is none; -ENOMEM.
 */
XPT_API int xpt_device_list(int (*visit)(void *context, const struct xpt_device_info *device), void *context);

/*
 * What processes use of devices, by the accounts that drivers keep: DRM's fdinfo of each client, which needs root for other users'
 * processes, and NVIDIA's management library.
 */
struct xpt_device_usage;

struct xpt_device_use {
	size_t size;	    /* sizeof(struct xpt_device_use) of the library */
	int index;	    /* of the device, as in xpt_device_info */
	pid_t pid;	    /* of a client in several processes the lowest */
	const char *source; /* "fdinfo", "nvml"; static */
	int has_time;	    /* the driver reports it */
	/*
	 * ns that the busiest engine worked for the process since the read before; of a client that was there at the first read, since that.
	 * Of nvml: its share of the streaming multiprocessors' time, sampled by the driver, times the time since the read before.
	 */
	uint64_t device_time;
	int has_memory;
	uint64_t memory; /* bytes: the device's own, or where a client reports none of that, all it has */
};

/* The caller's; used by one thread at a time. -ENODEV: no device whose driver keeps accounts; -ENOMEM. */
XPT_API int xpt_device_usage_create(struct xpt_device_usage **usage);
/*
 * Reads all, and visits each device's processes, each pair once. A non-zero return of visit ends the walk and is returned. -ENOMEM, -EIO. What
 * a client used between the last read and its end is in no read.
 */
XPT_API int xpt_device_usage_read(struct xpt_device_usage *usage,
				  int (*visit)(void *context, const struct xpt_device_use *use), void *context);
XPT_API void xpt_device_usage_destroy(struct xpt_device_usage *usage); /* may be NULL */

#ifdef __cplusplus
}
#endif
#endif
