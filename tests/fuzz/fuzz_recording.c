/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recordings are anybody's: whatever is in them is refused, or reported, explained and compared: as a JSON document where the format is
 * JSON, as packets that are whole, as printable text, and with parts that add up to what they are parts of. What can be read can be
 * written, and is the same then.
 *
 * The first byte of an input chooses what is done with the rest, the file:
 *	bits 0-1  0: it is read as it is; 1: its sums are made right; else: its chunks, too, around the records that are there
 *	bits 2-5  as in enum use
 * A fuzzer would never get past a CRC by itself, and seldom past the lengths around what it inserts. So the mutator changes whole
 * records, most of the time.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xputrace/diff.h>
#include <xputrace/explain.h>
#include <xputrace/report.h>

#include "base/core/text.h"
#include "base/file/file.h"
#include "base/format/protobuf.h"
#include "model/stream/records.h"
#include "record/format.h"
#include "record/recording.h"
#include "tests/fuzz/require.h"

enum use {
	USE_CHROME,
	USE_ORT,
	USE_QNN_CSV,
	USE_TABLE,
	USE_EXPLAIN,
	USE_EXPLAIN_SOME, /* one program and a time */
	USE_DIFF,	  /* with itself, in which each call took twice as long */
	USE_DIFF_REVERSE, /* the same the other way round, each side twice */
	USE_PAGE,
	USE_PERFETTO, /* the first four, too */
	USES,
};

#define RECORDING_INPUT_MAX (256u << 10)
#define RECORDS_MAX 4096
#define GROWTH 64 /* bytes that a mutation may add to a record */

enum { REPAIR_NOTHING, REPAIR_SUMS, REPAIR_CHUNKS };

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

static char file[RECORDING_INPUT_MAX] __attribute__((aligned(8))); /* as the reader's buffer is */
static int files[2], copies[2], summary;
static char paths[2][32], copy_paths[2][32];

/* ---- making inputs right ---- */

/* Where the first chunk begins; 0: nowhere. */
static size_t chunks_begin(const char *file, size_t size)
{
	const struct recording_header *header = (const void *)file;

	return size >= sizeof(*header) && header->header_length % 8 == 0 && header->header_length >= sizeof(*header) &&
			       header->header_length <= size ?
		       header->header_length :
		       0;
}

/* Bytes of the record at a place; 0: what is there is no record. */
static size_t record_at(const char *file, size_t at, size_t size)
{
	const struct xpt_record_header *record = (const void *)(file + at);
	__u32 magic;

	if (at + sizeof(*record) > size)
		return 0;
	memcpy(&magic, record, sizeof(magic));
	return magic != RECORDING_CHUNK_MAGIC && record_validate(record, size - at) && record->size % 8 == 0 ?
		       record->size :
		       0;
}

static bool chunk_at(const char *file, size_t at, size_t size)
{
	const struct recording_chunk *chunk = (const void *)(file + at);

	return at + sizeof(*chunk) <= size && chunk->magic == RECORDING_CHUNK_MAGIC;
}

/* Lays a chunk around the records that follow its header, up to the next one; what is no record is the rest of it. */
static void chunk_make(char *file, size_t at, size_t size, __u32 sequence)
{
	struct recording_chunk *chunk = (void *)(file + at);
	size_t next = at + sizeof(*chunk), length;

	chunk->magic = RECORDING_CHUNK_MAGIC;
	chunk->sequence = sequence;
	chunk->records = 0;
	while ((length = record_at(file, next, size))) {
		next += length;
		chunk->records++;
	}
	chunk->length = (chunk_at(file, next, size) ? next : size) - at - sizeof(*chunk);
	chunk->length &= ~7u;
}

/* The file is aligned to 8 bytes. */
static void file_repair(char *file, size_t size, unsigned int what)
{
	static struct crc32c crc;
	struct recording_header *header = (void *)file;
	size_t at = chunks_begin(file, size);

	if (!at || what == REPAIR_NOTHING)
		return;
	crc32c_init(&crc);
	header->crc = 0;
	header->crc = crc32c_add(&crc, 0, file, at);
	for (__u32 sequence = 0; at + sizeof(struct recording_chunk) <= size; sequence++) {
		struct recording_chunk *chunk = (void *)(file + at);

		if (what >= REPAIR_CHUNKS)
			chunk_make(file, at, size, sequence);
		if (chunk->length > size - at - sizeof(*chunk))
			return;
		chunk->crc = 0;
		chunk->crc = crc32c_add(&crc, 0, chunk, sizeof(*chunk) + chunk->length);
		at += sizeof(*chunk) + (chunk->length & ~7u);
	}
}

