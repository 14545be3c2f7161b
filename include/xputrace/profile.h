/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * N samples of one program. The handle of the Cloud AI 100 runtime's "num-iter based" profiling, for every runtime and
 * from outside the process:
 *
 *	static void on_report(void *context, const struct xpt_profile_report *report)
 *	{
 *		xpt_profile_report_write(report, XPT_FORMAT_SAMPLES, STDOUT_FILENO);
 *	}
 *
 *	XPT_OPTS(xpt_program_choice, program, .name = "resnet50");
 *	XPT_OPTS(xpt_profile_options, options, .program = &program, .samples = 100, .callback = on_report);
 *	struct xpt_profile *profile;
 *
 *	if (!xpt_profile_create(session, &options, &profile)) {
 *		xpt_profile_start(profile);
 *		xpt_profile_wait(profile, 10000000000);
 *		xpt_profile_destroy(profile);
 *	}
 *
 * Any number of handles may run at once, on the same or different programs; each gets what it would get alone. Functions
 * may be called from any thread, and from callbacks, except where it says otherwise.
 */
#ifndef XPUTRACE_PROFILE_H
#define XPUTRACE_PROFILE_H

#include <xputrace/profile_report.h>
#include <xputrace/session.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xpt_profile;

/* Everything is copied. Zero means the default. */
struct xpt_profile_options {
	size_t size;				  /* sizeof(struct xpt_profile_options) */
	const struct xpt_program_choice *program; /* exactly one: of several that fit, the first that runs */
	uint64_t samples;			  /* 1 to XPT_SAMPLES_MAX */
	enum xpt_profile_type type;
	uint64_t skip;	  /* number of inferences left out at the beginning */
	uint64_t delay;	  /* ns: leave out what begins earlier after the start */
	int summary;	  /* non-zero: only what the samples add up to, no rows; LATENCY only */
	const char *name; /* for the report; NULL: none */
	xpt_profile_report_fn callback;
	void *context;
};

#define XPT_SAMPLES_MAX 1000000000ull

/* -EINVAL: no program, no samples, no callback, or out of range (said through the session's log); -E2BIG; -ENOMEM. */
XPT_API int xpt_profile_create(struct xpt_session *session, const struct xpt_profile_options *options,
			       struct xpt_profile **profile);

/*
 * From here on every inference of the program is sampled, until the samples are there or the program is released: then
 * the callback comes, once, and the handle can be started again. A program that does not exist yet is waited for.
 * -EALREADY: it runs already. May be called before xpt_session_start().
 */
XPT_API int xpt_profile_start(struct xpt_profile *profile);

/* Ends early: the callback comes with what is there, and not at all when there is nothing. -EALREADY: does not run. */
XPT_API int xpt_profile_stop(struct xpt_profile *profile);

/*
 * Returns when the handle does not run and its callback has returned: 1; after timeout ns: 0 (0: does not wait);
 * -EDEADLK from a callback; -EPIPE: the targets have ended, and nothing more will come.
 */
XPT_API int xpt_profile_wait(struct xpt_profile *profile, uint64_t timeout);

/* Stops without a callback; returns when a callback that is under way has returned, unless called from it. */
XPT_API void xpt_profile_destroy(struct xpt_profile *profile);

#ifdef __cplusplus
}
#endif
#endif
