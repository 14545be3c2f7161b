/* SPDX-License-Identifier: BSD-2-Clause */
#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "base/core/json.h"
#include "model/stats/statistics.h"
#include "report/table/columns.h"
#include "report/table/rows.h"

#define CHOICES_SHOWN 10
#define TRACING_SHOWN 10 /* programs */
#define TRACING_WARNED 3 /* part of an inference: a third */

/* What is no amount of anything (negative, not a number, beyond all counters) counts as not there. */
static double number(const cJSON *object, const char *name)
{
	const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsNumber(value) && value->valuedouble > 0 && value->valuedouble < 1e18 ? value->valuedouble : 0;
}

int summary_closing_read(const struct model *model, struct summary_closing *closing)
{
	const char *end = model_end_text(model);
	const cJSON *part;
	const char *stopped_by;
	cJSON *json;
	int error;

	*closing = (struct summary_closing){ 0 };
	error = end ? json_parse(end, strlen(end), &json) : -EBADMSG;
	if (error)
		return error == -EBADMSG ? 0 : error;
	closing->known = true;
	closing->duration = number(json, "duration_ns");
	closing->attach = number(json, "attach_ns");
	closing->detach = number(json, "detach_ns");
	part = cJSON_GetObjectItemCaseSensitive(json, "target");
	closing->calls = number(part, "calls");
	closing->cost = number(part, "cost_ns");
	part = cJSON_GetObjectItemCaseSensitive(json, "collector");
	closing->collector_cpu = number(part, "cpu_ns");
	closing->collector_memory = number(part, "max_rss_bytes");
	stopped_by = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "stopped_by"));
	if (stopped_by)
		memcpy(closing->stopped_by, stopped_by,
		       text_cut(stopped_by, strlen(stopped_by), sizeof(closing->stopped_by) - 1));
	cJSON_Delete(json);
	return 0;
}

static void add_time(struct text *text, double nanoseconds)
{
	columns_format_time(text, nanoseconds, false);
}

static void add_losses(struct text *text, const struct model *model)
{
	bool any = false;
	int cause;

	for (cause = 0; cause < XPT_LOSS_MAX; cause++) {
		__u64 count = model_lost(model, cause);

		if (!count)
			continue;
		any = true;
		text_literal(text, "lost: ");
		text_unsigned(text, count);
		text_literal(text, " ");
		text_string(text, loss_description(cause));
		text_literal(text, " (");
		text_string(text, loss_name(cause));
		text_literal(text, ")\n");
	}
	if (!any)
		text_literal(text, "lost: nothing\n");
}

static void add_waited(struct text *text, __u64 count, const char *why, __u64 time)
{
	if (!count)
		return;
	text_literal(text, "waited: ");
	text_unsigned(text, count);
	text_literal(text, " times while ");
	text_string(text, why);
	text_literal(text, ", ");
	add_time(text, time);
	text_literal(text, " in all\n");
}

/* Latencies are of those that were seen to end. */
static void add_unended(struct text *text, const struct model *model)
{
	__u64 launches = 0, unended = 0;
	size_t i;

	for (i = 0; i < model_program_count(model); i++) {
		const struct model_program *program = model_program(model, i);

		if (program->role != XPT_ROLE_LAUNCH)
			continue;
		launches += program->recorded;
		unended += program->unended;
	}
	if (!unended)
		return;
	text_literal(text, "not seen to end: ");
	text_unsigned(text, unended);
	text_literal(text, " of ");
	text_unsigned(text, launches);
	text_literal(text, " launches; their latency is not known\n");
}

static void add_code(struct text *text, const struct model_code_totals *totals)
{
	add_waited(text, totals->waited, "code objects were read", totals->wait_time);
	if (!totals->incomplete)
		return;
	text_literal(text, "incomplete: ");
	text_unsigned(text, totals->incomplete);
	text_literal(text, " of ");
	text_unsigned(text, totals->loads);
	text_literal(text, " code objects\n");
}

static void add_probes(struct text *text, const struct summary_closing *closing)
{
	if (closing->attach <= 0)
		return;
	text_literal(text, "probes: placed in ");
	add_time(text, closing->attach);
	text_literal(text, ", removed in ");
	add_time(text, closing->detach);
	text_literal(text, "\n");
}

