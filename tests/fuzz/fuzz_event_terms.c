/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a PMU says of its formats and events, and the terms of a caller. The first line is the PMU: files with vertical bars
 * between them, "event config:0-7|umask config1:8-15"; those that begin with @ are of the events: "@busy event=1,umask=?".
 * The rest of the input are the terms.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "counter/pmu.h"
#include "tests/fuzz/require.h"

#define FILES_MAX 8

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* Folder of this process, with one PMU. */
static char folder[64];

static const char *in_folder(const char *above, const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/bus/event_source/devices/toy%s%s", folder, above, name);
	return path;
}

static void write_file(const char *above, const char *name, const char *text, size_t length)
{
	FILE *file = fopen(in_folder(above, name), "w");

	require(file != NULL);
	fwrite(text, 1, length, file);
	fclose(file);
}

static void remove_folder(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	(void)!system(command);
}

static void make_folder(void)
{
	char command[256];

	strcpy(folder, "/tmp/xputrace-fuzz-XXXXXX");
	require(mkdtemp(folder) != NULL);
	snprintf(command, sizeof(command), "mkdir -p %s/bus/event_source/devices/toy/format %s/%s", folder, folder,
		 "bus/event_source/devices/toy/events");
	require(system(command) == 0);
	write_file("/", "type", "7\n", 2);
	atexit(remove_folder);
}

/* Names are taken as they are where a file can have them, and short. */
static int is_file_name(const char *name, size_t length)
{
	return length && length < 64 && !memchr(name, '/', length) && !memchr(name, 0, length) && name[0] != '.';
}

static void write_part(const char *part, size_t length, char names[][80], size_t *count)
{
	const char *above = length && *part == '@' ? "/events/" : "/format/", *space;
	char name[64];

	if (length && *part == '@') {
		part++;
		length--;
	}
	space = length ? memchr(part, ' ', length) : NULL;
	if (!space || *count == FILES_MAX || !is_file_name(part, (size_t)(space - part)))
		return;
	snprintf(name, sizeof(name), "%.*s", (int)(space - part), part);
	snprintf(names[(*count)++], 80, "%s%s", above, name);
	write_file(above, name, space + 1, length - (size_t)(space + 1 - part));
}

/* Reads the PMU that stands in the text. */
static void read_pmu(const char *text, size_t length, struct pmus *pmus)
{
	char names[FILES_MAX][80];
	const char *end = text + length, *bar;
	size_t count = 0;

	for (; text < end; text = bar + 1) {
		bar = memchr(text, '|', (size_t)(end - text));
		bar = bar ? bar : end;
		write_part(text, (size_t)(bar - text), names, &count);
	}
	require(!pmus_read(folder, pmus));
	while (count--)
		unlink(in_folder("", names[count]));
}

static void check_cpus(const char *text)
{
	struct cpus cpus;
	int error = cpus_parse(text, &cpus);

	require(error == 0 || error == -EINVAL);
	require(!error || (!cpus.items && !cpus.count));
	for (size_t i = 0; i < cpus.count; i++)
		require(cpus.items[i] >= 0 && cpus.items[i] < CPUS_MAX && (!i || cpus.items[i] > cpus.items[i - 1]));
	cpus_free(&cpus);
}

static void check_pmu(const struct pmu *pmu)
{
	for (size_t i = 0; i < pmu->format_count; i++)
		require(pmu->formats[i].bits && pmu->formats[i].config < PMU_CONFIGS);
	for (size_t i = 0; i < pmu->event_count; i++)
		require(pmu->events[i].scale == pmu->events[i].scale);
}

static void check_terms(const struct pmu *pmu, const char *terms, size_t length)
{
	char *exact = malloc(length ? length : 1), reason[EVENT_TERMS_REASON_MAX] = "";
	struct event_encoding code, again;
	int error;

	/* Nothing behind the end may be read. */
	require(exact != NULL);
	if (length)
		memcpy(exact, terms, length);
	error = event_terms_encode(pmu, exact, length, &code, reason);
	require(error == 0 || error == -ENOENT || error == -EINVAL);
	require(memchr(reason, 0, sizeof(reason)) != NULL);
	require(!error == !reason[0]);
	require(event_terms_encode(pmu, exact, length, &again, reason) == error);
	require(!memcmp(code.config, again.config, sizeof(code.config)) && code.event == again.event);
	require(!code.event || (code.event >= pmu->events && code.event < pmu->events + pmu->event_count));
	free(exact);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	const char *text = (const char *)data, *line = size ? memchr(data, '\n', size) : NULL, *terms;
	size_t length = line ? (size_t)(line - text) : size;
	struct pmus pmus;
	char *copy;

	if (!folder[0])
		make_folder();
	terms = line ? line + 1 : text + size;
	read_pmu(text, length, &pmus);
	require(pmus.count == 1);
	check_pmu(&pmus.items[0]);
	check_terms(&pmus.items[0], terms, (size_t)(text + size - terms));
	pmus_free(&pmus);
	copy = strndup(terms, (size_t)(text + size - terms));
	require(copy != NULL);
	check_cpus(copy);
	free(copy);
	return 0;
}
