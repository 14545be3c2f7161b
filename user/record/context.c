/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/context.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/stream/event.h"

/* What an entry takes besides its record: with its place in the maps, and what the allocator needs. */
#define ENTRY_BYTES (sizeof(struct entry) + 64)

struct owner {
	struct map_node node; /* by tgid */
	struct link entries;
};

struct entry {
	struct map_node node;
	struct link link;	/* of common, processes or owned */
	struct link of_process; /* of the owner */
	struct owner *owner;	/* NULL: common */
	struct xpt_record_header *record;
};

void context_init(struct context *context, size_t room)
{
	*context = (struct context){ .room = room };
	link_init(&context->common);
	link_init(&context->processes);
	link_init(&context->owned);
	link_init(&context->code);
}

/* ---- what is in records, and what changes in copies of them ---- */

/* Choices have no number, and all of them count. */
static __u64 choice_number(const struct xpt_record_text *record)
{
	return hash_bytes(HASH_BEGIN ^ record->id, record->text, record->length);
}

/* Where the value of a member begins in the JSON of a record; NULL: nowhere. Inside of a string the quotes would be escaped. */
static char *member_find(const struct xpt_record_text *record, const char *key)
{
	char *found = memmem(record->text, record->length, key, strlen(key));

	return found && found + strlen(key) < record->text + record->length ? found + strlen(key) : NULL;
}

/* Whether a member is just this, as the collector writes it. */
static bool member_is(const struct xpt_record_text *record, const char *key, const char *value)
{
	const char *found = member_find(record, key);

	return found && (size_t)(record->text + record->length - found) >= strlen(value) &&
	       !memcmp(found, value, strlen(value));
}

static bool is_site(const struct xpt_record_header *record)
{
	return member_is((const void *)record, "\"action\":", "\"site\"");
}

/* Everything is traced again: nothing needs to be known of the changes before. */
static bool is_taken_back(const struct xpt_record_header *record)
{
	const struct xpt_record_text *text = (const void *)record;

	return member_is(text, "\"on\":", "true") || member_is(text, "\"every\":", "1,") ||
	       member_is(text, "\"every\":", "1}");
}

/* The latest change of each action counts; of functions, of each one. */
static __u64 budget_number(const struct xpt_record_text *record)
{
	const char *key = is_site(&record->header) ? "\"function\":\"" : "\"action\":\"";
	const char *value = member_find(record, key), *end = record->text + record->length, *quote;

	if (!value)
		return 0;
	quote = memchr(value, '"', (size_t)(end - value));
	return hash_bytes(HASH_BEGIN ^ *key, value, (size_t)((quote ?: end) - value));
}

bool context_is_common(const struct xpt_record_header *record)
{
	return !record->tgid || (record->kind == XPT_RECORD_BUDGET && !is_site(record));
}

/* Those without a handle are identified by where they come from. */
static __u64 code_number(const struct xpt_record_text *record)
{
	const char *uri = record->id ? NULL : member_find(record, "\"uri\":\""), *end;

	if (!uri)
		return record->id;
	end = memchr(uri, '"', (size_t)(record->text + record->length - uri));
	return hash_bytes(HASH_BEGIN ^ 1, uri, (size_t)((end ? end : record->text + record->length) - uri));
}

/* Identifies a record among those of its kind and process. */
static __u64 record_number(const struct xpt_record_header *record)
{
	switch (record->kind) {
	case XPT_RECORD_REGION_NAME:
		return ((const struct xpt_record_region_name *)record)->name;
	case XPT_RECORD_PROCESS:
		return 0;
	case XPT_RECORD_CHOICE:
	case XPT_RECORD_MATCH:
		return choice_number((const void *)record);
	case XPT_RECORD_CODE_OBJECT:
		return code_number((const void *)record);
	case XPT_RECORD_BUDGET:
		return budget_number((const void *)record);
	case XPT_RECORD_STACK:
		return ((const struct xpt_record_stack *)record)->id;
	default:
		return ((const struct xpt_record_text *)record)->id;
	}
}

