/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/pmu.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/log.h"
#include "base/core/vec.h"

static int read_at(char *text, const char *format, va_list list)
{
	char path[PATH_MAX];
	ssize_t length = vsnprintf(path, sizeof(path), format, list);
	int file;

	text[0] = '\0';
	if (length < 0 || (size_t)length >= sizeof(path))
		return -ENAMETOOLONG;
	file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file < 0)
		return -errno;
	length = read(file, text, SYSFS_FILE_MAX);
	if (length < 0)
		length = -errno;
	close(file);
	if (length < 0 || length == SYSFS_FILE_MAX) {
		text[0] = '\0';
		return length < 0 ? (int)length : -EFBIG;
	}
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	text[length] = '\0';
	return (int)length;
}

int sysfs_read(char *text, const char *format, ...)
{
	va_list list;
	int length;

	va_start(list, format);
	length = read_at(text, format, list);
	va_end(list);
	return length;
}

int sysfs_read_number(__u64 *number, const char *format, ...)
{
	char text[SYSFS_FILE_MAX], *end;
	va_list list;
	int length;

	va_start(list, format);
	length = read_at(text, format, list);
	va_end(list);
	if (length < 0)
		return length;
	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return errno || *end ? -EINVAL : 0;
}

/* ---- lists of CPUs ---- */

static int add_range(struct cpus *cpus, long first, long last)
{
	int error = 0;

	if (last < first || (cpus->count && first <= cpus->items[cpus->count - 1]))
		return -EINVAL;
	for (; first <= last && !error; first++)
		error = vec_push(cpus->items, cpus->count, (int)first);
	return error;
}

static bool read_number(const char **text, long *number)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	*number = strtol(*text, &end, 10);
	*text = end;
	return *number >= 0 && *number < CPUS_MAX;
}

int cpus_parse(const char *text, struct cpus *cpus)
{
	long first = 0, last;
	int error = 0;

	*cpus = (struct cpus){ 0 };
	while (*text && !error) {
		error = read_number(&text, &first) ? 0 : -EINVAL;
		last = first;
		if (!error && *text == '-') {
			text++;
			error = read_number(&text, &last) ? 0 : -EINVAL;
		}
		if (!error)
			error = add_range(cpus, first, last);
		if (!error && *text == ',' && text[1])
			text++;
		else if (!error && *text)
			error = -EINVAL;
	}
	if (error)
		cpus_free(cpus);
	return error;
}

static int list_read(const char *sysfs, const char *which, struct cpus *cpus)
{
	char text[SYSFS_FILE_MAX];
	int error = sysfs_read(text, "%s/devices/system/cpu/%s", sysfs, which);

	*cpus = (struct cpus){ 0 };
	if (error > 0)
		error = cpus_parse(text, cpus) ?: 1;
	return error == 1 ? 0 : error_is_shortage(error) ? error : -EIO;
}

int cpus_online(const char *sysfs, struct cpus *cpus)
{
	return list_read(sysfs, "online", cpus);
}

int cpus_possible(const char *sysfs, struct cpus *cpus)
{
	return list_read(sysfs, "possible", cpus);
}

int cpus_copy(const struct cpus *from, struct cpus *to)
{
	*to = (struct cpus){ 0 };
	if (!from->count)
		return 0;
	to->items = reallocarray(NULL, from->count, sizeof(*to->items));
	if (!to->items)
		return -ENOMEM;
	memcpy(to->items, from->items, from->count * sizeof(*to->items));
	to->count = from->count;
	return 0;
}

bool cpus_have(const struct cpus *cpus, int cpu)
{
	for (size_t i = 0; i < cpus->count; i++)
		if (cpus->items[i] == cpu)
			return true;
	return false;
}

void cpus_free(struct cpus *cpus)
{
	free(cpus->items);
	*cpus = (struct cpus){ 0 };
}

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
	struct pmu_format format = { 0 };
	int error;

	if (!parse_format(text, &format))
		return 0;
	format.name = strdup(name);
	error = format.name ? vec_push(pmu->formats, pmu->format_count, format) : -ENOMEM;
	if (error)
		free(format.name);
	return error;
}

static void event_free(struct pmu_event *event)
{
	free(event->name);
	free(event->terms);
	free(event->unit);
}

/* Not EIO: drivers return it as well. */
static bool lacks(int error)
{
	return error != -EIO && error_is_shortage(error);
}

/* Its length; 0: the event has none. An event whose scale could not be read would have other values. */
static int read_attribute(char *text, const char *folder, const char *name, const char *attribute)
{
	int length = sysfs_read(text, "%s/%s.%s", folder, name, attribute);

	return length < 0 && !lacks(length) ? 0 : length;
}

