/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/commands.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPTIONS_MAX 64
#define NO_LETTER 256 /* values of long options without a letter begin here */
#define HELP_COLUMN 28

static void print_entry(FILE *out, const struct option_entry *entry)
{
	char head[128], letter[8] = "    ";
	const char *line = entry->help, *end;

	if (entry->letter)
		snprintf(letter, sizeof(letter), "-%c, ", entry->letter);
	snprintf(head, sizeof(head), "  %s--%s%s%s%s", letter, entry->name,
		 entry->without	 ? "[=" :
		 entry->argument ? " " :
				   "",
		 entry->argument ?: "", entry->without ? "]" : "");
	fprintf(out, "%-*s", HELP_COLUMN, head);
	if (strlen(head) >= HELP_COLUMN)
		fprintf(out, "\n%*s", HELP_COLUMN, "");
	for (; (end = strchr(line, '\n')); line = end + 1)
		fprintf(out, "%.*s\n%*s", (int)(end - line), line, HELP_COLUMN, "");
	fprintf(out, "%s\n", line);
}

/* An option of a command line, with those of its groups in one array. */
struct flat_option {
	const struct option_entry *entry;
	size_t offset; /* of the field in the context */
};

static size_t flatten(const struct option_entry *entry, size_t base, struct flat_option *flat, size_t count)
{
	for (; count < OPTIONS_MAX && (entry->name || entry->group); entry++) {
		if (entry->group)
			count = flatten(entry->group, base + entry->offset, flat, count);
		else
			flat[count++] = (struct flat_option){ entry, base + entry->offset };
	}
	return count;
}

static void print_help(const struct command_line *line, const struct flat_option *options, size_t count)
{
	printf("%s\n\nusage:\n%s\n\noptions:\n", line->summary, line->usage);
	for (size_t i = 0; i < count; i++)
		print_entry(stdout, options[i].entry);
	printf("  -h, --help                show this text\n");
	if (line->more)
		printf("\n%s\n", line->more);
}

#define WORD_MAX 40

/* How many letters are to be inserted, removed, replaced or swapped with the next one. */
static unsigned int distance(const char *from, const char *to)
{
	unsigned int rows[3][WORD_MAX + 1], *before = rows[0], *last = rows[1], *row = rows[2], *spare;
	size_t width = strlen(to);

	for (size_t j = 0; j <= width; j++)
		last[j] = j;
	for (size_t i = 1; from[i - 1]; i++) {
		row[0] = i;
		for (size_t j = 1; j <= width; j++) {
			row[j] = last[j - 1] + (from[i - 1] != to[j - 1]);
			if (row[j] > last[j] + 1)
				row[j] = last[j] + 1;
			if (row[j] > row[j - 1] + 1)
				row[j] = row[j - 1] + 1;
			if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] &&
			    row[j] > before[j - 2] + 1)
				row[j] = before[j - 2] + 1;
		}
		spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[width];
}

bool is_nearer(const char *given, const char *word, unsigned int *nearest)
{
	unsigned int far, most = strlen(given) / 3 + 1;

	if (strlen(given) > WORD_MAX || strlen(word) > WORD_MAX)
		return false;
	far = distance(given, word);
	/* One that was begun is as near as one letter. */
	if (strlen(given) > 1 && !strncmp(given, word, strlen(given)))
		far = 1;
	if (far > most || far >= *nearest)
		return false;
	*nearest = far;
	return true;
}

static int refuse_unknown(const struct command_line *line, const struct flat_option *options, size_t count,
			  const char *given)
{
	const char *near = NULL;
	char word[WORD_MAX + 2];
	unsigned int nearest = ~0u;

	fprintf(stderr, "xputrace %s: unknown option '", line->name);
	print_name(stderr, given, 0);
	if (given[0] == '-' && given[1] == '-') {
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(given + 2, "="), given + 2);
		for (size_t i = 0; i < count; i++)
			if (is_nearer(word, options[i].entry->name, &nearest))
				near = options[i].entry->name;
	}
	if (near)
		fprintf(stderr, "'; did you mean --%s? (see xputrace %s --help)\n", near, line->name);
	else
		fprintf(stderr, "' (see xputrace %s --help)\n", line->name);
	return EXIT_USAGE;
}

/* ---- values ---- */

bool parse_number(const char *text, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*value = strtoull(text, &end, text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10);
	return !errno && !*end;
}

