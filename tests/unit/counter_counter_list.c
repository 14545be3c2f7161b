/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/counter.h"

#include <errno.h>

#include "tests/unit/counter_trees.h"

static struct machine machine;

static void close_all(void)
{
	machine_close(&machine);
	fixture_close();
}

TestSuite(counter_counter_list, .init = fixture_open, .fini = close_all);

/* What is visited, a line each: NAME UNIT SCALE KIND SOURCE. */
struct visited {
	char *text;
	size_t size;
	FILE *stream;
	int count, until;
};

static int on_counter(void *context, const struct xpt_counter_info *info)
{
	static const char *const kinds[] = { "sum", "mean", "level" };
	struct visited *visited = context;

	cr_expect_not_null(info->description, "%s", info->name);
	fprintf(visited->stream, "%s %s %g %s %s\n", info->name, info->unit, info->scale, kinds[info->kind],
		info->source);
	return ++visited->count == visited->until ? 77 : 0;
}

static char *visit(int until, int wanted)
{
	struct visited visited = { .until = until };

	visited.stream = open_memstream(&visited.text, &visited.size);
	cr_assert_not_null(visited.stream);
	cr_expect_eq(counters_visit(&machine.place, on_counter, &visited), wanted);
	fclose(visited.stream);
	return visited.text;
}

static void expect_lines(const char *const *lines, size_t count)
{
	char *text = visit(-1, 0);

	for (size_t i = 0; i < count; i++)
		cr_expect_not_null(strstr(text, lines[i]), "'%s' is not in\n%s", lines[i], text);
	free(text);
}

Test(counter_counter_list, machines)
{
	static const char *const lines[] = {
		"i915/actual-frequency/ MHz 1 mean i915\n",
		"i915/rcs0-busy/ ns 1 sum i915\n",
		"i915/interrupts/  1 sum i915\n",
		"xe_0000_03_00.0/gt-actual-frequency/ MHz 1 level xe_0000_03_00.0\n",
		"xe_0000_03_00.0/engine-active-ticks/  1 sum xe_0000_03_00.0\n",
		"power/energy-pkg/ Joules 2.32831e-10 sum power\n",
		"uncore_imc_10/cas_count_write/ MiB 6.10352e-05 sum uncore_imc_10\n",
		"msr/cpu_thermal_margin/ C 1 level msr\n",
		"arm_cmn_0/hnf_cache_miss/  1 sum arm_cmn_0\n",
		"arm_cmn_0/watchpoint_down,wp_dev_sel=?,wp_chn_sel=?,wp_grp=?,wp_val=?,wp_mask=?/  1 sum arm_cmn_0\n",
		"task-clock ns 1 sum software\n",
	};

	tree_cpus("0-31");
	tree_i915("i915", "18");
	tree_xe("xe_0000_03_00.0", "19");
	tree_power();
	tree_uncore();
	tree_arm();
	tree_msr();
	machine_open(&machine);
	expect_lines(lines, sizeof(lines) / sizeof(lines[0]));
}

static int resolves(void *context, const struct xpt_counter_info *info)
{
	struct counter counter;

	++*(int *)context;
	if (strchr(info->name, '?'))
		return 0;
	cr_assert_eq(counter_resolve(&machine.place, info->name, &counter), 0, "%s", info->name);
	cr_expect_str_eq(counter.info.name, info->name);
	cr_expect_str_eq(counter.info.unit, info->unit, "%s", info->name);
	cr_expect_str_eq(counter.info.description, info->description, "%s", info->name);
	cr_expect_str_eq(counter.info.source, info->source, "%s", info->name);
	cr_expect_eq(counter.info.kind, info->kind, "%s", info->name);
	cr_expect_eq(counter.info.scale, info->scale, "%s", info->name);
	counter_free(&counter);
	return 0;
}

