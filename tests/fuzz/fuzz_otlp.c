/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers of servers to exported metrics, in protobuf and JSON, and lists of names and values of the environment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/text.h"
#include "base/format/otlp.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void parse_answer(bool json, bool success, const unsigned char *data, size_t size)
{
	struct otlp_answer answer;
	const char *end;

	otlp_answer_parse(&answer, json, success, data, size);
	end = memchr(answer.message, 0, sizeof(answer.message));
	require(end != NULL);
	require(text_is_plain(answer.message, (size_t)(end - answer.message)));
	require(!(answer.rejected >> 63) && (success || !answer.rejected));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct otlp_pairs pairs = {};
	char *text = malloc(size + 1);
	int error;

	require(text != NULL);
	for (int i = 0; i < 4; i++)
		parse_answer(i & 1, i & 2, data, size);
	memcpy(text, data, size);
	text[size] = '\0';
	error = otlp_pairs_parse(&pairs, text);
	require(error == 0 || error == -EINVAL);
	for (size_t i = 0; i < pairs.count; i++)
		require(*pairs.all[i].name && *pairs.all[i].value && strlen(pairs.all[i].value) <= size);
	otlp_pairs_free(&pairs);
	free(text);
	return 0;
}
