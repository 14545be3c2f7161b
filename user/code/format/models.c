/* SPDX-License-Identifier: BSD-2-Clause */
/* What models call themselves, and the files that belong to them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "code/format/readers.h"

/* Entry points of SPIR-V modules, and functions that have names. */

/* Numbers of the SPIR-V specification. */
#define HEADER_WORDS 5
#define OP_NAME 5
#define OP_MEMORY_MODEL 14
#define OP_ENTRY_POINT 15
#define OP_FUNCTION 54
#define MODEL_GL_COMPUTE 5
#define MODEL_KERNEL 6
#define PHYSICAL32 1
#define PHYSICAL64 2

struct module {
	struct code_reading *reading;
	bool big_endian;
	size_t words;
	char *text; /* room for the longest string of an instruction */
};

/* Names of instructions by the id that they are about. */
struct ids {
	__u32 *ids; /* sorted once all are there */
	size_t count;
};

static __u32 word_at(const struct module *module, size_t index)
{
	__u32 word = code_u32(module->reading->bytes + 4 * index);

	return module->big_endian ? __builtin_bswap32(word) : word;
}

static int compare_ids(const void *left, const void *right)
{
	__u32 a = *(const __u32 *)left, b = *(const __u32 *)right;

	return (a > b) - (a < b);
}

static void sort_ids(struct ids *ids)
{
	if (ids->count)
		qsort(ids->ids, ids->count, sizeof(*ids->ids), compare_ids);
}

static bool has_id(const struct ids *ids, __u32 id)
{
	return ids->count && bsearch(&id, ids->ids, ids->count, sizeof(id), compare_ids);
}

/* The string in words from first up to end; its length. */
static size_t string_at(const struct module *module, size_t first, size_t end)
{
	size_t length = 0;

	for (size_t i = first; i < end; i++) {
		__u32 word = word_at(module, i);

		for (unsigned int byte = 0; byte < 4; byte++) {
			module->text[length] = (char)(word >> 8 * byte);
			if (!module->text[length])
				return length;
			length++;
		}
	}
	return length;
}

static int add_function(struct module *module, size_t first, size_t end, bool kernel)
{
	const struct code_function function = { .kernel = kernel };
	size_t length = string_at(module, first, end);

	return length ? code_add_function(module->reading->contents, module->text, length, &function) : 0;
}

static int set_machine(struct module *module, __u32 addressing)
{
	struct code_contents *contents = module->reading->contents;

	if (contents->machine || (addressing != PHYSICAL32 && addressing != PHYSICAL64))
		return 0;
	contents->machine = strdup(addressing == PHYSICAL64 ? "64-bit" : "32-bit");
	return contents->machine ? 0 : -ENOMEM;
}

/* Calls visit for each instruction, which is count words at index. */
static int each_instruction(struct module *module, struct ids *functions, struct ids *entries,
			    int (*visit)(struct module *module, struct ids *functions, struct ids *entries,
					 size_t index, size_t count))
{
	int error = 0;

	for (size_t i = HEADER_WORDS; i < module->words && !error;) {
		size_t count = word_at(module, i) >> 16;

		if (!count || count > module->words - i)
			return code_set_error(module->reading->contents, "instruction at word %zu lies behind the end",
					      i);
		error = visit(module, functions, entries, i, count);
		i += count;
	}
	return error;
}

static int note_ids(struct module *module, struct ids *functions, struct ids *entries, size_t index, size_t count)
{
	switch (word_at(module, index) & 0xffff) {
	case OP_FUNCTION:
		return count > 2 ? vec_push(functions->ids, functions->count, word_at(module, index + 2)) : 0;
	case OP_ENTRY_POINT:
		return count > 3 ? vec_push(entries->ids, entries->count, word_at(module, index + 2)) : 0;
	case OP_MEMORY_MODEL:
		return count > 1 ? set_machine(module, word_at(module, index + 1)) : 0;
	default:
		return 0;
	}
}

static int add_names(struct module *module, struct ids *functions, struct ids *entries, size_t index, size_t count)
{
	__u32 operation = word_at(module, index) & 0xffff;

	if (operation == OP_ENTRY_POINT && count > 3) {
		__u32 model = word_at(module, index + 1);

		return add_function(module, index + 3, index + count,
				    model == MODEL_KERNEL || model == MODEL_GL_COMPUTE);
	}
	if (operation == OP_NAME && count > 2) {
		__u32 id = word_at(module, index + 1);

		return has_id(functions, id) && !has_id(entries, id) ?
			       add_function(module, index + 2, index + count, false) :
			       0;
	}
	return 0;
}

