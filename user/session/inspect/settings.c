/* SPDX-License-Identifier: BSD-2-Clause */
/* What an inspection captures, and the settings that choose it. */
#include "session/inspect/inspect.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/core/text.h"
#include "counter/pmu.h"

#define SHOWN_COLUMNS 80 /* of a name or value in a message */
#define UNKNOWN_SHOWN 8	 /* unknown variables that are named: a traced process may have any number */
#define RANGE_LENGTH 32	 /* more than two numbers below XPT_INSPECT_CORES take */

_Static_assert(XPT_INSPECT_CORES == CPUS_MAX, "lists of cores are read as those of CPUs");

/* ---- types and activities ---- */

#define SOFTWARE "software"
#define HARDWARE "hardware"

#define TYPE(name, group, description)                                          \
	{                                                                       \
		sizeof(struct xpt_inspect_event_type), name, group, description \
	}
#define ACTIVITY(name, description)                                    \
	{                                                              \
		sizeof(struct xpt_inspect_activity), name, description \
	}

static const struct xpt_inspect_event_type types[INSPECT_TYPES] = {
	[INSPECT_PROGRAM_LOAD] = TYPE("program.load", SOFTWARE, "a program is loaded into a runtime"),
	[INSPECT_PROGRAM_NAME] = TYPE("program.name", SOFTWARE, "a program is given its name"),
	[INSPECT_PROGRAM_UNLOAD] = TYPE("program.unload", SOFTWARE, "a program is released"),
	[INSPECT_EXECUTE] = TYPE("execute", SOFTWARE, "a whole inference"),
	[INSPECT_ENQUEUE] = TYPE("enqueue", SOFTWARE, "an asynchronous inference begins"),
	[INSPECT_WAIT] = TYPE("wait", SOFTWARE, "the end of asynchronous inferences is waited for"),
	[INSPECT_LAUNCH] = TYPE("launch", SOFTWARE, "a kernel is handed to a queue of the device"),
	[INSPECT_COPY] = TYPE("copy", SOFTWARE, "bytes are moved to, from or on the device"),
	[INSPECT_ALLOC] = TYPE("alloc", SOFTWARE, "memory of the device is taken"),
	[INSPECT_FREE] = TYPE("free", SOFTWARE, "memory of the device is given back"),
	[INSPECT_SELECT] = TYPE("select", SOFTWARE, "a thread chooses its device"),
	[INSPECT_CODEOBJ_LOAD] = TYPE("codeobj.load", SOFTWARE, "code for the device is loaded"),
	[INSPECT_CODEOBJ_UNLOAD] = TYPE("codeobj.unload", SOFTWARE, "code for the device is released"),
	[INSPECT_OPERATOR] = TYPE("operator", SOFTWARE, "one step of an inference"),
	[INSPECT_REGION] = TYPE("region", SOFTWARE, "a named stretch of user code"),
	[INSPECT_TASK] = TYPE("task", SOFTWARE, "a process forks, executes another program, exits"),
	[INSPECT_IOCTL] = TYPE("ioctl", SOFTWARE, "a thread calls the device's driver"),
	[INSPECT_JOB] = TYPE("job", HARDWARE, "a unit of work in a queue of the device"),
	[INSPECT_ERROR] = TYPE("error", HARDWARE, "the driver reports a failure"),
	[INSPECT_RESET] = TYPE("reset", HARDWARE, "a device, an engine or a queue is reset"),
	[INSPECT_MEMORY] = TYPE("memory", HARDWARE, "the driver takes, gives back, maps or moves memory"),
	[INSPECT_COUNTER] = TYPE("counter", HARDWARE, "a counter is read"),
};

static const struct xpt_inspect_activity activities[INSPECT_ACTIVITIES] = {
	[INSPECT_SYSTEM_PROFILE] = ACTIVITY("system_profile", "events of the group software"),
	[INSPECT_DEVICE_PROFILE] = ACTIVITY("device_profile", "events of the group hardware"),
	[INSPECT_HOST_MEMORY] = ACTIVITY("host_memory", "memory of each process over time"),
	[INSPECT_CPU_UTIL] = ACTIVITY("cpu_util", "CPU time of each process over time"),
};

const struct xpt_inspect_event_type *xpt_inspect_event_types(size_t *count)
{
	if (count)
		*count = INSPECT_TYPES;
	return types;
}

