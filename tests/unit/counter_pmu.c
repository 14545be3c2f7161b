/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/pmu.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <float.h>
#include <locale.h>
#include <string.h>

#include "tests/unit/counter_trees.h"

TestSuite(counter_pmu, .init = fixture_open, .fini = fixture_close);

static struct pmus read_all(void)
{
	struct pmus pmus;

	cr_assert_eq(pmus_read(in_fixture("sys"), &pmus), 0);
	return pmus;
}

static const struct pmu *find(const struct pmus *pmus, const char *name)
{
	for (size_t i = 0; i < pmus->count; i++)
		if (!strcmp(pmus->items[i].name, name))
			return &pmus->items[i];
	cr_assert_fail("%s is not there", name);
	return NULL;
}

static bool is_there(const struct pmus *pmus, const char *name)
{
	for (size_t i = 0; i < pmus->count; i++)
		if (!strcmp(pmus->items[i].name, name))
			return true;
	return false;
}

static void expect_format(const struct pmus *pmus, const char *pmu, const char *name, unsigned int config, __u64 bits)
{
	const struct pmu_format *format = pmu_format(find(pmus, pmu), name, strlen(name));

	cr_assert_not_null(format, "%s/%s", pmu, name);
	cr_expect_str_eq(format->name, name);
	cr_expect_eq(format->config, config, "%s/%s is in config%u", pmu, name, format->config);
	cr_expect_eq(format->bits, bits, "%s/%s has bits %#llx", pmu, name, format->bits);
}

static void expect_event(const struct pmus *pmus, const char *pmu, const char *name, const char *terms,
			 const char *unit, double scale)
{
	const struct pmu_event *event = pmu_event(find(pmus, pmu), name, strlen(name));

	cr_assert_not_null(event, "%s/%s", pmu, name);
	cr_expect_str_eq(event->name, name);
	cr_expect_str_eq(event->terms, terms);
	cr_expect_str_eq(event->unit, unit);
	cr_expect_eq(event->scale, scale, "%s/%s: %g", pmu, name, event->scale);
}

static void expect_mask(const struct pmus *pmus, const char *name, const char *cpus)
{
	const struct pmu *pmu = find(pmus, name);

	cr_expect_eq(pmu->has_mask, cpus != NULL, "%s", name);
	cr_expect_str_eq(cpus_text(&pmu->mask), cpus ? cpus : "", "%s", name);
}

/* ---- machines ---- */

Test(counter_pmu, integrated_and_discrete)
{
	struct pmus pmus;

	tree_i915("i915", "18");
	tree_i915_compute("i915_0000_03_00.0", "19");
	tree_xe("xe_0000_04_00.0", "20");
	pmus = read_all();
	cr_assert_eq(pmus.count, 3);
	cr_expect_eq(find(&pmus, "i915")->type, 18);
	cr_expect_eq(find(&pmus, "i915_0000_03_00.0")->type, 19);
	cr_expect_eq(find(&pmus, "xe_0000_04_00.0")->type, 20);
	expect_mask(&pmus, "i915", "0");
	expect_mask(&pmus, "xe_0000_04_00.0", NULL);
	expect_format(&pmus, "i915", "i915_eventid", 0, 0x1fffff);
	expect_format(&pmus, "xe_0000_04_00.0", "event", 0, 0xfff);
	expect_format(&pmus, "xe_0000_04_00.0", "engine_instance", 0, 0xff000);
	expect_format(&pmus, "xe_0000_04_00.0", "engine_class", 0, 0xff00000);
	expect_format(&pmus, "xe_0000_04_00.0", "function", 0, 0xffff00000000000);
	expect_format(&pmus, "xe_0000_04_00.0", "gt", 0, 0xf000000000000000);
	expect_event(&pmus, "i915", "rcs0-busy", "config=0x0", "ns", 1);
	expect_event(&pmus, "i915", "interrupts", "config=0x100002", "", 1);
	expect_event(&pmus, "i915_0000_03_00.0", "ccs0-busy", "config=0x4000", "ns", 1);
	cr_expect_null(pmu_event(find(&pmus, "i915"), "ccs0-busy", 9));
	/* Units are no events. */
	cr_expect_eq(find(&pmus, "i915")->event_count, 9);
	cr_expect_eq(find(&pmus, "xe_0000_04_00.0")->event_count, 5);
	pmus_free(&pmus);
	cr_expect_eq(pmus.count, 0);
}

