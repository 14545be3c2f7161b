/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_inspect_*(): continuous profiling that writes at the end, and after each failure. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/options.h"
#include "base/core/vec.h"
#include "session/core/output.h"
#include "session/inspect/inspect.h"
#include "target/process/process.h"

#define EVENT_BYTES 128 /* of memory for one, about */
#define WINDOW_MOST (1ull << 30)
#define TARGETS_EVERY 200000000ull /* ns between two checks of them */

/* ---- what is captured ---- */

static bool wants(const struct xpt_inspect *inspect, enum inspect_type type)
{
	return inspect_settings_wants_type(&inspect->settings, type);
}

/* Names hang on what loads, names and releases programs: that is kept in any case. */
static bool wants_call(const struct xpt_inspect *inspect, __u16 spec)
{
	enum xpt_role role = spec < XPT_SPEC_MAX ? inspect->continuous->roles[spec] : 0;
	enum inspect_type type = inspect_type_of_role(role);

	return type == INSPECT_TYPES || type == INSPECT_PROGRAM_LOAD || type == INSPECT_PROGRAM_NAME ||
	       type == INSPECT_PROGRAM_UNLOAD || wants(inspect, type);
}

/* An index may mean something else when drivers come later. */
static void note_event(struct xpt_inspect *inspect, const struct xpt_record_text *record)
{
	cJSON *object = cJSON_ParseWithLength(record->text, record->length);
	const cJSON *role = cJSON_GetObjectItemCaseSensitive(object, "role");

	if (record->id < XPT_EVENT_MAX)
		inspect->event_types[record->id] = cJSON_IsNumber(role) ?
							   inspect_type_of_event((enum xpt_event_role)role->valueint) :
							   INSPECT_TYPES;
	cJSON_Delete(object);
}

static bool wants_event(const struct xpt_inspect *inspect, __u16 event)
{
	enum inspect_type type = event < XPT_EVENT_MAX ? inspect->event_types[event] : INSPECT_TYPES;

	return type != INSPECT_TYPES && wants(inspect, type);
}

static bool keeps(void *context, const struct xpt_record_header *record)
{
	struct xpt_inspect *inspect = context;

	switch (record->kind) {
	case XPT_RECORD_DRIVER_EVENT:
		note_event(inspect, (const struct xpt_record_text *)record);
		return true;
	case XPT_RECORD_CALL:
		return wants_call(inspect, ((const struct xpt_record_call *)record)->spec);
	case XPT_RECORD_STRING:
		return wants_call(inspect, ((const struct xpt_record_string *)record)->spec);
	case XPT_RECORD_EVENT:
		return wants_event(inspect, ((const struct xpt_record_event *)record)->event);
	case XPT_RECORD_IOCTL:
		return wants(inspect, INSPECT_IOCTL);
	case XPT_RECORD_REGION:
		return wants(inspect, INSPECT_REGION);
	case XPT_RECORD_READING:
		return wants(inspect, INSPECT_COUNTER);
	default:
		return true;
	}
}

/* ---- processes ---- */

static void set_string(char **string, const char *value)
{
	char *copy;

	if (*string && !strcmp(*string, value))
		return;
	copy = strdup(value);
	if (!copy)
		return;
	free(*string);
	*string = copy;
}

void inspect_process_rename(struct inspect_process *process, const struct model_process *view)
{
	set_string(&process->name, view->name);
	set_string(&process->command, view->command);
}

struct inspect_process *inspect_process_create(const struct model_process *view, unsigned int wanted, __u64 now)
{
	struct inspect_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->tgid = view->tgid;
	process->start_time = view->start_time;
	process->due = now;
	process->every = INSPECT_READ_EVERY;
	inspect_process_rename(process, view);
	process->open = wanted && !usage_open(&process->source, view->tgid, view->start_time);
	if (!process->name || !process->command) {
		inspect_process_free(process);
		return NULL;
	}
	return process;
}

void inspect_process_free(struct inspect_process *process)
{
	if (!process)
		return;
	if (process->open)
		usage_close(&process->source);
	for (unsigned int i = 0; i < process->failed_count; i++)
		free(process->failed_files[i]);
	folder_close(process->folder);
	free(process->rows);
	free(process->name);
	free(process->command);
	free(process);
}

