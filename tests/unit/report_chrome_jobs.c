/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/chrome/events.h"

#include <errno.h>
#include <stdint.h>

#include "report/chrome/parts.h"
#include "report_trace.h"

#define US 1000ull

static const struct model_process process = { .tgid = 100, .name = "node", .command = "", .sort_index = 0 };
static const struct model_program program = {
	.id = 7,
	.process = &process,
	.runtime = "nrt",
	.name = "resnet50",
	.handle = 0xabc,
};
static const struct model_operator op = { .label = "/fc/Gemm", .type = "FusedGemm" };
static const struct model_function execute = { 1, "nrt_execute", "nrt", 3, XPT_ROLE_EXECUTE, false, 3, false };
static const struct model_queue gfx = { .id = 1, .driver = "amdgpu", .device = "0000:03:00.0", .engine = "gfx_0" };
static const struct model_queue sdma = { .id = 2, .driver = "amdgpu", .device = "0000:03:00.0", .engine = "sdma0" };
static const struct model_queue plain = { .id = 9, .driver = "virtio_gpu", .device = "", .engine = "" };

/* Times in microseconds. */
static struct event job_event(__u64 id, __u64 queued, __u64 runs, __u64 done)
{
	return (struct event){
		.kind = EVENT_JOB,
		.job = {
			.queue = &gfx,
			.id = id,
			.name = "",
			.queued = queued * US,
			.runs = runs * US,
			.done = done * US,
			.tgid = 100,
			.tid = 101,
			.target = true,
			.process = &process,
			.program = &program,
			.call_start = 1,
			.time = (done ? done : 999) * US,
		},
	};
}

static struct event call_event(__u64 start, __u64 finished)
{
	return (struct event){
		.kind = EVENT_CALL,
		.call = { .function = &execute,
			  .program = &program,
			  .start = start * US,
			  .end = finished * US,
			  .tgid = 100,
			  .tid = 101,
			  .sample = 1 },
	};
}

static int phases(const cJSON *json, const char *phase)
{
	const cJSON *event;
	int count = 0;

	cJSON_ArrayForEach(event, at(json, "traceEvents"))
		count += !strcmp(string_at(event, "ph"), phase);
	return count;
}

/* The index-th event of the phase and, unless it is NULL, the name. */
static const cJSON *find(const cJSON *json, const char *phase, const char *name, int index)
{
	const cJSON *event;

	cJSON_ArrayForEach(event, at(json, "traceEvents")) {
		if (!strcmp(string_at(event, "ph"), phase) && (!name || !strcmp(string_at(event, "name"), name)) &&
		    !index--)
			return event;
	}
	cr_assert_fail("no event %s %s", phase, name ? name : "");
	return NULL;
}

/* What the process or track is called; both numbers are unique in the whole document. */
static const char *name_of(const cJSON *json, const char *kind, const char *member, double number)
{
	const cJSON *event;
	const char *name = NULL;

	cJSON_ArrayForEach(event, at(json, "traceEvents")) {
		if (strcmp(string_at(event, "ph"), "M") || strcmp(string_at(event, "name"), kind) ||
		    number_at(event, member) != number)
			continue;
		cr_assert_null(name, "named twice");
		name = string_at(at(event, "args"), "name");
	}
	cr_assert_not_null(name, "%s %f has no name", member, number);
	return name;
}

static const char *track_of(const cJSON *json, const cJSON *event)
{
	return name_of(json, "thread_name", "tid", number_at(event, "tid"));
}

static const char *device_of(const cJSON *json, const cJSON *event)
{
	return name_of(json, "process_name", "pid", number_at(event, "pid"));
}

/* ---- jobs ---- */

