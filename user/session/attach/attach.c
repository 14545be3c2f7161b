/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/attach/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/core/vec.h"
#include "session/attach/attach_private.h"
#include "session/reader/describe_records.h"

/* What the others cannot be understood without. */
#define ROLES_OF_CODES (1u << XPT_ROLE_CODEOBJ_LOAD | 1u << XPT_ROLE_CODEOBJ_UNLOAD)
#define ROLES_ALWAYS                                                                                \
	(1u << XPT_ROLE_PROGRAM_LOAD | 1u << XPT_ROLE_PROGRAM_READY | 1u << XPT_ROLE_PROGRAM_NAME | \
	 1u << XPT_ROLE_PROGRAM_UNLOAD | 1u << XPT_ROLE_RESOLVE)

size_t attacher_spec_count(const struct registry *registry)
{
	return registry->spec_count + 1 + registry->runtime_count + 1;
}

static bool wants(const struct attacher *attacher, enum xpt_role role)
{
	return (attacher->options.roles | ROLES_ALWAYS | (attacher->options.codes ? ROLES_OF_CODES : 0)) >> role & 1;
}

/* The collector's own specs: the dynamic loader's announcement, and one for each runtime's table. */
static int set_own_specs(struct attacher *attacher)
{
	const struct registry *registry = attacher->options.registry;
	struct xpt_spec spec = {
		.index = loader_spec(attacher),
		.role = XPT_ROLE_LOADER,
		.flags = XPT_SPEC_ENTRY_ONLY | XPT_SPEC_CONTROL | XPT_SPEC_WAIT,
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
			.flags = XPT_SPEC_CONTROL | XPT_SPEC_WAIT,
			.fetch[0] = { .meaning = XPT_MEANING_ADDRESS, .source = XPT_SOURCE_RETURN, .at_return = 1 },
		};
		error = kern_set_spec(attacher->options.kern, &spec);
	}
	for (size_t i = 0; i < registry->spec_count && !error && attacher->options.codes; i++) {
		if (call_spec_has_code(registry->specs[i]))
			error = kern_set_code(attacher->options.kern, &registry->specs[i]->code);
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

	if (!attacher) {
		file_readers_stop(options->readers);
		return -ENOMEM;
	}
	attacher->options = *options;
	attacher->log = options->log;
	attacher->attached.kern = options->kern;
	attacher->announced_spec = calloc(attacher_spec_count(options->registry), sizeof(bool));
	attacher->announced_runtime = calloc(options->registry->runtime_count ?: 1, sizeof(bool));
	attacher->files.log = options->log;
	attacher->files.readers = options->readers;
	attacher->files.kern = options->kern;
	attacher->class = calloc(attacher_spec_count(options->registry), sizeof(*attacher->class));
	if (attacher->announced_spec && attacher->announced_runtime && attacher->class)
		error = set_own_specs(attacher);
	if (error) {
		attacher_free(attacher);
		return error;
	}
	*result = attacher;
	return 0;
}

void attacher_sweep(struct attacher *attacher)
{
	attached_sweep(&attacher->attached, false);
}

void attacher_detach(struct attacher *attacher)
{
	__u64 start = clock_monotonic();

	attached_bury_all(&attacher->attached);
	if (attached_sweep(&attacher->attached, true))
		attacher->figures.detach_time += clock_monotonic() - start;
}

void attacher_free(struct attacher *attacher)
{
	if (!attacher)
		return;
	attacher_detach(attacher);
	file_readers_stop(attacher->files.readers);
	elf_cache_free(&attacher->files);
	class_names_free(&attacher->classes);
	code_places_free(&attacher->places);
	attached_free(&attacher->attached);
	for (size_t i = 0; i < attacher->kept_count; i++)
		close(attacher->kept[i].descriptor);
	free(attacher->kept);
	free(attacher->readings);
	id_set_free(&attacher->resolved);
	free(attacher->announced_spec);
	free(attacher->announced_runtime);
	free(attacher->class);
	free(attacher);
}

void attacher_forget(struct attacher *attacher, pid_t tgid)
{
	attached_bury(&attacher->attached, tgid);
	attacher_renew(attacher, tgid);
}

