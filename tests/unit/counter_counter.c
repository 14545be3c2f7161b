/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of counters on recorded machines: type, words, CPUs, scale, unit and kind, as the kernel and perf have them. */
#include "counter/counter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "target/tracepoint/tracefs.h"
#include "tests/unit/counter_trees.h"

static struct machine machine;

static void close_all(void)
{
	machine_close(&machine);
	fixture_close();
}

TestSuite(counter_counter, .init = fixture_open, .fini = close_all);

/* A counter that is expected of the machine. */
struct expected {
	const char *name, *unit, *source;
	enum xpt_counter_kind kind;
	double scale;
};

static struct counter resolve(const char *name)
{
	struct counter counter;

	machine.said[0] = '\0';
	cr_assert_eq(counter_resolve(&machine.place, name, &counter), 0, "%s: %s", name, machine.said);
	cr_expect_str_eq(counter.info.name, name);
	cr_expect_str_eq(machine.said, "", "%s", name);
	return counter;
}

static struct counter expect_info(struct expected wanted)
{
	struct counter counter = resolve(wanted.name);

	cr_expect_str_eq(counter.info.unit, wanted.unit, "%s: unit '%s'", wanted.name, counter.info.unit);
	cr_expect_str_eq(counter.info.source, wanted.source, "%s: source '%s'", wanted.name, counter.info.source);
	cr_expect_eq(counter.info.kind, wanted.kind, "%s: kind %d", wanted.name, counter.info.kind);
	cr_expect_eq(counter.info.scale, wanted.scale, "%s: scale %g", wanted.name, counter.info.scale);
	return counter;
}

static void expect_part(const struct counter *counter, size_t index, __u32 type, __u64 config, __u64 config1,
			const char *cpus)
{
	const struct counter_event *event = &counter->events[index];
	const char *name = counter->info.name;

	cr_assert_lt(index, counter->event_count, "%s has %zu parts", name, counter->event_count);
	cr_expect_eq(event->type, type, "%s: type %u", name, event->type);
	cr_expect_eq(event->config[0], config, "%s: config %#llx", name, event->config[0]);
	cr_expect_eq(event->config[1], config1, "%s: config1 %#llx", name, event->config[1]);
	cr_expect_eq(event->config[2] | event->config[3], 0, "%s", name);
	cr_expect_str_eq(cpus_text(&event->cpus), cpus, "%s: CPUs %s", name, cpus_text(&event->cpus));
}

/* Of one part. */
static void expect(struct expected wanted, __u32 type, __u64 config, __u64 config1, const char *cpus)
{
	struct counter counter = expect_info(wanted);

	cr_expect_eq(counter.event_count, 1, "%s has %zu parts", wanted.name, counter.event_count);
	expect_part(&counter, 0, type, config, config1, cpus);
	counter_free(&counter);
	cr_expect_null(counter.events);
}

static void expect_type(const char *name, __u32 type)
{
	struct counter counter = resolve(name);

	cr_assert_eq(counter.event_count, 1, "%s has %zu parts", name, counter.event_count);
	cr_expect_eq(counter.events[0].type, type, "%s: type %u", name, counter.events[0].type);
	counter_free(&counter);
}

/* One line is said, with these words in it. */
static void expect_refused(const char *name, int error, const char *said)
{
	struct counter counter;
	int result;

	machine.said[0] = '\0';
	result = counter_resolve(&machine.place, name, &counter);
	cr_expect_eq(result, error, "%.80s: %d", name, result);
	cr_expect_not_null(strstr(machine.said, said), "%.80s: %s", name, machine.said);
	cr_expect_eq(strcspn(machine.said, "\n") + 1, strlen(machine.said), "%.80s: %s", name, machine.said);
	cr_expect_null(counter.events);
	cr_expect_null(counter.polled);
	cr_expect_null(counter.info.name);
}

/* ---- Intel's graphics ---- */