Test(counter_pmu, processors)
{
	struct pmus pmus;

	tree_power();
	tree_msr();
	tree_hybrid();
	tree_uncore();
	tree_arm();
	tree_grace();
	pmus = read_all();
	expect_mask(&pmus, "power", "0,16");
	expect_mask(&pmus, "msr", NULL);
	expect_mask(&pmus, "cpu_core", "0,1,2,3,4,5,6,7");
	expect_mask(&pmus, "cpu_atom", "8,9,10,11");
	expect_mask(&pmus, "nvidia_scf_pmu_1", "72");
	expect_event(&pmus, "power", "energy-pkg", "event=0x02", "Joules", 1.0 / 4294967296.0);
	expect_event(&pmus, "power", "energy-ram", "event=0x03", "Joules", 1.0 / 65536.0);
	expect_event(&pmus, "uncore_imc_1", "cas_count_read", "event=0x04,umask=0x0f", "MiB", 64.0 / 1048576.0);
	cr_expect(pmu_event(find(&pmus, "msr"), "cpu_thermal_margin", 18)->snapshot);
	cr_expect(!pmu_event(find(&pmus, "msr"), "tsc", 3)->snapshot);
	expect_format(&pmus, "msr", "event", 0, ~0ull);
	expect_format(&pmus, "uncore_cha_0", "umask", 0, 0x00ffffff0000ff00);
	expect_format(&pmus, "arm_cmn_0", "wp_val", 1, ~0ull);
	expect_format(&pmus, "arm_cmn_0", "wp_mask", 2, ~0ull);
	expect_format(&pmus, "arm_spe_0", "inv_event_filter", 3, ~0ull);
	expect_format(&pmus, "arm_cmn_0", "bynodeid", 0, 0x80000000);
	expect_format(&pmus, "smmuv3_pmcg_2b442", "filter_enable", 1, 0x200000000);
	expect_format(&pmus, "nvidia_scf_pmu_0", "event", 0, 0x1ffffffff);
	pmus_free(&pmus);
}

/* Numbers are compared as numbers. */
Test(counter_pmu, order)
{
	static const char *const wanted[] = { "uncore_cha_0", "uncore_imc_0", "uncore_imc_1", "uncore_imc_10",
					      "uncore_imc_free_running_0" };
	struct pmus pmus;
	const struct pmu *pmu;

	tree_uncore();
	pmus = read_all();
	cr_assert_eq(pmus.count, 5);
	for (size_t i = 0; i < 5; i++)
		cr_expect_str_eq(pmus.items[i].name, wanted[i]);
	pmu = find(&pmus, "uncore_imc_0");
	for (size_t i = 1; i < pmu->event_count; i++)
		cr_expect_lt(strcmp(pmu->events[i - 1].name, pmu->events[i].name), 0);
	for (size_t i = 1; i < pmu->format_count; i++)
		cr_expect_lt(strcmp(pmu->formats[i - 1].name, pmu->formats[i].name), 0);
	pmus_free(&pmus);
}

Test(counter_pmu, looking_up)
{
	struct pmus pmus;
	const struct pmu *pmu;

	tree_xe("xe_0000_04_00.0", "20");
	pmus = read_all();
	pmu = find(&pmus, "xe_0000_04_00.0");
	cr_expect_not_null(pmu_format(pmu, "gt=1", 2));
	cr_expect_null(pmu_format(pmu, "gt=1", 3));
	cr_expect_null(pmu_format(pmu, "g", 1));
	cr_expect_null(pmu_format(pmu, "", 0));
	cr_expect_null(pmu_format(pmu, "gt\0\0", 4));
	cr_expect_not_null(pmu_event(pmu, "gt-c6-residency,gt=1", 15));
	cr_expect_null(pmu_event(pmu, "gt-c6-residenc", 14));
	cr_expect_null(pmu_event(pmu, "", 0));
	pmus_free(&pmus);
}

/* ---- odd and hostile ---- */

Test(counter_pmu, no_sources)
{
	struct pmus pmus;

	cr_expect_eq(pmus_read(in_fixture("nowhere"), &pmus), -ENOENT);
	cr_expect_eq(pmus.count, 0);
	fixture_file("sys/bus/event_source/devices", "");
	cr_expect_eq(pmus_read(in_fixture("sys"), &pmus), -ENOTDIR);
	pmus_free(&pmus);
}

