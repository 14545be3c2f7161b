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

static void copy_string(const cJSON *object, const char *name, char *to, size_t size)
{
	const char *string = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

	if (string)
		snprintf(to, size, "%.*s", (int)text_cut(string, strlen(string), size - 1), string);
}

static void read_budget_rows(const cJSON *budget, const char *name, struct summary_budget_row rows[BUDGET_ROWS])
{
	const cJSON *array = cJSON_GetObjectItemCaseSensitive(budget, name), *item;
	unsigned int count = 0;

	cJSON_ArrayForEach(item, array) {
		struct summary_budget_row *row = &rows[count];

		if (count == BUDGET_ROWS || !number(item, "added_ns"))
			break;
		row->tgid = number(item, "tgid");
		row->added = number(item, "added_ns");
		row->time = number(item, "cpu_ns");
		row->hits = number(item, "hits");
		copy_string(item, "function", row->function, sizeof(row->function));
		copy_string(item, "class", row->class, sizeof(row->class));
		count++;
	}
}

static void read_budget(const cJSON *budget, struct summary_closing *closing)
{
	closing->budget.percent = number(budget, "percent");
	closing->budget.time = number(budget, "targets_ns");
	closing->budget.added = number(budget, "added_ns");
	closing->budget.collector = number(budget, "collector_ns");
	closing->budget.coldness = number(budget, "coldness");
	read_budget_rows(budget, "targets", closing->budget.targets);
	read_budget_rows(budget, "sites", closing->budget.sites);
}

