/* SPDX-License-Identifier: BSD-2-Clause */
#include "accelerator.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "emulated.h"
#include "xptaccel_uapi.h"

#define SUBMISSION \
	(1ull << 40) /* marks numbers of submissions: runtimes mix them with others, and use the bits above */
#define JOBS_MAX 16
#define WAIT_NS 60000000000ull

static struct {
	pthread_mutex_t lock;
	const char *path;
	bool emulated;
	uint64_t per_execution, engines, fail_every, hang_every;
	uint64_t submissions, submitted;
	struct accelerator_job *jobs; /* those of one submission lie together */
	size_t count, limit;
} accelerator = { .lock = PTHREAD_MUTEX_INITIALIZER };
static pthread_once_t configured = PTHREAD_ONCE_INIT;

/* Every thread, and the same thread in a forked child, opens the device for itself: contexts of its own. */
static __thread int own_device = -1;
static __thread pid_t own_pid;
static __thread uint64_t own_last;

static void __attribute__((noreturn)) fail(const char *what)
{
	fprintf(stderr, "accelerator: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static uint64_t environment_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static void configure(void)
{
	accelerator.path = getenv("STANDIN_DEVICE");
	accelerator.emulated = accelerator.path && emulated_is(accelerator.path);
	accelerator.per_execution = environment_number("STANDIN_JOBS", 1);
	accelerator.engines = environment_number("STANDIN_ENGINES", 1);
	accelerator.fail_every = environment_number("STANDIN_FAIL_JOBS", 0);
	accelerator.hang_every = environment_number("STANDIN_HANG_JOBS", 0);
	errno = EINVAL;
	if (!accelerator.per_execution || accelerator.per_execution > JOBS_MAX || !accelerator.engines)
		fail("number of jobs or engines");
}

bool accelerator_given(void)
{
	pthread_once(&configured, configure);
	return accelerator.path;
}

static int device(void)
{
	if (own_device >= 0 && own_pid == getpid())
		return own_device;
	own_pid = getpid();
	own_device = accelerator.emulated ? emulated_open(accelerator.path) :
					    open(accelerator.path, O_RDWR | O_CLOEXEC);
	if (own_device < 0)
		fail(accelerator.path);
	return own_device;
}

static int control(const struct accelerator_job *job, unsigned long number, void *arguments)
{
	return accelerator.emulated ? emulated_ioctl(job->device, number, arguments) :
				      ioctl(job->device, number, arguments);
}

static uint32_t job_flags(uint64_t number)
{
	if (accelerator.hang_every && number % accelerator.hang_every == 0)
		return XPTACCEL_HANG;
	return accelerator.fail_every && number % accelerator.fail_every == 0 ? XPTACCEL_FAIL : 0;
}

static void submit_one(struct accelerator_job *job)
{
	struct xptaccel_submit arguments = {
		.engine = job->engine, .flags = job->flags, .execute_ns = job->asked_ns, .cookie = job->cookie
	};

	job->submit_ns = clock_now();
	if (control(job, XPTACCEL_SUBMIT, &arguments) != 0)
		fail("submit");
	job->submitted_ns = clock_now();
	job->number = arguments.job;
	job->fence_context = arguments.fence_context;
	job->fence_seqno = arguments.fence_seqno;
}

/* Called with the lock held. */
static void keep(const struct accelerator_job *jobs, size_t count)
{
	if (accelerator.count + count > accelerator.limit) {
		accelerator.limit = accelerator.limit ? accelerator.limit * 2 : 1024;
		accelerator.jobs = realloc(accelerator.jobs, accelerator.limit * sizeof(*jobs));
		if (!accelerator.jobs)
			fail("jobs");
	}
	memcpy(accelerator.jobs + accelerator.count, jobs, count * sizeof(*jobs));
	accelerator.count += count;
}

uint64_t accelerator_submit(uint64_t duration_ns)
{
	struct accelerator_job jobs[JOBS_MAX] = { 0 };
	size_t count = accelerator.per_execution;
	uint64_t first, submission;

	pthread_mutex_lock(&accelerator.lock);
	submission = SUBMISSION | ++accelerator.submissions;
	first = accelerator.submitted + 1;
	accelerator.submitted += count;
	pthread_mutex_unlock(&accelerator.lock);
	for (size_t i = 0; i < count; i++) {
		jobs[i] = (struct accelerator_job){ .submission = submission,
						    .cookie = (uint64_t)getpid() << 32 | (first + i),
						    .asked_ns = i % 2 ? duration_ns / 4 : duration_ns,
						    .engine = (submission + i) % accelerator.engines,
						    .flags = job_flags(first + i),
						    .tid = syscall(SYS_gettid),
						    .device = device() };
		submit_one(&jobs[i]);
	}
	pthread_mutex_lock(&accelerator.lock);
	keep(jobs, count);
	pthread_mutex_unlock(&accelerator.lock);
	own_last = submission;
	return submission;
}

bool accelerator_owns(uint64_t submission)
{
	return submission & SUBMISSION;
}

/* Copies the jobs of a submission; where they begin. */
static size_t find(uint64_t submission, struct accelerator_job *jobs)
{
	size_t first;

	pthread_mutex_lock(&accelerator.lock);
	first = accelerator.count;
	while (first && accelerator.jobs[first - 1].submission != submission)
		first--;
	if (first < accelerator.per_execution) {
		errno = ENOENT;
		fail("submission");
	}
	first -= accelerator.per_execution;
	memcpy(jobs, accelerator.jobs + first, accelerator.per_execution * sizeof(*jobs));
	pthread_mutex_unlock(&accelerator.lock);
	return first;
}

/* False when it has not ended within the time. */
static bool wait_one(struct accelerator_job *job, uint64_t timeout_ns)
{
	struct xptaccel_wait arguments = { .job = job->number, .timeout_ns = timeout_ns };

	if (job->waited)
		return true;
	if (control(job, XPTACCEL_WAIT, &arguments) != 0) {
		if (errno == ETIME && !timeout_ns)
			return false;
		fail("wait");
	}
	errno = EPROTO;
	if (arguments.cookie != job->cookie)
		fail("another job's cookie");
	job->queued_ns = arguments.queued_ns;
	job->started_ns = arguments.started_ns;
	job->finished_ns = arguments.finished_ns;
	job->error = arguments.error;
	job->waited = true;
	return true;
}

/* Waits for the jobs of a submission, each for so long, and keeps what became of them; whether all have ended. */
static bool wait_all(uint64_t submission, uint64_t timeout_ns, int *error)
{
	struct accelerator_job jobs[JOBS_MAX];
	size_t first = find(submission, jobs);
	bool ended = true;

	*error = 0;
	for (size_t i = 0; i < accelerator.per_execution; i++) {
		if (!wait_one(&jobs[i], timeout_ns))
			ended = false;
		else if (!*error)
			*error = jobs[i].error;
	}
	pthread_mutex_lock(&accelerator.lock);
	memcpy(accelerator.jobs + first, jobs, accelerator.per_execution * sizeof(*jobs));
	pthread_mutex_unlock(&accelerator.lock);
	return ended;
}

bool accelerator_done(uint64_t submission)
{
	int error;

	return wait_all(submission, 0, &error);
}

int accelerator_wait(uint64_t submission)
{
	int error;

	wait_all(submission, WAIT_NS, &error);
	return error;
}

uint64_t accelerator_last(void)
{
	return own_last;
}

size_t accelerator_jobs(const struct accelerator_job **jobs)
{
	*jobs = accelerator.jobs;
	return accelerator.count;
}