static int add_event(struct pmu *pmu, const char *folder, const char *name, const char *terms)
{
	struct pmu_event event = { 0 };
	char text[SYSFS_FILE_MAX];
	int error = read_attribute(text, folder, name, "scale");

	event.scale = error > 0 ? parse_scale(text) : 1;
	if (error >= 0) {
		error = read_attribute(text, folder, name, "snapshot");
		event.snapshot = error > 0 && !strcmp(text, "1");
	}
	if (error >= 0)
		error = read_attribute(text, folder, name, "unit");
	if (error >= 0) {
		event.name = strdup(name);
		event.terms = strdup(terms);
		event.unit = strdup(text);
		error = event.name && event.terms && event.unit ? vec_push(pmu->events, pmu->event_count, event) :
								  -ENOMEM;
	}
	if (error)
		event_free(&event);
	return error;
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
	int error, length;

	length = sysfs_read(text, "%s/cpumask", folder);
	if (length <= 0 && !lacks(length))
		length = sysfs_read(text, "%s/cpus", folder);
	if (length <= 0)
		return lacks(length) ? length : 0;
	error = cpus_parse(text, &pmu->mask);
	pmu->has_mask = !error && pmu->mask.count;
	return error == -ENOMEM ? error : 0;
}

int pmu_read_mask(const char *sysfs, const char *name, struct cpus *mask)
{
	struct pmu pmu = { 0 };
	char folder[PATH_MAX];
	int error;

	snprintf(folder, sizeof(folder), "%s/" DEVICES "/%s", sysfs, name);
	error = read_mask(&pmu, folder);
	*mask = pmu.mask;
	return error ?: pmu.has_mask ? 0 : -ENOENT;
}

