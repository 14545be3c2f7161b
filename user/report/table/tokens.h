/* SPDX-License-Identifier: BSD-2-Clause */
/* The summary's table of language models: a row for prompts, and one for outputs. */
#ifndef XPT_REPORT_TABLE_TOKENS_H
#define XPT_REPORT_TABLE_TOKENS_H

#include <stdio.h>

#include "model/core/model.h"

/* width: of the terminal; 0: nothing is cut. -ENOMEM, -EIO. */
int summary_tokens(const struct model *model, FILE *out, size_t width);

#endif
