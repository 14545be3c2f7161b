/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records that ask for something: probes, names that are read from memory, a thread that waits. They are kept while the rings are
 * drained, and dealt with behind it, in their order.
 */
#include <string.h>

#include "base/core/clock.h"
#include "base/core/vec.h"
#include "session/collect/collector.h"

#define KEPT_BYTES (256u << 10) /* of an empty queue */

/* Followed by a copy of the record. */
struct request {
	__u64 hold_from, loaded; /* of the collector, when the record came */
	__u64 names;		 /* NAME_*: the record has been passed on; 0: it has not */
};

size_t collector_sites(const struct collector *collector)
{
	const size_t *sites = attacher_figures(collector->attacher)->sites;

	return sites[SITE_OPTIMISED] + sites[SITE_EMULATED] + sites[SITE_STEPPED];
}

void requests_add(struct collector *collector, const struct xpt_record_header *record, unsigned int names)
{
	const struct request request = { collector->hold_from, collector->loaded, names };

	if (text_reserve(&collector->requests, sizeof(request) + record->size)) {
		if (!collector->error)
			collector->error = -ENOMEM;
		return;
	}
	text_bytes(&collector->requests, &request, sizeof(request));
	text_bytes(&collector->requests, record, record->size);
}

/* ---- code objects: a thread may wait for several readers ---- */

static size_t ticket_find(const struct collector *collector, __u64 ticket)
{
	size_t at = 0;

	while (at < collector->code_ticket_count && collector->code_tickets[at].ticket != ticket)
		at++;
	return at;
}

void collector_code_passed(struct collector *collector, const struct xpt_record_code *code)
{
	struct code_ticket *tickets = collector->code_tickets;
	size_t kept = 0;

	if (!code->ticket || collector->code_readers < 2)
		return;
	/* Those that were resumed at their deadline are not waited for. */
	for (size_t at = 0; at < collector->code_ticket_count; at++)
		if (kern_waits(collector->kern, tickets[at].ticket))
			tickets[kept++] = tickets[at];
	collector->code_ticket_count = kept;
	/* Without memory the first answer is the last one. */
	vec_push(collector->code_tickets, collector->code_ticket_count,
		 (struct code_ticket){ code->ticket, collector->code_readers });
}

bool collector_code_answer(struct collector *collector, pid_t tgid, __u64 ticket)
{
	size_t at = ticket_find(collector, ticket);

	if (at < collector->code_ticket_count) {
		if (--collector->code_tickets[at].missing)
			return kern_waits(collector->kern, ticket);
		collector->code_tickets[at] = collector->code_tickets[--collector->code_ticket_count];
	}
	return collector_answer(collector, tgid, ticket);
}

/* ---- probes ---- */

/* A thread has waited since the record until it has its probes: sites of them are new. */
static void answer(struct collector *collector, const struct xpt_record_header *record, __u32 tid, __u64 ticket,
		   size_t sites)
{
	struct xpt_record_waited waited = {
		.header = { XPT_RECORD_WAITED, sizeof(waited), record->tgid, 0 },
		.start = record->time,
		.sites = sites,
		.tid = tid,
	};

	collector_answer(collector, record->tgid, ticket);
	waited.header.time = clock_monotonic();
	log_debug(&collector->log, "PID %u has waited %.3f ms for %zu probes", record->tgid,
		  (double)(waited.header.time - record->time) / 1e6, sites);
	if (sites)
		collector_pass(collector, &waited.header);
}

/* A call that may bring probes. Whether it was only for the collector. */
static bool place_probes(struct collector *collector, const struct xpt_record_call *call)
{
	size_t before = collector_sites(collector), unplaced = attacher_figures(collector->attacher)->unplaced;
	bool own = attacher_record(collector->attacher, &call->header), late = false;

	if (call->flags & XPT_CALL_WAITS)
		answer(collector, &call->header, call->tid,
		       ((const __u64 *)call)[call->header.size / sizeof(__u64) - 1],
		       collector_sites(collector) - before);
	else /* what was handed out may have been called already */
		late = !own && collector_sites(collector) > before;
	if (late || attacher_figures(collector->attacher)->unplaced > unplaced)
		records_lost(collector, XPT_LOSS_LATE_PROBES, 1);
	return own;
}

