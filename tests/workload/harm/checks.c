/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that wait in the ways which a stop of the process interrupts, while others call the runtime.
 *
 * checks [--wait-for-go] [--loads N] [--size BYTES] [--pause MS] [--threads N] [--churn N] [--forks N] [--late MS]
 *        [--until FILE]
 *
 * Each of N threads (2) loads a model of that size (1024) N times (20), executes it and another one, unloads it and
 * pauses (5 ms).
 * churn: another library is loaded and unloaded N times (0) meanwhile. forks: N children (0), one after the other, each
 * of which does what one thread does 3 times. Waits are --late when they last for so much longer than
 * they should (500 ms). until: afterwards it executes a model, which is in no result, until the file exists, for 2 minutes at most.
 */
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harm.h"

#define TIMEOUT_MS 20
#define TIMEOUT_NS (TIMEOUT_MS * 1000000ull)
#define THREADS_MAX 16
#define CHILD_LOADS 3
#define EXECUTIONS 3 /* of each load */
#define KINDS (sizeof(waiters) / sizeof(waiters[0]))

static struct {
	unsigned int loads, pause, threads, churn, forks, late;
	size_t size;
	bool wait_for_go;
	const char *until;
} options = { .loads = 20, .size = NEFF_SIZE, .pause = 5, .threads = 2, .late = 500 };

static _Atomic bool finished;
static _Atomic unsigned int wrong; /* calls that did not do what they should */
static void *model;
static struct object *kept; /* one that stays loaded, called small */

/* ---- waiting: each of these returns 0 when it has waited for the whole time, else the error ---- */

static int files[3]; /* epoll's, an event that never comes, a socket from which nothing can be read */

static int wait_epoll(void)
{
	struct epoll_event event;
	int count = epoll_wait(files[0], &event, 1, TIMEOUT_MS);

	return count < 0 ? errno : count;
}

static int wait_read(void)
{
	char byte;

	if (read(files[2], &byte, 1) >= 0)
		return -1;
	return errno == EAGAIN ? 0 : errno;
}

static int wait_signal(void)
{
	const struct timespec timeout = { .tv_nsec = TIMEOUT_NS };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	if (sigtimedwait(&set, NULL, &timeout) >= 0)
		return -1;
	return errno == EAGAIN ? 0 : errno;
}

static int wait_sleep(void)
{
	const struct timespec time = { .tv_nsec = TIMEOUT_NS };

	return nanosleep(&time, NULL) ? errno : 0;
}

static int wait_futex(void)
{
	const struct timespec timeout = { .tv_nsec = TIMEOUT_NS };
	static uint32_t word;

	if (!syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &timeout, NULL, 0))
		return -1;
	return errno == ETIMEDOUT ? 0 : errno;
}

static int wait_poll(void)
{
	struct pollfd one = { .fd = files[1], .events = POLLIN };
	int count = poll(&one, 1, TIMEOUT_MS);

	return count < 0 ? errno : count;
}

static struct waiter {
	const char *name;
	int (*wait)(void);
	bool in_ticks; /* no more than 10 ms each */
	unsigned int waits, interrupted, failed, early, late;
	uint64_t longest;
	pthread_t thread;
} waiters[] = {
	{ .name = "epoll_wait", .wait = wait_epoll },	 { .name = "read", .wait = wait_read, .in_ticks = true },
	{ .name = "sigtimedwait", .wait = wait_signal }, { .name = "nanosleep", .wait = wait_sleep },
	{ .name = "futex", .wait = wait_futex },	 { .name = "poll", .wait = wait_poll },
};

static void *wait_on(void *argument)
{
	struct waiter *waiter = argument;

	while (!finished) {
		uint64_t begin = now(), lasted;
		int error = waiter->wait();

		lasted = now() - begin;
		waiter->waits++;
		waiter->interrupted += error == EINTR;
		waiter->failed += error && error != EINTR;
		waiter->early += !error && lasted < (waiter->in_ticks ? TIMEOUT_NS / 4 : TIMEOUT_NS * 9 / 10);
		waiter->late += lasted > TIMEOUT_NS + options.late * 1000000ull;
		if (lasted > waiter->longest)
			waiter->longest = lasted;
	}
	return NULL;
}

static void start_waiters(void)
{
	const struct timeval timeout = { .tv_usec = TIMEOUT_MS * 1000 };
	struct epoll_event event = { .events = EPOLLIN };
	int sockets[2];
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	files[0] = epoll_create1(EPOLL_CLOEXEC);
	files[1] = eventfd(0, EFD_CLOEXEC);
	if (files[0] < 0 || files[1] < 0 || epoll_ctl(files[0], EPOLL_CTL_ADD, files[1], &event))
		give_up("epoll");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) ||
	    setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)))
		give_up("socketpair");
	files[2] = sockets[0];
	for (size_t i = 0; i < KINDS; i++)
		if (pthread_create(&waiters[i].thread, NULL, wait_on, &waiters[i]))
			give_up("pthread_create");
}

/* ---- calling ---- */

