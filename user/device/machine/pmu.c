/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/machine/pmu.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "device/machine/sysfs_file.h"

#define DEVICES "bus/event_source/devices"

/* Beside an event "busy" there may be busy.scale, busy.unit, busy.snapshot and busy.per-pkg. */
static bool is_attribute(const char *name)
{
	static const char *const endings[] = { ".scale", ".unit", ".snapshot", ".per-pkg" };
	size_t length = strlen(name), ending;

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		ending = strlen(endings[i]);
		if (length > ending && !strcmp(name + length - ending, endings[i]))
			return true;
	}
	return false;
}

/* "config1:0-3,8-11" */
static bool parse_format(const char *text, struct pmu_format *format)
{
	struct cpus bits; /* ranges are written in the same way */

	if (strncmp(text, "config", 6))
		return false;
	text += 6;
	format->config = 0;
	if (*text >= '1' && *text < '0' + PMU_CONFIGS)
		format->config = (unsigned int)(*text++ - '0');
	if (*text++ != ':' || cpus_parse(text, &bits))
		return false;
	for (size_t i = 0; i < bits.count; i++) {
		if (bits.items[i] > 63) {
			cpus_free(&bits);
			return false;
		}
		format->bits |= 1ull << bits.items[i];
	}
	cpus_free(&bits);
	return format->bits;
}

static double parse_scale(const char *text)
{
	locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	char *end = (char *)text;
	double scale = plain ? strtod_l(text, &end, plain) : 1;

	if (plain)
		freelocale(plain);
	return end == text || *end || !isfinite(scale) ? 1 : scale;
}

