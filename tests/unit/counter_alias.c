/* SPDX-License-Identifier: BSD-2-Clause */
/* Aliases on recorded machines: of which counters each is made, and which value readings of these give. */
#include "counter/alias.h"

#include <dlfcn.h>
#include <errno.h>

#include "counter/alias.h"
#include "counter/polled.h"
#include "tests/unit/counter_trees.h"
#include "tests/unit/standin/nvml.h"

#define INTEGRATED "pci0000:00/0000:00:02.0"
#define FIRST "pci0000:00/0000:03:00.0"
#define SECOND "pci0000:00/0000:04:00.0"
#define NPU "pci0000:00/0000:00:0b.0"

static struct machine machine;

static void prepare(void)
{
	fixture_open();
	nvml_use(in_fixture("no-library.so"));
	tree_cpus("0-7");
	tree_msr();
	fixture_file("proc/uptime", "1\n");
}

static void close_all(void)
{
	machine_close(&machine);
	fixture_close();
}

TestSuite(counter_alias, .init = prepare, .fini = close_all);

static void add_file(const char *device, const char *file, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "sys/devices/%s/%s", device, file);
	fixture_file(path, text);
}

/* gpu negative: all devices. */
static void open_machine(int gpu)
{
	machine_open(&machine);
	machine.place.tracefs = in_fixture("tracing");
	machine_choose(&machine, gpu);
}

static struct alias resolve(const char *name)
{
	struct alias alias;

	machine.said[0] = '\0';
	cr_assert_eq(alias_resolve(&machine.place, name, &alias), 0, "%s: %s", name, machine.said);
	cr_expect_str_eq(alias.info.name, name);
	cr_expect_str_eq(machine.said, "", "%s: %s", name, machine.said);
	return alias;
}

/* source: names of the counters. */
static void expect(const char *name, const char *unit, enum xpt_counter_kind kind, const char *source)
{
	struct alias alias = resolve(name);

	cr_expect_str_eq(alias.info.unit, unit, "%s: unit %s", name, alias.info.unit);
	cr_expect_eq(alias.info.kind, kind, "%s: kind %d", name, alias.info.kind);
	cr_expect_str_eq(alias.info.source, source, "%s: %s", name, alias.info.source);
	cr_expect_gt(strlen(alias.info.description), 5, "%s", name);
	alias_free(&alias);
	cr_expect_null(alias.counters);
}

static void expect_none(const char *name, int error, const char *words)
{
	struct alias alias;

	machine.said[0] = '\0';
	cr_expect_eq(alias_resolve(&machine.place, name, &alias), error, "%s", name);
	cr_expect_not_null(strstr(machine.said, words), "%s: '%s' is not in '%s'", name, words, machine.said);
	cr_expect_eq(strcspn(machine.said, "\n") + 1, strlen(machine.said), "%s: %s", name, machine.said);
	cr_expect_eq(alias.count, 0);
	cr_expect_null(alias.counters);
	cr_expect_null(alias.info.name);
}

/* ---- devices ---- */

Test(counter_alias, names)
{
	static const char *const names[] = { "busy", "jobs", "energy", "frequency", "memory_used", "memory_busy" };

	open_machine(-1);
	for (size_t i = 0; i < 6; i++) {
		cr_expect(alias_is(names[i]));
		cr_expect_str_eq(alias_name(i), names[i]);
		expect_none(names[i], -ENOENT, "there is no device here");
	}
	cr_expect_null(alias_name(6));
	cr_expect_not(alias_is("page-faults"));
	cr_expect_not(alias_is("bus"));
}

