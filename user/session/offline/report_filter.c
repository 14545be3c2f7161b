/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/offline/report_filter.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"
#include "base/core/options.h"
#include "base/core/vec.h"
#include "model/program/functions.h"
#include "profile/handle/choice.h"
#include "record/context.h"

#define BEFORE_BYTES (1u << 20) /* of changes of the budget that are in force */

/* Calls on a thread lie in one another or apart. */
struct found {
	__u32 tgid, tid, wait_tid;  /* wait_tid 0: it is synchronous */
	__u64 start, end, returned; /* returned: of the call or enqueue */
	union {
		flat_columns columns; /* with a value, the first time */
		__u64 covered;	      /* latest return of those that begin on the thread up to here, the second time */
	};
};

/* Where a wait has ended an asynchronous inference. */
struct wait {
	__u32 tgid, tid;
	__u64 end;
};

struct report_filter {
	const struct log *log;
	const struct xpt_report_options *options;
	const struct recording_info *info;
	__u64 from, to;		    /* CLOCK_MONOTONIC; to: behind it */
	bool window, choosing;	    /* from or to; programs, or the slowest */
	struct chooser *chooser;    /* NULL: all programs */
	struct functions functions; /* without a log: the model reports what is damaged */
	struct context before;	    /* which changes of the budget were in force when the window begins */
	bool second;		    /* what is searched for is known */
	int error;
	/* Sorted by thread and begin the second time. */
	struct found *all;
	size_t count;
	struct wait *waits;
	size_t wait_count;
	__u64 seen, selected;
	flat_columns columns;
};

static bool has_choices(const struct xpt_report_options *options)
{
	return options->program_count || options->match;
}

bool report_filter_is_active(const struct report_filter *filter)
{
	return filter->window || filter->choosing || filter->options->pid_count;
}

/* With pids alone all that is needed is in the records themselves. */
static bool keeps_inferences(const struct report_filter *filter)
{
	return filter->window || filter->choosing;
}

static int create_chooser(struct report_filter *filter)
{
	const struct xpt_report_options *options = filter->options;
	struct xpt_program_choice choice;
	int error = chooser_create(&(struct chooser_options){ .log = filter->log }, &filter->chooser);

	for (size_t i = 0; !error && i < options->program_count; i++) {
		error = options_copy_element(&choice, sizeof(choice), options->programs, options->program_size, i);
		error = error ?: chooser_add(filter->chooser, &choice);
	}
	if (!error && options->match)
		error = chooser_match(filter->chooser, options->match);
	return error;
}

int report_filter_create(const struct log *log, const struct xpt_report_options *options,
			 const struct recording_info *info, struct report_filter **result)
{
	struct report_filter *filter;
	int error = 0;

	if (options->slowest_percent < 0 || options->slowest_percent > 100) {
		log_error(log, "the slowest ones have to be more than 0 and at most 100 percent");
		return -EINVAL;
	}
	if (options->slowest > REPORT_INFERENCES_MAX) {
		log_error(log, "at most %u inferences can be the slowest ones", REPORT_INFERENCES_MAX);
		return -EINVAL;
	}
	if (options->to && options->to <= options->from) {
		log_error(log, "the report ends before it begins: --to has to be later than --from");
		return -EINVAL;
	}
	filter = calloc(1, sizeof(*filter));
	if (!filter)
		return -ENOMEM;
	context_init(&filter->before, BEFORE_BYTES);
	filter->log = log;
	filter->options = options;
	filter->info = info;
	filter->window = options->from || options->to;
	filter->choosing = has_choices(options) || options->slowest || options->slowest_percent > 0 || options->request;
	/* What was cut out of a longer recording has its clocks as they were at the end. */
	if (options->from && __builtin_add_overflow(info->monotonic_time, options->from, &filter->from))
		filter->from = UINT64_MAX;
	if (!options->to || __builtin_add_overflow(info->monotonic_time, options->to, &filter->to))
		filter->to = UINT64_MAX;
	if (has_choices(options))
		error = create_chooser(filter);
	if (error) {
		report_filter_free(filter);
		return error;
	}
	*result = filter;
	return 0;
}

