/* SPDX-License-Identifier: BSD-2-Clause */
/* Standard error: messages, and one status line below them; signals that end a command. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/file/tailed_file.h"
#include "cli/commands.h"

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

void draw_progress(void *context, uint64_t done, uint64_t total)
{
	char text[64];

	(void)context;
	if (total)
		snprintf(text, sizeof(text), "%3.0f %% of %.1f MB", done * 100.0 / total, total / 1e6);
	else
		snprintf(text, sizeof(text), "%.1f MB", done / 1e6);
	status_draw(text);
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

/* ---- the end of a command ---- */

/* ns after the first signal, when standard output blocks; the files that are written to it are given up before (WRITER_GRACE) */
#define END_LATEST 1400000000ull
#define END_LEAST 200000000ull	 /* ns */
#define AGAIN_AFTER 300000000ull /* ns: one key may send more than one signal */

/* What a signal ends; a handler has no other way to know. */
static void (*volatile signal_end)(void *object);
static void *volatile signal_object;

static uint64_t stopped; /* time of the first signal, ns of CLOCK_MONOTONIC; 0: there was none */
static volatile sig_atomic_t only_output_left, again;
static uint64_t latest; /* ns after the first signal */

const uint64_t *stop_time(void)
{
	return &stopped;
}

static bool is_blocked(int descriptor)
{
	struct pollfd output = { .fd = descriptor, .events = POLLOUT };

	return !poll(&output, 1, 0);
}

static void start_timer(void)
{
	uint64_t now = clock_monotonic(), end = stopped + latest;
	uint64_t left = end > now + END_LEAST ? end - now : END_LEAST;
	struct itimerval timer = { .it_value = { left / 1000000000, left % 1000000000 / 1000 } };

	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Whatever holds up the output: who waits for the end must not wait for it. A machine may also just be slow. */
static void on_timer(int number)
{
	static const char text[] = "xputrace: error: the output is blocked and was given up\n";

	(void)number;
	if (!again && !is_blocked(STDOUT_FILENO)) {
		start_timer();
		return;
	}
	if (!is_blocked(STDERR_FILENO) && write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(EXIT_FAILED);
	_exit(EXIT_FAILED);
}

static void on_signal(int number)
{
	void (*end)(void *object) = signal_end;
	uint64_t now = clock_monotonic(), none = 0;

	(void)number;
	if (!__atomic_compare_exchange_n(&stopped, &none, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		again = now > none + AGAIN_AFTER;
	if (end)
		end(signal_object);
	if (only_output_left)
		start_timer();
}

void end_soon(bool files_done)
{
	struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };

	sigaction(SIGALRM, &action, NULL);
	latest = files_done ? 0 : END_LATEST;
	only_output_left = 1;
	if (__atomic_load_n(&stopped, __ATOMIC_RELAXED))
		start_timer();
}

void end_on_signals(void (*end)(void *object), void *object)
{
	struct sigaction action = { .sa_handler = on_signal };

	signal_end = NULL;
	signal_object = object;
	signal_end = end;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

void status_line_draw(struct status_line *line, const struct running_figures *figures, const char *tail)
{
	uint64_t seconds = figures->elapsed / 1000000000, span = figures->elapsed - line->last_elapsed;
	double rate = span ? (figures->calls - line->last_calls) * 1e9 / span : 0;
	char text[320];

	snprintf(text, sizeof(text), "%02llu:%02llu  %u processes  %u programs  %.0f calls/s  %llu lost  %s",
		 (unsigned long long)seconds / 60, (unsigned long long)seconds % 60, figures->processes,
		 figures->programs, rate, (unsigned long long)figures->lost, tail);
	status_draw(text);
	if (span >= 1000000000) {
		line->last_elapsed = figures->elapsed;
		line->last_calls = figures->calls;
	}
}

void print_command_status(char *const *command, int status)
{
	char text[256];

	if (!command)
		return;
	if (status == -1)
		snprintf(text, sizeof(text), "%s still runs", command[0]);
	else if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "%s was ended by signal %d (%s)", command[0], WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(text, sizeof(text), "%s ended with status %d", command[0], WEXITSTATUS(status));
	print_message(NULL, XPT_LOG_INFO, text);
}