void attacher_renew(struct attacher *attacher, pid_t tgid)
{
	size_t kept = 0;

	for (size_t i = 0; i < attacher->reading_count; i++)
		if (attacher->readings[i].tgid != tgid)
			attacher->readings[kept++] = attacher->readings[i];
	attacher->reading_count = kept;
	id_set_drop(&attacher->resolved, tgid);
	class_names_renew(&attacher->classes, tgid);
}

/* ---- announcing what the records will refer to ---- */

int announce_spec(struct attacher *attacher, unsigned int index)
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
		attacher->announced_runtime[runtime->index] = !error;
	}
	if (!error) {
		record = record_spec(registry->specs[index]);
		error = record ? attacher->options.record(attacher->options.context, &record->header) : -ENOMEM;
		free(record);
		attacher->announced_spec[index] = !error;
	}
	return error;
}

/* ---- sites ---- */

void count_site(struct attacher *attacher, unsigned int spec, const struct site *site)
{
	__u8 *dearest = &attacher->class[spec];

	attacher->figures.sites[site->class]++;
	*dearest = *dearest > site->class ? *dearest : site->class;
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
	operators->sites[operators->count++] = (struct kern_site){
		.offset = site->offset, .spec = spec, .class = site->class, .entry_only = true
	};
}

bool attacher_has(const struct attacher *attacher, pid_t tgid, const struct elf_entry *file, __u64 offset)
{
	return attached_has(&attacher->attached, tgid, file, offset) ||
	       (tgid > 0 && attached_has(&attacher->attached, probe_owner(attacher, tgid), file, offset));
}

int attach_functions(struct attacher *attacher, pid_t tgid, const struct mapped_file *mapped,
		     const struct elf_entry *file, const struct found_functions *found, bool with_own)
{
	size_t operators = with_own ? file->contents.operators.functions : 0, count = 0;
	struct kern_site *sites = calloc(found->count + found->table_count + operators + 1, sizeof(*sites));
	const struct registry *registry = attacher->options.registry;

	if (!sites)
		return -ENOMEM;
	for (size_t i = 0; i < found->count; i++) {
		const struct found_function *function = &found->functions[i];

		if (function->shared || !wants(attacher, registry->specs[function->spec]->wire.role) ||
		    attacher_has(attacher, tgid, file, function->site.offset))
			continue;
		count_site(attacher, function->spec, &function->site);
		sites[count++] = (struct kern_site){
			.offset = function->site.offset,
			.semaphore = function->site.semaphore,
			.spec = function->spec,
			.class = function->site.class,
			.entry_only = registry->specs[function->spec]->wire.flags & XPT_SPEC_ENTRY_ONLY,
		};
	}
	if (with_own) {
		struct operator_sites placed = { attacher, sites, count };

		file_operators_visit(&file->contents.operators, add_operator, &placed);
		count = placed.count;
	}
	for (size_t i = 0; with_own && i < found->table_count; i++) {
		sites[count++] = (struct kern_site){ .offset = found->tables[i].accessor.offset,
						     .spec = table_spec(attacher, found->tables[i].runtime) };
	}
	if (with_own && file->contents.has_loader) {
		sites[count++] = (struct kern_site){ .offset = file->contents.loader_offset,
						     .loader_state = file->contents.loader_state,
						     .spec = loader_spec(attacher),
						     .entry_only = true };
	}
	if (!count) {
		free(sites);
		return 0;
	}
	return attach_sites(attacher, tgid, mapped, file, sites, count, with_own);
}

static __u64 hash_of(const struct table_words *words)
{
	__u64 hash = words->count;

	for (size_t i = 0; i < words->count; i++)
		hash = (hash ^ words->words[i]) * 0x9e3779b97f4a7c15ull;
	return hash;
}

/* *result: valid until the next one is added. -ENOMEM; -EMLINK: the process has too many. */
static int reading_of(struct attacher *attacher, pid_t tgid, const struct pending_table *table, __u64 address,
		      struct table_reading **result)
{
	const __u64 now = clock_monotonic();
	struct table_reading reading = { .tgid = tgid, .runtime = table->runtime, .address = address, .since = now };
	size_t others = 0;

