/* SPDX-License-Identifier: BSD-2-Clause */
#include <bpf/libbpf.h>
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"

void libbpf_log_to(const struct log *log); /* of kern/private.h, which needs the skeletons */

/* What the log was given, line by line. */
struct kept {
	char first[64], second[64], last[64];
	size_t lines;
};

static void keep(void *context, enum xpt_log_level level, const char *text)
{
	struct kept *kept = context;

	cr_assert_eq(level, XPT_LOG_DEBUG);
	cr_assert_null(strchr(text, '\n'));
	if (kept->lines < 2)
		snprintf(kept->lines ? kept->second : kept->first, sizeof(kept->first), "%s", text);
	snprintf(kept->last, sizeof(kept->last), "%s", text);
	kept->lines++;
}

/* libbpf calls the function that was set last. */
static void say(libbpf_print_fn_t print, enum libbpf_print_level level, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print(level, format, arguments);
	va_end(arguments);
}

/* As libbpf prints the log of a verifier that has refused a program: its steps, then why. */
static struct kept refusal(size_t steps, enum xpt_log_level level)
{
	struct kept kept = {};
	const struct log log = { .write = keep, .context = &kept, .level = level };
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	libbpf_print_fn_t print;

	for (size_t i = 0; i < steps; i++)
		fprintf(file, "%zu: (b7) r0 = 0\n", i);
	fprintf(file, "R1 invalid mem access 'scalar'\n");
	fclose(file);
	libbpf_log_to(&log);
	print = libbpf_set_print(NULL);
	say(print, LIBBPF_WARN, "libbpf: prog '%s': -- BEGIN PROG LOAD LOG --\n%s-- END PROG LOAD LOG --\n",
	    "call_entry", text);
	libbpf_log_to(NULL);
	free(text);
	return kept;
}

Test(kern_loader, reason_of_a_long_refusal_is_logged)
{
	struct kept kept = refusal(100000, XPT_LOG_DEBUG);

	cr_assert_str_eq(kept.first, "libbpf: prog 'call_entry': -- BEGIN PROG LOAD LOG --");
	cr_assert_not_null(strstr(kept.second, " bytes are left out)"), "%s", kept.second);
	cr_assert_str_eq(kept.last, "-- END PROG LOAD LOG --");
	cr_assert_eq(kept.lines, 102, "%zu", kept.lines);
}

Test(kern_loader, short_refusal_is_logged_as_a_whole)
{
	struct kept kept = refusal(3, XPT_LOG_DEBUG);

	cr_assert_str_eq(kept.second, "0: (b7) r0 = 0");
	cr_assert_eq(kept.lines, 6, "%zu", kept.lines);
}

Test(kern_loader, refusal_is_not_logged_unless_asked_for)
{
	cr_assert_eq(refusal(3, XPT_LOG_WARN).lines, 0);
}
