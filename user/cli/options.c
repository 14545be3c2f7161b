/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/commands.h"
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MAX 32
#define NO_LETTER 256 /* values of long options without a letter begin here */
#define HELP_COLUMN 28

static void print_entry(FILE *out, const struct option_entry *entry)
{
	char head[128], letter[8] = "    ";
	const char *line = entry->help, *end;

	if (entry->letter)
		snprintf(letter, sizeof(letter), "-%c, ", entry->letter);
	snprintf(head, sizeof(head), "  %s--%s%s%s", letter, entry->name, entry->argument ? " " : "",
		 entry->argument ?: "");
	fprintf(out, "%-*s", HELP_COLUMN, head);
	if (strlen(head) >= HELP_COLUMN)
		fprintf(out, "\n%*s", HELP_COLUMN, "");
	for (; (end = strchr(line, '\n')); line = end + 1)
		fprintf(out, "%.*s\n%*s", (int)(end - line), line, HELP_COLUMN, "");
	fprintf(out, "%s\n", line);
}

static void print_help(const struct command_line *line)
{
	printf("%s\n\nusage:\n%s\n\noptions:\n", line->summary, line->usage);
	for (size_t i = 0; i < line->option_count; i++)
		print_entry(stdout, &line->options[i]);
	printf("  -h, --help                show this text\n");
	if (line->more)
		printf("\n%s\n", line->more);
}

static int complain(const struct command_line *line, const char *option, const char *value, const char *reason)
{
	fprintf(stderr, "xputrace %s: %s '", line->name, option);
	print_name(stderr, value ?: "", 0);
	fprintf(stderr, "': %s\n", reason ?: "not understood");
	return EXIT_USAGE;
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

static int refuse_unknown(const struct command_line *line, const char *given)
{
	const char *near = NULL;
	char word[WORD_MAX + 2];
	unsigned int nearest = ~0u;

	fprintf(stderr, "xputrace %s: unknown option '", line->name);
	print_name(stderr, given, 0);
	if (given[0] == '-' && given[1] == '-') {
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(given + 2, "="), given + 2);
		for (size_t i = 0; i < line->option_count; i++)
			if (is_nearer(word, line->options[i].name, &nearest))
				near = line->options[i].name;
	}
	if (near)
		fprintf(stderr, "'; did you mean --%s? (see xputrace %s --help)\n", near, line->name);
	else
		fprintf(stderr, "' (see xputrace %s --help)\n", line->name);
	return EXIT_USAGE;
}

int options_parse(const struct command_line *line, int argc, char **argv, void *context, int *first)
{
	struct option longs[OPTIONS_MAX + 2] = {};
	char shorts[2 * OPTIONS_MAX + 8] = "+:h";
	int value;

	for (size_t i = 0; i < line->option_count; i++) {
		const struct option_entry *entry = &line->options[i];

		longs[i] = (struct option){ entry->name, entry->argument ? required_argument : no_argument, NULL,
					    entry->letter ?: NO_LETTER + (int)i };
		if (entry->letter) {
			strncat(shorts, &entry->letter, 1);
			if (entry->argument)
				strcat(shorts, ":");
		}
	}
	longs[line->option_count] = (struct option){ "help", no_argument, NULL, 'h' };
	optind = 1;
	opterr = 0;
	while ((value = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct option_entry *entry = NULL;
		const char *reason = NULL, *given = argv[optind - 1];

		if (value == 'h') {
			print_help(line);
			return PARSE_HELP;
		}
		if (value == '?')
			return refuse_unknown(line, given);
		if (value == ':') {
			fprintf(stderr, "xputrace %s: an argument is missing after '", line->name);
			print_name(stderr, given, 0);
			fprintf(stderr, "' (see xputrace %s --help)\n", line->name);
			return EXIT_USAGE;
		}
		for (size_t i = 0; i < line->option_count; i++) {
			if (longs[i].val == value)
				entry = &line->options[i];
		}
		errno = 0;
		if (entry && !entry->take(context, optarg, &reason)) {
			char name[64];

			if (errno == ENOMEM)
				return exit_failed(-errno);
			snprintf(name, sizeof(name), "--%s", entry->name);
			return complain(line, name, optarg, reason);
		}
	}
	*first = optind;
	return 0;
}

bool parse_number(const char *text, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*value = strtoull(text, &end, text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10);
	return !errno && !*end;
}

struct unit {
	const char *name;
	uint64_t factor;
};

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
	static const struct unit units[] = {
		{ "", 1000000000 },  { "ns", 1 },	   { "us", 1000 },	   { "ms", 1000000 },
		{ "s", 1000000000 }, { "m", 60000000000 }, { "min", 60000000000 }, { "h", 3600000000000 },
		{ NULL, 0 }
	};

	return parse_units(text, units, nanoseconds);
}

