/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/machine/pmu_catalogue.h"

#include <fnmatch.h>
#include <stddef.h>

/* The first that matches counts. */
static const struct pmu_catalogue_entry entries[] = {
	/* i915 adds the frequency up over time, independent of readers. */
	{ "i915*", "actual-frequency*", COUNTING_PER_SECOND, "MHz", "frequency that the GT ran at" },
	{ "i915*", "requested-frequency*", COUNTING_PER_SECOND, "MHz", "frequency that was asked for" },
	{ "i915*", "*-busy", COUNTING_SUM, NULL, "time in which the engine executed" },
	{ "i915*", "*-wait", COUNTING_SUM, NULL, "time in which the engine waited for an event" },
	{ "i915*", "*-sema", COUNTING_SUM, NULL, "time in which the engine waited for a semaphore" },
	{ "i915*", "interrupts", COUNTING_SUM, NULL, "interrupts of the device" },
	{ "i915*", "rc6-residency*", COUNTING_SUM, NULL, "time in which the GT was powered down" },
	{ "i915*", "software-gt-awake-time*", COUNTING_SUM, NULL, "time in which the driver kept the GT awake" },
	{ "xe*", "gt-actual-frequency*", COUNTING_BY_READ, "MHz", "frequency that the GT runs at" },
	{ "xe*", "gt-requested-frequency*", COUNTING_BY_READ, "MHz", "frequency that is asked for" },
	{ "xe*", "gt-c6-residency*", COUNTING_SUM, NULL, "time in which the GT was powered down" },
	{ "xe*", "engine-active-ticks*", COUNTING_SUM, NULL,
	  "ticks in which the engine executed: share of engine-total-ticks" },
	{ "xe*", "engine-total-ticks*", COUNTING_SUM, NULL, "ticks of the engine's clock" },
	{ "amdgpu_df*", "*", COUNTING_SUM, NULL, "data fabric of the device" },
	{ "amdgpu*", "xgmi_link*", COUNTING_SUM, NULL, "beats of data sent over a link to another device" },
	{ "nvidia_nvlink_c2c*", "*", COUNTING_SUM, NULL, "NVLink between chips" },
	{ "nvidia_cnvlink*", "*", COUNTING_SUM, NULL, "coherent NVLink to another socket" },
	{ "nvidia_pcie*", "*", COUNTING_SUM, NULL, "PCIe root complex" },
	{ "nvidia_scf*", "*", COUNTING_SUM, NULL, "coherency fabric of the socket" },
	{ "nvidia_*", "*", COUNTING_SUM, NULL, "NVIDIA system on chip" },
	{ "power*", "energy-pkg", COUNTING_SUM, NULL, "energy of the processor package" },
	{ "power*", "energy-ram", COUNTING_SUM, NULL, "energy of the memory" },
	{ "power*", "energy-gpu", COUNTING_SUM, NULL, "energy of the processor's own GPU" },
	{ "power*", "energy-psys", COUNTING_SUM, NULL, "energy of the platform" },
	{ "power*", "energy-core*", COUNTING_SUM, NULL, "energy of the processor's cores" },
	{ "msr", "tsc", COUNTING_SUM, NULL, "time stamp counter" },
	{ "msr", "aperf", COUNTING_SUM, NULL, "cycles while not idle" },
	{ "msr", "mperf", COUNTING_SUM, NULL, "cycles of the reference clock while not idle" },
	{ "msr", "irperf", COUNTING_SUM, NULL, "instructions retired" },
	{ "msr", "smi", COUNTING_SUM, NULL, "system management interrupts" },
	{ "uncore_imc*", "*read*", COUNTING_SUM, NULL, "memory controller: data read" },
	{ "uncore_imc*", "*write*", COUNTING_SUM, NULL, "memory controller: data written" },
	{ "uncore_imc*", "*", COUNTING_SUM, NULL, "memory controller" },
	{ "uncore_iio*", "*", COUNTING_SUM, NULL, "I/O stack: traffic of PCIe ports" },
	{ "uncore_upi*", "*", COUNTING_SUM, NULL, "link between sockets" },
	{ "uncore_*", "*", COUNTING_SUM, NULL, "Intel processor, outside its cores" },
	{ "amd_df", "*", COUNTING_SUM, NULL, "AMD data fabric" },
	{ "amd_umc*", "*", COUNTING_SUM, NULL, "AMD memory controller" },
	{ "amd_l3", "*", COUNTING_SUM, NULL, "AMD L3 cache" },
	{ "amd_iommu*", "*", COUNTING_SUM, NULL, "AMD I/O memory management unit" },
	{ "dmar*", "*", COUNTING_SUM, NULL, "Intel I/O memory management unit" },
	{ "dsa*", "*", COUNTING_SUM, NULL, "Intel data streaming accelerator" },
	{ "iax*", "*", COUNTING_SUM, NULL, "Intel in-memory analytics accelerator" },
	{ "smmuv3_pmcg_*", "*", COUNTING_SUM, NULL, "Arm I/O memory management unit" },
	{ "arm_cmn*", "*", COUNTING_SUM, NULL, "Arm coherent mesh network" },
};

static const char *const of_each_cpu[] = { "software", "tracepoint",  "breakpoint", "kprobe", "uprobe",
					   "cpu",      "cpu_core",    "cpu_atom",   "msr",    "armv*",
					   "ibs_*",    "cstate_core", "hardware" };

const struct pmu_catalogue_entry *pmu_catalogue_find(const char *pmu, const char *event)
{
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (!fnmatch(entries[i].pmu, pmu, 0) && !fnmatch(entries[i].event, event, 0))
			return &entries[i];
	return NULL;
}

bool pmu_of_each_cpu(const char *pmu)
{
	for (size_t i = 0; i < sizeof(of_each_cpu) / sizeof(of_each_cpu[0]); i++)
		if (!fnmatch(of_each_cpu[i], pmu, 0))
			return true;
	return false;
}