Test(counter_alias, i915)
{
	tree_i915("i915", "18");
	tree_i915_compute("i915_0000_03_00.0", "19");
	tree_power();
	TREE_PMU("power", { "events/energy-gpu", "event=0x04" }, { "events/energy-gpu.unit", "Joules" },
		 { "events/energy-gpu.scale", "2.3283064365386962890625e-10" });
	fixture_device(INTEGRATED, "drm", "renderD128", "i915");
	fixture_device(FIRST, "drm", "renderD129", "i915");
	add_file(FIRST, "hwmon/hwmon3/name", "i915\n");
	add_file(FIRST, "hwmon/hwmon3/energy1_input", "5\n");
	open_machine(0);
	expect("busy", "%", XPT_COUNTER_MEAN, "i915/rcs0-busy/,i915/vcs1-busy/");
	expect("frequency", "MHz", XPT_COUNTER_MEAN, "i915/actual-frequency/");
	expect("energy", "J", XPT_COUNTER_SUM, "power/energy-gpu/");
	expect("memory_used", "B", XPT_COUNTER_LEVEL, "fdinfo/memory-*/");
	expect_none("memory_busy", -ENOENT, "0000:00:02.0 (i915)");
	expect_none("jobs", -ENOENT, "0000:00:02.0 (i915)");
	machine_choose(&machine, 1);
	expect("busy", "%", XPT_COUNTER_MEAN,
	       "i915_0000_03_00.0/ccs0-busy/,i915_0000_03_00.0/rcs0-busy/,i915_0000_03_00.0/vcs1-busy/");
	expect("energy", "J", XPT_COUNTER_SUM, "hwmon/energy/");
	machine_choose(&machine, -1);
	expect("busy", "%", XPT_COUNTER_MEAN,
	       "i915/rcs0-busy/,i915/vcs1-busy/,i915_0000_03_00.0/ccs0-busy/,i915_0000_03_00.0/rcs0-busy/,"
	       "i915_0000_03_00.0/vcs1-busy/");
	expect("energy", "J", XPT_COUNTER_SUM, "power/energy-gpu/,hwmon/energy/");
	expect_none("memory_busy", -ENOENT, "none of the devices here");
}

/* Two render and three copy engines on the first GT, one for video on the second. */
static int has_engine(const struct counter_event *event)
{
	static const unsigned int counts[2][5] = { { 2, 3, 0, 0, 0 }, { 0, 0, 1, 0, 0 } };
	unsigned int class = event->config[0] >> 20 & 0xff, instance = event->config[0] >> 12 & 0xff;

	cr_assert_lt(event->config[0] >> 60, 2);
	cr_assert_lt(class, 5);
	return instance < counts[event->config[0] >> 60][class];
}

Test(counter_alias, xe)
{
	struct alias alias;

	tree_xe("xe_0000_03_00.0", "19");
	fixture_device(FIRST, "drm", "renderD128", "xe");
	add_file(FIRST, "tile0/gt0/engines/rcs/name", "");
	add_file(FIRST, "tile0/gt0/engines/bcs/name", "");
	add_file(FIRST, "tile0/gt0/engines/other/name", "");
	add_file(FIRST, "tile0/gt1/engines/vcs/name", "");
	add_file(FIRST, "hwmon/hwmon3/energy2_input", "5\n");
	open_machine(-1);
	machine.place.exists = has_engine;
	alias = resolve("busy");
	cr_assert_eq(alias.count, 12);
	for (size_t i = 0; i < 12; i += 2) {
		static const __u64 engines[] = { 0x100000, 0x101000, 0x102000, 0, 0x1000, 1ull << 60 | 0x200000 };

		cr_expect_eq(alias.terms[i].measure, ALIAS_TICKS);
		cr_expect_eq(alias.terms[i + 1].measure, ALIAS_TOTAL);
		cr_expect_eq(alias.counters[i].events[0].config[0], engines[i / 2] | 2, "%zu: %#llx", i,
			     alias.counters[i].events[0].config[0]);
		cr_expect_eq(alias.counters[i + 1].events[0].config[0], engines[i / 2] | 3);
	}
	cr_expect_eq(alias.info.kind, XPT_COUNTER_MEAN);
	cr_expect(alias.highest);
	/* So many names are cut, and it shows. */
	cr_expect_lt(strlen(alias.info.source), 256);
	cr_expect_str_eq(alias.info.source + strlen(alias.info.source) - 4, ",...");
	alias_free(&alias);
	expect("frequency", "MHz", XPT_COUNTER_LEVEL, "xe_0000_03_00.0/gt-actual-frequency/");
	expect("energy", "J", XPT_COUNTER_SUM, "hwmon/energy-package/");
	expect("memory_used", "B", XPT_COUNTER_LEVEL, "fdinfo/memory-*/");
}

static int not_allowed(const struct counter_event *event)
{
	(void)event;
	return -EACCES;
}

