/* SPDX-License-Identifier: BSD-2-Clause */
/* From the rings to the output: what is for the collector is looked at on the way, the rest is passed on as it came. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "session/private.h"

/* ns: a call that is left out by sampling costs its entry probe only (README, "What it costs"). */
#define LEFT_OUT_COST 620

static void pass_on(struct xpt_recording *recording, const struct xpt_record_header *record)
{
	output_record(recording->output, record);
}

static size_t sites_placed(const struct xpt_recording *recording)
{
	const size_t *sites = attacher_figures(recording->attacher)->sites;

	return sites[SITE_OPTIMISED] + sites[SITE_EMULATED] + sites[SITE_STEPPED];
}

static void on_call(struct xpt_recording *recording, const struct xpt_record_call *call)
{
	size_t before = call->flags & XPT_CALL_HELD ? sites_placed(recording) : 0;
	bool own = attacher_record(recording->attacher, &call->header);

	if (call->flags & XPT_CALL_HELD)
		targets_continue(recording, call->header.tgid, call->header.time, 0, sites_placed(recording) - before);
	if (own)
		return;
	pass_on(recording, &call->header);
	recording->calls++;
	if (call->flags & XPT_CALL_LAYER)
		return;
	recording->closed++;
	if (call->spec < recording->registry->spec_count)
		recording->spec_calls[call->spec]++;
}

static void on_total(struct xpt_recording *recording, const struct xpt_record_total *total)
{
	if (total->key.spec > recording->registry->spec_count)
		return; /* of the collector's own specs */
	recording->counted += total->count.calls - total->count.left_out - total->count.lost;
	recording->left_out += total->count.left_out;
	pass_on(recording, &total->header);
}

static int on_record(void *context, const struct xpt_record_header *record)
{
	struct xpt_recording *recording = context;

	switch (record->kind) {
	case XPT_RECORD_CALL:
		on_call(recording, (const void *)record);
		break;
	case XPT_RECORD_STRING:
		attacher_record(recording->attacher, record);
		pass_on(recording, record);
		break;
	case XPT_RECORD_TASK:
		targets_task(recording, (const void *)record);
		break;
	case XPT_RECORD_TOTAL:
		on_total(recording, (const void *)record);
		break;
	default:
		pass_on(recording, record);
	}
	return 0;
}

void records_drain(struct xpt_recording *recording)
{
	int result = kern_drain(recording->kern, on_record, recording);

	if (result < 0 && !recording->error)
		recording->error = result;
}

void records_lost(struct xpt_recording *recording, enum xpt_loss cause, __u64 count)
{
	struct xpt_record_lost record = {
		.header = { XPT_RECORD_LOST, sizeof(record), 0, clock_monotonic() },
		.since = recording->last_loss_time ?: recording->started,
		.count = count,
		.cause = cause,
	};

	recording->lost += count;
	pass_on(recording, &record.header);
}

void records_losses(struct xpt_recording *recording)
{
	__u64 losses[XPT_LOSS_MAX];

	if (kern_losses(recording->kern, losses))
		return;
	for (unsigned int cause = 0; cause < XPT_LOSS_MAX; cause++) {
		if (losses[cause] > recording->losses[cause])
			records_lost(recording, cause, losses[cause] - recording->losses[cause]);
		recording->losses[cause] = losses[cause];
	}
	recording->last_loss_time = clock_monotonic();
}

static int on_count(void *context, const struct xpt_program_key *key, const struct xpt_program_count *count)
{
	struct xpt_recording *recording = context;
	struct xpt_record_total record = {
		.header = { XPT_RECORD_TOTAL, sizeof(record), key->tgid, clock_monotonic() },
		.key = *key,
		.count = *count,
	};

	on_total(recording, &record);
	return 0;
}

void records_totals(struct xpt_recording *recording, pid_t tgid)
{
	kern_totals(recording->kern, tgid, true, on_count, recording);
}

static const char *end_name(enum xpt_end end)
{
	switch (end) {
	case XPT_END_STOPPED:
		return "stopped";
	case XPT_END_DURATION:
		return "duration";
	case XPT_END_TARGETS:
		return "targets ended";
	case XPT_END_OUTPUT:
		return "output failed";
	}
	return "error";
}

static cJSON *end_json(struct xpt_recording *recording)
{
	const struct attacher_figures *figures = attacher_figures(recording->attacher);
	cJSON *object = cJSON_CreateObject(), *part;
	struct rusage usage;
	__u64 calls = 0, cost = 0;

	for (size_t i = 0; i < recording->registry->spec_count; i++) {
		calls += recording->spec_calls[i];
		cost += recording->spec_calls[i] * attacher_cost(recording->attacher, i);
	}
	calls += recording->left_out;
	cost += recording->left_out * LEFT_OUT_COST;
	getrusage(RUSAGE_SELF, &usage);
	cJSON_AddNumberToObject(object, "duration_ns", recording->ended - recording->started);
	cJSON_AddStringToObject(object, "stopped_by", end_name(recording->ended_by));
	cJSON_AddStringToObject(object, "link", link_kind_name(kern_link_kind(recording->kern)));
	cJSON_AddNumberToObject(object, "attach_ns", figures->attach_time);
	cJSON_AddNumberToObject(object, "detach_ns", figures->detach_time);
	part = cJSON_AddObjectToObject(object, "sites");
	for (unsigned int class = SITE_OPTIMISED; class <= SITE_STEPPED; class ++)
		cJSON_AddNumberToObject(part, site_class_name(class), figures->sites[class]);
	cJSON_AddNumberToObject(part, "refused", figures->refused);
	part = cJSON_AddObjectToObject(object, "collector");
	cJSON_AddNumberToObject(part, "cpu_ns",
				(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e9 +
					(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3);
	cJSON_AddNumberToObject(part, "max_rss_bytes", usage.ru_maxrss * 1024.0);
	part = cJSON_AddObjectToObject(object, "target");
	cJSON_AddNumberToObject(part, "calls", calls);
	cJSON_AddNumberToObject(part, "cost_ns", cost);
	return object;
}

void records_end(struct xpt_recording *recording)
{
	struct xpt_record_header pass = { XPT_RECORD_PASS, sizeof(pass), 0, 0 };
	struct xpt_record_text *record;
	cJSON *object;
	char *text;

	if (recording->counted > recording->closed)
		records_lost(recording, XPT_LOSS_OPEN, recording->counted - recording->closed);
	object = end_json(recording);
	text = cJSON_PrintUnformatted(object);
	record = record_text(XPT_RECORD_END, 0, clock_monotonic(), 0, text ?: "{}");
	if (record)
		pass_on(recording, &record->header);
	free(record);
	cJSON_free(text);
	cJSON_Delete(object);
	/* Nothing comes after: the second of two passes releases everything. */
	for (int i = 0; i < 2; i++) {
		pass.time = clock_monotonic();
		pass_on(recording, &pass);
	}
}
