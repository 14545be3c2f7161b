/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/stream/objects.h"

#define SYMBOL_NAME_MAX 1024 /* bytes kept */

struct symbol {
	struct map_node node; /* by the sort index of the process, and address */
	struct link link;
	struct link of_process;
	char *name;
};

void symbols_init(struct symbols *symbols)
{
	*symbols = (struct symbols){};
	link_init(&symbols->all);
}

static void symbol_drop(struct symbols *symbols, struct symbol *symbol)
{
	map_remove(&symbols->map, &symbol->node);
	link_remove(&symbol->link);
	link_remove(&symbol->of_process);
	free(symbol->name);
	free(symbol);
}

void symbols_free(struct symbols *symbols)
{
	struct link *link, *following;

	link_each(link, following, &symbols->all) symbol_drop(symbols, container_of(link, struct symbol, link));
	map_free(&symbols->map);
}

static struct symbol *symbol_add(struct symbols *symbols, struct process *process, __u64 address)
{
	struct symbol *symbol = calloc(1, sizeof(*symbol));

	if (!symbol || map_add(&symbols->map, &symbol->node, process->view.sort_index, address)) {
		free(symbol);
		return NULL;
	}
	link_append(&symbols->all, &symbol->link);
	link_append(&process->symbols, &symbol->of_process);
	return symbol;
}

int symbols_give(struct symbols *symbols, struct process *process, __u64 address, const char *name)
{
	struct map_node *node = map_find(&symbols->map, process->view.sort_index, address);
	struct symbol *symbol;
	char *copy;

	if (!node && symbols->map.count >= MODEL_SYMBOLS_MAX)
		return -ENOSPC;
	copy = strndup(name, SYMBOL_NAME_MAX);
	if (!copy)
		return -ENOMEM;
	symbol = node ? container_of(node, struct symbol, node) : symbol_add(symbols, process, address);
	if (!symbol) {
		free(copy);
		return -ENOMEM;
	}
	free(symbol->name);
	symbol->name = copy;
	return 0;
}

const char *symbols_find(const struct symbols *symbols, const struct process *process, __u64 address)
{
	struct map_node *node = map_find(&symbols->map, process->view.sort_index, address);

	return node ? container_of(node, struct symbol, node)->name : NULL;
}

void symbols_drop_process(struct symbols *symbols, struct process *process)
{
	struct link *link, *following;

	link_each(link, following, &process->symbols)
		symbol_drop(symbols, container_of(link, struct symbol, of_process));
}
