/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a Chrome trace that are not events: where it was made, and the exact totals at its end. */
#include <stdio.h>
#include <string.h>

#include "base/core/json.h"
#include "describe/runtime/description.h"
#include "report/chrome/events.h"

void chrome_metadata_origin(struct text *text, const struct recording_info *info)
{
	json_add_unsigned(text, "schema", CHROME_SCHEMA_VERSION);
	json_add_text(text, "version", info->version ?: "");
	json_add_text(text, "command", info->command ?: "");
	json_add_text(text, "host", info->host ?: "");
	json_add_text(text, "kernel", info->kernel ?: "");
	json_add_text(text, "machine", info->machine ?: "");
	json_add_text(text, "boot_id", info->boot_id ?: "");
	json_add_unsigned(text, "cpus", info->cpus);
	json_begin(text, "clock", '{');
	json_add_long(text, "monotonic_ns", info->monotonic_time);
	json_add_long(text, "realtime_ns", info->realtime);
	json_end(text, '}');
}

/* Figures that come as floating point: whole nanoseconds, so that no locale and no NaN gets into the file. */
static void add_rounded(struct text *text, const char *name, double value)
{
	json_add_unsigned(text, name, value > 0 && value < 1.8e19 ? (__u64)(value + 0.5) : 0);
}

void chrome_metadata_statistics(struct text *text, const char *name, const struct statistics *statistics, bool sum,
				const char *deviation)
{
	if (!statistics)
		return;
	json_begin(text, name, '{');
	json_add_unsigned(text, "count", statistics_count(statistics));
	if (sum)
		add_rounded(text, "sum", statistics_sum(statistics));
	json_add_unsigned(text, "min", statistics_min(statistics));
	add_rounded(text, "mean", statistics_mean(statistics));
	json_add_unsigned(text, "p50", statistics_quantile(statistics, 0.50));
	json_add_unsigned(text, "p95", statistics_quantile(statistics, 0.95));
	json_add_unsigned(text, "p99", statistics_quantile(statistics, 0.99));
	json_add_unsigned(text, "max", statistics_max(statistics));
	add_rounded(text, deviation, statistics_deviation(statistics));
	json_end(text, '}');
}

static void add_real(struct text *text, const char *name, double value)
{
	json_key(text, name);
	text_real(text, value);
}

static void add_statistics(struct text *text, const char *name, const struct statistics *statistics)
{
	chrome_metadata_statistics(text, name, statistics, true, "deviation");
}

/* Without exact totals (the recording was cut short) their members are left out: what is not known is not zero. */
static void add_counts(struct text *text, bool known, const struct xpt_program_count *count, __u64 recorded)
{
	if (known) {
		json_add_unsigned(text, "calls", count->calls);
		json_add_unsigned(text, "left_out", count->left_out);
		json_add_unsigned(text, "lost", count->lost);
		json_add_unsigned(text, "layers", count->layers);
	}
	json_add_unsigned(text, "recorded", recorded);
}

/* Jobs of unknown times have none: they are left out, not 0. */
static void add_device_work(struct text *text, const struct model_program *program)
{
	if (!program->jobs)
		return;
	json_add_unsigned(text, "jobs", program->jobs);
	json_add_unsigned(text, "failed_jobs", program->failed_jobs);
	json_add_nonzero(text, "device_ns", program->device_time);
	json_add_nonzero(text, "queue_ns", program->queue_time);
	json_add_nonzero(text, "busy_ns", program->busy_time);
}

/* How much of its inferences lies in operators. */
static void add_stepped(struct text *text, const struct model_program *program)
{
	if (!program->stepped)
		return;
	json_begin(text, "operators", '{');
	json_add_unsigned(text, "inferences", program->stepped);
	json_add_unsigned(text, "inference_ns", program->stepped_time);
	json_add_unsigned(text, "covered_ns", program->covered_time);
	if (program->stepped_tracing) {
		json_add_unsigned(text, "tracing_ns", program->stepped_tracing);
		json_add_unsigned(text, "covered_tracing_ns", program->covered_tracing);
	}
	json_end(text, '}');
}

