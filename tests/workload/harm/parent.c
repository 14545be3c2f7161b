/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A parent that counts every SIGCHLD and every stop of its children.
 *
 * parent [--wait-for-go] family N	N times a child that calls the runtime, one that executes this program, one that
 *					does so after vfork(), and one with a child of its own; one after the other
 * parent [--wait-for-go] sync N	N times each: children that stop themselves before they call the runtime or
 *					execute this program, and a child that is stopped while it calls
 * parent child N			makes N calls, and ends with N
 *
 * Each line {"child":PID,"calls":{...}} has what a child has made, when the parent knows it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harm.h"

#define STOPPED_MS 50 /* how long a child stays stopped */

extern char **environ;

static char self[4096];
static volatile sig_atomic_t signals[8];		       /* by si_code */
static unsigned int exited, killed, stopped, continued, wrong; /* what wait reported */

static void count_signal(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	signals[info->si_code & 7]++;
}

static void sleep_ms(unsigned int ms)
{
	uint64_t end = now() + ms * 1000000ull;

	while (now() < end)
		usleep(1000); /* signals interrupt it */
}

static void print_child(pid_t child, unsigned long writes)
{
	printf("{\"child\":%d,\"calls\":{\"nrt_tensor_write\":%lu}}\n", (int)child, writes);
}

static _Noreturn void be_child(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		wrong += !write_tensor();
	_exit(wrong ? 99 : count);
}

static _Noreturn void execute_child(unsigned int count)
{
	char text[16];
	char *const words[] = { self, "child", text, NULL };

	snprintf(text, sizeof(text), "%u", count);
	execve(self, words, environ);
	_exit(98);
}

/* Until the child has ended: it must end with status. */
static void wait_end(pid_t child, int status)
{
	int answer;

	for (;;) {
		if (waitpid(child, &answer, WUNTRACED | WCONTINUED) < 0) {
			if (errno == EINTR)
				continue;
			give_up("waitpid");
		}
		if (WIFSTOPPED(answer)) {
			stopped++;
		} else if (WIFCONTINUED(answer)) {
			continued++;
		} else {
			killed += WIFSIGNALED(answer);
			exited += WIFEXITED(answer);
			wrong += !WIFEXITED(answer) || WEXITSTATUS(answer) != status;
			return;
		}
	}
}

/* ---- children that nobody stops ---- */

static void family_child(unsigned int kind, unsigned int count)
{
	pid_t child = kind == 2 ? vfork() : fork();

	if (child < 0)
		give_up("fork");
	if (!child && kind == 0)
		be_child(count);
	if (!child && kind < 3)
		execute_child(count);
	if (!child) {
		pid_t grandchild = fork();

		if (!grandchild)
			execute_child(count);
		wait_end(grandchild, count);
		print_child(grandchild, count);
		be_child(count);
	}
	wait_end(child, count);
	print_child(child, count);
}

/* ---- children that are stopped, by themselves or by the parent ---- */

/* The next thing that wait says of the child, which is to be a stop or its continuation. */
static void wait_change(pid_t child, bool stop)
{
	sig_atomic_t *seen = (sig_atomic_t *)&signals[stop ? CLD_STOPPED : CLD_CONTINUED], before = *seen;
	int answer;

	if (!stop)
		kill(child, SIGCONT);
	while (waitpid(child, &answer, stop ? WUNTRACED : WCONTINUED) < 0)
		if (errno != EINTR)
			give_up("waitpid");
	wrong += stop ? !WIFSTOPPED(answer) || WSTOPSIG(answer) != SIGSTOP : !WIFCONTINUED(answer);
	/* The signal of a continuation may come after wait knows of it: no other one may come before that. */
	for (unsigned int i = 0; !stop && *(volatile sig_atomic_t *)seen == before && i < 2000; i++)
		usleep(1000);
}

static void sync_child(bool executes, unsigned int count)
{
	int go[2];
	pid_t child;
	char byte;

	if (pipe2(go, O_CLOEXEC))
		give_up("pipe2");
	child = fork();
	if (child < 0)
		give_up("fork");
	if (!child) {
		raise(SIGSTOP);
		if (read(go[0], &byte, 1) != 1)
			_exit(97);
		if (executes)
			execute_child(count);
		be_child(count);
	}
	wait_change(child, true);
	sleep_ms(STOPPED_MS);
	wait_change(child, false);
	wrong += write(go[1], "", 1) != 1;
	close(go[0]);
	close(go[1]);
	wait_end(child, count);
	print_child(child, count);
}

static char state_of(pid_t child)
{
	char path[32], text[256] = "", *end;
	int file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)child);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0 || read(file, text, sizeof(text) - 1) < 0)
		give_up("%s", path);
	close(file);
	end = strrchr(text, ')');
	return end ? end[2] : '?';
}

struct shared {
	_Atomic unsigned long made;
	_Atomic bool enough;
};

static void stop_while_it_calls(struct shared *shared)
{
	unsigned long made;
	pid_t child;

	*shared = (struct shared){ 0 };
	child = fork();
	if (child < 0)
		give_up("fork");
	while (!child && !shared->enough) {
		wrong += !write_tensor();
		shared->made++;
		usleep(500);
	}
	if (!child)
		_exit(wrong ? 99 : 7);
	while (shared->made < 20)
		usleep(1000);
	for (int i = 0; i < 3; i++) {
		kill(child, SIGSTOP);
		wait_change(child, true);
		made = shared->made;
		sleep_ms(STOPPED_MS);
		wrong += shared->made != made || state_of(child) != 'T';
		wait_change(child, false);
		while (shared->made < made + 20)
			usleep(1000);
	}
	shared->enough = true;
	wait_end(child, 7);
	print_child(child, shared->made);
}

static void print_results(void)
{
	printf("{\"program\":\"parent\",\"pid\":%d,\"results\":{\"signals\":{\"exited\":%d,\"killed\":%d,\"dumped\":%d,"
	       "\"trapped\":%d,\"stopped\":%d,\"continued\":%d},\"exited\":%u,\"killed\":%u,\"stopped\":%u,"
	       "\"continued\":%u,\"wrong\":%u},\"calls\":",
	       (int)getpid(), signals[CLD_EXITED], signals[CLD_KILLED], signals[CLD_DUMPED], signals[CLD_TRAPPED],
	       signals[CLD_STOPPED], signals[CLD_CONTINUED], exited, killed, stopped, continued, wrong);
	calls_print(stdout);
	printf("}\n");
}

int main(int count, char **words)
{
	struct sigaction action = { .sa_sigaction = count_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
	bool waits = count > 1 && !strcmp(words[1], "--wait-for-go");
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int number;

	words += waits;
	if (count - waits != 3 || shared == MAP_FAILED)
		return 2;
	number = strtoul(words[2], NULL, 10);
	if (!strcmp(words[1], "child"))
		be_child(number);
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		give_up("/proc/self/exe");
	sigaction(SIGCHLD, &action, NULL);
	if (waits)
		wait_for_go();
	setvbuf(stdout, NULL, _IOLBF, 0); /* children must not print what is in a buffer */
	for (unsigned int i = 0; i < number; i++) {
		if (!strcmp(words[1], "family")) {
			for (unsigned int kind = 0; kind < 4; kind++)
				family_child(kind, 1 + i % 90);
		} else {
			sync_child(false, 1 + i % 90);
			sync_child(true, 1 + i % 90);
			stop_while_it_calls(shared);
		}
	}
	print_results();
	return wrong ? 1 : 0;
}
