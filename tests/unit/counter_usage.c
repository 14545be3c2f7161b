/* SPDX-License-Identifier: BSD-2-Clause */
/* What processes use of devices: clients of DRM as kernels print them, and NVIDIA's library by its stand-in. */
#include "counter/usage.h"

#include <errno.h>

#include "tests/unit/counter_fixture.h"
#include "tests/unit/standin/nvml.h"

static struct counter_place place;
static struct nodes nodes;
static struct xpt_device_usage *usage;
static struct xpt_device_use uses[16];
static size_t use_count;

/* A machine with a GPU on PCI, an NPU that is not, and an empty proc. */
static void prepare(void)
{
	fixture_open();
	nvml_use(in_fixture("no-library.so"));
	fixture_device("pci0000:00/0000:03:00.0", "drm", "renderD128", "i915");
	fixture_device("platform/fdab0000.npu", "accel", "accel0", "rocket");
	place = fixture_place(&nodes, 2);
}

static void finish(void)
{
	xpt_device_usage_destroy(usage);
	nodes_free(&nodes);
	fixture_close();
}

TestSuite(counter_usage, .init = prepare, .fini = finish);

static void put(int pid, int descriptor, const char *node, const char *lines)
{
	char path[64], link[64], text[1024];

	snprintf(text, sizeof(text), "pos:\t0\nflags:\t02100002\nmnt_id:\t26\nino:\t284\n%s", lines);
	snprintf(path, sizeof(path), "proc/%d/fdinfo/%d", pid, descriptor);
	fixture_file(path, text);
	snprintf(link, sizeof(link), "proc/%d/fd/%d", pid, descriptor);
	unlink(in_fixture(link));
	fixture_link(link, node);
}

static void put_i915(int pid, int descriptor, int client, unsigned long long render, unsigned long long copy)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "drm-driver:\ti915\ndrm-client-id:\t%d\ndrm-pdev:\t0000:03:00.0\ndrm-resident-system0:\t8 KiB\n"
		 "drm-resident-local0:\t%d KiB\ndrm-engine-render:\t%llu ns\ndrm-engine-copy:\t%llu ns\n",
		 client, client, render, copy);
	put(pid, descriptor, "/dev/dri/renderD128", text);
}

static int on_use(void *context, const struct xpt_device_use *use)
{
	(void)context;
	cr_assert_lt(use_count, 16);
	cr_expect_eq(use->size, sizeof(*use));
	uses[use_count++] = *use;
	return 0;
}

static void read_usage(void)
{
	use_count = 0;
	cr_assert_eq(xpt_device_usage_read(usage, on_use, NULL), 0);
}

static void expect_use(size_t index, int device, int pid, unsigned long long time, unsigned long long memory)
{
	cr_assert_lt(index, use_count, "there are %zu uses", use_count);
	cr_expect_eq(uses[index].index, device, "%d", uses[index].index);
	cr_expect_eq(uses[index].pid, pid, "%d", uses[index].pid);
	cr_expect_eq(uses[index].device_time, time, "process %d: %llu", pid,
		     (unsigned long long)uses[index].device_time);
	cr_expect_eq(uses[index].memory, memory, "process %d: %llu", pid, (unsigned long long)uses[index].memory);
}

/* Time from read to read, of the busiest engine; what there was before the first read is no use. */
Test(counter_usage, processes_share_a_gpu)
{
	put_i915(100, 5, 1, 1000000, 5);
	put_i915(200, 5, 2, 2000000, 7);
	put_i915(200, 6, 2, 2000000, 7);
	cr_assert_eq(device_usage_open(&place, &usage), 0);
	read_usage();
	cr_assert_eq(use_count, 2);
	expect_use(0, 0, 100, 0, 1 << 10);
	expect_use(1, 0, 200, 0, 2 << 10);
	cr_expect(uses[0].has_time && uses[0].has_memory && !strcmp(uses[0].source, "fdinfo"));
	put_i915(100, 5, 1, 1000040, 35);
	put_i915(200, 5, 2, 2000010, 67);
	put_i915(200, 6, 2, 2000010, 67);
	put_i915(300, 4, 3, 20, 0);
	put_i915(200, 7, 4, 0, 9);
	read_usage();
	cr_assert_eq(use_count, 3);
	expect_use(0, 0, 100, 40, 1 << 10);
	expect_use(1, 0, 200, 60 + 9, (2 + 4) << 10);
	expect_use(2, 0, 300, 20, 3 << 10);
	read_usage();
	cr_assert_eq(use_count, 3);
	expect_use(1, 0, 200, 0, (2 + 4) << 10);
}

