/* SPDX-License-Identifier: BSD-2-Clause */
/* The metrics of xputrace agent: sums of reports by the labels of their programs, devices, and the agent itself. */
#include "cli/agent/agent.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <xputrace/counters.h>
#include <xputrace/device.h>

#include "base/core/cgroup.h"
#include "base/core/clock.h"
#include "base/core/exposition.h"
#include "base/core/hashmap.h"
#include "base/core/series.h"
#include "base/format/prometheus.h"
#include "cli/commands.h"

/* ---- what there is ---- */

enum value {
	INFERENCES,
	RECORDED,
	LOST,
	ERRORS,
	CPU,
	WAITED,
	BLOCKED,
	QUEUE,
	DEVICE,
	INPUT_TOKENS,
	OUTPUT_TOKENS,
	VALUES,
};

static const struct {
	struct metric metric;
	enum value first;
	unsigned int count;
} counters[] = {
	{ { "xputrace_inferences", NULL, "Inferences that ended, recorded or not; without those of detached functions.",
	    METRIC_COUNTER },
	  INFERENCES,
	  1 },
	{ { "xputrace_inferences_recorded", NULL,
	    "Inferences that were recorded: all but what the budget left out and what was lost.", METRIC_COUNTER },
	  RECORDED,
	  1 },
	{ { "xputrace_inferences_lost", NULL, "Inferences that should have been recorded and were not.",
	    METRIC_COUNTER },
	  LOST,
	  1 },
	{ { "xputrace_inference_errors", NULL, "Recorded inferences with a status that is an error.", METRIC_COUNTER },
	  ERRORS,
	  1 },
	{ { "xputrace_inference_cpu_seconds", "seconds", "Time on a CPU of threads in recorded inferences.",
	    METRIC_COUNTER },
	  CPU,
	  1 },
	{ { "xputrace_inference_waited_seconds", "seconds",
	    "Time that threads in recorded inferences waited for a CPU.", METRIC_COUNTER },
	  WAITED,
	  1 },
	{ { "xputrace_inference_blocked_seconds", "seconds",
	    "Time that threads in recorded inferences waited for anything else.", METRIC_COUNTER },
	  BLOCKED,
	  1 },
	{ { "xputrace_queue_seconds", "seconds",
	    "Time of jobs of recorded inferences from queued to handed to the device.", METRIC_COUNTER },
	  QUEUE,
	  1 },
	{ { "xputrace_device_seconds", "seconds",
	    "Time of jobs of recorded inferences on the device; jobs may overlap.", METRIC_COUNTER },
	  DEVICE,
	  1 },
	{ { "xputrace_tokens", NULL, "Tokens of recorded batches of language models.", METRIC_COUNTER },
	  INPUT_TOKENS,
	  2 },
};

static const double bounds[] = { 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3,
				 50e-3, 100e-3, 250e-3, 500e-3, 1,    2.5,    5,    10 };

#define BOUNDS (sizeof(bounds) / sizeof(bounds[0]))

static const struct {
	struct metric metric;
	enum xpt_column column;
} histograms[] = {
	{ { "xputrace_inference_duration_seconds", "seconds", "Duration of recorded inferences.", METRIC_HISTOGRAM },
	  XPT_COLUMN_TOTAL_ROUND_TRIP },
	{ { "gen_ai_server_time_to_first_token_seconds", "seconds",
	    "From the begin of a prompt until the first token of its answer was there.", METRIC_HISTOGRAM },
	  XPT_COLUMN_FIRST_TOKEN },
	{ { "gen_ai_server_time_per_output_token_seconds", "seconds", "From one token of an answer to the next.",
	    METRIC_HISTOGRAM },
	  XPT_COLUMN_OUTPUT_TOKEN },
};

#define HISTOGRAMS (sizeof(histograms) / sizeof(histograms[0]))

enum figure { BUSY, JOBS, MEMORY, ENERGY, FREQUENCY, FIGURES };

static const char *const figure_names[FIGURES] = { "busy", "jobs", "memory_used", "energy", "frequency" };

#define CAUSES_MAX 32
#define PLACES_MAX 65536
#define EXTENSIONS_MAX 2

struct device {
	struct text labels;
	struct xpt_counters *counters; /* NULL: it has none */
	int index;
	char address[64];
	uint64_t read; /* ns, CLOCK_MONOTONIC */
	double figures[FIGURES];
	double busy; /* s */
};