/* Who may not ask for engines gets the first of each class. */
Test(counter_alias, xe_not_allowed)
{
	struct alias alias;

	tree_xe("xe_0000_03_00.0", "19");
	fixture_device(FIRST, "drm", "renderD128", "xe");
	add_file(FIRST, "tile0/gt0/engines/rcs/name", "");
	add_file(FIRST, "tile0/gt0/engines/ccs/name", "");
	open_machine(-1);
	machine.place.exists = not_allowed;
	alias = resolve("busy");
	cr_assert_eq(alias.count, 4);
	cr_expect_eq(alias.counters[0].events[0].config[0], 0x400002);
	cr_expect_eq(alias.counters[2].events[0].config[0], 2);
	alias_free(&alias);
}

/* None of the class is free for programs, and no client tells of one. */
Test(counter_alias, xe_engines_that_are_not_there)
{
	tree_xe("xe_0000_03_00.0", "19");
	fixture_device(FIRST, "drm", "renderD128", "xe");
	add_file(FIRST, "tile0/gt0/engines/ccs/name", "");
	open_machine(-1);
	machine.place.exists = has_engine;
	expect_none("busy", -ENOENT, "none of the devices here");
}

Test(counter_alias, amdgpu)
{
	struct alias alias;

	fixture_device(FIRST, "drm", "renderD128", "amdgpu");
	tree_amdgpu("0", "26", "27");
	add_file(FIRST, "gpu_busy_percent", "17\n");
	add_file(FIRST, "mem_busy_percent", "3\n");
	add_file(FIRST, "mem_info_vram_used", "4096\n");
	add_file(FIRST, "hwmon/hwmon1/freq1_input", "500000000\n");
	open_machine(0);
	expect("busy", "%", XPT_COUNTER_LEVEL, "amdgpu/busy/");
	expect("memory_busy", "%", XPT_COUNTER_LEVEL, "amdgpu/memory-busy/");
	expect("memory_used", "B", XPT_COUNTER_LEVEL, "amdgpu/memory-used/");
	alias = resolve("frequency");
	cr_expect_str_eq(alias.info.source, "hwmon/frequency/");
	cr_expect_eq(alias.terms[0].factor, 1e-6);
	alias_free(&alias);
	expect_none("energy", -ENOENT, "0000:03:00.0 (amdgpu)");
}

Test(counter_alias, ivpu)
{
	fixture_device(NPU, "accel", "accel0", "intel_vpu");
	add_file(NPU, "npu_busy_time_us", "1\n");
	add_file(NPU, "npu_memory_utilization", "2\n");
	add_file(NPU, "npu_current_frequency_mhz", "3\n");
	open_machine(0);
	expect("busy", "%", XPT_COUNTER_MEAN, "ivpu/busy-time/");
	expect("memory_used", "B", XPT_COUNTER_LEVEL, "ivpu/memory-used/");
	expect("frequency", "MHz", XPT_COUNTER_LEVEL, "ivpu/frequency/");
}

/* Each of its own way; one that tells nothing is left out. */
Test(counter_alias, several_vendors)
{
	tree_i915("i915", "18");
	fixture_device(INTEGRATED, "drm", "renderD128", "i915");
	fixture_device(FIRST, "drm", "renderD129", "amdgpu");
	add_file(FIRST, "gpu_busy_percent", "17\n");
	fixture_device(SECOND, "drm", "renderD130", "simple");
	fixture_device(NPU, "accel", "accel0", "intel_vpu");
	add_file(NPU, "npu_busy_time_us", "1\n");
	open_machine(-1);
	expect("busy", "%", XPT_COUNTER_MEAN, "i915/rcs0-busy/,i915/vcs1-busy/,ivpu/busy-time/,amdgpu/busy/");
	machine_choose(&machine, 3);
	expect_none("busy", -ENOENT, "0000:04:00.0 (simple)");
}

