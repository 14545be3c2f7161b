/* SPDX-License-Identifier: BSD-2-Clause */
/* How programs get their names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/programs.h"

/* From best to worst. */
static const unsigned char name_ranks[NAME_SOURCES] = {
	[NAME_FROM_USER] = 8,	[NAME_FROM_CALL] = 7,	[NAME_FROM_LOAD] = 6,
	[NAME_FROM_MEMORY] = 5, [NAME_FROM_PARENT] = 4, [NAME_FROM_SYMBOL] = 3,
	[NAME_FROM_FILE] = 2,	[NAME_FROM_FORK] = 1,	[NAME_FROM_HANDLE] = 0,
};

const char *name_source_name(enum name_source source)
{
	static const char *const names[NAME_SOURCES] = {
		[NAME_FROM_HANDLE] = "handle", [NAME_FROM_FORK] = "fork",     [NAME_FROM_PARENT] = "parent",
		[NAME_FROM_LOAD] = "load",     [NAME_FROM_CALL] = "call",     [NAME_FROM_USER] = "user",
		[NAME_FROM_SYMBOL] = "symbol", [NAME_FROM_MEMORY] = "memory", [NAME_FROM_FILE] = "file",
	};

	return names[source];
}

bool name_is_better(enum name_source source, enum name_source than)
{
	return name_ranks[source] > name_ranks[than];
}

int program_set_name(struct program *program, const char *name, enum name_source source)
{
	char *copy;

	if (!name || !*name || name_is_better(program->view.name_source, source) || (program->others && program->name))
		return 0;
	copy = strndup(name, PROGRAM_NAME_MAX);
	if (!copy)
		return -ENOMEM;
	free(program->name);
	program->name = copy;
	program->view.name_source = source;
	program->view.name = copy;
	program->view.named = true;
	return 1;
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
		return program_set_name(program, source->view.name, NAME_FROM_PARENT);
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
	struct link *link, *following;
	struct program *child;
	int named;

	if (!program->process->orphans || depth == LEND_DEPTH_MAX)
		return 0;
	link_each(link, following, &program->process->programs)
	{
		child = container_of(link, struct program, of_process);
		if (!child->orphan || child->parent != program->view.handle || child == program ||
		    child->view.runtime_index != program->view.runtime_index)
			continue;
		orphan_end(child);
		named = program_set_name(child, program->view.name, NAME_FROM_PARENT);
		if (named > 0) {
			programs_tell(programs, child, time, false);
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
