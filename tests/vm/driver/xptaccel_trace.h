/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The module's own tracepoints, in the system xptaccel. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM xptaccel

#if !defined(XPTACCEL_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define XPTACCEL_TRACE_H

#include <linux/dma-fence.h>
#include <linux/tracepoint.h>

/* clang-format off */
/* An engine was reset because of a job that had not ended in time; error is what that job ends with. */
TRACE_EVENT(xptaccel_reset,
	TP_PROTO(const char *device, u32 engine, int error),
	TP_ARGS(device, engine, error),
	TP_STRUCT__entry(
		__array(char, dev, 16)
		__field(u32, engine)
		__field(int, error)
	),
	TP_fast_assign(
		strscpy(__entry->dev, device, sizeof(__entry->dev));
		__entry->engine = engine;
		__entry->error = error;
	),
	TP_printk("dev=%s engine=%u error=%d", __entry->dev, __entry->engine, __entry->error)
);
/* A job has failed; fence is the scheduler's finished one, which the events of the scheduler name in one of two ways. */
TRACE_EVENT(xptaccel_error,
	TP_PROTO(const char *device, u32 engine, int error, const struct dma_fence *finished),
	TP_ARGS(device, engine, error, finished),
	TP_STRUCT__entry(
		__array(char, dev, 16)
		__field(u32, engine)
		__field(int, error)
		__field(const struct dma_fence *, fence)
		__field(u64, fence_context)
		__field(u64, fence_seqno)
	),
	TP_fast_assign(
		strscpy(__entry->dev, device, sizeof(__entry->dev));
		__entry->engine = engine;
		__entry->error = error;
		__entry->fence = finished;
		__entry->fence_context = finished->context;
		__entry->fence_seqno = finished->seqno;
	),
	TP_printk("dev=%s engine=%u error=%d fence=%llu:%llu", __entry->dev, __entry->engine, __entry->error,
		  __entry->fence_context, __entry->fence_seqno)
);
/* clang-format on */

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE xptaccel_trace
#include <trace/define_trace.h>