struct cause {
	struct text labels;
	uint64_t count;
};

/* In which container the process of a program is: it may have ended when its last report comes. */
struct place {
	struct keyed keyed;    /* first; by the ID of the program */
	struct series *series; /* that it has been put into last, as one of its users; NULL: none */
	struct cgroup_ids ids;
};

struct agent_metrics {
	pthread_mutex_t lock;
	uint64_t version;
	struct agent_metrics_options options;
	struct series_table series;
	struct keyed_table places;
	struct device devices[AGENT_DEVICES_MAX];
	size_t device_count;
	struct agent_devices *shares;
	struct cause causes[CAUSES_MAX];
	size_t cause_count;
	struct xpt_session_status status;
	double overhead;	  /* of the latest measurement; NaN: none */
	double started, reported; /* s since 1970 */
	uint64_t slow;		  /* ns: an inference that takes so long gets a span; 0: none does */
	struct {
		void (*more)(void *context, struct exposition *to);
		void *context; /* NULL: none */
	} extensions[EXTENSIONS_MAX];
};

static double realtime(void)
{
	return (double)clock_read(CLOCK_REALTIME) / 1e9;
}

/* ---- devices ---- */

static int on_device(void *context, const struct xpt_device_info *info)
{
	struct agent_metrics *metrics = context;
	struct device *device = &metrics->devices[metrics->device_count];

	if (metrics->device_count == AGENT_DEVICES_MAX)
		return 1;
	*device = (struct device){ .counters = device_counters_start(info->index, figure_names, FIGURES),
				   .read = clock_monotonic(),
				   .index = info->index };
	snprintf(device->address, sizeof(device->address), "%.63s", info->address);
	for (size_t i = 0; i < FIGURES; i++)
		device->figures[i] = NAN;
	label_add(&device->labels, "hw_id", info->address);
	label_add(&device->labels, "hw_type", "gpu");
	label_add(&device->labels, "hw_name", info->node);
	label_add(&device->labels, "driver", info->driver);
	metrics->device_count++;
	return device->labels.error;
}

static void note_figure(struct device *device, enum figure figure, const struct xpt_counter_value *value)
{
	double *now = &device->figures[figure];

	if (value->flags & XPT_COUNTER_NEVER)
		return;
	if (value->flags & XPT_COUNTER_GONE && figure != JOBS && figure != ENERGY) {
		*now = NAN;
		return;
	}
	if (figure == BUSY && value->time > device->read)
		device->busy += value->value / 100 * (double)(value->time - device->read) / 1e9;
	if (figure == BUSY)
		device->read = value->time;
	if ((figure == JOBS || figure == ENERGY) && *now > value->value)
		return;
	*now = value->value;
}

static void read_device(struct device *device)
{
	struct xpt_counter_value values[FIGURES];
	size_t count = device->counters ? xpt_counters_count(device->counters) : 0;

	if (!count)
		return;
	xpt_counters_poll(device->counters, values, sizeof(values[0]));
	for (size_t i = 0; i < count; i++)
		for (enum figure figure = 0; figure < FIGURES; figure++)
			if (!strcmp(xpt_counters_info(device->counters, i)->name, figure_names[figure]))
				note_figure(device, figure, &values[i]);
}

/* Whoever shares them, too. */
static void read_devices(struct agent_metrics *metrics, struct xpt_session *session, double now)
{
	struct agent_device known[AGENT_DEVICES_MAX];

	for (size_t i = 0; i < metrics->device_count; i++) {
		struct device *device = &metrics->devices[i];
		double busy = device->busy;

		read_device(device);
		known[i] = (struct agent_device){ .index = device->index,
						  .labels = &device->labels,
						  .busy = isnan(device->figures[BUSY]) ? -1 : device->busy - busy };
		memcpy(known[i].address, device->address, sizeof(known[i].address));
	}
	agent_devices_update(metrics->shares, session, known, metrics->device_count, now);
}

/* ---- reports ---- */

/* The series may be stale from now on. */
static void place_release(void *context, struct keyed *entry)
{
	struct place *place = container_of(entry, struct place, keyed);

	(void)context;
	if (place->series)
		place->series->users--;
	free(place);
}

/* The program lives: series is not stale, even if it does nothing. */
static void place_use(struct place *place, struct series *series)
{
	if (place->series == series)
		return;
	if (place->series)
		place->series->users--;
	place->series = series;
	series->users++;
}

