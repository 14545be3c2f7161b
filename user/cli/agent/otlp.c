/* SPDX-License-Identifier: BSD-2-Clause */
/* Where and how metrics and spans are sent: by the option, and by the variables of OpenTelemetry's specification of exporters. */
#include "cli/agent/otlp.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "cli/commands.h"

#define TIMEOUT_MS 10000u /* by the specification */
#define TOKEN "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

#define NAME_BYTES 80

static const struct {
	const char *variable, *path;
} signals[OTLP_SIGNALS] = { [OTLP_METRICS] = { "METRICS_", "v1/metrics" }, [OTLP_TRACES] = { "TRACES_", "v1/traces" } };

/* That of the signal counts more than that of all; an empty one is none. *name: which it is. */
static const char *setting(enum otlp_signal signal, const char *end, char name[NAME_BYTES])
{
	const char *const begins[] = { signals[signal].variable, "" };

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		const char *value;

		snprintf(name, NAME_BYTES, "OTEL_EXPORTER_OTLP_%s%s", begins[i], end);
		value = getenv(name);
		if (value && *value)
			return value;
	}
	return NULL;
}

static void warn_ignored(const char *name, const char *expected)
{
	char text[200];

	snprintf(text, sizeof(text), "%s is ignored: expected %s", name, expected); /* its value may be secret */
	print_message(NULL, XPT_LOG_WARN, text);
}

static const char not_url[] = "expected a URL that begins with http:// or https://";

static int curl_error(CURLUcode code)
{
	return !code ? 0 : code == CURLUE_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;
}

