/* SPDX-License-Identifier: BSD-2-Clause */
/* Recordings through the model: once, or several times, as what is reported of them needs. */
#ifndef XPT_ANALYSIS_READING_H
#define XPT_ANALYSIS_READING_H

#include <stdint.h>

#include "base/core/log.h"
#include "model/core/model.h"
#include "profile/handle/choice.h"
#include "record/recording.h"

/* One time through a recording. Zero it to begin with. */
struct reading {
	const char *name; /* for messages */
	struct recording_reader *reader;
	struct chooser *chooser; /* of what the recording was limited to */
	struct model *model;
};

/* All records, or some. */
struct reading_pass {
	const struct log *log;
	bool (*takes)(void *context, const struct xpt_record_header *record); /* NULL: all */
	void *context;
	void (*progress)(void *context, uint64_t done, uint64_t total); /* bytes; NULL: none */
	void *progress_context;
	__u64 before, after; /* bytes that were read before this time, and will be after it */
};

/* How messages call the input. */
const char *reading_name(const char *path);
/*
 * A descriptor of the input that can be read `times` times: "-", standard input, is copied to a file without a name where it has to
 * be. Or -errno, reported.
 */
int reading_open_input(const struct log *log, const char *path, unsigned int times);

/* Errors of recording_reader_create(), -ENOMEM; it is to be closed in any case. */
int reading_open(struct reading *reading, const struct log *log, const char *name, int input);
void reading_close(struct reading *reading);
/* Up to the end. 0, -ENODATA: that is missing; errors of sinks; -EBADMSG: the choice of programs in it is damaged (reported). */
int reading_all(struct reading *reading, const struct reading_pass *pass);

#endif
