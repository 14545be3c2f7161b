/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of Python interpreters: where they are, and what is in them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "stack/private.h"

#define CODE_BYTES 512	      /* at most, that are read of a code object */
#define TEXT_UNITS 1024	      /* at most, of a name or path */
#define LINES_MAX (64u << 10) /* bytes of a table of lines */
#define BYTES_SIZE 16	      /* in a bytes object: its length */
#define BYTES_DATA 32	      /* and its first byte */
#define TEXT_LENGTH 16	      /* in a text: its length */
#define TEXT_STATE 32	      /* and of which kind it is */
#define STATE_KIND 2	      /* bits: bytes of each character, 1, 2 or 4 */
#define STATE_ASCII (1u << 6)
#define OWNER_SHIM 3 /* and above: a frame on the stack of the interpreter's loop, outside of what that runs */
#define COPY_FRESH 100000000ull /* ns between the two copies of a stack */

/* Offsets in structures of CPython, by its headers (offsetof). From 3.13 on they are in the process's own memory. */
static const struct python_layout layouts[] = {
	{ .minor = 9,
	  .runtime = 32,
	  .threads = 8,
	  .next_thread = 8,
	  .thread_id = 176,
	  .frame = 24,
	  .inner = -1,
	  .previous = 24,
	  .code = 32,
	  .instruction = 104,
	  .first_line = 40,
	  .filename = 104,
	  .name = 112,
	  .lines = 120 },
	{ .minor = 10,
	  .runtime = 32,
	  .threads = 8,
	  .next_thread = 8,
	  .thread_id = 176,
	  .frame = 24,
	  .inner = -1,
	  .previous = 24,
	  .code = 32,
	  .instruction = 96,
	  .first_line = 40,
	  .filename = 104,
	  .name = 112,
	  .lines = 120 },
	{ .minor = 11,
	  .runtime = 40,
	  .threads = 16,
	  .next_thread = 8,
	  .thread_id = 152,
	  .frame = 56,
	  .inner = 8,
	  .previous = 48,
	  .code = 32,
	  .instruction = 56,
	  .owner = 68,
	  .first_line = 72,
	  .filename = 112,
	  .name = 128,
	  .lines = 136,
	  .adaptive = 184 },
	{ .minor = 12,
	  .runtime = 40,
	  .threads = 72,
	  .next_thread = 8,
	  .thread_id = 136,
	  .frame = 56,
	  .inner = 0,
	  .previous = 8,
	  .code = 0,
	  .instruction = 56,
	  .owner = 70,
	  .first_line = 68,
	  .filename = 112,
	  .name = 128,
	  .lines = 136,
	  .adaptive = 192 },
};

/* Words of struct _Py_DebugOffsets, whose sections follow each other. */
#define DEBUG_COOKIE "xdebugpy"
#define DEBUG_WORDS 64
#define DEBUG_FREE_THREADED 2
#define DEBUG_SECTIONS 3 /* its first words are of no section */

struct debug_words {
	unsigned int minor, runtime, interpreter, thread, frame, code; /* words of each section */
};

static const struct debug_words debug_words[] = { { 13, 3, 13, 9, 6, 10 }, { 14, 3, 16, 9, 8, 11 } };

/* ---- the process ---- */

static bool read_memory(const struct process *process, __u64 address, void *to, size_t size)
{
	return process->memory >= 0 && pread(process->memory, to, size, (off_t)address) == (ssize_t)size;
}

static bool read_word(const struct process *process, __u64 address, __u64 *word)
{
	return read_memory(process, address, word, sizeof(*word));
}

/* 0: the file is not that of an interpreter. */
static unsigned int minor_of(const char *path)
{
	const char *name = strrchr(path, '/');
	unsigned int minor;

	if (!name || (sscanf(name, "/python3.%u", &minor) != 1 && sscanf(name, "/libpython3.%u", &minor) != 1))
		return 0;
	return minor;
}

