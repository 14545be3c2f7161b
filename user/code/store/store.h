/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A folder of code objects, each a file that is named by its hash and written once, whole or not at all, and an index of
 * them. Files have mode 0600. A store is used by one thread at a time.
 */
#ifndef XPT_CODE_STORE_STORE_H
#define XPT_CODE_STORE_STORE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/core/log.h"
#include "base/core/text.h"
#include "code/format/object.h"

/* ---- SHA-256 of bytes that come in pieces, as hexadecimal text: what objects are known by ---- */

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

/* ---- the folder ---- */

#define CODE_STORE_NAME_SIZE (CODE_HASH_SIZE + 8)
#define CODE_STORE_INDEX "index.json"

struct code_store;

/*
 * Makes the folder when it is missing, and refuses as folder_open(); owner as there. -EEXIST: its index is of something else.
 * log is copied.
 */
int code_store_open(const struct log *log, const char *path, uid_t uid, gid_t gid, struct code_store **result);
void code_store_close(struct code_store *store); /* NULL is allowed */

/*
 * Writes an object unless it is there, also from an earlier time: a regular file of that name and size. name gets what it is
 * called in the folder. 0, or what is the file system's; -EINVAL: sha256 is none; -EEXIST: something else has its name. After an
 * error nothing of it is there, and the log knows why.
 */
int code_store_put(struct code_store *store, enum code_kind kind, const char *sha256, const void *bytes, __u64 size,
		   char name[CODE_STORE_NAME_SIZE]);
/*
 * The same of size bytes at offset of a file that can be sought in, without a change of its position. -ESTALE: these
 * are not the bytes of sha256, any more.
 */
int code_store_copy(struct code_store *store, enum code_kind kind, const char *sha256, int descriptor, __u64 offset,
		    __u64 size, char name[CODE_STORE_NAME_SIZE]);
/* Replaces the index as a whole. text->error is an error, too. */
int code_store_index(struct code_store *store, const struct text *text);

/* "<sha256>.<extension of the kind>". */
void code_store_name(enum code_kind kind, const char *sha256, char name[CODE_STORE_NAME_SIZE]);
/* The kind of the extension of a file's name. */
enum code_kind code_store_kind(const char *name);
/* Is it the name of an object with this hash? It may have the extension of another kind. */
bool code_store_is_name(const char *name, const char *sha256);

#endif
