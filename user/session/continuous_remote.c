/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_remote_*(): a collector of another process, through its socket. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "session/continuous_messages.h"
#include "session/control_client.h"

#define TIMEOUT 60000000000ull

/* Takes over the request. The caller deletes the answer. */
static int call(const struct xpt_remote *given, cJSON *request, cJSON **answer)
{
	struct xpt_remote remote = {};
	const char *reason = NULL;
	struct log log;
	char path[128];
	int error = options_copy(&remote, sizeof(remote), given);

	if (!error && !request)
		error = -ENOMEM;
	if (!error) {
		log = (struct log){ remote.log, remote.log_context, remote.log_level };
		/* What is no name is no file there either, and what does not fit here is too long for a socket. */
		snprintf(path, sizeof(path), "%s/%s.sock", XPT_CONTROL_DIR, remote.name ?: XPT_CONTINUOUS_NAME);
		error = control_call(path, request, remote.timeout ?: TIMEOUT, answer, &log);
	}
	cJSON_Delete(request);
	if (error)
		return error;
	error = control_answer_error(*answer, &reason);
	if (error) {
		log_error(&log, "%s", reason ?: strerror(-error));
		cJSON_Delete(*answer);
	}
	return error;
}

static cJSON *request_to(const char *what)
{
	cJSON *request = cJSON_CreateObject();

	if (cJSON_AddStringToObject(request, "do", what))
		return request;
	cJSON_Delete(request);
	return NULL;
}

int xpt_remote_save(const struct xpt_remote *remote, const struct xpt_save_options *given, struct xpt_saved *saved)
{
	static const struct xpt_save_options all = { .size = sizeof(all) };
	struct xpt_saved read = { .size = sizeof(read) };
	struct xpt_save_options options = {};
	cJSON *answer;
	int error = options_copy(&options, sizeof(options), given ?: &all);

	if (error)
		return error;
	error = call(remote, message_save_request(&options), &answer);
	if (error)
		return error;
	error = message_read_saved(answer, &read) ? -EPROTO : 0;
	cJSON_Delete(answer);
	if (!error && saved)
		error = options_give(saved, &read, sizeof(read));
	return error;
}

int xpt_remote_status(const struct xpt_remote *remote, struct xpt_continuous_status *status)
{
	struct xpt_continuous_status read = { .size = sizeof(read) };
	cJSON *answer;
	int error = call(remote, request_to("status"), &answer);

	if (error)
		return error;
	error = message_read_status(answer, &read) ? -EPROTO : options_give(status, &read, sizeof(read));
	cJSON_Delete(answer);
	return error;
}

int xpt_remote_stop(const struct xpt_remote *remote)
{
	cJSON *answer;
	int error = call(remote, request_to("stop"), &answer);

	if (!error)
		cJSON_Delete(answer);
	return error;
}