/* Of a LOADED record: any other name of the program is better, but that of its operators. */
static void name_from_fork(struct xpt_record_text *record)
{
	char *value = member_find(record, "\"named_by\":");

	if (value && *value != '0' + NAME_FROM_OPERATORS)
		*value = '0' + NAME_FROM_FORK;
}

/* The number as 0, as long as it is. */
static void clear_number(struct xpt_record_text *record, const char *key)
{
	char *value = member_find(record, key), *end = record->text + record->length;

	for (char *at = value; at && at < end && *at >= '0' && *at <= '9'; at++)
		*at = at == value ? '0' : ' ';
}

/* Turns a CODE_OBJECT record into that of an object found later. */
static void code_found(struct xpt_record_text *record)
{
	clear_number(record, "\"tid\":");
	clear_number(record, "\"waited_ns\":");
}

/* ---- keys ---- */

static __u64 key_of(__u16 kind, __u16 runtime, __u32 tgid)
{
	return (__u64)kind << 48 | (__u64)runtime << 32 | tgid;
}

/* Of processes: dropped with them. */
static bool is_owned(__u16 kind)
{
	switch (kind) {
	case XPT_RECORD_PROCESS:
	case XPT_RECORD_THREAD:
	case XPT_RECORD_CLASS:
	case XPT_RECORD_NODE:
	case XPT_RECORD_REGION_NAME:
	case XPT_RECORD_LOADED:
	case XPT_RECORD_SYMBOL:
	case XPT_RECORD_CODE_OBJECT:
	case XPT_RECORD_BUDGET:
		return true;
	default:
		return false;
	}
}

bool context_is(const struct xpt_record_header *record)
{
	switch (record->kind) {
	case XPT_RECORD_RUNTIME:
	case XPT_RECORD_SPEC:
	case XPT_RECORD_COST:
	case XPT_RECORD_DRIVER:
	case XPT_RECORD_DRIVER_EVENT:
	case XPT_RECORD_COUNTER:
	case XPT_RECORD_NAMED:
	case XPT_RECORD_FINGERPRINT:
	case XPT_RECORD_CHOICE:
	case XPT_RECORD_MATCH:
	case XPT_RECORD_CODE_UNLOADED:
	case XPT_RECORD_MODULE:
	case XPT_RECORD_FRAME:
	case XPT_RECORD_STACK:
		return true;
	default:
		return is_owned(record->kind);
	}
}

static bool is_program(const struct entry *entry)
{
	return entry->record->kind == XPT_RECORD_LOADED && (__u16)(entry->node.a >> 32) != CONTEXT_REGION;
}

/* ---- entries ---- */

static void count_record(struct context *context, const struct entry *entry)
{
	context->bytes += ENTRY_BYTES + entry->record->size;
	if (entry->owner)
		context->owned_bytes += ENTRY_BYTES + entry->record->size;
}

static void uncount_record(struct context *context, const struct entry *entry)
{
	context->bytes -= ENTRY_BYTES + entry->record->size;
	if (entry->owner)
		context->owned_bytes -= ENTRY_BYTES + entry->record->size;
}

static void entry_remove(struct context *context, struct entry *entry)
{
	uncount_record(context, entry);
	map_remove(&context->entries, &entry->node);
	link_remove(&entry->link);
	if (entry->owner) {
		context->owned_count--;
		context->code_count -= entry->record->kind == XPT_RECORD_CODE_OBJECT;
		link_remove(&entry->of_process);
		if (link_alone(&entry->owner->entries)) {
			map_remove(&context->owners, &entry->owner->node);
			free(entry->owner);
		}
	}
	free(entry->record);
	free(entry);
}

static void list_free(struct context *context, struct link *list)
{
	struct entry *entry, *next;

	link_for_each_safe(entry, next, list, link)
		entry_remove(context, entry);
}

