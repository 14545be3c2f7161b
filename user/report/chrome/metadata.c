/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/chrome/metadata.h"

#include <stdio.h>
#include <string.h>

#include "base/core/json.h"
#include "describe/runtime/description.h"
#include "model/stats/statistics.h"
#include "report/chrome/code.h"

void chrome_member_string(struct text *text, const char *name, const char *value)
{
	text_literal(text, ",\"");
	text_string(text, name);
	text_literal(text, "\":");
	text_json_string(text, value);
}

void chrome_member_unsigned(struct text *text, const char *name, __u64 value)
{
	text_literal(text, ",\"");
	text_string(text, name);
	text_literal(text, "\":");
	text_unsigned(text, value);
}

/*
 * Figures that come as floating point: rounded to whole nanoseconds, so that no locale and no NaN gets into the file.
 */
static void member_rounded(struct text *text, const char *name, double value)
{
	chrome_member_unsigned(text, name, value > 0 && value < 1.8e19 ? (__u64)(value + 0.5) : 0);
}

void chrome_member_microseconds(struct text *text, const char *name, __u64 nanoseconds)
{
	text_literal(text, ",\"");
	text_string(text, name);
	text_literal(text, "\":");
	text_microseconds(text, nanoseconds);
}

void chrome_member_hexadecimal(struct text *text, const char *name, __u64 value)
{
	text_literal(text, ",\"");
	text_string(text, name);
	text_literal(text, "\":\"");
	text_hexadecimal(text, value);
	text_literal(text, "\"");
}

void chrome_metadata_origin(struct text *text, const struct recording_info *info)
{
	text_literal(text, "\"schema\":");
	text_unsigned(text, CHROME_SCHEMA_VERSION);
	chrome_member_string(text, "version", info->version);
	chrome_member_string(text, "command", info->command);
	chrome_member_string(text, "host", info->host);
	chrome_member_string(text, "kernel", info->kernel);
	chrome_member_string(text, "machine", info->machine);
	chrome_member_string(text, "boot_id", info->boot_id);
	chrome_member_unsigned(text, "cpus", info->cpus);
	/* As strings: a JSON reader with 53-bit numbers would round them. */
	text_literal(text, ",\"clock\":{\"monotonic_ns\":\"");
	text_unsigned(text, info->monotonic_time);
	text_literal(text, "\",\"realtime_ns\":\"");
	text_unsigned(text, info->realtime);
	text_literal(text, "\"}");
}

static void add_statistics(struct text *text, const char *name, const struct statistics *statistics)
{
	if (!statistics)
		return;
	text_literal(text, ",\"");
	text_string(text, name);
	text_literal(text, "\":{\"count\":");
	text_unsigned(text, statistics_count(statistics));
	member_rounded(text, "sum", statistics_sum(statistics));
	chrome_member_unsigned(text, "min", statistics_min(statistics));
	member_rounded(text, "mean", statistics_mean(statistics));
	chrome_member_unsigned(text, "p50", statistics_quantile(statistics, 0.50));
	chrome_member_unsigned(text, "p95", statistics_quantile(statistics, 0.95));
	chrome_member_unsigned(text, "p99", statistics_quantile(statistics, 0.99));
	chrome_member_unsigned(text, "max", statistics_max(statistics));
	member_rounded(text, "deviation", statistics_deviation(statistics));
	text_literal(text, "}");
}

/* Without exact totals (the recording was cut short) their members are left out: what is not known is not zero. */
static void add_counts(struct text *text, bool known, const struct xpt_program_count *count, __u64 recorded)
{
	if (known) {
		chrome_member_unsigned(text, "calls", count->calls);
		chrome_member_unsigned(text, "left_out", count->left_out);
		chrome_member_unsigned(text, "lost", count->lost);
		chrome_member_unsigned(text, "layers", count->layers);
	}
	chrome_member_unsigned(text, "recorded", recorded);
}

/* Jobs of unknown times have none: they are left out, not 0. */
static void add_device_work(struct text *text, const struct model_program *program)
{
	if (!program->jobs)
		return;
	chrome_member_unsigned(text, "jobs", program->jobs);
	chrome_member_unsigned(text, "failed_jobs", program->failed_jobs);
	if (program->device_time)
		chrome_member_unsigned(text, "device_ns", program->device_time);
	if (program->queue_time)
		chrome_member_unsigned(text, "queue_ns", program->queue_time);
	if (program->busy_time)
		chrome_member_unsigned(text, "busy_ns", program->busy_time);
}

