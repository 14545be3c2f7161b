/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/handle/choice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xputrace/stream.h>

#include "base/core/hashmap.h"
#include "base/core/vec.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/core/text.h"
#include "base/core/vec.h"

/* ---- choices ---- */

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

/* ---- expressions ---- */

/*
 * PCRE2 in the mode that comes nearest to ECMAScript: \u and \x as there, an empty class matches nothing, references to
 * groups that have not matched match the empty string, $ is the end and never the newline before it, the dot stops at CR
 * and LF. It differs where PCRE2 takes more (possessive repeats, \A, [[:alpha:]], (?i), recursion), in \s, which knows
 * the blanks of ASCII only, and in \v, which is any vertical blank.
 *
 * PCRE2's own limits do not bound the time: its match limit begins anew at each position of the name. So steps are also
 * counted in callouts, which PCRE2 makes before each item of the expression; they do not go with compiled code, which is
 * why there is none.
 */

#define NEST_MAX 64		  /* parentheses */
#define COMPILED_MAX (256 * 1024) /* bytes */
#define NAME_MAX_LENGTH 1024	  /* bytes of a name that are matched; the model keeps no more */
#define STEPS_MAX 200000	  /* items tried in one match, and decisions from one position */
#define DEPTH_MAX 10000		  /* open decisions */
#define HEAP_MAX 2048		  /* KiB for them */

struct expression {
	pcre2_code *code;
	bool limit_logged;
};

static int refuse(struct expression_error *error, int code, size_t position)
{
	char *hint;

	if (code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAP_FAILED)
		return -ENOMEM;
	if (pcre2_get_error_message(code, (PCRE2_UCHAR *)error->reason, sizeof(error->reason)) < 0)
		snprintf(error->reason, sizeof(error->reason), "error %d of PCRE2", code);
	/* What a programmer could have done, such as "(PCRE2_DUPNAMES not set)", helps nobody else. */
	hint = strstr(error->reason, " (PCRE2_");
	if (hint)
		*hint = '\0';
	error->position = position;
	return -EINVAL;
}

static int refuse_as(struct expression_error *error, size_t position, const char *reason)
{
	error->position = position;
	snprintf(error->reason, sizeof(error->reason), "%s", reason);
	return -EINVAL;
}

static int compile(struct expression *expression, const char *text, struct expression_error *error)
{
	const uint32_t options = PCRE2_UTF | PCRE2_ALT_BSUX | PCRE2_ALLOW_EMPTY_CLASS | PCRE2_MATCH_UNSET_BACKREF |
				 PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT;
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	PCRE2_SIZE position = 0;
	size_t size = 0;
	int code;

	if (!context)
		return -ENOMEM;
	pcre2_set_parens_nest_limit(context, NEST_MAX);
	pcre2_set_newline(context, PCRE2_NEWLINE_ANYCRLF);
	pcre2_set_compile_extra_options(context, PCRE2_EXTRA_ALT_BSUX);
	expression->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, options, &code, &position, context);
	pcre2_compile_context_free(context);
	if (!expression->code)
		return refuse(error, code, position);
	pcre2_pattern_info(expression->code, PCRE2_INFO_SIZE, &size);
	if (size > COMPILED_MAX)
		return refuse_as(error, 0, "too large when compiled: repeats of repeats multiply");
	return 0;
}

int expression_create(const char *text, struct expression **result, struct expression_error *error)
{
	struct expression *expression;
	int failed;

	*error = (struct expression_error){ 0 };
	if (strlen(text) > EXPRESSION_MAX)
		return refuse_as(error, EXPRESSION_MAX, "too long");
	/* PCRE2 would take options of its own from there. */
	if (!strncmp(text, "(*", 2))
		return refuse_as(error, 1, "quantifier does not follow a repeatable item");
	expression = calloc(1, sizeof(*expression));
	if (!expression)
		return -ENOMEM;
	failed = compile(expression, text, error);
	if (failed)
		expression_free(expression);
	else
		*result = expression;
	return failed;
}

void expression_free(struct expression *expression)
{
	if (!expression)
		return;
	pcre2_code_free(expression->code);
	free(expression);
}

static int count_step(pcre2_callout_block *block, void *context)
{
	unsigned int *steps = context;

	(void)block;
	return ++*steps > STEPS_MAX ? PCRE2_ERROR_CALLOUT : 0;
}

/* Bytes that are not UTF-8 count as U+FFFD, one each, as they are shown in all reports. */
static int decode(struct text *text, const char *name, size_t length)
{
	text_utf8(text, name, length);
	return text->error;
}

/* name[length]: what pcre2_match() returns. */
static int match(const struct expression *expression, const char *name, size_t length)
{
	pcre2_match_data *data = pcre2_match_data_create(1, NULL);
	pcre2_match_context *context = pcre2_match_context_create(NULL);
	int code = PCRE2_ERROR_NOMEMORY;
	struct text text = {};
	unsigned int steps = 0;

	if (!data || !context || decode(&text, name, length))
		goto out;
	pcre2_set_match_limit(context, STEPS_MAX);
	pcre2_set_depth_limit(context, DEPTH_MAX);
	pcre2_set_heap_limit(context, HEAP_MAX);
	pcre2_set_callout(context, count_step, &steps);
	code = pcre2_match(expression->code, (PCRE2_SPTR)(text.data ?: ""), text.length, 0, 0, data, context);
out:
	text_free(&text);
	pcre2_match_context_free(context);
	pcre2_match_data_free(data);
	return code;
}

int expression_matches(const struct expression *expression, const char *name)
{
	size_t length = strnlen(name, NAME_MAX_LENGTH), plain = text_unnumbered(name);
	int code = match(expression, name, length);

	if (code == PCRE2_ERROR_NOMATCH && plain < length)
		code = match(expression, name, plain);
	if (code >= 0)
		return 1;
	if (code == PCRE2_ERROR_NOMATCH)
		return 0;
	return code == PCRE2_ERROR_NOMEMORY ? -ENOMEM : -E2BIG;
}

int expression_compile(const struct log *log, const char *text, struct expression **result)
{
	struct expression_error reason = {};
	int error = expression_create(text, result, &reason);

	if (error == -EINVAL)
		log_error(log, "the expression is not valid at position %zu: %s", reason.position, reason.reason);
	return error;
}

bool expression_fits(struct expression *expression, const struct log *log, const char *name)
{
	int found = expression_matches(expression, name);

	if (found < 0 && !expression->limit_logged) {
		expression->limit_logged = true;
		log_warn(log, "the expression takes too long for the name of a program: such programs are ignored");
	}
	return found == 1;
}

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
