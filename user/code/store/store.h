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
#include <xputrace/codeobj.h>

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

/*
 * Where the bytes of an object came from, as ROCm writes it: "file://PATH#offset=4096&size=8192", or
 * "memory://PID#offset=0x7f00&size=8192". In a path all but letters, digits and /_.~- are %XX in upper case.
 */

/* Append one; text keeps an error. size 0: the file up to its end; with offset 0 as well, it is the whole file. */
void code_uri_file(struct text *text, const char *path, __u64 offset, __u64 size);
void code_uri_memory(struct text *text, __u32 pid, __u64 address, __u64 size);

struct code_uri {
	char *path; /* decoded, owned; NULL: in memory */
	__u32 pid;
	__u64 offset; /* in the file, or address; 0: unknown */
	__u64 size;   /* 0: unknown */
};

/* 0, -ENOMEM, or -EINVAL: it is none, or its path has a 0 byte. Numbers are decimal or hexadecimal. */
int code_uri_parse(const char *text, struct code_uri *uri);
void code_uri_free(struct code_uri *uri); /* leaves it zeroed */

/* A list of loaded objects that owns all that it points to. Used by one thread at a time. */

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
