/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file in which reports follow one another. Between calls it is always a complete document; when it would grow too
 * large it gets another name, and a new one is begun.
 */
#ifndef XPT_REPORT_LATENCY_REPORT_GROWING_H
#define XPT_REPORT_LATENCY_REPORT_GROWING_H

#include "report/latency/report_document.h"
#include "base/file/tailed_file.h"

/* One file. */
struct growing_file {
	struct tailed_file file;
	struct report_document document;
	struct text tails[2]; /* that in the file, and its replacement */
	unsigned int tail;    /* which one is in the file */
};

struct report_growing {
	struct growing_file current;
	const char *path;     /* of the caller; NULL: a descriptor */
	__u64 rotate_bytes;   /* 0: never */
	unsigned int keep;    /* rotated files; 0: all */
	bool single;	      /* one report is expected (report_document.h) */
	__u64 rotated;	      /* path.1 to path.ROTATED were written here */
	__u64 finished_bytes; /* in files that have been rotated */
	struct text text;     /* the piece that is being written */
};

/*
 * Creates or truncates path; or takes over descriptor when path is NULL (closed on failure as well). path must stay
 * valid. -EINVAL: what path is cannot be rotated.
 */
int report_growing_open(struct report_growing *growing, const char *path, int descriptor,
			enum xpt_report_format format);
/* Of a pipe or device: a process of its own writes (tailed_file_detach()). */
int report_growing_detach(struct report_growing *growing, const uint64_t *stopped);
/* Before it is closed: waits until all is written. Reports that were taken and are not; without a process, 0. */
__u64 report_growing_settle(struct report_growing *growing);
/*
 * 0 or -errno: then the report is left out and the files are what they were; but a pipe has got a part of it, and takes
 * nothing more.
 */
int report_growing_write(struct report_growing *growing, const struct xpt_profile_report *report);
/* 0 or an error of the last file: of a write or of close(). */
int report_growing_close(struct report_growing *growing);
__u64 report_growing_bytes(const struct report_growing *growing);  /* in all files */
bool report_growing_is_file(const struct report_growing *growing); /* not a pipe or device */

/* ---- names of the files that reports are written to ---- */

/* "latency.csv" and 7: "latency-000007.csv". The caller frees; NULL: no memory. */
char *report_name_numbered(const char *path, __u64 number);
/* "latency.csv" and 7: "latency.csv.7". The caller frees; NULL: no memory. */
char *report_name_rotated(const char *path, __u64 number);
/*
 * Makes room for a new path: path becomes path.1, path.1 becomes path.2, and so on up to the first number that is free.
 * No file is overwritten. 0 or -errno: then path is where it was; some others may have moved on, and the next call
 * continues with them.
 */
int report_names_shift(const char *path);

#endif
