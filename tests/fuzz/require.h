/* SPDX-License-Identifier: BSD-2-Clause */
/* What must be true whatever the input is, and that messages are fit to be shown. */
#ifndef FUZZ_REQUIRE_H
#define FUZZ_REQUIRE_H

#include <stdio.h>
#include <stdlib.h>

#include <xputrace/error.h>

#define require(condition)                                                                      \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                                \
		}                                                                               \
	} while (0)

struct said {
	unsigned int errors;
};

/* Every message is one printable line. */
static inline void said_write(void *context, enum xpt_log_level level, const char *text)
{
	struct said *said = context;

	said->errors += level == XPT_LOG_ERROR;
	for (; *text; text++)
		require((unsigned char)*text >= ' ' && *text != 0x7f);
}

#endif
