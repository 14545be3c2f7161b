/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/document.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"
#include "model/stats/statistics.h"
#include "page/parts.h"
#include "report/table/rows.h"
#include "report/table/summary.h"

/* ---- where it comes from ---- */

void page_add_source(struct text *text, const struct study_input *input, const char *name)
{
	json_add_text(text, "file", name);
	json_add_text(text, "host", input->host);
	json_add_text(text, "kernel", input->kernel);
	json_add_text(text, "machine", input->machine);
	json_add_text(text, "version", input->version);
	json_add_text(text, "command", input->command);
	json_add_unsigned(text, "began_ms", (input->realtime + input->origin) / 1000000);
}

static void add_source(struct text *text, const struct page_document *document)
{
	const char *slash = strrchr(document->name, '/');

	json_begin(text, "source", '{');
	page_add_source(text, document->study->inputs, slash && slash[1] ? slash + 1 : document->name);
	json_end(text, '}');
	json_add_text(text, "page_version", XPT_VERSION);
}

static void add_summary(struct text *text, const struct page_document *document)
{
	char *json = NULL;

	if (summary_json(document->model, document->length, &json)) {
		text_fail(text);
		return;
	}
	json_key(text, "summary");
	text_string(text, json);
	free(json);
}

static void add_vocabulary(struct text *text)
{
	json_begin(text, "components", '[');
	for (int i = 0; i < STUDY_COMPONENTS; i++)
		json_add_text(text, NULL, study_component_name(i));
	json_end(text, ']');
	json_begin(text, "reasons", '[');
	json_add_text(text, NULL, "");
	for (int i = XPT_OFF_CPU_PREEMPTED; i <= XPT_OFF_CPU_OTHER; i++)
		json_add_text(text, NULL, off_cpu_name(i));
	json_end(text, ']');
}

void page_add_losses(struct text *text)
{
	json_begin(text, "losses", '{');
	for (int i = 0; i < XPT_LOSS_MAX; i++) {
		if (loss_name(i))
			json_add_text(text, loss_name(i), loss_description(i));
	}
	json_end(text, '}');
}

void page_add_costs(struct text *text, const struct model *model)
{
	struct summary_closing closing;

	if (summary_closing_read(model, &closing)) {
		text_fail(text);
		return;
	}
	json_begin(text, "costs", '{');
	json_add_real(text, "calls", closing.calls);
	json_add_real(text, "cost", closing.cost);
	json_add_real(text, "attach", closing.attach);
	json_add_real(text, "detach", closing.detach);
	json_add_text(text, "stopped_by", closing.stopped_by);
	json_add_unsigned(text, "waits", model_wait_count(model));
	json_add_unsigned(text, "wait_time", model_wait_time(model));
	json_end(text, '}');
}

/* ---- programs ---- */