Test(counter_counter, i915)
{
	tree_cpus("0-7");
	tree_i915("i915", "18");
	machine_open(&machine);
	expect((struct expected){ "i915/rcs0-busy/", "ns", "i915", XPT_COUNTER_SUM, 1 }, 18, 0, 0, "0");
	expect((struct expected){ "i915/vcs1-busy/", "ns", "i915", XPT_COUNTER_SUM, 1 }, 18, 0x2010, 0, "0");
	expect((struct expected){ "i915/rc6-residency/", "ns", "i915", XPT_COUNTER_SUM, 1 }, 18, 0x100003, 0, "0");
	expect((struct expected){ "i915/interrupts/", "", "i915", XPT_COUNTER_SUM, 1 }, 18, 0x100002, 0, "0");
	/* MHz and seconds are counted: the mean is MHz, whatever the unit in sysfs is called. */
	expect((struct expected){ "i915/actual-frequency/", "MHz", "i915", XPT_COUNTER_MEAN, 1 }, 18, 0x100000, 0, "0");
	/* Nothing is known of a number. */
	expect((struct expected){ "i915/config=0x100001/", "", "i915", XPT_COUNTER_SUM, 1 }, 18, 0x100001, 0, "0");
}

/* As for perf, the name of one PMU means that one; with a device, the device's. */
Test(counter_counter, i915_integrated_and_discrete)
{
	tree_cpus("0-7");
	tree_i915("i915", "18");
	tree_i915_compute("i915_0000_03_00.0", "19");
	fixture_device("pci0000:00/0000:00:02.0", "drm", "renderD128", "i915");
	fixture_device("pci0000:00/0000:00:01.0/0000:03:00.0", "drm", "renderD129", "i915");
	machine_open(&machine);
	expect_type("i915/rcs0-busy/", 18);
	expect_type("i915_0000_03_00.0/rcs0-busy/", 19);
	machine_choose(&machine, 0);
	expect_type("i915/rcs0-busy/", 18);
	expect_refused("i915/ccs0-busy/", -ENOENT, "unknown counter");
	expect_refused("i915_0000_03_00.0/rcs0-busy/", -ENOENT, "unknown counter");
	machine_choose(&machine, 1);
	expect_type("i915/rcs0-busy/", 19);
	expect_type("i915/ccs0-busy/", 19);
	expect_type("i915_0000_03_00.0/rcs0-busy/", 19);
}

/* The common name means all that have the event. */
Test(counter_counter, i915_two_discrete)
{
	struct counter counter;

	tree_cpus("0-7");
	tree_i915("i915_0000_03_00.0", "18");
	tree_i915_compute("i915_0000_04_00.0", "19");
	fixture_device("pci0000:00/0000:03:00.0", "drm", "renderD128", "i915");
	fixture_device("pci0000:00/0000:04:00.0", "drm", "renderD129", "i915");
	machine_open(&machine);
	counter = expect_info(
		(struct expected){ "i915/requested-frequency/", "MHz", "i915_0000_03_00.0", XPT_COUNTER_MEAN, 1 });
	cr_expect_eq(counter.event_count, 2);
	expect_part(&counter, 0, 18, 0x100001, 0, "0");
	expect_part(&counter, 1, 19, 0x100001, 0, "0");
	counter_free(&counter);
	expect_type("i915/ccs0-busy/", 19);
	machine_choose(&machine, 0);
	expect_type("i915/rcs0-busy/", 18);
	machine_choose(&machine, 1);
	expect_type("i915/rcs0-busy/", 19);
}

Test(counter_counter, xe)
{
	struct counter counter;

	/* Without a mask it counts the same on any: on the first that is online. */
	tree_cpus("2-5");
	tree_xe("xe_0000_00_02.0", "24");
	tree_xe("xe_0000_03_00.0", "25");
	fixture_device("pci0000:00/0000:00:02.0", "drm", "renderD128", "xe");
	fixture_device("pci0000:00/0000:03:00.0", "drm", "renderD129", "xe");
	machine_open(&machine);
	counter = expect_info((struct expected){ "xe/engine-active-ticks,engine_class=1,gt=1/", "", "xe_0000_00_02.0",
						 XPT_COUNTER_SUM, 1 });
	cr_expect_eq(counter.event_count, 2);
	expect_part(&counter, 0, 24, 0x1000000000100002, 0, "2");
	expect_part(&counter, 1, 25, 0x1000000000100002, 0, "2");
	cr_expect(!counter.events[0].of_each_cpu);
	counter_free(&counter);
	machine_choose(&machine, 1);
	expect((struct expected){ "xe/gt-c6-residency/", "ms", "xe_0000_03_00.0", XPT_COUNTER_SUM, 1 }, 25, 1, 0, "2");
	/* Each read adds what it is. */
	expect((struct expected){ "xe/gt-actual-frequency,gt=1/", "MHz", "xe_0000_03_00.0", XPT_COUNTER_LEVEL, 1 }, 25,
	       0x1000000000000004, 0, "2");
	machine.place.cpu = 4;
	expect((struct expected){ "xe/event=0x05/", "", "xe_0000_03_00.0", XPT_COUNTER_SUM, 1 }, 25, 5, 0, "4");
}

