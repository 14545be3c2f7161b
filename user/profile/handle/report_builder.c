/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/handle/state.h"

#define FIRST_ROOM 4 /* samples: many programs run a few times only */
/* Estimates of what is not allocated here: histograms of a program, the events of one traced inference. */
#define LATENCIES_BYTES 2048
#define TRACED_BYTES 1024
#define SPARE_ROOM 256	  /* samples: smaller arrays are left to malloc() */
#define REPORT_BYTES 4096 /* a report with few programs */

static bool budget_has(const struct budget *budget, size_t bytes)
{
	return budget->used < budget->limit && bytes <= budget->limit - budget->used;
}

static void report_charge(struct report *report, size_t bytes)
{
	report->bytes += bytes;
	report->budget->used += bytes;
}

static void report_credit(struct report *report, size_t bytes)
{
	report->bytes -= bytes;
	report->budget->used -= bytes;
}

bool budget_has_room(const struct budget *budget)
{
	return budget->finished + REPORT_BYTES <= budget->limit;
}

struct report *report_create(struct budget *budget, const char *name)
{
	size_t length = strlen(name) + 1;
	struct report *report = calloc(1, sizeof(*report) + length);

	if (!report)
		return NULL;
	memcpy(report->name, name, length);
	report->budget = budget;
	link_init(&report->link);
	link_init(&report->rows);
	report_charge(report, sizeof(*report) + length);
	return report;
}

/* ---- arrays of freed reports, for the next ones ---- */

/* Lies in the array itself. */
struct spare {
	struct spare *next;
	size_t room;
};

static unsigned int spare_size(size_t room)
{
	return 63 - (unsigned int)__builtin_clzll(room);
}

/* Pages that are there already: at hundreds of thousands of samples a second new ones would be most of the cost. */
static void spare_keep(struct budget *budget, struct xpt_sample *samples, size_t room)
{
	struct spare *spare = (struct spare *)samples;
	unsigned int size;

	if (room < SPARE_ROOM || budget->spare_bytes + room * sizeof(*samples) > budget->limit / 4 ||
	    spare_size(room) >= BUDGET_SPARE_SIZES) {
		free(samples);
		return;
	}
	size = spare_size(room);
	*spare = (struct spare){ .next = budget->spares[size], .room = room };
	budget->spares[size] = spare;
	budget->spare_bytes += room * sizeof(*samples);
}

/* One of at least that room; NULL: none. */
static struct spare *spare_take(struct budget *budget, size_t room)
{
	unsigned int size = spare_size(room);
	struct spare *spare;

	/* The first ones of a size may be smaller than room. */
	for (size += room > (size_t)1 << size; size < BUDGET_SPARE_SIZES; size++) {
		spare = budget->spares[size];
		if (!spare)
			continue;
		budget->spares[size] = spare->next;
		budget->spare_bytes -= spare->room * sizeof(struct xpt_sample);
		return spare;
	}
	return NULL;
}

void budget_settle(struct budget *budget)
{
	struct spare *spare;

	while ((spare = spare_take(budget, SPARE_ROOM)))
		free(spare);
}

/* Moves the row to a larger array that is there. False: there is none. */
static bool row_move(struct report *report, struct row *row)
{
	struct spare *spare = spare_take(report->budget, 2 * row->room);
	size_t more, room = spare ? spare->room : 0;

	if (!spare)
		return false;
	more = (room - row->room) * sizeof(*row->samples);
	if (!budget_has(report->budget, more)) {
		free(spare);
		return false;
	}
	memcpy(spare, row->samples, row->count * sizeof(*row->samples));
	free(row->samples);
	row->samples = (struct xpt_sample *)spare;
	row->room = room;
	report_charge(report, more);
	return true;
}

/* ---- rows ---- */

static void row_free(struct report *report, struct row *row)
{
	if (!row)
		return;
	identity_put(row->identity);
	xpt_latencies_free(row->latencies);
	spare_keep(report->budget, row->samples, row->room);
	free(row);
}

void report_free(struct report *report)
{
	struct row *row, *following;

	if (!report)
		return;
	link_remove(&report->link);
	link_for_each_safe(row, following, &report->rows, link)
		row_free(report, row);
	map_free(&report->by_id);
	trace_text_free(report->trace);
	free(report->programs);
	if (report->finished)
		report->budget->finished -= report->bytes;
	report_credit(report, report->bytes);
	free(report);
}

/* An entry of the view and the row; samples are counted as they come. */
static size_t row_bytes(void)
{
	return sizeof(struct row) + sizeof(struct xpt_program_report) + LATENCIES_BYTES;
}

static struct row *row_create(struct report *report, struct identity *identity)
{
	struct row *row = calloc(1, sizeof(*row));

	if (!row)
		return NULL;
	row->latencies = xpt_latencies_create();
	if (!row->latencies || (identity && map_add(&report->by_id, &row->node, identity->id, 0))) {
		row_free(report, row);
		return NULL;
	}
	row->identity = identity ? identity_get(identity) : NULL;
	link_append(&report->rows, &row->link);
	report->row_count++;
	report_charge(report, row_bytes());
	return row;
}

struct row *report_row(struct report *report, struct identity *identity)
{
	struct map_node *node = map_find(&report->by_id, identity->id, 0);

