/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/probe/classes.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"

#define BASES_MAX 64	   /* direct bases of one class */
#define FLAGS_MAX 3	   /* of a class with several: one comes twice, directly or by two ways */
#define VIRTUAL_BASE 1	   /* in the low byte of a base's offset and flags */
#define OFFSET_SHIFT 8	   /* its offset above them */
#define BUCKETS (1u << 17) /* twice CLASSES_MAX */

/* Layout of type_info: its own table, its name; then nothing, one base, or flags, count and bases. */
#define NAME_AT 8
#define BASE_AT 16
#define FLAGS_AT 16
#define BASES_AT 24
#define BASE_SIZE 16

/* A word that holds an address. */
struct word {
	__u64 value, address;
};

/* A class with its type information found. */
struct type {
	__u64 address;
	__s64 offset; /* of the base in its objects */
};

struct finder {
	struct elf_file *file;
	struct word *words; /* sorted by value */
	size_t word_count;
	struct type *types; /* the base first; those derived from one follow it */
	size_t type_count;
	__u32 *buckets; /* index of a type + 1, by its address */
	const unsigned int *slots;
	size_t slot_count;
	size_t base_count; /* of types: the base, once for each type information that it has */
	struct classes *result;
};

/* ---- words ---- */

static int add_word(void *context, __u64 address, __u64 value)
{
	struct finder *finder = context;

	return vec_push(finder->words, finder->word_count, (struct word){ value, address });
}

static int compare_words(const void *left, const void *right)
{
	const struct word *a = left, *b = right;

	if (a->value != b->value)
		return a->value < b->value ? -1 : 1;
	return a->address < b->address ? -1 : a->address > b->address;
}

/* The first word that holds the value or a higher one. */
static size_t first_word(const struct finder *finder, __u64 value)
{
	return vec_first(finder->word_count, i, finder->words[i].value < value);
}

/* ---- types ---- */

static bool is_name(const char *name, size_t length)
{
	static const char others[] = "_$.";

	if (*name == '*')
		name++, length--;
	if (!length || !((*name >= '0' && *name <= '9') || strchr("NSZ", *name)))
		return false;
	for (size_t i = 0; i < length; i++)
		if (!((name[i] >= '0' && name[i] <= '9') || (name[i] >= 'A' && name[i] <= 'Z') ||
		      (name[i] >= 'a' && name[i] <= 'z') || strchr(others, name[i])))
			return false;
	return true;
}

/* Of the type information at this address. False: there is none. */
static bool read_name(const struct finder *finder, __u64 type, char name[CLASS_NAME_LENGTH])
{
	size_t length = 0, part = 64;
	__u64 address;

	if (elf_file_relocated(finder->file, type + NAME_AT, &address))
		return false;
	/* A name may be the last thing in its segment. */
	while (length < CLASS_NAME_LENGTH && part) {
		const char *end;

		part = part < CLASS_NAME_LENGTH - length ? part : CLASS_NAME_LENGTH - length;
		if (elf_file_read(finder->file, address + length, name + length, part)) {
			part /= 2;
			continue;
		}
		end = memchr(name + length, '\0', part);
		if (end)
			return is_name(name, (size_t)(end - name));
		length += part;
	}
	return false;
}

static __u32 bucket_of(__u64 address)
{
	return (__u32)((address * 0x9e3779b97f4a7c15ull) >> 40) & (BUCKETS - 1);
}

/* Once each: type information of a hostile file may go in circles. */
static int add_type(struct finder *finder, __u64 address, __s64 offset)
{
	__u32 bucket = bucket_of(address);

	for (; finder->buckets[bucket]; bucket = (bucket + 1) & (BUCKETS - 1))
		if (finder->types[finder->buckets[bucket] - 1].address == address)
			return 0;
	if (finder->type_count > CLASSES_MAX) {
		finder->result->left_out++;
		return 0;
	}
	if (vec_push(finder->types, finder->type_count, (struct type){ address, offset }))
		return -ENOMEM;
	finder->buckets[bucket] = (__u32)finder->type_count;
	return 0;
}