/* A PMU of no device that has a node; what wants a value, or is no time, is not taken. */
Test(counter_alias, without_a_node)
{
	struct alias alias;

	fixture_device(FIRST, "drm", "renderD129", "simple");
	TREE_PMU("odd_0", { "type", "20" }, { "format/event", "config:0-7" }, { "format/engine", "config:8-15" },
		 { "events/busy", "event=1" }, { "events/busy.unit", "s" }, { "events/busy.scale", "1e-9" },
		 { "events/engine-busy", "event=1,engine=?" }, { "events/engine-busy.unit", "ns" },
		 { "events/line-busy", "event=3" }, { "events/jobs", "event=2" });
	open_machine(-1);
	alias = resolve("busy");
	cr_expect_str_eq(alias.info.source, "odd_0/busy/");
	cr_expect_eq(alias.terms[0].measure, ALIAS_SHARE);
	cr_expect_eq(alias.terms[0].factor, 1);
	alias_free(&alias);
	expect("jobs", "", XPT_COUNTER_SUM, "odd_0/jobs/");
	machine_choose(&machine, 0);
	expect_none("busy", -ENOENT, "0000:03:00.0 (simple)");
}

/* ---- NVIDIA ---- */

static struct standin_nvml *use_nvml(void)
{
	static char path[PATH_MAX + 32];
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
	struct standin_nvml *standin;
	void *library;

	cr_assert_gt(length, 0);
	path[length] = '\0';
	strcpy(strrchr(path, '/'), "/standin/nvml.so");
	library = dlopen(path, RTLD_NOW);
	cr_assert_not_null(library, "%s", dlerror());
	standin = dlsym(library, "nvml_standin");
	cr_assert_not_null(standin);
	for (int i = 0; i < STANDIN_GPUS; i++)
		standin->gpus[i] = (struct standin_gpu){ .energy = 1000,
							 .busy = 10 * (i + 1),
							 .memory_busy = 5 + i,
							 .memory_used = 100,
							 .frequency = 900 - i };
	nvml_use(path);
	return standin;
}

/* The value of an alias that is made of one polled counter, now. */
static double value_of(const char *name)
{
	struct alias alias = resolve(name);
	struct alias_sample none = { 0 }, now = { 0 };
	double value = -1;
	__u64 raw = 0;

	cr_assert_eq(alias.count, 1, "%s: %s", name, alias.info.source);
	cr_assert_not_null(alias.counters[0].polled);
	cr_assert_eq(polled_read(alias.counters[0].polled, &raw), 0);
	now.value = (double)raw * alias.counters[0].info.scale;
	cr_expect(alias_value(alias.terms, 1, alias.highest, &none, &now, &value));
	alias_free(&alias);
	return value;
}

Test(counter_alias, nvidia)
{
	use_nvml();
	fixture_device("pci0000:00/0000:17:00.0", "drm", "renderD128", "nvidia");
	fixture_device("pci0000:00/0000:65:00.0", "drm", "renderD129", "nvidia");
	open_machine(1);
	expect("busy", "%", XPT_COUNTER_LEVEL, "nvml/busy/");
	cr_expect_eq(value_of("busy"), 20);
	cr_expect_eq(value_of("energy"), 1);
	cr_expect_eq(value_of("frequency"), 899);
	cr_expect_eq(value_of("memory_busy"), 6);
	cr_expect_eq(value_of("memory_used"), 100);
}

/* GPUs without nodes: the library tells of all together, the highest or the sum. */
Test(counter_alias, nvidia_without_nodes)
{
	use_nvml();
	open_machine(-1);
	cr_expect_eq(value_of("busy"), 30);
	cr_expect_eq(value_of("frequency"), 900);
	cr_expect_eq(value_of("energy"), 3);
	cr_expect_eq(value_of("memory_used"), 300);
}

/* ---- what clients tell ---- */

static void put_client(int pid, int client, const char *lines)
{
	char path[64], text[512];

	snprintf(path, sizeof(path), "proc/%d/fdinfo/3", pid);
	snprintf(text, sizeof(text), "drm-driver:\tpanfrost\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t%d\n%s", client,
		 lines);
	fixture_file(path, text);
	snprintf(path, sizeof(path), "proc/%d/fd/3", pid);
	unlink(in_fixture(path));
	fixture_link(path, "/dev/dri/renderD128");
}

static __u64 read_raw(const struct alias *alias)
{
	__u64 raw = 0;

	cr_assert_eq(alias->count, 1);
	cr_assert_eq(polled_read(alias->counters[0].polled, &raw), 0);
	return raw;
}

