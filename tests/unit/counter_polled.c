/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters that are files of sysfs, and what holds for all that are polled. */
#include "counter/polled.h"

#include <errno.h>

#include "counter/polled.h"
#include "tests/unit/counter_fixture.h"

#define NPU "sys/devices/pci0000:00/0000:00:0b.0"
#define AMD "sys/devices/pci0000:00/0000:03:00.0"
#define ARC "sys/devices/pci0000:00/0000:04:00.0"

static struct nodes nodes;
static char said[1024];

static void keep(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	(void)level;
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s\n", text);
}

static const struct log log_kept = { keep, NULL, XPT_LOG_DEBUG };

static void place_open(struct counter_place *place)
{
	cr_assert_eq(nodes_find(in_fixture("sys"), &nodes), 0);
	*place = (struct counter_place){
		.sysfs = strdup(in_fixture("sys")), .proc = strdup(in_fixture("proc")), .nodes = nodes, .log = &log_kept
	};
}

static void place_close(struct counter_place *place)
{
	free((char *)place->sysfs);
	free((char *)place->proc);
	nodes_free(&nodes);
}

static void prepare(void)
{
	fixture_open();
	nvml_use(in_fixture("no-library.so"));
}

TestSuite(counter_polled, .init = prepare, .fini = fixture_close);

static void add_npu(void)
{
	fixture_device("pci0000:00/0000:00:0b.0", "accel", "accel0", "intel_vpu");
	fixture_file(NPU "/npu_busy_time_us", "1234567\n");
	fixture_file(NPU "/npu_memory_utilization", "8589934592\n");
	fixture_file(NPU "/npu_current_frequency_mhz", "1400\n");
	fixture_file(NPU "/npu_max_frequency_mhz", "1950\n");
}

static void add_amd(void)
{
	fixture_device("pci0000:00/0000:03:00.0", "drm", "renderD128", "amdgpu");
	fixture_file(AMD "/gpu_busy_percent", "42\n");
	fixture_file(AMD "/mem_busy_percent", "7\n");
	fixture_file(AMD "/mem_info_vram_used", "17179869184\n");
	fixture_file(AMD "/hwmon/hwmon3/name", "amdgpu\n");
	fixture_file(AMD "/hwmon/hwmon3/power1_average", "35000000\n");
	fixture_file(AMD "/hwmon/hwmon3/power1_input", "36000000\n");
	fixture_file(AMD "/hwmon/hwmon3/freq1_input", "2100000000\n");
}

static void add_arc(const char *driver)
{
	fixture_device("pci0000:00/0000:04:00.0", "drm", "renderD129", driver);
	fixture_file(ARC "/hwmon/hwmon1/name", "i915_gt0\n");
	fixture_file(ARC "/hwmon/hwmon1/energy1_input", "1000000\n");
	fixture_file(ARC "/hwmon/hwmon2/name", "i915\n");
	fixture_file(ARC "/hwmon/hwmon2/energy1_input", "5000000\n");
	fixture_file(ARC "/hwmon/hwmon2/energy2_input", "4000000\n");
}

static void expect_list(const struct counter_place *place, const char *wanted)
{
	struct listed listed = { "", 0 };

	cr_expect_eq(polled_list(place, listed_add, &listed), 0);
	cr_expect_str_eq(listed.text, wanted);
}

Test(counter_polled, npu)
{
	struct counter_place place;
	struct polled_info info;
	struct polled *busy, *memory;

	add_npu();
	place_open(&place);
	expect_list(&place, "ivpu/busy-time s 1e-06 grows\n"
			    "ivpu/memory-used B 1 level\n"
			    "ivpu/frequency MHz 1 level\n");
	cr_assert_eq(polled_open(&place, "ivpu", "busy-time", &info, &busy), 0);
	cr_expect_eq(info.scale, 1e-6);
	cr_expect_str_eq(info.unit, "s");
	cr_expect_not(info.level);
	memory = must_open(&place, "ivpu", "memory-used");
	cr_expect_eq(must_read(busy), 1234567);
	cr_expect_eq(must_read(memory), 8589934592);
	fixture_file(NPU "/npu_busy_time_us", "1300000\n");
	fixture_file(NPU "/npu_memory_utilization", "0\n");
	cr_expect_eq(must_read(busy), 1300000);
	cr_expect_eq(must_read(memory), 0);
	polled_close(busy);
	polled_close(memory);
	polled_close(NULL);
	cr_expect_str_eq(said, "");
	place_close(&place);
}

