/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/operators.h"

#include <errno.h>
#include <stdlib.h>

/* The object, and where the result goes: whichever comes first. */
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

static int place(struct elf_file *file, struct operators *operators)
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
		error = site_choose(file, classes->methods[i].method, ARGUMENTS, &function->site);
		if (error == -ENOMEM)
			return error;
		if (error)
			operators->unplaced++;
		else
			operators->function_count++;
	}
	return 0;
}

int operators_find(struct elf_file *file, const struct operators_spec *spec, struct operators *result)
{
	unsigned int slots[DESCRIPTION_METHODS_MAX];
	int error;

	*result = (struct operators){ 0 };
	for (size_t i = 0; i < spec->method_count; i++)
		slots[i] = spec->methods[i].slot;
	error = classes_find(file, spec->base, slots, spec->method_count, &result->classes);
	if (!error)
		error = place(file, result);
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
