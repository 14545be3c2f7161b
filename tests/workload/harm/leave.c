/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that are left in other ways than by their return, and crowds of calls.
 *
 * leave [--wait-for-go] longjmp N	N times out of one to three loads
 * leave [--wait-for-go] cancel N	N threads that are cancelled, deferred and at once, or end themselves, in a load
 * leave [--wait-for-go] fork N		N times fork() in a load, which returns in parent and child
 * leave [--wait-for-go] vfork N	N times vfork() in a load, and the execution of a program, or a call and the end
 * leave [--wait-for-go] exit N		exit() in a load, in N children and then here, with status 42
 * leave [--wait-for-go] execute N	this program executes itself in a load, which makes N calls, and ends with N
 * leave [--wait-for-go] threads N	N threads at once, which make CALLS calls each
 * leave [--wait-for-go] dlopen N	N times another library is loaded, called, and unloaded
 * leave calls N			N calls, and the end with status N
 *
 * "left" are loads that have begun and never returned. A line {"child":PID,"calls":{...}} is what a child has made.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harm.h"

#define CALLS 20
#define STACK_SIZE (128 << 10)

extern char **environ;

static const char *scenario;
static unsigned int number;
static char self[4096];
static _Atomic unsigned int done, wrong;
static _Atomic unsigned long left;

static void print_child(pid_t child, unsigned long loads, unsigned long writes)
{
	printf("{\"child\":%d,\"calls\":{\"nrt_load\":%lu,\"nrt_unload\":%lu,\"nrt_tensor_write\":%lu}}\n", (int)child,
	       loads, loads, writes);
}

static void print_results(void)
{
	printf("{\"program\":\"leave\",\"pid\":%d,\"results\":{\"%s\":%u,\"wrong\":%u},\"left\":%lu,\"calls\":",
	       (int)getpid(), scenario, done, wrong, left);
	calls_print(stdout);
	printf("}\n");
}

static void write_some(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		wrong += !write_tensor();
}

static void load_and_unload(void (*inside)(void *argument), void *argument)
{
	struct object *model;

	if (!load_around(inside, argument, &model) || !unload(model))
		wrong++;
}

static void check_end(pid_t child, int status)
{
	int answer;

	while (waitpid(child, &answer, 0) < 0)
		if (errno != EINTR)
			give_up("waitpid");
	if (!WIFEXITED(answer) || WEXITSTATUS(answer) != status)
		wrong++;
	else
		done++;
}

/* ---- longjmp ---- */

static jmp_buf back;

static void jump(void *argument)
{
	uintptr_t depth = (uintptr_t)argument;

	left++;
	if (!depth)
		longjmp(back, 1);
	load_and_unload(jump, (void *)(depth - 1)); /* NOLINT(performance-no-int-to-ptr) */
}

static void leave_by_longjmp(void)
{
	for (volatile unsigned int i = 0; i < number; i++) {
		if (setjmp(back)) {
			done++;
			write_some(1);
			load_and_unload(NULL, NULL);
		} else {
			jump((void *)(uintptr_t)(i % 3 + 1)); /* NOLINT(performance-no-int-to-ptr) */
		}
	}
	left -= number; /* the first jump() of each is in no load */
}

/* ---- cancelled threads ---- */

static sem_t inside;

static void count_cleanup(void *unused)
{
	(void)unused;
	done++;
}

static void wait_for_cancel(void *way)
{
	static volatile unsigned long turns;

	left++;
	write_some(1);
	if (*(char *)way == 'e')
		pthread_exit(PTHREAD_CANCELED);
	if (*(char *)way == 'a')
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	sem_post(&inside);
	for (;;) {
		if (*(char *)way == 'd')
			usleep(1000);
		turns++;
	}
}

static void *be_cancelled(void *way)
{
	pthread_cleanup_push(count_cleanup, NULL);
	load_and_unload(wait_for_cancel, way);
	pthread_cleanup_pop(0);
	return NULL;
}

static void leave_by_cancel(void)
{
	static char ways[] = "dae";

	sem_init(&inside, 0, 0);
	for (unsigned int i = 0; i < number; i++) {
		char *way = &ways[i % 3];
		pthread_t thread;
		void *result;

		if (pthread_create(&thread, NULL, be_cancelled, way))
			give_up("pthread_create");
		if (*way != 'e') {
			while (sem_wait(&inside) && errno == EINTR)
				;
			pthread_cancel(thread);
		}
		pthread_join(thread, &result);
		wrong += result != PTHREAD_CANCELED;
		load_and_unload(NULL, NULL);
	}
}

/* ---- processes ---- */

static bool in_child;

static void fork_inside(void *unused)
{
	pid_t child = fork();

	(void)unused;
	if (child < 0)
		give_up("fork");
	if (child) {
		check_end(child, 7);
		print_child(child, 1, 3);
		return;
	}
	in_child = true;
	calls_forget();
	wrong = 0;
	write_some(1);
}

