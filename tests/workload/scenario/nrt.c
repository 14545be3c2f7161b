/* SPDX-License-Identifier: BSD-2-Clause */
/* AWS Neuron: even executions are synchronous, odd ones asynchronous; tensors are written before and read after. */
#include <stdlib.h>
#include <time.h>

#include "workload.h"

#define TENSOR_BYTES 4096
#define NEFF_NAME 0xdc /* of a NEFF's header: the model's name */

#define FUNCTIONS(X)                                                                                      \
	X(nrt_init, int, int, const char *, const char *)                                                 \
	X(nrt_close, void, void)                                                                          \
	X(nrt_load, int, const void *, size_t, int32_t, int32_t, void **)                                 \
	X(nrt_load_collectives, int, const void *, size_t, int32_t, int32_t, uint32_t, uint32_t, void **) \
	X(nrt_unload, int, void *)                                                                        \
	X(nrt_execute, int, void *, const void *, void *)                                                 \
	X(nrt_tensor_allocate, int, int, int, size_t, const char *, void **)                              \
	X(nrt_tensor_free, void, void **)                                                                 \
	X(nrt_tensor_read, int, const void *, void *, size_t, size_t)                                     \
	X(nrt_tensor_write, int, void *, const void *, size_t, size_t)                                    \
	X(nrt_tensor_copy, int, const void *, size_t, void *, size_t, size_t)                             \
	X(nrta_execute_schedule, int, void *, const void *, void *, int, int *, uint64_t *)               \
	X(nrta_tensor_write, int, void *, const void *, size_t, size_t, int, int *, uint64_t *)           \
	X(nrta_tensor_read, int, void *, void *, size_t, size_t, int, int *, uint64_t *)                  \
	X(nrta_tensor_copy, int, void *, size_t, void *, size_t, size_t, int, int *, uint64_t *)          \
	X(nrta_is_completed, int, uint64_t, bool *)

#ifdef WORKLOAD_LINKED
FUNCTIONS(DECLARE_FUNCTION)
#endif

struct functions {
	FUNCTIONS(DECLARE_POINTER)
};

struct nrt_run {
	struct run run;
	struct functions functions;
	void *models[PROGRAMS_MAX];
	void *tensors[PROGRAMS_MAX];
	uint8_t neff[2048];
	uint8_t data[TENSOR_BYTES];
};

static bool nrt_bind(struct run *run, void *library)
{
	struct functions *functions = &((struct nrt_run *)run)->functions;
	bool complete = true;

	(void)library;
	FUNCTIONS(BIND_POINTER)
	return complete;
}

static void nrt_begin(struct run *run)
{
	struct nrt_run *nrt = (struct nrt_run *)run;
	struct functions *functions = &nrt->functions;
	struct ledger *ledger = run->ledger;

	CALL(nrt_init, (1, "2.0", "2.0"));
	for (unsigned int i = 0; i < run->options->programs; i++) {
		const char *name = program_name("neuron", i, run->round);
		size_t size = 1024 + i; /* header, and a payload of another size for each */

		snprintf((char *)nrt->neff + NEFF_NAME, 256, "%s", name);
		if (i % 2)
			CALL(nrt_load_collectives, (nrt->neff, size, i, -1, 0, 2, &nrt->models[i]), .program = name,
			     .handle = SOME(nrt->models[i]), .size = SOME(size), .core = SOME(i));
		else
			CALL(nrt_load, (nrt->neff, size, i, -1, &nrt->models[i]), .program = name,
			     .handle = SOME(nrt->models[i]), .size = SOME(size), .core = SOME(i));
		CALL(nrt_tensor_allocate, (0, i, TENSOR_BYTES + i, "tensor", &nrt->tensors[i]),
		     .size = SOME(TENSOR_BYTES + i), .core = SOME(i));
	}
}

