/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xputrace/counters.h>
#include <xputrace/device.h>
#include <xputrace/driver.h>
#include <xputrace/recording.h>
#include <xputrace/target.h>

#include "base/core/json.h"
#include "base/core/text.h"
#include "cli/commands.h"

struct list_output {
	int json;    /* 0: a table */
	size_t rows; /* so far */
};

/* Begins a row of JSON. */
static void list_row(struct list_output *output)
{
	printf(output->rows++ ? ",\n" : "[\n");
}

void list_string(const char *key, const char *value, const char *end)
{
	struct text text = {};

	text_json_string(&text, value);
	if (text.error)
		output_failed(text.error);
	printf("\"%s\":%.*s%s", key, (int)text.length, text.data ?: "\"\"", end);
	text_free(&text);
}

#define PROGRAMS_TIME 1000000000ull /* ns of watching for `list programs` */

struct list_context {
	struct runtime_choice runtimes;
	struct xpt_target_options options;
	struct string_list driver_files;
	uint64_t duration;
	struct list_output output;
	int gpu;
	char *last_file;
	const char *summary_json;
};

#define FIELD(name) .offset = offsetof(struct list_context, name)

static const struct option_entry entries[] = {
	{ 'p', "pid", "PID", "what is found in this process", OPTION_INT, FIELD(options.pid), .min = 1,
	  .max = INT32_MAX, .expected = "a process ID" },
	{ 'f', "file", "ELF", "what is found in this library or program", OPTION_STRING, FIELD(options.file) },
	{ 0, "format", "FORMAT", "table (default) or json", OPTION_CHOICE, FIELD(output.json),
	  .choices = TABLE_CHOICES },
	{ .group = runtime_options, FIELD(runtimes) },
	{ 0, "driver", "FILE.json", "drivers: add the description of a driver", OPTION_LIST, FIELD(driver_files) },
	{ 0, "gpu", "N", "counters: only of this device", OPTION_INT, FIELD(gpu), .max = UINT16_MAX,
	  .expected = "the number of a device (see xputrace list devices)" },
	{ 'd', "duration", "TIME", "programs: how long to watch (default 1s)", OPTION_DURATION, FIELD(duration) },
	{ .group = summary_json_option, FIELD(summary_json) },
	{ 'v', "verbose", NULL, "also what was not found, and why", OPTION_SET, FIELD(options.log_level),
	  .value = XPT_LOG_DEBUG },
	{}
};

static const struct command_line line = {
	.name = "list",
	.summary =
		"Show runtimes, drivers, devices and counters, programs that run in a process, probe sites and operators.",
	.usage = "  xputrace list runtimes [-p PID | -f ELF]\n"
		 "  xputrace list sites    (-p PID | -f ELF)\n"
		 "  xputrace list operators (-p PID | -f ELF)\n"
		 "  xputrace list programs -p PID\n"
		 "  xputrace list drivers\n"
		 "  xputrace list devices\n"
		 "  xputrace list counters [--gpu N]",
	.options = entries,
	.any_order = true,
	.more = "runtimes  what is described, and where it was found\n"
		"sites     each function: file offset of its entry and of the probe, how it was found, and its\n"
		"          class: optimised and emulated ones are cheap, single-stepped ones cost 10 times more\n"
		"          on virtual machines. The cost is what one recorded call is expected to take, in ns.\n"
		"operators classes of what a model is made of, found in a library without symbols by its type\n"
		"          information: their methods, the probes as above, and how many classes share one\n"
		"programs  models, sessions and kernels that run within --duration, with handles for\n"
		"          `record --name HANDLE=NAME`. This one places probes.\n"
		"drivers   which of their described events this kernel has; as root\n"
		"devices   accelerators, by the numbers that --gpu takes\n"
		"counters  what xputrace counters can count here; other tracepoints are shown by perf list\n\n"
		"exit status: 0 something was listed, 1 nothing found or failed, 2 wrong usage",
};

