/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts symbols, tables and sites together: what of the described runtimes is in one file, and where to probe it. */
#include "target/probe/functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/text.h"
#include "base/core/vec.h"
#include "target/probe/symbol_match.h"

/* One scan of one file. */
struct look {
	const struct log *log;
	const struct mapped_file *mapped;
	struct elf_file *file;
	struct wanted_matches matches;
	struct static_probes probes;
	struct found_functions *found;
	struct text missing;
};

/* A line of text. */
static int note_missing(struct look *look, const struct description *runtime, const char *function, const char *why)
{
	const char *const parts[] = { runtime->name, ": ", function, ": ", why, "\n" };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		text_string(&look->missing, parts[i]);
	return look->missing.error;
}

/* Hands the text over, behind that of an earlier scan. */
static int finish_missing(struct look *look)
{
	struct text joined = { 0 };

	if (!look->missing.length && !look->missing.error)
		return 0;
	text_string(&joined, look->found->missing ?: "");
	text_bytes(&joined, look->missing.data, look->missing.length);
	text_bytes(&joined, "", 1);
	if (look->missing.error)
		text_fail(&joined);
	text_free(&look->missing);
	if (joined.error) {
		text_free(&joined);
		return -ENOMEM;
	}
	free(look->found->missing);
	look->found->missing = joined.data;
	return 0;
}

static const char *why_no_site(int error)
{
	return error == -ENOENT ? "it is not in the code of the file" :
				  "no instruction of a function begins there, or it takes no probe";
}

/*
 * Several specs, or several names of one, may lead to one function; and a function that falls into another one may
 * share its site. One probe each: the first spec has it, the others are listed.
 */
static const struct found_function *find_same(const struct found_functions *found, const struct site *site)
{
	for (size_t i = 0; i < found->count; i++)
		if (found->functions[i].site.function == site->function ||
		    found->functions[i].site.offset == site->offset)
			return &found->functions[i];
	return NULL;
}

static bool has_spec(const struct found_functions *found, __u16 spec, const struct site *site)
{
	for (size_t i = 0; i < found->count; i++)
		if (found->functions[i].spec == spec && found->functions[i].site.function == site->function)
			return true;
	return false;
}

static int add_found(struct found_functions *found, __u16 spec, const struct site *site, enum found_by by,
		     const char *symbol)
{
	const struct found_function *same = find_same(found, site);
	struct found_function added = { .spec = spec, .site = *site, .by = by, .shared = same };

	if (same && has_spec(found, added.spec, site))
		return 0;
	if (same) {
		added.site.offset = same->site.offset;
		added.site.class = same->site.class;
	}
	added.symbol = strdup(symbol);
	if (!added.symbol)
		return -ENOMEM;
	if (vec_push(found->functions, found->count, added)) {
		free(added.symbol);
		return -ENOMEM;
	}
	return 0;
}

static int add_function(struct look *look, const struct call_spec *spec, const struct site *site, enum found_by by,
			const char *symbol)
{
	return add_found(look->found, spec->wire.index, site, by, symbol);
}

static int place(struct look *look, const struct description *runtime, const struct call_spec *spec, __u64 address,
		 enum found_by by, const char *symbol)
{
	struct site site;
	int error = site_choose(look->file, address, site_arguments(spec), &site);

	if (error == -ENOENT || error == -ENOEXEC)
		return note_missing(look, runtime, symbol, why_no_site(error));
	return error ? error : add_function(look, spec, &site, by, symbol);
}

/* ---- functions by symbol, or by a string ---- */

static bool holds(const struct look *look, const struct description *runtime)
{
	for (size_t i = 0; i < look->matches.count; i++)
		if (look->matches.list[i].runtime == runtime &&
		    (look->matches.list[i].kind != WANTED_CALL || look->matches.list[i].spec->file))
			return true;
	for (size_t i = 0; i < look->probes.count; i++)
		if (look->probes.list[i].runtime == runtime)
			return true;
	return false;
}

/* Places all functions that a spec's names lead to; matches are those of the spec, and at least one. */
static int place_matches(struct look *look, const struct wanted_match *matches, size_t count)
{
	const struct call_spec *spec = matches->spec;
	int error = 0;

	if (spec->locate == LOCATE_REFERENCE && count > 1)
		return note_missing(look, matches->runtime, spec->function,
				    "more than one function refers to its string");
	/* Several names of one function count once only below; here it is about what a pattern would do to the program. */
	if (spec->file && count > WANTED_FILE_MAX) {
		log_warn(look->log,
			 "%s: '%s:%s' matches more than %d functions: no probe placed; use a narrower pattern",
			 look->mapped->path, spec->file, spec->function, WANTED_FILE_MAX);
		return 0;
	}
	for (size_t i = 0; i < count && !error; i++) {
		const struct wanted_match *match = &matches[i];

		if (match->symbol.indirect)
			error = note_missing(look, match->runtime, match->symbol.name,
					     "it is chosen when the program starts (IFUNC)");
		else
			error = place(look, match->runtime, match->spec, match->symbol.address,
				      spec->locate == LOCATE_REFERENCE ? FOUND_REFERENCE :
				      spec->locate == LOCATE_VIRTUAL   ? FOUND_CLASS :
									 FOUND_SYMBOL,
				      match->symbol.name);
	}
	return error;
}

