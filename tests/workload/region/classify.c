/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A classifier that marks what it does, as those of vAccel do: pictures are prepared, a model of ONNX Runtime runs, the
 * best score is found. The model has one input of 1 x 3 x SIDE x SIDE and one output of 10 scores.
 *
 *	classify LIBRARY MODEL COUNT
 *
 * Prints {"ready"...}, waits for a line, classifies COUNT pictures, prints one line of JSON with the time of each
 * region by its own clock, and lets the regions print theirs.
 */
#include <xputrace/region.h>

#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#define SIDE 64
#define CHANNELS 3
#define PIXELS (SIDE * SIDE)
#define SCORES 10
#define API_VERSION 17
#define FLOAT 1

/* Slots of OrtApi. */
enum slot {
	CREATE_ENV = 3,
	CREATE_SESSION = 7,
	RUN = 9,
	CREATE_TENSOR_WITH_DATA = 49,
	GET_TENSOR_DATA = 51,
	CREATE_CPU_MEMORY_INFO = 69,
	RELEASE_SESSION = 95,
	RELEASE_VALUE = 96,
};

enum { PRE, WORK, POST, REGIONS };

static struct xpt_region regions[REGIONS] = {
	XPT_REGION_INIT("pre"),
	XPT_REGION_INIT("run"),
	XPT_REGION_INIT("post"),
};
static uint64_t measured[REGIONS]; /* ns */

static struct {
	void **api;
	void *memory, *session;
	uint8_t picture[PIXELS][CHANNELS];
	float input[CHANNELS][PIXELS];
	float share[SCORES];
	int best;
} state;

static uint64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void check(const void *failed, const char *what)
{
	if (!failed)
		return;
	fprintf(stderr, "classify: %s\n", what);
	exit(1);
}

static void prepare(const char *library, const char *model)
{
	void *handle = dlopen(library, RTLD_NOW), *env;
	void *const *(*base)(void);
	void *(*create_env)(int level, const char *name, void **env);
	void *(*create_memory)(int allocator, int type, void **memory);
	void *(*create_session)(void *env, const char *path, const void *options, void **session);

	check(handle ? NULL : dlerror, library);
	base = (void *const *(*)(void))dlsym(handle, "OrtGetApiBase");
	check(base ? NULL : dlerror, "OrtGetApiBase");
	state.api = ((void **(*)(uint32_t))base()[0])(API_VERSION);
	check(state.api ? NULL : base, "version of the API");
	create_env = (void *(*)(int, const char *, void **))state.api[CREATE_ENV];
	create_memory = (void *(*)(int, int, void **))state.api[CREATE_CPU_MEMORY_INFO];
	create_session = (void *(*)(void *, const char *, const void *, void **))state.api[CREATE_SESSION];
	check(create_env(3, "classify", &env), "environment");
	check(create_memory(0, 0, &state.memory), "memory");
	check(create_session(env, model, NULL, &state.session), model);
}

/* From pixels to planes, each with mean 0 and the same contrast. */
static void normalise(void)
{
	unsigned int channel, i;

	for (channel = 0; channel < CHANNELS; channel++) {
		double sum = 0, squares = 0, mean, deviation;

		for (i = 0; i < PIXELS; i++) {
			sum += state.picture[i][channel];
			squares += state.picture[i][channel] * state.picture[i][channel];
		}
		mean = sum / PIXELS;
		deviation = sqrt(squares / PIXELS - mean * mean) + 1e-6;
		for (i = 0; i < PIXELS; i++)
			state.input[channel][i] = (float)((state.picture[i][channel] - mean) / deviation);
	}
}

static void *infer(void)
{
	static const int64_t shape[] = { 1, CHANNELS, SIDE, SIDE };
	static const char *const inputs[] = { "input" }, *const outputs[] = { "output" };
	void *(*create_tensor)(void *memory, void *data, size_t size, const int64_t *shape, size_t dimensions, int type,
			       void **value) = state.api[CREATE_TENSOR_WITH_DATA];
	void *(*run)(void *session, void *options, const char *const *names, void *const *values, size_t count,
		     const char *const *output_names, size_t output_count, void **output) = state.api[RUN];
	void (*release)(void *value) = state.api[RELEASE_VALUE];
	void *input, *output = NULL;

	check(create_tensor(state.memory, state.input, sizeof(state.input), shape, 4, FLOAT, &input), "tensor");
	check(run(state.session, NULL, inputs, &input, 1, outputs, 1, &output), "run");
	release(input);
	return output;
}

/* Shares of 1, and the class that has most. */
static void judge(void *output)
{
	void *(*get_data)(void *value, void **data) = state.api[GET_TENSOR_DATA];
	void (*release)(void *value) = state.api[RELEASE_VALUE];
	float *scores, sum = 0;
	int i;

	check(get_data(output, (void **)&scores), "output");
	state.best = 0;
	for (i = 0; i < SCORES; i++) {
		if (scores[i] > scores[state.best])
			state.best = i;
		sum += expf(scores[i]);
	}
	for (i = 0; i < SCORES; i++)
		state.share[i] = expf(scores[i]) / sum;
	release(output);
}

static void classify(unsigned int number)
{
	uint64_t times[REGIONS + 1];
	void *output;
	size_t i;

	for (i = 0; i < sizeof(state.picture); i++)
		((uint8_t *)state.picture)[i] = (uint8_t)(i * (number + 3) >> 5);
	times[PRE] = clock_now();
	xpt_region_start(&regions[PRE]);
	normalise();
	xpt_region_stop(&regions[PRE]);
	times[WORK] = clock_now();
	xpt_region_start(&regions[WORK]);
	output = infer();
	xpt_region_stop(&regions[WORK]);
	times[POST] = clock_now();
	xpt_region_start(&regions[POST]);
	judge(output);
	xpt_region_stop(&regions[POST]);
	times[REGIONS] = clock_now();
	for (i = 0; i < REGIONS; i++)
		measured[i] += times[i + 1] - times[i];
}

int main(int argc, char **argv)
{
	unsigned int count = argc == 4 ? (unsigned int)strtoul(argv[3], NULL, 10) : 0, i;
	void (*release)(void *session);
	char line[8];

	if (!count) {
		fprintf(stderr, "usage: classify LIBRARY MODEL COUNT\n");
		return 2;
	}
	prepare(argv[1], argv[2]);
	printf("{\"ready\":true,\"pid\":%d}\n", getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (i = 0; i < count; i++)
		classify(i);
	printf("{\"runtime\":\"region\",\"pid\":%d,\"best\":%d,\"share\":%.3f", getpid(), state.best,
	       (double)state.share[state.best]);
	for (i = 0; i < REGIONS; i++)
		printf(",\"%s\":%" PRIu64, regions[i].name, measured[i]);
	printf("}\n");
	xpt_regions_print_all(regions, REGIONS);
	xpt_regions_destroy(regions, REGIONS);
	release = (void (*)(void *))state.api[RELEASE_SESSION];
	release(state.session);
	return 0;
}
