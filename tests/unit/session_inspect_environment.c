/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/inspect/environment.h"

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

static struct xpt_inspect_options *make(void)
{
	struct xpt_inspect_options *options;

	said = (struct said){ 0 };
	cr_assert_eq(xpt_inspect_options_create(&options), 0);
	return options;
}

/* Structs have holes, so not by their bytes. */
static bool same(const struct inspect_settings *a, const struct inspect_settings *b)
{
	return a->session_id == b->session_id && a->inspect == b->inspect && a->on_fail == b->on_fail &&
	       a->max_events_per_core == b->max_events_per_core && a->types == b->types &&
	       a->activities == b->activities && a->other_cores == b->other_cores &&
	       !memcmp(a->cores, b->cores, sizeof(a->cores));
}

static int apply(struct xpt_inspect_options *options, enum inspect_dialect dialect, pid_t pid,
		 const char *const *variables)
{
	return inspect_environment_apply(&messages,
					 &(struct inspect_environment){
						 .dialect = dialect, .variables = variables, .pid = pid },
					 options);
}

/* One variable of xputrace alone, of the caller's own. */
static int apply_one(struct xpt_inspect_options *options, const char *variable)
{
	const char *variables[] = { variable, NULL };

	return apply(options, INSPECT_XPUTRACE, 0, variables);
}

static void expect_types(const struct xpt_inspect_options *options, const char *expected)
{
	const char *const *names;
	char joined[1024] = "";
	size_t count;

	names = xpt_inspect_options_event_types(options, &count);
	for (size_t i = 0; i < count; i++) {
		strcat(joined, i ? "," : "");
		strcat(joined, names[i]);
	}
	cr_expect_str_eq(joined, expected);
}

