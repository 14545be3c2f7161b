/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/totals.h"

#include <errno.h>
#include <stdlib.h>

#include "base/core/vec.h"
#include "model/stats/statistics.h"

void totals_init(struct totals *totals, struct event_dispatch *events, struct processes *processes)
{
	*totals = (struct totals){ .events = events, .processes = processes };
}

static void total_free(struct total *total)
{
	statistics_free(total->duration);
	free(total);
}

void totals_free(struct totals *totals)
{
	size_t i;

	for (i = 0; i < totals->count; i++)
		total_free(totals->all[i]);
	free(totals->all);
	map_free(&totals->map);
}

static struct total *total_find(const struct totals *totals, const struct process *process, unsigned int function)
{
	struct map_node *node = map_find(&totals->map, process->view.sort_index, function);

	return node ? container_of(node, struct total, node) : NULL;
}

static struct total *total_add(struct totals *totals, struct process *process, const struct model_function *function)
{
	struct total *total;

	if (vec_reserve(totals->all, totals->count))
		return NULL;
	total = calloc(1, sizeof(*total));
	if (!total)
		return NULL;
	total->process = process;
	total->view.function = function;
	total->view.process = &process->view;
	if (map_add(&totals->map, &total->node, process->view.sort_index, function->index)) {
		free(total);
		return NULL;
	}
	totals->all[totals->count++] = total;
	return total;
}

struct total *totals_get(struct totals *totals, struct process *process, const struct function *function, __u64 time)
{
	struct total *total = total_find(totals, process, function->view.index);

	if (total)
		return total;
	if (totals->count >= MODEL_CALL_TOTALS_MAX) {
		event_dispatch_lose(totals->events, XPT_LOSS_NAMES, 1, time);
		process = processes_others(totals->processes);
		total = process ? total_find(totals, process, function->view.index) : NULL;
	}
	return total || !process ? total : total_add(totals, process, &function->view);
}

int total_record(struct total *total, const struct event_call *call)
{
	total->view.recorded++;
	if (call->outcome == OUTCOME_FAILED)
		total->view.errors++;
	else if (call->outcome != OUTCOME_PENDING)
		total->view.bytes += call->size;
	if (call->no_end)
		return 0;
	return statistics_record(&total->duration, &total->view.duration, call->end - call->start);
}

static void total_fold(struct total *total, struct total *into)
{
	into->view.recorded += total->view.recorded;
	into->view.errors += total->view.errors;
	into->view.bytes += total->view.bytes;
	count_add(&into->view.total, &total->view.total);
	into->view.total_known |= total->view.total_known;
	statistics_fold(&into->duration, &into->view.duration, &total->duration);
}

void totals_forget_processes(struct totals *totals)
{
	struct process *others = processes_others(totals->processes);
	size_t i, count = totals->count, kept = 0;
	struct total *total, *into;

	for (i = 0; i < count; i++) {
		total = totals->all[i];
		if (!total->process->forgotten)
			continue;
		into = others ? total_find(totals, others, total->view.function->index) : NULL;
		if (!into && others)
			into = total_add(totals, others, total->view.function);
		if (into)
			total_fold(total, into);
		map_remove(&totals->map, &total->node);
		total_free(total);
		totals->all[i] = NULL;
	}
	for (i = 0; i < totals->count; i++)
		if (totals->all[i])
			totals->all[kept++] = totals->all[i];
	totals->count = kept;
}

/* ---- what the kernel has counted ---- */

static const struct xpt_program_count zero;

bool count_is_zero(const struct xpt_program_count *count)
{
	return !(count->calls | count->left_out | count->lost | count->layers);
}

void count_add(struct xpt_program_count *into, const struct xpt_program_count *from)
{
	into->calls += from->calls;
	into->left_out += from->left_out;
	into->lost += from->lost;
	into->layers += from->layers;
}

static bool count_covers(const struct xpt_program_count *count, const struct xpt_program_count *part)
{
	return count->calls >= part->calls && count->left_out >= part->left_out && count->lost >= part->lost &&
	       count->layers >= part->layers;
}

static __u64 rest(__u64 number, __u64 part)
{
	return number > part ? number - part : 0;
}

static struct xpt_program_count count_rest(const struct xpt_program_count *count, const struct xpt_program_count *part)
{
	return (struct xpt_program_count){
		.calls = rest(count->calls, part->calls),
		.left_out = rest(count->left_out, part->left_out),
		.lost = rest(count->lost, part->lost),
		.layers = rest(count->layers, part->layers),
	};
}

/* What was reported before may be in another generation's total: there it stays. */
static void count_replace(struct xpt_program_count *total, const struct xpt_program_count *reported,
			  const struct xpt_program_count *count, struct xpt_program_count *delta)
{
	const struct xpt_program_count excess = count_rest(reported, count);

	*delta = count_rest(count, reported);
	count_add(total, delta);
	*total = count_rest(total, &excess);
}

bool counting_read(struct counting *counting, const struct xpt_record_count *record, struct xpt_program_count *total,
		   struct xpt_program_count *delta)
{
	if (record->since < counting->cut || record->since < counting->since)
		return false;
	if (record->since > counting->since) {
		counting->since = record->since;
		if (counting_open(counting))
			counting->earlier = counting->running;
		counting->running = zero;
	}
	if (!count_covers(&record->count, &counting->running))
		return false;
	count_replace(total, &counting->running, &record->count, delta);
	counting->running = record->count;
	return true;
}