	for (size_t i = 0; i < attacher->reading_count; i++) {
		*result = &attacher->readings[i];
		if ((*result)->tgid != tgid)
			continue;
		if ((*result)->runtime == table->runtime && (*result)->address == address)
			return 0;
		others++;
	}
	if (others == TABLES_MAX)
		return -EMLINK;
	if (others == TABLES_MAX - 1)
		log_warn(attacher->log, "process %d: it has %d API tables: further ones are not read", tgid,
			 TABLES_MAX);
	/* What is behind a table without a size changes as it likes. */
	reading.due = table->table_address && table->runtime->table.size_offset >= 0 ? now + TABLE_AGAIN : UINT64_MAX;
	if (vec_push(attacher->readings, attacher->reading_count, reading))
		return -ENOMEM;
	*result = &attacher->readings[attacher->reading_count - 1];
	return 0;
}

pid_t attacher_due(struct attacher *attacher, __u64 now, __u64 *since)
{
	for (size_t i = 0; i < attacher->reading_count; i++) {
		struct table_reading *reading = &attacher->readings[i];

		if (reading->due > now)
			continue;
		reading->due = reading->since + 2 * (now - reading->since);
		*since = reading->since;
		return reading->tgid;
	}
	return 0;
}

/* Its words have changed since they were read. Number of probes placed, or a negative errno. */
static int read_table(struct attacher *attacher, struct table_reading *reading, const struct mapped_file *mapped,
		      const struct elf_entry *file, const struct table_words *words)
{
	struct found_functions found = {};
	int placed = file_reader_table(attacher->files.readers, mapped, reading->runtime, words, &found);

	if (!placed)
		placed = attach_functions(attacher, reading->tgid, mapped, file, &found, false);
	found_functions_free(&found);
	if (++reading->count == TABLE_READINGS_MAX)
		log_warn(attacher->log, "process %d: the API table of %s is not read again: %s", reading->tgid,
			 reading->runtime->title, placed < 0 ? strerror(-placed) : "it keeps changing");
	return placed;
}

int attach_table(struct attacher *attacher, pid_t tgid, const struct mapped_file *mapped, const struct elf_entry *file,
		 const struct pending_table *table, __u64 returned)
{
	struct table_reading *reading;
	struct table_words words;
	__u64 bias, hash;
	int error = elf_entry_bias(file, mapped, &bias), placed = 0;

	if (error)
		return error;
	error = reading_of(attacher, tgid, table, table->table_address ? table->table_address + bias : returned, &reading) ?:
			file_reader_words(attacher->files.readers, table, tgid, returned, bias, &words);
	if (error)
		return error;
	hash = hash_of(&words);
	if (reading->count < TABLE_READINGS_MAX && reading->hash != hash)
		placed = read_table(attacher, reading, mapped, file, &words);
	if (placed >= 0)
		reading->hash = hash;
	table_words_free(&words);
	return placed;
}

/* Tables at known places of a file may be filled already. */
static int link_known_tables(struct attacher *attacher, pid_t tgid, const struct mapped_file *mapped,
			     const struct elf_entry *file)
{
	int placed = 0, result;

	for (size_t i = 0; i < file->contents.found.table_count; i++) {
		const struct pending_table *table = &file->contents.found.tables[i];

		if (!table->table_address)
			continue;
		result = attach_table(attacher, tgid, mapped, file, table, 0);
		if (error_is_shortage(result))
			return result;
		if (result > 0)
			placed += result;
	}
	return placed;
}

/* All that a file has, for owner (probe_owner()). */
static int place_file(struct attacher *attacher, pid_t owner, pid_t tgid, const struct mapped_file *mapped,
		      const struct elf_entry *file)
{
	int placed, more;

	if (file->contents.found.missing)
		log_debug(attacher->log, "%s: %s", file->path, file->contents.found.missing);
	placed = attach_functions(attacher, owner, mapped, file, &file->contents.found, true);
	if (placed < 0 || !file->contents.found.table_count)
		return placed;
	more = link_known_tables(attacher, tgid, mapped, file);
	return error_is_shortage(more) ? more : placed + more;
}

