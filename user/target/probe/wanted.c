/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/probe/wanted.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/hashmap.h"
#include "base/core/link.h"
#include "base/core/vec.h"
#include "target/probe/classes.h"
#include "target/elf/type_name.h"

#define MATCH_MAX 16384 /* a hostile file may define one name a million times */

struct name {
	const char *text;
	size_t literal; /* bytes before the first special character of a pattern; of a plain name: all */
	bool readable;	/* it is of names as C++ has them: "ns::Class::*" */
	const struct description *runtime;
	const struct call_spec *spec;
	enum wanted_kind kind;
	size_t matched; /* of those for one file */
	struct map_node node;
	struct name *next; /* in the list of patterns */
};

struct search {
	struct name *names;
	size_t count;
	struct map plain; /* names by their hash */
	struct name *patterns;
	struct wanted_matches *matches;
	bool overflow;
	struct name *reference; /* that is searched for */
	char readable[1024];
};

static __u32 hash(const char *text)
{
	__u32 value = 2166136261u; /* FNV-1a */

	for (; *text; text++)
		value = (value ^ (unsigned char)*text) * 16777619u;
	return value;
}

static int add_name(struct search *search, const char *text, enum wanted_kind kind, const struct description *runtime,
		    const struct call_spec *spec)
{
	return vec_push(search->names, search->count,
			(struct name){
				.text = text,
				.literal = strcspn(text, "*?[\\"),
				.readable = kind == WANTED_CALL && strstr(text, "::"),
				.runtime = runtime,
				.spec = spec,
				.kind = kind,
			});
}

static bool is_in(const struct call_spec *spec, const char *path)
{
	const char *slash = strrchr(path, '/');

	return !spec->file || !fnmatch(spec->file, strchr(spec->file, '/') || !slash ? path : slash + 1, 0);
}

static int add_runtime(struct search *search, const struct description *runtime, const char *path)
{
	int error = 0;

	for (size_t i = 0; i < runtime->identify_count && !error; i++)
		error = add_name(search, runtime->identify[i], WANTED_IDENTITY, runtime, NULL);
	if (!error && runtime->table.accessor)
		error = add_name(search, runtime->table.accessor, WANTED_ACCESSOR, runtime, NULL);
	for (size_t i = 0; i < runtime->call_count && !error; i++) {
		const struct call_spec *spec = &runtime->calls[i];

		if (spec->locate != LOCATE_SYMBOL || !is_in(spec, path))
			continue;
		for (size_t j = 0; j < spec->symbol_count && !error; j++)
			error = add_name(search, spec->symbols[j], WANTED_CALL, runtime, spec);
	}
	return error;
}

static int build(struct search *search, const struct registry *registry, const char *path)
{
	int error = 0;

	for (size_t i = 0; i < registry->runtime_count && !error; i++)
		error = add_runtime(search, registry->runtimes[i], path);
	for (size_t i = 0; i < search->count && !error; i++) {
		struct name *name = &search->names[i];

		if (!name->text[name->literal] && !name->readable) {
			error = map_add(&search->plain, &name->node, hash(name->text), 0);
		} else {
			name->next = search->patterns;
			search->patterns = name;
		}
	}
	return error;
}

static int add_match(struct search *search, struct name *name, const struct elf_symbol *symbol)
{
	struct wanted_matches *matches = search->matches;

	/* They must not crowd out the others. So many show that there are too many, even where some are repeated. */
	if (name->spec && name->spec->file && ++name->matched > 4 * WANTED_FILE_MAX)
		return 0;
	if (matches->count == MATCH_MAX) {
		search->overflow = true;
		return 0;
	}
	return vec_push(matches->list, matches->count,
			(struct wanted_match){
				.runtime = name->runtime,
				.spec = name->spec,
				.kind = name->kind,
				.symbol = *symbol,
			});
}

/* The symbol as C++ has it, without parameters; what cannot be read is its own name. */
static const char *readable(struct search *search, const struct elf_symbol *symbol)
{
	return type_name_read_function(symbol->name, search->readable, sizeof(search->readable)) ? symbol->name :
												   search->readable;
}

static bool matches(const struct name *name, const char *text)
{
	return !strncmp(name->text, text, name->literal) && !fnmatch(name->text, text, 0);
}

