/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/trigger/save_limits.h"

#include "base/core/text.h"
#include "profile/trigger/text.h"
#include "report/table/columns.h"

/* Since the last save was granted. The time of a trigger may be the end of an inference, before that of another. */
static __u64 elapsed(const struct save_limits *limits, __u64 now)
{
	return now > limits->granted ? now - limits->granted : 0;
}

static enum save_answer decide(const struct save_limits *limits, __u64 now)
{
	if (limits->pending)
		return SAVE_PENDING;
	if (limits->files_most && limits->files >= limits->files_most)
		return SAVE_FILES;
	if (limits->bytes_most && limits->bytes >= limits->bytes_most)
		return SAVE_BYTES;
	if (limits->answers[SAVE_MAY] && elapsed(limits, now) < limits->cooldown)
		return SAVE_COOLDOWN;
	return SAVE_MAY;
}

enum save_answer save_limits_ask(struct save_limits *limits, __u64 now)
{
	enum save_answer answer = decide(limits, now);

	limits->answers[answer]++;
	if (answer == SAVE_MAY) {
		limits->pending = true;
		limits->granted = now;
	}
	return answer;
}

void save_limits_done(struct save_limits *limits, __u64 bytes)
{
	limits->pending = false;
	limits->files += bytes != 0;
	limits->bytes += bytes;
}

static void append_files(struct text *text, __u64 files)
{
	text_unsigned(text, files);
	text_string(text, files == 1 ? " file" : " files");
}

/* Tenths of a second are enough for what is over. */
static __u64 rounded(__u64 nanoseconds)
{
	const __u64 tenth = 100000000;

	return nanoseconds < tenth ? nanoseconds : nanoseconds / tenth * tenth;
}

void save_limits_text(const struct save_limits *limits, enum save_answer answer, __u64 now, char *string, size_t size)
{
	struct text text = {};

	switch (answer) {
	case SAVE_PENDING:
		text_literal(&text, "the save before is not done");
		break;
	case SAVE_FILES:
		text_literal(&text, "triggers have saved ");
		append_files(&text, limits->files);
		text_literal(&text, ", and may save no more");
		break;
	case SAVE_BYTES:
		text_literal(&text, "triggers have saved ");
		columns_format_bytes(&text, limits->bytes);
		text_literal(&text, ", and may save ");
		columns_format_bytes(&text, limits->bytes_most);
		break;
	case SAVE_COOLDOWN:
		text_literal(&text, "the save before was ");
		trigger_text_time(&text, rounded(elapsed(limits, now)));
		text_literal(&text, " ago, less than ");
		trigger_text_time(&text, limits->cooldown);
		break;
	default:
		text_literal(&text, "it may save");
	}
	trigger_text_copy(&text, string, size);
	text_free(&text);
}
