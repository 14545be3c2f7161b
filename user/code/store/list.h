/* SPDX-License-Identifier: BSD-2-Clause */
/* A list of loaded objects that owns all that it points to. Used by one thread at a time. */
#ifndef XPT_CODE_STORE_LIST_H
#define XPT_CODE_STORE_LIST_H

#include <xputrace/codeobj.h>

#include "code/format/object.h"

struct code_list_block;

struct code_list {
	struct xpt_codeobj_list list; /* for the caller */
	struct xpt_codeobj **objects; /* the same as list.objects */
	struct code_list_block *blocks;
	size_t room; /* bytes that may still be taken */
};

/* limit: bytes that it may take in all. NULL: no memory. */
struct code_list *code_list_new(size_t limit);
void code_list_free(struct code_list *list); /* NULL is allowed */

/* Zeroed room for count things of a size, as long as the list lives. NULL: no memory, or beyond the limit. */
void *code_list_room(struct code_list *list, size_t count, size_t size);
/* A terminated copy; NULL as above. */
char *code_list_text(struct code_list *list, const char *bytes, size_t length);
/* An entry of which nothing is known yet, at the end. NULL as above. */
struct xpt_codeobj *code_list_add(struct code_list *list);
/* Copies the contents of an object: kind, machine, name, error, functions and parts. 0 or -ENOMEM. */
int code_list_contents(struct code_list *list, const struct code_contents *contents, struct xpt_codeobj *object);

#endif
