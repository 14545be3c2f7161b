/* SPDX-License-Identifier: BSD-2-Clause */
#include "emulated.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "xptaccel_uapi.h"

#define NAME "emulated"
#define NODE "/dev/null"  /* takes the ioctls that every file has */
#define NOBODY (1l << 30) /* no process has this number, or one above it */
#define ENGINES_MAX 8
#define SLOTS_MAX 16
#define JOBS_MAX 1024 /* that nobody has waited for */

enum event { QUEUE = 1, RUN, DONE, ERROR }; /* as emulated.json has them */

enum state { FREE, WAITING, RUNNING, ENDED };

struct job {
	enum state state;
	uint32_t engine, flags;
	uint64_t number, cookie, context, execute_ns;
	uint64_t queued_ns, started_ns, finished_ns;
	int error;
};

/* In memory that the process of the engines has, too. */
struct device {
	pthread_mutex_t lock;
	pthread_cond_t submitted[ENGINES_MAX], ended;
	long number;
	unsigned int engines, slots;
	unsigned int lost; /* of so many jobs of a program; 0: none */
	bool apart;
	pid_t owner;
	uint64_t jobs; /* in all */
	size_t used;   /* entries that have ever been taken */
	struct job job[JOBS_MAX];
};

static struct device *device; /* of this process, or of the one that it was forked from */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
}

/* value: the engine, or what the job has ended with. Returns false where the kernel has no such system call. */
static bool tell(const struct device *device, enum event event, long value, const struct job *job)
{
	syscall(SYS_kcmp, NOBODY + device->number, value, (long)event, job->context, job->number);
	return errno == ESRCH;
}

/* ---- engines ---- */

/* The oldest job that waits for the engine. Called with the lock held. */
static struct job *next_job(struct device *device, uint32_t engine)
{
	struct job *oldest = NULL;

	for (size_t i = 0; i < device->used; i++) {
		struct job *job = &device->job[i];

		if (job->state == WAITING && job->engine == engine && (!oldest || job->number < oldest->number))
			oldest = job;
	}
	return oldest;
}

/* Called without the lock: nobody else touches a job that runs. */
static void run_job(const struct device *device, struct job *job)
{
	struct timespec until;

	tell(device, RUN, job->engine, job);
	job->started_ns = now();
	until = timespec_of(job->started_ns + job->execute_ns);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
	job->finished_ns = now();
	if (job->flags & XPTACCEL_FAIL) {
		job->error = -EIO;
		tell(device, ERROR, job->error, job);
	}
	if (!device->lost || (uint32_t)job->cookie % device->lost != 1)
		tell(device, DONE, job->engine, job);
}

struct engine {
	struct device *device;
	uint32_t number;
};

static void *run_engine(void *argument)
{
	struct engine engine = *(struct engine *)argument;
	struct device *device = engine.device;
	struct job *job;

	free(argument);
	pthread_mutex_lock(&device->lock);
	for (;;) {
		while (!(job = next_job(device, engine.number)))
			pthread_cond_wait(&device->submitted[engine.number], &device->lock);
		job->state = RUNNING;
		pthread_mutex_unlock(&device->lock);
		run_job(device, job);
		pthread_mutex_lock(&device->lock);
		job->state = ENDED;
		pthread_cond_broadcast(&device->ended);
	}
	return NULL;
}

static int start_engines(struct device *device)
{
	pthread_t thread;

	for (unsigned int i = 0; i < device->engines * device->slots; i++) {
		struct engine *engine = malloc(sizeof(*engine));

		if (!engine)
			return ENOMEM;
		*engine = (struct engine){ device, i % device->engines };
		if (pthread_create(&thread, NULL, run_engine, engine) != 0)
			return EAGAIN;
		pthread_detach(thread);
	}
	return 0;
}

/* Ends with the process that uses it. */
static void __attribute__((noreturn)) serve(struct device *device)
{
	struct pollfd owner = { .fd = syscall(SYS_pidfd_open, device->owner, 0), .events = POLLIN };

	signal(SIGTERM, SIG_IGN);
	if (owner.fd < 0 || start_engines(device) != 0)
		abort();
	while (getppid() == device->owner && poll(&owner, 1, -1) < 0)
		;
	_exit(0);
}

/* ---- opening ---- */

static unsigned int number_in(const char *text, unsigned int limit, bool *right)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	*right = *right && end != text && !*end && number <= limit;
	return number;
}

static bool take_options(struct device *device, const char *name)
{
	enum { DEVICE, ENGINES, SLOTS, LOST, APART };
	char *const names[] = { "device", "engines", "slots", "lost", "apart", NULL };
	char *copy = strdup(name + strlen(NAME)), *rest = copy, *value;
	bool right = copy;

	if (copy && *copy == ':')
		rest++;
	while (right && *rest) {
		int option = getsubopt(&rest, names, &value);

		right = option >= 0 && !value == (option == APART);
		if (right && option == DEVICE)
			device->number = number_in(value, 1u << 29, &right);
		else if (right && option == ENGINES)
			device->engines = number_in(value, ENGINES_MAX, &right);
		else if (right && option == SLOTS)
			device->slots = number_in(value, SLOTS_MAX, &right);
		else if (right && option == LOST)
			device->lost = number_in(value, JOBS_MAX, &right);
		else if (right)
			device->apart = true;
	}
	free(copy);
	return right && device->engines && device->slots;
}

