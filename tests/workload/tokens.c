/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Serves prompts with llama.cpp (the stand-in): as servers do, with positions and sequences in the batch, and as simple programs do,
 * without. Prints a line of JSON for each batch that could be decoded: context, phase, tokens, and the time around the call.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "standin/llama.h"

#define TOKENS_MAX 64
#define SEQUENCES 3

void *llama_model_load_from_file(const char *path, struct llama_model_params params);
void *llama_init_from_model(void *model, struct llama_context_params params);
int llama_decode(void *context, struct llama_batch batch);
void llama_synchronize(void *context);
void llama_free(void *context);
void llama_model_free(void *model);

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void decode(void *context, const char *phase, struct llama_batch batch)
{
	uint64_t before = now(), after;
	int status = llama_decode(context, batch);

	after = now();
	llama_synchronize(context);
	if (status != (batch.n_tokens > TOKENS_MAX))
		exit(1);
	if (!status)
		printf("{\"context\":\"%p\",\"phase\":\"%s\",\"tokens\":%d,\"before\":%" PRIu64 ",\"after\":%" PRIu64
		       "}\n",
		       context, phase, batch.n_tokens, before, after);
}

/* One after the other of a sequence, from a position on. */
static void decode_sequence(void *context, const char *phase, int count, int position, int sequence)
{
	int32_t tokens[TOKENS_MAX + 1] = { 0 }, positions[TOKENS_MAX + 1], counts[TOKENS_MAX + 1];
	int32_t *sequences[TOKENS_MAX + 2] = { NULL };

	for (int i = 0; i < count; i++) {
		positions[i] = position + i;
		counts[i] = 1;
		sequences[i] = &sequence;
	}
	decode(context, phase,
	       (struct llama_batch){
		       .n_tokens = count, .token = tokens, .pos = positions, .n_seq_id = counts, .seq_id = sequences });
}

/* The next token of all sequences together. */
static void decode_all(void *context, int position)
{
	int32_t tokens[SEQUENCES] = { 0 }, positions[SEQUENCES], counts[SEQUENCES], numbers[SEQUENCES];
	int32_t *sequences[SEQUENCES + 1] = { NULL };

	for (int i = 0; i < SEQUENCES; i++) {
		positions[i] = position;
		counts[i] = 1;
		numbers[i] = i;
		sequences[i] = &numbers[i];
	}
	decode(context, "decode",
	       (struct llama_batch){ .n_tokens = SEQUENCES,
				     .token = tokens,
				     .pos = positions,
				     .n_seq_id = counts,
				     .seq_id = sequences });
}

static void serve(void *context)
{
	decode_sequence(context, "prefill", 40, 0, 0);
	decode_sequence(context, "prefill", 10, 40, 0);
	for (int i = 0; i < 5; i++)
		decode_sequence(context, "decode", 1, 50 + i, 0);
	/* The second turn of a conversation, and a batch that is too large in the middle. */
	decode_sequence(context, "prefill", 8, 55, 0);
	for (int i = 0; i < 3; i++)
		decode_sequence(context, "decode", 1, 63 + i, 0);
	decode_sequence(context, "none", TOKENS_MAX + 1, 0, 0);
	for (int i = 0; i < SEQUENCES; i++)
		decode_sequence(context, "prefill", 20, 0, i);
	for (int i = 0; i < 4; i++)
		decode_all(context, 20 + i);
	decode_sequence(context, "prefill", 1, 0, 0);
	decode_sequence(context, "decode", 1, 1, 0);
	decode_sequence(context, "decode", 1, 2, 0);
}

static void serve_simply(void *context)
{
	static const int counts[] = { 1, 1, 1, 1, 12, 1, 1 };
	int32_t tokens[TOKENS_MAX] = { 0 };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		decode(context, i == 0 || counts[i] > 1 ? "prefill" : "decode",
		       (struct llama_batch){ .n_tokens = counts[i], .token = tokens });
}

int main(void)
{
	void *model = llama_model_load_from_file("/models/tokens.gguf", (struct llama_model_params){ 0 });
	struct llama_context_params params = { .n_batch = TOKENS_MAX };
	void *contexts[] = { llama_init_from_model(model, params), llama_init_from_model(model, params) };

	serve(contexts[0]);
	serve_simply(contexts[1]);
	llama_free(contexts[0]);
	llama_free(contexts[1]);
	llama_model_free(model);
	return 0;
}
