/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/pool.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_STRUCTURES 64

struct pool_spare {
	struct pool_spare *next;
};

struct pool_chunk {
	struct pool_chunk *next;
	_Alignas(16) char bytes[];
};

void pool_init(struct pool *pool, size_t size)
{
	*pool = (struct pool){ .size = (size + 15) & ~(size_t)15 };
}

/* Under a sanitizer each structure has memory of its own: else it would not see one that is used after it went back. */
#ifdef __SANITIZE_ADDRESS__
#define POOL_APART 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POOL_APART 1
#endif
#endif

#ifdef POOL_APART

void pool_free(struct pool *pool)
{
	*pool = (struct pool){};
}

void *pool_take(struct pool *pool)
{
	return calloc(1, pool->size);
}

void pool_give(struct pool *pool, void *structure)
{
	(void)pool;
	free(structure);
}

#else

void pool_free(struct pool *pool)
{
	struct pool_chunk *chunk, *next;

	for (chunk = pool->chunks; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	*pool = (struct pool){};
}

static int pool_grow(struct pool *pool)
{
	struct pool_chunk *chunk = malloc(sizeof(*chunk) + CHUNK_STRUCTURES * pool->size);
	size_t i;

	if (!chunk)
		return -1;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	for (i = 0; i < CHUNK_STRUCTURES; i++)
		pool_give(pool, chunk->bytes + i * pool->size);
	return 0;
}

void *pool_take(struct pool *pool)
{
	struct pool_spare *structure;

	if (!pool->spare && pool_grow(pool))
		return NULL;
	structure = pool->spare;
	pool->spare = structure->next;
	return memset(structure, 0, pool->size);
}

void pool_give(struct pool *pool, void *structure)
{
	struct pool_spare *spare = structure;

	spare->next = pool->spare;
	pool->spare = spare;
}

#endif
