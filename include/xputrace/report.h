/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports from a recording file: needs no root, no target, no particular kernel. */
#ifndef XPUTRACE_REPORT_H
#define XPUTRACE_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include <xputrace/error.h>
#include <xputrace/recording.h>
#include <xputrace/target.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xpt_report_options {
	size_t size;	    /* sizeof(struct xpt_report_options) */
	const char *input;  /* recording; "-": standard input */
	const char *output; /* trace to write; "-": standard output; NULL: none */
	/*
	 * Of it: XPT_OUTPUT_CHROME (also 0), XPT_OUTPUT_PERFETTO, XPT_OUTPUT_ORT, XPT_OUTPUT_QNN_CSV, XPT_OUTPUT_CSV, XPT_OUTPUT_HTML, XPT_OUTPUT_SQLITE
	 * or that of a flame graph.
	 */
	enum xpt_output format;
	enum xpt_level level;	/* of XPT_OUTPUT_QNN_CSV: XPT_LEVEL_BASIC, or all that was recorded */
	int summary_descriptor; /* where the summary table goes; -1: nowhere */
	unsigned int columns;	/* width of the terminal, 0: nothing is cut */
	xpt_log_fn log;
	void *log_context;
	enum xpt_log_level log_level;
	void (*progress)(void *context, uint64_t done, uint64_t total); /* bytes; total 0: unknown; NULL: none */
	void *progress_context;

	/*
	 * Which inferences the outputs and the summary are about, with what lies in them on their thread; all that is set has to be
	 * true of one. Counts are then of what was recorded, and operators on other threads than their inference's are left out.
	 */
	const struct xpt_program_choice *programs; /* one of these programs, or one that match finds */
	size_t program_count;
	size_t program_size; /* sizeof(struct xpt_program_choice); 0: as in the first version (error.h) */
	const char *match;   /* programs with a name in which this ECMAScript expression is found; NULL: none */
	const pid_t *pids;   /* one of these processes; what others have done is left out altogether */
	size_t pid_count;
	uint64_t from, to; /* began from from on and before to: ns since the recording began; to 0: its end */
	uint64_t slowest;  /* of those, the number that took longest; 0: all */

	uint64_t warn_bytes; /* a larger Chrome trace is warned of before it is written, as far as its size can be estimated; 0: 1 GB */
	char **summary_json; /* gets the summary as xpt_recording_summary_json() makes it, where there is one; NULL: none */

	/*
	 * Instead of programs, match, slowest and slowest_percent: the regions of this request (xpt_region_start_request()), with what lies in them
	 * on their thread. -ENOENT: there are none. NULL: not that.
	 */
	const char *request;
	double slowest_percent; /* instead of slowest: this percentage of the inferences, at least one; 0: all */
	enum xpt_flame flame;	/* makes output a flame graph of these stacks; format 0: XPT_OUTPUT_FOLDED */
	const char *
		flame_operator; /* of XPT_FLAME_OFF_CPU and _CPU: only in operators with this label, name or type; NULL: all */
	/*
	 * Another recording (not standard input), whose graph this one's is compared with: as XPT_OUTPUT_FOLDED each line has both values,
	 * that of the other one first; XPT_OUTPUT_FLAME_SVG has colours by the difference of the shares. programs, match and flame_operator are for
	 * both, the rest of the choice is not. NULL: none.
	 */
	const char *flame_base;
};

/*
 * Reads the recording and writes the reports; with a choice, or as XPT_OUTPUT_CSV, twice. -ENOENT: a program that was chosen is not
 * in it; -ENOMSG: no stacks for a flame graph are; -E2BIG: more than 8388608 inferences are selected, or options of a newer library; -EINVAL: an option makes no sense. -EBADMSG
 * not a recording, -EPROTO of an unknown version, -ENODATA cut short or damaged at the end: everything before that has been reported;
 * errors of open() and write() otherwise.
 */
XPT_API int xpt_report_create(const struct xpt_report_options *options);

#ifdef __cplusplus
}
#endif
#endif