bool string_list_add(struct string_list *list, const char *item)
{
	const char **more = realloc(list->items, (list->count + 1) * sizeof(*more));

	if (!more)
		return false;
	list->items = more;
	list->items[list->count++] = item;
	return true;
}

static bool string_list_split(struct string_list *list, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, ",");
		char *item;

		if (length) {
			item = strndup(text, length);
			if (!item || !string_list_add(list, item)) {
				free(item);
				return false;
			}
		}
		text += length + (text[length] == ',');
	}
	return true;
}

bool take_counters(void *context, const char *text, const char **reason)
{
	struct string_list *list = context;
	const char *end;
	bool inside;
	char *name;

	*reason = "expected names of counters (see xputrace list counters)";
	while (*text) {
		for (end = text, inside = false; *end && (inside || *end != ','); end++)
			inside ^= *end == '/';
		if (end == text)
			return false;
		name = strndup(text, (size_t)(end - text));
		if (!name || !string_list_add(list, name)) {
			free(name);
			return false;
		}
		text = *end ? end + 1 : end;
	}
	return list->count;
}

struct unit {
	const char *name;
	uint64_t factor;
};

/* Where several fit, messages use the last one. */
static const struct unit time_units[] = {
	{ "", 1000000000 },	{ "ns", 1 },	      { "us", 1000 },	      { "ms", 1000000 }, { "s", 1000000000 },
	{ "min", 60000000000 }, { "m", 60000000000 }, { "h", 3600000000000 }, { NULL, 0 }
};
static const struct unit size_units[] = { { "", 1 },	      { "k", 1 << 10 },	  { "m", 1 << 20 },   { "g", 1 << 30 },
					  { "KiB", 1 << 10 }, { "MiB", 1 << 20 }, { "GiB", 1 << 30 }, { "K", 1 << 10 },
					  { "M", 1 << 20 },   { "G", 1 << 30 },	  { NULL, 0 } };
static const struct unit no_units[] = { { "", 1 }, { NULL, 0 } };

static bool parse_units(const char *text, const struct unit *units, uint64_t *value)
{
	char *end;
	double number;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	number = strtod(text, &end);
	for (; units->name; units++) {
		if (!strcmp(end, units->name)) {
			number *= units->factor;
			*value = number;
			return !errno && number >= 1 && number < 1e18;
		}
	}
	return false;
}

bool parse_duration(const char *text, uint64_t *nanoseconds)
{
	return parse_units(text, time_units, nanoseconds);
}

static const struct unit *units_of(const struct option_entry *entry)
{
	return entry->type == OPTION_DURATION ? time_units : entry->type == OPTION_SIZE ? size_units : no_units;
}

static bool parse_limited(const struct option_entry *entry, const char *text, uint64_t *value)
{
	const struct unit *units = units_of(entry);
	uint64_t max = entry->max ?: entry->type == OPTION_INT ? UINT32_MAX : UINT64_MAX;

	*value = 0;
	if (entry->zero && (!strcmp(text, "0") || (units == time_units && !strcmp(text, "0s"))))
		return true;
	if (units == no_units ? !parse_number(text, value) : !parse_units(text, units, value))
		return false;
	return *value >= entry->min && *value <= max;
}

static bool set_field(const struct option_entry *entry, void *field, const char *text, const char **reason)
{
	uint64_t number;

	switch (entry->type) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return true;
	case OPTION_SET:
		*(int *)field = entry->value;
		return true;
	case OPTION_STRING:
		*(const char **)field = text;
		return *text;
	case OPTION_LIST:
		return *text && string_list_add(field, text);
	case OPTION_WORDS:
		return string_list_split(field, text);
	case OPTION_CHOICE:
		for (const struct option_choice *choice = entry->choices; choice->name; choice++) {
			if (strcmp(choice->name, text))
				continue;
			*(int *)field = choice->value;
			return true;
		}
		return false;
	case OPTION_CALLBACK:
		return entry->take(field, text, reason);
	case OPTION_INT:
		if (!parse_limited(entry, text, &number))
			return false;
		*(unsigned int *)field = number;
		return true;
	default:
		return parse_limited(entry, text, field);
	}
}

/* "2M" */
static void print_limit(FILE *out, const char *before, uint64_t limit, const struct unit *units)
{
	const struct unit *best = units;

	for (; units->name; units++)
		if (!(limit % units->factor) && (limit % best->factor || units->factor >= best->factor))
			best = units;
	fprintf(out, "%s%" PRIu64 "%s", before, limit / best->factor, best->name);
}

