/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs are chosen by: names and handles, or an expression. */
#ifndef XPT_PROFILE_HANDLE_CHOICE_H
#define XPT_PROFILE_HANDLE_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <xputrace/stream.h>
#include <xputrace/target.h>

#include "base/core/log.h"
#include "model/core/model.h"
#include "profile/handle/program_index.h"

/* ---- choices ---- */

/* What was added to a stream and removed from it: of all that fit a program, the latest decides. */
struct choice;

struct choices {
	struct choice *all; /* oldest first */
	size_t count;
	size_t added; /* of count */
};

enum choice_answer {
	CHOICE_NONE, /* no choice for it */
	CHOICE_ADDED,
	CHOICE_REMOVED,
};

void choices_free(struct choices *choices);
bool choice_fits(const struct xpt_program_choice *choice, const struct identity *identity);
bool choice_is_region(const struct xpt_program_choice *choice); /* named as such: "region:NAME" */
enum choice_answer choices_decide(const struct choices *choices, const struct identity *identity);
/* The latest word on exactly this choice that nothing of the other kind came after. */
enum choice_answer choices_standing(const struct choices *choices, const struct xpt_program_choice *choice);
/* Was one added, and not removed since, that may be for a region? */
bool choices_have_regions(const struct choices *choices);
/* Was exactly this choice added, and not removed since? */
bool choices_has(const struct choices *choices, const struct xpt_program_choice *choice);
/*
 * Replaces an earlier entry for exactly this choice. -EINVAL: neither name nor handle; -ENOSPC: more than
 * XPT_CHOICES_MAX; -ENOMEM.
 */
int choices_set(struct choices *choices, const struct xpt_program_choice *choice, bool added);
/* Removes the entry for exactly this choice. */
void choices_forget(struct choices *choices, const struct xpt_program_choice *choice);

/* ---- expressions ---- */

/*
 * Expressions that choose programs by name: ECMAScript's regular expressions, on top of PCRE2. Time and memory of a match
 * are bounded, whatever the expression and the name are.
 */
struct expression;

#define EXPRESSION_MAX 4096 /* bytes of an expression */

/* Why an expression was refused. */
struct expression_error {
	size_t position; /* in bytes from the beginning */
	char reason[160];
};

/* -EINVAL: error has where and why; -ENOMEM. */
int expression_create(const char *text, struct expression **result, struct expression_error *error);
void expression_free(struct expression *expression);
/* 1: found in name, or in what it is without its number (text_unnumbered()); 0: not; -E2BIG: given up at a limit; -ENOMEM. Names need not be UTF-8. */
int expression_matches(const struct expression *expression, const char *name);

/* expression_create(), and the error is logged. */
int expression_compile(const struct log *log, const char *text, struct expression **result);
/* Whether it is found in the name; not, where it was given up or there is no memory, which is logged once. */
bool expression_fits(struct expression *expression, const struct log *log, const char *name);

/*
 * Chosen programs of a recording: by name and handle, or by an expression. Selects the wanted inferences for the model,
 * and makes the kernel leave out the others as soon as one of them has been seen. Logic only: no kernel, no threads.
 */

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

/* In the order in which they were made; choice: the expression as name where *match is set. False: there are fewer. */
bool chooser_choice(const struct chooser *chooser, size_t index, struct xpt_program_choice *choice, bool *match);
bool chooser_met(const struct chooser *chooser, size_t index); /* a program that it is for was seen */

#endif
