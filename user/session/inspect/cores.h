/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What of a process's inferences an inspection writes: those on cores that are wanted, of each core the latest, as many as have
 * no more events together than a core may have. What lies in others is left out with them.
 */
#ifndef XPT_SESSION_INSPECT_CORES_H
#define XPT_SESSION_INSPECT_CORES_H

#include "profile/trigger/inference_index.h"
#include "session/inspect/options.h"

struct inspect_cores;

/* roles: enum xpt_role of each spec, XPT_SPEC_MAX of them. settings and roles must outlive it. -ENOMEM. */
int inspect_cores_create(const struct inference_index *recent, __u32 tgid, const __u8 *roles,
			 const struct inspect_settings *settings, struct inspect_cores **result);
void inspect_cores_free(struct inspect_cores *cores);

/* First each record is counted, */
void inspect_cores_count(struct inspect_cores *cores, const struct xpt_record_header *record);
/* then the inferences are chosen; how many are left out: */
__u64 inspect_cores_choose(struct inspect_cores *cores);
/* and then it is known whether a record is written. */
bool inspect_cores_wants(const struct inspect_cores *cores, const struct xpt_record_header *record);

#endif