static void print_expected(FILE *out, const struct option_entry *entry)
{
	const struct unit *units = units_of(entry);
	const struct option_choice *choice = entry->choices;

	if (entry->expected) {
		fprintf(out, "expected %s", entry->expected);
	} else if (entry->type == OPTION_STRING || entry->type == OPTION_LIST) {
		fprintf(out, "must not be empty");
	} else if (entry->type == OPTION_CHOICE) {
		fprintf(out, "expected %s", choice->name);
		while ((++choice)->name)
			fprintf(out, "%s%s", choice[1].name ? ", " : " or ", choice->name);
	} else {
		fprintf(out, "expected a %s", units == time_units ? "time" : units == size_units ? "size" : "number");
		if (entry->min)
			print_limit(out, entry->max ? " from " : " of at least ", entry->min, units);
		if (entry->max)
			print_limit(out, entry->min ? " to " : " up to ", entry->max, units);
		if (!entry->min && !entry->max && units != no_units)
			fprintf(out, units == time_units ? " such as 500ms or 10s" : " such as 64M or 2G");
		if (entry->zero)
			fprintf(out, ", or 0");
	}
}

static int refuse_value(const struct command_line *line, const struct option_entry *entry, const char *value,
			const char *reason)
{
	fprintf(stderr, "xputrace %s: --%s '", line->name, entry->name);
	print_name(stderr, value ?: "", 0);
	fprintf(stderr, "': ");
	if (reason)
		fprintf(stderr, "%s", reason);
	else
		print_expected(stderr, entry);
	fprintf(stderr, "\n");
	return EXIT_USAGE;
}

/* ---- the command line ---- */