/* The type of which the word at address is one of several bases; 0: of none. */
static __u64 type_of_base(const struct finder *finder, __u64 address)
{
	char name[CLASS_NAME_LENGTH];
	struct {
		__u32 flags, count;
	} bases;

	for (unsigned int i = 0; i < BASES_MAX && address >= BASES_AT + (__u64)BASE_SIZE * i; i++) {
		__u64 type = address - BASES_AT - (__u64)BASE_SIZE * i;

		/* Data of any kind may lie before: without the flags much of it looks like a count. */
		if (!elf_file_read(finder->file, type + FLAGS_AT, &bases, sizeof(bases)) && bases.flags <= FLAGS_MAX &&
		    bases.count > i && bases.count <= BASES_MAX && read_name(finder, type, name))
			return type;
	}
	return 0;
}

/* The word at address refers to the base; flags and offset follow it. */
static int add_of_several(struct finder *finder, const struct type *base, __u64 type, __u64 address)
{
	__s64 where;

	if (elf_file_read(finder->file, address + 8, &where, sizeof(where)))
		return 0;
	if (!(where & VIRTUAL_BASE))
		return add_type(finder, type, base->offset + (where >> OFFSET_SHIFT));
	finder->result->left_out++;
	return 0;
}

/* ---- virtual tables ---- */

static int add_method(struct finder *finder, const char *name, __u64 table, unsigned int slot, __u64 method)
{
	struct classes *result = finder->result;
	struct class_method *made;

	if (vec_reserve(result->methods, result->method_count))
		return -ENOMEM;
	made = &result->methods[result->method_count];
	*made = (struct class_method){ strdup(name), table, method, slot };
	if (!made->class_name)
		return -ENOMEM;
	result->method_count++;
	return 0;
}

/* What the table has in the slot; 0: no code of this file. */
static __u64 read_slot(const struct finder *finder, __u64 table, unsigned int slot)
{
	__u64 method;

	if (elf_file_relocated(finder->file, table + 8ull * slot, &method) ||
	    !elf_file_is_executable(finder->file, method))
		return 0;
	return method;
}

/* The base's table comes before those of the classes: its type is read first. */
static int read_methods(struct finder *finder, const char *name, __u64 table, bool of_base)
{
	struct classes *result = finder->result;
	int error = 0;

	for (size_t i = 0; i < finder->slot_count && !error; i++) {
		__u64 method = read_slot(finder, table, finder->slots[i]);

		if (of_base)
			result->own[i] = method;
		else if (!method)
			result->abstract++;
		else if (method == result->own[i])
			result->inherited++;
		else
			error = add_method(finder, name, table, finder->slots[i], method);
	}
	return error;
}

/* The word at address, which refers to the type, is in a virtual table. */
static int read_table(struct finder *finder, const struct type *type, __u64 address, bool of_base)
{
	char name[CLASS_NAME_LENGTH];
	__s64 to_top;

	/* An object has a table for each base that is not its first; the one for the base leads back to its begin. */
	if (elf_file_read(finder->file, address - 8, &to_top, sizeof(to_top)) || to_top != -type->offset ||
	    !read_name(finder, type->address, name))
		return 0;
	finder->result->tables += !of_base;
	return read_methods(finder, name, address + 8, of_base);
}

/* Destructors of an abstract class may be missing from its table. */
static bool is_table(const struct finder *finder, __u64 table)
{
	bool is = read_slot(finder, table, 0);

	for (size_t i = 0; i < finder->slot_count && !is; i++)
		is = read_slot(finder, table, finder->slots[i]);
	return is;
}

/* What a word that refers to a type is a part of shows in the words beside it. */
static int read_reference(struct finder *finder, size_t index, __u64 address)
{
	const struct type type = finder->types[index]; /* the array may grow */
	char name[CLASS_NAME_LENGTH];
	__u64 beside;

	if (address < BASE_AT)
		return 0;
	if (!elf_file_relocated(finder->file, address - 8, &beside))
		return read_name(finder, address - BASE_AT, name) ? add_type(finder, address - BASE_AT, type.offset) :
								    0;
	if (elf_file_relocated(finder->file, address + 8, &beside)) {
		__u64 several = type_of_base(finder, address);

		if (several)
			return add_of_several(finder, &type, several, address);
	}
	return is_table(finder, address + 8) ? read_table(finder, &type, address, index < finder->base_count) : 0;
}