/* ---- AMD's ---- */

/* Cards are numbered as their drivers were bound, devices by address. */
Test(counter_counter, amdgpu)
{
	struct counter counter;

	tree_cpus("0-3");
	tree_amdgpu("0", "30", "31");
	tree_amdgpu("1", "32", "33");
	fixture_device("pci0000:00/0000:03:00.0", "drm", "renderD129", "amdgpu");
	fixture_file("sys/devices/pci0000:00/0000:03:00.0/drm/card1/dev", "226:1");
	fixture_device("pci0000:00/0000:04:00.0", "drm", "renderD128", "amdgpu");
	fixture_file("sys/devices/pci0000:00/0000:04:00.0/drm/card0/dev", "226:0");
	machine_open(&machine);
	counter = expect_info(
		(struct expected){ "amdgpu/xgmi_link0_data_outbound/", "", "amdgpu_0", XPT_COUNTER_SUM, 1 });
	cr_expect_eq(counter.event_count, 2);
	expect_part(&counter, 0, 30, 0x0200000000024607, 0, "0");
	expect_part(&counter, 1, 32, 0x0200000000024607, 0, "0");
	counter_free(&counter);
	machine_choose(&machine, 0);
	expect_type("amdgpu/xgmi_link1_data_outbound/", 32);
	expect_type("amdgpu_df/cake0_pcsout_txdata/", 33);
	machine_choose(&machine, 1);
	expect_type("amdgpu/xgmi_link1_data_outbound/", 30);
	expect_type("amdgpu_df/cake0_pcsout_txdata/", 31);
	expect_refused("amdgpu_1/xgmi_link1_data_outbound/", -ENOENT, "unknown counter");
}

/* What the PMU has not got may be a file of the driver. */
Test(counter_counter, file_beside_a_pmu)
{
	struct counter counter;

	tree_cpus("0-3");
	tree_amdgpu("0", "30", "31");
	fixture_device("pci0000:00/0000:03:00.0", "drm", "renderD128", "amdgpu");
	fixture_file("sys/devices/pci0000:00/0000:03:00.0/gpu_busy_percent", "17\n");
	machine_open(&machine);
	counter = expect_info((struct expected){ "amdgpu/busy/", "%", "amdgpu", XPT_COUNTER_LEVEL, 1 });
	cr_expect_eq(counter.event_count, 0);
	cr_assert_not_null(counter.polled);
	cr_expect_eq(must_read(counter.polled), 17);
	counter_free(&counter);
	cr_expect_null(counter.polled);
	expect_refused("amdgpu/busie/", -ENOENT, "amdgpu/busy/");
}

/* ---- NVIDIA's ---- */

