/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/operator/operator_classes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct operator_class {
	struct map_node node; /* by process and address */
	struct link link;     /* of its process */
	char *name;
};

struct classes_process {
	struct map_node node; /* by process */
	struct link classes;
};

static struct classes_process *process_find(const struct operator_classes *classes, const struct process *process)
{
	struct map_node *node = map_find(&classes->by_process, process->view.sort_index, 0);

	return node ? container_of(node, struct classes_process, node) : NULL;
}

static struct operator_class *class_find(const struct operator_classes *classes, const struct process *process,
					 __u64 address)
{
	struct map_node *node = map_find(&classes->by_address, process->view.sort_index, address);

	return node ? container_of(node, struct operator_class, node) : NULL;
}

static struct classes_process *process_get(struct operator_classes *classes, const struct process *process)
{
	struct classes_process *of = process_find(classes, process);

	if (of)
		return of;
	of = calloc(1, sizeof(*of));
	if (!of)
		return NULL;
	link_init(&of->classes);
	if (map_add(&classes->by_process, &of->node, process->view.sort_index, 0)) {
		free(of);
		return NULL;
	}
	return of;
}

static void class_free(struct operator_classes *classes, struct operator_class *class)
{
	map_remove(&classes->by_address, &class->node);
	link_remove(&class->link);
	free(class->name);
	free(class);
}

static void process_free(struct operator_classes *classes, struct classes_process *of)
{
	struct link *link, *following;

	link_each(link, following, &of->classes) class_free(classes, container_of(link, struct operator_class, link));
	map_remove(&classes->by_process, &of->node);
	free(of);
}

void operator_classes_free(struct operator_classes *classes)
{
	for (size_t i = 0; classes->by_process.count && i < (size_t)1 << classes->by_process.bits; i++) {
		while (classes->by_process.buckets[i])
			process_free(classes,
				     container_of(classes->by_process.buckets[i], struct classes_process, node));
	}
	map_free(&classes->by_address);
	map_free(&classes->by_process);
}

static int class_create(struct operator_classes *classes, const struct process *process, __u64 address, char *name)
{
	struct classes_process *of = process_get(classes, process);
	struct operator_class *class = of ? calloc(1, sizeof(*class)) : NULL;

	if (!class)
		return -ENOMEM;
	if (map_add(&classes->by_address, &class->node, process->view.sort_index, address)) {
		free(class);
		return -ENOMEM;
	}
	link_append(&of->classes, &class->link);
	class->name = name;
	return 0;
}

int operator_classes_add(struct operator_classes *classes, const struct process *process, __u64 address,
			 const char *text, size_t length)
{
	struct operator_class *class = class_find(classes, process, address);
	char *name;
	int error;

	if (!class && classes->by_address.count >= OPERATOR_CLASSES_MAX)
		return 0;
	name = strndup(text, length < OPERATOR_CLASS_NAME_MAX ? length : OPERATOR_CLASS_NAME_MAX);
	if (!name)
		return -ENOMEM;
	if (class) {
		free(class->name);
		class->name = name;
		return 0;
	}
	error = class_create(classes, process, address, name);
	if (error)
		free(name);
	return error;
}

const char *operator_classes_find(const struct operator_classes *classes, const struct process *process, __u64 address)
{
	const struct operator_class *class = class_find(classes, process, address);

	return class ? class->name : NULL;
}

void operator_classes_drop(struct operator_classes *classes, const struct process *process)
{
	struct classes_process *of = process_find(classes, process);

	if (of)
		process_free(classes, of);
}

void operator_class_type(const char *name, char *type, size_t size)
{
	size_t begin = 0, end = 0, depth = 0, length = strlen(name);

	for (size_t i = 0; i < length; i++) {
		const char c = name[i];

		if (c == '<' || c == '(') {
			depth++;
		} else if (c == '>' || c == ')') {
			depth -= depth > 0;
		} else if (!depth && c == ':' && i + 1 < length && name[i + 1] == ':') {
			begin = end = i + 2;
			i++;
		} else if (!depth) {
			end = i + 1;
		}
	}
	if (end <= begin) { /* nothing but arguments: as it is */
		begin = 0;
		end = length;
	}
	length = end - begin < size - 1 ? end - begin : size - 1;
	memcpy(type, name + begin, length);
	type[length] = '\0';
}