void chrome_metadata_states(struct text *text, const struct model_states *states)
{
	__u64 known = 0;

	json_begin(text, "states", '{');
	json_add_unsigned(text, "calls", states->calls);
	json_add_unsigned(text, "cpu_ns", states->cpu);
	json_add_unsigned(text, "waited_ns", states->waited);
	json_add_unsigned(text, "blocked_ns", states->blocked);
	json_add_unsigned(text, "voluntary_switches", states->voluntary);
	json_add_unsigned(text, "involuntary_switches", states->involuntary);
	json_add_unsigned(text, "minor_faults", states->minor_faults);
	json_add_unsigned(text, "major_faults", states->major_faults);
	for (int reason = XPT_OFF_CPU_FUTEX; reason <= XPT_OFF_CPU_OTHER; reason++)
		known += states->blocked_by[reason];
	if (known)
		json_begin(text, "blocked_by_ns", '{');
	for (int reason = XPT_OFF_CPU_FUTEX; known && reason <= XPT_OFF_CPU_OTHER; reason++)
		json_add_unsigned(text, off_cpu_name(reason), states->blocked_by[reason]);
	if (known)
		json_end(text, '}');
	json_end(text, '}');
}

static void add_neighbours(struct text *text, const struct model_program *program)
{
	json_begin(text, "neighbours", '[');
	for (size_t i = 0; i < program->neighbour_count; i++) {
		const struct model_neighbour *neighbour = &program->neighbours[i];

		json_begin(text, NULL, '{');
		json_add_text(text, "name", neighbour->name);
		json_add_nonzero(text, "pid", neighbour->tgid);
		json_add_unsigned(text, "preempted", neighbour->preempted);
		json_add_unsigned(text, "preempted_ns", neighbour->preempted_time);
		json_add_unsigned(text, "woke", neighbour->woke);
		json_add_unsigned(text, "woke_ns", neighbour->woke_time);
		json_end(text, '}');
	}
	json_end(text, ']');
}

static void add_phase(struct text *text, const char *name, const struct model_phase_total *total)
{
	json_begin(text, name, '{');
	json_add_unsigned(text, "batches", total->batches);
	json_add_unsigned(text, "tokens", total->tokens);
	json_add_unsigned(text, "time_ns", total->time);
	json_end(text, '}');
}

static void add_tokens(struct text *text, const struct model_tokens *tokens)
{
	if (!tokens)
		return;
	json_begin(text, "tokens", '{');
	add_phase(text, "prefill", &tokens->phase[PHASE_PREFILL]);
	add_phase(text, "decode", &tokens->phase[PHASE_DECODE]);
	add_statistics(text, "first_token_ns", tokens->first_token);
	add_statistics(text, "output_token_ns", tokens->output_token);
	json_end(text, '}');
}

static void add_program(struct text *text, const struct model_program *program)
{
	char fingerprint[9];

	json_add_unsigned(text, "id", program->id);
	json_add_text(text, "name", program->name);
	json_add_bool(text, "named", program->named);
	json_add_text(text, "name_source", name_source_name(program->name_source));
	if (program->fingerprint) {
		snprintf(fingerprint, sizeof(fingerprint), "%08x", program->fingerprint);
		json_add_text(text, "fingerprint", fingerprint);
	}
	json_add_text(text, "runtime", program->runtime);
	json_add_unsigned(text, "pid", program->process->tgid);
	json_add_text(text, "process", program->process->name);
	json_add_text(text, "role", role_name(program->role));
	json_add_hexadecimal(text, "handle", program->handle);
	json_add_unsigned(text, "generation", program->generation);
	json_add_nonzero(text, "size", program->size);
	if (program->loaded)
		json_add_microseconds(text, "loaded_us", program->loaded);
	if (program->released)
		json_add_microseconds(text, "released_us", program->released);
	add_counts(text, program->total_known, &program->total, program->recorded);
	json_add_unsigned(text, "errors", program->errors);
	json_add_unsigned(text, "pending", program->pending);
	json_add_nonzero(text, "unended", program->unended);
	add_device_work(text, program);
	add_stepped(text, program);
	add_tokens(text, program->tokens);
	add_statistics(text, "latency_ns", program->latency);
	add_statistics(text, "call_ns", program->call);
	add_statistics(text, "tracing_ns", program->tracing);
	if (program->states.calls)
		chrome_metadata_states(text, &program->states);
	if (program->neighbour_count)
		add_neighbours(text, program);
}