void inspect_process_failed(struct inspect_process *process, const char *path)
{
	const char *name = strrchr(path, '/');
	char *copy = strdup(name ? name + 1 : path);

	if (copy && process->failed_count < INSPECT_FAILED_MAX)
		process->failed_files[process->failed_count++] = copy;
	else
		free(copy);
}

/* Bounds the number of rows, however long it takes. */
static void thin(struct inspect_process *process)
{
	for (size_t i = 0; i < process->count / 2; i++)
		process->rows[i] = process->rows[2 * i];
	process->count /= 2;
	process->every *= 2;
}

void inspect_process_read(struct inspect_process *process, unsigned int wanted, __u64 now)
{
	if (!process->open || now < process->due)
		return;
	if (process->count == INSPECT_ROWS_MAX)
		thin(process);
	if (vec_reserve(process->rows, process->count))
		return;
	if (usage_read(&process->source, wanted, &process->rows[process->count])) {
		usage_close(&process->source);
		process->open = false;
		return;
	}
	process->count++;
	process->due += process->every;
	if (process->due <= now)
		process->due = now + process->every;
}

static struct inspect_process *process_find(const struct xpt_inspect *inspect, __u32 tgid)
{
	struct inspect_process *process = inspect->processes;

	while (process && process->tgid != tgid)
		process = process->next;
	return process;
}

/* NULL: too many, or no memory. */
static struct inspect_process *process_get(struct xpt_inspect *inspect, const struct model_process *view)
{
	struct inspect_process *process = process_find(inspect, view->tgid);

	if (process)
		return process;
	if (inspect->process_count == INSPECT_PROCESSES_MAX) {
		inspect->left_out++;
		return NULL;
	}
	process = inspect_process_create(view, inspect->usage, clock_monotonic());
	if (!process)
		return NULL;
	process->next = inspect->processes;
	inspect->processes = process;
	inspect->process_count++;
	inspect->continuous->hooks_due = 0;
	return process;
}

/* ---- what fails ---- */

/* NULL: there are enough, or it cannot be made. */
static struct save *failed_save(struct xpt_inspect *inspect, struct inspect_process *process)
{
	const struct xpt_save_options options = { .size = sizeof(options), .pid = (pid_t)process->tgid };
	char reason[REASON_MAX];
	struct save *save;

	if (process->failed_count >= INSPECT_FAILED_MAX || inspect_folder_open(inspect, process) ||
	    save_create(&options, &save, reason))
		return NULL;
	snprintf(save->reason, sizeof(save->reason), "%s", process->failure);
	save->folder = process->folder;
	save->name = "failed";
	save->owner = process;
	return save;
}

static void ask_failed(struct xpt_inspect *inspect, struct inspect_process *process)
{
	struct xpt_continuous *continuous = inspect->continuous;
	struct save *save = failed_save(inspect, process);

	process->missed = false;
	if (!save)
		return;
	process->saving = true;
	if (saves_ask(continuous, save)) {
		save_free(save);
		process->saving = false;
		process->missed = true;
	}
}

/* What fails while one is being saved is in the next file. */
static void note_failed(struct xpt_inspect *inspect, struct inspect_process *process,
			const struct model_program *program, const char *status)
{
	snprintf(process->failure, sizeof(process->failure), "%.100s has failed: %.60s", program->name,
		 status ?: "error");
	process->missed = true;
	if (!process->saving)
		ask_failed(inspect, process);
}

static void saved(void *context, const struct save *save)
{
	struct inspect_process *process = save->owner;

	(void)context;
	process->saving = false;
	if (!save->error)
		inspect_process_failed(process, save->saved.path);
	process->missed |= save->error == -ECANCELED;
}

static __u64 window_size(const struct inspect_settings *settings, unsigned int cores)
{
	__u64 bytes = settings->max_events_per_core * EVENT_BYTES * (cores ?: 1);

	return bytes < XPT_WINDOW_BYTES_MIN ? XPT_WINDOW_BYTES_MIN : bytes > WINDOW_MOST ? WINDOW_MOST : bytes;
}

static bool wants_core(const struct xpt_inspect *inspect, const struct model_program *program)
{
	return !program->has_core || inspect_settings_wants_core(&inspect->settings, program->core);
}

/* Each core that is seen has its share of memory. */
static void note_core(struct xpt_inspect *inspect, const struct model_program *program)
{
	__s64 core = program->has_core ? program->core : 0;

	if (core < 0 || core >= XPT_INSPECT_CORES || inspect->cores[core / 8] >> core % 8 & 1)
		return;
	inspect->cores[core / 8] |= 1u << core % 8;
	window_grow(inspect->continuous->window, window_size(&inspect->settings, ++inspect->core_count));
}

