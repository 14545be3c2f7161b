/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports from a recording file: needs no root, no target, no particular kernel. */
#ifndef XPUTRACE_REPORT_H
#define XPUTRACE_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include <xputrace/error.h>
#include <xputrace/recording.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xpt_report_options {
	size_t size;		/* sizeof(struct xpt_report_options) */
	const char *input;	/* recording; "-": standard input */
	const char *output;	/* trace to write; "-": standard output; NULL: none */
	enum xpt_output format; /* of it: XPT_OUTPUT_CHROME (also 0), XPT_OUTPUT_ORT or XPT_OUTPUT_QNN_CSV */
	enum xpt_level level;	/* of XPT_OUTPUT_QNN_CSV: XPT_LEVEL_BASIC, or all that was recorded */
	int summary_descriptor; /* where the summary table goes; -1: nowhere */
	unsigned int columns;	/* width of the terminal, 0: nothing is cut */
	xpt_log_fn log;
	void *log_context;
	enum xpt_log_level log_level;
	void (*progress)(void *context, uint64_t done, uint64_t total); /* bytes; total 0: unknown; NULL: none */
	void *progress_context;
};

/*
 * Reads the recording and writes the reports. -EBADMSG not a recording, -EPROTO of an unknown version, -ENODATA cut short
 * or damaged at the end: everything before that has been reported; errors of open() and write() otherwise.
 */
XPT_API int xpt_report_create(const struct xpt_report_options *options);

#ifdef __cplusplus
}
#endif
#endif
