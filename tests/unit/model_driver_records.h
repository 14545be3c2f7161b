/* SPDX-License-Identifier: BSD-2-Clause */
/* Hand-made records of drivers for the tests of the model. */
#ifndef XPT_TEST_MODEL_DRIVER_RECORDS_H
#define XPT_TEST_MODEL_DRIVER_RECORDS_H

#include "model_records.h"

/*
 * Fields of an event, a letter each: k key, D E N device, engine and name as texts, d e as numbers, g engine as a number with
 * a sign, c context, f client, z size, a address, n count, s status (with a sign), v value, p depth, t context as a text,
 * l timeline.
 */
static inline unsigned int letter_meaning(char letter)
{
	static const char letters[] = "kDENdegcfzansvptl";
	static const unsigned int meanings[] = {
		XPT_FIELD_KEY,	   XPT_FIELD_DEVICE,   XPT_FIELD_ENGINE,  XPT_FIELD_NAME,   XPT_FIELD_DEVICE,
		XPT_FIELD_ENGINE,  XPT_FIELD_ENGINE,   XPT_FIELD_CONTEXT, XPT_FIELD_CLIENT, XPT_FIELD_SIZE,
		XPT_FIELD_ADDRESS, XPT_FIELD_COUNT,    XPT_FIELD_STATUS,  XPT_FIELD_VALUE,  XPT_FIELD_DEPTH,
		XPT_FIELD_CONTEXT, XPT_FIELD_TIMELINE,
	};

	return meanings[strchr(letters, letter) - letters];
}

static inline bool letter_is_text(char letter)
{
	return strchr("DENt", letter);
}

static const char *event_letters[XPT_EVENT_MAX]; /* of the events described last */

static inline int feed_driver(struct fixture *f, unsigned int index, const char *name, enum xpt_pairing pairing,
			      unsigned int bits, const char *more)
{
	char text[2048];

	snprintf(text, sizeof(text), "{\"name\":\"%s\",\"title\":\"T\",\"pairing\":%d,\"bits\":%u%s}", name, pairing,
		 bits, more);
	return feed_text(f, XPT_RECORD_DRIVER, 0, 0, index, text);
}

static inline void driver(struct fixture *f, unsigned int index, const char *name, enum xpt_pairing pairing,
			  unsigned int bits, const char *more)
{
	cr_assert_eq(feed_driver(f, index, name, pairing, bits, more), 0);
}

static inline void driver_event(struct fixture *f, unsigned int index, unsigned int driver, enum xpt_event_role role,
				bool by_thread, const char *letters)
{
	char text[2048];
	size_t length, keys = strspn(letters, "k");
	const char *letter;

	length = (size_t)snprintf(text, sizeof(text),
				  "{\"driver\":%u,\"event\":\"toy:event_%u\",\"role\":%d,\"key\":%zu,\"by_thread\":%s,"
				  "\"fields\":[",
				  driver, index, role, keys, by_thread ? "true" : "false");
	for (letter = letters; *letter; letter++)
		length += (size_t)snprintf(text + length, sizeof(text) - length,
					   "%s{\"meaning\":%u,\"name\":\"x\",\"text\":%s,\"signed\":%s}",
					   letter == letters ? "" : ",", letter_meaning(*letter),
					   letter_is_text(*letter) ? "true" : "false",
					   strchr("sg", *letter) ? "true" : "false");
	snprintf(text + length, sizeof(text) - length, "]}");
	cr_assert_eq(feed_text(f, XPT_RECORD_DRIVER_EVENT, 0, 0, index, text), 0, "event %u", index);
	event_letters[index] = letters;
}

struct event_record {
	struct xpt_record_event event;
	char values[XPT_EVENT_VALUES_MAX * XPT_EVENT_TEXT];
};

static inline struct event_record event_make_list(unsigned int index, __u32 tgid, __u32 tid, bool target, __u64 time,
						  va_list arguments)
{
	struct event_record record = {};
	const char *letter;
	size_t used = 0;
	__u64 number;

	for (letter = event_letters[index]; *letter; letter++) {
		if (letter_is_text(*letter)) {
			strncpy(record.values + used, va_arg(arguments, const char *), XPT_EVENT_TEXT);
			used += XPT_EVENT_TEXT;
			continue;
		}
		number = va_arg(arguments, __u64);
		memcpy(record.values + used, &number, sizeof(number));
		used += sizeof(number);
	}
	record.event.header.kind = XPT_RECORD_EVENT;
	record.event.header.size = (__u16)(sizeof(record.event) + used);
	record.event.header.tgid = tgid;
	record.event.header.time = time;
	record.event.tid = tid;
	record.event.event = (__u16)index;
	record.event.thread = target ? XPT_THREAD_TARGET | XPT_THREAD_IN_CALL : 0;
	record.event.valid = 0xff;
	return record;
}

/* Values in the order of the letters: numbers as U(n), texts as they are. */
static inline struct event_record event_make(unsigned int index, __u32 tgid, __u32 tid, bool target, __u64 time, ...)
{
	struct event_record record;
	va_list arguments;

	va_start(arguments, time);
	record = event_make_list(index, tgid, tid, target, time, arguments);
	va_end(arguments);
	return record;
}

static inline int feed_event(struct fixture *f, struct event_record record)
{
	return model_feed(f->model, &record.event.header);
}

/* An event of a thread of a traced process. */
#define TARGET(f, index, tgid, tid, time, ...) \
	cr_assert_eq(feed_event(f, event_make(index, tgid, tid, true, time, __VA_ARGS__)), 0)
/* One of any other thread. */
#define OTHER(f, index, time, ...) cr_assert_eq(feed_event(f, event_make(index, 900, 901, false, time, __VA_ARGS__)), 0)

static inline int feed_ioctl(struct fixture *f, unsigned int node, __u32 tgid, __u32 tid, __u32 command, __u64 start,
			     __u64 end, __s32 result)
{
	struct xpt_record_ioctl record = { .header = { XPT_RECORD_IOCTL, sizeof(record), tgid, end } };

	record.start = start;
	record.tid = tid;
	record.command = command;
	record.node = (__u16)node;
	record.result = result;
	return model_feed(f->model, &record.header);
}

static inline int feed_end(struct fixture *f, __u64 time)
{
	return feed_text(f, XPT_RECORD_END, 0, time, 0, "{}");
}

/* The nth job reported; fails when there are fewer. */
static inline const struct event_job *job_nth(const struct fixture *f, size_t nth)
{
	const struct seen *seen = seen_nth(f, EVENT_JOB, nth);

	cr_assert_not_null(seen, "there is no job number %zu", nth);
	return &seen->event.job;
}

static inline const struct event_call *call_nth(const struct fixture *f, size_t nth)
{
	return &seen_nth(f, EVENT_CALL, nth)->event.call;
}

/* "driver/device/engine" */
static inline const char *queue_text(const struct model_queue *queue)
{
	static char text[128];

	snprintf(text, sizeof(text), "%s/%s/%s", queue->driver, queue->device, queue->engine);
	return text;
}

#define EXPECT_TIMES(job, q, r, d)                                            \
	do {                                                                  \
		cr_assert_eq((job)->queued, q, "queued %llu", (job)->queued); \
		cr_assert_eq((job)->runs, r, "runs %llu", (job)->runs);       \
		cr_assert_eq((job)->done, d, "done %llu", (job)->done);       \
	} while (0)

#endif
