/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Consumers that join a running session: they get what is known so far in front of their records, and after it what began later. What was
 * counted before is subtracted from the counts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/clock.h"
#include "session/core/session.h"
#include "session/reader/describe_records.h"

#define ROOM (64u << 20)     /* bytes: of what is known of processes */
#define STRINGS_MAX 256	     /* of calls that have not returned */
#define READ_TRIES 50	     /* until no call begins between two readings of the counts */
#define SETTLE_TIME 20000ull /* ns: a call is counted up to this long before its begin is stamped */

/* ---- what is known ---- */

struct known_string {
	struct link link;
	struct xpt_record_string record; /* with its text behind it */
};

void statedump_init(struct statedump *dump, const struct registry *registry)
{
	*dump = (struct statedump){ .registry = registry };
	past_init(&dump->past, ROOM);
	link_init(&dump->strings);
}

static void string_drop(struct statedump *dump, struct known_string *string)
{
	link_remove(&string->link);
	free(string);
	dump->string_count--;
}

void statedump_free(struct statedump *dump)
{
	struct known_string *string, *following;

	if (!dump->registry)
		return;
	link_for_each_safe(string, following, &dump->strings, link)
		string_drop(dump, string);
	past_free(&dump->past);
}

static bool is_control(const struct registry *registry, __u16 spec)
{
	return spec < registry->spec_count && registry->specs[spec]->wire.flags & XPT_SPEC_CONTROL;
}

/* Such a call may take long: who joins meanwhile gets the call, and needs what it was given. */
static int keep_string(struct statedump *dump, const struct xpt_record_string *record)
{
	struct known_string *string;

	if (!is_control(dump->registry, record->spec))
		return 0;
	string = malloc(offsetof(struct known_string, record) + record->header.size);
	if (!string)
		return -ENOMEM;
	memcpy(&string->record, record, record->header.size);
	link_append(&dump->strings, &string->link);
	if (++dump->string_count > STRINGS_MAX)
		string_drop(dump, container_of(dump->strings.next, struct known_string, link));
	return 0;
}

static void drop_strings(struct statedump *dump, const struct xpt_record_call *call)
{
	struct known_string *string, *following;

	link_for_each_safe(string, following, &dump->strings, link) {
		if (string->record.tid == call->tid && string->record.call_start >= call->start)
			string_drop(dump, string);
	}
}

int statedump_record(struct statedump *dump, const struct xpt_record_header *record)
{
	if (record->kind == XPT_RECORD_STRING)
		return keep_string(dump, (const void *)record);
	if (record->kind == XPT_RECORD_CALL && dump->string_count)
		drop_strings(dump, (const void *)record);
	/* What is LOADED the model reports, with its runtime. */
	if (record->kind == XPT_RECORD_LOADED || !past_is(record))
		return 0;
	return past_take(&dump->past, record) ? -ENOMEM : 0;
}

static int on_event(void *context, const struct event *event)
{
	struct statedump *dump = context;
	struct past_change change;
	struct xpt_record_text *record;
	int error;

	if (!record_change(event, &change, &record))
		return 0;
	error = past_add(&dump->past, &change, record);
	free(record);
	return error;
}

struct event_sink statedump_sink(struct statedump *dump)
{
	return (struct event_sink){ on_event, dump };
}

/* ---- counts from before ---- */

struct baseline {
	struct map_node node; /* by key */
	struct link link;
	struct xpt_program_count count;
};

static struct baseline *baseline_find(const struct joining *joining, const struct xpt_program_key *key)
{
	struct map_node *node = map_find(&joining->baselines, program_map_key(key), key->handle);

	return node ? container_of(node, struct baseline, node) : NULL;
}

static void baseline_drop(struct joining *joining, struct baseline *baseline)
{
	map_remove(&joining->baselines, &baseline->node);
	link_remove(&baseline->link);
	free(baseline);
}

static void baselines_drop(struct joining *joining)
{
	struct baseline *baseline, *following;

	link_for_each_safe(baseline, following, &joining->all, link)
		baseline_drop(joining, baseline);
}

int joining_baseline(void *context, const struct xpt_program_entry *entry)
{
	struct joining *joining = context;
	struct baseline *baseline = calloc(1, sizeof(*baseline));

	if (!baseline ||
	    map_add(&joining->baselines, &baseline->node, program_map_key(&entry->key), entry->key.handle)) {
		free(baseline);
		return -ENOMEM;
	}
	baseline->count = entry->count;
	link_append(&joining->all, &baseline->link);
	return 0;
}

/* -EAGAIN: a call has begun meanwhile. */
static int on_compared(void *context, const struct xpt_program_entry *entry)
{
	const struct baseline *baseline = baseline_find(context, &entry->key);

	return baseline && baseline->count.calls == entry->count.calls ? 0 : -EAGAIN;
}

/*
 * A time and the counts up to it: read before and after, until they are the same. Where calls never stop, those that begin between
 * reading and time are counted and not recorded: open ones, which are reported as a loss.
 */
static int read_baselines(struct joining *joining, struct kern *kern)
{
	int error = -EAGAIN;
	__u64 read;

	for (unsigned int tries = 0; error == -EAGAIN && tries < READ_TRIES; tries++) {
		baselines_drop(joining);
		error = kern_counts(kern, joining_baseline, joining);
		if (error)
			return error;
		read = clock_monotonic();
		while ((joining->since = clock_monotonic()) < read + SETTLE_TIME)
			;
		error = kern_counts(kern, on_compared, joining);
	}
	return error == -EAGAIN ? 0 : error;
}

