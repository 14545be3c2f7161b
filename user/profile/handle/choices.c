/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/handle/choices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/text.h"
#include "base/core/vec.h"

struct choice {
	struct xpt_program_choice choice; /* the name is owned */
	bool added;			  /* else removed */
};

static bool same_name(const char *one, const char *other)
{
	return one && other ? !strcmp(one, other) : one == other;
}

static bool same(const struct xpt_program_choice *one, const struct xpt_program_choice *other)
{
	return one->pid == other->pid && one->handle == other->handle && same_name(one->name, other->name);
}

static struct choice *choices_find(const struct choices *choices, const struct xpt_program_choice *choice)
{
	for (size_t i = 0; i < choices->count; i++)
		if (same(&choices->all[i].choice, choice))
			return &choices->all[i];
	return NULL;
}

bool choice_fits(const struct xpt_program_choice *choice, const struct identity *identity)
{
	return (!choice->pid || (__u32)choice->pid == identity->tgid) &&
	       (!choice->handle || choice->handle == identity->handle) &&
	       (!choice->name || text_is_name(identity->name, choice->name));
}

bool choice_is_region(const struct xpt_program_choice *choice)
{
	return choice->name && !strncmp(choice->name, MODEL_REGION_PROGRAM, strlen(MODEL_REGION_PROGRAM));
}

bool choices_have_regions(const struct choices *choices)
{
	for (size_t i = 0; i < choices->count; i++)
		if (choices->all[i].added && choice_is_region(&choices->all[i].choice))
			return true;
	return false;
}

enum choice_answer choices_decide(const struct choices *choices, const struct identity *identity)
{
	for (size_t i = choices->count; i-- > 0;)
		if (choice_fits(&choices->all[i].choice, identity))
			return choices->all[i].added ? CHOICE_ADDED : CHOICE_REMOVED;
	return CHOICE_NONE;
}

enum choice_answer choices_standing(const struct choices *choices, const struct xpt_program_choice *choice)
{
	const struct choice *found = choices_find(choices, choice), *later;

	if (!found)
		return CHOICE_NONE;
	for (later = found + 1; later < choices->all + choices->count; later++)
		if (later->added != found->added)
			return CHOICE_NONE;
	return found->added ? CHOICE_ADDED : CHOICE_REMOVED;
}

bool choices_has(const struct choices *choices, const struct xpt_program_choice *choice)
{
	const struct choice *found = choices_find(choices, choice);

	return found && found->added;
}

void choices_forget(struct choices *choices, const struct xpt_program_choice *choice)
{
	struct choice *found = choices_find(choices, choice);
	size_t after;

	if (!found)
		return;
	if (found->added)
		choices->added--;
	free((char *)found->choice.name);
	after = choices->all + choices->count - (found + 1);
	memmove(found, found + 1, after * sizeof(*found));
	choices->count--;
}

int choices_set(struct choices *choices, const struct xpt_program_choice *choice, bool added)
{
	struct xpt_program_choice copy = *choice;

	if (!choice->name && !choice->handle)
		return -EINVAL;
	if (choices->count >= XPT_CHOICES_MAX && !choices_find(choices, choice))
		return -ENOSPC;
	copy.name = choice->name ? strdup(choice->name) : NULL;
	if ((choice->name && !copy.name) || vec_reserve(choices->all, choices->count)) {
		free((char *)copy.name);
		return -ENOMEM;
	}
	choices_forget(choices, choice);
	choices->all[choices->count++] = (struct choice){ .choice = copy, .added = added };
	choices->added += added;
	return 0;
}

void choices_free(struct choices *choices)
{
	for (size_t i = 0; i < choices->count; i++)
		free((char *)choices->all[i].choice.name);
	free(choices->all);
	*choices = (struct choices){};
}
