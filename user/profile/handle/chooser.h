/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chosen programs of a recording: by name and handle, or by an expression. Selects the wanted inferences for the model,
 * and makes the kernel leave out the others as soon as one of them has been seen. Logic only: no kernel, no threads.
 */
#ifndef XPT_PROFILE_HANDLE_CHOOSER_H
#define XPT_PROFILE_HANDLE_CHOOSER_H

#include <xputrace/target.h>

#include "base/core/log.h"
#include "model/core/model.h"

struct chooser;

struct chooser_options {
	const struct log *log;
	/*
	 * The kernel's rate of one program: XPT_SAMPLE_NONE, or 0: that of all. seen: everything up to this time is
	 * known. Returns from which time on it holds, if it can hold: it is set again when something later is recorded
	 * all the same. NULL: no kernel side.
	 */
	__u64 (*set_sampling)(void *context, const struct model_program *program, __u32 sample_every, __u64 seen);
	void *context;
};

int chooser_create(const struct chooser_options *options, struct chooser **result); /* -ENOMEM */
void chooser_free(struct chooser *chooser);					    /* after the model */
/* The model asks it from here on; before the first record. -ENOSPC: it has too many sinks. */
int chooser_join(struct chooser *chooser, struct model *model);

/* Beside the model's chooser: follows the names of programs, and is queried by its creator. -ENOSPC as above. */
int chooser_follow(struct chooser *chooser, struct model *model);
bool chooser_wants(struct chooser *chooser, const struct model_program *program);

/* Chooses more. -EINVAL: neither name nor handle, or not an expression (logged); -ENOSPC, -ENOMEM. */
int chooser_add(struct chooser *chooser, const struct xpt_program_choice *choice);
int chooser_match(struct chooser *chooser, const char *expression);
/* What CHOICE and MATCH records choose; others are passed over. Errors as above. */
int chooser_record(struct chooser *chooser, const struct xpt_record_header *record);

/* In the order in which they were made; choice: the expression as name where *match is set. False: there are not so many. */
bool chooser_choice(const struct chooser *chooser, size_t index, struct xpt_program_choice *choice, bool *match);
bool chooser_met(const struct chooser *chooser, size_t index); /* a program that it is for was seen */

#endif
