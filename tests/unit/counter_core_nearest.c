/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/core/nearest.h"

#include "tests/unit/counter_trees.h"

static struct machine machine;

static void open_all(void)
{
	fixture_open();
	tree_cpus("0-7");
	tree_i915("i915", "18");
	tree_power();
	tree_amd_cores();
	machine_open(&machine);
}

static void close_all(void)
{
	machine_close(&machine);
	fixture_close();
}

TestSuite(counter_core_nearest, .init = open_all, .fini = close_all);

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

Test(counter_core_nearest, first)
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
Test(counter_core_nearest, three_by_distance)
{
	cr_expect_str_eq(near("i915/rcs0-waitt/"), "i915/rcs0-wait/, i915/rcs0-busy/, i915/rcs0-sema/");
	cr_expect_str_eq(near("power/energy-pam/"), "power/energy-ram/, power/energy-pkg/");
	cr_expect_str_eq(near("ref-cycle"), "ref-cycles, bus-cycles, cycles");
}

Test(counter_core_nearest, none)
{
	cr_expect_str_eq(near("quite-something-else-altogether"), "");
	cr_expect_str_eq(near(""), "");
	cr_expect_str_eq(near("x"), "");
	cr_expect_str_eq(near("\xff\xfe\xfd\xfc"), "");
}

/* Names of 128 letters and more are compared with none, and never offered. */
Test(counter_core_nearest, long_names)
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
Test(counter_core_nearest, room)
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
