/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/core/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/process.h"
#include "base/file/file.h"
#include "base/file/output.h"
#include "base/file/writer.h"
#include "page/page.h"
#include "report/flame/flame.h"
#include "report/perfetto/perfetto.h"
#include "report/table/summary.h"
#include "session/core/session.h"

#include <xputrace/output.h>

const struct event_format *output_trace(enum xpt_output format, enum xpt_level level)
{
	if (format == XPT_OUTPUT_QNN_CSV)
		return level == XPT_LEVEL_BASIC ? &qnn_csv_basic : &qnn_csv_detailed;
	if (format == XPT_OUTPUT_PERFETTO)
		return &perfetto_format;
	return format == XPT_OUTPUT_ORT ? &ort_format : &chrome_format;
}

struct output {
	const struct log *log;
	struct model *model;
	struct recording_writer *recording;
	struct event_file *trace;
	struct flame *flame;
	struct page_options page; /* name NULL: none */
	int page_recording;	  /* what it is made of, at the end */
	int error;
	__u64 bytes, lost; /* after the writer is closed */
};

static void read_line(const char *path, char *text, size_t size)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = file < 0 ? -1 : read(file, text, size - 1);

	if (file >= 0)
		close(file);
	text[length < 0 ? 0 : length] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

static void read_command(char *text, size_t size)
{
	int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t length = file < 0 ? -1 : read(file, text, size - 1);

	if (file >= 0)
		close(file);
	for (ssize_t i = 0; i + 1 < length; i++) {
		if (!text[i])
			text[i] = ' ';
	}
	text[length < 0 ? 0 : length] = '\0';
}

