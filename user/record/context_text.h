/* SPDX-License-Identifier: BSD-2-Clause */
/* What a context reads in records, and what it changes in copies of them. */
#ifndef XPT_RECORD_CONTEXT_TEXT_H
#define XPT_RECORD_CONTEXT_TEXT_H

#include <linux/types.h>

#include "bpf/wire.h"

/* Identifies a record among those of its kind and process. */
__u64 context_number(const struct xpt_record_header *record);
/* Of a LOADED record: any other name of the program is better, but that of its operators. */
void context_name_from_fork(struct xpt_record_text *record);
/* Turns a CODE_OBJECT record into that of an object found later. */
void context_code_found(struct xpt_record_text *record);

#endif
