/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/handle/state.h"

/* ---- what an event means to the runs that are for its program ---- */

/* The program's row in the report; NULL: no memory, which is reported. */
static struct row *row_get(struct member *member, struct report *report)
{
	const struct entry *entry = member->entry;

	if (member->serial == report->serial)
		return member->row;
	member->row = report_row(report, entry->identity);
	member->serial = member->row ? report->serial : 0;
	if (!member->row)
		log_out_of_memory(member->run->handle->profiling);
	else if (entry->released && entry->released <= report->end)
		member->row->released = true;
	return member->row;
}

/* Is it one of those that the run samples? */
static bool run_selects(const struct run *run, bool numbered, __u64 number)
{
	const struct handle_options *options = &run->handle->options;

	return !options->stream || options->sample_every == 1 || !numbered || number % options->sample_every == 0;
}

/* Sets run->sampled if it became a sample. */
static void add_sample(struct run *run, struct report *report, struct row *row, const struct inference *inference)
{
	run->sampled = false;
	row->inferences++;
	if (!run_selects(run, inference->numbered, inference->sample.number))
		return;
	if (inference->unpaired) {
		row->lost++;
		return;
	}
	run->sampled = report_add_sample(report, row, &inference->sample);
}

static void accumulate_for_stream(struct member *member, const struct inference *inference)
{
	struct report *report = intervals_at(member->run, inference->end);
	struct row *row = report ? row_get(member, report) : NULL;

	if (!row)
		return;
	add_sample(member->run, report, row, inference);
	if (inference->end <= report->start)
		report->late += member->run->sampled;
	else if (report->latest < inference->end)
		report->latest = inference->end;
}

/* From here on the others are not of interest. */
static void bind(struct run *run, const struct entry *entry)
{
	struct member *member, *following;

	run->bound = entry->identity->id;
	link_for_each_safe(member, following, &run->members, of_run) {
		if (member->entry != entry)
			member_free(member);
	}
	run->handle->profiling->rates_stale = true;
}

static bool is_left_out(struct member *member, const struct inference *inference)
{
	struct run *run = member->run;

	if (run->ended && (run->reason == XPT_PROFILE_COMPLETE || inference->end > run->end))
		return true;
	if (run->bound && run->bound != member->entry->identity->id)
		return true;
	if (inference->start >= run->from)
		return false;
	member->ran |= inference->end > run->start;
	return true;
}

static void accumulate_for_counted(struct member *member, const struct inference *inference)
{
	struct run *run = member->run;
	const struct handle_options *options = &run->handle->options;
	struct report *report = link_alone(&run->reports) ? NULL : link_first(&run->reports, struct report, link);
	struct row *row;

	if (!report || is_left_out(member, inference))
		return;
	if (!run->bound)
		bind(run, member->entry);
	row = row_get(member, report);
	if (!row)
		return;
	if (run->skipped < options->skip) {
		row->skipped = ++run->skipped;
		return;
	}
	add_sample(run, report, row, inference);
	if (inference->unpaired)
		return;
	if (report->latest < inference->end)
		report->latest = inference->end;
	if (run->sampled && !run->first_taken)
		run->first_taken = inference->start;
	/* One that had no room counts, too: else the run would not end. */
	if (++run->count >= options->samples && !run->ended)
		run_end(run, XPT_PROFILE_COMPLETE, report->latest);
}

static void entry_count(struct entry *entry, const struct inference *inference)
{
	entry->active = true;
	if (inference->unpaired)
		return;
	entry->recorded++;
	entry->errors += inference->sample.failed;
	if (inference->unended)
		return;
	entry->timed++;
	entry->duration += (double)(inference->end - inference->start);
}

void accumulate_inference(struct profiling *profiling, struct entry *entry, const struct inference *inference)
{
	struct inference copy = *inference;
	struct member *member, *following;

	/* Its end is unknown: it belongs to where it was given up. */
	if (copy.unpaired || copy.unended)
		copy.end = profiling->now;
	if (!copy.numbered)
		copy.sample.number = entry->recorded;
	/* Of those that are left out nobody knows how many wait. */
	copy.sample.has_in_queue &= rates_are_full(profiling);
	entry_count(entry, &copy);
	link_for_each_safe(member, following, &entry->members, of_entry) {
		if (copy.end > member->until)
			continue;
		if (member->run->handle->options.stream)
			accumulate_for_stream(member, &copy);
		else
			accumulate_for_counted(member, &copy);
	}
}

