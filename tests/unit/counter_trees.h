/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PMUs of real machines as their drivers show them in sysfs: names, formats, events, units, scales and CPUs are those of
 * the kernel's sources (i915_pmu.c, xe_pmu.c, amdgpu_pmu.c, nvidia_cspmu.c, arm-cmn.c, rapl.c, msr.c, uncore_snbep.c). What
 * the numbers of the types are depends on the machine; here each has its own.
 */
#ifndef XPT_TEST_COUNTER_TREES_H
#define XPT_TEST_COUNTER_TREES_H

#include "counter/counter.h"
#include "tests/unit/counter_fixture.h"

/* A file below the PMU's folder. */
struct tree_file {
	const char *path;
	const char *text;
};

static inline void tree_pmu(const char *name, const struct tree_file *files, size_t count)
{
	char path[512], to[512], text[2 * PATH_MAX];

	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "sys/devices/%s/%s", name, files[i].path);
		snprintf(text, sizeof(text), "%s\n", files[i].text);
		fixture_file(path, text);
	}
	snprintf(path, sizeof(path), "sys/bus/event_source/devices/%s", name);
	snprintf(to, sizeof(to), "sys/devices/%s", name);
	if (access(in_fixture(path), F_OK))
		fixture_link(path, to);
}

#define TREE_PMU(name, ...)                                       \
	tree_pmu(name, (const struct tree_file[]){ __VA_ARGS__ }, \
		 sizeof((const struct tree_file[]){ __VA_ARGS__ }) / sizeof(struct tree_file))

static inline void tree_cpus(const char *online)
{
	fixture_file("sys/devices/system/cpu/online", online);
}

static inline void tree_i915(const char *name, const char *type)
{
	TREE_PMU(name, { "type", type }, { "cpumask", "0" }, { "format/i915_eventid", "config:0-20" },
		 { "events/actual-frequency", "config=0x100000" }, { "events/actual-frequency.unit", "M" },
		 { "events/requested-frequency", "config=0x100001" }, { "events/requested-frequency.unit", "M" },
		 { "events/interrupts", "config=0x100002" }, { "events/rc6-residency", "config=0x100003" },
		 { "events/rc6-residency.unit", "ns" }, { "events/software-gt-awake-time", "config=0x100004" },
		 { "events/software-gt-awake-time.unit", "ns" }, { "events/rcs0-busy", "config=0x0" },
		 { "events/rcs0-busy.unit", "ns" }, { "events/rcs0-wait", "config=0x1" },
		 { "events/rcs0-wait.unit", "ns" }, { "events/rcs0-sema", "config=0x2" },
		 { "events/rcs0-sema.unit", "ns" }, { "events/vcs1-busy", "config=0x2010" },
		 { "events/vcs1-busy.unit", "ns" });
}

/* A discrete one with compute engines, which integrated ones of its time lack. */
static inline void tree_i915_compute(const char *name, const char *type)
{
	tree_i915(name, type);
	TREE_PMU(name, { "events/ccs0-busy", "config=0x4000" }, { "events/ccs0-busy.unit", "ns" });
}

/* Of kernels whose core knows that the PMU counts system-wide: without a mask. */
static inline void tree_xe(const char *name, const char *type)
{
	TREE_PMU(name, { "type", type }, { "format/event", "config:0-11" },
		 { "format/engine_instance", "config:12-19" }, { "format/engine_class", "config:20-27" },
		 { "format/function", "config:44-59" }, { "format/gt", "config:60-63" },
		 { "events/gt-c6-residency", "event=0x01" }, { "events/gt-c6-residency.unit", "ms" },
		 { "events/engine-active-ticks", "event=0x02" }, { "events/engine-total-ticks", "event=0x03" },
		 { "events/gt-actual-frequency", "event=0x04" }, { "events/gt-actual-frequency.unit", "MHz" },
		 { "events/gt-requested-frequency", "event=0x05" }, { "events/gt-requested-frequency.unit", "MHz" });
}

/* Vega20: two PMUs, with the number of the card. */
static inline void tree_amdgpu(const char *number, const char *type, const char *data_fabric_type)
{
	char name[64];

	snprintf(name, sizeof(name), "amdgpu_%s", number);
	TREE_PMU(name, { "type", type }, { "format/event", "config:0-7" }, { "format/instance", "config:8-15" },
		 { "format/umask", "config:16-23" }, { "format/type", "config:56-63" },
		 { "events/xgmi_link0_data_outbound", "event=0x7,instance=0x46,umask=0x2,type=0x2" },
		 { "events/xgmi_link1_data_outbound", "event=0x7,instance=0x47,umask=0x2,type=0x2" });
	snprintf(name, sizeof(name), "amdgpu_df_%s", number);
	TREE_PMU(name, { "type", data_fabric_type }, { "format/event", "config:0-7" },
		 { "format/instance", "config:8-15" }, { "format/umask", "config:16-23" },
		 { "events/cake0_pcsout_txdata", "event=0x7,instance=0x46,umask=0x2" },
		 { "events/cake1_ftiinstat_rspalloc", "event=0xb,instance=0x47,umask=0x8" });
}