int summary_closing_read(const struct model *model, struct summary_closing *closing)
{
	const char *end = model_end_text(model);
	const cJSON *part;
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
	copy_string(json, "stopped_by", closing->stopped_by, sizeof(closing->stopped_by));
	read_budget(cJSON_GetObjectItemCaseSensitive(json, "budget"), closing);
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

/* ---- the budget ---- */

#define CHANGES_SHOWN 10
#define FUNCTIONS_SHOWN 3
#define STEP 10000000ull /* ns: changes that are made at once */

/* "1.7 %", below 1 "0.04 %" */
static void add_percent(struct text *text, double value)
{
	__u64 hundredths = value > 0 && value < 1e15 ? (__u64)(value * 100 + 0.5) : 0;

	if (hundredths >= 100)
		hundredths = (hundredths + 5) / 10 * 10;
	text_unsigned(text, hundredths / 100);
	if (hundredths % 100) {
		text_literal(text, ".");
		text_unsigned(text, hundredths / 10 % 10);
	}
	if (hundredths % 10)
		text_unsigned(text, hundredths % 10);
	text_literal(text, " %");
}

/* When the recording has begun: as the END record has it, else about the first thing in it. */
static __u64 begin_of(const struct model *model, const struct summary_closing *closing)
{
	const double before = closing->duration + closing->detach;
	__u64 first = model_first_time(model);

	if (closing->known)
		return before < (double)model_end_time(model) ? model_end_time(model) - (__u64)before : 0;
	if (model_budget_change_count(model) && (!first || model_budget_change(model, 0)->time < first))
		first = model_budget_change(model, 0)->time;
	return first;
}

static void add_moment(struct text *text, __u64 time, __u64 begin)
{
	if (time > begin)
		add_time(text, (double)(time - begin));
	else
		text_literal(text, "the begin");
}

static bool same_site(const struct model_budget_change *one, const struct model_budget_change *other)
{
	return one->action == BUDGET_SITE && other->action == BUDGET_SITE && one->tgid == other->tgid &&
	       !strcmp(one->name, other->name);
}

/* The change of the same site after this one, or before it; NULL: there is none. */
static const struct model_budget_change *change_beside(const struct model *model, size_t index, int step)
{
	const struct model_budget_change *change = model_budget_change(model, index);

	for (size_t i = index + step; i < model_budget_change_count(model); i += step) {
		if (same_site(change, model_budget_change(model, i)))
			return model_budget_change(model, i);
	}
	return NULL;
}

static void add_place(struct text *text, __u64 tgid)
{
	if (!tgid) {
		text_literal(text, " of several processes");
		return;
	}
	text_literal(text, " of process ");
	text_unsigned(text, tgid);
}

static void add_programs(struct text *text, const struct model_budget_change *change)
{
	unsigned int more = change->programs - (change->programs && change->name);

	if (change->name) {
		text_literal(text, " of ");
		text_terminal(text, change->name, strlen(change->name), 0);
	}
	if (!more)
		return;
	text_string(text, change->name ? " and of " : " of ");
	text_unsigned(text, more);
	text_string(text, change->name ? " more" : "");
	text_string(text, more > 1 ? " programs or functions" : " program or function");
}

/* When a site that is detached here is attached again; 0: never. */
static __u64 end_of(const struct model *model, size_t index)
{
	const struct model_budget_change *next = change_beside(model, index, 1);

	return next && next->on ? next->time : 0;
}

/* Whether the line of a change before has this one. */
static bool ends_another(const struct model *model, size_t index)
{
	const struct model_budget_change *change = model_budget_change(model, index), *before;

	before = change->action == BUDGET_SITE && change->on ? change_beside(model, index, -1) : NULL;
	return before && !before->on;
}

static bool is_near(__u64 one, __u64 other)
{
	return one < other ? other - one <= STEP : one - other <= STEP;
}

/* The last of the changes that have one line: functions of a process that are detached, and attached again, at once. */
static size_t last_of_line(const struct model *model, size_t index)
{
	const struct model_budget_change *change = model_budget_change(model, index), *next;
	size_t last = index;
	__u64 end;

	if (change->action != BUDGET_SITE || change->on)
		return index;
	for (end = end_of(model, index); last + 1 < model_budget_change_count(model); last++) {
		next = model_budget_change(model, last + 1);
		if (next->action != BUDGET_SITE || next->on || next->tgid != change->tgid ||
		    !is_near(next->time, change->time) || !is_near(end_of(model, last + 1), end))
			break;
	}
	return last;
}

static void add_functions(struct text *text, const struct model *model, size_t first, size_t last)
{
	for (size_t i = first; i <= last && i < first + FUNCTIONS_SHOWN; i++) {
		const char *name = model_budget_change(model, i)->name;

		text_string(text, i == first ? "" : ", ");
		text_terminal(text, name, strlen(name), 0);
	}
	if (last < first + FUNCTIONS_SHOWN)
		return;
	text_literal(text, " and ");
	text_unsigned(text, last - first + 1 - FUNCTIONS_SHOWN);
	text_literal(text, " more functions");
}

static void add_sites(struct text *text, const struct model *model, size_t first, size_t last, __u64 begin)
{
	const struct model_budget_change *change = model_budget_change(model, first);
	const __u64 end = change->on ? change->time : end_of(model, first);

	text_literal(text, "budget: ");
	add_functions(text, model, first, last);
	add_place(text, change->tgid);
	text_string(text, first == last ? " was" : " were");
	text_literal(text, " not traced or counted from ");
	add_moment(text, change->on ? change->since : change->time, begin);
	if (end) {
		text_literal(text, " to ");
		add_moment(text, end, begin);
	} else {
		text_literal(text, " on");
	}
	text_literal(text, "\n");
}

static void add_change(struct text *text, const struct model_budget_change *change, __u64 begin)
{
	text_string(text, change->time > begin ? "budget: at " : "budget: from ");
	add_moment(text, change->time, begin);
	text_literal(text, ", ");
	add_percent(text, change->cost);
	if (change->action == BUDGET_OPERATORS) {
		text_string(text, change->on ? ": operators are traced again\n" : ": operators are not traced\n");
		return;
	}
	/* Without a program it is a function that is counted by itself. */
	text_string(text, change->every > 1 ? ": 1 " : ": each ");
	text_string(text, change->name ? "inference" : "call");
	if (change->every > 1) {
		text_literal(text, " in ");
		text_unsigned(text, change->every);
	}
	add_programs(text, change);
	text_literal(text, " is recorded\n");
}

static void add_changes(struct text *text, const struct model *model, __u64 begin)
{
	__u64 more = model_budget_changes_left_out(model);
	unsigned int shown = 0;
	bool detached = false;

	for (size_t i = 0, last; i < model_budget_change_count(model); i = last + 1) {
		bool is_site = model_budget_change(model, i)->action == BUDGET_SITE;

		last = last_of_line(model, i);
		detached |= is_site;
		if (ends_another(model, i))
			continue;
		if (shown++ >= CHANGES_SHOWN)
			more += last - i + 1;
		else if (is_site)
			add_sites(text, model, i, last, begin);
		else
			add_change(text, model_budget_change(model, i), begin);
	}
	if (more) {
		text_literal(text, "budget: and ");
		text_unsigned(text, more);
		text_string(text, more > 1 ? " more changes\n" : " more change\n");
	}
	if (detached)
		text_literal(text, "budget: counts lack the calls of functions while they were not traced\n");
}

static void add_budget_rows(struct text *text, const struct summary_closing *closing)
{
	for (unsigned int i = 0; i < BUDGET_ROWS && closing->budget.targets[i].added > 0; i++) {
		const struct summary_budget_row *row = &closing->budget.targets[i];

		text_literal(text, "budget: about ");
		add_percent(text, row->time > 0 ? row->added / row->time * 100 : 0);
		text_literal(text, " of the CPU time");
		add_place(text, (__u64)row->tgid);
		text_literal(text, "\n");
	}
	for (unsigned int i = 0; i < BUDGET_ROWS && closing->budget.sites[i].added > 0; i++) {
		const struct summary_budget_row *row = &closing->budget.sites[i];

		text_literal(text, "budget: about ");
		add_percent(text, closing->budget.added > 0 ? row->added / closing->budget.added * 100 : 0);
		text_literal(text, " of that for ");
		text_terminal(text, row->function, strlen(row->function), 0);
		add_place(text, (__u64)row->tgid);
		text_literal(text, ": ");
		text_unsigned(text, (__u64)row->hits);
		text_literal(text, " hits");
		if (row->hits > 0) {
			text_literal(text, " of ");
			add_time(text, row->added / row->hits);
		}
		if (*row->class) {
			text_literal(text, ", ");
			text_terminal(text, row->class, strlen(row->class), 0);
		}
		text_literal(text, "\n");
	}
}

static void add_budget(struct text *text, const struct model *model, const struct summary_closing *closing)
{
	const double time = closing->budget.time;

	if (closing->budget.percent > 0) {
		text_literal(text, "budget: ");
		text_real(text, closing->budget.percent);
	}
	if (closing->budget.percent > 0 && time > 0) {
		text_literal(text, " %; tracing took about ");
		add_percent(text, (closing->budget.added + closing->budget.collector) / time * 100);
		text_literal(text, " of the CPU time of the targets (");
		add_percent(text, closing->budget.added / time * 100);
		text_literal(text, " in them, ");
		add_percent(text, closing->budget.collector / time * 100);
		text_literal(text, " collector)\n");
	} else if (closing->budget.percent > 0) {
		text_literal(text, " %; the targets took no CPU time\n");
	}
	add_changes(text, model, begin_of(model, closing));
	if (closing->budget.percent <= 0)
		return;
	add_budget_rows(text, closing);
	text_literal(text,
		     "budget: measured: hits times the cost of a probe of its kind on this machine, with caches ");
	add_percent(text, closing->budget.coldness * 100);
	text_literal(text, " cold (0 %: warm; 100 %: 2 MB displaced before each)\n");
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
	add_budget(&text, model, closing);
	if (!error)
		add_tracing(&text, &programs);
	summary_rows_free(&programs);
	return columns_print_text(&text, out) ?: error;
}
