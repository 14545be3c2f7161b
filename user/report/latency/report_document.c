/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/latency/report_document.h"

#include <errno.h>

#include "base/core/json.h"
#include "base/file/gzip.h"

#define EMPTY_HEAD "{\"displayTimeUnit\":\"ns\",\"otherData\":{},\"traceEvents\":["

int report_document_check(const struct xpt_profile_report *report, enum xpt_report_format format)
{
	switch (format) {
	case XPT_FORMAT_SAMPLES:
	case XPT_FORMAT_SUMMARY:
	case XPT_FORMAT_CSV:
	case XPT_FORMAT_CSV_SUMMARY:
		return 0;
	case XPT_FORMAT_TRACE:
		return report->type == XPT_PROFILE_TRACE && report->trace ? 0 : -EINVAL;
	case XPT_FORMAT_PERFETTO:
		return report->type == XPT_PROFILE_PERFETTO && report->trace ? 0 : -EINVAL;
	}
	return -EINVAL;
}

bool report_document_skips(const struct xpt_profile_report *report, enum xpt_report_format format)
{
	return !report->program_count && !(format == XPT_FORMAT_TRACE && report->trace_events_length);
}

/*
 * The description of the machine precedes the events. It is the same in all reports of a session, so that of the first
 * one serves for all.
 */
static void add_trace_head(struct text *text, const struct xpt_profile_report *report)
{
	const char *trace = report->trace, *events = report->trace_events;

	if (events >= trace && events <= trace + report->trace_length)
		text_bytes(text, trace, events - trace);
	else
		text_literal(text, EMPTY_HEAD);
}

static void begin_flat(const struct report_document *document, struct report_part *part, struct text *text)
{
	bool summary = document->format == XPT_FORMAT_CSV_SUMMARY;

	part->columns = document->reports ? document->columns :
					    flat_report_columns(part->report, summary, !document->single);
	if (!document->reports)
		flat_report_header(text, part->report, summary, part->columns);
}

static void begin(const struct report_document *document, struct report_part *part, struct text *text)
{
	const struct xpt_profile_report *report = part->report;

	if (document->format == XPT_FORMAT_CSV || document->format == XPT_FORMAT_CSV_SUMMARY)
		begin_flat(document, part, text);
	if (document->format == XPT_FORMAT_SUMMARY && !document->reports)
		latency_summary_heading(text);
	if (document->format != XPT_FORMAT_TRACE)
		return;
	if (!document->reports)
		add_trace_head(text, report);
	if (document->has_events && report->trace_events_length)
		text_literal(text, ",\n");
}

static bool add_events(struct report_part *part, struct text *text)
{
	const struct xpt_profile_report *report = part->report;
	size_t length = report->trace_events_length - part->events;

	if (length > REPORT_PIECE)
		length = REPORT_PIECE;
	text_bytes(text, report->trace_events + part->events, length);
	part->events += length;
	return part->events < report->trace_events_length && !text->error;
}

bool report_document_next(const struct report_document *document, struct report_part *part, struct text *text)
{
	if (!part->begun)
		begin(document, part, text);
	part->begun = true;
	switch (document->format) {
	case XPT_FORMAT_SAMPLES:
		return latency_samples(text, part->report, &part->position, REPORT_PIECE);
	case XPT_FORMAT_SUMMARY:
		return latency_summary(text, part->report, &part->position, REPORT_PIECE);
	case XPT_FORMAT_TRACE:
	case XPT_FORMAT_PERFETTO:
		return add_events(part, text);
	case XPT_FORMAT_CSV:
	case XPT_FORMAT_CSV_SUMMARY:
		return flat_report(text, part->report, document->format == XPT_FORMAT_CSV_SUMMARY, part->columns,
				   &part->position, REPORT_PIECE);
	}
	return false;
}

void report_document_count(struct report_document *document, const struct xpt_profile_report *report)
{
	bool summary = document->format == XPT_FORMAT_CSV_SUMMARY;
	size_t i;

	if (!document->reports && (summary || document->format == XPT_FORMAT_CSV))
		document->columns = flat_report_columns(report, summary, !document->single);
	if (!document->reports || report->start < document->start)
		document->start = report->start;
	if (report->end > document->end)
		document->end = report->end;
	document->reports++;
	document->has_events |= report->trace_events_length > 0;
	for (i = 0; i < report->program_count; i++) {
		document->inferences += report->programs[i].inferences;
		document->samples += report->programs[i].taken;
		document->lost += report->programs[i].lost;
	}
}

static void add_trace_tail(const struct report_document *document, struct text *text, bool last)
{
	if (!document->reports)
		text_literal(text, EMPTY_HEAD);
	text_literal(text, "\n]");
	json_begin(text, "metadata", '{');
	json_add_bool(text, "complete", last && !document->left_out);
	json_add_unsigned(text, "reports", document->reports);
	json_add_unsigned(text, "reports_left_out", document->left_out);
	json_add_unsigned(text, "inferences", document->inferences);
	json_add_unsigned(text, "samples", document->samples);
	json_add_unsigned(text, "lost", document->lost);
	if (document->reports) {
		json_add_microseconds(text, "start_us", document->start);
		json_add_microseconds(text, "end_us", document->end);
	}
	text_literal(text, "}}");
}

void report_document_tail(const struct report_document *document, struct text *text, bool last)
{
	if (document->format == XPT_FORMAT_TRACE)
		add_trace_tail(document, text, last);
	else if (document->format == XPT_FORMAT_SUMMARY && !document->reports)
		latency_summary_heading(text);
}

static int write_pieces(const struct xpt_profile_report *report, enum xpt_report_format format, struct gzip *gzip,
			int descriptor)
{
	struct report_document document = { .format = format, .single = true };
	struct report_part part = { .report = report };
	struct text text = { 0 };
	bool more = true;
	int error = 0;

	while (more && !error) {
		text_clear(&text, SIZE_MAX);
		more = report_document_next(&document, &part, &text);
		error = text.error ? text.error : gzip_write(gzip, descriptor, text.data, text.length);
	}
	text_free(&text);
	return error;
}

int report_document_write(const struct xpt_profile_report *report, enum xpt_report_format format, bool compressed,
			  int descriptor)
{
	struct gzip *gzip = NULL;
	int error = report_document_check(report, format);

	if (error || report_document_skips(report, format))
		return error;
	if (compressed) {
		gzip = gzip_create();
		if (!gzip)
			return -ENOMEM;
	}
	if (format == XPT_FORMAT_TRACE || format == XPT_FORMAT_PERFETTO)
		error = gzip_write(gzip, descriptor, report->trace, report->trace_length);
	else
		error = write_pieces(report, format, gzip, descriptor);
	error = error ?: gzip_finish(gzip, descriptor);
	gzip_free(gzip);
	return error;
}

int xpt_profile_report_write(const struct xpt_profile_report *report, enum xpt_report_format format, int descriptor)
{
	return report_document_write(report, format, false, descriptor);
}
