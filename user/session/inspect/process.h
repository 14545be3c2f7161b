/* SPDX-License-Identifier: BSD-2-Clause */
/* What an inspection keeps of a process beside its records: who it is, and what it has used over time. */
#ifndef XPT_SESSION_INSPECT_PROCESS_H
#define XPT_SESSION_INSPECT_PROCESS_H

#include "base/file/folder.h"
#include "model/stream/event.h"
#include "target/process/process.h"

#define INSPECT_ROWS_MAX 65536u		 /* readings kept: then every second one is dropped, and the rate halved */
#define INSPECT_READ_EVERY 1000000000ull /* ns between two readings, at first */
#define INSPECT_PROCESSES_MAX 1024u	 /* further ones are not kept apart, and have no folder */

#define INSPECT_FAILED_MAX 100u /* files of inferences that have failed; then there are no more */

struct inspect_process {
	struct inspect_process *next;
	__u32 tgid;
	__u64 start_time; /* clock ticks after boot; 0: unknown */
	char *name, *command;
	struct usage_source source;
	bool open; /* the source is */
	__u64 due; /* of the next reading, ns */
	__u64 every;
	struct process_usage *rows;
	size_t count, room;
	struct folder *folder;			/* NULL: not yet */
	char *failed_files[INSPECT_FAILED_MAX]; /* names of files */
	unsigned int failed_count;
	bool saving;	   /* a failed inference is being saved */
	bool missed;	   /* another one has failed since */
	char failure[200]; /* the latest */
	__u64 inferences, failed;
};

/* NULL: no memory. wanted: USAGE_*, 0: none is read. */
struct inspect_process *inspect_process_create(const struct model_process *view, unsigned int wanted, __u64 now);
void inspect_process_free(struct inspect_process *process);
/* It has become another program, or its name was not known. */
void inspect_process_rename(struct inspect_process *process, const struct model_process *view);
/* A failed inference is in the file. */
void inspect_process_failed(struct inspect_process *process, const char *path);
/* Reads what is due. */
void inspect_process_read(struct inspect_process *process, unsigned int wanted, __u64 now);

#endif
