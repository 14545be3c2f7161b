/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the programs that check themselves share: calls of the Neuron stand-in that are counted as they return, and a
 * function of the program that runs inside a call.
 *
 * Every program prints one line of JSON: "results" are the same in every run, "calls" what this process has made.
 */
#ifndef HARM_H
#define HARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NEFF_NAME 0xDC /* where the name of a model is in its bytes */
#define NEFF_SIZE 1024

struct object;

int nrt_load(const void *neff, size_t size, int32_t vnc, int32_t vnc_count, struct object **model);
int nrt_unload(struct object *model);
int nrt_execute(struct object *model, const void *inputs, void *outputs);
int nrt_tensor_write(struct object *tensor, const void *buffer, size_t offset, size_t size);

__attribute__((noreturn, format(printf, 1, 2))) void give_up(const char *format, ...);
uint64_t now(void); /* ns of CLOCK_MONOTONIC */
/* A model of size bytes, which stays: at least NEFF_SIZE. */
void *model_new(size_t size, unsigned int seed);

/* Calls of the runtime; false: it has failed. The bytes of load() are those of a small model. */
bool load(struct object **model);
bool load_bytes(const void *bytes, size_t size, struct object **model);
/* The runtime calls inside(argument) before it has done anything. */
bool load_around(void (*inside)(void *argument), void *argument, struct object **model);
bool execute(struct object *model);
bool unload(struct object *model);
bool write_tensor(void); /* a call that does nothing: takes no lock, may be made in a handler of signals */

/* Calls of this process that have returned: a child begins anew with calls_forget(). */
struct calls {
	_Atomic unsigned long load, execute, unload, write;
};

extern struct calls calls;
void calls_forget(void);
void calls_print(FILE *out); /* {"nrt_load":N,...} */

/* The line {"ready":true,"pid":N}, then one line from standard input. */
void wait_for_go(void);

#endif
