/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of a trigger, a NUL byte, and inferences that it gets: eight bytes each, of which the first chooses
 * the program and says whether it failed, the second scales the time since the one before, the last says whether the states of its
 * thread are known, the rest are times.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/trigger/trigger.h"
#include "tests/fuzz/require.h"

#define INFERENCE 8		   /* bytes */
#define BEGIN 36000000000000000ull /* ns: about 416 days of uptime, so that nothing begins before the machine */

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_line(const char *line, size_t size)
{
	require(memchr(line, 0, size) != NULL && line[0]);
	for (; *line; line++)
		require((unsigned char)*line >= ' ' && *line != 0x7f);
}

static void check_condition(const struct trigger_condition *condition)
{
	bool one = condition->measure <= TRIGGER_ERROR || condition->measure >= TRIGGER_CPU;

	require((condition->measure == TRIGGER_ERROR) == !condition->limit && condition->limit <= TRIGGER_TIME_MAX);
	require(one ? !condition->window :
		      condition->window >= TRIGGER_WINDOW_MIN && condition->window <= TRIGGER_TIME_MAX);
	require(condition->measure == TRIGGER_PERCENTILE ?
			condition->percentile && condition->percentile < 100 * TRIGGER_PERCENT :
			!condition->percentile);
}

/* What fires is beyond the limit, and can be shown to people whatever the name is. */
static void check_firing(const struct trigger *trigger, const struct trigger_condition *condition,
			 const struct trigger_inference *inference, const char *name)
{
	const struct trigger_firing *last = trigger_last(trigger);
	char reason[512];

	require(last->program == inference->program && last->inferences);
	require(condition->measure == TRIGGER_ERROR || last->value > condition->limit ||
		(condition->at_least && last->value == condition->limit));
	require(condition->measure != TRIGGER_PERCENTILE || last->inferences >= TRIGGER_LEAST);
	trigger_reason(trigger, name, reason, sizeof(reason));
	check_line(reason, sizeof(reason));
}

static void run(struct trigger *trigger, const struct trigger_condition *condition, const char *name,
		const unsigned char *bytes, size_t size)
{
	struct trigger_inference inference;
	struct model_states states;
	__u64 now = BEGIN, step, latency;
	int fires;

	for (; size >= INFERENCE; bytes += INFERENCE, size -= INFERENCE) {
		/* Both reach over the whole range that a trigger can have; time also goes back. */
		step = (__u64)(bytes[2] << 8 | bytes[3]) << (bytes[1] & 31);
		now += bytes[1] & 0x80 && now - BEGIN >= step ? -step : step;
		latency = (__u64)(bytes[5] << 8 | bytes[6]) << (bytes[4] & 31);
		inference = (struct trigger_inference){ .program = bytes[0] & 0x7f,
							.start = now - latency + bytes[7],
							.end = now,
							.failed = bytes[0] >> 7,
							.states = bytes[7] & 1 ? &states : NULL };
		states = (struct model_states){
			.calls = bytes[7] >> 1 & 1, .cpu = latency / 2, .waited = latency / 4, .blocked = latency / 4
		};
		fires = trigger_inference(trigger, &inference);
		require(fires == 0 || fires == 1);
		if (fires)
			check_firing(trigger, condition, &inference, name);
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct trigger_condition condition;
	struct trigger *trigger = NULL;
	char reason[256] = "", *text;
	size_t length = strnlen((const char *)data, size);
	int error;

	text = strndup((const char *)data, length);
	require(text != NULL);
	error = trigger_text_parse(text, &condition, reason, sizeof(reason));
	require(error == 0 || error == -EINVAL);
	require(trigger_parse(text, &trigger, reason, sizeof(reason)) == error && !trigger == !!error);
	if (error) {
		check_line(reason, sizeof(reason));
		require(strstr(reason, "as in '") != NULL);
	} else {
		check_condition(&condition);
		length += length < size;
		run(trigger, &condition, text, data + length, size - length);
	}
	trigger_free(trigger);
	free(text);
	return 0;
}
