/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When to save a window of continuous profiling: a condition on inferences (profile/trigger/text.h), fed with every inference
 * of the programs it is for. Logic only: no clock, no kernel, no files.
 *
 * latency, cpu, waited, blocked and error fire with every inference that fits. The others are kept for each program on its own and are
 * evaluated with each of its inferences. They fire when they go beyond the limit, and again only after they were once
 * not beyond it: at or below it, with >= below it. A percentile (nearest rank) or mean of fewer than TRIGGER_LEAST
 * inferences is not valid: it neither fires nor counts as not beyond. max has no such least number, and stays beyond
 * until the slow inference is out of the window.
 *
 * Precision: the inferences are those that ended in the last 95 to 100 % of the time after "over", counted back from
 * the program's newest end. For these it is decided exactly whether it fires; the reported
 * percentile is within 1 %.
 *
 * Memory does not depend on the rate: a program with inferences within the limit takes 1.2 KiB. One that does not takes
 * 1 KiB more for each of the TRIGGER_SLICES slices with latencies beyond the limit, and 512 bytes for each doubling
 * between these: all together 80 KiB where they are within 16 times the shortest, and 600 KiB when all 64 bits are
 * used.
 */
#ifndef XPT_PROFILE_TRIGGER_TRIGGER_H
#define XPT_PROFILE_TRIGGER_TRIGGER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/core/text.h"
#include "model/stream/objects.h"

/*
 * The text of a trigger:
 *
 *     latency > 20ms           one inference
 *     waited > 5ms             its thread could have run and waited for a CPU
 *     blocked > 5ms            its thread waited for anything else
 *     cpu > 5ms                its thread ran
 *     p99.9 >= 10ms over 5s    a percentile, p50 as well as p99.999, of the inferences that ended in that time
 *     mean > 1.5ms over 1m     the same of their mean
 *     max > 20ms over 30s      and of the longest
 *     error                    one inference that failed
 *
 * Times are decimal numbers with a unit: ns, us, ms, s or m, which is a minute. Blanks are allowed between all parts.
 * What could never fire, or always would, is refused.
 */

#define TRIGGER_TIME_MAX 3600000000000ull /* ns: 1 h, of the limit as of the window */
#define TRIGGER_WINDOW_MIN 1000000ull	  /* ns */
#define TRIGGER_PERCENT 1000u		  /* 1 percent, in the unit of percentiles */

enum trigger_measure {
	TRIGGER_LATENCY,
	TRIGGER_ERROR,
	TRIGGER_PERCENTILE,
	TRIGGER_MEAN,
	TRIGGER_MAX,
	TRIGGER_CPU,
	TRIGGER_WAITED,
	TRIGGER_BLOCKED,
};

struct trigger_condition {
	enum trigger_measure measure;
	unsigned int percentile; /* 99900 is p99.9; 1 to 99999 */
	bool at_least;		 /* >= */
	__u64 limit;		 /* ns, 1 to TRIGGER_TIME_MAX; 0: TRIGGER_ERROR */
	__u64 window;		 /* ns, TRIGGER_WINDOW_MIN to TRIGGER_TIME_MAX; 0: it is of one inference */
};

/*
 * -EINVAL: reason, cut to size, quotes what is wrong and shows what would be right, in one line that is fit for a
 * terminal. 256 bytes are enough; size is not 0.
 */
int trigger_text_parse(const char *text, struct trigger_condition *condition, char *reason, size_t size);

/* Bytes of the time, such as "1.5 ms", that text begins with; 0: with none up to TRIGGER_TIME_MAX in whole nanoseconds. */
size_t trigger_text_parse_time(const char *text, __u64 *nanoseconds);
/* Whether it is of a single inference, and compared with a time. */
bool trigger_is_of_one(const struct trigger_condition *condition);
/* In a reason: "p99.9", "latency", "waiting time" */
void trigger_text_measure(struct text *text, const struct trigger_condition *condition);
/* Exactly, in the largest unit up to seconds that is not larger than it: "1.5 ms". */
void trigger_text_time(struct text *text, __u64 nanoseconds);
/* The text as a terminated string of at most size bytes; where it has to be cut, between characters. size is not 0. */
void trigger_text_copy(const struct text *text, char *string, size_t size);

#define TRIGGER_SLICES 20      /* of the time after "over" */
#define TRIGGER_LEAST 20u      /* inferences */
#define TRIGGER_PROGRAMS 1024u /* known at once; the least recently run is forgotten, and begins anew */

struct trigger;

struct trigger_inference {
	__u64 program;	  /* its id */
	__u64 start, end; /* ns of CLOCK_MONOTONIC; ends need not be in order. end < start: its latency is not known */
	bool failed;	  /* it counts in latencies all the same */
	const struct model_states *states; /* of its thread; NULL, or of no calls: not known */
};

/* What fired last. */
struct trigger_firing {
	__u64 program;
	__u64 value; /* ns: the latency, the thread's time, or what the percentile, the mean (rounded up) or the maximum was */
	__u64 inferences; /* that it is of; 1 where there is no window */
};

struct trigger_losses {
	__u64 left_out;	 /* inferences that ended before the window, or of which the measure is not known */
	__u64 forgotten; /* programs */
};

/* -EINVAL: see trigger_text_parse(); -ENOMEM: also in reason. */
int trigger_parse(const char *text, struct trigger **result, char *reason, size_t size);
void trigger_free(struct trigger *trigger);

/* 1: fires; 0; -ENOMEM: not counted, or it fires with the next one instead. */
int trigger_inference(struct trigger *trigger, const struct trigger_inference *inference);

/* Changes when it fires again; all 0: it has not yet. */
const struct trigger_firing *trigger_last(const struct trigger *trigger);
/*
 * The same for people, after it has fired, cut to size: "latency of resnet50 was 34.1 ms (> 20 ms)". name: of that
 * program; as it may come from the traced process, it is cut and made safe for a terminal.
 */
void trigger_reason(const struct trigger *trigger, const char *name, char *reason, size_t size);
const struct trigger_losses *trigger_losses(const struct trigger *trigger);

/* ---- save limits ---- */

/*
 * How often triggers may save, and how much in all. Saves on demand are not asked for here. Logic only: the caller
 * passes the time and what was written.
 */
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
