/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Formats of real kernels against the shipped descriptions. The layouts are written as the kernels print them; what must
 * come out, the offsets and widths, is written a second time as values.
 */
#include "target/tracepoint/tracefs.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "describe/driver/driver.h"
#include "target/tracepoint/driver_events.h"

#define COMMON                                                                         \
	"format:\n"                                                                    \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define FORMAT(name, fields) "name: " name "\nID: 2190\n" COMMON fields "\nprint fmt: \"x=%u\", REC->x\n"
#define FIELD(type, name, offset, size, sign) \
	"\tfield:" type " " name ";\toffset:" #offset ";\tsize:" #size ";\tsigned:" #sign ";\n"
#define STRING(name, offset) FIELD("__data_loc char[]", name, offset, 4, 0)

#define NEW_JOB                                 \
	STRING("name", 8)                       \
	FIELD("u32", "job_count", 12, 4, 0)     \
	FIELD("int", "hw_job_count", 16, 4, 1)  \
	STRING("dev", 20)                       \
	FIELD("u64", "fence_context", 24, 8, 0) \
	FIELD("u64", "fence_seqno", 32, 8, 0) FIELD("u64", "client_id", 40, 8, 0)
#define OLD_JOB                                               \
	FIELD("struct drm_sched_entity *", "entity", 8, 8, 0) \
	FIELD("struct dma_fence *", "fence", 16, 8, 0)        \
	STRING("name", 24)                                    \
	FIELD("uint64_t", "id", 32, 8, 0) FIELD("u32", "job_count", 40, 4, 0) FIELD("int", "hw_job_count", 44, 4, 1)
#define FENCE                  \
	STRING("driver", 8)    \
	STRING("timeline", 12) \
	FIELD("unsigned int", "context", 16, 4, 0) FIELD("unsigned int", "seqno", 20, 4, 0)
#define AMDGPU_6_12                                \
	FIELD("uint64_t", "sched_job_id", 8, 8, 0) \
	STRING("timeline", 16)                     \
	FIELD("unsigned int", "context", 20, 4, 0) \
	FIELD("unsigned int", "seqno", 24, 4, 0)   \
	FIELD("struct dma_fence *", "fence", 32, 8, 0) STRING("ring", 40) FIELD("u32", "num_ibs", 44, 4, 0)
#define AMDGPU_7_3                        \
	STRING("timeline", 8)             \
	FIELD("u64", "context", 16, 8, 0) \
	FIELD("u64", "seqno", 24, 8, 0)   \
	FIELD("struct dma_fence *", "fence", 32, 8, 0) STRING("ring", 40) FIELD("u32", "num_ibs", 44, 4, 0)
#define VIRTIO_6_1                              \
	FIELD("int", "dev", 8, 4, 1)            \
	FIELD("unsigned int", "vq", 12, 4, 0)   \
	FIELD("const char *", "name", 16, 8, 0) \
	FIELD("u32", "type", 24, 4, 0)          \
	FIELD("u32", "flags", 28, 4, 0) FIELD("u64", "fence_id", 32, 8, 0) FIELD("u32", "ctx_id", 40, 4, 0)
#define VIRTIO_6_12                           \
	FIELD("int", "dev", 8, 4, 1)          \
	FIELD("unsigned int", "vq", 12, 4, 0) \
	STRING("name", 16)                    \
	FIELD("u32", "type", 20, 4, 0)        \
	FIELD("u32", "flags", 24, 4, 0)       \
	FIELD("u64", "fence_id", 32, 8, 0)    \
	FIELD("u32", "ctx_id", 40, 4, 0) FIELD("u32", "num_free", 44, 4, 0) FIELD("u32", "seqno", 48, 4, 0)
#define VPU_JOB                                 \
	FIELD("const char *", "event", 8, 8, 0) \
	FIELD("u32", "ctx_id", 16, 4, 0) FIELD("u32", "engine_id", 20, 4, 0) FIELD("u32", "job_id", 24, 4, 0)
#define XDNA_JOB          \
	STRING("name", 8) \
	STRING("str", 12) \
	FIELD("u64", "fence_context", 16, 8, 0) FIELD("u64", "fence_seqno", 24, 8, 0) FIELD("u64", "seq", 32, 8, 0)