void counting_end(struct counting *counting, const struct xpt_record_total *record, struct xpt_program_count *total,
		  struct xpt_program_count *delta)
{
	const __u64 time = record->header.time;

	/* One that comes late is of the counting before. */
	if (time <= counting->since) {
		count_replace(total, &counting->earlier, &record->count, delta);
	} else {
		count_replace(total, &counting->running, &record->count, delta);
		counting->running = zero;
	}
	counting->earlier = zero;
	if (time > counting->cut)
		counting->cut = time;
}

/* ---- batches of tokens ---- */

struct tokens {
	struct model_tokens view;
	struct statistics *first_token, *output_token;
	/* The call before: */
	__u64 start, end, number;
	enum model_phase phase;
	__u64 prompt; /* when its prompt began; 0: not known, or output is being generated */
};

/*
 * A batch in which the first two tokens are of different sequences has one of each: they are decoded together. Prompts
 * begin at position 0; one token alone at another position is output, unless it is the first that the context gets at
 * all.
 */
static enum model_phase phase_of(const struct model_program *program, const struct event_call *call)
{
	if (call_has(call, XPT_MEANING_POSITION) && !(__s32)call->position)
		return PHASE_PREFILL;
	if (program->loaded && call->numbered && !call->number)
		return PHASE_PREFILL;
	if (call->tokens == 1)
		return PHASE_DECODE;
	if (call_has(call, XPT_MEANING_SEQUENCE) && call_has(call, XPT_MEANING_NEXT_SEQUENCE) &&
	    call->sequence != call->next_sequence)
		return PHASE_DECODE;
	return PHASE_PREFILL;
}

/* The token of the batch before is there, since it is in this one. */
static int batch_follow(struct tokens *tokens, struct event_call *call)
{
	__u64 between = call->start - tokens->start;

	tokens->view.phase[tokens->phase].time += between - (tokens->end - tokens->start);
	if (tokens->phase == PHASE_DECODE) {
		call->output_token = between;
		return statistics_record(&tokens->output_token, &tokens->view.output_token, between);
	}
	if (!tokens->prompt)
		return 0;
	call->first_token = call->start - tokens->prompt;
	return statistics_record(&tokens->first_token, &tokens->view.first_token, call->first_token);
}

/* When the prompt began that this batch is of; 0: not known, or it is of none. One at another position continues, or is the next turn. */
static __u64 prompt_of(const struct tokens *tokens, const struct event_call *call, bool consecutive)
{
	bool at_position = call_has(call, XPT_MEANING_POSITION) && (__s32)call->position;
	bool begins = call_has(call, XPT_MEANING_POSITION) && !at_position;

	if (call->phase == PHASE_DECODE || (at_position && !consecutive))
		return 0;
	return consecutive && tokens->phase == PHASE_PREFILL && !begins ? tokens->prompt : call->start;
}

int tokens_call(struct tokens **result, const struct model_program *program, struct event_call *call)
{
	struct tokens *tokens = *result;
	struct model_phase_total *total;
	bool consecutive;
	int error = 0;

	if (!call_has(call, XPT_MEANING_TOKENS) || call->layer || call->no_end || (__s64)call->tokens <= 0)
		return 0;
	if (call->outcome != OUTCOME_OK && call->outcome != OUTCOME_NONE) {
		/* It may be tried again with a smaller batch. */
		if (tokens && call->numbered && call->number == tokens->number + 1)
			tokens->number++;
		return 0;
	}
	call->phase = phase_of(program, call);
	if (!tokens)
		tokens = *result = calloc(1, sizeof(*tokens));
	if (!tokens)
		return -ENOMEM;
	consecutive = tokens->phase && call->start >= tokens->end &&
		      (!call->numbered || call->number == tokens->number + 1);
	if (consecutive && call->phase == PHASE_DECODE)
		error = batch_follow(tokens, call);
	tokens->prompt = prompt_of(tokens, call, consecutive);
	total = &tokens->view.phase[call->phase];
	total->batches++;
	total->tokens += call->tokens;
	total->time += call->end - call->start;
	tokens->start = call->start;
	tokens->end = call->end;
	tokens->number = call->number;
	tokens->phase = call->phase;
	return error;
}

void tokens_fold(struct tokens **from, struct tokens **into)
{
	if (!*from)
		return;
	if (!*into) {
		*into = *from;
		*from = NULL;
		(*into)->phase = PHASE_NONE;
		return;
	}
	for (int i = 0; i < PHASES; i++) {
		(*into)->view.phase[i].batches += (*from)->view.phase[i].batches;
		(*into)->view.phase[i].tokens += (*from)->view.phase[i].tokens;
		(*into)->view.phase[i].time += (*from)->view.phase[i].time;
	}
	statistics_fold(&(*into)->first_token, &(*into)->view.first_token, &(*from)->first_token);
	statistics_fold(&(*into)->output_token, &(*into)->view.output_token, &(*from)->output_token);
}

const struct model_tokens *tokens_view(const struct tokens *tokens)
{
	return tokens ? &tokens->view : NULL;
}

void tokens_free(struct tokens *tokens)
{
	if (!tokens)
		return;
	statistics_free(tokens->first_token);
	statistics_free(tokens->output_token);
	free(tokens);
}
