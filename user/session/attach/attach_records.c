/* SPDX-License-Identifier: BSD-2-Clause */
/* Records that report places for probes: the dynamic loader's, those of tables and of resolved functions, and of callers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/log.h"
#include "session/attach/attach_private.h"

static void on_table(struct attacher *attacher, pid_t tgid, const struct description *runtime, __u64 address)
{
	struct mapped_files mapped;
	int error = process_mapped_files(tgid, &mapped);

	attacher_report_error(attacher, tgid, error);
	if (error)
		return;
	for (size_t i = 0; i < mapped.count; i++) {
		struct pinned_file pinned;

		if (elf_cache_pin(&attacher->files, &mapped.files[i], false, &pinned))
			continue;
		for (size_t t = 0; t < pinned.file->contents.found.table_count; t++) {
			const struct pending_table *table = &pinned.file->contents.found.tables[t];

			if (table->runtime == runtime)
				attacher_report_error(attacher, tgid,
						      attach_table(attacher, tgid, &pinned.mapped, pinned.file, table,
								   address));
		}
		pinned_close(&pinned);
	}
	mapped_files_free(&mapped);
}

static int spec_of_symbol(const struct registry *registry, const struct description *runtime, const char *name)
{
	for (size_t i = 0; i < registry->spec_count; i++) {
		if (registry->spec_runtime[i] != runtime)
			continue;
		for (size_t s = 0; s < registry->specs[i]->symbol_count; s++) {
			if (!strcmp(registry->specs[i]->symbols[s], name))
				return i;
		}
	}
	return -ENOENT;
}

/* The file in which an address of a process lies, open, and a site for it. False: there is none; *error: why, or 0. */
static bool place_open(struct attacher *attacher, pid_t tgid, __u64 address, struct file_site *wanted,
		       struct pinned_file *pinned, struct site *site, int *error)
{
	*error = code_places_find(&attacher->places, &attacher->files, tgid, address, pinned);
	attacher_report_error(attacher, tgid, *error);
	if (*error)
		return false;
	wanted->offset = address - pinned->mapped.start + pinned->mapped.offset;
	*error = file_reader_site(attacher->files.readers, pinned->mapped.descriptor, wanted, site);
	attacher_report_error(attacher, tgid, *error);
	return true;
}

/* A runtime has resolved one of its functions: the address may differ from the exported symbol's. */
static void on_resolve(struct attacher *attacher, pid_t tgid, const struct description *runtime, const char *name,
		       __u64 address)
{
	int spec = spec_of_symbol(attacher->options.registry, runtime, name), error;
	struct found_function function = { .spec = spec, .by = FOUND_RESOLVED };
	struct found_functions found = { .functions = &function, .count = 1 };
	struct file_site wanted = { 0 };
	struct pinned_file pinned;

	if (spec < 0 || !id_set_add(&attacher->resolved, RESOLVED_MAX, tgid, address, (__u64)spec + 1))
		return;
	wanted.arguments = site_arguments(attacher->options.registry->specs[spec]);
	if (place_open(attacher, tgid, address, &wanted, &pinned, &function.site, &error)) {
		if (!error && !attacher_has(attacher, tgid, pinned.file, function.site.offset)) {
			error = attach_functions(attacher, tgid, &pinned.mapped, pinned.file, &found, false);
			attacher_report_error(attacher, tgid, error);
		}
		pinned_close(&pinned);
	}
	if (error >= 0 || error == -ESRCH)
		return;
	attacher->figures.unplaced++;
	log_debug(attacher->log, "PID %d: %s, handed out at 0x%llx, gets no probe: %s", tgid, name,
		  (unsigned long long)address, strerror(-error));
}

static int attach_end(struct attacher *attacher, pid_t tgid, const struct pinned_file *pinned, const struct site *site)
{
	struct kern_site *end;

	if (attacher_has(attacher, tgid, pinned->file, site->offset))
		return 0;
	end = calloc(1, sizeof(*end));
	if (!end)
		return -ENOMEM;
	*end = (struct kern_site){
		.offset = site->offset,
		.spec = operator_end_spec(attacher),
		.class = site->class,
		.entry_only = true,
	};
	attacher->figures.sites[site->class]++;
	attacher->ends[site->class]++;
	return attach_sites(attacher, tgid, &pinned->mapped, pinned->file, end, 1, false);
}

void attacher_caller(struct attacher *attacher, const struct xpt_record_caller *caller)
{
	pid_t tgid = caller->header.tgid;
	struct file_site wanted = { .after = true };
	struct pinned_file pinned;
	struct site site;
	int error;

	if (!place_open(attacher, tgid, caller->address, &wanted, &pinned, &site, &error))
		return;
	if (error)
		log_warn(attacher->log,
			 "%s: what is called at 0x%llx of the file returns nowhere that is known: no probe on its return address",
			 pinned.file->path, (unsigned long long)wanted.offset);
	else
		attacher_report_error(attacher, tgid, attach_end(attacher, tgid, &pinned, &site));
	pinned_close(&pinned);
}

/* The spec of the callback that the call hands over, or -ENOENT. */
static int callback_spec(const struct registry *registry, unsigned int caller)
{
	for (size_t i = 0; caller < registry->spec_count && i < registry->spec_count; i++)
		if (registry->specs[i]->callback_of && registry->spec_runtime[i] == registry->spec_runtime[caller] &&
		    !strcmp(registry->specs[i]->callback_of, registry->specs[caller]->function))
			return i;
	return -ENOENT;
}

