/* SPDX-License-Identifier: BSD-2-Clause */
/* How a study is made. The first time through a recording: survey.c. The second time: threads.c, cohorts.c, details.c, timeline.c. */
#ifndef XPT_ANALYSIS_STUDY_PRIVATE_H
#define XPT_ANALYSIS_STUDY_PRIVATE_H

#include "analysis/reading.h"
#include "analysis/study.h"
#include "base/core/hashmap.h"
#include "profile/handle/samples.h"

/* An inference as the survey keeps it. chance: a random number that depends on the inference and the seed only. */
struct pick {
	__u64 chance, start, duration;
	__u32 tgid, tid, wait_tid;
	__u32 input;
};

/* A program as one recording has it. */
struct source {
	struct map_node node; /* by input and id */
	unsigned int input, id;
	char *name, *runtime, *process; /* owned; NULL: there was no memory */
	__u32 tgid, fingerprint;
	enum xpt_role role;
	bool region, wanted, known, others;
	struct xpt_program_count count;
	__u64 recorded, failed, unended, first_start, last_end;
	struct statistics *duration;
	struct pick *picks; /* those with chance_level() >= level */
	size_t pick_count;
	unsigned int level;
	struct pick slowest[STUDY_SLOWEST_KEPT]; /* a heap: the fastest of them first */
	size_t slowest_count;
	struct builder *builder; /* of its program; NULL: it is not studied */
};

/* Sums of a cohort. */
struct cohort_sum {
	__u64 count, failed, least, most, states, operators;
	struct study_measures sum;
	struct study_party *parties;
	size_t party_count;
};

/* Sums of one operator. */
struct operator_sum {
	struct study_operator view;
	struct statistics *duration;
};

/* An operator as a recording has it, with copies of its names: the model forgets it with its process. */
struct known_operator {
	struct map_node node; /* by input and id */
	char *label, *type, *provider;
	__s64 index;
	unsigned int program; /* id; 0: none */
};

/* Which operator of a program that is. */
struct operator_key {
	struct map_node node; /* by builder, and id with input */
	__u32 index;
};

/* Self time of an operator in a sample. */
struct vector_item {
	__u32 sample, operator; /* sample: number of the vector until all are there */
	float self;
};

/* A program while it is studied. */
struct builder {
	struct study_program *view;
	struct source *
		leader; /* of its sources: the one that has the picks of all, by duration, and the slowest, slowest first */
	unsigned int level, slow_level,
		vector_level; /* least chance_level() of drawn, slow samples, and of those with vectors */
	__u64 low, high, cut; /* durations: of the cohort typical; from which on one is slow */
	struct cohort_sum typical, slow, all;
	struct study_sample *samples; /* in the order of their ends; room for sample_room */
	size_t sample_count, sample_room;
	__u64 slow_seen, slow_kept, drawn_fast; /* for the weights */
	struct operator_sum *operators;
	size_t operator_count;
	__u32 *order; /* at the end: where an operator of that index is then */
	struct vector_item *items;
	size_t item_count;
	__u32 *vector_samples;
	size_t vector_count;
	float *vectors;
	/* Least squares of CPU time over page faults. */
	struct {
		double count, faults, cpu, faults_squared, cpu_squared, product;
	} fit;
	struct study_detail *details; /* slowest, then middle */
	size_t detail_count;
	struct study_history history;
};

/* What ended on a thread, and no call around it has returned yet. */
struct node {
	const struct known_operator *op; /* NULL: too many */
	unsigned int id;
	__u32 subtree; /* nodes inside it, itself included: those just before it */
	bool counted;  /* in an inference */
	__u64 start, end, self;
	double cpu, waited, blocked, faults; /* without operators inside; of states that are not known 0 */
	double whole_cpu, whole_waited, whole_blocked, whole_faults;
};

struct slice {
	__u64 start, woken, end;
	__u32 next_tgid, waker_tgid;
	enum xpt_off_cpu reason;
	bool interrupt;
	char next[XPT_TASK_NAME_LEN], waker[XPT_TASK_NAME_LEN];
};

/* It waited in a probe, until others were placed: what of that it ran is tracing's own. */
struct probe_wait {
	__u64 start, end;
};

struct thread {
	struct keyed keyed; /* by process and number */
	struct node *nodes;
	size_t node_count;
	struct slice *slices;
	size_t slice_count;
	struct probe_wait *waits;
	size_t wait_count;
};

