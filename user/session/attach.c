/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "session/analysed.h"
#include "session/class_names.h"
#include "session/code_places.h"
#include "session/describe_records.h"

/* What the others cannot be understood without. */
#define ROLES_ALWAYS                                                                                 \
	(1u << XPT_ROLE_PROGRAM_LOAD | 1u << XPT_ROLE_PROGRAM_NAME | 1u << XPT_ROLE_PROGRAM_UNLOAD | \
	 1u << XPT_ROLE_RESOLVE)
#define NAMES_WAITING 64 /* resolve calls whose name has come and whose address has not */

/* Probes in one file for one process (or all). */
struct attached {
	pid_t tgid; /* 0: all processes */
	dev_t device;
	ino_t inode;
	bool complete; /* everything that the file's analysis found; else single functions whose addresses came later */
	struct attachment *attachment;
	struct kern_site *sites; /* what it holds, to not place a probe twice */
	size_t site_count;
};

struct waiting_name {
	__u32 tid;
	__u16 spec;
	char name[XPT_STRING_MAX + 1];
};

struct attacher {
	struct attacher_options options;
	const struct log *log;
	struct analysed_files files;
	struct class_names classes;
	struct code_places places;
	struct attached *attached;
	size_t attached_count;
	struct attachment **dead; /* of processes that have ended, to be taken off together */
	size_t dead_count;
	bool *announced_spec;	 /* by spec: the SPEC record has been given out */
	bool *announced_runtime; /* by runtime */
	unsigned int *cost;	 /* by spec, ns */
	__u64 end_cost;		 /* ns, sum over the probes behind calls */
	size_t end_count;
	struct waiting_name waiting[NAMES_WAITING];
	size_t next_waiting;
	struct attacher_figures figures;
};

size_t attacher_spec_count(const struct registry *registry)
{
	return registry->spec_count + 1 + registry->runtime_count + 1;
}

static __u16 loader_spec(const struct attacher *attacher)
{
	return attacher->options.registry->spec_count;
}

static __u16 table_spec(const struct attacher *attacher, const struct description *runtime)
{
	return attacher->options.registry->spec_count + 1 + runtime->index;
}

static __u16 operator_end_spec(const struct attacher *attacher)
{
	return attacher_spec_count(attacher->options.registry) - 1;
}

static bool wants(const struct attacher *attacher, enum xpt_role role)
{
	return (attacher->options.roles | ROLES_ALWAYS) >> role & 1;
}

/* The collector's own specs: the dynamic loader's announcement, and one for each runtime's table. */
static int set_own_specs(struct attacher *attacher)
{
	const struct registry *registry = attacher->options.registry;
	struct xpt_spec spec = {
		.index = loader_spec(attacher),
		.role = XPT_ROLE_LOADER,
		.flags = XPT_SPEC_ENTRY_ONLY | XPT_SPEC_CONTROL | XPT_SPEC_HOLD,
	};
	const struct xpt_spec end = { .index = operator_end_spec(attacher), .role = XPT_ROLE_OPERATOR_END };
	int error = kern_set_spec(attacher->options.kern, &spec);

	if (!error)
		error = kern_set_spec(attacher->options.kern, &end);

	for (size_t i = 0; i < registry->runtime_count && !error; i++) {
		if (!registry->runtimes[i]->table.accessor)
			continue;
		spec = (struct xpt_spec){
			.index = table_spec(attacher, registry->runtimes[i]),
			.role = XPT_ROLE_TABLE,
			.runtime = i,
			.fetches = 1,
			.success = XPT_SUCCESS_NONZERO,
			.flags = XPT_SPEC_CONTROL | XPT_SPEC_HOLD,
			.fetch[0] = { .meaning = XPT_MEANING_ADDRESS, .source = XPT_SOURCE_RETURN, .at_return = 1 },
		};
		error = kern_set_spec(attacher->options.kern, &spec);
	}
	for (size_t i = 0; i < registry->spec_count && !error; i++) {
		spec = registry->specs[i]->wire;
		if (wants(attacher, XPT_ROLE_OPERATOR) && registry->spec_runtime[i]->operators.method_count &&
		    (spec.role == XPT_ROLE_EXECUTE || spec.role == XPT_ROLE_ENQUEUE))
			spec.flags |= XPT_SPEC_AROUND | (spec.flags & XPT_SPEC_ENTRY_ONLY ? 0 : XPT_SPEC_RUNNING);
		error = kern_set_spec(attacher->options.kern, &spec);
	}
	return error;
}

