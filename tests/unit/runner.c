/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs the unit tests, which are written with Criterion's headers: what those call, without Criterion's library. That one executes
 * the program anew for each test, which under sanitizers takes ten times as long as most tests do; here each test is a fork.
 * Of what a test may be given, .signal, .exit_code and .disabled are not heeded.
 *
 * runner [--list] [--times] [-j JOBS] [--filter PATTERN]: PATTERN as in a shell, of SUITE/TEST; --times: processor time of each test.
 * Exit status: 0 when nothing failed.
 */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_MAX 64
#define TICK_NS 50000000 /* between two looks at the time limits */

extern struct criterion_test *__start_cr_tst[], *__stop_cr_tst[];
extern struct criterion_suite *__start_cr_sts[], *__stop_cr_sts[];

struct criterion_options criterion_options;

/* Shared with the process that makes the test. */
struct outcome {
	bool ended, failed, skipped;
};

static struct job {
	const struct criterion_test *test;
	struct outcome *outcome;
	pid_t pid; /* 0: none */
	time_t deadline;
} jobs[JOBS_MAX];

static bool with_times;
static struct {
	unsigned int tested, passing, failing, crashing;
} totals;

/* ---- in the process of a test ---- */

static const struct criterion_test *running;
static struct outcome *outcome;
static pid_t process;
static jmp_buf behind;
static int redirected = -1;

static const struct criterion_test_extra_data *suite_of(const struct criterion_test *test);

/* One line, whole beside those of other tests. */
static void say(const char *format, ...)
{
	char text[8192];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text) - 1, format, arguments);
	va_end(arguments);
	if (length > (int)sizeof(text) - 2)
		length = sizeof(text) - 2;
	text[length++] = '\n';
	if (write(STDOUT_FILENO, text, (size_t)length) != length)
		_exit(1);
}

/* The rest of the test is not made. Its end comes all the same, but for another thread or a process that the test has made. */
static void leave(void)
{
	if (getpid() != process || gettid() != process)
		_exit(1);
	longjmp(behind, 1);
}

void criterion_send_assert(struct criterion_assert_stats *assertion)
{
	outcome->failed = true;
	say("[----] %s:%u: %s::%s: %s", assertion->file, assertion->line, running->category, running->name,
	    assertion->message);
}

void criterion_abort_test(void)
{
	leave();
	abort();
}

void criterion_continue_test(void)
{
}

void criterion_skip_test(const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	outcome->skipped = true;
	say("[SKIP] %s::%s: %s", running->category, running->name, text);
	leave();
	abort();
}

void cri_asserts_passed_incr(void)
{
}

char *cr_translate_assert_msg(int message, ...)
{
	va_list arguments;
	char *text;

	(void)message;
	va_start(arguments, message);
	text = strdup(va_arg(arguments, const char *));
	va_end(arguments);
	return text;
}

int cr_asprintf(char **text, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vasprintf(text, format, arguments);
	va_end(arguments);
	return length;
}

void cr_asprintf_free(char *text)
{
	free(text);
}

void cr_redirect_stderr(void)
{
	redirected = memfd_create("stderr", MFD_CLOEXEC);
	if (dup2(redirected, STDERR_FILENO) < 0)
		_exit(1);
}

/* 1: the text, and nothing else, was written. */
int cr_stderr_match_str(const char *text)
{
	char found[8192];
	ssize_t length = pread(redirected, found, sizeof(found) - 1, 0);

	found[length < 0 ? 0 : length] = '\0';
	return !strcmp(found, text);
}

/* Function of a suite, then that of the test; the other way round at the end. */
void criterion_internal_test_setup(void)
{
	const struct criterion_test_extra_data *suite = suite_of(running);

	if (suite && suite->init)
		suite->init();
	if (running->data->init)
		running->data->init();
}

/* Left in the middle, a test still has its end. */
void criterion_internal_test_main(void (*function)(void))
{
	jmp_buf before;

	memcpy(before, behind, sizeof(before));
	if (!setjmp(behind))
		function();
	memcpy(behind, before, sizeof(before));
}

void criterion_internal_test_teardown(void)
{
	const struct criterion_test_extra_data *suite = suite_of(running);

	if (running->data->fini)
		running->data->fini();
	if (suite && suite->fini)
		suite->fini();
}

/* Returns when nothing has ended the process: its end is when leaks are looked for. */
static void make_test(const struct job *job)
{
	running = job->test;
	outcome = job->outcome;
	process = getpid();
	if (!setjmp(behind))
		running->test();
	outcome->ended = true;
}

/* ---- of all tests ---- */

/* Sanitizers leave room between the pointers of a section, and guard it. */
__attribute__((no_sanitize("address"))) static const struct criterion_test_extra_data *suite_of(
	const struct criterion_test *test)
{
	for (struct criterion_suite **suite = __start_cr_sts; suite < __stop_cr_sts; suite++) {
		if (*suite && !strcmp((*suite)->name, test->category))
			return (*suite)->data;
	}
	return NULL;
}

static bool is_chosen(const struct criterion_test *test, const char *pattern)
{
	char name[256];

	snprintf(name, sizeof(name), "%s/%s", test->category, test->name);
	return !pattern || !fnmatch(pattern, name, 0);
}

static int by_name(const void *one, const void *other)
{
	const struct criterion_test *const *tests[] = { one, other };
	int order = strcmp((*tests[0])->category, (*tests[1])->category);

	return order ? order : strcmp((*tests[0])->name, (*tests[1])->name);
}

