/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_report_create(): a recording through the same model and the same reports as when it was made. */
#include <xputrace/report.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "model/model.h"
#include "profile/chooser.h"
#include "record/recording.h"
#include "report/summary.h"
#include "session/output.h"

#define PROGRESS_STEP (4u << 20) /* bytes between two calls of progress */

static int read_all(const struct log *log, const struct xpt_report_options *options, struct recording_reader *reader,
		    struct chooser *chooser, struct model *model)
{
	const struct xpt_record_header *record;
	__u64 next = PROGRESS_STEP;
	int result, error;

	while ((result = recording_reader_next(reader, &record)) == 1) {
		error = chooser_record(chooser, record);
		if (error == -EINVAL || error == -ENOSPC) {
			log_error(log, "%s: the choice of programs in it is damaged", options->input);
			return -EBADMSG;
		}
		error = error ?: model_feed(model, record);
		if (error && error != -EBADMSG)
			return error;
		if (options->progress && recording_reader_position(reader) >= next) {
			options->progress(options->progress_context, recording_reader_position(reader),
					  recording_reader_size(reader));
			next = recording_reader_position(reader) + PROGRESS_STEP;
		}
	}
	/* Of a recording without an end only this delivers what came last: what is malformed is dropped here, too. */
	error = model_flush(model);
	return error && error != -EBADMSG ? error : result;
}

static int write_summary(const struct xpt_report_options *options, const struct model *model)
{
	int copy = dup(options->summary_descriptor), error;
	FILE *out = copy < 0 ? NULL : fdopen(copy, "w");

	if (!out) {
		if (copy >= 0)
			close(copy);
		return -errno;
	}
	error = summary_write(model, out, options->columns);
	return fclose(out) && !error ? -EIO : error;
}

int xpt_report_create(const struct xpt_report_options *options)
{
	struct recording_reader *reader = NULL;
	struct chooser *chooser = NULL;
	struct trace_file *trace = NULL;
	struct model *model = NULL;
	struct log log;
	int error, written, ending;

	if (!options || options->size != sizeof(*options) || !options->input)
		return -EINVAL;
	log = (struct log){ options->log, options->log_context, options->log_level };
	error = recording_reader_open(&log, options->input, &reader);
	if (error)
		return error;
	error = model_create(&log, &model);
	if (!error)
		error = chooser_create(&(struct chooser_options){ .log = &log }, &chooser);
	if (!error)
		error = chooser_join(chooser, model);
	if (!error && options->output)
		error = trace_file_create(&log, output_trace(options->format, options->level), options->output,
					  recording_reader_info(reader), model, &trace);
	ending = error ?: read_all(&log, options, reader, chooser, model);
	if (trace) {
		written = trace_file_close(trace, model);
		ending = written ?: ending;
	}
	if (model && (!ending || ending == -ENODATA) && options->summary_descriptor >= 0) {
		written = write_summary(options, model);
		ending = ending ?: written;
	}
	model_free(model);
	chooser_free(chooser);
	recording_reader_close(reader);
	return ending;
}
