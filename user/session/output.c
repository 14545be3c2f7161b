/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "report/chrome.h"
#include "session/session.h"

struct output {
	const struct log *log;
	struct model *model;
	struct recording_writer *recording;
	struct chrome_writer *chrome;
	struct guard *guard;
	bool guarded; /* the guard has the file */
	int error;
	__u64 bytes; /* after the writer is closed */
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
		.realtime = now + session_clock_offset(),
		.host = name.nodename,
		.kernel = name.release,
		.machine = name.machine,
		.version = XPT_VERSION,
		.command = command,
		.boot_id = boot_id,
		.cpus = sysconf(_SC_NPROCESSORS_ONLN),
	};
}

/* The guard gets the file with the first state, and each state after that. */
static void on_progress(void *context, int descriptor, __u64 length, const char *tail, size_t tail_length)
{
	struct output *output = context;

	if (!output->guarded && guard_file(output->guard, descriptor))
		return;
	output->guarded = true;
	guard_file_state(output->guard, length, tail, tail_length);
}

static int open_file(struct output *output, enum xpt_output format, const char *path)
{
	struct recording_info info;
	int descriptor = -1, error;

	if (format == XPT_OUTPUT_NONE)
		return 0;
	if (!path)
		return -EINVAL;
	if (!strcmp(path, "-")) {
		descriptor = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		if (descriptor < 0)
			return -errno;
		path = NULL;
	}
	output_info(&info);
	if (format == XPT_OUTPUT_RECORDING)
		return recording_writer_create(output->log, path, descriptor, &info, &output->recording);
	error = chrome_writer_create(output->log, path, descriptor, &info, &output->chrome);
	if (error)
		return error;
	if (output->guard)
		chrome_writer_watch(output->chrome, on_progress, output);
	return model_add_sink(output->model, chrome_writer_sink(output->chrome));
}

int output_create(const struct log *log, enum xpt_output format, const char *path, struct guard *guard,
		  struct output **result)
{
	struct output *output = calloc(1, sizeof(*output));
	int error;

	if (!output)
		return -ENOMEM;
	output->log = log;
	output->guard = guard;
	error = model_create(log, &output->model);
	if (!error)
		error = open_file(output, format, path);
	if (error) {
		output_free(output);
		return error;
	}
	*result = output;
	return 0;
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
	else if (output->chrome)
		error = chrome_writer_flush(output->chrome);
	if (error && !output->error)
		output->error = error;
	return output->error;
}

int output_finish(struct output *output)
{
	int error = model_flush(output->model);

	output->bytes = output_bytes(output);
	if (output->recording)
		error = recording_writer_close(output->recording) ?: error;
	if (output->chrome)
		error = chrome_writer_close(output->chrome, output->model) ?: error;
	output->recording = NULL;
	output->chrome = NULL;
	if (error && !output->error)
		output->error = error;
	return output->error;
}

void output_free(struct output *output)
{
	if (!output)
		return;
	if (output->recording || output->chrome)
		output_finish(output);
	model_free(output->model);
	free(output);
}

struct model *output_model(struct output *output)
{
	return output->model;
}

__u64 output_bytes(const struct output *output)
{
	if (output->recording)
		return recording_writer_bytes(output->recording);
	if (output->chrome)
		return chrome_writer_bytes(output->chrome);
	return output->bytes;
}

bool output_failed(const struct output *output)
{
	return output->error != 0;
}