/* whole: the URL that is sent to, shown: for messages; the caller frees both. added: to the path, NULL: nothing. -EINVAL, -ENOMEM. */
static int parse_url(const char *given, const char *added, char **whole, char **shown)
{
	static const CURLUPart secret[] = { CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT };
	CURLU *url = curl_url();
	char *scheme = NULL, *path = NULL, *longer = NULL, *part = NULL;
	int error = url ? curl_error(curl_url_set(url, CURLUPART_URL, given, 0)) : -ENOMEM;

	error = error ?: curl_error(curl_url_get(url, CURLUPART_SCHEME, &scheme, 0));
	if (!error && strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
		error = -EINVAL;
	if (!error && added) {
		if (curl_url_get(url, CURLUPART_PATH, &path, 0) ||
		    asprintf(&longer, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", added) < 0 ||
		    curl_url_set(url, CURLUPART_PATH, longer, 0))
			error = -ENOMEM;
	}
	error = error ?: curl_error(curl_url_get(url, CURLUPART_URL, &part, 0));
	*whole = error ? NULL : strdup(part);
	curl_free(part);
	part = NULL;
	for (size_t i = 0; !error && i < sizeof(secret) / sizeof(secret[0]); i++)
		curl_url_set(url, secret[i], NULL, 0);
	error = error ?: curl_error(curl_url_get(url, CURLUPART_URL, &part, 0));
	*shown = error ? NULL : strdup(part);
	if (!error && (!*whole || !*shown))
		error = -ENOMEM;
	curl_free(part);
	curl_free(scheme);
	curl_free(path);
	free(longer);
	curl_url_cleanup(url);
	return error;
}

const char *agent_push_refused(const char *url)
{
	char *whole, *shown;
	int error = parse_url(url, signals[OTLP_METRICS].path, &whole, &shown);

	free(whole);
	free(shown);
	return error == -EINVAL ? not_url : NULL;
}

/* 0; -ENOENT: no endpoint is configured; -EINVAL (reported), -ENOMEM. */
static int find_url(struct otlp_settings *settings, enum otlp_signal signal, const char *given)
{
	char name[NAME_BYTES] = "--otlp", text[200];
	const char *url = given ?: setting(signal, "ENDPOINT", name);
	int error;

	if (!url)
		return -ENOENT;
	/* The variable of one signal has a whole URL. */
	error = parse_url(url, strstr(name, signals[signal].variable) ? NULL : signals[signal].path, &settings->url,
			  &settings->shown);
	if (error == -EINVAL) {
		snprintf(text, sizeof(text), "%s: %s", name, not_url);
		print_message(NULL, XPT_LOG_ERROR, text);
	}
	return error;
}

static int add_header(struct otlp_settings *settings, const char *text)
{
	struct curl_slist *longer = curl_slist_append(settings->headers, text);

	if (!longer)
		return -ENOMEM;
	settings->headers = longer;
	return 0;
}

/* Whether a header may have the value: no control characters. */
static bool is_value(const char *text)
{
	for (; *text; text++)
		if (((unsigned char)*text < ' ' && *text != '\t') || *text == 127)
			return false;
	return true;
}

static int add_headers(struct otlp_settings *settings, enum otlp_signal signal)
{
	char name[NAME_BYTES], *line;
	const char *text = setting(signal, "HEADERS", name);
	struct otlp_pairs pairs = {};
	int error = add_header(settings,
			       settings->json ? "Content-Type: " OTLP_TYPE_JSON : "Content-Type: " OTLP_TYPE_PROTOBUF);

	if (!error && settings->packed)
		error = add_header(settings, "Content-Encoding: gzip");
	if (!error)
		error = add_header(settings, "Expect:"); /* curl would wait for a permission to send large bodies */
	if (!error && text && otlp_pairs_parse(&pairs, text))
		warn_ignored(name, "NAME=VALUE,NAME=VALUE");
	else
		for (size_t i = 0; !error && i < pairs.count; i++) {
			const struct otlp_pair *pair = &pairs.all[i];

			if (pair->name[strspn(pair->name, TOKEN)] || !is_value(pair->value)) {
				warn_ignored(name, "names and values that HTTP allows: one of them");
				continue;
			}
			if (asprintf(&line, "%s: %s", pair->name, pair->value) < 0)
				line = NULL;
			error = line ? add_header(settings, line) : -ENOMEM;
			free(line);
		}
	otlp_pairs_free(&pairs);
	return error;
}

static int read_settings(struct otlp_settings *settings, enum otlp_signal signal)
{
	char name[NAME_BYTES];
	const char *text = setting(signal, "PROTOCOL", name);
	uint64_t number;

	settings->json = text && !strcmp(text, "http/json");
	if (text && !settings->json && strcmp(text, "http/protobuf") != 0)
		warn_ignored(name, "http/protobuf or http/json");
	text = setting(signal, "COMPRESSION", name);
	settings->packed = text && !strcmp(text, "gzip");
	if (text && !settings->packed && strcmp(text, "none") != 0)
		warn_ignored(name, "gzip or none");
	/* Of metrics only, but the other names do no harm. */
	text = setting(signal, "DEFAULT_HISTOGRAM_AGGREGATION", name);
	settings->exponential = text && !strcmp(text, "base2_exponential_bucket_histogram");
	if (text && !settings->exponential && strcmp(text, "explicit_bucket_histogram") != 0)
		warn_ignored(name, "explicit_bucket_histogram or base2_exponential_bucket_histogram");
	text = setting(signal, "TIMEOUT", name);
	settings->timeout_ms = TIMEOUT_MS;
	if (text && parse_number(text, &number) && number && number <= INT_MAX)
		settings->timeout_ms = (unsigned int)number;
	else if (text)
		warn_ignored(name, "milliseconds");
	settings->certificate = setting(signal, "CERTIFICATE", name);
	settings->client_certificate = setting(signal, "CLIENT_CERTIFICATE", name);
	settings->client_key = setting(signal, "CLIENT_KEY", name);
	return add_headers(settings, signal);
}

/* What metrics and spans are of. Those of the environment count more. */
static int describe_resource(struct otlp_settings *settings)
{
	static const struct {
		const char *machine, *arch;
	} arches[] = { { "x86_64", "amd64" }, { "aarch64", "arm64" } };
	struct otlp_pairs *resource = &settings->resource, given = {};
	const char *text = getenv("OTEL_RESOURCE_ATTRIBUTES");
	struct utsname system;
	int error;

	error = otlp_pairs_set(resource, "service.name", "xputrace")		 ?:
			otlp_pairs_set(resource, "service.version", XPT_VERSION) ?:
			otlp_pairs_set(resource, "os.type", "linux");
	if (!error && !uname(&system)) {
		/* Agents of two hosts are two instances, and an agent that is started again is the same one. */
		error = otlp_pairs_set(resource, "service.instance.id", system.nodename) ?:
				otlp_pairs_set(resource, "host.name", system.nodename)	 ?:
				otlp_pairs_set(resource, "os.version", system.release);
		for (size_t i = 0; !error && i < sizeof(arches) / sizeof(arches[0]); i++)
			if (!strcmp(system.machine, arches[i].machine))
				error = otlp_pairs_set(resource, "host.arch", arches[i].arch);
	}
	if (!error && text && *text) {
		if (otlp_pairs_parse(&given, text))
			warn_ignored("OTEL_RESOURCE_ATTRIBUTES", "NAME=VALUE,NAME=VALUE");
		else
			for (size_t i = 0; !error && i < given.count; i++)
				error = otlp_pairs_set(resource, given.all[i].name, given.all[i].value);
		otlp_pairs_free(&given);
	}
	return error ?: otlp_pairs_set(resource, "service.name", getenv("OTEL_SERVICE_NAME"));
}

int otlp_settings_read(struct otlp_settings *settings, enum otlp_signal signal, const char *url)
{
	return find_url(settings, signal, url) ?: read_settings(settings, signal) ?: describe_resource(settings);
}

void otlp_settings_free(struct otlp_settings *settings)
{
	curl_slist_free_all(settings->headers);
	otlp_pairs_free(&settings->resource);
	free(settings->url);
	free(settings->shown);
}
