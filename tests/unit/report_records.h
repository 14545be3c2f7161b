/* SPDX-License-Identifier: BSD-2-Clause */
/* Feeds a model with records made by hand, for tests of reports. */
#ifndef XPT_TESTS_REPORT_RECORDS_H
#define XPT_TESTS_REPORT_RECORDS_H

#include <criterion/criterion.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "model/core/model.h"

#define RECORDS_TGID 1234

static inline void feed_text(struct model *model, enum xpt_record_kind kind, __u32 tgid, __u64 id, __u64 time,
			     const char *text)
{
	union {
		struct xpt_record_text record;
		char space[8192];
	} all;
	size_t length = strlen(text);

	memset(&all, 0, sizeof(all));
	cr_assert_lt(length, sizeof(all) - sizeof(all.record) - 8);
	all.record.header.kind = kind;
	all.record.header.size = XPT_ALIGN8(sizeof(all.record) + length);
	all.record.header.tgid = tgid;
	all.record.header.time = time;
	all.record.id = id;
	all.record.length = length;
	memcpy(all.record.text, text, length);
	cr_assert_eq(model_feed(model, &all.record.header), 0, "%s", text);
}

/* A call of spec with two values: the first fetch and, behind it, the status. */
static inline void feed_call(struct model *model, __u16 spec, __u32 tid, __u64 start, __u64 end, __u64 first,
			     __u64 status)
{
	struct {
		struct xpt_record_call call;
		__u64 value[2];
	} record = {
		.call = {
			.header = { XPT_RECORD_CALL, sizeof(record), RECORDS_TGID, end },
			.start = start,
			.tid = tid,
			.spec = spec,
			.valid = 3,
			.values = 2,
			.sample = 1,
		},
		.value = { first, status },
	};

	cr_assert_eq(model_feed(model, &record.call.header), 0);
}

static inline void feed_pass(struct model *model, __u64 time)
{
	struct xpt_record_header record = { XPT_RECORD_PASS, sizeof(record), 0, time };

	cr_assert_eq(model_feed(model, &record), 0);
}

static inline void feed_total(struct model *model, struct xpt_program_key key, struct xpt_program_count count,
			      __u64 time)
{
	struct xpt_record_total record = {
		.header = { XPT_RECORD_TOTAL, sizeof(record), key.tgid, time },
		.key = key,
		.count = count,
	};

	cr_assert_eq(model_feed(model, &record.header), 0);
}

static inline void feed_lost(struct model *model, enum xpt_loss cause, __u64 count, __u64 since, __u64 time)
{
	struct xpt_record_lost record = {
		.header = { XPT_RECORD_LOST, sizeof(record), 0, time },
		.since = since,
		.count = count,
		.cause = cause,
	};

	cr_assert_eq(model_feed(model, &record.header), 0);
}

#define SPEC_EXECUTE 1
#define SPEC_COPY 2

/* One process, one runtime: execute of a program (first value: its handle), copy (first value: bytes). */
static inline void feed_descriptions(struct model *model)
{
	feed_text(model, XPT_RECORD_RUNTIME, 0, 3, 1,
		  "{\"name\":\"nrt\",\"title\":\"AWS Neuron runtime\",\"statuses\":[]}");
	feed_text(model, XPT_RECORD_SPEC, 0, SPEC_EXECUTE, 1,
		  "{\"runtime\":3,\"function\":\"nrt_execute\",\"role\":\"execute\",\"success\":1,\"status\":true,"
		  "\"counted_by\":\"program\",\"fetches\":[{\"meaning\":\"program\",\"type\":\"u64\","
		  "\"at_return\":false},"
		  "{\"meaning\":\"status\",\"type\":\"s32\",\"at_return\":true}]}");
	feed_text(model, XPT_RECORD_SPEC, 0, SPEC_COPY, 1,
		  "{\"runtime\":3,\"function\":\"nrt_tensor_write\",\"role\":\"copy\",\"success\":1,\"status\":true,"
		  "\"counted_by\":\"spec\",\"fetches\":[{\"meaning\":\"size\",\"type\":\"u64\",\"at_return\":false},"
		  "{\"meaning\":\"status\",\"type\":\"s32\",\"at_return\":true}]}");
	feed_text(model, XPT_RECORD_PROCESS, RECORDS_TGID, 0, 2,
		  "{\"name\":\"node\",\"command\":\"node server.js\",\"parent\":1,\"start_time\":77}");
	feed_text(model, XPT_RECORD_THREAD, RECORDS_TGID, 1240, 3, "worker");
}

#define EVENT_QUEUED 1
#define EVENT_RUNS 2
#define EVENT_DONE 3
#define EVENT_FAILED 4

/* A driver with the events of a job: a key of one number, device and engine as texts where it is queued. */
static inline void feed_driver(struct model *model)
{
	static const char key[] = "{\"meaning\":1,\"name\":\"id\",\"text\":false,\"signed\":false}";
	static const char *const more[] = {
		[EVENT_QUEUED] = ",{\"meaning\":2,\"name\":\"dev\",\"text\":true,\"signed\":false},"
				 "{\"meaning\":3,\"name\":\"ring\",\"text\":true,\"signed\":false}",
		[EVENT_RUNS] = "",
		[EVENT_DONE] = "",
		[EVENT_FAILED] = "",
	};
	char text[512];
	int event;

	feed_text(model, XPT_RECORD_DRIVER, 0, 2, 1, "{\"name\":\"toy\",\"title\":\"Toy\",\"pairing\":0,\"bits\":64}");
	for (event = EVENT_QUEUED; event <= EVENT_FAILED; event++) {
		snprintf(text, sizeof(text),
			 "{\"driver\":2,\"event\":\"toy:event\",\"role\":%d,\"key\":1,\"by_thread\":%s,\"fields\":[%s%s]}",
			 event, event == EVENT_QUEUED ? "true" : "false", key, more[event]);
		feed_text(model, XPT_RECORD_DRIVER_EVENT, 0, event, 1, text);
	}
}

/* tid 0: of another process. engine: of EVENT_QUEUED only. */
static inline void feed_event(struct model *model, __u16 event, __u32 tid, __u64 time, __u64 job, const char *engine)
{
	struct {
		struct xpt_record_event event;
		__u64 job;
		char device[XPT_EVENT_TEXT], engine[XPT_EVENT_TEXT];
	} record = {
		.event = { .header = { XPT_RECORD_EVENT, sizeof(record), tid ? RECORDS_TGID : 9, time },
			   .tid = tid ? tid : 9,
			   .event = event,
			   .thread = tid ? XPT_THREAD_TARGET | XPT_THREAD_IN_CALL : 0,
			   .valid = 0xff },
		.job = job,
		.device = "0000:03:00.0",
	};

	strncpy(record.engine, engine ? engine : "", sizeof(record.engine));
	if (event != EVENT_QUEUED)
		record.event.header.size = (__u16)offsetof(__typeof__(record), device);
	cr_assert_eq(model_feed(model, &record.event.header), 0);
}

#define RECORDS_END                                                                                     \
	"{\"duration_ns\":2000000000,\"stopped_by\":\"duration\",\"link\":\"session\",\"attach_ns\":1," \
	"\"detach_ns\":1,\"sites\":{\"optimised\":1,\"emulated\":1,\"stepped\":0},"                     \
	"\"collector\":{\"cpu_ns\":30000000,\"max_rss_bytes\":12582912},"                               \
	"\"target\":{\"calls\":100,\"cost_ns\":50000}}"

#endif
