/* SPDX-License-Identifier: BSD-2-Clause */
/* What is asked for through the socket. */
#include "session/continuous_messages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "session/continuous_private.h"

static void handle_save(struct xpt_continuous *continuous, struct control_request *request, const cJSON *body)
{
	struct xpt_save_options options;
	const char *member = "";
	char reason[REASON_MAX] = "";
	struct save *save;
	int error = message_read_save(body, &options, &member);

	if (error)
		snprintf(reason, sizeof(reason), "\"%s\" is not what it should be (see CONTROL.md)", member);
	else
		error = save_create(&options, &save, reason);
	if (!error) {
		snprintf(save->reason, sizeof(save->reason), "as somebody asked for");
		save->request = request;
		pthread_mutex_lock(&continuous->lock);
		error = saves_ask(continuous, save);
		pthread_mutex_unlock(&continuous->lock);
		if (error) {
			snprintf(reason, sizeof(reason), "too many saves wait already");
			save_free(save);
		}
	}
	if (error)
		control_refuse(request, error, *reason ? reason : strerror(-error));
}

static void answer(struct control_request *request, cJSON *message)
{
	if (message)
		control_answer(request, message);
	else
		control_refuse(request, -ENOMEM, strerror(ENOMEM));
}

void continuous_answer_save(struct save *save)
{
	if (save->error)
		control_refuse(save->request, save->error, *save->why ? save->why : strerror(-save->error));
	else
		answer(save->request, message_saved(&save->saved));
	save->request = NULL;
}

static void handle_status(struct xpt_continuous *continuous, struct control_request *request)
{
	cJSON *status;

	pthread_mutex_lock(&continuous->lock);
	status = message_status(&continuous->status);
	pthread_mutex_unlock(&continuous->lock);
	answer(request, status);
}

/* It is answered when all has been taken off. */
static void handle_stop(struct xpt_continuous *continuous, struct control_request *request)
{
	if (continuous->stop_request) {
		control_refuse(request, -EALREADY, "it is stopping already");
		return;
	}
	continuous->stop_request = request;
	pthread_mutex_lock(&continuous->lock);
	continuous->stopped = true;
	pthread_cond_broadcast(&continuous->changed);
	pthread_mutex_unlock(&continuous->lock);
}

void continuous_answer_stop(struct xpt_continuous *continuous)
{
	if (continuous->stop_request)
		control_answer(continuous->stop_request, NULL);
	continuous->stop_request = NULL;
}

void continuous_handle(void *context, struct control_request *request, const cJSON *body)
{
	const char *what = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, "do"));
	struct xpt_continuous *continuous = context;

	if (!strcmp(what, "save"))
		handle_save(continuous, request, body);
	else if (!strcmp(what, "status"))
		handle_status(continuous, request);
	else if (!strcmp(what, "stop"))
		handle_stop(continuous, request);
	else
		control_refuse(request, -EOPNOTSUPP, "what can be done is: save, status, stop");
}