static int read_debug_layout(const struct process *process, unsigned int minor, struct python_layout *layout)
{
	const __u64 *runtime, *interpreter, *thread, *frame, *code;
	const struct debug_words *sizes = NULL;
	__u64 words[DEBUG_WORDS];

	for (size_t i = 0; i < sizeof(debug_words) / sizeof(debug_words[0]); i++)
		if (debug_words[i].minor == minor)
			sizes = &debug_words[i];
	if (!sizes || !read_memory(process, process->python_runtime, words, sizeof(words)) ||
	    memcmp(words, DEBUG_COOKIE, sizeof(words[0])))
		return -ENOTSUP;
	if (words[DEBUG_FREE_THREADED])
		return -EXDEV;
	runtime = words + DEBUG_SECTIONS;
	interpreter = runtime + sizes->runtime;
	thread = interpreter + sizes->interpreter;
	frame = thread + sizes->thread;
	code = frame + sizes->frame;
	*layout = (struct python_layout){
		.minor = minor,
		.runtime = runtime[2],
		.next_interpreter = interpreter[2],
		.threads = interpreter[3],
		.next_thread = thread[2],
		.frame = thread[4],
		.thread_id = thread[5],
		.inner = -1,
		.previous = frame[1],
		.code = frame[2],
		.instruction = frame[3],
		.owner = frame[5],
		.filename = code[1],
		.name = code[3],
		.lines = code[4],
		.first_line = code[5],
		.adaptive = code[9],
	};
	return 0;
}

static int find_layout(struct process *process, unsigned int minor)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].minor == minor) {
			process->python = layouts[i];
			return 0;
		}
	}
	return read_debug_layout(process, minor, &process->python);
}

/* What the process has may be anything. */
static bool is_layout(const struct python_layout *layout)
{
	const __u64 of_code[] = { layout->filename, layout->name, layout->lines, layout->first_line };
	const __u64 of_frame[] = { layout->previous + 8, layout->code + 8, layout->instruction + 8, layout->owner + 1 };
	const __u64 others[] = { layout->runtime,   layout->threads, layout->next_interpreter, layout->next_thread,
				 layout->thread_id, layout->frame,   layout->adaptive };
	bool good = layout->previous < 64 && layout->previous % 8 == 0;

	for (size_t i = 0; i < sizeof(of_code) / sizeof(of_code[0]); i++)
		good &= of_code[i] <= CODE_BYTES - 8;
	for (size_t i = 0; i < sizeof(of_frame) / sizeof(of_frame[0]); i++)
		good &= of_frame[i] <= XPT_PYTHON_FRAME_BYTES;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		good &= others[i] < 1u << 24;
	return good;
}

static void give_python(struct process *process)
{
	const struct python_layout *layout = &process->python;
	__u64 bytes = layout->instruction + 8;

	if (bytes <= layout->owner)
		bytes = layout->owner + 1;
	if (bytes < layout->code + 8)
		bytes = layout->code + 8;
	process->unwinder->options.python(process->unwinder->options.context, process->tgid,
					  &(struct xpt_python){
						  .interpreters = process->python_runtime + layout->runtime,
						  .next_interpreter = layout->next_interpreter,
						  .threads = layout->threads,
						  .next_thread = layout->next_thread,
						  .thread_id = layout->thread_id,
						  .frame = layout->frame,
						  .inner = (__u32)(layout->inner + 1),
						  .previous = layout->previous,
						  .frame_bytes = (__u32)((bytes + 7) & ~7ull),
					  });
}

/* Where the interpreter's state and its loop are. */
static bool find_symbols(struct process *process, Dwfl_Module *mod)
{
	int count = dwfl_module_getsymtab(mod);

	process->python_runtime = process->loop_start = process->loop_end = 0;
	for (int i = 0; i < count; i++) {
		GElf_Sym symbol;
		GElf_Addr address;
		const char *name = dwfl_module_getsym_info(mod, i, &symbol, &address, NULL, NULL, NULL);

		if (name && !strcmp(name, "_PyRuntime")) {
			process->python_runtime = address;
		} else if (name && !strcmp(name, "_PyEval_EvalFrameDefault")) {
			process->loop_start = address;
			process->loop_end = address + symbol.st_size;
		}
	}
	return process->python_runtime != 0;
}

