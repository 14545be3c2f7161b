/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table victim			calls the functions of the plugin until its input ends, and prints what was wrong
 * table attacker SLOT OFFSET	puts an address inside a function into a slot of its table, and waits until its input ends
 *
 * Both print a line when they have begun. The last line of the victim: {"calls":N,"wrong":N,"changed":[...]}: calls that did not
 * return what they should, and at which offsets within the functions there are other bytes than in the file.
 */
#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin.h"

static bool input_ends(int milliseconds)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&input, 1, milliseconds) > 0;
}

/* The plugin's code as its file has it. */
static void read_file(char bytes[PLUGIN_FUNCTIONS * FUNCTION_SIZE])
{
	Dl_info info;
	FILE *file;

	/* The first segment begins with the file, so that addresses and offsets differ by where it lies. */
	if (!dladdr(plugin_code(), &info))
		abort();
	file = fopen(info.dli_fname, "re");
	if (!file || fseek(file, plugin_code() - (char *)info.dli_fbase, SEEK_SET) ||
	    fread(bytes, 1, PLUGIN_FUNCTIONS * FUNCTION_SIZE, file) != PLUGIN_FUNCTIONS * FUNCTION_SIZE)
		abort();
	fclose(file);
}

static void victim(void)
{
	static char bytes[PLUGIN_FUNCTIONS * FUNCTION_SIZE], now[PLUGIN_FUNCTIONS * FUNCTION_SIZE];
	const struct plugin_table *table = GetPjrtApi();
	bool changed[FUNCTION_SIZE] = { false };
	unsigned long calls = 0, wrong = 0;
	const char *comma = "";

	read_file(bytes);
	do {
		for (size_t i = 0; i < PLUGIN_FUNCTIONS; i++, calls++)
			wrong += ((int (*)(void))(void *)table->slots[i])() != ANSWER;
		memcpy(now, plugin_code(), sizeof(now));
		for (size_t i = 0; i < sizeof(now); i++)
			changed[i % FUNCTION_SIZE] |= now[i] != bytes[i];
	} while (!input_ends(1));
	printf("{\"calls\":%lu,\"wrong\":%lu,\"changed\":[", calls, wrong);
	for (size_t i = 0; i < FUNCTION_SIZE; i++) {
		if (!changed[i])
			continue;
		printf("%s%zu", comma, i);
		comma = ",";
	}
	puts("]}");
}

int main(int argc, char **argv)
{
	bool attacks = argc == 4 && !strcmp(argv[1], "attacker");

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (attacks)
		GetPjrtApi()->slots[atoi(argv[2])] += atoi(argv[3]);
	printf("ready %d\n", (int)getpid());
	if (!attacks) {
		victim();
		return 0;
	}
	do
		GetPjrtApi();
	while (!input_ends(10));
	return 0;
}
