/* SPDX-License-Identifier: BSD-2-Clause */
/* Language models: which batches take a prompt in, which give a token more to each of their sequences, and how fast. */
#ifndef XPT_MODEL_STATS_TOKENS_H
#define XPT_MODEL_STATS_TOKENS_H

#include "model/stream/event.h"

struct tokens;

/*
 * A call of a program that has the number of its tokens: sets its phase, and the times that end with it. *result: of the program,
 * made with the first such call. -ENOMEM.
 */
int tokens_call(struct tokens **result, const struct model_program *program, struct event_call *call);
/* Moves what is known of one into another one. */
void tokens_fold(struct tokens **from, struct tokens **into);
const struct model_tokens *tokens_view(const struct tokens *tokens); /* NULL: none */
void tokens_free(struct tokens *tokens);

#endif
