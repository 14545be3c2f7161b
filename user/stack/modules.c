/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes, and the files that their code is in. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/vec.h"
#include "stack/private.h"
#include "target/process/process.h"

#define VDSO "[vdso]"
#define VDSO_MAX (64u << 10) /* bytes */
#define MAPS_MAX (16u << 20) /* bytes of the text of mappings */
#define RANGES_MAX 16384     /* of a process */

/* ---- files ---- */

static struct module *module_get(struct unwinder *unwinder, const struct maps_entry *entry)
{
	struct map_node *node = map_find(&unwinder->modules, entry->device, entry->inode);
	struct module *module;

	if (node)
		return container_of(node, struct module, node);
	if (unwinder->modules.count >= MODULES_MAX)
		return NULL;
	module = calloc(1, sizeof(*module));
	if (!module)
		return NULL;
	*module = (struct module){ .unwinder = unwinder, .path = strdup(entry->path), .descriptor = -1 };
	if (!module->path || map_add(&unwinder->modules, &module->node, entry->device, entry->inode)) {
		free(module->path);
		free(module);
		return NULL;
	}
	link_append(&unwinder->module_list, &module->link);
	return module;
}

void modules_free(struct unwinder *unwinder)
{
	struct module *module, *next;

	link_for_each_safe(module, next, &unwinder->module_list, link) {
		if (module->descriptor >= 0)
			close(module->descriptor);
		free(module->path);
		free(module);
	}
	map_free(&unwinder->modules);
}

static int open_file(struct unwinder *unwinder, const struct stack_file *file)
{
	return unwinder->options.open(unwinder->options.context, file);
}

/* ---- what libdw asks for ---- */

/* The kernel's own library, which is in memory only. */
static Elf *read_vdso(struct process *process, Dwfl_Module *mod)
{
	const struct stack_file file = { .kind = STACK_FILE_MEMORY, .tgid = process->tgid };
	Dwarf_Addr start, end;

	dwfl_module_info(mod, NULL, &start, &end, NULL, NULL, NULL, NULL);
	if (process->vdso || end - start > VDSO_MAX)
		return NULL;
	if (process->memory < 0)
		process->memory = open_file(process->unwinder, &file);
	process->vdso = process->memory < 0 ? NULL : malloc(end - start);
	if (!process->vdso ||
	    pread(process->memory, process->vdso, end - start, (off_t)start) != (ssize_t)(end - start))
		return NULL;
	return elf_memory(process->vdso, end - start);
}

static int find_elf(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base, char **file_name, Elf **elf)
{
	const struct module *module = *data;

	(void)base;
	if (!module)
		return -1;
	if (!strcmp(name, VDSO)) {
		*elf = read_vdso(*data, mod);
		return -1;
	}
	if (module->descriptor < 0)
		return -1;
	*file_name = strdup(module->path);
	return fcntl(module->descriptor, F_DUPFD_CLOEXEC, 0);
}

static int find_debuginfo(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base, const char *file_name,
			  const char *debuglink, GElf_Word checksum, char **debug_name)
{
	struct stack_file file = { .kind = STACK_FILE_DEBUG };
	struct module *module = *data;
	const unsigned char *build_id;
	GElf_Addr address;
	int size;

	(void)base;
	(void)file_name;
	(void)debuglink;
	(void)checksum;
	(void)debug_name;
	size = dwfl_module_build_id(mod, &build_id, &address);
	if (!module || !strcmp(name, VDSO) || size < 2 || size > STACK_BUILD_ID_MAX)
		return -1;
	file.build_id_size = (__u32)size;
	memcpy(file.build_id, build_id, (size_t)size);
	return open_file(module->unwinder, &file);
}

static const Dwfl_Callbacks callbacks = { .find_elf = find_elf, .find_debuginfo = find_debuginfo };

/* ---- mappings ---- */

static char *read_text(int descriptor, size_t most)
{
	struct text text = {};
	ssize_t got = 1;

	while (got > 0 && text.length < most && !text_reserve(&text, 65536)) {
		got = read(descriptor, text.data + text.length, text.capacity - text.length - 1);
		text.length += got > 0 ? (size_t)got : 0;
	}
	text_bytes(&text, "", 1);
	if (text.error) {
		text_free(&text);
		return NULL;
	}
	return text.data;
}

