/* SPDX-License-Identifier: BSD-2-Clause */
#include <xputrace/merge.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <stdio.h>

#include "report_trace.h"

#define ORIGIN(boot, monotonic, realtime)                                                               \
	"\"otherData\":{\"schema\":1,\"boot_id\":\"" boot "\",\"clock\":{\"monotonic_ns\":\"" monotonic \
	"\",\"realtime_ns\":\"" realtime "\"}}"
#define OURS ORIGIN("b", "1000000", "1790000000000000000")
#define RUN(start) "{\"ph\":\"X\",\"pid\":9,\"tid\":9,\"ts\":" start ",\"dur\":50,\"cat\":\"onnxruntime,execute\"}"
#define MODEL_RUN(start) \
	"{\"cat\":\"Session\",\"pid\":9,\"tid\":9,\"dur\":40,\"ts\":" start ",\"ph\":\"X\",\"name\":\"model_run\"}"

struct merged {
	char folder[32];
	char *inputs[4], *output;
	struct xpt_merge_input given[4];
	size_t count;
	char said[4096]; /* a line each */
	int result;
	cJSON *document;
};

static void note(void *context, enum xpt_log_level level, const char *text)
{
	char *said = context;
	size_t length = strlen(said);

	snprintf(said + length, 4096 - length, "%d %s\n", level, text);
}

static void put(const char *path, const char *bytes, size_t length)
{
	FILE *file = fopen(path, "w");

	cr_assert_not_null(file);
	cr_assert_eq(fwrite(bytes, 1, length, file), length);
	cr_assert_eq(fclose(file), 0);
}

static void begin(struct merged *merged)
{
	*merged = (struct merged){ .folder = "/tmp/report_merge.XXXXXX" };
	cr_assert_not_null(mkdtemp(merged->folder));
	cr_assert_gt(asprintf(&merged->output, "%s/out.json", merged->folder), 0);
}

static void add_bytes(struct merged *merged, const char *bytes, size_t length)
{
	char **path = &merged->inputs[merged->count];

	cr_assert_gt(asprintf(path, "%s/%zu.json", merged->folder, merged->count), 0);
	put(*path, bytes, length);
	merged->given[merged->count++].path = *path;
}

static void add(struct merged *merged, const char *text)
{
	add_bytes(merged, text, strlen(text));
}

static int merge(struct merged *merged)
{
	struct xpt_merge_options options = {
		.size = sizeof(options),
		.inputs = merged->given,
		.input_count = merged->count,
		.output = merged->output,
		.log = note,
		.log_context = merged->said,
	};

	cJSON_Delete(merged->document);
	merged->document = NULL;
	merged->said[0] = '\0';
	merged->result = xpt_merge_traces(&options);
	if (!merged->result)
		merged->document = parse_file(merged->output);
	return merged->result;
}

/* Nothing may be left but the inputs and, if it was said to be there, the output. */
static void end(struct merged *merged)
{
	char old[PATH_MAX];

	for (size_t i = 0; i < merged->count; i++) {
		cr_assert_lt(snprintf(old, sizeof(old), "%s.old", merged->inputs[i]), (int)sizeof(old));
		unlink(old);
		unlink(merged->inputs[i]);
		free(merged->inputs[i]);
	}
	unlink(merged->output);
	cr_assert_lt(snprintf(old, sizeof(old), "%s.old", merged->output), (int)sizeof(old));
	unlink(old); /* where the output was there before */
	cr_assert_eq(rmdir(merged->folder), 0, "something else is in %s", merged->folder);
	free(merged->output);
	cJSON_Delete(merged->document);
}

static const cJSON *event(const struct merged *merged, int index)
{
	return cJSON_GetArrayItem(at(merged->document, "traceEvents"), index);
}

static double time_of(const struct merged *merged, int index)
{
	return cJSON_GetNumberValue(at(event(merged, index), "ts"));
}

static const char *clock_of(const struct merged *merged, int index)
{
	return string_at(cJSON_GetArrayItem(at(at(merged->document, "metadata"), "merged"), index), "clock");
}

