/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for many short-lived structures of one size: what is freed is reused. */
#ifndef XPT_BASE_CORE_POOL_H
#define XPT_BASE_CORE_POOL_H

#include <stddef.h>

struct pool {
	size_t size;		   /* of a structure */
	struct pool_spare *spare;  /* those that have been freed */
	struct pool_chunk *chunks; /* what they are cut from */
};

void pool_init(struct pool *pool, size_t size);
/* All that was taken must have been returned. */
void pool_free(struct pool *pool);
void *pool_take(struct pool *pool); /* zeroed; NULL: no memory */
void pool_give(struct pool *pool, void *structure);

#endif