int attacher_create(const struct attacher_options *options, struct attacher **result)
{
	struct attacher *attacher = calloc(1, sizeof(*attacher));
	int error = -ENOMEM;

	if (!attacher)
		return -ENOMEM;
	attacher->options = *options;
	attacher->log = options->log;
	attacher->announced_spec = calloc(attacher_spec_count(options->registry), sizeof(bool));
	attacher->announced_runtime = calloc(options->registry->runtime_count ?: 1, sizeof(bool));
	attacher->files = (struct analysed_files){ .log = options->log,
						   .registry = options->registry,
						   .operators = wants(attacher, XPT_ROLE_OPERATOR),
						   .loader = options->hold };
	attacher->cost = calloc(attacher_spec_count(options->registry), sizeof(*attacher->cost));
	if (attacher->announced_spec && attacher->announced_runtime && attacher->cost)
		error = set_own_specs(attacher);
	if (error) {
		attacher_free(attacher);
		return error;
	}
	*result = attacher;
	return 0;
}

/* Moves the attachment to those that are to be taken off. */
static void bury(struct attacher *attacher, struct attached *attached)
{
	struct attachment **more = realloc(attacher->dead, (attacher->dead_count + 1) * sizeof(struct attachment *));

	free(attached->sites);
	if (!more) {
		kern_detach(attacher->options.kern, &attached->attachment, 1);
		return;
	}
	attacher->dead = more;
	attacher->dead[attacher->dead_count++] = attached->attachment;
}

void attacher_sweep(struct attacher *attacher)
{
	__u64 start = clock_monotonic();

	if (!attacher->dead_count)
		return;
	kern_detach(attacher->options.kern, attacher->dead, attacher->dead_count);
	attacher->dead_count = 0;
	attacher->figures.detach_time += clock_monotonic() - start;
}

void attacher_detach(struct attacher *attacher)
{
	for (size_t i = 0; i < attacher->attached_count; i++)
		bury(attacher, &attacher->attached[i]);
	attacher->attached_count = 0;
	attacher_sweep(attacher);
}

void attacher_free(struct attacher *attacher)
{
	if (!attacher)
		return;
	attacher_detach(attacher);
	analysed_files_free(&attacher->files);
	class_names_free(&attacher->classes);
	code_places_free(&attacher->places);
	free(attacher->attached);
	free(attacher->dead);
	free(attacher->announced_spec);
	free(attacher->announced_runtime);
	free(attacher->cost);
	free(attacher);
}

void attacher_forget(struct attacher *attacher, pid_t tgid)
{
	size_t kept = 0;

	for (size_t i = 0; i < attacher->attached_count; i++) {
		struct attached *attached = &attacher->attached[i];

		if (attached->tgid != tgid) {
			attacher->attached[kept++] = *attached;
			continue;
		}
		bury(attacher, attached);
	}
	attacher->attached_count = kept;
	attacher_renew(attacher, tgid);
}

void attacher_renew(struct attacher *attacher, pid_t tgid)
{
	class_names_renew(&attacher->classes, tgid);
}

/* ---- announcing what the records will refer to ---- */

static int announce(struct attacher *attacher, unsigned int index)
{
	const struct registry *registry = attacher->options.registry;
	const struct description *runtime;
	struct xpt_record_text *record;
	int error = 0;

	if (index >= registry->spec_count || attacher->announced_spec[index])
		return 0;
	runtime = registry->spec_runtime[index];
	if (!attacher->announced_runtime[runtime->index]) {
		record = record_runtime(runtime);
		error = record ? attacher->options.record(attacher->options.context, &record->header) : -ENOMEM;
		free(record);
		attacher->announced_runtime[runtime->index] = true;
	}
	if (!error) {
		record = record_spec(registry->specs[index]);
		error = record ? attacher->options.record(attacher->options.context, &record->header) : -ENOMEM;
		free(record);
		attacher->announced_spec[index] = true;
	}
	return error;
}