static void print_strings(const char *const *strings, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct text text = {};

		text_json_string(&text, strings[i]);
		printf("%s%.*s", i ? "," : "", (int)text.length, text.data ?: "");
		text_free(&text);
	}
}

static int on_runtime(void *context, const struct xpt_runtime_info *runtime)
{
	struct list_context *list = context;

	if (list->output.json) {
		list_row(&list->output);
		printf("{");
		list_string("runtime", runtime->name, ",");
		list_string("title", runtime->title, ",");
		if (runtime->file)
			list_string("file", runtime->file, ",");
		printf("\"libraries\":[");
		print_strings(runtime->libraries, runtime->library_count);
		printf("],\"functions\":%zu,\"found\":%zu}", runtime->functions, runtime->found);
		return 0;
	}
	if (!list->output.rows++)
		printf(runtime->file ? "%-14s %-28s %9s  %s\n" : "%-14s %-28s %9s\n", "RUNTIME", "TITLE", "FUNCTIONS",
		       "FILE");
	if (!runtime->file) {
		printf("%-14s %-28s %9zu\n", runtime->name, runtime->title, runtime->functions);
		return 0;
	}
	printf("%-14s %-28s %4zu/%-4zu  ", runtime->name, runtime->title, runtime->found, runtime->functions);
	print_name(stdout, runtime->file, 0);
	printf("\n");
	return 0;
}

static int on_site(void *context, const struct xpt_site_info *site)
{
	struct list_context *list = context;

	if (list->output.json) {
		list_row(&list->output);
		printf("{");
		list_string("file", site->file, ",");
		list_string("runtime", site->runtime, ",");
		list_string("function", site->function, ",");
		list_string("symbol", site->symbol, ",");
		list_string("role", site->role, ",");
		if (site->code)
			list_string("code", site->code, ",");
		printf("\"offset\":%" PRIu64 ",\"function_offset\":%" PRIu64 ",", site->offset, site->function_offset);
		list_string("class", site->site_class, ",");
		printf("\"cost_ns\":%u,", site->cost);
		list_string("found_by", site->found_by, ",");
		printf("\"shared\":%s}", site->shared ? "true" : "false");
		return 0;
	}
	if (!list->last_file || strcmp(list->last_file, site->file)) {
		free(list->last_file);
		list->last_file = strdup(site->file);
		if (!list->last_file)
			return -ENOMEM;
		printf("%s", list->output.rows ? "\n" : "");
		print_name(stdout, site->file, 0);
		printf("\n  %-12s %6s %-10s %6s  %-15s %-15s %-13s %s\n", "OFFSET", "MOVED", "CLASS", "COST", "ROLE",
		       "FOUND BY", "RUNTIME", "FUNCTION");
	}
	list->output.rows++;
	printf("  0x%-10" PRIx64 " %+6" PRId64 " %-10s %6u  %-15s %-15s %-13s ", site->offset,
	       (int64_t)(site->offset - site->function_offset), site->site_class, site->cost, site->role,
	       site->found_by, site->runtime);
	print_name(stdout, site->symbol ?: site->function, 0);
	printf("%s\n", site->shared ? " (same code as another one, cannot be distinguished)" : "");
	return 0;
}

static int on_operator(void *context, const struct xpt_operator_info *info)
{
	struct list_context *list = context;

	if (list->output.json) {
		list_row(&list->output);
		printf("{");
		list_string("file", info->file, ",");
		list_string("runtime", info->runtime, ",");
		list_string("operator", info->name, ",");
		list_string("method", info->method, ",");
		printf("\"offset\":%" PRIu64 ",\"function_offset\":%" PRIu64 ",", info->offset, info->function_offset);
		list_string("class", info->site_class, ",");
		printf("\"cost_ns\":%u,\"shared\":%zu}", info->cost, info->shared);
		return 0;
	}
	if (!list->output.rows++)
		printf("%-12s %6s %-10s %6s %7s  %-13s %-13s %s\n", "OFFSET", "MOVED", "CLASS", "COST", "SHARED",
		       "RUNTIME", "METHOD", "OPERATOR");
	printf("0x%-10" PRIx64 " %+6" PRId64 " %-10s %6u %7zu  %-13s %-13s ", info->offset,
	       (int64_t)(info->offset - info->function_offset), info->site_class, info->cost, info->shared,
	       info->runtime, info->method);
	print_name(stdout, info->name, 0);
	printf("\n");
	return 0;
}