Test(report_merge_merge, clocks)
{
	struct merged merged;

	begin(&merged);
	add(&merged, "{" OURS ",\"traceEvents\":[\n{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":1234.567}\n]}");
	add(&merged, "{\"traceEvents\":[{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":77}],"
		     "\"metadata\":{\"clock-domain\":\"LINUX_CLOCK_MONOTONIC\"}}");
	add(&merged, "{\"baseTimeNanoseconds\":1789999999000000000,"
		     "\"traceEvents\":[{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":1000000.001}]}");
	add(&merged, "[{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":5}]");
	merged.given[3].has_offset = 1;
	merged.given[3].offset = -7;
	cr_assert_eq(merge(&merged), 0, "%s", merged.said);
	cr_assert_eq(time_of(&merged, 0), 1234.567);
	cr_assert_eq(time_of(&merged, 1), 77);
	cr_assert_eq(time_of(&merged, 2), 1000.001); /* the moment of both clocks, and 1 ns */
	cr_assert_eq(time_of(&merged, 3), 4.993);
	cr_assert_str_eq(clock_of(&merged, 0), "monotonic");
	cr_assert_str_eq(clock_of(&merged, 1), "monotonic");
	cr_assert_str_eq(clock_of(&merged, 2), "wall");
	cr_assert_str_eq(clock_of(&merged, 3), "given");
	cr_assert_str_eq(string_at(at(merged.document, "otherData"), "boot_id"), "b");
	/* It does not say that it is a merged one by accident only. */
	merged.given[0].path = merged.output;
	cr_assert_eq(merge(&merged), -EINVAL);
	cr_assert(strstr(merged.said, "merged trace already"));
	end(&merged);
}

Test(report_merge_merge, clock_on_the_wall_only)
{
	struct merged merged;

	begin(&merged);
	add(&merged, "{\"baseTimeNanoseconds\":1789999999000000000,\"traceEvents\":[{\"ph\":\"i\",\"ts\":1}]}");
	add(&merged, "{\"baseTimeNanoseconds\":1789999999000002000,\"traceEvents\":[{\"ph\":\"i\",\"ts\":1}]}");
	cr_assert_eq(merge(&merged), 0, "%s", merged.said);
	cr_assert_eq(time_of(&merged, 0), 1);
	cr_assert_eq(time_of(&merged, 1), 3);
	add(&merged, "{\"traceEvents\":[],\"metadata\":{\"clock-domain\":\"LINUX_CLOCK_MONOTONIC\"}}");
	cr_assert_eq(merge(&merged), -EINVAL);
	cr_assert(strstr(merged.said, "give a trace of xputrace"));
	end(&merged);
}

Test(report_merge_merge, no_clock)
{
	struct merged merged;

	begin(&merged);
	add(&merged, "{" OURS ",\"traceEvents\":[]}");
	add(&merged, "[{\"ph\":\"i\",\"ts\":1}]");
	cr_assert_eq(merge(&merged), -EINVAL);
	cr_assert(strstr(merged.said, "--offset") && strstr(merged.said, merged.inputs[1]), "%s", merged.said);
	end(&merged);
}

Test(report_merge_merge, another_boot)
{
	struct merged merged;

	begin(&merged);
	add(&merged, "{" OURS ",\"traceEvents\":[]}");
	add(&merged, "{" ORIGIN("c", "1", "2") ",\"traceEvents\":[]}");
	cr_assert_eq(merge(&merged), -EINVAL);
	cr_assert(strstr(merged.said, "another machine or boot"), "%s", merged.said);
	end(&merged);
}

Test(report_merge_merge, runs_are_matched)
{
	struct merged merged;

	begin(&merged);
	add(&merged, "[" MODEL_RUN("10") "," MODEL_RUN("110") "," MODEL_RUN("290") "," MODEL_RUN("421") "]");
	add(&merged,
	    "{" OURS ",\"traceEvents\":[" RUN("10005") "," RUN("10105") "," RUN("10285") "," RUN("10416") "]}");
	cr_assert_eq(merge(&merged), 0, "%s", merged.said);
	for (int i = 0; i < 4; i++) {
		double run = time_of(&merged, i), call = time_of(&merged, i + 4);

		cr_assert(call <= run && run + 40 <= call + 50, "%f in %f", run, call);
	}
	cr_assert_str_eq(clock_of(&merged, 0), "matched");
	cr_assert(strstr(merged.said, "4 of its 4 runs"));
	end(&merged);
}

#define NAMES(name)                                                                                      \
	"{\"ph\":\"M\",\"pid\":5,\"tid\":5,\"name\":\"process_name\",\"args\":{\"name\":\"" name "\"}}," \
	"{\"ph\":\"M\",\"pid\":5,\"tid\":6,\"name\":\"thread_name\",\"args\":{\"name\":\"" name " thread\"}}"

