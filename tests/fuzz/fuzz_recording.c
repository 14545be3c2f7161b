/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the recording reader. The first byte chooses what the rest is: the whole file, or the payload of a
 * chunk whose sums are made right, because a fuzzer would never get past a CRC by itself.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "record/crc32c.h"
#include "record/format.h"
#include "record/recording.h"

#define INFO "{\"host\":\"fuzz\",\"monotonic_ns\":\"1\",\"cpus\":2}     "

_Static_assert(sizeof(INFO) - 1 == 48, "a multiple of 8, as the header's length must be");

static void write_all(int file, const void *bytes, size_t length)
{
	if (file_write(file, bytes, length))
		abort();
}

static void write_header(int file, const struct crc32c *crc)
{
	struct {
		struct recording_header header;
		char info[sizeof(INFO) - 1];
	} start = {
		.header = {
			.magic = { 'X', 'P', 'U', 'T', 'R', 'A', 'C', 'E' },
			.byte_order = RECORDING_BYTE_ORDER,
			.version = RECORDING_VERSION,
			.wire_version = XPT_WIRE_VERSION,
			.header_length = sizeof(start),
			.info_offset = sizeof(start.header),
			.info_length = sizeof(INFO) - 1,
		},
	};

	memcpy(start.info, INFO, sizeof(INFO) - 1);
	start.header.crc = crc32c_add(crc, 0, &start, sizeof(start));
	write_all(file, &start, sizeof(start));
}

/* The first four bytes say how many records the chunk claims to hold. */
static void write_chunk(int file, const struct crc32c *crc, const uint8_t *bytes, size_t length)
{
	struct recording_chunk chunk = { .magic = RECORDING_CHUNK_MAGIC };
	__u32 sum;

	if (length < 4)
		return;
	memcpy(&chunk.records, bytes, 4);
	bytes += 4;
	chunk.length = (length - 4) & ~7u;
	sum = crc32c_add(crc, 0, &chunk, sizeof(chunk));
	chunk.crc = crc32c_add(crc, sum, bytes, chunk.length);
	write_all(file, &chunk, sizeof(chunk));
	write_all(file, bytes, chunk.length);
}

/* Touches every byte that the reader has promised, so that a sanitizer sees what lies outside. */
static unsigned int look_at(const struct xpt_record_header *record)
{
	unsigned int sum = 0;
	size_t i;

	for (i = 0; i < record->size; i++)
		sum += ((const unsigned char *)record)[i];
	if (record->kind == XPT_RECORD_CALL) {
		const struct xpt_record_call *call = (const struct xpt_record_call *)record;

		for (i = 0; i < call->values; i++)
			if ((const char *)&call->value[i + 1] > (const char *)record + record->size)
				abort();
	}
	return sum;
}

static void read_all(const char *path)
{
	const struct xpt_record_header *record;
	struct recording_reader *reader;
	unsigned int sum;

	if (recording_reader_open(NULL, path, &reader))
		return;
	sum = strlen(recording_reader_info(reader)->host);
	while (recording_reader_next(reader, &record) == 1)
		sum += look_at(record);
	__asm__ volatile("" : : "r"(sum)); /* the compiler must not find out that nobody wants it */
	recording_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct crc32c crc;
	char path[64];
	int file;

	if (size < 1)
		return 0;
	file = memfd_create("fuzz", MFD_CLOEXEC);
	if (file < 0)
		abort();
	crc32c_init(&crc);
	if (data[0] & 1) {
		write_header(file, &crc);
		write_chunk(file, &crc, data + 1, size - 1);
	} else {
		write_all(file, data + 1, size - 1);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	read_all(path);
	close(file);
	return 0;
}
