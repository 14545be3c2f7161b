/* SPDX-License-Identifier: BSD-2-Clause */
/* What the scenarios of the runtimes and the program around them have between them. */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <pthread.h>
#include <stddef.h>

#include "ledger.h"

struct options {
	const char *runtime;
	const char *libraries[8]; /* --library; none: the stand-in beside the program */
	size_t library_count;
	unsigned int threads;
	unsigned long calls; /* executions by each thread; 0: until SIGTERM */
	unsigned int programs;
	unsigned int forks;
	double rate; /* executions per second by each thread; 0: no pause */
	bool wait_for_go;
	bool late_dlopen; /* after the go */
	bool load_first;  /* programs are loaded before the go */
	bool reload;	  /* afterwards: release, load under other names, run again */
	bool resolve;	  /* use addresses that the runtime hands out */
	bool callbacks;	  /* no waits: the runtime calls back when an execution has ended */
	bool exec;
	bool crash;
	bool linger; /* after the result, until a line comes on standard input */
	bool log_times;
	unsigned int churn; /* programs loaded, run and unloaded in a second by all threads together; 0: none */
	unsigned int seconds;
	const char *names;  /* --names: a file with names that end in NUL */
	const char *device; /* --device: of the accelerator that executes */
};

/* One runtime library in use. Each scenario has a struct that begins with this one. */
struct run {
	const struct options *options;
	struct ledger *ledger; /* of the main thread */
	unsigned int round;    /* 0, and 1 after a reload */
	uint8_t *churned;      /* runs of each program that has come and gone */
};

/* One thread that calls. */
struct worker {
	struct run *run;
	struct ledger *ledger;
	unsigned int index;
	int tid;
	uint64_t next; /* time of the next execution, with --rate */
	struct span *spans;
	size_t span_count, span_limit;
};

/* When an execution began and ended, ns of CLOCK_MONOTONIC; with what belongs to it. */
struct span {
	uint64_t start, end;
};

struct scenario {
	const char *runtime;
	const char *library; /* file name of the stand-in */
	size_t run_size;     /* of the scenario's struct run */
	/* library NULL: linked in. Returns false after saying what is missing. */
	bool (*bind)(struct run *run, void *library);
	void (*load)(struct run *run);				      /* programs, by the main thread */
	void (*execute)(struct worker *worker, unsigned long number); /* once, and what belongs to it */
	void (*unload)(struct run *run);
	/* Loads a program of its own, runs it and unloads it. NULL: the scenario has no such thing. */
	void (*churn)(struct worker *worker, const char *name, unsigned int runs);
};

extern const struct scenario scenario_nrt, scenario_qaic, scenario_vaccel, scenario_hip, scenario_cuda, scenario_cudart,
	scenario_pjrt, scenario_llama, scenario_hostile;

/*
 * A scenario calls its runtime through a struct of pointers named functions, filled by bind from dlsym(), or, when the
 * program is built with WORKLOAD_LINKED, from the symbols themselves. FUNCTIONS(X) lists X(name, result, parameters).
 */
#define DECLARE_POINTER(name, result, ...) result (*name)(__VA_ARGS__);
#define DECLARE_FUNCTION(name, result, ...) result name(__VA_ARGS__);
#ifdef WORKLOAD_LINKED
#define BIND_POINTER(name, result, ...) (functions)->name = name;
#else
#define BIND_POINTER(name, result, ...) (functions)->name = workload_symbol(library, #name, &complete);
#endif

void *workload_symbol(void *library, const char *name, bool *complete);

/*
 * Calls a function, notes it with its return value as status and the given fields (evaluated after the call), and
 * yields the return value. There must be variables functions and ledger.
 */
#define CALL(name, arguments, ...)                                                                               \
	({                                                                                                       \
		uint64_t start_ = clock_now();                                                                   \
		__auto_type result_ = functions->name arguments;                                                 \
		struct call call_ = { .function = #name, .start = start_, .nanoseconds = clock_now() - start_ }; \
		call_.status = SOME(result_);                                                                    \
		workload_note(ledger, &call_, &(struct call){ __VA_ARGS__ });                                    \
		result_;                                                                                         \
	})

/* The same for functions whose return value is not a status: the value is dropped or goes where keep says. */
#define CALL_NO_STATUS(name, arguments, ...)                                                                     \
	do {                                                                                                     \
		uint64_t start_ = clock_now();                                                                   \
		functions->name arguments;                                                                       \
		struct call call_ = { .function = #name, .start = start_, .nanoseconds = clock_now() - start_ }; \
		workload_note(ledger, &call_, &(struct call){ __VA_ARGS__ });                                    \
	} while (0)

#define CALL_HANDLE(result, name, arguments, ...)                                                                \
	do {                                                                                                     \
		uint64_t start_ = clock_now();                                                                   \
		result = functions->name arguments;                                                              \
		struct call call_ = { .function = #name, .start = start_, .nanoseconds = clock_now() - start_ }; \
		workload_note(ledger, &call_, &(struct call){ __VA_ARGS__ });                                    \
	} while (0)

/* Adds what fields has to call, and enters it. */
void workload_note(struct ledger *ledger, struct call *call, const struct call *fields);
/* An asynchronous inference that began at start has ended now. */
void workload_inference(struct ledger *ledger, const char *function, const char *program, uint64_t handle,
			uint64_t start);

/* "model-0.0": of program number index in this round; static storage. */
const char *program_name(const char *prefix, unsigned int index, unsigned int round);

const struct scenario *scenario_find(const char *runtime); /* ends the program when there is none */

/* churn.c: programs that come and go; number counts them, over all threads. */
void churn_prepare(struct run *run);
void churn_one(struct worker *worker, unsigned long number);
/* ,"churn":{"names":N,"runs":[N,...]}: by number, how often the program was run; names: of those given, 0: none */
void churn_print(const struct run *run, FILE *out);

#define PROGRAMS_MAX 16
#define ROUNDS_MAX 2

#endif
