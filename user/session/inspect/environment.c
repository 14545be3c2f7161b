/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/inspect/environment.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/core/text.h"
#include "target/process/process.h"

#define SHOWN_COLUMNS 80 /* of a name or value in a message */
#define UNKNOWN_SHOWN 8	 /* unknown variables that are named: a traced process may have any number */

static const char *const prefixes[INSPECT_DIALECTS] = { "XPUTRACE_INSPECT_", "NEURON_RT_INSPECT_" };

/* What is being filled in. */
struct filling {
	const struct log *log;
	const struct inspect_environment *environment;
	const struct variable *variable; /* the one in hand */
	struct inspect_settings settings;
	const char *output_dir; /* NULL: not given */
};

/* ---- messages ---- */

/* Made safe to be shown: names and values may be a traced process's. Terminated, at most SHOWN_COLUMNS wide. */
static const char *shown(struct text *text, const char *bytes, size_t length)
{
	text_clear(text, SIZE_MAX);
	text_terminal(text, bytes, length, SHOWN_COLUMNS);
	text_bytes(text, "", 1);
	return text->error ? "?" : text->data;
}

/* Where it was found, for the beginning of a message. */
static const char *whose(const struct filling *filling, char text[32])
{
	text[0] = '\0';
	if (filling->environment->pid)
		snprintf(text, 32, "process %d: ", (int)filling->environment->pid);
	return text;
}

/* ---- values ---- */

static bool read_number(const char *value, __u64 *number)
{
	*number = 0;
	if (!*value)
		return false;
	for (; *value; value++) {
		if (!isdigit((unsigned char)*value) || __builtin_mul_overflow(*number, 10, number) ||
		    __builtin_add_overflow(*number, *value - '0', number))
			return false;
	}
	return true;
}

static bool read_switch(const char *value, bool *on)
{
	*on = *value == '1';
	return (*value == '0' || *value == '1') && !value[1];
}

static int take_enable(struct filling *filling, const char *value)
{
	return read_switch(value, &filling->settings.inspect) ? 0 : -EINVAL;
}

static int take_on_fail(struct filling *filling, const char *value)
{
	return read_switch(value, &filling->settings.on_fail) ? 0 : -EINVAL;
}

static int take_activity(struct filling *filling, enum inspect_activity activity, const char *value)
{
	bool on;

	if (!read_switch(value, &on))
		return -EINVAL;
	inspect_settings_set_activities(&filling->settings, 1u << activity, on);
	return 0;
}

static int take_system_profile(struct filling *filling, const char *value)
{
	return take_activity(filling, INSPECT_SYSTEM_PROFILE, value);
}

static int take_device_profile(struct filling *filling, const char *value)
{
	return take_activity(filling, INSPECT_DEVICE_PROFILE, value);
}

static int take_neuron_device_profile(struct filling *filling, const char *value)
{
	bool on = !strcmp(value, "model") || !strcmp(value, "session");

	return take_device_profile(filling, on ? "1" : value);
}

static int take_host_memory(struct filling *filling, const char *value)
{
	return take_activity(filling, INSPECT_HOST_MEMORY, value);
}

static int take_cpu_util(struct filling *filling, const char *value)
{
	return take_activity(filling, INSPECT_CPU_UTIL, value);
}

static int take_cores(struct filling *filling, const char *value)
{
	return inspect_filter_cores(&filling->settings, value);
}

static int take_types(struct filling *filling, const char *value)
{
	enum inspect_dialect dialect = filling->environment->dialect;
	struct inspect_part unknown;
	int error = inspect_filter_types(&filling->settings, dialect, value, &unknown);
	struct text text = { 0 };
	char process[32];

	if (!error && unknown.length)
		log_warn(filling->log, "%s%sEVENT_FILTER_TYPE: there is nothing like \"%s\" here",
			 whose(filling, process), prefixes[dialect], shown(&text, unknown.text, unknown.length));
	text_free(&text);
	return error;
}