static void leave_by_fork(void)
{
	struct object *model;

	for (unsigned int i = 0; i < number; i++) {
		bool loaded = load_around(fork_inside, NULL, &model);

		if (in_child) {
			write_some(2);
			load_and_unload(NULL, NULL);
			_exit(loaded && !wrong ? 7 : 99);
		}
		wrong += !loaded || !unload(model);
	}
}

static void vfork_inside(void *way)
{
	char *const truth[] = { "true", NULL };
	char *const words[] = { self, "calls", "5", NULL };
	pid_t child = vfork();

	if (child < 0)
		give_up("vfork");
	if (!child && *(char *)way == 't') {
		execve("/bin/true", truth, environ);
		_exit(98);
	}
	if (!child && *(char *)way == 'x') {
		execve(self, words, environ);
		_exit(98);
	}
	if (!child)
		_exit(nrt_tensor_write(NULL, NULL, 0, 0) ? 6 : 99);
	check_end(child, *(char *)way == 't' ? 0 : *(char *)way == 'x' ? 5 : 6);
	if (*(char *)way != 't')
		print_child(child, 0, *(char *)way == 'x' ? 5 : 1);
}

static void leave_by_vfork(void)
{
	static char ways[] = "txc";

	for (unsigned int i = 0; i < number; i++)
		load_and_unload(vfork_inside, &ways[i % 3]);
}

static void at_exit(void)
{
	write_some(2);
	if (!in_child)
		print_results();
	fflush(stdout);
}

static void exit_inside(void *unused)
{
	(void)unused;
	left++;
	write_some(1);
	exit(in_child ? 41 : 42);
}

static void leave_by_exit(void)
{
	atexit(at_exit);
	for (unsigned int i = 0; i < number; i++) {
		pid_t child = fork();

		if (child < 0)
			give_up("fork");
		if (!child) {
			in_child = true;
			load_and_unload(exit_inside, NULL);
		}
		check_end(child, 41);
		print_child(child, 0, 3);
	}
	load_and_unload(exit_inside, NULL);
}

static void execute_inside(void *unused)
{
	char text[16];
	char *const words[] = { self, "calls", text, NULL };

	(void)unused;
	snprintf(text, sizeof(text), "%u", number);
	execve(self, words, environ);
}

static void leave_by_execute(void)
{
	write_some(3);
	load_and_unload(execute_inside, NULL);
	wrong++;
}

/* ---- crowds ---- */

static pthread_barrier_t all;

static void *call(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&all);
	write_some(CALLS);
	done++;
	pthread_barrier_wait(&all);
	return NULL;
}

static void call_from_threads(void)
{
	pthread_t *threads = calloc(number, sizeof(*threads));
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	pthread_barrier_init(&all, NULL, number);
	for (unsigned int i = 0; i < number; i++)
		if (!threads || pthread_create(&threads[i], &attributes, call, NULL))
			give_up("pthread_create");
	for (unsigned int i = 0; i < number; i++)
		pthread_join(threads[i], NULL);
	free(threads);
}

static void load_library(void)
{
	void *library = dlopen("libQAic.so", RTLD_NOW | RTLD_LOCAL);
	int (*close_it)(void *qpc) = library ? (int (*)(void *))dlsym(library, "qaicCloseQpc") : NULL;

	if (!close_it || !close_it(NULL)) /* there is no such object: the call says so */
		wrong++;
	else
		done++;
	if (library && dlclose(library))
		wrong++;
}

static void load_libraries(void)
{
	for (unsigned int i = 0; i < number; i++)
		load_library();
}

static void only_call(void)
{
	write_some(number);
	_exit(wrong ? 99 : number);
}

static const struct {
	const char *name;
	void (*run)(void);
} scenarios[] = {
	{ "longjmp", leave_by_longjmp },  { "cancel", leave_by_cancel }, { "fork", leave_by_fork },
	{ "vfork", leave_by_vfork },	  { "exit", leave_by_exit },	 { "execute", leave_by_execute },
	{ "threads", call_from_threads }, { "dlopen", load_libraries },	 { "calls", only_call },
};

int main(int count, char **words)
{
	bool waits = count > 1 && !strcmp(words[1], "--wait-for-go");
	size_t i = 0;

	words += waits;
	if (count - waits != 3)
		return 2;
	scenario = words[1];
	number = strtoul(words[2], NULL, 10);
	while (strcmp(scenarios[i].name, scenario) != 0)
		if (++i == sizeof(scenarios) / sizeof(scenarios[0]))
			return 2;
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		give_up("/proc/self/exe");
	if (waits)
		wait_for_go();
	setvbuf(stdout, NULL, _IOLBF, 0); /* children must not print what is in a buffer */
	scenarios[i].run();
	print_results();
	return wrong ? 1 : 0;
}
