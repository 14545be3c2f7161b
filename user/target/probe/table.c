/* SPDX-License-Identifier: BSD-2-Clause */
/* From an accessor's code to the slots of its table, in the file or in the memory of a process. */
#include "target/probe/functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/process/process.h"
#include "target/probe/decoder.h"

#define SLOT_MAX 4096
#define ACCESSOR_BYTES 256
#define TAIL_MAX 4    /* accessors that only jump on to the next */
#define RUN_CERTAIN 8 /* addresses of code in a row: no accident */

/* ---- registers and branches of an accessor, the part that is alike on all machines ---- */

static void add_candidate(struct table_candidates *candidates, const struct table_value *value, bool returned)
{
	struct table_candidate *candidate;

	for (size_t i = 0; i < candidates->count; i++) {
		candidate = &candidates->list[i];
		if (candidate->address == value->address && candidate->loaded == value->loaded) {
			candidate->returned |= returned;
			return;
		}
	}
	if (candidates->count == TABLE_CANDIDATE_MAX)
		return;
	candidate = &candidates->list[candidates->count++];
	candidate->address = value->address;
	candidate->loaded = value->loaded;
	candidate->returned = returned;
}

void table_walk_begin(struct table_walk *walk, __u64 address, size_t length, struct table_candidates *candidates)
{
	memset(walk, 0, sizeof(*walk));
	walk->candidates = candidates;
	walk->start = address;
	walk->end = address + length;
	walk->now.reachable = true;
}

/* What one way knows and the other doesn't is kept: one of them is the error path, and that returns no address. */
static void join(struct table_state *to, const struct table_state *from)
{
	if (!to->reachable) {
		*to = *from;
		return;
	}
	for (unsigned int i = 0; i < TABLE_REGISTERS; i++)
		if (!to->registers[i].known)
			to->registers[i] = from->registers[i];
}

void table_walk_arrive(struct table_walk *walk, __u64 address)
{
	for (size_t i = 0; i < walk->pending_count; i++)
		if (walk->pending[i].target == address)
			join(&walk->now, &walk->pending[i].state);
	walk->now.reachable = true; /* by a jump table or from above; nothing is known then */
}

void table_walk_set(struct table_walk *walk, unsigned int reg, __u64 address, bool loaded)
{
	struct table_value *value = &walk->now.registers[reg];

	value->known = true;
	value->loaded = loaded;
	value->address = address;
}

void table_walk_compute(struct table_walk *walk, unsigned int reg, __u64 address, bool loaded)
{
	table_walk_set(walk, reg, address, loaded);
	add_candidate(walk->candidates, &walk->now.registers[reg], false);
}

void table_walk_copy(struct table_walk *walk, unsigned int to, unsigned int from)
{
	walk->now.registers[to] = walk->now.registers[from];
}

void table_walk_forget(struct table_walk *walk, unsigned int reg)
{
	walk->now.registers[reg].known = false;
}

void table_walk_branch(struct table_walk *walk, __u64 target)
{
	if (target <= walk->start || target >= walk->end || walk->pending_count == TABLE_MERGE_MAX)
		return;
	walk->pending[walk->pending_count].target = target;
	walk->pending[walk->pending_count++].state = walk->now;
}

static void end_path(struct table_walk *walk)
{
	memset(&walk->now, 0, sizeof(walk->now));
}

void table_walk_jump(struct table_walk *walk, __u64 target)
{
	if (target < walk->start || target >= walk->end) {
		if (!walk->candidates->tail)
			walk->candidates->tail = target;
	} else {
		table_walk_branch(walk, target);
	}
	end_path(walk);
}

void table_walk_return(struct table_walk *walk, unsigned int reg)
{
	if (walk->now.registers[reg].known)
		add_candidate(walk->candidates, &walk->now.registers[reg], true);
	end_path(walk);
}

/* ---- from the accessor to its table ---- */

static int decode(struct elf_file *file, __u64 address, struct table_candidates *candidates)
{
	table_decode_fn decoder = elf_file_machine(file) == ELF_MACHINE_X86_64 ? table_decode_x86 : table_decode_arm64;
	unsigned char code[ACCESSOR_BYTES];
	size_t length = sizeof(code);
	__u64 start, size;

	if (!elf_file_is_executable(file, address))
		return -ENOENT;
	if (elf_file_function_bounds(file, address, &start, &size) == 0 && start + size - address < length)
		length = start + size - address;
	while (length && elf_file_read(file, address, code, length))
		length /= 2;
	decoder(code, length, address, candidates);
	return 0;
}