static int add_format(struct pmu *pmu, const char *name, const char *text)
{
	struct pmu_format format = { 0 }, *grown;

	if (!parse_format(text, &format))
		return 0;
	grown = reallocarray(pmu->formats, pmu->format_count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	pmu->formats = grown;
	format.name = strdup(name);
	if (!format.name)
		return -ENOMEM;
	pmu->formats[pmu->format_count++] = format;
	return 0;
}

static void event_free(struct pmu_event *event)
{
	free(event->name);
	free(event->terms);
	free(event->unit);
}

static int add_event(struct pmu *pmu, const char *folder, const char *name, const char *terms)
{
	struct pmu_event event = { 0 }, *grown;
	char text[SYSFS_FILE_MAX];

	grown = reallocarray(pmu->events, pmu->event_count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	pmu->events = grown;
	event.name = strdup(name);
	event.terms = strdup(terms);
	event.scale = sysfs_read(text, "%s/%s.scale", folder, name) > 0 ? parse_scale(text) : 1;
	event.snapshot = sysfs_read(text, "%s/%s.snapshot", folder, name) > 0 && !strcmp(text, "1");
	sysfs_read(text, "%s/%s.unit", folder, name);
	event.unit = strdup(text);
	if (!event.name || !event.terms || !event.unit) {
		event_free(&event);
		return -ENOMEM;
	}
	pmu->events[pmu->event_count++] = event;
	return 0;
}

/* Not EIO: drivers return it as well. */
static bool lacks(int error)
{
	return error != -EIO && error_is_shortage(error);
}

static int read_folder(struct pmu *pmu, const char *above, bool events)
{
	char text[SYSFS_FILE_MAX], *folder;
	struct dirent *entry;
	DIR *directory;
	int error = 0, length;

	if (asprintf(&folder, "%s/%s", above, events ? "events" : "format") < 0)
		return -ENOMEM;
	directory = opendir(folder);
	if (!directory && lacks(-errno))
		error = -errno;
	while (directory && !error && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.' || (events && is_attribute(entry->d_name)))
			continue;
		length = sysfs_read(text, "%s/%s", folder, entry->d_name);
		if (lacks(length))
			error = length;
		if (length <= 0)
			continue;
		error = events ? add_event(pmu, folder, entry->d_name, text) : add_format(pmu, entry->d_name, text);
	}
	if (directory)
		closedir(directory);
	free(folder);
	return error;
}

static int compare_names(const void *left, const void *right)
{
	return strverscmp(*(const char *const *)left, *(const char *const *)right);
}

/* For structs with the name as first member. */
static void sort_by_name(void *items, size_t count, size_t size)
{
	if (count)
		qsort(items, count, size, compare_names);
}

static void pmu_free(struct pmu *pmu)
{
	for (size_t i = 0; i < pmu->format_count; i++)
		free(pmu->formats[i].name);
	for (size_t i = 0; i < pmu->event_count; i++)
		event_free(&pmu->events[i]);
	free(pmu->formats);
	free(pmu->events);
	free(pmu->name);
	cpus_free(&pmu->mask);
}

/* Core PMUs of hybrid processors have `cpus`, all others `cpumask`. */
static int read_mask(struct pmu *pmu, const char *folder)
{
	char text[SYSFS_FILE_MAX];
	int error;

	if (sysfs_read(text, "%s/cpumask", folder) <= 0 && sysfs_read(text, "%s/cpus", folder) <= 0)
		return 0;
	error = cpus_parse(text, &pmu->mask);
	pmu->has_mask = !error && pmu->mask.count;
	return error == -ENOMEM ? error : 0;
}

/* 1: it is one; 0: it has no type. */
static int pmu_read(const char *folder, const char *name, struct pmu *pmu)
{
	char text[SYSFS_FILE_MAX], *end;
	unsigned long type;
	int error = sysfs_read(text, "%s/type", folder);

	*pmu = (struct pmu){ 0 };
	if (error <= 0 || !isdigit((unsigned char)text[0]))
		return lacks(error) ? error : 0;
	type = strtoul(text, &end, 10);
	if (*end || type > UINT32_MAX)
		return 0;
	pmu->type = (__u32)type;
	pmu->name = strdup(name);
	error = pmu->name ? read_mask(pmu, folder) : -ENOMEM;
	if (!error)
		error = read_folder(pmu, folder, false);
	if (!error)
		error = read_folder(pmu, folder, true);
	if (error) {
		pmu_free(pmu);
		return error;
	}
	sort_by_name(pmu->formats, pmu->format_count, sizeof(*pmu->formats));
	sort_by_name(pmu->events, pmu->event_count, sizeof(*pmu->events));
	return 1;
}

static int add_pmu(struct pmus *pmus, const char *folder, const char *name)
{
	struct pmu pmu, *grown;
	int result = pmu_read(folder, name, &pmu);

	if (result <= 0)
		return result;
	grown = reallocarray(pmus->items, pmus->count + 1, sizeof(*grown));
	if (!grown) {
		pmu_free(&pmu);
		return -ENOMEM;
	}
	pmus->items = grown;
	pmus->items[pmus->count++] = pmu;
	return 0;
}

int pmus_read(const char *sysfs, struct pmus *pmus)
{
	char path[PATH_MAX], folder[PATH_MAX];
	struct dirent *entry;
	DIR *directory;
	int error = 0;

	*pmus = (struct pmus){ 0 };
	snprintf(path, sizeof(path), "%s/" DEVICES, sysfs);
	directory = opendir(path);
	if (!directory)
		return -errno;
	while (!error && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.' ||
		    snprintf(folder, sizeof(folder), "%s/%s", path, entry->d_name) >= (int)sizeof(folder))
			continue;
		error = add_pmu(pmus, folder, entry->d_name);
	}
	closedir(directory);
	if (error)
		pmus_free(pmus);
	else
		sort_by_name(pmus->items, pmus->count, sizeof(*pmus->items));
	return error;
}

void pmus_free(struct pmus *pmus)
{
	for (size_t i = 0; i < pmus->count; i++)
		pmu_free(&pmus->items[i]);
	free(pmus->items);
	*pmus = (struct pmus){ 0 };
}

static bool is_named(const char *own, const char *name, size_t length)
{
	return strlen(own) == length && !memcmp(own, name, length);
}

const struct pmu_format *pmu_format(const struct pmu *pmu, const char *name, size_t length)
{
	for (size_t i = 0; i < pmu->format_count; i++)
		if (is_named(pmu->formats[i].name, name, length))
			return &pmu->formats[i];
	return NULL;
}

const struct pmu_event *pmu_event(const struct pmu *pmu, const char *name, size_t length)
{
	for (size_t i = 0; i < pmu->event_count; i++)
		if (is_named(pmu->events[i].name, name, length))
			return &pmu->events[i];
	return NULL;
}