/* A process has no more of an engine than the time that has passed, and one that has ended nothing any more. */
Test(counter_usage, no_more_than_there_was)
{
	put_i915(100, 5, 1, 0, 0);
	cr_assert_eq(device_usage_open(&place, &usage), 0);
	read_usage();
	put_i915(100, 5, 1, 3600000000000ull, 0);
	read_usage();
	cr_assert_eq(use_count, 1);
	cr_expect_gt(uses[0].device_time, 0);
	cr_expect_lt(uses[0].device_time, 3600000000000ull);
	fixture_remove("proc/100/fdinfo/5");
	fixture_remove("proc/100/fd/5");
	read_usage();
	cr_expect_eq(use_count, 0);
}

/* Cycles count by the clock of the engine, which ran as long as the time between the reads. */
Test(counter_usage, cycles)
{
	const char *const form = "drm-driver:\txe\ndrm-client-id:\t3\ndrm-pdev:\t0000:03:00.0\n"
				 "drm-cycles-rcs:\t%d\ndrm-total-cycles-rcs:\t%d\n"
				 "drm-cycles-vcs:\t0\ndrm-total-cycles-vcs:\t%d\ndrm-engine-capacity-vcs:\t2\n";
	char text[512];

	snprintf(text, sizeof(text), form, 500, 10000, 10000);
	put(100, 5, "/dev/dri/renderD128", text);
	cr_assert_eq(device_usage_open(&place, &usage), 0);
	read_usage();
	cr_assert_eq(use_count, 1);
	cr_expect(uses[0].has_time && !uses[0].has_memory && !uses[0].device_time);
	snprintf(text, sizeof(text), form, 1000, 11000, 11000);
	put(100, 5, "/dev/dri/renderD128", text);
	usleep(20000);
	read_usage();
	cr_assert_eq(use_count, 1);
	cr_expect_geq(uses[0].device_time, 10000000, "half of 20 ms or more: %llu",
		      (unsigned long long)uses[0].device_time);
	snprintf(text, sizeof(text), form, 1000, 12000, 12000);
	put(100, 5, "/dev/dri/renderD128", text);
	read_usage();
	cr_expect_eq(uses[0].device_time, 0);
}

/* Devices that are not on PCI are known by the node; one without time has memory only; unknown ones are passed over. */
Test(counter_usage, other_devices)
{
	put(100, 5, "/dev/accel/accel0", "drm-driver:\trocket\ndrm-client-id:\t1\ndrm-total-memory:\t1 MiB\n");
	put(100, 6, "/dev/dri/renderD128",
	    "drm-driver:\tx\ndrm-pdev:\t0000:99:00.0\ndrm-client-id:\t1\ndrm-engine-a:\t1 ns\n");
	cr_assert_eq(device_usage_open(&place, &usage), 0);
	read_usage();
	cr_assert_eq(use_count, 1);
	expect_use(0, 1, 100, 0, 1 << 20);
	cr_expect(!uses[0].has_time);
	nodes.count = 0;
	place.nodes.count = 0;
	xpt_device_usage_destroy(usage);
	usage = NULL;
	cr_expect_eq(device_usage_open(&place, &usage), -ENODEV);
	nodes.count = 2;
}

Test(counter_usage, nvml)
{
	struct node gpus[] = { { "0000:17:00.0", "nvidia", "/dev/nvidia0", "/nowhere", "10de:2335" },
			       { "0000:65:00.0", "nvidia", "/dev/nvidia1", "/nowhere", "10de:2335" } };
	void *library;
	struct standin_nvml *standin = fixture_nvml(&library);
	double elapsed;

	standin->gpus[0].clients[0] = (struct standin_client){ 100, 60, 1000, 4096 };
	standin->gpus[0].clients[1] = (struct standin_client){ 200, 30, 1000, 1024 };
	standin->gpus[1].clients[0] = (struct standin_client){ 100, 0, 0, ~0ull };
	place.nodes = (struct nodes){ gpus, 2 };
	cr_assert_eq(device_usage_open(&place, &usage), 0);
	read_usage();
	cr_assert_eq(use_count, 2);
	expect_use(0, 0, 100, 0, 4096);
	expect_use(1, 0, 200, 0, 1024);
	cr_expect_str_eq(uses[0].source, "nvml");
	/* Two samples of one process are of times that follow each other. */
	standin->gpus[0].clients[0] = (struct standin_client){ 100, 60, 2000, 4096 };
	standin->gpus[0].clients[2] = (struct standin_client){ 100, 20, 2500, 0 };
	standin->gpus[0].clients[1].time = 2000;
	usleep(10000);
	read_usage();
	cr_assert_eq(use_count, 2);
	elapsed = (double)uses[1].device_time / 0.3;
	cr_expect_geq(elapsed, 10e6 - 10, "%f", elapsed);
	cr_expect_float_eq((double)uses[0].device_time, 0.4 * elapsed, 10);
	cr_expect_eq(uses[0].memory, 4096);
	/* No new samples: only memory. */
	read_usage();
	expect_use(0, 0, 100, 0, 4096);
	cr_expect(!uses[0].has_time);
	xpt_device_usage_destroy(usage);
	usage = NULL;
	cr_expect_eq(standin->initialized, 0);
	dlclose(library);
}
