/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_recording_*: the one place where the parts are put together: open, arm, start, stop, drain, close. */
#include "session/private.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "kern/features.h"
#include "model/statistics.h"
#include "report/summary.h"

#define BUFFER_BYTES (8u << 20)
#define SAMPLE_MAX 1000000u

static int check_options(const struct xpt_recording_options *options, struct log *log)
{
	unsigned int ways;

	if (!options || options->size < sizeof(size_t))
		return -EINVAL;
	*log = (struct log){ options->log, options->log_context, options->log_level };
	if (options->size > sizeof(*options)) {
		const char *tail = (const char *)options + sizeof(*options);

		for (size_t i = 0; i < options->size - sizeof(*options); i++) {
			if (tail[i])
				return -E2BIG;
		}
	}
	ways = !!options->pid_count + !!options->command + !!options->all_processes;
	if (ways != 1) {
		log_error(log, ways ? "processes, a command and all processes exclude each other" :
				      "nothing to trace: name processes, a command, or all processes");
		return -EINVAL;
	}
	if (options->command && !options->command[0]) {
		log_error(log, "the command is empty");
		return -EINVAL;
	}
	if (options->sample_every > SAMPLE_MAX) {
		log_error(log, "sampling one inference in %u is out of range (1 to %u)", options->sample_every,
			  SAMPLE_MAX);
		return -EINVAL;
	}
	return 0;
}

static int copy_options(struct xpt_recording *recording, const struct xpt_recording_options *options)
{
	size_t known = options->size < sizeof(*options) ? options->size : sizeof(*options);

	memcpy(&recording->options, options, known);
	recording->pids = calloc(options->pid_count ?: 1, sizeof(*recording->pids));
	recording->names = calloc(options->name_count ?: 1, sizeof(*recording->names));
	if (!recording->pids || !recording->names)
		return -ENOMEM;
	if (options->pid_count)
		memcpy(recording->pids, options->pids, options->pid_count * sizeof(*recording->pids));
	for (size_t i = 0; i < options->name_count; i++) {
		recording->names[i] = options->names[i];
		recording->names[i].name = strdup(options->names[i].name);
		if (!recording->names[i].name)
			return -ENOMEM;
	}
	return 0;
}

static int emit(void *context, const struct xpt_record_header *record)
{
	struct xpt_recording *recording = context;

	return output_record(recording->output, record);
}

/* The user's names come first in the stream, so that they hold from the first call on. */
static int emit_names(struct xpt_recording *recording)
{
	for (size_t i = 0; i < recording->options.name_count; i++) {
		const struct xpt_handle_name *name = &recording->names[i];
		struct xpt_record_text *record = record_text(XPT_RECORD_NAMED, name->pid, clock_monotonic(),
							     name->handle, name->name);

		if (!record)
			return -ENOMEM;
		emit(recording, &record->header);
		free(record);
	}
	return 0;
}

/* Says which of the things that are needed is missing, and what to do about it. */
static void explain_kernel(struct xpt_recording *recording, int error)
{
	char detail[256];

	for (size_t i = 0; i < feature_count; i++) {
		if (features[i].need != FEATURE_REQUIRED || !features[i].try(detail, sizeof(detail)))
			continue;
		log_error(&recording->log, "this machine lacks %s, needed for %s: %s", features[i].name,
			  features[i].gives, features[i].advice);
		return;
	}
	log_error(&recording->log, "cannot set up tracing in the kernel: %s (see `xputrace check`)", strerror(-error));
}

