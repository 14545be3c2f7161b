/* SPDX-License-Identifier: BSD-2-Clause */
/* agent: traces everything that uses a runtime, under a budget, and exports metrics. */
#include "cli/agent/agent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xputrace/stream.h>

#include "base/file/file.h"
#include "base/file/output.h"
#include "cli/continuous/saving.h"
#include "cli/session.h"

#define INTERVAL 5000000000ull /* ns */
#define SERIES 2000
#define STALE 600000000000ull /* ns */
#define TEXTFILE_MODE 0644    /* node_exporter is another user */

struct agent {
	struct session_options session; /* first: see session.h */
	uint64_t interval, max_series, stale;
	const char *listen, *textfile; /* NULL: no file */
	const char *otlp;	       /* NULL: as the environment has it */
	uint64_t otlp_queue, otlp_traces;
	bool kernels;
	struct saving saving; /* without triggers nothing is saved */

	struct xpt_session *library;
	struct agent_metrics *metrics;
	struct agent_server *server; /* NULL: nobody listens */
	struct agent_push *push;     /* NULL: nobody gets them */
	struct agent_saves *saves;   /* NULL: nothing is saved */
	int textfile_error;	     /* of the latest attempt, so that it is reported once */
};

/* ---- the command line ---- */

#define FIELD(name) .offset = offsetof(struct agent, name)

static bool take_listen(void *field, const char *value, const char **reason)
{
	const char **listen = field;

	*listen = value;
	*reason = strcmp(value, "none") != 0 ? agent_listen_refused(value) : NULL;
	return !*reason;
}

static bool take_textfile(void *field, const char *value, const char **reason)
{
	const char **textfile = field;
	size_t length = strlen(value);

	*textfile = value;
	*reason = "expected a file with a name that ends in .prom, which node_exporter reads";
	return length > strlen(".prom") && !strcmp(value + length - strlen(".prom"), ".prom");
}

static bool take_otlp(void *field, const char *value, const char **reason)
{
	const char **otlp = field;

	*otlp = value;
	*reason = agent_push_refused(value);
	return !*reason;
}

static const struct option_entry entries[] = {
	{ .group = target_options },
	{ 'm', "match", "EXPRESSION",
	  "only programs with a name in which this regular\nexpression is found (ECMAScript syntax)", OPTION_CALLBACK,
	  .take = take_chosen_match },
	{ 'l', "listen", "[ADDRESS:]PORT|unix:PATH", "serve /metrics here (default: " AGENT_LISTEN ");\nnone: nowhere",
	  OPTION_CALLBACK, FIELD(listen), .take = take_listen },
	{ 0, "textfile", "FILE.prom",
	  "write the metrics here at each interval, for node_exporter's\ntextfile collector", OPTION_CALLBACK,
	  FIELD(textfile), .take = take_textfile },
	{ 0, "otlp", "URL",
	  "send the metrics to URL/v1/metrics at each interval, in OpenTelemetry's\nprotocol; without it, as OTEL_EXPORTER_OTLP_ENDPOINT has it",
	  OPTION_CALLBACK, FIELD(otlp), .take = take_otlp },
	{ 0, "otlp-queue", "SIZE", "memory for what could not be sent yet (default 4M)", OPTION_SIZE, FIELD(otlp_queue),
	  .min = 65536, .max = 1ull << 30 },
	{ 0, "otlp-traces", "TIME",
	  "send a span of the slowest inference of each program and interval\nto URL/v1/traces if it took so long, 1ns to 1h",
	  OPTION_DURATION, FIELD(otlp_traces), .min = 1, .max = 3600000000000 },
	{ 0, "interval", "TIME", "time between two updates, 100ms to 1h (default 5s)", OPTION_DURATION, FIELD(interval),
	  .min = 100000000, .max = 3600000000000 },
	{ 0, "max-series", "N",
	  "sets of labels of programs that are kept apart (default 2000);\nprogram=\"other\" has the rest",
	  OPTION_NUMBER, FIELD(max_series), .min = 1, .max = 100000 },
	{ 0, "stale-after", "TIME",
	  "remove series of programs and processes that have ended and\ndid nothing for so long, 1s to 1d (default 10m)",
	  OPTION_DURATION, FIELD(stale), .min = 1000000000, .max = 86400000000000 },
	{ 0, "kernels", NULL,
	  "give each kernel of CUDA, HIP, OpenCL... series of its own,\nnot only program=\"kernels\"", OPTION_FLAG,
	  FIELD(kernels) },
	{ .group = saving_options, FIELD(saving) },
	{ .group = duration_option },
	{ .group = collect_options },
	{ .group = verbose_option },
	{}
};

