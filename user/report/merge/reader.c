/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/merge/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/gzip.h"
#include "base/file/output.h"

#define BLOCK (1u << 20)

enum state {
	STATE_BEGIN,
	STATE_MEMBERS, /* before a member's name, or a comma, or the brace that ends the document */
	STATE_EVENTS,  /* the same in the array of events */
	STATE_BEHIND,  /* only white space may follow */
	STATE_END,
};

struct merge_reader {
	const struct log *log;
	const char *path; /* owned */
	int descriptor;
	struct stat status; /* when it was opened */
	__u64 read;	    /* offset in the file behind what is in data */
	char *data;
	size_t at, length, capacity; /* data[at..length] has not been used */
	enum state state;
	bool array;	/* the document is the array of events */
	bool any;	/* the object or array has had a value: a comma parts it from the next */
	bool events;	/* there were some, or might have been */
	bool cut;	/* the file ends before the document */
	__u64 complete; /* offset behind the last value that is complete */
};

static int open_packed(struct merge_reader *reader)
{
	int unpacked = gzip_unpack(reader->descriptor);

	if (unpacked < 0) {
		log_error(reader->log, "%s: cannot be uncompressed: %s", reader->path,
			  unpacked == -EBADMSG ? "it is damaged" : strerror(-unpacked));
		return unpacked == -EBADMSG ? -EINVAL : unpacked;
	}
	close(reader->descriptor);
	reader->descriptor = unpacked;
	return fstat(unpacked, &reader->status) ? -errno : 0;
}