/* NULL: no memory. */
static struct place *place_of(struct agent_metrics *metrics, const struct xpt_program_report *program)
{
	struct keyed *found = keyed_find(&metrics->places, program->id, 0);
	struct place *place = found ? container_of(found, struct place, keyed) : calloc(1, sizeof(*place));

	if (!place || found)
		return place;
	if (keyed_add(&metrics->places, &place->keyed, 0, program->id, 0)) {
		free(place);
		return NULL;
	}
	if (program->pid > 0)
		cgroup_read(&place->ids, program->pid);
	return place;
}

static struct series *series_of(struct agent_metrics *metrics, const struct xpt_program_report *program, double now)
{
	struct place *place = program->id ? place_of(metrics, program) : NULL;
	struct series *series;
	struct text labels = {};
	char name[LABEL_BYTES_MAX + 1];
	const char *given = program->name ?: "";

	if (!program->id)
		return series_overflow(&metrics->series, now);
	snprintf(name, sizeof(name), "%.*s", (int)text_cut(given, text_unnumbered(given), LABEL_BYTES_MAX), given);
	label_add(&labels, "program", program->is_kernel && !metrics->options.kernels ? "kernels" : name);
	label_add(&labels, "runtime", program->runtime);
	label_add(&labels, "process", program->process);
	label_add(&labels, "container", place ? place->ids.container : NULL);
	label_add(&labels, "pod_uid", place ? place->ids.pod : NULL);
	if (!place || labels.error) {
		metrics->series.no_memory = true;
		series = series_overflow(&metrics->series, now);
	} else {
		series = series_get(&metrics->series, &labels, now);
	}
	text_free(&labels);
	if (place)
		place_use(place, series);
	return series;
}

/* Sum of a column in its unit; -1: none of the samples has it. */
static double sum_of(const struct xpt_program_report *program, enum xpt_column column)
{
	XPT_OPTS(xpt_column_summary, summary);

	if (xpt_latencies_get(program->latencies, column, &summary))
		return -1;
	return summary.mean * (double)summary.count;
}

#define NATIVE_LEAST (-30 * NATIVE_PER_OCTAVE) /* 1 ns */
#define NATIVE_MOST (17 * NATIVE_PER_OCTAVE)   /* 36 h */

/* Number of the bucket of a time in us. */
static int native_bucket(double time)
{
	double number = ceil(log2(time / 1e6) * NATIVE_PER_OCTAVE);

	return !(number > NATIVE_LEAST) ? NATIVE_LEAST : number > NATIVE_MOST ? NATIVE_MOST : (int)number;
}

static void add_native(struct histogram *histogram, const struct xpt_program_report *program, enum xpt_column column,
		       const struct xpt_column_summary *summary)
{
	int first = native_bucket(summary->min), last = native_bucket(summary->max);
	double in_unit[NATIVE_MOST - NATIVE_LEAST + 1] = {};
	uint64_t counts[NATIVE_MOST - NATIVE_LEAST + 1], before = 0;

	for (int i = first; i <= last; i++)
		in_unit[i - first] = exp2((double)i / NATIVE_PER_OCTAVE) * 1e6;
	if (xpt_latencies_buckets(program->latencies, column, in_unit, (size_t)(last - first) + 1, counts))
		return;
	counts[last - first] = summary->count;
	for (int i = first; i <= last; i++) {
		if (counts[i - first] > before)
			histogram_native_add(histogram, i, counts[i - first] - before);
		before = counts[i - first];
	}
}

/* Of the programs of a series in an interval the slowest. */
static void add_exemplar(const struct agent_metrics *metrics, struct exemplar *exemplar,
			 const struct xpt_program_report *program, double offset)
{
	double took = (double)program->slowest_duration / 1e9;
	unsigned char ids[sizeof(exemplar->trace_id) + sizeof(exemplar->span_id)];
	uint64_t update = metrics->version + 1;
	char number[32];

	if (!program->slowest_time || (exemplar->update == update && exemplar->value >= took))
		return;
	text_clear(&exemplar->labels, ~(size_t)0);
	snprintf(number, sizeof(number), "%" PRIu64, program->slowest_number);
	label_add(&exemplar->labels, "inference", number);
	snprintf(number, sizeof(number), "%d", program->pid);
	label_add(&exemplar->labels, "pid", number);
	exemplar->value = took;
	exemplar->time = (double)program->slowest_time / 1e9 + offset;
	exemplar->update = update;
	if (exemplar->labels.error) /* a part of them would be none */
		text_clear(&exemplar->labels, ~(size_t)0);
	exemplar->has_span = exemplar->labels.length && metrics->slow && program->slowest_duration >= metrics->slow &&
			     getrandom(ids, sizeof(ids), GRND_NONBLOCK) == sizeof(ids);
	if (exemplar->has_span) {
		memcpy(exemplar->trace_id, ids, sizeof(exemplar->trace_id));
		memcpy(exemplar->span_id, ids + sizeof(exemplar->trace_id), sizeof(exemplar->span_id));
	}
}