static int on_program(void *context, const struct xpt_program_info *program)
{
	struct list_context *list = context;

	if (list->output.json) {
		list_row(&list->output);
		printf("{");
		list_string("runtime", program->runtime, ",");
		list_string("name", program->name, ",");
		printf("\"pid\":%d,\"handle\":\"0x%" PRIx64 "\",\"calls\":%" PRIu64 ",\"errors\":%" PRIu64
		       ",\"mean_ns\":%.0f}",
		       program->pid, program->handle, program->calls, program->errors, program->mean);
		return 0;
	}
	if (!list->output.rows++)
		printf("%-13s %8s %-18s %10s %12s  %s\n", "RUNTIME", "PID", "HANDLE", "CALLS", "MEAN us", "NAME");
	printf("%-13s %8d 0x%-16" PRIx64 " %10" PRIu64 " %12.1f  ", program->runtime, program->pid, program->handle,
	       program->calls, program->mean / 1e3);
	print_name(stdout, program->name, 0);
	printf("\n");
	return 0;
}

/* ---- devices ---- */

#define NAME_COLUMNS 36

static const char *const counter_kinds[] = {
	[XPT_COUNTER_SUM] = "sum",
	[XPT_COUNTER_MEAN] = "mean",
	[XPT_COUNTER_LEVEL] = "level",
};

static int on_device(void *context, const struct xpt_device_info *device)
{
	struct list_output *output = context;

	if (output->json) {
		list_row(output);
		printf("{\"gpu\":%d,", device->index);
		list_string("address", device->address, ",");
		list_string("driver", device->driver, ",");
		list_string("node", device->node, ",");
		list_string("title", device->title, "}");
		return 0;
	}
	if (!output->rows++)
		printf("%-4s %-16s %-12s %-24s %s\n", "GPU", "ADDRESS", "DRIVER", "NODE", "VENDOR:DEVICE");
	printf("%-4d ", device->index);
	print_name(stdout, device->address, 16);
	printf(" ");
	print_name(stdout, device->driver, 12);
	printf(" ");
	print_name(stdout, device->node, 24);
	printf(" ");
	print_name(stdout, device->title, 0);
	printf("\n");
	return 0;
}

static int list_devices(struct list_context *list)
{
	return xpt_device_list(on_device, &list->output);
}

static int on_counter(void *context, const struct xpt_counter_info *counter)
{
	struct list_output *output = context;

	if (output->json) {
		list_row(output);
		printf("{");
		list_string("counter", counter->name, ",");
		list_string("unit", counter->unit, ",");
		printf("\"scale\":%.17g,", counter->scale);
		list_string("kind", counter_kinds[counter->kind], ",");
		list_string("source", counter->source, ",");
		list_string("description", counter->description, "}");
		return 0;
	}
	if (!output->rows++)
		printf("%-*s %-8s %-5s  %s\n", NAME_COLUMNS, "COUNTER", "UNIT", "KIND", "DESCRIPTION");
	print_name(stdout, counter->name, NAME_COLUMNS);
	printf(" ");
	print_name(stdout, counter->unit, 8);
	printf(" %-5s  ", counter_kinds[counter->kind]);
	print_name(stdout, counter->description, 0);
	printf("\n");
	return 0;
}

static int list_counters(struct list_context *list)
{
	int result = xpt_counters_list(list->gpu, on_counter, &list->output);

	if (result == -ENODEV)
		fprintf(stderr, "xputrace: there is no device %d (see xputrace list devices)\n", list->gpu);
	return result;
}

/* ---- drivers and programs ---- */