static void add_call_total(struct text *text, const struct model_call_total *total)
{
	json_add_text(text, "function", total->function->name);
	json_add_text(text, "runtime", total->function->runtime);
	json_add_text(text, "role", role_name(total->function->role));
	json_add_unsigned(text, "pid", total->process->tgid);
	json_add_text(text, "process", total->process->name);
	add_counts(text, total->total_known, &total->total, total->recorded);
	json_add_unsigned(text, "errors", total->errors);
	json_add_unsigned(text, "bytes", total->bytes);
	add_statistics(text, "duration_ns", total->duration);
}

static void add_operator(struct text *text, const struct model_operator *op)
{
	json_add_text(text, "name", op->label);
	json_add_unsigned(text, "pid", op->process->tgid);
	if (op->program)
		json_add_unsigned(text, "program_id", op->program->id);
	json_add_text(text, "op_name", op->type);
	json_add_text(text, "class", op->class);
	json_add_text(text, "node", op->name);
	if (op->index >= 0)
		json_add_unsigned(text, "node_index", (__u64)op->index);
	json_add_text(text, "provider", op->provider);
	json_add_unsigned(text, "recorded", op->recorded);
	json_add_unsigned(text, "unassigned", op->unassigned);
	json_add_unsigned(text, "self_ns", op->self_time);
	json_add_nonzero(text, "tracing_ns", op->tracing);
	/* What it made on its thread; what was not seen is left out. */
	json_add_nonzero(text, "launches", op->launches);
	if (op->jobs) {
		json_add_unsigned(text, "jobs", op->jobs);
		json_add_unsigned(text, "failed_jobs", op->failed_jobs);
		json_add_nonzero(text, "device_ns", op->device_time);
	}
	add_statistics(text, "duration_ns", op->duration);
}

static void add_region(struct text *text, const struct model_region_total *region)
{
	json_add_text(text, "name", region->name);
	json_add_text(text, "runtime", region->runtime);
	json_add_unsigned(text, "pid", region->process->tgid);
	json_add_text(text, "process", region->process->name);
	add_statistics(text, "duration_ns", region->duration);
}

static void add_queue(struct text *text, const struct chrome_devices *devices, const struct model_queue *queue)
{
	unsigned int number = chrome_devices_find(devices, queue->driver, queue->device);

	json_add_unsigned(text, "id", queue->id);
	json_add_text(text, "driver", queue->driver);
	json_add_text(text, "device", queue->device);
	json_add_text(text, "engine", queue->engine);
	if (number) {
		json_add_unsigned(text, "pid", chrome_device_pid(number));
		json_add_unsigned(text, "tid", chrome_queue_tid(queue->id, 0));
	}
	json_add_unsigned(text, "jobs", queue->jobs);
	json_add_unsigned(text, "failed_jobs", queue->failed);
	json_add_unsigned(text, "target_jobs", queue->target_jobs);
	json_add_microseconds(text, "first_us", queue->first);
	json_add_microseconds(text, "last_us", queue->last);
	if (queue->busy_time) {
		json_add_microseconds(text, "busy_us", queue->busy_time);
		json_add_microseconds(text, "target_us", queue->target_time);
	}
}

