/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/fdinfo.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/vec.h"
#include "base/file/file.h"
#include "counter/counter.h"

struct part {
	const char *bytes;
	size_t length;
};

#define CLOCK_KEY "drm-total-cycles-"

/*
 * Which line makes which event. Memory that is resident is what is in use; some drivers report only what has been
 * allocated, amdgpu has reported it under a name of its own. drm-total-cycles- is the clock of the GPU and no memory, and
 * belongs to the cycles before it; drm-engine-capacity- is how many engines there are. Both come before the lines that begin alike.
 */
static const struct line_form {
	const char *key;
	const char *event; /* NULL: passed over */
	enum fdinfo_kind kind;
	unsigned int rank;
} forms[] = {
	{ "drm-engine-capacity-", NULL, FDINFO_ENGINE, 0 }, { CLOCK_KEY, NULL, FDINFO_CYCLES, 0 },
	{ "drm-engine-", "engine-", FDINFO_ENGINE, 1 },	    { "drm-cycles-", "cycles-", FDINFO_CYCLES, 1 },
	{ "drm-total-", "memory-", FDINFO_MEMORY, 1 },	    { "drm-memory-", "memory-", FDINFO_MEMORY, 2 },
	{ "drm-resident-", "memory-", FDINFO_MEMORY, 3 },
};
#define FORM_COUNT (sizeof(forms) / sizeof(forms[0]))

static bool begins(struct part part, const char *prefix)
{
	size_t length = strlen(prefix);

	return part.length >= length && memcmp(part.bytes, prefix, length) == 0;
}

static bool is(struct part part, const char *text)
{
	return part.length == strlen(text) && memcmp(part.bytes, text, part.length) == 0;
}

static struct part trim(struct part part)
{
	while (part.length && isblank((unsigned char)part.bytes[0]))
		part = (struct part){ part.bytes + 1, part.length - 1 };
	while (part.length && isspace((unsigned char)part.bytes[part.length - 1]))
		part.length--;
	return part;
}

/* Takes a decimal number and the blanks behind it off the front; false when there is none that fits. */
static bool take_number(struct part *part, __u64 *number)
{
	size_t length = 0;

	*number = 0;
	while (length < part->length && isdigit((unsigned char)part->bytes[length])) {
		if (__builtin_mul_overflow(*number, 10, number) ||
		    __builtin_add_overflow(*number, (__u64)(part->bytes[length] - '0'), number))
			return false;
		length++;
	}
	*part = trim((struct part){ part->bytes + length, part->length - length });
	return length > 0;
}

/* What a unit makes of a number; 0 when it is none of the kind. */
static __u64 unit_factor(enum fdinfo_kind kind, struct part unit)
{
	switch (kind) {
	case FDINFO_ENGINE:
		return is(unit, "ns");
	case FDINFO_CYCLES:
		return is(unit, "");
	case FDINFO_MEMORY:
		break;
	}
	return is(unit, "") ? 1 : is(unit, "KiB") ? 1 << 10 : is(unit, "MiB") ? 1 << 20 : is(unit, "GiB") ? 1 << 30 : 0;
}

/* Names of events are written between slashes and commas. */
static bool is_name(struct part name)
{
	for (size_t i = 0; i < name.length; i++)
		if (!isalnum((unsigned char)name.bytes[i]) && !strchr("-_.+", name.bytes[i]))
			return false;
	return name.length > 0;
}

static struct fdinfo_value *find_value(struct fdinfo *fdinfo, const char *event)
{
	for (size_t i = 0; i < fdinfo->value_count; i++)
		if (strcmp(fdinfo->values[i].event, event) == 0)
			return &fdinfo->values[i];
	return NULL;
}

static void add_value(struct fdinfo *fdinfo, const struct line_form *form, struct part name, __u64 raw)
{
	struct fdinfo_value value = { .kind = form->kind, .rank = form->rank, .raw = raw }, *known;

	if (!is_name(name) || strlen(form->event) + name.length >= sizeof(value.event))
		return;
	snprintf(value.event, sizeof(value.event), "%s%.*s", form->event, (int)name.length, name.bytes);
	known = find_value(fdinfo, value.event);
	if (known && known->rank < value.rank)
		*known = value;
	else if (!known && fdinfo->value_count < FDINFO_VALUES_MAX)
		fdinfo->values[fdinfo->value_count++] = value;
}

