/* SPDX-License-Identifier: BSD-2-Clause */
/* What devices do in the traces of chosen programs. */
#include "profile/trace/trace.h"

#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define US 1000ull
#define TGID 100
#define MAIN 100
#define OTHER 101

static const struct recording_info info = { .host = "h", .kernel = "k", .machine = "m", .version = "v", .boot_id = "b" };
static const struct model_function execute = { 1, "nrt_execute", "nrt", 3, XPT_ROLE_EXECUTE, false, 3, false };
static const struct model_function copy = { 2, "nrt_copy", "nrt", 3, XPT_ROLE_COPY, false, 3, false };
static const struct model_process process = { .tgid = TGID, .name = "node", .command = "" };
/* Programs with odd numbers are wanted. */
static const struct model_program wanted = { .id = 1, .process = &process, .runtime = "nrt", .name = "wanted" };
static const struct model_program unwanted = { .id = 2, .process = &process, .runtime = "nrt", .name = "unwanted" };
static const struct model_queue gfx = { .id = 1, .driver = "amdgpu", .device = "03:00", .engine = "gfx_0" };
static const struct model_queue sdma = { .id = 2, .driver = "amdgpu", .device = "03:00", .engine = "sdma0" };
static const struct model_queue npu = { .id = 3, .driver = "ivpu", .device = "", .engine = "" };

static struct trace_names *names;
static struct trace_text *text;
static struct trace *trace;
static struct xpt_profile_report report;
static cJSON *json; /* after finish() */
static __u64 lost;

static bool wants(void *context, const struct event *event)
{
	(void)context;
	cr_assert(event->kind == EVENT_CALL || event->kind == EVENT_INFERENCE || event->kind == EVENT_PROGRAM);
	return event->kind == EVENT_CALL && event->call.program->id & 1;
}

static void setup(void)
{
	names = trace_names_create();
	text = trace_text_create(names, NULL);
	trace = trace_create(wants, NULL, false);
	cr_assert(names && text && trace);
	report.name = "";
}

static void teardown(void)
{
	cJSON_Delete(json);
	trace_free(trace);
	trace_text_free(text);
	trace_names_free(names);
}

TestSuite(profile_trace_trace_jobs, .init = setup, .fini = teardown);

static void feed(struct event event)
{
	trace_names_event(names, &event);
	cr_assert_eq(trace_event(trace, &event, text, &lost), 0);
}

/* The document of the next interval. */
static void next_document(void)
{
	trace_text_free(text);
	text = trace_text_create(names, NULL);
}

static void finish(void)
{
	const char *after;

	cJSON_Delete(json);
	cr_assert_eq(trace_text_finish(text, &info, &report), 0);
	json = cJSON_ParseWithLengthOpts(report.trace, report.trace_length, &after, false);
	cr_assert_not_null(json, "%.*s", (int)report.trace_length, report.trace);
}

/* Of no program: a copy. */
static void feed_call(__u32 tid, unsigned int depth, __u64 begin, __u64 finished, const struct model_program *program,
		      unsigned int jobs)
{
	feed((struct event){ .kind = EVENT_CALL,
			     .call = { .function = program ? &execute : &copy,
				       .program = program,
				       .start = begin * US,
				       .end = finished * US,
				       .tgid = TGID,
				       .tid = tid,
				       .depth = depth,
				       .sample = 1,
				       .device = { .jobs = jobs } } });
}

static struct event job_of(__u64 id, __u32 tid, __u64 call, __u64 queued)
{
	return (struct event){ .kind = EVENT_JOB,
			       .job = { .queue = &gfx,
					.id = id,
					.name = "",
					.queued = queued * US,
					.runs = (queued + 1) * US,
					.done = (queued + 2) * US,
					.tgid = TGID,
					.tid = tid,
					.target = true,
					.process = &process,
					.program = &wanted,
					.call_start = call * US,
					.time = (queued + 2) * US } };
}

static void feed_ioctl(__u32 tid, __u64 begin, __u64 finished, const char *of)
{
	char *name = strdup(of), *node = strdup("/dev/accel/accel0"), *driver = strdup("qaic");

	feed((struct event){ .kind = EVENT_IOCTL,
			     .ioctl = { .driver = driver,
					.node = node,
					.name = name,
					.role = XPT_EVENT_SUBMIT,
					.tgid = TGID,
					.tid = tid,
					.start = begin * US,
					.end = finished * US } });
	memset(name, '#', strlen(name));
	memset(node, '#', strlen(node));
	memset(driver, '#', strlen(driver));
	free(name);
	free(node);
	free(driver);
}

static void feed_queue(const struct model_queue *queue, __u64 time)
{
	feed((struct event){ .kind = EVENT_QUEUE,
			     .queue = { .queue = queue, .time = time * US, .waiting = (unsigned int)time } });
}

