/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of a made-up runtime, one behind the other in a text. */
#ifndef XPT_TEST_RECORD_MADE_H
#define XPT_TEST_RECORD_MADE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/text.h"
#include "bpf/wire.h"

enum stream_spec {
	STREAM_LOAD,	/* name 0 (string), program 1, size 2 */
	STREAM_NAME,	/* program 0, name 1 (string) */
	STREAM_UNLOAD,	/* program 0 */
	STREAM_EXECUTE, /* program 0 */
	STREAM_ENQUEUE, /* program 0, key 1 */
	STREAM_WAIT,	/* key 0 */
	STREAM_COPY,	/* size 0 */
	STREAM_REGION,
	STREAM_REGION_NAME,    /* program 0, name 1 (string) */
	STREAM_REGION_RELEASE, /* program 0 */
	STREAM_OPERATOR,       /* object 0, class 1, program 2, inference 3 */
	STREAM_SPECS
};

static const struct {
	const char *role, *fetches;
	enum xpt_role number;
} stream_specs[STREAM_SPECS] = {
	[STREAM_LOAD] = { "program.load",
			  "{\"meaning\":\"name\",\"type\":\"string\"},{\"meaning\":\"program\",\"type\":\"u64\"},"
			  "{\"meaning\":\"size\",\"type\":\"u64\"}",
			  XPT_ROLE_PROGRAM_LOAD },
	[STREAM_NAME] = { "program.name",
			  "{\"meaning\":\"program\",\"type\":\"u64\"},{\"meaning\":\"name\",\"type\":\"string\"}",
			  XPT_ROLE_PROGRAM_NAME },
	[STREAM_UNLOAD] = { "program.unload", "{\"meaning\":\"program\",\"type\":\"u64\"}", XPT_ROLE_PROGRAM_UNLOAD },
	[STREAM_EXECUTE] = { "execute", "{\"meaning\":\"program\",\"type\":\"u64\"}", XPT_ROLE_EXECUTE },
	[STREAM_ENQUEUE] = { "enqueue",
			     "{\"meaning\":\"program\",\"type\":\"u64\"},{\"meaning\":\"key\",\"type\":\"u64\"}",
			     XPT_ROLE_ENQUEUE },
	[STREAM_WAIT] = { "wait", "{\"meaning\":\"key\",\"type\":\"u64\"}", XPT_ROLE_WAIT },
	[STREAM_COPY] = { "copy", "{\"meaning\":\"size\",\"type\":\"u64\"}", XPT_ROLE_COPY },
	[STREAM_REGION] = { "region.begin",
			    "{\"meaning\":\"program\",\"type\":\"u64\"},{\"meaning\":\"name\",\"type\":\"string\"}",
			    XPT_ROLE_REGION_BEGIN },
	[STREAM_REGION_NAME] = { "region.name",
				 "{\"meaning\":\"program\",\"type\":\"u64\"},{\"meaning\":\"name\",\"type\":\"string\"}",
				 XPT_ROLE_REGION_NAME },
	[STREAM_REGION_RELEASE] = { "region.release", "{\"meaning\":\"program\",\"type\":\"u64\"}",
				    XPT_ROLE_REGION_RELEASE },
	[STREAM_OPERATOR] = { "operator",
			      "{\"meaning\":\"object\",\"type\":\"u64\"},{\"meaning\":\"class\",\"type\":\"u64\"},"
			      "{\"meaning\":\"program\",\"type\":\"u64\"},{\"meaning\":\"inference\",\"type\":\"u64\"}",
			      XPT_ROLE_OPERATOR },
};

static inline void stream_text(struct text *to, unsigned int kind, __u32 tgid, __u64 time, __u64 id, const char *text)
{
	char bytes[4096] __attribute__((aligned(8))) = {};
	struct xpt_record_text *record = (void *)bytes;

	record->header = (struct xpt_record_header){ (__u16)kind, (__u16)XPT_ALIGN8(sizeof(*record) + strlen(text)),
						     tgid, time };
	record->id = id;
	record->length = (__u32)strlen(text);
	memcpy(record->text, text, strlen(text));
	text_bytes(to, record, record->header.size);
}