void report_filter_free(struct report_filter *filter)
{
	if (!filter)
		return;
	chooser_free(filter->chooser);
	functions_free(&filter->functions);
	context_free(&filter->before);
	free(filter->all);
	free(filter->waits);
	free(filter);
}

/* ---- the first time: which inferences ---- */

static int add(struct report_filter *filter, const struct found *found)
{
	return filter->count < REPORT_INFERENCES_MAX ? vec_push(filter->all, filter->count, *found) : -E2BIG;
}

/* Of two that took as long the earlier one counts as slower. */
static bool is_faster(const struct found *left, const struct found *right)
{
	__u64 first = left->end - left->start, second = right->end - right->start;

	return first != second ? first < second : left->start > right->start;
}

/* The heap has the fastest on top, from which place on its order is to be restored. */
static void sink(struct found *all, size_t count, size_t at)
{
	for (;;) {
		size_t least = at, child = 2 * at + 1;
		struct found moved;

		for (size_t i = child; i < count && i < child + 2; i++) {
			if (is_faster(&all[i], &all[least]))
				least = i;
		}
		if (least == at)
			return;
		moved = all[at];
		all[at] = all[least];
		all[least] = moved;
		at = least;
	}
}

static int keep_slowest(struct report_filter *filter, const struct found *found)
{
	int error = 0;

	if (filter->count < filter->options->slowest) {
		error = add(filter, found);
		if (!error && filter->count == filter->options->slowest) {
			for (size_t i = filter->count; i--;)
				sink(filter->all, filter->count, i);
		}
	} else if (is_faster(&filter->all[0], found)) {
		filter->all[0] = *found;
		sink(filter->all, filter->count, 0);
	}
	return error;
}

static int by_slowness(const void *left, const void *right)
{
	return is_faster(left, right) ? 1 : is_faster(right, left) ? -1 : 0;
}

/* Of all that were kept. */
static void keep_percent(struct report_filter *filter)
{
	const double share = filter->count * (filter->options->slowest_percent / 100);
	const size_t most = share > 1 ? (size_t)share : 1;

	if (filter->count <= most)
		return;
	qsort(filter->all, filter->count, sizeof(*filter->all), by_slowness);
	filter->count = most;
}

static int keep(struct report_filter *filter, const struct found *found)
{
	if (filter->options->slowest)
		return keep_slowest(filter, found);
	filter->columns |= found->columns;
	filter->selected++;
	return keeps_inferences(filter) ? add(filter, found) : 0;
}

static bool is_of_process(const struct report_filter *filter, __u32 tgid)
{
	for (size_t i = 0; i < filter->options->pid_count; i++) {
		if ((__u32)filter->options->pids[i] == tgid)
			return true;
	}
	return !tgid || !filter->options->pid_count;
}

static __u32 process_of(const struct event *event)
{
	if (event->kind == EVENT_CALL)
		return event->call.tgid;
	return event->kind == EVENT_REGION ? event->region.tgid : event->inference.tgid;
}

/* Regions are inferences to those only who ask for them. */
static bool is_wanted(const struct report_filter *filter, const struct event *event, const struct inference *inference)
{
	if (inference->unpaired || inference->start < filter->from || inference->start >= filter->to ||
	    !is_of_process(filter, process_of(event)))
		return false;
	if (filter->options->request)
		return event->kind == EVENT_REGION && event->region.request &&
		       !strcmp(event->region.request, filter->options->request);
	if (filter->chooser)
		return chooser_wants(filter->chooser, inference->program);
	return event->kind != EVENT_REGION;
}

static int on_event(void *context, const struct event *event)
{
	struct report_filter *filter = context;
	struct inference inference;
	struct flat_row row;
	int error;

	if (!inference_read(event, &inference))
		return 0;
	filter->seen += event->kind != EVENT_REGION && !inference.unpaired;
	if (!is_wanted(filter, event, &inference))
		return 0;
	row = report_filter_row(filter, &inference);
	error = keep(filter,
		     &(struct found){ .tgid = process_of(event),
				      .tid = inference.sample.tid,
				      .wait_tid = event->kind == EVENT_INFERENCE ? event->inference.wait_tid : 0,
				      .start = inference.start,
				      .end = inference.end,
				      .returned = event->kind == EVENT_INFERENCE ? event->inference.enqueued :
										   inference.end,
				      .columns = flat_row_columns(&row, XPT_SAMPLE_COUNTERS) });
	filter->error = filter->error ?: error;
	return error;
}