Test(report_chrome_jobs, job_of_a_target)
{
	struct event events[2] = { call_event(10, 100), job_event(5, 20, 30, 90) };
	const cJSON *job, *arguments, *from, *to;
	cJSON *json;

	events[1].job.have = 1u << XPT_FIELD_STATUS | 1u << XPT_FIELD_CONTEXT | 1u << XPT_FIELD_CLIENT |
			     1u << XPT_FIELD_COUNT;
	events[1].job.status = -5;
	events[1].job.context = 0x1234;
	events[1].job.client = 42;
	events[1].job.count = 3;
	events[1].job.size = 99;
	events[1].job.op = &op;
	json = document(events, 2);
	job = find(json, "X", "resnet50", 1);
	cr_assert_str_eq(string_at(job, "cat"), "job,amdgpu");
	cr_assert_str_eq(device_of(json, job), "device 0000:03:00.0 (amdgpu)");
	cr_assert_str_eq(track_of(json, job), "gfx_0");
	cr_assert_eq(number_at(job, "ts"), 30);
	cr_assert_eq(number_at(job, "dur"), 60);
	cr_assert_null(at(job, "cname"));
	arguments = at(job, "args");
	cr_assert_eq(number_at(arguments, "job"), 5);
	cr_assert_eq(number_at(arguments, "queued_us"), 20);
	cr_assert_eq(number_at(arguments, "run_us"), 30);
	cr_assert_eq(number_at(arguments, "done_us"), 90);
	cr_assert_eq(number_at(arguments, "queue_us"), 10);
	cr_assert_eq(number_at(arguments, "device_us"), 60);
	cr_assert_eq(number_at(arguments, "pid"), 100);
	cr_assert_eq(number_at(arguments, "tid"), 101);
	cr_assert_str_eq(string_at(arguments, "process"), "node");
	cr_assert_str_eq(string_at(arguments, "program"), "resnet50");
	cr_assert_eq(number_at(arguments, "program_id"), 7);
	cr_assert_str_eq(string_at(arguments, "operator"), "/fc/Gemm");
	cr_assert_str_eq(string_at(arguments, "op_name"), "FusedGemm");
	cr_assert_eq(number_at(arguments, "status"), -5);
	cr_assert_str_eq(string_at(arguments, "context"), "0x1234");
	cr_assert_eq(number_at(arguments, "client"), 42);
	cr_assert_eq(number_at(arguments, "count"), 3);
	cr_assert_null(at(arguments, "size"), "what it had not");
	cr_assert_null(at(arguments, "failed"));
	/* An arrow from within the call to the job. */
	from = find(json, "s", "job", 0);
	to = find(json, "f", "job", 0);
	cr_assert_eq(number_at(from, "pid"), 100);
	cr_assert_eq(number_at(from, "tid"), 101);
	cr_assert_eq(number_at(from, "ts"), 20);
	cr_assert_eq(number_at(to, "pid"), number_at(job, "pid"));
	cr_assert_eq(number_at(to, "tid"), number_at(job, "tid"));
	cr_assert_eq(number_at(to, "ts"), 30);
	cr_assert_str_eq(string_at(to, "bp"), "e");
	cr_assert_str_eq(string_at(from, "id"), string_at(to, "id"));
	cr_assert_str_eq(string_at(from, "cat"), "flow,amdgpu");
	cr_assert_str_eq(string_at(to, "cat"), "flow,amdgpu");
	cJSON_Delete(json);
}

Test(report_chrome_jobs, names_are_the_jobs_the_programs_or_none)
{
	struct event events[3] = { job_event(1, 1, 2, 3), job_event(2, 3, 4, 5), job_event(3, 5, 6, 7) };
	cJSON *json;

	events[0].job.name = "RUNTIME \"x\"";
	events[2].job.program = NULL;
	json = document(events, 3);
	find(json, "X", "RUNTIME \"x\"", 0);
	find(json, "X", "resnet50", 0);
	find(json, "X", "job", 0);
	cJSON_Delete(json);
}

Test(report_chrome_jobs, job_of_others_stands_back)
{
	struct event events[2] = { job_event(1, 1, 2, 3), job_event(2, 3, 4, 5) };
	const cJSON *job;
	cJSON *json;

	events[0].job.target = events[1].job.target = false;
	events[0].job.process = events[1].job.process = NULL;
	events[0].job.program = events[1].job.program = NULL;
	events[1].job.tgid = events[1].job.tid = 0;
	events[1].job.failed = true;
	json = document(events, 2);
	job = find(json, "X", "job", 0);
	cr_assert_str_eq(string_at(job, "cat"), "job,other,amdgpu");
	cr_assert_str_eq(string_at(job, "cname"), "grey");
	cr_assert_eq(number_at(at(job, "args"), "pid"), 100);
	cr_assert_null(at(at(job, "args"), "process"));
	cr_assert_null(at(at(job, "args"), "operator"));
	job = find(json, "X", "job", 1);
	cr_assert_str_eq(string_at(job, "cname"), "terrible");
	cr_assert(cJSON_IsTrue(at(at(job, "args"), "failed")));
	cr_assert_null(at(at(job, "args"), "pid"), "who submitted it was not seen");
	cr_assert_eq(phases(json, "s"), 0);
	cr_assert_eq(phases(json, "f"), 0);
	cJSON_Delete(json);
}

