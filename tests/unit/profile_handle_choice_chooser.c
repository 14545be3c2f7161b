/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/handle/choice.h"

#include <xputrace/stream.h>

#include "model_records.h"

#define TOLD_MAX 64

/* A chooser, its model, and what the kernel was given. */
struct choosing {
	struct fixture *f;
	struct chooser *chooser;
	struct {
		__u64 handle, seen;
		__u32 sample_every;
	} reported[TOLD_MAX];
	size_t count;
	__u64 now; /* when the kernel has got it */
	struct log log;
	char message[256];
};

static __u64 tell(void *context, const struct model_program *program, __u32 sample_every, __u64 seen)
{
	struct choosing *choosing = context;

	cr_assert_lt(choosing->count, TOLD_MAX);
	choosing->reported[choosing->count].handle = program->handle;
	choosing->reported[choosing->count].seen = seen;
	choosing->reported[choosing->count++].sample_every = sample_every;
	return choosing->now;
}

static void keep_message(void *context, enum xpt_log_level level, const char *text)
{
	struct choosing *choosing = context;

	(void)level;
	snprintf(choosing->message, sizeof(choosing->message), "%s", text);
}

static struct choosing *begin(void)
{
	struct choosing *choosing = calloc(1, sizeof(*choosing));
	const struct chooser_options options = { &choosing->log, tell, choosing };

	choosing->log = (struct log){ .write = keep_message, .context = choosing };
	choosing->f = fixture_toy();
	cr_assert_eq(chooser_create(&options, &choosing->chooser), 0);
	cr_assert_eq(chooser_join(choosing->chooser, choosing->f->model), 0);
	return choosing;
}

static void end(struct choosing *choosing)
{
	fixture_free(choosing->f);
	chooser_free(choosing->chooser);
	free(choosing);
}

/* As a recording does: chosen, and reported in its stream. */
static void choose(struct choosing *choosing, struct xpt_program_choice choice)
{
	cr_assert_eq(chooser_add(choosing->chooser, &choice), 0);
	cr_assert_eq(feed_text(choosing->f, XPT_RECORD_CHOICE, 0, 1, choice.handle, choice.name ?: ""), 0);
}

static void choose_match(struct choosing *choosing, const char *text)
{
	cr_assert_eq(chooser_match(choosing->chooser, text), 0);
	cr_assert_eq(feed_text(choosing->f, XPT_RECORD_MATCH, 0, 1, 0, text), 0);
}

static void name_program(struct choosing *choosing, __u64 handle, const char *name, __u64 time)
{
	cr_assert_eq(feed_string(choosing->f, TOY_NAME, 1, 1, 1, time, name, strlen(name)), 0);
	CALL_1(choosing->f, TOY_NAME, 1, 1, time, time + 1, 1, handle);
}

static void deliver(struct choosing *choosing)
{
	cr_assert_eq(model_flush(choosing->f->model), 0);
}

static __u64 recorded(const struct choosing *choosing, __u64 handle)
{
	return toy_program(choosing->f, 1, handle, 0)->recorded;
}

Test(profile_handle_choice_chooser, names_handles_and_expressions)
{
	static const struct {
		__u64 handle;
		const char *name;
		bool wanted;
	} table[] = {
		{ 5, "resnet", true },	{ 6, "resnet2", false }, { 7, "bert", true }, { 8, "bert-large", true },
		{ 9, "albert", false }, { 10, NULL, true },	 { 11, NULL, false }, { 12, "", false },
	};
	struct choosing *choosing = begin();
	size_t i;

	choose(choosing, (struct xpt_program_choice){ .name = "resnet" });
	choose(choosing, (struct xpt_program_choice){ .handle = 10 });
	choose_match(choosing, "^bert");
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		toy_load(choosing->f, table[i].handle, table[i].name, 10 + 2 * i, 11 + 2 * i);
		toy_execute(choosing->f, 1, table[i].handle, 100 + 2 * i, 101 + 2 * i);
	}
	deliver(choosing);
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		cr_expect_eq(recorded(choosing, table[i].handle), table[i].wanted, "%zu", i);
	end(choosing);
}

