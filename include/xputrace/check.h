/* SPDX-License-Identifier: BSD-2-Clause */
/* What this kernel and these permissions allow, found by trying. */
#ifndef XPUTRACE_CHECK_H
#define XPUTRACE_CHECK_H

#include <stddef.h>

#include <xputrace/error.h>

#ifdef __cplusplus
extern "C" {
#endif

enum xpt_need {
	XPT_NEED_REQUIRED = 0, /* nothing works without */
	XPT_NEED_ONE_OF = 1,   /* one of the link kinds is enough */
	XPT_NEED_OPTIONAL = 2, /* something is worse without */
};

struct xpt_feature {
	size_t size; /* sizeof(struct xpt_feature) of the library */
	const char *name;
	enum xpt_need need;
	int error;	    /* 0: works; else a negative errno */
	const char *detail; /* what was found; "" none; valid during the visit */
	const char *gives;  /* what it is needed for */
	const char *advice; /* what to do when it is missing */
};

/* Tries every feature and visits it. 0: recording can work; -EOPNOTSUPP: something required is missing. */
XPT_API int xpt_check(void (*visit)(void *context, const struct xpt_feature *feature), void *context);

#ifdef __cplusplus
}
#endif
#endif
