/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program to trace: the stand-in of AWS Neuron, which says when it is ready, waits for the go, and prints in the end how
 * often it has run what. Its programs are called neuron-0.0, neuron-0.1...
 */
#ifndef PUBLIC_TARGET_H
#define PUBLIC_TARGET_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM_0 "neuron-0.0"
#define PROGRAM_1 "neuron-0.1"

struct target {
	pid_t pid;
	FILE *input, *output;
	char *line; /* what it has printed last */
	size_t size;
};

/* Ends the test program when the target cannot be started: there is nothing to test without. */
static inline void target_give_up(const char *what)
{
	perror(what);
	exit(99);
}

/* calls: executions by each of its threads, 0: until target_stop(); rate: of them in a second. Returns when it is ready. */
static inline struct target target_start(const char *calls, const char *rate, const char *threads)
{
	const char *program = getenv("PUBLIC_WORKLOAD");
	struct target target;
	int in[2], out[2];

	memset(&target, 0, sizeof(target));
	if (!program || pipe(in) || pipe(out))
		target_give_up("pipe, PUBLIC_WORKLOAD");
	target.pid = fork();
	if (target.pid < 0)
		target_give_up("fork");
	if (target.pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		close(in[1]);
		close(out[0]);
		execl(program, program, "nrt", "--wait-for-go", "--programs", "2", "--calls", calls, "--rate", rate,
		      "--threads", threads, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	target.input = fdopen(in[1], "w");
	target.output = fdopen(out[0], "r");
	if (!target.input || !target.output || getline(&target.line, &target.size, target.output) <= 0)
		target_give_up("target");
	return target;
}

static inline void target_go(struct target *target)
{
	fputs("\n", target->input);
	fflush(target->input);
}

static inline void target_stop(const struct target *target)
{
	kill(target->pid, SIGTERM);
}

/* Waits for its end and takes what it prints. */
static inline void target_end(struct target *target)
{
	int status = -1;

	if (getline(&target->line, &target->size, target->output) <= 0)
		target_give_up("result of the target");
	fclose(target->input);
	fclose(target->output);
	if (waitpid(target->pid, &status, 0) != target->pid || status != 0)
		target_give_up("end of the target");
}

static inline void target_free(struct target *target)
{
	free(target->line);
	target->line = NULL;
}

/* Sums "count" of the entries that begin with this function and program. */
static inline unsigned long long target_count(const struct target *target, const char *function, const char *program)
{
	const char *end = strstr(target->line, "],\"inferences\":["), *entry = target->line;
	unsigned long long sum = 0;
	char begin[200];

	snprintf(begin, sizeof(begin), "{\"function\":\"%s\",\"program\":\"%s\"", function, program);
	while ((entry = strstr(entry, begin)) && (!end || entry < end)) {
		entry = strstr(entry, "\"count\":");
		sum += strtoull(entry + strlen("\"count\":"), NULL, 10);
	}
	return sum;
}

/* How often it has run the program: half of its executions are asynchronous. */
static inline unsigned long long target_inferences(const struct target *target, const char *program)
{
	return target_count(target, "nrt_execute", program) + target_count(target, "nrta_execute_schedule", program);
}

#endif
