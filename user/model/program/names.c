/* SPDX-License-Identifier: BSD-2-Clause */
/* How programs get their names, and their numbers among those with the same name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/program/programs.h"

/* From best to worst. */
static const unsigned char name_ranks[NAME_SOURCES] = {
	[NAME_FROM_USER] = 9,	   [NAME_FROM_CALL] = 8,   [NAME_FROM_LOAD] = 7, [NAME_FROM_MEMORY] = 6,
	[NAME_FROM_PARENT] = 5,	   [NAME_FROM_SYMBOL] = 4, [NAME_FROM_FILE] = 3, [NAME_FROM_FORK] = 2,
	[NAME_FROM_OPERATORS] = 1, [NAME_FROM_ORDER] = 0,
};

const char *name_source_name(enum name_source source)
{
	static const char *const names[NAME_SOURCES] = {
		[NAME_FROM_ORDER] = "order",	     [NAME_FROM_FORK] = "fork",	    [NAME_FROM_PARENT] = "parent",
		[NAME_FROM_LOAD] = "load",	     [NAME_FROM_CALL] = "call",	    [NAME_FROM_USER] = "user",
		[NAME_FROM_SYMBOL] = "symbol",	     [NAME_FROM_MEMORY] = "memory", [NAME_FROM_FILE] = "file",
		[NAME_FROM_OPERATORS] = "operators",
	};

	return names[source];
}

bool name_is_better(enum name_source source, enum name_source than)
{
	return name_ranks[source] > name_ranks[than];
}

const char *program_noun(const struct program *program)
{
	return program->noun ?: program->runtime->models ? "model" : "kernel";
}

/* length: 0 for no name. */
static bool has_name(const struct program *program, const char *name, size_t length)
{
	return program->view.name_length == length && !memcmp(program->view.name, name, length);
}

/*
 * Where unloads are not seen, a program may be unloaded that has not been used since this one was loaded. If it is used
 * again, it is there: see program_used().
 */
static bool may_be_gone(const struct program *other, const struct program *program)
{
	return !program->runtime->unloads && program->view.loaded > other->used;
}

/* The number of a program among those with its name that live in the process: the wanted one, else the smallest that no other one has. */
static unsigned int number_choose(const struct program *program, const char *name, size_t length, unsigned int wanted)
{
	unsigned char used[MODEL_PROGRAMS_MAX / 8 + 1] = {};
	unsigned int number = 1;
	struct program *other, *following;

	link_for_each_safe(other, following, &program->process->programs, of_process) {
		if (other == program || other->runtime != program->runtime || !has_name(other, name, length))
			continue;
		if (may_be_gone(other, program)) {
			other->superseded = true;
			continue;
		}
		if (other->view.number == wanted)
			wanted = 0;
		if (other->view.number <= MODEL_PROGRAMS_MAX)
			used[other->view.number / 8] |= 1 << other->view.number % 8;
	}
	while (!wanted && number < MODEL_PROGRAMS_MAX && used[number / 8] & 1 << number % 8)
		number++;
	return wanted ?: number;
}

/* name[length]. */
static int name_set(struct program *program, const char *name, size_t length, unsigned int number,
		    enum name_source source)
{
	const size_t room = length + sizeof(" #4294967295");
	char *copy;

	if (!length || name_is_better(program->view.name_source, source) || (program->others && program->name))
		return 0;
	copy = malloc(room);
	if (!copy)
		return -ENOMEM;
	if (!number && has_name(program, name, length))
		number = program->view.number;
	/* Kernels with one name are one: runtimes make a new handle each time that one is asked for. So is what is made of one model. */
	if (!program->runtime->models)
		number = 1;
	else if (source == NAME_FROM_PARENT)
		number = number ?: 1;
	else
		number = number_choose(program, name, length, number);
	if (number > 1)
		snprintf(copy, room, "%.*s #%u", (int)length, name, number);
	else
		snprintf(copy, room, "%.*s", (int)length, name);
	free(program->name);
	program->name = copy;
	program->view.name_source = source;
	program->view.name = copy;
	program->view.name_length = length;
	program->view.number = number;
	program->view.named = source != NAME_FROM_OPERATORS;
	return 1;
}

int program_set_numbered(struct program *program, const char *name, unsigned int number, enum name_source source)
{
	return name_set(program, name, name ? strnlen(name, PROGRAM_NAME_MAX) : 0, number, source);
}

int program_set_name(struct program *program, const char *name, enum name_source source)
{
	return program_set_numbered(program, name, 0, source);
}

int program_name_after(struct program *program, const struct program *other, enum name_source source)
{
	return name_set(program, other->view.name, other->view.name_length, other->view.number, source);
}

bool program_describe(struct program *program, unsigned int number)
{
	if (program->others || program->view.number)
		return false;
	number = number_choose(program, "", 0, number ?: program->wanted);
	snprintf(program->description, sizeof(program->description), "%.32s %.32s %u", program->runtime->name,
		 program_noun(program), number);
	program->view.number = program->order = number;
	return true;
}

int programs_use_again(struct programs *programs, struct program *program, __u64 time)
{
	struct program *other, *following;
	int named = 0;

	program->superseded = false;
	link_for_each_safe(other, following, &program->process->programs, of_process) {
		if (other == program || other->runtime != program->runtime || !other->view.name_length ||
		    other->view.number != program->view.number ||
		    !has_name(other, program->view.name, program->view.name_length))
			continue;
		named = program_name_after(other, other, other->view.name_source);
		if (named < 0)
			break;
		programs_emit(programs, other, time, false);
	}
	return named < 0 ? named : 0;
}

static void orphan_end(struct program *program)
{
	if (!program->orphan)
		return;
	program->orphan = false;
	program->process->orphans--;
}

int programs_set_parent(struct programs *programs, struct program *program, __u64 parent, __u64 time)
{
	const struct program *source;

	if (program->others || name_is_better(program->view.name_source, NAME_FROM_PARENT))
		return 0;
	source = programs_find(programs, program->process, program->view.runtime_index, parent, time);
	if (source && source != program && source->view.named) {
		orphan_end(program);
		return program_name_after(program, source, NAME_FROM_PARENT);
	}
	program->parent = parent;
	if (!program->orphan && program->until == PROGRAM_ALIVE) {
		program->orphan = true;
		program->process->orphans++;
	}
	return 0;
}

/* From a model to its modules to their kernels: what runtimes describe is never deeper. */
#define LEND_DEPTH_MAX 4

static int name_lend(struct programs *programs, const struct program *program, __u64 time, unsigned int depth)
{
	struct program *child, *following;
	int named;

	if (!program->process->orphans || depth == LEND_DEPTH_MAX)
		return 0;
	link_for_each_safe(child, following, &program->process->programs, of_process) {
		if (!child->orphan || child->parent != program->view.handle || child == program ||
		    child->view.runtime_index != program->view.runtime_index)
			continue;
		orphan_end(child);
		named = program_name_after(child, program, NAME_FROM_PARENT);
		if (named > 0) {
			programs_emit(programs, child, time, false);
			named = name_lend(programs, child, time, depth + 1);
		}
		if (named < 0)
			return named;
	}
	return 0;
}

int programs_lend_name(struct programs *programs, const struct program *program, __u64 time)
{
	return program->others || !program->view.named ? 0 : name_lend(programs, program, time, 0);
}