const struct xpt_inspect_activity *xpt_inspect_activities(size_t *count)
{
	if (count)
		*count = INSPECT_ACTIVITIES;
	return activities;
}

/* Those that are not here are no events, but how the tracing finds its way. */
static const struct {
	enum xpt_role role;
	enum inspect_type type;
} types_of_roles[] = {
	{ XPT_ROLE_PROGRAM_LOAD, INSPECT_PROGRAM_LOAD },
	{ XPT_ROLE_PROGRAM_READY, INSPECT_PROGRAM_LOAD },
	{ XPT_ROLE_PROGRAM_NAME, INSPECT_PROGRAM_NAME },
	{ XPT_ROLE_PROGRAM_UNLOAD, INSPECT_PROGRAM_UNLOAD },
	{ XPT_ROLE_EXECUTE, INSPECT_EXECUTE },
	{ XPT_ROLE_ENQUEUE, INSPECT_ENQUEUE },
	{ XPT_ROLE_WAIT, INSPECT_WAIT },
	{ XPT_ROLE_FOLLOW, INSPECT_WAIT },
	{ XPT_ROLE_MARK, INSPECT_WAIT }, /* defines, as the next two do, what a wait is for */
	{ XPT_ROLE_STREAM, INSPECT_WAIT },
	{ XPT_ROLE_CALLBACK, INSPECT_WAIT },
	{ XPT_ROLE_LAUNCH, INSPECT_LAUNCH },
	{ XPT_ROLE_COPY, INSPECT_COPY },
	{ XPT_ROLE_ALLOC, INSPECT_ALLOC },
	{ XPT_ROLE_FREE, INSPECT_FREE },
	{ XPT_ROLE_SELECT, INSPECT_SELECT },
	{ XPT_ROLE_CODEOBJ_LOAD, INSPECT_CODEOBJ_LOAD },
	{ XPT_ROLE_CODEOBJ_UNLOAD, INSPECT_CODEOBJ_UNLOAD },
	{ XPT_ROLE_OPERATOR, INSPECT_OPERATOR },
	{ XPT_ROLE_OPERATOR_END, INSPECT_OPERATOR },
	{ XPT_ROLE_REGION, INSPECT_REGION },
	{ XPT_ROLE_REGION_BEGIN, INSPECT_REGION },
	{ XPT_ROLE_REGION_END, INSPECT_REGION },
	{ XPT_ROLE_REGION_NAME, INSPECT_REGION },
	{ XPT_ROLE_REGION_RELEASE, INSPECT_REGION },
	{ XPT_ROLE_REGION_PRINT, INSPECT_REGION },
};

enum inspect_type inspect_type_of_role(enum xpt_role role)
{
	for (size_t i = 0; i < sizeof(types_of_roles) / sizeof(types_of_roles[0]); i++) {
		if (types_of_roles[i].role == role)
			return types_of_roles[i].type;
	}
	return INSPECT_TYPES;
}

enum inspect_type inspect_type_of_event(enum xpt_event_role role)
{
	switch (role) {
	case XPT_EVENT_QUEUE:
	case XPT_EVENT_RUN:
	case XPT_EVENT_DONE:
		return INSPECT_JOB;
	case XPT_EVENT_ERROR:
		return INSPECT_ERROR;
	case XPT_EVENT_RESET:
		return INSPECT_RESET;
	case XPT_EVENT_MEMORY:
		return INSPECT_MEMORY;
	case XPT_EVENT_SUBMIT:
	case XPT_EVENT_WAIT:
	case XPT_EVENT_ENTER:
	case XPT_EVENT_LEAVE:
		return INSPECT_IOCTL;
	}
	return INSPECT_TYPES;
}

enum inspect_activity inspect_activity_of_type(enum inspect_type type)
{
	return type < INSPECT_FIRST_HARDWARE ? INSPECT_SYSTEM_PROFILE : INSPECT_DEVICE_PROFILE;
}

/* ---- what is being changed ---- */

static const char *const prefixes[INSPECT_SOURCES] = { "", "XPUTRACE_INSPECT_", "NEURON_RT_INSPECT_" };

struct change {
	const struct log *log;
	const struct inspect_environment *environment;
	const struct variable *variable; /* the current one */
	struct inspect_settings settings;
};

