/* SPDX-License-Identifier: BSD-2-Clause */
/* One code object that a program has loaded, on its way from the kernel's records to the user. */
#ifndef XPT_SESSION_CODE_LOAD_H
#define XPT_SESSION_CODE_LOAD_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

#include "code/format/object.h"
#include "code/store/store.h"
#include "describe/runtime/description.h"
#include "session/reader/readers.h"

/* Bytes, however often they were loaded. Made by the worker; does not change, but data, while a load has it. */
struct code_object {
	char sha256[CODE_HASH_SIZE]; /* "": bytes are missing */
	struct code_contents contents;
	__u64 size;
	struct code_copy copy; /* what is kept in memory; else zeroed */
	bool stored;	       /* is in the folder */
	unsigned int loads;    /* that have it; of the worker */
};

struct code_load {
	struct code_load *next; /* in the worker's queues */
	struct code_load *peer; /* of those that wait, or of those that have been handed out */
	struct code_load *live; /* next one in its chain of those that may be unloaded */

	/* What is known when the call begins. */
	pid_t tgid, tid;		   /* tid 0: it was found */
	const struct description *runtime; /* NULL: it was found in a file */
	const struct call_spec *spec;	   /* of the call; NULL: it was found */
	enum code_kind hint;		   /* when its bytes do not identify it */
	char *path;			   /* as the process sees it; NULL: it was given in memory */
	__u64 offset;			   /* in the file */
	__u64 address;			   /* in the process: of the bytes, or where the file is mapped; 0: none */
	__u64 size;			   /* bytes there, or in the file; 0: not known, or all of the file */
	__u64 length;			   /* bytes of the file that are mapped at the address */
	__u64 loaded;			   /* ns of CLOCK_MONOTONIC: when the call began; 0: it was found */

	/* Results of the call. Of the collecting thread. */
	bool done;	/* the worker has finished */
	bool answered;	/* by the call */
	__u64 waited;	/* ns that the call was delayed until its bytes were copied */
	__u64 ended;	/* ns of CLOCK_MONOTONIC: when the call did */
	__u64 handle;	/* 0: none */
	__s64 device;	/* -1: unknown */
	__s64 status;	/* 0: success */
	__u64 unloaded; /* ns of CLOCK_MONOTONIC; 0: not yet */
	__u64 gone;	/* ns of CLOCK_MONOTONIC: its process has ended before its call was known to; 0: not */

	/* What becomes of the bytes. Of the worker while it has the load. */
	struct code_copy copy;	    /* given to the object */
	bool in_file;		    /* else the copy has the bytes */
	struct file_reader *reader; /* of that file; NULL: it is not open yet */
	int place;		    /* of it (O_PATH), where it was found mapped; -1 */
	struct code_rights rights;  /* of the call, where it is to be opened by its path */
	bool incomplete;	    /* not all bytes are known */
	bool over_limit;	    /* they were not kept for a limit */
	__u64 missing;		    /* bytes */
	__u64 zeros;		    /* of the missing ones: zeros stand for them in the copy */
	char *error;		    /* why bytes are missing or not kept; NULL: nothing */
	struct code_object *object; /* NULL: no memory, or nothing of it could be read */
};

/* Unless there is an error already; without memory there is none. */
void code_load_set_error(struct code_load *load, const char *format, ...) __attribute__((format(printf, 2, 3)));
void code_load_set_file_error(struct code_load *load, int error); /* it cannot be opened or read */
void code_load_free(struct code_load *load);			  /* its object is the worker's; NULL is allowed */

/* Loads of code objects as records. Free the result with free(); NULL: no memory. */

#define CODE_RECORD_KERNELS 64 /* names in a record */

struct xpt_record_text *record_code_object(const struct code_load *load);
struct xpt_record_text *record_code_unloaded(const struct code_load *load);

#endif