static void add_histogram(struct histogram *histogram, const struct xpt_program_report *program, enum xpt_column column)
{
	XPT_OPTS(xpt_column_summary, summary);
	double in_unit[BOUNDS];
	uint64_t counts[BOUNDS], before = 0;

	for (size_t i = 0; i < BOUNDS; i++)
		in_unit[i] = bounds[i] * 1e6;
	if (xpt_latencies_get(program->latencies, column, &summary) ||
	    xpt_latencies_buckets(program->latencies, column, in_unit, BOUNDS, counts))
		return;
	for (size_t i = 0; i < BOUNDS; i++) {
		histogram->counts[i] += counts[i] - before;
		before = counts[i];
	}
	histogram->counts[BOUNDS] += summary.count - before;
	add_native(histogram, program, column, &summary);
	histogram->sum += summary.mean * (double)summary.count / 1e6;
}

/* offset: s, of CLOCK_REALTIME. */
static void add_program(struct agent_metrics *metrics, const struct xpt_program_report *program, double now,
			double offset)
{
	bool ran = program->inferences || program->lost || program->skipped;
	struct series *series = ran ? series_of(metrics, program, now) : NULL;
	struct keyed *place;

	if (series) {
		series_add(series, INFERENCES, (double)program->inferences);
		series_add(series, RECORDED, (double)program->taken);
		series_add(series, LOST, (double)program->lost);
		series_add(series, ERRORS, (double)program->failed);
		series_add(series, CPU, sum_of(program, XPT_COLUMN_CPU_TIME) / 1e6);
		series_add(series, WAITED, sum_of(program, XPT_COLUMN_WAITED_TIME) / 1e6);
		series_add(series, BLOCKED, sum_of(program, XPT_COLUMN_BLOCKED_TIME) / 1e6);
		series_add(series, INPUT_TOKENS, sum_of(program, XPT_COLUMN_PREFILL_TOKENS));
		series_add(series, OUTPUT_TOKENS, sum_of(program, XPT_COLUMN_DECODE_TOKENS));
		if (program->timed) {
			series_add(series, QUEUE, (double)program->queue_time / 1e9);
			series_add(series, DEVICE, (double)program->device_time / 1e9);
		}
		for (size_t i = 0; i < HISTOGRAMS; i++)
			add_histogram(&series->histograms[i], program, histograms[i].column);
		add_exemplar(metrics, &series->histograms[0].exemplar, program, offset);
	}
	place = program->released ? keyed_find(&metrics->places, program->id, 0) : NULL;
	if (place)
		keyed_drop(&metrics->places, place);
}

static int on_loss(void *context, const char *cause, uint64_t count)
{
	struct agent_metrics *metrics = context;
	struct text labels = {};
	size_t i = 0;

	label_add(&labels, "cause", cause);
	while (i < metrics->cause_count && (metrics->causes[i].labels.length != labels.length ||
					    memcmp(metrics->causes[i].labels.data, labels.data, labels.length) != 0))
		i++;
	if (labels.error || i == CAUSES_MAX) {
		text_free(&labels);
		return 0;
	}
	if (i == metrics->cause_count)
		metrics->causes[metrics->cause_count++].labels = labels;
	else
		text_free(&labels);
	metrics->causes[i].count = count;
	return 0;
}

static void note_status(struct agent_metrics *metrics, struct xpt_session *session)
{
	struct xpt_session_status before = metrics->status;
	XPT_OPTS(xpt_session_status, now);
	double added, targets;

	if (xpt_session_status(session, &now))
		return;
	added = (double)(now.added_time - before.added_time);
	targets = (double)(now.targets_time - before.targets_time) - added;
	if (targets > 0)
		metrics->overhead = (added + (double)(now.collector_time - before.collector_time)) / targets;
	/* Between two measurements there is no news. */
	if (targets > 0 || !now.targets_time) {
		metrics->status = now;
		return;
	}
	now.added_time = before.added_time;
	now.collector_time = before.collector_time;
	now.targets_time = before.targets_time;
	metrics->status = now;
}

