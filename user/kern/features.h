/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel can do, found by trying: one table. */
#ifndef XPT_KERN_FEATURES_H
#define XPT_KERN_FEATURES_H

#include <stddef.h>

enum feature_need { FEATURE_REQUIRED, FEATURE_ONE_OF, FEATURE_OPTIONAL };

struct feature {
	const char *name;
	enum feature_need need;
	/* 0 or a negative errno; detail has room for what was found. */
	int (*try)(char *detail, size_t size);
	const char *gives;
	const char *advice;
};

#define FEATURE_NAMESPACE "pid namespace" /* name of the one that must be asked for: without it nothing fails */

extern const struct feature features[];
extern const size_t feature_count;

#endif
