/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Marks regions as it is asked:
 *
 *	marks NAMES THREADS TIMES WORD...
 *
 * Region N has line N of the names in the file NAMES, each of which ends in NUL; a name that is "NULL" is none. Each of
 * the threads does what the words say so many times:
 *
 *	+N -N	starts and stops region N
 *	N=M	the bytes of the name of region N become those of region M
 *	fork	both go on with what follows; the parent waits for its child at the end
 *	exec	the program is executed anew, with the words that follow
 *	exit	the process ends, and prints nothing
 *	wait	prints {"ready"...} and waits for a line
 *
 * At the end each process prints one line of JSON: what its regions have kept.
 */
#include <xputrace/region.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define REGIONS_MAX 256
#define NAME_MAX_LENGTH 8192
#define THREADS_MAX 64

static struct xpt_region regions[REGIONS_MAX];
static char names[REGIONS_MAX][NAME_MAX_LENGTH];
static unsigned int count;
static char **words, **arguments;
static unsigned long times;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void names_read(const char *path)
{
	FILE *file = fopen(path, "r");
	int byte, length = 0;

	if (!file)
		fail(path);
	while ((byte = getc(file)) != EOF && count < REGIONS_MAX) {
		names[count][length++] = (char)byte;
		if (byte && length < NAME_MAX_LENGTH)
			continue;
		xpt_region_init(&regions[count], names[count]);
		if (!strcmp(names[count], "NULL"))
			regions[count].name = NULL;
		count++;
		length = 0;
	}
	fclose(file);
}

static void wait_for_line(void)
{
	char line[8];

	printf("{\"ready\":true,\"pid\":%d}\n", getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

static void exec_again(char **rest)
{
	rest -= 4; /* over words that were there */
	memmove(rest, arguments, 4 * sizeof(*rest));
	execv("/proc/self/exe", rest);
	fail("exec");
}

static void word_follow(char **word)
{
	char *end;
	unsigned long number = strtoul(*word + (**word == '+' || **word == '-'), &end, 10), other;

	if (!strcmp(*word, "fork")) {
		if (fork() < 0)
			fail("fork");
	} else if (!strcmp(*word, "exec")) {
		exec_again(word + 1);
	} else if (!strcmp(*word, "exit")) {
		_exit(0);
	} else if (!strcmp(*word, "wait")) {
		wait_for_line();
	} else if (number >= count) {
		fail(*word);
	} else if (**word == '+') {
		xpt_region_start(&regions[number]);
	} else if (**word == '-') {
		xpt_region_stop(&regions[number]);
	} else if (*end == '=') {
		other = strtoul(end + 1, NULL, 10);
		memcpy(names[number], names[other], NAME_MAX_LENGTH);
	}
}

static void *work(void *unused)
{
	unsigned long i;
	char **word;

	for (i = 0; i < times; i++)
		for (word = words; *word; word++)
			word_follow(word);
	return unused;
}

static void print(void)
{
	struct xpt_region_totals totals;
	unsigned int i;

	printf("{\"runtime\":\"region\",\"pid\":%d,\"enabled\":%d,\"regions\":[", getpid(), xpt_region_enabled());
	for (i = 0; i < count; i++) {
		xpt_region_get(&regions[i], &totals);
		printf("%s{\"entries\":%" PRIu64 ",\"total\":%" PRIu64 ",\"unmatched\":%" PRIu64 "}", i ? "," : "",
		       totals.entries, totals.total_time, totals.unmatched);
	}
	printf("]}\n");
}

int main(int argc, char **argv)
{
	unsigned long threads = argc > 4 ? strtoul(argv[2], NULL, 10) : 0, i;
	pthread_t thread[THREADS_MAX];

	if (!threads || threads > THREADS_MAX) {
		fprintf(stderr, "usage: marks NAMES THREADS TIMES WORD...\n");
		return 2;
	}
	arguments = argv;
	words = argv + 4;
	times = strtoul(argv[3], NULL, 10);
	names_read(argv[1]);
	if (threads == 1)
		work(NULL);
	for (i = 0; i < threads && threads > 1; i++)
		if (pthread_create(&thread[i], NULL, work, NULL))
			fail("thread");
	for (i = 0; i < threads && threads > 1; i++)
		pthread_join(thread[i], NULL);
	print();
	fflush(stdout);
	while (wait(NULL) > 0)
		;
	return 0;
}
