/* SPDX-License-Identifier: BSD-2-Clause */
/* Code that a process has made, as a V8 or another compiler at run time reports it to perf: lines with address, size and name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/vec.h"
#include "stack/private.h"

#define READ_EVERY 100000000ull /* ns */
#define BLOCK 65536
#define TEXT_MAX (64u << 20) /* bytes of all names */
#define LINE_MAX_BYTES 65536 /* a longer one is no line of names, and its file none of them */
#define LOOK_MAX (16u << 20) /* bytes that are read in one look */
#define BEFORE_MAX 16	     /* entries with lower addresses that are looked at: older ones may overlap */

static void add_line(struct process *process, const char *line, size_t length)
{
	struct made_name name = { .text = process->name_text.length, .number = process->name_count };
	int at = 0;

	if (process->name_count >= NAMES_MAX || process->name_text.length > TEXT_MAX ||
	    sscanf(line, "%llx %llx %n", &name.start, &name.size, &at) != 2 || !at || (size_t)at >= length)
		return;
	text_bytes(&process->name_text, line + at, length - (size_t)at);
	text_bytes(&process->name_text, "", 1);
	if (!process->name_text.error)
		vec_push(process->names, process->name_count, name);
}

static int compare(const void *first, const void *second)
{
	const struct made_name *a = first, *b = second;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static void read_more(struct process *process)
{
	struct text *rest = &process->name_rest;
	size_t before = process->name_count, done = 0;
	char *line, *end;
	ssize_t got = 1;

	while (got > 0 && done < LOOK_MAX && rest->length < LINE_MAX_BYTES && !text_reserve(rest, BLOCK + 1)) {
		got = read(process->names_file, rest->data + rest->length, BLOCK);
		done += got > 0 ? (size_t)got : 0;
		rest->length += got > 0 ? (size_t)got : 0;
		rest->data[rest->length] = '\0';
		for (line = rest->data; (end = memchr(line, '\n', (size_t)(rest->data + rest->length - line)));
		     line = end + 1) {
			*end = '\0';
			add_line(process, line, (size_t)(end - line));
		}
		rest->length -= (size_t)(line - rest->data);
		memmove(rest->data, line, rest->length);
	}
	if (process->name_count > before)
		qsort(process->names, process->name_count, sizeof(*process->names), compare);
}

static void look(struct process *process)
{
	const struct stack_file file = { .kind = STACK_FILE_NAMES, .tgid = process->tgid };
	const __u64 now = clock_monotonic();

	if (process->names_read && now - process->names_read < READ_EVERY)
		return;
	process->names_read = now;
	if (process->names_file < 0)
		process->names_file = process->unwinder->options.open(process->unwinder->options.context, &file);
	if (process->names_file >= 0)
		read_more(process);
}

const char *made_find(struct process *process, __u64 address)
{
	const struct made_name *best = NULL;
	size_t at;

	look(process);
	at = vec_first(process->name_count, i, process->names[i].start <= address);
	for (size_t i = 0; i < BEFORE_MAX && i < at; i++) {
		const struct made_name *name = &process->names[at - 1 - i];

		if (address - name->start < name->size && (!best || name->number > best->number))
			best = name;
	}
	return best ? process->name_text.data + best->text : NULL;
}

void made_free(struct process *process)
{
	if (process->names_file >= 0)
		close(process->names_file);
	free(process->names);
	text_free(&process->name_text);
	text_free(&process->name_rest);
}