/* A folder that looks like tracefs. */
struct fake {
	char path[64];
	struct tracefs tracefs;
	struct drivers *drivers;
};

static void fake_open(struct fake *fake)
{
	char events[96];

	strcpy(fake->path, "/tmp/xputrace-test-XXXXXX");
	cr_assert_not_null(mkdtemp(fake->path));
	snprintf(events, sizeof(events), "%s/events", fake->path);
	cr_assert_eq(mkdir(events, 0755), 0);
	cr_assert_eq(tracefs_open(fake->path, &fake->tracefs), 0);
	cr_assert_eq(drivers_create(NULL, NULL, 0, &fake->drivers), 0);
}

static void fake_close(struct fake *fake)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", fake->path);
	cr_expect_eq(system(command), 0);
	tracefs_close(&fake->tracefs);
	drivers_free(fake->drivers);
}

static void fake_add(const struct fake *fake, const char *system, const char *event, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/events/%s", fake->path, system);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/events/%s/%s", fake->path, system, event);
	cr_assert_eq(mkdir(path, 0755), 0);
	strcat(path, "/format");
	file = fopen(path, "w");
	cr_assert_not_null(file);
	fputs(text, file);
	fclose(file);
}

static struct driver_events find(struct fake *fake, const char *driver)
{
	struct driver_events events;

	cr_assert_eq(driver_events_find(&fake->tracefs, drivers_find(fake->drivers, driver), &events), 0);
	return events;
}

/* One value of an event, as it must have been found. */
static void expect(const struct tracepoint *tracepoint, size_t index, const char *name, unsigned int offset,
		   unsigned int size, enum xpt_access access, bool is_signed)
{
	const struct tracepoint_field *field = &tracepoint->fields[index];

	cr_assert_lt(index, tracepoint->field_count, "%s: only %zu fields", name, tracepoint->field_count);
	cr_expect_str_eq(field->field->name, name);
	cr_expect_eq(field->offset, offset, "%s: at %u", name, field->offset);
	cr_expect_eq(field->size, size, "%s: %u bytes", name, field->size);
	cr_expect_eq(field->access, access, "%s: access %u", name, field->access);
	cr_expect_eq(field->is_signed, is_signed, "%s", name);
}

Test(target_tracepoint_tracefs, scheduler_new)
{
	struct fake fake;
	struct driver_events events;

	fake_open(&fake);
	fake_add(&fake, "gpu_scheduler", "drm_sched_job_queue", FORMAT("drm_sched_job_queue", NEW_JOB));
	fake_add(&fake, "gpu_scheduler", "drm_sched_job_run", FORMAT("drm_sched_job_run", NEW_JOB));
	fake_add(&fake, "gpu_scheduler", "drm_sched_job_done",
		 FORMAT("drm_sched_job_done",
			FIELD("u64", "fence_context", 8, 8, 0) FIELD("u64", "fence_seqno", 16, 8, 0)));
	events = find(&fake, "gpu_scheduler");
	cr_expect_eq(events.state, DRIVER_COMPLETE);
	cr_expect_eq(events.found, 3);
	cr_expect_eq(events.set, &events.driver->sets[0]);
	cr_expect_eq(events.events[0].id, 2190);
	expect(&events.events[0], 0, "fence_context", 24, 8, XPT_ACCESS_NUMBER, false);
	expect(&events.events[0], 1, "fence_seqno", 32, 8, XPT_ACCESS_NUMBER, false);
	expect(&events.events[0], 2, "name", 8, 4, XPT_ACCESS_DATA_LOC, false);
	expect(&events.events[0], 3, "dev", 20, 4, XPT_ACCESS_DATA_LOC, false);
	expect(&events.events[0], 4, "client_id", 40, 8, XPT_ACCESS_NUMBER, false);
	expect(&events.events[0], 5, "job_count", 12, 4, XPT_ACCESS_NUMBER, false);
	expect(&events.events[0], 6, "hw_job_count", 16, 4, XPT_ACCESS_NUMBER, true);
	expect(&events.events[0], 7, "fence_context", 24, 8, XPT_ACCESS_NUMBER, false);
	expect(&events.events[2], 1, "fence_seqno", 16, 8, XPT_ACCESS_NUMBER, false);
	cr_expect_eq(events.events[2].field_count, 2);
	driver_events_free(&events);
	fake_close(&fake);
}

