/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_report_create(): a recording through the same model and the same reports as when it was made. */
#include <xputrace/report.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analysis/explain_private.h"
#include "analysis/reading.h"
#include "base/core/options.h"
#include "base/core/process.h"
#include "base/file/file.h"
#include "base/file/output.h"
#include "base/file/tailed_file.h"
#include "model/core/model.h"
#include "page/page.h"
#include "profile/handle/choice.h"
#include "record/recording.h"
#include "report/flame/flame.h"
#include "report/sql/sql.h"
#include "report/table/summary.h"
#include "session/core/output.h"
#include "session/offline/report_filter.h"

#define BESIDE_BYTES (8u << 20) /* of a recording, from which on a process of its own writes */

static bool takes(void *filter, const struct xpt_record_header *record)
{
	return report_filter_takes(filter, record);
}

/* first: of two times. before: bytes that were read the time before. */
static int read_all(const struct log *log, const struct xpt_report_options *options, struct reading *reading,
		    struct report_filter *filter, bool first, __u64 before)
{
	const struct reading_pass pass = { .log = log,
					   .takes = takes,
					   .context = filter,
					   .progress = options->progress,
					   .progress_context = options->progress_context,
					   .before = before,
					   .after = first ? recording_reader_size(reading->reader) : 0 };

	return reading_all(reading, &pass);
}

/* ---- a row an inference ---- */

#define TABLE_BUFFER (1u << 20)

struct table {
	const struct report_filter *filter;
	flat_columns columns;
	size_t counter_count;
	struct tailed_file file;
	struct text text;
	int error;
};

static int table_flush(struct table *table, bool last)
{
	if (!table->error && (table->text.length || last))
		table->error = tailed_file_append(&table->file, &table->text, "", 0, last);
	text_clear(&table->text, 2 * TABLE_BUFFER);
	return table->error;
}

static int table_event(void *context, const struct event *event)
{
	struct table *table = context;
	struct inference inference;
	struct flat_row row;

	if (!inference_read(event, &inference) || !report_filter_has(table->filter, event, &inference))
		return 0;
	row = report_filter_row(table->filter, &inference);
	flat_add_row(&table->text, table->columns, &row, table->counter_count);
	return table->text.length < TABLE_BUFFER ? 0 : table_flush(table, false);
}

/* Those that were read around inferences, as the samples have them. */
static size_t read_counters(const struct model *model, struct xpt_report_counter counters[XPT_SAMPLE_COUNTERS])
{
	size_t count = 0;

	for (size_t i = 0; i < model_counter_count(model) && count < XPT_SAMPLE_COUNTERS; i++) {
		const struct model_counter *counter = model_counter(model, i);

		if (counter->slots)
			counters[count++] = (struct xpt_report_counter){ counter->name, counter->unit, counter->of };
	}
	return count;
}

static int table_open(struct table *table, const struct log *log, const struct xpt_report_options *options,
		      const struct report_filter *filter, const struct model *first)
{
	bool output = !strcmp(options->output, "-");
	struct xpt_report_counter counters[XPT_SAMPLE_COUNTERS];
	int descriptor = output ? file_standard_output() : -1;
	int error = tailed_file_open(&table->file, output ? NULL : options->output, descriptor);

	if (error) {
		log_error(log, "%s: cannot be written: %s", options->output, output_reason(error));
		return error;
	}
	table->filter = filter;
	table->columns = report_filter_columns(filter);
	table->counter_count = read_counters(first, counters);
	flat_add_header(&table->text, table->columns, counters, table->counter_count);
	return 0;
}

static int table_close(struct table *table)
{
	int error = table_flush(table, true), closed = tailed_file_close(&table->file);

	text_free(&table->text);
	return error ?: closed;
}

/* ---- reports ---- */

/* Both times of a filter or table; reading: open for the last one when it returns 0 or -ENODATA. */
struct run {
	const struct log *log;
	struct log quiet; /* of what is reported another time */
	const struct xpt_report_options *options;
	const char *name; /* of the input */
	int input;
	struct report_filter *filter;
	struct reading first, last;
	struct event_file *trace;
	struct table table;
	struct flame *flame;
	struct page *page;
	struct sql *sql;
	struct run *base; /* what the flame graph is compared with; NULL: nothing */
};