static void execute_async(struct worker *worker, void *model, const char *name)
{
	struct functions *functions = &((struct nrt_run *)worker->run)->functions;
	struct ledger *ledger = worker->ledger;
	uint64_t sequence, start = clock_now();
	struct timespec pause = { .tv_nsec = 20000 };
	bool completed = false;
	int error;

	if (CALL(nrta_execute_schedule, (model, NULL, NULL, 0, &error, &sequence), .program = name,
		 .handle = SOME(model)) != 0)
		return;
	for (;;) {
		CALL(nrta_is_completed, (sequence, &completed));
		if (completed)
			break;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	workload_inference(ledger, "nrta_execute_schedule", name, (uintptr_t)model, start);
}

static void nrt_execute_one(struct worker *worker, unsigned long number)
{
	struct nrt_run *nrt = (struct nrt_run *)worker->run;
	struct functions *functions = &nrt->functions;
	struct ledger *ledger = worker->ledger;
	unsigned int i = number / 2 % worker->run->options->programs;
	const char *name = program_name("neuron", i, worker->run->round);
	uint64_t sequence;
	int error;

	CALL(nrt_tensor_write, (nrt->tensors[i], nrt->data, 0, 512 + i), .size = SOME(512 + i));
	if (number % 2)
		execute_async(worker, nrt->models[i], name);
	else
		CALL(nrt_execute, (nrt->models[i], NULL, NULL), .program = name, .handle = SOME(nrt->models[i]));
	if (number % 8 == 7) {
		CALL(nrta_tensor_write, (nrt->tensors[i], nrt->data, 0, 100 + i, 0, &error, &sequence),
		     .size = SOME(100 + i));
		CALL(nrta_tensor_copy, (nrt->tensors[i], 0, nrt->tensors[i], 0, 200 + i, 0, &error, &sequence),
		     .size = SOME(200 + i));
		CALL(nrta_tensor_read, (nrt->data, nrt->tensors[i], 0, 300 + i, 0, &error, &sequence),
		     .size = SOME(300 + i));
	}
	CALL(nrt_tensor_read, (nrt->tensors[i], nrt->data, 8, 256 + i), .size = SOME(256 + i));
}

/* Not in the ledger: the engine counts. */
static void nrt_churn(struct worker *worker, const char *name, unsigned int runs)
{
	struct functions *functions = &((struct nrt_run *)worker->run)->functions;
	struct timespec pause = { .tv_nsec = 20000 };
	char neff[1024] = { 0 };
	uint64_t sequence;
	bool completed;
	void *model;
	int error;

	snprintf(neff + NEFF_NAME, 256, "%s", name);
	if (functions->nrt_load(neff, sizeof(neff), 0, -1, &model) != 0)
		abort();
	for (unsigned int i = 0; i < runs; i++) {
		if (i % 2 == 0) {
			functions->nrt_execute(model, NULL, NULL);
			continue;
		}
		if (functions->nrta_execute_schedule(model, NULL, NULL, 0, &error, &sequence) != 0)
			continue;
		for (;;) {
			functions->nrta_is_completed(sequence, &completed);
			if (completed)
				break;
			clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		}
	}
	functions->nrt_unload(model);
}

static void nrt_end(struct run *run)
{
	struct nrt_run *nrt = (struct nrt_run *)run;
	struct functions *functions = &nrt->functions;
	struct ledger *ledger = run->ledger;

	for (unsigned int i = 0; i < run->options->programs; i++) {
		CALL_NO_STATUS(nrt_tensor_free, (&nrt->tensors[i]));
		CALL(nrt_unload, (nrt->models[i]), .handle = SOME(nrt->models[i]));
	}
	CALL_NO_STATUS(nrt_close, ());
}

const struct scenario scenario_nrt = {
	.runtime = "nrt",
	.library = "libnrt.so.1",
	.run_size = sizeof(struct nrt_run),
	.bind = nrt_bind,
	.load = nrt_begin,
	.execute = nrt_execute_one,
	.unload = nrt_end,
	.churn = nrt_churn,
};