	if (node)
		return container_of(node, struct row, node);
	if (budget_has(report->budget, row_bytes()))
		return row_create(report, identity);
	if (!report->others)
		report->others = row_create(report, NULL);
	return report->others;
}

/* Doubles the room while the budget allows it, and takes what is left of it then. */
static bool row_grow(struct report *report, struct row *row)
{
	size_t more = row->room ? row->room : FIRST_ROOM, bytes;
	struct xpt_sample *samples;

	if (row->room >= SPARE_ROOM && row_move(report, row))
		return true;
	if (!budget_has(report->budget, more * sizeof(*samples)))
		more = budget_has(report->budget, FIRST_ROOM * sizeof(*samples)) ? FIRST_ROOM : 0;
	if (!more)
		return false;
	samples = realloc(row->samples, (row->room + more) * sizeof(*samples));
	if (!samples)
		return false;
	bytes = more * sizeof(*samples);
	row->samples = samples;
	row->room += more;
	report_charge(report, bytes);
	return true;
}

/* Programs without a row of their own are only counted: their samples would mean nothing together. */
static bool sample_fits(struct report *report, struct row *row)
{
	if (!row->identity)
		return false;
	if (report->rows_wanted)
		return row->count < row->room || row_grow(report, row);
	return !report->traced || budget_has(report->budget, TRACED_BYTES);
}

bool report_add_sample(struct report *report, struct row *row, const struct xpt_sample *sample)
{
	if (!sample_fits(report, row)) {
		row->lost++;
		return false;
	}
	if (report->rows_wanted)
		row->samples[row->count++] = *sample;
	row->taken++;
	row->failed += sample->failed;
	xpt_latencies_add(row->latencies, sample);
	return true;
}

struct trace_text *report_trace(struct report *report, struct trace_names *names)
{
	if (!budget_has(report->budget, TRACED_BYTES))
		return NULL;
	if (!report->trace) {
		report->trace = trace_text_create(names);
		if (report->trace)
			report_trace_grown(report);
	}
	return report->trace;
}

void report_trace_grown(struct report *report)
{
	size_t bytes = trace_text_bytes(report->trace);

	if (bytes >= report->trace_bytes)
		report_charge(report, bytes - report->trace_bytes);
	else
		report_credit(report, report->trace_bytes - bytes);
	report->trace_bytes = bytes;
}

/* Frees what was reserved for more samples. */
static void row_trim(struct report *report, struct row *row)
{
	struct xpt_sample *samples;

	if (row->count == row->room || !row->count)
		return;
	samples = realloc(row->samples, row->count * sizeof(*samples));
	if (!samples)
		return;
	report_credit(report, (row->room - row->count) * sizeof(*samples));
	row->samples = samples;
	row->room = row->count;
}

static void fill_program(struct xpt_program_report *program, const struct row *row,
			 const struct report_request *request)
{
	const struct identity *identity = row->identity;

	*program = (struct xpt_program_report){
		.process = identity ? identity->process : "",
		.runtime = identity ? identity->runtime : "",
		.name = identity ? identity->name : "(others)",
		.sample_every = request->sample_every,
		.requested = request->samples,
		.skipped = row->skipped,
		.samples = row->samples,
		.sample_count = row->count,
		.sample_size = sizeof(*row->samples),
		.inferences = row->inferences,
		.taken = row->taken,
		.lost = row->lost,
		.failed = row->failed,
		.released = row->released,
		.latencies = row->latencies,
	};
	if (!identity)
		return;
	program->id = identity->id;
	program->pid = (pid_t)identity->tgid;
	program->handle = identity->handle;
	program->generation = identity->generation;
}

/* A document without events is one, too. */
static int trace_finish(struct report *report, struct trace_names *names, const struct recording_info *info)
{
	int error;

	if (!report->trace)
		report->trace = trace_text_create(names);
	if (!report->trace)
		return -ENOMEM;
	error = trace_text_finish(report->trace, info, &report->view);
	report_trace_grown(report);
	return error;
}

int report_finish(struct report *report, const struct report_request *request, struct trace_names *names,
		  const struct profiling_options *options)
{
	struct xpt_profile_report *view = &report->view;
	struct row *row, *following;
	size_t i = 0;
	int error;

	report->programs = calloc(report->row_count ?: 1, sizeof(*report->programs));
	if (!report->programs)
		return -ENOMEM;
	link_for_each_safe(row, following, &report->rows, link) {
		row_trim(report, row);
		fill_program(&report->programs[i++], row, request);
	}
	view->size = sizeof(*view);
	view->type = request->type;
	view->name = report->name;
	view->start = report->start;
	view->end = report->end;
	view->start_realtime = report->start_realtime;
	view->end_realtime = report->end_realtime;
	view->late = report->late;
	view->programs = report->programs;
	view->program_count = report->row_count;
	view->program_size = sizeof(*report->programs);
	view->counters = options->counters;
	view->counter_count = options->counter_count;
	view->counter_size = sizeof(*options->counters);
	view->host = options->info ? options->info->host : "";
	error = report->traced ? trace_finish(report, names, options->info) : 0;
	report->finished = true;
	report->budget->finished += report->bytes;
	return error;
}

const struct xpt_profile_report *report_view(const struct report *report)
{
	return &report->view;
}

size_t report_bytes(const struct report *report)
{
	return report->bytes;
}
