/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stream/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_FIRST (64u << 10)
#define ENTRIES_FIRST 1024
#define RECORD_MAX 0x10000 /* xpt_record_header.size has 16 bits */
#define SHIFT_MAX 16	   /* a record this little out of place is moved; a worse one begins a new run */

/* ---- kinds ---- */

/* Among records of one time: what must be known first. */
enum rank { RANK_KNOWN_FIRST = 0, RANK_CALL = 1, RANK_AFTER = 2, RANK_END = 3, RANK_BITS = 2 };

static size_t text_bytes_of(const void *record)
{
	return ((const struct xpt_record_text *)record)->length;
}

static size_t string_bytes_of(const void *record)
{
	return ((const struct xpt_record_string *)record)->length;
}

static size_t region_name_bytes_of(const void *record)
{
	return ((const struct xpt_record_region_name *)record)->length;
}

static size_t call_bytes_of(const void *record)
{
	const struct xpt_record_call *call = record;

	return (call->values + (call->flags & XPT_CALL_NUMBERED ? 1u : 0) + (call->flags & XPT_CALL_WAITS ? 1u : 0)) *
		       sizeof(__u64) +
	       (call->flags & XPT_CALL_COUNTED ? 2 * sizeof(struct xpt_counts) : 0) +
	       (call->depth & XPT_CALL_STATES_FOLLOW ? sizeof(struct xpt_task_state) : 0);
}

static size_t stack_bytes_of(const void *record)
{
	return ((const struct xpt_record_stack *)record)->frames * sizeof(__u32);
}

static size_t reading_bytes_of(const void *record)
{
	return ((const struct xpt_record_reading *)record)->values * sizeof(__u64);
}

#define TEXT(rank)                                                  \
	{                                                           \
		sizeof(struct xpt_record_text), text_bytes_of, rank \
	}

/* Of a kind that is not here only the header is checked. */
static const struct record_kind {
	size_t size;				/* of its struct */
	size_t (*bytes_of)(const void *record); /* that follow, by what the struct says; NULL: not checked here */
	enum rank rank;
} kinds[] = {
	[XPT_RECORD_CALL] = { sizeof(struct xpt_record_call), call_bytes_of, RANK_CALL },
	[XPT_RECORD_STRING] = { sizeof(struct xpt_record_string), string_bytes_of, RANK_KNOWN_FIRST },
	[XPT_RECORD_TASK] = { sizeof(struct xpt_record_task), NULL, RANK_AFTER },
	[XPT_RECORD_EVENT] = { sizeof(struct xpt_record_event), NULL, RANK_KNOWN_FIRST },
	[XPT_RECORD_IOCTL] = { sizeof(struct xpt_record_ioctl), NULL, RANK_KNOWN_FIRST },
	[XPT_RECORD_OFF_CPU] = { sizeof(struct xpt_record_off_cpu), NULL, RANK_KNOWN_FIRST },
	[XPT_RECORD_CLIENT_EXIT] = { sizeof(struct xpt_record_header), NULL, RANK_AFTER },
	[XPT_RECORD_REGION] = { sizeof(struct xpt_record_region), NULL, RANK_KNOWN_FIRST },
	[XPT_RECORD_REGION_NAME] = { sizeof(struct xpt_record_region_name), region_name_bytes_of, RANK_KNOWN_FIRST },
	[XPT_RECORD_SPEC] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_PROCESS] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_THREAD] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_LOST] = { sizeof(struct xpt_record_lost), NULL, RANK_AFTER },
	[XPT_RECORD_TOTAL] = { sizeof(struct xpt_record_total), NULL, RANK_AFTER },
	[XPT_RECORD_NAMED] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_WAITED] = { offsetof(struct xpt_record_waited, tid), NULL, RANK_AFTER },
	[XPT_RECORD_END] = TEXT(RANK_END),
	[XPT_RECORD_RUNTIME] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_COUNT] = { sizeof(struct xpt_record_count), NULL, RANK_AFTER },
	[XPT_RECORD_DRIVER] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_DRIVER_EVENT] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_COUNTER] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_READING] = { sizeof(struct xpt_record_reading), reading_bytes_of, RANK_KNOWN_FIRST },
	[XPT_RECORD_CLASS] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_NODE] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_CHOICE] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_MATCH] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_LOADED] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_CODE_OBJECT] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_CODE_UNLOADED] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_SYMBOL] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_COST] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_FINGERPRINT] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_MODULE] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_FRAME] = TEXT(RANK_KNOWN_FIRST),
	[XPT_RECORD_STACK] = { sizeof(struct xpt_record_stack), stack_bytes_of, RANK_KNOWN_FIRST },
	[XPT_RECORD_STACK_SAMPLE] = { sizeof(struct xpt_record_stack_sample), NULL, RANK_AFTER },
	[XPT_RECORD_BUDGET] = TEXT(RANK_AFTER), /* programs that were there before are known */
};