static bool any_returned(const struct table_candidates *candidates)
{
	for (size_t i = 0; i < candidates->count; i++)
		if (candidates->list[i].returned)
			return true;
	return false;
}

/* Candidates of the accessor, or of what it jumps on to. */
static int find_candidates(struct elf_file *file, __u64 address, struct table_candidates *candidates)
{
	for (unsigned int i = 0; i < TAIL_MAX; i++) {
		int error;

		memset(candidates, 0, sizeof(*candidates));
		error = decode(file, address, candidates);
		if (error)
			return error;
		if (any_returned(candidates) || !candidates->tail)
			break;
		address = candidates->tail;
	}
	return candidates->count ? 0 : -ENOENT;
}

/* Where a candidate points; a loaded one is known when the file has the future value of the word. */
static bool resolve(struct elf_file *file, const struct table_candidate *candidate, __u64 *address)
{
	*address = candidate->address;
	return !candidate->loaded || elf_file_relocated(file, candidate->address, address) == 0;
}

static bool read_slot(struct elf_file *file, __u64 address, __u64 *function)
{
	return elf_file_relocated(file, address, function) == 0 && elf_file_is_executable(file, *function);
}

/* Number of consecutive addresses of code at address. */
static size_t run_length(struct elf_file *file, __u64 address)
{
	__u64 function;
	size_t run = 0;

	while (run < SLOT_MAX && read_slot(file, address + 8 * run, &function))
		run++;
	return run;
}

/* Size in the table's own field, slots_offset included; 0: not usable (filled at run time, or nowhere). */
static size_t plausible_size(const struct table_spec *spec, __u64 size)
{
	if (size <= spec->slots_offset || size - spec->slots_offset > TABLE_BYTES_MAX || size % 8)
		return 0;
	return size;
}

static size_t size_in_file(struct elf_file *file, const struct table_spec *spec, __u64 table)
{
	__u64 size;

	if (spec->size_offset < 0 || elf_file_read(file, table + (__u64)spec->size_offset, &size, sizeof(size)))
		return 0;
	return plausible_size(spec, size);
}

/*
 * How sure it is that the table is at address: the number of its slots that hold addresses of code in a row. A table
 * with its own size may begin with an empty slot.
 */
static size_t score(struct elf_file *file, const struct table_spec *spec, __u64 address)
{
	size_t size = size_in_file(file, spec, address), filled = 0;
	__u64 function;

	if (!size)
		return spec->size_offset < 0 ? run_length(file, address + spec->slots_offset) : 0;
	for (__u64 at = spec->slots_offset; at + 8 <= size; at += 8)
		filled += read_slot(file, address + at, &function);
	return filled;
}

/* The best candidate for the table itself. An address that is only computed on the way must be beyond doubt. */
static int choose_table(struct elf_file *file, const struct table_spec *spec, const struct table_candidates *candidates,
			__u64 *table)
{
	size_t best = 0, first_returned = TABLE_CANDIDATE_MAX;
	bool certain = any_returned(candidates);
	__u64 address;

	for (size_t i = 0; i < candidates->count; i++) {
		const struct table_candidate *candidate = &candidates->list[i];
		size_t slots;

		if (candidate->returned != certain || !resolve(file, candidate, &address))
			continue;
		/* a table that is filled at run time lies where it can be written */
		if (candidate->returned && first_returned == TABLE_CANDIDATE_MAX && elf_file_is_writable(file, address))
			first_returned = i;
		slots = score(file, spec, address);
		if (slots > best && (certain || slots >= RUN_CERTAIN)) {
			best = slots;
			*table = address;
		}
	}
	if (best)
		return 0;
	if (first_returned == TABLE_CANDIDATE_MAX)
		return -ENOENT;
	resolve(file, &candidates->list[first_returned], table);
	return -ENODATA;
}

/* From an accessor of an object to the accessor in the object's slot. */
static int follow_slot(struct elf_file *file, __u64 *accessor, unsigned int slot, __u64 *object)
{
	struct table_candidates candidates;
	int error = find_candidates(file, *accessor, &candidates);

	if (error)
		return error;
	for (int returned = 1; returned >= 0; returned--) {
		for (size_t i = 0; i < candidates.count; i++) {
			if (candidates.list[i].returned == returned && resolve(file, &candidates.list[i], object) &&
			    read_slot(file, *object + 8ull * slot, accessor))
				return 0;
		}
	}
	return -ENOENT;
}

/*
 * Slots of a table without a size. The objects on the way to it are full of addresses of code themselves, and compilers
 * like to put them right behind: an older version's table would seem to have a newer one's slots.
 */