static void on_run(struct xpt_inspect *inspect, const struct model_program *program, enum call_outcome outcome,
		   const char *status)
{
	struct inspect_process *process = process_get(inspect, program->process);

	note_core(inspect, program);
	if (!process)
		return;
	process->inferences++;
	if (outcome != OUTCOME_FAILED)
		return;
	process->failed++;
	if (inspect->settings.on_fail && wants_core(inspect, program))
		note_failed(inspect, process, program, status);
}

static __u64 on_work(void *context, __u64 now)
{
	struct xpt_inspect *inspect = context;
	__u64 due = now + TARGETS_EVERY;

	if (!inspect->continuous->stopped && targets_ended(inspect->continuous->collector))
		inspect->continuous->stopped = true; /* nothing is left to inspect */
	for (struct inspect_process *process = inspect->processes; process; process = process->next) {
		inspect_process_read(process, inspect->usage, now);
		if (process->missed && !process->saving && inspect->continuous->has_saving)
			ask_failed(inspect, process);
		if (process->open && process->due < due)
			due = process->due;
	}
	return due;
}

static int on_event(void *context, const struct event *event)
{
	const struct event_inference *inference = &event->inference;
	const struct event_call *call = &event->call;
	struct xpt_inspect *inspect = context;
	struct inspect_process *process;

	switch (event->kind) {
	case EVENT_PROCESS:
		process = process_get(inspect, event->process);
		if (process)
			inspect_process_rename(process, event->process);
		break;
	case EVENT_CALL:
		if (continuous_is_run(call))
			on_run(inspect, call->program, call->outcome, call->status_name);
		break;
	case EVENT_INFERENCE:
		if (inference->program && inference->function->role == XPT_ROLE_ENQUEUE)
			on_run(inspect, inference->program, inference->outcome, inference->status_name);
		break;
	default:
		break;
	}
	return 0;
}

/* ---- creation ---- */

/* What one process was given does not matter to the others. */
static int apply_target_environments(const struct log *log, const struct xpt_session_options *targets,
				     struct inspect_settings *settings)
{
	struct process_environment environment;
	int error = 0;

	for (size_t i = 0; i < targets->pid_count && !error; i++) {
		error = process_environment_read(targets->pids[i], &environment);
		if (error)
			return error;
		error = inspect_settings_apply(log,
					       &(struct inspect_environment){ INSPECT_NEURON, environment.variables,
									      targets->pids[i] },
					       settings);
		process_environment_free(&environment);
		if (error == -EINVAL && targets->pid_count > 1) {
			log_warn(log, "the environment of that process is not honoured");
			error = 0;
		}
	}
	return error;
}

static int read_settings(const struct log *log, const struct xpt_inspect_options *options,
			 const struct xpt_session_options *targets, struct inspect_settings *settings)
{
	struct inspect_environment environment = { INSPECT_XPUTRACE, (const char *const *)environ, 0 };
	int error = 0;

	inspect_settings_init(settings);
	if (options->use_environment)
		error = inspect_settings_apply(log, &environment, settings);
	if (!error && options->use_target_environment)
		error = apply_target_environments(log, targets, settings);
	environment.source = INSPECT_OPTIONS;
	for (size_t i = 0; i < options->setting_count && !error; i++) {
		const char *const setting[] = { options->settings ? options->settings[i] : NULL, NULL };

		environment.variables = setting;
		error = setting[0] ? inspect_settings_apply(log, &environment, settings) : -EINVAL;
	}
	return error;
}

static int create_continuous(struct xpt_inspect *inspect, const struct xpt_inspect_options *options,
			     const struct xpt_session_options *targets)
{
	const struct continuous_hooks hooks = { keeps, on_event, on_work, saved, inspect };
	const struct inspect_settings *settings = &inspect->settings;
	bool operators = settings->types >> INSPECT_OPERATOR & 1;
	XPT_OPTS(xpt_continuous_options, continuous, .targets = targets, .output_dir = settings->output_dir,
		 .has_owner = options->has_owner, .user = options->user, .group = options->group,
		 .window_bytes = window_size(settings, 0), .window_time = XPT_NONE,
		 .level = operators ? XPT_LEVEL_DETAILED : XPT_LEVEL_STANDARD);
	struct recording_info info;

	if (settings->activities >> INSPECT_CPU_UTIL & 1)
		inspect->usage |= USAGE_CPU;
	if (settings->activities >> INSPECT_HOST_MEMORY & 1)
		inspect->usage |= USAGE_MEMORY;
	output_info(&info);
	inspect->host = strdup(info.host);
	return inspect->host ? continuous_create(&continuous, &hooks, &inspect->continuous) : -ENOMEM;
}