/* Probes that the process has for callbacks. *there: one of them is of the spec, at the offset of the file. */
static size_t callbacks_placed(const struct attacher *attacher, pid_t tgid, const struct elf_entry *file,
			       const struct kern_site *site, bool *there)
{
	const struct registry *registry = attacher->options.registry;
	size_t count = 0;

	for (size_t i = 0; i < attacher->attached.count; i++) {
		const struct attached *attached = &attacher->attached.all[i];
		__u16 spec = attached->site_count == 1 ? attached->sites->spec : registry->spec_count;

		if (attached->tgid != tgid || spec >= registry->spec_count || !registry->specs[spec]->callback_of)
			continue;
		count++;
		*there |= attached->file == file && spec == site->spec && attached->sites->offset == site->offset;
	}
	return count;
}

/* The probe at the site, of this process alone: its memory claims that the function is called. -errno: it cannot have one. */
static int attach_callback(struct attacher *attacher, pid_t tgid, const struct pinned_file *pinned,
			   const struct site *site, unsigned int spec)
{
	const struct kern_site wanted = {
		.offset = site->offset, .spec = spec, .class = site->class, .entry_only = true
	};
	bool there = false;
	size_t count = callbacks_placed(attacher, tgid, pinned->file, &wanted, &there);
	struct kern_site *placed;
	int result;

	if (there || count >= XPT_CALLBACKS_MAX)
		return there ? 0 : -ENOSPC;
	placed = malloc(sizeof(*placed));
	if (!placed)
		return -ENOMEM;
	*placed = wanted;
	count_site(attacher, spec, site);
	result = attach_sites(attacher, tgid, &pinned->mapped, pinned->file, placed, 1, false);
	return result ? result : -ENXIO;
}

int attacher_callback(struct attacher *attacher, const struct xpt_record_caller *caller)
{
	const struct registry *registry = attacher->options.registry;
	int spec = callback_spec(registry, caller->callback - 1), error;
	pid_t tgid = caller->header.tgid;
	struct file_site wanted = { 0 };
	struct pinned_file pinned;
	struct site site;

	if (spec < 0)
		return spec;
	wanted.arguments = site_arguments(registry->specs[spec]);
	if (place_open(attacher, tgid, caller->address, &wanted, &pinned, &site, &error)) {
		if (!error) {
			error = attach_callback(attacher, tgid, &pinned, &site, spec);
			attacher_report_error(attacher, tgid, error);
		}
		pinned_close(&pinned);
	}
	if (error < 0)
		log_debug(attacher->log, "PID %d: %s, at 0x%llx, gets no probe: %s", tgid,
			  registry->specs[spec]->function, (unsigned long long)caller->address, strerror(-error));
	return error < 0 ? error : 0;
}

static void remember_name(struct attacher *attacher, const struct xpt_record_string *record)
{
	struct waiting_name *waiting = &attacher->waiting[attacher->next_waiting++ % NAMES_WAITING];
	size_t length = record->length < XPT_STRING_MAX ? record->length : XPT_STRING_MAX;

	waiting->tid = record->tid;
	waiting->spec = record->spec;
	memcpy(waiting->name, record->text, length);
	waiting->name[length] = '\0';
}

static const char *waiting_name(const struct attacher *attacher, __u32 tid, __u16 spec)
{
	for (size_t i = 0; i < NAMES_WAITING; i++) {
		/* The newest first: a thread's earlier names may still be there. */
		size_t at = (attacher->next_waiting + NAMES_WAITING - 1 - i) % NAMES_WAITING;
		const struct waiting_name *waiting = &attacher->waiting[at];

		if (waiting->tid == tid && waiting->spec == spec && waiting->name[0])
			return waiting->name;
	}
	return NULL;
}

/* The value that a call has for a meaning; strings have no place among the values. */
static bool call_value(const struct xpt_spec *spec, const struct xpt_record_call *call, enum xpt_meaning meaning,
		       __u64 *value)
{
	unsigned int at = 0;

	for (unsigned int i = 0; i < spec->fetches; i++) {
		if (spec->fetch[i].type == XPT_TYPE_STRING)
			continue;
		if (spec->fetch[i].meaning == meaning) {
			*value = call->value[at];
			return at < call->values && (call->valid & (1 << i));
		}
		at++;
	}
	return false;
}

static bool on_call(struct attacher *attacher, const struct xpt_record_call *call)
{
	const struct registry *registry = attacher->options.registry;
	const struct xpt_spec *spec;
	const char *name;
	__u64 address;

	if (call->spec == loader_spec(attacher)) {
		attacher_scan(attacher, call->header.tgid);
		return true;
	}
	if (call->spec > loader_spec(attacher)) {
		unsigned int runtime = call->spec - loader_spec(attacher) - 1;

		if (runtime < registry->runtime_count && call->values && (call->valid & 1))
			on_table(attacher, call->header.tgid, registry->runtimes[runtime], call->value[0]);
		return true;
	}
	spec = &registry->specs[call->spec]->wire;
	if (spec->role != XPT_ROLE_RESOLVE)
		return false;
	name = waiting_name(attacher, call->tid, call->spec);
	if (name && call_value(spec, call, XPT_MEANING_ADDRESS, &address) && address)
		on_resolve(attacher, call->header.tgid, registry->spec_runtime[call->spec], name, address);
	return false;
}

bool attacher_record(struct attacher *attacher, const struct xpt_record_header *record)
{
	const struct registry *registry = attacher->options.registry;

	if (record->kind == XPT_RECORD_CALL)
		return on_call(attacher, (const void *)record);
	if (record->kind == XPT_RECORD_STRING) {
		const struct xpt_record_string *string = (const void *)record;

		if (string->spec < registry->spec_count && registry->specs[string->spec]->wire.role == XPT_ROLE_RESOLVE)
			remember_name(attacher, string);
	}
	return false;
}