/* In each interval the engine that worked most, also one that has only now been shown. */
Test(counter_alias, busiest_engine)
{
	struct alias alias;

	fixture_device(FIRST, "drm", "renderD128", "panfrost");
	put_client(100, 1, "drm-engine-fragment:\t1000 ns\ndrm-engine-vertex:\t5000 ns\n");
	open_machine(0);
	alias = resolve("busy");
	cr_expect_str_eq(alias.info.source, "fdinfo/engine-*/");
	cr_expect_eq(alias.terms[0].measure, ALIAS_SHARE);
	cr_expect_eq(alias.counters[0].info.scale, 1e-9);
	cr_expect_eq(read_raw(&alias), 0);
	put_client(100, 1, "drm-engine-fragment:\t1300 ns\ndrm-engine-vertex:\t5200 ns\n");
	cr_expect_eq(read_raw(&alias), 300);
	put_client(100, 1, "drm-engine-fragment:\t1310 ns\ndrm-engine-vertex:\t5300 ns\n");
	put_client(200, 2, "drm-engine-fragment:\t40 ns\n");
	cr_expect_eq(read_raw(&alias), 400);
	/* Of two clients together. */
	put_client(100, 1, "drm-engine-fragment:\t1370 ns\ndrm-engine-vertex:\t5400 ns\n");
	put_client(200, 2, "drm-engine-fragment:\t100 ns\ndrm-engine-tiler:\t110 ns\n");
	cr_expect_eq(read_raw(&alias), 520);
	cr_expect_eq(read_raw(&alias), 520);
	alias_free(&alias);
}

Test(counter_alias, no_clients)
{
	fixture_device(FIRST, "drm", "renderD128", "panfrost");
	fixture_device(SECOND, "drm", "renderD129", "simple");
	open_machine(0);
	expect("busy", "%", XPT_COUNTER_MEAN, "fdinfo/engine-*/");
	cr_expect_eq(value_of("memory_used"), 0);
	machine_choose(&machine, 1);
	expect_none("busy", -ENOENT, "(simple)");
	expect_none("memory_used", -ENOENT, "(simple)");
}

/* The device's own memory, or what clients have elsewhere. */
Test(counter_alias, memory)
{
	fixture_device(FIRST, "drm", "renderD128", "panfrost");
	put_client(100, 1, "drm-resident-system:\t3 KiB\ndrm-resident-gtt:\t1 KiB\n");
	open_machine(0);
	cr_expect_eq(value_of("memory_used"), 4096);
	put_client(200, 2, "drm-resident-system:\t3 KiB\ndrm-resident-vram0:\t5 KiB\ndrm-resident-local1:\t1 KiB\n");
	cr_expect_eq(value_of("memory_used"), 6144);
}

/* ---- jobs ---- */

static void put_event(const char *name, int id, const char *fields)
{
	char path[256], text[2048];

	snprintf(path, sizeof(path), "tracing/events/gpu_scheduler/%s/id", name);
	snprintf(text, sizeof(text), "%d\n", id);
	fixture_file(path, text);
	snprintf(path, sizeof(path), "tracing/events/gpu_scheduler/%s/format", name);
	snprintf(text, sizeof(text),
		 "name: %s\nID: %d\nformat:\n"
		 "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		 "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		 "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		 "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n%s\nprint fmt: \"\"\n",
		 name, id, fields);
	fixture_file(path, text);
}

#define NEW_FIELDS                                                         \
	"\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;\n" \
	"\tfield:u32 job_count;\toffset:12;\tsize:4;\tsigned:0;\n"         \
	"\tfield:int hw_job_count;\toffset:16;\tsize:4;\tsigned:1;\n"      \
	"\tfield:__data_loc char[] dev;\toffset:20;\tsize:4;\tsigned:0;\n" \
	"\tfield:u64 fence_context;\toffset:24;\tsize:8;\tsigned:0;\n"     \
	"\tfield:u64 fence_seqno;\toffset:32;\tsize:8;\tsigned:0;\n"       \
	"\tfield:u64 client_id;\toffset:40;\tsize:8;\tsigned:0;\n"