static int find_by_name(struct look *look, const struct description *runtime)
{
	const struct wanted_matches *matches = &look->matches;
	size_t at = 0;
	int error = 0;

	while (at < matches->count && (matches->list[at].runtime != runtime || matches->list[at].kind != WANTED_CALL))
		at++;
	for (size_t i = 0; i < runtime->call_count && !error; i++) {
		const struct call_spec *spec = &runtime->calls[i];
		size_t end = at;

		if (spec->locate != LOCATE_SYMBOL && spec->locate != LOCATE_REFERENCE && spec->locate != LOCATE_VIRTUAL)
			continue;
		while (end < matches->count && matches->list[end].runtime == runtime && matches->list[end].spec == spec)
			end++;
		error = end > at ? place_matches(look, &matches->list[at], end - at) :
				   note_missing(look, runtime, spec->function,
						spec->locate == LOCATE_SYMBOL	 ? "the file does not define it" :
						spec->locate == LOCATE_REFERENCE ? "no function refers to its string" :
										   "the file does not have its class");
		at = end;
	}
	return error;
}

/* ---- functions by table ---- */

static int add_pending(struct look *look, const struct description *runtime, const struct site *accessor, __u64 table)
{
	struct found_functions *found = look->found;

	return vec_push(found->tables, found->table_count,
			(struct pending_table){ .runtime = runtime, .accessor = *accessor, .table_address = table });
}

/* Functions that the linker folded into one, or a stub for all that are missing: they cannot be distinguished. */
static bool slot_is_ambiguous(const struct api_table *table, unsigned int slot)
{
	for (size_t i = 0; i < table->slot_count; i++) {
		if (i != slot && table->slots[i] == table->slots[slot])
			return true;
	}
	return false;
}

static int place_slots(struct look *look, const struct description *runtime, const struct api_table *table,
		       enum found_by by)
{
	int error = 0;

	for (size_t i = 0; i < runtime->call_count && !error; i++) {
		const struct call_spec *spec = &runtime->calls[i];

		if (spec->locate != LOCATE_SLOT)
			continue;
		if (spec->slot >= table->slot_count)
			error = note_missing(look, runtime, spec->function, "this version's API table is shorter");
		else if (!table->slots[spec->slot])
			error = note_missing(look, runtime, spec->function,
					     "its slot of the API table holds no function of the file");
		else if (slot_is_ambiguous(table, spec->slot))
			error = note_missing(look, runtime, spec->function,
					     "another slot of the API table has the same code");
		else
			error = place(look, runtime, spec, table->slots[spec->slot], by, spec->function);
	}
	return error;
}

static int find_by_table(struct look *look, const struct description *runtime, __u64 accessor)
{
	struct api_table table;
	struct site site;
	int error = api_table_from_file(look->log, look->file, &runtime->table, accessor, &table);

	if (!error) {
		error = place_slots(look, runtime, &table, FOUND_TABLE_FILE);
		api_table_free(&table);
		return error;
	}
	if (error != -ENODATA && error != -ENOENT)
		return error;
	/* what the accessor returns is the same whatever it is asked for: no argument is read */
	error = site_choose(look->file, accessor, 0, &site);
	if (error == -ENOENT || error == -ENOEXEC)
		return note_missing(look, runtime, runtime->table.accessor, why_no_site(error));
	return error ? error : add_pending(look, runtime, &site, table.address);
}

static bool has_slots(const struct description *runtime)
{
	for (size_t i = 0; i < runtime->call_count; i++)
		if (runtime->calls[i].locate == LOCATE_SLOT)
			return true;
	return false;
}

static int find_table(struct look *look, const struct description *runtime)
{
	if (!runtime->table.accessor || !has_slots(runtime))
		return 0;
	for (size_t i = 0; i < look->matches.count; i++) {
		const struct wanted_match *match = &look->matches.list[i];

		if (match->runtime == runtime && match->kind == WANTED_ACCESSOR && !match->symbol.indirect)
			return find_by_table(look, runtime, match->symbol.address);
	}
	return note_missing(look, runtime, runtime->table.accessor, "the file does not define it");
}

/* ---- static probes ---- */

static int find_probes(struct look *look, const struct description *runtime)
{
	int error = 0;

	for (size_t i = 0; i < look->probes.count && !error; i++) {
		const struct static_probe *probe = &look->probes.list[i];

		if (probe->runtime != runtime)
			continue;
		if (probe->refused)
			error = note_missing(look, runtime, probe->spec->function, probe->refused);
		else
			error = add_function(look, probe->spec, &probe->site, FOUND_PROBE, probe->spec->probe);
	}
	return error;
}