static void feed_device(enum xpt_event_role role, const struct model_queue *queue, const char *driver)
{
	feed((struct event){ .kind = EVENT_DEVICE,
			     .device = { .driver = driver,
					 .event = "device event",
					 .role = role,
					 .queue = queue,
					 .device = queue ? queue->device : "03:00",
					 .engine = "",
					 .name = "",
					 .time = 50 * US,
					 .tgid = TGID,
					 .tid = MAIN,
					 .target = true } });
}

static const cJSON *at(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

static const char *string_at(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(at(object, name)) ?: "";
}

/* Events with this phase and, unless it is NULL, name or category. */
static int count(const char *phase, const char *name)
{
	const cJSON *event;
	int found = 0;

	cJSON_ArrayForEach(event, at(json, "traceEvents"))
		found += !strcmp(string_at(event, "ph"), phase) &&
			 (!name || !strcmp(string_at(event, "name"), name) || !strcmp(string_at(event, "cat"), name));
	return found;
}

static const cJSON *find(const char *phase, const char *name)
{
	const cJSON *event;

	cJSON_ArrayForEach(event, at(json, "traceEvents")) {
		if (!strcmp(string_at(event, "ph"), phase) && !strcmp(string_at(event, "name"), name))
			return event;
	}
	cr_assert_fail("no event %s %s", phase, name);
	return NULL;
}

/* ---- jobs ---- */

Test(profile_trace_trace_jobs, jobs_of_calls_that_are_shown)
{
	struct event others = job_of(5, OTHER, 0, 15);

	feed_call(MAIN, 1, 11, 14, NULL, 1);
	feed_call(MAIN, 0, 10, 20, &wanted, 2);
	feed(job_of(1, MAIN, 11, 12)); /* in the copy within it */
	feed(job_of(2, MAIN, 10, 15));
	feed_call(MAIN, 1, 31, 34, NULL, 1);
	feed_call(MAIN, 0, 30, 40, &unwanted, 2);
	feed(job_of(3, MAIN, 31, 32));
	feed(job_of(4, MAIN, 30, 35));
	others.job.target = false;
	feed(others);
	feed(job_of(6, OTHER, 10, 16)); /* a call of another thread that began at the same time */
	finish();
	cr_assert_eq(count("X", "job,amdgpu"), 2);
	cr_assert_eq(count("s", NULL), 2);
	cr_assert_eq(count("f", NULL), 2);
	cr_assert_eq(count("X", NULL), 4);
	cr_assert_eq(count("M", "process_name"), 1, "its own process is not known here");
	cr_assert_str_eq(string_at(at(find("M", "process_name"), "args"), "name"), "device 03:00 (amdgpu)");
	cr_assert_str_eq(string_at(at(find("M", "thread_name"), "args"), "name"), "gfx_0");
}

/* It was launched in one interval and has ended in the next: no arrow leaves from a call that is not there. */
Test(profile_trace_trace_jobs, jobs_that_end_in_the_next_interval)
{
	double number, again;

	feed_call(MAIN, 0, 10, 20, &wanted, 2);
	feed(job_of(1, MAIN, 10, 12));
	finish();
	cr_assert_eq(count("s", NULL), 1);
	number = at(find("M", "process_name"), "pid")->valuedouble;
	next_document();
	feed_ioctl(MAIN, 100, 101, "WAIT_BO");
	feed(job_of(2, MAIN, 10, 90));
	finish();
	cr_assert_eq(count("X", "job,amdgpu"), 1);
	cr_assert_eq(count("s", NULL), 0);
	cr_assert_eq(count("f", NULL), 0);
	again = at(find("M", "process_name"), "pid")->valuedouble;
	cr_assert_eq(number, again, "the same number in all documents, and its name in each");
}

Test(profile_trace_trace_jobs, devices_keep_their_numbers)
{
	struct event job = job_of(1, MAIN, 10, 12);
	double pid, tid;

	feed_call(MAIN, 0, 10, 20, &wanted, 9);
	feed(job);
	job.job.queue = &npu;
	feed(job);
	finish();
	cr_assert_eq(count("M", "process_name"), 2);
	next_document();
	feed(job);
	job.job.queue = &gfx;
	feed(job);
	finish();
	pid = at(find("X", "wanted"), "pid")->valuedouble;
	tid = at(find("X", "wanted"), "tid")->valuedouble;
	next_document();
	job.job.queue = &npu;
	feed(job);
	finish();
	cr_assert_eq(at(find("X", "wanted"), "pid")->valuedouble, pid);
	cr_assert_eq(at(find("X", "wanted"), "tid")->valuedouble, tid);
}

/* Calls without jobs take no room; of those with jobs the latest are known. */
Test(profile_trace_trace_jobs, calls_that_are_remembered)
{
	unsigned int i;

	feed_call(MAIN, 0, 10, 20, &wanted, 1);
	for (i = 1; i <= 40000; i++)
		feed_call(MAIN, 0, 100 * i, 100 * i + 10, &wanted, 0);
	feed(job_of(1, MAIN, 10, 12));
	finish();
	cr_assert_eq(count("X", "job,amdgpu"), 1);
	for (i = 1; i <= 40000; i++)
		feed_call(MAIN, 0, 10000000 + 100 * i, 10000000 + 100 * i + 10, &wanted, 1);
	next_document();
	feed(job_of(2, MAIN, 10, 12));
	feed(job_of(3, MAIN, 10000000 + 100 * 40000, 12));
	feed(job_of(4, MAIN, 10000000 + 100 * 30000, 22));
	finish();
	cr_assert_eq(count("X", "job,amdgpu"), 2);
}

/* ---- queues and devices ---- */

Test(profile_trace_trace_jobs, load_of_queues_that_are_in_the_document)
{
	feed_queue(&gfx, 5);
	feed_call(MAIN, 0, 10, 20, &wanted, 1);
	feed(job_of(1, MAIN, 10, 12));
	feed_queue(&gfx, 1000);
	feed_queue(&gfx, 1001); /* held back until the end */
	feed_queue(&sdma, 1000);
	finish();
	cr_assert_eq(count("C", "gfx_0 jobs"), 2);
	cr_assert_eq(count("C", "sdma0 jobs"), 0);
	next_document();
	feed_queue(&gfx, 2000);
	finish();
	cr_assert_eq(count("C", NULL), 0);
}

Test(profile_trace_trace_jobs, errors_and_resets_of_devices_that_are_in_the_document)
{
	feed_device(XPT_EVENT_ERROR, &gfx, "amdgpu");
	feed_device(XPT_EVENT_ERROR, NULL, "amdgpu");
	feed_call(MAIN, 0, 10, 20, &wanted, 1);
	feed(job_of(1, MAIN, 10, 12));
	feed_device(XPT_EVENT_ERROR, &gfx, "amdgpu");
	feed_device(XPT_EVENT_RESET, &sdma, "amdgpu");
	feed_device(XPT_EVENT_RESET, NULL, "amdgpu");
	feed_device(XPT_EVENT_RESET, NULL, "xe");
	feed_device(XPT_EVENT_MEMORY, &gfx, "amdgpu");
	finish();
	cr_assert_eq(count("i", "error,amdgpu"), 1);
	cr_assert_eq(count("i", "reset,amdgpu"), 1);
	cr_assert_eq(count("i", NULL), 2);
}

/* ---- ioctls ---- */

Test(profile_trace_trace_jobs, ioctls_in_wanted_calls)
{
	feed_ioctl(MAIN, 5, 6, "BEFORE");
	feed_ioctl(MAIN, 12, 13, "EXECUTE_BO");
	feed_call(MAIN, 1, 11, 14, NULL, 0);
	feed_ioctl(MAIN, 15, 16, "WAIT_BO");
	feed_ioctl(OTHER, 15, 16, "ELSEWHERE");
	feed_call(MAIN, 0, 10, 20, &wanted, 0);
	feed_ioctl(MAIN, 31, 32, "UNWANTED");
	feed_call(MAIN, 0, 30, 40, &unwanted, 0);
	finish();
	cr_assert_eq(count("X", "ioctl,qaic"), 2);
	cr_assert_eq(at(find("X", "ioctl EXECUTE_BO"), "ts")->valuedouble, 12);
	cr_assert_eq(at(find("X", "ioctl WAIT_BO"), "dur")->valuedouble, 1);
	cr_assert_str_eq(string_at(at(find("X", "ioctl WAIT_BO"), "args"), "node"), "/dev/accel/accel0");
	cr_assert_eq(lost, 0);
}

/* A thread that does nothing but ioctls takes no room from those whose calls are still open. */
Test(profile_trace_trace_jobs, ioctls_of_a_thread_without_calls)
{
	unsigned int i;

	feed_call(MAIN, 1, 11, 14, NULL, 0);
	for (i = 0; i < 2 * TRACE_HELD_MAX; i++)
		feed_ioctl(OTHER, 20 + i, 20 + i, "POLL");
	feed_call(MAIN, 0, 10, 1000000, &wanted, 0);
	finish();
	cr_assert_eq(count("X", "copy,nrt"), 0);
	cr_assert_eq(count("X", NULL), 2);
	cr_assert_eq(lost, 0);
}

/* Before the first call of a thread has returned nobody knows that it will: what had no room is counted. */
Test(profile_trace_trace_jobs, many_ioctls_in_one_call)
{
	unsigned int i;

	for (i = 0; i < 1000; i++)
		feed_ioctl(MAIN, 20 + i, 20 + i, "FIRST");
	feed_call(MAIN, 0, 10, 2000, &wanted, 0);
	cr_assert_gt(lost, 0);
	cr_assert_lt(lost, 1000);
	for (i = 0; i < 1000; i++)
		feed_ioctl(MAIN, 3000 + i, 3000 + i, "SECOND");
	feed_call(MAIN, 0, 2500, 5000, &wanted, 0);
	finish();
	cr_assert_eq(count("X", "ioctl FIRST") + (int)lost, 1000);
	cr_assert_eq(count("X", "ioctl SECOND"), 1000);
}