/* Ours come first, wherever they stand; another name of a process becomes a label. */
Test(report_merge_merge, names)
{
	const char *const other = "[" NAMES("other") ",{\"ph\":\"M\",\"pid\":5,\"tid\":7,\"name\":\"thread_name\","
						     "\"args\":{\"name\":\"seven\"}}]";
	struct merged merged;

	begin(&merged);
	add(&merged, other);
	add(&merged, "{" OURS ",\"traceEvents\":[" NAMES("ours") "]}");
	add(&merged, "[" NAMES("ours") "]");
	merged.given[0].has_offset = merged.given[2].has_offset = 1;
	cr_assert_eq(merge(&merged), 0, "%s", merged.said);
	cr_assert_eq(count_events(merged.document), 4);
	cr_assert_str_eq(string_at(event(&merged, 0), "name"), "process_labels");
	cr_assert_str_eq(string_at(at(event(&merged, 0), "args"), "labels"), "other");
	cr_assert_str_eq(string_at(at(event(&merged, 1), "args"), "name"), "seven");
	cr_assert_str_eq(string_at(at(event(&merged, 2), "args"), "name"), "ours");
	cr_assert_str_eq(string_at(at(event(&merged, 3), "args"), "name"), "ours thread");
	end(&merged);
}

/* Two reports of one session have the two ends of one arrow; another session's arrows are others. */
Test(report_merge_merge, sessions)
{
	struct merged merged;

	begin(&merged);
	add(&merged,
	    "{" OURS ",\"traceEvents\":[{\"ph\":\"i\",\"pid\":1073741825,\"tid\":1,\"ts\":1,\"id\":\"0x1\"}]}");
	add(&merged,
	    "{" ORIGIN("b", "5",
		       "6") ",\"traceEvents\":[{\"ph\":\"i\",\"pid\":1073741825,\"tid\":1,\"ts\":1,\"id\":\"0x1\"}]}");
	add(&merged,
	    "{" OURS ",\"traceEvents\":[{\"ph\":\"i\",\"pid\":1073741825,\"tid\":1,\"ts\":1,\"id\":\"0x1\"}]}");
	cr_assert_eq(merge(&merged), 0, "%s", merged.said);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(!strcmp(string_at(event(&merged, i), "id"), "0x1"), i != 1);
		cr_assert_eq(cJSON_GetNumberValue(at(event(&merged, i), "pid")) == 1073741825, i != 1);
	}
	end(&merged);
}

static const char *const whole =
	"{" OURS ",\n\"traceEvents\" : [\n"
	"{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":3.5,\"dur\":1e1,\"name\":\"\\u00e9\xc3\xa9\\\"\",\"args\":{\"a\":[{}]}},"
	"{\"ph\":\"i\",\"pid\":1,\"tid\":2,\"ts\":4}\n, {}],\"metadata\":{\"complete\":true}}\n ";

/* Cut anywhere, a trace is refused or gives its first events, unharmed. */
Test(report_merge_merge, cut_anywhere)
{
	size_t length = strlen(whole), begins = strchr(strstr(whole, "traceEvents"), '[') - whole + 1;
	struct merged merged;

	for (size_t i = 0; i <= length; i++) {
		begin(&merged);
		add_bytes(&merged, whole, i);
		merge(&merged);
		cr_assert_eq(merged.result, i < begins ? -EBADMSG : 0, "cut at %zu: %s", i, merged.said);
		cr_assert_eq(!!strstr(merged.said, "is cut off"), i >= begins && i < length - 2, "cut at %zu: %s", i,
			     merged.said);
		cr_assert_eq(access(merged.output, F_OK), merged.result ? -1 : 0);
		if (!merged.result && count_events(merged.document) > 0)
			cr_assert_eq(time_of(&merged, 0), 3.5);
		if (i == length)
			cr_assert_eq(count_events(merged.document), 2);
		end(&merged);
	}
}

/* Each byte in turn becomes another one: never a crash, a leak or a document that does not parse. */
Test(report_merge_merge, damaged_anywhere)
{
	static const char others[] = { '\0', '"', '{', '}', '[', ']', ',', '\\', '9', '\x80', '\xff' };
	size_t length = strlen(whole);
	struct merged merged;
	char *copy = strdup(whole);

	for (size_t i = 0; i < length; i++) {
		for (size_t j = 0; j < sizeof(others); j++) {
			begin(&merged);
			copy[i] = others[j];
			add_bytes(&merged, copy, length);
			merge(&merged);
			cr_assert(!merged.result || strstr(merged.said, merged.inputs[0]), "%s", merged.said);
			end(&merged);
		}
		copy[i] = whole[i];
	}
	free(copy);
}

