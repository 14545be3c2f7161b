/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/trace/trace_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "report/trace/ort.h"
#include "report/trace/qnn_csv.h"

struct trace_file {
	struct chrome_writer *chrome; /* one of them */
	struct event_file *events;
};

static const struct event_format *const formats[] = {
	[TRACE_ORT] = &ort_format,
	[TRACE_QNN_BASIC] = &qnn_csv_basic,
	[TRACE_QNN_DETAILED] = &qnn_csv_detailed,
};

static int open_file(struct trace_file *file, const struct log *log, enum trace_format format, const char *path,
		     int descriptor, const struct recording_info *info)
{
	if (format == TRACE_CHROME)
		return chrome_writer_create(log, path, descriptor, info, &file->chrome);
	return event_file_create(log, formats[format], path, descriptor, info->monotonic_time, &file->events);
}

int trace_file_create(const struct log *log, enum trace_format format, const char *path,
		      const struct recording_info *info, struct model *model, struct trace_file **result)
{
	struct trace_file *file = calloc(1, sizeof(*file));
	int descriptor = -1, error;

	if (!file)
		return -ENOMEM;
	if (!strcmp(path, "-")) {
		descriptor = file_standard_output();
		path = NULL;
	}
	error = path || descriptor >= 0 ? open_file(file, log, format, path, descriptor, info) : descriptor;
	if (!error)
		error = model_add_sink(model,
				       file->chrome ? chrome_writer_sink(file->chrome) : event_file_sink(file->events));
	if (error) {
		free(file);
		return error;
	}
	*result = file;
	return 0;
}

void trace_file_warn_at(struct trace_file *file, __u64 bytes)
{
	if (file->chrome)
		chrome_writer_warn_at(file->chrome, bytes);
}

int trace_file_flush(struct trace_file *file)
{
	return file->chrome ? chrome_writer_flush(file->chrome) : event_file_flush(file->events);
}

int trace_file_close(struct trace_file *file, const struct model *model)
{
	int error;

	if (!file)
		return 0;
	error = file->chrome ? chrome_writer_close(file->chrome, model) : event_file_close(file->events);
	free(file);
	return error;
}

int trace_file_detach(struct trace_file *file, const uint64_t *stopped)
{
	return file->chrome ? chrome_writer_detach(file->chrome, stopped) : event_file_detach(file->events, stopped);
}

int trace_file_settle(struct trace_file *file)
{
	return file->chrome ? chrome_writer_settle(file->chrome) : event_file_settle(file->events);
}

__u64 trace_file_lost(const struct trace_file *file)
{
	return file->chrome ? chrome_writer_lost(file->chrome) : event_file_lost(file->events);
}

__u64 trace_file_bytes(const struct trace_file *file)
{
	return file->chrome ? chrome_writer_bytes(file->chrome) : event_file_bytes(file->events);
}