static const struct command_line line = {
	.name = "agent",
	.summary = "Export metrics of what all programs and devices of this host do, for Prometheus and OpenTelemetry.",
	.usage = "  xputrace agent [OPTION...]\n"
		 "  xputrace agent -p PID[,PID...] [OPTION...]\n"
		 "  xputrace agent [OPTION...] -- COMMAND [ARGUMENT...]",
	.options = entries,
	.more = "Without a target all processes that use a described runtime are traced, within a budget of 2 % of their\n"
		"CPU time. Runs until SIGTERM or Ctrl-C.\n\n"
		"examples:\n"
		"  sudo xputrace agent\n"
		"  sudo xputrace agent --listen unix:/run/xputrace/metrics --budget 1\n"
		"  sudo xputrace agent --listen none --textfile /var/lib/prometheus/node-exporter/xputrace.prom\n"
		"  sudo xputrace agent --listen none --otlp http://collector:4318 --otlp-traces 50ms\n"
		"  sudo xputrace agent --save-on 'latency > 100ms' --save-on error -o /var/tmp/slow\n\n"
		"exit status: 0 ended as asked, 1 failed, 2 wrong usage",
};

/* ---- the textfile ---- */

static int write_textfile(const char *path, const struct text *text)
{
	struct output_file file;
	int error = output_temporary(path, &file);

	if (error)
		return error;
	file.over = true;
	error = file_write(file.descriptor, text->data, text->length);
	if (!error && fchmod(file.descriptor, TEXTFILE_MODE))
		error = -errno;
	return output_end(&file, error);
}

static void update_textfile(struct agent *agent)
{
	struct text text = {};
	char message[300];
	int error;

	agent_metrics_render(agent->metrics, AGENT_TEXT, &text);
	error = text.error ?: write_textfile(agent->textfile, &text);
	text_free(&text);
	if (error && error != agent->textfile_error) {
		snprintf(message, sizeof(message), "cannot write %.200s: %s", agent->textfile, output_reason(error));
		print_message(NULL, XPT_LOG_ERROR, message);
	}
	agent->textfile_error = error;
}

/* ---- the session ---- */

static void on_report(void *context, const struct xpt_profile_report *report)
{
	struct agent *agent = context;

	if (agent->saves)
		agent_saves_update(agent->saves);
	agent_metrics_update(agent->metrics, agent->library, report);
	if (agent->textfile)
		update_textfile(agent);
	if (agent->push)
		agent_push_add(agent->push, agent->saves, report->end_realtime);
	if (agent->server)
		agent_server_tick(agent->server);
}

static void on_signal(void *session)
{
	xpt_session_interrupt(session);
}

static void report_ready(const struct agent *agent)
{
	char text[400];

	if (agent->server) {
		if (!strncmp(agent->listen, "unix:", 5))
			snprintf(text, sizeof(text), "metrics are at %.200s, /metrics", agent->listen);
		else
			snprintf(text, sizeof(text), "metrics are at http://%s%.200s/metrics",
				 strchr(agent->listen, ':') ? "" : "127.0.0.1:", agent->listen);
		print_message(NULL, XPT_LOG_INFO, text);
	}
	if (agent->textfile) {
		snprintf(text, sizeof(text), "metrics are in %.200s", agent->textfile);
		print_message(NULL, XPT_LOG_INFO, text);
	}
	if (agent->push) {
		snprintf(text, sizeof(text), "metrics are sent to %.300s", agent_push_url(agent->push, false));
		print_message(NULL, XPT_LOG_INFO, text);
	}
	if (agent->push && agent_push_url(agent->push, true)) {
		snprintf(text, sizeof(text), "spans are sent to %.300s", agent_push_url(agent->push, true));
		print_message(NULL, XPT_LOG_INFO, text);
	}
	if (agent->saves) {
		snprintf(text, sizeof(text), "files are saved into %.300s",
			 agent->saving.options.output_dir ?: XPT_CONTINUOUS_DIR);
		print_message(NULL, XPT_LOG_INFO, text);
	}
	notify_manager();
}

