/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/code/pieces.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX (64u << 20)
#define COUNT_MAX 1024

/* Of one object. */
struct code_assembly {
	struct code_assembly *next;
	__u32 tgid, tid;
	__u64 time;
	char *bytes;
	size_t length, room;
};

static void assembly_free(struct code_pieces *pieces, struct code_assembly **place)
{
	struct code_assembly *assembly = *place;

	*place = assembly->next;
	pieces->count--;
	pieces->bytes -= assembly->room;
	free(assembly->bytes);
	free(assembly);
}

static struct code_assembly **find(struct code_pieces *pieces, __u32 tgid, __u32 tid, __u64 time)
{
	struct code_assembly **place = &pieces->first;

	while (*place && ((*place)->tid != tid || (*place)->tgid != tgid || (*place)->time != time))
		place = &(*place)->next;
	return place;
}

static void drop_oldest(struct code_pieces *pieces)
{
	struct code_assembly **place = &pieces->first;

	while ((*place)->next)
		place = &(*place)->next;
	assembly_free(pieces, place);
}

static struct code_assembly *make(struct code_pieces *pieces, const struct xpt_record_code_piece *piece)
{
	struct code_assembly *assembly = calloc(1, sizeof(*assembly));

	if (!assembly)
		return NULL;
	if (pieces->count == COUNT_MAX)
		drop_oldest(pieces);
	assembly->tgid = piece->header.tgid;
	assembly->tid = piece->tid;
	assembly->time = piece->header.time;
	assembly->next = pieces->first;
	pieces->first = assembly;
	pieces->count++;
	return assembly;
}

/* Makes room for length bytes more and a 0 byte. */
static bool grow(struct code_pieces *pieces, struct code_assembly *assembly, size_t length)
{
	size_t needed = assembly->length + length + 1, room = assembly->room ?: 2 * XPT_CODE_PIECE_MAX;
	char *more;

	if (needed <= assembly->room)
		return true;
	while (room < needed)
		room *= 2;
	while (pieces->bytes - assembly->room + room > BYTES_MAX && pieces->first->next) {
		/* It must not be the oldest itself. */
		if (!assembly->next)
			return false;
		drop_oldest(pieces);
	}
	more = pieces->bytes - assembly->room + room > BYTES_MAX ? NULL : realloc(assembly->bytes, room);
	if (!more)
		return false;
	pieces->bytes += room - assembly->room;
	assembly->bytes = more;
	assembly->room = room;
	return true;
}

void code_pieces_add(struct code_pieces *pieces, const struct xpt_record_code_piece *piece)
{
	struct code_assembly *assembly;

	if (piece->header.size < sizeof(*piece) || piece->length > piece->header.size - sizeof(*piece))
		return;
	assembly = *find(pieces, piece->header.tgid, piece->tid, piece->header.time);
	if (!assembly)
		assembly = make(pieces, piece);
	if (!assembly || assembly->length != piece->offset || !grow(pieces, assembly, piece->length))
		return;
	memcpy(assembly->bytes + assembly->length, piece->bytes, piece->length);
	assembly->length += piece->length;
	assembly->bytes[assembly->length] = 0;
}

struct code_bytes code_pieces_take(struct code_pieces *pieces, const struct xpt_record_code *code)
{
	struct code_assembly **place = find(pieces, code->header.tgid, code->tid, code->header.time);
	struct code_bytes bytes = {};

	if (!*place)
		return bytes;
	bytes = (struct code_bytes){ (*place)->bytes, (*place)->length };
	(*place)->bytes = NULL;
	assembly_free(pieces, place);
	return bytes;
}

void code_pieces_drop(struct code_pieces *pieces, __u32 tgid)
{
	struct code_assembly **place = &pieces->first;

	while (*place) {
		if (!tgid || (*place)->tgid == tgid)
			assembly_free(pieces, place);
		else
			place = &(*place)->next;
	}
}