Test(target_tracepoint_tracefs, scheduler_old)
{
	struct fake fake;
	struct driver_events events;

	fake_open(&fake);
	fake_add(&fake, "gpu_scheduler", "drm_sched_job", FORMAT("drm_sched_job", OLD_JOB));
	fake_add(&fake, "gpu_scheduler", "drm_run_job", FORMAT("drm_run_job", OLD_JOB));
	events = find(&fake, "gpu_scheduler");
	cr_expect_eq(events.state, DRIVER_PARTIAL);
	cr_expect_eq(events.found, 2);
	driver_events_free(&events);
	fake_add(&fake, "gpu_scheduler", "drm_sched_process_job",
		 FORMAT("drm_sched_process_job", FIELD("struct dma_fence *", "fence", 8, 8, 0)));
	events = find(&fake, "gpu_scheduler");
	cr_expect_eq(events.state, DRIVER_COMPLETE);
	cr_expect_eq(events.set, &events.driver->sets[1]);
	expect(&events.events[0], 0, "fence", 16, 8, XPT_ACCESS_NUMBER, false);
	expect(&events.events[0], 2, "id", 32, 8, XPT_ACCESS_NUMBER, false);
	expect(&events.events[1], 5, "entity", 8, 8, XPT_ACCESS_NUMBER, false);
	expect(&events.events[2], 0, "fence", 8, 8, XPT_ACCESS_NUMBER, false);
	driver_events_free(&events);
	fake_close(&fake);
}

Test(target_tracepoint_tracefs, amdgpu)
{
	struct fake fake;
	struct driver_events events;
	const struct tracepoint *job;

	fake_open(&fake);
	fake_add(&fake, "amdgpu", "amdgpu_cs_ioctl", FORMAT("amdgpu_cs_ioctl", AMDGPU_6_12));
	events = find(&fake, "amdgpu");
	cr_expect_str_eq(events.set->name, "up to Linux 6.16");
	cr_expect_eq(events.state, DRIVER_PARTIAL);
	job = &events.events[0];
	cr_expect(job->found, "%s", job->reason);
	expect(job, 0, "fence", 32, 8, XPT_ACCESS_NUMBER, false);
	expect(job, 1, "ring", 40, 4, XPT_ACCESS_DATA_LOC, false);
	expect(job, 3, "context", 20, 4, XPT_ACCESS_NUMBER, false);
	expect(job, 4, "sched_job_id", 8, 8, XPT_ACCESS_NUMBER, false);
	cr_expect_eq(events.found, 1);
	driver_events_free(&events);
	fake_close(&fake);

	fake_open(&fake);
	fake_add(&fake, "amdgpu", "amdgpu_cs_ioctl", FORMAT("amdgpu_cs_ioctl", AMDGPU_7_3));
	events = find(&fake, "amdgpu");
	cr_expect_str_eq(events.set->name, "Linux 6.17 and later");
	expect(&events.events[0], 0, "context", 16, 8, XPT_ACCESS_NUMBER, false);
	expect(&events.events[0], 1, "seqno", 24, 8, XPT_ACCESS_NUMBER, false);
	driver_events_free(&events);
	fake_close(&fake);
}

/* The same events with other fields: the fields choose the set. */
Test(target_tracepoint_tracefs, virtio_gpu)
{
	struct fake fake;
	struct driver_events events;

	fake_open(&fake);
	fake_add(&fake, "virtio_gpu", "virtio_gpu_cmd_queue", FORMAT("virtio_gpu_cmd_queue", VIRTIO_6_1));
	fake_add(&fake, "virtio_gpu", "virtio_gpu_cmd_response", FORMAT("virtio_gpu_cmd_response", VIRTIO_6_1));
	events = find(&fake, "virtio_gpu");
	cr_expect_eq(events.state, DRIVER_COMPLETE);
	cr_expect_eq(events.set->pairing, XPT_PAIRING_ORDER);
	expect(&events.events[0], 0, "dev", 8, 4, XPT_ACCESS_NUMBER, true);
	expect(&events.events[0], 2, "fence_id", 32, 8, XPT_ACCESS_NUMBER, false);
	expect(&events.events[0], 4, "name", 16, 8, XPT_ACCESS_KERNEL_STRING, false);
	driver_events_free(&events);
	fake_close(&fake);

	fake_open(&fake);
	fake_add(&fake, "virtio_gpu", "virtio_gpu_cmd_queue", FORMAT("virtio_gpu_cmd_queue", VIRTIO_6_12));
	fake_add(&fake, "virtio_gpu", "virtio_gpu_cmd_response", FORMAT("virtio_gpu_cmd_response", VIRTIO_6_12));
	events = find(&fake, "virtio_gpu");
	cr_expect_eq(events.state, DRIVER_COMPLETE);
	cr_expect_eq(events.set->pairing, XPT_PAIRING_LATEST);
	expect(&events.events[1], 2, "seqno", 48, 4, XPT_ACCESS_NUMBER, false);
	expect(&events.events[1], 4, "name", 16, 4, XPT_ACCESS_DATA_LOC, false);
	driver_events_free(&events);
	fake_close(&fake);
}

