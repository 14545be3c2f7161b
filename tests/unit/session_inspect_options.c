/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "describe/runtime/description.h"
#include "describe/driver/driver.h"
#include "session/inspect/options.h"

static char last_message[1024];

static void keep(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	(void)level;
	strncpy(last_message, text, sizeof(last_message) - 1);
}

static struct xpt_inspect_options *make(void)
{
	struct xpt_inspect_options *options;

	cr_assert_eq(xpt_inspect_options_create(&options), 0);
	return options;
}

static void expect_defaults(const struct xpt_inspect_options *options)
{
	size_t count, known;

	cr_expect_eq(options->settings.session_id, 1);
	cr_expect_str_eq(options->output_dir, "./output");
	cr_expect_eq(options->settings.max_events_per_core, 1000000);
	cr_expect_not(options->settings.inspect);
	cr_expect_not(options->settings.on_fail);
	cr_expect_eq(options->targets.size, 0);
	for (__s64 core = -2; core < XPT_INSPECT_CORES + 2; core++)
		cr_expect(inspect_settings_wants_core(&options->settings, core), "%lld", (long long)core);
	for (unsigned int type = 0; type < INSPECT_TYPES; type++)
		cr_expect(inspect_settings_wants_type(&options->settings, type));
	xpt_inspect_event_types(&known);
	xpt_inspect_options_event_types(options, &count);
	cr_expect_eq(count, known);
	xpt_inspect_activities(&known);
	xpt_inspect_options_activities(options, &count);
	cr_expect_eq(count, known);
}

Test(session_inspect_options, defaults_whatever_the_environment_says)
{
	struct xpt_inspect_options *options;

	setenv("XPUTRACE_INSPECT_ENABLE", "1", 1);
	setenv("XPUTRACE_INSPECT_OUTPUT_DIR", "elsewhere", 1);
	setenv("NEURON_RT_INSPECT_EVENT_FILTER_NC", "3", 1);
	options = make();
	expect_defaults(options);
	xpt_inspect_options_free(options);
	cr_expect_eq(xpt_inspect_options_create(NULL), -EINVAL);
	xpt_inspect_options_free(NULL);
}

Test(session_inspect_options, defaults_come_back)
{
	struct xpt_session_options targets = { .size = sizeof(targets), .all_processes = 1 };
	struct xpt_inspect_options *options = make();

	cr_assert_eq(xpt_inspect_options_set_session_id(options, 7), 0);
	cr_assert_eq(xpt_inspect_options_set_output_dir(options, "there"), 0);
	cr_assert_eq(xpt_inspect_options_set_max_events_per_core(options, 5), 0);
	cr_assert_eq(xpt_inspect_options_set_core(options, XPT_INSPECT_ALL_CORES, 0), 0);
	cr_assert_eq(xpt_inspect_options_set_event_type(options, "software", 0), 0);
	cr_assert_eq(xpt_inspect_options_set_activity(options, "all", 0), 0);
	cr_assert_eq(xpt_inspect_options_set_inspect(options, 1), 0);
	cr_assert_eq(xpt_inspect_options_set_on_fail(options, 1), 0);
	cr_assert_eq(xpt_inspect_options_set_targets(options, &targets), 0);
	cr_assert_eq(xpt_inspect_options_defaults(options), 0);
	expect_defaults(options);
	xpt_inspect_options_free(options);
	cr_expect_eq(xpt_inspect_options_defaults(NULL), -EINVAL);
}

Test(session_inspect_options, no_options_are_refused)
{
	struct xpt_session_options targets = { .size = sizeof(targets), .all_processes = 1 };
	size_t count = 9;

	cr_expect_eq(xpt_inspect_options_set_targets(NULL, &targets), -EINVAL);
	cr_expect_eq(xpt_inspect_options_set_session_id(NULL, 1), -EINVAL);
	cr_expect_eq(xpt_inspect_options_set_output_dir(NULL, "there"), -EINVAL);
	cr_expect_eq(xpt_inspect_options_set_max_events_per_core(NULL, 1), -EINVAL);
	cr_expect_eq(xpt_inspect_options_set_core(NULL, 1, 1), -EINVAL);
	cr_expect_eq(xpt_inspect_options_set_event_type(NULL, "execute", 1), -EINVAL);
	cr_expect_eq(xpt_inspect_options_set_activity(NULL, "all", 1), -EINVAL);
	cr_expect_eq(xpt_inspect_options_set_inspect(NULL, 1), -EINVAL);
	cr_expect_eq(xpt_inspect_options_set_on_fail(NULL, 1), -EINVAL);
	cr_expect_null(xpt_inspect_options_event_types(NULL, &count));
	cr_expect_eq(count, 0);
	cr_expect_null(xpt_inspect_options_activities(NULL, NULL));
}

