/* SPDX-License-Identifier: BSD-2-Clause */
/* xputrace without arguments: which processes use a runtime now, and top for the one that is chosen. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xputrace/stream.h>

#include "base/core/cgroup.h"
#include "base/core/vec.h"
#include "cli/session.h"

#define MEASURED 1000000000ull /* ns */
#define RUNTIMES_MAX 64	       /* of which processes are marked; fits into the bits below */

struct process {
	pid_t pid;
	uint64_t runtimes; /* bits of found.names */
	unsigned int programs;
	uint64_t calls;
};

struct pattern {
	char *glob;
	unsigned int runtime;
};

struct found {
	struct process *processes;
	size_t count;
	char *names[RUNTIMES_MAX];
	unsigned int name_count;
	struct pattern *patterns;
	size_t pattern_count;
};

/* RUNTIMES_MAX: there are too many, or there is no memory. */
static unsigned int runtime_of(struct found *found, const char *name)
{
	for (unsigned int i = 0; i < found->name_count; i++)
		if (!strcmp(found->names[i], name))
			return i;
	if (found->name_count == RUNTIMES_MAX)
		return RUNTIMES_MAX;
	found->names[found->name_count] = strdup(name);
	return found->names[found->name_count] ? found->name_count++ : RUNTIMES_MAX;
}

static int on_runtime(void *context, const struct xpt_runtime_info *info)
{
	struct found *found = context;
	unsigned int runtime = runtime_of(found, info->name);

	for (size_t i = 0; runtime < RUNTIMES_MAX && i < info->library_count; i++) {
		if (vec_reserve(found->patterns, found->pattern_count))
			return -ENOMEM;
		found->patterns[found->pattern_count] = (struct pattern){ strdup(info->libraries[i]), runtime };
		if (!found->patterns[found->pattern_count++].glob)
			return -ENOMEM;
	}
	return 0;
}

/* NULL: no memory. */
static struct process *process_of(struct found *found, pid_t pid)
{
	for (size_t i = 0; i < found->count; i++)
		if (found->processes[i].pid == pid)
			return &found->processes[i];
	if (vec_reserve(found->processes, found->count))
		return NULL;
	found->processes[found->count] = (struct process){ .pid = pid };
	return &found->processes[found->count++];
}

/* The runtimes that have a library with one of their usual names in the process. */
static uint64_t mapped_runtimes(const struct found *found, pid_t pid)
{
	char path[64], line[4352], last[4352] = "";
	uint64_t runtimes = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return 0;
	while (fgets(line, sizeof(line), maps)) {
		const char *slash = strchr(line, '/') ? strrchr(line, '/') : NULL;

		line[strcspn(line, "\n")] = '\0';
		if (!slash || !strcmp(slash, last))
			continue;
		strcpy(last, slash);
		for (size_t i = 0; i < found->pattern_count; i++)
			if (!fnmatch(found->patterns[i].glob, slash + 1, 0))
				runtimes |= 1ull << found->patterns[i].runtime;
	}
	fclose(maps);
	return runtimes;
}

static int find_mapped(struct found *found)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	int error = 0;

	if (!folder)
		return -errno;
	while (!error && (entry = readdir(folder))) {
		char *end;
		pid_t pid = (pid_t)strtol(entry->d_name, &end, 10);
		uint64_t runtimes = !*end && pid > 0 && pid != getpid() ? mapped_runtimes(found, pid) : 0;
		struct process *process = runtimes ? process_of(found, pid) : NULL;

		if (process)
			process->runtimes = runtimes;
		else if (runtimes)
			error = -ENOMEM;
	}
	closedir(folder);
	return error;
}

static int on_program(void *context, const struct xpt_program_info *program)
{
	struct found *found = context;
	struct process *process = process_of(found, program->pid);
	unsigned int runtime = runtime_of(found, program->runtime);

	if (!process)
		return -ENOMEM;
	process->programs++;
	process->calls += program->calls;
	if (runtime < RUNTIMES_MAX)
		process->runtimes |= 1ull << runtime;
	return 0;
}

static void ignore_report(void *context, const struct xpt_profile_report *report)
{
	(void)context;
	(void)report;
}

static void interrupt(void *session)
{
	xpt_session_interrupt(session);
}

