/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls on several stacks of one thread.
 *
 * stacks [--wait-for-go] [--main] SCHEDULE...
 *
 * Stacks 0 to 4 lie above each other; 2 is the thread's own, the others are those of coroutines. --main: the thread is
 * the main thread, whose stack lies above all. Each schedule is followed on a new thread; its steps are a stack and
 * what is done there:
 *	(	a model is loaded; what follows happens while the load is open, until
 *	)	the load returns
 *	.	a call, an execution
 *	h l	a signal, whose handler does that and loads a model, on the signal stack that is the highest (4), lowest (0)
 *	H L	the handler leaves with siglongjmp() from inside a load
 *	a b	200 signals at whatever moment, on the highest, lowest; calls are made meanwhile
 * A load that is still open at the end never returns. "results" has, for each schedule, what was done.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "harm.h"

#define STACKS 5
#define THREAD 2 /* the number of the thread's own stack */
#define STACK_SIZE (256 << 10)
#define ASYNCHRONOUS 200
#define PERIOD_NS 300000

static char *stacks; /* STACKS of them */
static ucontext_t contexts[STACKS];
static bool begun[STACKS];
static const char *schedule, *position;
static unsigned int opened, loads, plain, handled, wrong; /* of one schedule */
static unsigned long left;				  /* loads that never return */
static volatile sig_atomic_t asynchronous;
static struct object *model;
static sigjmp_buf back;

static void interpret(unsigned int self);

static char *stack_at(unsigned int number)
{
	return stacks + number * (size_t)STACK_SIZE;
}

static void start_coroutine(unsigned int self)
{
	interpret(self);
	abort(); /* only the thread comes to the end */
}

static void switch_to(unsigned int self, unsigned int to)
{
	if (to != THREAD && !begun[to]) {
		begun[to] = true;
		getcontext(&contexts[to]);
		contexts[to].uc_stack.ss_sp = stack_at(to);
		contexts[to].uc_stack.ss_size = STACK_SIZE;
		contexts[to].uc_link = NULL;
		makecontext(&contexts[to], (void (*)(void))start_coroutine, 1, to);
	}
	if (swapcontext(&contexts[self], &contexts[to]))
		give_up("swapcontext");
}

/* ---- signals ---- */

static void jump(void *unused)
{
	(void)unused;
	left++;
	siglongjmp(back, 1);
}

static void plain_calls(void)
{
	wrong += !write_tensor();
	wrong += !execute(model);
	plain++;
}

static void load_inside(void *unused)
{
	(void)unused;
	plain_calls();
}

static void handle(int number, siginfo_t *info, void *context)
{
	struct object *loaded;

	(void)context;
	if (info->si_code == SI_TIMER) {
		wrong += !write_tensor(); /* what was interrupted may hold a lock */
		asynchronous++;
		return;
	}
	handled++;
	if (number == SIGUSR2)
		load_around(jump, NULL, &loaded);
	plain_calls();
	if (load_around(load_inside, NULL, &loaded))
		wrong += !unload(loaded);
	else
		wrong++;
}

static void set_signal_stack(unsigned int number)
{
	const stack_t stack = { .ss_sp = stack_at(number), .ss_size = STACK_SIZE };

	if (sigaltstack(&stack, NULL))
		give_up("sigaltstack");
}

static void take_signal(unsigned int stack, int number)
{
	set_signal_stack(stack);
	if (!sigsetjmp(back, 1))
		raise(number);
}

static void take_asynchronous(unsigned int stack)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	const struct itimerspec period = { { 0, PERIOD_NS }, { 0, PERIOD_NS } };
	timer_t timer;

	event._sigev_un._tid = syscall(SYS_gettid);
	set_signal_stack(stack);
	asynchronous = 0;
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &period, NULL))
		give_up("timer_create");
	while (asynchronous < ASYNCHRONOUS) {
		struct object *loaded;

		wrong += !write_tensor();
		wrong += !load(&loaded) || !unload(loaded);
	}
	timer_delete(timer);
	handled += ASYNCHRONOUS;
}

/* ---- steps ---- */

static void be_inside(void *self)
{
	interpret((uintptr_t)self);
}

static void load_here(unsigned int self)
{
	volatile uint64_t sentinel = 0x5e471e1 + self;
	struct object *loaded;

	opened++;
	if (load_around(be_inside, (void *)(uintptr_t)self, &loaded)) /* NOLINT(performance-no-int-to-ptr) */
		wrong += !unload(loaded);
	else
		wrong++;
	wrong += sentinel != 0x5e471e1 + self;
	loads++;
}

/* Returns at the load's end, or, on the thread, at the schedule's. */
static void interpret(unsigned int self)
{
	for (;;) {
		unsigned int stack = *position ? position[0] - '0' : THREAD;

		if (stack != self) {
			switch_to(self, stack);
			continue;
		}
		if (!*position)
			return;
		position += 2;
		switch (position[-1]) {
		case '(':
			load_here(self);
			break;
		case ')':
			return;
		case '.':
			plain_calls();
			break;
		case 'h':
			take_signal(4, SIGUSR1);
			break;
		case 'l':
			take_signal(0, SIGUSR1);
			break;
		case 'H':
			take_signal(4, SIGUSR2);
			break;
		case 'L':
			take_signal(0, SIGUSR2);
			break;
		case 'a':
			take_asynchronous(4);
			break;
		case 'b':
			take_asynchronous(0);
			break;
		default:
			give_up("%s", schedule);
		}
	}
}

static void *follow(void *text)
{
	schedule = position = text;
	memset(begun, 0, sizeof(begun));
	opened = loads = plain = handled = wrong = 0;
	interpret(THREAD);
	left += opened - loads;
	return NULL;
}

/* The thread's stack is one of ours. */
static void follow_on_thread(char *text)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	if (pthread_attr_setstack(&attributes, stack_at(THREAD), STACK_SIZE) ||
	    pthread_create(&thread, &attributes, follow, text))
		give_up("pthread_create");
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
}

static void check_schedule(const char *text)
{
	int open[STACKS] = { 0 };

	for (; *text; text += 2) {
		if (text[0] < '0' || text[0] >= '0' + STACKS || !text[1] || !strchr("().hlHLab", text[1]))
			exit(2);
		open[text[0] - '0'] += (text[1] == '(') - (text[1] == ')');
		if (open[text[0] - '0'] < 0)
			exit(2);
	}
}

int main(int count, char **words)
{
	const struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	bool waits = false, main_thread = false;
	unsigned int all_wrong = 0;
	int i = 1;

	for (; i < count && !strncmp(words[i], "--", 2); i++) {
		waits |= !strcmp(words[i], "--wait-for-go");
		main_thread |= !strcmp(words[i], "--main");
	}
	stacks = mmap(NULL, STACKS * (size_t)STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stacks == MAP_FAILED)
		give_up("mmap");
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	if (waits)
		wait_for_go();
	if (!load(&model))
		give_up("load");
	printf("{\"program\":\"stacks\",\"pid\":%d,\"results\":{", (int)getpid());
	for (int first = i; i < count; i++) {
		check_schedule(words[i]);
		if (main_thread)
			follow(words[i]);
		else
			follow_on_thread(words[i]);
		printf("%s\"%s\":{\"loads\":%u,\"plain\":%u,\"handled\":%u,\"wrong\":%u}", i > first ? "," : "",
		       words[i], loads, plain, handled, wrong);
		all_wrong += wrong;
	}
	printf("},\"left\":%lu,\"calls\":", left);
	calls_print(stdout);
	printf("}\n");
	return all_wrong ? 1 : 0;
}
