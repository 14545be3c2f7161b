/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ONNX Runtime through its API table, by slot number, with the library opened by path. Threads run the sessions in
 * turn, and every run is timed around the call itself. Prints one line of JSON; least_ns: of the shortest run.
 *
 * onnx LIBRARY MODEL [--other MODEL] [--batch N] [--wait-for-go] [--sessions N] [--threads N] [--runs N] [--recreate]
 *	[--inter N] [--load-last] [--async N [--generated]]
 * --other: every second session is of this one, which has the same inputs.
 * --load-last: with --wait-for-go, the sessions are made after that. --inter: operators that do not depend on each other run in parallel, on so many threads of ONNX Runtime's own.
 * --async: runs are asynchronous, so many at once, all with the same user data; every eighth fails. The line then has what each took: an
 * array "runs" of when its call began and its callback did, by the program's clock (ns). --generated: the callback is code that was made at run time.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ledger.h"

#define API_VERSION 17
#define INPUTS 64
#define BATCH_MAX 1024
#define SESSIONS_MAX 8
#define THREADS_MAX 32
#define ASYNC_MAX 64
#define FLOAT 1
#define PARALLEL 1

/* Slots of OrtApi. */
enum {
	GET_ERROR_MESSAGE = 2,
	CREATE_ENV = 3,
	CREATE_SESSION = 7,
	RUN = 9,
	CREATE_SESSION_OPTIONS = 10,
	SET_EXECUTION_MODE = 13,
	SET_INTRA_OP_THREADS = 24,
	SET_INTER_OP_THREADS = 25,
	CREATE_TENSOR_WITH_DATA = 49,
	CREATE_CPU_MEMORY_INFO = 69,
	RELEASE_ENV = 92,
	RELEASE_SESSION = 95,
	RELEASE_VALUE = 96,
	RUN_ASYNC = 260,
};

struct api_base {
	void **(*get_api)(uint32_t version);
	const char *(*get_version)(void);
};

static struct {
	void **api;
	void *env, *options, *memory;
	const char *model, *other;
	unsigned int batch, sessions, threads, inter, async;
	unsigned long runs;
	bool recreate, load_last, generated;
	void *session[SESSIONS_MAX];
} state = { .batch = 1, .sessions = 1, .threads = 1, .runs = 200 };

static uint64_t least = UINT64_MAX; /* ns */

static void check(void *status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "onnx: %s: %s\n", what, ((const char *(*)(void *))state.api[GET_ERROR_MESSAGE])(status));
	exit(1);
}

static const char *session_model(unsigned long index)
{
	return state.other && index % state.sessions % 2 ? state.other : state.model;
}

static void sessions_create(void)
{
	void *(*create)(void *, const char *, void *, void **) = state.api[CREATE_SESSION];

	for (unsigned int i = 0; i < state.sessions; i++)
		check(create(state.env, session_model(i), state.options, &state.session[i]), "session");
}

static void sessions_release(void)
{
	void (*release)(void *) = state.api[RELEASE_SESSION];

	for (unsigned int i = 0; i < state.sessions; i++)
		release(state.session[i]);
}

static void api_open(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	const struct api_base *(*get_base)(void);
	void *(*create_env)(int, const char *, void **);
	void *(*create_options)(void **);
	void *(*set_mode)(void *, int);
	void *(*set_threads)(void *, int);
	void *(*set_inter_threads)(void *, int);
	void *(*create_memory)(int, int, void **);

	if (!library) {
		fprintf(stderr, "onnx: %s\n", dlerror());
		exit(1);
	}
	get_base = (const struct api_base *(*)(void))dlsym(library, "OrtGetApiBase");
	state.api = get_base ? get_base()->get_api(API_VERSION) : NULL;
	if (!state.api) {
		fprintf(stderr, "onnx: no API of version %d\n", API_VERSION);
		exit(1);
	}
	create_env = state.api[CREATE_ENV];
	create_options = state.api[CREATE_SESSION_OPTIONS];
	set_mode = state.api[SET_EXECUTION_MODE];
	set_threads = state.api[SET_INTRA_OP_THREADS];
	set_inter_threads = state.api[SET_INTER_OP_THREADS];
	create_memory = state.api[CREATE_CPU_MEMORY_INFO];
	check(create_env(3, "workload", &state.env), "environment");
	check(create_options(&state.options), "options");
	check(set_threads(state.options, state.async ? 3 : 1), "threads");
	if (state.inter) {
		check(set_mode(state.options, PARALLEL), "parallel mode");
		check(set_inter_threads(state.options, (int)state.inter), "threads between operators");
	}
	check(create_memory(0, 0, &state.memory), "memory");
}