static void add_counter(struct text *text, const struct model_counter *counter)
{
	json_add_text(text, "name", counter->name);
	json_add_text(text, "kind", model_counter_kind_name(counter->kind));
	json_add_text(text, "unit", counter->unit);
	json_add_text(text, "description", counter->description);
	json_add_text(text, "source", counter->source);
	if (counter->slots && *counter->of)
		json_add_text(text, "per_inference", counter->of);
	json_add_unsigned(text, "values", counter->emitted);
	if (counter->emitted) {
		add_real(text, "min", counter->least);
		add_real(text, "mean", counter->mean);
		add_real(text, "max", counter->most);
	}
	if (counter->emitted && counter->kind == MODEL_COUNTER_SUM)
		add_real(text, "total", counter->total);
}

static void add_code_object(struct text *text, const struct model_code_object *object)
{
	json_add_text(text, "kind", object->kind);
	json_add_text(text, "machine", object->machine);
	json_add_text(text, "name", object->name);
	json_add_text(text, "uri", object->uri);
	json_add_nonzero(text, "size", object->size);
	json_add_text(text, "sha256", object->sha256);
	json_add_unsigned(text, "kernels", object->kernels);
	json_add_unsigned(text, "functions", object->functions);
	json_add_unsigned(text, "loads", object->loads);
	json_add_unsigned(text, "unloads", object->unloads);
	json_add_unsigned(text, "incomplete", object->incomplete);
	json_add_text(text, "error", object->error);
}

/* An array with a line for each object that add() appends the members of. */
#define ADD_LINES(text, name, count, add, ...)       \
	do {                                         \
		json_begin(text, name, '[');         \
		for (size_t i = 0; i < count; i++) { \
			json_newline(text);          \
			json_begin(text, NULL, '{'); \
			add(text, __VA_ARGS__);      \
			json_end(text, '}');         \
		}                                    \
		json_end(text, ']');                 \
	} while (0)

static void add_totals(struct text *text, const struct model *model, const struct chrome_devices *devices)
{
	json_newline(text);
	ADD_LINES(text, "programs", model_program_count(model), add_program, model_program(model, i));
	json_newline(text);
	ADD_LINES(text, "operators", model_operator_count(model), add_operator, model_operator(model, i));
	json_newline(text);
	ADD_LINES(text, "functions", model_call_total_count(model), add_call_total, model_call_total(model, i));
	json_newline(text);
	ADD_LINES(text, "regions", model_region_total_count(model), add_region, model_region_total(model, i));
	json_newline(text);
	ADD_LINES(text, "queues", model_queue_count(model), add_queue, devices, model_queue(model, i));
	json_newline(text);
	ADD_LINES(text, "counters", model_counter_count(model), add_counter, model_counter(model, i));
}

static void add_code_totals(struct text *text, const struct model *model)
{
	const struct model_code_totals *totals = model_code_totals(model);

	json_newline(text);
	json_begin(text, "code_objects", '{');
	json_add_unsigned(text, "loads", totals->loads);
	json_add_unsigned(text, "unloads", totals->unloads);
	json_add_unsigned(text, "incomplete", totals->incomplete);
	json_add_unsigned(text, "waited", totals->waited);
	json_add_microseconds(text, "waited_us", totals->wait_time);
	json_begin(text, "kinds", '[');
	for (unsigned int i = 0; i < totals->kind_count; i++) {
		json_begin(text, NULL, '{');
		json_add_text(text, "kind", totals->kinds[i].name);
		json_add_unsigned(text, "loads", totals->kinds[i].loads);
		json_end(text, '}');
	}
	json_end(text, ']');
	ADD_LINES(text, "objects", model_code_object_count(model), add_code_object, model_code_object(model, i));
	json_end(text, '}');
}

/*
 * Every cause that has a name, also those of which nothing was lost: a reader need not know which there are. Causes
 * that a newer version has recorded are put together.
 */
static void add_losses(struct text *text, const struct model *model)
{
	__u64 unknown = 0;
	int cause;

	json_newline(text);
	json_begin(text, "lost", '{');
	for (cause = 0; cause <= XPT_LOSS_JOB_ENDS; cause++)
		json_add_unsigned(text, loss_name(cause), model_lost(model, cause));
	for (; cause < XPT_LOSS_MAX; cause++)
		unknown += model_lost(model, cause);
	json_add_unsigned(text, "unknown", unknown);
	json_end(text, '}');
}

