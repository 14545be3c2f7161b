/* SPDX-License-Identifier: BSD-2-Clause */
/* Doubly linked lists with links inside their members. */
#ifndef XPT_BASE_CORE_LINK_H
#define XPT_BASE_CORE_LINK_H

#include <stdbool.h>
#include <stddef.h>

/* A list's head, or the link of a member. A link that is in no list points to itself. */
struct link {
	struct link *next, *previous;
};

/* The structure that a link or node is a member of. */
#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

static inline void link_init(struct link *link)
{
	link->next = link->previous = link;
}

static inline bool link_alone(const struct link *link)
{
	return link->next == link;
}

/* Puts link, which is in no list, at the end of the list. */
static inline void link_append(struct link *list, struct link *link)
{
	link->previous = list->previous;
	link->next = list;
	list->previous->next = link;
	list->previous = link;
}

static inline void link_remove(struct link *link)
{
	link->previous->next = link->next;
	link->next->previous = link->previous;
	link_init(link);
}

/* The member of the list that position, one of its links, belongs to; NULL: it is the list's head. */
#define link_member(position, list, type, link) ((position) == (list) ? NULL : container_of(position, type, link))

/*
 * Visits each member of a list, which is not changed meanwhile: item is a pointer to its type, link the name of its link. NULL
 * behind the last one.
 */
#define link_for_each(item, list, link)                                               \
	for (item = link_member((list)->next, list, __typeof__(*(item)), link); item; \
	     item = link_member((item)->link.next, list, __typeof__(*(item)), link))

/* The same, and the one visited may be removed. */
#define link_for_each_safe(item, following, list, link)                                                   \
	for (item = link_member((list)->next, list, __typeof__(*(item)), link);                           \
	     item && (following = link_member((item)->link.next, list, __typeof__(*(item)), link), true); \
	     item = following)

/* The first and the last member of a list, which is not empty. */
#define link_first(list, type, link) container_of((list)->next, type, link)
#define link_last(list, type, link) container_of((list)->previous, type, link)

#endif
