/* SPDX-License-Identifier: BSD-2-Clause */
/* replay FOLDER|FILE...: a fuzz target over an empty input and each file, once, without libFuzzer. */
#include <fts.h>
#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECONDS 60 /* for one input */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
int __attribute__((weak)) LLVMFuzzerInitialize(int *argc, char ***argv);

static char input[4096] = "the empty one";

/* Targets with mutators call it, but mutators are not called here. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
	(void)data;
	(void)size;
	(void)max_size;
	abort();
}

static void name_input(void)
{
	fprintf(stderr, "input: %s\n", input);
}

static void on_signal(int number)
{
	name_input();
	signal(number, SIG_DFL);
	raise(number);
}

/* The bytes end where the memory does, so that reading on is seen. */
static bool run(const char *path, size_t size)
{
	unsigned char *data = malloc(size);
	FILE *file = path ? fopen(path, "rb") : NULL;
	bool complete = data && (!path || (file && fread(data, 1, size, file) == size));

	if (file)
		fclose(file);
	if (complete) {
		alarm(SECONDS);
		LLVMFuzzerTestOneInput(data, size);
	} else {
		fprintf(stderr, "cannot read %s\n", path);
	}
	free(data);
	return complete;
}

int main(int argc, char **argv)
{
	size_t count = 1;
	FTSENT *entry;
	FTS *tree;

	__sanitizer_set_death_callback(name_input);
	signal(SIGALRM, on_signal);
	signal(SIGABRT, on_signal);
	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	if (!run(NULL, 0))
		return 1;
	tree = argc > 1 ? fts_open(argv + 1, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
	while (tree && (entry = fts_read(tree))) {
		if (entry->fts_info != FTS_F)
			continue;
		snprintf(input, sizeof(input), "%s", entry->fts_path);
		if (!run(input, (size_t)entry->fts_statp->st_size))
			return 1;
		count++;
	}
	if (tree)
		fts_close(tree);
	fprintf(stderr, "inputs: %zu\n", count); /* targets may use standard output */
	return 0;
}