void joining_init(struct joining *joining, struct collector *collector)
{
	*joining = (struct joining){ .collector = collector };
	link_init(&joining->all);
}

int joining_begin(struct joining *joining, struct collector *collector)
{
	joining_init(joining, collector);
	return read_baselines(joining, collector->kern);
}

void joining_free(struct joining *joining)
{
	if (!joining->collector)
		return;
	baselines_drop(joining);
	map_free(&joining->baselines);
	*joining = (struct joining){};
}

/* ---- what comes later ---- */

/* Of those that began before, only what defines programs, regions and queues: it was counted. */
static const struct xpt_record_header *pass_call(struct joining *joining, const struct xpt_record_call *call)
{
	const struct registry *registry = joining->collector->registry;
	struct baseline *baseline;
	struct xpt_program_key key;

	if (call->start >= joining->since)
		return &call->header;
	if (call->header.time <= joining->since || !is_control(registry, call->spec))
		return NULL;
	key = selection_key(&registry->specs[call->spec]->wire, call);
	baseline = call->flags & XPT_CALL_LAYER ? NULL : baseline_find(joining, &key);
	if (baseline && baseline->count.calls)
		baseline->count.calls--;
	return &call->header;
}

/* The counts of a handle begin anew with the next program that gets it. */
static const struct xpt_record_header *pass_total(struct joining *joining, const struct xpt_record_total *total)
{
	struct baseline *baseline = baseline_find(joining, &total->key);
	struct xpt_program_count *count = &joining->total.count;

	if (total->header.time <= joining->since)
		return NULL;
	if (!baseline)
		return &total->header;
	joining->total = *total;
	count->calls -= baseline->count.calls;
	count->left_out -= baseline->count.left_out;
	count->lost -= baseline->count.lost;
	count->layers -= baseline->count.layers;
	baseline_drop(joining, baseline);
	return count->calls || count->layers ? &joining->total.header : NULL;
}

/* The thread does not wait for this consumer. */
static void skip_code(const struct joining *joining, const struct xpt_record_code *code)
{
	if (joining->codes && code->ticket)
		collector_code_answer(joining->collector, (pid_t)code->header.tgid, code->ticket);
}

const struct xpt_record_header *joining_pass(struct joining *joining, const struct xpt_record_header *record)
{
	bool later = record->time > joining->since;

	switch (record->kind) {
	case XPT_RECORD_CALL:
		return pass_call(joining, (const void *)record);
	case XPT_RECORD_TOTAL:
		return pass_total(joining, (const void *)record);
	case XPT_RECORD_STRING:
		later = ((const struct xpt_record_string *)record)->call_start >= joining->since ||
			is_control(joining->collector->registry, ((const struct xpt_record_string *)record)->spec);
		break;
	case XPT_RECORD_REGION:
		later = ((const struct xpt_record_region *)record)->start >= joining->since;
		break;
	case XPT_RECORD_IOCTL:
		later = ((const struct xpt_record_ioctl *)record)->start >= joining->since;
		break;
	case XPT_RECORD_STACK_SAMPLE:
		later = ((const struct xpt_record_stack_sample *)record)->call_start >= joining->since;
		break;
	case XPT_RECORD_OFF_CPU:
		later = ((const struct xpt_record_off_cpu *)record)->start >= joining->since;
		break;
	case XPT_RECORD_CODE:
		if (!later)
			skip_code(joining, (const void *)record);
		break;
	case XPT_RECORD_TASK:
	case XPT_RECORD_EVENT:
	case XPT_RECORD_CLIENT_EXIT:
	case XPT_RECORD_READING:
	case XPT_RECORD_WAITED:
	case XPT_RECORD_LOST:
	case XPT_RECORD_BUDGET: /* what was in force then has come before */
	case XPT_RECORD_CODE_PIECE:
		break;
	default: /* what defines others */
		return record;
	}
	return later ? record : NULL;
}

static void pass_all(const struct text *records, record_fn record, void *context)
{
	const struct xpt_record_header *header;

	for (size_t at = 0; at < records->length; at += header->size) {
		header = (const void *)(records->data + at);
		record(context, header);
	}
}

int joining_state(const struct joining *joining, struct statedump *dump, record_fn record, void *context)
{
	const __u64 dropped = dump->past.context.dropped;
	const struct known_string *string;
	struct xpt_record_lost lost;
	struct text text = {};
	int error = past_settle(&dump->past, joining->since) ? -ENOMEM : 0;

	context_write(&dump->past.context, joining->since, &text);
	link_for_each(string, &dump->strings, link)
		text_bytes(&text, &string->record, string->record.header.size);
	error = error ?: text.error;
	if (!error)
		pass_all(&text, record, context);
	text_free(&text);
	if (!error && dropped) {
		lost = records_loss(joining->collector, XPT_LOSS_NAMES, dropped);
		record(context, &lost.header);
	}
	return error;
}

int joining_held(struct text *held, record_fn record, void *context)
{
	int error = held->error;

	if (!error)
		pass_all(held, record, context);
	text_free(held);
	return error;
}