/* A recording may come from anywhere, so its closing text is checked before it becomes a part of the document. */
static void add_tracing(struct text *text, const char *end)
{
	json_newline(text);
	json_key(text, "tracing");
	text_string(text, end && json_is_object(end, strlen(end)) ? end : "null");
}

void chrome_budget_change(struct text *text, const struct model_budget_change *change)
{
	bool sampling = change->action == BUDGET_SAMPLING;

	json_add_text(text, "action", budget_action_name(change->action));
	if (sampling) {
		json_add_unsigned(text, "every", change->every);
		json_add_unsigned(text, "programs", change->programs);
		json_add_text(text, "program", change->name);
	} else {
		json_add_bool(text, "on", change->on);
		json_add_text(text, "function", change->name);
	}
	json_add_nonzero(text, "pid", change->tgid);
	if (change->since)
		json_add_microseconds(text, "since_us", change->since);
	add_real(text, "cost", change->cost);
	add_real(text, "budget", change->budget);
}

/* Of checked text: lines end only between values. */
static void add_on_one_line(struct text *text, const char *name, struct json_part value)
{
	json_key(text, name);
	for (size_t i = 0; i < value.length; i++)
		text_bytes(text, value.text[i] == '\n' || value.text[i] == '\r' ? " " : &value.text[i], 1);
}

void chrome_metadata_budget(struct text *text, const struct model *model)
{
	const char *end = model_end_text(model);
	struct json_part budget = { end, end ? strlen(end) : 0 };

	if (end && json_is_object(end, budget.length))
		budget = json_member(budget, "budget");
	else
		budget.length = 0;
	if (budget.length && *budget.text == '{')
		add_on_one_line(text, "budget", budget);
	else if (!model_budget_change_count(model))
		return;
	json_begin(text, "budget_changes", '[');
	for (size_t i = 0; i < model_budget_change_count(model); i++) {
		const struct model_budget_change *change = model_budget_change(model, i);

		json_begin(text, NULL, '{');
		json_add_microseconds(text, "time_us", change->time);
		chrome_budget_change(text, change);
		json_end(text, '}');
	}
	json_end(text, ']');
	json_add_nonzero(text, "budget_changes_left_out", model_budget_changes_left_out(model));
}

/* Of everything, where nothing was chosen, there is no member. */
static void add_choices(struct text *text, const struct model *model)
{
	if (!model_choice_count(model))
		return;
	json_newline(text);
	json_begin(text, "chosen", '[');
	for (size_t i = 0; i < model_choice_count(model); i++) {
		const struct model_choice *choice = model_choice(model, i);

		json_begin(text, NULL, '{');
		json_key(text, choice->match ? "match" : "name");
		if (*choice->text || choice->match)
			text_json_string(text, choice->text);
		else
			text_literal(text, "null");
		if (choice->handle)
			json_add_hexadecimal(text, "handle", choice->handle);
		json_add_nonzero(text, "pid", choice->tgid);
		json_end(text, '}');
	}
	json_end(text, ']');
}

void chrome_metadata_totals(struct text *text, const struct recording_info *info, const struct model *model,
			    const struct chrome_devices *devices, int output_error)
{
	const char *end = model_end_text(model);

	json_begin(text, "metadata", '{');
	json_add_bool(text, "complete", end && !output_error);
	if (output_error)
		json_add_text(text, "output_error", strerror(-output_error));
	chrome_metadata_origin(text, info);
	json_add_microseconds(text, "first_us", model_first_time(model));
	json_add_microseconds(text, "last_us", model_last_time(model));
	add_choices(text, model);
	add_totals(text, model, devices);
	add_code_totals(text, model);
	add_losses(text, model);
	json_add_unsigned(text, "waited", model_wait_count(model));
	json_add_microseconds(text, "waited_us", model_wait_time(model));
	chrome_metadata_budget(text, model);
	add_tracing(text, end);
	json_end(text, '}');
}