/* An end that was not seen is not made up. */
Test(report_chrome_jobs, jobs_of_which_a_part_was_seen)
{
	struct event events[4] = { job_event(1, 10, 0, 0), job_event(2, 20, 30, 0), job_event(3, 0, 40, 50),
				   job_event(4, 60, 0, 70) };
	const cJSON *job;
	cJSON *json = document(events, 4);

	job = find(json, "i", "job not run: resnet50", 0);
	cr_assert_eq(number_at(job, "ts"), 10);
	cr_assert_str_eq(string_at(job, "s"), "t");
	cr_assert_str_eq(track_of(json, job), "gfx_0");
	cr_assert_null(at(at(job, "args"), "run_us"));
	cr_assert_null(at(at(job, "args"), "queue_us"));
	job = find(json, "i", "job not done: resnet50", 0);
	cr_assert_eq(number_at(job, "ts"), 30);
	cr_assert_eq(number_at(at(job, "args"), "queue_us"), 10);
	cr_assert_null(at(at(job, "args"), "device_us"));
	cr_assert_null(at(at(job, "args"), "done_us"));
	job = find(json, "X", "resnet50", 0);
	cr_assert_eq(number_at(job, "ts"), 40);
	cr_assert_null(at(at(job, "args"), "queued_us"));
	/* Drivers that do not tell when a job is handed over: all the time that it was theirs. */
	job = find(json, "X", "resnet50", 1);
	cr_assert_eq(number_at(job, "ts"), 60);
	cr_assert_eq(number_at(job, "dur"), 10);
	cr_assert_null(at(at(job, "args"), "run_us"));
	cr_assert_null(at(at(job, "args"), "device_us"));
	cr_assert_eq(phases(json, "s"), 1, "without both of its ends there is no arrow");
	cr_assert_eq(phases(json, "f"), 1);
	cJSON_Delete(json);
}

Test(report_chrome_jobs, no_arrow_without_a_call)
{
	struct event event = job_event(1, 1, 2, 3);
	cJSON *json;

	event.job.call_start = 0;
	json = document(&event, 1);
	cr_assert_eq(phases(json, "X"), 1);
	cr_assert_eq(phases(json, "s"), 0);
	cr_assert_eq(phases(json, "f"), 0);
	cJSON_Delete(json);
}

/* ---- tracks ---- */

Test(report_chrome_jobs, a_track_for_each_queue_and_lane)
{
	struct event events[6] = {
		job_event(1, 1, 10, 20),  job_event(2, 1, 15, 25), job_event(3, 1, 20, 30),
		job_event(4, 30, 35, 36), job_event(5, 1, 16, 18), job_event(6, 1, 2, 3),
	};
	cJSON *json;
	const cJSON *event;

	events[3].job.queue = &sdma;
	events[5].job.queue = &plain;
	json = document(events, 6);
	cr_assert_str_eq(track_of(json, find(json, "X", NULL, 0)), "gfx_0");
	cr_assert_str_eq(track_of(json, find(json, "X", NULL, 1)), "gfx_0 (2)");
	cr_assert_str_eq(track_of(json, find(json, "X", NULL, 2)), "gfx_0", "it is free again");
	cr_assert_str_eq(track_of(json, find(json, "X", NULL, 3)), "sdma0");
	cr_assert_str_eq(track_of(json, find(json, "X", NULL, 4)), "gfx_0 (3)");
	cr_assert_str_eq(track_of(json, find(json, "X", NULL, 5)), "queue");
	cr_assert_str_eq(device_of(json, find(json, "X", NULL, 3)), "device 0000:03:00.0 (amdgpu)");
	cr_assert_str_eq(device_of(json, find(json, "X", NULL, 5)), "device (virtio_gpu)");
	cr_assert_eq(number_at(find(json, "X", NULL, 0), "pid"), number_at(find(json, "X", NULL, 3), "pid"));
	cJSON_ArrayForEach(event, at(json, "traceEvents")) {
		if (!strcmp(string_at(event, "name"), "process_sort_index"))
			cr_assert_gt(number_at(at(event, "args"), "sort_index"), 1 << 22, "behind the processes");
		if (!strcmp(string_at(event, "name"), "thread_sort_index"))
			cr_assert_eq(number_at(at(event, "args"), "sort_index"), number_at(event, "tid"));
	}
	cJSON_Delete(json);
}

#define MANY 3000

