/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads of code objects as records. Free the result with free(); NULL: no memory. */
#ifndef XPT_SESSION_CODE_RECORDS_H
#define XPT_SESSION_CODE_RECORDS_H

#include "session/code/load.h"

#define CODE_RECORD_KERNELS 64 /* names in a record */

struct xpt_record_text *record_code_object(const struct code_load *load);
struct xpt_record_text *record_code_unloaded(const struct code_load *load);

#endif
