/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * llama.cpp, one context a program and thread. Every fourth batch is larger than the context (status 1, a warning). The
 * runtime calls ggml for the rest.
 */
#include "standin/llama.h"
#include "workload.h"

#define THREADS_MAX 64
#define CONTEXT_TOKENS 64

#define FUNCTIONS(X)                                                                   \
	X(llama_model_load_from_file, void *, const char *, struct llama_model_params) \
	X(llama_model_free, void, void *)                                              \
	X(llama_init_from_model, void *, void *, struct llama_context_params)          \
	X(llama_free, void, void *)                                                    \
	X(llama_decode, int, void *, struct llama_batch)                               \
	X(llama_synchronize, void, void *)

#ifdef WORKLOAD_LINKED
FUNCTIONS(DECLARE_FUNCTION)
#endif

struct functions {
	FUNCTIONS(DECLARE_POINTER)
};

struct llama_run {
	struct run run;
	struct functions functions;
	void *models[PROGRAMS_MAX];
	void *contexts[PROGRAMS_MAX][THREADS_MAX];
};

static bool llama_bind(struct run *run, void *library)
{
	struct functions *functions = &((struct llama_run *)run)->functions;
	bool complete = true;

	(void)library;
	FUNCTIONS(BIND_POINTER)
	return complete;
}

static void llama_begin(struct run *run)
{
	struct llama_run *llama = (struct llama_run *)run;
	struct functions *functions = &llama->functions;
	struct ledger *ledger = run->ledger;
	struct llama_model_params model_params = { 0 };
	struct llama_context_params context_params = { .n_batch = CONTEXT_TOKENS };

	for (unsigned int i = 0; i < run->options->programs; i++) {
		const char *name = program_name("/models/llama.gguf", i, run->round);

		CALL_HANDLE(llama->models[i], llama_model_load_from_file, (name, model_params), .program = name,
			    .handle = SOME(llama->models[i]));
		for (unsigned int t = 0; t < run->options->threads; t++)
			CALL_HANDLE(llama->contexts[i][t], llama_init_from_model, (llama->models[i], context_params),
				    .program = name, .handle = SOME(llama->contexts[i][t]));
	}
}

static void llama_execute(struct worker *worker, unsigned long number)
{
	struct llama_run *llama = (struct llama_run *)worker->run;
	struct functions *functions = &llama->functions;
	struct ledger *ledger = worker->ledger;
	unsigned int i = number % worker->run->options->programs;
	void *context = llama->contexts[i][worker->index];
	int tokens[1] = { 0 };
	struct llama_batch batch = { .n_tokens = number % 4 == 3 ? CONTEXT_TOKENS + 1 : 7, .token = tokens };

	CALL(llama_decode, (context, batch), .program = program_name("/models/llama.gguf", i, worker->run->round),
	     .handle = SOME(context));
	CALL_NO_STATUS(llama_synchronize, (context));
}

static void llama_end(struct run *run)
{
	struct llama_run *llama = (struct llama_run *)run;
	struct functions *functions = &llama->functions;
	struct ledger *ledger = run->ledger;

	for (unsigned int i = 0; i < run->options->programs; i++) {
		for (unsigned int t = 0; t < run->options->threads; t++)
			CALL_NO_STATUS(llama_free, (llama->contexts[i][t]), .handle = SOME(llama->contexts[i][t]));
		CALL_NO_STATUS(llama_model_free, (llama->models[i]), .handle = SOME(llama->models[i]));
	}
}

const struct scenario scenario_llama = {
	.runtime = "llama",
	.library = "libllama.so.0",
	.run_size = sizeof(struct llama_run),
	.bind = llama_bind,
	.load = llama_begin,
	.execute = llama_execute,
	.unload = llama_end,
};