struct variable {
	const char *names[2]; /* behind the prefix: ours, Neuron's; NULL: it has none */
	int (*set)(struct change *change, const char *value);
	const char *expected[2]; /* NULL: names of xputrace's types, and what it is of ours */
	enum inspect_activity activity;
};

static bool is_neuron(const struct inspect_environment *environment)
{
	return environment->source == INSPECT_NEURON;
}

/* ---- messages ---- */

/* Made safe to be shown: names and values may be a traced process's. Terminated, at most SHOWN_COLUMNS wide. */
static const char *printable(struct text *text, const char *bytes, size_t length)
{
	text_clear(text, SIZE_MAX);
	text_terminal(text, bytes, length, SHOWN_COLUMNS);
	text_bytes(text, "", 1);
	return text->error ? "?" : text->data;
}

/* Where it was found, for the beginning of a message. */
static const char *origin(const struct change *change, char text[32])
{
	text[0] = '\0';
	if (change->environment->pid)
		snprintf(text, 32, "process %d: ", (int)change->environment->pid);
	return text;
}

/* ---- lists ---- */

/* A part of a text. */
struct part {
	const char *text;
	size_t length; /* 0: none */
};

/* The entry up to the next comma; false: there are no more. The first one is always there, if empty. */
static bool next_entry(const char **at, struct part *entry)
{
	if (!*at)
		return false;
	entry->text = *at;
	entry->length = strcspn(*at, ",");
	*at = entry->text[entry->length] ? entry->text + entry->length + 1 : NULL;
	return true;
}

/* A name of Neuron's, and the type that it is a part of. */
static const struct word {
	const char *name;
	enum inspect_type type;
} neuron_words[] = {
	{ "nrt_load", INSPECT_PROGRAM_LOAD }, { "model_load", INSPECT_PROGRAM_LOAD },
	{ "nrt_execute", INSPECT_EXECUTE },   { "runtime_execute", INSPECT_EXECUTE },
	{ "nrt_tensor_read", INSPECT_COPY },  { "nrt_tensor_write", INSPECT_COPY },
	{ "dmem_buf_copyin", INSPECT_COPY },  { "dmem_buf_copyout", INSPECT_COPY },
	{ "kbl_exec_wait", INSPECT_WAIT },    { "nc_exec_running", INSPECT_JOB },
	{ "cc_running", INSPECT_JOB },	      { "numerical_err", INSPECT_ERROR },
};

#define NEURON_WORDS (sizeof(neuron_words) / sizeof(neuron_words[0]))
#define WORDS (NEURON_WORDS + INSPECT_TYPES)

_Static_assert(WORDS <= 64, "a filter has a bit for each");

/* What a filter may name, of Neuron's words and our types. name NULL: selected with its group only. False: there is no such word. */
static bool word_at(size_t index, bool neuron, struct word *word)
{
	if (index < NEURON_WORDS) {
		*word = neuron_words[index];
		return neuron;
	}
	*word = (struct word){ .type = index - NEURON_WORDS };
	if (!neuron)
		word->name = types[word->type].name;
	for (size_t i = 0; neuron && i < NEURON_WORDS; i++) {
		if (neuron_words[i].type == word->type)
			return false; /* its parts are words */
	}
	return true;
}

static bool is(const struct part *entry, const char *name)
{
	return name && strlen(name) == entry->length && !memcmp(name, entry->text, entry->length);
}

