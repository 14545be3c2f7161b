/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include <xputrace/stream.h>

#include "profile/handle/choice.h"

int xpt_stream_check_match(const char *match, size_t *position, char *reason, size_t size)
{
	struct expression *expression;
	struct expression_error why = { .reason = "" };
	int error = expression_create(match, &expression, &why);

	if (!error) {
		expression_free(expression);
		return 0;
	}
	*position = why.position;
	snprintf(reason, size, "%s", error == -EINVAL ? why.reason : "no memory");
	return error;
}
