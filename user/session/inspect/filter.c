/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/inspect/filter.h"

#include <errno.h>
#include <string.h>

#include "counter/sysfs.h"

#define RANGE_LENGTH 32 /* more than two numbers below XPT_INSPECT_CORES take */

_Static_assert(XPT_INSPECT_CORES == CPUS_MAX, "lists of cores are read as those of CPUs");

/* The entry up to the next comma; false: there are no more. The first one is always there, if empty. */
static bool next_entry(const char **at, struct inspect_part *entry)
{
	if (!*at)
		return false;
	entry->text = *at;
	entry->length = strcspn(*at, ",");
	*at = entry->text[entry->length] ? entry->text + entry->length + 1 : NULL;
	return true;
}

/* ---- cores ---- */

static int add_cores(struct inspect_settings *settings, const struct inspect_part *entry)
{
	char range[RANGE_LENGTH];
	struct cpus cores;
	int error;

	if (!entry->length || entry->length >= sizeof(range))
		return -EINVAL;
	memcpy(range, entry->text, entry->length);
	range[entry->length] = '\0';
	error = cpus_parse(range, &cores);
	for (size_t i = 0; i < cores.count; i++)
		inspect_settings_set_core(settings, (__u32)cores.items[i], true);
	cpus_free(&cores);
	return error;
}

int inspect_filter_cores(struct inspect_settings *settings, const char *text)
{
	struct inspect_settings changed = *settings;
	struct inspect_part entry;
	int error = 0;

	inspect_settings_set_core(&changed, XPT_INSPECT_ALL_CORES, false);
	while (!error && next_entry(&text, &entry))
		error = add_cores(&changed, &entry);
	if (!error)
		*settings = changed;
	return error;
}

/* ---- types ---- */

/* A name of Neuron's, and the type that it is a part of. */
static const struct word {
	const char *name;
	enum inspect_type type;
} neuron_words[] = {
	{ "nrt_load", INSPECT_PROGRAM_LOAD }, { "model_load", INSPECT_PROGRAM_LOAD },
	{ "nrt_execute", INSPECT_EXECUTE },   { "runtime_execute", INSPECT_EXECUTE },
	{ "nrt_tensor_read", INSPECT_COPY },  { "nrt_tensor_write", INSPECT_COPY },
	{ "dmem_buf_copyin", INSPECT_COPY },  { "dmem_buf_copyout", INSPECT_COPY },
	{ "kbl_exec_wait", INSPECT_WAIT },    { "nc_exec_running", INSPECT_JOB },
	{ "cc_running", INSPECT_JOB },	      { "numerical_err", INSPECT_ERROR },
};

#define NEURON_WORDS (sizeof(neuron_words) / sizeof(neuron_words[0]))
#define WORDS_MAX (NEURON_WORDS + INSPECT_TYPES)

/* What a filter may name, and what of it is captured by now. */
struct vocabulary {
	struct word words[WORDS_MAX]; /* name NULL: selected with its group only */
	bool captured[WORDS_MAX];
	size_t count;
};

static void add_word(struct vocabulary *vocabulary, const char *name, enum inspect_type type)
{
	vocabulary->words[vocabulary->count++] = (struct word){ name, type };
}

static void vocabulary_fill(struct vocabulary *vocabulary, enum inspect_dialect dialect)
{
	const struct xpt_inspect_event_type *types = xpt_inspect_event_types(NULL);
	__u32 named = 0;

	vocabulary->count = 0;
	for (size_t i = 0; dialect == INSPECT_NEURON && i < NEURON_WORDS; i++) {
		add_word(vocabulary, neuron_words[i].name, neuron_words[i].type);
		named |= 1u << neuron_words[i].type;
	}
	for (unsigned int i = 0; i < INSPECT_TYPES; i++)
		if (!(named & 1u << i))
			add_word(vocabulary, dialect == INSPECT_XPUTRACE ? types[i].name : NULL, i);
}

static bool is(const struct inspect_part *entry, const char *name)
{
	return name && strlen(name) == entry->length && !memcmp(name, entry->text, entry->length);
}

/* Whether it names anything. */
static bool apply(struct vocabulary *vocabulary, const struct inspect_part *entry, bool captured)
{
	const struct xpt_inspect_event_type *types = xpt_inspect_event_types(NULL);
	bool known = false;

	for (size_t i = 0; i < vocabulary->count; i++) {
		const struct word *word = &vocabulary->words[i];

		if (!is(entry, word->name) && !is(entry, types[word->type].group))
			continue;
		vocabulary->captured[i] = captured;
		known = true;
	}
	return known;
}

static __u32 captured_types(const struct vocabulary *vocabulary)
{
	__u32 types = 0;

	for (size_t i = 0; i < vocabulary->count; i++)
		if (vocabulary->captured[i])
			types |= 1u << vocabulary->words[i].type;
	return types;
}

int inspect_filter_types(struct inspect_settings *settings, enum inspect_dialect dialect, const char *text,
			 struct inspect_part *unknown)
{
	struct vocabulary vocabulary;
	struct inspect_part entry;

	*unknown = (struct inspect_part){ 0 };
	vocabulary_fill(&vocabulary, dialect);
	memset(vocabulary.captured, *text == '^', sizeof(vocabulary.captured));
	while (next_entry(&text, &entry)) {
		bool out = entry.length && *entry.text == '^';
		struct inspect_part name = { entry.text + out, entry.length - out };

		if (!name.length)
			return -EINVAL;
		if (apply(&vocabulary, &name, !out))
			continue;
		if (!unknown->length)
			*unknown = name;
		if (dialect == INSPECT_XPUTRACE)
			return -EINVAL;
	}
	settings->types = captured_types(&vocabulary);
	return 0;
}

int xpt_inspect_options_filter_cores(struct xpt_inspect_options *options, const char *cores)
{
	struct inspect_settings settings;
	int error;

	if (!options || !cores)
		return -EINVAL;
	settings = options->settings;
	error = inspect_filter_cores(&settings, cores);
	return error ?: inspect_options_take(options, &settings, NULL);
}

int xpt_inspect_options_filter_types(struct xpt_inspect_options *options, const char *types)
{
	struct inspect_settings settings;
	struct inspect_part unknown;
	int error;

	if (!options || !types)
		return -EINVAL;
	settings = options->settings;
	error = inspect_filter_types(&settings, INSPECT_XPUTRACE, types, &unknown);
	return error ?: inspect_options_take(options, &settings, NULL);
}
