/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * storm [--wait-for-go] KIND COUNT PARALLEL [MORE]: forks COUNT children, PARALLEL at once at the most, which
 *	exit	end at once
 *	sleep	live for 100 ms
 *	execute	execute /bin/true
 *	call	make 3 calls
 *	mixed	each one of these, in turn
 *	nested	make 3 calls, as do their own children, for which they wait
 *	spawn	execute /bin/true, in the memory of their parent until then
 * and end with a status of their own, which is checked. It is an error if one is seen stopped. MORE: children that are forked after
 * another line from standard input.
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harm.h"

#define CALLS 3

enum kind { EXIT, SLEEP, EXECUTE, CALL, MIXED, NESTED, SPAWN, KINDS };

static const char *const kinds[] = { "exit", "sleep", "execute", "call", "mixed", "nested", "spawn" };

struct child {
	pid_t pid;
	int status;
};

static struct child *children; /* PARALLEL of them; pid 0: free */
static unsigned int parallel, running, right, stopped;

static void make_calls(void)
{
	for (int i = 0; i < CALLS; i++)
		if (!write_tensor())
			_exit(125);
}

static _Noreturn void be_child(enum kind kind, int status)
{
	pid_t pid;
	int its;

	switch (kind) {
	case SLEEP:
		usleep(100000);
		break;
	case EXECUTE:
		execl("/bin/true", "true", NULL);
		_exit(126);
	case CALL:
		make_calls();
		break;
	case NESTED:
		pid = fork();
		make_calls();
		if (!pid)
			_exit(0);
		if (pid < 0 || waitpid(pid, &its, 0) != pid || its)
			_exit(124);
		break;
	default:
		break;
	}
	_exit(status);
}

static pid_t spawn(void)
{
	char *words[] = { "true", NULL };
	pid_t pid;

	if (posix_spawn(&pid, "/bin/true", NULL, NULL, words, NULL))
		give_up("posix_spawn");
	return pid;
}

static void start(enum kind kind, unsigned int number)
{
	struct child *child = children;
	int status = kind == EXECUTE || kind == SPAWN ? 0 : number % 100;
	pid_t pid = kind == SPAWN ? spawn() : fork();

	if (pid < 0)
		give_up("fork");
	if (!pid)
		be_child(kind, status);
	while (child->pid)
		child++;
	*child = (struct child){ pid, status };
	running++;
}

/* Waits for one to end. */
static void reap(void)
{
	int status;
	pid_t pid = waitpid(-1, &status, WUNTRACED);

	if (pid < 0)
		give_up("waitpid");
	if (WIFSTOPPED(status)) {
		stopped++;
		return;
	}
	for (unsigned int i = 0; i < parallel; i++) {
		if (children[i].pid != pid)
			continue;
		right += WIFEXITED(status) && WEXITSTATUS(status) == children[i].status;
		children[i].pid = 0;
		running--;
		return;
	}
}

/* How many processes make calls. */
static unsigned int make(enum kind kind, unsigned int number)
{
	unsigned int calling = 0;

	for (unsigned int i = 0; i < number; i++) {
		enum kind this = kind == MIXED ? i % MIXED : kind;

		while (running == parallel)
			reap();
		start(this, i);
		calling += this == NESTED ? 2 : this == CALL;
	}
	while (running)
		reap();
	return calling;
}

int main(int count, char **words)
{
	bool waits = count > 1 && !strcmp(words[1], "--wait-for-go");
	unsigned int number, more, calling;
	enum kind kind = 0;
	uint64_t begin;

	words += waits;
	count -= waits;
	if (count != 4 && count != 5)
		return 2;
	while (strcmp(kinds[kind], words[1]) != 0)
		if (++kind == KINDS)
			return 2;
	number = strtoul(words[2], NULL, 10);
	parallel = strtoul(words[3], NULL, 10);
	more = count == 5 ? strtoul(words[4], NULL, 10) : 0;
	children = calloc(parallel, sizeof(*children));
	if (!children)
		give_up("calloc");
	if (waits)
		wait_for_go();
	begin = now();
	calling = make(kind, number);
	if (more) {
		wait_for_go();
		calling += make(kind, more);
	}
	number += more;
	printf("{\"program\":\"storm\",\"pid\":%d,\"results\":{\"forked\":%u,\"right\":%u,\"stopped\":%u},"
	       "\"family\":{\"nrt_tensor_write\":%u},\"ns\":%lu,\"calls\":",
	       (int)getpid(), number, right, stopped, calling * CALLS, (unsigned long)(now() - begin));
	calls_print(stdout);
	printf("}\n");
	return right == number && !stopped ? 0 : 1;
}
