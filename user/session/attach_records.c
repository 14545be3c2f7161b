/* SPDX-License-Identifier: BSD-2-Clause */
/* Records that tell of places for probes: the dynamic loader's, those of tables and of resolved functions, and of callers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "session/attach_private.h"

static void on_table(struct attacher *attacher, pid_t tgid, const struct description *runtime, __u64 address)
{
	struct mapped_files mapped;
	int error = process_mapped_files(tgid, &mapped);

	attacher_report_error(attacher, tgid, error);
	if (error)
		return;
	for (size_t i = 0; i < mapped.count; i++) {
		struct mapped_file pinned;
		struct analysed *file;
		struct stat status;
		int descriptor = mapped_file_pin(&mapped.files[i], &pinned, &status);

		if (descriptor < 0)
			continue;
		file = analysed_get(&attacher->files, &pinned, &status);
		for (size_t t = 0; file && t < file->found.table_count; t++) {
			if (file->found.tables[t].runtime == runtime)
				attacher_report_error(attacher, tgid,
						      attach_table(attacher, tgid, &pinned, file,
								   &file->found.tables[t], address));
		}
		close(descriptor);
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

/* Where an address of a process lies. */
struct code_place {
	struct mapped_file mapped; /* pinned */
	int descriptor;
	struct analysed *file;
	struct elf_file *elf; /* open */
	__u64 address;	      /* in the file */
};

static void place_close(struct code_place *place)
{
	elf_file_close(place->elf);
	close(place->descriptor);
}

/* False: in no file that could be looked at. */
static bool place_open(struct attacher *attacher, pid_t tgid, __u64 address, struct code_place *place)
{
	struct stat status;
	int error;

	place->elf = NULL;
	place->descriptor = code_places_find(&attacher->places, tgid, address, &place->mapped, &status);
	if (place->descriptor < 0) {
		attacher_report_error(attacher, tgid, place->descriptor);
		return false;
	}
	place->file = analysed_get(&attacher->files, &place->mapped, &status);
	error = place->file ? elf_file_open(NULL, place->mapped.open_path, place->mapped.path, &place->elf) : -ENOMEM;
	attacher_report_error(attacher, tgid, error);
	if (!error &&
	    !elf_file_address(place->elf, address - place->mapped.start + place->mapped.offset, &place->address))
		return true;
	place_close(place);
	return false;
}

/* A runtime has told the address of one of its functions: it may be another one than the exported symbol's. */
static void on_resolve(struct attacher *attacher, pid_t tgid, const struct description *runtime, const char *name,
		       __u64 address)
{
	int spec = spec_of_symbol(attacher->options.registry, runtime, name), error;
	struct found_function function = { .spec = spec, .by = FOUND_RESOLVED };
	struct found_functions found = { .functions = &function, .count = 1 };
	struct code_place place;

	if (spec < 0 || !place_open(attacher, tgid, address, &place))
		return;
	error = site_choose(place.elf, place.address, site_arguments(attacher->options.registry->specs[spec]),
			    &function.site);
	if (!error && !attacher_has(attacher, tgid, place.file, function.site.offset))
		error = attach_functions(attacher, tgid, &place.mapped, place.file, &found, false);
	attacher_report_error(attacher, tgid, error);
	place_close(&place);
}

static int attach_end(struct attacher *attacher, pid_t tgid, const struct code_place *place)
{
	struct kern_site *end;
	struct site site;
	int error = site_choose_after(place->elf, place->address, &site);

	if (error) {
		log_warn(attacher->log, "%s: what is called at 0x%llx has no end: no probe is possible behind it",
			 place->file->path, (unsigned long long)place->address);
		return error_is_shortage(error) ? error : 0;
	}
	if (attacher_has(attacher, tgid, place->file, site.offset))
		return 0;
	end = calloc(1, sizeof(*end));
	if (!end)
		return -ENOMEM;
	*end = (struct kern_site){ .offset = site.offset, .spec = operator_end_spec(attacher), .entry_only = true };
	attacher->figures.sites[site.class]++;
	attacher->end_cost += site_class_cost(site.class);
	attacher->end_count++;
	return attach_sites(attacher, tgid, &place->mapped, place->file, end, 1, false);
}

void attacher_caller(struct attacher *attacher, const struct xpt_record_caller *caller)
{
	pid_t tgid = caller->header.tgid;
	struct code_place place;

	if (!place_open(attacher, tgid, caller->address, &place))
		return;
	attacher_report_error(attacher, tgid, attach_end(attacher, tgid, &place));
	place_close(&place);
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
