/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses where the probe of a function sits; what instructions do is known by the decoder of the machine. */
#include "target/probe/site.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/probe/decoder.h"

#define WALK_BYTES 64
#define AFTER_BYTES 160 /* behind a call */
#define WALK_INSTRUCTIONS 16
#define INSTRUCTION_MAX 15   /* bytes */
#define BODY_MAX (64u << 10) /* a longer function keeps its probe where no branch can reach */
#define PROOF_MAX (4u << 20) /* bytes of a function before the place of a probe */
#define OUTSIDE_MAX 8	     /* parts of a function that lie elsewhere (cold code) */

/* Code of one function, read once. */
struct code {
	site_decode_fn decode;
	__u64 address;
	unsigned char *bytes;
	size_t length;
};

/* What is known about branches of the function. */
struct branches {
	bool landing_pads;	    /* the function begins with one: it was compiled to be entered nowhere else */
	__u64 low, high;	    /* a target in (low, high] forbids the site at high */
	bool lands_between;	    /* such a target was seen */
	bool unknown;		    /* there may be targets that were not seen */
	__u64 outside[OUTSIDE_MAX]; /* targets beyond the part at hand */
	size_t outside_count;
};

static site_decode_fn decoder_of(const struct elf_file *file)
{
	return elf_file_machine(file) == ELF_MACHINE_X86_64 ? site_decode_x86 : site_decode_arm64;
}

/* Up to length bytes of code at address, fewer where the segment ends. */
static int read_code(struct elf_file *file, __u64 address, size_t length, struct code *code)
{
	__u64 offset;
	int error = 0;

	code->decode = decoder_of(file);
	code->address = address;
	code->bytes = NULL;
	code->length = 0;
	if (elf_file_offset(file, address, &offset))
		return -ENOENT;
	code->bytes = malloc(length);
	if (!code->bytes)
		return -ENOMEM;
	while (length && (error = elf_file_read(file, address, code->bytes, length)) == -EFAULT)
		length = length > 2 * INSTRUCTION_MAX ? length / 2 : length - 1;
	if (!error)
		code->length = length;
	return error && error != -EFAULT ? error : length ? 0 : -ENOENT;
}

static int decode_at(const struct code *code, size_t at, struct site_instruction *instruction)
{
	if (at >= code->length)
		return -ENOEXEC;
	return code->decode(code->bytes + at, code->length - at, code->address + at, instruction);
}

static int visit_function(void *context, const struct elf_symbol *symbol)
{
	return symbol->address == *(const __u64 *)context;
}

/* For a symbol of unknown size. */
static int check_symbol(struct elf_file *file, __u64 address)
{
	int found = elf_file_each_function(file, visit_function, &address);

	return found < 0 ? found : found ? 0 : -ENOEXEC;
}

/* 0: decoded from start on, an instruction begins at address. */
static int check_decoded(struct elf_file *file, __u64 start, __u64 address)
{
	struct site_instruction instruction = { 0 };
	struct code code;
	size_t at = 0;
	int error;

	if (address == start || elf_file_machine(file) == ELF_MACHINE_AARCH64)
		return 0;
	if (address - start > PROOF_MAX)
		return -ENOEXEC;
	error = read_code(file, start, address - start, &code);
	while (!error && at < address - start) {
		error = decode_at(&code, at, &instruction);
		at += instruction.length;
	}
	free(code.bytes);
	return error == -ENOENT || (!error && at != address - start) ? -ENOEXEC : error;
}

struct section_around {
	__u64 offset; /* that it contains */
	__u64 start;  /* offset of the section; 0: there is none */
};

static int visit_section(void *context, const struct elf_section *section)
{
	struct section_around *around = context;

	if (around->offset >= section->offset && around->offset - section->offset < section->size)
		around->start = section->offset;
	return around->start != 0;
}

