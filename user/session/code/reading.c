/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/code/reading.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/clock.h"

#define BYTES_MAX (64u << 20)
#define COUNT_MAX 1024

/* Of one object. */
struct code_assembly {
	struct code_assembly *next;
	__u32 tgid, tid;
	__u64 time;
	char *bytes;
	size_t length, room;
};

static void assembly_free(struct code_pieces *pieces, struct code_assembly **place)
{
	struct code_assembly *assembly = *place;

	*place = assembly->next;
	pieces->count--;
	pieces->bytes -= assembly->room;
	free(assembly->bytes);
	free(assembly);
}

static struct code_assembly **find(struct code_pieces *pieces, __u32 tgid, __u32 tid, __u64 time)
{
	struct code_assembly **place = &pieces->first;

	while (*place && ((*place)->tid != tid || (*place)->tgid != tgid || (*place)->time != time))
		place = &(*place)->next;
	return place;
}

static void drop_oldest(struct code_pieces *pieces)
{
	struct code_assembly **place = &pieces->first;

	while ((*place)->next)
		place = &(*place)->next;
	assembly_free(pieces, place);
}

static struct code_assembly *make(struct code_pieces *pieces, const struct xpt_record_code_piece *piece)
{
	struct code_assembly *assembly = calloc(1, sizeof(*assembly));

	if (!assembly)
		return NULL;
	if (pieces->count == COUNT_MAX)
		drop_oldest(pieces);
	assembly->tgid = piece->header.tgid;
	assembly->tid = piece->tid;
	assembly->time = piece->header.time;
	assembly->next = pieces->first;
	pieces->first = assembly;
	pieces->count++;
	return assembly;
}

/* Makes room for length bytes more and a 0 byte. */
static bool grow(struct code_pieces *pieces, struct code_assembly *assembly, size_t length)
{
	size_t needed = assembly->length + length + 1, room = assembly->room ?: 2 * XPT_CODE_PIECE_MAX;
	char *more;

	if (needed <= assembly->room)
		return true;
	while (room < needed)
		room *= 2;
	while (pieces->bytes - assembly->room + room > BYTES_MAX && pieces->first->next) {
		/* It must not be the oldest itself. */
		if (!assembly->next)
			return false;
		drop_oldest(pieces);
	}
	more = pieces->bytes - assembly->room + room > BYTES_MAX ? NULL : realloc(assembly->bytes, room);
	if (!more)
		return false;
	pieces->bytes += room - assembly->room;
	assembly->bytes = more;
	assembly->room = room;
	return true;
}

void code_pieces_add(struct code_pieces *pieces, const struct xpt_record_code_piece *piece)
{
	struct code_assembly *assembly;

	if (piece->header.size < sizeof(*piece) || piece->length > piece->header.size - sizeof(*piece))
		return;
	assembly = *find(pieces, piece->header.tgid, piece->tid, piece->header.time);
	if (!assembly)
		assembly = make(pieces, piece);
	if (!assembly || assembly->length != piece->offset || !grow(pieces, assembly, piece->length))
		return;
	memcpy(assembly->bytes + assembly->length, piece->bytes, piece->length);
	assembly->length += piece->length;
	assembly->bytes[assembly->length] = 0;
}

struct code_bytes code_pieces_take(struct code_pieces *pieces, const struct xpt_record_code *code)
{
	struct code_assembly **place = find(pieces, code->header.tgid, code->tid, code->header.time);
	struct code_bytes bytes = {};

	if (!*place)
		return bytes;
	bytes = (struct code_bytes){ (*place)->bytes, (*place)->length };
	(*place)->bytes = NULL;
	assembly_free(pieces, place);
	return bytes;
}

void code_pieces_drop(struct code_pieces *pieces, __u32 tgid)
{
	struct code_assembly **place = &pieces->first;

	while (*place) {
		if (!tgid || (*place)->tgid == tgid)
			assembly_free(pieces, place);
		else
			place = &(*place)->next;
	}
}

