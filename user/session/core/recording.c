/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_recording_*: a consumer that writes records into an output. */
#include <xputrace/recording.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/options.h"
#include "model/stats/statistics.h"
#include "profile/handle/choice.h"
#include "report/table/summary.h"
#include "session/code/load.h"
#include "session/code/codeobj_source.h"
#include "session/core/output.h"
#include "session/core/session.h"

#define SAMPLE_MAX 1000000u
#define FLUSH_INTERVAL 250000000ull  /* ns */
#define STATUS_INTERVAL 200000000ull /* ns */
#define LOSSES_INTERVAL 200000000ull /* ns */

struct xpt_recording {
	struct xpt_recording_options options; /* pointers are not used after the creation, but output_name */
	char *output_name;
	struct consumer consumer;
	struct collector *collector; /* of the session */
	struct output *output;
	struct chooser *chooser;      /* NULL: all programs are recorded */
	struct codeobj_source *codes; /* NULL: code objects are not captured */
	uint64_t stopped;	      /* when, set by xpt_recording_stop(), from anywhere; 0: not yet */
	__u64 output_lost;	      /* records, as last reported */
	bool finished;
	enum xpt_end ended_by; /* 0: it has not ended yet */
	__u64 end;	       /* ns; ~0: without a duration */
	__u64 left;	       /* ns: when it has left the session, which continues; 0: not */
	__u64 output_due, status_due, losses_due;
};

static void on_record(void *context, const struct xpt_record_header *record)
{
	struct xpt_recording *recording = context;

	if (recording->codes)
		codeobj_source_record(recording->codes, record);
	/* Bytes are not in recordings, and counts up to now are for profiles and streams. */
	if (record->kind != XPT_RECORD_CODE_PIECE && record->kind != XPT_RECORD_CODE &&
	    record->kind != XPT_RECORD_COUNT)
		output_record(recording->output, record);
}

/* ---- code objects ---- */

static void record_text_freed(struct xpt_recording *recording, struct xpt_record_text *record)
{
	if (record)
		on_record(recording, &record->header);
	else if (!recording->collector->error)
		recording->collector->error = -ENOMEM;
	free(record);
}

static void on_loaded(void *context, const struct code_load *load)
{
	record_text_freed(context, record_code_object(load));
}

static void on_unloaded(void *context, const struct code_load *load)
{
	record_text_freed(context, record_code_unloaded(load));
}

static void on_scanned(void *context, pid_t tgid)
{
	struct xpt_recording *recording = context;

	if (recording->codes)
		codeobj_source_scanned(recording->codes, tgid);
}

static int create_codes(struct xpt_recording *recording)
{
	const struct codeobj_source_options source_options = {
		.collector = recording->collector,
		.mode = XPT_CODEOBJ_SYMBOLS,
		.loaded = on_loaded,
		.unloaded = on_unloaded,
		.context = recording,
	};

	return recording->options.code_objects ? codeobj_source_create(&source_options, &recording->codes) : 0;
}

/* ---- chosen programs ---- */

static bool has_choices(const struct xpt_recording_options *options)
{
	return options->program_count || options->match;
}

/* What is not taken comes again: the next inference of the program asks once more. */
static __u64 set_sampling(void *context, const struct model_program *program, __u32 sample_every, __u64 seen)
{
	struct xpt_recording *recording = context;

	collector_set_sampling(recording->collector, program, sample_every, seen);
	return clock_monotonic();
}

static int create_chooser(struct xpt_recording *recording)
{
	const struct xpt_recording_options *options = &recording->options;
	const struct chooser_options chooser_options = {
		.log = &recording->collector->log,
		/* Else what the kernel records is for others, too. */
		.set_sampling = recording->consumer.shares ? NULL : set_sampling,
		.context = recording,
	};
	struct xpt_program_choice choice;
	int error;

	if (!has_choices(options))
		return 0;
	error = chooser_create(&chooser_options, &recording->chooser);
	for (size_t i = 0; !error && i < options->program_count; i++) {
		error = options_copy_element(&choice, sizeof(choice), options->programs, options->program_size, i);
		error = error ?: chooser_add(recording->chooser, &choice);
	}
	if (!error && options->match)
		error = chooser_match(recording->chooser, options->match);
	return error;
}

