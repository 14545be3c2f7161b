/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A gzip file (RFC 1952) of one member that grows and always has an end: what has been added so far is compressed and
 * flushed, and followed by an end, with a text of its own, that the next addition overwrites. Adding takes no memory.
 */
#ifndef XPT_BASE_FILE_GZIP_H
#define XPT_BASE_FILE_GZIP_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#define GZIP_END_TEXT 65535u		   /* most bytes of text in an end */
#define GZIP_END (GZIP_END_TEXT + 5u + 8u) /* most bytes of an end */

struct gzip;

bool gzip_is_name(const char *path); /* "trace.json.gz" */
struct gzip *gzip_create(void);	     /* NULL: no memory */
void gzip_free(struct gzip *gzip);

/* Gets compressed bytes; a negative errno ends the addition, which returns it. */
typedef int (*gzip_put_fn)(void *context, const void *bytes, size_t length);

/* Adds bytes; flush: and everything that is not written yet, so that an end can follow. After an error nothing more can be added. */
int gzip_add(struct gzip *gzip, const void *bytes, size_t length, bool flush, gzip_put_fn put, void *context);
/* What ends the file after what was added and these bytes, at most GZIP_END_TEXT. Returns its length. */
size_t gzip_end(const struct gzip *gzip, const void *bytes, size_t length, unsigned char end[GZIP_END]);

/* To a descriptor that nothing else is written to; gzip NULL: as it is. 0 or -errno as file_write(). */
int gzip_write(struct gzip *gzip, int descriptor, const void *bytes, size_t length);
int gzip_finish(struct gzip *gzip, int descriptor); /* the end */

/* Whether what can be read from the regular file's begin on is compressed. */
bool gzip_is_packed(int descriptor);
/*
 * What is in it, as a file without a name, which is read from its begin on. A descriptor, or -EBADMSG: it is damaged or ends too early;
 * or another -errno.
 */
int gzip_unpack(int descriptor);

#endif