struct reading {
	const struct xpt_record_code *code;
	const struct code_bytes *pieces;
	const struct code_reading_limits *limits;
	struct code_load *load;
};

/* ---- from pieces ---- */

/* Was the size an argument of the call? */
static bool has_size(const struct reading *reading)
{
	return reading->load->spec->code.given >> XPT_CODE_SIZE & 1;
}

/* By the header that the pieces begin with, which a process without rights reads. 0: unknown. */
static __u64 size_in_header(const struct reading *reading)
{
	const struct code_bytes *pieces = reading->pieces;
	__u64 size;

	if (!pieces->length)
		return 0;
	return file_reader_header_size(reading->limits->readers, pieces->bytes, pieces->length, &size) ? 0 : size;
}

/* Bytes of the whole object, as far as it is known; never fewer than there are pieces. */
static __u64 whole_size(const struct reading *reading)
{
	const struct xpt_record_code *code = reading->code;
	__u64 size = code->copied, own;

	if (code->source == XPT_CODE_MEMORY && !(code->flags & XPT_CODE_TEXT)) {
		if (size < code->size)
			size = code->size;
		/* The kernel checks the head only. */
		own = has_size(reading) ? 0 : size_in_header(reading);
		if (own > size)
			size = own;
	}
	return size > reading->pieces->length ? size : reading->pieces->length;
}

static const char *why_incomplete(__u32 flags)
{
	if (flags & XPT_CODE_NO_WAIT)
		return "not all bytes: the call did not wait until they were read";
	if (flags & XPT_CODE_CROWDED)
		return "not all bytes: too many loads at once";
	if (flags & XPT_CODE_UNREADABLE)
		return "not all bytes: memory that cannot be read";
	return "not all bytes: some were lost";
}

/* What the pieces have is copied; the rest is missing, and takes no memory. */
static void take_pieces(const struct reading *reading)
{
	struct code_load *load = reading->load;
	__u64 whole = whole_size(reading);

	if (reading->pieces->length > reading->limits->room) {
		load->over_limit = true;
		code_load_set_error(load, "too many bytes at once");
	} else if (code_copy_make(reading->pieces->length, &load->copy)) {
		code_load_set_error(load, "no memory for its bytes");
	} else if (load->copy.size) {
		memcpy(load->copy.bytes, reading->pieces->bytes, load->copy.size);
	}
	load->size = whole;
	load->missing = whole - load->copy.size;
	load->incomplete = load->missing || !(reading->code->flags & XPT_CODE_WHOLE);
	if (load->incomplete)
		code_load_set_error(load, "%s", why_incomplete(reading->code->flags));
}

/* ---- from the memory of a thread that waits ---- */

static void set_memory_error(struct code_load *load, int error)
{
	switch (error) {
	case -EFBIG:
		load->over_limit = true;
		code_load_set_error(load, "not all bytes: more than can be copied");
		break;
	case -ETIME:
	case -ETIMEDOUT:
		code_load_set_error(load, "not all bytes: they could not be read in time");
		break;
	case -EFAULT:
		code_load_set_error(load, "not all bytes: memory that cannot be read");
		break;
	case -EBADMSG:
	case -ENODATA:
		code_load_set_error(load, "not all bytes: their number is unknown");
		break;
	default:
		code_load_set_error(load, "not all bytes: %s", strerror(-error));
	}
}

static int copy_memory(const struct reading *reading, struct code_copy *copy)
{
	const struct xpt_record_code *code = reading->code;
	struct file_readers *readers = reading->limits->readers;
	struct code_source source = {
		.kind = CODE_SOURCE_HEADER,
		.tgid = code->header.tgid,
		.deadline = code->header.time + reading->limits->wait_limit,
		.limit = reading->limits->room,
		.address = code->address,
	};
	__u64 size = 0;
	int error;

	/* Of a single part, address and size are its own. */
	if (code->source == XPT_CODE_PARTS && code->count) {
		source.kind = CODE_SOURCE_PARTS;
		source.sizes = code->size;
		source.count = code->count;
	} else if (code->flags & XPT_CODE_TEXT) {
		source.kind = CODE_SOURCE_TEXT;
	} else if (has_size(reading) && code->size) {
		source.kind = CODE_SOURCE_BYTES;
		size = code->size;
	}
	error = size ? 0 : file_reader_source_size(readers, &source, &size);
	if (!error && size > source.limit)
		error = -EFBIG;
	return error ?: file_reader_source_copy(readers, &source, size, copy);
}

