/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An expression comes from the user and a name from the traced program: whatever they hold, the answer comes soon. The
 * input is the expression, a NUL byte and the name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profile/handle/choice.h"
#include "tests/fuzz/require.h"

#define SECONDS_MAX 1.0 /* some milliseconds without sanitizers */

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static double seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Every refusal has a reason of one printable line, and a position in the expression. */
static void check_error(const struct expression_error *error, const char *text)
{
	const char *c;

	require(error->position <= strlen(text) && error->reason[0]);
	require(memchr(error->reason, 0, sizeof(error->reason)) != NULL);
	for (c = error->reason; *c; c++)
		require((unsigned char)*c >= ' ' && (unsigned char)*c < 0x7f);
}

static void check_matches(const struct expression *expression, const char *name)
{
	int found = expression_matches(expression, name);

	require(found == 0 || found == 1 || found == -E2BIG);
	require(expression_matches(expression, name) == found);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct expression *expression = NULL;
	struct expression_error error;
	char *text = malloc(size + 2);
	double begin = seconds();
	int failed;

	require(text != NULL);
	if (size)
		memcpy(text, data, size);
	text[size] = text[size + 1] = '\0';
	failed = expression_create(text, &expression, &error);
	if (failed) {
		require(failed == -EINVAL && !expression);
		check_error(&error, text);
	} else {
		/* Without a NUL byte in between, the name is the empty string behind the input. */
		check_matches(expression, text + strlen(text) + 1);
	}
	expression_free(expression);
	require(seconds() - begin < SECONDS_MAX);
	free(text);
	return 0;
}