/* Each type is looked for once, and each word refers to one: time is bounded by their number. */
static int follow(struct finder *finder)
{
	int error = 0;

	for (size_t i = 0; i < finder->type_count && !error; i++) {
		__u64 address = finder->types[i].address;

		for (size_t j = first_word(finder, address);
		     j < finder->word_count && finder->words[j].value == address && !error; j++)
			error = read_reference(finder, i, finder->words[j].address);
	}
	return error;
}

/* ---- the base ---- */

/* "a::B" is "N1a1BE". */
static int mangle(const char *name, char *mangled, size_t size)
{
	bool nested = strstr(name, "::");
	size_t length = 0, part;

	if (nested)
		mangled[length++] = 'N';
	while (*name) {
		part = strcspn(name, ":");
		if (!part || length + part + 16 > size)
			return -EINVAL;
		length += (size_t)sprintf(mangled + length, "%zu%.*s", part, (int)part, name);
		name += part;
		if (*name && (strncmp(name, "::", 2) || !name[2]))
			return -EINVAL;
		name += *name ? 2 : 0;
	}
	if (nested)
		mangled[length++] = 'E';
	mangled[length] = '\0';
	return length ? 0 : -EINVAL;
}

static int add_base(void *context, __u64 name)
{
	struct finder *finder = context;
	int error = 0;

	for (size_t i = first_word(finder, name); i < finder->word_count && finder->words[i].value == name && !error;
	     i++)
		if (finder->words[i].address >= NAME_AT)
			error = add_type(finder, finder->words[i].address - NAME_AT, 0);
	return error;
}

int class_method_compare(const void *left, const void *right)
{
	const struct class_method *a = left, *b = right;

	if (a->method != b->method)
		return a->method < b->method ? -1 : 1;
	if (a->slot != b->slot)
		return a->slot < b->slot ? -1 : 1;
	return strcmp(a->class_name, b->class_name);
}

static int find(struct finder *finder, const char *base)
{
	char name[CLASS_NAME_LENGTH];
	int error = mangle(base, name, sizeof(name));

	if (!error)
		error = elf_file_each_relocated(finder->file, add_word, finder);
	if (error)
		return error;
	if (finder->word_count)
		qsort(finder->words, finder->word_count, sizeof(*finder->words), compare_words);
	error = elf_file_each_bytes(finder->file, name, strlen(name) + 1, add_base, finder);
	finder->base_count = finder->type_count;
	if (!error && !finder->base_count)
		error = -ENOENT;
	if (!error)
		error = follow(finder);
	finder->result->class_count = finder->type_count - finder->base_count;
	if (finder->result->method_count)
		qsort(finder->result->methods, finder->result->method_count, sizeof(*finder->result->methods),
		      class_method_compare);
	return error;
}

int classes_find(struct elf_file *file, const char *base, const unsigned int *slots, size_t slot_count,
		 struct classes *result)
{
	struct finder finder = { .file = file, .slots = slots, .slot_count = slot_count, .result = result };
	int error = -ENOMEM;

	*result = (struct classes){ 0 };
	finder.buckets = calloc(BUCKETS, sizeof(*finder.buckets));
	result->own = calloc(slot_count + 1, sizeof(*result->own));
	if (finder.buckets && result->own)
		error = find(&finder, base);
	free(finder.buckets);
	free(finder.words);
	free(finder.types);
	if (error)
		classes_free(result);
	return error;
}

void classes_free(struct classes *classes)
{
	for (size_t i = 0; i < classes->method_count; i++)
		free(classes->methods[i].class_name);
	free(classes->methods);
	free(classes->own);
	*classes = (struct classes){ 0 };
}
