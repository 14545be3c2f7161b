/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs the scenario of one runtime against a stand-in library and prints, as one line of JSON a process, what it did.
 * See usage() for the options. With --wait-for-go a line {"ready":true,"pid":N} comes first, and the calls begin when a
 * line arrives on standard input.
 */
#include "workload.h"
#include "accelerator.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef WORKLOAD_LINKED
static const struct scenario *const scenarios[] = { &WORKLOAD_LINKED };
#else
static const struct scenario *const scenarios[] = {
	&scenario_nrt,	  &scenario_qaic, &scenario_vaccel, &scenario_hip,     &scenario_cuda,
	&scenario_cudart, &scenario_pjrt, &scenario_llama,  &scenario_hostile,
};
#endif
#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))
#define THREADS_MAX 64

static volatile sig_atomic_t stopped;

/* Of the runtime's library, with --device: what it has submitted to the accelerator. */
static struct {
	typeof(accelerator_last) *last;
	typeof(accelerator_jobs) *jobs;
} accelerator;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

static void __attribute__((noreturn)) fail(const char *what)
{
	fprintf(stderr, "workload: %s: %s\n", what, strerror(errno));
	exit(1);
}

void *workload_symbol(void *library, const char *name, bool *complete)
{
	void *symbol = dlsym(library, name);

	if (!symbol) {
		fprintf(stderr, "workload: %s\n", dlerror());
		*complete = false;
	}
	return symbol;
}

static void copy_value(struct value *into, struct value from)
{
	if (from.known)
		*into = from;
}

/* A call that was followed by a new last submission of this thread has made it. */
static void note_submission(struct ledger *ledger, const struct call *call)
{
	static __thread uint64_t noted;

	if (!accelerator.last || accelerator.last() == noted)
		return;
	noted = accelerator.last();
	ledger_submission(ledger, call, noted);
}

void workload_note(struct ledger *ledger, struct call *call, const struct call *fields)
{
	if (fields->function) /* a twin, or an address handed out: known by the name of the function it stands for */
		call->function = fields->function;
	call->program = fields->program;
	copy_value(&call->handle, fields->handle);
	copy_value(&call->size, fields->size);
	copy_value(&call->core, fields->core);
	copy_value(&call->stream, fields->stream);
	copy_value(&call->status, fields->status);
	ledger_add(ledger, call);
	note_submission(ledger, call);
}

void workload_inference(struct ledger *ledger, const char *function, const char *program, uint64_t handle,
			uint64_t start)
{
	ledger_add(ledger, &(struct call){ .function = function,
					   .program = program,
					   .handle = SOME(handle),
					   .inference = true,
					   .nanoseconds = clock_now() - start });
}

const char *program_name(const char *prefix, unsigned int index, unsigned int round)
{
	static char names[32][ROUNDS_MAX][PROGRAMS_MAX][32];
	static const char *prefixes[32];
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	size_t i = 0;

	pthread_mutex_lock(&lock);
	while (i < 31 && prefixes[i] && strcmp(prefixes[i], prefix) != 0)
		i++;
	prefixes[i] = prefix;
	if (!names[i][round][index][0])
		snprintf(names[i][round][index], sizeof(names[i][round][index]), "%s-%u.%u", prefix, round, index);
	pthread_mutex_unlock(&lock);
	return names[i][round][index];
}

static void wait_for_line(void)
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) == 1)
		if (byte == '\n')
			return;
}

