/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What recordings say about programs, reduced to what fits in memory: the figures behind explanations, comparisons and pages. Each
 * recording is read twice: first the durations of all inferences, which give the quantiles, then what lies in them.
 *
 * Times of a study are ns of the CLOCK_MONOTONIC of its first recording; those of others are moved there by the clock that all
 * machines share. Strings are valid UTF-8 only by luck. Everything lives as long as the study and is not to be changed.
 *
 * Memory, whatever the length: programs, samples, operators and kept inferences below their limits, a grid of counts for the
 * STUDY_HISTORIES_MAX programs with most time, and a model a recording, two while it is made: about 800 MB with all limits reached,
 * with few programs below 100 MB.
 */
#ifndef XPT_ANALYSIS_STUDY_H
#define XPT_ANALYSIS_STUDY_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <xputrace/target.h>

#include "base/core/log.h"
#include "model/core/model.h"

#define STUDY_PROGRAMS_MAX 16384   /* further ones are not kept apart: "(others)" */
#define STUDY_SAMPLES_MAX 65536	   /* of a program, drawn by chance; and as many of its slowest */
#define STUDY_SAMPLES_TOTAL 524288 /* drawn ones of all programs; half of the largest programs' go when they are more */
#define STUDY_SLOWEST_TOTAL 262144 /* of all programs: further slow ones are in the cohort, but no samples */
#define STUDY_OPERATORS_MAX 4096   /* of a program; the last one is "(others)" */
#define STUDY_VECTORS_MAX 4096	   /* samples of a program with the self times of their operators */
#define STUDY_SLOWEST_KEPT 20	   /* of a program, in full */
#define STUDY_TYPICAL_KEPT 3	   /* nearest to the median, in full */
#define STUDY_DETAILS_MAX 4096	   /* inferences in full, of all programs */
#define STUDY_DETAIL_ITEMS_MAX 16384 /* of one inference: operators, slices, jobs, calls each */
#define STUDY_PARTIES_MAX 64	     /* of a cohort; the last one is "(others)" */
#define STUDY_BINS 200		     /* of the time that the study is about */
#define STUDY_HISTORIES_MAX 256	     /* programs with counts over time */
#define STUDY_ROWS 64		     /* of durations in these, at most */

/*
 * Where the duration of one inference went, ns: together they are its duration. Of an asynchronous one, what lies between the enqueue
 * and the wait is UNKNOWN, and where states were not recorded everything is; and so is what the thread waited in a probe, until
 * others were placed.
 */
enum study_component {
	COMPONENT_CPU = 0,
	COMPONENT_WAITED = 1, /* it could have run: preempted, or woken and not running yet */
	COMPONENT_FUTEX = 2,  /* blocked, by enum xpt_off_cpu: reasons are recorded with --why */
	COMPONENT_POLL = 3,
	COMPONENT_IO = 4,
	COMPONENT_IOCTL = 5,
	COMPONENT_FAULT = 6,
	COMPONENT_SLEEP = 7,
	COMPONENT_OTHER = 8,
	COMPONENT_BLOCKED = 9, /* the reason was not recorded */
	COMPONENT_UNKNOWN = 10,
	STUDY_COMPONENTS = 11,
};

/* "cpu", "waited", "futex", ..., "blocked", "unknown": for machines. */
const char *study_component_name(enum study_component component);

/* What is measured of an inference. In cohorts: means. */
struct study_measures {
	double duration;
	double component[STUDY_COMPONENTS];
	/* ns, beside the partition and overlapping it: */
	double queue, device; /* sums over its jobs, as in struct xpt_sample */
	double tracing;	      /* that probes took, with those of what lies inside */
	double probes;	      /* that the thread waited for probes to be placed: a part of UNKNOWN */
	/* The second partition of the duration, where operators on its thread were recorded: their self times, and what is outside them. */
	double operators, outside;
	double outside_cpu; /* of outside, that the thread ran; where both are recorded */
	double jobs, minor_faults, major_faults, voluntary, involuntary;
};

enum study_flag {
	STUDY_FAILED = 1,
	STUDY_ASYNC = 2,    /* an enqueue and its wait, or a launch */
	STUDY_DRAWN = 4,    /* by chance: these are a uniform sample of the program's inferences */
	STUDY_SLOW = 8,	    /* of the cohort slow */
	STUDY_TYPICAL = 16, /* of the cohort typical */
	STUDY_STATES = 32,  /* states are known */
	STUDY_NUMBERED = 64,
};

