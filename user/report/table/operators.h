/* SPDX-License-Identifier: BSD-2-Clause */
/* The summary's tables of operators: one a program, the most expensive operators first. */
#ifndef XPT_REPORT_TABLE_OPERATORS_H
#define XPT_REPORT_TABLE_OPERATORS_H

#include <stdio.h>

#include "model/core/model.h"

/* width: of the terminal; 0: nothing is cut. -ENOMEM, -EIO. */
int summary_operators(const struct model *model, FILE *out, size_t width);

#endif
