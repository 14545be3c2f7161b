/* SPDX-License-Identifier: BSD-2-Clause */
/* Standard error: messages, and one status line below them. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/commands.h"

static bool status_shown;

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

void print_name(FILE *out, const char *name, size_t columns)
{
	struct text safe = {};
	size_t used = text_terminal(&safe, name, strlen(name), columns);

	fprintf(out, "%.*s%*s", (int)safe.length, safe.data ?: "", (int)(columns > used ? columns - used : 0), "");
	text_free(&safe);
}

void print_message(void *context, enum xpt_log_level level, const char *text)
{
	static const char *const heads[] = { "debug: ", "", "warning: ", "error: " };
	struct text safe = {};

	(void)context;
	/* Names of processes and files are the target's: nothing in them may reach the terminal as a command. */
	text_terminal(&safe, text, strlen(text), 0);
	flockfile(stderr);
	status_clear();
	fprintf(stderr, "xputrace: %s%.*s\n", heads[level], (int)safe.length, safe.data ?: "");
	funlockfile(stderr);
	text_free(&safe);
}