static const struct record_kind *kind_of(const struct xpt_record_header *record)
{
	return &kinds[record->kind < sizeof(kinds) / sizeof(kinds[0]) ? record->kind : 0];
}

bool record_validate(const struct xpt_record_header *record, size_t room)
{
	const struct record_kind *kind;

	if (room < sizeof(*record) || record->size > room || record->size < sizeof(*record))
		return false;
	kind = kind_of(record);
	return record->size >= kind->size && (!kind->bytes_of || kind->bytes_of(record) <= record->size - kind->size);
}

/* ---- records that are held back ---- */

void reorder_free(struct reorder_buffer *order)
{
	free(order->bytes);
	free(order->entries);
	free(order->spare);
	free(order->starts);
	*order = (struct reorder_buffer){};
}

bool reorder_full(const struct reorder_buffer *order, size_t size)
{
	return order->count && order->used + size > REORDER_BYTES_MAX;
}

struct xpt_record_header *reorder_stage(struct reorder_buffer *order, const void *record, size_t size)
{
	size_t room = order->room ? order->room : BYTES_FIRST;
	char *bytes;

	while (room < order->used + size)
		room *= 2;
	if (room > REORDER_BYTES_MAX + RECORD_MAX)
		room = REORDER_BYTES_MAX + RECORD_MAX;
	if (room != order->room) {
		bytes = realloc(order->bytes, room);
		if (!bytes)
			return NULL;
		order->bytes = bytes;
		order->room = room;
	}
	return memcpy(order->bytes + order->used, record, size);
}

static __u64 record_key(const struct xpt_record_header *record)
{
	const __u64 last = ~(__u64)0 >> RANK_BITS;

	return (record->time < last ? record->time : last) << RANK_BITS | kind_of(record)->rank;
}

__u64 reorder_key_until(__u64 time)
{
	const __u64 last = ~(__u64)0 >> RANK_BITS;

	return (time < last ? time : last) << RANK_BITS | RANK_END;
}

static int entries_grow(struct reorder_buffer *order)
{
	size_t room = order->entry_room ? order->entry_room * 2 : ENTRIES_FIRST;
	struct reorder_entry *spare = malloc(room * sizeof(*spare)), *entries;
	__u32 *starts = malloc(room * sizeof(*starts));

	entries = spare && starts ? realloc(order->entries, room * sizeof(*entries)) : NULL;
	if (!entries) {
		free(spare);
		free(starts);
		return -ENOMEM;
	}
	free(order->spare); /* what is in it is never needed again */
	free(order->starts);
	order->spare = spare;
	order->starts = starts;
	order->entries = entries;
	order->entry_room = room;
	return 0;
}

int reorder_keep(struct reorder_buffer *order)
{
	const struct xpt_record_header *record = (const void *)(order->bytes + order->used);

	if (order->count >= order->entry_room && entries_grow(order))
		return -ENOMEM;
	order->entries[order->count].key = record_key(record);
	order->entries[order->count].offset = order->used;
	order->count++;
	order->used += record->size;
	return 0;
}

/*
 * Moves entries that are a little out of place, as happens where processors share a ring, so that what remains are the
 * runs of the rings. Returns whether one run remains.
 */
static bool entries_smooth(struct reorder_entry *entries, size_t count)
{
	size_t i, place, run = 0;
	struct reorder_entry entry;
	bool one = true;

	for (i = 1; i < count; i++) {
		if (entries[i - 1].key <= entries[i].key)
			continue;
		entry = entries[i];
		place = i;
		while (place > run && i - place < SHIFT_MAX && entries[place - 1].key > entry.key)
			place--;
		if (place > run && entries[place - 1].key > entry.key) {
			run = i;
			one = false;
			continue;
		}
		memmove(&entries[place + 1], &entries[place], (i - place) * sizeof(entry));
		entries[place] = entry;
	}
	return one;
}

