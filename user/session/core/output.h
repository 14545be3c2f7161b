/* SPDX-License-Identifier: BSD-2-Clause */
/* Where records go: into the model always, and from there or directly into a file. */
#ifndef XPT_SESSION_CORE_OUTPUT_H
#define XPT_SESSION_CORE_OUTPUT_H

#include <xputrace/recording.h>

#include "model/core/model.h"
#include "record/recording.h"
#include "report/chrome/chrome.h"

struct output;

/*
 * Of options, what is about the output. stopped: as in tailed_file_detach(); all but output_settle() and output_finish() never
 * wait.
 */
int output_create(const struct log *log, const struct xpt_recording_options *options, const uint64_t *stopped,
		  struct output **result);
void output_warn_at(struct output *output, __u64 bytes); /* event_file_warn_at(), where there is one */
/* 0 or the first error of the file, which every later call returns too; the model is still fed. */
int output_record(struct output *output, const struct xpt_record_header *record);
int output_flush(struct output *output);
bool output_failed(const struct output *output); /* the file has failed for good */
/* Before the last records: waits until those before are written, so that output_lost() knows what is not. */
int output_settle(struct output *output);
int output_finish(struct output *output); /* completes and closes the file */
void output_free(struct output *output);
struct model *output_model(struct output *output);
__u64 output_bytes(const struct output *output);
__u64 output_lost(const struct output *output); /* records or what became of them, that the file took not */

/* Writes the table to a copy of the descriptor; columns, length: as summary_write(). */
int output_summary(const struct model *model, int descriptor, unsigned int columns, __u64 length);
bool output_is_flame(enum xpt_output format);
/* Of formats that show events, and of 0. */
const struct event_format *output_trace(enum xpt_output format, enum xpt_level level);

/* Contents of the head of every output. Strings are owned by this process and live as long as it. */
void output_info(struct recording_info *info);

#endif
