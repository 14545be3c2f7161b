/* SPDX-License-Identifier: BSD-2-Clause */
/* Studies that are made up, for tests of comparisons. */
#ifndef TEST_ANALYSIS_DIFF_H
#define TEST_ANALYSIS_DIFF_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diff.h"

#define MADE_OPERATORS 2

/* What is made lives until the test ends. */
struct made_memory {
	struct made_memory *next;
	char bytes[] __attribute__((aligned(16)));
};
static struct made_memory *made_memory;

static inline void *made_calloc(size_t count, size_t size)
{
	struct made_memory *memory = calloc(1, sizeof(*memory) + count * size);

	memory->next = made_memory;
	made_memory = memory;
	return memory->bytes;
}

static __u64 made_state = 88172645463325252ULL;

static inline double made_uniform(void)
{
	made_state ^= made_state << 13;
	made_state ^= made_state >> 7;
	made_state ^= made_state << 17;
	return ((made_state >> 11) + 0.5) / 9007199254740992.0;
}

static inline double made_normal(void)
{
	return sqrt(-2 * log(made_uniform())) * cos(2 * M_PI * made_uniform());
}

/* What inferences are like: of two operators, a wait now and then, and something outside. */
struct made {
	unsigned int recordings;
	size_t inferences;		  /* of each */
	double operators[MADE_OPERATORS]; /* ns */
	double noise;			  /* standard deviation of each operator, as a share */
	double dependence;		  /* of one inference on the one before */
	double runs;			  /* standard deviation between recordings, as a share */
	double waited;			  /* ns, of 1 inference in 20 */
	double pause;			  /* ns between inferences */
	double device, queue;		  /* ns, of each inference; 0: no jobs */
	double failed;			  /* share */
	bool no_states, no_operators;
};

static inline void made_sample(const struct made *made, struct study_sample *sample, float *self, double level,
			       double *own)
{
	*own = made->dependence * *own + sqrt(1 - made->dependence * made->dependence) * made_normal();
	for (int o = 0; o < MADE_OPERATORS; o++)
		self[o] = made->operators[o] * (1 + level + made->noise * *own);
	sample->component[COMPONENT_CPU] = self[0] + self[1] + 10000;
	if (made_uniform() < 0.05) {
		sample->component[COMPONENT_WAITED] = made->waited * (0.5 + made_uniform());
		self[0] += sample->component[COMPONENT_WAITED];
	}
	sample->duration = sample->component[COMPONENT_CPU] + sample->component[COMPONENT_WAITED];
	sample->device = made->device * (1 + 0.02 * made_normal());
	sample->queue = made->queue * made_uniform();
	sample->weight = 1;
	sample->flags = STUDY_DRAWN | STUDY_STATES | (made_uniform() < made->failed ? STUDY_FAILED : 0);
}

/* Means of the cohorts, as far as comparisons read them. */
static inline void made_cohorts(struct study_program *program, struct study_operator *operators)
{
	program->typical.mean.component[COMPONENT_CPU] = 1;
	program->slow.mean.component[COMPONENT_WAITED] = 1000;
	operators[0].slow.waited = 1000;
	program->all.operators = program->sample_count;
	for (size_t i = 0; i < program->sample_count; i++)
		for (int o = 0; o < MADE_OPERATORS; o++)
			operators[o].self += program->vectors[i * MADE_OPERATORS + o];
}

static inline struct study_program made_program(const char *name, const struct made *made)
{
	const size_t count = made->recordings * made->inferences;
	struct study_sample *samples = made_calloc(count, sizeof(*samples));
	struct study_operator *operators = made_calloc(MADE_OPERATORS, sizeof(*operators));
	float *vectors = made_calloc(count * MADE_OPERATORS, sizeof(*vectors));
	__u32 *indices = made_calloc(count, sizeof(*indices));
	__u64 now = 1000000;
	double own = made_normal(), level = 0;

	for (size_t i = 0; i < count; i++) {
		if (i % made->inferences == 0) {
			level = made->runs * made_normal();
			now += 1000000000;
		}
		made_sample(made, &samples[i], &vectors[i * MADE_OPERATORS], level, &own);
		samples[i].input = i / made->inferences;
		samples[i].start = now;
		now += samples[i].duration + made->pause;
		indices[i] = i;
	}
	operators[0] = (struct study_operator){ .label = "big", .type = "Gemm" };
	operators[1] = (struct study_operator){ .label = "small", .type = "Relu" };
	struct study_program program = { .name = name,
					 .runtime = "toy",
					 .process = "main",
					 .exact = true,
					 .counted = count,
					 .recorded = count,
					 .has_states = !made->no_states,
					 .has_operators = !made->no_operators,
					 .has_jobs = made->device > 0,
					 .samples = samples,
					 .sample_count = count,
					 .operators = operators,
					 .operator_count = MADE_OPERATORS,
					 .vectors = vectors,
					 .vector_samples = indices,
					 .vector_count = made->no_operators ? 0 : count };
	made_cohorts(&program, operators);
	return program;
}

static inline struct study made_study(const struct study_program *programs, size_t count, unsigned int recordings)
{
	struct study_input *inputs = made_calloc(recordings, sizeof(*inputs));

	for (unsigned int i = 0; i < recordings; i++)
		inputs[i] = (struct study_input){
			.host = "host", .kernel = "6.1", .version = "0.1.0", .complete = true
		};
	return (struct study){ .inputs = inputs,
			       .input_count = recordings,
			       .complete = true,
			       .programs = programs,
			       .program_count = count };
}

/* Compares one program before with itself after a change. The studies live until the test ends. */
static inline struct xpt_diff *made_diff(const struct made *before, const struct made *after,
					 const char *const *conditions, size_t condition_count)
{
	const struct diff_options options = { DIFF_LEVEL, DIFF_RUN_NOISE, 1, conditions, condition_count };
	struct study_program *programs = made_calloc(2, sizeof(*programs));
	struct study *studies = made_calloc(2, sizeof(*studies));
	struct xpt_diff *diff = NULL;

	programs[0] = made_program("model", before);
	programs[1] = made_program("model", after);
	studies[0] = made_study(&programs[0], 1, before->recordings);
	studies[1] = made_study(&programs[1], 1, after->recordings);
	return diff_create(&options, &studies[0], &studies[1], &diff) ? NULL : diff;
}

/* Of the first program; NULL: there is none. */
static inline const struct xpt_diff_row *made_row(const struct xpt_diff *diff, const char *name)
{
	for (size_t i = 0; i < diff->programs[0].row_count; i++)
		if (!strcmp(diff->programs[0].rows[i].name, name))
			return &diff->programs[0].rows[i];
	return NULL;
}

#endif
