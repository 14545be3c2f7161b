/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of reports: at every multiple of the reporting rate on the clock, what the chosen programs did since the one
 * before. The handle of the Cloud AI 100 runtime's "duration based" profiling, for every runtime and from outside the
 * process.
 *
 * Functions may be called from any thread, and from callbacks, except where it says otherwise.
 */
#ifndef XPUTRACE_STREAM_H
#define XPUTRACE_STREAM_H

#include <xputrace/profile_report.h>
#include <xputrace/session.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xpt_stream;

/* Reporting rates, ns. Any from XPT_REPORT_EVERY_MIN to XPT_REPORT_EVERY_MAX is allowed. */
#define XPT_REPORT_EVERY_500MS 500000000ull
#define XPT_REPORT_EVERY_1000MS 1000000000ull
#define XPT_REPORT_EVERY_2000MS 2000000000ull
#define XPT_REPORT_EVERY_4000MS 4000000000ull
#define XPT_REPORT_EVERY_MIN 10000000ull
#define XPT_REPORT_EVERY_MAX 86400000000000ull

/* Sampling rates. Any from 1 to XPT_SAMPLE_EVERY_MAX is allowed. */
#define XPT_SAMPLE_FULL 1u
#define XPT_SAMPLE_HALF 2u
#define XPT_SAMPLE_FOURTH 4u
#define XPT_SAMPLE_EIGHTH 8u
#define XPT_SAMPLE_SIXTEENTH 16u
#define XPT_SAMPLE_EVERY_MAX 1000000u

/* Everything is copied. Zero means the default. */
struct xpt_stream_options {
	size_t size;		   /* sizeof(struct xpt_stream_options) */
	uint64_t report_every;	   /* ns; 0: XPT_REPORT_EVERY_500MS */
	unsigned int sample_every; /* record every Nth inference of each program; 0: all */
	enum xpt_profile_type type;
	int summary; /* non-zero: only what the samples add up to, no rows; LATENCY only */
	/*
	 * Programs with a name in which this expression is found are added as they are created and dropped when they are
	 * released. ECMAScript syntax. Regions are programs "region:NAME". "": all programs, but no regions. NULL: only those
	 * of xpt_stream_add().
	 */
	const char *match;
	const char *name; /* for the reports; NULL: none */
	xpt_profile_report_fn callback;
	void *context;
	/*
	 * Stacks in the reports: stacks of calls that begin an inference, the maximum a second, and samples, stacks of threads that run in a
	 * call, the rate on each CPU in Hz. 1 to 1000; 0: none. As in struct xpt_recording_options. With the session's `why`, stacks
	 * are also those of threads that do not run.
	 */
	unsigned int stacks, samples;
};

/*
 * -EINVAL: rate out of range, no callback, or an expression that does not compile (position and reason are said through
 * the session's log); -E2BIG; -ENOMEM; -ENODATA: stacks, where the session was started without a stream that has as many.
 */
XPT_API int xpt_stream_create(struct xpt_session *session, const struct xpt_stream_options *options,
			      struct xpt_stream **stream);

/*
 * Whether an expression can be used as match; needs no session and no privileges. -EINVAL: it cannot; *position, in
 * bytes, and reason, cut to size, say where and why. -ENOMEM.
 */
XPT_API int xpt_stream_check_match(const char *match, size_t *position, char *reason, size_t size);

/*
 * Adds programs, also while the stream runs: everything that fits the choice, now and later. -EEXIST: added before; -EINVAL: no size, or
 * neither name nor handle; -E2BIG; -ENOSPC: more than XPT_CHOICES_MAX.
 */
XPT_API int xpt_stream_add(struct xpt_stream *stream, const struct xpt_program_choice *choice);
/*
 * Removes programs. They are reported a last time with what they did until then; takes precedence over the expression. -ENOENT: removed
 * before; -EINVAL, -E2BIG, -ENOSPC as above.
 */
XPT_API int xpt_stream_remove(struct xpt_stream *stream, const struct xpt_program_choice *choice);
#define XPT_CHOICES_MAX 4096

/* Reports come from here on, also when nothing runs. -EALREADY. May be called before xpt_session_start(). */
XPT_API int xpt_stream_start(struct xpt_stream *stream);
/* A last report comes with what ran since the one before. Does not wait for it. -EALREADY: does not run. */
XPT_API int xpt_stream_stop(struct xpt_stream *stream);
/* Returns when no report of what has been stopped is left to deliver. -EDEADLK from a callback. */
XPT_API int xpt_stream_flush(struct xpt_stream *stream);
/* Stops without a report; returns when a callback that is under way has returned, unless called from it. */
XPT_API void xpt_stream_destroy(struct xpt_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
