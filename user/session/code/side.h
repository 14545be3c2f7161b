/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a collector needs to capture code objects: the capture, the folder, and what is found in processes without a
 * call. On the thread that collects.
 */
#ifndef XPT_SESSION_CODE_SIDE_H
#define XPT_SESSION_CODE_SIDE_H

#include "session/code/capture.h"
#include "session/collect/collector.h"

struct code_side;

struct code_side_options {
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
int code_side_create(const struct code_side_options *options, struct code_side **result);
/* The same of these are to be called from the collector's options of the same names. */
void code_side_record(struct code_side *side, const struct xpt_record_header *record);
void code_side_scanned(struct code_side *side, pid_t tgid);
void code_side_started(struct code_side *side); /* what is found from here on came later */
void code_side_work(struct code_side *side);	/* hands out what is complete; after collector_work() */
void code_side_finish(struct code_side *side);	/* and the rest; after collector_finish() */
struct code_counts code_side_counts(const struct code_side *side);
struct code_store *code_side_store(struct code_side *side); /* NULL: there is none; after code_side_finish() */
int code_side_error(struct code_side *side);		    /* the first one of writing, or 0 */
void code_side_free(struct code_side *side);		    /* NULL is allowed */

#endif
