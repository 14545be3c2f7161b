/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often triggers may save, and how much in all. Saves on demand are not asked for here. Logic only: the caller
 * passes the time and what was written.
 */
#ifndef XPT_PROFILE_TRIGGER_SAVE_LIMITS_H
#define XPT_PROFILE_TRIGGER_SAVE_LIMITS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

enum save_answer {
	SAVE_MAY,
	SAVE_PENDING,  /* the save that was granted before is not done */
	SAVE_FILES,    /* there are as many files as there may be */
	SAVE_BYTES,    /* or bytes in them */
	SAVE_COOLDOWN, /* too soon after the save before */
	SAVE_ANSWERS,
};

/* Zero it, and set the first three, to begin with. */
struct save_limits {
	__u64 cooldown;	  /* ns from one granted save to the next */
	__u64 files_most; /* that are saved; 0: no limit */
	__u64 bytes_most; /* of all files: once they are reached no other is begun; 0: no limit */
	/* What was done; to be read only. */
	__u64 files, bytes;
	__u64 answers[SAVE_ANSWERS]; /* how often each was given: all but SAVE_MAY are triggers that saved nothing */
	__u64 granted;		     /* when the last one was, ns */
	bool pending;
};

/*
 * Whether a trigger that fires at now, ns of CLOCK_MONOTONIC, may save; counts the answer. After SAVE_MAY nothing
 * else is granted until save_limits_done(). Of several reasons the first of the enum is given.
 */
enum save_answer save_limits_ask(struct save_limits *limits, __u64 now);
/* What was granted is done. bytes: of the file; 0: it could not be written, which is no file, but has its cooldown. */
void save_limits_done(struct save_limits *limits, __u64 bytes);
/* The answer to an ask at now for people, cut to size: "the save before was 3 s ago, less than 10 s". size is not 0. */
void save_limits_text(const struct save_limits *limits, enum save_answer answer, __u64 now, char *string, size_t size);

#endif
