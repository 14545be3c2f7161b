/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/attach/launch_symbols.h"

#include <stdlib.h>

#include "session/reader/describe_records.h"
#include "session/attach/objects.h"
#include "target/process/symbol.h"

#define NAME_MAX_BYTES 4096 /* longer ones are left out by elf_file.h */

struct launch_symbols {
	const struct registry *registry;
	struct process_symbols *symbols;
	struct seen seen;
};

struct launch_symbols *launch_symbols_create(const struct registry *registry, const struct log *log)
{
	struct launch_symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		return NULL;
	symbols->registry = registry;
	symbols->symbols = process_symbols_create(log);
	if (symbols->symbols)
		return symbols;
	free(symbols);
	return NULL;
}

void launch_symbols_free(struct launch_symbols *symbols)
{
	if (!symbols)
		return;
	process_symbols_free(symbols->symbols);
	seen_free(&symbols->seen);
	free(symbols);
}

void launch_symbols_drop(struct launch_symbols *symbols, pid_t tgid)
{
	seen_drop(&symbols->seen, tgid);
}

static __u64 launched(const struct launch_symbols *symbols, const struct xpt_record_call *call)
{
	const struct registry *registry = symbols->registry;
	const struct xpt_spec *spec = call->spec < registry->spec_count ? &registry->specs[call->spec]->wire : NULL;

	return spec && spec->role == XPT_ROLE_LAUNCH ? call_program(spec, call) : 0;
}

bool launch_symbols_is_new(struct launch_symbols *symbols, const struct xpt_record_call *call)
{
	__u64 handle = launched(symbols, call);

	return handle && seen_add(&symbols->seen, LAUNCH_SYMBOLS_MAX, (pid_t)call->header.tgid, handle, 0);
}

struct xpt_record_text *launch_symbols_name(struct launch_symbols *symbols, __u64 time,
					    const struct xpt_record_call *call)
{
	__u64 handle = launched(symbols, call), offset;
	char name[NAME_MAX_BYTES + 1];

	/* A handle within an object is not the object. */
	if (process_symbols_look(symbols->symbols, (pid_t)call->header.tgid, handle, name, sizeof(name), &offset) ||
	    offset)
		return NULL;
	kernel_name_of_stub(name);
	return record_text(XPT_RECORD_SYMBOL, call->header.tgid, time, handle, name);
}