/* The probes of a file that is open. *loader: whether it is a dynamic loader that had its probe before. */
static int scan_pinned(struct attacher *attacher, pid_t tgid, const struct pinned_file *pinned, bool *loader)
{
	const struct mapped_file *mapped = &pinned->mapped;
	const struct elf_entry *file = pinned->file;
	pid_t owner;
	size_t probes;
	bool complete;
	int placed = 0;

	if (class_names_emit(&attacher->classes, attacher->options.registry, tgid, mapped, file,
			     attacher->options.record, attacher->options.context))
		log_warn(attacher->log, "%s: its operators and regions will have no names", file->path);
	owner = file->changed ? tgid : probe_owner(attacher, tgid);
	complete = attached_is_complete(&attacher->attached, owner, file);
	*loader |= complete && file->contents.has_loader;
	/* First: children have what their parent has. */
	if (attacher->has_family && owner > 0 && !file->changed)
		attacher_report_error(attacher, tgid, place_for_family(attacher, mapped, file));
	if (!complete)
		placed = place_file(attacher, owner, tgid, mapped, file);
	else if (file->contents.found.table_count)
		placed = link_known_tables(attacher, tgid, mapped, file);
	probes = attached_sites(&attacher->attached, owner, file);
	if (owner != tgid)
		probes += attached_sites(&attacher->attached, tgid, file);
	attacher->scanned.files += probes > 0;
	attacher->scanned.probes += probes;
	return placed;
}

static int scan_file(struct attacher *attacher, pid_t tgid, const struct mapped_file *mapped, bool *loader)
{
	struct pinned_file pinned;
	int error = elf_cache_pin(&attacher->files, mapped, false, &pinned), placed;

	if (error && pinned.file) /* there is nothing in it any more */
		attached_bury_changed(&attacher->attached, pinned.file);
	if (error)
		return error == -ENOENT || error == -EWOULDBLOCK || error == -ETIMEDOUT ? 0 : error;
	attached_bury_changed(&attacher->attached, pinned.file);
	placed = scan_pinned(attacher, tgid, &pinned, loader);
	pinned_close(&pinned);
	return placed;
}

/* A descriptor that only names the file, or -errno. */
static int open_place(const struct attacher *attacher, const char *path)
{
	int place = open(path, O_PATH | O_CLOEXEC), error = place < 0 ? -errno : 0;

	/* The others are what exec reports. */
	if (error && error != -ENOENT && error != -EACCES && error != -ENOTDIR && error != -ELOOP)
		log_warn(attacher->log, "cannot open %s: %s: its probes may come too late", path, strerror(-error));
	return error ?: place;
}

/* A file that no process has mapped yet, for the family. */
static int prepare_file(struct attacher *attacher, const char *path)
{
	struct mapped_file mapped = { .path = (char *)path };
	struct pinned_file pinned;
	int place = open_place(attacher, path), error, placed;

	if (place < 0)
		return error_is_shortage(place) ? place : 0;
	snprintf(mapped.open_path, sizeof(mapped.open_path), "/proc/self/fd/%d", place);
	error = elf_cache_pin(&attacher->files, &mapped, false, &pinned);
	close(place);
	if (error)
		return error_is_shortage(error) ? error : 0;
	placed = place_for_family(attacher, &pinned.mapped, pinned.file);
	pinned_close(&pinned);
	return error_is_shortage(placed) || placed == -EINTR ? placed : 0;
}

#define SCRIPT_DEPTH 4 /* as in the kernel */

/* The interpreter of a script, from its first line: at most size bytes of it. False: it is none. */
static bool script_interpreter(const char *path, char *interpreter, size_t size)
{
	int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char line[256] = "";
	ssize_t length = descriptor < 0 ? -1 : read(descriptor, line, sizeof(line) - 1);
	const char *start;

	if (descriptor >= 0)
		close(descriptor);
	if (length < 3 || line[0] != '#' || line[1] != '!')
		return false;
	start = line + 2 + strspn(line + 2, " \t");
	snprintf(interpreter, size, "%.*s", (int)strcspn(start, " \t\n"), start);
	return *interpreter;
}

/* As execvp() finds it. */
static void find_command(const char *command, char *path, size_t size)
{
	const char *folder = getenv("PATH") ?: "/bin:/usr/bin", *end;

	snprintf(path, size, "%s", command);
	if (strchr(command, '/'))
		return;
	for (;; folder = end + 1) {
		end = strchrnul(folder, ':');
		snprintf(path, size, "%.*s%s%s", (int)(end - folder), folder, end == folder ? "" : "/", command);
		if (!access(path, X_OK) || !*end)
			return;
	}
}

