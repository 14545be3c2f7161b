/* SPDX-License-Identifier: BSD-2-Clause */
/* Terms of an event: "event=0x12,umask=3", and their encoding in perf_event_attr. */
#ifndef XPT_COUNTER_EVENT_TERMS_H
#define XPT_COUNTER_EVENT_TERMS_H

#include "counter/pmu.h"

#define EVENT_TERMS_REASON_MAX 256

struct event_code {
	__u64 config[PMU_CONFIGS];
	const struct pmu_event *event; /* the named one among the terms; NULL: none */
};

/*
 * Encodes what stands between the slashes of "pmu/TERMS/": at most one name of an event, terms of the PMU's format and
 * config, config1, config2, config3. A term without a value is 1; of two for the same bits the later one counts. Where
 * the named event leaves a value open (umask=?), it must be among the terms. 0; -ENOENT: there is no such event or
 * term; -EINVAL: anything else is wrong. reason (EVENT_TERMS_REASON_MAX bytes) then has what.
 */
int event_terms_encode(const struct pmu *pmu, const char *terms, size_t length, struct event_code *code, char *reason);

#endif