void python_find(struct process *process)
{
	const struct stack_file file = { .kind = STACK_FILE_MEMORY, .tgid = process->tgid };
	int error;

	for (size_t i = 0; i < process->range_count && !process->python.minor; i++) {
		const struct code_range *range = &process->ranges[i];
		unsigned int minor = range->module && range->executable ? minor_of(range->module->path) : 0;
		Dwfl_Module *mod = minor ? dwfl_addrmodule(process->dwfl, range->start) : NULL;

		if (!mod || !find_symbols(process, mod))
			continue;
		if (process->memory < 0)
			process->memory = process->unwinder->options.open(process->unwinder->options.context, &file);
		error = find_layout(process, minor);
		if (!error && !is_layout(&process->python))
			error = -ENOTSUP;
		if (error) {
			process->python.minor = 0;
			process->unwinder->options.python_refused(process->unwinder->options.context, process->tgid,
								  error);
			return;
		}
		give_python(process);
	}
}

/* ---- what a code object says ---- */

static void add_character(struct text *text, __u32 c)
{
	char bytes[4];
	size_t length = 1;

	if (c < 0x80) {
		bytes[0] = (char)c;
	} else if (c < 0x800) {
		bytes[0] = (char)(0xc0 | c >> 6);
		bytes[1] = (char)(0x80 | (c & 0x3f));
		length = 2;
	} else if (c < 0x10000) {
		bytes[0] = (char)(0xe0 | c >> 12);
		bytes[1] = (char)(0x80 | (c >> 6 & 0x3f));
		bytes[2] = (char)(0x80 | (c & 0x3f));
		length = 3;
	} else {
		bytes[0] = (char)(0xf0 | c >> 18);
		bytes[1] = (char)(0x80 | (c >> 12 & 0x3f));
		bytes[2] = (char)(0x80 | (c >> 6 & 0x3f));
		bytes[3] = (char)(0x80 | (c & 0x3f));
		length = 4;
	}
	text_bytes(text, bytes, length);
}

/* A text of the process as UTF-8, terminated. */
static bool read_text(const struct process *process, __u64 address, struct text *text)
{
	const bool old = process->python.minor < 12;
	unsigned char units[4 * TEXT_UNITS];
	__u64 length, data;
	__u32 state, kind;

	if (!read_word(process, address + TEXT_LENGTH, &length) ||
	    !read_memory(process, address + TEXT_STATE, &state, sizeof(state)))
		return false;
	kind = state >> STATE_KIND & 7;
	if (kind != 1 && kind != 2 && kind != 4)
		return false;
	data = address + (state & STATE_ASCII ? (old ? 48 : 40) : (old ? 72 : 56));
	length = length < TEXT_UNITS ? length : TEXT_UNITS;
	if (!read_memory(process, data, units, length * kind))
		return false;
	for (__u64 i = 0; i < length; i++) {
		__u32 c = units[i];

		if (kind > 1)
			c = 0;
		if (kind > 1)
			memcpy(&c, units + i * kind, kind);
		add_character(text, c);
	}
	text_bytes(text, "", 1);
	return !text->error;
}