#define OLD_FIELDS                                                                   \
	"\tfield:struct drm_sched_entity * entity;\toffset:8;\tsize:8;\tsigned:0;\n" \
	"\tfield:struct dma_fence * fence;\toffset:16;\tsize:8;\tsigned:0;\n"        \
	"\tfield:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:0;\n"          \
	"\tfield:uint64_t id;\toffset:32;\tsize:8;\tsigned:0;\n"                     \
	"\tfield:u32 job_count;\toffset:40;\tsize:4;\tsigned:0;\n"                   \
	"\tfield:int hw_job_count;\toffset:44;\tsize:4;\tsigned:1;\n"

static void expect_tracepoint(const struct counter *counter, __u64 id, const char *filter)
{
	cr_assert_eq(counter->event_count, 1);
	cr_expect_eq(counter->events[0].type, 2, "PERF_TYPE_TRACEPOINT");
	cr_expect_eq(counter->events[0].config[0], id);
	cr_expect(counter->events[0].of_device);
	cr_expect_str_eq(cpus_text(&counter->events[0].cpus), "0,1,2,3,4,5,6,7");
	if (filter)
		cr_expect_str_eq(counter->events[0].filter, filter);
	else
		cr_expect_null(counter->events[0].filter);
}

/* Where events tell their device, each device has its own. */
Test(counter_alias, jobs_with_device)
{
	struct alias alias;

	put_event("drm_sched_job_run", 701, NEW_FIELDS);
	fixture_device(FIRST, "drm", "renderD128", "amdgpu");
	fixture_device(SECOND, "drm", "renderD129", "xe");
	open_machine(-1);
	alias = resolve("jobs");
	cr_expect_str_eq(alias.info.source, "gpu_scheduler:drm_sched_job_run");
	cr_expect_eq(alias.info.kind, XPT_COUNTER_SUM);
	cr_assert_eq(alias.count, 2);
	expect_tracepoint(&alias.counters[0], 701, "dev == \"0000:03:00.0\"");
	expect_tracepoint(&alias.counters[1], 701, "dev == \"0000:04:00.0\"");
	alias_free(&alias);
	machine_choose(&machine, 1);
	alias = resolve("jobs");
	cr_assert_eq(alias.count, 1);
	expect_tracepoint(&alias.counters[0], 701, "dev == \"0000:04:00.0\"");
	alias_free(&alias);
}

/* Where they do not, all are counted together, and one alone only where there is no other. */
Test(counter_alias, jobs_without_device)
{
	struct alias alias;

	put_event("drm_run_job", 55, OLD_FIELDS);
	fixture_device(FIRST, "drm", "renderD128", "amdgpu");
	open_machine(0);
	alias = resolve("jobs");
	cr_assert_eq(alias.count, 1);
	expect_tracepoint(&alias.counters[0], 55, NULL);
	alias_free(&alias);
	machine_close(&machine);
	fixture_device(SECOND, "drm", "renderD129", "nouveau");
	open_machine(-1);
	alias = resolve("jobs");
	cr_assert_eq(alias.count, 1);
	expect_tracepoint(&alias.counters[0], 55, NULL);
	alias_free(&alias);
	machine_choose(&machine, 1);
	expect_none("jobs", -EOPNOTSUPP,
		    "gpu_scheduler:drm_run_job of this kernel does not report of which of 2 devices");
}

/* ---- lists ---- */

struct visited {
	char text[2048];
	int until, count;
};

static int on_counter(void *context, const struct xpt_counter_info *info)
{
	struct visited *visited = context;
	size_t used = strlen(visited->text);

	snprintf(visited->text + used, sizeof(visited->text) - used, "%s|%s|%s|%s\n", info->name, info->unit,
		 info->source, info->description);
	return ++visited->count == visited->until ? 9 : 0;
}