bool parse_size(const char *text, uint64_t *bytes)
{
	static const struct unit units[] = { { "", 1 },		 { "K", 1 << 10 }, { "KiB", 1 << 10 }, { "M", 1 << 20 },
					     { "MiB", 1 << 20 }, { "G", 1 << 30 }, { "GiB", 1 << 30 }, { "k", 1 << 10 },
					     { "m", 1 << 20 },	 { "g", 1 << 30 }, { NULL, 0 } };

	return parse_units(text, units, bytes);
}

const char *output_name(enum xpt_output format)
{
	static const char *const names[] = {
		[XPT_OUTPUT_NONE] = "none", [XPT_OUTPUT_CHROME] = "chrome",   [XPT_OUTPUT_RECORDING] = "xpt",
		[XPT_OUTPUT_ORT] = "ort",   [XPT_OUTPUT_QNN_CSV] = "qnn-csv", [XPT_OUTPUT_CSV] = "csv",
	};

	return names[format];
}

bool parse_trace_format(const char *text, enum xpt_output *format, const char **reason)
{
	static const enum xpt_output formats[] = { XPT_OUTPUT_CHROME, XPT_OUTPUT_ORT, XPT_OUTPUT_QNN_CSV };

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (strcmp(output_name(formats[i]), text))
			continue;
		*format = formats[i];
		return true;
	}
	*reason = "the formats are chrome, ort and qnn-csv";
	return false;
}

bool parse_level(const char *text, enum xpt_level *level, const char **reason)
{
	static const char *const names[] = {
		[XPT_LEVEL_STANDARD] = "standard",
		[XPT_LEVEL_BASIC] = "basic",
		[XPT_LEVEL_DETAILED] = "detailed",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], text))
			continue;
		*level = (enum xpt_level)i;
		return true;
	}
	*reason = "the levels are basic, standard and detailed";
	return false;
}

void tell_trace(const char *path, enum xpt_output format)
{
	static const char *const uses[] = {
		[XPT_OUTPUT_NONE] = "open it in https://ui.perfetto.dev or chrome://tracing",
		[XPT_OUTPUT_ORT] = "what reads ONNX Runtime's profiles reads it",
		[XPT_OUTPUT_CSV] = "spreadsheets, pandas and sqlite3 read it",
		[XPT_OUTPUT_QNN_CSV] = "what reads the QNN execution provider's profiles reads it",
	};

	fprintf(stderr, "\nwrote %s: %s\n", path, uses[format] ?: uses[XPT_OUTPUT_NONE]);
}

bool parse_pid(const char *text, pid_t *pid)
{
	uint64_t number;

	if (!parse_number(text, &number) || !number || number > INT32_MAX)
		return false;
	*pid = (pid_t)number;
	return true;
}

bool parse_index(const char *text, int *index)
{
	uint64_t number;

	if (!parse_number(text, &number) || number > UINT16_MAX)
		return false;
	*index = (int)number;
	return true;
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

bool string_list_add_counters(struct string_list *list, const char *text)
{
	const char *end;
	bool inside;
	char *name;

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

bool string_list_split(struct string_list *list, const char *text)
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

bool take_runtime(void *context, const char *value, const char **reason)
{
	(void)reason;
	return string_list_add(&((struct runtime_choice *)context)->files, value);
}

bool take_only(void *context, const char *value, const char **reason)
{
	(void)reason;
	return string_list_split(&((struct runtime_choice *)context)->only, value);
}