/* A number of 6 bits a byte, as in tables of 3.11 and later. */
static __u32 read_varint(const unsigned char *table, size_t size, size_t *at)
{
	__u32 value = 0;

	for (unsigned int shift = 0; *at < size && shift < 30; shift += 6) {
		unsigned char byte = table[(*at)++];

		value |= (__u32)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value;
}

static int read_signed(const unsigned char *table, size_t size, size_t *at)
{
	__u32 value = read_varint(table, size, at);

	return value & 1 ? -(int)(value >> 1) : (int)(value >> 1);
}

/* The line of an instruction, a number of bytes from the first one: tables of 3.11 and later. */
static int line_of_locations(const unsigned char *table, size_t size, int line, __u64 instruction)
{
	__u64 end = 0;
	size_t at = 0;

	while (at < size) {
		unsigned char first = table[at++];
		unsigned int code = first >> 3 & 15;

		end += 2 * ((first & 7u) + 1);
		if (code == 14 || code == 13)
			line += read_signed(table, size, &at);
		else if (code >= 10 && code <= 12)
			line += (int)code - 10;
		if (end > instruction)
			return code == 15 ? 0 : line;
		/* Columns. */
		while (at < size && !(table[at] & 128))
			at++;
	}
	return 0;
}

/* The same of 3.10 and earlier. */
static int line_of_pairs(const unsigned char *table, size_t size, unsigned int minor, int line, __u64 instruction)
{
	__u64 address = 0;

	for (size_t at = 0; at + 1 < size; at += 2) {
		signed char delta = (signed char)table[at + 1];

		address += table[at];
		if (minor < 10) {
			if (address > instruction)
				break;
			line += delta;
		} else {
			line += delta == -128 ? 0 : delta;
			if (address > instruction)
				return delta == -128 ? 0 : line;
		}
	}
	return line;
}

static int read_line(const struct process *process, __u64 lines, int first, __u64 instruction)
{
	const unsigned int minor = process->python.minor;
	unsigned char *table;
	__u64 size;
	int line = 0;

	if (!read_word(process, lines + BYTES_SIZE, &size) || size > LINES_MAX)
		return 0;
	table = malloc(size ?: 1);
	if (table && read_memory(process, lines + BYTES_DATA, table, size))
		line = minor < 11 ? line_of_pairs(table, size, minor, first, instruction) :
				    line_of_locations(table, size, first, instruction);
	free(table);
	return line > 0 ? line : 0;
}

static __u64 word_at(const void *bytes, __u64 offset)
{
	__u64 word;

	memcpy(&word, (const char *)bytes + offset, sizeof(word));
	return word;
}

/* Bytes from the first instruction of the code to the one that runs. */
static __u64 instruction_of(const struct python_layout *layout, const struct xpt_python_frame *frame, __u64 code)
{
	__u32 index;

	if (layout->minor >= 11)
		return word_at(frame->words, layout->instruction) - (code + layout->adaptive);
	memcpy(&index, (const char *)frame->words + layout->instruction, sizeof(index));
	return layout->minor == 10 ? 2 * (__u64)index : index;
}

__u32 python_frame(struct process *process, const struct xpt_python_frame *frame)
{
	const struct python_layout *layout = &process->python;
	/* A tag is in the low bits from 3.14 on. */
	const __u64 code = word_at(frame->words, layout->code) & ~3ull;
	__u64 instruction = instruction_of(layout, frame, code), hash = 0xcbf29ce484222325;
	struct text name = {}, file = {};
	unsigned char bytes[CODE_BYTES];
	__u32 id = 0, first;
	int line;

	/* A process that has ended has no memory: as it was met last. */
	if (!read_memory(process, code, bytes, sizeof(bytes)))
		return frame_find(process, code ^ instruction << 48) ?: frame_unknown(process);
	/* Where it lies another one may have been before. */
	const __u64 parts[] = { code, instruction, word_at(bytes, layout->name), word_at(bytes, layout->filename),
				word_at(bytes, layout->lines) };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		hash = (hash ^ parts[i]) * 0x100000001b3 ^ (hash >> 29);
	id = frame_find(process, hash);
	if (id)
		return id;
	memcpy(&first, bytes + layout->first_line, sizeof(first));
	line = read_line(process, word_at(bytes, layout->lines), (int)first, instruction);
	if (read_text(process, word_at(bytes, layout->name), &name) &&
	    read_text(process, word_at(bytes, layout->filename), &file))
		id = frame_python(process, hash, code ^ instruction << 48, name.data, file.data, line);
	text_free(&name);
	text_free(&file);
	return id ?: frame_unknown(process);
}

/* ---- between the native frames ---- */

static unsigned int owner_of(const struct process *process, const struct xpt_python_frame *frame)
{
	return ((const unsigned char *)frame->words)[process->python.owner];
}

bool python_is_shim(const struct process *process, const struct xpt_python_frame *frame)
{
	return process->python.minor >= 12 && owner_of(process, frame) >= OWNER_SHIM;
}

unsigned int python_end(const struct process *process, const struct xpt_record_python_copy *copy, unsigned int from,
			const struct native_frame *native)
{
	const unsigned int minor = process->python.minor;

	if (minor >= 12) {
		for (unsigned int i = from; i < copy->frames; i++)
			if (python_is_shim(process, &copy->frame[i]))
				return copy->frame[i].address >= native->start && copy->frame[i].address < native->end ?
					       i + 1 :
					       from;
		return from;
	}
	if (native->address < process->loop_start || native->address >= process->loop_end)
		return from;
	/* 3.11: whether it is the one that the loop has begun with; before, each frame has a loop of its own. */
	while (from < copy->frames)
		if (owner_of(process, &copy->frame[from++]) || minor < 11)
			break;
	return from;
}
