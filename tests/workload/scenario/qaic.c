/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Qualcomm Cloud AI: every program on a device of its own, with one execution object a thread; enqueue, then wait.
 */
#include <stdlib.h>

#include "workload.h"

#define THREADS_MAX 64

#define FUNCTIONS(X)                                                                                                \
	X(qaicCreateContext, int, void **, const void *, uint32_t, const int32_t *, void *, void *, void *, void *) \
	X(qaicReleaseContext, int, void *)                                                                          \
	X(qaicOpenQpc, int, void **, const uint8_t *, size_t, bool)                                                 \
	X(qaicCloseQpc, int, void *)                                                                                \
	X(qaicCreateProgram, int, void *, void **, const void *, int32_t, const char *, void *)                     \
	X(qaicLoadProgram, int, void *)                                                                             \
	X(qaicRunActivationCmd, int, void *, int)                                                                   \
	X(qaicUnloadProgram, int, void *)                                                                           \
	X(qaicReleaseProgram, int, void *)                                                                          \
	X(qaicCreateQueue, int, void *, void **, const void *, int32_t)                                             \
	X(qaicReleaseQueue, int, void *)                                                                            \
	X(qaicCreateExecObj, int, void *, void **, const void *, void *, const void *)                              \
	X(qaicReleaseExecObj, int, void *)                                                                          \
	X(qaicEnqueueExecObj, int, void *, void *, void *)                                                          \
	X(qaicExecObjWaitForCompletion, int, void *, uint32_t)

#ifdef WORKLOAD_LINKED
FUNCTIONS(DECLARE_FUNCTION)
#endif

struct functions {
	FUNCTIONS(DECLARE_POINTER)
};

struct qaic_run {
	struct run run;
	struct functions functions;
	void *context;
	void *qpc;
	void *programs[PROGRAMS_MAX];
	void *queues[PROGRAMS_MAX];
	void *execs[PROGRAMS_MAX][THREADS_MAX];
	uint8_t code[4096];
};

static bool qaic_bind(struct run *run, void *library)
{
	struct functions *functions = &((struct qaic_run *)run)->functions;
	bool complete = true;

	(void)library;
	FUNCTIONS(BIND_POINTER)
	return complete;
}

static void program_begin(struct qaic_run *qaic, unsigned int i)
{
	struct functions *functions = &qaic->functions;
	struct ledger *ledger = qaic->run.ledger;
	const char *name = program_name("cloud", i, qaic->run.round);

	CALL(qaicCreateProgram, (qaic->context, &qaic->programs[i], NULL, 100 + i, name, qaic->qpc), .program = name,
	     .handle = SOME(qaic->programs[i]), .core = SOME(100 + i));
	CALL(qaicLoadProgram, (qaic->programs[i]));
	CALL(qaicRunActivationCmd, (qaic->programs[i], 0));
	CALL(qaicCreateQueue, (qaic->context, &qaic->queues[i], NULL, 100 + i));
	for (unsigned int t = 0; t < qaic->run.options->threads; t++)
		CALL(qaicCreateExecObj, (qaic->context, &qaic->execs[i][t], NULL, qaic->programs[i], NULL),
		     .program = name, .handle = SOME(qaic->execs[i][t]));
}

static void qaic_begin(struct run *run)
{
	struct qaic_run *qaic = (struct qaic_run *)run;
	struct functions *functions = &qaic->functions;
	struct ledger *ledger = run->ledger;
	int32_t id = 100;

	CALL(qaicCreateContext, (&qaic->context, NULL, 1, &id, NULL, NULL, NULL, NULL));
	CALL(qaicOpenQpc, (&qaic->qpc, qaic->code, sizeof(qaic->code), true), .size = SOME(sizeof(qaic->code)));
	for (unsigned int i = 0; i < run->options->programs; i++)
		program_begin(qaic, i);
}

static void qaic_execute(struct worker *worker, unsigned long number)
{
	struct qaic_run *qaic = (struct qaic_run *)worker->run;
	struct functions *functions = &qaic->functions;
	struct ledger *ledger = worker->ledger;
	unsigned int i = number % worker->run->options->programs;
	const char *name = program_name("cloud", i, worker->run->round);
	void *exec = qaic->execs[i][worker->index];
	uint64_t start = clock_now();

	if (CALL(qaicEnqueueExecObj, (qaic->queues[i], exec, NULL), .program = name, .handle = SOME(exec),
		 .stream = SOME(qaic->queues[i])) != 0)
		return;
	CALL(qaicExecObjWaitForCompletion, (exec, 60000000));
	workload_inference(ledger, "qaicEnqueueExecObj", name, (uintptr_t)exec, start);
}

/* Not in the ledger: the engine counts. */
static void qaic_churn(struct worker *worker, const char *name, unsigned int runs)
{
	struct qaic_run *qaic = (struct qaic_run *)worker->run;
	struct functions *functions = &qaic->functions;
	void *program, *queue, *exec;

	if (functions->qaicCreateProgram(qaic->context, &program, NULL, 100, name, qaic->qpc) != 0 ||
	    functions->qaicCreateQueue(qaic->context, &queue, NULL, 100) != 0 ||
	    functions->qaicCreateExecObj(qaic->context, &exec, NULL, program, NULL) != 0)
		abort();
	for (unsigned int i = 0; i < runs; i++)
		if (functions->qaicEnqueueExecObj(queue, exec, NULL) == 0)
			functions->qaicExecObjWaitForCompletion(exec, 60000000);
	functions->qaicReleaseExecObj(exec);
	functions->qaicReleaseQueue(queue);
	functions->qaicReleaseProgram(program);
}

static void qaic_end(struct run *run)
{
	struct qaic_run *qaic = (struct qaic_run *)run;
	struct functions *functions = &qaic->functions;
	struct ledger *ledger = run->ledger;

	for (unsigned int i = 0; i < run->options->programs; i++) {
		for (unsigned int t = 0; t < run->options->threads; t++)
			CALL(qaicReleaseExecObj, (qaic->execs[i][t]), .handle = SOME(qaic->execs[i][t]));
		CALL(qaicReleaseQueue, (qaic->queues[i]));
		CALL(qaicRunActivationCmd, (qaic->programs[i], 1));
		CALL(qaicUnloadProgram, (qaic->programs[i]));
		CALL(qaicReleaseProgram, (qaic->programs[i]), .handle = SOME(qaic->programs[i]));
	}
	CALL(qaicCloseQpc, (qaic->qpc));
	CALL(qaicReleaseContext, (qaic->context));
}

const struct scenario scenario_qaic = {
	.runtime = "qaic",
	.library = "libQAic.so",
	.run_size = sizeof(struct qaic_run),
	.bind = qaic_bind,
	.load = qaic_begin,
	.execute = qaic_execute,
	.unload = qaic_end,
	.churn = qaic_churn,
};