Test(counter_alias, list)
{
	struct visited visited = { 0 };

	fixture_device(FIRST, "drm", "renderD128", "amdgpu");
	add_file(FIRST, "gpu_busy_percent", "17\n");
	put_event("drm_sched_job_queue", 700, NEW_FIELDS);
	put_event("drm_sched_job_run", 701, NEW_FIELDS);
	open_machine(-1);
	cr_expect_eq(alias_visit(&machine.place, on_counter, &visited), 0);
	cr_expect_str_eq(
		visited.text,
		"busy|%|amdgpu/busy/|share of the time in which the device executed, its busiest engine: amdgpu/busy/\n"
		"jobs||gpu_scheduler:drm_sched_job_run|jobs handed to the device: gpu_scheduler:drm_sched_job_run\n"
		"memory_used|B|fdinfo/memory-*/|the device's memory in use: fdinfo/memory-*/\n");
	visited = (struct visited){ .until = 2 };
	cr_expect_eq(alias_visit(&machine.place, on_counter, &visited), 9);
	visited = (struct visited){ 0 };
	cr_expect_eq(alias_visit_tracepoints(&machine.place, on_counter, &visited), 0);
	cr_expect_str_eq(visited.text, "gpu_scheduler:drm_sched_job_queue||tracepoint|jobs queued\n"
				       "gpu_scheduler:drm_sched_job_run||tracepoint|jobs run: handed to the device\n");
	cr_expect_str_eq(machine.said, "");
}

/* ---- values ---- */

static bool is_near(double value, double wanted)
{
	return value > wanted - 1e-9 && value < wanted + 1e-9;
}

Test(counter_alias_value, shares)
{
	/* ns of two engines and s of a third; ms for which each was counted. */
	static const struct alias_term terms[] = { { ALIAS_SHARE, 1e-9 }, { ALIAS_SHARE, 1e-9 }, { ALIAS_SHARE, 1 } };
	struct alias_sample before[] = { { 5e6, 100000000 }, { 0, 100000000 }, { 1, 100000000 } };
	struct alias_sample now[] = { { 15e6, 200000000 }, { 25e6, 200000000 }, { 1.02, 200000000 } };
	double value = -1;

	cr_expect(alias_value(terms, 3, true, before, now, &value));
	cr_expect(is_near(value, 25), "%g", value);
	cr_expect(alias_value(terms, 1, true, before, now, &value));
	cr_expect(is_near(value, 10), "%g", value);
	/* One that has not counted since has no part in it; where none has, there is no value. */
	now[1].ran = before[1].ran;
	cr_expect(alias_value(terms, 3, true, before, now, &value));
	cr_expect(is_near(value, 20), "%g", value);
	value = 7;
	cr_expect_not(alias_value(terms, 3, true, now, now, &value));
	cr_expect_eq(value, 7);
	/* More than all the time there is none. */
	now[0].value = 5e6 + 101e6;
	cr_expect(alias_value(terms, 3, true, before, now, &value));
	cr_expect_eq(value, 100);
}

Test(counter_alias_value, ticks)
{
	static const struct alias_term terms[] = {
		{ ALIAS_TICKS, 1 }, { ALIAS_TOTAL, 1 }, { ALIAS_TICKS, 1 }, { ALIAS_TOTAL, 1 }
	};
	const struct alias_sample before[] = { { 100, 1 }, { 1000, 1 }, { 0, 1 }, { 1000, 1 } };
	struct alias_sample now[] = { { 150, 2 }, { 1200, 2 }, { 10, 2 }, { 1100, 2 } };
	double value = -1;

	cr_expect(alias_value(terms, 4, true, before, now, &value));
	cr_expect(is_near(value, 25), "%g", value);
	now[1].value = 1000;
	cr_expect(alias_value(terms, 4, true, before, now, &value));
	cr_expect(is_near(value, 10), "%g", value);
	cr_expect_not(alias_value(terms, 4, true, before, before, &value));
}

Test(counter_alias_value, sums_and_highest)
{
	static const struct alias_term terms[] = { { ALIAS_VALUE, 1 }, { ALIAS_VALUE, 1e-6 }, { ALIAS_VALUE, 1 } };
	const struct alias_sample none[3] = { 0 }, now[] = { { 300, 0 }, { 500e6, 0 }, { 40, 0 } };
	double value = -1;

	cr_expect(alias_value(terms, 3, false, none, now, &value));
	cr_expect(is_near(value, 840), "%g", value);
	cr_expect(alias_value(terms, 3, true, none, now, &value));
	cr_expect(is_near(value, 500), "%g", value);
	cr_expect(alias_value(terms, 3, true, none, none, &value));
	cr_expect_eq(value, 0);
}
