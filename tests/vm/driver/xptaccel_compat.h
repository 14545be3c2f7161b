/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What differs between kernels from 6.1 on, behind one name each. Kbuild looks into the kernel's own headers and
 * defines HAVE_*: versions do not tell, since stable kernels take over changes of these interfaces.
 */
#ifndef XPTACCEL_COMPAT_H
#define XPTACCEL_COMPAT_H

#include <linux/hrtimer.h>
#include <drm/gpu_scheduler.h>

static inline int compat_sched_init(struct drm_gpu_scheduler *scheduler, const struct drm_sched_backend_ops *ops,
				    u32 slots, long timeout, const char *name, struct device *device)
{
#if defined(HAVE_SCHED_INIT_ARGS)
	struct drm_sched_init_args arguments = {
		.ops = ops,
#ifdef HAVE_SCHED_NUM_RQS
		.num_rqs = DRM_SCHED_PRIORITY_COUNT,
#endif
		.credit_limit = slots,
		.timeout = timeout,
		.name = name,
		.dev = device,
	};

	return drm_sched_init(scheduler, &arguments);
#elif defined(HAVE_SCHED_CREDITS)
	return drm_sched_init(scheduler, ops, NULL, DRM_SCHED_PRIORITY_COUNT, slots, 0, timeout, NULL, NULL, name,
			      device);
#else
	return drm_sched_init(scheduler, ops, slots, 0, timeout, NULL, NULL, name, device);
#endif
}

static inline int compat_sched_job_init(struct drm_sched_job *job, struct drm_sched_entity *entity, void *owner,
					u64 client)
{
#if defined(HAVE_SCHED_CLIENT)
	return drm_sched_job_init(job, entity, 1, owner, client);
#elif defined(HAVE_SCHED_CREDITS)
	return drm_sched_job_init(job, entity, 1, owner);
#else
	return drm_sched_job_init(job, entity, owner);
#endif
}

static inline void compat_sched_start(struct drm_gpu_scheduler *scheduler)
{
#if defined(HAVE_SCHED_START_ERRNO)
	drm_sched_start(scheduler, 0);
#elif defined(HAVE_SCHED_START_FULL)
	drm_sched_start(scheduler, true);
#else
	drm_sched_start(scheduler);
#endif
}

#ifdef HAVE_SCHED_STAT_RESET
#define COMPAT_SCHED_RESET DRM_GPU_SCHED_STAT_RESET
#else
#define COMPAT_SCHED_RESET DRM_GPU_SCHED_STAT_NOMINAL
#endif

static inline void compat_hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *))
{
#ifdef HAVE_HRTIMER_SETUP
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
	timer->function = function;
#endif
}

#endif
