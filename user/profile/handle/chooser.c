/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/handle/chooser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xputrace/stream.h>

#include "base/core/hashmap.h"
#include "base/core/vec.h"
#include "profile/handle/choice.h"

#define VERDICTS_MAX (2 * MODEL_PROGRAMS_MAX) /* then the oldest is made anew */

struct wanted {
	struct xpt_program_choice choice; /* the name is owned; of an expression its text */
	struct expression *expression;	  /* NULL: the choice holds as it is */
	bool met;
};

/* About one program under its name of now. */
struct verdict {
	struct keyed keyed; /* by id */
	bool wanted;
	__u64 left_out; /* from when on the kernel should leave it out; 0: not requested */
};

struct chooser {
	struct chooser_options options;
	struct wanted *all;
	size_t count;
	struct keyed_table verdicts;
};

int chooser_create(const struct chooser_options *options, struct chooser **result)
{
	struct chooser *chooser = calloc(1, sizeof(*chooser));

	if (!chooser)
		return -ENOMEM;
	chooser->options = *options;
	keyed_init(&chooser->verdicts, VERDICTS_MAX, NULL, NULL);
	*result = chooser;
	return 0;
}

void chooser_free(struct chooser *chooser)
{
	if (!chooser)
		return;
	keyed_free(&chooser->verdicts);
	for (size_t i = 0; i < chooser->count; i++) {
		free((char *)chooser->all[i].choice.name);
		expression_free(chooser->all[i].expression);
	}
	free(chooser->all);
	free(chooser);
}

/* ---- what is chosen ---- */

/* Takes over the expression in any case. */
static int wanted_add(struct chooser *chooser, const struct xpt_program_choice *choice, struct expression *expression)
{
	struct wanted wanted = { .choice = *choice, .expression = expression };
	int error = chooser->count >= XPT_CHOICES_MAX ? -ENOSPC : 0;

	if (!error)
		error = vec_reserve(chooser->all, chooser->count);
	if (!error) {
		wanted.choice.name = choice->name ? strdup(choice->name) : NULL;
		error = choice->name && !wanted.choice.name ? -ENOMEM : 0;
	}
	if (error)
		expression_free(expression);
	else
		chooser->all[chooser->count++] = wanted;
	return error;
}

int chooser_add(struct chooser *chooser, const struct xpt_program_choice *choice)
{
	if (!choice->handle && !choice->name) {
		log_error(chooser->options.log, "a program is chosen by its name or handle");
		return -EINVAL;
	}
	return wanted_add(chooser, choice, NULL);
}

int chooser_match(struct chooser *chooser, const char *expression)
{
	struct expression *compiled;
	int error = expression_compile(chooser->options.log, expression, &compiled);

	return error ?: wanted_add(chooser, &(struct xpt_program_choice){ .name = expression }, compiled);
}

int chooser_record(struct chooser *chooser, const struct xpt_record_header *record)
{
	const struct xpt_record_text *text_record = (const void *)record;
	bool match = record->kind == XPT_RECORD_MATCH;
	struct xpt_program_choice choice = { .pid = (pid_t)record->tgid };
	char *text;
	int error;

	if (!match && record->kind != XPT_RECORD_CHOICE)
		return 0;
	if (record->size < sizeof(*text_record) || text_record->length > record->size - sizeof(*text_record))
		return -EBADMSG;
	text = strndup(text_record->text, text_record->length);
	if (!text)
		return -ENOMEM;
	choice.handle = text_record->id;
	choice.name = *text ? text : NULL;
	error = match ? chooser_match(chooser, text) : chooser_add(chooser, &choice);
	free(text);
	return error;
}

bool chooser_choice(const struct chooser *chooser, size_t index, struct xpt_program_choice *choice, bool *match)
{
	if (index >= chooser->count)
		return false;
	*choice = chooser->all[index].choice;
	*match = chooser->all[index].expression;
	return true;
}

bool chooser_met(const struct chooser *chooser, size_t index)
{
	return chooser->all[index].met;
}

/* ---- which programs that means ---- */

/* All are asked: each has to know whether it was met. */
static bool is_wanted(struct chooser *chooser, const struct model_program *program)
{
	const struct identity identity = { .tgid = program->process->tgid,
					   .handle = program->handle,
					   .name = program->name };
	bool any = false;

	for (size_t i = 0; i < chooser->count; i++) {
		struct wanted *wanted = &chooser->all[i];
		bool fits = wanted->expression ?
				    expression_fits(wanted->expression, chooser->options.log, program->name) :
				    choice_fits(&wanted->choice, &identity);

		wanted->met |= fits;
		any |= fits;
	}
	return any;
}

static struct verdict *verdict_find(const struct chooser *chooser, unsigned int id)
{
	struct keyed *keyed = keyed_find(&chooser->verdicts, id, 0);

	return keyed ? container_of(keyed, struct verdict, keyed) : NULL;
}

/* NULL: no memory. */
static struct verdict *verdict_make(struct chooser *chooser, const struct model_program *program)
{
	struct verdict *verdict = calloc(1, sizeof(*verdict));

	if (!verdict || keyed_add(&chooser->verdicts, &verdict->keyed, 0, program->id, 0)) {
		free(verdict);
		return NULL;
	}
	verdict->wanted = is_wanted(chooser, program);
	return verdict;
}

static bool wants_call(void *context, const struct model_program *program, const struct event_call *call)
{
	struct chooser *chooser = context;
	const struct chooser_options *options = &chooser->options;
	struct verdict *verdict = verdict_find(chooser, program->id);

	if (!verdict)
		verdict = verdict_make(chooser, program);
	if (!verdict)
		return is_wanted(chooser, program);
	/* Recorded although the kernel should leave it out: the handle got its rate back, as it may have become another program. */
	if (!verdict->wanted && options->set_sampling && call->start >= verdict->left_out)
		verdict->left_out = options->set_sampling(options->context, program, XPT_SAMPLE_NONE, call->end);
	return verdict->wanted;
}

bool chooser_wants(struct chooser *chooser, const struct model_program *program)
{
	const struct verdict *verdict = verdict_find(chooser, program->id);

	if (!verdict)
		verdict = verdict_make(chooser, program);
	return verdict ? verdict->wanted : is_wanted(chooser, program);
}

/* It has been loaded, or has another name. */
static void on_program(struct chooser *chooser, const struct event_program *event)
{
	const struct chooser_options *options = &chooser->options;
	struct verdict *verdict = verdict_find(chooser, event->program->id);
	bool known = verdict, before = known && verdict->wanted;

	if (known)
		verdict->wanted = is_wanted(chooser, event->program);
	else
		verdict = verdict_make(chooser, event->program);
	if (!verdict || !verdict->wanted || before)
		return;
	verdict->left_out = 0;
	if (options->set_sampling)
		options->set_sampling(options->context, event->program, 0, event->time);
}

static int chooser_event(void *context, const struct event *event)
{
	struct chooser *chooser = context;

	if (!chooser->count)
		return 0;
	if (event->kind == EVENT_PROGRAM && !event->program.released)
		on_program(chooser, &event->program);
	else if (event->kind == EVENT_COUNT && !verdict_find(chooser, event->count.program->id))
		verdict_make(chooser, event->count.program);
	return 0;
}

int chooser_follow(struct chooser *chooser, struct model *model)
{
	return model_add_sink(model, (struct event_sink){ chooser_event, chooser });
}

int chooser_join(struct chooser *chooser, struct model *model)
{
	model_set_chooser(model, (struct model_chooser){ wants_call, chooser });
	return chooser_follow(chooser, model);
}
