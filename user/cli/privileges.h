/* SPDX-License-Identifier: BSD-2-Clause */
/* What root's rights are reduced to before anything of a target is looked at. */
#ifndef XPT_CLI_PRIVILEGES_H
#define XPT_CLI_PRIVILEGES_H

#include <stdio.h>

#include <xputrace/recording.h>

/*
 * Gives up all capabilities but those that tracing needs with links of this kind; a command that root runs gets them all back by
 * exec. Without root's user ID nothing is changed. The reason why it failed is a warning.
 */
void privileges_reduce(enum xpt_link link);

/*
 * The same once all counters and outputs are open: what is left is to read in /proc what drivers report for each process that has
 * opened a device.
 */
void privileges_reduce_to_counting(void);

/* Names them, and what each is for. */
void privileges_print(FILE *out);

#endif