/* How much of its inferences lies in operators. */
static void add_stepped(struct text *text, const struct model_program *program)
{
	if (!program->stepped)
		return;
	text_literal(text, ",\"operators\":{\"inferences\":");
	text_unsigned(text, program->stepped);
	chrome_member_unsigned(text, "inference_ns", program->stepped_time);
	chrome_member_unsigned(text, "covered_ns", program->covered_time);
	if (program->stepped_tracing) {
		chrome_member_unsigned(text, "tracing_ns", program->stepped_tracing);
		chrome_member_unsigned(text, "covered_tracing_ns", program->covered_tracing);
	}
	text_literal(text, "}");
}

static void add_phase(struct text *text, const char *name, const struct model_phase_total *total)
{
	text_literal(text, "\"");
	text_string(text, name);
	text_literal(text, "\":{\"batches\":");
	text_unsigned(text, total->batches);
	chrome_member_unsigned(text, "tokens", total->tokens);
	chrome_member_unsigned(text, "time_ns", total->time);
	text_literal(text, "}");
}

static void add_tokens(struct text *text, const struct model_tokens *tokens)
{
	if (!tokens)
		return;
	text_literal(text, ",\"tokens\":{");
	add_phase(text, "prefill", &tokens->phase[PHASE_PREFILL]);
	text_literal(text, ",");
	add_phase(text, "decode", &tokens->phase[PHASE_DECODE]);
	add_statistics(text, "first_token_ns", tokens->first_token);
	add_statistics(text, "output_token_ns", tokens->output_token);
	text_literal(text, "}");
}

static void add_program(struct text *text, const struct model_program *program)
{
	char fingerprint[9];

	text_literal(text, "{\"id\":");
	text_unsigned(text, program->id);
	chrome_member_string(text, "name", program->name);
	text_literal(text, ",\"named\":");
	text_string(text, program->named ? "true" : "false");
	chrome_member_string(text, "name_source", name_source_name(program->name_source));
	if (program->fingerprint) {
		snprintf(fingerprint, sizeof(fingerprint), "%08x", program->fingerprint);
		chrome_member_string(text, "fingerprint", fingerprint);
	}
	chrome_member_string(text, "runtime", program->runtime);
	chrome_member_unsigned(text, "pid", program->process->tgid);
	chrome_member_string(text, "process", program->process->name);
	chrome_member_string(text, "role", role_name(program->role));
	chrome_member_hexadecimal(text, "handle", program->handle);
	chrome_member_unsigned(text, "generation", program->generation);
	if (program->size)
		chrome_member_unsigned(text, "size", program->size);
	if (program->loaded)
		chrome_member_microseconds(text, "loaded_us", program->loaded);
	if (program->released)
		chrome_member_microseconds(text, "released_us", program->released);
	add_counts(text, program->total_known, &program->total, program->recorded);
	chrome_member_unsigned(text, "errors", program->errors);
	chrome_member_unsigned(text, "pending", program->pending);
	if (program->unended)
		chrome_member_unsigned(text, "unended", program->unended);
	add_device_work(text, program);
	add_stepped(text, program);
	add_tokens(text, program->tokens);
	add_statistics(text, "latency_ns", program->latency);
	add_statistics(text, "call_ns", program->call);
	add_statistics(text, "tracing_ns", program->tracing);
	text_literal(text, "}");
}

static void add_call_total(struct text *text, const struct model_call_total *total)
{
	text_literal(text, "{\"function\":");
	text_json_string(text, total->function->name);
	chrome_member_string(text, "runtime", total->function->runtime);
	chrome_member_string(text, "role", role_name(total->function->role));
	chrome_member_unsigned(text, "pid", total->process->tgid);
	chrome_member_string(text, "process", total->process->name);
	add_counts(text, total->total_known, &total->total, total->recorded);
	chrome_member_unsigned(text, "errors", total->errors);
	chrome_member_unsigned(text, "bytes", total->bytes);
	add_statistics(text, "duration_ns", total->duration);
	text_literal(text, "}");
}