struct detail_index;
struct timeline;

struct study_build {
	struct study view;
	const struct study_options *options;
	struct map sources;
	struct source **all;
	struct source *others; /* for all that are too many; NULL: none are */
	size_t source_count;
	size_t pick_total;
	struct builder *builders;
	struct study_program *programs;
	struct study_input *inputs;
	struct reading *first, *last; /* one an input each */
	struct chooser **choosers;    /* one an input; NULL: all programs */
	__s64 *shifts;
	/* The second time: */
	unsigned int input; /* the one that is read */
	struct keyed_table threads;
	size_t item_total; /* of threads */
	struct map known;
	struct map operators;
	bool regions; /* some are studied: what lies in them is kept longer */
	size_t slow_room;
	struct detail_index *details;
	struct timeline *timeline;
	int error;
};

/* A time of the input that is read, as the study has it; 0: unknown. */
static inline __u64 moment(const struct study_build *build, __u64 time)
{
	return time ? time + (__u64)build->shifts[build->input] : 0;
}

/* An inference with level n is one of 2^n. */
static inline unsigned int chance_level(__u64 chance)
{
	return chance ? (unsigned int)__builtin_ctzll(chance) : 64;
}

/* ---- survey.c ---- */

/* An event that is an inference of what is studied: reads it. False: it is none. */
bool study_inference(struct study_build *build, const struct event *event, struct inference *inference);
__u64 study_chance(const struct study_build *build, __u32 tgid, __u32 tid, __u64 start);
struct source *source_find(const struct study_build *build, const struct model_program *program); /* NULL: none */
int survey_event(void *context, const struct event *event); /* a sink; context: struct study_build */
/* After the last event: what the model knows at the end. -ENOMEM. */
int survey_end(struct study_build *build, const struct model *model);
/* Sources become programs. -ENOMEM. */
int survey_programs(struct study_build *build);
void source_free(struct source *source);

/* ---- threads.c ---- */

void threads_begin(struct study_build *build);
/* NULL: no memory. */
struct thread *thread_get(struct study_build *build, __u32 tgid, __u32 tid);
/* An operator has ended: what ended before it and lies in it is inside. */
void thread_add_operator(struct study_build *build, struct thread *thread, const struct event_call *call);
void threads_add_slice(struct study_build *build, const struct event_off_cpu *off);
void threads_add_wait(struct study_build *build, const struct event_waited *waited);
/*
 * How long the thread has waited for probes in a time, and takes what it did meanwhile out of *cpu and *waited, as far as is known: without
 * slices, all that it can have run.
 */
double thread_leave_out(const struct study_build *build, const struct thread *thread, __u64 start, __u64 end,
			double *cpu, double *waited);
/* What it has done is of no inference any more. */
void thread_clear(struct study_build *build, struct thread *thread);
void threads_input_end(struct study_build *build); /* before the next input */
void threads_free(struct study_build *build);

/* ---- cohorts.c ---- */

int cohorts_event(void *context, const struct event *event); /* a sink; context: struct study_build */
/* Counts an operator that no inference of its program had, as that is asynchronous or on another thread. */
void cohorts_uncounted(struct study_build *build, const struct node *node);
/* Which operator of the program it is, from operator; ~0: none. */
__u32 cohorts_operator(const struct study_build *build, const struct builder *builder, unsigned int id);
void cohorts_free(struct study_build *build);

/* ---- cohorts_end.c ---- */

int cohorts_end(struct study_build *build); /* sums become means. -ENOMEM */
void builder_free(struct builder *builder);

/* ---- details.c ---- */

/* Which inferences are kept in full. -ENOMEM. */
int details_choose(struct study_build *build);
int details_event(void *context, const struct event *event); /* a sink; context: struct study_build */
void details_sample(struct study_build *build, struct builder *builder, const struct study_sample *sample);
void details_end(struct study_build *build);
void details_free(struct study_build *build);

/* ---- timeline.c ---- */

int timeline_create(struct study_build *build);		      /* after survey_programs() */
int timeline_event(void *context, const struct event *event); /* a sink; context: struct study_build */
void timeline_sample(struct study_build *build, struct builder *builder, const struct study_sample *sample);
int timeline_end(struct study_build *build);
void timeline_free(struct study_build *build);

#endif
