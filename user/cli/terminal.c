/* SPDX-License-Identifier: BSD-2-Clause */
/* Standard error: messages, and one status line below them. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/file/tailed_file.h"
#include "base/core/text.h"
#include "cli/commands.h"
#include "cli/options.h"

static bool status_shown, error_shown;
static int output_error;

/* ---- standard error that blocks ---- */

static struct tailed_file messages;

/* The lock of the stream keeps threads apart. */
static ssize_t write_messages(void *context, const char *bytes, size_t length)
{
	struct text text = { .data = (char *)bytes, .length = length, .capacity = length };
	struct tailed_file *file = context;

	/* What does not fit is lost: only the next message can report it. */
	if (tailed_file_admit(file, 1) && tailed_file_append(file, &text, NULL, 0, false) == -ENOBUFS)
		tailed_file_drop(file);
	return (ssize_t)length;
}

static void end_messages(void)
{
	uint64_t lost = tailed_file_lost(&messages);

	if (lost)
		fprintf(stderr, "xputrace: warning: %llu messages are missing above\n", (unsigned long long)lost);
	fflush(stderr);
	tailed_file_settle(&messages);
	tailed_file_close(&messages);
}

void messages_detach(void)
{
	const cookie_io_functions_t functions = { .write = write_messages };
	int copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	FILE *stream;

	if (tailed_file_open(&messages, NULL, copy))
		return;
	/* A file may have other writers: their messages must not be written over. */
	messages.seekable = false;
	stream = tailed_file_detach(&messages, stop_time()) ? NULL : fopencookie(&messages, "w", functions);
	if (!stream) {
		tailed_file_close(&messages);
		return;
	}
	setvbuf(stream, NULL, _IOLBF, 0);
	stderr = stream;
	atexit(end_messages);
}

/* ---- lines ---- */

unsigned int terminal_columns(int descriptor)
{
	struct winsize size;

	if (!isatty(descriptor))
		return 0;
	return !ioctl(descriptor, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : 80;
}

/* Messages come from threads of the library, too: the lock of the stream keeps lines, and what is known of them, whole. */
void status_clear(void)
{
	flockfile(stderr);
	if (status_shown)
		fputs("\r\033[K", stderr);
	status_shown = false;
	funlockfile(stderr);
}

void status_draw(const char *text)
{
	flockfile(stderr);
	fprintf(stderr, "\r\033[K%s", text);
	fflush(stderr);
	status_shown = true;
	funlockfile(stderr);
}

/* As text_terminal(), also when there is no memory: then what could move the cursor is not shown as what it is. */
static size_t print_safe(FILE *out, const char *bytes, size_t columns, int *error)
{
	struct text safe = {};
	size_t used = text_terminal(&safe, bytes, strlen(bytes), columns);

	if (!safe.error)
		fwrite(safe.data ?: "", 1, safe.length, out);
	for (const char *at = bytes; safe.error && *at && (!columns || (size_t)(at - bytes) < columns); at++)
		putc(*at < ' ' || *at > '~' ? '?' : *at, out);
	if (safe.error)
		*error = safe.error;
	text_free(&safe);
	return used;
}

void print_name(FILE *out, const char *name, size_t columns)
{
	size_t used = print_safe(out, name, columns, &output_error);

	fprintf(out, "%*s", (int)(columns > used ? columns - used : 0), "");
}

void print_message(void *context, enum xpt_log_level level, const char *text)
{
	static const char *const heads[] = { "debug: ", "", "warning: ", "error: " };
	int ignored;

	(void)context;
	flockfile(stderr);
	status_clear();
	fprintf(stderr, "xputrace: %s", heads[level]);
	/* Names of processes and files are the target's: nothing in them may reach the terminal as a command. */
	print_safe(stderr, text, 0, &ignored);
	putc('\n', stderr);
	error_shown |= level == XPT_LOG_ERROR;
	funlockfile(stderr);
}

int exit_failed(int error)
{
	if (!error_shown)
		print_message(NULL, XPT_LOG_ERROR, strerror(-error));
	return EXIT_FAILED;
}

int exit_status(int error)
{
	if (!error)
		return 0;
	exit_failed(error);
	return error == -E2BIG || error == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}

void output_failed(int error)
{
	output_error = error;
}

int exit_output(int status)
{
	char text[200];
	bool failed = ferror(stdout);
	int error = fflush(stdout) ? errno : -output_error;

	if ((!failed && !error) || (status && error_shown))
		return status;
	snprintf(text, sizeof(text), "standard output cannot be written: %s", strerror(error ?: EIO));
	print_message(NULL, XPT_LOG_ERROR, text);
	return status ?: EXIT_FAILED;
}
