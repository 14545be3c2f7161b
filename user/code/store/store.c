/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/store/store.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/text.h"
#include "base/core/vec.h"
#include "base/file/file.h"
#include "base/file/folder.h"

static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_.~-";

void code_uri_file(struct text *text, const char *path, __u64 offset, __u64 size)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t plain;

	text_literal(text, "file://");
	while (*path) {
		plain = strspn(path, unreserved);
		text_bytes(text, path, plain);
		path += plain;
		if (*path) {
			unsigned char byte = *path++;
			char coded[3] = { '%', digits[byte >> 4], digits[byte & 15] };

			text_bytes(text, coded, sizeof(coded));
		}
	}
	if (!offset && !size)
		return;
	text_literal(text, "#offset=");
	text_unsigned(text, offset);
	if (size) {
		text_literal(text, "&size=");
		text_unsigned(text, size);
	}
}

void code_uri_memory(struct text *text, __u32 pid, __u64 address, __u64 size)
{
	text_literal(text, "memory://");
	text_unsigned(text, pid);
	text_literal(text, "#offset=");
	text_hexadecimal(text, address);
	text_literal(text, "&size=");
	text_unsigned(text, size);
}

/* ---- reading ---- */

static bool take(const char **at, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*at, word, length) != 0)
		return false;
	*at += length;
	return true;
}

static bool take_number(const char **at, __u64 *number)
{
	bool hexadecimal = !strncmp(*at, "0x", 2);
	char *end;

	/* No sign, no space, no number of base 8. */
	if (!isxdigit((unsigned char)(*at)[hexadecimal ? 2 : 0]))
		return false;
	errno = 0;
	*number = strtoull(*at, &end, hexadecimal ? 16 : 10);
	if (errno || end == *at)
		return false;
	*at = end;
	return true;
}

static int hexadecimal_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Up to the '#', or the end. */
static int take_path(const char **at, char **path)
{
	size_t length = strcspn(*at, "#");
	const char *end = *at + length;
	char *to = malloc(length + 1);

	*path = to;
	if (!to)
		return -ENOMEM;
	for (; *at < end; ++*at) {
		if (**at == '%') {
			int high = hexadecimal_digit((*at)[1]), low = high < 0 ? -1 : hexadecimal_digit((*at)[2]);

			if (low < 0 || !(high | low))
				return -EINVAL;
			*to++ = (char)(high << 4 | low);
			*at += 2;
		} else {
			*to++ = **at;
		}
	}
	*to = '\0';
	return to == *path ? -EINVAL : 0;
}

static bool take_range(const char *at, struct code_uri *uri)
{
	if (!*at)
		return true;
	if (!take(&at, "#offset=") || !take_number(&at, &uri->offset))
		return false;
	return !*at || (take(&at, "&size=") && take_number(&at, &uri->size) && !*at);
}

int code_uri_parse(const char *text, struct code_uri *uri)
{
	int error = -EINVAL;
	__u64 pid;

	*uri = (struct code_uri){ 0 };
	if (take(&text, "file://")) {
		error = take_path(&text, &uri->path);
	} else if (take(&text, "memory://") && take_number(&text, &pid) && pid && pid <= 0x7fffffff) {
		uri->pid = (__u32)pid;
		error = 0;
	}
	if (!error && !take_range(text, uri))
		error = -EINVAL;
	if (error)
		code_uri_free(uri);
	return error;
}

void code_uri_free(struct code_uri *uri)
{
	free(uri->path);
	*uri = (struct code_uri){ 0 };
}

#define BLOCK_BYTES (1 << 20)
#define DIGEST_BYTES ((CODE_HASH_SIZE - 1) / 2)

/* ---- hashes ---- */

struct code_hash {
	EVP_MD_CTX *context;
	bool failed;
};

void code_hash_free(struct code_hash *hash)
{
	if (!hash)
		return;
	EVP_MD_CTX_free(hash->context);
	free(hash);
}

int code_hash_begin(struct code_hash **result)
{
	struct code_hash *hash = calloc(1, sizeof(*hash));

	if (!hash)
		return -ENOMEM;
	hash->context = EVP_MD_CTX_new();
	if (!hash->context) {
		code_hash_free(hash);
		return -ENOMEM;
	}
	hash->failed = !EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL);
	*result = hash;
	return 0;
}

