/* SPDX-License-Identifier: BSD-2-Clause */
/* Recordings made by hand, and studies of them. */
#ifndef XPT_TEST_ANALYSIS_MADE_H
#define XPT_TEST_ANALYSIS_MADE_H

#include "record_made.h"

#include <unistd.h>

#include "analysis/study.h"
#include "record/recording.h"

static char messages[512];

static inline void message_write(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	(void)level;
	snprintf(messages, sizeof(messages), "%s", text);
}

static const struct log test_log = { message_write, NULL, XPT_LOG_WARN };

/* The file of the records so far, with an END unless cut; they are gone. shift: of its clock, ns. */
static inline char *made_file(struct text *records, __u64 end, __s64 shift)
{
	const struct recording_info info = { .monotonic_time = 1000 + (__u64)shift,
					     .realtime = 1790000000000001000,
					     .host = "h",
					     .kernel = "k",
					     .machine = "m",
					     .version = "v",
					     .command = "c",
					     .boot_id = "b" };
	char *path = strdup("/tmp/analysis.XXXXXX");
	struct recording_writer *writer;
	size_t at = 0;

	close(mkstemp(path));
	stream_pass(records, end);
	stream_pass(records, end + 1);
	if (end)
		stream_text(records, XPT_RECORD_END, 0, end + 2, 0, "{}");
	cr_assert_eq(records->error, 0);
	cr_assert_eq(recording_writer_create(NULL, path, -1, &info, &writer), 0);
	while (at < records->length) {
		const struct xpt_record_header *record = (const void *)(records->data + at);

		cr_assert_eq(recording_writer_add(writer, record), 0);
		at += record->size;
	}
	cr_assert_eq(recording_writer_close(writer), 0);
	text_free(records);
	return path;
}

static inline void made_remove(char *path)
{
	unlink(path);
	free(path);
}

static inline struct study *study_of(const char *path)
{
	const struct study_options options = { .log = &test_log, .inputs = &path, .input_count = 1, .details = true };
	struct study *study = NULL;

	cr_assert_eq(study_create(&options, &study), 0, "%s", messages);
	return study;
}

static inline void made_name(struct text *to, __u32 tgid, __u64 program, const char *name)
{
	const __u64 values[] = { program, 0 };

	stream_string(to, tgid, tgid, STREAM_LOAD, 0, 10, name);
	stream_call(to, tgid, tgid, STREAM_LOAD, 10, 20, 0, values, 2);
}

static inline void made_execute(struct text *to, __u32 tgid, __u32 tid, __u64 program, __u64 start, __u64 duration)
{
	stream_call(to, tgid, tid, STREAM_EXECUTE, start, start + duration, 0, &program, 1);
}

/* The same with what its thread did; the rest of the duration it ran. */
static inline void made_states(struct text *to, __u32 tgid, __u32 tid, enum stream_spec spec, __u64 start,
			       __u64 duration, unsigned int depth, const __u64 *values, unsigned int count,
			       struct xpt_task_state state)
{
	const size_t at = to->length;

	stream_call(to, tgid, tid, spec, start, start + duration, depth | XPT_CALL_STATES | XPT_CALL_STATES_FOLLOW,
		    values, count);
	text_bytes(to, &state, sizeof(state));
	((struct xpt_record_header *)(to->data + at))->size += sizeof(state);
}

static inline void made_off_cpu(struct text *to, __u32 tgid, __u32 tid, enum xpt_off_cpu reason, __u64 start,
				__u64 woken, __u64 end, const char *who)
{
	struct xpt_record_off_cpu record = { .header = { XPT_RECORD_OFF_CPU, sizeof(record), tgid, end },
					     .start = start,
					     .woken = woken,
					     .tid = tid,
					     .syscall = -1,
					     .next_tgid = 77,
					     .next_tid = 77,
					     .waker_tgid = 78,
					     .waker_tid = 78,
					     .reason = (__u8)reason };

	strcpy(reason == XPT_OFF_CPU_PREEMPTED ? record.next : record.waker, who);
	text_bytes(to, &record, sizeof(record));
}

static inline void made_operator(struct text *to, __u32 tgid, __u32 tid, __u64 object, __u64 inference, __u64 start,
				 __u64 duration, unsigned int depth, __u64 off_cpu)
{
	const __u64 values[] = { object, 0, 1, inference };

	made_states(to, tgid, tid, STREAM_OPERATOR, start, duration, depth, values, 4,
		    (struct xpt_task_state){ .off_cpu = off_cpu, .waited = off_cpu, .involuntary = off_cpu != 0 });
}

#endif
