/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "describe/driver/driver.h"
#include "describe/runtime/description.h"
#include "session/inspect/inspect.h"

#define VARIABLES_MAX 64

static struct said {
	unsigned int errors, warnings, others;
	char text[8192];
} said;

static void say(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	said.errors += level == XPT_LOG_ERROR;
	said.warnings += level == XPT_LOG_WARN;
	said.others += level < XPT_LOG_WARN;
	strncat(said.text, text, sizeof(said.text) - strlen(said.text) - 2);
	strcat(said.text, "\n");
}

static const struct log messages = { say, NULL, XPT_LOG_DEBUG };

static struct inspect_settings make(void)
{
	struct inspect_settings settings;

	said = (struct said){ 0 };
	inspect_settings_init(&settings);
	return settings;
}

/* Structs have holes, so not by their bytes. */
static bool same(const struct inspect_settings *a, const struct inspect_settings *b)
{
	return a->session_id == b->session_id && a->inspect == b->inspect && a->on_fail == b->on_fail &&
	       a->packets == b->packets && a->max_events_per_core == b->max_events_per_core && a->types == b->types &&
	       a->activities == b->activities && a->other_cores == b->other_cores &&
	       !memcmp(a->cores, b->cores, sizeof(a->cores)) && !strcmp(a->output_dir, b->output_dir);
}

static int apply(struct inspect_settings *settings, enum inspect_source source, pid_t pid, const char *const *variables)
{
	return inspect_settings_apply(&messages,
				      &(struct inspect_environment){
					      .source = source, .variables = variables, .pid = pid },
				      settings);
}

/* One variable of xputrace alone, of the caller's own. */
static int apply_one(struct inspect_settings *settings, const char *variable)
{
	const char *variables[] = { variable, NULL };

	return apply(settings, INSPECT_XPUTRACE, 0, variables);
}

/* One setting of the options. */
static int set(struct inspect_settings *settings, const char *setting)
{
	const char *variables[] = { setting, NULL };

	return apply(settings, INSPECT_OPTIONS, 0, variables);
}

static void expect_types(const struct inspect_settings *settings, const char *expected)
{
	const struct xpt_inspect_event_type *types;
	char joined[1024] = "";
	size_t count;

	types = xpt_inspect_event_types(&count);
	for (size_t i = 0; i < count; i++) {
		if (!(settings->types & 1u << i))
			continue;
		strcat(joined, joined[0] ? "," : "");
		strcat(joined, types[i].name);
	}
	cr_expect_str_eq(joined, expected);
}

static void expect_activities(const struct inspect_settings *settings, const char *expected)
{
	const struct xpt_inspect_activity *activities;
	char joined[1024] = "";
	size_t count;

	activities = xpt_inspect_activities(&count);
	for (size_t i = 0; i < count; i++) {
		if (!(settings->activities & 1u << i))
			continue;
		strcat(joined, joined[0] ? "," : "");
		strcat(joined, activities[i].name);
	}
	cr_expect_str_eq(joined, expected);
}

Test(session_inspect_settings, all_variables)
{
	static const char *const variables[] = {
		"HOME=/nowhere",
		"XPUTRACE_INSPECT_SESSION_ID=42",
		"XPUTRACE_INSPECT_FORMAT=perfetto",
		"XPUTRACE_INSPECT_OUTPUT_DIR=some where",
		"XPUTRACE_INSPECT_CPU_UTIL=0",
		"XPUTRACE_INSPECT_HOST_MEMORY=1",
		"XPUTRACE_INSPECT_DEVICE_PROFILE=0",
		"XPUTRACE_INSPECT_SYSTEM_PROFILE=1",
		"XPUTRACE_INSPECT_ON_FAIL=1",
		"XPUTRACE_INSPECT_MAX_EVENTS_PER_CORE=5000",
		"XPUTRACE_INSPECT_EVENT_FILTER_TYPE=execute,hardware",
		"XPUTRACE_INSPECT_EVENT_FILTER_CORE=0,2,4-7",
		"XPUTRACE_INSPECT_ENABLE=1",
		NULL,
	};
	struct inspect_settings settings = make();

	cr_assert_eq(apply(&settings, INSPECT_XPUTRACE, 0, variables), 0);
	cr_expect_str_empty(said.text);
	cr_expect_eq(settings.session_id, 42);
	cr_expect(settings.packets);
	cr_expect_str_eq(settings.output_dir, "some where");
	cr_expect(settings.inspect && settings.on_fail);
	cr_expect_eq(settings.max_events_per_core, 5000);
	expect_types(&settings, "execute,job,error,reset,memory,counter");
	expect_activities(&settings, "system_profile,host_memory");
	for (int core = -1; core < 20; core++)
		cr_expect_eq(inspect_settings_wants_core(&settings, core),
			     core == 0 || core == 2 || (core >= 4 && core <= 7));
}

