/* SPDX-License-Identifier: BSD-2-Clause */
/* The Chrome trace as a document that grows: buffering, flushing, closing. */
#include "report/chrome/chrome.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/chrome/events.h"
#include "report/chrome/metadata.h"
#include "base/file/output.h"
#include "base/file/tailed_file.h"

#define BUFFER_SIZE (1u << 20)
#define BUFFER_KEPT (4u << 20) /* one huge event must not hold its memory for ever */

/*
 * Completes the document wherever the events end. Nothing follows the last brace, not even a newline: Perfetto's
 * reader takes a byte after the end for an error when it happens to begin a new block.
 */
static const char open_tail[] = "\n],\"metadata\":{\"complete\":false}}";

struct chrome_writer {
	struct log log;
	struct tailed_file file;
	struct recording_info info; /* strings owned */
	int error;		    /* the first one: the sink has failed */
	bool begun;		    /* events are in the file */
	__u64 written, warn_at;	    /* bytes, uncompressed; warn_at 0: already warned, or not wanted */
	__u64 refused_until;	    /* start of the latest call left out from which an arrow would have begun */
	struct chrome_devices *devices;
	struct chrome_events events;
};

static int copy_string(const char **to, const char *from)
{
	*to = strdup(from ? from : "");
	return *to ? 0 : -ENOMEM;
}

static int info_copy(struct recording_info *to, const struct recording_info *from)
{
	to->monotonic_time = from->monotonic_time;
	to->realtime = from->realtime;
	to->cpus = from->cpus;
	if (copy_string(&to->host, from->host) || copy_string(&to->kernel, from->kernel) ||
	    copy_string(&to->machine, from->machine) || copy_string(&to->version, from->version) ||
	    copy_string(&to->command, from->command) || copy_string(&to->boot_id, from->boot_id))
		return -ENOMEM;
	return 0;
}

static void info_free(struct recording_info *info)
{
	free((char *)info->host);
	free((char *)info->kernel);
	free((char *)info->machine);
	free((char *)info->version);
	free((char *)info->command);
	free((char *)info->boot_id);
}

static void writer_free(struct chrome_writer *writer)
{
	chrome_events_free(&writer->events);
	chrome_devices_free(writer->devices);
	info_free(&writer->info);
	free(writer);
}

static int write_head(struct chrome_writer *writer)
{
	struct text *text = &writer->events.text;
	int error;

	text_reserve(text, BUFFER_SIZE);
	text_literal(text, "{\"displayTimeUnit\":\"ns\",\"otherData\":{");
	chrome_metadata_origin(text, &writer->info);
	text_literal(text, "},\"traceEvents\":[");
	error = tailed_file_append(&writer->file, text, open_tail, sizeof(open_tail) - 1, false);
	text_clear(text, BUFFER_KEPT);
	return error;
}

int chrome_writer_create(const struct log *log, const char *path, int descriptor, const struct recording_info *info,
			 struct chrome_writer **result)
{
	struct chrome_writer *writer = calloc(1, sizeof(*writer));
	int error;

	if (!writer) {
		struct tailed_file file;

		if (!path && !tailed_file_open(&file, NULL, descriptor))
			tailed_file_close(&file);
		return -ENOMEM;
	}
	writer->log = log ? *log : (struct log){ 0 };
	error = tailed_file_open(&writer->file, path, descriptor);
	writer->devices = writer->events.jobs.devices = chrome_devices_create();
	if (!error && !writer->devices)
		error = -ENOMEM;
	if (!error)
		error = info_copy(&writer->info, info);
	if (!error)
		error = write_head(writer);
	if (error) {
		log_error(log, "%s: cannot be written: %s", path ? path : "output", output_reason(error));
		goto out;
	}
	*result = writer;
	return 0;
out:
	tailed_file_close(&writer->file);
	writer_free(writer);
	return error;
}

static int failed(struct chrome_writer *writer, int error)
{
	writer->error = error;
	text_clear(&writer->events.text, BUFFER_KEPT);
	if (error != -ETIMEDOUT) /* cancelled by the waiter, which reports it */
		log_error(&writer->log, "trace: no more events are written: %s", strerror(-error));
	return error;
}

/* No room: the text stays for the next time, but for what is more than a buffer may be. */
static int keep_buffer(struct chrome_writer *writer)
{
	struct text *text = &writer->events.text;

	if (text->length < BUFFER_KEPT)
		return 0;
	tailed_file_drop(&writer->file);
	chrome_jobs_forget_names(&writer->events.jobs);
	writer->events.any = writer->begun;
	text_clear(text, BUFFER_KEPT);
	return 0;
}

