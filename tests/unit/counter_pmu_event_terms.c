/* SPDX-License-Identifier: BSD-2-Clause */
/* What stands between the slashes. The words that are wanted are written by hand from the formats. */
#include "counter/pmu.h"

#include <errno.h>

#include "tests/unit/counter_trees.h"

static struct pmus pmus;

static void open_all(void)
{
	fixture_open();
	tree_i915("i915", "18");
	tree_xe("xe_0000_04_00.0", "20");
	tree_amdgpu("0", "21", "22");
	tree_grace();
	tree_power();
	tree_hybrid();
	tree_amd_cores();
	tree_uncore();
	tree_arm();
	tree_msr();
	cr_assert_eq(pmus_read(in_fixture("sys"), &pmus), 0);
}

static void close_all(void)
{
	pmus_free(&pmus);
	fixture_close();
}

TestSuite(counter_pmu_event_terms, .init = open_all, .fini = close_all);

static int encode(const char *pmu, const char *terms, struct event_encoding *code, char *reason)
{
	reason[0] = '\0';
	for (size_t i = 0; i < pmus.count; i++)
		if (!strcmp(pmus.items[i].name, pmu))
			return event_terms_encode(&pmus.items[i], terms, strlen(terms), code, reason);
	cr_assert_fail("%s is not there", pmu);
	return 0;
}

static void expect_words(const char *pmu, const char *terms, __u64 config, __u64 config1, __u64 config2, __u64 config3)
{
	char reason[EVENT_TERMS_REASON_MAX];
	struct event_encoding code;

	cr_assert_eq(encode(pmu, terms, &code, reason), 0, "%s/%s/: %s", pmu, terms, reason);
	cr_expect_eq(code.config[0], config, "%s/%s/: config is %#llx", pmu, terms, code.config[0]);
	cr_expect_eq(code.config[1], config1, "%s/%s/: config1 is %#llx", pmu, terms, code.config[1]);
	cr_expect_eq(code.config[2], config2, "%s/%s/: config2 is %#llx", pmu, terms, code.config[2]);
	cr_expect_eq(code.config[3], config3, "%s/%s/: config3 is %#llx", pmu, terms, code.config[3]);
}

static void expect_config(const char *pmu, const char *terms, __u64 config)
{
	expect_words(pmu, terms, config, 0, 0, 0);
}

/* said: a part of the reason. */
static void expect_refused(const char *pmu, const char *terms, int error, const char *said)
{
	char reason[EVENT_TERMS_REASON_MAX];
	struct event_encoding code;

	cr_expect_eq(encode(pmu, terms, &code, reason), error, "%s/%s/", pmu, terms);
	cr_expect_not_null(strstr(reason, said), "%s/%s/: '%s'", pmu, terms, reason);
}

/* ---- as perf encodes them ---- */

Test(counter_pmu_event_terms, graphics)
{
	expect_config("i915", "rcs0-busy", 0);
	expect_config("i915", "rcs0-sema", 2);
	expect_config("i915", "vcs1-busy", 0x2010);
	expect_config("i915", "actual-frequency", 0x100000);
	expect_config("i915", "config=0x100001", 0x100001);
	expect_config("i915", "i915_eventid=0x1fffff", 0x1fffff);
	/* config is the whole word, whatever the format says. */
	expect_config("i915", "config=0x1000000000100000", 0x1000000000100000);
	expect_config("xe_0000_04_00.0", "engine-active-ticks", 0x2);
	expect_config("xe_0000_04_00.0", "engine-active-ticks,engine_class=1,gt=1", 0x1000000000100002);
	expect_config("xe_0000_04_00.0", "engine-total-ticks,engine_class=4,engine_instance=3,gt=15",
		      0xf000000000403003);
	expect_config("xe_0000_04_00.0", "function=2,event=0x04", 0x0000200000000004);
	expect_config("amdgpu_0", "xgmi_link0_data_outbound", 0x0200000000024607);
	expect_config("amdgpu_0", "xgmi_link1_data_outbound", 0x0200000000024707);
	expect_config("amdgpu_df_0", "cake0_pcsout_txdata", 0x24607);
	expect_config("amdgpu_df_0", "cake1_ftiinstat_rspalloc", 0x8470b);
}