/* 1: it is one; 0: it has no type. */
static int pmu_read(const char *folder, const char *name, struct pmu *pmu)
{
	__u64 type;
	int error = sysfs_read_number(&type, "%s/type", folder);

	*pmu = (struct pmu){ 0 };
	if (error || type > UINT32_MAX)
		return lacks(error) ? error : 0;
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
	struct pmu pmu;
	int result = pmu_read(folder, name, &pmu);

	if (result <= 0)
		return result;
	result = vec_push(pmus->items, pmus->count, pmu);
	if (result)
		pmu_free(&pmu);
	return result;
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

/* The first that matches counts. */
static const struct pmu_catalogue_entry entries[] = {
	/* i915 adds the frequency up over time, independent of readers. */
	{ "i915*", "actual-frequency*", COUNTING_PER_SECOND, "MHz", "frequency that the GT ran at" },
	{ "i915*", "requested-frequency*", COUNTING_PER_SECOND, "MHz", "frequency that was asked for" },
	{ "i915*", "*-busy", COUNTING_SUM, NULL, "time in which the engine executed" },
	{ "i915*", "*-wait", COUNTING_SUM, NULL, "time in which the engine waited for an event" },
	{ "i915*", "*-sema", COUNTING_SUM, NULL, "time in which the engine waited for a semaphore" },
	{ "i915*", "interrupts", COUNTING_SUM, NULL, "interrupts of the device" },
	{ "i915*", "rc6-residency*", COUNTING_SUM, NULL, "time in which the GT was powered down" },
	{ "i915*", "software-gt-awake-time*", COUNTING_SUM, NULL, "time in which the driver kept the GT awake" },
	{ "xe*", "gt-actual-frequency*", COUNTING_BY_READ, "MHz", "frequency that the GT runs at" },
	{ "xe*", "gt-requested-frequency*", COUNTING_BY_READ, "MHz", "frequency that is asked for" },
	{ "xe*", "gt-c6-residency*", COUNTING_SUM, NULL, "time in which the GT was powered down" },
	{ "xe*", "engine-active-ticks*", COUNTING_SUM, NULL,
	  "ticks in which the engine executed: share of engine-total-ticks" },
	{ "xe*", "engine-total-ticks*", COUNTING_SUM, NULL, "ticks of the engine's clock" },
	{ "amdgpu_df*", "*", COUNTING_SUM, NULL, "data fabric of the device" },
	{ "amdgpu*", "xgmi_link*", COUNTING_SUM, NULL, "beats of data sent over a link to another device" },
	{ "nvidia_nvlink_c2c*", "*", COUNTING_SUM, NULL, "NVLink between chips" },
	{ "nvidia_cnvlink*", "*", COUNTING_SUM, NULL, "coherent NVLink to another socket" },
	{ "nvidia_pcie*", "*", COUNTING_SUM, NULL, "PCIe root complex" },
	{ "nvidia_scf*", "*", COUNTING_SUM, NULL, "coherency fabric of the socket" },
	{ "nvidia_*", "*", COUNTING_SUM, NULL, "NVIDIA system on chip" },
	{ "power*", "energy-pkg", COUNTING_SUM, NULL, "energy of the processor package" },
	{ "power*", "energy-ram", COUNTING_SUM, NULL, "energy of the memory" },
	{ "power*", "energy-gpu", COUNTING_SUM, NULL, "energy of the processor's own GPU" },
	{ "power*", "energy-psys", COUNTING_SUM, NULL, "energy of the platform" },
	{ "power*", "energy-core*", COUNTING_SUM, NULL, "energy of the processor's cores" },
	{ "msr", "tsc", COUNTING_SUM, NULL, "time stamp counter" },
	{ "msr", "aperf", COUNTING_SUM, NULL, "cycles while not idle" },
	{ "msr", "mperf", COUNTING_SUM, NULL, "cycles of the reference clock while not idle" },
	{ "msr", "irperf", COUNTING_SUM, NULL, "instructions retired" },
	{ "msr", "smi", COUNTING_SUM, NULL, "system management interrupts" },
	{ "uncore_imc*", "*read*", COUNTING_SUM, NULL, "memory controller: data read" },
	{ "uncore_imc*", "*write*", COUNTING_SUM, NULL, "memory controller: data written" },
	{ "uncore_imc*", "*", COUNTING_SUM, NULL, "memory controller" },
	{ "uncore_iio*", "*", COUNTING_SUM, NULL, "I/O stack: traffic of PCIe ports" },
	{ "uncore_upi*", "*", COUNTING_SUM, NULL, "link between sockets" },
	{ "uncore_*", "*", COUNTING_SUM, NULL, "Intel processor, outside its cores" },
	{ "amd_df", "*", COUNTING_SUM, NULL, "AMD data fabric" },
	{ "amd_umc*", "*", COUNTING_SUM, NULL, "AMD memory controller" },
	{ "amd_l3", "*", COUNTING_SUM, NULL, "AMD L3 cache" },
	{ "amd_iommu*", "*", COUNTING_SUM, NULL, "AMD I/O memory management unit" },
	{ "dmar*", "*", COUNTING_SUM, NULL, "Intel I/O memory management unit" },
	{ "dsa*", "*", COUNTING_SUM, NULL, "Intel data streaming accelerator" },
	{ "iax*", "*", COUNTING_SUM, NULL, "Intel in-memory analytics accelerator" },
	{ "smmuv3_pmcg_*", "*", COUNTING_SUM, NULL, "Arm I/O memory management unit" },
	{ "arm_cmn*", "*", COUNTING_SUM, NULL, "Arm coherent mesh network" },
};

static const char *const of_each_cpu[] = { "software", "tracepoint",  "breakpoint", "kprobe", "uprobe",
					   "cpu",      "cpu_core",    "cpu_atom",   "msr",    "armv*",
					   "ibs_*",    "cstate_core", "hardware" };

const struct pmu_catalogue_entry *pmu_catalogue_find(const char *pmu, const char *event)
{
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (!fnmatch(entries[i].pmu, pmu, 0) && !fnmatch(entries[i].event, event, 0))
			return &entries[i];
	return NULL;
}

bool pmu_of_each_cpu(const char *pmu)
{
	for (size_t i = 0; i < sizeof(of_each_cpu) / sizeof(of_each_cpu[0]); i++)
		if (!fnmatch(of_each_cpu[i], pmu, 0))
			return true;
	return false;
}

#define OPEN_MAX 16 /* values that an event leaves open */

struct term {
	const char *name;
	size_t name_length;
	const char *value; /* NULL: none */
	size_t value_length;
};

struct encoding {
	const struct pmu *pmu;
	struct event_encoding *code;
	struct term open[OPEN_MAX]; /* of the event, and not given yet */
	size_t open_count;
	char *reason;
};

static int fail(struct encoding *encoding, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int fail(struct encoding *encoding, int error, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(encoding->reason, EVENT_TERMS_REASON_MAX, format, list);
	va_end(list);
	return error;
}

static bool next_term(const char **text, const char *end, struct term *term)
{
	const char *comma, *equals;

	if (*text >= end)
		return false;
	comma = memchr(*text, ',', (size_t)(end - *text));
	comma = comma ? comma : end;
	equals = memchr(*text, '=', (size_t)(comma - *text));
	*term = (struct term){ .name = *text, .name_length = (size_t)((equals ? equals : comma) - *text) };
	if (equals) {
		term->value = equals + 1;
		term->value_length = (size_t)(comma - term->value);
	}
	*text = comma + 1;
	return true;
}

/* As for perf, 010 is ten. */
static bool parse_value(const struct term *term, __u64 *value)
{
	bool hexadecimal = term->value_length > 2 && !memcmp(term->value, "0x", 2);
	const char *allowed = hexadecimal ? "0123456789abcdefABCDEF" : "0123456789";
	char text[32], *digits = hexadecimal ? text + 2 : text;

	if (!term->value_length || term->value_length >= sizeof(text))
		return false;
	memcpy(text, term->value, term->value_length);
	text[term->value_length] = '\0';
	errno = 0;
	*value = strtoull(digits, NULL, hexadecimal ? 16 : 10);
	return digits + strspn(digits, allowed) == text + term->value_length && !errno;
}

/* -1: none of them. */
static int config_number(const struct term *term)
{
	if (term->name_length == 6 && !memcmp(term->name, "config", 6))
		return 0;
	if (term->name_length == 7 && !memcmp(term->name, "config", 6) && term->name[6] >= '1' &&
	    term->name[6] < '0' + PMU_CONFIGS)
		return term->name[6] - '0';
	return -1;
}

/* Puts the lowest bit of the value into the lowest of bits, and so on; returns what is left over of the value. */
static __u64 spread(__u64 value, __u64 bits, __u64 *result)
{
	__u64 lowest;

	for (*result = 0; bits; bits &= bits - 1) {
		lowest = bits & -bits;
		if (value & 1)
			*result |= lowest;
		value >>= 1;
	}
	return value;
}

static void forget_open(struct encoding *encoding, const struct term *term)
{
	for (size_t i = 0; i < encoding->open_count; i++)
		if (encoding->open[i].name_length == term->name_length &&
		    !memcmp(encoding->open[i].name, term->name, term->name_length))
			encoding->open[i--] = encoding->open[--encoding->open_count];
}

static int apply(struct encoding *encoding, const struct term *term)
{
	const struct pmu_format *format = pmu_format(encoding->pmu, term->name, term->name_length);
	int config = format ? (int)format->config : config_number(term);
	__u64 bits = format ? format->bits : ~0ull, value = 1, placed;

	if (config < 0)
		return fail(encoding, -ENOENT, "%s has no event and no term %.*s", encoding->pmu->name,
			    (int)term->name_length, term->name);
	if (term->value && !parse_value(term, &value))
		return fail(encoding, -EINVAL, "%.*s: expected a number, got '%.*s'", (int)term->name_length,
			    term->name, (int)term->value_length, term->value);
	if (spread(value, bits, &placed))
		return fail(encoding, -EINVAL, "%.*s has %d bits: it is at most %" PRIu64, (int)term->name_length,
			    term->name, __builtin_popcountll(bits),
			    (uint64_t)((1ull << __builtin_popcountll(bits)) - 1));
	encoding->code->config[config] = (encoding->code->config[config] & ~bits) | placed;
	forget_open(encoding, term);
	return 0;
}

/* The event's terms in sysfs. */
static int apply_event(struct encoding *encoding, const struct pmu_event *event)
{
	const char *text = event->terms, *end = text + strlen(text);
	struct term term;
	int error = 0;

	if (encoding->code->event)
		return fail(encoding, -EINVAL, "%s and %s: expected one event", encoding->code->event->name,
			    event->name);
	encoding->code->event = event;
	while (!error && next_term(&text, end, &term)) {
		if (term.value_length != 1 || *term.value != '?')
			error = apply(encoding, &term);
		else if (encoding->open_count < OPEN_MAX)
			encoding->open[encoding->open_count++] = term;
	}
	return error;
}

int event_terms_encode(const struct pmu *pmu, const char *terms, size_t length, struct event_encoding *code,
		       char *reason)
{
	struct encoding encoding = { .pmu = pmu, .code = code, .reason = reason };
	const char *text = terms, *end = terms + length;
	const struct pmu_event *event;
	struct term term;
	int error = 0;

	*code = (struct event_encoding){ 0 };
	/* The event first, wherever it stands: the other terms override its terms. */
	while (!error && next_term(&text, end, &term)) {
		event = term.value ? NULL : pmu_event(pmu, term.name, term.name_length);
		if (event)
			error = apply_event(&encoding, event);
	}
	for (text = terms; !error && next_term(&text, end, &term);)
		if (term.value || !pmu_event(pmu, term.name, term.name_length))
			error = apply(&encoding, &term);
	if (!error && encoding.open_count)
		error = fail(&encoding, -EINVAL, "%s wants a number for %.*s: %s/%s,%.*s=N/", code->event->name,
			     (int)encoding.open[0].name_length, encoding.open[0].name, pmu->name, code->event->name,
			     (int)encoding.open[0].name_length, encoding.open[0].name);
	if (!error && !length)
		error = fail(&encoding, -EINVAL, "expected an event between the slashes");
	return error;
}