/* What it made on its thread; what was not seen is left out. */
static void add_operator_work(struct text *text, const struct model_operator *op)
{
	if (op->launches)
		chrome_member_unsigned(text, "launches", op->launches);
	if (!op->jobs)
		return;
	chrome_member_unsigned(text, "jobs", op->jobs);
	chrome_member_unsigned(text, "failed_jobs", op->failed_jobs);
	if (op->device_time)
		chrome_member_unsigned(text, "device_ns", op->device_time);
}

static void add_operator(struct text *text, const struct model_operator *op)
{
	text_literal(text, "{\"name\":");
	text_json_string(text, op->label);
	chrome_member_unsigned(text, "pid", op->process->tgid);
	if (op->program)
		chrome_member_unsigned(text, "program_id", op->program->id);
	chrome_member_string(text, "op_name", op->type);
	chrome_member_string(text, "class", op->class);
	if (op->name)
		chrome_member_string(text, "node", op->name);
	if (op->index >= 0)
		chrome_member_unsigned(text, "node_index", (__u64)op->index);
	if (op->provider)
		chrome_member_string(text, "provider", op->provider);
	chrome_member_unsigned(text, "recorded", op->recorded);
	chrome_member_unsigned(text, "unassigned", op->unassigned);
	chrome_member_unsigned(text, "self_ns", op->self_time);
	if (op->tracing)
		chrome_member_unsigned(text, "tracing_ns", op->tracing);
	add_operator_work(text, op);
	add_statistics(text, "duration_ns", op->duration);
	text_literal(text, "}");
}

static void add_region(struct text *text, const struct model_region_total *region)
{
	text_literal(text, "{\"name\":");
	text_json_string(text, region->name);
	chrome_member_string(text, "runtime", region->runtime);
	chrome_member_unsigned(text, "pid", region->process->tgid);
	chrome_member_string(text, "process", region->process->name);
	add_statistics(text, "duration_ns", region->duration);
	text_literal(text, "}");
}

static void add_queue(struct text *text, const struct chrome_devices *devices, const struct model_queue *queue)
{
	unsigned int number = chrome_devices_find(devices, queue->driver, queue->device);

	text_literal(text, "{\"id\":");
	text_unsigned(text, queue->id);
	chrome_member_string(text, "driver", queue->driver);
	chrome_member_string(text, "device", queue->device);
	chrome_member_string(text, "engine", queue->engine);
	if (number) {
		chrome_member_unsigned(text, "pid", chrome_device_pid(number));
		chrome_member_unsigned(text, "tid", chrome_queue_tid(queue->id, 0));
	}
	chrome_member_unsigned(text, "jobs", queue->jobs);
	chrome_member_unsigned(text, "failed_jobs", queue->failed);
	chrome_member_unsigned(text, "target_jobs", queue->target_jobs);
	chrome_member_microseconds(text, "first_us", queue->first);
	chrome_member_microseconds(text, "last_us", queue->last);
	if (queue->busy_time) {
		chrome_member_microseconds(text, "busy_us", queue->busy_time);
		chrome_member_microseconds(text, "target_us", queue->target_time);
	}
	text_literal(text, "}");
}

static void member_real(struct text *text, const char *name, double value)
{
	text_literal(text, ",\"");
	text_string(text, name);
	text_literal(text, "\":");
	text_real(text, value);
}

static void add_counter(struct text *text, const struct model_counter *counter)
{
	text_literal(text, "{\"name\":");
	text_json_string(text, counter->name);
	chrome_member_string(text, "kind", model_counter_kind_name(counter->kind));
	chrome_member_string(text, "unit", counter->unit);
	chrome_member_string(text, "description", counter->description);
	chrome_member_string(text, "source", counter->source);
	if (counter->slots && *counter->of)
		chrome_member_string(text, "per_inference", counter->of);
	chrome_member_unsigned(text, "values", counter->emitted);
	if (counter->emitted) {
		member_real(text, "min", counter->least);
		member_real(text, "mean", counter->mean);
		member_real(text, "max", counter->most);
	}
	if (counter->emitted && counter->kind == MODEL_COUNTER_SUM)
		member_real(text, "total", counter->total);
	text_literal(text, "}");
}

static void add_separator(struct text *text, size_t index)
{
	if (index)
		text_literal(text, ",\n");
	else
		text_literal(text, "\n");
}