static void refused(const char *bytes, size_t length, const char *reason)
{
	struct merged merged;

	begin(&merged);
	put(merged.output, "kept", 4);
	add_bytes(&merged, bytes, length);
	merged.given[0].has_offset = 1;
	cr_assert_eq(merge(&merged), -EBADMSG, "%s: %s", bytes, merged.said);
	cr_assert(strstr(merged.said, reason), "%s", merged.said);
	bytes = read_file(merged.output, &length);
	cr_assert_str_eq(bytes, "kept");
	free((char *)bytes);
	end(&merged);
}

Test(report_merge_merge, hostile)
{
	static const struct {
		const char *text, *reason;
	} bad[] = {
		{ "", "byte 0: ends before its events" },
		{ "  ", "byte 2: ends" },
		{ "hello", "byte 0: neither" },
		{ "{}", "no traceEvents" },
		{ "{\"traceEvents\":{}}", "no traceEvents" },
		{ "{\"traceEvents\":[]}x", "byte 18: something follows" },
		{ "[]]", "byte 2: something follows" },
		{ "[{}{}]", "byte 3: a comma" },
		{ "[{},]", "byte 4: expected an event" },
		{ "[1]", "byte 1: expected an event" },
		{ "[{\"ph\":\"i\",\"ts\":1e400}]", "byte 16: \"ts\"" },
		{ "[{\"ph\":\"i\",\"ts\":NaN}]", "byte 16: not valid" },
		{ "[{\"ph\":\"i\",\"name\":\"\xff\"}]", "byte 19: not valid" },
		{ "{1:2}", "byte 1: expected the name" },
		{ "{\"a\" 2}", "byte 5: a colon" },
	};
	size_t deep = 20000;
	char *text = malloc(deep);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refused(bad[i].text, strlen(bad[i].text), bad[i].reason);
	memset(text, '[', deep);
	refused(text, deep, "byte 1: expected an event");
	for (size_t i = 0; i < deep; i += 5)
		memcpy(text + i, "{\"a\":", 5);
	refused(text, deep, "ends before");
	memcpy(text, "[", 1);
	memcpy(text + 1, "{\"a\":", 4); /* from here on one brace for each five bytes */
	for (size_t i = 1; i + 5 < deep / 2; i += 5)
		memcpy(text + i, "{\"a\":", 5);
	memset(text + deep / 2, '}', deep / 2);
	refused(text, deep, "nested too deeply");
	refused("[{\"ph\":\"i\",\"name\":\"a\0b\"}]", 26, "byte 20: not valid");
	free(text);
}

Test(report_merge_merge, files)
{
	struct merged merged;

	begin(&merged);
	add(&merged, whole);
	/* In place of one of its inputs, with that one's mode. */
	cr_assert_eq(chmod(merged.inputs[0], 0640), 0);
	free(merged.output);
	merged.output = strdup(merged.inputs[0]);
	cr_assert_eq(merge(&merged), 0, "%s", merged.said);
	cr_assert_eq(count_events(merged.document), 2);
	free(merged.output);
	cr_assert_gt(asprintf(&merged.output, "%s/none/out.json", merged.folder), 0);
	put(merged.inputs[0], whole, strlen(whole));
	cr_assert_eq(merge(&merged), -ENOENT);
	merged.given[0].path = merged.folder;
	cr_assert_eq(merge(&merged), -EINVAL);
	merged.given[0].path = "/nonexistent";
	cr_assert_eq(merge(&merged), -ENOENT);
	end(&merged);
}

Test(report_merge_merge, options)
{
	struct xpt_merge_options options = { .size = sizeof(options) };
	struct xpt_merge_input input = { .path = "/nonexistent" };
	struct {
		struct xpt_merge_input known;
		char later[8];
	} newer = { .known = input, .later = { [7] = 1 } };

	cr_assert_eq(xpt_merge_traces(NULL), -EINVAL);
	cr_assert_eq(xpt_merge_traces(&options), -EINVAL);
	options.inputs = &input;
	options.input_count = 1;
	cr_assert_eq(xpt_merge_traces(&options), -EINVAL);
	options.output = "/dev/null";
	cr_assert_eq(xpt_merge_traces(&options), -ENOENT);
	options.inputs = &newer.known;
	options.input_size = sizeof(newer);
	cr_assert_eq(xpt_merge_traces(&options), -E2BIG);
	newer.later[7] = 0;
	cr_assert_eq(xpt_merge_traces(&options), -ENOENT);
}