Test(session_inspect_options, numbers_have_a_range)
{
	struct xpt_inspect_options *options = make();

	cr_expect_eq(xpt_inspect_options_set_session_id(options, 0), 0);
	cr_expect_eq(xpt_inspect_options_set_session_id(options, -1), -EINVAL);
	cr_expect_eq(options->settings.session_id, 0, "a setter that fails changes nothing");
	cr_expect_eq(xpt_inspect_options_set_session_id(options, INT_MAX), 0);
	cr_expect_eq(xpt_inspect_options_set_max_events_per_core(options, 1), 0);
	cr_expect_eq(xpt_inspect_options_set_max_events_per_core(options, 0), -EINVAL);
	cr_expect_eq(xpt_inspect_options_set_max_events_per_core(options, XPT_INSPECT_EVENTS_MAX + 1), -EINVAL);
	cr_expect_eq(xpt_inspect_options_set_max_events_per_core(options, UINT64_MAX), -EINVAL);
	cr_expect_eq(options->settings.max_events_per_core, 1);
	cr_expect_eq(xpt_inspect_options_set_max_events_per_core(options, XPT_INSPECT_EVENTS_MAX), 0);
	xpt_inspect_options_free(options);
}

Test(session_inspect_options, output_dir)
{
	struct xpt_inspect_options *options = make();
	char path[PATH_MAX + 1] = "mine";

	cr_expect_eq(xpt_inspect_options_set_output_dir(options, path), 0);
	path[0] = 'x';
	cr_expect_str_eq(options->output_dir, "mine", "it is copied");
	cr_expect_eq(xpt_inspect_options_set_output_dir(options, ""), -EINVAL);
	cr_expect_eq(xpt_inspect_options_set_output_dir(options, NULL), -EINVAL);
	memset(path, 'a', PATH_MAX);
	path[PATH_MAX] = '\0';
	cr_expect_eq(xpt_inspect_options_set_output_dir(options, path), -ENAMETOOLONG);
	cr_expect_str_eq(options->output_dir, "mine");
	path[PATH_MAX - 1] = '\0';
	cr_expect_eq(xpt_inspect_options_set_output_dir(options, path), 0);
	xpt_inspect_options_free(options);
}

Test(session_inspect_options, cores)
{
	struct xpt_inspect_options *options = make();

	cr_expect_eq(xpt_inspect_options_set_core(options, 9, 0), 0);
	cr_expect(inspect_settings_wants_core(&options->settings, 8));
	cr_expect_not(inspect_settings_wants_core(&options->settings, 9));
	cr_expect(inspect_settings_wants_core(&options->settings, 10));
	cr_expect_eq(xpt_inspect_options_set_core(options, XPT_INSPECT_CORES, 0), -EINVAL);
	cr_expect_eq(xpt_inspect_options_set_core(options, XPT_INSPECT_CORES - 1, 0), 0);
	cr_expect_not(inspect_settings_wants_core(&options->settings, XPT_INSPECT_CORES - 1));
	cr_expect(inspect_settings_wants_core(&options->settings, XPT_INSPECT_CORES));
	cr_expect(inspect_settings_wants_core(&options->settings, 1ll << 40));
	cr_expect_eq(xpt_inspect_options_set_core(options, XPT_INSPECT_ALL_CORES, 0), 0);
	cr_expect_eq(xpt_inspect_options_set_core(options, 3, 2), 0);
	for (__s64 core = -1; core <= XPT_INSPECT_CORES; core++)
		cr_expect_eq(inspect_settings_wants_core(&options->settings, core), core == 3);
	cr_expect_not(inspect_settings_wants_core(&options->settings, INT64_MAX));
	cr_expect_not(inspect_settings_wants_core(&options->settings, INT64_MIN));
	xpt_inspect_options_free(options);
}

