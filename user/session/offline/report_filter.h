/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which inferences of a recording a report is about. It is read twice: the first time they are found, by what the model makes
 * of the whole; the second time only their records, and what lies in them, are used.
 */
#ifndef XPT_SESSION_OFFLINE_REPORT_FILTER_H
#define XPT_SESSION_OFFLINE_REPORT_FILTER_H

#include <xputrace/report.h>

#include "base/core/log.h"
#include "model/core/model.h"
#include "profile/handle/samples.h"
#include "record/recording.h"
#include "report/latency/latency.h"

#define REPORT_INFERENCES_MAX (8u << 20) /* found ones that are kept apart, 48 bytes each */

struct report_filter;

/* Everything is of the caller, and must outlive it. -EINVAL: options make no sense (reported through the log), -ENOMEM. */
int report_filter_create(const struct log *log, const struct xpt_report_options *options,
			 const struct recording_info *info, struct report_filter **result);
void report_filter_free(struct report_filter *filter); /* after the models */
bool report_filter_is_active(const struct report_filter *filter);

/* The first time: the model that takes all records, before the first one. -ENOSPC as model_add_sink(). */
int report_filter_find(struct report_filter *filter, struct model *model);
/* Behind the last record. -ENOENT: a program that was asked for was not seen; -E2BIG: too many are found (both reported). */
int report_filter_found(struct report_filter *filter);

/* The second time: events that lie outside do not become part of any output. Before the first record. */
void report_filter_join(struct report_filter *filter, struct model *model);

/* Whether the model gets the record; both times. */
bool report_filter_takes(struct report_filter *filter, const struct xpt_record_header *record);
/* After the first time: whether the inference is one of those that were found. */
bool report_filter_has(const struct report_filter *filter, const struct event *event,
		       const struct inference *inference);

/* Of filters by programs, times or slowness: whether the call is one of those, and lies in no other one of them. */
bool report_filter_has_sample(const struct report_filter *filter, __u32 tgid, __u32 tid, __u64 call_start);

double report_filter_part(const struct report_filter *filter);	/* of all inferences, those that are selected: 0 to 1 */
__u64 report_filter_length(const struct report_filter *filter); /* ns, of the selected window; 0: of the recording */
flat_columns report_filter_columns(const struct report_filter *filter); /* with a value in any of them */
struct flat_row report_filter_row(const struct report_filter *filter, const struct inference *inference);

#endif