/* ---- the mutator ---- */

/* Replaces the bytes of a record by others. The new size of the file. */
static size_t replace(char *file, size_t size, size_t at, size_t old, const char *bytes, size_t length)
{
	memmove(file + at + length, file + at + old, size - at - old);
	memcpy(file + at, bytes, length);
	return size - old + length;
}

/* One record is changed, grows, is put elsewhere once more, or goes. */
static size_t mutate_record(char *file, size_t size, size_t max_size, const size_t *places, size_t count,
			    unsigned int seed)
{
	static char bytes[UINT16_MAX + 1] __attribute__((aligned(8)));
	struct xpt_record_header *record = (void *)bytes;
	size_t at = places[seed % count], other = places[(seed >> 8) % count];
	size_t length = record_at(file, at, size), changed;

	memcpy(bytes, file + at, length);
	switch (seed >> 16 & 7) {
	case 0:
		return replace(file, size, at, length, bytes, 0);
	case 1:
	case 2:
		return size + length <= max_size ? replace(file, size, other, 0, bytes, length) : size;
	case 3:
		if (size + GROWTH > max_size || length + GROWTH > UINT16_MAX)
			return size;
		changed = LLVMFuzzerMutate((uint8_t *)bytes, length, length + GROWTH);
		changed = changed < sizeof(*record) ? sizeof(*record) : changed;
		record->size = (changed + 7) & ~7u;
		memset(bytes + changed, 0, record->size - changed);
		return replace(file, size, at, length, bytes, record->size);
	default:
		changed = LLVMFuzzerMutate((uint8_t *)bytes, length, length);
		memset(bytes + changed, 0, length - changed);
		record->size = length;
		return replace(file, size, at, length, bytes, length);
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	static char file[RECORDING_INPUT_MAX] __attribute__((aligned(8)));
	static size_t places[RECORDS_MAX];
	size_t count = 0, length, at;

	max_size = max_size < sizeof(file) ? max_size : sizeof(file);
	if (seed % 4 == 0 || size < 1 || size > max_size)
		return LLVMFuzzerMutate(data, size, max_size);
	memcpy(file, data + 1, size - 1);
	at = chunks_begin(file, size - 1);
	while (at && count < RECORDS_MAX) {
		at += chunk_at(file, at, size - 1) ? sizeof(struct recording_chunk) : 0;
		length = record_at(file, at, size - 1);
		if (!length)
			break;
		places[count++] = at;
		at += length;
	}
	if (!count)
		return LLVMFuzzerMutate(data, size, max_size);
	size = mutate_record(file, size - 1, max_size - 1, places, count, seed >> 2) + 1;
	memcpy(data + 1, file, size - 1);
	return size;
}

/* ---- what is done with them ---- */

static void open_all(int *descriptors, char names[][32])
{
	for (int i = 0; i < 2; i++) {
		descriptors[i] = memfd_create("recording", MFD_CLOEXEC);
		require(descriptors[i] >= 0);
		snprintf(names[i], sizeof(names[i]), "/proc/self/fd/%d", descriptors[i]);
	}
}

/* What is written goes to standard output; the fuzzer uses the other one. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const int output = memfd_create("output", MFD_CLOEXEC);

	(void)argc;
	(void)argv;
	require(output >= 0 && dup2(output, STDOUT_FILENO) == STDOUT_FILENO);
	close(output);
	open_all(files, paths);
	open_all(copies, copy_paths);
	summary = open("/dev/null", O_WRONLY | O_CLOEXEC);
	require(summary >= 0);
	return 0;
}

static void put(int number, size_t size, unsigned int repair)
{
	file_repair(file, size, repair);
	require(!ftruncate(files[number], 0) && !file_write_at(files[number], file, size, 0));
}

/* All that a descriptor's file has, and a NUL; the caller frees. */
static char *content(int descriptor, size_t *length)
{
	const off_t end = lseek(descriptor, 0, SEEK_END);
	char *text = malloc(end + 1);

	require(text && pread(descriptor, text, end, 0) == end);
	text[end] = '\0';
	*length = end;
	return text;
}

/* Touches every byte that the reader has promised; writes all into a copy, if there is one. False: nothing can be read. */
static bool read_all(const char *path, int copy, uint64_t *sum)
{
	const struct xpt_record_header *record;
	struct recording_writer *writer = NULL;
	struct recording_reader *reader;

	*sum = 0;
	if (recording_reader_open(NULL, path, &reader))
		return false;
	if (copy >= 0) {
		require(!ftruncate(copy, 0) && !lseek(copy, 0, SEEK_SET));
		require(!recording_writer_create(NULL, NULL, dup(copy), recording_reader_info(reader), &writer));
	}
	while (recording_reader_next(reader, &record) == 1) {
		for (size_t i = 0; i < record->size; i++)
			*sum = (*sum ^ ((const uint8_t *)record)[i]) * 0x100000001b3;
		require(!writer || !recording_writer_add(writer, record));
	}
	require(!writer || !recording_writer_close(writer));
	recording_reader_close(reader);
	return true;
}

/* What is read is written, read and written again: the records are those of the input, the second copy is the first one. */
static void copy_twice(void)
{
	uint64_t first, second, third;
	char *one, *other;
	size_t length, other_length;

	if (!read_all(paths[0], copies[0], &first))
		return;
	require(read_all(copy_paths[0], copies[1], &second) && read_all(copy_paths[1], -1, &third));
	require(first == second && second == third);
	one = content(copies[0], &length);
	other = content(copies[1], &other_length);
	require(length == other_length && !memcmp(one, other, length));
	free(one);
	free(other);
}

/* ---- reports ---- */

/* Frees it. */
static void check_json(char *text)
{
	cJSON *document = cJSON_Parse(text);

	require(document);
	cJSON_Delete(document);
	free(text);
}

/* Frees it. */
static void check_text(char *text)
{
	for (const char *line = text; *line; line++)
		require((unsigned char)*line >= ' ' || *line == '\n');
	require(text_valid(text, strlen(text)) == strlen(text));
	free(text);
}

static void check_page(char *text, size_t length)
{
	require(text_valid(text, length) == length && strlen(text) == length);
	require(strstr(text, "</html>"));
	free(text);
}

static void check_packets(char *text, size_t length)
{
	struct pb_reader trace = pb_reader(text, length), packet;
	struct pb_field field, inner;
	int more, more_inside;

	while ((more = pb_next(&trace, &field)) == 1) {
		require(field.number == 1 && field.type == PB_BYTES);
		packet = pb_reader(field.bytes, field.value);
		while ((more_inside = pb_next(&packet, &inner)) == 1)
			;
		require(!more_inside);
	}
	require(!more);
	free(text);
}

static void report(enum use use)
{
	static const enum xpt_output formats[] = {
		[USE_CHROME] = XPT_OUTPUT_CHROME, [USE_ORT] = XPT_OUTPUT_ORT,	[USE_QNN_CSV] = XPT_OUTPUT_QNN_CSV,
		[USE_TABLE] = XPT_OUTPUT_NONE,	  [USE_PAGE] = XPT_OUTPUT_HTML, [USE_PERFETTO] = XPT_OUTPUT_PERFETTO
	};
	struct said said = { 0 };
	XPT_OPTS(xpt_report_options, options, .input = paths[0], .output = use == USE_TABLE ? NULL : "-",
		 .format = formats[use], .summary_descriptor = use == USE_PAGE ? -1 : summary, .log = said_write,
		 .log_context = &said, .log_level = XPT_LOG_DEBUG);
	size_t length;
	char *text;
	int error;

	require(!ftruncate(STDOUT_FILENO, 0) && !lseek(STDOUT_FILENO, 0, SEEK_SET));
	error = xpt_report_create(&options);
	require(!error || error == -ENODATA || error == -EBADMSG || error == -EPROTO || error == -ENOTSUP);
	require(!said.errors == (!error || error == -ENODATA));
	if (error && error != -ENODATA)
		return;
	text = content(STDOUT_FILENO, &length);
	if (use == USE_CHROME || use == USE_ORT)
		check_json(text);
	else if (use == USE_PERFETTO)
		check_packets(text, length);
	else if (use == USE_PAGE)
		check_page(text, length);
	else
		free(text);
}

/* ---- studies ---- */

/* Each call has begun earlier. */
static void make_slower(size_t size)
{
	size_t at = chunks_begin(file, size), length;

	while (at && at < size) {
		at += chunk_at(file, at, size) ? sizeof(struct recording_chunk) : 0;
		length = record_at(file, at, size);
		if (!length)
			return;
		if (((struct xpt_record_header *)(file + at))->kind == XPT_RECORD_CALL) {
			struct xpt_record_call *call = (void *)(file + at);

			call->start -= call->header.time - call->start;
		}
		at += length;
	}
}

/* But for what is lost in doubles. */
static bool is_sum(double sum, double whole, double largest)
{
	return isfinite(sum) && isfinite(whole) && fabs(sum - whole) <= 1 + 1e-6 * (fabs(whole) + largest);
}

static void check_program(const struct xpt_explain_program *program)
{
	double typical = 0, slow = 0, causes = 0, largest = 0;

	require(program->name && program->runtime && program->process && program->missing);
	if (!program->count)
		return;
	require(program->min <= program->p50 && program->p50 <= program->p99 && program->p99 <= program->max);
	require(program->cohort_count == 2);
	for (size_t i = 0; i < program->state_count; i++) {
		const struct xpt_explain_part *part = XPT_AT(program->states, program->part_size, i);

		require(part->typical >= 0 && part->slow >= 0);
		typical += part->typical;
		slow += part->slow;
	}
	require(is_sum(typical, program->cohorts[XPT_COHORT_TYPICAL].mean, 0));
	require(is_sum(slow, program->cohorts[XPT_COHORT_SLOW].mean, 0));
	for (size_t i = 0; i < program->cause_count; i++) {
		const struct xpt_explain_cause *cause = XPT_AT(program->causes, program->cause_size, i);

		causes += cause->difference;
		largest += fabs(cause->difference);
		require(cause->kind && cause->name && cause->title && cause->evidence);
	}
	require(!program->cause_count || is_sum(causes, program->difference, largest));
	require(program->explained >= 0 && program->explained <= 1);
}

static void explain(bool limited)
{
	struct said said = { 0 };
	struct xpt_program_choice choice = { .size = sizeof(choice), .name = "sleep" };
	XPT_OPTS(xpt_explain_options, options, .input = paths[0], .log = said_write, .log_context = &said,
		 .log_level = XPT_LOG_DEBUG);
	struct xpt_explain *explain = NULL;
	char *text;
	int error;

	if (limited) {
		options.programs = &choice;
		options.program_count = 1;
		options.program_size = sizeof(choice);
		options.from = 1000000;
		options.to = 40000000;
		options.most = 1;
	}
	error = xpt_explain_create(&options, &explain);
	require(!error || error == -EBADMSG || error == -EPROTO || error == -ENOENT || error == -ENOTSUP);
	require(!said.errors == !error);
	if (error)
		return;
	for (size_t i = 0; i < xpt_explain_program_count(explain); i++)
		check_program(xpt_explain_program(explain, i));
	require(!xpt_explain_text(explain, limited ? 40 : 0, &text));
	check_text(text);
	require(!xpt_explain_json(explain, &text));
	check_json(text);
	xpt_explain_destroy(explain);
}

static void compare(bool reverse)
{
	static const char *const conditions[] = { "p99 > +10%", "waited > +2ms", "throughput < -5%" };
	const char *before[] = { paths[reverse], paths[reverse] }, *after[] = { paths[!reverse], paths[!reverse] };
	struct said said = { 0 };
	XPT_OPTS(xpt_diff_options, options, .before = before, .before_count = 1 + reverse, .after = after,
		 .after_count = 1 + reverse, .conditions = conditions, .condition_count = 3, .log = said_write,
		 .log_context = &said, .log_level = XPT_LOG_DEBUG);
	struct xpt_diff *diff = NULL;
	char *text;
	int error = xpt_diff_create(&options, &diff);

	require(!error || error == -EBADMSG || error == -EPROTO || error == -ENOENT || error == -ENOTSUP);
	require(!said.errors == !error);
	if (error)
		return;
	for (size_t i = 0; i < diff->program_count; i++) {
		const struct xpt_diff_program *program = XPT_AT(diff->programs, diff->program_size, i);

		for (size_t each = 0; each < program->row_count; each++) {
			const struct xpt_diff_row *row = XPT_AT(program->rows, program->row_size, each);

			require(isnan(row->p) || (row->p >= 0 && row->p <= 1));
			require(isnan(row->adjusted) || (row->adjusted >= row->p && row->adjusted <= 1));
		}
	}
	require(!xpt_diff_text(diff, reverse ? 60 : 0, reverse, &text));
	check_text(text);
	require(!xpt_diff_json(diff, &text));
	check_json(text);
	require(!xpt_diff_html(diff, &text));
	check_page(text, strlen(text));
	xpt_diff_destroy(diff);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int repair, use;

	if (size < 1 || size - 1 > sizeof(file))
		return 0;
	repair = *data & 3;
	use = (*data++ >> 2) % USES;
	size--;
	memcpy(file, data, size);
	put(0, size, repair);
	copy_twice();
	if (use == USE_EXPLAIN || use == USE_EXPLAIN_SOME) {
		explain(use == USE_EXPLAIN_SOME);
	} else if (use == USE_DIFF || use == USE_DIFF_REVERSE) {
		make_slower(size);
		put(1, size, repair);
		compare(use == USE_DIFF_REVERSE);
	} else {
		report(use);
		if (use < USE_EXPLAIN)
			report(USE_PERFETTO);
	}
	return 0;
}