/*
 * Of an address that symbols alone name, in a file with an unwind table: decoded from the end of the last function before it that the table
 * has (end; 0: there is none), or from the begin of its section, an instruction begins there. Symbols may lead into padding.
 */
static int check_gap(struct elf_file *file, __u64 end, __u64 address)
{
	struct section_around around = { 0 };
	int error = elf_file_offset(file, address, &around.offset);

	if (error)
		return error == -ENOENT ? -ENOEXEC : error;
	elf_file_each_section(file, visit_section, &around);
	if (around.start && address - (around.offset - around.start) > end)
		end = address - (around.offset - around.start);
	return end ? check_decoded(file, end, address) : -ENOEXEC;
}

/*
 * An address from a file or a process may be wrong or made up, and a probe inside an instruction changes it. 0:
 * counted from the begin of the function around it, an instruction begins there; -ENOEXEC: nothing shows that.
 */
static int check_boundary(struct elf_file *file, __u64 address)
{
	__u64 start, size, frame, frame_size;
	int error, known;

	if (elf_file_machine(file) == ELF_MACHINE_AARCH64 && address % 4)
		return -ENOEXEC;
	known = elf_file_frame_before(file, address, &frame, &frame_size);
	if (known && known != -ENOENT && known != -ENODATA)
		return known;
	if (!known && address - frame < frame_size)
		return check_decoded(file, frame, address);
	error = elf_file_function_bounds(file, address, &start, &size);
	error = error == -ENOENT ? check_symbol(file, address) : error ?: check_decoded(file, start, address);
	return error || known == -ENODATA ? error : check_gap(file, known ? 0 : frame + frame_size, address);
}

static bool is_filler(const struct code *code)
{
	size_t length = code->length < 8 ? code->length : 8;

	for (size_t i = 1; i < length; i++)
		if (code->bytes[i] != code->bytes[0])
			return false;
	return code->bytes[0] == 0x00 || code->bytes[0] == 0xcc;
}

/*
 * Finds the first instruction after the entry that a probe is cheap on and from where everything in arguments is still
 * as at the entry. A call is never moved onto: emulated or not, the return address it pushes is a matter between the
 * kernel and the shadow stack.
 */
static bool find_cheaper(const struct code *code, __u32 arguments, size_t *distance, struct site_instruction *found)
{
	struct site_instruction instruction;
	size_t at = 0;

	for (unsigned int i = 0; i < WALK_INSTRUCTIONS && at < WALK_BYTES; i++) {
		if (decode_at(code, at, &instruction))
			return false;
		if (i && instruction.emulated && !instruction.refused && instruction.flow != SITE_FLOW_STOP) {
			*distance = at;
			*found = instruction;
			return true;
		}
		if (!instruction.transparent || instruction.writes & arguments)
			return false;
		at += instruction.length;
	}
	return false;
}

static void note_target(const struct code *code, __u64 target, struct branches *branches)
{
	if (target > branches->low && target <= branches->high)
		branches->lands_between = true;
	if (target - code->address < code->length)
		return;
	for (size_t i = 0; i < branches->outside_count; i++)
		if (branches->outside[i] == target)
			return;
	if (branches->outside_count == OUTSIDE_MAX)
		branches->unknown = true;
	else
		branches->outside[branches->outside_count++] = target;
}

/*
 * Whether an indirect jump may go to a place inside this function. In code with landing pads it may not, unless it is
 * marked; and a jump through a pointer that was loaded as it is (pointers) passes the call on, since a jump table's
 * address is computed or its entry indexed.
 */
static bool may_stay_inside(const struct site_instruction *instruction, const struct branches *branches, __u32 pointers)
{
	return instruction->flow == SITE_FLOW_SWITCH && !(instruction->tracked && branches->landing_pads) &&
	       !(instruction->jumps_to & pointers);
}

