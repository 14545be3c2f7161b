/* SPDX-License-Identifier: BSD-2-Clause */
/* Several traces of the same time in one, by their clocks. Needs no root and no target. */
#ifndef XPUTRACE_MERGE_H
#define XPUTRACE_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include <xputrace/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xpt_merge_input {
	const char *path; /* regular file: an object with "traceEvents", or a bare array of events; or a Perfetto trace */
	int has_offset;	  /* offset is to be used, whatever the file says about its clock */
	/* ns, to be added to its times: what the common axis shows where the file says 0. Of a Perfetto trace to its time on the wall. */
	int64_t offset;
};

struct xpt_merge_options {
	size_t size; /* sizeof(struct xpt_merge_options) */
	const struct xpt_merge_input *inputs;
	size_t input_count;
	size_t input_size;  /* sizeof(struct xpt_merge_input); 0: as in the first version (error.h) */
	const char *output; /* trace to write, of the kind of the inputs; "-": standard output */
	xpt_log_fn log;	    /* gets, at XPT_LOG_INFO, by which clock each input was placed and how exactly */
	void *log_context;
	enum xpt_log_level log_level;
};

/*
 * The common axis is CLOCK_MONOTONIC where an input has it: traces of xputrace, and others that say
 * "clock-domain":"LINUX_CLOCK_MONOTONIC" in their metadata. Those with "baseTimeNanoseconds" are by the clock on the
 * wall, and a trace of xputrace relates the two. Profiles of ONNX Runtime have no clock: their model_run events are
 * matched with the calls of Run in traces of xputrace of the same process.
 *
 * What a process or thread is called is taken from traces of xputrace first, then in the order of the inputs.
 * When the first input is a Perfetto trace, all have to be: at most 255, of any number of hosts. Each host is a machine of the merged
 * trace; traces of one boot are of one. Times are those on the wall.
 *
 * user/report/SCHEMA.md describes the result. The output appears when it is whole, in place of what has its name.
 *
 * 0; -EBADMSG: an input is no such trace, or malformed; -EINVAL: its clock is unknown, or wrong options; -E2BIG: of a
 * newer library (error.h); errors of open(), read() and write() otherwise. Details come through log.
 */
XPT_API int xpt_merge_traces(const struct xpt_merge_options *options);

#ifdef __cplusplus
}
#endif
#endif