void agent_metrics_update(struct agent_metrics *metrics, struct xpt_session *session,
			  const struct xpt_profile_report *report)
{
	double offset = ((double)report->end_realtime - (double)report->end) / 1e9;
	double now = (double)report->end_realtime / 1e9,
	       begun = fmax((double)report->start_realtime / 1e9, metrics->started);

	pthread_mutex_lock(&metrics->lock);
	metrics->series.clock = report->end;
	/* Series begin with the interval: it is in their first values. */
	for (size_t i = 0; i < report->program_count; i++)
		add_program(metrics, XPT_AT(report->programs, report->program_size, i), begun, offset);
	if (metrics->series.no_memory)
		print_message(NULL, XPT_LOG_WARN, "no memory for metrics: programs are counted as \"other\"");
	metrics->series.no_memory = false;
	series_remove_stale(&metrics->series, metrics->options.stale);
	read_devices(metrics, session, begun);
	note_status(metrics, session);
	xpt_session_losses(session, on_loss, metrics);
	metrics->reported = now;
	metrics->version++;
	pthread_mutex_unlock(&metrics->lock);
}

uint64_t agent_metrics_version(struct agent_metrics *metrics)
{
	uint64_t version;

	pthread_mutex_lock(&metrics->lock);
	version = metrics->version;
	pthread_mutex_unlock(&metrics->lock);
	return version;
}

void agent_metrics_give_spans(struct agent_metrics *metrics, uint64_t slow)
{
	pthread_mutex_lock(&metrics->lock);
	metrics->slow = slow;
	pthread_mutex_unlock(&metrics->lock);
}

/* ---- all of them as text ---- */

/* The series, and the overflow where it has anything: NULL behind the last. */
static const struct series *series_at(const struct series_table *table, size_t index)
{
	if (index < table->count)
		return table->all[index];
	return index == table->count && !isnan(table->overflow->values[INFERENCES]) ? table->overflow : NULL;
}

void agent_metrics_spans(struct agent_metrics *metrics,
			 void (*span)(void *context, const struct text *labels, const struct exemplar *exemplar),
			 void *context)
{
	const struct series *series;

	pthread_mutex_lock(&metrics->lock);
	for (size_t each = 0; (series = series_at(&metrics->series, each)); each++) {
		const struct exemplar *exemplar = &series->histograms[0].exemplar;

		if (exemplar->has_span && exemplar->update == metrics->version)
			span(context, &series->labels, exemplar);
	}
	pthread_mutex_unlock(&metrics->lock);
}

static void render_tokens(struct exposition *to, const struct series *series, double created)
{
	static const char *const types[] = { "input", "output" };

	for (size_t i = 0; i < 2; i++) {
		struct text labels = {};

		text_bytes(&labels, series->labels.data, series->labels.length);
		label_add(&labels, "gen_ai_token_type", types[i]);
		if (!isnan(series->values[INPUT_TOKENS + i]) && !labels.error)
			exposition_value(to, &labels, series->values[INPUT_TOKENS + i], created);
		text_free(&labels);
	}
}

static void render_programs(const struct agent_metrics *metrics, struct exposition *to)
{
	const struct series *series;

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		exposition_family(to, &counters[i].metric);
		for (size_t each = 0; (series = series_at(&metrics->series, each)); each++) {
			if (counters[i].count > 1)
				render_tokens(to, series, series->created ?: metrics->started);
			else if (!isnan(series->values[counters[i].first]))
				exposition_value(to, &series->labels, series->values[counters[i].first],
						 series->created ?: metrics->started);
		}
	}
	for (size_t i = 0; i < HISTOGRAMS; i++) {
		exposition_family(to, &histograms[i].metric);
		for (size_t each = 0; (series = series_at(&metrics->series, each)); each++) {
			const struct histogram *histogram = &series->histograms[i];
			bool empty = true;

			for (size_t bin = 0; bin <= BOUNDS && empty; bin++)
				empty = !histogram->counts[bin];
			if (!empty)
				exposition_histogram(to, &series->labels, histogram,
						     series->created ?: metrics->started);
		}
	}
}

