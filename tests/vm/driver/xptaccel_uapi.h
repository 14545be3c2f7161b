/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the tests' accelerator and those that use it have between them: the ioctls of /dev/xptaccelN.
 *
 * Every open file has a context of its own on each engine. All times are nanoseconds of CLOCK_MONOTONIC, taken by the
 * device itself: they do not pass through anything that is under test.
 */
#ifndef XPTACCEL_UAPI_H
#define XPTACCEL_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define XPTACCEL_FAIL (1u << 0) /* the job ends after its time, with an error */
/*
 * It never ends by itself: after the device's timeout the engine is reset, which ends it with ETIME, and whatever else
 * the engine runs then with ECANCELED. So does a job that takes longer than the timeout.
 */
#define XPTACCEL_HANG (1u << 1)

#define XPTACCEL_EXECUTE_MAX_NS 10000000000ull

/*
 * Queues one job. EINVAL: no such engine, unknown flags, or a time of 0 or more than the limit; EBUSY: the file has
 * too many jobs that nobody has waited for.
 */
struct xptaccel_submit {
	__u32 engine;	     /* from 0 */
	__u32 flags;	     /* XPTACCEL_* */
	__u64 execute_ns;    /* how long it runs, once the engine has begun it */
	__u64 cookie;	     /* the caller's; comes back with the wait */
	__u64 job;	     /* out: its number, never given twice */
	__u64 fence_context; /* out: of the scheduler's finished fence, which is how new kernels' events name a job */
	__u64 fence_seqno;   /* out */
	__u64 bytes;	     /* how much it works on: counted when it ends, else of no effect */
};

/*
 * Waits for the end of a job that was submitted through the same file, and forgets it. ENOENT: no such job, or somebody
 * has waited for it already; ETIME: it has not ended in time, and can be waited for again.
 */
struct xptaccel_wait {
	__u64 job;
	__u64 timeout_ns;  /* 0: only look */
	__u64 cookie;	   /* out */
	__u64 queued_ns;   /* out: handed to the scheduler */
	__u64 started_ns;  /* out: the engine began it; 0: it never did */
	__u64 finished_ns; /* out: its fence was signalled; 0: it never began */
	__s32 error;	   /* out: 0, or a negative error number */
	__u32 reserved;
};

#define XPTACCEL_SUBMIT _IOWR(0xb9, 0x01, struct xptaccel_submit)
#define XPTACCEL_SUBMIT_UNSIZED _IOC(_IOC_READ | _IOC_WRITE, 0xb9, 0x01, 48) /* the same without bytes, which are 0 */
#define XPTACCEL_WAIT _IOWR(0xb9, 0x02, struct xptaccel_wait)

#endif