/* ---- one file ---- */

static int compare(const void *left, const void *right)
{
	const struct found_function *a = left, *b = right;

	if (a->site.offset != b->site.offset)
		return a->site.offset < b->site.offset ? -1 : 1;
	if (a->shared != b->shared)
		return a->shared ? 1 : -1;
	return a->spec < b->spec ? -1 : a->spec > b->spec;
}

static int end_look(struct look *look, int error)
{
	int missing_error = finish_missing(look);

	if (!error)
		error = elf_file_error(look->file) ?: missing_error;
	if (look->found->count)
		qsort(look->found->functions, look->found->count, sizeof(*look->found->functions), compare);
	wanted_matches_free(&look->matches);
	static_probes_free(&look->probes);
	elf_file_close(look->file);
	return error;
}

static int find_runtime(struct look *look, const struct description *runtime)
{
	size_t before = look->found->count;
	int error = find_by_name(look, runtime);

	if (!error)
		error = find_table(look, runtime);
	if (!error)
		error = find_probes(look, runtime);
	if (!error)
		log_debug(look->log, "%s: %s, %zu functions", look->mapped->path, runtime->title,
			  look->found->count - before);
	return error;
}

int mapped_file_elf(const struct log *log, const struct mapped_file *mapped, struct elf_file **result)
{
	if (mapped->descriptor)
		return elf_file_open_descriptor(log, mapped->descriptor, mapped->path, result);
	return elf_file_open(log, mapped->open_path, mapped->path, result);
}

int functions_find(const struct log *log, const struct registry *registry, const struct mapped_file *mapped,
		   struct found_functions *result)
{
	struct look look = { .log = log, .mapped = mapped, .found = result };
	int error;

	memset(result, 0, sizeof(*result));
	error = mapped_file_elf(log, mapped, &look.file);
	if (error)
		return error;
	error = wanted_find(log, registry, look.file, mapped->path, &look.matches);
	if (!error)
		error = static_probes_find(registry, look.file, &look.probes);
	for (size_t i = 0; i < registry->runtime_count && !error; i++) {
		if (!holds(&look, registry->runtimes[i]))
			continue;
		result->runtimes |= 1ull << i;
		error = find_runtime(&look, registry->runtimes[i]);
	}
	error = end_look(&look, error);
	if (error)
		found_functions_free(result);
	return error;
}

int functions_read_table(const struct pending_table *pending, pid_t pid, __u64 returned, __u64 bias,
			 struct table_words *result)
{
	const struct table_spec *spec = &pending->runtime->table;

	/* What an accessor on the way returns is an object, not the table. */
	if (!pending->table_address && spec->through_count)
		return -ENOENT;
	return table_words_read(spec, pid, pending->table_address ? pending->table_address + bias : returned, result);
}

int functions_add_table(const struct log *log, const struct registry *registry, const struct mapped_file *mapped,
			const struct description *runtime, const struct table_words *words,
			struct found_functions *result)
{
	struct look look = { .log = log, .mapped = mapped, .found = result };
	struct api_table table;
	__u64 base;
	int error;

	if (registry_find(registry, runtime->name) != runtime)
		return -EINVAL;
	error = mapped_file_elf(log, mapped, &look.file);
	if (error)
		return error;
	error = elf_file_address(look.file, mapped->offset, &base);
	if (!error)
		error = api_table_from_words(log, look.file, &runtime->table, words, mapped->start - base, &table);
	if (!error) {
		error = place_slots(&look, runtime, &table, FOUND_TABLE_MEMORY);
		api_table_free(&table);
	}
	return end_look(&look, error);
}

int found_functions_add(struct found_functions *functions, const struct found_functions *more)
{
	int error = 0;

	for (size_t i = 0; i < more->count && !error; i++)
		error = add_found(functions, more->functions[i].spec, &more->functions[i].site, more->functions[i].by,
				  more->functions[i].symbol);
	functions->runtimes |= more->runtimes;
	if (functions->count)
		qsort(functions->functions, functions->count, sizeof(*functions->functions), compare);
	return error;
}

bool found_runtime(const struct found_functions *functions, const struct description *runtime)
{
	return functions->runtimes >> runtime->index & 1;
}

void found_functions_free(struct found_functions *functions)
{
	for (size_t i = 0; i < functions->count; i++)
		free(functions->functions[i].symbol);
	free(functions->functions);
	free(functions->tables);
	free(functions->missing);
	memset(functions, 0, sizeof(*functions));
}

const char *found_by_name(enum found_by by)
{
	switch (by) {
	case FOUND_SYMBOL:
		return "symbol";
	case FOUND_TABLE_FILE:
		return "table";
	case FOUND_TABLE_MEMORY:
		return "table in memory";
	case FOUND_RESOLVED:
		return "resolved";
	case FOUND_PROBE:
		return "probe";
	case FOUND_REFERENCE:
		return "string";
	case FOUND_CLASS:
		return "class";
	}
	return "unknown";
}