static void on_caller(struct collector *collector, const struct xpt_record_caller *caller)
{
	size_t before = collector_sites(collector);

	if (!caller->callback)
		attacher_caller(collector->attacher, caller);
	else if (attacher_callback(collector->attacher, caller))
		records_lost(collector, XPT_LOSS_CALLBACKS, 1);
	else if (!caller->ticket && collector_sites(collector) > before) /* it may have been called already */
		records_lost(collector, XPT_LOSS_LATE_PROBES, 1);
	if (caller->ticket)
		answer(collector, &caller->header, caller->tid, caller->ticket, collector_sites(collector) - before);
}

/* ---- names ---- */

/*
 * What comes first from the rings need not be the first call: a name holds from the time up to which all records had been passed on,
 * or from the last unload of a program, and for the call that asked for it, which may have come late. But not before the process runs the
 * program that has it.
 */
static void pass_name(struct collector *collector, const struct request *request, const struct xpt_record_call *call,
		      struct xpt_record_text *name)
{
	__u64 began = name ? targets_began(collector, (pid_t)name->header.tgid) : 0;

	if (!name)
		return;
	if (name->header.time > call->start)
		name->header.time = call->start;
	if (name->header.time < began)
		name->header.time = began;
	if (name->header.kind == XPT_RECORD_LOADED && name->header.time < request->loaded)
		name->header.time = request->loaded;
	collector_pass_text(collector, name);
}

static void read_names(struct collector *collector, const struct request *request, const struct xpt_record_call *call)
{
	struct attacher *attacher = collector->attacher;
	__u64 time = request->hold_from;

	if (request->names & NAME_NODE)
		pass_name(collector, request, call,
			  objects_node(attacher, (pid_t)call->header.tgid, time, call->value[0], call->value[1]));
	if (request->names & NAME_PROGRAM)
		pass_name(collector, request, call,
			  objects_program(&collector->objects, attacher, collector->registry, call, time));
	if (request->names & NAME_SYMBOL)
		pass_name(collector, request, call,
			  launch_symbols_name(collector->launch_symbols, attacher_elf_cache(attacher), time, call));
}

/* ---- the queue ---- */

static void on_call(struct collector *collector, const struct xpt_record_call *call)
{
	if (place_probes(collector, call))
		return;
	if (collector->registry->specs[call->spec]->wire.role == XPT_ROLE_PROGRAM_LOAD)
		objects_load(&collector->objects, collector->attacher, collector->registry, call);
	records_pass_call(collector, call);
}

static void on_request(struct collector *collector, const struct request *request,
		       const struct xpt_record_header *record)
{
	if (request->names) {
		read_names(collector, request, (const void *)record);
		return;
	}
	switch (record->kind) {
	case XPT_RECORD_CALL:
		on_call(collector, (const void *)record);
		break;
	case XPT_RECORD_CALLER:
		on_caller(collector, (const void *)record);
		break;
	case XPT_RECORD_STRING:
		attacher_record(collector->attacher, record);
		objects_string(&collector->objects, collector->registry, (const void *)record);
		collector_pass(collector, record);
		break;
	case XPT_RECORD_TASK:
		targets_task(collector, (const void *)record);
		break;
	case XPT_RECORD_TOTAL:
		records_pass_total(collector, (const void *)record);
		break;
	default:
		collector_pass(collector, record);
	}
}

/* The data rings are drained meanwhile, which may add more: not without end, as names are asked for once. */
void requests_work(struct collector *collector)
{
	struct text taken;

	while (collector->requests.length) {
		taken = collector->requests;
		collector->requests = collector->spare_requests;
		for (size_t at = 0; at < taken.length;) {
			const struct request *request = (const void *)(taken.data + at);
			const struct xpt_record_header *record = (const void *)(request + 1);

			on_request(collector, request, record);
			at += sizeof(*request) + record->size;
			records_drain_beside(collector);
		}
		text_clear(&taken, KEPT_BYTES);
		collector->spare_requests = taken;
	}
}
