/* SPDX-License-Identifier: BSD-2-Clause */
/* A runtime description is a file of the user's: whatever it holds, it is refused with a message or is sane. */
#include <string.h>

#include "describe/description.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_call(const struct call_spec *call)
{
	const struct xpt_spec *spec = &call->wire;

	require(*call->function);
	require(call->locate == LOCATE_SLOT || call->symbol_count);
	require(spec->fetches <= XPT_FETCH_MAX);
	require(spec->success <= XPT_SUCCESS_NONZERO);
	for (unsigned int i = 0; i < spec->fetches; i++) {
		const struct xpt_fetch *fetch = &spec->fetch[i];

		require(fetch->meaning >= XPT_MEANING_PROGRAM && fetch->meaning <= XPT_MEANING_LENGTH);
		require(fetch->source <= 15 || fetch->source == XPT_SOURCE_RETURN);
		require(fetch->derefs <= XPT_DEREF_MAX && fetch->type <= XPT_TYPE_STRING);
		require(fetch->meaning != XPT_MEANING_PROGRAM || i == 0);
	}
	if (spec->flags & XPT_SPEC_BY_PROGRAM)
		require(spec->fetches && spec->fetch[0].meaning == XPT_MEANING_PROGRAM && !spec->fetch[0].at_return);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct said said = { 0 };
	struct log log = { said_write, &said, XPT_LOG_DEBUG };
	struct description *description;
	const char *name;
	int error = description_parse(&log, "fuzz.json", (const char *)data, size, &description);

	if (error) {
		require(!description && said.errors == 1);
		return 0;
	}
	require(!said.errors && description->call_count);
	for (size_t i = 0; i < description->call_count; i++)
		check_call(&description->calls[i]);
	for (size_t i = 0; i < description->status_count; i++) {
		require(description_status(description, description->statuses[i].value, &name) ==
			description->statuses[i].class);
		require(strcmp(name, description->statuses[i].name) == 0);
	}
	description_free(description);
	return 0;
}
