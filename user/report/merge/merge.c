/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xpt_merge_traces(): all inputs are read twice. First to check them, to find their clocks and who names what, so that
 * nothing is written before all of that is known; then to write their events.
 */
#include <xputrace/merge.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"
#include "base/file/file.h"
#include "base/file/gzip.h"
#include "base/core/options.h"
#include "base/file/output.h"
#include "report/chrome/chrome.h"
#include "report/merge/input.h"

#define BUFFER_SIZE (1u << 20)
#define TEXT_KEPT (4u << 20)

struct merge {
	struct log log;
	struct merge_input *inputs;
	size_t count;
	struct merge_names names;
	struct output_file output;
	struct gzip *gzip; /* NULL: the output is not compressed */
	struct text text;
	bool any; /* an event has been written: the next follows a comma */
};

/* ---- what is known before anything is written ---- */

static int survey(struct merge *merge, const struct xpt_merge_options *options)
{
	int error = 0;

	for (size_t i = 0; i < merge->count && !error; i++) {
		struct merge_input *input = &merge->inputs[i];
		struct xpt_merge_input given;

		error = options_copy_element(&given, sizeof(given), options->inputs, options->input_size, i);
		if (error)
			break;
		input->path = given.path;
		error = merge_input_survey(input, &merge->log, &merge->names, i);
		if (!given.has_offset)
			continue;
		input->clock = MERGE_CLOCK_GIVEN;
		input->numbers.shift = given.offset;
	}
	return error;
}

/* Traces of xputrace win, then those that were given first. */
static void settle_names(struct merge *merge)
{
	for (size_t i = 0; i < merge->names.count; i++) {
		struct merge_name *name = &merge->names.items[i];

		name->rank = name->input + (merge->inputs[name->input].numbers.ours ? 0 : merge->count);
	}
	merge_names_settle(&merge->names);
}

/* Traces of one session of xputrace have the same origin, and mean the same by a number. */
static bool same_session(const struct merge_input *a, const struct merge_input *b)
{
	return a->numbers.ours && b->numbers.ours && !strcmp(a->other_data, b->other_data);
}

static int number_spaces(struct merge *merge)
{
	unsigned int spaces = 0;

	for (size_t i = 0; i < merge->count; i++) {
		struct merge_input *input = &merge->inputs[i];
		size_t j;

		for (j = 0; j < i && !same_session(input, &merge->inputs[j]); j++)
			;
		input->numbers.space = j < i ? merge->inputs[j].numbers.space : spaces++;
	}
	if (spaces <= MERGE_SPACES)
		return 0;
	log_error(&merge->log, "traces of %u sessions cannot be merged: %u at most", spaces, MERGE_SPACES);
	return -E2BIG;
}

/* ---- writing ---- */