static int take_max_events(struct filling *filling, const char *value)
{
	__u64 most = filling->environment->pid ? filling->settings.max_events_per_core : XPT_INSPECT_EVENTS_MAX, events;
	char process[32];

	if (!read_number(value, &events) || events > XPT_INSPECT_EVENTS_MAX)
		return -EINVAL;
	if (events > most) {
		log_warn(filling->log, "%sasks for %llu events a core: limited to %llu", whose(filling, process),
			 (unsigned long long)events, (unsigned long long)most);
		events = most;
	}
	return inspect_settings_set_max_events(&filling->settings, events);
}

static int take_output_dir(struct filling *filling, const char *value)
{
	char process[32];

	if (filling->environment->pid) {
		log_warn(filling->log, "%sits output directory is ignored: where files go is not for it to say",
			 whose(filling, process));
		return 0;
	}
	filling->output_dir = value;
	return *value ? 0 : -EINVAL;
}

static int take_session_id(struct filling *filling, const char *value)
{
	__u64 id;

	if (!read_number(value, &id) || id > INT_MAX)
		return -EINVAL;
	return inspect_settings_set_session_id(&filling->settings, (__s64)id);
}

/* ---- variables ---- */

#define SWITCH "0 and 1"
#define PROFILES "0, 1, model and session"
#define CORES "numbers of cores below 8192 and ranges of them with commas between, such as 0,2,4-7"
#define PATHS "paths, which are not empty"
#define EVENTS "1 to 1000000000"
#define NEURON_TYPES "names of event types, software and hardware with commas between; those behind a ^ are left out"

static const struct variable {
	const char *name; /* behind the prefix */
	int (*take)(struct filling *filling, const char *value);
	const char *allowed; /* NULL: names of xputrace's types */
} variables[INSPECT_DIALECTS][12] = {
	[INSPECT_XPUTRACE] = {
		{ "ENABLE", take_enable, SWITCH },
		{ "ON_FAIL", take_on_fail, SWITCH },
		{ "SYSTEM_PROFILE", take_system_profile, SWITCH },
		{ "DEVICE_PROFILE", take_device_profile, SWITCH },
		{ "HOST_MEMORY", take_host_memory, SWITCH },
		{ "CPU_UTIL", take_cpu_util, SWITCH },
		{ "EVENT_FILTER_CORE", take_cores, CORES },
		{ "EVENT_FILTER_TYPE", take_types, NULL },
		{ "MAX_EVENTS_PER_CORE", take_max_events, EVENTS },
		{ "OUTPUT_DIR", take_output_dir, PATHS },
		{ "SESSION_ID", take_session_id, "0 to 2147483647" },
	},
	[INSPECT_NEURON] = {
		{ "ENABLE", take_enable, SWITCH },
		{ "ON_FAIL", take_on_fail, SWITCH },
		{ "SYSTEM_PROFILE", take_system_profile, SWITCH },
		{ "DEVICE_PROFILE", take_neuron_device_profile, PROFILES },
		{ "HOST_MEMORY", take_host_memory, SWITCH },
		{ "CPU_UTIL", take_cpu_util, SWITCH },
		{ "EVENT_FILTER_NC", take_cores, CORES },
		{ "EVENT_FILTER_TYPE", take_types, NEURON_TYPES },
		{ "SYS_TRACE_MAX_EVENTS_PER_NC", take_max_events, EVENTS },
		{ "OUTPUT_DIR", take_output_dir, PATHS },
	},
};

static void allow_types(struct text *text)
{
	const struct xpt_inspect_event_type *types;
	size_t count;

	types = xpt_inspect_event_types(&count);
	text_literal(text, "with commas between, software, hardware");
	for (size_t i = 0; i < count; i++) {
		text_literal(text, ", ");
		text_string(text, types[i].name);
	}
	text_literal(text, "; those behind a ^ are left out");
}

/* Reports what is wrong with the value of the current variable. */
static void refuse(const struct filling *filling, const char *value)
{
	struct text text = { 0 }, allowed = { 0 };
	size_t length = strlen(value);
	char process[32];

	if (filling->variable->allowed)
		text_string(&allowed, filling->variable->allowed);
	else
		allow_types(&allowed);
	if (length > INSPECT_VALUE_MAX) {
		text_clear(&allowed, SIZE_MAX);
		text_literal(&allowed, "at most 4095 bytes");
	}
	log_error(filling->log, "%s%s%s is \"%s\": expected %.*s", whose(filling, process),
		  prefixes[filling->environment->dialect], filling->variable->name, shown(&text, value, length),
		  (int)allowed.length, allowed.data ? allowed.data : "");
	text_free(&text);
	text_free(&allowed);
}

