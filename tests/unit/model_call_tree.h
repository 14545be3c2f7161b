/* SPDX-License-Identifier: BSD-2-Clause */
/* A driver and calls around its jobs, for the tests of the call tree. */
#ifndef XPT_TEST_MODEL_CALL_TREE_H
#define XPT_TEST_MODEL_CALL_TREE_H

#include "model/device/call_tree.h"
#include "model_driver_records.h"

enum { QUEUE, RUN, DONE, ERROR, SUBMIT };

#define SECOND 1000000000ull
#define IOCTLS                                                            \
	",\"ioctls\":[{\"number\":25668,\"name\":\"SUBMIT\",\"role\":7}," \
	"{\"number\":25670,\"name\":\"WAIT\",\"role\":8}],"               \
	"\"nodes\":[{\"index\":0,\"path\":\"/dev/accel/accel0\"}]"
#define SUBMIT_IOCTL 0x6444
#define WAIT_IOCTL 0x6446

static inline struct fixture *fixture_pairing(enum xpt_pairing pairing)
{
	struct fixture *f = fixture_toy();

	driver(f, 0, "one", pairing, 64, IOCTLS);
	driver_event(f, QUEUE, 0, XPT_EVENT_QUEUE, true, "kE");
	driver_event(f, RUN, 0, XPT_EVENT_RUN, false, "k");
	driver_event(f, DONE, 0, XPT_EVENT_DONE, false, "k");
	driver_event(f, ERROR, 0, XPT_EVENT_ERROR, false, "ks");
	driver_event(f, SUBMIT, 0, XPT_EVENT_SUBMIT, true, "a");
	return f;
}

static inline struct fixture *fixture_driver(void)
{
	return fixture_pairing(XPT_PAIRING_UNIQUE);
}

static inline void queue(struct fixture *f, __u32 tgid, __u32 tid, __u64 key, __u64 time)
{
	TARGET(f, QUEUE, tgid, tid, time, key, "gfx");
}

static inline void run(struct fixture *f, __u64 key, __u64 time)
{
	OTHER(f, RUN, time, key);
}

static inline void done(struct fixture *f, __u64 key, __u64 time)
{
	OTHER(f, DONE, time, key);
}

/* A job of process 1, thread 7. */
static inline void job(struct fixture *f, __u64 key, __u64 queued, __u64 runs, __u64 ends)
{
	queue(f, 1, 7, key, queued);
	run(f, key, runs);
	done(f, key, ends);
}

/* A call of process 1; it has no key where the function would return one. */
static inline void call_at(struct fixture *f, unsigned int spec, __u32 tid, unsigned int depth, bool layer,
			   __u64 handle, __u64 start, __u64 end)
{
	static const unsigned int values[] = { [TOY_EXECUTE] = 4, [TOY_LAUNCH] = 3,  [TOY_COPY] = 2,
					       [LOW_LAUNCH] = 2,  [LOW_EXECUTE] = 1, [TOY_FINISH] = 1 };
	struct call_record record = call_make(spec, 1, tid, start, end, values[spec], handle, U(0), U(0), U(0));

	record.call.depth = (__u8)depth;
	record.call.flags = layer ? XPT_CALL_LAYER : 0;
	if (spec == TOY_LAUNCH)
		record.call.valid = 3;
	cr_assert_eq(feed_call(f, record), 0);
}

static inline void enqueue(struct fixture *f, __u64 key, __u64 start, __u64 end)
{
	CALL_1(f, TOY_ENQUEUE, 1, 7, start, end, 4, U(5), key, U(0), U(0));
}

static inline void wait_key(struct fixture *f, __u64 key, __u64 start, __u64 end)
{
	CALL_1(f, TOY_WAIT, 1, 8, start, end, 3, key, U(1), U(0));
}

static inline void deliver(struct fixture *f, __u64 time)
{
	cr_assert_eq(feed_pass(f, time), 0);
	cr_assert_eq(feed_pass(f, time), 0);
}

/* The position of the nth event of a kind among all events. */
static inline size_t position(const struct fixture *f, enum event_kind kind, size_t nth)
{
	return (size_t)(seen_nth(f, kind, nth) - f->seen);
}

#endif
