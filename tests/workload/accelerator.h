/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Executions of a stand-in runtime as jobs of the tests' accelerator (tests/vm/driver), whose driver is a real one: each
 * execution is one submission of one or more jobs, made by the thread that calls the runtime. Part of every stand-in
 * library; the program asks through the two exported functions what was done.
 *
 * Environment, read at the first use: STANDIN_DEVICE, its device node (default: none, nothing is submitted), or the
 * name of one that exists in its events only (emulated.h);
 * STANDIN_JOBS, jobs of one execution (1); STANDIN_ENGINES, over how many engines they go round (1);
 * STANDIN_FAIL_JOBS and STANDIN_HANG_JOBS, every so many jobs fails or hangs (0: none).
 */
#ifndef ACCELERATOR_H
#define ACCELERATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One job. Times are ns of CLOCK_MONOTONIC; those of the device are 0 until it was waited for. */
struct accelerator_job {
	uint64_t submission; /* all jobs of an execution have the same */
	uint64_t number;     /* the device's for it */
	uint64_t cookie;
	uint64_t fence_context, fence_seqno; /* of its finished fence */
	uint64_t asked_ns;		     /* how long it was to run */
	uint64_t submit_ns, submitted_ns;    /* around the ioctl, by the program */
	uint64_t queued_ns, started_ns, finished_ns;
	uint32_t engine;
	uint32_t flags; /* XPTACCEL_* */
	int32_t error;	/* what it ended with */
	int tid;	/* of the thread that submitted it */
	int device;	/* that thread's descriptor */
	bool waited;
};

/* For the stand-ins. What cannot be done ends the program, after saying why. */
bool accelerator_given(void);
/* Submits the jobs of one execution; its number. Even ones take duration_ns, odd ones a quarter of it. */
uint64_t accelerator_submit(uint64_t duration_ns);
/* Whether a number is one of these. */
bool accelerator_owns(uint64_t submission);
bool accelerator_done(uint64_t submission);
/* Waits for all jobs of a submission. 0, or the error of the first that failed. */
int accelerator_wait(uint64_t submission);

/* For the program: the last submission of the calling thread, 0: none; all jobs of the process, once no thread runs. */
__attribute__((visibility("default"))) uint64_t accelerator_last(void);
__attribute__((visibility("default"))) size_t accelerator_jobs(const struct accelerator_job **jobs);

#endif
