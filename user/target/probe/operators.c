/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/probe/operators.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/probe/operator_functions.h"
#include "target/elf/type_name.h"

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
	error = spec->base ? find_methods(file, spec, &result->classes) :
			     operator_functions_find(file, spec, &result->classes);
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
