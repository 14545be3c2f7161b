/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that come and go: each is loaded under a name of its own, run a few times and unloaded. */
#include "workload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MAX 5

/* The names of --names, one after the other. */
static struct {
	char *text;
	const char **items;
	size_t count;
} names;

static void __attribute__((noreturn)) fail(const char *what)
{
	fprintf(stderr, "workload: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void names_read(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t length;
	long size;

	if (!file || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 1)
		fail(path);
	rewind(file);
	names.text = malloc(size);
	names.items = calloc(size, sizeof(*names.items));
	if (!names.text || !names.items)
		fail(path);
	length = fread(names.text, 1, size, file);
	fclose(file);
	if (length != (size_t)size || names.text[length - 1]) {
		fprintf(stderr, "workload: %s: each name must end with NUL\n", path);
		exit(2);
	}
	for (const char *name = names.text; name < names.text + length; name += strlen(name) + 1)
		names.items[names.count++] = name;
}

void churn_prepare(struct run *run)
{
	const struct options *options = run->options;

	run->churned = calloc((size_t)options->churn * options->seconds + 1, 1);
	if (!run->churned)
		fail("churn");
	if (options->names && !names.count)
		names_read(options->names);
}

/* From the number alone, so that it is known what should have been. */
static unsigned int runs_of(unsigned long number)
{
	return 1 + (number * 2654435761u >> 16) % RUNS_MAX;
}

void churn_one(struct worker *worker, unsigned long number)
{
	const struct scenario *scenario = scenario_find(worker->run->options->runtime);
	const char *name;
	char made[32];

	if (!scenario->churn) {
		fprintf(stderr, "workload: no --churn with %s\n", scenario->runtime);
		exit(2);
	}
	snprintf(made, sizeof(made), "churn-%06lu", number);
	name = names.count ? names.items[number % names.count] : made;
	scenario->churn(worker, name, runs_of(number));
	worker->run->churned[number] = runs_of(number);
}

void churn_print(const struct run *run, FILE *out)
{
	size_t last = (size_t)run->options->churn * run->options->seconds;

	while (last && !run->churned[last - 1])
		last--;
	fprintf(out, ",\"churn\":{\"names\":%zu,\"runs\":[", names.count);
	for (size_t i = 0; i < last; i++)
		fprintf(out, "%s%u", i ? "," : "", run->churned[i]);
	fputs("]}", out);
}