void chrome_warn_size(const struct log *log, __u64 bytes)
{
	log_warn(log,
		 "the trace gets larger than %.3g GB, which viewers do not open: record into FILE.xpt, and take parts of it with "
		 "xputrace report --from, --to, --program or --slowest",
		 bytes / 1e9);
}

void chrome_writer_warn_at(struct chrome_writer *writer, __u64 bytes)
{
	writer->warn_at = bytes;
}

static int write_buffer(struct chrome_writer *writer)
{
	struct text *text = &writer->events.text;
	int error;

	if (writer->error || !text->length)
		return writer->error;
	if (writer->warn_at && writer->written + text->length > writer->warn_at) {
		chrome_warn_size(&writer->log, writer->warn_at);
		writer->warn_at = 0;
	}
	writer->written += text->length;
	error = tailed_file_append(&writer->file, text, open_tail, sizeof(open_tail) - 1, false);
	if (error == -ENOBUFS) {
		writer->written -= text->length;
		return keep_buffer(writer);
	}
	if (error)
		return failed(writer, error);
	writer->begun = true;
	text_clear(text, BUFFER_KEPT);
	return 0;
}

int chrome_writer_flush(struct chrome_writer *writer)
{
	int error = tailed_file_check(&writer->file);

	if (error && !writer->error)
		return failed(writer, error);
	if (tailed_file_busy(&writer->file))
		return writer->error;
	if (!writer->error)
		chrome_jobs_settle(&writer->events);
	return writer->events.text.error ? failed(writer, writer->events.text.error) : write_buffer(writer);
}

/* An arrow with its beginning left out must not end. */
static bool admit(struct chrome_writer *writer, const struct event *event)
{
	int losses = writer->file.writer ? event_losses(event) : -1;

	if (losses < 0)
		return true;
	if (event->kind == EVENT_INFERENCE && writer->refused_until && event->inference.start <= writer->refused_until)
		return false;
	if (tailed_file_admit(&writer->file, losses))
		return true;
	if (event->kind == EVENT_CALL && event->call.flow_out && event->call.start > writer->refused_until)
		writer->refused_until = event->call.start;
	return false;
}

static int write_event(void *context, const struct event *event)
{
	struct chrome_writer *writer = context;

	if (writer->error)
		return writer->error;
	if (!admit(writer, event))
		return 0;
	chrome_events_add(&writer->events, event);
	if (writer->events.text.error)
		return failed(writer, writer->events.text.error);
	return writer->events.text.length < BUFFER_SIZE ? 0 : write_buffer(writer);
}

struct event_sink chrome_writer_sink(struct chrome_writer *writer)
{
	return (struct event_sink){ .write = write_event, .context = writer };
}

/* Also after a failure: the totals have what is missing, and with luck there is room for them. */
static int write_totals(struct chrome_writer *writer, const struct model *model)
{
	struct text *text = &writer->events.text;
	struct text tail = { 0 };
	int error;

	text_literal(&tail, "\n],\"metadata\":");
	chrome_metadata_totals(&tail, &writer->info, model, writer->devices, writer->error);
	text_literal(&tail, "}");
	error = tail.error;
	if (!error)
		error = tailed_file_append(&writer->file, text, tail.data, tail.length, true);
	text_free(&tail);
	return error;
}

/* With what was held back until now. */
static void end_events(struct chrome_writer *writer)
{
	struct text *text = &writer->events.text;

	if (writer->error)
		return;
	chrome_jobs_end(&writer->events);
	if (text->error)
		failed(writer, text->error);
	else
		write_buffer(writer);
}

int chrome_writer_detach(struct chrome_writer *writer, const uint64_t *stopped)
{
	return tailed_file_detach(&writer->file, stopped);
}

int chrome_writer_settle(struct chrome_writer *writer)
{
	int error = tailed_file_settle(&writer->file);

	if (!error)
		error = write_buffer(writer);
	if (!error)
		error = tailed_file_settle(&writer->file);
	return error && !writer->error ? failed(writer, error) : error;
}

int chrome_writer_close(struct chrome_writer *writer, const struct model *model)
{
	int error, closed;

	if (!writer)
		return 0;
	end_events(writer);
	chrome_writer_settle(writer); /* the totals report what was not written */
	error = write_totals(writer, model);
	if (error && !writer->error)
		log_error(&writer->log, "trace: the totals cannot be written: %s", strerror(-error));
	closed = tailed_file_close(&writer->file);
	if (writer->error)
		error = writer->error;
	writer_free(writer);
	return error ? error : closed;
}

__u64 chrome_writer_bytes(const struct chrome_writer *writer)
{
	return tailed_file_bytes(&writer->file);
}

__u64 chrome_writer_lost(const struct chrome_writer *writer)
{
	return tailed_file_lost(&writer->file);
}