static int create_output(struct xpt_recording *recording)
{
	const struct xpt_recording_options *options = &recording->options;
	int error = output_create(&recording->collector->log, options, &recording->stopped, &recording->output);

	if (!error)
		output_warn_at(recording->output, options->warn_bytes ?: CHROME_VIEWER_BYTES);
	if (!error && recording->chooser)
		error = chooser_join(recording->chooser, output_model(recording->output));
	return error;
}

/* ---- while it runs ---- */

static void report_status(struct xpt_recording *recording, __u64 now)
{
	const struct collector *collector = recording->collector;
	struct xpt_recording_status status = {
		.size = sizeof(status),
		.elapsed = now - recording->consumer.begun,
		.processes = collector->followed_map.count,
		.programs = model_program_count(output_model(recording->output)),
		.calls = recording->consumer.calls - recording->consumer.selection.calls,
		.lost = collector->lost - recording->consumer.before.lost + recording->output_lost,
		.bytes = output_bytes(recording->output),
	};

	if (recording->options.status)
		recording->options.status(recording->options.status_context, &status);
}

/* The output itself gets the record of it, too, once there is room again. */
static void note_losses(struct xpt_recording *recording)
{
	__u64 lost = output_lost(recording->output);
	struct xpt_record_lost record = records_loss(recording->collector, XPT_LOSS_OUTPUT,
						     lost - recording->output_lost);

	if (lost == recording->output_lost)
		return;
	if (!recording->output_lost)
		log_warn(&recording->collector->log, "%s does not take what is recorded: records are lost",
			 recording->output_name);
	on_record(recording, &record.header);
	recording->output_lost = lost;
}

static enum xpt_end end_of(const struct xpt_recording *recording, __u64 now)
{
	if (output_failed(recording->output))
		return XPT_END_OUTPUT;
	if (__atomic_load_n(&recording->stopped, __ATOMIC_RELAXED))
		return XPT_END_STOPPED;
	if (targets_ended(recording->collector))
		return XPT_END_TARGETS;
	return now >= recording->end ? XPT_END_DURATION : 0;
}

static __u64 on_work(void *context, __u64 now)
{
	struct xpt_recording *recording = context;

	if (recording->codes)
		codeobj_source_work(recording->codes);
	if (now >= recording->status_due) {
		report_status(recording, now);
		recording->status_due = now + STATUS_INTERVAL;
	}
	if (now >= recording->output_due) {
		output_flush(recording->output);
		recording->output_due = now + FLUSH_INTERVAL;
	}
	if (now >= recording->losses_due) {
		note_losses(recording);
		recording->losses_due = now + LOSSES_INTERVAL;
	}
	if (!recording->ended_by && !recording->consumer.session->error)
		recording->ended_by = end_of(recording, clock_monotonic());
	recording->consumer.leaving |= recording->consumer.shares && recording->ended_by;
	return recording->end;
}

/* Where the session continues, what the kernel has counted stays there for the others. */
static void on_finished(void *context)
{
	struct xpt_recording *recording = context;

	if (recording->codes)
		codeobj_source_finish(recording->codes);
	if (recording->consumer.session->ending || !recording->consumer.started)
		return;
	records_drain(recording->collector);
	records_drain(recording->collector); /* the second PASS releases what the first one brought */
	recording->left = clock_monotonic();
	records_totals_pass(recording->collector, consumer_record, &recording->consumer);
}

/* ---- creation ---- */

static int on_started(void *context)
{
	struct xpt_recording *recording = context;
	__u64 started = recording->consumer.begun;

	if (recording->codes)
		codeobj_source_started(recording->codes);
	recording->output_due = recording->status_due = recording->losses_due = started;
	recording->end = recording->options.duration ? started + recording->options.duration : ~0ull;
	return 0;
}

/* First in the stream, so that readers know from the first call on. */
static int pass_choices(struct xpt_recording *recording)
{
	struct xpt_program_choice choice;
	bool match;

	for (size_t i = 0; recording->chooser && chooser_choice(recording->chooser, i, &choice, &match); i++)
		record_text_freed(recording, record_text(match ? XPT_RECORD_MATCH : XPT_RECORD_CHOICE, choice.pid,
							 clock_monotonic(), choice.handle, choice.name ?: ""));
	return recording->collector->error;
}