static void make_shared(struct device *device)
{
	pthread_mutexattr_t mutex;
	pthread_condattr_t condition;

	pthread_mutexattr_init(&mutex);
	pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&device->lock, &mutex);
	pthread_condattr_init(&condition);
	pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
	pthread_condattr_setclock(&condition, CLOCK_MONOTONIC);
	pthread_cond_init(&device->ended, &condition);
	for (unsigned int i = 0; i < ENGINES_MAX; i++)
		pthread_cond_init(&device->submitted[i], &condition);
}

static int start(struct device *device)
{
	pid_t child;

	if (!device->apart)
		return start_engines(device);
	child = fork();
	if (child == 0)
		serve(device);
	return child < 0 ? errno : 0;
}

/* The device of this process; NULL and errno. Called with the lock held. */
static struct device *make(const char *name)
{
	struct device *made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (made == MAP_FAILED)
		return NULL;
	made->engines = 2;
	made->slots = 1;
	made->owner = getpid();
	make_shared(made);
	if (!take_options(made, name))
		errno = EINVAL;
	else
		errno = tell(made, 0, 0, &made->job[0]) ? start(made) : ENODEV;
	if (!errno)
		return made;
	munmap(made, sizeof(*made));
	return NULL;
}

bool emulated_is(const char *name)
{
	size_t length = strlen(NAME);

	return strncmp(name, NAME, length) == 0 && (!name[length] || name[length] == ':');
}

int emulated_open(const char *name)
{
	bool known;

	pthread_mutex_lock(&opening);
	if (!device || device->owner != getpid())
		device = make(name);
	known = device;
	pthread_mutex_unlock(&opening);
	return known ? open(NODE, O_RDWR | O_CLOEXEC) : -1;
}

/* ---- what a driver does ---- */

static uint64_t context_of(int descriptor)
{
	return (uint64_t)device->owner << 32 | (unsigned int)descriptor;
}

/* Called with the lock held. */
static struct job *free_entry(void)
{
	for (size_t i = 0; i < JOBS_MAX; i++) {
		if (device->job[i].state != FREE)
			continue;
		if (i == device->used)
			device->used++;
		return &device->job[i];
	}
	return NULL;
}

/* 0 or an error number. */
static int submit(int descriptor, struct xptaccel_submit *arguments)
{
	struct job *job;

	if (arguments->engine >= device->engines || (arguments->flags & ~XPTACCEL_FAIL) || !arguments->execute_ns ||
	    arguments->execute_ns > XPTACCEL_EXECUTE_MAX_NS)
		return EINVAL;
	pthread_mutex_lock(&device->lock);
	job = free_entry();
	if (job) {
		*job = (struct job){ .state = WAITING,
				     .engine = arguments->engine,
				     .flags = arguments->flags,
				     .number = (uint64_t)device->owner << 32 | ++device->jobs,
				     .cookie = arguments->cookie,
				     .context = context_of(descriptor),
				     .execute_ns = arguments->execute_ns,
				     .queued_ns = now() };
		arguments->job = arguments->fence_seqno = job->number;
		arguments->fence_context = job->context;
		/* before an engine can take it */
		tell(device, QUEUE, job->engine, job);
		pthread_cond_signal(&device->submitted[job->engine]);
	}
	pthread_mutex_unlock(&device->lock);
	return job ? 0 : EBUSY;
}

/* Called with the lock held. */
static struct job *find_job(int descriptor, uint64_t number)
{
	for (size_t i = 0; i < device->used; i++) {
		struct job *job = &device->job[i];

		if (job->state != FREE && job->number == number && job->context == context_of(descriptor))
			return job;
	}
	return NULL;
}

/* 0 or an error number. */
static int wait_for(int descriptor, struct xptaccel_wait *arguments)
{
	struct timespec until = timespec_of(now() + arguments->timeout_ns);
	struct job *job;
	int error = 0;

	pthread_mutex_lock(&device->lock);
	job = find_job(descriptor, arguments->job);
	while (job && job->state != ENDED && !error)
		error = pthread_cond_timedwait(&device->ended, &device->lock, &until) == ETIMEDOUT ? ETIME : 0;
	if (!job) {
		error = ENOENT;
	} else if (job->state == ENDED) {
		error = 0;
		arguments->cookie = job->cookie;
		arguments->queued_ns = job->queued_ns;
		arguments->started_ns = job->started_ns;
		arguments->finished_ns = job->finished_ns;
		arguments->error = job->error;
		job->state = FREE;
	}
	pthread_mutex_unlock(&device->lock);
	return error;
}

int emulated_ioctl(int descriptor, unsigned long number, void *arguments)
{
	int blocking = 0;

	switch (number) {
	case XPTACCEL_SUBMIT:
		ioctl(descriptor, FIOCLEX);
		errno = submit(descriptor, arguments);
		break;
	case XPTACCEL_WAIT:
		ioctl(descriptor, FIONBIO, &blocking);
		errno = wait_for(descriptor, arguments);
		break;
	default:
		errno = ENOTTY;
	}
	return errno ? -1 : 0;
}