/* Until a signal, the end of the targets or of --duration. The exit status. */
static int trace(struct agent *agent)
{
	XPT_OPTS(xpt_stream_options, options, .report_every = agent->interval, .match = agent->session.match ?: "",
		 .summary = 1, .callback = on_report, .context = agent);
	struct xpt_stream *stream;
	int result = exit_status(xpt_stream_create(agent->library, &options, &stream));

	if (result)
		return result;
	if (agent->saving.triggers.count)
		result = exit_status(agent_saves_create(&agent->saving, agent->library, agent->metrics, &agent->saves));
	if (!result)
		result = exit_status(xpt_stream_start(stream) ?: xpt_session_start(agent->library));
	if (!result) {
		report_ready(agent);
		result = xpt_session_wait(agent->library, agent->session.duration ?: XPT_FOREVER);
		result = result < 0 && result != -EINTR ? exit_failed(result) : 0;
		end_soon(false);
		if (agent->saves)
			agent_saves_stop(agent->saves); /* the last spans do not wait for a file */
		xpt_stream_stop(stream);
		xpt_stream_flush(stream);
	}
	xpt_stream_destroy(stream);
	agent_saves_destroy(agent->saves);
	return result;
}

/* ns that an inference takes at least that gets a span, because of --otlp-traces or of a trigger that it meets; 0: none does. */
static uint64_t span_least(const struct agent *agent)
{
	const char *exporter = getenv("OTEL_TRACES_EXPORTER");
	uint64_t least = agent->otlp_traces, latency;

	if (exporter && !strcmp(exporter, "none"))
		return least;
	for (size_t i = 0; i < agent->saving.triggers.count; i++)
		if (!xpt_trigger_latency(agent->saving.triggers.items[i], &latency) && (!least || latency < least))
			least = latency;
	return least;
}

static int run(struct agent *agent)
{
	XPT_OPTS(xpt_session_options, options, WATCH_OPTIONS(&agent->session));
	const struct agent_metrics_options metrics_options = { .max_series = agent->max_series,
							       .kernels = agent->kernels,
							       .stale = agent->stale };
	int result = exit_status(agent_metrics_create(&metrics_options, &agent->metrics));
	uint64_t slow = span_least(agent);

	if (!result)
		result = exit_status(
			agent_push_create(agent->otlp, agent->otlp_queue, slow, agent->metrics, &agent->push));
	if (!result && agent->push && agent_push_url(agent->push, true))
		agent_metrics_give_spans(agent->metrics, slow);
	else if (!result && agent->otlp_traces)
		result = session_options_refuse(
			&line, "--otlp-traces requires --otlp URL or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
	if (!result && !strcmp(agent->listen, "none") && !agent->textfile && !agent->push)
		result = session_options_refuse(&line, "--listen none requires --textfile FILE.prom or --otlp URL");
	if (!result && strcmp(agent->listen, "none") != 0 &&
	    agent_server_create(agent->listen, agent->metrics, &agent->server))
		result = EXIT_FAILED;
	if (!result)
		result = exit_status(xpt_session_create(&options, &agent->library));
	if (!result) {
		end_on_signals(on_signal, agent->library);
		result = trace(agent);
		end_on_signals(NULL, NULL);
		xpt_session_destroy(agent->library);
	}
	agent_server_destroy(agent->server);
	agent_push_destroy(agent->push);
	agent_metrics_free(agent->metrics);
	return result;
}

/* Reports options for files without a trigger: true. The folder may be given all the same, as a service does. */
static bool triggers_missing(const struct saving *saving)
{
	static const struct saving standard = { SAVING_DEFAULTS };
	const struct xpt_continuous_options *given = &saving->options, *as = &standard.options;

	if (saving->triggers.count ||
	    (given->window_bytes == as->window_bytes && given->window_time == as->window_time &&
	     given->save_after == as->save_after && given->save_cooldown == as->save_cooldown &&
	     given->save_files == as->save_files && given->save_bytes == as->save_bytes && given->level == as->level &&
	     !saving->on_save.program && saving->on_save.limit == standard.on_save.limit))
		return false;
	session_options_refuse(&line, "options of saved files require --save-on TRIGGER");
	return true;
}

int command_agent(int argc, char **argv)
{
	static struct agent agent = {
		.session.all_by_default = true,
		.session.budget = XPT_BUDGET_CONTINUOUS,
		.interval = INTERVAL,
		.max_series = SERIES,
		.stale = STALE,
		.listen = AGENT_LISTEN,
		.otlp_queue = AGENT_QUEUE,
		.saving = { SAVING_DEFAULTS },
	};
	int result = session_options_parse(&line, argc, argv, &agent);

	if (result)
		return result;
	if (choices_refused(&line, &agent.session) || triggers_missing(&agent.saving))
		return EXIT_USAGE;
	messages_detach();
	return run(&agent);
}