Test(session_inspect_settings, nothing_set_changes_nothing)
{
	static const char *const variables[] = { "PATH=/bin", "XPUTRACE_INSPECT=1", "NEURON_RT_INSPECT_ENABLE=1",
						 "XPUTRACE_INSPECT_ENABLE", NULL };
	struct inspect_settings settings = make();
	struct inspect_settings before = settings;

	cr_assert_eq(set(&settings, "OUTPUT_DIR=mine"), 0);
	before = settings;
	cr_assert_eq(apply(&settings, INSPECT_XPUTRACE, 0, variables), 0);
	cr_expect(same(&before, &settings));
	cr_expect_str_eq(settings.output_dir, "mine");
	cr_expect_str_empty(said.text);
}

/* Filters of cores: which of 0 to 19 and 8191 are captured; NULL: refused. */
static const struct {
	const char *text;
	const char *captured;
} core_filters[] = {
	{ "0", "0" },
	{ "0,2,4-7", "0 2 4 5 6 7" },
	{ "7,3", "3 7" },
	{ "1-3,2-4,2", "1 2 3 4" },
	{ "5-5", "5" },
	{ "007", "7" },
	{ "18-8191", "18 19 8191" },
	{ "0-4095,4096-8191", "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 8191" },
	{ "", NULL },
	{ ",", NULL },
	{ "0,", NULL },
	{ ",0", NULL },
	{ "0,,1", NULL },
	{ "3-1", NULL },
	{ "-1", NULL },
	{ "1-", NULL },
	{ "1-2-3", NULL },
	{ "8192", NULL },
	{ "0-8192", NULL },
	{ "99999999999999999999", NULL },
	{ "00000000000000000000000000000000000000001", NULL },
	{ " 1", NULL },
	{ "1, 2", NULL },
	{ "+1", NULL },
	{ "0x1", NULL },
	{ "all", NULL },
	{ "^1", NULL },
};

Test(session_inspect_settings, cores)
{
	for (size_t i = 0; i < sizeof(core_filters) / sizeof(core_filters[0]); i++) {
		struct inspect_settings settings = make();
		char variable[256], captured[256] = "";
		int error;

		snprintf(variable, sizeof(variable), "XPUTRACE_INSPECT_EVENT_FILTER_CORE=%s", core_filters[i].text);
		error = apply_one(&settings, variable);
		cr_expect_eq(error, core_filters[i].captured ? 0 : -EINVAL, "'%s': %d", core_filters[i].text, error);
		cr_expect_eq(said.errors, error ? 1 : 0);
		if (error)
			cr_expect_not_null(strstr(said.text, "0,2,4-7"));
		for (int core = 0; core < 20; core++)
			if (!error && inspect_settings_wants_core(&settings, core))
				sprintf(captured + strlen(captured), "%s%d", *captured ? " " : "", core);
		if (!error && inspect_settings_wants_core(&settings, 8191))
			sprintf(captured + strlen(captured), " 8191");
		cr_expect_str_eq(captured, core_filters[i].captured ?: "", "'%s'", core_filters[i].text);
		cr_expect_eq(inspect_settings_wants_core(&settings, -1), error != 0, "others are not in the list");
	}
}

#define HARDWARE "job,error,reset,memory,counter"
#define UNTIL_CODEOBJ                                                                                               \
	"program.load,program.name,program.unload,execute,enqueue,wait,launch,copy,alloc,free,select,codeobj.load," \
	"codeobj.unload"

