/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings of an inspection, from an environment that a traced process may have made. The first byte chooses whose names they
 * have and whether they are a process's; the rest are variables, a line each.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "session/inspect/inspect.h"
#include "tests/fuzz/require.h"

#define VARIABLES_MAX 64

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* Structs have holes, so not by their bytes. */
static bool same(const struct inspect_settings *a, const struct inspect_settings *b)
{
	return a->session_id == b->session_id && a->inspect == b->inspect && a->on_fail == b->on_fail &&
	       a->max_events_per_core == b->max_events_per_core && a->types == b->types &&
	       a->activities == b->activities && a->other_cores == b->other_cores &&
	       !memcmp(a->cores, b->cores, sizeof(a->cores)) && !strcmp(a->output_dir, b->output_dir);
}

static void check_settings(const struct inspect_settings *settings)
{
	require(settings->session_id >= 0);
	require(settings->max_events_per_core && settings->max_events_per_core <= XPT_INSPECT_EVENTS_MAX);
	require(!(settings->types & ~INSPECT_ALL_TYPES) && !(settings->activities & ~INSPECT_ALL_ACTIVITIES));
	require(settings->output_dir[0] && memchr(settings->output_dir, 0, PATH_MAX));
}

static struct inspect_settings apply(const struct inspect_environment *environment, int *error)
{
	struct said said = { 0 };
	struct log log = { said_write, &said, XPT_LOG_DEBUG };
	struct inspect_settings settings, before;

	inspect_settings_init(&settings);
	before = settings;
	*error = inspect_settings_apply(&log, environment, &settings);
	require(*error == 0 || *error == -EINVAL);
	require(said.errors == (*error ? 1u : 0u));
	if (*error || environment->pid)
		require(!strcmp(settings.output_dir, "./output"));
	if (*error)
		require(same(&before, &settings));
	if (environment->pid)
		require(settings.max_events_per_core <= before.max_events_per_core);
	check_settings(&settings);
	return settings;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	const char *variables[VARIABLES_MAX + 1] = { 0 };
	struct inspect_environment environment = { .variables = variables };
	struct inspect_settings first, second;
	size_t count = 0;
	char *text, *rest;
	int error, again;

	if (!size)
		return 0;
	environment.source = data[0] & 4 ? INSPECT_OPTIONS : data[0] & 1 ? INSPECT_NEURON : INSPECT_XPUTRACE;
	environment.pid = data[0] & 2 ? 77 : 0;
	text = strndup((const char *)data + 1, size - 1);
	require(text != NULL);
	rest = text;
	while (rest && count < VARIABLES_MAX)
		variables[count++] = strsep(&rest, "\n");
	first = apply(&environment, &error);
	second = apply(&environment, &again);
	require(error == again && same(&first, &second));
	free(text);
	return 0;
}
