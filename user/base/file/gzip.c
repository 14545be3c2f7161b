/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file/gzip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file/file.h"
#include "base/file/output.h"

#define HEADER_AND_MAXIMUM (MAX_WBITS + 16) /* as zlib has it: a gzip header and trailer, the largest window */
#define MEMORY 8			    /* zlib's default */
#define OUTPUT 65536u

struct gzip {
	z_stream stream;
	__u32 sum;    /* CRC-32 of what was added */
	__u64 length; /* of it */
	unsigned char output[OUTPUT];
};

bool gzip_is_name(const char *path)
{
	size_t length = strlen(path);

	return length > 3 && !strcmp(path + length - 3, ".gz");
}

struct gzip *gzip_create(void)
{
	struct gzip *gzip = calloc(1, sizeof(*gzip));

	if (!gzip)
		return NULL;
	/* Speed matters more than size. */
	if (deflateInit2(&gzip->stream, Z_BEST_SPEED, Z_DEFLATED, HEADER_AND_MAXIMUM, MEMORY, Z_DEFAULT_STRATEGY) !=
	    Z_OK) {
		free(gzip);
		return NULL;
	}
	return gzip;
}

void gzip_free(struct gzip *gzip)
{
	if (!gzip)
		return;
	deflateEnd(&gzip->stream);
	free(gzip);
}

static int deflate_all(struct gzip *gzip, int flush, gzip_put_fn put, void *context)
{
	z_stream *stream = &gzip->stream;
	int error = 0;

	do {
		stream->next_out = gzip->output;
		stream->avail_out = OUTPUT;
		if (deflate(stream, flush) == Z_STREAM_ERROR)
			return -EIO;
		if (stream->avail_out < OUTPUT)
			error = put(context, gzip->output, OUTPUT - stream->avail_out);
	} while (!error && !stream->avail_out);
	return error;
}

int gzip_add(struct gzip *gzip, const void *bytes, size_t length, bool flush, gzip_put_fn put, void *context)
{
	const unsigned char *from = bytes;
	int error = 0;

	while (!error && length) {
		unsigned int piece = length > 1u << 30 ? 1u << 30 : (unsigned int)length;

		gzip->stream.next_in = (unsigned char *)from;
		gzip->stream.avail_in = piece;
		gzip->sum = (__u32)crc32(gzip->sum, from, piece);
		gzip->length += piece;
		error = deflate_all(gzip, Z_NO_FLUSH, put, context);
		from += piece;
		length -= piece;
	}
	return error || !flush ? error : deflate_all(gzip, Z_SYNC_FLUSH, put, context);
}

static unsigned char *put_little(unsigned char *to, __u32 value, unsigned int bytes)
{
	for (; bytes--; value >>= 8)
		*to++ = value & 0xff;
	return to;
}

/* The last block, stored as it is: the compressor need not know of it. */
size_t gzip_end(const struct gzip *gzip, const void *bytes, size_t length, unsigned char end[GZIP_END])
{
	unsigned char *to = end;

	*to++ = 1;
	to = put_little(to, (__u32)length, 2);
	to = put_little(to, ~(__u32)length, 2);
	if (length)
		memcpy(to, bytes, length);
	to = put_little(to + length, length ? (__u32)crc32(gzip->sum, bytes, (unsigned int)length) : gzip->sum, 4);
	to = put_little(to, (__u32)(gzip->length + length), 4);
	return to - end;
}

static int put_bytes(void *context, const void *bytes, size_t length)
{
	return file_write(*(int *)context, bytes, length);
}

int gzip_write(struct gzip *gzip, int descriptor, const void *bytes, size_t length)
{
	if (!gzip)
		return file_write(descriptor, bytes, length);
	return gzip_add(gzip, bytes, length, false, put_bytes, &descriptor);
}

int gzip_finish(struct gzip *gzip, int descriptor)
{
	unsigned char end[GZIP_END];
	int error = gzip ? gzip_add(gzip, NULL, 0, true, put_bytes, &descriptor) : 0;

	return error || !gzip ? error : file_write(descriptor, end, gzip_end(gzip, NULL, 0, end));
}

bool gzip_is_packed(int descriptor)
{
	unsigned char magic[2];

	return pread(descriptor, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
}

static int unpack(gzFile packed, int to)
{
	unsigned char bytes[OUTPUT];
	int length, error = 0, fault;

	while (!error && (length = gzread(packed, bytes, sizeof(bytes))) > 0)
		error = file_write(to, bytes, length);
	gzerror(packed, &fault);
	if (!error && fault != Z_OK)
		error = fault == Z_ERRNO ? -EIO : fault == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
	return error;
}

int gzip_unpack(int descriptor)
{
	int to = open_temporary(), error = to < 0 ? to : 0;
	int copy = error ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
	gzFile packed = NULL;

	if (!error && (copy < 0 || lseek(copy, 0, SEEK_SET) < 0))
		error = -errno;
	if (!error) {
		packed = gzdopen(copy, "r");
		error = packed ? unpack(packed, to) : -ENOMEM;
	}
	if (packed)
		gzclose(packed);
	else if (copy >= 0)
		close(copy);
	if (!error && lseek(to, 0, SEEK_SET) < 0)
		error = -errno;
	if (error && to >= 0)
		close(to);
	return error ?: to;
}