int merge_reader_open(const struct log *log, const char *path, struct merge_reader **result)
{
	struct merge_reader *reader = calloc(1, sizeof(*reader));
	int error = 0;

	if (!reader)
		return -ENOMEM;
	reader->log = log;
	reader->descriptor = open_named(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	reader->path = strdup(path);
	if (reader->descriptor < 0)
		error = reader->descriptor;
	else if (fstat(reader->descriptor, &reader->status))
		error = -errno;
	else if (!reader->path)
		error = -ENOMEM;
	if (error) {
		log_error(log, "%s: cannot be read: %s", path, strerror(-error));
	} else if (!S_ISREG(reader->status.st_mode)) {
		log_error(log, "%s: is no file; traces are read twice, so pipes must be saved first", path);
		error = -EINVAL;
	} else if (gzip_is_packed(reader->descriptor)) {
		error = open_packed(reader);
	}
	if (error)
		merge_reader_close(reader);
	else
		*result = reader;
	return error;
}

void merge_reader_close(struct merge_reader *reader)
{
	if (!reader)
		return;
	if (reader->descriptor >= 0)
		close(reader->descriptor);
	free((char *)reader->path);
	free(reader->data);
	free(reader);
}

void merge_reader_rewind(struct merge_reader *reader)
{
	reader->read = reader->complete = 0;
	reader->at = reader->length = 0;
	reader->state = STATE_BEGIN;
	reader->array = reader->any = reader->events = reader->cut = false;
}

int merge_reader_changed(const struct merge_reader *reader)
{
	const struct timespec *before = &reader->status.st_mtim;
	struct stat now;

	if (fstat(reader->descriptor, &now))
		return -errno;
	return now.st_size != reader->status.st_size || now.st_mtim.tv_sec != before->tv_sec ||
	       now.st_mtim.tv_nsec != before->tv_nsec;
}

bool merge_reader_cut(const struct merge_reader *reader, __u64 *offset)
{
	*offset = reader->complete;
	return reader->cut;
}

/* ---- bytes ---- */

static __u64 offset_of(const struct merge_reader *reader, size_t at)
{
	return reader->read - reader->length + at;
}

static int malformed(const struct merge_reader *reader, size_t at, const char *reason)
{
	log_error(reader->log, "%s: byte %llu: %s", reader->path, offset_of(reader, at), reason);
	return -EBADMSG;
}

int merge_reader_refuse(const struct merge_reader *reader, const struct merge_item *item, const char *at,
			const char *reason)
{
	log_error(reader->log, "%s: byte %llu: %s", reader->path,
		  item->offset + (at ? (size_t)(at - item->value.text) : 0), reason);
	return -EBADMSG;
}

/* Room for a block behind what has not been used, which moves to the front. */
static int make_room(struct merge_reader *reader)
{
	size_t kept = reader->length - reader->at;
	size_t capacity = reader->capacity ? reader->capacity : 2 * BLOCK;
	char *data;

	if (kept > MERGE_VALUE_MAX)
		return malformed(reader, reader->at, "a single value of more than 64 MiB begins here");
	if (kept)
		memmove(reader->data, reader->data + reader->at, kept);
	reader->at = 0;
	reader->length = kept;
	while (capacity < kept + BLOCK)
		capacity *= 2;
	if (capacity == reader->capacity)
		return 0;
	data = realloc(reader->data, capacity);
	if (!data)
		return -ENOMEM;
	reader->data = data;
	reader->capacity = capacity;
	return 0;
}

/* Reads more behind what is there. 1: there is more; 0: the file ends; -errno, logged. */
static int fill(struct merge_reader *reader)
{
	__u64 left = reader->status.st_size - reader->read;
	ssize_t count;
	int error;

	if (!left)
		return 0;
	error = make_room(reader);
	if (error)
		return error;
	do {
		count = pread(reader->descriptor, reader->data + reader->length, left < BLOCK ? left : BLOCK,
			      reader->read);
	} while (count < 0 && errno == EINTR);
	if (count < 0) {
		error = -errno;
		log_error(reader->log, "%s: cannot be read: %s", reader->path, strerror(-error));
		return error;
	}
	reader->length += count;
	reader->read += count;
	return count > 0;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* 1: *c is the next byte that is no space, not used yet; 0: the file ends; -errno. */
static int peek(struct merge_reader *reader, char *c)
{
	int result;

	for (;;) {
		while (reader->at < reader->length && is_space(reader->data[reader->at]))
			reader->at++;
		if (reader->at < reader->length) {
			*c = reader->data[reader->at];
			return 1;
		}
		result = fill(reader);
		if (result <= 0)
			return result;
	}
}

/* ---- values ---- */

/* Where a value is while it is searched for: data[reader->at..at + length] belongs to it. */
struct scan {
	size_t length;
	size_t depth;
	bool string, escaped;
};

/* One byte more. True: the value is complete, without this byte when it is a number or a word. */
static bool scan_byte(struct scan *scan, char c)
{
	if (scan->string) {
		if (scan->escaped)
			scan->escaped = false;
		else if (c == '\\')
			scan->escaped = true;
		else if (c == '"')
			scan->string = false;
		scan->length++;
		return !scan->string && !scan->depth;
	}
	if (!scan->depth && scan->length && (is_space(c) || c == ',' || c == ']' || c == '}' || c == ':'))
		return true;
	scan->length++;
	if (c == '"')
		scan->string = true;
	else if (c == '{' || c == '[')
		scan->depth++;
	else if (c == '}' || c == ']')
		return scan->depth <= 1 || !--scan->depth;
	return false;
}

/* 1: *length is that of the value that begins at reader->at; 0: the file ends in it; -errno. */
static int find_value(struct merge_reader *reader, size_t *length)
{
	struct scan scan = { 0 };
	size_t i = 0;
	int result;

	for (;;) {
		for (; reader->at + i < reader->length; i++) {
			if (!scan_byte(&scan, reader->data[reader->at + i]))
				continue;
			*length = scan.length;
			return 1;
		}
		result = fill(reader);
		if (result <= 0)
			return result;
	}
}

/* The value at reader->at becomes the item's, and is used up. 1, 0: the file ends in it, or -errno. */
static int take_value(struct merge_reader *reader, struct merge_item *item)
{
	size_t length, fault;
	int result = find_value(reader, &length);

	if (result <= 0)
		return result;
	if (!json_check(reader->data + reader->at, length, &fault))
		return malformed(reader, reader->at + fault, "not valid JSON in UTF-8, or nested too deeply");
	item->value = (struct json_part){ reader->data + reader->at, length };
	item->offset = offset_of(reader, reader->at);
	reader->at += length;
	reader->complete = offset_of(reader, reader->at);
	return 1;
}

/* ---- the document ---- */

/* The file ends here. It may, when there was an array of events: tools that are killed leave such files. */
static int end_of_file(struct merge_reader *reader)
{
	if (!reader->events)
		return malformed(reader, reader->length, "ends before its events: not a Chrome trace");
	reader->cut = reader->state != STATE_BEHIND;
	reader->state = STATE_END;
	return 0;
}

static int begin(struct merge_reader *reader)
{
	char c;
	int result = peek(reader, &c);

	if (result <= 0)
		return result ?: end_of_file(reader);
	if (c != '{' && c != '[')
		return malformed(reader, reader->at, "neither a JSON object nor an array: not a Chrome trace");
	reader->at++;
	reader->array = reader->events = c == '[';
	reader->complete = offset_of(reader, reader->at);
	reader->state = reader->array ? STATE_EVENTS : STATE_MEMBERS;
	return 1;
}

/* A comma, or what closes the object or array. 1: a value follows; 2: closed; 0: the file ends; -errno. */
static int separate(struct merge_reader *reader, char close)
{
	char c;
	int result = peek(reader, &c);

	if (result <= 0)
		return result;
	if (c == close) {
		reader->at++;
		return 2;
	}
	if (reader->any) {
		if (c != ',')
			return malformed(reader, reader->at, "a comma is missing");
		reader->at++;
		result = peek(reader, &c);
		if (result <= 0)
			return result;
	}
	reader->any = true;
	return 1;
}

static int next_event(struct merge_reader *reader, struct merge_item *item)
{
	int result = separate(reader, ']');

	if (result == 2) {
		reader->complete = offset_of(reader, reader->at);
		reader->state = reader->array ? STATE_BEHIND : STATE_MEMBERS;
		reader->any = true;
		return 2;
	}
	if (result <= 0)
		return result;
	if (reader->data[reader->at] != '{')
		return malformed(reader, reader->at, "expected an event, which begins with a brace");
	item->event = true;
	item->name[0] = '\0';
	return take_value(reader, item);
}

/* The member's name and the colon. 1, 0: the file ends; -errno. */
static int take_name(struct merge_reader *reader, struct merge_item *item)
{
	size_t length;
	char c;
	int result;

	if (reader->data[reader->at] != '"')
		return malformed(reader, reader->at, "expected the name of a member");
	result = take_value(reader, item);
	if (result <= 0)
		return result;
	length = item->value.length - 2 < sizeof(item->name) ? item->value.length - 2 : sizeof(item->name) - 1;
	memcpy(item->name, item->value.text + 1, length);
	item->name[length] = '\0';
	result = peek(reader, &c);
	if (result <= 0)
		return result;
	if (c != ':')
		return malformed(reader, reader->at, "a colon is missing");
	reader->at++;
	return peek(reader, &c);
}

static int next_member(struct merge_reader *reader, struct merge_item *item)
{
	int result = separate(reader, '}');

	if (result == 2) {
		if (!reader->events)
			return malformed(reader, reader->at, "has no traceEvents: not a Chrome trace");
		reader->state = STATE_BEHIND;
		return 2;
	}
	if (result == 1)
		result = take_name(reader, item);
	if (result <= 0)
		return result;
	if (!strcmp(item->name, "traceEvents") && reader->data[reader->at] == '[') {
		reader->at++;
		reader->events = true;
		reader->any = false;
		reader->complete = offset_of(reader, reader->at);
		reader->state = STATE_EVENTS;
		return 2;
	}
	item->event = false;
	return take_value(reader, item);
}

/* 1: an item; 2: continue; 0: the file ends; -errno. */
static int step(struct merge_reader *reader, struct merge_item *item)
{
	char c;
	int result;

	if (reader->state == STATE_EVENTS)
		return next_event(reader, item);
	if (reader->state == STATE_MEMBERS)
		return next_member(reader, item);
	result = peek(reader, &c);
	return result == 1 ? malformed(reader, reader->at, "something follows the end of the trace") : result;
}

int merge_reader_next(struct merge_reader *reader, struct merge_item *item)
{
	int result = reader->state == STATE_BEGIN ? begin(reader) : 1;

	if (result <= 0 || reader->state == STATE_END)
		return result < 0 ? result : 0;
	do {
		result = step(reader, item);
	} while (result == 2);
	return result ?: end_of_file(reader);
}

__u64 merge_reader_size(const struct merge_reader *reader)
{
	return reader->status.st_size;
}