static void load_and_execute(void)
{
	struct object *loaded;

	if (!load_bytes(model, options.size, &loaded)) {
		wrong++;
		return;
	}
	for (int i = 0; i < EXECUTIONS; i++)
		wrong += !execute(loaded);
	wrong += !execute(kept);
	wrong += !write_tensor();
	wrong += !unload(loaded);
	usleep(options.pause * 1000);
}

static void *call(void *unused)
{
	(void)unused;
	for (unsigned int i = 0; i < options.loads; i++)
		load_and_execute();
	return NULL;
}

/* Its name is relative to the library that this program is linked to. */
static void *churn(void *unused)
{
	(void)unused;
	for (unsigned int i = 0; i < options.churn; i++) {
		void *library = dlopen("libQAic.so", RTLD_NOW | RTLD_LOCAL);

		if (!library || dlclose(library))
			wrong++;
		usleep(options.pause * 1000);
	}
	return NULL;
}

static void fork_child(void)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		give_up("fork");
	if (!child) {
		calls_forget();
		wrong = 0;
		for (unsigned int i = 0; i < CHILD_LOADS; i++)
			load_and_execute();
		_exit(wrong ? 1 : 43);
	}
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 43)
		wrong++;
	printf("{\"child\":%d,\"calls\":{\"nrt_load\":%d,\"nrt_execute\":%d,\"nrt_unload\":%d,\"nrt_tensor_write\":%d}}\n",
	       (int)child, CHILD_LOADS, (EXECUTIONS + 1) * CHILD_LOADS, CHILD_LOADS, CHILD_LOADS);
}

static void take_options(int count, char **words)
{
	static const struct option known[] = {
		{ "wait-for-go", no_argument, NULL, 'g' },   { "loads", required_argument, NULL, 'l' },
		{ "size", required_argument, NULL, 's' },    { "pause", required_argument, NULL, 'p' },
		{ "threads", required_argument, NULL, 't' }, { "churn", required_argument, NULL, 'c' },
		{ "forks", required_argument, NULL, 'f' },   { "late", required_argument, NULL, 'm' },
		{ "until", required_argument, NULL, 'u' },   { NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(count, words, "", known, NULL)) != -1) {
		unsigned long value = optarg ? strtoul(optarg, NULL, 10) : 0;

		switch (option) {
		case 'g':
			options.wait_for_go = true;
			break;
		case 'l':
			options.loads = value;
			break;
		case 's':
			options.size = value;
			break;
		case 'p':
			options.pause = value;
			break;
		case 't':
			options.threads = value < THREADS_MAX ? value : THREADS_MAX;
			break;
		case 'c':
			options.churn = value;
			break;
		case 'f':
			options.forks = value;
			break;
		case 'm':
			options.late = value;
			break;
		case 'u':
			options.until = optarg;
			break;
		default:
			exit(2);
		}
	}
}

static void print_results(void)
{
	unsigned int failed = 0, early = 0, late = 0;

	printf("{\"program\":\"checks\",\"pid\":%d,\"results\":{\"interrupted\":{", (int)getpid());
	for (size_t i = 0; i < KINDS; i++) {
		printf("%s\"%s\":%u", i ? "," : "", waiters[i].name, waiters[i].interrupted);
		failed += waiters[i].failed;
		early += waiters[i].early;
		late += waiters[i].late;
		fprintf(stderr, "%s: %u waits, the longest %.1f ms\n", waiters[i].name, waiters[i].waits,
			waiters[i].longest / 1e6);
	}
	printf("},\"failed\":%u,\"early\":%u,\"late\":%u,\"wrong\":%u},\"calls\":", failed, early, late, wrong);
	calls_print(stdout);
	printf("}\n");
}

static void call_and_wait(void)
{
	pthread_t callers[THREADS_MAX], churner;

	setvbuf(stdout, NULL, _IOLBF, 0); /* children must not print what is in a buffer */
	if (!load(&kept))
		give_up("load");
	load_and_execute(); /* what the runtime does once must not happen while children are forked */
	start_waiters();
	for (unsigned int i = 0; i < options.threads; i++)
		if (pthread_create(&callers[i], NULL, call, NULL))
			give_up("pthread_create");
	if (pthread_create(&churner, NULL, churn, NULL))
		give_up("pthread_create");
	for (unsigned int i = 0; i < options.forks; i++)
		fork_child();
	for (unsigned int i = 0; i < options.threads; i++)
		pthread_join(callers[i], NULL);
	pthread_join(churner, NULL);
	finished = true;
	for (size_t i = 0; i < KINDS; i++)
		pthread_join(waiters[i].thread, NULL);
}

static void execute_until(void)
{
	uint64_t end = now() + 120000000000ull;

	while (access(options.until, F_OK) && now() < end) {
		wrong += nrt_execute(kept, NULL, NULL) != 0;
		usleep(options.pause * 1000);
	}
}

int main(int count, char **words)
{
	take_options(count, words);
	model = model_new(options.size < NEFF_SIZE ? NEFF_SIZE : options.size, 1);
	if (options.wait_for_go)
		wait_for_go();
	call_and_wait();
	if (options.until)
		execute_until();
	print_results();
	return wrong ? 1 : 0;
}