Test(target_tracepoint_tracefs, npus)
{
	struct fake fake;
	struct driver_events events;

	fake_open(&fake);
	fake_add(&fake, "vpu", "job", FORMAT("job", VPU_JOB));
	fake_add(&fake, "amdxdna", "xdna_job", FORMAT("xdna_job", XDNA_JOB));
	events = find(&fake, "ivpu");
	cr_expect_eq(events.state, DRIVER_COMPLETE);
	expect(&events.events[0], 0, "ctx_id", 16, 4, XPT_ACCESS_NUMBER, false);
	expect(&events.events[0], 1, "job_id", 24, 4, XPT_ACCESS_NUMBER, false);
	expect(&events.events[0], 2, "engine_id", 20, 4, XPT_ACCESS_NUMBER, false);
	cr_expect_eq(events.events[0].condition.offset, 8);
	cr_expect_eq(events.events[0].condition.access, XPT_ACCESS_KERNEL_STRING);
	driver_events_free(&events);
	events = find(&fake, "amdxdna");
	cr_expect_eq(events.state, DRIVER_COMPLETE);
	cr_expect_eq(events.events[1].condition.offset, 12);
	cr_expect_eq(events.events[1].condition.access, XPT_ACCESS_DATA_LOC);
	cr_expect_str_eq(events.events[1].event->condition.text, "sent to device");
	expect(&events.events[1], 3, "seq", 32, 8, XPT_ACCESS_NUMBER, false);
	driver_events_free(&events);
	fake_close(&fake);
}

/* What is not there, or laid out otherwise, leaves out that event only, and the reason names everything. */
Test(target_tracepoint_tracefs, reasons)
{
	struct fake fake;
	struct driver_events events;
	char wanted[256];

	fake_open(&fake);
	fake_add(&fake, "dma_fence", "dma_fence_init", FORMAT("dma_fence_init", FENCE));
	fake_add(&fake, "dma_fence", "dma_fence_emit",
		 FORMAT("dma_fence_emit",
			STRING("driver", 8) STRING("timeline", 12) FIELD("unsigned int", "context", 16, 4, 0)));
	fake_add(&fake, "dma_fence", "dma_fence_signaled",
		 FORMAT("dma_fence_signaled",
			STRING("driver", 8) STRING("timeline", 12) FIELD("u64", "context", 16, 8, 0)
				FIELD("u32", "seqno", 24, 4, 0)));
	events = find(&fake, "dma_fence");
	cr_expect_eq(events.state, DRIVER_PARTIAL);
	cr_expect(events.events[0].found);
	cr_expect_str_eq(events.events[0].reason, "");
	cr_expect_not(events.events[1].found);
	snprintf(wanted, sizeof(wanted), "dma_fence: dma_fence:dma_fence_emit: field seqno is missing, in %s",
		 fake.tracefs.kernel);
	cr_expect_str_eq(events.events[1].reason, wanted);
	snprintf(wanted, sizeof(wanted),
		 "dma_fence: dma_fence:dma_fence_signaled: field context is 'u64' of 8 bytes, expected 32 bits, in %s",
		 fake.tracefs.kernel);
	cr_expect_str_eq(events.events[2].reason, wanted);
	driver_events_free(&events);
	events = find(&fake, "neuron");
	cr_expect_eq(events.state, DRIVER_ABSENT);
	snprintf(wanted, sizeof(wanted),
		 "neuron: neuron:dma_queue_copy_start: no such tracepoint, in %s (module neuron is not loaded)",
		 fake.tracefs.kernel);
	cr_expect_str_eq(events.events[0].reason, wanted);
	driver_events_free(&events);
	fake_close(&fake);
}