static size_t count_slots(struct elf_file *file, __u64 first, const __u64 *objects, size_t object_count)
{
	size_t count = run_length(file, first);

	for (size_t i = 0; i < object_count; i++)
		if (objects[i] >= first && (objects[i] - first) / 8 < count)
			count = (objects[i] - first) / 8;
	return count;
}

static int read_slots(struct elf_file *file, const struct table_spec *spec, const __u64 *objects,
		      struct api_table *table)
{
	size_t size = size_in_file(file, spec, table->address), filled = 0;
	__u64 first = table->address + spec->slots_offset;

	if (size)
		table->slot_count = (size - spec->slots_offset) / 8;
	else if (spec->size_offset < 0)
		table->slot_count = count_slots(file, first, objects, spec->through_count);
	if (!table->slot_count)
		return -ENODATA;
	table->slots = calloc(table->slot_count, sizeof(*table->slots));
	if (!table->slots)
		return -ENOMEM;
	for (size_t i = 0; i < table->slot_count; i++) {
		if (read_slot(file, first + 8 * i, &table->slots[i]))
			filled++;
		else
			table->slots[i] = 0;
	}
	return filled ? 0 : -ENODATA;
}

int api_table_from_file(const struct log *log, struct elf_file *file, const struct table_spec *spec,
			__u64 accessor_address, struct api_table *result)
{
	__u64 objects[sizeof(spec->through) / sizeof(*spec->through)];
	struct table_candidates candidates;
	int error;

	memset(result, 0, sizeof(*result));
	for (size_t i = 0; i < spec->through_count; i++) {
		error = follow_slot(file, &accessor_address, spec->through[i], &objects[i]);
		if (error)
			return error;
	}
	error = find_candidates(file, accessor_address, &candidates);
	if (!error)
		error = choose_table(file, spec, &candidates, &result->address);
	if (!error)
		error = read_slots(file, spec, objects, result);
	if (error == -ENODATA) {
		__u64 address = result->address;

		api_table_free(result);
		result->address = address;
		log_debug(log, "the API table of %s is filled at run time", spec->accessor);
	} else if (error) {
		api_table_free(result);
	}
	return error;
}

static int size_in_memory(const struct table_spec *spec, pid_t pid, __u64 table, size_t *size)
{
	__u64 value;
	ssize_t got;

	if (spec->size_offset < 0) {
		*size = spec->slots_offset + TABLE_BYTES_MAX; /* at most; ends at the first word that is no code */
		return 0;
	}
	got = process_read_memory(pid, table + (__u64)spec->size_offset, &value, sizeof(value));
	if (got < 0)
		return (int)got;
	*size = got == (ssize_t)sizeof(value) ? plausible_size(spec, value) : 0;
	return *size ? 0 : -ENODATA;
}

int table_words_read(const struct table_spec *spec, pid_t pid, __u64 address, struct table_words *result)
{
	size_t size = 0;
	ssize_t got;
	int error = size_in_memory(spec, pid, address, &size);

	*result = (struct table_words){ .address = address };
	if (error)
		return error == -EFAULT ? -ENODATA : error;
	size -= spec->slots_offset;
	result->words = malloc(size);
	if (!result->words)
		return -ENOMEM;
	got = process_read_memory(pid, address + spec->slots_offset, result->words, size);
	if (got < 0) {
		table_words_free(result);
		return got == -EFAULT ? -ENODATA : (int)got;
	}
	result->count = (size_t)got / 8;
	return 0;
}

void table_words_free(struct table_words *words)
{
	free(words->words);
	words->words = NULL;
	words->count = 0;
}

int api_table_from_words(const struct log *log, struct elf_file *file, const struct table_spec *spec,
			 const struct table_words *words, __u64 load_bias, struct api_table *result)
{
	size_t filled = 0;

	*result = (struct api_table){ .address = words->address - load_bias };
	result->slots = calloc(words->count ?: 1, sizeof(*result->slots));
	if (!result->slots)
		return -ENOMEM;
	while (result->slot_count < words->count) {
		__u64 slot = words->words[result->slot_count] - load_bias;

		if (elf_file_is_executable(file, slot))
			filled++;
		else if (spec->size_offset < 0)
			break;
		else
			slot = 0;
		result->slots[result->slot_count++] = slot;
	}
	if (!filled) {
		api_table_free(result);
		return -ENODATA;
	}
	log_debug(log, "the API table of %s has %zu functions in the process", spec->accessor, filled);
	return 0;
}

void api_table_free(struct api_table *table)
{
	free(table->slots);
	memset(table, 0, sizeof(*table));
}
