/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recordings are anybody's: whatever is in them is refused or reported, as a JSON document where the format is JSON, and as packets
 * that are whole.
 *
 * The first byte of an input chooses what follows, the file:
 *	bits 0-1  0: is read as it is; 1: its sums are made right; else: its chunks, too, around the records that are there
 *	bits 2-3  format of the report, as in formats[]
 * A fuzzer would never get past a CRC by itself, and seldom past the lengths around what it inserts. So the mutator changes whole
 * records, most of the time.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xputrace/report.h>

#include "base/format/protobuf.h"
#include "base/file/file.h"
#include "model/stream/records.h"
#include "record/format.h"
#include "record/recording.h"
#include "tests/fuzz/require.h"

#define INPUT_MAX (256u << 10)
#define RECORDS_MAX 4096
#define GROWTH 64 /* bytes that a mutation may add to a record */

enum { REPAIR_NOTHING, REPAIR_SUMS, REPAIR_CHUNKS };

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

static const enum xpt_output formats[] = { XPT_OUTPUT_CHROME, XPT_OUTPUT_ORT, XPT_OUTPUT_QNN_CSV, XPT_OUTPUT_NONE };

static struct crc32c crc;
static int input, summary;
static char path[32];

/* The file that is being looked at; aligned, as the reader's buffer is. */
static char file[INPUT_MAX] __attribute__((aligned(8)));

/* The trace goes to standard output; the fuzzer uses the other one. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int output = memfd_create("trace", MFD_CLOEXEC);

	(void)argc;
	(void)argv;
	require(output >= 0 && dup2(output, STDOUT_FILENO) == STDOUT_FILENO);
	close(output);
	input = memfd_create("recording", MFD_CLOEXEC);
	summary = open("/dev/null", O_WRONLY | O_CLOEXEC);
	require(input >= 0 && summary >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", input);
	crc32c_init(&crc);
	return 0;
}

/* Where the first chunk begins; 0: nowhere. */
static size_t chunks_begin(size_t size)
{
	const struct recording_header *header = (const void *)file;

	return size >= sizeof(*header) && header->header_length % 8 == 0 && header->header_length >= sizeof(*header) &&
			       header->header_length <= size ?
		       header->header_length :
		       0;
}

/* Bytes of the record at a place; 0: what is there is no record. */
static size_t record_at(size_t at, size_t size)
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

static bool chunk_at(size_t at, size_t size)
{
	const struct recording_chunk *chunk = (const void *)(file + at);

	return at + sizeof(*chunk) <= size && chunk->magic == RECORDING_CHUNK_MAGIC;
}

/* Lays a chunk around the records that follow its header, up to the next one; what is no record is the rest of it. */
static void chunk_make(struct recording_chunk *chunk, size_t at, size_t size, __u32 sequence)
{
	size_t next = at + sizeof(*chunk), length;

	chunk->magic = RECORDING_CHUNK_MAGIC;
	chunk->sequence = sequence;
	chunk->records = 0;
	while ((length = record_at(next, size))) {
		next += length;
		chunk->records++;
	}
	chunk->length = (chunk_at(next, size) ? next : size) - at - sizeof(*chunk);
	chunk->length &= ~7u;
}

static void repair(size_t size, unsigned int what)
{
	struct recording_header *header = (void *)file;
	size_t at = chunks_begin(size);

	if (!at)
		return;
	header->crc = 0;
	header->crc = crc32c_add(&crc, 0, file, at);
	for (__u32 sequence = 0; at + sizeof(struct recording_chunk) <= size; sequence++) {
		struct recording_chunk *chunk = (void *)(file + at);

		if (what >= REPAIR_CHUNKS)
			chunk_make(chunk, at, size, sequence);
		if (chunk->length > size - at - sizeof(*chunk))
			return;
		chunk->crc = 0;
		chunk->crc = crc32c_add(&crc, 0, chunk, sizeof(*chunk) + chunk->length);
		at += sizeof(*chunk) + (chunk->length & ~7u);
	}
}

/* Touches every byte that the reader has promised, so that a sanitizer sees what lies outside. */
static void read_all(void)
{
	const struct xpt_record_header *record;
	struct recording_reader *reader;
	unsigned int sum;

	if (recording_reader_open(NULL, path, &reader))
		return;
	sum = strlen(recording_reader_info(reader)->host);
	while (recording_reader_next(reader, &record) == 1)
		for (size_t i = 0; i < record->size; i++)
			sum += ((const unsigned char *)record)[i];
	__asm__ volatile("" : : "r"(sum)); /* the compiler must not find out that nobody uses it */
	recording_reader_close(reader);
}

