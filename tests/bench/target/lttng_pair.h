/* SPDX-License-Identifier: BSD-2-Clause */
/* Two tracepoints of LTTng-UST that mark what a region does. Its header reads this one several times. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_pair.h"

#if !defined(BENCH_LTTNG_PAIR_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_LTTNG_PAIR_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(bench, begin, LTTNG_UST_TP_ARGS(const char *, name),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_string(name, name)))
LTTNG_UST_TRACEPOINT_EVENT(bench, end, LTTNG_UST_TP_ARGS(const char *, name),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_string(name, name)))

#endif

#include <lttng/tracepoint-event.h>