void context_free(struct context *context)
{
	list_free(context, &context->common);
	list_free(context, &context->processes);
	list_free(context, &context->owned);
	list_free(context, &context->code);
	map_free(&context->entries);
	map_free(&context->owners);
}

static struct owner *owner_get(struct context *context, __u32 tgid)
{
	struct map_node *node = map_find(&context->owners, tgid, 0);
	struct owner *owner;

	if (node)
		return container_of(node, struct owner, node);
	owner = calloc(1, sizeof(*owner));
	if (!owner)
		return NULL;
	link_init(&owner->entries);
	if (map_add(&context->owners, &owner->node, tgid, 0)) {
		free(owner);
		return NULL;
	}
	return owner;
}

static struct link *list_of(struct context *context, __u16 kind)
{
	if (!is_owned(kind))
		return &context->common;
	if (kind == XPT_RECORD_CODE_OBJECT)
		return &context->code;
	return kind == XPT_RECORD_PROCESS ? &context->processes : &context->owned;
}

static struct entry *entry_add(struct context *context, __u64 key, __u64 number)
{
	__u16 kind = key >> 48;
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!entry || map_add(&context->entries, &entry->node, key, number)) {
		free(entry);
		return NULL;
	}
	if (!is_owned(kind)) {
		link_append(&context->common, &entry->link);
		return entry;
	}
	entry->owner = owner_get(context, (__u32)key);
	if (!entry->owner) {
		map_remove(&context->entries, &entry->node);
		free(entry);
		return NULL;
	}
	link_append(list_of(context, kind), &entry->link);
	link_append(&entry->owner->entries, &entry->of_process);
	context->owned_count++;
	context->code_count += kind == XPT_RECORD_CODE_OBJECT;
	return entry;
}

/* The record becomes the context's. */
static int put(struct context *context, __u64 key, __u64 number, struct xpt_record_header *record)
{
	struct map_node *node = map_find(&context->entries, key, number);
	struct entry *entry = node ? container_of(node, struct entry, node) : entry_add(context, key, number);

	if (!entry) {
		free(record);
		return -ENOMEM;
	}
	if (entry->record && entry->record->time > record->time) {
		free(record);
		return 0;
	}
	if (entry->record)
		uncount_record(context, entry);
	free(entry->record);
	entry->record = record;
	count_record(context, entry);
	if (!entry->owner)
		return 0;
	link_remove(&entry->link);
	link_append(list_of(context, record->kind), &entry->link);
	return 0;
}

static bool is_full(const struct context *context)
{
	return context->code_count > CONTEXT_CODE_MAX || context->owned_count > CONTEXT_MAX ||
	       context->owned_bytes > context->room;
}

/* The most requested is evicted last. */
static struct link *oldest(struct context *context)
{
	if (!link_alone(&context->code))
		return context->code.next;
	return link_alone(&context->owned) ? context->processes.next : context->owned.next;
}

static void make_room(struct context *context)
{
	while (context->owned_count && is_full(context)) {
		entry_remove(context, container_of(oldest(context), struct entry, link));
		context->dropped++;
	}
}

/* ---- processes ---- */

/* Drops what was reported up to the time. all: the process has ended; else it runs another program. */
static void drop_process(struct context *context, __u32 tgid, bool all, __u64 time)
{
	struct map_node *node = map_find(&context->owners, tgid, 0);
	struct link *link, *following, *entries;
	struct entry *entry;
	size_t left = 0;

	if (!node)
		return;
	entries = &container_of(node, struct owner, node)->entries;
	for (link = entries->next; link != entries; link = link->next)
		left++;
	/* The list itself is freed with its last entry. */
	for (link = entries->next; left; left--, link = following) {
		following = link->next;
		entry = container_of(link, struct entry, of_process);
		if (entry->record->time <= time && (all || entry->record->kind != XPT_RECORD_PROCESS))
			entry_remove(context, entry);
	}
}

static struct xpt_record_header *copy_record(const struct xpt_record_header *record)
{
	struct xpt_record_header *copy = malloc(record->size);

