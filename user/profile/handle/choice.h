/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs are chosen by: names and handles, or an expression. */
#ifndef XPT_PROFILE_HANDLE_CHOICE_H
#define XPT_PROFILE_HANDLE_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

#include <xputrace/stream.h>

#include "base/core/log.h"
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

#endif
