/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * storm [--wait-for-go] KIND COUNT PARALLEL: forks COUNT children, PARALLEL at once at the most, which
 *	exit	end at once
 *	sleep	live for 100 ms
 *	execute	execute /bin/true
 *	call	make 3 calls
 *	mixed	each one of these, in turn
 * and end with a status of their own, which is checked. It is an error if one is seen stopped.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harm.h"

#define CALLS 3

static const char *const kinds[] = { "exit", "sleep", "execute", "call", "mixed" };

struct child {
	pid_t pid;
	int status;
};

static struct child *children; /* PARALLEL of them; pid 0: free */
static unsigned int parallel, running, right, stopped;

static _Noreturn void be_child(unsigned int kind, int status)
{
	switch (kind) {
	case 1:
		usleep(100000);
		break;
	case 2:
		execl("/bin/true", "true", NULL);
		_exit(126);
	case 3:
		for (int i = 0; i < CALLS; i++)
			if (!write_tensor())
				_exit(125);
		break;
	}
	_exit(status);
}

static void start(unsigned int kind, unsigned int number)
{
	struct child *child = children;
	int status = kind == 2 ? 0 : number % 100;
	pid_t pid = fork();

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

int main(int count, char **words)
{
	bool waits = count > 1 && !strcmp(words[1], "--wait-for-go");
	unsigned int kind = 0, number, calling = 0;
	uint64_t begin;

	words += waits;
	if (count - waits != 4)
		return 2;
	while (strcmp(kinds[kind], words[1]) != 0)
		if (++kind == sizeof(kinds) / sizeof(kinds[0]))
			return 2;
	number = strtoul(words[2], NULL, 10);
	parallel = strtoul(words[3], NULL, 10);
	children = calloc(parallel, sizeof(*children));
	if (!children)
		give_up("calloc");
	if (waits)
		wait_for_go();
	begin = now();
	for (unsigned int i = 0; i < number; i++) {
		unsigned int this = kind < 4 ? kind : i % 4;

		while (running == parallel)
			reap();
		start(this, i);
		calling += this == 3;
	}
	while (running)
		reap();
	printf("{\"program\":\"storm\",\"pid\":%d,\"results\":{\"forked\":%u,\"right\":%u,\"stopped\":%u},"
	       "\"family\":{\"nrt_tensor_write\":%u},\"ns\":%lu,\"calls\":",
	       (int)getpid(), number, right, stopped, calling * CALLS, (unsigned long)(now() - begin));
	calls_print(stdout);
	printf("}\n");
	return right == number && !stopped ? 0 : 1;
}