/* Jobs at random, reported late: on each track they lie one after the other, and none is missing. */
Test(report_chrome_jobs, no_two_overlap_on_a_track)
{
	static struct event events[MANY];
	static double begin[MANY], finish[MANY], track[MANY];
	unsigned int seed = 3, i, j, count = 0;
	__u64 now = 10000;
	const cJSON *event;
	cJSON *json;

	for (i = 0; i < MANY; i++) {
		__u64 done = now - rand_r(&seed) % 300;

		events[i] = job_event(i + 1, done - 120, done - rand_r(&seed) % 90, done);
		now += rand_r(&seed) % 30;
	}
	json = document(events, MANY);
	cJSON_ArrayForEach(event, at(json, "traceEvents")) {
		if (strcmp(string_at(event, "ph"), "X"))
			continue;
		begin[count] = number_at(event, "ts");
		finish[count] = begin[count] + number_at(event, "dur");
		track[count++] = number_at(event, "tid");
	}
	cr_assert_eq(count, MANY);
	for (i = 0; i < count; i++)
		for (j = i + 1; j < count; j++)
			cr_assert(track[i] != track[j] || finish[i] <= begin[j] || finish[j] <= begin[i]);
	cr_assert_eq(phases(json, "s"), MANY);
	cr_assert_eq(phases(json, "f"), MANY);
	cJSON_Delete(json);
}

Test(report_chrome_jobs, more_at_once_than_there_are_tracks)
{
	static struct event events[CHROME_LANES_MAX + 3];
	const cJSON *begin, *finish;
	cJSON *json;
	int i;

	for (i = 0; i < CHROME_LANES_MAX + 3; i++)
		events[i] = job_event(i + 1, 1, 10, 100 + i);
	json = document(events, CHROME_LANES_MAX + 3);
	cr_assert_eq(phases(json, "X"), CHROME_LANES_MAX);
	cr_assert_eq(phases(json, "b"), 3);
	cr_assert_eq(phases(json, "e"), 3);
	begin = find(json, "b", "resnet50", 2);
	finish = find(json, "e", "resnet50", 2);
	cr_assert_eq(number_at(begin, "ts"), 10);
	cr_assert_eq(number_at(finish, "ts"), 100 + CHROME_LANES_MAX + 2);
	cr_assert_str_eq(string_at(begin, "id"), string_at(finish, "id"));
	cr_assert_str_eq(string_at(begin, "cat"), string_at(finish, "cat"));
	cr_assert_eq(number_at(at(begin, "args"), "job"), CHROME_LANES_MAX + 3);
	cJSON_Delete(json);
}

/* ---- load ---- */

static struct event queue_event(__u64 time, unsigned int waiting, unsigned int running, __u64 busy)
{
	return (struct event){ .kind = EVENT_QUEUE, .queue = { &gfx, time * US, waiting, running, busy * US } };
}

Test(report_chrome_jobs, counters_of_a_queue)
{
	struct event events[6] = {
		queue_event(1000, 1, 0, 0),	queue_event(2000, 0, 1, 0),	queue_event(6000, 0, 0, 4000),
		queue_event(12000, 0, 1, 4000), queue_event(13500, 0, 0, 5500), queue_event(13501, 1, 0, 5500),
	};
	const cJSON *counter;
	cJSON *json = document(events, 6);
	int i;

	for (i = 0; i < 6; i++) {
		counter = find(json, "C", "gfx_0 jobs", i);
		cr_assert_eq(number_at(counter, "ts"), events[i].queue.time / US);
		cr_assert_eq(number_at(at(counter, "args"), "waiting"), events[i].queue.waiting);
		cr_assert_eq(number_at(at(counter, "args"), "running"), events[i].queue.running);
		cr_assert_str_eq(device_of(json, counter), "device 0000:03:00.0 (amdgpu)");
	}
	/* 4 of the 10 ms from the first event on; then 1.5 of the 2.501 that there are; then nothing. */
	counter = find(json, "C", "gfx_0 busy", 0);
	cr_assert_eq(number_at(counter, "ts"), 1000);
	cr_assert_float_eq(number_at(at(counter, "args"), "percent"), 40, 1e-9);
	counter = find(json, "C", "gfx_0 busy", 1);
	cr_assert_eq(number_at(counter, "ts"), 11000);
	cr_assert_float_eq(number_at(at(counter, "args"), "percent"), 59.98, 1e-9);
	counter = find(json, "C", "gfx_0 busy", 2);
	cr_assert_eq(number_at(counter, "ts"), 13501);
	cr_assert_eq(number_at(at(counter, "args"), "percent"), 0);
	cr_assert_eq(phases(json, "C"), 9);
	cJSON_Delete(json);
}