/* Of the engine's cycles, which stand before it. */
static void add_clock(struct fdinfo *fdinfo, struct part engine, struct part value)
{
	char event[FDINFO_EVENT_MAX];
	struct fdinfo_value *cycles;

	snprintf(event, sizeof(event), "cycles-%.*s", (int)engine.length, engine.bytes);
	cycles = find_value(fdinfo, event);
	if (cycles && !take_number(&value, &cycles->clock))
		cycles->clock = 0;
}

static void parse_value(struct fdinfo *fdinfo, struct part key, struct part value)
{
	for (size_t i = 0; i < FORM_COUNT; i++) {
		const struct line_form *form = &forms[i];
		size_t length = strlen(form->key);
		__u64 number, factor;

		if (!begins(key, form->key))
			continue;
		if (!strcmp(form->key, CLOCK_KEY))
			add_clock(fdinfo, (struct part){ key.bytes + length, key.length - length }, value);
		if (!form->event || !take_number(&value, &number))
			return;
		factor = unit_factor(form->kind, value);
		if (factor && number <= UINT64_MAX / factor)
			add_value(fdinfo, form, (struct part){ key.bytes + length, key.length - length },
				  number * factor);
		return;
	}
}

/* A text that does not fit is none: a part of it could be another's. */
static void copy(char *to, size_t size, struct part from)
{
	if (from.length < size && !memchr(from.bytes, 0, from.length)) {
		memcpy(to, from.bytes, from.length);
		to[from.length] = '\0';
	}
}

static void parse_line(struct fdinfo *fdinfo, bool *has_client, struct part line)
{
	const char *colon = memchr(line.bytes, ':', line.length);
	struct part key, value;

	if (!colon)
		return;
	key = (struct part){ line.bytes, (size_t)(colon - line.bytes) };
	value = trim((struct part){ colon + 1, line.length - key.length - 1 });
	if (is(key, "drm-driver"))
		copy(fdinfo->driver, sizeof(fdinfo->driver), value);
	else if (is(key, "drm-pdev"))
		copy(fdinfo->device, sizeof(fdinfo->device), value);
	else if (is(key, "drm-client-id"))
		*has_client = take_number(&value, &fdinfo->client) && !value.length;
	else
		parse_value(fdinfo, key, value);
}

int fdinfo_parse(const char *text, size_t length, struct fdinfo *fdinfo)
{
	bool has_client = false;

	fdinfo->driver[0] = fdinfo->device[0] = '\0';
	fdinfo->value_count = 0;
	while (length) {
		const char *end = memchr(text, '\n', length);
		size_t line = end ? (size_t)(end - text) : length;

		parse_line(fdinfo, &has_client, (struct part){ text, line });
		line += end != NULL;
		text += line;
		length -= line;
	}
	return has_client && fdinfo->driver[0] ? 0 : -EINVAL;
}

bool fdinfo_event_kind(const char *event, enum fdinfo_kind *kind)
{
	for (size_t i = 0; i < FORM_COUNT; i++) {
		const struct line_form *form = &forms[i];
		size_t length = form->event ? strlen(form->event) : 0;

		if (!length || strncmp(event, form->event, length) || strlen(event) >= FDINFO_EVENT_MAX)
			continue;
		*kind = form->kind;
		return is_name((struct part){ event + length, strlen(event + length) });
	}
	return false;
}

#define EVENTS_MAX 256	     /* of those that nobody has asked for */
#define CLIENTS_KEPT 4096    /* ended ones are kept apart up to this number of clients */
#define DESCRIPTORS_MAX 4096 /* read in a walk, of processes that are not likely to have a node open */
#define TEXT_MAX (16 << 10)  /* bytes of one fdinfo */

/* ---- events and clients ---- */

ssize_t fdinfo_scan_event(struct fdinfo_scan *scan, const char *name, enum fdinfo_kind kind, bool wanted)
{
	struct fdinfo_event event = { .kind = kind };

	for (size_t i = 0; i < scan->event_count; i++)
		if (strcmp(scan->events[i].name, name) == 0)
			return (ssize_t)i;
	if (scan->event_count >= EVENTS_MAX && !wanted)
		return -ENOENT;
	snprintf(event.name, sizeof(event.name), "%s", name);
	return vec_push(scan->events, scan->event_count, event) ?: (ssize_t)scan->event_count - 1;
}