void code_hash_add(struct code_hash *hash, const void *bytes, size_t length)
{
	if (!hash->failed)
		hash->failed = !EVP_DigestUpdate(hash->context, bytes, length);
}

int code_hash_end(struct code_hash *hash, char text[CODE_HASH_SIZE])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int length = 0;
	bool good = !hash->failed && EVP_DigestFinal_ex(hash->context, digest, &length) && length == DIGEST_BYTES;

	code_hash_free(hash);
	text[0] = '\0';
	if (!good)
		return -EIO;
	bytes_to_digits(digest, DIGEST_BYTES, text);
	return 0;
}

int code_hash_bytes(const void *bytes, size_t length, char text[CODE_HASH_SIZE])
{
	struct code_hash *hash;
	int error = code_hash_begin(&hash);

	text[0] = '\0';
	if (error)
		return error;
	code_hash_add(hash, bytes, length);
	return code_hash_end(hash, text);
}

bool code_hash_valid(const char *text)
{
	return strlen(text) == CODE_HASH_SIZE - 1 && strspn(text, "0123456789abcdef") == CODE_HASH_SIZE - 1;
}

/* ---- the folder ---- */

struct code_store {
	struct folder *folder;
	struct log log;
};

static const char *const extensions[CODE_KINDS] = {
	[CODE_UNKNOWN] = "bin",	  [CODE_ELF] = "elf",	    [CODE_HSACO] = "hsaco", [CODE_CUBIN] = "cubin",
	[CODE_FATBIN] = "fatbin", [CODE_BUNDLE] = "bundle", [CODE_PTX] = "ptx",	    [CODE_SPIRV] = "spv",
	[CODE_BITCODE] = "bc",	  [CODE_OPENCL] = "cl",	    [CODE_NEFF] = "neff",   [CODE_QPC] = "qpc",
	[CODE_ONNX] = "onnx",	  [CODE_GGUF] = "gguf",	    [CODE_HLO] = "hlo",	    [CODE_MLIR] = "mlir",
};

void code_store_name(enum code_kind kind, const char *sha256, char name[CODE_STORE_NAME_SIZE])
{
	snprintf(name, CODE_STORE_NAME_SIZE, "%s.%s", sha256,
		 extensions[(unsigned int)kind < CODE_KINDS ? kind : CODE_UNKNOWN]);
}

enum code_kind code_store_kind(const char *name)
{
	const char *dot = strrchr(name, '.');

	for (int kind = 0; dot && kind < CODE_KINDS; kind++) {
		if (!strcmp(dot + 1, extensions[kind]))
			return (enum code_kind)kind;
	}
	return CODE_UNKNOWN;
}

bool code_store_is_name(const char *name, const char *sha256)
{
	char own[CODE_STORE_NAME_SIZE];

	for (int kind = 0; kind < CODE_KINDS; kind++) {
		code_store_name((enum code_kind)kind, sha256, own);
		if (!strcmp(name, own))
			return true;
	}
	return false;
}

/*
 * An index that is replaced is one that a capture has written: the directory may be a user's with a file of that name.
 * What cannot be read is for folder_replace() to judge.
 */
static int check_index(const struct code_store *store)
{
	static const char begin[] = "{\"schema\"";
	char path[PATH_MAX], found[sizeof(begin) - 1];
	int descriptor;
	ssize_t got;

	snprintf(path, sizeof(path), "%s/" CODE_STORE_INDEX, folder_path(store->folder));
	descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (descriptor < 0)
		return 0;
	got = read(descriptor, found, sizeof(found));
	close(descriptor);
	if (got < 0 || ((size_t)got == sizeof(found) && !memcmp(found, begin, sizeof(found))))
		return 0;
	log_error(&store->log,
		  "%s: has an " CODE_STORE_INDEX " of something else: name another directory, or move it away",
		  folder_path(store->folder));
	return -EEXIST;
}

int code_store_open(const struct log *log, const char *path, uid_t uid, gid_t gid, struct code_store **result)
{
	struct code_store *store = calloc(1, sizeof(*store));
	int error;

	if (!store)
		return -ENOMEM;
	store->log = *log;
	error = folder_open(log, path, uid, gid, &store->folder);
	if (!error)
		error = check_index(store);
	if (error)
		code_store_close(store);
	else
		*result = store;
	return error;
}