void page_add_statistics(struct text *text, const char *key, const struct statistics *statistics)
{
	static const struct {
		const char *name;
		double quantile;
	} columns[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p95", 0.95 }, { "p99", 0.99 }, { "p999", 0.999 } };

	if (!statistics || !statistics_count(statistics))
		return;
	json_begin(text, key, '{');
	json_add_unsigned(text, "count", statistics_count(statistics));
	json_add_unsigned(text, "min", statistics_min(statistics));
	json_add_unsigned(text, "max", statistics_max(statistics));
	json_add_real(text, "mean", statistics_mean(statistics));
	json_add_real(text, "stddev", statistics_deviation(statistics));
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		json_add_unsigned(text, columns[i].name, statistics_quantile(statistics, columns[i].quantile));
	json_end(text, '}');
}

static void add_cohort(struct text *text, const char *key, const struct study_cohort *cohort)
{
	json_begin(text, key, '{');
	json_add_unsigned(text, "count", cohort->count);
	json_add_unsigned(text, "least", cohort->least);
	json_add_unsigned(text, "most", cohort->most);
	json_add_real(text, "duration", cohort->mean.duration);
	json_begin(text, "components", '[');
	for (int i = 0; i < STUDY_COMPONENTS; i++)
		json_add_real(text, NULL, round(cohort->mean.component[i]));
	json_end(text, ']');
	json_add_real(text, "queue", round(cohort->mean.queue));
	json_add_real(text, "device", round(cohort->mean.device));
	json_add_real(text, "tracing", round(cohort->mean.tracing));
	json_end(text, '}');
}

/* The counts of each bin, and those that are not 0 as bin, row, count. */
static void add_history(struct text *text, const struct study_history *history, unsigned int bins)
{
	json_begin(text, "series", '[');
	for (unsigned int bin = 0; history && bin < bins; bin++) {
		__u64 count = 0;

		for (unsigned int row = 0; row < history->rows; row++)
			count += history->counts[(size_t)bin * history->rows + row];
		json_add_unsigned(text, NULL, count);
	}
	json_end(text, ']');
	json_begin(text, "bounds", '[');
	for (unsigned int row = 0; history && row <= history->rows; row++)
		json_add_real(text, NULL, round(history->low * exp2(row * history->step)));
	json_end(text, ']');
	json_begin(text, "heat", '[');
	for (size_t i = 0; history && i < (size_t)bins * history->rows; i++) {
		if (!history->counts[i])
			continue;
		json_add_unsigned(text, NULL, i / history->rows);
		json_add_unsigned(text, NULL, i % history->rows);
		json_add_unsigned(text, NULL, history->counts[i]);
	}
	json_end(text, ']');
}

/* Why its slow inferences take longer. */
static void add_explanation(struct text *text, const struct xpt_explain_program *program)
{
	json_begin(text, "explanation", '{');
	json_add_real(text, "difference", round(program->difference));
	json_add_real(text, "explained", program->explained);
	json_add_text(text, "missing", program->missing);
	json_add_text(text, "command", program->command);
	json_begin(text, "causes", '[');
	for (size_t i = 0; i < program->cause_count; i++) {
		const struct xpt_explain_cause *cause = XPT_AT(program->causes, program->cause_size, i);

		json_begin(text, NULL, '{');
		json_add_text(text, "title", cause->title);
		json_add_text(text, "name", strcmp(cause->kind, "operator") ? "" : cause->name);
		json_add_bool(text, "explained", cause->explained);
		json_add_real(text, "difference", round(cause->difference));
		json_add_real(text, "share", cause->share);
		json_add_unsigned(text, "inferences", cause->inferences);
		json_add_text(text, "evidence", cause->evidence);
		json_add_text(text, "command", cause->command);
		json_end(text, '}');
	}
	json_end(text, ']');
	json_end(text, '}');
}

static void add_program(struct text *text, struct page_parts *parts, const struct study_program *program)
{
	json_begin(text, NULL, '{');
	json_add_text(text, "name", program->name);
	json_add_text(text, "runtime", program->runtime);
	json_add_text(text, "process", program->process);
	json_begin(text, "pids", '[');
	for (size_t i = 0; i < program->process_count; i++)
		json_add_unsigned(text, NULL, program->processes[i].tgid);
	json_end(text, ']');
	json_add_text(text, "sha256", program->sha256);
	json_add_bool(text, "region", program->region);
	json_add_unsigned(text, "inferences", program->exact ? program->counted : program->recorded);
	json_add_unsigned(text, "recorded", program->recorded);
	json_add_unsigned(text, "failed", program->failed);
	json_add_unsigned(text, "lost", program->lost);
	page_add_statistics(text, "latency", program->duration);
	add_cohort(text, "typical", &program->typical);
	add_cohort(text, "slow", &program->slow);
	add_history(text, program->history, parts->document->study->bins);
	if (parts->programs < xpt_explain_program_count(parts->document->explain))
		add_explanation(text, xpt_explain_program(parts->document->explain, parts->programs));
	page_add_operators(text, parts, program);
	page_add_details(text, parts, "slowest", program, program->slowest, program->slowest_count);
	page_add_details(text, parts, "middle", program, program->middle, program->middle_count);
	page_add_samples(text, parts, program);
	json_end(text, '}');
}

/* ---- how much the page has ---- */

static void add_kept(struct text *text, const struct page_parts *parts)
{
	const struct page_document *document = parts->document;
	const struct study *study = document->study;
	__u64 recorded = 0, operators = 0, slow = 0;

	for (size_t i = 0; i < study->program_count; i++) {
		slow += study->programs[i].slow.count;
		recorded += study->programs[i].recorded;
		operators += study->programs[i].operator_count;
	}
	json_begin(text, "kept", '{');
	json_add_unsigned(text, "programs", parts->programs);
	json_add_unsigned(text, "all_programs", study->program_count);
	json_add_unsigned(text, "samples", parts->samples);
	json_add_unsigned(text, "slow_samples", parts->slow_samples);
	json_add_unsigned(text, "all_samples", recorded);
	json_add_unsigned(text, "all_slow_samples", slow);
	json_add_unsigned(text, "details", parts->details);
	json_add_unsigned(text, "cut_details", parts->cut_details);
	json_add_unsigned(text, "left_out_details", parts->left_out_details);
	json_add_unsigned(text, "operators", parts->operators);
	json_add_unsigned(text, "all_operators", operators);
	json_add_unsigned(text, "spans", document->spans->count);
	json_add_unsigned(text, "all_spans", document->spans->seen);
	json_add_unsigned(text, "memory_events", document->spans->driver_kept[0]);
	json_add_unsigned(text, "all_memory_events", document->spans->driver_seen[0]);
	json_add_unsigned(text, "driver_errors", document->spans->driver_kept[1]);
	json_add_unsigned(text, "all_driver_errors", document->spans->driver_seen[1]);
	json_end(text, '}');
}

/* ---- flame graphs ---- */

static int by_total(const void *a, const void *b)
{
	const struct flame_node *const *x = a, *const *y = b;

	return ((*x)->total[1] < (*y)->total[1]) - ((*x)->total[1] > (*y)->total[1]);
}

/* Of a tree with too many nodes, the least total of those that are shown: what is below is added to the node above. */
static __u64 least_total(const struct flame_tree *tree)
{
	struct flame_node **sorted;
	__u64 least;

	if (tree->count <= PAGE_FLAME_NODES_MAX)
		return 0;
	sorted = malloc(tree->count * sizeof(struct flame_node *));
	if (!sorted)
		return UINT64_MAX;
	memcpy(sorted, tree->nodes, tree->count * sizeof(struct flame_node *));
	qsort(sorted, tree->count, sizeof(struct flame_node *), by_total);
	least = sorted[PAGE_FLAME_NODES_MAX]->total[1] + 1;
	free(sorted);
	return least;
}

/* Nodes come behind their parents. Numbers of those that are shown go to number; those of others are what they are added to. */
static void number_nodes(const struct flame_tree *tree, __u32 *number, __u64 *self, __u64 *count)
{
	const __u64 least = least_total(tree);
	__u32 shown = 0;

	for (size_t i = 0; i < tree->count; i++) {
		const struct flame_node *node = tree->nodes[i];
		const bool is_shown = !i || (node->total[1] && node->total[1] >= least);

		number[i] = is_shown ? shown++ : number[node->parent->number];
		self[number[i]] += node->self[1];
		count[number[i]] += node->count[1];
	}
}

static void add_nodes(struct text *text, const struct flame_tree *tree, const __u32 *number, const __u64 *self,
		      const __u64 *count)
{
	__u32 next = 0;
	size_t all = 0;

	json_begin(text, "nodes", '[');
	for (size_t i = 0; i < tree->count; i++) {
		const struct flame_node *node = tree->nodes[i];

		all += !i || node->total[1];
		if (number[i] != next)
			continue;
		json_add_unsigned(text, NULL, i ? number[node->parent->number] : 0);
		json_add_unsigned(text, NULL, node->label ? node->label->number : 0);
		json_add_unsigned(text, NULL, self[next]);
		json_add_unsigned(text, NULL, count[next]);
		next++;
	}
	json_end(text, ']');
	json_add_unsigned(text, "shown", next);
	json_add_unsigned(text, "all", all);
}

static void add_flame(struct text *text, const struct flame_tree *tree, enum xpt_flame what)
{
	__u32 *number = calloc(tree->count, sizeof(*number));
	__u64 *self = calloc(tree->count, sizeof(*self)), *count = calloc(tree->count, sizeof(*count));

	if (number && self && count) {
		json_begin(text, NULL, '{');
		json_add_text(text, "title", flame_words(what)->title);
		json_add_text(text, "words", flame_words(what)->count);
		json_begin(text, "names", '[');
		for (size_t i = 0; i < tree->label_count; i++)
			json_add_text(text, NULL, tree->all_labels[i]->name);
		json_end(text, ']');
		json_begin(text, "kinds", '[');
		for (size_t i = 0; i < tree->label_count; i++)
			json_add_text(text, NULL, flame_kind_name(tree->all_labels[i]->kind));
		json_end(text, ']');
		number_nodes(tree, number, self, count);
		add_nodes(text, tree, number, self, count);
		json_end(text, '}');
	} else {
		text_fail(text);
	}
	free(number);
	free(self);
	free(count);
}

/* ---- all ---- */

void page_document_add(struct text *text, const struct page_document *document)
{
	const struct study *study = document->study;
	struct page_parts parts = { .document = document, .base = study->inputs->origin };

	json_begin(text, NULL, '{');
	json_add_unsigned(text, "schema", 1);
	add_source(text, document);
	json_add_unsigned(text, "origin", parts.base);
	json_add_signed(text, "begin", (__s64)(study->start - parts.base));
	json_add_unsigned(text, "duration", study->end - study->start);
	json_add_unsigned(text, "bins", study->bins);
	json_add_real(text, "bin", study->bin);
	add_summary(text, document);
	add_vocabulary(text);
	page_add_losses(text);
	page_add_costs(text, document->model);
	page_share_samples(&parts);
	json_begin(text, "programs", '[');
	for (; parts.programs < study->program_count && parts.programs < PAGE_PROGRAMS_MAX; parts.programs++)
		add_program(text, &parts, &study->programs[parts.programs]);
	json_end(text, ']');
	page_add_tokens(text, document->model);
	page_add_queues(text, &parts);
	page_add_counters(text, &parts);
	page_add_code(text, &parts);
	page_add_driver_events(text, &parts);
	page_add_spans(text, &parts);
	json_begin(text, "flames", '[');
	for (int i = 0; i < PAGE_FLAMES; i++) {
		if (document->flames[i] && document->flames[i]->count > 1)
			add_flame(text, document->flames[i], i + 1);
	}
	json_end(text, ']');
	page_names_add(text, document->names);
	add_kept(text, &parts);
	json_end(text, '}');
}