/* Pieces of one file are one module, also with memory of no file between them. */
static struct code_range *range_of_module(struct process *process, const struct module *module)
{
	for (size_t i = process->range_count; i; i--) {
		struct code_range *range = &process->ranges[i - 1];

		if (range->module)
			return range->module == module ? range : NULL;
	}
	return NULL;
}

static void add_range(struct process *process, const struct maps_entry *entry)
{
	struct module *module = maps_entry_has_file(entry) ? module_get(process->unwinder, entry) : NULL;
	struct code_range *range = module && entry->offset ? range_of_module(process, module) : NULL;
	const struct stack_file file = {
		.kind = STACK_FILE_MAPPED, .tgid = process->tgid, .start = entry->start, .end = entry->end
	};

	if (module && entry->executable && module->descriptor < 0)
		module->descriptor = open_file(process->unwinder, &file);
	if (range) {
		range->end = entry->end;
		range->executable |= entry->executable;
	} else if ((module || entry->executable) && process->range_count < RANGES_MAX) {
		vec_push(process->ranges, process->range_count,
			 (struct code_range){ entry->start, entry->end, module, entry->executable,
					      !strcmp(entry->path, VDSO) });
	}
}

static bool is_javascript(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && (!strcmp(name, "/node") || !strcmp(name, "/nodejs") || !strncmp(name, "/libnode.so", 11));
}

static void report_modules(struct process *process)
{
	dwfl_report_begin(process->dwfl);
	for (size_t i = 0; i < process->range_count; i++) {
		struct code_range *range = &process->ranges[i];
		Dwfl_Module *mod;
		void **data;

		if (!range->executable || (!range->module && !range->is_vdso))
			continue;
		mod = dwfl_report_module(process->dwfl, range->is_vdso ? VDSO : range->module->path, range->start,
					 range->end);
		if (!mod)
			continue;
		dwfl_module_info(mod, &data, NULL, NULL, NULL, NULL, NULL, NULL);
		*data = range->is_vdso ? (void *)process : (void *)range->module;
		process->is_javascript |= range->module && is_javascript(range->module->path);
	}
	dwfl_report_end(process->dwfl, NULL, NULL);
}

void process_read(struct process *process)
{
	const struct stack_file file = { .kind = STACK_FILE_MAPS, .tgid = process->tgid };
	int maps = open_file(process->unwinder, &file);
	char *text = maps < 0 ? NULL : read_text(maps, MAPS_MAX), *line, *rest = text;
	struct maps_entry entry;

	process->read = clock_monotonic();
	if (maps >= 0)
		close(maps);
	/* One that has ended has none: what was known of it stays. */
	if (!text || !*text) {
		free(text);
		return;
	}
	process->range_count = 0;
	while ((line = strsep(&rest, "\n")))
		if (*line && !maps_entry_parse(line, &entry))
			add_range(process, &entry);
	free(text);
	report_modules(process);
	if (!process->python.minor)
		python_find(process);
}

const struct code_range *process_range(const struct process *process, __u64 address)
{
	size_t at = vec_first(process->range_count, i, process->ranges[i].end <= address);
	const struct code_range *range = at < process->range_count ? &process->ranges[at] : NULL;

	return range && range->start <= address && range->executable ? range : NULL;
}

/* ---- processes ---- */

void process_free(struct process *process)
{
	map_remove(&process->unwinder->processes, &process->node);
	link_remove(&process->link);
	if (process->dwfl)
		dwfl_end(process->dwfl);
	if (process->memory >= 0)
		close(process->memory);
	free(process->vdso);
	free(process->ranges);
	made_free(process);
	free(process);
}

struct process *process_get(struct unwinder *unwinder, __u32 tgid)
{
	struct map_node *node = map_find(&unwinder->processes, tgid, 0);
	struct process *process = node ? container_of(node, struct process, node) : NULL;

	if (process) {
		link_remove(&process->link);
		link_append(&unwinder->process_list, &process->link);
		return process;
	}
	if (unwinder->processes.count >= PROCESSES_MAX)
		process_free(container_of(unwinder->process_list.next, struct process, link));
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->unwinder = unwinder;
	process->tgid = tgid;
	process->memory = process->names_file = -1;
	process->serial = ++unwinder->serials;
	process->dwfl = dwfl_begin(&callbacks);
	link_init(&process->link);
	if (!process->dwfl || map_add(&unwinder->processes, &process->node, tgid, 0)) {
		if (process->dwfl)
			dwfl_end(process->dwfl);
		free(process);
		return NULL;
	}
	link_append(&unwinder->process_list, &process->link);
	process_read(process);
	return process;
}