/* What follows the prefix; NULL: it is another variable. */
static const char *behind_prefix(const struct inspect_environment *environment, const char *variable)
{
	const char *prefix = prefixes[environment->dialect];
	size_t length = strlen(prefix);

	return strncmp(variable, prefix, length) || !strchr(variable, '=') ? NULL : variable + length;
}

/* The value, if the variable follows the prefix. */
static const char *value_of(const struct variable *variable, const char *name)
{
	size_t length = strlen(variable->name);

	return strncmp(name, variable->name, length) || name[length] != '=' ? NULL : name + length + 1;
}

static int take(struct filling *filling)
{
	const char *const *at = filling->environment->variables;
	const char *name, *value = NULL;
	int error;

	for (; *at && !value; at++) {
		name = behind_prefix(filling->environment, *at);
		value = name ? value_of(filling->variable, name) : NULL;
	}
	if (!value)
		return 0;
	error = strlen(value) > INSPECT_VALUE_MAX ? -EINVAL : filling->variable->take(filling, value);
	if (error == -EINVAL)
		refuse(filling, value);
	return error;
}

static bool is_known(const struct inspect_environment *environment, const char *name)
{
	const struct variable *variable = variables[environment->dialect];

	for (; variable->name; variable++)
		if (value_of(variable, name))
			return true;
	return false;
}

static void tell_unknown(const struct filling *filling)
{
	const struct inspect_environment *environment = filling->environment;
	enum xpt_log_level level = environment->dialect == INSPECT_XPUTRACE ? XPT_LOG_WARN : XPT_LOG_INFO;
	const char *const *at = environment->variables;
	struct text text = { 0 };
	size_t count = 0;
	char process[32];

	for (; *at; at++) {
		const char *name = behind_prefix(environment, *at);

		if (name && !is_known(environment, name) && count++ < UNKNOWN_SHOWN)
			log_write(filling->log, level, "%s%s is ignored: unknown variable", whose(filling, process),
				  shown(&text, *at, strcspn(*at, "=")));
	}
	if (count > UNKNOWN_SHOWN)
		log_write(filling->log, level, "%s%zu more are ignored", whose(filling, process),
			  count - UNKNOWN_SHOWN);
	text_free(&text);
}

int inspect_environment_apply(const struct log *log, const struct inspect_environment *environment,
			      struct xpt_inspect_options *options)
{
	struct filling filling = { .log = log, .environment = environment, .settings = options->settings };
	int error = 0;

	tell_unknown(&filling);
	filling.variable = variables[environment->dialect];
	while (filling.variable->name && !error) {
		error = take(&filling);
		filling.variable++;
	}
	return error ? error : inspect_options_take(options, &filling.settings, filling.output_dir);
}

static struct log log_of(const struct xpt_inspect_options *options)
{
	const struct xpt_session_options *targets = &options->targets;

	return (struct log){ targets->log, targets->log_context, targets->log_level };
}

int xpt_inspect_options_from_environment(struct xpt_inspect_options *options)
{
	const struct inspect_environment environment = { INSPECT_XPUTRACE, (const char *const *)environ, 0 };
	struct log log;

	if (!options)
		return -EINVAL;
	log = log_of(options);
	return inspect_environment_apply(&log, &environment, options);
}

int xpt_inspect_options_from_process(struct xpt_inspect_options *options, pid_t pid)
{
	struct inspect_environment environment = { .dialect = INSPECT_NEURON, .pid = pid };
	struct process_environment given;
	struct log log;
	int error = options ? process_environment_read(pid, &given) : -EINVAL;

	if (error)
		return error;
	log = log_of(options);
	environment.variables = given.variables;
	error = inspect_environment_apply(&log, &environment, options);
	process_environment_free(&given);
	return error;
}