static int open_kernel(struct xpt_recording *recording)
{
	const struct xpt_recording_options *options = &recording->options;
	struct kern_options kern_options = {
		.spec_count = attacher_spec_count(recording->registry),
		.sample_every = options->sample_every ?: 1,
		.buffer_bytes = options->buffer_bytes ?: BUFFER_BYTES,
		.link = (enum link_kind)options->link,
	};
	struct attacher_options attacher_options = {
		.log = &recording->log,
		.registry = recording->registry,
		.all_processes = options->all_processes,
		.hold = options->command != NULL,
		.record = emit,
		.context = recording,
	};
	int error = kern_open(&recording->log, &kern_options, &recording->kern);

	if (error) {
		explain_kernel(recording, error);
		return error;
	}
	attacher_options.kern = recording->kern;
	error = attacher_create(&attacher_options, &recording->attacher);
	if (!error && !options->command && mappings_open(&recording->log, &recording->mappings))
		recording->mappings = NULL;
	return error;
}

static int watch(struct xpt_recording *recording, int descriptor)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = descriptor };

	return epoll_ctl(recording->epoll, EPOLL_CTL_ADD, descriptor, &event) ? -errno : 0;
}

static int open_events(struct xpt_recording *recording)
{
	int error;

	recording->epoll = epoll_create1(EPOLL_CLOEXEC);
	recording->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (recording->epoll < 0 || recording->wake < 0)
		return -errno;
	error = watch(recording, recording->wake);
	if (!error)
		error = watch(recording, kern_ring_descriptor(recording->kern));
	if (!error && recording->mappings)
		error = watch(recording, mappings_descriptor(recording->mappings));
	return error;
}

int xpt_recording_create(const struct xpt_recording_options *options, struct xpt_recording **result)
{
	struct xpt_recording *recording = calloc(1, sizeof(*recording));
	struct log log = {};
	int error;

	if (!recording)
		return -ENOMEM;
	recording->epoll = recording->wake = -1;
	recording->command = (struct command){ .release = -1, .failure = -1, .status = -1 };
	error = check_options(options, &log);
	if (error)
		goto out;
	recording->log = log;
	error = copy_options(recording, options);
	if (!error)
		error = registry_create(&recording->log, options->runtime_files, options->runtime_file_count,
					options->runtimes, options->runtime_count, &recording->registry);
	if (!error && geteuid()) {
		log_error(&recording->log, "recording needs root: start it with sudo");
		error = -EPERM;
	}
	if (!error)
		error = targets_look(recording);
	/* The guard is a fork: made while there is one thread and little memory. */
	if (!error && (options->command || options->format == XPT_OUTPUT_CHROME)) {
		error = guard_start(&recording->guard);
		if (error)
			log_error(&recording->log, "cannot start the guard process: %s", strerror(-error));
	}
	if (!error)
		error = output_create(&recording->log, options->format, options->output, recording->guard,
				      &recording->output);
	if (!error)
		error = open_kernel(recording);
	if (!error)
		error = open_events(recording);
out:
	if (error) {
		xpt_recording_destroy(recording);
		return error;
	}
	*result = recording;
	return 0;
}

int xpt_recording_start(struct xpt_recording *recording)
{
	int error = emit_names(recording);

	recording->started = clock_monotonic();
	recording->output_due = recording->losses_due = recording->started;
	return error ?: targets_start(recording);
}

static void report_status(struct xpt_recording *recording, __u64 now)
{
	struct model *model = output_model(recording->output);
	struct xpt_recording_status status = {
		.elapsed = now - recording->started,
		.processes = recording->followed_count,
		.programs = model_program_count(model),
		.calls = recording->calls,
		.lost = recording->lost,
		.bytes = output_bytes(recording->output),
	};

	if (recording->options.status)
		recording->options.status(recording->options.status_context, &status);
}

static int turn(struct xpt_recording *recording)
{
	struct epoll_event events[8];
	__u64 now;
	int ready;

	ready = epoll_wait(recording->epoll, events, 8, POLL_INTERVAL_MS);
	if (ready < 0 && errno != EINTR)
		return -errno;
	for (int i = 0; i < ready; i++) {
		if (recording->mappings && events[i].data.fd == mappings_descriptor(recording->mappings))
			targets_read_mappings(recording);
	}
	records_drain(recording);
	targets_scan_pending(recording);
	now = clock_monotonic();
	if (now >= recording->losses_due) {
		records_losses(recording);
		targets_check(recording);
		attacher_sweep(recording->attacher);
		report_status(recording, now);
		recording->losses_due = now + STATUS_INTERVAL;
	}
	if (now >= recording->output_due) {
		output_flush(recording->output);
		recording->output_due = now + FLUSH_INTERVAL;
	}
	return recording->error;
}

