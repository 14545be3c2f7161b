/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/trace/event_file.h"

#include "report/trace/csv_text.h"
#include "report_csv.h"
#include "report_operators.h"

static const char *const columns[] = { "Msg Timestamp",	      "Message",       "Time",
				       "Unit of Measurement", "Timing Source", "Event Level",
				       "Event Identifier" };

static struct event_file *file;
static char *path;

static struct fixture *create(const struct event_format *format)
{
	struct fixture *f = fixture_operators();

	path = path ?: file_path();
	file = file_of(f, format, path, 0);
	return f;
}

/* What is in the file, read as RFC 4180 has it. Frees the fixture. */
static struct csv finish(struct fixture *f)
{
	size_t length;
	char *text = file_finish(f, file, path, &length);
	struct csv csv = csv_read(text, length);

	cr_assert_geq(csv.count, 1);
	cr_assert_eq(csv.record[0].count, 7);
	for (size_t i = 0; i < 7; i++)
		cr_assert_str_eq(csv.record[0].field[i], columns[i]);
	free(text);
	return csv;
}

static void clean(void)
{
	unlink(path);
	free(path);
}

TestSuite(report_trace_qnn_csv, .fini = clean);

/* One row; of the columns those that differ from row to row. */
struct expected {
	const char *timestamp, *message, *time, *level, *identifier;
};

#define ROOT "ROOT"
#define SUB "SUB-EVENT"

static void expect(struct csv csv, const struct expected *rows, size_t count)
{
	cr_assert_eq(csv.count, count + 1, "%zu rows", csv.count - 1);
	for (size_t i = 0; i < count; i++) {
		const struct expected *row = &rows[i];
		const char *const fields[] = { row->timestamp, row->message, row->time,	     "US",
					       "BACKEND",      row->level,   row->identifier };

		cr_assert_eq(csv.record[i + 1].count, 7);
		for (size_t j = 0; j < 7; j++)
			cr_assert_str_eq(csv.record[i + 1].field[j], fields[j], "row %zu, %s", i, columns[j]);
	}
	csv_free(&csv);
}

#define EXPECT(csv, rows) expect(csv, rows, sizeof(rows) / sizeof((rows)[0]))

/* A program's life: loaded, run twice by thread 7 with three operators the first time, one inside another; unloaded. */
static void feed_life(struct fixture *f)
{
	toy_load(f, 0x10, "model", 100000, 4600000);
	toy_node(f, 0x200, "\"name\":\"/fc/Gemm\",\"type\":\"Gemm\"");
	toy_operator(f, 7, 0x100, TOY_CLASS, 5000000, 5001400, 5002600);
	toy_operator(f, 7, 0x200, TOY_CLASS, 5000000, 5004000, 5005000);
	toy_operator(f, 7, 0x300, TOY_INNER_CLASS, 5000000, 5002600, 5009499);
	CALL_1(f, TOY_EXECUTE, 1, 7, 5000000, 5010000, 4, 0x10, U(64), U(2), U(0));
	toy_operator(f, 7, 0x100, TOY_CLASS, 0, 5020000, 5021000);
	CALL_1(f, TOY_EXECUTE, 1, 7, 6000000, 6003000, 4, 0x10, U(64), U(2), U(0));
	toy_unload(f, 0x10, 7000000, 7002000);
}

Test(report_trace_qnn_csv, detailed)
{
	static const struct expected rows[] = {
		{ "100", "INIT", "4500", ROOT, "model" },    { "5000", "EXECUTE", "10", ROOT, "model" },
		{ "5001", "NODE", "2", SUB, "FusedGemm#1" }, /* 5001.4 to 5002.6 */
		{ "5003", "NODE", "6", SUB, "If#1" },	     { "5004", "NODE", "1", SUB, "/fc/Gemm" },
		{ "6000", "EXECUTE", "3", ROOT, "model" },   { "7000", "DE-INIT", "2", ROOT, "model" },
	};
	struct fixture *f = create(&qnn_csv_detailed);

	feed_life(f);
	EXPECT(finish(f), rows);
}

Test(report_trace_qnn_csv, basic)
{
	static const struct expected rows[] = {
		{ "UNKNOWN", "INIT", "4500", ROOT, "model" },
		{ "UNKNOWN", "EXECUTE", "10", ROOT, "model" },
		{ "UNKNOWN", "EXECUTE", "3", ROOT, "model" },
		{ "UNKNOWN", "DE-INIT", "2", ROOT, "model" },
	};
	struct fixture *f = create(&qnn_csv_basic);

	feed_life(f);
	EXPECT(finish(f), rows);
}