struct study_sample {
	__u64 start, duration;
	__u64 component[STUDY_COMPONENTS];
	__u64 queue, device, tracing, probes;
	__u64 operators; /* ns during which one ran on its thread */
	__u64 number;	 /* of the inference in its program */
	__u64 bytes;	 /* 0: unknown */
	__u32 tokens;	 /* 0: none, or unknown */
	__u32 tgid, tid;
	__u32 jobs, minor_faults, major_faults, voluntary, involuntary;
	__u16 input;  /* index of the recording */
	__u16 flags;  /* enum study_flag */
	float weight; /* inferences that it stands for, so that all samples together stand for all recorded ones */
};

/* Of an operator in one inference, means over the inferences of a cohort; those without it count as 0. */
struct study_share {
	double times, self; /* ns of self, without operators inside: */
	double cpu, waited, blocked, faults;
};

/* Those with the same label, type and provider in the program, also of several processes. */
struct study_operator {
	const char *label, *type, *provider; /* provider NULL: unknown */
	__s64 index;			     /* of the node; -1: unknown */
	__u64 count;
	double self, total;		   /* ns, of all inferences */
	__u64 device_time, jobs;	   /* of all inferences */
	const struct statistics *duration; /* with what is inside; never NULL */
	struct study_share typical, slow;
	bool apart; /* on other threads than its inference: in no partition, and without shares */
};

/* Who ran in place of the threads of a program (reason PREEMPTED), or woke them; in all inferences of a cohort. */
struct study_party {
	enum xpt_off_cpu reason;
	bool interrupt;		      /* that woke it: no thread */
	char name[XPT_TASK_NAME_LEN]; /* of the thread; "": not known */
	__u32 tgid;		      /* 0: of the kernel, or several */
	__u64 times, time;	      /* ns that the thread did not run; of reasons: was blocked */
};

struct study_cohort {
	__u64 count, failed;
	__u64 least, most; /* ns, of durations */
	struct study_measures mean;
	__u64 states, operators;	   /* of count: inferences that have them */
	const struct study_party *parties; /* most time first */
	size_t party_count;
};

/* ---- inferences in full ---- */

struct study_slice {
	enum xpt_off_cpu reason;
	__u64 start, woken, end;
	__s32 syscall;
	bool interrupt;
	char next[XPT_TASK_NAME_LEN], waker[XPT_TASK_NAME_LEN];
	__u32 next_tgid, waker_tgid;
	__u32 operator; /* as in struct study_node; ~0: none */
};

struct study_node {
	__u32 operator; /* index in the program's operators; ~0: unknown */
	__u32 tid;
	unsigned int depth; /* operators around it on its thread */
	__u64 start, end, self;
};

struct study_job {
	const char *name; /* "": unknown */
	const struct model_queue *queue;
	__u64 queued, runs, done; /* 0: not seen */
	bool failed;
};

struct study_call {
	const char *name, *runtime;
	enum xpt_role role;
	unsigned int depth; /* calls around it on its thread, as recorded */
	__u32 tid;
	__u64 start, end;
	bool failed;
};

struct study_detail {
	struct study_sample sample;
	const struct study_node *nodes; /* in the order of their begins, as the others */
	size_t node_count;
	const struct study_slice *slices;
	size_t slice_count;
	const struct study_job *jobs;
	size_t job_count;
	const struct study_call *calls; /* the inference's own one among them */
	size_t call_count;
	bool cut; /* some have had no room */
};

/* ---- programs ---- */

struct study_process {
	const char *name;
	__u32 tgid;
	unsigned int input;
};

/* Counts of the durations that inferences had, by when they began: rows are 1/8 of an octave or more high. */
struct study_history {
	unsigned int rows;   /* at most STUDY_ROWS */
	double low, step;    /* row r is durations from low * 2^(r * step) ns on */
	const __u32 *counts; /* [bin * rows + row] */
	const __u32 *failed; /* [bin] */
	const double *time;  /* [bin]: ns, sum of durations */
};

