/* SPDX-License-Identifier: BSD-2-Clause */
/* The recording on disk; described in FORMAT.md. Of recording.c and tests only. */
#ifndef XPT_RECORD_FORMAT_H
#define XPT_RECORD_FORMAT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#define RECORDING_MAGIC "XPUTRACE"
#define RECORDING_BYTE_ORDER 0x01020304u
#define RECORDING_VERSION 1
#define RECORDING_HEADER_MAX (1u << 20) /* bytes of the whole header that a reader accepts */

struct recording_header {
	char magic[8];
	__u32 byte_order;    /* RECORDING_BYTE_ORDER, as the writing machine stores it */
	__u16 version;	     /* RECORDING_VERSION: another one cannot be read */
	__u16 wire_version;  /* XPT_WIRE_VERSION */
	__u32 header_length; /* bytes from the start of the file to the first chunk, a multiple of 8 */
	__u32 info_offset;   /* where the JSON text begins: a later writer may put more fields before it */
	__u32 info_length;   /* bytes of it */
	__u32 crc;	     /* CRC-32C of the header_length bytes with this field as 0 */
};

#define RECORDING_CHUNK_MAGIC 0x4b435058u /* "XPCK" where bytes go from low to high */
#define RECORDING_CHUNK_SIZE (256u << 10) /* payload bytes at which a writer closes a chunk */
#define RECORDING_CHUNK_MAX (1u << 20)	  /* payload bytes that a reader accepts */

struct recording_chunk {
	__u32 magic;
	__u32 sequence; /* 0 for the first chunk, one more for each that follows */
	__u32 length;	/* payload bytes, a multiple of 8 */
	__u32 records;	/* in the payload */
	__u32 crc;	/* CRC-32C of this header with this field as 0, then the payload */
	__u32 reserved; /* 0 */
};

_Static_assert(sizeof(struct recording_header) == 32, "recording format");
_Static_assert(sizeof(struct recording_chunk) == 24, "recording format");

/* CRC-32C (Castagnoli), eight bytes at a step: by the processor where it can, else from tables. The sums are the same. */

/* Filled once by each user: 8 KiB, so that there is no global state to be made at start. */
struct crc32c {
	__u32 table[8][256];
	bool by_processor; /* it can; may be set to false */
};

void crc32c_init(struct crc32c *crc);
/* The sum of bytes that follow those of sum; 0 to begin with. */
__u32 crc32c_add(const struct crc32c *crc, __u32 sum, const void *bytes, size_t length);

#endif