int attacher_prepare(struct attacher *attacher, const char *command)
{
	char path[PATH_MAX], interpreter[PATH_MAX];
	struct mapped_file mapped = { .path = path };
	const struct elf_entry *file = NULL;
	int place, error;

	find_command(command, path, sizeof(path));
	for (int depth = 0; depth < SCRIPT_DEPTH && script_interpreter(path, interpreter, sizeof(interpreter)); depth++)
		memcpy(path, interpreter, sizeof(path));
	error = prepare_file(attacher, path);
	if (error)
		return error;
	place = open_place(attacher, path);
	if (place < 0)
		return error_is_shortage(place) ? place : 0;
	snprintf(mapped.open_path, sizeof(mapped.open_path), "/proc/self/fd/%d", place);
	error = elf_cache_find(&attacher->files, &mapped, &file);
	close(place);
	if (error)
		return error_is_shortage(error) ? error : 0;
	return file && file->contents.interpreter ? prepare_file(attacher, file->contents.interpreter) : 0;
}

bool attacher_is_static(struct attacher *attacher, const struct process_info *info)
{
	struct mapped_file mapped = { .path = (char *)info->name };
	const struct elf_entry *file;

	snprintf(mapped.open_path, sizeof(mapped.open_path), "/proc/%d/exe", info->tgid);
	return !elf_cache_find(&attacher->files, &mapped, &file) && file && file->contents.is_static;
}

void attacher_report_error(const struct attacher *attacher, pid_t tgid, int error)
{
	if (error_is_shortage(error))
		log_warn(attacher->log, "process %d: not all functions get probes: %s", tgid, strerror(-error));
}

int attacher_scan(struct attacher *attacher, pid_t tgid)
{
	__u64 start = clock_monotonic();
	struct mapped_files mapped;
	size_t denied = 0;
	int placed = 0, result;
	bool loader = false;

	attacher->scanned = (struct attacher_scanned){ 0 };
	id_set_drop(&attacher->resolved, tgid); /* another file may lie where they are */
	result = process_mapped_files(tgid, &mapped);
	if (result) {
		attacher_report_error(attacher, tgid, result);
		return result;
	}
	for (size_t i = 0; i < mapped.count; i++) {
		result = scan_file(attacher, tgid, &mapped.files[i], &loader);
		attacher_report_error(attacher, tgid, result);
		if (result == -ESRCH || result == -EINTR || result == -EPERM || error_is_shortage(result)) {
			placed = result;
			break;
		}
		if (result > 0)
			placed += result;
		denied += result == -EACCES;
	}
	/* The list of a process's files may be readable where a security module denies all of them, as on Linux 7. */
	if (denied && denied == mapped.count)
		placed = -EACCES;
	mapped_files_free(&mapped);
	attacher->figures.late += placed > 0 && !loader;
	if (attacher->options.scanned)
		attacher->options.scanned(attacher->options.scanned_context, tgid);
	attacher->figures.attach_time += clock_monotonic() - start;
	return placed;
}

const struct description *attacher_class_runtime(const struct attacher *attacher, pid_t tgid, __u64 class)
{
	return class_names_runtime(&attacher->classes, tgid, class);
}

struct mapping_search {
	pid_t tgid;
	__u64 address;
	char path[PATH_MAX];
	struct mapped_file mapped; /* with path and open_path */
};

static int visit_mapping(void *context, const struct maps_entry *entry)
{
	struct mapping_search *search = context;

	if (search->address < entry->start || search->address >= entry->end)
		return 0;
	if (!maps_entry_has_file(entry))
		return -ENOENT;
	snprintf(search->path, sizeof(search->path), "%s", entry->path);
	maps_entry_open_path(entry, search->tgid, search->mapped.open_path);
	return 1;
}