Test(target_tracepoint_tracefs, without_tracefs)
{
	struct driver_events events;
	struct drivers *drivers;
	struct tracefs tracefs;

	cr_assert_eq(drivers_create(NULL, NULL, 0, &drivers), 0);
	cr_assert_eq(driver_events_find(NULL, drivers_find(drivers, "habanalabs"), &events), 0);
	cr_expect_eq(events.state, DRIVER_UNKNOWN);
	cr_expect_eq(events.event_count, 8);
	cr_expect_eq(events.found, 0);
	driver_events_free(&events);
	drivers_free(drivers);
	cr_expect_eq(tracefs_open("/nonexistent", &tracefs), -ENOENT);
	tracefs_close(&tracefs);
	cr_expect_eq(tracefs_open("/proc/self/status", &tracefs), -ENOTDIR);
	tracefs_close(&tracefs);
	cr_expect(strstr(tracefs_advice(-ENOENT), "mount -t tracefs"));
	cr_expect(strstr(tracefs_advice(-ENODEV), "CONFIG_TRACING"));
	cr_expect(strstr(tracefs_advice(-EACCES), "sudo"));
	cr_expect(strstr(tracefs_advice(-EPERM), "lock"));
}

/* The number is the format's; nothing is left open. */
Test(target_tracepoint_tracefs, numbers)
{
	struct fake fake;
	char path[256];
	FILE *file;
	int next;

	fake_open(&fake);
	fake_add(&fake, "toy", "job", "");
	snprintf(path, sizeof(path), "%s/events/toy/job/id", fake.path);
	file = fopen(path, "w");
	cr_assert_not_null(file);
	fputs("1234\n", file);
	fclose(file);
	next = dup(0);
	close(next);
	cr_expect_eq(tracefs_id(&fake.tracefs, "toys", 3, "job"), 1234);
	cr_expect_eq(tracefs_id(&fake.tracefs, "toys", 4, "job"), -ENOENT);
	cr_expect_eq(tracefs_id(&fake.tracefs, "toy", 3, ".."), -ENOENT);
	cr_expect_eq(truncate(path, 0), 0);
	cr_expect_eq(tracefs_id(&fake.tracefs, "toy", 3, "job"), -ENOENT);
	cr_expect_eq(dup(0), next);
	close(next);
	fake_close(&fake);
}

static struct driver *toy(const char *event)
{
	char text[1024];
	struct driver *driver;

	snprintf(text, sizeof(text),
		 "{\"schema\": 1, \"driver\": \"toy\", \"title\": \"Toy\", \"sets\": [{\"events\": [%s]}]}", event);
	cr_assert_eq(driver_parse(NULL, "toy.json", text, strlen(text), &driver), 0);
	return driver;
}

static struct tracepoint parse(const struct driver *driver, const char *text)
{
	struct tracepoint tracepoint;

	cr_assert_eq(tracepoint_parse(&driver->sets[0].events[0], text, strlen(text), &tracepoint), 0);
	return tracepoint;
}

/* Every way in which a field can be laid out. */
Test(target_tracepoint_tracefs, layouts)
{
	struct driver *driver = toy(
		"{\"event\": \"toy:job\", \"role\": \"reset\", \"fields\": {\"device\": \"array:string\", "
		"\"name\": \"relative:string\", \"value\": \"tiny:8\", \"count\": \"half:16?\", "
		"\"size\": \"gone:64?\", \"client\": \"pointer:64|kernel_string\"}}");
	struct tracepoint job =
		parse(driver,
		      FORMAT("job", FIELD("char", "array[16]", 8, 16, 0) FIELD("__rel_loc char[]", "relative", 24, 4, 0)
					    FIELD("s8", "tiny", 28, 1, 1) FIELD("short", "half", 30, 2, 1)
						    FIELD("void *", "pointer", 32, 8, 0)));

	cr_assert(job.found, "%s", job.reason);
	cr_expect_eq(job.field_count, 5);
	expect(&job, 0, "array", 8, 16, XPT_ACCESS_TEXT, false);
	expect(&job, 1, "relative", 24, 4, XPT_ACCESS_RELATIVE, false);
	expect(&job, 2, "tiny", 28, 1, XPT_ACCESS_NUMBER, true);
	expect(&job, 3, "half", 30, 2, XPT_ACCESS_NUMBER, true);
	expect(&job, 4, "pointer", 32, 8, XPT_ACCESS_NUMBER, false);
	driver_free(driver);
}