/* Filters of types: what is captured; NULL: refused. */
static const struct type_filter {
	const char *text;
	const char *captured;
} type_filters[] = {
	{ "execute", "execute" },
	{ "job,execute", "execute,job" },
	{ "hardware", HARDWARE },
	{ "hardware,^reset", "job,error,memory,counter" },
	{ "^reset,hardware", UNTIL_CODEOBJ ",operator,region,task,ioctl," HARDWARE },
	{ "^hardware", UNTIL_CODEOBJ ",operator,region,task,ioctl" },
	{ "^hardware,job", UNTIL_CODEOBJ ",operator,region,task,ioctl,job" },
	{ "^software,wait", "wait," HARDWARE },
	{ "execute,^execute", "" },
	{ "^execute,execute", UNTIL_CODEOBJ ",operator,region,task,ioctl," HARDWARE },
	{ "execute,execute", "execute" },
	{ "codeobj.load,program.load", "program.load,codeobj.load" },
	{ "", NULL },
	{ "^", NULL },
	{ "execute,", NULL },
	{ ",execute", NULL },
	{ "^^execute", NULL },
	{ "Execute", NULL },
	{ "execut", NULL },
	{ "executed", NULL },
	{ "execute ", NULL },
	{ "all", NULL },
	{ "region.begin", NULL },
	{ "nrt_execute", NULL },
};

/* Neuron's. What has no counterpart is passed over. */
static const struct type_filter neuron_filters[] = {
	{ "nrt_execute", "execute" },
	{ "runtime_execute,model_load", "program.load,execute" },
	{ "hardware", HARDWARE },
	{ "hardware,^nc_exec_running,^cc_running", "error,reset,memory,counter" },
	{ "hardware,^nc_exec_running", HARDWARE },
	{ "^hardware", UNTIL_CODEOBJ ",operator,region,task,ioctl" },
	/* Reads are a part of copies: these are captured as long as writes are. */
	{ "nrt_tensor_write,^nrt_tensor_read", "copy" },
	{ "nrt_tensor_read,^nrt_tensor_read", "" },
	{ "kbl_exec_wait,^timestamp_sync_point,hw_notify", "wait" },
	{ "timestamp_sync_point", "" },
	{ "of_a_later_release,nrt_load", "program.load" },
	{ "^of_a_later_release", UNTIL_CODEOBJ ",operator,region,task,ioctl," HARDWARE },
	{ "execute", "" },
	{ "nrt_execute,", NULL },
	{ "", NULL },
};

static void expect_filters(const struct type_filter *filters, size_t count, enum inspect_source source)
{
	for (size_t i = 0; i < count; i++) {
		struct inspect_settings settings = make();
		__u32 before = settings.types;
		char variable[256];
		const char *variables[] = { variable, NULL };
		int error;

		snprintf(variable, sizeof(variable), "%s_INSPECT_EVENT_FILTER_TYPE=%s",
			 source == INSPECT_NEURON ? "NEURON_RT" : "XPUTRACE", filters[i].text);
		error = apply(&settings, source, 0, variables);
		cr_expect_eq(error, filters[i].captured ? 0 : -EINVAL, "'%s': %d", filters[i].text, error);
		cr_expect_eq(said.errors, error ? 1 : 0);
		if (error)
			cr_expect_eq(settings.types, before);
		else
			expect_types(&settings, filters[i].captured);
	}
}

Test(session_inspect_settings, types)
{
	expect_filters(type_filters, sizeof(type_filters) / sizeof(type_filters[0]), INSPECT_XPUTRACE);
}

Test(session_inspect_settings, types_of_neuron)
{
	expect_filters(neuron_filters, sizeof(neuron_filters) / sizeof(neuron_filters[0]), INSPECT_NEURON);
}

Test(session_inspect_settings, names_that_nothing_answers_to_are_warned_of)
{
	static const char *const variables[] = {
		"NEURON_RT_INSPECT_EVENT_FILTER_TYPE=nrt_load,^timestamp_sync_point,hw_notify", NULL
	};
	struct inspect_settings settings = make();

	cr_expect_eq(apply(&settings, INSPECT_NEURON, 77, variables), 0);
	cr_expect_eq(said.warnings, 1);
	cr_expect_str_eq(said.text, "process 77: NEURON_RT_INSPECT_EVENT_FILTER_TYPE: there is nothing like "
				    "\"timestamp_sync_point\" here\n");
}

