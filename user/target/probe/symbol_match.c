/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/probe/symbol_match.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/hashmap.h"
#include "base/core/link.h"
#include "base/core/vec.h"
#include "target/elf/type_name.h"
#include "target/probe/classes.h"

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
	struct name *references; /* specs whose functions refer to strings */
	const char **strings;
	size_t reference_count, string_count;
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

	/* They must not crowd out the others. This number shows that there are too many, even where some are repeated. */
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

static int add_reference(struct search *search, struct name *name, __u64 function)
{
	struct wanted_matches *matches = search->matches;
	const struct elf_symbol symbol = { .name = name->text, .address = function };

	for (size_t i = 0; i < matches->count; i++)
		if (matches->list[i].spec == name->spec && matches->list[i].symbol.address == function)
			return 0;
	return add_match(search, name, &symbol);
}

static int visit_reference(void *context, size_t string, __u64 function)
{
	struct search *search = context;

	return add_reference(search, &search->references[string], function);
}

static bool has_accessor(const struct wanted_matches *matches, const struct description *runtime)
{
	for (size_t i = 0; i < matches->count; i++)
		if (matches->list[i].runtime == runtime && matches->list[i].kind == WANTED_ACCESSOR)
			return true;
	return false;
}

/* What the class has in the slot of its virtual table. */
static int find_method(struct search *search, struct elf_file *file, struct name *name)
{
	struct classes classes;
	int error = classes_find(file, name->spec->method_of, &name->spec->slot, 1, &classes);

	if (error)
		return error == -ENOMEM ? error : 0; /* of a damaged file, the others are found */
	if (classes.own[0])
		error = add_reference(search, name, classes.own[0]);
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
			if (spec->locate == LOCATE_VIRTUAL)
				error = find_method(search, file, &name);
			else
				error = vec_push(search->references, search->reference_count, name) ?:
						vec_push(search->strings, search->string_count, spec->refers_to);
		}
	}
	return error ?: elf_file_each_reference(file, search->strings, search->string_count, visit_reference, search);
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
	free(search.references);
	free(search.strings);
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

/* ---- static probes ---- */

#define PLACES_MAX 4096 /* of described probes, in one file */

struct probe_search {
	const struct registry *registry;
	struct elf_file *file;
	struct static_probes *found;
};

/* "8@%rdi": where gcc and clang leave 64-bit arguments, or 32-bit ones. */
static bool is_register(enum elf_machine machine, unsigned int argument, const char *operand, size_t length)
{
	static const char *const x86[][2] = { { "8@%rdi", "4@%edi" }, { "8@%rsi", "4@%esi" }, { "8@%rdx", "4@%edx" },
					      { "8@%rcx", "4@%ecx" }, { "8@%r8", "4@%r8d" },  { "8@%r9", "4@%r9d" } };
	static const char *const arm64[][2] = { { "8@x0", "4@w0" }, { "8@x1", "4@w1" }, { "8@x2", "4@w2" },
						{ "8@x3", "4@w3" }, { "8@x4", "4@w4" }, { "8@x5", "4@w5" },
						{ "8@x6", "4@w6" }, { "8@x7", "4@w7" } };
	const size_t count = machine == ELF_MACHINE_X86_64 ? sizeof(x86) / sizeof(x86[0]) :
							     sizeof(arm64) / sizeof(arm64[0]);
	const char *const(*registers)[2] = machine == ELF_MACHINE_X86_64 ? x86 : arm64;

	if (length && *operand == '-') { /* signed */
		operand++;
		length--;
	}
	for (size_t i = 0; i < 2 && argument < count; i++)
		if (strlen(registers[argument][i]) == length && !memcmp(registers[argument][i], operand, length))
			return true;
	return false;
}

bool static_probe_is_call(enum elf_machine machine, const char *arguments, __u32 wanted)
{
	for (unsigned int i = 0; wanted; i++, wanted >>= 1) {
		size_t length;

		arguments += strspn(arguments, " ");
		length = strcspn(arguments, " ");
		if (wanted & 1 && !is_register(machine, i, arguments, length))
			return false;
		arguments += length;
	}
	return true;
}

static bool probe_is(const struct call_spec *spec, const struct elf_probe *probe)
{
	const size_t provider = strlen(probe->provider);

	return spec->locate == LOCATE_PROBE && !strncmp(spec->probe, probe->provider, provider) &&
	       spec->probe[provider] == ':' && !strcmp(spec->probe + provider + 1, probe->name);
}

static int add_probe(struct probe_search *search, const struct description *runtime, const struct call_spec *spec,
		     const struct elf_probe *probe)
{
	struct static_probes *found = search->found;
	struct static_probe added = { .runtime = runtime, .spec = spec };
	int error;

	if (found->count == PLACES_MAX)
		return 0;
	error = site_of_marker(search->file, probe->address, &added.site);
	if (error == -ENOMEM)
		return error;
	if (error)
		added.refused = "its place holds no instruction that does nothing and takes a cheap probe";
	else if (!static_probe_is_call(elf_file_machine(search->file), probe->arguments, site_arguments(spec)))
		added.refused = "its arguments are not where those of a call are";
	else if (probe->semaphore && elf_file_data_offset(search->file, probe->semaphore, &added.site.semaphore))
		added.refused = "its semaphore is not in the data of the file";
	return vec_push(found->list, found->count, added);
}

static int visit_probe(void *context, const struct elf_probe *probe)
{
	struct probe_search *search = context;
	int error = 0;

	for (size_t r = 0; r < search->registry->runtime_count && !error; r++) {
		const struct description *runtime = search->registry->runtimes[r];

		for (size_t i = 0; i < runtime->call_count && !error; i++)
			if (probe_is(&runtime->calls[i], probe))
				error = add_probe(search, runtime, &runtime->calls[i], probe);
	}
	return error;
}

static bool wants_any(const struct registry *registry)
{
	for (size_t i = 0; i < registry->spec_count; i++)
		if (registry->specs[i]->locate == LOCATE_PROBE)
			return true;
	return false;
}

int static_probes_find(const struct registry *registry, struct elf_file *file, struct static_probes *result)
{
	struct probe_search search = { registry, file, result };
	int error = wants_any(registry) ? elf_file_each_probe(file, visit_probe, &search) : 0;

	if (error)
		static_probes_free(result);
	return error;
}

void static_probes_free(struct static_probes *probes)
{
	free(probes->list);
	memset(probes, 0, sizeof(*probes));
}
