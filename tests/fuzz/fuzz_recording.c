/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recordings are anybody's: whatever is in them is refused or reported, as a JSON document where the format is JSON, and as packets
 * that are whole.
 *
 * The first byte of an input chooses what follows, the file:
 *	bits 0-1  0: is read as it is; 1: its sums are made right; else: its chunks, too, around the records that are there
 *	bits 2-3  format of the report, as in formats[]
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xputrace/report.h>

#include "base/format/protobuf.h"
#include "base/file/file.h"
#include "record/recording.h"
#include "tests/fuzz/recordings.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char file[RECORDING_INPUT_MAX] __attribute__((aligned(8))); /* as the reader's buffer is */

static const enum xpt_output formats[] = { XPT_OUTPUT_CHROME, XPT_OUTPUT_ORT, XPT_OUTPUT_QNN_CSV, XPT_OUTPUT_NONE };

static int input, summary;
static char path[32];

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
	return 0;
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
	file_repair(file, size, choice & 3);
	require(!ftruncate(input, 0) && !file_write_at(input, file, size, 0));
	read_all();
	report(formats[choice >> 2 & 3]);
	report(XPT_OUTPUT_PERFETTO);
	return 0;
}