/* ---- files ---- */

static bool is_attached(const struct attacher *attacher, pid_t tgid, const struct analysed *file)
{
	for (size_t i = 0; i < attacher->attached_count; i++) {
		const struct attached *attached = &attacher->attached[i];

		if (attached->complete && attached->tgid == tgid && attached->device == file->device &&
		    attached->inode == file->inode)
			return true;
	}
	return false;
}

static bool site_is_attached(const struct attacher *attacher, pid_t tgid, const struct analysed *file, __u64 offset)
{
	for (size_t i = 0; i < attacher->attached_count; i++) {
		const struct attached *attached = &attacher->attached[i];

		if (attached->tgid != tgid || attached->device != file->device || attached->inode != file->inode)
			continue;
		for (size_t s = 0; s < attached->site_count; s++) {
			if (attached->sites[s].offset == offset)
				return true;
		}
	}
	return false;
}

/* ---- linking ---- */

/* Takes over sites. Number of probes placed, or a negative errno. */
static int link_sites(struct attacher *attacher, pid_t tgid, const struct mapped_file *mapped,
		      const struct analysed *file, struct kern_site *sites, size_t count, bool complete)
{
	int descriptor = open(mapped->open_path, O_RDONLY | O_CLOEXEC), error;
	struct attachment *attachment;
	struct attached *more;
	size_t refused = 0;
	char path[64];

	if (descriptor < 0) {
		free(sites);
		return -errno;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);
	for (size_t i = 0; i < count; i++)
		announce(attacher, sites[i].spec);
	error = kern_attach(attacher->options.kern, tgid, path, sites, count, &refused, &attachment);
	close(descriptor);
	if (error) {
		if (error != -ESRCH)
			log_warn(attacher->log, "cannot place probes in %s: %s", file->path, strerror(-error));
		free(sites);
		return error;
	}
	more = realloc(attacher->attached, (attacher->attached_count + 1) * sizeof(*more));
	if (!more) {
		kern_detach(attacher->options.kern, &attachment, 1);
		free(sites);
		return -ENOMEM;
	}
	attacher->attached = more;
	attacher->attached[attacher->attached_count++] = (struct attached){
		tgid, file->device, file->inode, complete, attachment, sites, count,
	};
	attacher->figures.refused += refused;
	return count - refused;
}

static void count_site(struct attacher *attacher, unsigned int spec, const struct site *site)
{
	unsigned int cost = site_class_cost(site->class);

	attacher->figures.sites[site->class]++;
	if (attacher->cost[spec] < cost)
		attacher->cost[spec] = cost;
}

struct operator_sites {
	struct attacher *attacher;
	struct kern_site *sites;
	size_t count;
};

static void add_operator(void *context, const struct site *site, unsigned int spec)
{
	struct operator_sites *operators = context;

	count_site(operators->attacher, spec, site);
	operators->sites[operators->count++] = (struct kern_site){ .offset = site->offset,
								   .spec = spec,
								   .entry_only = true };
}

/* Probes for those of found that have none yet. */
static int link_functions(struct attacher *attacher, pid_t tgid, const struct mapped_file *mapped,
			  const struct analysed *file, const struct found_functions *found, bool with_own)
{
	size_t operators = with_own ? file->operators.functions : 0, count = 0;
	struct kern_site *sites = calloc(found->count + found->table_count + operators + 1, sizeof(*sites));
	const struct registry *registry = attacher->options.registry;

	if (!sites)
		return -ENOMEM;
	for (size_t i = 0; i < found->count; i++) {
		const struct found_function *function = &found->functions[i];

		if (function->shared || !wants(attacher, registry->specs[function->spec]->wire.role) ||
		    site_is_attached(attacher, tgid, file, function->site.offset))
			continue;
		count_site(attacher, function->spec, &function->site);
		sites[count++] = (struct kern_site){
			.offset = function->site.offset,
			.semaphore = function->site.semaphore,
			.spec = function->spec,
			.entry_only = registry->specs[function->spec]->wire.flags & XPT_SPEC_ENTRY_ONLY,
		};
	}
	if (with_own) {
		struct operator_sites placed = { attacher, sites, count };

		file_operators_visit(&file->operators, add_operator, &placed);
		count = placed.count;
	}
	for (size_t i = 0; with_own && i < found->table_count; i++) {
		sites[count++] = (struct kern_site){ .offset = found->tables[i].accessor.offset,
						     .spec = table_spec(attacher, found->tables[i].runtime) };
	}
	if (with_own && file->has_loader) {
		sites[count++] = (struct kern_site){ .offset = file->loader_offset,
						     .spec = loader_spec(attacher),
						     .entry_only = true };
	}
	if (!count) {
		free(sites);
		return 0;
	}
	return link_sites(attacher, tgid, mapped, file, sites, count, with_own);
}