__attribute__((no_sanitize("address"))) static size_t find_tests(const char *pattern,
								 const struct criterion_test ***tests)
{
	size_t count = 0;

	*tests = calloc((size_t)(__stop_cr_tst - __start_cr_tst), sizeof(**tests));
	if (!*tests)
		abort();
	for (struct criterion_test **test = __start_cr_tst; test < __stop_cr_tst; test++) {
		if (*test && is_chosen(*test, pattern))
			(*tests)[count++] = *test;
	}
	qsort(*tests, count, sizeof(**tests), by_name);
	return count;
}

/* Whole seconds; 0: none. */
static time_t time_limit(const struct criterion_test *test)
{
	const struct criterion_test_extra_data *suite = suite_of(test);
	double limit = test->data->timeout ? test->data->timeout : suite ? suite->timeout : 0;

	return (time_t)limit;
}

static void begin(struct job *job, const struct criterion_test *test)
{
	time_t limit = time_limit(test);
	sigset_t none;

	*job = (struct job){ .test = test, .outcome = job->outcome, .deadline = limit ? time(NULL) + limit : 0 };
	*job->outcome = (struct outcome){ 0 };
	job->pid = fork();
	if (job->pid < 0) {
		perror("fork");
		exit(1);
	}
	if (!job->pid) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		make_test(job);
		exit(0);
	}
}

static void judge(const struct job *job, int status)
{
	const struct criterion_test *test = job->test;
	bool crashed = WIFSIGNALED(status);

	if (job->outcome->skipped && !job->outcome->failed && !status)
		return;
	totals.tested++;
	if (job->outcome->ended && !job->outcome->failed && !status) {
		totals.passing++;
		return;
	}
	totals.failing += !crashed;
	totals.crashing += crashed;
	if (crashed)
		say("[FAIL] %s::%s: ended by signal %d (%s)%s", test->category, test->name, WTERMSIG(status),
		    strsignal(WTERMSIG(status)),
		    job->deadline && time(NULL) >= job->deadline ? ", its time was over" : "");
	else if (!job->outcome->ended && !job->outcome->failed)
		say("[FAIL] %s::%s: its process has ended with status %d", test->category, test->name,
		    WEXITSTATUS(status));
	else
		say("[FAIL] %s::%s", test->category, test->name);
}

static void say_time(const struct criterion_test *test, const struct rusage *used)
{
	say("%8.3f s %s/%s",
	    (double)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) +
		    (double)(used->ru_utime.tv_usec + used->ru_stime.tv_usec) / 1e6,
	    test->category, test->name);
}

/* Waits until one has ended, or some time has passed. */
static void wait_for_jobs(unsigned int count)
{
	static const struct timespec tick = { .tv_nsec = TICK_NS };
	struct rusage used;
	sigset_t ended;
	int status;
	pid_t pid;

	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	sigtimedwait(&ended, NULL, &tick);
	while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
		for (unsigned int i = 0; i < count; i++) {
			if (jobs[i].pid != pid)
				continue;
			if (with_times)
				say_time(jobs[i].test, &used);
			judge(&jobs[i], status);
			jobs[i].pid = 0;
		}
	}
	for (unsigned int i = 0; i < count; i++) {
		if (jobs[i].pid && jobs[i].deadline && time(NULL) > jobs[i].deadline)
			kill(jobs[i].pid, SIGKILL);
	}
}

static struct job *free_job(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		if (!jobs[i].pid)
			return &jobs[i];
	}
	return NULL;
}

static bool are_all_free(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		if (jobs[i].pid)
			return false;
	}
	return true;
}

static int run_tests(const struct criterion_test **tests, size_t count, unsigned int at_once)
{
	struct outcome *outcomes = mmap(NULL, JOBS_MAX * sizeof(*outcomes), PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sigset_t ended;
	size_t next = 0;

	if (outcomes == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ended, NULL);
	for (unsigned int i = 0; i < at_once; i++)
		jobs[i].outcome = &outcomes[i];
	while (next < count || !are_all_free(at_once)) {
		struct job *job = free_job(at_once);

		if (job && next < count)
			begin(job, tests[next++]);
		else
			wait_for_jobs(at_once);
	}
	say("[====] Synthesis: Tested: %u | Passing: %u | Failing: %u | Crashing: %u", totals.tested, totals.passing,
	    totals.failing, totals.crashing);
	return totals.failing || totals.crashing;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "filter", required_argument, NULL, 'f' },
						 { "list", no_argument, NULL, 'l' },
						 { "times", no_argument, NULL, 't' },
						 { 0 } };
	long at_once = sysconf(_SC_NPROCESSORS_ONLN);
	const struct criterion_test **tests;
	const char *pattern = NULL;
	bool list = false;
	size_t count;
	int letter;

	while ((letter = getopt_long(argc, argv, "j:", options, NULL)) >= 0) {
		if (letter == 'f')
			pattern = optarg;
		else if (letter == 'l')
			list = true;
		else if (letter == 't')
			with_times = true;
		else if (letter == 'j')
			at_once = strtol(optarg, NULL, 10);
		else
			return 2;
	}
	count = find_tests(pattern, &tests);
	for (size_t i = 0; list && i < count; i++)
		say("%s/%s", tests[i]->category, tests[i]->name);
	if (list)
		return 0;
	return run_tests(tests, count, (unsigned int)(at_once < 1 ? 1 : at_once > JOBS_MAX ? JOBS_MAX : at_once));
}
