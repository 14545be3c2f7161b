/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/latency/report_document.h"

#include <errno.h>

#include "report_csv.h"
#include "report_profile.h"

TestSuite(report_latency_report_document, .init = make_folder, .fini = remove_folder);

static int write_report(const struct xpt_profile_report *report, enum xpt_report_format format)
{
	int file = open(in_folder("out"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	int error = xpt_profile_report_write(report, format, file);

	close(file);
	return error;
}

Test(report_latency_report_document, one_report_in_each_format)
{
	struct made_report *made = make_trace(1);
	struct content content;
	struct csv csv;

	cr_assert_eq(write_report(&made->report, XPT_FORMAT_SAMPLES), 0);
	content = read_content(in_folder("out"));
	csv = csv_read(content.bytes, content.length);
	cr_assert_eq(csv.count, 6);
	cr_assert_str_eq(csv.record[0].field[3], "p1");
	csv_free(&csv);
	free(content.bytes);

	cr_assert_eq(write_report(&made->report, XPT_FORMAT_SUMMARY), 0);
	content = read_content(in_folder("out"));
	csv = csv_read(content.bytes, content.length);
	cr_assert_eq(csv.count, 2);
	cr_assert_str_eq(csv_get(&csv, 0, 1, "name"), "p1");
	csv_free(&csv);
	free(content.bytes);

	cr_assert_eq(write_report(&made->report, XPT_FORMAT_TRACE), 0);
	expect_content(in_folder("out"), made->trace);
	free_report(made);
}

/* More than one piece; every row once and in order. */
Test(report_latency_report_document, a_long_report_is_whole)
{
	struct made_report *made = make_report(1, 40000);
	struct content content;
	unsigned int expected = 1;
	char *line;

	cr_assert_eq(write_report(&made->report, XPT_FORMAT_SAMPLES), 0);
	content = read_content(in_folder("out"));
	cr_assert_gt(content.length, 3 * REPORT_PIECE);
	line = strstr(content.bytes, "\nSample,");
	for (line = strchr(line + 1, '\n') + 1; *line; line = strchr(line, '\n') + 1)
		cr_assert_eq(strtoul(line, NULL, 10), expected++);
	cr_assert_eq(expected, 40001);
	free(content.bytes);
	free_report(made);
}

Test(report_latency_report_document, formats_that_do_not_fit)
{
	struct made_report *made = make_report(1, 1);

	cr_assert_eq(write_report(&made->report, XPT_FORMAT_TRACE), -EINVAL);
	made->report.type = XPT_PROFILE_TRACE;
	cr_assert_eq(write_report(&made->report, XPT_FORMAT_TRACE), -EINVAL, "no trace inside");
	cr_assert_eq(write_report(&made->report, XPT_FORMAT_PERFETTO + 1), -EINVAL);
	cr_assert_eq(write_report(&made->report, -1), -EINVAL);
	expect_content(in_folder("out"), "");
	free_report(made);
}

Test(report_latency_report_document, no_programs_give_nothing)
{
	struct made_report *made = make_report(1, 1);

	made->report.program_count = 0;
	cr_assert_eq(write_report(&made->report, XPT_FORMAT_SAMPLES), 0);
	expect_content(in_folder("out"), "");
	cr_assert_eq(write_report(&made->report, XPT_FORMAT_SUMMARY), 0);
	expect_content(in_folder("out"), "");
	free_report(made);
}

Test(report_latency_report_document, what_write_says)
{
	struct made_report *made = make_trace(1);
	int full = open("/dev/full", O_WRONLY);

	cr_assert_eq(xpt_profile_report_write(&made->report, XPT_FORMAT_SAMPLES, -1), -EBADF);
	cr_assert_eq(xpt_profile_report_write(&made->report, XPT_FORMAT_SAMPLES, full), -ENOSPC);
	cr_assert_eq(xpt_profile_report_write(&made->report, XPT_FORMAT_SUMMARY, full), -ENOSPC);
	cr_assert_eq(xpt_profile_report_write(&made->report, XPT_FORMAT_TRACE, full), -ENOSPC);
	close(full);
	free_report(made);
}

/* All reports of count, then the tail: must be a document wherever it is cut between reports. */
static cJSON *join(struct made_report **made, size_t count, bool last)
{
	struct report_document document = { .format = XPT_FORMAT_TRACE };
	struct text all = { 0 }, piece = { 0 };
	cJSON *json;

	for (size_t i = 0; i < count; i++) {
		struct report_part part = { .report = &made[i]->report };
		bool more = true;

		while (more) {
			text_clear(&piece, SIZE_MAX);
			more = report_document_next(&document, &part, &piece);
			text_bytes(&all, piece.data, piece.length);
		}
		report_document_count(&document, &made[i]->report);
	}
	report_document_tail(&document, &all, last);
	text_literal(&all, "\0");
	json = cJSON_ParseWithOpts(all.data, NULL, 1);
	cr_assert_not_null(json, "%s", all.data);
	text_free(&all);
	text_free(&piece);
	return json;
}

Test(report_latency_report_document, joined_traces_are_one_document)
{
	struct made_report *made[4];
	static char outside[] = "{\"name\":\"outside\",\"ph\":\"i\",\"ts\":1,\"pid\":1,\"tid\":1}";
	cJSON *json;

	for (unsigned int i = 0; i < 4; i++)
		made[i] = make_trace(i);
	/* Without events: no comma too many, wherever it stands. */
	made[0]->report.trace_events_length = 0;
	made[2]->report.trace_events_length = 0;
	for (size_t count = 0; count <= 4; count++) {
		json = join(made, count, count == 4);
		cr_assert_eq(trace_events(json), count < 2 ? 0 : count < 4 ? 2 : 4);
		cr_assert_eq(trace_complete(json), count == 4);
		cr_assert_eq(trace_number(json, "reports"), count);
		cr_assert_eq(trace_number(json, "inferences"), 6 * count);
		cr_assert_eq(trace_number(json, "samples"), count);
		cr_assert_eq(trace_number(json, "lost"), 2 * count);
		if (count) {
			cr_assert_eq(trace_number(json, "start_us"), 0);
			cr_assert_eq(trace_number(json, "end_us"), 1000 * count);
			cr_assert_str_eq(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "otherData"), "host")
						 ->valuestring,
					 "h0", "where it was made comes from the first report");
		}
		cJSON_Delete(json);
	}
	/* Events that do not stand in the document have no head there. */
	made[0]->report.trace_events = outside;
	made[0]->report.trace_events_length = strlen(outside);
	json = join(made, 2, true);
	cr_assert_eq(trace_events(json), 3);
	cJSON_Delete(json);
	for (unsigned int i = 0; i < 4; i++)
		free_report(made[i]);
}

Test(report_latency_report_document, long_events_come_in_pieces)
{
	char *events;
	struct made_report *made = make_long_trace(1, 3 * REPORT_PIECE, &events);
	cJSON *json;

	json = join(&made, 1, true);
	cr_assert_eq(trace_events(json), 2);
	cJSON_Delete(json);
	free(events);
	free_report(made);
}