/* A table that is filled at run time, read in the process. */
static int link_table(struct attacher *attacher, pid_t owner, pid_t tgid, const struct mapped_file *mapped,
		      const struct analysed *file, const struct pending_table *table, __u64 address)
{
	struct found_functions found = {};
	int error;

	error = functions_add_table(attacher->log, attacher->options.registry, mapped, table, tgid, address, &found);
	if (!error)
		error = link_functions(attacher, owner, mapped, file, &found, false);
	found_functions_free(&found);
	return error;
}

/* The tables of a file whose place is known may be filled already. */
static int link_known_tables(struct attacher *attacher, pid_t owner, pid_t tgid, const struct mapped_file *mapped,
			     const struct analysed *file)
{
	int placed = 0, result;
	__u64 bias;

	if (mapped_file_bias(mapped, &bias))
		return 0;
	for (size_t i = 0; i < file->found.table_count; i++) {
		const struct pending_table *table = &file->found.tables[i];

		if (!table->table_address)
			continue;
		result = link_table(attacher, owner, tgid, mapped, file, table, table->table_address + bias);
		if (result > 0)
			placed += result;
	}
	return placed;
}

static int scan_file(struct attacher *attacher, pid_t tgid, const struct mapped_file *mapped)
{
	pid_t owner = attacher->options.all_processes ? 0 : tgid;
	struct analysed *file;
	struct stat status;
	int placed, more;

	if (stat(mapped->open_path, &status))
		return errno == ENOENT ? 0 : -errno;
	file = analysed_get(&attacher->files, mapped, &status);
	if (!file ||
	    (!file->found.count && !file->found.table_count && !file->operators.functions && !file->has_loader))
		return 0;
	if (class_names_tell(&attacher->classes, attacher->options.registry, tgid, mapped, file,
			     attacher->options.record, attacher->options.context))
		log_warn(attacher->log, "%s: its operators and regions will have no names", file->path);
	if (is_attached(attacher, owner, file))
		return 0;
	if (file->found.missing)
		log_debug(attacher->log, "%s: %s", file->path, file->found.missing);
	placed = link_functions(attacher, owner, mapped, file, &file->found, true);
	if (placed < 0)
		return placed;
	if (file->found.table_count) {
		more = link_known_tables(attacher, owner, tgid, mapped, file);
		placed += more;
	}
	return placed;
}

int attacher_scan(struct attacher *attacher, pid_t tgid)
{
	__u64 start = clock_monotonic();
	struct mapped_files mapped;
	int placed = 0, result;

	result = process_mapped_files(tgid, &mapped);
	if (result)
		return result;
	for (size_t i = 0; i < mapped.count; i++) {
		result = scan_file(attacher, tgid, &mapped.files[i]);
		if (result == -ESRCH || result == -EPERM || result == -EMFILE) {
			placed = result;
			break;
		}
		if (result > 0)
			placed += result;
	}
	mapped_files_free(&mapped);
	attacher->figures.attach_time += clock_monotonic() - start;
	return placed;
}

/* ---- records for the collector itself ---- */

