/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/handle/samples.h"

#include <criterion/criterion.h>
#include <string.h>

static struct model_function function;
static struct model_program program = { .id = 1, .handle = 5, .name = "net" };
static struct inference result;

static struct event call(enum xpt_role role)
{
	function.role = role;
	return (struct event){ .kind = EVENT_CALL,
			       .call = {
				       .function = &function, .program = &program, .start = 10, .end = 20, .tid = 7 } };
}

static struct event inference(enum event_kind kind, enum xpt_role role)
{
	function.role = role;
	return (struct event){ .kind = kind,
			       .inference = { .function = &function, .program = &program, .start = 10, .end = 20 } };
}

Test(profile_handle_samples, which_calls_are_inferences)
{
	static const struct {
		enum xpt_role role;
		bool layer, no_end, alone;
		__u64 flow_out;
		bool is;
	} table[] = {
		{ XPT_ROLE_EXECUTE, 0, 0, 0, 0, true },	 { XPT_ROLE_EXECUTE, 1, 0, 0, 0, false },
		{ XPT_ROLE_EXECUTE, 0, 1, 0, 0, false }, { XPT_ROLE_EXECUTE, 0, 0, 1, 0, false },
		{ XPT_ROLE_LAUNCH, 0, 0, 0, 0, true },	 { XPT_ROLE_LAUNCH, 0, 0, 0, 9, false },
		{ XPT_ROLE_LAUNCH, 1, 0, 0, 9, false },	 { XPT_ROLE_ENQUEUE, 0, 0, 0, 9, false },
		{ XPT_ROLE_ENQUEUE, 0, 0, 0, 0, true },	 { XPT_ROLE_ENQUEUE, 1, 0, 0, 0, false },
		{ XPT_ROLE_WAIT, 0, 0, 0, 0, false },	 { XPT_ROLE_PROGRAM_LOAD, 0, 0, 0, 0, false },
		{ XPT_ROLE_COPY, 0, 0, 0, 0, false },
	};
	struct event event;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		event = call(table[i].role);
		event.call.layer = table[i].layer;
		event.call.no_end = table[i].no_end;
		event.call.flow_out = table[i].flow_out;
		if (table[i].alone)
			event.call.program = NULL;
		cr_assert_eq(inference_read(&event, &result), table[i].is, "%zu", i);
	}
}

Test(profile_handle_samples, which_inferences_are)
{
	struct event event = inference(EVENT_INFERENCE, XPT_ROLE_LAUNCH);

	event.inference.completed = 18;
	cr_assert(inference_read(&event, &result));
	cr_assert_not(result.unended);
	cr_assert_eq(result.sample.time[XPT_TIME_CALL_ENDS], 18, "its jobs had ended before the wait");
	event = inference(EVENT_UNPAIRED, XPT_ROLE_LAUNCH);
	event.inference.end = 0;
	event.inference.enqueued = 12;
	cr_assert(inference_read(&event, &result));
	cr_assert_not(result.unpaired);
	cr_assert(result.unended);
	cr_assert_eq(result.sample.enqueued, 12);
	cr_assert_eq(result.sample.time[XPT_TIME_CALL_ENDS], 0);
	event = call(XPT_ROLE_LAUNCH);
	cr_assert(inference_read(&event, &result));
	cr_assert(result.unended, "never the call");
	cr_assert_eq(result.sample.enqueued, event.call.end);
	cr_assert_eq(result.sample.time[XPT_TIME_CALL_ENDS], 0);
	event = inference(EVENT_INFERENCE, XPT_ROLE_ENQUEUE);
	cr_assert(inference_read(&event, &result));
	cr_assert_not(result.unpaired);
	event = inference(EVENT_UNPAIRED, XPT_ROLE_ENQUEUE);
	cr_assert(inference_read(&event, &result));
	cr_assert(result.unpaired);
	event.inference.program = NULL;
	cr_assert_not(inference_read(&event, &result));
	event = (struct event){ .kind = EVENT_LOST };
	cr_assert_not(inference_read(&event, &result));
}

Test(profile_handle_samples, what_a_call_tells)
{
	struct event event = call(XPT_ROLE_EXECUTE);

	event.call.numbered = true;
	event.call.number = 42;
	event.call.size = 1000;
	event.call.core = -3;
	event.call.status = 5;
	event.call.status_name = "NRT_TIMEOUT";
	cr_assert(inference_read(&event, &result));
	cr_assert_eq(result.sample.bytes, 0, "the call does not say");
	cr_assert_not(result.sample.has_core);
	cr_assert_not(result.sample.has_status);
	cr_assert_not(result.sample.failed);
	event.call.have = 1u << XPT_MEANING_SIZE | 1u << XPT_MEANING_CORE | 1u << XPT_MEANING_STATUS;
	event.call.outcome = OUTCOME_FAILED;
	cr_assert(inference_read(&event, &result));
	cr_assert(result.numbered);
	cr_assert_eq(result.sample.number, 42);
	cr_assert_eq(result.sample.time[XPT_TIME_CALL_BEGINS], 10);
	cr_assert_eq(result.sample.time[XPT_TIME_CALL_ENDS], 20);
	cr_assert_eq(result.sample.time[XPT_TIME_SUBMIT_BEGINS], 0);
	cr_assert_eq(result.sample.time[XPT_TIME_DEVICE_DONE], 0);
	cr_assert_eq(result.sample.enqueued, 0);
	cr_assert_eq(result.sample.bytes, 1000);
	cr_assert_eq(result.sample.tid, 7);
	cr_assert_eq(result.sample.core, -3);
	cr_assert(result.sample.has_core);
	cr_assert_eq(result.sample.status, 5);
	cr_assert_str_eq(result.sample.status_name, "NRT_TIMEOUT");
	cr_assert(result.sample.has_status);
	cr_assert(result.sample.failed);
	cr_assert_not(result.sample.has_in_queue);
}