Test(session_inspect_settings, messages_name_variable_value_and_what_is_allowed)
{
	static const struct {
		const char *variable, *allowed;
	} bad[] = {
		{ "ENABLE=yes", "0 and 1" },
		{ "ENABLE=", "0 and 1" },
		{ "ENABLE=11", "0 and 1" },
		{ "ENABLE= 1", "0 and 1" },
		{ "ON_FAIL=2", "0 and 1" },
		{ "SYSTEM_PROFILE=on", "0 and 1" },
		{ "DEVICE_PROFILE=model", "0 and 1" },
		{ "HOST_MEMORY=-1", "0 and 1" },
		{ "CPU_UTIL=true", "0 and 1" },
		{ "EVENT_FILTER_CORE=a", "8192" },
		{ "EVENT_FILTER_TYPE=foo", "software, hardware, program.load" },
		{ "MAX_EVENTS_PER_CORE=0", "1 to 1000000000" },
		{ "MAX_EVENTS_PER_CORE=1000000001", "1 to 1000000000" },
		{ "MAX_EVENTS_PER_CORE=1e6", "1 to 1000000000" },
		{ "MAX_EVENTS_PER_CORE=18446744073709551617", "1 to 1000000000" },
		{ "OUTPUT_DIR=", "not empty" },
		{ "FORMAT=", "chrome and perfetto" },
		{ "FORMAT=html", "chrome and perfetto" },
		{ "SESSION_ID=2147483648", "0 to 2147483647" },
		{ "SESSION_ID=-1", "0 to 2147483647" },
		{ "SESSION_ID=18446744073709551616", "0 to 2147483647" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct inspect_settings settings = make();
		struct inspect_settings before = settings;
		char variable[128], begin[128];
		size_t name = strcspn(bad[i].variable, "=");

		snprintf(variable, sizeof(variable), "XPUTRACE_INSPECT_%s", bad[i].variable);
		snprintf(begin, sizeof(begin), "XPUTRACE_INSPECT_%.*s is \"%s\": ", (int)name, bad[i].variable,
			 bad[i].variable + name + 1);
		cr_expect_eq(apply_one(&settings, variable), -EINVAL, "%s", variable);
		cr_expect_eq(strncmp(said.text, begin, strlen(begin)), 0, "%s", said.text);
		cr_expect_not_null(strstr(said.text, bad[i].allowed), "%s", said.text);
		cr_expect(same(&before, &settings));
	}
}

Test(session_inspect_settings, one_bad_value_and_nothing_is_taken)
{
	static const char *const variables[] = { "XPUTRACE_INSPECT_ENABLE=1", "XPUTRACE_INSPECT_OUTPUT_DIR=there",
						 "XPUTRACE_INSPECT_SESSION_ID=x", NULL };
	struct inspect_settings settings = make();

	cr_expect_eq(apply(&settings, INSPECT_XPUTRACE, 0, variables), -EINVAL);
	cr_expect_not(settings.inspect);
	cr_expect_str_eq(settings.output_dir, "./output");
}

Test(session_inspect_settings, unknown_variables_are_warned_of)
{
	static const char *const variables[] = { "XPUTRACE_INSPECT_ENABLED=1", "XPUTRACE_INSPECT_ENABLE=1",
						 "XPUTRACE_INSPECT_=", NULL };
	struct inspect_settings settings = make();

	cr_expect_eq(apply(&settings, INSPECT_XPUTRACE, 0, variables), 0);
	cr_expect_eq(said.warnings, 2);
	cr_expect_not_null(strstr(said.text, "XPUTRACE_INSPECT_ENABLED is ignored"));
	cr_expect(settings.inspect);
}

Test(session_inspect_settings, the_first_of_a_name_counts)
{
	static const char *const variables[] = { "XPUTRACE_INSPECT_SESSION_ID=3", "XPUTRACE_INSPECT_SESSION_ID=x",
						 NULL };
	struct inspect_settings settings = make();

	cr_expect_eq(apply(&settings, INSPECT_XPUTRACE, 0, variables), 0);
	cr_expect_eq(settings.session_id, 3);
}

Test(session_inspect_settings, neuron)
{
	static const char *const variables[] = {
		"NEURON_RT_INSPECT_ENABLE=1",
		"NEURON_RT_INSPECT_DEVICE_PROFILE=session",
		"NEURON_RT_INSPECT_SYSTEM_PROFILE=0",
		"NEURON_RT_INSPECT_EVENT_FILTER_NC=0-3",
		"NEURON_RT_INSPECT_EVENT_FILTER_TYPE=hardware,nrt_execute",
		"NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC=2000000",
		"NEURON_RT_INSPECT_OUTPUT_DIR=profiles",
		"NEURON_RT_INSPECT_PRECACHE_ENABLE=1",
		"NEURON_RT_INSPECT_SESSION_ID=9",
		"XPUTRACE_INSPECT_ON_FAIL=1",
		NULL,
	};
	struct inspect_settings settings = make();

	cr_assert_eq(apply(&settings, INSPECT_NEURON, 0, variables), 0);
	cr_expect(settings.inspect && !settings.on_fail);
	cr_expect_eq(settings.activities, INSPECT_ALL_ACTIVITIES & ~(1u << INSPECT_SYSTEM_PROFILE));
	expect_types(&settings, "execute," HARDWARE);
	cr_expect(inspect_settings_wants_core(&settings, 3) && !inspect_settings_wants_core(&settings, 4));
	cr_expect_eq(settings.max_events_per_core, 2000000);
	cr_expect_str_eq(settings.output_dir, "profiles");
	cr_expect_eq(settings.session_id, 1, "Neuron has no such variable");
	cr_expect_eq(said.warnings, 0);
	cr_expect_eq(said.others, 2, "what it has and xputrace has not is said, no more: %s", said.text);
}

Test(session_inspect_settings, device_profile_of_neuron)
{
	static const struct {
		const char *value;
		bool on;
	} values[] = { { "0", false }, { "1", true }, { "model", true }, { "session", true } };

	for (size_t i = 0; i < 4; i++) {
		struct inspect_settings settings = make();
		char variable[128];
		const char *variables[] = { variable, NULL };

		snprintf(variable, sizeof(variable), "NEURON_RT_INSPECT_DEVICE_PROFILE=%s", values[i].value);
		cr_expect_eq(set(&settings, values[i].on ? "DEVICE_PROFILE=0" : "DEVICE_PROFILE=1"), 0);
		cr_expect_eq(apply(&settings, INSPECT_NEURON, 0, variables), 0);
		cr_expect_eq(!!(settings.activities & 1u << INSPECT_DEVICE_PROFILE), values[i].on);
		snprintf(variable, sizeof(variable), "NEURON_RT_INSPECT_DEVICE_PROFILE=%s2", values[i].value);
		cr_expect_eq(apply(&settings, INSPECT_NEURON, 0, variables), -EINVAL);
		cr_expect_not_null(strstr(said.text, "0, 1, model and session"));
	}
}

/* ---- of a traced process ---- */

Test(session_inspect_settings, a_process_does_not_say_where_files_go)
{
	static const char *const variables[] = { "NEURON_RT_INSPECT_OUTPUT_DIR=/etc", "NEURON_RT_INSPECT_ENABLE=1",
						 NULL };
	struct inspect_settings settings = make();

	cr_expect_eq(apply(&settings, INSPECT_NEURON, 77, variables), 0);
	cr_expect_str_eq(settings.output_dir, "./output");
	cr_expect(settings.inspect);
	cr_expect_eq(said.warnings, 1);
	cr_expect_not_null(strstr(said.text, "process 77: "));
}

Test(session_inspect_settings, a_process_does_not_take_more_memory)
{
	static const char *const more[] = { "NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC=1000000000", NULL };
	static const char *const less[] = { "NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC=20", NULL };
	struct inspect_settings settings = make();

	cr_assert_eq(set(&settings, "MAX_EVENTS_PER_CORE=500"), 0);
	cr_expect_eq(apply(&settings, INSPECT_NEURON, 77, more), 0);
	cr_expect_eq(settings.max_events_per_core, 500);
	cr_expect_eq(said.warnings, 1);
	cr_expect_eq(apply(&settings, INSPECT_NEURON, 77, less), 0);
	cr_expect_eq(settings.max_events_per_core, 20);
}

static void expect_printable(void)
{
	for (const char *c = said.text; *c; c++)
		cr_assert((unsigned char)*c >= ' ' || *c == '\n', "byte %#x", (unsigned char)*c);
	cr_expect_null(strchr(said.text, '\x7f'));
}

Test(session_inspect_settings, hostile_text)
{
	static char names[VARIABLES_MAX][64], huge[1 << 20];
	const char *variables[VARIABLES_MAX + 1] = { 0 };
	struct inspect_settings settings = make();

	for (size_t i = 0; i < VARIABLES_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "XPUTRACE_INSPECT_\x1b[2J\n\xff%zu=x", i);
		variables[i] = names[i];
	}
	cr_expect_eq(apply(&settings, INSPECT_XPUTRACE, 77, variables), 0);
	cr_expect_eq(said.warnings, 9, "a process cannot fill the log");
	cr_expect_not_null(strstr(said.text, "56 more"));
	expect_printable();

	memset(huge, '1', sizeof(huge) - 1);
	memcpy(huge, "XPUTRACE_INSPECT_SESSION_ID=", strlen("XPUTRACE_INSPECT_SESSION_ID="));
	cr_expect_eq(apply_one(&settings, huge), -EINVAL);
	cr_expect_not_null(strstr(said.text, "at most 4095 bytes"));
	cr_expect_lt(strlen(said.text), 4096);

	said = (struct said){ 0 };
	cr_expect_eq(apply_one(&settings, "XPUTRACE_INSPECT_EVENT_FILTER_TYPE=\x1b]0;gone\a\n\xe2\x80\xae"), -EINVAL);
	cr_expect_eq(said.errors, 1);
	expect_printable();
}

