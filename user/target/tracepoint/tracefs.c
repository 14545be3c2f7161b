/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/tracepoint/tracefs.h"

#include <errno.h>
#include <event-parse.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file/file.h"
#include "describe/driver/event.h"

#define PRINT_MARK "\nprint fmt:"
#define PRINT_EMPTY "\nprint fmt: \"\"\n"
#define FIRST_FIELD "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
#define DIGITS "0123456789"
#define NAME_MAX_LENGTH 127 /* bytes of a word of a format; the kernel's own limit is lower */

__attribute__((format(printf, 2, 3))) static void refuse(struct tracepoint *tracepoint, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(tracepoint->reason, sizeof(tracepoint->reason), format, arguments);
	va_end(arguments);
	tracepoint->found = false;
}

/* Skips literal, if text begins with it. */
static bool skip(const char **text, const char *end, const char *literal)
{
	size_t length = strlen(literal);

	if ((size_t)(end - *text) < length || memcmp(*text, literal, length) != 0)
		return false;
	*text += length;
	return true;
}

/* Skips the bytes out of set; false when there are fewer than least or more than most. */
static bool skip_set(const char **text, const char *end, const char *set, size_t least, size_t most)
{
	const char *begin = *text;

	while (*text < end && **text && strchr(set, **text))
		(*text)++;
	return (size_t)(*text - begin) >= least && (size_t)(*text - begin) <= most;
}

/* Skips "[16]", "[]" or "[NAME]". */
static bool skip_bounds(const char **text, const char *end)
{
	return skip(text, end, "[") && skip_set(text, end, WORD, 0, NAME_MAX_LENGTH) && skip(text, end, "]");
}

/*
 * "unsigned int seqno", "const char * name", "__data_loc char[] driver", "char comm[16]": a type of words, and a name.
 * Bounds follow the name, or precede it where the type has a second word (__data_loc).
 */
static bool is_declaration(const char *text, const char *end)
{
	unsigned int words = 0, bounds = 0;

	while (text < end) {
		if (!skip_set(&text, end, WORD, 1, NAME_MAX_LENGTH) || bounds > 1)
			return false;
		words++;
		bounds += bounds > 0;
		if (text < end && *text == '[' && (words < 2 || bounds++ || !skip_bounds(&text, end)))
			return false;
		if (text < end && !skip_set(&text, end, " *", 1, 8))
			return false;
	}
	return words >= 2 && words <= 8 && end[-1] != ' ' && end[-1] != '*';
}

/* A line of the list of fields as every kernel has written it since there are such files. */
static bool is_field(const char *line, const char *end)
{
	const char *declared = memchr(line, ';', end - line);

	if (!declared || !skip(&line, end, "\tfield:") || !is_declaration(line, declared))
		return false;
	line = declared;
	return skip(&line, end, ";\toffset:") && skip_set(&line, end, DIGITS, 1, 5) && skip(&line, end, ";\tsize:") &&
	       skip_set(&line, end, DIGITS, 1, 5) && skip(&line, end, ";\tsigned:") &&
	       skip_set(&line, end, "01", 1, 1) && skip(&line, end, ";") && line == end;
}

/* The lines before the fields. The first field is the same on all kernels; without one the library leaks, too. */
static bool skip_head(const char **text, const char *end)
{
	return skip(text, end, "name: ") && skip_set(text, end, WORD, 1, NAME_MAX_LENGTH) &&
	       skip(text, end, "\nID: ") && skip_set(text, end, DIGITS, 1, 9) && skip(text, end, "\nformat:\n") &&
	       (size_t)(end - *text) >= strlen(FIRST_FIELD) && memcmp(*text, FIRST_FIELD, strlen(FIRST_FIELD)) == 0;
}

/*
 * The text with only what is surely sane: the library leaks memory on malformed input. Without the format for printing:
 * nobody prints here, and parsing it is most of the work and fails for expressions that are newer than the library. *used
 * is 0 when the text is not that of a format; NULL: no memory.
 */
