/* SPDX-License-Identifier: BSD-2-Clause */
/* Accelerators of this machine, as the kernel has them. Nothing is opened. */
#ifndef XPUTRACE_DEVICE_H
#define XPUTRACE_DEVICE_H

#include <stddef.h>

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

#ifdef __cplusplus
}
#endif
#endif
