/* SPDX-License-Identifier: BSD-2-Clause */
/* The structs that llama.cpp's functions take by value, and so find on the stack. */
#ifndef STANDIN_LLAMA_H
#define STANDIN_LLAMA_H

#include <stdbool.h>
#include <stdint.h>

struct llama_model_params {
	void *devices;
	int32_t n_gpu_layers;
	int32_t split_mode;
	int32_t main_gpu;
	bool flags[8];
};

struct llama_context_params {
	uint32_t n_ctx;
	uint32_t n_batch;
	uint32_t n_ubatch;
	uint32_t n_seq_max;
	int32_t n_threads;
	int32_t n_threads_batch;
};

struct llama_batch {
	int32_t n_tokens;
	int32_t *token;
	float *embd;
	int32_t *pos;
	int32_t *n_seq_id;
	int32_t **seq_id;
	int8_t *logits;
};

#endif