static char *layout_of(const char *text, size_t length, size_t *used)
{
	const char *print = memmem(text, length, PRINT_MARK, strlen(PRINT_MARK)), *at = text, *end;
	char *layout = malloc(length + sizeof(PRINT_EMPTY));

	*used = 0;
	if (!layout || !print || !skip_head(&at, print + 1))
		return layout;
	*used = at - text;
	memcpy(layout, text, *used);
	for (; at <= print; at = end + 1) {
		end = memchr(at, '\n', print + 1 - at);
		if (is_field(at, end)) {
			memcpy(layout + *used, at, end + 1 - at);
			*used += end + 1 - at;
		}
	}
	memcpy(layout + *used, PRINT_EMPTY, sizeof(PRINT_EMPTY));
	*used += sizeof(PRINT_EMPTY) - 1;
	return layout;
}

static bool is_text(const struct tep_format_field *found)
{
	return found->type && strstr(found->type, "char") != NULL;
}

/* How the kernel has laid the field out, as one of the types of descriptions; 0: as none of them. */
static unsigned int type_of(const struct tep_format_field *found)
{
	if (found->flags & TEP_FIELD_IS_DYNAMIC)
		return found->size == 4 && is_text(found) ? DRIVER_STRING : 0;
	if (found->flags & TEP_FIELD_IS_ARRAY)
		return is_text(found) && found->size > 0 ? DRIVER_STRING : 0;
	switch (found->size) {
	case 1:
		return DRIVER_BITS_8;
	case 2:
		return DRIVER_BITS_16;
	case 4:
		return DRIVER_BITS_32;
	case 8:
		/* A pointer to text is a number as well: a description may want to compare it. */
		return DRIVER_BITS_64 |
		       (found->flags & TEP_FIELD_IS_POINTER && is_text(found) ? DRIVER_KERNEL_STRING : 0);
	default:
		return 0;
	}
}

static enum xpt_access access_of(const struct tep_format_field *found, unsigned int type)
{
	if (type & DRIVER_KERNEL_STRING)
		return XPT_ACCESS_KERNEL_STRING;
	if (!(type & DRIVER_STRING))
		return XPT_ACCESS_NUMBER;
	if (!(found->flags & TEP_FIELD_IS_DYNAMIC))
		return XPT_ACCESS_TEXT;
	return found->flags & TEP_FIELD_IS_RELATIVE ? XPT_ACCESS_RELATIVE : XPT_ACCESS_DATA_LOC;
}

/* "32 or 64 bits", "text" for a message. */
static void describe_types(unsigned int types, char text[64])
{
	size_t used = 0;

	text[0] = '\0';
	for (unsigned int i = 0; i < 4; i++)
		if (types & 1u << i)
			used += snprintf(text + used, 64 - used, "%s%u", used ? " or " : "", 8u << i);
	if (used)
		used += snprintf(text + used, 64 - used, " bits");
	if (types & DRIVER_STRING)
		used += snprintf(text + used, 64 - used, "%stext", used ? " or " : "");
	if (types & DRIVER_KERNEL_STRING)
		snprintf(text + used, 64 - used, "%spointer to text", used ? " or " : "");
}

/* A field of another layout: reports what it is and what was expected. */
static void refuse_layout(struct tracepoint *tracepoint, const struct driver_field *field,
			  const struct tep_format_field *found)
{
	char wanted[64];

	describe_types(field->types, wanted);
	refuse(tracepoint, "field %s is '%.60s' of %d bytes, expected %s", field->name, found->type ? found->type : "?",
	       found->size, wanted);
}

/* False, with the reason, when the event is no good without the field as it is. */
static bool find_field(struct tracepoint *tracepoint, struct tep_event *event, const struct driver_field *field,
		       struct tracepoint_field *result)
{
	struct tep_format_field *found = tep_find_any_field(event, field->name);
	unsigned int type;