Test(report_chrome_jobs, a_queue_that_changes_all_the_time_does_not_fill_the_trace)
{
	struct event *events = calloc(50000, sizeof(*events));
	cJSON *json;
	int i;

	cr_assert_not_null(events);
	for (i = 0; i < 50000; i++)
		events[i] = queue_event(1000 + i, i % 7, i % 2, i / 2);
	json = document(events, 50000);
	free(events);
	/* 50 ms: so many steps, each with six points at most; and six windows. */
	cr_assert_leq(phases(json, "C"), 501 * DEPTH_POINTS_MAX + 7);
	cr_assert_geq(phases(json, "C"), 500);
	cJSON_Delete(json);
}

Test(report_chrome_jobs, a_flush_brings_the_present_load)
{
	const struct event events[3] = { queue_event(1000, 1, 0, 0), queue_event(1010, 0, 1, 0),
					 queue_event(1050, 0, 0, 40) };
	char *path = temporary();
	struct event_file *writer = create(path);
	struct model *model = empty_model();
	const cJSON *counter;
	cJSON *json;
	int i;

	for (i = 0; i < 3; i++)
		write_event(writer, &events[i]);
	for (i = 0; i < 2; i++)
		cr_assert_eq(event_file_flush(writer), 0);
	json = parse_file(path);
	counter = find(json, "C", "gfx_0 jobs", 2);
	cr_assert_eq(number_at(counter, "ts"), 1050);
	cr_assert_eq(number_at(at(counter, "args"), "running"), 0);
	cr_assert_float_eq(number_at(at(find(json, "C", "gfx_0 busy", 0), "args"), "percent"), 80, 1e-9);
	counter = find(json, "C", "gfx_0 busy", 1);
	cr_assert_eq(number_at(counter, "ts"), 1050);
	cr_assert_eq(number_at(at(counter, "args"), "percent"), 0);
	cr_assert_eq(phases(json, "C"), 5, "nothing twice");
	cJSON_Delete(json);
	cr_assert_eq(event_file_close(writer, model), 0);
	model_free(model);
	unlink(path);
	free(path);
}

/* ---- devices, ioctls ---- */

static struct event device_event(enum xpt_event_role role, const char *name)
{
	return (struct event){
		.kind = EVENT_DEVICE,
		.device = { .driver = "amdgpu",
			    .event = name,
			    .role = role,
			    .device = "0000:03:00.0",
			    .engine = "gfx_0",
			    .name = "",
			    .time = 50 * US },
	};
}

Test(report_chrome_jobs, what_happens_to_a_device)
{
	struct event events[4] = {
		device_event(XPT_EVENT_ERROR, "amdgpu:hang"),
		device_event(XPT_EVENT_RESET, "amdgpu:reset"),
		device_event(XPT_EVENT_MEMORY, "amdgpu:bo_create"),
		device_event(XPT_EVENT_MEMORY, "amdgpu:bo_move"),
	};
	const cJSON *event;
	cJSON *json;

	events[0].device.queue = &gfx;
	events[0].device.job = 5;
	events[0].device.name = "shader";
	events[0].device.have = 1u << XPT_FIELD_STATUS | 1u << XPT_FIELD_VALUE;
	events[0].device.status = -62;
	events[0].device.value = 8;
	events[1].device.device = "";
	events[1].device.engine = "";
	events[2].device.tgid = 100;
	events[2].device.tid = 101;
	events[2].device.target = true;
	events[2].device.have = 1u << XPT_FIELD_SIZE | 1u << XPT_FIELD_ADDRESS;
	events[2].device.size = 4096;
	events[2].device.address = 0xffff888012345678;
	events[3].device.tgid = 300;
	events[3].device.tid = 301;
	json = document(events, 4);
	event = find(json, "i", "amdgpu:hang", 0);
	cr_assert_str_eq(string_at(event, "s"), "p");
	cr_assert_str_eq(string_at(event, "cat"), "error,amdgpu");
	cr_assert_str_eq(string_at(event, "cname"), "terrible");
	cr_assert_str_eq(device_of(json, event), "device 0000:03:00.0 (amdgpu)");
	cr_assert_str_eq(track_of(json, event), "gfx_0");
	cr_assert_eq(number_at(event, "ts"), 50);
	cr_assert_eq(number_at(at(event, "args"), "job"), 5);
	cr_assert_eq(number_at(at(event, "args"), "status"), -62);
	cr_assert_eq(number_at(at(event, "args"), "value"), 8);
	cr_assert_str_eq(string_at(at(event, "args"), "engine"), "gfx_0");
	cr_assert_str_eq(string_at(at(event, "args"), "name"), "shader");
	event = find(json, "i", "amdgpu:reset", 0);
	cr_assert_str_eq(string_at(event, "cat"), "reset,amdgpu");
	cr_assert_str_eq(device_of(json, event), "device (amdgpu)");
	cr_assert_eq(number_at(event, "tid"), number_at(event, "pid"));
	cr_assert_null(at(at(event, "args"), "engine"));
	cr_assert_null(at(at(event, "args"), "device"));
	/* Memory: in the call that wanted it, where that is traced. */
	event = find(json, "i", "amdgpu:bo_create", 0);
	cr_assert_str_eq(string_at(event, "s"), "t");
	cr_assert_str_eq(string_at(event, "cat"), "memory,amdgpu");
	cr_assert_null(at(event, "cname"));
	cr_assert_eq(number_at(event, "pid"), 100);
	cr_assert_eq(number_at(event, "tid"), 101);
	cr_assert_eq(number_at(at(event, "args"), "size"), 4096);
	cr_assert_str_eq(string_at(at(event, "args"), "address"), "0xffff888012345678");
	event = find(json, "i", "amdgpu:bo_move", 0);
	cr_assert_str_eq(device_of(json, event), "device 0000:03:00.0 (amdgpu)");
	cr_assert_eq(number_at(at(event, "args"), "tid"), 301);
	cJSON_Delete(json);
}