static void scan(const struct code *code, struct branches *branches)
{
	struct site_instruction instruction;
	__u32 pointers = 0;

	for (size_t at = 0; at < code->length; at += instruction.length) {
		if (decode_at(code, at, &instruction)) {
			branches->unknown = true;
			return;
		}
		if (instruction.flow == SITE_FLOW_BRANCH || instruction.flow == SITE_FLOW_JUMP)
			note_target(code, instruction.target, branches);
		else if (may_stay_inside(&instruction, branches, pointers))
			branches->unknown = true;
		pointers = (pointers & ~instruction.changes) | instruction.pointer;
		if (instruction.flow != SITE_FLOW_NEXT && instruction.flow != SITE_FLOW_BRANCH)
			pointers = 0;
	}
}

static int scan_part(struct elf_file *file, __u64 start, __u64 size, struct branches *branches)
{
	struct code code;
	int error;

	if (size > BODY_MAX) {
		branches->unknown = true;
		return 0;
	}
	error = read_code(file, start, size, &code);
	if (!error && code.length == size)
		scan(&code, branches);
	else
		branches->unknown = true;
	free(code.bytes);
	return error == -ENOENT ? 0 : error;
}

/*
 * Scans the function, and what it jumps to: compilers move unlikely code out of line, and that jumps back. A tail call
 * looks the same; scanning the called function as well does no harm.
 */
static int scan_function(struct elf_file *file, __u64 start, __u64 size, struct branches *branches)
{
	size_t inside;
	int error = scan_part(file, start, size, branches);

	inside = branches->outside_count;
	for (size_t i = 0; i < inside && !error && !branches->unknown; i++) {
		__u64 part, part_size;
		struct branches further = { .landing_pads = branches->landing_pads,
					    .low = branches->low,
					    .high = branches->high };

		/* a stub of the linker has no bounds, and nothing that jumps back */
		error = elf_file_function_bounds(file, branches->outside[i], &part, &part_size);
		if (error == -ENOENT) {
			error = 0;
			continue;
		}
		if (!error)
			error = scan_part(file, part, part_size, &further);
		branches->lands_between |= further.lands_between;
		/* a tail call's own jumps are its own; only one in the part itself could be aimed here */
		if (further.unknown && part != branches->outside[i])
			branches->unknown = true;
	}
	return error;
}

/*
 * Whether nothing but the entry leads to the site. Where branches are not all known (no bounds, a jump table), it is
 * enough that the site pushes: code that came back to it with another call's frame would leave the stack out of
 * balance, and compilers make no such thing. Without bounds the only step believed is that past a landing pad, which
 * is there for callers alone.
 */
static int is_private(struct elf_file *file, const struct code *code, size_t distance,
		      const struct site_instruction *site, bool *result)
{
	struct branches branches = { .low = code->address, .high = code->address + distance };
	struct site_instruction first;
	__u64 start, size;
	int error = elf_file_function_bounds(file, code->address, &start, &size);

	if (error && error != -ENOENT)
		return error;
	branches.landing_pads = decode_at(code, 0, &first) == 0 && first.landing;
	if (error || start != code->address || size > BODY_MAX) {
		*result = site->push && branches.landing_pads && first.length == distance;
		return 0;
	}
	if (size <= distance) {
		*result = false;
		return 0;
	}
	error = scan_function(file, start, size, &branches);
	*result = !branches.lands_between && (!branches.unknown || site->push);
	return error;
}

int site_choose(struct elf_file *file, __u64 address, __u32 arguments, struct site *site)
{
	struct site_instruction first, moved;
	size_t distance = 0;
	bool private = false;
	struct code code;
	int error = read_code(file, address, WALK_BYTES + INSTRUCTION_MAX, &code);

	if (error)
		goto out;
	error = is_filler(&code) ? -ENOEXEC : decode_at(&code, 0, &first);
	if (!error)
		error = check_boundary(file, address);
	if (error)
		goto out;
	error = elf_file_offset(file, address, &site->function);
	if (error)
		goto out;
	site->offset = site->function;
	site->semaphore = 0;
	site->class = first.optimised ? SITE_OPTIMISED : first.emulated ? SITE_EMULATED : SITE_STEPPED;
	if (site->class == SITE_STEPPED && find_cheaper(&code, arguments, &distance, &moved))
		error = is_private(file, &code, distance, &moved, &private);
	if (private) {
		site->offset += distance;
		site->class = SITE_EMULATED;
	} else if (!error && first.refused) {
		error = -ENOEXEC;
	}
out:
	free(code.bytes);
	return error;
}

