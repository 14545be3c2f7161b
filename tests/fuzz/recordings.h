/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recordings that are inputs of a fuzzer. The first byte of an input chooses what is done with the rest, the file; bits 0-1:
 *	0: it is read as it is; 1: its sums are made right; else: its chunks, too, around the records that are there
 * A fuzzer would never get past a CRC by itself, and seldom past the lengths around what it inserts. So the mutator changes whole
 * records, most of the time.
 */
#ifndef FUZZ_RECORDINGS_H
#define FUZZ_RECORDINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "model/stream/records.h"
#include "record/format.h"
#include "record/recording.h"

#define RECORDING_INPUT_MAX (256u << 10)
#define RECORDS_MAX 4096
#define GROWTH 64 /* bytes that a mutation may add to a record */

enum { REPAIR_NOTHING, REPAIR_SUMS, REPAIR_CHUNKS };

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

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

#endif