static int visit(void *context, const struct elf_symbol *symbol)
{
	struct search *search = context;
	struct map_node *node = map_find(&search->plain, hash(symbol->name), 0);
	const char *text = NULL;
	int error = 0;

	for (; node && !error; node = map_next(node)) {
		struct name *name = container_of(node, struct name, node);

		if (!strcmp(name->text, symbol->name))
			error = add_match(search, name, symbol);
	}
	for (struct name *name = search->patterns; name && !error; name = name->next) {
		if (name->readable && !text)
			text = readable(search, symbol);
		if (matches(name, name->readable ? text : symbol->name))
			error = add_match(search, name, symbol);
	}
	return error;
}

static int add_reference(void *context, __u64 function)
{
	struct search *search = context;
	struct wanted_matches *matches = search->matches;
	const struct elf_symbol symbol = { .name = search->reference->text, .address = function };

	for (size_t i = matches->count; i && matches->list[i - 1].spec == search->reference->spec; i--)
		if (matches->list[i - 1].symbol.address == function)
			return 0;
	return add_match(search, search->reference, &symbol);
}

static bool has_accessor(const struct wanted_matches *matches, const struct description *runtime)
{
	for (size_t i = 0; i < matches->count; i++)
		if (matches->list[i].runtime == runtime && matches->list[i].kind == WANTED_ACCESSOR)
			return true;
	return false;
}

/* What the class has in the slot of its virtual table. */
static int find_method(struct search *search, struct elf_file *file, const struct call_spec *spec)
{
	struct classes classes;
	int error = classes_find(file, spec->method_of, &spec->slot, 1, &classes);

	if (error)
		return error == -ENOMEM ? error : 0; /* of a damaged file, the others are found */
	if (classes.own[0])
		error = add_reference(search, classes.own[0]);
	classes_free(&classes);
	return error;
}

/* Functions that refer to a string, and methods. Behind a table they would be found twice: as themselves, and in its slots. */
static int find_references(struct search *search, const struct registry *registry, struct elf_file *file,
			   const char *path)
{
	int error = 0;

	for (size_t i = 0; i < registry->runtime_count; i++) {
		const struct description *runtime = registry->runtimes[i];

		for (size_t j = 0; j < runtime->call_count && !error; j++) {
			const struct call_spec *spec = &runtime->calls[j];
			struct name name = {
				.text = spec->function, .runtime = runtime, .spec = spec, .kind = WANTED_CALL
			};

			if ((spec->locate != LOCATE_REFERENCE && spec->locate != LOCATE_VIRTUAL) ||
			    !is_in(spec, path) || has_accessor(search->matches, runtime))
				continue;
			search->reference = &name;
			error = spec->locate == LOCATE_VIRTUAL ?
					find_method(search, file, spec) :
					elf_file_each_reference(file, spec->refers_to, add_reference, search);
			search->reference = NULL;
		}
	}
	return error;
}

/* Specs of one description lie in one array, so their addresses have their order. */
static int compare(const void *left, const void *right)
{
	const struct wanted_match *a = left, *b = right;

	if (a->runtime != b->runtime)
		return a->runtime->index < b->runtime->index ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->spec != b->spec)
		return a->spec < b->spec ? -1 : 1;
	if (a->symbol.address != b->symbol.address)
		return a->symbol.address < b->symbol.address ? -1 : 1;
	return strcmp(a->symbol.name, b->symbol.name);
}

/* .symtab repeats .dynsym. */
static void drop_repeated(struct wanted_matches *matches)
{
	size_t kept = 0;

	for (size_t i = 0; i < matches->count; i++)
		if (!kept || compare(&matches->list[kept - 1], &matches->list[i]))
			matches->list[kept++] = matches->list[i];
	matches->count = kept;
}

int wanted_find(const struct log *log, const struct registry *registry, struct elf_file *file, const char *path,
		struct wanted_matches *result)
{
	struct search search = { .matches = result };
	int error;

	memset(result, 0, sizeof(*result));
	error = build(&search, registry, path);
	if (!error)
		error = elf_file_each_function(file, visit, &search);
	if (!error)
		error = find_references(&search, registry, file, path);
	if (search.overflow)
		log_warn(log, "%s: defines more than %u described symbols; ignoring the rest", path, MATCH_MAX);
	if (result->count)
		qsort(result->list, result->count, sizeof(*result->list), compare);
	drop_repeated(result);
	free(search.names);
	map_free(&search.plain);
	if (error)
		wanted_matches_free(result);
	return error;
}

void wanted_matches_free(struct wanted_matches *matches)
{
	free(matches->list);
	memset(matches, 0, sizeof(*matches));
}
