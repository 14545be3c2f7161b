/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/code_answers.h"

#include <string.h>

static void set_status(const struct description *runtime, const struct call_spec *spec, __u64 value,
		       struct code_answer *answer)
{
	bool half = spec->wire.success == XPT_SUCCESS_ZERO32;
	const char *name;

	/* Statuses of 32 bits may be described with or without a sign. */
	answer->status = half ? (__s32)value : (__s64)value;
	answer->succeeded = description_status(runtime, answer->status, &name) == STATUS_OK ||
			    (half && description_status(runtime, (__u32)value, &name) == STATUS_OK);
	if (answer->succeeded)
		answer->status = 0;
}

/* Where no status tells of failure, what could not be fetched does. */
static void set_outcome(const struct call_spec *spec, const struct xpt_record_call *call, struct code_answer *answer)
{
	unsigned int returned = 0;

	for (unsigned int i = 0; i < spec->wire.fetches; i++)
		returned |= (spec->wire.fetch[i].at_return != 0) << i;
	answer->succeeded = spec->wire.success == XPT_SUCCESS_ALWAYS || !returned || call->valid & returned;
	answer->status = answer->succeeded ? 0 : -1;
}

struct code_answer code_answer_read(const struct description *runtime, const struct call_spec *spec,
				    const struct xpt_record_call *call)
{
	struct code_answer answer = {
		.tgid = call->header.tgid,
		.tid = call->tid,
		.runtime = runtime,
		.spec = call->spec,
		.start = call->start,
		.end = call->header.time,
		.device = -1,
	};
	bool has_status = false;

	for (unsigned int fetch = 0, value = 0; fetch < spec->wire.fetches && value < call->values; fetch++) {
		if (spec->wire.fetch[fetch].type == XPT_TYPE_STRING)
			continue;
		if (call->valid & 1u << fetch) {
			switch (spec->wire.fetch[fetch].meaning) {
			case XPT_MEANING_PROGRAM:
				answer.handle = call->value[value];
				break;
			case XPT_MEANING_CORE:
				answer.device = (__s64)call->value[value];
				break;
			case XPT_MEANING_STATUS:
				set_status(runtime, spec, call->value[value], &answer);
				has_status = true;
				break;
			}
		}
		value++;
	}
	if (!has_status)
		set_outcome(spec, call, &answer);
	return answer;
}

static void drop(struct code_answers *answers, size_t index)
{
	memmove(&answers->answer[index], &answers->answer[index + 1],
		(--answers->count - index) * sizeof(answers->answer[0]));
}

void code_answers_keep(struct code_answers *answers, const struct code_answer *answer)
{
	if (answers->count == CODE_ANSWERS_MAX) {
		answers->lost += answers->answer[0].succeeded;
		drop(answers, 0);
	}
	answers->answer[answers->count++] = *answer;
}

void code_answers_give_up(struct code_answers *answers)
{
	while (answers->count)
		answers->lost += answers->answer[--answers->count].succeeded;
}

/* Which of two ended first; count: none. */
static size_t earlier(const struct code_answers *answers, size_t one, size_t other)
{
	return one == answers->count || answers->answer[other].end < answers->answer[one].end ? other : one;
}

static bool take(struct code_answers *answers, size_t index, struct code_answer *result)
{
	if (index == answers->count)
		return false;
	*result = answers->answer[index];
	drop(answers, index);
	return true;
}

bool code_answers_take(struct code_answers *answers, pid_t tgid, pid_t tid, unsigned int spec, __u64 time,
		       struct code_answer *result)
{
	size_t best = answers->count;

	for (size_t i = 0; i < answers->count; i++) {
		const struct code_answer *answer = &answers->answer[i];

		if (answer->tid == tid && answer->tgid == tgid && answer->spec == spec && answer->end >= time)
			best = earlier(answers, best, i);
	}
	return take(answers, best, result);
}

bool code_answers_take_unload(struct code_answers *answers, pid_t tgid, const struct description *runtime, __u64 handle,
			      __u64 since, struct code_answer *result)
{
	size_t best = answers->count;

	for (size_t i = 0; i < answers->count; i++) {
		const struct code_answer *answer = &answers->answer[i];

		if (answer->handle == handle && answer->tgid == tgid && answer->runtime == runtime &&
		    answer->start >= since)
			best = earlier(answers, best, i);
	}
	return take(answers, best, result);
}