Test(profile_handle_samples, what_an_inference_tells)
{
	struct event event = inference(EVENT_INFERENCE, XPT_ROLE_ENQUEUE);

	event.inference.tid = 8;
	event.inference.wait_tid = 9;
	event.inference.enqueued = 12;
	event.inference.in_queue = 1ull << 40;
	event.inference.number = 3;
	cr_assert(inference_read(&event, &result));
	cr_assert_eq(result.sample.tid, 8);
	cr_assert_eq(result.sample.enqueued, 12);
	cr_assert(result.sample.has_in_queue);
	cr_assert_eq(result.sample.in_queue, UINT32_MAX);
	cr_assert_not(result.numbered);
	cr_assert_eq(result.sample.time[XPT_TIME_CALL_ENDS], 20);
}

static const struct model_device_times device = {
	.submit_begins = 11,
	.submit_ends = 13,
	.runs = 14,
	.done = 19,
	.jobs = 3,
	.failed = 1,
	.device_time = 9,
	.queue_time = 4,
	.busy_time = 5,
};

static void expect_device(const struct xpt_sample *sample)
{
	cr_assert_eq(sample->time[XPT_TIME_SUBMIT_BEGINS], 11);
	cr_assert_eq(sample->time[XPT_TIME_SUBMIT_ENDS], 13);
	cr_assert_eq(sample->time[XPT_TIME_DEVICE_RUNS], 14);
	cr_assert_eq(sample->time[XPT_TIME_DEVICE_DONE], 19);
	cr_assert_eq(sample->jobs, 3);
	cr_assert_eq(sample->device_time, 9);
	cr_assert_eq(sample->queue_time, 4);
}

Test(profile_handle_samples, what_the_device_tells)
{
	struct event event = call(XPT_ROLE_EXECUTE);

	event.call.device = device;
	cr_assert(inference_read(&event, &result));
	expect_device(&result.sample);
	event = inference(EVENT_INFERENCE, XPT_ROLE_ENQUEUE);
	event.inference.device = device;
	cr_assert(inference_read(&event, &result));
	expect_device(&result.sample);
}

/* Sums of a part of the jobs would look like those of all. */
Test(profile_handle_samples, jobs_that_have_not_ended)
{
	struct event event = call(XPT_ROLE_EXECUTE);

	event.call.device = device;
	event.call.device.done = 0;
	event.call.device.unfinished = 1;
	cr_assert(inference_read(&event, &result));
	cr_assert_eq(result.sample.time[XPT_TIME_DEVICE_RUNS], 14);
	cr_assert_eq(result.sample.time[XPT_TIME_DEVICE_DONE], 0);
	cr_assert_eq(result.sample.jobs, 3);
	cr_assert_eq(result.sample.device_time, 0);
	cr_assert_eq(result.sample.queue_time, 0);
}

/* The work of most goes on when they return: times of those that were done by then would be of the short ones only. */
Test(profile_handle_samples, launches_have_no_times_of_the_device)
{
	struct event event = call(XPT_ROLE_LAUNCH);

	event.call.device = device;
	cr_assert(inference_read(&event, &result));
	cr_assert_eq(result.sample.time[XPT_TIME_SUBMIT_BEGINS], 11);
	cr_assert_eq(result.sample.time[XPT_TIME_SUBMIT_ENDS], 13);
	cr_assert_eq(result.sample.time[XPT_TIME_DEVICE_RUNS], 0);
	cr_assert_eq(result.sample.time[XPT_TIME_DEVICE_DONE], 0);
	cr_assert_eq(result.sample.jobs, 3);
	cr_assert_eq(result.sample.device_time, 0);
	cr_assert_eq(result.sample.queue_time, 0);
}

Test(profile_handle_samples, times_of_events)
{
	struct event event = { .kind = EVENT_COUNT, .count = { .time = 5 } };

	cr_assert_eq(event_time(&event), 5);
	event = (struct event){ .kind = EVENT_PROCESS };
	cr_assert_eq(event_time(&event), 0);
	event = inference(EVENT_UNPAIRED, XPT_ROLE_ENQUEUE);
	cr_assert_eq(event_time(&event), 0);
	event = (struct event){ .kind = EVENT_WAITED, .waited = { .start = 3, .end = 6 } };
	cr_assert_eq(event_time(&event), 6);
	event = (struct event){ .kind = EVENT_TASK, .task = { .time = 8 } };
	cr_assert_eq(event_time(&event), 8);
	event = (struct event){ .kind = EVENT_JOB, .job = { .queued = 1, .runs = 2, .done = 3, .time = 4 } };
	cr_assert_eq(event_time(&event), 4);
	event = (struct event){ .kind = EVENT_QUEUE, .queue = { .time = 9 } };
	cr_assert_eq(event_time(&event), 9);
	event = (struct event){ .kind = EVENT_DEVICE, .device = { .time = 10 } };
	cr_assert_eq(event_time(&event), 10);
	event = (struct event){ .kind = EVENT_IOCTL, .ioctl = { .start = 1, .end = 11 } };
	cr_assert_eq(event_time(&event), 11);
}

Test(profile_handle_samples, others)
{
	struct model_program others = { .handle = 0, .name = "(others)" };

	cr_assert(program_is_others(&others));
	others.handle = 1;
	cr_assert_not(program_is_others(&others), "a target may call its own so");
}
