/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/probe/operators.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "target/elf/type_name.h"

/*
 * ---- functions without an object: each symbol that a description asks for is a class of its own ----
 *
 * One method for each function, in order of their addresses; its slot is that of its description. What is called
 * "at::_ops::mm::call" in the file, where the description calls it "call", is the method of the class "at::_ops::mm";
 * else the class is called as the function. Names are readable. table is the function's address. -ENOENT: there is none.
 */

#define FUNCTIONS_MAX 16384 /* further ones are left out, and counted */

struct search {
	const struct operators_spec *spec;
	struct classes *classes;
};

/* The first one described that asks for the symbol; NULL: none. */
static const struct method_spec *described(const struct operators_spec *spec, const char *symbol)
{
	for (size_t i = 0; i < spec->method_count; i++) {
		const struct call_spec *call = &spec->methods[i].call;

		for (size_t s = 0; s < call->symbol_count; s++)
			if (!fnmatch(call->symbols[s], symbol, 0))
				return &spec->methods[i];
	}
	return NULL;
}

/* Takes "::METHOD" off the end of the name. */
static void cut_method(char *name, const char *method)
{
	size_t length = strlen(name), cut = strlen(method) + 2;
	char *end = length > cut ? name + length - cut : NULL;

	if (end && !strncmp(end, "::", 2) && !strcmp(end + 2, method))
		*end = '\0';
}

static int add(struct search *search, const struct method_spec *method, const struct elf_symbol *symbol)
{
	struct classes *classes = search->classes;
	char name[CLASS_NAME_LENGTH];
	int error = vec_reserve(classes->methods, classes->method_count);
	char *class;

	if (error)
		return error;
	error = type_name_read_function(symbol->name, name, sizeof(name));
	if (error == -ENOMEM)
		return error;
	if (!error)
		cut_method(name, method->call.function);
	class = strdup(error ? symbol->name : name);
	if (!class)
		return -ENOMEM;
	classes->methods[classes->method_count++] = (struct class_method){
		.class_name = class,
		.table = symbol->address,
		.method = symbol->address,
		.slot = method->slot,
	};
	return 0;
}

static int visit(void *context, const struct elf_symbol *symbol)
{
	struct search *search = context;
	const struct method_spec *method = symbol->indirect ? NULL : described(search->spec, symbol->name);

	if (!method)
		return 0;
	if (search->classes->method_count < FUNCTIONS_MAX)
		return add(search, method, symbol);
	search->classes->left_out++;
	return 0;
}

/* .symtab repeats .dynsym, and functions that are the same may share their code: one name each. */
static void drop_repeated(struct classes *classes)
{
	size_t kept = 0;

	for (size_t i = 0; i < classes->method_count; i++) {
		struct class_method *method = &classes->methods[i];

		if (kept && classes->methods[kept - 1].method == method->method)
			free(method->class_name);
		else
			classes->methods[kept++] = *method;
	}
	classes->method_count = kept;
	classes->class_count = kept;
}

static int find_functions(struct elf_file *file, const struct operators_spec *spec, struct classes *result)
{
	struct search search = { .spec = spec, .classes = result };
	int error;

	*result = (struct classes){ 0 };
	error = elf_file_each_function(file, visit, &search);
	if (!error && !result->method_count)
		error = -ENOENT;
	if (error) {
		classes_free(result);
		return error;
	}
	qsort(result->methods, result->method_count, sizeof(*result->methods), class_method_compare);
	drop_repeated(result);
	return 0;
}

/* ---- methods of classes ---- */

/* The object, and the address for the result: whichever comes first. */
#define ARGUMENTS 3

const struct call_spec *operators_method(const struct operators_spec *spec, unsigned int slot)
{
	for (size_t i = 0; i < spec->method_count; i++)
		if (spec->methods[i].slot == slot)
			return &spec->methods[i].call;
	return NULL;
}

static bool is_same_function(const struct class_method *a, const struct class_method *b)
{
	return a->method == b->method && a->slot == b->slot;
}

/* Places the probe of a function, which identifies its class where there are no objects. */
static int place_function(struct elf_file *file, const struct operators_spec *spec, struct class_method *method,
			  struct site *site)
{
	int error = site_choose(file, method->method, spec->base ? ARGUMENTS : 0, site);

	return error || spec->base ? error : elf_file_address(file, site->offset, &method->table);
}

static int place(struct elf_file *file, const struct operators_spec *spec, struct operators *operators)
{
	const struct classes *classes = &operators->classes;
	struct operator_function *function;
	int error;

	operators->functions = calloc(classes->method_count + 1, sizeof(*operators->functions));
	if (!operators->functions)
		return -ENOMEM;
	for (size_t i = 0; i < classes->method_count; i += function->count) {
		function = &operators->functions[operators->function_count];
		*function = (struct operator_function){ .first = i };
		while (i + function->count < classes->method_count &&
		       is_same_function(&classes->methods[i], &classes->methods[i + function->count]))
			function->count++;
		error = place_function(file, spec, &classes->methods[i], &function->site);
		if (error == -ENOMEM)
			return error;
		if (error)
			operators->unplaced++;
		else
			operators->function_count++;
	}
	return 0;
}

static int read_names(struct classes *classes)
{
	char name[CLASS_NAME_LENGTH];
	int error = 0;

	for (size_t i = 0; i < classes->method_count && error != -ENOMEM; i++) {
		char *readable;

		error = type_name_read(classes->methods[i].class_name, name, sizeof(name));
		if (error)
			continue;
		readable = strdup(name);
		if (!readable)
			return -ENOMEM;
		free(classes->methods[i].class_name);
		classes->methods[i].class_name = readable;
	}
	return error == -ENOMEM ? error : 0;
}

static int find_methods(struct elf_file *file, const struct operators_spec *spec, struct classes *classes)
{
	unsigned int slots[DESCRIPTION_METHODS_MAX];
	int error;

	for (size_t i = 0; i < spec->method_count; i++)
		slots[i] = spec->methods[i].slot;
	error = classes_find(file, spec->base, slots, spec->method_count, classes);
	return error ? error : read_names(classes);
}

int operators_find(struct elf_file *file, const struct operators_spec *spec, struct operators *result)
{
	int error;

	*result = (struct operators){ 0 };
	error = spec->base ? find_methods(file, spec, &result->classes) : find_functions(file, spec, &result->classes);
	if (!error)
		error = place(file, spec, result);
	if (elf_file_error(file))
		error = elf_file_error(file);
	if (error)
		operators_free(result);
	return error;
}

void operators_free(struct operators *operators)
{
	classes_free(&operators->classes);
	free(operators->functions);
	*operators = (struct operators){ 0 };
}