	result->field = NULL;
	if (!found) {
		if (!field->optional)
			refuse(tracepoint, "field %s is missing", field->name);
		return field->optional;
	}
	type = type_of(found) & field->types;
	if (!type) {
		refuse_layout(tracepoint, field, found);
		return false;
	}
	if (found->offset < 0 || found->size < 0 || found->offset > TRACEPOINT_RECORD_MAX ||
	    found->size > TRACEPOINT_RECORD_MAX - found->offset) {
		refuse(tracepoint, "field %s lies outside of a record: %d bytes at %d", field->name, found->size,
		       found->offset);
		return false;
	}
	*result = (struct tracepoint_field){
		.field = field,
		.offset = found->offset,
		.size = found->size,
		.access = access_of(found, type),
		.is_signed = found->flags & TEP_FIELD_IS_SIGNED,
	};
	return true;
}

static void find_fields(struct tracepoint *tracepoint, struct tep_event *event)
{
	const struct driver_event *described = tracepoint->event;

	tracepoint->id = event->id;
	tracepoint->found = true;
	for (size_t i = 0; i < described->field_count; i++) {
		struct tracepoint_field *field = &tracepoint->fields[tracepoint->field_count];

		if (!find_field(tracepoint, event, &described->fields[i], field))
			return;
		tracepoint->field_count += field->field != NULL;
	}
	if (described->condition.field.name)
		find_field(tracepoint, event, &described->condition.field, &tracepoint->condition);
}

int tracepoint_parse(const struct driver_event *event, const char *text, size_t length, struct tracepoint *tracepoint)
{
	struct tep_handle *tep = tep_alloc();
	struct tep_event *parsed = NULL; /* owned by tep */
	size_t used = 0;
	char *layout = layout_of(text, length, &used);
	int error = -ENOMEM;

	memset(tracepoint, 0, sizeof(*tracepoint));
	tracepoint->event = event;
	if (!layout || !tep)
		goto out;
	error = 0;
	/* It would print to standard error what it does not understand. */
	tep_set_loglevel(TEP_LOG_NONE);
	if (used && !tep_parse_event(tep, layout, used, event->system))
		parsed = tep_get_event(tep, 0);
	if (!parsed) {
		refuse(tracepoint, "its format is not understood");
		goto out;
	}
	if (!parsed->name || strcmp(parsed->name, event->name) != 0)
		refuse(tracepoint, "its format is that of '%.60s'", parsed->name ? parsed->name : "");
	else if (parsed->id <= 0)
		refuse(tracepoint, "its format has no number");
	else
		find_fields(tracepoint, parsed);
out:
	tep_free(tep);
	free(layout);
	return error;
}

/* ---- tracefs ---- */

#define FORMAT_MAX (256 << 10) /* bytes; the longest ones are some 10 KB, nearly all of it for printing */