Test(counter_pmu_event_terms, processors)
{
	expect_words("nvidia_pcie_pmu_0", "rd_bytes_loc,root_port=0x3", 0, 3, 0, 0);
	expect_words("nvidia_pcie_pmu_0", "cycles,root_port=0x3ff", 0x100000000, 0x3ff, 0, 0);
	expect_words("nvidia_nvlink_c2c0_pmu_0", "wr_bytes_loc,port=2", 2, 2, 0, 0);
	expect_words("nvidia_cnvlink_pmu_0", "total_req_rem,rem_socket=0xe", 0xb, 0xe, 0, 0);
	expect_config("nvidia_scf_pmu_0", "gmem_wr_total_bytes", 0x1a0);
	expect_config("power", "energy-pkg", 2);
	expect_config("msr", "tsc", 0);
	expect_config("msr", "event=0xffffffffffffffff", 0xffffffffffffffff);
	expect_words("cpu_core", "mem-loads", 0x1cd, 3, 0, 0);
	expect_words("cpu_core", "event=0xc0,umask=1,inv,cmask=2,edge=1", 0x028401c0, 0, 0, 0);
	expect_words("cpu_core", "event=0xb7,umask=1,offcore_rsp=0x3f803c0001", 0x1b7, 0x3f803c0001, 0, 0);
	expect_config("uncore_imc_0", "cas_count_read", 0xf04);
	expect_config("uncore_imc_0", "cas_count_write", 0x3004);
	expect_config("uncore_imc_0", "event=0x04,umask=3,thresh=0xff,inv,edge", 0xff840304);
}

/* The lower bits of a value lie in the first place, the higher in the second. */
Test(counter_pmu_event_terms, fields_in_two_places)
{
	expect_config("cpu", "event=0x28c,umask=0xa5", 0x20000a58c);
	expect_config("cpu", "event=0xfff", 0xf000000ff);
	expect_config("uncore_cha_0", "event=0x35,umask=0xc8177e01,tid_en=1", 0x00c8177e00010135);
	expect_config("uncore_cha_0", "umask=0xffffffff", 0x00ffffff0000ff00);
	expect_config("uncore_cha_0", "umask=0x100", 0x0000000100000000);
}

Test(counter_pmu_event_terms, meshes)
{
	expect_config("arm_cmn_0", "dtc_cycles", 3);
	expect_config("arm_cmn_0", "hnf_cache_miss", 0x10005);
	expect_config("arm_cmn_0", "hnf_cache_miss,bynodeid=1,nodeid=0x24", 0x2480010005);
	expect_config("arm_cmn_0", "hnf_qos_pocq_occupancy_all", 0xf0005);
	expect_words("arm_cmn_0", "watchpoint_down,wp_dev_sel=1,wp_chn_sel=2,wp_grp=1,wp_val=0x1000,wp_mask=0xfff",
		     0x0111000000027770, 0x1000, 0xfff, 0);
	expect_words("arm_cmn_0",
		     "wp_mask=0xffffffffffffffff,wp_val=0,wp_grp=3,wp_chn_sel=31,wp_dev_sel=7,watchpoint_down",
		     0x03ff000000027770, 0, ~0ull, 0);
	expect_words("smmuv3_pmcg_2b442", "transaction,filter_enable=1,filter_span=0,filter_stream_id=0x42", 1,
		     0x200000042, 0, 0);
	expect_words("arm_spe_0", "ts_enable=1,event_filter=0x10,min_latency=0xabc,inv_event_filter=0x8000000000000000",
		     1, 0x10, 0xabc, 0x8000000000000000);
	expect_words("arm_spe_0", "config=1,config1=2,config2=3,config3=4", 1, 2, 3, 4);
}

