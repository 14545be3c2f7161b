/* SPDX-License-Identifier: BSD-2-Clause */
/* What the summary's tables show, for machines. */
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"
#include "model/stats/statistics.h"
#include "report/chrome/events.h"
#include "report/table/summary.h"
#include "report/table/rows.h"

static void add_whole(struct text *text, const char *key, double value)
{
	json_add_unsigned(text, key, value > 0 && value < 1.8e19 ? (__u64)(value + 0.5) : 0);
}

static void add_times(struct text *text, const char *key, const struct statistics *statistics)
{
	if (statistics && statistics_count(statistics))
		chrome_metadata_statistics(text, key, statistics, false, "stddev");
}

/* calls: how the number of calls, and times: how their times are called. */
static void add_rows(struct text *text, const char *key, const struct summary_rows *rows, const char *calls,
		     const char *times)
{
	json_begin(text, key, '[');
	for (size_t i = 0; i < rows->count; i++) {
		const struct summary_row *row = &rows->row[i];

		json_begin(text, NULL, '{');
		json_add_text(text, "name", row->name);
		json_add_text(text, "runtime", row->runtime);
		json_add_unsigned(text, "pid", row->process->tgid);
		json_add_unsigned(text, calls, row->calls);
		json_add_unsigned(text, "recorded", row->recorded);
		json_add_unsigned(text, "failed", row->errors);
		if (row->bytes)
			json_add_unsigned(text, "bytes", row->bytes);
		add_times(text, times, row->statistics);
		add_times(text, "tracing_ns", row->tracing);
		if (row->states.calls)
			chrome_metadata_states(text, &row->states);
		json_end(text, '}');
	}
	json_end(text, ']');
}

static void add_losses(struct text *text, const struct model *model)
{
	json_begin(text, "lost", '{');
	for (int cause = 0; cause < XPT_LOSS_MAX; cause++) {
		if (model_lost(model, cause))
			json_add_unsigned(text, loss_name(cause), model_lost(model, cause));
	}
	json_end(text, '}');
}

int summary_json(const struct model *model, __u64 length, char **json)
{
	struct summary_rows programs = { 0 }, functions = { 0 }, regions = { 0 };
	struct summary_closing closing;
	struct text text = { 0 };
	int error = summary_closing_read(model, &closing);

	error = error ?: summary_programs(model, &programs);
	error = error ?: summary_functions(model, &functions);
	error = error ?: summary_regions(model, &regions);
	if (!error) {
		json_begin(&text, NULL, '{');
		json_add_bool(&text, "complete", closing.known);
		add_whole(&text, "duration_ns",
			  length	       ? length :
			  closing.duration > 0 ? closing.duration :
						 model_last_time(model) - model_first_time(model));
		add_rows(&text, "programs", &programs, "inferences", "latency_ns");
		add_rows(&text, "functions", &functions, "calls", "duration_ns");
		add_rows(&text, "regions", &regions, "calls", "duration_ns");
		add_losses(&text, model);
		json_add_unsigned(&text, "collector_cpu_ns", (__u64)closing.collector_cpu);
		json_add_unsigned(&text, "collector_memory_bytes", (__u64)closing.collector_memory);
		chrome_metadata_budget(&text, model);
		json_end(&text, '}');
		text_bytes(&text, "", 1);
		error = text.error;
	}
	summary_rows_free(&programs);
	summary_rows_free(&functions);
	summary_rows_free(&regions);
	if (error) {
		text_free(&text);
		return error;
	}
	*json = text.data;
	return 0;
}