/* ---- asynchronous runs ---- */

static struct async_run {
	void *output; /* where it goes: a run is known by that */
	uint64_t start, ended;
	bool failed;
} * async_runs;
static sem_t async_room;

static void async_ended(void *user, void **outputs, size_t count, void *status)
{
	uint64_t now = clock_now();
	struct async_run *run = (struct async_run *)outputs;

	(void)user;
	(void)count;
	run->failed = status;
	run->ended = now;
	sem_post(&async_room);
}

/* Code in memory that no file is mapped to, which calls it. */
static void *async_generated(void)
{
#if defined(__x86_64__)
	unsigned char code[] = { 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0 }; /* mov rax, ...; jmp rax */
	const size_t at = 2;
#else
	unsigned char code[] = { 0x50, 0, 0, 0x58, 0, 2, 0x1f, 0xd6, 0, 0, 0, 0, 0, 0, 0, 0 }; /* ldr x16, ...; br x16 */
	const size_t at = 8;
#endif
	void (*function)(void *, void **, size_t, void *) = async_ended;
	void *memory = mmap(NULL, sizeof(code), PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		exit(1);
	memcpy(code + at, &function, sizeof(function));
	memcpy(memory, code, sizeof(code));
	__builtin___clear_cache(memory, (char *)memory + sizeof(code));
	return memory;
}

static void runs_async(void *input)
{
	void *(*run_async)(void *, void *, const char *const *, void *const *, size_t, const char *const *, size_t,
			   void **, void *, void *) = state.api[RUN_ASYNC];
	static const char *const inputs[] = { "input" }, *const wrong[] = { "nothing" }, *const outputs[] = { "output" };
	void *callback = state.generated ? async_generated() : (void *)async_ended;

	async_runs = calloc(state.runs, sizeof(*async_runs));
	if (!async_runs || sem_init(&async_room, 0, state.async))
		exit(1);
	for (unsigned long i = 0; i < state.runs; i++) {
		sem_wait(&async_room);
		async_runs[i].start = clock_now();
		check(run_async(state.session[i % state.sessions], NULL, i % 8 == 7 ? wrong : inputs,
				(void *const *)&input, 1, outputs, 1, &async_runs[i].output, callback, NULL),
		      "asynchronous run");
	}
	for (unsigned int i = 0; i < state.async; i++)
		sem_wait(&async_room);
}

static void async_print(void)
{
	printf("\"runs\":[");
	for (unsigned long i = 0; i < state.runs; i++)
		printf("%s{\"start\":%" PRIu64 ",\"ended\":%" PRIu64 ",\"failed\":%s}", i ? "," : "",
		       async_runs[i].start, async_runs[i].ended, async_runs[i].failed ? "true" : "false");
	printf("],");
}

static void note_time(uint64_t took)
{
	uint64_t before = __atomic_load_n(&least, __ATOMIC_RELAXED);

	while (took < before &&
	       !__atomic_compare_exchange_n(&least, &before, took, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void *run_sessions(void *argument)
{
	void *(*run)(void *, void *, const char *const *, void *const *, size_t, const char *const *, size_t,
		     void **) = state.api[RUN];
	void *(*create_tensor)(void *, void *, size_t, const int64_t *, size_t, int,
			       void **) = state.api[CREATE_TENSOR_WITH_DATA];
	void (*release_value)(void *) = state.api[RELEASE_VALUE];
	static const char *const inputs[] = { "input" }, *const outputs[] = { "output" };
	const int64_t shape[] = { state.batch, INPUTS };
	struct ledger *ledger = argument;
	size_t count = state.batch * INPUTS;
	float *data = calloc(count, sizeof(*data));
	void *input;

	if (!data)
		exit(1);
	for (size_t i = 0; i < count; i++)
		data[i] = i % INPUTS / 64.0f;
	check(create_tensor(state.memory, data, count * sizeof(*data), shape, 2, FLOAT, &input), "tensor");
	if (state.async)
		runs_async(input);
	for (unsigned long i = 0; i < state.runs && !state.async; i++) {
		void *session = state.session[i % state.sessions], *output = NULL;
		uint64_t start = clock_now(), took;

		check(run(session, NULL, inputs, (void *const *)&input, 1, outputs, 1, &output), "run");
		took = clock_now() - start;
		note_time(took);
		ledger_add(ledger, &(struct call){ .function = "Run",
						   .program = session_model(i),
						   .handle = SOME(session),
						   .status = SOME(0),
						   .nanoseconds = took });
		release_value(output);
	}
	release_value(input);
	free(data);
	return NULL;
}

static void round_run(struct ledger *ledger)
{
	struct ledger *ledgers[THREADS_MAX];
	pthread_t threads[THREADS_MAX];

	for (unsigned int i = 0; i < state.threads; i++) {
		ledgers[i] = ledger_new();
		if (pthread_create(&threads[i], NULL, run_sessions, ledgers[i]) != 0)
			exit(1);
	}
	for (unsigned int i = 0; i < state.threads; i++) {
		pthread_join(threads[i], NULL);
		ledger_merge(ledger, ledgers[i]);
		ledger_free(ledgers[i]);
	}
}

static unsigned long number(const char *text, unsigned long limit)
{
	unsigned long value = text ? strtoul(text, NULL, 10) : 0;

	if (!value || value > limit) {
		fprintf(stderr, "onnx: bad number\n");
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	struct ledger *ledger = ledger_new();
	bool wait_for_go = false;
	char line[8];

	if (argc < 3) {
		fprintf(stderr, "usage: onnx LIBRARY MODEL [OPTION]...\n");
		return 2;
	}
	state.model = argv[2];
	for (int i = 3; i < argc; i++) {
		if (strcmp(argv[i], "--wait-for-go") == 0)
			wait_for_go = true;
		else if (strcmp(argv[i], "--recreate") == 0)
			state.recreate = true;
		else if (strcmp(argv[i], "--other") == 0)
			state.other = argv[++i];
		else if (strcmp(argv[i], "--load-last") == 0)
			state.load_last = true;
		else if (strcmp(argv[i], "--batch") == 0)
			state.batch = number(argv[++i], BATCH_MAX);
		else if (strcmp(argv[i], "--sessions") == 0)
			state.sessions = number(argv[++i], SESSIONS_MAX);
		else if (strcmp(argv[i], "--threads") == 0)
			state.threads = number(argv[++i], THREADS_MAX);
		else if (strcmp(argv[i], "--inter") == 0)
			state.inter = number(argv[++i], THREADS_MAX);
		else if (strcmp(argv[i], "--async") == 0)
			state.async = number(argv[++i], ASYNC_MAX);
		else if (strcmp(argv[i], "--generated") == 0)
			state.generated = true;
		else if (strcmp(argv[i], "--runs") == 0)
			state.runs = number(argv[++i], 100000000);
	}
	api_open(argv[1]);
	if (!state.load_last)
		sessions_create();
	if (wait_for_go) {
		printf("{\"ready\":true,\"pid\":%d}\n", getpid());
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 1;
	}
	if (state.load_last)
		sessions_create();
	round_run(ledger);
	sessions_release();
	if (state.recreate) {
		sessions_create();
		round_run(ledger);
		sessions_release();
	}
	printf("{\"runtime\":\"onnxruntime\",\"pid\":%d,\"least_ns\":%" PRIu64 ",", getpid(), least);
	if (async_runs)
		async_print();
	printf("\"libraries\":[{");
	ledger_print(ledger, stdout);
	printf("}]}\n");
	ledger_free(ledger);
	return 0;
}