int xpt_recording_run(struct xpt_recording *recording)
{
	__u64 end = recording->options.duration ? recording->started + recording->options.duration : ~0ull;
	int error;

	for (;;) {
		error = turn(recording);
		if (error)
			return error;
		if (output_failed(recording->output))
			return recording->ended_by = XPT_END_OUTPUT;
		if (__atomic_load_n(&recording->stopping, __ATOMIC_RELAXED))
			return recording->ended_by = XPT_END_STOPPED;
		if (targets_ended(recording))
			return recording->ended_by = XPT_END_TARGETS;
		if (clock_monotonic() >= end)
			return recording->ended_by = XPT_END_DURATION;
	}
}

void xpt_recording_stop(struct xpt_recording *recording)
{
	__u64 one = 1;
	int saved = errno;

	__atomic_store_n(&recording->stopping, 1, __ATOMIC_RELAXED);
	if (write(recording->wake, &one, sizeof(one)) < 0)
		errno = saved; /* already full: it will wake */
	errno = saved;
}

/* Calls that are open get a moment to end; then nothing is placed any more, and what is left is fetched. */
static void detach(struct xpt_recording *recording)
{
	kern_stop(recording->kern);
	usleep(GRACE_US);
	records_drain(recording);
	attacher_detach(recording->attacher);
	records_drain(recording);
	records_drain(recording); /* a second PASS releases what the first one brought */
}

int xpt_recording_finish(struct xpt_recording *recording)
{
	int error;

	if (!recording->kern || recording->finished)
		return recording->finished ? 0 : -EINVAL;
	recording->finished = true;
	recording->ended = clock_monotonic();
	targets_release(recording);
	detach(recording);
	records_totals(recording, 0);
	records_losses(recording);
	records_end(recording);
	error = output_finish(recording->output);
	if (error)
		log_error(&recording->log, "cannot write %s: %s; what was written before can be read",
			  recording->options.output ?: "the output", strerror(-error));
	return error;
}

int xpt_recording_summary(struct xpt_recording *recording, int descriptor, unsigned int columns)
{
	int copy = dup(descriptor), error;
	FILE *out = copy < 0 ? NULL : fdopen(copy, "w");

	if (!out) {
		if (copy >= 0)
			close(copy);
		return -errno;
	}
	error = summary_write(output_model(recording->output), out, columns);
	if (fclose(out) && !error)
		error = -EIO;
	return error;
}

int xpt_recording_command_status(const struct xpt_recording *recording)
{
	return recording->command.pid ? recording->command.status : -1;
}

int xpt_recording_programs(struct xpt_recording *recording,
			   int (*visit)(void *context, const struct xpt_program_info *program), void *context)
{
	struct model *model = output_model(recording->output);
	int result = 0;

	for (size_t i = 0; i < model_program_count(model) && !result; i++) {
		const struct model_program *program = model_program(model, i);
		struct xpt_program_info info = {
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

void xpt_recording_destroy(struct xpt_recording *recording)
{
	if (!recording)
		return;
	targets_release(recording);
	attacher_free(recording->attacher);
	mappings_close(recording->mappings);
	kern_close(recording->kern);
	output_free(recording->output);
	guard_stop(recording->guard);
	registry_free(recording->registry);
	command_close(&recording->command);
	if (recording->epoll >= 0)
		close(recording->epoll);
	if (recording->wake >= 0)
		close(recording->wake);
	for (size_t i = 0; recording->names && i < recording->options.name_count; i++)
		free((char *)recording->names[i].name);
	free(recording->names);
	free(recording->pids);
	free(recording->followed);
	free(recording->pending);
	free(recording->spec_calls);
	free(recording);
}