int code_read_spirv(struct code_reading *reading)
{
	struct module module = { .reading = reading, .words = reading->size / 4 };
	struct ids functions = { 0 }, entries = { 0 };
	int error;

	module.big_endian = reading->bytes[0] == 0x07;
	if (module.words < HEADER_WORDS)
		return code_set_error(reading->contents, "the header is cut off");
	/* An instruction has less than 65536 words. */
	module.text = malloc(4 * (module.words < 65536 ? module.words : 65536));
	error = module.text ? each_instruction(&module, &functions, &entries, note_ids) : -ENOMEM;
	sort_ids(&functions);
	sort_ids(&entries);
	if (!error)
		error = each_instruction(&module, &functions, &entries, add_names);
	free(module.text);
	free(functions.ids);
	free(entries.ids);
	return error;
}

/*
 * ONNX models: messages of protocol buffers. Listed are the name of the graph, and the files in which weights lie
 * outside of the model, each once, with the stretch of it that the model uses. Field numbers are those of onnx.proto.
 */

#define NESTING_MAX 64	   /* of messages */
#define EXTERNAL_MAX 65536 /* tensors with weights outside; more are counted as left out */
#define DIGITS_MAX 20

enum message {
	MESSAGE_NONE,
	MODEL,
	FUNCTION,
	TRAINING,
	GRAPH,
	NODE,
	ATTRIBUTE,
	SPARSE,
	TENSOR,
	ENTRY,
};

enum {
	GRAPH_NAME = 2,
	TENSOR_DATA_LOCATION = 14,
	LOCATION_EXTERNAL = 1,
	ENTRY_KEY = 1,
	ENTRY_VALUE = 2,
};

/* Which fields are messages that are read: only those that lead to tensors. */
static const struct {
	enum message in;
	__u32 field;
	enum message message;
} nested[] = {
	{ MODEL, 7, GRAPH },	   { MODEL, 20, TRAINING },  { MODEL, 25, FUNCTION },	{ TRAINING, 1, GRAPH },
	{ TRAINING, 2, GRAPH },	   { FUNCTION, 7, NODE },    { GRAPH, 1, NODE },	{ GRAPH, 5, TENSOR },
	{ GRAPH, 15, SPARSE },	   { NODE, 5, ATTRIBUTE },   { ATTRIBUTE, 5, TENSOR },	{ ATTRIBUTE, 6, GRAPH },
	{ ATTRIBUTE, 10, TENSOR }, { ATTRIBUTE, 11, GRAPH }, { ATTRIBUTE, 22, SPARSE }, { ATTRIBUTE, 23, SPARSE },
	{ SPARSE, 1, TENSOR },	   { SPARSE, 2, TENSOR },    { TENSOR, 13, ENTRY },
};

struct bytes {
	const unsigned char *at;
	size_t length;
};

/* Weights outside of the model. end 0: up to the end of the file. */
struct external {
	struct bytes location;
	__u64 offset, end;
	size_t order; /* in which it was found */
};

/* Of the current tensor and entry; neither can be in another one. */
struct tensor {
	bool outside;
	struct bytes location, offset, length;
	struct bytes key, value;
};

struct walk {
	struct code_contents *contents;
	const unsigned char *begin;
	struct tensor tensor;
	struct external *external; /* owned */
	size_t count;
	__u64 left_out;
};

struct field {
	__u32 number;
	unsigned int type;
	__u64 value; /* of a varint */
	struct bytes bytes;
};

static bool equal(const struct bytes *bytes, const char *text)
{
	return bytes->length == strlen(text) && !memcmp(bytes->at, text, bytes->length);
}

static bool take(struct bytes *rest, __u64 length)
{
	if (length > rest->length)
		return false;
	rest->at += length;
	rest->length -= length;
	return true;
}