/* The name that a process has in this input is a label of it: another one is its name already. */
static void write_label(struct merge *merge, const struct merge_event *event)
{
	struct json_part name = json_member(event->arguments, "name");

	text_literal(&merge->text, "{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":");
	text_unsigned(&merge->text, event->process);
	text_literal(&merge->text, ",\"tid\":");
	text_unsigned(&merge->text, event->thread_known ? event->thread : event->process);
	text_literal(&merge->text, ",\"args\":{\"labels\":");
	text_bytes(&merge->text, name.text, name.length);
	text_literal(&merge->text, "}}");
}

static void write_event(struct merge *merge, unsigned int index, struct json_part value,
			const struct merge_event *event)
{
	const struct merge_numbers *numbers = &merge->inputs[index].numbers;
	enum merge_name_fate fate = MERGE_NAME_KEPT;

	if (event->phase == 'M' && !(event->process_known && merge_synthetic(numbers, event->process)))
		fate = merge_names_fate(&merge->names, event, index);
	if (fate == MERGE_NAME_DROPPED)
		return;
	text_bytes(&merge->text, merge->any ? ",\n" : "\n", merge->any ? 2 : 1);
	merge->any = true;
	if (fate == MERGE_NAME_LABEL)
		write_label(merge, event);
	else
		merge_event_write(&merge->text, value, event, numbers);
}

/* Writes what is in the text and empties it. */
static int flush(struct merge *merge)
{
	int error = merge->text.error ?:
			    gzip_write(merge->gzip, merge->output.descriptor, merge->text.data, merge->text.length);

	text_clear(&merge->text, TEXT_KEPT);
	return error;
}

static int write_input(struct merge *merge, unsigned int index)
{
	struct merge_input *input = &merge->inputs[index];
	struct merge_event event;
	struct merge_item item;
	int result;

	merge_reader_rewind(input->reader);
	while ((result = merge_reader_next(input->reader, &item)) == 1) {
		if (!item.event)
			continue;
		merge_event_read(item.value, &event);
		if (event.fault)
			return merge_reader_refuse(input->reader, &item, event.fault_at, event.fault);
		if (!event.phase)
			continue;
		write_event(merge, index, item.value, &event);
		result = merge->text.error;
		if (!result && merge->text.length >= BUFFER_SIZE)
			result = flush(merge);
		if (result)
			return result;
	}
	if (!result)
		result = merge_reader_changed(input->reader);
	if (result != 1)
		return result;
	log_error(&merge->log, "%s: has changed while it was read: wait until it is complete", input->path);
	return -EBUSY;
}

static const struct merge_input *reference_of(const struct merge *merge)
{
	for (size_t i = 0; i < merge->count; i++) {
		if (merge->inputs[i].numbers.ours)
			return &merge->inputs[i];
	}
	return NULL;
}

static void write_head(struct merge *merge)
{
	const struct merge_input *reference = reference_of(merge);

	text_literal(&merge->text, "{\"displayTimeUnit\":\"ns\",\"otherData\":");
	text_string(&merge->text, reference ? reference->other_data : "{}");
	text_literal(&merge->text, ",\"traceEvents\":[");
}

static void write_origin(struct text *text, const struct merge_input *input)
{
	static const char *const clocks[] = { "matched", "given", "monotonic", "wall" };

	json_begin(text, NULL, '{');
	json_add_text(text, "file", input->path);
	json_add_text(text, "clock", clocks[input->clock]);
	json_key(text, "offset_ns");
	text_literal(text, "\"");
	text_signed(text, input->numbers.shift);
	text_literal(text, "\"");
	json_add_unsigned(text, "uncertainty_ns", input->uncertainty);
	json_add_unsigned(text, "events", input->events);
	if (input->other_data) {
		json_key(text, "otherData");
		text_string(text, input->other_data);
	}
	if (input->metadata) {
		json_key(text, "metadata");
		text_string(text, input->metadata);
	}
	json_end(text, '}');
}

static int write_all(struct merge *merge)
{
	int error = 0;

	write_head(merge);
	for (size_t i = 0; i < merge->count && !error; i++)
		error = write_input(merge, i);
	if (error)
		return error;
	text_literal(&merge->text, "\n],\"metadata\":{\"complete\":true,\"merged\":[");
	for (size_t i = 0; i < merge->count; i++) {
		json_newline(&merge->text);
		write_origin(&merge->text, &merge->inputs[i]);
	}
	text_literal(&merge->text, "]}}");
	return flush(merge);
}

static int open_output(struct merge *merge, const char *path)
{
	if (!strcmp(path, "-")) {
		merge->output.descriptor = file_standard_output();
		return merge->output.descriptor < 0 ? merge->output.descriptor : 0;
	}
	merge->gzip = gzip_is_name(path) ? gzip_create() : NULL;
	return gzip_is_name(path) && !merge->gzip ? -ENOMEM : output_begin(path, &merge->output);
}

static int write_output(struct merge *merge, const char *path)
{
	__u64 bytes = 0;
	int error;

	for (size_t i = 0; i < merge->count; i++)
		bytes += merge_reader_size(merge->inputs[i].reader);
	if (bytes > CHROME_VIEWER_BYTES)
		chrome_warn_size(&merge->log, CHROME_VIEWER_BYTES);
	error = open_output(merge, path);
	if (!error) {
		error = write_all(merge);
		if (!error && merge->gzip)
			error = gzip_finish(merge->gzip, merge->output.descriptor);
		error = output_end(&merge->output, error);
	}
	gzip_free(merge->gzip);
	if (error && error != -EBADMSG && error != -EBUSY)
		log_error(&merge->log, "%s: cannot be written: %s", path, output_reason(error));
	return error;
}

static bool first_is_packets(const struct xpt_merge_options *options)
{
	struct xpt_merge_input given;

	return !options_copy_element(&given, sizeof(given), options->inputs, options->input_size, 0) &&
	       packets_are(given.path);
}

int xpt_merge_traces(const struct xpt_merge_options *given)
{
	struct xpt_merge_options options = { 0 };
	struct merge merge = { .output.descriptor = -1 };
	int error = options_copy(&options, sizeof(options), given);

	if (error)
		return error;
	if (!options.inputs || !options.input_count || !options.output)
		return -EINVAL;
	merge.log = (struct log){ options.log, options.log_context, options.log_level };
	if (first_is_packets(&options))
		return packets_merge(&merge.log, &options);
	merge.count = options.input_count;
	merge.inputs = calloc(merge.count, sizeof(*merge.inputs));
	error = merge.inputs ? survey(&merge, &options) : -ENOMEM;
	error = error ?: number_spaces(&merge);
	if (!error)
		settle_names(&merge);
	error = error ?: merge_clocks(&merge.log, merge.inputs, merge.count);
	error = error ?: write_output(&merge, options.output);
	for (size_t i = 0; merge.inputs && i < merge.count; i++)
		merge_input_free(&merge.inputs[i]);
	free(merge.inputs);
	merge_names_free(&merge.names);
	text_free(&merge.text);
	return error;
}