static void pace(struct worker *worker)
{
	const struct options *options = worker->run->options;
	struct timespec until;

	if (options->rate <= 0)
		return;
	if (!worker->next)
		worker->next = clock_now();
	worker->next += 1e9 / options->rate;
	until.tv_sec = worker->next / 1000000000;
	until.tv_nsec = worker->next % 1000000000;
	while (!stopped && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static void log_span(struct worker *worker, uint64_t start)
{
	if (!worker->run->options->log_times)
		return;
	if (worker->span_count == worker->span_limit) {
		worker->span_limit = worker->span_limit ? worker->span_limit * 2 : 4096;
		worker->spans = realloc(worker->spans, worker->span_limit * sizeof(*worker->spans));
		if (!worker->spans)
			fail("log");
	}
	worker->spans[worker->span_count++] = (struct span){ start, clock_now() };
}

const struct scenario *scenario_find(const char *runtime)
{
	for (size_t i = 0; i < SCENARIOS; i++)
		if (strcmp(scenarios[i]->runtime, runtime) == 0)
			return scenarios[i];
	fprintf(stderr, "workload: no runtime \"%s\"\n", runtime);
	exit(2);
}

static void *worker_main(void *argument)
{
	struct worker *worker = argument;
	const struct options *options = worker->run->options;
	const struct scenario *scenario = scenario_find(options->runtime);

	worker->tid = syscall(SYS_gettid);
	for (unsigned long i = 0; !stopped && (!options->calls || i < options->calls); i++) {
		uint64_t start;

		pace(worker);
		start = clock_now();
		if (options->churn)
			churn_one(worker, i * options->threads + worker->index);
		else
			scenario->execute(worker, i);
		log_span(worker, start);
	}
	return NULL;
}

/* The workers' calls of one round, merged into the ledger of the run. */
static void run_workers(struct run *run, struct worker *workers)
{
	const struct options *options = run->options;
	pthread_t threads[THREADS_MAX];

	for (unsigned int i = 0; i < options->threads; i++) {
		struct worker *worker = &workers[i];

		worker->run = run;
		worker->index = i;
		worker->ledger = ledger_new();
		if (pthread_create(&threads[i], NULL, worker_main, worker) != 0)
			fail("thread");
	}
	for (unsigned int i = 0; i < options->threads; i++) {
		pthread_join(threads[i], NULL);
		ledger_merge(run->ledger, workers[i].ledger);
		ledger_free(workers[i].ledger);
	}
}

struct library {
	struct run *run;
	uint64_t mapped; /* when dlopen had returned */
	struct worker workers[THREADS_MAX];
};

/* The stand-ins lie in the folder lib beside the program, unless given otherwise. */
static void *library_open(const char *path, const char *name)
{
	char beside[PATH_MAX], self[PATH_MAX];
	ssize_t length;
	void *handle;

	if (!path) {
		length = readlink("/proc/self/exe", self, sizeof(self) - 1);
		if (length < 0)
			fail("/proc/self/exe");
		self[length] = '\0';
		if (snprintf(beside, sizeof(beside), "%s/lib/%s", dirname(self), name) >= (int)sizeof(beside))
			fail(name);
		path = beside;
	}
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		fprintf(stderr, "workload: %s\n", dlerror());
		exit(1);
	}
	return handle;
}

static void accelerator_bind(void *library)
{
	bool complete = true;

#ifdef WORKLOAD_LINKED
	(void)library;
	accelerator.last = accelerator_last;
	accelerator.jobs = accelerator_jobs;
#else
	accelerator.last = workload_symbol(library, "accelerator_last", &complete);
	accelerator.jobs = workload_symbol(library, "accelerator_jobs", &complete);
#endif
	if (!complete)
		exit(1);
}

static void libraries_bind(const struct options *options, struct library *libraries)
{
	const struct scenario *scenario = scenario_find(options->runtime);

	for (size_t i = 0; i < options->library_count; i++) {
		void *handle = NULL;

#ifndef WORKLOAD_LINKED
		handle = library_open(options->libraries[i], scenario->library);
#else
		(void)library_open;
#endif
		libraries[i].mapped = clock_now();
		if (options->device)
			accelerator_bind(handle);
		if (!scenario->bind(libraries[i].run, handle))
			exit(1);
	}
}

static void libraries_load(const struct options *options, struct library *libraries)
{
	for (size_t i = 0; i < options->library_count; i++)
		scenario_find(options->runtime)->load(libraries[i].run);
}

static void libraries_run(const struct options *options, struct library *libraries)
{
	const struct scenario *scenario = scenario_find(options->runtime);

	for (size_t i = 0; i < options->library_count; i++) {
		struct run *run = libraries[i].run;

		run_workers(run, libraries[i].workers);
		scenario->unload(run);
		if (!options->reload)
			continue;
		run->round = 1;
		scenario->load(run);
		run_workers(run, libraries[i].workers);
		scenario->unload(run);
	}
}

/* What happened before the go is not part of the result. */
static void ledgers_restart(const struct options *options, struct library *libraries)
{
	for (size_t i = 0; i < options->library_count; i++) {
		ledger_free(libraries[i].run->ledger);
		libraries[i].run->ledger = ledger_new();
	}
}

static void print_times(const struct options *options, const struct library *libraries, bool ends, FILE *out)
{
	const char *separator = "";

	fprintf(out, ",\"%s\":[", ends ? "ends" : "times");
	for (size_t i = 0; i < options->library_count; i++) {
		for (unsigned int t = 0; t < options->threads; t++) {
			const struct worker *worker = &libraries[i].workers[t];

			for (size_t k = 0; k < worker->span_count; k++) {
				fprintf(out, "%s%" PRIu64, separator,
					ends ? worker->spans[k].end : worker->spans[k].start);
				separator = ",";
			}
		}
	}
	fputs("]", out);
}

/* One write of the whole line while holding a lock, since children print to the same pipe. */
static void write_line(const char *text, size_t length)
{
	int lock = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (lock < 0 || flock(lock, LOCK_EX) != 0)
		fail("lock");
	while (length) {
		ssize_t written = write(STDOUT_FILENO, text, length);

		if (written < 0)
			fail("standard output");
		text += written;
		length -= written;
	}
	close(lock);
}

static void print_executions(const struct options *options, const struct library *libraries, FILE *out)
{
	const struct accelerator_job *jobs;
	size_t count = accelerator.jobs(&jobs);

	fputs(",\"device\":", out);
	json_string(out, options->device);
	fputs(",", out);
	ledger_print_executions(libraries[0].run->ledger, jobs, count, out);
}

static void print_result(const struct options *options, const struct library *libraries)
{
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		fail("result");
	fprintf(out, "{\"runtime\":\"%s\",\"pid\":%d,\"parent\":%d,\"threads\":[", options->runtime, getpid(),
		getppid());
	for (unsigned int t = 0; t < options->threads; t++)
		fprintf(out, "%s%d", t ? "," : "", libraries[0].workers[t].tid);
	fputs("],\"libraries\":[", out);
	for (size_t i = 0; i < options->library_count; i++) {
		fprintf(out, "%s{\"mapped\":%" PRIu64 ",", i ? "," : "", libraries[i].mapped);
		ledger_print(libraries[i].run->ledger, out);
		fputs("}", out);
	}
	fputs("]", out);
	if (options->log_times) {
		print_times(options, libraries, false, out);
		print_times(options, libraries, true, out);
	}
	if (options->churn)
		churn_print(libraries[0].run, out);
	if (options->device)
		print_executions(options, libraries, out);
	fputs("}\n", out);
	if (fclose(out) != 0)
		fail("result");
	write_line(text, length);
	free(text);
}

static const struct option long_options[] = {
	{ "library", required_argument, NULL, 'L' },
	{ "threads", required_argument, NULL, 't' },
	{ "calls", required_argument, NULL, 'n' },
	{ "programs", required_argument, NULL, 'p' },
	{ "duration-us", required_argument, NULL, 'D' },
	{ "fail-every", required_argument, NULL, 'f' },
	{ "slow", required_argument, NULL, 'o' },
	{ "rate", required_argument, NULL, 'r' },
	{ "wait-for-go", no_argument, NULL, 'w' },
	{ "dlopen", no_argument, NULL, 'd' },
	{ "load-first", no_argument, NULL, 'l' },
	{ "reload", no_argument, NULL, 'R' },
	{ "resolve", no_argument, NULL, 'a' },
	{ "callbacks", no_argument, NULL, 'b' },
	{ "fork", required_argument, NULL, 'F' },
	{ "exec", no_argument, NULL, 'x' },
	{ "crash", no_argument, NULL, 'c' },
	{ "linger", no_argument, NULL, 'g' },
	{ "churn", required_argument, NULL, 'C' },
	{ "for", required_argument, NULL, 'S' },
	{ "names", required_argument, NULL, 'A' },
	{ "log-times", no_argument, NULL, 'T' },
	{ "name", required_argument, NULL, 'N' },
	{ "device", required_argument, NULL, 'V' },
	{ "jobs", required_argument, NULL, 'J' },
	{ "engines", required_argument, NULL, 'E' },
	{ "fail-jobs", required_argument, NULL, 'j' },
	{ "hang-jobs", required_argument, NULL, 'H' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void __attribute__((noreturn)) usage(int status)
{
	FILE *out = status ? stderr : stdout;

	fputs("workload RUNTIME [OPTION]...\nruntimes:", out);
	for (size_t i = 0; i < SCENARIOS; i++)
		fprintf(out, " %s", scenarios[i]->runtime);
	fputs("\n"
	      "  --library FILE    the runtime's library; several: the scenario runs with each in turn\n"
	      "  --threads N       threads that call (1)\n"
	      "  --calls N         executions by each thread (100); 0: until SIGTERM\n"
	      "  --programs N      programs loaded, run in turn (2)\n"
	      "  --duration-us N   time of one job on the device (20)\n"
	      "  --fail-every N    every so many executions fails (0: none)\n"
	      "  --slow N          job N on the device, from 1, takes 100 ms longer (0: none)\n"
	      "  --rate HZ         executions per second by each thread (no pause)\n"
	      "  --wait-for-go     say when ready, begin when a line comes on standard input\n"
	      "  --load-first      load the programs before that\n"
	      "  --dlopen          open the library only after that, and call at once\n"
	      "  --reload          afterwards release everything, load it under other names and run again\n"
	      "  --resolve         cuda: launch through the address that the runtime hands out, every second time\n"
	      "  --callbacks       hip: executions end in a callback instead of a wait\n"
	      "  --fork N          children that do the same; each prints its own line\n"
	      "  --exec            begin by executing itself again\n"
	      "  --crash           end with a segmentation fault, after the result\n"
	      "  --linger          end only when another line comes on standard input, after the result\n"
	      "  --log-times       print when every execution began and ended\n"
	      "  --churn N         nrt, qaic: instead of the programs, load, run 1 to 5 times and unload one after the\n"
	      "                    other, N a second; print how often each was run\n"
	      "  --for SECONDS     for so long (1)\n"
	      "  --names FILE      they are called as in FILE, in turn; each name ends with NUL (churn-000000...)\n"
	      "  --name NAME       name of the main thread\n"
	      "  --device PATH     nrt, qaic, cuda: executions are jobs of this accelerator (tests/vm/driver); print each\n"
	      "  --device emulated of one that exists only in its events (emulated.h has its options)\n"
	      "  --jobs N          jobs of one execution (1); every second one is shorter, a quarter\n"
	      "  --engines N       engines that they go round (1)\n"
	      "  --fail-jobs N     every so many jobs fails (0: none)\n"
	      "  --hang-jobs N     every so many jobs hangs, until the driver resets the engine (0: none)\n",
	      out);
	exit(status);
}

static unsigned long number(const char *text, unsigned long limit)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end || value > limit) {
		fprintf(stderr, "workload: bad number \"%s\"\n", text);
		exit(2);
	}
	return value;
}

/* Those whose own stand-in executes: others hand on to another library. */
static bool uses_device(const char *runtime)
{
	return strcmp(runtime, "nrt") == 0 || strcmp(runtime, "qaic") == 0 || strcmp(runtime, "cuda") == 0;
}

static void options_read(struct options *options, int argc, char **argv)
{
	int letter;

	while ((letter = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		switch (letter) {
		case 'L':
			if (options->library_count == 8)
				usage(2);
			options->libraries[options->library_count++] = optarg;
			break;
		case 't':
			options->threads = number(optarg, THREADS_MAX);
			break;
		case 'n':
			options->calls = number(optarg, ULONG_MAX);
			break;
		case 'p':
			options->programs = number(optarg, PROGRAMS_MAX);
			break;
		case 'D':
			setenv("STANDIN_DURATION_US", optarg, 1);
			break;
		case 'f':
			setenv("STANDIN_FAIL_EVERY", optarg, 1);
			break;
		case 'o':
			setenv("STANDIN_SLOW", optarg, 1);
			break;
		case 'r':
			options->rate = number(optarg, 1000000);
			break;
		case 'w':
			options->wait_for_go = true;
			break;
		case 'd':
			options->late_dlopen = true;
			break;
		case 'l':
			options->load_first = true;
			break;
		case 'R':
			options->reload = true;
			break;
		case 'a':
			options->resolve = true;
			break;
		case 'b':
			options->callbacks = true;
			break;
		case 'F':
			options->forks = number(optarg, 64);
			break;
		case 'x':
			options->exec = true;
			break;
		case 'c':
			options->crash = true;
			break;
		case 'g':
			options->linger = true;
			break;
		case 'C':
			options->churn = number(optarg, 100000);
			break;
		case 'S':
			options->seconds = number(optarg, 3600);
			break;
		case 'A':
			options->names = optarg;
			break;
		case 'T':
			options->log_times = true;
			break;
		case 'N':
			prctl(PR_SET_NAME, optarg);
			break;
		case 'V':
			options->device = optarg;
			setenv("STANDIN_DEVICE", optarg, 1);
			break;
		case 'J':
			setenv("STANDIN_JOBS", optarg, 1);
			break;
		case 'E':
			setenv("STANDIN_ENGINES", optarg, 1);
			break;
		case 'j':
			setenv("STANDIN_FAIL_JOBS", optarg, 1);
			break;
		case 'H':
			setenv("STANDIN_HANG_JOBS", optarg, 1);
			break;
		default:
			usage(letter == 'h' ? 0 : 2);
		}
	}
	if (optind != argc - 1 || !options->threads || !options->programs)
		usage(2);
	options->runtime = argv[optind];
	if (options->device && (!uses_device(options->runtime) || options->library_count > 1 || options->churn))
		usage(2);
	if (!options->library_count)
		options->library_count = 1;
	if (!options->churn)
		return;
	options->programs = 0;
	options->rate = (double)options->churn / options->threads;
	options->calls = (unsigned long)options->churn * options->seconds / options->threads;
	if (!options->calls)
		usage(2);
}

/* Executes this program again, without --exec and without waiting a second time. */
static void __attribute__((noreturn)) execute_again(char **argv)
{
	char **into = argv;

	for (char **from = argv; *from; from++)
		if (strcmp(*from, "--exec") != 0 && strcmp(*from, "--wait-for-go") != 0)
			*into++ = *from;
	*into = NULL;
	execv("/proc/self/exe", argv);
	fail("exec");
}

static void fork_children(const struct options *options, pid_t *children)
{
	for (unsigned int i = 0; i < options->forks; i++) {
		children[i] = fork();
		if (children[i] < 0)
			fail("fork");
		if (children[i] == 0) {
			memset(children, 0, options->forks * sizeof(*children));
			return;
		}
	}
}

static int wait_for_children(const struct options *options, const pid_t *children)
{
	int status, result = 0;

	for (unsigned int i = 0; i < options->forks; i++)
		if (children[i] > 0 && (waitpid(children[i], &status, 0) < 0 || status != 0))
			result = 1;
	return result;
}

int main(int argc, char **argv)
{
	struct options options = { .threads = 1, .calls = 100, .programs = 2, .seconds = 1 };
	struct library *libraries;
	char **again = calloc(argc + 1, sizeof(*again)); /* getopt changes the order of argv */
	pid_t children[64] = { 0 };

	if (!again)
		fail("options");
	memcpy(again, argv, argc * sizeof(*again));
	options_read(&options, argc, argv);
	signal(SIGTERM, stop);
	libraries = calloc(options.library_count, sizeof(*libraries));
	if (!libraries)
		fail("libraries");
	for (size_t i = 0; i < options.library_count; i++) {
		struct run *run = calloc(1, scenario_find(options.runtime)->run_size);

		if (!run)
			fail("run");
		run->options = &options;
		run->ledger = ledger_new();
		libraries[i].run = run;
		if (options.churn)
			churn_prepare(run);
	}
	if (!options.late_dlopen && !options.exec) {
		libraries_bind(&options, libraries);
		if (options.load_first)
			libraries_load(&options, libraries);
	}
	if (options.wait_for_go) {
		char ready[64];
		int length = snprintf(ready, sizeof(ready), "{\"ready\":true,\"pid\":%d}\n", getpid());

		write_line(ready, length);
		wait_for_line();
		ledgers_restart(&options, libraries);
	}
	if (options.exec)
		execute_again(again);
	free(again);
	fork_children(&options, children);
	if (options.late_dlopen)
		libraries_bind(&options, libraries);
	if (!options.load_first || options.late_dlopen)
		libraries_load(&options, libraries);
	libraries_run(&options, libraries);
	print_result(&options, libraries);
	if (options.linger)
		wait_for_line();
	if (options.crash)
		raise(SIGSEGV);
	return wait_for_children(&options, children);
}
