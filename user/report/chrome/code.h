/* SPDX-License-Identifier: BSD-2-Clause */
/* Code objects in a Chrome trace. */
#ifndef XPT_REPORT_CHROME_CODE_H
#define XPT_REPORT_CHROME_CODE_H

#include "model/core/model.h"
#include "report/chrome/events.h"

/* When it was loaded, found or unloaded; and how long the process was waited for it. */
void chrome_code_add(struct chrome_events *events, const struct event_code *code);
/* The value of "code_objects" in the metadata. */
void chrome_code_totals(struct text *text, const struct model *model);

#endif