int report_filter_find(struct report_filter *filter, struct model *model)
{
	int error = filter->chooser ? chooser_follow(filter->chooser, model) : 0;

	return error ?: model_add_sink(model, (struct event_sink){ on_event, filter });
}

static int by_thread(const void *left, const void *right)
{
	const struct found *a = left, *b = right;

	if (a->tgid != b->tgid)
		return a->tgid < b->tgid ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->end > b->end ? -1 : a->end < b->end;
}

static int by_end(const void *left, const void *right)
{
	const struct wait *a = left, *b = right;

	if (a->tgid != b->tgid)
		return a->tgid < b->tgid ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->end < b->end ? -1 : a->end > b->end;
}

/* From what was found to what is looked up. */
static int settle(struct report_filter *filter)
{
	struct found *all = filter->all;
	size_t waits = 0;

	for (size_t i = 0; i < filter->count; i++) {
		waits += all[i].wait_tid != 0;
		filter->columns |= all[i].columns;
	}
	filter->waits = calloc(waits ?: 1, sizeof(*filter->waits));
	if (!filter->waits)
		return -ENOMEM;
	if (filter->count)
		qsort(all, filter->count, sizeof(*all), by_thread);
	for (size_t i = 0; i < filter->count; i++) {
		bool same = i && all[i - 1].tgid == all[i].tgid && all[i - 1].tid == all[i].tid;

		all[i].covered = same && all[i - 1].covered > all[i].returned ? all[i - 1].covered : all[i].returned;
		if (all[i].wait_tid)
			filter->waits[filter->wait_count++] = (struct wait){ all[i].tgid, all[i].wait_tid, all[i].end };
	}
	qsort(filter->waits, filter->wait_count, sizeof(*filter->waits), by_end);
	return 0;
}

/* What was asked for and is not there: a name may be mistyped. */
static int check_choices(const struct report_filter *filter)
{
	struct xpt_program_choice choice;
	int error = 0;
	bool match;

	for (size_t i = 0; filter->chooser && chooser_choice(filter->chooser, i, &choice, &match); i++) {
		if (chooser_met(filter->chooser, i))
			continue;
		error = -ENOENT;
		if (match)
			log_error(filter->log, "no program in the recording has a name that matches %s", choice.name);
		else if (choice.name)
			log_error(filter->log, "program %s is not in the recording", choice.name);
		else
			log_error(filter->log, "program 0x%" PRIx64 " is not in the recording", choice.handle);
	}
	return error;
}

int report_filter_found(struct report_filter *filter)
{
	int error = filter->error ?: check_choices(filter);

	if (!error && filter->options->request && !filter->count) {
		log_error(filter->log, "request %s is not in the recording", filter->options->request);
		error = -ENOENT;
	}
	if (error == -E2BIG)
		log_error(filter->log,
			  "more than %u inferences are selected: select fewer with --from, --to or --slowest",
			  REPORT_INFERENCES_MAX);
	if (filter->options->slowest_percent > 0)
		keep_percent(filter);
	if (filter->options->slowest || filter->options->slowest_percent > 0)
		filter->selected = filter->count;
	error = error ?: settle(filter);
	filter->second = true;
	if (!error && report_filter_is_active(filter))
		log_info(filter->log, "%llu of %llu inferences are selected", (unsigned long long)filter->selected,
			 (unsigned long long)filter->seen);
	return error;
}

/* ---- the second time: their records ---- */

