/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a collector needs to capture code objects: the capture, the folder, and what is found in processes without a
 * call. On the thread that collects.
 */
#ifndef XPT_SESSION_CODE_CODEOBJ_SOURCE_H
#define XPT_SESSION_CODE_CODEOBJ_SOURCE_H

#include "session/code/capture.h"
#include "session/collect/collector.h"

struct codeobj_source;

struct codeobj_source_options {
	struct collector *collector; /* outlives it; not opened yet, code objects are among its needs */
	enum xpt_codeobj_mode mode;
	const char *output; /* folder; NULL: bytes are kept in memory */
	uid_t user;	    /* owner of the files in the folder */
	gid_t group;
	/* As in xpt_codeobj_options; 0: the defaults. */
	__u64 object_limit, process_limit, total_limit;
	bool keep; /* as in code_capture_options, as are: */
	void (*loaded)(void *context, const struct code_load *load);
	void (*unloaded)(void *context, const struct code_load *load);
	void *context;
};

/* -ENOMEM, and the errors of folders. */
int codeobj_source_create(const struct codeobj_source_options *options, struct codeobj_source **result);
/* The same of these are to be called from the collector's options of the same names. */
void codeobj_source_record(struct codeobj_source *source, const struct xpt_record_header *record);
void codeobj_source_scanned(struct codeobj_source *source, pid_t tgid);
void codeobj_source_started(struct codeobj_source *source); /* what is found from here on came later */
void codeobj_source_work(struct codeobj_source *source);    /* hands out what is complete; after collector_work() */
void codeobj_source_finish(struct codeobj_source *source);  /* and the rest; after collector_finish() */
struct code_counts codeobj_source_counts(const struct codeobj_source *source);
struct code_store *codeobj_source_store(
	struct codeobj_source *source);			 /* NULL: there is none; after codeobj_source_finish() */
int codeobj_source_error(struct codeobj_source *source); /* the first one of writing, or 0 */
void codeobj_source_free(struct codeobj_source *source); /* NULL is allowed */

#endif