Test(report_chrome_jobs, ioctls_lie_in_their_calls)
{
	struct event events[3] = { { .kind = EVENT_IOCTL }, { .kind = EVENT_IOCTL }, call_event(10, 100) };
	const cJSON *event;
	cJSON *json;

	events[0].ioctl = (struct event_ioctl){ .driver = "qaic",
						.node = "/dev/accel/accel0",
						.name = "EXECUTE_BO",
						.role = XPT_EVENT_SUBMIT,
						.tgid = 100,
						.tid = 101,
						.start = 20 * US,
						.end = 25 * US,
						.command = 0xc0186444,
						.result = 0 };
	events[1].ioctl = events[0].ioctl;
	events[1].ioctl.name = "0x6499";
	events[1].ioctl.role = 0;
	events[1].ioctl.result = -110;
	json = document(events, 3);
	event = find(json, "X", "ioctl EXECUTE_BO", 0);
	cr_assert_str_eq(string_at(event, "cat"), "ioctl,qaic");
	cr_assert_eq(number_at(event, "pid"), 100);
	cr_assert_eq(number_at(event, "tid"), 101);
	cr_assert_eq(number_at(event, "ts"), 20);
	cr_assert_eq(number_at(event, "dur"), 5);
	cr_assert_null(at(event, "cname"));
	cr_assert_str_eq(string_at(at(event, "args"), "node"), "/dev/accel/accel0");
	cr_assert_str_eq(string_at(at(event, "args"), "role"), "submit");
	cr_assert_str_eq(string_at(at(event, "args"), "command"), "0xc0186444");
	cr_assert_eq(number_at(at(event, "args"), "result"), 0);
	cr_assert_null(at(at(event, "args"), "failed"));
	event = find(json, "X", "ioctl 0x6499", 0);
	cr_assert_str_eq(string_at(event, "cname"), "terrible");
	cr_assert_eq(number_at(at(event, "args"), "result"), -110);
	cr_assert(cJSON_IsTrue(at(at(event, "args"), "failed")));
	cr_assert_null(at(at(event, "args"), "role"));
	cJSON_Delete(json);
}

/* ---- what calls say of their device work ---- */

static cJSON *call_with(struct model_device_times device, const cJSON **reported)
{
	struct event event = call_event(10, 100);
	cJSON *json;

	event.call.device = device;
	json = document(&event, 1);
	*reported = at(at(find(json, "X", NULL, 0), "args"), "device");
	return json;
}