static struct fdinfo_client *find_client(const struct fdinfo_scan *scan, const struct fdinfo *fdinfo)
{
	for (size_t i = 0; i < scan->client_count; i++) {
		struct fdinfo_client *client = &scan->clients[i];

		if (client->id == fdinfo->client && strcmp(client->device, fdinfo->device) == 0 &&
		    strcmp(client->driver, fdinfo->driver) == 0)
			return client;
	}
	return NULL;
}

/*
 * Evicts the client that ended first, and keeps what it has counted. Not at once: a file on its way from one process
 * to another is in neither, and would be counted twice when it arrives.
 */
static void evict_oldest(struct fdinfo_scan *scan)
{
	struct fdinfo_client *oldest = NULL;

	for (size_t i = 0; i < scan->client_count; i++)
		if (scan->clients[i].seen + 1 < scan->walk && (!oldest || scan->clients[i].seen < oldest->seen))
			oldest = &scan->clients[i];
	if (!oldest)
		return;
	for (size_t i = 0; i < oldest->value_count; i++)
		if (scan->events[i].kind != FDINFO_MEMORY)
			scan->events[i].ended += oldest->values[i].raw;
	free(oldest->values);
	*oldest = scan->clients[--scan->client_count];
}

static struct fdinfo_client *add_client(struct fdinfo_scan *scan, const struct fdinfo *fdinfo)
{
	struct fdinfo_client client = { .id = fdinfo->client };

	if (scan->client_count >= CLIENTS_KEPT)
		evict_oldest(scan);
	strcpy(client.driver, fdinfo->driver);
	strcpy(client.device, fdinfo->device);
	return vec_push(scan->clients, scan->client_count, client) ? NULL : &scan->clients[scan->client_count - 1];
}

static int reserve_values(struct fdinfo_client *client, size_t count)
{
	struct fdinfo_reading *grown;

	if (count <= client->value_count)
		return 0;
	grown = reallocarray(client->values, count, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + client->value_count, 0, (count - client->value_count) * sizeof(*grown));
	client->values = grown;
	client->value_count = count;
	return 0;
}

/* Levels are as they are now; what grows may fall back for a while, and the greater value counts. */
static int update_values(struct fdinfo_scan *scan, struct fdinfo_client *client, const struct fdinfo *fdinfo)
{
	for (size_t i = 0; i < client->value_count; i++)
		if (scan->events[i].kind == FDINFO_MEMORY)
			client->values[i].raw = 0;
	for (size_t i = 0; i < fdinfo->value_count; i++) {
		const struct fdinfo_value *value = &fdinfo->values[i];
		ssize_t index = fdinfo_scan_event(scan, value->event, value->kind, false);

		if (index == -ENOENT)
			continue;
		if (index < 0 || reserve_values(client, (size_t)index + 1))
			return -ENOMEM;
		scan->events[index].seen = scan->walk;
		if (client->values[index].raw < value->raw || value->kind == FDINFO_MEMORY)
			client->values[index].raw = value->raw;
		client->values[index].clock = value->clock;
		client->values[index].has = true;
	}
	return 0;
}

/* A client may have many descriptors, in many processes: it counts once. */
static int note_client(struct fdinfo_scan *scan, const struct fdinfo *fdinfo)
{
	struct fdinfo_client *client = find_client(scan, fdinfo);

	if (!client)
		client = add_client(scan, fdinfo);
	if (!client)
		return -ENOMEM;
	if (client->seen == scan->walk)
		return 0;
	client->seen = scan->walk;
	client->pid = scan->visited;
	return update_values(scan, client, fdinfo);
}

/* ---- the walk ---- */

/* A device that is not on PCI is identified by the node, and gets its name. */
static bool is_of_device(const struct fdinfo_scan *scan, struct fdinfo *fdinfo, const char *class, const char *name)
{
	char path[PATH_MAX], *device;

	if (!fdinfo->device[0] &&
	    snprintf(path, sizeof(path), "%s/%s/%s/device", scan->sysfs, class, name) < (int)sizeof(path)) {
		device = realpath(path, NULL);
		if (device)
			snprintf(fdinfo->device, sizeof(fdinfo->device), "%.63s", strrchr(device, '/') + 1);
		free(device);
	}
	return !scan->address || strcasecmp(fdinfo->device, scan->address) == 0;
}