/* ---- settings of the options, and defaults ---- */

static void expect_defaults(const struct inspect_settings *settings)
{
	cr_expect_eq(settings->session_id, 1);
	cr_expect_str_eq(settings->output_dir, "./output");
	cr_expect_eq(settings->max_events_per_core, 1000000);
	cr_expect_not(settings->inspect);
	cr_expect_not(settings->on_fail);
	cr_expect_not(settings->packets);
	for (__s64 core = -2; core < XPT_INSPECT_CORES + 2; core++)
		cr_expect(inspect_settings_wants_core(settings, core), "%lld", (long long)core);
	for (unsigned int type = 0; type < INSPECT_TYPES; type++)
		cr_expect(inspect_settings_wants_type(settings, type));
	expect_types(settings, UNTIL_CODEOBJ ",operator,region,task,ioctl," HARDWARE);
	expect_activities(settings, "system_profile,device_profile,host_memory,cpu_util");
}

Test(session_inspect_settings, defaults_whatever_the_environment_says)
{
	struct inspect_settings settings;

	setenv("XPUTRACE_INSPECT_ENABLE", "1", 1);
	setenv("XPUTRACE_INSPECT_OUTPUT_DIR", "elsewhere", 1);
	setenv("NEURON_RT_INSPECT_EVENT_FILTER_NC", "3", 1);
	settings = make();
	expect_defaults(&settings);
}

