/* SPDX-License-Identifier: BSD-2-Clause */
/* What was added to a stream and removed from it: of all that fit a program, the latest decides. */
#ifndef XPT_PROFILE_HANDLE_CHOICES_H
#define XPT_PROFILE_HANDLE_CHOICES_H

#include <stdbool.h>

#include <xputrace/stream.h>

#include "profile/handle/catalogue.h"

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

#endif