static const char *const driver_states[] = {
	[XPT_DRIVER_COMPLETE] = "complete",
	[XPT_DRIVER_PARTIAL] = "partial",
	[XPT_DRIVER_ABSENT] = "absent",
	[XPT_DRIVER_UNKNOWN] = "no tracefs",
};

static void driver_event_json(const struct xpt_driver_event *event)
{
	printf("{\"event\":\"%s:%s\",", event->system, event->name);
	list_string("role", event->role, ",");
	printf("\"optional\":%s,\"found\":%s", event->optional ? "true" : "false", event->found ? "true" : "false");
	if (!event->found) {
		printf(",");
		list_string("reason", event->reason, "");
	}
	printf("}");
}

static void driver_json(struct list_context *list, const struct xpt_driver_info *driver)
{
	list_row(&list->output);
	printf("{");
	list_string("driver", driver->name, ",");
	list_string("title", driver->title, ",");
	list_string("state", driver_states[driver->state], ",");
	list_string("set", driver->set, ",");
	printf("\"described\":%zu,\"found\":%zu,\"devices\":[", driver->event_count, driver->found);
	print_strings(driver->devices, driver->device_count);
	printf("],\"events\":[");
	for (size_t i = 0; i < driver->event_count; i++) {
		printf("%s", i ? "," : "");
		driver_event_json(&driver->events[i]);
	}
	printf("]}");
}

static int on_driver(void *context, const struct xpt_driver_info *driver)
{
	struct list_context *list = context;

	if (list->output.json) {
		driver_json(list, driver);
		return 0;
	}
	if (!list->output.rows++)
		printf("%-14s %7s  %-10s  %s\n", "DRIVER", "EVENTS", "STATE", "TITLE");
	printf("%-14s %3zu/%-3zu  %-10s  ", driver->name, driver->found, driver->event_count,
	       driver_states[driver->state]);
	print_name(stdout, driver->title, 0);
	if (driver->found && *driver->set) {
		printf(" (");
		print_name(stdout, driver->set, 0);
		printf(")");
	}
	printf("\n");
	for (size_t i = 0; list->options.log_level == XPT_LOG_DEBUG && i < driver->device_count; i++) {
		printf("    device ");
		print_name(stdout, driver->devices[i], 0);
		printf("\n");
	}
	for (size_t i = 0; list->options.log_level == XPT_LOG_DEBUG && i < driver->event_count; i++) {
		if (driver->events[i].found || driver->state == XPT_DRIVER_UNKNOWN)
			continue;
		printf("    ");
		print_name(stdout, driver->events[i].reason, 0);
		printf("%s\n", driver->events[i].optional ? " (optional)" : "");
	}
	return 0;
}

static int list_drivers(struct list_context *list)
{
	struct xpt_driver_options options = {
		.size = sizeof(options),
		.driver_files = list->driver_files.items,
		.driver_file_count = list->driver_files.count,
		.log = print_message,
		.log_level = list->options.log_level,
	};

	return xpt_driver_list(&options, on_driver, list);
}

static int list_programs(struct list_context *list)
{
	struct xpt_recording_options options = {
		.size = sizeof(options),
		.pids = &list->options.pid,
		.pid_count = 1,
		.runtime_files = list->options.runtime_files,
		.runtime_file_count = list->options.runtime_file_count,
		.runtimes = list->options.runtimes,
		.runtime_count = list->options.runtime_count,
		.duration = list->duration ?: PROGRAMS_TIME,
		.log = print_message,
		.log_level = list->options.log_level == XPT_LOG_DEBUG ? XPT_LOG_DEBUG : XPT_LOG_WARN,
	};
	struct xpt_recording *recording;
	int result = xpt_recording_create(&options, &recording);

	if (result)
		return result;
	result = xpt_recording_start(recording);
	if (!result)
		result = xpt_recording_run(recording);
	if (result >= 0)
		result = 0;
	xpt_recording_finish(recording);
	if (!result)
		result = xpt_recording_programs(recording, on_program, list);
	xpt_recording_destroy(recording);
	return result;
}