static inline void stream_call(struct text *to, __u32 tgid, __u32 tid, enum stream_spec spec, __u64 start, __u64 time,
			       unsigned int depth, const __u64 *values, unsigned int count)
{
	struct xpt_record_call record = { .header = { XPT_RECORD_CALL, (__u16)(sizeof(record) + count * 8), tgid,
						      time },
					  .start = start,
					  .tid = tid,
					  .spec = (__u16)spec,
					  .depth = (__u8)depth,
					  .valid = 0xff,
					  .values = (__u8)count,
					  .sample = 1 };

	text_bytes(to, &record, sizeof(record));
	text_bytes(to, values, count * sizeof(*values));
}

static inline void stream_string(struct text *to, __u32 tgid, __u32 tid, enum stream_spec spec, unsigned int fetch,
				 __u64 start, const char *text)
{
	char bytes[512] __attribute__((aligned(8))) = {};
	struct xpt_record_string *record = (void *)bytes;

	record->header = (struct xpt_record_header){ XPT_RECORD_STRING,
						     (__u16)XPT_ALIGN8(sizeof(*record) + strlen(text)), tgid, start };
	record->call_start = start;
	record->tid = tid;
	record->spec = (__u16)spec;
	record->fetch = (__u8)fetch;
	record->length = (__u32)strlen(text);
	memcpy(record->text, text, strlen(text));
	text_bytes(to, record, record->header.size);
}

static inline void stream_task(struct text *to, enum xpt_task_event event, __u32 tgid, __u32 other, __u64 time)
{
	struct xpt_record_task record = { .header = { XPT_RECORD_TASK, sizeof(record), tgid, time },
					  .tid = tgid,
					  .event = (__u8)event,
					  .other = other,
					  .name = "child" };

	text_bytes(to, &record, sizeof(record));
}

static inline void stream_region(struct text *to, __u32 tgid, __u32 tid, __u64 start, __u64 time, __u64 handle,
				 __u64 name)
{
	struct xpt_record_region record = { .header = { XPT_RECORD_REGION, sizeof(record), tgid, time },
					    .start = start,
					    .tid = tid,
					    .spec = STREAM_REGION,
					    .handle = handle,
					    .name = name };

	text_bytes(to, &record, sizeof(record));
}

static inline void stream_region_name(struct text *to, __u32 tgid, __u64 time, __u64 number, const char *text)
{
	char bytes[512] __attribute__((aligned(8))) = {};
	struct xpt_record_region_name *record = (void *)bytes;

	record->header = (struct xpt_record_header){ XPT_RECORD_REGION_NAME,
						     (__u16)XPT_ALIGN8(sizeof(*record) + strlen(text)), tgid, time };
	record->name = number;
	record->length = (__u32)strlen(text);
	memcpy(record->text, text, strlen(text));
	text_bytes(to, record, record->header.size);
}

static inline void stream_pass(struct text *to, __u64 time)
{
	const struct xpt_record_header pass = { XPT_RECORD_PASS, sizeof(pass), 0, time };

	text_bytes(to, &pass, sizeof(pass));
}

/* What the specs mean, as the first records. */
static inline void stream_describe(struct text *to)
{
	char text[1024];

	stream_text(to, XPT_RECORD_RUNTIME, 0, 0, 0, "{\"name\":\"toy\",\"statuses\":[]}");
	for (unsigned int i = 0; i < STREAM_SPECS; i++) {
		snprintf(text, sizeof(text),
			 "{\"runtime\":0,\"function\":\"toy_%s\",\"role\":\"%s\",\"success\":0,\"fetches\":[%s]}",
			 stream_specs[i].role, stream_specs[i].role, stream_specs[i].fetches);
		stream_text(to, XPT_RECORD_SPEC, 0, 0, i, text);
	}
}

static inline void stream_roles(__u8 roles[XPT_SPEC_MAX])
{
	memset(roles, 0, XPT_SPEC_MAX);
	for (unsigned int i = 0; i < STREAM_SPECS; i++)
		roles[i] = (__u8)stream_specs[i].number;
}

#endif