/* The names are not this table's own. */
Test(session_inspect_options, types_are_called_as_elsewhere)
{
	static const struct {
		enum inspect_type type;
		enum xpt_event_role role;
	} drivers[] = { { INSPECT_ERROR, XPT_EVENT_ERROR },
			{ INSPECT_RESET, XPT_EVENT_RESET },
			{ INSPECT_MEMORY, XPT_EVENT_MEMORY } };
	const struct xpt_inspect_event_type *types;
	size_t count, named = 0;
	bool seen[INSPECT_TYPES] = { 0 };

	types = xpt_inspect_event_types(&count);
	cr_assert_eq(count, INSPECT_TYPES);
	for (int role = XPT_ROLE_PROGRAM_LOAD; role <= XPT_ROLE_REGION; role++) {
		enum inspect_type type = inspect_type_of_role(role);

		if (type == INSPECT_TYPES) {
			cr_expect(role == XPT_ROLE_RESOLVE || role == XPT_ROLE_TABLE || role == XPT_ROLE_LOADER,
				  "%s is no event", role_name(role));
			continue;
		}
		named += !seen[type];
		seen[type] = true;
		if (type == INSPECT_REGION)
			cr_expect_eq(strncmp(role_name(role), "region", 6), 0);
		else if (role != XPT_ROLE_OPERATOR_END)
			cr_expect_str_eq(types[type].name, role_name(role));
		cr_expect_str_eq(types[type].group, "software");
	}
	cr_expect_str_eq(types[INSPECT_REGION].name, role_name(XPT_ROLE_REGION));
	for (size_t i = 0; i < 3; i++)
		cr_expect_str_eq(types[drivers[i].type].name, driver_role_name(drivers[i].role));
	cr_expect_eq(named + 3 + 4, count, "and task, ioctl, job, counter");
	for (size_t i = 0; i < count; i++) {
		cr_expect(types[i].description[0]);
		cr_expect_eq(inspect_types_from_name(types[i].name), 1u << i);
		cr_expect_eq(inspect_activity_of_type(i),
			     strcmp(types[i].group, "hardware") ? INSPECT_SYSTEM_PROFILE : INSPECT_DEVICE_PROFILE);
		cr_expect(!strcmp(types[i].group, "hardware") || !strcmp(types[i].group, "software"));
	}
	cr_expect_eq(inspect_types_from_name("software") | inspect_types_from_name("hardware"), INSPECT_ALL_TYPES);
	cr_expect_eq(inspect_types_from_name("software") & inspect_types_from_name("hardware"), 0);
}

static void expect_names(const char *const *names, size_t count, const char *expected)
{
	char joined[1024] = "";

	for (size_t i = 0; i < count; i++) {
		strcat(joined, names[i]);
		strcat(joined, " ");
	}
	cr_expect_str_eq(joined, expected);
	cr_expect_null(names[count]);
}

Test(session_inspect_options, event_types)
{
	struct xpt_inspect_options *options = make();
	const char *const *names;
	size_t count;

	cr_expect_eq(xpt_inspect_options_set_event_type(options, "software", 0), 0);
	cr_expect_eq(xpt_inspect_options_set_event_type(options, "reset", 0), 0);
	cr_expect_eq(xpt_inspect_options_set_event_type(options, "execute", 1), 0);
	cr_expect_eq(xpt_inspect_options_set_event_type(options, "Execute", 1), -EINVAL);
	cr_expect_eq(xpt_inspect_options_set_event_type(options, "", 0), -EINVAL);
	cr_expect_eq(xpt_inspect_options_set_event_type(options, "all", 0), -EINVAL);
	cr_expect_eq(xpt_inspect_options_set_event_type(options, NULL, 0), -EINVAL);
	names = xpt_inspect_options_event_types(options, &count);
	expect_names(names, count, "execute job error memory counter ");
	cr_expect(inspect_settings_wants_type(&options->settings, INSPECT_EXECUTE));
	cr_expect_not(inspect_settings_wants_type(&options->settings, INSPECT_WAIT));
	cr_expect(inspect_settings_wants_type(&options->settings, INSPECT_JOB));
	cr_expect_not(inspect_settings_wants_type(&options->settings, INSPECT_RESET));
	xpt_inspect_options_free(options);
}