/* Processes with one name that run programs of one runtime with one name. */
struct study_program {
	const char *name, *runtime, *process;
	const struct study_process *processes;
	size_t process_count;
	__u32 fingerprint;  /* of the operators of an inference; 0: unknown, or several */
	const char *sha256; /* of the code object with its name; NULL: unknown */
	enum xpt_role role;
	bool region;		       /* of user code */
	bool others;		       /* stands for several */
	bool exact;		       /* counted is known: by the kernel */
	__u64 counted, left_out, lost; /* inferences: all, of them by sampling, and for whatever cause */
	__u64 recorded, failed, unended;
	__u64 first_start, last_end;
	const struct statistics *duration; /* of those with a known end; NULL: there are none */
	double total;			   /* ns, sum of these */
	bool has_states, has_reasons, has_operators, has_jobs;
	struct study_cohort typical; /* between the 40th and the 60th percentile */
	struct study_cohort slow;    /* the slowest 1 %, at least one */
	struct study_cohort all;     /* without parties */
	double faults_cost,
		faults_fit; /* ns of CPU time a page fault without I/O goes with, over all; and r^2 of that; 0: unknown */
	const struct study_sample *samples; /* by start */
	size_t sample_count;
	const struct study_operator *operators; /* most self time first */
	size_t operator_count;
	/* Self times of the operators, ns, of some drawn samples: [vector * operator_count + operator]. */
	const float *vectors;
	const __u32 *vector_samples; /* their indices in samples */
	size_t vector_count;
	const struct study_detail *slowest; /* the slowest first */
	size_t slowest_count;
	const struct study_detail *middle; /* the nearest to the median first */
	size_t middle_count;
	const struct study_history *history; /* NULL: none is kept */
};

/* ---- the machine ---- */

struct study_queue {
	const struct model_queue *queue;
	unsigned int input;
	const float *busy;    /* [bin]: share of it with a job at the device, 0 to 1 */
	const float *waiting; /* [bin]: mean number of jobs in the queue */
};

struct study_counter {
	const struct model_counter *counter;
	unsigned int input;
	const float *min, *mean, *max; /* [bin]; NaN: no value in it */
};

/* One that was read. */
struct study_input {
	const char *path, *host, *kernel, *machine, *version, *command;
	__u64 realtime;	   /* ns since 1970, when times of the study were 0 */
	__u64 origin;	   /* when it began, which --from and --to of reports count from */
	__u64 first, last; /* of its calls */
	__u64 size;	   /* bytes; 0: a pipe */
	bool complete;
	const struct model
		*model; /* after its last record: queues, counters, losses, budget, code objects, END text... */
};

struct study {
	const struct study_input *inputs;
	size_t input_count;
	__u64 start, end; /* of what is studied; bins are of the same width */
	double bin;	  /* ns */
	unsigned int bins;
	bool complete;					       /* all recordings are */
	bool has_operators, has_states, has_reasons, has_jobs; /* recorded anywhere */
	bool has_off_cpu_stacks, has_cpu_stacks;
	const struct study_program *programs; /* most total time first */
	size_t program_count;
	size_t program_total; /* those that were not chosen included */
	const struct study_queue *queues;
	size_t queue_count;
	const struct study_counter *counters;
	size_t counter_count;
	__u64 lost[XPT_LOSS_MAX];
};

struct study_options {
	const struct log *log;
	const char *const *inputs; /* "-": standard input, once */
	size_t input_count;
	/* As in struct xpt_report_options. */
	const struct xpt_program_choice *programs;
	size_t program_count;
	size_t program_size;
	const char *match;
	const pid_t *pids;
	size_t pid_count;
	__u64 from, to; /* of each recording */
	__u64 seed;	/* of what is drawn by chance; the same gives the same */
	bool details;	/* keeps inferences in full, and what is over time */
	void (*progress)(void *context, uint64_t done, uint64_t total); /* bytes; NULL: none */
	void *progress_context;
	const int *
		descriptors; /* of inputs that are open already, and can be read several times; NULL: they are opened */
};

/*
 * Errors are reported as by xpt_report_create(): -ENOENT: what was chosen is not there. A recording that was cut short is no error:
 * complete says so.
 */
int study_create(const struct study_options *options, struct study **study);
void study_free(struct study *study);

/* Whether the sample's inference has flag. */
static inline bool study_has(const struct study_sample *sample, enum study_flag flag)
{
	return sample->flags & flag;
}

#endif