const char *attacher_build_id(struct attacher *attacher, pid_t tgid, __u64 address)
{
	struct mapping_search search = { .tgid = tgid, .address = address, .mapped.path = search.path };
	struct pinned_file pinned;

	if (maps_each(tgid, visit_mapping, &search) <= 0 ||
	    elf_cache_pin(&attacher->files, &search.mapped, false, &pinned))
		return NULL;
	pinned_close(&pinned);
	return *pinned.file->contents.build_id ? pinned.file->contents.build_id : NULL;
}

struct elf_cache *attacher_elf_cache(struct attacher *attacher)
{
	return &attacher->files;
}

struct file_readers *attacher_readers(struct attacher *attacher)
{
	return attacher->files.readers;
}

const struct attacher_figures *attacher_figures(const struct attacher *attacher)
{
	return &attacher->figures;
}

enum site_class attacher_class(const struct attacher *attacher, unsigned int spec)
{
	return spec < attacher_spec_count(attacher->options.registry) ? attacher->class[spec] : 0;
}

const size_t *attacher_ends(const struct attacher *attacher)
{
	return attacher->ends;
}

struct attacher_scanned attacher_scanned(const struct attacher *attacher)
{
	return attacher->scanned;
}

size_t attacher_files(const struct attacher *attacher)
{
	return attacher->attached.count;
}

/* ---- why nothing was recorded ---- */

#define LISTED_MAX 8

struct name_list {
	char text[640];
	size_t used, count;
};

static void list_name(struct name_list *list, const char *name)
{
	size_t left = sizeof(list->text) - list->used;

	list->count++;
	if (list->count > LISTED_MAX || strlen(name) + 32 > left)
		return;
	list->used += (size_t)snprintf(list->text + list->used, left, "%s%.64s", list->count > 1 ? ", " : "", name);
}

static const char *list_end(struct name_list *list)
{
	if (list->count > LISTED_MAX)
		snprintf(list->text + list->used, sizeof(list->text) - list->used, " and %zu more",
			 list->count - LISTED_MAX);
	return list->text;
}

static void explain_runtime(const struct attacher *attacher, const struct description *runtime, size_t file,
			    bool before, const __u64 *calls)
{
	const struct registry *registry = attacher->options.registry;
	struct name_list absent = {}, idle = {}, called = {};

	for (size_t i = 0; i < registry->spec_count; i++) {
		const struct call_spec *spec = registry->specs[i];

		if (registry->spec_runtime[i] != runtime || !wants(attacher, spec->wire.role) ||
		    (spec->callback_of && !attacher->class[i])) /* none was handed over */
			continue;
		list_name(!attacher->class[i] ? &absent : calls[i] ? &called : &idle, spec->function);
	}
	if (called.count)
		log_info(attacher->log, "%s: %s; called: %s", attacher->files.files[file]->path, runtime->title,
			 list_end(&called));
	else
		log_info(attacher->log, "%s: %s; %zu functions have probes, none of them was called%s",
			 attacher->files.files[file]->path, runtime->title, idle.count,
			 before ? ": loaded before, nothing ran since" : "");
	if (idle.count)
		log_info(attacher->log, "%s: never called: %s", runtime->name, list_end(&idle));
	if (absent.count)
		log_info(attacher->log, "%s: found in no file: %s", runtime->name, list_end(&absent));
}

void attacher_explain(const struct attacher *attacher, size_t before, const __u64 *calls)
{
	const struct registry *registry = attacher->options.registry;
	const struct elf_cache *files = &attacher->files;
	struct name_list searched = {};
	bool found = false;

	for (size_t r = 0; r < registry->runtime_count; r++) {
		size_t i = 0;

		while (i < files->count && !found_runtime(&files->files[i]->contents.found, registry->runtimes[r]))
			i++;
		if (i < files->count)
			explain_runtime(attacher, registry->runtimes[r], i, i < before, calls);
		found |= i < files->count;
	}
	for (size_t i = 0; i < files->count; i++)
		list_name(&searched, basename(files->files[i]->path));
	if (!found && searched.count)
		log_info(attacher->log, "searched %zu files, found no known runtime: %s (see `xputrace list runtimes`)",
			 searched.count, list_end(&searched));
	else if (!found)
		log_info(attacher->log, "no file was searched: no process that could be traced was there");
}

size_t attacher_searched(const struct attacher *attacher)
{
	return attacher->files.count;
}
