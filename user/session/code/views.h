/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads as users and records have them. */
#ifndef XPT_SESSION_CODE_VIEWS_H
#define XPT_SESSION_CODE_VIEWS_H

#include "code/store/store.h"
#include "session/code/capture.h"

__u64 code_view_size(const struct code_load *load); /* bytes of the object, those that are missing included */
/* Why something is missing, or what is wrong with the object; NULL: nothing. */
const char *code_view_error(const struct code_load *load);
/* Appends where the bytes came from. */
void code_view_uri(struct text *text, const struct code_load *load);
/*
 * Those that were found first, then in the order of loading. The list owns what it has but bytes that are kept in
 * memory, which live as long as their loads. NULL: no memory.
 */
struct code_list *code_view_list(const struct code_load *const *loads, size_t count, const struct code_counts *counts,
				 __u64 userdata);

#endif
