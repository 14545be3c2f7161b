/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/code/answers.h"

#include <stdlib.h>
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

/* Without a status, an output that could not be fetched means failure. */
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

static int compare(const void *left, const void *right)
{
	const struct code_answer *a = left, *b = right;

	return a->end < b->end ? -1 : a->end > b->end;
}

void code_answers_settle(struct code_answers *answers, __u64 turn,
			 void (*settle)(void *context, const struct code_answer *answer), void *context)
{
	__u64 latest = 0;
	size_t done = 0;

	for (size_t i = 0; i < answers->count; i++)
		if (answers->answer[i].turn < turn && answers->answer[i].end > latest)
			latest = answers->answer[i].end;
	if (!latest)
		return;
	qsort(answers->answer, answers->count, sizeof(answers->answer[0]), compare);
	while (done < answers->count && answers->answer[done].end <= latest)
		settle(context, &answers->answer[done++]);
	answers->count -= done;
	memmove(answers->answer, &answers->answer[done], answers->count * sizeof(answers->answer[0]));
}