static size_t run_end(const struct reorder_entry *entries, size_t from, size_t count)
{
	size_t i = from + 1;

	while (i < count && entries[i - 1].key <= entries[i].key)
		i++;
	return i < count ? i : count;
}

static void runs_merge(const struct reorder_entry *left, const struct reorder_entry *left_end,
		       const struct reorder_entry *right, const struct reorder_entry *right_end,
		       struct reorder_entry *to)
{
	while (left < left_end && right < right_end)
		*to++ = right->key < left->key ? *right++ : *left++;
	memcpy(to, left, (size_t)(left_end - left) * sizeof(*to));
	memcpy(to + (left_end - left), right, (size_t)(right_end - right) * sizeof(*to));
}

/* The first count entries are in spare, sorted more or less: they are what counts from now on. */
static void entries_swap(struct reorder_buffer *order, size_t count)
{
	struct reorder_entry *swap = order->entries;

	memcpy(order->spare + count, order->entries + count, (order->count - count) * sizeof(*swap));
	order->entries = order->spare;
	order->spare = swap;
}

/*
 * Puts the first count entries into as many slices of time: of records at an even rate few are out of place then, from however
 * many rings they come. Stable.
 */
static void entries_spread(struct reorder_buffer *order, size_t count)
{
	const struct reorder_entry *entries = order->entries;
	__u64 first = entries[0].key, last = first;
	unsigned int shift = 0;
	size_t i;

	for (i = 1; i < count; i++) {
		if (entries[i].key < first)
			first = entries[i].key;
		if (entries[i].key > last)
			last = entries[i].key;
	}
	while ((last - first) >> shift >= count)
		shift++;
	memset(order->starts, 0, count * sizeof(*order->starts));
	for (i = 0; i < count; i++)
		order->starts[(entries[i].key - first) >> shift]++;
	for (i = count - 1, order->starts[i] = count - order->starts[i]; i > 0; i--)
		order->starts[i - 1] = order->starts[i] - order->starts[i - 1];
	for (i = 0; i < count; i++)
		order->spare[order->starts[(entries[i].key - first) >> shift]++] = entries[i];
	entries_swap(order, count);
}

/* Of the first count entries; merges neighbouring runs until one is left. Stable, so records of one time stay as they came. */
static void entries_sort(struct reorder_buffer *order, size_t count)
{
	size_t from, middle, end, runs;

	if (!count || run_end(order->entries, 0, count) == count)
		return;
	entries_spread(order, count);
	if (entries_smooth(order->entries, count))
		return;
	do {
		for (from = 0, runs = 0; from < count; from = end, runs++) {
			middle = run_end(order->entries, from, count);
			end = middle < count ? run_end(order->entries, middle, count) : middle;
			runs_merge(order->entries + from, order->entries + middle, order->entries + middle,
				   order->entries + end, order->spare + from);
		}
		entries_swap(order, count);
	} while (runs > 1);
}

/* Moves what has at most this key in front of the rest; both stay in the order in which they came. Returns how many. */
static size_t entries_part(struct reorder_buffer *order, __u64 key)
{
	size_t due = 0, later = 0, i;

	for (i = 0; i < order->count; i++) {
		const struct reorder_entry entry = order->entries[i];

		order->entries[due] = order->spare[later] = entry;
		due += entry.key <= key;
		later += entry.key > key;
	}
	if (later)
		memcpy(order->entries + due, order->spare, later * sizeof(*order->entries));
	return due;
}

size_t reorder_due(struct reorder_buffer *order, __u64 key)
{
	size_t due = entries_part(order, key);

	entries_sort(order, due);
	return due;
}

__u64 reorder_middle(struct reorder_buffer *order)
{
	entries_sort(order, order->count);
	return order->count ? order->entries[(order->count - 1) / 2].key : 0;
}

/* What stays moves to the front in the order it came, so that records of one time keep that order. */
void reorder_drop(struct reorder_buffer *order, __u64 key)
{
	const struct xpt_record_header *record;
	size_t from, size, used = 0, kept = 0;
	__u64 record_sort_key;

	for (from = 0; from < order->used && kept < order->count; from += size) {
		record = (const void *)(order->bytes + from);
		size = record->size;
		record_sort_key = record_key(record);
		if (record_sort_key <= key)
			continue;
		order->entries[kept].key = record_sort_key;
		order->entries[kept++].offset = used;
		memmove(order->bytes + used, record, size);
		used += size;
	}
	order->count = kept;
	order->used = used;
}
