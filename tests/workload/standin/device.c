/* SPDX-License-Identifier: BSD-2-Clause */
#include "device.h"
#include "accelerator.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OBJECTS 1024
#define SPIN_NS 100000	  /* shorter jobs are timed by spinning: a sleep would add the timer's slack */
#define SLOW_NS 100000000 /* that the slow one takes longer */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t submitted;
	pthread_cond_t completed;
	uint64_t last; /* submitted */
	uint64_t done; /* executed; jobs in between are waiting, all but one take the same time */
	uint64_t duration_ns;
	uint64_t slow; /* sequence number of the job that takes longer; 0: none does */
	uint64_t executions;
	uint64_t fail_every;
	bool configured;
	bool running;
	struct object objects[OBJECTS];
} device = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.submitted = PTHREAD_COND_INITIALIZER,
	.completed = PTHREAD_COND_INITIALIZER,
};

static uint64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void execute_job(uint64_t duration_ns)
{
	uint64_t end = clock_now() + duration_ns;
	struct timespec until = { .tv_sec = end / 1000000000, .tv_nsec = end % 1000000000 };

	if (duration_ns > SPIN_NS)
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
			;
	while (clock_now() < end)
		;
}

static void *work(void *unused)
{
	uint64_t duration_ns;

	(void)unused;
	pthread_mutex_lock(&device.lock);
	for (;;) {
		while (device.done == device.last)
			pthread_cond_wait(&device.submitted, &device.lock);
		duration_ns = device.duration_ns + (device.done + 1 == device.slow ? SLOW_NS : 0);
		pthread_mutex_unlock(&device.lock);
		execute_job(duration_ns);
		pthread_mutex_lock(&device.lock);
		device.done++;
		pthread_cond_broadcast(&device.completed);
	}
	return NULL;
}

/* The worker does not exist in a forked child: what it had not done is taken as done, the next job starts a new one. */
static void forget_worker(void)
{
	pthread_mutex_init(&device.lock, NULL);
	pthread_cond_init(&device.submitted, NULL);
	pthread_cond_init(&device.completed, NULL);
	device.done = device.last;
	device.running = false;
}

static uint64_t environment_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

/* Called with the lock held. */
static void configure(void)
{
	if (device.configured)
		return;
	device.configured = true;
	device.duration_ns = environment_number("STANDIN_DURATION_US", 20) * 1000;
	device.fail_every = environment_number("STANDIN_FAIL_EVERY", 0);
	device.slow = environment_number("STANDIN_SLOW", 0);
	pthread_atfork(NULL, NULL, forget_worker);
}

/* Called with the lock held. */
static void start_worker(void)
{
	pthread_t thread;

	if (device.running)
		return;
	if (pthread_create(&thread, NULL, work, NULL) != 0)
		abort();
	pthread_detach(thread);
	device.running = true;
}

uint64_t device_submit(void)
{
	uint64_t sequence;

	pthread_mutex_lock(&device.lock);
	configure();
	start_worker();
	sequence = ++device.last;
	pthread_cond_signal(&device.submitted);
	pthread_mutex_unlock(&device.lock);
	return sequence;
}

uint64_t device_launch(void)
{
	if (!accelerator_given())
		return device_submit();
	pthread_mutex_lock(&device.lock);
	configure();
	pthread_mutex_unlock(&device.lock);
	return accelerator_submit(device.duration_ns);
}

bool device_done(uint64_t sequence)
{
	bool done;

	if (accelerator_owns(sequence))
		return accelerator_done(sequence);
	pthread_mutex_lock(&device.lock);
	done = device.done >= sequence;
	pthread_mutex_unlock(&device.lock);
	return done;
}

int device_wait(uint64_t sequence)
{
	if (accelerator_owns(sequence))
		return accelerator_wait(sequence);
	pthread_mutex_lock(&device.lock);
	while (device.done < sequence)
		pthread_cond_wait(&device.completed, &device.lock);
	pthread_mutex_unlock(&device.lock);
	return 0;
}

uint64_t device_last(void)
{
	uint64_t last;

	pthread_mutex_lock(&device.lock);
	last = device.last;
	pthread_mutex_unlock(&device.lock);
	return last;
}

void device_run(void)
{
	device_wait(device_submit());
}

bool device_fails(void)
{
	bool fails;

	pthread_mutex_lock(&device.lock);
	configure();
	device.executions++;
	fails = device.fail_every && device.executions % device.fail_every == 0;
	pthread_mutex_unlock(&device.lock);
	return fails;
}

struct object *object_new(void)
{
	struct object *object = NULL;

	pthread_mutex_lock(&device.lock);
	for (size_t i = 0; i < OBJECTS && !object; i++)
		if (!device.objects[i].used)
			object = &device.objects[i];
	if (object) {
		memset(object, 0, sizeof(*object));
		object->used = true;
	}
	pthread_mutex_unlock(&device.lock);
	return object;
}

void object_free(struct object *object)
{
	pthread_mutex_lock(&device.lock);
	object->used = false;
	pthread_mutex_unlock(&device.lock);
}

void object_free_offspring(const struct object *object)
{
	pthread_mutex_lock(&device.lock);
	for (size_t i = 0; i < OBJECTS; i++)
		if (device.objects[i].used && device.objects[i].other == object)
			device.objects[i].used = false;
	pthread_mutex_unlock(&device.lock);
}

__attribute__((weak, visibility("default"))) bool standin_code_given(const void *bytes);

bool code_given(const void *bytes)
{
	return !standin_code_given || standin_code_given(bytes);
}