/* As much as there is; 0 when nothing can be read. */
static size_t read_text(int process, const char *descriptor, char *text)
{
	char path[NAME_MAX + sizeof("fdinfo/")];
	size_t length;
	int file;

	snprintf(path, sizeof(path), "fdinfo/%s", descriptor);
	file = openat(process, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file < 0)
		return 0;
	file_read(file, text, TEXT_MAX, &length);
	close(file);
	return length;
}

/*
 * Whether the descriptor is of a node; -ENOMEM. Whatever has vanished since, or cannot be understood, is no client.
 */
static int visit_descriptor(struct fdinfo_scan *scan, int process, int descriptors, const char *number)
{
	char link[128], text[TEXT_MAX];
	const char *class, *name;
	struct fdinfo fdinfo;
	ssize_t length = readlinkat(descriptors, number, link, sizeof(link) - 1);
	int error;

	if (length < 0)
		return 0;
	link[length] = '\0';
	class = node_class(link, &name);
	if (!class)
		return 0;
	if (fdinfo_parse(text, read_text(process, number, text), &fdinfo) || !is_of_device(scan, &fdinfo, class, name))
		return 1;
	error = note_client(scan, &fdinfo);
	return error ? error : 1;
}

static bool is_number(const char *name)
{
	return name[0] && strspn(name, "0123456789") == strlen(name);
}

static DIR *open_folder(int parent, const char *name)
{
	int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream;

	if (folder < 0)
		return NULL;
	stream = fdopendir(folder);
	if (!stream)
		close(folder);
	return stream;
}

/* -errno when its descriptors cannot be listed. */
static int visit_process(struct fdinfo_scan *scan, int folder, struct fdinfo_process *process)
{
	DIR *descriptors = open_folder(folder, "fd");
	struct dirent *entry;
	int result = 0;

	if (!descriptors)
		return -errno;
	process->has_node = false;
	process->descriptors = 0;
	while (result >= 0 && (entry = readdir(descriptors))) {
		if (!is_number(entry->d_name))
			continue;
		process->descriptors++;
		result = visit_descriptor(scan, folder, dirfd(descriptors), entry->d_name);
		process->has_node |= result > 0;
	}
	closedir(descriptors);
	return result < 0 ? result : 0;
}