void code_store_close(struct code_store *store)
{
	if (!store)
		return;
	folder_close(store->folder);
	free(store);
}

/* ---- an object ---- */

/* Where the bytes of an object are. */
struct source {
	const void *bytes; /* NULL: in the file */
	int descriptor;
	__u64 offset, size;
	const char *sha256;
};

static int copy_blocks(const struct source *source, int to, struct code_hash *hash, char *block)
{
	__u64 done = 0;
	size_t got;
	int error = 0;

	while (!error && done < source->size) {
		size_t length = source->size - done < BLOCK_BYTES ? source->size - done : BLOCK_BYTES;

		error = file_read_at(source->descriptor, block, length, source->offset + done, &got);
		if (!error && got < length)
			error = -ESTALE; /* the file's end */
		if (!error) {
			code_hash_add(hash, block, length);
			error = file_write(to, block, length);
		}
		done += length;
	}
	return error;
}

/* Others may write into the file during the copy. */
static int copy_file(const struct source *source, int to)
{
	char found[CODE_HASH_SIZE], *block = malloc(BLOCK_BYTES);
	struct code_hash *hash = NULL;
	int error = block ? code_hash_begin(&hash) : -ENOMEM;

	if (!error)
		error = copy_blocks(source, to, hash, block);
	free(block);
	if (error) {
		code_hash_free(hash);
		return error;
	}
	error = code_hash_end(hash, found);
	return error ?: strcmp(found, source->sha256) ? -ESTALE : 0;
}

static int write_object(struct code_store *store, const struct source *source, const char *name)
{
	struct folder_file *file;
	int error = folder_file_begin(store->folder, &file), to;

	if (error)
		return error;
	to = folder_file_descriptor(file);
	error = source->bytes ? file_write(to, source->bytes, source->size) : copy_file(source, to);
	if (!error)
		return folder_file_commit_only(file, name);
	folder_file_abandon(file);
	if (error != -ESTALE)
		log_error(&store->log, "%s: '%s' cannot be written: %s", folder_path(store->folder), name,
			  strerror(-error));
	return error;
}

static int put(struct code_store *store, enum code_kind kind, const struct source *source,
	       char name[CODE_STORE_NAME_SIZE])
{
	int found, error;

	if (!code_hash_valid(source->sha256))
		return -EINVAL;
	code_store_name(kind, source->sha256, name);
	found = folder_has_file(store->folder, name, source->size);
	error = found ? 0 : write_object(store, source, name);
	/* Created by another process in between. */
	if (error == -EEXIST)
		found = folder_has_file(store->folder, name, source->size) ?: -EEXIST;
	else if (error)
		return error;
	if (found >= 0)
		return 0;
	log_error(&store->log, "%s: '%s' is something else: %s", folder_path(store->folder), name, strerror(-found));
	return found;
}

int code_store_put(struct code_store *store, enum code_kind kind, const char *sha256, const void *bytes, __u64 size,
		   char name[CODE_STORE_NAME_SIZE])
{
	const struct source source = { .bytes = bytes ?: "", .size = size, .sha256 = sha256 };

	return put(store, kind, &source, name);
}

int code_store_copy(struct code_store *store, enum code_kind kind, const char *sha256, int descriptor, __u64 offset,
		    __u64 size, char name[CODE_STORE_NAME_SIZE])
{
	const struct source source = { .descriptor = descriptor, .offset = offset, .size = size, .sha256 = sha256 };

	return put(store, kind, &source, name);
}

int code_store_index(struct code_store *store, const struct text *text)
{
	if (text->error) {
		log_error(&store->log, "%s: " CODE_STORE_INDEX " cannot be written: %s", folder_path(store->folder),
			  strerror(-text->error));
		return text->error;
	}
	return folder_replace(store->folder, CODE_STORE_INDEX, text->data, text->length);
}

#define LIST_BLOCK_BYTES (64 << 10)

struct code_list_block {
	struct code_list_block *next;
	size_t used, size;
	alignas(max_align_t) char bytes[];
};

