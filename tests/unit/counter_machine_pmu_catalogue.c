/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/machine/pmu_catalogue.h"

#include <criterion/criterion.h>
#include <string.h>

static void expect(const char *pmu, const char *event, enum counting counting, const char *unit, const char *words)
{
	const struct pmu_catalogue_entry *entry = pmu_catalogue_find(pmu, event);

	cr_assert_not_null(entry, "%s/%s/", pmu, event);
	cr_expect_eq(entry->counting, counting, "%s/%s/", pmu, event);
	cr_expect(unit ? entry->unit && !strcmp(entry->unit, unit) : !entry->unit, "%s/%s/", pmu, event);
	cr_expect_not_null(strstr(entry->description, words), "%s/%s/: %s", pmu, event, entry->description);
}

/* i915 counts MHz and seconds, xe adds the frequency at each read. */
Test(counter_machine_pmu_catalogue, frequencies)
{
	expect("i915", "actual-frequency", COUNTING_PER_SECOND, "MHz", "ran at");
	expect("i915_0000_03_00.0", "requested-frequency-gt1", COUNTING_PER_SECOND, "MHz", "asked for");
	expect("xe_0000_03_00.0", "gt-actual-frequency", COUNTING_BY_READ, "MHz", "runs at");
	expect("xe_0000_03_00.0", "gt-requested-frequency", COUNTING_BY_READ, "MHz", "asked for");
}

Test(counter_machine_pmu_catalogue, sums)
{
	expect("i915", "rcs0-busy", COUNTING_SUM, NULL, "executed");
	expect("i915", "vecs1-sema", COUNTING_SUM, NULL, "semaphore");
	expect("i915_0000_03_00.0", "rc6-residency-gt1", COUNTING_SUM, NULL, "powered down");
	expect("xe_0000_03_00.0", "engine-active-ticks", COUNTING_SUM, NULL, "engine-total-ticks");
	expect("amdgpu_0", "xgmi_link5_data_outbound", COUNTING_SUM, NULL, "link");
	expect("amdgpu_df_0", "cake0_pcsout_txdata", COUNTING_SUM, NULL, "fabric");
	expect("nvidia_nvlink_c2c1_pmu_0", "rd_bytes_loc", COUNTING_SUM, NULL, "between chips");
	expect("nvidia_ucf_pmu_0", "cycles", COUNTING_SUM, NULL, "NVIDIA");
	expect("power", "energy-psys", COUNTING_SUM, NULL, "platform");
	expect("power_core", "energy-core", COUNTING_SUM, NULL, "cores");
	expect("uncore_imc_0", "cas_count_read", COUNTING_SUM, NULL, "read");
	expect("uncore_imc_free_running_0", "write", COUNTING_SUM, NULL, "written");
	expect("uncore_cha_0", "anything", COUNTING_SUM, NULL, "outside its cores");
}

Test(counter_machine_pmu_catalogue, unknown)
{
	cr_expect_null(pmu_catalogue_find("toy_0", "rcs0-busy"));
	cr_expect_null(pmu_catalogue_find("i915", "something"));
	cr_expect_null(pmu_catalogue_find("i915", ""));
	cr_expect_null(pmu_catalogue_find("", ""));
	cr_expect_null(pmu_catalogue_find("amdgpu_0", "busy"));
	cr_expect_null(pmu_catalogue_find("[", "*"));
}

Test(counter_machine_pmu_catalogue, of_each_cpu)
{
	static const char *const each[] = { "software", "tracepoint", "uprobe",	       "cpu",	"cpu_core",
					    "cpu_atom", "msr",	      "armv8_pmuv3_0", "ibs_op" };
	static const char *const devices[] = { "i915",	"xe_0000_03_00.0",  "amdgpu_0",
					       "power", "uncore_imc_0",	    "cpu_toy",
					       "msr_0", "nvidia_scf_pmu_0", "arm_cmn_0",
					       "" };

	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
		cr_expect(pmu_of_each_cpu(each[i]), "%s", each[i]);
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		cr_expect(!pmu_of_each_cpu(devices[i]), "%s", devices[i]);
}