Test(report_chrome_jobs, device_work_of_a_call)
{
	const cJSON *reported;
	cJSON *json = call_with((struct model_device_times){ .submit_begins = 11000,
							     .submit_ends = 14000,
							     .runs = 15000,
							     .jobs = 5,
							     .unfinished = 1,
							     .failed = 2,
							     .device_time = 40000,
							     .queue_time = 7500,
							     .busy_time = 30000 },
				&reported);

	cr_assert_eq(number_at(reported, "jobs"), 5);
	cr_assert_eq(number_at(reported, "unfinished"), 1);
	cr_assert_eq(number_at(reported, "failed"), 2);
	cr_assert_eq(number_at(reported, "device_us"), 40);
	cr_assert_eq(number_at(reported, "queue_us"), 7.5);
	cr_assert_eq(number_at(reported, "busy_us"), 30);
	cr_assert_eq(number_at(reported, "submit_us"), 3);
	cJSON_Delete(json);
	json = call_with((struct model_device_times){ .submit_begins = 11000, .submit_ends = 14000 }, &reported);
	cr_assert_eq(cJSON_GetArraySize(reported), 1, "ioctls without jobs");
	cr_assert_eq(number_at(reported, "submit_us"), 3);
	cJSON_Delete(json);
	json = call_with((struct model_device_times){ .jobs = 2 }, &reported);
	cr_assert_eq(cJSON_GetArraySize(reported), 1, "nothing else was seen");
	cJSON_Delete(json);
	/* All still with the device: that nothing has ended is no time of 0. */
	json = call_with((struct model_device_times){ .jobs = 2, .unfinished = 2, .runs = 15000 }, &reported);
	cr_assert_null(at(reported, "device_us"));
	cJSON_Delete(json);
	json = call_with((struct model_device_times){ 0 }, &reported);
	cr_assert_null(reported);
	cJSON_Delete(json);
}

Test(report_chrome_jobs, device_work_of_an_inference)
{
	struct event event = { .kind = EVENT_INFERENCE,
			       .inference = { .program = &program,
					      .function = &execute,
					      .id = 3,
					      .start = 10 * US,
					      .end = 100 * US,
					      .tgid = 100,
					      .tid = 101,
					      .device = { .jobs = 1, .runs = 20 * US, .device_time = 30 * US } } };
	cJSON *json = document(&event, 1);

	cr_assert_eq(number_at(at(at(find(json, "b", NULL, 0), "args"), "device"), "device_us"), 30);
	cJSON_Delete(json);
}

/* ---- what comes from outside ---- */

Test(report_chrome_jobs, hostile_strings)
{
	static struct event events[255 * 4];
	static char bytes[255][4];
	static struct model_queue queues[255];
	struct model_program odd = program;
	unsigned int i;
	cJSON *json;

	odd.name = "\x1b\"\\\xff";
	for (i = 0; i < 255; i++) {
		bytes[i][0] = (char)(i + 1);
		bytes[i][1] = i >= 0xe0 ? '\x9f' : '"';
		bytes[i][2] = i % 2 ? '\\' : 0;
		queues[i] = (struct model_queue){
			.id = i + 1, .driver = bytes[i], .device = bytes[i], .engine = bytes[i]
		};
		events[4 * i] = job_event(i + 1, 1, 2, 3);
		events[4 * i].job.queue = &queues[i];
		events[4 * i].job.name = i % 3 ? bytes[i] : "";
		events[4 * i].job.program = i % 2 ? &odd : NULL;
		events[4 * i + 1] = queue_event(1, 2, 3, 4);
		events[4 * i + 1].queue.queue = &queues[i];
		events[4 * i + 2] = device_event(XPT_EVENT_ERROR, bytes[i]);
		events[4 * i + 2].device.driver = events[4 * i + 2].device.device = bytes[i];
		events[4 * i + 2].device.engine = events[4 * i + 2].device.name = bytes[i];
		events[4 * i + 3] = (struct event){ .kind = EVENT_IOCTL,
						    .ioctl = { bytes[i], bytes[i], bytes[i], 0, 1, 1, 5, 2, 0, 0 } };
	}
	json = document(events, 255 * 4);
	cr_assert_eq(phases(json, "X"), 255 * 2);
	cr_assert_eq(phases(json, "i"), 255);
	cr_assert_eq(phases(json, "C"), 255);
	cJSON_Delete(json);
}

/* Times that cannot be: nothing that is not a number comes of them. */
Test(report_chrome_jobs, hostile_times)
{
	struct event events[5] = { job_event(1, 0, 0, 0), job_event(2, 0, 0, 5), job_event(3, 0, 0, 0),
				   queue_event(0, UINT32_MAX, UINT32_MAX, 0), queue_event(0, 0, 0, 0) };
	cJSON *json;

	events[2].job.runs = events[2].job.queued = 1;
	events[2].job.done = UINT64_MAX;
	events[4].queue.time = events[4].queue.busy_time = UINT64_MAX;
	json = document(events, 5);
	cr_assert_eq(phases(json, "X"), 1);
	cr_assert_eq(phases(json, "i"), 2);
	cJSON_Delete(json);
}

/* ---- the state of a document by itself ---- */