/* Which inferences: over everything that is recorded. */
static int find(struct run *run)
{
	int error;

	/* What is wrong with the file is reported the second time. */
	error = reading_open(&run->first, &run->quiet, run->name, run->input);

	error = error ?:
			report_filter_create(run->log, run->options, recording_reader_info(run->first.reader),
					     &run->filter);
	error = error ?: report_filter_find(run->filter, run->first.model);
	if (error)
		return error;
	error = read_all(run->log, run->options, &run->first, run->filter, true, 0);
	if (error == -E2BIG || !error || error == -ENODATA)
		error = report_filter_found(run->filter);
	return error;
}

/* ---- traces that no viewer opens ---- */

#define PROBE_BYTES (2u << 20) /* of the recording: extrapolated from what they become */
#define GROWTH_MOST 64	       /* bytes of a trace that a byte of a recording gives */

/* Bytes of trace that the begin of the recording gives, and *read of how many of its own. */
static __u64 measure(struct run *run, __u64 *read)
{
	const struct xpt_report_options *options = run->options;
	const struct xpt_record_header *record;
	struct event_file *trace = NULL;
	struct reading reading = {};
	struct log silent = {};
	__u64 bytes = 0;
	int error = reading_open(&reading, &silent, run->name, run->input);

	error = error ?:
			event_file_open(&silent, output_trace(options->format, options->level), "/dev/null",
					recording_reader_info(reading.reader), reading.model, &trace);
	while (!error && recording_reader_position(reading.reader) < PROBE_BYTES &&
	       recording_reader_next(reading.reader, &record) == 1) {
		error = chooser_record(reading.chooser, record) ?: model_feed(reading.model, record);
		if (error == -EBADMSG)
			error = 0;
	}
	if (!error && event_file_flush(trace) == 0) {
		bytes = event_file_bytes(trace);
		*read = recording_reader_position(reading.reader);
	}
	event_file_close(trace, reading.model);
	reading_close(&reading);
	return bytes;
}

/* True: the warning has been given. */
static bool warn_of_size(struct run *run, __u64 limit)
{
	__u64 size = recording_reader_size(run->last.reader), read = 0, bytes;
	double expected;

	if (size < limit / GROWTH_MOST)
		return false;
	bytes = measure(run, &read);
	if (!bytes || !read)
		return false;
	expected = (double)bytes / read * size * report_filter_part(run->filter);
	if (expected <= limit)
		return false;
	chrome_warn_size(run->log, limit);
	return true;
}

/*
 * A process of its own writes what takes long: the kernel needs half as long for a large trace as its text takes here. On one CPU it
 * would only be one more copy.
 */
static int write_beside(struct run *run)
{
	if (recording_reader_size(run->last.reader) < BESIDE_BYTES || cpus_allowed() == 1 ||
	    event_file_detach(run->trace, NULL))
		return 0;
	/* From then on what has no room is waited for, and nothing is left out. */
	return event_file_settle(run->trace);
}

static bool wants_sample(const void *filter, const struct event_stack *stack)
{
	return report_filter_has_sample(filter, stack->tgid, stack->tid, stack->call_start);
}

static bool filters_inferences(const struct xpt_report_options *options)
{
	return options->program_count || options->match || options->from || options->to || options->slowest ||
	       options->slowest_percent > 0 || options->request;
}

static int open_flame(struct run *run)
{
	const struct xpt_report_options *options = run->options;
	const struct flame_options flame = { .log = run->log,
					     .what = options->flame,
					     .operator_name = options->flame_operator,
					     .wants = filters_inferences(run->options) && !run->options->request ?
							      wants_sample :
							      NULL,
					     .context = run->filter,
					     .format = options->format,
					     .path = options->output };

	return flame_open(&flame, run->last.model, &run->flame);
}

