/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xputrace/merge.h>

#include "cli/commands.h"
#include "cli/options.h"

#define OFFSET_MAX (1ll << 60) /* ns, 36 years */

struct merge_context {
	const char *output;
	bool quiet;
	struct string_list traces, offsets; /* offsets: "FILE=TIME" */
};

/* "-1.5ms", exactly; a bare number is seconds. */
static bool parse_offset(const char *text, int64_t *nanoseconds)
{
	static const struct {
		const char *name;
		int64_t factor;
	} units[] = { { "", 1000000000 }, { "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 } };
	bool negative = *text == '-', behind = false, any = false;
	__int128 digits = 0, scale = 1;

	for (text += negative; (*text >= '0' && *text <= '9') || (*text == '.' && !behind); text++) {
		if (*text == '.') {
			behind = true;
			continue;
		}
		if (digits > OFFSET_MAX || scale > OFFSET_MAX)
			return false;
		any = true;
		digits = digits * 10 + (*text - '0');
		scale *= behind ? 10 : 1;
	}
	for (size_t i = 0; any && i < sizeof(units) / sizeof(units[0]); i++) {
		__int128 value = digits * units[i].factor / scale;

		if (strcmp(text, units[i].name) != 0 || value > OFFSET_MAX)
			continue;
		*nanoseconds = (int64_t)(negative ? -value : value);
		return true;
	}
	return false;
}

static bool take_offset(void *context, const char *value, const char **reason)
{
	const char *sign = strrchr(value, '=');
	int64_t nanoseconds;

	(void)reason;
	return sign && sign > value && parse_offset(sign + 1, &nanoseconds) && string_list_add(context, value);
}

#define FIELD(name) .offset = offsetof(struct merge_context, name)

static const struct option_entry entries[] = {
	{ 'o', "output", "FILE", "Chrome trace to write; -: on standard output", OPTION_STRING, FIELD(output) },
	{ 0, "offset", "FILE=TIME",
	  "what to add to the times of this trace, whatever it says about\n"
	  "its clock: 1.5s, -20ms, 17us, 4ns. May be given several times",
	  OPTION_CALLBACK, FIELD(offsets), .take = take_offset,
	  .expected = "FILE=TIME, such as prof.json=12345.678901234s" },
	{ 'q', "quiet", NULL, "only warnings and errors", OPTION_FLAG, FIELD(quiet) },
	{}
};

static const struct command_line line = {
	.name = "merge",
	.summary = "Merge Chrome traces of the same time by their clocks.",
	.usage = "  xputrace merge TRACE... -o FILE",
	.options = entries,
	.any_order = true,
	.more = "TRACE is a trace of xputrace; a profile that ONNX Runtime wrote, with a trace of xputrace of the same\n"
		"process and time; one of PyTorch's profiler; or another Chrome trace that names its clock. The clock\n"
		"that places each, and its accuracy, are printed.\n\n"
		"  xputrace merge trace.json onnxruntime_profile__2026-11-20_10-29-37.json -o both.json\n\n"
		"exit status: 0 merged, 1 failed, 2 wrong usage",
};

/* The traces with their offsets. False, reported: wrong usage. */
static bool fill_inputs(const struct merge_context *merge, struct xpt_merge_input *inputs)
{
	for (size_t i = 0; i < merge->traces.count; i++)
		inputs[i].path = merge->traces.items[i];
	for (size_t i = 0; i < merge->offsets.count; i++) {
		const char *offset = merge->offsets.items[i], *sign = strrchr(offset, '=');
		bool found = false;

		for (size_t j = 0; j < merge->traces.count; j++) {
			if (strlen(inputs[j].path) != (size_t)(sign - offset) ||
			    strncmp(inputs[j].path, offset, sign - offset) != 0)
				continue;
			found = true;
			inputs[j].has_offset = parse_offset(sign + 1, &inputs[j].offset);
		}
		if (!found) {
			fprintf(stderr, "xputrace merge: --offset '");
			print_name(stderr, offset, 0);
			fprintf(stderr, "': no trace with this name was given\n");
			return false;
		}
	}
	return true;
}

static int run(const struct merge_context *merge)
{
	struct xpt_merge_options options = {
		.size = sizeof(options),
		.input_count = merge->traces.count,
		.output = merge->output,
		.log = print_message,
		.log_level = merge->quiet ? XPT_LOG_WARN : XPT_LOG_INFO,
	};
	struct xpt_merge_input *inputs = calloc(merge->traces.count, sizeof(*inputs));
	struct confined_file *files = calloc(merge->traces.count + 1, sizeof(*files));
	int result;

	if (!inputs || !files || !fill_inputs(merge, inputs)) {
		result = inputs && files ? EXIT_USAGE : exit_failed(-ENOMEM);
		free(inputs);
		free(files);
		return result;
	}
	for (size_t i = 0; i < merge->traces.count; i++)
		files[i].path = merge->traces.items[i];
	files[merge->traces.count] = (struct confined_file){ .path = merge->output, .output = true };
	confined_begin(files, merge->traces.count + 1);
	free(files);
	options.inputs = inputs;
	options.input_size = sizeof(*inputs);
	result = xpt_merge_traces(&options);
	if (!result && !merge->quiet && strcmp(merge->output, "-") != 0)
		fprintf(stderr, "wrote %s: open it in https://ui.perfetto.dev or chrome://tracing\n", merge->output);
	free(inputs);
	return result ? exit_failed(result) : 0;
}

int command_merge(int argc, char **argv)
{
	struct merge_context merge = { 0 };
	int first, result = options_parse(&line, argc, argv, &merge, &first);

	if (!result)
		merge.traces = (struct string_list){ (const char **)(argv + first), argc - first };
	if (result == PARSE_HELP) {
		result = 0;
	} else if (!result && (!merge.traces.count || !merge.output)) {
		fprintf(stderr, "xputrace merge: expected TRACE... and -o FILE "
				"(see xputrace merge --help)\n");
		result = EXIT_USAGE;
	} else if (!result) {
		result = run(&merge);
	}
	free(merge.offsets.items);
	return result;
}