/* Once for what was on its way; again when it is recorded although the kernel had got it. */
Test(profile_handle_choice_chooser, the_kernel_is_reported_when_an_inference_of_another_comes)
{
	struct choosing *choosing = begin();

	choose(choosing, (struct xpt_program_choice){ .name = "wanted" });
	toy_load(choosing->f, 5, "wanted", 10, 20);
	toy_load(choosing->f, 6, "other", 30, 40);
	toy_execute(choosing->f, 1, 5, 100, 110);
	deliver(choosing);
	choosing->count = 0;
	choosing->now = 500;
	toy_execute(choosing->f, 1, 6, 120, 130);
	toy_execute(choosing->f, 1, 6, 140, 150);
	toy_execute(choosing->f, 1, 6, 499, 505);
	deliver(choosing);
	cr_assert_eq(choosing->count, 1);
	cr_expect_eq(choosing->reported[0].handle, 6);
	cr_expect_eq(choosing->reported[0].sample_every, XPT_SAMPLE_NONE);
	cr_expect_eq(choosing->reported[0].seen, 130);
	choosing->now = 1000;
	toy_execute(choosing->f, 1, 6, 500, 600);
	deliver(choosing);
	cr_expect_eq(choosing->count, 2);
	cr_expect_eq(recorded(choosing, 6), 0);
	end(choosing);
}

Test(profile_handle_choice_chooser, a_name_that_comes_later_chooses)
{
	struct choosing *choosing = begin();

	choose(choosing, (struct xpt_program_choice){ .name = "late" });
	choosing->now = 150;
	toy_load(choosing->f, 5, NULL, 10, 20);
	toy_execute(choosing->f, 1, 5, 100, 110);
	name_program(choosing, 5, "late", 200);
	toy_execute(choosing->f, 1, 5, 300, 310);
	deliver(choosing);
	cr_expect_eq(recorded(choosing, 5), 1);
	cr_assert_eq(choosing->count, 2);
	cr_expect_eq(choosing->reported[0].sample_every, XPT_SAMPLE_NONE);
	cr_expect_eq(choosing->reported[1].sample_every, 0, "it has the rate of all again");
	cr_expect_eq(choosing->reported[1].handle, 5);
	cr_expect(chooser_met(choosing->chooser, 0));
	end(choosing);
}

Test(profile_handle_choice_chooser, a_program_that_only_was_loaded_is_met)
{
	struct choosing *choosing = begin();

	choose(choosing, (struct xpt_program_choice){ .name = "loaded" });
	choose(choosing, (struct xpt_program_choice){ .name = "never" });
	choose_match(choosing, "xyz");
	toy_load(choosing->f, 5, "loaded", 10, 20);
	deliver(choosing);
	cr_expect(chooser_met(choosing->chooser, 0));
	cr_expect_not(chooser_met(choosing->chooser, 1));
	cr_expect_not(chooser_met(choosing->chooser, 2));
	end(choosing);
}

Test(profile_handle_choice_chooser, choices_are_read_from_records)
{
	struct choosing *choosing = begin();
	struct {
		struct xpt_record_text text;
		char bytes[16];
	} record = { .text = { .header = { XPT_RECORD_CHOICE, sizeof(record), 7, 1 }, .id = 5, .length = 3 } };
	struct xpt_program_choice choice;
	bool match;

	memcpy(record.text.text, "net", 3);
	cr_assert_eq(chooser_record(choosing->chooser, &record.text.header), 0);
	cr_assert(chooser_choice(choosing->chooser, 0, &choice, &match));
	cr_expect(!match && choice.pid == 7 && choice.handle == 5 && !strcmp(choice.name, "net"));
	record.text.header.kind = XPT_RECORD_MATCH;
	cr_assert_eq(chooser_record(choosing->chooser, &record.text.header), 0);
	cr_assert(chooser_choice(choosing->chooser, 1, &choice, &match));
	cr_expect(match && !strcmp(choice.name, "net"));
	record.text.length = 4096;
	cr_expect_eq(chooser_record(choosing->chooser, &record.text.header), -EBADMSG);
	record.text.length = 3;
	memcpy(record.text.text, "a(b", 3);
	cr_expect_eq(chooser_record(choosing->chooser, &record.text.header), -EINVAL);
	cr_expect(strstr(choosing->message, "position"), "%s", choosing->message);
	record.text.header.kind = XPT_RECORD_NAMED;
	cr_expect_eq(chooser_record(choosing->chooser, &record.text.header), 0);
	cr_expect_not(chooser_choice(choosing->chooser, 2, &choice, &match));
	end(choosing);
}

Test(profile_handle_choice_chooser, there_are_limits)
{
	struct choosing *choosing = begin();
	size_t i;

	cr_expect_eq(chooser_add(choosing->chooser, &(struct xpt_program_choice){ .pid = 5 }), -EINVAL);
	for (i = 0; i < XPT_CHOICES_MAX; i++)
		cr_assert_eq(chooser_add(choosing->chooser, &(struct xpt_program_choice){ .handle = i + 1 }), 0);
	cr_expect_eq(chooser_add(choosing->chooser, &(struct xpt_program_choice){ .handle = 1 }), -ENOSPC);
	cr_expect_eq(chooser_match(choosing->chooser, "a"), -ENOSPC);
	end(choosing);
}
