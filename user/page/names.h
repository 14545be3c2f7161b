/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and threads of a page: each once, and a number for it. */
#ifndef XPT_PAGE_NAMES_H
#define XPT_PAGE_NAMES_H

#include <linux/types.h>
#include <stddef.h>

#include "base/core/hashmap.h"
#include "base/core/text.h"

#define PAGE_NAMES_MAX (1u << 18) /* further ones are the name 0, "" */
#define PAGE_THREADS_MAX 65536	  /* further ones are the thread 0, "(others)" */

struct page_names {
	struct map names, threads;
	struct page_name **all_names;
	struct page_thread **all_threads;
	size_t name_count, thread_count;
	int error; /* -ENOMEM: the page cannot be written */
};

void page_names_init(struct page_names *names);
void page_names_free(struct page_names *names);

__u32 page_name(struct page_names *names, const char *text); /* NULL: "" */
__u32 page_thread(struct page_names *names, __u32 tgid, __u32 tid);
/* What the thread is called now; tid 0: the process. */
void page_thread_named(struct page_names *names, __u32 tgid, __u32 tid, const char *name);

/* Appends the members "names" and "threads". */
void page_names_add(struct text *text, struct page_names *names);

#endif
