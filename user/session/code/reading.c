/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/code/reading.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/clock.h"
#include "session/code/file.h"

struct reading {
	const struct xpt_record_code *code;
	const struct code_bytes *pieces;
	const struct code_reading_limits *limits;
	struct code_load *load;
};

/* ---- from pieces ---- */

static int read_piece(void *context, __u64 offset, void *to, size_t length)
{
	const struct code_bytes *pieces = context;

	if (offset > pieces->length || length > pieces->length - offset)
		return -EFAULT;
	memcpy(to, pieces->bytes + offset, length);
	return 0;
}

/* Was the size an argument of the call? */
static bool has_size(const struct reading *reading)
{
	return reading->load->spec->code.given >> XPT_CODE_SIZE & 1;
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
		if (!has_size(reading) && !code_own_size(read_piece, (void *)reading->pieces, ~0ull >> 1, &own) &&
		    own > size)
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
		code_load_set_error(load, "not all bytes: they could not be read in time");
		break;
	case -EFAULT:
		code_load_set_error(load, "not all bytes: memory that cannot be read");
		break;
	case -EBADMSG:
	case -ENODATA:
		code_load_set_error(load, "not all bytes: nothing tells how many there are");
		break;
	default:
		code_load_set_error(load, "not all bytes: %s", strerror(-error));
	}
}

static int copy_memory(const struct reading *reading, struct code_copy *copy)
{
	const struct xpt_record_code *code = reading->code;
	const struct code_memory memory = {
		.tgid = code->header.tgid,
		.deadline = code->header.time + reading->limits->wait_limit,
		.limit = reading->limits->room,
		.spare = reading->limits->spare,
		.ready = reading->limits->ready,
	};
	__u64 size = has_size(reading) ? code->size : 0;
	int error = 0;

	/* Of a single part, address and size are its own. */
	if (code->source == XPT_CODE_PARTS && code->count)
		return code_memory_parts(&memory, code->address, code->size, code->count, copy);
	if (code->flags & XPT_CODE_TEXT)
		error = code_memory_text(&memory, code->address, &size);
	else if (!size)
		error = code_memory_size(&memory, code->address, &size);
	if (!error && size > memory.limit)
		error = -EFBIG;
	return error ?: code_memory_copy(&memory, code->address, size, copy);
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
	const struct code_rights rights = { code->uid, code->gid, code->reads_all };
	bool whole = code->flags & XPT_CODE_WHOLE && reading->pieces->length;

	load->address = 0;
	load->incomplete = true;
	if (code->source == XPT_CODE_DESCRIPTOR) {
		load->file = code_file_open_descriptor(code->header.tgid, (int)code->address, &load->path);
	} else if (whole && strlen(reading->pieces->bytes) == reading->pieces->length) {
		load->file = code_file_open(code->header.tgid, &rights, reading->pieces->bytes, &load->path);
	} else {
		load->path = strdup("");
		code_load_set_error(load, "the path could not be read");
		return;
	}
	load->incomplete = load->file < 0;
	if (load->file < 0)
		code_load_set_error(load, "the file cannot be opened: %s", strerror(-load->file));
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
	load->file = -1;
	if (code->source == XPT_CODE_PATH || code->source == XPT_CODE_DESCRIPTOR) {
		take_file(&reading);
		if (code->ticket && limits->answer(limits->context, code->header.tgid, code->ticket))
			load->waited = clock_monotonic() - load->loaded;
	} else if (!code->ticket || !take_memory(&reading)) {
		take_pieces(&reading);
	}
	return load;
}