Test(session_inspect_settings, defaults_come_back)
{
	static const char *const changes[] = { "SESSION_ID=7",
					       "OUTPUT_DIR=there",
					       "MAX_EVENTS_PER_CORE=5",
					       "EVENT_FILTER_CORE=1",
					       "EVENT_FILTER_TYPE=^software",
					       "ACTIVITIES=cpu_util",
					       "ENABLE=1",
					       "FORMAT=perfetto",
					       "ON_FAIL=1" };
	struct inspect_settings settings = make();

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct inspect_settings before = settings;

		cr_assert_eq(set(&settings, changes[i]), 0, "%s", changes[i]);
		cr_expect(!same(&before, &settings), "%s", changes[i]);
	}
	inspect_settings_init(&settings);
	expect_defaults(&settings);
}

Test(session_inspect_settings, what_is_no_setting_is_refused)
{
	static const char *const bad[] = { "",
					   "=",
					   "ENABLE",
					   "=1",
					   "ENABLED=1",
					   "enable=1",
					   "XPUTRACE_INSPECT_ENABLE=1",
					   "EVENT_FILTER_NC=1",
					   "SYS_TRACE_MAX_EVENTS_PER_NC=1",
					   "HOME=/nowhere" };
	struct inspect_settings settings = make(), before = settings;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		said = (struct said){ 0 };
		cr_expect_eq(set(&settings, bad[i]), -EINVAL, "%s", bad[i]);
		cr_expect_eq(said.errors, 1);
		cr_expect_not_null(strstr(said.text, "unknown setting"), "%s", said.text);
		cr_expect_eq(xpt_inspect_check(bad[i]), -EINVAL, "%s", bad[i]);
	}
	cr_expect(same(&before, &settings));
	cr_expect_eq(xpt_inspect_check(NULL), -EINVAL);
	said = (struct said){ 0 };
	cr_expect_eq(set(&settings, "EVENT_FILTER_TYPE=nrt_execute"), -EINVAL, "a name of Neuron's");
	cr_expect_eq(strstr(said.text, "EVENT_FILTER_TYPE is \"nrt_execute\": expected "), said.text, "%s", said.text);
}

