/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Perfetto traces of several hosts in one. Its packets stay what they are; each gets the number of its machine, and a packet sequence
 * that no other input has. Every machine has clocks of its own, and the time of the whole is that on the wall.
 */
#include "report/merge/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xputrace/merge.h>

#include "base/core/options.h"
#include "base/file/file.h"
#include "base/file/gzip.h"
#include "base/file/output.h"
#include "report/perfetto/track.h"

#define BLOCK_SIZE (1u << 20)
#define PACKET_MAX (64u << 20)
#define SEQUENCE_BITS 24
#define INPUTS_MAX 255	/* as many have sequences of their own */
#define HEAD_PACKETS 64 /* in which the origin has to be */

struct packet_input {
	const char *path;
	int descriptor;
	__s64 offset;
	struct text data; /* read and not used yet, from at on */
	size_t at;
	__u64 read, size;
	bool has_clock, ours;
	char host[256], boot[64];
	unsigned int machine;
};

/* ---- reading ---- */

static int input_open(const struct log *log, struct packet_input *input)
{
	struct stat status;
	int unpacked;

	input->descriptor = open_named(input->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (input->descriptor < 0) {
		log_error(log, "%s: cannot be read: %s", input->path, strerror(-input->descriptor));
		return input->descriptor;
	}
	if (gzip_is_packed(input->descriptor)) {
		unpacked = gzip_unpack(input->descriptor);
		close(input->descriptor);
		input->descriptor = unpacked;
		if (unpacked < 0) {
			log_error(log, "%s: is damaged, or ends too early", input->path);
			return unpacked;
		}
	}
	if (!fstat(input->descriptor, &status) && S_ISREG(status.st_mode)) {
		input->size = (__u64)status.st_size;
		return 0;
	}
	log_error(log, "%s: is no file; traces are read twice, so pipes must be saved first", input->path);
	return -EINVAL;
}

/* Reads until that many bytes are there; fewer when the file ends. */
static int input_fill(struct packet_input *input, size_t bytes)
{
	struct text *data = &input->data;
	ssize_t got;

	if (input->at) {
		memmove(data->data, data->data + input->at, data->length - input->at);
		data->length -= input->at;
		input->at = 0;
	}
	while (data->length < bytes && input->read < input->size) {
		if (text_reserve(data, BLOCK_SIZE))
			return -ENOMEM;
		got = pread(input->descriptor, data->data + data->length, BLOCK_SIZE, (off_t)input->read);
		if (got < 0)
			return -errno;
		if (!got)
			break;
		data->length += (size_t)got;
		input->read += (__u64)got;
	}
	return 0;
}

static void input_rewind(struct packet_input *input)
{
	input->data.length = input->at = 0;
	input->read = 0;
}

/* 1: *packet is the next one, until the next call; 0: there are no more that are complete; -EBADMSG, logged: it is no trace. */
static int input_next(const struct log *log, struct packet_input *input, struct pb_reader *packet)
{
	const unsigned char *begin;
	size_t there = input->data.length - input->at, head;
	__u64 length = 0;
	int error = there < PB_VARINT_MAX + 1 ? input_fill(input, PB_VARINT_MAX + 1) : 0;

	if (error)
		return error;
	there = input->data.length - input->at;
	if (there < 2)
		return 0;
	begin = (unsigned char *)input->data.data + input->at;
	head = pb_take(begin + 1, begin + there, &length);
	if (*begin != (TRACE_PACKET << 3 | PB_BYTES) || !head || length > PACKET_MAX) {
		log_error(log, "%s: is no Perfetto trace: no packet begins at %llu", input->path,
			  (unsigned long long)(input->read - there));
		return -EBADMSG;
	}
	if (there < 1 + head + length) {
		error = input_fill(input, 1 + head + length);
		if (error)
			return error;
		begin = (unsigned char *)input->data.data;
		there = input->data.length;
	}
	if (there < 1 + head + length)
		return 0;
	input->at += 1 + head + length;
	*packet = pb_reader(begin + 1 + head, length);
	return 1;
}

static bool is_cut(const struct packet_input *input)
{
	return input->at < input->data.length;
}

/* ---- what is known before anything is written ---- */

static void keep_string(char *to, size_t size, const struct pb_field *field)
{
	snprintf(to, size, "%.*s", (int)(field->value < size ? field->value : size - 1), (const char *)field->bytes);
}

static bool is_named(const struct pb_field *field, const char *name)
{
	return field->type == PB_BYTES && field->value == strlen(name) && !memcmp(field->bytes, name, field->value);
}

/* An argument of the event at the begin of a trace of xputrace. */
static void note_argument(struct packet_input *input, struct pb_reader argument)
{
	struct pb_field field, value = { 0 };
	bool host = false, boot = false;

	while (pb_next(&argument, &field) == 1) {
		host |= field.number == ARGUMENT_NAME && is_named(&field, "host");
		boot |= field.number == ARGUMENT_NAME && is_named(&field, "boot_id");
		if (field.number == ARGUMENT_STRING && field.type == PB_BYTES)
			value = field;
	}
	if (!value.bytes || !(host || boot))
		return;
	input->ours = true;
	if (host)
		keep_string(input->host, sizeof(input->host), &value);
	else
		keep_string(input->boot, sizeof(input->boot), &value);
}

static __u64 clock_of(const struct pb_field *clock, unsigned int *id)
{
	struct pb_reader reader = pb_reader(clock->bytes, clock->value);
	struct pb_field field;
	__u64 time = 0;

	*id = 0;
	while (pb_next(&reader, &field) == 1) {
		if (field.number == 1)
			*id = (unsigned int)field.value;
		else if (field.number == 2)
			time = field.value;
	}
	return time;
}

static bool has_wall_clock(const struct pb_field *snapshot)
{
	struct pb_reader reader = pb_reader(snapshot->bytes, snapshot->value);
	struct pb_field field;
	unsigned int id;

	while (pb_next(&reader, &field) == 1) {
		if (field.number == SNAPSHOT_CLOCK && field.type == PB_BYTES && clock_of(&field, &id) &&
		    id == CLOCK_ID_REALTIME)
			return true;
	}
	return false;
}

static void note_packet(struct packet_input *input, struct pb_reader packet)
{
	struct pb_field field, argument;
	struct pb_reader event;

	while (pb_next(&packet, &field) == 1) {
		if (field.type != PB_BYTES)
			continue;
		input->has_clock |= field.number == PACKET_CLOCK_SNAPSHOT && has_wall_clock(&field);
		if (field.number != PACKET_TRACK_EVENT)
			continue;
		event = pb_reader(field.bytes, field.value);
		while (pb_next(&event, &argument) == 1) {
			if (argument.number == EVENT_ARGUMENT && argument.type == PB_BYTES)
				note_argument(input, pb_reader(argument.bytes, argument.value));
		}
	}
}

static int input_survey(const struct log *log, struct packet_input *input)
{
	struct pb_reader packet;
	int result = input_open(log, input);

	if (result)
		return result;
	result = 1;
	for (unsigned int i = 0; i < HEAD_PACKETS && result == 1; i++) {
		result = input_next(log, input, &packet);
		if (result == 1)
			note_packet(input, packet);
	}
	if (result < 0 && result != -EBADMSG)
		log_error(log, "%s: cannot be read: %s", input->path, strerror(-result));
	if (result < 0)
		return result;
	input_rewind(input);
	if (input->has_clock)
		return 0;
	log_error(log, "%s: its clock is not known: it has no snapshot of CLOCK_REALTIME", input->path);
	return -EINVAL;
}

/* Those of one boot are of one machine; others are of machines of their own. */
static void number_machines(const struct log *log, struct packet_input *inputs, size_t count)
{
	unsigned int machines = 0;
	size_t j;

	for (size_t i = 0; i < count; i++) {
		struct packet_input *input = &inputs[i];

		for (j = 0; j < i && !(*input->boot && !strcmp(input->boot, inputs[j].boot)); j++)
			;
		input->machine = j < i ? inputs[j].machine : machines++;
		log_info(log, "%s: machine %u, host %s, by its clock on the wall", input->path, input->machine,
			 *input->host ? input->host : "not known");
	}
}

/* ---- writing ---- */

/* The clock on the wall becomes that of the whole. */
static void write_snapshot(struct text *text, const struct packet_input *input, const struct pb_field *snapshot)
{
	size_t begin = pb_begin(text, PACKET_CLOCK_SNAPSHOT), clock;
	struct pb_reader reader = pb_reader(snapshot->bytes, snapshot->value);
	struct pb_field field;
	unsigned int id;
	__u64 time;

	while (pb_next(&reader, &field) == 1) {
		if (field.number == SNAPSHOT_PRIMARY)
			continue;
		time = field.number == SNAPSHOT_CLOCK && field.type == PB_BYTES ? clock_of(&field, &id) : 0;
		if (!time || id != CLOCK_ID_REALTIME) {
			text_bytes(text, field.begin, (size_t)(field.end - field.begin));
			continue;
		}
		clock = pb_begin(text, SNAPSHOT_CLOCK);
		pb_number(text, 1, id);
		pb_number(text, 2, time + (__u64)input->offset);
		pb_end(text, clock);
	}
	pb_number(text, SNAPSHOT_PRIMARY, CLOCK_ID_REALTIME);
	pb_end(text, begin);
}

static int write_packet(struct text *text, const struct packet_input *input, unsigned int index,
			struct pb_reader packet)
{
	size_t begin = pb_begin(text, TRACE_PACKET);
	struct pb_field field;
	int result;

	while ((result = pb_next(&packet, &field)) == 1) {
		if (field.number == PACKET_MACHINE)
			continue;
		if (field.number == PACKET_SEQUENCE && field.type == PB_VARINT) {
			if (field.value >> SEQUENCE_BITS)
				return -E2BIG;
			pb_number(text, PACKET_SEQUENCE, (__u64)index << SEQUENCE_BITS | field.value);
		} else if (field.number == PACKET_CLOCK_SNAPSHOT && field.type == PB_BYTES && has_wall_clock(&field)) {
			write_snapshot(text, input, &field);
		} else {
			text_bytes(text, field.begin, (size_t)(field.end - field.begin));
		}
	}
	if (input->machine)
		pb_number(text, PACKET_MACHINE, input->machine);
	pb_end(text, begin);
	return result ?: text->error;
}

static int write_input(const struct log *log, struct gzip *gzip, int descriptor, struct packet_input *input,
		       unsigned int index)
{
	struct text text = { 0 };
	struct pb_reader packet;
	int result, error = 0;

	while (!error && (result = input_next(log, input, &packet)) == 1) {
		error = write_packet(&text, input, index, packet);
		if (error == -EBADMSG)
			log_error(log, "%s: is malformed: a packet before %llu", input->path,
				  (unsigned long long)(input->read - input->data.length + input->at));
		if (error == -E2BIG)
			log_error(log, "%s: has too many packet sequences", input->path);
		if (!error && text.length >= BLOCK_SIZE) {
			error = gzip_write(gzip, descriptor, text.data, text.length);
			text.length = 0;
		}
	}
	error = error ?: result;
	error = error ?: gzip_write(gzip, descriptor, text.data, text.length);
	if (!error && is_cut(input))
		log_warn(log, "%s: ends within a packet: this is what was complete", input->path);
	text_free(&text);
	return error;
}

static int write_all(const struct log *log, struct packet_input *inputs, size_t count, const char *path)
{
	bool standard = !strcmp(path, "-"), packed = !standard && gzip_is_name(path);
	struct output_file output = { .descriptor = -1 };
	struct gzip *gzip = packed ? gzip_create() : NULL;
	int error = packed && !gzip ? -ENOMEM : 0;

	if (!error && standard)
		output.descriptor = file_standard_output();
	else if (!error)
		error = output_begin(path, &output);
	if (!error && output.descriptor < 0)
		error = output.descriptor;
	if (!error) {
		for (size_t i = 0; i < count && !error; i++)
			error = write_input(log, gzip, output.descriptor, &inputs[i], (unsigned int)i);
		if (!error && gzip)
			error = gzip_finish(gzip, output.descriptor);
		error = output_end(&output, error);
	}
	gzip_free(gzip);
	if (error && error != -EBADMSG && error != -E2BIG)
		log_error(log, "%s: cannot be written: %s", path, output_reason(error));
	return error;
}

bool packets_are(const char *path)
{
	struct packet_input input = { .path = path, .descriptor = -1 };
	const struct log silent = { 0 };
	struct pb_reader packet;
	struct pb_field field;
	bool are = !input_open(&silent, &input) && input_next(&silent, &input, &packet) == 1;
	int more = 1;

	/* A line may end before a JSON document begins, too. */
	while (are && more == 1)
		more = pb_next(&packet, &field);
	are &= !more;
	if (input.descriptor >= 0)
		close(input.descriptor);
	text_free(&input.data);
	return are;
}

int packets_merge(const struct log *log, const struct xpt_merge_options *options)
{
	struct packet_input *inputs = calloc(options->input_count, sizeof(*inputs));
	struct xpt_merge_input given;
	int error = inputs ? 0 : -ENOMEM;
	size_t count = 0;

	if (options->input_count > INPUTS_MAX) {
		log_error(log, "%zu traces cannot be merged: %u at most", options->input_count, INPUTS_MAX);
		error = -E2BIG;
	}
	for (; !error && count < options->input_count; count++) {
		error = options_copy_element(&given, sizeof(given), options->inputs, options->input_size, count);
		inputs[count].descriptor = -1;
		inputs[count].path = given.path;
		inputs[count].offset = given.has_offset ? given.offset : 0;
		error = error ?: input_survey(log, &inputs[count]);
	}
	if (!error) {
		number_machines(log, inputs, count);
		error = write_all(log, inputs, count, options->output);
	}
	for (size_t i = 0; inputs && i < count; i++) {
		if (inputs[i].descriptor >= 0)
			close(inputs[i].descriptor);
		text_free(&inputs[i].data);
	}
	free(inputs);
	return error;
}
