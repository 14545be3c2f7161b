/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/table/tokens.h"

#include "model/stats/statistics.h"
#include "report/latency/columns.h"

#define ROWS_MAX 40

static void define(struct columns *columns)
{
	static const char *const titles[] = { "BATCHES", "TOKENS", "TOKENS/s" };
	static const char *const times[] = { "MEAN", "P50", "P99", "MAX" };

	columns_define(columns, "LANGUAGE MODEL", true);
	columns_define(columns, "RUNTIME", true);
	columns_define(columns, "PID", false);
	columns_define(columns, "PHASE", true);
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		columns_define(columns, titles[i], false);
	columns_define(columns, "TIME", true);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		columns_define(columns, times[i], false);
}

static void fill(struct columns *columns, const struct model_program *program, enum model_phase phase)
{
	const struct model_phase_total *total = &program->tokens->phase[phase];
	const struct statistics *time = phase == PHASE_PREFILL ? program->tokens->first_token :
								 program->tokens->output_token;

	columns_name(columns, program->name);
	columns_name(columns, program->runtime);
	columns_count(columns, program->process->tgid);
	columns_name(columns, phase == PHASE_PREFILL ? "prefill" : "decode");
	columns_count(columns, total->batches);
	columns_count(columns, total->tokens);
	columns_rate(columns, total->time ? (double)total->tokens * 1e9 / (double)total->time : 0);
	columns_name(columns, phase == PHASE_PREFILL ? "to first token" : "per token");
	if (!time) {
		columns_unknown(columns, 4);
		return;
	}
	columns_time(columns, statistics_mean(time));
	columns_time(columns, statistics_quantile(time, 0.50));
	columns_time(columns, statistics_quantile(time, 0.99));
	columns_time(columns, statistics_max(time));
}

static size_t fill_all(struct columns *columns, const struct model *model)
{
	size_t rows = 0;

	columns_clear(columns);
	for (size_t i = 0; i < model_program_count(model); i++) {
		const struct model_program *program = model_program(model, i);

		for (int phase = PHASE_PREFILL; program->tokens && phase < PHASES; phase++)
			if (program->tokens->phase[phase].batches && rows++ < ROWS_MAX)
				fill(columns, program, phase);
	}
	return rows;
}

int summary_tokens(const struct model *model, FILE *out, size_t width)
{
	struct columns columns = { .precise = true };
	size_t rows;
	int error = 0;

	define(&columns);
	rows = fill_all(&columns, model);
	if (width && columns_least_width(&columns) > width) {
		columns.precise = false;
		columns.narrow = true;
		fill_all(&columns, model);
	}
	if (rows)
		error = columns_print(&columns, out, width);
	if (rows > ROWS_MAX)
		fprintf(out, "(%zu more; see the trace's metadata)\n", rows - ROWS_MAX);
	if (rows)
		putc('\n', out);
	columns_free(&columns);
	return error;
}