Test(session_inspect_settings, numbers_have_a_range)
{
	struct inspect_settings settings = make();

	cr_expect_eq(set(&settings, "SESSION_ID=0"), 0);
	cr_expect_eq(set(&settings, "SESSION_ID=-1"), -EINVAL);
	cr_expect_eq(settings.session_id, 0, "what fails changes nothing");
	cr_expect_eq(set(&settings, "SESSION_ID=2147483647"), 0);
	cr_expect_eq(settings.session_id, INT_MAX);
	cr_expect_eq(set(&settings, "MAX_EVENTS_PER_CORE=1"), 0);
	cr_expect_eq(set(&settings, "MAX_EVENTS_PER_CORE=0"), -EINVAL);
	cr_expect_eq(set(&settings, "MAX_EVENTS_PER_CORE=1000000001"), -EINVAL);
	cr_expect_eq(set(&settings, "MAX_EVENTS_PER_CORE=18446744073709551615"), -EINVAL);
	cr_expect_eq(settings.max_events_per_core, 1);
	cr_expect_eq(set(&settings, "MAX_EVENTS_PER_CORE=1000000000"), 0);
	cr_expect_eq(settings.max_events_per_core, XPT_INSPECT_EVENTS_MAX);
}

Test(session_inspect_settings, output_dir)
{
	char setting[sizeof("OUTPUT_DIR=") + PATH_MAX] = "OUTPUT_DIR=mine", *path = setting + strlen("OUTPUT_DIR=");
	struct inspect_settings settings = make();

	cr_expect_eq(set(&settings, setting), 0);
	path[0] = 'x';
	cr_expect_str_eq(settings.output_dir, "mine", "it is copied");
	cr_expect_eq(set(&settings, "OUTPUT_DIR="), -EINVAL);
	memset(path, 'a', PATH_MAX);
	path[PATH_MAX] = '\0';
	cr_expect_eq(set(&settings, setting), -EINVAL);
	cr_expect_str_eq(settings.output_dir, "mine");
	path[PATH_MAX - 1] = '\0';
	cr_expect_eq(set(&settings, setting), 0);
	cr_expect_str_eq(settings.output_dir, path);
}

Test(session_inspect_settings, cores_at_the_limit)
{
	struct inspect_settings settings = make();

	cr_expect_eq(set(&settings, "EVENT_FILTER_CORE=8,10"), 0);
	cr_expect(inspect_settings_wants_core(&settings, 8));
	cr_expect_not(inspect_settings_wants_core(&settings, 9));
	cr_expect(inspect_settings_wants_core(&settings, 10));
	cr_expect_eq(set(&settings, "EVENT_FILTER_CORE=0-8190"), 0);
	cr_expect_not(inspect_settings_wants_core(&settings, XPT_INSPECT_CORES - 1));
	settings = make();
	cr_expect(inspect_settings_wants_core(&settings, XPT_INSPECT_CORES));
	cr_expect(inspect_settings_wants_core(&settings, 1ll << 40));
	cr_expect_eq(set(&settings, "EVENT_FILTER_CORE=3"), 0);
	for (__s64 core = -1; core <= XPT_INSPECT_CORES; core++)
		cr_expect_eq(inspect_settings_wants_core(&settings, core), core == 3);
	cr_expect_not(inspect_settings_wants_core(&settings, INT64_MAX));
	cr_expect_not(inspect_settings_wants_core(&settings, INT64_MIN));
}