Test(counter_pmu, types)
{
	static const char *const no_types[] = {
		"", "x", "-1", "0x4", "4x", "4 5", "4294967296", "99999999999999999999"
	};
	char name[16];
	struct pmus pmus;

	for (size_t i = 0; i < sizeof(no_types) / sizeof(no_types[0]); i++) {
		snprintf(name, sizeof(name), "bad_%zu", i);
		TREE_PMU(name, { "type", no_types[i] }, { "events/a", "event=1" });
	}
	TREE_PMU("without", { "events/a", "event=1" });
	TREE_PMU("highest", { "type", "4294967295" });
	TREE_PMU("zero", { "type", "0" });
	fixture_file("sys/bus/event_source/devices/file", "1");
	fixture_link("sys/bus/event_source/devices/gone", "sys/devices/gone");
	pmus = read_all();
	cr_assert_eq(pmus.count, 2);
	cr_expect_eq(find(&pmus, "highest")->type, UINT32_MAX);
	cr_expect_eq(find(&pmus, "zero")->type, 0);
	cr_expect(!is_there(&pmus, "without"));
	pmus_free(&pmus);
}

Test(counter_pmu, formats_that_are_none)
{
	static const char *const texts[] = {
		"config:64",	 "config:0-64", "config:60-70",	   "config:7-0",       "config:0-7,3",
		"config:",	 "config",	"config1",	   "config4:0",	       "config9:0",
		"config10:0",	 "Config:0",	"config :0",	   "config: 0",	       "config:0 ,1",
		"config:0-",	 "config:-1",	"config:0,",	   "attr:0-7",	       ":0",
		"0-7",		 "config-1:0",	"config:99999999", "config:0-0x7",     "config:0-7;1:0",
		"config:0-8191", "config0:0",	"config::0-7",	   "config:0-7config", "x",
	};
	size_t count = sizeof(texts) / sizeof(texts[0]);
	char name[32];
	struct pmus pmus;

	for (size_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "format/f%zu", i);
		TREE_PMU("odd", { "type", "7" }, { name, texts[i] });
	}
	TREE_PMU("odd", { "format/empty", "" }, { "format/good", "config3:1,3-4,63" });
	pmus = read_all();
	for (size_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "f%zu", i);
		cr_expect_null(pmu_format(find(&pmus, "odd"), name, strlen(name)), "%s", texts[i]);
	}
	cr_expect_eq(find(&pmus, "odd")->format_count, 1);
	expect_format(&pmus, "odd", "good", 3, 0x800000000000001a);
	pmus_free(&pmus);
}

Test(counter_pmu, scales)
{
	static const struct {
		const char *text;
		double scale;
	} cases[] = {
		{ "1", 1 },	   { "0.5", 0.5 },     { "1e-9", 1e-9 },   { "2.5E+3", 2500 }, { "0", 0 },
		{ "-2", -2 },	   { "", 1 },	       { "x", 1 },	   { "1x", 1 },	       { "1 2", 1 },
		{ "nan", 1 },	   { "inf", 1 },       { "-infinity", 1 }, { "1e999", 1 },     { "0,5", 1 },
		{ "1e-400", 0.0 }, { "1e308", 1e308 },
	};
	char name[32], file[48];
	struct pmus pmus;

	/* Where numbers are written with a comma, sysfs has a point all the same. */
	setlocale(LC_ALL, "de_DE.UTF-8");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(name, sizeof(name), "events/e%zu", i);
		snprintf(file, sizeof(file), "%s.scale", name);
		TREE_PMU("odd", { "type", "7" }, { name, "event=1" }, { file, cases[i].text });
	}
	pmus = read_all();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(name, sizeof(name), "e%zu", i);
		expect_event(&pmus, "odd", name, "event=1", "", cases[i].scale);
	}
	pmus_free(&pmus);
}

/* Attributes belong to an event; alone, or in its place, they are none. */
Test(counter_pmu, attributes)
{
	struct pmus pmus;

	TREE_PMU("odd", { "type", "7" }, { "events/a", "event=1" }, { "events/a.scale", "2" }, { "events/a.unit", "B" },
		 { "events/a.per-pkg", "1" }, { "events/a.snapshot", "0" }, { "events/b.scale", "2" },
		 { "events/c.x", "event=2" }, { "events/empty", "" }, { "events/.hidden", "event=3" },
		 { "events/folder/x", "event=4" });
	pmus = read_all();
	cr_expect_eq(find(&pmus, "odd")->event_count, 2);
	expect_event(&pmus, "odd", "a", "event=1", "B", 2);
	expect_event(&pmus, "odd", "c.x", "event=2", "", 1);
	cr_expect(!pmu_event(find(&pmus, "odd"), "a", 1)->snapshot);
	pmus_free(&pmus);
}

