/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/code_reading.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "session/code_file.h"

#define STOP_WAIT 100000000ull /* ns that a thread takes to stop at most */

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
		/* The kernel looks at the head only. */
		if (!has_size(reading) && !code_own_size(read_piece, (void *)reading->pieces, ~0ull >> 1, &own) &&
		    own > size)
			size = own;
	}
	return size > reading->pieces->length ? size : reading->pieces->length;
}

static const char *why_not_stopped(__u32 flags)
{
	if (flags & XPT_CODE_TRACED)
		return "not all bytes: the process is traced by a debugger";
	if (flags & XPT_CODE_HANDLED)
		return "not all bytes: the process handles SIGCONT";
	if (flags & XPT_CODE_NO_STOP)
		return "not all bytes: the process must not be stopped";
	if (flags & XPT_CODE_FOREGROUND)
		return "not all bytes: the process runs in the foreground of a terminal";
	if (flags & XPT_CODE_STOPPING)
		return "not all bytes: somebody else was stopping the process";
	if (flags & XPT_CODE_LATE)
		return "not all bytes: the memory of the process took too long to read";
	if (flags & XPT_CODE_UNATTENDED)
		return "not all bytes: the collector was itself stopped, or stuck";
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
		code_load_set_error(load, "%s", why_not_stopped(reading->code->flags));
}

/* ---- from the memory of a stopped process ---- */

static void set_memory_error(struct code_load *load, int error)
{
	switch (error) {
	case -EFBIG:
		load->over_limit = true;
		code_load_set_error(load, "not all bytes: more than can be copied");
		break;
	case -ETIME:
		code_load_set_error(load, "not all bytes: the process would have been stopped for too long");
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
		.deadline = code->header.time + reading->limits->stop_limit,
		.limit = reading->limits->room,
		.spare = reading->limits->spare,
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

/*
 * How often a thread has been given a processor; 0: the kernel does not count. Stopped both before and after, it may have
 * run in between, when others let it go and stop it, too.
 */
static __u64 thread_turns(pid_t tgid, pid_t tid)
{
	char path[64];
	unsigned long long turns = 0;
	FILE *file;

	/* Reading this waits until a thread that says to be stopped has left its processor indeed. */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", tgid, tid);
	file = fopen(path, "re");
	if (file) {
		fgetc(file);
		fclose(file);
	}
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", tgid, tid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%*u %*u %llu", &turns) != 1)
		turns = 0;
	fclose(file);
	return turns;
}

/* False: it could not, and the load says why. */
static bool take_memory(const struct reading *reading)
{
	const struct xpt_record_code *code = reading->code;
	struct code_load *load = reading->load;
	__u64 latest = clock_monotonic() + STOP_WAIT, deadline = code->header.time + reading->limits->stop_limit;
	struct code_copy copy = {};
	__u64 turns;
	int error;

	if (!code_memory_wait(code->header.tgid, code->tid, latest < deadline ? latest : deadline)) {
		code_load_set_error(load, "not all bytes: the process has not stopped");
		return false;
	}
	turns = thread_turns(code->header.tgid, code->tid);
	error = copy_memory(reading, &copy);
	if (!error && (!code_memory_wait(code->header.tgid, code->tid, 0) ||
		       thread_turns(code->header.tgid, code->tid) != turns)) {
		code_load_set_error(load, "not all bytes: the process went on while it was read");
		code_copy_free(&copy);
		return false;
	}
	if (error) {
		set_memory_error(load, error);
		return false;
	}
	load->copy = copy;
	load->size = copy.size;
	load->missing = load->zeros = copy.missing;
	load->incomplete = copy.missing;
	if (copy.missing)
		set_memory_error(load, clock_monotonic() < deadline ? -EFAULT : -ETIME);
	return true;
}

/* ---- files ---- */

static void take_file(const struct reading *reading)
{
	const struct xpt_record_code *code = reading->code;
	struct code_load *load = reading->load;
	bool whole = code->flags & XPT_CODE_WHOLE && reading->pieces->length;

	load->address = 0;
	load->incomplete = true;
	if (code->source == XPT_CODE_DESCRIPTOR) {
		load->file = code_file_open_descriptor(code->header.tgid, (int)code->address, &load->path);
	} else if (whole && strlen(reading->pieces->bytes) == reading->pieces->length) {
		load->file = code_file_open(code->header.tgid, reading->pieces->bytes, &load->path);
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
	load->held = code->flags & XPT_CODE_HELD;
	if (code->source == XPT_CODE_PATH || code->source == XPT_CODE_DESCRIPTOR)
		take_file(&reading);
	else if (!load->held || !take_memory(&reading))
		take_pieces(&reading);
	return load;
}
