/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What comes through the control socket. The first byte says in pieces of how many bytes the others come; then each
 * line is a request, and an answer as a client reads it.
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "session/control_client.h"
#include "session/control_message.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_reason(const char *reason)
{
	require(memchr(reason, 0, CONTROL_REASON_MAX) != NULL && *reason);
	for (; *reason; reason++)
		require((unsigned char)*reason >= ' ' && *reason != 0x7f);
}

/* Whatever was written is one line that the other side takes. */
static void check_written(const struct text *line)
{
	require(!line->error && line->length && line->length <= CONTROL_LINE_MAX);
	require(memchr(line->data, '\n', line->length) == line->data + line->length - 1);
	require(json_is_object(line->data, line->length - 1));
}

/* What was asked comes back as an answer; a client reads that it was done, or that it was too much for one line. */
static void check_echo(const struct control_asked *asked)
{
	char reason[CONTROL_REASON_MAX];
	struct text line = { 0 };
	cJSON *answer;
	int error = control_write_answer(&line, asked->id, asked->body);

	require(error == 0 || error == -EMSGSIZE);
	check_written(&line);
	line.data[line.length - 1] = '\0';
	require(!control_read_answer(line.data, line.length - 1, asked->id, &answer, reason));
	require(control_answer_error(answer, NULL) == error);
	cJSON_Delete(answer);
	text_clear(&line, 0);
	if (!control_write_request(&line, asked->id, asked->body)) {
		struct control_asked again;

		check_written(&line);
		line.data[line.length - 1] = '\0';
		require(!control_read_request(line.data, line.length - 1, &again));
		require(again.id == asked->id);
		cJSON_Delete(again.body);
	}
	text_free(&line);
}

static void check_request(const char *text, size_t length)
{
	struct control_asked asked;
	int error = control_read_request(text, length, &asked);
	struct text line = { 0 };

	require(asked.id >= CONTROL_ID_NONE && asked.id <= 1ll << 53);
	if (!error) {
		require(asked.id != CONTROL_ID_NONE && cJSON_IsObject(asked.body));
		require(*cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(asked.body, "do")));
		check_echo(&asked);
		cJSON_Delete(asked.body);
		return;
	}
	require(!asked.body && (error == -EINVAL || error == -EPROTONOSUPPORT));
	check_reason(asked.reason);
	/* The line itself as a reason: any bytes may stand in one. */
	control_write_refusal(&line, asked.id, error, text);
	check_written(&line);
	text_free(&line);
}

static void check_answer(const char *text, size_t length)
{
	char reason[CONTROL_REASON_MAX];
	const char *told = "";
	cJSON *answer;
	int error = control_read_answer(text, length, 1, &answer, reason);

	require((error == 0 && answer) || (error == -EPROTO && !answer));
	if (error)
		check_reason(reason);
	else
		require(control_answer_error(answer, &told) <= 0 && told);
	cJSON_Delete(answer);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	const char *bytes = (const char *)data + 1, *end = (const char *)data + size, *start = bytes;
	size_t piece = size ? data[0] + 1 : 1;
	enum control_line state = CONTROL_LINE_OPEN;
	struct text line = { 0 };

	while (size && bytes < end && state != CONTROL_LINE_TOO_LONG) {
		size_t length = (size_t)(end - bytes) < piece ? (size_t)(end - bytes) : piece;
		size_t taken = control_line_take(&line, bytes, length, &state);

		require(taken && taken <= length && line.length <= CONTROL_LINE_MAX && state != CONTROL_LINE_NO_MEMORY);
		bytes += taken;
		require((state == CONTROL_LINE_COMPLETE) == (bytes[-1] == '\n'));
		require(state == CONTROL_LINE_COMPLETE || taken == length || state == CONTROL_LINE_TOO_LONG);
		require((state == CONTROL_LINE_TOO_LONG) == (line.length == CONTROL_LINE_MAX));
		if (state != CONTROL_LINE_COMPLETE)
			continue;
		require(line.length == (size_t)(bytes - start) - 1 && !memcmp(line.data, start, line.length));
		require(!line.data[line.length]);
		check_request(line.data, line.length);
		check_answer(line.data, line.length);
		text_clear(&line, 64);
		start = bytes;
	}
	text_free(&line);
	return 0;
}