Test(report_trace_qnn_csv, goes_behind_what_is_there)
{
	static const struct expected rows[] = {
		{ "UNKNOWN", "EXECUTE", "1", ROOT, "toy model 1" },
		{ "2", "EXECUTE", "2", ROOT, "toy model 1" },
	};
	struct fixture *f = create(&qnn_csv_basic);
	struct csv csv;

	toy_execute(f, 1, 0x10, 1000, 2000);
	csv = finish(f);
	csv_free(&csv);
	f = create(&qnn_csv_detailed);
	toy_execute(f, 1, 0x10, 2000, 4000);
	EXPECT(finish(f), rows);
}

/* Two threads at once, which even begin in the same nanosecond. */
Test(report_trace_qnn_csv, inferences_at_the_same_time)
{
	static const struct expected rows[] = {
		{ "1000", "EXECUTE", "8", ROOT, "model" },   { "1003", "NODE", "2", SUB, "FusedGemm#2" },
		{ "1000", "EXECUTE", "10", ROOT, "model" },  { "1001", "NODE", "1", SUB, "FusedGemm#1" },
		{ "1006", "NODE", "1", SUB, "FusedGemm#3" },
	};
	struct fixture *f = create(&qnn_csv_detailed);
	struct csv csv;

	toy_load(f, 0x10, "model", 0, 1000);
	toy_operator(f, 7, 0x100, TOY_CLASS, 1000000, 1001000, 1002000);
	toy_operator(f, 8, 0x200, TOY_CLASS, 1000000, 1003000, 1005000);
	toy_operator(f, 7, 0x300, TOY_CLASS, 1000000, 1006000, 1007000);
	CALL_1(f, TOY_EXECUTE, 1, 8, 1000000, 1008000, 4, 0x10, U(64), U(2), U(0));
	CALL_1(f, TOY_EXECUTE, 1, 7, 1000000, 1010000, 4, 0x10, U(64), U(2), U(0));
	csv = finish(f);
	cr_assert_str_eq(csv_get(&csv, 0, 1, "Message"), "INIT");
	for (size_t i = 0; i < 7; i++)
		free(csv.record[1].field[i]);
	memmove(&csv.record[1], &csv.record[2], (--csv.count - 1) * sizeof(*csv.record));
	EXPECT(csv, rows);
}

/* Told when the wait has ended; its operators ran while it was enqueued. One that is never waited for has no time. */
Test(report_trace_qnn_csv, asynchronous)
{
	static const struct expected rows[] = {
		{ "1000", "EXECUTE", "9", ROOT, "toy model 1" },
		{ "1001", "NODE", "1", SUB, "FusedGemm#1" },
	};
	struct fixture *f = create(&qnn_csv_detailed);

	toy_operator(f, 1, 0x100, TOY_CLASS, 1000000, 1001000, 1002000);
	CALL_1(f, TOY_ENQUEUE, 1, 1, 1000000, 1003000, 4, U(0x10), U(77), U(1), U(0));
	CALL_1(f, TOY_WAIT, 1, 1, 1004000, 1009000, 3, U(77), U(1), U(0));
	toy_operator(f, 1, 0x100, TOY_CLASS, 2000000, 2001000, 2002000);
	CALL_1(f, TOY_ENQUEUE, 1, 1, 2000000, 2003000, 4, U(0x10), U(78), U(1), U(0));
	EXPECT(finish(f), rows);
}

Test(report_trace_qnn_csv, what_is_no_inference)
{
	static const struct expected rows[] = { { "3000", "EXECUTE", "9", ROOT, "toy model 1" } };
	struct fixture *f = create(&qnn_csv_detailed);
	struct call_record entry = call_make(TOY_UNLOAD, 1, 1, 5000000, 5000000, 2, U(0x10), U(0));
	struct call_record layer = call_make(LOW_EXECUTE, 1, 1, 3001000, 3002000, 1, U(0x20));
	struct call_record failed = call_make(TOY_LOAD, 1, 1, 500000, 600000, 4, U(0x30), U(0), U(0), U(9));

	layer.call.flags |= XPT_CALL_LAYER;
	layer.call.depth = 1;
	entry.call.flags |= XPT_CALL_NO_END;
	failed.call.valid = 0x18;
	cr_assert_eq(feed_call(f, failed), 0);
	CALL_1(f, TOY_LAUNCH, 1, 1, 1000000, 1001000, 3, U(0x10), U(1), U(77));
	CALL_1(f, TOY_WAIT, 1, 1, 1002000, 1003000, 3, U(77), U(1), U(0));
	CALL_1(f, TOY_COPY, 1, 1, 1500000, 1600000, 2, U(64), U(0));
	cr_assert_eq(feed_call(f, layer), 0);
	toy_execute(f, 1, 0x10, 3000000, 3009000);
	cr_assert_eq(feed_call(f, entry), 0);
	EXPECT(finish(f), rows);
}