/* It comes when its call has ended and it was unwound: the report of its own time may have been closed. */
void accumulate_stack(struct entry *entry, const struct event_stack *stack)
{
	struct member *member;

	link_for_each(member, &entry->members, of_entry) {
		struct report *report = NULL;
		struct row *row;

		if (member->run->handle->options.stacks && stack->time <= member->until)
			report = intervals_at(member->run, stack->time);
		row = report ? row_get(member, report) : NULL;
		if (row)
			report_add_stack(report, row, stack);
	}
}

/*
 * What was left out or lost was never reported one by one. Where the kernel records more than a stream wants, for
 * another one, which of those lost it would have taken is not known: they all count as lost.
 */
void accumulate_count(struct entry *entry, const struct event_count *count)
{
	__u64 amount = count->delta.left_out + count->delta.lost;
	struct report *report;
	struct member *member;
	struct row *row;

	entry->active |= count->delta.calls != 0;
	if (!amount)
		return;
	link_for_each(member, &entry->members, of_entry) {
		if (count->time > member->until || (member->baseline && count->time <= member->baseline))
			continue;
		if (!member->run->handle->options.stream && member->run->bound != entry->identity->id)
			continue;
		report = intervals_of_count(member->run, count);
		row = report ? row_get(member, report) : NULL;
		if (!row)
			continue;
		row->inferences += amount;
		row->lost += count->delta.lost;
	}
}

/* Is there another program that the run may still be bound to? */
static bool has_others(const struct run *run, const struct entry *entry)
{
	const struct member *member;

	link_for_each(member, &run->members, of_run)
		if (member->entry != entry && !member->entry->released)
			return true;
	return false;
}

static void release_for_stream(struct member *member, __u64 time)
{
	struct report *report = time > member->until ? NULL : intervals_at(member->run, time);
	struct row *row = report ? row_get(member, report) : NULL;

	if (row)
		row->released = true;
}

static void release_for_counted(struct member *member, __u64 time)
{
	struct run *run = member->run;
	struct row *row;

	if (run->ended || time <= run->start || link_alone(&run->reports))
		return;
	/* All that it did was left out by the delay, and nothing else is there to be waited for. */
	if (!run->bound && member->ran && !has_others(run, member->entry))
		bind(run, member->entry);
	if (run->bound != member->entry->identity->id)
		return;
	run_end(run, XPT_PROFILE_RELEASED, time);
	row = row_get(member, link_first(&run->reports, struct report, link));
	if (row)
		row->released = true;
}

void accumulate_release(struct profiling *profiling, struct entry *entry, __u64 time)
{
	struct member *member, *following;

	program_index_release(&profiling->programs, entry, time, profiling->now);
	rates_forget(profiling, entry);
	link_for_each_safe(member, following, &entry->members, of_entry) {
		if (member->run->handle->options.stream)
			release_for_stream(member, time);
		else
			release_for_counted(member, time);
	}
}

/* ---- events for the traces of runs ---- */

static const struct model_program *program_of(const struct event *event)
{
	switch (event->kind) {
	case EVENT_CALL:
		return event->call.program;
	case EVENT_INFERENCE:
		return event->inference.program;
	case EVENT_PROGRAM:
		return event->program.program;
	case EVENT_REGION:
		return event->region.program;
	default:
		return NULL;
	}
}

static struct member *member_of(const struct run *run, const struct event *event)
{
	const struct model_program *program = program_of(event);
	const struct entry *entry = program ? program_index_find(&run->handle->profiling->programs, program->id) : NULL;
	struct member *member = entry ? selection_find(entry, run) : NULL;

	if (!member || event_time(event) > member->until)
		return NULL;
	return run->bound && run->bound != program->id ? NULL : member;
}

/* It begins an inference, the end of which is reported later. */
static bool begins_inference(const struct event *event)
{
	return event->kind == EVENT_CALL && event->call.flow_out && !event->call.layer;
}

/* Inferences end in the order in which they began, or nearly so: those that a counted run will take are about these. */
static bool counted_wants_begin(const struct run *run, const struct event_call *call)
{
	const struct handle_options *options = &run->handle->options;

	return !run->ended && call->start >= run->from && run->enqueued > options->skip &&
	       run->enqueued <= options->skip + options->samples;
}

static bool call_wanted(const struct run *run, const struct event *event)
{
	const struct event_call *call = &event->call;

	switch (call->function->role) {
	case XPT_ROLE_PROGRAM_LOAD:
	case XPT_ROLE_PROGRAM_READY:
	case XPT_ROLE_PROGRAM_NAME:
	case XPT_ROLE_PROGRAM_UNLOAD:
		return true;
	case XPT_ROLE_ENQUEUE:
	case XPT_ROLE_LAUNCH:
		if (!begins_inference(event))
			return false;
		if (!run->handle->options.stream)
			return counted_wants_begin(run, call);
		return run_selects(run, call->numbered, call->number);
	default:
		return false;
	}
}