/* Where distributions mount it; the second one is mounted when it is first accessed. */
static const char *const usual[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

static bool is_tracefs(const char *path)
{
	struct statfs status;

	return statfs(path, &status) == 0 && status.f_type == TRACEFS_MAGIC;
}

/* Where the first tracefs is mounted; NULL with errno. */
static char *find_mounted(void)
{
	char *found = NULL;
	struct mntent *mount;
	FILE *mounts;

	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (is_tracefs(usual[i]))
			return strdup(usual[i]);
	errno = ENOENT;
	mounts = setmntent("/proc/self/mounts", "re");
	if (!mounts)
		return NULL;
	while (!found && (mount = getmntent(mounts)))
		if (strcmp(mount->mnt_type, "tracefs") == 0 && is_tracefs(mount->mnt_dir))
			found = strdup(mount->mnt_dir);
	endmntent(mounts);
	if (!found)
		errno = ENOENT;
	return found;
}

static int open_folder(const char *path)
{
	int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return folder < 0 ? -errno : folder;
}

/* One of its own is there wherever it is mounted or not; without CAP_SYS_ADMIN the mounted one has to do. */
static int open_found(struct tracefs *tracefs)
{
	int folder = file_mount_detached("tracefs");

	if (folder >= 0 || folder == -ENODEV)
		return folder;
	tracefs->mounted = find_mounted();
	if (!tracefs->mounted)
		return errno ? -errno : -ENOMEM;
	return open_folder(tracefs->mounted);
}

int tracefs_open(const char *path, struct tracefs *tracefs)
{
	struct utsname name;
	int error = 0;

	memset(tracefs, 0, sizeof(*tracefs));
	if (uname(&name) || asprintf(&tracefs->kernel, "%s %s", name.sysname, name.release) < 0) {
		tracefs->kernel = NULL;
		return -ENOMEM;
	}
	tracefs->folder = path ? open_folder(path) : open_found(tracefs);
	if (tracefs->folder < 0)
		error = tracefs->folder;
	else if (faccessat(tracefs->folder, "events", R_OK | X_OK, 0))
		error = -errno;
	if (error)
		tracefs_close(tracefs);
	return error;
}

void tracefs_close(struct tracefs *tracefs)
{
	if (tracefs->kernel && tracefs->folder >= 0)
		close(tracefs->folder);
	free(tracefs->mounted);
	free(tracefs->kernel);
	memset(tracefs, 0, sizeof(*tracefs));
}

const char *tracefs_advice(int error)
{
	switch (error) {
	case -ENOENT:
		if (access("/sys/kernel", F_OK))
			return "/sys is not mounted: mount -t sysfs sysfs /sys";
		return "tracefs is not mounted, or has no events, and only root (CAP_SYS_ADMIN) can do without: try sudo, or "
		       "mount -t tracefs tracefs /sys/kernel/tracing";
	case -ENODEV:
		return "this kernel has no tracefs: it was built without CONFIG_TRACING";
	case -EACCES:
		return "tracefs can be read by root only: try sudo";
	case -EPERM:
		return "the kernel does not let tracefs be read: it is locked down (see kernel_lockdown(7))";
	default:
		return "tracefs cannot be read";
	}
}

/* The whole file, at most FORMAT_MAX bytes of it: what is cut is the format for printing. */
static int read_format(const struct tracefs *tracefs, const char *path, char **text, size_t *length)
{
	int file = openat(tracefs->folder, path, O_RDONLY | O_CLOEXEC), error;
	char *buffer;

	if (file < 0)
		return -errno;
	buffer = malloc(FORMAT_MAX);
	error = buffer ? file_read(file, buffer, FORMAT_MAX, length) : -ENOMEM;
	close(file);
	if (error) {
		free(buffer);
		return error;
	}
	*text = buffer;
	return 0;
}

int tracefs_id(const struct tracefs *tracefs, const char *system, size_t length, const char *event)
{
	char path[PATH_MAX], text[16];
	ssize_t count;
	int file, id;

	if (snprintf(path, sizeof(path), "events/%.*s/%s/id", (int)length, system, event) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	file = openat(tracefs->folder, path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return -errno;
	count = read(file, text, sizeof(text) - 1);
	id = count < 0 ? -errno : 0;
	close(file);
	if (count > 0) {
		text[count] = '\0';
		id = atoi(text);
	}
	return id ? id : -ENOENT;
}

int tracefs_find(const struct tracefs *tracefs, const struct driver_event *event, struct tracepoint *tracepoint)
{
	char path[PATH_MAX], *text = NULL;
	size_t length = 0;
	int error;

	memset(tracepoint, 0, sizeof(*tracepoint));
	tracepoint->event = event;
	if (snprintf(path, sizeof(path), "events/%s/%s/format", event->system, event->name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	error = read_format(tracefs, path, &text, &length);
	/* The second one: its module was unloaded while it was read. */
	if (error == -ENOENT || error == -ENODEV) {
		snprintf(tracepoint->reason, sizeof(tracepoint->reason), "no such tracepoint");
		return 0;
	}
	if (error || !text)
		return error;
	error = tracepoint_parse(event, text, length, tracepoint);
	free(text);
	return error;
}