/* How far behind the code's begin the first place is that a probe is cheap on, with the stack pointer as it is there; -ENOENT: none. */
static int find_after(const struct code *code, size_t *distance)
{
	struct site_instruction instruction;

	for (size_t at = 0; at < AFTER_BYTES; at += instruction.length) {
		if (decode_at(code, at, &instruction) || instruction.refused || instruction.flow == SITE_FLOW_STOP)
			return -ENOENT;
		if (instruction.emulated) {
			*distance = at;
			return 0;
		}
		if (instruction.stack || instruction.flow != SITE_FLOW_NEXT)
			return -ENOENT;
	}
	return -ENOENT;
}

int site_choose_after(struct elf_file *file, __u64 address, struct site *site)
{
	struct site_instruction first;
	size_t distance = 0;
	struct code code;
	int error = read_code(file, address, AFTER_BYTES + INSTRUCTION_MAX, &code);

	if (!error)
		error = decode_at(&code, 0, &first) ?: check_boundary(file, address);
	if (!error)
		error = elf_file_offset(file, address, &site->function);
	if (error)
		goto out;
	site->class = find_after(&code, &distance) ? SITE_STEPPED : SITE_EMULATED;
	site->offset = site->function + distance;
	site->semaphore = 0;
	if (site->class == SITE_STEPPED && first.refused)
		error = -ENOEXEC;
out:
	free(code.bytes);
	return error;
}

int site_of_marker(struct elf_file *file, __u64 address, struct site *site)
{
	struct site_instruction marker;
	struct code code;
	int error = read_code(file, address, INSTRUCTION_MAX, &code);

	if (!error)
		error = decode_at(&code, 0, &marker) ?: check_boundary(file, address);
	if (!error && (!marker.emulated || marker.optimised || marker.refused || marker.stack || marker.changes ||
		       marker.landing || marker.flow != SITE_FLOW_NEXT))
		error = -ENOEXEC;
	if (!error)
		error = elf_file_offset(file, address, &site->function);
	site->offset = site->function;
	site->class = SITE_EMULATED;
	site->semaphore = 0;
	free(code.bytes);
	return error;
}

static __u32 argument_of(const struct xpt_fetch *fetch)
{
	return fetch->source < 32 ? 1u << fetch->source : 0;
}

__u32 site_arguments(const struct call_spec *spec)
{
	__u32 arguments = 0;

	/* fetches at return are made from arguments that were remembered at the entry */
	for (unsigned int i = 0; i < spec->wire.fetches && i < XPT_FETCH_MAX; i++)
		arguments |= argument_of(&spec->wire.fetch[i]);
	for (unsigned int i = 0; i < sizeof(spec->code.fetch) / sizeof(spec->code.fetch[0]); i++)
		if (spec->code.given & 1u << i)
			arguments |= argument_of(&spec->code.fetch[i]);
	return arguments;
}

const char *site_class_name(enum site_class class)
{
	switch (class) {
	case SITE_OPTIMISED:
		return "optimised";
	case SITE_EMULATED:
		return "emulated";
	case SITE_STEPPED:
		return "stepped";
	}
	return "unknown";
}

unsigned int site_class_cost(enum site_class class)
{
	switch (class) {
	case SITE_OPTIMISED:
		return 900;
	case SITE_EMULATED:
		return 1100;
	case SITE_STEPPED:
		return 11000;
	}
	return 0;
}