static void on_table(struct attacher *attacher, pid_t tgid, const struct description *runtime, __u64 address)
{
	pid_t owner = attacher->options.all_processes ? 0 : tgid;
	struct mapped_files mapped;

	if (process_mapped_files(tgid, &mapped))
		return;
	for (size_t i = 0; i < mapped.count; i++) {
		struct analysed *file;
		struct stat status;

		if (stat(mapped.files[i].open_path, &status))
			continue;
		file = analysed_get(&attacher->files, &mapped.files[i], &status);
		for (size_t t = 0; file && t < file->found.table_count; t++) {
			if (file->found.tables[t].runtime == runtime)
				link_table(attacher, owner, tgid, &mapped.files[i], file, &file->found.tables[t],
					   address);
		}
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

/* A runtime has told the address of one of its functions: it may be another one than the exported symbol's. */
static void on_resolve(struct attacher *attacher, pid_t tgid, const struct description *runtime, const char *name,
		       __u64 address)
{
	pid_t owner = attacher->options.all_processes ? 0 : tgid;
	int spec = spec_of_symbol(attacher->options.registry, runtime, name);
	const struct mapped_file *mapped;
	struct analysed *file;
	struct elf_file *elf;
	struct stat status;
	struct site site;
	__u64 place;
	int error;

	mapped = spec < 0 ? NULL : code_places_find(&attacher->places, tgid, address, &status);
	file = mapped ? analysed_get(&attacher->files, mapped, &status) : NULL;
	if (!file || elf_file_open(NULL, mapped->open_path, mapped->path, &elf))
		return;
	error = elf_file_address(elf, address - mapped->start + mapped->offset, &place);
	if (!error)
		error = site_choose(elf, place, site_arguments(&attacher->options.registry->specs[spec]->wire), &site);
	elf_file_close(elf);
	if (!error && !site_is_attached(attacher, owner, file, site.offset)) {
		struct found_function function = { .spec = spec, .site = site, .by = FOUND_RESOLVED };
		struct found_functions found = { .functions = &function, .count = 1 };

		link_functions(attacher, owner, mapped, file, &found, false);
	}
}

void attacher_caller(struct attacher *attacher, const struct xpt_record_caller *caller)
{
	pid_t tgid = caller->header.tgid, owner = attacher->options.all_processes ? 0 : tgid;
	const struct mapped_file *mapped;
	struct analysed *file;
	struct kern_site *end;
	struct elf_file *elf;
	struct stat status;
	struct site site;
	__u64 place;
	int error;

	mapped = code_places_find(&attacher->places, tgid, caller->address, &status);
	file = mapped ? analysed_get(&attacher->files, mapped, &status) : NULL;
	if (!file || elf_file_open(NULL, mapped->open_path, mapped->path, &elf))
		return;
	error = elf_file_address(elf, caller->address - mapped->start + mapped->offset, &place);
	if (!error)
		error = site_choose_after(elf, place, &site);
	elf_file_close(elf);
	if (error) {
		log_warn(attacher->log, "%s: what is called at 0x%llx has no end: no probe is possible behind it",
			 file->path, (unsigned long long)place);
		return;
	}
	end = site_is_attached(attacher, owner, file, site.offset) ? NULL : calloc(1, sizeof(*end));
	if (end) {
		*end = (struct kern_site){ .offset = site.offset,
					   .spec = operator_end_spec(attacher),
					   .entry_only = true };
		attacher->figures.sites[site.class]++;
		attacher->end_cost += site_class_cost(site.class);
		attacher->end_count++;
		link_sites(attacher, owner, mapped, file, end, 1, false);
	}
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

const struct node_layout *attacher_node_layout(const struct attacher *attacher, pid_t tgid, __u64 class)
{
	return class_names_layout(&attacher->classes, tgid, class);
}

const struct attacher_figures *attacher_figures(const struct attacher *attacher)
{
	return &attacher->figures;
}

unsigned int attacher_cost(const struct attacher *attacher, unsigned int spec)
{
	return spec < attacher_spec_count(attacher->options.registry) ? attacher->cost[spec] : 0;
}

unsigned int attacher_end_cost(const struct attacher *attacher)
{
	return attacher->end_count ? attacher->end_cost / attacher->end_count : 0;
}

size_t attacher_files(const struct attacher *attacher, pid_t tgid)
{
	size_t files = 0;

	for (size_t i = 0; i < attacher->attached_count; i++) {
		if (!tgid || !attacher->attached[i].tgid || attacher->attached[i].tgid == tgid)
			files++;
	}
	return files;
}