static void add_totals(struct text *text, const struct model *model, const struct chrome_devices *devices)
{
	size_t i;

	text_literal(text, ",\n\"programs\":[");
	for (i = 0; i < model_program_count(model); i++) {
		add_separator(text, i);
		add_program(text, model_program(model, i));
	}
	text_literal(text, "],\n\"operators\":[");
	for (i = 0; i < model_operator_count(model); i++) {
		add_separator(text, i);
		add_operator(text, model_operator(model, i));
	}
	text_literal(text, "],\n\"functions\":[");
	for (i = 0; i < model_call_total_count(model); i++) {
		add_separator(text, i);
		add_call_total(text, model_call_total(model, i));
	}
	text_literal(text, "],\n\"regions\":[");
	for (i = 0; i < model_region_total_count(model); i++) {
		add_separator(text, i);
		add_region(text, model_region_total(model, i));
	}
	text_literal(text, "],\n\"queues\":[");
	for (i = 0; i < model_queue_count(model); i++) {
		add_separator(text, i);
		add_queue(text, devices, model_queue(model, i));
	}
	text_literal(text, "],\n\"counters\":[");
	for (i = 0; i < model_counter_count(model); i++) {
		add_separator(text, i);
		add_counter(text, model_counter(model, i));
	}
	text_literal(text, "]");
}

/*
 * Every cause that has a name, also those of which nothing was lost: a reader need not know which there are. Causes
 * that a newer version has recorded are put together.
 */
static void add_losses(struct text *text, const struct model *model)
{
	__u64 unknown = 0;
	int cause;

	text_literal(text, ",\n\"lost\":{");
	for (cause = 0; cause <= XPT_LOSS_CALLBACKS; cause++) {
		if (cause)
			text_literal(text, ",");
		text_json_string(text, loss_name(cause));
		text_literal(text, ":");
		text_unsigned(text, model_lost(model, cause));
	}
	for (; cause < XPT_LOSS_MAX; cause++)
		unknown += model_lost(model, cause);
	chrome_member_unsigned(text, "unknown", unknown);
	text_literal(text, "}");
}

/* A recording may come from anywhere, so its closing text is checked before it becomes a part of the document. */
static void add_tracing(struct text *text, const char *end)
{
	text_literal(text, ",\n\"tracing\":");
	if (end && json_is_object(end, strlen(end)))
		text_string(text, end);
	else
		text_literal(text, "null");
}

/* Of everything, where nothing was chosen, there is no member. */
static void add_choices(struct text *text, const struct model *model)
{
	size_t i;

	if (!model_choice_count(model))
		return;
	text_literal(text, ",\n\"chosen\":[");
	for (i = 0; i < model_choice_count(model); i++) {
		const struct model_choice *choice = model_choice(model, i);

		text_string(text, i ? ",{" : "{");
		text_string(text, choice->match ? "\"match\":" : "\"name\":");
		if (*choice->text || choice->match)
			text_json_string(text, choice->text);
		else
			text_literal(text, "null");
		if (choice->handle)
			chrome_member_hexadecimal(text, "handle", choice->handle);
		if (choice->tgid)
			chrome_member_unsigned(text, "pid", choice->tgid);
		text_literal(text, "}");
	}
	text_literal(text, "]");
}

void chrome_metadata_totals(struct text *text, const struct recording_info *info, const struct model *model,
			    const struct chrome_devices *devices, int output_error)
{
	const char *end = model_end_text(model);

	text_literal(text, "{\"complete\":");
	text_string(text, end && !output_error ? "true" : "false");
	if (output_error)
		chrome_member_string(text, "output_error", strerror(-output_error));
	text_literal(text, ",");
	chrome_metadata_origin(text, info);
	chrome_member_microseconds(text, "first_us", model_first_time(model));
	chrome_member_microseconds(text, "last_us", model_last_time(model));
	add_choices(text, model);
	add_totals(text, model, devices);
	text_literal(text, ",\n\"code_objects\":");
	chrome_code_totals(text, model);
	add_losses(text, model);
	chrome_member_unsigned(text, "waited", model_wait_count(model));
	chrome_member_microseconds(text, "waited_us", model_wait_time(model));
	add_tracing(text, end);
	text_literal(text, "}");
}
