/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel can do, found by trying: one table. */
#ifndef XPT_KERN_FEATURES_H
#define XPT_KERN_FEATURES_H

#include <linux/capability.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

enum feature_need { FEATURE_REQUIRED, FEATURE_ONE_OF, FEATURE_OPTIONAL };

struct feature {
	const char *name;
	enum feature_need need;
	/* 0 or a negative errno; detail has room for what was found. */
	int (*try)(char *detail, size_t size);
	const char *gives;
	const char *advice;
	__u64 capabilities; /* without which the kernel refuses it: bits, 1ull << CAP_... */
};

extern const struct feature features[];
extern const size_t feature_count;

/* Nothing fails without it: it has to be tried before. */
bool feature_is_silent(const struct feature *feature);

/* What to do about a feature that gave this error. */
void feature_advice(const struct feature *feature, int error, char *text, size_t size);

#define CAPABILITIES_TRACING (1ull << CAP_BPF | 1ull << CAP_PERFMON)

/* Those of these that the calling thread lacks; CAP_SYS_ADMIN includes what was split from it. */
__u64 capabilities_missing(__u64 wanted);
/* Why what needs these capabilities was refused (-EPERM, -EACCES), and what to do. */
void capabilities_explain(__u64 wanted, char *text, size_t size);

#endif
