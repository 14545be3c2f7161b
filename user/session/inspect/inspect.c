/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_inspect_*(): continuous profiling that writes at the end, and whenever something fails. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/clock.h"
#include "session/continuous/options.h"
#include "session/inspect/environment.h"
#include "session/inspect/private.h"
#include "session/core/output.h"

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

static __u64 turn(void *context, __u64 now)
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

/* ---- begin ---- */

static int continuous_options(const struct xpt_inspect_options *options, struct xpt_continuous_options **result)
{
	static const struct xpt_session_options all = { .size = sizeof(all), .all_processes = 1 };
	const struct inspect_settings *settings = &options->settings;
	bool operators = settings->types >> INSPECT_OPERATOR & 1;
	struct xpt_continuous_options *made;
	int error = xpt_continuous_options_create(&made);

	if (error)
		return error;
	xpt_continuous_options_set_owner(made, options->user, options->group);
	error = xpt_continuous_options_set_targets(made, options->targets.size ? &options->targets : &all);
	if (!error)
		error = xpt_continuous_options_set_output_dir(made, options->output_dir);
	if (!error)
		error = xpt_continuous_options_set_window(made, window_size(settings, 0), 0);
	if (!error)
		error = xpt_continuous_options_set_level(made, operators ? XPT_LEVEL_DETAILED : XPT_LEVEL_STANDARD);
	if (error)
		xpt_continuous_options_free(made);
	else
		*result = made;
	return error;
}

static int begin(struct xpt_inspect *inspect, const struct xpt_inspect_options *options)
{
	const struct continuous_hooks hooks = { keeps, on_event, turn, saved, inspect };
	struct xpt_continuous_options *made;
	struct recording_info info;
	int error;

	inspect->settings = options->settings;
	if (options->settings.activities >> INSPECT_CPU_UTIL & 1)
		inspect->usage |= USAGE_CPU;
	if (options->settings.activities >> INSPECT_HOST_MEMORY & 1)
		inspect->usage |= USAGE_MEMORY;
	output_info(&info);
	inspect->host = strdup(info.host);
	if (!inspect->host)
		return -ENOMEM;
	error = continuous_options(options, &made);
	if (error)
		return error;
	error = continuous_start(made, &hooks, &inspect->continuous);
	xpt_continuous_options_free(made);
	return error;
}

static void inspect_free(struct xpt_inspect *inspect)
{
	struct inspect_process *process;

	if (inspect->continuous)
		continuous_free(inspect->continuous);
	while ((process = inspect->processes)) {
		inspect->processes = process->next;
		inspect_process_free(process);
	}
	free(inspect->host);
	free(inspect);
}

static int start(const struct xpt_inspect_options *options, struct xpt_inspect **result)
{
	const struct inspect_settings *settings = &options->settings;
	bool any = settings->inspect || settings->on_fail;
	struct xpt_inspect *inspect = calloc(1, sizeof(*inspect));
	int error;

	if (!inspect)
		return -ENOMEM;
	error = any ? begin(inspect, options) : 0;
	if (error) {
		inspect_free(inspect);
		return error;
	}
	*result = inspect;
	return 0;
}

int xpt_inspect_begin_with_options(const struct xpt_inspect_options *options, struct xpt_inspect **result)
{
	struct xpt_inspect_options *defaults = NULL;
	int error;

	if (options)
		return start(options, result);
	error = xpt_inspect_options_create(&defaults);
	if (!error)
		error = start(defaults, result);
	xpt_inspect_options_free(defaults);
	return error;
}

int xpt_inspect_begin(const struct xpt_session_options *targets, struct xpt_inspect **result)
{
	struct xpt_inspect_options *options;
	int error = xpt_inspect_options_create(&options);

	if (error)
		return error;
	if (targets)
		error = xpt_inspect_options_set_targets(options, targets);
	if (!error)
		error = xpt_inspect_options_from_environment(options);
	if (!error)
		error = start(options, result);
	xpt_inspect_options_free(options);
	return error;
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

	continuous_end(inspect->continuous);
	model_flush(inspect->continuous->model);
	window_figures(inspect->continuous->window, &window);
	inference_index_begin(inspect->continuous->recent, window.begin);
	turn(inspect, ~0ull >> 1); /* a last reading */
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

void xpt_inspect_on_written(struct xpt_inspect *inspect,
			    void (*written)(void *context, const char *directory, const char *index), void *context)
{
	inspect->written = written;
	inspect->written_context = context;
}

int xpt_inspect_stop(struct xpt_inspect *inspect)
{
	int error = 0, failed;

	if (!inspect)
		return 0;
	if (inspect->continuous) {
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
	}
	inspect_free(inspect);
	return error;
}
