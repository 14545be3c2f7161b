/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/process/objects.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/core/text.h"

#define LENGTH_MAX (1u << 20) /* of a string; models have names of some hundred bytes */
#define LOCAL_MAX 15	      /* bytes of a string that lie in itself */

/* std::string of libstdc++. */
struct library_string {
	__u64 text; /* its own local, or memory of capacity + 1 bytes */
	__u64 length;
	union {
		char local[LOCAL_MAX + 1];
		__u64 capacity;
	};
};

struct library_node {
	__u64 index;
	struct library_string name, type, provider;
};

/* A process being read. */
struct reading {
	const struct node_layout *layout;
	pid_t pid;
	__u64 object, table;
};

/* Reads all parts or fails. */
static int read_parts(pid_t pid, const struct iovec *into, const struct iovec *from, unsigned int count)
{
	ssize_t wanted = 0, got = process_vm_readv(pid, into, count, from, count, 0);

	if (got < 0)
		return -errno;
	for (unsigned int i = 0; i < count; i++)
		wanted += (ssize_t)into[i].iov_len;
	return got == wanted ? 0 : -EFAULT;
}

/* An address of another process is no pointer here. */
static struct iovec part_from(__u64 address, size_t length)
{
	struct iovec part = { .iov_len = length };

	memcpy(&part.iov_base, &address, sizeof(address));
	return part;
}

/* Of user space, without tags, and aligned as allocators return it. */
static bool is_pointer(__u64 address)
{
	return address && !(address & 7) && address < 1ull << 56;
}

static int read_word(pid_t pid, __u64 address, __u64 *word)
{
	const struct iovec into = { word, sizeof(*word) }, from = part_from(address, sizeof(*word));

	return read_parts(pid, &into, &from, 1);
}

static int read_pointer(pid_t pid, __u64 address, __u64 *pointer)
{
	int error = read_word(pid, address, pointer);

	if (!error && !is_pointer(*pointer))
		error = -EPROTO;
	return error;
}

static int read_library_node(const struct reading *reading, __u64 address, struct library_node *node)
{
	const struct node_layout *layout = reading->layout;
	const struct iovec into[] = {
		{ &node->index, sizeof(node->index) },
		{ &node->name, sizeof(node->name) },
		{ &node->type, sizeof(node->type) },
		{ &node->provider, sizeof(node->provider) },
	};
	const struct iovec from[] = {
		part_from(address + layout->index, sizeof(node->index)),
		part_from(address + layout->name, sizeof(node->name)),
		part_from(address + layout->type, sizeof(node->type)),
		part_from(address + layout->provider, sizeof(node->provider)),
	};

	return read_parts(reading->pid, into, from, sizeof(into) / sizeof(into[0]));
}

/* The first room bytes of the text at most, and the terminator behind all of it. string: what is at address. */
static int read_text(pid_t pid, __u64 address, const struct library_string *string, char *text, size_t room)
{
	size_t part = string->length < room ? (size_t)string->length : room;
	char end;
	const struct iovec into[] = { { text, part }, { &end, 1 } };
	int error;

	if (string->text == address + offsetof(struct library_string, local)) {
		if (string->length > LOCAL_MAX || string->local[string->length])
			return -EPROTO;
		memcpy(text, string->local, part);
		return 0;
	}
	/* What is shorter than that lies in the string itself. */
	if (!is_pointer(string->text) || string->capacity <= LOCAL_MAX || string->capacity < string->length ||
	    string->length > LENGTH_MAX)
		return -EPROTO;
	const struct iovec from[] = { part_from(string->text, part), part_from(string->text + string->length, 1) };

	error = read_parts(pid, into, from, 2);
	if (!error && end)
		error = -EPROTO;
	return error;
}

/* text has room bytes; what does not fit is cut off. */
static int take_string(pid_t pid, __u64 address, const struct library_string *string, char *text, size_t room)
{
	int error = read_text(pid, address, string, text, room);
	size_t length;

	if (error)
		return error;
	length = text_cut(text, string->length < room ? (size_t)string->length : room, room - 1);
	memset(text + length, 0, room - length);
	return text_is_plain(text, length) ? 0 : -EPROTO;
}

/* A word of letters, digits and what joins them: kernels that providers make of several are named after their model. */
static bool is_identifier(const char *text)
{
	static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	static const char joining[] = "0123456789.:-";

	if (!*text || !strchr(first, *text))
		return false;
	for (; *text; text++)
		if (!strchr(first, *text) && !strchr(joining, *text))
			return false;
	return true;
}

static bool is_node(const struct node_layout *layout, const struct library_node *found,
		    const struct operator_node *node)
{
	return found->index <= INT_MAX && found->type.length <= OPERATOR_NODE_TYPE_MAX && is_identifier(node->type) &&
	       found->provider.length <= OPERATOR_NODE_PROVIDER_MAX && is_identifier(node->provider) &&
	       !fnmatch(layout->providers, node->provider, 0);
}

