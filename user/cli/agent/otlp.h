/* SPDX-License-Identifier: BSD-2-Clause */
/* Where and how xputrace agent sends metrics and spans. */
#ifndef XPT_CLI_AGENT_OTLP_H
#define XPT_CLI_AGENT_OTLP_H

#include <curl/curl.h>

#include "base/format/otlp.h"
#include "cli/agent/agent.h"

struct otlp_settings {
	char *url;   /* may hold a password */
	char *shown; /* the same without user, password, query and fragment */
	bool json, packed, exponential;
	unsigned int timeout_ms;
	const char *certificate, *client_certificate, *client_key; /* NULL: none */
	struct curl_slist *headers;
	struct otlp_pairs resource;
};

enum otlp_signal { OTLP_METRICS, OTLP_TRACES, OTLP_SIGNALS };

/* Begins as zeros. 0; -ENOENT: no endpoint is configured; -EINVAL (reported), -ENOMEM. To be freed in any case. */
int otlp_settings_read(struct otlp_settings *settings, enum otlp_signal signal, const char *url);
void otlp_settings_free(struct otlp_settings *settings);

#endif