/* Hardware events are listed where there are counters for them, by whatever name. */
Test(counter_counter_list, cores)
{
	static const char *const cores[] = { "cpu", "cpu_core", "armv8_pmuv3_0", "software", "power" };
	char *text;

	tree_cpus("0");
	for (size_t i = 0; i < 5; i++) {
		TREE_PMU(cores[i], { "type", "4" });
		machine_open(&machine);
		text = visit(-1, 0);
		cr_expect_eq(strstr(text, "\ncycles  1 sum hardware\n") != NULL, i < 3, "%s", cores[i]);
		cr_expect_not_null(strstr(text, "page-faults  1 sum software\n"));
		free(text);
		machine_close(&machine);
		fixture_remove("sys/bus/event_source/devices/");
	}
	machine = (struct machine){ 0 };
}

/* What is listed can be opened, and is then described in the same way. */
Test(counter_counter_list, all_can_be_opened)
{
	int count = 0;

	tree_cpus("0-143");
	tree_i915("i915", "18");
	tree_i915_compute("i915_0000_03_00.0", "19");
	tree_xe("xe_0000_04_00.0", "25");
	tree_amdgpu("0", "26", "27");
	tree_grace();
	tree_power();
	tree_hybrid();
	tree_uncore();
	tree_arm();
	tree_msr();
	fixture_device("pci0000:00/0000:05:00.0", "drm", "renderD128", "amdgpu");
	fixture_file("sys/devices/pci0000:00/0000:05:00.0/gpu_busy_percent", "1\n");
	machine_open(&machine);
	cr_expect_eq(counters_visit(&machine.place, resolves, &count), 0);
	cr_expect_eq(count,
		     9 + 10 + 5 + 2 + 2 + 2 * 4 + 4 * 5 + 2 + 3 + 3 * 3 + 1 + 4 + 1 + 3 + 1 + (int)kernel_event_count);
}

Test(counter_counter_list, of_one_device)
{
	char *text;

	tree_cpus("0-7");
	tree_i915("i915", "18");
	tree_i915("i915_0000_03_00.0", "19");
	tree_msr();
	fixture_device("pci0000:00/0000:00:02.0", "drm", "renderD128", "i915");
	fixture_device("pci0000:00/0000:03:00.0", "drm", "renderD129", "i915");
	machine_open(&machine);
	machine_choose(&machine, 0);
	text = visit(-1, 0);
	cr_expect_not_null(strstr(text, "i915/rcs0-busy/"));
	cr_expect_null(strstr(text, "i915_0000_03_00.0/rcs0-busy/"));
	cr_expect_not_null(strstr(text, "msr/tsc/"));
	free(text);
	machine_choose(&machine, 1);
	text = visit(-1, 0);
	cr_expect_null(strstr(text, "i915/rcs0-busy/"));
	cr_expect_not_null(strstr(text, "i915_0000_03_00.0/rcs0-busy/"));
	cr_expect_not_null(strstr(text, "page-faults"));
	free(text);
}

/* Wherever the visitor has enough, nothing more is visited. */
Test(counter_counter_list, ends_early)
{
	char *text;

	tree_cpus("0");
	tree_msr();
	fixture_device("pci0000:00/0000:05:00.0", "drm", "renderD128", "amdgpu");
	fixture_file("sys/devices/pci0000:00/0000:05:00.0/gpu_busy_percent", "1\n");
	machine_open(&machine);
	for (int until = 1; until < 8; until++) {
		int lines = 0;

		text = visit(until, 77);
		for (char *c = text; *c; c++)
			lines += *c == '\n';
		cr_expect_eq(lines, until);
		free(text);
	}
}

/* A name of more than its room is cut. */
Test(counter_counter_list, many_open_values)
{
	char terms[4000] = "event=1", term[32];

	for (int i = 0; i < 200; i++) {
		snprintf(term, sizeof(term), ",value%d=?", i);
		strcat(terms, term);
	}
	tree_cpus("0");
	TREE_PMU("odd", { "type", "7" }, { "format/event", "config:0-7" }, { "events/many", terms },
		 { "events/one", "event=1,x=?" }, { "events/question", "event=?x,y=?,=?,?" });
	machine_open(&machine);
	expect_lines((const char *const[]){ "odd/many,value0=?,value1=?", "odd/one,x=?/ ", "odd/question,y=?/ ",
					    "page-faults" },
		     4);
}

