/* SPDX-License-Identifier: BSD-2-Clause */
/* A file into which a model's events go, in any of the formats there are for it. */
#ifndef XPT_REPORT_TRACE_TRACE_FILE_H
#define XPT_REPORT_TRACE_TRACE_FILE_H

#include "report/chrome/chrome.h"

enum trace_format {
	TRACE_CHROME, /* chrome.h */
	TRACE_ORT,    /* ort.h */
	TRACE_QNN_BASIC,
	TRACE_QNN_DETAILED, /* qnn_csv.h */
};

struct trace_file;

/* Adds itself to the model. path "-": standard output. -ENOSPC beyond the model's sinks, or what open() gives. */
int trace_file_create(const struct log *log, enum trace_format format, const char *path,
		      const struct recording_info *info, struct model *model, struct trace_file **result);
/* Of Chrome traces as chrome_writer_warn_at(), of others nothing. */
void trace_file_warn_at(struct trace_file *file, __u64 bytes);
/* As those of chrome.h. */
int trace_file_flush(struct trace_file *file);
int trace_file_close(struct trace_file *file, const struct model *model);
int trace_file_detach(struct trace_file *file, const uint64_t *stopped);
int trace_file_settle(struct trace_file *file);
__u64 trace_file_lost(const struct trace_file *file);
__u64 trace_file_bytes(const struct trace_file *file);

#endif