static __u32 types_named(const char *name)
{
	struct inspect_settings settings = make();
	char setting[100];

	snprintf(setting, sizeof(setting), "EVENT_FILTER_TYPE=%s", name);
	return set(&settings, setting) ? 0 : settings.types;
}

/* The names are not this table's own. */
Test(session_inspect_settings, types_are_called_as_elsewhere)
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
		cr_expect_eq(types_named(types[i].name), 1u << i);
		cr_expect_eq(inspect_activity_of_type(i),
			     strcmp(types[i].group, "hardware") ? INSPECT_SYSTEM_PROFILE : INSPECT_DEVICE_PROFILE);
		cr_expect(!strcmp(types[i].group, "hardware") || !strcmp(types[i].group, "software"));
	}
	cr_expect_eq(types_named("software") | types_named("hardware"), INSPECT_ALL_TYPES);
	cr_expect_eq(types_named("software") & types_named("hardware"), 0);
}

Test(session_inspect_settings, types_one_after_the_other)
{
	struct inspect_settings settings = make();

	cr_expect_eq(set(&settings, "EVENT_FILTER_TYPE=^software,^reset,execute"), 0);
	cr_expect_eq(types_named("Execute"), 0);
	cr_expect_eq(types_named(""), 0);
	cr_expect_eq(types_named("all"), 0);
	expect_types(&settings, "execute,job,error,memory,counter");
	cr_expect(inspect_settings_wants_type(&settings, INSPECT_EXECUTE));
	cr_expect_not(inspect_settings_wants_type(&settings, INSPECT_WAIT));
	cr_expect(inspect_settings_wants_type(&settings, INSPECT_JOB));
	cr_expect_not(inspect_settings_wants_type(&settings, INSPECT_RESET));
}

Test(session_inspect_settings, activities)
{
	static const char *const bad[] = {
		"execute", "", "none", "cpu_util,", ",cpu_util", "cpu_util,,all", "CPU_UTIL"
	};
	struct inspect_settings settings = make();
	char setting[100];

	cr_expect_eq(set(&settings, "DEVICE_PROFILE=0"), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(setting, sizeof(setting), "ACTIVITIES=%s", bad[i]);
		cr_expect_eq(set(&settings, setting), -EINVAL, "%s", setting);
	}
	expect_activities(&settings, "system_profile,host_memory,cpu_util");
	cr_expect_not(inspect_settings_wants_type(&settings, INSPECT_JOB), "its activity is off");
	cr_expect(inspect_settings_wants_type(&settings, INSPECT_IOCTL));
	cr_expect_eq(set(&settings, "ACTIVITIES=cpu_util"), 0);
	expect_activities(&settings, "cpu_util");
	for (unsigned int type = 0; type < INSPECT_TYPES; type++)
		cr_expect_not(inspect_settings_wants_type(&settings, type));
	cr_expect_eq(set(&settings, "ACTIVITIES=host_memory,device_profile"), 0);
	expect_activities(&settings, "device_profile,host_memory");
	cr_expect_eq(set(&settings, "ACTIVITIES=all"), 0);
	cr_expect(inspect_settings_wants_type(&settings, INSPECT_JOB));
	expect_activities(&settings, "system_profile,device_profile,host_memory,cpu_util");
}

Test(session_inspect_settings, a_single_activity_counts_more_than_all)
{
	static const char *const variables[] = { "XPUTRACE_INSPECT_CPU_UTIL=0",
						 "XPUTRACE_INSPECT_ACTIVITIES=cpu_util,host_memory", NULL };
	struct inspect_settings settings = make();

	cr_assert_eq(apply(&settings, INSPECT_XPUTRACE, 0, variables), 0);
	expect_activities(&settings, "host_memory");
}