/* An error of this process. Of another one, every error only means that it has ended or is another user's. */
static bool is_ours(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

static int by_pid(const void *a, const void *b)
{
	const struct fdinfo_process *one = a, *other = b;

	return (one->pid > other->pid) - (one->pid < other->pid);
}

/* All processes by number. */
static int list_processes(const struct fdinfo_scan *scan, struct fdinfo_process **processes, size_t *count)
{
	DIR *folder = open_folder(scan->folder, ".");
	struct dirent *entry;
	int error = 0;

	*processes = NULL;
	*count = 0;
	if (!folder)
		return -errno;
	while (!error && (entry = readdir(folder)))
		if (is_number(entry->d_name))
			error = vec_push(*processes, *count,
					 (struct fdinfo_process){ .pid = strtoul(entry->d_name, NULL, 10),
								  .inode = entry->d_ino });
	closedir(folder);
	if (*count)
		qsort(*processes, *count, sizeof(**processes), by_pid);
	return error;
}

/* Takes over what the last walk has found of those that are still there: a number that is used again has another inode. */
static void carry_over(const struct fdinfo_scan *scan, struct fdinfo_process *processes, size_t count)
{
	size_t old = 0;

	for (size_t i = 0; i < count; i++) {
		while (old < scan->process_count && scan->processes[old].pid < processes[i].pid)
			old++;
		if (old < scan->process_count && scan->processes[old].pid == processes[i].pid &&
		    scan->processes[old].inode == processes[i].inode)
			processes[i] = scan->processes[old];
	}
}

/* The number of open files, since Linux 6.2; before, always the same. */
static long long read_size(const struct fdinfo_scan *scan, unsigned long pid)
{
	struct stat status;
	char path[32];

	snprintf(path, sizeof(path), "%lu/fd", pid);
	return fstatat(scan->folder, path, &status, 0) ? 0 : status.st_size;
}

static int scan_process(struct fdinfo_scan *scan, struct fdinfo_process *process)
{
	char name[24];
	int folder, error;

	snprintf(name, sizeof(name), "%lu", process->pid);
	scan->visited = process->pid;
	folder = openat(scan->folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return -errno;
	error = visit_process(scan, folder, process);
	close(folder);
	return error;
}

/*
 * Scans those that have a node open, are new, or have another number of files than before; and into the rest in turn,
 * from where the last walk has left off, up to DESCRIPTORS_MAX: with some ten thousand open files, following every one
 * at each walk would take more time than many a program that is watched.
 */
static int visit_processes(struct fdinfo_scan *scan)
{
	struct fdinfo_process *processes;
	unsigned long from = scan->turn;
	size_t count, scanned = 0;
	int error = list_processes(scan, &processes, &count);

	if (error) {
		free(processes);
		return error;
	}
	carry_over(scan, processes, count);
	scan->turn = 0;
	for (size_t i = 0; !is_ours(error) && i < count; i++) {
		long long size = read_size(scan, processes[i].pid);
		bool likely = !processes[i].known || processes[i].has_node || processes[i].size != size;

		if (!likely && (processes[i].pid < from || scan->turn))
			continue;
		if (!likely && scanned >= DESCRIPTORS_MAX) {
			scan->turn = processes[i].pid;
			continue;
		}
		processes[i].known = true;
		processes[i].size = size;
		error = scan_process(scan, &processes[i]);
		if (!likely)
			scanned += processes[i].descriptors;
	}
	free(scan->processes);
	scan->processes = processes;
	scan->process_count = count;
	return is_ours(error) ? error : 0;
}

/* -ENODEV: the process has ended; -EACCES: it may not be read; -EIO, -ENOMEM. */
static int walk_error(int error)
{
	switch (error) {
	case 0:
	case -ENOMEM:
	case -EACCES:
		return error;
	case -EPERM:
		return -EACCES;
	case -ENOENT:
	case -ESRCH:
		return -ENODEV;
	default:
		return -EIO;
	}
}

int fdinfo_scan_walk(struct fdinfo_scan *scan)
{
	struct fdinfo_process process;

	scan->walk++;
	scan->error = walk_error(scan->pid ? visit_process(scan, scan->folder, &process) : visit_processes(scan));
	scan->walked = clock_monotonic();
	return scan->error;
}

bool fdinfo_is_own_memory(const struct fdinfo_event *event)
{
	/* amdgpu's and xe's, i915's */
	return event->kind == FDINFO_MEMORY &&
	       (!strncmp(event->name, "memory-vram", 11) || !strncmp(event->name, "memory-local", 12));
}

__u64 fdinfo_scan_sum(const struct fdinfo_scan *scan, size_t event)
{
	bool level = scan->events[event].kind == FDINFO_MEMORY;
	__u64 sum = scan->events[event].ended;

	for (size_t i = 0; i < scan->client_count; i++) {
		const struct fdinfo_client *client = &scan->clients[i];

		if (event < client->value_count && (!level || client->seen == scan->walk))
			sum += client->values[event].raw;
	}
	return sum;
}

/* ---- making and freeing ---- */

void fdinfo_scan_free(struct fdinfo_scan *scan)
{
	for (size_t i = 0; i < scan->client_count; i++)
		free(scan->clients[i].values);
	free(scan->clients);
	free(scan->events);
	free(scan->processes);
	free(scan->proc);
	free(scan->sysfs);
	free(scan->address);
	if (scan->folder >= 0)
		close(scan->folder);
	free(scan);
}

int fdinfo_scan_create(const struct counter_place *place, struct fdinfo_scan **result)
{
	const char *address = place->node ? place->node->address : NULL;
	struct fdinfo_scan *scan = calloc(1, sizeof(*scan));
	char path[PATH_MAX];
	int error = 0;

	if (!scan)
		return -ENOMEM;
	scan->folder = -1;
	scan->pid = place->pid;
	scan->proc = strdup(place->proc);
	scan->sysfs = strdup(place->sysfs);
	scan->address = address ? strdup(address) : NULL;
	if (scan->pid)
		snprintf(path, sizeof(path), "%s/%d", place->proc, (int)scan->pid);
	else
		snprintf(path, sizeof(path), "%s", place->proc);
	if (!scan->proc || !scan->sysfs || (address && !scan->address))
		error = -ENOMEM;
	else
		scan->folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!error && scan->folder < 0)
		error = errno == ENOENT || errno == ESRCH ? -ENODEV : errno == EACCES ? -EACCES : -EIO;
	if (error) {
		fdinfo_scan_free(scan);
		return error;
	}
	*result = scan;
	return 0;
}