/* Counts the calls of all programs for a while. 0 or -errno: -EINTR when it was interrupted. */
static int measure(struct found *found)
{
	XPT_OPTS(xpt_session_options, options, .all_processes = 1, .drivers = "none", .log = print_message,
		 .log_level = XPT_LOG_WARN);
	XPT_OPTS(xpt_stream_options, counted, .match = "", .summary = 1, .callback = ignore_report);
	struct xpt_stream *stream = NULL;
	struct xpt_session *session;
	int error = xpt_session_create(&options, &session);

	if (error)
		return error;
	end_on_signals(interrupt, session);
	error = xpt_stream_create(session, &counted, &stream);
	if (!error)
		error = xpt_stream_start(stream) ?: xpt_session_start(session);
	if (!error)
		error = xpt_session_wait(session, MEASURED);
	if (error >= 0)
		error = xpt_session_programs(session, on_program, found);
	if (stream)
		xpt_stream_destroy(stream);
	end_on_signals(NULL, NULL);
	xpt_session_destroy(session);
	return error;
}

static int by_calls(const void *left, const void *right)
{
	const struct process *a = left, *b = right;

	return (a->calls < b->calls) - (a->calls > b->calls) ?: (a->pid > b->pid) - (a->pid < b->pid);
}

/* Name and user of a process that may have ended. */
static void read_process(pid_t pid, char *name, size_t size, char *user, size_t user_size)
{
	struct passwd *entry;
	struct stat status;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	*name = '\0';
	if (file && fgets(name, (int)size, file))
		name[strcspn(name, "\n")] = '\0';
	if (file)
		fclose(file);
	snprintf(path, sizeof(path), "/proc/%d", pid);
	*user = '\0';
	if (stat(path, &status))
		return;
	entry = getpwuid(status.st_uid);
	if (entry)
		snprintf(user, user_size, "%s", entry->pw_name);
	else
		snprintf(user, user_size, "%u", status.st_uid);
}

static void print_processes(const struct found *found)
{
	printf("%3s %7s %-8s %-15s %-12s %8s %8s  %s\n", "", "PID", "USER", "PROCESS", "CONTAINER", "PROGRAMS",
	       "CALLS/S", "RUNTIMES");
	for (size_t i = 0; i < found->count; i++) {
		const struct process *process = &found->processes[i];
		char name[64], user[64];
		struct cgroup_ids ids;
		const char *comma = "";

		read_process(process->pid, name, sizeof(name), user, sizeof(user));
		cgroup_read(&ids, process->pid);
		printf("%3zu %7d ", i + 1, process->pid);
		print_name(stdout, user, 8);
		printf(" ");
		print_name(stdout, name, 15);
		printf(" %-12.12s %8u %8" PRIu64 "  ", ids.container, process->programs, process->calls);
		for (unsigned int each = 0; each < found->name_count; each++) {
			if (!(process->runtimes & 1ull << each))
				continue;
			printf("%s", comma);
			print_name(stdout, found->names[each], 0);
			comma = ",";
		}
		printf("\n");
	}
}

/* Runs top on what is chosen, with all rights that this program was started with; returns when nothing is. The exit status. */
static int choose(const struct found *found)
{
	char line[64], pid[16];
	uint64_t number = 0; /* all */

	for (;;) {
		printf("\nwhich one? 1 to %zu, a: all of them, q: none: ", found->count);
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		line[strcspn(line, "\n")] = '\0';
		if (!strcmp(line, "q") || !*line)
			return 0;
		if (!strcmp(line, "a") || (parse_number(line, &number) && number >= 1 && number <= found->count))
			break;
		number = 0;
	}
	fflush(stdout);
	if (number) {
		snprintf(pid, sizeof(pid), "%d", found->processes[number - 1].pid);
		execl("/proc/self/exe", "xputrace", "top", "-p", pid, NULL);
	} else {
		execl("/proc/self/exe", "xputrace", "top", "-a", NULL);
	}
	return exit_failed(-errno);
}

int choose_process(void)
{
	XPT_OPTS(xpt_target_options, options, .log = print_message, .log_level = XPT_LOG_WARN);
	struct found found = {};
	int result;

	privileges_reduce(XPT_LINK_AUTO);
	printf("Looking for processes that use a runtime, for one second...\n");
	fflush(stdout);
	result = xpt_target_runtimes(&options, on_runtime, &found) ?: measure(&found) ?: find_mapped(&found);
	if (result == -EINTR) {
		result = 0;
	} else if (result) {
		result = exit_failed(result);
	} else if (!found.count) {
		printf("No process uses a runtime that xputrace knows. `xputrace list runtimes` names them; `xputrace --help`\n"
		       "lists the commands; `xputrace top -- COMMAND` starts and watches one.\n");
	} else {
		qsort(found.processes, found.count, sizeof(*found.processes), by_calls);
		print_processes(&found);
		result = choose(&found);
	}
	for (size_t i = 0; i < found.pattern_count; i++)
		free(found.patterns[i].glob);
	for (unsigned int i = 0; i < found.name_count; i++)
		free(found.names[i]);
	free(found.patterns);
	free(found.processes);
	return result;
}
