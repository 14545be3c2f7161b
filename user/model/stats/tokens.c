/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stats/tokens.h"

#include <errno.h>
#include <stdlib.h>

#include "model/stats/statistics.h"

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