/* The words that an entry names, a bit each. */
static __u64 words_named(const struct part *entry, bool neuron)
{
	struct word word;
	__u64 named = 0;

	for (size_t i = 0; i < WORDS; i++) {
		if (word_at(i, neuron, &word) && (is(entry, word.name) || is(entry, types[word.type].group)))
			named |= 1ull << i;
	}
	return named;
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

static int read_switch(const char *value, bool *on)
{
	*on = *value == '1';
	return (*value == '0' || *value == '1') && !value[1] ? 0 : -EINVAL;
}

static int set_enable(struct change *change, const char *value)
{
	return read_switch(value, &change->settings.inspect);
}

static int set_on_fail(struct change *change, const char *value)
{
	return read_switch(value, &change->settings.on_fail);
}

static int set_activity(struct change *change, const char *value)
{
	enum inspect_activity activity = change->variable->activity;
	bool profiles = is_neuron(change->environment) && activity == INSPECT_DEVICE_PROFILE, on = true;

	if (!(profiles && (!strcmp(value, "model") || !strcmp(value, "session"))) && read_switch(value, &on))
		return -EINVAL;
	change->settings.activities &= ~(1u << activity);
	change->settings.activities |= (__u32)on << activity;
	return 0;
}

static int set_activities(struct change *change, const char *value)
{
	__u32 all = 0, bits;
	struct part entry;

	while (next_entry(&value, &entry)) {
		bits = is(&entry, "all") ? INSPECT_ALL_ACTIVITIES : 0;
		for (size_t i = 0; i < INSPECT_ACTIVITIES; i++)
			bits |= (__u32)is(&entry, activities[i].name) << i;
		if (!bits)
			return -EINVAL;
		all |= bits;
	}
	change->settings.activities = all;
	return 0;
}

static int set_format(struct change *change, const char *value)
{
	change->settings.packets = !strcmp(value, "perfetto");
	return change->settings.packets || !strcmp(value, "chrome") ? 0 : -EINVAL;
}

/* "0,2,4-7": those are captured, and no other core is. */
static int set_cores(struct change *change, const char *value)
{
	struct inspect_settings *settings = &change->settings;
	char range[RANGE_LENGTH];
	struct part entry;
	struct cpus cores;
	int error = 0;

	memset(settings->cores, 0, sizeof(settings->cores));
	settings->other_cores = false;
	while (!error && next_entry(&value, &entry)) {
		if (!entry.length || entry.length >= sizeof(range))
			return -EINVAL;
		memcpy(range, entry.text, entry.length);
		range[entry.length] = '\0';
		error = cpus_parse(range, &cores);
		for (size_t i = 0; i < cores.count; i++)
			settings->cores[cores.items[i] / 8] |= 1u << cores.items[i] % 8;
		cpus_free(&cores);
	}
	return error;
}

/*
 * "hardware,execute,^reset": at first nothing is captured, or if the first entry begins with ^, everything. Then each entry adds what
 * it names or, with ^, removes it; so the later one counts.
 */
static int set_types(struct change *change, const char *value)
{
	bool neuron = is_neuron(change->environment);
	__u64 captured = *value == '^' ? ~0ull : 0, named;
	struct part entry, unknown = {};
	struct text text = {};
	struct word word;
	char process[32];

	while (next_entry(&value, &entry)) {
		bool out = entry.length && *entry.text == '^';
		struct part name = { entry.text + out, entry.length - out };

		named = words_named(&name, neuron);
		if (!name.length || (!named && !neuron))
			return -EINVAL;
		if (!named && !unknown.length)
			unknown = name;
		captured = out ? captured & ~named : captured | named;
	}
	if (unknown.length)
		log_warn(change->log, "%s%s%s: there is nothing like \"%s\" here", origin(change, process),
			 prefixes[change->environment->source], "EVENT_FILTER_TYPE",
			 printable(&text, unknown.text, unknown.length));
	text_free(&text);
	change->settings.types = 0;
	for (size_t i = 0; i < WORDS; i++) {
		if (captured >> i & 1 && word_at(i, neuron, &word))
			change->settings.types |= 1u << word.type;
	}
	return 0;
}

static int set_max_events(struct change *change, const char *value)
{
	__u64 most = change->environment->pid ? change->settings.max_events_per_core : XPT_INSPECT_EVENTS_MAX, events;
	char process[32];

	if (!read_number(value, &events) || !events || events > XPT_INSPECT_EVENTS_MAX)
		return -EINVAL;
	if (events > most) {
		log_warn(change->log, "%sasks for %llu events a core: limited to %llu", origin(change, process),
			 (unsigned long long)events, (unsigned long long)most);
		events = most;
	}
	change->settings.max_events_per_core = events;
	return 0;
}

static int set_output_dir(struct change *change, const char *value)
{
	char process[32];

	if (change->environment->pid) {
		log_warn(change->log, "%sits output directory is ignored: where files go is not for it to say",
			 origin(change, process));
		return 0;
	}
	snprintf(change->settings.output_dir, sizeof(change->settings.output_dir), "%s", value);
	return *value ? 0 : -EINVAL;
}

static int set_session_id(struct change *change, const char *value)
{
	__u64 id;

	if (!read_number(value, &id) || id > INT_MAX)
		return -EINVAL;
	change->settings.session_id = (int)id;
	return 0;
}

/* ---- variables ---- */

#define SWITCH "0 and 1"
#define PROFILES "0, 1, model and session"
#define CORES "numbers of cores below 8192 and ranges of them with commas between, such as 0,2,4-7"
#define PATHS "paths, which are not empty"
#define EVENTS "1 to 1000000000"
#define NEURON_TYPES "names of event types, software and hardware with commas between; those behind a ^ are left out"
#define ACTIVITIES "all, or some of system_profile, device_profile, host_memory, cpu_util with commas between"

#define NONE INSPECT_ACTIVITIES

/* ACTIVITIES comes before the single ones. */
static const struct variable variables[] = {
	{ { "ENABLE", "ENABLE" }, set_enable, { SWITCH }, NONE },
	{ { "ON_FAIL", "ON_FAIL" }, set_on_fail, { SWITCH }, NONE },
	{ { "ACTIVITIES" }, set_activities, { ACTIVITIES }, NONE },
	{ { "SYSTEM_PROFILE", "SYSTEM_PROFILE" }, set_activity, { SWITCH }, INSPECT_SYSTEM_PROFILE },
	{ { "DEVICE_PROFILE", "DEVICE_PROFILE" }, set_activity, { SWITCH, PROFILES }, INSPECT_DEVICE_PROFILE },
	{ { "HOST_MEMORY", "HOST_MEMORY" }, set_activity, { SWITCH }, INSPECT_HOST_MEMORY },
	{ { "CPU_UTIL", "CPU_UTIL" }, set_activity, { SWITCH }, INSPECT_CPU_UTIL },
	{ { "EVENT_FILTER_CORE", "EVENT_FILTER_NC" }, set_cores, { CORES }, NONE },
	{ { "EVENT_FILTER_TYPE", "EVENT_FILTER_TYPE" }, set_types, { NULL, NEURON_TYPES }, NONE },
	{ { "MAX_EVENTS_PER_CORE", "SYS_TRACE_MAX_EVENTS_PER_NC" }, set_max_events, { EVENTS }, NONE },
	{ { "OUTPUT_DIR", "OUTPUT_DIR" }, set_output_dir, { PATHS }, NONE },
	{ { "FORMAT" }, set_format, { "chrome and perfetto" }, NONE },
	{ { "SESSION_ID" }, set_session_id, { "0 to 2147483647" }, NONE },
};

#define VARIABLES (sizeof(variables) / sizeof(variables[0]))

/* NULL: there is none. */
static const char *name_of(const struct variable *variable, const struct inspect_environment *environment)
{
	return variable->names[is_neuron(environment)];
}

static void list_types(struct text *text)
{
	text_literal(text, "with commas between, software, hardware");
	for (size_t i = 0; i < INSPECT_TYPES; i++) {
		text_literal(text, ", ");
		text_string(text, types[i].name);
	}
	text_literal(text, "; those behind a ^ are left out");
}

/* Reports what is wrong with the value of the current variable. */
static void refuse(const struct change *change, const char *value)
{
	struct text text = { 0 }, expected = { 0 };
	size_t length = strlen(value);
	char process[32];

	if (length > INSPECT_VALUE_MAX)
		text_literal(&expected, "at most 4095 bytes");
	else if (is_neuron(change->environment) && change->variable->expected[1])
		text_string(&expected, change->variable->expected[1]);
	else if (change->variable->expected[0])
		text_string(&expected, change->variable->expected[0]);
	else
		list_types(&expected);
	log_error(change->log, "%s%s%s is \"%s\": expected %.*s", origin(change, process),
		  prefixes[change->environment->source], name_of(change->variable, change->environment),
		  printable(&text, value, length), (int)expected.length, expected.data ? expected.data : "");
	text_free(&text);
	text_free(&expected);
}

/* What follows the prefix; NULL: it is another variable. */
static const char *behind_prefix(const struct inspect_environment *environment, const char *variable)
{
	const char *prefix = prefixes[environment->source];
	size_t length = strlen(prefix);

	return strncmp(variable, prefix, length) || !strchr(variable, '=') ? NULL : variable + length;
}

/* The value, if it is the variable that follows the prefix. */
static const char *value_of(const struct variable *variable, const struct inspect_environment *environment,
			    const char *given)
{
	const char *name = name_of(variable, environment);
	size_t length = name ? strlen(name) : 0;

	return !name || strncmp(given, name, length) || given[length] != '=' ? NULL : given + length + 1;
}

static int set_variable(struct change *change)
{
	const char *const *at = change->environment->variables;
	const char *name, *value = NULL;
	int error;

	for (; *at && !value; at++) {
		name = behind_prefix(change->environment, *at);
		value = name ? value_of(change->variable, change->environment, name) : NULL;
	}
	if (!value)
		return 0;
	error = strlen(value) > INSPECT_VALUE_MAX ? -EINVAL : change->variable->set(change, value);
	if (error == -EINVAL)
		refuse(change, value);
	return error;
}

static bool is_known(const struct inspect_environment *environment, const char *name)
{
	for (size_t i = 0; i < VARIABLES; i++)
		if (value_of(&variables[i], environment, name))
			return true;
	return false;
}

static void report_unknown(const struct change *change)
{
	const struct inspect_environment *environment = change->environment;
	enum xpt_log_level level = environment->source == INSPECT_XPUTRACE ? XPT_LOG_WARN : XPT_LOG_INFO;
	const char *const *at = environment->variables;
	struct text text = { 0 };
	size_t count = 0;
	char process[32];

	for (; *at; at++) {
		const char *name = behind_prefix(environment, *at);

		if (name && !is_known(environment, name) && count++ < UNKNOWN_SHOWN)
			log_write(change->log, level, "%s%s is ignored: unknown variable", origin(change, process),
				  printable(&text, *at, strcspn(*at, "=")));
	}
	if (count > UNKNOWN_SHOWN)
		log_write(change->log, level, "%s%zu more are ignored", origin(change, process), count - UNKNOWN_SHOWN);
	text_free(&text);
}

/* An option that is none. */
static int refuse_unknown(const struct change *change)
{
	const char *const *at = change->environment->variables;
	struct text text = { 0 };
	int error = 0;

	for (; *at && !error; at++) {
		if (strchr(*at, '=') && is_known(change->environment, *at))
			continue;
		log_error(change->log, "unknown setting \"%s\"", printable(&text, *at, strcspn(*at, "=")));
		error = -EINVAL;
	}
	text_free(&text);
	return error;
}

int inspect_settings_apply(const struct log *log, const struct inspect_environment *environment,
			   struct inspect_settings *settings)
{
	struct change change = { .log = log, .environment = environment, .settings = *settings };
	int error = 0;

	if (environment->source == INSPECT_OPTIONS)
		error = refuse_unknown(&change);
	else
		report_unknown(&change);
	for (size_t i = 0; i < VARIABLES && !error; i++) {
		change.variable = &variables[i];
		error = set_variable(&change);
	}
	if (!error)
		*settings = change.settings;
	return error;
}

int xpt_inspect_check(const char *setting)
{
	const char *const variables_of_it[] = { setting, NULL };
	const struct inspect_environment environment = { .source = INSPECT_OPTIONS, .variables = variables_of_it };
	const struct log log = {};
	struct inspect_settings settings;

	if (!setting)
		return -EINVAL;
	inspect_settings_init(&settings);
	return inspect_settings_apply(&log, &environment, &settings);
}

void inspect_settings_init(struct inspect_settings *settings)
{
	*settings = (struct inspect_settings){
		.session_id = 1,
		.max_events_per_core = 1000000,
		.types = INSPECT_ALL_TYPES,
		.activities = INSPECT_ALL_ACTIVITIES,
		.other_cores = true,
		.output_dir = XPT_CONTINUOUS_DIR,
	};
	memset(settings->cores, 0xff, sizeof(settings->cores));
}

bool inspect_settings_wants_core(const struct inspect_settings *settings, __s64 core)
{
	if (core < 0 || core >= XPT_INSPECT_CORES)
		return settings->other_cores;
	return settings->cores[core / 8] & 1u << core % 8;
}

bool inspect_settings_wants_type(const struct inspect_settings *settings, enum inspect_type type)
{
	return settings->types & 1u << type && settings->activities & 1u << inspect_activity_of_type(type);
}
