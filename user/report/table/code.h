/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef XPT_REPORT_TABLE_CODE_H
#define XPT_REPORT_TABLE_CODE_H

#include <stdio.h>

#include "model/core/model.h"

/* A table of the code objects that were loaded or found, in the order of that; nothing where there are none. 0 or -ENOMEM. */
int summary_code(const struct model *model, FILE *out, size_t width);

#endif
