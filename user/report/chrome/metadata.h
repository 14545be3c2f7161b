/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a Chrome trace that are not events: where it was made, and the exact totals at its end. */
#ifndef XPT_REPORT_CHROME_METADATA_H
#define XPT_REPORT_CHROME_METADATA_H

#include "base/core/text.h"
#include "model/core/model.h"
#include "record/recording.h"
#include "report/chrome/devices.h"

#define CHROME_SCHEMA_VERSION 1 /* of SCHEMA.md */

/*
 * Members of an object. They are written with the comma before them, so that they can follow one another without
 * knowing of each other. name is a word of ours.
 */
void chrome_member_string(struct text *text, const char *name, const char *value);
void chrome_member_unsigned(struct text *text, const char *name, __u64 value);
void chrome_member_microseconds(struct text *text, const char *name, __u64 nanoseconds);
void chrome_member_hexadecimal(struct text *text, const char *name, __u64 value);

/* "host":...,"clock":{...}: members of an object, without its braces. */
void chrome_metadata_origin(struct text *text, const struct recording_info *info);
/*
 * The whole metadata object of a finished trace. devices: those that have a place in it. output_error: 0, or the negative errno for which events are missing
 * in the file; then it is marked as incomplete.
 */
void chrome_metadata_totals(struct text *text, const struct recording_info *info, const struct model *model,
			    const struct chrome_devices *devices, int output_error);

#endif
