/* SPDX-License-Identifier: BSD-2-Clause */
/* A name of a type comes from any ELF file: the answer comes soon, fits and has no characters that the name lacks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "target/elf/type_name.h"
#include "tests/fuzz/require.h"

#define SECONDS_MAX 1.0 /* some milliseconds without sanitizers */
#define TEXT_MAX 1024

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static double seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Room of exactly so many bytes: a byte behind it must not be written. */
static char *room(size_t size)
{
	char *text = malloc(size ? size : 1);

	require(text != NULL);
	memset(text, 'x', size ? size : 1);
	return text;
}

static void check_text(const char *text)
{
	require(text[0] != '\0');
	for (; *text; text++)
		require((unsigned char)*text >= ' ' && *text != 0x7f);
}

/* The text fits into its length and a NUL, and into nothing smaller. */
static void check_sizes(const char *mangled, const char *text)
{
	size_t length = strlen(text);
	char *exact = room(length + 1), *small = room(length);

	require(type_name_read(mangled, exact, length + 1) == 0);
	require(strcmp(exact, text) == 0);
	require(type_name_read(mangled, small, length) == -ENOTSUP);
	require(small[0] == '\0');
	free(exact);
	free(small);
}

/* The same bytes as the symbol of a function. */
static void check_function(const char *mangled, char *text)
{
	char *symbol = room(strlen(mangled) + 3);
	int error;

	sprintf(symbol, "_Z%s", mangled);
	error = type_name_read_function(symbol, text, TEXT_MAX);
	require(error == 0 || error == -ENOTSUP);
	if (error)
		require(text[0] == '\0');
	else
		check_text(text);
	free(symbol);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *mangled = strndup((const char *)data, size), *text = room(TEXT_MAX);
	double begin = seconds();
	int error;

	require(mangled != NULL);
	error = type_name_read(mangled, text, TEXT_MAX);
	require(error == 0 || error == -ENOTSUP);
	require(memchr(text, 0, TEXT_MAX) != NULL);
	if (error) {
		require(text[0] == '\0');
	} else {
		check_text(text);
		check_sizes(mangled, text);
	}
	check_function(mangled, text);
	require(seconds() - begin < SECONDS_MAX);
	free(mangled);
	free(text);
	return 0;
}