/* What counts traffic in Grace: cycles is an event beyond 32 bits. */
static inline void tree_grace_traffic(const char *name, const char *type, const char *cpus, struct tree_file filter)
{
	TREE_PMU(name, { "type", type }, { "cpumask", cpus }, { "associated_cpus", "0-71" }, { "identifier", "0x106" },
		 { "format/event", "config:0-32" }, filter, { "events/rd_bytes_loc", "event=0x0" },
		 { "events/rd_bytes_rem", "event=0x1" }, { "events/wr_bytes_loc", "event=0x2" },
		 { "events/total_req_rem", "event=0xb" }, { "events/cycles", "event=0x100000000" });
}

static inline void tree_grace(void)
{
	TREE_PMU("nvidia_scf_pmu_0", { "type", "40" }, { "cpumask", "0" }, { "format/event", "config:0-32" },
		 { "events/bus_cycles", "event=0x1d" }, { "events/cmem_rd_data", "event=0x1a5" },
		 { "events/gmem_wr_total_bytes", "event=0x1a0" }, { "events/cycles", "event=0x100000000" });
	TREE_PMU("nvidia_scf_pmu_1", { "type", "41" }, { "cpumask", "72" }, { "format/event", "config:0-32" },
		 { "events/bus_cycles", "event=0x1d" }, { "events/cmem_rd_data", "event=0x1a5" },
		 { "events/gmem_wr_total_bytes", "event=0x1a0" }, { "events/cycles", "event=0x100000000" });
	tree_grace_traffic("nvidia_nvlink_c2c0_pmu_0", "42", "0", (struct tree_file){ "format/port", "config1:0-1" });
	tree_grace_traffic("nvidia_nvlink_c2c1_pmu_0", "43", "0", (struct tree_file){ "format/port", "config1:0-1" });
	tree_grace_traffic("nvidia_pcie_pmu_0", "44", "0", (struct tree_file){ "format/root_port", "config1:0-9" });
	tree_grace_traffic("nvidia_cnvlink_pmu_0", "45", "0", (struct tree_file){ "format/rem_socket", "config1:0-3" });
}

static inline void tree_power(void)
{
	TREE_PMU("power", { "type", "9" }, { "cpumask", "0,16" }, { "format/event", "config:0-7" },
		 { "events/energy-pkg", "event=0x02" }, { "events/energy-pkg.unit", "Joules" },
		 { "events/energy-pkg.scale", "2.3283064365386962890625e-10" }, { "events/energy-ram", "event=0x03" },
		 { "events/energy-ram.unit", "Joules" }, { "events/energy-ram.scale", "1.52587890625e-05" });
}

static inline void tree_msr(void)
{
	TREE_PMU("msr", { "type", "8" }, { "format/event", "config:0-63" }, { "events/tsc", "event=0x00" },
		 { "events/aperf", "event=0x01" }, { "events/cpu_thermal_margin", "event=0x07" },
		 { "events/cpu_thermal_margin.snapshot", "1" }, { "events/cpu_thermal_margin.unit", "C" });
}

/* Two kinds of cores, each with a PMU and its CPUs. */
static inline void tree_hybrid(void)
{
	TREE_PMU("cpu_core", { "type", "4" }, { "cpus", "0-7" }, { "format/event", "config:0-7" },
		 { "format/umask", "config:8-15" }, { "format/edge", "config:18" }, { "format/pc", "config:19" },
		 { "format/inv", "config:23" }, { "format/cmask", "config:24-31" },
		 { "format/offcore_rsp", "config1:0-63" }, { "format/ldlat", "config1:0-15" },
		 { "events/cpu-cycles", "event=0x3c" }, { "events/mem-loads", "event=0xcd,umask=0x1,ldlat=3" });
	TREE_PMU("cpu_atom", { "type", "10" }, { "cpus", "8-11" }, { "format/event", "config:0-7" },
		 { "format/umask", "config:8-15" }, { "events/cpu-cycles", "event=0x3c" });
}

/* Memory controllers of a machine with two sockets, and the caches' agent with a mask in two places. */
static inline void tree_uncore(void)
{
	static const char *const controllers[][2] = { { "uncore_imc_0", "20" },
						      { "uncore_imc_1", "21" },
						      { "uncore_imc_10", "22" } };

	for (size_t i = 0; i < 3; i++)
		TREE_PMU(controllers[i][0], { "type", controllers[i][1] }, { "cpumask", "0,16" },
			 { "format/event", "config:0-7" }, { "format/umask", "config:8-15" },
			 { "format/edge", "config:18" }, { "format/inv", "config:23" },
			 { "format/thresh", "config:24-31" }, { "events/cas_count_read", "event=0x04,umask=0x0f" },
			 { "events/cas_count_read.scale", "6.103515625e-5" }, { "events/cas_count_read.unit", "MiB" },
			 { "events/cas_count_write", "event=0x04,umask=0x30" },
			 { "events/cas_count_write.scale", "6.103515625e-5" }, { "events/cas_count_write.unit", "MiB" },
			 { "events/clockticks", "event=0x00,umask=0x00" });
	TREE_PMU("uncore_imc_free_running_0", { "type", "23" }, { "cpumask", "0,16" }, { "format/event", "config:0-7" },
		 { "format/umask", "config:8-15" }, { "events/read", "event=0xff,umask=0x20" },
		 { "events/read.scale", "6.103515625e-5" }, { "events/read.unit", "MiB" });
	TREE_PMU("uncore_cha_0", { "type", "24" }, { "cpumask", "0,16" }, { "format/event", "config:0-7" },
		 { "format/umask", "config:8-15,32-55" }, { "format/tid_en", "config:16" },
		 { "format/thresh", "config:24-31" });
}