/* ---- the order of terms, and numbers ---- */

Test(counter_pmu_event_terms, later_ones_count)
{
	expect_config("cpu", "event=1,event=2", 2);
	expect_config("cpu", "config=0xffff,umask=0", 0xff);
	/* The event first, wherever it stands. */
	expect_config("uncore_imc_0", "umask=1,cas_count_read", 0x104);
	expect_config("uncore_imc_0", "cas_count_read,umask=1", 0x104);
	expect_config("uncore_imc_0", "umask=1,cas_count_read,umask=2", 0x204);
}

Test(counter_pmu_event_terms, numbers)
{
	expect_config("msr", "event=10", 10);
	expect_config("msr", "event=010", 10);
	expect_config("msr", "event=0x1F", 0x1f);
	expect_config("msr", "event=18446744073709551615", ~0ull);
	expect_config("msr", "event", 1);
	expect_refused("msr", "event=18446744073709551616", -EINVAL, "number");
	expect_refused("msr", "event=0x10000000000000000", -EINVAL, "number");
	expect_refused("msr", "event=99999999999999999999999999999999999999", -EINVAL, "number");
	expect_refused("msr", "event=", -EINVAL, "number");
	expect_refused("msr", "event=0x", -EINVAL, "number");
	expect_refused("msr", "event=x", -EINVAL, "number");
	expect_refused("msr", "event=1f", -EINVAL, "number");
	expect_refused("msr", "event=-1", -EINVAL, "number");
	expect_refused("msr", "event=+1", -EINVAL, "number");
	expect_refused("msr", "event= 1", -EINVAL, "number");
	expect_refused("msr", "event= -1", -EINVAL, "number");
	expect_refused("msr", "event=0x-1", -EINVAL, "number");
	expect_refused("msr", "event=0x 1", -EINVAL, "number");
	expect_refused("msr", "event=1 ", -EINVAL, "number");
	expect_refused("msr", "event=1=2", -EINVAL, "number");
	expect_refused("msr", "event==1", -EINVAL, "number");
	expect_refused("msr", "event=?", -EINVAL, "number");
	expect_refused("msr", "event=1.5", -EINVAL, "number");
}

Test(counter_pmu_event_terms, wider_than_the_field)
{
	expect_refused("cpu", "umask=0x100", -EINVAL, "umask has 8 bits: it is at most 255");
	expect_refused("cpu", "event=0x1000", -EINVAL, "event has 12 bits: it is at most 4095");
	expect_refused("cpu", "edge=2", -EINVAL, "edge has 1 bits: it is at most 1");
	expect_refused("nvidia_pcie_pmu_0", "rd_bytes_loc,root_port=0x400", -EINVAL, "at most 1023");
	expect_refused("xe_0000_04_00.0", "engine-active-ticks,gt=16", -EINVAL, "at most 15");
	expect_refused("amdgpu_0", "type=0xffffffffffffffff", -EINVAL, "at most 255");
}

/* ---- refused ---- */

Test(counter_pmu_event_terms, unknown)
{
	expect_refused("i915", "rcs9-busy", -ENOENT, "i915 has no event and no term rcs9-busy");
	expect_refused("i915", "rcs0-busy=1", -ENOENT, "rcs0-busy");
	expect_refused("i915", "rcs0-bus", -ENOENT, "rcs0-bus");
	expect_refused("i915", "event=1", -ENOENT, "event");
	expect_refused("i915", "rcs0-busy,umask=1", -ENOENT, "umask");
	expect_refused("i915", "config4=1", -ENOENT, "config4");
	expect_refused("i915", "config0=1", -ENOENT, "config0");
	expect_refused("i915", "config11=1", -ENOENT, "config11");
	expect_refused("i915", "confi=1", -ENOENT, "confi");
	expect_refused("i915", "=1", -ENOENT, "term");
	expect_refused("i915", ",rcs0-busy", -ENOENT, "term");
	expect_refused("i915", "rcs0-busy,,config=1", -ENOENT, "term");
	expect_refused("i915", "RCS0-BUSY", -ENOENT, "RCS0-BUSY");
}