/* Only what the driver has reported. */
Test(report_trace_qnn_csv, device_times)
{
	static const struct expected rows[] = {
		{ "1000", "EXECUTE", "9", ROOT, "NULL" },	{ "UNKNOWN", "EXECUTE QUEUE WAIT", "2", SUB, "NULL" },
		{ "1003", "EXECUTE DEVICE", "4", SUB, "NULL" }, { "2000", "EXECUTE", "1", ROOT, "NULL" },
		{ "3000", "EXECUTE", "2", ROOT, "NULL" },	{ "3001", "EXECUTE DEVICE", "1", SUB, "NULL" },
	};
	static const struct model_function function = { .name = "toy_execute", .role = XPT_ROLE_EXECUTE },
					   enqueue = { .name = "toy_enqueue", .role = XPT_ROLE_ENQUEUE };
	struct event event = { .kind = EVENT_CALL,
			       .call = { .function = &function,
					 .tgid = 1,
					 .tid = 1,
					 .start = 1000000,
					 .end = 1009000,
					 .device = { .jobs = 1,
						     .runs = 1003000,
						     .done = 1007499,
						     .queue_time = 1500,
						     .device_time = 4499 } } };
	struct fixture *f = create(&qnn_csv_detailed);
	const struct event_sink sink = event_file_sink(file);

	cr_assert_eq(sink.write(sink.context, &event), 0);
	event.call.start = 2000000;
	event.call.end = 2001000;
	event.call.device = (struct model_device_times){ .jobs = 1, .unfinished = 1 };
	cr_assert_eq(sink.write(sink.context, &event), 0);
	event = (struct event){ .kind = EVENT_INFERENCE,
				.inference = { .function = &enqueue,
					       .start = 3000000,
					       .end = 3002000,
					       .device = { .runs = 3001000, .device_time = 501 } } };
	cr_assert_eq(sink.write(sink.context, &event), 0);
	EXPECT(finish(f), rows);
}

/* Each row is one line, whatever a name has in it: a reader of lines finds them, too. */
Test(report_trace_qnn_csv, hostile_identifiers)
{
	static const struct expected rows[] = {
		{ "0", "INIT", "1", ROOT, "a,\"b\"\\x0ac" },
		{ "1000", "EXECUTE", "9", ROOT, "a,\"b\"\\x0ac" },
		{ "1001", "NODE", "1", SUB, "'=1+1,\\x1b[2J" },
		{ "1002", "NODE", "1", SUB, "\\xff\\x0d,ROOT" },
	};
	struct fixture *f = create(&qnn_csv_detailed);
	const char *line;
	size_t length, lines = 0;
	char *text;

	toy_load(f, 0x10, "a,\"b\"\nc", 100, 1000);
	toy_node(f, 0x100, "\"name\":\"=1+1,\\u001b[2J\"");
	toy_node(f, 0x200, "\"name\":\"\xff\\r,ROOT\"");
	toy_operator(f, 1, 0x100, TOY_CLASS, 1000000, 1001000, 1002000);
	toy_operator(f, 1, 0x200, TOY_CLASS, 1000000, 1002000, 1003000);
	toy_execute(f, 1, 0x10, 1000000, 1009000);
	EXPECT(finish(f), rows);
	text = file_text(path, &length);
	for (line = text; *line; line = strchr(line, '\n') + 1)
		lines++;
	cr_assert_eq(lines, 5);
	free(text);
}

static char said[256];

static void hear(void *context, enum xpt_log_level level, const char *message)
{
	(void)context;
	(void)level;
	snprintf(said, sizeof(said), "%s", message);
}

/* Inferences that never end take bounded memory; what is not written for them is reported. */
Test(report_trace_qnn_csv, too_many_are_reported)
{
	static const struct log ear = { .write = hear, .level = XPT_LOG_WARN };
	static const struct model_function function = { .name = "toy_compute", .role = XPT_ROLE_OPERATOR };
	struct event event = { .kind = EVENT_CALL, .call = { .function = &function, .tgid = 1, .tid = 1 } };
	struct event_sink sink;
	size_t length;
	char *text;

	path = file_path();
	cr_assert_eq(event_file_create(&ear, &qnn_csv_detailed, path, -1, &(struct recording_info){}, &file), 0);
	sink = event_file_sink(file);
	for (__u64 i = 1; i <= OPERATOR_BUFFER_INFERENCES + 5; i++) {
		event.call.inference = event.call.start = event.call.end = i;
		cr_assert_eq(sink.write(sink.context, &event), 0);
	}
	cr_assert_eq(event_file_close(file, NULL), 0);
	cr_assert_not_null(strstr(said, "5 operators are not in the CSV"), "%s", said);
	text = file_text(path, &length);
	cr_assert_eq(strchr(text, '\n'), text + length - 1, "%s", text);
	free(text);
}