static void render_devices(const struct agent_metrics *metrics, struct exposition *to)
{
	static const struct {
		struct metric metric;
		enum figure figure;
		double factor; /* 0: what was summed up */
	} families[] = {
		{ { "xputrace_device_busy_seconds", "seconds",
		    "Time in which the device executed, of its busiest engine.", METRIC_COUNTER },
		  BUSY,
		  0 },
		{ { "xputrace_device_jobs", NULL, "Jobs that were handed to the device.", METRIC_COUNTER }, JOBS, 1 },
		{ { "hw_energy_joules", "joules", "Energy that the device took.", METRIC_COUNTER }, ENERGY, 1 },
		{ { "hw_gpu_utilization_ratio", "ratio", "Share of the latest interval in which the device executed.",
		    METRIC_GAUGE },
		  BUSY,
		  0.01 },
		{ { "hw_gpu_memory_usage_bytes", "bytes", "Memory of the device in use.", METRIC_GAUGE }, MEMORY, 1 },
		{ { "xputrace_device_frequency_hertz", "hertz", "Frequency of the main clock of the device.",
		    METRIC_GAUGE },
		  FREQUENCY,
		  1e6 },
	};

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		exposition_family(to, &families[i].metric);
		for (size_t each = 0; each < metrics->device_count; each++) {
			const struct device *device = &metrics->devices[each];
			double value = device->figures[families[i].figure];

			if (!isnan(value))
				exposition_value(to, &device->labels,
						 families[i].factor > 0 ? value * families[i].factor : device->busy,
						 metrics->started);
		}
	}
}

/* A family of one sample without labels. unit: NULL: none. created: s since 1970; 0: it is a gauge. */
static void render_one(struct exposition *to, const char *name, const char *unit, const char *help, double value,
		       double created)
{
	static const struct text none;

	exposition_family(to, &(struct metric){ name, unit, help, created > 0 ? METRIC_COUNTER : METRIC_GAUGE });
	if (!isnan(value))
		exposition_value(to, &none, value, created);
}

static double resident(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long size, pages = 0;

	if (!file)
		return NAN;
	if (fscanf(file, "%lu %lu", &size, &pages) != 2)
		pages = 0;
	fclose(file);
	return pages ? (double)pages * (double)sysconf(_SC_PAGESIZE) : NAN;
}

static void render_session(const struct agent_metrics *metrics, struct exposition *to)
{
	static const struct metric lost = { "xputrace_events_lost", NULL, "Records that were lost, by cause.",
					    METRIC_COUNTER };
	const struct xpt_session_status *status = &metrics->status;
	double since = metrics->started;

	exposition_family(to, &lost);
	for (size_t i = 0; i < metrics->cause_count; i++)
		exposition_value(to, &metrics->causes[i].labels, (double)metrics->causes[i].count, since);
	render_one(to, "xputrace_calls", NULL, "Calls that were recorded.", (double)status->calls, since);
	render_one(to, "xputrace_processes", NULL, "Processes that are traced now.", status->processes, 0);
	render_one(to, "xputrace_programs", NULL, "Programs that are known now.", status->programs, 0);
	render_one(to, "xputrace_overhead_ratio", "ratio",
		   "CPU time of tracing and collector as a share of that of the processes, latest measurement.",
		   metrics->overhead, 0);
	if (!status->targets_time) /* without a budget nothing measures it */
		return;
	render_one(to, "xputrace_overhead_cpu_seconds", "seconds",
		   "CPU time that tracing added to the processes and took for collecting.",
		   (double)(status->added_time + status->collector_time) / 1e9, since);
	render_one(to, "xputrace_traced_cpu_seconds", "seconds", "CPU time of the traced processes.",
		   (double)status->targets_time / 1e9, since);
	render_one(to, "xputrace_functions_suspended", NULL,
		   "Functions that the budget has detached for now, of each process: their calls are not counted.",
		   status->suspended, 0);
}