static int create(struct xpt_recording *recording)
{
	const struct xpt_recording_options *options = &recording->options;
	const struct log log = { options->log, options->log_context, options->log_level };
	const struct collector_options collector_options = {
		COLLECTOR_OPTIONS(options),
		.counters = options->counters,
		.counter_count = options->counter_count,
		.counter_tracks = true,
		.counters_every = options->counters_every,
		.counters_per_inference = options->counters_per_inference,
	};
	int error;

	if (options->sample_every > SAMPLE_MAX) {
		log_error(&log, "sampling one inference in %u is out of range (1 to %u)", options->sample_every,
			  SAMPLE_MAX);
		return -EINVAL;
	}
	if (options->stacks > XPT_STACKS_SECOND_MAX) {
		log_error(&log, "%u stacks a second are out of range (1 to %u)", options->stacks,
			  XPT_STACKS_SECOND_MAX);
		return -EINVAL;
	}
	if (options->samples > XPT_STACKS_SECOND_MAX) {
		log_error(&log, "%u samples a second are out of range (1 to %u)", options->samples,
			  XPT_STACKS_SECOND_MAX);
		return -EINVAL;
	}
	recording->output_name = strdup(options->output ?: "the output");
	if (!recording->output_name)
		return -ENOMEM;
	recording->consumer = (struct consumer){
		.record = on_record,
		.scanned = on_scanned,
		.attached = on_started,
		.work = on_work,
		.finished = on_finished,
		.context = recording,
		.needs = {
			.roles = collector_level_roles(options->level),
			.sample_every = options->sample_every ?: 1,
			.chosen_only = has_choices(options),
			.codes = options->code_objects,
			.code_wait_limit = options->code_wait_limit,
			.stacks = options->stacks,
			.samples = options->samples,
		},
	};
	error = consumer_attach(&recording->consumer, options->session, &collector_options);
	if (error)
		return error;
	recording->collector = recording->consumer.session->collector;
	error = create_chooser(recording);
	if (!error)
		error = create_output(recording);
	if (!error)
		error = create_codes(recording);
	if (!error)
		error = pass_choices(recording);
	return error || recording->consumer.shares ? error : session_open(recording->consumer.session);
}

int xpt_recording_create(const struct xpt_recording_options *options, struct xpt_recording **result)
{
	struct xpt_recording *recording = calloc(1, sizeof(*recording));
	int error;

	if (!recording)
		return -ENOMEM;
	error = options_copy(&recording->options, sizeof(recording->options), options);
	if (!error)
		error = create(recording);
	if (error) {
		xpt_recording_destroy(recording);
		return error;
	}
	*result = recording;
	return 0;
}

int xpt_recording_start(struct xpt_recording *recording)
{
	return consumer_start(&recording->consumer);
}

static int has_ended(void *context)
{
	const struct xpt_recording *recording = context;

	if (!recording->consumer.started)
		return -EINVAL;
	return recording->consumer.session->error ?: (int)recording->ended_by;
}

int xpt_recording_run(struct xpt_recording *recording)
{
	return session_await(recording->consumer.session, XPT_FOREVER, has_ended, recording);
}

