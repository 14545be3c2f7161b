/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/operator_node.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <string.h>
#include <sys/uio.h>

#include "base/text.h"

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

/* Of user space, without tags, and aligned as whatever allocators give out. */
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

/* The first room bytes of the text at most, and the terminator behind all of it. string: what stands at address. */
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

static bool is_plain(const char *text, size_t length)
{
	while (length) {
		__u32 character;
		size_t bytes = text_decode(text, length, &character);

		if (!bytes || character < ' ' || (character >= 0x7f && character < 0xa0))
			return false;
		text += bytes;
		length -= bytes;
	}
	return true;
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
	return is_plain(text, length) ? 0 : -EPROTO;
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
	if (found->index > INT_MAX || found->type.length > OPERATOR_NODE_TYPE_MAX || !is_identifier(node->type))
		return false;
	if (!found->provider.length)
		return true;
	return found->provider.length <= OPERATOR_NODE_PROVIDER_MAX && is_identifier(node->provider) &&
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

int operator_node_read(const struct node_layout *layout, pid_t pid, __u64 object, __u64 table,
		       struct operator_node *node)
{
	const struct reading reading = { layout, pid, object, table };
	struct operator_node once, again;
	int error = is_pointer(object) ? read_node(&reading, &once) : -ESTALE;

	if (!error)
		error = read_node(&reading, &again);
	if (error)
		return error;
	if (once.index != again.index || memcmp(once.name, again.name, sizeof(once.name)) != 0 ||
	    memcmp(once.type, again.type, sizeof(once.type)) != 0 ||
	    memcmp(once.provider, again.provider, sizeof(once.provider)) != 0)
		return -EAGAIN;
	*node = once;
	return 0;
}

struct choice {
	const struct operators_spec *spec;
	const struct node_layout *layout; /* so far the first of those that fit */
};

static bool is_for(const struct node_layout *layout, const char *version)
{
	for (size_t i = 0; i < layout->version_count; i++)
		if (!fnmatch(layout->versions[i], version, 0))
			return true;
	return false;
}

static int choose(void *context, const char *version)
{
	struct choice *choice = context;
	const struct operators_spec *spec = choice->spec;

	for (size_t i = 0; i < spec->node_count && &spec->nodes[i] != choice->layout; i++) {
		if (is_for(&spec->nodes[i], version)) {
			choice->layout = &spec->nodes[i];
			break;
		}
	}
	return 0;
}

const struct node_layout *operator_node_layout(struct elf_file *file, const struct operators_spec *spec)
{
	struct choice choice = { .spec = spec };

	(void)elf_file_each_version(file, choose, &choice);
	return choice.layout;
}