int xpt_inspect_create(const struct xpt_inspect_options *given, struct xpt_inspect **result)
{
	struct xpt_session_options targets = { .size = sizeof(targets), .all_processes = 1 };
	struct xpt_inspect_options options = {};
	struct xpt_inspect *inspect;
	struct log log;
	int error = result ? options_copy(&options, sizeof(options), given) : -EINVAL;

	if (!error && options.targets) {
		targets = (struct xpt_session_options){};
		error = options_copy(&targets, sizeof(targets), options.targets);
	}
	if (!error)
		error = collector_check_options(&(struct collector_options){ COLLECTOR_OPTIONS(&targets),
									     .counters = targets.counters,
									     .counter_count = targets.counter_count });
	if (error)
		return error;
	inspect = calloc(1, sizeof(*inspect));
	if (!inspect)
		return -ENOMEM;
	inspect->written = options.written;
	inspect->written_context = options.written_context;
	targets.size = sizeof(targets);
	if (!targets.budget) /* continuous profiling has a default */
		targets.budget = XPT_BUDGET_NONE;
	log = (struct log){ targets.log, targets.log_context, targets.log_level };
	error = read_settings(&log, &options, &targets, &inspect->settings);
	if (!error && (inspect->settings.inspect || inspect->settings.on_fail))
		error = create_continuous(inspect, &options, &targets);
	if (error) {
		xpt_inspect_destroy(inspect);
		return error;
	}
	*result = inspect;
	return 0;
}

int xpt_inspect_start(struct xpt_inspect *inspect)
{
	return inspect->continuous ? xpt_continuous_start(inspect->continuous) : 0;
}

/* ---- while it runs ---- */

int xpt_inspect_wait(struct xpt_inspect *inspect, uint64_t timeout)
{
	return inspect->continuous ? xpt_continuous_wait(inspect->continuous, timeout) : 1;
}

void xpt_inspect_interrupt(struct xpt_inspect *inspect)
{
	if (inspect->continuous)
		xpt_continuous_interrupt(inspect->continuous);
}

/* ---- the end ---- */

static void end(struct xpt_inspect *inspect)
{
	struct window_figures window;

	xpt_continuous_stop(inspect->continuous);
	model_flush(inspect->continuous->model);
	window_figures(inspect->continuous->window, &window);
	inference_index_begin(inspect->continuous->recent, window.begin);
	on_work(inspect, ~0ull >> 1); /* a last reading */
}

/* What has failed last, when there was no time for it any more. */
static int write_missed(struct xpt_inspect *inspect, struct inspect_process *process)
{
	struct save *save = process->missed ? failed_save(inspect, process) : NULL;
	int error = save ? saves_write(inspect->continuous, save) : 0;

	if (save && !error)
		inspect_process_failed(process, save->saved.path);
	save_free(save);
	return error;
}

int xpt_inspect_stop(struct xpt_inspect *inspect)
{
	int error = 0, failed;

	if (!inspect->continuous || inspect->stopped)
		return 0;
	inspect->stopped = true;
	end(inspect);
	for (struct inspect_process *process = inspect->processes; process; process = process->next) {
		failed = write_missed(inspect, process);
		error = error ?: failed;
		failed = inspect_folder_write(inspect, process);
		error = error ?: failed;
	}
	if (inspect->left_out)
		log_warn(&inspect->continuous->collector->log, "more than %u processes: others have no folder",
			 INSPECT_PROCESSES_MAX);
	return error;
}

void xpt_inspect_destroy(struct xpt_inspect *inspect)
{
	struct inspect_process *process;

	if (!inspect)
		return;
	xpt_continuous_destroy(inspect->continuous);
	while ((process = inspect->processes)) {
		inspect->processes = process->next;
		inspect_process_free(process);
	}
	free(inspect->host);
	free(inspect);
}