static void add_cost(struct text *text, const struct summary_closing *closing)
{
	if (!closing->duration && !closing->collector_cpu)
		return;
	text_literal(text, "cost: ");
	if (closing->calls > 0) {
		add_time(text, closing->cost / closing->calls);
		text_literal(text, " a call, ");
	}
	if (closing->duration > 0) {
		columns_format_share(text, closing->cost, closing->duration);
		text_literal(text, " of the time (estimated)");
	}
	if (!closing->collector_cpu) {
		text_literal(text, "\n");
		return;
	}
	if (closing->duration > 0)
		text_literal(text, "; ");
	text_literal(text, "collector ");
	add_time(text, closing->collector_cpu);
	text_literal(text, " CPU, ");
	columns_format_bytes(text, closing->collector_memory);
	text_literal(text, " memory\n");
}

/* What would cost less: operators, calls inside, or the inference's own. */
static const char *cheaper(const struct summary_row *row)
{
	if (row->stepped)
		return "leave out --ops";
	return (double)row->tracing_inside * 2 > statistics_sum(row->tracing) ? "use --level basic" : "use --sample N";
}

/* What of each program's inferences is tracing. */
static void add_tracing(struct text *text, const struct summary_rows *rows)
{
	for (size_t i = 0, shown = 0; i < rows->count && shown < TRACING_SHOWN; i++) {
		const struct summary_row *row = &rows->row[i];
		__u64 latency, tracing = summary_tracing(row, &latency);

		if (!tracing)
			continue;
		shown++;
		text_literal(text, "tracing: about ");
		add_time(text, (double)tracing);
		text_literal(text, " of the ");
		add_time(text, (double)latency);
		text_literal(text, " of an inference (");
		columns_format_share(text, (double)tracing, (double)latency);
		text_literal(text, "): ");
		text_terminal(text, row->name, strlen(row->name), 0);
		text_literal(text, "\n");
		if (tracing < latency / TRACING_WARNED)
			continue;
		text_literal(text, "warning: tracing is more than a third of an inference of ");
		text_terminal(text, row->name, strlen(row->name), 0);
		text_literal(text, ": ");
		text_string(text, cheaper(row));
		text_literal(text, "\n");
	}
}

/* The inferences of which programs were recorded, where not those of all. */
static void add_choices(struct text *text, const struct model *model)
{
	size_t i;

	for (i = 0; i < model_choice_count(model) && i < CHOICES_SHOWN; i++) {
		const struct model_choice *choice = model_choice(model, i);

		text_string(text, i ? ", " : "chosen: ");
		if (choice->match)
			text_literal(text, "names with ");
		text_terminal(text, choice->text, strlen(choice->text), 0);
		if (!choice->handle)
			continue;
		if (*choice->text)
			text_literal(text, " ");
		text_hexadecimal(text, choice->handle);
	}
	if (i < model_choice_count(model))
		text_literal(text, " and more");
	if (i)
		text_literal(text, "; inferences of other programs were counted only\n");
}

static void add_end(struct text *text, const struct summary_closing *closing)
{
	if (!closing->known) {
		text_literal(text, "the recording was cut short: counts are of what was recorded\n");
		return;
	}
	text_literal(text, "recorded ");
	add_time(text, closing->duration);
	if (*closing->stopped_by) {
		text_literal(text, ", stopped by: ");
		text_terminal(text, closing->stopped_by, strlen(closing->stopped_by), 0);
	}
	text_literal(text, "\n");
}

int summary_closing_print(const struct model *model, const struct summary_closing *closing, FILE *out)
{
	struct summary_rows programs = { 0 };
	struct text text = { 0 };
	int error = summary_programs(model, &programs);

	add_choices(&text, model);
	add_losses(&text, model);
	add_waited(&text, model_wait_count(model), "probes were placed", model_wait_time(model));
	add_unended(&text, model);
	add_code(&text, model_code_totals(model));
	add_end(&text, closing);
	if (closing->known) {
		add_probes(&text, closing);
		add_cost(&text, closing);
	}
	if (!error)
		add_tracing(&text, &programs);
	summary_rows_free(&programs);
	return columns_print_text(&text, out) ?: error;
}