struct code_list *code_list_new(size_t limit)
{
	struct code_list *list = calloc(1, sizeof(*list));

	if (!list)
		return NULL;
	list->list.size = sizeof(list->list);
	list->room = limit;
	return list;
}

void code_list_free(struct code_list *list)
{
	struct code_list_block *block, *next;

	if (!list)
		return;
	for (block = list->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	free(list->objects);
	free(list);
}

static bool add_block(struct code_list *list, size_t least)
{
	size_t size = least > LIST_BLOCK_BYTES ? least : LIST_BLOCK_BYTES;
	struct code_list_block *block = size > list->room ? NULL : calloc(1, sizeof(*block) + size);

	if (!block)
		return false;
	list->room -= size;
	block->size = size;
	block->next = list->blocks;
	list->blocks = block;
	return true;
}

void *code_list_room(struct code_list *list, size_t count, size_t size)
{
	struct code_list_block *block;
	size_t bytes;
	void *room;

	if (__builtin_mul_overflow(count, size, &bytes) || bytes > list->room)
		return NULL;
	bytes = (bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	block = list->blocks;
	if ((!block || bytes > block->size - block->used) && !add_block(list, bytes))
		return NULL;
	block = list->blocks;
	room = block->bytes + block->used;
	block->used += bytes;
	return room;
}

char *code_list_text(struct code_list *list, const char *bytes, size_t length)
{
	char *text = code_list_room(list, length + 1, 1);

	if (text && length)
		memcpy(text, bytes, length);
	return text;
}

struct xpt_codeobj *code_list_add(struct code_list *list)
{
	struct xpt_codeobj *object;

	if (vec_reserve(list->objects, list->list.count))
		return NULL;
	list->list.objects = (const struct xpt_codeobj *const *)list->objects;
	object = code_list_room(list, 1, sizeof(*object));
	if (!object)
		return NULL;
	object->size = sizeof(*object);
	object->function_size = sizeof(*object->functions);
	object->part_size = sizeof(*object->parts);
	object->kind = code_kind_name(CODE_UNKNOWN);
	object->device = -1;
	list->objects[list->list.count++] = object;
	return object;
}

/* ---- contents of an object ---- */

/* false: no memory. NULL stays NULL. */
static bool copy_text(struct code_list *list, const char *text, const char **to)
{
	*to = text ? code_list_text(list, text, strlen(text)) : NULL;
	return !text || *to;
}

static bool copy_functions(struct code_list *list, const struct code_contents *contents, struct xpt_codeobj *object)
{
	struct xpt_codeobj_function *to = code_list_room(list, contents->function_count, sizeof(*to));

	if (!to)
		return false;
	for (size_t i = 0; i < contents->function_count; i++) {
		const struct code_function *from = &contents->functions[i];

		to[i].offset = from->offset;
		to[i].size = from->size;
		to[i].address = from->address;
		to[i].kernel = from->kernel;
		if (!copy_text(list, from->name, &to[i].name))
			return false;
	}
	object->functions = to;
	object->function_count = contents->function_count;
	object->functions_left_out = contents->functions_left_out;
	return true;
}

static bool copy_parts(struct code_list *list, const struct code_contents *contents, struct xpt_codeobj *object)
{
	struct xpt_codeobj_part *to = code_list_room(list, contents->part_count, sizeof(*to));

	if (!to)
		return false;
	for (size_t i = 0; i < contents->part_count; i++) {
		const struct code_part *from = &contents->parts[i];

		to[i].kind = code_kind_name(from->kind);
		to[i].external = from->external;
		to[i].offset = from->offset;
		to[i].length = from->size;
		if (!copy_text(list, from->name, &to[i].name))
			return false;
	}
	object->parts = to;
	object->part_count = contents->part_count;
	return true;
}

int code_list_contents(struct code_list *list, const struct code_contents *contents, struct xpt_codeobj *object)
{
	bool good = copy_text(list, contents->machine, &object->machine) &&
		    copy_text(list, contents->name, &object->name) && copy_text(list, contents->error, &object->error);

	object->kind = code_kind_name(contents->kind);
	return good && copy_functions(list, contents, object) && copy_parts(list, contents, object) ? 0 : -ENOMEM;
}