Test(session_inspect_options, activities)
{
	struct xpt_inspect_options *options = make();
	const char *const *names;
	size_t count;

	cr_expect_eq(xpt_inspect_options_set_activity(options, "device_profile", 0), 0);
	cr_expect_eq(xpt_inspect_options_set_activity(options, "execute", 0), -EINVAL);
	cr_expect_eq(xpt_inspect_options_set_activity(options, NULL, 0), -EINVAL);
	names = xpt_inspect_options_activities(options, &count);
	expect_names(names, count, "system_profile host_memory cpu_util ");
	cr_expect_not(inspect_settings_wants_type(&options->settings, INSPECT_JOB), "its activity is off");
	cr_expect(inspect_settings_wants_type(&options->settings, INSPECT_IOCTL));
	cr_expect_eq(xpt_inspect_options_set_activity(options, "all", 0), 0);
	cr_expect_eq(xpt_inspect_options_set_activity(options, "cpu_util", 1), 0);
	names = xpt_inspect_options_activities(options, &count);
	expect_names(names, count, "cpu_util ");
	for (unsigned int type = 0; type < INSPECT_TYPES; type++)
		cr_expect_not(inspect_settings_wants_type(&options->settings, type));
	cr_expect_eq(xpt_inspect_options_set_activity(options, "all", 1), 0);
	cr_expect(inspect_settings_wants_type(&options->settings, INSPECT_JOB));
	xpt_inspect_options_free(options);
}

#define OWN(text) strcpy(malloc(sizeof(text)), text)

Test(session_inspect_options, targets_are_copied)
{
	struct xpt_inspect_options *options = make();
	pid_t pids[] = { 12, 34 };
	char *runtimes[] = { OWN("opencl"), OWN("onnxruntime") }, *runtime_file = OWN("mine.json");
	char *driver_file = OWN("driver.json"), *drivers = OWN("xe,i915"), *tracefs = OWN("/sys/kernel/tracing");
	char *counter = OWN("energy"), *region = OWN("*:f"), *name = OWN("resnet");
	struct xpt_handle_name handle_name = { .pid = 12, .handle = 0x7f, .name = name };
	struct xpt_session_options targets = {
		.size = sizeof(targets),
		.pids = pids,
		.pid_count = 2,
		.runtime_files = (const char *const *)&runtime_file,
		.runtime_file_count = 1,
		.runtimes = (const char *const *)runtimes,
		.runtime_count = 2,
		.driver_files = (const char *const *)&driver_file,
		.driver_file_count = 1,
		.drivers = drivers,
		.tracefs = tracefs,
		.names = &handle_name,
		.name_count = 1,
		.buffer_bytes = 1 << 20,
		.link = XPT_LINK_PERF,
		.log = keep,
		.log_context = pids,
		.counters = (const char *const *)&counter,
		.counter_count = 1,
		.regions = (const char *const *)&region,
		.region_count = 1,
	};
	char *theirs[] = {
		runtimes[0], runtimes[1], runtime_file, driver_file, drivers, tracefs, counter, region, name
	};
	const struct xpt_session_options *copy = &options->targets;

	cr_assert_eq(xpt_inspect_options_set_targets(options, &targets), 0);
	memset(pids, 0xff, sizeof(pids));
	memset(&targets, 0xff, sizeof(targets));
	memset(&handle_name, 0xff, sizeof(handle_name));
	for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++) {
		memset(theirs[i], 'x', strlen(theirs[i]));
		free(theirs[i]);
	}
	memset(runtimes, 0xff, sizeof(runtimes));
	cr_expect_eq(copy->size, sizeof(*copy));
	cr_assert_eq(copy->pid_count, 2);
	cr_expect(copy->pids[0] == 12 && copy->pids[1] == 34);
	cr_assert_eq(copy->runtime_count, 2);
	cr_expect_str_eq(copy->runtimes[0], "opencl");
	cr_expect_str_eq(copy->runtimes[1], "onnxruntime");
	cr_assert(copy->runtime_file_count == 1 && copy->driver_file_count == 1 && copy->counter_count == 1 &&
		  copy->region_count == 1 && copy->name_count == 1);
	cr_expect_str_eq(copy->runtime_files[0], "mine.json");
	cr_expect_str_eq(copy->driver_files[0], "driver.json");
	cr_expect_str_eq(copy->drivers, "xe,i915");
	cr_expect_str_eq(copy->tracefs, "/sys/kernel/tracing");
	cr_expect_str_eq(copy->counters[0], "energy");
	cr_expect_str_eq(copy->regions[0], "*:f");
	cr_expect_str_eq(copy->names[0].name, "resnet");
	cr_expect(copy->names[0].pid == 12 && copy->names[0].handle == 0x7f);
	cr_expect(copy->buffer_bytes == 1 << 20 && copy->link == XPT_LINK_PERF && copy->log == keep &&
		  copy->log_context == pids);
	xpt_inspect_options_free(options);
}

