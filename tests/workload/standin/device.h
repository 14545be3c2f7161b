/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The accelerator that the stand-in runtimes drive: a worker thread that executes jobs in the order of their submission,
 * and the objects behind the runtimes' handles. Every stand-in library carries a copy of its own.
 *
 * Environment, read at the first use: STANDIN_DURATION_US, how long one job takes (default 20); STANDIN_FAIL_EVERY,
 * every so many executions fails (default 0: none); STANDIN_SLOW, the number of a job, from 1, that takes 100 ms longer
 * (default 0: none). Executions can also be given to a driver: see accelerator.h.
 */
#ifndef STANDIN_DEVICE_H
#define STANDIN_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Everything else is hidden, as in the vendors' libraries. */
#define STANDIN_API __attribute__((visibility("default")))

/* Takes one slot of a fixed table, the first free one: a handle that is released is the next to be given out again. */
struct object {
	bool used;
	int core;	      /* device, core or partition it lives on */
	uint64_t last;	      /* sequence number of the last job submitted for it */
	struct object *other; /* what it was made from */
	uint64_t value;
};

struct object *object_new(void); /* NULL: table full */
void object_free(struct object *object);
/* Those that were made from object. */
void object_free_offspring(const struct object *object);

/* Sequence number of the new job, from 1. */
uint64_t device_submit(void);
bool device_done(uint64_t sequence);
/* 0, or how the accelerator says that it has failed. */
int device_wait(uint64_t sequence);
/* The last job that was submitted. */
uint64_t device_last(void);
/* Submits a job and waits for it. */
void device_run(void);
/* Submits one execution of a program: to the accelerator, if there is one; else as one job of the worker thread. */
uint64_t device_launch(void);

/* Counts one execution and says whether it is one that fails. */
bool device_fails(void);

/*
 * Every stand-in tells of the code objects that it is given, before it does anything with them, to a function that the
 * program may have: bool standin_code_given(const void *bytes). That may destroy the bytes, which are not looked at any
 * more, and says whether the load succeeds. Without it all do. bytes: NULL where a file was given.
 */
bool code_given(const void *bytes);

#endif