/* False: it could not, and the load has the reason. */
static bool take_memory(const struct reading *reading)
{
	const struct xpt_record_code *code = reading->code;
	__u64 deadline = code->header.time + reading->limits->wait_limit;
	struct code_load *load = reading->load;
	struct code_copy copy = {};
	int error = copy_memory(reading, &copy);
	__u64 now;

	if (!reading->limits->answer(reading->limits->context, code->header.tgid, code->ticket) && !error) {
		code_load_set_error(load, "not all bytes: they could not be read in time");
		code_copy_free(&copy);
		return false;
	}
	now = clock_monotonic();
	load->waited = now - load->loaded;
	if (!error)
		error = code_copy_own(&copy);
	if (error) {
		set_memory_error(load, error);
		return false;
	}
	load->copy = copy;
	load->size = copy.size;
	load->missing = load->zeros = copy.missing;
	load->incomplete = copy.missing;
	if (copy.missing)
		set_memory_error(load, now < deadline ? -EFAULT : -ETIME);
	return true;
}

/* ---- files ---- */

static void take_file(const struct reading *reading)
{
	const struct xpt_record_code *code = reading->code;
	struct code_load *load = reading->load;
	bool whole = code->flags & XPT_CODE_WHOLE && reading->pieces->length;
	struct code_file_wanted wanted = { .tgid = load->tgid, .descriptor = -1, .place = -1 };
	int error = 0;

	load->address = 0;
	load->rights = (struct code_rights){ code->uid, code->gid, code->reads_all };
	if (code->source == XPT_CODE_DESCRIPTOR) {
		wanted.descriptor = (int)code->address;
	} else if (whole && strlen(reading->pieces->bytes) == reading->pieces->length) {
		load->path = strdup(reading->pieces->bytes);
		error = load->path ? 0 : -ENOMEM;
	} else {
		load->incomplete = true;
		code_load_set_error(load, "the path could not be read");
	}
	load->in_file = !load->incomplete && !error;
	wanted.path = load->path;
	wanted.rights = load->rights;
	if (load->in_file && code->source == XPT_CODE_DESCRIPTOR && wanted.descriptor < 0)
		error = -EBADF;
	else if (load->in_file && reading->limits->may_open)
		error = file_reader_code_start(reading->limits->readers, &wanted, &load->reader);
	else if (load->in_file && code->source == XPT_CODE_DESCRIPTOR)
		error = -EMFILE;
	if (error)
		code_load_set_file_error(load, error);
	if (!load->path)
		load->path = strdup("");
}

struct code_load *code_reading_load(const struct description *runtime, const struct call_spec *spec,
				    const struct xpt_record_code *code, const struct code_bytes *pieces,
				    const struct code_reading_limits *limits)
{
	struct code_load *load = calloc(1, sizeof(*load));
	const struct reading reading = { code, pieces, limits, load };

	if (!load)
		return NULL;
	load->tgid = code->header.tgid;
	load->tid = code->tid;
	load->runtime = runtime;
	load->spec = spec;
	load->hint = spec->code_kind;
	load->address = code->address;
	load->loaded = code->header.time;
	load->device = -1;
	load->place = -1;
	if (code->source == XPT_CODE_PATH || code->source == XPT_CODE_DESCRIPTOR) {
		take_file(&reading);
		if (code->ticket && limits->answer(limits->context, code->header.tgid, code->ticket))
			load->waited = clock_monotonic() - load->loaded;
	} else if (!code->ticket || !take_memory(&reading)) {
		take_pieces(&reading);
	}
	return load;
}