/* What is of the chip is of no device, even where a device's driver is called nvidia. */
Test(counter_counter, grace)
{
	struct counter counter;

	tree_cpus("0-143");
	tree_grace();
	fixture_device("pci0009:00/0009:01:00.0", "drm", "renderD128", "nvidia");
	fixture_file("sys/devices/pci0009:00/0009:01:00.0/drm/card1/dev", "226:1");
	machine_open(&machine);
	for (int gpu = -1; gpu < 1; gpu++) {
		machine_choose(&machine, gpu);
		expect((struct expected){ "nvidia_pcie_pmu/rd_bytes_loc,root_port=0x3/", "", "nvidia_pcie_pmu_0",
					  XPT_COUNTER_SUM, 1 },
		       44, 0, 3, "0");
		expect((struct expected){ "nvidia_nvlink_c2c1_pmu_0/cycles,port=1/", "", "nvidia_nvlink_c2c1_pmu_0",
					  XPT_COUNTER_SUM, 1 },
		       43, 0x100000000, 1, "0");
		expect((struct expected){ "nvidia_cnvlink_pmu/wr_bytes_loc,rem_socket=0x2/", "", "nvidia_cnvlink_pmu_0",
					  XPT_COUNTER_SUM, 1 },
		       45, 2, 2, "0");
		counter = resolve("nvidia_scf_pmu/cmem_rd_data/");
		cr_expect_eq(counter.event_count, 2);
		expect_part(&counter, 0, 40, 0x1a5, 0, "0");
		expect_part(&counter, 1, 41, 0x1a5, 0, "72");
		counter_free(&counter);
	}
	expect_refused("nvidia_pcie_pmu/rd_bytes_loc,root_port=0x400/", -EINVAL, "at most 1023");
}

/* ---- processors ---- */

Test(counter_counter, power_and_msr)
{
	struct counter counter;

	tree_cpus("0-31");
	tree_power();
	tree_msr();
	machine_open(&machine);
	expect((struct expected){ "power/energy-pkg/", "Joules", "power", XPT_COUNTER_SUM, 1.0 / 4294967296.0 }, 9, 2,
	       0, "0,16");
	expect((struct expected){ "power/event=0x02/", "", "power", XPT_COUNTER_SUM, 1 }, 9, 2, 0, "0,16");
	expect_refused("power/energy-gpu/", -ENOENT, "near it: power/energy-");
	machine.place.cpu = 16;
	expect((struct expected){ "power/energy-ram/", "Joules", "power", XPT_COUNTER_SUM, 1.0 / 65536.0 }, 9, 3, 0,
	       "16");
	expect((struct expected){ "msr/cpu_thermal_margin/", "C", "msr", XPT_COUNTER_LEVEL, 1 }, 8, 7, 0, "16");
	machine.place.cpu = 3;
	expect_refused("power/energy-ram/", -ENODEV, "does not count on CPU 3: see cpumask");
	machine.place.cpu = 32;
	expect_refused("power/energy-ram/", -ENODEV, "CPU 32 is not there, or offline");
	expect_refused("msr/tsc/", -ENODEV, "CPU 32 is not there, or offline");
	expect_refused("page-faults", -ENODEV, "CPU 32 is not there, or offline");
	machine.place.cpu = -1;
	counter = resolve("msr/tsc/");
	cr_assert_eq(counter.event_count, 1);
	cr_expect_eq(counter.events[0].cpus.count, 32);
	cr_expect(counter.events[0].of_each_cpu);
	counter_free(&counter);
}

Test(counter_counter, kinds_of_cores)
{
	struct counter counter;

	tree_cpus("0-11");
	tree_hybrid();
	machine_open(&machine);
	expect((struct expected){ "cpu_core/cpu-cycles/", "", "cpu_core", XPT_COUNTER_SUM, 1 }, 4, 0x3c, 0,
	       "0,1,2,3,4,5,6,7");
	expect((struct expected){ "cpu_atom/event=0x3c,umask=0/", "", "cpu_atom", XPT_COUNTER_SUM, 1 }, 10, 0x3c, 0,
	       "8,9,10,11");
	expect((struct expected){ "cpu_core/mem-loads,ldlat=30/", "", "cpu_core", XPT_COUNTER_SUM, 1 }, 4, 0x1cd, 30,
	       "0,1,2,3,4,5,6,7");
	counter = resolve("cpu_core/cpu-cycles/");
	cr_expect(counter.events[0].of_each_cpu);
	counter_free(&counter);
	expect_refused("cpu/cpu-cycles/", -ENOENT, "unknown counter");
	expect_refused("cpu_atom/mem-loads/", -ENOENT, "cpu_core/mem-loads/");
	machine.place.cpu = 8;
	expect_type("cpu_atom/cpu-cycles/", 10);
	expect_refused("cpu_core/cpu-cycles/", -ENODEV, "cpu_core does not count on CPU 8");
}