/* An older kernel has the busy time only; a driver's files say nothing under another driver. */
Test(counter_polled, only_what_is_there)
{
	struct counter_place place;

	fixture_device("pci0000:00/0000:00:0b.0", "accel", "accel0", "intel_vpu");
	fixture_file(NPU "/npu_busy_time_us", "1\n");
	fixture_file(NPU "/gpu_busy_percent", "1\n");
	fixture_file(NPU "/hwmon/name", "intel_vpu\n");
	place_open(&place);
	expect_list(&place, "ivpu/busy-time s 1e-06 grows\n");
	cr_expect_eq(open_error(&place, "ivpu", "memory-used"), -ENOENT);
	cr_expect_eq(open_error(&place, "ivpu", "busy"), -ENOENT);
	cr_expect_eq(open_error(&place, "amdgpu", "busy"), -ENOENT);
	cr_expect_eq(open_error(&place, "hwmon", "energy"), -ENOENT);
	cr_expect_eq(open_error(&place, "nvml", "energy"), -ENOENT);
	cr_expect_eq(open_error(&place, "nothing", "at-all"), -ENOENT);
	cr_expect_eq(open_error(&place, "", ""), -ENOENT);
	cr_expect_str_eq(said, "");
	place_close(&place);
}

Test(counter_polled, amdgpu)
{
	struct counter_place place;
	struct polled *polled;

	add_amd();
	place_open(&place);
	expect_list(&place, "amdgpu/busy % 1 level\n"
			    "amdgpu/memory-busy % 1 level\n"
			    "amdgpu/memory-used B 1 level\n"
			    "hwmon/power W 1e-06 level\n"
			    "hwmon/frequency Hz 1 level\n");
	polled = must_open(&place, "amdgpu", "busy");
	cr_expect_eq(must_read(polled), 42);
	polled_close(polled);
	/* The average where there is one, else the moment. */
	polled = must_open(&place, "hwmon", "power");
	cr_expect_eq(must_read(polled), 35000000);
	polled_close(polled);
	fixture_remove(AMD "/hwmon/hwmon3/power1_average");
	polled = must_open(&place, "hwmon", "power");
	cr_expect_eq(must_read(polled), 36000000);
	polled_close(polled);
	place_close(&place);
}

/* i915 has sensors of the device and of its tiles: adding them up would count energy twice. */
Test(counter_polled, sensors_of_the_device)
{
	struct counter_place place;
	struct polled *polled;

	add_arc("i915");
	place_open(&place);
	expect_list(&place, "hwmon/energy J 1e-06 grows\n");
	polled = must_open(&place, "hwmon", "energy");
	cr_expect_eq(must_read(polled), 5000000);
	polled_close(polled);
	place_close(&place);
}

Test(counter_polled, package_of_xe)
{
	struct counter_place place;
	struct polled *polled;

	add_arc("xe");
	place_open(&place);
	expect_list(&place, "hwmon/energy J 1e-06 grows\n"
			    "hwmon/energy-package J 1e-06 grows\n");
	polled = must_open(&place, "hwmon", "energy-package");
	cr_expect_eq(must_read(polled), 4000000);
	polled_close(polled);
	place_close(&place);
}

/* Without a device, all that have the file are added up; with one, only its own. */
Test(counter_polled, several_devices)
{
	struct counter_place place;
	struct polled *polled;

	add_npu();
	add_amd();
	add_arc("i915");
	fixture_file(AMD "/hwmon/hwmon3/energy1_input", "250\n");
	place_open(&place);
	expect_list(&place, "ivpu/busy-time s 1e-06 grows\n"
			    "ivpu/memory-used B 1 level\n"
			    "ivpu/frequency MHz 1 level\n"
			    "amdgpu/busy % 1 level\n"
			    "amdgpu/memory-busy % 1 level\n"
			    "amdgpu/memory-used B 1 level\n"
			    "hwmon/energy J 1e-06 grows\n"
			    "hwmon/power W 1e-06 level\n"
			    "hwmon/frequency Hz 1 level\n");
	polled = must_open(&place, "hwmon", "energy");
	cr_expect_eq(must_read(polled), 5000250);
	polled_close(polled);
	place.node = &nodes.items[1];
	cr_assert_str_eq(place.node->address, "0000:03:00.0");
	polled = must_open(&place, "hwmon", "energy");
	cr_expect_eq(must_read(polled), 250);
	polled_close(polled);
	cr_expect_eq(open_error(&place, "ivpu", "busy-time"), -ENOENT);
	place.node = &nodes.items[2];
	expect_list(&place, "hwmon/energy J 1e-06 grows\n");
	place_close(&place);
}