/* ---- near names ---- */

static void open_all(void)
{
	fixture_open();
	tree_cpus("0-7");
	tree_i915("i915", "18");
	tree_power();
	tree_amd_cores();
	machine_open(&machine);
}

TestSuite(counter_counter_list_nearest, .init = open_all, .fini = close_all);

static const char *near(const char *name)
{
	static char text[NEAREST_TEXT_MAX];

	memset(text, 'x', sizeof(text));
	nearest_counters(&machine.place, name, text);
	cr_assert_not_null(memchr(text, 0, sizeof(text)));
	return text;
}

/* The first is the nearest. */
static void expect_first(const char *name, const char *wanted)
{
	const char *text = near(name);
	size_t length = strcspn(text, ",");

	cr_expect(length == strlen(wanted) && !strncmp(text, wanted, length), "%s: %s", name, text);
}

Test(counter_counter_list_nearest, first)
{
	expect_first("i915/rcs0-bussy/", "i915/rcs0-busy/");
	expect_first("i915/rcs0busy/", "i915/rcs0-busy/");
	expect_first("i915/vcs0-busy/", "i915/rcs0-busy/");
	expect_first("i915/actual_frequency/", "i915/actual-frequency/");
	expect_first("power/energy_pkg/", "power/energy-pkg/");
	expect_first("page-fault", "page-faults");
	expect_first("page-faults", "page-faults");
	expect_first("instruction", "instructions");
	expect_first("cycle", "cycles");
}

/* One letter exchanged is nearer than two; those that are equally near stand as they were listed. */
Test(counter_counter_list_nearest, three_by_distance)
{
	cr_expect_str_eq(near("i915/rcs0-waitt/"), "i915/rcs0-wait/, i915/rcs0-busy/, i915/rcs0-sema/");
	cr_expect_str_eq(near("power/energy-pam/"), "power/energy-ram/, power/energy-pkg/");
	cr_expect_str_eq(near("ref-cycle"), "ref-cycles, bus-cycles, cycles");
}

Test(counter_counter_list_nearest, none)
{
	cr_expect_str_eq(near("quite-something-else-altogether"), "");
	cr_expect_str_eq(near(""), "");
	cr_expect_str_eq(near("x"), "");
	cr_expect_str_eq(near("\xff\xfe\xfd\xfc"), "");
}

/* Names of 128 letters and more are compared with none, and never offered. */
Test(counter_counter_list_nearest, long_names)
{
	char name[5000], event[160], file[176];

	memset(name, 'p', sizeof(name) - 1);
	for (size_t length = 120; length < 136; length++) {
		name[length] = '\0';
		cr_expect_str_eq(near(name), "");
		name[length] = 'p';
	}
	name[sizeof(name) - 1] = '\0';
	cr_expect_str_eq(near(name), "");
	machine_close(&machine);
	/* odd/EVENT/ of 126 to 129 letters */
	for (size_t length = 121; length < 125; length++) {
		memset(event, 'e', length);
		event[length] = '\0';
		snprintf(file, sizeof(file), "events/%s", event);
		TREE_PMU("odd", { "type", "7" }, { file, "event=1" });
	}
	machine_open(&machine);
	memset(event, 'e', 121);
	event[121] = '\0';
	snprintf(name, sizeof(name), "odd/%s/", event);
	cr_expect_eq(strlen(near(name)), 126 + 2 + 127);
}

/* Three names as long as can be have room. */
Test(counter_counter_list_nearest, room)
{
	char event[160], file[176], name[176];

	machine_close(&machine);
	for (char last = 'a'; last < 'f'; last++) {
		memset(event, 'e', 122);
		event[121] = last;
		event[122] = '\0';
		snprintf(file, sizeof(file), "events/%s", event);
		TREE_PMU("odd", { "type", "7" }, { file, "event=1" });
	}
	machine_open(&machine);
	event[121] = 'x';
	snprintf(name, sizeof(name), "odd/%s/", event);
	cr_expect_eq(strlen(near(name)), 3 * 127 + 2 * 2);
}