/* Controllers are added up, and "uncore_" may be left out. What counts without being asked to is something else. */
Test(counter_counter, uncore)
{
	static const char *const names[] = { "imc/cas_count_read/", "uncore_imc/cas_count_read/" };
	struct counter counter;

	tree_cpus("0-31");
	tree_uncore();
	machine_open(&machine);
	for (size_t i = 0; i < 2; i++) {
		counter = expect_info(
			(struct expected){ names[i], "MiB", "uncore_imc_0", XPT_COUNTER_SUM, 64.0 / 1048576.0 });
		cr_assert_eq(counter.event_count, 3);
		expect_part(&counter, 0, 20, 0xf04, 0, "0,16");
		expect_part(&counter, 1, 21, 0xf04, 0, "0,16");
		expect_part(&counter, 2, 22, 0xf04, 0, "0,16");
		counter_free(&counter);
	}
	expect_type("uncore_imc_1/cas_count_read/", 21);
	expect_type("imc_1/cas_count_read/", 21);
	expect_type("imc_free_running/read/", 23);
	expect_type("cha/event=0x35,umask=0xc8177e01/", 24);
	expect_refused("im/cas_count_read/", -ENOENT, "imc_0/cas_count_read/");
	expect_refused("uncore/cas_count_read/", -ENOENT, "unknown counter");
	expect_refused("imc_2/cas_count_read/", -ENOENT, "unknown counter");
}

Test(counter_counter, arm)
{
	tree_cpus("0-3");
	tree_arm();
	machine_open(&machine);
	expect((struct expected){ "arm_cmn/hnf_cache_miss,bynodeid=1,nodeid=0x24/", "", "arm_cmn_0", XPT_COUNTER_SUM,
				  1 },
	       30, 0x2480010005, 0, "3");
	expect((struct expected){ "smmuv3_pmcg/transaction,filter_enable=1,filter_stream_id=0x42/", "",
				  "smmuv3_pmcg_2b442", XPT_COUNTER_SUM, 1 },
	       31, 1, 0x200000042, "0");
	expect_refused("arm_cmn/watchpoint_down/", -EINVAL, "arm_cmn_0/watchpoint_down,wp_dev_sel=N/");
}

/* Parts of names of instances that look like numbers of one. */
Test(counter_counter, instances)
{
	static const char *const names[] = { "a_0",	     "a_x", "a_ff",  "a_fff", "a_0000_03_00.0x",
					     "a_0000_03_00", "a_",  "a_1_2", "ab_3",  "a_0000_3_0.1" };
	char type[16];
	struct counter counter;

	tree_cpus("0");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(type, sizeof(type), "%zu", 50 + i);
		TREE_PMU(names[i], { "type", type });
	}
	machine_open(&machine);
	counter = resolve("a/config=1/");
	cr_assert_eq(counter.event_count, 3);
	cr_expect_eq(counter.events[0].type, 59); /* a_0000_3_0.1 */
	cr_expect_eq(counter.events[1].type, 50); /* a_0 */
	cr_expect_eq(counter.events[2].type, 53); /* a_fff */
	counter_free(&counter);
	expect_type("ab/config=1/", 58);
	expect_type("a_x/config=1/", 51);
}

/* ---- the kernel's ---- */