Test(session_inspect_options, a_command_stays_the_callers)
{
	char *command[] = { (char *)"server", NULL };
	struct xpt_session_options targets = { .size = sizeof(targets), .command = command };
	struct xpt_inspect_options *options = make();

	cr_assert_eq(xpt_inspect_options_set_targets(options, &targets), 0);
	cr_expect_eq(options->targets.command, command);
	/* Another one takes its place. */
	targets = (struct xpt_session_options){ .size = sizeof(targets), .all_processes = 1, .drivers = "none" };
	cr_assert_eq(xpt_inspect_options_set_targets(options, &targets), 0);
	cr_expect_null(options->targets.command);
	cr_expect_str_eq(options->targets.drivers, "none");
	xpt_inspect_options_free(options);
}

Test(session_inspect_options, wrong_targets_are_refused)
{
	static const char *const holes[] = { "opencl", NULL };
	struct {
		struct xpt_session_options options;
		char later[8];
	} newer = { .options = { .size = sizeof(newer), .all_processes = 1 }, .later = { 1 } };
	struct xpt_session_options good = { .size = sizeof(good), .all_processes = 1, .log = keep }, bad;
	struct xpt_handle_name nameless = { .handle = 1 };
	struct {
		struct xpt_handle_name known;
		char later[8];
	} newer_names[2] = { { .known = { .handle = 1, .name = "first" } },
			     { .known = { .handle = 2, .name = "second" }, .later = { [7] = 1 } } };
	struct xpt_inspect_options *options = make();
	pid_t pid = 12;

	cr_assert_eq(xpt_inspect_options_set_targets(options, &good), 0);
	cr_expect_eq(xpt_inspect_options_set_targets(options, NULL), -EINVAL);
	cr_expect_eq(xpt_inspect_options_set_targets(options, &newer.options), -E2BIG);
	bad = good;
	bad.size = 0;
	cr_expect_eq(xpt_inspect_options_set_targets(options, &bad), -EINVAL);
	cr_expect_str_empty(last_message);
	bad = good;
	bad.pids = &pid;
	bad.pid_count = 1;
	cr_expect_eq(xpt_inspect_options_set_targets(options, &bad), -EINVAL, "two ways");
	cr_expect_not_null(strstr(last_message, "exclude"));
	bad = good;
	bad.all_processes = 0;
	cr_expect_eq(xpt_inspect_options_set_targets(options, &bad), -EINVAL, "no way");
	bad.pid_count = 1;
	cr_expect_eq(xpt_inspect_options_set_targets(options, &bad), -EINVAL, "a list that is not there");
	bad = good;
	bad.counter_count = 1;
	cr_expect_eq(xpt_inspect_options_set_targets(options, &bad), -EINVAL);
	bad = good;
	bad.runtimes = holes;
	bad.runtime_count = 2;
	cr_expect_eq(xpt_inspect_options_set_targets(options, &bad), -EINVAL);
	bad = good;
	bad.names = &nameless;
	bad.name_count = 1;
	cr_expect_eq(xpt_inspect_options_set_targets(options, &bad), -EINVAL);
	bad.names = &newer_names[0].known;
	bad.name_count = 2;
	bad.name_size = sizeof(newer_names[0]);
	cr_expect_eq(xpt_inspect_options_set_targets(options, &bad), -E2BIG);
	newer_names[1].later[7] = 0;
	cr_expect_eq(xpt_inspect_options_set_targets(options, &bad), 0);
	cr_expect_str_eq(options->targets.names[1].name, "second");
	cr_expect_eq(options->targets.name_size, sizeof(nameless));
	cr_expect(options->targets.size && options->targets.all_processes, "those before stay");
	xpt_inspect_options_free(options);
}