void xpt_recording_stop(struct xpt_recording *recording)
{
	uint64_t not_yet = 0;

	__atomic_compare_exchange_n(&recording->stopped, &not_yet, clock_monotonic(), false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	if (recording->consumer.shares)
		collector_wake(recording->collector);
	else
		xpt_session_interrupt(recording->consumer.session);
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

int xpt_recording_finish(struct xpt_recording *recording)
{
	const struct consumer *consumer = &recording->consumer;
	struct collector *collector = recording->collector;
	int error = 0, written;

	if (recording->finished)
		return 0;
	recording->finished = true;
	consumer_stop(&recording->consumer);
	if (!recording->consumer.left) { /* it was never started */
		collector_finish(collector);
		session_remove(recording->consumer.session, &recording->consumer);
	}
	output_settle(recording->output);
	note_losses(recording);
	if (collector->kern)
		error = records_end(collector,
				    &(struct records_ending){
					    .stopped_by = end_name(recording->ended_by),
					    .begun = consumer->begun,
					    .ended = consumer->started ? recording->left ?: collector->ended : 0,
					    .open = consumer->counted > consumer->closed ?
							    consumer->counted - consumer->closed :
							    0,
					    .before = &consumer->before,
					    .record = on_record,
					    .context = recording,
				    });
	written = output_finish(recording->output);
	if (!recording->consumer.shares)
		collector_check_names(collector, output_model(recording->output));
	if (recording->ended_by && recording->ended_by != XPT_END_OUTPUT && !xpt_recording_runs(recording)) {
		log_warn(&collector->log, "no program was run");
		collector_explain(collector);
	}
	if (written == -ETIMEDOUT)
		log_error(&collector->log, "%s is blocked and was given up: %llu records could not be written",
			  recording->output_name, (unsigned long long)output_lost(recording->output));
	error = written ?: error;
	if (error && error != -ETIMEDOUT)
		log_error(&collector->log, "cannot write %s: %s; what was written before can be read",
			  recording->output_name, strerror(-error));
	return error;
}

int xpt_recording_summary(struct xpt_recording *recording, int descriptor, unsigned int columns)
{
	return output_summary(output_model(recording->output), descriptor, columns, 0);
}

int xpt_recording_summary_json(struct xpt_recording *recording, char **json)
{
	return summary_json(output_model(recording->output), 0, json);
}

int xpt_recording_command_status(const struct xpt_recording *recording)
{
	return collector_command_status(recording->collector);
}

uint64_t xpt_recording_runs(const struct xpt_recording *recording)
{
	const struct model *model = output_model(recording->output);
	uint64_t runs = 0;

	for (size_t i = 0; i < model_program_count(model); i++) {
		const struct model_program *program = model_program(model, i);

		runs += program->total_known ? program->total.calls : program->recorded;
	}
	for (size_t i = 0; i < model_call_total_count(model); i++) { /* of kernels that are not known */
		const struct model_call_total *total = model_call_total(model, i);

		if (total->function->role == XPT_ROLE_LAUNCH)
			runs += total->total_known ? total->total.calls : total->recorded;
	}
	for (size_t i = 0; i < model_region_total_count(model); i++) {
		const struct model_region_total *total = model_region_total(model, i);

		runs += total->duration ? statistics_count(total->duration) : 0;
	}
	return runs;
}

int xpt_recording_programs(struct xpt_recording *recording,
			   int (*visit)(void *context, const struct xpt_program_info *program), void *context)
{
	struct model *model = output_model(recording->output);
	int result = 0;

	for (size_t i = 0; i < model_program_count(model) && !result; i++) {
		const struct model_program *program = model_program(model, i);
		struct xpt_program_info info = {
			.size = sizeof(info),
			.pid = program->process->tgid,
			.runtime = program->runtime,
			.name = program->name,
			.handle = program->handle,
			.calls = program->total_known ? program->total.calls : program->recorded,
			.errors = program->errors,
			.mean = program->latency ? statistics_mean(program->latency) : 0,
		};

		result = visit(context, &info);
	}
	return result;
}

int xpt_recording_unmet(struct xpt_recording *recording,
			int (*visit)(void *context, const struct xpt_program_choice *choice, int match), void *context)
{
	struct xpt_program_choice choice;
	int result = 0;
	bool match;

	for (size_t i = 0; !result && recording->chooser && chooser_choice(recording->chooser, i, &choice, &match);
	     i++) {
		choice.size = sizeof(choice);
		if (!chooser_met(recording->chooser, i))
			result = visit(context, &choice, match);
	}
	return result;
}

void xpt_recording_destroy(struct xpt_recording *recording)
{
	if (!recording)
		return;
	if (recording->collector) /* else it has not joined */
		consumer_stop(&recording->consumer);
	codeobj_source_free(recording->codes);
	if (!recording->finished) /* nobody waits for the output */
		recording->stopped = recording->stopped ?: clock_monotonic();
	output_free(recording->output);
	chooser_free(recording->chooser);
	consumer_free(&recording->consumer);
	free(recording->output_name);
	free(recording);
}