	if (copy)
		memcpy(copy, record, record->size);
	return copy;
}

/* A child has the programs that its parent had then. */
static int inherit(struct context *context, __u32 child, __u32 parent, __u64 time)
{
	struct map_node *node = map_find(&context->owners, parent, 0);
	struct xpt_record_header *copy;
	const struct entry *entry;
	int error = 0;

	if (!node || child == parent)
		return 0;
	link_for_each(entry, &container_of(node, struct owner, node)->entries, of_process) {
		if (error || !is_program(entry) || entry->record->time > time)
			continue;
		copy = copy_record(entry->record);
		if (!copy)
			return -ENOMEM;
		copy->tgid = child;
		copy->time = time;
		name_from_fork((void *)copy);
		error = put(context, (entry->node.a & ~(__u64)UINT32_MAX) | child, entry->node.b, copy);
	}
	return error;
}

static int take_task(struct context *context, const struct xpt_record_task *task)
{
	switch (task->event) {
	case XPT_TASK_FORK:
		return inherit(context, task->header.tgid, task->other, task->header.time);
	case XPT_TASK_EXEC:
		drop_process(context, task->header.tgid, false, task->header.time);
		return 0;
	case XPT_TASK_EXIT:
		drop_process(context, task->header.tgid, true, task->header.time);
		return 0;
	default:
		return 0;
	}
}

/* What it is about is not in force any more. */
static void take_back(struct context *context, __u64 key, __u64 number, __u64 time)
{
	struct map_node *node = map_find(&context->entries, key, number);
	struct entry *entry = node ? container_of(node, struct entry, node) : NULL;

	if (entry && entry->record->time <= time)
		entry_remove(context, entry);
}

int context_take(struct context *context, const struct xpt_record_header *record)
{
	const __u32 tgid = context_is_common(record) ? 0 : record->tgid;
	struct xpt_record_header *copy;
	int error = 0;

	if (record->kind == XPT_RECORD_TASK) {
		error = take_task(context, (const void *)record);
	} else if (record->kind == XPT_RECORD_CODE_UNLOADED) {
		take_back(context, key_of(XPT_RECORD_CODE_OBJECT, 0, tgid), record_number(record), record->time);
	} else if (record->kind == XPT_RECORD_BUDGET && is_taken_back(record)) {
		take_back(context, key_of(record->kind, 0, tgid), record_number(record), record->time);
	} else {
		copy = copy_record(record);
		if (copy && record->kind == XPT_RECORD_CODE_OBJECT)
			code_found((void *)copy);
		error = copy ? put(context, key_of(record->kind, 0, tgid), record_number(record), copy) : -ENOMEM;
	}
	make_room(context);
	return error;
}

int context_load(struct context *context, __u16 runtime, const struct xpt_record_text *record)
{
	const struct xpt_record_header *header = &record->header;
	struct xpt_record_header *copy = copy_record(header);
	int error = copy ? put(context, key_of(header->kind, runtime, header->tgid), record->id, copy) : -ENOMEM;

	make_room(context);
	return error;
}

bool context_has(const struct context *context, const struct xpt_record_header *record)
{
	const __u32 tgid = context_is_common(record) ? 0 : record->tgid;
	const struct map_node *node = map_find(&context->entries, key_of(record->kind, 0, tgid), record_number(record));

	return node && container_of(node, const struct entry, node)->record->time == record->time;
}

void context_release(struct context *context, __u32 tgid, __u16 runtime, __u64 handle)
{
	struct map_node *node = map_find(&context->entries, key_of(XPT_RECORD_LOADED, runtime, tgid), handle);

	if (node)
		entry_remove(context, container_of(node, struct entry, node));
}

/* ---- writing ---- */

static void write_record(const struct xpt_record_header *record, __u64 time, struct text *text)
{
	struct xpt_record_header header = *record;

	header.time = time;
	text_bytes(text, &header, sizeof(header));
	text_bytes(text, record + 1, record->size - sizeof(header));
}

