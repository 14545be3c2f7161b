/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/probe/operator_functions.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "target/elf/type_name.h"

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
	if (search->classes->method_count < OPERATOR_FUNCTIONS_MAX)
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

int operator_functions_find(struct elf_file *file, const struct operators_spec *spec, struct classes *result)
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