static bool take_varint(struct bytes *rest, __u64 *value)
{
	*value = 0;
	for (unsigned int shift = 0; shift < 64 && rest->length; shift += 7) {
		unsigned char byte = *rest->at;

		*value |= (__u64)(byte & 0x7f) << shift;
		take(rest, 1);
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static bool take_field(struct bytes *rest, struct field *field)
{
	__u64 key;

	if (!take_varint(rest, &key) || key >> 3 > ~0u || !(key >> 3))
		return false;
	field->number = key >> 3;
	field->type = key & 7;
	field->bytes.at = NULL;
	switch (field->type) {
	case 0:
		return take_varint(rest, &field->value);
	case 1:
		return take(rest, 8);
	case 2:
		if (!take_varint(rest, &key))
			return false;
		field->bytes.at = rest->at;
		field->bytes.length = key;
		return take(rest, key);
	case 5:
		return take(rest, 4);
	}
	return false;
}

/* A decimal number; 0 when it is none. */
static __u64 number(const struct bytes *bytes)
{
	__u64 value = 0;

	if (bytes->length > DIGITS_MAX)
		return 0;
	for (size_t i = 0; i < bytes->length; i++)
		if (bytes->at[i] < '0' || bytes->at[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, bytes->at[i] - '0', &value))
			return 0;
	return value;
}

static int end_tensor(struct walk *walk)
{
	const struct tensor *tensor = &walk->tensor;
	struct external *external;
	__u64 length = number(&tensor->length);

	if (!tensor->outside || !tensor->location.length)
		return 0;
	if (walk->count == EXTERNAL_MAX) {
		walk->left_out++;
		return 0;
	}
	if (vec_reserve(walk->external, walk->count))
		return -ENOMEM;
	external = &walk->external[walk->count];
	external->location = tensor->location;
	external->offset = number(&tensor->offset);
	if (!length || __builtin_add_overflow(external->offset, length, &external->end))
		external->end = 0;
	external->order = walk->count++;
	return 0;
}

static void end_entry(struct tensor *tensor)
{
	if (equal(&tensor->key, "location"))
		tensor->location = tensor->value;
	else if (equal(&tensor->key, "offset"))
		tensor->offset = tensor->value;
	else if (equal(&tensor->key, "length"))
		tensor->length = tensor->value;
}

/* A field that is no message. nesting: of the message that it is in. */
static int take_value(struct walk *walk, enum message in, const struct field *field, unsigned int nesting)
{
	struct code_contents *contents = walk->contents;

	if (in == TENSOR && field->number == TENSOR_DATA_LOCATION && field->type == 0)
		walk->tensor.outside = field->value == LOCATION_EXTERNAL;
	if (!field->bytes.at)
		return 0;
	if (in == ENTRY && field->number == ENTRY_KEY)
		walk->tensor.key = field->bytes;
	if (in == ENTRY && field->number == ENTRY_VALUE)
		walk->tensor.value = field->bytes;
	if (in == GRAPH && nesting == 1 && field->number == GRAPH_NAME && field->bytes.length && !contents->name) {
		contents->name = strndup((const char *)field->bytes.at, field->bytes.length);
		return contents->name ? 0 : -ENOMEM;
	}
	return 0;
}

static enum message message_of(enum message in, const struct field *field)
{
	for (size_t i = 0; field->bytes.at && i < sizeof(nested) / sizeof(nested[0]); i++)
		if (nested[i].in == in && nested[i].field == field->number)
			return nested[i].message;
	return MESSAGE_NONE;
}

/* 0, -EBADMSG with the error set, or -ENOMEM. */
static int walk_message(struct walk *walk, enum message message, struct bytes rest, unsigned int nesting)
{
	int error = 0;

	if (nesting > NESTING_MAX) {
		code_set_error(walk->contents, "messages are nested too deep");
		return -EBADMSG;
	}
	if (message == TENSOR)
		memset(&walk->tensor, 0, sizeof(walk->tensor));
	while (rest.length && !error) {
		size_t place = rest.at - walk->begin;
		enum message inner;
		struct field field = { 0 };

		if (!take_field(&rest, &field)) {
			code_set_error(walk->contents, "the field at %zu cannot be read", place);
			return -EBADMSG;
		}
		inner = message_of(message, &field);
		error = inner ? walk_message(walk, inner, field.bytes, nesting + 1) :
				take_value(walk, message, &field, nesting);
	}
	if (!error && message == TENSOR)
		error = end_tensor(walk);
	if (message == ENTRY)
		end_entry(&walk->tensor);
	return error;
}

static int compare_locations(const void *left, const void *right)
{
	const struct external *a = left, *b = right;
	size_t length = a->location.length < b->location.length ? a->location.length : b->location.length;
	int order = memcmp(a->location.at, b->location.at, length);

	if (!order && a->location.length != b->location.length)
		order = a->location.length < b->location.length ? -1 : 1;
	if (!order)
		order = a->order < b->order ? -1 : 1;
	return order;
}

static int compare_orders(const void *left, const void *right)
{
	const struct external *a = left, *b = right;

	return a->order < b->order ? -1 : 1;
}

/* Puts those with the same location together, at the place of the first. How many are left. */
static size_t join(struct external *external, size_t count)
{
	size_t kept = 0;

	qsort(external, count, sizeof(*external), compare_locations);
	for (size_t i = 1; i < count; i++) {
		struct external *last = &external[kept], *next = &external[i];

		if (last->location.length != next->location.length ||
		    memcmp(last->location.at, next->location.at, last->location.length) != 0) {
			external[++kept] = *next;
			continue;
		}
		last->offset = next->offset < last->offset ? next->offset : last->offset;
		last->end = !last->end || !next->end ? 0 : next->end > last->end ? next->end : last->end;
	}
	qsort(external, kept + 1, sizeof(*external), compare_orders);
	return kept + 1;
}

int code_read_onnx(struct code_reading *reading)
{
	struct walk walk = { .contents = reading->contents, .begin = reading->bytes };
	int error = walk_message(&walk, MODEL, (struct bytes){ reading->bytes, reading->size }, 0);

	if (walk.count)
		walk.count = join(walk.external, walk.count);
	for (size_t i = 0; i < walk.count && error != -ENOMEM; i++) {
		const struct external *external = &walk.external[i];
		struct code_part part = { .external = true, .offset = external->offset };

		part.size = external->end ? external->end - external->offset : 0;
		if (code_add_part(reading->contents, (const char *)external->location.at, external->location.length,
				  &part))
			error = -ENOMEM;
	}
	reading->contents->parts_left_out += walk.left_out;
	free(walk.external);
	return error == -ENOMEM ? error : 0;
}

/* GGUF: of its metadata the name of the model. Tensors are weights, not code: they are not listed. */

#define GGUF_HEADER 24	   /* magic, u32 version, u64 number of tensors, u64 number of pairs */
#define GGUF_NESTING_MAX 4 /* of arrays in arrays */

enum {
	GGUF_STRING = 8,
	GGUF_ARRAY = 9,
};

/* Bytes of each type of numbers; 0: it is none. */
static const unsigned char sizes[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };

/* false: there are fewer bytes. */
static bool take_string(struct bytes *rest, struct bytes *string)
{
	const unsigned char *length = rest->at;

	if (!take(rest, 8))
		return false;
	*string = (struct bytes){ rest->at, code_u64(length) };
	return take(rest, code_u64(length));
}

static bool skip_values(struct bytes *rest, __u32 type, __u64 count, unsigned int nesting)
{
	const unsigned char *head;
	struct bytes string;
	__u64 bytes;

	if (type < sizeof(sizes) && sizes[type])
		return !__builtin_mul_overflow(count, sizes[type], &bytes) && take(rest, bytes);
	if ((type != GGUF_STRING && type != GGUF_ARRAY) || nesting > GGUF_NESTING_MAX)
		return false;
	/* Each has bytes, so that no count makes this long. */
	for (; count; count--) {
		if (type == GGUF_STRING) {
			if (!take_string(rest, &string))
				return false;
			continue;
		}
		head = rest->at;
		if (!take(rest, 12) || !skip_values(rest, code_u32(head), code_u64(head + 4), nesting + 1))
			return false;
	}
	return true;
}

/* A pair of the metadata. 0, -EBADMSG, -ENOMEM. */
static int read_pair(struct bytes *rest, struct code_contents *contents)
{
	const unsigned char *type;
	struct bytes key, name;

	if (!take_string(rest, &key))
		return -EBADMSG;
	type = rest->at;
	if (!take(rest, 4))
		return -EBADMSG;
	if (contents->name || code_u32(type) != GGUF_STRING || !equal(&key, "general.name"))
		return skip_values(rest, code_u32(type), 1, 0) ? 0 : -EBADMSG;
	if (!take_string(rest, &name))
		return -EBADMSG;
	contents->name = strndup((const char *)name.at, name.length);
	return contents->name ? 0 : -ENOMEM;
}

int code_read_gguf(struct code_reading *reading)
{
	struct bytes rest = { reading->bytes, reading->size };
	__u64 count;

	if (!take(&rest, GGUF_HEADER))
		return code_set_error(reading->contents, "it ends inside of its header");
	if (code_u32(reading->bytes + 4) != 2 && code_u32(reading->bytes + 4) != 3)
		return code_set_error(reading->contents, "its version is not known: %u", code_u32(reading->bytes + 4));
	count = code_u64(reading->bytes + 16);
	for (__u64 i = 0; i < count; i++) {
		int error = read_pair(&rest, reading->contents);

		if (error == -ENOMEM)
			return error;
		if (error)
			return code_set_error(reading->contents, "pair %llu of the metadata cannot be read", i);
	}
	return 0;
}