static void write_list(const struct link *list, __u64 time, struct text *text)
{
	for (const struct link *link = list->next; link != list; link = link->next)
		write_record(container_of(link, struct entry, link)->record, time, text);
}

void context_write(const struct context *context, __u64 time, struct text *text)
{
	write_list(&context->common, time, text);
	write_list(&context->processes, time, text);
	write_list(&context->owned, time, text);
	write_list(&context->code, time, text);
}

void context_write_programs(const struct context *context, __u32 tgid, __u64 time, struct text *text)
{
	const struct map_node *node = map_find(&context->owners, tgid, 0);
	const struct link *entries = node ? &container_of(node, struct owner, node)->entries : NULL;
	const struct entry *entry;

	for (const struct link *link = entries ? entries->next : NULL; link != entries; link = link->next) {
		entry = container_of(link, struct entry, of_process);
		if (is_program(entry) && entry->record->time <= time)
			write_record(entry->record, time, text);
	}
}

/* ---- copies ---- */

static void save_list(const struct link *list, struct text *text)
{
	for (const struct link *link = list->next; link != list; link = link->next) {
		const struct entry *entry = container_of(link, struct entry, link);
		const __u64 key[] = { entry->node.a, entry->node.b };

		text_bytes(text, key, sizeof(key));
		text_bytes(text, entry->record, entry->record->size);
	}
}

void context_save(const struct context *context, struct text *text)
{
	save_list(&context->common, text);
	save_list(&context->processes, text);
	save_list(&context->owned, text);
	save_list(&context->code, text);
}

int context_restore(struct context *context, const struct text *text)
{
	const struct xpt_record_header *record;
	struct xpt_record_header *copy;
	const __u64 *key;
	int error = 0;

	for (size_t at = 0; at < text->length && !error; at += 2 * sizeof(*key) + record->size) {
		key = (const void *)(text->data + at);
		record = (const void *)(key + 2);
		copy = copy_record(record);
		error = copy ? put(context, key[0], key[1], copy) : -ENOMEM;
	}
	return error;
}

/* ---- a moment that moves on ---- */

struct waiting {
	struct link link;
	__u64 order;		   /* among those of the same time */
	struct past_change change; /* with its record behind it */
	struct xpt_record_header record[];
};

void past_init(struct past *past, size_t room)
{
	*past = (struct past){};
	context_init(&past->context, room);
	for (unsigned int i = 0; i < PAST_KINDS; i++)
		link_init(&past->waiting[i]);
}

static void waiting_drop(struct past *past, struct waiting *waiting)
{
	past->waiting_bytes -= sizeof(*waiting) + waiting->change.size;
	link_remove(&waiting->link);
	free(waiting);
}

void past_free(struct past *past)
{
	struct waiting *waiting, *next;

	for (unsigned int i = 0; i < PAST_KINDS; i++)
		link_for_each_safe(waiting, next, &past->waiting[i], link)
			waiting_drop(past, waiting);
	context_free(&past->context);
}

/* Places in the lists, behind which is what comes next. */
struct past_places {
	const struct link *at[PAST_KINDS];
};

static struct past_places past_begin(const struct past *past)
{
	return (struct past_places){ { &past->waiting[PAST_PROGRAMS], &past->waiting[PAST_TASKS] } };
}

/* What comes next in both together, where the places move to. NULL: nothing. */
static struct waiting *past_next(const struct past *past, struct past_places *places)
{
	struct waiting *first = NULL, *other;
	unsigned int kind = 0;

	for (unsigned int i = 0; i < PAST_KINDS; i++) {
		if (places->at[i]->next == &past->waiting[i])
			continue;
		other = container_of(places->at[i]->next, struct waiting, link);
		if (first && (first->change.time < other->change.time ||
			      (first->change.time == other->change.time && first->order < other->order)))
			continue;
		first = other;
		kind = i;
	}
	if (first)
		places->at[kind] = &first->link;
	return first;
}