Test(report_chrome_jobs, names_come_again_when_they_were_lost)
{
	struct text text = { 0 };
	static struct chrome_events events;
	struct event event = job_event(1, 1, 2, 3);
	size_t first, second;

	events.text = &text;
	events.jobs.devices = chrome_devices_create();
	chrome_events_add(&events, &event);
	first = text.length;
	cr_assert(chrome_jobs_have_queue(&events.jobs, gfx.id));
	cr_assert_not(chrome_jobs_have_queue(&events.jobs, sdma.id));
	cr_assert(chrome_jobs_have_device(&events.jobs, "amdgpu", "0000:03:00.0"));
	cr_assert_not(chrome_jobs_have_device(&events.jobs, "amdgpu", "0000:04:00.0"));
	cr_assert_gt(chrome_jobs_bytes(&events.jobs), 0);
	event = job_event(2, 4, 5, 6);
	chrome_events_add(&events, &event);
	second = text.length - first;
	cr_assert_lt(second, first);
	chrome_jobs_forget_names(&events.jobs);
	event = job_event(3, 7, 8, 9);
	first = text.length;
	chrome_events_add(&events, &event);
	cr_assert_not_null(memmem(text.data + first, text.length - first, "process_name", 12));
	cr_assert_not_null(memmem(text.data + first, text.length - first, "thread_name", 11));
	cr_assert_gt(text.length - first, second);
	chrome_devices_free(events.jobs.devices);
	chrome_events_free(&events);
	text_free(&text);
}

Test(report_chrome_jobs, without_devices_nothing_is_shown)
{
	struct text text = { 0 };
	static struct chrome_events events;
	struct event event[3] = { job_event(1, 1, 2, 3), queue_event(1, 2, 3, 4),
				  device_event(XPT_EVENT_RESET, "reset") };

	events.text = &text;
	for (int i = 0; i < 3; i++)
		chrome_events_add(&events, &event[i]);
	cr_assert_eq(text.length, 0);
	cr_assert_eq(text.error, 0);
	chrome_events_free(&events);
	text_free(&text);
}

/* ---- numbers of devices ---- */

Test(report_chrome_jobs, numbers)
{
	struct chrome_devices *devices = chrome_devices_create();

	cr_assert_eq(chrome_devices_find(devices, "amdgpu", "0000:03:00.0"), 0);
	cr_assert_eq(chrome_devices_number(devices, "amdgpu", "0000:03:00.0"), 1);
	cr_assert_eq(chrome_devices_number(devices, "amdgpu", "0000:04:00.0"), 2);
	cr_assert_eq(chrome_devices_number(devices, "amdgpu", ""), 3);
	cr_assert_eq(chrome_devices_number(devices, "xe", "0000:03:00.0"), 4, "another driver");
	cr_assert_eq(chrome_devices_number(devices, "amdgpu", "0000:03:00.0"), 1);
	cr_assert_eq(chrome_devices_number(devices, "amdgpu0000:03:00.0", ""), 5, "where the two meet counts");
	cr_assert_eq(chrome_devices_find(devices, "xe", "0000:03:00.0"), 4);
	chrome_devices_free(devices);
	chrome_devices_free(NULL);
}

Test(report_chrome_jobs, too_many_are_one)
{
	struct chrome_devices *devices = chrome_devices_create();
	char name[16];
	unsigned int i;

	for (i = 0; i < CHROME_DEVICES_MAX; i++) {
		snprintf(name, sizeof(name), "%u", i);
		cr_assert_eq(chrome_devices_number(devices, "toy", name), i + 1);
	}
	cr_assert_eq(chrome_devices_number(devices, "toy", "x"), CHROME_DEVICES_OTHERS);
	cr_assert_eq(chrome_devices_number(devices, "toy", "y"), CHROME_DEVICES_OTHERS);
	cr_assert_eq(chrome_devices_number(devices, "toy", "7"), 8);
	chrome_devices_free(devices);
}

/* Of all that there can be: apart from real processes and threads, from each other, and within 31 bits. */
Test(report_chrome_jobs, ranges)
{
	__u32 last_pid = chrome_device_pid(CHROME_DEVICES_OTHERS), first_tid = chrome_queue_tid(0, 0);
	__u32 last_tid = chrome_queue_tid(MODEL_QUEUES_MAX + 1, CHROME_LANES_MAX - 1);

	cr_assert_gt(chrome_device_pid(1), 1u << 22);
	cr_assert_lt(last_pid, first_tid);
	cr_assert_lt(last_tid, 1u << 31);
	cr_assert_eq(chrome_queue_tid(1, CHROME_LANES_MAX - 1) + 1, chrome_queue_tid(2, 0));
}