bool trace_wants(void *context, const struct event *event)
{
	const struct run *run = context;
	struct inference inference;

	if (inference_read(event, &inference))
		return run->sampled;
	if (!member_of(run, event))
		return false;
	if (event->kind == EVENT_CALL)
		return call_wanted(run, event);
	return event->kind == EVENT_PROGRAM;
}

static void accumulate_trace(struct run *run, const struct event *event, __u64 time)
{
	struct profiling *profiling = run->handle->profiling;
	struct report *report = intervals_at(run, time);
	struct trace_text *text = report ? report_trace(report, profiling->names) : NULL;
	__u64 lost = 0;

	if (begins_inference(event) && event->call.start >= run->from && member_of(run, event))
		run->enqueued++;
	if (trace_event(run->trace, event, text, &lost))
		log_out_of_memory(profiling);
	run->sampled = false;
	if (report)
		report->trace_lost += lost;
	if (text)
		report_trace_grown(report);
}

/* A job is emitted when the call that has submitted it is known, and belongs to the same document. */
static __u64 place_of(const struct profiling *profiling, const struct event *event, __u64 time)
{
	return time && event->kind != EVENT_JOB ? time : profiling->now;
}

void accumulate_traces(struct profiling *profiling, const struct event *event, __u64 time)
{
	struct run *run;

	link_for_each(run, &profiling->runs, link) {
		if (run->trace)
			accumulate_trace(run, event, place_of(profiling, event, time));
	}
}

#define FIRST_ROOM 4 /* samples: many programs run a few times only */
/* Estimates of what is not allocated here: histograms of a program, the events of one traced inference. */
#define LATENCIES_BYTES 2048
#define TRACED_BYTES 1024
#define ROW_STACK_BYTES 1024
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
	row_stacks_free(row->stacks);
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
	uint64_t duration;

	if (!sample_fits(report, row)) {
		row->lost++;
		return false;
	}
	if (report->rows_wanted)
		row->samples[row->count++] = *sample;
	row->taken++;
	row->failed += sample->failed;
	row->timed += sample->jobs && sample->device_time; /* 0 as long as a job has not ended */
	row->queue_time += sample->queue_time;
	row->device_time += sample->device_time;
	xpt_latencies_add(row->latencies, sample);
	if (!xpt_sample_column(sample, XPT_COLUMN_TOTAL_ROUND_TRIP, &duration) && duration >= row->slowest_duration) {
		row->slowest_number = sample->number;
		row->slowest_time = sample->time[XPT_TIME_CALL_ENDS];
		row->slowest_duration = duration;
	}
	return true;
}

void report_add_stack(struct report *report, struct row *row, const struct event_stack *stack)
{
	if (row->identity)
		report_charge(report, row_stacks_add(&row->stacks, stack, budget_has(report->budget, ROW_STACK_BYTES)));
}

struct trace_text *report_trace(struct report *report, struct trace_names *names)
{
	if (!budget_has(report->budget, TRACED_BYTES))
		return NULL;
	if (!report->trace) {
		report->trace = trace_text_create(names, report->packets);
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

static int fill_program(struct report *report, struct xpt_program_report *program, struct row *row,
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
		.timed = row->timed,
		.queue_time = row->queue_time,
		.device_time = row->device_time,
		.stack_size = sizeof(*program->stacks),
		.slowest_number = row->slowest_number,
		.slowest_time = row->slowest_time,
		.slowest_duration = row->slowest_duration,
	};
	if (!identity)
		return 0;
	program->id = identity->id;
	program->pid = (pid_t)identity->tgid;
	program->handle = identity->handle;
	program->generation = identity->generation;
	program->is_kernel = identity->kernel;
	if (!row->stacks || row_stacks_finish(row->stacks, program))
		return row->stacks ? -ENOMEM : 0;
	report_charge(report, row_stacks_bytes(row->stacks));
	return 0;
}

/* A document without events is one, too. */
static int trace_finish(struct report *report, struct trace_names *names, const struct recording_info *info)
{
	int error;

	if (!report->trace)
		report->trace = trace_text_create(names, report->packets);
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
	int error = 0;

	report->programs = calloc(report->row_count ?: 1, sizeof(*report->programs));
	if (!report->programs)
		return -ENOMEM;
	link_for_each_safe(row, following, &report->rows, link) {
		row_trim(report, row);
		error = fill_program(report, &report->programs[i++], row, request) ?: error;
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
	if (!error && report->traced)
		error = trace_finish(report, names, options->info);
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