Test(counter_pmu, long_files)
{
	char text[4097];
	struct pmus pmus;

	memset(text, 'a', sizeof(text));
	text[4096] = '\0';
	TREE_PMU("odd", { "type", "7" }, { "events/too_long", text }, { "events/e", "event=1" },
		 { "events/e.unit", text }, { "events/e.scale", text }, { "format/f", text }, { "cpumask", text });
	text[4094] = '\0';
	TREE_PMU("odd", { "events/long", text });
	TREE_PMU("untyped", { "type", text });
	pmus = read_all();
	cr_expect_eq(pmus.count, 1);
	cr_expect_null(pmu_event(find(&pmus, "odd"), "too_long", 8));
	expect_event(&pmus, "odd", "e", "event=1", "", 1);
	expect_event(&pmus, "odd", "long", text, "", 1);
	expect_mask(&pmus, "odd", NULL);
	pmus_free(&pmus);
}

Test(counter_pmu, masks)
{
	struct pmus pmus;

	TREE_PMU("a", { "type", "1" }, { "cpumask", "" });
	TREE_PMU("b", { "type", "2" }, { "cpumask", "3-1" });
	TREE_PMU("c", { "type", "3" }, { "cpumask", "0-" });
	TREE_PMU("d", { "type", "4" }, { "cpumask", "99999999" });
	TREE_PMU("e", { "type", "5" }, { "cpumask", "2" }, { "cpus", "0-3" });
	TREE_PMU("f", { "type", "6" }, { "cpumask", "" }, { "cpus", "0-3" });
	pmus = read_all();
	expect_mask(&pmus, "a", NULL);
	expect_mask(&pmus, "b", NULL);
	expect_mask(&pmus, "c", NULL);
	expect_mask(&pmus, "d", NULL);
	expect_mask(&pmus, "e", "2");
	expect_mask(&pmus, "f", "0,1,2,3");
	pmus_free(&pmus);
}

/* What is always there. */
Test(counter_pmu, of_this_machine)
{
	struct pmus pmus;

	cr_assert_eq(pmus_read("/sys", &pmus), 0);
	cr_expect_eq(find(&pmus, "software")->type, 1);
	cr_expect_eq(find(&pmus, "tracepoint")->type, 2);
	pmus_free(&pmus);
}

/* ---- the catalogue ---- */

static void expect(const char *pmu, const char *event, enum counting counting, const char *unit, const char *words)
{
	const struct pmu_catalogue_entry *entry = pmu_catalogue_find(pmu, event);

	cr_assert_not_null(entry, "%s/%s/", pmu, event);
	cr_expect_eq(entry->counting, counting, "%s/%s/", pmu, event);
	cr_expect(unit ? entry->unit && !strcmp(entry->unit, unit) : !entry->unit, "%s/%s/", pmu, event);
	cr_expect_not_null(strstr(entry->description, words), "%s/%s/: %s", pmu, event, entry->description);
}

/* i915 counts MHz and seconds, xe adds the frequency at each read. */
Test(counter_pmu_catalogue, frequencies)
{
	expect("i915", "actual-frequency", COUNTING_PER_SECOND, "MHz", "ran at");
	expect("i915_0000_03_00.0", "requested-frequency-gt1", COUNTING_PER_SECOND, "MHz", "asked for");
	expect("xe_0000_03_00.0", "gt-actual-frequency", COUNTING_BY_READ, "MHz", "runs at");
	expect("xe_0000_03_00.0", "gt-requested-frequency", COUNTING_BY_READ, "MHz", "asked for");
}

Test(counter_pmu_catalogue, sums)
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

Test(counter_pmu_catalogue, unknown)
{
	cr_expect_null(pmu_catalogue_find("toy_0", "rcs0-busy"));
	cr_expect_null(pmu_catalogue_find("i915", "something"));
	cr_expect_null(pmu_catalogue_find("i915", ""));
	cr_expect_null(pmu_catalogue_find("", ""));
	cr_expect_null(pmu_catalogue_find("amdgpu_0", "busy"));
	cr_expect_null(pmu_catalogue_find("[", "*"));
}

Test(counter_pmu_catalogue, of_each_cpu)
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
