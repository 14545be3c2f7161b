/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file that grows in the middle: what has been added so far, then a tail that makes it a complete document. Each
 * append overwrites the tail and brings a new one, in one write. Where that fails (disk full), the file goes back to
 * what it was before. A pipe gets no tail until the last append.
 */
#ifndef XPT_REPORT_TAILED_FILE_H
#define XPT_REPORT_TAILED_FILE_H

#include <stdbool.h>

#include "base/text.h"

struct tailed_file {
	int descriptor;	  /* -1: closed */
	bool seekable;	  /* a regular file, whose tail can be overwritten */
	__u64 start;	  /* offset at which the document begins */
	__u64 length;	  /* offset at which the tail begins */
	__u64 end;	  /* offset behind the tail */
	const char *tail; /* the one in the file, owned by the caller */
	size_t tail_length;
	int error; /* the first one of an append; a stream takes nothing more after it */
};

/* Creates or truncates path; or takes over descriptor when path is NULL (closed on failure as well). */
int tailed_file_open(struct tailed_file *file, const char *path, int descriptor);
/*
 * Writes the bytes of text and then the tail, which it appends to text for the purpose. tail must stay valid until
 * the next append has succeeded. last: a pipe gets the tail, too. -ENOSPC and the like: the file is what it was
 * before.
 */
int tailed_file_append(struct tailed_file *file, struct text *text, const char *tail, size_t tail_length, bool last);
/* 0 or the error of an append or of close(). */
int tailed_file_close(struct tailed_file *file);

#endif