void output_info(struct recording_info *info)
{
	static __thread struct utsname name;
	static __thread char boot_id[64], command[4096];
	__u64 now = clock_monotonic();

	uname(&name);
	read_line("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id));
	read_command(command, sizeof(command));
	*info = (struct recording_info){
		.monotonic_time = now,
		.realtime = now + session_clock_offset(CLOCK_REALTIME),
		.boot_time = now + session_clock_offset(CLOCK_BOOTTIME),
		.host = name.nodename,
		.kernel = name.release,
		.machine = name.machine,
		.version = XPT_VERSION,
		.command = command,
		.boot_id = boot_id,
		.cpus = sysconf(_SC_NPROCESSORS_ONLN),
	};
}

static int open_recording(struct output *output, const char *path, const struct recording_info *info)
{
	int descriptor = -1;

	if (!strcmp(path, "-")) {
		descriptor = file_standard_output();
		if (descriptor < 0)
			return descriptor;
		path = NULL;
	}
	return recording_writer_create(output->log, path, descriptor, info, &output->recording);
}

bool output_is_flame(enum xpt_output format)
{
	return format >= XPT_OUTPUT_FOLDED && format <= XPT_OUTPUT_SPEEDSCOPE;
}

static int open_flame(struct output *output, const struct xpt_recording_options *options)
{
	const struct flame_options flame = {
		.log = output->log, .what = options->flame, .format = options->format, .path = options->output
	};

	if (options->flame > XPT_FLAME_NONE && options->flame <= XPT_FLAME_CPU)
		return flame_open(&flame, output->model, &output->flame);
	log_error(output->log,
		  "a flame graph has to be of something: inferences, device time, time off CPU or CPU time");
	return -EINVAL;
}

/* A file in the directory of the output. */
static int open_nameless(const char *path)
{
	struct output_file file;
	int error = output_temporary(path, &file), descriptor;

	if (error)
		return error;
	descriptor = fcntl(file.descriptor, F_DUPFD_CLOEXEC, 3);
	error = descriptor < 0 ? -errno : 0;
	output_end(&file, -ECANCELED);
	return error ?: descriptor;
}

/* A recording without a name, and the file that becomes a page of it. */
static int open_page(struct output *output, const struct xpt_recording_options *options,
		     const struct recording_info *info)
{
	const bool standard = !strcmp(options->output, "-");
	int recording = standard ? open_temporary() : open_nameless(options->output),
	    error = recording < 0 ? recording : 0;

	if (!error) {
		output->page.descriptor = standard ? file_standard_output() : output_open(options->output, O_TRUNC);
		output->page_recording = fcntl(recording, F_DUPFD_CLOEXEC, 3);
		error = output->page_recording < 0 ? -errno : 0;
		error = output->page.descriptor < 0 ? output->page.descriptor : error;
	}
	if (error) {
		log_error(output->log, "%s: cannot be written: %s", options->output, output_reason(error));
		if (recording >= 0)
			close(recording);
		return error;
	}
	output->page.path = strdup(options->output);
	output->page.name = output->page.path;
	output->page.log = output->log;
	if (output->page.path)
		return recording_writer_create(output->log, NULL, recording, info, &output->recording);
	close(recording);
	return -ENOMEM;
}

/* After the last record: it is all in the file. */
static int finish_page(struct output *output)
{
	int error;

	if (!output->page.name)
		return 0;
	error = page_write(&output->page, output->page_recording);
	output->page.descriptor = -1;
	output->page.name = NULL;
	return error;
}

static int open_trace(struct output *output, const struct xpt_recording_options *options,
		      const struct recording_info *info)
{
	int error = event_file_open(output->log, output_trace(options->format, options->level), options->output, info,
				    output->model, &output->trace);

	return error ?: options->format == XPT_OUTPUT_PERFETTO ? model_want_stacks(output->model) : 0;
}

static int open_file(struct output *output, const struct xpt_recording_options *options)
{
	const enum xpt_output format = options->format;
	struct recording_info info;

	if (format == XPT_OUTPUT_NONE)
		return 0;
	if (!options->output)
		return -EINVAL;
	if (output_is_flame(format))
		return open_flame(output, options);
	if (format == XPT_OUTPUT_CSV || format > XPT_OUTPUT_PERFETTO) {
		log_error(
			output->log,
			"cannot write a table of inferences while recording: record to a .xpt file, then use `xputrace report`");
		return -EINVAL;
	}
	output_info(&info);
	if (format == XPT_OUTPUT_HTML)
		return open_page(output, options, &info);
	if (format == XPT_OUTPUT_RECORDING)
		return open_recording(output, options->output, &info);
	return open_trace(output, options, &info);
}

/* Whatever the file is: no output may hold up the rings. */
static int detach(struct output *output, const uint64_t *stopped)
{
	int error = 0;

	if (output->recording)
		error = recording_writer_detach(output->recording, stopped);
	else if (output->trace)
		error = event_file_detach(output->trace, stopped);
	else if (output->flame)
		error = flame_detach(output->flame, stopped);
	if (error)
		log_error(output->log, "cannot start the process that writes the output: %s", strerror(-error));
	return error;
}

int output_create(const struct log *log, const struct xpt_recording_options *options, const uint64_t *stopped,
		  struct output **result)
{
	struct output *output = calloc(1, sizeof(*output));
	int error;

	if (!output)
		return -ENOMEM;
	output->log = log;
	output->page.descriptor = output->page_recording = -1;
	error = model_create(log, &output->model);
	if (!error)
		error = open_file(output, options);
	if (!error)
		error = detach(output, stopped);
	if (error) {
		output_free(output);
		return error;
	}
	*result = output;
	return 0;
}

void output_warn_at(struct output *output, __u64 bytes)
{
	if (output->trace)
		event_file_warn_at(output->trace, bytes);
}

int output_record(struct output *output, const struct xpt_record_header *record)
{
	int error;

	if (output->recording && !output->error)
		output->error = recording_writer_add(output->recording, record);
	error = model_feed(output->model, record);
	if (error && error != -EBADMSG && !output->error)
		output->error = error;
	return output->error;
}

int output_flush(struct output *output)
{
	int error = 0;

	if (output->recording)
		error = recording_writer_flush(output->recording);
	else if (output->trace)
		error = event_file_flush(output->trace);
	if (error && !output->error)
		output->error = error;
	return output->error;
}

int output_settle(struct output *output)
{
	int error = 0;

	if (output->recording)
		error = recording_writer_settle(output->recording);
	else if (output->trace)
		error = event_file_settle(output->trace);
	if (error && !output->error)
		output->error = error;
	return output->error;
}

int output_finish(struct output *output)
{
	int error = model_flush(output->model);

	output_settle(output);
	output->bytes = output_bytes(output);
	output->lost = output_lost(output);
	if (output->recording)
		error = recording_writer_close(output->recording) ?: error;
	error = finish_page(output) ?: error;
	error = event_file_close(output->trace, output->model) ?: error;
	if (output->flame) {
		error = flame_close(output->flame, NULL) ?: error;
		output->bytes = flame_bytes(output->flame);
	}
	flame_free(output->flame);
	output->recording = NULL;
	output->trace = NULL;
	output->flame = NULL;
	if (error && !output->error)
		output->error = error;
	return output->error;
}

void output_free(struct output *output)
{
	if (!output)
		return;
	flame_free(output->flame);
	output->flame = NULL;
	if (output->recording || output->trace)
		output_finish(output);
	if (output->page.descriptor >= 0)
		close(output->page.descriptor);
	if (output->page_recording >= 0)
		close(output->page_recording);
	free((char *)output->page.path);
	model_free(output->model);
	free(output);
}

int output_summary(const struct model *model, int descriptor, unsigned int columns, __u64 length)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size); /* a stream of a file forgets why a write in between has failed */
	int error;

	if (!out)
		return -errno;
	error = summary_write(model, out, columns, length);
	if ((fclose(out) || !text) && !error) /* which of them, when memory is short, depends on the moment */
		error = -ENOMEM;
	error = error ?: file_write(descriptor, text, size);
	free(text);
	return error;
}

struct model *output_model(struct output *output)
{
	return output->model;
}

__u64 output_bytes(const struct output *output)
{
	if (output->recording)
		return recording_writer_bytes(output->recording);
	if (output->trace)
		return event_file_bytes(output->trace);
	return output->flame ? flame_bytes(output->flame) : output->bytes;
}

__u64 output_lost(const struct output *output)
{
	if (output->recording)
		return recording_writer_lost(output->recording);
	if (output->trace)
		return event_file_lost(output->trace);
	return output->lost;
}

bool output_failed(const struct output *output)
{
	return output->error != 0;
}

int xpt_output_start_writer(void)
{
	return cpus_allowed() == 1 ? 0 : writer_prepare();
}

void xpt_output_set_owner(uid_t user, gid_t group)
{
	output_set_owner(user, group);
}

void xpt_output_set_opener(xpt_open_fn open, void *context)
{
	output_set_opener(open, context);
}

const char *xpt_version(void)
{
	return XPT_VERSION;
}