static int list_runtimes(struct list_context *list)
{
	return xpt_target_runtimes(&list->options, on_runtime, list);
}

static int list_sites(struct list_context *list)
{
	return xpt_target_sites(&list->options, on_site, list);
}

static int list_operators(struct list_context *list)
{
	return xpt_target_operators(&list->options, on_operator, list);
}

static const struct kind {
	const char *name;
	int (*list)(struct list_context *list);
	bool requires_pid, requires_target; /* -p; -p or -f */
} kinds[] = {
	{ "runtimes", list_runtimes, false, false },  { "sites", list_sites, false, true },
	{ "operators", list_operators, false, true }, { "programs", list_programs, true, false },
	{ "drivers", list_drivers, false, false },    { "devices", list_devices, false, false },
	{ "counters", list_counters, false, false },
};

static int run(struct list_context *list, const struct kind *kind)
{
	int result = kind->list(list);

	if (list->output.json && result >= 0)
		printf(list->output.rows ? "\n]\n" : "[]\n");
	free(list->last_file);
	free(list->driver_files.items);
	if (!result && !list->output.rows) {
		fprintf(stderr, "xputrace: no %s found%s\n", kind->name,
			list->options.pid && geteuid() ?
				" (what a process has mapped can be opened by root only: try sudo)" :
				"");
		return EXIT_FAILED;
	}
	return exit_status(result);
}

/* Files are analysed without rights. */
static int confine_to(const struct list_context *list)
{
	struct confined_file *files = calloc(list->options.runtime_file_count + 2, sizeof(*files));

	if (!files)
		return -ENOMEM;
	files[0].path = list->options.file;
	files[1] = (struct confined_file){ .path = list->summary_json, .output = true };
	for (size_t i = 0; i < list->options.runtime_file_count; i++)
		files[i + 2].path = list->options.runtime_files[i];
	confined_begin(files, list->options.runtime_file_count + 2);
	free(files);
	return 0;
}

int command_list(int argc, char **argv)
{
	struct list_context list = {
		.gpu = XPT_COUNTERS_ALL,
		.options = { .size = sizeof(list.options), .log = print_message, .log_level = XPT_LOG_INFO }
	};
	int first, result = options_parse(&line, argc, argv, &list, &first);
	struct summary_json summary;
	const struct kind *kind = NULL;

	if (result)
		return result;
	for (size_t i = 0; first + 1 == argc && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(argv[first], kinds[i].name))
			kind = &kinds[i];
	if (!kind) {
		fprintf(stderr,
			"xputrace list: expected one of runtimes, sites, operators, programs, drivers, devices, counters "
			"(see xputrace list --help)\n");
		return EXIT_USAGE;
	}
	if (list.options.pid && list.options.file) {
		fprintf(stderr, "xputrace list: --pid and --file are mutually exclusive\n");
		return EXIT_USAGE;
	}
	if ((kind->requires_target && !list.options.pid && !list.options.file) ||
	    (kind->requires_pid && !list.options.pid)) {
		fprintf(stderr, "xputrace list %s: requires -p PID%s\n", kind->name,
			kind->requires_target ? " or -f ELF" : "");
		return EXIT_USAGE;
	}
	list.options.runtime_files = list.runtimes.files.items;
	list.options.runtime_file_count = list.runtimes.files.count;
	list.options.runtimes = list.runtimes.only.items;
	list.options.runtime_count = list.runtimes.only.count;
	summary_json_begin(&summary, list.summary_json, "list");
	if (list.options.file && confine_to(&list))
		return exit_failed(-ENOMEM);
	if (list.options.pid)
		privileges_reduce(XPT_LINK_AUTO);
	result = run(&list, kind);
	if (summary.path) {
		json_begin(&summary.text, "listed", '{');
		json_add_text(&summary.text, "what", kind->name);
		json_add_unsigned(&summary.text, "entries", list.output.rows);
		json_end(&summary.text, '}');
	}
	return summary_json_end(&summary, result);
}
