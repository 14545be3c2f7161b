/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stand-in for llama.cpp: names, argument positions and return values of libllama.so.0. Computes through the exported
 * functions of ggml, as the real one does.
 */
#include "llama.h"

#include <stddef.h>

#include "device.h"

#define NO_SLOT 1

int ggml_backend_sched_graph_compute_async(void *sched, void *graph);
void ggml_backend_sched_synchronize(void *sched);

STANDIN_API void *llama_model_load_from_file(const char *path, struct llama_model_params params)
{
	(void)params;
	return path ? object_new() : NULL;
}

STANDIN_API void llama_model_free(void *model)
{
	object_free(model);
}

STANDIN_API void *llama_init_from_model(void *model, struct llama_context_params params)
{
	struct object *context = model ? object_new() : NULL;

	if (context) {
		context->other = model;
		context->value = params.n_batch;
	}
	return context;
}

STANDIN_API void llama_free(void *context)
{
	object_free(context);
}

/* 0: done, 1: the batch does not fit (a warning, not an error), below 0: failed. */
STANDIN_API int llama_decode(void *context, struct llama_batch batch)
{
	struct object *used = context;

	if (batch.n_tokens <= 0)
		return -1;
	if ((uint64_t)batch.n_tokens > used->value)
		return NO_SLOT;
	if (ggml_backend_sched_graph_compute_async(context, batch.token))
		return -3;
	return 0;
}

STANDIN_API void llama_synchronize(void *context)
{
	ggml_backend_sched_synchronize(context);
}