static void render_agent(const struct agent_metrics *metrics, struct exposition *to)
{
	static const struct metric build = { "xputrace_build_info", NULL, "Version of xputrace.", METRIC_GAUGE };
	struct rusage usage = {};
	struct text labels = {};

	getrusage(RUSAGE_SELF, &usage);
	render_one(to, "xputrace_series", NULL, "Label sets of programs that have series.",
		   (double)metrics->series.count, 0);
	render_one(to, "xputrace_series_dropped", NULL,
		   "Label sets beyond --max-series, which are in the program other.", (double)metrics->series.dropped,
		   metrics->started);
	render_one(
		to, "xputrace_series_removed", NULL,
		"Label sets of programs that had ended and did nothing for --stale-after: they have no series any more.",
		(double)metrics->series.removed, metrics->started);
	render_one(to, "xputrace_process_cpu_seconds", "seconds", "CPU time of the agent.",
		   (double)usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
			   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
		   metrics->started);
	render_one(to, "xputrace_process_resident_memory_bytes", "bytes", "Memory of the agent.", resident(), 0);
	render_one(to, "xputrace_process_start_time_seconds", "seconds",
		   "When the agent was started, since 1970: its counters begin then.", metrics->started, 0);
	render_one(to, "xputrace_last_report_timestamp_seconds", "seconds",
		   "End of the latest interval that is in these metrics, since 1970.", metrics->reported ?: NAN, 0);
	label_add(&labels, "version", XPT_VERSION);
	exposition_family(to, &build);
	exposition_value(to, &labels, 1, 0);
	text_free(&labels);
}

void agent_metrics_expose(struct agent_metrics *metrics, struct exposition *to)
{
	pthread_mutex_lock(&metrics->lock);
	render_programs(metrics, to);
	render_devices(metrics, to);
	agent_devices_render(metrics->shares, to, metrics->started);
	render_session(metrics, to);
	render_agent(metrics, to);
	for (size_t i = 0; i < EXTENSIONS_MAX; i++)
		if (metrics->extensions[i].context)
			metrics->extensions[i].more(metrics->extensions[i].context, to);
	exposition_end(to);
	pthread_mutex_unlock(&metrics->lock);
}

void agent_metrics_render(struct agent_metrics *metrics, enum agent_format format, struct text *text)
{
	struct exposition to = { .out = text, .openmetrics = format == AGENT_OPENMETRICS };
	struct prometheus_encoder encoder;

	prometheus_begin(&encoder, text);
	if (format == AGENT_PROTOBUF)
		to.sink = &encoder.sink;
	agent_metrics_expose(metrics, &to);
	prometheus_end(&encoder);
}

void agent_metrics_extend(struct agent_metrics *metrics, void (*more)(void *context, struct exposition *to),
			  void *context)
{
	size_t i = 0;

	pthread_mutex_lock(&metrics->lock);
	while (i < EXTENSIONS_MAX - 1 && metrics->extensions[i].context && metrics->extensions[i].context != context)
		i++;
	metrics->extensions[i].more = more;
	metrics->extensions[i].context = more ? context : NULL;
	pthread_mutex_unlock(&metrics->lock);
}

/* ---- begin and end ---- */

int agent_metrics_create(const struct agent_metrics_options *options, struct agent_metrics **result)
{
	struct agent_metrics *metrics = calloc(1, sizeof(*metrics));
	struct text overflow = {};
	int error;

	if (!metrics)
		return -ENOMEM;
	pthread_mutex_init(&metrics->lock, NULL);
	keyed_init(&metrics->places, PLACES_MAX, place_release, NULL);
	metrics->options = *options;
	metrics->overhead = NAN;
	metrics->started = realtime();
	metrics->series = (struct series_table){ .most = options->max_series,
						 .value_count = VALUES,
						 .histogram_count = HISTOGRAMS,
						 .bounds = bounds,
						 .bound_count = BOUNDS };
	label_add(&overflow, "program", "other");
	error = overflow.error					 ?:
			series_init(&metrics->series, &overflow) ?:
								   agent_devices_create(options, &metrics->shares);
	text_free(&overflow);
	if (error) {
		agent_metrics_free(metrics);
		return error;
	}
	if (xpt_device_list(on_device, metrics) == -ENOMEM) {
		agent_metrics_free(metrics);
		return -ENOMEM;
	}
	*result = metrics;
	return 0;
}

void agent_metrics_free(struct agent_metrics *metrics)
{
	if (!metrics)
		return;
	for (size_t i = 0; i < metrics->device_count; i++) {
		xpt_counters_destroy(metrics->devices[i].counters);
		text_free(&metrics->devices[i].labels);
	}
	for (size_t i = 0; i < metrics->cause_count; i++)
		text_free(&metrics->causes[i].labels);
	agent_devices_free(metrics->shares);
	keyed_free(&metrics->places);
	series_free(&metrics->series);
	free(metrics);
}
