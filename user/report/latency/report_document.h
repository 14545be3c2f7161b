/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A document that reports are appended to, in any of the formats: its head, the reports piece by piece, and the tail
 * that makes it complete. Text only; files are report_growing.h.
 */
#ifndef XPT_REPORT_LATENCY_REPORT_DOCUMENT_H
#define XPT_REPORT_LATENCY_REPORT_DOCUMENT_H

#include <stdbool.h>
#include <xputrace/profile_report.h>

#include "base/core/text.h"
#include "base/file/tailed_file.h"
#include "report/latency/latency.h"

struct report_document {
	enum xpt_report_format format;
	bool single;	      /* one report is expected: a flat table has the columns of the first one only */
	flat_columns columns; /* of a flat table, once there is a report */
	__u64 reports;	      /* in the document */
	__u64 left_out;	      /* could not be written while it was this document's turn */
	bool has_events;
	__u64 inferences, samples, lost; /* of all reports and programs */
	__u64 start, end;		 /* first interval begins, last one ends: CLOCK_MONOTONIC */
};

/* How far one report has been appended; begins with the report and zeros. */
struct report_part {
	const struct xpt_profile_report *report;
	struct latency_position position;
	size_t events; /* bytes of its events that have been appended */
	flat_columns columns;
	bool begun;
};

/* 0, or -EINVAL when the format does not fit the report. */
int report_document_check(const struct xpt_profile_report *report, enum xpt_report_format format);
/* The whole of one report, compressed or not. As xpt_profile_report_write(), and -ENOMEM. */
int report_document_write(const struct xpt_profile_report *report, enum xpt_report_format format, bool compressed,
			  int descriptor);
/* Nothing would be appended. */
bool report_document_skips(const struct xpt_profile_report *report, enum xpt_report_format format);
/*
 * Appends the next piece to text, which was empty, about REPORT_PIECE bytes long; the document's head comes with the
 * first piece of its first report. Returns whether more is to come. An error is in text.
 */
bool report_document_next(const struct report_document *document, struct report_part *part, struct text *text);
#define REPORT_PIECE (1u << 20)
/* The report is in the document. */
void report_document_count(struct report_document *document, const struct xpt_profile_report *report);
/* What completes the document behind its last report; a whole empty document when there is none. last: it is closed. */
void report_document_tail(const struct report_document *document, struct text *text, bool last);

/*
 * A file in which reports follow one another. Between calls it is always a complete document; when it would grow too
 * large it gets another name, and a new one is begun.
 */

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
 * No file is overwritten. Paths are relative to the directory, as of openat(). 0 or -errno: then path is where it was; some others may have moved on, and the next call
 * continues with them.
 */
int report_names_shift(int directory, const char *path);

#endif