static int read_node(const struct reading *reading, struct operator_node *node)
{
	const struct node_layout *layout = reading->layout;
	__u64 address = reading->object, first;
	struct library_node found;
	int error = read_word(reading->pid, address, &first);

	if (!error && first != reading->table)
		return -ESTALE;
	for (size_t i = 0; i < layout->through_count && !error; i++)
		error = read_pointer(reading->pid, address + layout->through[i], &address);
	if (!error)
		error = read_library_node(reading, address, &found);
	if (!error)
		error = take_string(reading->pid, address + layout->name, &found.name, node->name, sizeof(node->name));
	if (!error)
		error = take_string(reading->pid, address + layout->type, &found.type, node->type, sizeof(node->type));
	if (!error)
		error = take_string(reading->pid, address + layout->provider, &found.provider, node->provider,
				    sizeof(node->provider));
	if (error)
		return error;
	node->index = (__s64)found.index;
	return is_node(layout, &found, node) ? 0 : -EPROTO;
}

static int read_twice(const struct reading *reading, struct operator_node *node)
{
	struct operator_node once, again;
	int error = read_node(reading, &once) ?: read_node(reading, &again);

	if (error)
		return error;
	if (once.index != again.index || memcmp(once.name, again.name, sizeof(once.name)) != 0 ||
	    memcmp(once.type, again.type, sizeof(once.type)) != 0 ||
	    memcmp(once.provider, again.provider, sizeof(once.provider)) != 0)
		return -EAGAIN;
	*node = once;
	return 0;
}

int object_node_read(const struct operators_spec *spec, pid_t pid, __u64 object, __u64 table,
		     struct operator_node *node)
{
	int error = is_pointer(object) ? -EPROTO : -ESTALE;

	for (size_t i = 0; i < spec->node_count && (error == -EPROTO || error == -EFAULT); i++)
		error = read_twice(&(struct reading){ &spec->nodes[i], pid, object, table }, node);
	return error;
}

/* ---- names ---- */

#define PAGE 4096
#define COUNTED_HEAD 24	  /* bytes in front of the text of a string in the old form: length, capacity, owners */
#define COUNTED_MAX 65536 /* bytes that its capacity may have here */
#define OWNERS_MAX (1 << 20)

/* The begin of an object, as far as it is mapped, and the name that was found. */
struct search {
	pid_t pid;
	__u64 object;
	size_t length;
	char *text; /* OBJECT_NAME_MAX + 1 bytes */
	unsigned char bytes[DESCRIPTION_WITHIN_MAX + sizeof(struct library_string)];
};

/* In parts that end with pages: what is behind the end of a mapping fails by itself. */
static void read_object(struct search *search, size_t length)
{
	while (search->length < length) {
		__u64 address = search->object + search->length;
		size_t part = PAGE - address % PAGE;
		const struct iovec into = { search->bytes + search->length,
					    part < length - search->length ? part : length - search->length };
		const struct iovec from = part_from(address, into.iov_len);

		if (read_parts(search->pid, &into, &from, 1))
			return;
		search->length += into.iov_len;
	}
}

/* The string at an offset, of the form since GCC 5. Its length; -EPROTO: there is none; -EILSEQ: there is one that can be no name. */
static ssize_t take_new_string(struct search *search, size_t offset)
{
	__u64 address = search->object + offset;
	struct library_string string;
	int error;

	if (offset + sizeof(string) > search->length)
		return -EPROTO;
	memcpy(&string, search->bytes + offset, sizeof(string));
	memset(search->text, 0, OBJECT_NAME_MAX + 1);
	error = read_text(search->pid, address, &string, search->text, OBJECT_NAME_MAX);
	if (error)
		return error;
	return string.length <= OBJECT_NAME_MAX && text_is_plain(search->text, string.length) ? (ssize_t)string.length :
												-EILSEQ;
}

/* The same of the form before: a pointer to the text, which others may share. */
static ssize_t take_old_string(struct search *search, size_t offset)
{
	struct {
		__u64 length, capacity;
		__s32 owners, padding;
	} head;
	const struct iovec into = { &head, sizeof(head) };
	__u64 text;
	int error;

	if (offset + sizeof(text) > search->length)
		return -EPROTO;
	memcpy(&text, search->bytes + offset, sizeof(text));
	if (!is_pointer(text))
		return -EPROTO;
	const struct iovec from = part_from(text - COUNTED_HEAD, sizeof(head));

	error = read_parts(search->pid, &into, &from, 1);
	if (!error && (head.length > head.capacity || head.length > OBJECT_NAME_MAX || head.capacity > COUNTED_MAX ||
		       head.owners < -1 || head.owners > OWNERS_MAX))
		error = -EPROTO;
	if (!error) {
		const struct iovec to = { search->text, head.length + 1 }, all = part_from(text, head.length + 1);

		error = read_parts(search->pid, &to, &all, 1);
	}
	if (!error && search->text[head.length])
		error = -EPROTO;
	if (!error && !text_is_plain(search->text, head.length))
		error = -EILSEQ;
	return error ? error : (ssize_t)head.length;
}