Test(session_inspect_environment, all_variables)
{
	static const char *const variables[] = {
		"HOME=/nowhere",
		"XPUTRACE_INSPECT_SESSION_ID=42",
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
	struct xpt_inspect_options *options = make();
	const char *const *names;
	size_t count;

	cr_assert_eq(apply(options, INSPECT_XPUTRACE, 0, variables), 0);
	cr_expect_str_empty(said.text);
	cr_expect_eq(options->settings.session_id, 42);
	cr_expect_str_eq(options->output_dir, "some where");
	cr_expect(options->settings.inspect && options->settings.on_fail);
	cr_expect_eq(options->settings.max_events_per_core, 5000);
	expect_types(options, "execute,job,error,reset,memory,counter");
	names = xpt_inspect_options_activities(options, &count);
	cr_assert_eq(count, 2);
	cr_expect_str_eq(names[0], "system_profile");
	cr_expect_str_eq(names[1], "host_memory");
	for (int core = -1; core < 20; core++)
		cr_expect_eq(inspect_settings_wants_core(&options->settings, core),
			     core == 0 || core == 2 || (core >= 4 && core <= 7));
	xpt_inspect_options_free(options);
}

Test(session_inspect_environment, nothing_set_changes_nothing)
{
	static const char *const variables[] = { "PATH=/bin", "XPUTRACE_INSPECT=1", "NEURON_RT_INSPECT_ENABLE=1",
						 "XPUTRACE_INSPECT_ENABLE", NULL };
	struct xpt_inspect_options *options = make();
	struct inspect_settings before = options->settings;

	cr_assert_eq(xpt_inspect_options_set_output_dir(options, "mine"), 0);
	cr_assert_eq(apply(options, INSPECT_XPUTRACE, 0, variables), 0);
	cr_expect(same(&before, &options->settings));
	cr_expect_str_eq(options->output_dir, "mine");
	cr_expect_str_empty(said.text);
	xpt_inspect_options_free(options);
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

Test(session_inspect_environment, cores)
{
	for (size_t i = 0; i < sizeof(core_filters) / sizeof(core_filters[0]); i++) {
		struct xpt_inspect_options *options = make();
		char variable[256], captured[256] = "";
		int error;

		snprintf(variable, sizeof(variable), "XPUTRACE_INSPECT_EVENT_FILTER_CORE=%s", core_filters[i].text);
		error = apply_one(options, variable);
		cr_expect_eq(error, core_filters[i].captured ? 0 : -EINVAL, "'%s': %d", core_filters[i].text, error);
		cr_expect_eq(said.errors, error ? 1 : 0);
		if (error)
			cr_expect_not_null(strstr(said.text, "0,2,4-7"));
		for (int core = 0; core < 20; core++)
			if (!error && inspect_settings_wants_core(&options->settings, core))
				sprintf(captured + strlen(captured), "%s%d", *captured ? " " : "", core);
		if (!error && inspect_settings_wants_core(&options->settings, 8191))
			sprintf(captured + strlen(captured), " 8191");
		cr_expect_str_eq(captured, core_filters[i].captured ?: "", "'%s'", core_filters[i].text);
		cr_expect_eq(inspect_settings_wants_core(&options->settings, -1), error != 0,
			     "others are not in the list");
		xpt_inspect_options_free(options);
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

static void expect_filters(const struct type_filter *filters, size_t count, enum inspect_dialect dialect)
{
	for (size_t i = 0; i < count; i++) {
		struct xpt_inspect_options *options = make();
		__u32 before = options->settings.types;
		char variable[256];
		const char *variables[] = { variable, NULL };
		int error;

		snprintf(variable, sizeof(variable), "%s_INSPECT_EVENT_FILTER_TYPE=%s",
			 dialect == INSPECT_NEURON ? "NEURON_RT" : "XPUTRACE", filters[i].text);
		error = apply(options, dialect, 0, variables);
		cr_expect_eq(error, filters[i].captured ? 0 : -EINVAL, "'%s': %d", filters[i].text, error);
		cr_expect_eq(said.errors, error ? 1 : 0);
		if (error)
			cr_expect_eq(options->settings.types, before);
		else
			expect_types(options, filters[i].captured);
		xpt_inspect_options_free(options);
	}
}

Test(session_inspect_environment, types)
{
	expect_filters(type_filters, sizeof(type_filters) / sizeof(type_filters[0]), INSPECT_XPUTRACE);
}

Test(session_inspect_environment, types_of_neuron)
{
	expect_filters(neuron_filters, sizeof(neuron_filters) / sizeof(neuron_filters[0]), INSPECT_NEURON);
}

Test(session_inspect_environment, names_that_nothing_answers_to_are_warned_of)
{
	static const char *const variables[] = {
		"NEURON_RT_INSPECT_EVENT_FILTER_TYPE=nrt_load,^timestamp_sync_point,hw_notify", NULL
	};
	struct xpt_inspect_options *options = make();

	cr_expect_eq(apply(options, INSPECT_NEURON, 77, variables), 0);
	cr_expect_eq(said.warnings, 1);
	cr_expect_str_eq(said.text, "process 77: NEURON_RT_INSPECT_EVENT_FILTER_TYPE: there is nothing like "
				    "\"timestamp_sync_point\" here\n");
	xpt_inspect_options_free(options);
}

Test(session_inspect_environment, messages_name_variable_value_and_what_is_allowed)
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
		{ "SESSION_ID=2147483648", "0 to 2147483647" },
		{ "SESSION_ID=-1", "0 to 2147483647" },
		{ "SESSION_ID=18446744073709551616", "0 to 2147483647" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct xpt_inspect_options *options = make();
		struct inspect_settings before = options->settings;
		char variable[128], begin[128];
		size_t name = strcspn(bad[i].variable, "=");

		snprintf(variable, sizeof(variable), "XPUTRACE_INSPECT_%s", bad[i].variable);
		snprintf(begin, sizeof(begin), "XPUTRACE_INSPECT_%.*s is \"%s\": ", (int)name, bad[i].variable,
			 bad[i].variable + name + 1);
		cr_expect_eq(apply_one(options, variable), -EINVAL, "%s", variable);
		cr_expect_eq(strncmp(said.text, begin, strlen(begin)), 0, "%s", said.text);
		cr_expect_not_null(strstr(said.text, bad[i].allowed), "%s", said.text);
		cr_expect(same(&before, &options->settings));
		xpt_inspect_options_free(options);
	}
}

Test(session_inspect_environment, one_bad_value_and_nothing_is_taken)
{
	static const char *const variables[] = { "XPUTRACE_INSPECT_ENABLE=1", "XPUTRACE_INSPECT_OUTPUT_DIR=there",
						 "XPUTRACE_INSPECT_SESSION_ID=x", NULL };
	struct xpt_inspect_options *options = make();

	cr_expect_eq(apply(options, INSPECT_XPUTRACE, 0, variables), -EINVAL);
	cr_expect_not(options->settings.inspect);
	cr_expect_str_eq(options->output_dir, "./output");
	xpt_inspect_options_free(options);
}

Test(session_inspect_environment, unknown_variables_are_warned_of)
{
	static const char *const variables[] = { "XPUTRACE_INSPECT_ENABLED=1", "XPUTRACE_INSPECT_ENABLE=1",
						 "XPUTRACE_INSPECT_=", NULL };
	struct xpt_inspect_options *options = make();

	cr_expect_eq(apply(options, INSPECT_XPUTRACE, 0, variables), 0);
	cr_expect_eq(said.warnings, 2);
	cr_expect_not_null(strstr(said.text, "XPUTRACE_INSPECT_ENABLED is ignored"));
	cr_expect(options->settings.inspect);
	xpt_inspect_options_free(options);
}

Test(session_inspect_environment, the_first_of_a_name_counts)
{
	static const char *const variables[] = { "XPUTRACE_INSPECT_SESSION_ID=3", "XPUTRACE_INSPECT_SESSION_ID=x",
						 NULL };
	struct xpt_inspect_options *options = make();

	cr_expect_eq(apply(options, INSPECT_XPUTRACE, 0, variables), 0);
	cr_expect_eq(options->settings.session_id, 3);
	xpt_inspect_options_free(options);
}

Test(session_inspect_environment, neuron)
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
	struct xpt_inspect_options *options = make();

	cr_assert_eq(apply(options, INSPECT_NEURON, 0, variables), 0);
	cr_expect(options->settings.inspect && !options->settings.on_fail);
	cr_expect_eq(options->settings.activities, INSPECT_ALL_ACTIVITIES & ~(1u << INSPECT_SYSTEM_PROFILE));
	expect_types(options, "execute," HARDWARE);
	cr_expect(inspect_settings_wants_core(&options->settings, 3) &&
		  !inspect_settings_wants_core(&options->settings, 4));
	cr_expect_eq(options->settings.max_events_per_core, 2000000);
	cr_expect_str_eq(options->output_dir, "profiles");
	cr_expect_eq(options->settings.session_id, 1, "Neuron has no such variable");
	cr_expect_eq(said.warnings, 0);
	cr_expect_eq(said.others, 2, "what it has and xputrace has not is said, no more: %s", said.text);
	xpt_inspect_options_free(options);
}

Test(session_inspect_environment, device_profile_of_neuron)
{
	static const struct {
		const char *value;
		bool on;
	} values[] = { { "0", false }, { "1", true }, { "model", true }, { "session", true } };

	for (size_t i = 0; i < 4; i++) {
		struct xpt_inspect_options *options = make();
		char variable[128];
		const char *variables[] = { variable, NULL };

		snprintf(variable, sizeof(variable), "NEURON_RT_INSPECT_DEVICE_PROFILE=%s", values[i].value);
		inspect_settings_set_activities(&options->settings, 1u << INSPECT_DEVICE_PROFILE, !values[i].on);
		cr_expect_eq(apply(options, INSPECT_NEURON, 0, variables), 0);
		cr_expect_eq(!!(options->settings.activities & 1u << INSPECT_DEVICE_PROFILE), values[i].on);
		snprintf(variable, sizeof(variable), "NEURON_RT_INSPECT_DEVICE_PROFILE=%s2", values[i].value);
		cr_expect_eq(apply(options, INSPECT_NEURON, 0, variables), -EINVAL);
		cr_expect_not_null(strstr(said.text, "0, 1, model and session"));
		xpt_inspect_options_free(options);
	}
}

/* ---- of a traced process ---- */

Test(session_inspect_environment, a_process_does_not_say_where_files_go)
{
	static const char *const variables[] = { "NEURON_RT_INSPECT_OUTPUT_DIR=/etc", "NEURON_RT_INSPECT_ENABLE=1",
						 NULL };
	struct xpt_inspect_options *options = make();

	cr_expect_eq(apply(options, INSPECT_NEURON, 77, variables), 0);
	cr_expect_str_eq(options->output_dir, "./output");
	cr_expect(options->settings.inspect);
	cr_expect_eq(said.warnings, 1);
	cr_expect_not_null(strstr(said.text, "process 77: "));
	xpt_inspect_options_free(options);
}

Test(session_inspect_environment, a_process_does_not_take_more_memory)
{
	static const char *const more[] = { "NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC=1000000000", NULL };
	static const char *const less[] = { "NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC=20", NULL };
	struct xpt_inspect_options *options = make();

	cr_assert_eq(xpt_inspect_options_set_max_events_per_core(options, 500), 0);
	cr_expect_eq(apply(options, INSPECT_NEURON, 77, more), 0);
	cr_expect_eq(options->settings.max_events_per_core, 500);
	cr_expect_eq(said.warnings, 1);
	cr_expect_eq(apply(options, INSPECT_NEURON, 77, less), 0);
	cr_expect_eq(options->settings.max_events_per_core, 20);
	xpt_inspect_options_free(options);
}

static void expect_printable(void)
{
	for (const char *c = said.text; *c; c++)
		cr_assert((unsigned char)*c >= ' ' || *c == '\n', "byte %#x", (unsigned char)*c);
	cr_expect_null(strchr(said.text, '\x7f'));
}

Test(session_inspect_environment, hostile_text)
{
	static char names[VARIABLES_MAX][64], huge[1 << 20];
	const char *variables[VARIABLES_MAX + 1] = { 0 };
	struct xpt_inspect_options *options = make();

	for (size_t i = 0; i < VARIABLES_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "XPUTRACE_INSPECT_\x1b[2J\n\xff%zu=x", i);
		variables[i] = names[i];
	}
	cr_expect_eq(apply(options, INSPECT_XPUTRACE, 77, variables), 0);
	cr_expect_eq(said.warnings, 9, "a process cannot fill the log");
	cr_expect_not_null(strstr(said.text, "56 more"));
	expect_printable();

	memset(huge, '1', sizeof(huge) - 1);
	memcpy(huge, "XPUTRACE_INSPECT_SESSION_ID=", strlen("XPUTRACE_INSPECT_SESSION_ID="));
	cr_expect_eq(apply_one(options, huge), -EINVAL);
	cr_expect_not_null(strstr(said.text, "at most 4095 bytes"));
	cr_expect_lt(strlen(said.text), 4096);

	said = (struct said){ 0 };
	cr_expect_eq(apply_one(options, "XPUTRACE_INSPECT_EVENT_FILTER_TYPE=\x1b]0;gone\a\n\xe2\x80\xae"), -EINVAL);
	cr_expect_eq(said.errors, 1);
	expect_printable();
	xpt_inspect_options_free(options);
}
