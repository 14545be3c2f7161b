/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Expressions that choose programs by name: ECMAScript's regular expressions, on top of PCRE2. Time and memory of a match
 * are bounded, whatever the expression and the name are.
 */
#ifndef XPT_PROFILE_HANDLE_EXPRESSION_H
#define XPT_PROFILE_HANDLE_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/core/log.h"

struct expression;

#define EXPRESSION_MAX 4096 /* bytes of an expression */

/* Why an expression was refused. */
struct expression_error {
	size_t position; /* in bytes from the beginning */
	char reason[160];
};

/* -EINVAL: error has where and why; -ENOMEM. */
int expression_create(const char *text, struct expression **result, struct expression_error *error);
void expression_free(struct expression *expression);
/* 1: found in name, or in what it is without its number (text_unnumbered()); 0: not; -E2BIG: given up at a limit; -ENOMEM. Names need not be UTF-8. */
int expression_matches(const struct expression *expression, const char *name);

/* expression_create(), and the error is logged. */
int expression_compile(const struct log *log, const char *text, struct expression **result);
/* Whether it is found in the name; not, where it was given up or there is no memory, which is logged once. */
bool expression_fits(struct expression *expression, const struct log *log, const char *name);

#endif
