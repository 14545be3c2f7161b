/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who profiles what continuously, on the whole machine: one at a time. Claims end with the process that made them, however that
 * ends.
 */
#ifndef XPT_SESSION_CONTINUOUS_TARGET_CLAIM_H
#define XPT_SESSION_CONTINUOUS_TARGET_CLAIM_H

#include <stddef.h>
#include <sys/types.h>

#include "base/core/log.h"

struct target_claims {
	int file; /* -1: closed */
};

/* Makes the file if there is none. Or an error of open(). */
int target_claims_open(const struct log *log, const char *path, struct target_claims *claims);
/* -EBUSY: it is claimed through other claims. */
int target_claim(const struct target_claims *claims, pid_t pid);
/* Others may claim it: its number may be that of another process soon. Nothing when it was not claimed. Not after claim_all. */
void target_unclaim(const struct target_claims *claims, pid_t pid);
/* The same of all processes that there are and will be. */
int target_claim_all(const struct target_claims *claims);
void target_claims_close(struct target_claims *claims);

#endif