Test(target_tracepoint_tracefs, hostile)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{ "", "its format is not understood" },
		{ "\n", "its format is not understood" },
		{ "name: job\n", "its format is not understood" },
		{ "name: job\nID: 5\nformat:\n\tfield:u32 a;\toffset:", "its format is not understood" },
		{ FORMAT("other", FIELD("u32", "a", 8, 4, 0)), "its format is that of 'other'" },
		{ FORMAT("job", ""), "field a is missing" },
		{ FORMAT("job", FIELD("u32", "a", 8189, 4, 0)), "field a lies outside of a record: 4 bytes at 8189" },
		{ FORMAT("job", FIELD("u32", "a", -8, 4, 0)), "field a is missing" },
		{ FORMAT("job", FIELD("u32", "a", 99999999999999999999, 4, 0)), "field a is missing" },
		{ FORMAT("job",
			 FIELD("u32", "a", 8, 4, 0) "nonsense {\n" FIELD("u64", "a b;", 8, 8, 0) "\tfield:u64 a;\n"),
		  "" },
		{ FORMAT("job", FIELD("u32", "a[4]", 8, 16, 0)), "field a is 'u32[4]' of 16 bytes, expected 32 bits" },
		{ FORMAT("job", FIELD("u24", "a", 8, 3, 0)), "field a is 'u24' of 3 bytes, expected 32 bits" },
		{ FORMAT("job", STRING("a", 8)), "field a is '__data_loc char[]' of 4 bytes, expected 32 bits" },
	};
	struct driver *driver = toy("{\"event\": \"toy:job\", \"role\": \"reset\", \"fields\": {\"value\": \"a:32\"}}");

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tracepoint job = parse(driver, cases[i].text);

		cr_expect_eq(job.found, cases[i].reason[0] == '\0', "case %zu", i);
		cr_expect_str_eq(job.reason, cases[i].reason, "case %zu: %s", i, job.reason);
	}
	driver_free(driver);
}

/* Cut off anywhere it is refused or understood, and never read beyond. */
Test(target_tracepoint_tracefs, cut_off)
{
	static const char whole[] = FORMAT("job", FIELD("u32", "a", 8, 4, 0));
	struct driver *driver = toy("{\"event\": \"toy:job\", \"role\": \"reset\", \"fields\": {\"value\": \"a:32\"}}");

	for (size_t length = 0; length < sizeof(whole); length++) {
		char *copy = malloc(length ? length : 1); /* of this size, for the address sanitizer */
		struct tracepoint job;

		memcpy(copy, whole, length);
		cr_expect_eq(tracepoint_parse(&driver->sets[0].events[0], copy, length, &job), 0);
		cr_expect(job.found || job.reason[0], "%zu bytes", length);
		/* Whole is what the kernel has begun to say how to print. */
		cr_expect_eq(job.found, length >= strlen(whole) - strlen(" \"x=%u\", REC->x\n"), "%zu bytes", length);
		free(copy);
	}
	driver_free(driver);
}

/* /dev/null is memory device 1:3 on every Linux, and is bound to no driver. */
Test(target_tracepoint_tracefs, device_nodes)
{
	char *patterns[] = { "/dev/nul[l]", "/dev/null", "/dev/zero", "/dev/nothing*", "/dev/disk*" };
	struct driver_ioctls ioctls = { .devices = patterns, .device_count = 5 };
	struct device_nodes nodes;

	cr_assert_eq(device_nodes_find(&ioctls, &nodes), 0);
	cr_assert_eq(nodes.count, 2);
	cr_expect_str_eq(nodes.items[0].path, "/dev/null");
	cr_expect_eq(nodes.items[0].device, makedev(1, 3));
	cr_expect_eq(nodes.items[1].device, makedev(1, 5));
	device_nodes_free(&nodes);
	ioctls.bound = "qaic";
	cr_assert_eq(device_nodes_find(&ioctls, &nodes), 0);
	cr_expect_eq(nodes.count, 0);
	device_nodes_free(&nodes);
}