/* The last one on the thread that begins up to the time; NULL: none. */
static const struct found *last_until(const struct report_filter *filter, __u32 tgid, __u32 tid, __u64 start)
{
	const struct found key = { .tgid = tgid, .tid = tid, .start = start }, *all = filter->all;
	size_t low = 0, high = filter->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_thread(&all[middle], &key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low && all[low - 1].tgid == tgid && all[low - 1].tid == tid ? &all[low - 1] : NULL;
}

static bool is_inside(const struct report_filter *filter, __u32 tgid, __u32 tid, __u64 start, __u64 end)
{
	const struct found *found = last_until(filter, tgid, tid, start);

	return found && found->covered >= end;
}

static bool ends_one(const struct report_filter *filter, __u32 tgid, __u32 tid, __u64 end)
{
	const struct wait key = { tgid, tid, end };

	return filter->wait_count && bsearch(&key, filter->waits, filter->wait_count, sizeof(key), by_end);
}

/* Roles that report which programs there are. */
static bool reports_program(enum xpt_role role)
{
	switch (role) {
	case XPT_ROLE_PROGRAM_LOAD:
	case XPT_ROLE_PROGRAM_READY:
	case XPT_ROLE_PROGRAM_NAME:
	case XPT_ROLE_PROGRAM_UNLOAD:
	case XPT_ROLE_SELECT:
	case XPT_ROLE_CODEOBJ_LOAD:
	case XPT_ROLE_CODEOBJ_UNLOAD:
	case XPT_ROLE_RESOLVE:
	case XPT_ROLE_REGION_NAME:
	case XPT_ROLE_REGION_RELEASE:
		return true;
	default:
		return false;
	}
}

static bool in_window(const struct report_filter *filter, __u64 time)
{
	return time >= filter->from && time < filter->to;
}

static bool takes_span(const struct report_filter *filter, const struct xpt_record_header *header, __u32 tid,
		       __u64 start)
{
	if (is_inside(filter, header->tgid, tid, start, header->time))
		return true;
	return !filter->choosing && in_window(filter, start);
}

static bool takes_call(const struct report_filter *filter, const struct xpt_record_call *call)
{
	const struct function *function = functions_get(&filter->functions, call->spec);
	enum xpt_role role = function ? function->view.role : 0;

	if (!keeps_inferences(filter))
		return true;
	if (reports_program(role))
		return call->start < filter->to;
	return takes_span(filter, &call->header, call->tid, call->start) ||
	       (role == XPT_ROLE_WAIT && ends_one(filter, call->header.tgid, call->tid, call->header.time));
}

/* What lies in an inference is taken with its call. */
static bool takes_sample(const struct report_filter *filter, const struct xpt_record_stack_sample *sample)
{
	return is_of_process(filter, sample->header.tgid) &&
	       (!keeps_inferences(filter) || takes_span(filter, &sample->header, sample->tid, sample->call_start));
}

/* Of the changes before the window, those that are in force when it begins. */
static void note_before(struct report_filter *filter, const struct xpt_record_header *record)
{
	if (!filter->second && record->time < filter->from && context_take(&filter->before, record))
		filter->error = filter->error ?: -ENOMEM;
}

static bool takes_budget(struct report_filter *filter, const struct xpt_record_header *record)
{
	note_before(filter, record);
	if (!filter->second)
		return true;
	return (context_is_common(record) || is_of_process(filter, record->tgid)) && record->time < filter->to &&
	       (record->time >= filter->from || context_has(&filter->before, record));
}

static void add_function(struct report_filter *filter, const struct xpt_record_text *record)
{
	cJSON *object;

	if (json_parse(record->text, record->length, &object))
		return;
	if (record->header.kind == XPT_RECORD_RUNTIME)
		functions_add_runtime(&filter->functions, record->id, object);
	else
		functions_add(&filter->functions, record->id, object);
	cJSON_Delete(object);
}

bool report_filter_takes(struct report_filter *filter, const struct xpt_record_header *record)
{
	switch (record->kind) {
	case XPT_RECORD_RUNTIME:
	case XPT_RECORD_SPEC:
		add_function(filter, (const void *)record);
		return true;
	case XPT_RECORD_CALL:
		return !filter->second ||
		       (is_of_process(filter, record->tgid) && takes_call(filter, (const void *)record));
	case XPT_RECORD_REGION:
		return !filter->second || (is_of_process(filter, record->tgid) &&
					   (!keeps_inferences(filter) ||
					    takes_span(filter, record, ((const struct xpt_record_region *)record)->tid,
						       ((const struct xpt_record_region *)record)->start)));
	case XPT_RECORD_STACK_SAMPLE:
		return !filter->second || takes_sample(filter, (const void *)record);
	case XPT_RECORD_OFF_CPU: /* only calls that are taken show it */
		return is_of_process(filter, record->tgid);
	case XPT_RECORD_IOCTL:
		return is_of_process(filter, record->tgid) &&
		       in_window(filter, ((const struct xpt_record_ioctl *)record)->start);
	case XPT_RECORD_EVENT:
	case XPT_RECORD_CLIENT_EXIT:
	case XPT_RECORD_READING:
		return in_window(filter, record->time);
	case XPT_RECORD_WAITED:
		return is_of_process(filter, record->tgid) && in_window(filter, record->time);
	case XPT_RECORD_BUDGET:
		return takes_budget(filter, record);
	case XPT_RECORD_TASK: /* what was changed in a process ends with it */
		note_before(filter, record);
		return !filter->second || is_of_process(filter, record->tgid);
	case XPT_RECORD_TOTAL:
	case XPT_RECORD_COUNT: /* of the whole recording: what is selected is counted as it comes */
		return !filter->second || !report_filter_is_active(filter);
	case XPT_RECORD_COST:
	case XPT_RECORD_LOST:
	case XPT_RECORD_PASS:
	case XPT_RECORD_END:
	case XPT_RECORD_DRIVER:
	case XPT_RECORD_DRIVER_EVENT:
	case XPT_RECORD_COUNTER:
	case XPT_RECORD_CHOICE:
	case XPT_RECORD_MATCH:
	case XPT_RECORD_MODULE:
	case XPT_RECORD_FRAME:
	case XPT_RECORD_STACK:
		return true;
	default:
		return !filter->second || is_of_process(filter, record->tgid);
	}
}

/* What reports programs is needed from the beginning, and shown only in the window. */
static bool admits(void *context, const struct event *event)
{
	const struct report_filter *filter = context;
	__u64 time = event_time(event);

	if (!time || time < filter->from)
		return !time;
	return event->kind == EVENT_CALL || event->kind == EVENT_INFERENCE || event->kind == EVENT_REGION ||
	       event->kind == EVENT_LAUNCH || event->kind == EVENT_JOB || time < filter->to;
}

void report_filter_join(struct report_filter *filter, struct model *model)
{
	if (filter->window)
		model_set_gate(model, (struct event_gate){ admits, filter });
}

bool report_filter_has(const struct report_filter *filter, const struct event *event, const struct inference *inference)
{
	const struct found *found;

	if (inference->unpaired || (!filter->chooser && !filter->options->request && event->kind == EVENT_REGION))
		return false;
	if (!keeps_inferences(filter))
		return true;
	found = last_until(filter, process_of(event), inference->sample.tid, inference->start);
	while (found && found > filter->all && found->end != inference->end && found[-1].start == inference->start)
		found--;
	return found && found->start == inference->start && found->end == inference->end &&
	       found->tid == inference->sample.tid && found->tgid == process_of(event);
}

/* One that lies in another selected one has its time already. */
bool report_filter_has_sample(const struct report_filter *filter, __u32 tgid, __u32 tid, __u64 call_start)
{
	const struct found *found = last_until(filter, tgid, tid, call_start);
	const struct found *before = found && found > filter->all ? found - 1 : NULL;

	if (!found || found->start != call_start)
		return false;
	return !before || before->tgid != tgid || before->tid != tid || before->covered < found->returned;
}

double report_filter_part(const struct report_filter *filter)
{
	return report_filter_is_active(filter) && filter->seen ? (double)filter->selected / filter->seen : 1;
}

__u64 report_filter_length(const struct report_filter *filter)
{
	return filter->window && filter->options->to ? filter->options->to - filter->options->from : 0;
}

flat_columns report_filter_columns(const struct report_filter *filter)
{
	return filter->columns;
}

struct flat_row report_filter_row(const struct report_filter *filter, const struct inference *inference)
{
	const struct model_program *program = inference->program;

	return (struct flat_row){
		.host = filter->info->host,
		.process = program->process->name,
		.runtime = program->runtime,
		.program = program->name,
		.pid = (pid_t)program->process->tgid,
		.program_id = program->id,
		.handle = program->handle,
		.start = inference->start + (filter->info->realtime - filter->info->monotonic_time),
		.sample = &inference->sample,
	};
}