static const struct string_form {
	ssize_t (*take)(struct search *search, size_t offset);
	size_t size;
} forms[] = { { take_new_string, sizeof(struct library_string) }, { take_old_string, sizeof(__u64) } };
#define FORMS (sizeof(forms) / sizeof(forms[0]))

bool name_way_fits(const struct name_way *way, const char *name)
{
	for (size_t i = 0; i < way->pattern_count; i++)
		if (!fnmatch(way->patterns[i], name, 0))
			return true;
	return false;
}

static int find_fitting(struct search *search, const struct name_way *way, const struct string_form *form)
{
	for (size_t offset = 0; offset < way->within && offset < search->length; offset += 8)
		if (form->take(search, offset) > 0 && name_way_fits(way, search->text))
			return 0;
	return -ENOENT;
}

static bool is_string(ssize_t taken)
{
	return taken >= 0 || taken == -EILSEQ;
}

/* Of count strings side by side, the length of the one that has the name, as form->take(); 0: the way has no such row. */
static ssize_t take_of_row(struct search *search, const struct name_way *way, const struct string_form *form,
			   size_t offset, size_t count)
{
	for (size_t i = 0; i < way->row_count; i++)
		if (way->rows[i].count == count)
			return form->take(search, offset + way->rows[i].number * form->size);
	return 0;
}

/*
 * Exactly as many strings side by side as the way has in a row: what is longer is something else, to its end, and so is a row with an empty string
 * in place of the name. The first one counts: behind the object's end lie others. -EILSEQ: the name is one that no program may have.
 */
static int find_in_row(struct search *search, const struct name_way *way, const struct string_form *form)
{
	for (size_t offset = 0; offset < way->within && offset < search->length; offset += 8) {
		size_t count = 0;
		ssize_t taken;

		while (is_string(form->take(search, offset + count * form->size)))
			count++;
		taken = take_of_row(search, way, form, offset, count);
		if (taken)
			return taken > 0 ? 0 : (int)taken;
		if (count)
			offset += count * form->size - 8;
	}
	return -ENOENT;
}

static int find_at(struct search *search, const struct name_way *way)
{
	__u64 text = 0;

	for (size_t i = 0; i < FORMS && way->kind == NAME_STRING; i++)
		if (forms[i].take(search, way->at) > 0)
			return 0;
	if (way->kind == NAME_STRING || way->at + sizeof(text) > search->length)
		return -ENOENT;
	memcpy(&text, search->bytes + way->at, sizeof(text));
	for (size_t length = 0; length < OBJECT_NAME_MAX; length++) {
		const struct iovec into = { search->text + length, 1 }, from = part_from(text + length, 1);

		if (!text || read_parts(search->pid, &into, &from, 1))
			return -ENOENT;
		if (!search->text[length])
			return is_identifier(search->text) ? 0 : -ENOENT;
	}
	return -ENOENT;
}

static int find_name(struct search *search, const struct name_way *way)
{
	int error = -ENOENT;

	if (way->kind == NAME_STRING || way->kind == NAME_POINTER)
		return find_at(search, way);
	for (size_t i = 0; i < FORMS && error == -ENOENT; i++)
		error = way->kind == NAME_FITS ? find_fitting(search, way, &forms[i]) :
						 find_in_row(search, way, &forms[i]);
	return error;
}

/* name: OBJECT_NAME_MAX + 1 bytes. NULL with errno: nothing of the object can be read. */
static struct search *search_create(pid_t pid, __u64 object, size_t length, char *name)
{
	struct search *search = malloc(sizeof(*search));

	if (!search)
		return NULL;
	search->pid = pid;
	search->object = object;
	search->length = 0;
	search->text = name;
	read_object(search, length);
	if (search->length)
		return search;
	free(search);
	errno = ENOENT;
	return NULL;
}

int object_name_read(const struct name_way *way, pid_t pid, __u64 object, char name[OBJECT_NAME_MAX + 1])
{
	size_t length = way->kind == NAME_FITS || way->kind == NAME_ROW ? way->within : way->at;
	struct search *search;
	int error;

	if (!is_pointer(object) || way->kind == NAME_MAPPED)
		return -ENOENT;
	search = search_create(pid, object, length + sizeof(struct library_string), name);
	if (!search)
		return -errno;
	error = find_name(search, way);
	free(search);
	return error;
}

int object_name_find(pid_t pid, __u64 object, const char *name, struct name_place *place)
{
	char text[OBJECT_NAME_MAX + 1];
	struct search *search;
	int error = -ENOENT;

	if (!is_pointer(object) || !*name)
		return -ENOENT;
	search = search_create(pid, object, OBJECT_PLACE_MAX + sizeof(struct library_string), text);
	if (!search)
		return -errno;
	for (size_t at = 8; at < OBJECT_PLACE_MAX && at < search->length && error; at += 8)
		for (size_t i = 0; i < FORMS && error; i++)
			if (forms[i].take(search, at) > 0 && !strcmp(text, name)) {
				place->at = at;
				memcpy(&place->table, search->bytes, sizeof(place->table));
				error = 0;
			}
	free(search);
	return error;
}