static int open_page(struct run *run)
{
	const struct page_options page = { .log = run->log,
					   .path = run->options->output,
					   .descriptor = -1,
					   .name = run->name,
					   .wants = filters_inferences(run->options) ? wants_sample : NULL,
					   .context = run->filter };

	return page_open(&page, run->last.model, &run->page);
}

static int write_page(struct run *run)
{
	const struct xpt_report_options *options = run->options;
	const struct study_options chosen = { .log = &run->quiet,
					      .inputs = &run->name,
					      .input_count = 1,
					      .programs = options->programs,
					      .program_count = options->program_count,
					      .program_size = options->program_size,
					      .match = options->match,
					      .pids = options->pids,
					      .pid_count = options->pid_count,
					      .from = options->from,
					      .to = options->to,
					      .details = true,
					      .progress = options->progress,
					      .progress_context = options->progress_context,
					      .descriptors = &run->input };
	struct xpt_explain *explain = NULL;
	int error = explain_create(&chosen, PAGE_PROGRAMS_MAX, &explain);

	error = error ?: page_close(run->page, explain, run->last.model, report_filter_length(run->filter));
	xpt_explain_destroy(explain);
	return error;
}

static int open_outputs(struct run *run)
{
	__u64 limit = run->options->warn_bytes ?: CHROME_VIEWER_BYTES;
	bool warned;
	const struct xpt_report_options *options = run->options;
	struct model *model = run->last.model;
	int error;

	if (options->flame)
		return open_flame(run);
	if (options->format == XPT_OUTPUT_HTML && options->output)
		return open_page(run);
	if (!options->output)
		return 0;
	if (options->format == XPT_OUTPUT_SQLITE)
		return sql_open(run->log, options->output, recording_reader_info(run->last.reader), model, &run->sql);
	if (options->format != XPT_OUTPUT_CSV) {
		warned = output_trace(options->format, options->level) == &chrome_format && warn_of_size(run, limit);
		error = event_file_open(run->log, output_trace(options->format, options->level), options->output,
					recording_reader_info(run->last.reader), model, &run->trace);
		if (!error && !warned)
			event_file_warn_at(run->trace, limit);
		if (!error && options->format == XPT_OUTPUT_PERFETTO)
			error = model_want_stacks(model);
		return error ?: write_beside(run);
	}
	error = table_open(&run->table, run->log, options, run->filter, run->first.model);
	return error ?: model_add_sink(model, (struct event_sink){ table_event, &run->table });
}

static int report(struct run *run, bool twice)
{
	const struct xpt_report_options *options = run->options;
	int error = twice ? find(run) : 0, ending, written;
	__u64 before = twice && run->first.reader ? recording_reader_position(run->first.reader) : 0;

	error = error ?: reading_open(&run->last, run->log, run->name, run->input);
	if (!error && !twice)
		error = report_filter_create(run->log, options, recording_reader_info(run->last.reader), &run->filter);
	if (error)
		return error;
	if (twice)
		model_set_whole(run->last.model, run->first.model);
	report_filter_join(run->filter, run->last.model);
	error = open_outputs(run);
	ending = error ?: read_all(run->log, options, &run->last, run->filter, false, before);
	if (run->trace) {
		written = event_file_close(run->trace, run->last.model);
		ending = written ?: ending;
	}
	if (run->table.filter) {
		written = table_close(&run->table);
		ending = written ?: ending;
	}
	if (run->sql) {
		written = sql_close(run->sql, run->last.model, ending == -ENODATA ? 0 : ending);
		ending = written ?: ending;
	}
	if (run->flame && options->output && (!ending || ending == -ENODATA)) {
		written = flame_close(run->flame, run->base ? run->base->flame : NULL);
		ending = written ?: ending;
	}
	if (run->page && (!ending || ending == -ENODATA)) {
		written = write_page(run);
		ending = written ?: ending;
	}
	if ((!ending || ending == -ENODATA) && options->summary_descriptor >= 0) {
		written = output_summary(run->last.model, options->summary_descriptor, options->columns,
					 report_filter_length(run->filter));
		ending = ending ?: written;
	}
	if ((!ending || ending == -ENODATA) && options->summary_json) {
		written = summary_json(run->last.model, report_filter_length(run->filter), options->summary_json);
		ending = ending ?: written;
	}
	return ending;
}