int options_parse(const struct command_line *line, int argc, char **argv, void *context, int *first)
{
	struct flat_option options[OPTIONS_MAX];
	size_t count = flatten(line->options, 0, options, 0);
	struct option longs[OPTIONS_MAX + 2] = {};
	char shorts[2 * OPTIONS_MAX + 8] = "";
	int value;

	strcpy(shorts, line->any_order ? ":h" : "+:h");
	for (size_t i = 0; i < count; i++) {
		const struct option_entry *entry = options[i].entry;

		longs[i] = (struct option){ entry->name,
					    entry->without  ? optional_argument :
					    entry->argument ? required_argument :
							      no_argument,
					    NULL, entry->letter ?: NO_LETTER + (int)i };
		if (entry->letter) {
			strncat(shorts, &entry->letter, 1);
			if (entry->argument)
				strcat(shorts, ":");
		}
	}
	longs[count] = (struct option){ "help", no_argument, NULL, 'h' };
	if (line->any_order)
		unsetenv("POSIXLY_CORRECT"); /* with it, getopt ends at the first argument that is no option */
	opterr = 0;
	while ((value = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const char *reason = NULL, *given = argv[optind - 1];
		const struct flat_option *option = NULL;

		if (value == 'h') {
			print_help(line, options, count);
			return PARSE_HELP;
		}
		if (value == '?')
			return refuse_unknown(line, options, count, given);
		if (value == ':') {
			fprintf(stderr, "xputrace %s: an argument is required after '", line->name);
			print_name(stderr, given, 0);
			fprintf(stderr, "' (see xputrace %s --help)\n", line->name);
			return EXIT_USAGE;
		}
		for (size_t i = 0; i < count; i++)
			if (longs[i].val == value)
				option = &options[i];
		errno = 0;
		if (option && !optarg)
			optarg = (char *)option->entry->without;
		if (option && !set_field(option->entry, (char *)context + option->offset, optarg, &reason))
			return errno == ENOMEM ? exit_failed(-errno) :
						 refuse_value(line, option->entry, optarg, reason);
	}
	*first = optind;
	return 0;
}

const char *output_name(enum xpt_output format)
{
	static const char *const names[] = {
		[XPT_OUTPUT_NONE] = "none",	  [XPT_OUTPUT_CHROME] = "chrome",
		[XPT_OUTPUT_RECORDING] = "xpt",	  [XPT_OUTPUT_ORT] = "ort",
		[XPT_OUTPUT_QNN_CSV] = "qnn-csv", [XPT_OUTPUT_CSV] = "csv",
		[XPT_OUTPUT_FOLDED] = "folded",	  [XPT_OUTPUT_PPROF] = "pprof",
		[XPT_OUTPUT_FLAME_SVG] = "svg",	  [XPT_OUTPUT_SPEEDSCOPE] = "speedscope",
		[XPT_OUTPUT_HTML] = "html",	  [XPT_OUTPUT_PERFETTO] = "perfetto",
		[XPT_OUTPUT_SQLITE] = "sqlite",
	};

	return names[format];
}

static bool ends_with(const char *text, size_t length, const char *end)
{
	const size_t tail = strlen(end);

	return length >= tail && !strncmp(text + length - tail, end, tail);
}

enum xpt_output flame_format(const char *path)
{
	size_t length = strlen(path);

	if (ends_with(path, length, ".pb.gz"))
		return XPT_OUTPUT_PPROF;
	length -= ends_with(path, length, ".gz") ? 3 : 0;
	if (ends_with(path, length, ".pprof"))
		return XPT_OUTPUT_PPROF;
	if (ends_with(path, length, ".svg"))
		return XPT_OUTPUT_FLAME_SVG;
	return ends_with(path, length, ".json") ? XPT_OUTPUT_SPEEDSCOPE : XPT_OUTPUT_FOLDED;
}

bool is_page_name(const char *path)
{
	return ends_with(path, strlen(path), ".html");
}

bool is_flame_format(int format)
{
	return format >= XPT_OUTPUT_FOLDED && format <= XPT_OUTPUT_SPEEDSCOPE;
}

bool is_perfetto_name(const char *path)
{
	size_t length = strlen(path);

	length -= ends_with(path, length, ".gz") ? 3 : 0;
	return ends_with(path, length, ".pftrace");
}

bool is_sqlite_name(const char *path)
{
	size_t length = strlen(path);

	return ends_with(path, length, ".db") || ends_with(path, length, ".sqlite");
}

void print_trace_written(const char *path, enum xpt_output format)
{
	static const char *const uses[] = {
		[XPT_OUTPUT_NONE] = "open it in https://ui.perfetto.dev or chrome://tracing",
		[XPT_OUTPUT_ORT] = "for tools that read profiles of ONNX Runtime",
		[XPT_OUTPUT_CSV] = "for spreadsheets, pandas and sqlite3",
		[XPT_OUTPUT_QNN_CSV] = "for tools that read profiles of the QNN execution provider",
		[XPT_OUTPUT_FOLDED] = "for flamegraph.pl, speedscope and others that read folded stacks",
		[XPT_OUTPUT_PPROF] = "open it with `go tool pprof`, or in https://www.speedscope.app",
		[XPT_OUTPUT_FLAME_SVG] = "open it in a browser",
		[XPT_OUTPUT_SPEEDSCOPE] = "open it in https://www.speedscope.app",
		[XPT_OUTPUT_HTML] = "open it in a browser; it needs no network",
		[XPT_OUTPUT_PERFETTO] = "open it in https://ui.perfetto.dev",
		[XPT_OUTPUT_SQLITE] = "for sqlite3 and others that read SQLite: SELECT * FROM slowest LIMIT 10",
	};

	fprintf(stderr, "\nwrote %s: %s\n", path, uses[format] ?: uses[XPT_OUTPUT_NONE]);
}

int output_is_there(const char *path)
{
	int error = access(path, F_OK) ? -errno : 0;
	char text[PATH_MAX + 64];

	if (error) {
		snprintf(text, sizeof(text), "%s: what was recorded is not there any more: %s", path, strerror(-error));
		print_message(NULL, XPT_LOG_ERROR, text);
	}
	return error;
}

const struct option_entry flame_option[] = {
	{ 0, "flame", "WHAT",
	  "a flame graph: which callers the time of inferences, the\ndevice time, the time off CPU or the CPU time belongs to:\n"
	  "inference, device, offcpu or cpu; by the end of FILE:\n.folded, .pprof, .svg, .json (speedscope)",
	  OPTION_CHOICE,
	  .choices = { { "inference", XPT_FLAME_INFERENCE },
		       { "device", XPT_FLAME_DEVICE },
		       { "offcpu", XPT_FLAME_OFF_CPU },
		       { "cpu", XPT_FLAME_CPU } } },
	{}
};

#define FIELD(name) .offset = offsetof(struct runtime_choice, name)

const struct option_entry runtime_options[] = {
	{ 'r', "runtime", "FILE.json", "add the description of a runtime", OPTION_LIST, FIELD(files) },
	{ 0, "only", "NAME[,NAME...]", "only these runtimes (see xputrace list runtimes)", OPTION_WORDS, FIELD(only) },
	{}
};