/* AMD's cores: the event lies in two places. */
static inline void tree_amd_cores(void)
{
	TREE_PMU("cpu", { "type", "4" }, { "format/event", "config:0-7,32-35" }, { "format/umask", "config:8-15" },
		 { "format/edge", "config:18" }, { "format/inv", "config:23" }, { "format/cmask", "config:24-31" });
}

static inline void tree_arm(void)
{
	TREE_PMU("arm_cmn_0", { "type", "30" }, { "cpumask", "3" }, { "format/type", "config:0-15" },
		 { "format/eventid", "config:16-26" }, { "format/occupid", "config:27-30" },
		 { "format/bynodeid", "config:31" }, { "format/nodeid", "config:32-47" },
		 { "format/wp_dev_sel", "config:48-50" }, { "format/wp_chn_sel", "config:51-55" },
		 { "format/wp_grp", "config:56-57" }, { "format/wp_exclusive", "config:58" },
		 { "format/wp_combine", "config:27-30" }, { "format/wp_val", "config1:0-63" },
		 { "format/wp_mask", "config2:0-63" }, { "events/dtc_cycles", "type=0x3" },
		 { "events/hnf_cache_miss", "type=0x5,eventid=0x1" },
		 { "events/hnf_qos_pocq_occupancy_all", "type=0x5,eventid=0xf,occupid=0x0" },
		 { "events/watchpoint_down",
		   "type=0x7770,eventid=0x2,wp_dev_sel=?,wp_chn_sel=?,wp_grp=?,wp_val=?,wp_mask=?" });
	TREE_PMU("smmuv3_pmcg_2b442", { "type", "31" }, { "cpumask", "0" }, { "format/event", "config:0-15" },
		 { "format/filter_stream_id", "config1:0-31" }, { "format/filter_span", "config1:32" },
		 { "format/filter_enable", "config1:33" }, { "events/transaction", "event=0x1" });
	TREE_PMU("arm_spe_0", { "type", "32" }, { "cpumask", "0-3" }, { "format/ts_enable", "config:0" },
		 { "format/event_filter", "config1:0-63" }, { "format/min_latency", "config2:0-11" },
		 { "format/inv_event_filter", "config3:0-63" });
}

/* ---- a place that has what was made ---- */

struct machine {
	struct pmus pmus;
	struct nodes nodes;
	struct counter_place place;
	struct log log;
	char said[4096]; /* messages, a line each */
};

static inline void machine_log(void *context, enum xpt_log_level level, const char *text)
{
	struct machine *machine = context;
	size_t used = strlen(machine->said);

	(void)level;
	snprintf(machine->said + used, sizeof(machine->said) - used, "%s\n", text);
}

static inline void machine_open(struct machine *machine)
{
	static char sysfs[PATH_MAX * 2], proc[PATH_MAX * 2];

	strcpy(sysfs, in_fixture("sys"));
	strcpy(proc, in_fixture("proc"));
	*machine = (struct machine){ 0 };
	machine->log = (struct log){ machine_log, machine, XPT_LOG_WARN };
	cr_assert_eq(nodes_find(sysfs, &machine->nodes), 0);
	cr_assert_eq(pmus_read(sysfs, &machine->pmus), 0);
	machine->place = (struct counter_place){
		.sysfs = sysfs,
		.proc = proc,
		.pmus = machine->pmus,
		.nodes = machine->nodes,
		.cpu = -1,
		.log = &machine->log,
	};
	cr_assert_eq(cpus_online(sysfs, &machine->place.online), 0);
}

static inline void machine_close(struct machine *machine)
{
	cpus_free(&machine->place.online);
	pmus_free(&machine->pmus);
	nodes_free(&machine->nodes);
}

/* gpu_index; negative: all. */
static inline void machine_choose(struct machine *machine, int gpu)
{
	cr_assert_lt(gpu, (int)machine->nodes.count);
	machine->place.node = gpu < 0 ? NULL : &machine->nodes.items[gpu];
}

/* "0,16" */
static inline const char *cpus_text(const struct cpus *cpus)
{
	static char text[256];
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < cpus->count && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d", i ? "," : "", cpus->items[i]);
	return text;
}

#endif
