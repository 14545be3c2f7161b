/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NEFF, executables of AWS Neuron: a header, then a compressed archive. The layout is not published; it is as public notes
 * have it, and an object whose header does not fit is not taken for one. Only names and sizes in the archive are looked at.
 */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "code/readers.h"
#include "code/tar.h"

#define HEADER_SIZE 1024
#define HEADER_SIZE_AT 8 /* u64 */
#define DATA_SIZE_AT 16	 /* u64 */
#define NAME_AT 0xdc
#define NAME_SIZE 256

/* An archive that unpacks to more is not read to its end: so much in all, and so many times of what it is packed to. */
#define UNPACKED_MAX (64ull << 20)
#define UNPACKED_ALWAYS (1ull << 20)
#define RATIO_MAX 200
#define PIECE 16384

static bool header_fits(const unsigned char *header)
{
	return code_u64(header + HEADER_SIZE_AT) == HEADER_SIZE && code_u64(header + DATA_SIZE_AT) &&
	       code_u64(header + DATA_SIZE_AT) <= ~0ull - HEADER_SIZE;
}

static bool is_gzip(const unsigned char *bytes)
{
	return bytes[0] == 0x1f && bytes[1] == 0x8b;
}

bool code_is_neff(const unsigned char *bytes, size_t size)
{
	return size >= HEADER_SIZE + 2 && header_fits(bytes) &&
	       (is_gzip(bytes + HEADER_SIZE) || code_u64(bytes + DATA_SIZE_AT) == size - HEADER_SIZE);
}

/* Packed entries have no place in the object. */
static int add_entry(void *context, const char *name, size_t length, __u64 size)
{
	struct code_reading *reading = context;
	struct code_part part = { .size = size };

	return code_add_part(reading->contents, name, length, &part);
}

/* Takes the next piece of what was unpacked. 0: go on, 1: enough, or -ENOMEM. */
static int take(struct code_reading *reading, struct tar_walk *walk, const unsigned char *bytes, size_t length)
{
	int error = tar_feed(walk, bytes, length);

	if (error != -EBADMSG)
		return error ? error : walk->ended;
	code_set_error(reading->contents, "its archive cannot be read");
	return 1;
}

static int unpack(struct code_reading *reading, z_stream *stream, __u64 size)
{
	struct tar_walk walk = { .entry = add_entry, .context = reading };
	__u64 packed = 0, unpacked = 0, most = UNPACKED_ALWAYS + size * RATIO_MAX;
	unsigned char piece[PIECE];
	int error = 0, status = Z_OK;

	if (size > UNPACKED_MAX / RATIO_MAX || most > UNPACKED_MAX)
		most = UNPACKED_MAX;
	while (!error && status == Z_OK) {
		if (!stream->avail_in) {
			stream->next_in = (z_const Bytef *)reading->bytes + HEADER_SIZE + packed;
			stream->avail_in = size - packed < PIECE ? size - packed : PIECE;
			packed += stream->avail_in;
		}
		stream->next_out = piece;
		stream->avail_out = sizeof(piece);
		status = inflate(stream, Z_NO_FLUSH);
		if (status == Z_MEM_ERROR)
			return -ENOMEM;
		error = take(reading, &walk, piece, sizeof(piece) - stream->avail_out);
		unpacked += sizeof(piece) - stream->avail_out;
		if (!error && unpacked > most) {
			code_set_error(reading->contents, "its archive unpacks to more than %llu bytes", most);
			return 0;
		}
	}
	if (error < 0)
		return error;
	if (!error && (status != Z_STREAM_END || !tar_complete(&walk)))
		code_set_error(reading->contents, "its archive ends too early, or is damaged");
	return 0;
}

static int set_name(struct code_reading *reading)
{
	const char *name = (const char *)reading->bytes + NAME_AT;

	if (!name[0])
		return 0;
	reading->contents->name = strndup(name, NAME_SIZE);
	return reading->contents->name ? 0 : -ENOMEM;
}

int code_read_neff(struct code_reading *reading)
{
	z_stream stream = { .zalloc = Z_NULL };
	__u64 size;
	int error = set_name(reading);

	if (error)
		return error;
	if (!is_gzip(reading->bytes + HEADER_SIZE)) {
		code_set_error(reading->contents, "its archive is not compressed by gzip");
		return 0;
	}
	size = code_u64(reading->bytes + DATA_SIZE_AT);
	if (!code_inside(HEADER_SIZE, size, reading->size)) {
		code_set_error(reading->contents, "its header says %llu bytes, and there are %zu", HEADER_SIZE + size,
			       reading->size);
		size = reading->size - HEADER_SIZE;
	}
	if (inflateInit2(&stream, MAX_WBITS + 16) != Z_OK)
		return -ENOMEM;
	error = unpack(reading, &stream, size);
	inflateEnd(&stream);
	return error;
}

/* It has no magic number: what cannot be read is no NEFF either. */
int code_neff_size(code_read_fn read, void *context, __u64 limit, __u64 *size)
{
	unsigned char header[DATA_SIZE_AT + 8], data[2];

	if (read(context, 0, header, sizeof(header)) || !header_fits(header) ||
	    read(context, HEADER_SIZE, data, sizeof(data)) || !is_gzip(data))
		return -ENODATA;
	if (code_u64(header + DATA_SIZE_AT) > limit - HEADER_SIZE || limit < HEADER_SIZE)
		return -EFBIG;
	*size = HEADER_SIZE + code_u64(header + DATA_SIZE_AT);
	return 0;
}
