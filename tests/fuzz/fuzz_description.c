/* SPDX-License-Identifier: BSD-2-Clause */
/* A runtime description is a file of the user's: whatever it holds, it is refused with a message or is sane. */
#include <string.h>

#include "describe/runtime/description.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_code(const struct call_spec *call)
{
	static const unsigned int needed[] = {
		[XPT_CODE_NONE] = 0,
		[XPT_CODE_MEMORY] = 1 << XPT_CODE_BYTES,
		[XPT_CODE_PARTS] = 1 << XPT_CODE_BYTES | 1 << XPT_CODE_SIZE | 1 << XPT_CODE_COUNT,
		[XPT_CODE_PATH] = 1 << XPT_CODE_BYTES,
		[XPT_CODE_DESCRIPTOR] = 1 << XPT_CODE_BYTES,
	};
	const struct xpt_code_spec *code = &call->code;
	unsigned int given = code->given;

	require(code->source <= XPT_CODE_DESCRIPTOR && call->code_kind < CODE_KINDS);
	if (code->source == XPT_CODE_MEMORY)
		given &= ~(1u << XPT_CODE_SIZE);
	require(given == needed[code->source]);
	for (unsigned int i = 0; i < 3; i++) {
		require(code->fetch[i].source <= 15 && !code->fetch[i].at_return);
		require(code->fetch[i].derefs <= XPT_DEREF_MAX && code->fetch[i].type <= XPT_TYPE_STRING);
	}
	require((code->fetch[XPT_CODE_BYTES].type == XPT_TYPE_STRING) == (code->source == XPT_CODE_PATH));
}

/* A place that can be looked for. */
static void check_place(const struct call_spec *call)
{
	require(!call->symbol_count == (call->locate != LOCATE_SYMBOL && call->locate != LOCATE_OPERATORS));
	require(!call->probe == (call->locate != LOCATE_PROBE));
	require(!call->refers_to == (call->locate != LOCATE_REFERENCE));
	require(!call->callback_of == (call->locate != LOCATE_CALLBACK));
	require(!call->method_of == (call->locate != LOCATE_VIRTUAL));
	for (size_t i = 0; i < call->symbol_count; i++)
		require(*call->symbols[i]);
}

static void check_call(const struct call_spec *call)
{
	const struct xpt_spec *spec = &call->wire;

	require(*call->function);
	check_place(call);
	require(spec->fetches <= XPT_FETCH_MAX);
	require(spec->success <= XPT_SUCCESS_NONZERO);
	for (unsigned int i = 0; i < spec->fetches; i++) {
		const struct xpt_fetch *fetch = &spec->fetch[i];

		require(fetch->meaning >= XPT_MEANING_PROGRAM && fetch->meaning <= XPT_MEANING_CALLBACK);
		require(fetch->source <= 15 || fetch->source >= XPT_SOURCE_RESULT);
		require(fetch->derefs <= XPT_DEREF_MAX && fetch->type <= XPT_TYPE_STRING);
		require(fetch->meaning != XPT_MEANING_PROGRAM || i == 0 || fetch->source == XPT_SOURCE_PROGRAM);
	}
	if (spec->flags & XPT_SPEC_BY_PROGRAM)
		require(spec->fetches && spec->fetch[0].meaning == XPT_MEANING_PROGRAM && !spec->fetch[0].at_return);
	check_code(call);
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
	require(!said.errors && (description->call_count || description->operators.method_count));
	for (size_t i = 0; i < description->call_count; i++)
		check_call(&description->calls[i]);
	for (size_t i = 0; i < description->operators.method_count; i++)
		check_call(&description->operators.methods[i].call);
	for (size_t i = 0; i < description->status_count; i++) {
		require(description_status(description, description->statuses[i].value, &name) ==
			description->statuses[i].class);
		require(strcmp(name, description->statuses[i].name) == 0);
	}
	description_free(description);
	return 0;
}