Test(counter_pmu_event_terms, not_one_event)
{
	expect_refused("i915", "rcs0-busy,rcs0-wait", -EINVAL, "rcs0-busy and rcs0-wait: expected one event");
	expect_refused("i915", "rcs0-busy,rcs0-busy", -EINVAL, "expected one event");
	expect_refused("i915", "", -EINVAL, "expected an event");
}

Test(counter_pmu_event_terms, left_open)
{
	expect_refused("arm_cmn_0", "watchpoint_down", -EINVAL,
		       "watchpoint_down wants a number for wp_dev_sel: arm_cmn_0/watchpoint_down,wp_dev_sel=N/");
	expect_refused("arm_cmn_0", "watchpoint_down,wp_dev_sel=1,wp_chn_sel=2,wp_grp=1,wp_val=0x1000", -EINVAL,
		       "wants a number for wp_mask");
	expect_refused("arm_cmn_0", "watchpoint_down,wp_dev_sel=?,wp_chn_sel=2,wp_grp=1,wp_val=0,wp_mask=0", -EINVAL,
		       "wp_dev_sel: expected a number, got '?'");
}

/* What sysfs says of an event may be wrong, too. */
Test(counter_pmu_event_terms, wrong_events)
{
	char many[512] = "event=1", reason[EVENT_TERMS_REASON_MAX];
	struct pmus odd;
	struct event_encoding code;

	for (int i = 0; i < 40; i++)
		strcat(many, ",umask=?");
	TREE_PMU("odd", { "type", "7" }, { "format/event", "config:0-7" }, { "format/umask", "config:8-15" },
		 { "events/unknown", "what=1" }, { "events/wide", "event=0x100" }, { "events/text", "event=abc" },
		 { "events/open", many }, { "events/self", "self" }, { "events/event", "event=3" },
		 { "events/shadow", "event=?,event=5" });
	cr_assert_eq(pmus_read(in_fixture("sys"), &odd), 0);
	pmus_free(&pmus);
	pmus = odd;
	expect_refused("odd", "unknown", -ENOENT, "what");
	expect_refused("odd", "wide", -EINVAL, "at most 255");
	expect_refused("odd", "text", -EINVAL, "number");
	expect_refused("odd", "open", -EINVAL, "umask");
	expect_refused("odd", "self", -ENOENT, "self");
	expect_config("odd", "open,umask=2", 0x201);
	expect_config("odd", "shadow", 5);
	/* A name that both have is the event's where it has no value. */
	expect_config("odd", "event", 3);
	expect_config("odd", "event=9", 9);
	cr_assert_eq(encode("odd", "event", &code, reason), 0);
	cr_expect_str_eq(code.event->name, "event");
	cr_assert_eq(encode("odd", "event=9", &code, reason), 0);
	cr_expect_null(code.event);
}

/* The reason is cut, never longer than its room. */
Test(counter_pmu_event_terms, long_ones)
{
	char terms[8192], reason[EVENT_TERMS_REASON_MAX];
	struct event_encoding code;

	memset(terms, 'a', sizeof(terms));
	terms[sizeof(terms) - 1] = '\0';
	cr_expect_eq(encode("i915", terms, &code, reason), -ENOENT);
	cr_expect_eq(strlen(reason), (size_t)EVENT_TERMS_REASON_MAX - 1);
	memcpy(terms, "config=", 7);
	cr_expect_eq(encode("i915", terms, &code, reason), -EINVAL);
	cr_expect_eq(strlen(reason), (size_t)EVENT_TERMS_REASON_MAX - 1);
	for (size_t i = 0; i + 9 < sizeof(terms); i += 9)
		memcpy(terms + i, "config=1,", 10);
	expect_config("i915", terms, 1);
}