/* A driver that starts anew begins at zero: what has been counted stays. Levels go where they like. */
Test(counter_polled, never_goes_back)
{
	struct counter_place place;
	struct polled *busy, *frequency;

	add_npu();
	place_open(&place);
	busy = must_open(&place, "ivpu", "busy-time");
	frequency = must_open(&place, "ivpu", "frequency");
	cr_expect_eq(must_read(busy), 1234567);
	cr_expect_eq(must_read(frequency), 1400);
	fixture_file(NPU "/npu_busy_time_us", "10\n");
	fixture_file(NPU "/npu_current_frequency_mhz", "0\n");
	cr_expect_eq(must_read(busy), 1234567);
	cr_expect_eq(must_read(frequency), 0);
	fixture_file(NPU "/npu_busy_time_us", "1234568\n");
	cr_expect_eq(must_read(busy), 1234568);
	polled_close(busy);
	polled_close(frequency);
	place_close(&place);
}

Test(counter_polled, gone_and_senseless)
{
	static const char *const senseless[] = {
		"", "\n", "-1\n", "x", "12x\n", "12 34\n", " 12\n", "0x12\n", "18446744073709551616\n", "1\n2\n"
	};
	struct counter_place place;
	struct polled *busy;
	__u64 raw;

	add_npu();
	place_open(&place);
	busy = must_open(&place, "ivpu", "busy-time");
	for (size_t i = 0; i < sizeof(senseless) / sizeof(senseless[0]); i++) {
		fixture_file(NPU "/npu_busy_time_us", senseless[i]);
		cr_expect_eq(polled_read(busy, &raw), -EIO, "'%s'", senseless[i]);
	}
	fixture_file(NPU "/npu_busy_time_us", "18446744073709551615\n");
	cr_expect_eq(must_read(busy), 18446744073709551615ull);
	fixture_remove(NPU);
	cr_expect_eq(polled_read(busy, &raw), -ENODEV);
	polled_close(busy);
	place_close(&place);
}

/* A link to nowhere is there for a glob and cannot be opened. */
Test(counter_polled, vanishes_before_it_is_opened)
{
	struct counter_place place;

	fixture_device("pci0000:00/0000:00:0b.0", "accel", "accel0", "intel_vpu");
	fixture_link(NPU "/npu_busy_time_us", "nowhere");
	place_open(&place);
	cr_expect_eq(open_error(&place, "ivpu", "busy-time"), -ENODEV);
	cr_expect(strstr(said, "npu_busy_time_us: cannot be read"), "%s", said);
	place_close(&place);
}

Test(counter_polled, not_for_everybody)
{
	struct counter_place place;

	cr_assert_eq(chmod(fixture, 0755), 0);
	add_npu();
	place_open(&place);
	cr_assert_eq(chmod(in_fixture(NPU "/npu_busy_time_us"), 0), 0);
	/* Only this test's process stops being root. */
	if (geteuid() == 0)
		cr_assert_eq(seteuid(65534), 0);
	cr_expect_eq(open_error(&place, "ivpu", "busy-time"), -EACCES);
	cr_expect(strstr(said, "try sudo"), "%s", said);
	if (getuid() == 0)
		cr_assert_eq(seteuid(0), 0);
	place_close(&place);
}

static int stop(void *context, const struct polled_info *info)
{
	(void)info;
	++*(int *)context;
	return 77;
}

Test(counter_polled, a_visit_ends_the_list)
{
	struct counter_place place;
	int calls = 0;

	add_npu();
	place_open(&place);
	cr_expect_eq(polled_list(&place, stop, &calls), 77);
	cr_expect_eq(calls, 1);
	place_close(&place);
}
