/* SPDX-License-Identifier: BSD-2-Clause */
/* SHA-256 of bytes that come in pieces, as hexadecimal text: what objects are known by. */
#ifndef XPT_CODE_STORE_HASH_H
#define XPT_CODE_STORE_HASH_H

#include <stdbool.h>
#include <stddef.h>

#define CODE_HASH_SIZE 65 /* 64 digits in lower case, terminated */

struct code_hash;

/* -ENOMEM. The caller ends it with code_hash_end() or code_hash_free(). */
int code_hash_begin(struct code_hash **result);
/* A failure is returned at the end. */
void code_hash_add(struct code_hash *hash, const void *bytes, size_t length);
/* Fills text and frees the hash, also after an error: -EIO, the library for it has failed; text is "" then. */
int code_hash_end(struct code_hash *hash, char text[CODE_HASH_SIZE]);
void code_hash_free(struct code_hash *hash); /* NULL is allowed */

/* All at once. 0, -ENOMEM, -EIO; text is "" after an error. */
int code_hash_bytes(const void *bytes, size_t length, char text[CODE_HASH_SIZE]);
/* Does text look like one? */
bool code_hash_valid(const char *text);

#endif