Test(counter_counter, software_and_hardware)
{
	/* Types and numbers of perf_event_open(2). */
	static const struct {
		const char *name;
		__u32 type;
		__u64 config;
		const char *unit;
	} events[] = {
		{ "cpu-clock", 1, 0, "ns" },
		{ "task-clock", 1, 1, "ns" },
		{ "page-faults", 1, 2, "" },
		{ "faults", 1, 2, "" },
		{ "context-switches", 1, 3, "" },
		{ "cs", 1, 3, "" },
		{ "cpu-migrations", 1, 4, "" },
		{ "migrations", 1, 4, "" },
		{ "minor-faults", 1, 5, "" },
		{ "major-faults", 1, 6, "" },
		{ "alignment-faults", 1, 7, "" },
		{ "emulation-faults", 1, 8, "" },
		{ "cycles", 0, 0, "" },
		{ "cpu-cycles", 0, 0, "" },
		{ "instructions", 0, 1, "" },
		{ "cache-references", 0, 2, "" },
		{ "cache-misses", 0, 3, "" },
		{ "branches", 0, 4, "" },
		{ "branch-instructions", 0, 4, "" },
		{ "branch-misses", 0, 5, "" },
		{ "bus-cycles", 0, 6, "" },
		{ "ref-cycles", 0, 9, "" },
	};
	struct counter counter;

	tree_cpus("0-1,3");
	TREE_PMU("software", { "type", "1" });
	tree_amd_cores();
	machine_open(&machine);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		expect((struct expected){ events[i].name, events[i].unit, events[i].type ? "software" : "hardware",
					  XPT_COUNTER_SUM, 1 },
		       events[i].type, events[i].config, 0, "0,1,3");
	counter = resolve("page-faults");
	cr_expect_eq(counter.events[0].only_cpu, -1);
	counter_free(&counter);
	machine.place.cpu = 3;
	expect((struct expected){ "page-faults", "", "software", XPT_COUNTER_SUM, 1 }, 1, 2, 0, "3");
	counter = resolve("page-faults");
	cr_expect_eq(counter.events[0].only_cpu, 3);
	counter_free(&counter);
	expect_refused("page-faultz", -ENOENT, "page-faults");
	expect_refused("Cycles", -ENOENT, "cycles");
	expect_refused("cycle", -ENOENT, "cycles");
}

Test(counter_counter, tracepoints)
{
	char text[16] = "";
	struct tracefs tracefs;
	int file;

	tree_cpus("0");
	TREE_PMU("tracepoint", { "type", "2" });
	machine_open(&machine);
	if (tracefs_open(NULL, &tracefs))
		cr_skip_test("tracefs cannot be read here");
	file = openat(tracefs.folder, "events/sched/sched_switch/id", O_RDONLY);
	cr_assert_gt(read(file, text, sizeof(text) - 1), 0);
	close(file);
	tracefs_close(&tracefs);
	expect((struct expected){ "sched:sched_switch", "", "tracepoint", XPT_COUNTER_SUM, 1 }, 2,
	       strtoull(text, NULL, 10), 0, "0");
	expect_refused("sched:sched_swap", -ENOENT, "no such tracepoint");
	expect_refused("sched:..", -ENOENT, "no such tracepoint");
	expect_refused("cycles:u", -ENOENT, "no such tracepoint");
}

/* ---- no names ---- */

Test(counter_counter, malformed)
{
	static const char *const slashes[] = {
		"i915/",	   "i915/rcs0-busy", "i915/rcs0-busy/u", "i915/rcs0-busy//", "i915//rcs0-busy/",
		"i915/rcs0/busy/", "nothing/",	     "nothing/x"
	};
	static const char *const unknown[] = { "",  "/",  "//",	 "/rcs0-busy/", ":",	"a:",	":b",
					       "i", "i9", "i91", "nothing//",	"\x01", "%s%n", "nothing/a:b/" };

	tree_cpus("0");
	tree_i915("i915", "18");
	machine_open(&machine);
	for (size_t i = 0; i < sizeof(slashes) / sizeof(slashes[0]); i++)
		expect_refused(slashes[i], -EINVAL, "are written pmu/event/");
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		expect_refused(unknown[i], -ENOENT, "unknown counter");
	expect_refused("i915//", -EINVAL, "expected an event between the slashes");
	expect_refused("i915/rcs0-busy,rcs0-wait/", -EINVAL, "expected one event");
	expect_refused("i915/i915_eventid=0x200000/", -EINVAL, "at most 2097151");
	expect_refused("i915/rcs0-buzy/", -ENOENT, "near it: i915/rcs0-busy/");
}

Test(counter_counter, too_long)
{
	char name[10000];

	tree_cpus("0");
	tree_i915("i915", "18");
	machine_open(&machine);
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	expect_refused(name, -ENOENT, "aaaa");
	memcpy(name, "i915/", 5);
	expect_refused(name, -EINVAL, "i915/aaaa");
	name[sizeof(name) - 2] = '/';
	expect_refused(name, -ENOENT, "i915/aaaa");
	name[4] = name[sizeof(name) - 2] = 'x';
	expect_refused(name, -ENOENT, "i915xaaaa");
}