int past_add(struct past *past, const struct past_change *change, const void *record)
{
	const bool task = change->size && ((const struct xpt_record_header *)record)->kind == XPT_RECORD_TASK;
	struct link *list = &past->waiting[task ? PAST_TASKS : PAST_PROGRAMS], *before = list->previous;
	struct waiting *waiting = malloc(sizeof(*waiting) + change->size);

	if (!waiting)
		return -ENOMEM;
	waiting->change = *change;
	waiting->order = past->added++;
	if (change->size)
		memcpy(waiting->record, record, change->size);
	while (before != list && container_of(before, struct waiting, link)->change.time > change->time)
		before = before->previous;
	link_append(before->next, &waiting->link);
	past->waiting_bytes += sizeof(*waiting) + change->size;
	return 0;
}

static int happen(struct past *past, const struct waiting *waiting)
{
	const struct past_change *change = &waiting->change;

	if (!change->size)
		context_release(&past->context, change->tgid, change->runtime, change->handle);
	else if (waiting->record->kind == XPT_RECORD_TASK)
		return context_take(&past->context, waiting->record);
	else
		return context_load(&past->context, change->runtime, (const void *)waiting->record);
	return 0;
}

unsigned int past_settle(struct past *past, __u64 time)
{
	struct past_places begin = past_begin(past);
	struct waiting *waiting;
	unsigned int failed = 0;

	while ((waiting = past_next(past, &begin)) && waiting->change.time <= time) {
		failed += !!happen(past, waiting);
		waiting_drop(past, waiting);
		begin = past_begin(past);
	}
	return failed;
}

/* What a process had, a child gets and an exit ends: in the order of time. */
unsigned int past_take(struct past *past, const struct xpt_record_header *record)
{
	const struct past_change change = { .time = record->time, .tgid = record->tgid, .size = record->size };

	return !!(record->kind == XPT_RECORD_TASK ? past_add(past, &change, record) :
						    context_take(&past->context, record));
}

/* ---- copies of both ---- */

int past_save(const struct past *past, struct past_copy *copy)
{
	struct past_places places = past_begin(past);
	const struct waiting *waiting;

	context_save(&past->context, &copy->entries);
	while ((waiting = past_next(past, &places))) {
		text_bytes(&copy->changes, &waiting->change, sizeof(waiting->change));
		text_bytes(&copy->changes, waiting->record, waiting->change.size);
	}
	return copy->entries.error ?: copy->changes.error;
}

void past_copy_free(struct past_copy *copy)
{
	text_free(&copy->entries);
	text_free(&copy->changes);
}

static const struct past_change *change_next(const struct past_copy *copy, size_t *at)
{
	const struct past_change *change;

	if (*at >= copy->changes.length)
		return NULL;
	change = (const void *)(copy->changes.data + *at);
	*at += sizeof(*change) + change->size;
	return change;
}

int past_restore(struct past *past, const struct past_copy *copy)
{
	int error = context_restore(&past->context, &copy->entries);
	const struct past_change *change;

	for (size_t at = 0; !error && (change = change_next(copy, &at));)
		error = past_add(past, change, change + 1);
	return error;
}

const struct xpt_record_header *past_copy_loaded(const struct past_copy *copy, __u32 tgid, __u64 time, size_t *at)
{
	const struct past_change *change;

	while ((change = change_next(copy, at)))
		if (change->size && change->tgid == tgid && change->time == time &&
		    ((const struct xpt_record_header *)(change + 1))->kind == XPT_RECORD_LOADED)
			return (const void *)(change + 1);
	return NULL;
}

const struct xpt_record_header *past_copy_until(const struct past_copy *copy, __u64 time, size_t *at)
{
	const struct past_change *change;

	for (size_t next = *at; (change = change_next(copy, &next)) && change->time <= time; *at = next)
		if (change->size && ((const struct xpt_record_header *)(change + 1))->kind == XPT_RECORD_LOADED) {
			*at = next;
			return (const void *)(change + 1);
		}
	return NULL;
}