static bool has_filter(const struct xpt_report_options *options)
{
	return filters_inferences(options) || options->pid_count;
}

static int run_open(struct run *run, const struct log *log, const struct xpt_report_options *options)
{
	const bool twice = has_filter(options) || (options->output && options->format == XPT_OUTPUT_CSV);
	const unsigned int times = options->format == XPT_OUTPUT_HTML ? 3 : twice ? 2 : 1;

	run->log = log;
	run->options = options;
	run->quiet = *log;
	run->quiet.level = XPT_LOG_ERROR;
	run->table.file.descriptor = -1;
	run->name = reading_name(options->input);
	run->input = reading_open_input(log, options->input, times);
	return run->input < 0 ? run->input : report(run, twice);
}

static void run_close(struct run *run)
{
	flame_free(run->flame);
	page_free(run->page);
	reading_close(&run->first);
	reading_close(&run->last);
	report_filter_free(run->filter);
	if (run->input >= 0)
		close(run->input);
}

/* The stacks of the other recording, of the same programs and operator. */
static int base_open(struct run *run, const struct log *log, const struct xpt_report_options *options,
		     struct xpt_report_options *base_options)
{
	int error;

	*base_options = (struct xpt_report_options){
		.size = sizeof(*base_options),
		.input = options->flame_base,
		.summary_descriptor = -1,
		.programs = options->programs,
		.program_count = options->program_count,
		.program_size = options->program_size,
		.match = options->match,
		.flame = options->flame,
		.format = options->format,
		.flame_operator = options->flame_operator,
	};
	error = run_open(run, log, base_options);
	return error == -ENODATA ? 0 : error;
}

/* What makes no sense; NULL: nothing. */
static const char *flame_fault(const struct xpt_report_options *options)
{
	const bool cpu = options->flame == XPT_FLAME_OFF_CPU || options->flame == XPT_FLAME_CPU;
	const bool compares = options->format == XPT_OUTPUT_FOLDED || options->format == XPT_OUTPUT_FLAME_SVG;

	if (output_is_flame(options->format) != (options->flame != XPT_FLAME_NONE) || options->flame > XPT_FLAME_CPU)
		return "a flame graph has formats of its own, which need one";
	if (options->flame && !options->output)
		return "a flame graph needs a file";
	if (options->flame_operator && !cpu)
		return "an operator is known of stacks off CPU and on CPU only";
	if (options->flame_base && !compares)
		return "flame graphs are compared as folded text or SVG";
	if (options->format == XPT_OUTPUT_HTML &&
	    (options->slowest || options->slowest_percent > 0 || options->request))
		return "a page shows the slowest inferences beside the others: it is not made of them, or of a request, alone";
	if (options->flame_base && !strcmp(options->flame_base, "-"))
		return "what a flame graph is compared with cannot be standard input";
	return NULL;
}

int xpt_report_create(const struct xpt_report_options *given)
{
	struct xpt_report_options options = {}, base_options;
	struct run run = { .input = -1 }, base = { .input = -1 };
	int error = options_copy(&options, sizeof(options), given);
	const char *fault;
	struct log log;

	if (error || !options.input)
		return error ?: -EINVAL;
	log = (struct log){ options.log, options.log_context, options.log_level };
	if (options.flame && !options.format)
		options.format = XPT_OUTPUT_FOLDED;
	fault = flame_fault(&options);
	if (options.request &&
	    (options.program_count || options.match || options.slowest || options.slowest_percent > 0))
		fault = "a request is not selected together with programs or the slowest";
	if (fault) {
		log_error(&log, "%s", fault);
		return -EINVAL;
	}
	if (options.flame_base)
		error = base_open(&base, &log, &options, &base_options);
	run.base = options.flame_base ? &base : NULL;
	error = error ?: run_open(&run, &log, &options);
	run_close(&run);
	run_close(&base);
	return error;
}
