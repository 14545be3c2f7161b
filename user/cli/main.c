/* SPDX-License-Identifier: BSD-2-Clause */
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <xputrace/check.h>
#include <xputrace/output.h>

#include "base/core/json.h"
#include "base/file/output.h"
#include "cli/commands.h"

/* " (COMMIT)", where it is known what is built. */
#ifndef XPT_COMMIT
#define XPT_COMMIT ""
#endif

/* ---- check ---- */

static const struct option_entry entries[] = { { .group = summary_json_option }, {} };

static const struct command_line line = {
	.name = "check",
	.summary = "Check kernel features and permissions, with advice on what is missing.",
	.usage = "  sudo xputrace check [--summary-json FILE]",
	.options = entries,
	.more = "Every line was tried, not looked up by version.\n\n"
		"exit status: 0 recording works here, 1 it does not, 2 wrong usage",
};

static void add_feature(struct text *text, const struct xpt_feature *feature)
{
	static const char *const needs[] = {
		[XPT_NEED_REQUIRED] = "required",
		[XPT_NEED_ONE_OF] = "one of",
		[XPT_NEED_OPTIONAL] = "optional",
	};

	json_begin(text, NULL, '{');
	json_add_text(text, "name", feature->name);
	json_add_text(text, "need", needs[feature->need]);
	json_add_bool(text, "works", !feature->error);
	json_add_text(text, "detail", feature->detail);
	json_end(text, '}');
}

static void on_feature(void *context, const struct xpt_feature *feature)
{
	const char *verdict = !feature->error ? "ok" : feature->need == XPT_NEED_REQUIRED ? "MISSING" : "no";
	struct summary_json *summary = context;

	if (summary->path)
		add_feature(&summary->text, feature);
	printf("%-8s %-17s", verdict, feature->name);
	if (*feature->detail)
		printf(" %s", feature->detail);
	if (feature->error && strcmp(feature->detail, strerror(-feature->error)))
		printf(" (%s)", strerror(-feature->error));
	printf("\n");
	if (feature->error && *feature->gives)
		printf("%27s needed for: %s\n", "", feature->gives);
	if (feature->error && *feature->advice)
		printf("%27s what to do: %s\n", "", feature->advice);
}

int command_check(int argc, char **argv)
{
	struct summary_json summary;
	const char *path = NULL;
	int first, result = options_parse(&line, argc, argv, &path, &first);

	if (result)
		return result;
	if (first < argc) {
		fprintf(stderr, "xputrace check: takes no arguments\n");
		return EXIT_USAGE;
	}
	summary_json_begin(&summary, path, "check");
	if (path)
		json_begin(&summary.text, "features", '[');
	result = xpt_check(on_feature, &summary);
	if (path)
		json_end(&summary.text, ']');
	printf("\n");
	privileges_print(stdout);
	printf("\n%s\n", result ? "Recording does not work here yet." : "Recording works here.");
	return summary_json_end(&summary, result ? EXIT_FAILED : 0);
}

/* ---- the commands ---- */

static const struct {
	const char *name;
	const char *summary;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "record", "trace running processes, or a command, into a Chrome trace or a recording", command_record },
	{ "profile", "record N inferences of one program: latency CSV or Chrome trace", command_profile },
	{ "stream", "report on chosen programs at an interval (default: 500 ms)", command_stream },
	{ "top", "show live what each program does: rate, latency, states, device time", command_top },
	{ "agent", "export metrics of all programs and devices: Prometheus, OpenMetrics, textfile", command_agent },
	{ "continuous", "flight recorder: record into memory, save the last seconds when asked", command_continuous },
	{ "inspect", "record processes, and write a directory of results for each at the end", command_inspect },
	{ "codeobj", "record the code objects that are loaded onto devices, with what is in them", command_codeobj },
	{ "counters", "count events of devices and the kernel, by their names in perf", command_counters },
	{ "report", "make a Chrome trace and the summary from a recording; needs no root", command_report },
	{ "explain", "explain where inferences spend time, and what slow ones do; needs no root", command_explain },
	{ "diff", "compare recordings of before and after a change; needs no root", command_diff },
	{ "merge", "merge traces of the same time by their clocks; needs no root", command_merge },
	{ "list", "show runtimes, programs in a process, probe sites, drivers, counters, devices", command_list },
	{ "check", "check kernel features and permissions, with advice on what is missing", command_check },
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void usage(FILE *out)
{
	fprintf(out, "xputrace: trace accelerator runtimes in running processes, from outside\n\n"
		     "usage: xputrace COMMAND [OPTION...]\n\ncommands:\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fprintf(out, "\n  xputrace COMMAND --help   options and examples of a command\n"
		     "  xputrace --version        version\n\n"
		     "first steps:\n"
		     "  sudo xputrace check                          can this machine trace?\n"
		     "  sudo xputrace                                which processes use a runtime? watch one of them\n"
		     "  sudo xputrace list runtimes -p PID           what does the process use?\n"
		     "  sudo xputrace record -p PID -o trace.json    trace it until Ctrl-C; open in ui.perfetto.dev\n");
}

static int run(const char *name, int argc, char **argv)
{
	const char *near = NULL;
	unsigned int nearest = ~0u;

	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		if (!strcmp(name, commands[i].name)) {
			int status = commands[i].run(argc, argv);

			return exit_output(status == PARSE_HELP ? 0 : status);
		}
		if (is_nearer(name, commands[i].name, &nearest))
			near = commands[i].name;
	}
	fprintf(stderr, "xputrace: unknown command '");
	print_name(stderr, name, 0);
	if (near)
		fprintf(stderr, "'; did you mean %s?", near);
	else
		fprintf(stderr, "'");
	fprintf(stderr, " (see xputrace --help)\n");
	return EXIT_USAGE;
}

/* ---- who runs it ---- */

/*
 * Whether the program file gives rights that its caller does not have: by its set-user-ID or set-group-ID bit, or by capabilities.
 * Those that a service manager gives (ambient ones) come from the caller. AT_SECURE alone does not tell: security modules set it, too.
 */
static bool has_rights_of_the_file(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {};

	if (getuid() != geteuid() || getgid() != getegid())
		return true;
	if (!geteuid() || !getauxval(AT_SECURE) || syscall(SYS_capget, &header, data))
		return false;
	for (int i = 0; i < 64; i++)
		if (data[i / 32].permitted & 1u << i % 32 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, i, 0, 0) != 1)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	char *help[] = { NULL, "--help", NULL };
	uid_t user;
	gid_t group;

	if (has_rights_of_the_file()) {
		fprintf(stderr,
			"xputrace: refuses to run set-user-ID, set-group-ID or with file capabilities: whoever may start it "
			"could read every process, run commands and write files with these rights: take them from the file "
			"(chmod ug-s, setcap -r), and use sudo or the service\n");
		return EXIT_FAILED;
	}
	if (sudo_caller(&user, &group)) {
		xpt_output_set_owner(user, group);
		output_set_owner(user, group); /* of the command's own copy of base/ */
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of write() */
	if (argc < 2 && !geteuid() && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		return exit_output(choose_process());
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("xputrace " XPT_VERSION XPT_COMMIT);
		return exit_output(0);
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		if (argc < 3) {
			usage(stdout);
			return exit_output(0);
		}
		help[0] = argv[2];
		return run(argv[2], 2, help);
	}
	return run(argv[1], argc - 1, argv + 1);
}