static void check_document(void)
{
	off_t length = lseek(STDOUT_FILENO, 0, SEEK_CUR);
	char *text = malloc(length + 1);
	cJSON *document;

	require(text && pread(STDOUT_FILENO, text, length, 0) == length);
	document = cJSON_ParseWithLength(text, length);
	require(document != NULL);
	cJSON_Delete(document);
	free(text);
}

static void check_packets(void)
{
	off_t length = lseek(STDOUT_FILENO, 0, SEEK_CUR);
	char *text = malloc(length + 1);
	struct pb_reader trace = pb_reader(text, length), packet;
	struct pb_field field, inner;
	int more, more_inside;

	require(text && pread(STDOUT_FILENO, text, length, 0) == length);
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

static void report(enum xpt_output format)
{
	struct said said = { 0 };
	struct xpt_report_options options = {
		.size = sizeof(options),
		.input = path,
		.output = format == XPT_OUTPUT_NONE ? NULL : "-",
		.format = format,
		.summary_descriptor = summary,
		.log = said_write,
		.log_context = &said,
		.log_level = XPT_LOG_DEBUG,
	};
	int error;

	require(!ftruncate(STDOUT_FILENO, 0) && !lseek(STDOUT_FILENO, 0, SEEK_SET));
	error = xpt_report_create(&options);
	require(!error || error == -ENODATA || error == -EBADMSG || error == -EPROTO || error == -ENOTSUP);
	require(!said.errors == (!error || error == -ENODATA));
	if ((format == XPT_OUTPUT_CHROME || format == XPT_OUTPUT_ORT) && (!error || error == -ENODATA))
		check_document();
	if (format == XPT_OUTPUT_PERFETTO && (!error || error == -ENODATA))
		check_packets();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int choice;

	if (size < 1 || size - 1 > sizeof(file))
		return 0;
	choice = *data++;
	size--;
	memcpy(file, data, size);
	if ((choice & 3) != REPAIR_NOTHING)
		repair(size, choice & 3);
	require(!ftruncate(input, 0) && !file_write_at(input, file, size, 0));
	read_all();
	report(formats[choice >> 2 & 3]);
	report(XPT_OUTPUT_PERFETTO);
	return 0;
}

/* ---- the mutator ---- */

/* Replaces the bytes of a record by so many others. The new size of the file. */
static size_t replace(size_t size, size_t at, size_t old, const char *bytes, size_t length)
{
	memmove(file + at + length, file + at + old, size - at - old);
	memcpy(file + at, bytes, length);
	return size - old + length;
}

/* One record is changed, grows, is put elsewhere once more, or goes. */
static size_t mutate_record(size_t size, size_t max_size, const size_t *places, size_t count, unsigned int seed)
{
	static char bytes[UINT16_MAX + 1] __attribute__((aligned(8)));
	struct xpt_record_header *record = (void *)bytes;
	size_t at = places[seed % count], other = places[(seed >> 8) % count];
	size_t length = record_at(at, size), changed;

	memcpy(bytes, file + at, length);
	switch (seed >> 16 & 7) {
	case 0:
		return replace(size, at, length, bytes, 0);
	case 1:
	case 2:
		return size + length <= max_size ? replace(size, other, 0, bytes, length) : size;
	case 3:
		if (size + GROWTH > max_size || length + GROWTH > UINT16_MAX)
			return size;
		changed = LLVMFuzzerMutate((uint8_t *)bytes, length, length + GROWTH);
		changed = changed < sizeof(*record) ? sizeof(*record) : changed;
		record->size = (changed + 7) & ~7u;
		memset(bytes + changed, 0, record->size - changed);
		return replace(size, at, length, bytes, record->size);
	default:
		changed = LLVMFuzzerMutate((uint8_t *)bytes, length, length);
		memset(bytes + changed, 0, length - changed);
		record->size = length;
		return replace(size, at, length, bytes, length);
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	static size_t places[RECORDS_MAX];
	size_t count = 0, length, at;

	max_size = max_size < sizeof(file) ? max_size : sizeof(file);
	if (seed % 4 == 0 || size < 1 || size > max_size)
		return LLVMFuzzerMutate(data, size, max_size);
	memcpy(file, data + 1, size - 1);
	at = chunks_begin(size - 1);
	while (at && count < RECORDS_MAX) {
		at += chunk_at(at, size - 1) ? sizeof(struct recording_chunk) : 0;
		length = record_at(at, size - 1);
		if (!length)
			break;
		places[count++] = at;
		at += length;
	}
	if (!count)
		return LLVMFuzzerMutate(data, size, max_size);
	size = mutate_record(size - 1, max_size - 1, places, count, seed >> 2) + 1;
	memcpy(data + 1, file, size - 1);
	return size;
}
